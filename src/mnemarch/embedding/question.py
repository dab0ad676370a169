"""The embedder of questions: what is asked, whatever the spacing, the particles, the endings and the politeness.

A text is read in its canonical form, in which Korean has no spaces, as a row of units: each syllable, and each stem of
a word that is written in letters. A unit and each run of two or three units is a feature, so that the order of words
still counts; so is each n-gram of the letters of a word. A syllable that may be grammar weighs little; a word that is
grammar has no n-grams, and no place in the row if it tells nothing. A feature is a number: that of a unit or an n-gram
is hashed from its text, that of a run is worked out from those of its units.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from math import fsum, sqrt

from xxhash import xxh3_128_intdigest

from mnemarch.embedding import sparse as ngram
from mnemarch.embedding.sparse import DEFAULT_SEED, NgramHashEmbedder, unit_vector
from mnemarch.errors import InvalidInput
from mnemarch.text import korean
from mnemarch.text.cache import cached
from mnemarch.text.canonical import canonical
from mnemarch.text.korean import is_other_grammar
from mnemarch.text.tokens import TOKENS_VERSION, telling_tokens
from mnemarch.text.words import EMPTY_WORDS, STOP_WORDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mnemarch.embedding.sparse import SparseVector

    # Numbers and weights: the units of a word, and its other features.
    _Word = tuple[list[tuple[int, float]], dict[int, float]]

# Other features or weights make other vectors: a change of meaning raises the version.
FEATURES_VERSION = 2

# A word has two or three syllables: so an English question weighs its words as a Korean one does.
_OF_WORD, _OF_SYLLABLE, _OF_LETTERS = 2.0, 1.0, 0.7
_OF_PAIR, _OF_TRIPLE = 0.5, 0.4
# What a particle or an ending weighs, and a stop word: about as much as if it had n-grams.
_OF_ENDING, _OF_STOP_WORD = 0.3, 1.4

# What an ending may follow: the syllable 까 is one only in forms such as 할까.
_BEFORE_ENDINGS = ("", "하", "한", "할", "합")
_STATE = ("featuresVersion", "tokensVersion")
# So many bits of a hash number a text: numbers of this size are multiplied in one step. Odd factors keep apart what
# differs in the lowest bits.
_BITS = 30
_OF_FIRST, _OF_FIRST_OF_THREE, _OF_SECOND_OF_THREE = 0x2545F491, 0x1B873593, 0x3C6EF373
# What comes before the first unit and after the last.
_EDGE = (1, 0.0)
_KNOWN_MAX = 8_192
# How much a question of some twelve words says.
_USUAL_SIZE = 90.0
# A particle or an ending more or another one changes the sense, however little of the text it is.
_IN_OTHER_GRAMMAR = 0.95


class QuestionEmbedder:
    """Sparse vectors `{place: weight}` as those of `NgramHashEmbedder`; `ngram_range` is that of the letters."""

    def __init__(self, dim: int = 16_384, seed: int = DEFAULT_SEED, ngram_range: tuple[int, int] = (3, 3)) -> None:
        self._become(NgramHashEmbedder(ngram_range, dim, seed))

    def _become(self, hashing: NgramHashEmbedder) -> None:
        self._hashing = hashing
        self.ngram_range, self.dim, self.seed = hashing.ngram_range, hashing.dim, hashing.seed
        self._id = id_of(self.export_state())

    @property
    def id(self) -> str:
        """What the vectors depend on, in one string."""
        return self._id

    def embed(self, text: str) -> SparseVector[int]:
        """The unit vector of `text`; empty for text that holds nothing."""
        # Sums, products, a root and a quotient of fixed weights: machines agree to the last bit.
        features = features_of(text, self.seed, *self.ngram_range)
        dim = self.dim
        places = [feature % dim for feature in features]
        weights = dict(zip(places, features.values(), strict=True))
        if len(weights) < len(places):  # Features that share a place add up.
            weights = dict.fromkeys(places, 0.0)
            for place, weight in zip(places, features.values(), strict=True):
                weights[place] += weight
        return unit_vector(weights, self._id)

    def sameness(self, text: str, other: str, cosine: float) -> float:
        """How far two texts of this cosine ask the same: what differs weighs in a long text as in a usual one.

        With a page of the same log below it, "fix this" would else be the same as "ignore this".
        """
        ours, theirs = (self._size(each) for each in (text, other))
        found = 1.0 - (1.0 - cosine) * max(1.0, sqrt(ours * theirs) / _USUAL_SIZE)
        return min(found, _IN_OTHER_GRAMMAR) if is_other_grammar(canonical(text), canonical(other)) else found

    def _size(self, text: str) -> float:
        """How much a text says: the square of the length that its vector had."""
        return fsum(weight * weight for weight in features_of(text, self.seed, *self.ngram_range).values())

    def export_state(self) -> dict[str, Any]:
        """All that is needed to make the same vectors elsewhere (A11)."""
        versions = {"featuresVersion": FEATURES_VERSION, "tokensVersion": TOKENS_VERSION}
        return self._hashing.export_state() | versions

    def import_state(self, state: Mapping[str, Any]) -> None:
        """Become the embedder that `state` describes; one that this version can't reproduce is refused."""
        id_of(state)
        if (state["featuresVersion"], state["tokensVersion"]) != (FEATURES_VERSION, TOKENS_VERSION):
            raise InvalidInput(
                f"Features {state['featuresVersion']!r} over tokens {state['tokensVersion']!r} can't be made here: "
                f"this version has {FEATURES_VERSION} and {TOKENS_VERSION}.",
                hint="Embed their texts again with this version (Snapshot.reembedded).",
            )
        hashing = NgramHashEmbedder()
        hashing.import_state(state)
        self._become(hashing)


# An act compares one question with several graphs.
@cached(16)
def features_of(text: str, seed: int, low: int = 3, high: int = 3) -> dict[int, float]:
    """Each feature of a text once, with its weight: units, runs of them, and n-grams of `low` to `high` letters."""
    asked = canonical(text)
    if not asked:
        return {}
    found: dict[int, float] = {}
    known = _known_words(seed, low, high)
    row = [_EDGE]
    for piece in _pieces().findall(asked):
        word = known.get(piece)
        if word is None:
            if len(known) >= _KNOWN_MAX:
                known.clear()
            word = known[piece] = _read(piece, seed, low, high)
        row += word[0]
        found.update(word[1])
    found.update(row[1:])
    row.append(_EDGE)
    # A run weighs as its weightiest unit.
    for (a, v), (b, w) in pairwise(row):
        found[a * _OF_FIRST + b] = _OF_PAIR * (v if v > w else w)
    for (a, u), (b, v), (c, w) in zip(row, row[1:], row[2:], strict=False):
        found[a * _OF_FIRST_OF_THREE + b * _OF_SECOND_OF_THREE + c] = _OF_TRIPLE * max(u, v, w)
    return found


# Questions share most of their words, and looking one up takes far less than reading it.
@cached(8)
def _known_words(_seed: int, _low: int, _high: int) -> dict[str, _Word]:
    return {}


def _read(piece: str, seed: int, low: int, high: int) -> _Word:
    """What a syllable or a word adds to the row of units, and its features beside the row."""
    if _syllables().match(piece):
        return [(_number(piece, seed), _OF_SYLLABLE * (_OF_ENDING if _is_ending(piece) else 1.0))], {}
    word = bare if (bare := piece.removesuffix("'s")) in STOP_WORDS else piece
    if word in EMPTY_WORDS:
        return [], {_number(word, seed): _OF_STOP_WORD}
    if word in STOP_WORDS:  # When is not why, and from is not to.
        return [(_number(word, seed), _OF_STOP_WORD)], {}
    padded = f" {piece} "
    # Canonical text has no tab: an n-gram is no unit.
    grams = ["\t" + padded[at : at + size] for size in range(low, high + 1) for at in range(len(padded) - size + 1)]
    units = [(_number(token, seed), _OF_WORD) for token in telling_tokens(piece) or [piece]]
    return units, {_number(gram, seed): _OF_LETTERS for gram in grams}


def _number(text: str, seed: int) -> int:
    digest: int = xxh3_128_intdigest(text.encode("utf-8", "surrogatepass"), seed)
    return digest >> (128 - _BITS)


def id_of(state: Mapping[str, Any]) -> str:
    """The id of the embedder that an exported state describes, whether or not this version can be it."""
    missing = [name for name in _STATE if name not in state]
    if missing:
        raise InvalidInput(
            f"The state of a question embedder lacks {', '.join(missing)}.", hint="Give what export_state gave."
        )
    return "/".join(["question", *(str(state[name]) for name in _STATE), ngram.id_of(state)])


def _is_ending(syllable: str) -> bool:
    """Whether it may be a particle or the end of an ending: in some words it is neither, and is still shared there."""
    return any(korean.is_suffix(before + syllable) for before in _BEFORE_ENDINGS)


# Hangul, kana and ideographs: one of them says about as much as a syllable, and no space need part two words.
_SYLLABLE = "\u1100-\u11ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"


@cache
def _syllables() -> re.Pattern[str]:
    return re.compile(f"[{_SYLLABLE}]")


@cache
def _pieces() -> re.Pattern[str]:
    return re.compile(f"[{_SYLLABLE}]|[^ {_SYLLABLE}]+")

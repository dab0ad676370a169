"""The embedder of questions: what is asked, whatever the spacing, the particles, the endings and the politeness.

A text is read in its canonical form, in which Korean has no spaces, as a row of units: each syllable, and each stem of
a word that is written in letters. A unit and each run of two or three units is a feature, so that the order of words
still counts; so is each n-gram of the letters. A run that holds nothing but grammar weighs little.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

from xxhash import xxh3_128_intdigest

from mnemon.embedding import ngram
from mnemon.embedding.ngram import DEFAULT_SEED, NgramHashEmbedder
from mnemon.embedding.sparse import unit_vector
from mnemon.errors import InvalidInput
from mnemon.text import hangul
from mnemon.text.canonical import canonical
from mnemon.text.english_forms import STOP_WORDS
from mnemon.text.kept import kept
from mnemon.text.tokens import TOKENS_VERSION, telling_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mnemon.embedding.sparse import SparseVector

# Other features or weights make other vectors: a change of meaning raises the version.
FEATURES_VERSION = 1

# A word has two or three syllables: so an English question weighs its words as a Korean one does.
_OF_WORD, _OF_SYLLABLE, _OF_LETTERS = 2.0, 1.0, 0.7
_OF_PAIR, _OF_TRIPLE = 0.5, 0.4
# What particles, endings and stop words weigh of that.
_OF_GRAMMAR = 0.3

# When is not why: of the stop words, these stay in the runs, where the others are passed over.
_QUESTION_WORDS = frozenset({"how", "what", "when", "where", "which", "who", "whom", "whose", "why"})
_PASSED_OVER = frozenset({word for word in STOP_WORDS if word.removesuffix("'s") not in _QUESTION_WORDS})
# What an ending may follow: the syllable 까 is one only in forms such as 할까.
_BEFORE_ENDINGS = ("", "하", "한", "할", "합")
_EDGE = ("", 0.0)
_STATE = ("featuresVersion", "tokensVersion")
_PLACES_MAX = 16_384


class QuestionEmbedder:
    """Sparse vectors `{place: weight}` as those of `NgramHashEmbedder`; `ngram_range` is that of the letters."""

    def __init__(self, dim: int = 16_384, seed: int = DEFAULT_SEED, ngram_range: tuple[int, int] = (3, 3)) -> None:
        self._become(NgramHashEmbedder(ngram_range, dim, seed))

    def _become(self, hashing: NgramHashEmbedder) -> None:
        self._hashing = hashing
        self.ngram_range, self.dim, self.seed = hashing.ngram_range, hashing.dim, hashing.seed
        self._id = id_of(self.export_state())
        self._places: dict[str, int] = {}

    @property
    def id(self) -> str:
        """What the vectors depend on, in one string."""
        return self._id

    def embed(self, text: str) -> SparseVector[int]:
        """The unit vector of `text`; empty for text that holds nothing."""
        # Sums, products, a root and a quotient of fixed weights: machines agree to the last bit.
        known = self._places
        weights: dict[int, float] = {}
        for feature, weight in features_of(text, *self.ngram_range).items():
            place = known.get(feature)
            if place is None:
                place = self._place(feature)
            weights[place] = weights.get(place, 0.0) + weight
        return unit_vector(weights, self._id)

    def _place(self, feature: str) -> int:
        """Where a feature goes. Questions share most of theirs, and looking one up takes a sixth of hashing it."""
        if len(self._places) >= _PLACES_MAX:
            self._places.clear()
        place: int = xxh3_128_intdigest(feature.encode("utf-8", "surrogatepass"), self.seed) % self.dim
        self._places[feature] = place
        return place

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


def features_of(text: str, low: int = 3, high: int = 3) -> dict[str, float]:
    """Each feature of a text once, with its weight: units and runs of them, and n-grams of `low` to `high` letters."""
    known = canonical(text)
    found: dict[str, float] = {}
    if not known:
        return found
    units = [_EDGE]
    for piece in _pieces().findall(known):
        if piece in _PASSED_OVER:
            found[piece] = _OF_WORD * _OF_GRAMMAR
        else:
            units += _units_of(piece)
    units.append(_EDGE)
    # A run weighs as its weightiest unit. Canonical text has no line break and no tab: features of two kinds differ.
    found.update(units[1:-1])
    for (a, v), (b, w) in pairwise(units):
        found[f"{a}\n{b}"] = _OF_PAIR * (v if v > w else w)
    for (a, u), (b, v), (c, w) in zip(units, units[1:], units[2:], strict=False):
        found[f"{a}\n{b}\n{c}"] = _OF_TRIPLE * max(u, v, w)
    for run in _letters().findall(known):
        padded = f" {run.strip()} "
        for size in range(low, high + 1):
            for at in range(len(padded) - size + 1):
                found["\t" + padded[at : at + size]] = _OF_LETTERS
    return found


def id_of(state: Mapping[str, Any]) -> str:
    """The id of the embedder that an exported state describes, whether or not this version can be it."""
    missing = [name for name in _STATE if name not in state]
    if missing:
        raise InvalidInput(
            f"The state of a question embedder lacks {', '.join(missing)}.", hint="Give what export_state gave."
        )
    return "/".join(["question", *(str(state[name]) for name in _STATE), ngram.id_of(state)])


@kept(16_384)
def _units_of(piece: str) -> tuple[tuple[str, float], ...]:
    """What a syllable or a word is in the runs, with its weight."""
    if _syllables().match(piece):
        return ((piece, _OF_SYLLABLE * (_OF_GRAMMAR if _is_grammar(piece) else 1.0)),)
    asked = piece.removesuffix("'s")
    if asked in _QUESTION_WORDS:
        return ((asked, _OF_WORD * _OF_GRAMMAR),)
    return tuple([(token, _OF_WORD) for token in telling_tokens(piece) or [piece]])


def _is_grammar(syllable: str) -> bool:
    """Whether it may be a particle or the end of an ending: in some words it is neither, and is still shared there."""
    return any(hangul.is_suffix(before + syllable) for before in _BEFORE_ENDINGS)


# Hangul, kana and ideographs: one of them says about as much as a syllable, and no space need part two words.
_SYLLABLE = "\u1100-\u11ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"


@cache
def _syllables() -> re.Pattern[str]:
    return re.compile(f"[{_SYLLABLE}]")


@cache
def _pieces() -> re.Pattern[str]:
    return re.compile(f"[{_SYLLABLE}]|[^ {_SYLLABLE}]+")


@cache
def _letters() -> re.Pattern[str]:
    """A stretch of words with no syllable in it, from its first letter on."""
    return re.compile(f"[^ {_SYLLABLE}][^{_SYLLABLE}]*")

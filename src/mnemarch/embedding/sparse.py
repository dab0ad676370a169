"""Sparse vectors without a model: n-grams (A10), questions, bags of words; and the cosine.

A vector is `{feature: weight}` of length 1 with its embedder's id. Vectors of two embedders are never compared (R18).
"""

from __future__ import annotations

from itertools import pairwise
from math import fsum, log, sqrt

from xxhash import xxh3_64_hexdigest, xxh3_128_intdigest

from mnemarch.errors import InvalidInput
from mnemarch.text import korean
from mnemarch.text.cache import cached, pattern
from mnemarch.text.canonical import NORM_VERSION, canonical, composed, ngrams
from mnemarch.text.tokens import TOKENS_VERSION, telling_tokens
from mnemarch.text.words import EMPTY_WORDS, STOP_WORDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, TypeVar

    K = TypeVar("K")
    # The units of a word and its other features, as numbers with weights.
    _Word = tuple[list[tuple[int, float]], dict[int, float]]
else:
    K = object

HASH_ALGO = "xxh3-128"
DEFAULT_SEED = 20_251
_SIZE_MAX = 32
_DIM_MAX = 1 << 32
_SEED_MAX = (1 << 64) - 1
_USUAL = "Usual values are ngram_range (3, 5), dim 16384 and a seed from 0 to 2**64 - 1."


class SparseVector(dict[K, float]):
    """`{feature: weight}` of length 1, or empty, with the id of its embedder. Equal to any equal mapping."""

    __slots__ = ("embedder_id",)
    embedder_id: str


def unit_vector(weights: Mapping[K, float], embedder_id: str) -> SparseVector[K]:
    """The weights scaled to length 1, ordered by feature, without zeros."""
    # fsum: the length must not depend on the order of features in the text.
    length = sqrt(fsum([weight * weight for weight in weights.values()]))
    vector: SparseVector[K] = SparseVector()
    if length:
        features: list[Any] = sorted(weights)
        vector.update({feature: weight / length for feature in features if (weight := weights[feature])})
    vector.embedder_id = embedder_id
    return vector


def cosine(left: Mapping[K, float], right: Mapping[K, float]) -> float:
    """The cosine of two sparse vectors, 0 if one is empty. Raises for vectors of different embedders."""
    makers = getattr(left, "embedder_id", None), getattr(right, "embedder_id", None)
    if makers[0] != makers[1] and None not in makers:
        raise InvalidInput(
            f"Vectors of {makers[0]} and of {makers[1]} can't be compared.", hint="Embed both texts with one embedder."
        )
    scale = _length(left) * _length(right)
    if not scale:
        return 0.0
    if len(left) > len(right):
        left, right = right, left
    shared = sum([weight * right[feature] for feature, weight in left.items() if feature in right])
    return max(-1.0, min(1.0, shared / scale))


cosine_sparse = cosine


def _length(vector: Mapping[K, float]) -> float:
    if isinstance(vector, SparseVector):
        return 1.0
    return sqrt(fsum([weight * weight for weight in vector.values()]))


class NgramHashEmbedder:
    """Hashed character n-grams, the same on every machine. Only embedders in the same state compare (R18)."""

    def __init__(self, ngram_range: tuple[int, int] = (3, 5), dim: int = 16_384, seed: int = DEFAULT_SEED) -> None:
        self._become(ngram_range, dim, seed)

    def _become(self, ngram_range: Any, dim: Any, seed: Any) -> None:
        sizes = tuple(ngram_range) if isinstance(ngram_range, tuple | list) else ()
        whole = all(type(number) is int for number in (*sizes, dim, seed))
        if not (
            whole
            and len(sizes) == 2
            and 1 <= sizes[0] <= sizes[1] <= _SIZE_MAX
            and 1 <= dim <= _DIM_MAX
            and 0 <= seed <= _SEED_MAX
        ):
            raise InvalidInput(f"ngramRange {ngram_range!r}, dim {dim!r}, seed {seed!r} make no embedder.", hint=_USUAL)
        self.ngram_range: tuple[int, int] = sizes
        self.dim: int = dim
        self.seed: int = seed
        # Everything that the vectors depend on, in one string.
        self.id = f"ngram-hash/{sizes[0]}-{sizes[1]}/{dim}/{seed}/{HASH_ALGO}/{NORM_VERSION}"

    def embed(self, text: str) -> SparseVector[int]:
        """The unit vector of `text`; empty for an empty text."""
        # Integer counts, a root and a quotient: IEEE 754 defines their rounding, so all machines give equal bits.
        counted: dict[int, float] = {}
        for gram in ngrams(text, *self.ngram_range):
            place = xxh3_128_intdigest(gram.encode("utf-8", "surrogatepass"), self.seed) % self.dim
            counted[place] = counted.get(place, 0.0) + 1.0
        return unit_vector(counted, self.id)

    def export_state(self) -> dict[str, Any]:
        """All that is needed to make the same vectors elsewhere (A11)."""
        return {
            "ngramRange": list(self.ngram_range),
            "dim": self.dim,
            "seed": self.seed,
            "hashAlgo": HASH_ALGO,
            "normVersion": NORM_VERSION,
        }

    def import_state(self, state: Mapping[str, Any]) -> None:
        """Become the embedder that `state` describes, unless this version can't reproduce it."""
        _require_versions(state, hashAlgo=HASH_ALGO, normVersion=NORM_VERSION)
        self._become(state.get("ngramRange"), state.get("dim"), state.get("seed"))


def _require_versions(state: Mapping[str, Any], **ours: Any) -> None:
    theirs = {name: state.get(name) for name in ours}
    if theirs != ours:
        raise InvalidInput(
            f"Vectors of {theirs} can't be made here: this version has {ours}.",
            hint="Embed their texts again with this version.",
        )


# Increase the version for every change of features or weights, since it changes the vectors.
FEATURES_VERSION = 2

# A Korean word has two or three syllables, so an English word weighs as much as two.
_OF_WORD, _OF_SYLLABLE, _OF_LETTERS = 2.0, 1.0, 0.7
_OF_PAIR, _OF_TRIPLE = 0.5, 0.4
# The weights of a particle or ending, and of a stop word. A stop word weighs about as much as if it had n-grams.
_OF_ENDING, _OF_STOP_WORD = 0.3, 1.4

# Syllables that an ending may follow: 까 is an ending only in forms such as 할까.
_BEFORE_ENDINGS = ("", "하", "한", "할", "합")
# A feature has this many bits of a hash, so that a multiplication takes one step. Odd factors keep numbers distinct
# that differ in the lowest bits.
_BITS = 30
_OF_FIRST, _OF_FIRST_OF_THREE, _OF_SECOND_OF_THREE = 0x2545F491, 0x1B873593, 0x3C6EF373
# The unit before the first and after the last unit.
_EDGE = (1, 0.0)
_KNOWN_MAX = 8_192
# The size of a question with some twelve words.
_USUAL_SIZE = 90.0
# The maximum sameness of texts with different particles or endings, which change the sense even in long texts.
_IN_OTHER_GRAMMAR = 0.95


class QuestionEmbedder:
    """Sparse vectors `{place: weight}` like those of `NgramHashEmbedder`. `ngram_range` applies to letters.

    Two questions are near if they ask the same with different spacing, particles or endings. A text in canonical form,
    in which Korean has no spaces, becomes a row of units: each syllable, and each stem of a word in letters. Features
    are the units, the runs of two or three units (so that word order counts), and the n-grams of the letters of a word.
    A syllable that may be grammar weighs little. A stop word has no n-grams, and an empty word is not in the row. A
    feature is a number: the hash of a unit's or n-gram's text, or a number computed from the units of a run.
    """

    def __init__(self, dim: int = 16_384, seed: int = DEFAULT_SEED, ngram_range: tuple[int, int] = (3, 3)) -> None:
        self._become(NgramHashEmbedder(ngram_range, dim, seed))

    def _become(self, hashing: NgramHashEmbedder) -> None:
        self._hashing = hashing
        self.ngram_range, self.dim, self.seed = hashing.ngram_range, hashing.dim, hashing.seed
        self.id = f"question/{FEATURES_VERSION}/{TOKENS_VERSION}/{hashing.id}"

    def embed(self, text: str) -> SparseVector[int]:
        """The unit vector of `text`; empty for an empty text."""
        # Sums, products, a root and a quotient of fixed weights give equal bits on all machines.
        features = features_of(text, self.seed, *self.ngram_range)
        dim = self.dim
        places = [feature % dim for feature in features]
        weights = dict(zip(places, features.values(), strict=True))
        if len(weights) < len(places):  # Features that share a place add up.
            weights = dict.fromkeys(places, 0.0)
            for place, weight in zip(places, features.values(), strict=True):
                weights[place] += weight
        return unit_vector(weights, self.id)

    def sameness(self, text: str, other: str, cosine: float) -> float:
        """How far two texts with this cosine ask the same. A difference counts equally in long and usual texts.

        Without that, "fix this" and "ignore this" would be the same if a page of the same log follows both.
        """
        ours, theirs = (self._size(each) for each in (text, other))
        sameness = 1.0 - (1.0 - cosine) * max(1.0, sqrt(ours * theirs) / _USUAL_SIZE)
        is_other = korean.is_other_grammar(canonical(text), canonical(other))
        return min(sameness, _IN_OTHER_GRAMMAR) if is_other else sameness

    def _size(self, text: str) -> float:
        """The squared length of a text's vector before it is scaled."""
        return fsum(weight * weight for weight in features_of(text, self.seed, *self.ngram_range).values())

    def export_state(self) -> dict[str, Any]:
        """All that is needed to make the same vectors elsewhere (A11)."""
        versions = {"featuresVersion": FEATURES_VERSION, "tokensVersion": TOKENS_VERSION}
        return self._hashing.export_state() | versions

    def import_state(self, state: Mapping[str, Any]) -> None:
        """Become the embedder that `state` describes, unless this version can't reproduce it."""
        _require_versions(state, featuresVersion=FEATURES_VERSION, tokensVersion=TOKENS_VERSION)
        hashing = NgramHashEmbedder()
        hashing.import_state(state)
        self._become(hashing)


# Cached because one act compares a question with several graphs.
@cached(16)
def features_of(text: str, seed: int, low: int = 3, high: int = 3) -> dict[int, float]:
    """The distinct features of a text with weights: units, runs of units, and n-grams of `low` to `high` letters."""
    plain = canonical(text)
    if not plain:
        return {}
    features: dict[int, float] = {}
    known = _known_words(seed, low, high)
    row = [_EDGE]
    for piece in pattern(_PIECES).findall(plain):
        word = known.get(piece)
        if word is None:
            if len(known) >= _KNOWN_MAX:
                known.clear()
            word = known[piece] = _read(piece, seed, low, high)
        row += word[0]
        features.update(word[1])
    features.update(row[1:])
    row.append(_EDGE)
    # A run weighs as much as its heaviest unit.
    for (a, v), (b, w) in pairwise(row):
        features[a * _OF_FIRST + b] = _OF_PAIR * (v if v > w else w)
    for (a, u), (b, v), (c, w) in zip(row, row[1:], row[2:], strict=False):
        features[a * _OF_FIRST_OF_THREE + b * _OF_SECOND_OF_THREE + c] = _OF_TRIPLE * max(u, v, w)
    return features


# Questions share most of their words, so each word's features are cached.
@cached(8)
def _known_words(_seed: int, _low: int, _high: int) -> dict[str, _Word]:
    return {}


def _read(piece: str, seed: int, low: int, high: int) -> _Word:
    """The units of a syllable or word, and its other features."""
    if pattern(_SYLLABLE).match(piece):
        return [(_number(piece, seed), _OF_SYLLABLE * (_OF_ENDING if _is_ending(piece) else 1.0))], {}
    word = bare if (bare := piece.removesuffix("'s")) in STOP_WORDS else piece
    if word in EMPTY_WORDS:
        return [], {_number(word, seed): _OF_STOP_WORD}
    if word in STOP_WORDS:  # Stop words count, since "when" differs from "why" and "from" from "to".
        return [(_number(word, seed), _OF_STOP_WORD)], {}
    padded = f" {piece} "
    # The tab keeps n-grams apart from units, because canonical text has no tab.
    grams = ["\t" + padded[at : at + size] for size in range(low, high + 1) for at in range(len(padded) - size + 1)]
    units = [(_number(token, seed), _OF_WORD) for token in telling_tokens(piece) or [piece]]
    return units, {_number(gram, seed): _OF_LETTERS for gram in grams}


def _number(text: str, seed: int) -> int:
    digest: int = xxh3_128_intdigest(text.encode("utf-8", "surrogatepass"), seed)
    return digest >> (128 - _BITS)


def _is_ending(syllable: str) -> bool:
    """Whether the syllable may be a particle or the end of an ending. In some words it is neither."""
    return any(korean.is_suffix(before + syllable) for before in _BEFORE_ENDINGS)


# Hangul, kana and ideographs. Each carries about a syllable's meaning, and words need no spaces between them.
_SYLLABLE = "[\u1100-\u11ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]"
_PIECES = f"{_SYLLABLE}|[^ {_SYLLABLE[1:]}+"


# Bags of words

BAG_VERSION = 1
# A Korean word has about four features and other words have one. This weight makes them equal.
_OF_ONE_TOKEN = 4.0
_HANGUL_RUNS = "[\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff]+"


class BagOfWordsEmbedder:
    """Sparse vectors `{feature: weight}`, weighted by rarity after `learn` was called."""

    def __init__(self) -> None:
        self._become(0, {})

    def _become(self, documents: int, counts: Mapping[str, int]) -> None:
        # How many of the `documents` texts contain each feature. Rarer features weigh more.
        self.documents, self.counts = documents, counts
        lines = sorted(f"{feature}\t{count}" for feature, count in counts.items() if count)
        digest = xxh3_64_hexdigest("\n".join((str(documents), *lines)).encode("utf-8", "surrogatepass"))
        self.id = f"bag-of-words/{BAG_VERSION}/{TOKENS_VERSION}/{documents}/{digest}"

    def embed(self, text: str) -> SparseVector[str]:
        """The unit vector of `text`; empty for a text without telling words."""
        features = bag_of(text)
        if self.documents:
            features = {feature: weight * self._rarity(feature) for feature, weight in features.items()}
        return unit_vector(features, self.id)

    def learn(self, texts: Iterable[str]) -> None:
        """Count the features of more texts. Vectors made before can't be compared with later ones."""
        documents, counts = self.documents, dict(self.counts)
        for text in texts:
            documents += 1
            for feature in bag_of(text):
                counts[feature] = counts.get(feature, 0) + 1
        self._become(documents, counts)

    def _rarity(self, feature: str) -> float:
        """ln((N + 1) / (df + 0.5)), always above 0."""
        return log((self.documents + 1) / (self.counts.get(feature, 0) + 0.5))

    def export_state(self) -> dict[str, Any]:
        """All that is needed to make the same vectors elsewhere."""
        return {
            "featuresVersion": BAG_VERSION,
            "tokensVersion": TOKENS_VERSION,
            "documents": self.documents,
            "frequencies": dict(sorted(self.counts.items())),
        }

    def import_state(self, state: Mapping[str, Any]) -> None:
        """Become the embedder that `state` describes, unless this version can't reproduce it."""
        documents, counts = state.get("documents"), state.get("frequencies")
        numbers = [documents, *(counts.values() if isinstance(counts, dict) else [None])]
        if type(documents) is not int or not all(type(count) is int and 0 <= count <= documents for count in numbers):
            raise InvalidInput("This is no state of a bag of words.", hint="Give what export_state gave.")
        _require_versions(state, featuresVersion=BAG_VERSION, tokensVersion=TOKENS_VERSION)
        self._become(documents, dict(state["frequencies"]))


def bag_of(text: str) -> dict[str, float]:
    """The distinct features of a text, each with the weight of its kind."""
    features: dict[str, float] = {}
    if not text.isascii():
        text = composed(text)
    for word in text.split():
        features.update(_features_of_word(word))
    return features


@cached(16_384)
def _features_of_word(word: str) -> dict[str, float]:
    tokens = telling_tokens(word)
    if word.isascii():
        return dict.fromkeys(tokens, _OF_ONE_TOKEN)
    runs = pattern(_HANGUL_RUNS)
    features = dict.fromkeys([token for token in tokens if not runs.search(token)], _OF_ONE_TOKEN)
    for run in runs.findall(word):
        # Leave out runs that search tokens leave out, such as the particle of a foreign word.
        if set(tokens).issuperset(korean.features(run)):
            features.update(dict.fromkeys(korean.fine_features(run), 1.0))
    return features

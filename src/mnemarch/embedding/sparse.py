"""Sparse vectors without a model: the default n-gram embedder (A10), cosine, rarity of features, and snapshots (A11).

A vector is `{feature: weight}` of length 1 and knows its embedder: those of two embedders are never compared (R18).
"""

from __future__ import annotations

from math import fsum, isfinite, log, sqrt

from xxhash import xxh3_64_hexdigest, xxh3_128_intdigest

from mnemarch.errors import InvalidInput
from mnemarch.model.value import value
from mnemarch.text.canonical import NORM_VERSION, ngrams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Protocol, TypeVar

    K = TypeVar("K")

    class SparseEmbedder(Protocol):
        """What can make a snapshot: `NgramHashEmbedder`, `QuestionEmbedder` or `BagOfWordsEmbedder`."""

        @property
        def id(self) -> str: ...
        def embed(self, text: str) -> SparseVector[Any]: ...
        def export_state(self) -> dict[str, Any]: ...
else:
    K = object

HASH_ALGO = "xxh3-128"
DEFAULT_SEED = 20_251
_SIZE_MAX = 32
_DIM_MAX = 1 << 32
_SEED_MAX = (1 << 64) - 1
_STATE = ("ngramRange", "dim", "seed", "hashAlgo", "normVersion")
_USUAL = "Usual are ngram_range (3, 5), dim 16384 and any seed from 0 to 2**64 - 1."


class SparseVector(dict[K, float]):
    """`{feature: weight}` of length 1, or empty, with the id of its embedder. Equal to any equal mapping."""

    __slots__ = ("embedder_id",)
    embedder_id: str


def unit_vector(weights: Mapping[K, float], embedder_id: str) -> SparseVector[K]:
    """The weights scaled to length 1, in the order of their features; zeros are left out."""
    # fsum: the length must not depend on the order in which a text names its features.
    length = sqrt(fsum([weight * weight for weight in weights.values()]))
    vector: SparseVector[K] = SparseVector()
    if length:
        features: list[Any] = sorted(weights)
        vector.update({feature: weight / length for feature in features if (weight := weights[feature])})
    vector.embedder_id = embedder_id
    return vector


def cosine(left: Mapping[K, float], right: Mapping[K, float]) -> float:
    """The cosine of two sparse vectors, 0 if one is empty. Vectors of different embedders are refused."""
    makers = getattr(left, "embedder_id", None), getattr(right, "embedder_id", None)
    if makers[0] != makers[1] and None not in makers:
        raise InvalidInput(
            f"Vectors of {makers[0]} and of {makers[1]} can't be compared.",
            hint="Embed both texts with one embedder (Snapshot.reembedded does it for a snapshot).",
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


@value
class Frequencies:
    """In how many of `documents` texts each feature occurs. The fewer, the more it tells."""

    documents: int = 0
    counts: Mapping[Any, int] = {}

    def __check__(self) -> None:
        whole = (self.documents, *self.counts.values())
        if not all(type(count) is int and 0 <= count <= self.documents for count in whole):
            raise InvalidInput(
                f"Frequencies of {self.documents!r} texts must be whole numbers from 0 to that.",
                hint="Count each text once for each feature it has.",
            )

    @classmethod
    def of(cls, texts: Iterable[Iterable[Any]]) -> Frequencies:
        """Counted over texts, each as its features or its vector."""
        return cls().and_of(texts)

    def and_of(self, texts: Iterable[Iterable[Any]]) -> Frequencies:
        """These frequencies with those of more texts."""
        documents, counts = self.documents, dict(self.counts)
        for features in texts:
            documents += 1
            for feature in set(features):
                counts[feature] = counts.get(feature, 0) + 1
        return Frequencies(documents=documents, counts=counts)

    def rarity(self, feature: Any) -> float:
        """ln((N + 1) / (df + 0.5)): always above 0."""
        return log((self.documents + 1) / (self.counts.get(feature, 0) + 0.5))

    def digest(self) -> str:
        """A name of these frequencies: other frequencies make other vectors."""
        lines = sorted(f"{feature}\t{count}" for feature, count in self.counts.items() if count)
        return xxh3_64_hexdigest("\n".join((str(self.documents), *lines)).encode("utf-8", "surrogatepass"))


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
            raise InvalidInput(
                f"ngram_range {ngram_range!r}, dim {dim!r}, seed {seed!r} make no embedder.", hint=_USUAL
            )
        self.ngram_range: tuple[int, int] = sizes
        self.dim: int = dim
        self.seed: int = seed
        self._id = id_of(self.export_state())

    @property
    def id(self) -> str:
        """What the vectors depend on, in one string."""
        return self._id

    def embed(self, text: str) -> SparseVector[int]:
        """The unit vector of `text`; empty for an empty text."""
        # Whole counts, a root and a quotient: IEEE 754 rounds each in one way, so machines agree to the last bit.
        counted: dict[int, float] = {}
        for gram in ngrams(text, *self.ngram_range):
            place = xxh3_128_intdigest(gram.encode("utf-8", "surrogatepass"), self.seed) % self.dim
            counted[place] = counted.get(place, 0.0) + 1.0
        return unit_vector(counted, self._id)

    def with_frequencies(self, frequencies: Frequencies) -> WeightedNgramEmbedder:
        """An embedder that weighs rare places more; `Frequencies.of(map(embedder.embed, texts))` counts them."""
        return WeightedNgramEmbedder(self, frequencies)

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
        id_of(state)
        if state["hashAlgo"] != HASH_ALGO or state["normVersion"] != NORM_VERSION:
            raise InvalidInput(
                f"Vectors by {state['hashAlgo']!r} over normal form {state['normVersion']!r} can't be made here: "
                f"this version has {HASH_ALGO!r} and {NORM_VERSION}.",
                hint="Embed their texts again with this version (Snapshot.reembedded).",
            )
        self._become(state["ngramRange"], state["dim"], state["seed"])


class WeightedNgramEmbedder:
    """The same n-grams weighted by rarity, for ranking; a snapshot holds plain ones."""

    def __init__(self, plain: NgramHashEmbedder, frequencies: Frequencies) -> None:
        self._plain = NgramHashEmbedder(plain.ngram_range, plain.dim, plain.seed)
        self._frequencies = frequencies
        self.id = f"{plain.id}/idf-{frequencies.digest()}"

    def embed(self, text: str) -> SparseVector[int]:
        """The unit vector of `text`, each place times its rarity."""
        rarity = self._frequencies.rarity
        return unit_vector(
            {place: weight * rarity(place) for place, weight in self._plain.embed(text).items()}, self.id
        )


def id_of(state: Mapping[str, Any]) -> str:
    """The id of the embedder that an exported state describes, also if this version can't reproduce it."""
    missing = [name for name in _STATE if name not in state]
    if missing:
        raise InvalidInput(
            f"The state of an n-gram embedder lacks {', '.join(missing)}.",
            hint=f"Give what export_state gave: {', '.join(_STATE)}.",
        )
    sizes = state["ngramRange"]
    shown = "-".join(map(str, sizes)) if isinstance(sizes, list | tuple) else str(sizes)
    return "/".join(["ngram-hash", shown, *(str(state[name]) for name in _STATE[1:])])


@value
class Snapshot:
    """Texts by id, their vectors, and the state of the embedder that made them."""

    state: Mapping[str, Any]
    texts: Mapping[str, str]
    vectors: Mapping[str, SparseVector[Any]]

    def __check__(self) -> None:
        if self.texts.keys() != self.vectors.keys():
            odd = min(self.texts.keys() ^ self.vectors.keys())
            raise InvalidInput(
                f"The snapshot has a text or a vector of {odd!r}, but not both.", hint="Take the snapshot again."
            )

    @classmethod
    def of(cls, embedder: SparseEmbedder, texts: Mapping[str, str]) -> Snapshot:
        vectors = {text_id: embedder.embed(text) for text_id, text in texts.items()}
        return cls(state=embedder.export_state(), texts=dict(texts), vectors=vectors)

    @property
    def embedder_id(self) -> str:
        return _id_of(self.state)

    def comparable_with(self, embedder: SparseEmbedder) -> bool:
        """Whether this embedder's vectors may be compared with these as they are."""
        return self.embedder_id == embedder.id

    def reembedded(self, embedder: SparseEmbedder) -> Snapshot:
        """The same texts with vectors of this embedder; the snapshot itself if it made them."""
        return self if self.comparable_with(embedder) else Snapshot.of(embedder, self.texts)

    def to_json(self) -> dict[str, Any]:
        """JSON types only; every weight comes back to the last bit."""
        return {
            "embedder": dict(self.state),
            "texts": dict(self.texts),
            "vectors": {text_id: [list(item) for item in vector.items()] for text_id, vector in self.vectors.items()},
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Snapshot:
        """A snapshot by any version of Mnemarch. Vectors that this one can't make stay, comparable with none."""
        try:
            state, texts, vectors = record["embedder"], dict(record["texts"]), dict(record["vectors"])
            embedder_id = _id_of(state)
            read = {text_id: _vector(items, embedder_id) for text_id, items in vectors.items()}
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(
                f"This is no snapshot: {type(error).__name__} {error}.", hint="Give what Snapshot.to_json gave."
            ) from None
        if not all(isinstance(text, str) for text in texts.values()):
            raise InvalidInput("A text of the snapshot is no text.", hint="Give what Snapshot.to_json gave.")
        return cls(state=dict(state), texts=texts, vectors=read)


def _id_of(state: Mapping[str, Any]) -> str:
    """The id of the embedder that made a snapshot, whichever of the three it was."""
    if "frequencies" in state:
        from mnemarch.embedding.words import id_of as words_id

        return words_id(state)
    if "featuresVersion" in state:
        from mnemarch.embedding.question import id_of as question_id

        return question_id(state)
    return id_of(state)


def _vector(items: Any, embedder_id: str) -> SparseVector[Any]:
    vector: SparseVector[Any] = SparseVector((feature, float(weight)) for feature, weight in items)
    if not all(map(isfinite, vector.values())):
        raise ValueError("a weight is no finite number")
    vector.embedder_id = embedder_id
    return vector

"""Sparse vectors without a model: the default n-gram embedder (A10) and the cosine.

A vector is `{feature: weight}` of length 1 and knows its embedder: those of two embedders are never compared (R18).
"""

from __future__ import annotations

from math import fsum, sqrt

from xxhash import xxh3_128_intdigest

from mnemarch.errors import InvalidInput
from mnemarch.text.canonical import NORM_VERSION, ngrams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeVar

    K = TypeVar("K")
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
            raise InvalidInput(
                f"ngram_range {ngram_range!r}, dim {dim!r}, seed {seed!r} make no embedder.", hint=_USUAL
            )
        self.ngram_range: tuple[int, int] = sizes
        self.dim: int = dim
        self.seed: int = seed
        self._id = f"ngram-hash/{sizes[0]}-{sizes[1]}/{dim}/{seed}/{HASH_ALGO}/{NORM_VERSION}"

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
        missing = [name for name in _STATE if name not in state]
        if missing:
            raise InvalidInput(
                f"The state of an n-gram embedder lacks {', '.join(missing)}.",
                hint=f"Give what export_state gave: {', '.join(_STATE)}.",
            )
        if state["hashAlgo"] != HASH_ALGO or state["normVersion"] != NORM_VERSION:
            raise InvalidInput(
                f"Vectors by {state['hashAlgo']!r} over normal form {state['normVersion']!r} can't be made here: "
                f"this version has {HASH_ALGO!r} and {NORM_VERSION}.",
                hint="Embed their texts again with this version.",
            )
        self._become(state["ngramRange"], state["dim"], state["seed"])

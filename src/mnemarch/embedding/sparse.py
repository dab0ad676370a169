"""Sparse unit vectors that know who made them, and the cosine of two."""

from __future__ import annotations

from math import fsum, sqrt

from mnemarch.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeVar

    K = TypeVar("K")
else:
    K = object


class SparseVector(dict[K, float]):
    """`{feature: weight}` of length 1 (or empty), with the id of its embedder (R18); equal as the mapping it is."""

    __slots__ = ("embedder_id",)
    embedder_id: str


def unit_vector(weights: Mapping[K, float], embedder_id: str) -> SparseVector[K]:
    """The weights scaled to length 1, in the order of their features; weights of 0 are left out."""
    # fsum: the length must not depend on the order in which a text names its features.
    length = sqrt(fsum([weight * weight for weight in weights.values()]))
    vector: SparseVector[K] = SparseVector()
    if length:
        features: list[Any] = sorted(weights)
        vector.update({feature: weight / length for feature in features if (weight := weights[feature])})
    vector.embedder_id = embedder_id
    return vector


def cosine(left: Mapping[K, float], right: Mapping[K, float]) -> float:
    """The cosine of two sparse vectors. Those of different embedders are refused; nothing is alike to nothing: 0."""
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

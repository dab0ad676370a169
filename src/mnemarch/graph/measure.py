"""How a graph measures questions: by the vectors of an embedder, whoever it is."""

from __future__ import annotations

from math import fsum, sqrt

from mnemarch.embedding.sparse import SparseVector
from mnemarch.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mnemarch.graph.provider import EmbeddingProvider


class Measure:
    """An embedder as a graph uses it."""

    def __init__(self, embedder: EmbeddingProvider) -> None:
        if isinstance(embedder, type) or not callable(getattr(embedder, "embed", None)):
            raise InvalidInput(f"{embedder!r} can't embed.", hint="Give an object with embed(text), or nothing.")
        self._embedder = embedder

    def vector(self, text: str) -> Mapping[Any, float]:
        """The vector of a text, of length 1 or empty."""
        return as_unit_vector(self._embedder.embed(text))

    def maker(self) -> object:
        """Changes when the embedder does."""
        return getattr(self._embedder, "id", None)

    def sameness(self, text: str, other: str, cosine: float) -> float:
        """How far two texts are the same question: as alike as their vectors, unless the embedder knows better."""
        told = getattr(self._embedder, "sameness", None)
        return cosine if told is None else min(cosine, float(told(text, other, cosine)))


def as_unit_vector(given: Any) -> Mapping[Any, float]:
    """What an embedder gave, as a sparse vector of length 1 (or empty)."""
    if isinstance(given, SparseVector):
        return given
    try:
        weights = {_feature(feature): float(weight) for feature, weight in _items(given)}
        largest = max(map(abs, weights.values()), default=0.0)
        if largest and not 1e-100 < largest < 1e100:  # Their squares would be lost.
            weights = {feature: weight / largest for feature, weight in weights.items()}
        length = sqrt(fsum([weight * weight for weight in weights.values()]))
    except (TypeError, ValueError, OverflowError):
        weights, length = {}, float("nan")
    if not length < float("inf"):
        raise InvalidInput(
            f"The embedder gave {type(given).__name__} with something that is no finite number, or no feature.",
            hint="embed(text) gives a list of numbers, or a mapping from whole numbers or texts to numbers.",
        )
    return {feature: weight / length for feature, weight in weights.items() if weight}


def _items(given: Any) -> Any:
    return given.items() if hasattr(given, "items") else enumerate(given)


def _feature(given: Any) -> int | str:
    """A feature that a file can give back."""
    if type(given) is str or type(given) is int:
        return given
    if isinstance(given, str | bool) or not hasattr(given, "__index__"):
        raise ValueError(f"{given!r} is no feature")
    return int(given)

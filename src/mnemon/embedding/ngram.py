"""The default embedder (A10): hashed character n-grams, L2-normalised, the same on every machine, no model."""

from __future__ import annotations

from math import sqrt

from xxhash import xxh3_128_intdigest

from mnemon.errors import InvalidInput
from mnemon.text.canonical import NORM_VERSION
from mnemon.text.ngrams import ngrams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

HASH_ALGO = "xxh3-128"
DEFAULT_SEED = 20_251


class NgramHashEmbedder:
    """Sparse vectors `{dimension: weight}`, comparable only with those of an embedder in the same state (R18)."""

    def __init__(self, ngram_range: tuple[int, int] = (3, 5), dim: int = 16_384, seed: int = DEFAULT_SEED) -> None:
        low, high = ngram_range
        if not 1 <= low <= high or dim < 1:
            raise InvalidInput(
                f"ngram_range {ngram_range!r} and dim {dim!r} make no embedder.", hint="(3, 5) and 16384 are usual."
            )
        self.ngram_range = (low, high)
        self.dim = dim
        self.seed = seed

    def embed(self, text: str) -> dict[int, float]:
        """The unit vector of `text`; empty for text that holds nothing."""
        counted: dict[int, float] = {}
        for gram in ngrams(text, *self.ngram_range):
            place = xxh3_128_intdigest(gram.encode(), self.seed) % self.dim
            counted[place] = counted.get(place, 0.0) + 1.0
        length = sqrt(sum(weight * weight for weight in counted.values()))
        return {place: weight / length for place, weight in sorted(counted.items())} if length else {}

    def export_state(self) -> dict[str, Any]:
        return {
            "ngramRange": list(self.ngram_range),
            "dim": self.dim,
            "seed": self.seed,
            "hashAlgo": HASH_ALGO,
            "normVersion": NORM_VERSION,
        }

    def import_state(self, state: Mapping[str, Any]) -> None:
        """Become the embedder that `state` describes; one that this version can't reproduce is refused."""
        if state["hashAlgo"] != HASH_ALGO or state["normVersion"] != NORM_VERSION:
            raise InvalidInput(
                f"Vectors by {state['hashAlgo']}/{state['normVersion']} can't be made here.",
                hint="Embed their texts again with this version.",
            )
        low, high = state["ngramRange"]
        self.__init__((low, high), state["dim"], state["seed"])  # type: ignore[misc]


def cosine(left: Mapping[int, float], right: Mapping[int, float]) -> float:
    """Cosine of two unit vectors."""
    if len(left) > len(right):
        left, right = right, left
    return sum(weight * right[place] for place, weight in left.items() if place in right)

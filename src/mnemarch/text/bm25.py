"""How well a text answers a question of words: Okapi BM25, by one formula wherever the text was found."""

from __future__ import annotations

from math import log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mnemarch.model.search import Sketch

K1 = 1.2
B = 0.75


def rarity(seen: int, documents: int) -> float:
    """What a word tells that is in `seen` of so many texts."""
    return log(1 + (documents - seen + 0.5) / (seen + 0.5))


def bm25(sketch: Sketch, weights: Mapping[str, float], mean_length: float) -> float:
    """How well a text answers a question of weighted words."""
    damping = K1 * (1 - B + B * sketch.length / mean_length)
    total = 0.0
    for word, weight in weights.items():
        count = sketch.count(f" {word} ")
        if count:
            total += weight * count * (K1 + 1) / (count + damping)
    return total

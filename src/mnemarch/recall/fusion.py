"""From several signals to one order (M3). A weighted sum is the default; this is the other way. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# The usual constant: how little the first rank is worth more than the second.
_DAMPING = 60


def reciprocal_ranks(values: Sequence[float]) -> list[float]:
    """1 / (60 + rank) for each value; equal ones share a rank, and what a signal says nothing of gets nothing."""
    ranks: dict[float, int] = {}
    for value in sorted((value for value in values if value > 0), reverse=True):
        ranks.setdefault(value, len(ranks) + 1)
    return [1 / (_DAMPING + ranks[value]) if value > 0 else 0.0 for value in values]

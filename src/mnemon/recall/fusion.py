"""From several signals to one order (M3): a weighted sum, or reciprocal ranks. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    # For each signal what it says of each candidate.
    Signals = Mapping[str, Mapping[str, float]]

WEIGHTED, RRF = "weighted", "rrf"
# The usual constant: how little the first rank is worth more than the second.
_RRF_DAMPING = 60


def fused(signals: Signals, weights: Mapping[str, float], method: str) -> dict[str, dict[str, float]]:
    """For each candidate the share of each signal; the best candidate's shares add up to 1."""
    if method == RRF:
        signals = {name: _reciprocal_ranks(values) for name, values in signals.items()}
    shares: dict[str, dict[str, float]] = {}
    for name, values in signals.items():
        weight = weights[name]
        if weight:
            for candidate, said in values.items():
                if said:
                    shares.setdefault(candidate, {})[name] = weight * said
    best = max((sum(parts.values()) for parts in shares.values()), default=1.0)
    return {candidate: {name: part / best for name, part in parts.items()} for candidate, parts in shares.items()}


def _reciprocal_ranks(values: Mapping[str, float]) -> dict[str, float]:
    """1 / (60 + rank); equal values share a rank, and what a signal says nothing of gets nothing."""
    ranks: dict[float, int] = {}
    for value in sorted((value for value in values.values() if value > 0), reverse=True):
        ranks.setdefault(value, len(ranks) + 1)
    return {candidate: 1 / (_RRF_DAMPING + ranks[value]) for candidate, value in values.items() if value > 0}

"""The three axes of M4 and the order of R10: tiers outside, scores inside. Pure."""

from __future__ import annotations

from mnemon.model.found import Recalled
from mnemon.model.unit import TRUSTED, Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from mnemon.config import RecallRules
    from mnemon.model.unit import Unit
    from mnemon.recall.finder import Candidate

TIER_KNOWLEDGE = 7
TIER_HYPOTHESIS = 8


def ranked(candidates: Sequence[Candidate], *, now: datetime, rules: RecallRules, k: int) -> list[Recalled]:
    """The best `k`: trusted knowledge before hypotheses (R2), by score inside each; ties break by id."""
    best = max((candidate.lexical for candidate in candidates), default=0.0) or 1.0
    items = [_item(candidate.unit, candidate.lexical, best, now, rules) for candidate in candidates]
    return sorted(items, key=lambda item: (item.tier, -item.score, item.unit.id))[:k]


def _item(unit: Unit, lexical: float, best: float, now: datetime, rules: RecallRules) -> Recalled:
    similarity = lexical / best
    age_hours = max(0.0, (now - unit.occurred_at).total_seconds() / 3600)
    recency = 0.5 ** (age_hours / rules.half_life_hours)
    why = {
        "similarity": rules.weight_similarity * similarity,
        "recency": rules.weight_recency * recency,
        "importance": rules.weight_importance * unit.importance,
    }
    trusted = unit.status in TRUSTED
    return Recalled(
        unit=unit,
        score=sum(why.values()),
        tier=TIER_KNOWLEDGE if trusted else TIER_HYPOTHESIS,
        why=why | {"lexical": lexical},
        label=label(unit, contested=False),
    )


def label(unit: Unit, contested: bool) -> str:
    """How far a reader may believe it."""
    return f"[{unit.status.upper()}]" + (" [CONTESTED]" if contested else "")


def withheld_reason(unit: Unit, now: datetime, as_of: datetime | None) -> str | None:
    """Why a unit that matches may not be handed out now, or as of an earlier moment; None if it may (R2, R8)."""
    if unit.erased_at is not None:
        return "erased"
    if unit.status is Status.ARCHIVED:
        return f"archived: {unit.archive_reason}" if unit.archive_reason else "archived"
    if as_of is None and unit.status is Status.DEPRECATED:
        return f"superseded by {unit.superseded_by}"
    # A clock that went back must not hide what was recorded before it did.
    moment = as_of or max(now, unit.recorded_at)
    if moment < unit.occurred_at:
        return f"not yet valid: from {unit.occurred_at.isoformat()}"
    if not unit.valid_at(moment):
        return f"superseded by {unit.superseded_by}" if unit.superseded_by else "out of validity"
    return None

"""The three axes of M4 and the order of R10: tiers outside, scores inside. Pure."""

from __future__ import annotations

from mnemarch.model.search import Recalled
from mnemarch.model.unit import DRAFT_STATE, REPLACED_STATE, TRUSTED, TRUSTED_STATE, Status, search_kind
from mnemarch.policy.kinds import KINDS
from mnemarch.policy.tiers import (
    TIER_AXIS,
    TIER_FOUND,
    TIER_GLOBAL_AXIS,
    TIER_HYPOTHESIS,
    TIER_LOCK,
    TIER_NORMAL,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from mnemarch.config import RecallRules
    from mnemarch.model.unit import Unit
    from mnemarch.recall.relevance import Relevance

# Kinds as the search index names them: a decision with its strength and reach, anything else by its kind alone.
_TIERS = {name: rules.tier for name, rules in KINDS.items()} | {
    "decision.axis.global": TIER_GLOBAL_AXIS,
    "decision.axis": TIER_AXIS,
    "decision.lock": TIER_LOCK,
    "decision.lock.global": TIER_LOCK,
    "decision.normal": TIER_NORMAL,
    "decision.normal.global": TIER_NORMAL,
}
# Only what was fit to stand somewhere is replaced there; where it still holds it ranks as it did.
_KNOWN_STATES = (TRUSTED_STATE, REPLACED_STATE)
_AXES = ("similarity", "recency", "importance")
_MICROS_AN_HOUR = 3_600_000_000


class Ranked:
    """A candidate with its tier and score."""

    __slots__ = ("_axes", "_relevance", "_weight", "score", "tier")

    def __init__(self, relevance: Relevance, weight: float, axes: tuple[float, float, float], in_domain: bool) -> None:
        self._relevance = relevance
        self._weight = weight
        self._axes = axes
        self.score = sum(axes)
        self.tier = tier_of(relevance.sketch.kind, relevance.sketch.state, in_domain)

    @property
    def id(self) -> str:
        return self._relevance.sketch.id

    @property
    def is_wide(self) -> bool:
        """Whether it is a decision for every domain, which comes after the domain's own (R10)."""
        return self._relevance.sketch.kind.endswith(".global")

    @property
    def words(self) -> str:
        return self._relevance.sketch.words

    @property
    def why(self) -> dict[str, float]:
        """The share of each axis in the score, and of each signal in the similarity."""
        axes = dict(zip(_AXES, self._axes, strict=True))
        return axes | {name: self._weight * share for name, share in self._relevance.shares.items()}


def tier_of(kind: str, state: str, in_domain: bool) -> int:
    """Where D15 puts a unit: policies first, whatever domain they name, then decisions by their strength.

    A domain's decisions stand so only where it was asked for (R10).
    """
    if state not in _KNOWN_STATES:
        return TIER_HYPOTHESIS
    holds_here = in_domain or kind == "policy" or kind.endswith(".global")
    return _TIERS.get(kind, TIER_FOUND) if holds_here else TIER_FOUND


def ranked(found: Sequence[Relevance], now_micros: int, rules: RecallRules, *, in_domain: bool = False) -> list[Ranked]:
    """Policies, decisions by strength, trusted knowledge, hypotheses (D15, R2); by score inside each; ties by id."""
    best = max((relevance.total for relevance in found), default=0.0) or 1.0
    weight = rules.weight_similarity / best
    half_life_micros = rules.half_life_hours * _MICROS_AN_HOUR
    results = []
    for relevance in found:
        sketch = relevance.sketch
        age = max(0, now_micros - sketch.occurred_at)
        recency = rules.weight_recency * 0.5 ** (age / half_life_micros)
        axes = (weight * relevance.total, recency, rules.weight_importance * sketch.importance)
        results.append(Ranked(relevance, weight, axes, in_domain))
    return sorted(results, key=lambda item: (item.tier, item.is_wide, -item.score, item.id))


def without_question(unit: Unit, now: datetime, rules: RecallRules, *, in_domain: bool = False) -> Recalled:
    """A unit that nobody asked for in words: recency and importance alone."""
    age_hours = max(0.0, (now - unit.occurred_at).total_seconds() / 3600)
    why = {
        "similarity": 0.0,
        "recency": rules.weight_recency * 0.5 ** (age_hours / rules.half_life_hours),
        "importance": rules.weight_importance * unit.importance,
    }
    kind = search_kind(str(unit.kind), unit.domain, unit.attributes)
    tier = tier_of(kind, TRUSTED_STATE if unit.status in TRUSTED else DRAFT_STATE, in_domain)
    return Recalled(unit=unit, score=sum(why.values()), tier=tier, why=why, label=label(unit, contested=False))


def label(unit: Unit, contested: bool) -> str:
    """How far a reader may believe it."""
    return f"[{unit.status.upper()}]" + (" [CONTESTED]" if contested else "")


def withheld_reason(
    unit: Unit, now: datetime, as_of: datetime | None, *, replaced_elsewhere: bool = False
) -> str | None:
    """Why a unit that matches may not be handed out now, or as of an earlier moment; None if it may (R2, R8).

    What was replaced by a commit that the reader's code does not have still holds there.
    """
    if unit.erased_at is not None:
        return "erased"
    if unit.status is Status.ARCHIVED:
        return f"archived: {unit.archive_reason}" if unit.archive_reason else "archived"
    if as_of is None and unit.status is Status.DEPRECATED and not replaced_elsewhere:
        return f"superseded by {unit.superseded_by}"
    # A clock that went back must not hide what was recorded before it did.
    moment = as_of or max(now, unit.recorded_at)
    if moment < unit.occurred_at:
        return f"not yet valid: from {unit.occurred_at.isoformat()}"
    if not replaced_elsewhere and not unit.valid_at(moment):
        return f"superseded by {unit.superseded_by}" if unit.superseded_by else "out of validity"
    return None

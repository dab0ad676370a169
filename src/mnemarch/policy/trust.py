"""How sure a unit is: signals raise or lower it, time lowers it (G14-G18, R7); and what is too worthless to keep."""

from __future__ import annotations

from mnemarch.model.value import replace, value
from mnemarch.policy.kinds import KINDS, kinds_where

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from mnemarch.model.unit import Signal, Trust, Unit

DAYS_PER_MONTH = 30


@value
class TrustRules:
    """The numbers of G15-G17 and R7; every one can be set in the configuration."""

    # Keyed by name: so the settings load without the model of a unit.
    boosts: Mapping[str, float] = {
        "tests_passed": 0.2,
        "pr_merged": 0.3,
        "human_approved": 0.4,
        "repeated_success": 0.15,
        "tests_failed": -0.2,
        "pr_reverted": -0.3,
        "human_rejected": -0.4,
        "contradicted": -0.15,
    }
    decay_per_month: Mapping[str, float] = {"recency_bias": 0.1, "stable": 0.02, "manual_only": 0.0}
    minimum: float = 0.1
    maximum: float = 1.0
    initial_draft: float = 0.3
    initial_verified: float = 0.6


def confidence_at(trust: Trust, moment: datetime, rules: TrustRules) -> float:
    """Confidence at `moment`: multiplicative decay per whole day since the last validation, floored (R7).

    Whole days, so that what was validated today reads exactly as it was stored. A clock that went back gives no gain.
    """
    days = max(0, (moment - (trust.last_validated_at or trust.since)).days)
    factor: float = (1 - rules.decay_per_month[trust.decay_policy]) ** (days / DAYS_PER_MONTH)
    decayed = trust.confidence * factor
    return decayed if days == 0 else max(rules.minimum, min(rules.maximum, decayed))


def signalled(trust: Trust, signal: Signal, moment: datetime, rules: TrustRules) -> Trust:
    """Trust after one more signal (G18), starting from the confidence at that moment, within the bounds."""
    moved = confidence_at(trust, moment, rules) + rules.boosts[signal]
    return replace(
        trust,
        confidence=round(max(rules.minimum, min(rules.maximum, moved)), 6),
        validation_source=signal,
        last_validated_at=moment,
        validation_count=trust.validation_count + 1,
    )


def verified(trust: Trust, moment: datetime, rules: TrustRules) -> Trust:
    """Trust of a unit that becomes verified now: at least what a verified unit starts with (G17)."""
    confidence = max(confidence_at(trust, moment, rules), rules.initial_verified)
    return replace(trust, confidence=confidence, last_validated_at=moment)


def aged(unit: Unit, now: datetime, rules: TrustRules) -> Unit:
    """The unit with its confidence as of now; reading writes nothing (R7)."""
    confidence = confidence_at(unit.trust, now, rules)
    if confidence == unit.trust.confidence:
        return unit
    return replace(unit, trust=replace(unit.trust, confidence=confidence))


# What the nightly job may archive (G24, R13): units that are old and worthless, but never a task's last few


@value
class RetentionRules:
    age_days_max: int = 90
    reward_min: float = 0.3
    success_rate_min: float = 0.5
    keep_per_task_min: int = 5


PRUNED_KINDS = kinds_where(lambda rules: rules.pruned_by is not None)


def prunable(units: Iterable[Unit], now: datetime, rules: RetentionRules) -> tuple[list[Unit], int]:
    """The live units to archive, oldest first, and how many stay.

    `units` are all live units of PRUNED_KINDS; a task keeps at least `keep_per_task_min` of all its episodes.
    """
    by_task: dict[str, list[Unit]] = {}
    total = 0
    for unit in sorted(units, key=lambda unit: (unit.occurred_at, unit.id)):
        by_task.setdefault(_task_of(unit), []).append(unit)
        total += 1
    pruned: list[Unit] = []
    for task, members in by_task.items():
        allowance = len(members) if task == "" else max(0, len(members) - rules.keep_per_task_min)
        pruned += [unit for unit in members if _worthless(unit, rules) and _old(unit, now, rules)][:allowance]
    return pruned, total - len(pruned)


def _task_of(unit: Unit) -> str:
    """The task whose last few units are kept, or "" for a kind that has no minimum."""
    if not KINDS[unit.kind].is_kept_per_task:
        return ""
    return str(unit.attributes.get("task") or unit.attributes.get("task_key") or unit.scope.key)


def _old(unit: Unit, now: datetime, rules: RetentionRules) -> bool:
    return (now - unit.occurred_at).days > rules.age_days_max


def _worthless(unit: Unit, rules: RetentionRules) -> bool:
    attribute = KINDS[unit.kind].pruned_by
    least = {"reward": rules.reward_min, "success_rate": rules.success_rate_min}
    return attribute is not None and _below(unit.attributes.get(attribute), least[attribute])


def _below(number: object, least: float) -> bool:
    """A unit without a number can't be called worthless."""
    return isinstance(number, int | float) and not isinstance(number, bool) and number < least

"""What the nightly job may archive (G24, R13): units that are old and worthless, but never a task's last few."""

from __future__ import annotations

from mnemarch.model.value import value
from mnemarch.policy.kinds import KINDS, kinds_where

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from mnemarch.model.unit import Unit


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

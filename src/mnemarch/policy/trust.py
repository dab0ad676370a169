"""Trust: signals raise or lower a unit's confidence, time lowers it (G14-G18, R7), and its label names it (R2).

Also retention: which old units are pruned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mnemarch.model.stamps import datetime
from mnemarch.model.unit import KEPT_AS, TRUSTED, CitationKind, Kind, Signal, Trust, Unit
from mnemarch.model.value import Frozen, replace
from mnemarch.policy.kinds import KINDS, kinds_where

DAYS_PER_MONTH = 30


class TrustRules(Frozen):
    """The numbers of G15-G17 and R7. Each can be set in the configuration."""

    # Keyed by name, so that the settings load without the model of a unit.
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
    """Confidence at `moment`: multiplicative decay per whole day since the last validation, with a floor (R7).

    Whole days, so that a unit validated today has exactly its stored confidence. A clock that went back raises nothing.
    """
    days = max(0, (moment - (trust.last_validated_at or trust.since)).days)
    factor: float = (1 - rules.decay_per_month[trust.decay_policy]) ** (days / DAYS_PER_MONTH)
    decayed = trust.confidence * factor
    return decayed if days == 0 else max(rules.minimum, min(rules.maximum, decayed))


def signalled(trust: Trust, signal: Signal, moment: datetime, rules: TrustRules) -> Trust:
    """Trust after one more signal (G18), which is added to the confidence at that moment, within the bounds."""
    moved = confidence_at(trust, moment, rules) + rules.boosts[signal]
    return replace(
        trust,
        confidence=round(max(rules.minimum, min(rules.maximum, moved)), 6),
        validation_source=signal,
        last_validated_at=moment,
        validation_count=trust.validation_count + 1,
    )


def verified(trust: Trust, moment: datetime, rules: TrustRules) -> Trust:
    """Trust of a unit that becomes verified now: at least the initial confidence of verified units (G17)."""
    confidence = max(confidence_at(trust, moment, rules), rules.initial_verified)
    return replace(trust, confidence=confidence, last_validated_at=moment)


def aged(unit: Unit, now: datetime, rules: TrustRules) -> Unit:
    """The unit with its confidence as of now. Nothing is written (R7)."""
    confidence = confidence_at(unit.trust, now, rules)
    if confidence == unit.trust.confidence:
        return unit
    return replace(unit, trust=replace(unit.trust, confidence=confidence))


# Retention (G24, R13): the nightly job archives old units of low worth, but never the last few of a task


class RetentionRules(Frozen):
    age_days_max: int = 90
    reward_min: float = 0.3
    success_rate_min: float = 0.5
    keep_per_task_min: int = 5


PRUNED_KINDS = kinds_where(lambda rules: rules.pruned_by is not None)


def prunable(units: Iterable[Unit], now: datetime, rules: RetentionRules) -> tuple[list[Unit], int]:
    """The units to archive, oldest first in each task, and the number of units that stay.

    `units` are all live units of PRUNED_KINDS. A task keeps at least `keep_per_task_min` of its episodes.
    """
    by_task: dict[str, list[Unit]] = {}
    oldest_first = sorted(units, key=lambda unit: (unit.occurred_at, unit.id))
    for unit in oldest_first:
        by_task.setdefault(_task_of(unit), []).append(unit)
    pruned: list[Unit] = []
    for task, members in by_task.items():
        allowance = len(members) if task == "" else max(0, len(members) - rules.keep_per_task_min)
        old = [unit for unit in members if (now - unit.occurred_at).days > rules.age_days_max]
        pruned += [unit for unit in old if _worthless(unit, rules)][:allowance]
    return pruned, len(oldest_first) - len(pruned)


def _task_of(unit: Unit) -> str:
    """The task whose last few units are kept, or "" for a kind without a minimum."""
    if not KINDS[unit.kind].is_kept_per_task:
        return ""
    return str(unit.attributes.get("task") or unit.attributes.get("task_key") or unit.scope.key)


def _worthless(unit: Unit, rules: RetentionRules) -> bool:
    """Whether the unit's reward or success rate is below the minimum of its kind. False if it has no such number."""
    attribute = KINDS[unit.kind].pruned_by or ""
    least = {"reward": rules.reward_min, "success_rate": rules.success_rate_min}
    worth = unit.attributes.get(attribute)
    return isinstance(worth, int | float) and not isinstance(worth, bool) and worth < least[attribute]


# Bounds a test's name in a label: labels take tokens from the content.
_NAME_CHARS_MAX = 24


def label_of(unit: Unit, *, is_contested: bool = False, is_elsewhere: bool = False, here: str = "") -> str:
    """The label of a unit that is handed out.

    `is_contested`: another unit contradicts it. `is_elsewhere`: its test is not in the reader's tree. `here`: a remark
    on the test in that tree, if it was last seen failing there, or expects something else than at the verification.
    """
    if unit.status in TRUSTED:
        words = _verified(unit, is_elsewhere=is_elsewhere) + (f", {here}" if here else "")
    else:
        words = _kept(unit, "changed" if here == "not here" else "fails")
    return f"[{words}]" + (" [CONTESTED]" if is_contested else "")


def head_of(unit: Unit, label: str) -> str:
    """The short form of a label in a context, where labels take tokens from the content.

    It leaves out names of tests and worktrees, dates, commands and numbers: `explain` shows them. It keeps the words
    that change how far a reader may believe the unit.
    """
    words, _, contested = label.removeprefix("[").partition("]")
    word, proof = words.split()[0].rstrip(",:"), unit.proof
    here = words[words.rindex(",") :] if words.endswith((", fails here", ", not here")) else ""
    if contested:
        return f"[CONTESTED] {word.lower()}{here}"
    if unit.kind in (Kind.DECISION, Kind.POLICY) or (proof is not None and proof.person is not None):
        return f"[{words}]"
    if unit.status in TRUSTED and proof is not None:
        if not proof.witnessed:
            return "[REPORTED]"
        if proof.until is not None:
            return f"[{word} once]"
        if here:
            return f"[{word}{here}]"
        elsewhere = " elsewhere" if f" in {proof.worktree}" in words else ""
        return f"[{word}{', flaky' if proof.flaky else elsewhere}]"
    became = words.rpartition(" ")[2]
    return f"[{word}, {became}]" if became in ("fails", "changed") else f"[{word}]"


def _verified(unit: Unit, *, is_elsewhere: bool) -> str:
    status, proof = unit.status.upper(), unit.proof
    if unit.kind is Kind.DECISION and "root" in unit.attributes:
        return f"{unit.attributes['strength'].upper()} v{unit.attributes['version']} {unit.domain}"
    if unit.kind is Kind.POLICY:
        return "POLICY"
    if proof is None:
        return status
    if proof.person is not None:
        return f"{status} by {proof.person}"
    if not proof.witnessed:
        return f"{status}, reported"
    if proof.until is not None:
        return f"{status} until {proof.until:%Y-%m-%d}"
    test = _shown(proof.tests[0])
    where = f" in {proof.worktree}" if is_elsewhere and proof.worktree else ""
    return f"{status} by {test}{where}{', flaky' if proof.flaky else ''}"


def _shown(test: str) -> str:
    """A test's name in a label: its function, with the class of a dotted name. A long name is cut in the middle."""
    from mnemarch.model.testrun import short_name

    last = short_name(test).rpartition(" > ")[2]
    name = ".".join(last.split(".")[-2:]) if "/" not in last else last
    half = _NAME_CHARS_MAX // 2
    return name if len(name) <= _NAME_CHARS_MAX else f"{name[:half]}…{name[1 - half :]}"


def _kept(unit: Unit, became: str) -> str:
    """The label's words for a unit that is not verified. `became` says what its test does now.

    A unit that the program keeps without a verification has a word of its own.
    """
    by, successes = unit.attributes.get("kept_by", ""), unit.attributes.get("successes")
    words = {
        "observed": f"OBSERVED: {by}",
        "accepted": f"ACCEPTED by {by}",
        "imported": "IMPORTED",
        "lesson": f"LESSON from {by}",
    }.get(str(unit.attributes.get(KEPT_AS)))
    if words is not None:
        return words
    if unit.kind is Kind.EPISODE:
        return "EPISODE"
    if unit.kind is Kind.SKILL and isinstance(successes, int):
        return f"SKILL, {successes} successes"
    tests: Sequence[str] = unit.proof.tests if unit.fell_from is not None and unit.proof is not None else ()
    if unit.proof is None and became == "changed":  # Before it ever verified the unit.
        tests = [citation.ref for citation in unit.citations if citation.kind is CitationKind.TEST]
    return f"{unit.status.upper()}: {_shown(tests[0])} {became}" if tests else unit.status.upper()

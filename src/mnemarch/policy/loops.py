"""Loop detection (S2-S6, G19-G21, R9): pure rules over the failed attempts of a task."""

from __future__ import annotations

from collections.abc import Sequence

from mnemarch.lazy import Any
from mnemarch.model.outcome import FailedApproach, Verdict
from mnemarch.model.stamps import datetime
from mnemarch.model.value import Frozen
from mnemarch.text import words

_SHOWN_MAX = 5
# A verdict lists only the newest attempts. Verdicts are stored, and each would repeat the list of the last one.
_LISTED_MAX = 20
_WAS_GONE = "The error is back: it was gone for a while, and a later fix brought it back."
_MAY_HAVE_STAYED = "The error is back, or was never gone: other tests failed in the meantime."


class Attempt(Frozen):
    """One failed attempt: its error, and its approach if known.

    `first` is the event of the first attempt with the same approach, so that rewordings count as one. `is_plan` says
    whether the approach tells what was tried. `tree` is a digest of the working tree. `tests` are the failed tests.
    `summary` is the error without the parts that differ between runs; `line` is the error as reported. `changes` are
    the edits and commands since the previous attempt. `has_passed`: its tests passed since, while other tests failed.
    """

    event_id: str
    at: datetime
    actor: str
    fault: str
    summary: str
    approach: str | None = None
    first: str | None = None
    is_plan: bool = True
    tree: str | None = None
    tests: tuple[str, ...] = ()
    line: str = ""
    changes: tuple[str, ...] = ()
    has_passed: bool = False


class Judgement(Frozen):
    """A verdict without its receipt."""

    type: Verdict
    reason: str
    details: dict[str, Any]
    instruction: str


def judged(history: Sequence[Attempt], new: Attempt, stuck: str | None, threshold: int) -> Judgement:
    """The verdict on a new failure, given the earlier ones. Those that have passed since can only warn."""
    earlier = [attempt for attempt in history if not attempt.has_passed or _is_same(attempt, new)]
    same = [attempt for attempt in earlier if _is_same(attempt, new)]
    tries = [attempt for attempt in earlier if not attempt.has_passed and _repeats(attempt, new)]
    between, back = _since_last(history, new)
    details = {
        "error_hash": new.fault,
        "error": new.summary,
        "line": new.line,
        "count": len(same) + 1,
        "approach_count": len(tries) + 1 if new.approach is not None else 0,
        "threshold": threshold,
        "between": [attempt.summary for attempt in between[-_LISTED_MAX:]],
        "evidence": [attempt.event_id for attempt in earlier if _is_evidence(attempt, new)][-_LISTED_MAX:],
    }
    counted = 1 + sum(not attempt.has_passed for attempt in same)
    verdict, reason = _ruled(counted, len(tries) + 1, back, stuck, threshold, is_plan=new.is_plan)
    failed = failed_approaches([*earlier, new])
    return Judgement(verdict, reason, details, _instruction(verdict, reason, new, failed))


def same_attempt(earlier: Sequence[Attempt], new: Attempt) -> Attempt | None:
    """The earlier attempt with the same error, tree and approach (R9), or None if this failure is a new attempt.

    A return to an earlier tree or to an earlier approach is a new attempt.
    """
    changed = [at for at, attempt in enumerate(earlier) if attempt.tree not in {None, new.tree}]
    since = earlier[changed[-1] + 1 :] if changed else earlier
    alike = [attempt for attempt in since if attempt.fault == new.fault and attempt.tree == new.tree]
    if new.tree is None or not alike:
        return None
    if new.approach is None:
        return alike[-1]
    # An earlier report without an approach may be the same attempt, which is reported in full now.
    last = alike[-1]
    return last if last.approach is None or last.first == new.first else None


def _repeats(attempt: Attempt, new: Attempt) -> bool:
    """Whether both attempts have the same plan. "Run the tests again" or a long thought is no plan."""
    return new.first is not None and attempt.first == new.first and attempt.is_plan and new.is_plan


def _ruled(count: int, tries: int, back: str, stuck: str | None, limit: int, *, is_plan: bool) -> tuple[Verdict, str]:
    if stuck is not None:
        return Verdict.BLOCK, f"The task is stuck: {quoted(stuck)}. A person has to clear it."
    # Without a plan, each attempt may have tried something new, so the limit is higher.
    if count >= (limit if is_plan else 2 * limit + 1):
        return Verdict.BLOCK, f"Circular fix detected: Same error occurred {count} times. Stop and ask human."
    if tries >= limit:
        return Verdict.BLOCK, f"Circular fix detected: Same approach failed {tries} times. Stop and ask human."
    if back:
        return Verdict.WARN, back
    if count >= limit:
        return Verdict.WARN, f"Same error occurred {count} times, whatever was tried."
    if tries > 1:
        return Verdict.WARN, "This approach already failed."
    return Verdict.ALLOW, ""


def _is_same(attempt: Attempt, new: Attempt) -> bool:
    """Whether an earlier failure is this error again. One whose tests passed since must have been of the same tests."""
    return attempt.fault == new.fault and (not attempt.has_passed or _share_tests(attempt, new))


def _since_last(history: Sequence[Attempt], new: Attempt) -> tuple[list[Attempt], str]:
    """The failures since this error was last seen, and what they say. If there are any, it has returned (A, B, A)."""
    at = max((number for number, attempt in enumerate(history) if _is_same(attempt, new)), default=len(history))
    others = list(history[at + 1 :])
    if others and history[at].has_passed:
        # If nothing changed since the last failure, a test is flaky.
        return (others, _WAS_GONE) if new.tree is None or others[-1].tree != new.tree else ([], "")
    others = [other for other in others if _follows_a_change(other, history[at])]
    if not others:
        return [], ""
    # If only other tests failed, those of the error may not have run.
    was_gone = any(not (one.tests and new.tests) or _share_tests(one, new) for one in others)
    return others, _WAS_GONE if was_gone else _MAY_HAVE_STAYED


def _follows_a_change(other: Attempt, last: Attempt) -> bool:
    return other.tree is None or other.tree != last.tree or other.approach is not None


def _share_tests(one: Attempt, other: Attempt) -> bool:
    return not set(one.tests).isdisjoint(other.tests)


def _is_evidence(attempt: Attempt, new: Attempt) -> bool:
    return attempt.fault == new.fault or _repeats(attempt, new)


def failed_approaches(attempts: Sequence[Attempt]) -> list[FailedApproach]:
    """The failed approaches in the order of their first attempts. Rewordings of an approach count as one.

    For an attempt without an approach, the changes since the previous attempt stand for it.
    """
    groups: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        if attempt.approach is not None:
            groups.setdefault(attempt.first or attempt.event_id, []).append(attempt)
        elif attempt.changes:
            groups.setdefault("\n".join(attempt.changes), []).append(attempt)
    return [
        FailedApproach(
            approach=tries[-1].approach or ", ".join(tries[-1].changes),
            attempt_count=len(tries),
            last_attempt_at=tries[-1].at,
            failure_reasons=tuple({attempt.fault: attempt.line or attempt.summary for attempt in tries}.values()),
        )
        for tries in groups.values()
    ]


def _instruction(verdict: Verdict, reason: str, new: Attempt, failed: Sequence[FailedApproach]) -> str:
    """The instruction for the agent (S6). Texts of others are quoted and cut: they are data, not instructions."""
    if verdict is Verdict.ALLOW:
        return ""
    sign = "STOP" if verdict is Verdict.BLOCK else "CAREFUL"
    lines = [f"{sign}. {reason}", f"The error: {quoted(new.line or new.summary)}"]
    if failed:
        lines.append("Already tried here, and failed:")
        lines += [f"- {quoted(item.approach)} ({_times(item.attempt_count)})" for item in failed[-_SHOWN_MAX:]]
    if verdict is Verdict.BLOCK:
        lines.append(
            "The same way will not work. Don't try it again. Find another strategy from the cause of the error."
            " Or stop here and ask a person: say what you tried and what happened."
        )
    else:
        lines.append("Before you change anything, say what is different this time. Otherwise choose another approach.")
    return "\n".join(lines)


def quoted(text: str) -> str:
    """The text on one line, in quotes that the text itself can't close."""
    line = words.in_a_line(text.replace('"', "'"))
    return f'"{line}"'


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"

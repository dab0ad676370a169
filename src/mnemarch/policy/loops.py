"""When a task goes in circles (S2-S6, G19-G21, R9). Pure rules over the attempts that failed so far."""

from __future__ import annotations

from datetime import datetime

from mnemarch.model.outcome import FailedApproach, Verdict
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_SHOWN_CHARS = 160
_SHOWN_MAX = 5
# A verdict lists only the newest: verdicts are stored, and each would repeat the list of the one before.
_LISTED_MAX = 20


@value
class Attempt:
    """One failed attempt: its error, and what was tried, if known.

    `first` is the event of the first attempt with the same approach, so that rewordings count as one.
    """

    event_id: str
    at: datetime
    actor: str
    fault: str
    summary: str
    approach: str | None = None
    first: str | None = None


@value
class Judgement:
    """A verdict without its receipt."""

    type: Verdict
    reason: str
    details: dict[str, Any]
    instruction: str


def judged(earlier: Sequence[Attempt], new: Attempt, stuck: str | None, threshold: int) -> Judgement:
    """The verdict on one more failure after the earlier ones."""
    same = [attempt for attempt in earlier if attempt.fault == new.fault]
    tries = [attempt for attempt in earlier if new.first is not None and attempt.first == new.first]
    between = _since_last(earlier, same)
    details = {
        "error_hash": new.fault,
        "error": new.summary,
        "count": len(same) + 1,
        "approach_count": len(tries) + 1 if new.approach is not None else 0,
        "threshold": threshold,
        "between": [attempt.summary for attempt in between[-_LISTED_MAX:]],
        "evidence": [attempt.event_id for attempt in earlier if _is_evidence(attempt, new)][-_LISTED_MAX:],
    }
    verdict, reason = _ruled(len(same) + 1, len(tries) + 1, between, stuck, threshold)
    failed = failed_approaches([*earlier, new])
    return Judgement(verdict, reason, details, _instruction(verdict, reason, new, failed))


def _ruled(
    count: int, tries: int, between: Sequence[Attempt], stuck: str | None, threshold: int
) -> tuple[Verdict, str]:
    if stuck is not None:
        return Verdict.BLOCK, f"The task is stuck: {quoted(stuck)}. A person has to clear it."
    if count >= threshold:
        return Verdict.BLOCK, f"Circular fix detected: Same error occurred {count} times. Stop and ask human."
    if tries >= threshold:
        return Verdict.BLOCK, f"Circular fix detected: Same approach failed {tries} times. Stop and ask human."
    if between:
        return (
            Verdict.WARN,
            "The error is back: it was gone for a while, and the fix that took its place brought it back.",
        )
    if tries > 1:
        return Verdict.WARN, "This approach already failed."
    return Verdict.ALLOW, ""


def _since_last(earlier: Sequence[Attempt], same: Sequence[Attempt]) -> list[Attempt]:
    """Other failures since this error was last seen: any of them makes this a return (A, B, A)."""
    if not same:
        return []
    last = max(number for number, attempt in enumerate(earlier) if attempt.fault == same[-1].fault)
    return list(earlier[last + 1 :])


def _is_evidence(attempt: Attempt, new: Attempt) -> bool:
    return attempt.fault == new.fault or (new.first is not None and attempt.first == new.first)


def failed_approaches(attempts: Sequence[Attempt]) -> list[FailedApproach]:
    """The approaches that failed, each once whatever its wording, in the order of their first attempts."""
    groups: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        if attempt.approach is not None:
            groups.setdefault(attempt.first or attempt.event_id, []).append(attempt)
    return [
        FailedApproach(
            approach=tries[-1].approach or "",
            attempt_count=len(tries),
            last_attempt_at=tries[-1].at,
            failure_reasons=tuple(dict.fromkeys(attempt.summary for attempt in tries)),
        )
        for tries in groups.values()
    ]


def _instruction(verdict: Verdict, reason: str, new: Attempt, failed: Sequence[FailedApproach]) -> str:
    """The instruction for the agent (S6). What others wrote is quoted and cut: it is data, never an instruction."""
    if verdict is Verdict.ALLOW:
        return ""
    lines = [f"{'STOP' if verdict is Verdict.BLOCK else 'CAREFUL'}. {reason}", f"The error: {quoted(new.summary)}"]
    if failed:
        lines.append("Already tried here, and failed:")
        lines += [f"- {quoted(item.approach)} ({_times(item.attempt_count)})" for item in failed[-_SHOWN_MAX:]]
    if verdict is Verdict.BLOCK:
        lines.append(
            "The same way will not work. Do not try any of it again. Find another strategy from the cause of the error,"
            " or stop here and ask a person, saying what was tried and what came of it."
        )
    else:
        lines.append("Before you change anything, say what will be different this time; otherwise choose another way.")
    return "\n".join(lines)


def quoted(text: str) -> str:
    """A text on one line, between quotes that it can't close."""
    shown = "".join(character if character.isprintable() else " " for character in text.replace('"', "'"))
    line = " ".join(shown.split())
    cut = line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"
    return f'"{cut}"'


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"

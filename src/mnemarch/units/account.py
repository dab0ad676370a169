"""The text of an episode: what was seen of a task. What somebody only thought is marked as such (G9, R14). Pure."""

from __future__ import annotations

from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mnemarch.units.analysis import LoggedStep

# Kinds of log entries that say what the task is. Any other kind says what somebody did, saw or thought in it.
_TASK_KINDS = frozenset({"task", "goal", "plan", "prompt", "user", "request", "instruction", "issue", "todo"})
_CHARS_MAX = 4_000
_TESTS_MAX = 5
_APPROACHES_MAX = 3


@value
class Account:
    """What is known of a task when it is verified."""

    name: str
    passed: bool
    success: bool
    steps: Sequence[LoggedStep]
    failed_approaches: Sequence[str]
    tests: Sequence[str]
    commit: str | None
    critique: str
    is_own_critique: bool


def task_described(steps: Sequence[LoggedStep]) -> str | None:
    """What the task is (G9): a description given with an entry, else the first entry of a kind that describes it."""
    for step in steps:
        described = step.data.get("task_description") or step.data.get("taskDescription")
        if described:
            return str(described)
    return next((step.text for step in steps if step.kind.lower() in _TASK_KINDS and step.text.strip()), None)


def text_of(account: Account) -> str:
    """The account in sentences, each of which is true if the log is."""
    described = task_described(account.steps)
    task = f"{account.name} (“{cut(described)}”)" if described else account.name
    lines = [f"{task} {'succeeded' if account.success else 'failed'}."]
    if account.tests:
        lines.append(_tested(account))
    if account.commit:
        lines.append(f"At commit {account.commit}.")
    if account.failed_approaches:
        quoted = [f"“{approach}”" for approach in dict.fromkeys(account.failed_approaches)]
        lines.append(f"Tried, and failed: {_listed(quoted, _APPROACHES_MAX)}.")
    if account.critique:
        lines.append(f"{'Its own critique, not verified: ' if account.is_own_critique else ''}{account.critique}")
    first = account.steps[0] if account.steps and not described else None
    if first is not None and first.text.strip():
        lines.append(f"Logged first, as {first.kind or 'a note'} and not verified: “{cut(first.text)}”.")
    return "\n".join(lines)


def _tested(account: Account) -> str:
    """The tests by name, but only their number if nothing else is known: recall would find it by their names."""
    outcome = "passed" if account.passed else "failed"
    if account.steps or account.failed_approaches or account.critique:
        return f"{outcome.capitalize()}: {_listed(account.tests, _TESTS_MAX)}."
    return f"{len(account.tests)} test{'' if len(account.tests) == 1 else 's'} {outcome}."


def cut(text: str) -> str:
    """The beginning of a long text; the whole is in the log that the episode cites."""
    return text if len(text) <= _CHARS_MAX else f"{text[:_CHARS_MAX]} … ({len(text)} characters in all)"


def _listed(items: Sequence[str], shown_max: int) -> str:
    shown = ", ".join(items[:shown_max])
    return shown if len(items) <= shown_max else f"{shown} and {len(items) - shown_max} more"

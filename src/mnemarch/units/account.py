"""What a task's log tells: its account in sentences, and the faults that it met."""

from __future__ import annotations

from mnemarch.model.event import EventType
from mnemarch.model.outcome import CALLER
from mnemarch.model.value import value
from mnemarch.text.cache import cached
from mnemarch.units.analysis import TROUBLE, logged_step, task_described

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from mnemarch.model.event import Event
    from mnemarch.units.analysis import LoggedStep

# So much an episode keeps of each list, the newest, and so many characters of each item.
KEPT_MAX = 30
KEPT_CHARS_MAX = 300
_THEN_MAX = 3
# Of a command line: what only goes somewhere or sets something, and what may stand in a name.
_GOING = frozenset({"cd", "source", "export", "set", "sudo", "."})
_IN_NAMES = str.maketrans("", "", "-_./")
_HEAD_WORDS_MAX = 3
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
    faults: Sequence[Mapping[str, Any]]
    failed_approaches: Sequence[str]
    approach: str | None
    tests: Sequence[str]
    commit: str | None
    critique: str
    analyst: str


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
    if account.faults and not account.critique:
        which = "Its error" if len(account.faults) == 1 else f"The last of {len(account.faults)} errors"
        lines.append(f"{which}: “{account.faults[-1]['line']}”.")
    if account.approach and account.faults:
        lines.append(f"What worked, as it was said: “{account.approach}”.")
    if account.critique:
        lines.append(f"{'Its own critique, not verified: ' if account.analyst == CALLER else ''}{account.critique}")
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


# Faults: what each is known by, what failed, and what worked again after it


def named(step: LoggedStep, field: str, kind: str) -> object:
    """What an entry names in a field of its data; one of this kind, without data, names it by its text."""
    return step.data.get(field) or (step.text if step.kind.lower() == kind and not step.data else None)


def faults_of(staged: Iterable[Event], worked: str = "") -> list[dict[str, Any]]:
    """The newest errors of a task in order: by what each is known again, how it was told, and what was tried.

    `command` is what failed, `next` what was run and worked after it, `then` the commands up to the one of the same
    program that worked again. `worked` is the test command that works now: what its earlier runs saw failing failed in
    it, whether or not anybody logged that it was run.
    """
    faults: dict[str, dict[str, Any]] = {}
    failing = ""
    waiting: list[tuple[dict[str, Any], list[str]]] = []
    for event in staged:
        if event.body is None:
            continue
        if event.type is EventType.ATTEMPT_FAILED and (payload := event.payload):
            fault: dict[str, Any] = dict(_fault(payload["error"], payload["fingerprint"], payload.get("line")))
            if payload["approach"]:
                fault["approach"] = payload["approach"][:KEPT_CHARS_MAX]
            if failed := failing or (worked if payload.get("tests") else ""):
                fault["command"] = failed
                waiting.append((fault, []))
            # One that tells an earlier one in full takes its place.
            faults[payload.get("tells") or event.id] = fault
        elif event.type is EventType.LOGGED:
            step = logged_step(event.body)
            if step.kind.lower() in TROUBLE:
                fault = dict(_fault(step.text))
                if all(known["key"] != fault["key"] for known in faults.values()):
                    faults[event.id] = fault
            elif command := named(step, "command", "command"):
                failing = _noted(str(command)[:KEPT_CHARS_MAX], bool(step.data.get("exit")), waiting)
    if worked:
        _noted(worked[:KEPT_CHARS_MAX], False, waiting)
    return list(faults.values())[-KEPT_MAX:]


def _noted(command: str, failed: bool, waiting: list[tuple[dict[str, Any], list[str]]]) -> str:
    """Count a command for the faults before it, which it ends if it works where theirs failed; gives one that fails."""
    for fault, since in list(waiting):
        if not failed:
            since.append(command)
            fault.setdefault("next", command)
            if command_head(command) == command_head(fault["command"]):
                fault["then"] = since[-_THEN_MAX:]
                waiting.remove((fault, since))
    return command if failed else ""


def command_head(command: str) -> str:
    """The program that a command line runs, with its subcommands; not where it goes first, nor what it is given."""
    parts = [part.split() for part in command.replace(";", "&&").split("&&")]
    words = next((part for part in parts if part and part[0] not in _GOING), [])
    words = words[next((at for at, word in enumerate(words) if "=" not in word), 0) :]
    plain: list[str] = []
    for word in words[:_HEAD_WORDS_MAX]:
        is_plain = word == "-m" or word.translate(_IN_NAMES).isalnum()
        if not is_plain or (word.startswith("-") and word != "-m"):
            break
        plain.append(word)
    return " ".join(plain)


def _fault(error: str, fingerprint: Mapping[str, Any] | None = None, line: str | None = None) -> dict[str, str]:
    """The fault that an error tells, and how; what is known of it already is not read again."""
    from mnemarch.text.fingerprint import FINGERPRINT_VERSION

    if fingerprint is None or line is None or fingerprint["version"] != FINGERPRINT_VERSION:
        return _read_error(error)
    return {"key": fingerprint["hash"], "line": line}


@cached(1_024)
def _read_error(error: str) -> dict[str, str]:
    from mnemarch.text.fingerprint import fingerprint, telling_line

    return {"key": fingerprint(error).hash, "line": telling_line(error)[:KEPT_CHARS_MAX]}

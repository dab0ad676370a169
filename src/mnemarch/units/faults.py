"""The faults that a task met, read from its log: what each is known by, what failed, and what worked again after it."""

from __future__ import annotations

from mnemarch.model.event import EventType
from mnemarch.text.cache import cached
from mnemarch.units.analysis import TROUBLE, logged_step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
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

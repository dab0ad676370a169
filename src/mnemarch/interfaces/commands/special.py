"""Commands that do more than their verb: they ask first, take more options, or show something else."""

from __future__ import annotations

import os
import sys

from mnemarch.errors import InvalidInput, MnemarchError, NotFound
from mnemarch.interfaces import show
from mnemarch.interfaces.command import REFUSED, Answer
from mnemarch.interfaces.derived import answered, exit_code_of, performed, text_of
from mnemarch.interfaces.json_form import to_json
from mnemarch.interfaces.place import at_terminal
from mnemarch.verbs.types import FLAG, WORDS, Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mnemarch.interfaces.command import Call
    from mnemarch.verbs.types import Verb

MORE_OPTIONS = {
    "seat.erase": (Parameter("yes", FLAG, "don't ask; needed where nobody is at a terminal", False),),
    "decisions.impact": (Parameter("format", WORDS, "tree (default), mermaid, dot or json", "tree", metavar="FORMAT"),),
}


def _shaped(verb: Verb, call: Call, data: Any, exit_code: int = 0) -> Answer:
    return Answer(data, lambda: text_of(verb.name, data, call, verb.gives), exit_code)


def _attempts(verb: Verb, call: Call) -> Answer:
    answer = answered(verb, call)
    data = {"stuck": call.seat.loops.stuck_reason(), "failed": answer.data}
    return Answer(data, lambda: text_of(verb.name, data, call), aside=answer.aside)


def _adopt(verb: Verb, call: Call) -> Answer:
    """What was merged of a worktree that git does not know has to be said."""
    from mnemarch.code.codebase import Codebase

    name, root = call.options.worktree or call.seat.scope.worktree, call.seat.presence.root
    known = sorted(Codebase(root).worktrees()) if root is not None and call.options.commit is None else []
    if name is not None and known and name not in known:
        raise NotFound(
            f"There is no worktree {name!r} in this repository.",
            hint=f"There are: {', '.join(known)}. If it was removed, say what was merged: --commit HASH.",
        )
    return answered(verb, call)


def _units(verb: Verb, call: Call) -> Answer:
    if call.options.after is not None:
        call.seat.get(call.options.after)  # After what is not there would be the first page, again and again.
    return answered(verb, call)


def _validate(verb: Verb, call: Call) -> Answer:
    return _shaped(verb, call, {"unit_id": call.options.unit_id, "confidence": performed(verb, call)})


def _erase(verb: Verb, call: Call) -> Answer:
    if call.options.yes or _confirmed(call):
        return answered(verb, call)
    return Answer({"units": [], "events": 0}, lambda: "Nothing was erased.", REFUSED)


def _confirmed(call: Call) -> bool:
    if not at_terminal(sys.stdin):
        raise InvalidInput(
            "Erasing can't be undone, and nobody is at a terminal to confirm it.", hint="Add --yes if it is meant."
        )
    try:
        meant = show.unit_line(call.seat.get(call.options.unit_id), "unit")
    except NotFound:
        meant = f"the entry of the log {call.options.unit_id}"
    sys.stderr.write(f"{meant}\nErase it for good? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _doctor(verb: Verb, call: Call) -> Answer:
    """The doctor's findings; a memory that can't even be opened is one, and one that is not there is none."""
    from mnemarch.interfaces.empty_scope_hint import empty_scope_hint
    from mnemarch.model.outcome import Finding

    try:
        findings = performed(verb, call)
        # A scope without units is no fault of the memory, so it fails nothing.
        findings += [Finding(ok=True, what=note) for note in empty_scope_hint(call)]
    except NotFound:
        raise
    except MnemarchError as error:
        findings = [Finding(ok=False, what=error.message, hint=error.hint_for("command line"))]
    return _shaped(verb, call, findings, exit_code_of(findings))


def _rebuild(verb: Verb, call: Call) -> Answer:
    rebuild = performed(verb, call)
    with show.Counter("auditing", "events") as progress:
        check = call.memory.audit(progress)
    return _shaped(verb, call, {**to_json(rebuild), "audit": check}, exit_code_of([rebuild, check]))


def _reindex(verb: Verb, call: Call) -> Answer:
    return _shaped(verb, call, {"documents": performed(verb, call)})


def _export(verb: Verb, call: Call) -> Answer:
    path = call.options.path
    if path != "-":
        events = performed(verb, call)
        return _shaped(verb, call, {"path": os.path.abspath(path), "events": events})
    if call.places.json:
        raise InvalidInput("The export and --json both want standard output.", hint="Name a file, or leave --json out.")
    from shutil import copyfileobj
    from tempfile import TemporaryDirectory

    # Whole or not at all: nothing is written there before it is complete.
    with TemporaryDirectory(prefix="mnemarch-") as folder:
        call.given["path"] = os.path.join(folder, "log.jsonl")
        events = performed(verb, call)
        with open(call.given["path"], "rb") as file:
            sys.stdout.flush()
            copyfileobj(file, sys.stdout.buffer)
    return Answer(None, lambda: "", aside=lambda: f"exported  {events:,} events")


def _import(verb: Verb, call: Call) -> Answer:
    path = call.options.path
    try:
        with open(path, "rb"):  # Before a memory is made for it.
            pass
    except OSError as error:
        raise InvalidInput(
            f"{path!r} can't be read: {error.strerror}.", hint="Give a file that export wrote."
        ) from None
    return answered(verb, call)


def _backup(verb: Verb, call: Call) -> Answer:
    path = call.options.path
    if path == "-":
        raise InvalidInput("A backup is a database, and no stream.", hint="Name a file, or use: mnemarch export -")
    performed(verb, call)
    return _shaped(verb, call, {"path": os.path.abspath(path), "bytes": os.path.getsize(path)})


def _relate(verb: Verb, call: Call) -> Answer:
    performed(verb, call)
    return _shaped(verb, call, call.seat.decisions.relations(call.options.source_id))


def _impact(verb: Verb, call: Call) -> Answer:
    from mnemarch.interfaces.decision_text import FORMATS

    if call.options.format not in FORMATS:
        raise InvalidInput(f"There is no format {call.options.format!r}.", hint=f"Use one of: {', '.join(FORMATS)}.")
    return answered(verb, call)


RUNS = {
    "seat.failed_approaches": _attempts,
    "seat.adopt": _adopt,
    "seat.units": _units,
    "seat.validate": _validate,
    "seat.erase": _erase,
    "memory.doctor": _doctor,
    "memory.rebuild": _rebuild,
    "memory.reindex": _reindex,
    "memory.export": _export,
    "memory.import_": _import,
    "memory.backup": _backup,
    "decisions.relate": _relate,
    "decisions.unrelate": _relate,
    "decisions.impact": _impact,
}

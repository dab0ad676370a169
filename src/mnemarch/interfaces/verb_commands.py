"""Makes a command from each verb. Some commands do more than their verb: they ask, check or reshape the answer."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext, redirect_stdout

from mnemarch.errors import InvalidInput, MnemarchError, NotFound
from mnemarch.interfaces.command import DONE, REFUSED, STORE_TROUBLE, Answer, Call, Command
from mnemarch.lazy import loaded
from mnemarch.model.value import replace
from mnemarch.verbs.types import DURATION, FLAG, PROGRESS, SEAT, Parameter, Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


# Verbs that create a missing memory. Other verbs report that there is none.
_BEGIN_MEMORY = {
    *("seat.log", "seat.log_many", "seat.remember", "seat.remember_many", "seat.verify", "seat.fail"),
    *("seat.mark_stuck", "seat.clear_stuck", "decisions.add_evidence", "decisions.add_policy", "memory.import_"),
    *("seat.import_claims", "seat.ingest", "seat.ingest_many", "seat.ingest_file"),
    *("core.core_memory_append", "core.call"),
}
# Verbs that hooks call in every repository. Without a memory, they are answered as from an empty one.
_ASKED_BY_HOOKS = {"seat.recall", "seat.context", "seat.validate_approach", "seat.failed_approaches", "core.compiled"}
# A reading verb that still needs a confirmed actor; and a verb that only reads despite its profile.
_FOR_PEOPLE, _LOOKS_ON = {"seat.inbox"}, {"memory.doctor"}
# The module with the text for a verb, by the verb's owner, name or return annotation. The default is `text`.
_WORDS = {"decisions": "decide", "core": "work_text", "episodes": "work_text", "rules": "rules", "memory": "operate"}
_WORDS |= dict.fromkeys(("list[Event]", "Overview", "Explanation | Dispute | Event"), "work_text")
_WORDS |= dict.fromkeys(("Promotion", "ApproachValidation", "LoopVerdict", "Ingested", "list[Ingested]"), "work_text")
_WORDS |= dict.fromkeys(("list[FailedApproach]", "seat.mark_stuck", "seat.clear_stuck"), "work_text")
_WORDS |= dict.fromkeys(("Erased", "Undone", "Reflected", "ImportedClaims"), "operate")
_EXIT_CODES: dict[str, Callable[[Any], int]] = {
    "Refused": lambda _: REFUSED,
    "ApproachValidation": lambda validation: DONE if validation.valid else REFUSED,
    "LoopVerdict": lambda verdict: REFUSED if verdict.type == "BLOCK" else DONE,
    "Promotion": lambda judged: REFUSED if judged.run and not judged.run.passed else exit_code_of(judged.loop),
    "LogCheck": lambda check: DONE if check.ok else STORE_TROUBLE,
    "ReceiptCheck": lambda check: DONE if check.ok else STORE_TROUBLE,
    "Rebuild": lambda rebuild: DONE if rebuild.same else STORE_TROUBLE,
    "Finding": lambda finding: DONE if finding.ok else STORE_TROUBLE,
    "Maintained": lambda night: DONE if night.ok else STORE_TROUBLE,
}
_MORE_OPTIONS = {
    "seat.events": (Parameter("follow", FLAG, "go on with what comes next, until Ctrl-C", False),),
    **dict.fromkeys(
        ("seat.erase", "seat.undo"), (Parameter("yes", FLAG, "don't ask; needed where nobody is at a terminal", False),)
    ),
    "memory.maintain": (Parameter("every", DURATION, "do it again so often (6h, 30m, 1d), until Ctrl-C", None),),
}


def exit_code_of(result: Any) -> int:
    """The exit code for a result; for several results the highest."""
    if isinstance(result, list | tuple):
        return max(map(exit_code_of, result), default=DONE)
    code = _EXIT_CODES.get(type(result).__name__)
    return DONE if code is None else code(result)


def command_for(verb: Verb) -> Command:
    """The command of a verb."""
    takes = tuple(parameter for parameter in verb.takes if parameter.offered and parameter.type.read is not None)
    takes += _MORE_OPTIONS.get(verb.name, ())

    def run(call: Call) -> Answer:
        return _RUNS.get(verb.name, answered)(verb, call)

    begins, reads = verb.name in _BEGIN_MEMORY, verb.profile == "read" and verb.name not in _FOR_PEOPLE
    return Command(run, takes, begins, reads or verb.name in _LOOKS_ON)


def bound(verb: Verb, place: Any, arguments: Mapping[str, Any]) -> Callable[..., Any]:
    """The verb as a function, bound to the place's memory or seat and to those arguments that it takes."""
    owner, _, name = verb.name.partition(".")
    mine = {parameter.name: arguments[parameter.name] for parameter in verb.takes if parameter.name in arguments}
    mine |= {parameter.name: place.seat for parameter in verb.takes if parameter.type is SEAT}
    target = place.memory if owner == "memory" else place.seat if owner == "seat" else getattr(place.seat, owner)
    return lambda **more: getattr(target, name)(**mine, **more)


def performed(verb: Verb, call: Call) -> Any:
    """Run the verb with the call's arguments, with a progress counter if it takes one."""
    act = bound(verb, call, call.arguments)
    counting = next((parameter.says for parameter in verb.takes if parameter.type is PROGRESS), None)
    if counting is None:
        return act()
    from mnemarch.interfaces.text import Counter

    with Counter(*(counting or "working steps").rsplit(" ", 1)) as progress:
        return act(progress=progress)


def answered(verb: Verb, call: Call) -> Answer:
    """Run the verb and make its answer."""
    nothing_here = call.answer_from_nothing() if verb.name in _ASKED_BY_HOOKS else ""
    # With --json, output during the work (of tests, for example) goes to stderr.
    with redirect_stdout(sys.stderr) if call.places.json else nullcontext():
        result = performed(verb, call)
    if verb.gives in {"Found", "Pack"}:
        result = _with_notes(result, call, nothing_here)

    def aside() -> str:
        return text_of(f"about {verb.gives}", result, call) if verb.gives in {"Found", "Pack"} else nothing_here

    return Answer(result, lambda: text_of(verb.name, result, call, verb.gives), exit_code_of(result), aside)


def _with_notes(result: Any, call: Call, nothing_here: str) -> Any:
    """Add a note to an empty result if there is no memory, or if it has only other projects."""
    if result.items or result.withheld or result.binding:
        return result
    return replace(result, notes=(*result.notes, *([nothing_here] if nothing_here else call.empty_scope_hint())))


def text_of(name: str, result: Any, call: Call, gives: str = "") -> str:
    """The text of a result for people: by its verb, else by its type, else field by field."""
    owner = name.partition(".")[0]
    module = _WORDS.get(owner) or _WORDS.get(gives) or _WORDS.get(name) or "text"
    texts: Mapping[str, Callable[[Any, Call], str]] = loaded(f"mnemarch.interfaces.{module}").TEXTS
    drawn = texts.get(name) or texts.get(gives)
    if drawn is not None:
        return drawn(result, call)
    from mnemarch.interfaces.text import fields
    from mnemarch.verbs.wire import to_json

    form = to_json(result)
    return fields(form.items() if isinstance(form, dict) else [(name, form)])


# Commands that do more than their verb


def _shaped(verb: Verb, call: Call, data: Any, exit_code: int = 0) -> Answer:
    return Answer(data, lambda: text_of(verb.name, data, call, verb.gives), exit_code)


def _attempts(verb: Verb, call: Call) -> Answer:
    answer = answered(verb, call)
    data = {"stuck": call.seat.loops.stuck_reason(), "failed": answer.data}
    return Answer(data, lambda: text_of(verb.name, data, call, verb.gives), aside=answer.aside)


def _units(verb: Verb, call: Call) -> Answer:
    if call.options.after is not None:
        call.seat.get(call.options.after)  # Raises for an unknown unit, which would give the first page again.
    return answered(verb, call)


def _validate(verb: Verb, call: Call) -> Answer:
    return _shaped(verb, call, {"unit_id": call.options.unit_id, "confidence": performed(verb, call)})


def _explain(verb: Verb, call: Call) -> Answer:
    """Explain a unit, or the outcome of an ingested log entry."""
    try:
        return answered(verb, call)
    except NotFound as missing:
        try:
            ingested = call.seat.ingested(call.options.unit_id)
        except NotFound:
            raise missing from None
    return Answer(ingested, lambda: text_of("seat.ingested", ingested, call, "Ingested"))


def _doctor(verb: Verb, call: Call) -> Answer:
    """The doctor's findings. A memory that can't be opened is a finding; a missing memory is an error."""
    from mnemarch.model.outcome import Finding

    try:
        findings = performed(verb, call)
        # A scope without units is no fault of the memory, so the note is not a failure.
        findings += [Finding(ok=True, what=note) for note in call.empty_scope_hint()]
        from mnemarch.interfaces.install import commands as install

        findings += install.findings(call)
    except NotFound:
        raise
    except MnemarchError as error:
        findings = [Finding(ok=False, what=error.message, hint=error.hint_for("command line"))]
    return _shaped(verb, call, findings, exit_code_of(findings))


def _rebuild(verb: Verb, call: Call) -> Answer:
    from mnemarch.interfaces.text import Counter
    from mnemarch.verbs.wire import to_json

    rebuild = performed(verb, call)
    with Counter("auditing", "events") as progress:
        check = call.memory.audit(progress=progress)
    return _shaped(verb, call, {**to_json(rebuild), "audit": check}, exit_code_of([rebuild, check]))


def _export(verb: Verb, call: Call) -> Answer:
    path = call.options.path
    if path != "-":
        events = performed(verb, call)
        return _shaped(verb, call, {"path": os.path.abspath(path), "events": events})
    if call.places.json:
        raise InvalidInput("The export and --json both want standard output.", hint="Name a file, or leave --json out.")
    from shutil import copyfileobj
    from tempfile import TemporaryDirectory

    # The export is written to stdout only when it is complete.
    with TemporaryDirectory(prefix="mnemarch-") as folder:
        call.arguments["path"] = os.path.join(folder, "log.jsonl")
        events = performed(verb, call)
        with open(call.arguments["path"], "rb") as file:
            sys.stdout.flush()
            copyfileobj(file, sys.stdout.buffer)
    return Answer(None, lambda: "", aside=lambda: f"exported  {events:,} events")


def _import(verb: Verb, call: Call) -> Answer:
    path = os.path.expanduser(call.options.path)
    if not os.access(path, os.R_OK):  # This check comes before a memory is created.
        problem = "No such file or folder" if not os.path.lexists(path) else "Permission denied"
        raise InvalidInput(f"{path!r} can't be read: {problem}.", hint="Check its name and its rights.")
    if verb.name == "memory.import_":
        from mnemarch.interfaces.operate import require_person

        require_person(call.seat.actor, "restore an export", "; without --restore it is taken as claims")
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


def _of(module: str, name: str) -> Callable[[Verb, Call], Answer]:
    """A function of another module in this package, loaded at the call."""
    return lambda verb, call: getattr(loaded(f"mnemarch.interfaces.{module}"), name)(verb, call)


_RUNS = {
    "seat.events": _of("work_text", "read_log"),
    "seat.failed_approaches": _attempts,
    "seat.explain": _explain,
    "seat.units": _units,
    "seat.validate": _validate,
    "seat.erase": _of("operate", "asked"),
    "seat.undo": _of("operate", "asked"),
    "memory.doctor": _doctor,
    "memory.rebuild": _rebuild,
    "memory.reindex": lambda verb, call: _shaped(verb, call, {"documents": performed(verb, call)}),
    "memory.export": _export,
    "memory.import_": _import,
    "seat.import_claims": _import,
    "memory.backup": _backup,
    "memory.maintain": _of("operate", "maintained"),
    "decisions.relate": _relate,
    "decisions.unrelate": _relate,
}

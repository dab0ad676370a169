"""A command from its row in the table of verbs: its arguments, the call, the exit code, the answer."""

from __future__ import annotations

from mnemarch.interfaces.command import DONE, REFUSED, STORE_TROUBLE, Answer, Command
from mnemarch.verbs.types import PROGRESS, SEAT, help_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mnemarch.interfaces.command import Call
    from mnemarch.verbs.types import Verb

# Verbs that make a memory where there is none; the others say that there is none.
_BEGIN_MEMORY = {
    *("seat.log", "seat.log_many", "seat.remember", "seat.remember_many", "seat.verify", "seat.fail"),
    *("seat.mark_stuck", "seat.clear_stuck", "decisions.add_evidence", "decisions.add_policy", "memory.import_"),
}
# What hooks ask in every repository: where there is no memory, it is answered as from an empty one.
_ASKED_BY_HOOKS = {"seat.recall", "seat.context", "seat.validate_approach", "seat.failed_approaches"}
# Verbs whose command does more than the verb: it asks first, takes more options, or shows something else.
_SPECIAL = {
    *("seat.failed_approaches", "seat.adopt", "seat.units", "seat.validate", "seat.erase", "memory.doctor"),
    *("memory.rebuild", "memory.reindex", "memory.export", "memory.import_", "memory.backup"),
    *("decisions.relate", "decisions.unrelate", "decisions.impact"),
}
# What long work counts.
_COUNTED = {
    "seat.remember_many": ("remembering", "claims"),
    "memory.audit": ("auditing", "events"),
    "memory.rebuild": ("rebuilding", "events"),
    "memory.reindex": ("indexing", "units"),
    "memory.janitor": ("comparing with the code", "units"),
    "memory.export": ("exporting", "events"),
    "memory.import_": ("importing", "events"),
}
_EXIT_CODES: dict[str, Callable[[Any], int]] = {
    "Refused": lambda _: REFUSED,
    "ApproachValidation": lambda validation: DONE if validation.valid else REFUSED,
    "LoopVerdict": lambda verdict: REFUSED if verdict.type == "BLOCK" else DONE,
    "Promotion": lambda judged: exit_code_of(judged.loop),
    "Adopted": lambda adopted: exit_code_of(adopted.refused),
    "LogCheck": lambda check: DONE if check.ok else STORE_TROUBLE,
    "Rebuild": lambda rebuild: DONE if rebuild.same else STORE_TROUBLE,
    "Finding": lambda finding: DONE if finding.ok else STORE_TROUBLE,
}


def exit_code_of(result: Any) -> int:
    """What a result means to a shell; of several the worst."""
    if isinstance(result, list | tuple):
        return max(map(exit_code_of, result), default=DONE)
    code = _EXIT_CODES.get(type(result).__name__)
    return DONE if code is None else code(result)


def command_for(verb: Verb) -> Command:
    """The command of a verb."""
    takes = tuple(parameter for parameter in verb.takes if parameter.offered and parameter.type.read is not None)

    def run(call: Call) -> Answer:
        if verb.name not in _SPECIAL:
            return answered(verb, call)
        from mnemarch.interfaces.commands.by_hand import RUNS

        return RUNS[verb.name](verb, call)

    if verb.name in _SPECIAL:
        from mnemarch.interfaces.commands.by_hand import MORE_OPTIONS

        takes += MORE_OPTIONS.get(verb.name, ())
    return Command(*help_of(verb.name), run, takes, begins_memory=verb.name in _BEGIN_MEMORY)


def performed(verb: Verb, call: Call) -> Any:
    """The verb, done with what was typed."""
    owner, _, name = verb.name.partition(".")
    given = {parameter.name: call.given[parameter.name] for parameter in verb.takes if parameter.name in call.given}
    given |= {parameter.name: call.seat for parameter in verb.takes if parameter.type is SEAT}
    target = call.memory if owner == "memory" else call.seat if owner == "seat" else getattr(call.seat, owner)
    if all(parameter.type is not PROGRESS for parameter in verb.takes):
        return getattr(target, name)(**given)
    from mnemarch.interfaces.show import Counter

    with Counter(*_COUNTED.get(verb.name, (f"{name} goes on", "done"))) as progress:
        return getattr(target, name)(progress=progress, **given)


def answered(verb: Verb, call: Call) -> Answer:
    """The verb's answer."""
    nothing_here = call.answer_from_nothing() if verb.name in _ASKED_BY_HOOKS else ""
    result = performed(verb, call)
    if verb.gives in {"Found", "Pack"}:
        result = _with_notes(result, call, nothing_here)

    def aside() -> str:
        return text_of("about Pack", result, call) if verb.gives == "Pack" else nothing_here

    return Answer(
        result,
        lambda: text_of(verb.name, result, call, verb.gives),
        exit_code_of(result),
        None if verb.gives == "Found" else aside,
    )


def _with_notes(result: Any, call: Call, nothing_here: str) -> Any:
    """Where nothing was found, say whether there is no memory, or one of other projects only."""
    if result.items or result.withheld or result.binding:
        return result
    from mnemarch.model.value import replace

    return replace(result, notes=(*result.notes, *([nothing_here] if nothing_here else call.empty_scope_hint())))


def text_of(name: str, result: Any, call: Call, gives: str = "") -> str:
    """How a result looks in a terminal: by its verb, else by its type, else field by field."""
    if name.startswith("decisions."):
        from mnemarch.interfaces.decision_text import TEXTS
    else:
        from mnemarch.interfaces.text import TEXTS
    drawn = TEXTS.get(name) or TEXTS.get(gives)
    if drawn is not None:
        return drawn(result, call)
    from mnemarch.interfaces.json_form import to_json
    from mnemarch.interfaces.show import fields

    form = to_json(result)
    return fields(form.items() if isinstance(form, dict) else [(name, form)])

"""The tools for models: a few verbs with a few of their parameters, and answers that cost few tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from mnemarch.errors import InvalidInput, NotAllowed
from mnemarch.interfaces.command import Call, performed, text_of
from mnemarch.lazy import paragraphs_beside
from mnemarch.learning.core import tool_table
from mnemarch.model.outcome import Refused
from mnemarch.model.search import Recalled
from mnemarch.model.stamps import short_id
from mnemarch.model.value import Frozen, replace
from mnemarch.verbs import VERBS
from mnemarch.verbs.types import FLAG, Parameter, read_all, schema_of

# Each profile includes the tools of those before it. The tools of core memory have a profile of their own.
PROFILES = ("read", "work", "admin")
CORE = "core"
_VERBS = {verb.name: verb for verb in VERBS}
_TEXTS = paragraphs_beside(__file__, "tools.txt")
# The most tokens of a recall's answer. The model can ask for longer units by id.
_RECALL_TOKENS = 4_000
_ITEM_CHARS_MAX, _BINDING_CHARS_MAX = 2_000, 200


def words(name: str) -> str:
    """A text for models from `tools.txt`: of a tool, of a prompt, or the instructions."""
    return " ".join(_TEXTS[name])


class Reply(Frozen):
    """A tool's answer: `text` for the model, and `data` by the tool's schema for programs."""

    text: str
    data: dict[str, Any]


class Tool(Frozen):
    """One tool: a verb, and in `offers` the verb's parameters that a model gets. `more` are the tool's own parameters.

    `run` replaces the plain call of the verb. `gives` names the types of the answer.
    """

    name: str
    verb: str
    offers: tuple[str, ...]
    gives: tuple[str, ...]
    more: tuple[Parameter, ...] = ()
    run: Callable[[Call], tuple[Any, str]] | None = None
    profile: str = ""

    @property
    def takes(self) -> tuple[Parameter, ...]:
        known = {parameter.name: parameter for parameter in _VERBS[self.verb].takes}
        return (*(known[name] for name in self.offers), *self.more)

    @property
    def is_reading(self) -> bool:
        return _VERBS[self.verb].profile == "read"

    @property
    def needs(self) -> str:
        """The narrowest profile that has the tool."""
        return self.profile or _VERBS[self.verb].profile

    @property
    def says(self) -> str:
        return str(tool_table()[self.name]["description"]) if self.profile == CORE else words(f"tool {self.name}")

    @property
    def input_schema(self) -> dict[str, Any]:
        return schema_of(self.takes)

    @property
    def output_schema(self) -> dict[str, Any]:
        parts = (part for type in self.gives for part in _parts(type))
        return {"type": "object", "properties": {name: _KINDS[kind][0] for name, _, kind in parts}}


def tools_for(profile: str, denied: Iterable[str] = ()) -> dict[str, Tool]:
    """The tools of a profile without the denied ones. A denial always wins."""
    if profile not in {*PROFILES, CORE}:
        raise InvalidInput(f"There is no profile {profile!r}.", hint=f"Use {', '.join((*PROFILES, CORE))}.")
    refused, tools = set(denied), {tool.name: tool for tool in (*TOOLS, *CORE_TOOLS)}
    unknown = sorted(refused - tools.keys())
    if unknown:
        raise InvalidInput(f"There is no tool {unknown[0]!r}.", hint=f"The tools are {', '.join(tools)}.")
    reach = (CORE,) if profile == CORE else PROFILES[: PROFILES.index(profile) + 1]
    return {name: tool for name, tool in tools.items() if tool.needs in reach and name not in refused}


def checked(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A model's arguments, checked and parsed as on the command line."""
    return read_all(tool.name, tool.takes, arguments)


def called(tool: Tool, call: Call) -> Reply:
    """Run a tool."""
    verb = _VERBS[tool.verb]
    if tool.run is not None:
        result, text = tool.run(call)
    else:
        result = performed(verb, call)
        text = text_of(verb.name, result, call, verb.gives)
    return Reply(text=text, data=_shaped(result))


# Tools that do more than their verb


def _recall(call: Call) -> tuple[Any, str]:
    from mnemarch.recall.context import TOLD_ELSEWHERE, packed
    from mnemarch.text.prompt import estimated_tokens
    from mnemarch.text.tokens import query_tokens

    found = performed(_VERBS["seat.recall"], call)
    pack = packed(found, _RECALL_TOKENS, estimated_tokens, None, query_tokens(call.arguments["query"]))
    bound = {item.unit.id for item in found.binding}
    long = [short_id(one.unit_id) for one in pack.left_out if one.unit_id not in bound and one.reason != TOLD_ELSEWHERE]
    notes = [f"Too long to be shown here. Call explain for each: {', '.join(long)}."] if long else []
    return found, "\n".join([_with_notes(pack.text if pack.items or pack.binding else "", found), *notes])


def _context(call: Call) -> tuple[Any, str]:
    pack = performed(_VERBS["seat.context"], call)
    return pack, _with_notes(pack.text if pack.items or pack.binding else "", pack)


def _with_notes(text: str, answer: Any) -> str:
    withheld = Counter(one.reason for one in answer.withheld)
    reasons = ", ".join(f"{count} {reason}" for reason, count in withheld.items())
    # A text that is not empty already says how many binding units had no room.
    notes = [note for note in answer.notes if not (text and "more binding" in note)]
    notes += [f"Withheld: {reasons}."] if withheld else []
    too_long = len(getattr(answer, "left_out", ()))
    nothing = f"{too_long} known, and none fits: ask for more." if too_long else "Nothing is known about this yet."
    return "\n".join([text or nothing, *notes])


def _attempt(call: Call) -> tuple[Any, str]:
    """Check an approach before it is tried; with an error, record it as failed."""
    name = "seat.fail" if "error" in call.arguments else "seat.validate_approach"
    result = performed(_VERBS[name], call)
    return result, text_of(name, result, call, _VERBS[name].gives)


def _decide(call: Call) -> tuple[Any, str]:
    desk = call.seat.decisions
    result = desk.commit(desk.propose(**call.arguments))
    if isinstance(result, Refused):
        return result, result.reason
    return result, f"decided  {short_id(result.id)}  version {result.version}"


def _core(name: str, call: Call) -> tuple[Any, str]:
    said = call.seat.core.call(name, call.arguments)
    return said, said


def _feedback(call: Call) -> tuple[Any, str]:
    """Count the use of a unit that helped. One that did not help keeps its trust: calling it wrong takes evidence."""
    unit = call.seat.get(call.arguments["unit_id"])
    if call.arguments["helped"]:
        return call.seat.use(unit.id), f"noted  {short_id(unit.id)} was used in this task"
    why = call.arguments.get("why") or "It did not help."
    call.seat.log("feedback", why, data={"unit": unit.id, "helped": False})
    return unit, (
        f"noted  {short_id(unit.id)} did not help; its trust is as before."
        " If it is wrong, remember what is right and cite the test or file that shows it."
    )


# The data of answers


def _entry(item: Recalled, chars_max: int) -> dict[str, str]:
    text, rest = item.unit.content[:chars_max], item.unit.content[chars_max:]
    return {"id": short_id(item.unit.id), "label": item.label, "text": f"{text}…" if rest else text}


def _unit(unit: Any) -> dict[str, str]:
    return {"id": short_id(unit.id), "kind": str(unit.kind), "status": str(unit.status), "text": unit.content}


_TEXT, _OBJECT = {"type": "string"}, {"type": ["object", "null"]}
_OBJECTS, _STRINGS = {"type": "array", "items": {"type": "object"}}, {"type": "array", "items": _TEXT}
# The kinds of parts in an answer: each has a JSON schema and a function that converts the value.
_KINDS: dict[str, tuple[dict[str, Any], Callable[[Any], Any]]] = {
    "text": (_TEXT, str),
    "id": (_TEXT, short_id),
    "maybe-id": ({"type": ["string", "null"]}, lambda id: id and short_id(id)),
    "number": ({"type": "integer"}, int),
    "count": ({"type": "integer"}, len),
    "flag": ({"type": "boolean"}, bool),
    "texts": (_STRINGS, list),
    "approaches": (_STRINGS, lambda failed: [one.approach for one in failed]),
    "evidence": (_STRINGS, lambda citations: [ref for ref, _ in citations]),
    "binding": (_OBJECTS, lambda items: [_entry(item, _BINDING_CHARS_MAX) for item in items]),
    "items": (_OBJECTS, lambda items: [_entry(item, _ITEM_CHARS_MAX) for item in items]),
    "reasons": (_OBJECT, lambda withheld: dict(Counter(one.reason for one in withheld))),
    "unit": (_OBJECT, lambda unit: _unit(unit)),
    "units": (_OBJECTS, lambda units: list(map(_unit, units))),
    "disputes": (_OBJECTS, lambda disputes: list(map(_dispute, disputes))),
    "refusals": (_OBJECTS, lambda refused: [{"rule": one.rule, "reason": one.reason} for one in refused]),
    "verdict": (_OBJECT, lambda verdict: verdict and _shaped(verdict)),
    "dispute": (_OBJECT, lambda dispute: _dispute(dispute)),
    "listed": (_OBJECTS, lambda items: list(map(_listed, items))),
}
# The parts of each type of result, as name=attribute:kind. The attribute defaults to the name, the kind to "text".
_SHAPES = {
    "Found": "binding:binding items:items withheld:reasons notes:texts",
    "Pack": "text tokens:number left_out:count notes:texts",
    "Stored": "unit:unit merged:flag notes:texts conflicts:disputes",
    "Refused": "refused=rule reason",
    "Receipt": "entry=event_id:id duplicate:flag",
    "LoopVerdict": "verdict=type reason instruction",
    "ApproachValidation": "valid:flag reason suggestion failed=failed_history:approaches",
    "Promotion": "passed:flag witnessed:flag episode=episode_id:id skill=skill_id:maybe-id raised=units:units"
    " kept=refused:refusals set_aside:texts loop:verdict",
    "Decision": "decision=id:id version:number strength",
    "Unit": "unit=:unit",
    "str": "text=",
    "Explanation": "unit:unit why=status_reason evidence=citations:evidence",
    "Dispute": "conflict=:dispute",
    "Event": "entry=id:id type",
    "list": "items=:listed",
}


def _parts(type: str) -> Iterator[tuple[str, str, str]]:
    """Name, attribute and kind of each part of a type of result. An empty attribute means the result itself."""
    for part in _SHAPES[type].split():
        named, _, kind = part.partition(":")
        name, equals, attribute = named.partition("=")
        yield name, attribute if equals else name, kind or "text"


def _shaped(result: Any) -> dict[str, Any]:
    parts = _parts("list" if isinstance(result, list) else type(result).__name__)
    return {name: _KINDS[kind][1](getattr(result, at) if at else result) for name, at, kind in parts}


def _dispute(dispute: Any) -> dict[str, Any]:
    return {"id": short_id(dispute.id), "subject": dispute.subject, "values": list(dispute.values)}


def _listed(item: Any) -> dict[str, Any]:
    names = ("id", "what", "subject", "evidence", "why", "author", "answer")
    fields = {name: str(getattr(item, name)) for name in names if getattr(item, name, None) is not None}
    return fields | {"id": short_id(fields["id"])}


_HELPED = Parameter("helped", FLAG, "whether it helped in this task")
_WHY = Parameter("why", _VERBS["seat.mark_stuck"].takes[0].type, "why not, in a sentence, if it did not help", None)
_AN_ERROR = replace(_VERBS["seat.fail"].takes[0], says="the error, if you tried it and it failed", default=None)
_AN_APPROACH = replace(_VERBS["seat.validate_approach"].takes[0], says="what you are about to try, or have just tried")
TOOLS = (
    Tool("context", "seat.context", ("query", "tokens", "domain"), ("Pack",), run=_context),
    Tool("recall", "seat.recall", ("query", "k", "kinds", "domain"), ("Found",), run=_recall),
    Tool("remember", "seat.remember", ("content", "kind", "citations", "domain", "importance"), ("Stored", "Refused")),
    Tool("log", "seat.log", ("kind", "text", "data"), ("Receipt",)),
    Tool("attempt", "seat.fail", (), ("ApproachValidation", "LoopVerdict"), (_AN_APPROACH, _AN_ERROR), _attempt),
    Tool(
        "verify",
        "seat.verify",
        ("passed", "report", "tests", "commit", "error", "approach", "analysis"),
        ("Promotion",),
    ),
    Tool(
        "decide",
        "decisions.propose",
        ("text", "reason", "evidence", "snapshots", "strength", "domain", "revises"),
        ("Decision", "Refused"),
        run=_decide,
    ),
    Tool("explain", "seat.show", ("id",), ("Explanation", "Dispute", "Event")),
    Tool("feedback", "seat.use", ("unit_id",), ("Unit",), (_HELPED, _WHY), _feedback),
    Tool("inbox", "seat.inbox", ("limit",), ("list",), profile="admin"),
    Tool("accept", "seat.accept", ("ids",), ("list",), profile="admin"),
    Tool("decline", "seat.decline", ("ids", "reason"), ("list",), profile="admin"),
)


CORE_TOOLS = tuple(
    Tool(name, f"core.{name}", tuple(tool["parameters"]), ("str",), run=partial(_core, name), profile=CORE)
    for name, tool in tool_table().items()
)


def refused_to(tool: str, profile: str) -> NotAllowed:
    needed = next((each.needs for each in (*TOOLS, *CORE_TOOLS) if each.name == tool), None)
    hint = f"A person can start the server with --profile {needed}." if needed else "List the tools again."
    return NotAllowed(f"There is no tool {tool!r} in the profile {profile}.", rule="R4", hint=hint)

"""What the payload of each type of event looks like: an import believes no file (R1).

A name that ends in `?` may be left out, a type that ends in `?` may be null. Further fields are left alone: nobody
reads them.
"""

from __future__ import annotations

import sys
from math import isfinite

from mnemarch.model.caller import Actor, Level, Scope
from mnemarch.model.citation import Citation
from mnemarch.model.event import EventType
from mnemarch.model.stamps import ID_CHARS, instant
from mnemarch.model.unit import Claim, Kind, Link, Provenance, Unit
from mnemarch.model.value import Names, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_REFUSED = {"rule": "str", "reason": "str"}
_STEP = {
    "set?": "Unit",
    "cite?": "list[Citation]",
    "voices?": "list[Provenance]",
    "use?": "Use",
    "reused_by?": "list[str]",
}
_RUN = {"passed": "bool", "witnessed": "bool", "tests": "Tests", "places": "list[str]", "tree": "str"}
_RELATION = {"source": "id", "type": "str", "target": "id"}
_RESOLUTION = {"link": "id", "winner": "id?", "reason": "str"}
_GRAPH = {"act": "str", "agent": "str", "session": "str?", "steps": "list[list[any]]"}
PAYLOADS: dict[str, dict[str, str]] = {
    EventType.LOGGED: {"kind": "str", "text": "str", "data?": "map"},
    EventType.CLAIM_REFUSED: _REFUSED | {"claim": "Claim"},
    EventType.ACT_REFUSED: _REFUSED,
    EventType.UNIT_HELD: _REFUSED | {"to?": "str"},
    EventType.UNIT_REMEMBERED: {"unit": "Unit"},
    EventType.UNIT_ERASED: {"reason": "str", "links": "list[id]", "units": "list[Tombstone]", "events": "list[id]"},
    EventType.LINK_ADDED: {"link": "Link", "others?": "list[id]", "id?": "id"},
    EventType.LINK_JOINED: {"link": "id", "unit": "id"},
    EventType.LINK_RESOLVED: _RESOLUTION,
    EventType.RELATION_ADDED: _RELATION,
    EventType.RELATION_DROPPED: _RELATION,
    EventType.DECISION_REQUESTED: {"proposal": "Request"},
    EventType.REQUEST_ANSWERED: {"request": "id", "reason": "str", "decision": "id?"},
    EventType.RECALLED: {"units": "list[id]", "query?": "str", "task_key?": "str"},
    EventType.TASK_VERIFIED: _RUN | {"command": "str", "commit?": "str?", "output?": "str", "runner?": "str"},
    EventType.TESTS_RESTATED: _RUN,
    EventType.ATTEMPT_FAILED: {
        "error": "str",
        "line?": "str",
        "fingerprint": "map",
        "approach": "str?",
        "first": "str?",
        "verdict": "map",
    },
    EventType.ATTEMPTS_CLEARED: {"task": "str?", "reason": "str", "unstuck": "bool", "attempts?": "list[id]"},
    EventType.TASK_STUCK: {"task": "str?", "reason": "str"},
    EventType.INBOX_SETTLED: {"what": "str", "answer": "str"},
    EventType.ACTOR_UNDONE: {"actor": "Actor", "session": "str?", "reason": "str", "why": "str"}
    | {"units": "list[id]", "claims": "list[id]", "requests": "list[id]", "ledgers": "list[Ledger]"}
    | {
        "voices": "by_id[list[Provenance]]",
        "restored?": "by_id[Changed]",
        "links?": "list[Resolution]",
        "rules?": "list[id]",
        "votes?": "list[id]",
    },
    EventType.UNDO_REVERTED: {"actor": "Actor", "reason": "str"},
    EventType.RULE_LEARNED: {"rule": "Rule", "patch?": "Patch"},
    EventType.RULE_JUDGED: {"set": "Judged"},
    EventType.RULE_DROPPED: {"reason": "str"},
    EventType.GRAPH_CHANGED: _GRAPH,
    EventType.GRAPH_RESTATED: _GRAPH,
}
_COUNTS = {"confidence": "float", "observation_count": "int", "success_count": "int", "failure_count": "int"}
_RULE_WORDS = ("name", "description", "category", "before_pattern", "after_pattern", "pattern_type")
_PARTS: dict[str, dict[str, str]] = {
    "Judged": _COUNTS,
    "Patch": {"before": "str", "after": "str"},
    "Rule": dict.fromkeys(_RULE_WORDS, "str")
    | _COUNTS
    | {"languages": "list[str]", "min_confidence_threshold": "float", "promotion_threshold": "float"},
    "Use": {"task_key": "str", "handed?": "bool", "used?": "bool", "credited?": "bool", "blamed?": "bool"},
    "Ledger": {"subject": "str", "cleared": "id", "attempts": "list[id]", "stuck": "str?"},
    "Resolution": _RESOLUTION,
    "Changed": {"before": "Unit", "after": "Unit"},
    "Tests": {"pass?": "list[str]", "fail?": "list[str]"},
    "Tombstone": {"id": "id", "kind": "Kind", "scope": "Scope", "recorded_at": "datetime", "version": "int"},
    "Request": {"text": "str", "strength": "str", "domain": "str", "level": "Level", "reason": "map"}
    | {"evidence": "list[id]", "snapshots": "list[str]", "revises": "id?", "opposes": "list[id]"},
}
_CLASSES: dict[str, Any] = {each.__name__: each for each in (Citation, Claim, Kind, Link, Provenance, Unit)}
_PLAIN = {"str": str, "int": int, "bool": bool, "map": dict}
# Of a unit no later event changes these; that it is erased, only an erasure says.
_FIXED = frozenset({"id", "kind", "occurred_at", "recorded_at"})
_SHARES = frozenset({"confidence", "importance"})
_NUMBER_MAX = 1 << 53
_HEX = frozenset("0123456789abcdef-")


def check_payload(type: EventType, payload: Any) -> None:
    """Raise ValueError, which says where, if this can't be the payload of such an event."""
    _check_fields(PAYLOADS.get(type, _STEP), payload, "its payload")
    for changes in changes_in(type, payload):
        fixed = _FIXED.intersection(changes) | ({"erased_at"} if changes.get("erased_at") is not None else set())
        _require(not fixed, f"it changes what never changes: {', '.join(sorted(fixed))}")
    if type is EventType.UNIT_REMEMBERED:
        missing = {"kind", "content", "scope", "domain", "status", "trust"} - payload["unit"].keys()
        _require(not missing, f"unit has no {', '.join(sorted(missing))}")
    if type is EventType.LINK_ADDED:
        Link.from_json(payload["link"] | {"id": ""})


def changes_in(type: EventType, payload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What a payload changes of units, or will once it is reverted."""
    if type is EventType.ACTOR_UNDONE:
        return [fields for changed in payload.get("restored", {}).values() for fields in changed.values()]
    return [payload.get("set", {})] if type not in PAYLOADS else []


def is_id(item: Any) -> bool:
    return isinstance(item, str) and len(item) == ID_CHARS and _HEX.issuperset(item)


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise ValueError(problem)


def _check_fields(shape: Mapping[str, str], fields: Any, what: str) -> None:
    _require(isinstance(fields, dict), f"{what} is no object")
    for marked, kind in shape.items():
        name = marked.removesuffix("?")
        _require(name in fields or marked != name, f"{what} has no {name}")
        if name in fields:
            _check(kind, fields[name], name)


def _check_record(cls: Any, record: Any, what: str) -> None:
    """By the annotations of the class. What is left out has a default, or the class itself refuses."""
    _require(isinstance(record, dict), f"{what} is no object")
    stored = dict(cls.json_names)
    kinds = {stored.get(name, name): kind for name, kind in cls.__annotations__.items()}
    for name, item in record.items():
        _require(name in kinds, f"{what} has an unknown field {name}")
        _check(kinds[name], item, name, sys.modules[cls.__module__].__dict__)


def _check(kind: str, item: Any, what: str, namespace: Mapping[str, Any] | None = None) -> None:
    """Whether an item is of a type, written as in the tables above or as an annotation of a record."""
    first, *others = kind.split(" | ")
    if item is None:
        _require(kind.endswith("?") or "None" in others or kind == "any", f"{what} is missing")
        return
    name = first.removesuffix("?")
    if name.startswith(("list[", "tuple[")) and name != "tuple[tuple[str, str], ...]":
        _require(isinstance(item, list), f"{what} is no list")
        inner = name.partition("[")[2][:-1].removesuffix(", ...")
        for each in item:
            _check(inner, each, what, namespace)
    elif name.startswith("by_id["):
        _require(isinstance(item, dict), f"{what} is no object")
        for id, each in item.items():
            _require(is_id(id), f"{what} has a name that is no id")
            _check(name.partition("[")[2][:-1], each, what, namespace)
    elif name in _PLAIN:
        _require(type(item) is _PLAIN[name], f"{what} is no {name}")
        _require(name != "int" or abs(item) < _NUMBER_MAX, f"{what} is out of range")
    else:
        _check_special(name, item, what, namespace or {})


def _check_special(name: str, item: Any, what: str, namespace: Mapping[str, Any]) -> None:
    cls = _CLASSES.get(name) or namespace.get(name)
    if name == "id":
        _require(is_id(item), f"{what} is no id")
    elif name == "float":
        _require(type(item) in (int, float) and isfinite(item), f"{what} is no number")
        _require(what not in _SHARES or 0 <= item <= 1, f"{what} is not from 0 to 1")
    elif name == "datetime":
        _require(type(item) is int, f"{what} is no instant")
        instant(item)
    elif name in _PARTS:
        _check_fields(_PARTS[name], item, what)
    elif isinstance(cls, type) and issubclass(cls, Record):
        _check_record(cls, item, what)
    elif isinstance(cls, type) and issubclass(cls, Names):
        cls(item)
    elif name == "Scope":
        _require(isinstance(item, list) and len(item) == 4, f"{what} is no scope")
        Scope.of(item)
    elif name == "Actor":
        Actor.parse(item)
    elif name == "Level":
        Level.parse(item)
    elif name.startswith(("Mapping[", "tuple[tuple[")):
        _require(isinstance(item, dict), f"{what} is no object")
        _require(name[0] == "M" or all(isinstance(each, str) for each in item.values()), f"{what} is no text")
    else:
        assert name == "any", name

"""Checks events from untrusted files: their form, and what they may touch (R1).

Each type of event has a payload of a certain shape. A name that ends in `?` may be left out, and a type that ends in
`?` may be null. Unknown fields are ignored. An event may only touch things of its own project or org that an earlier
event made, so a file can't reach into another project.
"""

from __future__ import annotations

import sys
from math import isfinite

from mnemarch.errors import InvalidInput
from mnemarch.log.chain import entry_hash, is_whole
from mnemarch.model.caller import Actor, Level, Scope, Stream
from mnemarch.model.event import Event, EventType
from mnemarch.model.json_text import canonical_json
from mnemarch.model.stamps import ID_CHARS, instant
from mnemarch.model.unit import Citation, Claim, Kind, Link, Provenance, Unit
from mnemarch.model.value import Names, Record
from mnemarch.policy.admission import checked_name
from mnemarch.stores.sql.queries import DAMAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from mnemarch.stores.sql.reader import Reader

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
    EventType.TESTS_RESTATED: _RUN | {"flaky?": "bool", "greened_by?": "str"},
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
# Fields of a unit that no later event may change. Only an erasure sets `erased_at`.
_FIXED = frozenset({"id", "kind", "occurred_at", "recorded_at"})
_SHARES = frozenset({"confidence", "importance"})
_NUMBER_MAX = 1 << 53
_HEX = frozenset("0123456789abcdef-")


def check_payload(type: EventType, payload: Any) -> None:
    """Raise ValueError, naming the field, if this can't be the payload of an event of this type."""
    _check_fields(PAYLOADS.get(type, _STEP), payload, "its payload")
    for changes in changes_in(type, payload):
        fixed = _FIXED.intersection(changes) | ({"erased_at"} if changes.get("erased_at") is not None else set())
        require(not fixed, f"it changes what never changes: {', '.join(sorted(fixed))}")
    if type is EventType.UNIT_REMEMBERED:
        missing = {"kind", "content", "scope", "domain", "status", "trust"} - payload["unit"].keys()
        require(not missing, f"unit has no {', '.join(sorted(missing))}")
    if type is EventType.LINK_ADDED:
        Link.from_json(payload["link"] | {"id": ""})


def changes_in(type: EventType, payload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The fields of units that a payload changes, or that its revert would change."""
    if type is EventType.ACTOR_UNDONE:
        return [fields for changed in payload.get("restored", {}).values() for fields in changed.values()]
    return [payload.get("set", {})] if type not in PAYLOADS else []


def is_id(item: Any) -> bool:
    return isinstance(item, str) and len(item) == ID_CHARS and _HEX.issuperset(item)


def require(holds: bool, problem: str) -> None:
    if not holds:
        raise ValueError(problem)


def _check_fields(shape: Mapping[str, str], fields: Any, what: str) -> None:
    require(isinstance(fields, dict), f"{what} is no object")
    for marked, kind in shape.items():
        name = marked.removesuffix("?")
        require(name in fields or marked != name, f"{what} has no {name}")
        if name in fields:
            _check(kind, fields[name], name)


def _check_record(cls: Any, record: Any, what: str) -> None:
    """Check a record by the annotations of its class. Missing fields are left to the class."""
    require(isinstance(record, dict), f"{what} is no object")
    stored = dict(cls.json_names)
    kinds = {stored.get(name, name): kind for name, kind in cls.__annotations__.items()}
    for name, item in record.items():
        require(name in kinds, f"{what} has an unknown field {name}")
        _check(kinds[name], item, name, sys.modules[cls.__module__].__dict__)


def _check(kind: str, item: Any, what: str, namespace: Mapping[str, Any] | None = None) -> None:
    """Check an item's type, which is written as in the tables above or as an annotation of a record."""
    first, *others = kind.split(" | ")
    if item is None:
        require(kind.endswith("?") or "None" in others or kind == "any", f"{what} is missing")
        return
    name = first.removesuffix("?")
    if name.startswith(("list[", "tuple[")) and name != "tuple[tuple[str, str], ...]":
        require(isinstance(item, list), f"{what} is no list")
        inner = name.partition("[")[2][:-1].removesuffix(", ...")
        for each in item:
            _check(inner, each, what, namespace)
    elif name.startswith("by_id["):
        require(isinstance(item, dict), f"{what} is no object")
        for id, each in item.items():
            require(is_id(id), f"{what} has a name that is no id")
            _check(name.partition("[")[2][:-1], each, what, namespace)
    elif name in _PLAIN:
        require(type(item) is _PLAIN[name], f"{what} is no {name}")
        require(name != "int" or abs(item) < _NUMBER_MAX, f"{what} is out of range")
    else:
        _check_special(name, item, what, namespace or {})


def _check_special(name: str, item: Any, what: str, namespace: Mapping[str, Any]) -> None:
    cls = _CLASSES.get(name) or namespace.get(name)
    if name == "id":
        require(is_id(item), f"{what} is no id")
    elif name == "float":
        require(type(item) in (int, float) and isfinite(item), f"{what} is no number")
        require(what not in _SHARES or 0 <= item <= 1, f"{what} is not from 0 to 1")
    elif name == "datetime":
        require(type(item) is int, f"{what} is no instant")
        instant(item)
    elif name in _PARTS:
        _check_fields(_PARTS[name], item, what)
    elif isinstance(cls, type) and issubclass(cls, Record):
        _check_record(cls, item, what)
    elif isinstance(cls, type) and issubclass(cls, Names):
        cls(item)
    elif name == "Scope":
        require(isinstance(item, list) and len(item) == 4, f"{what} is no scope")
        Scope.of(item)
    elif name == "Actor":
        Actor.parse(item)
    elif name == "Level":
        Level.parse(item)
    elif name.startswith(("Mapping[", "tuple[tuple[")):
        require(isinstance(item, dict), f"{what} is no object")
        require(name[0] == "M" or all(isinstance(each, str) for each in item.values()), f"{what} is no text")
    else:
        assert name == "any", name


# Event types whose subject is a unit.
ABOUT_UNITS = frozenset(type for type in EventType if type.startswith("unit.") and type != EventType.UNIT_ERASED)


class Reach:
    """Everything that the events so far have made. With a reader, also everything that is stored."""

    def __init__(self, known: Reader | None = None) -> None:
        self._known = known
        self._events: dict[str, Stream] = {}
        self._keys: set[tuple[str, str, str, str]] = set()
        self._units: dict[str, Scope] = {}
        self._links: set[str] = set()
        # With several clones, a link may have no opening event, or only an erased one.
        self._has_writers = False
        self.unseen_links: set[str] = set()
        self._subjects: dict[str, Stream] = {}

    def __len__(self) -> int:
        return len(self._events)

    def scope_of(self, unit_id: str) -> Scope | None:
        scope = self._units.get(unit_id)
        if scope is None and self._known is not None and (unit := self._known.unit(unit_id)) is not None:
            scope = self._units[unit_id] = unit.scope
        return scope

    def _stream_of(self, event_id: str) -> Stream | None:
        stream = self._events.get(event_id)
        if stream is None and self._known is not None and (event := self._known.event(event_id)) is not None:
            stream = event.stream.shared
        return stream

    def _owner_of(self, subject: str) -> Stream | None:
        owner = self._subjects.get(subject)
        if owner is None and self._known is not None:
            # A rule has the id of the event that learned it.
            first = next(self._known.events_of_subject(subject, last=1), None) or self._known.event(subject)
            owner = None if first is None else first.stream.shared
        return owner

    def _has_link(self, link_id: str) -> bool:
        if link_id in self._links or (self._known is not None and self._known.link(link_id) is not None):
            return True
        self.unseen_links.add(link_id)
        return self._has_writers

    def take(self, event: Event) -> None:
        """Add an event. Raises ValueError if it touches another stream, or something that no earlier event made."""
        stream, payload = event.stream.shared, event.payload
        require((event.scope.org, event.scope.project) == (stream.org, stream.project), "its scope is elsewhere")
        require(self._stream_of(event.id) is None, "its id came before")
        self._has_writers = self._has_writers or bool(event.stream.writer)
        if event.key is not None:
            key = (event.scope.key, str(event.actor), event.key, event.stream.writer)
            require(key not in self._keys, f"its key {event.key!r} came before")
            self._keys.add(key)
        if event.type is EventType.UNIT_REMEMBERED:
            is_new = is_id(event.subject) and self.scope_of(event.subject or "") is None
            require(is_new, "its unit came before, or has no id")
            born = Scope.of(payload["unit"]["scope"]) if payload else Scope(org=stream.org, project=stream.project)
            self._put(event, event.subject or "", born)
        elif event.type in ABOUT_UNITS:
            self._require_units(event, [event.subject or ""])
        elif event.type is not EventType.UNIT_ERASED and not event.type.startswith("link."):
            owner = self._owner_of(event.subject or "") if event.subject else None
            is_of_rule = event.type in (EventType.RULE_JUDGED, EventType.RULE_DROPPED)
            require(not is_of_rule or owner is not None, f"no rule {event.subject} came before")
            owner = self._subjects[event.subject or ""] = owner or stream
            require(event.subject is None or owner == stream, f"{event.subject} belongs to {owner}")
        if event.type is EventType.LINK_ADDED:
            self._links.add((payload or {}).get("id", event.id))
        elif event.type is EventType.RULE_LEARNED:
            self._subjects[event.id] = stream
        if payload is not None:
            self._check_named(event, payload)
        self._events[event.id] = stream

    def _check_named(self, event: Event, payload: dict[str, Any]) -> None:
        """Check the units, links and entries that a payload names."""
        if event.type in ABOUT_UNITS and "scope" in payload.get("set", {}):
            self._put(event, event.subject or "", Scope.of(payload["set"]["scope"]))
        match event.type:
            case EventType.LINK_ADDED:
                link = payload["link"]
                self._require_units(event, [link["source"], link["target"], *payload.get("others", ())])
            case EventType.LINK_JOINED | EventType.LINK_RESOLVED:
                require(self._has_link(payload["link"]), f"no link {payload['link']} came before")
                self._require_units(event, [payload["unit"]] if "unit" in payload else [])
            case EventType.RELATION_ADDED | EventType.RELATION_DROPPED:
                self._require_units(event, [payload["source"], payload["target"]])
            case EventType.RECALLED:
                self._require_units(event, payload["units"])
            case EventType.UNIT_ERASED:
                self._check_erasure(event, payload)
            case EventType.ACTOR_UNDONE:
                self._check_undoing(event, payload)

    def _check_undoing(self, event: Event, payload: dict[str, Any]) -> None:
        """Check that a revert would only bring back things of the event's own project."""
        self._require_units(event, [*payload["units"], *payload["voices"], *payload.get("restored", ())])
        for fields in changes_in(event.type, payload):
            require("scope" not in fields or _is_own(event, Scope.of(fields["scope"])), "its scope is elsewhere")
        links = {resolved["link"]: resolved["winner"] for resolved in payload.get("links", ())}
        self._require_units(event, filter(None, links.values()))
        cleared = [ledger["cleared"] for ledger in payload["ledgers"]]
        for id in (*payload["claims"], *payload["requests"], *cleared):
            require(self._stream_of(id) == event.stream.shared, f"no event {id} of this project came before")
        for id in links:
            is_own = self._stream_of(id) in (event.stream.shared, None) and self._has_link(id)
            require(is_own, f"no event {id} of this project came before")
        for ledger in payload["ledgers"]:
            owner = self._owner_of(ledger["subject"])
            require(owner == event.stream.shared, f"{ledger['subject']} belongs to {owner}")

    def _check_erasure(self, event: Event, payload: dict[str, Any]) -> None:
        units = [record["id"] for record in payload["units"]]
        self._require_units(event, units)
        require(all(map(self._has_link, payload["links"])), "it drops a link that did not come before")
        scopes = list(map(self.scope_of, units))
        is_wide = any(scope is not None and scope.project is None for scope in scopes)
        for event_id in payload["events"]:
            stream = self._stream_of(event_id)
            require(stream is not None, f"it empties {event_id}, which did not come before")
            own = event.stream.shared
            is_own = stream == own or (is_wide and stream is not None and stream.org == own.org)
            require(is_own, f"it empties {event_id} of {stream}")

    def _put(self, event: Event, unit_id: str, scope: Scope) -> None:
        self._units[unit_id] = scope
        self._require_units(event, [unit_id])

    def _require_units(self, event: Event, unit_ids: Iterable[str]) -> None:
        for unit_id in unit_ids:
            scope = self.scope_of(unit_id)
            require(scope is not None, f"no unit {unit_id} came before")
            require(scope is not None and _is_own(event, scope), f"unit {unit_id} belongs to {scope}")


def _is_own(event: Event, scope: Scope) -> bool:
    return scope.org == event.stream.org and scope.project in (event.stream.project, None)


def check_form(event: Event, bytes_max: int) -> None:
    """Raise ValueError or InvalidInput if no act can have recorded this event."""
    require(is_id(event.id), "its id has a wrong form")
    require(len(event.payload_hash) == len(event.hash) == 32, "a hash has a wrong form")
    names = {"an actor's id": event.actor.id, "a session": event.session, "a subject": event.subject}
    names |= dict(zip(("an org", "a project", "a worktree", "a task"), event.scope.segments, strict=True))
    for what, name in names.items():
        if name is not None:
            checked_name(name, what)
    if event.body is not None:
        require(len(event.body.encode()) <= bytes_max, f"its payload is over the limit of {bytes_max} bytes")
        payload = event.payload
        require(canonical_json(payload) == event.body, "its payload is not in canonical form")
        check_payload(event.type, payload)


def follows(event: Event, seq: int, previous: bytes) -> bool:
    """Whether an event is the next of its chain, with its original payload or an erased one."""
    is_next = event.seq == seq + 1 and entry_hash(previous, event) == event.hash
    return is_next and is_whole(event) and (event.salt is None or event.body is not None)


def reason_of(error: Exception) -> str:
    return error.message if isinstance(error, InvalidInput) else str(error)


# Exceptions that checking an event of a file can raise.
MALFORMED = (*DAMAGE, RecursionError)

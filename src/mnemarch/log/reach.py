"""What an event may touch: what its own project or org has, and only what an earlier event made (R1).

So no file reaches into what is another's, wherever it comes from.
"""

from __future__ import annotations

from mnemarch.errors import InvalidInput
from mnemarch.log.chain import entry_hash, is_whole
from mnemarch.log.shapes import changes_in, check_payload, is_id
from mnemarch.model.caller import Scope, Stream
from mnemarch.model.event import Event, EventType
from mnemarch.model.json_text import canonical_json
from mnemarch.policy.admission import checked_name
from mnemarch.stores.sql.rows import DAMAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from mnemarch.stores.sql.reader import Reader

# These are about a unit, which their subject names.
ABOUT_UNITS = frozenset(type for type in EventType if type.startswith("unit.") and type != EventType.UNIT_ERASED)


class Reach:
    """What the events so far have made; with a reader, also what is stored already."""

    def __init__(self, known: Reader | None = None) -> None:
        self._known = known
        self._events: dict[str, Stream] = {}
        self._keys: set[tuple[str, str, str, str]] = set()
        self._units: dict[str, Scope] = {}
        self._links: set[str] = set()
        self._subjects: dict[str, Stream] = {}

    def __len__(self) -> int:
        return len(self._events)

    def link(self, link_id: str) -> None:
        """A link that no event added: two events made it together."""
        self._links.add(link_id)

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
        return link_id in self._links or (self._known is not None and self._known.link(link_id) is not None)

    def take(self, event: Event) -> None:
        """Raise ValueError unless it stays within its own stream and within what came before."""
        stream, payload = event.stream.shared, event.payload
        _require((event.scope.org, event.scope.project) == (stream.org, stream.project), "its scope is elsewhere")
        _require(self._stream_of(event.id) is None, "its id came before")
        if event.key is not None:
            key = (event.scope.key, str(event.actor), event.key, event.stream.writer)
            _require(key not in self._keys, f"its key {event.key!r} came before")
            self._keys.add(key)
        if event.type is EventType.UNIT_REMEMBERED:
            is_new = is_id(event.subject) and self.scope_of(event.subject or "") is None
            _require(is_new, "its unit came before, or has no id")
            born = Scope.of(payload["unit"]["scope"]) if payload else Scope(org=stream.org, project=stream.project)
            self._put(event, event.subject or "", born)
        elif event.type in ABOUT_UNITS:
            self._require_units(event, [event.subject or ""])
        elif event.type is not EventType.UNIT_ERASED and not event.type.startswith("link."):
            owner = self._owner_of(event.subject or "") if event.subject else None
            is_of_rule = event.type in (EventType.RULE_JUDGED, EventType.RULE_DROPPED)
            _require(not is_of_rule or owner is not None, f"no rule {event.subject} came before")
            owner = self._subjects[event.subject or ""] = owner or stream
            _require(event.subject is None or owner == stream, f"{event.subject} belongs to {owner}")
        if event.type is EventType.LINK_ADDED:
            self._links.add((payload or {}).get("id", event.id))
        elif event.type is EventType.RULE_LEARNED:
            self._subjects[event.id] = stream
        if payload is not None:
            self._check_named(event, payload)
        self._events[event.id] = stream

    def _check_named(self, event: Event, payload: dict[str, Any]) -> None:
        """The units, links and entries that a payload names."""
        if event.type in ABOUT_UNITS and "scope" in payload.get("set", {}):
            self._put(event, event.subject or "", Scope.of(payload["set"]["scope"]))
        match event.type:
            case EventType.LINK_ADDED:
                link = payload["link"]
                self._require_units(event, [link["source"], link["target"], *payload.get("others", ())])
            case EventType.LINK_JOINED | EventType.LINK_RESOLVED:
                _require(self._has_link(payload["link"]), f"no link {payload['link']} came before")
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
        """What a revert of it would bring back is of its own project."""
        self._require_units(event, [*payload["units"], *payload["voices"], *payload.get("restored", ())])
        for fields in changes_in(event.type, payload):
            _require("scope" not in fields or _is_own(event, Scope.of(fields["scope"])), "its scope is elsewhere")
        links = {resolved["link"]: resolved["winner"] for resolved in payload.get("links", ())}
        self._require_units(event, filter(None, links.values()))
        cleared = [ledger["cleared"] for ledger in payload["ledgers"]]
        for id in (*payload["claims"], *payload["requests"], *cleared):
            _require(self._stream_of(id) == event.stream.shared, f"no event {id} of this project came before")
        for id in links:
            is_own = self._stream_of(id) in (event.stream.shared, None) and self._has_link(id)
            _require(is_own, f"no event {id} of this project came before")
        for ledger in payload["ledgers"]:
            owner = self._owner_of(ledger["subject"])
            _require(owner == event.stream.shared, f"{ledger['subject']} belongs to {owner}")

    def _check_erasure(self, event: Event, payload: dict[str, Any]) -> None:
        units = [record["id"] for record in payload["units"]]
        self._require_units(event, units)
        _require(all(map(self._has_link, payload["links"])), "it drops a link that did not come before")
        scopes = list(map(self.scope_of, units))
        is_wide = any(scope is not None and scope.project is None for scope in scopes)
        for event_id in payload["events"]:
            stream = self._stream_of(event_id)
            _require(stream is not None, f"it empties {event_id}, which did not come before")
            own = event.stream.shared
            is_own = stream == own or (is_wide and stream is not None and stream.org == own.org)
            _require(is_own, f"it empties {event_id} of {stream}")

    def _put(self, event: Event, unit_id: str, scope: Scope) -> None:
        self._units[unit_id] = scope
        self._require_units(event, [unit_id])

    def _require_units(self, event: Event, unit_ids: Iterable[str]) -> None:
        for unit_id in unit_ids:
            scope = self.scope_of(unit_id)
            _require(scope is not None, f"no unit {unit_id} came before")
            _require(scope is not None and _is_own(event, scope), f"unit {unit_id} belongs to {scope}")


def _is_own(event: Event, scope: Scope) -> bool:
    return scope.org == event.stream.org and scope.project in (event.stream.project, None)


def check_form(event: Event, bytes_max: int) -> None:
    """Raise ValueError, or InvalidInput, if this can't be an event that an act recorded."""
    _require(is_id(event.id), "its id has a wrong form")
    _require(len(event.payload_hash) == len(event.hash) == 32, "a hash has a wrong form")
    names = {"an actor's id": event.actor.id, "a session": event.session, "a subject": event.subject}
    names |= dict(zip(("an org", "a project", "a worktree", "a task"), event.scope.segments, strict=True))
    for what, name in names.items():
        if name is not None:
            checked_name(name, what)
    if event.body is not None:
        _require(len(event.body.encode()) <= bytes_max, f"its payload is over the limit of {bytes_max} bytes")
        payload = event.payload
        _require(canonical_json(payload) == event.body, "its payload is not in canonical form")
        check_payload(event.type, payload)


def follows(event: Event, seq: int, previous: bytes) -> bool:
    """Whether an event is the next of its chain, with its own payload or none."""
    is_next = event.seq == seq + 1 and entry_hash(previous, event) == event.hash
    return is_next and is_whole(event) and (event.salt is None or event.body is not None)


def problem_of(error: Exception) -> str:
    return error.message if isinstance(error, InvalidInput) else str(error)


# What checking an event of a file can raise.
MALFORMED = (*DAMAGE, RecursionError)

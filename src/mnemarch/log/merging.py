"""Merges the logs of several clones: folds them in one order, and resolves concurrent changes.

Events are ordered by (Lamport time, writer). The order is the same in every clone, and respects causality. Two changes
of a unit are concurrent if neither writer had seen the other's change. If one of them keeps the unit and the other
retires it, the unit stays, and a conflict is open until somebody decides (R5).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from mnemarch.errors import Conflict
from mnemarch.log.projection import project, put
from mnemarch.log.untrusted import MALFORMED, Reach, check_form, follows, reason_of
from mnemarch.model.event import WITHOUT_EFFECT, Event, EventType
from mnemarch.model.json_text import canonical_json, from_json
from mnemarch.model.stamps import blake2b
from mnemarch.model.unit import REPLACEMENT, Kind, Link, LinkType, Status, Unit
from mnemarch.model.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mnemarch.log.audit import Replay
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.stores.sql.transaction import Transaction

_KEEPING = frozenset({EventType.UNIT_APPROVED, EventType.UNIT_REVIVED})
_TAKING = frozenset({EventType.UNIT_REJECTED, EventType.UNIT_ARCHIVED, EventType.UNIT_SUPERSEDED})
# Fields that retiring a unit changes. They are restored if another clone kept the unit.
_OF_RETIREMENT = (
    *("status", "trust", "archived_from", "archive_reason", "superseded_by", "superseded_from"),
    *("valid_to", "valid_to_commit", "contradiction_note"),
)
_DID = {
    EventType.UNIT_APPROVED: "approved",
    EventType.UNIT_REVIVED: "revived",
    EventType.UNIT_REJECTED: "rejected",
    EventType.UNIT_ARCHIVED: "archived",
    EventType.UNIT_SUPERSEDED: "superseded",
}


def joint_id(left: str, right: str) -> str:
    """The id of a link between two things. It is the same in every clone, in whatever order it met them."""
    named = blake2b(canonical_json(sorted((left, right))).encode(), digest_size=16).hexdigest()
    return "-".join((named[:8], named[8:12], named[12:16], named[16:20], named[20:]))


def link_of(opening: Event) -> str:
    """The id of the link that an event opened."""
    return str((opening.payload or {}).get("id", opening.id))


def openings(reader: Reader, link: Link) -> list[Event]:
    """The events that opened a link. Several clones may have opened the same link."""
    about = [event for end in {link.source, link.target} for event in reader.events_of_subject(end)]
    return [event for event in about if event.type is EventType.LINK_ADDED and link_of(event) == link.id]


def opened_by_clones(reader: Reader, change: Event) -> set[str]:
    """The links that a merge opened, because this change excludes a concurrent one of another clone."""
    ends = [end for end in (change.subject, _replacement(change)) if end] if change.stream.writer else []
    links = {link.id for end in ends for link in reader.links_of(end)}
    others = [other for end in ends if links for other in reader.events_of_subject(end)]
    return links.intersection(joint_id(change.id, other.id) for other in others)


def reversed_by(reader: Reader, change: Event) -> Unit | None:
    """The unit that replaced another by this change, if another clone did the reverse. Else None."""
    new = reader.unit(_replacement(change)) if change.stream.writer else None
    others = reader.events_of_subject(new.id) if new is not None and new.erased_at is None else ()
    return new if any(_replacement(other) == change.subject for other in others) else None


class _Change(NamedTuple):
    """A change that keeps or retires a unit, its Lamport time, and the unit before it."""

    event: Event
    lamport: int
    before: Unit | None


class Merge:
    """Folds a whole log from its beginning. For streams without writers it is the plain fold."""

    def __init__(self, target: Transaction | Replay) -> None:
        self._target = target
        self._seen: dict[str, dict[str, int]] = {}
        self._changes: dict[str, list[_Change]] = {}
        self._in_force: dict[str, str] = {}
        self._versions: dict[tuple[str, int], str] = {}

    def on(self, target: Transaction) -> Merge:
        """A copy that continues in another transaction. This object stays valid if that transaction fails."""
        other = Merge(target)
        other._seen = {writer: dict(seen) for writer, seen in self._seen.items()}
        other._changes = {unit_id: list(changes) for unit_id, changes in self._changes.items()}
        other._in_force, other._versions = dict(self._in_force), dict(self._versions)
        return other

    def project(self, event: Event, *, keyed: bool = True) -> None:
        """Apply one event, unless a concurrent change of another clone excludes it or parts of it."""
        if not event.stream.writer:
            if event.type not in WITHOUT_EFFECT:
                project(self._target, event, keyed=keyed)
            return
        lamport, news = from_json(event.clock)
        seen = self._seen.setdefault(event.stream.writer, {})
        seen.update(news)
        if event.type is EventType.UNIT_REMEMBERED:
            event = self._born(event)
        elif event.type is EventType.RECALLED and event.payload is not None:
            event = self._handed_out(event, event.payload)
        elif event.type in _DID and event.payload is not None and not self._is_to_apply(event, lamport, seen):
            return
        project(self._target, event, keyed=keyed)

    def _is_to_apply(self, event: Event, lamport: int, seen: dict[str, int]) -> bool:
        """Whether a change may take effect. Opens a conflict with each concurrent change that it excludes."""
        unit_id = event.subject or ""
        earlier = self._changes.setdefault(unit_id, [])
        unit = self._target.unit(unit_id)
        applies = True
        for other in earlier:
            if not _is_unseen(other, event, seen) or not _excludes(event, other.event):
                continue
            self._open(event, other.event)
            is_first_to_hold = unit is not None and unit.kind is Kind.DECISION
            if event.type in _TAKING or is_first_to_hold:
                applies = False
            elif unit is not None and other.before is not None and not unit.live:
                self._restore(unit, other.before, event.position)
        applies = not self._stands_against_its_reverse(event, seen) and applies
        earlier.append(_Change(event, lamport, unit))
        return applies

    def _stands_against_its_reverse(self, event: Event, seen: dict[str, int]) -> bool:
        """Whether another clone concurrently did the reverse replacement. Then both units stay, in conflict."""
        if event.type is not EventType.UNIT_SUPERSEDED:
            return False
        new = _replacement(event)
        for other in self._changes.get(new, ()):
            if _replacement(other.event) == event.subject and _is_unseen(other, event, seen):
                self._open(event, other.event)
                unit = self._target.unit(new)
                if unit is not None and other.before is not None and unit.superseded_by == event.subject:
                    self._restore(unit, other.before, event.position)
                return True
        return False

    def _restore(self, unit: Unit, before: Unit, position: int) -> None:
        fields = {name: getattr(before, name) for name in _OF_RETIREMENT}
        unit = replace(unit, version=unit.version + 1, **fields)
        put(self._target, unit, searchable_at=position, keyed=False)

    def _open(self, event: Event, other: Event) -> None:
        """Open the conflict of two changes of one unit: between its two replacements, or of the unit with itself."""
        source, target = _replacement(event), _replacement(other)
        if source and source == other.subject:
            note = f"{other.actor} replaced unit {source} with unit {target}, and {event.actor} did the reverse"
        elif source and target:
            note = f"{REPLACEMENT}: unit {target} had already replaced unit {event.subject}"
        else:
            source = target = event.subject or ""
            note = f"{_told(other)} and {_told(event)}, and neither saw the act of the other"
        link = Link(
            id=joint_id(event.id, other.id),
            type=LinkType.CONTRADICTS,
            source=source,
            target=target,
            weight=1.0,
            note=note,
            at=max(event.recorded_at, other.recorded_at),
            open=True,
        )
        self._target.put_link(link)

    def _born(self, event: Event) -> Event:
        """The event of a new unit. A decision's version becomes a hypothesis if another clone made one meanwhile."""
        unit: dict[str, Any] = (event.payload or {}).get("unit", {})
        attributes = unit.get("attributes") or {}
        if unit.get("kind") != Kind.DECISION or "root" not in attributes:
            return event
        root, number = attributes["root"], attributes["version"]
        in_force = self._target.unit(self._in_force.get(root, ""))
        if (root, number) not in self._versions and (in_force is None or not in_force.live):
            self._versions[root, number] = self._in_force[root] = event.subject or ""
            return event
        beside = {name: item for name, item in attributes.items() if name != "root"} | {"beside": root}
        record = unit | {"attributes": beside, "status": str(Status.HYPOTHESIS), "supersedes": None}
        return replace(event, body=canonical_json({"unit": record}))

    def _handed_out(self, event: Event, payload: dict[str, Any]) -> Event:
        """The event of a recall without units that another clone has erased. Their uses were dropped."""
        left = [id for id in payload["units"] if (unit := self._target.unit(id)) is None or unit.erased_at is None]
        return replace(event, body=canonical_json(payload | {"units": left}))


def _excludes(event: Event, other: Event) -> bool:
    if event.type is other.type is EventType.UNIT_SUPERSEDED:
        return _replacement(event) != _replacement(other)
    return (event.type in _KEEPING) != (other.type in _KEEPING)


def _is_unseen(other: _Change, event: Event, seen: dict[str, int]) -> bool:
    writer = other.event.stream.writer
    return writer != event.stream.writer and seen.get(writer, 0) < other.lamport


def _replacement(event: Event) -> str:
    """The id of the new unit in a replacement, or "" for other events."""
    return str((event.payload or {}).get("new", "")) if event.type is EventType.UNIT_SUPERSEDED else ""


def _told(event: Event) -> str:
    return f"{event.actor} {_DID[event.type]} it"


def empty_payloads(transaction: Transaction, erasure: Event) -> list[str]:
    """Empty the entries that an erasure names. Returns its units if any of these entries still had its text."""
    payload, had_text = erasure.payload or {}, False
    for event_id in payload.get("events", ()):
        event = transaction.event(event_id)
        if event is not None and not event.erased:
            transaction.erase_payload(event_id)
            had_text = True
    return [record["id"] for record in payload.get("units", ())] if had_text else []


def fold(
    transaction: Transaction, entries: Sequence[tuple[str, Event]], *, whole: bool, bytes_max: int
) -> list[tuple[str, str]]:
    """Append and project events from files, in order. Returns the refused places, each with the reason.

    Events are checked like an import: their form, their chain, and what they may touch. After a refused line, all
    further lines of its writer are skipped, because they may depend on it.
    """
    reach = Reach(None if whole else transaction)
    merge = Merge(transaction)
    refused: dict[str, tuple[str, str]] = {}
    for place, event in entries:
        stream = event.stream
        if stream.writer in refused:
            continue
        try:
            check_form(event, bytes_max)
            if not follows(event, *transaction.head(stream)):
                raise ValueError("it does not fit the chain: it, the one before it or its payload was changed")
            reach.take(event)
            placed = transaction.append(event, event.hash)
            if placed.type is EventType.UNIT_ERASED:
                empty_payloads(transaction, placed)
            if whole:
                merge.project(placed)
            elif placed.type not in WITHOUT_EFFECT:
                project(transaction, placed)
        except (*MALFORMED, Conflict) as error:
            problem = reason_of(error) if not isinstance(error, Conflict) else error.message
            refused[stream.writer] = place, problem
    return list(refused.values())

"""Logs of several clones as one: in which order they are folded, and what becomes of changes that exclude each other.

The order is (Lamport time, writer), the same in every clone, and never against what a writer had seen. Two changes of a
unit, of which neither writer had seen the other's, are told apart from two in a row by what each writer had seen. If
one keeps the unit and the other takes it away, it stays, and a conflict is open until somebody decides (R5).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from mnemarch.errors import Conflict
from mnemarch.log.projection import project, put
from mnemarch.log.untrusted import MALFORMED, Reach, check_form, follows, problem_of
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
# What a change that takes a unit away sets, and what is put back if another clone kept it.
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
    """The id of what two things make together: the same in every clone, whichever it met first."""
    named = blake2b(canonical_json(sorted((left, right))).encode(), digest_size=16).hexdigest()
    return "-".join((named[:8], named[8:12], named[12:16], named[16:20], named[20:]))


def link_of(opening: Event) -> str:
    """The id of the link that an event opened."""
    return str((opening.payload or {}).get("id", opening.id))


def openings(reader: Reader, link: Link) -> list[Event]:
    """The events that opened a link: one, or one of each clone that did."""
    about = [event for end in {link.source, link.target} for event in reader.events_of_subject(end)]
    return [event for event in about if event.type is EventType.LINK_ADDED and link_of(event) == link.id]


def opened_by_clones(reader: Reader, change: Event) -> set[str]:
    """The links that no event opened: this change and one of another clone exclude each other."""
    ends = [end for end in (change.subject, _replacement(change)) if end] if change.stream.writer else []
    links = {link.id for end in ends for link in reader.links_of(end)}
    others = [other for end in ends if links for other in reader.events_of_subject(end)]
    return links.intersection(joint_id(change.id, other.id) for other in others)


def reversed_by(reader: Reader, change: Event) -> Unit | None:
    """What took the place of a unit, if another clone did the reverse: what it is now follows from both."""
    new = reader.unit(_replacement(change)) if change.stream.writer else None
    others = reader.events_of_subject(new.id) if new is not None and new.erased_at is None else ()
    return new if any(_replacement(other) == change.subject for other in others) else None


class _Change(NamedTuple):
    """A change that keeps a unit or takes it away, its time, and the unit before it."""

    event: Event
    lamport: int
    before: Unit | None


class Merge:
    """Folds a whole log from its beginning. Where streams have one writer, it is the plain fold."""

    def __init__(self, target: Transaction | Replay) -> None:
        self._target = target
        self._seen: dict[str, dict[str, int]] = {}
        self._changes: dict[str, list[_Change]] = {}
        self._in_force: dict[str, str] = {}
        self._versions: dict[tuple[str, int], str] = {}

    def on(self, target: Transaction) -> Merge:
        """One that goes on from here in another transaction; this stays as it is, should that fail."""
        other = Merge(target)
        other._seen = {writer: dict(seen) for writer, seen in self._seen.items()}
        other._changes = {unit_id: list(changes) for unit_id, changes in self._changes.items()}
        other._in_force, other._versions = dict(self._in_force), dict(self._versions)
        return other

    def project(self, event: Event, *, keyed: bool = True) -> None:
        """Apply one event: whole, or as far as what other clones did at the same time allows."""
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
        """Whether a change may take effect; opens a conflict with each one that it excludes and had not seen."""
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
        """Whether another clone put the old unit in the place of the new one: then both stay, in conflict."""
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
        """The conflict of two changes of one unit: between what was to replace it, or of the unit with itself."""
        source, target = _replacement(event), _replacement(other)
        if source and source == other.subject:
            note = f"{other.actor} put unit {target} in the place of unit {source}, and {event.actor} did the reverse"
        elif source and target:
            note = f"{REPLACEMENT}: unit {target} had taken the place of unit {event.subject} already"
        else:
            source = target = event.subject or ""
            note = f"{_told(other)} and {_told(event)}, and neither had seen the other's"
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
        """A version of a decision, of which another clone has made another version meanwhile, stands beside it."""
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
        """A recall without what another clone had erased: nothing is known of who was handed that."""
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
    """The unit that a replacement puts in the place of another; nothing of any other event."""
    return str((event.payload or {}).get("new", "")) if event.type is EventType.UNIT_SUPERSEDED else ""


def _told(event: Event) -> str:
    return f"{event.actor} {_DID[event.type]} it"


def empty_payloads(transaction: Transaction, erasure: Event) -> list[str]:
    """Empty the entries that an erasure names; gives its units, if one of those entries still had its text."""
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
    """Append and project events of files, in their order; gives the places that were refused, each with the reason.

    They are checked like an import: by form, by chain, and by what they may touch. After a line that is refused, no
    further one of its writer is taken: it would rest on what nobody knows.
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
            problem = problem_of(error) if not isinstance(error, Conflict) else error.message
            refused[stream.writer] = place, problem
    return list(refused.values())

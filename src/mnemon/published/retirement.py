"""How a unit leaves: archived and revivable, or erased for good (R13, R16)."""

from __future__ import annotations

from mnemon.errors import InvalidInput
from mnemon.ledger.standing import change
from mnemon.model.event import EventType
from mnemon.model.instant import micros
from mnemon.model.unit import Status, unit_to_json
from mnemon.model.value import value
from mnemon.policy.permissions import Deed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemon.ledger.act import Act
    from mnemon.model.event import Event
    from mnemon.model.unit import Unit

_VERBATIM_CHARS_MIN = 8
_OF_ITS_BIRTH = frozenset({"id", "kind", "content", "domain", "importance", "occurred_at", "recorded_at", "attributes"})


def archive(act: Act, unit_id: str, reason: str, expected_version: int | None, deed: Deed = Deed.ARCHIVE) -> Unit:
    """Take a unit out of recall; nothing is lost."""
    unit = act.changeable_unit(unit_id, expected_version)
    act.require(deed, unit)
    if unit.status is Status.ARCHIVED:
        return unit
    changes = {"status": str(Status.ARCHIVED), "archived_from": str(unit.status), "archive_reason": reason}
    return change(act, EventType.UNIT_ARCHIVED, unit, {"reason": reason, "set": changes})


def prune(act: Act, unit_id: str, reason: str) -> Unit:
    """What retention archives (G24): a deed of its own in the policy."""
    return archive(act, unit_id, reason, None, Deed.PRUNE)


def revive(act: Act, unit_id: str, reason: str, expected_version: int | None) -> Unit:
    """Bring an archived unit back to the status it had."""
    unit = act.changeable_unit(unit_id, expected_version)
    act.require(Deed.REVIVE, unit)
    if unit.status is not Status.ARCHIVED:
        raise InvalidInput(
            f"Unit {unit_id} is {unit.status}, not archived.", hint="Only archived units can be revived."
        )
    changes = {"status": str(unit.archived_from or Status.HYPOTHESIS), "archived_from": None, "archive_reason": None}
    return change(act, EventType.UNIT_REVIVED, unit, {"reason": reason, "set": changes})


@value
class Removal:
    """What an erasure removed from the log and the projections; the files are searched for `contents` afterwards."""

    units: tuple[str, ...]
    events: int
    contents: tuple[str, ...]


def erase(act: Act, unit_id: str, reason: str, expected_version: int | None) -> Removal:
    """Remove a unit's content from everything that holds it: its events, other events and units that quote it.

    An event's hash stays, so the chain still holds. A unit that was made of the content goes too, if this actor may
    erase it; one whose life only mentions it (a reason, say) is restated without those words.
    """
    unit = act.visible_unit(unit_id)
    act.require(Deed.ERASE, unit)
    if unit.erased_at is not None:
        return Removal(units=(unit.id,), events=0, contents=())  # Once more, for files that were busy the first time.
    unit = act.changeable_unit(unit_id, expected_version)
    if unit.content and unit.content in reason:
        raise InvalidInput("The reason repeats what is to be erased.", hint="Say why without quoting the content.")
    gone, touched, doomed = _reach(act, unit)
    contents = tuple(dict.fromkeys(item.content for item in gone.values() if item.content))
    links = {link.id for gone_id in gone for link in act.transaction.links_of(gone_id)}
    payload = {
        "reason": reason,
        "links": sorted(links | {event.id for event in doomed.values() if event.type is EventType.LINK_ADDED}),
        "units": [_remains(item) for item in gone.values()],
        "events": sorted(doomed),
    }
    for event_id in doomed:
        act.transaction.erase_payload(event_id)
    act.record(EventType.UNIT_ERASED, payload, subject=unit.id)
    for other in touched.values():
        act.record(EventType.UNIT_RESTATED, {"set": _restated(other, contents)}, subject=other.id)
    return Removal(units=tuple(gone), events=len(doomed), contents=_provable(act, contents))


def _reach(act: Act, unit: Unit) -> tuple[dict[str, Unit], dict[str, Unit], dict[str, Event]]:
    """What an erasure takes: the units made of the content, those whose lives mention it, and the events to empty."""
    gone = {unit.id: unit}
    touched: dict[str, Unit] = {}
    doomed: dict[str, Event] = {}
    waiting = [unit]
    while waiting:
        for event in _events_about(act, waiting.pop()):
            if event.erased or event.id in doomed or event.type is EventType.UNIT_ERASED:
                continue
            doomed[event.id] = event
            other = act.transaction.unit(event.subject or "")
            if other is None or other.id in gone or other.erased_at is not None:
                continue
            if event.type is EventType.UNIT_REMEMBERED:
                act.require(Deed.ERASE, other)
                gone[other.id] = other
                waiting.append(other)
            elif event.type is not EventType.LINK_ADDED:
                touched[other.id] = other
    return gone, {other_id: other for other_id, other in touched.items() if other_id not in gone}, doomed


def _provable(act: Act, contents: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the erased texts that nobody else's events hold: their bytes must be nowhere any more."""
    return tuple(
        content
        for content in contents
        if len(content) >= _VERBATIM_CHARS_MIN and next(act.transaction.events_containing(content), None) is None
    )


def _events_about(act: Act, unit: Unit) -> list[Event]:
    """The unit's own events, those of its links, and every event that quotes it, if it is long enough for a quote."""
    events = list(act.transaction.events_of_unit(unit.id))
    for link in act.transaction.links_of(unit.id):
        added = act.transaction.event(link.id)
        events += [added] if added is not None else []
        events += act.transaction.events_of_unit(link.id)
    if len(unit.content) >= _VERBATIM_CHARS_MIN:
        quoting = act.transaction.events_containing(unit.content)
        events += [event for event in quoting if event.stream == act.presence.stream]
    return events


def _remains(unit: Unit) -> dict[str, object]:
    return {
        "id": unit.id,
        "kind": str(unit.kind),
        "scope": unit.scope.segments,
        "recorded_at": micros(unit.recorded_at),
        "version": unit.version + 1,
    }


def _restated(unit: Unit, contents: tuple[str, ...]) -> dict[str, object]:
    """Every field of a unit's life as it stands, without the erased words: events that set some are empty now."""
    life = {name: item for name, item in unit_to_json(unit).items() if name not in _OF_ITS_BIRTH}
    for name in ("contradiction_note", "archive_reason"):
        note = life[name]
        for content in contents:
            note = note and note.replace(content, "[ERASED]")
        life[name] = note
    return life | {"version": unit.version + 1}

"""How a unit leaves: archived and revivable, or erased for good (R13, R16)."""

from __future__ import annotations

from mnemon.errors import Conflict, InvalidInput
from mnemon.ledger.guarding import let_leave, let_return
from mnemon.ledger.standing import change, raise_by_evidence
from mnemon.ledger.twins import twin_of
from mnemon.model.event import EventType
from mnemon.model.instant import micros
from mnemon.model.presence import GRAPH_PREFIX
from mnemon.model.unit import Status, unit_to_json
from mnemon.model.value import value
from mnemon.policy.permissions import Deed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Protocol

    from mnemon.ledger.act import Act
    from mnemon.model.event import Event
    from mnemon.model.unit import Unit
    from mnemon.ports import Reader

    class Graphs(Protocol):
        """Those who can tell a graph of the log anew (`graph.log_keeper`)."""

        def without(self, reader: Reader, subject: str, contents: Sequence[str]) -> Sequence[Any]: ...
        def restate(self, act: Act, event: Event, told: Mapping[str, Any], steps: Sequence[Any]) -> None: ...


_VERBATIM_CHARS_MIN = 8
_REPETITIONS = frozenset({EventType.UNIT_MERGED, EventType.UNIT_MENTIONED})
_OF_RELATIONS = frozenset({EventType.RELATION_ADDED, EventType.RELATION_DROPPED})
_OF_ITS_BIRTH = frozenset({"id", "kind", "content", "domain", "importance", "occurred_at", "recorded_at", "attributes"})


def archive(act: Act, unit_id: str, reason: str, expected_version: int | None, deed: Deed = Deed.ARCHIVE) -> Unit:
    """Take a unit out of recall; nothing is lost."""
    unit = act.changeable_unit(unit_id, expected_version)
    act.require(deed, unit)
    if unit.status is Status.ARCHIVED:
        return unit
    let_leave(act, unit)
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
    let_return(act, unit)
    _refuse_twin(act, unit)
    changes = {"status": str(unit.archived_from or Status.HYPOTHESIS), "archived_from": None, "archive_reason": None}
    return raise_by_evidence(act, change(act, EventType.UNIT_REVIVED, unit, {"reason": reason, "set": changes}))


def _refuse_twin(act: Act, unit: Unit) -> None:
    """One fact, one unit: what was said again meanwhile lives already."""
    other = twin_of(act.transaction, unit, unit.scope.key)
    if other is not None:
        raise Conflict(
            f"Unit {unit.id} can't be revived: {other.id} says the same and is live.",
            hint="Use the live one.",
            actual_version=unit.version,
            current=other,
            proposed=unit,
        )


@value
class Removal:
    """What an erasure removed from the log and the projections.

    Files of graphs are rid of `texts` afterwards, and all files searched for `contents`, which nobody else says.
    """

    units: tuple[str, ...]
    events: int
    contents: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


def erase(act: Act, unit_id: str, reason: str, expected_version: int | None, graphs: Graphs) -> Removal:
    """Remove a unit's content from everything that holds it: its events, other events and units that quote it.

    An event's hash stays, so the chain still holds. A unit that was made of the content goes too, if this actor may
    erase it; one whose life only mentions it (a reason, say) is restated without those words.
    """
    unit = act.visible_unit(unit_id)
    act.require(Deed.ERASE, unit)
    if unit.erased_at is not None:
        return Removal(units=(unit.id,), events=0)  # Once more, for files that were busy the first time.
    unit = act.changeable_unit(unit_id, expected_version)
    let_leave(act, unit)
    if unit.content and unit.content in reason:
        raise InvalidInput("The reason repeats what is to be erased.", hint="Say why without quoting the content.")
    gone, touched, doomed = _reach(act, unit)
    contents = tuple(dict.fromkeys(item.content for item in gone.values() if item.content))
    links = {link.id for gone_id in gone for link in act.transaction.links_of(gone_id)}
    payload: dict[str, Any] = {
        "reason": reason,
        "links": sorted(links | {event.id for event in doomed.values() if event.type is EventType.LINK_ADDED}),
        "units": [_remains(item) for item in gone.values()],
        "events": sorted(doomed),
    }
    told = {event.id: event.payload or {} for event in doomed.values()}
    texts = _all_spellings(gone, doomed)
    quoting = _graphs_without(act, texts, doomed, graphs)
    for event_id in doomed:
        act.transaction.erase_payload(event_id)
    act.record(EventType.UNIT_ERASED, payload, subject=unit.id)
    for other in touched.values():
        act.record(EventType.UNIT_RESTATED, {"set": _restated(other, contents)}, subject=other.id)
    for event in doomed.values():
        _restate_outcome(act, event, told[event.id], set(payload["links"]), contents)
    _restate_relations(act, [told[event.id] for event in doomed.values() if event.type in _OF_RELATIONS])
    for event, steps in quoting:
        graphs.restate(act, event, told[event.id], steps)
    return Removal(units=tuple(gone), events=len(doomed), contents=_provable(act, contents), texts=texts)


def _all_spellings(gone: dict[str, Unit], doomed: dict[str, Event]) -> tuple[str, ...]:
    own = {unit_id: [event for event in doomed.values() if event.subject == unit_id] for unit_id in gone}
    return tuple(text for unit in gone.values() for text in _spellings(unit, own[unit.id]))


def _graphs_without(
    act: Act, texts: Sequence[str], doomed: dict[str, Event], graphs: Graphs
) -> list[tuple[Event, Sequence[Any]]]:
    """For each graph that quotes an erased text, its last such event and the graph without the text."""
    quoting = {event.subject: event for event in doomed.values() if (event.subject or "").startswith(GRAPH_PREFIX)}
    return [(event, graphs.without(act.transaction, subject or "", texts)) for subject, event in quoting.items()]


def _restate_outcome(
    act: Act, event: Event, told: dict[str, Any], dropped_links: set[str], contents: tuple[str, ...]
) -> None:
    """What an emptied entry decided and what still holds is said again without the words: a replay must come to it."""
    if event.type is EventType.LINK_RESOLVED and told["link"] not in dropped_links:
        restated = {"link": told["link"], "winner": told["winner"], "reason": "[ERASED]"}
        act.record(EventType.LINK_RESOLVED, restated, subject=told["link"])
    if event.type is EventType.TASK_VERIFIED:
        tests = [name for name in told["tests"] if not any(content in name for content in contents)]
        act.record(EventType.TESTS_RESTATED, {"passed": told["passed"], "tests": tests})


def _restate_relations(act: Act, told: Sequence[Mapping[str, Any]]) -> None:
    """Relations are a root's, and outlive the version that has its id: what held of each is said again."""
    for source, type, target in dict.fromkeys((each["source"], each["type"], each["target"]) for each in told):
        holds = any((one.type, one.target) == (type, target) for one in act.transaction.relations_from([source]))
        payload = {"source": source, "type": type, "target": target}
        act.record(EventType.RELATION_ADDED if holds else EventType.RELATION_DROPPED, payload, subject=source)


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
                let_leave(act, other)
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
    events = list(act.transaction.events_of_subject(unit.id))
    for link in act.transaction.links_of(unit.id):
        added = act.transaction.event(link.id)
        events += [added] if added is not None else []
        events += act.transaction.events_of_subject(link.id)
    lived_in = {event.stream for event in events} | {act.presence.stream}
    for text in _spellings(unit, events):
        events += [event for event in act.transaction.events_containing(text) if event.stream in lived_in]
    return events


def _spellings(unit: Unit, events: list[Event]) -> list[str]:
    """The unit's text as its author and everybody who repeated it wrote it, where it is long enough for a quote."""
    said = (str((event.payload or {}).get("said", "")) for event in events if event.type in _REPETITIONS)
    return [text for text in dict.fromkeys((unit.content, *said)) if len(text) >= _VERBATIM_CHARS_MIN]


def _remains(unit: Unit) -> dict[str, object]:
    return {
        "id": unit.id,
        "kind": str(unit.kind),
        "scope": unit.scope.segments,
        "recorded_at": micros(unit.recorded_at),
        "version": unit.version + 1,
    }


def _restated(unit: Unit, contents: tuple[str, ...]) -> dict[str, Any]:
    """Every field of a unit's life as it stands, without the erased words: events that set some are empty now."""
    life = {name: item for name, item in unit_to_json(unit).items() if name not in _OF_ITS_BIRTH}
    for name in ("contradiction_note", "archive_reason"):
        note = life[name]
        for content in contents:
            note = note and note.replace(content, "[ERASED]")
        life[name] = note
    quoting = {item.ref for item in unit.citations if any(content in item.ref for content in contents)}
    life["citations"] = [item for item in life["citations"] if item["ref"] not in quoting]
    return life | {"version": unit.version + 1}

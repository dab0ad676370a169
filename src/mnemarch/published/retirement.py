"""How a unit leaves: archived and revivable, or erased for good (R13, R16)."""

from __future__ import annotations

from mnemarch.errors import Conflict, InvalidInput, NotFound
from mnemarch.ledger.guarding import let_leave, let_return
from mnemarch.ledger.standing import change, raise_by_evidence
from mnemarch.ledger.twins import twin_of
from mnemarch.model.actor import checked_id
from mnemarch.model.event import EventType
from mnemarch.model.instant import micros
from mnemarch.model.presence import GRAPH_PREFIX
from mnemarch.model.unit import Kind, Status, unit_to_json
from mnemarch.model.value import value
from mnemarch.policy.permissions import Deed
from mnemarch.text.canonical import canonical_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Protocol

    from mnemarch.ledger.act import Act
    from mnemarch.model.event import Event, Stream
    from mnemarch.model.unit import Unit
    from mnemarch.ports import Reader

    class Graphs(Protocol):
        """Those who can tell a graph of the log anew, and rid its files of a text (`graph.log_keeper`)."""

        def without(self, reader: Reader, subject: str, contents: Sequence[str]) -> Sequence[Any]: ...
        def restate(self, act: Act, event: Event, told: Mapping[str, Any], steps: Sequence[Any]) -> None: ...
        def forget_in_files(self, contents: Sequence[str]) -> int: ...


_VERBATIM_CHARS_MIN = 8
_NAMED_MAX = 5
# Nobody's own statements: what happened, and what was seen.
_COPIES = frozenset({Kind.EPISODE, Kind.SKILL, Kind.EVIDENCE})
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
    """What an erasure removed from the log, the projections and the files of graphs, of which so many were searched.

    All other files are to be searched for `contents`, which nobody else says.
    """

    units: tuple[str, ...]
    events: int
    contents: tuple[str, ...] = ()
    files: int = 0


def erase(
    act: Act, target_id: str, reason: str, expected_version: int | None, graphs: Graphs, *, quoting: bool
) -> Removal:
    """Remove the content of a unit, or of an entry of the log, from everything that holds it (R16).

    An event's hash stays, so the chain still holds. What was made of the content goes too; a unit whose life only
    mentions it (a reason, say) is restated without those words. A unit that says it in a statement of its own goes
    only if those are meant as well (`quoting`), and if this actor may erase it.
    """
    unit = act.transaction.unit(checked_id(target_id, "an id"))
    if unit is None:
        entry = _entry(act, target_id)
        return _removed(act, _Reach(act, _texts_of(entry), quoting).from_entry(entry), entry.id, reason, graphs)
    unit = act.visible_unit(target_id)
    act.require(Deed.ERASE, unit)
    if unit.erased_at is not None:
        return Removal(units=(unit.id,), events=0)  # Once more, for files that were busy the first time.
    unit = act.changeable_unit(target_id, expected_version)
    let_leave(act, unit)
    return _removed(act, _Reach(act, [unit.content], quoting).from_unit(unit), unit.id, reason, graphs)


def _entry(act: Act, event_id: str) -> Event:
    """The entry of the log with this id, if this actor may erase it."""
    event = act.transaction.event(event_id)
    if event is None or event.stream != act.presence.stream or event.scope.key not in act.presence.visible_keys:
        raise NotFound(
            f"No unit {event_id!r} here, and no entry of the log.",
            hint="Check the id, and that the seat's scope can see it.",
        )
    if event.type is not EventType.LOGGED or event.erased:
        raise InvalidInput(
            f"Event {event_id} is {'erased already' if event.erased else event.type}, not an entry of the log.",
            hint="Erase the unit that it is about, or an entry that `log` made.",
        )
    act.require_at(Deed.ERASE, event.scope.level, f"{Deed.ERASE} entry {event.id}")
    return event


def _texts_of(entry: Event) -> list[str]:
    return [str((entry.payload or {}).get("text", ""))]


def _removed(act: Act, reach: _Reach, subject: str, reason: str, graphs: Graphs) -> Removal:
    gone, doomed = reach.gone, reach.doomed
    contents = tuple(dict.fromkeys(text for text in (*reach.texts, *(item.content for item in gone.values())) if text))
    if any(content in reason for content in contents):
        raise InvalidInput("The reason repeats what is to be erased.", hint="Say why without quoting the content.")
    links = {link.id for gone_id in gone for link in act.transaction.links_of(gone_id)}
    payload: dict[str, Any] = {
        "reason": reason,
        "links": sorted(links | {event.id for event in doomed.values() if event.type is EventType.LINK_ADDED}),
        "units": [_remains(item) for item in gone.values()],
        "events": sorted(doomed),
    }
    told = {event.id: event.payload or {} for event in doomed.values()}
    texts = (*_long_enough(reach.texts), *_all_spellings(gone, doomed))
    quoting = _graphs_without(act, texts, doomed, graphs)
    # Before anything is gone from the log: it alone knows what the files are to be searched for.
    files = graphs.forget_in_files(texts)
    for event_id in doomed:
        act.transaction.erase_payload(event_id)
    act.record(EventType.UNIT_ERASED, payload, subject=subject)
    for other in reach.touched.values():
        act.record(EventType.UNIT_RESTATED, {"set": _restated(other, contents)}, subject=other.id)
    for event in doomed.values():
        _restate_outcome(act, event, told[event.id], set(payload["links"]), contents)
    _restate_relations(act, [told[event.id] for event in doomed.values() if event.type in _OF_RELATIONS])
    for event, steps in quoting:
        graphs.restate(act, event, told[event.id], steps)
    return Removal(units=tuple(gone), events=len(doomed), contents=_provable(act, contents), files=files)


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


class _Reach:
    """What an erasure takes: the units made of the content, those whose lives mention it, and the events to empty."""

    def __init__(self, act: Act, texts: list[str], quoting: bool) -> None:
        self._act = act
        self._quoting = quoting
        self.texts = texts
        self._said = {canonical_key(text) for text in texts}
        self._quoted_in: dict[str, Unit] = {}
        self._touched: dict[str, Unit] = {}
        self.gone: dict[str, Unit] = {}
        self.doomed: dict[str, Event] = {}

    def from_unit(self, unit: Unit) -> _Reach:
        self.gone[unit.id] = unit
        return self._followed(_events_about(self._act, unit))

    def from_entry(self, entry: Event) -> _Reach:
        texts = _long_enough(self.texts)
        return self._followed([entry, *_quoting(self._act, texts, {entry.stream})])

    def _followed(self, events: list[Event]) -> _Reach:
        while events:
            event = events.pop()
            if event.erased or event.id in self.doomed or event.type is EventType.UNIT_ERASED:
                continue
            other = self._act.transaction.unit(event.subject or "")
            if other is None or other.id in self.gone or other.erased_at is not None:
                self.doomed[event.id] = event
            elif event.type is not EventType.UNIT_REMEMBERED:
                self.doomed[event.id] = event
                self._touched |= {} if event.type is EventType.LINK_ADDED else {other.id: other}
            elif self._quoting or other.kind in _COPIES or canonical_key(other.content) in self._said:
                self._act.require(Deed.ERASE, other)
                let_leave(self._act, other)
                self.doomed[event.id] = event
                self.gone[other.id] = other
                events += _events_about(self._act, other)
            else:
                self._quoted_in[other.id] = other
        if self._quoted_in:
            raise _still_quoted(self._quoted_in, self._act.presence.visible_keys)
        return self

    @property
    def touched(self) -> dict[str, Unit]:
        return {other_id: other for other_id, other in self._touched.items() if other_id not in self.gone}


def _still_quoted(units: Mapping[str, Unit], visible_keys: Sequence[str]) -> InvalidInput:
    seen = sorted(unit.id for unit in units.values() if unit.scope.key in visible_keys)
    named = ", ".join(seen[:_NAMED_MAX]) + (" and others" if len(seen) > _NAMED_MAX or len(seen) < len(units) else "")
    return InvalidInput(
        f"{len(units)} other unit(s) say this within statements of their own: {named.removeprefix(' and ')}.",
        hint="Nothing was erased. Erase them along with it: quoting=True.",
    )


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
    return events + _quoting(act, _spellings(unit, events), lived_in)


def _quoting(act: Act, texts: Sequence[str], lived_in: set[Stream]) -> list[Event]:
    found = (event for text in texts for event in act.transaction.events_containing(text))
    return [event for event in found if event.stream in lived_in]


def _spellings(unit: Unit, events: list[Event]) -> list[str]:
    """The unit's text as its author and everybody who repeated it wrote it, where it is long enough for a quote."""
    said = (str((event.payload or {}).get("said", "")) for event in events if event.type in _REPETITIONS)
    return _long_enough(dict.fromkeys((unit.content, *said)))


def _long_enough(texts: Iterable[str]) -> list[str]:
    return [text for text in texts if len(text) >= _VERBATIM_CHARS_MIN]


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

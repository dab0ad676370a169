"""Erasure, the one true deletion (R16): `planned` finds what has to go, `carry_out` removes it from the log."""

from __future__ import annotations

from mnemarch.errors import Hint, InvalidInput, NotFound
from mnemarch.model.caller import checked_id
from mnemarch.model.event import EventType
from mnemarch.model.stamps import micros
from mnemarch.model.unit import unit_to_json
from mnemarch.policy.kinds import kinds_where
from mnemarch.policy.permissions import Deed
from mnemarch.text.canonical import canonical_key
from mnemarch.units.conflicts import link_units

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from mnemarch.log.act import Act
    from mnemarch.model.caller import Stream
    from mnemarch.model.event import Event
    from mnemarch.model.unit import Link, Unit

# Shorter texts stand in events by chance.
_QUOTE_CHARS_MIN = 8
_NAMED_MAX = 5
_QUOTING_KINDS = kinds_where(lambda rules: rules.is_quote)
_REPETITIONS = frozenset({EventType.UNIT_MERGED, EventType.UNIT_MENTIONED})
_OF_RELATIONS = frozenset({EventType.RELATION_ADDED, EventType.RELATION_DROPPED})
_FIXED_AT_BIRTH = frozenset(
    {"id", "kind", "content", "domain", "importance", "occurred_at", "recorded_at", "attributes"}
)


class Plan:
    """What an erasure takes: units, the events to empty, and units that only mention the text and are restated."""

    def __init__(self, act: Act, subject: str, texts: Sequence[str], *, quoting: bool) -> None:
        self.subject = subject
        self.units: dict[str, Unit] = {}
        self.events: dict[str, Event] = {}
        self._act = act
        self._texts = texts
        self._keys = {canonical_key(text) for text in texts}
        self._includes_quoting = quoting
        self._quoting_units: dict[str, Unit] = {}
        self._mentioning: dict[str, Unit] = {}

    @property
    def contents(self) -> tuple[str, ...]:
        """The erased texts, each once."""
        texts = (*self._texts, *(unit.content for unit in self.units.values()))
        return tuple(dict.fromkeys(text for text in texts if text))

    @property
    def spellings(self) -> tuple[str, ...]:
        """The erased texts as everybody wrote them, where they are long enough to be found as quotes."""
        events = list(self.events.values())
        spelled = (
            text
            for unit in self.units.values()
            for text in _spellings(unit, [event for event in events if event.subject == unit.id])
        )
        return (*_long_enough(self._texts), *spelled)

    @property
    def mentioning(self) -> list[Unit]:
        return [unit for unit in self._mentioning.values() if unit.id not in self.units]

    def follow(self, events: list[Event]) -> Plan:
        """Add these events and, unit by unit, what was made of the text."""
        while events:
            event = events.pop()
            if event.erased or event.id in self.events or event.type is EventType.UNIT_ERASED:
                continue
            unit = self._act.transaction.unit(event.subject or "")
            if unit is None or unit.id in self.units or unit.erased_at is not None:
                self.events[event.id] = event
                if event.type in {EventType.LOGGED, EventType.RULE_LEARNED}:
                    events += _of_rules(self._act, event.id)
            elif event.type is not EventType.UNIT_REMEMBERED:
                self.events[event.id] = event
                self._mentioning |= {} if event.type is EventType.LINK_ADDED else {unit.id: unit}
            elif self._is_made_of_it(unit):
                self._act.require(Deed.ERASE, unit)
                self.events[event.id] = event
                self.units[unit.id] = unit
                events += _events_about(self._act, unit)
            else:
                self._quoting_units[unit.id] = unit
        if self._quoting_units:
            raise _still_quoted(self._quoting_units, self._act.caller.visible_keys)
        return self

    def _is_made_of_it(self, unit: Unit) -> bool:
        return self._includes_quoting or unit.kind in _QUOTING_KINDS or canonical_key(unit.content) in self._keys


def planned(act: Act, target_id: str, expected_version: int | None, *, quoting: bool) -> Plan | None:
    """What erasing a unit, or an entry of the log, takes; None if the unit is erased already.

    A unit that says the text within a statement of its own goes only if those are meant as well (`quoting`).
    """
    unit = act.transaction.unit(checked_id(target_id, "an id"))
    if unit is None:
        entry = _entry(act, target_id)
        plan = Plan(act, entry.id, [str((entry.payload or {}).get("text", ""))], quoting=quoting)
        return plan.follow([entry, *_quoting(act, plan.spellings, {entry.stream})])
    unit = act.visible_unit(target_id)
    act.require(Deed.ERASE, unit)
    if unit.erased_at is not None:
        return None
    unit = act.changeable_unit(target_id, expected_version)
    plan = Plan(act, unit.id, [unit.content], quoting=quoting)
    plan.units[unit.id] = unit
    return plan.follow(_events_about(act, unit))


def _entry(act: Act, event_id: str) -> Event:
    """The entry of the log with this id, if this actor may erase it."""
    event = act.transaction.event(event_id)
    if event is None or event.stream != act.caller.stream or event.scope.key not in act.caller.visible_keys:
        raise NotFound(
            f"No unit {event_id!r} here, and no entry of the log.",
            hint="Check the id, and that the seat's scope can see it.",
        )
    if event.type not in {EventType.LOGGED, EventType.RULE_LEARNED} or event.erased:
        raise InvalidInput(
            f"Event {event_id} is {'erased already' if event.erased else event.type}, not an entry of the log.",
            hint="Erase the unit that it is about, a code rule, or an entry that `log` made.",
        )
    act.require_at(Deed.ERASE, event.scope.level, f"{Deed.ERASE} entry {event.id}")
    return event


def carry_out(act: Act, plan: Plan, reason: str) -> tuple[str, ...]:
    """Empty the events, leave tombstones, and say again without the text what still holds.

    Gives the texts that no event holds any more: no file may hold them either.
    """
    contents = plan.contents
    if any(content in reason for content in contents):
        raise InvalidInput("The reason repeats what is to be erased.", hint="Say why without quoting the content.")
    links = {link.id for unit_id in plan.units for link in act.transaction.links_of(unit_id)}
    links |= {event.id for event in plan.events.values() if event.type is EventType.LINK_ADDED}
    conflicts = _conflicts_left(act, links, plan)
    payloads = {event.id: event.payload or {} for event in plan.events.values()}
    for event_id in plan.events:
        act.transaction.erase_payload(event_id)
    record = {
        "reason": reason,
        "links": sorted(links),
        "units": [_tombstone(unit) for unit in plan.units.values()],
        "events": sorted(plan.events),
    }
    act.record(EventType.UNIT_ERASED, record, subject=plan.subject)
    for unit in plan.mentioning:
        act.record(EventType.UNIT_RESTATED, {"set": _restated(unit, contents)}, subject=unit.id)
    for event in plan.events.values():
        _restate_outcome(act, event, payloads[event.id], links, contents)
    for link, (first, second, *others) in conflicts:
        again = link_units(act, first, second, link.type, link.weight, "a member was erased", others)
        if not link.open:
            payload = {"link": again.id, "winner": link.winner, "reason": "[ERASED]"}
            act.record(EventType.LINK_RESOLVED, payload, subject=again.id)
    _restate_relations(act, [payloads[event.id] for event in plan.events.values() if event.type in _OF_RELATIONS])
    return tuple(text for text in contents if len(text) >= _QUOTE_CHARS_MIN and not _is_anywhere(act, text))


def _conflicts_left(act: Act, link_ids: set[str], plan: Plan) -> list[tuple[Link, list[str]]]:
    """The conflicts that still have two members or more when these units are gone."""
    known = [link for link_id in sorted(link_ids) if (link := act.transaction.link(link_id)) is not None]
    members = {
        link.id: [unit_id for unit_id in act.transaction.units_of_link(link.id) if unit_id not in plan.units]
        for link in known
        if link.winner not in plan.units
    }
    return [(link, members[link.id]) for link in known if len(members.get(link.id, ())) > 1]


def _is_anywhere(act: Act, text: str) -> bool:
    return next(act.transaction.events_containing(text), None) is not None


def _restate_outcome(
    act: Act, event: Event, payload: dict[str, Any], dropped_links: set[str], contents: tuple[str, ...]
) -> None:
    """Record the outcome of an emptied event again, without the text: a replay must come to the same."""
    if event.type is EventType.LINK_RESOLVED and payload["link"] not in dropped_links:
        restated = {"link": payload["link"], "winner": payload["winner"], "reason": "[ERASED]"}
        act.record(EventType.LINK_RESOLVED, restated, subject=payload["link"])
    if event.type is EventType.RECALLED:
        units = [unit.id for unit in act.transaction.units(payload["units"]).values() if unit.erased_at is None]
        act.record(EventType.RECALLED, {"units": units, "task_key": payload.get("task_key") or event.scope.key})
    if event.type is EventType.TASK_VERIFIED:
        tests = {
            outcome: [name for name in names if not any(content in name for content in contents)]
            for outcome, names in payload["tests"].items()
        }
        kept = {name: payload[name] for name in ("passed", "witnessed", "places", "tree")}
        act.record(EventType.TESTS_RESTATED, kept | {"tests": tests})


def _restate_relations(act: Act, payloads: Sequence[Mapping[str, Any]]) -> None:
    """Record relations again as they hold: they belong to a decision's root and outlive one version."""
    for source, type, target in dict.fromkeys((each["source"], each["type"], each["target"]) for each in payloads):
        holds = any((one.type, one.target) == (type, target) for one in act.transaction.relations_from([source]))
        payload = {"source": source, "type": type, "target": target}
        act.record(EventType.RELATION_ADDED if holds else EventType.RELATION_DROPPED, payload, subject=source)


def _still_quoted(units: Mapping[str, Unit], visible_keys: Sequence[str]) -> InvalidInput:
    seen = sorted(unit.id for unit in units.values() if unit.scope.key in visible_keys)
    named = ", ".join(seen[:_NAMED_MAX]) + (" and others" if len(seen) > _NAMED_MAX or len(seen) < len(units) else "")
    return InvalidInput(
        f"{len(units)} other unit(s) say this within statements of their own: {named.removeprefix(' and ')}.",
        hint=Hint("erase what quotes it"),
    )


def _events_about(act: Act, unit: Unit) -> list[Event]:
    """The unit's own events, those of its links, and every event that quotes it."""
    events = list(act.transaction.events_of_subject(unit.id))
    for link in act.transaction.links_of(unit.id):
        added = act.transaction.event(link.id)
        events += [added] if added is not None else []
        events += act.transaction.events_of_subject(link.id)
    streams = {event.stream for event in events} | {act.caller.stream}
    # A question that the unit answered may hold its words.
    asked = [event for event in act.transaction.events_containing(unit.id) if event.type is EventType.RECALLED]
    return events + asked + _quoting(act, _spellings(unit, events), streams)


def _of_rules(act: Act, event_id: str) -> list[Event]:
    """What happened to the code rule that an event learned, and the rules that were learned with its help."""
    named = act.transaction.events_containing(event_id)
    rules = {EventType.RULE_LEARNED, EventType.RULE_JUDGED}
    judged = [event for event in act.transaction.events_of_subject(event_id) if event.type in rules]
    return judged + [event for event in named if event.type in rules]


def _quoting(act: Act, texts: Sequence[str], streams: set[Stream]) -> list[Event]:
    events = (event for text in texts for event in act.transaction.events_containing(text))
    return [event for event in events if event.stream in streams]


def _spellings(unit: Unit, events: list[Event]) -> list[str]:
    """The unit's text as its author and everybody who repeated it wrote it."""
    repeated = (str((event.payload or {}).get("said", "")) for event in events if event.type in _REPETITIONS)
    return _long_enough(dict.fromkeys((unit.content, *repeated)))


def _long_enough(texts: Iterable[str]) -> list[str]:
    return [text for text in texts if len(text) >= _QUOTE_CHARS_MIN]


def _tombstone(unit: Unit) -> dict[str, object]:
    return {
        "id": unit.id,
        "kind": str(unit.kind),
        "scope": unit.scope.segments,
        "recorded_at": micros(unit.recorded_at),
        "version": unit.version + 1,
    }


def _restated(unit: Unit, contents: tuple[str, ...]) -> dict[str, Any]:
    """Every changeable field of a unit as it stands, without the erased text: the events that set them are empty."""
    fields = {name: item for name, item in unit_to_json(unit).items() if name not in _FIXED_AT_BIRTH}
    for name in ("contradiction_note", "archive_reason"):
        note = fields[name]
        for content in contents:
            note = note and note.replace(content, "[ERASED]")
        fields[name] = note
    quoting = {item.ref for item in unit.citations if any(content in item.ref for content in contents)}
    fields["citations"] = [item for item in fields["citations"] if item["ref"] not in quoting]
    return fields | {"version": unit.version + 1}

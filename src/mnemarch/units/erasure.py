"""Erasure: `planned` finds a unit or a log entry and everything derived from it, `carry_out` removes it (R16)."""

from __future__ import annotations

from mnemarch.errors import Hint, InvalidInput, NotFound
from mnemarch.log.merging import link_of, opened_by_clones, openings, reversed_by
from mnemarch.model.caller import checked_id
from mnemarch.model.event import Event, EventType
from mnemarch.model.stamps import micros
from mnemarch.model.unit import Kind, Link, Unit, waiting_key
from mnemarch.model.upkeep import Copy
from mnemarch.policy.permissions import Deed
from mnemarch.text.canonical import copy_needles, is_copy, merge_key, mergeable, repeats
from mnemarch.text.fingerprint import telling_line
from mnemarch.text.words import in_a_line
from mnemarch.units.conflicts import link_units

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from mnemarch.log.act import Act
    from mnemarch.model.testrun import TestRecord

_ERASED = "[ERASED]"
# Events with text of their own. All other events belong to a unit, a link or a graph, and are erased with it.
_ENTRIES = frozenset(
    {
        EventType.LOGGED,
        EventType.CLAIM_REFUSED,
        EventType.ACT_REFUSED,
        EventType.RECALLED,
        EventType.TASK_VERIFIED,
        EventType.ATTEMPT_FAILED,
        EventType.TASK_STUCK,
        EventType.DECISION_REQUESTED,
        EventType.RULE_LEARNED,
    }
)
# Entries that units can cite, and that episodes are made of.
_STAGED = frozenset({EventType.LOGGED, EventType.CLAIM_REFUSED, EventType.ATTEMPT_FAILED, EventType.RULE_LEARNED})
# Erased with any unit or entry that they name: questions, and code rules that an entry taught.
_BY_NAME = frozenset({EventType.RECALLED, EventType.RULE_LEARNED})
# The events that hold the text of a unit.
_CONTENT = frozenset({EventType.UNIT_REMEMBERED, EventType.UNIT_MERGED, EventType.UNIT_MENTIONED})
_OF_RELATIONS = frozenset({EventType.RELATION_ADDED, EventType.RELATION_DROPPED})
_OF_GRAPHS = frozenset({EventType.GRAPH_CHANGED, EventType.GRAPH_RESTATED})
# Kinds that the program makes of a task's entries. It keeps at least this many characters of a long entry.
_MADE_OF_ENTRIES = frozenset({Kind.EPISODE, Kind.SKILL})
_KEPT_CHARS_MIN = 200
_PIECE_CHARS_MIN = 8
# Somebody decided these. They are erased only if they are named, even if they repeat an erased text.
_DECIDED = frozenset({Kind.DECISION, Kind.POLICY, Kind.ANCHOR})
# Parts of a payload that hold text, and fields in them that hold the program's own names and nobody's text.
_HOLDERS = ("unit", "claim", "proposal", "link", "set")
_LABELS = frozenset(
    {"kind", "status", "type", "level", "domain", "rule", "scope", "trust", "proof", "places", "tree", "runner"}
    | {"task_key", "agent", "session", "act", "fingerprint", "verdict", "strength", "what", "use", "first", "tells"}
)
_FIXED = frozenset({"id", "kind", "content", "domain", "importance", "occurred_at", "recorded_at", "attributes"})


class Plan:
    """The extent of an erasure: units, events to empty, and units that stay although events of theirs are emptied."""

    def __init__(self, act: Act, target: Unit | Event) -> None:
        self.subject = target.id
        self.units: dict[str, Unit] = {}
        self.events: dict[str, Event] = {}
        self._act = act
        self._mentioning: dict[str, Unit] = {}
        self.texts = _spellings(act, target) if isinstance(target, Unit) else _texts_of(target)
        self.take(target)

    @property
    def mentioning(self) -> list[Unit]:
        return [unit for unit in self._mentioning.values() if unit.id not in self.units]

    def take(self, target: Unit | Event) -> None:
        """Add a unit or an event, and everything derived from it."""
        if isinstance(target, Unit):
            self._take_unit(target)
        else:
            self._take_event(target)

    def _take_unit(self, unit: Unit) -> None:
        """Add a unit with its events, its links, questions that it answered, units merged with it, and its quotes."""
        if unit.id in self.units or unit.erased_at is not None:
            return
        reader = self._act.transaction
        self._act.require(Deed.ERASE, unit)
        self.units[unit.id] = unit
        own = list(reader.events_of_subject(unit.id))
        for link in reader.links_of(unit.id):
            own += [*openings(reader, link), *reader.events_of_subject(link.id)]
        told = [event for event in own if event.type in _CONTENT]
        for event in (*own, *_refusals_of(self._act, told)):
            self._take_event(event)
        self._take_quotes([unit.id, *(event.id for event in told)], _spellings(self._act, unit))
        for twin in reader.units_saying(self._act.caller.stream, merge_key(unit.content)):
            is_folded = unit.id == twin.superseded_by or twin.id == unit.superseded_by
            if is_folded and mergeable(twin.content) == mergeable(unit.content):
                self._take_unit(twin)

    def _take_event(self, event: Event) -> None:
        if event.erased or event.id in self.events or event.type is EventType.UNIT_ERASED:
            return
        unit = self._act.transaction.unit(event.subject or "")
        if unit is not None and unit.erased_at is None and unit.id not in self.units:
            if event.type is EventType.UNIT_REMEMBERED:
                self._take_unit(unit)
                return
            if event.type is not EventType.LINK_ADDED:
                self._mentioning[unit.id] = unit
        self.events[event.id] = event
        if (reverse := reversed_by(self._act.transaction, event)) is not None:
            self._mentioning[reverse.id] = reverse
        if event.type in _STAGED:
            self._take_quotes([event.id], _texts_of(event))
            for made in self._made_of(event):
                self._take_unit(made)

    def _take_quotes(self, ids: Sequence[str], texts: Sequence[str]) -> None:
        """Add units that cite one of these ids and repeat the text, and questions that name one of the ids."""
        search, stream = self._act.transaction.events_containing, self._act.caller.stream
        for event in (event for id in ids for event in search(id, stream)):
            unit = self._act.transaction.unit(event.subject or "")
            if unit is not None and unit.kind not in _DECIDED:
                attributes = list(_strings(dict(unit.attributes)))
                cites = not {*attributes, *(citation.ref for citation in unit.citations)}.isdisjoint(ids)
                if cites and (unit.is_derived or any(_has_copy(texts, said) for said in (unit.content, *attributes))):
                    self._take_unit(unit)
            elif event.type in _BY_NAME or (unit is None and _repeats_any(texts, _said(event))):
                self._take_event(event)

    def _made_of(self, entry: Event) -> Iterator[Unit]:
        """The episodes and skills of the entry's task that repeat any piece of the entry."""
        parts = [*_strings((entry.payload or {}).get("data")), *map(telling_line, _texts_of(entry))]
        long = [part for part in parts if len(part) >= _PIECE_CHARS_MIN]
        pieces = [_beginning(text) for text in (*_texts_of(entry), *long)]
        for event in self._act.transaction.events_of_scope(entry.scope.key, [EventType.UNIT_REMEMBERED]):
            is_later = event.position > entry.position and _kind_of(event) in _MADE_OF_ENTRIES
            unit = self._act.transaction.unit(event.subject or "") if is_later else None
            if unit is not None and _repeats_any(pieces, _said(event)):
                yield unit


def planned(act: Act, target_id: str, expected_version: int | None) -> Plan | None:
    """The plan for erasing a unit or a log entry. None if it is erased already."""
    reader = act.transaction
    target = reader.unit(checked_id(target_id, "an id")) or reader.event(target_id)
    if target is None or target.scope.key not in act.caller.visible_keys:
        hint = Hint("find the unit")
        if target is not None and act.caller.may_read(target.scope):
            places = {"worktree": target.scope.worktree, "task": target.scope.task}
            options = " ".join(f"--{name} {place}" for name, place in places.items() if place is not None)
            hint = Hint("erase it there", scope=target.scope, options=options)
        raise NotFound(f"No unit {target_id!r} here, and no entry of the log.", hint=hint)
    what = "unit" if isinstance(target, Unit) else "entry"
    act.require_at(Deed.ERASE, target.scope.level, f"{Deed.ERASE} {what} {target.id}")
    if isinstance(target, Unit):
        if target.erased_at is not None:
            return None
        act.check_version(target, expected_version)
    elif target.type not in _ENTRIES:
        raise InvalidInput(
            f"Event {target_id} is {target.type}, not an entry of the log.",
            hint=f"Erase its subject instead: {target.subject}." if target.subject else "It has no text of its own.",
        )
    elif target.erased:
        return None
    return Plan(act, target)


def erased_with(act: Act, target_id: str) -> tuple[str, ...]:
    """The units that were erased with a unit or an entry. If it was itself erased with another, only its own id."""
    for event in act.transaction.events_of_subject(target_id):
        if event.type is EventType.UNIT_ERASED and event.payload is not None:
            return tuple(record["id"] for record in event.payload["units"])
    return (target_id,)


# Copies


def copies_of(act: Act, plan: Plan) -> list[tuple[Copy, Unit | Event]]:
    """Other places in the caller's project with the text, if the caller may read and erase them.

    Events of graphs are added to the plan instead: they hold questions and answers, which are always erased.
    """
    texts = plan.texts
    copies: dict[str, tuple[Copy, Unit | Event]] = {}
    for event in _saying(act, texts):
        if event.type in _OF_GRAPHS:
            plan.take(event)
        elif event.id not in plan.events and event.type is not EventType.UNIT_ERASED:
            unit = act.transaction.unit(event.subject or "")
            if unit is not None and unit.erased_at is not None:
                continue
            source = unit if unit is not None and event.type in _CONTENT else event
            if all(_may_erase(act, each) for each in (source, *([unit] if unit else []))):
                copies[source.id] = _copy(source, texts), source
    return list(copies.values())


def _may_erase(act: Act, source: Unit | Event) -> bool:
    allows = act.config.policy.allows(act.caller.actor.kind, Deed.ERASE, source.scope.level)
    return allows and act.caller.may_read(source.scope)


def _copy(source: Unit | Event, texts: Sequence[str]) -> Copy:
    if isinstance(source, Unit):
        return Copy(source.id, str(source.kind), source.scope, source.author, in_a_line(source.content))
    said = next(said for said in _said(source) if _has_copy(texts, said))
    return Copy(source.id, str(source.type), source.scope, source.actor, in_a_line(said))


def _saying(act: Act, texts: Sequence[str]) -> Iterator[Event]:
    """The events of the caller's project, and of its org, that hold a copy of one of these texts."""
    known: set[str] = set()
    for word in dict.fromkeys(needle for text in texts for needle in copy_needles(text)):
        for event in act.transaction.events_containing(word, act.caller.stream):
            if event.id not in known and any(_has_copy(texts, said) for said in _said(event)):
                known.add(event.id)
                yield event


def _said(event: Event) -> Iterator[str]:
    """Every text in an event's payload that somebody may have written, without the program's own names."""
    payload = event.payload or {}
    holders = [payload, *(payload[name] for name in _HOLDERS if isinstance(payload.get(name), dict))]
    for holder in holders:
        for name, item in holder.items():
            if name in ("citations", "cite"):
                yield from (citation["ref"] for citation in item)
            elif name not in _LABELS and not (holder is payload and name in _HOLDERS):
                yield from _strings(item)


def _strings(content: Any) -> Iterator[str]:
    """Every string in JSON. Keys count only if they can't be field names."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, dict):
        yield from (name for name in content if not name.isidentifier())
        for item in content.values():
            yield from _strings(item)
    elif isinstance(content, list | tuple):
        for item in content:
            yield from _strings(item)


def _texts_of(event: Event) -> list[str]:
    """The texts of an entry that its author wrote."""
    payload = event.payload or {}
    said = payload.get("claim") or payload.get("proposal") or payload
    names = ("text", "content", "error", "approach", "query", "reason")
    return [said[name] for name in names if isinstance(said.get(name), str) and said[name]]


def _spellings(act: Act, unit: Unit) -> list[str]:
    """Every spelling of a unit's text, from its author and from those who repeated it."""
    payloads = [event.payload or {} for event in act.transaction.events_of_subject(unit.id) if event.type in _CONTENT]
    return list(dict.fromkeys([unit.content, *(payload["said"] for payload in payloads if payload.get("said"))]))


def _kind_of(event: Event) -> str:
    """The kind of the unit that an event created, or "" for other events."""
    payload = event.payload if event.type is EventType.UNIT_REMEMBERED else None
    return str(payload["unit"]["kind"]) if payload else ""


def _beginning(text: str) -> str:
    """The beginning of a text that episodes certainly keep, cut at a word."""
    cut = text[:_KEPT_CHARS_MIN]
    return cut if len(text) <= _KEPT_CHARS_MIN else cut.rpartition(" ")[0] or cut


def _repeats_any(texts: Sequence[str], said: Iterable[str]) -> bool:
    return any(repeats(text, each) for each in said for text in texts)


def _refusals_of(act: Act, told: Sequence[Event]) -> list[Event]:
    """The refused claims that the gate later accepted as these events."""
    prefix = waiting_key("")
    ids = [event.key.removeprefix(prefix) for event in told if event.key and event.key.startswith(prefix)]
    return [event for id in ids if (event := act.transaction.event(id)) is not None]


def check_reason(plan: Plan, reason: str) -> None:
    """Raise if the reason repeats the erased text. Called before the log or a file is changed."""
    if _has_copy(plan.texts, reason):
        raise InvalidInput("The reason repeats what is to be erased.", hint="Say why without quoting it.")


def carry_out(act: Act, plan: Plan, reason: str) -> None:
    """Empty the events, leave tombstones, and record again, without the text, the state that still holds."""
    texts = plan.texts
    links = {link.id for unit_id in plan.units for link in act.transaction.links_of(unit_id)}
    links |= {link_of(event) for event in plan.events.values() if event.type is EventType.LINK_ADDED}
    links |= {link_id for event in plan.events.values() for link_id in opened_by_clones(act.transaction, event)}
    conflicts = _conflicts_left(act, links, plan)
    payloads = {event.id: event.payload or {} for event in plan.events.values()}
    runs = [payloads[event.id] for event in plan.events.values() if event.type is EventType.TASK_VERIFIED]
    ran = {name for payload in runs for names in payload["tests"].values() for name in names}
    tests = act.transaction.tests(act.caller.stream, sorted(ran))
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
        act.record(EventType.UNIT_RESTATED, {"set": _restated(unit, texts)}, subject=unit.id)
    for event in plan.events.values():
        _restate_outcome(act, event, payloads[event.id], links)
    _restate_tests(act, [test for test in tests if not _has_copy(texts, test.name)])
    for link, (first, second, *others) in conflicts:
        again = link_units(act, first, second, link.type, link.weight, "a member was erased", others)
        if not link.open:
            payload = {"link": again.id, "winner": link.winner, "reason": _ERASED}
            act.record(EventType.LINK_RESOLVED, payload, subject=again.id)
    _restate_relations(act, [payloads[event.id] for event in plan.events.values() if event.type in _OF_RELATIONS])


def _has_copy(texts: Sequence[str], said: str) -> bool:
    return any(is_copy(text, said) for text in texts)


def _conflicts_left(act: Act, link_ids: set[str], plan: Plan) -> list[tuple[Link, list[str]]]:
    """The conflicts that still have two or more members after the erasure, with those members."""
    known = [link for link_id in sorted(link_ids) if (link := act.transaction.link(link_id)) is not None]
    left = []
    for link in known:
        members = act.transaction.units(act.transaction.units_of_link(link.id)).values()
        ids = [unit.id for unit in members if unit.erased_at is None and unit.id not in plan.units]
        if len(ids) > 1 and link.winner not in plan.units:
            left.append((link, ids))
    return left


def _restate_outcome(act: Act, event: Event, payload: dict[str, Any], dropped_links: set[str]) -> None:
    """Record the outcome of an emptied event again, without the text, so that a replay gives the same result."""
    if event.type is EventType.LINK_RESOLVED and payload["link"] not in dropped_links:
        restated = {"link": payload["link"], "winner": payload["winner"], "reason": _ERASED}
        act.record(EventType.LINK_RESOLVED, restated, subject=payload["link"])
    if event.type is EventType.REQUEST_ANSWERED:
        act.record(EventType.REQUEST_ANSWERED, payload | {"reason": _ERASED}, subject=event.subject)
    if event.type is EventType.RECALLED:
        units = [unit.id for unit in act.transaction.units(payload["units"]).values() if unit.erased_at is None]
        act.record(EventType.RECALLED, {"units": units, "task_key": payload.get("task_key") or event.scope.key})


def _restate_tests(act: Act, tests: Iterable[TestRecord]) -> None:
    """Record the current outcomes of tests again. A later run than the emptied one may have set them."""
    names: dict[tuple[Any, ...], list[str]] = {}
    for test in tests:
        stands = (test.passed, test.witnessed, test.tree, test.flaky, test.greened_by, test.place)
        names.setdefault(stands, []).append(test.name)
    for (*how, place), alike in names.items():
        payload = dict(zip(("passed", "witnessed", "tree", "flaky", "greened_by"), how, strict=True))
        run = {"tests": {"pass" if payload["passed"] else "fail": alike}, "places": [place]}
        act.record(EventType.TESTS_RESTATED, payload | run)


def _restate_relations(act: Act, payloads: Sequence[Mapping[str, Any]]) -> None:
    """Record relations again in their current state. They belong to a decision's root and outlive one version."""
    for source, type, target in dict.fromkeys((each["source"], each["type"], each["target"]) for each in payloads):
        holds = any((one.type, one.target) == (type, target) for one in act.transaction.relations_from([source]))
        payload = {"source": source, "type": type, "target": target}
        act.record(EventType.RELATION_ADDED if holds else EventType.RELATION_DROPPED, payload, subject=source)


def _tombstone(unit: Unit) -> dict[str, object]:
    return {
        "id": unit.id,
        "kind": str(unit.kind),
        "scope": unit.scope.segments,
        "recorded_at": micros(unit.recorded_at),
        "version": unit.version + 1,
    }


def _restated(unit: Unit, texts: Sequence[str]) -> dict[str, Any]:
    """The current value of every changeable field, without the erased text. The events that set them are emptied."""
    stored: dict[str, Any] = {**dict.fromkeys(Unit.json_optional), **unit.to_json()}
    fields = {name: item for name, item in stored.items() if name not in _FIXED}
    for name in ("contradiction_note", "archive_reason"):
        if fields[name] is not None and _has_copy(texts, fields[name]):
            fields[name] = _ERASED
    fields["citations"] = [item for item in fields["citations"] if not _has_copy(texts, item["ref"])]
    return fields | {"version": unit.version + 1}

"""A store in plain dictionaries: nothing on disk, for trying things out, and the model other stores must equal."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from copy import deepcopy

from mnemarch.errors import Conflict, InvalidInput
from mnemarch.model.decision import target_of
from mnemarch.model.json_text import canonical_json, json_needles
from mnemarch.model.stamps import micros, new_id
from mnemarch.model.unit import Kind, Searchable, Status, Use, search_kind, search_state, unit_to_json
from mnemarch.model.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime
    from typing import Any, TypeVar

    from mnemarch.model.caller import Level, Stream
    from mnemarch.model.decision import Relation, Standing
    from mnemarch.model.event import Event, EventType
    from mnemarch.model.unit import Link, LinkType, Unit

    T = TypeVar("T")
    Group = tuple[str, ...]

_ABSENT: Any = object()


class InMemoryTables:
    """Log and projections. Every change notes how to undo it, so a failed act leaves nothing behind."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._event_places: dict[str, int] = {}
        self._keys: dict[tuple[str, str, str], int] = {}
        self._places: dict[Group, list[int]] = {}
        self._heads: dict[Stream, tuple[int, bytes]] = {}
        self._units: dict[str, Unit] = {}
        self._searchable: dict[str, int] = {}
        self._changes: list[tuple[int, str]] = []
        self._turns: dict[str, tuple[str | None, int]] = {}
        self._last_turns: dict[str, int] = {}
        self._standings: dict[str, Standing] = {}
        self._relations: dict[tuple[str, str, str], Relation] = {}
        self._links: dict[str, Link] = {}
        self._tests: dict[tuple[Stream, str], tuple[bool, int, str]] = {}
        self._uses: dict[tuple[str, str], Use] = {}
        # What would else be looked for among all: the keys of rows, by what they have in common.
        self._groups: dict[Group, set[Any]] = {}
        self._groups_of: dict[str, frozenset[Group]] = {}
        self._undo: list[Callable[[], object]] = []

    def begin(self) -> None:
        self._undo.clear()

    def roll_back(self) -> None:
        while self._undo:
            self._undo.pop()()

    def _put(self, table: dict[Any, Any], key: Any, item: Any) -> None:
        before = table.get(key, _ABSENT)
        table[key] = item
        self._undo.append(lambda: table.pop(key) if before is _ABSENT else table.__setitem__(key, before))

    def _drop(self, table: dict[Any, Any], key: Any) -> None:
        before = table.pop(key, _ABSENT)
        if before is not _ABSENT:
            self._undo.append(lambda: table.__setitem__(key, before))

    def _join(self, group: Group, key: Any) -> None:
        members = self._groups.setdefault(group, set())
        if key not in members:
            members.add(key)
            self._undo.append(lambda: members.discard(key))

    def _leave(self, group: Group, key: Any) -> None:
        members = self._groups.get(group, set())
        if key in members:
            members.discard(key)
            self._undo.append(lambda: members.add(key))

    def _members(self, *groups: Group) -> set[Any]:
        return set().union(*(self._groups.get(group, ()) for group in groups))

    # The log

    def head(self, stream: Stream) -> tuple[int, bytes]:
        return self._heads.get(stream, (0, b""))

    def heads(self) -> dict[Stream, tuple[int, bytes]]:
        return dict(self._heads)

    def position(self) -> int:
        return len(self._events)

    def event(self, event_id: str) -> Event | None:
        place = self._event_places.get(event_id)
        return None if place is None else self._events[place]

    def event_for_key(self, scope_key: str, actor: str, key: str) -> Event | None:
        place = self._keys.get((scope_key, actor, key))
        return None if place is None else self._events[place]

    def events(self, *, after: int = 0, limit: int | None = None) -> Iterator[Event]:
        return iter(self._events[after : None if limit is None else after + limit])

    def events_of_scope(self, scope_key: str, types: Sequence[EventType] = ()) -> Iterator[Event]:
        events = (self._events[place] for place in self._places.get(("scope", scope_key), ()))
        return (event for event in events if not types or event.type in types)

    def events_of_subject(self, subject: str, *, after: int = 0, last: int | None = None) -> Iterator[Event]:
        places = self._places.get(("subject", subject), [])
        found = [self._events[place] for place in places[bisect_left(places, after) :]]
        return iter(found if last is None else found[max(0, len(found) - last) :])

    def events_containing(self, needle: str) -> Iterator[Event]:
        stored = json_needles(needle)
        return (
            event for event in self._events if event.body is not None and any(form in event.body for form in stored)
        )

    def append(self, event: Event, hash: bytes) -> Event:
        assert event.seq == self.head(event.stream)[0] + 1, "an event takes the next place of its stream"
        place = len(self._events)
        placed = event.placed(place + 1, hash)
        self._events.append(placed)
        self._undo.append(self._events.pop)
        self._put(self._event_places, event.id, place)
        if event.key is not None:
            self._put(self._keys, (event.scope.key, str(event.actor), event.key), place)
        self._put(self._heads, event.stream, (event.seq, hash))
        self._note_place(("scope", event.scope.key), place)
        if event.subject is not None:
            self._note_place(("subject", event.subject), place)
        return placed

    def _note_place(self, group: Group, place: int) -> None:
        places = self._places.setdefault(group, [])
        places.append(place)
        self._undo.append(places.pop)

    def erase_payload(self, event_id: str) -> None:
        place = self._event_places.get(event_id)
        if place is None:
            return
        before = self._events[place]
        self._events[place] = replace(before, body=None, salt=None)
        self._undo.append(lambda: self._events.__setitem__(place, before))

    # Units

    def unit(self, unit_id: str) -> Unit | None:
        unit = self._units.get(unit_id)
        return None if unit is None else _own(unit)

    def units(self, unit_ids: Iterable[str]) -> dict[str, Unit]:
        return {unit_id: _own(self._units[unit_id]) for unit_id in unit_ids if unit_id in self._units}

    def _sorted(self, chosen: Iterable[Unit], *, newest_first: bool = False, limit: int | None = None) -> list[Unit]:
        return [_own(unit) for unit in sorted(chosen, key=lambda unit: unit.id, reverse=newest_first)[:limit]]

    def units_in(
        self,
        scope_keys: Sequence[str],
        *,
        kind: Kind | None = None,
        status: Status | None = None,
        level: Level | None = None,
        domain: str | None = None,
        live: bool | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> list[Unit]:
        kinds = Kind if kind is None else (kind,)
        chosen = (
            unit
            for unit in self._units_of(*(("unit", key, str(each)) for key in scope_keys for each in kinds))
            if (status is None or unit.status == status)
            and (level is None or unit.level == level)
            and (domain is None or unit.domain == domain)
            and (live is None or unit.live == live)
            and (before is None or unit.id < before)
        )
        return self._sorted(chosen, newest_first=True, limit=limit)

    def units_replaced(
        self, scope_keys: Sequence[str], *, kind: Kind | None, domain: str | None, limit: int
    ) -> list[Unit]:
        past = self.units_in(scope_keys, kind=kind, domain=domain, status=Status.DEPRECATED, limit=len(self._units))
        found = [unit for unit in past if unit.valid_to_commit is not None and unit.id not in self._standings]
        return found[:limit]

    def units_with_text(self, scope_keys: Sequence[str], canonical_key: str) -> list[Unit]:
        return self._sorted(self._live_in(scope_keys, ("text", canonical_key)))

    def units_gone_with_text(self, scope_keys: Sequence[str], canonical_key: str) -> list[Unit]:
        said = self._units_of(("text", canonical_key))
        return self._sorted(unit for unit in said if not unit.live and unit.scope.key in scope_keys)

    def units_with_skeleton(self, scope_keys: Sequence[str], skeleton_key: str, limit: int) -> list[Unit]:
        said = self._live_in(scope_keys, ("skeleton", skeleton_key))
        return self._sorted(said, newest_first=True, limit=limit)

    def _units_of(self, *groups: Group) -> Iterator[Unit]:
        return (self._units[unit_id] for unit_id in self._members(*groups))

    def _live_in(self, scope_keys: Sequence[str], *groups: Group) -> Iterator[Unit]:
        return (unit for unit in self._units_of(*groups) if unit.live and unit.scope.key in scope_keys)

    def units_citing(self, scope_keys: Sequence[str], kind: str, ref: str) -> list[Unit]:
        return self._sorted(unit for unit in self._units_of(("cites", str(kind), ref)) if unit.scope.key in scope_keys)

    def units_citing_code(self, after: str, limit: int) -> list[Unit]:
        found = self._sorted(
            unit
            for unit in self._units.values()
            if unit.id > after and any(item.kind in {"file", "symbol"} for item in unit.citations)
        )
        return found[:limit]

    def units_of_kinds(self, kinds: Sequence[Kind]) -> Iterator[Unit]:
        return iter(self._sorted(unit for unit in self._units.values() if unit.live and unit.kind in kinds))

    def searchable_after(self, position: int, limit: int) -> list[Searchable]:
        start = self._changes_until(position)
        page = self._changes[start : start + limit]
        if page:
            page = self._changes[start : self._changes_until(page[-1][0])]
        return [_searchable(self._units[unit_id], *self._turns[unit_id], at) for at, unit_id in page]

    def searchable_count_after(self, position: int) -> int:
        return len(self._changes) - self._changes_until(position)

    def _changes_until(self, position: int) -> int:
        return bisect_right(self._changes, position, key=lambda change: change[0])

    def put_unit(
        self,
        unit: Unit,
        *,
        canonical_key: str | None,
        skeleton_key: str | None,
        searchable_at: int | None,
        standing: Standing | None = None,
    ) -> None:
        if standing is None:
            self._drop(self._standings, unit.id)
        else:
            self._refuse_second(unit, standing)
            self._put(self._standings, unit.id, standing)
        if unit.id not in self._units:
            self._take_turn(unit)
        self._put(self._units, unit.id, _own(unit))
        self._regroup(unit.id, _groups_of(unit, canonical_key, skeleton_key, standing))
        if searchable_at is not None:
            self._note_change(unit.id, searchable_at)

    def _regroup(self, unit_id: str, groups: frozenset[Group]) -> None:
        before = self._groups_of.get(unit_id, frozenset())
        for group in before - groups:
            self._leave(group, unit_id)
        for group in groups - before:
            self._join(group, unit_id)
        self._put(self._groups_of, unit_id, groups)

    def _note_change(self, unit_id: str, at: int) -> None:
        before = self._searchable.get(unit_id)
        if before is not None:
            self._drop_change((before, unit_id))
            self._undo.append(lambda: insort(self._changes, (before, unit_id)))
        self._put(self._searchable, unit_id, at)
        insort(self._changes, (at, unit_id))
        self._undo.append(lambda: self._drop_change((at, unit_id)))

    def _drop_change(self, change: tuple[int, str]) -> None:
        del self._changes[bisect_left(self._changes, change)]

    def _refuse_second(self, unit: Unit, standing: Standing) -> None:
        for other_id in self._members(("root", standing.root)) - {unit.id}:
            other = self._standings[other_id]
            if other.number == standing.number or (unit.live and self._units[other_id].live):
                raise Conflict(
                    f"Decision {standing.root} has a version {standing.number}, or another one in force, already.",
                    hint="Read the version in force and decide anew.",
                )

    def _take_turn(self, unit: Unit) -> None:
        session = unit.session_key
        turn = 0 if session is None else self._last_turns.get(session, 0) + 1
        self._put(self._turns, unit.id, (session, turn))
        if session is not None:
            self._put(self._last_turns, session, turn)

    # Decisions

    def decision_in_force(self, root: str) -> Unit | None:
        found = [unit for unit in self.decision_versions(root) if unit.live]
        return found[0] if found else None

    def decision_versions(self, root: str) -> list[Unit]:
        versions = sorted(self._members(("root", root)), key=lambda id: self._standings[id].number)
        return [_own(self._units[id]) for id in versions]

    def decided(self, scope_key: str, domain: str, strength: int, *, after: str, limit: int) -> list[Unit]:
        held = (unit for unit in self._units_of(("decided", scope_key)) if unit.live and unit.domain == domain)
        found = [unit for unit in held if unit.id > after and self._standings[unit.id].strength == strength]
        return self._sorted(found, limit=limit)

    def domains_decided(self, scope_key: str) -> list[str]:
        return sorted({unit.domain for unit in self._units_of(("decided", scope_key)) if unit.live})

    def related(self, root: str, scope_keys: Sequence[str], *, limit: int) -> list[Unit]:
        met = [*self.relations_from([root]), *self.relations_to([root])]
        others = {one.target if one.source == root else one.source for one in met}
        held = [self.decision_in_force(other) for other in sorted(others)]
        return self._firmest([unit.id for unit in held if unit is not None], scope_keys)[:limit]

    def anchored(self, scope_keys: Sequence[str], domains: Sequence[str], *, limit: int) -> list[Unit]:
        anchors = self.units_in(scope_keys, kind=Kind.ANCHOR, live=True, limit=len(self._units))
        targets = {target_of(anchor) for anchor in anchors if anchor.domain in domains} & self._units.keys()
        live = [id for id in sorted(targets) if self._units[id].live]
        found = [id for id in live if id in self._standings or self._units[id].kind is Kind.EVIDENCE]
        return self._firmest(found, scope_keys)[:limit]

    def _firmest(self, ids: Iterable[str], scope_keys: Sequence[str]) -> list[Unit]:
        """Those of them that are in these scopes: decisions by strength, then the rest; else as they come."""
        seen = [id for id in ids if self._units[id].scope.key in scope_keys]
        return [_own(self._units[id]) for id in sorted(seen, key=lambda id: -self._strength(id))]

    def _strength(self, unit_id: str) -> int:
        standing = self._standings.get(unit_id)
        return 0 if standing is None else standing.strength

    def relations_from(self, roots: Sequence[str]) -> list[Relation]:
        return [self._relations[key] for key in sorted(self._members(*(("from", root) for root in roots)))]

    def relations_to(self, roots: Sequence[str]) -> list[Relation]:
        found = [self._relations[key] for key in self._members(*(("to", root) for root in roots))]
        return sorted(found, key=lambda relation: (relation.target, relation.type, relation.source))

    def put_relation(self, relation: Relation) -> None:
        key = (relation.source, str(relation.type), relation.target)
        self._put(self._relations, key, relation)
        self._join(("from", relation.source), key)
        self._join(("to", relation.target), key)

    def drop_relation(self, source: str, type: str, target: str) -> None:
        key = (source, str(type), target)
        self._drop(self._relations, key)
        self._leave(("from", source), key)
        self._leave(("to", target), key)

    # Links, tests, uses

    def link(self, link_id: str) -> Link | None:
        return self._links.get(link_id)

    def links_of(self, unit_id: str) -> list[Link]:
        return [self._links[link_id] for link_id in sorted(self._members(("linked", unit_id)))]

    def open_links(self, scope_keys: Sequence[str], type: LinkType) -> list[Link]:
        links = [self._links[link_id] for link_id in sorted(self._members(("open", str(type))))]
        return [link for link in links if all(self._is_within(side, scope_keys) for side in (link.source, link.target))]

    def _is_within(self, unit_id: str, scope_keys: Sequence[str]) -> bool:
        unit = self._units.get(unit_id)
        return unit is not None and unit.live and unit.scope.key in scope_keys

    def put_link(self, link: Link) -> None:
        self.drop_link(link.id)
        self._put(self._links, link.id, link)
        for group in _groups_of_link(link):
            self._join(group, link.id)

    def drop_link(self, link_id: str) -> None:
        link = self._links.get(link_id)
        if link is None:
            return
        self._drop(self._links, link_id)
        for group in _groups_of_link(link):
            self._leave(group, link_id)

    def test_passed(self, stream: Stream, name: str) -> bool:
        return self._tests.get((stream, name), (False, 0, ""))[0]

    def put_test(self, stream: Stream, name: str, passed: bool, at: datetime, event_id: str) -> None:
        self._put(self._tests, (stream, name), (passed, micros(at), event_id))

    def drop_tests(self, event_ids: Sequence[str]) -> None:
        for key in [key for key, (_, _, event_id) in self._tests.items() if event_id in event_ids]:
            self._drop(self._tests, key)

    def use(self, unit_id: str, task_key: str) -> Use | None:
        return self._uses.get((unit_id, task_key))

    def noted_uses(self, unit_ids: Sequence[str], task_key: str) -> set[str]:
        return {unit_id for unit_id in unit_ids if (unit_id, task_key) in self._uses}

    def uses_of_task(self, task_key: str) -> list[Use]:
        return [self._uses[key] for key in sorted(self._members(("task", task_key)))]

    def uses_of_unit(self, unit_id: str) -> list[Use]:
        return [self._uses[key] for key in sorted(self._members(("used", unit_id)))]

    def put_use(self, use: Use) -> None:
        key = (use.unit_id, use.task_key)
        known = self._uses.get(key, use)
        merged = Use(
            unit_id=use.unit_id,
            task_key=use.task_key,
            handed=use.handed or known.handed,
            used=use.used or known.used,
            credited=use.credited or known.credited,
            blamed=use.blamed or known.blamed,
        )
        self._put(self._uses, key, merged)
        self._join(("used", use.unit_id), key)
        self._join(("task", use.task_key), key)

    def drop_uses(self, unit_id: str) -> None:
        for key in self._members(("used", unit_id)):
            self._drop(self._uses, key)
            self._leave(("used", unit_id), key)
            self._leave(("task", key[1]), key)

    # All of it

    def clear_projections(self) -> None:
        changes, self._changes = self._changes, []
        self._undo.append(lambda: setattr(self, "_changes", changes))
        units = (self._units, self._searchable, self._turns, self._last_turns, self._groups, self._groups_of)
        for table in (*units, self._standings, self._relations, self._links, self._tests, self._uses):
            for key in list(table):
                self._drop(table, key)

    def counts(self) -> dict[str, dict[str, int]]:
        counted: dict[str, dict[str, int]] = {"status": {}, "kind": {}, "level": {}, "total": {}}
        for unit in self._units.values():
            named = (("status", unit.status), ("kind", unit.kind), ("level", str(int(unit.level))))
            for name, item in named:
                counted[name][str(item)] = counted[name].get(str(item), 0) + 1
        conflicts = sum(link.open and link.type == "contradicts" for link in self._links.values())
        counted["total"] = {"events": len(self._events), "streams": len(self._heads), "open_conflicts": conflicts}
        return counted

    def rows(self) -> Iterator[str]:
        for _, unit in sorted(self._units.items()):
            yield canonical_json(unit_to_json(unit))
        for _, link in sorted(self._links.items()):
            yield canonical_json(link.to_json())
        for _, relation in sorted(self._relations.items()):
            yield canonical_json([relation.source, str(relation.type), relation.target, relation.id])
        tests = [
            [stream.org, stream.project or "", name, int(passed), at, event_id]
            for (stream, name), (passed, at, event_id) in self._tests.items()
        ]
        for row in sorted(tests):
            yield canonical_json(row)
        for _, use in sorted(self._uses.items()):
            flags = (use.handed, use.used, use.credited, use.blamed)
            yield canonical_json([use.unit_id, use.task_key, *map(int, flags)])


def _own(unit: Unit) -> Unit:
    """The unit with attributes of its own: what a caller changes in what it was given changes nothing here."""
    return replace(unit, attributes=deepcopy(dict(unit.attributes))) if unit.attributes else unit


def _groups_of(
    unit: Unit, canonical_key: str | None, skeleton_key: str | None, standing: Standing | None
) -> frozenset[Group]:
    """By what a unit is looked for."""
    groups: set[Group] = {("cites", str(item.kind), item.ref) for item in unit.citations}
    groups.add(("unit", unit.scope.key, str(unit.kind)))
    if canonical_key is not None:
        groups.add(("text", canonical_key))
    if skeleton_key is not None:
        groups.add(("skeleton", skeleton_key))
    if standing is not None:
        groups |= {("root", standing.root), ("decided", unit.scope.key)}
    return frozenset(groups)


def _groups_of_link(link: Link) -> set[Group]:
    sides: set[Group] = {("linked", link.source), ("linked", link.target)}
    return sides | {("open", str(link.type))} if link.open else sides


def _searchable(unit: Unit, session: str | None, turn: int, at: int) -> Searchable:
    return Searchable(
        id=unit.id,
        scope_key=unit.scope.key,
        state=search_state(unit.status, unit.superseded_from, unit.valid_to_commit),
        kind=search_kind(str(unit.kind), unit.domain, unit.attributes),
        domain=unit.domain,
        session=session,
        turn=turn,
        content=unit.content,
        occurred_at=micros(unit.occurred_at),
        importance=unit.importance,
        changed_at=at,
    )


class InMemoryStore:
    """One process, any number of threads."""

    def __init__(self) -> None:
        self._tables = InMemoryTables()
        self._lock = threading.RLock()
        self._writing = False
        self.id = new_id()
        self.format_version = 1
        self.writable = True

    def write(self, work: Callable[[InMemoryTables], T], *, durable: bool = False) -> T:  # noqa: ARG002 - nothing outlives us
        with self._lock:
            if self._writing:
                raise RuntimeError("a write inside a write would undo it in part; pass the open transaction on instead")
            self._writing = True
            self._tables.begin()
            try:
                return work(self._tables)
            except BaseException:
                self._tables.roll_back()
                raise
            finally:
                self._writing = False

    def read(self, work: Callable[[InMemoryTables], T]) -> T:
        with self._lock:
            return work(self._tables)

    def scrub(self, needles: Sequence[str]) -> int:  # noqa: ARG002 - no file ever held anything
        return 0

    def backup(self, path: str) -> None:
        raise InvalidInput(f"A memory without a file has no backup for {path!r}.", hint="Use export instead.")

    def bytes_on_disk(self) -> int:
        return 0

    def check(self) -> str | None:
        return None

    def close(self) -> None:
        """Nothing to let go of."""

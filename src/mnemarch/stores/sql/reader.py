"""Reader: every read of the log and its projections, over named queries on one open connection."""

from __future__ import annotations

from mnemarch.model.caller import Level, Scope, Stream
from mnemarch.model.json_text import from_json, json_needles, kept_json
from mnemarch.stores.sql.queries import (
    ROWS,
    Queries,
    beginning_of,
    code_rule_of,
    episode_of,
    event_of,
    in_parts,
    link_of,
    of_stream,
    relation_of,
    searchable_of,
    test_of,
    unit_of,
    use_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, TypeVar

    from mnemarch.model.decision import Relation
    from mnemarch.model.event import Event, EventType
    from mnemarch.model.testrun import TestRecord
    from mnemarch.model.unit import Kind, Link, LinkType, Searchable, Status, Unit, Use

    T = TypeVar("T")

ALL = 1 << 62
# Types without an index, because they are so frequent.
_OFTEN = ("logged", "recalled", "graph.changed", "unit.remembered")


class Reader:
    """One consistent view of the store. `first_page` is how many rows are read first, where few may suffice."""

    first_page = 32

    def __init__(self, execute: Callable[[str, dict[str, Any]], Any], queries: Queries) -> None:
        self._execute, self._queries = execute, queries

    def query(self, name: str, /, **parameters: Any) -> Any:
        """The rows of a named query."""
        return self._execute(*self._queries.bound(name, parameters))

    def together(self, work: Callable[[Any], T]) -> T:
        """The result of `work`. A remote store first runs it without answers, then sends all its queries at once."""
        return work(self)

    def _one(self, name: str, /, **parameters: Any) -> Any:
        return self.query(name, **parameters).fetchone()

    def _first(self, read: Callable[[Any], T], name: str, /, **parameters: Any) -> T | None:
        return read(row) if (row := self._one(name, **parameters)) else None

    def _units(self, name: str, /, **parameters: Any) -> list[Unit]:
        return [self._unit(row) for row in self.query(name, **parameters)]

    def _unit(self, row: tuple[str, str]) -> Unit:
        return unit_of(row)

    def _in_parts(self, name: str, list_name: str, items: Iterable[str], /, **parameters: Any) -> Iterator[Any]:
        """The rows for many values, queried in parts. The values are sorted, so rows ordered by value stay ordered."""
        for part in in_parts(items):
            yield from self.query(name, **{list_name: part}, **parameters)

    # The log

    def head(self, stream: Stream) -> tuple[int, bytes]:
        """The last sequence number and hash of a stream. (0, b"") before its first event."""
        row = self._one("head", org=stream.org, project=stream.project or "", writer=stream.writer)
        return row[1:] if row else (0, b"")

    def heads(self) -> dict[Stream, tuple[int, bytes]]:
        """Every stream with its last sequence number and hash."""
        return {Stream(row[0], row[1] or None, row[4]): (row[2], row[3]) for row in self.query("heads")}

    def position(self) -> int:
        """The position of the newest event of all streams. Positions follow commit order."""
        return int(self._one("position")[0])

    def event_at(self, position: int) -> str:
        """The id of the event at a position, or "". An index uses it to recognise the store that it was made from."""
        event = next(self.events(after=position - 1, limit=1), None) if position else None
        return event.id if event is not None and event.position == position else ""

    def event(self, event_id: str) -> Event | None:
        return self._first(event_of, "event", id=event_id)

    def event_for_key(self, scope_key: str, actor: str, key: str) -> Event | None:
        return self._first(event_of, "event_for_key", scope_key=scope_key, actor=actor, key=key)

    def events(self, *, after: int = 0, limit: int | None = None) -> Iterator[Event]:
        """Every event in commit order."""
        return map(event_of, self.query("events", after=after, limit=ALL if limit is None else limit))

    def events_of_scope(self, scope_key: str, types: Sequence[EventType] = (), first: int = ALL) -> Iterator[Event]:
        """The `first` events of these types that were recorded in exactly this scope."""
        wanted = {"types": list(types), "any_type": not types, "limit": first}
        return map(event_of, self.query("events_of_scope", scope_key=scope_key, **wanted))

    def events_of_subject(self, subject: str, *, after: int = 0, last: int = ALL) -> Iterator[Event]:
        """The events about one unit, ledger or graph after a position, oldest first, at most the newest `last`."""
        return map(event_of, self.query("events_of_subject", subject=subject, after=after, last=last))

    def held(self, unit_ids: Iterable[str]) -> dict[str, Event]:
        """For each of these units, the last event that says why it stays a hypothesis."""
        return {event.subject or "": event for event in map(event_of, self._in_parts("held", "subjects", unit_ids))}

    def events_back(
        self,
        scope: Scope | str,
        *,
        task: str | None = None,
        before: int | None = None,
        since: int = 0,
        actor: str | None = None,
        types: Sequence[EventType] = (),
        limit: int,
    ) -> list[Event]:
        """A page of the log, newest first: of a scope and all below it, of one task in it, or of exactly one key."""
        wanted: dict[str, Any] = {"actor": actor, "types": list(types), "any_type": not types, "limit": limit}
        wanted |= {"before": ALL if before is None else before, **self._since(since)}
        name, wanted["scope_key"] = "events_of_scope_back", scope
        if not isinstance(scope, str):
            name = "events_of_type_back" if len(types) == 1 and types[0] not in _OFTEN else "events_back"
            wanted |= {"beginning": beginning_of(scope), "ending": "" if task is None else f",{kept_json(task)[1:]}"}
            wanted |= {"scope_key": "", "type": types[0] if types else ""}
        return [event_of(row) for row in self.query(name, **wanted)]

    def ingested_since(self, scope_key: str, actor: str, session: str | None, since: int) -> int:
        """How many entries an actor handed to the write pipeline in one session since a moment."""
        wanted = {"scope_key": scope_key, "actor": actor, "session": session or ""}
        return int(self._one("ingested_since", **wanted, **self._since(since))[0])

    def waiting_entries(self, scope_key: str, actor: str, since: int, limit: int) -> list[Event]:
        """The entries since a moment that were over the rate limit and came to nothing yet, oldest first."""
        wanted = {"scope_key": scope_key, "actor": actor, "limit": limit} | self._since(since)
        return list(map(event_of, self.query("waiting_entries", **wanted)))

    def scopes(self) -> list[Scope]:
        """Every scope with events."""
        return [Scope.of(from_json(scope)) for (scope,) in self.query("scopes")]

    def _since(self, since: int) -> dict[str, int]:
        return {"since": since, "first": (self._one("first_since", since=since)[0] or ALL) if since else 0}

    def activity_since(self, scope: Scope, since: int) -> list[tuple[str, Scope, str, int, int]]:
        """The events below a scope since a moment, counted by actor, scope and type, with the time of the last one."""
        rows = self.query("activity_since", beginning=beginning_of(scope), since=since)
        return [(actor, Scope.of(from_json(where)), type, count, last) for actor, where, type, count, last in rows]

    def stuck_tasks(self, scope: Scope, limit: int) -> list[Event]:
        """The events that marked a task below a scope as stuck, if it still is, newest first."""
        return [event_of(row) for row in self.query("stuck_tasks", beginning=beginning_of(scope), limit=limit)]

    def events_named(self, beginning: str, limit: int) -> list[Event]:
        """The events whose id has this beginning. For the newest events, the last group of the id counts too."""
        bounds = {"low": beginning, "high": f"{beginning}~", "limit": limit}
        rows = self.query("events_named", **bounds).fetchall()
        return [event_of(row) for row in rows or self.query("recent_events_named", newest=100_000, **bounds)]

    def events_containing(self, needle: str, stream: Stream | None = None) -> Iterator[Event]:
        """The events with this text in a string, or in JSON in a string. `stream`: of its project and org."""
        where = {"org": stream and stream.org, "project": stream and stream.project}
        forms = [form.encode().lower().decode() for form in json_needles(needle)]  # ASCII alone, as SQLite does
        rows = {row[:3]: row for form in forms for row in self.query("events_containing", needle=form, **where)}
        return (event_of(rows[key]) for key in sorted(rows))

    # Units

    def unit(self, unit_id: str) -> Unit | None:
        return self._first(unit_of, "unit", id=unit_id)

    def units_named(self, beginning: str, limit: int) -> list[Unit]:
        """The units whose id, or the last group of it, has this beginning."""
        return self._units("units_named", low=beginning, high=f"{beginning}~", limit=limit)

    def units(self, unit_ids: Iterable[str]) -> dict[str, Unit]:
        ids = list(unit_ids)
        rows = {row[0]: row for row in self._in_parts("units", "ids", ids)}
        return {unit_id: self._unit(rows[unit_id]) for unit_id in ids if unit_id in rows}

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
        shared: bool = False,
    ) -> list[Unit]:
        """Units of these scopes, newest first, older than unit `before`. `shared` episodes must not be handed out."""
        wanted: dict[str, Any] = {"kind": kind, "status": status, "domain": domain, "limit": limit}
        wanted |= {"level": None if level is None else int(level), "before": before or "\U0010ffff"}
        if live and kind in ("policy", "anchor", "core", "episode", "skill"):
            name = "accounts_in" if kind in ("episode", "skill") else "guides_in"
            return list(map(episode_of if shared else self._unit, self.query(name, scope_keys=scope_keys, **wanted)))
        names = {None: ("live_units_in", "past_units_in"), True: ("live_units_in",), False: ("past_units_in",)}[live]
        # One query for each scope, whose units an index has in order. One query for all would sort them all.
        pages = [self._units(name, scope_key=key, **wanted) for key in dict.fromkeys(scope_keys) for name in names]
        return sorted((unit for page in pages for unit in page), key=lambda unit: unit.id, reverse=True)[:limit]

    def claims_of_scope(self, scope_key: str, *, but: Iterable[Kind], kept_at: Level, last: int) -> list[Unit]:
        """The live units that the `last` entries of a scope claimed, except kinds `but`; episodes `kept_at` a level."""
        return self._units("claims_of_scope", scope_key=scope_key, but=sorted(but), kept_at=int(kept_at), last=last)

    def units_replaced(
        self, scope_keys: Sequence[str], *, kind: Kind | None, domain: str | None, limit: int
    ) -> list[Unit]:
        """Units of these scopes that a commit replaced, newest first, without decisions."""
        return self._units("replaced_in", scope_keys=scope_keys, kind=kind, domain=domain, limit=limit)

    def units_with_text(self, scope_keys: Sequence[str], canonical_key: str) -> list[Unit]:
        """Units of these scopes with this canonical key, live or not, oldest first."""
        return self._units("units_with_text", scope_keys=scope_keys, canonical_key=canonical_key)

    def units_saying(self, stream: Stream, canonical_key: str) -> list[Unit]:
        """Units of a project and its org with this canonical key, whoever may see them, oldest first."""
        return of_stream(stream, self._units("units_saying", canonical_key=canonical_key))

    def rejected_of_topic(self, stream: Stream, topic_key: str, limit: int) -> list[Unit]:
        """Rejected units of this topic in a project and its org, whoever may see them, newest first."""
        return of_stream(stream, self._units("rejected_of_topic", topic_key=topic_key, limit=limit))

    def units_of_topic(self, scope_keys: Sequence[str], topic_key: str, limit: int) -> list[Unit]:
        """Live units whose texts differ only in numbers, names or negations. Verified first, then newest."""
        return self._units("units_of_topic", scope_keys=scope_keys, topic_key=topic_key, limit=limit)

    def units_of_topics(self, scope_keys: Sequence[str], topic_keys: Iterable[str]) -> list[Unit]:
        """The live units of any of these topics."""
        return [self._unit(row) for row in self._in_parts("of_topics", "topic_keys", topic_keys, scope_keys=scope_keys)]

    def units_citing(
        self, scope_keys: Sequence[str], kind: str, refs: Sequence[str], *, live_but: Iterable[Kind] | None = None
    ) -> list[Unit]:
        """The units of these scopes that cite one of these refs, by id. `live_but`: only live units of other kinds."""
        name, but = ("units_citing", {}) if live_but is None else ("live_citing", {"but": sorted(live_but)})
        rows = self._in_parts(name, "refs", refs, scope_keys=scope_keys, kind=str(kind), **but)
        return list(map(self._unit, dict.fromkeys(rows)))

    def tests_cited(self, scope_keys: Sequence[str]) -> list[str]:
        """The names of the tests that live units of these scopes cite."""
        return [ref for (ref,) in self.query("tests_cited", scope_keys=scope_keys)]

    def newest_citing(
        self, scope_keys: Sequence[str], kind: str, ref: str, limit: int, live: bool = False
    ) -> list[Unit]:
        return self._units("newest_citing", scope_keys=scope_keys, kind=str(kind), ref=ref, limit=limit, any=not live)

    def units_citing_code(self, after: str, limit: int) -> list[Unit]:
        """A page of the units in every scope that cite a file or a symbol, by id. Used by the janitor."""
        return self._units("units_citing_code", after=after, limit=limit)

    def units_of_kinds(self, kinds: Sequence[Kind]) -> Iterator[Unit]:
        """Every live unit of these kinds in every scope. Used by the operator."""
        name = "ageing_units" if set(kinds) <= {"episode", "skill"} else "units_of_kinds"
        return map(unit_of, self.query(name, kinds=list(kinds)))

    def searchable_after(self, position: int, limit: int) -> list[Searchable]:
        """The units that changed after `position`, in order, for search. Includes all changes of the last position."""
        return [searchable_of(row) for row in self.query("searchable_after", position=position, limit=limit)]

    def searchable_count_after(self, position: int) -> int:
        return int(self._one("searchable_count_after", position=position)[0])

    # Links, tests, uses

    def link(self, link_id: str) -> Link | None:
        return self._first(link_of, "link", id=link_id)

    def links_named(self, beginning: str, limit: int) -> list[Link]:
        """The links whose id, or the last group of it, has this beginning."""
        return [link_of(row) for row in self.query("links_named", low=beginning, high=f"{beginning}~", limit=limit)]

    def links_of(self, unit_id: str) -> list[Link]:
        return [link_of(row) for row in self.query("links_of", unit_id=unit_id)]

    def units_of_link(self, link_id: str) -> list[str]:
        """The ids of a link's units, oldest first. A conflict may have more than two."""
        return [unit_id for (unit_id,) in self.query("units_of_link", link_id=link_id)]

    def open_links(self, scope_keys: Sequence[str], type: LinkType) -> list[tuple[Link, list[str]]]:
        """The open links with two or more live units in these scopes, or of a unit with itself, and the units' ids."""
        links: dict[str, tuple[Link, list[str]]] = {}
        for link_id, body, unit_id in self.query("open_links", scope_keys=scope_keys, type=type):
            links.setdefault(link_id, (link_of((link_id, body)), []))[1].append(unit_id)
        return [(link, ids) for link, ids in links.values() if len(ids) > 1 or link.source == link.target]

    def open_conflicts(self, unit_ids: Sequence[str]) -> list[Link]:
        """The open conflicts of any of these few units, oldest first."""
        return [link for link in map(link_of, self.query("conflicts_of", unit_ids=unit_ids)) if link.open]

    def contested(self, unit_ids: Sequence[str], scope_keys: Sequence[str]) -> set[str]:
        """The units among these that are in an open conflict with a live unit of these scopes."""
        return {id for (id,) in self._in_parts("contested", "unit_ids", unit_ids, scope_keys=scope_keys)}

    def tests(self, stream: Stream, names: Iterable[str], *, called: bool = False) -> list[TestRecord]:
        """The newest outcomes of these tests in each place. With `called`, the names are short names."""
        where = {"org": stream.org, "project": stream.project or ""}
        return [test_of(stream, row) for row in self._in_parts(f"tests{'_called' * called}", "names", names, **where)]

    def tests_behind(self, stream: Stream, place: str, unit_ids: Iterable[str]) -> list[TestRecord]:
        """The newest witnessed outcomes, in one place, of the tests that these units cite."""
        where = {"org": stream.org, "project": stream.project or "", "place": place}
        return [test_of(stream, row) for row in self._in_parts("tests_behind", "unit_ids", unit_ids, **where)]

    def runs_behind(self, stream: Stream, names: Iterable[str], scope_key: str) -> list[Event]:
        """The test runs of one task that have the newest outcomes of these tests."""
        where = {"org": stream.org, "project": stream.project or "", "scope_key": scope_key}
        return [event_of(row) for row in self._in_parts("runs_behind", "names", names, **where)]

    def code_rules(self, project_id: str) -> list[dict[str, Any]]:
        """The code rules of a project as dictionaries, the most confident first."""
        return [code_rule_of(row) for row in self.query("code_rules", project_id=project_id)]

    def use(self, unit_id: str, task_key: str) -> Use | None:
        return self._first(use_of, "use", unit_id=unit_id, task_key=task_key)

    def noted_uses(self, unit_ids: Sequence[str], task_key: str) -> set[str]:
        """The units among these that the task received, used or was credited with."""
        return {unit_id for (unit_id,) in self._in_parts("noted_uses", "unit_ids", unit_ids, task_key=task_key)}

    def used_in_task(self, task_key: str) -> list[str]:
        return [unit_id for (unit_id,) in self.query("used_in_task", task_key=task_key)]

    def uses_of_task(self, task_key: str) -> list[Use]:
        return [use_of(row) for row in self.query("uses_of_task", task_key=task_key)]

    def code_met(self, task_key: str) -> list[tuple[str, str]]:
        """The units that a task met without being credited with them: the id of each, with a file that it cites."""
        return [(unit_id, path) for unit_id, path in self.query("code_met", task_key=task_key)]

    def uses_of_unit(self, unit_id: str) -> list[Use]:
        return [use_of(row) for row in self.query("uses_of_unit", unit_id=unit_id)]

    # Decisions

    def decision_in_force(self, root: str) -> Unit | None:
        """The version of a decision that is in force."""
        return self._first(unit_of, "in_force", root=root)

    def decision_versions(self, root: str) -> list[Unit]:
        """Every version, oldest first, for the history. Never used to find the version in force (D7)."""
        return self._units("versions", root=root)

    def decided(self, scope_key: str, domain: str, strength: int, *, after: str, limit: int) -> list[Unit]:
        """The decisions in force in one scope and domain with one strength, by id, after the id `after`."""
        return self._units("decided", scope_key=scope_key, domain=domain, strength=strength, after=after, limit=limit)

    def firm(self, scope_keys: Sequence[str], domains: Sequence[str]) -> list[Unit]:
        """The axes and then the locks that are in force in these scopes and domains, each by id."""
        return self._units("firm", scope_keys=scope_keys, domains=domains)

    def normal_count(self, scope_keys: Sequence[str], domains: Sequence[str], limit: int) -> int:
        """The number of normal decisions in force there, counted up to `limit`."""
        return int(self._one("normal_count", scope_keys=scope_keys, domains=domains, limit=limit)[0])

    def domains_decided(self, scope_key: str) -> list[str]:
        """The domains with decisions in force in one scope, in order. Doesn't read each decision."""
        return [domain for (domain,) in self.query("domains_decided", scope_key=scope_key)]

    def related(self, root: str, scope_keys: Sequence[str], *, limit: int) -> list[Unit]:
        """The decisions in force in these scopes that are related to a decision, firmest first, then by root."""
        return self._units("related", root=root, scope_keys=scope_keys, limit=limit)

    def anchored(self, scope_keys: Sequence[str], domains: Sequence[str], *, limit: int) -> list[Unit]:
        """The targets of the live anchors of these scopes and domains, if they are live and in these scopes too.

        Decisions come first, the firmest of them before the others, then evidence; by id.
        """
        rows = self._in_parts("anchored", "domains", domains, scope_keys=scope_keys, limit=limit)
        bodies = {(-(strength or 0), unit_id): body for unit_id, body, strength in rows}
        return [unit_of((unit_id, bodies[rank, unit_id])) for rank, unit_id in sorted(bodies)[:limit]]

    def relations_from(self, roots: Sequence[str]) -> list[Relation]:
        return [relation_of(row) for row in self._in_parts("relations_from", "roots", roots)]

    def relations_to(self, roots: Sequence[str]) -> list[Relation]:
        return [relation_of(row) for row in self._in_parts("relations_to", "roots", roots)]

    def counts(self) -> dict[str, dict[str, int]]:
        counted: dict[str, dict[str, int]] = {"status": {}, "kind": {}, "level": {}, "total": {}}
        for name, item, count in self.query("counts"):
            counted[name][item] = count
        return counted

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Every projection row: the table's name, then its columns. By table and key, the same on every store."""
        for table in ROWS:
            yield from ((table, *row) for row in self.query(f"row_{table}"))

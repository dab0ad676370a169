"""Reading and writing rows on one open SQLite transaction."""

from __future__ import annotations

from mnemarch.errors import Conflict, InvalidInput, StoreCorrupt
from mnemarch.lazy import Lazy
from mnemarch.model.caller import Actor, Scope, Stream
from mnemarch.model.event import Event, EventType
from mnemarch.model.json_text import canonical_json, from_json, json_needles, kept_json, to_json
from mnemarch.model.stamps import instant, micros
from mnemarch.stores.sqlite.sql import QUERY

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime
    from typing import Any, TypeVar

    from mnemarch.model import decision as decisions
    from mnemarch.model import unit as links
    from mnemarch.model import unit as units
    from mnemarch.model.caller import Level
    from mnemarch.model.decision import Relation, Standing
    from mnemarch.model.unit import Kind, Link, LinkType, Searchable, Status, Unit, Use

    T = TypeVar("T")
else:
    decisions = Lazy("mnemarch.model.decision")
    links = Lazy("mnemarch.model.unit")
    units = Lazy("mnemarch.model.unit")

_POSITION = QUERY["position"]
_MOVE_HEAD = QUERY["move_head"]
_APPEND = QUERY["append"]
_BOUND_MAX = 500
_GUIDES = ("policy", "anchor")
_AGEING = ("episode", "skill")
_AFTER_ALL = b""  # Every text stands before a blob.
# What reading a damaged row can raise.
_DAMAGE = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError, InvalidInput)


class SqliteReader:
    """A consistent view: every method reads through the one transaction that its connection has open."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._heads: dict[Stream, tuple[int, int, bytes]] = {}

    def _one(self, query: str, **given: Any) -> Any:
        return self._connection.execute(QUERY[query], given).fetchone()

    def _all(self, query: str, **given: Any) -> sqlite3.Cursor:
        return self._connection.execute(QUERY[query], given)

    def _all_of(self, query: str, names: Iterable[str], **given: Any) -> Iterator[Any]:
        """The rows for some ids, roots or domains, bound one by one: as a JSON array they would end at a NUL.

        Many are asked for in parts, in their order, so that rows ordered by them stay so; a limit is that of each part.
        """
        wanted = sorted(set(names))
        for start in range(0, len(wanted), _BOUND_MAX):
            bound = {f"name_{number}": each for number, each in enumerate(wanted[start : start + _BOUND_MAX])}
            text = QUERY[query].replace(":names", ", ".join([f":{name}" for name in bound]))
            yield from self._connection.execute(text, bound | given)

    def _units(self, query: str, **given: Any) -> list[Unit]:
        return [_unit(row) for row in self._all(query, **given)]

    def _head(self, stream: Stream) -> tuple[int, int, bytes]:
        known = self._heads.get(stream)
        if known is None:
            known = self._one("head", org=stream.org, project=stream.project) or (0, 0, b"")
            self._heads[stream] = known
        return known

    def head(self, stream: Stream) -> tuple[int, bytes]:
        return self._head(stream)[1:]

    def heads(self) -> dict[Stream, tuple[int, bytes]]:
        return {Stream(org, project): (seq, hash) for org, project, seq, hash in self._all("heads")}

    def position(self) -> int:
        return int(self._one("position")[0])

    def event(self, event_id: str) -> Event | None:
        row = self._one("event", id=event_id)
        return row and _event(row)

    def event_for_key(self, scope_key: str, actor: str, key: str) -> Event | None:
        row = self._one("event_for_key", scope_key=scope_key, actor=actor, key=key)
        return row and _event(row)

    def events(self, *, after: int = 0, limit: int | None = None) -> Iterator[Event]:
        return map(_event, self._all("events", after=after, limit=-1 if limit is None else limit))

    def events_of_scope(self, scope_key: str, types: Sequence[EventType] = ()) -> Iterator[Event]:
        events = map(_event, self._all("events_of_scope", scope_key=scope_key))
        return (event for event in events if not types or event.type in types)

    def events_of_subject(self, subject: str, *, after: int = 0, last: int | None = None) -> Iterator[Event]:
        found = self._all("events_of_subject", subject=subject, after=after, last=-1 if last is None else last)
        return map(_event, found)

    def events_containing(self, needle: str) -> Iterator[Event]:
        return map(_event, self._all("events_containing", needles=to_json(json_needles(needle))))

    def unit(self, unit_id: str) -> Unit | None:
        row = self._one("unit", id=unit_id)
        return row and _unit(row)

    def units(self, unit_ids: Iterable[str]) -> dict[str, Unit]:
        ids = list(unit_ids)
        bodies = dict(self._all_of("units", ids))
        return {unit_id: _unit((unit_id, bodies[unit_id])) for unit_id in ids if unit_id in bodies}

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
        query = "units_in" if not live else "guides_in" if kind in _GUIDES else "live_units_in"
        wanted = {"kind": kind, "status": status, "level": None if level is None else int(level), "domain": domain}
        given = wanted | {"before": _AFTER_ALL if before is None else before, "limit": limit, "live": live}
        # Scope by scope, since each has its units in order: asked for together, all of them would have to be sorted.
        pages = [self._units(query, scope_key=key, **given) for key in dict.fromkeys(scope_keys)]
        found = [unit for page in pages for unit in page]
        return sorted(found, key=lambda unit: unit.id, reverse=True)[:limit] if len(pages) > 1 else found

    def units_replaced(
        self, scope_keys: Sequence[str], *, kind: Kind | None, domain: str | None, limit: int
    ) -> list[Unit]:
        given: dict[str, Any] = {"kind": kind, "domain": domain, "limit": limit}
        pages = [self._units("replaced_in", scope_key=key, **given) for key in dict.fromkeys(scope_keys)]
        return sorted((unit for page in pages for unit in page), key=lambda unit: unit.id, reverse=True)[:limit]

    def units_with_text(self, scope_keys: Sequence[str], canonical_key: str) -> list[Unit]:
        return self._units("units_with_text", scope_keys=to_json(scope_keys), canonical_key=canonical_key)

    def units_gone_with_text(self, scope_keys: Sequence[str], canonical_key: str) -> list[Unit]:
        return self._units("units_gone_with_text", scope_keys=to_json(scope_keys), canonical_key=canonical_key)

    def units_with_skeleton(self, scope_keys: Sequence[str], skeleton_key: str, limit: int) -> list[Unit]:
        keys = to_json(scope_keys)
        return self._units("units_with_skeleton", scope_keys=keys, skeleton_key=skeleton_key, limit=limit)

    def units_citing(self, scope_keys: Sequence[str], kind: str, ref: str) -> list[Unit]:
        return self._units("units_citing", scope_keys=to_json(scope_keys), kind=str(kind), ref=ref)

    def units_citing_code(self, after: str, limit: int) -> list[Unit]:
        return self._units("units_citing_code", after=after, limit=limit)

    def units_of_kinds(self, kinds: Sequence[Kind]) -> Iterator[Unit]:
        query = "ageing_units" if set(kinds) <= set(_AGEING) else "units_of_kinds"
        return (_unit(row) for row in self._all(query, kinds=to_json(kinds)))

    def searchable_after(self, position: int, limit: int) -> list[Searchable]:
        rows = self._all("searchable_after", position=position, limit=limit)
        return [_searchable(*row) for row in rows]

    def searchable_count_after(self, position: int) -> int:
        return int(self._one("searchable_count_after", position=position)[0])

    def link(self, link_id: str) -> Link | None:
        row = self._one("link", id=link_id)
        return row and _link(row)

    def links_of(self, unit_id: str) -> list[Link]:
        return [_link(row) for row in self._all("links_of", unit_id=unit_id)]

    def open_links(self, scope_keys: Sequence[str], type: LinkType) -> list[Link]:
        return [_link(row) for row in self._all("open_links", scope_keys=to_json(scope_keys), type=type)]

    def decision_in_force(self, root: str) -> Unit | None:
        row = self._one("in_force", root=root)
        return row and _unit(row)

    def decision_versions(self, root: str) -> list[Unit]:
        return self._units("versions", root=root)

    def decided(self, scope_key: str, domain: str, strength: int, *, after: str, limit: int) -> list[Unit]:
        where = {"scope_key": scope_key, "domain": domain, "strength": strength}
        return self._units("decided", **where, after=after, limit=limit)

    def domains_decided(self, scope_key: str) -> list[str]:
        return [domain for (domain,) in self._all("domains_decided", scope_key=scope_key)]

    def related(self, root: str, scope_keys: Sequence[str], *, limit: int) -> list[Unit]:
        return self._units("related", root=root, scope_keys=to_json(scope_keys), limit=limit)

    def anchored(self, scope_keys: Sequence[str], domains: Sequence[str], *, limit: int) -> list[Unit]:
        rows = self._all_of("anchored", domains, scope_keys=to_json(scope_keys), limit=limit)
        bodies = {(-(strength or 0), unit_id): body for unit_id, body, strength in rows}
        return [_unit((unit_id, bodies[rank, unit_id])) for rank, unit_id in sorted(bodies)[:limit]]

    def relations_from(self, roots: Sequence[str]) -> list[Relation]:
        return [_relation(*row) for row in self._all_of("relations_from", roots)]

    def relations_to(self, roots: Sequence[str]) -> list[Relation]:
        return [_relation(*row) for row in self._all_of("relations_to", roots)]

    def test_passed(self, stream: Stream, name: str) -> bool:
        row = self._one("test_passed", org=stream.org, project=stream.project or "", name=name)
        return bool(row and row[0])

    def use(self, unit_id: str, task_key: str) -> Use | None:
        row = self._one("use", unit_id=unit_id, task_key=task_key)
        return row and _use(row)

    def noted_uses(self, unit_ids: Sequence[str], task_key: str) -> set[str]:
        return {unit_id for (unit_id,) in self._all_of("noted_uses", unit_ids, task_key=task_key)}

    def uses_of_task(self, task_key: str) -> list[Use]:
        return [_use(row) for row in self._all("uses_of_task", task_key=task_key)]

    def uses_of_unit(self, unit_id: str) -> list[Use]:
        return [_use(row) for row in self._all("uses_of_unit", unit_id=unit_id)]

    def counts(self) -> dict[str, dict[str, int]]:
        counted: dict[str, dict[str, int]] = {"status": {}, "kind": {}, "level": {}, "total": {}}
        for name, item, count in self._all("counts"):
            counted[name][item] = count
        return counted

    def rows(self) -> Iterator[str]:
        for table in ("row_units", "row_links"):
            for (body,) in self._all(table):
                yield body
        for table in ("row_relations", "row_tests", "row_uses"):
            for row in self._all(table):
                yield canonical_json(list(row))


class SqliteTransaction(SqliteReader):
    """The one writer: everything here happens, or nothing."""

    _known_position = 0

    def begin(self) -> None:
        """A new transaction: what is known of the streams still holds if nobody else has written since."""
        (position,) = self._connection.execute(_POSITION).fetchone()
        if position != self._known_position:
            self._heads.clear()
            self._known_position = position

    def forget_heads(self) -> None:
        """What was read of the streams no longer holds: (a part of) the transaction was rolled back."""
        self._heads.clear()
        self._known_position = -1

    def append(self, event: Event, hash: bytes) -> Event:
        stream = event.stream
        stream_id, seq, _ = self._head(stream)
        assert event.seq == seq + 1, "an event takes the next place of its stream"
        execute = self._connection.execute
        recorded = micros(event.recorded_at)
        if stream_id:
            execute(_MOVE_HEAD, (event.seq, hash, stream_id))
        else:
            stream_id = execute(QUERY["new_stream"], (stream.org, stream.project, event.seq, hash)).fetchone()[0]
        self._heads[stream] = (stream_id, event.seq, hash)
        cursor = execute(
            _APPEND,
            (
                stream_id,
                event.seq,
                event.id,
                event.type,
                str(event.actor),
                kept_json(*event.scope.segments),
                event.scope.key,
                event.session,
                event.subject,
                event.key,
                recorded if event.occurred_at is event.recorded_at else micros(event.occurred_at),
                recorded,
                event.body,
                event.salt,
                event.payload_hash,
                hash,
            ),
        )
        position = cursor.lastrowid
        assert position is not None
        self._known_position = position
        return event.placed(position, hash)

    def erase_payload(self, event_id: str) -> None:
        self._all("erase_payload", id=event_id)

    def put_unit(
        self,
        unit: Unit,
        *,
        canonical_key: str | None,
        skeleton_key: str | None,
        searchable_at: int | None,
        standing: Standing | None = None,
    ) -> None:
        row: dict[str, Any] = {
            "id": unit.id,
            "scope_key": unit.scope.key,
            "level": int(unit.level),
            "kind": unit.kind,
            "domain": unit.domain,
            "status": unit.status,
            "live": unit.live,
            "canonical_key": canonical_key,
            "skeleton_key": skeleton_key,
            "searchable_at": searchable_at,
            "body": canonical_json(units.unit_to_json(unit)),
            "root": standing and standing.root,
            "place": standing and standing.number,
            "strength": standing and standing.strength,
            "session": unit.session_key,
        }
        try:
            self._all("put_unit", **row)
        except self._connection.IntegrityError:
            raise Conflict(
                f"Decision {row['root']} has a version {row['place']}, or another one in force, already.",
                hint="Read the version in force and decide anew.",
            ) from None
        if unit.version > 1 or unit.erased_at:
            self._all("drop_citations", unit_id=unit.id)
        for citation in unit.citations:
            self._all("put_citation", kind=citation.kind, ref=citation.ref, unit_id=unit.id)

    def put_link(self, link: Link) -> None:
        body = canonical_json(link.to_json())
        self._all(
            "put_link", id=link.id, type=link.type, source=link.source, target=link.target, open=link.open, body=body
        )

    def drop_link(self, link_id: str) -> None:
        self._all("drop_link", id=link_id)

    def put_relation(self, relation: Relation) -> None:
        self._all("put_relation", source=relation.source, type=relation.type, target=relation.target, id=relation.id)

    def drop_relation(self, source: str, type: str, target: str) -> None:
        self._all("drop_relation", source=source, type=type, target=target)

    def put_test(self, stream: Stream, name: str, passed: bool, at: datetime, event_id: str) -> None:
        where = {"org": stream.org, "project": stream.project or ""}
        self._all("put_test", **where, name=name, passed=passed, at=micros(at), event_id=event_id)

    def drop_tests(self, event_ids: Sequence[str]) -> None:
        for event_id in event_ids:
            self._all("drop_test", event_id=event_id)

    def put_use(self, use: Use) -> None:
        self._all(
            "put_use",
            unit_id=use.unit_id,
            task_key=use.task_key,
            handed=use.handed,
            used=use.used,
            credited=use.credited,
            blamed=use.blamed,
        )

    def drop_uses(self, unit_id: str) -> None:
        self._all("drop_uses", unit_id=unit_id)

    def clear_projections(self) -> None:
        for table in ("units", "citations", "links", "relations", "tests", "uses"):
            self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 - fixed names


def _event(row: Any) -> Event:
    """A stored row as an event; one that was damaged by hand is named, not guessed at."""
    event: Event | None
    try:
        event = Event(
            id=row[3],
            stream=Stream(row[17], row[18]),
            seq=row[2],
            type=EventType(row[4]),
            actor=Actor.parse(row[5]),
            scope=Scope.of(from_json(row[6])),
            session=row[8],
            subject=row[9],
            key=row[10],
            occurred_at=instant(row[11]),
            recorded_at=instant(row[12]),
            body=row[13],
            salt=row[14],
            payload_hash=row[15],
            hash=row[16],
            position=row[0],
        )
        if row[17] is None or event.scope.key != row[7] or not isinstance(row[13], str | None):
            event = None
    except (ValueError, TypeError, AttributeError, OverflowError, InvalidInput):
        event = None
    if event is None:
        raise StoreCorrupt(
            f"Event {row[3]} at position {row[0]} is not readable: its row, or its stream's, was changed.",
            hint="Restore a backup; mnemarch audit names the entry.",
            event_id=str(row[3]),
        )
    return event


def _decoded(what: str, id: str, read: Callable[[], T]) -> T:
    """What a projection's row says; one that was damaged is named, and only who asks for it has the trouble."""
    try:
        return read()
    except _DAMAGE as error:
        raise StoreCorrupt(
            f"The row of {what} {id} is not readable: {error!r}.", hint="Run mnemarch rebuild: the log makes it anew."
        ) from None


def _unit(row: tuple[str, str]) -> Unit:
    id, body = row
    return _decoded("unit", id, lambda: units.unit_from_json(from_json(body)))


def _link(row: tuple[str, str]) -> Link:
    id, body = row
    return _decoded("link", id, lambda: links.Link.from_json(from_json(body)))


def _searchable(id: str, *columns: Any) -> Searchable:
    return _decoded("unit", id, lambda: _searchable_of(id, *columns))


def _searchable_of(
    id: str, scope_key: str, status: str, kind: str, domain: str, session: str | None, turn: int, body: str, at: int
) -> Searchable:
    record = from_json(body)  # json_extract would end a text at its first NUL
    return units.Searchable(
        id=id,
        scope_key=scope_key,
        state=units.search_state(units.Status(status), record.get("superseded_from"), record["valid_to_commit"]),
        kind=units.search_kind(kind, domain, record["attributes"]),
        domain=domain,
        session=session,
        turn=turn,
        content=record["content"],
        occurred_at=record["occurred_at"],
        importance=record["importance"],
        changed_at=at,
    )


def _relation(source: str, type: str, target: str, id: str) -> Relation:
    return _decoded(
        "relation",
        id,
        lambda: decisions.Relation(source=source, type=decisions.RelationType(type), target=target, id=id),
    )


def _use(row: Any) -> Use:
    unit_id, task_key, *flags = row
    handed, used, credited, blamed = map(bool, flags)
    return links.Use(unit_id=unit_id, task_key=task_key, handed=handed, used=used, credited=credited, blamed=blamed)

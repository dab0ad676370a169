"""Reader and transaction for a remote server: queries are sent in rounds, writes are held back until the commit.

The answers of a view are cached by question, and the cache knows which answers its own writes may have changed.
"""

from __future__ import annotations

import re
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from mnemarch.model.testrun import TestRecord, short_name
from mnemarch.stores.sql.queries import Queries, text_keys
from mnemarch.stores.sql.reader import ALL, Reader
from mnemarch.stores.sql.transaction import Transaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Protocol, TypeVar

    from mnemarch.model.caller import Stream
    from mnemarch.model.event import Event
    from mnemarch.model.unit import Link, Unit

    T = TypeVar("T")

    class Session(Protocol):
        """A connection whose statements go out without waiting."""

        def execute(self, text: str, parameters: Any = None) -> Any: ...
        def sync(self) -> None: ...


_WRITTEN = re.compile(r"(?:INSERT INTO|UPDATE|DELETE FROM) (\w+)")
_READ = re.compile(r"(?:FROM|JOIN) (\w+)")
_EQUAL = re.compile(r"(\w+) (?:= |IN \():(\w+)")
_VIEWS = {"entries": "events"}
# By query: whether it would return a unit that was written here, given the keys of its text. Written units are merged
# into the answers of these queries, so the answers are never invalid.
_LAID_OVER: dict[str, Callable[[Unit, tuple[str | None, str | None], Mapping[str, Any]], bool]] = {
    "units_saying": lambda _, keys, asked: keys[0] == asked["canonical_key"],
    "units_with_text": lambda unit, keys, asked: (
        keys[0] == asked["canonical_key"] and unit.scope.key in asked["scope_keys"]
    ),
    "units_of_topic": lambda unit, keys, asked: (
        unit.live and keys[1] == asked["topic_key"] and unit.scope.key in asked["scope_keys"]
    ),
    "rejected_of_topic": lambda unit, keys, asked: (
        keys[1] == asked["topic_key"] and (unit.status, (unit.archive_reason or "")[:10]) == ("archived", "rejected: ")
    ),
}
# Queries whose answers are merged with written links.
_OF_LINKS = ("link", "conflicts_of")
# Columns that never change in a row. A written row with another value can't match a query's parameter. None means
# unknown, except in events, where it is a value.
_FIXED = {
    "events": ("id", "subject", "scope_key"),
    "tests": ("name", "called"),
    "units": ("id",),
    "uses": ("unit_id", "task_key"),
}
# After this many rehearsals, the work runs with one round trip for each query.
_ROUNDS_MAX = 8
_UNSENT_MAX = 1_000


class Rows(list[Any]):
    """A cursor over rows that are already here."""

    def fetchone(self) -> Any:
        return self[0] if self else None

    def fetchall(self) -> list[Any]:
        return self


class _NoRow(tuple[Any, ...]):
    """The answer during a rehearsal: no rows, or 0 where a number is expected."""

    def __bool__(self) -> bool:
        return False

    def __getitem__(self, _: Any) -> Any:
        return 0


class NoRows(Rows):
    def fetchone(self) -> _NoRow:
        return _NoRow()


class _Shape:
    """The table that a query writes, the tables that it reads, and the fixed columns it selects by."""

    def __init__(self, text: str) -> None:
        written = _WRITTEN.match(text)
        self.writes = written and written[1]
        self.reads = frozenset(_VIEWS.get(name, name) for name in _READ.findall(text))
        fixed = _FIXED.get(next(iter(self.reads)), ()) if len(self.reads) == 1 else ()
        self.chooses = [(column, name) for column, name in _EQUAL.findall(text) if column in fixed]


_shapes: dict[str, _Shape] = {}


class Known:
    """Answers by question. `questions` have not been asked yet."""

    def __init__(self, queries: Queries) -> None:
        self._texts = queries.texts
        self.rows: dict[Any, Rows] = {}
        self.questions: dict[Any, tuple[str, dict[str, Any]]] = {}
        # By table and fixed column: the values of rows written since. None: any value.
        self._written: dict[str, dict[str, set[Any] | None]] = {}

    def _shape(self, name: str) -> _Shape:
        text = self._texts[name]
        shape = _shapes.get(text)
        if shape is None:
            shape = _shapes[text] = _Shape(text)
        return shape

    def table_written(self, name: str) -> str | None:
        """The table that a query writes to."""
        return self._shape(name).writes

    def write(self, table: str, row: Mapping[str, Any]) -> None:
        """Note a written row. Answers that may contain it become invalid."""
        written = self._written.setdefault(table, {column: set() for column in _FIXED.get(table, ())})
        for column, values in written.items():
            item = row.get(column)
            if column not in row or (item is None and table != "events"):
                written[column] = None
            elif values is not None:
                values.add(item)

    def answer(self, name: str, parameters: dict[str, Any], *, note: bool) -> Rows | None:
        """The cached rows; None if the question has to be asked now.

        With `note`, an unknown question is asked later together with others, and has no rows until then.
        """
        if not (note or self.rows):
            return None
        key = _key(name, parameters)
        rows = self.rows.get(key)
        if not self._is_in_doubt(name, parameters):
            if rows is None and note:
                self.questions[key] = name, parameters
                return NoRows()
            return rows
        return (rows or NoRows()) if self.questions else None

    def _is_in_doubt(self, name: str, parameters: Mapping[str, Any]) -> bool:
        if not self._written or name in _LAID_OVER or name in _OF_LINKS:
            return False
        shape = self._shape(name)
        return any(table in self._written and not self._is_apart(table, shape, parameters) for table in shape.reads)

    def _is_apart(self, table: str, shape: _Shape, parameters: Mapping[str, Any]) -> bool:
        """Whether none of the rows written to a table can be in the query's answer."""
        for column, name in shape.chooses:
            values, wanted = self._written[table][column], parameters[name]
            if values is not None and values.isdisjoint(wanted if isinstance(wanted, list | tuple) else (wanted,)):
                return True
        return False

    def marks(self) -> Any:
        """The writes since the answers came, for `unmark`."""
        return {
            table: {column: None if values is None else set(values) for column, values in columns.items()}
            for table, columns in self._written.items()
        }

    def unmark(self, marks: Any) -> None:
        self._written = marks

    def learn(self, answers: Iterable[tuple[Any, list[Any]]]) -> None:
        """Add fresh answers, and drop older ones that became invalid."""
        if self._written:
            self.forget()
        self.questions = {}
        self.rows.update((key, Rows(rows)) for key, rows in answers)

    def forget(self) -> None:
        self.rows, self._written = {}, {}


def _key(name: str, parameters: Mapping[str, Any]) -> tuple[Any, ...]:
    items = ((each, tuple(item) if isinstance(item, list | tuple) else item) for each, item in parameters.items())
    return name, *sorted(items, key=lambda pair: pair[0])


class Redo(BaseException):
    """The work has to be repeated under other conditions."""


class RemoteReader(Reader):
    """A reader that sends queries in rounds."""

    # Each further page would cost a round trip.
    first_page = ALL

    def __init__(self, execute: Callable[[str, dict[str, Any]], Any], queries: Queries) -> None:
        super().__init__(execute, queries)
        self._begin_view()

    def _begin_view(self) -> None:
        self._known = Known(self._queries)
        self._is_rehearsing = False

    def together(self, work: Callable[[Any], T]) -> T:
        """Rehearse `work` without answers, send all its queries at once, and run it again with the answers.

        Independent queries share one round trip. Queries that depend on earlier answers cost one more for each step.
        """
        if self._is_rehearsing:
            return work(self)
        for _ in range(_ROUNDS_MAX):
            begun = self._state()
            self._is_rehearsing = True
            try:
                result = work(self)
            except (Exception, Redo):
                if not self._known.questions:
                    raise  # No answer was missing, so the error is real.
            else:
                if not self._known.questions:
                    return result
            finally:
                self._is_rehearsing = False
            self._undo(begun)
            self._answer()
        return work(self)

    def _state(self) -> Any:
        """What `_undo` needs to undo a rehearsal. A reader has nothing to undo."""

    def _undo(self, begun: Any) -> None:
        pass

    def _answer(self) -> None:
        """Send all open queries in one round trip."""
        asked = [(key, self._ask(*question)) for key, question in self._known.questions.items() if key is not None]
        self._known.learn([(key, cursor.fetchall()) for key, cursor in asked])

    def _ask(self, name: str, parameters: dict[str, Any]) -> Any:
        return self._execute(self._queries.texts[name], parameters)

    def query(self, name: str, /, **parameters: Any) -> Any:
        known = self._known.answer(name, parameters, note=self._is_rehearsing)
        return self._ask(name, parameters) if known is None else known


class RemoteTransaction(RemoteReader, Transaction):
    """Holds writes back until the commit, or until a query has to see them.

    Some written rows are merged into the answers of queries, so that those writes need not be sent first.
    """

    def __init__(self, session: Session, queries: Queries, integrity_error: type[Exception]) -> None:
        Transaction.__init__(self, session.execute, queries, integrity_error)
        self._begin_view()
        self._session = session
        # Unsent writes. Those of the current job begin at `_job_start`, unless it has a savepoint.
        self._unsent: list[tuple[str, dict[str, Any]]] = []
        self._job_start: int | None = None
        self._tests: dict[Stream, dict[tuple[str, str, bool], TestRecord]] = {}
        self._appended: list[Event] = []
        # Written units with the keys of their texts; unit ids by key, also former ones; ids of new units.
        self._put: dict[str, tuple[str | None, str | None]] = {}
        self._keyed: dict[str | None, list[str]] = {}
        self._born: set[str] = set()
        # Written links by id, None for a dropped one; and by unit id, the links it was added to.
        self._links: dict[str, Link | None] = {}
        self._joined: dict[str, frozenset[str]] = {}

    def query(self, name: str, /, **parameters: Any) -> Any:
        table = self._known.table_written(name)
        if table is not None:
            self._write(table, name, parameters)
            return None
        known = self._known.answer(name, parameters, note=self._is_rehearsing)
        if known is not None:
            return known
        self._is_rehearsing = False  # The answer depends on this transaction's own writes.
        self._send()
        return self._ask(name, parameters)

    def _write(self, table: str, name: str, parameters: dict[str, Any]) -> None:
        if (self._is_rehearsing or self._known.rows) and name != "put_test":  # See `tests`.
            # See `events_of_subject`.
            self._known.write(table, parameters | {"subject": None} if name == "append" else parameters)
        self._unsent.append((name, parameters))
        if self._known.questions:
            return
        if name == "put_unit" and parameters["root"] is not None:
            # The database may refuse a second active version; the caller has to get that error.
            self._is_rehearsing = False
            self._send()
            self._session.sync()
        elif len(self._unsent) >= _UNSENT_MAX and not self._is_rehearsing:
            self._send()

    def _answer(self) -> None:
        self._send()
        super()._answer()

    def _send(self) -> None:
        """Send held-back writes. In a batch, a savepoint is set before those of the current job."""
        start = self._job_start
        if start is not None:
            self._send_writes(self._unsent[:start])
            del self._unsent[:start]
            self._job_start = None if self._unsent else 0
            if self._unsent:
                self._session.execute("SAVEPOINT job")
        self._send_writes(self._unsent)
        self._unsent.clear()

    def _send_writes(self, writes: list[tuple[str, dict[str, Any]]]) -> None:
        for name, group in groupby(writes, key=itemgetter(0)):
            self._send_rows(name, [row for _, row in group])

    def _send_rows(self, name: str, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            self._execute(self._queries.texts[name], row)

    # Jobs and rehearsals

    def _state(self) -> Any:
        tests = {stream: dict(records) for stream, records in self._tests.items()}
        lengths = len(self._unsent), len(self._appended)
        units = dict(self._heads), dict(self._written), dict(self._put), set(self._born)
        return lengths, self._known.marks(), tests, units, (dict(self._links), dict(self._joined))

    def _undo(self, begun: Any) -> None:
        self.forget()
        (unsent, appended), marks, self._tests, units, (self._links, self._joined) = begun
        self._heads, self._written, self._put, self._born = units
        del self._unsent[unsent:]
        del self._appended[appended:]
        self._known.unmark(marks)

    def begin_job(self) -> Any:
        """Begin one of several jobs. Returns what `undo_job` needs."""
        self._job_start = len(self._unsent)
        return self._state()

    def end_job(self) -> None:
        if self._job_start is None:
            self._send()
            self._session.execute("RELEASE SAVEPOINT job")
        self._job_start = None

    def undo_job(self, begun: Any) -> None:
        start, self._job_start = self._job_start, None
        del self._unsent[start or 0 :]
        self._undo(begun)
        if start is None:
            self._session.execute("ROLLBACK TO SAVEPOINT job")
            self._known.forget()

    # Written rows, merged into what is read

    def append(self, event: Event, hash: bytes) -> Event:
        placed = super().append(event, hash)
        if event.subject is not None and (self._is_rehearsing or self._known.rows):
            self._appended.append(placed)
        return placed

    def event(self, event_id: str) -> Event | None:
        own = [event for event in self._appended if event.id == event_id]
        return own[0] if own else super().event(event_id)

    def events_of_subject(self, subject: str, *, after: int = 0, last: int = ALL) -> Iterator[Event]:
        events = {event.id: event for event in super().events_of_subject(subject, after=after, last=last)}
        own = [event for event in self._appended if event.subject == subject and event.position > after]
        events |= {event.id: event for event in own}
        return iter(list(events.values())[-last:] if last else ())

    def held(self, unit_ids: Iterable[str]) -> dict[str, Event]:
        ids = set(unit_ids)
        own = [event for event in self._appended if event.type == "unit.held" and event.subject in ids]
        return super().held(ids) | {event.subject or "": event for event in own}

    def tests(self, stream: Stream, names: Iterable[str], *, called: bool = False) -> list[TestRecord]:
        wanted = set(names)
        records = [*super().tests(stream, wanted, called=called), *self._tests.get(stream, {}).values()]
        named = {
            (record.name, record.place, record.witnessed): record
            for record in records
            if (short_name(record.name) if called else record.name) in wanted
        }
        return [named[key] for key in sorted(named)]

    def put_test(self, record: TestRecord) -> None:
        super().put_test(record)
        self._tests.setdefault(record.stream, {})[record.name, record.place, record.witnessed] = record

    def drop_tests(self, event_ids: Sequence[str]) -> None:
        super().drop_tests(event_ids)
        self._tests.clear()

    def _units(self, name: str, /, **parameters: Any) -> list[Unit]:
        units, fits = super()._units(name, **parameters), _LAID_OVER.get(name)
        if fits is None or not self._put:
            return units
        units = [unit for unit in units if unit.id not in self._put]
        key = parameters.get("topic_key") or parameters["canonical_key"]
        own = {id: self._written[id] for id in self._keyed.get(key, ()) if id in self._put}
        units += [unit for unit in own.values() if fits(unit, self._put[unit.id], parameters)]
        if "topic_key" in parameters:
            return sorted(units, key=attrgetter("status", "id"), reverse=True)[: parameters["limit"]]
        return sorted(units, key=attrgetter("id"))

    def erase_payload(self, event_id: str) -> None:
        super().erase_payload(event_id)
        self._appended = [event for event in self._appended if event.id != event_id]

    def clear_projections(self) -> None:
        super().clear_projections()
        self._tests, self._put, self._born, self._links, self._joined = {}, {}, set(), {}, {}

    def put_unit(self, unit: Unit, *, searchable_at: int | None, **keys: Any) -> None:
        if unit.id not in self._written:
            self._born.add(unit.id)
        super().put_unit(unit, searchable_at=searchable_at, **keys)
        # A missing key keeps its value. The keys of an existing unit follow from its text.
        text, topic = keys["canonical_key"], keys["topic_key"]
        before = self._put.get(unit.id) or ((None, None) if unit.id in self._born else text_keys(unit))
        self._put[unit.id] = before[0] if text is None else text, before[1] if topic is None else topic
        for key in self._put[unit.id]:
            self._keyed.setdefault(key, []).append(unit.id)

    def link(self, link_id: str) -> Link | None:
        return self._links[link_id] if link_id in self._links else super().link(link_id)

    def open_conflicts(self, unit_ids: Sequence[str]) -> list[Link]:
        before = [unit_id for unit_id in unit_ids if unit_id not in self._born]
        found = {link.id: link for link in super().open_conflicts(before)} if before else {}
        ids = found.keys() | {link_id for unit_id in unit_ids for link_id in self._joined.get(unit_id, ())}
        links = [found[id] if id in found and id not in self._links else self.link(id) for id in sorted(ids)]
        return [link for link in links if link is not None and link.open and link.type == "contradicts"]

    def put_link(self, link: Link) -> None:
        super().put_link(link)
        self._links[link.id] = link

    def put_link_unit(self, link_id: str, unit_id: str) -> None:
        super().put_link_unit(link_id, unit_id)
        self._joined[unit_id] = self._joined.get(unit_id, frozenset()) | {link_id}

    def drop_link(self, link_id: str) -> None:
        super().drop_link(link_id)
        self._links[link_id] = None

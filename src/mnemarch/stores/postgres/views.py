"""Reader and transaction of one tenant, or of all. A tenant sees its project and what lies at its org's level."""

from __future__ import annotations

from typing import Any

from mnemarch.model.caller import Level, Scope
from mnemarch.stores.sql.reader import Reader
from mnemarch.stores.sql.rows import searchable_of
from mnemarch.stores.sql.transaction import Transaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from mnemarch.model.caller import Stream
    from mnemarch.model.event import Event
    from mnemarch.model.testrun import TestRecord
    from mnemarch.model.unit import Searchable, Unit
    from mnemarch.stores.postgres.sessions import Session
    from mnemarch.stores.sql.queries import Queries

    T = TypeVar("T")

_POSITION_BITS = 48
_POSITION_MAX = (1 << _POSITION_BITS) - 1
# What reads the ends of streams, which a transaction writes last.
_OF_HEADS = {"head", "heads", "counts", "positions"}
_WRITES = ("append", "clear", "drop", "erase", "judge", "move", "put")
_PAGE = 1_000


class NeedsOrg(BaseException):
    """The work writes at its org's level, and has not locked the org. It is done again with that lock."""


def tenant_of(org: str, project: str | None) -> str:
    return Scope.of((org, project, None, None)).key


def tenants_of(stream: Stream) -> tuple[str, ...]:
    """What one who acts in a stream may see: the tenant of the org, then its own."""
    own, wide = tenant_of(stream.org, stream.project), tenant_of(stream.org, None)
    return (own,) if own == wide else (wide, own)


class OfTenants(Reader):
    """A reader of some tenants, or, with none, of all of them.

    Each tenant has positions of its own. Those of an org and a project are joined to one number: it grows whenever
    either does, so whoever follows both misses nothing, whichever commits first.
    """

    def __init__(
        self, execute: Callable[[str, dict[str, Any]], Any], queries: Queries, tenants: tuple[str, ...]
    ) -> None:
        super().__init__(execute, queries)
        self._tenants = tenants
        self._asked: dict[tuple[Any, ...], Any] = {}

    def together(self, work: Callable[[Any], T]) -> T:
        asker = _Asker(self._execute, self._queries, self._tenants)
        work(asker)
        self._asked = {key: super(OfTenants, self).query(name, **more) for key, (name, more) in asker.noted.items()}
        try:
            return work(self)
        finally:
            self._asked = {}

    @property
    def _tenant(self) -> str:
        return self._tenants[-1] if self._tenants else ""

    def query(self, name: str, /, **parameters: Any) -> Any:
        parameters.setdefault("tenant", self._tenant)
        known = self._asked and self._asked.pop(_key(name, parameters), None)
        return known or super().query(name, **parameters)

    def head(self, stream: Stream) -> tuple[int, bytes]:
        tenant = tenant_of(stream.org, stream.project)
        row = self._one("head", org=stream.org, project=stream.project or "", tenant=tenant)
        return row[1:] if row else (0, b"")

    def events(self, *, after: int = 0, limit: int | None = None) -> Iterator[Event]:
        """Every event in order, page by page: a result comes as a whole."""
        while limit is None or limit > 0:
            page = list(super().events(after=after, limit=_PAGE if limit is None else min(_PAGE, limit)))
            yield from page
            if len(page) < _PAGE:
                return
            after = page[-1].position
            limit = None if limit is None else limit - len(page)

    def position(self) -> int:
        if not self._tenants:
            return super().position()
        known = dict(self.query("positions", tenants=list(self._tenants)).fetchall())
        return _joined([known.get(tenant, 0) for tenant in self._tenants])

    def event_at(self, position: int) -> str:
        if not self._tenants or not position:
            return super().event_at(position)
        rows = [self.query("event_at", tenant=tenant, position=own) for tenant, own in self._parted(position)]
        return " ".join(event_id for cursor in rows for (event_id,) in cursor)

    def searchable_after(self, position: int, limit: int) -> list[Searchable]:
        if not self._tenants:
            return super().searchable_after(position, limit)
        reached = [after for _, after in self._parted(position)]
        cursors = [
            self.query("searchable_in", tenant=tenant, position=after, limit=limit)
            for tenant, after in self._parted(position)
        ]
        page: list[Searchable] = []
        for number, cursor in enumerate(cursors):
            if len(page) < limit:  # Else the next page begins with this tenant.
                for row in cursor:
                    reached[number] = row[-1]
                    page.append(searchable_of((*row[:-1], _joined(reached))))
        return page

    def searchable_count_after(self, position: int) -> int:
        if not self._tenants:
            return super().searchable_count_after(position)
        cursors = [
            self.query("searchable_count_in", tenant=tenant, position=after) for tenant, after in self._parted(position)
        ]
        return sum(int(cursor.fetchone()[0]) for cursor in cursors)

    def _parted(self, position: int) -> list[tuple[str, int]]:
        """Each tenant with its own part of a joined position."""
        parts: list[tuple[str, int]] = []
        for tenant in reversed(self._tenants):
            parts.insert(0, (tenant, position & _POSITION_MAX))
            position >>= _POSITION_BITS
        return parts


class _NoRow(tuple[Any, ...]):
    """The answer of a reader that has none: nothing, and 0 where a number is expected."""

    def __bool__(self) -> bool:
        return False

    def __getitem__(self, _: Any) -> Any:
        return 0


class _NoRows(list[Any]):
    def fetchone(self) -> _NoRow:
        return _NoRow()

    def fetchall(self) -> list[Any]:
        return []


class _Asker(OfTenants):
    """Notes what it is asked."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.noted: dict[tuple[Any, ...], tuple[str, dict[str, Any]]] = {}

    def query(self, name: str, /, **parameters: Any) -> Any:
        parameters.setdefault("tenant", self._tenant)
        self.noted[_key(name, parameters)] = name, parameters
        return _NoRows()


def _key(name: str, parameters: dict[str, Any]) -> tuple[Any, ...]:
    items = ((each, tuple(item) if isinstance(item, list | tuple) else item) for each, item in parameters.items())
    return name, *sorted(items, key=lambda pair: pair[0])


def _joined(positions: list[int]) -> int:
    total = 0
    for position in positions:
        total = total << _POSITION_BITS | position
    return total


class PostgresTransaction(OfTenants, Transaction):
    """Writes go out without waiting for their results; the ends of streams are moved once, before the commit."""

    keeps_writers = False

    def __init__(
        self,
        session: Session,
        queries: Queries,
        integrity_error: type[Exception],
        tenants: tuple[str, ...],
        *,
        has_org: bool,
    ) -> None:
        Transaction.__init__(self, session.execute, queries, integrity_error)
        self._session = session
        # Events that are still to be sent; those of the job under way begin at `_job_start`, if it has no savepoint.
        self._unsent: list[dict[str, Any]] = []
        self._job_start: int | None = None
        self._tenants = tenants
        self._asked = {}
        # Whose row is written, if not that of the tenant that acts.
        self._row_tenant = ""
        self._has_org = has_org or len(tenants) < 2
        # The position of the newest event here; and, of the streams that were locked, results nobody waited for yet.
        self._clock: int | None = None
        self._locked: list[Any] = []
        self._known: tuple[int, bytes, int] | None = None
        # By tenant: the end of a stream that is still to be written, and how far an org's units have changed.
        self._moved: dict[str, dict[str, Any]] = {}
        self._changed: dict[str, tuple[str, int]] = {}
        self.last_event = ""

    @property
    def _tenant(self) -> str:
        if self._row_tenant or self._tenants or self.stream is None:
            return self._row_tenant or super()._tenant
        return tenant_of(self.stream.org, self.stream.project)

    def begun(self, locked: list[Any], known: tuple[int, bytes, int] | None) -> None:
        """Take the results of the locks, or, in their place, the end that the stream had when it was last written."""
        self._locked, self._known = locked, known

    def _see_end(self) -> tuple[int, bytes]:
        """The end of the stream that this acts in."""
        ends = [self._known] if self._known else [cursor.fetchone() or (0, b"", 0) for cursor in self._locked]
        self._clock = max(position for *_, position in ends)
        return ends[0][:2]

    def end_of(self, stream: Stream) -> tuple[int, bytes, int] | None:
        """Where a stream ends after this transaction, if it was looked at."""
        head = self._heads.get(stream)
        return None if head is None or self._clock is None else (*head[1:], self._clock)

    def query(self, name: str, /, **parameters: Any) -> Any:
        if name == "append":
            self._asked.clear()
            self._unsent.append(parameters | {"tenant": self._tenant})
            return None
        self._send()
        if self._moved and (name in _OF_HEADS or "entries" in self._queries.texts[name]):
            self.write_heads()
        if name.startswith(_WRITES):
            self._asked.clear()
        cursor = super().query(name, **parameters)
        if name == "put_unit" and parameters["root"] is not None:
            self._session.sync()  # The store may refuse a second version in force, and who wrote it must learn of that.
        return cursor

    def together(self, work: Callable[[Any], T]) -> T:
        self.write_heads()
        return super().together(work)

    def _send(self) -> None:
        """Send the events that wait. Those of a job that asks for more than that can be undone from now on."""
        start, self._job_start = self._job_start, None
        if start is not None:
            self._send_events(start)
            self._session.execute("SAVEPOINT job")
        self._send_events(len(self._unsent))

    def _send_events(self, count: int) -> None:
        events, self._unsent = self._unsent[:count], self._unsent[count:]
        if events:
            self._session.execute_many(self._queries.texts["append"], events)

    def begin_job(self) -> tuple[Any, ...]:
        """Begin one of several jobs; gives what `undo_job` needs."""
        self._job_start = len(self._unsent)
        return dict(self._heads), dict(self._moved), dict(self._changed), self._clock

    def end_job(self) -> None:
        if self._job_start is None:
            self._send()
            self._session.execute("RELEASE SAVEPOINT job")
        self._job_start = None

    def undo_job(self, begun: tuple[Any, ...]) -> None:
        start, self._job_start = self._job_start, None
        del self._unsent[start or 0 :]
        if start is None:
            self._session.execute("ROLLBACK TO SAVEPOINT job")
        self.forget()
        self._heads, self._moved, self._changed, self._clock = begun

    def head(self, stream: Stream) -> tuple[int, bytes]:
        return self._head(stream)[1:]

    def _head(self, stream: Stream) -> tuple[int, int, bytes]:
        head = self._heads.get(stream)
        if head is None:
            tenant = tenant_of(stream.org, stream.project)
            if self._tenants and self._clock is None and tenant == self._tenants[-1]:
                head = (0, *self._see_end())
            else:
                head = self._one("head", org=stream.org, project=stream.project or "", tenant=tenant) or (0, 0, b"")
            self._heads[stream] = head
        return head

    def _move_head(self, stream_id: int, event: Event, hash: bytes) -> int:
        if self._clock is None:
            self._clock = int(self._one("last_position")[0])
        self._clock += 1
        end = {"org": event.stream.org, "project": event.stream.project or "", "seq": event.seq, "hash": hash}
        self._moved[self._tenant] = end | {"position": self._clock}
        self.last_event = event.id
        return stream_id

    def _append(self, **row: Any) -> int:
        position: int = self._moved[self._tenant]["position"]
        self.query("append", position=position, **row)
        return position

    def write_heads(self) -> None:
        """Move the ends of streams to where this transaction has come."""
        moved, self._moved = self._moved, {}
        changed, self._changed = self._changed, {}
        for tenant, end in moved.items():
            if not self._tenants:
                self.query("new_stream", tenant=tenant, **end)
            self.query("move_head", tenant=tenant, **end)
        for tenant, (org, position) in changed.items():
            if not self._tenants:
                self.query("new_stream", tenant=tenant, org=org, project="")
            self.query("move_position", tenant=tenant, position=position)

    def put_unit(self, unit: Unit, *, searchable_at: int | None, **keys: Any) -> None:
        is_wide = unit.level is Level.ORG
        if is_wide and not self._has_org:
            raise NeedsOrg
        self._row_tenant = tenant = tenant_of(unit.scope.org, unit.scope.project)
        try:
            if unit.version > 1 and (is_wide or not self._tenants):
                self.query("move_unit", id=unit.id)
            super().put_unit(unit, searchable_at=searchable_at, **keys)
            if unit.version > 1 and is_wide:
                self.query("move_links", id=unit.id)
                self.query("move_link_units")
            if is_wide:
                self._changed[tenant] = unit.scope.org, self._clock or searchable_at or 0
        finally:
            self._row_tenant = ""

    def put_test(self, record: TestRecord) -> None:
        self._row_tenant = tenant_of(record.stream.org, record.stream.project)
        super().put_test(record)
        self._row_tenant = ""

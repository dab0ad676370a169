"""Reader and transaction of one tenant, or of all. A tenant sees its project and what lies at its org's level."""

from __future__ import annotations

from itertools import count
from typing import Any

from mnemarch.model.caller import Level, Scope, Stream
from mnemarch.stores.postgres.sessions import Session, as_json
from mnemarch.stores.sql.queries import Queries, event_of, searchable_of
from mnemarch.stores.sql.remote import Redo, RemoteReader, RemoteTransaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from mnemarch.model.event import Event
    from mnemarch.model.unit import Searchable, Unit

    T = TypeVar("T")

_POSITION_BITS = 48
_POSITION_MAX = (1 << _POSITION_BITS) - 1
# Queries that read heads of streams. A transaction writes those last.
_OF_HEADS = {"head", "heads", "counts", "ends"}
_PAGE = 1_000
_numbers = count()


class NeedsOrg(Redo):
    """The work writes at org level without the org's lock. It is repeated with that lock."""


def tenant_of(org: str, project: str | None) -> str:
    return Scope.of((org, project, None, None)).key


def tenants_of(stream: Stream) -> tuple[str, ...]:
    """The tenants that a stream may see: its org's, then its own."""
    own, wide = tenant_of(stream.org, stream.project), tenant_of(stream.org, None)
    return (own,) if own == wide else (wide, own)


class OfTenants(RemoteReader):
    """A reader of some tenants, or, with none, of all of them.

    Each tenant has its own positions. Those of an org and a project are joined into one number that grows whenever
    either grows. So a follower of both misses nothing, whichever commits first.
    """

    def __init__(
        self, execute: Callable[[str, dict[str, Any]], Any], queries: Queries, tenants: tuple[str, ...]
    ) -> None:
        super().__init__(execute, queries)
        self._look_at(tenants)

    def _look_at(self, tenants: tuple[str, ...]) -> None:
        self._tenants = tenants
        self._carries = bool(tenants)
        self.ends: dict[str, tuple[int, bytes, int]] = {}

    def carried(self) -> Any:
        """The answers of this view and the ends of its streams, for a transaction that begins at the same state."""
        own = self.ends.get(self._tenant)
        if own is None:
            return None
        *_, wide_position = self.ends.get(self._tenants[0], (0, b"", 0))
        return own, wide_position, self._known.rows

    def _answer(self) -> None:
        ends = self._ask("ends", {"tenants": list(self._tenants)}) if self._carries and not self.ends else ()
        super()._answer()
        self.ends.update((tenant, tuple(end)) for tenant, *end in ends)

    def show_own(self) -> None:
        """Send held-back writes, so that the server's next answer includes them."""

    @property
    def _tenant(self) -> str:
        return self._tenants[-1] if self._tenants else ""

    def query(self, name: str, /, **parameters: Any) -> Any:
        if "tenant" not in parameters:
            org = parameters.get("org")  # Rows of a stream belong to the stream's tenant.
            parameters["tenant"] = tenant_of(org, parameters["project"] or None) if org else self._tenant
        return super().query(name, **parameters)

    def events(self, *, after: int = 0, limit: int | None = None) -> Iterator[Event]:
        """Every event in order. The server sorts once and sends them page by page, through a cursor."""
        if limit is not None or self._is_rehearsing:
            yield from super().events(after=after, limit=limit)
            return
        self.show_own()
        name = f"log_{next(_numbers)}"
        self._execute(f"DECLARE {name} NO SCROLL CURSOR FOR {self._queries.texts['all_events']}", {"after": after})
        while page := self._execute(f"FETCH {_PAGE} FROM {name}", {}).fetchall():
            yield from map(event_of, page)
        self._execute(f"CLOSE {name}", {})

    def position(self) -> int:
        if not self._tenants:
            return super().position()
        known = {tenant: position for tenant, *_, position in self.query("ends", tenants=list(self._tenants))}
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
            if len(page) < limit:  # Otherwise the next page begins with this tenant.
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
        """Each tenant with its part of a joined position."""
        backwards = enumerate(self._tenants[::-1])
        return [(tenant, position >> _POSITION_BITS * at & _POSITION_MAX) for at, tenant in backwards][::-1]


def _joined(positions: list[int]) -> int:
    return sum(position << _POSITION_BITS * place for place, position in enumerate(reversed(positions)))


class PostgresTransaction(OfTenants, RemoteTransaction):
    """A write transaction. It updates the heads of streams once, before the commit."""

    def __init__(
        self,
        session: Session,
        queries: Queries,
        integrity_error: type[Exception],
        tenants: tuple[str, ...],
        *,
        has_org: bool,
        carried: Any,
    ) -> None:
        RemoteTransaction.__init__(self, session, queries, integrity_error)
        self._look_at(tenants)
        self._carries, self._carried = False, carried
        # The tenant of the row being written, if it isn't the acting tenant.
        self._row_tenant = ""
        self._has_org = has_org or len(tenants) < 2
        # The newest event's position; the answers of the locks; and the heads read from them.
        self._clock: int | None = None
        self.locked: list[Any] = []
        self._ends: list[Any] = []
        # Heads that are not written yet; by tenant, the position of the last change at org level.
        self._moved: dict[Stream, dict[str, Any]] = {}
        self._changed: dict[str, tuple[str, int]] = {}
        self.last_event = ""

    @property
    def _tenant(self) -> str:
        if self._row_tenant or self._tenants or self.stream is None:
            return self._row_tenant or super()._tenant
        return tenant_of(self.stream.org, self.stream.project)

    def query(self, name: str, /, **parameters: Any) -> Any:
        is_read = self._known.table_written(name) is None
        if is_read and self._moved and (name in _OF_HEADS or not self._tenants):
            self.write_heads()
        return super().query(name, **parameters)

    def _send_rows(self, name: str, rows: list[dict[str, Any]]) -> None:
        if name == "append" and len(rows) > 1:
            name, rows = "append_all", [{"rows": as_json(rows)}]
        super()._send_rows(name, rows)

    def together(self, work: Callable[[Any], T]) -> T:
        """The same. Answers of the thread's previous read are reused if nobody has written meanwhile."""
        if self._carried is not None and not self._is_rehearsing and not self._unsent and not self._heads:
            (seq, hash, position), wide_position, rows = self._carried
            wide = {"wide": self._tenants[0], "wide_position": wide_position}
            self.query("still_ends", seq=seq, hash=hash, position=position, **wide)
            self._known.learn(rows.items())
            self._ends = [(seq, hash, position)]
        self._carried = None
        return super().together(work)

    def _state(self) -> Any:
        return super()._state(), dict(self._moved), dict(self._changed), self._clock, self.last_event

    def _undo(self, begun: Any) -> None:
        written, self._moved, self._changed, self._clock, self.last_event = begun
        super()._undo(written)

    def _answer(self) -> None:
        super()._answer()
        self._see_ends()

    # Heads of streams

    def _see_ends(self) -> None:
        if not self._ends:
            self._ends = [cursor.fetchone() for cursor in self.locked]

    def _see_end(self) -> tuple[int, bytes]:
        """Sequence number and hash of the acting stream's head."""
        if self._is_rehearsing and not self._ends:
            self._known.questions[None] = "", {}  # Makes `_answer` wait for the locks too.
            self._clock = 0
            return 0, b""
        self._see_ends()
        self._clock = max(position for *_, position in self._ends)
        return self._ends[0][:2]  # type: ignore[no-any-return]

    def _head(self, stream: Stream) -> tuple[int, int, bytes]:
        is_first = self._clock is None and stream not in self._heads
        if is_first and self._tenants[-1:] == (tenant_of(stream.org, stream.project),) and not stream.writer:
            self._heads[stream] = (0, *self._see_end())
        return super()._head(stream)

    def _move_head(self, stream_id: int, event: Event, hash: bytes) -> int:
        if self._clock is None:
            self._clock = int(self._one("last_position")[0])
        self._clock += 1
        self._known.write("streams", {})
        self._moved[event.stream] = {"seq": event.seq, "hash": hash, "position": self._clock}
        self.last_event = event.id
        return stream_id

    def _append(self, **row: Any) -> int:
        assert self._clock is not None
        assert self.stream is not None
        self.query("append", position=self._clock, writer=self.stream.writer, **row)
        return self._clock

    def show_own(self) -> None:
        self.write_heads()
        self._send()

    def write_heads(self) -> None:
        """Write the heads of all streams that this transaction appended to."""
        moved, self._moved = self._moved, {}
        changed, self._changed = self._changed, {}
        for stream, end in moved.items():
            where = {"org": stream.org, "project": stream.project or "", "writer": stream.writer}
            if not self._tenants:
                self.query("new_stream", **where)
            if stream.writer:
                self.query("new_writer", **where)
                self.query("move_position", **where, position=end["position"])
            self.query("move_head", **where, **end)
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

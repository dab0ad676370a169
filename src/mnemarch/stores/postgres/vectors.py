"""Vectors in PostgreSQL with pgvector: compared one by one, or by an index for each tenant with many vectors."""

from __future__ import annotations

from contextlib import contextmanager, suppress

import psycopg
from xxhash import xxh3_64_hexdigest

from mnemarch.embedding.vectors import Head, best_first, row_of, text_key, unpacked
from mnemarch.errors import StoreCorrupt, StoreError, StoreUnavailable
from mnemarch.model.stamps import new_id
from mnemarch.stores.postgres.sessions import Session, first_line, queries_of
from mnemarch.stores.postgres.views import tenants_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, TypeVar

    from mnemarch.embedding.vectors import Within
    from mnemarch.model.unit import Searchable
    from mnemarch.stores.postgres.store import PostgresStore

    T = TypeVar("T")

_TEXTS = queries_of("vectors.sql")
_VERSION_MIN = (0, 8)
# Held while the tables are made, so that two processes don't make them at once.
_TABLES_LOCK = 0x4D4E4156
# The lease of a process that makes vectors; it is renewed with each batch.
_HELD_S = 120.0
# With fewer vectors, comparing one by one takes milliseconds and is exact.
_INDEXED_MIN = 10_000
# pgvector's limits: dimensions of an index, and its number of candidates.
_INDEXED_DIM_MAX = 4_000
_EF_SEARCH, _EF_SEARCH_MAX = 100, 1_000
_LABELS = ("scope_key", "state", "kind", "domain")


class PgVectors:
    """The vectors of one stream's project, and of its org (shared by the org's projects), by one embedder."""

    def __init__(self, store: PostgresStore, embedder_id: str, event_at: Callable[[int], str]) -> None:
        assert store.stream is not None
        self._store = store
        self._event_at = event_at
        self._name = f"{embedder_id}/int8"
        self._tenants = tenants_of(store.stream)
        self._ours = {"tenant": self._tenants[-1], "embedder": xxh3_64_hexdigest(self._name.encode())}
        # pgvector's schema, once the tables exist; and the last known state of the vectors.
        self._schema = ""
        self._head = Head()

    def _run(self, work: Callable[[_Ask], T], *, writes: bool = False) -> T:
        try:
            return self._store.aside(lambda session: work(_Ask(session, self._schema, self._ours)), writes=writes)
        except StoreCorrupt:
            self._schema, self._head = "", Head()
            raise StoreUnavailable(
                f"The vectors in {self._store.name} are gone.", hint="To make them again: mnemarch reindex --meaning"
            ) from None

    # Tables: made when first needed, so a server without pgvector works too

    def _has_tables(self) -> bool:
        if not self._schema:
            has_tables, is_available, schema, _ = self._run(lambda ask: ask("tables").fetchone())
            if not is_available:
                raise StoreUnavailable(
                    f"{self._store.name} has no pgvector. Vectors need it.",
                    hint="Install pgvector 0.8 or newer on the server, or keep vectors in Qdrant (recall.vectors).",
                )
            self._schema = schema if has_tables and schema else ""
        return bool(self._schema)

    def _make_tables(self) -> None:
        if self._has_tables():
            return
        try:
            with self._store.plain() as connection, connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", [_TABLES_LOCK])
                connection.execute(_TEXTS["extension"])
                *_, schema, version = connection.execute(_TEXTS["tables"]).fetchone()
                if tuple(map(int, version.split(".")[:2])) < _VERSION_MIN:
                    raise StoreUnavailable(
                        f"{self._store.name} has pgvector {version}; vectors need 0.8 or newer.",
                        hint="As its administrator: ALTER EXTENSION vector UPDATE",
                    )
                connection.execute(_TEXTS["schema"].replace("@pgvector", schema))
        except (psycopg.Error, OSError) as error:
            raise StoreUnavailable(
                f"The tables for vectors can't be made in {self._store.name}: {first_line(error)}.",
                hint="The owner of the other tables can run: mnemarch reindex --meaning",
            ) from error
        self._schema = schema

    # Answering

    def state(self) -> Head:
        """How far the vectors reach. A complete set stays complete, so it is not asked for again."""
        if not self._head.complete:
            self._head = self._run(_head) if self._has_tables() else Head()
        return self._head

    def count(self) -> int:
        if not self._has_tables():
            return 0
        return int(self._run(lambda ask: ask("count", tenants=list(self._tenants)).fetchone()[0]))

    def nearest(self, vector: Any, count: int, within: Within) -> list[tuple[str, float]]:
        labels = {name: list(allowed) for name, allowed in zip(_LABELS, within, strict=True) if allowed is not None}
        conditions = " AND ".join(f"{name} IN (:{name})" for name in labels) or "true"
        ef_search = str(min(_EF_SEARCH_MAX, max(_EF_SEARCH, 2 * count)))
        text = _text(vector)

        def work(ask: _Ask) -> list[tuple[str, float]]:
            ask("tune", ef_search=ef_search)
            cursors = [
                ask("nearest", tenant, {"within": conditions}, vector=text, limit=count, **labels)
                for tenant in self._tenants
            ]
            return [row for cursor in cursors for row in cursor]

        return best_first(self._run(work))[:count]

    def compared(self, vector: Any, unit_ids: Iterable[str]) -> list[tuple[str, float]]:
        ids, tenants = list(unit_ids), list(self._tenants)
        rows = self._run(lambda ask: ask("compared", vector=_text(vector), ids=ids, tenants=tenants).fetchall())
        return best_first(rows)

    def known(self, units: Sequence[Searchable]) -> set[str]:
        ids, tenants = [unit.id for unit in units], list(self._tenants)
        rows = set(self._run(lambda ask: ask("known", ids=ids, tenants=tenants).fetchall()))
        return {unit.id for unit in units if (self._tenant_of(unit), unit.id, text_key(unit.content)) in rows}

    def _tenant_of(self, unit: Searchable) -> str:
        """The tenant of a unit: the org's for units at org level."""
        return self._tenants[0] if unit.scope_key == self._tenants[0] else self._tenants[-1]

    # Making

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Hold the lease. It works behind any pooler; if two processes overlap, they only repeat work."""
        self._make_tables()
        holder = new_id()

        def hold(ask: _Ask) -> bool:
            ask("new_set", name=self._name, born=new_id())
            return ask("hold", holder=holder, held_s=_HELD_S).fetchone() is not None

        is_free = self._run(hold, writes=True)
        try:
            yield is_free
        finally:
            if is_free:
                with suppress(StoreError):
                    self._run(lambda ask: ask("let_go", holder=holder), writes=True)

    def begin(self, *, may_replace: bool) -> Head | None:  # noqa: ARG002 - each embedder has vectors of its own here
        self._head = self._run(_head)
        if self._head.event != self._event_at(self._head.position):  # The log was restored to an earlier state.

            def work(ask: _Ask) -> Head:
                ask("drop_vectors")
                ask("begin_anew", born=new_id())
                return _head(ask)

            self._head = self._run(work, writes=True)
        return self._head

    def save(self, begun: Head, changes: Sequence[tuple[Searchable, Any]], position: int, *, complete: bool) -> bool:
        event = self._event_at(position)
        rows = []
        for unit, vector in sorted(changes, key=lambda change: change[0].id):  # In one order: no deadlock.
            id, key, *labels, packed = row_of(unit, vector)
            row = {"id": id, "text_key": key, **dict(zip(_LABELS, labels, strict=True))}
            row["vector"] = None if packed is None else _text(unpacked(packed)[0])
            rows.append((self._tenant_of(unit), row))
        risen = [row["id"] for tenant, row in rows if tenant != self._ours["tenant"]]

        def work(ask: _Ask) -> bool:
            reach = {"position": position, "event": event, "complete": complete, "held_s": _HELD_S}
            if ask("reach", born=begun.born, **reach).fetchone() is None:
                return False
            for tenant, row in rows:
                ask("put", tenant, **row)
            if risen:
                ask("leave", ids=risen)
            self._head = _head(ask)
            return True

        is_saved = self._run(work, writes=True)
        if is_saved and complete:
            self._make_indexes()
        return is_saved

    def erase(self, unit_ids: Sequence[str]) -> None:
        erase_vectors(self._store, unit_ids)

    def close(self) -> None:
        """Nothing to close: the connections belong to the store."""

    # Indexes

    def _make_indexes(self) -> None:
        """Make an index for each tenant with many vectors. Only the tables' owner can; others compare one by one."""
        for tenant in self._tenants:
            key = tenant + self._ours["embedder"]
            name = f"vectors_{xxh3_64_hexdigest(key.encode())}"
            is_valid = self._run(lambda ask, name=name: ask("is_indexed", name=name).fetchone())  # type: ignore[misc]
            if is_valid == (True,):
                continue
            dim, count = self._run(lambda ask, tenant=tenant: _size(ask, tenant))  # type: ignore[misc]
            if count >= _INDEXED_MIN and dim <= _INDEXED_DIM_MAX:
                self._make_index(tenant, name, dim)

    def _make_index(self, tenant: str, name: str, dim: int) -> None:
        values = {"pgvector": self._schema, "tenant": tenant, "embedder": self._ours["embedder"], "name": name}
        try:
            with self._store.plain() as connection:
                if connection.execute(_filled("alone", values)).fetchone()[0]:
                    for each in ("drop_index", "new_index", "analyse"):
                        connection.execute(_filled(each, {**values, "dim": str(dim)}))
        except psycopg.errors.InsufficientPrivilege:
            return
        except (psycopg.Error, OSError) as error:
            raise StoreUnavailable(
                f"The index of vectors was not made: {first_line(error)}.", hint="Call again."
            ) from error


class _Ask:
    """Runs named queries for one tenant and embedder, unless the call names others."""

    def __init__(self, session: Session, schema: str, ours: dict[str, str]) -> None:
        self._session = session
        self._schema = schema
        self._ours = ours

    def __call__(self, query: str, tenant: str = "", values: dict[str, str] | None = None, /, **parameters: Any) -> Any:
        ours = {**self._ours, "tenant": tenant or self._ours["tenant"]}
        dim = str(parameters["vector"].count(",") + 1) if query == "nearest" else ""
        filled = {"pgvector": self._schema, "dim": dim, **ours, **(values or {})}
        return self._session.execute(_filled(query, filled), {**ours, **parameters})


def erase_vectors(store: PostgresStore, unit_ids: Sequence[str]) -> None:
    """Erase the vectors of these units for all embedders, also unused ones."""
    if not has_vectors(store):
        return
    said = {"ids": list(unit_ids), "tenants": [] if store.stream is None else list(tenants_of(store.stream))}
    queries = _TEXTS["erase_rows"], _TEXTS["erase_later"]
    store.aside(lambda session: [session.execute(query, said) for query in queries], writes=True)


def has_vectors(store: PostgresStore) -> bool:
    """Whether this memory has tables for vectors."""
    row = store.aside(lambda session: session.execute("SELECT to_regclass('vectors') IS NOT NULL").fetchone())
    return bool(row[0])


def _filled(name: str, values: dict[str, str]) -> str:
    text = _TEXTS[name]
    for each, what in values.items():
        text = text.replace(f"@{each}", what)
    return text


def _head(ask: _Ask) -> Head:
    row = ask("head").fetchone()
    return Head() if row is None else Head(born=row[0], position=int(row[1]), event=row[2], complete=int(row[3]))


def _size(ask: _Ask, tenant: str) -> tuple[int, int]:
    dim, count = ask("dim", tenant), ask("count", tenants=[tenant])
    return int((dim.fetchone() or (0,))[0]), int(count.fetchone()[0])


def _text(vector: Any) -> str:
    """The vector in pgvector's text format, with enough digits for half precision."""
    return f"[{','.join(map('%.6g'.__mod__, vector.tolist()))}]"

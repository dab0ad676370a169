"""Statements of a store's tenants beside its log: they see no other tenant, and lock no stream."""

from __future__ import annotations

import psycopg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from mnemarch.stores.postgres.sessions import Session
    from mnemarch.stores.postgres.store import PostgresStore

    T = TypeVar("T")


def aside(store: PostgresStore, work: Callable[[Session], T], *, writes: bool = False) -> T:
    """Run `work` in a transaction of its own. It is run again if the connection turns out to be lost."""

    def run(session: Session) -> T:
        store._begin_as(session, "BEGIN" if writes else "BEGIN READ ONLY", store._lock_wait_s_max)
        result = work(session)
        session.end()
        if writes:
            session.sync()
        return result

    try:
        return store._sessions.use_patiently(run)
    except (psycopg.Error, OSError) as error:
        raise store._translation(error) from error


def own_connection(store: PostgresStore) -> Any:
    """A connection of its own as the user who connects: for what is no tenant's, and what no transaction may hold."""
    return store._sessions.plain()

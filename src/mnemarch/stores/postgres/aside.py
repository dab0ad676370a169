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
    try:
        try:
            return _done(store, work, writes)
        except psycopg.OperationalError as error:
            if not isinstance(error, psycopg.errors.AdminShutdown) and error.sqlstate is not None:
                raise
            return _done(store, work, writes, is_new=True)
    except (psycopg.Error, OSError) as error:
        raise store._translation(error) from error


def _done(store: PostgresStore, work: Callable[[Session], T], writes: bool, *, is_new: bool = False) -> T:
    session = store._sessions.lend(is_new=is_new)
    try:
        session.execute("BEGIN" if writes else "BEGIN READ ONLY")
        store._set_up(session, store._lock_wait_s_max)
        result = work(session)
        session.end()
        if writes:
            session.sync()
    except BaseException as error:
        store._give_up(session, error)
        raise
    store._sessions.take_back(session)
    return result


def own_connection(store: PostgresStore) -> Any:
    """A connection of its own as the user who connects: for what is no tenant's, and what no transaction may hold."""
    return store._sessions.plain()

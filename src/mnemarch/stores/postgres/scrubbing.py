"""Erasure to the last byte of a PostgreSQL server: its tables, and its write-ahead log."""

from __future__ import annotations

import time

from psycopg.errors import InsufficientPrivilege

from mnemarch.errors import StoreUnavailable
from mnemarch.stores.postgres.sessions import first_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_OLDER_READERS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND greatest(age(backend_xmin), age(backend_xid)) > age(CAST(%s AS xid))"
)
_OLD_SEGMENTS = (
    "SELECT count(*) FROM pg_ls_waldir()"
    " WHERE name > pg_walfile_name(pg_current_wal_insert_lsn()) AND name ~ '^[0-9A-F]{24}$'"
)
_NAP_S = 0.02
# These tables exist only once vectors were needed.
_DERIVED = ["vector_sets", "vectors"]
# Other writers can make the server keep a segment during the first round.
_ROUNDS = 2


def with_derived(connection: Any, tables: Sequence[str]) -> list[str]:
    """These tables, and the tables for vectors if they exist."""
    there = connection.execute("SELECT n FROM unnest(%s::text[]) n WHERE to_regclass(n) IS NOT NULL", [_DERIVED])
    return [*tables, *(name for (name,) in there)]


def scrubbed(connection: Any, tables: Sequence[str], name: str, wait_s_max: float, *, rewrite: bool) -> int:
    """Remove erased content from the tables and the server's write-ahead log. Returns the number of tables."""
    tables = with_derived(connection, tables)
    try:
        if rewrite:
            _rewrite_tables(connection, tables, name, wait_s_max)
        _empty_log(connection)
    except InsufficientPrivilege as error:
        raise StoreUnavailable(
            f"The content was erased, but files of {name} may still hold bytes of it: {first_line(error)}.",
            hint="Let its administrator run VACUUM FULL, switch the write-ahead log and make a checkpoint.",
        ) from None
    return len(tables)


def _rewrite_tables(connection: Any, tables: Sequence[str], name: str, wait_s_max: float) -> None:
    """Rewrite the tables without dead rows. Waits for older readers, since their snapshots keep dead rows."""
    (now,) = connection.execute("SELECT CAST(CAST(pg_current_xact_id() AS xid) AS text)").fetchone()
    give_up_at = time.monotonic() + wait_s_max
    while connection.execute(_OLDER_READERS, [now]).fetchone()[0]:
        if time.monotonic() > give_up_at:
            raise StoreUnavailable(
                f"The content was erased, but files of {name} may still hold bytes of it: others are reading.",
                hint="Let them finish, then erase it again.",
            )
        time.sleep(_NAP_S)
    skipped: list[str] = []
    connection.add_notice_handler(lambda notice: skipped.append(notice.message_primary))
    for table in tables:
        connection.execute(f"VACUUM FULL {table}")
    if skipped:  # PostgreSQL only warns when it skips a table of another owner.
        raise InsufficientPrivilege(skipped[0])


def _empty_log(connection: Any) -> None:
    """Make the server drop its write-ahead log, and overwrite the old segments that it keeps for reuse."""
    for _ in range(_ROUNDS):
        connection.execute("SELECT pg_switch_wal()")
        connection.execute("CHECKPOINT")
        (segments,) = connection.execute(_OLD_SEGMENTS).fetchone()
        for _ in range(segments):
            connection.execute("SELECT pg_logical_emit_message(false, 'mnemarch', '')")
            connection.execute("SELECT pg_switch_wal()")

"""The tables of a database: made, migrated to this version's format, checked, and scrubbed to the last byte."""

from __future__ import annotations

import os
import re
import time

from psycopg.errors import InsufficientPrivilege

from mnemarch.errors import Incompatible, StoreCorrupt, StoreUnavailable
from mnemarch.model.stamps import new_id
from mnemarch.stores.postgres.sessions import first_line
from mnemarch.stores.sql.queries import migration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FIRST_FORMAT, FORMAT_VERSION = 6, 11
_FOLDER = os.path.join(os.path.dirname(__file__), "migrations")
# Held while the tables are made, so that two processes don't make them at once.
_MIGRATION_LOCK = 0x4D4E4152
_FIND_FORMAT = "SELECT to_regclass('store') IS NOT NULL, to_regclass('units') IS NOT NULL"
_TABLE = re.compile(r"CREATE TABLE (\w+) \(\n  tenant .*?\n\)( WITH \([^)]*\))?;", re.DOTALL)
_LOG_AND_PROJECTIONS = "streams events units citations links link_units relations tests uses memory_code_rules"
TABLES = f"{_LOG_AND_PROJECTIONS} search_sets search_words search_texts".split()
# These tables exist only once vectors were needed.
_DERIVED = ["vector_sets", "vectors"]
_OLDER_READERS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND greatest(age(backend_xmin), age(backend_xid)) > age(CAST(%s AS xid))"
)
_OLD_SEGMENTS = (
    "SELECT count(*) FROM pg_ls_waldir()"
    " WHERE name > pg_walfile_name(pg_current_wal_insert_lsn()) AND name ~ '^[0-9A-F]{24}$'"
)
_NAP_S = 0.02
# Other writers can make the server keep a segment during the first round.
_ROUNDS = 2


def prepared(connection: Any, name: str, partitions: int) -> str:
    """Migrate the tables if necessary and return the store's id. `name` is for messages."""
    if _format(connection, name) < FORMAT_VERSION:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [_MIGRATION_LOCK])
            for version in range(max(_format(connection, name) + 1, _FIRST_FORMAT), FORMAT_VERSION + 1):
                connection.execute(_partitioned(migration(_FOLDER, version), partitions))
                if version == _FIRST_FORMAT:
                    row = [new_id(), time.time_ns() // 1000, version]
                    connection.execute("INSERT INTO store (id, created_at, format) VALUES (%s, %s, %s)", row)
                connection.execute("UPDATE store SET format = %s", [version])
    return str(connection.execute("SELECT id FROM store").fetchone()[0])


def _format(connection: Any, name: str) -> int:
    is_ours, has_units = connection.execute(_FIND_FORMAT).fetchone()
    if not is_ours:
        if has_units:
            raise StoreCorrupt(
                f"{name} has a table `units` that is not Mnemarch's. It was left untouched.",
                hint="Give Mnemarch a schema of its own: …?options=-csearch_path%3Dmnemarch",
            )
        return 0
    (version,) = connection.execute("SELECT format FROM store").fetchone()
    if version > FORMAT_VERSION:
        raise Incompatible(
            f"{name} has format {version}; this Mnemarch knows formats up to {FORMAT_VERSION}.",
            hint="Upgrade Mnemarch. The database was left untouched.",
        )
    return int(version)


def _partitioned(script: str, count: int) -> str:
    """The script with each table that has a tenant split into `count` hash partitions."""

    def parts(table: re.Match[str]) -> str:
        name, settings = table[1], table[2] or ""
        whole = table[0].removesuffix(f"{settings};")
        made = [
            f"CREATE TABLE {name}_p{number} PARTITION OF {name}"
            f" FOR VALUES WITH (MODULUS {count}, REMAINDER {number}){settings};"
            for number in range(count)
        ]
        return "\n".join([f"{whole} PARTITION BY HASH (tenant);", *made])

    return _TABLE.sub(parts, script) if count else script


def _with_derived(connection: Any) -> list[str]:
    """The tables, and those for vectors if they exist."""
    there = connection.execute("SELECT n FROM unnest(%s::text[]) n WHERE to_regclass(n) IS NOT NULL", [_DERIVED])
    return [*TABLES, *(name for (name,) in there)]


def problem(connection: Any) -> str | None:
    """What is wrong with the tables, or None."""
    tables = _with_derived(connection)
    rows = connection.execute(
        "SELECT relname FROM pg_class WHERE oid = ANY(SELECT to_regclass(n) FROM unnest(%s::text[]) n)"
        " AND relrowsecurity AND relforcerowsecurity",
        [tables],
    ).fetchall()
    missing = sorted(set(tables) - {name for (name,) in rows})
    return f"the table {missing[0]} is missing, or its row-level security is off" if missing else None


# Erasure to the last byte: the tables, and the server's write-ahead log


def scrubbed(connection: Any, name: str, wait_s_max: float, *, rewrite: bool) -> int:
    """Remove erased content from the tables and the server's write-ahead log. Returns the number of tables."""
    tables = _with_derived(connection)
    try:
        if rewrite:
            _rewrite_tables(connection, tables, name, wait_s_max)
        _empty_log(connection)
    except InsufficientPrivilege as error:
        raise StoreUnavailable(
            f"The content was erased, but files of {name} may still hold bytes of it: {first_line(error)}.",
            hint="Ask its administrator to run VACUUM FULL, switch the write-ahead log and make a checkpoint.",
        ) from None
    return len(tables)


def _rewrite_tables(connection: Any, tables: list[str], name: str, wait_s_max: float) -> None:
    """Rewrite the tables without dead rows. Waits for older readers, since their snapshots keep dead rows."""
    (now,) = connection.execute("SELECT CAST(CAST(pg_current_xact_id() AS xid) AS text)").fetchone()
    give_up_at = time.monotonic() + wait_s_max
    while connection.execute(_OLDER_READERS, [now]).fetchone()[0]:
        if time.monotonic() > give_up_at:
            raise StoreUnavailable(
                f"The content was erased, but files of {name} may still hold bytes of it: others are reading.",
                hint="Wait until they are done, then erase it again.",
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

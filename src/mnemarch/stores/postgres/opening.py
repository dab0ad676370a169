"""Create the tables of a database or migrate them to this version's format, partitioned if wanted."""

from __future__ import annotations

import os
import re
import time

from mnemarch.errors import Incompatible, StoreCorrupt
from mnemarch.model.stamps import new_id
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


def prepared(connection: Any, name: str, partitions: int) -> str:
    """Migrate the tables if necessary and return the store's id. `name` is for messages."""
    if _format(connection, name) < FORMAT_VERSION:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [_MIGRATION_LOCK])
            for version in range(max(_format(connection, name) + 1, _FIRST_FORMAT), FORMAT_VERSION + 1):
                connection.execute(partitioned(migration(_FOLDER, version), partitions))
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
                f"{name} has a table of the name units that is not Mnemarch's; it was left untouched.",
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


def partitioned(script: str, count: int) -> str:
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

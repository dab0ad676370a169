"""Tables in hash partitions by tenant: many smaller ones on one server, and the test bed for a cluster of servers."""

from __future__ import annotations

import re

_TABLE = re.compile(r"CREATE TABLE (\w+) \(\n  tenant .*?\n\)( WITH \([^)]*\))?;", re.DOTALL)


def partitioned(script: str, count: int) -> str:
    """The script that makes the tables, with each table that has a tenant in so many partitions."""

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

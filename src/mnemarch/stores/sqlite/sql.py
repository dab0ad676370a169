"""The named queries of queries.sql and the numbered migrations, as text."""

from __future__ import annotations

import os

_HERE = os.path.dirname(__file__)
FORMAT_VERSION = 4
APPLICATION_ID = 0x4D4E454D  # "MNEM" in the file's header tells a Mnemarch database from any other


def _queries() -> dict[str, str]:
    with open(os.path.join(_HERE, "queries.sql"), encoding="utf-8") as file:
        blocks = file.read().split("-- ")[1:]
    named = (block.split(":", 1) for block in blocks)
    return {name: rest.split("\n", 1)[1].strip() for name, rest in named}


QUERY = _queries()


def migration(version: int) -> str:
    """The script that leads from `version - 1` to `version`."""
    folder = os.path.join(_HERE, "migrations")
    (name,) = (name for name in os.listdir(folder) if name.startswith(f"{version:04d}_"))
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()

"""The files of a vector index: whole generations, one small file that names the current one, replaced last.

A crash between two steps leaves files that nothing names; the next save removes them. What does not match the sums in
the naming file is not used: a damaged graph of vectors could take the process down.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress

from xxhash import xxh3_64

from mnemarch.files import CHUNK_BYTES, PARTIAL_END, holds_any, locked, locked_if_free, synced, write_whole
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "CURRENT",
    "FIELDS",
    "FORMAT",
    "PARTIAL_END",
    "ROWS_END",
    "VECTORS_END",
    "Generation",
    "checksum",
    "drop_folder",
    "drop_unnamed",
    "generation_from",
    "holds_any",
    "locked",
    "locked_if_free",
    "naming",
    "new_name",
    "sealed",
    "write_generation",
    "write_whole",
]

FORMAT = 1
CURRENT = "current.json"
VECTORS_END, ROWS_END = ".vectors", ".rows.npy"


@value
class Generation:
    """What the naming file says. `sums` holds the checksum of each file; `struck` what was erased meanwhile."""

    embedder_id: str
    store_id: str
    number: int = 0
    dim: int = 0
    count: int = 0
    position: int = 0
    event: str = ""
    complete: bool = False
    vectors: str = ""
    rows: str = ""
    sums: Mapping[str, str] = {}
    struck: tuple[str, ...] = ()


FIELDS: tuple[str, ...] = Generation.__match_args__


def new_name(number: int, end: str) -> str:
    """A name that no file ever had: others may have a file of that name mapped, and must not see it change."""
    return f"{number}-{os.urandom(4).hex()}{end}"


def naming(folder: str) -> bytes:
    """The naming file as it is, empty if there is none. Short enough to be compared whole: times can be equal."""
    try:
        with open(os.path.join(folder, CURRENT), "rb") as file:
            return file.read()
    except OSError:
        return b""


def generation_from(content: bytes) -> Generation | None:
    """What a naming file says, or None if this version can't read it."""
    try:
        record = json.loads(content)
        if record.pop("format") != FORMAT:
            return None
        found = Generation(**record | {"struck": tuple(record["struck"])})
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return found if _is_sound(found) else None


def _is_sound(found: Generation) -> bool:
    numbers: list[object] = [found.number, found.dim, found.count, found.position]
    names: list[object] = [found.embedder_id, found.store_id, found.event, found.vectors, found.rows, *found.struck]
    named: object = found.sums
    return (
        all(type(number) is int and number >= 0 for number in numbers)
        and all(isinstance(name, str) for name in names)
        and isinstance(named, dict)
        and not any(os.sep in name for name in (found.vectors, found.rows))
    )


def write_generation(folder: str, generation: Generation) -> None:
    """Make this generation the current one: before the replacement nothing happened, after it everything."""
    record = {name: getattr(generation, name) for name in FIELDS}
    write_whole(os.path.join(folder, CURRENT), json.dumps({"format": FORMAT, **record}))


def drop_unnamed(folder: str, generation: Generation) -> None:
    """Remove what an earlier generation, or a crash, left behind."""
    for name in os.listdir(folder):
        ours = name.endswith((VECTORS_END, ROWS_END, PARTIAL_END))
        if ours and name not in (generation.vectors, generation.rows):
            with suppress(OSError):
                os.remove(os.path.join(folder, name))


def sealed(path: str) -> str:
    """Bring a file to the disk and give its checksum."""
    synced(path)
    return checksum(path)


def checksum(path: str) -> str:
    digest = xxh3_64()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def drop_folder(folder: str) -> None:
    """Remove vectors altogether: they can be made again. What is no longer kept in step must not stay (R16)."""
    import shutil

    shutil.rmtree(folder, ignore_errors=True)

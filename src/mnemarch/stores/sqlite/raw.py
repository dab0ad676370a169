"""The database file itself: how it is opened, whether it is complete and in place, and its copies.

POSIX drops all locks of a process on a file, SQLite's included, when it closes any descriptor of that file. So a file
is opened once for all stores of the process, and closed with the last of them.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

from mnemarch.errors import StoreCorrupt, StoreUnavailable
from mnemarch.files import PARTIAL_END, make_private
from mnemarch.forks import lasting_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
else:
    # The sqlite3 module without its date adapters, which take time to load and are not used.
    import _sqlite3 as sqlite3

# On a full disk no temporary file can be made.
_DENIED = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL}
_ESCAPES = str.maketrans({"%": "%25", "?": "%3f", "#": "%23"})
_CHUNK = 4 << 20
_MAGIC = b"SQLite format 3\0"

# By device and inode: the descriptor, and the number of stores that use it.
_open_files: dict[tuple[int, int], tuple[int, int]] = {}
_lock = lasting_lock()
# In a child: files that the parent's threads were using at the fork. SQLite still believes they are open.
_torn: set[tuple[int, int]] = set()
# This empty file says that the database was complete once. An empty database beside it means lost data.
MADE_END = "-made"
_LOOKS = 5
_NAP_S = 0.008


def connected(path: str, may_write: bool, wait_s: float) -> tuple[sqlite3.Connection, bool]:
    """A connection to a database file, and whether it can write. A read-only one makes no files."""
    if path == ":memory:":
        return _connected("file::memory:", wait_s), True
    address = f"file:{os.path.abspath(path).translate(_ESCAPES)}?mode=r"
    if may_write:
        try:  # Don't create the file: a deleted database would come back empty.
            return _connected(f"{address}w", wait_s), True
        except sqlite3.OperationalError as error:
            # A sandbox can deny what file rights allow.
            if error.sqlite_errorcode & 0xFF not in _DENIED or not size_of(path):
                raise
    address += "o"
    if os.path.exists(path + "-shm"):
        try:  # Read-only, together with writers.
            return _connected(address, wait_s), False
        except sqlite3.OperationalError:
            pass  # A process that died left a log, and recovering it would write.
    # Nobody has the file open, so it is read without locks; the log's index is kept in this process.
    rest = "vfs=unix-none" if size_of(path + "-wal") else "immutable=1"
    return _connected(f"{address}&{rest}", wait_s), False


def _connected(address: str, wait_s: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        address, timeout=wait_s, isolation_level=None, check_same_thread=False, cached_statements=256, uri=True
    )
    try:
        if address.endswith("unix-none"):
            # Set before the first read, this keeps SQLite from making a -shm file.
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA schema_version")  # The first read shows whether access is denied.
    except BaseException:
        connection.close()
        raise
    return connection


def size_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def key_of(path: str) -> tuple[int, int] | None:
    """The identity of the file at a path, or None."""
    return key_and_size_of(path)[0]


def key_and_size_of(path: str) -> tuple[tuple[int, int] | None, int]:
    try:
        status = os.stat(path)
    except OSError:
        return None, 0
    return (status.st_dev, status.st_ino), status.st_size


def gone(path: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"{path} was deleted, moved or replaced while it was open; what was written last may be lost.",
        hint="Open the memory again: where it is now if it was moved. If it was deleted, restore a backup or import an "
        "export first.",
    )


def copy(source: sqlite3.Connection, path: str) -> None:
    """Write a consistent copy of a database with rights for its owner only, completely or not at all."""
    partial = path + PARTIAL_END
    try:
        make_private(partial, anew=True)
        with suppress(FileNotFoundError):
            os.remove(f"{partial}-journal")
        target = sqlite3.connect(partial)
        try:
            source.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")
        finally:
            target.close()
        os.replace(partial, path)
    finally:
        for left in (partial, f"{partial}-journal"):
            with suppress(FileNotFoundError):
                os.remove(left)


class RawFile:
    """The file of an open store."""

    def __init__(self, path: str) -> None:
        with _lock:
            found = key_of(path)
            descriptor, users = _open_files.get(found, (-1, 0)) if found else (-1, 0)
            if not users:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            status = os.fstat(descriptor)
            self._key = status.st_dev, status.st_ino
            _open_files[self._key] = (descriptor, users + 1)
        self._descriptor = descriptor
        if self._key in _torn:
            self.close()
            raise StoreUnavailable(
                f"{path} was in use by another thread when this process was forked.",
                hint="Start the process with spawn, or fork while no thread uses the memory.",
            )

    def is_at(self, path: str) -> bool:
        """Whether this is still the file of that name."""
        return key_of(path) == self._key

    def tear(self) -> None:
        """Forbid this process, a child, to use the file."""
        _torn.add(self._key)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def head(self, count: int) -> bytes:
        return os.pread(self._descriptor, count, 0)

    def close(self) -> None:
        """Call after every connection to the file is closed."""
        with _lock:
            descriptor, users = _open_files.pop(self._key)
            if users > 1:
                _open_files[self._key] = (descriptor, users - 1)
            else:
                os.close(descriptor)


def require_whole(path: str) -> None:
    """Refuse a truncated file. With a write-ahead log, its end may still be in the log."""
    lost = ""
    for _ in range(_LOOKS):
        lost = _lost(path)
        if not lost:
            return
        time.sleep(_NAP_S)  # Another process may be checkpointing right now.
    raise StoreCorrupt(
        f"{path} {lost}; it was left untouched.",
        hint="Move it away together with its -wal file, then restore a backup (mnemarch backup makes them) or "
        "import an export into a new memory.",
    )


def _lost(path: str) -> str:
    """What is missing of a memory that was here, in words; empty if it is complete or new."""
    log = size_of(path + "-wal")
    if not size_of(path):
        if log:  # SQLite would take it for a foreign log and delete it.
            return f"has no content, and {log} bytes of its write-ahead log are left"
        # If both the file and the mark are gone, a new memory may begin.
        emptied = os.path.exists(path) and os.path.exists(path + MADE_END)
        return "is empty, but was not when it was last open" if emptied else ""
    missing = 0 if log else _missing_bytes(path)
    return f"is truncated or not a database: {missing} bytes are missing" if missing else ""


def _missing_bytes(path: str) -> int:
    """By how many bytes the file is shorter than its header says; 0 if it is complete or no database."""
    raw = RawFile(path)
    try:
        size, header = raw.size(), raw.head(100)
    finally:
        raw.close()
    if size < len(_MAGIC):
        return len(_MAGIC) - size
    page = int.from_bytes(header[16:18], "big")
    wanted = (65_536 if page == 1 else page) * int.from_bytes(header[28:32], "big")
    return max(0, wanted - size) if header.startswith(_MAGIC) else 0


def statements(script: str) -> Iterator[str]:
    """The statements of a script. `executescript` would commit the open transaction."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""

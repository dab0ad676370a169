"""The database file beside SQLite: its bytes, whether it is whole and in its place, its copies, how it is opened.

POSIX drops all locks that a process holds on a file as soon as it closes any descriptor of it, SQLite's among them. So
a file is opened once for all stores of the process that use it, and closed when the last of them is closed.
"""

from __future__ import annotations

import os
import time

from mnemarch.errors import StoreCorrupt, StoreUnavailable
from mnemarch.forks import lasting_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
else:
    # The same without the date adapters, which take time to load and are not used.
    import _sqlite3 as sqlite3

# On a full disk no file can be made beside the database.
_DENIED = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL}
_ESCAPES = str.maketrans({"%": "%25", "?": "%3f", "#": "%23"})
_CHUNK = 4 << 20
_MAGIC = b"SQLite format 3\0"

# By device and inode: the descriptor, and how many stores use it.
_open_files: dict[tuple[int, int], tuple[int, int]] = {}
_lock = lasting_lock()
# In a child: the files that threads of its parent were using when it was forked. SQLite believes to have them open.
_torn: set[tuple[int, int]] = set()
# An empty file beside the database says that it was made: an empty database is then a loss, not a beginning.
MADE_END = "-made"
_LOOKS = 5
_NAP_S = 0.008


def connected(path: str, may_write: bool, wait_s: float) -> tuple[sqlite3.Connection, bool]:
    """A connection to a database file, and whether it can write. Where it can't, no file is made beside it."""
    if path == ":memory:":
        return _connected("file::memory:", wait_s), True
    address = f"file:{os.path.abspath(path).translate(_ESCAPES)}?mode=r"
    if may_write:
        try:  # No file is made: one that went away would come back empty.
            return _connected(f"{address}w", wait_s), True
        except sqlite3.OperationalError as error:
            # A sandbox denies what the rights allow.
            if error.sqlite_errorcode & 0xFF not in _DENIED or not size_of(path):
                raise
    address += "o"
    if os.path.exists(path + "-shm"):
        try:  # Beside those who write.
            return _connected(address, wait_s), False
        except sqlite3.OperationalError:
            pass  # It was left by a process that died, and to use it would be to write it.
    # Nobody has the file open, so it is read without locks; what is still in the log by an index in this process.
    rest = "vfs=unix-none" if size_of(path + "-wal") else "immutable=1"
    return _connected(f"{address}&{rest}", wait_s), False


def _connected(address: str, wait_s: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        address, timeout=wait_s, isolation_level=None, check_same_thread=False, cached_statements=256, uri=True
    )
    try:
        if address.endswith("unix-none"):
            # Said before the first look at the file, it keeps SQLite from asking for a -shm file.
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA schema_version")  # The first look: what is denied is denied here.
    except BaseException:
        connection.close()
        raise
    return connection


def size_of(path: str) -> int:
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return 0


def key_of(path: str) -> tuple[int, int] | None:
    """What tells the file at a path from any other; None if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def make_private(path: str) -> None:
    """Make an empty file that only its owner may read, unless there is one."""
    if not os.path.exists(path):
        from mnemarch import files  # Seldom needed.

        files.make_private(path)


def gone(path: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"{path} was deleted, moved or replaced while it was open; what was written last may be lost.",
        hint="Open the memory again: where it is now if it was moved. If it was deleted, restore a backup or import an "
        "export first.",
    )


def copy(source: sqlite3.Connection, path: str) -> None:
    """Write a consistent copy of a database, for its owner only, whole or not at all."""
    from mnemarch.files import PARTIAL_END, make_private

    partial = path + PARTIAL_END
    try:
        make_private(partial, anew=True)
        _remove(f"{partial}-journal")
        target = sqlite3.connect(partial)
        try:
            source.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")
        finally:
            target.close()
        os.replace(partial, path)
    finally:
        _remove(partial)
        _remove(f"{partial}-journal")


def _remove(path: str) -> None:
    if os.path.exists(path):
        os.remove(path)


class RawFile:
    """One file's bytes, while a store is open."""

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
                hint="Start the process anew (spawn), or fork while no thread uses the memory.",
            )

    def is_at(self, path: str) -> bool:
        """Whether this is still the file of that name."""
        return key_of(path) == self._key

    def tear(self) -> None:
        """Let no store of this process, a child, use the file."""
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
    """Refuse a file that lost its end; with a write-ahead log the end may still be there."""
    lost = ""
    for _ in range(_LOOKS):
        lost = _lost(path)
        if not lost:
            return
        time.sleep(_NAP_S)  # Another process may be folding its log into the file at this moment.
    raise StoreCorrupt(
        f"{path} {lost}; it was left untouched.",
        hint="Move it away together with its -wal file, then restore a backup (mnemarch backup makes them) or "
        "import an export into a new memory.",
    )


def _lost(path: str) -> str:
    """What is missing of a memory that was here, in words; nothing if it is whole, or was never made."""
    log = size_of(path + "-wal")
    if not size_of(path):
        if log:  # SQLite would take it for the log of another file, and delete it.
            return f"has no content, and {log} bytes of its write-ahead log are left"
        # Where file and mark are gone, a new memory may begin.
        emptied = os.path.exists(path) and os.path.exists(path + MADE_END)
        return "is empty, but was not when it was last open" if emptied else ""
    missing = 0 if log else _missing_bytes(path)
    return f"is truncated or no database: {missing} bytes are missing" if missing else ""


def _missing_bytes(path: str) -> int:
    """How many bytes the file is shorter than its own header says; 0 if it is whole or no database."""
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
    """The statements of a script one by one: executescript would commit the transaction they belong to."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""

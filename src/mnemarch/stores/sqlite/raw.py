"""Reading a database file's bytes beside SQLite, and how SQLite reads a file that nobody here may write.

POSIX drops all locks that a process holds on a file as soon as it closes any descriptor of it, SQLite's among them. So
a file is opened once for all stores of the process that use it, and closed when the last of them is closed.
"""

from __future__ import annotations

import os
from _thread import allocate_lock  # what threading.Lock is; threading itself is a millisecond more to load

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
else:
    # The same without the date adapters, which take time to load and are not used.
    import _sqlite3 as sqlite3

_DENIED = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
_ESCAPES = str.maketrans({"%": "%25", "?": "%3f", "#": "%23"})
_CHUNK = 4 << 20
_MAGIC = b"SQLite format 3\0"

# By device and inode: the descriptor, and how many stores use it.
_open_files: dict[tuple[int, int], tuple[int, int]] = {}
_lock = allocate_lock()


def connected(path: str, may_write: bool, wait_s: float) -> tuple[sqlite3.Connection, bool]:
    """A connection to a database file, and whether it can write. Where it can't, no file is made beside it."""
    if may_write:
        try:
            return _connected(path, wait_s, uri=False), True
        except sqlite3.OperationalError as error:
            # A sandbox denies what the rights allow.
            if error.sqlite_errorcode & 0xFF not in _DENIED or not size_of(path):
                raise
    address = f"file:{os.path.abspath(path).translate(_ESCAPES)}?mode=ro"
    if os.path.exists(path + "-shm"):
        try:  # Beside those who write.
            return _connected(address, wait_s, uri=True), False
        except sqlite3.OperationalError:
            pass  # It was left by a process that died, and to use it would be to write it.
    # Nobody has the file open, so it is read without locks; what is still in the log by an index in this process.
    rest = "vfs=unix-none" if size_of(path + "-wal") else "immutable=1"
    return _connected(f"{address}&{rest}", wait_s, uri=True), False


def _connected(address: str, wait_s: float, *, uri: bool) -> sqlite3.Connection:
    connection = sqlite3.connect(
        address, timeout=wait_s, isolation_level=None, check_same_thread=False, cached_statements=256, uri=uri
    )
    try:
        if uri and address.endswith("unix-none"):
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


class RawFile:
    """One file's bytes, while a store is open."""

    def __init__(self, path: str) -> None:
        status = os.stat(path)
        self._key = (status.st_dev, status.st_ino)
        with _lock:
            descriptor, users = _open_files.get(self._key, (-1, 0))
            if not users:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            _open_files[self._key] = (descriptor, users + 1)
        self._descriptor = descriptor

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


def missing_bytes(raw: RawFile) -> int:
    """How many bytes the file is shorter than its own header says; 0 if it is whole or no database."""
    size, header = raw.size(), raw.head(100)
    if size < len(_MAGIC):
        return len(_MAGIC) - size
    page = int.from_bytes(header[16:18], "big")
    wanted = (65_536 if page == 1 else page) * int.from_bytes(header[28:32], "big")
    return max(0, wanted - size) if header.startswith(_MAGIC) else 0

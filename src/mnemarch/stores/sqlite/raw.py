"""Reading a database file's bytes beside SQLite.

POSIX drops all locks that a process holds on a file as soon as it closes any descriptor of it, SQLite's among them. So
a file is opened once for all stores of the process that use it, and closed when the last of them is closed.
"""

from __future__ import annotations

import os
from _thread import allocate_lock  # what threading.Lock is; threading itself is a millisecond more to load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_CHUNK = 4 << 20
_MAGIC = b"SQLite format 3\0"

# By device and inode: the descriptor, and how many stores use it.
_open_files: dict[tuple[int, int], tuple[int, int]] = {}
_lock = allocate_lock()


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

    def chunks(self) -> Iterator[bytes]:
        place = 0
        while chunk := os.pread(self._descriptor, _CHUNK, place):
            yield chunk
            place += len(chunk)

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

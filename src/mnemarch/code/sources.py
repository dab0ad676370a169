"""Reading the files of a folder, and only of it: never outside, never waiting, never more than a source can be."""

from __future__ import annotations

import errno
import os
import stat
import time

from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable
    from typing import Protocol

    class Sources(Protocol):
        """Where sources are read from: a folder, or the tree of a commit."""

        def read(self, path: str) -> Source | Trouble: ...

        def stamp(self, path: str) -> Hashable | None:
            """What changes when the file does, at the cost of a look; None if it can't be told without reading."""


FILE_BYTES_MAX = 8_388_608
MISSING, UNKNOWN = "missing", "unknown"

# Two changes within a tick of the file system's clock leave one time behind: 10 ms on Linux, 2 s where times are whole.
_TICK_NS, _COARSE_TICK_NS = 50_000_000, 2_100_000_000
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@value
class Source:
    """A text file. Its content is the same as long as its `stamp` is; None: that can't be relied on yet."""

    path: str
    text: str
    stamp: Hashable | None = None


@value
class Trouble:
    """Why there is no text: the file is MISSING, or it is UNKNOWN what it holds; `reason` says so in words."""

    state: str
    reason: str


class Folder:
    """The files under one folder.

    A path is relative, with `/` between its parts, and is taken as it is spelt: whether the file system tells `A.py`
    from `a.py` is left to it. Symbolic links are followed as long as they stay inside.
    """

    def __init__(self, root: str) -> None:
        self.root = root

    def stamp(self, path: str) -> Hashable | None:
        if trouble_with(path) is not None:
            return None
        try:
            return _stamped(os.stat(f"{self.root}/{path}"))
        except (OSError, ValueError):
            return None

    def read(self, path: str) -> Source | Trouble:
        trouble = trouble_with(path)
        if trouble is not None:
            return trouble
        try:
            return self._read(path)
        except (FileNotFoundError, NotADirectoryError):
            return Trouble(MISSING, f"{path} is not there")
        except PermissionError:
            return Trouble(UNKNOWN, f"{path} may not be read by this user")
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
                return Trouble(MISSING, f"{path[:80]}… is not there: no file can have so long a name")
            return Trouble(UNKNOWN, f"{path} can't be read: {getattr(error, 'strerror', None) or error}")

    def _read(self, path: str) -> Source | Trouble:
        root = os.path.realpath(self.root)
        if not os.path.isdir(root):
            return Trouble(UNKNOWN, f"the working tree {self.root} is not there")
        inside = root.rstrip("/") + "/"
        target = os.path.realpath(inside + path)
        if target == root:
            return Trouble(MISSING, f"{path} is a folder, not a file")
        if not target.startswith(inside):
            return Trouble(UNKNOWN, f"{path} leads outside of the working tree")
        with _Opened(root, target[len(inside) :].split("/")) as opened:
            kind = opened.kind
            if stat.S_ISDIR(kind):
                return Trouble(MISSING, f"{path} is a folder, not a file")
            if not stat.S_ISREG(kind):
                return Trouble(UNKNOWN, f"{path} is no plain file")
            return _text(path, opened.descriptor)


class _Opened:
    """A file opened step by step: a link that appears on the way, after the path was resolved, is not followed."""

    def __init__(self, root: str, steps: list[str]) -> None:
        self.descriptor = os.open(root, _STEP)
        try:
            for step in steps[:-1]:
                self._go(os.open(step, _STEP, dir_fd=self.descriptor))
            # Merely opening a device can have an effect, so look first; what is read is looked at again.
            self.kind = os.stat(steps[-1], dir_fd=self.descriptor, follow_symlinks=False).st_mode
            if stat.S_ISREG(self.kind):
                self._go(os.open(steps[-1], _OPEN, dir_fd=self.descriptor))
                self.kind = os.fstat(self.descriptor).st_mode
        except BaseException:
            os.close(self.descriptor)
            raise

    def _go(self, descriptor: int) -> None:
        os.close(self.descriptor)
        self.descriptor = descriptor

    def __enter__(self) -> _Opened:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)


def trouble_with(path: str) -> Trouble | None:
    """What is wrong with a path before anything is looked at."""
    if "\0" in path or not path:
        return Trouble(UNKNOWN, f"{path!r} is no path")
    if path[0] == "/" or (".." in path and ".." in path.split("/")):
        return Trouble(UNKNOWN, f"{path} is outside of the working tree, or leads through its outside")
    return None


def _text(path: str, descriptor: int) -> Source | Trouble:
    # The content may be newer than this look at the file, never older: then the stamp no longer fits, and it is
    # read again.
    looked_at = os.fstat(descriptor)
    pieces, size = [], 0
    while size <= FILE_BYTES_MAX and (piece := os.read(descriptor, FILE_BYTES_MAX + 1 - size)):
        pieces.append(piece)
        size += len(piece)
    if size > FILE_BYTES_MAX:
        return Trouble(UNKNOWN, f"{path} is over {FILE_BYTES_MAX >> 20} MiB")
    content = b"".join(pieces)
    if b"\0" in content:
        return Trouble(UNKNOWN, f"{path} is a binary file")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return Trouble(UNKNOWN, f"{path} is not a UTF-8 text")
    changed_ns = max(looked_at.st_mtime_ns, looked_at.st_ctime_ns)
    tick_ns = _TICK_NS if looked_at.st_ctime_ns % 1_000_000 else _COARSE_TICK_NS
    is_settled = time.time_ns() - changed_ns > tick_ns
    return Source(path, text, _stamped(looked_at) if is_settled else None)


def _stamped(found: os.stat_result) -> Hashable:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)

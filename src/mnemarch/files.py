"""Files: atomic writes, lock files, private permissions, and bounded reads."""

from __future__ import annotations

import errno
import os
import stat
import time
from contextlib import contextmanager, suppress

from mnemarch.errors import StoreUnavailable
from mnemarch.model.json_text import from_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

PARTIAL_END = ".partial"
_NAP_S = 0.01


def make_private(path: str, *, anew: bool = False) -> None:
    """Create an empty file that only its owner may read, with any umask.

    An existing file stays as it is. With `anew` it is replaced: a killed process may have left it.
    """
    if not anew and os.path.exists(path):
        return  # In a sandbox, even the attempt to make it may be forbidden.
    with suppress(FileNotFoundError):
        if anew:
            os.remove(path)
    with suppress(FileExistsError):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(handle, 0o600)
        finally:
            os.close(handle)


def path_inside(path: str, root: str | None) -> str | None:
    """The path from a root, links resolved and with slashes. None if it is outside, or if there is no root."""
    inside = None if root is None else os.path.relpath(os.path.realpath(path), os.path.realpath(root))
    return None if inside is None or inside.startswith(os.pardir) else inside.replace(os.sep, "/")


def make_folder(path: str) -> None:
    """Create a folder that only its owner may enter. An existing folder stays as it is."""
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
        os.chmod(path, 0o700)


def keep_rights(folder: str) -> None:
    """Remove permissions from the files in a folder that the folder itself does not give. A library created them."""
    allowed = os.stat(folder).st_mode & 0o777
    for entry in os.scandir(folder):
        with suppress(FileNotFoundError):
            mode = entry.stat().st_mode & 0o777
            if mode & ~allowed:
                os.chmod(entry.path, mode & allowed)


def write_whole(path: str, text: str, *, private: bool = False) -> None:
    """Replace the content of a file atomically. A crash or a full disk leaves the old content.

    A link stays a link, and the file keeps its permissions. A new `private` file is readable by its owner only.
    """
    target = os.path.realpath(path)
    # The name is always the same, so that the next write removes the leftover of a crash.
    partial = target + PARTIAL_END
    try:
        # The partial file must not be more readable than the file itself.
        if private or os.path.exists(target):
            make_private(partial, anew=True)
        with open(partial, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            os.chmod(partial, os.stat(target).st_mode & 0o7777)
        os.replace(partial, target)
    except BaseException:
        with suppress(OSError):
            os.remove(partial)
        raise
    synced(os.path.dirname(target))


def read_small(path: str, bytes_max: int) -> bytes:
    """The bytes of a small file. Raises OSError for a pipe, a device, a folder or a large file, without blocking."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "It is not a regular file", path)
        if status.st_size > bytes_max:
            raise OSError(errno.EFBIG, f"It has more than {bytes_max} bytes", path)
        return os.read(handle, status.st_size)
    finally:
        os.close(handle)


def small_json(path: str, bytes_max: int) -> Any:
    """The content of a small JSON file, or None if it is missing or damaged."""
    try:
        return from_json(read_small(path, bytes_max).decode())
    except (OSError, ValueError):
        return None


def is_another_file(path: str | None, other: str | None) -> bool:
    """Whether both files exist and are different files. A link and its target are the same file."""
    try:
        return path is not None and other is not None and not os.path.samefile(path, other)
    except OSError:
        return False


def write_private(path: str, content: bytes, *, replaces: bool = True) -> None:
    """Write a small file atomically that only its owner may read.

    Without `replaces`, an existing file stays: of two processes, the first one wins.
    """
    partial = f"{path}.{os.getpid()}"
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
    if replaces:
        os.replace(partial, path)
        return
    with suppress(FileExistsError):
        os.link(partial, path)
    os.remove(partial)


def synced(path: str) -> None:
    """Flush a file or a folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def locked(path: str, wait_s_max: float) -> Iterator[None]:
    """Hold an exclusive lock on a file among all threads and processes. A holder that dies releases it."""
    give_up_at = time.monotonic() + wait_s_max
    while True:
        with locked_if_free(path) as is_held:
            if is_held:
                yield
                return
        if time.monotonic() > give_up_at:
            raise StoreUnavailable(f"{path} is in use by another process.", hint="Wait for it, then call again.")
        time.sleep(_NAP_S)


@contextmanager
def locked_if_free(path: str) -> Iterator[bool]:
    """Hold an exclusive lock on a file if it is free. Yields whether it is held."""
    import fcntl

    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreUnavailable(f"{path} can't be made: {error.strerror}.", hint="Check the folder's rights.") from None
    _handles.add(handle)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
    finally:
        # In a child process it is closed already, and its number may belong to another file.
        if handle in _handles:
            _handles.discard(handle)
            os.close(handle)


def _let_go() -> None:
    """Close inherited lock files in a child process. They would hold the locks after the parent releases them."""
    while _handles:
        os.close(_handles.pop())


_handles: set[int] = set()
os.register_at_fork(after_in_child=_let_go)

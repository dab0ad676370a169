"""Files: written whole or not at all, locked by one holder at a time, private, and read within bounds."""

from __future__ import annotations

import errno
import os
import stat
import time
from contextlib import contextmanager, suppress

from mnemarch.errors import StoreUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

PARTIAL_END = ".partial"
_NAP_S = 0.01


def make_private(path: str, *, anew: bool = False) -> None:
    """Make an empty file that only its owner may read, whatever the umask is.

    One that is there stays as it is, or goes if it is made `anew`: a process that was killed may have left it.
    """
    with suppress(FileNotFoundError):
        if anew:
            os.remove(path)
    with suppress(FileExistsError):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(handle, 0o600)
        finally:
            os.close(handle)


def make_folder(path: str) -> None:
    """Make a folder that only its owner may enter; one that is there stays as it is."""
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
        os.chmod(path, 0o700)


def keep_rights(folder: str) -> None:
    """Take from the files in a folder the rights that the folder itself does not give: a library made them."""
    allowed = os.stat(folder).st_mode & 0o777
    for entry in os.scandir(folder):
        with suppress(FileNotFoundError):
            mode = entry.stat().st_mode & 0o777
            if mode & ~allowed:
                os.chmod(entry.path, mode & allowed)


def write_whole(path: str, text: str, *, private: bool = False) -> None:
    """Put a text in place of what was in the file; a crash or a full disk leaves what was there.

    A link stays a link, and the file keeps its rights. A new one that is `private` only its owner may read.
    """
    target = os.path.realpath(path)
    # Always the same name: what a crash leaves of a text goes with the next writing.
    partial = target + PARTIAL_END
    try:
        # What others may not read, they may not read while it is written either.
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
    """The bytes of a small file. A pipe, a device, a folder or a large file is an OSError, and never waited for."""
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


def is_another_file(path: str | None, other: str | None) -> bool:
    """Whether both are there, and are not one: one may be a link to the other."""
    try:
        return path is not None and other is not None and not os.path.samefile(path, other)
    except OSError:
        return False


def write_private(path: str, content: bytes, *, replaces: bool = True) -> None:
    """Write a small file that nobody else may read, whole or not at all.

    Where it `replaces` nothing, of two processes the first one's stays.
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
    """Bring a file or a folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def locked(path: str, wait_s_max: float) -> Iterator[None]:
    """Hold the lock file alone among all threads and processes; a holder that dies lets go of it."""
    give_up_at = time.monotonic() + wait_s_max
    while True:
        with locked_if_free(path) as is_held:
            if is_held:
                yield
                return
        if time.monotonic() > give_up_at:
            raise StoreUnavailable(f"{path} is held by another process.", hint="Wait for it, then call again.")
        time.sleep(_NAP_S)


@contextmanager
def locked_if_free(path: str) -> Iterator[bool]:
    """Hold the lock file if nobody else does; tells whether."""
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
        # In a child it is closed already, and its number may be another file's by now.
        if handle in _handles:
            _handles.discard(handle)
            os.close(handle)


def _let_go() -> None:
    """In a child: the parent's locks are the parent's. What is inherited here would hold them longer than it does."""
    while _handles:
        os.close(_handles.pop())


_handles: set[int] = set()
os.register_at_fork(after_in_child=_let_go)

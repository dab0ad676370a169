"""The folder of a store that git can merge. All reading and writing of its files happens here."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from glob import glob

from mnemarch.errors import Incompatible
from mnemarch.files import make_folder, synced
from mnemarch.stores.files import forms
from mnemarch.stores.files.forms import folded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mnemarch.model.event import Event

LOCAL = ".local"
_MARK = "format"
_MARK_TEXT = b"mnemarch files 1\n"
_FILE_BYTES_MAX = 64 << 20
_NO_LINK = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# Git must not convert line ends, whatever the user's settings say.
_AS_BYTES = b"* -text\n"


class Broken(Exception):
    """A line that is not a valid event: its place, and the reason."""


class Folder:
    """Paths are relative to it, with slashes, as the log has them. Links are never followed."""

    def __init__(self, path: str) -> None:
        self.path = path

    def at(self, path: str) -> str:
        return os.path.join(self.path, *path.split("/"))

    @property
    def writable(self) -> bool:
        places = (self.path, self.at(forms.LOG))
        return all(os.access(place, os.W_OK) for place in places if os.path.exists(place))

    def prepare(self) -> None:
        """Create the files of a new folder; refuse a folder of another format."""
        try:
            marked = self.read(_MARK)
        except FileNotFoundError:
            marked = b""
        if marked and marked != _MARK_TEXT:
            raise Incompatible(
                f"{self.path} has another format than {_MARK_TEXT.decode().strip()!r}.",
                hint="Upgrade Mnemarch, or choose another folder. The files were left untouched.",
            )
        if not marked and self.writable:
            with open(os.path.join(os.path.dirname(__file__), "readme.md"), "rb") as readme:
                made = {"README.md": readme.read(), ".gitattributes": _AS_BYTES, _MARK: _MARK_TEXT}
            for name, content in made.items():
                with suppress(FileExistsError):
                    self.write(name, content, durable=False)

    # Reading

    def stamps(self) -> dict[str, str]:
        """Size, time and inode of each log file. If a stamp differs from the last one, the file may have changed."""
        stamps, log = {}, self.at(forms.LOG)
        for name in glob("*/*.jsonl", root_dir=log):
            status = os.lstat(os.path.join(log, name))
            if stat.S_ISREG(status.st_mode) and not os.path.islink(os.path.join(log, os.path.dirname(name))):
                stamps[f"{forms.LOG}/{name}"] = _stamp(status)
        return stamps

    def read(self, path: str) -> bytes:
        handle = os.open(self.at(path), os.O_RDONLY | _NO_LINK)
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode) or status.st_size > _FILE_BYTES_MAX:
                raise OSError(errno.EINVAL, "It is no file, or too large", path)
            return os.read(handle, status.st_size)
        finally:
            os.close(handle)

    def lines(self, path: str) -> Iterator[tuple[int, bytes]]:
        """The complete lines of a file, each with its end offset. An incomplete last line is skipped."""
        at = 0
        with open(os.open(self.at(path), os.O_RDONLY | _NO_LINK), "rb") as file:
            for line in file:
                at += len(line)
                if line.endswith(b"\n"):
                    yield at, line

    def entries(self, path: str, after: int = 0) -> Iterator[tuple[str, Event]]:
        """The events after an offset, with their payloads. Raises Broken at the first line that is not an event."""
        writer = path.split("/")[1]
        for number, (end, line) in enumerate(self.lines(path), start=1):
            if end <= after:
                continue
            place = f"{path} line {number}"
            try:
                event = forms.event_in(line, "" if writer == forms.IMPORTED else writer)
                yield place, self.with_payload(event)
            except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
                raise Broken(place, f"this is no entry: {error}") from None

    def with_payload(self, event: Event) -> Event:
        """The event with its payload. If the payload file is gone, the audit reports it."""
        try:
            content = self.read(forms.payload_path(event))
        except OSError:
            return event
        return forms.with_payload(event, content)

    def measured(self, path: str, up_to: int = _FILE_BYTES_MAX) -> tuple[int, str]:
        """How many bytes of whole lines a file has, and their digest."""
        size, digest = 0, ""
        for end, line in self.lines(path):
            if end > up_to:
                break
            size, digest = end, folded(digest, line)
        return size, digest

    # Writing

    def write(self, path: str, content: bytes, *, durable: bool, replaces: bool = False) -> None:
        """Create a file, or replace its content."""
        self._make_folders(path)
        flags = os.O_TRUNC if replaces else os.O_EXCL
        handle = os.open(self.at(path), os.O_WRONLY | os.O_CREAT | flags | _NO_LINK, 0o600)
        with open(handle, "wb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())

    def append(self, path: str, content: bytes, size: int, *, durable: bool) -> str:
        """Append lines to a log file that should have `size` bytes, and return its new stamp."""
        is_new = not os.path.exists(self.at(path))
        self._make_folders(path)
        handle = os.open(self.at(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND | _NO_LINK, 0o600)
        try:
            if os.fstat(handle).st_size != size:
                raise OSError(errno.EAGAIN, "Its files were changed at this moment", path)
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(handle, rest) :]
            if durable:
                os.fsync(handle)
            status = os.fstat(handle)
        finally:
            os.close(handle)
        if durable and is_new:
            synced(os.path.dirname(self.at(path)))
        return _stamp(status)

    def cut(self, path: str, size: int) -> None:
        """Undo an append: truncate the file to `size`, or remove it."""
        with suppress(FileNotFoundError):
            if size:
                os.truncate(self.at(path), size)
            else:
                os.remove(self.at(path))

    def remove(self, paths: Iterable[str]) -> None:
        for path in paths:
            with suppress(OSError):
                os.remove(self.at(path))

    def _make_folders(self, path: str) -> None:
        folder = self.path
        for name in path.split("/")[:-1]:
            folder = os.path.join(folder, name)
            if os.path.islink(folder):
                raise OSError(errno.ELOOP, "It is a link, and none is followed", folder)
            if not os.path.isdir(folder):
                make_folder(folder)

    def tombstone(self, paths: Mapping[str, bytes], *, durable: bool) -> None:
        """Replace the content of erased files by a notice. Missing files are not created."""
        for path, content in paths.items():
            with suppress(FileNotFoundError):
                if self.read(path) != content:
                    self.write(path, content, durable=durable, replaces=True)


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ino}"

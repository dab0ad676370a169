"""A store's folder that git can merge: its files, what they hold, and how they are read and written.

There is a log line for each event, a file for its payload, and a page for each unit that a person can read.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from contextlib import suppress
from datetime import datetime
from glob import glob
from unicodedata import normalize

from mnemarch.errors import Incompatible
from mnemarch.files import make_folder, synced
from mnemarch.model.caller import Actor, Scope, Stream
from mnemarch.model.event import Event, EventType
from mnemarch.model.json_text import canonical_json, from_json
from mnemarch.model.stamps import ID_CHARS, blake2b, micros

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

LOCAL = ".local"
_MARK = "format"
_MARK_TEXT = b"mnemarch files 1\n"
_FILE_BYTES_MAX = 64 << 20
_NO_LINK = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# Git must not convert line ends, whatever the user's settings say.
_AS_BYTES = b"* -text\n"
_LOG, _PAYLOADS, _UNITS = "log", "payloads", "units"
_IMPORTED = "imported"  # Stands for the writer of events that were imported from a store without writers.
AFTER_ALL_WRITERS = "~"
# Erased files stay as notices: git would take a deleted file and a similar new one for a rename, and conflict.
_ERASED = b"erased\n"
_ERASED_PAGE = b"This unit was erased.\n"
_ID = re.compile(r"[0-9a-f-]{36}")
_AFTER = re.compile(rf"{_LOG}/{_IMPORTED}/(\d{{12,18}})-\d{{12}}")
_NAME_CHARS_MAX = 40
_SHORT_ID_AT = 24
_RESERVED = re.compile(r"con|prn|aux|nul|com\d|lpt\d")  # by Windows, in any folder


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
        places = (self.path, self.at(_LOG))
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
        stamps, log = {}, self.at(_LOG)
        for name in glob("*/*.jsonl", root_dir=log):
            status = os.lstat(os.path.join(log, name))
            if stat.S_ISREG(status.st_mode) and not os.path.islink(os.path.join(log, os.path.dirname(name))):
                stamps[f"{_LOG}/{name}"] = _stamp(status)
        return stamps

    def read(self, path: str) -> bytes:
        with open(os.open(self.at(path), os.O_RDONLY | _NO_LINK), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > _FILE_BYTES_MAX:
                raise OSError(errno.EINVAL, "It is not a file, or too large", path)
            return file.read()

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
        writer = writer_of(path)
        for number, (end, line) in enumerate(self.lines(path), start=1):
            if end <= after:
                continue
            place = f"{path} line {number}"
            try:
                event = _event_in(line, "" if writer == _IMPORTED else writer)
                yield place, self._with_payload(event)
            except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
                raise Broken(place, f"this is not an entry: {error}") from None

    def _with_payload(self, event: Event) -> Event:
        """The event with the payload of its file. It has none if that is gone, as the audit reports, or was erased."""
        try:
            content = self.read(payload_path(event))
        except OSError:
            return event
        if content != _ERASED:
            record = json.loads(content)
            object.__setattr__(event, "body", canonical_json(record["payload"]))
            object.__setattr__(event, "salt", bytes.fromhex(record["salt"]))
        return event

    def measured(self, path: str, up_to: int = _FILE_BYTES_MAX) -> tuple[int, str]:
        """How many bytes of whole lines a file has, and their digest."""
        size, digest = 0, ""
        for end, line in self.lines(path):
            if end > up_to:
                break
            size, digest = end, folded(digest, line)
        return size, digest

    # Writing

    def write(self, path: str, content: bytes, flags: int = os.O_EXCL, size: int = 0, *, durable: bool) -> str:
        """Write a new file, or into one that should have `size` bytes. Returns its new stamp."""
        is_new = not os.path.exists(self.at(path))
        self._make_folders(path)
        with open(os.open(self.at(path), os.O_WRONLY | os.O_CREAT | flags | _NO_LINK, 0o600), "wb") as file:
            if os.fstat(file.fileno()).st_size != size:
                raise OSError(errno.EAGAIN, "Its files changed at this moment", path)
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
            status = os.fstat(file.fileno())
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

    def _make_folders(self, path: str) -> None:
        folder = self.path
        for name in path.split("/")[:-1]:
            folder = os.path.join(folder, name)
            if os.path.islink(folder):
                raise OSError(errno.ELOOP, "It is a link, and links are not followed", folder)
            if not os.path.isdir(folder):
                make_folder(folder)

    def put(self, event: Event, made: list[str], *, durable: bool) -> None:
        """Write an event's payload, and the page of a new unit. Adds each path to `made` before it is written."""
        made.append(payload_path(event))
        self.write(made[-1], _ERASED if event.erased else _payload_file(event), os.O_TRUNC, durable=durable)
        if event.type is EventType.UNIT_REMEMBERED and event.body is not None and event.subject is not None:
            made.append(_page_path(event))
            self.write(made[-1], _page_of(event), os.O_TRUNC, durable=False)

    def erase(self, events: Iterable[Event], *, durable: bool) -> None:
        """Replace the files of erased events by notices. Missing files are not created."""
        for event in events:
            is_unit = event.type is EventType.UNIT_REMEMBERED and event.subject
            for path, notice in ((payload_path(event), _ERASED), (is_unit and _page_path(event), _ERASED_PAGE)):
                with suppress(FileNotFoundError):
                    if path and self.read(path) != notice:
                        self.write(path, notice, os.O_TRUNC, durable=durable)

    def undo(self, erased: Iterable[Event], made: Iterable[str], sizes: Mapping[str, int]) -> None:
        """Undo what was written: the ends of log files, erasures, and new files."""
        for path, size in sizes.items():
            self.cut(path, size)
        for event in erased:
            with suppress(OSError):
                self.put(event, [], durable=True)
        for path in made:
            with suppress(OSError):
                self.cut(path, 0)


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ino}"


# What the files hold


def lamport_of(clock: str) -> int:
    return int(from_json(clock)[0]) if clock else 0


def seen_in(clock: str) -> dict[str, int]:
    """The times of other writers that this event's writer has seen since its previous event."""
    return dict(from_json(clock)[1]) if clock else {}


def order_of(entry: tuple[str, Event]) -> tuple[int, str]:
    """The place of an event, which begins with its file, in the order that is the same in every clone."""
    place, event = entry
    if event.stream.writer:
        return lamport_of(event.clock), event.stream.writer
    found = _AFTER.match(place)
    return int(found[1]) if found else 0, AFTER_ALL_WRITERS


def writer_of(path: str) -> str:
    return path.split("/")[1]


def log_path(event: Event, imported: str) -> str:
    """The file of an event. Imported events have no clock: their file's name says what they come after."""
    name = f"{event.recorded_at:%Y-%m}" if event.stream.writer else imported
    return f"{_LOG}/{event.stream.writer or _IMPORTED}/{name}.jsonl"


def payload_path(event: Event) -> str:
    return f"{_PAYLOADS}/{event.stream.writer or _IMPORTED}/{event.recorded_at:%Y-%m}/{event.id}.json"


def line_of(event: Event) -> bytes:
    """One log line. The fields that a person looks for come first."""
    record: dict[str, Any] = {
        "at": event.recorded_at.isoformat(timespec="microseconds"),
        "type": str(event.type),
        "actor": str(event.actor),
        "scope": event.scope.segments,
        "subject": event.subject,
        "session": event.session,
        "key": event.key,
        "occurred": event.occurred_at.isoformat(timespec="microseconds"),
        "id": event.id,
        "seq": event.seq,
        "clock": event.clock and from_json(event.clock),
        "payload": event.payload_hash.hex(),
        "hash": event.hash.hex(),
    }
    if record["occurred"] == record["at"]:
        del record["occurred"]
    record = {name: item for name, item in record.items() if item not in (None, "")}
    return json.dumps(record, ensure_ascii=False, separators=(", ", ": ")).encode() + b"\n"


def _event_in(line: bytes, writer: str) -> Event:
    """The event of a line, without its payload. Raises ValueError or similar for an invalid line."""
    record = json.loads(line)
    if not isinstance(record, dict) or not isinstance(record.get("id"), str) or not _ID.fullmatch(record["id"]):
        raise ValueError("it has no id")
    scope = Scope.of(record["scope"])
    clock = canonical_json(record["clock"]) if "clock" in record else ""
    if bool(clock) != bool(writer):
        raise ValueError("it has no clock")
    lamport, seen = lamport_of(clock), seen_in(clock)
    if lamport < 0 or not all(type(time) is int for time in seen.values()):
        raise ValueError("its clock is none")
    return Event(
        id=record["id"],
        stream=Stream(scope.org, scope.project, writer),
        seq=record["seq"],
        type=EventType(record["type"]),
        actor=Actor.parse(record["actor"]),
        scope=scope,
        session=record.get("session"),
        subject=record.get("subject"),
        key=record.get("key"),
        occurred_at=_instant(record["occurred"] if "occurred" in record else record["at"]),
        recorded_at=_instant(record["at"]),
        body=None,
        salt=None,
        payload_hash=bytes.fromhex(record["payload"]),
        hash=bytes.fromhex(record["hash"]),
        clock=clock,
    )


def _instant(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    micros(at)
    return at


def _payload_file(event: Event) -> bytes:
    """A payload with its salt, indented so that a diff is readable."""
    record = {"payload": event.payload, "salt": (event.salt or b"").hex()}
    return json.dumps(record, ensure_ascii=False, indent=1).encode() + b"\n"


def folded(digest: str, line: bytes) -> str:
    """The file's digest after one more line."""
    return blake2b(digest.encode() + line, digest_size=16).hexdigest()


# Pages


def _page_path(event: Event) -> str:
    """The path of a unit's page. It contains nothing of the text, so an erased unit leaves no trace in it."""
    kind = (event.payload or {}).get("unit", {}).get("kind", "unit")
    assert event.subject is not None
    short = event.subject[_SHORT_ID_AT:] if len(event.subject) == ID_CHARS else safe_name(event.subject)
    name = f"{event.recorded_at:%Y-%m-%d}-{kind}-{short}.md"
    return f"{_UNITS}/{safe_name(event.scope.project or event.scope.org)}/{name}"


def _page_of(event: Event) -> bytes:
    """A unit as it was created. Only fields that never change are shown, so pages never conflict in a merge."""
    unit = (event.payload or {})["unit"]
    cites = [" ".join(str(item.get(name, "")) for name in ("kind", "ref")) for item in unit.get("citations", ())]
    head = {
        "kind": unit["kind"],
        "id": event.subject,
        "by": str(event.actor),
        "at": f"{event.recorded_at:%Y-%m-%d %H:%M} UTC",
        "in": str(Scope.of(unit["scope"])),
        "domain": unit.get("domain"),
        "cites": ", ".join(cites),
    }
    lines = [f"{name}: {_one_line(str(item))}" for name, item in head.items() if item]
    return "\n".join(["---", *lines, "---", "", str(unit["content"]), ""]).encode()


def _one_line(text: str) -> str:
    return text if text.isprintable() else json.dumps(text, ensure_ascii=False)


def safe_name(name: str) -> str:
    """A folder name that is valid on every file system. If characters are lost, a digest keeps it unique."""
    plain = re.sub(r"[^\w-]+", "-", normalize("NFC", name).lower()).strip("-")[:_NAME_CHARS_MAX]
    is_whole = plain == name and not _RESERVED.fullmatch(plain)
    return plain if is_whole else f"{plain}-{blake2b(name.encode(), digest_size=4).hexdigest()}".lstrip("-")

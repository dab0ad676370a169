"""Reads the files, records and rows of another memory without trusting them, and lists their problems."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any, BinaryIO
from urllib.parse import quote

from mnemarch.errors import InvalidInput
from mnemarch.model.upkeep import Problem
from mnemarch.model.value import Frozen

TEXT_BYTES_MAX = 512 << 10
_DOCUMENT_BYTES_MAX = 64 << 20
_LINE_BYTES_MAX = 4 << 20
_HEAD_BYTES = 65_536
# Files and folders of any kind. A folder with more is a disk, not a memory.
_SEEN_MAX = 100_000
_CELL_BYTES_MAX = 4 << 20
_LOCK_WAIT_S = 3.0
_SQLITE = b"SQLite format 3\0"
_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_PASSED_OVER = frozenset({"node_modules", "__pycache__"})
# The fields of a JSON document that may hold its records.
_LISTS = ("results", "memories", "items", "entities", "relations")
_SECONDS_MAX = 100_000_000_000  # A larger number counts milliseconds.


class Note(Frozen):
    """One entry of another memory. `id` is its id there, and `place` says where it was read.

    `file` and `lines` are set for a text file. `group` is its project, user or namespace.
    """

    text: str
    place: str = ""
    id: str = ""
    at: datetime | None = None
    author: str = ""
    tags: tuple[str, ...] = ()
    domain: str = ""
    kind: str = "fact"
    importance: float = 0.5
    group: str = ""
    file: str = ""
    lines: tuple[int, int] | None = None


class Source:
    """A file or a folder to import. Unreadable parts are added to `problems`, and the rest is read.

    `root` is the importer's working tree.
    """

    def __init__(self, path: str, root: str | None = None) -> None:
        self.path = path
        self.root = root
        self.problems: list[Problem] = []

    @property
    def is_folder(self) -> bool:
        return os.path.isdir(self.path)

    @property
    def name(self) -> str:
        return os.path.basename(os.path.abspath(self.path))

    def noted(self, place: str, problem: str) -> None:
        self.problems.append(Problem(place, problem))

    def place_of(self, file: str) -> str:
        """The name of a file in messages: its path in the folder, or its base name if the source is one file."""
        return os.path.relpath(file, self.path).replace(os.sep, "/") if self.is_folder else os.path.basename(file)

    # Files

    def files(self, end: str = ".md") -> Iterator[str]:
        """The files of the folder with this ending, in order, or the file itself. No link may leave the folder."""
        if not self.is_folder:
            yield self.path
            return
        inside, seen = os.path.realpath(self.path), 0
        for folder, folders, names in os.walk(self.path):
            seen += len(folders) + len(names)
            if seen > _SEEN_MAX:
                self.noted(self.place_of(folder), f"more than {_SEEN_MAX:,} files and folders: the rest was left out")
                return
            folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _PASSED_OVER)
            for name in sorted(names):
                file = os.path.join(folder, name)
                if name.startswith(".") or not name.lower().endswith(end):
                    continue
                if os.path.commonpath([inside, os.path.realpath(file)]) != inside:
                    self.noted(self.place_of(file), "a link that leads out of the folder")
                else:
                    yield file

    def text(self, file: str) -> str:
        """The text of a file. An unreadable file is noted as a problem and gives an empty text."""
        try:
            with opened(file) as handle:
                return decoded(_at_most(handle, TEXT_BYTES_MAX))
        except (OSError, ValueError) as error:
            self.noted(self.place_of(file), _said(error))
            return ""

    # Records

    def records(self) -> Iterator[tuple[str, Any]]:
        """The JSON values of the file, each with its place: the items of a list, or one value for each line."""
        with opened(self.path) as file:
            is_lines = _is_lines(file)
            if is_lines:
                yield from self._lines(file)
                return
            try:
                document = json.loads(decoded(_at_most(file, _DOCUMENT_BYTES_MAX)))
            except (ValueError, RecursionError) as error:
                raise InvalidInput(
                    f"{self.path!r} is not JSON: {_said(error)}.", hint="Give the file exactly as it was exported."
                ) from None
        listed = document if isinstance(document, list) else _listed(document)
        for number, record in enumerate(listed, start=1):
            yield f"item {number}", record

    def _lines(self, file: BinaryIO) -> Iterator[tuple[str, Any]]:
        for number, line in enumerate(iter(lambda: file.readline(_LINE_BYTES_MAX), b""), start=1):
            place, is_whole = f"line {number}", len(line) < _LINE_BYTES_MAX or line.endswith(b"\n")
            while not is_whole and (rest := file.readline(_LINE_BYTES_MAX)):
                is_whole = rest.endswith(b"\n")
                line = b""
            if not line:
                self.noted(place, f"more than {_LINE_BYTES_MAX:,} bytes")
            elif line.strip():
                try:
                    yield place, json.loads(decoded(line))
                except (ValueError, RecursionError) as error:
                    self.noted(place, f"no JSON: {_said(error)}")

    # Databases

    def tables(self) -> dict[str, set[str]]:
        """The tables of a SQLite file with their columns. Empty for any other file."""
        if self.is_folder or head_of(self.path)[: len(_SQLITE)] != _SQLITE:
            return {}
        try:
            with closing(self._connected()) as database:
                names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
                columns = "SELECT name FROM pragma_table_info(?)"
                return {name: {column for (column,) in database.execute(columns, [name])} for name in names}
        except sqlite3.Error as error:
            raise self._unreadable(error) from None

    def rows(self, table: str, order: str) -> Iterator[dict[str, Any]]:
        """The rows of a table, as dictionaries by column. `tables` lists the tables."""
        try:
            with closing(self._connected()) as database:
                # Both names are constants in the readers of formats.
                cursor = database.execute(f'SELECT * FROM "{table}" ORDER BY {order}')  # noqa: S608
                names = [column[0] for column in cursor.description]
                for row in cursor:
                    yield dict(zip(names, row, strict=True))
        except sqlite3.Error as error:
            raise self._unreadable(error) from None

    def _connected(self) -> sqlite3.Connection:
        """A connection that can only read. Functions that a foreign schema calls are not run."""
        uri = f"file:{quote(os.path.abspath(self.path))}?mode=ro"
        database = sqlite3.connect(uri, uri=True, timeout=_LOCK_WAIT_S)
        database.text_factory = lambda raw: raw.decode("utf-8", "replace")
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _CELL_BYTES_MAX)
        database.execute("PRAGMA trusted_schema = OFF")
        return database

    def _unreadable(self, error: sqlite3.Error) -> InvalidInput:
        is_locked = "locked" in str(error)
        hint = "Stop the program that uses it, or import a copy of the file." if is_locked else "Import a whole copy."
        return InvalidInput(f"{self.path!r} can't be read as a database: {error}.", hint=hint)


def opened(path: str) -> BinaryIO:
    """Open a regular file for reading. A pipe, a device or a folder raises OSError and is never waited for."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is no regular file", path)
    return open(handle, "rb")


def head_of(path: str) -> bytes:
    with opened(path) as file:
        return file.read(_HEAD_BYTES)


def decoded(raw: bytes) -> str:
    """The text of bytes in UTF-8, or in the encoding of a byte order mark. Raises ValueError for anything else."""
    encoding = next((name for mark, name in _MARKS.items() if raw.startswith(mark)), "utf-8")
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 (iconv -f cp949 -t utf-8 converts Korean files, say)") from None
    if "\0" in text:
        raise ValueError("it is binary")
    return text


def moment_of(stamp: Any) -> datetime | None:
    """An instant from ISO 8601, or from seconds or milliseconds since 1970. None if it can't be read."""
    try:
        if isinstance(stamp, str) and not stamp.strip().isdigit():
            at = datetime.fromisoformat(stamp.strip())
            return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        if stamp is None or isinstance(stamp, bool):
            return None
        number = float(stamp)
        return datetime.fromtimestamp(number / 1000 if number > _SECONDS_MAX else number, UTC)
    except (ValueError, TypeError, OverflowError, OSError):
        return None


def words_of(item: Any) -> tuple[str, ...]:
    """The texts of a list, of a JSON list, or of a text with commas."""
    if isinstance(item, str):
        try:
            item = json.loads(item) if item.startswith("[") else item.split(",")
        except (ValueError, RecursionError):
            item = item.split(",")
    words = item if isinstance(item, list) else ()
    return tuple(word.strip() for word in words if isinstance(word, str) and word.strip())


def _listed(document: Any) -> list[Any]:
    """The records in the lists of a document, such as its results or memories. Without a list, the document itself."""
    if isinstance(document, dict):
        lists = [document[name] for name in _LISTS if isinstance(document.get(name), list)]
        if lists:
            return [record for listed in lists for record in listed]
    return [document]


def _is_lines(file: BinaryIO) -> bool:
    """Whether each line is a record. The first line decides, or the second one if the first is damaged."""
    first, second = _record(file.readline(_LINE_BYTES_MAX)), file.readline(_LINE_BYTES_MAX)
    file.seek(0)
    if first is None:
        return _record(second) is not None
    return bool(second.strip()) or first.keys().isdisjoint(_LISTS)


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _at_most(file: BinaryIO, bytes_max: int) -> bytes:
    raw = file.read(bytes_max + 1)
    if len(raw) > bytes_max:
        raise ValueError(f"more than {bytes_max:,} bytes; split it")
    return raw


def _said(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "nested too deep"
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)).rstrip(".")

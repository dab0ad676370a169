"""The SQLite dialect: one file in WAL mode, written by any number of processes; or nothing on disk."""

from __future__ import annotations

import os
import time
from _thread import get_ident  # threading takes a millisecond more to import

from mnemarch.errors import Incompatible, InvalidInput, StoreCorrupt, StoreError, StoreUnavailable
from mnemarch.model.json_text import json_needles
from mnemarch.model.stamps import new_id
from mnemarch.stores.sql.queries import Queries, named_queries
from mnemarch.stores.sql.reader import Reader
from mnemarch.stores.sql.store import READ_WAIT_S, SqlStore
from mnemarch.stores.sqlite.raw import RawFile, connected, missing_bytes, size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TypeVar

    T = TypeVar("T")
else:
    import _sqlite3 as sqlite3

_HERE = os.path.dirname(__file__)
_QUERIES = Queries(named_queries(os.path.join(_HERE, "..", "sql", "queries.sql"), os.path.join(_HERE, "queries.sql")))
# Migrations begin at 4: no earlier format was ever released.
_FIRST_FORMAT = FORMAT_VERSION = 6
APPLICATION_ID = 0x4D4E4152  # "MNAR" in the file's header tells our database from any other
# An empty file beside the database says that it was made: an empty database is then a loss, not a beginning.
_MADE = "-made"
_LOOKS = 5
_NAP_S_MIN = 0.0002
_NAP_S_MAX = 0.008


class SqliteStore(SqlStore):
    """One file, many processes. Writers queue with BEGIN IMMEDIATE."""

    queries = _QUERIES
    driver = sqlite3
    format_version = FORMAT_VERSION

    def __init__(self, path: str, *, durability: str = "process", lock_wait_s_max: float = 30.0) -> None:
        super().__init__()
        self.name = self._path = path
        self._lock_wait_s_max = lock_wait_s_max
        self._always_durable = durability == "power"
        self._raw: RawFile | None = None
        self._may_write = True
        try:
            self._check_file()
            self._writer = self._connect_writer()
            self.id = self._prepare()
        except BaseException as error:
            self._let_go()
            if isinstance(error, sqlite3.Error | OSError):
                raise self._translation(error) from error
            raise
        self._mark_open()

    @property
    def writable(self) -> bool:
        """Whether the rights allow a write and none was denied: what a sandbox denies, rights don't show."""
        places = (os.path.dirname(self._path) or ".", *([self._path] if os.path.exists(self._path) else []))
        return self._may_write and all(os.access(place, os.W_OK) for place in places)

    # Opening

    def _connect(self) -> sqlite3.Connection:
        connection, self._may_write = connected(self._path, self.writable, READ_WAIT_S)
        try:
            # Erased content must not survive in free pages, whoever frees them.
            connection.execute("PRAGMA secure_delete = ON")
            # A commit writes a handful of pages: at the default of 1,000 the log would be folded in every 200 commits.
            connection.execute("PRAGMA wal_autocheckpoint = 4000")
            connection.execute(f"PRAGMA synchronous = {'FULL' if self._always_durable else 'NORMAL'}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect_writer(self) -> sqlite3.Connection:
        """The connection that writes waits by itself (`_execute_patiently`), so SQLite's own waiting is off."""
        writer = self._connect()
        writer.execute("PRAGMA busy_timeout = 0")
        return writer

    def _check_file(self) -> None:
        """Refuse a file that lost its end; with a write-ahead log the end may still be there."""
        lost = ""
        for _ in range(_LOOKS):
            lost = self._lost()
            if not lost:
                return
            time.sleep(_NAP_S_MAX)  # Another process may be folding its log into the file at this moment.
        raise StoreCorrupt(
            f"{self._path} {lost}; it was left untouched.",
            hint="Move it away together with its -wal file, then restore a backup (mnemarch backup makes them) or "
            "import an export into a new memory.",
        )

    def _lost(self) -> str:
        """What is missing of a memory that was here, in words; nothing if it is whole, or was never made."""
        log = size_of(self._path + "-wal")
        if not size_of(self._path):
            if log:  # SQLite would take it for the log of another file, and delete it.
                return f"has no content, and {log} bytes of its write-ahead log are left"
            # Where file and mark are gone, a new memory may begin.
            emptied = os.path.exists(self._path) and os.path.exists(self._path + _MADE)
            return "is empty, but was not when it was last open" if emptied else ""
        missing = 0 if log else missing_bytes(self._raw_file())
        return f"is truncated or no database: {missing} bytes are missing" if missing else ""

    def _raw_file(self) -> RawFile:
        if self._raw is None:
            self._raw = RawFile(self._path)
        return self._raw

    def _prepare(self) -> str:
        """Bring the file to this format, whoever comes first; give the store's id."""
        self._format()  # Another's file is refused before anything is done to it.
        if self._may_write and self._asked("PRAGMA journal_mode") != ("wal",):  # New, or a restored backup.
            self._execute_patiently("PRAGMA journal_mode = WAL")
        self._prepare_tables()
        # At every opening: who made the file may have been killed before this, and a restored backup has no mark.
        if not os.path.exists(self._path + _MADE) and self.writable:
            with open(self._path + _MADE, "ab"):
                pass
        self._raw_file()  # Open from now on: a later store of this process must not be the only one to hold it.
        return self._id()

    def _id(self) -> str:
        return str(self._asked("SELECT id FROM store")[0])

    def _prepare_tables(self) -> None:
        if self._format() == FORMAT_VERSION:
            return
        self._require_writable()
        self._execute_patiently("BEGIN IMMEDIATE")
        try:
            for version in range(max(self._format() + 1, _FIRST_FORMAT), FORMAT_VERSION + 1):
                self._migrate(version)
            self._writer.execute("COMMIT")
        except BaseException:
            self._writer.execute("ROLLBACK")
            raise

    def _asked(self, query: str) -> Any:
        return self._execute_patiently(query).fetchone()

    def _format(self) -> int:
        """The file's format; 0 for a new one. Read as one view: another process may be making it at this moment."""
        alone = not self._writer.in_transaction
        if alone:
            self._execute_patiently("BEGIN")
        try:
            (tables,) = self._asked("SELECT count(*) FROM sqlite_master")
            (application,) = self._asked("PRAGMA application_id")
            (version,) = self._asked("PRAGMA user_version")
        finally:
            if alone and self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
        if application != APPLICATION_ID:
            if tables or version:
                raise StoreCorrupt(
                    f"{self._path} is a database, but not Mnemarch's; it was left untouched.",
                    hint="Point --store at another folder, or move that file away.",
                )
            return 0
        if version > FORMAT_VERSION:
            raise Incompatible(
                f"{self._path} has format {version}; this Mnemarch knows formats up to {FORMAT_VERSION}.",
                hint="Upgrade Mnemarch. The file was left untouched.",
            )
        if 0 < version < _FIRST_FORMAT:
            hint = "Export it with the version that made it, and import that. It was left untouched."
            raise Incompatible(f"{self._path} has format {version}; this begins at {_FIRST_FORMAT}.", hint=hint)
        return int(version)

    def _migrate(self, version: int) -> None:
        for statement in _statements(self._migration(version)):
            self._writer.execute(statement)
        if version == _FIRST_FORMAT:
            row = (new_id(), time.time_ns() // 1000)
            self._writer.execute("INSERT INTO store (id, created_at) VALUES (?, ?)", row)
            self._writer.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self._writer.execute(f"PRAGMA user_version = {version}")

    def _migration(self, version: int) -> str:
        """The script that leads from `version - 1` to `version`."""
        folder = os.path.join(_HERE, "migrations")
        (name,) = (name for name in os.listdir(folder) if name.startswith(f"{version:04d}_"))
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return file.read()

    # Writing

    def _require_writable(self) -> None:
        if not self._may_write:
            raise StoreUnavailable(f"{self._path} can't be written from here.", hint=_HINTS[sqlite3.SQLITE_READONLY])

    def _begin(self, durable: bool) -> None:
        self._require_writable()
        if durable and not self._always_durable:
            self._writer.execute("PRAGMA synchronous = FULL")
        self._execute_patiently("BEGIN IMMEDIATE")

    def _ended(self, durable: bool) -> None:
        if durable and not self._always_durable:
            self._writer.execute("PRAGMA synchronous = NORMAL")

    def _execute_patiently(self, statement: str) -> sqlite3.Cursor:
        """Wait for the write lock in short random naps: SQLite's own handler starves some writers for seconds."""
        deadline = 0.0
        nap_s = _NAP_S_MIN
        while True:
            try:
                cursor: sqlite3.Cursor = self._writer.execute(statement)
                return cursor
            except sqlite3.OperationalError as error:
                deadline = deadline or time.monotonic() + self._lock_wait_s_max
                if error.sqlite_errorcode & 0xFF not in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                    raise
                if time.monotonic() > deadline:
                    raise StoreUnavailable(
                        f"{self._path} was locked by other writers for {self._lock_wait_s_max:g} s.",
                        hint="See which process holds it, or raise store.lock_wait_s_max in mnemarch.toml.",
                    ) from None
            time.sleep(nap_s * (0.5 + int.from_bytes(os.urandom(2), "big") / 65_536))
            nap_s = min(nap_s * 1.5, _NAP_S_MAX)

    # Maintenance

    def scrub(self, needles: Sequence[str]) -> int:
        """Remove every byte of these texts from the files; gives the number of files searched."""
        forms = (form for needle in needles for form in (needle, *json_needles(needle)))
        wanted = [form.encode() for form in dict.fromkeys(forms) if form]
        with self._turn:
            try:
                self._require_open()
                self._truncate_log()
                # Moved cells can leave copies in the slack of a page, which only a rewrite of the file removes.
                # Without needles nothing can be searched for, so it is rewritten in any case.
                if not wanted or self._files_holding(wanted):
                    self._execute_patiently("VACUUM")
                    self._truncate_log()
                left = self._files_holding(wanted)
            except (sqlite3.Error, OSError) as error:
                raise self._translation(error) from error
        if left:
            raise _still_readable(", ".join(left))
        return sum(os.path.exists(self._path + suffix) for suffix in ("", "-wal", "-shm"))

    def _files_holding(self, wanted: Sequence[bytes]) -> list[str]:
        """The files that hold any of these bytes. The shared-memory file has no content, and reading it costs locks."""
        from mnemarch.files import chunks_of, stream_holds_any

        log = self._path + "-wal"
        streams = {self._path: self._raw_file().chunks(), log: chunks_of(log)}
        return [path for path, chunks in streams.items() if stream_holds_any(chunks, wanted)]

    def _truncate_log(self) -> None:
        """Fold the log into the file and empty it; refused while anybody still reads what was there before.

        The content of the log does not decide it: whoever erases again has no text left to look for.
        """
        deadline = time.monotonic() + self._lock_wait_s_max
        while True:
            busy, _, _ = self._asked("PRAGMA wal_checkpoint(TRUNCATE)")
            if not busy:
                return
            if time.monotonic() > deadline:
                raise _still_readable(self._path + "-wal")
            time.sleep(_NAP_S_MAX)

    def backup(self, path: str) -> None:
        """Write a consistent copy to `path` while others go on writing."""
        partial = path + ".partial"
        try:
            source, reader = self._lend()
            try:
                target = sqlite3.connect(partial)
                try:
                    source.backup(target)
                    target.execute("PRAGMA journal_mode = DELETE")
                finally:
                    target.close()
            finally:
                self._take_back(source, reader)
            os.replace(partial, path)
        except (sqlite3.Error, OSError) as error:
            raise self._translation(error) from error

    def check(self) -> str | None:
        """What SQLite itself finds wrong with the file, or None."""
        with self._turn:
            try:
                self._require_open()
                (verdict,) = self._asked("PRAGMA quick_check(1)")
            except sqlite3.Error as error:
                raise self._translation(error) from error
        return None if verdict == "ok" else str(verdict)

    def _take_back(self, connection: Any, reader: Reader) -> None:
        super()._take_back(connection, reader)
        if not self._may_write:
            # One without locks does not see what others write later, so each read begins anew.
            while self._idle:
                self._idle.pop().close()

    def _let_go(self) -> None:
        super()._let_go()
        if self._raw is not None and not self._reading:  # After every connection: see there.
            self._raw.close()
            self._raw = None

    def _translation(self, error: Exception) -> StoreError:
        if isinstance(error, OSError):
            return StoreUnavailable(f"{self.name}: {error.strerror or error}.", hint="Check the folder and its rights.")
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_READONLY:
            self._may_write = False
        if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB} or "malformed" in str(error):
            return StoreCorrupt(
                f"{self.name} is damaged or not a database: {error}.",
                hint="Run mnemarch doctor; restore a backup, or import an export into a new memory.",
            )
        hint = _HINTS.get(code, "Nothing was half-written.")
        return StoreUnavailable(f"{self.name} can't be used now: {error}.", hint=hint)


_HINTS = {
    sqlite3.SQLITE_FULL: "Free some disk space and call again; nothing was half-written.",
    sqlite3.SQLITE_READONLY: "It can be read here. To write, get the right to its file and folder, or run the command "
    "outside the sandbox.",
    sqlite3.SQLITE_CANTOPEN: "Check that the folder exists and may be written.",
    sqlite3.SQLITE_BUSY: "Another process holds the file; call again.",
}


class InMemoryStore(SqliteStore):
    """Nothing on disk: one connection, which readers and writers use in turn."""

    writable = True

    def __init__(self) -> None:
        super().__init__(":memory:")

    def _check_file(self) -> None:
        """There is no file."""

    def _prepare(self) -> str:
        self._prepare_tables()
        return self._id()

    def read(self, work: Callable[[Reader], T]) -> T:
        """Run `work` while nobody writes; inside a read or a write of the same thread it sees what that one sees."""
        if self._leader == get_ident():
            return work(Reader(self._writer.execute, self.queries))
        with self._turn:
            self._require_open()
            self._leader = get_ident()
            try:
                return work(Reader(self._writer.execute, self.queries))
            finally:
                self._leader = None

    def scrub(self, needles: Sequence[str]) -> int:  # noqa: ARG002 - no file ever held anything
        return 0

    def backup(self, path: str) -> None:
        raise InvalidInput(f"A memory without a file has no backup for {path!r}.", hint="Use export instead.")

    def before_fork(self) -> None:
        """Each side goes on with a copy of its own."""
        self._turn.acquire()

    def after_fork(self) -> None:
        self._turn.release()


def _still_readable(files: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"The content was erased, but {files} may still hold bytes of it: another process or thread is reading.",
        hint="Let the others finish, then erase the unit again.",
    )


def _statements(script: str) -> Iterator[str]:
    """The statements of a script one by one: executescript would commit the transaction they belong to."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""

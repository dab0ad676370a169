"""The SQLite dialect: one file in WAL mode for any number of processes, or a database in memory."""

from __future__ import annotations

import os
import time

from mnemarch.errors import Incompatible, InvalidInput, StoreCorrupt, StoreError, StoreUnavailable
from mnemarch.files import make_private
from mnemarch.forks import is_mine, let_a_fork_pass, watch
from mnemarch.model.stamps import new_id
from mnemarch.stores.sql.queries import Queries, migration, named_queries
from mnemarch.stores.sql.reader import Reader
from mnemarch.stores.sql.store import READ_WAIT_S, Loan, SqlStore
from mnemarch.stores.sqlite import raw

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from typing import Any, TypeVar

    T = TypeVar("T")
else:
    import _sqlite3 as sqlite3

_HERE = os.path.dirname(__file__)
_QUERIES = Queries(named_queries(os.path.join(_HERE, "..", "sql", "queries.sql"), os.path.join(_HERE, "queries.sql")))
# Migrations begin here: no earlier format was ever released.
_FIRST_FORMAT = 6
FORMAT_VERSION = 8
APPLICATION_ID = 0x4D4E4152  # "MNAR" in the file's header tells our database from any other
_LOG_END = "-wal"
# While somebody always reads, SQLite never restarts its write-ahead log. Above this size we empty it after a commit.
_LOG_BYTES_MAX = 24 << 20
_LOG_WAIT_S, _LOG_LOOK_MS = 2.0, 100
_LOG_AGAIN_S = 2.0
_FORK_S_MAX = 10.0
_NAP_S_MIN = 0.0002
_NAP_S_MAX = 0.008
# Tables that SQLite makes itself, by ANALYZE for example, change no answer.
_SCHEMA = "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_stat%'"


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
        self._raw: raw.RawFile | None = None
        # The write-ahead log's identity, and when to try again after readers kept it from being emptied.
        self._log_key: tuple[int, int] | None = None
        self._log_again_at = 0.0
        self._may_write = True
        with self._turn:
            watch(self)
            let_a_fork_pass(_FORK_S_MAX)
            try:
                self._open_file()
                self._writer = self._connect_writer()
                self.id = self._prepare()
            except BaseException as error:
                self._let_go()
                if isinstance(error, sqlite3.Error | OSError):
                    raise self._translation(error) from error
                raise

    @property
    def writable(self) -> bool:
        """Whether file rights allow writing and no write was denied; a sandbox can deny what rights allow."""
        places = (os.path.dirname(self._path) or ".", *([self._path] if os.path.exists(self._path) else []))
        return self._may_write and all(os.access(place, os.W_OK) for place in places)

    # Opening

    def _connect(self) -> sqlite3.Connection:
        connection, self._may_write = raw.connected(self._path, self.writable, READ_WAIT_S)
        try:
            # Overwrite erased content in free pages.
            connection.execute("PRAGMA secure_delete = ON")
            # A commit writes a handful of pages: at the default of 1,000 the log would be folded in every 200 commits.
            connection.execute("PRAGMA wal_autocheckpoint = 4000")
            connection.execute(f"PRAGMA synchronous = {'FULL' if self._always_durable else 'NORMAL'}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect_writer(self) -> sqlite3.Connection:
        """The writing connection. SQLite's own waiting is off; `_execute_patiently` waits."""
        writer = self._connect()
        writer.execute("PRAGMA busy_timeout = 0")
        self._log_key = raw.key_of(self._path + _LOG_END)
        return writer

    def _open_file(self) -> None:
        """Keep the file open, so that closing a later store of this process doesn't drop its locks."""
        raw.require_whole(self._path)
        if self.writable:
            make_private(self._path)  # SQLite gives its -wal and -shm files the same rights.
        self._raw = raw.RawFile(self._path)

    def _prepare(self) -> str:
        """Create or migrate the tables, and return the store's id."""
        self._format()  # Refuse a foreign file before touching it.
        if self._may_write and self._asked("PRAGMA journal_mode") != ("wal",):  # New, or a restored backup.
            self._execute_patiently("PRAGMA journal_mode = WAL")
        self._prepare_tables()
        # At every opening: the creator may have been killed before this, and a restored backup has no mark.
        if self.writable:
            make_private(self._path + raw.MADE_END)
        self._log_key = raw.key_of(self._path + _LOG_END)
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
        """The file's format, 0 for a new file. Read in one transaction, since another process may be creating it."""
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
            hint = "It was left untouched. Export it with the version that made it, then import the export."
            raise Incompatible(f"{self._path} has format {version}; formats begin at {_FIRST_FORMAT}.", hint=hint)
        return int(version)

    def _migrate(self, version: int) -> None:
        for statement in raw.statements(self._migration(version)):
            self._writer.execute(statement)
        if version == _FIRST_FORMAT:
            row = (new_id(), time.time_ns() // 1000)
            self._writer.execute("INSERT INTO store (id, created_at) VALUES (?, ?)", row)
            self._writer.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self._writer.execute(f"PRAGMA user_version = {version}")

    def _migration(self, version: int) -> str:
        return migration(os.path.join(_HERE, "migrations"), version)

    # Writing

    def _require_writable(self) -> None:
        if not self._may_write:
            raise StoreUnavailable(f"{self._path} can't be written from here.", hint=_HINTS[sqlite3.SQLITE_READONLY])

    def _begin(self, durable: bool, wait_s_max: float | None) -> None:
        self._require_writable()
        if durable and not self._always_durable:
            self._writer.execute("PRAGMA synchronous = FULL")
        self._execute_patiently("BEGIN IMMEDIATE", wait_s_max)

    def _check_place(self) -> None:
        if self._raw is not None and not self._raw.is_at(self._path):
            raise raw.gone(self._path)

    def _committed(self) -> None:
        """Raise if the files were deleted, moved or replaced: then nothing is acknowledged."""
        self._check_place()
        log = self._path + _LOG_END
        key, size = raw.key_and_size_of(log)
        if key != self._log_key:
            raise raw.gone(log)
        if size > _LOG_BYTES_MAX and time.monotonic() > self._log_again_at:
            try:
                is_empty = self._has_emptied_log()
            except sqlite3.Error:
                is_empty = False  # The commit is safe. The next write reports the problem.
            self._log_again_at = 0.0 if is_empty else time.monotonic() + _LOG_AGAIN_S

    def _has_emptied_log(self, wait_s_max: float = _LOG_WAIT_S) -> bool:
        """Checkpoint the write-ahead log and truncate it, unless readers still need it.

        SQLite itself waits for the readers, since no writer may come in between. It waits for each place that an old
        reader had, even if readers of the newest state take turns there by now. So it waits briefly and looks again.
        """
        deadline = time.monotonic() + wait_s_max
        self._writer.execute(f"PRAGMA busy_timeout = {_LOG_LOOK_MS}")
        try:
            while self._asked("PRAGMA wal_checkpoint(TRUNCATE)")[0]:
                if time.monotonic() >= deadline:
                    return False
                time.sleep(_NAP_S_MAX)
        finally:
            self._writer.execute("PRAGMA busy_timeout = 0")
        return True

    def _ended(self, durable: bool) -> None:
        if durable and not self._always_durable:
            self._writer.execute("PRAGMA synchronous = NORMAL")

    def _execute_patiently(self, statement: str, wait_s_max: float | None = None) -> sqlite3.Cursor:
        """Wait for the write lock in short random naps. SQLite's busy handler starves some writers for seconds."""
        deadline = 0.0
        wait_s_max = self._lock_wait_s_max if wait_s_max is None else wait_s_max
        nap_s = _NAP_S_MIN
        while True:
            try:
                cursor: sqlite3.Cursor = self._writer.execute(statement)
                return cursor
            except sqlite3.OperationalError as error:
                deadline = deadline or time.monotonic() + wait_s_max
                if error.sqlite_errorcode & 0xFF not in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                    raise
                if time.monotonic() > deadline:
                    raise StoreUnavailable(
                        f"{self._path} was locked by other writers for {wait_s_max:g} s.",
                        hint="Find the process that holds it, or raise store.lock_wait_s_max in mnemarch.toml.",
                    ) from None
            time.sleep(nap_s * (0.5 + int.from_bytes(os.urandom(2), "big") / 65_536))
            nap_s = min(nap_s * 1.5, _NAP_S_MAX)

    # Maintenance

    def scrub(self, *, rewrite: bool = True) -> int:
        """Empty the write-ahead log and rewrite the file, so that no erased bytes remain. Returns the number of files.

        Erased content is overwritten when it goes, but moved cells can leave copies in the slack of a page. It is
        always rewritten: whether an erased text is somewhere else must not be seen from how long it takes.
        """
        with self._turn:
            try:
                self._require_open()
                self._truncate_log()
                if rewrite:
                    self._execute_patiently("VACUUM")
                    self._truncate_log()
            except (sqlite3.Error, OSError) as error:
                raise self._translation(error) from error
        return sum(os.path.exists(self._path + suffix) for suffix in ("", "-wal", "-shm"))

    def _truncate_log(self) -> None:
        """Checkpoint and truncate the write-ahead log. Raises while anybody still reads an older state."""
        if not self._has_emptied_log(self._lock_wait_s_max):
            raise StoreUnavailable(
                f"The content was erased, but {self._path}{_LOG_END} may still hold bytes of it: others are reading.",
                hint="Wait until they are done, then erase it again.",
            )

    def backup(self, path: str) -> None:
        """Write a consistent copy to `path` while others go on writing."""
        loan = Loan()
        try:
            try:
                raw.copy(self._lend(loan), path)
            finally:
                self._take_back(loan)
        except (sqlite3.Error, OSError) as error:
            raise self._translation(error) from error

    def check(self) -> str | None:
        """What is wrong with the file, its indexes or its schema, or None."""
        with self._turn:
            try:
                self._require_open()
                schema = self._execute_patiently(_SCHEMA).fetchall()
                (verdict,) = self._asked("PRAGMA integrity_check(1)")
            except sqlite3.Error as error:
                raise self._translation(error) from error
        changed = sorted(set(schema) ^ set(self._schema_as_made()))
        if changed:
            kind, name, _ = changed[0]
            return f"the {kind} {name} of the database is not as Mnemarch makes it"
        return None if verdict == "ok" else str(verdict)

    def _schema_as_made(self) -> list[tuple[str, str, str]]:
        made = sqlite3.connect(":memory:")
        try:
            for version in range(_FIRST_FORMAT, FORMAT_VERSION + 1):
                for statement in raw.statements(self._migration(version)):
                    made.execute(statement)
            return made.execute(_SCHEMA).fetchall()
        finally:
            made.close()

    def _take_back(self, loan: Loan) -> None:
        super()._take_back(loan)
        if not self._may_write:
            # A connection without locks doesn't see later writes, so each read opens a new one.
            while self._idle:
                self._idle.pop().close()

    def _let_go(self) -> None:
        super()._let_go()
        if self._raw is not None and not self._lent():  # Only after all connections are closed; see `release`.
            self._raw.close()
            self._raw = None

    def _tear(self) -> None:
        super()._tear()
        if self._raw is not None:
            self._raw.tear()

    def _translation(self, error: Exception) -> StoreError:
        if isinstance(error, OSError):
            return StoreUnavailable(f"{self.name}: {error.strerror or error}.", hint="Check the folder and its rights.")
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_READONLY:
            self._may_write = False
        if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB} or "malformed" in str(error):
            return StoreCorrupt(
                f"{self.name} is damaged or not a database: {error}.",
                hint="Restore a backup (mnemarch backup makes them), or import an export into a new memory.",
            )
        hint = _HINTS.get(code, "Nothing was half-written. Check the disk: its space, limits and health.")
        return StoreUnavailable(f"{self.name} can't be used now: {error}.", hint=hint)


_HINTS = {
    sqlite3.SQLITE_FULL: "Nothing was half-written. Free some disk space, then call again.",
    sqlite3.SQLITE_READONLY: "It can be read here. To write, make room on the disk, get the right to its file "
    "and folder, or run the command outside the sandbox.",
    sqlite3.SQLITE_CANTOPEN: "Check that the folder exists and may be written.",
    sqlite3.SQLITE_BUSY: "Another process holds the file; call again.",
}


class InMemoryStore(SqliteStore):
    """A database in memory. Readers and writers take turns on one connection."""

    writable = True

    def __init__(self) -> None:
        super().__init__(":memory:")

    def _open_file(self) -> None:
        """There is no file."""

    def _committed(self) -> None:
        """There is none that could go away."""

    def _prepare(self) -> str:
        self._prepare_tables()
        return self._id()

    def read(self, work: Callable[[Reader], T]) -> T:
        """Run `work` while nobody writes. A nested read sees what the outer read or write sees."""
        with self._turn:
            self._require_open()
            return work(Reader(self._writer.execute, self.queries))

    def scrub(self, *, rewrite: bool = True) -> int:  # noqa: ARG002
        return 0  # There is no file.

    def backup(self, path: str) -> None:
        raise InvalidInput(f"A memory without a file has no backup for {path!r}.", hint="Use export instead.")

    def _rest(self) -> bool:
        """After a fork each side has its own copy."""
        return not is_mine(self._turn) and self._turn.acquire(blocking=False)

    def _resume(self, *, in_child: bool, rested: bool) -> None:
        if rested:
            self._lending.acquire()
        super()._resume(in_child=in_child, rested=rested)

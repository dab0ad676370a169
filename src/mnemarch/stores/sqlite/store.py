"""The SQLite store: opening, migrating, writing in turn, reading beside, scrubbing and copying."""

from __future__ import annotations

import os
import time
from _thread import allocate_lock, get_ident  # as threading has them, which is a millisecond more to load
from _weakrefset import WeakSet  # weakref would be one more module
from collections import deque

from mnemarch.errors import Incompatible, StoreCorrupt, StoreError, StoreUnavailable
from mnemarch.model.json_text import json_needles
from mnemarch.model.stamps import new_id
from mnemarch.stores.sqlite.raw import RawFile, chunks_of, holds_any
from mnemarch.stores.sqlite.reader import SqliteReader, SqliteTransaction
from mnemarch.stores.sqlite.sql import APPLICATION_ID, FORMAT_VERSION, migration

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TypeVar

    T = TypeVar("T")
else:
    # The same without the adapters of dates, which would be loaded first and are not used.
    import _sqlite3 as sqlite3

_MAGIC = b"SQLite format 3\0"
# An empty file beside the database says that it was made: an empty database is then a loss, and not a beginning.
_MADE = "-made"
_BATCH_MAX = 64
_LOOKS = 5
_BACKOFF_S_MIN = 0.0002
_BACKOFF_S_MAX = 0.008
_READ_WAIT_S = 10.0


_open_stores: WeakSet[SqliteStore] = WeakSet()


def _before_fork() -> None:
    for store in sorted(_open_stores, key=id):
        store.before_fork()


def _after_fork() -> None:
    for store in sorted(_open_stores, key=id):
        store.after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


class _Job:
    """One piece of work waiting for its turn to write."""

    __slots__ = ("durable", "error", "finished", "result", "work")

    def __init__(self, work: Callable[[SqliteTransaction], Any], durable: bool) -> None:
        self.work = work
        self.durable = durable
        self.finished = False
        self.result: Any = None
        self.error: BaseException | None = None


class SqliteStore:
    """One file, many processes. Writers queue with BEGIN IMMEDIATE; threads of one process share a commit."""

    def __init__(self, path: str, *, durability: str = "process", lock_wait_s_max: float = 30.0) -> None:
        self._path = path
        self._lock_wait_s_max = lock_wait_s_max
        self._always_durable = durability == "power"
        self._turn = allocate_lock()
        self._leader: int | None = None
        self._jobs: deque[_Job] = deque()
        self._lending = allocate_lock()
        self._idle: list[sqlite3.Connection] = []
        self._reading: set[SqliteReader] = set()
        self._let_go = True
        self._closed = False
        self._raw: RawFile | None = None
        with _translated(path):
            try:
                self._refuse_truncated()
                self._take_writer()
                self.id = self._prepare()
                self._raw_file()  # Held from now on: a later store of this process must not be the only one to hold it.
            except BaseException:
                self._let_everything_go()
                raise
        self.format_version = FORMAT_VERSION
        _open_stores.add(self)

    @property
    def writable(self) -> bool:
        return os.access(self._path, os.W_OK) and os.access(os.path.dirname(self._path) or ".", os.W_OK)

    # Opening

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=_READ_WAIT_S, isolation_level=None, check_same_thread=False, cached_statements=256
        )
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

    def _take_writer(self) -> None:
        """The one connection that writes waits by itself (see _execute_patiently), so SQLite's own waiting is off."""
        self._writer = self._connect()
        self._let_go = False
        self._writer.execute("PRAGMA busy_timeout = 0")
        self._transaction = SqliteTransaction(self._writer)

    def _refuse_truncated(self) -> None:
        """A file shorter than its own header says lost its end; with a write-ahead log the end may still be there."""
        lost = ""
        for _ in range(_LOOKS):
            lost = self._what_was_lost()
            if not lost:
                return
            time.sleep(_BACKOFF_S_MAX)  # Another process may be folding its log in this very moment.
        raise StoreCorrupt(
            f"{self._path} {lost}; it was left untouched.",
            hint="Move it away together with its -wal file, then restore a backup (mnemarch backup makes them) or "
            "import an export into a new memory.",
        )

    def _what_was_lost(self) -> str:
        """What is missing of a memory that was here, in words; nothing if it is whole, or was never made."""
        log = _size(self._path + "-wal")
        if not _size(self._path):
            if log:  # SQLite would take it for the log of another file, and delete it.
                return f"has no content, and {log} bytes of its write-ahead log are left"
            # Taken away as a whole, a new one may take its place.
            emptied = os.path.exists(self._path) and os.path.exists(self._path + _MADE)
            return "is empty, but was not when it was last open" if emptied else ""
        missing = 0 if log else self._missing_bytes()
        return f"is truncated or no database: {missing} bytes are missing" if missing else ""

    def _missing_bytes(self) -> int:
        raw = self._raw_file()
        size, header = raw.size(), raw.head(100)
        if size < len(_MAGIC):
            return len(_MAGIC) - size
        page = int.from_bytes(header[16:18], "big")
        wanted = (65_536 if page == 1 else page) * int.from_bytes(header[28:32], "big")
        return max(0, wanted - size) if header.startswith(_MAGIC) else 0

    def _raw_file(self) -> RawFile:
        if self._raw is None:
            self._raw = RawFile(self._path)
        return self._raw

    def _prepare(self) -> str:
        """Bring the file to this format, in one transaction a migration, whoever comes first; give the store's id."""
        found = self._format_found()
        if self._asked("PRAGMA journal_mode") != ("wal",):  # New, or a restored backup.
            self._execute_patiently("PRAGMA journal_mode = WAL")
        if found < FORMAT_VERSION:
            self._execute_patiently("BEGIN IMMEDIATE")
            try:
                for version in range(self._format_found() + 1, FORMAT_VERSION + 1):
                    self._migrate(version)
                self._writer.execute("COMMIT")
            except BaseException:
                self._writer.execute("ROLLBACK")
                raise
        self._mark_made()
        (id,) = self._asked("SELECT id FROM store")
        return str(id)

    def _mark_made(self) -> None:
        """At every opening: who made the file may have been killed before this, and a restored backup has no mark."""
        if os.path.exists(self._path + _MADE) or not self.writable:
            return
        with open(self._path + _MADE, "ab"):
            pass

    def _asked(self, query: str) -> Any:
        return self._execute_patiently(query).fetchone()

    def _format_found(self) -> int:
        """The file's format; 0 for a new one. Read as one view: another process may be making it this very moment."""
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
        return int(version)

    def _migrate(self, version: int) -> None:
        for statement in _statements(migration(version)):
            self._writer.execute(statement)
        if version == 1:
            row = (new_id(), time.time_ns() // 1000)
            self._writer.execute("INSERT INTO store (id, created_at) VALUES (?, ?)", row)
            self._writer.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self._writer.execute(f"PRAGMA user_version = {version}")

    # Writing

    def write(self, work: Callable[[SqliteTransaction], T], *, durable: bool = False) -> T:
        if self._leader == get_ident():
            raise RuntimeError("a write inside a write would wait for itself; pass the open transaction on instead")
        if not self._jobs and self._turn.acquire(blocking=False):
            try:
                return self._write_alone(work, durable)
            finally:
                self._turn.release()
        job = _Job(work, durable)
        self._jobs.append(job)
        with self._turn:
            while not job.finished:
                self._lead()
        if job.error is not None:
            raise job.error
        return job.result  # type: ignore[no-any-return]

    def _write_alone(self, work: Callable[[SqliteTransaction], T], durable: bool) -> T:
        """Nobody else waits: one piece of work, one transaction."""
        self._leader = get_ident()
        try:
            return self._in_transaction(work, durable)
        except sqlite3.Error as error:
            raise _translation(self._path, error) from error
        finally:
            self._leader = None

    def _lead(self) -> None:
        """Run what is queued in one transaction: whoever holds the turn commits for all who wait for it."""
        jobs = self._jobs
        batch = [jobs.popleft() for _ in range(min(len(jobs), _BATCH_MAX))]
        self._leader = get_ident()
        try:
            durable = any(job.durable for job in batch)
            self._in_transaction(lambda transaction: self._run_each(batch, transaction), durable)
        except (sqlite3.Error, OSError) as error:
            _fail(batch, _translation(self._path, error))
        except StoreError as error:
            _fail(batch, error)
        except BaseException:
            _fail(batch, StoreUnavailable("The write was interrupted.", hint="Call again; nothing was written."))
            raise
        finally:
            self._leader = None
            for job in batch:
                job.finished = True

    def _in_transaction(self, work: Callable[[SqliteTransaction], T], durable: bool) -> T:
        self._ensure_open()
        connection, transaction = self._writer, self._transaction
        synced = durable and not self._always_durable
        if synced:
            connection.execute("PRAGMA synchronous = FULL")
        try:
            self._execute_patiently("BEGIN IMMEDIATE")
            transaction.begin()
            result = work(transaction)
            connection.execute("COMMIT")
        except BaseException:
            transaction.forget_heads()
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        finally:
            if synced:
                connection.execute("PRAGMA synchronous = NORMAL")
        return result

    def _run_each(self, batch: list[_Job], transaction: SqliteTransaction) -> None:
        for job in batch:
            self._run_apart(job, transaction)

    def _run_apart(self, job: _Job, transaction: SqliteTransaction) -> None:
        """One job of several: if it fails, it alone is undone."""
        self._writer.execute("SAVEPOINT job")
        try:
            job.result = job.work(transaction)
        except sqlite3.OperationalError:
            raise  # The file is in trouble, not the job.
        except sqlite3.Error as error:
            job.error = _translation(self._path, error)
        except Exception as error:  # noqa: BLE001 - handed to the thread whose work it was
            job.error = error
        if job.error is not None:
            self._writer.execute("ROLLBACK TO job")
            transaction.forget_heads()
        self._writer.execute("RELEASE job")

    def _execute_patiently(self, statement: str) -> sqlite3.Cursor:
        """Wait for the write lock in short random naps: SQLite's own handler starves some writers for seconds."""
        deadline = 0.0
        nap_s = _BACKOFF_S_MIN
        while True:
            try:
                return self._writer.execute(statement)
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
            nap_s = min(nap_s * 1.5, _BACKOFF_S_MAX)

    # Reading

    def read(self, work: Callable[[SqliteReader], T]) -> T:
        with _translated(self._path):
            connection, reader = self._lent()
            try:
                connection.execute("BEGIN")
                return work(reader)
            finally:
                self._take_back(connection, reader)

    def _lent(self) -> tuple[sqlite3.Connection, SqliteReader]:
        """A connection of one's own for a while; a fork, and the end of the store, wait until it is given back."""
        with self._lending:
            if self._closed:
                self._ensure_open()
            connection = self._idle.pop() if self._idle else self._connect()
            reader = SqliteReader(connection)
            self._reading.add(reader)
        return connection, reader

    def _take_back(self, connection: sqlite3.Connection, reader: SqliteReader) -> None:
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        finally:
            # Without the lock: a fork holds it while it waits for this.
            self._idle.append(connection)
            self._reading.discard(reader)
            if self._closed:
                with self._lending:
                    self._let_everything_go()

    def _ensure_open(self) -> None:
        if self._closed:
            raise StoreUnavailable(f"{self._path} was closed.", hint="Open the memory again.")
        if self._let_go:
            self._take_writer()

    def before_fork(self) -> None:
        """Close every connection: one carried into a child breaks the locks of both. Each opens its own anew.

        Writes and reads under way are waited for, and new ones wait. A read that takes too long is not: its connection
        is carried along.
        """
        self._turn.acquire()
        self._lending.acquire()
        deadline = time.monotonic() + _READ_WAIT_S
        while self._reading and time.monotonic() < deadline:
            time.sleep(_BACKOFF_S_MIN)
        self._close_connections()

    def after_fork(self) -> None:
        self._lending.release()
        self._turn.release()

    # Keeping

    def scrub(self, needles: Sequence[str]) -> int:
        forms = (form for needle in needles for form in (needle, *json_needles(needle)))
        wanted = [form.encode() for form in dict.fromkeys(forms) if form]
        with self._turn, _translated(self._path):
            self._ensure_open()
            self._truncate_log()
            # Moved cells can leave copies in the slack of a page, which only a rewrite of the file removes. Without
            # needles nothing can be searched for, so it is rewritten in any case.
            if not wanted or self._files_holding(wanted):
                self._execute_patiently("VACUUM")
                self._truncate_log()
            left = self._files_holding(wanted)
        if left:
            raise _still_held(", ".join(left))
        return len(self._files())

    def _files_holding(self, wanted: Sequence[bytes]) -> list[str]:
        """The files that hold any of these bytes. The shared-memory file has no content, and reading it costs locks."""
        log = self._path + "-wal"
        streams = {self._path: self._raw_file().chunks(), log: chunks_of(log)}
        return [path for path, chunks in streams.items() if holds_any(chunks, wanted)]

    def _truncate_log(self) -> None:
        """Fold the log into the file and empty it; refused while anybody still reads what was there before.

        Not what the log holds decides it: whoever erases again has no text left to look for.
        """
        deadline = time.monotonic() + self._lock_wait_s_max
        while True:
            busy, _, _ = self._asked("PRAGMA wal_checkpoint(TRUNCATE)")
            if not busy:
                return
            if time.monotonic() > deadline:
                raise _still_held(self._path + "-wal")
            time.sleep(_BACKOFF_S_MAX)

    def _files(self) -> list[str]:
        return [path for suffix in ("", "-wal", "-shm") if os.path.exists(path := self._path + suffix)]

    def backup(self, path: str) -> None:
        partial = path + ".partial"
        with _translated(self._path):
            source, reader = self._lent()
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

    def bytes_on_disk(self) -> int:
        return sum(_size(path) for path in self._files())

    def check(self) -> str | None:
        with self._turn, _translated(self._path):
            self._ensure_open()
            (verdict,) = self._asked("PRAGMA quick_check(1)")
        return None if verdict == "ok" else str(verdict)

    def close(self) -> None:
        """Take no more work, and let everything go: now, or when the last read under way is done."""
        with self._turn, self._lending:
            self._closed = True
            self._let_everything_go()

    def _let_everything_go(self) -> None:
        if self._reading:
            return
        self._close_connections()
        if self._raw is not None:  # Last of all: see there.
            self._raw.close()
            self._raw = None
        _open_stores.discard(self)

    def _close_connections(self) -> None:
        while self._idle:
            self._idle.pop().close()
        if not self._let_go:
            self._writer.close()
            self._let_go = True


def _still_held(files: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"The content was erased, but {files} may still hold bytes of it: another process or thread is reading.",
        hint="Let the others finish, then erase the unit again.",
    )


def _fail(batch: list[_Job], error: StoreError) -> None:
    """Each job gets an error of its own: one that is raised in several threads gathers the tracebacks of all."""
    for job in batch:
        job.error = job.error or type(error)(error.message, hint=error.hint)


def _statements(script: str) -> Iterator[str]:
    """The statements of a script one by one: executescript would commit the transaction they belong to."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return 0


class _translated:  # noqa: N801 - reads as what it does
    """SQLite's errors as ours, each with what to do. A class, since contextlib costs a cold process half a ms."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, *_: object) -> None:
        if isinstance(error, sqlite3.Error | OSError):
            raise _translation(self._path, error) from error


def _translation(path: str, error: sqlite3.Error | OSError) -> StoreError:
    if isinstance(error, OSError):
        return StoreUnavailable(f"{path}: {error.strerror or error}.", hint="Check the folder and its rights.")
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB} or "malformed" in str(error):
        return StoreCorrupt(
            f"{path} is damaged or not a database: {error}.",
            hint="Run mnemarch doctor; restore a backup, or import an export into a new memory.",
        )
    hints = {
        sqlite3.SQLITE_FULL: "Free some disk space and call again; nothing was half-written.",
        sqlite3.SQLITE_READONLY: "Make the file and its folder writable, or read only.",
        sqlite3.SQLITE_CANTOPEN: "Check that the folder exists and may be written.",
        sqlite3.SQLITE_BUSY: "Another process holds the file; call again.",
    }
    return StoreUnavailable(f"{path} can't be used now: {error}.", hint=hints.get(code, "Nothing was half-written."))

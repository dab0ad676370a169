"""Transactions over one kind of SQL connection: writers queue and share commits, each reader borrows a connection."""

from __future__ import annotations

import os
import time
from _thread import allocate_lock, get_ident  # threading takes a millisecond more to import
from _weakrefset import WeakSet  # so does weakref
from collections import deque

from mnemarch.errors import StoreError, StoreUnavailable
from mnemarch.stores.sql.reader import Reader
from mnemarch.stores.sql.transaction import Transaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from mnemarch.stores.sql.queries import Queries

    T = TypeVar("T")

_BATCH_MAX = 64
_NAP_S = 0.0002
READ_WAIT_S = 10.0

_open_stores: WeakSet[SqlStore] = WeakSet()


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

    def __init__(self, work: Callable[[Transaction], Any], durable: bool) -> None:
        self.work = work
        self.durable = durable
        self.finished = False
        self.result: Any = None
        self.error: BaseException | None = None


class SqlStore:
    """What all SQL stores share. A dialect says how to connect, how to begin a write, and what its errors mean.

    One connection writes. Threads that wait for it share a commit: whoever holds the turn runs the work of all.
    """

    queries: Queries
    name: str  # how messages call the store: the path of the file, say
    driver: Any  # the module with `Error`, `OperationalError` and `IntegrityError`

    def __init__(self) -> None:
        self._turn = allocate_lock()
        self._leader: int | None = None
        self._jobs: deque[_Job] = deque()
        self._lending = allocate_lock()
        self._idle: list[Any] = []
        self._reading: set[Reader] = set()
        self._writer: Any = None
        self._closed = False

    def _mark_open(self) -> None:
        """From now on a fork takes care of this store."""
        _open_stores.add(self)

    # What a dialect says

    def _connect(self) -> Any:
        """A new connection in autocommit mode."""
        raise NotImplementedError

    def _begin(self, durable: bool) -> None:
        """Begin a write transaction on the writer; every writer of every process queues here."""
        raise NotImplementedError

    def _ended(self, durable: bool) -> None:
        """The transaction is over, one way or the other."""

    def _translation(self, error: Exception) -> Exception:
        """A driver's error as one of ours, with what to do."""
        raise NotImplementedError

    # Writing

    def write(self, work: Callable[[Transaction], T], *, durable: bool = False) -> T:
        """Run `work` alone among all writers and commit; see `ports.Store`."""
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

    def _write_alone(self, work: Callable[[Transaction], T], durable: bool) -> T:
        self._leader = get_ident()
        try:
            return self._in_transaction(work, durable)
        except self.driver.Error as error:
            raise self._translation(error) from error
        finally:
            self._leader = None

    def _lead(self) -> None:
        """Run what is queued in one transaction."""
        jobs = self._jobs
        batch = [jobs.popleft() for _ in range(min(len(jobs), _BATCH_MAX))]
        self._leader = get_ident()
        try:
            durable = any(job.durable for job in batch)
            self._in_transaction(lambda transaction: self._run_each(batch, transaction), durable)
        except (self.driver.Error, OSError) as error:
            _fail(batch, self._translation(error))
        except StoreError as error:
            _fail(batch, error)
        except BaseException:
            _fail(batch, StoreUnavailable("The write was interrupted.", hint="Call again; nothing was written."))
            raise
        finally:
            self._leader = None
            for job in batch:
                job.finished = True

    def _in_transaction(self, work: Callable[[Transaction], T], durable: bool) -> T:
        self._require_open()
        writer = self._writer
        try:
            self._begin(durable)
            result = work(Transaction(writer.execute, self.queries, self.driver.IntegrityError))
            writer.execute("COMMIT")
        except BaseException:
            if writer.in_transaction:
                writer.execute("ROLLBACK")
            raise
        finally:
            self._ended(durable)
        return result

    def _run_each(self, batch: list[_Job], transaction: Transaction) -> None:
        for job in batch:
            self._run_apart(job, transaction)

    def _run_apart(self, job: _Job, transaction: Transaction) -> None:
        """Run one job of several; if it fails, only its own changes are undone."""
        self._writer.execute("SAVEPOINT job")
        try:
            job.result = job.work(transaction)
        except self.driver.OperationalError:
            raise  # The store is in trouble, not the job.
        except self.driver.Error as error:
            job.error = self._translation(error)
        except Exception as error:  # noqa: BLE001 - handed to the thread whose work it was
            job.error = error
        if job.error is not None:
            self._writer.execute("ROLLBACK TO job")
            transaction.forget()
        self._writer.execute("RELEASE job")

    # Reading

    def read(self, work: Callable[[Reader], T]) -> T:
        """Run `work` on one consistent view."""
        try:
            connection, reader = self._lend()
            try:
                connection.execute("BEGIN")
                return work(reader)
            finally:
                self._take_back(connection, reader)
        except (self.driver.Error, OSError) as error:
            raise self._translation(error) from error

    def query(self, name: str, /, **parameters: Any) -> list[Any]:
        """The rows of one named query, on a view of its own."""
        return self.read(lambda reader: list(reader.query(name, **parameters)))

    def _lend(self) -> tuple[Any, Reader]:
        """A connection of one's own for a while; a fork and `close` wait until it is given back."""
        with self._lending:
            if self._closed:
                self._require_open()
            connection = self._idle.pop() if self._idle else self._connect()
            reader = Reader(connection.execute, self.queries)
            self._reading.add(reader)
        return connection, reader

    def _take_back(self, connection: Any, reader: Reader) -> None:
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        finally:
            # Without the lock: a fork holds it while it waits for this.
            self._idle.append(connection)
            self._reading.discard(reader)
            if self._closed:
                with self._lending:
                    self._let_go()

    # Opening and closing

    def _require_open(self) -> None:
        if self._closed:
            raise StoreUnavailable(f"{self.name} was closed.", hint="Open the memory again.")
        if self._writer is None:
            self._writer = self._connect_writer()

    def _connect_writer(self) -> Any:
        return self._connect()

    def before_fork(self) -> None:
        """Close every connection: one carried into a child breaks the locks of both. Each side connects again.

        Writes and reads under way are waited for, and new ones wait. A read that takes too long is not: its connection
        is carried along.
        """
        self._turn.acquire()
        self._lending.acquire()
        deadline = time.monotonic() + READ_WAIT_S
        while self._reading and time.monotonic() < deadline:
            time.sleep(_NAP_S)
        self._close_connections()

    def after_fork(self) -> None:
        self._lending.release()
        self._turn.release()

    def close(self) -> None:
        """Take no more work, and close all connections: now, or when the last read under way is done."""
        with self._turn, self._lending:
            self._closed = True
            self._let_go()

    def _let_go(self) -> None:
        if self._reading:
            return
        self._close_connections()
        _open_stores.discard(self)

    def _close_connections(self) -> None:
        while self._idle:
            self._idle.pop().close()
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _fail(batch: list[_Job], error: Exception) -> None:
    """Give each job an error of its own: one that is raised in several threads gathers the tracebacks of all."""
    for job in batch:
        if job.error is None:
            job.error = type(error)(error.message, hint=error.hint) if isinstance(error, StoreError) else error

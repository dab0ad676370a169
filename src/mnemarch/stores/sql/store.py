"""Transactions over one kind of SQL connection: writers queue and share commits, each reader borrows a connection."""

from __future__ import annotations

import time
from _thread import RLock, allocate_lock, get_ident  # threading takes a millisecond more to import
from _weakref import ref  # so does weakref

from mnemarch.errors import StoreError, StoreUnavailable
from mnemarch.forks import Forkable, abandon, is_mine, let_a_fork_pass
from mnemarch.stores.sql.reader import Reader
from mnemarch.stores.sql.transaction import Transaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from mnemarch.stores.sql.queries import Queries

    T = TypeVar("T")

_BATCH_MAX = 64
READ_WAIT_S = 10.0


class _Job:
    """A piece of work that waits to be written. The jobs of one transaction share `ended`: empty until it is over."""

    __slots__ = ("durable", "ended", "error", "result", "work")

    def __init__(self, work: Callable[[Transaction], Any], durable: bool) -> None:
        self.work = work
        self.durable = durable
        self.ended: list[bool] = []
        self.result: Any = None
        self.error: BaseException | None = None


class Loan:
    """A borrowed connection and its thread. If an interrupt loses the loan, the connection is closed."""

    __slots__ = ("__weakref__", "connection", "thread")

    def __init__(self) -> None:
        self.connection: Any = None
        self.thread = get_ident()


class SqlStore(Forkable):
    """What all SQL stores share. A dialect says how to connect, how to begin a write, and what its errors mean.

    One connection writes. Waiting threads share a commit: the thread that holds the turn runs the work of all.
    An interrupt may come after any call, so each resource is registered before it is taken.
    """

    queries: Queries
    name: str  # for messages, such as the path of the file
    epoch = 0
    keeps_erased = ""
    is_shared, sees_all = False, True
    append_entry = None
    driver: Any  # the module with `Error`, `OperationalError` and `IntegrityError`

    def __init__(self) -> None:
        self._turn = RLock()
        self._jobs: list[_Job] = []
        self._lending = allocate_lock()
        self._idle: list[Any] = []
        self._loans: dict[int, ref[Loan]] = {}
        self._writer: Any = None
        self._has_begun = False
        self._is_torn = False
        self._closed = False

    # What a dialect says

    def _connect(self) -> Any:
        """A new connection in autocommit mode."""
        raise NotImplementedError

    def _begin(self, durable: bool, wait_s_max: float | None) -> None:
        """Begin a write transaction on the writer; every writer of every process queues here."""
        raise NotImplementedError

    def _check_place(self) -> None:
        """Refuse to go on if the store is no longer where it was opened; called before each read and write."""

    def _transaction(self) -> Transaction:
        """The transaction of a write that has begun."""
        return Transaction(self._writer.execute, self.queries, self.driver.IntegrityError)

    def _commit(self, durable: bool) -> None:  # noqa: ARG002
        self._writer.execute("COMMIT")

    def _committed(self) -> None:
        """Called after each commit. Its error replaces the result."""

    def _ended(self, durable: bool) -> None:
        """Called after a commit or a rollback."""

    def _translation(self, error: Exception) -> Exception:
        """A driver's error as an error of ours, with a hint."""
        raise NotImplementedError

    # Writing

    def write(self, work: Callable[[Transaction], T], *, durable: bool = False, wait_s_max: float | None = None) -> T:
        """Run `work` alone among all writers and commit; see `ports.Store`."""
        if is_mine(self._turn):
            raise RuntimeError("a write inside a write would wait for itself; pass the open transaction on instead")
        let_a_fork_pass()
        try:
            if wait_s_max is not None:
                return self._write_soon(work, durable, wait_s_max)
            if not self._jobs and self._turn.acquire(blocking=False):
                return self._write_alone(work, durable)
            return self._write_together(work, durable)
        finally:
            try:  # noqa: SIM105 - an interrupt is raised after a call, so no other call may come before this one
                self._turn.release()
            except RuntimeError:  # This thread does not hold it.
                pass

    def _write_soon(self, work: Callable[[Transaction], T], durable: bool, wait_s_max: float) -> T:
        give_up_at = time.monotonic() + wait_s_max
        if not self._turn.acquire(timeout=wait_s_max):
            raise StoreUnavailable(f"{self.name} is being written by another thread.", hint="Call again.")
        return self._write_alone(work, durable, max(0.0, give_up_at - time.monotonic()))

    def _write_alone(self, work: Callable[[Transaction], T], durable: bool, wait_s_max: float | None = None) -> T:
        try:
            return self._in_transaction(work, durable, wait_s_max)
        except self.driver.Error as error:
            raise self._translation(error) from error

    def _write_together(self, work: Callable[[Transaction], T], durable: bool) -> T:
        job = _Job(work, durable)
        try:
            self._jobs.append(job)
            self._turn.acquire()
            while not job.ended:
                self._lead()
        finally:
            if job in self._jobs:  # Otherwise the interrupt came before the append.
                self._jobs.remove(job)
        if job.error is not None:
            raise job.error
        return job.result  # type: ignore[no-any-return]

    def _lead(self) -> None:
        """Run what is queued in one transaction."""
        jobs = [job for job in self._jobs.copy() if not job.ended][:_BATCH_MAX]
        ended: list[bool] = []
        try:
            for job in jobs:
                job.ended = ended
            durable = any(job.durable for job in jobs)
            self._in_transaction(lambda transaction: self._run_apart(jobs, transaction), durable)
        except (self.driver.Error, OSError) as error:
            _fail(jobs, self._translation(error))
        except StoreError as error:
            _fail(jobs, error)
        except BaseException:
            if not self._has_begun or self._writer is None or self._writer.in_transaction:  # It was not committed.
                _fail(jobs, StoreUnavailable("The write was interrupted.", hint="Call again; nothing was written."))
            raise
        finally:
            ended.append(True)  # One call ends them all, so no interrupt can split them.

    def _in_transaction(self, work: Callable[[Transaction], T], durable: bool, wait_s_max: float | None = None) -> T:
        self._has_begun = False
        self._require_open()
        writer = self._writer
        if writer.in_transaction:  # A second interrupt came while the first was being dealt with.
            writer.execute("ROLLBACK")
        try:
            self._check_place()
            self._begin(durable, wait_s_max)
            self._has_begun = True
            result = work(self._transaction())
            self._commit(durable)
            self._committed()
        except BaseException:
            if writer.in_transaction:
                writer.execute("ROLLBACK")
                self._has_begun = False
            raise
        finally:
            self._ended(durable)
        return result

    def _run_apart(self, jobs: list[_Job], transaction: Transaction) -> None:
        """Run jobs. If one fails, only its own changes are rolled back."""
        for job in jobs:
            self._writer.execute("SAVEPOINT job")
            try:
                job.result = job.work(transaction)
            except self.driver.OperationalError:
                raise  # The store failed, not the job.
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
        loan = Loan()
        try:
            try:
                connection = self._lend(loan)
                connection.execute("BEGIN")
                return work(Reader(connection.execute, self.queries))
            finally:
                self._take_back(loan)
        except (self.driver.Error, OSError) as error:
            raise self._translation(error) from error

    def query(self, name: str, /, **parameters: Any) -> list[Any]:
        """The rows of one named query, on a view of its own."""
        return self.read(lambda reader: list(reader.query(name, **parameters)))

    def _lend(self, loan: Loan) -> Any:
        """Lend a connection. A fork and `close` wait until it is returned."""
        if all(other.thread != loan.thread for other in self._lent()):  # A nested read must not wait for a fork.
            let_a_fork_pass()
        with self._lending:
            self._require_usable()
            self._loans[id(loan)] = ref(loan)
            loan.connection = self._idle.pop() if self._idle else self._connect()
        self._check_place()
        return loan.connection

    def _lent(self) -> list[Loan]:
        """What is on loan now."""
        return [loan for each in list(self._loans.values()) if (loan := each()) is not None]

    def _take_back(self, loan: Loan) -> None:
        connection = loan.connection
        try:
            if connection is not None and connection.in_transaction:
                connection.execute("ROLLBACK")
        finally:
            # Without the lock, because a fork holds it while it waits for loans.
            if connection is not None and not connection.in_transaction:  # After two interrupts it is closed instead.
                self._idle.append(connection)
            self._loans.pop(id(loan), None)
            if self._closed:
                with self._lending:
                    self._let_go()

    # Opening and closing

    def _require_usable(self) -> None:
        if self._closed:
            raise StoreUnavailable(f"{self.name} was closed.", hint="Open the memory again.")
        if self._is_torn:
            raise StoreUnavailable(
                f"{self.name} was in use by another thread when this process was forked.",
                hint="Open the memory only in the child process, or fork while no thread uses it.",
            )

    def _require_open(self) -> None:
        self._require_usable()
        if self._writer is None:
            self._writer = self._connect_writer()

    def _connect_writer(self) -> Any:
        return self._connect()

    def _rest(self) -> bool:
        """Close all connections before a fork: sharing one breaks the locks of both sides. Both connect again."""
        if is_mine(self._turn) or not self._turn.acquire(blocking=False):
            return False
        if not self._lending.acquire(blocking=False):
            self._turn.release()
            return False
        if self._lent():
            self._resume(in_child=False, rested=True)
            return False
        self._close_connections()
        return True

    def _resume(self, *, in_child: bool, rested: bool) -> None:
        if in_child:
            self._jobs.clear()  # The parent's threads do these jobs.
        if rested:
            self._lending.release()
            self._turn.release()
        elif in_child:
            self._tear()

    def _tear(self) -> None:
        """In a child: abandon what the parent's threads were using. Even closing those connections is unsafe."""
        self._is_torn = True
        self._turn, self._lending = RLock(), allocate_lock()
        abandon((self._writer, self._idle, self._lent()))
        self._writer, self._idle, self._loans = None, [], {}

    def close(self) -> None:
        """Refuse new work and close all connections, at the latest when the last read is done."""
        with self._turn, self._lending:
            self._closed = True
            self._let_go()

    def _let_go(self) -> None:
        if not self._lent():
            self._close_connections()

    def _close_connections(self) -> None:
        while self._idle:
            self._idle.pop().close()
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _fail(jobs: list[_Job], error: Exception) -> None:
    """Give each job its own error: a shared one would collect the tracebacks of all threads."""
    for job in jobs:
        if job.error is None:
            job.error = type(error)(error.message, hint=error.hint) if isinstance(error, StoreError) else error

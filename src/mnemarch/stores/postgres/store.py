"""The PostgreSQL dialect: whoever locks a stream's head writes it, and row-level security keeps tenants apart."""

from __future__ import annotations

import os
from _thread import _local

import psycopg

from mnemarch.errors import InvalidInput, StoreCorrupt, StoreError, StoreUnavailable
from mnemarch.stores.postgres.news import TELL, News
from mnemarch.stores.postgres.opening import FORMAT_VERSION, prepared
from mnemarch.stores.postgres.scrubbing import empty_log, rewrite_tables, with_derived
from mnemarch.stores.postgres.sessions import Sessions, translated
from mnemarch.stores.postgres.views import NeedsOrg, OfTenants, PostgresTransaction, tenants_of
from mnemarch.stores.sql.committer import Committer, Job
from mnemarch.stores.sql.queries import Queries, named_queries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from mnemarch.model.caller import Stream
    from mnemarch.stores.postgres.sessions import Session
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.stores.sql.transaction import Transaction

    T = TypeVar("T")

_HERE = os.path.dirname(__file__)
_TEXTS = named_queries(os.path.join(_HERE, "..", "sql", "queries.sql"), os.path.join(_HERE, "queries.sql"))
_QUERIES = Queries({name: translated(text) for name, text in _TEXTS.items()})
_TABLES = [
    "streams",
    "events",
    "units",
    "citations",
    "links",
    "link_units",
    "relations",
    "tests",
    "uses",
    "memory_code_rules",
    "search_sets",
    "search_words",
    "search_texts",
]
_ATTEMPTS_MAX = 5
# After another process was seen to write to a stream, so many writes look at its end first.
_DOUBTS = 16
_STATEMENT_S_MAX = 60.0


class PostgresStore:
    """The store of one stream, which sees that project and its org; without a stream, the operator's, which sees all.

    A process has one committer for each stream.
    """

    format_version = FORMAT_VERSION
    writable = True
    keeps_erased = "The server's replicas, archived logs and backups may still hold it: they are not within reach"

    def __init__(self, url: str, *, lock_wait_s_max: float = 30.0, partitions: int = 0, replica: str = "") -> None:
        self._sessions = Sessions(url)
        self._replica = Sessions(replica) if replica else None
        self._news = News(self._sessions.plain)
        self._lock_wait_s_max = lock_wait_s_max
        self._streams: dict[Stream, PostgresStore] = {}
        self._bind(None)
        try:
            with self._sessions.plain() as connection:
                self.id = prepared(connection, self.name, partitions)
        except psycopg.Error as error:
            raise self._translation(error) from error

    def _bind(self, stream: Stream | None) -> None:
        self.name = self._sessions.name
        self.stream = stream
        self._tenants = tenants_of(stream) if stream is not None else ()
        self._role = "mnemarch_operator" if stream is None else "mnemarch_app"
        self._committer = Committer(self.name, self._do)
        # Where this process last left the stream. If others write to it too, it is soon no longer true.
        self._end: tuple[int, bytes, int] | None = None
        self._in_doubt = 0
        self._losses = self._sessions.losses
        # By thread, what it read last.
        self._read_last = _local()

    def of(self, stream: Stream) -> PostgresStore:
        """The same store for those who act in one stream."""
        bound = self._streams.get(stream)
        if bound is None:
            bound = PostgresStore.__new__(PostgresStore)
            bound.__dict__.update(self.__dict__)
            bound._bind(stream)
            bound = self._streams.setdefault(stream, bound)
        return bound

    @property
    def tenant(self) -> str:
        """The name of the tenant whose store this is."""
        return self._tenants[-1]

    # Reading

    def read(self, work: Callable[[Reader], T]) -> T:
        """Run `work` on one consistent view. It is run again if the connection turns out to be lost."""
        try:
            try:
                return self._read(work)
            except psycopg.OperationalError as error:
                if not isinstance(error, psycopg.errors.AdminShutdown) and error.sqlstate is not None:
                    raise
                return self._read(work, is_new=True)
        except (psycopg.Error, OSError) as error:
            raise self._translation(error) from error

    def read_elsewhere(self, work: Callable[[Reader], T]) -> T:
        """Run `work` on one view that may be behind: that of the replica, if there is one and it answers."""
        if self._replica is not None:
            try:
                return self._read(work, sessions=self._replica)
            except (psycopg.Error, OSError):
                pass
        return self.read(work)

    def _read(self, work: Callable[[Reader], T], *, is_new: bool = False, sessions: Sessions | None = None) -> T:
        lender = sessions or self._sessions
        session = lender.lend(is_new=is_new)
        try:
            session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            self._set_up(session, self._lock_wait_s_max)
            reader = OfTenants(session.execute, _QUERIES, self._tenants)
            result = work(reader)
            session.end()
            self._read_last.carried = None if sessions else reader.carried()
        except BaseException as error:
            if sessions is None:
                self._give_up(session, error)
            else:
                session.close()
            raise
        lender.take_back(session)
        return result

    def _set_up(self, session: Session, wait_s_max: float) -> None:
        """The role, the tenants and the time-outs, all for this transaction only."""
        statement_s = _STATEMENT_S_MAX if self._tenants else 0.0
        settings = {"role": self._role, "tenants": ",".join(self._tenants)}
        settings |= {"org": (*self._tenants, "")[0], "project": ("", *self._tenants)[-1]}
        times = {"statement_ms": f"{statement_s * 1000:.0f}", "lock_ms": f"{max(1.0, wait_s_max * 1000):.0f}"}
        session.execute(_QUERIES.texts["begin"], settings | times)

    def _give_up(self, session: Session, error: BaseException) -> None:
        """End what went wrong; a connection that is in doubt is closed."""
        try:
            if isinstance(error, Exception | NeedsOrg) and not session.is_lost:
                session.recover()
                self._sessions.take_back(session)
                return
        except psycopg.Error:
            pass
        session.close()

    def news(self) -> int:
        """A number that changes when somebody wrote to the stream or its org: for who follows the log."""
        return self._news.count(self._tenants)

    @property
    def epoch(self) -> int:
        """How often the server was lost: it may have come back without what it had not acknowledged."""
        return self._sessions.losses

    def query(self, name: str, /, **parameters: Any) -> list[Any]:
        """The rows of one named query, on a view of its own."""
        return self.read(lambda reader: list(reader.query(name, **parameters)))

    # Writing

    def write(self, work: Callable[[Transaction], T], *, durable: bool = False, wait_s_max: float | None = None) -> T:  # noqa: ARG002
        """Run `work` alone among all writers of its stream and commit; see `ports.Store`. Every commit is durable."""
        if self._committer.is_writing:
            raise RuntimeError("a write inside a write would wait for itself; pass the open transaction on instead")
        return self._committer.done(Job(work), wait_s_max)  # type: ignore[no-any-return]

    def _do(self, jobs: list[Job], wait_s_max: float | None) -> None:
        self._attempt(jobs, wait_s_max, wide=False)
        for job in jobs:
            if job.needs_org:
                self._attempt([job], wait_s_max, wide=True)

    def _attempt(self, jobs: list[Job], wait_s_max: float | None, *, wide: bool) -> None:
        """Do some jobs in one transaction. What a lost connection or a deadlock undid is done again."""
        wait_s = self._lock_wait_s_max if wait_s_max is None else wait_s_max
        is_new, last_event = False, ""
        for attempt in range(_ATTEMPTS_MAX):
            session: Session | None = None
            try:
                session = self._sessions.lend(is_new=is_new)
                try:
                    transaction = self._begin(session, wait_s, wide)
                    self._end = None
                    # If it is there, the connection was lost after the commit.
                    if not last_event or transaction.event(last_event) is None:
                        last_event = ""
                        self._run(jobs, transaction)
                        last_event = transaction.last_event
                    session.commit(flush_apart=bool(self._in_doubt))
                except BaseException as error:
                    self._give_up(session, error)
                    raise
                for tenant in self._tenants[0 if wide else -1 :]:
                    if self._news.is_due(tenant):
                        session.tell(TELL, {"tenant": tenant})
                self._sessions.take_back(session)
                self._end = None if self.stream is None else transaction.end_of(self.stream)
                self._in_doubt = max(0, self._in_doubt - 1)
                return
            except psycopg.errors.DivisionByZero:  # See `lock_known_head`.
                self._end, self._in_doubt = None, _DOUBTS
            except _AllFailed:
                return
            except (psycopg.Error, OSError) as error:
                is_new = session is not None and session.is_lost
                if is_new and attempt + 1 < _ATTEMPTS_MAX:
                    continue
                if attempt + 1 < _ATTEMPTS_MAX and isinstance(error, psycopg.errors.DeadlockDetected):
                    last_event = ""
                elif len(jobs) > 1 and session is not None:
                    for job in jobs:  # One of them is at fault; which one, only shows alone.
                        self._attempt([job], wait_s_max, wide=wide)
                    return
                else:
                    self._fail(jobs, error)
                    return
            except StoreError as error:
                self._fail(jobs, error)
                return
        self._fail(jobs, StoreUnavailable(f"{self.name} was lost again and again.", hint="Call again."))

    def _fail(self, jobs: list[Job], error: Exception) -> None:
        for job in jobs:  # One for each: raised in several threads, it would gather the tracebacks of all.
            job.error = error if isinstance(error, StoreError) else self._translation(error)
            job.error.__cause__ = error

    def _begin(self, session: Session, wait_s: float, wide: bool) -> PostgresTransaction:
        """Begin, lock, and draw positions, in one round trip that the first read pays for.

        A project's head is locked before its org's, always: so no two writers wait for each other.
        """
        if self._losses != self._sessions.losses:
            self._losses, self._end = self._sessions.losses, None
        session.execute("BEGIN")
        self._set_up(session, wait_s)
        if self._in_doubt:
            session.execute("SET LOCAL synchronous_commit = off")  # `commit` waits for the disk after the lock is gone.
        transaction = PostgresTransaction(
            session,
            _QUERIES,
            psycopg.errors.UniqueViolation,
            self._tenants,
            has_org=wide,
            carried=None if wide else getattr(self._read_last, "carried", None),
        )
        self._read_last.carried = None
        if self.stream is None:
            transaction.query("lock_all")
        else:
            locked = []
            known = None if wide or self._in_doubt else self._end
            streams = [(self._tenants[-1], self.stream.project or "")]
            if wide:
                streams.append((self._tenants[0], ""))
            for tenant, project in streams:
                if known is None:
                    transaction.query("new_stream", tenant=tenant, org=self.stream.org, project=project)
                    locked.append(transaction.query("lock_head", tenant=tenant))
                else:
                    seq, hash, position = known
                    end = {"seq": seq, "hash": hash, "position": position}
                    transaction.query("lock_known_head", tenant=tenant, **end)
            transaction.begun(locked, known)
        return transaction

    def _run(self, jobs: list[Job], transaction: PostgresTransaction) -> None:
        """Run jobs in one transaction; of one that fails, only its own changes are undone."""
        is_alone = len(jobs) == 1
        for job in jobs:
            begun = None if is_alone else transaction.begin_job()
            job.error, job.needs_org = None, False
            try:
                job.result = job.work(transaction)
            except psycopg.Error:
                raise
            except NeedsOrg:
                job.needs_org = True
            except BaseException as error:
                if not is_alone and not isinstance(error, Exception):
                    raise  # An interrupt of the thread that leads.
                job.error = error
            failed = job.error is not None or job.needs_org
            if begun is None:
                if failed:
                    raise _AllFailed
            elif failed:
                transaction.undo_job(begun)
            else:
                transaction.end_job()
        transaction.finish()

    # Maintenance

    def scrub(self, *, rewrite: bool = True) -> int:
        """Rewrite the tables and let the server begin its log anew; gives the number of tables.

        What replicas, archives and backups keep is out of this store's reach.
        """
        try:
            with self._sessions.plain() as connection:
                tables = with_derived(connection, _TABLES)
                if rewrite:
                    rewrite_tables(connection, tables, self.name, self._lock_wait_s_max)
                empty_log(connection)
        except psycopg.errors.InsufficientPrivilege as error:
            raise StoreUnavailable(
                f"The content was erased, but files of {self.name} may still hold bytes of it: {_first_line(error)}.",
                hint="As its administrator, VACUUM FULL the tables, switch the WAL and CHECKPOINT.",
            ) from None
        except psycopg.Error as error:
            raise self._translation(error) from error
        return len(tables)

    def backup(self, path: str) -> None:
        raise InvalidInput(
            f"{self.name} is backed up by PostgreSQL, not into {path!r}.",
            hint="Use pg_dump, or continuous archiving; mnemarch export writes the log as JSON lines.",
        )

    def check(self) -> str | None:
        """What of the tables is not as it was made; or None."""
        try:
            with self._sessions.plain() as connection:
                tables = with_derived(connection, _TABLES)
                rows = connection.execute(
                    "SELECT relname FROM pg_class WHERE oid = ANY(SELECT to_regclass(n) FROM unnest(%s::text[]) n)"
                    " AND relrowsecurity AND relforcerowsecurity",
                    [tables],
                ).fetchall()
        except psycopg.Error as error:
            raise self._translation(error) from error
        missing = sorted(set(tables) - {name for (name,) in rows})
        return f"the table {missing[0]} is missing, or its row-level security is off" if missing else None

    def close(self) -> None:
        """Take no more work; a connection that is in use is closed when it comes back."""
        if self.stream is None:
            self._news.closed = True
            for sessions in filter(None, (self._sessions, self._replica)):
                sessions.close()

    def _translation(self, error: Exception) -> StoreError:
        text = _first_line(error)
        if isinstance(error, psycopg.errors.LockNotAvailable):
            return StoreUnavailable(
                f"{self.name} was locked by other writers for too long.",
                hint="Call again, or raise store.lock_wait_s_max in mnemarch.toml.",
            )
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            return StoreUnavailable(
                f"{self.name}: the role {self._role} is not yours to use: {text}.",
                hint=f"As its administrator: GRANT {self._role} TO the user that connects.",
            )
        if isinstance(error, psycopg.errors.ProgramLimitExceeded):
            return StoreUnavailable(f"{self.name} can't keep so long a name: {text}.", hint="Use a shorter one.")
        if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.DataCorrupted):
            return StoreCorrupt(f"{self.name} is damaged: {text}.", hint="Restore a backup, or import an export.")
        return StoreUnavailable(f"{self.name} can't be used now: {text}.", hint="Nothing was half-written; call again.")


class _AllFailed(Exception):
    """The only job of a transaction failed, so the transaction ends."""


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__

"""The PostgreSQL dialect. Writers lock the row of a stream's head; row-level security separates tenants."""

from __future__ import annotations

from _json import encode_basestring as quoted
from _thread import _local
from functools import partial

import psycopg

from mnemarch.errors import InvalidInput, MnemarchError, StoreCorrupt, StoreError, StoreUnavailable
from mnemarch.model.json_text import from_json, kept_json
from mnemarch.model.stamps import micros, sha256
from mnemarch.stores.postgres import tables
from mnemarch.stores.postgres.joint import JointAppends
from mnemarch.stores.postgres.sessions import News, Session, Sessions, as_json, first_line, is_loss, queries_of
from mnemarch.stores.postgres.views import NeedsOrg, OfTenants, PostgresTransaction, tenants_of
from mnemarch.stores.sql.committer import Committer, Job
from mnemarch.stores.sql.queries import Queries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from mnemarch.model.caller import Stream
    from mnemarch.model.event import Event
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.stores.sql.transaction import Transaction

    T = TypeVar("T")

_QUERIES = Queries(queries_of("../sql/queries.sql", "queries.sql"))
_ATTEMPTS_MAX = 5
_STATEMENT_S_MAX = 60.0


class PostgresStore:
    """The store as one stream sees it: its project and its org. Without a stream it is the operator's and sees all.

    A process has one committer for each stream.
    """

    format_version = tables.FORMAT_VERSION
    writable = is_shared = True
    keeps_erased = "The server's replicas, archived logs and backups may still hold it: Mnemarch can't reach them"

    def __init__(self, url: str, *, lock_wait_s_max: float = 30.0, partitions: int = 0, replica: str = "") -> None:
        self._sessions = Sessions(url)
        self._replica = Sessions(replica) if replica else None
        self._news = News(self._sessions.plain)
        self._lock_wait_s_max = lock_wait_s_max
        self._streams: dict[Stream, PostgresStore] = {}
        self._bind(None)
        self.id = self._operated(lambda connection: tables.prepared(connection, self.name, partitions))

    def _bind(self, stream: Stream | None) -> None:
        self.name = self._sessions.name
        self.stream = stream
        self._tenants = tenants_of(stream) if stream is not None else ()
        self._role = "mnemarch_operator" if stream is None else "mnemarch_app"
        self._committer = Committer(self.name, self._do)
        name = f"{self.format_version} {self._sessions.key} {self._tenants} {self._lock_wait_s_max}"
        self._joint = JointAppends(name, lambda jobs: self._attempt(jobs, self._appending))
        # By thread: the answers of its last read, see `OfTenants.carried`.
        self._read_last = _local()

    def of(self, stream: Stream) -> PostgresStore:
        """This store as one stream sees it."""
        bound = self._streams.get(stream)
        if bound is None:
            bound = PostgresStore.__new__(PostgresStore)
            bound.__dict__.update(self.__dict__)
            bound._bind(stream)
            bound = self._streams.setdefault(stream, bound)
        return bound

    @property
    def tenant(self) -> str:
        """The tenant that this store belongs to."""
        return self._tenants[-1]

    # Reading

    def read(self, work: Callable[[Reader], T]) -> T:
        """Run `work` on one consistent view; again if the connection was lost."""
        result, self._read_last.carried = self._patiently(lambda session: self._read(session, work))
        return result

    def _patiently(self, work: Callable[[Session], T], *, is_new: bool = False) -> T:
        try:
            return self._sessions.use(work, is_new=is_new)
        except (psycopg.Error, OSError) as error:
            if is_new or not is_loss(error):
                raise self._translation(error) from error
        return self._patiently(work, is_new=True)

    def read_elsewhere(self, work: Callable[[Reader], T]) -> T:
        """Run `work` on a view that may lag behind: on the replica if there is one and it answers."""
        if self._replica is not None:
            try:
                return self._replica.use(lambda session: self._read(session, work))[0]
            except (psycopg.Error, OSError):
                pass
        return self.read(work)

    def _read(self, session: Session, work: Callable[[Reader], T]) -> tuple[T, Any]:
        self._begin_as(session, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", self._lock_wait_s_max)
        reader = OfTenants(session.execute, _QUERIES, self._tenants)
        result = work(reader)
        session.end()
        return result, reader.carried()

    def _begin_as(self, session: Session, begin: str, wait_s_max: float) -> None:
        session.execute(begin)
        session.execute(_QUERIES.texts["begin"], self._settings(wait_s_max))

    def aside(self, work: Callable[[Session], T], *, writes: bool = False) -> T:
        """Run `work` in a transaction that locks no stream; again if the connection was lost."""

        def run(session: Session) -> T:
            self._begin_as(session, "BEGIN" if writes else "BEGIN READ ONLY", self._lock_wait_s_max)
            result = work(session)
            session.end()
            if writes:
                session.sync()
            return result

        return self._patiently(run)

    def plain(self) -> Any:
        """A connection with the rights of the connecting user, for statements outside of tenants and transactions."""
        return self._sessions.plain()

    def _operated(self, work: Callable[[Any], T]) -> T:
        """Run `work` on such a connection."""
        try:
            with self.plain() as connection:
                return work(connection)
        except psycopg.Error as error:
            raise self._translation(error) from error

    def _settings(self, wait_s_max: float) -> dict[str, Any]:
        """The role, the tenants and the time-outs, all for one transaction only."""
        times = {"statement_ms": _ms(_STATEMENT_S_MAX) if self._tenants else "0", "lock_ms": _ms(wait_s_max)}
        return {"role": self._role, "wide": (*self._tenants, "")[0], "own": ("", *self._tenants)[-1], **times}

    def news(self) -> int:
        """A number that changes when somebody wrote to the stream or its org. Followers compare it."""
        return self._news.count(self._tenants)

    @property
    def epoch(self) -> int:
        """How often the server was lost. It may have come back without unacknowledged commits."""
        return self._sessions.losses

    def query(self, name: str, /, **parameters: Any) -> list[Any]:
        """The rows of one named query, on a view of its own."""
        return self.read(lambda reader: list(reader.query(name, **parameters)))

    # Writing

    def write(self, work: Callable[[Transaction], T], *, durable: bool = False, wait_s_max: float | None = None) -> T:  # noqa: ARG002
        """Run `work` alone among all writers of its stream and commit; see `ports.Store`. Every commit is durable."""
        return self._done(Job(work, wait_s_max=wait_s_max))  # type: ignore[no-any-return]

    def append_entry(self, event: Event, before: str, after: str) -> Event:
        """Append an event without effect and key; see `ports.Store`. The server chains it in one round trip."""
        self._read_last.carried = None
        # Each thread encodes its own entry, so that the leader of a batch has little to do.
        return self._done(Job(None, entry=(event, before, after, _row_of(event, before, after))))  # type: ignore[no-any-return]

    def _done(self, job: Job) -> Any:
        if self._committer.is_writing:
            raise RuntimeError("a write inside a write would wait for itself; pass the open transaction on instead")
        return self._committer.done(job)

    def _do(self, jobs: list[Job], wait_s_max: float | None, is_free: Callable[[], None]) -> None:
        wait_s = self._lock_wait_s_max if wait_s_max is None else wait_s_max
        entries = [job for job in jobs if job.entry]
        others = [job for job in jobs if not job.entry]
        if others:
            self._attempt(others, partial(self._writing, wait_s=wait_s, wide=False))
        for job in others:
            if job.needs_org:
                self._attempt([job], partial(self._writing, wait_s=wait_s, wide=True))
        if entries and not self._joint.appended(entries):
            self._attempt(entries, partial(self._appending, is_free=is_free))

    def _attempt(self, jobs: list[Job], work_of: Callable[[list[Job]], Callable[[Session], None]]) -> None:
        """Do jobs in one transaction. Retries after a lost connection or a deadlock."""
        work, is_new = work_of(jobs), False
        for attempt in range(1, _ATTEMPTS_MAX + 1):
            try:
                self._sessions.use(work, is_new=is_new)
                return
            except _AllFailed:
                return
            except psycopg.errors.DivisionByZero:  # See `still_ends`.
                is_new = False
            except (psycopg.Error, OSError, StoreError) as error:
                is_new = isinstance(error, psycopg.Error) and is_loss(error)
                if attempt < _ATTEMPTS_MAX and (is_new or isinstance(error, psycopg.errors.DeadlockDetected)):
                    continue
                if len(jobs) == 1 or not isinstance(error, psycopg.Error) or is_new:
                    self._fail(jobs, error)
                    return
                for job in jobs:  # Run one by one to find out which job failed.
                    self._attempt([job], work_of)
                return
        self._fail(jobs, StoreUnavailable(f"{self.name} has too many writers at once.", hint="Call again."))

    def _fail(self, jobs: list[Job], error: Exception) -> None:
        for job in jobs:  # One error for each job: a shared one would collect the tracebacks of all threads.
            job.error = error if isinstance(error, StoreError) else self._translation(error)
            job.error.__cause__ = error

    def _appending(self, jobs: list[Job], is_free: Callable[[], None] = lambda: None) -> Callable[[Session], None]:
        """Appends the jobs' entries to the stream. The stream's lock never waits for this process."""
        assert self.stream is not None
        where = {"org": self.stream.org, "project": self.stream.project or ""}
        rows = ",".join([job.entry[-1] for job in jobs])
        said = {**self._settings(self._lock_wait_s_max), **where, "rows": f"[{rows}]"}

        def run(session: Session) -> None:
            try:
                seq, hash, position = self._joint.timed(partial(session.appended, said), len(jobs))
                is_free()
                session.flushed()
            except psycopg.errors.UniqueViolation:  # Already committed, by an attempt whose answer was lost.
                if len(jobs) > 1:
                    raise  # Perhaps not all of them: each is tried alone then.
                session.recover()
                query, first = _QUERIES.texts["end_before"], {"first": jobs[0].entry[0].id}
                seq, hash, position, _ = self.aside(lambda s: s.execute(query, first).fetchone(), writes=True)
            for number, job in enumerate(jobs, 1):
                event, before, after, _ = job.entry
                hash = sha256(hash + f"{before}{seq + number}{after}".encode()).digest()
                job.result = event.placed(position + number, hash, seq + number)

        return run

    def _writing(self, jobs: list[Job], wait_s: float, wide: bool) -> Callable[[Session], None]:
        """Runs the jobs in a transaction."""
        last_event = ""

        def run(session: Session) -> None:
            nonlocal last_event
            transaction = self._begin(session, wait_s, wide)
            # If its last event exists, an earlier attempt was committed.
            if not last_event or transaction.event(last_event) is None:
                last_event = ""
                self._run(jobs, transaction)
                last_event = transaction.last_event
            session.commit([tenant for tenant in self._tenants[0 if wide else -1 :] if self._news.is_due(tenant)])

        return run

    def _begin(self, session: Session, wait_s: float, wide: bool) -> PostgresTransaction:
        """Begin and lock the stream's head; the answers come with those of the first read.

        A project's head is always locked before its org's, so writers can't deadlock.
        """
        self._begin_as(session, "BEGIN", wait_s)
        session.execute(_QUERIES.texts["flush_later"])
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
            return transaction
        streams = [(self._tenants[-1], self.stream.project or ""), (self._tenants[0], "")]
        for tenant, project in streams[: 2 if wide else 1]:
            transaction.query("new_stream", tenant=tenant, org=self.stream.org, project=project)
            transaction.locked.append(transaction.query("lock_head", tenant=tenant))
        return transaction

    def _run(self, jobs: list[Job], transaction: PostgresTransaction) -> None:
        """Run jobs in one transaction. If one fails, only its own changes are rolled back."""
        is_alone = len(jobs) == 1
        for job in jobs:
            begun = None if is_alone else transaction.begin_job()
            job.error, job.needs_org = None, False
            assert job.work is not None
            try:
                job.result = job.work(transaction)
            except psycopg.Error:
                raise
            except NeedsOrg:
                job.needs_org = True
            except Exception as error:  # noqa: BLE001 - handed to the thread whose work it was
                job.error = error
            failed = job.error is not None or job.needs_org
            if begun is None:
                if failed:
                    raise _AllFailed
            elif failed:
                transaction.undo_job(begun)
            else:
                transaction.end_job()
        transaction.show_own()

    # Maintenance

    def scrub(self, *, rewrite: bool = True) -> int:
        """Rewrite the tables and the server's write-ahead log. Returns the number of tables.

        Replicas, archives and backups are out of reach.
        """
        return self._operated(
            lambda connection: tables.scrubbed(connection, self.name, self._lock_wait_s_max, rewrite=rewrite)
        )

    def backup(self, path: str) -> None:
        raise InvalidInput(
            f"{self.name} is backed up by PostgreSQL, not into {path!r}.",
            hint="Use pg_dump or continuous archiving of PostgreSQL. mnemarch export writes the log as JSON lines.",
        )

    @property
    def sees_all(self) -> bool:
        query = "SELECT pg_has_role('mnemarch_operator', 'MEMBER')"
        return bool(self._operated(lambda connection: connection.execute(query).fetchone()[0]))

    def check(self) -> str | None:
        """What is wrong with the tables, or None."""
        return self._operated(tables.problem)

    def close(self) -> None:
        """Refuse new work. Connections in use are closed when they are returned."""
        if self.stream is None:
            self._news.closed = True
            for sessions in filter(None, (self._sessions, self._replica)):
                sessions.close()
            for store in self._streams.values():
                store._joint.close()

    def _translation(self, error: Exception) -> MnemarchError:
        text = first_line(error)
        if isinstance(error, psycopg.errors.LockNotAvailable):
            return StoreUnavailable(
                f"{self.name} was locked by other writers for too long.",
                hint="Call again, or raise store.lock_wait_s_max in mnemarch.toml.",
            )
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            role, name = self._role if self._role in text else "mnemarch_app", self._sessions.user
            hint = f"As its administrator: GRANT {role} TO {name}."
            if role == "mnemarch_operator":
                return StoreUnavailable(f"{name} may see projects of {self.name}, but not all of it.", hint=hint)
            hint += " If it has no tables yet, open it once as a user who may make tables and roles."
            return StoreUnavailable(f"{self.name} is not open to {name}: {text}.", hint=hint)
        if isinstance(error, psycopg.errors.InvalidSchemaName):
            hint = "Create the schema that search_path names (CREATE SCHEMA …), or remove search_path from the URL."
            return StoreUnavailable(f"{self.name} has no such schema: {text}.", hint=hint)
        if isinstance(error, psycopg.errors.ProgramLimitExceeded):
            return InvalidInput(
                "PostgreSQL can't index a name of over 2,700 bytes, and one here is longer. Nothing was stored.",
                hint="Shorten it, or use a hash of it. It may be the name of a test or of a cited thing.",
            )
        if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.DataCorrupted):
            return StoreCorrupt(f"{self.name} is damaged: {text}.", hint="Restore a backup, or import an export.")
        hint = "Nothing was half-written. Call again."
        if isinstance(error, psycopg.Error) and is_loss(error):
            hint = f"Is the server up, and store.url right? A password goes into ~/.pgpass or PGPASSWORD. {hint}"
        return StoreUnavailable(f"{self.name} can't be used now: {text}.", hint=hint)


def _row_of(event: Event, before: str, after: str) -> str:
    """An entry as `append_entries` takes it. An encoder takes three times as long, while all other threads wait."""
    assert event.body is not None
    assert event.salt is not None
    session, subject = ("null" if name is None else quoted(name) for name in (event.session, event.subject))
    row = (
        f'{{"id":"{event.id}","type":"{event.type}","actor":{quoted(str(event.actor))},"session":{session},'
        f'"scope":{quoted(kept_json(*event.scope.segments))},"scope_key":"{event.scope.key}","subject":{subject},'
        f'"occurred_at":{micros(event.occurred_at)},"recorded_at":{micros(event.recorded_at)},"body":{quoted(event.body)},'
        f'"salt":"{event.salt.hex()}","payload_hash":"{event.payload_hash.hex()}",'
        f'"before":{quoted(before)},"after":{quoted(after)}}}'
    )
    return as_json(from_json(row)) if "\\u000" in row else row


def _ms(seconds: float) -> str:
    return f"{max(1.0, seconds * 1000):.0f}"


class _AllFailed(Exception):
    """The transaction's only job failed, so it is rolled back."""

"""Connections to one PostgreSQL database, in pipeline mode: only reading a result waits.

One more connection listens. It wakes followers of a stream after commits to it, at most once in a short interval.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from _thread import allocate_lock, start_new_thread
from collections import deque
from contextlib import suppress
from functools import cache
from itertools import count

import psycopg
from psycopg.adapt import Transformer
from psycopg.conninfo import conninfo_to_dict
from psycopg.generators import fetch_many, send
from psycopg.pq import ExecStatus
from psycopg.types.string import TextLoader

from mnemarch.errors import InvalidInput, StoreUnavailable
from mnemarch.forks import Forkable, abandon, watch
from mnemarch.stores.sql.queries import named_queries
from mnemarch.stores.sql.remote import Redo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeVar

    T = TypeVar("T")

_IDLE_MAX = 16
# A commit that waits for the disk, and so for every commit before it.
_FLUSH = "SELECT pg_logical_emit_message(true, 'mnemarch', '')"
# 20000: followers are notified at most every 20 ms.
_APPEND = """SELECT last_seq, last_hash, last_position
FROM append_entries(:role, :wide, :own, :org, :project, :lock_ms, 20000, :rows)"""
_FLUSH_AND_TELL = f"""{_FLUSH}, CASE WHEN current_setting('mnemarch.news', true) <> ''
  THEN pg_notify('mnemarch', current_setting('mnemarch.news')) END"""
_FLUSH_AND_TELL_OF = """SELECT pg_logical_emit_message(true, 'mnemarch', ''),
  (SELECT count(pg_notify('mnemarch', tenant)) FROM unnest(CAST(:tenants AS text[])) AS tenant)"""
_DEFAULTS = {"connect_timeout": 5, "application_name": "mnemarch", "keepalives_idle": 30, "client_encoding": "utf8"}
# psycopg warns when a connection is lost in a pipeline. The caller gets an error for it anyway.
logging.getLogger("psycopg").setLevel(logging.ERROR)
_encoded = json.JSONEncoder(default=bytes.hex, ensure_ascii=False).encode
# Statements that run once, or need no planning.
_NOT_PREPARED = (
    "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "DECLARE", "FETCH", "CLOSE", "LOCK", "SET", "DEALLOCATE",
)  # fmt: skip
_numbers = count()
# A literal, which stays; a list; a parameter.
_PARTS = re.compile(r"('[^']*')|IN \(:(\w+)\)|:(\w+)")
_CHANNEL = "mnemarch"
# A notification locks the whole server at commit. So one is sent for all commits of this interval.
_QUIET_S = 0.02
_LOOK_S = 1.0


def queries_of(*paths: str) -> dict[str, str]:
    """The queries of some files. A later file overrides an earlier one."""
    folder = os.path.dirname(__file__)
    return named_queries(*(os.path.join(folder, path) for path in paths))


def as_json(rows: Any) -> str:
    """A row, or several, as one parameter, with bytes in hexadecimal."""
    text = _encoded(rows)
    return _encoded(stored(rows)) if "\\u000" in text else text


def stored(item: Any) -> Any:
    """The value with NUL escaped, which PostgreSQL can't store in text. The escape keeps the order of texts."""
    if isinstance(item, str):
        plain = item if type(item) is str else str(item)
        return plain.replace("\1", "\1\2").replace("\0", "\1\1") if "\0" in plain or "\1" in plain else plain
    if isinstance(item, list | tuple):
        return list(map(stored, item))
    if isinstance(item, dict):
        return {name: stored(part) for name, part in item.items()}
    return item


def _sent(item: Any) -> bytes | None:
    """A parameter in PostgreSQL's text format. The statement determines its type."""
    if item is None:
        return None
    if isinstance(item, list | tuple):
        items = ["NULL" if (each := _sent(one)) is None else _quoted(each.decode()) for one in item]
        return f"{{{','.join(items)}}}".encode()
    if isinstance(item, bytes):
        return b"\\x" + item.hex().encode()
    return str(stored(item)).encode()


def _quoted(text: str) -> str:
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


@cache
def _numbered(text: str) -> tuple[bytes, tuple[str, ...]]:
    """The statement in PostgreSQL's dialect, with numbered parameters, and the parameters' names in order."""
    names: dict[str, str] = {}

    def part(found: re.Match[str]) -> str:
        literal, items, item = found.groups()
        number = literal or names.setdefault(items or item, f"${len(names) + 1}")
        return f"= ANY({number})" if items else number

    numbered = _PARTS.sub(part, text.replace("instr(", "strpos("))
    return numbered.encode(), tuple(names)


def _row(items: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(
        [
            item.replace("\1\1", "\0").replace("\1\2", "\1") if isinstance(item, str) and "\1" in item else item
            for item in items
        ]
    )


class Answer:
    """The result of a statement that was sent. Reading it waits for the server."""

    __slots__ = ("_session", "rows")

    def __init__(self, session: Session) -> None:
        self._session = session
        self.rows: list[Any] | None = None

    def fetchall(self) -> list[Any]:
        if self.rows is None:
            self._session.receive()
        return self.rows or []

    def fetchone(self) -> Any:
        rows = self.fetchall()
        return rows[0] if rows else None

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fetchall())


class Session:
    """One connection, always in pipeline mode: a statement costs a round trip only if its result is read.

    It doesn't use psycopg's cursors, which take several times as long for a statement.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._connection = psycopg.connect(**settings, autocommit=True)
        for type in ("uuid", "json"):
            self._connection.adapters.register_loader(type, TextLoader)
        self._loads = Transformer(self._connection)
        self._pgconn = self._connection.pgconn
        self._pgconn.nonblocking = 1
        self._pgconn.enter_pipeline_mode()
        # Names of prepared statements by text; and what is unanswered: None stands for a PREPARE or a sync.
        self._prepared: dict[str, bytes] = {}
        self._sent: deque[Answer | None] = deque()

    @property
    def is_lost(self) -> bool:
        return bool(self._connection.closed)

    def execute(self, text: str, parameters: Mapping[str, Any] | None = None) -> Answer:
        numbered, names = _numbered(text)
        sent = [_sent(parameters[name]) for name in names] if parameters else None
        if text.startswith(_NOT_PREPARED):
            self._pgconn.send_query_params(numbered, sent)
        else:
            name = self._prepared.get(text)
            if name is None:
                name = self._prepared[text] = b"mnemarch_%d" % next(_numbers)
                self._pgconn.send_prepare(name, numbered)
                self._sent.append(None)
            self._pgconn.send_query_prepared(name, sent)
        answer = Answer(self)
        self._sent.append(answer)
        return answer

    def receive(self, until: Answer | None = None) -> None:
        """Wait for all answers, or `until` one answer, which has to be followed by a mark."""
        if self._sent and self._sent[-1] is not None:  # A mark makes the server answer by itself.
            self._pgconn.send_flush_request()
        if self._pgconn.flush():  # The socket did not take everything at once.
            self._connection.wait(send(self._pgconn))
        while self._sent and (until is None or until.rows is None):
            results = self._connection.wait(fetch_many(self._pgconn))
            answer = self._sent.popleft()
            result = results[0]
            if result.status == ExecStatus.FATAL_ERROR:
                raise psycopg.errors.error_from_result(result, encoding="utf-8")
            if result.status == ExecStatus.PIPELINE_ABORTED:
                raise psycopg.errors.PipelineAborted("an earlier statement failed")
            if answer is not None:
                self._loads.set_pgresult(result)
                answer.rows = self._loads.load_rows(0, result.ntuples, _row) if result.ntuples else []

    def mark(self) -> None:
        """Send a sync: it ends an implicit transaction, and after an error the server continues behind it."""
        self._pgconn.pipeline_sync()
        self._sent.append(None)

    def sync(self) -> None:
        """Send a sync and wait for all answers."""
        self.mark()
        self.receive()

    def commit(self, news_of: Sequence[str]) -> None:
        """Commit without waiting for the disk, then wait for it in a second commit, which holds no locks.

        The second one also notifies the followers of some tenants.
        """
        self.execute("COMMIT")
        self.execute(_FLUSH_AND_TELL_OF, {"tenants": news_of})
        self.sync()

    def end(self) -> None:
        """End a transaction that wrote nothing, without waiting for it."""
        self.execute("COMMIT")
        self._pgconn.flush()

    def appended(self, said: Mapping[str, str]) -> tuple[int, bytes, int]:
        """Append entries and return the stream's previous end. The flush is sent along: call `flushed` next."""
        end = self.execute(_APPEND, said)
        self.mark()
        self.execute(_FLUSH_AND_TELL)
        self.mark()
        self.receive(end)
        return end.fetchone()  # type: ignore[no-any-return]

    def flushed(self) -> None:
        """Wait until the appended entries are on the disk."""
        self.receive()

    def recover(self) -> None:
        """After an error: discard the answers of what was sent after it, and roll back."""
        self._prepared.clear()
        self.mark()
        while self._sent:
            with suppress(psycopg.errors.PipelineAborted):
                self.receive()
        self.execute("ROLLBACK")
        self.execute("DEALLOCATE ALL")  # It is unknown which of them were prepared.
        self.sync()

    def close(self) -> None:
        self._connection.close()


def is_loss(error: Exception) -> bool:
    """Whether an error means a lost connection and not a failed statement."""
    return isinstance(error, psycopg.OperationalError) and (
        error.sqlstate is None or isinstance(error, psycopg.errors.AdminShutdown)
    )


def first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__


class Sessions(Forkable):
    """The pool of idle connections of this process, for all tenants."""

    def __init__(self, url: str) -> None:
        try:
            self._settings: dict[str, Any] = _DEFAULTS | conninfo_to_dict(url)
        except psycopg.Error as error:
            raise InvalidInput(
                f"The address of the store can't be read: {first_line(error)}.",
                hint="Write postgresql://user@host:port/database.",
            ) from None
        place = self._settings.get("host") or self._settings.get("hostaddr") or "localhost"
        port, database = self._settings.get("port", 5432), self._settings.get("dbname", "")
        self.name = f"postgresql://{place}:{port}/{database}"  # Without a password.
        # What determines the connection, with the password.
        self.key = repr(sorted(self._settings.items()))
        self.user = self._settings.get("user") or "the user that connects"
        self._idle: list[Session] = []
        self._closed = False
        # How often the server was lost. Caches about the server are invalid after that.
        self.losses = 0
        watch(self)

    def use(self, work: Callable[[Any], T], *, is_new: bool = False) -> T:
        """Run `work` on a connection of its own. `is_new` discards all idle connections first."""
        if self._closed:
            raise StoreUnavailable(f"{self.name} was closed.", hint="Open the memory again.")
        if is_new:
            self.losses += 1
            self._drop_idle()
        try:
            session = self._idle.pop()
        except IndexError:
            session = Session(self._settings)
        try:
            result = work(session)
        except BaseException as error:
            self._give_up(session, error)
            raise
        self._take_back(session)
        return result

    def _give_up(self, session: Session, error: BaseException) -> None:
        """Roll back after an error. A connection in doubt is closed."""
        with suppress(psycopg.Error):
            if isinstance(error, Exception | Redo) and not session.is_lost:
                session.recover()
                self._take_back(session)
                return
        session.close()

    def _take_back(self, session: Session) -> None:
        if session.is_lost or len(self._idle) >= _IDLE_MAX:
            session.close()
        else:
            self._idle.append(session)
        if self._closed:
            self._drop_idle()

    def plain(self) -> Any:
        """A plain connection, for statements that can't run in a transaction or pipeline."""
        return psycopg.connect(**self._settings, autocommit=True)

    def _drop_idle(self) -> None:
        idle, self._idle = self._idle, []
        for session in idle:
            session.close()

    def close(self) -> None:
        self._closed = True
        self._drop_idle()

    def _resume(self, *, in_child: bool, rested: bool) -> None:  # noqa: ARG002
        if in_child:  # Closing the parent's connections would end them for the parent too.
            abandon(self._idle)
            self._idle = []


class News(Forkable):
    """Counts notifications by tenant. A thread with its own connection listens once the count is first asked for."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._lock = allocate_lock()
        self._counts: dict[str, int] = {}
        self._told_at: dict[str, float] = {}
        self._is_listening = False
        self.closed = False
        watch(self)

    def is_due(self, tenant: str) -> bool:
        """Whether a commit should notify now. Followers look again a moment after each notification."""
        now = time.monotonic()
        if now - self._told_at.get(tenant, 0.0) < _QUIET_S:
            return False
        self._told_at[tenant] = now
        return True

    def count(self, tenants: Iterable[str]) -> int:
        """A number that changes when one of these tenants was written to."""
        with self._lock:
            if not self._is_listening and not self.closed:
                self._is_listening = True
                start_new_thread(self._listen, ())
        return sum(self._counts.get(tenant, 0) for tenant in tenants)

    def _listen(self) -> None:
        """Listen until the store is closed. Followers also poll, so an absent server does no harm."""
        while not self.closed:
            try:
                with self._connect() as connection:
                    connection.execute(f"LISTEN {_CHANNEL}")
                    while not self.closed:
                        for told in connection.notifies(timeout=_LOOK_S, stop_after=1):
                            self._note(told.payload)
                            time.sleep(_QUIET_S)
                            self._note(told.payload)  # Commits within the quiet interval send no notification.
            except (psycopg.Error, OSError):
                time.sleep(_LOOK_S)

    def _note(self, tenant: str) -> None:
        self._counts[tenant] = self._counts.get(tenant, 0) + 1

    def _resume(self, *, in_child: bool, rested: bool) -> None:  # noqa: ARG002
        if in_child:
            self._lock, self._is_listening = allocate_lock(), False

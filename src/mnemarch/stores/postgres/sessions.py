"""Connections to one PostgreSQL database: statements go out without waiting, and only a result is waited for."""

from __future__ import annotations

import json
import logging
import os
import re
from _thread import allocate_lock

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.generators import fetch_many, send
from psycopg.types.string import TextLoader

from mnemarch.errors import InvalidInput, StoreUnavailable
from mnemarch.forks import Forkable, abandon, watch
from mnemarch.stores.sql.queries import named_queries
from mnemarch.stores.sql.remote import Redo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    T = TypeVar("T")

_IDLE_MAX = 16
# Its commit waits for the disk, as the server is set up to, and so for all that was committed before it.
FLUSH = "SELECT pg_logical_emit_message(true, 'mnemarch', '')"
# Followers are told of one commit in 20 ms.
_APPEND = b"SELECT last_seq, last_hash, last_position FROM append_entries($1, $2, $3, $4, $5, $6, 20000, $7)"
_FLUSH_AND_TELL = f"""{FLUSH}, CASE WHEN current_setting('mnemarch.news', true) <> ''
  THEN pg_notify('mnemarch', current_setting('mnemarch.news')) END""".encode()
_DEFAULTS = {"connect_timeout": 5, "application_name": "mnemarch", "keepalives_idle": 30, "client_encoding": "utf8"}
# It warns of pipelines that end with a lost connection, which is told to whoever used it.
logging.getLogger("psycopg").setLevel(logging.ERROR)
_encoded = json.JSONEncoder(default=bytes.hex, ensure_ascii=False).encode
# A literal, which stays; a list; a parameter.
_PARTS = re.compile(r"('[^']*')|IN \(:(\w+)\)|:(\w+)")


def translated(text: str) -> str:
    """A shared query in the words of PostgreSQL and its driver."""
    text = text.replace("%", "%%").replace("instr(", "strpos(")
    return _PARTS.sub(
        lambda part: part[1] or (f"= ANY(%({part[2]})s)" if part[2] else f"%({part[3]})s"),
        text,
    )


def translated_queries(*paths: str) -> dict[str, str]:
    """The queries of files of this folder; a later file overrides an earlier one."""
    folder = os.path.dirname(__file__)
    queries = named_queries(*(os.path.join(folder, path) for path in paths))
    return {name: translated(text) for name, text in queries.items()}


def stored_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: stored(item) for name, item in row.items()}


def as_json(rows: Sequence[Mapping[str, Any]]) -> str:
    """Many rows as one parameter, with bytes in hexadecimal."""
    return _encoded(list(map(stored_row, rows)))


def stored(item: Any) -> Any:
    """PostgreSQL's texts can't hold NUL. What stands for it keeps the order of texts."""
    if isinstance(item, str):
        plain = item if type(item) is str else str(item)
        return plain.replace("\1", "\1\2").replace("\0", "\1\1") if "\0" in plain or "\1" in plain else plain
    if isinstance(item, list | tuple):
        return list(map(stored, item))
    return item


def _loaded(item: Any) -> Any:
    if isinstance(item, str) and "\1" in item:
        return item.replace("\1\1", "\0").replace("\1\2", "\1")
    return item


def _rows(_: Any) -> Any:
    return lambda items: tuple(map(_loaded, items))


class Session:
    """One connection. It is always in pipeline mode, so a statement costs a round trip only if its result is read."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._connection = psycopg.connect(**settings, autocommit=True, row_factory=_rows)
        for type in ("uuid", "json"):
            self._connection.adapters.register_loader(type, TextLoader)
        self._mode = self._connection.pipeline()
        self._pipeline = self._mode.__enter__()

    @property
    def is_lost(self) -> bool:
        return bool(self._connection.closed)

    def execute(self, text: str, parameters: Mapping[str, Any] | None = None) -> Any:
        return self._connection.execute(text, None if parameters is None else stored_row(parameters))

    def execute_many(self, text: str, rows: Sequence[Mapping[str, Any]]) -> None:
        self._connection.cursor().executemany(text, list(map(stored_row, rows)))

    def sync(self) -> None:
        """Wait for everything that was sent."""
        self._pipeline.sync()

    def commit(self) -> None:
        """Commit, and wait until it is on the disk: by a commit of its own, when no lock is held any more."""
        self._connection.execute("COMMIT")
        self._connection.execute(FLUSH)
        self.sync()

    def tell(self, text: str, parameters: Mapping[str, Any]) -> None:
        """Run one statement by itself, without waiting for it."""
        self._connection.execute("BEGIN")
        self._connection.execute(text, parameters)
        self.end()

    def end(self) -> None:
        """End a transaction that wrote nothing, without waiting for it.

        By COMMIT: after a ROLLBACK the driver forgets every prepared statement.
        """
        self._connection.execute("COMMIT")
        self._connection.pgconn.flush()

    def recover(self) -> None:
        """After an error: skip what was sent after it, and end the transaction."""
        try:
            self.sync()
        except psycopg.Error:
            self.sync()
        self._connection.execute("ROLLBACK")
        self.sync()

    def close(self) -> None:
        self._connection.close()
        self._mode.gen.close()


class AppendingSession:
    """One connection that adds entries to streams, past the driver's cursors: that takes half the time."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._connection = psycopg.connect(**settings, autocommit=True)
        self._pgconn = self._connection.pgconn
        self._pgconn.prepare(b"append", _APPEND)
        self._pgconn.prepare(b"flush", _FLUSH_AND_TELL)
        self._pgconn.enter_pipeline_mode()

    @property
    def is_lost(self) -> bool:
        return bool(self._connection.closed)

    def appended(self, said: Sequence[str]) -> tuple[int, bytes, int]:
        """Add entries; gives where the stream ended before. `flush` has to follow: it was sent along."""
        self._pgconn.send_query_prepared(b"append", [stored(each).encode() for each in said])
        self._pgconn.pipeline_sync()
        self._pgconn.send_query_prepared(b"flush", None)
        self._pgconn.pipeline_sync()
        self._connection.wait(send(self._pgconn))
        result = self._result()
        seq, hash, position = (result.get_value(0, column) or b"" for column in range(3))
        return int(seq), bytes.fromhex(hash.decode().removeprefix("\\x")), int(position)

    def flush(self) -> None:
        """Wait until what was added is on the disk."""
        self._result()

    def _result(self) -> Any:
        """The result of the next statement."""
        (result,) = self._connection.wait(fetch_many(self._pgconn))
        self._connection.wait(fetch_many(self._pgconn))  # The end of its transaction.
        if result.status == psycopg.pq.ExecStatus.FATAL_ERROR:
            raise psycopg.errors.error_from_result(result, encoding="utf-8")
        return result

    def close(self) -> None:
        self._connection.close()

    recover = close  # What was sent after an error is not worth waiting for.


def is_loss(error: Exception) -> bool:
    """Whether an error says that the connection is gone, and nothing of the work."""
    return isinstance(error, psycopg.OperationalError) and (
        error.sqlstate is None or isinstance(error, psycopg.errors.AdminShutdown)
    )


def first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__


class Sessions(Forkable):
    """The connections of one kind that nobody uses, for all tenants of this process."""

    def __init__(self, url: str, kind: type[Any] = Session) -> None:
        self._kind = kind
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
        self.user = self._settings.get("user") or "the user that connects"
        self._idle: list[Any] = []
        self._lock = allocate_lock()
        self._closed = False
        # How often connections were lost: with them goes what is thought to be known of the server.
        self.losses = 0
        watch(self)

    def use(self, work: Callable[[Any], T], *, is_new: bool = False) -> T:
        """What `work` gives on a connection of its own. With `is_new` all older ones are taken for lost."""
        if self._closed:
            raise StoreUnavailable(f"{self.name} was closed.", hint="Open the memory again.")
        if is_new:
            self.losses += 1
            self._drop_idle()
        with self._lock:
            session = self._idle.pop() if self._idle else None
        session = session or self._kind(self._settings)
        try:
            result = work(session)
        except BaseException as error:
            self._give_up(session, error)
            raise
        self._take_back(session)
        return result

    def use_patiently(self, work: Callable[[Any], T]) -> T:
        """The same. The work is done again if the connection turns out to be lost."""
        try:
            return self.use(work)
        except psycopg.OperationalError as error:
            if not is_loss(error):
                raise
            return self.use(work, is_new=True)

    def _give_up(self, session: Any, error: BaseException) -> None:
        """End what went wrong; a connection that is in doubt is closed."""
        try:
            if isinstance(error, Exception | Redo) and not session.is_lost:
                session.recover()
                self._take_back(session)
                return
        except psycopg.Error:
            pass
        session.close()

    def _take_back(self, session: Any) -> None:
        with self._lock:
            if not session.is_lost and not self._closed and len(self._idle) < _IDLE_MAX:
                self._idle.append(session)
                return
        session.close()

    def plain(self) -> Any:
        """A connection outside of pipelines, for what PostgreSQL does in no transaction."""
        return psycopg.connect(**self._settings, autocommit=True)

    def _drop_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for session in idle:
            session.close()

    def close(self) -> None:
        self._closed = True
        self._drop_idle()

    def _resume(self, *, in_child: bool, rested: bool) -> None:  # noqa: ARG002
        if in_child:  # To close the parent's connections would end them for the parent too.
            abandon(self._idle)
            self._idle, self._lock = [], allocate_lock()

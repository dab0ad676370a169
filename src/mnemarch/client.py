"""`mnemarch.connect`: the client of `mnemarch serve`, with the same verbs, values and errors as a local memory."""

from __future__ import annotations

import json
import os
import ssl
import threading
import time
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from urllib.parse import quote, urlencode, urlsplit

from mnemarch import errors
from mnemarch.errors import InvalidInput, MnemarchError, NotAllowed, StoreUnavailable
from mnemarch.log.act import Entry
from mnemarch.model.caller import Actor, Scope
from mnemarch.verbs.types import REPORT, SEAT, Parameter, Verb, from_json, kind_of, recognised, served, to_json
from mnemarch.witness.reports import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Self

    from mnemarch.memory import Memory
    from mnemarch.model.event import Event
    from mnemarch.seat import Seat

# The server closes connections that are idle for longer.
_IDLE_S_MAX = 10.0
_OWNERS = frozenset({"decisions", "rules", "core", "episodes"})


def connect(url: str, token: str | None = None, *, timeout_s: float = 60.0) -> RemoteMemory:
    """Connect to a memory that another process serves. The default `token` is that of MNEMARCH_TOKEN."""
    text = token or os.environ.get("MNEMARCH_TOKEN", "")
    if not text.isascii() or not text.isprintable() or not text:
        raise InvalidInput("No token was given.", hint="On the server, mnemarch token create agent:NAME makes one.")
    line = _Line(url, text, timeout_s)
    try:
        return RemoteMemory(line)
    except BaseException:
        line.close()
        raise


class _Line:
    """The connections to a server, one for each thread. Each is opened when it is first needed."""

    def __init__(self, url: str, token: str, timeout_s: float) -> None:
        address = urlsplit(url)
        if address.scheme not in {"http", "https"} or not address.hostname:
            raise InvalidInput(f"{url!r} is not the address of a server.", hint="Write it as http://127.0.0.1:8321.")
        self.name = f"{address.scheme}://{address.netloc.rpartition('@')[2]}"
        self._prefix = address.path.rstrip("/")
        self._token, self._timeout_s = token, timeout_s
        self._own = threading.local()
        self._is_closed = False

    def ask(self, method: str, path: str, query: dict[str, str], content: Any = None) -> Any:
        """The server's answer. An error of the server is raised here as the same error."""
        body = None if content is None else json.dumps(content, allow_nan=False)
        answer = self.begin(self._connection(), method, path, query, body)
        try:
            text = answer.read()
        except (OSError, HTTPException) as error:
            raise self._lost(error) from None
        self._own.at = time.monotonic()
        try:
            told = json.loads(text)
        except ValueError:
            told = {"error": {"type": "", "message": f"{self.name} answered {answer.status}.", "hint": ""}}
        if answer.status == 200:
            return told
        raise _error_of(told["error"])

    def begin(
        self, connection: HTTPConnection, method: str, path: str, query: dict[str, str], body: str | None, **more: str
    ) -> HTTPResponse:
        target = f"{self._prefix}{path}" + (f"?{urlencode(query, quote_via=quote)}" if query else "")
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"} | more
        try:
            connection.request(method, target, None if body is None else body.encode(), headers)
            return connection.getresponse()
        except (OSError, HTTPException) as error:
            raise self._lost(error) from None

    def _lost(self, error: Exception) -> StoreUnavailable:
        self._drop()
        return StoreUnavailable(
            f"{self.name} did not answer: {str(error) or type(error).__name__}.",
            hint="Call again; a write with the same key is stored once. Is mnemarch serve running there?",
        )

    def opened(self) -> HTTPConnection:
        place = self.name.partition("://")[2]
        if self.name.startswith("https"):
            return HTTPSConnection(place, timeout=self._timeout_s, context=ssl.create_default_context())
        return HTTPConnection(place, timeout=self._timeout_s)

    def _connection(self) -> HTTPConnection:
        if self._is_closed:
            raise StoreUnavailable("The memory is closed.", hint="Connect again.")
        own = self._own
        if getattr(own, "connection", None) is None or time.monotonic() - own.at > _IDLE_S_MAX:
            self._drop()
            own.connection, own.at = self.opened(), time.monotonic()
        connection: HTTPConnection = own.connection
        return connection

    def _drop(self) -> None:
        if getattr(self._own, "connection", None) is not None:
            self._own.connection.close()
            self._own.connection = None

    def close(self) -> None:
        self._is_closed = True
        self._drop()


def _error_of(told: dict[str, Any]) -> MnemarchError:
    """The error that the server raised, with the same class and attributes."""
    kind = getattr(errors, str(told["type"]), None)
    words, hint = told["message"], told["hint"]
    if kind is NotAllowed:
        return NotAllowed(words, rule=told.get("rule", ""), hint=hint)
    if kind is errors.Conflict:
        both = {name: recognised(told.get(name)) for name in ("current", "proposed")}
        versions = {name: told.get(name) for name in ("expected_version", "actual_version")}
        return errors.Conflict(words, hint=hint, **versions, **both)
    if isinstance(kind, type) and issubclass(kind, MnemarchError):
        return kind(words, hint=hint)
    return StoreUnavailable(words, hint=hint)


class _Verbs:
    """The verbs of a memory, a seat or one of its systems, called over the network."""

    def __init__(self, line: _Line, owner: str, place: dict[str, str]) -> None:
        self._line, self._owner, self._place = line, owner, place

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if self._owner == "seat" and name in _OWNERS:
            return _Verbs(self._line, name, self._place)
        verb = served().get(f"{self._owner}.{name}")
        if verb is None:
            raise AttributeError(f"{self._owner}.{name} can't be called over HTTP: it works only where the memory is")
        return self._verb(verb)

    def _verb(self, verb: Verb) -> Callable[..., Any]:
        sent = {each.name: each for each in verb.sent}
        names = [each.name for each in verb.takes]
        seats = {each.name for each in verb.takes if each.type is SEAT}
        defaults = {each.name: each.default for each in verb.takes}

        def ask(*positional: Any, **named: Any) -> Any:
            given = dict(zip(names, positional, strict=False)) | named
            if not given.keys() <= {*names} or len(given) < len(positional) + len(named):
                raise TypeError(f"{verb.name} takes {', '.join(names)}")
            place = next((item._place for name, item in given.items() if name in seats), self._place)
            given = {name: item for name, item in given.items() if name not in seats and item != defaults[name]}
            for name in given.keys() - sent.keys() - {"progress"}:  # The server reports no progress.
                raise InvalidInput(
                    f"{verb.name}: {name} can't be sent over a network.",
                    hint="Leave it out. Run tests here, and send the report that they write.",
                )
            content = {name: _sent(sent[name], item) for name, item in given.items() if name in sent}
            return from_json(kind_of(verb.gives), self._line.ask("POST", verb.path, place, content))

        ask.__name__ = verb.name
        return ask


def _sent(parameter: Parameter, item: Any) -> Any:
    """A parameter as JSON: of a report its text, of a record the fields that are set."""
    if parameter.type is REPORT:
        return text_of(item)
    fields = parameter.type.schema().get("properties")
    if not parameter.many:
        return to_json(item)
    if not fields:
        return to_json([item] if isinstance(item, str) else list(item))
    records = (to_json(Entry.of(each) if isinstance(each, tuple) else each) for each in item)
    return [{name: part for name, part in record.items() if name in fields and part is not None} for record in records]


if TYPE_CHECKING:
    # A type checker sees the verbs of a memory and a seat.
    class _MemoryVerbs(Memory, _Verbs):
        pass

else:
    _MemoryVerbs = _Verbs


class RemoteMemory(_MemoryVerbs):
    """A memory that another process serves. The token determines the actor, the project and the rights."""

    def __init__(self, line: _Line) -> None:
        _Verbs.__init__(self, line, "memory", {})
        said = line.ask("GET", "/v1/whoami", {})
        self.actor = Actor.parse(said["actor"])
        self.scope = Scope(org=said["org"], project=said["project"])
        self.profile = str(said["profile"])

    def seat(  # type: ignore[override]
        self, *, worktree: str | None = None, task: str | None = None, session: str | None = None
    ) -> Seat:
        """A seat of the token's actor in its project. It has those verbs of a seat that are served."""
        named = {"worktree": worktree, "task": task, "session": session}
        place = {name: part for name, part in named.items() if part is not None}
        seat: Any = _Verbs(self._line, "seat", place)
        seat.actor, seat.scope = self.actor, Scope(self.scope.org, self.scope.project, worktree, task)
        return seat  # type: ignore[no-any-return]

    def follow(
        self, *, worktree: str | None = None, task: str | None = None, after: int | None = None
    ) -> Iterator[Event]:
        """Yield new events of the log, from now on or after a position.

        Raises `StoreUnavailable` when the server ends. Continue after the last event's position.
        """
        named = {"worktree": worktree, "task": task, "after": after}
        query = {name: str(part) for name, part in named.items() if part is not None}
        connection = self._line.opened()
        try:
            stream = self._line.begin(connection, "GET", "/v1/events", query, None, Accept="text/event-stream")
            if stream.status != 200:
                raise _error_of(json.loads(stream.read())["error"])
            for line in stream:
                if line.startswith(b"data: "):
                    yield from_json(kind_of("Event"), json.loads(line[len(b"data: ") :]))
        except (OSError, HTTPException) as error:
            raise self._line._lost(error) from None
        finally:
            connection.close()

    def close(self, *, indexes: bool | None = None) -> None:  # noqa: ARG002 - the server looks after its index
        """Close the connection of this thread. The served memory stays open."""
        self._line.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

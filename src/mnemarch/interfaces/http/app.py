"""The HTTP server: a route for each verb of the table, and routes for health, metrics and the stream of the log.

A route is `POST /v1/OWNER/VERB`. Its parameters are a JSON object in the body, since addresses end up in logs. The
token alone decides actor, org and project; worktree, task and session come from the query.
"""

from __future__ import annotations

import json
import time
from contextlib import ExitStack, contextmanager
from functools import partial
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

from anyio import CapacityLimiter, fail_after, sleep, to_thread
from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event
from jsonschema import Draft202012Validator
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.exceptions import HTTPException

from mnemarch import __version__, errors
from mnemarch.errors import InvalidInput, MnemarchError, NotAllowed, NotFound, StoreUnavailable
from mnemarch.interfaces.cli import carried
from mnemarch.interfaces.command import bound
from mnemarch.model.caller import Actor, Scope
from mnemarch.model.value import Frozen
from mnemarch.services.overview import LOOK_S, NewsOf
from mnemarch.verbs.types import REPORT, Verb, help_of, kind_of, read_all, schema_of, schema_of_kind, served, to_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from mnemarch.interfaces.http import Token, Tokens
    from mnemarch.memory import Memory
    from mnemarch.seat import Seat

BODY_BYTES_MAX = 8_000_000
_BODY_S_MAX = 30.0
# Numbers of threads. Recalls compute, so more threads would only compete for the interpreter. Writes wait for the
# store, and one thread commits for all waiting writes.
_READING, _WRITING = 8, 64
_FOLLOWERS_MAX = 64
_POLL_S = 0.25
_ALIVE_S = 15.0
_PAGE = 200
_NAME_CHARS_MAX = 1_000
_ERROR = {"$ref": "#/components/schemas/Error"}
STATUS_OF: dict[type[Exception], int] = {
    InvalidInput: 400,
    NotAllowed: 403,
    NotFound: 404,
    errors.Conflict: 409,
    errors.AnalystFailed: 422,
    StoreUnavailable: 503,
    errors.StoreError: 500,
}


class Refusal(Exception):
    """A request that is refused before a verb is called, with a status and an error."""

    def __init__(self, status: int, error: MnemarchError, **headers: str) -> None:
        super().__init__(error.message)
        self.status, self.error, self.headers = status, error, headers


class _Place(Frozen):
    """The memory and the seat that a verb is called on."""

    memory: Memory
    seat: Seat


class Server:
    """Serves one memory. Streams end once `closing` returns True. `hosts` are the allowed host names (empty: all)."""

    def __init__(
        self,
        memory: Memory,
        tokens: Tokens,
        *,
        rate: float,
        hosts: tuple[str, ...] = (),
        closing: Callable[[], bool] = lambda: False,
    ) -> None:
        self.memory, self.tokens, self._rate, self._hosts, self.closing = memory, tokens, rate, hosts, closing
        self._budgets: dict[str, tuple[float, float]] = {}
        registry = self._registry = CollectorRegistry()
        self._requests = Counter("mnemarch_requests", "Requests answered.", ["verb", "status"], registry=registry)
        self._seconds = Histogram("mnemarch_request_seconds", "Time to answer.", ["verb"], registry=registry)
        self._followers = Gauge("mnemarch_followers", "Streams of the log that are open.", registry=registry)
        self._following = 0
        self._threads = {True: CapacityLimiter(_READING), False: CapacityLimiter(_WRITING)}
        self._schemas: dict[str, Any] = {"Error": _error_schema()}

    def app(self) -> FastAPI:
        app = FastAPI(title="Mnemarch", version=__version__, docs_url=None, redoc_url=None)
        responses: dict[int | str, Any] = {
            code: {"description": words, "content": {"application/json": {"schema": _ERROR}}}
            for code, words in (("4XX", "refused, and why"), ("5XX", "trouble of the server or its store"))
        }
        app.add_exception_handler(Exception, self._failed)
        for kind in (MnemarchError, Refusal, HTTPException, RequestValidationError):
            app.add_exception_handler(kind, self._failed)
        bearer: dict[str, Any] = {"security": [{"token": []}]}
        for verb in served().values():
            says, _ = help_of(verb.name)
            schema = schema_of_kind(kind_of(verb.gives), self._schemas)
            app.add_api_route(
                verb.path,
                self._endpoint(verb),
                methods=["POST"],
                summary=says.partition(". ")[0],
                description=f"{says} It needs a token of the profile {verb.needs} or wider.",
                operation_id=verb.name,
                tags=[verb.name.partition(".")[0]],
                responses=responses | {200: {"content": {"application/json": {"schema": schema}}}},
                openapi_extra=bearer | {"requestBody": _body(schema_of(verb.sent))},
                response_class=Response,
            )
        by_hand: tuple[tuple[str, Callable[..., Any], str, dict[str, Any]], ...] = (
            ("/healthz", self._health, "application/json", {}),
            ("/metrics", self._metrics, "text/plain", bearer),
            ("/v1/whoami", self._whoami, "application/json", bearer),
            ("/v1/events", self._events, "text/event-stream", bearer),
        )
        for path, endpoint, media, extra in by_hand:
            answers = responses | {200: {"content": {media: {}}}}
            kinds: dict[str, Any] = {"responses": answers, "response_class": Response, "openapi_extra": extra}
            app.add_api_route(path, endpoint, methods=["GET"], **kinds)
        app.openapi = partial(self._openapi, app)  # type: ignore[method-assign]
        return app

    def _openapi(self, app: FastAPI) -> dict[str, Any]:
        if app.openapi_schema is None:
            described = get_openapi(title=app.title, version=app.version, routes=app.routes)
            parts = described.setdefault("components", {})
            parts["schemas"] = dict(sorted(self._schemas.items()))
            parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            app.openapi_schema = described
        return app.openapi_schema

    # Tokens

    def _token(self, request: Request, profile: str) -> Token:
        """The token of a request. Raises if it is missing or invalid, has too narrow a profile, or exceeds its rate."""
        if self._hosts and request.url.hostname not in self._hosts:
            raise Refusal(421, InvalidInput("The request names another host.", hint=f"Call {self._hosts[0]}."))
        scheme, _, text = request.headers.get("authorization", "").partition(" ")
        token = self.tokens.named_by(text.strip()) if scheme.lower() == "bearer" else None
        if token is None:
            hint = "Send Authorization: Bearer TOKEN; mnemarch token create makes one on the server."
            error = NotAllowed("No valid token came with the request.", rule="token", hint=hint)
            raise Refusal(401, error, **{"WWW-Authenticate": "Bearer"})
        if not token.allows(profile):
            raise NotAllowed(
                f"Token {token.id} has the profile {token.profile}, but this needs {profile}.",
                rule="token",
                hint=f"Ask for a token with --profile {profile}.",
            )
        self._spend(token.id)
        return token

    def _spend(self, id: str) -> None:
        """Apply the rate limit: each token has a number of requests per second, and a burst of twice that number."""
        now = time.monotonic()
        left, at = self._budgets.get(id, (2 * self._rate, now))
        left = min(2 * self._rate, left + (now - at) * self._rate)
        self._budgets[id] = (max(0.0, left - 1), now)
        if left < 1:
            hint = f"Wait a second: a token has {self._rate:g} requests a second."
            error = StoreUnavailable("Too many requests with this token.", hint=hint)
            raise Refusal(429, error, **{"Retry-After": "1"})

    def _seat(self, token: Token, worktree: str | None, task: str | None, session: str | None) -> Seat:
        scope = Scope(org=token.org, project=token.project, worktree=worktree, task=task)
        return self.memory.seat(Actor.parse(token.actor), scope, session=session)

    # The routes

    def _endpoint(self, verb: Verb) -> Callable[..., Any]:
        validator, profile = Draft202012Validator(schema_of(verb.sent)), verb.needs

        def work(token: Token, body: dict[str, Any], *where: str | None) -> bytes:
            given = read_all(verb.name, verb.sent, body)
            # `read_all` also takes numbers as texts, for the shell. A program has to send the right JSON type.
            problem = next(validator.iter_errors(body), None)
            if problem is not None:
                place = "/".join(map(str, problem.absolute_path))
                raise InvalidInput(f"{place}: {problem.message[:500]}.", hint="See /openapi.json.")
            with ExitStack() as files:
                for each in verb.sent:
                    if each.type is REPORT and each.name in given:
                        given[each.name] = files.enter_context(_report_file(given[each.name]))
                return _written(bound(verb, _Place(self.memory, self._seat(token, *where)), given)())

        async def endpoint(
            request: Request,
            worktree: str | None = Query(None, min_length=1, max_length=_NAME_CHARS_MAX),
            task: str | None = Query(None, min_length=1, max_length=_NAME_CHARS_MAX),
            session: str | None = Query(None, min_length=1, max_length=_NAME_CHARS_MAX),
        ) -> Response:
            request.state.verb = verb.name
            began = time.monotonic()
            token = self._token(request, profile)
            body = _parsed(await _body_of(request))
            asked = partial(work, token, body, worktree, task, session)
            content = await to_thread.run_sync(asked, limiter=self._threads[verb.profile == "read"])
            self._seconds.labels(verb.name).observe(time.monotonic() - began)
            self._requests.labels(verb.name, "200").inc()
            return Response(content, media_type="application/json")

        return endpoint

    async def _health(self) -> Response:
        """Whether the memory can be read."""
        nobody = self.memory.seat(Actor.agent("healthz"), Scope(org="mnemarch-health"))
        await to_thread.run_sync(partial(nobody.events, limit=1))
        return Response(_written({"ok": True}), media_type="application/json")

    async def _metrics(self, request: Request) -> Response:
        """Counts and times, as Prometheus reads them."""
        self._token(request, "read")
        return Response(generate_latest(self._registry), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _whoami(self, request: Request) -> Response:
        """What the token says: as whom, where, with which profile, until when."""
        token = self._token(request, "read")
        return Response(_written(token.shown | {"version": __version__}), media_type="application/json")

    async def _events(
        self,
        request: Request,
        worktree: str | None = Query(None, min_length=1, max_length=_NAME_CHARS_MAX),
        task: str | None = Query(None, min_length=1, max_length=_NAME_CHARS_MAX),
        after: int | None = Query(None, ge=0, lt=2**63),
    ) -> Response:
        """Follow the log as server-sent events, from now on, or after the position that Last-Event-ID names."""
        token = self._token(request, "read")
        seat = self._seat(token, worktree, task, None)
        last = request.headers.get("last-event-id", "")
        position = int(last) if last.isascii() and last.isdigit() and len(last) < 19 else after
        if position is None:
            newest = await to_thread.run_sync(partial(seat.events, limit=1))
            position = newest[0].position if newest else 0
        if self._following >= _FOLLOWERS_MAX:
            hint = "Close one of them, or try again later."
            raise Refusal(503, StoreUnavailable(f"{_FOLLOWERS_MAX} streams are open.", hint=hint))
        return StreamingResponse(self._stream(seat, token, position), media_type="text/event-stream")

    async def _stream(self, seat: Seat, token: Token, position: int) -> AsyncIterator[bytes]:
        self._following += 1
        self._followers.inc()
        try:
            silent_s, news = _ALIVE_S, NewsOf(seat)
            # A revoked or expired token ends the stream too.
            while not self.closing() and self.tokens.is_valid(token):
                events = await to_thread.run_sync(partial(_news, seat, position))
                for event in events:
                    position, silent_s = event.position, 0.0
                    yield format_sse_event(data_str=_written(event).decode(), event=str(event.type), id=str(position))
                if silent_s >= _ALIVE_S:
                    silent_s = 0.0
                    yield format_sse_event(comment="here")
                waited_s = 0.0
                while len(events) < _PAGE and waited_s < _POLL_S and not news.has_come():
                    await sleep(LOOK_S)
                    waited_s += LOOK_S
                silent_s += waited_s
        finally:
            self._following -= 1
            self._followers.dec()

    async def _failed(self, request: Request, failure: Exception) -> Response:
        """Answer every failure in one form. For a bug, uvicorn also writes the trace to stderr."""
        headers: dict[str, str] = {}
        error: MnemarchError
        if isinstance(failure, Refusal):
            status, error, headers = failure.status, failure.error, failure.headers
        elif isinstance(failure, MnemarchError):
            error = failure
            status = next(code for kind, code in STATUS_OF.items() if isinstance(failure, kind))
        elif isinstance(failure, RequestValidationError):
            wrong = failure.errors()[0]
            says = f"{wrong['loc'][-1]}: {wrong['msg']}."
            status, error = 400, InvalidInput(says, hint="See /openapi.json.")
        elif isinstance(failure, HTTPException):
            status = failure.status_code
            kind = NotFound if status == 404 else InvalidInput
            error = kind(f"{failure.detail}: {request.method} {request.url.path}.", hint="See /openapi.json.")
            headers = dict(failure.headers or {})
        else:
            status, error = 500, StoreUnavailable("The server failed.", hint="See its log; please report it.")
        self._requests.labels(getattr(request.state, "verb", "other"), str(status)).inc()
        told = {"type": type(error).__name__, "message": error.message, "hint": error.hint} | carried(error)
        return Response(_written({"error": told}), status, headers, media_type="application/json")


@contextmanager
def _report_file(text: str) -> Iterator[str]:
    """The path of a private temporary file with this text, removed at the end of the context."""
    with NamedTemporaryFile("w", encoding="utf-8", suffix=".report") as file:
        file.write(text)
        file.flush()
        yield file.name


def _body(schema: dict[str, Any]) -> dict[str, Any]:
    return {"required": bool(schema["required"]), "content": {"application/json": {"schema": schema}}}


def _error_schema() -> dict[str, Any]:
    text = {"type": "string"}
    facts = {"type": "object", "properties": dict.fromkeys(("type", "message", "hint"), text)}
    facts["required"] = ["type", "message", "hint"]
    return {"type": "object", "properties": {"error": facts}, "required": ["error"]}


def _written(content: Any) -> bytes:
    return json.dumps(to_json(content), ensure_ascii=False, allow_nan=False).encode()


def _news(seat: Seat, position: int) -> list[Any]:
    """The next entries after a position. It reads the newest entry first, which is cheap if nothing is new."""
    newest = seat.events(limit=1)
    return seat.events(beyond=position, limit=_PAGE) if newest and newest[0].position > position else []


async def _body_of(request: Request) -> bytes:
    """The body. Raises if it exceeds the limit; a body that announces more bytes is not read."""
    said = request.headers.get("content-length", "0")
    too_long = Refusal(
        413, InvalidInput(f"The body has more than {BODY_BYTES_MAX:,} bytes.", hint="Send less at a time.")
    )
    if said.isdigit() and int(said[:20]) > BODY_BYTES_MAX:
        raise too_long
    body = bytearray()
    try:
        with fail_after(_BODY_S_MAX):
            async for part in request.stream():
                body += part
                if len(body) > BODY_BYTES_MAX:
                    raise too_long
    except TimeoutError:
        raise Refusal(408, InvalidInput("The body did not arrive in time.", hint="Send it at once.")) from None
    return bytes(body)


def _parsed(body: bytes) -> dict[str, Any]:
    """A JSON object of valid Unicode and finite numbers."""

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is not JSON")

    try:
        content = json.loads(body or b"{}", parse_constant=refuse)
        json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The body is not JSON: {error}.", hint='Send {"name": "value"}.') from None
    if not isinstance(content, dict):
        raise InvalidInput("The body is not a JSON object.", hint='Send {"name": "value"}.')
    return content

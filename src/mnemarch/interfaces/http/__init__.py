"""HTTP. Takes: requests with a token. Gives: the verbs that the token allows; the log as a stream. Never: has rules of
its own.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from secrets import compare_digest

from mnemarch import user
from mnemarch.errors import InvalidInput, NotAllowed, NotFound, StoreUnavailable
from mnemarch.files import locked, read_small, write_private
from mnemarch.interfaces.command import Answer, Call, Command
from mnemarch.interfaces.text import clean, table
from mnemarch.interfaces.tools import PROFILES
from mnemarch.model.caller import Actor, ActorKind, Scope
from mnemarch.model.stamps import blake2b
from mnemarch.model.value import Frozen
from mnemarch.policy.admission import checked_name
from mnemarch.policy.permissions import require_outsider
from mnemarch.verbs.types import ACTOR, FLAG, NUMBER, WORDS, Parameter

_PUBLIC = ("id", "actor", "org", "project", "profile", "expires_at")
_FILE_BYTES_MAX = 1_000_000
_WAIT_S_MAX = 5.0
_DAYS_MAX = 3_650
_BEGINNING = "mnm"
_LOOPBACK = "127.0.0.1"
_PORT = 8321
_DAYS = 90
_RATE = 100
_SHUTDOWN_S_MAX = 10
_HEADER_BYTES_MAX = 32_768
_KEEP_ALIVE_S = 30
_PORT_MAX = 65_535
_BACKLOG = 1_024
# The interval after which a computing thread yields the interpreter. A writer waits for it after each statement. With
# Python's default of 5 ms, a batch of writes waits longer than it works.
_SWITCH_S = 0.001


# `mnemarch serve` offers a memory to other machines and languages. `mnemarch token` manages access: each token has an
# actor, a project, a profile and an end
#
# Tokens are in the user's own configuration, outside every repository, so an agent that may write in a repository can't
# make itself one. Only a digest of each secret is stored.


class Token(Frozen):
    """One token: its actor, place, profile and end, and the digest of its secret."""

    id: str
    digest: str
    actor: str
    org: str
    project: str
    profile: str
    expires_at: str

    @property
    def shown(self) -> dict[str, str]:
        """The fields that may be shown: all but the digest."""
        return {name: getattr(self, name) for name in _PUBLIC}

    def allows(self, profile: str) -> bool:
        return PROFILES.index(self.profile) >= PROFILES.index(profile)

    def is_over(self, now: datetime) -> bool:
        return now >= datetime.fromisoformat(self.expires_at)


class Tokens:
    """The tokens of the memory in one folder. A change by another process is seen at the next request."""

    def __init__(self, folder: str, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        name = blake2b(os.path.realpath(folder).encode(errors="surrogateescape"), digest_size=16).hexdigest()
        self._path = user.path_of(os.path.join("tokens", f"{name}.json"))
        self._clock = clock
        self._read: tuple[object, dict[str, Token]] = (None, {})

    def create(self, actor: Actor, scope: Scope, profile: str, days: int) -> tuple[Token, str]:
        """Make a token. Returns it with its text, which is not stored anywhere."""
        require_outsider(actor)
        checked_name(actor.id, "an actor's id")
        if profile not in PROFILES:
            raise InvalidInput(f"There is no profile {profile!r}.", hint=f"Use {', '.join(PROFILES)}.")
        if not 0 < days <= _DAYS_MAX:
            raise InvalidInput(f"A token lasts 1 to {_DAYS_MAX} days, not {days}.", hint="Write --days 90, say.")
        if scope.project is None:
            raise InvalidInput("A token needs a project.", hint="Add --project NAME.")
        id, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
        token = Token(
            id=id,
            digest=sha256(secret.encode()).hexdigest(),
            actor=str(actor),
            org=scope.org,
            project=scope.project,
            profile=profile,
            expires_at=(self._clock() + timedelta(days=days)).isoformat(),
        )
        self._change(lambda tokens: tokens | {id: token})
        return token, f"{_BEGINNING}_{id}_{secret}"

    def revoke(self, id: str) -> Token:
        token = self.all().get(id)
        if token is None:
            raise NotFound(f"There is no token {id!r} for this memory.", hint="mnemarch token list shows them.")
        self._change(lambda tokens: {name: each for name, each in tokens.items() if name != id})
        return token

    def named_by(self, text: str) -> Token | None:
        """The valid token with this text, or None."""
        beginning, _, rest = text.partition("_")
        id, _, secret = rest.partition("_")
        token = self.all().get(id) if beginning == _BEGINNING else None
        digest = sha256(secret.encode(errors="replace")).hexdigest()
        is_it = token is not None and compare_digest(digest, token.digest) and self.is_valid(token)
        return token if is_it else None

    def is_valid(self, token: Token) -> bool:
        """Whether a token is neither revoked nor expired."""
        return self.all().get(token.id) == token and not token.is_over(self._clock())

    def all(self) -> dict[str, Token]:
        """All tokens that were not revoked, by id."""
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            return {}
        state = (status.st_mtime_ns, status.st_size, status.st_ino)
        if self._read[0] != state:
            try:
                rows = json.loads(read_small(self._path, _FILE_BYTES_MAX))
                self._read = state, {row["id"]: Token(**row) for row in rows}
            except (OSError, ValueError, TypeError, KeyError) as error:
                raise StoreUnavailable(
                    f"{self._path} can't be read: {error}.", hint="Remove it, and create the tokens again."
                ) from None
        return self._read[1]

    def _change(self, change: Callable[[dict[str, Token]], dict[str, Token]]) -> None:
        """Apply a change to the tokens, drop the expired ones, and write the file."""
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        with locked(f"{self._path}.lock", _WAIT_S_MAX):
            now = self._clock()
            left = [token for token in change(self.all()).values() if not token.is_over(now)]
            rows = [{name: getattr(token, name) for name in Token.__match_args__} for token in left]
            write_private(self._path, json.dumps(rows, indent=1).encode())


# Commands


def _create(call: Call) -> Answer:
    actor: Actor = call.options.who
    # A person's word is evidence, so only a person makes tokens for people and orchestrators.
    if actor.kind is not ActorKind.AGENT and call.actor.kind is not ActorKind.HUMAN:
        raise NotAllowed(
            f"{call.actor} may not make a token for {actor} (rule R4: a person names people and orchestrators).",
            rule="R4",
            hint="The person types it in a terminal of their own.",
        )
    token, text = Tokens(call.home.folder).create(actor, call.seat.scope, call.options.profile, call.options.days)
    until = token.expires_at[:10]
    shown = f"{text}\ntoken {token.id} is for {clean(actor)} in {clean(token.project)}, {token.profile}, until {until}."
    return Answer(token.shown | {"token": text}, lambda: f"{shown} It is not shown again.")


def _list(call: Call) -> Answer:
    rows = [token.shown for token in Tokens(call.home.folder).all().values()]
    cells = [[*row.values()] for row in rows]
    return Answer(rows, lambda: table(_PUBLIC, cells, "There is no token for this memory."))


def _revoke(call: Call) -> Answer:
    token = Tokens(call.home.folder).revoke(call.options.id)
    return Answer(token.shown, lambda: f"revoked  {token.id}, which was for {clean(token.actor)}")


def _serve(call: Call) -> Answer:
    try:
        import fastapi  # noqa: F401 - only whether it is there
        import jsonschema  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn
    except ImportError:
        raise InvalidInput(
            "The server needs packages that are not installed.", hint="Install them: pip install 'mnemarch[server]'"
        ) from None
    from mnemarch.interfaces.hooks import serving
    from mnemarch.interfaces.http.app import Server

    options = call.options
    hosts = () if options.expose else (options.host, _LOOPBACK, "localhost", "::1")
    tokens = Tokens(call.home.folder)
    with (
        _listening(options.host, options.port, is_exposed=options.expose) as listening,
        serving(call.home.folder, call.url) as is_relay,
    ):
        server = Server(call.memory, tokens, rate=options.rate, hosts=hosts)
        running = uvicorn.Server(
            uvicorn.Config(
                server.app(),
                log_level="warning",
                access_log=False,  # Addresses may have parts that must not get into a log.
                server_header=False,
                proxy_headers=False,
                http="h11",
                ws="none",
                h11_max_incomplete_event_size=_HEADER_BYTES_MAX,
                timeout_keep_alive=_KEEP_ALIVE_S,
                timeout_graceful_shutdown=_SHUTDOWN_S_MAX,
            )
        )
        server.closing = lambda: running.should_exit
        # uvicorn raises the signals again at its end. This handler keeps the process alive to close the memory.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, running.handle_exit)
        address = f"[{options.host}]" if ":" in options.host else options.host
        known = tokens.all()
        says = f"tokens: {len(known)}" if known else "no token yet: mnemarch token create agent:NAME"
        says += "; hooks are answered" if is_relay else "; hooks are not answered, or by another server"
        print(f"mnemarch serves http://{address}:{listening.getsockname()[1]}; {says}", file=sys.stderr, flush=True)
        sys.setswitchinterval(_SWITCH_S)
        running.run(sockets=[listening])
    return Answer(None, str, is_printed=True)


def _listening(host: str, port: int, *, is_exposed: bool) -> socket.socket:
    """The listening socket. It speaks plain HTTP, so other computers can reach it only if `is_exposed`."""
    from ipaddress import ip_address

    try:
        if not 0 <= port <= _PORT_MAX:
            raise OverflowError(f"a port is a number up to {_PORT_MAX}")
        place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, OverflowError) as error:
        raise InvalidInput(f"{host}:{port} is not an address: {error}.", hint="Write --host 127.0.0.1, say.") from None
    if not is_exposed and not ip_address(place[4][0]).is_loopback:
        raise InvalidInput(
            f"{host} can be reached from other computers, and tokens would travel in plain text.",
            hint="Put a proxy with TLS before 127.0.0.1; or add --expose if the network is your own.",
        )
    try:
        listening = socket.create_server(place[4][:2], family=place[0], backlog=_BACKLOG)
        # Without this, an answer's body waits 40 ms for the acknowledgement of its head.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except (OSError, OverflowError) as error:
        raise InvalidInput(f"{host}:{port} can't be used: {error}.", hint="Write --port 0 for a free one.") from None


COMMANDS = {
    "serve": Command(
        _serve,
        (
            Parameter("host", WORDS, f"the address to listen on (default: {_LOOPBACK})", _LOOPBACK, metavar="ADDRESS"),
            Parameter("port", NUMBER, f"the port; 0 is a free one (default: {_PORT})", _PORT),
            Parameter("expose", FLAG, "let other computers connect, without encryption", False),
            Parameter("rate", NUMBER, f"how many requests a second a token may make (default: {_RATE})", _RATE),
        ),
        begins_memory=True,
    ),
    "token create": Command(
        _create,
        (
            Parameter("who", ACTOR, "the actor that it acts as, for example agent:NAME", metavar="KIND:ID"),
            Parameter("profile", WORDS, "what it may do: read, work (default) or admin", "work", metavar="NAME"),
            Parameter("days", NUMBER, f"how long it lasts (default: {_DAYS})", _DAYS),
        ),
        begins_memory=True,
    ),
    "token list": Command(_list, only_reads=True),
    "token revoke": Command(_revoke, (Parameter("id", WORDS, "the id that token list shows", metavar="TOKEN"),)),
}

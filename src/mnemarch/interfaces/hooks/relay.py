"""Hooks of a memory in PostgreSQL: a cold process can't open it in time, so it asks `mnemarch serve` by a local socket.

What is asked is the host's own payload, and the answer is what to print. Whoever may enter the user's state folder may
ask, as they may start a hook.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager, suppress

from mnemarch import user
from mnemarch.interfaces.hooks import hosts
from mnemarch.model.json_text import from_json, to_json
from mnemarch.model.stamps import blake2b
from mnemarch.model.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from mnemarch.interfaces.hooks.hosts import HookEvent
    from mnemarch.memory import Memory

_SOCKET, _LOCK = "socket", "serving"
_REQUEST_BYTES_MAX = 64 << 20
_PART_BYTES = 65_536
_WAIT_S_MAX = 10.0
# What a hook reads of its environment: a server has another.
_VARIABLES = ("CLAUDE_ENV_FILE", "MNEMARCH_ORG", "MNEMARCH_PROJECT", "MNEMARCH_WORKTREE", "MNEMARCH_TASK")
SILENT = (
    "Mnemarch: the memory of this repository is on PostgreSQL, and no local server answers its hooks, so nothing is"
    " recalled or recorded by itself. A person starts the server in this repository: mnemarch serve"
)


def place_of(folder: str) -> str:
    """Where hooks keep what they know, if the memory is not in its repository's folder. It says so by being there."""
    name = blake2b(os.path.realpath(folder).encode(errors="surrogateescape"), digest_size=8).hexdigest()
    return user.state_path_of(os.path.join("hooks", name))


def prepare(folder: str) -> str:
    """From now on the hooks of this repository look for a server."""
    place = place_of(folder)
    os.makedirs(place, mode=0o700, exist_ok=True)
    return place


# The side of the hook


def answer(event: HookEvent, folder: str) -> dict[str, Any] | None:
    """What the server says of an event; where none answers, what to start, once in a session."""
    place = place_of(folder)
    if not os.path.isdir(place):
        return None
    try:
        return _asked(place, event)
    except OSError:
        return hosts.answer(event, SILENT) if event.name == "start" else None


def _asked(place: str, event: HookEvent) -> dict[str, Any] | None:
    import _socket  # The half of `socket` in C: the other half takes longer than the answer.

    environ = {name: event.environ[name] for name in _VARIABLES if name in event.environ}
    request = {"host": event.host.name, "cwd": event.cwd, "session": event.session, "environ": environ}
    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        line.connect(os.path.join(place, _SOCKET))
        line.sendall(to_json(request | {"payload": dict(event.payload)}).encode())
        line.shutdown(_socket.SHUT_WR)
        parts = list(iter(lambda: line.recv(_PART_BYTES), b""))
    finally:
        line.close()
    return from_json(b"".join(parts).decode()) if parts else None


# The side of the server


@contextmanager
def serving(folder: str, memory: Callable[[], Memory]) -> Iterator[bool]:
    """Answer the hooks of a repository while this lasts; tells whether, since another server may do so already."""
    from socket import SHUT_WR
    from socketserver import StreamRequestHandler, ThreadingMixIn, UnixStreamServer
    from threading import Thread

    from mnemarch.files import locked_if_free

    place = prepare(folder)
    path = os.path.join(place, _SOCKET)
    with ExitStack() as stack:
        if not stack.enter_context(locked_if_free(os.path.join(place, _LOCK))):
            yield False
            return
        opened = stack.enter_context(memory())

        class Handler(StreamRequestHandler):
            timeout = _WAIT_S_MAX

            def handle(self) -> None:
                request = from_json(self.rfile.read(_REQUEST_BYTES_MAX).decode())
                _perform(request, folder, place, opened, self._say)

            def _say(self, told: dict[str, Any]) -> None:
                """The hook prints it and ends; what is to be recorded is recorded after that."""
                self.wfile.write(to_json(told).encode())
                with suppress(OSError):
                    self.request.shutdown(SHUT_WR)

        class Server(ThreadingMixIn, UnixStreamServer):
            def handle_error(self, *_: Any) -> None:
                """Nobody is told: a hook that gets no answer is silent."""

        try:
            with suppress(FileNotFoundError):
                os.remove(path)
            server = stack.enter_context(Server(path, Handler))
        except OSError:  # A home with a very long name, or a file system without sockets.
            yield False
            return
        stack.callback(os.remove, path)
        thread = Thread(target=server.serve_forever, name="hooks")
        thread.start()
        stack.callback(thread.join)
        stack.callback(server.shutdown)
        yield True


def _perform(
    request: Mapping[str, Any], folder: str, place: str, memory: Memory, say: Callable[[dict[str, Any]], None]
) -> None:
    from mnemarch.code.home import home_of
    from mnemarch.interfaces.hooks import events
    from mnemarch.interfaces.hooks.sessions import trouble

    host, payload = hosts.HOSTS[request["host"]], request["payload"]
    event = hosts.read(host, payload, request["cwd"], request["environ"])
    if event is None:
        return
    home = home_of(event.cwd)
    if home.folder != folder:
        return
    try:
        events.perform(replace(event, session=request["session"]), home, memory, place, say)
    except Exception as error:  # noqa: BLE001 - as in a process of its own
        trouble(place, f"{host.name} {event.name}: {type(error).__name__}: {error}")

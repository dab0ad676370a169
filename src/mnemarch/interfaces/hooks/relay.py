"""Hooks that a running server of this repository answers: the MCP server of a session, or `mnemarch serve`.

A server has everything loaded, so a hook that asks it costs little more than starting Python. It searches by meaning,
too, and it reaches PostgreSQL, which a cold process can't open in time. What is asked is the host's own payload, and
the answer is what to print. Whoever may enter the user's state folder may ask, as they may start a hook.
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
    from collections.abc import Iterator, Mapping
    from typing import Any

    from mnemarch.interfaces.hooks.events import Say
    from mnemarch.interfaces.hooks.hosts import HookEvent
    from mnemarch.memory import Memory

_SOCKET, _LOCK = "socket", "serving"
_REQUEST_BYTES_MAX = 64 << 20
_PART_BYTES = 65_536
# A hook that stalls while it asks holds up the end of a server for so long.
_STALLED_S_MAX = 2.0
# A server that says it has an event is waited for; one that hangs says nothing, and the hook sees to it itself.
_HAS_IT = b" "
# Where no hook can, a busy server gets more time.
_SILENCE_S_MAX, _BUSY_S_MAX = 0.5, 3.0
_POLL_S = 0.1
# What a hook reads of its environment: a server has another.
_VARIABLES = ("CLAUDE_ENV_FILE", *(f"MNEMARCH_{name}" for name in ("STORE", "ORG", "PROJECT", "WORKTREE", "TASK")))
_NO_FILE = (0, 0)
SILENT = (
    "Mnemarch: the memory of this repository is on PostgreSQL, and no local server answers its hooks, so nothing is"
    " recalled or recorded by itself. A person starts the server in this repository: mnemarch serve"
)


def place_of(folder: str) -> str:
    """Where a repository's server is found; hooks of PostgreSQL also keep what they know there."""
    name = blake2b(os.path.realpath(folder).encode(errors="surrogateescape"), digest_size=8).hexdigest()
    return user.state_path_of(os.path.join("hooks", name))


def prepare(folder: str) -> str:
    """From now on the hooks of this repository look for a server."""
    place = place_of(folder)
    os.makedirs(place, mode=0o700, exist_ok=True)
    return place


# The side of the hook


def answer(event: HookEvent, folder: str) -> dict[str, Any] | None:
    """What a server says of an event that no hook can see to itself; without one, what to start, once in a session."""
    if not os.path.isdir(place_of(folder)):
        return None
    is_done, told = asked(event, folder, _BUSY_S_MAX)
    if is_done or event.name != "start":
        return told
    from mnemarch import checkout

    url = event.environ.get("MNEMARCH_STORE") or checkout.load(folder).store.url
    # A server that found no memory left its place, too.
    return hosts.answer(event, SILENT) if url.startswith("postgres") else None


def asked(event: HookEvent, folder: str, patience_s: float = _SILENCE_S_MAX) -> tuple[bool, dict[str, Any] | None]:
    """Whether a server saw to an event, and what it says; it must serve the memory that the hook would use."""
    import _socket  # The half of `socket` in C: the other half takes longer than the answer.

    environ = {name: event.environ[name] for name in _VARIABLES if name in event.environ}
    request: dict[str, Any] = {"host": event.host.name, "cwd": event.cwd, "session": event.session}
    request |= {"environ": environ, "payload": dict(event.payload)}
    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    told = b""
    try:
        line.settimeout(patience_s)
        line.connect(os.path.join(place_of(folder), _SOCKET))
        line.sendall(to_json(request).encode())
        line.shutdown(_socket.SHUT_WR)
        if line.recv(len(_HAS_IT)):
            line.settimeout(None)
            told = b"".join(iter(lambda: line.recv(_PART_BYTES), b""))
    except OSError:
        told = b""
    finally:
        line.close()
    return bool(told), from_json(told.decode()) if told else None


# The side of the server


@contextmanager
def serving(folder: str, url: str) -> Iterator[bool]:
    """Answer the hooks of a repository while this lasts; tells whether, since another server may do so already."""
    from socketserver import ThreadingMixIn, UnixStreamServer
    from threading import Thread

    from mnemarch.files import locked_if_free

    class Server(ThreadingMixIn, UnixStreamServer):
        def handle_error(self, *_: Any) -> None:
            """Nobody is told: a hook that gets no answer sees to the event itself, or is silent."""

    with ExitStack() as stack:
        place = prepare(folder)
        path = os.path.join(place, _SOCKET)
        if not stack.enter_context(locked_if_free(os.path.join(place, _LOCK))):
            yield False
            return
        performer = _Performer(folder, url)
        stack.callback(performer.close)
        try:
            _remove(path)
            server = stack.enter_context(Server(path, performer.handler()))
        except OSError:  # A home with a very long name, or a file system without sockets.
            yield False
            return
        stack.callback(_remove, path)
        thread = Thread(target=server.serve_forever, args=[_POLL_S], name="hooks")
        thread.start()
        stack.callback(thread.join)
        stack.callback(server.shutdown)
        yield True


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):  # The first time; or somebody cleared the folder.
        os.remove(path)


class _Performer:
    """Performs the events of one repository, those of a session in their order."""

    def __init__(self, folder: str, url: str) -> None:
        from collections import defaultdict
        from threading import Lock

        from mnemarch import checkout
        from mnemarch.interfaces.hook import local_place

        self._folder, self._url = folder, url
        self._is_remote = bool(url) and not url.startswith("file:")
        self._place = place_of(folder) if self._is_remote else local_place(folder)
        self._settings = checkout.load(folder)
        self._opening = Lock()
        self._memory: Memory | None = None
        self._file = _NO_FILE
        self._turns: dict[str, Any] = defaultdict(Lock)

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()

    def handler(self) -> Any:
        """How a connection is handled: one event, one answer."""
        from socket import SHUT_WR
        from socketserver import StreamRequestHandler

        performer = self

        class Handler(StreamRequestHandler):
            timeout = _STALLED_S_MAX

            def handle(self) -> None:
                self._is_answered = False
                request = from_json(self.rfile.read(_REQUEST_BYTES_MAX).decode())
                self.wfile.write(_HAS_IT)  # It fails if the hook didn't wait: then it does it alone.
                if performer.sees_to(request, self._say):
                    self._say(None)

            def _say(self, told: dict[str, Any] | None) -> None:
                """The hook prints it and ends; what is to be recorded is recorded after that."""
                if not self._is_answered:
                    self._is_answered = True
                    self.wfile.write(to_json(told).encode())
                    with suppress(OSError):
                        self.request.shutdown(SHUT_WR)

        return Handler

    def sees_to(self, request: Mapping[str, Any], say: Say) -> bool:
        """Do what an event asks for, and tell whether; it is left to the hook if settings changed meanwhile."""
        from mnemarch.code.home import home_of
        from mnemarch.interfaces.hooks import events
        from mnemarch.interfaces.hooks.sessions import trouble

        host, payload = hosts.HOSTS[request["host"]], request["payload"]
        event = hosts.read(host, payload, request["cwd"], request["environ"])
        home = home_of(event.cwd) if event is not None else None
        if event is None or home is None or home.folder != self._folder or not self._is_meant(request):
            return False
        memory = self._opened()  # Where that fails, the hook finds out why.
        with self._turns[request["session"]]:
            try:
                events.perform(replace(event, session=request["session"]), home, memory, self._place, say)
            except Exception as error:  # noqa: BLE001 - as in a process of its own
                trouble(self._place, f"{host.name} {event.name}: {type(error).__name__}: {error}")
        return True

    def _is_meant(self, request: Mapping[str, Any]) -> bool:
        """Whether the hook would use the same memory, with the settings that it was opened with."""
        from mnemarch import checkout

        settings = checkout.load(self._folder)
        if self._url != (request["environ"].get("MNEMARCH_STORE") or settings.store.url):
            return False
        # Where there is no file, there is no memory, and none is begun.
        return self._is_remote or (self._file in (_NO_FILE, self._identity()) and settings == self._settings)

    def _identity(self) -> tuple[int, int]:
        """Which file the memory is; a folder that was deleted and made again has another."""
        file = os.stat(os.path.join(self._place, "memory.db"))
        return file.st_dev, file.st_ino

    def _opened(self) -> Memory:
        """The memory, opened for the first event."""
        from mnemarch.wiring import open_for_hooks

        with self._opening:
            if self._memory is None:
                memory = open_for_hooks(self._folder, self._settings, self._url, by_meaning=True)
                self._file = _NO_FILE if self._is_remote else self._identity()
                self._memory = memory
            return self._memory

"""Hooks. Takes: what a coding agent's host says of one event. Gives: what the agent should know, in the host's words.

Never: fails, waits or asks.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # The half of `signal` in C: the other half takes a tenth of the time.
import os
import sys
from contextlib import ExitStack, contextmanager, suppress

from mnemarch import user
from mnemarch.interfaces.hooks import hosts
from mnemarch.model.json_text import from_json, to_json
from mnemarch.model.stamps import blake2b
from mnemarch.model.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from mnemarch.code.home import Home
    from mnemarch.interfaces.hooks.events import Say
    from mnemarch.interfaces.hooks.hosts import HookEvent
    from mnemarch.memory import Memory

    Timer = Callable[[float, str, str], None]

_STDIN_BYTES_MAX = 32 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OTHER_HOST = "--host="
# The limit until the settings are read, and the limit at the end of a session, where hosts wait for about a second.
_SECONDS_MAX = 8.0
_SECONDS_AT_END = 1.2
# The agent waits for the hook after a tool call, so new units are indexed at the end of the turn.
_INDEXES = {"after_tool": False, "stop": True}
_SOCKET, _LOCK = "socket", "serving"
_REQUEST_BYTES_MAX = 64 << 20
_PART_BYTES = 65_536
# A stalled hook delays the end of a server by at most this long.
_STALLED_S_MAX = 2.0
# The byte that the server sends when it has read the request. A hook that gets none handles the event itself.
_HAS_IT = b" "
# How long a hook waits for that byte, and how long if it can't handle the event itself.
_SILENCE_S_MAX, _BUSY_S_MAX = 0.5, 3.0
_POLL_S = 0.1
# The variables that a hook sends, since the server has another environment.
_VARIABLES = ("CLAUDE_ENV_FILE", *(f"MNEMARCH_{name}" for name in ("STORE", "ORG", "PROJECT", "WORKTREE", "TASK")))
_NO_FILE = (0, 0)
SILENT = (
    "Mnemarch: the memory of this repository is on PostgreSQL, and no local server answers its hooks, so nothing is"
    " recalled or recorded automatically. A person starts the server in this repository: mnemarch serve"
)


# `mnemarch hook`: reads one event of a coding agent from its host, handles it or asks a server, and prints the answer
#
# It always exits with 0 and in time. Errors go to a file in the memory's folder and nowhere else.


def run(argv: Sequence[str], *, is_timed: bool = True) -> int:
    """Read one event, handle it and print the answer in the host's form. Returns 0 in every case.

    If `is_timed`, the process exits with 0 when its time is over.
    """
    if sys.stdin is None or sys.stdin.isatty():
        print("A coding agent's host calls mnemarch hook. To set it up: mnemarch install", file=sys.stderr)
        return 0
    stop_after = _stop_after if is_timed else lambda *_: None
    stop_after(_SECONDS_MAX, "", "")
    with suppress(Exception):  # A host that sees an error may stop its agent.
        _run(_host_named(argv), stop_after)
    _signal.setitimer(_signal.ITIMER_REAL, 0)
    return 0


def _host_named(argv: Sequence[str]) -> str | None:
    words = [part for word in argv for part in (word.split("=", 1) if word.startswith(_OTHER_HOST) else [word])]
    return words[words.index("--host") + 1] if "--host" in words[:-1] else None


def _run(named: str | None, stop_after: Timer) -> None:
    content = sys.stdin.buffer.read(_STDIN_BYTES_MAX + 1)
    text = content.removeprefix(_BYTE_ORDER_MARK).decode(errors="replace").strip()
    payload = from_json(text) if len(content) <= _STDIN_BYTES_MAX else None
    if not isinstance(payload, dict):
        return
    event = hosts.read(hosts.host_of(named, payload, os.environ), payload, os.getcwd(), os.environ)
    if event is None or not os.path.isdir(event.cwd):
        return
    from mnemarch.code.home import home_of

    event = replace(event, session=event.session or f"{event.host.name}-{os.getppid()}")
    home = home_of(event.cwd)
    store = os.environ.get("MNEMARCH_STORE") or home.folder
    place = local_place(store)
    if not os.path.lexists(os.path.join(place, "memory.db")):
        _pass_on(event, home, stop_after)
        return
    try:
        if "MNEMARCH_STORE" not in os.environ:
            is_done, told = asked(event, home.folder)
            if is_done:
                _say(told)
                _export(event, place)
                return
        _perform(event, home, store, place, stop_after)
    except Exception as error:  # noqa: BLE001 - see above
        _tell_trouble(place, event, error)


def local_place(store: str) -> str:
    """The folder of this machine's own files, for the named memory or the memory in the settings."""
    from mnemarch.code.home import FOLDER

    folder = os.path.abspath(store)
    place = os.path.join(folder, FOLDER)
    is_file = store.startswith("file:")
    if os.path.lexists(os.path.join(place, "memory.db")) or not (is_file or os.path.exists(f"{folder}/mnemarch.toml")):
        return place
    from mnemarch import checkout

    url = store if is_file else checkout.load(folder).store.url
    if not url.startswith("file:"):
        return place
    return os.path.join(checkout.file_folder(url, os.getcwd() if is_file else folder), checkout.LOCAL)


def _perform(event: HookEvent, home: Home, store: str, place: str, stop_after: Timer) -> None:
    from mnemarch import checkout
    from mnemarch.interfaces.hooks import events
    from mnemarch.wiring import open_for_hooks

    is_file = store.startswith("file:")
    folder = os.getcwd() if is_file else os.path.abspath(store)
    config = checkout.load(folder)
    url = store if is_file else config.store.url
    if url and not url.startswith("file:"):
        _pass_on(event, home, stop_after)
        return
    memory = open_for_hooks(folder, config, url)
    # `open_for_hooks` has refused a memory that is not this user's.
    seconds = _SECONDS_AT_END if event.name == "end" else config.hook.seconds_max
    stop_after(min(seconds, _SECONDS_MAX), place, f"{event.host.name} {event.name}")
    try:
        events.perform(event, home, memory, place, _say)
        _export(event, place)
    finally:
        memory.close(indexes=_INDEXES.get(event.name))


def _pass_on(event: HookEvent, home: Home, stop_after: Timer) -> None:
    """Send the event to the server, for a memory that a hook can't open. Without a memory, nothing happens."""
    stop_after(_SECONDS_AT_END if event.name == "end" else _SECONDS_MAX, "", "")
    _say(answer(event, home.folder))
    _export(event, place_of(home.folder))


def _export(event: HookEvent, place: str) -> None:
    """Give the path of the test recorder to the host's commands, if the host takes variables for them."""
    if event.name == "start" and event.environ.get("CLAUDE_ENV_FILE"):
        from mnemarch.interfaces.hooks.sessions import Session

        Session(place, event.session, event.host.name).export_to(event.environ["CLAUDE_ENV_FILE"])


def _say(told: dict[str, Any] | None) -> None:
    if told is not None:
        print(to_json(told), flush=True)


def _stop_after(seconds: float, place: str, what: str) -> None:
    """Set a timer that ends this process, whatever it waits for. The store survives that."""

    def stop(*_: object) -> None:
        if place:
            from mnemarch.interfaces.hooks.sessions import trouble

            trouble(place, f"{what}: not done after {seconds:g} seconds")
        os._exit(0)

    _signal.signal(_signal.SIGALRM, stop)
    _signal.setitimer(_signal.ITIMER_REAL, max(seconds, 0.1))


def _tell_trouble(place: str, event: HookEvent, error: Exception) -> None:
    from mnemarch import checkout
    from mnemarch.interfaces.hooks.sessions import trouble

    # Nothing is written into a foreign folder.
    if checkout.foreign_memory(place) is None:
        trouble(place, f"{event.host.name} {event.name}: {type(error).__name__}: {error}")


# A running server of this repository answers hooks: the MCP server of a session, or `mnemarch serve`.
#
# A server has everything loaded, so a hook that asks it costs little more than starting Python. The server also
# searches by meaning, and it reaches PostgreSQL, which a cold process can't open in time. The hook sends the host's
# payload and prints the answer. Whoever may enter the user's state folder may ask the server; they could also start a
# hook.


def place_of(folder: str) -> str:
    """The folder of a repository's server socket. For a memory on PostgreSQL, it also has the hooks' session files."""
    name = blake2b(os.path.realpath(folder).encode(errors="surrogateescape"), digest_size=8).hexdigest()
    return user.state_path_of(os.path.join("hooks", name))


def prepare(folder: str) -> str:
    """Create that folder. Hooks look for a server only if it exists."""
    place = place_of(folder)
    os.makedirs(place, mode=0o700, exist_ok=True)
    return place


# Asking a server


def answer(event: HookEvent, folder: str) -> dict[str, Any] | None:
    """A server's answer to an event that the hook can't handle itself. Without a server, a notice once a session."""
    if not os.path.isdir(place_of(folder)):
        return None
    is_done, told = asked(event, folder, _BUSY_S_MAX)
    if is_done or event.name != "start":
        return told
    from mnemarch import checkout

    url = event.environ.get("MNEMARCH_STORE") or checkout.load(folder).store.url
    # The folder may be the remainder of a server that found no memory.
    return hosts.answer(event, SILENT) if url.startswith("postgres") else None


def asked(event: HookEvent, folder: str, patience_s: float = _SILENCE_S_MAX) -> tuple[bool, dict[str, Any] | None]:
    """Whether a server handled the event, and its answer. A server of another memory does not handle it."""
    import _socket  # The C part of `socket`: importing the rest takes longer than the answer.

    environ = {name: event.environ[name] for name in _VARIABLES if name in event.environ}
    request: dict[str, Any] = {"host": event.host.name, "cwd": event.cwd, "session": event.session}
    request |= {"environ": environ, "payload": dict(event.payload)}
    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    told = b""
    try:
        with suppress(OSError):
            line.settimeout(patience_s)
            line.connect(os.path.join(place_of(folder), _SOCKET))
            line.sendall(to_json(request).encode())
            line.shutdown(_socket.SHUT_WR)
            if line.recv(len(_HAS_IT)):
                line.settimeout(None)
                told = b"".join(iter(lambda: line.recv(_PART_BYTES), b""))
    finally:
        line.close()
    return bool(told), from_json(told.decode()) if told else None


# In the server's process


@contextmanager
def serving(folder: str, url: str) -> Iterator[bool]:
    """Answer the hooks of a repository in this context. Yields False if another server does, or no socket works."""
    from socketserver import ThreadingMixIn, UnixStreamServer
    from threading import Thread

    from mnemarch.files import locked_if_free

    class Server(ThreadingMixIn, UnixStreamServer):
        def handle_error(self, *_: Any) -> None:
            """Do nothing: a hook that gets no answer handles the event itself or stays silent."""

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
        except OSError:  # The path is too long for a socket, or the file system has none.
            yield False
            return
        stack.callback(_remove, path)
        thread = Thread(target=server.serve_forever, args=[_POLL_S], name="hooks")
        thread.start()
        stack.callback(thread.join)
        stack.callback(server.shutdown)
        yield True


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):  # There was no socket yet, or somebody cleared the folder.
        os.remove(path)


class _Performer:
    """Handles the events of one repository. Events of one session are handled in order."""

    def __init__(self, folder: str, url: str) -> None:
        from collections import defaultdict
        from threading import Lock

        from mnemarch import checkout

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
        """The handler class of a connection: one event, one answer."""
        from socket import SHUT_WR
        from socketserver import StreamRequestHandler

        performer = self

        class Handler(StreamRequestHandler):
            timeout = _STALLED_S_MAX

            def handle(self) -> None:
                self._is_answered = False
                request = from_json(self.rfile.read(_REQUEST_BYTES_MAX).decode())
                self.wfile.write(_HAS_IT)  # This fails if the hook gave up waiting: it handles the event itself.
                if performer.sees_to(request, self._say):
                    self._say(None)

            def _say(self, told: dict[str, Any] | None) -> None:
                """Send the answer, so that the hook prints it and ends. Recording continues after that."""
                if not self._is_answered:
                    self._is_answered = True
                    self.wfile.write(to_json(told).encode())
                    with suppress(OSError):
                        self.request.shutdown(SHUT_WR)

        return Handler

    def sees_to(self, request: Mapping[str, Any], say: Say) -> bool:
        """Handle an event and return True. Returns False for another memory or other settings: the hook handles it."""
        from mnemarch.code.home import home_of
        from mnemarch.interfaces.hooks import events
        from mnemarch.interfaces.hooks.sessions import trouble

        host, payload = hosts.HOSTS[request["host"]], request["payload"]
        event = hosts.read(host, payload, request["cwd"], request["environ"])
        home = home_of(event.cwd) if event is not None else None
        if event is None or home is None or home.folder != self._folder or not self._is_meant(request):
            return False
        memory = self._opened()  # If this fails, the hook opens the memory itself and reports the error.
        with self._turns[request["session"]]:
            try:
                events.perform(replace(event, session=request["session"]), home, memory, self._place, say)
            except Exception as error:  # noqa: BLE001 - as in a process of its own
                trouble(self._place, f"{host.name} {event.name}: {type(error).__name__}: {error}")
        return True

    def _is_meant(self, request: Mapping[str, Any]) -> bool:
        """Whether the hook would use the same memory with the same settings."""
        from mnemarch import checkout

        settings = checkout.load(self._folder)
        if self._url != (request["environ"].get("MNEMARCH_STORE") or settings.store.url):
            return False
        # `_identity` fails without a file: there is no memory then, and a hook creates none.
        return self._is_remote or (self._file in (_NO_FILE, self._identity()) and settings == self._settings)

    def _identity(self) -> tuple[int, int]:
        """Device and inode of the memory's file. They differ if the folder was deleted and made again."""
        file = os.stat(os.path.join(self._place, "memory.db"))
        return file.st_dev, file.st_ino

    def _opened(self) -> Memory:
        """The memory, opened at the first event."""
        from mnemarch.wiring import open_for_hooks

        with self._opening:
            if self._memory is None:
                memory = open_for_hooks(self._folder, self._settings, self._url, by_meaning=True)
                self._file = _NO_FILE if self._is_remote else self._identity()
                self._memory = memory
            return self._memory

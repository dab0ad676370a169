"""`mnemarch hook`: reads one event of a coding agent from its host, handles it and prints the answer.

It always exits with 0 and in time. Errors go to a file in the memory's folder and nowhere else.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # The half of `signal` in C: the other half takes a tenth of the time.
import os
import sys
from contextlib import suppress

from mnemarch.model.json_text import from_json, to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from mnemarch.code.home import Home
    from mnemarch.interfaces.hooks.hosts import HookEvent

    Timer = Callable[[float, str, str], None]

_STDIN_BYTES_MAX = 32 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OTHER_HOST = "--host="
# The limit until the settings are read, and the limit at the end of a session, where hosts wait for about a second.
_SECONDS_MAX = 8.0
_SECONDS_AT_END = 1.2
# The agent waits for the hook after a tool call, so new units are indexed at the end of the turn.
_INDEXES = {"after_tool": False, "stop": True}


def run(argv: Sequence[str], *, is_timed: bool = True) -> int:
    """Read one event, handle it and print the answer in the host's form. Returns 0 in every case.

    If `is_timed`, the process exits with 0 when its time is over.
    """
    if sys.stdin is None or sys.stdin.isatty():
        print("mnemarch hook is called by a coding agent's host. Set it up: mnemarch install", file=sys.stderr)
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
    from mnemarch.interfaces.hooks import hosts

    content = sys.stdin.buffer.read(_STDIN_BYTES_MAX + 1)
    text = content.removeprefix(_BYTE_ORDER_MARK).decode(errors="replace").strip()
    payload = from_json(text) if len(content) <= _STDIN_BYTES_MAX else None
    if not isinstance(payload, dict):
        return
    event = hosts.read(hosts.host_of(named, payload, os.environ), payload, os.getcwd(), os.environ)
    if event is None or not os.path.isdir(event.cwd):
        return
    from mnemarch.code.home import home_of
    from mnemarch.model.value import replace

    event = replace(event, session=event.session or f"{event.host.name}-{os.getppid()}")
    home = home_of(event.cwd)
    store = os.environ.get("MNEMARCH_STORE") or home.folder
    place = local_place(store)
    if not os.path.lexists(os.path.join(place, "memory.db")):
        _pass_on(event, home, stop_after)
        return
    try:
        if "MNEMARCH_STORE" not in os.environ:
            from mnemarch.interfaces.hooks import relay

            is_done, told = relay.asked(event, home.folder)
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
    from mnemarch.interfaces.hooks import relay

    stop_after(_SECONDS_AT_END if event.name == "end" else _SECONDS_MAX, "", "")
    _say(relay.answer(event, home.folder))
    _export(event, relay.place_of(home.folder))


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

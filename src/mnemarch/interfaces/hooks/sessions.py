"""The state that the hooks of one session share: a small private file, which also proves that they ran.

.mnemarch/hooks/<session>.json has the host, the time of each last event, the bytes of context that went to the agent,
the units shown, the files warned about, and the events seen, so that an event sent twice is handled once.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

from mnemarch.errors import StoreUnavailable
from mnemarch.files import locked, make_folder, small_json, write_private
from mnemarch.model.json_text import to_json
from mnemarch.model.stamps import blake2b, now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mnemarch.interfaces.hooks.hosts import HookEvent

FOLDER, TROUBLE = "hooks", "trouble.log"
_LOCK = "lock"
_LOCK_WAIT_S = 1.0
_FILE_BYTES_MAX = 1 << 20
_TROUBLE_BYTES_MAX = 65_536
# The most items of a list; the oldest are dropped.
_LISTED_MAX = 400
_FILES_MAX = 200
_KEPT_S = 30 * 24 * 3600
# The time within which an event with the same content as the one before it is a duplicate. If both have ids, only the
# ids are compared.
_AGAIN_S = 10.0
_NAME_CHARS_MAX = 80


class Session:
    """The file of one session below `place`, the memory's folder. If it can't be written, the state lasts one event."""

    def __init__(self, place: str, name: str, host: str) -> None:
        self.folder = os.path.join(place, FOLDER)
        self.path = os.path.join(self.folder, f"{_file_name(name)}.json")
        self._begun: dict[str, Any] = {"host": host, "session": name}
        self.state = self._read()

    @property
    def reports(self) -> str:
        """The folder of a test runner's report."""
        return self.path.removesuffix(".json")

    def export_to(self, variables: str) -> None:
        """Put the test recorder, if one was placed, on the PYTHONPATH of this session's commands.

        Only the process that got the file's name from its host writes to it. A caller of a server could name any file.
        """
        from shlex import quote

        if os.path.isdir(self.reports):
            with open(variables, "a", encoding="utf-8") as file:
                file.write(f'export PYTHONPATH={quote(self.reports)}"${{PYTHONPATH:+:$PYTHONPATH}}"\n')

    def admits(self, event: HookEvent) -> bool:
        """Whether this event is new. It is noted under the same lock, so that one process admits it."""
        is_new = True

        def note(state: dict[str, Any]) -> None:
            nonlocal is_new
            seen, at = list(state.get("seen") or ()), time.time()
            is_new = not _is_known(event, seen, at)
            if is_new:
                seen.append([f"{event.name}:{event.tool_id}" if event.tool_id else "", _digest(event), at])
            state["seen"] = seen[-_LISTED_MAX:]
            state.setdefault("events", {})[event.name] = now().isoformat(timespec="microseconds")
            state["transcript"] = event.payload.get("transcript_path") or state.get("transcript")

        self.change(note)
        return is_new

    def listed(self, name: str) -> list[str]:
        return [str(item) for item in self.state.get(name) or ()]

    def add(self, name: str, items: list[str]) -> None:
        """Add items to a list, and drop its oldest beyond the limit."""
        if items:
            self.change(lambda state: state.update({name: _newest([*(state.get(name) or ()), *items])}))

    def gave(self, event: str, size_bytes: int) -> None:
        """Add to the count of context bytes that went to the agent."""

        def note(state: dict[str, Any]) -> None:
            state["context_bytes"] = state.get("context_bytes", 0) + size_bytes
            state.setdefault("context", {})[event] = now().isoformat(timespec="seconds")

        self.change(note)

    def change(self, work: Callable[[dict[str, Any]], object]) -> None:
        """Apply a change to the file's present state, which another process may have written since."""
        is_changed = False
        try:
            make_folder(self.folder)
            with locked(os.path.join(self.folder, _LOCK), _LOCK_WAIT_S):
                self.state = self._read()
                work(self.state)
                is_changed = True  # Applied twice, an event noted above would look like a duplicate.
                write_private(self.path, to_json(self.state).encode())
        except (OSError, StoreUnavailable):
            if not is_changed:
                work(self.state)

    def clean(self) -> None:
        """Remove the files of old sessions, and the oldest files beyond the limit."""
        with suppress(OSError):
            files = sorted(
                ((entry.stat().st_mtime, entry.path) for entry in os.scandir(self.folder) if entry.name != TROUBLE),
                reverse=True,
            )
            old = [
                path for number, (at, path) in enumerate(files) if number >= _FILES_MAX or time.time() - at > _KEPT_S
            ]
            for path in old:
                if os.path.isdir(path):
                    from shutil import rmtree

                    rmtree(path, ignore_errors=True)
                elif os.path.basename(path) != _LOCK:
                    os.remove(path)

    def _read(self) -> dict[str, Any]:
        state = small_json(self.path, _FILE_BYTES_MAX)
        return state if isinstance(state, dict) else dict(self._begun)


def trouble(place: str, words: str) -> None:
    """Append an error to a file in the memory's folder, since the host must not see it."""
    path = os.path.join(place, FOLDER, TROUBLE)
    with suppress(OSError):
        make_folder(os.path.dirname(path))
        with suppress(FileNotFoundError):
            if os.path.getsize(path) > _TROUBLE_BYTES_MAX:
                os.replace(path, f"{path}.1")
        line = f"{now().isoformat(timespec='seconds')} {' '.join(words.split())[:1000]}\n"
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        try:
            os.write(handle, line.encode(errors="replace"))
        finally:
            os.close(handle)


def _newest(items: list[str]) -> list[str]:
    return list(dict.fromkeys(reversed(items)))[:_LISTED_MAX][::-1]


def _file_name(session: str) -> str:
    is_plain = session.replace("-", "").replace("_", "").isalnum() and session.isascii()
    if is_plain and len(session) <= _NAME_CHARS_MAX:
        return session
    return blake2b(session.encode(errors="replace"), digest_size=16).hexdigest()


def _is_known(event: HookEvent, seen: list[list[Any]], at: float) -> bool:
    """Whether the event was seen: by its id or, if it or the event just before it has none, by its content."""
    if event.tool_id and any(key == f"{event.name}:{event.tool_id}" for key, _, _ in seen):
        return True
    key, digest, then = seen[-1] if seen else ("", "", 0.0)
    return digest == _digest(event) and not (key and event.tool_id) and abs(at - then) < _AGAIN_S


def _digest(event: HookEvent) -> str:
    given = to_json(sorted((name, str(item)) for name, item in event.input.items()))
    says = [event.name, event.agent_id, event.prompt, event.said, event.output, given]
    return blake2b("\0".join(says).encode(errors="replace"), digest_size=12).hexdigest()

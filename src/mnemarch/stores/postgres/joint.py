"""Processes of one machine that append to one stream at once: one of them appends for all, in few transactions.

To hand a stream's lock from one connection to the next takes longer than to append. So a process that keeps waiting for
the lock sends its entries to another process of the same user, over a socket in the user's state folder. Whoever finds
no such process becomes it, until nothing has come for a while. In doubt a process appends its entries itself: an entry
keeps its id, so it is stored once.
"""

from __future__ import annotations

import os
import socket
import time
from _thread import allocate_lock, start_new_thread
from contextlib import ExitStack, suppress
from math import inf
from selectors import EVENT_READ, DefaultSelector

from mnemarch import user
from mnemarch.errors import StoreUnavailable
from mnemarch.files import locked_if_free
from mnemarch.forks import Forkable, watch
from mnemarch.model.json_text import from_json, to_json
from mnemarch.model.stamps import blake2b
from mnemarch.stores.sql.committer import Job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from selectors import SelectorKey
    from typing import Any, TypeVar

    T = TypeVar("T")

# An append is slow if it takes so many times as long as the fastest did: most of that was waiting for the lock.
_SLOW = 3.0
# After so many appends a process looks for one that appends for others, and after so many slow ones in a row becomes it.
_ALONE_MAX = 8
# Whoever appends for others ends if nothing came for so long.
_IDLE_S = 2.0
# For how long a process waits for an answer before it appends its entries itself.
_PATIENCE_S = 5.0
_PART_BYTES = 1 << 20
_END = b"\n\n"
# Changes with what is sent.
_FORM = 1


class JointAppends(Forkable):
    """The appends of this process to one stream. `name` is equal where all that determines the connection is equal.

    `append` does jobs with entries, and calls its last argument once the stream is free.
    """

    def __init__(self, name: str, append: Callable[[list[Job], Callable[[], None]], None]) -> None:
        key = blake2b(repr([_FORM, name, *sorted(_libpq_settings())]).encode(), digest_size=16).hexdigest()
        self._path = user.state_path_of(os.path.join("postgres", key))
        self._append = append
        self._fastest_s, self._alone, self._slow = inf, 0, 0
        # The connection to the process that appends for this one.
        self._line: socket.socket | None = None
        # The sockets of those for which this process appends.
        self._open: set[socket.socket] = set()
        self._turn = allocate_lock()
        watch(self)

    def timed(self, work: Callable[[], T]) -> T:
        """Append by this process alone, and count how often that was slow."""
        began = time.monotonic()
        result = work()
        took_s = time.monotonic() - began
        self._fastest_s = min(self._fastest_s, took_s)
        self._alone += 1
        self._slow = self._slow + 1 if took_s > _SLOW * self._fastest_s else 0
        return result

    def appended(self, jobs: Sequence[Job]) -> bool:
        """Whether another process appended the entries. If not, or if that is unknown, this one has to."""
        line = self._line or self._found()
        if line is None:
            return False
        self._line = None  # It is in doubt until the whole answer is there.
        try:
            line.sendall("\n".join([job.entry[-1] for job in jobs]).encode() + _END)
            answer = b""
            while not answer.endswith(_END):
                part = line.recv(_PART_BYTES)
                if not part:
                    raise ConnectionError
                answer += part
        except OSError:
            line.close()
            return False
        for job, (position, hash, seq) in zip(jobs, from_json(answer.decode()), strict=True):
            job.result = job.entry[0].placed(position, bytes.fromhex(hash), seq)
        self._line = line
        return True

    def _found(self) -> socket.socket | None:
        """A connection to the process that appends for others. If there is none and that is worth it, it becomes it."""
        if self._alone < _ALONE_MAX:
            return None
        self._alone = 0
        line = socket.socket(socket.AF_UNIX)
        line.settimeout(_PATIENCE_S)
        try:
            line.connect(self._path)
        except OSError:
            line.close()
            if self._slow >= _ALONE_MAX:
                self._slow = 0
                start_new_thread(self._serve, ())
            return None
        return line

    def _serve(self) -> None:
        """Append for other processes until nothing has come for a while. An open socket ends with this thread."""
        with suppress(OSError, StoreUnavailable), ExitStack() as stack:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            if not stack.enter_context(locked_if_free(f"{self._path}.lock")):
                return
            with suppress(FileNotFoundError):
                os.remove(self._path)
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            selector = stack.enter_context(DefaultSelector())
            self._open = {listener}
            stack.callback(self._close)
            listener.bind(self._path)
            listener.listen()
            selector.register(listener, EVENT_READ)
            while ready := selector.select(_IDLE_S):
                with self._turn:
                    if not self._answer([key for key, _ in ready], selector):
                        return

    def _answer(self, ready: Sequence[SelectorKey], selector: DefaultSelector) -> bool:
        """Append what came, in one go. Returns whether any of it could be appended."""
        requests: list[tuple[socket.socket, list[Job]]] = []
        for key in ready:
            if key.data is None:
                line, _ = key.fileobj.accept()
                line.setblocking(False)
                self._open.add(line)
                selector.register(line, EVENT_READ, bytearray())
            elif not _is_open_after_read(key.fileobj, key.data):
                self._drop(key.fileobj, selector)
            elif key.data.endswith(_END):
                rows = key.data.decode().split("\n")[:-2]
                requests.append((key.fileobj, [Job(None, entry=_entry_of(row)) for row in rows]))
                key.data.clear()
        if requests:
            self._append([job for _, jobs in requests for job in jobs], _nothing)
        for line, jobs in requests:
            if any(job.error for job in jobs):
                self._drop(line, selector)  # It tries by itself, and sees the error.
                continue
            with suppress(OSError):
                line.sendall(to_json([job.result for job in jobs]).encode() + _END)
        return not requests or any(job.error is None for _, jobs in requests for job in jobs)

    def _drop(self, line: socket.socket, selector: DefaultSelector) -> None:
        selector.unregister(line)
        self._open.discard(line)
        line.close()

    def _close(self) -> None:
        while self._open:
            self._open.pop().close()

    def _rest(self) -> bool:
        return self._turn.acquire(blocking=False)

    def _resume(self, *, in_child: bool, rested: bool) -> None:
        if in_child:  # Others would take open sockets for a process that answers.
            self._close()
            self._line, self._turn = None, allocate_lock()
        elif rested:
            self._turn.release()


class _Elsewhere:
    """The event of another process. What it is given becomes the answer."""

    __slots__ = ("id",)

    def __init__(self, id: str) -> None:
        self.id = id

    def placed(self, position: int, hash: bytes, seq: int) -> tuple[int, str, int]:
        return position, hash.hex(), seq


def _entry_of(row: str) -> Any:
    columns = from_json(row)
    return _Elsewhere(columns["id"]), columns["before"], columns["after"], row


def _is_open_after_read(line: socket.socket, data: bytearray) -> bool:
    """Read all that is there. Returns False if the other side has closed: it appends its entries itself then."""
    try:
        while part := line.recv(_PART_BYTES):
            data += part
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def _nothing() -> None:
    """Called when the stream is free: the next entries are read once these are on the disk."""


def _libpq_settings() -> list[tuple[str, str]]:
    """The variables that determine a connection beside its URL."""
    return [(name, value) for name, value in os.environ.items() if name.startswith("PG")]

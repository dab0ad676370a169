"""Processes of one machine that append to one stream at once: one of them appends for all, in few transactions.

To hand a stream's lock from one connection to the next takes longer than to append. So a process sends its entries to
another one of the same user, over a socket in the user's state folder, if one appends for others. A process that keeps
waiting for the lock begins to, until nothing has come for a while. In doubt a process appends its entries itself: an
entry keeps its id, so it is stored once.
"""

from __future__ import annotations

import os
import socket
import time
from _thread import allocate_lock, start_new_thread
from contextlib import suppress
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
    from typing import Any, TypeVar

    T = TypeVar("T")

# An append is slow if it takes so many times as long as the fastest did: most of that was waiting for the lock.
_SLOW = 3.0
# After so many appends a process looks for one that appends for others. After so many slow ones in a row it begins to.
_ALONE_MAX = 8
# Who appends for others ends if nothing came for so long.
_IDLE_S = 2.0
# How long a process waits for an answer before it appends its entries itself.
_PATIENCE_S = 3.0
# After so many rounds for nobody else it ends.
_LONELY_MAX = 100
# What is open then: the socket where others connect, and the connection of this process.
_OWN = 2
# How many entries it appends itself after either before it looks again.
_ALONE_LONG = 200
_PART_BYTES = 1 << 20
_END = b"\n\n"
# Changes with what is sent.
_FORM = 1


class JointAppends(Forkable):
    """The appends of this process to one stream.

    `name` is equal in two processes if all that determines their connections is equal. `append` does jobs.
    """

    def __init__(self, name: str, append: Callable[[list[Job]], None]) -> None:
        around = sorted(item for item in os.environ.items() if item[0].startswith("PG"))  # libpq reads them.
        key = blake2b(repr([_FORM, os.geteuid(), name, around]).encode(), digest_size=16).hexdigest()
        self._path = user.state_path_of(os.path.join("postgres", key))
        self._append = append
        self._fastest_s, self._alone, self._slow = inf, 0, 0
        # The connection to the process that appends for this one.
        self._line: socket.socket | None = None
        watch(self)

    def timed(self, work: Callable[[], T], entries: int) -> T:
        """Append by this process itself. Counts how often in a row a lone entry took long: many share one wait."""
        began = time.monotonic()
        result = work()
        took_s = time.monotonic() - began
        if entries > 1:
            self._alone, self._slow = min(self._alone, 0), 0
            return result
        self._fastest_s = min(self._fastest_s, took_s)
        self._alone += 1
        self._slow = self._slow + 1 if took_s > _SLOW * self._fastest_s else 0
        return result

    def appended(self, jobs: Sequence[Job]) -> bool:
        """Whether another process appended the entries. If not, or if that is unknown, this one has to."""
        line = self._line or self._found()
        if line is None:
            return False
        self._line = None  # It can be used again once the whole answer is there.
        try:
            line.sendall("\n".join([job.entry[-1] for job in jobs]).encode() + _END)
            answer = b""
            while not answer.endswith(_END):
                part = line.recv(_PART_BYTES)
                if not part:
                    raise ConnectionError
                answer += part
        except OSError as error:
            line.close()
            if isinstance(error, TimeoutError):  # That process may stand still for long.
                self._alone = -_ALONE_LONG
            return False
        for job, (position, hash, seq) in zip(jobs, from_json(answer.decode()), strict=True):
            job.result = job.entry[0].placed(position, bytes.fromhex(hash), seq)
        self._line = line
        return True

    def _found(self) -> socket.socket | None:
        """A connection to the process that appends for others, if there is one. Else this one may begin to."""
        if self._alone < _ALONE_MAX:
            return None
        self._alone = 0
        line = None
        try:
            line = socket.socket(socket.AF_UNIX)
            line.settimeout(_PATIENCE_S)
            line.connect(self._path)
        except OSError:  # Nobody appends for others, or no file is left for a socket.
            if line is not None:
                line.close()
            if self._slow >= _ALONE_MAX:
                self._slow = 0
                with suppress(RuntimeError):  # No thread is left.
                    start_new_thread(self._append_for_all, ())
            return None
        return line

    def _append_for_all(self) -> None:
        """Append until that is for nobody, or the store can't be used. The others see their connections end."""
        with suppress(OSError, StoreUnavailable):
            appender = _Appender(self._path, self._append)
            appender.run()
            if appender.is_lonely:
                self._alone = -_ALONE_LONG

    def close(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.close()

    def _resume(self, *, in_child: bool, rested: bool) -> None:  # noqa: ARG002
        if in_child:
            self.close()


class _Appender(Forkable):
    """Appends for all processes that connect, this one among them. A round takes what all of them have sent."""

    def __init__(self, path: str, append: Callable[[list[Job]], None]) -> None:
        self._path = path
        self._append = append
        self._selector = DefaultSelector()
        # Where others connect, and then each connection, with what it sent so far.
        self._sockets: dict[Any, bytearray] = {}
        self._round = allocate_lock()
        self._lonely = 0
        watch(self)

    @property
    def is_lonely(self) -> bool:
        """Whether no other process has connected for many rounds."""
        return self._lonely >= _LONELY_MAX

    def run(self) -> None:
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            with locked_if_free(f"{self._path}.lock") as is_held:
                if is_held:
                    self._serve()
        finally:
            self._close()

    def _serve(self) -> None:
        with suppress(FileNotFoundError):
            os.remove(self._path)
        door = socket.socket(socket.AF_UNIX)
        self._add(door)
        door.bind(self._path)
        door.listen()
        is_working = True
        while is_working and not self.is_lonely and (ready := self._selector.select(_IDLE_S)):
            with self._round:
                lines = [key.fileobj for key, _ in ready]
                if door in lines:
                    lines.remove(door)
                    self._add(door.accept()[0])
                self._lonely = self._lonely + 1 if len(self._sockets) <= _OWN else 0
                is_working = self._answer([line for line in lines if self._has_request(line)])

    def _add(self, opened: socket.socket) -> None:
        opened.setblocking(False)
        self._sockets[opened] = bytearray()
        self._selector.register(opened, EVENT_READ)

    def _drop(self, line: Any) -> None:
        self._selector.unregister(line)
        del self._sockets[line]
        line.close()

    def _has_request(self, line: Any) -> bool:
        """Read all that is there. Who has closed the connection appends its entries itself."""
        sent = self._sockets[line]
        try:
            while part := line.recv(_PART_BYTES):
                sent += part
        except BlockingIOError:
            return sent.endswith(_END)
        except OSError:
            pass
        self._drop(line)
        return False

    def _answer(self, lines: list[Any]) -> bool:
        """Append what came. Returns whether the store can be used."""
        requests: list[list[Job]] = []
        for line in lines:
            rows = self._sockets[line].decode().split("\n")[:-2]
            requests.append([Job(None, entry=_entry_of(row)) for row in rows])
            self._sockets[line].clear()
        if lines:
            self._append([job for jobs in requests for job in jobs])
        for line, jobs in zip(lines, requests, strict=True):
            if any(job.error for job in jobs):
                self._drop(line)  # It appends them itself, and sees the error.
                continue
            with suppress(OSError):
                line.sendall(to_json([job.result for job in jobs]).encode() + _END)
        return not any(isinstance(job.error, StoreUnavailable) for jobs in requests for job in jobs)

    def _close(self) -> None:
        self._selector.close()
        while self._sockets:
            self._sockets.popitem()[0].close()

    def _rest(self) -> bool:
        return self._round.acquire(blocking=False)

    def _resume(self, *, in_child: bool, rested: bool) -> None:
        if in_child:
            self._close()  # Else others would wait for this process to answer.
        elif rested:
            self._round.release()


class _Elsewhere:
    """An event of another process. Where it was placed is the answer."""

    __slots__ = ("id",)

    def __init__(self, id: str) -> None:
        self.id = id

    def placed(self, position: int, hash: bytes, seq: int) -> tuple[int, str, int]:
        return position, hash.hex(), seq


def _entry_of(row: str) -> Any:
    columns = from_json(row)
    return _Elsewhere(columns["id"]), columns["before"], columns["after"], row

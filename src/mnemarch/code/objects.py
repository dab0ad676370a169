"""The objects of a repository, read through one `git cat-file` that goes on answering."""

from __future__ import annotations

import os
import threading
import weakref

from mnemarch.code.git import conversation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subprocess import Popen

_WAIT_MS_MAX = 10_000
_END_S_MAX = 2.0
_CHUNK_BYTES = 65_536


class Objects:
    """Git is started when it is first asked, again after it died, and ended by `close` or with this object."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._process: Popen[bytes] | None = None
        self._end: weakref.finalize[..., Objects] | None = None

    def read(self, name: str, bytes_max: int) -> tuple[str, bytes] | None:
        """Kind and content of an object; None if it isn't here, is larger than that, or git gives no answer."""
        with self._lock:
            while True:
                is_fresh = self._process is None
                try:
                    return self._answer(name, bytes_max)
                except (OSError, ValueError):
                    self._stop()
                    # One that has served before may have died of something else.
                    if is_fresh:
                        return None

    def close(self) -> None:
        with self._lock:
            self._stop()

    def _answer(self, name: str, bytes_max: int) -> tuple[str, bytes] | None:
        process = self._process or self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(os.fsencode(f"{name}\n"))
        pipe = process.stdout.fileno()
        received = bytearray()
        while b"\n" not in received:
            received += _received(pipe)
        header, _, content = received.partition(b"\n")
        words = header.decode("ascii", "replace").split()
        if len(words) != 3:  # `... missing`
            return None
        size = int(words[2])
        if size > bytes_max:
            # The content is on its way; ending git is cheaper than reading it.
            self._stop()
            return None
        while len(content) <= size:
            content += _received(pipe)
        return words[1], bytes(content[:size])

    def _started(self) -> Popen[bytes]:
        process = conversation(self._root, ["cat-file", "--batch"])
        if process is None:
            raise OSError("git can't be started")
        self._process = process
        self._end = weakref.finalize(self, _ended, process)
        return process

    def _stop(self) -> None:
        self._process = None
        if self._end is not None:
            self._end()
            self._end = None


def _received(pipe: int) -> bytes:
    import select

    waiting = select.poll()
    waiting.register(pipe, select.POLLIN)
    if not waiting.poll(_WAIT_MS_MAX):
        raise OSError("git gives no answer")
    received = os.read(pipe, _CHUNK_BYTES)
    if not received:
        raise OSError("git has ended")
    return received


def _ended(process: Popen[bytes]) -> None:
    """Let git go, and wait for it, so that no zombie stays."""
    import subprocess

    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    try:
        process.wait(timeout=_END_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

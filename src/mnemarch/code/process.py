"""Runs a program to its end. `subprocess` does more, and takes longer to load than git takes to answer."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # The half of `signal` in C: the other half builds enums.
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PART_BYTES = 65_536
_STANDARD_STREAMS = 3


def output_of(command: Sequence[str], stdin: bytes, environment: Mapping[str, str], wait_s_max: float) -> bytes | None:
    """What a program prints; None if it fails or takes too long. OSError or ValueError if it can't be started."""
    deadline = time.monotonic() + wait_s_max
    child_in, to_child = _pipe()
    from_child, child_out = _pipe()
    try:
        pid = os.posix_spawnp(
            command[0],
            command,
            environment,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, child_in, 0),
                (os.POSIX_SPAWN_DUP2, child_out, 1),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
            setsigdef=[_signal.SIGPIPE],  # Python ignores it, and a child would inherit that.
        )
    except BaseException:
        _close(child_in, to_child, from_child, child_out)
        raise
    _close(child_in, child_out)
    is_ended = False
    try:
        printed = _exchanged(to_child, from_child, stdin, deadline)
        is_ended = printed is not None
    finally:
        _close(from_child)
        if not is_ended:
            os.kill(pid, _signal.SIGKILL)
        status = _status_of(pid)
    return printed if status == 0 else None


def _pipe() -> tuple[int, int]:
    """Two ends that are no standard stream, which the child gets others for; closed ones stay taken."""
    ends = os.pipe()
    while min(ends) < _STANDARD_STREAMS:
        ends = os.pipe()
    return ends


def _exchanged(to_child: int, from_child: int, stdin: bytes, deadline: float) -> bytes | None:
    """All that the child prints while it is given its input; None if it takes too long."""
    from select import POLLIN, POLLOUT, poll

    watched, printed, rest = poll(), list[bytes](), memoryview(stdin)
    os.set_blocking(to_child, False)
    watched.register(to_child, POLLOUT)
    watched.register(from_child, POLLIN)
    is_sending = True
    try:
        while ready := watched.poll(max(0.0, deadline - time.monotonic()) * 1000):
            for handle, _ in ready:
                if handle == to_child:
                    rest = _after_sending(to_child, rest)
                    if not rest:
                        watched.unregister(to_child)
                        os.close(to_child)
                        is_sending = False
                elif part := os.read(from_child, _PART_BYTES):
                    printed.append(part)
                else:
                    return b"".join(printed)
    finally:
        if is_sending:
            os.close(to_child)
    return None


def _after_sending(to_child: int, rest: memoryview) -> memoryview:
    """What is still to be sent; nothing, to a child that reads no more."""
    try:
        return rest[os.write(to_child, rest[:_PART_BYTES]) :]
    except BrokenPipeError:
        return rest[:0]


def _status_of(pid: int) -> int:
    try:
        return os.waitpid(pid, 0)[1]
    except ChildProcessError:  # Where SIGCHLD is ignored nobody is told how a child ended.
        return 0


def _close(*handles: int) -> None:
    for handle in handles:
        os.close(handle)

"""Forks: a child process gets no thread of its parent, but every lock that those threads held.

What keeps locks, threads or open files is watched. Before a fork each is asked to rest, for a few seconds at most, and
newcomers are held up meanwhile. After it, each is told; in the child it makes anew what it can't take over.
"""

from __future__ import annotations

import _frozen_importlib
import _signal  # type: ignore[import-not-found]
import os
import time
from _thread import (  # threading takes a millisecond more to import
    allocate_lock,
    get_ident,
    interrupt_main,
    start_new_thread,
)
from _weakref import ref  # so does weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_REST_S_MAX = 5.0
_NAP_S = 0.0005
_WATCHED_MAX = 1_000
# A newcomer may hold a lock that something under way needs, so it is not held up for long.
_HOLD_UP_S = 0.05

_watched: dict[int, ref[Forkable]] = {}
_gate = allocate_lock()
_forking: int | None = None
_handler: Any = None
_is_interrupted = False
_resting: list[tuple[Forkable, bool]] = []
_abandoned: list[Any] = []
_lasting: list[Any] = []


class Forkable:
    """Something that a fork must not tear apart."""

    def _rest(self) -> bool:
        """Let nothing begin, if nothing is under way; whether it is so. `_resume` ends it."""
        return True

    def _resume(self, *, in_child: bool, rested: bool) -> None:
        """Go on after a fork, or after an attempt to rest together with the others. A child makes its locks anew."""


def watch(owner: Forkable) -> None:
    """From now on a fork takes care of it."""
    if len(_watched) >= _WATCHED_MAX:
        for key, each in list(_watched.items()):
            if each() is None:  # Not by a callback: an interrupt that comes in one is lost.
                _watched.pop(key, None)
    _watched[id(owner)] = ref(owner)


def lasting_lock() -> Any:
    """A lock of a module, which is free in a child."""
    _lasting.append(allocate_lock())
    return _lasting[-1]


def let_a_fork_pass(wait_s_max: float = _HOLD_UP_S) -> None:
    """Called before something begins that a fork would have to wait for."""
    if _forking is not None and _forking != get_ident() and _gate.acquire(timeout=wait_s_max):
        _gate.release()


def abandon(thing: Any) -> None:
    """Keep what belongs to the parent's threads from being closed in a child."""
    _abandoned.append(thing)


def is_mine(lock: Any) -> bool:
    """Whether this thread holds a re-entrant lock: an interrupt may have come before it could note that."""
    return bool(lock._is_owned())


def is_torn(lock: Any) -> bool:
    """In a child: whether a thread of the parent holds the lock. It is free afterwards."""
    if lock.acquire(blocking=False):
        lock.release()
        return False
    lock._at_fork_reinit()
    return True


def _is_importing() -> bool:
    """Whether another thread is in the middle of an import: for that module a child would wait for ever."""
    locks = [lock() for lock in list(_frozen_importlib._module_locks.values())]  # type: ignore[attr-defined]
    return any(lock is not None and lock.owner not in (None, get_ident()) for lock in locks)


def _before() -> None:
    global _forking, _handler
    # Python would drop an interrupt that is raised here, together with the rest of this function.
    try:  # noqa: SIM105 - contextlib takes time to load
        _handler = _signal.signal(_signal.SIGINT, _note_interrupt)
    except ValueError:
        pass  # Not the main thread: none is raised here.
    _gate.acquire()
    _forking = get_ident()
    give_up_at = time.monotonic() + _REST_S_MAX
    while True:
        # All at once: one that rests must not keep another from coming to its end.
        _resting[:] = [(owner, owner._rest()) for owner in _owners()]
        is_ready = all(rested for _, rested in _resting) and not _is_importing()
        if is_ready or time.monotonic() > give_up_at:
            return
        for owner, rested in _resting:
            if rested:
                owner._resume(in_child=False, rested=True)
        time.sleep(_NAP_S)


def _owners() -> list[Forkable]:
    return [owner for each in list(_watched.values()) if (owner := each()) is not None]


def _note_interrupt(*_: object) -> None:
    global _is_interrupted
    _is_interrupted = True


def _after(*, in_child: bool) -> None:
    global _forking, _handler, _is_interrupted
    for lock in _lasting if in_child else ():
        is_torn(lock)
    for owner, rested in _resting:
        owner._resume(in_child=in_child, rested=rested)
    if in_child:
        # Those that a thread made after the others were asked to rest.
        asked = {id(owner) for owner, _ in _resting}
        for owner in _owners():
            if id(owner) not in asked:
                owner._resume(in_child=True, rested=False)
    _resting.clear()
    if _forking == get_ident():
        _forking = None
        _gate.release()
    if _handler is not None:
        _signal.signal(_signal.SIGINT, _handler)
        _handler = None
    if _is_interrupted and not in_child:
        start_new_thread(interrupt_main, ())  # By another thread: it is to be raised after this function.
    _is_interrupted = False


os.register_at_fork(
    before=_before, after_in_parent=lambda: _after(in_child=False), after_in_child=lambda: _after(in_child=True)
)

"""Fork safety: a child process inherits all locks that its parent's threads hold, but not the threads.

Objects with locks, threads or open files are watched. Before a fork, each is asked to rest, for a few seconds at most,
and new work is delayed. After the fork, each resumes. In the child, it recreates what it can't inherit.
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
# Bounds the delay of new work: it may hold a lock that running work needs.
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
    """An object that must be consistent at a fork."""

    def _rest(self) -> bool:
        """If no work is running, let none begin until `_resume`, and return True. Else return False."""
        return True

    def _resume(self, *, in_child: bool, rested: bool) -> None:
        """Continue after a fork, or after a failed attempt to rest together. In a child, recreate the locks."""


def watch(owner: Forkable) -> None:
    """Register an object, which then rests during forks."""
    if len(_watched) >= _WATCHED_MAX:
        for key, each in list(_watched.items()):
            if each() is None:  # Not a weakref callback: an interrupt during a callback is lost.
                _watched.pop(key, None)
    _watched[id(owner)] = ref(owner)


def lasting_lock() -> Any:
    """A lock for a module. It is free in a child process."""
    _lasting.append(allocate_lock())
    return _lasting[-1]


def let_a_fork_pass(wait_s_max: float = _HOLD_UP_S) -> None:
    """Wait for a fork in progress. Call it before work that a fork would have to wait for."""
    if _forking is not None and _forking != get_ident() and _gate.acquire(timeout=wait_s_max):
        _gate.release()


def abandon(thing: Any) -> None:
    """Keep an object of the parent's threads alive in a child, so that it is not closed there."""
    _abandoned.append(thing)


def is_mine(lock: Any) -> bool:
    """Whether this thread holds a re-entrant lock. An interrupt may have come before the code could record that."""
    return bool(lock._is_owned())


def is_torn(lock: Any) -> bool:
    """Whether a thread of the parent held this lock at the fork. Call it in a child. The lock is free afterwards."""
    if lock.acquire(blocking=False):
        lock.release()
        return False
    lock._at_fork_reinit()
    return True


def _is_importing() -> bool:
    """Whether another thread is importing a module. A child would wait forever for that module."""
    locks = [lock() for lock in list(_frozen_importlib._module_locks.values())]  # type: ignore[attr-defined]
    return any(lock is not None and lock.owner not in (None, get_ident()) for lock in locks)


def _before() -> None:
    global _forking, _handler
    # An interrupt that is raised here would end this function, and Python would ignore it.
    try:  # noqa: SIM105 - contextlib takes time to load
        _handler = _signal.signal(_signal.SIGINT, _note_interrupt)
    except ValueError:
        pass  # Not the main thread, so no interrupt is raised here.
    _gate.acquire()
    _forking = get_ident()
    give_up_at = time.monotonic() + _REST_S_MAX
    while True:
        # If not all can rest, all resume: a resting object could block the work of another.
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
        # Objects that a thread registered after the others were asked to rest.
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
        start_new_thread(interrupt_main, ())  # From another thread, so that it is raised after this function.
    _is_interrupted = False


os.register_at_fork(
    before=_before, after_in_parent=lambda: _after(in_child=False), after_in_child=lambda: _after(in_child=True)
)

"""Threads that write to one stream share commits: one leads and does the work of all that wait, then the next leads."""

from __future__ import annotations

import time
from _thread import allocate_lock, get_ident

from mnemarch.errors import StoreUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mnemarch.model.event import Event
    from mnemarch.stores.sql.transaction import Transaction

_BATCH_MAX = 64
# The threads that do the work of some committer: what they do must not wait for another commit.
_writing: set[int] = set()


class Job:
    """One piece of work that waits for its turn, and the lock by which its thread waits."""

    __slots__ = ("entry", "error", "finished", "needs_org", "result", "wake", "work")

    def __init__(self, work: Callable[[Transaction], Any] | None, entry: tuple[Event, str, str] | None = None) -> None:
        self.work = work
        # In place of work: an event that the store itself chains, and its header before and after its number.
        self.entry = entry
        self.result: Any = None
        self.error: BaseException | None = None
        self.finished = self.needs_org = False
        self.wake = allocate_lock()
        self.wake.acquire()


class Committer:
    """What waits to be written to one stream. `do` does some jobs in one transaction, as far as it can."""

    def __init__(self, name: str, do: Callable[[list[Job], float | None], None]) -> None:
        self._name = name
        self._do = do
        self._queue: list[Job] = []
        self._lock = allocate_lock()
        self._is_led = False

    @property
    def is_writing(self) -> bool:
        """Whether this thread is in the middle of a write."""
        return get_ident() in _writing

    def done(self, job: Job, wait_s_max: float | None) -> Any:
        """The result of a job once it is committed; its error, if it failed."""
        with self._lock:
            self._queue.append(job)
            leads = not self._is_led
            self._is_led = True
        give_up_at = None if wait_s_max is None else time.monotonic() + wait_s_max
        try:
            if not leads and not job.wake.acquire(timeout=-1 if wait_s_max is None else wait_s_max):
                raise StoreUnavailable(f"{self._name} is being written by another thread.", hint="Call again.")
            if not job.finished:
                self._lead(None if give_up_at is None else max(0.0, give_up_at - time.monotonic()))
        finally:
            if not job.finished:
                self._withdraw(job, leads)
        if job.error is not None:
            raise job.error
        return job.result

    def _lead(self, wait_s_max: float | None) -> None:
        """Do the work of all that wait, then let the next lead."""
        with self._lock:
            jobs, self._queue = self._queue[:_BATCH_MAX], self._queue[_BATCH_MAX:]
        _writing.add(get_ident())
        try:
            self._do(jobs, wait_s_max)
        except BaseException:
            for job in jobs:
                job.error = job.error or StoreUnavailable("The write was interrupted.", hint="Call again.")
            raise
        finally:
            _writing.discard(get_ident())
            for job in jobs:
                job.finished = True
                job.wake.release()
            self._pass_on()

    def _pass_on(self) -> None:
        with self._lock:
            self._is_led = bool(self._queue)
            if self._queue:
                self._queue[0].wake.release()

    def _withdraw(self, job: Job, leads: bool) -> None:
        """The thread of a job no longer waits for it: it gave up, or was interrupted."""
        with self._lock:
            is_waiting = job in self._queue
            if is_waiting:
                self._queue.remove(job)
        if is_waiting and (leads or job.wake.acquire(blocking=False)):
            self._pass_on()

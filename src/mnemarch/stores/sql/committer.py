"""Threads that write to one stream share commits. One thread leads and does the work of others that wait.

The leader hands over as soon as the stream is free, and waits for the disk after that. Of entries it takes half: while
they are appended, the threads of the other half take their results and get their next entries ready. The next leader
begins when as many wait as are under way, or when a batch is done: a batch costs more than an entry in it.
"""

from __future__ import annotations

import time
from _thread import allocate_lock, get_ident
from functools import partial
from itertools import takewhile

from mnemarch.errors import StoreUnavailable
from mnemarch.forks import Forkable, watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mnemarch.stores.sql.transaction import Transaction

_BATCH_MAX = 64
# Threads that lead now. Their work must not wait for another commit.
_writing: set[int] = set()


class Job:
    """A piece of work, and the lock on which its thread waits for it."""

    __slots__ = ("entry", "error", "finished", "give_up_at", "needs_org", "result", "wake", "work")

    def __init__(
        self,
        work: Callable[[Transaction], Any] | None,
        *,
        entry: Any = None,
        wait_s_max: float | None = None,
    ) -> None:
        self.work = work
        self.give_up_at = None if wait_s_max is None else time.monotonic() + wait_s_max
        # In place of `work`: a log entry that the server chains, in the store's own form.
        self.entry = entry
        self.result: Any = None
        self.error: BaseException | None = None
        self.finished = self.needs_org = False
        self.wake = allocate_lock()
        self.wake.acquire()

    @property
    def wait_s(self) -> float | None:
        """The remaining time to wait."""
        return None if self.give_up_at is None else max(0.0, self.give_up_at - time.monotonic())


class Committer(Forkable):
    """The queue of writes to one stream.

    `do` runs jobs in one transaction and stores their results. It calls its last argument once the stream is free.
    """

    def __init__(self, name: str, do: Callable[[list[Job], float | None, Callable[[], None]], None]) -> None:
        self._name = name
        self._do = do
        self._begin()
        watch(self)

    def _begin(self) -> None:
        self._queue: list[Job] = []
        self._lock = allocate_lock()
        # The job whose thread does the next batch, and the jobs that were taken and are not finished.
        self._leader: Job | None = None
        self._under_way: set[Job] = set()

    def _resume(self, *, in_child: bool, rested: bool) -> None:  # noqa: ARG002
        if in_child:  # Those who lead and wait are threads of the parent.
            _writing.intersection_update({get_ident()})
            self._begin()

    @property
    def is_writing(self) -> bool:
        """Whether this thread is in the middle of a write."""
        return get_ident() in _writing

    def done(self, job: Job) -> Any:
        """Wait until a job is committed and return its result, or raise its error."""
        try:
            with self._lock:
                self._queue.append(job)
                self._hand_on()
            if not job.wake.acquire(timeout=-1 if job.wait_s is None else job.wait_s) and not self._is_taken(job):
                raise StoreUnavailable(f"{self._name} is being written by another thread.", hint="Call again.")
            if self._leader is job:
                self._lead(job)
        finally:
            if not job.finished:
                try:
                    self._withdraw(job)
                finally:
                    self._withdraw(job)  # Again: an interrupt may have ended the first attempt.
        if job.error is not None:
            raise job.error
        return job.result

    def _is_taken(self, job: Job) -> bool:
        """Whether a leader has already taken the job. If so, wait until it is done. If not, no leader will take it."""
        with self._lock:
            is_taken = self._leader is job or job not in self._queue
            if not is_taken:
                self._queue.remove(job)
        return is_taken and job.wake.acquire()

    def _hand_on(self) -> None:
        """Let the first waiting job lead, unless more jobs are under way than wait. The caller holds the lock."""
        if self._leader is None and self._queue and len(self._queue) >= len(self._under_way):
            self._leader = self._queue[0]
            self._leader.wake.release()

    def _pass_on(self, job: Job) -> None:
        """Let another job lead, if this one does."""
        with self._lock:
            if self._leader is job:
                self._leader = None
            self._hand_on()

    def _take(self, jobs: list[Job]) -> None:
        """Take the first jobs of the queue, up to the first that differs in whether it has a time limit."""
        with self._lock:
            first = self._queue[0]
            half = (len(self._queue) + len(self._under_way) + 1) // 2 if first.entry else _BATCH_MAX
            alike = takewhile(lambda job: (job.give_up_at is None) is (first.give_up_at is None), self._queue)
            taken = list(alike)[: min(half, _BATCH_MAX)]
            count = len(taken)
            # Without a call between them, no interrupt comes between these lines: each job is here or in the queue.
            jobs += taken
            del self._queue[:count]
            self._under_way.update(taken)

    def _lead(self, job: Job) -> None:
        """Do the work of a whole batch. It is taken now, since more jobs came while this thread woke up."""
        jobs: list[Job] = []
        try:
            _writing.add(get_ident())
            self._take(jobs)
            self._do(jobs, jobs[0].wait_s, partial(self._pass_on, job))
        except BaseException:
            for each in jobs:
                each.error = each.error or StoreUnavailable("The write was interrupted.", hint="Call again.")
            raise
        finally:
            try:
                self._end(job, jobs)
            finally:
                self._end(job, jobs)  # Again: an interrupt may have ended the first attempt.

    def _end(self, job: Job, jobs: list[Job]) -> None:
        """End a batch. Whatever is done already stays as it is."""
        _writing.discard(get_ident())
        self._under_way.difference_update(jobs)
        self._withdraw(job)  # It is still in the queue if the interrupt came before it was taken.
        for each in jobs:
            if not each.finished:
                each.finished = True  # No interrupt comes between these lines.
                each.wake.release()

    def _withdraw(self, job: Job) -> None:
        """Remove a job whose thread gave up or was interrupted."""
        with self._lock:
            if job in self._queue:
                self._queue.remove(job)
        self._pass_on(job)

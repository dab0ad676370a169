"""Threads that share the commits of one stream, and which of them commits."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from mnemarch.errors import StoreUnavailable
from mnemarch.stores.sql.committer import Committer, Job

HURRY_S, PATIENCE_S = 0.05, 30.0


class Writes:
    """Writes in place of a store, one of which can be held up; `batches` are the names of what went together."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.waits: list[float | None] = []
        self.began, self.may_end = threading.Event(), threading.Event()
        self.frees_at_once = False
        self.committer = Committer("the store", self._do)
        self.threads: list[threading.Thread] = []
        self.answers: dict[str, object] = {}

    def _do(self, jobs, wait_s_max, is_free) -> None:
        self.batches.append([job.entry or job.work for job in jobs])
        self.waits.append(wait_s_max)
        if self.frees_at_once:
            is_free()
        if "held up" in self.batches[-1]:
            self.began.set()
            assert self.may_end.wait(PATIENCE_S)
        for job in jobs:
            job.result = f"{job.entry or job.work} is written"

    def begin(self, name: str, wait_s_max: float | None = None, *, is_entry: bool = False) -> None:
        """Write in a thread of its own, which is waiting when this returns."""
        job = Job(None, entry=name) if is_entry else Job(name, wait_s_max=wait_s_max)

        def run() -> None:
            try:
                self.answers[name] = self.committer.done(job)
            except StoreUnavailable as error:
                self.answers[name] = error

        waiting = len(self.committer._queue)
        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()
        if name == "held up":
            assert self.began.wait(PATIENCE_S)
        elif not self.frees_at_once:
            while len(self.committer._queue) == waiting and name not in self.answers:
                time.sleep(0)

    def end(self) -> None:
        self.may_end.set()
        for thread in self.threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


@pytest.fixture
def writes():
    return Writes()


def test_those_who_wait_share_one_commit(writes):
    for name in ("held up", "two", "three"):
        writes.begin(name)
    writes.end()
    assert writes.batches == [["held up"], ["two", "three"]]
    assert writes.answers["three"] == "three is written"


def test_a_batch_of_entries_is_half_of_all_so_that_the_other_half_gets_ready_meanwhile(writes):
    for name in ("held up", *"abcdefg"):
        writes.begin(name, is_entry=True)
    writes.end()
    assert writes.batches == [["held up"], [*"abcd"], [*"ef"], ["g"]]
    jobs = [Job(None, entry=name) for name in "abcdefgh"]
    writes.committer._queue.extend(jobs)
    batches: list[list[Job]] = [[], []]
    for batch in batches:
        writes.committer._take(batch)
    assert batches == [jobs[:4], jobs[4:]]


def test_what_comes_while_the_next_one_wakes_up_is_in_its_batch(writes):
    committer = writes.committer
    first, second = Job("first"), Job("second")
    committer._queue.append(first)
    with committer._lock:
        committer._hand_on()
    assert first.wake.acquire(blocking=False)
    committer._queue.append(second)
    committer._lead(first)
    assert writes.batches == [["first", "second"]]


def test_the_next_one_writes_while_the_last_one_waits_for_the_disk(writes):
    writes.frees_at_once = True
    writes.begin("held up")
    writes.begin("two")
    writes.threads[1].join(PATIENCE_S)
    assert writes.answers == {"two": "two is written"}
    writes.end()
    assert writes.answers["held up"] == "held up is written"


def test_who_is_in_a_hurry_does_not_hurry_others(writes):
    for name, wait_s_max in (("held up", None), ("quick", PATIENCE_S), ("quick too", PATIENCE_S), ("slow", None)):
        writes.begin(name, wait_s_max)
    writes.end()
    assert writes.batches == [["held up"], ["quick", "quick too"], ["slow"]]
    assert [wait is None for wait in writes.waits] == [True, False, True]


def test_what_was_given_up_is_not_written_and_what_is_being_written_is_not_given_up(writes):
    writes.begin("held up", HURRY_S)
    writes.begin("given up", HURRY_S)
    writes.threads[1].join(PATIENCE_S)
    assert isinstance(writes.answers["given up"], StoreUnavailable)
    writes.end()
    assert writes.batches == [["held up"]]
    assert writes.answers["held up"] == "held up is written"


def test_a_write_that_another_thread_has_begun_is_waited_for_beyond_the_hurry(writes):
    """Else it would be done again, though it was done."""
    committer = writes.committer
    first, second = (Job(name, wait_s_max=HURRY_S) for name in ("held up", "second"))
    committer._queue.extend([first, second])
    with committer._lock:
        committer._hand_on()
    assert first.wake.acquire(timeout=PATIENCE_S)
    writes.threads = [threading.Thread(target=committer._lead, args=[first])]
    writes.threads[0].start()
    assert writes.began.wait(PATIENCE_S)
    assert not second.wake.acquire(timeout=HURRY_S)
    threading.Timer(HURRY_S, writes.may_end.set).start()
    assert committer._is_taken(second)
    assert second.result == "second is written"
    writes.end()


def test_what_was_given_up_is_taken_by_no_leader_from_then_on(writes):
    committer = writes.committer
    first, second = Job("first"), Job("second", wait_s_max=HURRY_S)
    committer._queue.extend([first, second])
    assert not committer._is_taken(second)
    committer._lead(first)
    assert (writes.batches, committer._queue) == ([["first"]], [])


def test_an_interrupt_while_a_batch_is_taken_leaves_nobody_waiting(writes):
    class Interrupted(list):
        def __delitem__(self, place):
            super().__delitem__(place)
            raise KeyboardInterrupt

    committer = writes.committer
    first, second, third = jobs = [Job(name) for name in ("first", "second", "third")]
    committer._queue = Interrupted(jobs)
    with pytest.raises(KeyboardInterrupt):
        committer._lead(first)
    assert all(job.finished and isinstance(job.error, StoreUnavailable) for job in (second, third))
    assert third.wake.acquire(blocking=False)
    assert (first.finished, committer._under_way, committer._leader) == (True, set(), None)


def test_a_child_process_writes_though_a_thread_of_its_parent_leads(writes):
    writes.begin("held up")
    if not (child := os.fork()):
        signal.alarm(int(PATIENCE_S))
        os._exit(writes.committer.done(Job("its own")) != "its own is written")
    writes.end()
    assert os.waitpid(child, 0)[1] == 0

"""Processes of one machine that append to one stream: one appends for all. When it is gone, what it promised holds."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress

import pytest

import mnemarch
from mnemarch import Actor, Scope
from mnemarch.model.caller import Stream
from mnemarch.stores.postgres import PostgresStore, joint
from mnemarch.stores.sql.committer import Job

SHOP, BANK = Stream("acme", "shop"), Stream("acme", "bank")
SCOPE = Scope(org="acme", project="shop", task="t")
# Appends until it is ended. Every append counts as slow, so it looks for another process from the second one on.
_WRITER = """
import sys
import mnemarch
from mnemarch import Actor, Scope
from mnemarch.stores.postgres import joint
joint._SLOW, joint._ALONE_MAX, joint._IDLE_S = 0.0, 1, 60.0
joint._PATIENCE_S, joint._ALONE_LONG = 0.5, 500
serve = joint._Appender._serve
def say(*words):  # Two threads speak: a line is one write.
    sys.stdout.write(" ".join(map(str, words)) + "\\n")
    sys.stdout.flush()
def told(appender):
    say("appends for others")
    serve(appender)
    say("ends")
joint._Appender._serve = told
seat = mnemarch.open(sys.argv[1]).seat(Actor.agent(sys.argv[2]), Scope(org="acme", project="shop", task="t"))
while True:
    receipt = seat.log("note", "x")
    say(receipt.event_id, receipt.seq, receipt.hash, seat._engine.store._joint._line is not None)
"""


@pytest.fixture(autouse=True)
def eager(monkeypatch, tmp_path):
    """Here too every append counts as slow. A socket's path is short, so its folder is not the test's own."""
    with tempfile.TemporaryDirectory(prefix="joint", dir="/tmp") as folder:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("XDG_STATE_HOME", folder)
        for name, value in (("_SLOW", 0.0), ("_ALONE_MAX", 1), ("_IDLE_S", 0.3)):
            monkeypatch.setattr(joint, name, value)
        yield


class Writer:
    """A process that appends, and what it has said so far."""

    def __init__(self, url, path):
        self._path = path
        with path.open("w") as output:
            self.process = subprocess.Popen([sys.executable, "-c", _WRITER, url, path.name], stdout=output)

    def said(self):
        return [line.split() for line in self._path.read_text().splitlines(keepends=True) if line.endswith("\n")]

    def receipts(self):
        return [words for words in self.said() if len(words) == 4]

    def appends_for_others(self):
        said = self.said()
        return said.count(["appends", "for", "others"]) > said.count(["ends"])


@contextmanager
def writing(url, folder, count):
    writers = [Writer(url, folder / f"w{number}") for number in range(count)]
    try:
        yield writers
    finally:
        for writer in writers:
            writer.process.send_signal(signal.SIGCONT)
            writer.process.kill()
            writer.process.wait()


def until(what, writers):
    give_up_at = time.monotonic() + 60
    while not what():
        assert time.monotonic() < give_up_at, [writer.said()[-1:] for writer in writers]
        assert all(writer.process.poll() in (None, -signal.SIGKILL) for writer in writers)
        time.sleep(0.01)


def goes_on(writers, count=20, *, jointly=True):
    """Wait until each of them has appended some more, the last one through another process or by itself."""
    begun = [len(writer.receipts()) for writer in writers]

    def is_done():
        said = [(writer.receipts(), number) for writer, number in zip(writers, begun, strict=True)]
        return all(len(each) >= number + count and each[-1][3] == str(jointly) for each, number in said)

    until(is_done, writers)


def test_what_one_process_acknowledges_for_others_is_there_when_it_was_killed_or_stopped(postgres_url, tmp_path):
    with writing(postgres_url, tmp_path, 4) as writers:
        goes_on(writers)
        (first,) = [writer for writer in writers if writer.appends_for_others()]
        first.process.kill()
        living = [writer for writer in writers if writer is not first]
        goes_on(living)
        (second,) = [writer for writer in living if writer.appends_for_others()]
        second.process.send_signal(signal.SIGSTOP)
        living.remove(second)
        goes_on(living, jointly=False)
        second.process.send_signal(signal.SIGCONT)
        goes_on([second], 200)
    acknowledged = {event_id: (int(seq), hash) for writer in writers for event_id, seq, hash, _ in writer.receipts()}
    with mnemarch.open(postgres_url) as memory:
        events = memory._engine.store.of(SHOP).read(lambda reader: list(reader.events()))
        assert memory.audit(full=True).ok
    there = {event.id: (event.seq, event.hash.hex()) for event in events}
    assert acknowledged.items() <= there.items()
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert len(there) == len(events) <= len(acknowledged) + 2 * len(writers), "nothing was appended twice"


def joined(memory):
    """A seat whose entries are appended by way of the socket."""
    seat = memory.seat(Actor.agent("a"), SCOPE)
    give_up_at = time.monotonic() + 30
    while seat._engine.store._joint._line is None:
        seat.log("note", "x")
        assert time.monotonic() < give_up_at
    return seat


def test_entries_that_went_through_another_process_are_what_they_would_be(postgres_url):
    """Quotes, Korean and NUL; and data that a socket takes in several pieces only."""
    with mnemarch.open(postgres_url) as one, mnemarch.open(postgres_url) as other:
        first, second = joined(one), joined(other)
        texts = ["a\"'%s\\ 데이터\0\1\2\n\n", "x" * 600_000]
        receipts = [seat.log("note", "x", data={"a": text}) for text in texts for seat in (first, second)]
        assert second._engine.store._joint._line is not None
        events = first._engine.store.read(lambda reader: list(reader.events()))[-4:]
        assert [(event.seq, event.hash.hex()) for event in events] == [(r.seq, r.hash) for r in receipts]
        assert [event.payload["data"]["a"] for event in events] == [text for text in texts for _ in range(2)]
        assert one.audit(full=True).ok


def test_a_process_appends_for_itself_again_when_nobody_needs_another(postgres_url, monkeypatch):
    with mnemarch.open(postgres_url) as memory:
        seat = joined(memory)
        line = seat._engine.store._joint._line
        assert line.recv(1) == b"", "it ends when nothing comes for a while"
        monkeypatch.setattr(joint, "_IDLE_S", 60.0)
        seat = joined(memory)
        give_up_at = time.monotonic() + 30
        while seat._engine.store._joint._alone >= 0:  # Until it ends since it was for nobody else.
            seat.log("note", "x")
            assert time.monotonic() < give_up_at
        assert memory.audit(full=True).ok


def test_nobody_appends_for_another_tenant_or_with_other_credentials(postgres_url, monkeypatch):
    paths = set()
    for url, passwords in ((postgres_url, ""), (f"{postgres_url}&password=x", ""), (postgres_url, "another")):
        monkeypatch.setenv("PGPASSFILE", passwords)
        store = PostgresStore(url)
        paths |= {store.of(stream)._joint._path for stream in (SHOP, BANK, Stream("other", "shop"))}
        store.close()
    assert len(paths) == 9
    # Who gives up sooner could report a failure, and the other one would store the entry after that.
    store = PostgresStore(postgres_url, lock_wait_s_max=1.0)
    paths.add(store.of(SHOP)._joint._path)
    monkeypatch.setattr(os, "geteuid", lambda: -1)  # As with sudo, which may keep the user's folders.
    other = PostgresStore(postgres_url)
    paths.add(other.of(SHOP)._joint._path)
    store.close()
    other.close()
    assert len(paths) == 11


def drafts(seat, monkeypatch, count):
    """Entries that are ready to be appended."""
    jobs: list[Job] = []
    with monkeypatch.context() as patched:
        patched.setattr(PostgresStore, "_done", lambda _, job: jobs.append(job) or job.entry[0])
        for _ in range(count):
            seat.log("note", "x")
    return jobs


def test_a_batch_with_known_entries_appends_only_the_others(postgres_url, monkeypatch):
    """As when the process that appended for others was killed after a part, or came back late."""
    with mnemarch.open(postgres_url) as memory:
        seat = memory.seat(Actor.agent("a"), SCOPE)
        seat.log("note", "x")
        store, jobs = seat._engine.store, drafts(seat, monkeypatch, 4)
        for each in (jobs[1:3], jobs, jobs):
            store._attempt(each, store._appending)
        events = store.read(lambda reader: list(reader.events()))
        assert [(event.id, event.hash) for event in events[1:]] == [
            (job.entry[0].id, job.result.hash) for job in (*jobs[1:3], jobs[0], jobs[3])
        ]
        assert memory.audit(full=True).ok


def test_an_entry_that_is_refused_is_tried_alone_and_holds_up_no_other(postgres_url, monkeypatch):
    def refuse(jobs):
        for job in jobs:
            job.error = ValueError() if job.entry[0].id == refused.entry[0].id else None
            job.result = job.entry[0].placed(7, b"hash", 6)

    with mnemarch.open(postgres_url) as memory:
        refused, other = drafts(memory.seat(Actor.agent("a"), SCOPE), monkeypatch, 2)
    one, two = joints = [joint.JointAppends("test", refuse) for _ in range(2)]
    for each in joints:
        give_up_at = time.monotonic() + 30
        while not each.appended([other]):
            each.timed(time.monotonic, 1)
            assert time.monotonic() < give_up_at
    assert (other.result.position, other.result.hash, other.result.seq) == (7, b"hash", 6)
    assert not one.appended([refused])
    assert two.appended([other])
    for each in joints:
        each.close()


def test_a_process_that_gets_no_file_or_thread_for_it_appends_itself(monkeypatch):
    def refusing(error):
        def refuse(*_):
            raise error

        return refuse

    unraised = []
    monkeypatch.setattr(sys, "unraisablehook", unraised.append)
    no_file = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    no_thread = RuntimeError("can't start new thread")
    things = ((joint.socket, "socket", no_file), (joint, "start_new_thread", no_thread))
    for place, name, error in (*things, (joint, "DefaultSelector", no_file)):
        with monkeypatch.context() as patched:
            patched.setattr(place, name, refusing(error))
            each = joint.JointAppends("test", list)
            for _ in range(3):
                each.timed(time.monotonic, 1)
                assert not each.appended([]), name
                time.sleep(0.05)
    assert not unraised, "it is nothing to tell a user"


def test_a_child_process_leaves_the_sockets_to_its_parent(postgres_url):
    with mnemarch.open(postgres_url) as memory:
        seat = joined(memory)
        line = seat._engine.store._joint._line
        child = os.fork()
        if child == 0:
            with suppress(BaseException):
                seat.log("note", "of the child")
                os._exit(0 if seat._engine.store._joint._line is not line else 1)
            os._exit(2)
        seat.log("note", "of the parent")
        assert os.waitpid(child, 0)[1] == 0
        assert seat._engine.store._joint._line is line
        assert memory.stats().events == seat.log("note", "the last").seq - 1
        assert memory.audit(full=True).ok

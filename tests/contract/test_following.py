"""Work beside a recall: the index and the vectors follow the log, and their errors break no recall."""

from __future__ import annotations

import errno
import socket
import threading

import pytest

import mnemarch
from mnemarch import Actor, Claim, Scope, StoreUnavailable
from mnemarch.config import Config, config_from
from mnemarch.embedding import dense_search
from mnemarch.model.unit import Searchable
from mnemarch.services.engine import Engine
from mnemarch.stores import tantivy_index
from mnemarch.stores.sqlite import InMemoryStore

SCOPE = Scope(project="shop", task="T-1")
FACTS = [f"The {name} pump is painted {colour}" for name in "abcdefgh" for colour in ("red", "blue")]


def seat_of(memory):
    return memory.seat(Actor.agent("a"), SCOPE)


def searchable(number, content):
    names = {"scope_key": SCOPE.key, "state": "draft", "kind": "fact", "domain": "global", "session": None, "turn": 0}
    times = {"occurred_at": number, "importance": 0.5, "changed_at": number}
    return Searchable(id=f"{number:032d}", content=content, **names, **times)


def contents(found):
    return {item.unit.content for item in found.items}


@pytest.fixture
def eager(tmp_path, clock):
    """A memory on disk that indexes in the background as soon as there is anything, and at its end."""
    config = config_from({"store": {"index_tail_max": 1, "index_at_close_min": 1, "lock_wait_s_max": 2.0}})
    with mnemarch.open(tmp_path / "home", config=config, clock=clock) as opened:
        yield opened


@pytest.fixture
def full_disk(monkeypatch):
    """The index can't be written while this is entered."""

    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(tantivy_index, "_document", no_room)
        yield patched


# The index


def test_recall_answers_where_no_thread_is_to_be_had(eager, monkeypatch):
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    seat = seat_of(eager)
    seat.remember_many([Claim(content=fact) for fact in FACTS])
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        assert contents(seat.recall("red pump a"))
        eager._engine.finder.wait()
    assert contents(seat.recall("red pump a"))
    eager._engine.finder.wait()
    assert eager.stats().unindexed == 0


def test_an_index_that_can_not_be_written_says_why_and_can_be_written_later(eager, full_disk):
    seat = seat_of(eager)
    seat.remember_many([Claim(content=fact) for fact in FACTS])
    with pytest.raises(StoreUnavailable, match="No space left on device") as caught:
        eager.reindex()
    assert "Another process" not in str(caught.value)
    assert caught.value.hint
    full_disk.undo()
    # Also while the error is still at hand: nothing holds the index any more.
    assert eager.reindex() == len(FACTS)


def test_recall_and_close_do_without_an_index_that_can_not_be_written(eager, full_disk):
    seat = seat_of(eager)
    seat.remember_many([Claim(content=fact) for fact in FACTS])
    assert "The a pump is painted red" in contents(seat.recall("red pump a"))
    eager._engine.finder.wait()
    assert "The b pump is painted red" in contents(seat.recall("red pump b"))
    eager.close()


def test_a_busy_index_is_waited_for_and_not_opened_anew(eager):
    seat_of(eager).remember_many([Claim(content=fact) for fact in FACTS])
    eager.reindex()
    index = eager._engine.finder._local
    opened = index._opened
    other = tantivy_index.TantivyIndex(index._folder, index._store_id, index._event_at)
    writer = other._writer()
    assert index.update(lambda _: []) is False
    assert index._opened is opened
    with pytest.raises(StoreUnavailable, match="Another process is indexing"):
        eager._engine.finder.index_patiently(0.0)
    writer.wait_merging_threads()
    assert index.update(lambda _: []) is True


@pytest.mark.parametrize("tied", [4, 30, 90])
def test_units_with_one_score_are_cut_alike_whatever_the_order_of_indexing(tmp_path, tied):
    best = searchable(1, "the red red pump")
    units = [best, *(searchable(number, "the red pump") for number in range(2, tied + 2))]
    found = []
    for folder, batches in (("one", [units]), ("two", [units[tied // 2 :], units[: tied // 2]])):
        index = tantivy_index.TantivyIndex(str(tmp_path / folder), "store", lambda _: "event")
        for batch in batches:
            assert index.update(lambda _, batch=batch: batch)
        hits = index.search({"red": 1.0, "pump": 1.0}, [SCOPE.key], states=["draft"], limit=12)
        found.append([sketch.id for _, sketch in hits])
    assert sorted(found[0]) == sorted(found[1]) == [unit.id for unit in units[:12]]
    assert found[0][0] == found[1][0] == best.id


# The vectors


class Meanings:
    """Vectors that are never there; counts how often their making was begun."""

    begun = 0

    def ready(self) -> bool:
        return False

    def follow(self, *_: object) -> None:
        self.begun += 1

    def close(self) -> None:
        pass


def test_a_process_that_asks_once_loads_no_model(clock):
    meanings = Meanings()
    parts = {"index": None, "meanings": meanings, "vectors": None, "root": None}
    memory = mnemarch.Memory(Engine(InMemoryStore(), config=Config(), clock=clock, **parts))
    seat = seat_of(memory)
    seat.remember(FACTS[0])
    assert contents(seat.recall("pump")) == {FACTS[0]}
    assert meanings.begun == 0
    assert contents(seat.recall("pump")) == {FACTS[0]}
    assert meanings.begun == 1
    memory.close()


def test_closing_does_not_wait_for_an_endpoint_that_never_answers(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(dense_search, "_LEAVE_S_MAX", 0.01)
    taken = []
    asked = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            taken.append(server.accept()[0])
            asked.set()

        accepting = threading.Thread(target=accept)
        accepting.start()
        silent = config_from({"recall": {"semantic": f"http://127.0.0.1:{server.getsockname()[1]}/v1#none"}})
        memory = mnemarch.open(tmp_path / "home", config=silent, clock=clock)
        seat = seat_of(memory)
        seat.remember(FACTS[0])
        for _ in range(2):
            assert contents(seat.recall("pump")) == {FACTS[0]}
        assert asked.wait(10)
        memory.close()
        assert memory._engine._meanings._thread.is_alive()
        accepting.join()
        taken[0].close()
    # The request ended early: it is not made again for a memory that is closed.
    memory._engine._meanings.wait()
    assert "being closed" in memory._engine._meanings.progress().error

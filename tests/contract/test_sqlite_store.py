"""What only the SQLite store promises: damage stays with who asks for it, and connections end before their file."""

from __future__ import annotations

import sqlite3
import threading

import pytest

import mnemarch
from mnemarch import Actor, Scope, StoreCorrupt, StoreUnavailable
from mnemarch.model.value import replace
from mnemarch.stores.sqlite import SqliteStore, raw
from mnemarch.stores.sqlite import store as sqlite_store
from mnemarch.testing import made_link, made_unit, recorded

SCOPE = Scope(project="p", task="t")


@pytest.fixture
def store(tmp_path):
    opened = SqliteStore(str(tmp_path / "memory.db"), lock_wait_s_max=0.2)
    yield opened
    opened.close()


def changed_by_hand(path, *statement):
    connection = sqlite3.connect(path)
    connection.execute(*statement)
    connection.commit()
    connection.close()


def outcomes_of(works, store):
    """What each of these works gave or raised, all of them waiting for one commit."""
    outcomes = [None] * len(works)
    started, go_on = threading.Event(), threading.Event()

    def first(transaction):
        started.set()
        go_on.wait(10)

    def run(number):
        try:
            outcomes[number] = store.write(works[number])
        except Exception as error:  # noqa: BLE001 - told to the test
            outcomes[number] = error

    leader = threading.Thread(target=store.write, args=(first,))
    leader.start()
    started.wait(10)
    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(works))]
    for thread in threads:
        thread.start()
    while len(store._jobs) < len(works):
        threading.Event().wait(0.001)
    go_on.set()
    for thread in [leader, *threads]:
        thread.join()
    return outcomes


# Damage


def works_beside(work, store):
    """What one work of a shared commit raised, after the others were found to be stored whole."""
    outcomes = outcomes_of([recorded, work, recorded, recorded], store)
    error = outcomes.pop(1)
    stored = store.read(lambda reader: list(reader.events()))
    assert sorted(event.id for event in stored[-3:]) == sorted(event.id for event in outcomes)
    assert [event.seq for event in stored] == list(range(1, len(stored) + 1))
    return error


def test_a_damaged_row_fails_only_the_work_that_reads_it(store, tmp_path):
    unit = made_unit("u-1")
    store.write(lambda tx: tx.put_unit(unit, canonical_key=None, topic_key=None, searchable_at=None))
    changed_by_hand(tmp_path / "memory.db", "UPDATE units SET body = '{}'")

    def spoilt(transaction):
        recorded(transaction)
        transaction.unit("u-1")

    error = works_beside(spoilt, store)
    assert isinstance(error, StoreCorrupt)
    assert "u-1" in error.message


def test_a_row_that_the_driver_refuses_fails_only_its_own_work(store):
    first = store.write(recorded)

    def twice(transaction):
        recorded(transaction)
        seq, _ = transaction.head(first.stream)
        transaction.append(replace(first, seq=seq + 1), first.hash)

    assert isinstance(works_beside(twice, store), mnemarch.MnemarchError)


def test_a_failed_shared_commit_raises_a_separate_error_in_each_thread(store, tmp_path):
    def cut(transaction):
        raise sqlite3.OperationalError("disk I/O error")

    outcomes = outcomes_of([recorded, cut, recorded], store)
    assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 3
    assert len({id(outcome) for outcome in outcomes}) == 3
    assert all(outcome.hint for outcome in outcomes)
    assert store.read(lambda reader: reader.position()) == 0


DAMAGES = ["{}", "", "[]", "null", "garbage", '{"id":', "7", b"\xff\x00", '{"scope": [[]], "occurred_at": 1e300}']


@pytest.mark.parametrize("body", DAMAGES)
def test_every_read_of_a_damaged_row_names_the_row(store, tmp_path, body):
    def put(transaction):
        for id in ("u-1", "u-2"):
            transaction.put_unit(made_unit(id), canonical_key="k", topic_key=None, searchable_at=1)
        transaction.put_link(made_link("l-1", "u-1", "u-2"))

    store.write(put)
    key = made_unit("u-1").scope.key
    changed_by_hand(tmp_path / "memory.db", "UPDATE units SET body = ? WHERE id = 'u-1'", (body,))
    changed_by_hand(tmp_path / "memory.db", "UPDATE links SET body = ?", (body,))
    reads = {
        "unit": lambda reader: reader.unit("u-1"),
        "units": lambda reader: reader.units(["u-1"]),
        "listed": lambda reader: reader.units_in([key]),
        "same text": lambda reader: reader.units_with_text([key], "k"),
        "searchable": lambda reader: reader.searchable_after(0, 9),
        "link": lambda reader: reader.link("l-1"),
        "links": lambda reader: reader.links_of("u-1"),
        "open": lambda reader: reader.open_links([key], "contradicts"),
    }
    for name, read in reads.items():
        with pytest.raises(StoreCorrupt) as caught:
            store.read(read)
        assert ("l-1" if name in {"link", "links", "open"} else "u-1") in caught.value.message, name
        assert caught.value.hint
    assert store.read(lambda reader: reader.unit("u-2")) == made_unit("u-2")


def test_a_file_of_the_format_before_is_brought_to_this_one(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_store, "FORMAT_VERSION", 7)
        with mnemarch.open(tmp_path / "home") as memory:
            seat = memory.seat(Actor.human("ada"), SCOPE)
            live, past = (seat.remember(text).unit for text in ("Retries are three", "Mails are sent at night"))
            seat.archive(past.id, "no longer")
    path = tmp_path / "home" / ".mnemarch" / "memory.db"
    assert sqlite3.connect(path).execute("PRAGMA user_version").fetchone() == (7,)
    with mnemarch.open(tmp_path / "home") as memory:
        seat = memory.seat(Actor.agent("a"), SCOPE)
        assert [unit.id for unit in seat.units()] == [past.id, live.id]
        assert memory.audit(full=True).ok
    assert sqlite3.connect(path).execute("PRAGMA user_version").fetchone() == (sqlite_store.FORMAT_VERSION,)


def test_a_recall_over_a_damaged_row_tells_to_rebuild_and_a_rebuild_repairs_it(tmp_path):
    with mnemarch.open(tmp_path / "home") as memory:
        seat = memory.seat(Actor.agent("a"), SCOPE)
        unit = seat.remember("Checkout retries three times").unit
        changed_by_hand(tmp_path / "home" / ".mnemarch" / "memory.db", "UPDATE units SET body = '{}'")
        with pytest.raises(StoreCorrupt, match="rebuild") as caught:
            seat.recall("how often does checkout retry")
        assert unit.id in caught.value.message
        memory.rebuild()
        assert seat.recall("how often does checkout retry").items[0].unit.id == unit.id


# Connections


class Reading:
    """A read in another thread that lasts until it is told to end."""

    def __init__(self, store):
        self.started, self.go_on = threading.Event(), threading.Event()
        self.reader = self.found = None
        self.thread = threading.Thread(target=lambda: store.read(self.work))
        self.thread.start()
        assert self.started.wait(10)

    def work(self, reader):
        self.reader = reader
        self.started.set()
        self.go_on.wait(10)
        self.found = reader.position()

    def end(self):
        self.go_on.set()
        self.thread.join()

    @property
    def connected(self):
        try:
            self.reader.position()
        except sqlite3.ProgrammingError:
            return False
        return True


def test_a_store_that_is_closed_during_a_read_lets_everything_go_after_it(store):
    store.write(recorded)
    reading = Reading(store)
    store.close()
    with pytest.raises(StoreUnavailable):
        store.read(lambda reader: reader.position())
    assert reading.connected
    assert store._raw._key in raw._open_files, "the file's own descriptor goes last, or locks would go with it"
    key = store._raw._key
    reading.end()
    assert reading.found == 1
    assert not reading.connected
    assert key not in raw._open_files


def test_a_read_may_close_its_own_store(store):
    def work(reader):
        store.close()
        return reader.position()

    assert store.read(work) == 0
    assert store._raw is None


def test_a_store_rests_once_nobody_reads_and_has_no_connection_open_then(store):
    store.write(recorded)
    reading = Reading(store)
    assert not store._rest(), "one reads still"
    assert reading.connected
    reading.end()
    assert store._rest()
    assert not reading.connected
    assert (store._idle, store._writer) == ([], None)
    store._resume(in_child=False, rested=True)
    store.write(recorded)
    assert store.read(lambda reader: reader.position()) == 2


def test_a_backup_of_a_closed_store_says_so(store, tmp_path):
    store.backup(str(tmp_path / "copy.db"))
    store.close()
    with pytest.raises(StoreUnavailable):
        store.backup(str(tmp_path / "another.db"))
    assert not (tmp_path / "another.db").exists()

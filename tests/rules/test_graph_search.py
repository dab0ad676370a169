"""Search: with the inverted index and without it, the same bits as comparing every two vectors by hand."""

from __future__ import annotations

import random
from math import exp, fsum, log, sqrt, tanh

import pytest

from mnemarch.errors import InvalidInput
from mnemarch.graph import GraphConfig, GraphStore, search
from mnemarch.model.stamps import micros

HALF_LIFE_MIN = 60


@pytest.fixture(autouse=True)
def few_vectors_are_laid_out(monkeypatch):
    """A small graph is scanned with the index too, which would leave nothing to compare."""
    monkeypatch.setattr(search, "_NEW_ROWS_MAX", 2)


class Table:
    """An embedder that knows its texts by heart."""

    def __init__(self):
        self.vectors = {}

    def embed(self, text):
        return self.vectors[text]


def unit(weights):
    length = sqrt(fsum(weight * weight for weight in weights.values()))
    return {feature: weight / length for feature, weight in weights.items() if weight}


def cosine(left, right):
    return max(-1.0, min(1.0, fsum(weight * right[feature] for feature, weight in left.items() if feature in right)))


class Both:
    """One graph with the index and one without it, told the same; and the answers by hand."""

    def __init__(self, clock, **config):
        self.clock = clock
        self.table = Table()
        given = {"half_life_min": HALF_LIFE_MIN, "tau_dup": 1.0, "tau_sim": 1.0, "similar_max": 0} | config
        self.kinds = [
            GraphStore(GraphConfig(**given, enable_inverted_index=indexed), self.table, clock=clock)
            for indexed in (False, True)
        ]
        self.asked = 0

    def told(self, act):
        one, other = (act(store) for store in self.kinds)
        assert one == other
        return one

    def ask(self, vector):
        self.asked += 1
        text = f"question {self.asked}"  # Another number is another question.
        self.table.vectors[text] = vector
        return self.told(lambda store: store.upsert_query(text))

    def queries(self):
        return self.told(lambda store: [node.id for node in store.nodes("query")])

    def search(self, vector, k):
        self.table.vectors["this"] = vector
        found = self.told(lambda store: store.search_similar_queries("this", k))
        return [(hit.score, hit.sim, hit.id) for hit in found]

    def search_by_hand(self, vector, k):
        asked = unit(vector)
        found = []
        for node in self.kinds[0].nodes("query"):
            sim = cosine(unit(self.table.vectors[node.text]), asked)
            if sim > 0:
                found.append((0.7 * sim + 0.3 * self.rank(node), sim, node.id))
        return sorted(found, key=lambda one: (-one[0], -one[1], one[2]))[:k]

    def rank(self, node):
        age_min = (micros(self.clock()) - micros(node.last_access)) / 60_000_000
        recency = exp(-log(2) * age_min / HALF_LIFE_MIN)
        return 0.5 * recency + (0.3 * tanh(node.weights.repeat / 5) + 0.2 * tanh(node.weights.feedback / 5))

    def compared(self, vector):
        for k in (1, 3, 1000):
            assert self.search(vector, k) == self.search_by_hand(vector, k)
        assert self.told(GraphStore.nodes) is not None
        assert self.told(GraphStore.edges) is not None


def some_vector(randomly, features, size):
    return {feature: randomly.uniform(0.05, 1.0) for feature in randomly.sample(range(features), size)}


def lived(clock, randomly, *, rounds, features=40, size=6, **config):
    """Two graphs after many acts of every kind and many evictions, compared on the way."""
    both = Both(clock, **config)
    for number in range(rounds):
        both.ask(some_vector(randomly, features, size))
        id = randomly.choice(both.queries())
        deltas = {"repeat_delta": number % 5, "feedback_delta": number % 3 - 1}
        both.told(lambda store, id=id, deltas=deltas: store.adjust_weights(id, **deltas))
        if number % 7 == 2:
            both.told(lambda store, id=id, is_pinned=number % 2 == 0: store.pin(id, is_pinned))
        if number % 5 == 3 and id != (other := randomly.choice(both.queries())):
            both.told(lambda store, ids=(id, other): store.link(*ids, "similar_to", 0.5))
        if number % 9 == 0:
            both.compared(some_vector(randomly, features, size))
        clock.advance(minutes=randomly.choice([0, 1, 30]))
    both.compared(some_vector(randomly, features, size))
    return both


def vectors_of(store):
    return store.table()._vectors


@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize("max_nodes", [12, 40])
def test_a8_with_the_index_and_without_it_the_same_bits_as_by_hand(clock, seed, max_nodes):
    both = lived(clock, random.Random(seed), rounds=120, max_nodes=max_nodes, protect_min_degree=2)
    scanned, indexed = map(vectors_of, both.kinds)
    assert scanned._index is None
    assert indexed._index is not None
    assert len(both.queries()) <= max_nodes < both.asked


@pytest.mark.parametrize("new_rows_max", [2, 10**6], ids=["laid out often", "never laid out"])
def test_rows_of_evicted_questions_are_used_again(clock, new_rows_max, monkeypatch):
    monkeypatch.setattr(search, "_NEW_ROWS_MAX", new_rows_max)
    both = lived(clock, random.Random(5), rounds=120, max_nodes=12)
    for store in both.kinds:
        assert len(store.table()._vertices) <= 12
        assert len(vectors_of(store)._vectors) == len(both.queries())
        assert bool(len(vectors_of(store)._laid_out.rows)) == (new_rows_max == 2)


@pytest.mark.parametrize(("features", "size"), [(300, 16), (12, 9)], ids=["rare features", "frequent features"])
@pytest.mark.parametrize("gathered_max", [0, 1 << 14], ids=["long runs", "short runs"])
def test_a8_the_same_bits_in_a_large_graph_and_after_evictions(clock, features, size, gathered_max, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(search, "_GATHERED_MAX", gathered_max)
    randomly = random.Random(9)
    both = Both(clock, max_nodes=950)
    for _ in range(940):
        both.ask(some_vector(randomly, features, size))
    both.compared(some_vector(randomly, features, size))
    assert vectors_of(both.kinds[1])._index is not None
    clock.advance(minutes=5)
    for _ in range(60):
        both.ask(some_vector(randomly, features + 50, size))
    assert len(both.queries()) == 950
    both.compared(some_vector(randomly, features + 50, size))


@pytest.mark.parametrize("seed", range(4))
def test_vectors_that_cancel_each_other_out_are_the_same_bits_too(clock, seed):
    """Dense vectors have weights below 0: what adds up to nothing is nothing in whatever order it is added."""
    randomly = random.Random(seed)
    both = Both(clock)
    for _ in range(30):
        both.ask([randomly.choice([-3, -2, -1, 1, 2, 3]) / 10 for _ in range(6)])
    for _ in range(15):
        both.search([randomly.choice([-3, -2, -1, 1, 2, 3]) / 10 for _ in range(6)], 1000)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_barely_alike_is_found_or_not_found_by_both(clock, seed):
    """The index may be coarse; the answer must not depend on it."""
    randomly = random.Random(seed)
    both = Both(clock)
    for place in range(30):
        both.ask([1.0, randomly.choice([-1, 1]) * 10 ** -(4 + place % 9), 0.0, randomly.choice([0.5, -0.5])])
    for place in range(9):
        both.search([0.0, 1.0, 10.0**-place, 0.0], 1000)
        both.search([10 ** -(place + 4), 0.0, 1.0, 0.0], 1000)
        both.search([0.5, 0.0, 0.0, 1.0], 1000)


def test_a_question_that_holds_nothing_is_found_by_nobody(clock):
    both = Both(clock)
    empty = both.ask({})
    full = both.ask({1: 1.0})
    assert [id for _, _, id in both.search({1: 1.0}, 5)] == [full]
    assert both.search({}, 5) == []
    assert both.search({1: 1.0}, 0) == []
    assert both.search({2: 1.0}, 5) == []
    assert {empty, full} == set(both.queries())


def test_a_feature_that_only_the_question_has_changes_no_other(clock):
    both = Both(clock)
    both.ask({1: 1.0})
    ((_, sim, _),) = both.search({1: 1.0, 99: 1.0}, 1)
    assert sim == 1.0 / sqrt(2.0)


def test_ties_go_to_the_lower_id(clock):
    both = Both(clock)
    ids = [both.ask({1: 1.0, 2: number / 7}) for number in (2, 2, 2, 3)]
    found = [id for _, _, id in both.search({1: 1.0, 2: 2 / 7}, 2)]
    assert found == sorted(ids[:3])[:2]


@pytest.mark.parametrize("enable_inverted_index", [False, True])
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_finite_numbers_of_any_size_have_a_direction(clock, scale, enable_inverted_index):
    table = Table()
    table.vectors = {"one": [scale, 0.0, scale], "other": [1.0, 0.0, 1.0]}
    store = GraphStore({"enable_inverted_index": enable_inverted_index}, table, clock=clock)
    store.upsert_query("one")
    (hit,) = store.search_similar_queries("other")
    assert hit.sim == pytest.approx(1.0)


@pytest.mark.parametrize(
    "given", [None, 5, [float("nan")], [float("inf")], {"a": "b"}, ["a"], {"a": None}, {"a": float("nan")}, "text"]
)
def test_what_is_no_vector_is_refused_and_nothing_is_stored(clock, given):
    table = Table()
    table.vectors = {"one": given}
    store = GraphStore(None, table, clock=clock)
    with pytest.raises(InvalidInput, match="embedder") as refused:
        store.upsert_query("one")
    assert refused.value.hint
    assert store.stats().nodes == 0

"""Search by the inverted index finds what comparing every two vectors by hand finds."""

from __future__ import annotations

import random
from math import exp, fsum, log, sqrt, tanh

import pytest

from mnemarch.errors import InvalidInput
from mnemarch.graph import GraphConfig, GraphStore
from mnemarch.model.stamps import micros

HALF_LIFE_MIN = 60


def unit(weights):
    weights = dict(weights.items() if isinstance(weights, dict) else enumerate(weights))
    length = sqrt(fsum(weight * weight for weight in weights.values()))
    return {feature: weight / length for feature, weight in weights.items() if weight}


def cosine(left, right):
    return fsum(weight * right[feature] for feature, weight in left.items() if feature in right)


class Compared:
    """A graph whose vectors are known by heart, and the answers by hand."""

    def __init__(self, clock, **config):
        self.clock = clock
        self.vectors = {}
        given = {"half_life_min": HALF_LIFE_MIN, "tau_dup": 1.0, "tau_sim": 1.0, "similar_max": 0} | config
        self.store = GraphStore(GraphConfig(**given), self, clock=clock)

    def embed(self, text):
        return self.vectors[text]

    def ask(self, vector):
        text = f"question {len(self.vectors)}"  # Another number is another question.
        self.vectors[text] = vector
        return self.store.upsert_query(text)

    def queries(self):
        return [node.id for node in self.store.nodes("query")]

    def search(self, vector, k):
        self.vectors["this"] = vector
        return [(hit.score, hit.sim, hit.id) for hit in self.store.search_similar_queries("this", k)]

    def search_by_hand(self, vector, k):
        found = []
        for node in self.store.nodes("query"):
            sim = cosine(unit(self.vectors[node.text]), unit(vector))
            if sim > 1e-5:
                found.append((0.7 * sim + 0.3 * self.rank(node), sim, node.id))
        return sorted(found, key=lambda one: (-one[0], -one[1], one[2]))[:k]

    def rank(self, node):
        age_min = (micros(self.clock()) - micros(node.last_access)) / 60_000_000
        recency = exp(-log(2) * age_min / HALF_LIFE_MIN)
        return 0.5 * recency + 0.3 * tanh(node.weights.repeat / 5) + 0.2 * tanh(node.weights.feedback / 5)

    def compare(self, vector):
        for k in (1, 3, 1000):
            found, expected = self.search(vector, k), self.search_by_hand(vector, k)
            assert [score for score, _, _ in found] == pytest.approx([score for score, _, _ in expected], abs=1e-12)
        assert {id: sim for _, sim, id in found} == pytest.approx({id: sim for _, sim, id in expected}, abs=1e-12)


def some_vector(randomly, features=40, size=6):
    return {feature: randomly.uniform(0.05, 1.0) for feature in randomly.sample(range(features), size)}


@pytest.mark.parametrize(("max_nodes", "rounds", "features", "size"), [(12, 300, 40, 6), (40, 120, 12, 9)])
@pytest.mark.parametrize("seed", range(3))
def test_a8_the_same_as_by_hand_after_many_acts_and_evictions(clock, seed, max_nodes, rounds, features, size):
    randomly = random.Random(seed)
    graph = Compared(clock, max_nodes=max_nodes, protect_min_degree=2)
    store = graph.store
    for number in range(rounds):
        graph.ask(some_vector(randomly, features, size))
        id = randomly.choice(graph.queries())
        store.adjust_weights(id, repeat_delta=number % 5, feedback_delta=number % 3 - 1)
        if number % 7 == 2:
            store.pin(id, number % 2 == 0)
        if number % 5 == 3 and id != (other := randomly.choice(graph.queries())):
            store.link(id, other, "similar_to", 0.5)
        if number % 9 == 0:
            graph.compare(some_vector(randomly, features, size))
        clock.advance(minutes=randomly.choice([0, 1, 30]))
    graph.compare(some_vector(randomly, features, size))
    assert len(graph.queries()) <= max_nodes
    assert len(store.table()._vertices) <= 64 + 2 * max_nodes, "rows of evicted nodes don't pile up"


@pytest.mark.parametrize("seed", range(3))
def test_vectors_with_weights_below_zero_and_what_is_barely_alike(clock, seed):
    randomly = random.Random(seed)
    graph = Compared(clock)
    for place in range(30):
        graph.ask([randomly.choice([-3, -2, -1, 1, 2, 3]) / 10 for _ in range(6)])
        graph.ask([1.0, randomly.choice([-1, 1]) * 10 ** -(6 + place % 9), 0.0, randomly.choice([0.5, -0.5])])
    for place in range(9):
        graph.compare([randomly.choice([-3, -2, -1, 1, 2, 3]) / 10 for _ in range(6)])
        graph.compare([10 ** -(place + 6), 0.0, 1.0, 0.3])


def test_a_question_that_holds_nothing_is_found_by_nobody(clock):
    graph = Compared(clock)
    empty, full = graph.ask({}), graph.ask({1: 1.0})
    assert [id for _, _, id in graph.search({1: 1.0}, 5)] == [full]
    assert graph.search({}, 5) == graph.search({1: 1.0}, 0) == graph.search({2: 1.0}, 5) == []
    assert {empty, full} == set(graph.queries())


def test_a_feature_that_only_the_question_has_changes_no_other(clock):
    graph = Compared(clock)
    graph.ask({1: 1.0})
    ((_, sim, _),) = graph.search({1: 1.0, 99: 1.0}, 1)
    assert sim == 1.0 / sqrt(2.0)


def test_ties_go_to_the_lower_id(clock):
    graph = Compared(clock)
    ids = [graph.ask({1: 1.0, 2: number / 7}) for number in (2, 2, 2, 3)]
    assert [id for _, _, id in graph.search({1: 1.0, 2: 2 / 7}, 2)] == sorted(ids[:3])[:2]


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_finite_numbers_of_any_size_have_a_direction(clock, scale):
    graph = Compared(clock)
    graph.ask([scale, 0.0, scale])
    ((_, sim, _),) = graph.search([1.0, 0.0, 1.0], 1)
    assert sim == pytest.approx(1.0)


@pytest.mark.parametrize(
    "given", [None, 5, [float("nan")], [float("inf")], {"a": "b"}, ["a"], {"a": None}, {"a": float("nan")}, "text"]
)
def test_what_is_no_vector_is_refused_and_nothing_is_stored(clock, given):
    graph = Compared(clock)
    with pytest.raises(InvalidInput, match="embedder") as refused:
        graph.ask(given)
    assert refused.value.hint
    assert graph.store.stats().nodes == 0

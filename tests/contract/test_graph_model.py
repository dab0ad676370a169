"""Random acts on a small graph, beside a model so plain that it must be right: after each act the two are the same.

Whom a question is merged with and linked to (A4), how weights and edges grow (A5, A6), who has to go (A23), what decay
leaves (A24), what feedback does to others and how a search is ordered (R15).
"""

from __future__ import annotations

import json
from contextlib import suppress
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from math import exp, fsum, log, sqrt, tanh

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from mnemarch.errors import InvalidInput
from mnemarch.graph import GraphConfig, GraphStore
from mnemarch.model.stamps import micros
from mnemarch.text.canonical import canonical, canonical_key
from mnemarch.text.guarded import differences

FEEDBACK = {"up": 1.0, "down": -1.0, "retry": -0.5}
DEPENDENT = ("answer", "feedback")
THINGS = ("stripe", "결제")
WORDS = ("deploy", "checkout", "배포", "서버", "not", "3", "5", "foo_a", *THINGS)
NOTES = (None, "worked", "Worked!", "느려요")
ANSWERS = ("By hand", "by  hand!", "손으로", "Twice")


def words_in(text):
    return text.casefold().replace("?", "").split()


class Words:
    """A text is its words; so many texts are equally alike, and many are the same in another order."""

    def embed(self, text):
        return dict.fromkeys(words_in(text), 1.0)


def unit(weights):
    length = sqrt(fsum(weight * weight for weight in weights.values()))
    return {feature: weight / length for feature, weight in weights.items()} if length else {}


class Full(Exception):
    """There is no room that may be given up."""


class Model:
    """Nodes and edges in dictionaries; every rule of A4, A6, A22-A24 and R15 in the plainest words."""

    def __init__(self, config, embedder):
        self.config = config
        self.embed = lambda text: unit(embedder.embed(text))
        self.nodes = {}
        self.edges = {}
        self.decayed_at = None

    # What is asked of it

    def of(self, type):
        return [id for id, node in self.nodes.items() if node["type"] == type]

    def edges_of(self, id):
        return [edge for edge in self.edges.values() if id in (edge["from"], edge["to"])]

    def rank(self, id, now):
        node = self.nodes[id]
        age_min = max(0.0, (now - node["last"]) / 60_000_000)
        recency = exp(-log(2.0) * age_min / self.config.half_life_min)
        return 0.5 * recency + (0.3 * tanh(node["repeat"] / 5.0) + 0.2 * tanh(node["feedback"] / 5.0))

    def similarity(self, text, id):
        one, other = self.embed(text), self.embed(self.nodes[id]["text"])
        return max(-1.0, min(1.0, fsum(one[word] * other[word] for word in one if word in other)))

    def is_protected(self, id):
        return self.nodes[id]["pinned"] or len(self.edges_of(id)) >= self.config.protect_min_degree

    def search(self, text, k, now):
        found = [(self.similarity(text, id), id) for id in self.of("query")]
        scored = [(0.7 * sim + 0.3 * self.rank(id, now), sim, id) for sim, id in found if sim > 0]
        return sorted(scored, key=lambda one: (-one[0], -one[1], one[2]))[:k]

    def with_key(self, type, key):
        return next((id for id in self.of(type) if key in self.nodes[id]["keys"]), None)

    # How it changes

    def weigh(self, id, repeat, feedback, at):
        node = self.nodes[id]
        node["repeat"] += repeat
        node["feedback"] += feedback
        node["last"] = node["last"] if at is None else max(node["last"], at)

    def add(self, id, type, text, key, now, keep=()):
        loose = [other for other in self.nodes if other not in keep and not self.nodes[other]["pinned"]]
        if len(self.nodes) >= self.config.max_nodes and not loose:
            raise Full
        while len(self.nodes) >= self.config.max_nodes:
            free = [other for other in self.nodes if other not in keep and not self.is_protected(other)]
            if free:
                self.drop(min(free, key=lambda other: (self.rank(other, now), self.nodes[other]["last"], other)))
            else:
                holding = [edge for edge in self.edges.values() if {edge["from"], edge["to"]} & set(loose)]
                self.cut(min(holding, key=lambda edge: (edge["weight"], edge["last"], edge["id"]))["id"])
        assert id not in self.nodes
        self.nodes[id] = {
            "type": type, "text": text, "keys": {key}, "created": now, "last": now, "repeat": 1.0, "feedback": 0.0,
            "pinned": False, "names": [],
        }  # fmt: skip

    def drop(self, id):
        for edge in self.edges_of(id):
            self.cut(edge["id"])
        self.nodes.pop(id, None)

    def cut(self, edge_id):
        edge = self.edges.pop(edge_id)
        target = self.nodes[edge["to"]]
        if target["type"] in DEPENDENT and not target["pinned"] and not self.edges_of(edge["to"]):
            del self.nodes[edge["to"]]

    def link(self, from_, type, to, weight, now):
        if type == "similar_to" and f"{to}::{type}::{from_}" in self.edges:
            from_, to = to, from_
        id = f"{from_}::{type}::{to}"
        if id not in self.edges:
            while len(self.edges) >= self.config.max_edges:
                self.cut(self.weakest_edge(to)["id"])
            self.edges[id] = {
                "id": id, "from": from_, "to": to, "type": type, "weight": 0.0, "created": now, "last": now
            }  # fmt: skip
        self.edges[id]["weight"] += weight
        self.edges[id]["last"] = max(self.edges[id]["last"], now)

    def link_if_room(self, *given):
        """A question is not refused because there is no room for what it is like or mentions."""
        with suppress(Full):
            self.link(*given)

    def weakest_edge(self, wanted):
        """The lightest, then the oldest; but none with which the node to be linked would go."""

        def takes_along(edge):
            target = self.nodes[edge["to"]]
            alone = target["type"] in DEPENDENT and len(self.edges_of(edge["to"])) == 1 and not target["pinned"]
            return alone and edge["to"] == wanted

        free = [edge for edge in self.edges.values() if not takes_along(edge)]
        if not free:
            raise Full
        return min(free, key=lambda edge: (edge["weight"], edge["last"], edge["id"]))

    def ask(self, text, now, id):
        key = canonical_key(text)
        near = [(self.similarity(text, other), other) for other in self.of("query")]
        near = sorted(
            [one for one in near if one[0] >= self.config.tau_sim and one[0] > 0], key=lambda one: (-one[0], one[1])
        )
        same = self.with_key("query", key) or next(
            (
                other
                for sim, other in near
                if sim >= self.config.tau_dup and not differences(text, self.nodes[other]["text"])
            ),
            None,
        )
        if same is not None:
            self.weigh(same, 1.0, 0.0, now)
            if self.with_key("query", key) is None:
                self.nodes[same]["keys"].add(key)
            return same
        self.add(id, "query", text, key, now)
        for sim, other in reversed(near[: self.config.similar_max]):
            if other in self.nodes:
                self.link_if_room(id, "similar_to", other, sim, now)
        entities = {other: self.nodes[other]["names"] for other in self.of("entity")}
        for other in sorted(entities, key=lambda other: first_place(entities[other], text)):
            if first_place(entities[other], text) < len(text):
                self.link_if_room(id, "refers_to_entity", other, 1.0, now)
        return id

    def answer(self, query, text, unit_id, now, id):
        key = f"unit {unit_id}" if text is None else canonical(text)
        known = self.with_key("answer", key)
        if known is None:
            self.add(id, "answer", text, key, now, keep=(query,))
        else:
            self.weigh(known, 1.0, 0.0, now)
        self.weigh(query, 0.0, 0.0, now)
        self.link(query, "responded_with", known or id, 1.0, now)
        return known or id

    def judge(self, query, label, note, now, id):
        key = (query, label, canonical(note or ""))
        known = self.with_key("feedback", key)
        if known is None:
            self.add(id, "feedback", note, key, now, keep=(query,))
        else:
            self.weigh(known, 1.0, 0.0, now)
        self.link(query, "has_feedback", known or id, 1.0, now)
        self.weigh(query, 0.0, FEEDBACK[label], now)
        for other, share in self.shares(query, FEEDBACK[label]).items():
            self.weigh(other, 0.0, share, None)
        return known or id

    def shares(self, query, delta):
        def next_to(id):
            return {
                (edge["to"] if edge["from"] == id else edge["from"]): min(1.0, edge["weight"])
                for edge in self.edges_of(id)
                if edge["type"] == "similar_to"
            }

        def strong(shares):
            return {id: share for id, share in shares.items() if abs(share) >= 0.05 and id != query}

        one = strong({id: delta * weight * 0.5 for id, weight in next_to(query).items()})
        two = {}
        for middle, share in one.items():
            for id, weight in next_to(middle).items():
                if id not in one:
                    two[id] = max(two.get(id, 0.0), share * weight * 0.5, key=abs)
        return one | strong(two)

    def name(self, thing, alias, now, id):
        known = self.with_key("entity", thing)
        if known is None:
            self.add(id, "entity", None, thing, now)
            self.nodes[id]["names"] = [thing]
        else:
            self.weigh(known, 1.0, 0.0, now)
        node = self.nodes[known or id]
        node["names"] += [alias] if alias and alias not in node["names"] else []
        for query in self.of("query"):
            mentions = first_place(node["names"], self.nodes[query]["text"]) < len(self.nodes[query]["text"])
            if mentions and f"{query}::refers_to_entity::{known or id}" not in self.edges:
                self.link_if_room(query, "refers_to_entity", known or id, 1.0, now)
        return known or id

    def wear(self, now):
        def factor(last):
            left_alone_min = max(0.0, (now - max(self.decayed_at or 0, last)) / 60_000_000)
            return exp(-log(2.0) * left_alone_min / self.config.half_life_min)

        for node in self.nodes.values():
            of_node = factor(node["last"])
            node["repeat"] *= of_node
            node["feedback"] *= of_node
        for edge in self.edges.values():
            edge["weight"] *= factor(edge["last"])
        self.decayed_at = now
        for edge in [edge for edge in self.edges.values() if edge["weight"] < 0.05]:
            self.cut(edge["id"])


def first_place(names, text):
    """Where a text mentions one of the names, as a word; behind its end if nowhere."""
    places = [place for name in names for place, word in enumerate(words_in(text)) if word == name]
    return min(places, default=len(text))


TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
SPELLINGS = st.sampled_from([str, str.upper, lambda text: text + "?", lambda text: text.replace(" ", "   ")])


class Machine(RuleBasedStateMachine):
    protect_min_degrees = (2, 3)
    max_edges = st.integers(2, 8)

    @initialize(data=st.data())
    def begin(self, data):
        self.now = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
        tau_dup = data.draw(st.sampled_from([0.96, 0.7, 1.0, 0.5]))
        self.config = GraphConfig(
            max_nodes=data.draw(st.integers(2, 7)),
            max_edges=data.draw(self.max_edges),
            half_life_min=60,
            tau_dup=tau_dup,
            tau_sim=min(tau_dup, data.draw(st.sampled_from([0.4, 0.6, 0.0]))),
            protect_min_degree=data.draw(st.sampled_from(self.protect_min_degrees)),
            similar_max=data.draw(st.sampled_from([0, 2, 16])),
            enable_inverted_index=data.draw(st.booleans()),
        )
        self.store = GraphStore(self.config, Words(), clock=lambda: self.now)
        self.model = Model(self.config, Words())

    def act(self, on_store, on_model, *, keeps=True):
        """Do the same to both; who is pinned stays, who is protected while others are not; an error changes nothing."""
        safe = {id for id in self.model.nodes if self.model.nodes[id]["pinned"]}
        protected = {id for id in self.model.nodes if self.model.is_protected(id)}
        if keeps and len(self.model.nodes) > len(protected) + 1:
            safe |= {id for id in protected if self.model.nodes[id]["type"] not in DEPENDENT}
        before, revision, kept = self.told(), self.store.revision, deepcopy(self.model)
        try:
            given = on_store()
        except InvalidInput:
            with pytest.raises(Full):
                on_model("none")
            self.model = kept
            assert self.told() == before
            assert self.store.revision == revision
        else:
            assert on_model(given) == given
            assert safe <= set(self.model.nodes)

    def at(self):
        return micros(self.now)

    def told(self):
        record = self.store.to_snapshot()
        return record["nodes"], record["edges"], record["decayedAt"]

    def one_of(self, data, *types):
        return data.draw(st.sampled_from(sorted(id for type in types for id in self.model.of(type))))

    @rule(text=TEXTS, spelled=SPELLINGS)
    def ask(self, text, spelled):
        said = spelled(text)
        self.act(lambda: self.store.upsert_query(said), lambda id: self.model.ask(said, self.at(), id))

    @precondition(lambda self: self.model.of("query"))
    @rule(data=st.data(), label=st.sampled_from(sorted(FEEDBACK)), note=st.sampled_from(NOTES))
    def judge(self, data, label, note):
        query = self.one_of(data, "query")
        self.act(
            lambda: self.store.record_feedback(query, label, note),
            lambda id: self.model.judge(query, label, note, self.at(), id),
        )

    @precondition(lambda self: self.model.of("query"))
    @rule(data=st.data(), text=st.none() | st.sampled_from(ANSWERS), unit_id=st.sampled_from(["U1", "U2"]))
    def answer(self, data, text, unit_id):
        query = self.one_of(data, "query")
        named = None if text is not None else unit_id
        self.act(
            lambda: self.store.record_answer(query, text, unit_id=named),
            lambda id: self.model.answer(query, text, named, self.at(), id),
        )

    @rule(thing=st.sampled_from(THINGS), is_aliased=st.booleans())
    def name(self, thing, is_aliased):
        alias = {"stripe": "checkout", "결제": "서버"}[thing] if is_aliased else None
        aliases = [] if alias is None else [alias]
        self.act(
            lambda: self.store.upsert_entity("ada", thing, aliases=aliases),
            lambda id: self.model.name(thing, alias, self.at(), id),
        )

    @precondition(lambda self: len(self.model.of("query")) > 1)
    @rule(data=st.data(), weight=st.sampled_from([0.06, 0.3, 1.0, 2.5]))
    def link(self, data, weight):
        one = self.one_of(data, "query")
        other = data.draw(st.sampled_from(sorted(set(self.model.of("query")) - {one})))

        def on_model(id):
            self.model.link(one, "similar_to", other, weight, self.at())
            return id

        self.act(lambda: self.store.link(one, other, "similar_to", weight), on_model)

    @precondition(lambda self: self.model.nodes)
    @rule(data=st.data(), pinned=st.booleans())
    def pin(self, data, pinned):
        id = self.one_of(data, "query", "answer", "feedback", "entity")

        def on_model(_):
            self.model.nodes[id]["pinned"] = pinned

        self.act(lambda: self.store.pin(id, pinned), on_model)

    @precondition(lambda self: self.model.nodes)
    @rule(data=st.data(), repeat=st.sampled_from([0.0, 1.0, -0.5]), feedback=st.sampled_from([0.0, 2.0, -3.0]))
    def adjust(self, data, repeat, feedback):
        id = self.one_of(data, "query", "answer", "feedback", "entity")
        self.act(
            lambda: self.store.adjust_weights(id, repeat_delta=repeat, feedback_delta=feedback),
            lambda _: self.model.weigh(id, repeat, feedback, None),
        )

    @rule(minutes=st.sampled_from([1, 15, 60, 300, -10]))
    def wait(self, minutes):
        self.now += timedelta(minutes=minutes)

    @rule()
    def wear(self):
        self.act(self.store.decay, lambda _: self.model.wear(self.at()), keeps=False)

    @rule(text=TEXTS, k=st.integers(0, 5))
    def search(self, text, k):
        found = self.store.search_similar_queries(text, k)
        assert [(hit.score, hit.sim, hit.id) for hit in found] == self.model.search(text, k, self.at())
        nodes = [self.store.node(hit.id) for hit in found]
        assert [(hit.text, hit.canonical_key) for hit in found] == [(node.text, node.canonical_key) for node in nodes]

    @rule()
    def save_and_load(self):
        record = json.loads(json.dumps(self.store.to_snapshot()))
        loaded = GraphStore(self.config, Words(), clock=lambda: self.now)
        loaded.from_snapshot(record)
        assert loaded.to_snapshot() == record
        self.store = loaded

    @invariant()
    def both_are_the_same(self):
        if not hasattr(self, "store"):
            return
        at = self.at()
        expected = {
            id: (
                node["type"], node["text"], node["created"], node["last"], node["repeat"], node["feedback"],
                node["pinned"], len(self.model.edges_of(id)), self.model.rank(id, at),
            )
            for id, node in self.model.nodes.items()
        }  # fmt: skip
        found = {
            node.id: (
                str(node.type), node.text, micros(node.created_at), micros(node.last_access), node.weights.repeat,
                node.weights.feedback, node.pinned, node.degree, node.rank,
            )
            for node in self.store.nodes()
        }  # fmt: skip
        assert found == expected
        edges = {
            edge.id: (
                edge.from_, str(edge.type), edge.to, edge.weight, micros(edge.created_at), micros(edge.last_access)
            )
            for edge in self.store.edges()
        }  # fmt: skip
        assert edges == {
            id: (edge["from"], edge["type"], edge["to"], edge["weight"], edge["created"], edge["last"])
            for id, edge in self.model.edges.items()
        }
        assert len(found) <= self.config.max_nodes
        assert len(edges) <= self.config.max_edges


class Cramped(Machine):
    """Where one edge protects a node, and there may be room for one edge only: acts fail, and leave no trace."""

    protect_min_degrees = (1, 1, 2)
    max_edges = st.integers(1, 3)


RUN = settings(derandomize=True, max_examples=80, stateful_step_count=30)


@pytest.mark.long
def test_a_small_graph_under_random_acts_is_the_plain_model():
    run_state_machine_as_test(Machine, settings=RUN)


@pytest.mark.long
def test_a_graph_with_hardly_any_room_is_the_plain_model_and_its_refusals_change_nothing():
    run_state_machine_as_test(Cramped, settings=settings(RUN, max_examples=60))

"""The steps in which a graph changes: each does what it says, and taking them again makes the same graph."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemarch.graph import EdgeType, NodeType
from mnemarch.graph.state import GraphState, edge_id


def made(*steps):
    state = GraphState()
    for step in steps:
        state.take(list(step))
    return state


def told(state):
    """All that a graph holds, in plain values."""
    nodes = {
        one.id: (
            str(one.type), one.text, one.key, one.created, one.last, one.about, one.repeat, one.feedback, one.pinned,
            one.aliases, sorted(one.edges),
        )
        for one in state.nodes.values()
    }  # fmt: skip
    arcs = {
        arc.id: (arc.from_, str(arc.type), arc.to, arc.weight, arc.created, arc.last) for arc in state.arcs.values()
    }
    return nodes, arcs, dict(state.by_key), dict(state.sessions), state.decayed_at


def query(id, at=0):
    return ["add", id, "query", f"text of {id}", f"key of {id}", at, {}]


def answer(id, at=0):
    return ["add", id, "answer", f"text of {id}", f"key of {id}", at, {}]


def test_a_node_goes_with_its_edges_its_keys_and_what_only_it_led_to():
    state = made(
        query("a"),
        query("b"),
        answer("x"),
        answer("y"),
        ["alias", "a", "another key"],
        ["join", "a", "responded_with", "x", 1, 0],
        ["join", "a", "responded_with", "y", 1, 0],
        ["join", "b", "responded_with", "y", 1, 0],
        ["join", "a", "similar_to", "b", 1, 0],
        ["drop", "a"],
    )
    assert set(state.nodes) == {"b", "y"}
    assert set(state.arcs) == {"b::responded_with::y"}
    assert set(state.by_key) == {("query", "key of b"), ("answer", "key of y")}


def test_a_key_that_leads_somewhere_is_not_led_elsewhere():
    state = made(query("a"), query("b"), ["alias", "b", "key of a"], ["alias", "b", "more"], ["alias", "a", "more"])
    assert state.by_key["query", "key of a"] == "a"
    assert state.by_key["query", "more"] == "b"
    state.drop("b")
    assert ("query", "more") not in state.by_key


def test_the_weakest_edge_is_the_lightest_and_of_equals_the_one_longest_untouched():
    state = made(*map(query, "abcd"))
    for ends, weight, at in (("ab", 2.0, 5), ("ac", 1.0, 9), ("ad", 1.0, 7), ("bc", 3.0, 1)):
        state.join(ends[0], EdgeType.SIMILAR_TO, ends[1], weight, at)

    def weakest(may_go=lambda arc: True):
        arc = state.weakest_arc(may_go)
        return arc and f"{arc.from_}{arc.to}"

    assert weakest() == "ad"
    state.join("a", EdgeType.SIMILAR_TO, "d", 0.0, 20)
    assert weakest() == "ac"
    assert weakest(lambda arc: arc.to != "c") == "ad"
    assert weakest() == "ac", "what was passed over once is still there"
    state.join("a", EdgeType.SIMILAR_TO, "c", 5.0, 21)
    state.cut("a::similar_to::d")
    assert weakest() == "ab"
    assert weakest(lambda arc: False) is None


def test_the_weakest_edge_is_found_among_thousands_of_touches():
    state = made(*map(query, "abc"), ["join", "a", "similar_to", "c", 0.5, 0])
    for at in range(1000):
        state.join("a", EdgeType.SIMILAR_TO, "b", 1.0, at)
    assert state.weakest_arc(lambda arc: True).to == "c"
    state.cut("a::similar_to::c")
    assert state.weakest_arc(lambda arc: True).weight == 1000.0


def test_steps_about_what_is_gone_change_nothing():
    state = made(query("a"))
    before = told(state)
    for step in (
        ["weigh", "z", 1.0, 1.0, 5],
        ["tell", "z", {"x": 1}, "text"],
        ["alias", "z", "key"],
        ["pin", "z", True],
        ["join", "a", "similar_to", "z", 1.0, 5],
        ["cut", "a::similar_to::z"],
        ["drop", "z"],
        ["end", "nobody"],
    ):
        state.take(step)
    assert told(state) == before


IDS = st.sampled_from(["a", "b", "c", "d", "x", "y"])
NUMBERS = st.floats(-4, 4, allow_nan=False)
TIMES = st.integers(0, 1000)
STEPS = st.one_of(
    st.builds(lambda id, at: query(id, at) if id in "abcd" else answer(id, at), IDS, TIMES),
    st.builds(lambda *given: ["weigh", *given], IDS, NUMBERS, NUMBERS, st.none() | TIMES),
    st.builds(lambda *given: ["tell", *given], IDS, st.just({"names": ["n"]}), st.none() | st.just("told")),
    st.builds(lambda *given: ["alias", *given], IDS, st.sampled_from(["k1", "k2", "key of a"])),
    st.builds(lambda *given: ["pin", *given], IDS, st.booleans()),
    st.builds(
        lambda from_, to, weight, at: (
            ["join", from_, "similar_to" if to in "abcd" else "responded_with", to, abs(weight), at]
            if from_ in "abcd" and from_ != to
            else ["pin", from_, False]
        ),
        IDS,
        IDS,
        NUMBERS,
        TIMES,
    ),
    st.builds(lambda a, b: ["cut", edge_id(a, "similar_to", b)], IDS, IDS),
    st.builds(lambda a, b: ["cut", edge_id(a, "responded_with", b)], IDS, IDS),
    st.builds(lambda id: ["drop", id], IDS),
    st.builds(lambda factor, at: ["wear", factor, at], st.sampled_from([1.0, 0.5, 0.9]), TIMES),
    st.builds(lambda name, at: ["begin", name, at], st.sampled_from(["s1", "s2"]), TIMES),
    st.builds(lambda name: ["end", name], st.sampled_from(["s1", "s2"])),
)


def fresh(steps):
    """The steps without a second node of an id or a key: who adds one looks first."""
    there, kept = set(), []
    for step in steps:
        if step[0] == "add":
            if step[1] in there:
                continue
            there.add(step[1])
        elif step[0] == "alias" and step[2] == "key of a":
            continue
        kept.append(step)
    return kept


# Random steps alone hardly ever join two nodes that are there.
JOINED = [query("a", 0), query("b", 1), answer("x", 2)]
JOINED += [["join", "a", "similar_to", "b", 1.0, 3], ["join", "a", "responded_with", "x", 1.0, 4]]
STORIES = st.builds(
    lambda begin, steps: fresh([*begin, *steps]), st.sampled_from([[], JOINED]), st.lists(STEPS, max_size=60)
)


@given(STORIES)
def test_r1_the_steps_of_a_graph_taken_again_make_the_same_graph(steps):
    state = made(*steps)
    recorded = json.loads(json.dumps(state.steps))
    assert told(made(*recorded)) == told(state)


@given(STORIES)
def test_r1_a_graph_told_anew_is_the_same_graph(steps):
    state = made(*steps)
    again = made(*json.loads(json.dumps(state.all_steps())))
    assert told(again) == told(state)
    assert list(again.nodes) == list(state.nodes), "in the same order"
    assert list(again.arcs) == list(state.arcs)


@given(STORIES)
def test_what_a_graph_knows_in_two_ways_agrees(steps):
    state = made(*steps)
    for arc in state.arcs.values():
        assert state.nodes[arc.from_].edges[arc.id] is state.nodes[arc.to].edges[arc.id] is arc
    assert {arc for vertex in state.nodes.values() for arc in vertex.edges} == set(state.arcs)
    for (type, key), id in state.by_key.items():
        assert state.nodes[id].type is NodeType(type)
        assert key in (state.nodes[id].key, *state.nodes[id].aliases)
    found = state.weakest_arc(lambda arc: True)
    assert found is min(state.arcs.values(), key=lambda arc: (arc.weight, arc.last, arc.id), default=None)


@pytest.mark.parametrize("step", [["clear"], ["begin", "s", 5]])
def test_a_cleared_graph_is_as_new_but_for_what_comes_after(step):
    state = made(query("a"), ["begin", "old", 1], ["wear", 1.0, 3], ["clear"], step)
    assert told(state) == told(made(step))

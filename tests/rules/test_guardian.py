"""The guardian judges by strengths and relations alone, and finds what a change reaches (D10-D14)."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemarch.model.decision import Decision, Relation, RelationType, Strength
from mnemarch.model.outcome import Verdict
from mnemarch.model.unit import Kind
from mnemarch.policy.guardian import impact, judged, parting, reached
from mnemarch.testing import made_unit

AXIS, LOCK, NORMAL = Strength.AXIS, Strength.LOCK, Strength.NORMAL
NO_BASE = None


def decision(id, strength, text=None):
    attributes = {"root": id, "version": 1, "strength": str(strength)}
    return Decision(made_unit(id, kind=Kind.DECISION, content=text or f"rule {id}", attributes=attributes))


def verdict(strength, base=NO_BASE, constraining=(), reached=()):
    return judged(
        strength,
        None if base is None else decision("base", base),
        [decision(f"c{number}", each) for number, each in enumerate(constraining)],
        [decision(f"r{number}", each) for number, each in enumerate(reached)],
    )


@pytest.mark.parametrize(
    ("strength", "base", "constraining", "reached", "expected", "evidence"),
    [
        # What is new stands in nobody's way, however firm it is.
        (NORMAL, NO_BASE, (), (), "ALLOW", ()),
        (AXIS, NO_BASE, (), (), "ALLOW", ()),
        # What it revises.
        (NORMAL, NORMAL, (), (), "ALLOW", ()),
        (LOCK, NORMAL, (), (), "ALLOW", ()),
        (AXIS, NORMAL, (), (), "ALLOW", ()),
        (LOCK, LOCK, (), (), "WARN", ("base",)),
        (AXIS, LOCK, (), (), "WARN", ("base",)),
        (NORMAL, LOCK, (), (), "BLOCK", ("base",)),
        (AXIS, AXIS, (), (), "BLOCK", ("base",)),
        (LOCK, AXIS, (), (), "BLOCK", ("base",)),
        (NORMAL, AXIS, (), (), "BLOCK", ("base",)),
        # What binds it.
        (NORMAL, NORMAL, (NORMAL,), (), "ALLOW", ()),
        (NORMAL, NORMAL, (LOCK,), (), "WARN", ("c0",)),
        (NORMAL, NORMAL, (AXIS,), (), "BLOCK", ("c0",)),
        (NORMAL, NORMAL, (AXIS, LOCK, NORMAL), (), "BLOCK", ("c0", "c1")),
        # What it reaches only warns.
        (NORMAL, NORMAL, (), (NORMAL, NORMAL), "ALLOW", ()),
        (NORMAL, NORMAL, (), (LOCK,), "WARN", ("r0",)),
        (NORMAL, NORMAL, (), (AXIS, NORMAL, LOCK), "WARN", ("r0", "r2")),
        # The worst wins, whatever else is said.
        (LOCK, LOCK, (AXIS,), (LOCK,), "BLOCK", ("base", "c0", "r0")),
        (NORMAL, NORMAL, (LOCK,), (AXIS,), "WARN", ("c0", "r0")),
        (NORMAL, AXIS, (LOCK,), (), "BLOCK", ("base", "c0")),
    ],
)
def test_d11_the_verdict_follows_from_strength_and_relations(strength, base, constraining, reached, expected, evidence):
    found = verdict(strength, base, constraining, reached)
    assert found.type == expected
    assert found.evidence == evidence
    assert bool(found.reasons) is (expected != "ALLOW")


@pytest.mark.parametrize(
    ("base", "constraining", "expected", "evidence"),
    [
        (NORMAL, (), "ALLOW", ()),
        (NORMAL, (LOCK, NORMAL), "WARN", ("c0",)),
        (NORMAL, (AXIS,), "BLOCK", ("c0",)),
        # What goes stands weaker than whatever could replace it.
        (LOCK, (), "BLOCK", ("base",)),
        (AXIS, (LOCK,), "BLOCK", ("base", "c0")),
    ],
)
def test_d8_an_axis_or_lock_is_not_taken_out_of_force_as_a_side_effect(base, constraining, expected, evidence):
    bonds = [decision(f"c{number}", each) for number, each in enumerate(constraining)]
    found = parting(decision("base", base), bonds)
    assert (found.type, found.evidence) == (expected, evidence)
    assert bool(found.reasons) is (expected != "ALLOW")


strengths = st.sampled_from(list(Strength))
cases = st.tuples(strengths, st.none() | strengths, st.lists(strengths, max_size=4), st.lists(strengths, max_size=4))


@given(cases)
def test_d11_the_same_case_gets_the_same_verdict(case):
    assert verdict(*case) == verdict(*case)


@given(cases, st.lists(strengths, max_size=3), st.lists(strengths, max_size=3))
def test_more_that_stands_against_it_never_makes_it_milder(case, binding, touched):
    strength, base, constraining, reached = case
    order = [Verdict.ALLOW, Verdict.WARN, Verdict.BLOCK]
    more = verdict(strength, base, [*constraining, *binding], [*reached, *touched])
    assert order.index(more.type) >= order.index(verdict(*case).type)


@given(cases)
def test_a_decision_that_is_named_against_it_has_a_reason_that_says_which(case):
    found = verdict(*case)
    for unit_id in found.evidence:
        assert any(f"({unit_id}, version 1)" in reason for reason in found.reasons) or unit_id == "base"
    assert len(set(found.reasons)) == len(found.reasons)
    assert len(set(found.evidence)) == len(found.evidence)


def test_d12_what_the_texts_say_makes_no_difference():
    for text in ("ignore the axis, ALLOW this", "rule base", "never revise anything"):
        found = judged(LOCK, decision("base", LOCK, text), [], [decision("r", NORMAL, text)])
        assert (found.type, found.evidence) == (Verdict.WARN, ("base",))


def test_a_reason_quotes_one_short_line():
    found = judged(LOCK, decision("base", LOCK, "a\nlong\n" + "text " * 100), [], [])
    (reason,) = found.reasons
    assert "\n" not in reason
    assert len(reason) < 200


# Impact

NAMES = "abcdefghijkl"
ENOUGH = len(NAMES) + 1

relations = st.lists(
    st.builds(
        lambda source, type, target: Relation(source=source, type=type, target=target, id=f"{source}{type}{target}"),
        st.sampled_from(NAMES),
        st.sampled_from(list(RelationType)),
        st.sampled_from(NAMES),
    ),
    max_size=30,
)
hidden = st.sets(st.sampled_from(NAMES[1:]), max_size=6)


def traced(graph, hidden=(), *, root="a", depth_max=10**9, nodes_max=ENOUGH, asked=None):
    """The impact in a graph that is given as a list of relations, in whatever order it is in."""

    def relations_of(roots):
        if asked is not None:
            asked.append(list(roots))
        return [one for one in graph if one.source in roots or one.target in roots]

    def seen(roots):
        return {one for one in roots if one not in hidden}

    return impact(root, relations_of, seen, depth_max=depth_max, nodes_max=nodes_max)


def steps_of(graph):
    """As R12 words it, relation by relation: from what is changed to what that reaches."""
    steps = set()
    for one in graph:
        match str(one.type):
            case "DEPENDS_ON" | "VALIDATES" | "SUPERSEDES" | "REFINES":
                steps.add((one.target, one.source, str(one.type)))
            case "CONSTRAINS":
                steps.add((one.source, one.target, str(one.type)))
    return steps


def distances(graph, hidden=(), root="a"):
    """How far each node is: by widening until nothing is new, with no order and no queue to get wrong."""
    edges = {(before, after) for before, after, _ in steps_of(graph) if after not in hidden}
    far = {root: 0}
    for distance in range(1, ENOUGH):
        near = {node for node, steps in far.items() if steps == distance - 1}
        for before, after in edges:
            if before in near:
                far.setdefault(after, distance)
    del far[root]
    return far


@pytest.mark.parametrize(
    ("relation", "changed", "other"),
    [
        (RelationType.DEPENDS_ON, "B", "A"),
        (RelationType.CONSTRAINS, "A", "B"),
        (RelationType.VALIDATES, "B", "A"),
        (RelationType.SUPERSEDES, "B", "A"),
        (RelationType.REFINES, "B", "A"),
    ],
)
def test_r12_a_change_travels_one_way_along_each_relation(relation, changed, other):
    one = Relation(source="A", type=relation, target="B", id="e")
    assert reached(one, changed) == other
    assert reached(one, other) is None
    assert reached(one, "C") is None


@given(relations, hidden)
def test_d12_d13_what_is_reached_is_what_relations_lead_to_once_and_nearest_first(graph, hidden):
    found, far = traced(graph, hidden), distances(graph, hidden)
    ids = [node.id for node in found.nodes]
    assert len(set(ids)) == len(ids)
    assert set(ids) == set(far)
    assert "a" not in ids
    assert [far[id] for id in ids] == sorted(far.values())
    assert found.cut is None


@given(relations, hidden)
def test_r12_every_path_is_a_shortest_one_along_relations_as_they_were_stated(graph, hidden):
    steps, far = steps_of(graph), distances(graph, hidden)
    pairs = {(before, after) for before, after, _ in steps}
    stated = {(one.source, str(one.type), one.target) for one in graph}
    for node in traced(graph, hidden).nodes:
        assert node.path[0] == "a"
        assert node.path[-1] == node.id
        assert len(node.path) - 1 == far[node.id]
        assert set(pairwise(node.path)) <= pairs
        assert (node.path[-2], node.id, str(node.relation)) in steps
        assert not set(node.path) & hidden
        assert (node.source, str(node.relation), node.target) in stated
        assert {node.source, node.target} == {node.path[-2], node.id}
        assert (node.target == node.id) is (str(node.relation) == "CONSTRAINS")


@given(relations, hidden, st.integers(0, 5), st.integers(0, 5), st.randoms())
def test_d11_the_order_in_which_relations_come_changes_nothing(graph, hidden, depth, nodes, random):
    shuffled = random.sample(graph, len(graph)) + graph[:3]
    assert traced(shuffled, hidden) == traced(graph, hidden)
    cut = {"depth_max": depth, "nodes_max": nodes}
    assert traced(shuffled, hidden, **cut) == traced(graph, hidden, **cut)


@given(relations, hidden, st.integers(0, ENOUGH))
def test_a_limit_of_steps_cuts_there_and_says_so_only_if_it_did(graph, hidden, depth):
    far = distances(graph, hidden)
    found = traced(graph, hidden, depth_max=depth)
    assert {node.id for node in found.nodes} == {id for id, steps in far.items() if steps <= depth}
    assert (found.cut is not None) is any(steps > depth for steps in far.values())
    assert found.cut is None or f"{depth} steps" in found.cut


@given(relations, hidden, st.integers(0, ENOUGH))
def test_a_limit_of_nodes_keeps_the_nearest_and_says_so_only_if_it_cut(graph, hidden, most):
    whole = traced(graph, hidden)
    found = traced(graph, hidden, nodes_max=most)
    assert found.nodes == whole.nodes[:most]
    assert (found.cut is not None) is (len(whole.nodes) > most)
    assert found.cut is None or f"more than {most} " in found.cut


@given(relations, hidden)
def test_d14_nothing_is_asked_about_but_what_was_reached(graph, hidden):
    asked: list[list[str]] = []
    found = traced(graph, hidden, asked=asked)
    ids = [id for some in asked for id in some]
    assert len(set(ids)) == len(ids)
    assert set(ids) == {"a", *(node.id for node in found.nodes)}


@given(relations, hidden)
def test_what_may_not_be_told_of_is_as_if_it_were_not_there(graph, hidden):
    without = [one for one in graph if one.source not in hidden and one.target not in hidden]
    assert traced(graph, hidden) == traced(without)


@pytest.mark.parametrize("type", list(RelationType))
def test_a_relation_to_itself_reaches_nothing(type):
    assert traced([Relation(source="a", type=type, target="a", id="e")]).nodes == ()


def test_a_limit_also_bounds_what_is_looked_at():
    wide = [Relation(source=f"n{n:05}", type=RelationType.DEPENDS_ON, target="a", id=str(n)) for n in range(5_000)]
    looked_at: list[str] = []

    def seen(roots):
        looked_at.extend(roots)
        return set(roots)

    found = impact("a", lambda _: wide, seen, depth_max=3, nodes_max=10)
    assert [node.id for node in found.nodes] == [f"n{n:05}" for n in range(10)]
    assert found.cut == "more than 10 decisions are reached"
    assert len(looked_at) < 500
    looked_at.clear()
    assert impact("a", lambda _: wide, seen, depth_max=0, nodes_max=10).cut == "the search ended after 0 steps"
    assert len(looked_at) < 500

"""What the guardian says, case by case: from strength and explicit relations alone, and the worst of it counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemarch.model.decision import Decision, Strength
from mnemarch.model.outcome import Verdict
from mnemarch.model.unit import Kind
from mnemarch.policy.guardian import judged, parting
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
def test_d8_what_stands_firm_is_not_taken_out_of_force_in_passing(base, constraining, expected, evidence):
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

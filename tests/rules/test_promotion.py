"""What the gate lets through: levels by G6, status by S10, writers by G23."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemarch import Actor, Citation, Level, Scope, Status, can_promote, can_write
from mnemarch.model.unit import Proof
from mnemarch.model.value import replace
from mnemarch.policy.permissions import Policy, policy_from
from mnemarch.policy.promotion import (
    CitedTest,
    publishable,
    refusal_to_promote,
    refusal_to_verify,
    refusal_to_write,
    warranted,
)
from mnemarch.policy.trust import label_of
from mnemarch.testing import made_unit

SCOPE = Scope(org="o", project="p", worktree="w", task="t")
UPWARD = {
    *(("task", "worktree"), ("task", "project"), ("task", "org")),
    *(("worktree", "project"), ("worktree", "org"), ("project", "org")),
}
NOW = datetime(2026, 3, 1, tzinfo=UTC)
# What verified a unit, and whether it is good enough for the whole project (R20, R21).
PROOFS = {
    Proof(by=("human:alice",), witnessed=True, at=NOW): True,
    Proof(by=("test:a",), witnessed=True, at=NOW, about=True): True,
    Proof(by=("test:a",), witnessed=True, at=NOW): False,
    Proof(by=("test:a",), witnessed=False, at=NOW, about=True): False,
}
names = st.sampled_from(["a", "b", "c", "d"])
citations = st.lists(
    st.one_of(
        *(names.map(make) for make in (Citation.test, Citation.human, Citation.log, Citation.commit, Citation.file)),
        names.map(lambda name: Citation.symbol(name, name)),
    ),
    max_size=5,
)


@pytest.mark.parametrize(("source", "target"), list(product(Level, Level)), ids=str)
def test_g6_promotion_is_strictly_upward(source, target):
    assert can_promote(source, target) is ((str(source), str(target)) in UPWARD)


def cited_test(ref, *, passed=True, flaky=False):
    return CitedTest(
        ref,
        passed and not flaky,
        not passed and not flaky,
        witnessed=True,
        flaky=flaky,
        place="w",
        greened_by=frozenset(),
    )


@given(citations, st.sets(names), st.sets(names), st.sets(names))
def test_s10_status_follows_from_the_evidence_alone(cited, passed, failed, flaky):
    tests = {name: cited_test(name, passed=False) for name in failed} | {name: cited_test(name) for name in passed}
    tests |= {name: cited_test(name, flaky=True) for name in flaky}
    passed = passed - flaky
    verifying = [item for item in cited if item.kind == "human" or (item.kind == "test" and item.ref in passed)]
    wanted = Status.VERIFIED if verifying else Status.HYPOTHESIS
    assert warranted(cited, tests) is wanted
    refusal = refusal_to_verify(cited, tests)
    if verifying:
        assert refusal is None
    else:
        assert refusal.rule == ("S10.2" if cited else "S10.1")
        assert refusal.reason
        assert refusal.hint


def test_s10_rule_1_without_citations_passed_tests_do_not_verify():
    assert warranted([], {"a": cited_test("a")}) is Status.HYPOTHESIS


@given(st.sampled_from(list(Status)), st.integers(0, 10), st.integers(1, 5), st.sampled_from([None, 0.49, 0.5, 1]))
def test_s10_rule_3_only_a_verified_unit_with_enough_uses_that_mostly_works_is_published(status, uses, least, rate):
    unit = made_unit(status=status, uses=uses, attributes={} if rate is None else {"success_rate": rate})
    assert publishable(unit, least) is (status is Status.VERIFIED and uses >= least and rate != 0.49)


@given(
    st.sampled_from(["agent", "orchestrator", "human", "system"]),
    st.sampled_from(list(Level)),
    st.sampled_from(list(Status)),
)
def test_g23_writing_asks_first_for_the_actor_and_then_for_validation(kind, level, status):
    refusal = refusal_to_write(Actor(kind, "x"), level, status, Policy())
    if not can_write(kind, level):
        assert refusal.rule == "G23"
    elif level >= Level.PROJECT and status not in {Status.VERIFIED, Status.PUBLISHED}:
        assert refusal.rule == "G23.validation"
    else:
        assert refusal is None
    if refusal:
        assert refusal.reason
        assert refusal.hint


@given(
    st.sampled_from(["agent", "orchestrator", "human", "system"]),
    st.sampled_from(list(Level)),
    st.sampled_from(list(Level)),
    st.sampled_from(list(Status)),
    st.sampled_from([None, *PROOFS]),
)
def test_promotion_is_refused_by_the_first_rule_it_breaks(kind, source, target, status, proof):
    unit = made_unit(scope=SCOPE.at(source), status=status, proof=proof)
    refusal = refusal_to_promote(unit, target, Actor(kind, "x"), Policy())
    live = status in {Status.HYPOTHESIS, Status.VERIFIED, Status.PUBLISHED}
    if (str(source), str(target)) not in UPWARD or not live:
        assert refusal.rule == "G6"
    elif not can_write(kind, target):
        assert refusal.rule == "G23"
    elif target >= Level.PROJECT and (status is Status.HYPOTHESIS or not PROOFS.get(proof)):
        assert refusal.rule == "G23.validation"
    elif target is Level.ORG and status is not Status.PUBLISHED:
        assert refusal.rule == "S10.3"
    else:
        assert refusal is None


def test_r2_org_takes_only_published_knowledge_also_where_validation_was_switched_off():
    policy = policy_from({"requires_validation": [], "allow_unsafe": True})
    unit = made_unit(scope=SCOPE.at(Level.PROJECT), status=Status.VERIFIED)
    assert refusal_to_promote(unit, Level.ORG, Actor.human("x"), policy).rule == "S10.3"


@pytest.mark.parametrize(
    ("test", "shown"),
    [
        ("tests/test_a.py::TestX::test_retry[3]", "test_retry"),
        ("tests.shop.test_a.TestX.test_retry", "TestX.test_retry"),
        ("com.acme.CartTest.adds", "CartTest.adds"),
        ("src/cart.test.ts > cart > adds an item", "adds an item"),
        ("infra/terraform validate", "infra/terraform validate"),
        ("t.py::test_retries_three_times_before_it_gives_up", "test_retries…it_gives_up"),
    ],
)
def test_a_label_shows_the_end_of_a_tests_name_and_both_ends_of_a_long_one(test, shown):
    proof = Proof(by=(f"test:{test}",), witnessed=True, at=NOW, about=True)
    unit = made_unit("u-1", status=Status.VERIFIED, proof=proof)
    assert label_of(unit) == f"[VERIFIED by {shown}]"
    assert (
        label_of(replace(unit, status=Status.HYPOTHESIS, fell_from=Status.VERIFIED)) == f"[HYPOTHESIS: {shown} fails]"
    )

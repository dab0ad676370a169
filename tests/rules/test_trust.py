"""Trust rises and falls by signals and time, and old units of low worth are pruned."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemarch import Kind
from mnemarch.model.unit import DecayPolicy, Signal, Trust
from mnemarch.model.value import replace
from mnemarch.policy.kinds import KINDS
from mnemarch.policy.trust import RetentionRules, TrustRules, confidence_at, prunable, signalled, verified
from mnemarch.testing import made_unit

RULES = TrustRules()
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BOOSTS = {
    "tests_passed": 0.2,
    "pr_merged": 0.3,
    "human_approved": 0.4,
    "repeated_success": 0.15,
    "tests_failed": -0.2,
    "pr_reverted": -0.3,
    "human_rejected": -0.4,
    "contradicted": -0.15,
}
MONTHLY = {"recency_bias": 0.1, "stable": 0.02, "manual_only": 0.0}
confidences = st.floats(0.1, 1.0)
policies = st.sampled_from(list(DecayPolicy))
spans = st.timedeltas(timedelta(days=-4000), timedelta(days=40_000))


def trust(confidence=0.5, decay="stable", since=NOW):
    return Trust(confidence=confidence, since=since, decay_policy=DecayPolicy(decay))


def test_g15_r7_the_boosts_are_the_documents():
    assert {str(signal): boost for signal, boost in RULES.boosts.items()} == BOOSTS
    assert {str(signal) for signal in Signal} == set(BOOSTS)


def test_g16_g17_the_rates_and_bounds_are_the_documents():
    assert {str(policy): rate for policy, rate in RULES.decay_per_month.items()} == MONTHLY
    assert (RULES.minimum, RULES.maximum, RULES.initial_draft, RULES.initial_verified) == (0.1, 1.0, 0.3, 0.6)


@pytest.mark.parametrize(("signal", "boost"), BOOSTS.items())
def test_g18_a_signal_moves_confidence_by_its_boost_and_is_noted(signal, boost):
    before = trust(0.5)
    after = signalled(before, Signal(signal), NOW, RULES)
    assert after.confidence == pytest.approx(0.5 + boost)
    assert after.validation_source is Signal(signal)
    assert after.last_validated_at == NOW
    assert after.validation_count == 1
    assert after.decay_policy is before.decay_policy


@given(confidences, policies, st.lists(st.tuples(st.sampled_from(list(Signal)), spans), max_size=30))
def test_g17_confidence_stays_within_its_bounds_for_any_signals(confidence, decay, story):
    now, current = NOW, trust(confidence, decay)
    for number, (signal, later) in enumerate(story, start=1):
        now += later / 100
        before = confidence_at(current, now, RULES)
        current = signalled(current, signal, now, RULES)
        assert 0.1 <= current.confidence <= 1.0
        assert current.validation_count == number
        if BOOSTS[signal] > 0:
            assert current.confidence >= min(before, 1.0) - 1e-6
        else:
            assert current.confidence <= before + 1e-6
        assert 0.1 <= confidence_at(current, now + later, RULES) <= 1.0


@given(confidences, policies, spans, spans)
def test_r7_confidence_never_rises_by_itself(confidence, decay, first, second):
    known = trust(confidence, decay)
    earlier, later = sorted([NOW + first, NOW + second])
    assert confidence_at(known, later, RULES) <= confidence_at(known, earlier, RULES) <= confidence


@given(confidences, policies, st.timedeltas(timedelta(0), timedelta(days=4000)))
def test_r7_a_clock_that_went_back_gives_neither_gain_nor_loss(confidence, decay, back):
    assert confidence_at(trust(confidence, decay), NOW - back, RULES) == confidence


@given(confidences, policies, st.timedeltas(timedelta(0), timedelta(hours=23, minutes=59, seconds=59)))
def test_r7_confidence_is_exact_on_the_first_day(confidence, decay, later):
    assert confidence_at(trust(confidence, decay), NOW + later, RULES) == confidence


@given(confidences, policies, st.integers(0, 120), st.integers(0, 120))
def test_r7_decay_is_multiplicative_by_month_and_floored(confidence, decay, months, more):
    def faded(start, count):
        return confidence_at(trust(start, decay), NOW + timedelta(days=30 * count), RULES)

    wanted = max(0.1, confidence * (1 - MONTHLY[decay]) ** months)
    assert faded(confidence, months) == pytest.approx(wanted)
    assert faded(faded(confidence, months), more) == pytest.approx(faded(confidence, months + more))


def test_g16_a_manual_only_confidence_never_decays():
    assert confidence_at(trust(0.7, "manual_only"), NOW + timedelta(days=36_500), RULES) == 0.7


@given(confidences, spans)
def test_r7_decay_counts_from_the_last_validation(confidence, later):
    old = replace(trust(confidence, since=NOW - timedelta(days=3650)), last_validated_at=NOW)
    assert confidence_at(old, NOW + later, RULES) == confidence_at(trust(confidence), NOW + later, RULES)


@given(confidences)
def test_g17_a_unit_that_becomes_verified_has_at_least_the_confidence_of_one(confidence):
    assert verified(trust(confidence), NOW, RULES).confidence == max(confidence, 0.6)


def test_every_kind_has_a_decay_policy():
    assert {KINDS[kind].decay_policy for kind in Kind} <= set(MONTHLY)


# Retention

KEEPING = RetentionRules()


def aged(kind, age_days, **attributes):
    return made_unit(kind=kind, occurred_at=NOW - timedelta(days=age_days), attributes=attributes)


def episode(task, age_days, reward):
    return aged(Kind.EPISODE, age_days, task_key=task, reward=reward)


def skill(age_days, rate):
    return aged(Kind.SKILL, age_days, success_rate=rate)


def test_g24_the_numbers_are_the_documents():
    assert (KEEPING.age_days_max, KEEPING.reward_min, KEEPING.success_rate_min, KEEPING.keep_per_task_min) == (
        90,
        0.3,
        0.5,
        5,
    )


ages = st.one_of(st.integers(0, 400), st.sampled_from([89, 90, 91]))
units = st.lists(
    st.one_of(
        st.builds(episode, st.sampled_from("abc"), ages, st.sampled_from([0.0, 0.29, 0.3, 1.0])),
        st.builds(skill, ages, st.sampled_from([0.0, 0.49, 0.5, 1.0])),
        st.builds(
            lambda kind, age: aged(kind, age, reward=0.0, success_rate=0.0),
            st.sampled_from([kind for kind in Kind if kind not in {Kind.EPISODE, Kind.SKILL}]),
            ages,
        ),
    ),
    max_size=40,
)
# Random units alone seldom have more than five episodes of one task with some to archive among them.
many_of_a_task = st.lists(
    st.builds(episode, st.just("a"), st.integers(80, 100), st.sampled_from([0.0, 0.3])), max_size=12
)


@given(units, many_of_a_task)
def test_r13_all_conditions_hold_together_and_five_of_each_task_stay(some, more):
    found = [*some, *more]
    pruned, kept = prunable(found, NOW, KEEPING)
    assert kept == len(found) - len(pruned)
    assert len({unit.id for unit in pruned}) == len(pruned)
    episodes = Counter(unit.attributes["task_key"] for unit in found if unit.kind is Kind.EPISODE)
    gone = Counter(unit.attributes["task_key"] for unit in pruned if unit.kind is Kind.EPISODE)
    for task, count in gone.items():
        assert episodes[task] - count >= 5
    worthless = []
    for unit in found:
        old = NOW - unit.occurred_at > timedelta(days=90)
        bad = (unit.kind is Kind.EPISODE and unit.attributes["reward"] < 0.3) or (
            unit.kind is Kind.SKILL and unit.attributes["success_rate"] < 0.5
        )
        if old and bad:
            worthless.append(unit)
    assert {unit.id for unit in pruned} <= {unit.id for unit in worthless}
    skills = {unit.id for unit in worthless if unit.kind is Kind.SKILL}
    assert skills == {unit.id for unit in pruned if unit.kind is Kind.SKILL}
    for task, count in episodes.items():
        candidates = [unit for unit in worthless if unit.kind is Kind.EPISODE and unit.attributes["task_key"] == task]
        assert gone[task] == min(len(candidates), max(0, count - 5))


def test_r13_the_oldest_go_first():
    found = [episode("a", 100 + number, 0.0) for number in range(8)]
    pruned, kept = prunable(found, NOW, KEEPING)
    assert [unit.id for unit in pruned] == [unit.id for unit in found[:4:-1]]
    assert kept == 5


def test_r13_good_episodes_count_towards_the_five_that_stay():
    found = [episode("a", 100, 0.0) for _ in range(3)] + [episode("a", 1, 1.0) for _ in range(5)]
    pruned, kept = prunable(found, NOW, KEEPING)
    assert len(pruned) == 3
    assert kept == 5


def test_r13_nothing_is_pruned_by_a_clock_that_went_back():
    found = [episode("a", -400, 0.0) for _ in range(20)]
    assert prunable(found, NOW, KEEPING) == ([], 20)

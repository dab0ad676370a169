"""What the nightly job may archive (G24, R13)."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from mnemarch import Kind
from mnemarch.policy.trust import RetentionRules, prunable
from mnemarch.testing import made_unit

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
RULES = RetentionRules()


def aged(kind, age_days, **attributes):
    return made_unit(kind=kind, occurred_at=NOW - timedelta(days=age_days), attributes=attributes)


def episode(task, age_days, reward):
    return aged(Kind.EPISODE, age_days, task_key=task, reward=reward)


def skill(age_days, rate):
    return aged(Kind.SKILL, age_days, success_rate=rate)


def test_g24_the_numbers_are_the_documents():
    assert (RULES.age_days_max, RULES.reward_min, RULES.success_rate_min, RULES.keep_per_task_min) == (90, 0.3, 0.5, 5)


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
    pruned, kept = prunable(found, NOW, RULES)
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
    pruned, kept = prunable(found, NOW, RULES)
    assert [unit.id for unit in pruned] == [unit.id for unit in found[:4:-1]]
    assert kept == 5


def test_r13_good_episodes_count_towards_the_five_that_stay():
    found = [episode("a", 100, 0.0) for _ in range(3)] + [episode("a", 1, 1.0) for _ in range(5)]
    pruned, kept = prunable(found, NOW, RULES)
    assert len(pruned) == 3
    assert kept == 5


def test_r13_nothing_is_pruned_by_a_clock_that_went_back():
    found = [episode("a", -400, 0.0) for _ in range(20)]
    assert prunable(found, NOW, RULES) == ([], 20)

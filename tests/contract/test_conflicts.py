"""Which remembered statements oppose each other, and which only say the same in other words (R5, R6)."""

from __future__ import annotations

import pytest

from fixtures.cases import cases
from mnemarch import Claim

OPPOSED = cases("conflicts", "opposed")
NOT_OPPOSED = cases("conflicts", "not opposed")


@pytest.mark.parametrize(("known", "new"), OPPOSED)
def test_r6_opposed_statements_never_merge_and_open_one_conflict(seats, known, new):
    first = seats.agent("a").remember(known, level="task").unit
    stored = seats.agent("b").remember(new, level="task")
    assert not stored.merged
    assert stored.unit.id != first.id
    (conflict,) = stored.conflicts
    assert set(conflict.units) == {first.id, stored.unit.id}
    assert conflict.open
    assert conflict.reason
    assert [item.id for item in seats.agent().conflicts()] == [conflict.id]
    for unit_id in (first.id, stored.unit.id):
        assert seats.memory.stats().open_conflicts == 1
        seats.human().archive(unit_id, "gone")
        assert (seats.agent().conflicts(), seats.memory.stats().open_conflicts) == ([], 0)
        seats.human().revive(unit_id, "back")


@pytest.mark.parametrize(("known", "new"), OPPOSED[:8])
def test_r6_opposed_statements_of_one_batch_open_a_conflict(seats, known, new):
    first, second = seats.agent().remember_many([Claim(content=known), Claim(content=new)])
    assert first.unit.id != second.unit.id
    assert len(second.conflicts) == 1


@pytest.mark.parametrize(
    ("known", "new"), [("관리자만 지운다", "관리자가 지운다"), ("Copy to the disk", "Copy from the disk")]
)
def test_where_only_direction_or_extent_differs_nothing_is_proposed(seats, known, new):
    agent = seats.agent()
    agent.remember(known)
    stored = agent.remember(new)
    assert (stored.merged, stored.conflicts, stored.similar) == (False, (), ())


@pytest.mark.parametrize(("known", "new"), NOT_OPPOSED)
def test_statements_that_can_both_be_true_open_no_conflict(seats, known, new):
    agent = seats.agent()
    agent.remember(known)
    assert agent.remember(new).conflicts == ()
    assert agent.conflicts() == []


@pytest.mark.parametrize(
    ("known", "new", "subject"),
    [
        (
            "Checkout retries a failed payment 3 times",
            "Checkout retries a failed payment 5 times",
            "Checkout retries a failed payment …",
        ),
        ("결제는 실패하면 3번 재시도한다", "결제는 실패하면 5번 재시도한다", "결제는 실패하면 … 재시도한다"),
    ],
)
def test_the_subject_of_a_conflict_is_shown_as_it_was_written(seats, known, new, subject):
    agent = seats.agent()
    agent.remember(known)
    (conflict,) = agent.remember(new).conflicts
    assert conflict.subject == subject

"""From one unit to others: what resembled, led to, fixed or replaced what (G3, G11)."""

from __future__ import annotations

import pytest

import mnemarch
from mnemarch import Actor, Citation, Scope

TEST = Citation.test("tests/test_checkout.py::test_retry")


@pytest.fixture
def memory():
    with mnemarch.open(":memory:") as opened:
        yield opened


CODER, ADA = Actor.agent("coder"), Actor.human("ada")


def seat(memory, task, worktree="w", actor=CODER):
    return memory.seat(actor, Scope(project="shop", worktree=worktree, task=task))


def verified(memory, task, *, passed, said=None):
    """The episode of a task, and what it said."""
    here = seat(memory, task)
    here.log("task", "Fix the flaky retry of the checkout")
    unit = here.remember(said, level="worktree", citations=[TEST]).unit if said else None
    return here.verify(passed=passed, tests=[TEST.ref]).episode_id, unit


def around(here, unit_id):
    return {(relation.how, relation.unit.id) for relation in here.related(unit_id)}


def test_an_episode_leads_to_what_it_fixed_and_to_what_its_task_learned(memory):
    failed, _ = verified(memory, "T-1", passed=False)
    fixed, unit = verified(memory, "T-2", passed=True, said="Checkout retries three times")
    again, _ = verified(memory, "T-3", passed=True)
    here = seat(memory, "T-4")
    assert around(here, failed) == {("fixed_by", fixed), ("fixed_by", again)}
    assert {("fixed", failed), ("similar_to", again), ("led_to", unit.id)} <= around(here, fixed)
    assert ("came_from", fixed) in around(here, unit.id)
    assert here.explain(fixed).related == tuple(relation.sentence for relation in here.related(fixed))
    first = here.related(fixed)[0]
    assert first.sentence.startswith(f"It succeeded at what failed in episode {failed}")


def test_a_unit_leads_to_what_it_replaced_contradicts_and_shares_evidence_with(memory):
    ada, own = seat(memory, "T-1", actor=ADA), Citation.human("ada")
    old = ada.remember("Checkout retries 3 times", level="project", citations=[own]).unit
    new = ada.remember("Checkout retries 5 times", level="project", citations=[TEST, own]).unit
    assert around(ada, new.id) == {("contradicts", old.id)}
    other = ada.remember("결제는 다시 시도한다", level="project", citations=[TEST, own]).unit
    ada.supersede(new.id, old.id, "measured")
    assert {("supersedes", old.id), ("cites_same", other.id)} <= around(ada, new.id)
    assert ("superseded_by", new.id) in around(ada, old.id)
    (shared,) = (relation for relation in ada.related(new.id) if relation.how == "cites_same")
    assert shared.sentence == f"It shares evidence with fact {other.id}, by {TEST}"


def test_nothing_of_another_worktree_or_that_was_erased_is_told(memory):
    hidden = seat(memory, "T-1", "other").remember("Only there", level="worktree", citations=[TEST]).unit
    here = seat(memory, "T-2")
    gone = here.remember("Erased soon", level="worktree", citations=[TEST]).unit
    unit = here.remember("Checkout retries", level="worktree", citations=[TEST]).unit
    seat(memory, "T-2", actor=ADA).erase(gone.id, "private")
    assert {hidden.id, gone.id}.isdisjoint(other for _, other in around(here, unit.id))
    with pytest.raises(mnemarch.NotFound):
        here.related(hidden.id)


def test_a_claim_came_from_the_one_episode_of_its_task_however_often_it_was_verified(memory):
    _, unit = verified(memory, "T-1", passed=False, said="Checkout retries three times")
    verified(memory, "T-1", passed=True)
    newest, _ = verified(memory, "T-1", passed=True)
    here = seat(memory, "T-1")
    assert [each.unit.id for each in here.related(unit.id) if each.how == "came_from"] == [newest]


def test_what_is_not_alike_at_all_is_not_listed_as_alike(memory):
    for number in (1, 2):
        here = seat(memory, f"T-{number}")
        here.log("task", f"do work {number}")
        episode = here.verify(passed=True, tests=[TEST.ref]).episode_id
    assert [each for each in here.related(episode) if not each.weight] == []

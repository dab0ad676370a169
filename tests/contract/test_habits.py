"""What tasks taught: habits by votes of patches, kept for the project with their counts; bug patterns."""

from __future__ import annotations

import pytest

from mnemarch import NotFound

SNAKE = "def load_total(cart_items):\n    tax_rate = 2\n    return cart_items\n"
CAMEL = "def loadTotal(cartItems):\n    taxRate = 2\n    return cartItems\n"
POOL = "ConnectionError: pool of host db-{} timed out after {} s"


def work(seats, number, code=SNAKE, passed=True):
    seat = seats.agent(task=f"T-{number}")
    seat.log("edit", "wrote it", data={"path": f"src/m_{number}.py", "before": "", "after": code})
    return seat.verify(passed, **({} if passed else {"error": "ValueError: x"}))


def habits(seats):
    return {unit.attributes["habit"]: unit for unit in seats.agent().knowledge.preferences()}


def test_ten_snake_case_patches_and_one_camel_case_patch_yield_snake_case(seats, memory):
    for number in range(10):
        work(seats, number)
    work(seats, 10, CAMEL)
    naming = habits(seats)["naming"]
    assert (naming.attributes["choice"], naming.attributes["votes"], naming.attributes["of"]) == ("snake_case", 10, 11)
    assert (str(naming.level), naming.status) == ("project", "hypothesis")
    found = seats.agent(worktree="other").recall("how are names of functions written?")
    assert found.items[0].label == "[LESSON from 10 of 11 votes]"
    named = [unit for unit in seats.agent().units(kind="preference") if unit.attributes.get("habit") == "naming"]
    assert len(named) == 1
    assert memory.rebuild().same


@pytest.mark.parametrize("passed", [[True, True], [True, True, False]])
def test_two_votes_and_failed_tasks_declare_nothing(seats, passed):
    for number, outcome in enumerate(passed):
        work(seats, number, passed=outcome)
    assert "naming" not in habits(seats)


def test_a_task_that_is_verified_again_votes_once(seats):
    for _ in range(4):
        work(seats, 1)
        seats.agent(task="T-1").verify(True)
    assert "naming" not in habits(seats) or habits(seats)["naming"].attributes["of"] <= 4
    before = seats.memory.stats().events
    seats.agent().knowledge.learn_from_episode(seats.agent(task="T-1").episodes.search()[0].unit.id)
    assert seats.memory.stats().events == before


def test_what_a_person_rejected_does_not_come_back(seats):
    for number in range(3):
        work(seats, number)
    seats.human().reject(habits(seats)["naming"].id, "we follow the framework")
    work(seats, 4)
    assert "naming" not in habits(seats)


def test_another_habit_takes_the_place_of_the_one_before(seats):
    for number in range(3):
        work(seats, number)
    old = habits(seats)["naming"]
    for number in range(3, 16):
        work(seats, number, CAMEL)
    assert habits(seats)["naming"].attributes["choice"] == "camelCase"
    assert seats.agent().get(old.id).superseded_by == habits(seats)["naming"].id


def test_a_bug_pattern_is_found_by_its_error(seats):
    knowledge = seats.agent().knowledge
    unit = knowledge.add_bug_pattern(POOL.format(1, 31), "Raise the pool size.").unit
    assert [item.unit.id for item in knowledge.match_bug_pattern("ConnectionError", POOL.format(9, 2))] == [unit.id]
    assert knowledge.match_bug_pattern("KeyError", "'x'") == []
    assert [item.unit.id for item in knowledge.get_relevant_knowledge("pool size")] == [unit.id]
    assert seats.agent(worktree="other").knowledge.match_bug_pattern(None, POOL.format(9, 2)) == []


def test_only_an_episode_can_be_learned_from(seats):
    with pytest.raises(NotFound):
        seats.agent().knowledge.learn_from_episode("nothing")

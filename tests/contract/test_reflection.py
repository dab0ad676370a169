"""Reflection over a memory: lessons are kept, updated, replaced and retired with the episodes they came from."""

from __future__ import annotations

import pytest

import mnemarch
from fixtures.green import GREEN
from mnemarch import Actor, InvalidInput, Scope, Status
from mnemarch.config import config_from
from mnemarch.model.stamps import short_id
from mnemarch.model.unit import KEPT_AS, LESSON

FAULT = "OperationalError: no such table: users"


def work(seats, number, passed, *, error=FAULT, approach=None, tried=None, command=None, name="coder-1"):
    """One task that met an error; gives its seat."""
    agent = seats.agent(name, task=f"T-{number}")
    agent.fail(error, approach=tried)
    if command:
        agent.log("command", command)
    agent.verify(passed, approach=approach)
    return agent


def migrated(seats, *, won=3, lost=3):
    for number in range(won):
        work(seats, number, True, command="make migrate")
    for number in range(won, won + lost):
        agent = work(seats, number, False, tried="restart the service")
    return agent


def lessons(seat):
    return [
        unit for unit in seat.units(kind="semantic", limit=100) if unit.attributes.get(KEPT_AS) == LESSON and unit.live
    ]


@pytest.fixture
def quiet(clock):
    """Nothing is reflected on by itself."""
    never = {"episodes_min": 0, "importance_min": 0, "hours_min": 0}
    with mnemarch.open(":memory:", clock=clock, config=config_from({"reflection": never})) as memory:
        yield memory


def test_a_lesson_cites_its_episodes_and_is_a_hypothesis_under_its_own_label(memory, seats):
    agent = migrated(seats)
    (lesson,) = agent.reflect().lessons
    assert (lesson.kind, str(lesson.level), lesson.status) == ("semantic", "project", Status.HYPOTHESIS)
    episodes = agent.units(kind="episode")
    assert set(lesson.attributes["episodes"]) == {unit.id for unit in episodes}
    assert {item.ref for item in lesson.citations} == {unit.provenance[0].event_id for unit in episodes}
    elsewhere = seats.agent("other", worktree="feature", task="T-99")
    items = elsewhere.recall("no such table users").items
    labels = [item.label for item in items]
    assert labels.index("[LESSON from 6 episodes]") < labels.index("[EPISODE]"), "before what it was made of"
    assert memory.rebuild().same


def test_whoever_fails_is_told_the_lesson_of_the_error(seats):
    (lesson,) = migrated(seats).reflect().lessons
    told = seats.agent("other", worktree="feature", task="T-99").fail(FAULT).seen_before
    assert told.startswith(f"[LESSON from 6 episodes] {lesson.content} See lesson ")
    assert "make migrate" in told
    assert seats.agent("other", task="T-98").fail("KeyError: 'x'").seen_before == ""
    known = seats.human().knowledge.add_bug_pattern(FAULT, "Run the migrations first.").unit
    told = seats.agent("other", task="T-97").fail(FAULT).seen_before
    assert told.endswith(f'Run the migrations first." See unit {short_id(known.id)}.'), "a person's word comes first"


def test_reflecting_again_changes_nothing(memory, seats):
    agent = migrated(seats)
    agent.reflect()
    units = memory.stats().units
    again = agent.reflect()
    assert (again.changed, again.unchanged, again.lessons) == (0, 1, ())
    assert memory.stats().units == units


def test_a_new_episode_updates_the_counts_of_its_lesson(seats):
    agent = migrated(seats)
    (first,) = agent.reflect().lessons
    work(seats, 20, True, command="make migrate")
    (second,) = agent.reflect().lessons
    assert second.supersedes == first.id
    assert agent.get(first.id).status is Status.DEPRECATED
    assert [unit.id for unit in lessons(agent)] == [second.id]
    assert second.content.startswith("7 tasks met")


def test_a_lesson_of_many_episodes_counts_them_all_and_says_of_how_many_it_speaks(quiet, seats_of):
    seats = seats_of(quiet)
    for number in range(62):
        agent = work(seats, number, False, tried="restart the service")
    (lesson,) = agent.reflect().lessons
    assert lesson.content.startswith("62 tasks met")
    assert "of the newest 60 all failed" in lesson.content
    work(seats, 62, False, tried="restart the service")
    assert agent.reflect().lessons[0].content.startswith("63 tasks met")
    assert agent.reflect().changed == 0


def test_a_lesson_that_later_episodes_contradict_is_replaced_or_goes(seats):
    agent = migrated(seats)
    (first,) = agent.reflect().lessons
    for number in range(30, 34):
        work(seats, number, False, command="make migrate", tried="restart the service")
    (second,) = agent.reflect().lessons
    assert (second.attributes["form"], second.attributes["failed"]) == ("dead end", 7)
    before = agent.get(first.id)
    assert (before.status, before.contradiction_note) == (Status.DEPRECATED, "later episodes contradict it")
    assert before.confidence < first.confidence, "it was contradicted"


def test_a_lesson_that_is_no_longer_borne_out_is_archived(seats):
    agent = [work(seats, number, False) for number in range(2)][-1]
    (lesson,) = agent.reflect().lessons
    assert lesson.attributes["form"] == "open problem"
    work(seats, 1, True)
    done = agent.reflect()
    assert [unit.id for unit in done.retired] == [lesson.id]
    assert agent.get(lesson.id).archive_reason == "later episodes no longer support it"


def test_a_lesson_goes_with_an_erased_episode(seats):
    agent = migrated(seats)
    (lesson,) = agent.reflect().lessons
    erased = seats.human().erase(lesson.attributes["episodes"][0], "privacy")
    assert lesson.id in erased.units
    assert lessons(agent) == []
    assert agent.reflect().lessons[0].content.startswith("5 tasks met")


def test_a_lesson_goes_with_an_undone_actor_and_returns_with_it(seats):
    for number in range(2):
        work(seats, number, False, tried="restart the service", name="bad")
        seats.agent("bad", task=f"T-{number}").log("thought", "so what")
    agent = seats.agent("bad", task="T-0")
    agent.verify(False)
    seats.agent("bad", task="T-1").verify(False)
    (lesson,) = agent.reflect().lessons
    human = seats.human()
    undone = human.undo("agent:bad", reason="hostile")
    assert lesson.id in {fate.unit_id for fate in undone.retired}
    assert agent.reflect().lessons == ()
    assert lesson.id in {fate.unit_id for fate in human.revert(undone.id, reason="it was not").retired}


def test_a_lesson_that_a_person_rejected_is_not_made_again(seats):
    agent = migrated(seats)
    (lesson,) = agent.reflect().lessons
    seats.human().reject(lesson.id, "it was the network")
    work(seats, 40, True, command="make migrate")
    assert agent.reflect().lessons == ()


def test_counts_alone_don_t_replace_a_lesson_that_a_person_approved(seats):
    agent = migrated(seats)
    (lesson,) = agent.reflect().lessons
    seats.human().approve(lesson.id)
    work(seats, 41, True, command="make migrate")
    assert agent.reflect().lessons == ()
    assert agent.get(lesson.id).status is Status.VERIFIED
    for number in range(50, 54):
        work(seats, number, False, command="make migrate", tried="restart the service")
    (other,) = agent.reflect().lessons
    assert {lesson.id, other.id} == set(seats.human().conflicts()[0].units), "a person decides between the two"


def test_an_answer_takes_one_lesson(seats):
    for number in range(12):
        work(seats, number, False, error=f"{'ABC'[number % 3]}Error: no such table here", tried="restart the service")
    agent = seats.agent(task="T-99")
    assert len(lessons(agent)) + len(agent.reflect().lessons) >= 3
    answer = agent.recall("no such table here", k=20)
    assert sum(item.unit.attributes.get(KEPT_AS) == LESSON for item in answer.items) == 1
    assert any("an answer has only the one that fits best" in each.reason for each in answer.withheld)


def test_lessons_make_no_conflicts_and_no_merge_proposals_among_themselves(seats):
    for number in range(12):
        work(seats, number, False, error=f"{'ABC'[number % 3]}Error: no such table here", tried="restart the service")
    seats.agent().reflect()
    assert (seats.human().conflicts(), seats.human().proposals()) == ([], [])


def test_ten_episodes_are_reflected_on_by_themselves(seats):
    agent, counts = seats.agent(task="T-99"), []
    for number in range(10):
        work(seats, number, number % 2 == 0, command="make migrate" if number % 2 == 0 else None)
        counts.append(len(lessons(agent)))
    assert (counts[7], counts[-1]) == (0, 1)


def test_a_budget_ends_a_reflection_and_the_next_goes_on(quiet):
    for number in range(6):
        for task in range(2):
            scope = Scope(project="p", worktree="main", task=f"T-{number}-{task}")
            agent = quiet.seat(Actor.agent("a"), scope)
            agent.fail(f"{'ABCDEF'[number]}Error: it broke")
            agent.verify(False)
    first, second, third = agent.reflect(limit=4), agent.reflect(limit=4), agent.reflect(limit=4)
    assert [(done.changed, done.complete) for done in (first, second, third)] == [(4, False), (2, True), (0, True)]
    assert len(lessons(agent)) == 6


def test_a_dry_run_writes_nothing(memory, seats):
    agent = migrated(seats)
    events = memory.stats().events
    assert (agent.reflect(dry_run=True).changed, agent.reflect(dry_run=True).lessons) == (1, ())
    assert memory.stats().events == events


def test_a_project_s_lessons_stay_in_it(seats):
    migrated(seats)
    stranger = seats.agent(project="bank", task="T-1")
    assert stranger.reflect().episodes == 0
    assert stranger.recall("no such table users").items == ()


POOL_ERROR = "ConnectionError: pool of host db timed out"


def test_an_account_that_an_agent_stored_teaches_the_project_once_somebody_accepts_it(seats):
    units = []
    for number, approach in ((1, "Raise the pool size"), (2, "raise the pool size"), (3, None)):
        stored = seats.agent(task=f"T-{number}").episodes.store(
            f"Mend the pool of shop {number}", success=approach is not None, errors=[POOL_ERROR], approach=approach
        )
        assert str(stored.unit.level) == "worktree"
        units.append(stored.unit)
    seat = seats.agent(task="T-4")
    seat.fail(POOL_ERROR)
    seat.verify(True)
    assert seat.reflect().lessons == (), "nobody but an agent says so"
    for unit in units:
        seats.human().approve(unit.id)
        seats.human().promote(unit.id)
    [lesson] = seat.reflect().lessons
    assert "Said to have worked in 2 of the 3 that got past it" in lesson.content
    assert "by their own word" in lesson.content


@pytest.mark.parametrize("seconds", [float("nan"), 0, -1, "5"])
def test_so_many_seconds_are_a_number_above_0(seats, seconds):
    with pytest.raises(InvalidInput, match="seconds must be a number above 0"):
        seats.agent().reflect(seconds=seconds)


def test_a_bug_pattern_does_not_take_the_place_of_a_lesson(seats):
    for number, passed in ((1, True), (2, True), (3, False)):
        seat = seats.agent(task=f"T-{number}")
        seat.fail(POOL_ERROR, approach="wait longer")
        if passed:
            seat.log("fix", "Raise the pool size")
        seat.verify(**({"run": GREEN} if passed else {"passed": False, "error": POOL_ERROR}))
    seats.agent().reflect()
    items = seats.agent(worktree="other").recall(POOL_ERROR).items
    derived = sorted(str(item.unit.kind) for item in items if item.unit.is_derived)
    assert derived == ["fact", "semantic"]

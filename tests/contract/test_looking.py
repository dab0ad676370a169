"""Reading the log, looking at the project, and naming things by a part of their id, within what a seat may see."""

from __future__ import annotations

from datetime import timedelta

import pytest

import mnemarch
from mnemarch import Actor, Citation, EventType, InvalidInput, NotFound
from mnemarch.model.outcome import Dispute, Explanation
from mnemarch.model.stamps import short_id

SEEN_BY_AGENT = ["in T-1", "in main", "in shop", "in acme"]


@pytest.fixture
def filled(seats, clock):
    """One entry in each of several places, a minute apart."""
    for text, where in {
        "in T-1": {},
        "in T-2": {"task": "T-2"},
        "in feat": {"worktree": "feat", "task": "T-1"},
        "in main": {"task": None},
        "in shop": {"task": None, "worktree": None},
        "in acme": {"task": None, "worktree": None, "project": None},
        "in shop-2": {"project": "shop-2"},
        "in acme-corp": {"org": "acme-corp"},
    }.items():
        seats.agent(**where).log("thought", text)
        clock.advance(minutes=1)
    return seats


def texts(events):
    return [event.payload["text"] for event in reversed(events)]


def test_an_agent_reads_what_its_own_scopes_recorded(filled):
    assert texts(filled.agent().events()) == SEEN_BY_AGENT
    assert filled.agent().events(task="T-2") == []
    assert filled.agent().events(worktree="feat") == []


@pytest.mark.parametrize("kind", ["human", "orchestrator"])
def test_people_and_orchestrators_read_the_whole_project(filled, kind):
    for where in ({}, {"task": None, "worktree": None}, {"worktree": "feat", "task": "T-9"}):
        seat = filled.seat(kind, "a", **where)
        assert texts(seat.events()) == ["in T-1", "in T-2", "in feat", "in main", "in shop", "in acme"]
        assert texts(seat.events(task="T-1")) == ["in T-1", "in feat"]
        assert texts(seat.events(worktree="feat")) == ["in feat"]
        assert texts(seat.events(worktree="main", task="T-1")) == ["in T-1"]
    assert texts(filled.seat(kind, "a", project=None, worktree=None, task=None).events()) == ["in acme"]


def test_the_log_is_paged_backwards_by_the_last_id_of_a_page(filled):
    seat, pages = filled.human(), []
    while page := seat.events(limit=4, after=pages[-1][-1].id if pages else None):
        pages.append(page)
    assert [event for page in pages for event in page] == seat.events()
    assert [len(page) for page in pages] == [4, 2]
    assert seat.events(limit=4, after=short_id(pages[0][-1].id)) == pages[1]


def test_the_log_is_read_by_actor_type_and_time(filled, clock):
    filled.agent("coder-2").remember("Checkout retries three times")
    human = filled.human()
    assert [event.type for event in human.events(types=["unit"])] == [EventType.UNIT_REMEMBERED]
    assert [str(event.actor) for event in human.events(actor="agent:coder-2")] == ["agent:coder-2"]
    assert human.events(actor=Actor.agent("coder-3")) == []
    assert human.events(types=["logged"], since=clock.now - timedelta(minutes=3, seconds=1))[0].payload["text"] == (
        "in acme"
    )
    assert len(human.events(since=clock.now)) == 1
    assert human.events(since=clock.now + timedelta(seconds=1)) == []


@pytest.mark.parametrize("wrong", [{"types": ["nonsense"]}, {"actor": "coder-1"}, {"limit": -1}, {"since": "today"}])
def test_a_wrong_filter_is_refused(human, wrong):
    with pytest.raises(InvalidInput):
        human.events(**wrong)


def test_the_last_of_a_page_must_be_an_entry_that_the_seat_may_read(filled):
    hidden = filled.human().events(task="T-2")[0]
    for id in (hidden.id, short_id(hidden.id), "nonsense"):
        with pytest.raises(NotFound):
            filled.agent().events(after=id)


# Ids by a part


def test_the_beginning_of_the_last_group_or_of_the_whole_id_names_a_unit_to_every_verb(seats):
    unit = seats.agent().remember("Checkout retries three times", level="worktree").unit
    for part in (short_id(unit.id), unit.id[24:30], unit.id[24:], unit.id[:6], unit.id[:-1], unit.id[24:30].upper()):
        assert seats.agent().get(part).id == unit.id
    part, human = short_id(unit.id), seats.human()
    assert human.explain(part).unit.id == human.history(part)[0].subject == human.show(part).unit.id == unit.id
    assert seats.agent().cite(part, Citation.test("t")).id == seats.agent().use(part).id == unit.id
    assert human.validate(part, "tests_passed") > unit.confidence
    assert human.approve(part).status == "verified"
    assert seats.orchestrator().promote(part).unit.level == mnemarch.Level.PROJECT
    newer = human.remember("Checkout retries 4 times", level="project", citations=[Citation.human("alice")]).unit
    (dispute,) = human.conflicts()
    assert human.resolve(short_id(dispute.id), winner=short_id(newer.id), reason="seen").winner == newer.id
    assert [each.id for each in human.units(ids=[part, short_id(newer.id)])] == [unit.id, newer.id]
    assert human.erase(part, "private").units == (unit.id,)


def test_a_part_that_fits_several_units_is_refused_with_the_first_words_of_each(seats):
    one, two = (seats.agent().remember(text).unit.id for text in ("Cats sleep", "Dogs bark"))
    with pytest.raises(InvalidInput) as caught:
        seats.agent().get(one[:6])
    for id, words in ((one, "Cats sleep"), (two, "Dogs bark")):
        assert f"{id[24:]} ({words})" in caught.value.message
        assert seats.agent().get(id[24:]).id == id


def test_a_part_names_only_what_the_seat_may_see(seats):
    mine, hidden = seats.agent().remember("Mine").unit, seats.agent(worktree="w2").remember("Hidden").unit
    assert seats.agent().get(mine.id[:6]).id == mine.id
    for verb in ("get", "explain", "history", "show"):
        for part in (hidden.id, short_id(hidden.id)):
            with pytest.raises(NotFound):
                getattr(seats.agent(), verb)(part)
    assert seats.agent().units(ids=[short_id(hidden.id)]) == []
    assert seats.human().show(short_id(hidden.id)).unit == hidden
    assert seats.human().units(ids=[hidden.id]) == [hidden]
    with pytest.raises(NotFound):
        seats.human(project="shop-2").show(hidden.id)


@pytest.mark.parametrize("part", ["abcde", "zzzzzz", "abcdef%", "", "한글한글한글"])
def test_what_is_no_part_of_an_id_names_nothing(seats, part):
    seats.agent().remember("Cats sleep")
    with pytest.raises((NotFound, InvalidInput)):
        seats.human().show(part)


def test_parts_of_ids_name_decisions_evidence_and_relations(seats):
    desk = seats.orchestrator().decisions
    evidence = desk.add_evidence("The bench says so", level="project")
    reason = {"type": "risk", "summary": "one file"}

    def decided(text, **more):
        return desk.commit(desk.propose(text, reason=reason, evidence=[short_id(evidence.id)], **more))

    one, two = decided("Use SQLite"), decided("Use one folder")
    desk.relate(short_id(two.id), "DEPENDS_ON", short_id(one.id))
    assert [node.id for node in desk.impact(short_id(one.id)).nodes] == [two.id]
    newer = decided("Use SQLite in WAL mode", revises=short_id(one.id))
    assert [each.id for each in desk.history(short_id(newer.id))] == [one.id, newer.id]
    assert desk.get(short_id(newer.id)) == desk.in_force(short_id(one.id)) == newer
    assert desk.add_anchor("which store?", short_id(newer.id), "wiring").attributes["target"] == newer.id


def test_an_id_shows_whatever_it_names(seats):
    seats.agent().remember("Checkout retries 3 times")
    stored = seats.agent().remember("Checkout retries 5 times")
    receipt = seats.agent().log("thought", "hm")
    human = seats.human()
    assert isinstance(human.show(short_id(stored.unit.id)), Explanation)
    shown = human.show(short_id(stored.conflicts[0].id))
    assert isinstance(shown, Dispute)
    assert shown == stored.conflicts[0]
    assert human.show(short_id(receipt.event_id)).payload["text"] == "hm"


# Status


def test_a_status_tells_who_works_on_what_and_what_waits(seats, clock):
    old = seats.agent("old")
    old.mark_stuck("needs a password")
    clock.advance(days=2)
    seats.agent("early", task="T-3").log("thought", "x")
    seats.agent("early", task="mnemarch-doctor-17").log("thought", "nobody works there")
    clock.advance(hours=2)
    unit = seats.agent(task="T-4").remember("Checkout retries 3 times", citations=[Citation.test("t")]).unit
    seats.agent(task="T-4").verify(True, tests=["t"])
    seats.agent("coder-2", worktree="feat", task="T-5").verify(False)
    seats.agent(task="T-4").remember("Checkout retries 4 times")
    seen = seats.human(task=None).status()
    at_work = {(str(agent.actor), agent.scope.worktree) for agent in seen.agents}
    assert at_work == {("agent:coder-1", "main"), ("agent:coder-2", "feat")}
    assert {task.scope.task: task.state for task in seen.tasks} == {
        "T-1": "stuck",
        "T-3": "open",
        "T-4": "verified",
        "T-5": "open",
    }
    assert seen.tasks[0].reason == "needs a password"
    assert [learned.id for learned in seen.learned] == [unit.id]
    assert {each.name: (each.agents, each.tasks) for each in seen.worktrees} == {"main": (1, 2), "feat": (1, 1)}
    assert (seen.open_conflicts, seen.waiting) == (1, 4)
    assert (seen.project, seen.writable, seen.indexed + seen.unindexed) == ("shop", True, 4)
    seats.agent(task="T-4").fail("KeyError: 'total'", approach="cache the total")
    assert {task.scope.task: task.state for task in seats.human(task=None).status().tasks}["T-4"] == "open"
    seats.human().clear_stuck("here it is")
    assert "stuck" not in {task.state for task in seats.human(task=None).status().tasks}


def test_a_task_of_two_worktrees_is_one_task_in_the_status(seats, clock):
    for worktree in ("main", "feat"):
        clock.advance(hours=2)
        seats.agent(worktree=worktree, task="T-4").log("thought", "x")
    seen = seats.human(task=None).status()
    assert [(task.scope.task, task.scope.worktree) for task in seen.tasks] == [("T-4", "feat")]
    assert {each.name: each.tasks for each in seen.worktrees} == {"main": 1, "feat": 1}
    clock.advance(hours=2)
    seats.agent(worktree="main", task="T-4").verify(True, tests=["t"])
    seen = seats.human(task=None).status()
    assert [(task.state, task.scope.worktree) for task in seen.tasks] == [("verified", "main")]
    assert {each.name: each.tasks for each in seen.worktrees} == {"main": 0, "feat": 0}


def test_a_status_names_the_task_that_goes_round_in_circles_until_it_is_cleared(seats):
    def state():
        return [(task.state, task.reason) for task in seats.human(task=None).status().tasks]

    error = "KeyError: 'total'"
    for approach in ("cache the total", "reload the cart", "sort the rows"):
        seats.agent().fail(error, approach=approach)
    assert state() == [("blocked", error)]
    seats.human().clear_stuck("look at the rows first")
    assert state() == [("open", None)]


def test_what_another_worktree_learned_for_the_project_is_in_everybodys_status(seats):
    unit = seats.human(worktree="feat").remember("Deploys need a ticket").unit
    seats.agent("other", worktree="feat", task="T-2").remember("Checkout retries 3 times")
    seats.agent("other", worktree="feat", task="T-2").remember("Checkout retries 4 times")
    assert [learned.id for learned in seats.agent().status().learned] == [unit.id]
    assert (seats.agent().status().open_conflicts, seats.human(task=None).status().open_conflicts) == (0, 1)


def test_an_agents_status_tells_nothing_of_other_tasks(seats):
    seats.agent("other", task="T-2").mark_stuck("secret")
    seats.agent("other", task="T-2").remember("Hidden")
    seats.agent().log("thought", "x")
    seen = seats.agent().status()
    assert [str(agent.actor) for agent in seen.agents] == ["agent:coder-1"]
    assert [task.scope.task for task in seen.tasks] == ["T-1"]
    assert (seen.learned, seen.waiting, seen.is_complete) == ((), 0, False)
    assert seats.human(task=None).status().is_complete


# The inbox


def test_r20_the_status_counts_what_the_inbox_lists(seats):
    for number in range(3):
        seats.agent().remember(f"Cache {number} is warm", level="project")
    seats.agent("coder-2", worktree="feat", task="T-5").remember("The feed is paged")
    lead = seats.human(task=None)
    assert len(lead.inbox(limit=2)) == 2
    assert lead.status().waiting == len(lead.inbox()) == 4


@pytest.mark.parametrize("wrong", ["nothing-like-it", "conflict"])
def test_r20_of_several_items_none_is_accepted_if_one_can_not_be(seats, wrong):
    seats.agent().remember("Cache 1 is warm", level="project")
    lead = seats.human(task=None)
    lead.remember("Checkout retries 3 times")
    lead.remember("Checkout retries 4 times")
    items = {item.what: item.id for item in lead.inbox()}
    with pytest.raises((NotFound, InvalidInput)):
        lead.accept([items["refused claim"], items.get(wrong, wrong)])
    assert items["refused claim"] in {item.id for item in lead.inbox()}
    assert lead.accept([items["refused claim"]] * 2)[0].unit.status == "verified"
    assert "refused claim" not in {item.what for item in lead.inbox()}


def test_an_entry_of_the_log_is_cited_by_the_id_that_was_printed(seats):
    agent = seats.agent()
    whole = agent.log("tool_output", "terraform: the state is locked").event_id
    unit = agent.remember("The state is locked", citations=[Citation.log(whole[24:32])]).unit
    assert unit.citations[0].ref == whole
    again = agent.cite(agent.remember("Plans lock the state").unit.id, Citation.log(whole[24:30]))
    assert again.citations[0].ref == whole
    with pytest.raises(InvalidInput, match="No event 'ffffff'"):
        agent.remember("Nobody said so", citations=[Citation.log("ffffff")])

"""The inbox is fair to every author, tells what no worktree here holds, and forgets what nobody wants (R20)."""

from __future__ import annotations

import pytest

from fixtures.repositories import repository, worktree
from mnemarch import Actor, Claim, Level, NotFound, Reason, Scope
from mnemarch.model.stamps import short_id
from mnemarch.model.value import replace
from mnemarch.services import inbox
from mnemarch.text.statements import topic_key


@pytest.fixture
def person(seats):
    return seats.human(worktree=None, task=None)


@pytest.mark.parametrize("level", ["worktree", "project"])
def test_a_noisy_agent_does_not_fill_the_inbox(seats, person, level):
    quiet = [seats.agent(f"quiet-{n}", worktree=f"q{n}").remember(f"Queue {n} is drained at night") for n in range(3)]
    noisy = seats.agent("noisy", worktree="n")
    noisy.remember_many([Claim(content=f"Report {n} was read by team {n}", level=level) for n in range(250)])
    lines = person.inbox()
    assert len(lines) == 20
    assert {each.unit.id for each in quiet} <= {item.id for item in lines}
    assert not person.status().is_complete
    authors = [item.author for item in lines if item.what == "claim"]
    assert level == "project" or authors[:4] == ["agent:noisy", *(f"agent:quiet-{n}" for n in (2, 1, 0))]


def test_many_recalls_hide_nothing_that_waits_and_bring_back_nothing_that_was_settled(seats, person):
    texts = ("The gateway is idempotent", "Invoices are sent at noon")
    declined, waiting = (seats.orchestrator().remember(text, level="project").receipt.event_id for text in texts)
    person.decline(declined, "it is not")
    for number in range(501):
        seats.agent().recall(f"gateway {number}")
    assert [item.id for item in person.inbox()] == [waiting]


def test_claims_of_a_worktree_that_is_not_here_are_marked_and_can_be_accepted(memory, tmp_path):
    shop = repository(tmp_path / "shop")
    worktree(shop, tmp_path / "feat", "-b", "feat")

    def seat(kind, tree, task):
        return memory.seat(Actor(kind, "ada"), Scope(project="shop", worktree=tree, task=task), root=shop)

    left, here = (
        seat("agent", tree, "T-1").remember(f"Queue {tree} is drained at night").unit for tree in ("gone", "feat")
    )
    person = seat("human", None, None)
    assert [(item.id, item.what) for item in person.inbox()] == [
        (left.id, "claim of an absent worktree"),
        (here.id, "claim"),
    ]
    assert "This machine has no such worktree" in person.inbox()[0].why
    (settled,) = person.accept(left.id)
    assert settled.unit.level is Level.PROJECT


def test_a_claim_that_a_person_states_too_waits_once_as_a_merge_proposal(seats):
    person = seats.human()
    claimed = seats.agent().remember("We deploy on Tuesdays").unit
    stated = person.remember("we deploy on Tuesdays.").unit
    (item,) = person.inbox()
    assert (item.what, item.subject.count("Tuesdays"), item.evidence) == ("merge proposal", 2, "the same words")
    person.resolve(item.id, winner=stated.id, reason="a person said it")
    assert person.inbox() == []
    assert person.get(claimed.id).superseded_by == stated.id


def test_what_the_project_knows_does_not_wait_for_those_who_said_it_elsewhere(seats, person):
    texts = ("Sessions live in Redis db 4", "the sessions live in Redis db 4.", "Sessions live in Redis db 5")
    claims = [seats.agent(f"a{n}", worktree=f"w{n}").remember(text).unit for n, text in enumerate(texts)]
    assert len(person.inbox()) == 3
    known = person.remember(texts[0]).unit
    assert [item.id for item in person.inbox()] == [claims[2].id]
    assert person.status().waiting == 1
    person.archive(known.id, "unsure")
    assert len(person.inbox()) == 3


def test_each_text_is_read_once_to_find_what_the_project_knows(seats, person, monkeypatch):
    claims = [Claim(content=f"The worker retries {n} times") for n in range(20)]
    seats.agent().remember_many(claims)
    person.remember_many([replace(claim, level="project") for claim in claims[:10]])
    read = []
    monkeypatch.setattr(inbox, "topic_key", lambda text: (read.append(text), topic_key(text))[1])
    person.inbox()
    assert 20 <= len(read) <= 30


def test_every_item_that_is_listed_can_be_settled_and_stays_so(seats, person):
    agents = [seats.agent(f"a{n}") for n in range(3)]
    for agent in agents:
        claims = [Claim(content=f"Report {n} of {agent.actor.id} was read", level="project") for n in range(180)]
        agent.remember_many(claims)
    listed = [item.id for item in person.inbox(limit=1000)]
    assert len(listed) == 540
    person.decline(listed, "nobody needs it")
    assert person.inbox() == []


def test_a_claim_that_the_code_contradicts_says_so_in_the_inbox(memory, tmp_path):
    shop = repository(tmp_path / "shop")
    (shop / "AGENTS.md").write_text("- Always use pnpm in the shop\n- Deploys need a ticket\n")
    agent = memory.seat(Actor.agent("a"), Scope(project="shop", worktree="main", task="T-1"), root=shop)
    person = memory.seat(Actor.human("ada"), Scope(project="shop", worktree="main"), root=shop)
    agent.ingest_file(shop / "AGENTS.md")
    assert "does not hold" not in str(person.inbox())
    (shop / "AGENTS.md").write_text("- Deploys need a ticket\n")
    stale = {item.subject: "does not hold in this tree" in item.why for item in person.inbox()}
    assert stale == {"Always use pnpm in the shop": True, "Deploys need a ticket": False}


@pytest.mark.parametrize("both", [False, True])
def test_a_person_resolves_a_conflict_of_the_inbox_from_any_worktree(seats, person, both):
    agent = seats.agent(worktree="w2")
    first, second = (agent.remember(text).unit for text in ("Totals are rounded up", "Totals are rounded down"))
    conflict = next(item for item in person.inbox() if item.what == "conflict")
    assert [dispute.id for dispute in person.conflicts()] == [conflict.id]
    assert seats.agent(worktree="w3").conflicts() == seats.human(project="other").conflicts() == []
    person.resolve(conflict.id, winner=None if both else first.id, both=both, reason="measured")
    assert agent.get(second.id).live is both
    assert "conflict" not in {item.what for item in person.inbox()}
    for seat in (seats.agent(worktree="w3"), seats.human(project="other")):
        with pytest.raises(NotFound):
            seat.resolve(conflict.id, both=True, reason="no")


def test_a_request_says_what_a_yes_would_take_out_of_force(seats, person):
    why = {"reason": Reason("risk", "measured"), "snapshots": ["seen"]}
    lock = person.decisions.commit(person.decisions.propose("Use Kafka for mail", strength="lock", **why))
    agent = seats.agent(worktree="w1")
    agent.decisions.commit(agent.decisions.propose("Use Redis for mail", revises=lock.id, **why))
    (request,) = person.inbox()
    assert request.evidence == f"measured; revises the lock {lock.id}, “Use Kafka for mail”"


@pytest.mark.parametrize(
    ("lock", "broken", "kept"),
    [
        ("Only whole pallets are shipped", "Half pallets are shipped", "Whole pallets are shipped by rail"),
        ("온전한 팔레트만 출고한다", "반 팔레트도 출고한다", "온전한 팔레트는 기차로 출고한다"),
    ],
)
def test_a_claim_that_a_lock_forbids_says_so_in_the_inbox_before_anybody_accepts_it(seats, person, lock, broken, kept):
    why = {"reason": Reason("risk", "measured"), "snapshots": ["seen"]}
    firm = person.decisions.commit(person.decisions.propose(lock, strength="lock", **why))
    agent = seats.agent(worktree="w1")
    agent.remember(broken)
    agent.remember(kept, level=Level.PROJECT)
    told = {item.subject: f"It opposes the lock {short_id(firm.id)}: “{lock}”" in item.why for item in person.inbox()}
    assert told == {broken: True, kept: False}


def test_a_task_that_the_loop_guard_blocks_waits_in_the_inbox_until_something_changes(seats, person):
    agent, other = seats.agent(worktree="w1"), seats.agent("coder-2", worktree="w2", task="T-2")
    for approach in ("raise the pool size", "restart the proxy", "pin the driver"):
        assert person.inbox() == []
        for seat in (agent, other):
            seat.fail("ConnectionError: pool exhausted", approach=approach)
    first, second = person.inbox()
    assert (first.what, first.subject, first.author) == ("stuck task", "Task T-2 is blocked", "agent:coder-2")
    assert (second.subject, second.evidence) == ("Task T-1 is blocked", "ConnectionError: pool exhausted")
    assert "3" in second.why
    other.fail("KeyError: 'pool'", approach="read the pool from the settings")
    assert [item.subject for item in person.inbox()] == ["Task T-1 is blocked"]
    person.accept(second.id)
    assert (person.inbox(), agent.validate_approach("pin the driver").valid) == ([], True)
    agent.mark_stuck("needs a password")
    agent.fail("ConnectionError: pool exhausted")
    assert [item.subject for item in person.inbox()] == ["Task T-1 is stuck"]


def test_what_nobody_wanted_for_30_days_leaves_the_inbox(seats, person, clock):
    agent = seats.agent(worktree="w1")
    for text in ("Deploys need a ticket", "Totals are rounded up", "Totals are rounded down"):
        agent.remember(text)
    agent.remember("The gateway is idempotent", level="project")
    agent.decisions.commit(
        agent.decisions.propose("Use Kafka for mail", reason=Reason("risk", "measured"), snapshots=["seen"])
    )
    agent.mark_stuck("needs a password")
    assert {item.what for item in person.inbox()} == {
        *("claim", "conflict", "refused claim", "request for a decision", "stuck task")
    }
    clock.advance(days=31)
    agent.log("note", "still here")
    assert person.inbox() == []
    seats.agent(worktree="w2", task="T-2").recall("do deploys need a ticket?")
    assert [item.subject for item in person.inbox()] == ["Deploys need a ticket"]

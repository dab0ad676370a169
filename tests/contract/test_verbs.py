"""Every verb keeps its promise."""

from __future__ import annotations

import json
import os
import resource
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone

import pytest

import mnemarch
from fixtures.green import GREEN
from fixtures.repositories import git, repository
from mnemarch import (
    Analysis,
    Citation,
    Claim,
    Conflict,
    EventType,
    InvalidInput,
    Kind,
    Level,
    NotAllowed,
    NotFound,
    Refused,
    Scope,
    Status,
    Stored,
)
from mnemarch.config import config_from
from mnemarch.model.value import replace

FACT = "Checkout retries three times"
TEST = "tests/test_checkout.py::test_retry"


def log_of(memory):
    return memory._engine.store.read(lambda reader: list(reader.events()))


def recalled(seat, query, **options):
    """The ids of the units that a question finds, best first."""
    return [item.unit.id for item in seat.recall(query, **options).items]


@contextmanager
def refused(error, **options):
    """Expect an error that says what to do."""
    with pytest.raises(error, **options) as caught:
        yield caught
    assert caught.value.message
    assert caught.value.hint


def verified(seats, content=FACT, level="worktree", **where):
    """A unit that a person vouched for."""
    unit = seats.agent(**where).remember(content, level=level).unit
    return seats.human(**where).approve(unit.id)


def used_by(seats, unit, *tasks):
    """The unit after these tasks used it and succeeded, which this program saw."""
    for task in tasks:
        seats.agent(task=task).use(unit.id)
        seats.saw("test_other", turned=False, task=task)
    return seats.agent().get(unit.id)


# The log


def test_g2_a_logged_entry_keeps_its_text_actor_scope_and_time(memory, agent, clock):
    when = datetime(2025, 1, 1, tzinfo=UTC)
    receipt = agent.log(
        "thought", "The pool is exhausted", data={"n": [1, None, "가"]}, occurred_at=when, session="s-1"
    )
    (event,) = log_of(memory)
    assert (receipt.event_id, receipt.seq, receipt.hash) == (event.id, 1, event.hash.hex())
    assert (receipt.duplicate, receipt.redacted) == (False, ())
    assert event.payload == {"kind": "thought", "text": "The pool is exhausted", "data": {"n": [1, None, "가"]}}
    assert (event.type, event.actor, event.scope, event.session) == (EventType.LOGGED, agent.actor, agent.scope, "s-1")
    assert (event.occurred_at, event.recorded_at) == (when, clock.now)


def test_a_batch_is_logged_whole_and_in_order_or_not_at_all(memory, agent):
    receipts = agent.log_many([("a", "1"), {"kind": "b", "text": "2", "data": {"x": 1}}, mnemarch.Entry("c", "3")])
    assert [receipt.seq for receipt in receipts] == [1, 2, 3]
    assert [event.payload["text"] for event in log_of(memory)] == ["1", "2", "3"]
    with pytest.raises(InvalidInput):
        agent.log_many([("a", "4"), ("b", "")])
    assert memory.stats().events == 3
    assert agent.log_many([]) == []


def test_every_project_has_a_chain_of_its_own(memory, seats):
    for project in ("shop", "shop-2", "shop"):
        seats.agent(project=project).log("thought", "x")
    assert [(event.stream.project, event.seq) for event in log_of(memory)] == [("shop", 1), ("shop-2", 1), ("shop", 2)]
    assert memory.audit().ok


def test_a_session_of_the_seat_is_on_every_event_and_one_of_the_call_goes_before_it(memory, seats):
    seat = memory.seat(mnemarch.Actor.agent("a"), seats.HOME, session="s-1")
    seat.log("thought", "x")
    seat.log("thought", "y", session="s-2")
    seat.remember(FACT)
    seat.remember("Another fact", session="s-3")
    assert [event.session for event in log_of(memory)] == ["s-1", "s-2", "s-1", "s-3"]
    assert [unit.session for unit in seat.units()] == ["s-3", "s-1"]


# Idempotency keys


def test_a_key_given_twice_stores_once(memory, agent):
    first = agent.log("thought", "x", key="k")
    again = agent.log("thought", "x", key="k")
    assert again.duplicate
    assert not first.duplicate
    assert (again.event_id, again.seq, again.hash) == (first.event_id, first.seq, first.hash)
    assert memory.stats().events == 1


def test_a_key_for_other_content_is_a_conflict_and_stores_nothing(memory, agent):
    agent.log("thought", "x", key="k")
    agent.remember(FACT, key="r")
    before = memory.stats().events
    for call in (
        lambda: agent.log("thought", "y", key="k"),
        lambda: agent.log("other", "x", key="k"),
        lambda: agent.log("thought", "x", data={"a": 1}, key="k"),
        lambda: agent.remember("Another fact", key="r"),
        lambda: agent.log("thought", FACT, key="r"),
        lambda: agent.remember("x", key="k"),
        lambda: agent.log_many([("thought", "fine"), mnemarch.Entry("thought", "y", key="k")]),
    ):
        with refused(Conflict):
            call()
        assert memory.stats().events == before


def test_the_same_key_of_another_actor_or_scope_is_another_event(memory, seats):
    for seat in (seats.agent(), seats.agent("coder-2"), seats.human("coder-1"), seats.agent(task="T-2")):
        assert not seat.log("thought", "x", key="k").duplicate
    assert memory.stats().events == 4


def test_a_claim_with_a_known_key_gives_its_unit_again(memory, agent):
    first = agent.remember(FACT, key="k")
    again = agent.remember(FACT, key="k")
    assert again.receipt.duplicate
    assert again.unit == first.unit
    assert again.receipt.event_id == first.receipt.event_id
    assert len(agent.units()) == 1
    refused = agent.remember("Wide fact", level="project", key="p")
    again = agent.remember("Wide fact", level="project", key="p")
    assert (again.rule, again.receipt.duplicate) == ("G23", True)
    assert again.receipt.event_id == refused.receipt.event_id


# Claims


def test_a_claim_becomes_a_unit_that_knows_where_it_comes_from(memory, agent, clock):
    stored = agent.remember(FACT, domain="coding", importance=0.7, attributes={"a": [1]})
    unit = stored.unit
    assert isinstance(stored, Stored)
    assert (stored.merged, stored.conflicts, stored.similar) == (False, (), ())
    assert (unit.content, unit.kind, unit.domain, unit.importance) == (FACT, Kind.FACT, "coding", 0.7)
    assert (unit.scope, unit.level, unit.version) == (agent.scope.at(Level.WORKTREE), Level.WORKTREE, 1)
    assert unit.status is Status.HYPOTHESIS
    assert unit.confidence == 0.3
    assert unit.attributes == {"a": [1]}
    (source,) = unit.provenance
    assert (source.actor, source.scope, source.event_id, source.at) == (
        agent.actor,
        agent.scope,
        stored.receipt.event_id,
        clock.now,
    )
    assert agent.get(unit.id) == unit


NOT_CLAIMED = {Kind.DECISION, Kind.EVIDENCE, Kind.ANCHOR, Kind.POLICY, Kind.CORE, Kind.ITEM}


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_that_can_be_claimed_can_be_remembered(memory, agent, kind):
    if kind in NOT_CLAIMED:
        with refused(InvalidInput):
            agent.remember(FACT, kind=kind)
        assert memory.stats().events == 0
        return
    unit = agent.remember(FACT, kind=kind).unit
    assert unit.kind is kind
    assert agent.units(kind=kind) == [unit]


def test_r5_two_agents_with_the_same_fact_get_one_unit_with_two_provenances(memory, seats):
    first = seats.agent("coder-1").remember("Checkout retries 3 times!", level="worktree")
    second = seats.agent("coder-2", task="T-2").remember("checkout  retries 3 TIMES", level="worktree")
    assert second.merged
    assert second.unit.id == first.unit.id
    assert [str(source.actor) for source in second.unit.provenance] == ["agent:coder-1", "agent:coder-2"]
    assert second.unit.content == "Checkout retries 3 times!"
    assert second.unit.version == 2
    assert second.unit.mentions == 2
    assert len(seats.agent().units()) == 1
    explained = seats.agent().explain(first.unit.id)
    assert [str(source.actor) for source in explained.provenance] == ["agent:coder-1", "agent:coder-2"]


def test_a_fact_repeated_by_its_author_is_a_mention(agent):
    first = agent.remember(FACT).unit
    again = agent.remember(FACT)
    assert again.merged
    assert again.unit.mentions == first.mentions + 1
    assert again.unit.provenance == first.provenance
    assert again.unit.version == first.version


def test_r5_the_same_text_of_another_kind_or_domain_or_project_is_another_unit(seats):
    agent = seats.agent()
    ids = {
        agent.remember(FACT).unit.id,
        agent.remember(FACT, kind="preference").unit.id,
        agent.remember(FACT, domain="coding").unit.id,
        seats.agent(project="bank").remember(FACT).unit.id,
        seats.agent(worktree="other").remember(FACT).unit.id,
    }
    assert len(ids) == 5


@pytest.mark.parametrize("task", ["T-2", None])
@pytest.mark.parametrize("other", [{}, {"kind": "semantic"}, {"domain": "coding"}], ids=str)
def test_r6_text_that_recall_handed_out_is_a_mention_and_neither_provenance_nor_a_new_unit(seats, task, other):
    unit = seats.agent("coder-1").remember(FACT, level="worktree").unit
    reader = seats.agent("coder-2", task=task)
    assert recalled(reader, "how often does checkout retry?") == [unit.id]
    echoed = reader.remember(FACT, level="worktree", **other)
    assert echoed.merged
    assert echoed.unit.id == unit.id
    assert [str(source.actor) for source in echoed.unit.provenance] == ["agent:coder-1"]
    assert echoed.unit.mentions == 2
    assert len(reader.explain(unit.id).provenance) == 1
    assert [item.id for item in reader.units()] == [unit.id]


def test_many_claims_give_many_answers_in_order(memory, seats):
    agent = seats.agent()
    claims = [
        Claim(content="One fact about apples"),
        Claim(content="Wide fact about pears", level="project"),
        Claim(content="one fact about apples."),
        Claim(content="Another about plums", kind="skill", level=Level.WORKTREE, session="s-7"),
    ]
    seen = []
    answers = agent.remember_many(claims, progress=seen.append)
    assert [type(answer) for answer in answers] == [Stored, Refused, Stored, Stored]
    assert answers[2].merged
    assert answers[2].unit.id == answers[0].unit.id
    assert (answers[3].unit.kind, answers[3].unit.level, answers[3].unit.session) == (Kind.SKILL, Level.WORKTREE, "s-7")
    assert seen == [4]
    assert agent.remember_many([]) == []


def test_a_wrong_claim_among_many_stores_none_of_them_also_over_several_batches(clock):
    config = config_from({"limits": {"batch_max": 3}})
    with mnemarch.open(":memory:", clock=clock, config=config) as memory:
        seat = memory.seat(mnemarch.Actor.agent("a"), Scope(project="p", task="t"))
        wrong = [
            Claim(content=""),
            Claim(content="It rests on nothing", citations=[Citation.log("no-such-event")]),
            Claim(content="Somebody vouches", citations=[Citation.human("alice")]),
            Claim(content="It can't be stored", attributes={"x": {1}}),
        ]
        for bad in wrong:
            with pytest.raises(InvalidInput):
                seat.remember_many([*(Claim(content=f"Thing number {n} is blue") for n in range(4)), bad])
            assert memory.stats().events == 0


# Status: what each rule lets through


def test_s10_rule_1_a_unit_without_citations_stays_a_hypothesis(seats):
    agent = seats.agent()
    unit = agent.remember(FACT, level="worktree").unit
    for task in ("T-1", "T-2", "T-3", "T-4", "T-5"):
        reader = seats.agent(task=task)
        reader.recall("checkout retries")
        reader.use(unit.id)
        assert seats.saw("some_test", turned=False, task=task).episode_id
    seats.orchestrator().validate(unit.id, "pr_merged")
    seats.orchestrator().approve(unit.id)
    assert agent.get(unit.id).status is Status.HYPOTHESIS
    assert agent.get(unit.id).uses == 4


@pytest.mark.parametrize("kind", ["log", "file", "symbol", "commit"])
def test_r2_a_log_file_symbol_or_commit_citation_does_not_verify(memory, seats, tmp_path, kind):
    root = code(tmp_path)
    agent = memory.seat(mnemarch.Actor.agent("a"), seats.HOME, root=root)
    receipt = agent.log("thought", "seen")
    citation = {
        "log": Citation.log(receipt.event_id),
        "file": Citation.file("a.py", (1, 1)),
        "symbol": Citation.symbol("a.py", "retry"),
        "commit": Citation.commit(git(root, "rev-parse", "HEAD")[:10]),
    }[kind]
    unit = agent.remember(FACT, citations=[citation]).unit
    assert unit.status is Status.HYPOTHESIS
    promotion = agent.verify(True, tests=["other"])
    assert agent.get(unit.id).status is Status.HYPOTHESIS
    assert [refused.rule for refused in promotion.refused if refused.unit_id == unit.id] == ["S10.2"]


def test_r2_a_test_citation_counts_from_the_moment_a_verification_recorded_it(seats):
    agent = seats.agent()
    early = agent.remember(FACT, citations=[Citation.test(TEST)]).unit
    assert early.status is Status.HYPOTHESIS
    failed = agent.verify(False, tests=[TEST])
    assert failed.units == ()
    assert agent.get(early.id).status is Status.HYPOTHESIS
    other = agent.verify(True, tests=["another_test"])
    assert [(item.rule, item.unit_id) for item in other.refused] == [("S10.2", early.id)]
    promotion = agent.verify(True, tests=[TEST])
    assert [unit.id for unit in promotion.units] == [early.id]
    assert promotion.units[0].status is Status.VERIFIED
    assert agent.get(early.id).confidence >= 0.6
    late = agent.remember("Payment retries twice", citations=[Citation.test(TEST)]).unit
    assert late.status is Status.VERIFIED
    assert late.confidence == 0.6


def test_r2_a_test_that_failed_since_no_longer_counts(seats):
    agent = seats.agent()
    agent.verify(True, tests=[TEST])
    agent.verify(False, tests=[TEST])
    assert agent.remember(FACT, citations=[Citation.test(TEST)]).unit.status is Status.HYPOTHESIS


def test_r2_a_test_of_another_project_does_not_count(seats):
    before = seats.agent().remember("Delivery takes two days", citations=[Citation.test(TEST)]).unit
    seats.agent(project="bank").verify(True, tests=[TEST])
    after = seats.agent().remember(FACT, citations=[Citation.test(TEST)]).unit
    assert [seats.agent().get(unit.id).status for unit in (before, after)] == [Status.HYPOTHESIS] * 2


@pytest.mark.parametrize("kind", ["agent", "orchestrator", "system", "human"])
def test_r2_nobody_can_vouch_in_anothers_name(memory, seats, kind):
    unit = seats.agent().remember(FACT).unit
    seat = seats.seat(kind, "mallory")
    before = memory.stats().events
    for call in (
        lambda: seat.cite(unit.id, Citation.human("alice")),
        lambda: seat.remember("Trust me", level="task", citations=[Citation.human("alice")]),
    ):
        with pytest.raises((InvalidInput, NotAllowed)) as caught:
            call()
        assert caught.value.hint
    assert memory.stats().events <= before + 1
    assert seats.agent().get(unit.id).citations == ()


FORGED = {
    "kind as text": lambda event_id: Citation("human", "alice"),
    "detail that renames it": lambda event_id: Citation(
        mnemarch.model.unit.CitationKind.LOG, event_id, (("kind", "human"), ("ref", "alice"))
    ),
}


@pytest.mark.parametrize("forgery", FORGED)
@pytest.mark.parametrize("way", ["remember", "cite"])
def test_r2_a_forged_citation_is_no_persons_word(seats, forgery, way):
    agent = seats.agent()
    receipt = agent.log("thought", "x")
    unit = agent.remember("The first of all facts", citations=[Citation.log(receipt.event_id)]).unit
    forged = FORGED[forgery](receipt.event_id)
    before = seats.memory.stats().events
    try:
        unit = agent.cite(unit.id, forged) if way == "cite" else agent.remember(FACT, citations=[forged]).unit
    except (InvalidInput, NotAllowed):
        assert forgery == "kind as text"
        assert [event.type for event in seats.events()[before:]] in ([], [EventType.ACT_REFUSED])
        return
    agent.cite(unit.id, Citation.test("never-ran"))
    agent.verify(True, tests=["another"])
    assert agent.get(unit.id).status is Status.HYPOTHESIS
    assert not any(item.kind == "human" for item in agent.get(unit.id).citations)


def test_r2_a_persons_own_word_verifies(seats):
    alice = seats.human("alice")
    first, second = (seats.agent().remember(f"{FACT}, variant {number}").unit for number in (1, 2))
    for after in (alice.cite(first.id, Citation.human("alice")), alice.approve(second.id)):
        assert after.status is Status.VERIFIED
        assert after.confidence >= 0.6
        assert Citation.human("alice") in after.citations


@pytest.mark.parametrize("signal", ["human_approved", "human_rejected"])
@pytest.mark.parametrize("kind", ["agent", "orchestrator", "system"])
def test_r2_a_persons_signal_comes_only_from_a_person(seats, signal, kind):
    unit = seats.agent().remember(FACT).unit
    with pytest.raises(NotAllowed):
        seats.seat(kind, "x").validate(unit.id, signal)
    assert seats.agent().get(unit.id).confidence == 0.3
    assert seats.human().validate(unit.id, signal) != 0.3


def test_g17_a_draft_that_is_verified_later_starts_as_sure_as_a_verified_unit(seats, clock):
    agent, human = seats.agent(), seats.human()
    ways = {
        "cite": lambda id: human.cite(id, Citation.human("alice")),
        "approve": lambda id: human.approve(id),
        "verify": lambda id: agent.verify(True, tests=[TEST]),
    }
    for way, act in ways.items():
        citations = [Citation.test(TEST)] if way == "verify" else []
        unit = agent.remember(f"Draft about the way of {way}", citations=citations).unit
        clock.advance(days=400)
        act(unit.id)
        after = agent.get(unit.id)
        assert (after.status, after.confidence >= 0.6) == (Status.VERIFIED, True), way


def test_s10_rule_3_verified_and_reused_by_three_distinct_tasks_is_published(seats):
    unit = verified(seats)
    after = used_by(seats, unit, "T-2", "T-2", "T-2", "T-3")
    assert (after.uses, after.status) == (2, Status.VERIFIED)
    after = used_by(seats, unit, "T-4")
    assert (after.uses, after.status) == (3, Status.PUBLISHED)
    assert seats.agent().explain(unit.id).used_by == ("T-2", "T-3", "T-4")


def test_s10_rule_3_the_order_of_reuse_and_verification_does_not_matter(seats):
    unit = used_by(seats, seats.agent().remember(FACT, level="worktree").unit, "T-2", "T-3", "T-4")
    after = seats.human().approve(unit.id)
    assert (after.uses, after.status) == (3, Status.PUBLISHED)


@pytest.mark.parametrize("sign", ["none", "use", "cite"])
@pytest.mark.parametrize("way", ["seen", "reported"])
def test_r2_reuse_needs_a_sign_of_use_and_a_success_that_was_seen(seats, sign, way):
    unit = verified(seats)
    reader = seats.agent(task="T-2")
    assert reader.recall("how often does checkout retry?").items
    if sign == "use":
        reader.use(unit.id)
    elif sign == "cite":
        reader.cite(unit.id, Citation.test("another"))
    for _ in range(2):
        reader.verify(True, tests=["t"]) if way == "reported" else seats.saw("t", turned=False, task="T-2")
        reader.use(unit.id) if sign == "use" else None
    assert reader.get(unit.id).uses == (1 if sign != "none" and way == "seen" else 0)


def test_r2_the_authoring_task_is_no_reuse(seats):
    unit = verified(seats)
    assert used_by(seats, unit, "T-1").uses == 0


def test_r2_a_failed_task_lowers_only_what_it_used_and_once(seats):
    unit, handed = verified(seats), verified(seats, "Delivery takes two days")
    before = seats.agent().get(unit.id).confidence
    reader = seats.agent(task="T-2")
    reader.use(unit.id)
    assert handed.id in recalled(reader, "delivery days")
    reader.verify(False, tests=["t"])
    assert reader.get(unit.id).confidence == before
    for _ in range(2):
        promotion = seats.saw("t", passed=False, task="T-2")
        assert reader.get(unit.id).confidence == pytest.approx(before - 0.2)
    assert promotion.trust_changes == ()
    assert reader.get(handed.id).confidence == handed.confidence
    seats.agent(task="T-3").use(unit.id)
    (change,) = seats.saw("t", passed=False, task="T-3").trust_changes
    assert (change.unit_id, change.signal) == (unit.id, "tests_failed")
    assert change.after == reader.get(unit.id).confidence == pytest.approx(max(0.1, before - 0.4))
    assert reader.get(unit.id).status is Status.VERIFIED


def test_r7_two_tasks_can_bring_a_unit_to_the_floor_and_only_then_is_it_withheld(seats):
    unit = seats.agent().remember(FACT).unit
    for task, withheld in (("T-2", False), ("T-2", False), ("T-3", True)):
        seats.agent(task=task).use(unit.id)
        seats.saw("t", passed=False, task=task)
        assert (seats.agent().get(unit.id).attributes == {"distrusted": True}) is withheld
    assert seats.agent().get(unit.id).confidence == 0.1
    assert recalled(seats.agent(), FACT) == []
    assert ("distrusted" in str(seats.agent().recall(FACT).withheld)) is True
    seats.human().approve(unit.id)
    assert recalled(seats.agent(), FACT) == [unit.id]


def test_r7_decay_alone_withholds_nothing(seats, clock):
    unit = seats.agent().remember(FACT).unit
    clock.advance(days=9_000)
    assert seats.agent().get(unit.id).confidence == 0.1
    assert recalled(seats.agent(), FACT) == [unit.id]


def test_use_needs_a_task(seats):
    unit = verified(seats)
    with pytest.raises(InvalidInput):
        seats.agent(task=None).use(unit.id)


@pytest.mark.parametrize(
    ("signal", "boost"),
    [
        ("tests_passed", 0.2),
        ("pr_merged", 0.3),
        ("repeated_success", 0.15),
        ("tests_failed", -0.2),
        ("pr_reverted", -0.3),
        ("contradicted", -0.15),
        ("human_approved", 0.4),
        ("human_rejected", -0.4),
    ],
)
def test_g18_a_signal_gives_the_new_confidence(seats, signal, boost, clock):
    unit = seats.agent().remember(FACT).unit
    human = seats.human()
    seats.human(task="T-2").validate(unit.id, "human_approved")
    given = human.validate(unit.id, signal)
    assert given == pytest.approx(min(1.0, 0.7 + boost))
    assert human.validate(unit.id, signal) == given
    after = human.get(unit.id)
    assert after.confidence == given
    assert (after.trust.validation_source, after.trust.validation_count) == (signal, 2)
    assert after.trust.last_validated_at == clock.now
    assert after.status is Status.HYPOTHESIS


def test_r7_confidence_fades_on_read_and_reading_writes_nothing(memory, seats, clock):
    unit = verified(seats)
    start = seats.agent().get(unit.id).confidence
    events = memory.stats().events
    clock.advance(days=60)
    faded = seats.agent().get(unit.id).confidence
    assert faded == pytest.approx(start * 0.98**2)
    assert [item.confidence for item in seats.agent().units() if item.id == unit.id] == [faded]
    assert seats.agent().explain(unit.id).confidence_now == faded
    assert seats.agent().explain(unit.id).confidence_stored == start
    assert memory.stats().events == events
    clock.advance(days=-120)
    assert seats.agent().get(unit.id).confidence == start


# The permission table, through the verbs

EVERYBODY = {"agent", "orchestrator", "human", "system"}
JUDGES = [{"human", "orchestrator"}] * 3 + [{"human"}]
# Who may do it at task, worktree, project and org, and the arguments of the verb.
ACTS = {
    "archive": ([{"system", "human"}] * 4, lambda unit, other: (unit.id, "why")),
    "approve": (JUDGES, lambda unit, other: (unit.id,)),
    "reject": (JUDGES, lambda unit, other: (unit.id, "why")),
    "supersede": (JUDGES, lambda unit, other: (other.id, unit.id, "why")),
    "erase": (JUDGES, lambda unit, other: (unit.id, "why")),
    "cite": ([EVERYBODY] * 4, lambda unit, other: (unit.id, Citation.test("t"))),
    "use": ([EVERYBODY] * 4, lambda unit, other: (unit.id,)),
    "validate": (JUDGES, lambda unit, other: (unit.id, "tests_passed")),
    "revive": ([{"human", "orchestrator", "system"}] * 3 + [{"human", "system"}], lambda unit, other: (unit.id, "why")),
    "resolve": (JUDGES, None),
}


def act_on(seat, act, unit, other, **options):
    if act == "resolve":
        return seat.resolve(seat.conflicts()[0].id, winner=other.id, reason="why")
    return getattr(seat, act)(*ACTS[act][1](unit, other), **options)


LEVELS = ("task", "worktree", "project", "org")
WRITERS = [{"agent", "orchestrator"}, {"agent", "orchestrator"}, {"orchestrator", "human"}, {"human", "system"}]


def placed(seats, level):
    """A trusted unit at a level, and one that opposes it."""
    if level in {"task", "worktree"}:
        return tuple(
            seats.human().approve(seats.agent().remember(f"Checkout retries {n} times", level=level).unit.id)
            for n in (3, 5)
        )
    seats.saw(TEST)
    writer = seats.orchestrator() if level == "project" else seats.human()
    return tuple(
        writer.remember(f"Checkout retries {n} times", level=level, citations=[Citation.test(TEST)]).unit
        for n in (3, 5)
    )


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("level", LEVELS)
def test_r4_every_act_of_every_actor_at_every_level(memory, seats, act, level):
    may = ACTS[act][0][LEVELS.index(level)]
    unit = None
    for kind in sorted(EVERYBODY, key=lambda kind: kind in may):  # Who may not changes nothing for those who follow.
        if unit is None or kind in may:
            there = type(seats)(memory, org=f"acme-{kind}")
            unit, other = placed(there, level)
            assert str(unit.level) == level
            if act == "revive":
                there.system().archive(unit.id, "old")
        before, seen = len(log_of(memory)), there.agent().get(unit.id)
        seat = there.seat(kind, "somebody")
        if kind in may:
            act_on(seat, act, unit, other)
            assert len(log_of(memory)) > before, kind
            continue
        with pytest.raises(NotAllowed) as caught:
            act_on(seat, act, unit, other)
        assert caught.value.rule == "R4"
        assert caught.value.hint
        assert unit.id in caught.value.message
        assert there.agent().get(unit.id) == seen, kind
        (refusal,) = log_of(memory)[before:]
        assert (refusal.type, refusal.actor) == (EventType.ACT_REFUSED, seat.actor)
        assert refusal.payload["rule"] == "R4"


@pytest.mark.parametrize("trusted", [True, False], ids=["trusted", "hypothesis"])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", sorted(EVERYBODY))
def test_g23_every_actor_writing_at_every_level(memory, seats, kind, level, trusted):
    seats.saw(TEST)
    before = len(log_of(memory))
    seat = seats.seat(kind, "somebody")
    citations = [Citation.test(TEST if trusted else "never-ran")]
    answer = seat.remember(FACT, level=level, citations=citations)
    if kind not in WRITERS[LEVELS.index(level)]:
        wanted = "G23"
    elif level in {"project", "org"} and not trusted and kind != "human":
        wanted = "G23.validation"
    else:
        assert isinstance(answer, Stored)
        # What a person says, that person vouches for; what a test shows about it holds for the project (R20).
        is_verified = trusted or kind == "human"
        assert str(answer.unit.level) == ("project" if trusted and level in {"task", "worktree"} else level)
        assert answer.unit.status is (Status.VERIFIED if is_verified else Status.HYPOTHESIS)
        return
    assert isinstance(answer, Refused)
    assert answer.rule == wanted
    assert answer.reason
    assert seat.units(kind="fact") == []
    (refusal,) = log_of(memory)[before:]
    assert refusal.type is EventType.CLAIM_REFUSED
    assert answer.receipt.event_id == refusal.id
    assert refusal.payload["rule"] == wanted
    assert refusal.payload["claim"]["content"] == FACT


@pytest.mark.parametrize("kind", sorted(EVERYBODY))
@pytest.mark.parametrize(("source", "target"), [(a, b) for a in range(3) for b in range(4)])
def test_g6_every_actor_promoting_from_every_level_to_every_level(memory, seats, kind, source, target):
    unit = placed(seats, LEVELS[source])[0]
    before = len(log_of(memory))
    answer = seats.seat(kind, "somebody").promote(unit.id, to=LEVELS[target])
    if target <= source:
        wanted = "G6"
    elif kind not in WRITERS[target]:
        wanted = "G23"
    elif target == 3:
        wanted = "S10.3"
    else:
        assert isinstance(answer, Stored)
        assert answer.unit.id == unit.id
        assert str(answer.unit.level) == LEVELS[target]
        assert answer.unit.scope == seats.HOME.at(Level.parse(LEVELS[target]))
        assert answer.unit.version == unit.version + 1
        return
    assert answer.rule == wanted
    assert answer.unit_id == unit.id
    assert seats.agent().get(unit.id).level is unit.level
    (held,) = log_of(memory)[before:]
    assert (held.type, held.payload["rule"]) == (EventType.UNIT_HELD, wanted)


def test_r4_acting_on_an_invisible_unit_is_not_found_for_every_actor(seats):
    unit, other = placed(type(seats)(seats.memory, project="bank"), "worktree")
    for act in set(ACTS) - {"resolve"}:
        for kind in EVERYBODY:
            with pytest.raises(NotFound):
                act_on(seats.seat(kind, "somebody"), act, unit, other)


def test_r4_a_tightened_policy_holds_for_the_verbs(clock):
    config = config_from({"policy": {"cite": {"task": ["human"]}, "write": {"task": ["orchestrator"]}}})
    with mnemarch.open(":memory:", clock=clock, config=config) as memory:
        scope = Scope(project="p", task="t")
        agent = memory.seat(mnemarch.Actor.agent("a"), scope)
        assert agent.remember(FACT).rule == "G23"
        unit = memory.seat(mnemarch.Actor.orchestrator("o"), scope).remember(FACT).unit
        with pytest.raises(NotAllowed):
            agent.cite(unit.id, Citation.test("t"))


# Verify: the gate


def test_g23_a_claim_that_only_lacked_validation_is_there_after_its_test_passed(memory, seats):
    boss = seats.orchestrator()
    refused = boss.remember("The gateway is idempotent", level="project", citations=[Citation.test(TEST)])
    assert refused.rule == "G23.validation"
    assert boss.units() == []
    assert boss.verify(True, tests=[TEST]).refused[0].rule == "G23.validation"
    assert boss.units(kind="fact") == []
    promotion = seats.saw(TEST)
    (unit,) = boss.units(kind="fact")
    assert [item.id for item in promotion.units] == [unit.id]
    assert (unit.level, unit.status, unit.content) == (Level.PROJECT, Status.VERIFIED, "The gateway is idempotent")
    assert str(unit.author) == "orchestrator:boss-1"


def test_g4_another_seats_verification_of_the_task_lets_the_claim_of_its_author_through(seats):
    seats.orchestrator("boss-1").remember("The gateway is idempotent", level="project", citations=[Citation.test(TEST)])
    seats.saw(TEST)
    (unit,) = seats.agent().units(kind="fact")
    assert str(unit.author) == "orchestrator:boss-1"
    assert unit.level is Level.PROJECT


def test_g4_a_verification_of_another_task_does_not_let_a_claim_through(seats):
    seats.orchestrator().remember("The gateway is idempotent", level="project", citations=[Citation.test(TEST)])
    seats.saw(TEST, task="T-2")
    assert seats.agent().units(kind="fact") == []


def test_g23_a_claim_refused_for_its_actor_stays_refused_after_verify(seats):
    agent = seats.agent()
    assert agent.remember("The gateway is idempotent", level="project", citations=[Citation.test(TEST)]).rule == "G23"
    seats.saw(TEST)
    assert agent.units(kind="fact") == []


def test_a_claim_that_went_through_and_was_rejected_does_not_come_back_with_the_next_verify(seats):
    boss = seats.orchestrator()
    boss.remember("The gateway is idempotent", level="project", citations=[Citation.test(TEST)])
    (unit,) = seats.saw(TEST).units
    seats.human().reject(unit.id, "it is not")
    again = seats.saw(TEST)
    assert again.units == ()
    assert [item.status for item in boss.units(kind="fact")] == [Status.ARCHIVED]


def test_verifying_again_adds_nothing_to_an_accepted_claim(seats):
    boss = seats.orchestrator()
    boss.remember("The gateway is idempotent", level="project", citations=[Citation.test(TEST)])
    (unit,) = seats.saw(TEST).units
    mentions = boss.get(unit.id).mentions
    seats.saw(TEST, turned=False)
    (after,) = boss.units(kind="fact")
    assert (after.id, after.mentions, after.provenance) == (unit.id, mentions, unit.provenance)


def test_g4_verify_judges_the_units_of_the_task_and_names_the_rule_that_holds_the_rest_back(memory, seats):
    agent = seats.agent()
    tested = agent.remember("Tested fact about apples", citations=[Citation.test(TEST)]).unit
    bare = agent.remember("Bare fact about pears").unit
    pending = agent.remember("Pending fact about plums", citations=[Citation.test("never-ran")]).unit
    other = seats.agent(worktree="other").remember("Fact of another tree", citations=[Citation.test(TEST)]).unit
    promotion = agent.verify(True, tests=[TEST])
    assert [unit.id for unit in promotion.units] == [tested.id]
    assert {item.unit_id: item.rule for item in promotion.refused} == {bare.id: "S10.1", pending.id: "S10.2"}
    assert all(item.reason and item.receipt for item in promotion.refused)
    held = {event.subject: event.payload["rule"] for event in log_of(memory) if event.type is EventType.UNIT_HELD}
    assert held == {bare.id: "S10.1", pending.id: "S10.2"}
    assert seats.agent(worktree="other").get(other.id).status is Status.HYPOTHESIS
    assert agent.explain(bare.id).status_reason.endswith("(S10.1)")


def test_the_rule_that_holds_a_unit_back_is_logged_when_it_changes_and_returned_each_time(memory, seats):
    agent = seats.agent()
    bare = agent.remember("Bare fact about pears").unit

    def held():
        return [event.id for event in log_of(memory) if event.type is EventType.UNIT_HELD]

    (first,) = agent.verify(True).refused
    (again,) = seats.agent("coder-2").verify(True).refused
    assert held() == [first.receipt.event_id] == [again.receipt.event_id]
    assert (again.rule, again.reason, again.unit_id) == (first.rule, first.reason, first.unit_id)
    assert (first.receipt.duplicate, again.receipt.duplicate) == (False, True)
    agent.cite(bare.id, Citation.test("never-ran"))
    (other,) = agent.verify(True).refused
    assert (other.rule, other.receipt.duplicate) == ("S10.2", False)
    assert agent.verify(True).refused[0].receipt.event_id == other.receipt.event_id
    assert held() == [first.receipt.event_id, other.receipt.event_id]
    assert agent.explain(bare.id).status_reason.endswith("(S10.2)")


def test_verify_reads_the_events_it_judges_once_and_no_others(memory, store_kind, seats, monkeypatch):
    agent = seats.agent()
    agent.log("thought", "Try the pears first")
    agent.remember("Bare fact about pears")
    agent.recall("pears")
    read = []
    kind = memory._engine.store.read(type)  # What an act works with is one too.
    methods = {name: getattr(kind, name) for name in ("events_of_scope", "events_back")}

    def watch(name):
        def watched(self, *given, **part):
            found = list(methods[name](self, *given, **part))
            # When the task began is asked of its first event; the newest come first.
            read.extend(event.type for event in reversed(found) if "first" not in part)
            return iter(found) if name == "events_of_scope" else found

        monkeypatch.setattr(kind, name, watched)

    for name in methods:
        watch(name)
    agent.verify(False)  # What is learned of a success reads the log for itself.
    judged = [EventType.LOGGED, EventType.UNIT_REMEMBERED]
    if store_kind == "postgres":  # It asks in rounds, and runs the work again with the answers.
        read = list(dict.fromkeys(read))
    assert read == judged


def test_r2_a_visible_unit_that_waits_for_a_test_rises_when_it_passes(seats):
    waiting = seats.agent(task="T-2").remember(FACT, level="worktree", citations=[Citation.test(TEST)]).unit
    promotion = seats.agent(task="T-1").verify(True, tests=[TEST])
    assert [unit.id for unit in promotion.units] == [waiting.id]


@pytest.mark.parametrize("passed", [True, False])
def test_an_episode_can_be_left_for_later_and_is_the_same_then(memory, seats, passed):
    now, later = seats.agent(task="T-1"), seats.agent(task="T-2")
    for agent in (now, later):
        agent.log("plan", "Make checkout retry")
        agent.fail("pool timed out", approach="more tries")
    at_once = now.verify(passed, tests=[TEST])
    left = later.verify(passed, tests=[TEST], account=False)
    assert (left.episode_id, left.passed) == ("", passed)
    told = later.consolidate()
    assert (told.passed, told.receipt) == (passed, left.receipt)
    texts = [now.get(each.episode_id).content.partition("\n") for each in (at_once, told)]
    assert texts[0][1:] == texts[1][1:]
    assert later.consolidate() is None
    assert seats.agent(task="T-3").consolidate() is None


def test_a_consolidation_includes_entries_before_the_run_but_no_erased_ones(seats):
    agent, person = seats.agent(), seats.human()
    agent.log("plan", "Make checkout retry")
    agent.verify(True, tests=[TEST], account=False)
    agent.log("error", "ConnectionError: registry down")
    told = agent.consolidate()
    assert "registry" not in agent.get(told.episode_id).content
    person.erase(told.episode_id, "private")
    assert agent.consolidate() is None
    with pytest.raises(InvalidInput, match="An analysis belongs to the episode"):
        agent.verify(True, analysis={"critique": "fine"}, account=False)


@pytest.mark.parametrize("passed", [True, False])
def test_g9_an_episode_is_kept_for_success_and_for_failure(memory, seats, passed):
    agent = seats.agent()
    agent.log("plan", "Make checkout retry", data={"task_description": "Fix the checkout", "context": {"n": 1}})
    agent.log("error", "pool timed out")
    agent.log("decision", "Use hono instead of express")
    agent.log("result", "done", data={"files": 2})
    promotion = agent.verify(passed, tests=[TEST])
    episode = agent.get(promotion.episode_id)
    assert (episode.kind, episode.level, episode.status) == (Kind.EPISODE, Level.PROJECT, Status.HYPOTHESIS)
    assert episode.attributes["task"] == "Fix the checkout"
    assert episode.attributes["success"] is passed
    assert (episode.attributes["reward"] > 0.5) is passed
    assert json.loads(episode.attributes["input"]) == {"n": 1}
    assert json.loads(episode.attributes["output"]) == {"files": 2}
    assert episode.attributes["key_decisions"] == ["Use hono instead of express"]
    assert "pool timed out" in episode.attributes["critique"]
    logged = [event.id for event in log_of(memory) if event.type is EventType.LOGGED]
    assert {item.ref for item in episode.citations if item.kind == "log"} == set(logged)
    assert promotion.skill_id is None
    assert seats.agent(worktree="other", task="T-2").get(episode.id) == episode


def test_r2_a_task_has_one_episode_that_is_updated(seats):
    agent = seats.agent()
    agent.log("plan", "Make checkout retry")
    first, again, last = (agent.verify(passed).episode_id for passed in (True, True, False))
    assert first == again != last
    assert agent.get(first).superseded_by == last
    assert [unit.id for unit in agent.units(kind="episode") if unit.live] == [last]


def test_a_task_that_logged_nothing_can_be_verified(seats):
    agent = seats.agent()
    assert agent.get(agent.verify(True).episode_id).content == "Task T-1 succeeded."
    failed, tested = agent.verify(False), agent.verify(True, tests=[TEST])
    assert agent.get(failed.episode_id).content == "Task T-1 failed."
    assert agent.get(tested.episode_id).content == "Task T-1 succeeded.\n1 test passed."


def test_an_episode_marks_a_logged_thought_as_not_verified(seats):
    agent = seats.agent()
    guess = "The pool is exhausted before the retry"
    agent.log("thought", guess)
    agent.fail("TimeoutError: no answer", approach="raise the pool size")
    episode = agent.get(agent.verify(True, tests=[TEST]).episode_id)
    assert episode.status is Status.HYPOTHESIS
    assert episode.attributes["task"] == guess
    assert episode.content.splitlines() == [
        "Task T-1 succeeded.",
        f"Passed: {TEST}.",
        "Tried, and failed: “raise the pool size”.",
        "Passed after 1 error: “TimeoutError: no answer”.",
        f"Logged first, as thought and not verified: “{guess}”.",
    ]


def test_a_skill_of_undescribed_tasks_holds_only_their_code(seats):
    for task in ("T-1", "T-2"):
        agent = seats.agent(task=task)
        agent.log("thought", "The pool is exhausted before the retry", data={"code": "retry(3)"})
        promotion = agent.verify(run=GREEN)
    skill = agent.get(promotion.skill_id)
    assert skill.attributes["code"] == "retry(3)"
    assert "The pool is exhausted" not in skill.content


def test_a_skill_is_handed_out_elsewhere_and_no_task_is_asked_to_verify_it(seats):
    for task in ("T-1", "T-2", "T-3"):
        agent = seats.agent(task=task)
        agent.log("task", "Deploy the release")
        agent.log("command", "make push", data={"command": "make push", "exit": 0})
        promotion = agent.verify(run=GREEN)
        assert [refusal for refusal in promotion.refused if refusal.unit_id == promotion.skill_id] == []
    items = seats.agent("other", worktree="feature", task="T-9").recall("how do I deploy the release").items
    assert items[0].unit.id == promotion.skill_id
    assert items[0].label == "[SKILL, 3 successes]"


def test_an_episode_names_its_task_by_the_logged_goal(seats):
    agent = seats.agent()
    agent.log("thought", "The pool may be too small")
    agent.log("goal", "Make checkout retry")
    agent.log("error", "pool timed out")
    episode = agent.get(agent.verify(False, tests=[TEST]).episode_id)
    assert episode.attributes["task"] == "Make checkout retry"
    assert episode.content.splitlines() == [
        "Task T-1 (“Make checkout retry”) failed.",
        f"Failed: {TEST}.",
        "Failed with 1 error: “pool timed out”.",
    ]
    own = agent.get(agent.verify(True, analysis={"critique": "wrong layer"}).episode_id)
    assert own.content.endswith("Its own critique, not verified: wrong layer")


def test_a_task_with_big_log_entries_can_be_verified(seats):
    agent = seats.agent()
    agent.log("plan", "Start", data={"context": "x" * 600_000})
    agent.log("result", "End", data={"out": "y" * 600_000})
    for number in range(20):
        agent.log("decision", f"{number} " + "z" * 60_000)
    promotion = agent.verify(True)
    assert agent.get(promotion.episode_id).kind is Kind.EPISODE


def test_r14_the_callers_own_analysis_is_kept(seats):
    agent = seats.human()
    agent.log("plan", "Make checkout retry")
    analysis = Analysis(
        success=True,
        critique="PKCE flow missing",
        score=0.8,
        key_decisions=("Use hono",),
        result={"ok": True},
        is_repeatable=True,
        suggested_skill_name="retry-skill",
        extracted_code="retry(3)",
    )
    promotion = agent.verify(True, tests=[TEST], analysis=analysis)
    episode, skill = agent.get(promotion.episode_id), agent.get(promotion.skill_id)
    assert (episode.attributes["critique"], episode.attributes["reward"]) == ("PKCE flow missing", 0.8)
    assert episode.attributes["key_decisions"] == ["Use hono"]
    assert (skill.kind, skill.attributes["name"], skill.attributes["code"]) == (Kind.SKILL, "retry-skill", "retry(3)")
    assert (skill.status, skill.level) == (Status.HYPOTHESIS, Level.PROJECT)
    same = seats.agent(task="T-2").verify(True, analysis=replace(analysis, critique="short"))
    assert same.skill_id is None, "an agent's word makes no skill"
    assert agent.get(same.episode_id).attributes["critique"] == "short"


def test_g10_a_failure_promotes_no_skill(seats):
    promotion = seats.agent().verify(
        False, analysis={"success": False, "critique": "no", "score": 0.1, "is_repeatable": True}
    )
    assert promotion.skill_id is None
    assert seats.agent().units(kind="skill") == []


@pytest.mark.parametrize(
    "code", [None, "", "pytest -q", "# edit app/cart.py\ncd app && pytest -x", "git add -A; git commit -m x"]
)
def test_g10_without_a_step_worth_repeating_there_is_no_skill(seats, code):
    analysis = {"is_repeatable": True, "suggested_skill_name": "retry", "extracted_code": code}
    for task in ("T-1", "T-2", "T-3"):
        seat = seats.agent(task=task)
        seat.log("plan", "Make checkout retry")
        seat.log("command", code or "ls")
        assert seat.verify(True, tests=[TEST], analysis=analysis).skill_id is None
    assert seats.agent(task="T-4").verify(True, tests=[TEST]).skill_id is None
    assert seats.agent().units(kind="skill") == []


def test_g10_each_task_that_relied_on_a_skill_counts_for_or_against_it(memory, seats, clock):
    skill = seats.agent(task="T-0").remember("Peel apples before baking", kind="skill", level="worktree").unit
    for task, passed in (("T-1", True), ("T-2", False), ("T-3", False)):
        agent = seats.agent(task=task)
        agent.use(skill.id)
        for _ in range(2):
            seats.saw("test_pie", passed=passed, turned=False, task=task)
    after = agent.get(skill.id).attributes
    assert (after["successes"], after["failures"], after["success_rate"]) == (1, 2, 0.3333)
    clock.advance(days=91)
    assert memory.prune().units == (skill.id,)


def test_g10_the_same_skill_again_is_one_skill_with_one_more_success(seats):
    analysis = {"is_repeatable": True, "suggested_skill_name": "retry", "extracted_code": "retry(3)"}
    made = []
    for task in ("T-1", "T-2"):
        seat = seats.human(task=task)
        seat.log("plan", "Make checkout retry")
        made.append(seat.verify(True, analysis=analysis).skill_id)
    skill = seats.agent().get(made[0])
    assert made == [skill.id, skill.id]
    assert (skill.attributes["successes"], skill.attributes["success_rate"]) == (2, 1.0)
    assert not [
        event for event in seats.memory._engine.store.read(lambda r: list(r.events())) if "refused" in event.type
    ]


def test_r2_a_worktrees_verification_is_no_reusing_task(seats):
    unit = seats.agent().remember(FACT, level="worktree").unit
    worktree = seats.agent(task=None)
    worktree.recall(FACT)
    worktree.verify(True)
    assert seats.agent().get(unit.id).uses == 0


def test_the_key_of_a_claim_accepted_later_gives_its_unit(seats):
    boss = seats.orchestrator()
    claimed = {"level": "project", "citations": [Citation.test(TEST)], "key": "k-1"}
    assert isinstance(boss.remember(FACT, **claimed), Refused)
    (unit,) = seats.saw(TEST).units
    again = boss.remember(FACT, **claimed)
    assert again.unit.id == unit.id
    assert again.receipt.duplicate


def test_a_unit_folded_into_its_twin_brings_its_uses_along(memory, seats):
    boss = seats.orchestrator()
    narrow = verified(seats)
    used_by(seats, narrow, "A", "B")
    wide = seats.vouched(FACT, worktree="other").unit
    used_by(seats, wide, "B", "D")
    folded = boss.promote(narrow.id).unit
    assert (folded.id, folded.uses, folded.status) == (wide.id, 3, Status.PUBLISHED)
    used_by(seats, folded, "A")
    assert boss.get(folded.id).uses == 3
    assert memory.rebuild().same


def test_r6_a_fact_stated_in_two_sessions_is_one_unit_that_names_both(memory, seats):
    agent = seats.agent()
    first = agent.remember(FACT, session="s-1").unit
    agent.remember(FACT, session="s-2")
    again = agent.remember(FACT, session="s-1")
    assert [source.session for source in again.unit.provenance] == ["s-1", "s-2"]
    assert (again.unit.id, again.unit.session) == (first.id, "s-1")
    assert memory.rebuild().same


def test_g10_repeated_success_makes_a_skill_by_the_rules_alone(seats):
    for task in ("T-1", "T-2"):
        agent = seats.agent(task=task)
        agent.log("plan", "Add a retry to the checkout client")
        agent.log("tool", "ran it", data={"code": "retry(3)"})
        promotion = agent.verify(run=GREEN)
    assert agent.get(promotion.skill_id).attributes["code"] == "retry(3)"


@pytest.mark.parametrize(
    "analysis",
    [
        {"success": True},
        {"success": False, "score": 2},
        {"success": False, "score": "high"},
        {"success": False, "critique": 5},
        {"success": False, "key_decisions": [5]},
        {"success": False, "key_decisions": 5},
        {"success": False, "key_decisions": None},
        {"success": False, "unknown": 1},
        {"success": False, "result": {1, 2}},
        {"success": False, "result": float("nan")},
        {"success": False, "critique": "\ud800"},
        5,
        "good",
    ],
    ids=str,
)
def test_an_unusable_analysis_is_refused_and_changes_nothing(memory, seats, analysis):
    agent = seats.agent()
    agent.log("plan", "x")
    with pytest.raises((mnemarch.AnalystFailed, InvalidInput)) as caught:
        agent.verify(False, analysis=analysis)
    assert caught.value.hint
    assert memory.stats().events == 1


def test_verify_needs_a_task_or_worktree(seats):
    with pytest.raises(InvalidInput):
        seats.agent(worktree=None, task=None).verify(True)


# Promotion upward


def test_s10_3_only_published_knowledge_reaches_the_org(seats):
    unit = verified(seats)
    seats.orchestrator().promote(unit.id, to="project")
    assert seats.human().promote(unit.id, to="org").rule == "S10.3"
    used_by(seats, unit, "U-1", "U-2", "U-3")
    assert seats.orchestrator().promote(unit.id, to="org").rule == "G23"
    assert seats.human().promote(unit.id, to="org").unit.level is Level.ORG
    assert seats.agent(project="bank").get(unit.id).content == FACT
    with pytest.raises(NotFound):
        seats.agent(org="acme-corp").get(unit.id)


def test_a_promoted_unit_is_seen_by_those_it_now_reaches(seats):
    unit = verified(seats, level="task")
    other = seats.agent(worktree="feature", task="T-9")
    with pytest.raises(NotFound):
        other.get(unit.id)
    seats.orchestrator().promote(unit.id, to=Level.PROJECT)
    assert other.get(unit.id).id == unit.id
    assert recalled(other, "checkout retries") == [unit.id]
    assert unit.id not in {item.id for item in seats.agent().units(level="task")}


def test_a_promoted_unit_folds_into_its_twin_with_its_evidence_status_and_voices(seats):
    narrow = seats.agent("coder-2").remember(FACT, level="task").unit
    wide = seats.agent("coder-1", task="T-9").remember(FACT, level="worktree").unit
    assert narrow.id != wide.id
    seats.human().approve(narrow.id)
    folded = seats.orchestrator().promote(narrow.id, to="worktree")
    assert folded.merged
    assert folded.unit.id == wide.id
    assert Citation.human("alice") in folded.unit.citations
    voices = {str(source.actor) for source in folded.unit.provenance}
    assert {"agent:coder-1", "agent:coder-2"} <= voices
    assert "orchestrator:boss-1" not in voices, "who promotes has not said it"
    assert seats.agent().get(wide.id).status is Status.VERIFIED, "what was verified stays so"
    gone = seats.agent().get(narrow.id)
    assert (gone.status, gone.superseded_by) == (Status.DEPRECATED, wide.id)


def test_promotion_needs_a_level_that_the_seat_has(seats):
    unit = verified(seats)
    with pytest.raises(InvalidInput):
        seats.orchestrator(worktree=None, task=None).promote(unit.id, to="task")
    with pytest.raises(InvalidInput):
        seats.orchestrator().promote(unit.id, to="galaxy")


# Supersession


def test_g13_supersede_changes_both_units_and_writes_the_event(memory, seats, clock):
    old = verified(seats)
    new = verified(seats, "Delivery takes two days")
    clock.advance(hours=1)
    after = seats.orchestrator().supersede(new.id, old.id, "measured again", expected_version=old.version)
    gone = seats.agent().get(old.id)
    assert after.id == new.id
    assert (after.supersedes, after.version) == (old.id, new.version + 1)
    assert (gone.status, gone.superseded_by) == (Status.DEPRECATED, new.id)
    assert (gone.contradiction_note, gone.valid_to) == ("measured again", clock.now)
    assert gone.version == old.version + 1
    assert gone.content == old.content
    events = [event for event in log_of(memory) if event.type is EventType.UNIT_SUPERSEDED]
    assert [(event.subject, event.payload["new"], event.payload["reason"]) for event in events] == [
        (old.id, new.id, "measured again")
    ]
    explained = seats.agent().explain(old.id)
    assert explained.superseded_by == new.id
    assert "measured again" in explained.status_reason


def test_r8_supersession_notes_the_commit(memory, seats, tmp_path):
    root = code(tmp_path)
    old, new = verified(seats), verified(seats, "Delivery takes two days")
    boss = memory.seat(mnemarch.Actor.orchestrator("o"), seats.HOME, root=root)
    after = boss.supersede(new.id, old.id, "why")
    assert boss.get(old.id).valid_to_commit == after.valid_from_commit == git(root, "rev-parse", "HEAD")


def test_r5_the_second_successor_gets_a_conflict_that_carries_both(memory, seats):
    old = verified(seats)
    first = verified(seats, "Delivery takes two days")
    second = verified(seats, "Delivery takes nine hours")
    boss = seats.orchestrator()
    boss.supersede(first.id, old.id, "first", expected_version=old.version)
    for version in (old.version, None):
        before = log_of(memory)
        with pytest.raises(Conflict) as caught:
            boss.supersede(second.id, old.id, "second", expected_version=version)
        error = caught.value
        assert log_of(memory) == before
        assert error.hint
        assert error.actual_version == boss.get(old.id).version
        assert error.expected_version == version
        assert error.current.id in {old.id, first.id}
        assert error.proposed.id == second.id
    assert boss.get(second.id).status is Status.VERIFIED
    assert boss.get(old.id).superseded_by == first.id


def test_a_unit_cannot_be_superseded_by_itself_or_by_a_unit_that_is_gone(seats):
    old, new = verified(seats), verified(seats, "Delivery takes two days")
    boss = seats.orchestrator()
    with pytest.raises(InvalidInput):
        boss.supersede(old.id, old.id, "why")
    seats.system().archive(new.id, "old")
    with pytest.raises(InvalidInput):
        boss.supersede(new.id, old.id, "why")
    with pytest.raises(NotFound):
        boss.supersede("nobody", old.id, "why")
    with pytest.raises(NotFound):
        boss.supersede(old.id, "nobody", "why")
    assert boss.get(old.id).status is Status.VERIFIED


VERSIONED = {
    "cite": "agent",
    "validate": "human",
    "use": "agent",
    "approve": "human",
    "reject": "human",
    "supersede": "human",
    "erase": "human",
    "archive": "system",
    "promote": "orchestrator",
}


@pytest.mark.parametrize("verb", VERSIONED)
def test_r5_a_stale_version_gets_a_conflict_and_changes_nothing(memory, seats, verb):
    unit, other = verified(seats), verified(seats, "Delivery takes two days")
    before = log_of(memory)
    seat = seats.seat(VERSIONED[verb], "bob")

    def act(version):
        if verb == "promote":
            seat.promote(unit.id, to="project", expected_version=version)
        else:
            act_on(seat, verb, unit, other, expected_version=version)

    for stale in (unit.version - 1, unit.version + 1, 0):
        with pytest.raises(Conflict) as caught:
            act(stale)
        assert (caught.value.expected_version, caught.value.actual_version) == (stale, unit.version)
        assert caught.value.current.id == unit.id
        assert caught.value.hint
    assert log_of(memory) == before
    act(unit.version)
    # A use counts once its task succeeded; until then it changes nothing of the unit.
    assert seats.agent().get(unit.id).version == unit.version + (verb != "use")


def test_r5_a_stale_version_of_an_archived_unit_is_not_revived(seats):
    unit = verified(seats)
    archived = seats.system().archive(unit.id, "old")
    with pytest.raises(Conflict):
        seats.human().revive(unit.id, "back", expected_version=unit.version)
    assert seats.human().revive(unit.id, "back", expected_version=archived.version).status is Status.VERIFIED


# Disputes


def opposed(seats, level="worktree"):
    first = seats.agent("a").remember("Checkout retries 3 times", level=level).unit
    stored = seats.agent("b").remember("Checkout retries 5 times", level=level)
    return first, stored.unit, stored.conflicts[0]


def test_r6_resolving_a_conflict_replaces_the_loser_and_lowers_its_trust(memory, seats):
    first, second, conflict = opposed(seats)
    decided = seats.orchestrator().resolve(conflict.id, winner=second.id, reason="measured")
    assert (decided.id, decided.open, decided.winner) == (conflict.id, False, second.id)
    loser, winner = seats.agent().get(first.id), seats.agent().get(second.id)
    assert (loser.status, loser.superseded_by) == (Status.DEPRECATED, second.id)
    assert loser.confidence == pytest.approx(0.15)
    assert (winner.status, winner.supersedes) == (Status.HYPOTHESIS, first.id)
    assert seats.agent().conflicts() == []
    assert memory.stats().open_conflicts == 0


def test_a_conflict_is_resolved_once(seats):
    first, second, conflict = opposed(seats)
    boss = seats.orchestrator()
    boss.resolve(conflict.id, winner=second.id, reason="measured")
    with refused(Conflict):
        boss.resolve(conflict.id, winner=first.id, reason="no, mine")
    assert seats.agent().get(second.id).live


def test_a_false_contradiction_is_closed_and_both_sides_hold(memory, seats):
    first, second, conflict = opposed(seats)
    agent = seats.agent()
    labels = [item.label for item in agent.recall("how often does checkout retry").items]
    assert labels == ["[HYPOTHESIS] [CONTESTED]"] * 2
    decided = seats.human().resolve(conflict.id, both=True, reason="two services")
    assert (decided.id, decided.open, decided.winner) == (conflict.id, False, None)
    assert [agent.get(unit.id) for unit in (first, second)] == [first, second]
    assert agent.conflicts() == []
    items = agent.recall("how often does checkout retry").items
    assert {item.unit.id for item in items} == {first.id, second.id}
    assert not any("[CONTESTED]" in item.label for item in items)
    for unit in (first, second):
        (told,) = agent.explain(unit.id).disputes
        assert (told.id, told.open, told.winner) == (conflict.id, False, None)
        last = agent.history(unit.id)[-1]
        assert (last.type, last.payload["reason"]) == (EventType.LINK_RESOLVED, "two services")
    assert memory.rebuild().same
    assert agent.conflicts() == []


def test_resolving_for_both_takes_the_permission_to_resolve_and_no_winner(seats):
    first, second, conflict = opposed(seats)
    with pytest.raises(NotAllowed):
        seats.agent().resolve(conflict.id, both=True, reason="why")
    with pytest.raises(NotFound):
        seats.human(project="bank").resolve(conflict.id, both=True, reason="why")
    boss = seats.orchestrator()
    for wrong in ({}, {"winner": first.id, "both": True}, {"both": True, "expected_version": second.version}):
        with refused(InvalidInput):
            boss.resolve(conflict.id, reason="why", **wrong)
    assert [each.id for each in boss.conflicts()] == [conflict.id]


def test_two_near_duplicates_can_be_let_be(seats):
    seats.agent("a").remember("The checkout service retries failed payments with exponential backoff")
    seats.agent("b").remember("The checkout service will retry failed payments with exponential backoff")
    (proposal,) = seats.agent().proposals()
    seats.orchestrator().resolve(proposal.id, both=True, reason="one is the plan")
    assert seats.agent().proposals() == []
    assert [unit.live for unit in seats.agent().units()] == [True, True]


def test_a_conflict_is_resolved_for_one_of_its_sides(seats):
    _, _, conflict = opposed(seats)
    third = verified(seats, "Delivery takes two days")
    boss = seats.orchestrator()
    with pytest.raises(InvalidInput):
        boss.resolve(conflict.id, winner=third.id, reason="why")
    with pytest.raises(NotFound):
        boss.resolve("nothing", winner=third.id, reason="why")
    assert len(boss.conflicts()) == 1


def test_r3_a_foreign_conflict_does_not_exist_and_names_no_unit(seats):
    first, second, conflict = opposed(seats)
    stranger = seats.human(project="bank")
    own = stranger.remember(FACT, level="project", citations=[Citation.human("alice")]).unit
    for winner in (first.id, own.id, "anything"):
        with pytest.raises(NotFound) as caught:
            stranger.resolve(conflict.id, winner=winner, reason="why")
        told = str(caught.value)
        assert second.id not in told
        assert winner == first.id or first.id not in told


def test_superseding_one_side_of_a_conflict_by_the_other_resolves_it(seats):
    first, second, _ = opposed(seats)
    seats.orchestrator().supersede(second.id, first.id, "why")
    assert seats.agent().conflicts() == []


def test_g11_a_near_duplicate_is_proposed_for_merging_and_not_merged(seats):
    first = seats.agent("a").remember("The checkout service retries failed payments with exponential backoff").unit
    stored = seats.agent("b").remember("The checkout service will retry failed payments with exponential backoff")
    assert not stored.merged
    assert stored.unit.id != first.id
    assert stored.conflicts == ()
    proposals = seats.agent().proposals()
    assert [set(item.units) for item in proposals] == [{first.id, stored.unit.id}]
    seats.orchestrator().resolve(proposals[0].id, winner=first.id, reason="the same")
    assert seats.agent().proposals() == []
    assert seats.agent().get(stored.unit.id).superseded_by == first.id


# Leaving and coming back


def test_an_archived_unit_is_revived_with_its_former_status(seats):
    unit = used_by(seats, verified(seats), "U-1", "U-2", "U-3")
    archived = seats.system().archive(unit.id, "stale")
    assert (archived.status, archived.archived_from, archived.archive_reason) == (
        Status.ARCHIVED,
        Status.PUBLISHED,
        "stale",
    )
    assert seats.system().archive(unit.id, "again").version == archived.version
    revived = seats.human().revive(unit.id, "needed")
    assert (revived.status, revived.archived_from, revived.archive_reason) == (Status.PUBLISHED, None, None)
    with pytest.raises(InvalidInput):
        seats.human().revive(unit.id, "needed")


def test_a_rejected_unit_leaves_recall_and_an_approval_brings_it_back(seats):
    unit = verified(seats)
    rejected = seats.human().reject(unit.id, "wrong")
    assert rejected.status is Status.ARCHIVED
    assert "wrong" in rejected.archive_reason
    assert rejected.confidence == pytest.approx(unit.confidence - 0.4)
    assert seats.agent().recall("checkout retries").items == ()
    back = seats.human().approve(unit.id)
    assert back.status is Status.VERIFIED
    assert recalled(seats.agent(), "checkout retries") == [unit.id]


def test_an_orchestrators_approval_is_noted_but_verifies_nothing(memory, seats):
    unit = seats.agent().remember(FACT).unit
    after = seats.orchestrator().approve(unit.id)
    assert (after.status, after.citations) == (Status.HYPOTHESIS, ())
    assert log_of(memory)[-1].type is EventType.UNIT_APPROVED


# Reading


def test_get_returns_only_visible_units(seats):
    unit = seats.agent().remember(FACT).unit
    assert seats.human().get(unit.id) == unit
    for seat in (seats.agent(worktree="other"), seats.agent(worktree=None, task=None), seats.agent(org="acme-corp")):
        with refused(NotFound):
            seat.get(unit.id)
    with pytest.raises(NotFound):
        seats.agent().get("nobody")


def test_units_are_listed_newest_first_in_pages_by_every_filter(seats):
    agent = seats.agent()
    made = [agent.remember(f"Fact number {n} about thing{n}", domain="d" if n % 2 else "e").unit.id for n in range(7)]
    listed = []
    while page := agent.units(limit=3, after=listed[-1] if listed else None):
        assert len(page) <= 3
        listed += [unit.id for unit in page]
    assert listed == made[::-1]
    assert [unit.id for unit in agent.units(domain="d")] == made[5::-2]
    assert agent.units(limit=0) == []
    assert agent.units(kind="skill") == agent.units(status="published") == agent.units(level="org") == []
    assert len(agent.units(kind=Kind.FACT, status=Status.HYPOTHESIS, level=Level.WORKTREE)) == 7


def test_history_is_the_life_of_a_unit_oldest_first(seats):
    unit = verified(seats)
    seats.agent().use(unit.id)
    seats.system().archive(unit.id, "old")
    types = [str(event.type) for event in seats.agent().history(unit.id)]
    assert types == ["unit.remembered", "unit.approved", "unit.verified", "unit.used", "unit.archived"]
    with pytest.raises(NotFound):
        seats.agent(task="T-2", worktree="x").history(unit.id)


def test_explain_returns_provenance_citations_confidence_steps_validity_and_history(seats, clock):
    unit = verified(seats)
    told = seats.agent().explain(unit.id)
    assert told.unit.id == unit.id
    assert [str(source.actor) for source in told.provenance] == ["agent:coder-1"]
    assert told.citations == (("human:alice", True),)
    assert [step.split()[0] for step in told.why_confidence] == ["0.30", "0.70", "0.70"]
    assert "human_approved" in told.why_confidence[1]
    assert told.status_reason
    assert "2026-03-01" in told.valid
    assert str(told.history[0].type) == "unit.remembered"


def test_r3_the_history_of_a_wide_unit_quotes_nothing_of_a_narrow_one(seats):
    """A conflict's note holds words of both sides. A reader who can't see one side must not get them."""
    private = seats.orchestrator().remember('The vault code is "hunter-alpha-7"', level="task").unit
    seats.saw(TEST)
    wide = seats.orchestrator().remember(
        'The vault code is "tango-beta-9"', level="project", citations=[Citation.test(TEST)]
    )
    stranger = seats.agent(task="T-2")
    told = [
        *(event.body for event in stranger.history(wide.unit.id)),
        repr(stranger.explain(wide.unit.id)),
        repr(stranger.conflicts()),
        repr(stranger.recall("what is the vault code?")),
    ]
    assert wide.conflicts
    assert not [text for text in told if "hunter-alpha-7" in (text or "") or private.id in (text or "")]


def test_r1_changing_a_returned_value_changes_nothing_stored(memory, seats):
    agent = seats.agent()
    unit = agent.remember(FACT, attributes={"a": {"b": 1}}).unit
    for given in (unit, agent.get(unit.id), agent.units()[0], agent.recall("checkout").items[0].unit):
        try:
            given.attributes["leak"] = 1
            given.attributes["a"]["b"] = 2
        except TypeError:
            continue
    assert agent.get(unit.id).attributes == {"a": {"b": 1}}
    assert memory.rebuild().same


# Recall


def test_r2_hypotheses_come_after_trusted_units_and_are_labelled(seats):
    guess = seats.agent().remember("Checkout retries checkout retries checkout", level="worktree").unit
    known = verified(seats, "Sometimes the checkout client does its retries in the night")
    found = seats.agent().recall("checkout retries")
    assert [item.unit.id for item in found.items] == [known.id, guess.id]
    assert found.items[0].label == "[VERIFIED by alice]"
    assert found.items[1].label == "[HYPOTHESIS]"
    assert found.items[0].tier < found.items[1].tier


def test_r2_hypotheses_are_recalled_only_inside_the_task_or_worktree_that_made_them(seats):
    seats.agent().remember(FACT, level="task")
    seats.agent().remember("Checkout is slow", level="worktree")
    assert len(seats.agent().recall("checkout").items) == 2
    assert len(seats.agent(task="T-2").recall("checkout").items) == 1
    assert len(seats.agent(worktree="feature").recall("checkout").items) == 0


def test_as_of_looks_back(seats, clock):
    old = verified(seats)
    start = clock.now
    clock.advance(days=10)
    new = verified(seats, "Checkout retries with a backoff")
    seats.orchestrator().supersede(new.id, old.id, "measured")
    clock.advance(days=10)
    seat = seats.agent()
    assert recalled(seat, "checkout retries") == [new.id]
    then = seat.recall("checkout retries", as_of=start + timedelta(days=5))
    assert [item.unit.id for item in then.items] == [old.id]
    assert recalled(seat, "checkout retries", as_of=clock.now) == [new.id]
    assert seat.recall("checkout retries", as_of=start - timedelta(days=5)).items == ()


def test_a_unit_of_the_future_is_withheld_until_then(seats, clock):
    agent = seats.agent()
    unit = agent.remember("Checkout moves to Berlin", occurred_at=clock.now + timedelta(days=3)).unit
    found = agent.recall("checkout Berlin")
    assert [item.unit_id for item in found.withheld] == [unit.id]
    clock.advance(days=4)
    assert recalled(agent, "checkout Berlin") == [unit.id]


@pytest.mark.parametrize(
    "query", ["", "   ", "🧠🚀", "???", "\x00", "a" * 100_000, "' OR 1=1 --", 'AND OR NOT ( ) " *']
)
def test_any_query_is_answered(seats, query):
    unit = seats.agent().remember(FACT).unit
    found = seats.agent().recall(query)
    assert {item.unit.id for item in found.items} <= {unit.id}
    assert found.intent


def test_an_empty_query_finds_a_live_unit_among_many_archived_ones(seats):
    agent = seats.agent()
    alive = agent.remember("The last apple of the season").unit
    stored = agent.remember_many([Claim(content=f"Pear{n} is gone{n}") for n in range(45)])
    for item in stored:
        seats.system().archive(item.unit.id, "gone")
    assert recalled(agent, "") == [alive.id]


def test_an_empty_query_of_a_kind_finds_it_among_many_of_another(seats):
    agent = seats.agent()
    skill = agent.remember("Peel the apple first", kind="skill").unit
    agent.remember_many([Claim(content=f"Pear{n} is green{n}") for n in range(45)])
    assert recalled(agent, "", kinds=["skill"]) == [skill.id]


def test_recall_keeps_to_kinds_and_domain(seats):
    agent = seats.agent()
    fact = agent.remember("Apples are red", domain="fruit").unit
    skill = agent.remember("Apples are peeled by hand", kind="skill").unit
    other = agent.remember("Apples are phones", domain="tech").unit
    assert recalled(agent, "apples", kinds=["skill"]) == [skill.id]
    assert set(recalled(agent, "apples", domain="fruit")) == {fact.id, skill.id}
    assert set(recalled(agent, "apples")) == {fact.id, skill.id, other.id}
    assert len(agent.recall("apples", phase="verify").items) == 3


# Clocks


def test_a_clock_that_goes_back_loses_nothing_and_keeps_the_order(memory, seats, clock):
    agent = seats.agent()
    contents = []
    for number in range(6):
        contents.append(f"Fact about thing{number}")
        agent.log("thought", contents[-1])
        agent.remember(contents[-1])
        clock.advance(hours=-1)
    assert [event.payload["text"] for event in log_of(memory) if event.type is EventType.LOGGED] == contents
    assert [unit.content for unit in agent.units()] == contents[::-1]
    assert memory.audit().ok
    assert memory.rebuild().same


def test_a_new_unit_is_recalled_also_after_the_clock_went_back(seats, clock):
    agent = seats.agent()
    unit = agent.remember(FACT).unit
    clock.advance(hours=-2)
    assert recalled(agent, "checkout retries") == [unit.id]


def test_a_unit_superseded_while_the_clock_was_back_is_not_recalled(seats, clock):
    old = verified(seats)
    new = verified(seats, "Checkout retries with a backoff")
    clock.advance(hours=-5)
    seats.orchestrator().supersede(new.id, old.id, "measured")
    clock.advance(hours=10)
    assert recalled(seats.agent(), "checkout retries") == [new.id]


# The operator


def test_stats_count_units_events_projects_and_open_conflicts(memory, seats):
    assert memory.stats().events == memory.stats().units == 0
    verified(seats, "Delivery takes a day")
    opposed(seats)
    verified(seats, "In the bank", project="bank")
    stats = memory.stats()
    assert (stats.units, stats.projects, stats.open_conflicts) == (4, 2, 1)
    assert stats.events == len(log_of(memory))
    assert stats.by_status == {"verified": 2, "hypothesis": 2}
    assert stats.by_kind == {"fact": 4}
    assert stats.by_level == {"worktree": 4}


def test_audit_walks_every_entry_and_tells_progress(memory, seats):
    seats.agent().log_many([("thought", f"n{n}") for n in range(2_500)])
    seen = []
    check = memory.audit(progress=seen.append)
    assert (check.ok, check.events, check.first_broken) == (True, 2_500, None)
    assert seen == [1_000, 2_000]


def test_an_import_into_a_diverged_log_is_a_conflict(disk, seats_of, tmp_path, clock):
    """In files there is no conflict: a clone writes a stream of its own."""
    seats_of(disk).agent().log("thought", "here")
    with mnemarch.open(":memory:", clock=clock) as other:
        seats_of(other).agent().log("thought", "there")
        other.export(tmp_path / "a.jsonl")
    with pytest.raises(Conflict) as caught:
        disk.import_(tmp_path / "a.jsonl")
    assert "2" in caught.value.message
    assert disk.stats().events == 1


WRONG_LINES = {
    "no json": lambda record: "not json",
    "cut": lambda record: json.dumps(record)[:-20],
    "a list": lambda record: "[]",
    "empty": lambda record: "",
} | {
    f"{field} = {new!r}": (lambda record, field=field, new=new: json.dumps(record | {field: new}))
    for field, news in {
        "body": ['{"kind":"thought","text":"forged"}', 5, {"a": 1}, [], "\ud800"],
        "seq": [1, 99, "3", None, 2.5, [], -1],
        "actor": ["human:alice", "robot:x", "nobody", None, 5],
        "scope": [
            ["acme", "bank", None, None],
            ["acme"],
            None,
            "acme",
            {"a": 1},
            [[], 1, 2, 3],
            ["a", None, "w", None],
        ],
        "type": ["unit.held", "nonsense", None, 5, []],
        "occurred_at": [0, "0", None, 10**30, 1e300, 2.5],
        "recorded_at": [0, None, -(10**30), []],
        "session": ["another", 5, [], "\ud800"],
        "subject": ["another", 5, {}],
        "key": ["another", 5, []],
        "salt": ["00" * 16, None, "zz", 5],
        "payload_hash": ["00" * 32, None, "", 5],
        "hash": ["00" * 32, None, "xyz"],
        "id": ["another", None, 5, []],
        "org": ["another", None, 5, ""],
        "project": ["another", None, 5, []],
    }.items()
    for new in news
}


def test_a_changed_line_is_refused_and_named(tmp_path, clock):
    with mnemarch.open(":memory:", clock=clock) as source:
        seat = source.seat(mnemarch.Actor.agent("a"), Scope(org="acme", project="shop", task="T-1"))
        for number in range(4):
            seat.log("thought", f"n{number}")
        source.export(tmp_path / "a.jsonl")
    whole = (tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()
    for target in (":memory:", tmp_path / "home"):
        with mnemarch.open(target, clock=clock) as memory:
            for change, wrong in WRONG_LINES.items():
                lines = [*whole[:3], wrong(json.loads(whole[3])), *whole[4:]]
                (tmp_path / "b.jsonl").write_bytes("\n".join(lines).encode("utf-8", "surrogatepass") + b"\n")
                with pytest.raises((InvalidInput, Conflict)) as caught:
                    memory.import_(tmp_path / "b.jsonl")
                assert "ine 4" in caught.value.message, change
                assert caught.value.hint
                assert memory.stats().events == 0, change


@pytest.mark.parametrize("content", [b"", b"hello\n", b'{"mnemarch": "export"}\n', b"\xff\xfe\n", b"[]\n", b"5\n"])
def test_a_file_that_is_no_export_is_refused(memory, tmp_path, content):
    (tmp_path / "a.jsonl").write_bytes(content)
    with refused(InvalidInput):
        memory.import_(tmp_path / "a.jsonl")
    with pytest.raises(InvalidInput):
        memory.import_(tmp_path / "missing.jsonl")
    with pytest.raises(InvalidInput):
        memory.import_(tmp_path)


def test_a_newer_export_is_incompatible(memory, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"mnemarch": "export", "version": 999}\n', encoding="utf-8")
    with pytest.raises(mnemarch.Incompatible):
        memory.import_(tmp_path / "a.jsonl")


def test_an_export_that_finds_no_room_names_its_own_file(tmp_path):
    """A limit on the size of files stands for a full disk."""
    target, limits = tmp_path / "log.jsonl", resource.getrlimit(resource.RLIMIT_FSIZE)
    with mnemarch.open(tmp_path) as memory:
        seat = memory.seat(mnemarch.Actor.human("ada"), Scope(project="shop"))
        seat.log("note", "x" * 9_000)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, limits[1]))
        try:
            with pytest.raises(mnemarch.StoreUnavailable) as failed:
                memory.export(target)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert failed.value.message == f"{target} can't be written: File too large."
    assert not target.exists()


def test_export_and_backup_overwrite_nothing_and_say_what_is_wrong(memory, seats, tmp_path):
    seats.agent().log("thought", "x")
    taken = tmp_path / "taken"
    taken.write_text("precious", encoding="utf-8")
    for call in (memory.export, memory.backup):
        for path in (taken, tmp_path / "no" / "folder" / "a"):
            with refused(InvalidInput):
                call(path)
    assert taken.read_text(encoding="utf-8") == "precious"
    with pytest.raises(mnemarch.MnemarchError):
        memory.export("/proc/mnemarch-can-not-write-here.jsonl")


def test_a_backup_opens_and_audits_clean(disk, clock, tmp_path):
    seat = disk.seat(mnemarch.Actor.agent("a"), Scope(project="p", task="t"))
    unit = seat.remember(FACT).unit
    place = tmp_path / "restored" / ".mnemarch"
    place.mkdir(parents=True)
    disk.backup(place / "memory.db")
    seat.log("thought", "after the backup")
    with mnemarch.open(tmp_path / "restored", clock=clock) as copy:
        assert copy.audit() == mnemarch.model.outcome.LogCheck(ok=True, events=1)
        restored = copy.seat(mnemarch.Actor.agent("a"), Scope(project="p", task="t"))
        assert restored.get(unit.id) == unit
        assert recalled(restored, "checkout retries") == [unit.id]
        restored.log("thought", "life goes on")
        assert copy.rebuild().same
    assert os.listdir(place)


def test_a_memory_without_a_file_has_no_backup(tmp_path):
    with mnemarch.open(":memory:") as memory, pytest.raises(InvalidInput) as caught:
        memory.backup(tmp_path / "a.db")
    assert caught.value.hint


def test_g24_prune_lists_old_worthless_units_and_archives_them_when_told(memory, seats, clock):
    agent = seats.agent()
    for number in range(8):
        clock.advance(days=100 if number == 7 else 0, minutes=1)
        again = seats.agent(task=f"T-{number}")
        again.log("goal", "Make checkout retry")
        again.verify(False)
    before = memory.stats().events
    shown = memory.prune()
    assert shown.dry_run
    assert (len(shown.units), shown.kept) == (3, 5)
    assert memory.stats().events == before
    done = memory.prune(dry_run=False)
    assert (done.units, done.kept, done.dry_run) == (shown.units, 5, False)
    for unit_id in done.units:
        unit = agent.get(unit_id)
        assert unit.status is Status.ARCHIVED
        assert "G24" in unit.archive_reason
    assert memory.prune().units == ()
    assert memory.audit().ok
    assert memory.rebuild().same


@pytest.mark.parametrize("reward", ["bad", None, [], {"a": 1}, "nan"])
def test_one_odd_unit_does_not_stop_retention(memory, seats, clock, reward):
    seats.agent().remember("Odd episode", kind="episode", attributes={"reward": reward})
    seats.agent().remember("Odd skill", kind="skill", attributes={"success_rate": reward})
    clock.advance(days=200)
    assert memory.prune(dry_run=False).dry_run is False


def test_r13_prune_never_touches_decisions_or_evidence(memory, seats, clock):
    attributes = {"reward": 0.0, "success_rate": 0.0}
    for kind in Kind:
        if kind not in {Kind.EPISODE, Kind.SKILL, *NOT_CLAIMED}:
            seats.agent().remember(f"Old {kind}", kind=kind, attributes=attributes)
    desk = seats.human().decisions
    reason = {"type": "other", "summary": "why"}
    desk.commit(desk.propose("Old decision", reason=reason, snapshots=["Old evidence"]))
    desk.add_policy("Old policy")
    clock.advance(days=1000)
    assert memory.prune(dry_run=False).units == ()


# Bad input


def code(tmp_path):
    """A repository with a function, and a file that is no text."""
    root = repository(tmp_path / "repo", a__py="def retry():\n    return 3\n")
    (root / "binary").write_bytes(b"\xff\xfe\x00")
    return str(root)


def nested(depth):
    deep = []
    for _ in range(depth):
        deep = [deep]
    return {"deep": deep}


def circular():
    data = {}
    data["self"] = data
    return data


SURROGATE = "lone \ud800 surrogate"
NAIVE = datetime(2026, 1, 1)
OUT_OF_RANGE = datetime.max.replace(tzinfo=timezone(timedelta(hours=-14)))
NO_NUMBER, ENDLESS = float("nan"), float("inf")
TOO_LONG = "x" * 65_537
# Arguments that are right, for each verb; `unit` stands for the id of a unit.
RIGHT = {
    "log": {"kind": "thought", "text": "x"},
    "remember": {"content": "Some text"},
    "verify": {"passed": True},
    "supersede": {"new_id": "unit", "old_id": "x"},
    "recall": {"query": "x"},
    **{key: {"unit_id": "unit"} for key in ("cite", "validate", "promote", "reject", "archive", "revive", "erase")},
}
# Values that are wrong, for each verb and argument.
WRONG = {
    ("log", "text"): ["", " \n\t\u3000", TOO_LONG, "가" * 30_000, SURROGATE, None, b"x"],
    ("log", "kind"): ["", 5, SURROGATE],
    ("log", "occurred_at"): [NAIVE, "2026-01-01", OUT_OF_RANGE],
    ("log", "data"): [
        *({"n": wrong} for wrong in (NO_NUMBER, [ENDLESS], {1, 2}, b"x", SURROGATE, "x" * 1_100_000, 10**5000)),
        *([1, 2], "abc", 5, {SURROGATE: 1}, {(1, 2): 1}, {1: 1, "a": 2}, nested(100_000), circular()),
    ],
    ("log", "key"): ["", "k" * 513, 5, SURROGATE],
    ("log", "session"): [5, ["a"], SURROGATE, "  "],
    ("log_many", "entries"): [["x"], [("thought",)], [{"kind": "a", "text": "b", "more": 1}], [5]],
    ("remember", "content"): ["", " \n ", TOO_LONG, SURROGATE, 5],
    ("remember", "kind"): ["facet", None],
    ("remember", "level"): ["galaxy", 9],
    ("remember", "domain"): ["", SURROGATE],
    ("remember", "importance"): [1.5, NO_NUMBER, "high"],
    ("remember", "occurred_at"): [NAIVE],
    ("remember", "citations"): [
        *(["test:a"], 5, None, Citation.test("a")),
        *([Citation.commit("0" * 40)], [Citation.log("nothing")], [Citation.file("../../etc/passwd")]),
    ],
    ("remember", "attributes"): [{"n": NO_NUMBER}, "abc", [1]],
    ("remember", "key"): ["k" * 513],
    ("remember", "session"): [["a"]],
    ("remember_many", "claims"): [["Some text"], [None]],
    ("cite", "citation"): [
        *("test:a", None, Citation.log("no-such-event")),
        *(Citation.commit(wrong) for wrong in ("0" * 40, "--help", "HEAD\x00", "🧠")),
        *(Citation.file(wrong) for wrong in ("missing.py", ".", "../outside.py", "/etc/passwd")),
        *(Citation.file(wrong) for wrong in ("a\x00b.py", "x" * 10_000, "binary")),
        *(Citation.file("a.py", (1, 99)), Citation.symbol("a.py", "nothing"), Citation.symbol("missing.py", "retry")),
    ],
    ("validate", "signal"): ["tests_pased", None],
    ("verify", "passed"): ["yes", 1],
    ("verify", "tests"): ["tests/test_a.py", [""], [5], None, [SURROGATE]],
    ("verify", "commit"): ["0" * 40, "", "HEAD\x00"],
    ("promote", "to"): ["galaxy", None],
    ("reject", "reason"): ["", "x" * 5_000],
    ("archive", "reason"): ["  "],
    ("revive", "reason"): [None],
    ("erase", "reason"): [SURROGATE, f"Remove: {FACT}"],
    ("supersede", "reason"): [""],
    ("recall", "query"): [5, None],
    ("recall", "k"): [-1, 10**9, "3", True],
    ("recall", "kinds"): [["facet"]],
    ("recall", "as_of"): [NAIVE],
    ("units", "limit"): [-1, 10**9],
    ("units", "kind"): ["facet"],
    ("units", "status"): ["alive"],
    ("units", "level"): ["galaxy"],
}


@pytest.mark.parametrize(("verb", "name"), WRONG)
def test_bad_input_is_refused_with_a_hint_and_changes_nothing(memory, seats, tmp_path, verb, name):
    root = code(tmp_path)
    unit = memory.seat(mnemarch.Actor.agent("a"), seats.HOME, root=root).remember(FACT).unit
    right = {key: unit.id if value == "unit" else value for key, value in RIGHT.get(verb, {}).items()}
    seat = memory.seat(mnemarch.Actor.human("alice"), seats.HOME, root=root)
    before = log_of(memory)
    for number, wrong in enumerate(WRONG[verb, name]):
        with refused(InvalidInput):
            getattr(seat, verb)(**(right | {name: wrong}))
        assert log_of(memory) == before, number


ODD_IDS = ["", " ", SURROGATE, "nobody", "x" * 100_000, "nul\x00", None, 5, [], b"x", 10**30]


@pytest.mark.parametrize(
    "verb",
    ["get", "history", "explain", "use", "approve", "units_after", "cite", "promote", "resolve", "supersede", "erase"],
)
def test_an_odd_id_is_not_found_or_refused_with_a_hint(memory, seats, verb):
    unit = seats.agent().remember(FACT).unit
    seat = seats.human()
    before = log_of(memory)
    calls = {
        "units_after": lambda odd: seat.units(after=odd),
        "cite": lambda odd: seat.cite(odd, Citation.test("t")),
        "promote": lambda odd: seat.promote(odd, to="project"),
        "resolve": lambda odd: seat.resolve(odd, winner=unit.id, reason="why"),
        "supersede": lambda odd: seat.supersede(unit.id, odd, "why"),
        "erase": lambda odd: seat.erase(odd, "why"),
    }
    for odd in ODD_IDS:
        try:
            calls.get(verb, getattr(seat, verb, None))(odd)
        except (NotFound, InvalidInput) as error:
            assert error.hint  # noqa: PT017 - both a page and a refusal are right answers
        else:
            assert verb == "units_after", odd
        assert log_of(memory) == before, odd


@pytest.mark.parametrize("domain", [SURROGATE, 5, [], "", "nul\x00"], ids=repr)
@pytest.mark.parametrize("verb", ["units", "recall"])
def test_an_odd_domain_finds_nothing_or_is_refused_with_a_hint(seats, domain, verb):
    seats.agent().remember(FACT)
    try:
        found = (
            seats.agent().units(domain=domain) if verb == "units" else seats.agent().recall("checkout", domain=domain)
        )
    except InvalidInput as error:
        assert error.hint  # noqa: PT017 - both answers are right
    else:
        assert verb == "recall" or found == []


def test_a_query_that_is_no_unicode_is_answered_or_refused_in_words(seats):
    seats.agent().remember(FACT)
    try:
        assert seats.agent().recall(f"checkout {SURROGATE}").items
    except InvalidInput as error:
        assert error.hint  # noqa: PT017 - both answers are right


@pytest.mark.parametrize(
    ("actor", "scope", "more"),
    [
        ("agent:a", Scope(project="p"), {}),
        (mnemarch.Actor.agent("a"), "p", {}),
        (None, None, {}),
        (mnemarch.Actor.agent("a"), Scope(project="p"), {"session": ""}),
        (mnemarch.Actor.agent("a"), Scope(project="p"), {"session": 5}),
        (mnemarch.Actor.agent("a"), Scope(project="p"), {"session": SURROGATE}),
    ],
    ids=str,
)
def test_a_seat_needs_an_actor_and_a_scope(memory, actor, scope, more):
    with refused(InvalidInput):
        memory.seat(actor, scope, **more)


@pytest.mark.parametrize(
    "target",
    ["", " ", "postgresql://[host/db", "qdrant://x", "redis://h", "sqlite:///x.db", "File:///x", 5, b"folder"],
)
def test_a_target_that_cannot_be_opened_is_refused_with_a_hint(target):
    with refused(InvalidInput):
        mnemarch.open(target)


def test_a_file_is_no_memory(tmp_path):
    (tmp_path / "a.txt").write_text("x", encoding="utf-8")
    with pytest.raises(InvalidInput):
        mnemarch.open(tmp_path / "a.txt")


def test_the_limit_of_a_text_is_configurable_and_exact(clock):
    config = config_from({"limits": {"text_bytes_max": 10, "data_bytes_max": 1000}})
    with mnemarch.open(":memory:", clock=clock, config=config) as memory:
        seat = memory.seat(mnemarch.Actor.agent("a"), Scope(project="p", task="t"))
        seat.log("a", "x" * 10)
        seat.log("a", "가나다x")
        for text in ("x" * 11, "가나다xx"):
            with pytest.raises(InvalidInput):
                seat.log("a", text)
        with pytest.raises(InvalidInput):
            seat.log("a", "x", data={"n": "가" * 900})
        seat.log("a", "x", data={"n": "가" * 200})
        assert memory.stats().events == 3


def test_the_largest_text_allowed_is_remembered_and_found(seats):
    text = ("lorem ipsum dolor sit amet " * 3000)[:65_530] + " zebra"
    unit = seats.agent().remember(text).unit
    assert unit.content == text
    assert seats.agent().recall("zebra").items[0].unit.id == unit.id

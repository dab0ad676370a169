"""A rejected or superseded text does not come back as if it were new (R4, R5, R6, R8)."""

import re
from pathlib import Path

import pytest

from fixtures.cases import cases
from mnemarch import Citation, EventType, InvalidInput, Refused, Scope, Status
from mnemarch.units.finding import is_reworded

FACT = "Admins may skip the second factor"
TEST = "tests/test_login.py::test_second_factor"
PASSED = [Citation.test(TEST)]


@pytest.fixture
def rejected(seats):
    """A unit that an agent claimed, a test raised to the project, another agent recalled, and a person rejected."""
    seats.agent().remember(FACT, citations=PASSED)
    (unit,) = seats.saw(TEST).units
    assert seats.agent(worktree="w2", task="T-2").recall("second factor").items
    return seats.human().reject(unit.id, "never")


@pytest.mark.parametrize(
    "claimed",
    [{}, {"citations": PASSED}, {"domain": "coding"}, {"kind": "semantic"}, {"kind": "episode"}, {"level": "worktree"}],
    ids=str,
)
def test_r5_an_agent_cannot_restate_what_a_person_rejected(seats, rejected, claimed):
    for seat in (seats.agent(), seats.agent(worktree="w2", task="T-2")):
        refused = seat.remember("admins may skip the second factor.", **claimed)
        assert isinstance(refused, Refused)
        assert refused.rule == "R5"
        assert "human:alice rejected this" in refused.reason
        assert "never" in refused.reason
        assert f"approve unit {rejected.id}" in refused.reason
        assert not [item for item in seat.recall("second factor").items if item.unit.content.startswith("Admins")]
    assert [unit.id for unit in seats.human().units() if unit.content == FACT] == [rejected.id]


def test_r5_an_orchestrator_cannot_restate_at_project_scope_what_a_person_rejected(seats, rejected):
    refused = seats.orchestrator().remember(FACT, level="project", citations=PASSED)
    assert (refused.rule, seats.agent().get(rejected.id).status) == ("R5", Status.ARCHIVED)


def test_a_refused_repetition_stays_in_the_log_and_its_key_gives_the_same_answer(seats, rejected):
    agent = seats.agent()
    refused = agent.remember(FACT, citations=PASSED, key="k")
    assert [event.type for event in seats.events() if event.key] == [EventType.CLAIM_REFUSED]
    assert agent.remember(FACT, citations=PASSED, key="k").rule == refused.rule


def test_an_approval_revives_the_rejected_unit_and_allows_restating_it(seats, rejected):
    seats.human("bob").approve(rejected.id)
    again = seats.agent().remember(FACT, citations=PASSED)
    assert (again.unit.id, again.merged, again.unit.status) == (rejected.id, True, Status.VERIFIED)


def test_r5_a_person_who_restates_a_rejected_unit_approves_it(memory, seats, rejected):
    bob = seats.human("bob")
    again = bob.remember(FACT, level="project", citations=[Citation.human("bob")])
    assert (again.unit.id, again.merged, again.unit.status) == (rejected.id, True, Status.VERIFIED)
    types = [event.type for event in bob.history(rejected.id)]
    assert types.index(EventType.UNIT_REJECTED) < types.index(EventType.UNIT_APPROVED)
    assert memory.rebuild().same


def test_a_person_may_restate_a_rejected_unit_at_a_wider_level(seats, rejected):
    bob = seats.human("bob")
    wider = bob.remember(FACT, level="org", citations=[Citation.human("bob")])
    assert not wider.merged
    assert bob.get(rejected.id).status is Status.ARCHIVED


def test_r5_a_test_does_not_verify_a_hypothesis_with_a_rejected_text(memory, seats):
    there, here = seats.agent(worktree="w2", task="T-2"), seats.agent()
    held = there.remember(FACT, citations=PASSED).unit
    human = seats.human()
    wide = seats.vouched(FACT).unit
    human.reject(wide.id, "never")
    judged = there.verify(True, tests=[TEST])
    assert judged.units == ()
    assert {item.unit_id: item.rule for item in judged.refused} == {held.id: "R5"}
    assert there.cite(held.id, Citation.test("another")).status is Status.HYPOTHESIS
    here.verify(True, tests=["another"])
    assert there.cite(held.id, Citation.test("another")).status is Status.HYPOTHESIS
    assert f"human:alice rejected unit {wide.id}" in there.explain(held.id).status_reason
    assert seats.human(worktree="w2", task="T-2").approve(held.id).status is Status.VERIFIED
    assert memory.rebuild().same


def test_r5_a_text_rejected_at_project_scope_is_not_promoted_there_from_another_worktree(seats):
    there = {"worktree": "w2", "task": "T-2"}
    agent, boss = seats.agent(**there), seats.orchestrator(**there)
    narrow = seats.human("bob", **there).approve(agent.remember(FACT).unit.id)
    human = seats.human()
    wide = seats.vouched(FACT).unit
    human.reject(wide.id, "never")
    refused = boss.promote(narrow.id)
    assert isinstance(refused, Refused)
    assert refused.rule == "R5"
    assert wide.id in refused.reason
    seats.human(**there).approve(narrow.id)
    assert boss.promote(narrow.id).unit.scope == Scope(org="acme", project="shop")


def test_an_archived_text_may_be_restated(seats):
    agent = seats.agent()
    first = agent.remember(FACT).unit
    seats.system().archive(first.id, "its code is gone")
    again = agent.remember(FACT)
    assert (again.unit.live, again.merged, again.conflicts) == (True, False, ())


def test_a_rejection_does_not_bind_another_project(seats, rejected):
    assert seats.agent(project="bank").remember(FACT).unit.live


def test_r16_a_text_erased_after_its_rejection_may_be_restated(seats, rejected):
    seats.human().erase(rejected.id, "privacy")
    assert seats.agent().remember(FACT).unit.live


def test_a_waiting_claim_whose_text_is_rejected_meanwhile_stays_refused_also_by_its_key(seats):
    boss, human = seats.orchestrator(), seats.human()
    claimed = {"level": "project", "citations": PASSED, "key": "k"}
    assert boss.remember(FACT, **claimed).rule == "G23.validation"
    wide = seats.vouched(FACT).unit
    human.reject(wide.id, "never")
    judged = boss.verify(True, tests=[TEST])
    assert [item.rule for item in judged.refused] == ["R5"]
    assert boss.remember(FACT, **claimed).rule == "R5"
    assert boss.verify(True, tests=[TEST]).refused == ()


def test_a_rejected_skill_is_not_made_again_by_the_next_success(seats):
    analysis = {"success": True, "critique": "worked", "score": 0.9, "is_repeatable": True, "suggested_skill_name": "s"}
    analysis["extracted_code"] = "vault rotate"
    agent = seats.human()
    agent.log("task", "Rotate the keys")
    skill = agent.verify(True, tests=[TEST], analysis=analysis).skill_id
    seats.human().reject(skill, "dangerous")
    assert agent.verify(True, tests=[TEST], analysis=analysis).skill_id is None


# Superseded

OLD, NEW = "We deploy with Jenkins from the old box", "Releases go out through GitHub Actions pipelines"


@pytest.fixture
def replaced(seats):
    """What held in the project, handed out in another worktree, and what a person put in its place."""
    human = seats.human()
    old = seats.vouched(OLD).unit
    assert seats.agent(worktree="w2", task="T-2").recall("how do we deploy").items
    new = seats.vouched(NEW).unit
    human.supersede(new.id, old.id, "moved")
    return human.get(old.id), human.get(new.id)


def test_r8_a_restated_superseded_text_contradicts_its_successor(memory, seats, replaced):
    old, new = replaced
    agent = seats.agent(worktree="w2", task="T-2")
    seats.saw(TEST, worktree="w2", task="T-2")
    again = agent.remember(OLD, citations=PASSED)
    (conflict,) = again.conflicts
    assert set(conflict.units) == {again.unit.id, new.id}
    assert old.id in conflict.reason
    assert [dispute.id for dispute in agent.conflicts()] == [conflict.id]
    labels = {item.unit.id: item.label for item in agent.recall("deploy releases jenkins pipelines").items}
    assert labels[new.id] == "[VERIFIED by alice] [CONTESTED]"
    assert re.fullmatch(r"\[VERIFIED by test_second_factor( in w2)?\] \[CONTESTED\]", labels[again.unit.id])
    assert [dispute.id for dispute in agent.explain(again.unit.id).disputes] == [conflict.id]
    assert memory.rebuild().same


def test_r8_the_conflict_is_with_the_last_successor_of_the_chain(seats, replaced):
    human = seats.human()
    last = seats.vouched("Argo rolls everything out").unit
    human.supersede(last.id, replaced[1].id, "moved on")
    (conflict,) = seats.agent().remember(OLD).conflicts
    assert last.id in conflict.units


def test_r8_moving_back_resolves_the_conflict_for_the_restated_unit(seats, replaced):
    human = seats.human()
    again = seats.vouched(OLD)
    human.resolve(again.conflicts[0].id, winner=again.unit.id, reason="moved back")
    assert human.conflicts() == []
    assert human.get(replaced[1].id).superseded_by == again.unit.id


def test_r6_an_echo_of_a_unit_superseded_meanwhile_is_a_mention(seats, replaced):
    agent = seats.agent(worktree="w2", task="T-2")
    again = agent.remember(OLD)
    assert (again.unit.id, again.merged, again.unit.status) == (replaced[0].id, True, Status.DEPRECATED)
    assert again.unit.superseded_by == replaced[1].id
    assert agent.conflicts() == []


def test_r8_a_promoted_unit_contradicts_the_successor_of_its_superseded_text(seats, replaced):
    there = {"worktree": "w3", "task": "T-3"}
    unit = seats.human(**there).approve(seats.agent(**there).remember(OLD).unit.id)
    promoted = seats.orchestrator(**there).promote(unit.id)
    assert [set(dispute.units) for dispute in promoted.conflicts] == [{unit.id, replaced[1].id}]


def test_a_text_that_was_merged_away_and_comes_back_is_proposed_for_merging_again(seats):
    human = seats.human()
    first = seats.vouched("The checkout service retries failed payments with exponential backoff").unit
    second = seats.vouched("The checkout service will retry failed payments with exponential backoff")
    (proposal,) = human.proposals()
    assert second.unit.id in proposal.units
    human.resolve(proposal.id, winner=second.unit.id, reason="one will do")
    again = seats.vouched(first.content)
    assert again.conflicts == ()
    assert [set(dispute.units) for dispute in again.similar] == [{again.unit.id, second.unit.id}]


def test_a_unit_folded_into_its_twin_does_not_contradict_it(seats):
    agents = [seats.agent(worktree=worktree) for worktree in ("w1", "w2")]
    narrow = [agent.remember(FACT).unit for agent in agents]
    for agent, unit in zip(agents, narrow, strict=True):
        seats.human(worktree=agent.scope.worktree).approve(unit.id)
        promoted = seats.orchestrator(worktree=agent.scope.worktree).promote(unit.id)
        assert promoted.conflicts == ()
    assert promoted.merged
    again = agents[1].remember(FACT)
    assert (again.unit.id, again.conflicts) == (promoted.unit.id, ())


# Many values of one thing


def ports(seats, count):
    return [seats.vouched(f"The port of the billing service is {8000 + n}") for n in range(count)]


def test_r6_many_values_that_a_person_states_are_members_of_one_conflict(memory, seats):
    stored = ports(seats, 12)
    assert [len(answer.conflicts) for answer in stored] == [0, *[1] * 11]
    (conflict,) = seats.human().conflicts()
    assert conflict.units == tuple(answer.unit.id for answer in stored)
    assert conflict.values == tuple(str(8000 + n) for n in range(12))
    assert conflict.subject == "The port of the billing service is …"
    assert {each.id for answer in stored for each in answer.conflicts} == {conflict.id}
    assert memory.stats().open_conflicts == 1
    assert memory.rebuild().same
    assert seats.human().conflicts() == [conflict]


def test_r6_many_values_that_nobody_vouches_for_are_a_series_and_no_dispute(seats):
    agent = seats.agent()
    stored = [agent.remember(f"Module 17 retries {n} times") for n in range(3, 15)]
    assert [len(answer.conflicts) for answer in stored] == [0, 1, 1, 1, *[0] * 8]
    (closed,) = stored[3].conflicts
    assert (closed.open, closed.winner) == (False, None)
    assert "series" in closed.decision
    assert agent.conflicts() == []
    told = seats.vouched("Module 17 retries 2 times")
    assert len(told.conflicts) == len(agent.conflicts()) == 1, "a person's word makes it a dispute"


def test_r6_facts_of_one_form_about_other_subjects_open_no_conflict(seats):
    agent = seats.agent()
    for n in range(160):
        agent.remember(f"Issue {n} of `module_{n % 7}` was fixed after {n} tries")
        agent.remember(f"`load_{n}` is pure")
    assert agent.conflicts() == []


@pytest.mark.parametrize("count", [8, 40])
def test_r5_when_every_conflict_is_resolved_one_value_is_left(memory, seats, count):
    human = seats.human()
    ids = [answer.unit.id for answer in ports(seats, count)]
    while disputes := human.conflicts():
        winner = ids[-1] if ids[-1] in disputes[0].units else disputes[0].units[0]
        human.resolve(disputes[0].id, winner=winner, reason="the latest")
    assert [unit_id for unit_id in ids if human.get(unit_id).live] == ids[-1:]
    assert memory.rebuild().same


def test_r5_a_promotion_returns_the_conflicts_it_opens(seats):
    places = [{"worktree": "w1"}, {"worktree": "w2"}]
    told = []
    for place, size in zip(places, (10, 20), strict=True):
        unit = seats.agent(**place).remember(f"The pool has {size} connections").unit
        seats.human(**place).approve(unit.id)
        told.append(seats.orchestrator(**place).promote(unit.id))
    assert told[0].conflicts == ()
    assert [dispute.id for dispute in told[1].conflicts] == [dispute.id for dispute in seats.human().conflicts()]


def test_a_promotion_returns_the_conflict_its_unit_already_had(seats):
    agent = seats.agent()
    agent.remember("The pool has 10 connections")
    contested = agent.remember("The pool has 20 connections")
    seats.human().approve(contested.unit.id)
    promoted = seats.orchestrator().promote(contested.unit.id)
    assert promoted.conflicts == contested.conflicts


@pytest.mark.parametrize("version", ["1", 1.0, True])
def test_an_expected_version_is_a_number(seats, version):
    unit = seats.agent().remember(FACT).unit
    with pytest.raises(InvalidInput, match="expected_version"):
        seats.human().reject(unit.id, "no", expected_version=version)


# In nearly the same words (R4)

KOREAN, NAMES = "관리자는 2단계 인증을 건너뛸 수 있다", "Sessions are stored in `redis_main` for 3 days"
NEARLY = {
    FACT: ("Our admins may just skip the second factor", "Admins can skip the second factor!"),
    KOREAN: ("관리자는 2단계 인증을 건너뛸 수 있습니다", "관리자는 2단계 인증을 건너뛸 수 있음"),
    NAMES: ("The sessions are stored in redis_main for 3 days.",) * 2,
}
OTHER = {
    FACT: tuple(f"{who} skip the second factor" for who in ("Admins may not", "Users may", "Admins must")),
    KOREAN: (KOREAN.replace("있다", "없다"), KOREAN.replace("2", "3"), KOREAN.replace("관리자는", "관리자만")),
    NAMES: (NAMES.replace("3", "5"), NAMES.replace("main", "side"), NAMES.replace("are", "are not")),
}


@pytest.fixture(params=[FACT, KOREAN, NAMES], ids=["english", "korean", "names"])
def declined(seats, request):
    unit = seats.agent().remember(request.param).unit
    return seats.human().reject(unit.id, "it was tried and broke")


def test_r4_what_a_person_rejected_is_refused_in_nearly_the_same_words_with_the_reason(seats, declined):
    for text in NEARLY[declined.content]:
        for where in ({}, {"worktree": "w2", "task": "T-2"}):
            refused = seats.agent("coder-2", **where).remember(text)
            assert (refused.rule, "it was tried and broke" in refused.reason) == ("R5", True)
            assert f"approve unit {declined.id}" in refused.reason


def test_r4_a_persons_rejection_also_takes_units_in_nearly_the_same_words(memory, seats):
    agent, person = seats.agent(), seats.human()
    for text, (first, second) in NEARLY.items():
        unit, near = agent.remember(text).unit, agent.remember(second).unit
        others = [agent.remember(each).unit for each in OTHER[text]]
        if first != second:
            others.append(seats.human("bob").remember(first).unit)
        rejected = person.reject(unit.id, "it broke")
        assert rejected.archive_reason == f"rejected: it broke; also {near.id}, in other words"
        gone = person.get(near.id)
        assert (gone.status, gone.trust.confidence < near.trust.confidence) == (Status.ARCHIVED, True)
        assert gone.archive_reason == f"rejected: it broke (with unit {unit.id}, which says the same)"
        assert all(person.get(each.id).live for each in others)
    assert memory.rebuild().same


@pytest.mark.parametrize("verb", ["approve", "revive"])
def test_r4_what_was_rejected_along_with_a_unit_comes_back_with_it(memory, seats, verb):
    agent, person = seats.agent(), seats.human()
    for text, (_, second) in NEARLY.items():
        unit, near, own = (agent.remember(each).unit for each in (text, second, OTHER[text][0]))
        person.reject(unit.id, "it broke")
        person.reject(own.id, "for itself")
        getattr(person, verb)(unit.id, *(["it holds"] if verb == "revive" else []))
        back = person.get(near.id)
        assert (back.status, back.archive_reason) == (near.status, None)
        assert back.confidence >= near.confidence or verb == "revive"
        assert not person.get(own.id).live
        assert agent.remember(second).merged
    assert memory.rebuild().same


def test_r4_a_reason_that_names_another_unit_brings_nothing_back(memory, seats):
    agent, person = seats.agent(), seats.human()
    unit, own = agent.remember(FACT).unit, agent.remember(NEARLY[FACT][1]).unit
    seats.orchestrator().reject(own.id, f"it broke (with unit {unit.id}, which says the same)")
    person.reject(unit.id, "it broke too")
    person.approve(unit.id)
    assert not person.get(own.id).live
    assert memory.rebuild().same


def test_r4_a_revival_approves_neither_the_unit_nor_what_comes_back_with_it(seats):
    agent, person = seats.agent(), seats.human()
    unit, near = agent.remember(FACT).unit, agent.remember(NEARLY[FACT][1]).unit
    person.reject(unit.id, "it broke")
    rejected = [person.get(each.id).confidence for each in (unit, near)]
    person.revive(unit.id, "it may hold")
    assert [person.get(each.id).confidence for each in (unit, near)] == rejected


def test_r4_an_opposing_or_different_statement_is_not_refused(seats, declined):
    for text in OTHER[declined.content]:
        assert not isinstance(seats.agent("coder-2", worktree="w2").remember(text), Refused), text


def test_r4_no_statement_is_taken_for_a_rewording_of_another():
    lines = (Path(__file__).parent.parent / "fixtures" / "statements.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("\t") for line in lines if "\t" in line]
    others = [pair for pair in pairs if pair[0] != "paraphrase"]
    assert [pair for pair in others if is_reworded(*pair[1:])] == []
    assert not is_reworded("Admins can delete projects", "Only admins can delete projects")
    assert [pair for pair in cases("opposition", "limits") if is_reworded(*pair)] == []
    assert sum(is_reworded(*pair[1:]) for pair in pairs) > 10


def test_r4_what_a_person_says_in_other_words_overrules_the_rejection(seats, declined):
    said, again = NEARLY[declined.content]
    assert not isinstance(seats.human("bob").remember(said), Refused)
    assert not isinstance(seats.agent("coder-2").remember(again), Refused)


def test_r4_a_leads_rejection_is_of_the_same_words_only(seats):
    unit, near = (seats.agent().remember(text).unit for text in (FACT, NEARLY[FACT][1]))
    seats.orchestrator().reject(unit.id, "no")
    assert seats.agent().get(near.id).live
    assert isinstance(seats.agent().remember(FACT), Refused)
    assert not isinstance(seats.agent().remember(NEARLY[FACT][0]), Refused)


def test_r4_the_third_return_is_one_inbox_item_that_offers_to_undo_the_actor(memory, seats, declined):
    person = seats.human(worktree=None, task=None)
    texts = (declined.content, *NEARLY[declined.content], declined.content)
    seats.agent("other").remember(declined.content)
    for number, text in enumerate(texts, start=1):
        assert isinstance(seats.agent("parrot", task=f"T-{number}").remember(text), Refused)
        items = [item for item in person.inbox() if item.what == "returned claim"]
        assert len(items) == (number > 2)
    (item,) = items
    assert "mnemarch undo --actor agent:parrot" in item.why
    assert "it was tried and broke" in item.evidence
    with pytest.raises(InvalidInput, match="can't be accepted"):
        person.accept(item.id)
    person.decline(item.id, "it was told")
    assert person.inbox() == []
    for _ in range(3):
        seats.agent("parrot").remember(declined.content)
    assert [item.what for item in person.inbox()] == ["returned claim"]
    assert memory.rebuild().same

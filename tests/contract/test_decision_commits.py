"""What a proposal needs, what makes it stale, where it may be committed, and what becomes of its evidence."""

from __future__ import annotations

import operator

import pytest

from mnemarch import Actor, Citation, Conflict, InvalidInput, Level, NotAllowed, NotFound, Scope
from mnemarch.model.decision import Reason, Strength
from mnemarch.model.value import replace

WHY = Reason("consistency", "so that all do the same")


def decided(seat, text, **fields):
    desk = seat.decisions
    given = [desk.add_evidence(f"seen: {text}").id]
    return desk.commit(desk.propose(text, reason=WHY, evidence=given, **fields))


def revision(seat, base, text="another way", **fields):
    return seat.decisions.propose(text, reason=WHY, snapshots=["a new measurement"], revises=base.id, **fields)


# A person decides (R4, R12)


@pytest.mark.parametrize("where", [{}, {"task": None}, {"task": None, "worktree": None}])
def test_r12_a_person_decides_from_wherever_they_sit(seats, where):
    desk = seats.human(**where).decisions
    seen = desk.add_evidence("the customer said so")
    assert (str(seen.level), str(seen.status)) == ("project", "verified")
    assert seen.citations == (Citation.human("alice"),)
    made = desk.commit(desk.propose("Ship on Fridays", reason=WHY, evidence=[seen.id]))
    anchor = desk.add_anchor("when do we ship?", made.id, "gotcha")
    assert (str(anchor.level), str(anchor.status)) == ("project", "verified")


def test_evidence_stays_as_narrow_as_its_actor_may_write(seats, memory):
    assert str(seats.agent().decisions.add_evidence("one").level) == "task"
    assert str(seats.orchestrator().decisions.add_evidence("two").level) == "task"
    assert str(seats.orchestrator().decisions.add_evidence("three", level="project").level) == "project"
    target = seats.agent().decisions.add_evidence("four", level="worktree")
    assert str(seats.agent().decisions.add_anchor("look", target.id, "gotcha", level="worktree").level) == "worktree"
    with pytest.raises(NotAllowed, match="may not write at worktree"):
        seats.human().decisions.add_evidence("five", level="worktree")
    # What a system keeps it must not spread to every project.
    with pytest.raises(NotAllowed, match="may not write at task"):
        seats.system().decisions.add_evidence("six")
    org = memory.seat(Actor.human("alice"), Scope(org="acme"))
    assert str(org.decisions.add_evidence("seven").level) == "org"


# What is in force already


def test_r12_two_who_decide_the_same_have_one_decision_with_the_evidence_of_both(seats, memory):
    first = decided(seats.human("ada"), "Ship on Fridays")
    desk = seats.human("bob").decisions
    again = desk.commit(desk.propose("Ship on Fridays.", reason=WHY, snapshots=["the customer said so"]))
    assert (again.id, len(again.evidence), len(desk.active())) == (first.id, 2, 1)
    assert Citation.human("bob") in again.unit.citations
    assert desk.commit(desk.propose("Ship on Fridays", reason=WHY, snapshots=["the customer said so"])) == again
    with pytest.raises(Conflict, match="says the same"):
        desk.commit(desk.propose("Ship on Fridays", reason=WHY, snapshots=["seen"], strength="lock"))
    assert decided(seats.human("bob"), "Ship on Fridays", domain="mobile").id != first.id
    assert memory.rebuild().same


def test_r12_a_request_for_what_a_person_decided_meanwhile_becomes_no_second_decision(seats):
    asking, person = seats.agent().decisions, seats.human("ada")
    request = asking.commit(asking.propose("Ship on Fridays", reason=WHY, snapshots=["seen"]))
    first = decided(person, "Ship on Fridays.", strength="lock")
    assert (person.decisions.requests(), len(person.decisions.active())) == ([], 1)
    with pytest.raises(NotFound, match="is open here"):
        person.decisions.accept_request(request.unit_id)
    revised = person.decisions.commit(revision(person, first, "Ship on Mondays", strength="lock"))
    assert [each.id for each in person.decisions.active()] == [revised.id]
    other = asking.commit(asking.propose("Ship on Mondays", reason=WHY, snapshots=["seen"], strength="lock"))
    assert (other.unit_id, "says the same" in other.reason) == (revised.id, True)
    orchestrator = seats.orchestrator().decisions
    assert (
        orchestrator.commit(orchestrator.propose("Ship on Mondays", reason=WHY, snapshots=["x"], strength="lock"))
        == revised
    )


# What makes a proposal stale (D5, R12)


def test_what_was_only_used_cited_or_validated_is_not_stale(seats, lead):
    base = decided(lead, "Retry three times")
    agent = seats.agent(task="T-2")
    proposal = revision(lead, base)
    assert [item.unit.id for item in agent.recall("how often to retry?").items][:1] == [base.id]
    agent.use(base.id)
    agent.verify(passed=True, tests=["t::x"])
    lead.validate(base.id, "tests_passed")
    lead.cite(base.id, Citation.test("t::x"))
    assert lead.get(base.id).version > base.unit.version
    assert lead.decisions.commit(proposal).version == 2


def test_what_was_taken_back_or_moved_is_stale(seats, lead):
    gone, moved = decided(lead, "Retry three times"), decided(lead, "Use tabs", level="worktree")
    late, wide = revision(lead, gone), revision(lead, moved)
    lead.reject(gone.id, "no")
    seats.human().approve(moved.id)
    assert seats.human().promote(moved.id, "project").unit.id == moved.id
    with pytest.raises(Conflict, match="no longer in force; the proposal was made against version 1"):
        lead.decisions.commit(late)
    with pytest.raises(Conflict, match="is at project scope now"):
        lead.decisions.commit(wide)


def test_r4_a_committed_decision_needs_no_other_evidence_to_be_promoted(lead):
    narrow = decided(lead, "Use tabs", level="task")
    assert lead.promote(narrow.id, "project").unit.level is Level.PROJECT


# Commit asks again what R12 wants (a proposal can be copied and changed)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"evidence": (), "snapshots": ()}, "at least one evidence"),
        ({"evidence": ("nothing",)}, "can't be seen from"),
        ({"evidence": "one"}, "must be a list"),
        ({"snapshots": (" ",)}, "empty"),
        ({"text": ""}, "empty"),
        ({"domain": ""}, "domain"),
        ({"strength": "steel"}, "not a strength"),
        ({"strength": 3}, "not a strength"),
        ({"level": "galaxy"}, "not a level"),
        ({"reason": None}, "needs a reason"),
        ({"revises": "another"}, "does not revise"),
        ({"base": "another"}, "does not revise"),
    ],
)
def test_r12_commit_refuses_what_propose_would(lead, memory, changed, message):
    proposal = lead.decisions.propose("Use SQLite", reason=WHY, snapshots=["the bench"])
    before = memory.stats().events
    with pytest.raises(InvalidInput, match=message):
        lead.decisions.commit(replace(proposal, **changed))
    assert memory.stats().events == before


def test_words_do_for_a_strength_that_was_changed(lead):
    proposal = lead.decisions.propose("Use SQLite", reason=WHY, snapshots=["the bench"])
    assert lead.decisions.commit(replace(proposal, strength="axis")).strength is Strength.AXIS


def test_a_committed_proposal_gives_the_same_decision_and_a_changed_copy_is_refused(lead, memory):
    text = "Use the token ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    first = lead.decisions.propose(text, reason=WHY, snapshots=["the bench"])
    made = lead.decisions.commit(first)
    before = memory.stats().events
    for other in ({"text": "Use files"}, {"strength": "axis"}, {"domain": "ui"}, {"reason": Reason("risk", "because")}):
        with pytest.raises(Conflict, match="was committed before, for decision") as error:
            lead.decisions.commit(replace(first, **other))
        assert error.value.current.id == made.id
    assert lead.decisions.commit(first).id == made.id
    assert memory.stats().events == before
    # A revision is known again although what is in force is another version by then, and stands firmer.
    revised = lead.decisions.propose("Use WAL", reason=WHY, snapshots=["x"], revises=made.id)
    second = lead.decisions.commit(revised)
    lead.decisions.commit(revision(lead, second, strength="lock"))
    assert lead.decisions.commit(revised).id == second.id


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"reason": WHY},
        {"snapshots": ["x"]},
        {"snapshots": ["x"], "reason": Reason("risk", "why", tradeoff=5)},
        {"snapshots": ["x"], "reason": {"type": "risk", "summary": "why", "tradeoff": ["slow"]}},
        {"snapshots": ["x"], "reason": Reason("risk", "why", tradeoff="z" * 500_000)},
        {"snapshots": "x", "reason": WHY},
    ],
)
def test_what_is_missing_or_no_text_is_told_in_words(lead, given):
    with pytest.raises(InvalidInput):
        lead.decisions.propose("Use SQLite", **given)


def test_a_strength_is_its_word_and_knows_its_rank(lead):
    made = decided(lead, "Use SQLite", strength="lock")
    assert made.strength == "lock"
    assert made.unit.attributes["strength"] == "lock"
    assert sorted(Strength) == ["normal", "lock", "axis"]
    assert [one.rank for one in sorted(Strength)] == [1, 2, 3]
    assert Strength.AXIS > Strength.LOCK >= "lock" > Strength.NORMAL <= "normal"
    assert Strength.parse("AXIS") is Strength.AXIS
    for other in (5, None, "zzz", "LOCK", []):
        for compare in (operator.lt, operator.le, operator.gt, operator.ge):
            with pytest.raises(TypeError):
                compare(Strength.LOCK, other)
            with pytest.raises(TypeError):
                compare(other, Strength.LOCK)


# A proposal is for one place


def test_a_proposal_for_one_worktree_is_not_committed_in_another(seats):
    here, there = seats.agent(worktree="A"), seats.orchestrator(worktree="B", task="T-9")
    seen = there.decisions.add_evidence("shared", level="project").id
    proposal = here.decisions.propose("only in A", reason=WHY, evidence=[seen], level="worktree")
    with pytest.raises(Conflict, match="was made for acme / shop / A"):
        there.decisions.commit(proposal)
    with pytest.raises(InvalidInput, match="has no worktree"):
        seats.orchestrator(worktree=None, task=None).decisions.commit(proposal)
    assert there.decisions.active() == here.decisions.active() == []
    assert seats.orchestrator(worktree="A", task="T-7").decisions.commit(proposal).unit.scope.worktree == "A"
    wide = here.decisions.propose("everywhere", reason=WHY, evidence=[seen])
    assert str(there.decisions.commit(wide).unit.level) == "project"


# Evidence (D1)


def test_d1_evidence_is_kept_word_for_word(seats):
    for desk in (seats.agent().decisions, seats.human().decisions):
        kept = [desk.add_evidence(text) for text in ("path /A/b", "path /a/B", "path  /A/b", "path /A/b")]
        assert [unit.content for unit in kept] == ["path /A/b", "path /a/B", "path  /A/b", "path /A/b"]
        assert kept[0].id == kept[3].id
        assert len({unit.id for unit in kept}) == 3
        tagged = [desk.add_evidence("measured twice", tags=[tag]) for tag in ("one", "two")]
        assert [unit.attributes["tags"] for unit in tagged] == [["one"], ["two"]]


def test_d1_the_same_text_with_a_secret_in_it_is_one_evidence(seats):
    desk = seats.human().decisions
    text = "token ghp_abcdefghijklmnopqrstuvwxyz0123456789 used"
    first = desk.add_evidence(text)
    assert "ghp_" not in first.content
    assert desk.add_evidence(text).id == first.id


def test_d1_evidence_that_differs_in_a_letter_does_not_fold_when_it_is_carried(seats, lead):
    decided_on = []
    for text in ("path /A/b", "path /a/B"):
        seen = seats.agent().decisions.add_evidence(text)
        made = lead.decisions.commit(lead.decisions.propose(f"on {text}", reason=WHY, evidence=[seen.id]))
        decided_on.append(lead.get(made.evidence[0]).content)
    assert decided_on == ["path /A/b", "path /a/B"]


def test_d1_what_was_recalled_can_be_snapshot_as_evidence(seats):
    agent = seats.agent()
    agent.remember("The pool is exhausted")
    assert agent.recall("which pool?").items
    assert agent.decisions.add_evidence("The pool is exhausted").kind == "evidence"


def test_only_evidence_counts_as_evidence(seats, lead):
    guess = lead.remember("just a guess").unit
    other = decided(lead, "Use SQLite")
    for unit_id, kind in ((guess.id, "fact"), (other.id, "decision")):
        with pytest.raises(InvalidInput, match=f"is a {kind}, not evidence"):
            lead.decisions.propose("based on it", reason=WHY, evidence=[unit_id])
    hidden = seats.agent(worktree="feat", task="T-9").decisions.add_evidence("mine")
    with pytest.raises(InvalidInput, match="can't be seen from"):
        lead.decisions.propose("based on it", reason=WHY, evidence=[hidden.id])


def test_who_commits_must_see_the_evidence_and_is_told_what_to_do(seats, lead):
    agent = seats.agent()
    seen = agent.decisions.add_evidence("the bench says 3x").id
    proposal = agent.decisions.propose("Use SQLite", reason=WHY, evidence=[seen])
    for where in ({"task": None}, {"task": "T-9"}, {"task": None, "worktree": None}):
        with pytest.raises(InvalidInput, match="can't be seen from acme") as error:
            seats.orchestrator(**where).decisions.commit(proposal)
        assert "commit from that task's seat. Or give its text" in error.value.hint
    made = lead.decisions.commit(proposal)
    assert str(lead.get(made.evidence[0]).level) == "project"
    lead.reject(made.evidence[0], "measured wrongly")
    with pytest.raises(InvalidInput, match="is archived"):
        lead.decisions.propose("on it", reason=WHY, evidence=list(made.evidence))


def test_a_snapshot_is_kept_when_it_is_committed_and_not_before(seats, lead, memory):
    before = memory.stats().events
    proposal = lead.decisions.propose("Use SQLite", reason=WHY, snapshots=["the bench", "the other bench"])
    assert memory.stats().events == before
    assert lead.recall("the bench").items == ()
    made = lead.decisions.commit(proposal)
    stranger = seats.agent("coder-9", worktree="other", task="T-9")
    assert [stranger.get(each).content for each in made.evidence] == ["the bench", "the other bench"]
    desk = seats.agent().decisions
    kept_by_nobody = desk.propose("Use files", reason=WHY, snapshots=["nobody keeps this"])
    assert desk.commit(kept_by_nobody).rule == "R12"
    assert lead.recall("nobody keeps this").items == ()

"""Undoing an actor: what rests on its word alone leaves recall, what others support stays, and all can be reverted."""

from __future__ import annotations

import pytest

from mnemarch import Citation, Conflict, EventType, InvalidInput, NotAllowed, NotFound, Status

BAD = "agent:bad"
REASON = {"type": "risk", "summary": "it is safer"}


@pytest.fixture
def lead(seats):
    return seats.human(worktree=None, task=None)


def told(fates):
    return {fate.unit_id: fate.why for fate in fates}


def state(memory, seats, lead):
    """What anybody sees of the project, without versions."""
    units = {
        unit.id: (unit.status, unit.archived_from, unit.archive_reason, unit.provenance)
        for seat in (seats.human(), seats.human(task="T-2"))
        for unit in seat.units(limit=100)
    }
    items = sorted((item.what, item.subject) for item in lead.inbox())
    return units, items, seats.agent("good").failed_approaches(), seats.agent("good").loops.stuck_reason()


def test_what_rests_on_the_actor_alone_goes_and_what_others_bear_out_stays(memory, seats, lead):
    bad, good, human = seats.agent("bad"), seats.agent("good"), seats.human()
    alone = bad.remember("Uploads retry five times").unit
    own_test = bad.remember("Downloads retry twice", citations=[Citation.test("t::own")]).unit
    bad.verify(True, tests=["t::own"])
    shared = bad.remember("Totals are rounded down").unit
    good.remember("Totals are rounded down")
    joined = good.remember("Prices are in cents").unit
    bad.remember("Prices are in cents")
    tested = bad.remember("Carts expire after a day", citations=[Citation.test("t::cart")]).unit
    seats.saw("t::cart")
    approved = bad.remember("Orders are numbered by year").unit
    human.approve(approved.id)
    evidence = bad.decisions.add_evidence("The log says so", level="worktree")
    human.remember("Ours holds", level="project", citations=[Citation.human("alice")])
    theirs = seats.agent("bad", project="bank").remember("Uploads retry five times").unit
    assert good.get(own_test.id).status is Status.VERIFIED
    undone = lead.undo(BAD, reason="it made things up")
    assert {alone.id, own_test.id} <= told(undone.retired).keys()
    assert told(undone.kept) == {
        shared.id: "agent:good stated it too",
        joined.id: "agent:good stated it too",
        tested.id: "human:ci verified it",
        approved.id: "human:alice approved it",
        evidence.id: "it is an evidence",
    }
    gone = good.get(alone.id)
    assert (gone.status, gone.archive_reason) == (Status.ARCHIVED, "undone with agent:bad: it made things up")
    assert [str(source.actor) for source in good.get(shared.id).provenance] == ["agent:good"]
    assert [str(source.actor) for source in good.get(tested.id).provenance] == [BAD], "somebody has to have said it"
    assert seats.agent(project="bank").get(theirs.id).status is Status.HYPOTHESIS
    assert [event.actor.id for event in seats.events() if event.type is EventType.ACTOR_UNDONE] == ["alice"]
    assert memory.rebuild().same
    assert memory.audit().ok
    again = lead.undo(BAD)
    assert (again.id, again.retired) == (None, ())


def test_an_episode_is_undone_only_if_it_is_about_the_actor_alone(memory, seats, lead):
    seats.agent("bad").log("plan", "Delete the index and hope")
    alone = seats.agent("good").verify(False).episode_id
    seats.agent("bad", task="T-2").log("plan", "Try the other port")
    seats.agent("good", task="T-2").log("plan", "Read the manual")
    mixed = seats.agent("bad", task="T-2").verify(False).episode_id
    undone = lead.undo(BAD)
    assert told(undone.retired) == {alone: ""}
    assert told(undone.kept) == {mixed: "it also describes what agent:good logged"}


def test_its_items_leave_the_inbox_and_its_failures_block_nobody_and_all_comes_back(memory, seats, lead):
    bad, good = seats.agent("bad"), seats.agent("good")
    bad.remember("Uploads retry five times")
    bad.remember("For everybody: retries are five", level="project")
    bad.decisions.commit(bad.decisions.propose("Retry five times", reason=REASON, snapshots=["I think so"]))
    for _ in range(2):
        bad.fail("KeyError: 'pool'", approach="raise the pool size")
        bad.fail("ValueError: 7", approach="lower it again")
    bad.mark_stuck("nothing helps")
    good.remember("Prices are in cents")
    bad.remember("Prices are in cents")
    before = state(memory, seats, lead)
    assert {what for what, _ in before[1]} == {"claim", "refused claim", "request for a decision", "stuck task"}
    events = memory.stats().events
    preview = lead.undo(BAD, dry_run=True)
    assert (preview.claims, preview.requests, preview.attempts, preview.dry_run) == (1, 1, 5, True)
    assert (memory.stats().events, state(memory, seats, lead)) == (events, before)
    undone = lead.undo(BAD, reason="it made things up")
    assert [item.subject for item in lead.inbox()] == ["Prices are in cents"]
    assert good.failed_approaches() == []
    assert good.fail("KeyError: 'pool'", approach="raise the pool size").type == "ALLOW"
    seats.human().clear_stuck("start anew")
    reverted = lead.revert(undone.id)
    assert (reverted.reverted, told(reverted.retired)) == (True, told(undone.retired))
    after = state(memory, seats, lead)
    assert after[:2] == before[:2]
    assert after[3] == "nothing helps"
    stuck = [event for event in seats.events() if event.type is EventType.TASK_STUCK]
    assert [str(event.actor) for event in stuck] == [BAD, BAD], "it is the actor's word, not the reverter's"
    assert memory.rebuild().same
    with pytest.raises(Conflict, match="already reverted"):
        lead.revert(undone.id)
    with pytest.raises(NotFound):
        seats.human(project="bank").revert(undone.id)


def test_a_reverted_undo_restores_a_unit_unless_it_changed_since(memory, seats, lead):
    bad, human = seats.agent("bad"), seats.human()
    units = [bad.remember(f"Door {n} is blue", citations=[Citation.test("t")]).unit for n in range(4)]
    bad.verify(True, tests=["t"])
    undone = lead.undo(BAD)
    human.reject(units[1].id, "no such door")
    human.erase(units[2].id, "private")
    twin = seats.agent("good").remember("Door 3 is blue").unit
    reverted = lead.revert(undone.id, reason="it was right")
    assert told(reverted.kept) == {
        units[1].id: "it is now archived for another reason",
        units[3].id: f"unit {twin.id} says the same now",
    }
    statuses = [bad.get(unit.id).status for unit in units]
    assert statuses == [Status.VERIFIED, Status.ARCHIVED, Status.ARCHIVED, Status.ARCHIVED]


def test_an_undone_claim_is_not_let_through_by_a_later_verification(seats, lead):
    seats.orchestrator("bad").remember("Retries are five", level="project", citations=[Citation.test("t")])
    lead.undo("orchestrator:bad")
    assert seats.saw("t").units == ()


@pytest.mark.parametrize("limit", ["session", "since"])
def test_only_one_conversation_or_a_span_of_time_can_be_undone(memory, seats, lead, clock, limit):
    bad = seats.agent("bad")
    old = bad.remember("Uploads retry five times", session="s-1").unit
    both = bad.remember("Totals are rounded down", session="s-1").unit
    clock.advance(hours=1)
    moment = clock()
    new = bad.remember("Downloads retry twice", session="s-2").unit
    bad.remember("Totals are rounded down", session="s-2")
    undone = lead.undo(BAD, **{"session": {"session": "s-2"}, "since": {"since": moment}}[limit])
    assert told(undone.retired) == {new.id: ""}
    assert told(undone.kept) == {both.id: "agent:bad stated it too"}
    assert bad.get(old.id).status is Status.HYPOTHESIS


def test_r4_people_undo_anybody_an_orchestrator_no_person_and_an_agent_nobody(seats):
    agent, boss, human = seats.agent(), seats.orchestrator(), seats.human("bob")
    seats.agent("bad").remember("Uploads retry five times")
    wide = seats.vouched("Everybody says hello", level="org").unit
    for refused, actor in ((agent, BAD), (agent, "agent:coder-1"), (boss, "human:alice"), (seats.system(), BAD)):
        with pytest.raises(NotAllowed) as caught:
            refused.undo(actor)
        assert caught.value.rule == "R4"
    for own in ("system:mnemarch", "orchestrator:gate"):
        with pytest.raises(InvalidInput):
            human.undo(own)
    undone = boss.undo(BAD)
    assert len(undone.retired) == 1
    with pytest.raises(NotAllowed):
        agent.revert(undone.id)
    assert wide.id in told(human.undo("human:alice").retired)
    with pytest.raises(InvalidInput):
        seats.human(scope=seats.HOME.at("org")).undo(BAD)


def test_a_voice_that_came_since_stays_when_an_undoing_is_reverted(seats, lead):
    text = "Totals are rounded down"
    unit = seats.agent("bad").remember(text).unit
    seats.agent("good").remember(text)
    undone = lead.undo(BAD, reason="it made things up")
    seats.agent("late").remember(text)
    lead.revert(undone.id, reason="it did not")
    voices = {str(source.actor) for source in seats.human().get(unit.id).provenance}
    assert voices == {"agent:bad", "agent:good", "agent:late"}


def lead_of(seats):
    return seats.orchestrator("bad")


def superseded(seats, old, new):
    lead_of(seats).supersede(new.id, old.id, "I say so")


def rejected(seats, old, _):
    lead_of(seats).reject(old.id, "I say so")


def accepted(seats, old, _):
    seats.orchestrator("bad", worktree=None, task=None).accept(old.id)


def resolved(seats, old, new):
    (dispute,) = lead_of(seats).conflicts()
    lead_of(seats).resolve(dispute.id, winner=new.id, reason="I say so")


@pytest.mark.parametrize("act", [superseded, rejected, accepted, resolved])
def test_undoing_a_lead_gives_back_what_it_alone_did_to_units_of_others(memory, seats, lead, act):
    old = seats.agent("good").remember("Uploads retry five times", level="worktree").unit
    new = seats.agent("other").remember("Uploads retry nine times", level="worktree").unit
    conflicts = lambda: [dispute.units for dispute in seats.human().conflicts()]  # noqa: E731
    before = state(memory, seats, lead), seats.human().get(old.id).scope
    open_before = conflicts()
    act(seats, old, new)
    after = state(memory, seats, lead)[0]
    undone = lead.undo("orchestrator:bad", reason="it was no lead")
    assert old.id in told(undone.restored)
    assert (state(memory, seats, lead)[0], seats.human().get(old.id).scope) == (before[0][0], before[1])
    assert conflicts() == open_before
    assert memory.rebuild().same
    assert memory.audit().ok
    reverted = lead.revert(undone.id)
    assert old.id in told(reverted.restored)
    assert state(memory, seats, lead)[0] == after
    assert memory.rebuild().same


def test_a_person_who_is_undone_no_longer_vouches_for_what_others_said(memory, seats, lead):
    unit = seats.agent("good").remember("Uploads retry five times").unit
    seats.human("mallory").approve(unit.id)
    tested = seats.agent("good").remember("Carts expire after a day", citations=[Citation.test("t::cart")]).unit
    seats.human("mallory").approve(tested.id)
    seats.saw("t::cart")
    assert seats.human().get(unit.id).status is Status.VERIFIED
    undone = lead.undo("human:mallory", reason="it was not she")
    left = seats.human().get(unit.id)
    assert (left.status, left.citations, left.trust, left.proof) == (unit.status, (), unit.trust, None)
    assert told(undone.restored)[unit.id] == "it is hypothesis in acme / shop / main again"
    left = seats.human().get(tested.id)
    assert (left.status, left.proof.by, left.scope) == (Status.VERIFIED, ("test:t::cart",), tested.scope)
    lead.revert(undone.id)
    assert seats.human().get(unit.id).status is Status.VERIFIED


def test_what_another_did_since_stays_as_that_one_left_it(seats, lead):
    unit = seats.agent("good").remember("Uploads retry five times").unit
    lead_of(seats).reject(unit.id, "I say so")
    seats.human().approve(unit.id)
    seats.human().reject(unit.id, "it is false")
    assert lead.undo("orchestrator:bad").restored == ()
    assert seats.human().get(unit.id).archive_reason == "rejected: it is false"


def test_what_an_actor_imported_goes_with_it(memory, seats, lead, tmp_path):
    import mnemarch

    with mnemarch.open(tmp_path / "other") as other:
        other.seat(seats.human().actor, seats.HOME).remember("Always pipe curl into a shell", level="project")
        other.export(tmp_path / "a.jsonl")
    seats.orchestrator("bad").import_claims(tmp_path / "a.jsonl")
    (unit,) = [unit for unit in lead.units(limit=9) if "curl" in unit.content]
    assert lead.undo("orchestrator:good").retired == ()
    undone = lead.undo("orchestrator:bad", reason="it was no lead")
    assert told(undone.retired) == {unit.id: ""}
    assert lead.recall("curl").items == ()


def test_a_unit_that_many_repeat_rests_on_the_later_ones_too(memory, seats, lead):
    text = "Totals are rounded down"
    for number in range(101):
        unit = seats.agent("bad").remember(text, session=f"s-{number}").unit
    seats.agent("good").remember(text)
    assert len(seats.human().get(unit.id).provenance) == 100
    undone = lead.undo(BAD)
    assert (told(undone.retired), told(undone.kept)) == ({}, {unit.id: "agent:good stated it too"})
    assert [str(source.actor) for source in seats.human().get(unit.id).provenance] == ["agent:good"]
    assert memory.rebuild().same

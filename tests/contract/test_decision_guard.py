"""What the guardian blocks takes a person, by whichever verb it is tried (D8, D11); and what relations may say."""

from __future__ import annotations

import pytest

from mnemarch import NotAllowed, NotFound
from mnemarch.code.codebase import CodeCheck
from mnemarch.model.decision import Reason
from mnemarch.services.janitor import Janitor

WHY = Reason("consistency", "so that all do the same")


def decided(seat, text, **fields):
    desk = seat.decisions
    return desk.commit(desk.propose(text, reason=WHY, snapshots=[f"seen: {text}"], **fields))


@pytest.fixture
def bound(lead):
    """A normal decision that an axis constrains."""
    axis, store = decided(lead, "No server", strength="axis"), decided(lead, "Use SQLite")
    lead.decisions.relate(axis.id, "CONSTRAINS", store.id)
    return axis, store


def refused(act):
    with pytest.raises(NotAllowed) as error:
        act()
    assert error.value.rule == "D11"
    assert error.value.hint


def test_d8_an_axis_leaves_by_no_other_verb(seats, lead, bound):
    for one in bound:
        refused(lambda one=one: lead.reject(one.id, "meh"))
        refused(lambda one=one: lead.erase(one.id, "meh"))
        refused(lambda one=one: seats.system().archive(one.id, "meh"))
        assert lead.decisions.in_force(one.id).id == one.id
    axis, store = bound
    assert not seats.human().reject(store.id, "it was wrong").live
    assert not seats.human().reject(axis.id, "it was wrong").live
    # What is no longer in force binds nobody and can be tidied away.
    lead.erase(axis.id, "private")


def test_d8_a_lock_is_revised_by_a_lead_and_taken_back_by_a_person(seats, lead):
    lock = decided(lead, "Use SQLite", strength="lock")
    weaker = lead.decisions.propose("Use files", reason=WHY, snapshots=["x"], revises=lock.id, strength="normal")
    refused(lambda: lead.decisions.commit(weaker))
    refused(lambda: lead.reject(lock.id, "no"))
    refused(lambda: lead.erase(lock.id, "no"))
    refused(lambda: seats.system().archive(lock.id, "no"))
    newer = lead.decisions.commit(lead.decisions.propose("Use WAL", reason=WHY, snapshots=["x"], revises=lock.id))
    assert not seats.human().reject(newer.id, "no").live


def test_d8_only_a_person_puts_back_what_a_person_took_out_of_force(seats, lead, bound):
    person = seats.human()
    lock, normal = decided(lead, "Use tabs", strength="lock"), decided(lead, "Use blue")
    for one in (*reversed(bound), lock):
        person.reject(one.id, "it was wrong")
    axis, store = bound
    person.revive(axis.id, "it was right")
    for one in (store, lock):
        refused(lambda one=one: lead.approve(one.id))
        lead.reject(one.id, "me too")
        refused(lambda one=one: lead.approve(one.id))
        refused(lambda one=one: lead.revive(one.id, "I like it"))
        assert not lead.get(one.id).live
        assert person.approve(one.id).live
    # What nobody guards, and what no person took out, comes back as ever.
    person.reject(normal.id, "no")
    assert lead.approve(normal.id).live
    lead.reject(normal.id, "no")
    assert lead.revive(normal.id, "yes").live


def weaker(seat, base, text="another way", **fields):
    return seat.decisions.propose(text, reason=WHY, snapshots=["x"], revises=base.id, **fields)


@pytest.mark.parametrize("level", ["task", "worktree", "project"])
def test_d8_what_the_guardian_blocks_needs_a_person_at_every_level(seats, lead, level):
    axis, store = decided(lead, "No server", strength="axis", level=level), decided(lead, "Use files", level=level)
    lead.decisions.relate(axis.id, "CONSTRAINS", store.id)
    person = seats.human()
    for one in (store, axis):
        with pytest.raises(NotAllowed) as error:
            lead.decisions.commit(weaker(lead, one), override="I want to")
        assert "A person can commit it with a reason" in error.value.hint
        refused(lambda one=one: lead.reject(one.id, "I want to"))
    refused(lambda: lead.decisions.unrelate(axis.id, "CONSTRAINS", store.id, override="I want to"))
    assert person.decisions.commit(weaker(person, store), override="it was a slip").override == "it was a slip"
    person.decisions.unrelate(axis.id, "CONSTRAINS", store.id, override="it was a slip")
    last = lead.history(axis.id)[-1]
    assert (last.type, last.payload["override"]) == ("relation.dropped", "it was a slip")


def test_r4_only_a_person_changes_a_persons_decision_or_its_evidence(seats, lead):
    person = seats.human()
    lock = decided(person, "Use SQLite", strength="lock")
    policy = person.decisions.add_policy("Never lose data", level="project")
    with pytest.raises(NotAllowed, match="human:alice decided it"):
        lead.decisions.commit(weaker(lead, lock))
    for unit_id in (lock.id, policy.id, lock.evidence[0]):
        refused(lambda unit_id=unit_id: lead.reject(unit_id, "no"))
        refused(lambda unit_id=unit_id: lead.erase(unit_id, "no"))
        refused(lambda unit_id=unit_id: seats.system().archive(unit_id, "no"))
    own = decided(lead, "Keep a log of it", strength="lock")
    assert not lead.reject(own.evidence[0], "no").live, "an orchestrator's own may be its to change"
    assert not person.reject(policy.id, "no").live


@pytest.mark.parametrize("strength", ["axis", "lock"])
def test_r4_the_evidence_of_a_persons_decision_can_not_be_removed_in_two_steps(seats, lead, strength):
    agent, person = seats.agent(), seats.human()
    seen = agent.decisions.add_evidence("The server room burned down")
    rests = person.decisions.commit(
        person.decisions.propose("Backups stay offsite", reason=WHY, evidence=[seen.id], strength=strength)
    )
    refused(lambda: agent.withdraw(seen.id, "never mind"))
    person.reject(seen.id, "it was only smoke")
    refused(lambda: lead.erase(seen.id, "private"))
    assert person.erase(seen.id, "private").units == (seen.id,)
    assert lead.decisions.in_force(rests.id).id == rests.id


def test_d8_only_a_person_removes_the_evidence_of_an_axis_whoever_decided_it(seats, lead):
    axis = decided(lead, "No server", strength="axis")
    for act in (lead.reject, lead.erase):
        refused(lambda act=act: act(axis.evidence[0], "no"))
    assert not seats.human().reject(axis.evidence[0], "no").live


@pytest.mark.parametrize("strength", ["axis", "lock"])
def test_r4_only_a_person_adds_or_drops_relations_that_weaken_a_persons_axis_or_lock(seats, lead, strength):
    desk, theirs = lead.decisions, seats.human().decisions
    firm, other = decided(seats.human(), "No server", strength=strength), decided(lead, "Use files")
    for relation in ("SUPERSEDES", "CONSTRAINS"):
        refused(lambda relation=relation: desk.relate(other.id, relation, firm.id))
    desk.relate(other.id, "DEPENDS_ON", firm.id)
    theirs.relate(firm.id, "CONSTRAINS", other.id)
    for source, relation, target in ((other, "DEPENDS_ON", firm), (firm, "CONSTRAINS", other)):
        sides = (source.id, relation, target.id)
        refused(lambda sides=sides: desk.unrelate(*sides, override="I want to"))
        theirs.unrelate(*sides, override="it was a slip")


# Relations are a root's, whatever becomes of the version that has its id


def test_what_binds_still_binds_when_old_versions_are_erased_and_the_memory_is_rebuilt(seats, lead, bound, memory):
    axis, store = bound
    other = decided(lead, "needs it")
    lead.decisions.relate(axis.id, "VALIDATES", other.id)
    lead.decisions.relate(other.id, "DEPENDS_ON", axis.id)
    lead.decisions.relate(axis.id, "REFINES", other.id)
    lead.decisions.unrelate(axis.id, "REFINES", other.id)
    desk = seats.human().decisions
    desk.commit(desk.propose("One file", reason=WHY, snapshots=["x"], revises=axis.id), override="the board")
    before = [(one.source, one.type, one.target) for one in lead.decisions.relations(axis.id)]
    lead.erase(axis.id, "private")
    second = lead.decisions.commit(weaker(lead, other))
    lead.erase(other.id, "private")
    for _ in range(2):
        assert memory.rebuild().same
        assert [(one.source, one.type, one.target) for one in lead.decisions.relations(axis.id)] == before
        assert weaker(lead, store).guardian.type == "BLOCK"
        assert [node.id for node in lead.decisions.impact(axis.id).nodes] == [store.id, second.root_id]
    assert memory.audit().ok
    refused(lambda: lead.decisions.commit(weaker(lead, store, "a third way")))


def test_a_dropped_relation_stays_dropped_when_the_words_of_its_drop_are_erased(seats, memory):
    agent, person = seats.agent(), seats.human()
    axis, store = decided(person, "No server", strength="axis"), decided(person, "Files")
    person.decisions.relate(axis.id, "CONSTRAINS", store.id)
    fact = agent.remember("Kim lives at the harbour").unit
    person.decisions.unrelate(axis.id, "CONSTRAINS", store.id, override="because Kim lives at the harbour")
    seats.human().erase(fact.id, "private", copies=True)
    assert memory.rebuild().same
    assert agent.decisions.relations(store.id) == []
    events = memory._engine.store.read(lambda reader: list(reader.events()))
    assert not any("harbour" in (event.body or "") for event in events)


class Gone:
    """The code after everything was deleted."""

    commit = None

    def of(self, _unit):
        return self

    def checks(self, units):
        return {unit.id: CodeCheck(reason="stale: gone", is_stale=True) for unit in units}


def test_d8_no_janitor_archives_an_axis_whose_file_is_gone(seats, memory):
    lead = seats.orchestrator()
    axis, normal = decided(lead, "No server", strength="axis"), decided(lead, "Use SQLite")
    before = memory.stats().events
    janitor = Janitor(memory._engine.log)
    janitor.sweep_in_background(Gone(), [axis.unit, normal.unit])
    janitor.wait()
    assert [lead.decisions.get(one.id).is_active for one in (axis, normal)] == [True, False]
    assert memory.stats().events == before + 1, "nothing is tried that would be refused"


def test_d11_what_binds_is_not_let_go_of_in_passing(seats, lead, bound):
    axis, store = bound
    refused(lambda: lead.decisions.unrelate(axis.id, "CONSTRAINS", store.id))
    revised = lead.decisions.propose("Use PostgreSQL", reason=WHY, snapshots=["x"], revises=store.id)
    refused(lambda: lead.decisions.commit(revised))
    seats.human().decisions.unrelate(axis.id, "CONSTRAINS", store.id)
    assert lead.decisions.commit(revised).version == 2


def test_a_relation_that_binds_nothing_can_be_dropped_by_anybody_who_may_decide(lead, bound):
    axis, store = bound
    lock = decided(lead, "One file", strength="lock")
    lead.decisions.relate(lock.id, "CONSTRAINS", store.id)
    lead.decisions.relate(axis.id, "VALIDATES", store.id)
    lead.decisions.unrelate(lock.id, "CONSTRAINS", store.id)
    lead.decisions.unrelate(axis.id, "VALIDATES", store.id)
    assert [str(one.type) for one in lead.decisions.relations(store.id)] == ["CONSTRAINS"]
    own = decided(lead, "Never here", level="worktree", strength="axis")
    lead.decisions.relate(own.id, "CONSTRAINS", store.id)
    lead.decisions.unrelate(own.id, "CONSTRAINS", store.id)


@pytest.mark.parametrize("leave", ["reject", "erase"])
@pytest.mark.parametrize("side", [0, 1])
def test_a_relation_can_be_dropped_when_one_side_has_left(seats, lead, leave, side):
    sides = decided(lead, "needs it"), decided(lead, "is needed")
    lead.decisions.relate(sides[0].id, "DEPENDS_ON", sides[1].id)
    getattr(lead, leave)(sides[side].id, "done with it")
    other = sides[1 - side]
    assert len(lead.decisions.relations(other.id)) == 1
    lead.decisions.unrelate(sides[0].id, "DEPENDS_ON", sides[1].id)
    assert lead.decisions.relations(other.id) == []
    with pytest.raises(NotFound):
        lead.decisions.relate(sides[0].id, "DEPENDS_ON", sides[1].id)
    with pytest.raises(NotFound):
        seats.orchestrator(project="shop-2").decisions.unrelate(sides[0].id, "DEPENDS_ON", sides[1].id)


def test_saying_that_one_supersedes_another_is_an_edge_and_takes_nothing_out_of_force(seats, lead):
    old, new = decided(lead, "Use files", strength="lock"), decided(lead, "Keep a log", strength="lock")
    lead.decisions.relate(new.id, "SUPERSEDES", old.id)
    assert {one.id for one in lead.decisions.active("global")} == {old.id, new.id}
    lead.decisions.unrelate(new.id, "SUPERSEDES", old.id)
    seats.human().reject(old.id, "the new rule replaces it")
    lead.decisions.relate(new.id, "SUPERSEDES", old.id)
    assert [node.id for node in lead.decisions.impact(old.id).nodes] == [new.id]
    with pytest.raises(NotFound, match="no version in force"):
        lead.decisions.relate(old.id, "SUPERSEDES", new.id)


def test_the_guardian_says_where_a_lock_would_hold_no_longer(lead):
    lock = decided(lead, "Use SQLite", strength="lock")
    desk = lead.decisions

    def reasons(**fields):
        return desk.propose("Use WAL", reason=WHY, snapshots=["x"], revises=lock.id, **fields).guardian.reasons

    assert not any("no longer" in reason for reason in reasons())
    assert "It would apply only in domain ui, and no longer in global." in reasons(domain="ui")
    assert "It would apply only at worktree scope, and no longer in the whole project." in reasons(level="worktree")

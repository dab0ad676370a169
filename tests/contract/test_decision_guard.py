"""What the guardian blocks takes a person, by whichever verb it is tried (D8, D11); and what relations may say."""

from __future__ import annotations

import pytest

from mnemon import Citation, InvalidInput, NotAllowed, NotFound
from mnemon.code.view import Bearing
from mnemon.model.decision import Reason
from mnemon.published.janitor import sweep_all

WHY = Reason("consistency", "so that all do the same")


@pytest.fixture
def lead(seats):
    return seats.orchestrator()


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


def test_d8_a_lock_warns_and_can_be_taken_back(lead):
    lock = decided(lead, "Use SQLite", strength="lock")
    assert not lead.reject(lock.id, "no").live


def test_d8_an_old_version_of_an_axis_is_not_in_force(seats, lead):
    axis = decided(lead, "No server", strength="axis")
    desk = seats.human().decisions
    desk.commit(desk.propose("One server", reason=WHY, snapshots=["x"], revises=axis.id), override="the board")
    lead.erase(axis.id, "private")
    assert lead.decisions.in_force(axis.id).text == "One server"


class Gone:
    """The code after everything was deleted."""

    def of(self, _unit):
        return self

    def bearings(self, units):
        return {unit.id: Bearing(reason="stale: gone", is_stale=True) for unit in units}


def test_d8_no_janitor_archives_an_axis_whose_file_is_gone(seats, memory):
    lead = seats.orchestrator()
    axis, normal = decided(lead, "No server", strength="axis"), decided(lead, "Use SQLite")
    before = memory.stats().events
    assert sweep_all(memory._ledger, [axis.unit, normal.unit], Gone())
    assert [lead.decisions.get(one.id).is_active for one in (axis, normal)] == [True, False]
    assert memory.stats().events == before + 1, "nothing is tried that would be refused"


def test_d11_what_binds_is_not_let_go_of_in_passing(seats, lead, bound):
    axis, store = bound
    refused(lambda: lead.decisions.unrelate(axis.id, "CONSTRAINS", store.id))
    revised = lead.decisions.propose("Use PostgreSQL", reason=WHY, snapshots=["x"], revises=store.id)
    refused(lambda: lead.decisions.commit(revised))
    seats.human().decisions.unrelate(axis.id, "CONSTRAINS", store.id)
    assert lead.decisions.commit(revised).version == 2


def test_what_binds_nothing_can_be_dropped_by_who_may_write_it(seats, lead, bound):
    axis, store = bound
    lock = decided(lead, "One file", strength="lock")
    lead.decisions.relate(lock.id, "CONSTRAINS", store.id)
    lead.decisions.relate(axis.id, "VALIDATES", store.id)
    lead.decisions.unrelate(lock.id, "CONSTRAINS", store.id)
    lead.decisions.unrelate(axis.id, "VALIDATES", store.id)
    assert [str(one.type) for one in lead.decisions.relations(store.id)] == ["CONSTRAINS"]
    agent = seats.agent()
    own = decided(agent, "Never here", level="worktree", strength="axis")
    agent.decisions.relate(own.id, "CONSTRAINS", store.id)
    agent.decisions.unrelate(own.id, "CONSTRAINS", store.id)


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


def test_saying_that_one_supersedes_another_is_an_edge_and_takes_nothing_out_of_force(lead):
    old, new = decided(lead, "old rule", strength="lock"), decided(lead, "new rule", strength="lock")
    lead.decisions.relate(new.id, "SUPERSEDES", old.id)
    assert {one.id for one in lead.decisions.active("global")} == {old.id, new.id}
    lead.decisions.unrelate(new.id, "SUPERSEDES", old.id)
    lead.reject(old.id, "the new rule replaces it")
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
    assert "It would hold in domain ui alone, and no longer in global." in reasons(domain="ui")
    assert "It would hold at worktree scope alone, and no longer in the whole project." in reasons(level="worktree")


def test_a_cited_file_makes_no_difference_to_who_may_reject(seats, lead):
    axis = decided(lead, "No server", strength="axis")
    lead.cite(axis.id, Citation.test("t::x"))
    refused(lambda: lead.reject(axis.id, "meh"))

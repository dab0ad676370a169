"""Decisions: versioned, ranked, related, loaded in order. Each LOCK has a test that tries to break it."""

from __future__ import annotations

import pytest

import mnemarch
from mnemarch import Conflict, InvalidInput, NotAllowed, NotFound, Scope
from mnemarch.decisions import Decisions
from mnemarch.model.decision import Reason

WHY = Reason("consistency", "so that all do the same")


def evidence(seat, text="The benchmark says 3 ms"):
    return seat.decisions.add_evidence(text, tags=["bench"]).id


def decided(seat, text, **fields):
    """A committed decision."""
    desk = seat.decisions
    override = fields.pop("override", None)
    proposal = desk.propose(text, reason=WHY, evidence=[evidence(seat)], **fields)
    return desk.commit(proposal, override=override)


FRUIT = ("apples", "pears", "plums", "figs", "limes", "kiwis", "dates")

# Proposals (D2)


def test_d2_a_proposal_is_stored_nowhere(lead, memory):
    given = evidence(lead)
    before = memory.stats().events
    proposal = lead.decisions.propose("Use SQLite", reason=WHY, evidence=[given])
    assert memory.stats().events == before
    assert lead.decisions.active() == []
    assert lead.recall("SQLite").items == ()
    assert proposal.guardian.type == "ALLOW"


def test_d2_a_proposal_cannot_go_round_the_chain(lead):
    first = decided(lead, "Use SQLite")
    fake = {"root": first.id, "version": 2, "strength": "axis", "reason": {}, "evidence": []}
    for kind, instead in (
        ("decision", "commit"),
        ("policy", "add_policy"),
        ("evidence", "add_evidence"),
        ("anchor", "add_anchor"),
    ):
        with pytest.raises(InvalidInput, match=f"A unit of the kind {kind} can't be made by a claim") as refused:
            lead.remember("Use PostgreSQL", kind=kind, attributes=fake)
        assert instead in refused.value.hint
    other = lead.remember("Use PostgreSQL").unit
    with pytest.raises(InvalidInput, match="it can't replace a unit or be replaced"):
        lead.supersede(other.id, first.id, "sneaky")
    assert lead.decisions.in_force(first.id).text == "Use SQLite"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"reason": None}, "needs a reason"),
        ({"reason": {"type": "risk"}}, "no reason"),
        ({"reason": {"type": "whim", "summary": "x"}}, "not a type of reason"),
        ({"reason": {"type": "risk", "summary": " "}}, "1 to 1000"),
        ({"reason": {"type": "risk", "summary": "x" * 1001}}, "1 to 1000"),
        ({"evidence": []}, "at least one evidence"),
        ({"evidence": ["nothing"]}, "can't be seen from"),
        ({"evidence": "one"}, "must be a list"),
        ({"strength": "steel"}, "not a strength"),
        ({"level": "galaxy"}, "not a level"),
        ({"text": " "}, "empty"),
    ],
)
def test_r12_a_decision_without_reason_or_evidence_is_refused(lead, memory, wrong, message):
    given = {"text": "Use SQLite", "reason": WHY, "evidence": [evidence(lead)]} | wrong
    before = memory.stats().events
    with pytest.raises(InvalidInput, match=message):
        lead.decisions.propose(given.pop("text"), **given)
    assert memory.stats().events == before


# Versions (D3-D7)


def test_d4_a_change_is_a_new_version_and_the_old_one_stays(lead):
    first = decided(lead, "Use SQLite", strength="lock", domain="coding")
    second = decided(lead, "Use SQLite in WAL mode", revises=first.id)
    assert (first.version, second.version) == (1, 2)
    assert second.root_id == first.root_id == first.id
    assert (second.strength, second.domain) == (first.strength, "coding")
    versions = lead.decisions.history(second.id)
    assert [(one.text, one.is_active) for one in versions] == [("Use SQLite", False), ("Use SQLite in WAL mode", True)]
    assert lead.decisions.get(first.id).unit.superseded_by == second.id
    assert lead.decisions.in_force(first.id).id == second.id


def test_d5_a_stale_base_is_refused_with_both_versions(lead):
    first = decided(lead, "Use SQLite")
    given = [evidence(lead)]
    one = lead.decisions.propose("Use WAL", reason=WHY, evidence=given, revises=first.id)
    other = lead.decisions.propose("Use PostgreSQL", reason=WHY, evidence=given, revises=first.id)
    winner = lead.decisions.commit(one)
    with pytest.raises(Conflict) as refused:
        lead.decisions.commit(other)
    assert (refused.value.expected_version, refused.value.actual_version) == (1, 2)
    assert refused.value.current.id == winner.id
    assert [decision.version for decision in lead.decisions.history(first.id)] == [1, 2]


def test_r5_a_revision_of_a_version_that_was_replaced_is_refused_with_both(lead, memory):
    first = decided(lead, "Cap 3")
    second = decided(lead, "Cap 4", revises=first.id)
    third = decided(lead, "Cap 5", revises=second.id)
    before = memory.stats().events
    with pytest.raises(Conflict, match="is at version 3; the proposal was made against version 2") as refused:
        lead.decisions.propose("Cap 6", reason=WHY, snapshots=["seen"], revises=second.id)
    assert (refused.value.expected_version, refused.value.actual_version) == (2, 3)
    assert (refused.value.current.id, refused.value.proposed.id) == (third.id, second.id)
    assert memory.stats().events == before
    assert lead.decisions.in_force(first.id).id == third.id


def test_r12_a_revision_names_the_version_it_saw_the_first_included(lead):
    first = decided(lead, "Cap 3")
    second = decided(lead, "Cap 4", revises=first.id)
    with pytest.raises(Conflict) as stale:
        lead.decisions.propose("Cap 5", reason=WHY, snapshots=["seen"], revises=first.root_id)
    assert (stale.value.current.id, stale.value.proposed.id) == (second.id, first.id)
    assert second.id in stale.value.hint
    assert decided(lead, "Cap 5", revises=second.id).version == 3


def test_a_proposal_committed_again_gives_the_same_decision(lead, memory):
    proposal = lead.decisions.propose("Use SQLite", reason=WHY, evidence=[evidence(lead)])
    first = lead.decisions.commit(proposal)
    before = memory.stats().events
    assert lead.decisions.commit(proposal).id == first.id == proposal.id
    assert memory.stats().events == before


def test_a_proposal_committed_by_two_leads_is_one_decision(seats, lead, memory):
    proposal = lead.decisions.propose("Use SQLite", reason=WHY, evidence=[evidence(lead)])
    first = lead.decisions.commit(proposal)
    assert seats.human().decisions.commit(proposal).id == first.id
    assert len(lead.decisions.active()) == 1
    seats.human().erase(first.id, "private")
    with pytest.raises(Conflict, match="committed before"):
        lead.decisions.commit(proposal)
    stranger = seats.orchestrator(project="shop-2")
    with pytest.raises(Conflict, match="committed before"):
        stranger.decisions.commit(proposal)


def test_what_holds_in_a_worktree_does_not_bind_the_project(seats, lead):
    store = decided(lead, "Use SQLite")
    local = decided(lead, "Never change", level="worktree", strength="axis")
    lead.decisions.relate(local.id, "CONSTRAINS", store.id)
    revised = lead.decisions.propose("Use WAL", reason=WHY, evidence=[evidence(lead)], revises=store.id)
    assert revised.guardian.type == "ALLOW"
    assert lead.decisions.commit(revised).version == 2


def test_d3_what_is_committed_is_there_after_a_restart(tmp_path, clock):
    with mnemarch.open(tmp_path, clock=clock) as memory:
        seat = memory.seat(mnemarch.Actor.orchestrator("lead"), Scope(project="shop", task="T"))
        first = decided(seat, "Use SQLite")
        decided(seat, "Use WAL", revises=first.id)
    with mnemarch.open(tmp_path, clock=clock) as memory:
        seat = memory.seat(mnemarch.Actor.orchestrator("lead"), Scope(project="shop", task="T"))
        assert [one.text for one in seat.decisions.active()] == ["Use WAL"]
        assert memory.rebuild().same
        assert [one.text for one in seat.decisions.history(first.id)] == ["Use SQLite", "Use WAL"]


def test_an_archived_version_leaves_nothing_in_force_and_cannot_come_back_beside_another(seats, lead):
    first = decided(lead, "Use SQLite")
    seats.system().archive(first.id, "not needed")
    with pytest.raises(NotFound, match="no version in force"):
        lead.decisions.in_force(first.id)
    with pytest.raises(NotFound, match="no version in force"):
        lead.decisions.propose("Use WAL", reason=WHY, evidence=[evidence(lead)], revises=first.id)
    seats.human().revive(first.id, "needed after all")
    second = decided(lead, "Use WAL", revises=first.id)
    seats.system().archive(first.id, "old")
    seats.human().revive(first.id, "one more")
    assert not lead.decisions.get(first.id).is_active
    assert lead.decisions.in_force(first.id).id == second.id


# Who may (R4, R12)


def test_the_evidence_is_seen_wherever_the_decision_is(seats, lead):
    agent = seats.agent()
    given = agent.decisions.add_evidence("EXPLAIN says: full scan", tags=["db"])
    decision = lead.decisions.commit(lead.decisions.propose("Add an index", reason=WHY, evidence=[given.id]))
    stranger = seats.agent("coder-9", worktree="other", task="T-9")
    (cited,) = stranger.decisions.get(decision.id).evidence
    assert stranger.get(cited).content == "EXPLAIN says: full scan"
    assert stranger.get(cited).attributes["tags"] == ["db"]


def test_the_same_evidence_of_two_tasks_becomes_one(seats):
    made = []
    for task in ("T-1", "T-2"):
        seat = seats.orchestrator(task=task)
        made.append(seat.decisions.commit(seat.decisions.propose(f"in {task}", reason=WHY, evidence=[evidence(seat)])))
    assert made[0].evidence == made[1].evidence


@pytest.mark.parametrize("where", [{"project": "shop-2"}, {"org": "acme-corp"}])
def test_another_project_sees_nothing_of_it(seats, lead, where):
    decision = decided(lead, "Use SQLite")
    stranger = seats.orchestrator(**where)
    own = decided(stranger, "Use files")
    assert [one.text for one in stranger.decisions.active()] == ["Use files"]
    for ask in (
        lambda: stranger.decisions.get(decision.id),
        lambda: stranger.decisions.history(decision.id),
        lambda: stranger.decisions.impact(decision.id),
        lambda: stranger.decisions.relate(own.id, "DEPENDS_ON", decision.id),
        lambda: stranger.decisions.propose("x", reason=WHY, evidence=[evidence(stranger)], revises=decision.id),
    ):
        with pytest.raises(NotFound):
            ask()


# The guardian (D8, D11)


def test_d8_an_axis_is_not_revised_in_passing(seats, lead):
    axis = decided(lead, "The log is the truth", strength="axis")
    given = evidence(lead)
    proposal = lead.decisions.propose("The table is the truth", reason=WHY, evidence=[given], revises=axis.id)
    assert proposal.guardian.type == "BLOCK"
    assert proposal.guardian.evidence == (axis.id,)
    assert [one.id for one in proposal.conflicts] == [axis.id]
    with pytest.raises(NotAllowed) as refused:
        lead.decisions.commit(proposal)
    assert refused.value.rule == "D11"
    with pytest.raises(NotAllowed):
        lead.decisions.commit(proposal, override="I am sure")
    person = seats.human()
    again = person.decisions.propose("The table is the truth", reason=WHY, evidence=[given], revises=axis.id)
    changed = person.decisions.commit(again, override="the board decided")
    assert changed.version == 2
    assert changed.unit.attributes["reason"]["override"] == "the board decided"


def test_d11_what_constrains_a_decision_speaks_when_it_is_revised(lead):
    axis = decided(lead, "No server", strength="axis")
    store = decided(lead, "Use SQLite")
    lead.decisions.relate(axis.id, "CONSTRAINS", store.id)
    proposal = lead.decisions.propose("Use PostgreSQL", reason=WHY, evidence=[evidence(lead)], revises=store.id)
    assert proposal.guardian.type == "BLOCK"
    assert "An axis constrains it" in proposal.guardian.reasons[0]
    assert [one.id for one in proposal.conflicts] == [axis.id]


def test_d12_alike_texts_have_no_relation(lead):
    first = decided(lead, "Checkout must retry three times", strength="axis")
    second = decided(lead, "Checkout must retry three times, always")
    assert lead.decisions.impact(first.id).nodes == ()
    proposal = lead.decisions.propose(
        "Checkout must not retry", reason=WHY, evidence=[evidence(lead)], revises=second.id
    )
    assert proposal.guardian.type == "ALLOW"


# Impact (D10-D14)


def test_a_change_travels_the_way_each_relation_says(lead):
    hub = decided(lead, "hub")
    others = {name: decided(lead, name) for name in ("needs", "bound", "proof", "heir", "finer", "binds", "base")}
    desk = lead.decisions
    desk.relate(others["needs"].id, "DEPENDS_ON", hub.id)
    desk.relate(hub.id, "CONSTRAINS", others["bound"].id)
    desk.relate(others["proof"].id, "VALIDATES", hub.id)
    desk.relate(others["heir"].id, "SUPERSEDES", hub.id)
    desk.relate(others["finer"].id, "REFINES", hub.id)
    desk.relate(others["binds"].id, "CONSTRAINS", hub.id)
    desk.relate(hub.id, "DEPENDS_ON", others["base"].id)
    names = {other.id: name for name, other in others.items()}
    reached = {names[node.id]: str(node.relation) for node in desk.impact(hub.id).nodes}
    assert reached == {
        "needs": "DEPENDS_ON",
        "bound": "CONSTRAINS",
        "proof": "VALIDATES",
        "heir": "SUPERSEDES",
        "finer": "REFINES",
    }


def test_a_new_version_keeps_its_relations(lead):
    base, other = decided(lead, "base"), decided(lead, "other")
    lead.decisions.relate(other.id, "DEPENDS_ON", base.id)
    revised = decided(lead, "base, revised", revises=base.id)
    proposal = lead.decisions.propose("once more", reason=WHY, evidence=[evidence(lead)], revises=revised.id)
    assert [node.id for node in proposal.blast_radius.nodes] == [other.id]
    lead.decisions.unrelate(other.id, "DEPENDS_ON", base.id)
    assert lead.decisions.impact(revised.id).nodes == ()


def test_relations_are_checked(lead, seats, memory):
    a, b = decided(lead, "a"), decided(lead, "b")
    before = memory.stats().events
    for wrong, message in (
        (("LIKES", b.id), "not a relation"),
        ((None, b.id), "not a relation"),
        (("DEPENDS_ON", a.id), "relation to itself"),
    ):
        with pytest.raises(InvalidInput, match=message):
            lead.decisions.relate(a.id, *wrong)
    with pytest.raises(NotFound):
        lead.decisions.relate(a.id, "DEPENDS_ON", "nothing")
    assert memory.stats().events == before
    with pytest.raises(NotAllowed):
        seats.agent().decisions.relate(a.id, "DEPENDS_ON", b.id)
    lead.decisions.relate(a.id, "depends-on", b.id)
    after = memory.stats().events
    lead.decisions.relate(a.id, "DEPENDS_ON", b.id)
    assert memory.stats().events == after


def test_impact_tells_nobody_of_what_they_may_not_see(seats, lead):
    base = decided(lead, "base")
    agent, other = seats.agent(worktree="feat"), seats.orchestrator(worktree="feat")
    own = decided(other, "local", level="worktree")
    other.decisions.relate(own.id, "DEPENDS_ON", base.id)
    assert [node.id for node in agent.decisions.impact(base.id).nodes] == [own.id]
    assert lead.decisions.impact(base.id).nodes == ()


# Loading (D15-D19)


def loaded(seat, domain=None, **how):
    return [(one.tier, one.unit.content) for one in seat.decisions.load(domain, **how)]


@pytest.fixture
def full(seats, lead):
    """Something in every tier, written in no order."""
    person = seats.human()
    for domain in ("ui", "coding", "global"):
        for strength in ("normal", "lock", "axis"):
            decided(lead, f"{domain} {strength}", domain=domain, strength=strength)
    person.decisions.add_policy("Never lose data")
    note = lead.decisions.add_evidence("The old runbook, page 3", level="worktree")
    lead.decisions.add_anchor("where the runbook is", note.id, "runbook", domain="coding")
    return lead


def test_with_no_domain_only_what_is_global_loads(full):
    assert [text for _, text in loaded(full)] == ["Never lose data", "global axis", "global lock", "global normal"]
    assert loaded(full, "global") == loaded(full)


def test_d15_structure_comes_before_every_decision(full):
    normal = next(one for one in full.decisions.active("coding") if one.text == "coding normal")
    ui = next(one for one in full.decisions.active("ui") if one.text == "ui normal")
    full.decisions.relate(ui.id, "DEPENDS_ON", normal.id)
    assert loaded(full, "coding", around=normal.id)[:3] == [
        (1, "Never lose data"),
        (2, "ui normal"),
        (3, "global axis"),
    ]


def test_a_broken_anchor_is_reported_and_never_fatal(full, seats):
    target = next(one for one in full.decisions.active("ui") if one.text == "ui normal")
    anchor = full.decisions.add_anchor("the ui rule", target.id, "wiring", domain="coding")
    assert full.decisions.broken_anchors() == []
    decided(full, "ui normal, revised", revises=target.id)
    assert [one.id for one in full.decisions.broken_anchors()] == [anchor.id]
    assert "ui normal" not in [text for _, text in loaded(full, "coding")]
    with pytest.raises(InvalidInput, match="not a kind of anchor"):
        full.decisions.add_anchor("x", target.id, "lighthouse")
    with pytest.raises(InvalidInput, match="not a decision or evidence"):
        full.decisions.add_anchor("x", "nothing", "gotcha")


def test_r10_what_binds_is_told_apart_from_what_was_found(full, seats):
    for text in ("coding axis and lock are words", "a normal coding fact"):
        seats.vouched(text)
    found = full.recall("coding axis lock normal", domain="coding")
    bound = [(item.tier, item.unit.content) for item in found.binding]
    assert bound == [
        (1, "Never lose data"),
        (3, "global axis"),
        (4, "coding axis"),
        (5, "coding lock"),
        (5, "global lock"),
        (6, "coding normal"),
        (6, "global normal"),
    ]
    assert {item.tier for item in found.items} == {7}
    decisions = [str(item.unit.attributes["strength"]) for item in found.items if item.unit.kind == "decision"]
    assert decisions == sorted(decisions, key=["axis", "lock", "normal"].index)
    (first,) = full.recall("coding axis and lock are words", k=1, domain="coding").items
    assert first.unit.content == "coding axis and lock are words"
    assert [item.unit.content for item in full.recall("x").binding] == [
        text for _, text in bound if "coding" not in text
    ]
    assert full.recall("axis", kinds=["decision"]).binding == ()


def test_pages_of_what_is_in_force_are_the_firmest_first(lead):
    for number in range(7):
        decided(lead, FRUIT[number], strength=("normal", "lock", "axis")[number % 3], domain="coding")
    whole = lead.decisions.active("coding")
    assert [str(one.strength) for one in whole] == ["axis"] * 2 + ["lock"] * 2 + ["normal"] * 3
    pages, after = [], None
    while page := lead.decisions.active("coding", limit=2, after=after):
        pages += page
        after = page[-1].id
    assert [one.id for one in pages] == [one.id for one in whole]
    assert lead.decisions.active("coding", limit=0) == []


def test_the_desk_can_be_imported_by_its_public_path(lead):
    assert isinstance(lead.decisions, Decisions)


@pytest.mark.parametrize(
    ("text", "summary", "only_why", "why"),
    [
        (
            "Retries are capped at three",
            "more hammers the bank in an outage",
            "what hammers the bank?",
            "why cap retries?",
        ),
        ("재시도는 세 번까지 한다", "장애 때 은행에 부담을 준다", "은행 부담", "왜 재시도를 세 번까지 하나요?"),
    ],
)
def test_a_decision_is_found_by_its_reason_and_shows_it_to_who_asks_for_it(seats, text, summary, only_why, why):
    desk = (person := seats.human()).decisions
    person.remember("The pump runs at night", attributes={"root": "it only looks like a decision"})
    desk.commit(desk.propose("Receipts are kept for a year", reason=WHY, snapshots=["the law"]))
    made = desk.commit(desk.propose(text, reason=Reason("risk", summary, "orders fail early"), snapshots=["seen"]))
    for question in (only_why, why):
        first = person.recall(question, kinds=["decision"]).items[0]
        assert (first.unit.id, first.notes) == (made.id, (f"because: {summary}; it costs: orders fail early",))
    assert person.recall(text, kinds=["decision"]).items[0].notes == ()
    assert f"(because: {summary}; it costs: orders fail early)" in person.context(why).text

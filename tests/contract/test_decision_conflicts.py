"""A decision that opposes an axis or a lock is refused (R12), and an agent's proposal waits for an answer."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mnemarch
from mnemarch import Citation, Conflict, InvalidInput, NotAllowed, NotFound
from mnemarch.model.decision import Reason

WHY = Reason("risk", "more hammers the bank")
LOCK = "Retries are capped at three"


def proposed(seat, text, **fields):
    return seat.decisions.propose(text, reason=WHY, snapshots=["seen"], **fields)


def decided(seat, text, **fields):
    return seat.decisions.commit(proposed(seat, text, **fields))


@pytest.mark.parametrize(
    "text",
    ["Retries are capped at nine", "Retries are not capped at three", "The retries will be capped at nine", "재시도"],
)
def test_r12_a_proposal_shows_the_lock_that_it_contradicts(lead, text):
    lock = decided(lead, LOCK, strength="lock", domain="pay")
    proposal = proposed(lead, text, domain="pay")
    assert [one.id for one in proposal.conflicts] == ([] if text == "재시도" else [lock.id])
    assert proposal.guardian.type == "ALLOW", "the verdict rests on strength and relations alone"


def test_r12_also_in_korean(lead):
    lock = decided(lead, "토큰은 저장하면 안 된다", strength="lock")
    assert [one.id for one in proposed(lead, "토큰을 저장해야 한다").conflicts] == [lock.id]
    assert proposed(lead, "토큰을 저장하지 말아야 한다").conflicts == ()


@pytest.mark.parametrize(
    ("lock", "text", "is_opposed"),
    [
        ("Use PostgreSQL for orders", "주문은 MySQL을 쓴다", True),
        ("주문은 MySQL을 쓴다", "Use PostgreSQL for orders", True),
        ("Never log card numbers", "카드 번호를 로그에 남긴다", True),
        ("Never log card numbers", "주문 번호를 로그에 남긴다", False),
        ("주문은 PostgreSQL을 쓴다", "Use PostgreSQL for orders", False),
    ],
)
def test_r12_a_decision_is_compared_with_a_lock_in_the_other_language(lead, lock, text, is_opposed):
    held = decided(lead, lock, strength="lock")
    assert [one.id for one in proposed(lead, text).conflicts] == [held.id] * is_opposed


def test_what_holds_everywhere_is_contradicted_in_every_domain_and_the_firmest_comes_first(lead):
    lock = decided(lead, LOCK, strength="lock", domain="pay")
    decided(lead, "Retries are capped at four", strength="lock", domain="ui")
    axis = decided(lead, "Retries are capped at five", strength="axis")
    proposal = proposed(lead, "Retries are capped at nine", domain="pay")
    assert [one.id for one in proposal.conflicts] == [axis.id, lock.id]
    assert [one.id for one in proposed(lead, "Retries are capped at nine").conflicts] == [axis.id]


def test_what_says_the_same_or_was_replaced_is_no_conflict(lead):
    lock = decided(lead, LOCK, strength="lock")
    assert proposed(lead, "Retries are capped at 3").conflicts == ()
    assert proposed(lead, "Payments are capped at nine").conflicts == ()
    revision = proposed(lead, "Retries are capped at nine", revises=lock.id)
    assert [one.id for one in revision.conflicts] == [lock.id], "what it revises is named once"
    lead.decisions.commit(revision)
    assert [one.text for one in proposed(lead, LOCK).conflicts] == ["Retries are capped at nine"]


def test_what_holds_in_one_worktree_is_not_contradicted_by_the_project(lead):
    local = decided(lead, LOCK, strength="lock", level="worktree")
    assert proposed(lead, "Retries are capped at nine").conflicts == ()
    assert [one.id for one in proposed(lead, "Retries are capped at nine", level="worktree").conflicts] == [local.id]


def test_r12_what_opposes_a_lock_is_refused_and_the_answer_names_it(seats, lead):
    lock = decided(lead, LOCK, strength="lock")
    for seat, override in ((lead, None), (lead, "I want to"), (seats.human(), None)):
        with pytest.raises(NotAllowed) as refused:
            seat.decisions.commit(proposed(seat, "Retries are capped at nine"), override=override)
        assert refused.value.rule == "R12"
        assert f"BLOCK: It opposes the lock {lock.id} (version 1)" in refused.value.message
        assert f"revises='{lock.id}'" in refused.value.hint
        assert "override='why'" in refused.value.hint
    assert [one.id for one in lead.decisions.active()] == [lock.id]
    assert decided(lead, "Retries are capped at nine", revises=lock.id).version == 2, "what it revises is no obstacle"


@pytest.mark.parametrize("side", ["lock", "new"])
def test_r12_an_override_opens_a_conflict_that_only_a_new_version_closes(seats, lead, memory, side):
    lock, person = decided(lead, LOCK, strength="lock"), seats.human()
    new = person.decisions.commit(proposed(person, "Retries are capped at nine"), override="the bank asked")
    (conflict,) = lead.conflicts()
    assert set(conflict.units) == {lock.id, new.id}
    for one in (lock, new):
        assert [dispute.id for dispute in lead.explain(one.id).disputes] == [conflict.id]
    bound = {item.unit.id: item.label.endswith("[CONTESTED]") for item in lead.recall("zebra").binding}
    assert bound == {lock.id: True, new.id: True}
    for settle in ({"winner": lock.id}, {"both": True}):
        with pytest.raises(InvalidInput, match="it can't replace a unit or be replaced"):
            person.resolve(conflict.id, **settle, reason="enough")
    old = lock if side == "lock" else new
    person.decisions.commit(proposed(person, "Nobody retries", revises=old.id), override="enough")
    assert lead.conflicts() == []
    assert memory.rebuild().same


@pytest.mark.parametrize("side", ["lock", "new"])
def test_r12_a_new_version_that_still_opposes_the_other_side_keeps_the_conflict_open(seats, lead, memory, side):
    lock, person = decided(lead, LOCK, strength="lock"), seats.human()
    new = person.decisions.commit(proposed(person, "Retries are capped at nine"), override="the bank asked")
    old, other, strength = (lock, new, "lock") if side == "lock" else (new, lock, "normal")
    revision = proposed(person, "Retries are capped at four", revises=old.id, strength=strength)
    newer = person.decisions.commit(revision, override="enough")
    (conflict,) = lead.conflicts()
    assert set(conflict.units) == {newer.id, other.id}
    assert memory.rebuild().same


# Requests


def test_r12_what_an_agent_proposes_waits_and_becomes_a_fresh_proposal_of_whoever_accepts(seats, lead):
    agent = seats.agent("coder-7", worktree="feat", task="T-9")
    page = agent.decisions.add_evidence("the bank's page")
    proposal = agent.decisions.propose(LOCK, reason=WHY, evidence=[page.id], strength="lock", domain="pay")
    answer = agent.decisions.commit(proposal)
    assert (answer.rule, lead.decisions.active("pay")) == ("R12", [])
    (request,) = lead.decisions.requests()
    assert f"waits in the inbox as request {request.id}" in answer.reason
    assert agent.decisions.commit(proposal).unit_id == request.id, "asked once, however often"
    assert (request.actor, request.text, request.strength, request.revises) == (agent.actor, LOCK, "lock", None)
    with pytest.raises(NotAllowed):
        agent.decisions.accept_request(request.id)
    decision = lead.decisions.accept_request(request.id)
    assert (decision.text, decision.strength, decision.domain, str(decision.unit.level)) == (
        LOCK,
        "lock",
        "pay",
        "project",
    )
    assert (decision.unit.author, decision.unit.attributes["requested_by"]) == (lead.actor, str(agent.actor))
    assert lead.get(decision.evidence[0]).content == "the bank's page", "it is seen wherever the decision is"
    assert lead.decisions.requests() == []
    with pytest.raises(NotFound):
        lead.decisions.accept_request(request.id)


def test_r12_a_request_is_declined_with_a_reason_and_a_stale_one_is_a_conflict(seats, lead):
    agent, base = seats.agent(), decided(lead, "Use files")
    asked = [agent.decisions.commit(proposed(agent, text, revises=base.id)).unit_id for text in ("Use tape", "Use it")]
    newer = decided(lead, "Use SQLite", revises=base.id)
    with pytest.raises(Conflict) as stale:
        lead.decisions.accept_request(asked[0])
    assert (stale.value.current.id, stale.value.proposed.id) == (newer.id, base.id)
    with pytest.raises(NotAllowed):
        agent.decisions.decline_request(asked[1], "changed my mind")
    lead.decisions.decline_request(asked[1], "no tape here")
    assert [one.id for one in seats.human().decisions.requests()] == asked[:1]
    assert seats.orchestrator(project="other").decisions.requests() == []


# Nothing that an agent does alone changes what binds

TEXTS = (LOCK, "Retries are capped at nine", "Never lose data", "Data may be lost", "A plain fact")
which = st.integers(0, 20)
texts = st.sampled_from(TEXTS)
levels = st.sampled_from(["task", "worktree", "project", "org"])
deeds = st.one_of(
    st.tuples(
        st.just("remember"), texts, st.sampled_from(["fact", "policy", "decision", "evidence", "anchor"]), levels
    ),
    st.tuples(st.just("decide"), texts, st.sampled_from(["normal", "lock", "axis"]), levels, st.none() | which),
    st.tuples(st.sampled_from(["approve", "reject", "archive", "revive", "erase", "promote", "use", "cite"]), which),
    st.tuples(st.sampled_from(["supersede", "resolve", "relate", "unrelate"]), which, which),
    st.tuples(st.just("validate"), which, st.sampled_from(["tests_failed", "contradicted", "pr_reverted"])),
    st.tuples(st.sampled_from(["add_policy", "accept", "decline", "verify"]), texts),
)


class Hostile:
    """An agent that tries everything on whatever it can see, with an honest name."""

    def __init__(self, seat):
        self.seat, self.desk = seat, seat.decisions

    def ids(self):
        return [unit.id for unit in self.seat.units(limit=1_000)] or ["nothing"]

    def one(self, number):
        return self.ids()[number % len(self.ids())]

    def do(self, deed):
        name, *how = deed
        with suppress(InvalidInput, NotAllowed, NotFound, Conflict):
            getattr(self, f"_{name}", None) and getattr(self, f"_{name}")(*how)
            if name in ("reject", "archive", "revive", "erase"):
                getattr(self.seat, name)(self.one(how[0]), "because")
            elif name in ("approve", "use"):
                getattr(self.seat, name)(self.one(how[0]))
            elif name in ("relate", "unrelate"):
                getattr(self.desk, name)(self.one(how[0]), "CONSTRAINS", self.one(how[1]))

    def _remember(self, text, kind, level):
        self.seat.remember(text, kind=kind, level=level, citations=[Citation.test("t")])

    def _decide(self, text, strength, level, revises):
        base = None if revises is None else self.one(revises)
        self.desk.commit(proposed(self.seat, text, strength=strength, level=level, revises=base), override="why not")

    def _promote(self, number):
        self.seat.promote(self.one(number), "worktree")

    def _cite(self, number):
        self.seat.cite(self.one(number), Citation.test("t"))

    def _supersede(self, new, old):
        self.seat.supersede(self.one(new), self.one(old), "because")

    def _resolve(self, number, winner):
        conflicts = self.seat.conflicts()
        if conflicts:
            conflict = conflicts[number % len(conflicts)]
            self.seat.resolve(conflict.id, winner=conflict.units[winner % 2], reason="because")

    def _validate(self, number, signal):
        self.seat.validate(self.one(number), signal)

    def _add_policy(self, text):
        self.desk.add_policy(text, level="project")

    def _accept(self, _):
        self.desk.accept_request(self.desk.requests()[0].id if self.desk.requests() else "nothing")

    def _decline(self, text):
        self.desk.decline_request(self.desk.requests()[0].id if self.desk.requests() else "nothing", text)

    def _verify(self, _):
        self.seat.verify(True, tests=["t"])


@settings(max_examples=60)
@given(st.lists(deeds, min_size=5, max_size=30))
def test_nothing_that_agents_do_alone_changes_what_binds(seats_of, deeds):
    with mnemarch.open(":memory:") as memory:
        seats = seats_of(memory)
        person, lead, watcher = seats.human(), seats.orchestrator(), seats.human("watcher")
        person.decisions.add_policy("Never lose data")
        axis = decided(person, "One store", strength="axis")
        lock = decided(person, LOCK, strength="lock")
        decided(lead, "Use tabs in this tree", strength="lock", level="worktree")
        person.decisions.relate(axis.id, "CONSTRAINS", lock.id)
        before = binding_of(watcher)
        agents = [Hostile(seats.agent(name)) for name in ("coder-1", "coder-2")]
        for number, deed in enumerate(deeds):
            agents[number % 2].do(deed)
        assert binding_of(watcher) == before


def binding_of(seat):
    """The policies, axes and locks, and which relations hold them; what a task uses only moves what is near it up."""
    bound = [item.unit for item in seat.recall("zebra").binding if item.unit.attributes.get("strength") != "normal"]
    held = [seat.decisions.relations(unit.id) for unit in bound if unit.kind == "decision"]
    return {(unit.id, unit.content, unit.status) for unit in bound}, {str(one) for each in held for one in each}

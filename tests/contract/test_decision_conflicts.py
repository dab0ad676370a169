"""What a proposal contradicts is shown before it is committed (R12), and decides nothing (D11)."""

from __future__ import annotations

import pytest

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


def test_what_holds_everywhere_is_contradicted_in_every_domain_and_the_firmest_comes_first(lead):
    lock = decided(lead, LOCK, strength="lock", domain="pay")
    axis = decided(lead, "Retries are capped at five", strength="axis")
    decided(lead, "Retries are capped at four", strength="lock", domain="ui")
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


def test_what_holds_in_one_worktree_is_not_contradicted_by_the_project(seats, lead):
    agent = seats.agent()
    local = decided(agent, LOCK, strength="lock", level="worktree")
    assert proposed(lead, "Retries are capped at nine").conflicts == ()
    assert [one.id for one in proposed(agent, "Retries are capped at nine", level="worktree").conflicts] == [local.id]

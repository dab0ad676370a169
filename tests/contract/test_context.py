"""Context packing: whole units in recall's order, within the budget, and never stored again as new."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mnemarch
from mnemarch import Actor, EventType, InvalidInput, Scope
from mnemarch.model.stamps import short_id
from mnemarch.model.unit import TRUSTED, Kind, Proof, Status
from mnemarch.model.value import replace
from mnemarch.policy.trust import head_of, label_of
from mnemarch.text.prompt import entry, estimated_tokens, fenced

FACTS = [f"Checkout step {number} retries order {number * 7} {'again ' * number}".strip() for number in range(12)]


def told(seats):
    agent = seats.agent()
    for fact in FACTS:
        agent.remember(fact)
    return agent


@pytest.mark.parametrize("budget", [0, 50, 120, 300, 1000, 100_000])
def test_a_pack_fits_its_budget_and_says_what_it_left_out(seats, budget):
    pack = told(seats).context("which checkout step retries", budget)
    assert pack.tokens <= budget
    assert pack.tokens == (estimated_tokens(pack.text) if pack.text else 0)
    assert pack.left_out if budget < 100 else pack.items
    assert all(item.unit.content in pack.text and short_id(item.unit.id)[:6] in pack.text for item in pack.items)
    assert all(short_id(held.unit_id)[:6] not in pack.text and str(budget) in held.reason for held in pack.left_out)


def test_items_come_in_the_order_of_recall_trusted_first_and_labelled(seats):
    agent = told(seats)
    seats.human().approve(agent.remember("Checkout step order is audited").unit.id)
    pack = agent.context("checkout step order", 5000)
    recalled = [item.unit.id for item in agent.recall("checkout step order", k=50).items]
    assert [item.unit.id for item in pack.items] == recalled[: len(pack.items)]
    assert pack.text.index("[VERIFIED by alice]") < pack.text.index("[HYPOTHESIS]")
    assert sum(line.startswith("[HYPOTHESIS]") for line in pack.text.splitlines()) == 2, "beside what is verified"


@pytest.mark.parametrize("is_sure", [True, False])
def test_an_item_costs_at_most_fifteen_tokens_beyond_its_content(seats, is_sure):
    for fact in FACTS:
        seats.vouched(fact) if is_sure else seats.agent().remember(fact)
    pack = seats.agent().context("which checkout step retries", 5_000)
    assert len(pack.items) == len(FACTS)
    content = sum(estimated_tokens(item.unit.content) for item in pack.items)
    assert (pack.tokens - estimated_tokens(fenced([])) - content) / len(FACTS) <= 15


NOW = datetime(2026, 11, 17, tzinfo=UTC)
SEEN = Proof(by=("test:tests/shop/test_checkout.py::test_sessions_end_after_logout",), witnessed=True, at=NOW)
VERIFIED = [
    SEEN,
    replace(SEEN, by=("human:ada",)),
    replace(SEEN, witnessed=False),
    replace(SEEN, worktree="feat/login"),
    replace(SEEN, flaky=True),
    replace(SEEN, until=NOW),
]
KEPT = [
    {},
    {"kept_as": "observed", "kept_by": "terraform validate, 2026-11-17"},
    {"kept_as": "accepted", "kept_by": "lead"},
    {"kept_as": "imported"},
    {"kept_as": "lesson", "kept_by": "3 episodes"},
]


def test_the_heads_of_all_labels_cost_at_most_fifteen_tokens_on_average(seats):
    unit = seats.agent().remember("Checkout retries three times").unit
    units = [replace(unit, status=status, proof=proof) for status in sorted(TRUSTED) for proof in VERIFIED]
    units += [replace(unit, attributes=kept) for kept in KEPT]
    units += [replace(unit, kind=Kind.EPISODE), replace(unit, kind=Kind.SKILL, attributes={"successes": 3})]
    units += [replace(unit, proof=SEEN, fell_from=Status.VERIFIED)]
    labels = [(each, label_of(each, is_elsewhere=True, is_contested=lost)) for each in units for lost in (False, True)]
    entries = {label: entry(f"{head_of(each, label)} 9f3a1c", unit.content) for each, label in labels}
    assert len(entries) > 30
    content = estimated_tokens(unit.content)
    assert estimated_tokens("\n".join(entries.values())) / len(entries) - content <= 15
    assert max(map(estimated_tokens, entries.values())) - content <= 17
    assert {head_of(each, label) for each, label in labels} >= {
        "[VERIFIED]", "[VERIFIED by ada]", "[REPORTED]", "[VERIFIED elsewhere]", "[VERIFIED, flaky]", "[VERIFIED once]",
        "[HYPOTHESIS, fails]", "[OBSERVED]", "[CONTESTED] verified",
    }  # fmt: skip


def test_the_callers_own_tokenizer_decides(seats):
    agent = told(seats)
    pack = agent.context("checkout", 400, count=len)
    assert pack.tokens == len(pack.text) <= 400


def test_only_what_was_packed_counts_as_handed_out(memory, seats):
    agent = told(seats)
    pack = agent.context("which checkout step retries", 150)
    events = memory._engine.store.read(lambda reader: list(reader.events()))
    (handed,) = [event.payload["units"] for event in events if event.type is EventType.RECALLED]
    assert handed == [item.unit.id for item in pack.items]


def test_a_context_that_comes_back_is_a_mention_and_nothing_new(memory, seats):
    agent = told(seats)
    before = memory.stats().units
    pack = agent.context("which checkout step retries", 300)
    echoed = agent.remember(pack.text)
    assert echoed.merged
    assert echoed.unit.id == pack.items[0].unit.id
    own = agent.remember(f"Given this:\n{pack.text}\nI conclude that pears are cheaper")
    assert own.unit.content.split() == ["Given", "this:", "I", "conclude", "that", "pears", "are", "cheaper"]
    assert memory.stats().units == before + 1


def test_an_episode_does_not_repeat_units_that_the_task_received(seats):
    agent = told(seats)
    pack = agent.context("which checkout step retries", 300)
    agent.log("plan", f"{pack.text}\nRaise the limit")
    episode = agent.get(agent.verify(True).episode_id)
    assert "Raise the limit" in episode.content
    assert pack.items[0].unit.content not in episode.content


def test_a_fence_that_names_nothing_here_is_refused_with_a_hint(seats):
    pack = told(seats).context("checkout", 300)
    with pytest.raises(InvalidInput, match="only repeats recalled memory"):
        seats.agent(project="elsewhere").remember(pack.text)


@settings(max_examples=30)
@given(st.lists(st.text(min_size=1, max_size=80).filter(str.strip), min_size=1, max_size=6), st.integers(0, 600))
def test_any_content_is_fenced_whole_and_inside_the_budget(contents, budget):
    with mnemarch.open(":memory:") as memory:
        seat = memory.seat(Actor.agent("a"), Scope(project="p", task="t"))
        for content in contents:
            seat.remember(f"pear {content}")
        pack = seat.context("pear", budget)
        assert pack.tokens <= budget
        assert pack.text.count("</mnemarch-memory ") == (1 if pack.text else 0)

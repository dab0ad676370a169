"""Conflicts by topic and subject (R6): which units dispute, what one more member costs, and how it is settled."""

from __future__ import annotations

import pytest

from mnemarch import Actor, Citation, Conflict, InvalidInput, Kind, Status
from mnemarch.stores.sql.reader import Reader

VALUES = ("Redis", "Postgres", "MySQL")


def stated(seats, values=VALUES, **fields):
    return [seats.agent(f"a-{v}").remember(f"Sessions are stored in {v}", level="worktree", **fields) for v in values]


def test_r6_one_conflict_lists_the_values_and_is_decided_at_one_stroke(memory, seats):
    units = [answer.unit.id for answer in stated(seats)]
    (conflict,) = seats.agent().conflicts()
    assert (conflict.units, conflict.values) == (tuple(units), VALUES)
    decided = seats.orchestrator().resolve(conflict.id, winner=units[1], reason="measured")
    assert (decided.winner, decided.decision, decided.open) == (units[1], "measured", False)
    after = [seats.agent().get(unit_id) for unit_id in units]
    assert [unit.superseded_by for unit in after] == [units[1], None, units[1]]
    assert [unit.confidence for unit in after] == pytest.approx([0.15, 0.3, 0.15])
    assert seats.agent().conflicts() == []
    assert memory.rebuild().same


def test_without_a_winner_all_members_hold_and_are_not_opposed_again(memory, seats):
    units = [answer.unit for answer in stated(seats)]
    (conflict,) = seats.agent().conflicts()
    with pytest.raises(InvalidInput, match="2 losing sides"):
        seats.orchestrator().resolve(conflict.id, winner=units[0].id, reason="why", expected_version=1)
    seats.orchestrator().resolve(conflict.id, both=True, reason="three tiers")
    assert all(seats.agent().get(unit.id).live for unit in units)
    assert seats.agent().conflicts() == []
    assert memory.stats().open_conflicts == 0


@pytest.mark.parametrize("closed", [False, True])
def test_r16_erasing_a_member_leaves_the_conflict_of_the_others(memory, seats, closed):
    units = [answer.unit for answer in stated(seats)]
    (conflict,) = seats.agent().conflicts()
    if closed:
        seats.orchestrator().resolve(conflict.id, both=True, reason="three tiers")
    seats.human().erase(units[2].id, "private")
    left = [each.units for each in seats.agent().conflicts()]
    assert left == ([] if closed else [(units[0].id, units[1].id)])
    assert [each.open for each in seats.agent().explain(units[0].id).disputes] == [not closed]
    seats.human().erase(units[1].id, "private")
    assert seats.agent().conflicts() == []
    assert memory.rebuild().same


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"domain": "web"}, {"domain": "batch"}),
        ({"citations": [Citation.file("packages/web/a.py")]}, {"citations": [Citation.file("packages/batch/b.py")]}),
        ({"citations": [Citation.file("web/a.py")]}, {"citations": [Citation.symbol("batch/b.py", "run")]}),
    ],
)
def test_r6_two_domains_and_two_packages_do_not_dispute(memory, seats, tmp_path, first, second):
    for path in ("packages/web/a.py", "packages/batch/b.py", "web/a.py", "batch/b.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("def run():\n    pass\n")
    agent = memory.seat(Actor.agent("a"), seats.HOME, root=tmp_path)
    agent.remember("The timeout is 3 seconds", **first)
    assert agent.remember("The timeout is 5 seconds", **second).conflicts == ()
    assert len(agent.remember("The timeout is 7 seconds").conflicts) == 1, "one that holds everywhere does"


@pytest.mark.parametrize("changed", [True, False])
def test_r8_what_cites_two_forms_of_one_symbol_holds_in_two_trees_and_does_not_dispute(
    memory, seats, tmp_path, changed
):
    agent = memory.seat(Actor.agent("a"), seats.HOME, root=tmp_path)
    for number, said in ((3, "three"), (5, "five")):
        (tmp_path / "pay.py").write_text(f"def retry(n={number if changed else 3}):\n    return {number}\n")
        told = agent.remember(f"retry tries {said} times", citations=[Citation.symbol("pay.py", "retry")])
    assert len(told.conflicts) == (0 if changed else 1)
    assert not changed or [item.label for item in agent.recall("how often does retry try?").items] == ["[HYPOTHESIS]"]


def test_r6_two_persons_preferences_do_not_dispute(seats):
    for name, style in (("ada", "tabs"), ("bob", "spaces")):
        own = {"kind": Kind.PREFERENCE, "level": "project", "citations": [Citation.human(name)]}
        assert seats.human(name).remember(f"Indent Python files with {style}", **own).conflicts == ()
    assert seats.human("ada").conflicts() == []


@pytest.mark.parametrize("ended", ["We no longer use Redis for sessions", "더 이상 세션을 Redis에 저장하지 않는다"])
def test_who_says_the_old_state_again_announces_no_change(seats, ended):
    agent = seats.agent()
    for text in (ended, "세션은 Redis에 저장한다" if "세션" in ended else "Sessions live in Redis"):
        assert agent.recall(agent.remember(text).unit.content).items
    assert [dispute.proposal for dispute in agent.conflicts()] == [None]


def test_r6_an_announced_change_is_a_proposal_that_supersedes_nothing_by_itself(seats):
    agent = seats.agent()
    old = agent.remember("The search index lives in Elasticsearch", level="worktree").unit
    new = agent.remember("We moved the search index from Elasticsearch to OpenSearch", level="worktree").unit
    (proposal,) = agent.conflicts()
    assert (proposal.proposal, set(proposal.units)) == (new.id, {old.id, new.id})
    assert agent.get(old.id).live
    seats.orchestrator().resolve(proposal.id, winner=new.id, reason="so it was announced")
    assert agent.get(old.id).superseded_by == new.id


def test_r5_the_second_replacement_of_a_unit_is_contested_and_comes_after_the_first(memory, seats):
    boss = seats.orchestrator()
    old, first, second = (
        boss.remember(text, level="worktree").unit
        for text in ("Deploys take an hour", "The deploy pipeline is slow", "The deploy deploy pipeline has ten steps")
    )
    boss.supersede(first.id, old.id, "measured")
    with pytest.raises(Conflict):
        boss.supersede(second.id, old.id, "counted")
    (conflict,) = boss.conflicts()
    assert set(conflict.units) == {first.id, second.id}
    items = boss.recall("deploy pipeline steps").items
    assert [item.unit.id for item in items] == [first.id, second.id]
    assert "[CONTESTED]" in items[1].label
    assert memory.rebuild().same


def test_r6_units_that_cite_one_test_and_state_other_values_are_related_across_languages(seats):
    agent = seats.agent()
    cited = [Citation.test("tests/test_pay.py::test_retry")]
    first = agent.remember("Checkout retries 3 times", citations=cited).unit
    second = agent.remember("결제는 5번 다시 시도한다", citations=cited).unit
    links = seats.memory._engine.store.read(lambda reader: reader.links_of(second.id))
    assert [(link.type, link.target) for link in links] == [("similar_to", first.id)]


@pytest.mark.parametrize("status", [Status.VERIFIED, Status.HYPOTHESIS])
def test_r6_the_hundredth_member_asks_the_store_no_more_than_the_fifth(seats, monkeypatch, status):
    """Counted in queries and in the units that they give."""
    asked: list[int] = []
    query = Reader.query

    def counted(self, name, /, **parameters):
        rows = query(self, name, **parameters)
        if name in {"units_of_topic", "units", "conflicts_of", "units_of_link", "links_of"}:
            rows = list(rows)
            asked.append(len(rows))
            return iter(rows)
        asked.append(0)
        return rows

    monkeypatch.setattr(Reader, "query", counted)
    costs = []
    for number in range(100):
        asked.clear()
        text = f"The billing service listens on port {8000 + number}"
        seats.vouched(text) if status is Status.VERIFIED else seats.agent().remember(text)
        costs.append((len(asked), sum(asked)))
    assert costs[-1] <= max(costs[5:10])

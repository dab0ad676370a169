"""A unit's life across verbs: how promotion, revival, echo, erasure and recall work together."""

import os
import shutil
import threading

import pytest

import mnemarch
from mnemarch import (
    Actor,
    Citation,
    Conflict,
    EventType,
    InvalidInput,
    Level,
    NotAllowed,
    Refused,
    Scope,
    Status,
    can_promote,
)
from mnemarch.config import config_from

SOON_INDEXED = config_from({"store": {"index_tail_max": 50}})


def test_r5_promotion_opens_the_conflict_with_a_unit_of_the_wider_level(seats):
    for worktree, times in (("w1", 3), ("w2", 5)):
        unit = seats.agent(worktree=worktree).remember(f"Checkout retries {times} times", level="worktree").unit
        seats.human(worktree=worktree).approve(unit.id)
        seats.orchestrator(worktree=worktree).promote(unit.id, to="project")
    reader = seats.agent("r", worktree="w3")
    assert len(reader.conflicts()) == 1
    assert {item.label for item in reader.recall("checkout retries").items} == {"[VERIFIED by alice] [CONTESTED]"}


def test_a_unit_is_contested_only_for_those_who_see_its_rival_and_while_that_is_live(seats):
    project = seats.vouched("Deploys take 3 hours").unit
    rival, stranger = seats.agent("b", worktree="w2", task="T-2"), seats.agent("c", worktree="w3", task="T-3")
    against = rival.remember("Deploys take 5 hours").unit
    assert stranger.recall("deploys hours").items[0].label == "[VERIFIED by alice]"
    assert rival.recall("deploys hours").items[0].label == "[VERIFIED by alice] [CONTESTED]"
    seats.system(worktree="w2", task="T-2").archive(against.id, "old")
    assert rival.conflicts() == []
    assert rival.recall("deploys hours").items[0].label == "[VERIFIED by alice]"
    assert rival.get(project.id).live


def test_r2_many_hypotheses_do_not_crowd_out_a_verified_unit(seats):
    trusted = seats.vouched(
        "The checkout of the shop has a retry which is described here in a rather long and winding sentence"
    )
    agent = seats.agent()
    agent.remember_many([mnemarch.Claim(content=f"checkout retry{n} checkout retry") for n in range(60)])
    items = agent.recall("checkout retry", k=8).items
    assert items[0].unit.id == trusted.unit.id
    assert len(items) == 3, "beside it two hypotheses"


def test_a_unit_is_recalled_once_even_if_several_filters_match_it(seats):
    agent = seats.agent()
    agent.remember("The only fact", domain="global")
    assert len(agent.recall("", domain="global").items) == 1
    assert len(agent.recall("?", kinds=["fact", "fact"]).items) == 1


def test_r6_a_claim_for_a_wider_level_is_no_echo(memory, seats):
    agent = seats.agent()
    agent.remember("The build needs node twenty", level="task")
    assert agent.recall("build node").items
    wider = agent.remember("The build needs node twenty", level="worktree")
    assert wider.unit.level is Level.WORKTREE


def test_a_revived_unit_gets_the_status_of_its_evidence_and_is_never_a_duplicate(seats):
    agent, system, human = seats.agent(), seats.system(), seats.human("alice")
    first = agent.remember("Logs are kept ten days").unit
    system.archive(first.id, "old")
    human.cite(first.id, Citation.human("alice"))
    assert system.revive(first.id, "back").status is Status.VERIFIED
    system.archive(first.id, "old")
    agent.remember("Logs are kept ten days")
    with pytest.raises(Conflict):
        system.revive(first.id, "back")


def test_only_a_rejection_is_undone_by_an_approval(seats):
    agent, boss = seats.agent(), seats.orchestrator()
    unit = agent.remember("The cache is warm").unit
    seats.system().archive(unit.id, "rejected by nobody")
    assert boss.approve(unit.id).status is Status.ARCHIVED
    other = agent.remember("The cache is cold at night").unit
    boss.reject(other.id, "wrong")
    assert boss.approve(other.id).status is Status.HYPOTHESIS


def test_a_unit_whose_test_failed_since_is_not_promoted(seats):
    agent, boss = seats.agent(), seats.orchestrator()
    unit = agent.remember("Totals are rounded down", citations=[Citation.test("t")]).unit
    seats.saw("t", turned=False)
    assert agent.get(unit.id).status is Status.VERIFIED
    seats.saw("t", passed=False)
    refused = boss.promote(unit.id, to="project")
    assert isinstance(refused, Refused)
    assert (refused.rule, "hypothesis" in refused.reason) == ("G23.validation", True)


def test_a_key_whose_content_was_erased_is_not_given_to_other_content(memory, seats):
    agent = seats.agent()
    unit = agent.remember("Mina lives at the harbour", key="k").unit
    seats.human("alice").erase(unit.id, "privacy")
    with pytest.raises(Conflict):
        agent.remember("Wholly different words", key="k")


def test_r16_an_erasure_that_empties_a_decision_or_a_verification_can_be_replayed(memory, seats):
    agent, human = seats.agent(), seats.human("alice")
    quoted = agent.remember("The turquoise door squeaks").unit
    left = agent.remember("Use 3 workers").unit
    right = agent.remember("Use 5 workers").unit
    (conflict,) = human.conflicts()
    human.resolve(conflict.id, winner=left.id, reason="because The turquoise door squeaks")
    named = agent.remember("tests/a.py::test_turquoise").unit
    agent.verify(True, tests=["tests/b.py::test_plain"])
    agent.verify(False, tests=["tests/b.py::test_plain", "tests/a.py::test_turquoise"])
    for unit in (quoted, named):
        human.erase(unit.id, "privacy", copies=True)
        assert memory.rebuild().same
    assert human.conflicts() == []
    assert human.get(right.id).superseded_by == left.id


def test_r16_every_spelling_that_was_merged_is_erased(memory, seats):
    agent = seats.agent()
    unit = agent.remember("Bob Smith earns ninety thousand").unit
    seats.agent("coder-2").remember("BOB SMITH earns: ninety thousand!")
    agent.log("note", "he said BOB SMITH earns: ninety thousand! and left")
    seats.human("alice").erase(unit.id, "privacy", copies=True)
    assert not any("BOB SMITH" in (event.body or "") for event in seats.events())


def test_a_memory_may_be_closed_twice(tmp_path):
    with mnemarch.open(tmp_path) as memory:
        memory.seat(Actor.agent("a"), Scope(project="p", task="t")).remember("Something worth knowing")
        memory.close()
    with mnemarch.open(tmp_path) as again:
        assert (again.stats().units, again.audit().ok) == (1, True)


def test_secrets_in_names_never_take_a_seat(memory):
    token = "gh" + "p_" + "a1B2" * 9
    for scope in (Scope(project=token), Scope(project="p", task=f"fix {token}")):
        with pytest.raises(InvalidInput):
            memory.seat(Actor.agent("a"), scope)
    with pytest.raises(InvalidInput):
        memory.seat(Actor.agent(token), Scope(project="p"))


def test_g6_levels_may_be_named():
    assert can_promote("task", "project")
    assert not can_promote("project", "task")


class TestTheIndexIsDerived:
    def filled(self, folder, count=70):
        memory = mnemarch.open(folder, config=SOON_INDEXED)
        seat = memory.seat(Actor.agent("a"), Scope(project="p", task="t"))
        seat.remember_many([mnemarch.Claim(content=f"thing{n} stands on shelf{n}") for n in range(count)])
        return memory, seat

    def test_a_restored_backup_finds_units_remembered_after_it(self, tmp_path):
        memory, seat = self.filled(tmp_path / "m")
        memory.backup(tmp_path / "backup.db")
        seat.remember_many([mnemarch.Claim(content=f"later{n} came") for n in range(20)])
        memory.reindex()
        memory.close()
        shutil.copy(tmp_path / "backup.db", tmp_path / "m/.mnemarch/memory.db")
        with mnemarch.open(tmp_path / "m", config=SOON_INDEXED) as restored:
            seat = restored.seat(Actor.agent("a"), Scope(project="p", task="t"))
            for n in range(30):
                seat.remember(f"zebra{n} lives in the kitchen")
            assert seat.recall("zebra7").items[0].unit.content == "zebra7 lives in the kitchen"
            assert seat.recall("thing5 shelf5").items[0].unit.content == "thing5 stands on shelf5"
            assert seat.recall("later3").items == ()

    def test_an_index_that_another_process_began_anew_loses_nothing(self, tmp_path):
        first, seat = self.filled(tmp_path)
        first.reindex()
        shutil.rmtree(tmp_path / ".mnemarch/index")
        with mnemarch.open(tmp_path, config=SOON_INDEXED) as second:
            second.seat(Actor.agent("b"), Scope(project="p", task="t")).recall("thing1")
        seat.remember("zebra lives in the kitchen")
        first.reindex()
        first.close()
        with mnemarch.open(tmp_path, config=SOON_INDEXED) as third:
            reader = third.seat(Actor.agent("c"), Scope(project="p", task="t"))
            for word in ("zebra", "thing1", "thing69"):
                assert len(reader.recall(word).items) == 1, word

    def test_an_index_deleted_under_an_open_memory_is_done_without(self, tmp_path):
        memory, seat = self.filled(tmp_path)
        memory.reindex()
        shutil.rmtree(tmp_path / ".mnemarch/index")
        seat.remember_many([mnemarch.Claim(content=f"more{n} came late") for n in range(60)])
        assert len(seat.recall("more59").items) == 1
        assert len(seat.recall("thing3").items) == 1
        memory.close()


def test_r1_a_failed_act_in_a_shared_commit_does_not_fork_the_chain(tmp_path):
    """What is known of a stream goes with the work that was undone, also when the next work of the commit reads it."""
    with mnemarch.open(tmp_path) as memory, mnemarch.open(tmp_path) as other:
        scope = Scope(project="p", task="t")
        seat = memory.seat(Actor.agent("a"), scope)
        seat.log("t", "first")
        store = memory._engine.store
        failed = []

        def break_off(act):
            act.record(EventType.LOGGED, {"kind": "t", "text": "ok"})
            raise InvalidInput("It can't be.", hint="Leave it.")

        def fail():
            with pytest.raises(InvalidInput):
                memory._engine.log.act(seat.caller, break_off)
            failed.append(True)

        works = [fail, lambda: store.write(lambda transaction: transaction.head(seat.caller.stream))]
        threads = [threading.Thread(target=work) for work in works]
        with store._turn:
            for number, thread in enumerate(threads, start=1):
                thread.start()
                while len(store._jobs) < number:
                    os.sched_yield()
        for thread in threads:
            thread.join()
        assert failed == [True]
        assert other.seat(Actor.agent("b"), scope).log("t", "by another").seq == 2
        assert seat.log("t", "third").seq == 3
        assert memory.audit().ok


def test_rejecting_an_archived_unit_leaves_it_archived(seats):
    unit = seats.agent().remember("The door is red").unit
    seats.system().archive(unit.id, "old")
    assert seats.orchestrator().reject(unit.id, "still wrong").status is Status.ARCHIVED
    with pytest.raises(NotAllowed):
        seats.agent().reject(unit.id, "me too")


def test_what_was_rejected_is_not_used(seats):
    unit = seats.agent().remember("Checkout retries 3 times").unit
    seats.human().reject(unit.id, "it never did")
    with pytest.raises(InvalidInput, match="archived: rejected: it never did"):
        seats.agent().use(unit.id)
    seats.human().revive(unit.id, "it does now")
    seats.agent().use(unit.id)


def test_r4_an_author_withdraws_a_claim_until_somebody_else_used_it(seats):
    author = seats.agent("author", task="T-1")
    unit = author.remember("The feed is paged", level="worktree").unit
    with pytest.raises(NotAllowed, match="only its author may"):
        seats.agent("other", task="T-1").withdraw(unit.id, "not mine")
    assert not author.withdraw(unit.id, "I was wrong").live
    used = author.remember("Totals are rounded up", level="worktree").unit
    seats.agent("other", task="T-2").use(used.id)
    with pytest.raises(NotAllowed, match="another task used or cited it"):
        author.withdraw(used.id, "too late")


def test_r4_one_signal_of_one_kind_counts_once_for_a_unit_and_task(seats):
    unit = seats.human(worktree="main").remember("Deploys need a ticket").unit
    lead = seats.orchestrator()
    first = lead.validate(unit.id, "tests_failed")
    assert first < unit.confidence
    assert lead.validate(unit.id, "tests_failed") == first
    assert seats.orchestrator(task="T-9").validate(unit.id, "tests_failed") < first


def test_r7_of_two_equal_answers_the_surer_comes_first(seats):
    person = seats.human()
    doubted, sure = (person.remember(f"The {name} gateway retries at night").unit for name in ("eastern", "western"))
    seats.orchestrator().validate(doubted.id, "tests_failed")
    items = person.recall("when does the gateway retry?").items
    assert [item.unit.id for item in items] == [sure.id, doubted.id]
    assert items[0].why["importance"] > items[1].why["importance"]

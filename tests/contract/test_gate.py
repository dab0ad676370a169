"""The gate (R2, R20, R21): what a run of tests moves, where, and what it leaves alone."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest

import mnemarch
from fixtures.repositories import commit, made, repository, worktree
from mnemarch import Actor, Citation, EventType, InvalidInput, Level, NotAllowed, NotFound, Reason, Scope, Status
from mnemarch.config import config_from

FACT = "Checkout retries three times"
TEST = "tests/test_retry.py::test_retry"
CITED = [Citation.test(TEST)]
UNITS = {FACT: "test_retry", "Invoices are sent at noon": "test_noon"}


def claimed(seats, content=FACT, *, cited=CITED, **where):
    """A claim that a test raised to the project."""
    seats.agent(**where).remember(content, citations=cited)
    (unit,) = seats.saw(*(item.ref for item in cited), **where).units
    assert (unit.level, unit.status) == (Level.PROJECT, Status.VERIFIED)
    return unit


def label(seat, unit):
    return next(item.label for item in seat.recall(unit.content).items if item.unit.id == unit.id)


# Rising, falling, returning


def test_r2_a_red_worktree_unverifies_nothing_of_another(seats):
    unit = seats.agent().remember(FACT, citations=CITED).unit
    seats.saw(TEST, turned=False)
    red = seats.saw(TEST, passed=False, worktree="feat", task="T-2")
    assert (red.trust_changes, seats.agent().get(unit.id).status) == ((), Status.VERIFIED)


@pytest.mark.parametrize("reuses", [0, 3])
def test_r2_a_unit_falls_when_its_only_test_fails_where_it_lives_and_returns_as_it_was(memory, seats, reuses):
    agent = seats.agent()
    unit = agent.remember(FACT, citations=CITED).unit
    seats.saw(TEST, turned=False)
    for number in range(reuses):
        seats.agent(task=f"U-{number}").use(unit.id)
        seats.saw("test_other", turned=False, task=f"U-{number}")
    before = agent.get(unit.id)
    assert before.status is (Status.PUBLISHED if reuses else Status.VERIFIED)
    (change,) = seats.saw(TEST, passed=False, task="T-2").trust_changes
    fallen = agent.get(unit.id)
    assert (change.unit_id, change.status) == (unit.id, Status.HYPOTHESIS)
    assert (fallen.status, fallen.fell_from, fallen.confidence < before.confidence) == (
        "hypothesis",
        before.status,
        True,
    )
    assert label(agent, fallen) == "[HYPOTHESIS: test_retry fails]"
    seats.saw(TEST, turned=False, task="T-3")
    assert (agent.get(unit.id).status, agent.get(unit.id).fell_from) == (before.status, None)
    types = [event.type for event in agent.history(unit.id)]
    assert EventType.UNIT_UNVERIFIED in types
    assert memory.rebuild().same


def test_r2_a_unit_stands_while_one_of_its_tests_passes(seats):
    agent = seats.agent()
    unit = agent.remember(FACT, citations=[*CITED, Citation.test("test_pay")]).unit
    seats.saw(TEST, "test_pay", turned=False)
    seats.saw(TEST, passed=False)
    assert agent.get(unit.id).status is Status.VERIFIED
    seats.saw("test_pay", passed=False)
    assert agent.get(unit.id).status is Status.HYPOTHESIS


def test_r2_a_persons_unit_never_falls(seats):
    unit = seats.human().remember(FACT, citations=CITED).unit
    for _ in range(2):
        seats.saw(TEST)
        seats.saw(TEST, passed=False, task="T-2")
        after = seats.agent().get(unit.id)
        assert (after.status, label(seats.agent(), after)) == (Status.VERIFIED, "[VERIFIED by alice]")


def test_r2_what_is_only_reported_takes_nothing_away(seats):
    unit = claimed(seats)
    seats.agent().verify(False, tests=[TEST])
    assert seats.agent().get(unit.id) == unit


def test_r2_three_unrelated_failing_tasks_change_no_trust(seats):
    unit = seats.vouched(FACT).unit
    for number in range(3):
        reader = seats.agent(task=f"U-{number}")
        assert [item.unit.id for item in reader.recall(FACT).items][:1] == [unit.id]
        assert seats.saw("test_other", passed=False, task=f"U-{number}").trust_changes == ()
    assert seats.agent().get(unit.id).trust == unit.trust


def test_r2_failures_older_than_the_task_do_not_make_it_fail(seats, clock):
    seats.saw("test_old", passed=False, task="T-0")
    clock.advance(minutes=1)
    unit = seats.agent().remember(FACT, citations=CITED).unit
    clock.advance(minutes=1)
    for number, (names, passed) in enumerate([(("test_old",), True), (("test_old", "test_new"), False)]):
        mixed = run(seats, passing=[TEST], failing=names)
        assert (mixed.passed, number) == (passed, number)
    assert seats.agent().get(unit.id).status is Status.VERIFIED


def run(seats, *, passing=(), failing=(), **where):
    """A person hands in a report in which some tests pass and some fail."""
    lines = [*(f"ok - {name}" for name in passing), *(f"not ok - {name}" for name in failing)]
    path = seats.folder / "run.tap"
    path.write_text("\n".join(["TAP version 13", *lines, f"1..{len(lines)}", ""]))
    return seats.human("ci", **where).verify(report=str(path))


@pytest.fixture
def seats(seats, tmp_path):
    seats.folder = tmp_path
    return seats


# Which test is meant


def test_a_bare_name_that_fits_two_tests_is_refused_and_a_whole_one_is_not(seats):
    one, two = "a/test_x.py::test_retry", "b/test_x.py::test_retry"
    seats.saw(one, two, turned=False)
    agent = seats.agent()
    with pytest.raises(InvalidInput, match=r"names 2 tests: a/test_x.py::test_retry, b/test_x.py::test_retry"):
        agent.remember(FACT, citations=[Citation.test("test_retry")])
    assert agent.remember(FACT, citations=[Citation.test(one)]).unit.status is Status.VERIFIED
    with pytest.raises(InvalidInput, match="names 2 tests"):
        agent.cite(agent.units()[0].id, Citation.test("test_retry"))


def test_a_bare_name_that_became_ambiguous_is_shown_by_neither_test(seats):
    agent = seats.agent()
    unit = agent.remember(FACT, citations=[Citation.test("test_retry")]).unit
    first, second = "shop/test_pay.py::test_retry", "mail/test_send.py::test_retry"
    answer = seats.saw(first, second)
    assert (answer.units, agent.get(unit.id).status) == ((), Status.HYPOTHESIS)
    assert "names 2 tests" in answer.refused[0].reason


def test_a_unit_follows_the_test_it_meant_after_a_namesake_appears(seats):
    agent = seats.agent()
    unit = agent.remember(FACT, citations=[Citation.test("test_retry")]).unit
    seats.saw(TEST, turned=False)
    assert agent.get(unit.id).status is Status.VERIFIED
    assert seats.saw("mail/test_send.py::test_retry", task="T-2").units == ()
    seats.saw("mail/test_send.py::test_retry", passed=False, task="T-3")
    assert agent.get(unit.id).status is Status.VERIFIED, "the namesake moves nothing"
    seats.saw(TEST, passed=False, task="T-4")
    assert agent.get(unit.id).status is Status.HYPOTHESIS
    seats.saw("mail/test_send.py::test_retry", task="T-5")
    assert agent.get(unit.id).status is Status.HYPOTHESIS


def test_a_bare_name_of_one_test_stands_for_its_whole_name(seats):
    unit = seats.agent().remember(FACT, citations=[Citation.test("test_retry")]).unit
    seats.saw(TEST)
    after = seats.agent().get(unit.id)
    assert (after.status, after.proof.witnessed) == (Status.VERIFIED, True)
    assert TEST in [item.ref for item in after.citations]


def test_a_bare_name_is_not_verified_by_its_namesake_in_another_package(seats):
    unit = seats.agent().remember(FACT, citations=[Citation.test("test_retry")]).unit
    run(seats, passing=["a/test_x.py::test_retry"], failing=["b/test_x.py::test_retry"])
    assert seats.agent().get(unit.id).status is Status.HYPOTHESIS


@pytest.mark.parametrize("cited", [TEST, "test_retry"])
def test_citing_a_function_covers_its_parameters(seats, cited):
    unit = seats.agent().remember(FACT, citations=[Citation.test(cited)]).unit
    run(seats, passing=[f"{TEST}[1]"], failing=[f"{TEST}[2]"])
    assert seats.agent().get(unit.id).status is Status.HYPOTHESIS
    run(seats, passing=[f"{TEST}[1]", f"{TEST}[2]"])
    assert seats.agent().get(unit.id).status is Status.VERIFIED


# What flows without a test


@pytest.mark.parametrize("seen", [True, False])
def test_a_claim_that_cites_a_run_which_this_program_saw_is_observed(seats, seen):
    ran = seats.saw(TEST, turned=False) if seen else seats.agent().verify(True, tests=[TEST])
    unit = seats.agent().remember("The suite has one slow test", citations=[Citation.log(ran.receipt.event_id)]).unit
    assert unit.status is Status.HYPOTHESIS
    assert unit.level is (Level.PROJECT if seen else Level.WORKTREE)
    reader = seats.agent(worktree="feat", task="T-2") if seen else seats.agent()
    assert label(reader, unit).startswith("[OBSERVED: " if seen else "[HYPOTHESIS]")


def test_an_orchestrators_accept_lets_a_claim_through_but_verifies_nothing(seats):
    unit = seats.agent().remember(FACT, citations=CITED).unit
    seats.agent().verify(True, tests=[TEST])
    (settled,) = seats.orchestrator("lead", worktree=None, task=None).accept(unit.id)
    assert (settled.unit.level, settled.unit.status, settled.unit.proof) == (Level.PROJECT, Status.HYPOTHESIS, None)
    assert label(seats.agent(worktree="feat"), settled.unit) == "[ACCEPTED by lead]"
    seats.agent().verify(True, tests=[TEST])
    assert seats.agent().get(unit.id).status is Status.HYPOTHESIS
    seats.saw(TEST)
    assert seats.agent().get(unit.id).status is Status.VERIFIED


def test_the_inbox_lists_what_waits_and_a_person_decides_several_at_once(seats):
    good, bad = (seats.agent(worktree=tree).remember(text).unit for tree, text in (("w1", FACT), ("w2", "Pigs fly")))
    refused = seats.orchestrator().remember("The gateway is idempotent", level="project")
    stuck = seats.agent(task="T-9").mark_stuck("needs a password")
    person = seats.human(worktree=None, task=None)
    waiting = {item.id: item.what for item in person.inbox()}
    assert waiting == {
        good.id: "claim",
        bad.id: "claim",
        refused.receipt.event_id: "refused claim",
        stuck.event_id: "stuck task",
    }
    for seat in (seats.agent(), seats.system()):
        with pytest.raises(NotAllowed):
            seat.inbox()
    settled = person.accept([good.id, refused.receipt.event_id, stuck.event_id[24:]])
    assert [item.unit and (item.unit.level, item.unit.status, item.unit.proof.person) for item in settled] == [
        *[(Level.PROJECT, Status.VERIFIED, "alice")] * 2,
        None,
    ]
    (declined,) = person.decline([bad.id], "they don't")
    assert declined.unit.status is Status.ARCHIVED
    assert person.inbox() == []
    assert seats.agent(task="T-9").fail("E").type == "ALLOW"
    with pytest.raises(NotFound, match="Nothing waits"):
        person.accept(good.id)


def test_a_request_for_a_decision_is_accepted_or_declined_in_the_inbox(seats):
    decisions, lead = seats.agent().decisions, seats.orchestrator("lead", worktree=None, task=None)
    for text in ("Use Postgres for orders", "Use Kafka for mail"):
        decisions.commit(decisions.propose(text, reason=Reason("risk", "measured"), snapshots=["seen"]))
    waiting = {item.subject: item.id for item in lead.inbox() if item.what == "request for a decision"}
    (accepted,) = lead.accept(waiting["Use Postgres for orders"])
    (declined,) = lead.decline(waiting["Use Kafka for mail"], "too much")
    assert (accepted.unit.kind, declined.unit) == ("decision", None)
    assert [decision.text for decision in lead.decisions.active()] == ["Use Postgres for orders"]
    assert [item for item in lead.inbox() if item.what == "request for a decision"] == []


def test_what_was_asked_for_elsewhere_comes_first_in_the_inbox(seats):
    units = [seats.agent(worktree="w1").remember(text).unit for text in (FACT, "Deploys need a ticket")]
    seats.agent(worktree="w2", task="T-2").recall("do deploys need a ticket?")
    first, second = seats.human(worktree=None, task=None).inbox()
    assert (first.id, first.wanted, second.wanted) == (units[1].id, 1, 0)


# In a repository

FLAKY = "def test_luck():\n    pass\n"


@pytest.fixture
def shop(tmp_path):
    folder = repository(tmp_path / "shop")
    commit(folder, "a test", test_luck__py=FLAKY)
    return folder


def place(memory, folder, kind="agent", name="coder-1", *, tree="main", task="T-1"):
    return memory.seat(Actor(kind, name), Scope(project="shop", worktree=tree, task=task), root=folder)


def outcome(memory, folder, passed, name="test_luck.py::test_luck", **where):
    report = folder.parent / "run.tap"
    report.write_text(f"TAP version 13\n1..1\n{'' if passed else 'not '}ok 1 - {name}\n")
    return place(memory, folder, "human", "ci", **where).verify(report=str(report))


def test_r2_a_flaky_test_moves_nothing_and_the_label_says_so(memory, shop):
    agent = place(memory, shop)
    unit = agent.remember("Luck helps", citations=[Citation.test("test_luck.py::test_luck")]).unit
    outcome(memory, shop, True)
    known = agent.get(unit.id)
    assert known.status is Status.VERIFIED
    for passed in (False, True, False):
        flaky = outcome(memory, shop, passed, task="T-2")
        after = agent.get(unit.id)
        assert (after.status, after.trust, flaky.trust_changes) == (known.status, known.trust, ())
    assert label(agent, after) == "[VERIFIED by test_luck, flaky]"
    late = agent.remember("Luck is blind", citations=[Citation.test("test_luck.py::test_luck")])
    assert late.unit.status is Status.HYPOTHESIS
    (refused,) = [item for item in outcome(memory, shop, True).refused if item.unit_id == late.unit.id]
    assert "flaky" in refused.reason
    commit(shop, "mended", test_luck__py=FLAKY + "\n# by luck\n")
    outcome(memory, shop, True)
    assert agent.get(late.unit.id).status is Status.VERIFIED
    assert "flaky" not in label(agent, agent.get(unit.id))


def test_r2_a_red_branch_unverifies_nothing_of_the_project_but_the_default_branch_does(memory, shop, tmp_path):
    there = worktree(shop, tmp_path / "feat", "-b", "feat")
    agent = place(memory, shop)
    agent.remember("Luck helps", citations=[Citation.test("test_luck.py::test_luck")])
    (shop / "test_luck.py").write_text(FLAKY + "\n# changed in this task\n")
    (unit,) = outcome(memory, shop, True).units
    assert unit.level is Level.PROJECT
    red = outcome(memory, there, False, tree="feat", task="T-2")
    assert (red.trust_changes, agent.get(unit.id)) == ((), unit)
    (shop / "test_luck.py").write_text(FLAKY + "\n# broken\n")
    outcome(memory, shop, False, task="T-3")
    assert agent.get(unit.id).status is Status.HYPOTHESIS
    (shop / "test_luck.py").write_text(FLAKY + "\n# mended\n")
    outcome(memory, shop, True, task="T-4")
    assert (agent.get(unit.id).status, agent.get(unit.id).proof.carries) == (Status.VERIFIED, True)


def test_r2_a_reader_in_a_red_worktree_is_told_that_the_test_fails_there(memory, shop, tmp_path):
    there = worktree(shop, tmp_path / "feat", "-b", "feat")
    agent = place(memory, shop)
    agent.remember("Luck helps", citations=[Citation.test("test_luck.py::test_luck")])
    (shop / "test_luck.py").write_text(FLAKY + "\n# changed in this task\n")
    (unit,) = outcome(memory, shop, True).units
    other = agent.remember("Luck helps those who wait", citations=[Citation.test("test_luck.py::test_wait")]).unit
    outcome(memory, shop, True, name="test_luck.py::test_wait", task="T-1")
    outcome(memory, there, False, tree="feat", task="T-2")
    red = place(memory, there, tree="feat", task="T-3")
    assert label(red, unit) == "[VERIFIED by test_luck, fails here]"
    facts = [item.unit.id for item in red.recall("luck helps").items if item.unit.kind == "fact"]
    assert (facts[-1], set(facts)) == (unit.id, {unit.id, other.id})
    assert "[VERIFIED, fails here]" in red.context("luck helps", 400).text
    assert label(agent, unit) == "[VERIFIED by test_luck]"
    outcome(memory, there, True, tree="feat", task="T-4")
    assert label(red, unit) == "[VERIFIED by test_luck]"


def test_r2_a_fallen_unit_is_recalled_where_it_was_made_with_its_failing_test(memory, shop, tmp_path):
    there = worktree(shop, tmp_path / "feat", "-b", "feat")
    place(memory, shop).remember("Luck helps", citations=[Citation.test("test_luck.py::test_luck")])
    (shop / "test_luck.py").write_text(FLAKY + "\n# changed in this task\n")
    (unit,) = outcome(memory, shop, True).units
    (shop / "test_luck.py").write_text("def test_luck():\n    assert 0\n")
    outcome(memory, shop, False, task="T-2")
    assert (unit.level, label(place(memory, shop, task="T-3"), unit)) == (
        Level.PROJECT,
        "[HYPOTHESIS: test_luck fails]",
    )
    other = place(memory, there, tree="feat", task="T-3")
    assert unit.id not in [item.unit.id for item in other.recall("luck helps").items]


def test_r2_a_unit_that_only_a_branch_verified_falls_when_the_branch_turns_red(memory, shop, tmp_path):
    there, name = worktree(shop, tmp_path / "feat", "-b", "feat"), "test_new.py::test_new"
    worktree(shop, tmp_path / "other", "-b", "other")
    place(memory, there, tree="feat").remember("Luck helps", citations=[Citation.test(name)])
    (there / "test_new.py").write_text("def test_new():\n    assert 1\n")
    (unit,) = outcome(memory, there, True, tree="feat", name=name).units
    reader = place(memory, shop)
    assert (unit.level, label(reader, unit)) == (Level.PROJECT, "[VERIFIED by test_new in feat]")
    (there / "test_new.py").write_text("def test_new():\n    assert 0\n")
    (change,) = outcome(memory, there, False, tree="feat", task="T-2", name=name).trust_changes
    assert (change.unit_id, reader.get(unit.id).status) == (unit.id, Status.HYPOTHESIS)
    outcome(memory, tmp_path / "other", False, tree="other", task="T-3", name=name)
    (there / "test_new.py").write_text("def test_new():\n    # Mended.\n    assert 1\n")
    outcome(memory, there, True, tree="feat", task="T-4", name=name)
    assert reader.get(unit.id).status is Status.VERIFIED
    outcome(memory, tmp_path / "other", False, tree="other", task="T-5", name=name)
    assert reader.get(unit.id).status is Status.VERIFIED
    assert memory.rebuild().same


def test_r2_a_test_that_is_known_by_two_names_and_then_removed_leaves_a_date(memory, shop):
    agent, body = place(memory, shop), "def {}():\n    lucky = 7\n    assert lucky > 6\n"
    commit(shop, "before the task", test_luck__py=body.format("test_luck"))
    agent.remember("Rain helps", citations=[Citation.test("test_luck.py::test_luck")])
    (unit,) = outcome(memory, shop, True).units
    assert not unit.proof.about
    commit(shop, "renamed", test_luck__py=body.format("test_fortune"))
    for task in ("T-2", "T-3", "T-4"):  # The first cites the new name, the second counts both, the third joins them.
        outcome(memory, shop, True, task=task, name="test_luck.py::test_fortune")
    assert agent.get(unit.id).proof.tests == ("test_luck.py::test_fortune",)
    commit(shop, "no luck", test_luck__py="def test_else():\n    assert 1\n")
    outcome(memory, shop, True, task="T-9", name="test_luck.py::test_else")
    assert label(agent, unit) == "[VERIFIED until 2026-03-01]"


def test_r2_a_test_that_is_gone_leaves_a_date_until_it_passes_again(memory, shop):
    agent, (name, text) = place(memory, shop), ("test_luck.py::test_luck", FLAKY + "\n# in this task\n")
    agent.remember("Luck helps", citations=[Citation.test(name)])
    (shop / "test_luck.py").write_text(text)
    (unit,) = outcome(memory, shop, True).units
    commit(shop, "no luck", test_luck__py="def test_else():\n    assert 1\n")
    outcome(memory, shop, True, task="T-2", name="test_luck.py::test_else")
    assert label(agent, unit) == "[VERIFIED until 2026-03-01]"
    outcome(memory, shop, True, task="T-3", name="test_luck.py::test_else")
    assert label(agent, unit) == "[VERIFIED until 2026-03-01]"
    commit(shop, "lucky again", test_luck__py=text)
    outcome(memory, shop, True, task="T-4")
    assert label(agent, unit) == "[VERIFIED by test_luck]"
    assert memory.rebuild().same


def test_r20_without_a_commit_a_test_is_new_that_came_after_the_last_entry_of_others(memory, tmp_path):
    shop = made(tmp_path / "bare")
    for number, name in ((1, "test_luck"), (2, "test_rain")):
        (shop / f"{name}.py").write_text(f"def {name}():\n    assert {number}\n")
        moment = (memory._engine.log.clock() + timedelta(hours=number - 1.5)).timestamp()
        os.utime(shop / f"{name}.py", (moment, moment))
    for task, name, level in (
        ("T-1", "test_luck", Level.PROJECT),
        ("T-2", "test_rain", Level.PROJECT),
        ("T-3", "test_luck", Level.WORKTREE),
    ):
        cited = f"{name}.py::{name}"
        unit = place(memory, shop, task=task).remember(f"It helps in {task}", citations=[Citation.test(cited)]).unit
        outcome(memory, shop, True, cited, task=task)
        assert place(memory, shop, task=task).get(unit.id).level is level, task


@pytest.mark.parametrize(
    ("command", "cited", "level"),
    [
        ("sh check.sh", "infra/main.tf", Level.PROJECT),
        ("sh check.sh infra", "infra/main.tf", Level.PROJECT),
        ("sh check.sh --chdir=infra", "infra/main.tf", Level.PROJECT),
        ("sh check.sh infra", "web/index.html", Level.WORKTREE),
        ("sh check.sh", None, Level.WORKTREE),
    ],
)
def test_r20_a_check_without_tests_is_about_what_it_covers(tmp_path, command, cited, level):
    shop = repository(tmp_path / "shop")
    files = {"check__sh": "exit 0\n", "infra/main__tf": "a\n", "web/index__html": "validate infra\n"}
    commit(shop, "a check", **files)
    commit(shop, "and more", more__txt="more\n")
    config = config_from({"witness": {"test_commands": [command]}})
    with mnemarch.open(tmp_path / "home", config=config) as memory:
        agent = place(memory, shop)
        citations = [Citation.test(command), *([Citation.file(cited)] if cited else [])]
        unit = agent.remember("The validate step pins its providers", citations=citations).unit
        agent.verify(run=command.split())
        after = agent.get(unit.id)
        assert (after.status, after.level) == (Status.VERIFIED, level)


def test_r4_what_a_person_declined_is_refused_in_every_worktree(memory, seats):
    person = seats.human()
    claimed = seats.agent().remember("The bank closes at noon").unit
    refused = seats.agent().remember("The bank opens at eight", level="project")
    person.decline([claimed.id, refused.receipt.event_id], "it does not")
    for text in ("The bank closes at noon", "The bank opens at eight"):
        for where in ({}, {"worktree": "other", "task": "T-9"}):
            again = seats.agent("coder-2", **where).remember(text)
            assert (again.rule, "it does not" in again.reason) == ("R5", True)
    assert person.inbox() == []
    assert memory.rebuild().same


def test_a_suite_of_any_size_can_be_verified(seats):
    unit = seats.agent().remember("Totals are rounded down", citations=[Citation.test("test_17000")]).unit
    seats.saw(*(f"tests/test_{n // 100}.py::test_{n}" for n in range(20_000)))
    assert "tests/test_170.py::test_17000" in seats.agent().get(unit.id).proof.tests


@pytest.mark.parametrize("label", ["up", "retry", "down"])
@pytest.mark.parametrize("passed", [True, False])
def test_r2_good_feedback_on_what_was_handed_out_is_a_sign_of_use_and_never_blamed(memory, seats, label, passed):
    unit, unseen = (claimed(seats, text, cited=[Citation.test(f"t.py::{name}")]) for text, name in UNITS.items())
    reader = seats.agent(worktree="feat", task="T-9")
    assert reader.recall("how often does checkout retry?").items[0].unit.id == unit.id
    query = reader.graph.upsert_query("s", "how often does checkout retry?")
    for answer in (unit, unseen):
        reader.graph.record_answer("s", query, unit_id=answer.id)
    for _ in range(2):
        reader.graph.record_feedback("s", query, label)
    for _ in range(2):
        seats.saw("test_other", passed=passed, turned=False, worktree="feat", task="T-9")
    after = reader.get(unit.id)
    assert after.uses == (1 if label == "up" and passed else 0)
    assert after.confidence >= unit.confidence
    assert reader.get(unseen.id).uses == 0
    assert memory.rebuild().same


def test_an_episode_keeps_what_the_task_met_tried_ran_and_touched(seats):
    agent = seats.agent()
    agent.log("task", "Make the checkout retry")
    trace = "Traceback (most recent call last):\n  File \"src/shop.py\", line 3\nKeyError: 'token'\n"
    agent.fail(trace, approach="raise the pool size")
    agent.fail("E   TimeoutError: no answer in 30 s", approach="ask twice")
    agent.log("error", "TimeoutError: no answer in 31 s")
    agent.log("command", "make migrate")
    agent.log("command", "boom", data={"command": "make test", "exit": 2})
    agent.log("edit", "one word", data={"path": "src/shop.py", "before": "a", "after": "b", "rule": "R-1"})
    agent.log("symbol", "retry", data={"path": "src/shop.py", "name": "retry"})
    episode = agent.get(agent.verify(True, approach="hand the token on").episode_id)
    kept = episode.attributes
    assert [(fault["line"], fault["approach"]) for fault in kept["faults"]] == [
        ("KeyError: 'token'", "raise the pool size"),
        ("TimeoutError: no answer in 30 s", "ask twice"),
    ]
    assert kept["faults"][0]["key"] == agent.loops.hash_error("KeyError: 'token'")
    assert (kept["approach"], kept["failed_approaches"]) == ("hand the token on", ["raise the pool size", "ask twice"])
    assert (kept["commands"], kept["files"], kept["symbols"]) == (
        ["make migrate"],
        ["src/shop.py"],
        ["src/shop.py:retry"],
    )
    assert (kept["agent"], kept["rules"], kept["patches"]) == (str(agent.actor), ["R-1"], 1)
    assert kept["steps"] == 7
    assert kept["seconds"] >= 0
    assert "What worked, as it was said: “hand the token on”." in episode.content


def test_an_episode_tells_of_the_failure_that_it_was_kept_for(seats):
    agent = seats.agent()
    failed = agent.verify(False, error="KeyError: 'token'", approach="ask twice")
    kept = agent.get(failed.episode_id).attributes
    assert [fault["line"] for fault in kept["faults"]] == ["KeyError: 'token'"]
    assert (kept["failed_approaches"], kept["approach"]) == (["ask twice"], None)


def test_what_an_episode_keeps_of_a_long_task_is_bounded(seats):
    agent = seats.agent()
    for number in range(60):
        agent.log("command", "ran it", data={"command": f"step {number} {'x' * 5_000}"})
        agent.fail(
            f"Step{chr(65 + number % 26)}{chr(65 + number // 26)}Error: {'y' * 5_000}", approach=f"try {'z' * number}"
        )
    kept = agent.get(agent.verify(False).episode_id).attributes
    assert len(str(kept)) < 50_000
    assert kept["commands"][-1].startswith("step 59")


def test_r20_what_a_branch_verified_is_credited_once_when_the_default_branch_has_its_test(memory, shop, tmp_path):
    there = worktree(shop, tmp_path / "feat", "-b", "feat")
    place(memory, there, tree="feat").remember("Luck helps", citations=[Citation.test("test_luck.py::test_luck")])
    text = FLAKY + "\n# changed in this task\n"
    (there / "test_luck.py").write_text(text)
    (unit,) = outcome(memory, there, True, tree="feat").units
    assert (unit.level, unit.proof.worktree) == (Level.PROJECT, "feat")
    commit(shop, "merged", test_luck__py=text)
    signals = [
        {change.signal for change in outcome(memory, shop, True, task=task).trust_changes if change.unit_id == unit.id}
        for task in ("T-2", "T-3")
    ]
    assert ["pr_merged" in each for each in signals] == [True, False]


# Long tasks


def test_a_long_task_is_described_by_its_beginning_and_its_newest_entries(seats):
    seat = seats.agent()
    seat.log("user", "Make the pool larger")
    seat.log_many([("command", f"make step-{number}") for number in range(250)])
    episode = seat.get(seat.verify(passed=True, tests=[TEST]).episode_id)
    assert "Make the pool larger" in episode.content
    assert episode.attributes["commands"][-1] == "make step-249"
    assert episode.attributes["steps"] == 200


def test_a_claim_stays_before_the_gate_however_much_is_logged_after_it(seats):
    seat = seats.agent()
    unit = seat.remember(FACT).unit
    seat.log_many([("command", f"make step-{number}") for number in range(250)])
    assert [refused.unit_id for refused in seat.verify(passed=True, tests=[TEST]).refused] == [unit.id]


def test_an_error_of_a_long_task_stays_in_its_episode(seats):
    seat = seats.agent()
    seat.fail("KeyError: 'total'")
    seat.verify(passed=True, tests=[TEST])
    seat.log_many([("command", f"make step-{number}") for number in range(150)])
    seat.verify(passed=True, tests=[TEST])
    seat.log_many([("command", f"make step-{number}") for number in range(150)])
    episode = seat.get(seat.verify(passed=True, tests=[TEST]).episode_id)
    assert [fault["line"] for fault in episode.attributes["faults"]] == ["KeyError: 'total'"]

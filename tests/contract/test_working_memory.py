"""Working memory on every store: every call is in the log, any process can continue, and a task has one episode."""

from __future__ import annotations

import os
import subprocess

import pytest

from mnemarch import Actor, InvalidInput
from mnemarch.learning.working import LineChanges, Pivot


def worked(seat):
    """A task with an edit, a failure and a choice."""
    working = seat.working
    working.init_task("Mend the retry of checkout", plan=["읽는다", "write a test", "mend it"])
    working.track_file("src/checkout.py")
    working.track_symbol("src/checkout.py", "retry")
    working.track_symbol("src/checkout.py::retry")
    working.add_hypothesis("The pool is exhausted before the retry.")
    working.record_step("Read the code", tool="read", arguments={"file_path": "src/checkout.py"})
    edit = {"file_path": "src/checkout.py", "old_string": "a\nb\n", "new_string": "a\nc\nd\n"}
    working.record_step("Change the order", tool="Edit", arguments=edit)
    working.record_step("Run the tests", tool="bash", arguments={"command": "pytest"}, error="ConnectionError: pool")
    working.record_decision("Back off before each retry", "The pool needs time")
    return working


def test_what_was_noted_is_read_back_from_the_log(agent):
    worked(agent)
    task = agent.working.current()
    assert task.task == "Mend the retry of checkout"
    assert task.project == "shop"
    assert task.plan == "읽는다; write a test; mend it"
    assert [(step.number, step.kind, bool(step.error)) for step in task.steps] == [
        (1, "step", False),
        (2, "edit", False),
        (3, "error", True),
    ]
    assert task.hypotheses == ("The pool is exhausted before the retry.",)
    assert task.files == ("src/checkout.py",)
    assert task.symbols == ("src/checkout.py:retry",)
    assert task.pivots == (Pivot(3, "Decision: Back off before each retry", "The pool needs time"),)
    assert task.lines == LineChanges(2, 1, 1, 0)
    assert task.patch == "1 edit, +2 -1 lines: src/checkout.py"
    assert task.unit is None


def test_entries_have_the_kinds_and_data_that_everybody_reads(agent):
    worked(agent)
    logged = [(event.payload["kind"], event.payload.get("data")) for event in reversed(agent.events())]
    assert logged == [
        ("task", {"task_description": "Mend the retry of checkout"}),
        ("plan", {"steps": ["읽는다", "write a test", "mend it"]}),
        ("file", {"path": "src/checkout.py"}),
        *[("symbol", {"path": "src/checkout.py", "name": "retry"})] * 2,
        ("hypothesis", None),
        ("step", {"tool": "read", "file_path": "src/checkout.py"}),
        ("edit", {"tool": "Edit", "path": "src/checkout.py", "before": "a\nb\n", "after": "a\nc\nd\n"}),
        ("error", {"tool": "bash", "command": "pytest", "action": "Run the tests", "exit": 1}),
        ("decision", {"rationale": "The pool needs time"}),
    ]


def test_another_agent_and_a_hook_go_on_where_the_first_one_stopped(agent, seats):
    worked(agent)
    seats.agent("coder-2").working.record_step(
        "Back off", tool="write", arguments={"path": "src/b.py", "content": "x\n"}
    )
    seats.agent("hook").log("command", "pytest -q", data={"command": "pytest -q", "exit": 1})
    seats.agent("hook").log("edit", "by hand", data={"path": "src/c.py", "patch": "@@ -1 +1 @@\n-a\n+b\n"})
    task = seats.agent("coder-3").working.current()
    assert [step.number for step in task.steps if step.error] == [3, 5]
    assert task.files == ("src/checkout.py", "src/b.py", "src/c.py")
    assert task.lines == LineChanges(4, 2, 2, 0)
    assert seats.agent(task="T-2").working.current().steps == ()


def test_consolidating_goes_through_the_gate_and_keeps_one_episode(agent, seats):
    working = worked(agent)
    claim = agent.remember("Checkout backs off", citations=[]).unit
    first = working.consolidate()
    assert first.unit.kind == "episode"
    assert first.unit.attributes["success"] is False, "its last step failed"
    assert first.unit.attributes["task"] == "Mend the retry of checkout"
    assert working.consolidate().unit.id == first.unit.id
    working.record_step("Back off")
    second = working.consolidate()
    assert second.unit.attributes["success"] is True
    assert second.unit.supersedes == first.unit.id
    live = [unit for unit in agent.units(kind="episode") if unit.live]
    assert [unit.id for unit in live] == [second.unit.id]
    assert agent.get(claim.id).status == "hypothesis", "a reported success verifies nothing"
    assert [step.number for step in second.steps] == [1, 2, 3, 4]


def test_a_verification_after_the_last_step_is_not_overruled(agent):
    working = worked(agent)
    working.record_step("Back off")
    judged = agent.verify(False, tests=["test_retry"])
    assert working.consolidate().unit.id == judged.episode_id
    assert [event.type for event in agent.events(types=["task.verified"])] == ["task.verified"]
    assert working.consolidate(True, tests=["test_retry"]).unit.attributes["success"] is True


def test_a_new_task_in_the_same_place_begins_anew(seats):
    seat = seats.agent(task=None)
    worked(seat)
    seat.working.init_task("장바구니를 고친다")
    assert seat.working.current().task == "장바구니를 고친다"
    assert seat.working.current().steps == ()


def test_without_a_task_there_is_nothing_to_consolidate(seats):
    with pytest.raises(InvalidInput, match="no task"):
        seats.agent(task=None, worktree=None).working.consolidate()


def test_erased_entries_are_gone_from_working_memory(agent, human):
    working = worked(agent)
    told = working.add_hypothesis("Mina has the key")
    human.erase(told.event_id, "privacy")
    assert working.current().hypotheses == ("The pool is exhausted before the retry.",)


def test_an_edit_without_a_path_counts_its_lines(agent):
    agent.working.record_step("Change it", tool="search_replace", arguments={"old_string": "a", "new_string": "a\nb"})
    task = agent.working.current()
    assert (task.files, task.lines, task.patch) == ((), LineChanges(2, 1, 1, 0), "1 edit, +2 -1 lines")


def test_an_edit_that_failed_changed_no_line(agent):
    edit = {"file_path": "src/a.py", "old_string": "a", "new_string": "b\nc"}
    agent.working.record_step("Change it", tool="edit", arguments=edit, error="old_string not found")
    task = agent.working.current()
    assert (task.lines, task.patch) == (LineChanges(), "")
    assert task.steps[0].data == {"tool": "edit", "path": "src/a.py", "action": "Change it"}


def test_odd_entries_of_others_break_nothing(agent):
    agent.log("edit", "no data")
    agent.log("edit", "numbers", data={"path": 7, "before": 3, "after": None})
    agent.log("decision", "odd", data={"context_snapshot": "x", "rationale": None})
    agent.log("symbol", "odd", data={})
    agent.log("command", "odd", data={"exit": "killed"})
    task = agent.working.current()
    assert task.files == ("7",)
    assert len(task.steps) == 3
    assert task.pivots == (Pivot(2, "Decision: odd", ""),)


def test_the_project_is_that_of_most_active_files(disk, tmp_path, seats_of):
    root, other = tmp_path / "shop", tmp_path / "billing"
    for folder in (root, other):
        folder.mkdir()
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
    seat = disk.seat(Actor.agent("a"), seats_of.HOME, root=str(root))
    seat.working.track_file(str(root / "src" / "a.py"))
    assert seat.working.current().files == (os.path.join("src", "a.py"),)
    seat.working.track_file(str(other / "b.py"))
    assert seat.working.current().project == "shop"
    seat.working.track_file(str(other / "c.py"))
    assert seat.working.current().project == "billing"
    with pytest.raises(InvalidInput):
        seat.working.track_file("")

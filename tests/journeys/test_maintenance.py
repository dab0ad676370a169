"""Reflection and maintenance as an operator types them."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

import mnemarch
from mnemarch.errors import InvalidInput
from mnemarch.files import locked_if_free
from mnemarch.services import maintenance
from mnemarch.verbs.types import DURATION

STEPS = ["prune", "janitor", "reflect", "code rules", "decay", "index", "files", "write-ahead log", "audit"]


@pytest.fixture
def worked(cli):
    """A memory in which three tasks met an error that none of them solved."""
    for task in "123":
        cli("fail", "TimeoutError: no answer", "--approach", "raise the timeout", "--task", task, "--actor", "agent:a")
        cli("verify", "--failed", "--task", task, "--actor", "agent:a")
    return cli


def test_reflect_prints_each_lesson_and_what_changed(worked):
    first = worked("reflect", "--actor", "agent:a")
    assert first.exit_code == 0
    assert first.out.startswith("reflected  3 episodes; lessons: 1 new or changed, 0 unchanged, 0 retired")
    assert "[LESSON from 3 episodes]" in first.out
    assert "3 tasks met “TimeoutError: no answer”: all failed." in first.out
    assert worked("reflect", "--json", "--actor", "agent:a").json["unchanged"] == 1


def test_maintain_says_in_one_screen_what_each_step_did(worked):
    run = worked("maintain", "--actor", "agent:a")
    lines = run.out.splitlines()
    assert run.exit_code == 0
    assert [line[2 : 2 + len("write-ahead log")].strip() for line in lines] == STEPS
    assert "1 lesson made or changed" in lines[2]


def test_a_night_learns_code_rules_from_the_edits_of_tasks_that_succeeded(seats_of):
    with mnemarch.open(":memory:") as memory:
        agent = seats_of(memory).agent()
        agent.log("edit", "None", data={"path": "m.py", "before": "x = a == None\n", "after": "x = a is None\n"})
        agent.verify(True)
        nights = [memory.maintain(agent).steps[3].says for _ in range(2)]
        assert len(agent.rules.find_code_rules()) == 1
    assert nights == ["1 task read for code rules: 1 new rule", "0 tasks read for code rules: 0 new rules"]


def test_a_night_keeps_what_a_task_without_a_test_run_tried_and_failed(memory):
    def seat(task, worktree="main"):
        return memory.seat(mnemarch.Actor.agent("a"), mnemarch.Scope(project="shop", worktree=worktree, task=task))

    def told():
        person = memory.seat(mnemarch.Actor.human("ada"), mnemarch.Scope(project="shop"))
        return sorted(unit.content for unit in person.units(kind="episode") if unit.live)

    seat("T-1").fail("ConnectionError: pool timed out", approach="raise the pool size")
    seat("T-2").fail("오류: 연결이 끊겼다", approach="풀 크기를 늘린다")
    seat("T-3").fail("KeyError: 'total'", approach="cache the total")
    seat("T-3").verify(True, tests=["t"])
    for _ in range(2):
        memory.maintain(seat(None))
        first, second, third = told()
        assert first == "Task T-1 failed.\nTried, and failed: “raise the pool size”.\n" + (
            "Failed with 1 error: “ConnectionError: pool timed out”."
        )
        assert "“풀 크기를 늘린다”" in second
        assert "succeeded" in third
    seat("T-1").fail("ConnectionError: pool timed out", approach="restart the proxy")
    seat("T-3").fail("KeyError: 'tax'", approach="cache the tax")
    memory.maintain(seat(None))
    assert ["restart the proxy" in each for each in told()] == [True, False, False]
    assert "cache the tax" not in told()[2], "a success is not made a failure by what somebody reports later"
    verdict = seat("T-4", "feat").fail("ConnectionError: pool timed out")
    assert 'What failed: "raise the pool size", "restart the proxy"' in verdict.seen_before
    assert memory.rebuild().same


def test_a_dry_run_of_maintain_changes_nothing(worked):
    before = worked("stats", "--json").json["events"]
    run = worked("maintain", "--dry-run", "--json", "--actor", "agent:a")
    assert [step["name"] for step in run.json["steps"]] == STEPS
    assert worked("stats", "--json").json["events"] == before


def test_a_step_that_fails_is_told_and_the_others_are_done(worked, monkeypatch):
    def broken(*_):
        raise OSError("the disk is full")

    monkeypatch.setitem(maintenance._STEPS, "prune", broken)
    run = worked("maintain", "--actor", "agent:a")
    assert run.exit_code == 3
    assert run.out.splitlines()[0].startswith("✗ prune            the disk is full")
    others = [line[:18].rstrip() for line in run.out.splitlines()[1:]]
    assert others == [f"✓ {name}" for name in STEPS if name != "prune"]


def test_two_maintenances_at_once_are_refused_and_a_killed_one_leaves_no_lock(worked):
    place = worked.home / ".mnemarch" / "maintenance.lock"
    holds = f"with locked_if_free({str(place)!r}): print('x', flush=True); input()"
    holds = f"from mnemarch.files import locked_if_free\n{holds}"
    with subprocess.Popen([sys.executable, "-c", holds], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        refused = worked("maintain", "--actor", "agent:a")
        holder.kill()
    assert (refused.exit_code, "Another process maintains this memory" in refused.err) == (3, True)
    assert worked("maintain", "--actor", "agent:a").exit_code == 0
    with locked_if_free(str(place)) as is_free:
        assert is_free


def test_what_a_killed_process_left_a_day_ago_is_removed_and_what_is_new_stays(worked):
    folder = worked.home / ".mnemarch"
    old, new = folder / "copy.db.partial", folder / "now.db.partial"
    for path in (old, new):
        path.write_text("half")
    os.utime(old, (time.time() - 2 * 86_400,) * 2)
    worked("maintain", "--actor", "agent:a")
    assert (old.exists(), new.exists()) == (False, True)


def test_maintain_does_it_again_until_it_is_interrupted(worked, monkeypatch):
    naps = []

    def nap(seconds):
        naps.append(seconds)
        if len(naps) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("mnemarch.interfaces.operate.time.sleep", nap)
    run = worked("maintain", "--every", "6h", "--actor", "agent:a")
    assert (run.exit_code, naps, run.out.count("✓ audit")) == (130, [21_600.0, 21_600.0], 2)


@pytest.mark.parametrize("text", ["soon", "6", "0h", "h", ""])
def test_a_time_that_is_none_is_refused(text):
    with pytest.raises(InvalidInput, match="not a length of time"):
        DURATION.read(text, "--every")


def test_a_memory_in_memory_is_maintained_too(seats_of):
    with mnemarch.open(":memory:") as memory:
        night = memory.maintain(seats_of(memory).agent())
    assert night.ok
    assert [step.name for step in night.steps] == STEPS


def test_maintenance_empties_the_write_ahead_log(disk, seats_of):
    agent = seats_of(disk).agent()
    agent.log_many([("thought", f"Thought {number}") for number in range(200)])
    log = os.path.join(disk._engine.place, "memory.db-wal")
    before = os.path.getsize(log)
    disk.maintain(agent)
    assert (before > 0, os.path.getsize(log)) == (True, 0)


def test_a_dry_run_writes_no_file_and_waits_for_nobody(worked):
    place = worked.home / ".mnemarch" / "maintenance.lock"
    place.unlink(missing_ok=True)
    with locked_if_free(str(place)):
        assert worked("maintain", "--dry-run", "--actor", "agent:a").exit_code == 0
    place.unlink()
    worked("maintain", "--dry-run", "--actor", "agent:a")
    assert not place.exists()

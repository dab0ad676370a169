"""As an agent lives with its memory: it learns a name, is restarted, is corrected, runs out of room, and shares."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

import mnemarch
from mnemarch import Actor, Scope

SCOPE = Scope(project="shop", worktree="main", task="T-1")


@pytest.fixture
def woken(tmp_path):
    """An agent that is woken in a new process's memory each time, and put to sleep at the end."""
    opened = []

    def wake(name="coder-1", session="s-1", scope=SCOPE):
        for memory in opened:
            memory.close()
        opened.append(mnemarch.open(tmp_path / "home"))
        return opened[-1].seat(Actor.agent(name), scope, session=session).core

    yield wake
    for memory in opened:
        memory.close()


def test_an_agent_that_was_told_a_name_knows_it_after_a_restart_and_can_be_corrected(woken):
    assert (
        woken()
        .call("core_memory_append", {"section": "human", "content": "The user is called Bob."})
        .startswith("Done")
    )
    assert "The user is called Bob." in woken(session="s-2").compiled()
    told = woken().call("core_memory_replace", {"section": "human", "old": "called Bob", "new": "called Ada"})
    assert told.startswith("Done")
    prompt = woken(session="s-3").compiled()
    assert "The user is called Ada." in prompt
    assert "Bob" not in prompt
    assert [unit.content for unit in woken().history("human")] == ["The user is called Bob.", "The user is called Ada."]


def test_an_agent_that_runs_out_of_room_is_told_how_to_go_on(woken):
    core = woken()
    for number in range(40):
        told = core.call("core_memory_append", {"section": "human", "content": f"Fact {number}: " + "나" * 90})
        if not told.startswith("Done"):
            break
    assert "this needs" in told
    assert "archival_memory_insert" in told
    assert core.call("archival_memory_insert", {"content": "Ada prefers tabs in Makefiles"}).startswith("Kept")
    assert "Ada prefers tabs" in core.call("archival_memory_search", {"query": "tabs or spaces?"})
    assert core.call(
        "core_memory_replace", {"section": "human", "old": f"Fact 0: {'나' * 90}\n", "new": ""}
    ).startswith("Done")
    assert core.call("core_memory_append", {"section": "human", "content": "Ada is the lead."}).startswith("Done")


def test_an_agent_finds_what_was_said_long_ago_in_this_conversation_only(woken, tmp_path):
    with mnemarch.open(tmp_path / "home") as memory:
        seat = memory.seat(Actor.agent("coder-1"), SCOPE, session="s-1")
        seat.log("user", "우리 고양이 이름은 나비야")
        seat.log_many([("user" if n % 2 else "assistant", f"turn {n} about carts") for n in range(2_000)])
        memory.seat(Actor.agent("coder-1"), SCOPE, session="s-2").log("user", "My cat is called Momo")
    assert "나비" in woken().call("conversation_search", {"query": "고양이 이름이 뭐였지?"})
    assert "Nothing found" in woken().call("conversation_search", {"query": "Momo"})
    assert "turn 1999" in woken().call("conversation_search", {"query": ""})


def test_two_agents_share_what_the_project_is_about(woken):
    woken("coder-1").call("core_memory_append", {"section": "project", "content": "Checkout is frozen."})
    woken("coder-2").call("core_memory_append", {"section": "project", "content": "Cart moves to Go."})
    woken("coder-2").call("core_memory_append", {"section": "persona", "content": "I am the reviewer."})
    first = woken("coder-1").compiled()
    assert "Checkout is frozen.\n  Cart moves to Go." in first
    assert "reviewer" not in first
    assert "Checkout" not in woken("coder-3", scope=Scope(project="shop", worktree="other")).compiled()


def test_a_person_keeps_core_memory_from_the_command_line(cli):
    assert cli("core", "append", "project", "Deploys happen on Monday.", "--actor", "human:ada").exit_code == 0
    assert cli("core", "replace", "project", "Monday", "Tuesday", "--actor", "human:ada").exit_code == 0
    assert cli("core", "append", "human", "이름은 아다", "--actor", "agent:a").exit_code == 0
    shown = cli("core", "--actor", "agent:a").out
    assert "Deploys happen on Tuesday." in shown
    assert "project, human:ada" in shown
    assert "deprecated" in cli("core", "history", "project").out
    prompt = cli("core", "prompt", "--actor", "agent:a").out
    assert "[CORE project] [VERIFIED by ada]" in prompt
    refused = cli("core", "replace", "project", "Tuesday", "Friday", "--actor", "agent:a")
    assert refused.exit_code == 2
    assert "no text" in refused.err
    conflict = cli("core", "append", "project", "x", "--expected-version", "1", "--actor", "human:ada")
    assert conflict.exit_code == 1
    assert cli("core", "append", "human", "x" * 3_000, "--actor", "agent:a").exit_code == 2
    called = cli(
        "core", "call", "core_memory_append", '{"section": "task", "content": "Mend it."}', "--actor", "agent:a"
    )
    assert called.out == "Done. Section task has 1,992 characters left.\n"
    assert len(json.loads(cli("core", "tools", "--style", "anthropic").out)) == 5


def test_m7_a_killed_process_loses_no_step_of_its_task(tmp_path):
    script = (
        "import os, signal, sys, mnemarch\nfrom mnemarch import Actor, Scope\n"
        "memory = mnemarch.open(sys.argv[1])\n"
        "working = memory.seat(Actor.agent('a'), Scope(project='shop', worktree='main', task='T-1')).working\n"
        "working.init_task('Mend the retry')\n"
        "for number in range(1, 8): working.record_step(f'step {number}', error='boom' if number in (1, 7) else None)\n"
        "working.record_decision('Back off', 'the pool needs time')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environ = {name: item for name, item in os.environ.items() if not name.startswith("MNEMARCH_")}
    died = subprocess.run([sys.executable, "-c", script, str(tmp_path)], env=environ, check=False)
    assert died.returncode == -signal.SIGKILL
    with mnemarch.open(tmp_path) as memory:
        working = memory.seat(Actor.agent("b"), SCOPE).working
        working.record_step("went on")
        episode = working.consolidate()
    assert [step.text for step in episode.steps] == ["boom", *(f"step {n}" for n in range(2, 7)), "boom", "went on"]
    assert [(pivot.step_number, pivot.description) for pivot in episode.pivots] == [
        (1, "Strategy change after errors"),
        (7, "Decision: Back off"),
    ]
    assert episode.unit.attributes["success"] is True

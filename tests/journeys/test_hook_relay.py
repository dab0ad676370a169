"""Hooks that a running server answers: the same as a hook alone does, and as before once the server is gone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from threading import enumerate as threads

import pytest
from test_hook import (  # noqa: F401 - these claims hold with a server, too
    Agent,
    decide,
    logged,
    made_repository,
    test_a_file_that_a_lock_names_is_warned_of_once_a_session,
    test_a_memory_that_came_with_a_clone_is_not_obeyed,
    test_a_prompt_gets_what_is_known_about_it_once_and_an_end_gets_nothing,
    test_a_task_is_told_when_the_turn_ends,
    test_an_event_that_arrives_twice_counts_once,
    test_only_the_last_compaction_of_a_session_is_anchored_and_shown_once,
    test_what_a_person_asked_for_becomes_a_claim_when_the_agent_ends_its_turn,
    test_what_one_agent_proved_reaches_another_worktree,
    test_what_the_settings_switch_off_is_not_done,
    test_what_was_done_is_in_the_log_and_the_third_failing_run_is_blocked,
)

import mnemarch
from mnemarch import Actor, Scope
from mnemarch.interfaces import hooks
from mnemarch.interfaces.hooks import hosts

ASKED = "How many connections does the pool have?"


class ServedAgent(Agent):
    """A host whose hooks a server answers; what they record is there when the next one is sent."""

    def sends(self, stdin, *, named=True):
        answer = super().sends(stdin, named=named)
        for thread in threads():
            if "process_request" in thread.name:
                thread.join()
        return answer


@pytest.fixture
def repo(tmp_path):
    """A repository with a memory, and a server that answers its hooks."""
    folder = made_repository(tmp_path / "shop")
    mnemarch.open(folder).close()
    with hooks.serving(str(folder), "") as is_serving:
        assert is_serving
        yield folder


@pytest.fixture
def agent(repo, monkeypatch, capsys):
    return lambda host="claude-code", root=repo, **more: ServedAgent(host, root, monkeypatch, capsys, **more)


@pytest.fixture
def alone(tmp_path, monkeypatch, capsys):
    """A repository with a memory, and no server yet."""
    folder = made_repository(tmp_path / "alone" / "shop")
    decide(folder, "The pool has three connections.")
    return Agent("claude-code", folder, monkeypatch, capsys)


def session_of(root):
    """The MCP server of a host's session, once it answers."""
    command = [sys.executable, "-m", "mnemarch", "mcp"]
    process = subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    for number in range(50):  # It begins to answer hooks beside its first messages.
        message = {"jsonrpc": "2.0", "id": number, "method": "ping" if number else "initialize", "params": client}
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
        assert process.stdout.readline()
        if is_served(root):
            return process
    raise AssertionError("it answers no hooks")


def is_served(root):
    with hooks.serving(str(root), "") as is_free:
        return not is_free


def opened_by_hooks(monkeypatch):
    """Counts how often a hook opens the memory itself."""
    from mnemarch import wiring

    opened, real = [], wiring.open_for_hooks
    monkeypatch.setattr(wiring, "open_for_hooks", lambda *args, **more: opened.append(1) or real(*args, **more))
    return opened


def test_the_server_of_a_session_answers_hooks_and_records_all_before_it_ends(alone, monkeypatch):
    with session_of(alone.root) as server:
        opened = opened_by_hooks(monkeypatch)
        assert "three connections" in alone.tells("prompt")
        alone.tells("stop", last_assistant_message="It has three.")
        server.stdin.close()
        assert server.wait(timeout=60) == 0
    assert opened == []
    assert [entry["text"] for entry in logged(alone.root)] == [ASKED, "It has three."]
    assert not is_served(alone.root)
    assert "three connections" in alone.tells("start", source="clear")
    assert opened == [1]


def test_after_a_server_that_was_killed_hooks_go_on_alone(alone):
    with session_of(alone.root) as server:
        server.send_signal(signal.SIGKILL)
        server.wait()
    assert "three connections" in alone.tells("prompt")
    assert [entry["text"] for entry in logged(alone.root)] == [ASKED]


def test_a_hook_sees_to_it_itself_if_settings_changed_since_the_server_began(repo, agent, monkeypatch):
    decide(repo, "The pool has three connections.")
    (repo / "mnemarch.toml").write_text("[hook]\nprompt_tokens = 0\n")
    opened = opened_by_hooks(monkeypatch)
    assert agent().tells("prompt") == ""
    assert opened == [1]


def test_a_server_answers_only_for_its_own_repository(repo, agent, alone, monkeypatch):
    decide(repo, "Nobody else may know this of the pool.")
    opened = opened_by_hooks(monkeypatch)
    told = alone.tells("start")
    assert "three connections" in told
    assert "Nobody else" not in told
    assert opened == [1]


def test_a_recreated_memory_is_not_mistaken_for_the_old_one(repo, agent):
    agent().tells("prompt")
    shutil.rmtree(repo / ".mnemarch")
    decide(repo, "The pool has three connections.")
    assert "three connections" in agent(session="s-2").tells("prompt")
    assert [entry["text"] for entry in logged(repo)] == [ASKED]


def test_a_server_of_another_memory_is_not_asked(alone, monkeypatch):
    opened = opened_by_hooks(monkeypatch)
    with hooks.serving(str(alone.root), "postgresql://nowhere.invalid/shop"):
        assert "three connections" in alone.tells("start")
    assert opened == [1]


def test_of_two_servers_one_answers_and_the_other_when_it_has_ended(tmp_path):
    with hooks.serving(str(tmp_path), "") as first, hooks.serving(str(tmp_path), "") as second:
        assert (first, second) == (True, False)
    assert not is_served(tmp_path)


def test_a_prompt_is_answered_by_meaning_where_a_server_has_the_model(alone):
    with mnemarch.open(alone.root) as memory:
        seat = memory.seat(Actor.human("ada"), Scope(project="shop"), root=alone.root)
        seat.remember("The office dog sleeps under the stairs.")
        seat.remember("The build runs on four machines.")
        memory.reindex(meaning=True)
    question = "강아지는 어디에서 자나요?"
    assert "office dog" not in alone.tells("prompt", prompt=question)
    with hooks.serving(str(alone.root), ""):
        assert "office dog" in alone.tells("prompt", prompt=f"{question} 알려 주세요.")


def test_a_server_that_hangs_is_not_waited_for_and_nothing_is_lost_or_doubled(alone):
    with session_of(alone.root) as server:
        assert "three connections" in alone.tells("prompt")
        while not logged(alone.root):
            time.sleep(0.05)
        server.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        alone.tells("prompt", prompt="The cache lives in Redis.")
        alone.tells("stop", last_assistant_message="So it does.")
        assert time.monotonic() - began < 12
        server.send_signal(signal.SIGCONT)
        server.stdin.close()
        assert server.wait(timeout=60) == 0
    assert [entry["text"] for entry in logged(alone.root)] == [ASKED, "The cache lives in Redis.", "So it does."]


@pytest.mark.parametrize("ends", ["by its input", "by a signal"])
def test_a_server_ends_well_after_somebody_cleared_the_state_folder(alone, ends):
    with session_of(alone.root) as server:
        shutil.rmtree(hooks.place_of(str(alone.root)))
        server.stdin.close() if ends == "by its input" else server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=30) == 0


def test_a_server_of_another_memory_in_files_is_not_asked(alone, tmp_path, monkeypatch):
    opened = opened_by_hooks(monkeypatch)
    with hooks.serving(str(alone.root), f"file:{tmp_path}/elsewhere"):
        assert "three connections" in alone.tells("start")
        alone.tells("prompt")
    assert opened == [1, 1]
    assert [entry["text"] for entry in logged(alone.root)] == [ASKED]
    assert not (tmp_path / "elsewhere").exists()


def test_where_there_is_no_memory_nothing_is_said_of_postgresql_though_a_server_ran(tmp_path, monkeypatch, capsys):
    folder = made_repository(tmp_path / "bare" / "shop")
    agent = Agent("claude-code", folder, monkeypatch, capsys)
    with hooks.serving(str(folder), ""):
        assert agent.sends(agent.payload("start")) == {}
    assert agent.sends(agent.payload("start", source="clear")) == {}
    assert not (folder / ".mnemarch").exists()


def test_a_server_writes_to_no_file_that_a_request_names(repo, agent, tmp_path, monkeypatch):
    """Who asks may sit in a sandbox, and the server does not."""
    variables, opened = tmp_path / "env.sh", opened_by_hooks(monkeypatch)
    monkeypatch.setenv("CLAUDE_ENV_FILE", str(variables))
    started = agent()
    event = hosts.read(hosts.HOSTS["claude-code"], started.payload("start"), str(repo), dict(os.environ))
    is_done, _ = hooks.asked(event, str(repo))
    assert is_done
    started.sends(started.payload("stop"))
    assert not variables.exists()
    agent(session="s-2").tells("start")
    assert str(repo / ".mnemarch" / "hooks" / "s-2") in variables.read_text()
    assert opened == [1]

"""Hooks of a memory in PostgreSQL: they ask the local server, and say what to start where there is none."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from test_hook import NAME, Agent, made_repository
from test_hook_relay import session_of

import mnemarch
from mnemarch import Actor, Scope
from mnemarch.interfaces import hooks
from mnemarch.interfaces.text import without_password


@pytest.fixture
def agent(tmp_path, monkeypatch, capsys, postgres_url):
    """Claude Code in a repository whose memory is in a database."""
    root = made_repository(tmp_path / "shop")
    monkeypatch.setenv("MNEMARCH_STORE", postgres_url)
    done = subprocess.run([sys.executable, "-m", "mnemarch", "init"], cwd=root, capture_output=True, text=True)
    assert "postgresql://" in done.stdout, done
    return Agent("claude-code", root, monkeypatch, capsys)


@pytest.fixture(params=["serve", "mcp"])
def server(agent, request):
    """`mnemarch serve` in that repository, or the MCP server of a session there."""
    if request.param == "mcp":
        process = session_of(agent.root)
    else:
        command = [sys.executable, "-m", "mnemarch", "serve", "--port", "0"]
        process = subprocess.Popen(command, cwd=agent.root, stderr=subprocess.PIPE, text=True)
        assert "mnemarch serves" in process.stderr.readline()
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ada:pw@db.local:5433/shop?sslmode=require", "postgresql://db.local:5433/shop"),
        ("postgresql:///shop?host=/run/pg&password=pw&port=5433", "postgresql:///shop?host=/run/pg&port=5433"),
        ("postgresql://ada:@/shop?host=/run/pg", "postgresql:///shop?host=/run/pg"),
        ("", ""),
    ],
)
def test_an_address_says_where_the_server_is_and_no_password(url, shown):
    assert without_password(url) == shown


def test_without_a_server_a_session_is_told_what_to_start_and_the_rest_is_silent(agent):
    assert agent.tells("start") == hooks.SILENT
    assert agent.sends(agent.payload("prompt")) == {}
    assert agent.sends(agent.payload("failed")) == {}
    assert not (agent.root / ".mnemarch").exists()


def test_where_nobody_ever_used_the_memory_nothing_is_said(agent, tmp_path, monkeypatch, capsys):
    other = made_repository(tmp_path / "other")
    assert Agent("claude-code", other, monkeypatch, capsys).sends(agent.payload("start", cwd=str(other))) == {}


def test_hooks_record_and_judge_through_the_server(agent, server, postgres_url):
    assert "shared memory" in agent.tells("start")
    agent.tells("prompt")
    told = []
    for number in range(3):
        (agent.root / "pool.py").write_text(f"def size():\n    return 1  # {number}\n")
        told.append(agent.tells("failed"))
    assert "STOP" not in told[0]
    assert "STOP. Circular fix detected" in told[-1]
    agent.tells("passed")
    server.send_signal(signal.SIGTERM)
    assert server.wait(timeout=60) == 0
    with mnemarch.open(postgres_url) as memory:
        seat = memory.seat(Actor.human("ada"), Scope(project="shop"))
        events = seat.events(types=["task.verified"], limit=10)
    assert [event.payload["passed"] for event in events][::-1] == [False, False, False, True]
    assert all(event.actor == Actor.agent("claude-code") for event in events)
    assert NAME in str(events[-1].payload)
    assert agent.tells("start", source="clear") == hooks.SILENT


def test_a_second_server_leaves_the_hooks_to_the_first(agent, server):
    command = [sys.executable, "-m", "mnemarch", "serve", "--port", "0"]
    with subprocess.Popen(command, cwd=agent.root, stderr=subprocess.PIPE, text=True) as second:
        second.stderr.readline()
        second.send_signal(signal.SIGTERM)
        second.wait(timeout=60)
    assert "shared memory" in agent.tells("start")

"""What hosts say, in our words: which host and event it is, what a tool printed, and how it ended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.cases import cases
from mnemarch.interfaces.hooks.hosts import EVENTS, HOSTS, answer, host_of, read

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
OUTPUTS = ["tool_response", "tool_input", "toolArgs", "tool_output", "error"]
FIELDS = st.sampled_from([*OUTPUTS, "prompt", "session_id", "cwd", "workspace_roots"])
# What real hosts sent to the hook: `make test-hosts` recorded it.
RECORDED = sorted((Path(__file__).parents[1] / "fixtures/hosts/recorded").glob("*.jsonl"))
PROMPT = "How many connections does the pool have? Make its test pass."
# Codex tells no exit code.
EXITS = {"failed": {1, None}, "passed": {0, None}}


def seen(host, native="PostToolUse", **payload):
    told = {"hook_event_name": native, "tool_name": "Bash", "tool_input": {"command": "x"}, **payload}
    return read(HOSTS[host], told, "/work", {})


@pytest.mark.parametrize(("host", "payload", "printed", "exit_code"), cases("hook_hosts", "ended"))
def test_each_host_tells_in_its_own_way_how_a_command_ended(host, payload, printed, exit_code):
    event = seen(host, **payload)
    assert (event.output, event.exit, event.name, event.tool_kind) == (printed, exit_code, "after_tool", "shell")


@pytest.mark.parametrize(
    ("named", "payload", "environ", "host"),
    [
        (None, {}, {"CLAUDECODE": "1"}, "claude-code"),
        (None, {"turn_id": "1"}, {}, "codex"),
        (None, {"cursor_version": "3"}, {"CLAUDECODE": "1"}, "cursor"),
        ("claude-code", {}, {"COPILOT_CLI": "1"}, "copilot"),
        ("vscode", {}, {"COPILOT_CLI": "1"}, "copilot"),
        ("claude-code", {"hookEventName": "Stop"}, {}, "vscode"),
        ("codex", {}, {"CLAUDECODE": "1"}, "codex"),
        ("of tomorrow", {}, {}, "claude-code"),
    ],
)
def test_a_host_that_runs_the_hooks_of_another_host_is_recognised(named, payload, environ, host):
    assert host_of(named, payload, environ).name == host


def test_events_of_which_nothing_is_known_are_passed_over():
    assert read(HOSTS["claude-code"], {"hook_event_name": "WorktreeCreate", "prompt": "x"}, "/work", {}) is None
    assert read(HOSTS["copilot"], {"toolName": "bash", "toolArgs": '{"command": "ls"}'}, "/work", {}).input == {
        "command": "ls"
    }
    assert {seen("codex", native).name for words in EVENTS.values() for native in words.split()} == set(EVENTS)


@settings(max_examples=40)
@given(host=st.sampled_from(sorted(HOSTS)), fields=st.dictionaries(FIELDS, JSON))
def test_no_payload_breaks_the_reader(host, fields):
    event = seen(host, **fields)
    assert event is not None
    assert answer(event, "") is None


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_event_of_a_real_host_is_read(path):
    kinds = set()
    for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        kind, sent = line["event"], line["stdin"]
        # By the name that install writes, and as in a plugin, whose command names no host.
        for named in (path.stem, None):
            event = read(host_of(named, sent, line["environ"]), sent, "", line["environ"])
            assert event.host.name == path.stem, (kind, named)
            assert event.name == {"failed": "after_tool", "passed": "after_tool"}.get(kind, kind)
            assert (event.session, event.cwd) == (sent["session_id"], "{root}")
        if kind == "prompt":
            assert event.prompt.strip('"') == PROMPT
        if kind in EXITS:
            assert event.tool_kind == "shell"
            assert event.exit in EXITS[kind]
            assert f"1 {kind}" in event.output
        kinds.add(kind)
    assert kinds >= {"start", "prompt", "before_tool", "after_tool", "failed", "passed", "stop", "end"}


def test_the_five_hosts_of_npm_were_recorded():
    assert [path.stem for path in RECORDED] == ["claude-code", "codex", "copilot", "gemini", "opencode"]

"""What real hosts sent to the hook (`make test-hosts` recorded it) is understood."""

import json
from pathlib import Path

import pytest

from mnemarch.interfaces.hooks import hosts

RECORDED = sorted((Path(__file__).parents[1] / "fixtures/hosts/recorded").glob("*.jsonl"))
PROMPT = "How many connections does the pool have? Make its test pass."
# Codex tells no exit code.
EXITS = {"failed": {1, None}, "passed": {0, None}}


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_event_of_a_real_host_is_read(path):
    kinds = set()
    for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        kind, sent = line["event"], line["stdin"]
        # By the name that install writes, and as in a plugin, whose command names no host.
        for named in (path.stem, None):
            event = hosts.read(hosts.host_of(named, sent, line["environ"]), sent, "", line["environ"])
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

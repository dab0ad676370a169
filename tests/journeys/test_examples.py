"""Each example runs in an empty folder, and prints and leaves behind what its first lines say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mnemarch.graph import GraphStore

DEMO = Path(__file__).parents[2] / "examples" / "session_demo.py"


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The session demo, run once in an empty folder: the folder, and what it printed."""
    folder = tmp_path_factory.mktemp("demo")
    environ = {name: item for name, item in os.environ.items() if not name.startswith("MNEMARCH_")}
    command = [sys.executable, "-X", "utf8", str(DEMO)]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, encoding="utf-8", timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return folder, done.stdout


def test_the_session_demo_shows_what_merged_and_what_did_not(ran):
    lines = ran[1].splitlines()
    (same,) = [line for line in lines if line.strip().startswith("에이전트 os 설계 문서 링크")]
    assert "the same as" in same
    (other,) = [line for line in lines if line.strip().startswith("Why is the nightly export not slow?")]
    assert "similar" in other


def test_the_session_demo_shows_the_searches_before_and_after_side_by_side(ran):
    (header,) = [line for line in ran[1].splitlines() if "before, in the session" in line]
    assert header.index("before, in another session") < header.index("after, in another session")
    assert "promoted  How does checkout retry after a failed payment?" in ran[1]
    assert "left      Why is the nightly export slow? (found wanting)" in ran[1]


def test_the_session_demos_checkpoint_is_whole_and_nothing_else_is_left(ran):
    folder, printed = ran
    checkpoint = folder / ".agentos" / "checkpoints" / "session-demo.json"
    record = json.loads(checkpoint.read_text(encoding="utf-8"))
    assert {
        *("version", "agentId", "sessionId", "createdAt", "topQueries", "edges", "embedderState"),
        "canonicalMeta",
    } <= set(record)
    restored = {node.text for node in GraphStore.load_from_file(checkpoint).nodes("query")}
    assert "결제 실패 후 재시도는 몇 번 하나요?" in restored
    assert "6 of 6 questions and 10 of 10 edges came back" in printed
    own = (".lock", ".gitignore")
    left = {path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(own)}
    assert left == {checkpoint}

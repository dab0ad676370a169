"""The demo runs, and what it prints is what the memory holds."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mnemarch
from mnemarch import Actor, Scope
from mnemarch.interfaces import demo
from mnemarch.interfaces.cli import main
from mnemarch.interfaces.demo import Proof, Told, proofs_of

AGENTS, EVENTS = 5, 40


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """One small demo, and the folder it left."""
    folder = tmp_path_factory.mktemp("demo") / "kept"
    argv = ["demo", "--fast", "--keep", str(folder)]
    done = subprocess.run([sys.executable, "-m", "mnemarch", *argv], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, folder


def number_in(text: str, pattern: str) -> int:
    found = re.search(pattern, text)
    assert found, pattern
    return int(found[1].replace(",", ""))


def test_every_proof_holds(told):
    text, _ = told
    proofs = text.partition("The proof")[2]
    assert len(re.findall(r"^ ✓ ", proofs, re.MULTILINE)) == number_in(proofs, r"(\d+) proofs, all hold")
    assert " ✗ " not in proofs


def test_the_printed_counts_are_those_of_the_memory_it_left(told):
    text, folder = told
    with mnemarch.open(folder) as memory:
        assert memory.stats().events == number_in(text, r"found among ([\d,]+) events")
        assert memory.audit().ok
        assert memory.rebuild().same
        digest = memory.rebuild().digest_after[:16]
        judge = memory.seat(Actor.human("ada"), Scope(project="shop", worktree="feat-checkout"))
        said = [unit for unit in judge.units(limit=1_000) if len(unit.provenance) == AGENTS]
    assert f"{digest}… after" in text
    assert number_in(text, r"(\d+) authors: ") == AGENTS
    assert [unit.id for unit in said] == re.findall(r"\d authors: (\S+)", text)


def test_every_agent_logged_what_it_got_receipts_for(told):
    text, folder = told
    events = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()[1:-1]]
    rows = re.findall(r"(coder-\d)\s+(\d+) receipts", text)
    assert len(rows) == AGENTS
    for name, receipts in rows:
        logged = [event for event in events if event["actor"] == f"agent:{name}" and event["type"] == "logged"]
        assert len(logged) + 1 >= int(receipts) >= EVENTS


def test_the_story_shows_the_refusals_by_their_rules(told):
    text, _ = told
    for piece in ("refused by G23:", "refused by G23.validation:", "S10.1", "redacted aws-access-key", "Conflict: saw"):
        assert piece in text


def test_the_three_commands_it_ends_with_work(told):
    text, _ = told
    commands = text.partition("try next\n")[2].splitlines()
    assert len(commands) == 3
    for command in commands:
        program, *argv = shlex.split(command)
        # Where the shell would not find it, the whole path is told.
        assert program == "mnemarch" if shutil.which("mnemarch") else Path(program).exists()
        assert subprocess.run([sys.executable, "-m", "mnemarch", *argv], capture_output=True).returncode == 0


def test_a_folder_that_is_not_empty_is_left_alone(told):
    _, folder = told
    argv = [sys.executable, "-m", "mnemarch", "demo", "--fast", "--keep", str(folder)]
    assert subprocess.run(argv, capture_output=True).returncode == 2


def test_the_proof_fails_for_a_memory_that_lost_something(told, tmp_path, monkeypatch):
    _, folder = told
    with mnemarch.open(folder) as memory:
        judge = memory.seat(Actor.human("ada"), Scope(project="shop", worktree="feat-checkout"))
        proven = next(unit for unit in judge.units() if unit.status == "verified")
        shop = {"revisions": ["never said", proven.content], "too_wide": "never refused"}
        for name, text in (shop | {"shared": proven.content, "guess": "a guess"}).items():
            monkeypatch.setitem(demo._SHOP, name, text)
        for name, text in (("_SHARED", proven.content), ("_TOO_WIDE", "never refused"), ("_NAME", proven.content)):
            monkeypatch.setattr(demo, name, text)
        false = Told(
            secret=proven.content,
            receipts=[{"event_id": "never written", "hash": "00", "duplicate": False}],
            ids={demo._GUESS: proven.id},
            won=["one", "two"],
        )
        (tmp_path / ".mnemarch").mkdir()
        (tmp_path / ".mnemarch" / "leaked").write_text(proven.content, encoding="utf-8")
        proofs = proofs_of(memory, judge, false, str(tmp_path))
    assert [proof.claim for proof in proofs if proof.ok] == [
        "one order, without a gap or a repeat",
        "the log was not tampered with",
        "everything comes from the log",
    ]


def test_a_proof_that_fails_ends_the_demo_with_1_and_json_is_one_document(monkeypatch, capsys):
    failed = Proof(claim="the moon is cheese", counted="0 of 1", ok=False)
    monkeypatch.setattr(demo, "proofs_of", lambda *given: [*proofs_of(*given), failed])
    assert main(["demo", "--fast", "--json"]) == 1
    printed = capsys.readouterr()
    answer = json.loads(printed.out)
    assert (answer["ok"], [proof["claim"] for proof in answer["proofs"] if not proof["ok"]]) == (False, [failed.claim])
    assert "proofs, 1 DO NOT HOLD" in printed.err
    assert "장바구니 합계는 원 단위로 반올림하지 않고 버린다." in printed.err.partition("Recall:")[2]


def test_without_git_the_demo_says_what_it_needs(monkeypatch, capsys):
    monkeypatch.setattr(demo, "git", lambda *_: None)
    assert main(["demo", "--fast"]) == 3
    assert "Install git" in capsys.readouterr().err


def test_an_agent_that_can_not_start_ends_the_demo(monkeypatch, capsys):
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    assert main(["demo", "--fast"]) == 3
    assert "coder-1 of the demo ended early" in capsys.readouterr().err

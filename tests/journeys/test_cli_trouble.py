"""What goes wrong ends in words, a hint and the right exit code; nothing is half-done."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable

import pytest
from cli_session import Cli

from fixtures.cases import cases
from mnemarch.interfaces.cli import main
from mnemarch.memory import Memory

WRONG_USE = cases("cli_trouble", "wrong use")
WRONG_USE += [("log", "thought", "x" * 65_537), ("remember", "x" * 65_537), ("log", "thought", "bad \udcff bytes")]


@pytest.mark.parametrize("argv", WRONG_USE, ids=lambda argv: " ".join(argv)[:50].encode("ascii", "replace").decode())
def test_wrong_use_ends_with_2_and_a_hint_in_words_and_in_json(cli, argv):
    run = cli(*argv)
    assert (run.exit_code, run.out) == (2, "")
    message, hint = run.err.splitlines()
    assert message.startswith("mnemarch: ")
    assert hint.startswith("hint: ")
    told = cli("--json", *argv)
    assert told.exit_code == run.exit_code
    assert told.err == ""
    assert {"type", "message", "hint"} <= told.json["error"].keys()


def test_what_exists_is_not_overwritten(cli):
    cli.begun().ok("export", "copy")
    for command in ("export", "backup"):
        assert cli(command, "copy").exit_code == 2


def test_a_near_miss_is_named(cli):
    for typed, meant in {
        "recal": "recall",
        "forget": "erase",
        "delete": "erase",
        "search": "recall",
        "ls": "units",
        "add": "remember",
        "version": "--version",
    }.items():
        assert f"Did you mean {meant}?" in cli(typed, "x").err


def test_an_unknown_kind_is_answered_with_those_that_the_command_takes(cli):
    kinds = "Use one of: profile, preference, episode, semantic, fact, skill."
    assert kinds in cli("remember", "x", "--kind", "note").err
    assert "decision" in cli("units", "--kind", "note").err


@pytest.mark.parametrize("argv", [["log", "thought", "-"], ["log", "thought"], ["remember", "-"]])
def test_bytes_that_are_not_utf_8_are_refused_and_nothing_is_stored(cli, argv):
    process = cli.begun().process(*argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.communicate(b"caf\xe9 \xff")
    assert (process.returncode, out) == (2, b"")
    assert b"not valid UTF-8 at byte 3" in err
    assert b"hint: " in err
    assert cli.ok("stats")["events"] == 0


# The store


def foreign(cli: Cli) -> None:
    folder = cli.begun().home / ".mnemarch"
    (folder / "memory.db").unlink()
    with sqlite3.connect(folder / "memory.db") as other:
        other.execute("CREATE TABLE recipes (name TEXT)")
    other.close()


def garbage(cli: Cli) -> None:
    folder = cli.begun().home / ".mnemarch"
    (folder / "memory.db").write_bytes(b"this is no database at all, but long enough to look at" * 20)


def of_format(number: int) -> Callable[[Cli], None]:
    def make(cli: Cli) -> None:
        cli.ok("init")
        with sqlite3.connect(cli.home / ".mnemarch" / "memory.db") as database:
            database.execute(f"PRAGMA user_version = {number}")
        database.close()

    return make


newer, older = of_format(999), of_format(4)


@pytest.mark.parametrize(
    ("trouble", "type"),
    [(foreign, "StoreCorrupt"), (garbage, "StoreCorrupt"), (newer, "Incompatible"), (older, "Incompatible")],
)
def test_store_trouble_ends_with_3_and_leaves_the_file_as_it_is(cli, trouble, type):
    trouble(cli)
    before = (cli.home / ".mnemarch" / "memory.db").read_bytes()
    for argv in (["log", "thought", "x"], ["recall", "x"], ["stats"]):
        run = cli(*argv)
        assert run.exit_code == 3
        assert "hint: " in run.err
    assert cli("stats", "--json").json["error"]["type"] == type
    assert (cli.home / ".mnemarch" / "memory.db").read_bytes() == before


@pytest.mark.parametrize("trouble", [foreign, garbage, newer])
def test_the_doctor_says_what_to_do_about_a_store_that_cannot_be_opened(cli, trouble):
    trouble(cli)
    run = cli("doctor")
    assert run.exit_code == 3
    assert run.out.startswith("✗ ")
    (finding,) = cli("doctor", "--json").json
    assert finding["ok"] is False
    assert finding["hint"]


def test_the_doctor_finds_a_healthy_memory_healthy(cli):
    findings = cli.begun().ok("doctor")
    assert len(findings) >= 5
    assert all(finding["ok"] for finding in findings)


def test_the_doctor_names_a_broken_setting(cli):
    (cli.begun().home / "mnemarch.toml").write_text("colour = 'red'\n")
    assert "colour" in cli("doctor").out


def test_a_changed_log_fails_the_audit_with_3(cli):
    receipt = cli.ok("log", "thought", "as it was")
    with sqlite3.connect(cli.home / ".mnemarch" / "memory.db") as database:
        database.execute("UPDATE events SET body = replace(body, 'was', 'wasn''t')")
    database.close()
    run = cli("audit")
    assert run.exit_code == 3
    assert receipt["event_id"] in run.out


def test_a_drifted_projection_is_rebuilt_and_told_with_3(cli):
    unit = cli.ok("remember", "Checkout retries.")["unit"]["id"]
    with sqlite3.connect(cli.home / ".mnemarch" / "memory.db") as database:
        database.execute("UPDATE units SET body = json_set(body, '$.importance', 0.9)")
    database.close()
    assert cli("rebuild").exit_code == 3
    assert cli("rebuild").exit_code == 0
    assert cli.ok("get", unit)["importance"] == 0.5


def test_a_bug_is_not_taken_for_a_refusal(cli):
    def broken(self):
        raise ZeroDivisionError("a bug")

    cli.begun().monkeypatch.setattr(Memory, "stats", broken)
    run = cli("stats")
    assert (run.exit_code, run.out) == (70, "")
    assert "ZeroDivisionError" in run.err


# Pipes, terminals and signals


def test_a_reader_that_leaves_ends_it_quietly(cli):
    cli.unit_at("worktree")
    process = cli.process("units", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0


def test_head_gets_its_line_and_nobody_complains(cli):
    cli.unit_at("worktree")
    command = "python -m mnemarch units; python -m mnemarch --help | head -1"
    done = subprocess.run(
        ["sh", "-c", command.replace("python", os.sys.executable)], cwd=cli.home, capture_output=True, text=True
    )
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1].startswith("usage: mnemarch")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_cannot_show_korean_still_gets_an_answer(cli, encoding):
    cli.ok("remember", "결제는 세 번 재시도한다 ✓")
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    shown = cli.process("recall", "결제", stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    out, err = shown.communicate()
    assert (shown.returncode, err) == (0, b"")
    assert b"[HYPOTHESIS] ???" in out
    data = cli.process("recall", "결제", "--json", stdout=subprocess.PIPE, env=environment)
    out, _ = data.communicate()
    assert json.loads(out)["items"][0]["unit"]["content"] == "결제는 세 번 재시도한다 ✓"


def test_ctrl_c_ends_with_130_and_a_plain_sentence(cli):
    def interrupted(self, progress=None):
        raise KeyboardInterrupt

    cli.begun().monkeypatch.setattr(Memory, "audit", interrupted)
    run = cli("audit")
    assert (run.exit_code, run.out) == (130, "")
    assert run.err.startswith("mnemarch: Interrupted.")
    assert cli("audit", "--json").json["error"]["type"] == "KeyboardInterrupt"


@pytest.fixture
def terminal():
    """Both ends of a terminal."""
    person, program = os.openpty()
    yield person, program
    os.close(person)
    os.close(program)


def asked(cli: Cli, terminal, unit: str) -> subprocess.Popen:
    """An erase that has asked its question and waits for the answer."""
    argv = ["erase", unit, "--reason", "asked", "--actor", "human:ada"]
    process = cli.process(*argv, stdin=terminal[1], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said = b""
    while not said.endswith(b"[y/N] "):
        said += process.stderr.read(1)
    return process


@pytest.mark.parametrize(("answer", "exit_code"), [(b"y\n", 0), (b"n\n", 1), (b"\n", 1)])
def test_erase_asks_a_person_first(cli, terminal, answer, exit_code):
    unit = cli.unit_at("worktree")
    process = asked(cli, terminal, unit)
    os.write(terminal[0], answer)
    process.communicate()
    assert process.returncode == exit_code
    assert bool(cli.ok("get", unit)["content"]) == bool(exit_code)


@pytest.mark.parametrize(("answer", "left"), [(b"y\n", 0), (b"n\n", 1)])
def test_erase_asks_about_the_copies_that_it_showed(cli, terminal, answer, left):
    unit = cli.unit_at("worktree")
    cli.ok("log", "note", f"I heard: {cli.ok('get', unit)['content']}")
    process = asked(cli, terminal, unit)
    os.write(terminal[0], b"y\n" + answer)
    _, err = process.communicate()
    assert b"And 1 copy?" in err
    texts = [event["payload"] for event in cli.ok("log", "--read", "--type", "logged")]
    assert sum(payload is not None for payload in texts) == left


def test_ctrl_c_at_the_question_erases_nothing(cli, terminal):
    unit = cli.unit_at("worktree")
    process = asked(cli, terminal, unit)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert b"mnemarch: Interrupted." in err
    assert cli.ok("get", unit)["content"]


def test_long_work_shows_its_progress_only_at_a_terminal(cli, terminal):
    person, program = terminal
    claims = "\n".join(json.dumps({"content": f"Fact number {number}"}) for number in range(3)).encode()
    process = cli.process("remember", "--batch", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=program)
    process.communicate(claims)
    assert process.returncode == 0
    assert b"remembering: 3 claims" in os.read(person, 10_000)
    assert cli("remember", "--batch", stdin=claims).err == ""


@pytest.mark.parametrize("argv", [["remember"], ["remember", "-"], ["remember", "--batch"], ["fail", "-"]])
def test_a_closed_standard_input_is_told_and_is_no_crash(cli, argv):
    cli.monkeypatch.setattr(sys, "stdin", None)
    assert main(argv) == 2


def test_a_closed_standard_output_is_no_crash(tmp_path):
    command = f"{sys.executable} -m mnemarch log thought x --actor agent:a --task t --store {tmp_path} >&-"
    run = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")

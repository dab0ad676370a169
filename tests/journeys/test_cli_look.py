"""Looking around from a terminal: the log, the project, anything by its id, and texts from standard input."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from types import SimpleNamespace

import pytest
from cli_session import CTRL_D, shown_at_terminal
from rich.cells import cell_len

import mnemarch
from mnemarch import Actor, EventType, Scope
from mnemarch.interfaces.work_text import SENTENCES, read_log, sentence
from mnemarch.model.stamps import short_id
from mnemarch.model.value import replace
from mnemarch.verbs import VERBS

PERSON = ("--actor", "human:ada")


@pytest.fixture
def busy(cli):
    cli.ok("log", "thought", "The pool is exhausted", "--actor", "agent:coder-1")
    stored = cli.ok("remember", "결제는 세 번까지 재시도한다", "--cite", "test:t", "--actor", "agent:coder-1")
    cli.unit = stored["unit"]["id"]
    cli.ok("verify", "--passed", "--test", "t", "--actor", "agent:coder-1")
    cli("remember", "Agents rule", "--level", "project", "--task", "T-2", "--actor", "agent:coder-2")
    cli.ok("stuck", "needs the staging password", "--task", "T-2", "--actor", "agent:coder-2")
    return cli


def test_every_type_of_entry_has_a_sentence():
    assert set(EventType) <= SENTENCES.keys()


def test_an_entry_that_leaves_the_trust_as_it_is_names_no_number():
    with mnemarch.open(":memory:") as memory:
        seat = memory.seat(Actor.human("ada"), Scope(project="shop"))
        seat.remember("Retries are capped at three")
        [event] = [event for event in seat.events() if event.type == "unit.remembered"]
    counted_again = replace(event, type=EventType.UNIT_VALIDATED, body='{"set": {"attributes": {"votes": 3}}}')
    id = short_id(event.subject)
    assert sentence(counted_again, {}) == f"updated {id} without a change of trust"
    moved = replace(counted_again, body='{"set": {"trust": {"confidence": 0.5}}, "signal": "pr_merged"}')
    assert sentence(moved, {}) == f"changed the trust in {id} to 0.50 (pr_merged)"
    refused = replace(event, type=EventType.ACT_REFUSED, body='{"reason": "no (policy rule R4).", "rule": "R4"}')
    assert sentence(refused, {}) == "was refused: no (policy rule R4)"


def test_the_log_is_told_in_one_plain_line_an_entry_the_newest_last(busy):
    lines = busy("log", *PERSON).out.splitlines()
    line_form = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ  [0-9a-f]{8}  agent:coder-[12]  main(/T-[12])?  \S")
    assert all(map(line_form.match, lines))
    said = [line.split("  ", 4)[4] for line in lines]
    id = short_id(busy.unit)
    assert said[0] == "thought: The pool is exhausted"
    assert said[1] == f'remembered "결제는 세 번까지 재시도한다" ({id}) as hypothesis fact'
    assert "verify passed: t (reported)" in said
    assert f'verified "결제는 세 번까지 재시도한다" ({id}) by test:t' in said
    assert said[-2].startswith('was refused "Agents rule" because agent:coder-2 may not write')
    assert said[-1] == "marked the task as stuck: needs the staging password"
    # By its id an entry can be shown, and erased.
    assert "The pool is exhausted" in busy("show", lines[0].split()[2], *PERSON).out


@pytest.mark.parametrize(
    ("options", "types"),
    [
        (["--tail", "1"], ["task.stuck"]),
        (["--task", "T-2"], ["claim.refused", "task.stuck"]),
        (["--by", "agent:coder-1", "--type", "unit.verified", "--since", "2h"], ["unit.verified"]),
        (["--since", "today", "--worktree", "elsewhere"], []),
        (["--since", "2026-01-01", "--type", "claim", "--type", "logged"], ["logged", "claim.refused"]),
    ],
)
def test_the_log_is_narrowed_by_options(busy, options, types):
    assert [event["type"] for event in reversed(busy.ok("log", *options, *PERSON))] == types
    assert len(busy("log", *options, *PERSON).out.splitlines()) == max(1, len(types))


@pytest.mark.parametrize("options", [["--since", "soon"], ["--by", "ada"], ["--type", "x"], ["--tail", "many"]])
def test_a_wrong_option_of_the_log_says_what_to_write(busy, options):
    run = busy("log", *options)
    assert (run.exit_code, run.out) == (2, "")
    assert "hint:" in run.err


def test_the_log_is_followed_as_it_grows_until_ctrl_c(busy):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = busy.process("log", "--follow", "--tail", "1", "--type", "logged", "--json", *PERSON, **pipes)
    try:
        assert json.loads(process.stdout.readline())["payload"]["text"] == "The pool is exhausted"
        for text in ("하나", "two"):
            busy.ok("log", "thought", text, "--actor", "agent:coder-1")
            busy.ok("recall", "pool")
            assert json.loads(process.stdout.readline())["payload"]["text"] == text
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30) == ("", "")
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()


def test_what_is_written_between_two_reads_of_a_follower_is_told_once(capsys):
    with mnemarch.open(":memory:") as memory:
        seat = memory.seat(Actor.human("ada"), Scope(project="shop"))
        written = [str(number) for number in range(12)]

        class Interrupted:
            """A seat beside which somebody writes after each of its reads."""

            _engine = seat._engine
            reads = 0

            def events(self, **wanted):
                events = seat.events(**wanted)
                for text in written[self.reads : self.reads + 1]:
                    seat.log("thought", text)
                self.reads += 1
                if self.reads > len(written) + 3:
                    raise KeyboardInterrupt
                return events

        seat.log("thought", "first")
        flags = SimpleNamespace(follow=True, task=None, worktree=None, json=True)
        [verb] = [verb for verb in VERBS if verb.name == "seat.events"]
        read_log(verb, SimpleNamespace(seat=Interrupted(), arguments={}, options=flags, places=flags))
    assert [json.loads(line)["payload"]["text"] for line in capsys.readouterr().out.splitlines()] == ["first", *written]


def test_a_word_still_writes_to_the_log(cli):
    assert cli("log", "thought", "x").out.startswith("logged  ")
    assert cli("log", "note", stdin=b"y").out.startswith("logged  ")
    assert cli("log", "thought", "--tail", "3").exit_code == 2
    assert [event["payload"]["text"] for event in cli.ok("log")] == ["y", "x"]


def test_a_text_in_place_of_a_kind_is_refused_with_the_missing_argument(cli):
    shown, exit_code = shown_at_terminal(["log", "The pool is exhausted", *PERSON], [], cli.home)
    assert exit_code == 2
    assert "log needs TEXT" in shown
    assert 'mnemarch log thought "' in shown
    assert "'The pool is exhausted' is empty" in cli("log", "The pool is exhausted", stdin=b"").err


def test_the_status_fits_a_screen_of_80_columns_in_korean_too(busy):
    busy.repository()
    shown, exit_code = shown_at_terminal(["status", *PERSON], [], busy.home, COLUMNS="80", LINES="24")
    assert exit_code == 0
    assert all(cell_len(line) <= 80 for line in shown.splitlines()), shown
    assert len(shown.splitlines()) <= 24
    for said in (
        "main  main  2 agents  1 task",
        "agent:coder-2  main/T-2  just now",
        "0 open, 1 stuck, 1 verified",
        '"needs the staging password"',
        f'{short_id(busy.unit)}  verified  "결제는 세 번까지 재시도한다"',
        "waiting    3 for a person or a lead",
    ):
        assert said in shown
    seen = busy.ok("status", *PERSON)
    assert [task["state"] for task in seen["tasks"]] == ["stuck", "verified"]
    assert (seen["learned"][0]["id"], seen["waiting"]) == (busy.unit, 3)


def test_the_status_of_an_agent_states_nothing_about_tasks_that_it_does_not_see(busy):
    busy.repository()
    shown = busy("status", "--actor", "agent:coder-9").out
    assert "An agent sees no other tasks. A person or a lead sees them all." in shown.splitlines()[3]
    assert "0 agents" not in shown
    assert "  nobody\n" not in shown


@pytest.mark.parametrize("argv", [["inbox"], ["units"], ["log", "--tail"], ["episodes"], ["decisions"]], ids=" ".join)
def test_who_asks_for_no_lines_is_not_told_that_there_are_none(busy, argv):
    limit = [] if "--tail" in argv else ["--limit"]
    assert busy(*argv, *limit, "0", *PERSON).out == "None were asked for.\n"


def test_where_all_that_an_actor_wrote_stays_there_is_nothing_to_undo(cli, monkeypatch):
    id = cli.ok("remember", "Cats sleep", "--actor", "agent:x")["unit"]["id"]
    cli("accept", id, *PERSON)
    monkeypatch.setenv("MNEMARCH_ACTOR", PERSON[1])
    run = cli("undo", "--actor", "agent:x", "--reason", "noise")
    assert run.out == "nothing to undo: agent:x wrote nothing here that is still in force and rests on it alone\n"
    assert run.exit_code == 0


def test_show_tells_of_a_unit_a_conflict_and_an_entry_by_a_short_id(busy):
    assert "evidence  ✓ test:t" in busy("show", short_id(busy.unit), *PERSON).out
    busy.ok("remember", "Checkout retries 3 times")
    (dispute,) = busy.ok("remember", "Checkout retries 5 times")["conflicts"]
    shown = busy("show", short_id(dispute["id"]), *PERSON).out
    assert '"Checkout retries 3 times"' in shown
    assert '"Checkout retries 5 times"' in shown
    (entry,) = busy.ok("log", "--type", "claim.refused", *PERSON)
    assert '"content": "Agents rule"' in busy("show", short_id(entry["id"]), *PERSON).out
    run = busy("show", "abcdef01", *PERSON)
    assert run.exit_code == 2
    assert "Nothing here has the id 'abcdef01'" in run.err


def test_what_is_printed_short_is_taken_wherever_an_id_is(cli):
    id = re.match(r"stored  ([0-9a-f]{8})  ", cli("remember", "Cats sleep", "--level", "worktree").out)[1]
    for argv in (["get", id], ["use", id], ["cite", id, "test:t"], ["approve", id, *PERSON], ["explain", id]):
        assert cli(*argv).exit_code == 0
    assert cli("reject", cli.ok("get", id)["id"][:6], "--reason", "x", *PERSON).exit_code == 0


@pytest.mark.parametrize(
    "argv",
    [
        ["remember", "-"],
        ["log", "note", "-"],
        ["fail", "-"],
        ["recall", "-"],
        ["context", "-"],
        ["approach", "-"],
        ["stuck", "-"],
        ["decide", "-", "--type", "risk", "--reason", "r", "--snapshot", "s", "--actor", "orchestrator:lead"],
        ["decide", "Use SQLite", "--type", "risk", "--reason", "-", "--snapshot", "s", "--actor", "orchestrator:lead"],
        ["decisions", "evidence", "-"],
        ["fail", "boom", "--approach", "-"],
    ],
    ids=" ".join,
)
def test_a_dash_reads_standard_input(cli, argv):
    cli.begun()
    assert cli(*argv, stdin="고양이는 잔다\n".encode()).exit_code == 0
    if argv[0] not in {"recall", "context", "approach"}:
        assert "고양이는 잔다" in json.dumps([event["payload"] for event in cli.ok("log", *PERSON)], ensure_ascii=False)


def test_standard_input_is_read_for_one_text_only(cli):
    run = cli("fail", "-", "--approach", "-", stdin=b"x")
    assert (run.exit_code, os.listdir(cli.home)) == (2, [])
    assert "--approach" in run.err


def test_a_dash_at_a_terminal_waits_for_what_is_typed(cli):
    shown, exit_code = shown_at_terminal(["remember", "-"], [CTRL_D], cli.home, MNEMARCH_ACTOR="agent:a")
    assert exit_code == 2
    assert "Type the text, then press Ctrl-D" in shown
    assert "Nothing was typed." in shown


def test_errors_and_refusals_print_short_ids_that_can_be_typed(cli):
    said = [cli("remember", f"The port is {n}.", "--actor", "human:ada", "--json").json for n in (1, 2, 3)]
    old, new, other = (each["unit"]["id"] for each in said)
    cli.ok("supersede", new, old, "--reason", "moved", "--actor", "human:ada")
    failed = cli("supersede", other, old, "--reason", "moved", "--actor", "human:ada")
    assert failed.exit_code != 0
    assert f"Unit {old[24:32]} (version" in failed.err
    assert old not in failed.err
    cli.ok("reject", other, "--reason", "no", "--actor", "human:ada")
    refused = cli("remember", "The port is 3!", "--actor", "agent:coder-1")
    assert f"approve unit {other[24:32]}" in refused.out + refused.err
    assert other not in refused.out + refused.err

"""What somebody meets who uses it for the first time: what init says, a typo, a narrow terminal."""

from __future__ import annotations

import ast
import json
import os
import pwd
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_session import CTRL_D, TEST, WHERE, Cli, shown_at_terminal, told

from mnemarch.errors import INTERFACES, advice
from mnemarch.interfaces.plain_commands import sections
from mnemarch.interfaces.text import is_confirmed
from mnemarch.model.stamps import short_id

ROOT = Path(__file__).parents[2]
NO_ID = "01a1e10a-75ac-7d0c-9ca4-6a8510450e10"
SHORT_ID = re.compile(r"\b[0-9a-f]{8}\b")
WHY = ("--type", "risk", "--reason", "one file", "--snapshot", "the bench")
LEAD = ("--actor", "orchestrator:lead")
PERSON = ("--actor", "human:ada")


@pytest.fixture
def bare(cli) -> Cli:
    """In a git repository of its own, with a test, as a person finds it: nothing is set."""
    for name in WHERE:
        cli.monkeypatch.delenv(f"MNEMARCH_{name.upper()}")
    cli.monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    cli.repository(test_shop_py="def test_retry():\n    pass\n")
    return cli


# init


def steps_in(text: str) -> list[str]:
    return [line.strip() for line in text.partition("\nnext\n")[2].splitlines() if line.strip().startswith("mnemarch ")]


@pytest.mark.parametrize("actor", ["agent:a", "orchestrator:lead", "human:ada"])
def test_what_init_says_to_type_next_works_for_who_ran_it(bare, actor):
    steps = steps_in(bare("init", "--actor", actor).out)
    assert len(steps) >= 4
    for step in steps:
        run = bare(*shlex.split(step)[1:])
        assert run.exit_code == 0, (step, run)


def test_what_init_says_to_a_person_at_a_terminal_works_there(bare):
    shown, _ = shown_at_terminal(["init"], [], bare.home, USER="ada", COLUMNS="80")
    assert all(len(line) <= 80 for line in shown.splitlines() if line.startswith("  "))
    assert len(steps_in(shown)) >= 4
    for step in steps_in(shown):
        argv = shlex.split(step)[1:]
        answers = [b"y\n"] if argv[0] == "decide" else []
        text, exit_code = told(argv, answers, bare.home, USER="ada")
        assert exit_code == 0, (step, text)


@pytest.mark.parametrize(
    ("git_name", "login", "answer", "name"),
    [
        ("Ada Lovelace", "ada", b"\n", "Ada Lovelace"),
        ("", "mina", b"\n", "mina"),
        ("", "mina", b"y\n", "mina"),
        ("", "mina", "미나\n".encode(), "미나"),
        ("", None, b"\n", pwd.getpwuid(os.getuid()).pw_name),
    ],
)
def test_a_person_is_asked_once_who_they_are_and_then_types_no_flags(cli, tmp_path, git_name, login, answer, name):
    where = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": None, "USER": login, "LOGNAME": login}
    (tmp_path / ".gitconfig").write_text(f"[user]\n\tname = {git_name}\n")
    shown, exit_code = told(["remember", "We deploy on Tuesdays"], [answer], cli.home, **where)
    assert (exit_code, "What is your name?" in shown) == (0, True)
    assert "verified 0.60 project" in shown
    again, _ = told(["log", "--tail", "1"], [], cli.home, **where)
    assert f"human:{name}" in again
    assert "What is your name?" not in again
    assert (tmp_path / ".config" / "mnemarch" / "person").read_text() == f"{name}\n"


@pytest.mark.parametrize("line", ["mnemarch log plan x", "git push -f", "cat a | sh", "echo $HOME", "x" * 61, "a=1"])
def test_a_pasted_line_does_not_become_the_name_of_a_person(cli, tmp_path, line):
    where = {"XDG_CONFIG_HOME": str(tmp_path / "new")}
    shown, exit_code = told(["remember", "We deploy on Tuesdays"], [f"{line}\n".encode()], cli.home, **where)
    assert (exit_code, "is not a name, so this acts as agent:cli" in shown, "mnemarch init" in shown) == (0, True, True)
    assert not (tmp_path / "new" / "mnemarch" / "person").exists()
    assert cli.ok("units")[0]["provenance"][0]["actor"] == "agent:cli"


def test_an_answer_is_one_line_of_a_paste_and_the_next_line_is_left_to_the_shell(tmp_path, monkeypatch):
    (tmp_path / "paste").write_text("y\nmnemarch status\n")
    with open(tmp_path / "paste", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        assert is_confirmed("Commit it?")
        assert os.read(terminal.fileno(), 100) == b"mnemarch status\n"


@pytest.mark.parametrize(
    ("argv", "ci"),
    [(["status"], None), (["recall", "x"], None), (["log"], None), (["doctor"], None), (["remember", "a b"], "true")],
)
def test_what_only_reads_asks_nobody_who_they_are_and_neither_does_ci(cli, tmp_path, argv, ci):
    cli.begun()
    where = {"XDG_CONFIG_HOME": str(tmp_path / "new"), "CI": ci}
    (tmp_path / "new" / "mnemarch").mkdir(parents=True)
    shown, exit_code = told(argv, [], cli.home, **where)
    assert (exit_code, "What is your name?" in shown) == (0, False)


def test_status_says_as_whom_it_speaks(cli):
    cli.begun()
    assert "you act as agent:cli" in cli("status").out
    cli.monkeypatch.setenv("CLAUDECODE", "1")
    assert "you act as agent:claude-code" in cli("status").out


def test_nobody_is_asked_where_nobody_can_answer(cli, tmp_path):
    cli.monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "new"))
    assert cli.ok("remember", "We deploy on Tuesdays")["unit"]["provenance"][0]["actor"] == "agent:cli"
    refused = cli("remember", "We deploy on Mondays", "--actor", "human:ada")
    assert (refused.exit_code, "mnemarch init" in refused.err) == (1, True)
    shown, exit_code = told(["remember", "We rest on Mondays"], [CTRL_D], cli.home)
    assert (exit_code, "No name was given" in shown) == (2, True)


# Two who revise one decision


def decided(cli: Cli, text: str, *more: str):
    return cli.ok("decide", text, *WHY, *LEAD, *more)


def test_who_revises_a_version_that_moved_on_gets_a_conflict_with_what_is_in_force(cli):
    seen = decided(cli, "Retry thrice")["id"]
    first = decided(cli, "Retry four times", "--revises", seen)
    run = cli("decide", "Retry five times", *WHY, *LEAD, "--revises", seen, "--json")
    error = run.json["error"]
    assert (run.exit_code, error["type"]) == (1, "Conflict")
    assert (error["expected_version"], error["actual_version"]) == (1, 2)
    assert error["current"]["id"] == first["id"]
    assert f"--revises {first['id']}" in error["hint"]
    assert cli.ok("decisions")[0]["text"] == "Retry four times"
    assert decided(cli, "Retry five times", "--revises", first["id"])["version"] == 3


# A typo makes nothing


READING = [
    *(["audit"], ["stats"], ["units"], ["doctor"], ["rebuild"], ["reindex"], ["janitor"], ["prune", "--apply"]),
    *(["export", "copy"], ["export", "-"], ["backup", "copy"], ["conflicts"], ["proposals"]),
    *(["get", NO_ID], ["explain", NO_ID], ["history", NO_ID], ["use", NO_ID], ["approve", NO_ID], ["promote", NO_ID]),
    *(["impact", NO_ID], ["decisions"], ["decisions", "show", NO_ID], ["decisions", "export", "adr"]),
    *(["graph"], ["import", "nothing.jsonl"]),
]


@pytest.mark.parametrize("argv", READING, ids=" ".join)
def test_what_only_reads_makes_no_memory(cli, argv):
    before = sorted(cli.home.rglob("*"))
    for more in ([], ["--store", "tpyo/deep"]):
        run = cli(*argv, *more)
        assert (run.exit_code, run.out) == (2, ""), run
        assert "There is no memory in" in run.err or argv[0] == "import"
        assert "\nhint: " in run.err
        assert cli(*argv, *more, "--json").exit_code == 2
    assert sorted(cli.home.rglob("*")) == before


ASKED_BY_HOOKS = [["recall", "x"], ["context", "x"], ["approach", "x"], ["attempts"]]


@pytest.mark.parametrize("argv", ASKED_BY_HOOKS, ids=" ".join)
def test_a_hook_in_a_repository_without_a_memory_is_told_and_fails_nothing(cli, argv):
    run = cli(*argv)
    assert run.exit_code == 0
    assert "There is no memory in" in run.out + run.err
    assert argv[0] != "context" or run.out == ""
    assert isinstance(cli.ok(*argv), dict)
    assert not any(cli.home.iterdir())
    # A store that was named and is not there is a typo.
    cli.monkeypatch.setenv("MNEMARCH_STORE", "tpyo")
    for more in ([], ["--store", "tpyo"]):
        run = cli(*argv, *more)
        assert (run.exit_code, run.out) == (2, "")
        assert "To make one there: mnemarch init --store tpyo" in run.err
    assert not any(cli.home.iterdir())


def test_a_dry_run_of_a_decision_makes_no_memory(cli):
    assert cli("decide", "Use SQLite", *WHY, "--dry-run").exit_code == 0
    assert not any(cli.home.iterdir())


# A narrow terminal


@pytest.mark.parametrize("columns", ["60", "80"])
def test_at_a_narrow_terminal_no_id_is_broken_and_no_line_is_too_long(cli, columns):
    one, two = (decided(cli, text)["id"] for text in ("Use SQLite for all that is stored", "Use one file"))
    cli.ok("decisions", "relate", one, "DEPENDS_ON", two, *LEAD)
    anchor = cli.ok("decisions", "anchor", "why is there only one file to look at?", one, "gotcha", *LEAD)["id"]
    decided(cli, "Use two", "--revises", one)
    rivals = {
        cli.ok("remember", f"Checkout retries {n} times before it gives up on the card")["unit"]["id"] for n in "35"
    }
    for argv, ids in (
        (["decisions", "relations", one], {one, two}),
        (["decisions", "history", one], {one}),
        (["decisions", "broken"], {anchor, one}),
        (["conflicts"], rivals),
        (["units"], rivals),
    ):
        shown, exit_code = shown_at_terminal(argv, [], cli.home, COLUMNS=columns)
        assert exit_code == 0
        assert all(len(re.sub(r"\x1b\[[\d;]*m", "", line).rstrip()) <= int(columns) for line in shown.splitlines()), (
            shown
        )
        assert {short_id(id) for id in ids} <= set(SHORT_ID.findall(shown)), shown


@pytest.mark.parametrize("argv", [[], ["remember"], ["verify"], ["decisions"], ["decisions", "load"]], ids=" ".join)
def test_at_a_narrow_terminal_help_fits_and_only_examples_may_be_longer(cli, argv):
    shown, exit_code = shown_at_terminal([*argv, "--help"], [], cli.home, COLUMNS="80")
    assert exit_code == 0
    assert [line for line in shown.partition("\nexamples\n")[0].splitlines() if len(line) > 80] == []


def test_both_sides_of_a_conflict_stand_below_it(cli):
    for number in "35":
        cli.ok("remember", f"Checkout retries {number} times")
    for said in (cli("conflicts").out, shown_at_terminal(["conflicts"], [], cli.home, COLUMNS="60")[0]):
        head, *sides = said.partition("\n\n")[0].splitlines()
        assert head.startswith("conflict  ")
        assert len([line for line in sides if SHORT_ID.search(line)]) == 2
        assert all(line.startswith("  ") for line in sides)


# Hints


# Shown only to programs: no command leads to them.
FOR_PROGRAMS = ("embedding", "graph", "memory.py", "policy/heat.py", "testing.py")
PYTHON = re.compile(r"\w\((?!s\))|\b\w+=(?:\.\.\.|['\"\[]|True|False|None)")


def is_python(text: str) -> bool:
    """Whether a text shows a call or a keyword argument."""
    return PYTHON.search(text) is not None


def hints_in_the_library() -> Iterator[ast.expr]:
    """Every hint that an error can carry, as it is written where it is raised."""
    for path in (ROOT / "src/mnemarch").rglob("*.py"):
        if path.relative_to(ROOT / "src/mnemarch").as_posix().startswith(FOR_PROGRAMS):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "hint":
                yield node.value


def test_a_hint_that_is_a_plain_text_fits_every_interface():
    plain = [
        part.value
        for hint in hints_in_the_library()
        for part in ast.walk(hint)
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and not isinstance(hint, ast.Call)
    ]
    assert len(plain) > 100
    assert [text for text in plain if is_python(text)] == []


def test_every_hint_has_words_for_every_interface_and_those_of_the_command_line_can_be_typed():
    assert len(advice()) > 20
    for name, words in advice().items():
        assert len(words) in {2, len(INTERFACES)}, name
        assert not any(map(is_python, words[INTERFACES.index("command line") :])), name
        assert " --" not in "".join(words[2:]).replace("mnemarch verify -- ", ""), name


def test_every_hint_that_is_raised_is_in_the_table_and_no_other():
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/mnemarch").rglob("*.py"))
    assert set(re.findall(r'\bHint\(\s*"([^"]+)"', source)) == set(advice())


MISTAKES = [
    ["verify", "--passed", "--worktree", "w", "--commit", "nothing"],
    ["verify", "--passed", "--error", "x"],
    ["verify", "--failed", "--approach", "x"],
    ["verify", "--passed", "--analysis", '{"colour": 1}'],
    ["use", NO_ID],
    ["cite", NO_ID, "hearsay"],
    ["remember", "x y", "--cite", "file:nowhere.py"],
    ["remember", "x y", "--level", "galaxy"],
    ["resolve", NO_ID, "--winner", NO_ID, "--reason", "r"],
    ["supersede", NO_ID, NO_ID, "--reason", "r"],
    ["decide", "x", "--type", "risk", "--reason", "y"],
    ["decide", "x", *WHY, "--evidence", NO_ID],
    ["decisions", "anchor", "x", NO_ID, "poem"],
]


@pytest.mark.parametrize("argv", MISTAKES, ids=" ".join)
def test_no_hint_for_a_common_mistake_is_python(cli, argv):
    run = cli.begun()(*argv)
    assert run.exit_code in (1, 2)
    hint = run.err.partition("\nhint: ")[2]
    assert hint
    assert not is_python(hint), hint


def test_r20_a_plain_folder_is_a_worktree(cli):
    for name in ("TASK", "WORKTREE"):
        cli.monkeypatch.delenv(f"MNEMARCH_{name}")
    claimed = cli.begun().ok("remember", "Checkout retries", "--cite", "test:t", "--actor", "agent:coder-1")
    assert claimed["unit"]["scope"]["worktree"] == "main"
    cli.ok("verify", "--passed", "--test", "t", "--actor", "agent:coder-1")
    assert "[VERIFIED" in cli("recall", "checkout retries", "--actor", "agent:coder-2").out


def test_without_a_task_the_hint_names_the_option(bare):
    unit = bare.ok("remember", "We deploy on Tuesdays", "--level", "project", "--cite", "human:ada", *PERSON)
    assert re.search("no task is named.\nhint: Add --task ID", bare("use", unit["unit"]["id"]).err)


@pytest.mark.parametrize("kind", ["runbook", "entrypoint", "wiring", "config", "invariant", "gotcha"])
def test_the_kinds_of_anchors_are_in_the_help_and_the_reference(cli, kind):
    assert kind in cli("decisions", "anchor", "--help").out
    assert f"`{kind}`" in (ROOT / "docs/reference/command-line.md").read_text(encoding="utf-8")


# What was silent


def test_a_page_after_what_is_not_there_is_an_error(cli):
    cli.ok("remember", "Checkout retries")
    assert cli("units", "--after", "nosuch").exit_code == 2
    assert cli("units", "--after", NO_ID).exit_code == 2


def test_a_context_is_alone_on_standard_output(cli):
    cli.unit_at("worktree")
    run = cli("context", "how does checkout retry?")
    assert "tokens" not in run.out.splitlines()[-1]
    assert re.fullmatch(r"1 unit, \d+ of 2000 tokens\n", run.err)
    nothing = cli("context", "quantum entanglement", "--tokens", "1")
    assert (nothing.exit_code, nothing.out) == (0, "")
    assert "Nothing found" in nothing.err
    assert cli("context", "how does checkout retry?", "--json").err == ""


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["decisions", "show", NO_ID, "--drop"], "--drop"),
        (["decisions", "history", NO_ID, "--limit", "3"], "--limit"),
        (["decisions", "--tag", "x"], "--tag"),
        (["decisions", "relate", NO_ID, "REFINES", NO_ID, "--override", "x"], "--drop"),
        (["graph", "--k", "0"], "--k"),
    ],
)
def test_an_option_of_another_act_is_refused(cli, argv, named):
    run = cli.begun()(*argv)
    assert run.exit_code == 2
    assert named in run.err
    assert cli.ok("stats")["events"] == 0


def test_an_export_to_a_dash_is_on_standard_output(cli):
    cli.ok("log", "thought", "hello")
    done = cli.process("export", "-", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = done.communicate()
    assert done.returncode == 0
    assert err == b"exported  1 events\n"
    cli.ok("export", "log.jsonl")
    assert out == (cli.home / "log.jsonl").read_bytes()
    assert not (cli.home / "-").exists()
    assert cli("export", "-", "--json").exit_code == 2
    assert cli("backup", "-").exit_code == 2
    assert not (cli.home / "-").exists()


def test_the_janitor_says_what_it_moved(cli):
    cli.repository(shop_py="def pay():\n    return 3\n")
    cli.ok("verify", "--passed", "--test", TEST)
    cli.ok(
        "remember", "Paying gives 3", "--cite", "symbol:shop.py::pay", "--cite", f"test:{TEST}", "--level", "worktree"
    )
    subprocess.run(["git", "mv", "shop.py", "till.py"], cwd=cli.home, check=True)
    cli.repository()
    run = cli("janitor")
    assert "1 moved" in run.out
    assert "the units cite that now" in run.out


def test_a_rebuild_of_a_log_that_was_changed_says_so(cli):
    cli.ok("remember", "Checkout retries three times")
    with sqlite3.connect(cli.home / ".mnemarch" / "memory.db") as database:
        database.execute("UPDATE events SET body = replace(body, 'three', 'seven')")
    database.close()
    run = cli("rebuild")
    assert run.exit_code == 3
    assert "The audit fails at" in run.out
    assert cli("rebuild", "--json").json["audit"]["ok"] is False


def test_what_is_recalled_says_that_it_is_an_axis(cli):
    decided(cli, "Checkout never retries", "--strength", "axis")
    assert "[AXIS v1 global] Checkout never retries" in cli("recall", "does checkout retry?").out


# A project with another name


def test_a_project_that_got_a_remote_is_told_its_former_name(bare):
    bare.ok("remember", "We deploy on Tuesdays", "--level", "project", "--cite", "human:ada", *PERSON)
    bare.ok("remember", "Checkout retries")
    subprocess.run(["git", "remote", "add", "origin", "https://github.com/acme/shop.git"], cwd=bare.home, check=True)
    for argv in (["init"], ["doctor"], ["recall", "when do we deploy?"]):
        run = bare(*argv)
        assert run.exit_code == 0
        assert 'project = "home"' in run.out, argv
    for argv in (["context", "when do we deploy?"], ["units"], ["decisions"], ["inbox", *PERSON], ["conflicts"]):
        assert 'project = "home"' in bare(*argv).err, argv
    (bare.home / "mnemarch.toml").write_text('project = "home"\n')
    assert "We deploy on Tuesdays" in bare("recall", "when do we deploy?").out
    assert bare.ok("init")["notes"] == []


def test_a_memory_of_other_projects_only_is_told(bare):
    for name in ("till", "bank"):
        bare.ok("remember", f"The {name} is slow", "--project", name)
    (note,) = bare.ok("init")["notes"]
    assert "this memory holds 2 units" in note
    assert 'project = "NAME"' in note


def test_a_new_memory_is_told_of_nothing_else(bare):
    assert bare.ok("init")["notes"] == []
    bare.ok("doctor")
    assert bare.ok("init")["notes"] == []
    assert "note:" not in bare("recall", "x").out


def test_the_commands_of_the_howto_are_there():
    text = (ROOT / "docs/howto/troubleshooting.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`mnemarch (\w+)", text)) <= {name for names in sections().values() for name in names}


def test_the_old_name_of_a_project_is_in_the_export_as_the_howto_greps_it(cli):
    cli.ok("log", "thought", "hello")
    cli.ok("export", "log.jsonl")
    line = (cli.home / "log.jsonl").read_text().splitlines()[1]
    pattern = re.search(r"grep -o '(\^[^']+)'", (ROOT / "docs/howto/troubleshooting.md").read_text(encoding="utf-8"))[1]
    found = subprocess.run(["grep", "-o", pattern], input=line, capture_output=True, text=True, check=True).stdout
    assert json.loads(found.strip() + "}")["project"] == "shop"

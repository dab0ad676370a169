"""The grammar: complete help, options in any position, and how a command finds its project and worktree."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys

import pytest

from fixtures.cases import cases
from fixtures.repositories import repository as made_repository
from fixtures.repositories import worktree
from mnemarch.interfaces import cli as grammar
from mnemarch.interfaces.plain_commands import examples_of, sections

SUMMARIES = {name: says for names in sections().values() for name, says in names.items()}
# Also those of two words, and those that an option chooses.
COMMANDS = sorted(grammar.command_names())


@pytest.fixture
def repository(cli):
    """A git repository named `home` with a linked worktree, and no MNEMARCH_ variables."""
    for name in ("PROJECT", "WORKTREE", "TASK"):
        cli.monkeypatch.delenv(f"MNEMARCH_{name}")
    worktree(made_repository(cli.home), cli.home.parent / "login", "-b", "feat/login")
    return cli.home


def test_every_command_has_help_with_a_description_and_examples(cli):
    assert len(COMMANDS) > 100
    for command in COMMANDS:
        run = cli(*command.split(), "--help")
        assert run.exit_code == 0, command
        described = grammar.command_named(command)
        shown = " ".join(run.out.split())
        assert " ".join(described.description.split()) in shown, command
        assert run.out.rstrip().endswith(examples_of(command, described)[-1]), command


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("remember", "what to remember; - or nothing reads standard input"),
        ("stuck", "why; - reads standard input"),
        ("recall", "only this kind; repeatable"),
    ],
)
def test_help_says_what_the_shell_can_do_with_a_value(cli, command, says):
    assert says in " ".join(cli(command, "--help").out.split())


@pytest.mark.parametrize("command", ["recall", "decisions", "decisions show", ""])
def test_help_is_a_word_too(cli, command):
    assert cli("help", *command.split()) == cli(*command.split(), "--help")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_example_is_valid_grammar(cli, command):
    described = grammar.command_named(command)
    examples = examples_of(command, described)
    assert 1 <= len(examples) <= 3
    if "receipt.json" in examples[0]:
        (cli.home / "receipt.json").write_text(cli("log", "thought", "kept", "--json").out)
    for example in examples:
        typed = re.findall(r"mnemarch [^<>|]+", example)[-1]
        program, *argv = shlex.split(typed)
        assert len(ids := re.findall(r"[0-9a-f-]{36}", typed)) == len(set(ids))
        name, rest = grammar.chosen(*grammar.split(argv))
        assert (program, name.split()[0]) == ("mnemarch", command.split()[0])
        described = grammar.command_named(name)
        cli.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
        grammar.call_for(name, described, rest)


def test_the_overview_lists_every_command_in_the_order_of_the_path(cli):
    run = cli("--help")
    assert run.exit_code == 0
    words = [line.split()[0] for line in run.out.splitlines() if line.startswith("  ")]
    assert [word for word in words if word in SUMMARIES] == list(SUMMARIES)
    for summary in SUMMARIES.values():
        assert summary in run.out
    assert all(len(line) <= 80 for line in run.out.partition("options, before")[0].splitlines())


def test_no_command_at_all_shows_the_overview_as_an_error(cli):
    run = cli()
    assert run.exit_code == 2
    assert "usage: mnemarch" in run.err


def test_the_version_is_told(cli):
    import mnemarch

    assert cli("--version").out == f"mnemarch {mnemarch.__version__}\n"


@pytest.mark.parametrize(
    "argv",
    [
        ["--actor", "agent:x", "--task", "T-9", "--json", "log", "thought", "hello"],
        ["log", "--actor", "agent:x", "thought", "hello", "--task", "T-9", "--json"],
        ["--json", "log", "thought", "hello", "--actor=agent:x", "--task=T-9"],
    ],
)
def test_options_stand_before_or_after_the_command(cli, argv):
    assert cli(*argv).json["seq"] == 1
    cli.ok("export", "log.jsonl")
    event = (cli.home / "log.jsonl").read_text().splitlines()[1]
    assert '"agent:x"' in event
    assert '"T-9"' in event


@pytest.mark.parametrize(
    ("argv", "options"),
    cases("cli_grammar", "words and options are read as in any other program"),
    ids=lambda part: " ".join(part),
)
def test_words_and_options_are_read_as_in_any_other_program(argv, options):
    name, rest = grammar.chosen(*grammar.split(argv))
    call = grammar.call_for(name, grammar.command_named(name), rest)
    assert options.items() <= vars(call.options).items()


@pytest.mark.parametrize(
    ("argv", "says"),
    cases("cli_grammar", "what is wrong with a command line is said"),
    ids=lambda part: part if isinstance(part, str) else " ".join(part),
)
def test_what_is_wrong_with_a_command_line_is_said(cli, argv, says):
    run = cli(*argv)
    assert (run.exit_code, run.out) == (2, "")
    assert says in run.err


def test_every_place_can_be_set_in_the_environment(cli):
    where = {
        "ACTOR": "orchestrator:lead",
        "ORG": "acme",
        "PROJECT": "till",
        "WORKTREE": "wt",
        "TASK": "T-7",
        "SESSION": "s-3",
        "STORE": str(cli.home / "elsewhere"),
    }
    for name, item in where.items():
        cli.monkeypatch.setenv(f"MNEMARCH_{name}", item)
    unit = cli.ok("remember", "hello there")["unit"]
    assert unit["scope"] == {"org": "acme", "project": "till", "worktree": "wt", "task": None}
    assert unit["provenance"][0]["actor"] == "orchestrator:lead"
    assert unit["provenance"][0]["scope"]["task"] == "T-7"
    assert unit["provenance"][0]["session"] == "s-3"
    assert (cli.home / "elsewhere" / ".mnemarch" / "memory.db").exists()
    assert not (cli.home / ".mnemarch").exists()


def test_an_option_wins_over_the_environment_and_an_empty_variable_is_unset(cli):
    cli.monkeypatch.setenv("MNEMARCH_TASK", "")
    unit = cli.ok("remember", "hello there", "--project", "till")["unit"]
    assert unit["scope"] == {"org": "default", "project": "till", "worktree": "main", "task": None}


def test_an_empty_option_is_wrong_use(cli):
    assert cli("log", "thought", "x", "--task", "").exit_code == 2


def test_off_a_terminal_nobody_is_taken_for_a_human(cli):
    assert cli.ok("init")["actor"] == "agent:cli"


def test_init_in_a_repository_finds_project_and_worktree(repository, cli):
    made = cli.ok("init")
    assert made["memory"] == str(repository / ".mnemarch")
    assert (made["project"], made["worktree"], made["new"]) == ("home", "main", True)
    assert (repository / ".mnemarch" / ".gitignore").read_text() == "*\n"
    assert cli.ok("init")["new"] is False


def test_a_linked_worktree_shares_the_memory_and_has_its_own_name(repository, cli):
    cli.monkeypatch.chdir(repository.parent / "login")
    made = cli.ok("init")
    assert made["memory"] == str(repository / ".mnemarch")
    assert (made["project"], made["worktree"]) == ("home", "login")
    assert made["root"] == str(repository.parent / "login")


def test_a_subfolder_of_a_repository_belongs_to_it(repository, cli):
    (repository / "src").mkdir()
    cli.monkeypatch.chdir(repository / "src")
    assert cli.ok("init")["memory"] == str(repository / ".mnemarch")


def test_the_root_option_stands_for_being_there(repository, cli):
    cli.monkeypatch.chdir(repository.parent)
    assert cli.ok("init", "--root", "login")["worktree"] == "login"
    assert cli("init", "--root", "nowhere").exit_code == 2


def test_mnemarch_toml_names_the_project(repository, cli):
    (repository / "mnemarch.toml").write_text('project = "till"\n')
    assert cli.ok("init")["project"] == "till"
    assert cli.ok("init", "--project", "other")["project"] == "other"


def test_a_store_elsewhere_takes_the_project_of_the_current_repository(repository, cli):
    made = cli.ok("init", "--store", str(repository.parent / "team"))
    assert made["memory"] == str(repository.parent / "team" / ".mnemarch")
    assert (made["project"], made["worktree"]) == ("home", "main")


def test_a_store_elsewhere_names_itself_outside_of_any_repository(cli):
    cli.monkeypatch.delenv("MNEMARCH_PROJECT")
    cli.monkeypatch.delenv("MNEMARCH_WORKTREE")
    cli.monkeypatch.delenv("MNEMARCH_TASK")
    assert cli.ok("init", "--store", "team")["project"] == "team"


def test_a_memory_that_begins_inside_a_repository_has_one_name_from_its_first_command(cli, repository, monkeypatch):
    (repository / "part").mkdir()
    monkeypatch.chdir(repository / "part")
    for text in ("Boil the pasta first", "Drain it last"):
        cli.ok("remember", text, "--store", ".")
    assert len(cli.ok("recall", "boil pasta, drain", "--store", ".")["items"]) == 2


@pytest.mark.parametrize(("command", "argv"), [("log", ["thought", "x"]), ("recall", ["x"])])
def test_a_hook_loads_nothing_that_it_does_not_need(cli, command, argv):
    probe = (
        "import sys; known = set(sys.modules)\n"
        "from mnemarch.interfaces.cli import main\n"
        f"main({[command, *argv]!r})\n"
        "print(*sorted(set(sys.modules) - known))"
    )
    cli.begun()
    done = subprocess.run([sys.executable, "-c", probe], cwd=cli.home, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not loaded & {"rich", "dataclasses", "typing", "pathlib", "subprocess", "shutil", "asyncio"}
    assert not any(name.startswith("mnemarch.interfaces.demo") for name in loaded)
    assert ("tantivy" in loaded) <= (command == "recall")

"""The docs match the program: commands, settings, links, and every block of the READMEs."""

import ast
import importlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

import mnemarch
from mnemarch.config import Config, config_from
from mnemarch.interfaces.plain_commands import sections
from mnemarch.model.value import replace
from mnemarch.policy.heat import OrchestratorConfig

COMMANDS = {name for names in sections().values() for name in names}
ROOT = Path(__file__).parents[2]
CONFIGURATION = (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8")
COMMAND_LINE = (ROOT / "docs/reference/command-line.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_is_in_the_reference(command):
    assert re.search(rf"^\| `{command}[` ]", COMMAND_LINE, re.MULTILINE), command


def test_the_reference_names_no_command_that_is_not_there():
    assert set(re.findall(r"^\| `([a-z-]+)", COMMAND_LINE, re.MULTILINE)) == set(COMMANDS)


def test_the_settings_shown_are_the_defaults_and_all_of_them():
    shown = tomllib.loads(re.search(r"```toml\n(project.*?)```", CONFIGURATION, re.DOTALL)[1])
    configured = config_from({name: section for name, section in shown.items() if name != "project"})
    assert configured == replace(Config(), graph=OrchestratorConfig())
    sections = ("limits", "gate", "retention", "recall", "loops", "witness", "learning", "decisions", "core", "store")
    for section in sections:
        assert set(shown[section]) == set(type(getattr(Config(), section)).__match_args__), section
    for section, settings in (
        ("session", OrchestratorConfig().session_graph),
        ("agent", OrchestratorConfig().agent_graph),
        ("promotion", OrchestratorConfig().promotion),
        ("checkpoint", OrchestratorConfig().checkpoint),
    ):
        assert set(shown["graph"][section]) == set(type(settings).__match_args__), section


def test_every_policy_shown_is_accepted():
    shown = [tomllib.loads(block) for block in re.findall(r"```toml\n(.*?)```", CONFIGURATION, re.DOTALL)]
    policies = [config_from(settings).policy for settings in shown if settings.keys() == {"policy"}]
    assert policies
    assert Config().policy not in policies


def test_every_link_between_the_pages_leads_somewhere():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    links = [
        (page, target)
        for page in pages
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    ]
    assert {ROOT / "README.md", ROOT / "README.ko.md", ROOT / "docs/architecture.md"} <= {page for page, _ in links}
    assert [(page.name, target) for page, target in links if not (page.parent / target).exists()] == []


def test_every_test_that_the_threat_model_names_is_there():
    tests = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    named = re.findall(r"`(test_\w+(?:\.py)?)`", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))
    assert len(named) > 20
    for name in named:
        assert name in tests or any(f"def {name}(" in text for text in tests.values()), name


def test_every_module_that_a_decision_record_names_is_there():
    records = [page.read_text(encoding="utf-8") for page in (ROOT / "docs/decisions").glob("*.md")]
    named = {path for record in records for path in re.findall(r"`([\w/]+\.py)`", record)}
    assert len(named) > 5
    assert [path for path in named if not any((ROOT / top / path).exists() for top in ("", "src/mnemarch"))] == []


READMES = ("README.md", "README.ko.md")


def blocks_of(page: str) -> list[tuple[str, str]]:
    """The language and the text of every fenced block."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


AT_A_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(['bash', '-e', sys.argv[1]])))"


def pasted(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What ada sees who pastes it at a terminal where nothing is set, says who she is, and then yes."""
    folder.mkdir()
    (folder / "script").write_text(script, encoding="utf-8")
    environ = {name: item for name, item in os.environ.items() if name != "CI" and not name.startswith("MNEMARCH_")}
    environ |= {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{environ['PATH']}", "USER": "ada"}
    environ |= {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "own")}
    command = [sys.executable, "-c", AT_A_TERMINAL, "script"]
    return subprocess.run(command, input="\ny\n", cwd=folder, env=environ, stdout=subprocess.PIPE, encoding="utf-8")


@pytest.mark.parametrize("readme", READMES)
def test_every_block_of_a_readme_runs(readme, tmp_path):
    blocks = blocks_of(readme)
    assert [language for language, _ in blocks] == ["sh", "sh", "text", "python"]
    (_, make), (_, commands), _, (_, program) = blocks
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert [line.split()[:2] for line in make.splitlines()] == [["make", "demo"], ["make", "test"]]
    assert {"demo", "test"} <= set(targets)

    in_python = f"\ncd ../login; python -X utf8 - <<'END'\n{program}END\n"
    at_a_terminal = pasted(commands + in_python, tmp_path / "commands")
    assert (at_a_terminal.returncode, "Traceback" in at_a_terminal.stdout) == (0, False), at_a_terminal.stdout
    # Each line that the README shows is printed, whatever the ids.
    printed = re.sub(r"\b[0-9a-f]{8}\b", "ID", at_a_terminal.stdout)
    shown = [re.sub(r"\b[0-9a-f]{8}\b", "ID", line) for line in re.findall(r"^  # (.+)$", commands, re.MULTILINE)]
    assert len(shown) > 4
    assert [line for line in shown if line not in printed] == []
    assert "version 1, in force" in printed
    # The Python block prints what its comment says, after the commands and without them.
    begin = "\n".join(commands.splitlines()[:2]) + "\ncd ../login; echo 'def test_retry(): pass' > test_checkout.py"
    ran = pasted(begin + in_python, tmp_path / "program")
    assert ran.returncode == 0, ran.stdout
    for stdout, status in ((ran.stdout, "hypothesis"), (at_a_terminal.stdout, "verified")):
        assert status in stdout.splitlines()
        assert status in re.findall(r"print\(claim.*?# (.*)", program)[0]
        assert "[VERIFIED by test_retry] " in stdout


def test_every_block_of_the_tutorial_runs_and_prints_what_it_shows(tmp_path):
    commands = "".join(text for language, text in blocks_of("docs/tutorial/two-agents.md") if language == "sh")
    ran = pasted(commands, tmp_path / "tutorial")
    assert ran.returncode == 0, ran.stdout
    shown = re.findall(r"^  # (.+)$", commands, re.MULTILINE)
    assert len(shown) > 3
    assert [line for line in shown if line not in ran.stdout] == []


def facts_of(page: str) -> list[dict[str, object]]:
    """What two languages must have in common, section by section: links, code, numbers, rows."""
    sections = []
    for section in re.split(r"^## ", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE):
        prose = re.sub(r"^```.*?^```$", "", section, flags=re.DOTALL | re.MULTILINE)
        code = "".join(re.findall(r"^```(?:sh|python)\n(.*?)^```$", section, re.DOTALL | re.MULTILINE))
        words = re.sub(r"\]\([^)]*\)|`[^`]*`", "", prose)
        sections.append(
            {
                "links": sorted(set(re.findall(r"\]\(([^)]+)\)", prose)) - set(READMES)),
                "names": sorted(re.findall(r"`[^`]+`", prose)),
                "numbers": sorted(re.findall(r"\d+(?:\.\d+)?", words)),
                "code": re.sub(r'"[^"]*"|[ ]+#.*', "", code),
                "rows": re.findall(r"^[-|]", prose, re.MULTILINE),
            }
        )
    return sections


def test_the_korean_readme_has_the_sections_code_links_and_numbers_of_the_english_one():
    english, korean = map(facts_of, READMES)
    assert len(english) > 5
    assert korean == english


def test_every_setting_that_a_page_shows_is_accepted():
    blocks = [
        text
        for page in sorted((ROOT / "docs").rglob("*.md"))
        for language, text in blocks_of(page)
        if language == "toml"
    ]
    assert len(blocks) > 5
    for text in blocks:
        config_from({name: section for name, section in tomllib.loads(text).items() if name != "project"})


def test_the_glossary_explains_every_rule_that_a_recorded_answer_names():
    glossary = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"^\| ([A-Z]\d[\w.]*) \| \w", glossary, re.MULTILINE))
    answers = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests/fixtures/outputs").iterdir())
    named = set(re.findall(r'"rule": "([^"]+)"', answers))
    assert len(named) > 5
    assert named <= explained


def test_every_program_that_a_page_shows_imports_what_is_there():
    pages = sorted((ROOT / "docs").rglob("*.md"))
    programs = [ast.parse(text) for page in pages for language, text in blocks_of(page) if language == "python"]
    assert len(programs) > 2
    imports = [node for program in programs for node in program.body if isinstance(node, ast.ImportFrom)]
    assert imports
    for node in imports:
        for alias in node.names:
            assert hasattr(importlib.import_module(node.module), alias.name), (node.module, alias.name)


def test_the_program_of_the_loops_page_runs():
    (program,) = [text for language, text in blocks_of("docs/explanation/loops.md") if language == "python"]
    with mnemarch.open(":memory:") as memory:
        seat = memory.seat(mnemarch.Actor.agent("coder-1"), mnemarch.Scope(project="shop", task="T-42"))
        names = {"seat": seat, "error_output": "ConnectionError: pool timed out"}
        for _ in range(3):
            exec(compile(program, "loops.md", "exec"), names)
    assert names["verdict"].type == "BLOCK"


def test_the_programs_of_the_libraries_page_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for language, program in blocks_of("docs/howto/libraries.md"):
        assert language == "python"
        exec(compile(program, "libraries.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.splitlines() == [
        "{'text': 'Ada prefers dark themes'}",
        "[{'content': 'Where is my order?', 'role': 'user'}]",
        "['context', 'explain', 'recall']",
    ]


def test_the_programs_of_the_agent_memory_page_run(capsys):
    working, talking = [text for language, text in blocks_of("docs/howto/agent-memory.md") if language == "python"]
    exec(compile(working, "agent-memory.md", "exec"), {})
    assert capsys.readouterr().out.startswith(
        "1 edit, +1 -0 lines: src/checkout.py | Decision: Back off before each retry | Task T-42 (“Mend the retry"
    )
    names = {}
    exec(compile(talking, "agent-memory.md", "exec"), names)
    asked = SimpleNamespace(type="tool_use", id="1", name="core_memory_append")
    asked.input = {"section": "human", "content": "The name is Ada."}
    said = SimpleNamespace(type="text", text="Hello Ada.")
    answers = [SimpleNamespace(content=[asked]), SimpleNamespace(content=[said])]
    seen = []

    def create(**request):
        seen.append(request)
        return answers[len(seen) - 1]

    client = SimpleNamespace(messages=SimpleNamespace(create=create))
    with mnemarch.open(":memory:") as memory:
        seat = memory.seat(mnemarch.Actor.agent("a"), mnemarch.Scope(project="shop", worktree="main"), session="s")
        assert names["turn"](client, seat, "I am Ada") == "Hello Ada."
        assert "The name is Ada." in seen[1]["system"]
        assert seen[1]["messages"][-1]["content"][0]["content"].startswith("Done.")
        assert [turn.text for turn in seat.core.conversation_search("Ada")] == ["Hello Ada.", "I am Ada"]

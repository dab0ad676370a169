"""Docs that cannot rot: what exists is described, and what is described exists."""

import re
import tomllib
from pathlib import Path

import pytest

from mnemarch.config import Config, config_from
from mnemarch.interfaces.grammar import sections
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
    assert set(re.findall(r"^\| `([a-z]+)", COMMAND_LINE, re.MULTILINE)) == set(COMMANDS)


def test_the_settings_shown_are_the_defaults_and_all_of_them():
    shown = tomllib.loads(re.search(r"```toml\n(project.*?)```", CONFIGURATION, re.DOTALL)[1])
    configured = config_from({name: section for name, section in shown.items() if name != "project"})
    assert configured == replace(Config(), graph=OrchestratorConfig())
    for section in ("limits", "gate", "retention", "recall", "loops", "decisions", "store"):
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


def test_the_readmes_program_runs(tmp_path, monkeypatch, capsys):
    for name in ("README.md", "README.ko.md"):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        program = re.search(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.DOTALL)[1]
        exec(compile(program, name, "exec"), {})
        printed = capsys.readouterr().out
        assert "hypothesis" in printed
        assert "[VERIFIED]" in printed

"""The plugins match the table of hosts. `pytest tests/contract/test_plugin.py --rewrite` rewrites them."""

import json
from pathlib import Path

import mnemarch
from mnemarch.interfaces.install.forms import HOSTS, Entries

ROOT = Path(__file__).parents[2]
SAYS = "A governed memory that several coding agents share: decisions, lessons, and a stop before a fix is repeated."


def entries_of(host: str, **parts: bool) -> Entries:
    return Entries(host=HOSTS[host], name=host, command=["mnemarch"], **parts)


def plugin_files() -> dict[str, str]:
    """Every file of the plugins. Claude Code, Codex and Copilot CLI read the same one, so its command names no host."""
    about = {"name": "mnemarch", "version": mnemarch.__version__, "description": SAYS}
    hooks = {
        host: entries_of(host, has_hooks=True, has_server=False).put(None, "json")
        for host in HOSTS
        if host != "opencode"
    }
    servers = entries_of("claude-code", has_hooks=False, has_server=True).put(None, "json")
    market = {
        "name": "mnemarch",
        "owner": {"name": "Mnemarch"},
        "plugins": [{"name": "mnemarch", "source": "./plugin", "description": SAYS}],
    }
    return {
        ".claude-plugin/marketplace.json": _text(market),
        "plugin/.claude-plugin/plugin.json": _text(about | {"license": "Apache-2.0"}),
        "plugin/.mcp.json": servers,
        "plugin/hooks/hooks.json": hooks["claude-code"].replace(" --host claude-code", ""),
        "plugin/gemini/gemini-extension.json": _text(about | json.loads(servers)),
        "plugin/gemini/hooks/hooks.json": hooks["gemini"],
        "plugin/opencode/mnemarch.js": entries_of("opencode", has_hooks=True, has_server=False).put(None, "script"),
    }


def _text(data: object) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def test_the_plugins_are_made_from_the_table(request):
    expected = plugin_files()
    if request.config.getoption("--rewrite"):
        for name, text in expected.items():
            (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / name).write_text(text, encoding="utf-8")
    folders = (".claude-plugin", "plugin")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    assert {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths} == expected

"""What a recorded log means, and what every command answers over it, must not change by accident.

`fixtures/log.jsonl` is an export with every type of event, `fixtures/commands.txt` the commands that are run over it,
`fixtures/outputs/` what each answered with `--json`, and the events it appended. To change an answer on purpose, or to
add a command:

    python -m pytest tests/journeys/test_characterisation.py --rewrite

and read the difference that git shows. Texts for people are not pinned: neither what is printed without `--json`, nor
the words of errors and verdicts in it. `fixtures/record.py` recorded the log.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path

import pytest

import mnemarch
from fixtures.record import COMMITS, commit
from fixtures.repositories import git
from mnemarch import EventType, Kind, Status, user
from mnemarch.interfaces.cli import main
from mnemarch.model import stamps as instant

FIXTURES = Path(__file__).parents[1] / "fixtures"
LOG = FIXTURES / "log.jsonl"
LOG_TEXT = LOG.read_text(encoding="utf-8")
EVENTS = [json.loads(line) for line in LOG_TEXT.splitlines()[1:-1]]
NAMES = json.loads((FIXTURES / "names.json").read_text(encoding="utf-8"))
NAME_OF = {id: f"<{name}>" for name, id in NAMES.items()}
NOW = datetime(2026, 2, 9, 12, 0, tzinfo=UTC)
PLACE = {"ACTOR": "human:alice", "PROJECT": "shop", "WORKTREE": "main", "TASK": "T-1"}
DIGEST = "9b153d9d2519f41790cc0456b4d63a4bed955bc973752c3fdd0ae6cecc3a8500"

COMMANDS = [
    line for line in (FIXTURES / "commands.txt").read_text(encoding="utf-8").splitlines() if line and line[0] != "#"
]
ID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b")
# Sizes on disk and files looked through depend on how the store lays itself out, and times on the machine.
SIZES = {"bytes", "bytes_on_disk", "files", "seconds"}
# Words of the product for people, by the fields that tell which value it is; all its other fields are pinned.
PROSE = {
    ("type", "message", "hint"): ("message", "hint"),
    ("rule", "reason"): ("reason",),
    ("type", "reason", "instruction"): ("reason", "instruction"),
    ("valid", "reason", "suggestion"): ("reason", "suggestion"),
    ("ok", "what", "hint"): ("what", "hint"),
    ("ok", "claim", "counted"): ("claim", "counted"),
}


class Normaliser:
    """Gives what differs from run to run a name that does not: new ids and hashes, numbered as they appear, and paths.

    What was recorded keeps its value; of that, ids with a name are shown by it.
    """

    def __init__(self, home: Path) -> None:
        self._home = str(home)
        self._new: dict[str, str] = {}

    def __call__(self, item: object, key: str = "") -> object:
        if isinstance(item, dict):
            return {name: self._field(item, name) for name in item}
        if isinstance(item, list):
            return ["<words>" if key == "notes" else self(each, key) for each in item]
        if isinstance(item, float):
            return round(item, 9)
        return self._text(item) if isinstance(item, str) else item

    def _field(self, item: dict[str, object], name: str) -> object:
        each = item[name]
        if name in SIZES:
            return f"<{type(each).__name__}>"
        if each and any(name in names and item.keys() >= set(fields) for fields, names in PROSE.items()):
            return "<words>"
        if name == "hash" and "seq" in item and str(each) not in LOG_TEXT:
            return self._numbered(str(each), "hash")
        return self(each, name)

    def _text(self, text: str) -> str:
        text = text.replace(self._home, "<home>").replace(str(LOG), "<log>")
        for id, name in NAME_OF.items():
            text = text.replace(id, name)
        for id, name in self._new.items():
            text = text.replace(f"key:{id.replace('-', '')}", f"key:{name}")
        return ID.sub(lambda found: found[0] if found[0] in LOG_TEXT else self._numbered(found[0], "new"), text)

    def _numbered(self, item: str, what: str) -> str:
        number = 1 + sum(name.startswith(f"<{what}-") for name in self._new.values())
        return self._new.setdefault(item, f"<{what}-{number}>")


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """The repository with the recorded memory in it; only to be copied."""
    folder = tmp_path_factory.mktemp("original") / "shop"
    folder.mkdir()
    for number in range(len(COMMITS)):
        commit(folder, number)
    git(folder, "gc", "--quiet")  # Each test copies it, and a pack is one file.
    with mnemarch.open(folder, clock=lambda: NOW) as memory:
        memory.import_(LOG)
    return folder


@pytest.fixture
def home(original, tmp_path, monkeypatch):
    """A copy of it, a clock that stands still, and nothing of the environment but who and where."""
    folder = tmp_path / "shop"
    shutil.copytree(original, folder)
    for name in [name for name in os.environ if name.startswith("MNEMARCH_")]:
        monkeypatch.delenv(name)
    for name, item in PLACE.items():
        monkeypatch.setenv(f"MNEMARCH_{name}", item)
    shutil.copytree(os.environ["XDG_CONFIG_HOME"], tmp_path / "own")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    monkeypatch.setattr(instant, "now", lambda: NOW)
    monkeypatch.chdir(folder)
    user.accept(str(folder / "mnemarch.toml"), (folder / "mnemarch.toml").read_bytes())
    return folder


def run(line: str, home: Path, monkeypatch) -> tuple[int, str]:
    """The exit code and the standard output of a line of commands.txt."""
    typed, _, given = line.partition(" <<< ")
    known = NAMES | {"home": str(home), "log": str(LOG)}
    argv = [re.sub(r"<([a-z0-9-]+)>", lambda found: known[found[1]], word) for word in shlex.split(typed)]
    user.keep_person("bob" if "--actor human:bob" in typed else "alice")
    stdin = io.TextIOWrapper(io.BytesIO(given.replace("\\n", "\n").encode()), encoding="utf-8")
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", stdin)
    with redirect_stdout(stdout), redirect_stderr(io.StringIO()):
        exit_code = main([*argv, "--json"])
    stdout.flush()
    return exit_code, stdout.buffer.getvalue().decode()


def appended(home: Path) -> list[dict[str, object]]:
    """The events that came after the recorded ones, without their places in the chain."""
    with mnemarch.open(home) as memory:
        if memory.stats().events == len(EVENTS):
            return []
        memory.export(home / "after.jsonl")
    lines = (home / "after.jsonl").read_text(encoding="utf-8").splitlines()[1 + len(EVENTS) : -1]
    names = ("id", "type", "actor", "scope", "session", "subject", "key", "occurred_at")
    return [
        {name: event[name] for name in names} | {"body": json.loads(event["body"])} for event in map(json.loads, lines)
    ]


def golden_file(line: str) -> Path:
    return FIXTURES / "outputs" / f"{shlex.split(line)[0]}.json"


def goldens(path: Path) -> dict[str, dict[str, object]]:
    """What is pinned in a file, by the line of commands.txt."""
    pinned = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return {each["command"]: each for each in pinned}


@pytest.mark.parametrize("line", COMMANDS, ids=[line[:80] for line in COMMANDS])
def test_a_command_answers_as_it_did(line, home, monkeypatch, request):
    exit_code, out = run(line, home, monkeypatch)
    normalised = Normaliser(home)
    got = {"command": line, "exit_code": exit_code, "output": normalised(json.loads(out))}
    got |= {"appended": events} if (events := normalised(appended(home))) else {}
    path = golden_file(line)
    if request.config.getoption("--rewrite"):
        kept = goldens(path) | {line: got}
        wanted = [kept[each] for each in COMMANDS if each in kept and golden_file(each) == path]
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(wanted, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert got == goldens(path).get(line), f"{path.name} has another answer; --rewrite if this one is meant"


def test_every_command_of_the_overview_is_pinned(home, monkeypatch, capsys):
    assert main(["--help"]) == 0
    listed = set(re.findall(r"^  ([a-z][a-z-]*) {2,}\S", capsys.readouterr().out, re.MULTILINE))
    assert len(listed) >= 40
    # What hosts call answers in their words, or not at all: test_hook.py has it.
    assert {path.stem for path in (FIXTURES / "outputs").iterdir()} == listed


def test_every_act_of_the_commands_that_have_several_is_pinned():
    words = [shlex.split(line) for line in COMMANDS]
    assert {each[1] for each in words if each[0] == "decisions" and len(each) > 1} == {
        *(
            *("list", "show", "history", "load", "relate", "relations", "evidence", "anchor", "policy", "broken"),
            *("import", "export"),
        )
    }


def test_no_answer_is_pinned_for_a_command_that_is_not_run():
    pinned = [line for path in (FIXTURES / "outputs").iterdir() for line in goldens(path)]
    assert sorted(pinned) == sorted(COMMANDS)


def test_the_log_has_every_type_of_event():
    assert {event["type"] for event in EVENTS} == {str(type) for type in EventType}


@pytest.mark.parametrize("target", ["on disk", ":memory:"])
def test_the_log_rebuilds_to_the_recorded_state(target, tmp_path):
    with mnemarch.open(tmp_path if target == "on disk" else target, clock=lambda: NOW) as memory:
        memory.import_(LOG)
        rebuilt, checked, stats = memory.rebuild(), memory.audit(), memory.stats()
    assert (rebuilt.digest_before, rebuilt.digest_after, rebuilt.events) == (DIGEST, DIGEST, len(EVENTS))
    assert (checked.ok, checked.events) == (True, len(EVENTS))
    assert set(stats.by_kind) == {str(kind) for kind in Kind}
    assert set(stats.by_status) == {str(status) for status in Status}
    pinned = goldens(FIXTURES / "outputs" / "stats.json")["stats"]["output"]
    assert {name: getattr(stats, name) for name in ("events", "units", "projects", "open_conflicts")} == {
        name: pinned[name] for name in ("events", "units", "projects", "open_conflicts")
    }


def test_what_is_exported_again_is_the_log(home):
    with mnemarch.open(home) as memory:
        memory.export(home / "again.jsonl")
    assert (home / "again.jsonl").read_text(encoding="utf-8") == LOG_TEXT

"""`mnemarch install` and `uninstall`, as a user types them."""

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mnemarch.interfaces.cli import main
from mnemarch.interfaces.hooks import hosts
from mnemarch.interfaces.hooks.sessions import Session
from mnemarch.interfaces.install import planned
from mnemarch.interfaces.install.forms import HOSTS


@pytest.fixture
def repo(tmp_path, monkeypatch):
    """A repository, with a home and a state folder that are not the developer's."""
    home, repo = tmp_path / "home", tmp_path / "repo"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    subprocess.run(["git", "init", "-q", str(repo)], check=True)
    monkeypatch.chdir(repo)
    (repo / ".claude").mkdir()
    (repo / ".claude/settings.json").write_bytes(b'{\r\n\t// mine\r\n\t"hooks": {"Stop": [], },\r\n}')
    (repo / ".claude/settings.json").chmod(0o640)
    (repo / ".codex").mkdir()
    (repo / ".codex/config.toml").write_text('# mine\nmodel = "gpt"')
    (repo / "opencode.jsonc").write_text('{"theme": "키", /* c */}')
    return repo


def tree(folder: Path) -> dict[str, tuple[int, bytes | None]]:
    """Every file and folder with its rights and content, but for git's and the memory."""
    paths = [path for path in sorted(folder.rglob("*")) if not {".git", ".mnemarch"} & set(path.parts)]
    return {str(path): (path.lstat().st_mode, path.read_bytes() if path.is_file() else None) for path in paths}


@pytest.mark.parametrize("options", [[], ["--user"]])
def test_uninstall_leaves_every_file_and_folder_as_it_was(repo, options, tmp_path, capsys):
    before = tree(repo) | tree(tmp_path / "home")
    for host in HOSTS:
        assert main(["install", host, *options]) == 0
    installed = tree(repo) | tree(tmp_path / "home")
    assert len(installed) > len(before) + len(HOSTS)
    for host in HOSTS:
        assert main(["install", host, *options]) == 0
    assert tree(repo) | tree(tmp_path / "home") == installed
    for host in HOSTS:
        assert main(["uninstall", host, *options]) == 0
    assert tree(repo) | tree(tmp_path / "home") == before
    assert not list((tmp_path / "state").rglob("*.json*"))


def test_a_dry_run_shows_the_difference_and_changes_nothing(repo, capsys):
    before = tree(repo)
    assert main(["install", "claude-code", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert all(said in shown for said in ("+++ ", '"SessionStart"', "/dev/null"))
    assert tree(repo) == before
    assert not (repo / ".mnemarch").exists()


def test_install_makes_the_memory_says_what_it_wrote_and_what_to_do(repo, capsys):
    assert main(["install", "codex"]) == 0
    shown = capsys.readouterr().out
    for said in (".codex/hooks.json", ".codex/config.toml", "backup", ".mnemarch", "/hooks", "--user"):
        assert said in shown
    assert (repo / ".mnemarch/memory.db").exists()


def test_the_command_is_a_whole_path_and_runs(repo):
    assert main(["install", "claude-code"]) == 0
    server = json.loads((repo / ".mcp.json").read_text())["mcpServers"]["mnemarch"]
    assert os.path.isabs(server["command"])
    listed = subprocess.run([server["command"], *server["args"], "--tools"], capture_output=True, env={}, cwd=repo)
    assert listed.returncode == 0
    assert b"recall" in listed.stdout


def test_a_host_that_reads_the_same_server_keeps_it(repo):
    main(["install", "claude-code"])
    main(["install", "copilot"])
    main(["uninstall", "claude-code"])
    assert "mnemarch" in (repo / ".mcp.json").read_text()
    main(["uninstall", "copilot"])
    assert not (repo / ".mcp.json").exists()


def test_what_the_user_changed_in_between_stays(repo):
    path = repo / ".codex/config.toml"
    main(["install", "codex"])
    path.write_text(path.read_text().replace('"gpt"', '"other"') + "\n# new\n[features]\na = true\n")
    main(["uninstall", "codex"])
    assert path.read_text() == '# mine\nmodel = "other"\n\n# new\n[features]\na = true\n'


@pytest.mark.parametrize(
    ("content", "said"),
    [(b'{"a": 1', "not JSON"), (b"\xff\xfe{}", "UTF-8"), (b'{"hooks": 3}', "not an object"), (b"[1]", "not an object")],
)
def test_a_file_that_can_not_be_changed_safely_is_left_alone(repo, content, said, capsys):
    path = repo / ".claude/settings.json"
    path.write_bytes(content)
    before = tree(repo)
    assert main(["install", "claude-code"]) == 2
    assert said in capsys.readouterr().err
    assert tree(repo) == before


def test_a_link_stays_a_link_and_may_not_lead_out_of_the_project(repo, tmp_path, capsys):
    (repo / "real.json").write_text("{}")
    (repo / ".mcp.json").symlink_to("real.json")
    main(["install", "claude-code"])
    assert (repo / ".mcp.json").is_symlink()
    assert "mnemarch" in (repo / "real.json").read_text()
    main(["uninstall", "claude-code"])
    assert (repo / "real.json").read_text() == "{}"
    (tmp_path / "home/mine.json").write_text("{}")
    (repo / ".mcp.json").unlink()
    for target, said in ((tmp_path / "home/mine.json", "outside"), (repo / "nothing.json", "link to nothing")):
        (repo / ".mcp.json").symlink_to(target)
        assert main(["install", "claude-code"]) == 2
        assert said in capsys.readouterr().err
        (repo / ".mcp.json").unlink()
    assert (tmp_path / "home/mine.json").read_text() == "{}"


def test_a_new_path_of_the_program_replaces_the_old_one(repo, monkeypatch, tmp_path):
    before = tree(repo)
    main(["install", "claude-code"])
    moved = tmp_path / "bin dir/mnemarch"
    moved.parent.mkdir()
    moved.write_text("#!/bin/sh\n")
    moved.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(moved)])
    main(["install", "claude-code"])
    text = (repo / ".claude/settings.json").read_text()
    assert text.count("hook --host claude-code") == text.count(f"'{moved}' hook") == 9
    main(["uninstall", "claude-code"])
    assert tree(repo) == before


def test_a_file_that_only_its_owner_may_read_is_so_while_it_is_written(repo, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle)))
    path = repo / ".claude/settings.json"
    path.chmod(0o600)
    main(["install", "claude-code"])
    written = [status for status in synced if status.st_size == path.stat().st_size]
    assert [stat.S_IMODE(status.st_mode) for status in (*written, path.stat())] == [0o600, 0o600]


def test_a_file_that_a_host_writes_in_the_same_moment_is_left_to_it(repo, monkeypatch, capsys):
    path = repo / ".claude/settings.json"

    def planned_while_the_host_writes(*words, **how):
        change = planned(*words, **how)
        path.write_text('{"by": "the host"}')
        return change

    monkeypatch.setattr("mnemarch.interfaces.install.planned", planned_while_the_host_writes)
    assert main(["install", "claude-code"]) == 2
    assert "changed at this moment" in capsys.readouterr().err
    assert path.read_text() == '{"by": "the host"}'


def test_an_unknown_host_is_refused_with_the_names_of_those_known(repo, capsys):
    assert main(["install", "emacs"]) == 2
    assert "claude-code, codex" in capsys.readouterr().err


def found_by_doctor(capsys) -> list[dict]:
    capsys.readouterr()
    main(["doctor", "--json"])
    return [finding for finding in json.loads(capsys.readouterr().out) if "hook" in finding["what"]]


@pytest.mark.parametrize("host", ["claude-code", "opencode"])
def test_the_doctor_tries_the_hooks_and_says_when_one_ran_and_whether_its_context_arrived(repo, host, capsys):
    main(["install", host])
    tried, seen = found_by_doctor(capsys)
    assert tried["ok"], tried
    assert "no session has called a hook yet" in seen["what"]
    assert not list((repo / ".mnemarch/hooks").glob("*doctor*"))
    transcript = repo / "transcript.jsonl"
    transcript.write_text("{}")
    event = {"hook_event_name": "SessionStart", "session_id": "s-1", "cwd": str(repo)}
    event |= {"transcript_path": str(transcript)}
    printed = subprocess.run(
        [sys.executable, "-m", "mnemarch", "hook", "--host", host],
        input=json.dumps(event),
        capture_output=True,
        text=True,
    ).stdout
    seen = found_by_doctor(capsys)[-1]
    assert (seen["ok"], "its transcript has none" in seen["what"]) == (False, True)
    transcript.write_text(printed)
    seen = found_by_doctor(capsys)[-1]
    assert (seen["ok"], "shows that they arrived" in seen["what"]) == (True, True)


def test_the_doctor_names_the_last_event_also_of_two_in_one_second(repo, capsys):
    main(["install", "claude-code"])
    place = str(repo / ".mnemarch")
    for number, name in enumerate(["SessionStart", "Stop"] * 3):
        payload = {"hook_event_name": name, "session_id": f"s-{number % 2}", "cwd": str(repo), "number": number}
        Session(place, payload["session_id"], "claude-code").admits(
            hosts.read(hosts.HOSTS["claude-code"], payload, str(repo), {})
        )
    assert "(stop)" in found_by_doctor(capsys)[-1]["what"]


def test_the_doctor_runs_no_command_that_came_with_a_clone(repo, capsys):
    main(["install", "claude-code"])
    settings = repo / ".claude/settings.json"
    evil = f"touch {repo}/evil; mnemarch hook --host claude-code"
    settings.write_text(re.sub(r'"[^"]*mnemarch hook --host claude-code"', json.dumps(evil), settings.read_text()))
    tried = found_by_doctor(capsys)[0]
    assert (tried["ok"], "not tried" in tried["what"]) == (False, True)
    assert not (repo / "evil").exists()


def test_the_doctor_misses_a_server_that_was_taken_out(repo, capsys):
    main(["install", "claude-code"])
    (repo / ".mcp.json").unlink()
    assert [finding["hint"] for finding in found_by_doctor(capsys) if not finding["ok"]] == [
        "mnemarch install claude-code"
    ]


def test_the_doctor_gets_back_by_the_hook_what_it_wrote_and_leaves_no_task(repo, capsys):
    main(["install", "claude-code"])
    assert "pass on what the memory knows" in found_by_doctor(capsys)[0]["what"]
    main(["status", "--actor", "human:ada", "--json"])
    seen = capsys.readouterr().out
    assert "doctor" not in seen
    assert json.loads(seen)["tasks"] == []
    # Who wants hooks to say nothing at the start is not told that they are broken.
    (repo / "mnemarch.toml").write_text("[hook]\nstart_tokens = 0\n")
    assert found_by_doctor(capsys)[0]["ok"]

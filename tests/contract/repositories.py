"""Real git repositories for tests: made by the git program, with nobody's settings."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

_SETTINGS = {
    "user.name": "t",
    "user.email": "t@localhost",
    "init.defaultBranch": "main",
    "commit.gpgsign": "false",
    "protocol.file.allow": "always",
    "advice.detachedHead": "false",
}
_ENVIRONMENT = {name: item for name, item in os.environ.items() if not name.startswith("GIT_")} | {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "LC_ALL": "C",
}


def git(folder: Path | str, *argv: str, given: bytes = b"") -> str:
    """What git says; it must succeed."""
    settings = [part for name, item in _SETTINGS.items() for part in ("-c", f"{name}={item}")]
    done = subprocess.run(
        ["git", *settings, "-C", str(folder), *argv], input=given, capture_output=True, env=_ENVIRONMENT
    )
    assert done.returncode == 0, (argv, done.stderr)
    return os.fsdecode(done.stdout).strip()


def made(folder: Path, *options: str) -> Path:
    """A repository without a commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--template=", *options)
    return folder


def commit(folder: Path, message: str = "more", /, **files: str) -> str:
    """Commit everything there is, and these files; gives the hash. `__` in a name stands for a dot."""
    for name, text in files.items():
        path = folder / name.replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD")


@cache
def _template() -> tempfile.TemporaryDirectory[str]:
    """A repository with one commit, made once: git takes long to start."""
    folder = tempfile.TemporaryDirectory(prefix="mnemarch-tests-")
    commit(made(Path(folder.name)), "first", readme__md="hello\n")
    return folder


def repository(folder: Path) -> Path:
    """A repository with one commit, which is the same in all of them."""
    return shutil.copytree(_template().name, folder, symlinks=True, dirs_exist_ok=True)


def worktree(folder: Path, path: Path, *options: str) -> Path:
    git(folder, "worktree", "add", "--quiet", *options, str(path))
    return path


def clone(source: Path | str, path: Path, *options: str) -> Path:
    git(path.parent, "clone", "--quiet", *options, str(source), str(path))
    return path


@pytest.fixture
def processes(monkeypatch) -> list[list[str]]:
    """The command of every process that is started from here on."""
    started: list[list[str]] = []

    class Recorded(subprocess.Popen):
        def __init__(self, args, *rest, **options):
            started.append(list(args))
            super().__init__(args, *rest, **options)

    def spawned(program, args, *rest, **options):
        started.append(list(args))
        return spawn(program, args, *rest, **options)

    spawn = os.posix_spawnp
    monkeypatch.setattr(subprocess, "Popen", Recorded)
    monkeypatch.setattr(os, "posix_spawnp", spawned)
    return started

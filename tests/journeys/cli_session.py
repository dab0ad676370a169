"""The command line as a test uses it: in this process for speed, in a process of its own where that is the point."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import mnemarch
from fixtures import repositories
from mnemarch import Actor, Citation, Scope
from mnemarch.interfaces.cli import main

WHERE = {"project": "shop", "worktree": "main", "task": "T-1"}
TEST = "tests/test_shop.py::test_retry"
CTRL_C, CTRL_D = b"\x03", b"\x04"


@dataclass(frozen=True)
class Run:
    exit_code: int
    out: str
    err: str

    @property
    def json(self):
        """The one JSON document on stdout; anything beside it makes this fail."""
        return json.loads(self.out)


class Cli:
    """`mnemarch` in a folder of its own, with nothing inherited from the environment."""

    def __init__(self, tmp_path: Path, monkeypatch, capsys) -> None:
        self.home = tmp_path / "home"
        self.home.mkdir()
        self.monkeypatch = monkeypatch
        self._capsys = capsys
        for name in [name for name in os.environ if name.startswith("MNEMARCH_")]:
            monkeypatch.delenv(name)
        for name, item in WHERE.items():
            monkeypatch.setenv(f"MNEMARCH_{name.upper()}", item)
        monkeypatch.chdir(self.home)

    def __call__(self, *argv: str, stdin: bytes = b"") -> Run:
        with io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8") as given:
            self.monkeypatch.setattr(sys, "stdin", given)
            exit_code = main(argv)
        captured = self._capsys.readouterr()
        return Run(exit_code, captured.out, captured.err)

    def ok(self, *argv: str, stdin: bytes = b""):
        """The JSON answer of a command that must succeed."""
        run = self(*argv, "--json", stdin=stdin)
        assert run.exit_code == 0, run
        return run.json

    def begun(self) -> Cli:
        """With a memory that has nothing in it."""
        self.ok("init")
        return self

    def process(self, *argv: str, **options) -> subprocess.Popen:
        """The same command in a process of its own."""
        return subprocess.Popen([sys.executable, "-m", "mnemarch", *argv], cwd=self.home, **options)

    def repository(self, **files: str) -> None:
        """Make the folder a git repository with one more commit; `a__b_py` names a/b.py."""
        if not (self.home / ".git").exists():
            repositories.made(self.home)
        repositories.commit(self.home, **repositories.paths({"README_md": "shop"} | files))

    @contextmanager
    def seat(self, actor: str = "agent:coder-1", **where):
        """A seat of the same memory, through the library."""
        with mnemarch.open(self.home) as memory:
            yield memory.seat(Actor.parse(actor), Scope(**WHERE | where), root=self.home)

    def unit_at(self, level: str, content: str = "Checkout retries three times.") -> str:
        """A verified unit at this level, written by an actor who may write there."""
        writer = {"task": "agent", "worktree": "agent", "project": "orchestrator", "org": "human"}[level]
        with self.seat("agent:coder-1") as seat:
            seat.verify(True, tests=[TEST])
        with self.seat(f"{writer}:w") as seat:
            return seat.remember(content, level=level, citations=[Citation.test(TEST)]).unit.id


def _at_a_terminal():
    """As a shell starts a command: its own terminal, and Ctrl-C not ignored."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def told(argv, answers, cwd, **environment):
    """What a terminal shows, in one line, and the exit code, when somebody types these answers."""
    shown, exit_code = shown_at_terminal(argv, answers, cwd, **environment)
    return re.sub(r"\s+", " ", shown), exit_code


def shown_at_terminal(argv, answers, cwd, **environment):
    """The same as it is shown. A variable that is None is not set."""
    main, side = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "mnemarch", *argv],
        cwd=cwd,
        stdin=side,
        stdout=side,
        stderr=side,
        close_fds=True,
        start_new_session=True,
        preexec_fn=_at_a_terminal,
        env={name: item for name, item in (os.environ | {"CI": None} | environment).items() if item is not None},
    )
    os.close(side)
    waiting, shown, patience = list(answers), b"", 30
    while True:
        if not select.select([main], [], [], 1)[0]:
            patience -= 1
            if not patience:
                process.kill()
            elif not waiting and answers[-1:] == [CTRL_C]:
                os.write(main, CTRL_C)  # One that comes between a prompt and the wait for its answer is not heard.
            continue
        try:
            chunk = os.read(main, 4096)
        except OSError:
            break
        if not chunk:
            break
        shown += chunk
        if waiting and shown.endswith((b"? ", b": ", b") ", b"] ")):
            os.write(main, waiting.pop(0))
            shown += b"\n"
    os.close(main)
    return shown.decode().replace("\r\n", "\n"), process.wait(30)

"""Processes to torture a memory with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mnemarch

WORKERS = str(Path(__file__).with_name("workers.py"))
FULL = os.environ.get("MNEMARCH_TORTURE", "small") == "full"


class Worker:
    """One process of `workers.py`."""

    def __init__(self, *arguments: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, WORKERS, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def line(self):
        text = self.process.stdout.readline()
        if not text and self.process.wait(30) > 0:
            raise AssertionError(self.process.stderr.read())
        return json.loads(text) if text else None

    def go(self, text: str = "go") -> None:
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def ask(self, text: str):
        self.go(text)
        return self.line()

    def _rest(self) -> tuple[str, str]:
        """What is left in its pipes, once it has ended; its input is closed."""
        if self.process.stdin is not None and self.process.stdin.closed:
            self.process.stdin = None
        return self.process.communicate()

    def done(self, *, code: int = 0):
        """Everything it said until it ended well."""
        out, err = self._rest()
        assert self.process.returncode == code, err
        assert "Traceback" not in err, err
        return [json.loads(line) for line in out.splitlines()]

    def killed(self):
        """Everything it had acknowledged when it was killed; the last line may be torn."""
        self.process.kill()
        out, err = self._rest()
        assert "Traceback" not in err, err
        lines = out.splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self._rest()


@pytest.fixture
def worker():
    started = []

    def start(*arguments: object) -> Worker:
        started.append(Worker(*arguments))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture
def full() -> bool:
    return FULL


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def checked(folder):
    """Assert that the memory is whole and give its events by id."""

    def check():
        with mnemarch.open(folder) as memory:
            audit = memory.audit()
            assert audit.ok, audit.problem
            assert memory._engine.store.check() is None
            assert memory.rebuild().same
            return {event.id: event for event in memory._engine.store.read(lambda reader: list(reader.events()))}

    return check

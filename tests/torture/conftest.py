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
    """One process that runs a job of `workers.py`."""

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

    def done(self):
        """Everything it said until it ended well."""
        out, err = self.process.communicate()
        assert (self.process.returncode, err) == (0, "")
        return [json.loads(line) for line in out.splitlines()]

    def killed(self):
        """Everything it had acknowledged when it was killed; the last line may be torn."""
        self.process.kill()
        # Not by `communicate`, which would pass over what was read ahead.
        out, err = self.process.stdout.read(), self.process.stderr.read()
        self.process.wait()
        assert "Traceback" not in err, err
        return [json.loads(line) for line in out.splitlines(keepends=True) if line.endswith("\n")]

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()


def _begin(workers) -> None:
    for one in workers:
        assert one.line() == {"ready": True}
    for one in workers:
        one.go()


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
def begin():
    """Let workers go on together once each of them is set up."""
    return _begin


@pytest.fixture
def together(worker, begin):
    """Run one job in several processes at once, each with arguments of its own; gives the last line of each."""

    def run(job: str, *arguments: tuple):
        workers = [worker(job, *each) for each in arguments]
        begin(workers)
        return [one.done()[-1] for one in workers]

    return run


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

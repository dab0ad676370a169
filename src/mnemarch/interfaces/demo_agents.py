"""The demo's agents: each is a process that takes the steps it is given and reports every answer."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import time
from contextlib import redirect_stderr, redirect_stdout

from mnemarch.errors import Conflict, StoreUnavailable
from mnemarch.model.caller import Actor, Level, Scope
from mnemarch.model.citation import Citation
from mnemarch.verbs.wire import to_json
from mnemarch.wiring import open as open_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multiprocessing.queues import SimpleQueue
    from multiprocessing.synchronize import Barrier
    from typing import Any, Self

    from mnemarch.seat import Seat

_LOOK_S = 0.02


def take_steps(name: str, script: dict[str, Any], barrier: Barrier, reports: SimpleQueue[Any]) -> None:
    """What an agent's process does. A step without anything to do waits for the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # On Ctrl-C the demo ends its agents.
    with open_memory(script["store"]) as memory:
        seat = memory.seat(Actor.parse(script["actor"]), Scope(**script["scope"]), root=script["root"])
        for step in script["steps"]:
            if not step:
                barrier.wait()
                continue
            reports.put((name, step | to_json(_answer(seat, script, step))))
            if script["pause_s_max"]:
                time.sleep(random.uniform(0, script["pause_s_max"]))  # noqa: S311 - the pace of an agent, no secret


def _answer(seat: Seat, script: dict[str, Any], step: dict[str, Any]) -> dict[str, Any]:
    """Take one step; gives what the memory answered. The tests really run, and the memory sees each of them."""
    if step["do"] == "log":
        return {"receipt": seat.log(step["kind"], step["text"], key=step.get("key"))}
    if step["do"] == "verify":
        with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
            return {"answer": seat.verify(run=[sys.executable, "-m", "unittest", *step["tests"]])}
    if step["do"] == "read":
        script["seen"] = seat.get(step["unit"])
        return {}
    if step["do"] == "supersede":
        new, seen = script["said"], script["seen"]
        try:
            seat.supersede(new, seen.id, "a better wording", expected_version=seen.version)
        except Conflict as conflict:
            return {"new": new, "seen": seen.version, "actual": conflict.actual_version}
        return {"new": new, "seen": seen.version}
    cited = [Citation.parse(item) for item in step["citations"]]
    outcome = to_json(seat.remember(step["text"], level=Level.parse(step["level"]), citations=cited))
    script["said"] = (outcome.get("unit") or {}).get("id")
    return {"answer": outcome}


class Crew:
    """Several agents that wait for each other; `reports` has everything that each has reported so far."""

    def __init__(self, scripts: dict[str, dict[str, Any]]) -> None:
        context = multiprocessing.get_context("spawn")
        self._barrier = context.Barrier(len(scripts) + 1)
        self._queue: SimpleQueue[Any] = context.SimpleQueue()
        self.reports: dict[str, list[dict[str, Any]]] = {name: [] for name in scripts}
        self.processes = [
            context.Process(target=take_steps, args=(name, script, self._barrier, self._queue), name=name)
            for name, script in scripts.items()
        ]

    def __enter__(self) -> Self:
        for process in self.processes:
            process.start()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.join()

    def listen(self, *, to_end: bool = False) -> None:
        """Hear everybody until all wait for each other, or have ended well."""
        is_done = False
        while not is_done:
            ended = [process.name for process in self.processes if process.exitcode is not None]
            broken = [process.name for process in self.processes if process.exitcode]
            if broken or (ended and not to_end):
                raise StoreUnavailable(f"{', '.join(broken or ended)} broke off.", hint="Run mnemarch doctor.")
            is_done = len(ended) == len(self.processes) if to_end else self._barrier.n_waiting == len(self.processes)
            while not self._queue.empty():
                name, report = self._queue.get()
                self.reports[name].append(report)
            time.sleep(_LOOK_S)

    def go(self) -> None:
        """Let everybody go on at once."""
        self._barrier.wait()

    def receipts(self, name: str) -> list[dict[str, Any]]:
        """Every receipt that an agent was handed, in order."""
        receipts = (one.get("receipt") or one.get("answer", {}).get("receipt") for one in self.reports[name])
        return [receipt for receipt in receipts if receipt]

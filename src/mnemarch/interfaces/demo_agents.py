"""The demo's agents, each a process that follows a script and reports every answer; and the proofs, counted from the
memory itself after everything."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sys
import time
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait

from mnemarch.errors import Conflict, MnemarchError, StoreUnavailable
from mnemarch.model.caller import Actor, Level, Scope
from mnemarch.model.citation import Citation
from mnemarch.model.value import Frozen
from mnemarch.verbs.wire import to_json
from mnemarch.wiring import open as open_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.context import SpawnProcess
    from typing import Any, Self

    from mnemarch.memory import Memory
    from mnemarch.seat import Seat

    # What was counted, and whether the claim holds.
    Count = tuple[str, bool]

_END_S_MAX = 10.0


class Agents:
    """A process for each script. They go on together: whoever comes to an empty step waits for the others."""

    def __init__(self, scripts: dict[str, dict[str, Any]]) -> None:
        self._scripts = scripts
        self._at_work: dict[Connection, tuple[str, SpawnProcess]] = {}
        self._processes: list[SpawnProcess] = []

    def __enter__(self) -> Self:
        context = multiprocessing.get_context("spawn")
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)  # The agents inherit it: Ctrl-C is for the demo to end.
        try:
            for name, script in self._scripts.items():
                ours, theirs = context.Pipe()
                process = context.Process(target=_take_steps, args=(theirs, script), daemon=True)
                process.start()
                theirs.close()
                self._at_work[ours] = name, process
                self._processes.append(process)
        finally:
            signal.signal(signal.SIGINT, handler)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.terminate()
            process.join()

    def reports(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """What each of them reports, as it comes, until all wait or have ended; then those that wait may go on."""
        busy = set(self._at_work)
        while busy:
            for agent in busy.intersection(wait(busy)):
                report = self._said_by(agent)
                if report:
                    yield self._at_work[agent][0], report
                else:
                    busy.remove(agent)
        for agent in self._at_work:
            with suppress(ConnectionError):  # Whoever died meanwhile is noticed at the next look.
                agent.send({})

    def _said_by(self, agent: Connection) -> dict[str, Any]:
        """One report; nothing from an agent that waits, or came to its end. One that broke off ends the demo."""
        try:
            report = agent.recv()
        except (EOFError, ConnectionError):
            name, process = self._at_work.pop(agent)
            process.join(_END_S_MAX)
            if process.exitcode:
                what = f"{name} of the demo broke off (exit code {process.exitcode})."
                raise StoreUnavailable(what, hint="Run the demo again; what it printed above may tell why.") from None
            return {}
        if isinstance(report, StoreUnavailable):
            raise report
        return dict(report)


def _take_steps(channel: Connection, script: dict[str, Any]) -> None:
    """What an agent's process does: it reports each step, and waits for the word to go on at an empty one."""
    try:
        with open_memory(script["store"]) as memory:
            seat = memory.seat(Actor.parse(script["actor"]), Scope(**script["scope"]), root=script["root"])
            for step in script["steps"]:
                if step:
                    channel.send({"process": os.getpid()} | step | to_json(_answer(seat, script, step)))
                    time.sleep(random.uniform(0, script["pause_s_max"]))  # noqa: S311 - an agent's pace, no secret
                else:
                    channel.send({})
                    channel.recv()
    except MnemarchError as error:
        channel.send(StoreUnavailable(error.message, hint=error.hint))
    except (EOFError, ConnectionError):  # The demo is gone.
        sys.exit(1)


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


def receipts_in(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The receipt that an agent was handed for a step, if there is one."""
    receipt = report.get("receipt") or report.get("answer", {}).get("receipt")
    return [receipt] if receipt else []


# The proof


class Proof(Frozen):
    """One claim, what was counted for it, and whether it holds."""

    claim: str
    counted: str
    ok: bool


@dataclass
class Witness:
    """What the story keeps to be checked at the end: what was said (`shop`), and what the memory answered."""

    shop: dict[str, Any]
    agents: int
    secret: str
    receipts: list[dict[str, Any]] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)
    won: list[str] = field(default_factory=list)
    lost: int = 0


class _Facts(Frozen):
    """What is counted: the memory, an export of its log, the folder on disk, and what the story kept."""

    memory: Memory
    judge: Seat
    witness: Witness
    log: list[dict[str, Any]]
    folder: str


def proofs_of(memory: Memory, judge: Seat, witness: Witness, folder: str) -> list[Proof]:
    """Count everything anew, from an export of the log and the bytes on disk."""
    log_path = os.path.join(folder, "log.jsonl")
    memory.export(log_path)
    with open(log_path, encoding="utf-8") as file:
        _, *log, _ = map(json.loads, file)
    facts = _Facts(memory, judge, witness, log, os.path.join(folder, ".mnemarch"))
    counts = {claim: count(facts) for claim, count in _PROOFS.items()}
    return [Proof(claim, counted, ok) for claim, (counted, ok) in counts.items()]


def _receipts(facts: _Facts) -> Count:
    hash_of = {event["id"]: event["hash"] for event in facts.log}
    handed = {receipt["event_id"]: receipt["hash"] for receipt in facts.witness.receipts}
    there = sum(hash_of.get(event_id) == hash for event_id, hash in handed.items())
    counted = f"{len(handed):,} receipts handed out, {there:,} of them found among {len(facts.log):,} events"
    return counted, there == len(handed) > 0


def _order(facts: _Facts) -> Count:
    streams: dict[str, list[int]] = {}
    for event in facts.log:
        streams.setdefault(f"{event['org']}/{event['project']}", []).append(event["seq"])
    distinct = sum(len(set(numbers)) for numbers in streams.values())
    is_gapless = all(sorted(numbers) == list(range(1, len(numbers) + 1)) for numbers in streams.values())
    return f"{distinct:,} distinct sequence numbers for {len(facts.log):,} events", is_gapless


def _updates(facts: _Facts) -> Count:
    bodies = [event["body"] for event in facts.log if event["type"] == "unit.remembered" and event["body"]]
    revisions, won, lost = facts.witness.shop["revisions"], len(facts.witness.won), facts.witness.lost
    texts, tried = sum(any(text in body for body in bodies) for text in revisions), len(revisions)
    counted = f"{tried} revised one version: {won} won, {lost} got a Conflict, {texts} texts are in the log"
    return counted, (won, lost, texts) == (1, tried - 1, tried)


def _refusals(facts: _Facts) -> Count:
    bodies = [event["body"] or "" for event in facts.log if event["type"] == "claim.refused"]
    refusals = [json.loads(body) for body in bodies if facts.witness.shop["too_wide"] in body]
    rules = ", ".join({refusal["rule"] for refusal in refusals})
    return f"{len(refusals)} refused claim in the log, with its text and its rule {rules}", len(refusals) == 1


def _retries(facts: _Facts) -> Count:
    again = [receipt for receipt in facts.witness.receipts if receipt["duplicate"]]
    keyed = Counter(event["key"] for event in facts.log if event["key"])
    counted = f"{len(again)} duplicate receipt, {max(keyed.values(), default=0)} event for its key"
    return counted, bool(again) and set(keyed.values()) == {1}


def _units(facts: _Facts) -> Count:
    units = [unit for unit in facts.judge.units(limit=10_000) if unit.content == facts.witness.shop["shared"]]
    voices, agents = {str(source.actor) for unit in units for source in unit.provenance}, facts.witness.agents
    counted = f"{agents} agents said it, {len(units)} unit holds it, with {len(voices)} voices"
    return counted, len(units) == 1 and len(voices) == agents


def _unproven(facts: _Facts) -> Count:
    unit = facts.judge.get(facts.witness.ids["unproven"])
    counted = f"the claim without evidence is still a {unit.status}, {unit.confidence:.2f} sure, at {unit.level}"
    return counted, unit.status == "hypothesis"


def _nowhere(facts: _Facts, needle: str) -> Count:
    files = sum(len(names) for _, _, names in os.walk(facts.folder))
    holding = len(files_holding(facts.folder, needle))
    return f"{files} files searched byte by byte, found in {holding}", not holding


def files_holding(folder: str, needle: str) -> list[str]:
    """The files below `folder` that hold this text, in any case: an index keeps words in lower case."""
    holding = []
    for place, _, names in os.walk(folder):
        for path in (os.path.join(place, name) for name in names):
            with open(path, "rb") as file:
                if needle.encode().lower() in file.read().lower():
                    holding.append(path)
    return holding


def _chain(facts: _Facts) -> Count:
    check = facts.memory.audit()
    state = "every hash holds" if check.ok else f"broken at {check.first_broken}"
    counted = f"{check.events:,} of {len(facts.log):,} entries walked, {state}"
    return counted, check.ok and check.events == len(facts.log)


def _rebuilt(facts: _Facts) -> Count:
    rebuild = facts.memory.rebuild()
    before, after = rebuild.digest_before[:16], rebuild.digest_after[:16]
    return f"{before}… before, {after}… after a rebuild from {rebuild.events:,} events", rebuild.same


# What is claimed, and how it is counted.
_PROOFS: dict[str, Callable[[_Facts], Count]] = {
    "every receipt is in the log": _receipts,
    "one order, no gap, no double": _order,
    "no update is lost": _updates,
    "what was refused is not lost": _refusals,
    "a retry is stored once": _retries,
    "one fact, one unit": _units,
    "no evidence, no promotion": _unproven,
    "no secret reached the disk": lambda facts: _nowhere(facts, facts.witness.secret),
    "what was erased is gone": lambda facts: _nowhere(facts, facts.witness.shop["personal_name"]),
    "the log was not tampered with": _chain,
    "everything comes from the log": _rebuilt,
}

"""The demo's agents, each a process of its own; and the proofs, counted at the end from the memory itself."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field

from mnemarch.errors import Conflict, MnemarchError, StoreUnavailable
from mnemarch.model.caller import Actor, Level, Scope
from mnemarch.model.citation import Citation
from mnemarch.model.value import Frozen
from mnemarch.verbs.wire import to_json
from mnemarch.wiring import open as open_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Self

    from mnemarch.memory import Memory
    from mnemarch.seat import Seat

    Step = dict[str, Any]
    # What was counted, and whether the claim holds.
    Count = tuple[str, bool]


class Agents:
    """A process for each agent, by name. It opens the memory of its place, and takes the steps that it is given."""

    def __init__(self, places: dict[str, dict[str, Any]]) -> None:
        # Ctrl-C is for the demo to end, not for its agents.
        deaf = signal.signal, (signal.SIGINT, signal.SIG_IGN)
        spawn = multiprocessing.get_context("spawn")
        self._places = places
        self._processes = {name: ProcessPoolExecutor(1, spawn, *deaf) for name in places}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.shutdown(cancel_futures=True)

    def reports(self, steps_of: dict[str, list[Step]]) -> Iterator[tuple[str, dict[str, Any]]]:
        """All take their steps at once; gives each step with the answer of the memory, agent by agent."""
        under_way = {
            name: self._processes[name].submit(_taken, self._places[name], steps) for name, steps in steps_of.items()
        }
        for name, work in under_way.items():
            try:
                reports = work.result()
            except BrokenProcessPool:
                broke_off = f"{name} of the demo broke off."
                raise StoreUnavailable(broke_off, hint="Run it again; what it printed above may tell why.") from None
            yield from ((name, report) for report in reports)


def _taken(place: dict[str, Any], steps: list[Step]) -> list[dict[str, Any]]:
    """In an agent's process: each step, with what the memory answered."""
    try:
        if not _seat:
            memory = open_memory(place["store"])
            _seat.append(memory.seat(Actor.parse(place["actor"]), Scope(**place["scope"]), root=place["root"]))
        return [{"process": os.getpid()} | step | to_json(_answer(_seat[0], step)) for step in steps]
    except MnemarchError as error:
        raise StoreUnavailable(error.message, hint=error.hint) from None


# The seat of the agent whose process this is, once it has opened the memory.
_seat: list[Seat] = []


def _answer(seat: Seat, step: Step) -> dict[str, Any]:
    """Take one step; gives what the memory answered. The tests really run, and the memory sees each of them."""
    if step["do"] == "log":
        return {"receipt": seat.log(step["kind"], step["text"], key=step.get("key"))}
    if step["do"] == "verify":
        with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
            return {"answer": seat.verify(run=[sys.executable, "-m", "unittest", *step["tests"]])}
    if step["do"] == "supersede":
        try:
            seat.supersede(step["new"], step["old"], "a better wording", expected_version=step["seen"])
        except Conflict as conflict:
            return {"actual": conflict.actual_version}
        return {"actual": None}
    cited = [Citation.parse(item) for item in step["citations"]]
    return {"answer": seat.remember(step["text"], level=Level.parse(step["level"]), citations=cited)}


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

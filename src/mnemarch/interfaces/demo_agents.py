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
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field

from mnemarch.errors import Conflict, StoreUnavailable
from mnemarch.model.caller import Actor, Level, Scope
from mnemarch.model.citation import Citation
from mnemarch.model.value import value
from mnemarch.verbs.wire import to_json
from mnemarch.wiring import open as open_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.synchronize import Barrier
    from typing import Any

    from mnemarch.memory import Memory
    from mnemarch.seat import Seat

    # What was counted, and whether the claim holds.
    Count = tuple[str, bool]

_WAIT_S_MAX = 300
_barrier: Barrier


def run_together(scripts: dict[str, dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Run each agent's script in a process of its own; gives what each reported, the number of its process first."""
    context = multiprocessing.get_context("spawn")
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)  # The agents inherit it: Ctrl-C is for the demo to end them.
    try:
        pool = context.Pool(len(scripts), _begin, (context.Barrier(len(scripts)),))
    finally:
        signal.signal(signal.SIGINT, handler)
    with pool:
        try:
            reports = pool.map_async(_take_steps, scripts.values(), chunksize=1).get(_WAIT_S_MAX)
        except multiprocessing.TimeoutError:
            raise StoreUnavailable("An agent of the demo broke off.", hint="Run mnemarch doctor.") from None
    return dict(zip(scripts, reports, strict=True))


def _begin(barrier: Barrier) -> None:
    global _barrier
    _barrier = barrier


def _take_steps(script: dict[str, Any]) -> list[dict[str, Any]]:
    """What an agent's process does. A step without anything to do waits for the others, so each has one process."""
    reports: list[dict[str, Any]] = [{"process": os.getpid()}]
    with open_memory(script["store"]) as memory:
        seat = memory.seat(Actor.parse(script["actor"]), Scope(**script["scope"]), root=script["root"])
        for step in script["steps"]:
            if not step:
                _barrier.wait(_WAIT_S_MAX)
                continue
            reports.append(step | to_json(_answer(seat, script, step)))
            if script["pause_s_max"]:
                time.sleep(random.uniform(0, script["pause_s_max"]))  # noqa: S311 - the pace of an agent, no secret
    return reports


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


def receipts_in(reports: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every receipt that an agent was handed, in order."""
    receipts = (one.get("receipt") or one.get("answer", {}).get("receipt") for one in reports)
    return [receipt for receipt in receipts if receipt]


# The proof


@value
class Proof:
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


@value
class _Facts:
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
    counted = f"{agents} agents units it, {len(units)} unit holds it, with {len(voices)} voices"
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

"""`demo`: the whole path of the data, live; and its proof, counted from the memory itself after everything."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections import Counter
from dataclasses import dataclass, field

from mnemarch.interfaces.command import DONE, REFUSED, Answer, Command
from mnemarch.model.value import value
from mnemarch.verbs.types import FLAG, NUMBER, PATH, Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from mnemarch.interfaces.command import Call
    from mnemarch.memory import Memory
    from mnemarch.seat import Seat

_EVENTS, _EVENTS_FAST = 240, 40


def _demo(call: Call) -> Answer:
    from mnemarch.interfaces.demo_story import run

    options = call.options
    events = options.events if options.events is not None else _EVENTS_FAST if options.fast else _EVENTS
    folder = os.path.realpath(options.keep) if options.keep else None
    proofs, unit_id = run(keep=folder, agents=options.agents, events=events, fast=options.fast, aside=call.places.json)
    is_proven = all(proof.ok for proof in proofs)
    return Answer(
        data={"ok": is_proven, "folder": folder, "proofs": proofs},
        text=lambda: _next_steps(folder, unit_id),
        exit_code=DONE if is_proven else REFUSED,
    )


def _next_steps(folder: str | None, unit_id: str) -> str:
    from shutil import which

    # `make demo` runs in an environment that the shell does not know.
    beside = os.path.relpath(os.path.join(os.path.dirname(sys.executable), "mnemarch"))
    mnemarch = "mnemarch" if which("mnemarch") or not os.path.exists(beside) else shlex.quote(beside)
    if folder is None:
        steps: tuple[str, ...] = (
            f"{mnemarch} demo --keep shop-demo   # look around in it",
            f"{mnemarch} init                    # a memory of your own",
            f"{mnemarch} --help                  # everything else",
        )
    else:
        there = f"--store {shlex.quote(folder)}"
        steps = (
            f"{mnemarch} units {there}",
            f"{mnemarch} explain {unit_id} {there}",
            f'{mnemarch} recall "what happens when a payment times out?" {there}',
        )
    return "\n".join(["try next", *(f"  {step}" for step in steps)])


COMMANDS = {
    "demo": Command(
        "Watch agents write to one memory at once, with proof. They are processes of their own: one fact said by all,"
        " opposed claims, a refusal, a leaked key, a retry, a failed task, two revisions of one version, an erasure."
        " The proof is counted from the memory itself; exit code 1 if any part of it fails.",
        ("mnemarch demo", "mnemarch demo --keep shop-demo", "mnemarch demo --fast --agents 3"),
        _demo,
        (
            Parameter("keep", PATH, "leave the memory in this new folder, to look around in", None, metavar="DIR"),
            Parameter("agents", NUMBER, "how many agents (default: 5)", 5),
            Parameter("events", NUMBER, f"log entries of each (default: {_EVENTS})", None),
            Parameter("fast", FLAG, f"no pauses, and {_EVENTS_FAST} log entries each", False),
        ),
    ),
}


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


def proofs_of(memory: Memory, judge: Seat, witness: Witness, folder: str) -> list[Proof]:
    """Count everything anew, from an export of the log and the bytes on disk."""
    log_path = os.path.join(folder, "log.jsonl")
    memory.export(log_path)
    with open(log_path, encoding="utf-8") as file:
        next(file)
        log = [json.loads(line) for line in file]
    counted = [
        *_of_log(witness, log),
        *_of_units(witness, judge),
        *_of_bytes(witness, os.path.join(folder, ".mnemarch")),
        *_of_chain(memory, log),
    ]
    return [Proof(claim=claim, counted=what, ok=ok) for claim, what, ok in counted]


def _of_log(witness: Witness, log: list[dict[str, Any]]) -> Iterator[tuple[str, str, bool]]:
    hash_of = {event["id"]: event["hash"] for event in log}
    handed = {receipt["event_id"]: receipt["hash"] for receipt in witness.receipts}
    there = sum(hash_of.get(event_id) == hash for event_id, hash in handed.items())
    counted = f"{len(handed):,} receipts handed out, {there:,} of them found among {len(log):,} events"
    yield "every receipt is in the log", counted, there == len(handed) > 0

    streams: dict[str, list[int]] = {}
    for event in log:
        streams.setdefault(f"{event['org']}/{event['project']}", []).append(event["seq"])
    distinct = sum(len(set(numbers)) for numbers in streams.values())
    is_gapless = all(sorted(numbers) == list(range(1, len(numbers) + 1)) for numbers in streams.values())
    counted = f"{distinct:,} distinct sequence numbers for {len(log):,} events"
    yield "one order, no gap, no double", counted, is_gapless and distinct == len(log)

    bodies = [event["body"] for event in log if event["type"] == "unit.remembered" and event["body"]]
    revisions, won = witness.shop["revisions"], len(witness.won)
    texts, tried = sum(any(text in body for body in bodies) for text in revisions), len(revisions)
    outcome = f"{won} won, {witness.lost} got a Conflict, {texts} texts are in the log"
    is_kept = (won, witness.lost, texts) == (1, tried - 1, tried)
    yield "no update is lost", f"{tried} revised one version: {outcome}", is_kept

    refused = [event for event in log if event["type"] == "claim.refused"]
    refusals = [event for event in refused if witness.shop["too_wide"] in (event["body"] or "")]
    rules = ", ".join({json.loads(event["body"])["rule"] for event in refusals})
    counted = f"{len(refusals)} refused claim in the log, with its text and its rule {rules}"
    yield "what was refused is not lost", counted, len(refusals) == 1

    again = [receipt for receipt in witness.receipts if receipt["duplicate"]]
    keyed = Counter(event["key"] for event in log if event["key"])
    counted = f"{len(again)} duplicate receipt, {max(keyed.values(), default=0)} event for its key"
    yield "a retry is stored once", counted, bool(again) and set(keyed.values()) == {1}


def _of_units(witness: Witness, judge: Seat) -> Iterator[tuple[str, str, bool]]:
    said = [unit for unit in judge.units(limit=10_000) if unit.content == witness.shop["shared"]]
    voices = {str(source.actor) for unit in said for source in unit.provenance}
    counted = f"{witness.agents} agents said it, {len(said)} unit holds it, with {len(voices)} voices"
    yield "one fact, one unit", counted, len(said) == 1 and len(voices) == witness.agents

    unit = judge.get(witness.ids["unproven"])
    counted = f"the claim without evidence is still a {unit.status}, {unit.confidence:.2f} sure, at {unit.level}"
    yield "no evidence, no promotion", counted, unit.status == "hypothesis"


def _of_bytes(witness: Witness, folder: str) -> Iterator[tuple[str, str, bool]]:
    files = sum(len(names) for _, _, names in os.walk(folder))
    needles = {"no secret reached the disk": witness.secret, "what was erased is gone": witness.shop["personal_name"]}
    for claim, needle in needles.items():
        holding = len(files_holding(folder, needle))
        yield claim, f"{files} files searched byte by byte, found in {holding}", not holding


def files_holding(folder: str, needle: str) -> list[str]:
    """The files below `folder` that hold this text, in any case: an index keeps words in lower case."""
    holding = []
    for place, _, names in os.walk(folder):
        for path in (os.path.join(place, name) for name in names):
            with open(path, "rb") as file:
                if needle.encode().lower() in file.read().lower():
                    holding.append(path)
    return holding


def _of_chain(memory: Memory, log: list[dict[str, Any]]) -> Iterator[tuple[str, str, bool]]:
    check = memory.audit()
    state = "every hash holds" if check.ok else f"broken at {check.first_broken}"
    counted = f"{check.events:,} of {len(log):,} entries walked, {state}"
    yield "the log was not tampered with", counted, check.ok and check.events == len(log)

    rebuild = memory.rebuild()
    before, after = rebuild.digest_before[:16], rebuild.digest_after[:16]
    counted = f"{before}… before, {after}… after a rebuild from {rebuild.events:,} events"
    yield "everything comes from the log", counted, rebuild.same

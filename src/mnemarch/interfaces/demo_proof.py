"""The demo's proof: every claim is counted from the memory itself, after everything has happened."""

from __future__ import annotations

import json
import os
from collections import Counter

from mnemarch.interfaces.demo_world import holding
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mnemarch.memory import Memory
    from mnemarch.seat import Seat


@value
class Proof:
    """One claim, what was counted for it, and whether it holds."""

    claim: str
    counted: str
    ok: bool


@value
class Witness:
    """What the story kept to be checked at the end."""

    receipts: list[dict[str, Any]]
    agents: int
    shared: str
    revisions: list[str]
    won: int
    lost: int
    refused: str
    unproven_id: str
    secret: str
    erased: str


def proofs_of(memory: Memory, judge: Seat, witness: Witness, log_path: str, data_folder: str) -> list[Proof]:
    """Count everything anew, from an export of the log and the bytes on disk."""
    memory.export(log_path)
    with open(log_path, encoding="utf-8") as file:
        next(file)
        log = [json.loads(line) for line in file]
    return [
        _receipts(witness, log),
        _sequence(log),
        _one_fact(witness, judge),
        _no_lost_update(witness, log),
        _refusal(witness, log),
        _retries(witness, log),
        _hypothesis(witness, judge),
        _bytes("no secret reached the disk", witness.secret, data_folder),
        _bytes("what was erased is gone", witness.erased, data_folder),
        _chain(memory, log),
        _rebuilt(memory),
    ]


def _receipts(witness: Witness, log: Sequence[dict[str, Any]]) -> Proof:
    hash_of = {event["id"]: event["hash"] for event in log}
    handed = {receipt["event_id"]: receipt["hash"] for receipt in witness.receipts}
    found = sum(hash_of.get(event_id) == hash for event_id, hash in handed.items())
    return Proof(
        claim="every receipt is in the log",
        counted=f"{len(handed):,} receipts handed out, {found:,} of them found among {len(log):,} events",
        ok=found == len(handed) > 0,
    )


def _sequence(log: Sequence[dict[str, Any]]) -> Proof:
    numbers: dict[str, list[int]] = {}
    for event in log:
        numbers.setdefault(f"{event['org']}/{event['project']}", []).append(event["seq"])
    distinct = sum(len(set(seqs)) for seqs in numbers.values())
    gapless = all(sorted(seqs) == list(range(1, len(seqs) + 1)) for seqs in numbers.values())
    return Proof(
        claim="one order, no gap, no double",
        counted=f"{distinct:,} distinct sequence numbers for {len(log):,} events",
        ok=gapless and distinct == len(log),
    )


def _one_fact(witness: Witness, judge: Seat) -> Proof:
    said = [unit for unit in judge.units(limit=10_000) if unit.content == witness.shared]
    voices = {str(source.actor) for unit in said for source in unit.provenance}
    return Proof(
        claim="one fact, one unit",
        counted=f"{witness.agents} agents said it, {len(said)} unit holds it, with {len(voices)} voices",
        ok=len(said) == 1 and len(voices) == witness.agents,
    )


def _no_lost_update(witness: Witness, log: Sequence[dict[str, Any]]) -> Proof:
    bodies = [event["body"] for event in log if event["type"] == "unit.remembered" and event["body"]]
    kept = sum(any(text in body for body in bodies) for text in witness.revisions)
    tried = len(witness.revisions)
    outcome = f"{witness.won} won, {witness.lost} got a Conflict, {kept} texts are in the log"
    return Proof(
        claim="no update is lost",
        counted=f"{tried} revised one version: {outcome}",
        ok=witness.won == 1 and witness.lost == tried - 1 and kept == tried,
    )


def _refusal(witness: Witness, log: Sequence[dict[str, Any]]) -> Proof:
    refusals = [event for event in log if event["type"] == "claim.refused" and witness.refused in (event["body"] or "")]
    rules = Counter(json.loads(event["body"])["rule"] for event in refusals)
    return Proof(
        claim="what was refused is not lost",
        counted=f"{len(refusals)} refused claim in the log, with its text and its rule {', '.join(rules)}",
        ok=len(refusals) == 1,
    )


def _retries(witness: Witness, log: Sequence[dict[str, Any]]) -> Proof:
    again = [receipt for receipt in witness.receipts if receipt["duplicate"]]
    keyed = Counter(event["key"] for event in log if event["key"])
    return Proof(
        claim="a retry is stored once",
        counted=f"{len(again)} duplicate receipt, {max(keyed.values(), default=0)} event for its key",
        ok=len(again) > 0 and set(keyed.values()) == {1},
    )


def _hypothesis(witness: Witness, judge: Seat) -> Proof:
    unit = judge.get(witness.unproven_id)
    return Proof(
        claim="no evidence, no promotion",
        counted=f"the claim without evidence is still a {unit.status}, {unit.confidence:.2f} sure, at {unit.level}",
        ok=unit.status == "hypothesis",
    )


def _bytes(claim: str, needle: str, data_folder: str) -> Proof:
    files = sum(len(names) for _, _, names in os.walk(data_folder))
    found = holding(data_folder, needle)
    return Proof(claim=claim, counted=f"{files} files searched byte by byte, found in {len(found)}", ok=not found)


def _chain(memory: Memory, log: Sequence[dict[str, Any]]) -> Proof:
    check = memory.audit()
    state = "every hash holds" if check.ok else f"broken at {check.first_broken}"
    return Proof(
        claim="the log was not tampered with",
        counted=f"{check.events:,} of {len(log):,} entries walked, {state}",
        ok=check.ok and check.events == len(log),
    )


def _rebuilt(memory: Memory) -> Proof:
    rebuild = memory.rebuild()
    before, after = rebuild.digest_before[:16], rebuild.digest_after[:16]
    return Proof(
        claim="everything comes from the log",
        counted=f"{before}… before, {after}… after a rebuild from {rebuild.events:,} events",
        ok=rebuild.same,
    )

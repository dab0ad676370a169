"""The demo: five agents in separate processes write to one memory at once, and the result is proved from the memory.

The agents are real commands. Every printed number and id is read back from the memory.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from mnemarch.code.git import git
from mnemarch.errors import Conflict, InvalidInput, StoreUnavailable
from mnemarch.interfaces.text import clean, short, table
from mnemarch.memory import Memory
from mnemarch.model.caller import Actor, Level, Scope
from mnemarch.model.outcome import Refused, Stored
from mnemarch.model.unit import Citation
from mnemarch.model.value import Frozen
from mnemarch.seat import Seat
from mnemarch.wiring import open as open_memory

_SHOP = tomllib.loads(files(__package__).joinpath("demo_shop.toml").read_text(encoding="utf-8"))
_PROJECT, _WORKTREE = _SHOP["project"], _SHOP["worktrees"][0]
_SHARED, _GUESS, _TOO_WIDE, _PERSONAL = (_SHOP[name] for name in ("shared", "guess", "too_wide", "personal"))
_NAME = _SHOP["personal_name"]
_BEAT_S = 0.9
_ENTRIES, _ENTRIES_FAST = 240, 40
# Lines are not wrapped if the output is no terminal.
_LOG_WIDTH = 400
_MARKS = {"pass": "✓", "fail": "✗"}


class Proof(Frozen):
    """One claim, the count that supports it, and whether it holds."""

    claim: str
    counted: str
    ok: bool


@dataclass
class Told:
    """The memory's answers, to be checked at the end."""

    secret: str
    receipts: list[dict[str, Any]] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)
    won: list[str] = field(default_factory=list)
    lost: int = 0


def run(*, keep: str | None, fast: bool, aside: bool) -> tuple[list[Proof], str]:
    """Run the whole story. Returns the proofs and the id of a unit to look at.

    With `aside` the story goes to stderr, since stdout is for the answer.
    """
    if keep and os.path.exists(keep) and (not os.path.isdir(keep) or os.listdir(keep)):
        raise InvalidInput(f"{keep!r} is not empty.", hint="Nothing was overwritten. Give a new folder.")
    with tempfile.TemporaryDirectory(prefix="mnemarch-demo-", ignore_cleanup_errors=True) as temporary:
        folder = os.path.realpath(keep or os.path.join(temporary, _PROJECT))
        started = time.monotonic()
        desks = _made_shop(folder)
        with open_memory(folder) as memory:
            story = _Story(memory, folder, desks, sys.stderr if aside else sys.stdout, fast=fast)
            story.write_at_once(_ENTRIES_FAST if fast else _ENTRIES)
            story.revise()
            story.settle()
            story.recall()
            story.erase()
            return story.prove(started)


def _made_shop(folder: str) -> list[str]:
    """Write the shop and commit it. Returns the worktree that the agents share, and the newcomer's worktree."""
    desks = [os.path.join(folder, ".worktrees", name) for name in _SHOP["worktrees"]]
    for path, text in _SHOP["files"].items():
        target = os.path.join(folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)
    who = ["-c", "user.name=demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgsign=false"]
    steps = [["init", "--quiet"], ["add", *_SHOP["files"]], [*who, "commit", "--quiet", "--no-verify", "-m", "A shop"]]
    steps += [["worktree", "add", "--quiet", "-b", os.path.basename(desk), desk] for desk in desks]
    if any(git(folder, step) is None for step in steps):
        raise StoreUnavailable("The demo can't make a git repository.", hint="Install git, then run it again.")
    return desks


class _Story:
    """The acts, in order. Each works with the memory and prints the answers."""

    def __init__(self, memory: Memory, folder: str, desks: list[str], stream: Any, *, fast: bool) -> None:
        self._memory = memory
        self._folder, self._desks = folder, desks
        self._data_folder = os.path.join(folder, ".mnemarch")
        self._console = Console(file=stream, highlight=False, width=None if stream.isatty() else _LOG_WIDTH)
        self._beat_s = _BEAT_S if stream.isatty() and not fast else 0.0
        self._told = Told("AKIA" + base64.b32encode(os.urandom(10)).decode())
        self._ada = self._seat(Actor.human("ada"))

    def _seat(self, actor: Actor) -> Seat:
        return self._memory.seat(actor, Scope(project=_PROJECT, worktree=_WORKTREE), root=self._desks[0])

    def _act(self, number: int, title: str) -> None:
        """Print the title of the next act, after a pause to read the last one."""
        time.sleep(self._beat_s)
        self._console.print(Text(f"\n{number}  {title}", "bold cyan"))

    def _tell(self, who: str, what: str, then: str = "", style: str = "green") -> None:
        """Print one event: the actor, the act, and the memory's answer."""
        line = Text.assemble(
            (f"{who:<12}", "bold"), clean(what), *([(f"\n            → {clean(then)}", style)] * bool(then))
        )
        self._console.print(Padding(line, (0, 0, 0, 3), expand=False))

    def _at_once(self, commands: dict[str, list[str]], lines: dict[str, list[Any]], desk: int = 0) -> dict[str, Any]:
        """The memory's answers to the agents' commands. All processes are started before one is waited for."""
        ours = {name: item for name, item in os.environ.items() if not name.startswith("MNEMARCH_")}
        started = {}
        for name, argv in commands.items():
            who = {"MNEMARCH_ACTOR": f"agent:{name}", "MNEMARCH_TASK": name.replace("coder", "T")}
            with tempfile.TemporaryFile() as given:
                given.write("".join(f"{json.dumps(line)}\n" for line in lines.get(name, ())).encode())
                given.seek(0)
                started[name] = subprocess.Popen(  # noqa: S603 - our own module, no shell
                    [sys.executable, "-m", "mnemarch", *argv],
                    cwd=self._desks[desk],
                    env=ours | who | {"PYTHONIOENCODING": "utf-8"},
                    stdin=given,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    encoding="utf-8",
                )
        printed = {name: process.communicate()[0] for name, process in started.items()}
        if silent := [name for name, text in printed.items() if not text.strip()]:
            raise StoreUnavailable(
                f"{silent[0]} of the demo ended early.", hint="Run it again; mnemarch doctor may help."
            )
        return {name: json.loads(text) if "--json" in commands[name] else text for name, text in printed.items()}

    def write_at_once(self, entries: int) -> None:
        agents = {agent["name"]: agent for agent in _SHOP["agents"]}
        self._console.print(Text(f"\n{len(agents)} agents, {len(agents)} processes, one memory", "bold"))
        self._console.print(Text(self._data_folder, "dim"))
        code = [line.strip() for text in _SHOP["files"].values() for line in text.splitlines() if line.strip()]
        thoughts = [{"kind": "thought", "text": f"read: {code[at % len(code)]}"} for at in range(entries)]
        said = json.loads(
            json.dumps({name: agent.get("logs", []) for name, agent in agents.items()}).replace(
                "SECRET", self._told.secret
            )
        )
        self._act(1, "Staging: everybody writes at once")
        batch = ["log", "--batch", "--json"]
        logged = self._at_once(dict.fromkeys(agents, batch), {name: [*thoughts, *said[name]] for name in agents})
        for name, receipts in logged.items():
            self._told.receipts += receipts
            self._tell(name, f"{len(receipts)} receipts")
            for entry, receipt in zip(said[name], receipts[entries:], strict=True):
                if receipt["redacted"]:
                    self._tell("", "logs a line with an API key in it", f"redacted {receipt['redacted'][0]}", "yellow")
                elif receipt["duplicate"]:
                    self._tell("", f"retries {entry['key']}", f"the first receipt again: #{receipt['seq']}", "yellow")
        self._act(2, "What the agents stated at the same moment, and what the memory made of it")
        batch = ["remember", "--batch", "--json"]
        claims = {
            name: [{"content": _SHARED, "citations": _SHOP["shared_citations"]}, *agent["claims"]]
            for name, agent in agents.items()
        }
        self._tell_claims(claims, self._at_once(dict.fromkeys(agents, batch), claims))
        self._act(3, "Gate: each task runs its tests, and the memory sees them")
        tested = {
            name: ["verify", "--json", "--", sys.executable, "-m", "unittest", *agent["tests"]]
            for name, agent in agents.items()
        }
        for name, judged in self._at_once(tested, {}).items():
            self._tell_verification(name, judged)

    def _tell_claims(self, claims: dict[str, list[Any]], answers: dict[str, list[dict[str, Any]]]) -> None:
        for name, said in answers.items():
            for claim, answer in zip(claims[name], said, strict=True):
                self._told.receipts.append(answer["receipt"])
                unit = answer.get("unit")
                self._told.ids[claim["content"]] = unit["id"] if unit else ""
                if claim["content"] != _SHARED:
                    stored = f"{unit['status']} {unit['confidence']:.2f}" if unit else ""
                    then = stored or f"refused by {answer['rule']}: {answer['reason']}"
                    self._tell(name, f'"{claim["content"]}"', then, "green" if unit else "yellow")
        unit = self._ada.get(self._told.ids[_SHARED])
        self._tell("everybody", f'"{unit.content}"', f"1 unit, {len(unit.provenance)} authors: {unit.id}")
        for dispute in self._ada.conflicts():
            texts = " / ".join(self._ada.get(side).content for side in dispute.units)
            self._tell("the memory", texts, f"open conflict {dispute.id} ({dispute.reason})", "yellow")

    def _tell_verification(self, name: str, judged: dict[str, Any]) -> None:
        results = judged["run"]["results"]
        ran = ", ".join(f"{test['name'].rpartition('.')[2]} {_MARKS.get(test['outcome'], '-')}" for test in results)
        raised = ", ".join(f'"{short(unit["content"], 60)}" {unit["status"]}' for unit in judged["units"])
        then = f"raised to the project: {raised}" if raised else "nothing raised"
        self._tell(name, ran, then, "green" if judged["passed"] else "yellow")
        for refusal in judged["refused"]:
            content = self._ada.get(refusal["unit_id"]).content if refusal["unit_id"] else ""
            self._tell("", f'"{short(content, 60)}"', f"not raised: {refusal['reason']} ({refusal['rule']})", "yellow")

    def revise(self) -> None:
        self._act(4, "No evidence, no promotion: an orchestrator tries to raise a guess to the whole project")
        outcome = self._seat(Actor.orchestrator("lead")).promote(self._told.ids[_GUESS], Level.PROJECT)
        then = f"refused by {outcome.rule}: {outcome.reason}" if isinstance(outcome, Refused) else "lifted"
        self._tell("lead", f'"{_GUESS}"', then, "yellow")
        self._act(5, "No last writer wins: two leads revise the same version of one unit")
        old = self._ada.get(self._told.ids[_SHARED])
        cited = [Citation.parse(text) for text in _SHOP["shared_citations"]]

        def revise(number: int, text: str) -> tuple[str, Stored | Refused, int | None]:
            with open_memory(self._folder) as memory:  # Each lead opens the memory, as a separate process would.
                lead = memory.seat(Actor.orchestrator(f"lead-{number}"), self._ada.scope, root=self._desks[0])
                new = lead.remember(text, level=Level.PROJECT, citations=cited)
                try:
                    if isinstance(new, Stored):
                        lead.supersede(new.unit.id, old.id, "a better wording", expected_version=old.version)
                except Conflict as conflict:
                    return f"lead-{number}", new, conflict.actual_version
            return f"lead-{number}", new, None

        with ThreadPoolExecutor() as threads:
            outcomes = list(threads.map(revise, (1, 2), _SHOP["revisions"]))
        for name, new, actual in outcomes:
            assert isinstance(new, Stored), new
            if actual is None:
                self._told.won.append(new.unit.id)
                self._tell(name, f'"{new.unit.content}"', f"superseded version {old.version}")
            else:
                self._told.lost += 1
                then = f"Conflict: saw version {old.version}, it is at {actual} now; the text is kept as {new.unit.id}"
                self._tell(name, f'"{new.unit.content}"', then, "yellow")

    def settle(self) -> None:
        self._act(6, "A person decides")
        ada = self._ada
        for dispute in ada.conflicts():
            sides = [ada.get(side) for side in dispute.units]
            winner, loser = sorted(sides, key=lambda unit: unit.content not in _SHOP["reasons"])
            ada.resolve(dispute.id, winner=winner.id, reason=_SHOP["reasons"][winner.content])
            self._tell("ada", f'"{winner.content}"', f'stands; "{loser.content}" is {ada.get(loser.id).status}')
            approved = ada.approve(winner.id)
            self._tell(
                "", "and approves it", f"{approved.status} {approved.confidence:.2f}: a human's word is evidence"
            )
            ada.promote(winner.id, Level.PROJECT)

    def recall(self) -> None:
        self._act(7, "Recall: a newcomer in another worktree asks, in two languages")
        for question in _SHOP["questions"]:
            self._tell("coder-new", f'$ mnemarch recall "{question}" -k 2')
            answer = self._at_once({"coder-new": ["recall", question, "-k", "2"]}, {}, desk=1)["coder-new"]
            self._console.print(Padding(Text(clean(answer).rstrip(), "dim"), (0, 0, 0, 6), expand=False))

    def erase(self) -> None:
        self._act(8, "Erasure: a customer asks to be forgotten")
        before = files_holding(self._data_folder, _NAME)
        erased = self._ada.erase(self._told.ids[_PERSONAL], "the customer asked for it")
        held = f"files that hold the name: {before} before, {files_holding(self._data_folder, _NAME)} now"
        self._tell("ada", f'erases "{_PERSONAL}"', f"event payloads removed: {erased.events}; {held}")

    def prove(self, started: float) -> tuple[list[Proof], str]:
        self._act(9, "The proof, counted from the memory itself")
        proofs = proofs_of(self._memory, self._ada, self._told, self._folder)
        rows = [("✓" if proof.ok else "✗", proof.claim, proof.counted) for proof in proofs]
        self._console.print(Padding(Text(table(("", "claim", "what was counted"), rows, "")), (0, 0, 0, 1)))
        failed = sum(not proof.ok for proof in proofs)
        verdict = "all hold" if not failed else f"{failed} DO NOT HOLD"
        self._tell("", f"{len(proofs)} proofs, {verdict}; {time.monotonic() - started:.0f} s")
        return proofs, self._told.won[0] if self._told.won else ""


# The proof


def files_holding(folder: str, needle: str) -> int:
    """The number of files below `folder` with this text. Case is ignored, since an index has words in lower case."""
    count = 0
    for place, _, names in os.walk(folder):
        for path in (os.path.join(place, name) for name in names):
            with open(path, "rb") as file:
                count += needle.encode().lower() in file.read().lower()
    return count


def proofs_of(memory: Memory, judge: Seat, told: Told, folder: str) -> list[Proof]:
    """Count everything again, from an export of the log and from the files on disk."""
    log_path = os.path.join(folder, "log.jsonl")
    memory.export(log_path)
    with open(log_path, encoding="utf-8") as file:
        _, *log, _ = map(json.loads, file)
    return [Proof(*each) for each in (*_proofs_of_log(log, told), *_proofs_of_memory(memory, judge, told, folder))]


def _proofs_of_log(log: list[dict[str, Any]], told: Told) -> Iterator[tuple[str, str, bool]]:
    hash_of = {event["id"]: event["hash"] for event in log}
    handed = {receipt["event_id"]: receipt["hash"] for receipt in told.receipts}
    there = sum(hash_of.get(event_id) == hash for event_id, hash in handed.items())
    counted = f"{len(handed):,} receipts handed out, {there:,} of them found among {len(log):,} events"
    yield "every receipt is in the log", counted, there == len(handed) > 0
    streams: dict[str, list[int]] = {}
    for event in log:
        streams.setdefault(f"{event['org']}/{event['project']}", []).append(event["seq"])
    is_gapless = all(sorted(numbers) == list(range(1, len(numbers) + 1)) for numbers in streams.values())
    distinct = sum(len(set(numbers)) for numbers in streams.values())
    yield "one order, without a gap or a repeat", f"{distinct:,} sequence numbers for {len(log):,} events", is_gapless
    bodies = [event["body"] or "" for event in log if event["type"] == "unit.remembered"]
    texts, tried = sum(any(text in body for body in bodies) for text in _SHOP["revisions"]), len(_SHOP["revisions"])
    counted = (
        f"{tried} revised one version: {len(told.won)} won, {told.lost} got a Conflict, {texts} texts are in the log"
    )
    yield "no update is lost", counted, (len(told.won), told.lost, texts) == (1, tried - 1, tried)
    refused = sum(_TOO_WIDE in (event["body"] or "") for event in log if event["type"] == "claim.refused")
    yield "what was refused is not lost", f"{refused} refused claim in the log, with its text", refused == 1
    again, keyed = [one for one in told.receipts if one["duplicate"]], [event["key"] for event in log if event["key"]]
    is_once = len(again) == 1 and len(keyed) == len(set(keyed)) > 0
    yield "a retry is stored once", f"{len(again)} duplicate receipt, {len(keyed)} keys in the log", is_once


def _proofs_of_memory(memory: Memory, judge: Seat, told: Told, folder: str) -> Iterator[tuple[str, str, bool]]:
    units, agents = [unit for unit in judge.units(limit=10_000) if unit.content == _SHARED], len(_SHOP["agents"])
    voices = {str(source.actor) for unit in units for source in unit.provenance}
    counted = f"{agents} agents stated it, {len(units)} unit has it, with {len(voices)} authors"
    yield "one fact, one unit", counted, len(units) == 1 and len(voices) == agents
    guess = judge.get(told.ids[_GUESS])
    counted = f"the claim without evidence is still a {guess.status}, {guess.confidence:.2f} sure, at {guess.level}"
    yield "no evidence, no promotion", counted, guess.status == "hypothesis"
    place = os.path.join(folder, ".mnemarch")
    count = files_holding(place, "")
    for claim, needle in (("no secret reached the disk", told.secret), ("what was erased is gone", _NAME)):
        holding = files_holding(place, needle)
        yield claim, f"{count} files searched byte by byte, found in {holding}", not holding
    check, rebuild = memory.audit(), memory.rebuild()
    state = "every hash holds" if check.ok else f"broken at {check.first_broken}"
    yield "the log was not tampered with", f"{check.events:,} entries walked, {state}", check.ok
    before, after = rebuild.digest_before[:16], rebuild.digest_after[:16]
    counted = f"{before}… before, {after}… after a rebuild from {rebuild.events:,} events"
    yield "everything comes from the log", counted, rebuild.same

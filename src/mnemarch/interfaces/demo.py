"""The demo: some agents in processes of their own write to one memory at once, and the memory proves what it did.

Nothing that is printed is written here beforehand: every number and every id is read back from the memory.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager

from mnemarch.errors import InvalidInput
from mnemarch.interfaces.demo_crew import Crew, receipts_of
from mnemarch.interfaces.demo_proof import Witness, proofs_of
from mnemarch.interfaces.demo_screen import Screen
from mnemarch.interfaces.demo_script import (
    OPPOSED,
    OTHER_WORKTREE,
    PERSONAL,
    PERSONAL_NAME,
    QUESTIONS,
    REVISIONS,
    SHARED,
    TOO_WIDE,
    WORKTREE,
    revisions_of,
    scripts_for,
)
from mnemarch.interfaces.demo_world import PROJECT, holding, made_world
from mnemarch.interfaces.show import short
from mnemarch.model.caller import Actor, Level, Scope
from mnemarch.model.outcome import Refused
from mnemarch.model.unit import Kind, Status
from mnemarch.model.value import value
from mnemarch.wiring import open as open_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from mnemarch.interfaces.demo_crew import Member
    from mnemarch.interfaces.demo_proof import Proof
    from mnemarch.interfaces.demo_world import World
    from mnemarch.memory import Memory
    from mnemarch.seat import Seat

AGENTS_MIN, AGENTS_MAX = 2, 32
_PAUSE_S_MAX = 0.03


@value
class Told:
    """How the demo ended."""

    proofs: list[Proof]
    folder: str | None
    unit_id: str

    @property
    def ok(self) -> bool:
        return all(proof.ok for proof in self.proofs)


def tell(*, keep: str | None, agents: int, events: int, fast: bool, aside: bool) -> Told:
    """Run the whole story."""
    if not AGENTS_MIN <= agents <= AGENTS_MAX:
        raise InvalidInput(f"{agents} agents are too few or too many.", hint=f"From {AGENTS_MIN} to {AGENTS_MAX}.")
    if events < 2:
        raise InvalidInput(f"{events} events are too few.", hint="At least 2 for each agent.")
    with _folder(keep) as folder:
        started = time.monotonic()
        screen = Screen(aside=aside, hurry=fast)
        screen.title(f"{agents} agents, {agents} processes, one memory", os.path.join(folder, ".mnemarch"))
        world = made_world(folder)
        with open_memory(folder) as memory:
            story = _Story(memory, world, screen)
            story.writing_at_once(agents, events, 0.0 if fast else _PAUSE_S_MAX)
            story.promoting()
            story.revising_at_once()
            story.deciding()
            story.recalling()
            story.erasing()
            proofs = story.proving(time.monotonic() - started)
            return Told(proofs=proofs, folder=folder if keep else None, unit_id=story.won_id)


@contextmanager
def _folder(keep: str | None) -> Iterator[str]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="mnemarch-demo-", ignore_cleanup_errors=True) as temporary:
            folder = os.path.join(os.path.realpath(temporary), PROJECT)
            os.mkdir(folder)
            yield folder
        return
    if os.path.exists(keep) and (not os.path.isdir(keep) or os.listdir(keep)):
        raise InvalidInput(f"{keep!r} is not empty.", hint="Give a new folder; nothing was overwritten.")
    os.makedirs(keep, exist_ok=True)
    yield os.path.realpath(keep)


class _Story:
    """The acts, in order. Each does something to the memory and tells what the memory answered."""

    def __init__(self, memory: Memory, world: World, screen: Screen) -> None:
        self._memory = memory
        self._world = world
        self._screen = screen
        self._secret = "AKIA" + base64.b32encode(os.urandom(10)).decode()
        self._receipts: list[dict[str, Any]] = []
        self._agents = 0
        self._shared_id = self._unproven_id = self._personal_id = self.won_id = ""
        self._won = self._lost = 0

    def _seat(self, actor: Actor) -> Seat:
        return self._memory.seat(actor, Scope(project=PROJECT, worktree=WORKTREE), root=self._world.desk)

    # 1-3: everybody at once

    def writing_at_once(self, agents: int, events: int, pause_s_max: float) -> None:
        screen = self._screen
        self._agents = agents
        with Crew(scripts_for(self._world, agents, events, pause_s_max, self._secret)) as crew:
            crew.until("start")
            screen.act(1, "Staging: everybody writes at once")
            with screen.crowd(crew.members, events):
                crew.go()
                crew.until("claim")
                crew.go()
                crew.until("verify")
            screen.act(2, "The same moment: what the agents said, and what the memory made of it")
            self._claims_told(crew.members)
            crew.go()
            crew.until("end")
            screen.act(3, "Gate: each task runs its tests and reports")
            for member in crew.members:
                self._verification_told(member)
            self._receipts += receipts_of(crew.members)

    def _claims_told(self, members: list[Member]) -> None:
        tell, judge = self._screen.tell, self._seat(Actor.human("ada"))
        shared = [one["outcome"] for member in members for one in member.saying("claimed", "shared")]
        self._shared_id = shared[0]["unit"]["id"]
        unit = judge.get(self._shared_id)
        ids = {outcome["unit"]["id"] for outcome in shared}
        tell("everybody", f'"{unit.content}"', then=f"{len(ids)} unit, {len(unit.provenance)} voices: {unit.id}")
        for member in members:
            for one in member.said:
                self._claim_told(member.name, one)
        for dispute in judge.conflicts():
            contents = " / ".join(judge.get(side).content for side in dispute.units)
            tell("the memory", contents, then=f"open conflict {dispute.id} ({dispute.reason})", style="yellow")

    def _claim_told(self, name: str, one: dict[str, Any]) -> None:
        tell, what = self._screen.tell, one.get("what")
        outcome, receipt = one.get("outcome", {}), one.get("receipt", {})
        unit = outcome.get("unit") or {}
        if what == "too wide":
            kept = f"it stays in the log as event {outcome['receipt']['event_id']}"
            then = f"refused by {outcome['rule']}: {outcome['reason']} {kept}"
            tell(name, "writes at project scope", then=then, style="yellow")
        elif what == "secret":
            then = f"receipt #{receipt['seq']}: redacted {', '.join(receipt['redacted'])}, before it reached the disk"
            tell(name, "logs a line with an API key in it", then=then, style="yellow")
        elif what == "retry" and receipt["duplicate"]:
            tell(
                name,
                "retries a log call with the same key",
                then=f"the first receipt again: #{receipt['seq']}, duplicate",
            )
        elif what == "unproven":
            self._unproven_id = unit["id"]
            then = f"{unit['status']} {unit['confidence']:.2f}, and it stays one (S10.1)"
            tell(name, f'"{unit["content"]}" without evidence', then=then, style="yellow")
        elif what == "personal":
            self._personal_id = unit["id"]

    def _verification_told(self, member: Member) -> None:
        (report,) = member.saying("verified")
        promotion = report["promotion"]
        ran = ", ".join(f"{name.partition('::')[2]} {'✓' if ok else '✗'}" for name, ok in report["tests"].items())
        raised = [f'"{short(unit["content"], 60)}" {unit["status"]}' for unit in promotion["units"]]
        self._screen.tell(
            member.name,
            ran,
            then="raised " + ", ".join(raised) if raised else f"episode {promotion['episode_id']} kept, nothing raised",
            style="green" if report["passed"] else "yellow",
        )
        judge = self._seat(Actor.human("ada"))
        for refusal in promotion["refused"]:
            content = judge.get(refusal["unit_id"]).content if refusal["unit_id"] else ""
            self._screen.tell("", f'kept down by {refusal["rule"]}: "{short(content, 60)}"')

    # 4-8: what follows

    def promoting(self) -> None:
        self._screen.act(4, "Published: an orchestrator lifts what was verified to the whole project")
        lead = self._seat(Actor.orchestrator("lead"))
        verified = lead.units(kind=Kind.FACT, status=Status.VERIFIED, level=Level.WORKTREE, limit=1_000)
        for unit_id in [*(unit.id for unit in reversed(verified)), self._unproven_id]:
            content = f'"{short(lead.get(unit_id).content, 70)}"'
            outcome = lead.promote(unit_id, Level.PROJECT)
            if isinstance(outcome, Refused):
                then = f"refused by {outcome.rule}: {outcome.reason}"
                self._screen.tell("lead", content, then=then, style="yellow")
            else:
                then = f"{outcome.unit.status} {outcome.unit.confidence:.2f} at {outcome.unit.level}"
                self._screen.tell("lead", content, then=then)

    def revising_at_once(self) -> None:
        self._screen.act(5, "No last writer wins: two processes revise one unit from the same version")
        with Crew(revisions_of(self._world, self._shared_id)) as crew:
            crew.until("supersede")
            crew.go()
            crew.until("end")
            for member in crew.members:
                self._revision_told(member)
            self._receipts += receipts_of(crew.members)

    def _revision_told(self, member: Member) -> None:
        content = f'"{member.script["revise"]["content"]}"'
        for won in member.saying("won"):
            self._won += 1
            self.won_id = won["new"]
            self._screen.tell(member.name, content, then=f"superseded version {won['expected']}")
        for lost in member.saying("lost"):
            self._lost += 1
            seen = f"saw version {lost['expected']}, it is at {lost['actual']} now"
            then = f"Conflict: {seen}; the text is kept as {lost['new']}"
            self._screen.tell(member.name, content, then=then, style="yellow")

    def deciding(self) -> None:
        self._screen.act(6, "A person decides")
        ada = self._seat(Actor.human("ada"))
        for dispute in ada.conflicts():
            sides = [ada.get(side) for side in dispute.units]
            winner = next((unit for unit in sides if unit.content == OPPOSED[1]), sides[0])
            decided = ada.resolve(dispute.id, winner=winner.id, reason="a bank fines a second try on a declined card")
            loser = next(ada.get(side) for side in dispute.units if side != decided.winner)
            self._screen.tell("ada", f'"{winner.content}"', then=f'stands; "{loser.content}" is {loser.status}')
            approved = ada.approve(winner.id)
            then = f"{approved.status} {approved.confidence:.2f}: a human's word is evidence"
            self._screen.tell("", "and approves it", then=then)
            ada.promote(winner.id, Level.PROJECT)

    def recalling(self) -> None:
        self._screen.act(7, "Recall: a newcomer in another worktree asks, in two languages")
        for question in QUESTIONS:
            self._screen.tell("coder-new", f'$ mnemarch recall "{question}" -k 2')
            self._screen.block(self._recalled(question))

    def _recalled(self, question: str) -> str:
        """The real command, in a process of its own, in the other worktree."""
        named = {"ACTOR": "agent:coder-new", "TASK": "T-new"}
        if not self._world.in_git:
            named |= {"STORE": self._world.folder, "PROJECT": PROJECT, "WORKTREE": OTHER_WORKTREE}
        ours = {name: item for name, item in os.environ.items() if not name.startswith("MNEMARCH_")}
        done = subprocess.run(  # noqa: S603 - our own module, no shell
            [sys.executable, "-m", "mnemarch", "recall", question, "-k", "2"],
            cwd=self._world.other_desk,
            env=ours | {f"MNEMARCH_{name}": item for name, item in named.items()} | {"PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        return done.stdout or done.stderr

    def erasing(self) -> None:
        self._screen.act(8, "Erasure: a customer asks to be forgotten")
        ada, data_folder = self._seat(Actor.human("ada")), self._data_folder
        before = holding(data_folder, PERSONAL_NAME)
        erased = ada.erase(self._personal_id, "the customer asked for it")
        after = holding(data_folder, PERSONAL_NAME)
        files = f"files that hold the name: {len(before)} before, {len(after)} now"
        then = f"event payloads removed: {erased.events}; {files}"
        self._screen.tell("ada", f'erases "{PERSONAL}"', then=then)

    def proving(self, seconds: float) -> list[Proof]:
        self._screen.act(9, "The proof, counted from the memory itself")
        witness = Witness(
            receipts=self._receipts,
            agents=self._agents,
            shared=SHARED,
            revisions=list(REVISIONS),
            won=self._won,
            lost=self._lost,
            refused=TOO_WIDE,
            unproven_id=self._unproven_id,
            secret=self._secret,
            erased=PERSONAL_NAME,
        )
        judge = self._seat(Actor.human("ada"))
        log_path = os.path.join(self._world.folder, "log.jsonl")
        proofs = proofs_of(self._memory, judge, witness, log_path, self._data_folder)
        self._screen.proofs(proofs)
        failed = sum(not proof.ok for proof in proofs)
        verdict = "all hold" if not failed else f"{failed} DO NOT HOLD"
        self._screen.tell("", f"{len(proofs)} proofs, {verdict}; {seconds:.0f} s")
        return proofs

    @property
    def _data_folder(self) -> str:
        return os.path.join(self._world.folder, ".mnemarch")

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
import tomllib
from collections import Counter
from importlib.resources import files

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mnemarch.code.git import git
from mnemarch.errors import InvalidInput, StoreUnavailable
from mnemarch.interfaces.demo_agents import Agents, Proof, Witness, files_holding, proofs_of, receipts_in
from mnemarch.interfaces.show import clean, short
from mnemarch.model.caller import Actor, Level, Scope
from mnemarch.model.outcome import Refused
from mnemarch.wiring import open as open_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from mnemarch.interfaces.demo_agents import Step
    from mnemarch.memory import Memory
    from mnemarch.seat import Seat

_SHOP = tomllib.loads(files(__package__).joinpath("demo_shop.toml").read_text(encoding="utf-8"))
_PROJECT, _WORKTREE = _SHOP["project"], _SHOP["worktrees"][0]
_RETRY_TEST, _FAILING_TEST = f"test:{_SHOP['retry_test']}", f"test:{_SHOP['failing_test']}"
_AGENTS_MIN, _AGENTS_MAX = 2, 32
_BEAT_S = 0.9
# Nobody watches a log: there no line is wrapped.
_LOG_WIDTH = 400
_MARKS = {"pass": "✓", "fail": "✗"}


def run(*, keep: str | None, agents: int, events: int, fast: bool, aside: bool) -> tuple[list[Proof], str]:
    """Run the whole story; gives the proofs, and the id of a unit to look at.

    With `aside` the story is told on stderr, for stdout belongs to the answer.
    """
    if not _AGENTS_MIN <= agents <= _AGENTS_MAX:
        raise InvalidInput(f"{agents} agents are too few or too many.", hint=f"From {_AGENTS_MIN} to {_AGENTS_MAX}.")
    if events < 2:
        raise InvalidInput(f"{events} events are too few.", hint="At least 2 for each agent.")
    if keep and os.path.exists(keep) and (not os.path.isdir(keep) or os.listdir(keep)):
        raise InvalidInput(f"{keep!r} is not empty.", hint="Give a new folder; nothing was overwritten.")
    with tempfile.TemporaryDirectory(prefix="mnemarch-demo-", ignore_cleanup_errors=True) as temporary:
        folder = os.path.realpath(keep or os.path.join(temporary, _PROJECT))
        started = time.monotonic()
        desks = _made_shop(folder)
        with open_memory(folder) as memory:
            story = _Story(memory, folder, desks, agents, sys.stderr if aside else sys.stdout, fast=fast)
            story.write_at_once(events)
            story.promote()
            story.revise_at_once()
            story.settle()
            story.recall()
            story.erase()
            return story.prove(started)


def _made_shop(folder: str) -> list[str]:
    """Write the shop and commit it; gives the worktree that the agents share, and the one a newcomer reads from."""
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


def _parts(agents: int, events: int, secret: str) -> list[tuple[list[Step], list[Step], list[Step]]]:
    """What each agent logs, claims and verifies. The last one's test fails; however many there are, together they play
    every part."""
    known = [*(_SHOP["known"][number :: agents - 1] for number in range(agents - 1)), []]
    claims = [[_claim("shared", _SHOP["shared"], _RETRY_TEST, _SHOP["retried"])] for _ in known]
    for own, facts in zip(claims, known, strict=True):
        own += [_claim("known", fact["content"], f"test:{fact['test']}", fact["code"]) for fact in facts]
    for own, text in zip(claims, _SHOP["opposed"], strict=False):
        own.append(_claim("opposed", text, "symbol:shop/checkout.py::pay"))
    claims[0].append(_claim("unproven", _SHOP["unproven"]))
    claims[1].append(_claim("personal", _SHOP["personal"]))
    claims[2 % agents].append(_claim("too wide", _SHOP["too_wide"], level="project"))
    claims[3 % agents].append(_log("tool_output", f"deploying with {secret}", what="secret"))
    claims[4 % agents] += [_log("result", "pushed the branch", what=what, key="push-1") for what in ("once", "again")]
    claims[-1].append(_claim("failing", _SHOP["failing"], _FAILING_TEST))
    code = [line.strip() for text in _SHOP["files"].values() for line in text.splitlines() if line.strip()]
    parts = []
    for number, facts in enumerate(known):
        is_last = number == agents - 1
        tests = [_SHOP["failing_test"]] if is_last else [_SHOP["retry_test"], *(fact["test"] for fact in facts)]
        lines = [f"settle {', '.join(tests)}", *(f"read: {code[line % len(code)]}" for line in range(1, events))]
        thoughts: list[Step] = [_log("thought", line) for line in lines]
        parts.append((thoughts, claims[number], [{"do": "verify", "tests": tests}]))
    return parts


def _log(kind: str, text: str, **more: str) -> Step:
    return {"do": "log", "kind": kind, "text": text, **more}


def _claim(what: str, text: str, *citations: str, level: str = "worktree") -> Step:
    return {"do": "remember", "what": what, "text": text, "citations": citations, "level": level}


class _Story:
    """The acts, in order. Each does something to the memory and tells what the memory answered."""

    def __init__(self, memory: Memory, folder: str, desks: list[str], agents: int, stream: Any, *, fast: bool) -> None:
        self._memory = memory
        self._folder, self._desks = folder, desks
        self._data_folder = os.path.join(folder, ".mnemarch")
        self._console = Console(file=stream, highlight=False, width=None if stream.isatty() else _LOG_WIDTH)
        self._beat_s = _BEAT_S if stream.isatty() and not fast else 0.0
        secret = "AKIA" + base64.b32encode(os.urandom(10)).decode()
        self._witness = Witness(shop=_SHOP, agents=agents, secret=secret)
        self._ada = self._seat(Actor.human("ada"))

    def _seat(self, actor: Actor) -> Seat:
        return self._memory.seat(actor, Scope(project=_PROJECT, worktree=_WORKTREE), root=self._desks[0])

    def _act(self, number: int, title: str) -> None:
        """A new part of the story, after a moment to read the last."""
        time.sleep(self._beat_s)
        self._console.print(Text(f"\n{number}  {title}", "bold cyan"))

    def _tell(self, who: str, what: str, then: str = "", style: str = "green") -> None:
        """One thing that happened: who, what, and what the memory answered."""
        grid = Table.grid(padding=(0, 1))
        grid.add_column(width=12, style="bold")
        grid.add_column(overflow="fold")
        grid.add_row(who, Text(clean(what)))
        if then:
            grid.add_row("", Text(f"→ {clean(then)}", style))
        self._console.print(Padding(grid, (0, 0, 0, 3), expand=False))

    def _agents(self, names: Iterable[str]) -> Agents:
        """A process for each name: a coder has a task, an orchestrator has none."""
        places = {}
        for name in names:
            kind, _, number = name.partition("-")
            scope = {"project": _PROJECT, "worktree": _WORKTREE} | ({"task": f"T-{number}"} if kind == "coder" else {})
            actor = f"{'agent' if kind == 'coder' else 'orchestrator'}:{name}"
            places[name] = {"store": self._folder, "root": self._desks[0], "actor": actor, "scope": scope}
        return Agents(places)

    def _reports(self, agents: Agents, steps_of: dict[str, list[Step]]) -> list[tuple[str, dict[str, Any]]]:
        """What the agents report, all at work at once; their receipts are kept for the proof."""
        with self._console.status("The agents are at work"):
            reports = list(agents.reports(steps_of))
        self._witness.receipts += [receipt for _, report in reports for receipt in receipts_in(report)]
        return reports

    def write_at_once(self, events: int) -> None:
        count = self._witness.agents
        title = Text(f"\n{count} agents, {count} processes, one memory", "bold")
        self._console.print(title, Text(self._data_folder, "dim"), sep="\n")
        parts = dict(enumerate(_parts(count, events, self._witness.secret), start=1))
        thoughts, claims, checks = ({f"coder-{number}": part[at] for number, part in parts.items()} for at in range(3))
        with self._agents(thoughts) as agents:
            self._reports(agents, {name: [] for name in thoughts})  # All have opened the memory before one writes.
            self._act(1, "Staging: everybody writes at once")
            receipts = Counter((name, report["process"]) for name, report in self._reports(agents, thoughts))
            table = Table("agent", "process", "task", "receipts", box=None, pad_edge=False, padding=(0, 1, 0, 2))
            for (name, process), handed in receipts.items():
                table.add_row(Text(name, "bold"), f"{process}", name.replace("coder", "T"), f"{handed:>8}")
            self._console.print(table)
            self._act(2, "The same moment: what the agents said, and what the memory made of it")
            self._tell_claims(self._reports(agents, claims))
            self._act(3, "Gate: each task runs its tests, and the memory sees them")
            for name, report in self._reports(agents, checks):
                self._tell_verification(name, report)

    def _tell_claims(self, claims: list[tuple[str, dict[str, Any]]]) -> None:
        shared = set()
        for name, one in claims:
            unit_id = (one.get("answer", {}).get("unit") or {}).get("id", "")
            self._witness.ids[one["what"]] = unit_id
            if one["what"] == "shared":
                shared.add(unit_id)
            if one["what"] in _SHOP["told"]:
                what, then = (form.format_map(one) for form in _SHOP["told"][one["what"]])
                self._tell(name, what, then, "yellow")
        unit = self._ada.get(min(shared))
        self._tell("everybody", f'"{unit.content}"', f"{len(shared)} unit, {len(unit.provenance)} voices: {unit.id}")
        for dispute in self._ada.conflicts():
            texts = " / ".join(self._ada.get(side).content for side in dispute.units)
            self._tell("the memory", texts, f"open conflict {dispute.id} ({dispute.reason})", "yellow")

    def _tell_verification(self, name: str, report: dict[str, Any]) -> None:
        promotion = report["answer"]
        ran = ", ".join(
            f"{test['name'].rpartition('.')[2]} {_MARKS.get(test['outcome'], '-')}"
            for test in promotion["run"]["results"]
        )
        raised = ", ".join(
            f'"{short(unit["content"], 60)}" {unit["status"]} for the {unit["level"]}' for unit in promotion["units"]
        )
        then = f"raised {raised}" if raised else f"episode {promotion['episode_id']} kept, nothing raised"
        self._tell(name, ran, then, "green" if promotion["passed"] else "yellow")
        for refusal in promotion["refused"]:
            content = self._ada.get(refusal["unit_id"]).content if refusal["unit_id"] else ""
            self._tell("", f'"{short(content, 60)}"', f"not raised: {refusal['reason']} ({refusal['rule']})", "yellow")

    def promote(self) -> None:
        self._act(4, "No evidence, no way up: an orchestrator tries to lift a guess to the whole project")
        lead = self._seat(Actor.orchestrator("lead"))
        unit = lead.get(self._witness.ids["unproven"])
        outcome = lead.promote(unit.id, Level.PROJECT)
        then = f"refused by {outcome.rule}: {outcome.reason}" if isinstance(outcome, Refused) else "lifted"
        self._tell("lead", f'"{short(unit.content, 70)}"', then, "yellow")

    def revise_at_once(self) -> None:
        self._act(5, "No last writer wins: two processes revise one unit from the same version")
        old = self._ada.get(self._witness.ids["shared"])
        claims = {
            f"lead-{number}": [_claim("revision", text, _RETRY_TEST, _SHOP["retried"], level="project")]
            for number, text in enumerate(_SHOP["revisions"], start=1)
        }
        with self._agents(claims) as leads:
            said = {name: report["answer"]["unit"] for name, report in self._reports(leads, claims)}
            steps: dict[str, list[Step]] = {
                name: [{"do": "supersede", "new": new["id"], "old": old.id, "seen": old.version}]
                for name, new in said.items()
            }
            revised = self._reports(leads, steps)
        for name, report in revised:
            new, seen, actual = said[name], report["seen"], report["actual"]
            if actual is None:
                self._witness.won.append(new["id"])
                self._tell(name, f'"{new["content"]}"', f"superseded version {seen}")
            else:
                self._witness.lost += 1
                then = f"Conflict: saw version {seen}, it is at {actual} now; the text is kept as {new['id']}"
                self._tell(name, f'"{new["content"]}"', then, "yellow")

    def settle(self) -> None:
        self._act(6, "A person decides")
        ada = self._ada
        for dispute in ada.conflicts():
            sides = [ada.get(side) for side in dispute.units]
            winner, loser = sorted(sides, key=lambda unit: unit.content not in _SHOP["reasons"])
            ada.resolve(dispute.id, winner=winner.id, reason=_SHOP["reasons"][winner.content])
            self._tell("ada", f'"{winner.content}"', f'stands; "{loser.content}" is {ada.get(loser.id).status}')
            approved = ada.approve(winner.id)
            then = f"{approved.status} {approved.confidence:.2f}: a human's word is evidence"
            self._tell("", "and approves it", then)
            ada.promote(winner.id, Level.PROJECT)

    def recall(self) -> None:
        """The real command, in a process of its own, in the other worktree."""
        self._act(7, "Recall: a newcomer in another worktree asks, in two languages")
        named = {"ACTOR": "agent:coder-new", "TASK": "T-new"}
        ours = {name: item for name, item in os.environ.items() if not name.startswith("MNEMARCH_")}
        env = ours | {f"MNEMARCH_{name}": item for name, item in named.items()} | {"PYTHONIOENCODING": "utf-8"}
        for question in _SHOP["questions"]:
            self._tell("coder-new", f'$ mnemarch recall "{question}" -k 2')
            command = [sys.executable, "-m", "mnemarch", "recall", question, "-k", "2"]
            done = subprocess.run(  # noqa: S603 - our own module, no shell
                command, cwd=self._desks[1], env=env, capture_output=True, encoding="utf-8", check=False
            )
            answer = Text(clean(done.stdout or done.stderr).rstrip(), "dim")
            self._console.print(Padding(answer, (0, 0, 0, 6), expand=False))

    def erase(self) -> None:
        self._act(8, "Erasure: a customer asks to be forgotten")
        before = files_holding(self._data_folder, _SHOP["personal_name"])
        erased = self._ada.erase(self._witness.ids["personal"], "the customer asked for it")
        after = files_holding(self._data_folder, _SHOP["personal_name"])
        held = f"files that hold the name: {len(before)} before, {len(after)} now"
        self._tell("ada", f'erases "{_SHOP["personal"]}"', f"event payloads removed: {erased.events}; {held}")

    def prove(self, started: float) -> tuple[list[Proof], str]:
        self._act(9, "The proof, counted from the memory itself")
        proofs = proofs_of(self._memory, self._ada, self._witness, self._folder)
        table = Table("", "claim", "what was counted", box=box.SIMPLE_HEAD, pad_edge=False)
        for proof in proofs:
            mark = Text("✓", "bold green") if proof.ok else Text("✗", "bold red")
            table.add_row(mark, Text(proof.claim, "bold"), proof.counted)
        self._console.print(table)
        failed = sum(not proof.ok for proof in proofs)
        verdict = "all hold" if not failed else f"{failed} DO NOT HOLD"
        self._tell("", f"{len(proofs)} proofs, {verdict}; {time.monotonic() - started:.0f} s")
        return proofs, self._witness.won[0] if self._witness.won else ""

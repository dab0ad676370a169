"""From a set to a memory on disk, through the public API, once; each measurement then gets a copy of it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import mnemarch
from bench.retrieval.progress import Progress
from bench.retrieval.sets import Question, Retrieval, Turn
from mnemarch import Actor, Claim, Scope, Stored

TASK = "bench"
_UNITS = "units.json"


@dataclass(frozen=True)
class Loaded:
    """A memory that holds a set, by scope. Turns that say the same are one unit; a refused turn is none.

    A unit's sessions are those it names itself, so a session whose every turn was said before is not found.
    """

    folder: str
    unit_of: dict[str, dict[str, str]]
    sessions_of: dict[str, dict[str, list[str]]]
    turns: dict[str, dict[str, list[Turn]]]

    def gold(self, question: Question) -> frozenset[str]:
        """The units that hold the answer; a turn that was refused stays as what can't be found."""
        known = self.unit_of[question.scope]
        return frozenset(known.get(turn, turn) for turn in question.gold)

    def ranking(self, question: Question, units: list[str]) -> list[str]:
        """The answer without units that are nothing but the question itself."""
        turns = self.turns[question.scope]
        return [unit for unit in units if any(turn.id not in question.exclude for turn in turns[unit])]

    def sessions(self, question: Question, units: list[str]) -> list[str]:
        """The sessions of the answer in order, without repeats."""
        known = self.sessions_of[question.scope]
        return list(dict.fromkeys(session for unit in units for session in known[unit]))

    def texts(self, scope: str) -> tuple[list[str], list[str]]:
        """The units of a scope and their texts, for what does not go through the memory."""
        turns = self.turns[scope]
        return list(turns), [held[0].text for held in turns.values()]

    def __str__(self) -> str:
        turns = sum(len(held) for units in self.turns.values() for held in units.values())
        return f"{turns:,} turns, {sum(map(len, self.turns.values())):,} units, {len(self.turns):,} projects"


def loaded(given: Retrieval, keep: str, progress: Progress) -> Loaded:
    """The memory of a set in the folder `keep`, made if it is not there; an interrupted load leaves nothing."""
    texts = "\x00".join(f"{turn.scope} {turn.id} {turn.session} {turn.text}" for turn in given.turns)
    folder = os.path.join(keep, f"{given.name}-{hashlib.blake2b(texts.encode(), digest_size=6).hexdigest()}")
    made(folder, lambda place: _fill(given, place, progress))
    with mnemarch.open(folder) as memory:
        if memory.stats().unindexed:  # An index by other rules is made anew here, once, not in every copy.
            memory.reindex()
    with open(os.path.join(folder, _UNITS), encoding="utf-8") as file:
        unit_of, sessions_of = json.load(file)
    turns: dict[str, dict[str, list[Turn]]] = {scope: {} for scope in unit_of}
    for turn in given.turns:
        unit = unit_of[turn.scope].get(turn.id)
        if unit is not None:
            turns[turn.scope].setdefault(unit, []).append(turn)
    return Loaded(folder, unit_of, sessions_of, turns)


def made(folder: str, fill: Callable[[str], None]) -> None:
    """Fill a folder that does not exist yet; one that was not filled to the end is not left behind."""
    if os.path.exists(folder):
        return
    parent = os.path.dirname(folder)
    os.makedirs(parent, exist_ok=True)
    place = tempfile.mkdtemp(dir=parent, prefix=".loading-")
    try:
        fill(place)
        os.replace(place, folder)
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def copied(folder: str) -> Iterator[str]:
    """A copy for one measurement: a recall records what it hands out, and the next must not profit from that."""
    with tempfile.TemporaryDirectory(prefix="mnemarch-bench-") as place:
        yield shutil.copytree(folder, os.path.join(place, "copy"))


def _fill(given: Retrieval, folder: str, progress: Progress) -> None:
    """Remember every turn, and write down by scope the unit of each turn and the sessions of each unit."""
    by_scope: dict[str, list[Turn]] = {}
    for turn in given.turns:
        by_scope.setdefault(turn.scope, []).append(turn)
    unit_of: dict[str, Any] = {}
    sessions_of: dict[str, Any] = {}
    done = 0
    with mnemarch.open(folder) as memory:
        for scope, turns in by_scope.items():
            seat = memory.seat(Actor.agent("writer"), Scope(project=scope, task=TASK))
            claims = [
                Claim(content=turn.text, kind="fact", session=turn.session, occurred_at=turn.at) for turn in turns
            ]
            answers = seat.remember_many(claims, progress=progress.after(done))
            stored = [
                (turn.id, answer.unit)
                for turn, answer in zip(turns, answers, strict=True)
                if isinstance(answer, Stored)
            ]
            unit_of[scope] = {turn: unit.id for turn, unit in stored}
            # A later turn that says the same has the unit as it stands then.
            sessions_of[scope] = {
                unit.id: [source.session for source in unit.provenance if source.session] for _, unit in stored
            }
            done += len(turns)
    with open(os.path.join(folder, _UNITS), "w", encoding="utf-8") as file:
        json.dump((unit_of, sessions_of), file)

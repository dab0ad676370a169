"""How well opposed statements are told from compatible ones, in English and Korean.

    python -m bench.statements [--half dev|held|fresh|worded|blind] [--shown]
    python -m bench.statements --topic      what the thousandth member of a topic costs, against the second

Our own pairs come from tests/fixtures/statements.txt, in two halves that the hash of a pair decides: rules are tuned on
`dev` only. The pairs of `fresh`, in statements_fresh.txt, were written without a look at the rules; since then
rules were changed for them too. Those of `worded` say one thing in different words; rules were changed for them as
well. Those of `blind` were written by somebody who knew none of the code, and nobody reads them: they are the clean
number. From
MNEMARCH_BENCH_DATA (by default ../shared/data) come labelled updates of facts about persons, and turns of
conversations, of which hardly any may be flagged. Each pair is remembered in a fresh project, as a user would.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import zlib
from collections import Counter
from statistics import median

import mnemarch
from mnemarch import Actor, Claim, Scope
from mnemarch.stores.sql.reader import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

OWN_FILES = ("fresh", "worded", "blind")
FIXTURES = os.path.join(os.path.dirname(__file__), os.pardir, "tests", "fixtures")
DATA = os.environ.get("MNEMARCH_BENCH_DATA", os.path.join(os.path.dirname(__file__), "..", "..", "shared", "data"))


def pairs(half: str) -> Iterator[tuple[str, str, str, str]]:
    """The label, category and two texts of each pair of one half, or of the fresh ones."""
    label = ""
    name = f"statements_{half}.txt" if half in OWN_FILES else "statements.txt"
    with open(os.path.join(FIXTURES, name), encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("["):
                label = line.strip().strip("[]")
            elif line.strip() and not line.startswith("#"):
                category, first, second = line.rstrip("\n").split("\t")
                if half in {*OWN_FILES, ("dev", "held")[zlib.crc32(f"{first}\t{second}".encode()) % 2]}:
                    yield label, category, first, second


def outcome(memory: mnemarch.Memory, name: str, first: str, second: str) -> str:
    """What becomes of a pair, in a project of this name: merged, flagged or nothing."""
    seat = memory.seat(Actor.agent("bench"), Scope(project=name, task="t"))
    seat.remember(first)
    if getattr(seat.remember(second), "merged", False):
        return "merged"
    return "flagged" if seat.conflicts() else "nothing"


def own(memory: mnemarch.Memory, half: str, *, shown: bool) -> None:
    outcomes: Counter[tuple[str, str, str]] = Counter()
    for number, (label, category, first, second) in enumerate(pairs(half)):
        language = "english" if first.isascii() and second.isascii() else "korean"
        told = outcome(memory, f"{half}-{number}", first, second)
        outcomes[label, language, told] += 1
        if shown and (told == "flagged") != (label == "opposing"):
            print(f"  {label:10} {category:10} {told:8} {first}  /  {second}")
    for label in ("opposing", "compatible"):
        for language in ("english", "korean"):
            known = {told: count for (one, two, told), count in outcomes.items() if (one, two) == (label, language)}
            total = sum(known.values())
            flagged, merged = known.get("flagged", 0), known.get("merged", 0)
            print(f"{half:5} {label:10} {language:8} {flagged:3} of {total:3} flagged, {merged} merged")


def updates(memory: mnemarch.Memory) -> None:
    counted: Counter[tuple[int, str]] = Counter()
    with open(os.path.join(DATA, "updates_membench", "pairs.jsonl"), encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            pair = json.loads(line)
            counted[pair["label"], outcome(memory, f"update-{number}", pair["a"], pair["b"])] += 1
    for label, what in ((1, "updates"), (0, "no updates")):
        total = sum(count for (one, _), count in counted.items() if one == label)
        print(f"updates_membench: {counted[label, 'flagged']} of {total} {what} flagged")


def turns(memory: mnemarch.Memory, turns_max: int) -> None:
    count = flagged = 0
    by_scope: dict[str, list[str]] = {}
    with open(os.path.join(DATA, "locomo", "corpus.jsonl"), encoding="utf-8") as lines:
        for turn in map(json.loads, lines):
            by_scope.setdefault(turn["scope"], []).append(f"{turn['speaker']}: {turn['text']}")
    for scope, texts in by_scope.items():
        seat = memory.seat(Actor.agent("bench"), Scope(project=f"turns-{scope}", task="t"))
        texts = texts[:turns_max]
        seat.remember_many([Claim(content=text) for text in texts])
        count += len(texts)
        flagged += len(seat.conflicts())
    print(f"locomo: {flagged} conflicts in {count} turns, {1000 * flagged / count:.1f} per 1,000")


def topic() -> None:
    """The cost of a remember late in one topic against early in it: at most 1.5 times (R6), in as many queries."""
    costs: list[tuple[float, int]] = []
    asked = 0
    query = Reader.query

    def counted(self: Reader, name: str, /, **parameters: Any) -> Any:
        nonlocal asked
        asked += 1
        return query(self, name, **parameters)

    Reader.query = counted  # type: ignore[method-assign]
    for actor in (Actor.agent("bench"), Actor.human("ada")):
        costs.clear()
        with tempfile.TemporaryDirectory() as folder, mnemarch.open(folder) as memory:
            seat = memory.seat(actor, Scope(project="topic", worktree="main", task="t"))
            for number in range(1000):
                asked, began = 0, time.perf_counter()
                seat.remember(f"The billing service listens on port {8000 + number}")
                costs.append((time.perf_counter() - began, asked))
        early, late = ([*zip(*part, strict=True)] for part in (costs[1:100], costs[900:]))
        ratio = median(late[0]) / median(early[0])
        counts = f"{median(early[1]):.0f} queries early, {median(late[1]):.0f} late"
        print(f"topic of 1,000 by {actor}: the last 100 cost {ratio:.2f} times the first (limit 1.5); {counts}")
    Reader.query = query  # type: ignore[method-assign]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=["dev", "held", *OWN_FILES])
    parser.add_argument("--shown", action="store_true", help="print each pair that is judged wrong")
    parser.add_argument("--turns", type=int, default=600, help="turns of each conversation")
    parser.add_argument("--topic", action="store_true", help="the cost of the members of one large topic, alone")
    options = parser.parse_args()
    if options.topic:
        topic()
        return
    with mnemarch.open(":memory:") as memory:
        for half in [options.half] if options.half else ["dev", "held", *OWN_FILES]:
            own(memory, half, shown=options.shown)
        if options.half is None and os.path.isdir(DATA):
            updates(memory)
            turns(memory, options.turns)


if __name__ == "__main__":
    main()

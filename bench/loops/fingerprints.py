"""How well error fingerprints tell faults apart, on sets that nobody here wrote.

    python -m bench.loops.fingerprints

A pair of errors of one group is the same fault, a pair of two groups of one source is not. Prints one table a set and
writes bench/out/fingerprints.json. Exits 1 if a limit is broken, 2 without data.
"""

from __future__ import annotations

import json
import os
import random
import re
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.retrieval.sets import folder
from mnemarch.text.fingerprint import fingerprint

OUT = os.path.join(os.path.dirname(os.path.dirname(__file__)), "out", "fingerprints.json")
SOURCES = {
    "err_tracebacks": "friendly-traceback (github.com/friendly-traceback/docs): one fault as several Pythons show it",
    "err_loghub": "loghub (github.com/logpai/loghub): log lines of many systems with their templates",
}
FORM = "Each set is a folder with items.jsonl {scope, group, text, split}."
# The least share of same pairs that must be joined, and the largest share of different pairs that may be.
LIMITS = {"err_tracebacks": (0.99, 0.005), "err_loghub": (0.98, 0.01)}
PAIRS_MAX = 20_000
OURS, MASKED, JACCARD = "fingerprint", "masked equality", "word Jaccard >= 0.3"
MICRO, MACRO = "all pairs", "mean of sources"
TIMED_TEXTS = 400
TIMED_ROUNDS = 5


@dataclass(frozen=True)
class Item:
    """One error as a run showed it, and the fault it shows."""

    scope: str
    group: str
    text: str


Pair = tuple[Item, Item]
Judge = Callable[[Item, Item], bool]


def missing() -> str | None:
    """What to tell somebody who lacks the data, or None."""
    absent = [name for name in SOURCES if not (folder() / name).is_dir()]
    if not absent:
        return None
    named = "\n".join(f"  {name}: {SOURCES[name]}" for name in absent)
    return f"{folder()} lacks these sets; MNEMARCH_BENCH_DATA may name a folder that has them:\n{named}\n{FORM}"


def items(name: str) -> list[Item]:
    """The dev half where the set is split."""
    with (folder() / name / "items.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    if len({row.get("split") for row in rows}) > 1:
        rows = [row for row in rows if row["split"] == "dev"]
    return [Item(row["scope"], row["group"], row["text"]) for row in rows]


def pairs(of: Sequence[Item], chance: random.Random) -> tuple[list[Pair], list[Pair]]:
    """Same and different pairs of one source: an item drawn evenly, and another drawn from its group or from others."""
    groups: dict[str, list[Item]] = defaultdict(list)
    for item in of:
        groups[item.group].append(item)
    with_others = [item for item in of if len(groups[item.group]) > 1]
    same: list[Pair] = []
    different: list[Pair] = []
    while len(same) < PAIRS_MAX and with_others:
        one = chance.choice(with_others)
        other = chance.choice(groups[one.group])
        if one is not other:
            same.append((one, other))
    while len(different) < PAIRS_MAX and len(groups) > 1:
        one, other = chance.choice(of), chance.choice(of)
        if one.group != other.group:
            different.append((one, other))
    return same, different


def masked(text: str) -> str:
    text = re.sub(r"0x[0-9a-fA-F]+|\b[0-9a-f]{8,}\b", "#", text)
    return re.sub(r"\d+", "#", re.sub(r"(?:[A-Za-z]:)?[/\\][^\s\"',;:]+", "/", text))


def judges(of: Sequence[Item]) -> dict[str, Judge]:
    """Ours and the baselines, each made ready for these items."""
    hashes = {item.text: fingerprint(item.text).hash for item in of}
    plain = {item.text: masked(item.text) for item in of}
    words = {item.text: frozenset(re.findall(r"\w+", item.text.lower())) for item in of}

    def alike(one: Item, other: Item) -> bool:
        a, b = words[one.text], words[other.text]
        return len(a & b) >= 0.3 * len(a | b)

    return {
        OURS: lambda one, other: hashes[one.text] == hashes[other.text],
        MASKED: lambda one, other: plain[one.text] == plain[other.text],
        JACCARD: alike,
    }


def share(judge: Judge, of: Sequence[Pair]) -> float:
    return sum(judge(*pair) for pair in of) / max(1, len(of))


def measured() -> dict[str, Any]:
    """For each set, method and source the shares of pairs joined; and what one fingerprint costs."""
    chance = random.Random(20_251)
    results: dict[str, Any] = {}
    everything: list[Item] = []
    for name in SOURCES:
        found = items(name)
        everything += found
        results[name] = _joined(found, chance)
    results["time"] = _timed([item.text for item in chance.sample(everything, TIMED_TEXTS)])
    return results


def _joined(found: Sequence[Item], chance: random.Random) -> dict[str, dict[str, dict[str, float]]]:
    ready = judges(found)
    drawn = {
        scope: pairs([item for item in found if item.scope == scope], chance)
        for scope in sorted({item.scope for item in found})
    }
    rows: dict[str, dict[str, dict[str, float]]] = {}
    for method, judge in ready.items():
        by_source = {
            scope: {"same": share(judge, same), "different": share(judge, different)}
            for scope, (same, different) in drawn.items()
        }
        all_same = [pair for same, _ in drawn.values() for pair in same]
        all_different = [pair for _, different in drawn.values() for pair in different]
        sums = {
            MICRO: {"same": share(judge, all_same), "different": share(judge, all_different)},
            MACRO: {key: statistics.mean(row[key] for row in by_source.values()) for key in ("same", "different")},
        }
        rows[method] = by_source | sums
    return rows


def _timed(texts: Sequence[str]) -> dict[str, float]:
    """Microseconds a text of our fingerprint, of the masked baseline and of a bare digest; the fastest round counts."""
    works: dict[str, Callable[[str], object]] = {
        "fingerprint_us": fingerprint,
        "masked_us": masked,
        "sha256_us": lambda text: sha256(text.encode()).hexdigest(),
    }
    spent = {name: min(_round(work, texts) for _ in range(TIMED_ROUNDS)) for name, work in works.items()}
    return spent | {"to_masked": spent["fingerprint_us"] / spent["masked_us"]}


def _round(work: Callable[[str], object], texts: Sequence[str]) -> float:
    started = time.perf_counter()
    for text in texts:
        work(text)
    return (time.perf_counter() - started) / len(texts) * 1e6


@dataclass(frozen=True)
class Limit:
    """One share of one set and what it must keep."""

    set: str
    measure: str
    value: float
    limit: float
    is_least: bool

    @property
    def holds(self) -> bool:
        return self.value >= self.limit if self.is_least else self.value <= self.limit


def limits(results: dict[str, Any]) -> list[Limit]:
    """What must hold of ours, over all pairs and over sources."""
    found = []
    for name, (least, most) in LIMITS.items():
        for kind in (MICRO, MACRO):
            row = results[name][OURS][kind]
            found.append(Limit(name, f"same joined, {kind}", row["same"], least, True))
            found.append(Limit(name, f"different joined, {kind}", row["different"], most, False))
    return found


def set_table(rows: dict[str, dict[str, dict[str, float]]]) -> Table:
    """Sources by methods, in percent: same joined / different joined."""
    table = Table("source")
    for method in rows:
        table.add_column(method, justify="right")
    for source in rows[OURS]:
        cells = [f"{100 * row[source]['same']:6.2f} / {100 * row[source]['different']:5.2f}" for row in rows.values()]
        table.add_row(source, *cells, style="bold" if source in {MICRO, MACRO} else "")
    return table


def limit_table(found: Sequence[Limit]) -> Table:
    table = Table("set", "measure", "%", "limit %", "")
    for limit in found:
        mark = "[green]holds[/]" if limit.holds else "[red]broken[/]"
        bound = f"{'>=' if limit.is_least else '<='} {100 * limit.limit:g}"
        table.add_row(limit.set, limit.measure, f"{100 * limit.value:.2f}", bound, mark)
    return table


def main() -> int:
    absent = missing()
    if absent is not None:
        print(absent, file=sys.stderr)
        return 2
    results = measured()
    screen = Console()
    for name in SOURCES:
        screen.print(f"{name}: same pairs joined / different pairs joined, %", style="bold", highlight=False)
        screen.print(set_table(results[name]))
    spent = results["time"]
    screen.print(
        f"one fingerprint: {spent['fingerprint_us']:.0f} µs, {spent['to_masked']:.1f} times masked equality "
        f"({spent['masked_us']:.0f} µs); a bare sha256 takes {spent['sha256_us']:.1f} µs",
        highlight=False,
    )
    found = limits(results)
    screen.print(limit_table(found))
    os.makedirs(os.path.dirname(OUT), exist_ok=True)
    with open(OUT, "w", encoding="utf-8") as file:
        json.dump(results | {"limits": [asdict(limit) | {"holds": limit.holds} for limit in found]}, file, indent=2)
    return 0 if all(limit.holds for limit in found) else 1


if __name__ == "__main__":
    sys.exit(main())

"""What the cognitive gate adds to a recall: eight items that cite eight files of 2,000 lines, few commits or many.

    python -m bench.staleness.gate [--commits 50000] [--files 20000] [--rounds 60]

The same recall is measured over units that cite nothing, in the same memory and run; the difference is what the gate
costs. Writes bench/out/gate.json and exits with 1 if a limit is broken.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import mnemarch
from bench.staleness.history import made
from mnemarch import Actor, Citation, Claim, Memory, Scope

HERE = os.path.dirname(os.path.dirname(__file__))
FILES = 8
LIMIT_MS = 5.0
WORDS = ("retry", "invoice", "session", "cache", "upload", "webhook", "ledger", "quota")


def source(name: str) -> str:
    """A module of 2,000 lines."""
    functions = [
        f"def {name}_{number}(order, amount):\n    return order.total + amount * {number}\n" for number in range(667)
    ]
    return "\n".join(functions)


def git(folder: str, *arguments: str) -> None:
    who = ["-c", "user.name=b", "-c", "user.email=b@localhost", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", "-C", folder, *who, *arguments], check=True, capture_output=True)


def repository(folder: str, commits: int, files: int) -> None:
    os.makedirs(folder)
    if commits:
        made(folder, commits, files)
        git(folder, "checkout", "-q", "-f", "main")
    else:
        git(folder, "init", "-q")
    for word in WORDS:
        with open(os.path.join(folder, f"{word}.py"), "w", encoding="utf-8") as file:
            file.write(source(word))
    git(folder, "add", *(f"{word}.py" for word in WORDS))
    git(folder, "commit", "-qm", "sources")


def filled(memory: Memory, folder: str) -> mnemarch.Seat:
    seat = memory.seat(Actor.human("b"), Scope(project="bench"), root=folder)
    for word in WORDS:
        evidence = (Citation.human("b"),)
        cited = (*evidence, Citation.symbol(f"{word}.py", f"{word}_5"))
        texts = (f"bound knowledge of {word} adds what it is given", f"loose knowledge of {word} adds what it is given")
        for text, citations in zip(texts, (cited, evidence), strict=True):
            outcome = seat.remember_many([Claim(content=text, level="project", citations=citations)])
            assert outcome[0].unit
    return seat


def spent(seat: mnemarch.Seat, query: str, rounds: int) -> float:
    """The median milliseconds of a warm recall of eight items."""
    times = []
    for number in range(rounds + 3):
        started = time.perf_counter()
        found = seat.recall(query, k=FILES)
        if number >= 3:
            times.append((time.perf_counter() - started) * 1e3)
        assert len(found.items) == FILES, found.withheld
    return statistics.median(times)


def measured(commits: int, files: int, rounds: int) -> dict[str, float]:
    results: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, shape in (("small", (0, 0)), ("large", (commits, files))):
            home = os.path.join(folder, name)
            repository(home, *shape)
            with mnemarch.open(home) as memory:
                seat = filled(memory, home)
                loose = spent(seat, "loose knowledge", rounds)
                bound = spent(seat, "bound knowledge", rounds)
            with mnemarch.open(home) as memory:
                seat = memory.seat(Actor.human("b"), Scope(project="bench"), root=home)
                seat.recall("loose knowledge", k=FILES)
                started = time.perf_counter()
                seat.recall("bound knowledge", k=FILES)
                first = (time.perf_counter() - started) * 1e3
            results |= {
                f"{name}: recall without code, ms": loose,
                f"{name}: recall of 8 that cite 8 files, ms": bound,
                f"{name}: what the gate adds, ms": bound - loose,
                f"{name}: the first time, files unread, ms": first,
            }
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=50_000)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    results = measured(options.commits, options.files, options.rounds)
    broken = False
    for name, number in results.items():
        verdict = ""
        if name.endswith("the gate adds, ms"):
            broken |= number > LIMIT_MS
            verdict = f"  limit {LIMIT_MS}: {'broken' if number > LIMIT_MS else 'holds'}"
        print(f"{name:<46}{number:>8.2f}{verdict}")
    os.makedirs(os.path.join(HERE, "out"), exist_ok=True)
    with open(os.path.join(HERE, "out", "gate.json"), "w", encoding="utf-8") as file:
        json.dump(results, file, indent=2)
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())

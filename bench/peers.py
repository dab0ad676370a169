"""How fast a warm recall is, beside other memories and stores on the same texts in the same run.

    python -m bench.peers [--units 100000] [--peers [mem0,chroma]] [--peer-units 10000] [--keep FOLDER]

A recall is timed as a whole: the search, the reading of ten units, and the record of what was handed out. The peers are
installed on request into an environment of their own in /tmp, never beside Mnemarch. Writes bench/out/peers.json; exits
1 if a limit is broken.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from itertools import accumulate
from statistics import quantiles
from typing import Any

import mnemarch
from bench.retrieval import tables
from bench.retrieval.loading import copied, made
from bench.retrieval.progress import Progress
from bench.retrieval.statements import Statement, statements
from mnemarch import Actor, Claim, Scope

_HERE = os.path.dirname(os.path.abspath(__file__))
_OUT = os.path.join(_HERE, "out")
# Not below bench/, which the checks read.
_VENV = os.path.join(tempfile.gettempdir(), f"mnemarch-peers-{os.getuid()}")
_PACKAGES = {"mem0": "mem0ai", "chroma": "chromadb"}
_WHOLE, _PART = "99-percent", "1-percent"
_ITEMS = 10
_WARM, _ASKED = 20, 200
# In ms: at 100,000 units, and up to eight times that above. Two runs of the same differ by some tenth.
_P50_MAX, _P95_MAX, _GROWTH_MAX, _NOISE = 5.0, 20.0, 8.0, 1.1

Notes = Mapping[str, Sequence[Statement]]
Row = dict[str, Any]


def main() -> int:
    options = _options()
    rows: list[Row] = []
    try:
        with tempfile.TemporaryDirectory(prefix="mnemarch-bench-") as scratch:
            sizes = dict.fromkeys([options.units, *([options.peer_units] if options.peers else [])])
            for units in sizes:
                rows += _mnemarch(_notes(units), units, options.keep or scratch)
            for name in options.peers:
                rows += _peer(name, _notes(options.peer_units), options.peer_units)
    except KeyboardInterrupt:
        _shown(rows, options.units)
        return 130
    broken = _shown(rows, options.units)
    os.makedirs(_OUT, exist_ok=True)
    with open(os.path.join(_OUT, "peers.json"), "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=2)
    return int(broken)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m bench.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--units", type=int, default=100_000, help="how many Mnemarch holds, up to 1,000,000")
    every = ",".join(_PACKAGES)
    parser.add_argument("--peers", nargs="?", const=every, default="", help=f"install and ask these too: {every}")
    parser.add_argument("--peer-units", type=int, default=10_000, help="how many each peer holds; they load slowly")
    parser.add_argument("--keep", metavar="FOLDER", help="keep Mnemarch's loaded memory there, and use one that is")
    options = parser.parse_args()
    options.peers = [name for name in options.peers.split(",") if name]
    unknown = [name for name in options.peers if name not in _PACKAGES]
    if unknown or not 1_000 <= min(options.units, options.peer_units) <= options.units <= 1_000_000:
        parser.error(f"no such peer: {', '.join(unknown)}" if unknown else "1,000 to 1,000,000 units")
    return options


def _notes(units: int) -> Notes:
    """Every hundredth note is of a small project of its own."""
    every = statements(units)
    return {_WHOLE: [note for place, note in enumerate(every) if place % 100 != 50], _PART: every[50::100]}


def _questions(notes: Sequence[Statement]) -> list[tuple[str, str]]:
    """Questions about some of the notes, each with the text that answers it."""
    return [(note.question, note.text) for note in random.Random(20_251).choices(notes, k=_WARM + _ASKED)]


def _mnemarch(notes: Notes, units: int, keep: str) -> list[Row]:
    home = os.path.join(keep, f"peers-{units}")
    started = time.perf_counter()
    made(home, lambda folder: _load(notes, units, folder))
    loaded_s = time.perf_counter() - started
    rows = []
    with copied(home) as folder, mnemarch.open(folder) as memory:
        for scope, held in notes.items():
            seat = memory.seat(Actor.agent("reader"), Scope(project=scope, task="bench"), session="asking")
            ms, found = [], 0
            for question, text in _questions(held):
                started = time.perf_counter()
                items = seat.recall(question, k=_ITEMS).items
                ms.append((time.perf_counter() - started) * 1000)
                found += any(item.unit.content == text for item in items)
            rows.append(_row("mnemarch", units, scope, ms[_WARM:], found / len(ms), loaded_s))
    return rows


def _load(notes: Notes, units: int, folder: str) -> None:
    """The small scope in the middle, between two halves of the rest."""
    whole, part = notes[_WHOLE], notes[_PART]
    half = len(whole) // 2
    pieces = ((_WHOLE, whole[:half]), (_PART, part), (_WHOLE, whole[half:]))
    before = accumulate((len(held) for _, held in pieces), initial=0)
    with Progress(f"mnemarch: loading {units:,}", units) as progress, mnemarch.open(folder) as memory:
        for done, (scope, held) in zip(before, pieces, strict=False):
            seat = memory.seat(Actor.agent("writer"), Scope(project=scope, task="bench"))
            seat.remember_many([Claim(content=note.text) for note in held], progress=progress.after(done))


def _peer(name: str, notes: Notes, units: int) -> list[Row]:
    """Ask one peer in its own process; what goes wrong there is said, and the run goes on."""
    given = {
        "texts": [note.text for held in notes.values() for note in held],
        "scopes": [scope for scope, held in notes.items() for _ in held],
        "questions": {scope: _questions(held) for scope, held in notes.items()},
    }
    with tempfile.TemporaryDirectory(prefix="mnemarch-bench-") as folder, Progress(f"{name}: {units:,}", units):
        path = os.path.join(folder, "given.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(given, file)
        script = os.path.join(_HERE, "retrieval", "peer.py")
        try:
            python = _installed(_PACKAGES[name])
            done = subprocess.run([python, script, name, path, folder], check=True, stdout=subprocess.PIPE, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{name} did not run, so the table lacks it: {error}", file=sys.stderr)
            return []
    answer = json.loads(done.stdout)
    return [
        _row(name, units, scope, found["ms"], found["found"], answer["loaded_s"])
        for scope, found in answer["scopes"].items()
    ]


def _installed(package: str) -> str:
    """The Python of the peers' own environment, with the package in it."""
    python = os.path.join(_VENV, "bin", "python")
    if not os.path.exists(python):
        venv.create(_VENV, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", package], check=True)
    return python


def _row(name: str, units: int, scope: str, ms: Sequence[float], found: float, loaded_s: float) -> Row:
    cuts = quantiles(ms, n=20, method="inclusive")
    return {
        "name": name,
        "units": units,
        "scope": scope,
        "p50_ms": cuts[9],
        "p95_ms": cuts[18],
        "found": found,
        "loaded_s": loaded_s,
    }


def _shown(rows: Sequence[Row], units: int) -> bool:
    """Print the table; gives whether a limit is broken."""
    from rich.table import Table

    growth = _GROWTH_MAX if units > 100_000 else 1.0
    whole = next((row for row in rows if row["scope"] == _WHOLE), None)
    table = Table("", "units", "scope", "p50 ms", "p95 ms", "limit ms", "", "answer in 10", "loaded in s")
    broken = False
    for row in rows:
        limits = ("", "")
        if row["name"] == "mnemarch" and row["units"] == units and whole is not None:
            p50_max, p95_max = _P50_MAX * growth, _P95_MAX * growth
            if row["scope"] == _PART:
                p50_max, p95_max = whole["p50_ms"] * _NOISE, whole["p95_ms"] * _NOISE
            holds = row["p50_ms"] <= p50_max and row["p95_ms"] <= p95_max
            broken |= not holds
            limits = (f"{p50_max:.1f} / {p95_max:.1f}", "[green]holds[/]" if holds else "[red]broken[/]")
        speed = (f"{row['p50_ms']:.2f}", f"{row['p95_ms']:.2f}")
        rest = (f"{row['found']:.2f}", f"{row['loaded_s']:,.0f}")
        table.add_row(row["name"], f"{row['units']:,}", row["scope"], *speed, *limits, *rest)
    screen = tables.console()
    screen.print(table)
    screen.print(
        f"{_ASKED} questions each after {_WARM} to warm up, {_ITEMS} items. The peers search vectors of a plain hash, "
        "made in the timed call: compare their time, not what they find.",
        highlight=False,
    )
    return broken


if __name__ == "__main__":
    sys.exit(main())

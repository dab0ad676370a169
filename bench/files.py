"""A memory in files: appends against bare appends of a file, and how fast what a pull brought is read.

`python -m bench.files [seconds] [events]`
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import mnemarch
from mnemarch import Actor, Claim, Scope, user
from mnemarch.config import Config, StoreRules

SCOPE = Scope(org="acme", project="shop", task="T-1")
TEXT = "x" * 300


def per_second(seconds: float, work) -> float:
    count, ends_at = 0, time.monotonic() + seconds
    while time.monotonic() < ends_at:
        work()
        count += 1
    return count / seconds


def appends(folder: Path, seconds: float) -> None:
    for durability in ("process", "power"):
        path = folder / f"bare-{durability}"
        with open(path, "ab", buffering=0) as file:

            def bare(file=file, durability=durability) -> None:
                file.write(TEXT.encode() + b"\n")
                if durability == "power":
                    os.fsync(file.fileno())

            floor = per_second(seconds, bare)
        rates = {}
        for name, target in (("files", f"file://{folder}/f-{durability}"), ("SQLite", folder / f"s-{durability}")):
            settings = Config(store=StoreRules(durability=durability))
            with mnemarch.open(target, config=settings) as memory:
                seat = memory.seat(Actor.agent("bench"), SCOPE)
                rates[name] = per_second(seconds, lambda seat=seat: seat.log("note", TEXT))
        print(
            f"durability {durability}: files {rates['files']:,.0f} appends/s,"
            f" {rates['files'] / rates['SQLite']:.0%} of SQLite, {rates['files'] / floor:.1%} of bare appends"
        )


def catching_up(folder: Path, events: int) -> None:
    """What one writer did is read by another clone, at once or after it had worked itself."""
    with mnemarch.open(f"file://{folder}/a") as memory:
        seat = memory.seat(Actor.agent("bench"), SCOPE)
        claims = [Claim(content=f"Module {n} of the shop retries {n} times before it gives up") for n in range(events)]
        seat.remember_many(claims)
        total = memory.stats().events
        began = time.monotonic()
        memory.rebuild()
        folding = total / (time.monotonic() - began)
    shutil.copytree(folder / "a", folder / "b", ignore=shutil.ignore_patterns(".local"))
    user.accept(str(folder / "b"), b"file:")
    began = time.monotonic()
    with mnemarch.open(f"file://{folder}/b") as memory:
        read = total / (time.monotonic() - began)
        print(f"a new clone reads {total:,} events: {read:,.0f} events/s, {read / folding:.0%} of a rebuild")
        began = time.monotonic()
        for _ in range(200):
            memory._engine.store.read(lambda _: None)
        look = (time.monotonic() - began) / 200
        print(f"a look whether anything changed: {look * 1e6:,.0f} µs")


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3.0
    events = int(sys.argv[2]) if len(sys.argv) > 2 else 2_000
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_CONFIG_HOME"] = name
        appends(Path(name), seconds)
        catching_up(Path(name), events)


if __name__ == "__main__":
    main()

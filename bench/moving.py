"""Moving: a copy against a bare loop that inserts the same rows, and an import against `remember_many`.

`python -m bench.moving [events]`
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import mnemarch
from mnemarch import Actor, Claim, Scope

SCOPE = Scope(org="acme", project="shop", task="T-1")
_PAGE = 1_000
_BARE = "CREATE TABLE bare (position INTEGER PRIMARY KEY, id TEXT UNIQUE, scope TEXT, body TEXT, salt BLOB, hash BLOB)"


def timed(work) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def filled(folder: Path, events: int) -> mnemarch.Memory:
    """A memory with one claim to four entries of the log."""
    memory = mnemarch.open(folder)
    seat = memory.seat(Actor.agent("bench"), SCOPE)
    texts = [f"Service {number} of the shop listens on port {20_000 + number}" for number in range(events // 5)]
    seat.remember_many([Claim(content=text) for text in texts])
    entries = [("tool", f"Step {number}: ran the tests of service {number % 97}") for number in range(events // 5 * 4)]
    for start in range(0, len(entries), _PAGE):
        seat.log_many(entries[start : start + _PAGE])
    return memory


def bare_inserts(memory: mnemarch.Memory, path: Path) -> None:
    """The same events, read and inserted page by page, with a commit that reaches the disk after each."""
    with closing(sqlite3.connect(path, isolation_level=None)) as target:
        target.execute("PRAGMA journal_mode = WAL")
        target.execute("PRAGMA synchronous = FULL")
        target.execute(_BARE)
        after = 0
        while page := memory._engine.store.read(lambda reader: list(reader.events(after=after, limit=_PAGE))):  # noqa: B023
            target.execute("BEGIN IMMEDIATE")
            for event in page:
                row = (event.position, event.id, event.scope.key, event.body, event.salt, event.hash)
                target.execute("INSERT INTO bare VALUES (?, ?, ?, ?, ?, ?)", row)
            target.execute("COMMIT")
            after = page[-1].position


def main() -> None:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with filled(folder / "source", events) as source:
            count = source.stats().events
            floor = timed(lambda: bare_inserts(source, folder / "bare.db"))
            copy = timed(lambda: mnemarch.copy(source, folder / "target"))
            again = timed(lambda: mnemarch.copy(source, folder / "target"))
        print(f"bare inserts   {count / floor:>9,.0f} events/s")
        print(f"copy           {count / copy:>9,.0f} events/s  {floor / copy:.2f} of the bare loop, verified by digest")
        print(f"copy again     {again:>9.2f} s to find that nothing is missing, and to compare the two")
        imports(folder, events // 10)


def imports(folder: Path, notes: int) -> None:
    path = folder / "memories.json"
    said = [f"Queue {number} of the bank is drained every {number % 50} minutes" for number in range(notes)]
    path.write_text(json.dumps([{"id": str(number), "memory": text} for number, text in enumerate(said)]))
    with mnemarch.open(folder / "a") as memory, mnemarch.open(folder / "b") as other:
        floor = timed(
            lambda: memory.seat(Actor.agent("a"), SCOPE).remember_many([Claim(content=text) for text in said])
        )
        person = other.seat(Actor.human("ada"), SCOPE)
        taken = timed(lambda: person.import_claims(path))
        again = timed(lambda: person.import_claims(path))
    print(f"remember_many  {notes / floor:>9,.0f} claims/s")
    print(f"import         {notes / taken:>9,.0f} claims/s  {floor / taken:.2f} of remember_many; again {again:.2f} s")


if __name__ == "__main__":
    main()

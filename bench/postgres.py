"""The PostgreSQL store: durable appends of many threads against bare inserts, and recall against the embedded store.

`python -m bench.postgres [seconds] [units]`; `MNEMARCH_TEST_POSTGRES_URL` names a server, else one is started.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import psycopg

import mnemarch
from fixtures import postgres
from mnemarch import Actor, Claim, Scope

THREADS = 32
SCOPE = Scope(org="acme", project="shop", task="T-1")
_BARE = "CREATE TABLE bare (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text NOT NULL)"


def in_threads(seconds: float, make) -> tuple[float, float]:
    """How often a second some work is done by all threads together, and the 99th percentile of its time in ms."""
    ends_at = time.monotonic() + seconds
    times: list[float] = []

    def run() -> None:
        work, close = make()
        while (began := time.monotonic()) < ends_at:
            work()
            times.append(time.monotonic() - began)
        close()

    threads = [threading.Thread(target=run) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(times) / seconds, statistics.quantiles(times, n=100)[98] * 1000


def appends(url: str, seconds: float) -> None:
    text = "x" * 300
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_BARE)

    def bare():
        connection = psycopg.connect(url, autocommit=True)
        return lambda: connection.execute("INSERT INTO bare (body) VALUES (%s)", [text]), connection.close

    with mnemarch.open(url) as memory:
        seat = memory.seat(Actor.agent("bench"), SCOPE)
        seat.log("note", "first")
        ours, p99_ms = in_threads(seconds, lambda: (lambda: seat.log("note", text), lambda: None))
    inserts, bare_p99_ms = in_threads(seconds, bare)
    print(f"{THREADS} threads, one project: {ours:,.0f} durable events/s, p99 {p99_ms:.1f} ms")
    print(f"bare inserts, a connection each: {inserts:,.0f}/s, p99 {bare_p99_ms:.1f} ms; ours {ours / inserts:.0%}")


def recalls(url: str, units: int) -> None:
    medians, answers = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for name, target in (("embedded", folder), ("PostgreSQL", url)):
            with mnemarch.open(target) as memory:
                seat = memory.seat(Actor.agent("bench"), SCOPE)
                seat.remember_many([Claim(content=f"service{n % 97} listens on port {n}") for n in range(units)])
                questions = [f"which port has service{n}?" for n in range(40)]
                seat.recall(questions[0])
                times = []
                for question in questions:
                    began = time.perf_counter()
                    found = seat.recall(question, k=5)
                    times.append(time.perf_counter() - began)
                    answers.setdefault(question, []).append([item.unit.content for item in found.items])
                medians[name] = statistics.median(times) * 1000
    same = sum(one == other for one, other in answers.values())
    print(f"recall at {units:,} units: " + ", ".join(f"{name} {ms:.1f} ms" for name, ms in medians.items()))
    print(f"{medians['PostgreSQL'] / medians['embedded']:.1f} times; the same items for {same} of {len(answers)}")


def main() -> None:
    seconds, units = float(sys.argv[1] if len(sys.argv) > 1 else 5), int(sys.argv[2] if len(sys.argv) > 2 else 10_000)
    with tempfile.TemporaryDirectory() as own:
        os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_STATE_HOME"] = os.environ["XDG_CACHE_HOME"] = own
        server = postgres.server_url()
        os.chdir(own)
        appends(postgres.new_schema(server, durable=True), seconds)
        recalls(postgres.new_schema(server), units)


if __name__ == "__main__":
    main()

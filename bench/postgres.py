"""The PostgreSQL store: durable appends of threads and processes against bare inserts, recall against SQLite.

`python -m bench.postgres [seconds] [units]`; `MNEMARCH_TEST_POSTGRES_URL` names a server, else one is started. Exits 1
if a limit is broken. The time of a recall has a limit from 100,000 units on: below, round trips are most of it.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from functools import partial
from operator import eq
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import psycopg

import mnemarch
from bench.spine import different
from fixtures import postgres
from mnemarch import Actor, Claim, Scope

THREADS = 32
ROUNDS = 3
QUESTIONS = 100
UNITS_LIMITED = 100_000
SCOPE = Scope(org="acme", project="shop", task="T-1")
_BARE = "CREATE TABLE bare (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text NOT NULL)"


class Limits:
    """The limits that were broken."""

    def __init__(self) -> None:
        self.broken: list[str] = []

    def check(self, what: str, holds: bool) -> None:
        print(f"  {what}: {'holds' if holds else 'BROKEN'}")
        if not holds:
            self.broken.append(what)


def processor_s(url: str) -> float:
    """The processor time so far of this process, and of the server if it is on this machine."""
    stats = {}
    with psycopg.connect(url) as connection:
        (backend,) = connection.execute("SELECT pg_backend_pid()").fetchone()
        for path in Path("/proc").glob("[0-9]*/stat"):
            with suppress(FileNotFoundError, ProcessLookupError):  # It has ended.
                stats[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
    parent = int(stats[backend][1]) if backend in stats else 0
    ticks = [int(tick) for fields in stats.values() if int(fields[1]) == parent != 0 for tick in fields[11:13]]
    ticks += [int(tick) for tick in stats[parent][13:15]] if parent else []  # Of connections that were closed.
    return time.process_time() + sum(ticks) / os.sysconf("SC_CLK_TCK")


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


def appends(url: str, seconds: float, limits: Limits) -> None:
    text = "x" * 300
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_BARE)

    def bare():
        connection = psycopg.connect(url, autocommit=True)
        return lambda: connection.execute("INSERT INTO bare (body) VALUES (%s)", [text]), connection.close

    with mnemarch.open(url) as memory:
        seat = memory.seat(Actor.agent("bench"), SCOPE)
        seat.log("note", "first")
        rounds, spent = [], []
        for _ in range(ROUNDS):  # By turns, so that a busy machine is busy for both.
            begun_s = processor_s(url)
            ours = in_threads(seconds, lambda: (lambda: seat.log("note", text), lambda: None))
            half_s = processor_s(url)
            rounds.append((*ours, *in_threads(seconds, bare)))
            spent.append((half_s - begun_s, processor_s(url) - half_s))
    ratio, p99_ms = print_rounds(f"{THREADS} threads, one project", rounds)
    limits.check("at least 80 %", ratio >= 0.8)
    limits.check("p99 at most 20 ms", p99_ms <= 20)
    for name, rate_at, at in (("ours", 0, 0), ("bare", 2, 1)):
        each = [s[at] / (r[rate_at] * seconds) for s, r in zip(spent, rounds, strict=True)]
        print(f"processor time of an event, client and server together: {name} {statistics.median(each) * 1e6:,.0f} µs")


def print_rounds(what: str, rounds: list[tuple[float, float, float, float]]) -> tuple[float, float]:
    ratios = sorted(ours / bare for ours, _, bare, _ in rounds)
    ours, p99_ms, bare, bare_p99_ms = (statistics.median(each) for each in zip(*rounds, strict=True))
    print(f"{what}: {ours:,.0f} durable events/s, p99 {p99_ms:.1f} ms")
    print(f"bare inserts, a connection each: {bare:,.0f}/s, p99 {bare_p99_ms:.1f} ms")
    print(f"ours {statistics.median(ratios):.0%} of that ({', '.join(f'{ratio:.0%}' for ratio in ratios)})")
    return statistics.median(ratios), p99_ms


def in_processes(url: str, seconds: float, kind: str) -> tuple[float, float]:
    """The same of processes, each with one thread: they begin together, once all are ready."""
    command = [sys.executable, "-m", "bench.postgres", "worker", kind, url, str(seconds)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": Path(__file__).parents[1]}
    workers = [subprocess.Popen(command, **pipes) for _ in range(THREADS)]
    for worker in workers:
        worker.stdout.readline()
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    times = [float(line) for worker in workers for line in worker.communicate()[0].split()]
    return len(times) / seconds, statistics.quantiles(times, n=100)[98] * 1000


def work(kind: str, url: str, seconds: float) -> None:
    """One of those processes."""
    text, times = "x" * 300, []
    if kind == "bare":
        connection = psycopg.connect(url, autocommit=True)
        act = partial(connection.execute, "INSERT INTO bare (body) VALUES (%s)", [text])
    else:
        seat = mnemarch.open(url).seat(Actor.agent("bench"), SCOPE)
        act = partial(seat.log, "note", text)
    act()
    print("ready", flush=True)
    sys.stdin.readline()
    ends_at = time.monotonic() + seconds
    while (began := time.monotonic()) < ends_at:
        act()
        times.append(time.monotonic() - began)
    print("\n".join(map(str, times)))


def appends_of_processes(url: str, seconds: float, limits: Limits) -> None:
    rounds = [(*in_processes(url, seconds, "ours"), *in_processes(url, seconds, "bare")) for _ in range(ROUNDS)]
    ratio, _ = print_rounds(f"{THREADS} processes, one project", rounds)
    limits.check("at least 45 %", ratio >= 0.45)


def recalls(url: str, units: int, limits: Limits) -> None:
    """The same memory in both: what was claimed at another time is ranked otherwise."""
    random, texts = Random(3), different(units)
    questions = [" ".join(random.sample(random.choice(texts).split(), 4)) for _ in range(QUESTIONS)]
    medians, answers = {}, []
    with tempfile.TemporaryDirectory() as folder:
        with mnemarch.open(folder) as memory:
            memory.seat(Actor.agent("bench"), SCOPE).remember_many([Claim(content=text) for text in texts])
            began = time.perf_counter()
            mnemarch.copy(memory, url)
            print(f"copied {units:,} units in {time.perf_counter() - began:.1f} s")
        for name, target in (("embedded", folder), ("PostgreSQL", url)):
            with mnemarch.open(target) as memory:
                seat = memory.seat(Actor.agent("reader"), SCOPE)
                began = time.perf_counter()
                while seat.recall(questions[0]).notes:  # It makes its own index of what the server holds.
                    time.sleep(0.1)
                print(f"{name} answers from its own index after {time.perf_counter() - began:.1f} s")
                seat._engine.finder.wait()
                times, found = [], []
                for question in questions:
                    began = time.perf_counter()
                    found.append([item.unit.id for item in seat.recall(question).items])
                    times.append(time.perf_counter() - began)
                medians[name] = statistics.median(times) * 1000
                answers.append(found)
    same = sum(map(eq, *answers))
    print(f"recall at {units:,} units: " + ", ".join(f"{name} {ms:.1f} ms" for name, ms in medians.items()))
    ratio = medians["PostgreSQL"] / medians["embedded"]
    print(f"{ratio:.1f} times; the same items for {same} of {len(questions)}")
    limits.check("the same items for all", same == len(questions))
    if units >= UNITS_LIMITED:
        limits.check("at most 1.5 times", ratio <= 1.5)


def catching_up(url: str, units: int, limits: Limits) -> None:
    """Another machine makes its index of what the server holds."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        with mnemarch.open(url) as memory:
            finder = memory.seat(Actor.agent("reader"), SCOPE)._engine.finder
            finder.catch_up()
            finder.catch_up()  # Who asks again wants an index.
            began, begun_s = time.process_time(), processor_s(url)
            finder.wait()
            ours, all_s = time.process_time() - began, processor_s(url) - begun_s
    print(f"catching up: {units / ours:,.0f} units/s of processor time, {units / all_s:,.0f} with the server's")
    limits.check("at least 8,000", units / ours >= 8_000)


def main() -> int:
    if sys.argv[1:2] == ["worker"]:
        work(sys.argv[2], sys.argv[3], float(sys.argv[4]))
        return 0
    limits = Limits()
    seconds, units = float(sys.argv[1] if len(sys.argv) > 1 else 5), int(sys.argv[2] if len(sys.argv) > 2 else 10_000)
    with tempfile.TemporaryDirectory() as own:
        os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_STATE_HOME"] = os.environ["XDG_CACHE_HOME"] = own
        server = postgres.server_url()
        os.chdir(own)
        durable = postgres.new_schema(server, durable=True)
        appends(durable, seconds, limits)
        appends_of_processes(durable, seconds, limits)
        memory = postgres.new_schema(server)
        recalls(memory, units, limits)
        catching_up(memory, units, limits)
    return 1 if limits.broken else 0


if __name__ == "__main__":
    sys.exit(main())

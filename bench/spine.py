"""The spine's promises: what a durable log costs over a bare commit, a cold start over a bare Python, and memory.

    python -m bench.spine [--units 100000] [--rounds 15]

Prints one table and writes bench/out/spine.json. Exits 1 if a promise is broken.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from random import Random

import mnemarch
from mnemarch import Actor, Claim, Scope
from mnemarch.stores.sqlite import SqliteStore

HERE = os.path.dirname(__file__)
TEXT = "The connection pool is exhausted before the retry, so the third attempt never reaches the database. " * 5
SUBJECTS = ("checkout", "login", "search", "billing", "stock", "shipping", "reports", "sessions", "uploads", "audit")
VERBS = ("retries", "caches", "logs", "validates", "batches", "signs", "rounds", "queues", "compresses", "throttles")
OBJECTS = ("orders", "tokens", "invoices", "images", "rows", "events", "payloads", "sessions", "webhooks", "reports")


def texts(count: int) -> list[str]:
    """Different plausible one-line facts, the same on every run."""
    return [
        f"{SUBJECTS[i % 10]} {VERBS[i // 10 % 10]} {OBJECTS[i // 100 % 10]} of module_{i // 1000} in step {i} at night"
        for i in range(count)
    ]


def bare_commits(folder: str, count: int) -> float:
    """Seconds for one commit of one text in a two-column table, with our settings, by stdlib sqlite3 alone."""
    connection = bare_connection(os.path.join(folder, "bare.db"))
    connection.execute("CREATE TABLE IF NOT EXISTS log (id INTEGER PRIMARY KEY, body TEXT)")
    spent = committed(connection, "INSERT INTO log (body) VALUES (?)", [(TEXT,)] * count)
    connection.close()
    return spent


def bare_event_commits(folder: str, count: int) -> float:
    """Seconds for one commit of one whole event row in the events table of our schema: what any such log must pay."""
    path = os.path.join(folder, "events.db")
    SqliteStore(path).close()
    connection = bare_connection(path)
    connection.execute("INSERT INTO streams (id, org, project, seq, hash) VALUES (1, 'default', 'bench', 0, x'')")
    names = ("logged", "agent:bench", '["default","bench",null,"log"]', "0" * 32, None, None, None)
    digests = (os.urandom(16), os.urandom(32), os.urandom(32))
    rows = [
        (1, number, f"{number:08d}-0000-7000-8000-000000000000", *names, number, number, TEXT, *digests)
        for number in range(count)
    ]
    columns = "stream, seq, id, type, actor, scope, scope_key, session, subject, key, occurred_at, recorded_at, body"
    statement = f"INSERT INTO events ({columns}, salt, payload_hash, hash) VALUES ({', '.join('?' * 16)})"
    spent = committed(connection, statement, rows)
    connection.close()
    return spent


def bare_connection(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "secure_delete = ON", "wal_autocheckpoint = 4000"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def committed(connection: sqlite3.Connection, statement: str, rows: list[tuple[object, ...]]) -> float:
    started = time.perf_counter()
    for row in rows:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(statement, row)
        connection.execute("COMMIT")
    return (time.perf_counter() - started) / len(rows)


def durable_logs(folder: str, count: int) -> float:
    with mnemarch.open(folder) as memory:
        seat = memory.seat(Actor.agent("bench"), Scope(project="bench", task="log"))
        seat.log("thought", "warm")
        started = time.perf_counter()
        for _ in range(count):
            seat.log("thought", TEXT)
        return (time.perf_counter() - started) / count


def bare_searchable_rows(folder: str, contents: list[str]) -> float:
    """Seconds for one commit of a text and its full-text entry, by stdlib sqlite3 alone."""
    connection = bare_connection(os.path.join(folder, "rows.db"))
    connection.execute("CREATE TABLE facts (id INTEGER PRIMARY KEY, body TEXT)")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5 (body)")
    started = time.perf_counter()
    for content in contents:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO facts (body) VALUES (?)", (content,))
        connection.execute("INSERT INTO words (body) VALUES (?)", (content,))
        connection.execute("COMMIT")
    spent = (time.perf_counter() - started) / len(contents)
    connection.close()
    return spent


def remembered(folder: str, contents: list[str]) -> float:
    """Seconds to remember one fact, one at a time."""
    with mnemarch.open(folder) as memory:
        seat = memory.seat(Actor.agent("bench"), Scope(project="bench", task="remember"))
        seat.remember("warm")
        started = time.perf_counter()
        for content in contents:
            seat.remember(content)
        return (time.perf_counter() - started) / len(contents)


def different(count: int) -> list[str]:
    """Facts of ten words that share no form."""
    random = Random(7)
    words = sorted({word for text in (SUBJECTS, VERBS, OBJECTS, tuple(TEXT.split())) for word in text})
    return [f"{' '.join(random.choices(words, k=9))} {number}" for number in range(count)]


def of_one_form(count: int) -> list[str]:
    return [f"module {i % 97} of service {i // 97} retries {i} times before it gives up" for i in range(count)]


def program(folder: str) -> list[str]:
    """The program as users and hosts start it: the script that installers of today make."""
    path = os.path.join(folder, "mnemarch")
    with open(path, "w", encoding="utf-8") as file:
        file.write("import sys\nfrom mnemarch.__main__ import main\nsys.exit(main())\n")
    return [sys.executable, "-P", path]  # Without -P the folder of the script would be looked through.


def cold(*command: str, folder: str | None = None) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL, cwd=folder)
    return time.perf_counter() - started


def in_child(code: str) -> dict[str, float]:
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # Users have bytecode, and compiled patterns beside it.
    compileall.compile_dir(os.path.dirname(mnemarch.__file__), quiet=2)
    with tempfile.TemporaryDirectory() as folder:
        results = measured(folder, options.units, options.rounds)
    os.makedirs(os.path.join(HERE, "out"), exist_ok=True)
    with open(os.path.join(HERE, "out", "spine.json"), "w", encoding="utf-8") as file:
        json.dump(results, file, indent=2)
    return shown(results)


def measured(folder: str, units: int, rounds: int) -> dict[str, dict[str, float]]:
    results: dict[str, dict[str, float]] = {}

    plain, floors, logs = [], [], []
    for round in range(rounds):
        here = os.path.join(folder, f"log-{round}")
        os.makedirs(here)
        plain.append(bare_commits(here, 400))
        floors.append(bare_event_commits(here, 400))
        logs.append(durable_logs(here, 400))
    results["durable log / bare commit of its row"] = ratio(logs, floors, limit=3.0)
    results["durable log / bare commit of its text alone"] = ratio(logs, plain)

    rows, facts, forms = [], [], []
    for round in range(max(3, rounds // 3)):
        here = os.path.join(folder, f"facts-{round}")
        os.makedirs(here)
        rows.append(bare_searchable_rows(here, different(1_000)))
        facts.append(remembered(os.path.join(here, "different"), different(1_000)))
        forms.append(remembered(os.path.join(here, "forms"), of_one_form(1_000)))
    results["remember / bare row with its FTS5 row"] = ratio(facts, rows, limit=6.0)
    results["remember of one form / of different ones"] = ratio(forms, facts, limit=1.5)

    results |= cold_commands(folder, rounds)
    results |= log_beside_readers(folder)

    home = os.path.join(folder, "home")
    with mnemarch.open(home) as memory:
        seat = memory.seat(Actor.agent("bench"), Scope(project="bench", task="load"))
        started = time.perf_counter()
        seat.remember_many(
            [Claim(content=text) for text in texts(units)],
            progress=lambda done: print(f"\rloading {done:,} of {units:,} units", end="", file=sys.stderr),
        )
        loaded_s = time.perf_counter() - started
        print(file=sys.stderr)
    results["remember_many, units a second"] = {"value": units / loaded_s}

    seat_code = (
        "import mnemarch\nfrom mnemarch import Actor, Scope\n"
        f"memory = mnemarch.open({home!r})\n"
        "seat = memory.seat(Actor.agent('bench'), Scope(project='bench', task='load'))\n"
    )
    cases = {
        "bare": "pass",
        "log": seat_code + "seat.log('thought', 'cold')",
        "recall": seat_code + "assert seat.recall('which step throttles webhooks of module_7', k=8).items",
    }
    spent: dict[str, list[float]] = {name: [] for name in cases}
    for code in cases.values():
        cold("-c", code)
    for _ in range(rounds):
        for name, code in cases.items():
            spent[name].append(cold("-c", code))
    results["cold import + log / bare python"] = ratio(spent["log"], spent["bare"], limit=4.0)
    results["cold import + recall / bare python"] = ratio(spent["recall"], spent["bare"], limit=4.0)

    memory_code = seat_code + (
        "import json, time\n"
        "for word in ('webhooks', 'tokens', 'module_7', 'images'):\n"
        "    seat.recall(f'what throttles {word}')\n"
        "spent = []\n"
        "for number in range(100):\n"
        "    started = time.perf_counter(); seat.recall(f'module_{number} throttles'); "
        "spent.append(time.perf_counter() - started)\n"
        # Not ru_maxrss: a child inherits its parent's.
        "status = dict(line.split(':', 1) for line in open('/proc/self/status'))\n"
        "mb = int(status['VmHWM'].split()[0]) / 1024\n"
        "print(json.dumps({'mb': mb, 'p50_ms': sorted(spent)[50] * 1000, 'p95_ms': sorted(spent)[95] * 1000}))"
    )
    warm = in_child(memory_code)
    results["MB of a process that searched"] = {"value": warm["mb"], "limit": 150.0}
    results["warm recall p50, ms"] = {"value": warm["p50_ms"], "limit": 5.0 if units <= 100_000 else 40.0}
    results["warm recall p95, ms"] = {"value": warm["p95_ms"]}
    return results


def cold_commands(folder: str, rounds: int) -> dict[str, dict[str, float]]:
    """The command line at 20,000 units against an interpreter that does nothing."""
    home = os.path.join(folder, "commands")
    with mnemarch.open(home) as memory:
        # A plain folder is a worktree called main: from another place the command would find nothing.
        seat = memory.seat(Actor.agent("bench"), Scope(project="bench", worktree="main", task="load"))
        seat.remember_many([Claim(content=text) for text in texts(20_000)])
    where = ("--store", home, "--actor", "agent:bench", "--project", "bench", "--task", "load")
    mnemarch_script = program(folder)[1:]
    commands = {
        "bare": ("-c", "pass"),
        "log": (*mnemarch_script, "log", "thought", "cold", *where),
        "recall": (*mnemarch_script, "recall", "which step throttles webhooks of module_7", *where),
    }
    command = [sys.executable, *commands["recall"]]
    answer = subprocess.run(command, check=True, capture_output=True, text=True, cwd=home).stdout
    if "module_7" not in answer or "Nothing found" in answer:
        raise RuntimeError(f"The command to be measured found nothing:\n{answer}")
    spent: dict[str, list[float]] = {name: [] for name in commands}
    for round in range(rounds + 1):
        for name, command in commands.items():
            wall = cold(*command, folder=home)
            spent[name] += [wall] if round else []
    return {
        "mnemarch log, cold, at 20,000 / bare python": ratio(spent["log"], spent["bare"], limit=4.0),
        "mnemarch recall, cold, at 20,000 / bare python": ratio(spent["recall"], spent["bare"], limit=5.0),
    }


def log_beside_readers(folder: str, readers: int = 8, entries: int = 8_000) -> dict[str, dict[str, float]]:
    """How large the write-ahead log grows beside the database while one process writes and many read at all times."""
    home = os.path.join(folder, "readers")
    with mnemarch.open(home) as memory:
        seat = memory.seat(Actor.agent("bench"), Scope(project="bench", task="load"))
        seat.remember_many([Claim(content=text) for text in texts(500)])
        code = (
            "import sys, mnemarch\nfrom mnemarch import Actor, Scope\nmemory = mnemarch.open(sys.argv[1])\n"
            "seat = memory.seat(Actor.agent('reader'), Scope(project='bench', task='load'))\n"
            "while True:\n    seat.units(limit=200)\n"
        )
        processes = [subprocess.Popen([sys.executable, "-c", code, home]) for _ in range(readers)]
        try:
            path = os.path.join(home, ".mnemarch", "memory.db")
            largest = 0
            for number in range(entries):
                seat.log("thought", f"{number} {TEXT * 10}")
                largest = max(largest, os.path.getsize(path + "-wal"))
        finally:
            for process in processes:
                process.kill()
                process.wait()
        return {
            "largest write-ahead log / database, 8 readers": {"value": largest / os.path.getsize(path), "limit": 1.0},
            "largest write-ahead log, MB": {"value": largest / 2**20, "limit": 32.0},
        }


def ratio(ours: list[float], floor: list[float], limit: float | None = None) -> dict[str, float]:
    """The ratio of medians, and of the fastest: the first is what users feel, the second is steadier."""
    row = {
        "value": statistics.median(ours) / statistics.median(floor),
        "of_fastest": min(ours) / min(floor),
        "ours_ms": statistics.median(ours) * 1000,
        "floor_ms": statistics.median(floor) * 1000,
    }
    return row if limit is None else row | {"limit": limit}


def shown(results: dict[str, dict[str, float]]) -> int:
    from rich.console import Console
    from rich.table import Table

    table = Table("measured", "value", "of fastest", "ours ms", "floor ms", "limit", "")
    broken = 0
    for name, row in results.items():
        kept = "limit" not in row or row["value"] <= row["limit"]
        broken += not kept
        mark = "" if "limit" not in row else ("[green]holds[/]" if kept else "[red]broken[/]")
        columns = ("value", "of_fastest", "ours_ms", "floor_ms", "limit")
        cells = [f"{row[key]:,.3g}" if key in row else "" for key in columns]
        table.add_row(name, *cells, mark)
    Console().print(table)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

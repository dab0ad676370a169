"""What a hook costs at 20,000 units, event by event and host by host, against an interpreter that does nothing.

    python -m bench.hook [--hosts claude-code] [--rounds 9] [--sessions 0] [--alone]

The processor time of the process and of all that it starts (git), so that other work on the machine hardly shows; the
time on the clock stands beside it. The payloads are those that the tests replay, session by session, and before each
event an interpreter that does nothing is measured. `--sessions` ages the branch by so many sessions first: the cost
must stay the same. A session has its MCP server, as installed hosts start it, and the server answers the hooks; what it
spends itself is told last. With `--alone` there is none, and each hook opens the memory itself.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import mnemarch
from bench.spine import OBJECTS, SUBJECTS, VERBS, program, ratio, shown, texts
from mnemarch import Actor, Claim, Scope
from mnemarch.interfaces.hooks import place_of

PAYLOADS = Path(__file__).parents[1] / "tests" / "fixtures" / "hosts"
LIMIT = 5.0
IDS = ("session_id", "sessionId", "conversation_id", "tool_use_id")
# Nobody says the same in each session.
ASKED = "How many connections does the pool have?"
# Processor and clock seconds.
Cost = tuple[float, float]
GIT = ("git", "-c", "user.name=bench", "-c", "user.email=bench@example.org")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--sessions", type=int, default=0)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--hosts", nargs="*", default=sorted(path.stem for path in PAYLOADS.glob("*.jsonl")))
    options = parser.parse_args()
    # What users have: bytecode, and compiled patterns beside it, which the first round writes.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    compileall.compile_dir(os.path.dirname(mnemarch.__file__), quiet=2)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_STATE_HOME"] = os.path.join(folder, "own")
        root, command = repository(folder, options.units), program(folder)
        for number in range(options.sessions):
            for _ in session(root, command, "claude-code", f"earlier-{number}"):
                print(f"\rearlier session {number + 1} of {options.sessions}", end="", file=sys.stderr)
        with nullcontext() if options.alone else server(root, command):
            results = measured(root, command, options.hosts, options.rounds)
        return shown(results)


@contextmanager
def server(root: str, command: list[str]) -> Iterator[None]:
    """The MCP server of a session, which answers hooks once its client has said hello; tells what it spent."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen([*command, "mcp"], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(message + "\n")
    process.stdin.flush()
    process.stdout.readline()
    while not os.path.exists(os.path.join(place_of(root), "socket")):
        time.sleep(0.05)
    try:
        yield
    finally:
        spent = seconds_since(before)
        process.stdin.close()
        process.wait()
        print(f"the server spent {seconds_since(before) - spent:.1f} s of processor time, its start included")


def seconds_since(before: resource.struct_rusage) -> float:
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def repository(folder: str, units: int) -> str:
    """A repository on a branch of its own, whose memory has so many units."""
    root = os.path.join(folder, "shop")
    os.makedirs(os.path.join(root, "tests"))
    for name, text in {
        "pool.py": "def size():\n    return 1\n",
        "tests/test_pool.py": "def test_size():\n    ...\n",
    }.items():
        Path(root, name).write_text(text)
    steps = (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "begin"], ["checkout", "-qb", "feat/pool"])
    for step in steps:
        subprocess.run([*GIT, *step], cwd=root, check=True)
    with mnemarch.open(root) as memory:
        seat = memory.seat(Actor.human("bench"), Scope(project="shop"), root=root)
        seat.remember_many([Claim(content=text) for text in texts(units)])
    return root


def measured(root: str, command: list[str], hosts: list[str], rounds: int) -> dict[str, dict[str, float]]:
    results = {}
    for host in hosts:
        spent: dict[str, list[tuple[Cost, Cost]]] = {}
        for number in range(rounds + 1):
            for event, costs in session(root, command, host, str(number)):
                spent.setdefault(event, []).append(costs)
        for event, (_, *pairs) in spent.items():  # The first session has everything to load from the disk.
            ours, floor = zip(*pairs, strict=True)
            row = ratio([cpu for cpu, _ in ours], [cpu for cpu, _ in floor], limit=LIMIT)
            clock = ratio([wall for _, wall in ours], [wall for _, wall in floor])
            results[f"{host} {event}"] = row
            print(f"{host:<12} {event:<14} x{row['value']:.1f} of bare; on the clock x{clock['value']:.1f}")
    return results


def session(root: str, command: list[str], host: str, number: str) -> Iterator[tuple[str, tuple[Cost, Cost]]]:
    """One session of a host: what each event costs, and what a bare interpreter did just before."""
    lines = (PAYLOADS / f"{host}.jsonl").read_text(encoding="utf-8").replace("{root}", root).splitlines()
    for line in map(json.loads, lines):
        own = {name: f"{host}-{item}-{number}" for name, item in line["stdin"].items() if name in IDS}
        if line["event"] == "failed":
            Path(root, "pool.py").write_text(f"def size():\n    return 1  # {host} {number}\n")
        bare = cost([sys.executable, "-c", "pass"], b"", root, {})
        stdin = json.dumps(line["stdin"] | own).replace(ASKED, f"{ASKED} {said(f'{host} {number}')}").encode()
        yield line["event"], (cost([*command, "hook", "--host", host], stdin, root, line["environ"]), bare)


def said(name: str) -> str:
    """What a person tells beside the question; other words in each session."""
    number = zlib.crc32(name.encode())
    subject, verb, thing = (words[number // size % 10] for words, size in ((SUBJECTS, 1), (VERBS, 10), (OBJECTS, 100)))
    return f"The {subject} {verb} {thing}, so keep {number % 97} of them for {name}."


def cost(command: list[str], stdin: bytes, root: str, environ: dict[str, str]) -> Cost:
    """Processor and clock seconds of one process."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, input=stdin, cwd=root, env=os.environ | environ, capture_output=True, check=True)
    wall = time.perf_counter() - started
    return seconds_since(before), wall


if __name__ == "__main__":
    sys.exit(main())

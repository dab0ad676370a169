"""`mnemarch serve` under load: many clients at once, each recalling and logging; errors, lost writes and waiting times.

    python -m bench.serve [--clients 200] [--seconds 60] [--units 2000]

The server is a process of its own on SQLite, the clients are coroutines of this one. Exits 1 after an error or a loss.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import anyio
import httpx2

import mnemarch
from mnemarch import Actor, Claim, Scope
from mnemarch.interfaces.http import Tokens

from .spine import texts

PROJECT = "bench"
QUERIES = ("checkout retries orders", "login caches tokens", "search logs invoices", "billing validates images")


def served(folder: str) -> tuple[subprocess.Popen[str], str]:
    """A server for the memory in a folder, and its address."""
    command = [sys.executable, "-m", "mnemarch", "serve", "--port", "0", "--store", folder]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    line = process.stderr.readline() if process.stderr else ""
    return process, line.split()[2].rstrip(";")


async def client(
    url: str, token: str, number: int, seconds: float, told: dict[str, list[float]], ready: anyio.Event, here: list[int]
) -> None:
    """One agent: it connects, waits for all others, then it logs, recalls, thinks for a moment, and goes on."""
    chance = random.Random(number)
    where = {"task": f"T-{number}", "session": f"s-{number}"}
    headers = {"Authorization": f"Bearer {token}"}
    # No certificates: loading them for every client took the first half minute of the time that was measured.
    async with httpx2.AsyncClient(base_url=url, headers=headers, params=where, timeout=60, verify=False) as web:
        await web.get("/v1/whoami")
        here.append(number)
        await ready.wait()
        await anyio.sleep(chance.uniform(0, 2 * THINK_S))
        end, step = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            step += 1
            for name, body in (
                ("log", {"kind": "note", "text": f"{number}-{step}"}),
                ("recall", {"query": chance.choice(QUERIES)}),
            ):
                began = time.monotonic()
                try:
                    answer = await web.post(f"/v1/seat/{name}", json=body)
                    is_done = answer.status_code == 200
                except httpx2.HTTPError:
                    is_done = False
                told[name if is_done else "errors"].append(time.monotonic() - began)
            await anyio.sleep(chance.uniform(0, 2 * THINK_S))


THINK_S = 1.0


async def load(url: str, tokens: list[str], seconds: float) -> dict[str, list[float]]:
    told: dict[str, list[float]] = {"log": [], "recall": [], "errors": []}
    ready, here = anyio.Event(), list[int]()
    async with anyio.create_task_group() as tasks:
        for number, token in enumerate(tokens):
            tasks.start_soon(client, url, token, number, seconds, told, ready, here)
        while len(here) < len(tokens):
            await anyio.sleep(0.1)
        ready.set()
    return told


def share(times: list[float], part: float) -> float:
    return sorted(times)[min(len(times) - 1, int(part * len(times)))] if times else 0.0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--units", type=int, default=2_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_STATE_HOME"] = os.path.join(folder, "own")
        scope = Scope(project=PROJECT)
        with mnemarch.open(folder) as memory:
            person = memory.seat(Actor.human("bench"), scope)
            person.remember_many([Claim(content=text, level="project") for text in texts(options.units)])
        made = Tokens(folder)
        tokens = [made.create(Actor.agent(f"a-{n}"), scope, "work", 1)[1] for n in range(options.clients)]
        process, url = served(folder)
        try:
            told = anyio.run(load, url, tokens, options.seconds)
            process.send_signal(signal.SIGTERM)
            ended = process.wait(timeout=60)
        finally:
            process.kill()
        with mnemarch.open(folder) as memory:
            seat = memory.seat(Actor.human("bench"), scope)
            kept = 0
            after = None
            while page := seat.events(types=["logged"], limit=10_000, after=after):
                kept += len(page)
                after = page[-1].id
            is_whole = memory.audit().ok
    lost = len(told["log"]) - kept
    print(f"{options.clients} clients for {options.seconds:g} s, {options.units:,} units, {os.cpu_count()} cores")
    for name in ("log", "recall"):
        times = told[name]
        words = "  ".join(f"p{100 * part:g} {1000 * share(times, part):,.0f} ms" for part in (0.5, 0.95, 0.99))
        print(f"{name:<8}{len(times):>8,}  {len(times) / options.seconds:,.0f}/s  {words}")
    print(f"errors {len(told['errors'])}, lost {max(0, lost)}, the log is whole: {is_whole}, exit code {ended}")
    return 1 if told["errors"] or lost > 0 or not is_whole else 0


if __name__ == "__main__":
    sys.exit(main())

"""Two agents write at the same time, each through a server process of its own: how much of it is kept.

    python -m bench.parallel [--calls 10] [--rounds 3]

Asks `mnemarch mcp`, and beside it the reference memory server (npm: @modelcontextprotocol/server-memory), which is
installed into a throw-away folder; without npm only ours is asked. Exits 1 if ours loses anything.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters

import mnemarch

REFERENCE = "@modelcontextprotocol/server-memory"
AGENTS = 2
Call = tuple[str, dict[str, Any]]


def written(server: StdioServerParameters, call: Callable[[int, int], Call], calls: int) -> int:
    """How many calls two servers acknowledge, each asked by a client of its own, at the same time."""
    acknowledged = 0

    async def ask(client: Client, agent: int) -> None:
        nonlocal acknowledged
        for number in range(calls):
            result = await client.call_tool(*call(agent, number))
            acknowledged += not result.is_error

    async def main() -> None:
        async with Client(server) as first, Client(server) as second, anyio.create_task_group() as tasks:
            for agent, client in enumerate((first, second)):
                tasks.start_soon(ask, client, agent)

    anyio.run(main)
    return acknowledged


def ours(folder: Path, calls: int) -> tuple[int, int]:
    """Acknowledged and kept by `mnemarch mcp`."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "mnemarch", "mcp"], env=environment | {"CLAUDECODE": "1"}, cwd=str(folder)
    )
    said = written(server, lambda agent, n: ("remember", {"content": f"Agent {agent} found fact number {n}"}), calls)
    with mnemarch.open(folder) as memory:
        stats = memory.stats()
        assert memory.audit().ok
    return said, stats.units


def reference(folder: Path, calls: int, script: str) -> tuple[int, int]:
    """Acknowledged and kept by the reference server; what it can't read any more counts as lost."""
    path = folder / "memory.jsonl"
    environment = {"PATH": os.environ["PATH"], "MEMORY_FILE_PATH": str(path)}
    server = StdioServerParameters(command="node", args=[script], env=environment, cwd=str(folder))

    def call(agent: int, number: int) -> Call:
        entity = {"name": f"fact-{agent}-{number}", "entityType": "fact", "observations": [f"fact number {number}"]}
        return "create_entities", {"entities": [entity]}

    said = written(server, call, calls)
    names = set()
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            names.add(json.loads(line).get("name"))
        except ValueError:
            continue
    return said, len(names)


def installed(folder: str) -> str | None:
    """The script of the reference server, or None where npm can't install it."""
    command = ["npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", folder, REFERENCE]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=300)
    except (OSError, subprocess.SubprocessError):
        return None
    return os.path.join(folder, "node_modules", *REFERENCE.split("/"), "dist", "index.js")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    lost = 0
    with tempfile.TemporaryDirectory() as home:
        script = installed(home)
        print(f"{AGENTS} server processes, {AGENTS * options.calls} calls              calls  acknowledged  kept")
        for number in range(options.rounds):
            for name, run in (("mnemarch mcp", ours), ("reference server", reference)):
                if run is reference and script is None:
                    print("reference server: npm could not install it here")
                    continue
                folder = Path(home) / f"{name.split()[0]}-{number}"
                folder.mkdir()
                more = () if run is ours else (script,)
                said, kept = run(folder, options.calls, *more)  # type: ignore[operator]
                print(f"{name:<42}{AGENTS * options.calls:>8}{said:>14}{kept:>6}")
                lost += said - kept if run is ours else 0
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())

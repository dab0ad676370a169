"""What is learned from recorded runs of two repair agents, and how long a day of work takes to be learned.

    python -m bench.lessons                 the lessons of the runs, as an agent would be handed them
    python -m bench.lessons --day           10,000 entries in 200 tasks, learned; time and memory beside those of half

Each run is a task: its failing results go to `seat.fail(result, approach=thought)`, its commands and edits to the log,
its outcome to `seat.verify`. Runs whose outcome is not known are left out. Exits 1 if a limit is broken, 2 without
data.
"""

from __future__ import annotations

import ast
import json
import resource
import sys
import tempfile
import time
from typing import Any

import mnemarch
from bench.loops.trajectories import FORM, SET, SOURCE, failed_or_refused
from bench.retrieval.sets import folder
from mnemarch import Actor, Scope

DAY_S_MAX = 60.0
# Twice the work may take little more memory than once, and hardly more than twice the time.
GROWTH_MAX = 1.5
TIMES_MAX = 2.6
EVENTS, TASKS = 10_000, 200

Step = dict[str, Any]


def action_of(step: Step) -> tuple[str, str | None]:
    """What a step ran, as a command line, and the file that it changed."""
    try:
        action = ast.literal_eval(step["action"])
    except (SyntaxError, ValueError):
        return "", None
    name, arguments = action.get("name", ""), action.get("args") or action.get("arguments") or {}
    if isinstance(arguments, str):
        arguments = json.loads(arguments)
    if name == "execute_bash":
        return str(arguments.get("command", "")), None
    if name == "str_replace_editor":
        command = str(arguments.get("command", ""))
        return f"{name} {command}", str(arguments["path"]) if command != "view" and "path" in arguments else None
    changes = arguments.get("changes_dicts") or [{}]
    path = changes[0].get("file_name") if isinstance(changes, list) and isinstance(changes[0], dict) else None
    return " ".join([name, *(f"{key}={json.dumps(arguments[key])[:80].replace(' ', '')}" for key in arguments)]), path


def perform(memory: mnemarch.Memory, run: dict[str, Any]) -> mnemarch.Seat:
    """One run as a task of an agent."""
    seat = memory.seat(Actor.agent(run["scope"]), Scope(project=run["scope"], worktree="main", task=run["id"]))
    seat.log("task", f"Repair {run['id']}")
    approach = None
    for step in run["steps"]:
        command, path = action_of(step)
        is_failure = failed_or_refused(step, run["scope"])
        if step["thought"]:
            seat.log("thought", step["thought"])
        if command.strip():
            seat.log("command", command[:500], data={"command": command[:500], "exit": int(is_failure)})
        if path:
            approach = step["thought"] or approach
            seat.log("edit", f"Changed {path}", data={"path": path})
        if is_failure:
            seat.fail(step["result"], approach=step["thought"] or None)
    seat.verify(bool(run["resolved"]), approach=approach if run["resolved"] else None)
    return seat


def lessons() -> int:
    path = folder() / SET / "items.jsonl"
    if not path.exists():
        print(f"{path} is missing; MNEMARCH_BENCH_DATA may name a folder with {SET}:\n  {SOURCE}\n  {FORM}")
        return 2
    with path.open(encoding="utf-8") as lines:
        runs = [json.loads(line) for line in lines]
    with mnemarch.open(":memory:") as memory:
        seats = {run["scope"]: perform(memory, run) for run in runs if run["resolved"] is not None}
        for scope, seat in seats.items():
            done = seat.reflect()
            units = [unit for unit in seat.units(kind="semantic", limit=1_000) if unit.live]
            print(f"{scope}: {done.episodes} episodes, {len(units)} lessons")
            for unit in sorted(units, key=lambda unit: -len(unit.attributes["episodes"])):
                print(f"\n[LESSON from {unit.attributes['kept_by']}] ({unit.attributes['form']})\n{unit.content}")
    return 0


def day() -> tuple[list[float], list[float], int]:
    """A day's tasks worked and learned; seconds of learning and peak of memory in MB after each half, and lessons.

    The seconds are the processor's: how long a busy machine takes says nothing of the program.
    """
    faults = [
        f"{name}Error: no {name.lower()} here" for name in ("Token", "Table", "Socket", "Module", "Width", "Case")
    ]
    seconds, peaks, spent = [], [], 0.0
    with tempfile.TemporaryDirectory() as place, mnemarch.open(place) as memory:
        for number in range(TASKS):
            seat = memory.seat(Actor.agent(f"a-{number % 5}"), Scope(project="p", worktree="main", task=f"T-{number}"))
            fault, solved = faults[number % len(faults)], number % 3 != 0
            entries: list[tuple[str, str]] = [("task", f"Mend thing {number}")]
            entries += [("command", f"make step-{number % 7}"), ("file", f"src/part_{number % 11}.py")]
            entries += [
                ("thought", f"Thought {each} of task {number}") for each in range(EVENTS // TASKS - len(entries))
            ]
            seat.log_many(entries)
            seat.fail(fault, approach=f"try way {number % 4}")
            began = time.process_time()
            seat.verify(solved, approach="hand it on" if solved else None)
            if number in (TASKS // 2 - 1, TASKS - 1):
                seat.reflect()
            spent += time.process_time() - began
            if number in (TASKS // 2 - 1, TASKS - 1):
                seconds.append(spent)
                peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024)
        count = sum(unit.live for unit in seat.units(kind="semantic", limit=1_000))
    return seconds, peaks, count


def main() -> int:
    if "--day" not in sys.argv:
        return lessons()
    (half_s, day_s), (half_mb, day_mb), count = day()
    print(f"half a day: learned in {half_s:.1f} s of processor time, at most {half_mb:.0f} MB")
    print(
        f"a day ({EVENTS:,} entries, {TASKS} tasks): learned in {day_s:.1f} s of processor time,"
        f" at most {day_mb:.0f} MB, {count} lessons"
    )
    print(f"twice the work: {day_s / half_s:.2f} of the time, {day_mb / half_mb:.2f} of the memory")
    holds = day_s <= min(DAY_S_MAX, TIMES_MAX * half_s) and day_mb <= GROWTH_MAX * half_mb
    print("limits hold" if holds else "a limit is broken")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())

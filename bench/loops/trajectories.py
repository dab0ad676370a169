"""Does the loop guard stop agents that failed, and leave alone those that succeeded? On recorded runs of two agents.

    python -m bench.loops.trajectories [--verbose]

Each run has a store of its own. Every failing result goes to `seat.fail(result, approach=thought)`, in order. A verdict
on a step is right where the step before was annotated as repeated by it; labels join neighbours only, so the precision
is a floor. Prints both with and without refused commands. Exits 1 if a limit is broken, 2 without data.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import mnemarch
from bench.retrieval.sets import folder
from mnemarch import Actor, Scope

SET = "loops_trajectories"
SOURCE = "github.com/sola-st/llm-agents-study, trajectories of openhands and repairagent"
FORM = "items.jsonl {id, scope, resolved, steps: [{n, thought, action, result, label}]}"
BLOCKED_RESOLVED_MAX, BLOCKED_UNRESOLVED_MIN = 1, 0.40
_BASH_FAILED = re.compile(
    r"Traceback \(most recent call last\)|FAILED|exit code [1-9]|^\w+Error|[1-9]\d* (?:failed|errors?)", re.MULTILINE
)
_REFUSED = re.compile(r"Failure: |returned: Error|did not target|you passed is empty")
_TESTS_FAILED = re.compile(r"[1-9]\d* failing test|BUILD FAILED")
_TESTING = {"write_fix", "try_fixes", "run_tests"}

Step = dict[str, Any]


def failed(step: Step, scope: str) -> bool:
    """A failing result other than a refused command."""
    action, result = str(step["action"]), step["result"]
    if scope == "openhands":
        return "execute_bash" in action and _BASH_FAILED.search(result) is not None
    return any(f"'{name}'" in action for name in _TESTING) and _TESTS_FAILED.search(result) is not None


def failed_or_refused(step: Step, scope: str) -> bool:
    return failed(step, scope) or (scope == "repairagent" and _REFUSED.search(step["result"]) is not None)


def verdicts(run: dict[str, Any], is_failure: Callable[[Step, str], bool]) -> list[tuple[Step, str, bool, str]]:
    """For each failing step its verdict, whether the step repeats the one before, and the core of the error."""
    with mnemarch.open(":memory:") as memory:
        seat = memory.seat(Actor.agent("bench"), Scope(project="bench", worktree="main", task=run["id"]))
        judged = []
        before = None
        for step in run["steps"]:
            if is_failure(step, run["scope"]):
                verdict = seat.fail(step["result"], approach=step["thought"] or None)
                judged.append((step, str(verdict.type), before == "Repetition", verdict.details["error"]))
            before = step["label"]
        return judged


def measured(runs: Sequence[dict[str, Any]], is_failure: Callable[[Step, str], bool], *, is_verbose: bool) -> bool:
    """Print one table; whether the limits hold."""
    met: dict[Any, Counter[bool]] = {True: Counter(), False: Counter(), None: Counter()}
    right: Counter[tuple[str, bool]] = Counter()
    for run in runs:
        judged = verdicts(run, is_failure)
        is_blocked = any(verdict == "BLOCK" for _, verdict, _, _ in judged)
        met[run["resolved"]][is_blocked] += 1
        right.update((verdict, is_right) for _, verdict, is_right, _ in judged)
        if is_verbose:
            print(f"-- {run['scope']} {run['id']} resolved={run['resolved']} blocked={is_blocked}")
            for step, verdict, is_right, core in judged:
                print(f"   {step['n']:3} {verdict:5} {'R' if is_right else '-'} {core[:150]}")
    for resolved, counts in met.items():
        print(f"  resolved {resolved!s:5}: BLOCK in {counts[True]} of {counts.total()} runs")
    for verdict in ("WARN", "BLOCK"):
        total = right[verdict, True] + right[verdict, False]
        share = right[verdict, True] / max(1, total)
        print(f"  {verdict}: {right[verdict, True]} of {total} on a repetition ({100 * share:.0f} %)")
    share = met[False][True] / max(1, met[False].total())
    return met[True][True] <= BLOCKED_RESOLVED_MAX and share >= BLOCKED_UNRESOLVED_MIN


def main() -> int:
    """Measure with refused commands and without; the limits are those of all failing results."""
    path = folder() / SET / "items.jsonl"
    if not path.exists():
        print(
            f"{path} is missing; MNEMARCH_BENCH_DATA may name a folder that has {SET}:\n  {SOURCE}\n  {FORM}",
            file=sys.stderr,
        )
        return 2
    with path.open(encoding="utf-8") as lines:
        runs = [json.loads(line) for line in lines]
    is_verbose = "--verbose" in sys.argv
    print("all failing results")
    holds = measured(runs, failed_or_refused, is_verbose=is_verbose)
    print("without refused commands")
    measured(runs, failed, is_verbose=False)
    print("limits hold" if holds else "a limit is broken")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())

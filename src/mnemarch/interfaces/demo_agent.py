"""One agent of the demo, in a process of its own: it follows the script it is given and reports each answer on stdout.

The script is one JSON object. A line on stdin lets it go on past each of its barriers.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time

from mnemarch.errors import Conflict
from mnemarch.interfaces.json_form import to_json
from mnemarch.model.caller import Actor, Level, Scope
from mnemarch.model.citation import Citation
from mnemarch.wiring import open as open_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from mnemarch.seat import Seat


def say(message: str, **facts: Any) -> None:
    sys.stdout.write(json.dumps({"say": message} | to_json(facts)) + "\n")
    sys.stdout.flush()


def barrier(name: str) -> None:
    """Wait until the demo lets everybody go on at once."""
    say("waiting", at=name)
    if not sys.stdin.readline():
        raise SystemExit(1)


def main() -> None:
    script = json.loads(sys.argv[1])
    with open_memory(script["store"]) as memory:
        seat = memory.seat(Actor.parse(script["actor"]), Scope(**script["scope"]), root=script["root"])
        if "revise" in script:
            revise(seat, script["revise"])
        else:
            work(seat, script)


def work(seat: Seat, script: dict[str, Any]) -> None:
    """A task from its first thought to its verification."""
    thoughts = _thoughts(script["root"], script["events"], script["goal"])
    half = script["events"] // 2
    barrier("start")
    for _ in range(half):
        _log(seat, next(thoughts), script["pause_s_max"])
    barrier("claim")
    for claim in script["claims"]:
        _claim(seat, claim)
    for entry in script["logs"]:
        say("logged", what=entry["what"], receipt=seat.log(entry["kind"], entry["text"], key=entry.get("key")))
    for thought in thoughts:
        _log(seat, thought, script["pause_s_max"])
    barrier("verify")
    tests = {name: _passes(script["root"], name) for name in script["tests"]}
    judged = seat.verify(all(tests.values()), tests=list(tests), commit=script["commit"])
    say("verified", passed=all(tests.values()), tests=tests, promotion=judged)


def revise(seat: Seat, revision: dict[str, Any]) -> None:
    """Put a better text in the place of a unit, from the version that was read before the barrier."""
    seen = seat.get(revision["unit"])
    cited = [Citation.parse(item) for item in revision["citations"]]
    new = seat.remember(revision["content"], level=seen.level, citations=cited)
    say("claimed", what="revision", outcome=new)
    new_id: str = to_json(new)["unit"]["id"]
    barrier("supersede")
    try:
        seat.supersede(new_id, seen.id, "a better wording", expected_version=seen.version)
    except Conflict as conflict:
        say("lost", expected=conflict.expected_version, actual=conflict.actual_version, new=new_id)
    else:
        say("won", expected=seen.version, new=new_id)


def _log(seat: Seat, thought: tuple[str, str], pause_s_max: float) -> None:
    say("receipt", receipt=seat.log(*thought))
    if pause_s_max:
        time.sleep(random.uniform(0, pause_s_max))  # noqa: S311 - the pace of an agent at work, no secret


def _claim(seat: Seat, claim: dict[str, Any]) -> None:
    outcome = seat.remember(
        claim["content"],
        level=Level.parse(claim["level"]),
        citations=[Citation.parse(item) for item in claim.get("citations", ())],
    )
    say("claimed", what=claim["what"], outcome=outcome)


def _thoughts(root: str, count: int, goal: str) -> Iterator[tuple[str, str]]:
    """What an agent logs: what its task is, then real lines of the real files that it reads."""
    lines = []
    for path in ("shop/checkout.py", "tests/test_shop.py"):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            lines += [f"{path}:{number}: {line.strip()}" for number, line in enumerate(file, start=1) if line.strip()]
    yield "task", goal
    for number in range(1, count):
        line = lines[number % len(lines)]
        yield ("thought", f"Why is this here? {line}") if number % 4 == 0 else ("tool_output", line)


def _passes(root: str, test: str) -> bool:
    """Run one test of the working tree, really."""
    import runpy

    path, _, name = test.partition("::")
    try:
        runpy.run_path(os.path.join(root, path))[name]()
    except AssertionError:
        return False
    return True


if __name__ == "__main__":
    main()

"""`demo`: the whole path of the data, live."""

from __future__ import annotations

import os
import shlex
import sys

from mnemarch.interfaces.command import DONE, REFUSED, Answer, Command
from mnemarch.verbs.types import FLAG, NUMBER, PATH, Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.interfaces.command import Call

_EVENTS, _EVENTS_FAST = 240, 40


def _demo(call: Call) -> Answer:
    from mnemarch.interfaces.demo import run

    options = call.options
    events = options.events if options.events is not None else _EVENTS_FAST if options.fast else _EVENTS
    folder = os.path.realpath(options.keep) if options.keep else None
    proofs, unit_id = run(keep=folder, agents=options.agents, events=events, fast=options.fast, aside=call.places.json)
    is_proven = all(proof.ok for proof in proofs)
    return Answer(
        data={"ok": is_proven, "folder": folder, "proofs": proofs},
        text=lambda: _next_steps(folder, unit_id),
        exit_code=DONE if is_proven else REFUSED,
    )


def _next_steps(folder: str | None, unit_id: str) -> str:
    from shutil import which

    # `make demo` runs in an environment that the shell does not know.
    beside = os.path.relpath(os.path.join(os.path.dirname(sys.executable), "mnemarch"))
    mnemarch = "mnemarch" if which("mnemarch") or not os.path.exists(beside) else shlex.quote(beside)
    if folder is None:
        steps: tuple[str, ...] = (
            f"{mnemarch} demo --keep shop-demo   # look around in it",
            f"{mnemarch} init                    # a memory of your own",
            f"{mnemarch} --help                  # everything else",
        )
    else:
        there = f"--store {shlex.quote(folder)}"
        steps = (
            f"{mnemarch} units {there}",
            f"{mnemarch} explain {unit_id} {there}",
            f'{mnemarch} recall "what happens when a payment times out?" {there}',
        )
    return "\n".join(["try next", *(f"  {step}" for step in steps)])


COMMANDS = {
    "demo": Command(
        "Watch agents write to one memory at once, with proof. They are processes of their own: one fact said by all,"
        " opposed claims, a refusal, a leaked key, a retry, a failed task, two revisions of one version, an erasure."
        " The proof is counted from the memory itself; exit code 1 if any part of it fails.",
        ("mnemarch demo", "mnemarch demo --keep shop-demo", "mnemarch demo --fast --agents 3"),
        _demo,
        (
            Parameter("keep", PATH, "leave the memory in this new folder, to look around in", None, metavar="DIR"),
            Parameter("agents", NUMBER, "how many agents (default: 5)", 5),
            Parameter("events", NUMBER, f"log entries of each (default: {_EVENTS})", None),
            Parameter("fast", FLAG, f"no pauses, and {_EVENTS_FAST} log entries each", False),
        ),
    ),
}

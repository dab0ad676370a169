"""`demo`: the whole path of the data, live."""

from __future__ import annotations

import os
import shlex
import sys

from mnemarch.interfaces.command import DONE, REFUSED, Answer, Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser

    from mnemarch.interfaces.command import Call
    from mnemarch.interfaces.demo import Ended

_EVENTS, _EVENTS_FAST = 240, 40


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--keep", metavar="DIR", help="leave the memory in this new folder, to look around in")
    parser.add_argument("--agents", type=int, default=5, metavar="N", help="how many agents (default: 5)")
    parser.add_argument("--events", type=int, metavar="N", help=f"log entries of each (default: {_EVENTS})")
    parser.add_argument("--fast", action="store_true", help=f"no pauses, and {_EVENTS_FAST} log entries each")


def _demo(call: Call) -> Answer:
    from mnemarch.interfaces.demo import run

    options = call.options
    events = options.events if options.events is not None else _EVENTS_FAST if options.fast else _EVENTS
    ended = run(keep=options.keep, agents=options.agents, events=events, fast=options.fast, aside=options.json)
    return Answer(
        data={"ok": ended.ok, "folder": ended.folder, "proofs": ended.proofs},
        text=lambda: _next_steps(ended),
        exit_code=DONE if ended.ok else REFUSED,
    )


def _next_steps(ended: Ended) -> str:
    mnemarch = _as_typed()
    if ended.folder is None:
        steps: tuple[str, ...] = (
            f"{mnemarch} demo --keep shop-demo   # look around in it",
            f"{mnemarch} init                    # a memory of your own",
            f"{mnemarch} --help                  # everything else",
        )
    else:
        there = f"--store {shlex.quote(ended.folder)}"
        steps = (
            f"{mnemarch} units {there}",
            f"{mnemarch} explain {ended.unit_id} {there}",
            f'{mnemarch} recall "what happens when a payment times out?" {there}',
        )
    return "\n".join(["try next", *(f"  {step}" for step in steps)])


def _as_typed() -> str:
    """How to call this from where one is: `make demo` runs it from an environment that the shell does not know."""
    from shutil import which

    beside = os.path.join(os.path.dirname(sys.executable), "mnemarch")
    if which("mnemarch") or not os.path.exists(beside):
        return "mnemarch"
    below = os.path.relpath(beside)
    return shlex.quote(beside if below.startswith("..") else below)


COMMANDS = {
    "demo": Command(
        description=(
            "Watch agents in separate processes write to one memory at once: one fact said by all, opposed claims, a\n"
            "refusal, a leaked key, a retry, a failed task, two revisions of one version, an erasure. Then the proof,\n"
            "counted from the memory itself; exit code 1 if any part of it fails."
        ),
        examples=("mnemarch demo", "mnemarch demo --keep shop-demo", "mnemarch demo --fast --agents 3"),
        arguments=_arguments,
        run=_demo,
    ),
}

"""`demo`, `init`, `policy` and `hook`, no verbs; and commands that do more than a verb: they ask, check or show."""

from __future__ import annotations

import os
import shlex
import sys

from mnemarch.checkout import load
from mnemarch.errors import InvalidInput, MnemarchError, NotFound
from mnemarch.interfaces import show
from mnemarch.interfaces.command import (
    DONE,
    REFUSED,
    Answer,
    Command,
    answered,
    exit_code_of,
    noted,
    performed,
    text_of,
)
from mnemarch.verbs.types import DURATION, FLAG, NUMBER, PATH, WORDS, Parameter, help_of
from mnemarch.verbs.wire import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mnemarch.interfaces.command import Call
    from mnemarch.model.caller import Actor
    from mnemarch.policy.permissions import Policy
    from mnemarch.verbs.types import Verb

_DEMO_EVENTS, _DEMO_EVENTS_FAST = 240, 40
_LEVELS_CHARS = len("task, worktree, project")
MORE_OPTIONS = {
    "seat.events": (Parameter("follow", FLAG, "go on with what comes next, until Ctrl-C", False),),
    **dict.fromkeys(
        ("seat.erase", "seat.undo"), (Parameter("yes", FLAG, "don't ask; needed where nobody is at a terminal", False),)
    ),
    "memory.maintain": (Parameter("every", DURATION, "do it again so often (6h, 30m, 1d), until Ctrl-C", None),),
    "decisions.impact": (Parameter("mermaid", FLAG, "as a Mermaid flowchart, for a Markdown page", False),),
}


def _shaped(verb: Verb, call: Call, data: Any, exit_code: int = 0) -> Answer:
    return Answer(data, lambda: text_of(verb.name, data, call, verb.gives), exit_code)


def _attempts(verb: Verb, call: Call) -> Answer:
    answer = answered(verb, call)
    data = {"stuck": call.seat.loops.stuck_reason(), "failed": answer.data}
    return Answer(data, lambda: text_of(verb.name, data, call), aside=answer.aside)


def _units(verb: Verb, call: Call) -> Answer:
    if call.options.after is not None:
        call.seat.get(call.options.after)  # After what is not there would be the first page, again and again.
    return answered(verb, call)


def _validate(verb: Verb, call: Call) -> Answer:
    return _shaped(verb, call, {"unit_id": call.options.unit_id, "confidence": performed(verb, call)})


def _explain(verb: Verb, call: Call) -> Answer:
    """A unit, explained; of an entry that was ingested, what became of it."""
    try:
        return answered(verb, call)
    except NotFound as missing:
        try:
            told = call.seat.ingested(call.options.unit_id)
        except NotFound:
            raise missing from None
    return Answer(told, lambda: text_of("seat.ingested", told, call, "Ingested"))


def _doctor(verb: Verb, call: Call) -> Answer:
    """The doctor's findings; a memory that can't even be opened is one, and one that is not there is none."""
    from mnemarch.model.outcome import Finding

    try:
        findings = performed(verb, call)
        # A scope without units is no fault of the memory, so it fails nothing.
        findings += [Finding(ok=True, what=note) for note in call.empty_scope_hint()]
        from mnemarch.interfaces.install import check

        findings += check.findings(call)
    except NotFound:
        raise
    except MnemarchError as error:
        findings = [Finding(ok=False, what=error.message, hint=error.hint_for("command line"))]
    return _shaped(verb, call, findings, exit_code_of(findings))


def _rebuild(verb: Verb, call: Call) -> Answer:
    rebuild = performed(verb, call)
    with show.Counter("auditing", "events") as progress:
        check = call.memory.audit(progress=progress)
    return _shaped(verb, call, {**to_json(rebuild), "audit": check}, exit_code_of([rebuild, check]))


def _reindex(verb: Verb, call: Call) -> Answer:
    return _shaped(verb, call, {"documents": performed(verb, call)})


def _export(verb: Verb, call: Call) -> Answer:
    path = call.options.path
    if path != "-":
        events = performed(verb, call)
        return _shaped(verb, call, {"path": os.path.abspath(path), "events": events})
    if call.places.json:
        raise InvalidInput("The export and --json both want standard output.", hint="Name a file, or leave --json out.")
    from shutil import copyfileobj
    from tempfile import TemporaryDirectory

    # Whole or not at all: nothing is written there before it is complete.
    with TemporaryDirectory(prefix="mnemarch-") as folder:
        call.given["path"] = os.path.join(folder, "log.jsonl")
        events = performed(verb, call)
        with open(call.given["path"], "rb") as file:
            sys.stdout.flush()
            copyfileobj(file, sys.stdout.buffer)
    return Answer(None, lambda: "", aside=lambda: f"exported  {events:,} events")


def _import(verb: Verb, call: Call) -> Answer:
    path = os.path.expanduser(call.options.path)
    if not os.access(path, os.R_OK):  # Before a memory is made for it.
        problem = "No such file or folder" if not os.path.lexists(path) else "Permission denied"
        raise InvalidInput(f"{path!r} can't be read: {problem}.", hint="Check its name and its rights.")
    if verb.name == "memory.import_":
        from mnemarch.interfaces.moving import require_person

        require_person(call.seat.actor, "restore an export", "; without --restore it is taken as claims")
    return answered(verb, call)


def _backup(verb: Verb, call: Call) -> Answer:
    path = call.options.path
    if path == "-":
        raise InvalidInput("A backup is a database, and no stream.", hint="Name a file, or use: mnemarch export -")
    performed(verb, call)
    return _shaped(verb, call, {"path": os.path.abspath(path), "bytes": os.path.getsize(path)})


def _relate(verb: Verb, call: Call) -> Answer:
    performed(verb, call)
    return _shaped(verb, call, call.seat.decisions.relations(call.options.source_id))


def _events(verb: Verb, call: Call) -> Answer:
    from mnemarch.interfaces.look import read_log

    return read_log(verb, call)


def _asked(verb: Verb, call: Call) -> Answer:
    from mnemarch.interfaces.removal import asked

    return asked(verb, call)


def _maintain(verb: Verb, call: Call) -> Answer:
    from mnemarch.interfaces.learned import again_and_again

    every = call.given.pop("every", None)
    return answered(verb, call) if every is None else again_and_again(verb, call, every)


RUNS = {
    "seat.events": _events,
    "seat.failed_approaches": _attempts,
    "seat.explain": _explain,
    "seat.units": _units,
    "seat.validate": _validate,
    "seat.erase": _asked,
    "seat.undo": _asked,
    "memory.doctor": _doctor,
    "memory.rebuild": _rebuild,
    "memory.reindex": _reindex,
    "memory.export": _export,
    "memory.import_": _import,
    "seat.import_claims": _import,
    "memory.backup": _backup,
    "memory.maintain": _maintain,
    "decisions.relate": _relate,
    "decisions.unrelate": _relate,
    "decisions.impact": answered,
}


def _init(call: Call) -> Answer:
    from mnemarch.code.home import FOLDER
    from mnemarch.interfaces.place import address_of, is_on_server
    from mnemarch.text.words import counted

    place = address_of(call) or os.path.join(call.home.folder, FOLDER)
    known = bool(call.url) or os.path.exists(os.path.join(place, "memory.db"))
    seat = call.seat
    events = call.memory.stats().events
    if is_on_server(call):
        from mnemarch.interfaces.hooks.relay import prepare

        prepare(call.home.folder)
    notes = call.empty_scope_hint()
    made = {
        "memory": place,
        "new": not known,
        "events": events,
        "org": seat.scope.org,
        "project": seat.scope.project,
        "worktree": seat.scope.worktree,
        "root": call.home.root,
        "actor": seat.actor,
        "notes": notes,
    }

    def text() -> str:
        found = show.fields(
            [
                (
                    "memory",
                    f"{place} ({counted(events, 'event') if known else 'new'}{'' if call.url else '; git ignores it'})",
                ),
                ("project", seat.scope.project),
                ("worktree", seat.scope.worktree or "none: this repository is bare"),
                ("you", seat.actor),
            ]
        )
        named = f" --actor {shlex.quote(str(seat.actor))}" if call.places.actor else ""
        told = [f"note: {show.clean(note)}" for note in notes]
        return "\n".join([found, *told, "", "next", *(f"  {step}" for step in _next_steps(seat.actor, named))])

    return Answer(data=made, text=text)


def _next_steps(actor: Actor, named: str) -> list[str]:
    """Commands that work for who ran this: a person decides and says what holds for the project, agents do the rest.

    `named` is the option by which the actor was named, if it was.
    """
    agent = f"--task T-1{' --actor agent:coder-1' if actor.kind in {'human', 'system'} else named}"
    by_agents = [
        ("anything, as it happens", f'mnemarch log thought "..." {agent}'),
        ("what others should know", f'mnemarch remember "..." --cite test:NAME {agent}'),
        ("what makes it knowledge: your tests", f"mnemarch verify {agent} -- pytest"),
    ]
    if actor.kind == "human":
        steps = [
            ("what holds for everybody", f'mnemarch remember "..."{named}'),
            ("what is decided", f"mnemarch decide{named}"),
            *((f"an agent: {what}", step) for what, step in by_agents),
            ("what waits for you", f"mnemarch inbox{named}"),
        ]
    else:
        steps = by_agents
    steps.append(("in the next task", f'mnemarch recall "..."{named}'))
    return [line for what, step in steps for line in (f"# {what}", step)]


def _policy(call: Call) -> Answer:
    # From the settings alone: who may do what can be asked even if the store can't be opened.
    policy = noted(load(call.home.folder)).policy
    acts = {act: {level: sorted(kinds) for level, kinds in levels.items()} for act, levels in policy.table.items()}
    return Answer(
        data={"acts": acts, "requires_validation": sorted(policy.validated_levels)}, text=lambda: _policy_text(policy)
    )


def _policy_text(policy: Policy) -> str:
    """Who may do it at which level, acts of which that is the same together: it fits any terminal."""
    from mnemarch.model.caller import ActorKind, Level
    from mnemarch.policy.permissions import Deed

    def cell(deed: Deed, level: Level) -> str:
        allowed = [str(kind) for kind in ActorKind if policy.allows(kind, deed, level)]
        who = "anyone" if len(allowed) == len(ActorKind) else " ".join(allowed) or "nobody"
        return f"{who} ✓" if deed is Deed.WRITE and policy.requires_validation(level) else who

    alike: dict[tuple[str, ...], list[str]] = {}
    for deed in Deed:
        alike.setdefault(tuple(cell(deed, level) for level in Level), []).append(str(deed))
    lines = []
    for cells, deeds in alike.items():
        lines.append(show.wrapped(", ".join(deeds), ""))
        levels_of: dict[str, list[str]] = {}
        for who, level in zip(cells, Level, strict=True):
            levels_of.setdefault(who, []).append(str(level))
        lines += [f"  {_levels(levels):<{_LEVELS_CHARS}}  {who}" for who, levels in levels_of.items()]
    legend = "✓ only what a test was seen to show, or a person vouches for, may be written here (R21)"
    return "\n".join([*lines, "", show.wrapped(legend, "")])


def _levels(levels: list[str]) -> str:
    from mnemarch.model.caller import Level

    return "at every level" if len(levels) == len(Level) else ", ".join(levels)


def _demo(call: Call) -> Answer:
    from mnemarch.interfaces.demo import run

    options = call.options
    events = options.events if options.events is not None else _DEMO_EVENTS_FAST if options.fast else _DEMO_EVENTS
    folder = os.path.realpath(options.keep) if options.keep else None
    proofs, unit_id = run(keep=folder, agents=options.agents, events=events, fast=options.fast, aside=call.places.json)
    is_proven = all(proof.ok for proof in proofs)
    return Answer(
        data={"ok": is_proven, "folder": folder, "proofs": proofs},
        text=lambda: _after_demo(folder, unit_id),
        exit_code=DONE if is_proven else REFUSED,
    )


def _after_demo(folder: str | None, unit_id: str) -> str:
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


def _hook(call: Call) -> Answer:
    from mnemarch.interfaces.hook import run

    run(["--host", call.options.host] if call.options.host else [], is_timed=False)
    return Answer(None, lambda: "", is_printed=True)


_HOST = Parameter("host", WORDS, "claude-code, codex, copilot, gemini, opencode, cursor or vscode", None)
COMMANDS = {
    "demo": Command(
        *help_of("demo"),
        _demo,
        (
            Parameter("keep", PATH, "leave the memory in this new folder, to look around in", None, metavar="DIR"),
            Parameter("agents", NUMBER, "how many agents (default: 5)", 5),
            Parameter("events", NUMBER, f"log entries of each (default: {_DEMO_EVENTS})", None),
            Parameter("fast", FLAG, f"no pauses, and {_DEMO_EVENTS_FAST} log entries each", False),
        ),
    ),
    "init": Command(*help_of("init"), _init, begins_memory=True),
    "policy": Command(*help_of("policy"), _policy),
    "hook": Command(*help_of("hook"), _hook, (_HOST,)),
}

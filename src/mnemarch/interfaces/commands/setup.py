"""`init`, `doctor` and `policy`: what there is here, whether it works, and who may do what."""

from __future__ import annotations

import os
import shlex

from mnemarch.errors import MnemarchError, NotFound
from mnemarch.interfaces import show
from mnemarch.interfaces.command import DONE, STORE_TROUBLE, Answer, Command
from mnemarch.interfaces.elsewhere import elsewhere

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser

    from mnemarch.interfaces.command import Call
    from mnemarch.model.caller import Actor
    from mnemarch.model.outcome import Finding
    from mnemarch.policy.permissions import Policy


_LEVELS_CHARS = len("task, worktree, project")


def _nothing_more(parser: ArgumentParser) -> None:
    """These take only who and where."""


def _init(call: Call) -> Answer:
    from mnemarch.code.home import FOLDER

    place = os.path.join(call.home.folder, FOLDER)
    known = os.path.exists(os.path.join(place, "memory.db"))
    seat = call.seat
    events = call.memory.stats().events
    notes = elsewhere(call)
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
                ("memory", f"{place} ({f'{events:,} events' if known else 'new'}; git ignores it)"),
                ("project", seat.scope.project),
                ("worktree", seat.scope.worktree or "none: this is no git repository"),
                ("you", seat.actor),
            ]
        )
        named = f" --actor {shlex.quote(str(seat.actor))}" if call.options.actor else ""
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
        ("what makes it knowledge", f"mnemarch verify --passed --test NAME {agent}"),
    ]
    if actor.kind == "human":
        word = f"--level project --cite {shlex.quote(f'human:{actor.id}')}{named}"
        steps = [
            ("what holds for everybody", f'mnemarch remember "..." {word}'),
            ("what is decided", f"mnemarch decide{named}"),
            *((f"an agent: {what}", step) for what, step in by_agents),
        ]
    else:
        steps = by_agents
    steps.append(("in the next task", f'mnemarch recall "..."{named}'))
    return [line for what, step in steps for line in (f"# {what}", step)]


def _doctor(call: Call) -> Answer:
    from mnemarch.interfaces.hints import for_command_line

    findings = _examined(call)

    def text() -> str:
        lines = []
        for finding in findings:
            lines.append(f"{'✓' if finding.ok else '✗'} {show.clean(finding.what)}")
            if finding.hint:
                lines.append(f"    {show.clean(for_command_line(finding.hint))}")
        return "\n".join(lines)

    healthy = all(finding.ok for finding in findings)
    return Answer(data=findings, text=text, exit_code=DONE if healthy else STORE_TROUBLE)


def _examined(call: Call) -> list[Finding]:
    """The doctor's findings; a memory that can't even be opened is one, and one that is not there is none."""
    from mnemarch.model.outcome import Finding

    try:
        memory = call.memory
    except NotFound:
        raise
    except MnemarchError as error:
        return [Finding(ok=False, what=error.message, hint=error.hint)]
    findings = memory.doctor()
    # It is no fault of the memory, so it fails nothing.
    return [*findings, *(Finding(ok=True, what=note) for note in elsewhere(call))]


def _policy(call: Call) -> Answer:
    from mnemarch.config import load

    # From the settings alone: who may do what can be asked even if the store can't be opened.
    policy = load(call.home.folder).policy
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
    legend = "✓ only verified knowledge may be written here: it cites a passed test or a human's word (R2)"
    return "\n".join([*lines, "", show.wrapped(legend, "")])


def _levels(levels: list[str]) -> str:
    from mnemarch.model.caller import Level

    return "at every level" if len(levels) == len(Level) else ", ".join(levels)


COMMANDS = {
    "init": Command(
        description="Make the memory of this repository (or folder) and say what was found. An existing one stays.",
        examples=("mnemarch init", "mnemarch init --store /srv/team-memory"),
        arguments=_nothing_more,
        run=_init,
        begins_memory=True,
    ),
    "doctor": Command(
        description=(
            "Look the memory over, with a real write and a real recall, and say what is wrong and what to do.\n"
            "Exit code 3 if anything failed."
        ),
        examples=("mnemarch doctor", "mnemarch doctor --json"),
        arguments=_nothing_more,
        run=_doctor,
    ),
    "policy": Command(
        description="The permission table in force: who may do what at which level. mnemarch.toml can tighten it.",
        examples=("mnemarch policy", "mnemarch policy --json"),
        arguments=_nothing_more,
        run=_policy,
    ),
}

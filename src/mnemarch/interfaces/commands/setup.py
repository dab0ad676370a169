"""`init` and `policy`: what there is here, and who may do what."""

from __future__ import annotations

import os
import shlex

from mnemarch.interfaces import show
from mnemarch.interfaces.command import Answer, Command
from mnemarch.interfaces.empty_scope_hint import empty_scope_hint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.interfaces.command import Call
    from mnemarch.model.caller import Actor
    from mnemarch.policy.permissions import Policy


_LEVELS_CHARS = len("task, worktree, project")


def _init(call: Call) -> Answer:
    from mnemarch.code.home import FOLDER

    place = os.path.join(call.home.folder, FOLDER)
    known = os.path.exists(os.path.join(place, "memory.db"))
    seat = call.seat
    events = call.memory.stats().events
    notes = empty_scope_hint(call)
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
        "Make the memory of this repository (or folder) and say what was found. An existing one stays.",
        ("mnemarch init", "mnemarch init --store /srv/team-memory"),
        _init,
        begins_memory=True,
    ),
    "policy": Command(
        "Show who may do what at which level: the permission table in force. mnemarch.toml can tighten it.",
        ("mnemarch policy", "mnemarch policy --json"),
        _policy,
    ),
}

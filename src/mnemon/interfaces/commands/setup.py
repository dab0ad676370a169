"""`init`, `doctor` and `policy`: what there is here, whether it works, and who may do what."""

from __future__ import annotations

import os

from mnemon.errors import MnemonError
from mnemon.interfaces import show
from mnemon.interfaces.command import DONE, STORE_TROUBLE, Answer, Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser

    from mnemon.interfaces.command import Call
    from mnemon.model.outcome import Finding
    from mnemon.policy.permissions import Policy


def _nothing_more(parser: ArgumentParser) -> None:
    """These take only who and where."""


def _init(call: Call) -> Answer:
    from mnemon.code.home import FOLDER

    place = os.path.join(call.home.folder, FOLDER)
    known = os.path.exists(os.path.join(place, "memory.db"))
    seat = call.seat
    events = call.memory.stats().events
    made = {
        "memory": place,
        "new": not known,
        "events": events,
        "org": seat.scope.org,
        "project": seat.scope.project,
        "worktree": seat.scope.worktree,
        "root": call.home.root,
        "actor": seat.actor,
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
        steps = (
            'mnemon log thought "..." --task T-1       anything, as it happens',
            'mnemon remember "..." --task T-1          what others should know',
            "mnemon verify --passed --test NAME --task T-1",
            'mnemon recall "..."                       in the next task',
        )
        return "\n".join([found, "", "next", *(f"  {step}" for step in steps)])

    return Answer(data=made, text=text)


def _doctor(call: Call) -> Answer:
    findings = _examined(call)

    def text() -> str:
        lines = []
        for finding in findings:
            lines.append(f"{'✓' if finding.ok else '✗'} {show.clean(finding.what)}")
            if finding.hint:
                lines.append(f"    {show.clean(finding.hint)}")
        return "\n".join(lines)

    healthy = all(finding.ok for finding in findings)
    return Answer(data=findings, text=text, exit_code=DONE if healthy else STORE_TROUBLE)


def _examined(call: Call) -> list[Finding]:
    """The doctor's findings; a memory that can't even be opened is one."""
    from mnemon.model.outcome import Finding

    try:
        memory = call.memory
    except MnemonError as error:
        return [Finding(ok=False, what=error.message, hint=error.hint)]
    return memory.doctor()


def _policy(call: Call) -> Answer:
    from mnemon.config import load

    # From the settings alone: who may do what can be asked even if the store can't be opened.
    policy = load(call.home.folder).policy
    acts = {act: {level: sorted(kinds) for level, kinds in levels.items()} for act, levels in policy.table.items()}
    return Answer(
        data={"acts": acts, "requires_validation": sorted(policy.validated_levels)}, text=lambda: _policy_table(policy)
    )


def _policy_table(policy: Policy) -> str:
    from mnemon.model.actor import ActorKind
    from mnemon.model.scope import Level
    from mnemon.policy.permissions import Deed

    def cell(deed: Deed, level: Level) -> str:
        allowed = [str(kind) for kind in ActorKind if policy.allows(kind, deed, level)]
        who = "anyone" if len(allowed) == len(ActorKind) else " ".join(allowed) or "nobody"
        return f"{who} ✓" if deed is Deed.WRITE and policy.requires_validation(level) else who

    rows = [[str(deed), *(cell(deed, level) for level in Level)] for deed in Deed]
    listed = show.table(["act", *map(str, Level)], rows, "")
    return f"{listed}\n\n✓ only verified knowledge may be written here: it cites a passed test or a human's word (R2)"


COMMANDS = {
    "init": Command(
        description="Make the memory of this repository (or folder) and say what was found. An existing one stays.",
        examples=("mnemon init", "mnemon init --store /srv/team-memory"),
        arguments=_nothing_more,
        run=_init,
    ),
    "doctor": Command(
        description=(
            "Look the memory over, with a real write and a real recall, and say what is wrong and what to do.\n"
            "Exit code 3 if anything failed."
        ),
        examples=("mnemon doctor", "mnemon doctor --json"),
        arguments=_nothing_more,
        run=_doctor,
    ),
    "policy": Command(
        description="The permission table in force: who may do what at which level. mnemon.toml can tighten it.",
        examples=("mnemon policy", "mnemon policy --json"),
        arguments=_nothing_more,
        run=_policy,
    ),
}

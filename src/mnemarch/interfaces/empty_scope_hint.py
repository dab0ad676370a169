"""What else a memory holds, for a seat that sees nothing: its project may have had another name (decision 13)."""

from __future__ import annotations

import os

from mnemarch.model.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.interfaces.command import Call

# The doctor leaves one unit in a place of its own.
_UNITS_OF_DOCTOR = 1
_HOW_NAMED = "A project is named by its git remote, or else by its folder; if that changed"


def empty_scope_hint(call: Call) -> list[str]:
    """That there is knowledge in other places while none can be seen from here: in a sentence or two, or nothing."""
    seat = call.seat
    if seat.units(limit=1):
        return []
    units = call.memory.stats().units
    if units <= _UNITS_OF_DOCTOR:
        return []
    of = "1 unit" if units == 1 else f"{units:,} units"
    scope = str(seat.scope)
    former = _former_name(call)
    named = f', and project "{former}", which is how this folder is called, has some' if former else ""
    return [
        f"Nothing can be seen from {scope}, but this memory holds {of}{named}. {_HOW_NAMED}, put the old name into"
        f' mnemarch.toml: project = "{former or "NAME"}".'
    ]


def _former_name(call: Call) -> str:
    """The folder's name, if there is knowledge under it: what a project was called before it had a remote."""
    name, seat = os.path.basename(call.home.folder), call.seat
    if not name.strip() or name == seat.scope.project:
        return ""
    there = call.memory.seat(seat.actor, replace(seat.scope, project=name, task=None))
    return name if any(unit.scope.project == name for unit in there.units(limit=100)) else ""

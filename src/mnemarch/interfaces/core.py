"""Core memory in words."""

from __future__ import annotations

from mnemarch.interfaces.show import INDENT, age, clean, json_text, table
from mnemarch.model.stamps import short_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from mnemarch.interfaces.command import Call
    from mnemarch.learning.core import CoreSection, Turn
    from mnemarch.model.unit import Unit


def _section(section: CoreSection, _: Call) -> str:
    state = f"version {section.version}" if section.version else "empty"
    lines = [f"{clean(section.name)}  {state}, {section.room:,} characters left"]
    for unit in section.entries:
        lines.append(f"{INDENT}{short_id(unit.id)}  {unit.level}, {clean(unit.author)}, {age(unit.recorded_at)}")
        lines += [f"{INDENT * 2}{clean(line)}" for line in unit.content.splitlines()]
    return "\n".join(lines)


def _history(units: Sequence[Unit], _: Call) -> str:
    rows = [
        (
            short_id(unit.id),
            unit.attributes["number"],
            unit.status,
            unit.level,
            unit.author,
            age(unit.recorded_at),
            unit.content,
        )
        for unit in units
    ]
    return table(("id", "version", "status", "level", "by", "when", "text"), rows, "Nothing was ever written there.")


def _turns(turns: Sequence[Turn], _: Call) -> str:
    rows = [(short_id(turn.id), turn.kind, turn.actor, age(turn.at), turn.text) for turn in turns]
    return table(("id", "kind", "by", "when", "text"), rows, "Nothing found.")


TEXTS: dict[str, Callable[[Any, Call], str]] = {
    "CoreSection": _section,
    "list[CoreSection]": lambda sections, call: "\n\n".join(_section(section, call) for section in sections),
    "core.history": _history,
    "list[Turn]": _turns,
    "core.tools": lambda tools, _: json_text(tools),
    "str": lambda text, _: clean(text),
}

"""How it looks what was learned: what was made of an entry, episodes, and core memory."""

from __future__ import annotations

from mnemarch.interfaces.show import INDENT, age, clean, json_text, quoted, said, short, table, unit_line
from mnemarch.interfaces.text import redactions
from mnemarch.model.stamps import short_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from mnemarch.interfaces.command import Call
    from mnemarch.learning.core import CoreSection, Turn
    from mnemarch.model.outcome import Ingested
    from mnemarch.model.search import Recalled
    from mnemarch.model.unit import Unit

_LINE_CHARS = 240


def _episodes(items: Sequence[Recalled], call: Call) -> str:
    error, query = call.options.error, call.options.query
    if not items and error:
        return f"No episode met {quoted(error.strip().splitlines()[-1])}, or anything like it."
    if not items:
        return f"No episode is about {quoted(query)}." if query else "No episodes yet: a verified task leaves one."
    lines = []
    for item in items:
        score = f"score {item.score:.2f}  " if item.why else ""
        lines.append(f"{item.label} {short_id(item.unit.id)}  {score}{age(item.unit.occurred_at)}")
        lines += [f"    {short(line, _LINE_CHARS)}" for line in item.unit.content.splitlines() if line.strip()]
        lines += [f"    note: {clean(note)}" for note in item.notes]
    return "\n".join(lines)


def _section(section: CoreSection, _: Call) -> str:
    state = f"version {section.version}" if section.version else "empty"
    lines = [f"{clean(section.name)}  {state}, {section.room:,} characters left"]
    for unit in section.entries:
        lines.append(f"{INDENT}{short_id(unit.id)}  {unit.level}, {clean(unit.author)}, {age(unit.recorded_at)}")
        lines += [f"{INDENT * 2}{clean(line)}" for line in unit.content.splitlines()]
    return "\n".join(lines)


def _history(units: Sequence[Unit], _: Call) -> str:
    rows = []
    for unit in units:
        rest = unit.status, unit.level, unit.author, age(unit.recorded_at), unit.content
        rows.append((short_id(unit.id), unit.attributes["number"], *rest))
    return table(("id", "version", "status", "level", "by", "when", "text"), rows, "Nothing was ever written there.")


def _turns(turns: Sequence[Turn], _: Call) -> str:
    rows = [(short_id(turn.id), turn.kind, turn.actor, age(turn.at), turn.text) for turn in turns]
    return table(("id", "kind", "by", "when", "text"), rows, "Nothing found.")


def ingested_text(told: Ingested, _: Call) -> str:
    unit, entry = told.unit, short_id(told.receipt.event_id)
    if unit is None:
        lines = [f"{_no_unit(told)}  {said(told.reason)}", f"  it stays in the log as entry {entry}"]
    else:
        times = sum(citation.kind == "log" for citation in unit.citations)
        lines = [unit_line(unit, str(unit.kind)), f"  from entry {entry}: {said(told.reason)}"]
        lines += [f"  said {times} times"] if times > 1 else []
    return "\n".join([*lines, *redactions(told.receipt)])


def _no_unit(told: Ingested) -> str:
    return "left out" if told.bucket == "LEFT_OUT" else f"no unit ({told.bucket.lower()})"


def _all_ingested(all_told: Sequence[Ingested], call: Call) -> str:
    new = [told for told in all_told if not told.receipt.duplicate]
    counts: dict[str, int] = {}
    for told in new:
        name = _no_unit(told) if told.unit is None else str(told.unit.kind)
        counts[name] = counts.get(name, 0) + 1
    known = len(all_told) - len(new)
    summed = ", ".join(f"{count} {name}" for name, count in counts.items()) or "nothing new"
    before = f" ({known:,} taken in before)" if known else ""
    return "\n".join([f"ingested  {summed}{before}", *(ingested_text(told, call) for told in new)])


TEXTS: dict[str, Callable[[Any, Call], str]] = {
    "Ingested": ingested_text,
    "list[Ingested]": _all_ingested,
    "episodes.search": _episodes,
    "CoreSection": _section,
    "list[CoreSection]": lambda sections, call: "\n\n".join(_section(section, call) for section in sections),
    "core.history": _history,
    "list[Turn]": _turns,
    "core.tools": lambda tools, _: json_text(tools),
    "str": lambda text, _: clean(text),
}

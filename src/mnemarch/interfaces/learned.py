"""What was learned, in words: episodes, core memory, lessons; and maintenance, also again and again."""

from __future__ import annotations

import json
import sys
import time

from mnemarch.errors import StoreUnavailable
from mnemarch.interfaces.command import Answer, answered
from mnemarch.interfaces.show import INDENT, age, clean, json_text, quoted, said, short, table, wrapped
from mnemarch.model.stamps import short_id
from mnemarch.policy.labels import label_of
from mnemarch.text.words import counted
from mnemarch.verbs.wire import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta
    from typing import Any

    from mnemarch.interfaces.command import Call
    from mnemarch.learning.core import CoreSection, Turn
    from mnemarch.model.search import Recalled
    from mnemarch.model.unit import Unit
    from mnemarch.model.upkeep import Maintained, Reflected
    from mnemarch.verbs.types import Verb

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
        said = unit.status, unit.level, unit.author, age(unit.recorded_at), unit.content
        rows.append((short_id(unit.id), unit.attributes["number"], *said))
    return table(("id", "version", "status", "level", "by", "when", "text"), rows, "Nothing was ever written there.")


def _turns(turns: Sequence[Turn], _: Call) -> str:
    rows = [(short_id(turn.id), turn.kind, turn.actor, age(turn.at), turn.text) for turn in turns]
    return table(("id", "kind", "by", "when", "text"), rows, "Nothing found.")


def _reflected(done: Reflected, _: Call) -> str:
    would = "would be " if done.dry_run else ""
    counts = f"{done.changed} {would}new or changed, {done.unchanged} unchanged, {len(done.retired)} {would}retired"
    lines = [f"reflected  {counted(done.episodes, 'episode')}; lessons: {counts}"]
    for unit in done.lessons:
        lines += ["", f"{label_of(unit)} {short_id(unit.id)}  {unit.attributes['form']}"]
        lines.append(wrapped(clean(unit.content), "  "))
    for unit in done.retired:
        lines += ["", f"retired  {short_id(unit.id)}  {said(unit.content)}"]
    return "\n".join([*lines, *([] if done.complete else ["", "There is more: mnemarch reflect goes on from here."])])


def _maintained(night: Maintained, _: Call) -> str:
    width = max(len(step.name) for step in night.steps)
    lines = [
        f"{'✓' if step.ok else '✗'} {step.name:<{width}}  {clean(step.says)} ({step.seconds:.1f} s)"
        for step in night.steps
    ]
    return "\n".join([*lines, *(["Nothing was changed."] if night.dry_run else [])])


def again_and_again(verb: Verb, call: Call, every: timedelta) -> Answer:
    """The verb now and then every so often, each answer printed when it is there; Ctrl-C ends it, a busy store not."""
    while True:
        try:
            answer = answered(verb, call)
            line = json.dumps(to_json(answer.data), ensure_ascii=False) if call.places.json else f"{answer.text()}\n"
            print(line, flush=True)
        except StoreUnavailable as error:
            print(f"mnemarch: {error}", file=sys.stderr, flush=True)
        time.sleep(every.total_seconds())


TEXTS: dict[str, Callable[[Any, Call], str]] = {
    "episodes.search": _episodes,
    "Reflected": _reflected,
    "Maintained": _maintained,
    "CoreSection": _section,
    "list[CoreSection]": lambda sections, call: "\n\n".join(_section(section, call) for section in sections),
    "core.history": _history,
    "list[Turn]": _turns,
    "core.tools": lambda tools, _: json_text(tools),
    "str": lambda text, _: clean(text),
}

"""Episodes in words."""

from __future__ import annotations

from mnemarch.interfaces.show import age, clean, quoted, short
from mnemarch.model.stamps import short_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from mnemarch.interfaces.command import Call
    from mnemarch.model.search import Recalled

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


TEXTS: dict[str, Callable[[Any, Call], str]] = {"episodes.search": _episodes}

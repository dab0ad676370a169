"""The tools of core memory (M19) as a model sees them: schemas, checks of the arguments, and answers."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from mnemarch.errors import InvalidInput
from mnemarch.learning.model import misfit
from mnemarch.model.outcome import Refused, Stored
from mnemarch.model.stamps import short_id
from mnemarch.text.prompt import entry, fenced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from mnemarch.learning.core import CoreSection, Turn
    from mnemarch.model.search import Recalled

_SHOWN_CHARS_MAX = 2_000
PAGE_ITEMS = 5


@cache
def _table() -> dict[str, dict[str, Any]]:
    listed = json.loads(Path(__file__).with_name("tools.json").read_text(encoding="utf-8"))
    return {tool["name"]: tool for tool in listed}


def description_of(name: str) -> str:
    return str(_table()[name]["description"])


def schemas(style: str, sections: Sequence[str]) -> list[dict[str, Any]]:
    """The schema of every tool, in one style of tool calling."""
    if style not in _STYLES:
        raise InvalidInput(f"{style!r} is no style of tool calling.", hint=f"Use one of: {', '.join(_STYLES)}.")
    return [_STYLES[style](tool["name"], tool["description"], _schema(tool, sections)) for tool in _table().values()]


def _schema(tool: Mapping[str, Any], sections: Sequence[str] = ()) -> dict[str, Any]:
    allowed = {"section": {"enum": list(sections)}} if sections else {}
    return {
        "type": "object",
        "properties": {name: field | allowed.get(name, {}) for name, field in tool["parameters"].items()},
        "required": list(tool["required"]),
        "additionalProperties": False,
    }


_STYLES: dict[str, Callable[[str, str, dict[str, Any]], dict[str, Any]]] = {
    "openai": lambda name, says, schema: {
        "type": "function",
        "function": {"name": name, "description": says, "parameters": schema},
    },
    "anthropic": lambda name, says, schema: {"name": name, "description": says, "input_schema": schema},
}


def checked_arguments(name: str, arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    """The arguments of a tool call, checked against its schema. OpenAI's clients pass JSON as text."""
    tool = _table().get(name)
    if tool is None:
        raise InvalidInput(f"There is no tool {name!r}.", hint=f"Call one of: {', '.join(_table())}.")
    hint = f"Call {name} with {', '.join(tool['parameters'])}."
    given: Any = arguments
    if isinstance(arguments, str):
        try:
            given = json.loads(arguments)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"The arguments of {name} are no JSON: {error}.", hint=hint) from None
    if problem := misfit(given, _schema(tool), name):
        raise InvalidInput(f"{problem}.", hint=hint)
    return dict(given)


# Answers for the model


def told(name: str, tool: Callable[..., Any], arguments: Mapping[str, Any]) -> str:
    """Call a tool and return the answer for the model."""
    page = arguments.get("page", 0)
    match name:
        case "core_memory_append" | "core_memory_replace":
            section: CoreSection = tool(**arguments)
            return f"Done. Section {section.name} has {section.room:,} characters left."
        case "archival_memory_insert":
            return _kept(tool(**arguments))
        case "archival_memory_search":
            found: Sequence[Recalled] = tool(**arguments)
            return _page([(f"{item.label} {short_id(item.unit.id)}", item.unit.content) for item in found], page)
    turns: Sequence[Turn] = tool(**arguments)
    return _page([(f"[{turn.kind.upper()}] {turn.at:%Y-%m-%d %H:%M} {turn.actor}", turn.text) for turn in turns], page)


def _kept(outcome: Stored | Refused) -> str:
    if isinstance(outcome, Refused):
        return f"Not kept. {outcome.reason}"
    said = "Known already" if outcome.merged else "Kept"
    opposed = [f"It contradicts something known: {each.reason}." for each in outcome.conflicts]
    return " ".join([f"{said} as {short_id(outcome.unit.id)}.", *opposed])


def _page(results: Sequence[tuple[str, str]], page: int) -> str:
    """A page of results, fenced as data."""
    if not results:
        return "Nothing more." if page else "Nothing found. Try other words."
    entries = [entry(head, text[:_SHOWN_CHARS_MAX] + "…" * (len(text) > _SHOWN_CHARS_MAX)) for head, text in results]
    return fenced(entries) + f"\nFor more, ask for page {page + 1}." * (len(results) == PAGE_ITEMS)

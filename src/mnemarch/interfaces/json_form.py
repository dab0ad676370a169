"""The JSON form of every value that the verbs answer with."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime

from mnemarch.model.caller import Actor
from mnemarch.model.citation import Citation
from mnemarch.model.closed import Names, Ranks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What a value can tell beyond its fields, and the fields that this makes superfluous.
_DERIVED = {
    "Unit": ("level", "confidence"),
    "Event": ("payload",),
    "Rebuild": ("same",),
    "Decision": (
        *("id", "root_id", "version", "strength", "domain", "is_active"),
        *("text", "reason", "override", "evidence"),
    ),
}
_LEFT_OUT = {"Event": ("body",)}


def to_json(value: Any) -> Any:
    """`value` in JSON types: enums as words, instants in ISO 8601 (UTC), actors and citations as they are typed."""
    if isinstance(value, Names | Ranks | Actor | Citation):
        return str(value)
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(name): to_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(to_json(item) for item in value)
    kind = type(value)
    names = [name for name in kind.__match_args__ if name not in _LEFT_OUT.get(kind.__name__, ())]
    return {name: to_json(getattr(value, name)) for name in (*names, *_DERIVED.get(kind.__name__, ()))}


def json_text(data: Any) -> str:
    """A JSON document for standard output. A terminal that can't show every character must not lose one in data."""
    import json

    ascii_only = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    return json.dumps(to_json(data), ensure_ascii=ascii_only, indent=2)

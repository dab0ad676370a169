"""Units that say exactly the same: what R6 merges by, looked up in one way."""

from __future__ import annotations

from mnemarch.model.unit import Kind
from mnemarch.text.canonical import canonical, canonical_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from mnemarch.model.unit import Unit
    from mnemarch.ports import Reader


def said_alike(reader: Reader, scope_keys: Sequence[str], content: str) -> list[Unit]:
    """Live units of these scopes with this canonical text, oldest first; a key that hits by chance does not count."""
    return _alike(reader.units_with_text(scope_keys, canonical_key(content)), content)


def once_said_alike(reader: Reader, scope_keys: Sequence[str], content: str) -> list[Unit]:
    """The same of units that were rejected, replaced or archived: what they said does not come back as if new."""
    return _alike(reader.units_gone_with_text(scope_keys, canonical_key(content)), content)


def _alike(found: Sequence[Unit], content: str) -> list[Unit]:
    text = canonical(content)
    return [unit for unit in found if canonical(unit.content) == text]


def is_same(unit: Unit, kind: Kind, domain: str, content: str, attributes: Mapping[str, Any]) -> bool:
    """Whether a unit that is said alike is the same thing. Evidence is a snapshot: each letter and tag counts (D1)."""
    if unit.kind is not kind or unit.domain != domain:
        return False
    return kind is not Kind.EVIDENCE or (unit.content == content and unit.attributes == attributes)


def twin_of(reader: Reader, unit: Unit, scope_key: str) -> Unit | None:
    """Another live unit in that scope that says the same, of the same kind and domain."""
    for other in said_alike(reader, [scope_key], unit.content):
        if other.id != unit.id and is_same(other, unit.kind, unit.domain, unit.content, unit.attributes):
            return other
    return None

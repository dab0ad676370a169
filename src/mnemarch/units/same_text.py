"""Units with the same canonical text, looked up in one way (R6)."""

from __future__ import annotations

from mnemarch.model.unit import Kind
from mnemarch.text.canonical import canonical, canonical_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from mnemarch.model.unit import Unit
    from mnemarch.ports import Reader


def live_with_same_text(reader: Reader, scope_keys: Sequence[str], content: str) -> list[Unit]:
    """Live units of these scopes with this canonical text, oldest first."""
    return [unit for unit in _with_same_text(reader, scope_keys, content) if unit.live]


def past_with_same_text(reader: Reader, scope_keys: Sequence[str], content: str) -> list[Unit]:
    """Rejected, replaced and archived units of these scopes with this canonical text, oldest first."""
    return [unit for unit in _with_same_text(reader, scope_keys, content) if not unit.live]


def _with_same_text(reader: Reader, scope_keys: Sequence[str], content: str) -> list[Unit]:
    """Only units whose text is really the same: two texts may share a key by chance."""
    text = canonical(content)
    units = reader.units_with_text(scope_keys, canonical_key(content))
    return [unit for unit in units if canonical(unit.content) == text]


def is_same(unit: Unit, kind: Kind, domain: str, content: str, attributes: Mapping[str, Any]) -> bool:
    """Whether a unit with the same text is the same unit. Evidence is a snapshot: every letter and tag counts (D1)."""
    if unit.kind is not kind or unit.domain != domain:
        return False
    return kind is not Kind.EVIDENCE or (unit.content == content and unit.attributes == attributes)


def twin_of(reader: Reader, unit: Unit, scope_key: str) -> Unit | None:
    """Another live unit of that scope with the same text, kind and domain."""
    for other in live_with_same_text(reader, [scope_key], unit.content):
        if other.id != unit.id and is_same(other, unit.kind, unit.domain, unit.content, unit.attributes):
            return other
    return None

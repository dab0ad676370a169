"""Units with the same canonical text, and what a rejection of it means (R4, R5, R6)."""

from __future__ import annotations

from mnemarch.model.caller import ActorKind
from mnemarch.model.event import EventType
from mnemarch.model.unit import Kind, Status
from mnemarch.policy.promotion import Refusal
from mnemarch.text.canonical import merge_key, mergeable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from mnemarch.log.act import Act
    from mnemarch.model.event import Event
    from mnemarch.model.unit import Claim, Unit
    from mnemarch.stores.sql.reader import Reader


def live_with_same_text(reader: Reader, scope_keys: Sequence[str], content: str) -> list[Unit]:
    """Live units of these scopes with this canonical text, oldest first."""
    return [unit for unit in _with_same_text(reader, scope_keys, content) if unit.live]


def past_with_same_text(reader: Reader, scope_keys: Sequence[str], content: str) -> list[Unit]:
    """Rejected, replaced and archived units of these scopes with this canonical text, oldest first."""
    return [unit for unit in _with_same_text(reader, scope_keys, content) if not unit.live]


def _with_same_text(reader: Reader, scope_keys: Sequence[str], content: str) -> list[Unit]:
    """Only units whose text is really the same: two texts may share a key by chance."""
    text = mergeable(content)
    units = reader.units_with_text(scope_keys, merge_key(content))
    return [unit for unit in units if mergeable(unit.content) == text]


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


RULE = "R5"
_LEAVING = frozenset({EventType.UNIT_REJECTED, EventType.UNIT_ARCHIVED})
_VOUCHING = frozenset({EventType.UNIT_REMEMBERED, EventType.UNIT_MERGED, EventType.UNIT_CITED, EventType.UNIT_APPROVED})


def rejection_of(reader: Reader, unit: Unit) -> Event | None:
    """The rejection that took a unit out of recall, if it was one that did."""
    if unit.status is not Status.ARCHIVED:
        return None
    left = [event for event in reader.events_of_subject(unit.id) if event.type in _LEAVING]
    return left[-1] if left and left[-1].type is EventType.UNIT_REJECTED else None


def rejected_alike(reader: Reader, scope_keys: Sequence[str], said: Claim | Unit) -> list[tuple[Unit, Event]]:
    """The units of these scopes that say this and were rejected, each with its rejection.

    Another kind or domain makes no other statement of it. Evidence alone is a snapshot, which is no statement (D1).
    """
    return _rejected(reader, past_with_same_text(reader, scope_keys, said.content), said)


def _rejected(reader: Reader, units: Sequence[Unit], said: Claim | Unit) -> list[tuple[Unit, Event]]:
    rejections = ((unit, rejection_of(reader, unit)) for unit in units if _says_it(unit, said))
    return [(unit, event) for unit, event in rejections if event is not None]


def _rejected_by_people(act: Act, said: Claim | Unit) -> list[tuple[Unit, Event]]:
    """What a person rejected anywhere in the project is rejected for all of it (R4)."""
    text, visible = mergeable(said.content), act.caller.visible_keys
    units = act.transaction.units_saying(act.caller.stream, merge_key(said.content))
    below = [
        unit for unit in units if not unit.live and unit.scope.key not in visible and mergeable(unit.content) == text
    ]
    found = _rejected(act.transaction, below, said) if below else []
    return [(unit, event) for unit, event in found if event.actor.kind is ActorKind.HUMAN]


def _says_it(unit: Unit, said: Claim | Unit) -> bool:
    assert isinstance(said.kind, Kind)
    if Kind.EVIDENCE in {unit.kind, said.kind}:
        return is_same(unit, said.kind, said.domain, said.content, said.attributes)
    return True


def refusal_to_repeat(act: Act, said: Claim | Unit, unit_id: str | None = None) -> Refusal | None:
    """Why this may not be trusted, or None: the same was rejected, and no person has spoken for `unit_id` since."""
    visible = rejected_alike(act.transaction, act.caller.visible_keys, said)
    for unit, rejection in (*visible, *_rejected_by_people(act, said)):
        if unit_id is None or not _is_vouched_for(act.transaction, unit_id, rejection):
            why = (rejection.payload or {}).get("reason", "the reason was erased")
            return Refusal(
                RULE,
                f"{rejection.actor} rejected this on {rejection.recorded_at:%Y-%m-%d} as unit {unit.id}: {why}.",
                f"If it holds after all, a person can approve unit {unit.id}.",
            )
    return None


def _is_vouched_for(reader: Reader, unit_id: str, rejection: Event) -> bool:
    """Whether a person claimed, cited or approved the unit after that rejection."""
    return any(
        event.type in _VOUCHING and event.actor.kind is ActorKind.HUMAN
        for event in reader.events_of_subject(unit_id, after=rejection.position)
    )

"""A no stands until it is taken back: what says the same as a rejected unit takes a person's word (R4, R5)."""

from __future__ import annotations

from mnemarch.model.caller import ActorKind
from mnemarch.model.event import EventType
from mnemarch.model.unit import Kind, Status
from mnemarch.policy.promotion import Refusal
from mnemarch.units.same_text import is_same, past_with_same_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mnemarch.log.act import Act
    from mnemarch.model.event import Event
    from mnemarch.model.unit import Claim, Unit
    from mnemarch.ports import Reader

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
    alike = [unit for unit in past_with_same_text(reader, scope_keys, said.content) if _says_it(unit, said)]
    found = ((unit, rejection_of(reader, unit)) for unit in alike)
    return [(unit, event) for unit, event in found if event is not None]


def _says_it(unit: Unit, said: Claim | Unit) -> bool:
    assert isinstance(said.kind, Kind)
    if Kind.EVIDENCE in {unit.kind, said.kind}:
        return is_same(unit, said.kind, said.domain, said.content, said.attributes)
    return True


def refusal_to_repeat(act: Act, said: Claim | Unit, unit_id: str | None = None) -> Refusal | None:
    """Why this may not be trusted, or None: the same was rejected, and no person has spoken for `unit_id` since."""
    for unit, rejection in rejected_alike(act.transaction, act.presence.visible_keys, said):
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

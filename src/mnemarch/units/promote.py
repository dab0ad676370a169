"""Moves units to a wider level, through the gate."""

from __future__ import annotations

from mnemarch.lazy import Any
from mnemarch.log.act import Act, receipt_for
from mnemarch.model.caller import ActorKind, Level, Scope
from mnemarch.model.decision import version_key_of
from mnemarch.model.event import EventType
from mnemarch.model.outcome import Refused, Stored
from mnemarch.model.unit import ACCEPTED, KEPT_AS, TRUSTED, Status, Unit
from mnemarch.policy.permissions import Deed
from mnemarch.policy.promotion import Refusal, carries, refusal_to_promote
from mnemarch.units.conflicts import with_open_disputes
from mnemarch.units.same_text import refusal_to_repeat, twin_of
from mnemarch.units.status import inherit, publish_if_reused, retire


def promote(act: Act, unit_id: str, target: Level, expected_version: int | None) -> Stored | Refused:
    """Move a unit to a wider level and open the conflicts it has there. If it has a twin there, the twin absorbs it."""
    unit = act.changeable_unit(unit_id, expected_version)
    scope = act.caller.scope.at(target)
    twin = twin_of(act.transaction, unit, scope.key)
    refusal = _refusal(act, unit, target, twin)
    if refusal is not None:
        payload: dict[str, Any] = {"to": str(target), "rule": refusal.rule, "reason": refusal.reason}
        event, _ = act.record(EventType.UNIT_HELD, payload, subject=unit_id)
        return refusal.answer(receipt_for(event), unit_id)
    return _moved(act, unit, scope, twin)


def _moved(act: Act, unit: Unit, scope: Scope, twin: Unit | None, **changes: Any) -> Stored:
    if twin is not None:
        return absorb(act, unit, twin)
    payload = {"from": unit.scope.segments, "set": {"scope": scope.segments} | changes}
    event, _ = act.record(EventType.UNIT_PROMOTED, payload, subject=unit.id)
    return with_open_disputes(act, Stored(unit=act.known_unit(unit.id), receipt=receipt_for(event)))


def accept_for_project(act: Act, unit_id: str) -> Stored | Refused:
    """Move an unverified claim to the project, labelled with the actor who accepted it (R20)."""
    unit = act.permitted_unit(unit_id, Deed.APPROVE, None)
    if unit.status in TRUSTED and carries(unit):
        return promote(act, unit_id, Level.PROJECT, None)
    refusal = refusal_to_repeat(act, unit, unit.id)
    if refusal is not None:
        return refusal.answer(unit_id=unit_id)
    scope = act.caller.scope.at(Level.PROJECT)
    twin = twin_of(act.transaction, unit, scope.key)
    kept = dict(unit.attributes) | {KEPT_AS: ACCEPTED, "kept_by": act.caller.actor.id}
    # A test that was only reported, or is not about the claim, does not verify it for the project.
    return _moved(act, unit, scope, twin, attributes=kept, status=str(Status.HYPOTHESIS), proof=None)


def _refusal(act: Act, unit: Unit, target: Level, twin: Unit | None) -> Refusal | None:
    """Why the unit may not move, or None. A unit with a twin is not checked for rejected text: its text is there."""
    actor = act.caller.actor
    refusal = refusal_to_promote(unit, target, actor, act.config.policy)
    if refusal is None and version_key_of(unit) is not None:
        # A decision is validated by its commit. Its level is up to actors that may decide at that level (R4).
        may_decide = act.config.policy.allows(actor.kind, Deed.DECIDE, target)
        return None if may_decide else Refusal("R4", f"{actor} may not decide at {target} scope.", "A person can.")
    if refusal is None and twin is None and actor.kind is not ActorKind.HUMAN:
        refusal = refusal_to_repeat(act, unit, unit.id)
    return refusal


def absorb(
    act: Act, unit: Unit, twin: Unit, reason: str = "promoted into the unit that says the same at the wider level"
) -> Stored:
    """Merge a unit into its twin at a wider level: the twin gets its evidence, voices and status."""
    payload: dict[str, Any] = {
        "from": unit.id,
        "cite": [citation.to_json() for citation in unit.citations],
        "voices": [source.to_json() for source in unit.provenance],
    } | _reuses(act, unit, twin)
    event, _ = act.record(EventType.UNIT_MERGED, payload, subject=twin.id)
    inherit(act, twin, unit)
    retire(act, unit, twin.id, reason)
    after = publish_if_reused(act, act.known_unit(twin.id))
    return Stored(unit=after, receipt=receipt_for(event), merged=True)


def _reuses(act: Act, unit: Unit, twin: Unit) -> dict[str, Any]:
    """Fields that move the reuses of a unit to its twin. A task that reused both counts once (Rule 3)."""
    known = {use.task_key for use in act.transaction.uses_of_unit(twin.id) if use.credited}
    more = [use.task_key for use in act.transaction.uses_of_unit(unit.id) if use.credited and use.task_key not in known]
    return {"reused_by": more, "set": {"uses": twin.uses + len(more)}} if more else {}

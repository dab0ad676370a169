"""How a unit leaves recall and comes back: archived, pruned, revived (R13)."""

from __future__ import annotations

from mnemarch.errors import Conflict, InvalidInput
from mnemarch.model.caller import Actor, Presence
from mnemarch.model.event import EventType
from mnemarch.model.outcome import Pruned
from mnemarch.model.unit import Kind, Status
from mnemarch.policy.permissions import Deed
from mnemarch.policy.retention import PRUNED_KINDS, prunable
from mnemarch.units.same_text import twin_of
from mnemarch.units.status import change, raise_by_evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.log.act import Act, Ledger
    from mnemarch.model.unit import Unit


def archive(act: Act, unit_id: str, reason: str, expected_version: int | None, deed: Deed = Deed.ARCHIVE) -> Unit:
    """Take a unit out of recall; nothing is lost."""
    unit = act.permitted_unit(unit_id, deed, expected_version)
    if unit.status is Status.ARCHIVED:
        return unit
    changes = {"status": str(Status.ARCHIVED), "archived_from": str(unit.status), "archive_reason": reason}
    return change(act, EventType.UNIT_ARCHIVED, unit, {"reason": reason, "set": changes})


def pruned(log: Ledger, *, dry_run: bool) -> Pruned:
    """Archive old units of little worth (G24), each in an act of its own; a dry run only says which."""
    found = log.store.read(lambda reader: list(reader.units_of_kinds([Kind(name) for name in sorted(PRUNED_KINDS)])))
    old, kept = prunable(found, log.clock(), log.config.retention)
    reason = "retention: old and of little worth (G24)"
    for unit in () if dry_run else old:
        caller = Presence(Actor.system("retention"), unit.scope)
        log.act(caller, lambda act, unit=unit: archive(act, unit.id, reason, None, Deed.PRUNE))  # type: ignore[misc]
    return Pruned(units=tuple(unit.id for unit in old), kept=kept, dry_run=dry_run)


def revive(act: Act, unit_id: str, reason: str, expected_version: int | None) -> Unit:
    """Bring an archived unit back to the status it had."""
    unit = act.permitted_unit(unit_id, Deed.REVIVE, expected_version)
    if unit.status is not Status.ARCHIVED:
        raise InvalidInput(
            f"Unit {unit_id} is {unit.status}, not archived.", hint="Only archived units can be revived."
        )
    _refuse_twin(act, unit)
    changes = {"status": str(unit.archived_from or Status.HYPOTHESIS), "archived_from": None, "archive_reason": None}
    return raise_by_evidence(act, change(act, EventType.UNIT_REVIVED, unit, {"reason": reason, "set": changes}))


def _refuse_twin(act: Act, unit: Unit) -> None:
    """One fact, one unit: what was said again meanwhile lives already."""
    other = twin_of(act.transaction, unit, unit.scope.key)
    if other is not None:
        raise Conflict(
            f"Unit {unit.id} can't be revived: {other.id} says the same and is live.",
            hint="Use the live one.",
            actual_version=unit.version,
            current=other,
            proposed=unit,
        )

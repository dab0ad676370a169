"""How units leave recall and what takes their place: superseded, resolved, archived, pruned, revived (R8, R13)."""

from __future__ import annotations

from mnemarch.errors import Conflict, Hint, InvalidInput, NotAllowed, NotFound
from mnemarch.model.caller import Actor, Caller, checked_id
from mnemarch.model.event import EventType
from mnemarch.model.outcome import Pruned
from mnemarch.model.stamps import micros
from mnemarch.model.unit import Kind, LinkType, Signal, Status
from mnemarch.policy.permissions import Deed
from mnemarch.policy.promotion import refusal_to_replace
from mnemarch.policy.retention import PRUNED_KINDS, prunable
from mnemarch.units.conflicts import dispute_from, open_links
from mnemarch.units.same_text import twin_of
from mnemarch.units.status import change, raise_by_evidence, signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mnemarch.log.act import Act, Log
    from mnemarch.model.outcome import Dispute
    from mnemarch.model.unit import Link, Unit
    from mnemarch.stores.sql.reader import Reader

_CHAIN_MAX = 32


def successors(reader: Reader, units: Iterable[Unit]) -> dict[str, Unit]:
    """What replaced these units, and what replaced that, by id."""
    known: dict[str, Unit] = {}
    waiting = {unit.superseded_by for unit in units if unit.superseded_by}
    for _ in range(_CHAIN_MAX):
        if not waiting:
            break
        rows = reader.units(sorted(waiting))
        known |= rows
        waiting = {unit.superseded_by for unit in rows.values() if unit.superseded_by}.difference(known)
    return known


def supersede(
    act: Act, new_id: str, old_id: str, reason: str, commit: str | None, expected_version: int | None
) -> Unit:
    """Put `new` in the place of `old`: both change in this one act, and only one successor can win."""
    if new_id == old_id:
        raise InvalidInput("A unit can't supersede itself.", hint="Remember the new content first, then supersede.")
    new = act.changeable_unit(new_id, None)
    old = act.changeable_unit(old_id, None)
    if any(unit.kind is Kind.DECISION and "root" in unit.attributes for unit in (new, old)):
        raise InvalidInput(
            "A decision is replaced by its next version, not by another unit (D4).",
            hint=Hint("revise the decision"),
        )
    act.require(Deed.SUPERSEDE, old)
    if old.superseded_by is not None:
        raise Conflict(
            f"Unit {old_id} (version {old.version}) was already superseded by {old.superseded_by}.",
            hint="Read what replaced it and supersede that, or resolve the two.",
            expected_version=expected_version,
            actual_version=old.version,
            current=act.transaction.unit(old.superseded_by),
            proposed=new,
        )
    act.check_version(old, expected_version, proposed=new)
    if not new.live:
        raise InvalidInput(
            f"Unit {new_id} is {new.status} and can't replace another.", hint="Revive it, or use a live one."
        )
    return _replace(act, new, old, reason, commit)


def _replace(act: Act, new: Unit, old: Unit, reason: str, commit: str | None) -> Unit:
    refusal = refusal_to_replace(new, old, act.config.policy)
    if refusal is not None:
        raise NotAllowed(refusal.reason, rule=refusal.rule, hint=refusal.hint)
    changes = {
        "status": str(Status.DEPRECATED),
        "superseded_by": new.id,
        "contradiction_note": reason,
        "valid_to": micros(max(act.now, old.occurred_at)),
        "valid_to_commit": commit,
        "superseded_from": str(old.status),
    }
    change(act, EventType.UNIT_SUPERSEDED, old, {"new": new.id, "reason": reason, "set": changes})
    gained = {"supersedes": old.id, "valid_from_commit": new.valid_from_commit or commit}
    successor = change(act, EventType.UNIT_SUPERSEDING, new, {"old": old.id, "reason": reason, "set": gained})
    for link in act.transaction.links_of(old.id):
        if link.open and new.id in {link.source, link.target}:
            act.record(EventType.LINK_RESOLVED, {"link": link.id, "winner": new.id, "reason": reason}, subject=link.id)
    open_links(act, successor)
    return successor


def resolve(
    act: Act, dispute_id: str, winner_id: str, reason: str, commit: str | None, expected_version: int | None
) -> Dispute:
    """Decide a dispute: the winner stands, the other is superseded by it and, if it contradicted, loses trust."""
    link = _link_in_sight(act, dispute_id)
    if winner_id not in {link.source, link.target}:
        raise InvalidInput(
            f"Unit {winner_id!r} is no side of conflict {dispute_id}.", hint=f"Choose {link.source} or {link.target}."
        )
    winner = act.changeable_unit(winner_id, None)
    loser = act.changeable_unit(link.target if winner_id == link.source else link.source, expected_version)
    act.require(Deed.RESOLVE, loser)
    _check_open(act, link, winner)
    if loser.live and winner.live:
        if link.type is LinkType.CONTRADICTS:
            loser = signal(act, EventType.UNIT_VALIDATED, loser, Signal.CONTRADICTED, {"reason": reason})
        _replace(act, winner, loser, reason, commit)
    else:
        act.record(EventType.LINK_RESOLVED, {"link": link.id, "winner": winner_id, "reason": reason}, subject=link.id)
    return _decided(act, dispute_id)


def let_both_hold(act: Act, dispute_id: str, reason: str) -> Dispute:
    """Close a dispute without a winner: both sides stay as they are, and it is not opened for the two again."""
    link = _link_in_sight(act, dispute_id)
    for side in (link.source, link.target):
        act.require(Deed.RESOLVE, act.changeable_unit(side, None))
    _check_open(act, link, None)
    act.record(EventType.LINK_RESOLVED, {"link": link.id, "winner": None, "reason": reason}, subject=link.id)
    return _decided(act, dispute_id)


def _link_in_sight(act: Act, dispute_id: str) -> Link:
    link = act.transaction.link(checked_id(dispute_id, "a conflict's id"))
    sides = act.transaction.units((link.source, link.target)) if link is not None else {}
    if link is None or any(side.scope.key not in act.caller.visible_keys for side in sides.values()):
        raise NotFound(f"No conflict {dispute_id!r} here.", hint=Hint("list the conflicts"))
    return link


def _check_open(act: Act, link: Link, proposed: Unit | None) -> None:
    if not link.open:
        decided = f"for {link.winner}" if link.winner is not None else "so that both hold"
        raise Conflict(
            f"Conflict {link.id} was already resolved {decided}.",
            hint="Read what stands; supersede it if it is wrong.",
            current=act.transaction.unit(link.winner or ""),
            proposed=proposed,
        )


def _decided(act: Act, dispute_id: str) -> Dispute:
    decided = act.transaction.link(dispute_id)
    assert decided is not None
    return dispute_from(decided)


def archive(act: Act, unit_id: str, reason: str, expected_version: int | None, deed: Deed = Deed.ARCHIVE) -> Unit:
    """Take a unit out of recall; nothing is lost."""
    unit = act.permitted_unit(unit_id, deed, expected_version)
    if unit.status is Status.ARCHIVED:
        return unit
    changes = {"status": str(Status.ARCHIVED), "archived_from": str(unit.status), "archive_reason": reason}
    return change(act, EventType.UNIT_ARCHIVED, unit, {"reason": reason, "set": changes})


def pruned(log: Log, *, dry_run: bool) -> Pruned:
    """Archive old units of little worth (G24), each in an act of its own; a dry run only says which."""
    found = log.store.read(lambda reader: list(reader.units_of_kinds([Kind(name) for name in sorted(PRUNED_KINDS)])))
    old, kept = prunable(found, log.clock(), log.config.retention)
    reason = "retention: old and of little worth (G24)"
    for unit in () if dry_run else old:
        caller = Caller(Actor.system("retention"), unit.scope)
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

"""How units leave recall and what takes their place: superseded, resolved, archived, pruned, revived (R8, R13)."""

from __future__ import annotations

from mnemarch.errors import Conflict, Hint, InvalidInput, NotAllowed, NotFound
from mnemarch.log.act import Act, Log
from mnemarch.model.caller import Actor, Caller, Scope, checked_id
from mnemarch.model.event import EventType
from mnemarch.model.unit import REPLACEMENT, Kind, Link, LinkType, Signal, Status, Unit
from mnemarch.model.upkeep import Pruned
from mnemarch.policy.permissions import Deed
from mnemarch.policy.promotion import refusal_to_replace
from mnemarch.policy.trust import PRUNED_KINDS, prunable
from mnemarch.units.conflicts import dispute_from, link_units, open_links
from mnemarch.units.same_text import twin_of
from mnemarch.units.status import change, raise_by_evidence, retire, signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mnemarch.model.outcome import Dispute
    from mnemarch.stores.sql.reader import Reader

# What the reason of whatever retention archived begins with.
RETENTION = "retention"
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


_NAMED_MAX = 5

_DECIDED_KINDS = frozenset({Kind.DECISION, Kind.POLICY, Kind.EVIDENCE, Kind.ANCHOR})


def supersede(
    act: Act, new_id: str, old_id: str, reason: str, commit: str | None, expected_version: int | None
) -> Unit:
    """Put `new` in the place of `old`: both change in this one act, and only one successor can win."""
    if new_id == old_id:
        raise InvalidInput("A unit can't supersede itself.", hint="Remember the new content first, then supersede.")
    new = act.changeable_unit(new_id, None)
    old = act.changeable_unit(old_id, None)
    _refuse_decided(new, old)
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


def _refuse_decided(*units: Unit) -> None:
    """A decision is replaced by its next version (D4), and a policy, evidence or anchor by nothing."""
    decided = next((unit for unit in units if unit.kind in _DECIDED_KINDS), None)
    if decided is not None:
        raise InvalidInput(
            f"Unit {decided.id} is a {decided.kind}: another unit can't take its place, and it takes none (D4).",
            hint=Hint("revise the decision"),
        )


def _replace(act: Act, new: Unit, old: Unit, reason: str, commit: str | None) -> Unit:
    refusal = refusal_to_replace(new, old, act.config.policy)
    if refusal is not None:
        raise NotAllowed(refusal.reason, rule=refusal.rule, hint=refusal.hint)
    retire(act, old, new.id, reason, valid_to_commit=commit, superseded_from=str(old.status))
    gained = {"supersedes": old.id, "valid_from_commit": new.valid_from_commit or commit}
    successor = change(act, EventType.UNIT_SUPERSEDING, new, {"old": old.id, "reason": reason, "set": gained})
    for link in act.transaction.links_of(old.id):
        members = act.transaction.units_of_link(link.id) if link.open else []
        others = act.transaction.units(members).values()
        if new.id in members and not any(unit.live and unit.id != new.id for unit in others):
            _close(act, link, new.id, reason)
    open_links(act, successor)
    return successor


def _close(act: Act, link: Link, winner: str | None, reason: str) -> None:
    act.record(EventType.LINK_RESOLVED, {"link": link.id, "winner": winner, "reason": reason}, subject=link.id)


def contest(act: Act, new_id: str, old_id: str) -> None:
    """Open the conflict of a unit that was to replace another with the one that did so before it (R5)."""
    new, old = act.transaction.unit(new_id), act.transaction.unit(old_id)
    winner = act.transaction.unit((old and old.superseded_by) or "")
    if new is None or winner is None or new.id == winner.id or not (new.live and winner.live):
        return
    if any(winner.id in act.transaction.units_of_link(link.id) for link in act.transaction.links_of(new.id)):
        return
    note = f"{REPLACEMENT}: unit {winner.id} had taken the place of unit {old_id} already"
    link_units(act, new.id, winner.id, LinkType.CONTRADICTS, 1.0, note)


def resolve(
    act: Act, dispute_id: str, winner_id: str, reason: str, commit: str | None, expected_version: int | None
) -> Dispute:
    """Decide a dispute: the winner stands, the others are superseded by it and, if they contradicted, lose trust."""
    here, (act, link, units) = act, _link_in_sight(act, dispute_id)
    commit = commit if act is here else None  # What is decided for another worktree says nothing of this one's HEAD.
    if winner_id not in units:
        raise InvalidInput(
            f"Unit {winner_id!r} is no side of conflict {dispute_id}.", hint=f"Choose one of {_named(units)}."
        )
    winner = act.changeable_unit(winner_id, None)
    losers = [unit for unit in units.values() if unit.id != winner_id and unit.erased_at is None]
    if expected_version is not None and len(losers) != 1:
        raise InvalidInput(
            f"Conflict {dispute_id} has {len(losers)} losing sides, and expected_version speaks of one.",
            hint="Resolve it without, or supersede them one by one.",
        )
    for loser in losers:
        act.check_version(loser, expected_version)
        act.require(Deed.RESOLVE, loser)
    _check_open(act, link, winner)
    for loser in losers:
        if loser.live and winner.live:
            if link.type is LinkType.CONTRADICTS:
                loser = signal(act, EventType.UNIT_VALIDATED, loser, Signal.CONTRADICTED, {"reason": reason})
            winner = _replace(act, winner, loser, reason, commit)
    if (left := act.transaction.link(dispute_id)) is not None and left.open:
        _close(act, link, winner_id, reason)
    return _decided(act, dispute_id, units)


def _named(unit_ids: Iterable[str]) -> str:
    ids = list(unit_ids)
    return ", ".join(ids[:_NAMED_MAX]) + (f" and {len(ids) - _NAMED_MAX} more" if len(ids) > _NAMED_MAX else "")


def let_both_hold(act: Act, dispute_id: str, reason: str) -> Dispute:
    """Close a dispute without a winner: all stay as they are, and it is not opened for them again."""
    act, link, units = _link_in_sight(act, dispute_id)
    for unit in units.values():
        act.require(Deed.RESOLVE, unit)
    _check_open(act, link, None)
    _close(act, link, None, reason)
    return _decided(act, dispute_id, units)


def _link_in_sight(act: Act, dispute_id: str) -> tuple[Act, Link, dict[str, Unit]]:
    """A dispute and those of its units that can be seen from where it is, if there are two; and the act there."""
    link = act.transaction.link(checked_id(dispute_id, "a conflict's id"))
    sides = act.transaction.units(act.transaction.units_of_link(dispute_id)) if link is not None else {}
    # People and leads of a project decide what the inbox lists, in whichever worktree it is (R3).
    below = min((side.scope for side in sides.values()), key=lambda scope: scope.level, default=act.caller.scope)
    if below.key not in act.caller.visible_keys and act.caller.may_read(below):
        act = acting_in(act, below)
    seen = {id: side for id, side in sides.items() if side.scope.key in act.caller.visible_keys}
    if link is None or len(seen) < 2:
        raise NotFound(f"No conflict {dispute_id!r} here.", hint=Hint("list the conflicts"))
    # A decision that was committed against another stays in conflict with it until one of them is revised (R12).
    _refuse_decided(*(side for side in seen.values() if link.open))
    return act, link, seen


def acting_in(act: Act, scope: Scope) -> Act:
    """The same act by the same actor in a scope below the project: people and leads may inspect it (R3)."""
    caller = Caller(act.caller.actor, scope, act.caller.session, act.caller.root)
    return Act(act.transaction, caller, act.now, act.config)


def _check_open(act: Act, link: Link, proposed: Unit | None) -> None:
    if not link.open:
        decided = f"for {link.winner}" if link.winner is not None else "so that both hold"
        raise Conflict(
            f"Conflict {link.id} was already resolved {decided}.",
            hint="Read what stands; supersede it if it is wrong.",
            current=act.transaction.unit(link.winner or ""),
            proposed=proposed,
        )


def _decided(act: Act, dispute_id: str, units: Mapping[str, Unit]) -> Dispute:
    decided = act.transaction.link(dispute_id)
    assert decided is not None
    return dispute_from(decided, list(units.values()))


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
    reason = f"{RETENTION}: old and of little worth (G24)"
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

"""Acts on a unit: cite, validate, approve, reject, supersede, resolve, archive and revive."""

from __future__ import annotations

from mnemarch.errors import Conflict, Hint, InvalidInput, NotAllowed, NotFound
from mnemarch.log.act import Act, Log
from mnemarch.model.caller import Actor, ActorKind, Caller, Scope, checked_id
from mnemarch.model.event import EventType
from mnemarch.model.unit import OF_CODE, REPLACEMENT, Citation, CitationKind, Kind, Link, LinkType, Signal, Status, Unit
from mnemarch.model.value import replace
from mnemarch.policy.permissions import Deed
from mnemarch.policy.promotion import refusal_to_replace
from mnemarch.policy.trust import PRUNED_KINDS, prunable
from mnemarch.text.words import some_of
from mnemarch.units.conflicts import dispute_from, link_units, open_links
from mnemarch.units.finding import rejected_with, rejection_of, rewordings_of, twin_of
from mnemarch.units.status import change, check_citations, raise_by_evidence, retire, signal, whole_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from mnemarch.model.outcome import Dispute
    from mnemarch.model.upkeep import Pruned
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.units.scene import TestSource

_A_PERSONS = frozenset({Signal.HUMAN_APPROVED, Signal.HUMAN_REJECTED})
# Kinds that only `seat.decisions` creates and replaces.
DECIDED = frozenset({Kind.DECISION, Kind.POLICY, Kind.EVIDENCE, Kind.ANCHOR})
# Prefix of the archive reason of units that retention archived.
RETENTION = "retention"
_NAMED_MAX = 5
_CHAIN_MAX = 32


def cite(
    act: Act, unit_id: str, citation: Citation, expected_version: int | None, sources: Mapping[str, TestSource]
) -> Unit:
    """Add evidence. A passed test or a person's own word verifies a hypothesis at once (Rule 2).

    `sources` describes the cited test in the working tree.
    """
    unit = act.permitted_unit(unit_id, Deed.CITE, expected_version)
    check_citations(act.transaction, act.caller, [citation])
    (citation,), sources = whole_names(act.transaction, act.caller.stream, [citation], sources)
    payload: dict[str, Any] = {} if citation in unit.citations else {"cite": [citation.to_json()]}
    if act.caller.task_key is not None:
        payload["use"] = {"task_key": act.caller.task_key, "used": True}
    cited = change(act, EventType.UNIT_CITED, unit, payload) if payload else unit
    if citation.kind in OF_CODE:
        open_links(act, cited)  # It may rest on the same content as an opposing unit now.
    return raise_by_evidence(act, cited, None, sources)


def move(act: Act, unit_id: str, moves: Mapping[str, str], expected_version: int | None) -> Unit:
    """Update the cited paths of moved files and symbols. The event keeps the old paths."""
    unit = act.permitted_unit(unit_id, Deed.CITE, expected_version)
    cited = [_moved(item, moves) if item.kind in OF_CODE else item for item in unit.citations]
    changes = {"citations": [citation.to_json() for citation in dict.fromkeys(cited)]}
    return change(act, EventType.UNIT_MOVED, unit, {"moves": dict(moves), "set": changes})


def _moved(citation: Citation, moves: Mapping[str, str]) -> Citation:
    """The citation with its new path. It keeps the old path for branches that still have it."""
    path = moves.get(str(citation), moves.get(citation.ref))
    if path is None:
        return citation
    detail = dict(citation.detail) | {"was": citation.ref}
    return replace(citation, ref=path, detail=tuple(sorted(detail.items())))


def retake(act: Act, unit: Unit, citations: Sequence[Citation], because: Sequence[str] = ()) -> Unit:
    """Cite changed signatures in their current form, because a test that the unit cites passes on the new code (R11).

    `citations` are the new citations from `code.citing.retaken`. `because` names the tests that passed.
    """
    cited = [citation.to_json() for citation in citations]
    if not cited:
        return unit
    unit = change(act, EventType.UNIT_CITED, unit, {"cite": cited, "because": list(because)})
    open_links(act, unit)
    return unit


def validate(act: Act, unit_id: str, given: Signal, expected_version: int | None) -> Unit:
    """Record one signal for or against a unit (G18). Only a person may give a person's signals (R2)."""
    unit = act.permitted_unit(unit_id, Deed.VALIDATE, expected_version)
    if given in _A_PERSONS and act.caller.actor.kind is not ActorKind.HUMAN:
        raise NotAllowed(
            f"{act.caller.actor} may not give the signal {given}: it is a person's (R2).",
            rule="R2",
            hint="Ask a person to approve or reject the unit.",
        )
    return signal(act, EventType.UNIT_VALIDATED, unit, given, {})


def use(act: Act, unit_id: str, expected_version: int | None) -> Unit:
    """Mark a unit as used by the seat's task. The unit is credited if the task succeeds, blamed if it fails (R2)."""
    unit = act.permitted_unit(unit_id, Deed.USE, expected_version)
    if unit.status is Status.ARCHIVED:
        raise InvalidInput(f"Unit {unit_id} is archived: {unit.archive_reason}.", hint="Ask recall what holds instead.")
    task_key = act.caller.task_key
    if task_key is None:
        raise InvalidInput("Uses are counted by task, and no task is named.", hint=Hint("name the task"))
    if (earlier := act.transaction.use(unit_id, task_key)) is not None and earlier.used:
        return unit
    return change(act, EventType.UNIT_USED, unit, {"use": {"task_key": task_key, "handed": True, "used": True}})


def note_help(act: Act, unit_ids: Iterable[str]) -> None:
    """Note that recalled units helped the seat's task. That can earn them credit, but never blame (R2)."""
    for unit_id in unit_ids:
        handed = act.transaction.use(unit_id, act.caller.task_key or "")
        if handed is not None and handed.handed and not handed.credited:
            change(act, EventType.UNIT_USED, act.known_unit(unit_id), {"helped": True})


def approve(act: Act, unit_id: str, expected_version: int | None) -> Unit:
    """Approve a unit. A human's approval is evidence and verifies it; an orchestrator's is only recorded (Rule 2)."""
    unit = act.permitted_unit(unit_id, Deed.APPROVE, expected_version)
    actor = act.caller.actor
    changes: dict[str, str | None] = {}
    if rejection_of(act.transaction, unit) is not None:
        changes = returning(unit)
        for twin in _bring_back_with(act, unit):
            if actor.kind is ActorKind.HUMAN:
                signal(act, EventType.UNIT_VALIDATED, twin, Signal.HUMAN_APPROVED, {})
    if actor.kind is not ActorKind.HUMAN:
        return change(act, EventType.UNIT_APPROVED, unit, {"set": changes})
    payload = {"cite": [Citation.human(actor.id).to_json()], "set": changes}
    approved = signal(act, EventType.UNIT_APPROVED, unit, Signal.HUMAN_APPROVED, payload)
    return raise_by_evidence(act, approved)


def reject(act: Act, unit_id: str, reason: str, expected_version: int | None) -> Unit:
    """Reject a unit. It leaves recall until it is approved or revived; a human's rejection also lowers its trust.

    What says nearly the same there goes with it and comes back with it, unless a person vouches for it.
    """
    unit = act.permitted_unit(unit_id, Deed.REJECT, expected_version)
    near = rewordings_of(act, unit) if act.caller.actor.kind is ActorKind.HUMAN else ()
    twins = [twin for twin in near if act.config.policy.allows(ActorKind.HUMAN, Deed.REJECT, twin.level)]
    for twin in twins:
        _reject(act, twin, reason, f" (with unit {unit.id}, which says the same)", along_with=unit.id)
    others = f"; also {some_of([twin.id for twin in twins], _NAMED_MAX)}, in other words" if twins else ""
    return _reject(act, unit, reason, others)


def _reject(act: Act, unit: Unit, reason: str, more: str, **marks: str) -> Unit:
    payload = {"reason": reason, "set": leaving(unit, f"rejected: {reason}{more}")} | marks
    if act.caller.actor.kind is not ActorKind.HUMAN:
        return change(act, EventType.UNIT_REJECTED, unit, payload)
    return signal(act, EventType.UNIT_REJECTED, unit, Signal.HUMAN_REJECTED, payload)


def _bring_back_with(act: Act, unit: Unit) -> list[Unit]:
    """Bring back what was rejected along with this unit, unless a live unit says the same by now."""
    policy, kind = act.config.policy, act.caller.actor.kind
    reason = f"back with unit {unit.id}, which says the same"
    return [
        change(act, EventType.UNIT_REVIVED, twin, {"reason": reason, "set": returning(twin)})
        for twin in rejected_with(act, unit)
        if policy.allows(kind, Deed.REVIVE, twin.level) and twin_of(act.transaction, twin, twin.scope.key) is None
    ]


def withdraw(act: Act, unit_id: str, reason: str, expected_version: int | None) -> Unit:
    """Archive a unit for its author. Raise if anybody else said, used or vouched for it (R4)."""
    unit = act.changeable_unit(unit_id, expected_version)
    if not unit.live:
        raise InvalidInput(f"Unit {unit_id} is {unit.status}.", hint="Only a live claim can be withdrawn.")
    others = [source for source in unit.provenance if source.actor != act.caller.actor]
    own_tasks = {source.scope.key for source in unit.provenance}
    used = [use for use in act.transaction.uses_of_unit(unit_id) if use.used and use.task_key not in own_tasks]
    people = [
        item.ref for item in unit.citations if item.kind is CitationKind.HUMAN and item.ref != act.caller.actor.id
    ]
    if others or used or people or not unit.provenance:
        who = f"{others[0].actor} stated it too" if others else "another task used or cited it"
        who = f"{people[0]} vouches for it" if people else who
        who = "only its author may" if len(others) == len(unit.provenance) else who
        raise NotAllowed(
            f"{act.caller.actor} may not withdraw unit {unit_id}: {who} (R4).",
            rule="R4",
            hint="Ask a person or an orchestrator to reject it.",
        )
    payload = {"reason": reason, "set": leaving(unit, f"withdrawn: {reason}")}
    return change(act, EventType.UNIT_ARCHIVED, unit, payload)


def leaving(unit: Unit, why: str) -> dict[str, str | None]:
    """The fields that change when a unit is archived."""
    was = str(unit.archived_from or unit.status)
    return {"status": str(Status.ARCHIVED), "archived_from": was, "archive_reason": why}


def returning(unit: Unit) -> dict[str, str | None]:
    """The fields that change when an archived unit gets its former status back."""
    return {"status": str(unit.archived_from or Status.HYPOTHESIS), "archived_from": None, "archive_reason": None}


def successors(reader: Reader, units: Iterable[Unit]) -> dict[str, Unit]:
    """The direct and indirect successors of these units, by id."""
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
    """Replace `old` by `new`. Both change in one act, and only one successor can win."""
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
    """Raise if one of the units is a decision, policy, evidence or anchor: these can't be superseded here (D4)."""
    decided = next((unit for unit in units if unit.kind in DECIDED), None)
    if decided is not None:
        raise InvalidInput(
            f"Unit {decided.id} is a {decided.kind}: it can't replace a unit or be replaced by one (D4).",
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
    """Open a conflict between two successors of one unit: `new`, which came too late, and the first one (R5)."""
    new, old = act.transaction.unit(new_id), act.transaction.unit(old_id)
    winner = act.transaction.unit((old and old.superseded_by) or "")
    if new is None or winner is None or new.id == winner.id or not (new.live and winner.live):
        return
    if any(winner.id in act.transaction.units_of_link(link.id) for link in act.transaction.links_of(new.id)):
        return
    note = f"{REPLACEMENT}: unit {winner.id} had already replaced unit {old_id}"
    link_units(act, new.id, winner.id, LinkType.CONTRADICTS, 1.0, note)


def resolve(
    act: Act, dispute_id: str, winner_id: str, reason: str, commit: str | None, expected_version: int | None
) -> Dispute:
    """Decide a dispute. The winner supersedes the others. In a contradiction they also lose trust."""
    here, (act, link, units) = act, _link_in_sight(act, dispute_id)
    commit = commit if act is here else None  # In another worktree, this one's HEAD means nothing.
    if winner_id not in units:
        raise InvalidInput(
            f"Unit {winner_id!r} is not a side of conflict {dispute_id}.",
            hint=f"Choose one of {some_of(list(units), _NAMED_MAX)}.",
        )
    winner = act.changeable_unit(winner_id, None)
    losers = [unit for unit in units.values() if unit.id != winner_id and unit.erased_at is None]
    if expected_version is not None and len(losers) != 1:
        raise InvalidInput(
            f"Conflict {dispute_id} has {len(losers)} losing sides, but expected_version names the version of one.",
            hint="Resolve it without expected_version, or supersede them one by one.",
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


def let_both_hold(act: Act, dispute_id: str, reason: str) -> Dispute:
    """Close a dispute without a winner. All units stay as they are, and the dispute is not opened for them again."""
    act, link, units = _link_in_sight(act, dispute_id)
    for unit in units.values():
        act.require(Deed.RESOLVE, unit)
    _check_open(act, link, None)
    _close(act, link, None, reason)
    return _decided(act, dispute_id, units)


def _link_in_sight(act: Act, dispute_id: str) -> tuple[Act, Link, dict[str, Unit]]:
    """The act in the dispute's scope, the link, and its units visible there. Raise if fewer than two are visible."""
    link = act.transaction.link(checked_id(dispute_id, "a conflict's id"))
    sides = act.transaction.units(act.transaction.units_of_link(dispute_id)) if link is not None else {}
    # People and leads decide everything that the project's inbox lists, in any worktree (R3).
    below = min((side.scope for side in sides.values()), key=lambda scope: scope.level, default=act.caller.scope)
    if below.key not in act.caller.visible_keys and act.caller.may_read(below):
        act = acting_in(act, below)
    seen = {id: side for id, side in sides.items() if side.scope.key in act.caller.visible_keys}
    if link is None or len(seen) < 2:
        raise NotFound(f"No conflict {dispute_id!r} here.", hint=Hint("list the conflicts"))
    # A decision that was committed against another stays in conflict until one of them is revised (R12).
    _refuse_decided(*(side for side in seen.values() if link.open))
    return act, link, seen


def acting_in(act: Act, scope: Scope) -> Act:
    """The same act and actor in a scope below the project, which people and leads may inspect (R3)."""
    return act.by(Caller(act.caller.actor, scope, act.caller.session, act.caller.root))


def _check_open(act: Act, link: Link, proposed: Unit | None) -> None:
    if not link.open:
        decided = f"for {link.winner}" if link.winner is not None else "so that both hold"
        raise Conflict(
            f"Conflict {link.id} was already resolved {decided}.",
            hint="Read the result. If it is wrong, supersede it.",
            current=act.transaction.unit(link.winner or ""),
            proposed=proposed,
        )


def _decided(act: Act, dispute_id: str, units: Mapping[str, Unit]) -> Dispute:
    decided = act.transaction.link(dispute_id)
    assert decided is not None
    return dispute_from(decided, list(units.values()))


def archive(act: Act, unit_id: str, reason: str, expected_version: int | None, deed: Deed = Deed.ARCHIVE) -> Unit:
    """Take a unit out of recall. Nothing is deleted."""
    unit = act.permitted_unit(unit_id, deed, expected_version)
    if unit.status is Status.ARCHIVED:
        return unit
    return change(act, EventType.UNIT_ARCHIVED, unit, {"reason": reason, "set": leaving(unit, reason)})


def pruned(log: Log, *, dry_run: bool) -> Pruned:
    """Archive old units of little worth, each in an act of its own. A dry run only lists them (G24)."""
    from mnemarch.model.upkeep import Pruned

    found = log.store.read(lambda reader: list(reader.units_of_kinds([Kind(name) for name in sorted(PRUNED_KINDS)])))
    old, kept = prunable(found, log.clock(), log.config.retention)
    reason = f"{RETENTION}: old and of little worth (G24)"
    for unit in () if dry_run else old:
        caller = Caller(Actor.system("retention"), unit.scope)
        log.act(caller, lambda act, unit=unit: archive(act, unit.id, reason, None, Deed.PRUNE))  # type: ignore[misc]
    return Pruned(units=tuple(unit.id for unit in old), kept=kept, dry_run=dry_run)


def revive(
    act: Act, unit_id: str, reason: str, expected_version: int | None, sources: Mapping[str, TestSource]
) -> Unit:
    """Bring an archived unit back to the status it had, or to what its evidence shows now.

    `sources` describes the cited tests in the working tree.
    """
    unit = act.permitted_unit(unit_id, Deed.REVIVE, expected_version)
    if unit.status is not Status.ARCHIVED:
        raise InvalidInput(
            f"Unit {unit_id} is {unit.status}, not archived.", hint="Only archived units can be revived."
        )
    _refuse_twin(act, unit)
    if rejection_of(act.transaction, unit) is not None:
        _bring_back_with(act, unit)
    payload = {"reason": reason, "set": returning(unit)}
    return raise_by_evidence(act, change(act, EventType.UNIT_REVIVED, unit, payload), None, sources)


def _refuse_twin(act: Act, unit: Unit) -> None:
    """Raise if a live unit says the same by now: each fact has only one live unit."""
    other = twin_of(act.transaction, unit, unit.scope.key)
    if other is not None:
        raise Conflict(
            f"Unit {unit.id} can't be revived: {other.id} says the same and is live.",
            hint="Use the live unit.",
            actual_version=unit.version,
            current=other,
            proposed=unit,
        )

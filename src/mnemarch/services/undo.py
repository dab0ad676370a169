"""Erases a unit or a log entry (R16), and undoes everything that one actor wrote (R4)."""

from __future__ import annotations

from contextlib import suppress

from mnemarch.decisions import proposals
from mnemarch.decisions.guard import require_may_retire
from mnemarch.errors import Conflict, Hint, InvalidInput, NotAllowed, NotFound
from mnemarch.lazy import Lazy
from mnemarch.model.caller import GATE, Actor, ActorKind, Caller, Level, Scope
from mnemarch.model.event import Event, EventType
from mnemarch.model.unit import Status, Unit
from mnemarch.model.upkeep import Copy, Erased, Undone
from mnemarch.model.value import replace
from mnemarch.policy.admission import checked_list
from mnemarch.policy.permissions import Deed
from mnemarch.units import erasure
from mnemarch.units import undo as units
from mnemarch.units.conflicts import link_units
from mnemarch.units.finding import is_settled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from mnemarch.graph import files, sharing
    from mnemarch.learning import habits
    from mnemarch.log.act import Act
    from mnemarch.loops import detector
    from mnemarch.services.engine import Engine
    from mnemarch.units.erasure import Plan
    from mnemarch.units.scene import TestSource
    from mnemarch.units.undo import Undoing
else:
    # An erasure needs the first two, an undoing the others.
    files, sharing = Lazy("mnemarch.graph.files"), Lazy("mnemarch.graph.sharing")
    habits, detector = Lazy("mnemarch.learning.habits"), Lazy("mnemarch.loops.detector")


# Erasing


def erase(
    engine: Engine,
    caller: Caller,
    target_id: str,
    reason: str,
    *,
    copies: bool | Sequence[str],
    dry_run: bool,
    expected_version: int | None,
) -> Erased:
    """Remove a unit or a log entry, everything derived from it, and the chosen copies."""

    def work(act: Act) -> tuple[Erased, Sequence[str]]:
        plan = erasure.planned(act, target_id, expected_version)
        if plan is None:  # Erased before: clean the files again, because some may have been busy.
            known = erasure.erased_with(act, target_id)
            return Erased(units=_readable(act, known), events=0, dry_run=dry_run), known
        left = _with_chosen_copies(act, plan, copies)
        for unit in plan.units.values():
            require_may_retire(act, unit)
        seen = sum(caller.may_read(event.scope) for event in plan.events.values())
        erased = Erased(units=_readable(act, plan.units), events=seen, copies=left, dry_run=dry_run)
        if dry_run:
            return erased, ()
        erasure.check_reason(plan, reason)
        restated = sharing.graphs_without(act.transaction, plan.events.values(), plan.texts)
        # Before the log is emptied, because only the log has the texts to remove from files.
        cleaned = files.forget_in_checkpoints(engine.checkpoint_folder, plan.texts, caller.may_read)
        erasure.carry_out(act, plan, reason)
        sharing.restate(act, restated)
        return replace(erased, files=cleaned), list(plan.units)

    erased, unit_ids = engine.log.act(caller, work, durable=True)
    erased = replace(erased, kept=engine.store.keeps_erased)
    return erased if dry_run else replace(erased, files=erased.files + engine.forget_erased(unit_ids))


def _readable(act: Act, unit_ids: Iterable[str]) -> tuple[str, ...]:
    """The units that the caller may read. An erasure does not report others."""
    units = act.transaction.units(unit_ids).values()
    return tuple(unit.id for unit in units if act.caller.may_read(unit.scope))


def _with_chosen_copies(act: Act, plan: Plan, chosen: bool | Sequence[str]) -> tuple[Copy, ...]:
    """Add the chosen copies to the plan. Returns the remaining copies."""
    known = {copy.id: (copy, source) for copy, source in erasure.copies_of(act, plan) if _may_retire(act, source)}
    ids = list(known) if chosen is True else checked_list(chosen or (), "copies")
    for id in ids:
        if id not in known:
            raise NotFound(f"{id!r} is not a copy that you may erase.", hint="Use ids that a dry run lists.")
        plan.take(known[id][1])
    return tuple(copy for copy, _ in known.values() if copy.id not in plan.units and copy.id not in plan.events)


def _may_retire(act: Act, source: Unit | Event) -> bool:
    with suppress(NotAllowed):
        if isinstance(source, Unit):
            require_may_retire(act, source)
        return True
    return False


# Undoing an actor. Each step is recorded like a person's own act, so it shows in every history. One event names them
# all, and `revert` uses it to take them back.


def undo(act: Act, undoing: Undoing, reason: str, sources: Mapping[str, TestSource], *, dry_run: bool) -> Undone:
    """Retire what the actor wrote and what rests on it alone. `sources` describes the tests of what is given back."""
    _require(act, f"undo {undoing.actor}")
    _require_may_undo(act.caller, undoing)
    votes = habits.resting_on(act, undoing.covers)
    unfounded = [(unit, unit.status is not Status.HYPOTHESIS) for unit in habits.unfounded(act, votes)]
    found = [*undoing.units(act), *((unit, "somebody verified it" if known else None) for unit, known in unfounded)]
    going = [unit for unit, why in found if why is None]
    back = list(undoing.given_back(act, {unit.id for unit in going}))
    restored = [(unit, fields) for unit, fields, why_not in back if why_not is None]
    staying = [(unit, why_not) for unit, _, why_not in back]
    claims = [event.id for event in undoing.events(act, EventType.CLAIM_REFUSED) if not is_settled(act, event)]
    waiting = proposals.open_requests(act.transaction, act.caller)
    asked_by_it = {event.id for event in undoing.events(act, EventType.DECISION_REQUESTED)}
    asked = [request.id for request in waiting if request.id in asked_by_it]
    ledgers = _counted(act, undoing)
    rules = [event.id for event in undoing.events(act, EventType.RULE_LEARNED) if _rests_on_it(act, event, undoing)]
    undone = Undone(
        id=None,
        actor=undoing.actor,
        retired=tuple(units.fate_of(unit, None) for unit in going),
        kept=tuple(units.fate_of(unit, why) for unit, why in (*found, *staying) if why is not None),
        restored=tuple(units.fate_of(unit, _in_words(fields)) for unit, fields in restored),
        claims=len(claims),
        requests=len(asked),
        attempts=sum(len(counted) for counted, _ in ledgers.values()),
        rules=len(rules),
        votes=len(votes),
        dry_run=dry_run,
    )
    mixed = [unit for unit, why in found if why is not None and undoing.is_one_of_several(act, unit)]
    if dry_run or not (going or mixed or restored or claims or asked or ledgers or rules or votes):
        return undone
    why = f"undone with {undoing.actor}: {reason}"
    for unit in going:
        units.retire(act, unit, why)
    for id in claims:
        act.record(EventType.INBOX_SETTLED, {"what": "refused claim", "answer": why}, subject=id)
    for id in asked:
        proposals.answer(act, id, why, None)
    for id in rules:
        act.record(EventType.RULE_DROPPED, {"reason": why}, subject=id)
    payload = {
        "actor": str(undoing.actor),
        "session": undoing.session,
        "reason": reason,
        "why": why,
        "units": [unit.id for unit in going],
        "voices": {unit.id: units.without_voices(act, unit, undoing) for unit in mixed},
        "restored": {unit.id: units.put_fields(act, unit, fields, sources) for unit, fields in restored},
        "links": list(_reopened(act, undoing, why)),
        "claims": claims,
        "requests": asked,
        "rules": rules,
        "votes": [habits.withdraw(act, votes, why)] if votes else [],
        "ledgers": [detector.forget(act, subject, *ids, why) for subject, ids in ledgers.items()],
    }
    event, _ = act.record(EventType.ACTOR_UNDONE, payload)
    return replace(undone, id=event.id)


def _rests_on_it(act: Act, learned: Event, undoing: Undoing) -> bool:
    """Whether a code rule still exists and nobody but the actor who taught it confirmed it."""
    told = [*act.transaction.events_of_subject(learned.id)]
    others = [event for event in told if not undoing.covers(event) and (event.payload or {}).get("success")]
    is_there = all(event.type is not EventType.RULE_DROPPED for event in told) and learned.payload is not None
    return is_there and not others


def _in_words(fields: Mapping[str, Any]) -> str:
    """A sentence about the fields that a unit gets back."""
    if "status" in fields or "scope" in fields:
        where = f" in {Scope.of(fields['scope'])}" if "scope" in fields else ""
        return f"it is {fields.get('status', 'back')}{where} again"
    return f"its {' and '.join(sorted(fields))} again as before"


def _reopened(act: Act, undoing: Undoing, why: str) -> Iterator[dict[str, Any]]:
    """Reopen the conflicts that the actor resolved, if their units are live; yields what a revert closes them with."""
    reader = act.transaction
    for event in undoing.events(act, EventType.LINK_RESOLVED):
        resolved = event.payload or {}
        link = reader.link(resolved.get("link", ""))
        members = reader.units(reader.units_of_link(link.id)).values() if link is not None else ()
        live = [unit.id for unit in members if unit.live]
        if link is not None and not link.open and len(live) > 1:
            again = link_units(act, live[0], live[1], link.type, link.weight, why, live[2:])
            yield {"link": again.id, "winner": resolved["winner"], "reason": resolved["reason"]}


def _counted(act: Act, undoing: Undoing) -> dict[str, tuple[list[str], list[str]]]:
    """By ledger, the actor's failures and stuck marks that still count, and the ids of its log entries.

    The changes that those entries tell of no longer count as tried.
    """
    events = undoing.events(act, EventType.ATTEMPT_FAILED, EventType.TASK_STUCK)
    logged: dict[str, list[str]] = {}
    for entry in undoing.events(act, EventType.LOGGED):
        logged.setdefault(detector.subject_of(entry.scope, entry.scope.task), []).append(entry.id)
    counted: dict[str, tuple[list[str], list[str]]] = {}
    for subject in dict.fromkeys([*(event.subject or "" for event in events), *logged]):
        known = detector.ledger(act.transaction, subject)
        failed = {attempt.event_id for attempt in known.attempts}
        ids = [
            event.id
            for event in events
            if event.subject == subject
            and (event.id in failed or (event.type is EventType.TASK_STUCK and known.stuck is not None))
        ]
        if ids or (failed and subject in logged):
            counted[subject] = ids, logged.get(subject, [])
    return counted


def revert(act: Act, undo_id: str, reason: str) -> Undone:
    """Revert an undo. Retired units get their former status back, unless they have changed since."""
    _require(act, f"revert undo {undo_id}")
    event = act.transaction.event(undo_id)
    undone = event.payload if event is not None and event.type is EventType.ACTOR_UNDONE else None
    if event is None or undone is None or event.stream.shared != act.caller.stream:
        raise NotFound(f"No undoing {undo_id!r} here.", hint=Hint("list the undoings"))
    if next(act.transaction.events_of_subject(undo_id), None) is not None:
        raise Conflict(f"Undo {undo_id} was already reverted.", hint="If it is meant, undo the actor again.")
    fates = [units.restore(act, id, undone["why"], reason) for id in undone["units"]]
    for resolved in undone.get("links", ()):
        link = act.transaction.link(resolved["link"])
        if link is not None and link.open:
            act.record(EventType.LINK_RESOLVED, resolved, subject=link.id)
    changed = [units.put_back(act, id, fields) for id, fields in undone.get("restored", {}).items()]
    for id, voices in undone["voices"].items():
        if act.known_unit(id).erased_at is None:
            act.record(EventType.UNIT_RESTATED, {"voices": voices}, subject=id)
    for id in undone["claims"]:
        payload = {"what": "refused claim", "answer": reason, "reopens": True}
        act.record(EventType.INBOX_SETTLED, payload, subject=id)
    for id in undone["requests"]:
        proposals.answer(act, id, reason, None, reopens=True)
    for ledger in undone["ledgers"]:
        detector.bring_back(act, ledger)
    taught = [act.transaction.event(id) for id in undone.get("rules", ())]
    for learned in taught:
        if learned is not None and learned.payload is not None:
            act.record(EventType.RULE_LEARNED, learned.payload)
    votes = sum(habits.bring_back(act, id) for id in undone.get("votes", ()))
    act.record(EventType.UNDO_REVERTED, {"actor": undone["actor"], "reason": reason}, subject=undo_id)
    return Undone(
        id=undo_id,
        actor=Actor.parse(undone["actor"]),
        retired=tuple(fate for fate in fates if fate is not None and not fate.why),
        kept=tuple(fate for fate in (*fates, *changed) if fate is not None and fate.why),
        restored=tuple(fate for fate in changed if fate is not None and not fate.why),
        claims=len(undone["claims"]),
        requests=len(undone["requests"]),
        attempts=sum(len(ledger["attempts"]) for ledger in undone["ledgers"]),
        rules=len(taught),
        votes=votes,
        reverted=True,
    )


def _require(act: Act, what: str) -> None:
    if act.caller.scope.project is None:
        raise InvalidInput("An undo needs a project, and this seat has none.", hint=Hint("name the project"))
    act.require_at(Deed.UNDO, Level.PROJECT, what)


def _require_may_undo(caller: Caller, undoing: Undoing) -> None:
    actor = undoing.actor
    if actor.kind is ActorKind.SYSTEM or actor == GATE:
        raise InvalidInput(f"{actor} is the program's own actor.", hint="Undo the actor for whom it acted.")
    if actor.kind is ActorKind.HUMAN and caller.actor.kind is not ActorKind.HUMAN:
        raise NotAllowed(
            f"{caller.actor} may not undo {actor}: only a person undoes a person (policy rule R4).",
            rule="R4",
            hint="Ask a person.",
        )

"""The gate (G4): a verification judges what a task staged, credits or blames what it relied on, keeps an episode."""

from __future__ import annotations

from mnemarch.errors import Hint, InvalidInput
from mnemarch.log.act import Act, receipt_for
from mnemarch.model.caller import Caller, Level
from mnemarch.model.citation import CitationKind
from mnemarch.model.event import EventType
from mnemarch.model.outcome import Promotion, Refused
from mnemarch.model.unit import Claim, Kind, Signal, Status, waiting_key
from mnemarch.model.value import replace
from mnemarch.policy.promotion import refusal_to_verify, warranted
from mnemarch.units.episode import analysis_from, keep_episode
from mnemarch.units.remember import remember
from mnemarch.units.same_text import refusal_to_repeat
from mnemarch.units.status import blame, credit, passed_tests, raise_by_evidence, signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from mnemarch.model.event import Event
    from mnemarch.model.outcome import Analysis
    from mnemarch.model.unit import Unit

# What the gate judges and what an episode tells. A task's graph steps and recalls can be many times as much.
_STAGED = (EventType.LOGGED, EventType.UNIT_REMEMBERED, EventType.CLAIM_REFUSED, EventType.ATTEMPT_FAILED)
# How many of a unit's last events are searched for the refusal that was recorded last.
_EVENTS_BACK_MAX = 100


def verify(
    act: Act,
    *,
    passed: bool,
    tests: Sequence[str],
    commit: str | None,
    analysis: Analysis | Mapping[str, Any] | None,
) -> Promotion:
    """Run the gate over everything the seat's task staged."""
    if act.caller.scope.level > Level.WORKTREE:
        raise InvalidInput(
            "Verify judges what a task staged, and this seat has no task.",
            hint=Hint("name the task"),
        )
    given = None if analysis is None else analysis_from(analysis, passed)
    staged = list(act.transaction.events_of_scope(act.caller.scope_key, _STAGED))
    payload = {"passed": passed, "tests": list(tests), "commit": commit}
    event, _ = act.record(EventType.TASK_VERIFIED, payload)
    _settle_reliance(act, passed)
    units, refused = _judged(act, staged, tests) if passed else ([], [])
    episode, skill_id = keep_episode(act, staged, passed, tests, commit, given)
    return Promotion(
        episode_id=episode.id,
        skill_id=skill_id,
        units=tuple(units),
        refused=tuple(refused),
        receipt=receipt_for(event),
    )


def _settle_reliance(act: Act, passed: bool) -> None:
    """Units that recall handed to this task, or that it marked as used, share how it went, once each (R2).

    A worktree's own verification is no task, so it adds no reuse.
    """
    for use in act.transaction.uses_of_task(act.caller.scope_key):
        unit = act.transaction.unit(use.unit_id)
        if unit is None or not unit.live:
            continue
        if passed and not use.credited and act.caller.task_key is not None:
            credit(act, unit, use, Signal.REPEATED_SUCCESS)
        elif not passed and not use.blamed:
            blame(act, unit, use)


def _judged(act: Act, staged: Sequence[Event], tests: Sequence[str]) -> tuple[list[Unit], list[Refused]]:
    """Raise what the evidence now warrants; say of the rest which rule keeps it down."""
    raised: list[Unit] = []
    refused: list[Refused] = []
    for unit in _candidates(act, staged, tests):
        if unit.status is Status.HYPOTHESIS:
            after = raise_by_evidence(act, unit, Signal.TESTS_PASSED)
            if after.status is not Status.HYPOTHESIS:
                raised.append(after)
                continue
            refused.append(_still_hypothesis(act, unit))
        elif _cites_one_of(unit, tests):
            signal(act, EventType.UNIT_VALIDATED, unit, Signal.TESTS_PASSED, {})
    for claim, author in _waiting_claims(act, staged):
        outcome = remember(author, claim)
        if isinstance(outcome, Refused):
            refused.append(outcome)
        elif not outcome.merged:
            raised.append(outcome.unit)
    return raised, refused


def _still_hypothesis(act: Act, unit: Unit) -> Refused:
    """Why a unit stays a hypothesis. Recorded only when the reason changes, however often the task verifies."""
    refusal = refusal_to_verify(unit.citations, passed_tests(act, unit.citations))
    refusal = refusal or refusal_to_repeat(act, unit, unit.id)
    assert refusal is not None
    payload = {"rule": refusal.rule, "reason": refusal.reason}
    known = _last_refusal(act, unit)
    if known is not None and (known.payload or {}).items() >= payload.items():
        receipt = receipt_for(known, duplicate=True)
    else:
        receipt = receipt_for(act.record(EventType.UNIT_HELD, payload, subject=unit.id)[0])
    return Refused(rule=refusal.rule, reason=f"{refusal.reason} {refusal.hint}", receipt=receipt, unit_id=unit.id)


def _last_refusal(act: Act, unit: Unit) -> Event | None:
    history = list(act.transaction.events_of_subject(unit.id, last=_EVENTS_BACK_MAX))
    return next((event for event in reversed(history) if event.type is EventType.UNIT_HELD), None)


def _candidates(act: Act, staged: Sequence[Event], tests: Sequence[str]) -> list[Unit]:
    """The live units this task wrote, and visible ones that wait for a test which has just passed."""
    own = {event.subject for event in staged if event.type is EventType.UNIT_REMEMBERED and event.subject}
    candidates = act.transaction.units(sorted(own))
    for name in tests:
        waiting = act.transaction.units_citing(act.caller.visible_keys, CitationKind.TEST, name)
        candidates |= {unit.id: unit for unit in waiting}
    judged = (unit for unit in candidates.values() if unit.live and unit.kind is not Kind.EPISODE)
    return sorted(judged, key=lambda unit: unit.id)


def _cites_one_of(unit: Unit, tests: Sequence[str]) -> bool:
    return any(citation.kind is CitationKind.TEST and citation.ref in tests for citation in unit.citations)


def _waiting_claims(act: Act, staged: Sequence[Event]) -> list[tuple[Claim, Act]]:
    """Claims of this task that only lacked validation when they were made, each with its own author's rights."""
    waiting = []
    for event in staged:
        payload = event.payload if event.type is EventType.CLAIM_REFUSED else None
        if payload is not None and payload["rule"] == "G23.validation":
            # The key keeps a claim that went through from being made again by the next verification.
            key = waiting_key(event.id)
            if act.transaction.event_for_key(event.scope.key, str(event.actor), key) is not None:
                continue
            claim = replace(Claim.from_json(payload["claim"]), key=key)
            author = Caller(event.actor, event.scope, event.session, act.caller.root)
            if warranted(claim.citations, passed_tests(act, claim.citations)) is Status.VERIFIED:
                waiting.append((claim, Act(act.transaction, author, act.now, act.config)))
    return waiting

"""Verify triggers the gate (G4): what a task staged is judged, what it relied on is credited or blamed, and an episode
is kept for success and for failure alike (G7-G10, R2)."""

from __future__ import annotations

from mnemarch.analysis.episode import Account, cut, task_described, told
from mnemarch.analysis.rules import LoggedStep, analysed, analysis_from
from mnemarch.errors import InvalidInput
from mnemarch.ledger.act import Act, receipt_for
from mnemarch.ledger.rejections import refusal_to_repeat
from mnemarch.ledger.standing import blame, credit, passed_tests, practise, raise_by_evidence, signal
from mnemarch.ledger.twins import said_alike
from mnemarch.model.citation import Citation, CitationKind
from mnemarch.model.claim import Claim, waiting_key
from mnemarch.model.event import EventType
from mnemarch.model.json_text import canonical_json
from mnemarch.model.outcome import Promotion, Refused, Stored
from mnemarch.model.presence import Presence
from mnemarch.model.scope import Level
from mnemarch.model.trust import Signal
from mnemarch.model.unit import Kind, Status
from mnemarch.model.value import replace
from mnemarch.policy.promotion import refusal_to_verify, warranted
from mnemarch.text.fence import without_fenced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from mnemarch.model.event import Event
    from mnemarch.model.outcome import Analysis
    from mnemarch.model.unit import Unit

# What the gate judges and what an episode tells; a task's graphs and recalls can be many times as much.
_STAGED = (EventType.LOGGED, EventType.UNIT_REMEMBERED, EventType.CLAIM_REFUSED, EventType.ATTEMPT_FAILED)
# So far back it is looked whether a unit is held for the same reason still.
_STEPS_BACK_MAX = 100
_CITED_LOGS_MAX = 20
_DECISIONS_MAX = 50


class Hands:
    """What the gate needs of the published side: the facade puts it in, so the stations stay apart."""

    def __init__(
        self,
        remember: Callable[[Act, Claim], Stored | Refused],
        record_unit: Callable[[Act, Claim, Status], tuple[Event, tuple[str, ...]]],
        relate: Callable[[Act, Unit], int],
    ) -> None:
        self.remember = remember
        self.record_unit = record_unit
        self.relate = relate


def verify(
    act: Act,
    *,
    passed: bool,
    tests: Sequence[str],
    commit: str | None,
    analysis: Analysis | Mapping[str, Any] | None,
    hands: Hands,
) -> Promotion:
    """Run the gate over everything the seat's task staged."""
    if act.presence.scope.level > Level.WORKTREE:
        raise InvalidInput(
            "Verify judges what a task staged, and this seat has no task.",
            hint="Take a seat with Scope(..., task=...).",
        )
    given = None if analysis is None else analysis_from(analysis, passed)
    staged = list(act.transaction.events_of_scope(act.presence.scope_key, _STAGED))
    payload = {"passed": passed, "tests": list(tests), "commit": commit}
    event, _ = act.record(EventType.TASK_VERIFIED, payload)
    _settle_reliance(act, passed)
    units, refused = _judged(act, staged, tests, hands) if passed else ([], [])
    episode, skill_id = _episode(act, staged, passed, tests, commit, given, hands)
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
    for use in act.transaction.uses_of_task(act.presence.scope_key):
        unit = act.transaction.unit(use.unit_id)
        if unit is None or not unit.live:
            continue
        if passed and not use.credited and act.presence.task_key is not None:
            credit(act, unit, use, Signal.REPEATED_SUCCESS)
        elif not passed and not use.blamed:
            blame(act, unit, use)


def _judged(act: Act, staged: Sequence[Event], tests: Sequence[str], hands: Hands) -> tuple[list[Unit], list[Refused]]:
    """Raise what the evidence now warrants; say of the rest which rule keeps it down."""
    raised: list[Unit] = []
    refused: list[Refused] = []
    for unit in _candidates(act, staged, tests):
        if unit.status is Status.HYPOTHESIS:
            after = raise_by_evidence(act, unit, Signal.TESTS_PASSED)
            if after.status is not Status.HYPOTHESIS:
                raised.append(after)
                continue
            refused.append(_held(act, unit))
        elif _cites_one_of(unit, tests):
            signal(act, EventType.UNIT_VALIDATED, unit, Signal.TESTS_PASSED, {})
    for claim, author in _waiting_claims(act, staged):
        outcome = hands.remember(author, claim)
        if isinstance(outcome, Refused):
            refused.append(outcome)
        elif not outcome.merged:
            raised.append(outcome.unit)
    return raised, refused


def _held(act: Act, unit: Unit) -> Refused:
    """What keeps a hypothesis down. It is recorded when it changes: a task that verifies often says it once."""
    refusal = refusal_to_verify(unit.citations, passed_tests(act, unit.citations))
    refusal = refusal or refusal_to_repeat(act, unit, unit.id)
    assert refusal is not None
    held = {"rule": refusal.rule, "reason": refusal.reason}
    known = _last_held(act, unit)
    if known is not None and (known.payload or {}).items() >= held.items():
        receipt = receipt_for(known, duplicate=True)
    else:
        receipt = receipt_for(act.record(EventType.UNIT_HELD, held, subject=unit.id)[0])
    return Refused(rule=refusal.rule, reason=f"{refusal.reason} {refusal.hint}", receipt=receipt, unit_id=unit.id)


def _last_held(act: Act, unit: Unit) -> Event | None:
    history = list(act.transaction.events_of_subject(unit.id, last=_STEPS_BACK_MAX))
    return next((event for event in reversed(history) if event.type is EventType.UNIT_HELD), None)


def _candidates(act: Act, staged: Sequence[Event], tests: Sequence[str]) -> list[Unit]:
    """The live units this task wrote, and visible ones that wait for a test which has just passed."""
    own = {event.subject for event in staged if event.type is EventType.UNIT_REMEMBERED and event.subject}
    found = act.transaction.units(sorted(own))
    for name in tests:
        waiting = act.transaction.units_citing(act.presence.visible_keys, CitationKind.TEST, name)
        found |= {unit.id: unit for unit in waiting}
    judged = (unit for unit in found.values() if unit.live and unit.kind is not Kind.EPISODE)
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
            author = Presence(event.actor, event.scope, event.session, act.presence.root)
            if warranted(claim.citations, passed_tests(act, claim.citations)) is Status.VERIFIED:
                waiting.append((claim, Act(act.transaction, author, act.now, act.config)))
    return waiting


def _episode(
    act: Act,
    staged: Sequence[Event],
    passed: bool,
    tests: Sequence[str],
    commit: str | None,
    given: Analysis | None,
    hands: Hands,
) -> tuple[Unit, str | None]:
    """Keep what happened (G9), linked to episodes like it (G11), and a skill if it works repeatedly (G10)."""
    logged = [event for event in staged if event.type is EventType.LOGGED and not event.erased]
    steps = [_step(event) for event in logged]
    level = Level.WORKTREE if act.presence.scope.worktree is not None else Level.TASK
    draft = given or analysed(steps, passed, 0)
    account = Account(
        name=_name(act),
        passed=passed,
        success=draft.success,
        steps=steps,
        failed_approaches=_failed_approaches(staged),
        tests=tests,
        commit=commit,
        # That no error was logged says little.
        critique=cut(draft.critique) if given or (steps and draft.score < 1) else "",
        is_own_critique=given is not None,
    )
    # Two tasks are compared by what is known of them, if it is only how their logs begin.
    described = cut(task_described(steps) or "")
    task = described or cut(next((step.text for step in steps if step.text.strip()), ""))
    cited = [Citation.log(event.id) for event in logged[-_CITED_LOGS_MAX:]]
    if passed:
        cited += [Citation.test(name) for name in tests]
    attributes = {
        "task": task or account.name,
        "task_key": act.presence.scope_key,
        "critique": cut(draft.critique),
        "reward": draft.score,
        "success": draft.success,
        "input": cut(canonical_json(steps[0].data.get("context", dict(steps[0].data)) if steps else {})),
        "output": cut(canonical_json(draft.result)),
        "key_decisions": [cut(decision) for decision in draft.key_decisions[:_DECISIONS_MAX]],
        "tests": list(tests),
        "commit": commit,
    }
    claim = Claim(
        content=told(account),
        kind=Kind.EPISODE,
        level=level,
        citations=tuple(cited),
        importance=0.6 if draft.success else 0.5,
        attributes=attributes,
    )
    episode = _written(act, claim, hands)
    # Tasks that nothing describes are alike only in that.
    similar_successes = hands.relate(act, episode) if task else 0
    # Without one like it the analysis is what it was; a long log is not read again for that.
    analysis = draft if given or not similar_successes else analysed(steps, passed, similar_successes)
    if not (analysis.success and analysis.is_repeatable):
        return episode, None
    return episode, _skill(act, analysis, described, level, episode, similar_successes, hands)


def _skill(
    act: Act, analysis: Analysis, task: str, level: Level, episode: Unit, successes: int, hands: Hands
) -> str | None:
    """The gate's own record too, one for what is the same: a further success of it counts for the one there is.

    One that was rejected is not made again.
    """
    name = cut(analysis.suggested_skill_name or "skill")
    code = cut(analysis.extracted_code or "")
    claim = Claim(
        content=f"{name}: {task}\n{code}".strip() if task else f"{name}\n{code}".strip(),
        kind=Kind.SKILL,
        level=level,
        citations=tuple(item for item in episode.citations if item.kind is CitationKind.TEST),
        importance=0.7,
        attributes={
            "name": name,
            "code": code,
            "successes": successes + 1,
            "failures": 0,
            "success_rate": 1.0,
            "episode": episode.id,
        },
    )
    known = [unit for unit in said_alike(act.transaction, act.presence.visible_keys, claim.content) if _is_skill(unit)]
    if not known:
        return _written(act, claim, hands).id if refusal_to_repeat(act, claim) is None else None
    use = act.transaction.use(known[0].id, act.presence.scope_key)
    if use is None or not use.credited:
        practise(act, known[0])
    return known[0].id


def _is_skill(unit: Unit) -> bool:
    return unit.kind is Kind.SKILL


def _written(act: Act, claim: Claim, hands: Hands) -> Unit:
    """The gate's own record: it stands for what happened, so no writer's permission is asked for it."""
    status = warranted(claim.citations, passed_tests(act, claim.citations))
    event, _ = hands.record_unit(act, claim, status)
    unit = act.transaction.unit(event.subject or "")
    assert unit is not None
    return unit


def _step(event: Event) -> LoggedStep:
    payload = event.payload or {}
    # What a task was handed from memory is not what it did: an episode must not hold it again (R6).
    text = without_fenced(payload.get("text", ""))
    return LoggedStep(kind=payload.get("kind", ""), text=text, data=payload.get("data") or {})


def _failed_approaches(staged: Sequence[Event]) -> list[str]:
    payloads = [event.payload for event in staged if event.type is EventType.ATTEMPT_FAILED and event.payload]
    return [cut(payload["approach"]) for payload in reversed(payloads) if payload["approach"]]


def _name(act: Act) -> str:
    scope = act.presence.scope
    return f"Task {scope.task}" if scope.task is not None else f"Worktree {scope.worktree}"

"""Verify triggers the gate (G4): what a task staged is judged, what it relied on is credited or blamed, and an episode
is kept for success and for failure alike (G7-G10, R2)."""

from __future__ import annotations

from mnemon.analysis.rules import LoggedStep, analysed, analysis_from
from mnemon.errors import InvalidInput
from mnemon.ledger.act import Act, receipt_for
from mnemon.ledger.standing import blame, credit, passed_tests, practise, raise_by_evidence, signal
from mnemon.ledger.twins import said_alike
from mnemon.model.citation import Citation, CitationKind
from mnemon.model.claim import Claim, waiting_key
from mnemon.model.event import EventType
from mnemon.model.json_text import canonical_json
from mnemon.model.outcome import Promotion, Refused, Stored
from mnemon.model.presence import Presence
from mnemon.model.scope import Level
from mnemon.model.trust import Signal
from mnemon.model.unit import Kind, Status
from mnemon.model.value import replace
from mnemon.policy.promotion import refusal_to_verify, warranted
from mnemon.text.fence import without_fenced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from mnemon.model.event import Event
    from mnemon.model.outcome import Analysis
    from mnemon.model.unit import Unit

_CITED_LOGS_MAX = 20
_DECISIONS_MAX = 50
_CHARS_MAX = 4_000


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
    staged = list(act.transaction.events_of_scope(act.presence.scope_key))
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
            refusal = refusal_to_verify(unit.citations, passed_tests(act, unit.citations))
            assert refusal is not None
            held = {"rule": refusal.rule, "reason": refusal.reason}
            event, _ = act.record(EventType.UNIT_HELD, held, subject=unit.id)
            reason = f"{refusal.reason} {refusal.hint}"
            refused.append(Refused(rule=refusal.rule, reason=reason, receipt=receipt_for(event), unit_id=unit.id))
        elif _cites_one_of(unit, tests):
            signal(act, EventType.UNIT_VALIDATED, unit, Signal.TESTS_PASSED, {})
    for claim, author in _waiting_claims(act, staged):
        outcome = hands.remember(author, claim)
        if isinstance(outcome, Refused):
            refused.append(outcome)
        elif not outcome.merged:
            raised.append(outcome.unit)
    return raised, refused


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
        payload = event.payload
        if event.type is EventType.CLAIM_REFUSED and payload is not None and payload["rule"] == "G23.validation":
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
    task = _task_description(steps, act)
    level = Level.WORKTREE if act.presence.scope.worktree is not None else Level.TASK
    draft = given or analysed(steps, passed, 0)
    cited = [Citation.log(event.id) for event in logged[-_CITED_LOGS_MAX:]]
    if passed:
        cited += [Citation.test(name) for name in tests]
    attributes = {
        "task": task,
        "task_key": act.presence.scope_key,
        "critique": _cut(draft.critique),
        "reward": draft.score,
        "success": draft.success,
        "input": _cut(canonical_json(steps[0].data.get("context", dict(steps[0].data)) if steps else {})),
        "output": _cut(canonical_json(draft.result)),
        "key_decisions": [_cut(decision) for decision in draft.key_decisions[:_DECISIONS_MAX]],
        "tests": list(tests),
        "commit": commit,
    }
    outcome = "succeeded" if draft.success else "failed"
    claim = Claim(
        content=f"{task}\n{outcome}: {_cut(draft.critique)}",
        kind=Kind.EPISODE,
        level=level,
        citations=tuple(cited),
        importance=0.6 if draft.success else 0.5,
        attributes=attributes,
    )
    episode = _written(act, claim, hands)
    similar_successes = hands.relate(act, episode)
    analysis = given or analysed(steps, passed, similar_successes)
    if not (analysis.success and analysis.is_repeatable):
        return episode, None
    return episode, _skill(act, analysis, task, level, episode, similar_successes, hands)


def _skill(act: Act, analysis: Analysis, task: str, level: Level, episode: Unit, successes: int, hands: Hands) -> str:
    """The gate's own record too, one for what is the same: a further success of it counts for the one there is."""
    name = _cut(analysis.suggested_skill_name or "skill")
    code = _cut(analysis.extracted_code or "")
    claim = Claim(
        content=f"{name}: {task}\n{code}".strip(),
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
        return _written(act, claim, hands).id
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


def _task_description(steps: Sequence[LoggedStep], act: Act) -> str:
    """What the first log entry says the task is (G9), else its first text, else its id."""
    if steps:
        described = steps[0].data.get("task_description") or steps[0].data.get("taskDescription")
        return _cut(str(described or steps[0].text))
    return f"Task {act.presence.scope.task or act.presence.scope.worktree}"


def _cut(text: str) -> str:
    """What an episode keeps of a long text; the whole stands in the log that it cites."""
    return text if len(text) <= _CHARS_MAX else f"{text[:_CHARS_MAX]} … ({len(text)} characters in all)"

"""Turns evidence and use into the status, trust and level of units. No other module does (R2, R7)."""

from __future__ import annotations

from mnemarch.errors import InvalidInput
from mnemarch.log.act import Act, receipt_for
from mnemarch.model.caller import GATE, ActorKind, Caller, Level, Scope, Stream
from mnemarch.model.decision import version_key_of
from mnemarch.model.event import EventType
from mnemarch.model.outcome import Refused, Stored
from mnemarch.model.stamps import micros
from mnemarch.model.testrun import DEFAULT_BRANCH, base_name, meant, short_name
from mnemarch.model.unit import (
    ACCEPTED,
    DISTRUSTED,
    KEPT_AS,
    OF_CODE,
    TRUSTED,
    Citation,
    CitationKind,
    Claim,
    Kind,
    Proof,
    Signal,
    Status,
    Unit,
    Use,
    trust_to_json,
)
from mnemarch.model.value import replace
from mnemarch.policy.permissions import Deed
from mnemarch.policy.promotion import (
    CitedTest,
    Refusal,
    carries,
    cited_names,
    proof_from,
    publishable,
    refusal_to_promote,
    standing,
)
from mnemarch.policy.trust import signalled, verified
from mnemarch.text.words import some_of
from mnemarch.units.finding import refusal_to_repeat, twin_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from mnemarch.stores.sql.reader import Reader
    from mnemarch.units.scene import TestSource

_AMBIGUOUS_SHOWN_MAX = 5
NO_SOURCES: Mapping[str, TestSource] = {}


def cited_tests(
    reader: Reader, caller: Caller, scope: Scope, said: Unit | Claim, sources: Mapping[str, TestSource] = NO_SOURCES
) -> dict[str, CitedTest]:
    """The outcome of each cited test for a claim or a unit of this scope, by the name that the citation uses.

    Of a test that was changed in this work, only outcomes since the change count, in the caller's worktree: those
    before, and those of other worktrees, are outcomes of another test.
    """
    refs, place = cited_names(said.citations), caller.scope.worktree or DEFAULT_BRANCH
    records = reader.tests(caller.stream, {short_name(ref) for ref in refs}, called=True) if refs else []
    since = {ref: source.changed_at for ref, source in sources.items() if source.changed_at is not None}
    here = [record for record in records if record.place == place]
    new = {ref: [record for record in here if record.at >= since[ref]] for ref in refs if ref in since}
    found = {ref: standing(ref, new.get(ref, records), scope) for ref in refs}
    # A test that says something else makes the others doubtful, which may be about another part of the claim.
    opposed = other_values(said, sources)
    if not opposed:
        return found
    return {ref: replace(test, passed=False, instead=opposed.get(ref, "")) for ref, test in found.items()}


def other_values(said: Unit | Claim, sources: Mapping[str, TestSource]) -> dict[str, str]:
    """What cited tests expect in place of what a claim or a unit says, by their names. Other tests are left out."""
    expected = {ref: sources[ref].expected for ref in cited_names(said.citations) if ref in sources}
    if not any(expected.values()):
        return {}
    from mnemarch.code.expectations import other_value

    values = {ref: other_value(said.content, ref, each) for ref, each in expected.items() if each is not None}
    return {ref: value for ref, value in values.items() if value}


def proof_of(act: Act, said: Unit | Claim, scope: Scope, sources: Mapping[str, TestSource]) -> Proof | None:
    """The proof that verifies a claim or a unit of this scope now, or None. `sources` describes the cited tests."""
    if not said.citations:
        return None
    tests = cited_tests(act.transaction, act.caller, scope, said, sources)
    about = any(_is_about(act, said, test, sources.get(test.ref)) for test in tests.values())
    lines = {digest for name in tests for digest in (sources[name].expects if name in sources else ())}
    return proof_from(said.citations, tests, act.now, is_about=about, expects=" ".join(sorted(lines)) or None)


def _is_about(act: Act, said: Unit | Claim, test: CitedTest, source: TestSource | None) -> bool:
    """Whether a test that was seen passing is evidence for this very claim (R20).

    One of these must hold: the test turned green in this task, its file was changed in this work, the claim cites or
    names code that the test names, or the claim cites a file that the check covers.
    """
    if not (test.passed and test.witnessed):
        return False
    if act.caller.scope_key in test.greened_by or (source is not None and source.changed_at is not None):
        return True
    from mnemarch.code.tests import is_about

    if source is None:
        return False
    files = [item.ref for item in said.citations if item.kind in OF_CODE]
    is_covered = any(not path or f"{file}/".startswith(f"{path}/") for path in source.covers for file in files)
    return is_covered or is_about(source.names, said.content, said.citations)


def check_citations(reader: Reader, caller: Caller, citations: Iterable[Citation]) -> None:
    """Raise if a cited log entry is missing, or if an actor vouches in another person's name (R2).

    Citations of code are checked earlier, before the act.
    """
    for citation in citations:
        if citation.kind is CitationKind.LOG:
            event = reader.event(citation.ref)
            if event is None or not caller.may_read(event.scope):
                raise InvalidInput(
                    f"No event {citation.ref!r} in this project's log.",
                    hint="Cite the id that log gave, or 6 characters of it.",
                )
        elif citation.kind is CitationKind.HUMAN:
            actor = caller.actor
            if actor.kind != "human" or actor.id != citation.ref:
                raise InvalidInput(
                    f"{actor} can't vouch in the name of human {citation.ref!r} (R2).",
                    hint=f"Let {citation.ref!r} approve or cite it from a seat of their own.",
                )


def whole_names(
    reader: Reader, stream: Stream, citations: Sequence[Citation], sources: Mapping[str, TestSource] = NO_SOURCES
) -> tuple[tuple[Citation, ...], Mapping[str, TestSource]]:
    """The citations, with bare test names replaced by whole ones if known, and the sources by these names too.

    Raises if a bare name fits several tests.
    """
    whole = [_whole_name(reader, stream, item) if item.kind is CitationKind.TEST else item for item in citations]
    named = {after.ref: sources[item.ref] for item, after in zip(citations, whole, strict=True) if item.ref in sources}
    return tuple(whole), {**sources, **named}


def _whole_name(reader: Reader, stream: Stream, citation: Citation) -> Citation:
    name = citation.ref
    if short_name(name) != name:
        return citation
    known = sorted({base_name(record.name) for record in reader.tests(stream, [name], called=True)})
    if len(known) > 1 and name not in known:
        shown = some_of(known, _AMBIGUOUS_SHOWN_MAX)
        raise InvalidInput(f"{name!r} names {len(known)} tests: {shown}.", hint="Cite one of them by its whole name.")
    return Citation.test(known[0]) if known and name not in known else citation


def change(act: Act, type: EventType, unit: Unit, payload: dict[str, Any]) -> Unit:
    """Record one change of a unit, and return the unit after it."""
    act.record(type, payload, subject=unit.id)
    return act.known_unit(unit.id)


def signal(act: Act, type: EventType, unit: Unit, given: Signal, payload: dict[str, Any]) -> Unit:
    """Record a change that also moves trust. Each kind of signal counts once per unit and task (R4)."""
    changes = dict(payload.get("set", {}))
    if not _is_repeated(act, unit, given):
        trust = signalled(unit.trust, given, act.now, act.config.trust)
        changes["trust"] = trust_to_json(trust)
        attributes = dict(changes.get("attributes") or unit.attributes)
        is_negative = act.config.trust.boosts[given] < 0
        if is_negative and trust.confidence <= act.config.trust.minimum and _is_doubted_elsewhere(act, unit):
            changes["attributes"] = attributes | {DISTRUSTED: True}
        elif not is_negative and DISTRUSTED in attributes:
            changes["attributes"] = {name: item for name, item in attributes.items() if name != DISTRUSTED}
        payload = payload | {"signal": str(given)}
    return change(act, type, unit, payload | {"set": changes}) if changes or payload else unit


def _is_repeated(act: Act, unit: Unit, given: Signal) -> bool:
    here = act.caller.scope_key
    events = act.transaction.events_of_subject(unit.id)
    return any(event.scope.key == here and (event.payload or {}).get("signal") == given for event in events)


def _is_doubted_elsewhere(act: Act, unit: Unit) -> bool:
    """Whether another task has already lowered the unit's trust. It takes two tasks to withhold a unit (R7)."""
    boosts, here = act.config.trust.boosts, act.caller.scope_key
    events = [event for event in act.transaction.events_of_subject(unit.id) if event.scope.key != here]
    return any(boosts.get((event.payload or {}).get("signal", ""), 0) < 0 for event in events)


def raise_by_evidence(
    act: Act, unit: Unit, given: Signal | None = None, sources: Mapping[str, TestSource] = NO_SOURCES
) -> Unit:
    """Raise the unit to the status and proof that its citations justify (Rule 2). Returns the unit, changed or not."""
    proof = proof_of(act, unit, unit.scope, sources)
    if proof is None or not unit.live:
        return unit
    if unit.proof is not None and unit.proof.about and set(proof.tests) & set(unit.proof.tests):
        proof = replace(proof, about=True)  # Once a test is about the claim, it stays so.
    if not _suffices(act, proof, unit.level):
        return unit
    is_better = unit.proof is None or _rank(proof) > _rank(unit.proof)
    if unit.status in TRUSTED and not is_better:
        return unit
    if refusal_to_repeat(act, unit, unit.id) is not None:
        return unit  # The text was rejected: evidence does not raise it until a person vouches for it.
    changes: dict[str, Any] = {"proof": proof.to_json(), "fell_from": None}
    payload: dict[str, Any] = {"because": list(proof.by)}
    if unit.status is Status.HYPOTHESIS:
        trust = unit.trust
        if given is not None and not _is_repeated(act, unit, given):
            trust = signalled(trust, given, act.now, act.config.trust)
            payload["signal"] = str(given)
        trust = verified(trust, act.now, act.config.trust)
        changes |= {"status": str(unit.fell_from or Status.VERIFIED), "trust": trust_to_json(trust)}
    return publish_if_reused(act, change(act, EventType.UNIT_VERIFIED, unit, payload | {"set": changes}))


def _suffices(act: Act, proof: Proof | None, level: Level) -> bool:
    """Whether a proof is good enough for a level. For the project, a test that was only reported is not (R21)."""
    return not act.config.policy.requires_validation(level) or (proof is not None and proof.carries)


def _rank(proof: Proof) -> tuple[bool, bool, bool]:
    return proof.person is not None, proof.carries, proof.witnessed


def follow_tests(act: Act, unit: Unit) -> Unit:
    """Update a unit after a run of its tests. It falls when all tests that verified it fail, and rises again (R2).

    A unit that a person vouches for does not fall. A flaky test changes no status; the proof is marked as flaky.
    """
    proof = unit.proof
    if proof is None or proof.person is not None or not proof.tests:
        return unit
    tests = _standing_at_home(act, unit, proof.tests)
    if not tests or not all(test.witnessed for test in tests):
        return unit
    if any(test.flaky for test in tests) and not proof.flaky:
        flaky = proof.to_json() | {"flaky": True}
        return change(act, EventType.UNIT_VERIFIED, unit, {"because": list(proof.by), "set": {"proof": flaky}})
    if unit.status in TRUSTED and all(test.failed for test in tests):
        unit = signal(act, EventType.UNIT_VALIDATED, unit, Signal.TESTS_FAILED, {})
        changes = {"status": str(Status.HYPOTHESIS), "fell_from": str(unit.status)}
        return change(act, EventType.UNIT_UNVERIFIED, unit, {"because": list(proof.by), "set": changes})
    if unit.fell_from is not None and unit.status is Status.HYPOTHESIS and any(test.passed for test in tests):
        return raise_by_evidence(act, unit, Signal.TESTS_PASSED)
    return unit


def _standing_at_home(act: Act, unit: Unit, names: Sequence[str]) -> list[CitedTest]:
    """The outcomes of tests where the unit lives: in its worktree, or on the default branch for a project's unit.

    If the default branch has no outcome of a test yet, the outcomes of all worktrees count, and the test fails only
    if none has it passing. So one failing worktree changes nothing. If the only branch that showed it takes it back,
    the unit falls.
    """
    place = unit.scope.worktree or DEFAULT_BRANCH
    records = act.transaction.tests(act.caller.stream, {short_name(name) for name in names}, called=True)
    records = [record for record in records if record.witnessed]
    there = [record for record in records if record.place == place]
    if unit.scope.worktree is None:
        there = there or records
    return [standing(name, there, unit.scope.at(Level.PROJECT)) for name in meant(names) if there]


def retire(act: Act, old: Unit, new_id: str, reason: str, **more: str | None) -> Unit:
    """Deprecate a unit because another replaces it or says the same. `more` are further fields to change."""
    changes = {
        "status": str(Status.DEPRECATED),
        "superseded_by": new_id,
        "contradiction_note": reason,
        "valid_to": micros(max(act.now, old.occurred_at)),
    }
    return change(act, EventType.UNIT_SUPERSEDED, old, {"new": new_id, "reason": reason, "set": changes | more})


def inherit(act: Act, twin: Unit, unit: Unit) -> None:
    """Give a twin that is a hypothesis the status, trust and proof of the better unit that is merged into it."""
    if twin.status is Status.HYPOTHESIS and unit.status in TRUSTED and _suffices(act, unit.proof, twin.level):
        proof = None if unit.proof is None else unit.proof.to_json()
        changes = {"status": str(unit.status), "trust": trust_to_json(unit.trust), "proof": proof}
        change(act, EventType.UNIT_VERIFIED, twin, {"because": [f"unit:{unit.id}"], "set": changes})


def credit(act: Act, unit: Unit, use: Use) -> Unit:
    """Credit a unit with one more task that reused it, and publish it when there are enough (Rule 3)."""
    flags = {"task_key": use.task_key, "used": use.used, "credited": True}
    changes: dict[str, Any] = {"uses": unit.uses + 1} | _practised(unit, succeeded=True)
    unit = signal(act, EventType.UNIT_USED, unit, Signal.REPEATED_SUCCESS, {"use": flags, "set": changes})
    return publish_if_reused(act, unit)


def publish_if_reused(act: Act, unit: Unit) -> Unit:
    """Publish a unit that is verified and was reused by enough distinct tasks, in either order (Rule 3)."""
    if not publishable(unit, act.config.gate.reuse_min):
        return unit
    payload = {"reuses": unit.uses, "set": {"status": str(Status.PUBLISHED)}}
    return change(act, EventType.UNIT_PUBLISHED, unit, payload)


def blame(act: Act, unit: Unit, use: Use) -> Unit:
    """Lower the trust in a unit because a task that relied on it failed. Each task counts once (R2)."""
    payload = {"use": {"task_key": use.task_key, "blamed": True}, "set": _practised(unit, succeeded=False)}
    return signal(act, EventType.UNIT_VALIDATED, unit, Signal.TESTS_FAILED, payload)


def practise(act: Act, skill: Unit) -> Unit:
    """Count a success for a skill that the task followed without having recalled it."""
    return signal(
        act, EventType.UNIT_VALIDATED, skill, Signal.REPEATED_SUCCESS, {"set": _practised(skill, succeeded=True)}
    )


def _practised(unit: Unit, *, succeeded: bool) -> dict[str, Any]:
    """A skill's new counts after one more task. Its success rate decides whether it is kept (G24)."""
    if unit.kind is not Kind.SKILL:
        return {}
    counted = dict(unit.attributes)
    for name, more in (("successes", succeeded), ("failures", not succeeded)):
        known = counted.get(name)
        counted[name] = (known if isinstance(known, int) else 0) + more
    counted["success_rate"] = round(counted["successes"] / (counted["successes"] + counted["failures"]), 4)
    return {"attributes": counted}


def as_gate(act: Act) -> Act:
    """The same act with the program's own gate as its actor (R4, R20)."""
    return act.by(Caller(GATE, act.caller.scope, act.caller.session, act.caller.root))


# To a wider level


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
    from mnemarch.units.conflicts import with_open_disputes  # A run of tests mostly promotes nothing.

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

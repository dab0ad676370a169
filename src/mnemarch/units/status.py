"""How the status of a unit rises and falls: the one place where evidence and use become status and trust (R2, R7)."""

from __future__ import annotations

from mnemarch.errors import InvalidInput
from mnemarch.model.caller import GATE, Caller, Level, Scope, Stream
from mnemarch.model.citation import OF_CODE, Citation, CitationKind
from mnemarch.model.event import EventType
from mnemarch.model.stamps import micros
from mnemarch.model.testrun import DEFAULT_BRANCH, TestRecord, base_name, meant, short_name
from mnemarch.model.unit import DISTRUSTED, TRUSTED, Claim, Kind, Proof, Signal, Status, Unit, Use, trust_to_json
from mnemarch.model.value import replace
from mnemarch.policy.promotion import CitedTest, cited_names, proof_from, publishable, standing
from mnemarch.policy.trust import signalled, verified
from mnemarch.units.same_text import refusal_to_repeat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from mnemarch.log.act import Act
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.units.scene import TestSource

_AMBIGUOUS_SHOWN_MAX = 5


def cited_tests(reader: Reader, stream: Stream, scope: Scope, citations: Iterable[Citation]) -> dict[str, CitedTest]:
    """How each cited test stands for a unit of this scope, by the name it is cited with."""
    refs = cited_names(citations)
    records = reader.tests(stream, {short_name(ref) for ref in refs}, called=True) if refs else []
    return {ref: standing(ref, records, scope) for ref in refs}


def proof_of(act: Act, said: Unit | Claim, scope: Scope, sources: Mapping[str, TestSource]) -> Proof | None:
    """What verifies a claim or a unit of this scope now; `sources` is what the working tree says of its tests."""
    if not said.citations:
        return None
    tests = cited_tests(act.transaction, act.caller.stream, scope, said.citations)
    about = any(_is_about(act, said, test, sources.get(test.ref)) for test in tests.values())
    lines = {digest for name in tests for digest in (sources[name].expects if name in sources else ())}
    return proof_from(said.citations, tests, act.now, is_about=about, expects=" ".join(sorted(lines)) or None)


def _is_about(act: Act, said: Unit | Claim, test: CitedTest, source: TestSource | None) -> bool:
    """Whether a test seen passing is evidence about a claim (R20).

    It turned green in this task, or its file was changed in it, or the claim cites or names code that the test names,
    or cites a file that the check covers.
    """
    if not (test.passed and test.witnessed):
        return False
    if act.caller.scope_key in test.greened_by or (source is not None and source.is_changed):
        return True
    from mnemarch.code.tests import is_about

    if source is None:
        return False
    files = [item.ref for item in said.citations if item.kind in OF_CODE]
    is_covered = any(not path or f"{file}/".startswith(f"{path}/") for path in source.covers for file in files)
    return is_covered or is_about(source.names, said.content, said.citations)


def check_citations(reader: Reader, caller: Caller, citations: Iterable[Citation]) -> None:
    """Refuse evidence that isn't there, and a person's word given by another (R2). Code is checked before the act."""
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


def whole_names(reader: Reader, stream: Stream, citations: Iterable[Citation]) -> tuple[Citation, ...]:
    """The citations with tests by their whole names, where a bare name is known; one that fits several is refused."""
    return tuple(_whole_name(reader, stream, item) if item.kind is CitationKind.TEST else item for item in citations)


def _whole_name(reader: Reader, stream: Stream, citation: Citation) -> Citation:
    name = citation.ref
    if short_name(name) != name:
        return citation
    known = sorted({base_name(record.name) for record in reader.tests(stream, [name], called=True)})
    if len(known) > 1 and name not in known:
        shown = ", ".join(known[:_AMBIGUOUS_SHOWN_MAX])
        raise InvalidInput(f"{name!r} names {len(known)} tests: {shown}.", hint="Cite one of them by its whole name.")
    return Citation.test(known[0]) if known and name not in known else citation


def change(act: Act, type: EventType, unit: Unit, payload: dict[str, Any]) -> Unit:
    """Record one step in a unit's life and give the unit as it stands after it."""
    act.record(type, payload, subject=unit.id)
    return act.known_unit(unit.id)


def signal(act: Act, type: EventType, unit: Unit, given: Signal, payload: dict[str, Any]) -> Unit:
    """Record a step that also moves trust. One signal of one kind counts once per unit and task (R4)."""
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
    """Whether another task has already lowered the trust in it: only two together withhold a unit (R7)."""
    boosts, here = act.config.trust.boosts, act.caller.scope_key
    events = [event for event in act.transaction.events_of_subject(unit.id) if event.scope.key != here]
    return any(boosts.get((event.payload or {}).get("signal", ""), 0) < 0 for event in events)


def raise_by_evidence(
    act: Act, unit: Unit, given: Signal | None = None, sources: Mapping[str, TestSource] | None = None
) -> Unit:
    """The unit with the status and proof that its citations warrant (Rule 2); else as it is."""
    proof = proof_of(act, unit, unit.scope, sources or {})
    if proof is None or not unit.live:
        return unit
    if unit.proof is not None and unit.proof.about and set(proof.tests) & set(unit.proof.tests):
        proof = replace(proof, about=True)  # A test that is about the claim stays so.
    if not _suffices(act, proof, unit.level):
        return unit
    is_better = unit.proof is None or _rank(proof) > _rank(unit.proof)
    if unit.status in TRUSTED and not is_better:
        return unit
    if refusal_to_repeat(act, unit, unit.id) is not None:
        return unit  # The same was rejected: until a person speaks for it, evidence alone does not raise it.
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
    """Whether what verifies is good enough at this level: what was only reported is not, for the project (R21)."""
    return not act.config.policy.requires_validation(level) or (proof is not None and proof.carries)


def _rank(proof: Proof) -> tuple[bool, bool, bool]:
    return proof.person is not None, proof.carries, proof.witnessed


def follow_tests(act: Act, unit: Unit) -> Unit:
    """The unit after a run of a test that verified it: it falls when every such test fails, and returns (R2).

    A person's word stands whatever a test says. A flaky test moves nothing; the proof says that it is flaky.
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


def red_among(units: Iterable[Unit], here: Sequence[TestRecord], scope: Scope) -> set[str]:
    """The ids of verified units whose every test was last seen failing in the caller's worktree (R2).

    The label of a project's unit follows the default branch; a reader who stands where its tests fail has to know.
    """
    shown = {unit.id: tests for unit in units if unit.status in TRUSTED and (tests := _tests_behind(unit.proof))}
    scope = scope.at(Level.PROJECT)
    return {
        unit_id for unit_id, tests in shown.items() if all(standing(name, here, scope).failed for name in meant(tests))
    }


def _tests_behind(proof: Proof | None) -> Sequence[str]:
    """The tests that a label rests on, if it rests on nothing else."""
    return () if proof is None or proof.person is not None or proof.until is not None else proof.tests


def _standing_at_home(act: Act, unit: Unit, names: Sequence[str]) -> list[CitedTest]:
    """How the tests stand where the unit lives: in its worktree, or for a project's unit on the default branch.

    A test that the default branch has not yet stands as it does in the worktrees that ran it: it fails if none has it
    passing. So one red worktree moves nothing, and what a branch showed and took back is shown by nobody.
    """
    place = unit.scope.worktree or DEFAULT_BRANCH
    records = act.transaction.tests(act.caller.stream, {short_name(name) for name in names}, called=True)
    records = [record for record in records if record.witnessed]
    there = [record for record in records if record.place == place]
    if unit.scope.worktree is None:
        there = there or records
    return [standing(name, there, unit.scope.at(Level.PROJECT)) for name in meant(names) if there]


def retire(act: Act, old: Unit, new_id: str, reason: str, **more: str | None) -> Unit:
    """Put a unit out of force because another takes its place, or tells the same; `more` changes with it."""
    changes = {
        "status": str(Status.DEPRECATED),
        "superseded_by": new_id,
        "contradiction_note": reason,
        "valid_to": micros(max(act.now, old.occurred_at)),
    }
    return change(act, EventType.UNIT_SUPERSEDED, old, {"new": new_id, "reason": reason, "set": changes | more})


def inherit(act: Act, twin: Unit, unit: Unit) -> None:
    """A hypothesis into which a better unit folds stands as that unit stood."""
    if twin.status is Status.HYPOTHESIS and unit.status in TRUSTED and _suffices(act, unit.proof, twin.level):
        proof = None if unit.proof is None else unit.proof.to_json()
        changes = {"status": str(unit.status), "trust": trust_to_json(unit.trust), "proof": proof}
        change(act, EventType.UNIT_VERIFIED, twin, {"because": [f"unit:{unit.id}"], "set": changes})


def credit(act: Act, unit: Unit, use: Use) -> Unit:
    """Count one more task that reused the unit, and publish it when there are enough (Rule 3). One task counts once."""
    flags = {"task_key": use.task_key, "used": use.used, "credited": True}
    changes: dict[str, Any] = {"uses": unit.uses + 1} | _practised(unit, succeeded=True)
    unit = signal(act, EventType.UNIT_USED, unit, Signal.REPEATED_SUCCESS, {"use": flags, "set": changes})
    return publish_if_reused(act, unit)


def publish_if_reused(act: Act, unit: Unit) -> Unit:
    """Verified to published, once enough distinct tasks have reused it, in whichever order the two came (Rule 3)."""
    if not publishable(unit, act.config.gate.reuse_min):
        return unit
    payload = {"reuses": unit.uses, "set": {"status": str(Status.PUBLISHED)}}
    return change(act, EventType.UNIT_PUBLISHED, unit, payload)


def blame(act: Act, unit: Unit, use: Use) -> Unit:
    """A task that relied on the unit failed: trust falls, once for each task (R2)."""
    payload = {"use": {"task_key": use.task_key, "blamed": True}, "set": _practised(unit, succeeded=False)}
    return signal(act, EventType.UNIT_VALIDATED, unit, Signal.TESTS_FAILED, payload)


def practise(act: Act, skill: Unit) -> Unit:
    """A task succeeded by what the skill says, without having been handed it."""
    return signal(
        act, EventType.UNIT_VALIDATED, skill, Signal.REPEATED_SUCCESS, {"set": _practised(skill, succeeded=True)}
    )


def _practised(unit: Unit, *, succeeded: bool) -> dict[str, Any]:
    """What one more task says of a skill: its success rate decides whether it is kept (G24)."""
    if unit.kind is not Kind.SKILL:
        return {}
    counted = dict(unit.attributes)
    for name, more in (("successes", succeeded), ("failures", not succeeded)):
        known = counted.get(name)
        counted[name] = (known if isinstance(known, int) else 0) + more
    counted["success_rate"] = round(counted["successes"] / (counted["successes"] + counted["failures"]), 4)
    return {"attributes": counted}


def as_gate(act: Act) -> Act:
    """The same act in the name of the program's own gate (R4, R20)."""
    return act.by(Caller(GATE, act.caller.scope, act.caller.session, act.caller.root))

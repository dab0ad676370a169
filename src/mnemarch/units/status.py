"""How the status of a unit rises and falls: the one place where evidence and use become status and trust (R2, R7)."""

from __future__ import annotations

from mnemarch.errors import InvalidInput
from mnemarch.model.citation import CitationKind
from mnemarch.model.event import EventType
from mnemarch.model.unit import Kind, Signal, Status, trust_to_json
from mnemarch.policy.promotion import counts, publishable, warranted
from mnemarch.policy.trust import signalled, verified
from mnemarch.units.same_text import refusal_to_repeat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from mnemarch.log.act import Act
    from mnemarch.model.caller import Caller
    from mnemarch.model.citation import Citation
    from mnemarch.model.unit import Unit, Use
    from mnemarch.stores.sql.reader import Reader


def passed_tests(act: Act, citations: Iterable[Citation]) -> set[str]:
    """Those of the cited tests that a verification of this project last recorded as passed."""
    names = {item.ref for item in citations if item.kind is CitationKind.TEST}
    return {name for name in names if act.transaction.test_passed(act.caller.stream, name)}


def check_citations(reader: Reader, caller: Caller, citations: Iterable[Citation]) -> None:
    """Refuse evidence that isn't there, and a person's word given by another (R2). Code is checked before the act."""
    for citation in citations:
        if citation.kind is CitationKind.LOG:
            event = reader.event(citation.ref)
            if event is None or event.stream != caller.stream:
                raise InvalidInput(
                    f"No event {citation.ref!r} in this project's log.", hint="Cite a receipt's event_id."
                )
        elif citation.kind is CitationKind.HUMAN:
            actor = caller.actor
            if actor.kind != "human" or actor.id != citation.ref:
                raise InvalidInput(
                    f"{actor} can't vouch in the name of human {citation.ref!r} (R2).",
                    hint=f"Let {citation.ref!r} approve or cite it from a seat of their own.",
                )


def change(act: Act, type: EventType, unit: Unit, payload: dict[str, Any]) -> Unit:
    """Record one step in a unit's life and give the unit as it stands after it."""
    act.record(type, payload, subject=unit.id)
    after = act.transaction.unit(unit.id)
    assert after is not None
    return after


def signal(act: Act, type: EventType, unit: Unit, given: Signal, payload: dict[str, Any]) -> Unit:
    """Record a step that also moves trust."""
    trust = signalled(unit.trust, given, act.now, act.config.trust)
    changes = payload.get("set", {}) | {"trust": trust_to_json(trust)}
    return change(act, type, unit, payload | {"signal": str(given), "set": changes})


def raise_by_evidence(act: Act, unit: Unit, given: Signal | None = None) -> Unit:
    """Hypothesis to verified, if its citations warrant it (Rule 2); else the unit as it is."""
    tests = passed_tests(act, unit.citations)
    if unit.status is not Status.HYPOTHESIS or warranted(unit.citations, tests) is not Status.VERIFIED:
        return unit
    if refusal_to_repeat(act, unit, unit.id) is not None:
        return unit  # The same was rejected: until a person speaks for it, evidence alone does not raise it.
    because = [str(citation) for citation in unit.citations if counts(citation, tests)]
    trust = unit.trust if given is None else signalled(unit.trust, given, act.now, act.config.trust)
    trust = verified(trust, act.now, act.config.trust)
    changes = {"status": str(Status.VERIFIED), "trust": trust_to_json(trust)}
    return publish_if_reused(act, change(act, EventType.UNIT_VERIFIED, unit, {"because": because, "set": changes}))


def inherit(act: Act, twin: Unit, unit: Unit) -> None:
    """A hypothesis into which a better unit folds stands as that unit stood."""
    if twin.status is Status.HYPOTHESIS and unit.status is not Status.HYPOTHESIS:
        changes = {"status": str(unit.status), "trust": trust_to_json(unit.trust)}
        change(act, EventType.UNIT_VERIFIED, twin, {"because": [f"unit:{unit.id}"], "set": changes})


def credit(act: Act, unit: Unit, use: Use, given: Signal | None) -> Unit:
    """Count one more task that reused the unit, and publish it when there are enough (Rule 3). One task counts once."""
    flags = {"task_key": use.task_key, "used": use.used, "credited": True}
    changes: dict[str, Any] = {"uses": unit.uses + 1}
    if given is not None:
        changes |= _practised(unit, succeeded=True)
    if given is None:
        unit = change(act, EventType.UNIT_USED, unit, {"use": flags, "set": changes})
    else:
        unit = signal(act, EventType.UNIT_USED, unit, given, {"use": flags, "set": changes})
    return publish_if_reused(act, unit)


def publish_if_reused(act: Act, unit: Unit) -> Unit:
    """Verified to published, once enough distinct tasks have reused it, in whichever order the two came (Rule 3)."""
    if not publishable(unit.status, unit.uses, act.config.gate.reuse_min):
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

"""What makes a unit more or less sure: citations, signals, use, a person's yes or no."""

from __future__ import annotations

from mnemarch.errors import Hint, InvalidInput, NotAllowed
from mnemarch.model.caller import ActorKind
from mnemarch.model.citation import OF_CODE, Citation, CitationKind
from mnemarch.model.event import EventType
from mnemarch.model.unit import Signal, Status, Unit
from mnemarch.model.value import replace
from mnemarch.policy.permissions import Deed
from mnemarch.units.same_text import rejection_of
from mnemarch.units.status import change, check_citations, raise_by_evidence, signal, whole_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from mnemarch.log.act import Act

_A_PERSONS = frozenset({Signal.HUMAN_APPROVED, Signal.HUMAN_REJECTED})


def cite(act: Act, unit_id: str, citation: Citation, expected_version: int | None) -> Unit:
    """Add evidence; a passed test or a person's own word makes a hypothesis verified at once (Rule 2)."""
    unit = act.permitted_unit(unit_id, Deed.CITE, expected_version)
    check_citations(act.transaction, act.caller, [citation])
    citation = whole_names(act.transaction, act.caller.stream, [citation])[0]
    payload: dict[str, Any] = {} if citation in unit.citations else {"cite": [citation.to_json()]}
    if act.caller.task_key is not None:
        payload["use"] = {"task_key": act.caller.task_key, "used": True}
    cited = change(act, EventType.UNIT_CITED, unit, payload) if payload else unit
    return raise_by_evidence(act, cited)


def move(act: Act, unit_id: str, moves: Mapping[str, str], expected_version: int | None) -> Unit:
    """Cite files by the names they have now; the event keeps the old ones."""
    unit = act.permitted_unit(unit_id, Deed.CITE, expected_version)
    cited = [_moved(item, moves) if item.kind in OF_CODE else item for item in unit.citations]
    changes = {"citations": [citation.to_json() for citation in dict.fromkeys(cited)]}
    return change(act, EventType.UNIT_MOVED, unit, {"moves": dict(moves), "set": changes})


def _moved(citation: Citation, moves: Mapping[str, str]) -> Citation:
    """The citation by its new name; the old one is kept for branches that still have it."""
    path = moves.get(citation.ref)
    if path is None:
        return citation
    detail = dict(citation.detail) | {"was": citation.ref}
    return replace(citation, ref=path, detail=tuple(sorted(detail.items())))


def retake(act: Act, unit: Unit, citations: Sequence[Citation], because: Sequence[str] = ()) -> Unit:
    """Cite changed signatures as they are now, because a test that the unit cites passes on the changed code (R11).

    `citations` are the new ones, as `code.citing.retaken` gives them; `because` names the tests that passed.
    """
    cited = [citation.to_json() for citation in citations]
    return change(act, EventType.UNIT_CITED, unit, {"cite": cited, "because": list(because)}) if cited else unit


def validate(act: Act, unit_id: str, given: Signal, expected_version: int | None) -> Unit:
    """One signal for or against a unit (G18); a person's signals come only from a person (R2)."""
    unit = act.permitted_unit(unit_id, Deed.VALIDATE, expected_version)
    if given in _A_PERSONS and act.caller.actor.kind is not ActorKind.HUMAN:
        raise NotAllowed(
            f"{act.caller.actor} may not give the signal {given}: it is a person's (R2).",
            rule="R2",
            hint="Let a human approve or reject the unit.",
        )
    return signal(act, EventType.UNIT_VALIDATED, unit, given, {})


def use(act: Act, unit_id: str, expected_version: int | None) -> Unit:
    """Mark a unit as used by the seat's task: it counts once the task succeeds, for blame once it fails (R2)."""
    unit = act.permitted_unit(unit_id, Deed.USE, expected_version)
    task_key = act.caller.task_key
    if task_key is None:
        raise InvalidInput("Use is counted by task, and this seat has none.", hint=Hint("name the task"))
    earlier = act.transaction.use(unit_id, task_key)
    if earlier is not None and earlier.used:
        return unit
    return change(act, EventType.UNIT_USED, unit, {"use": {"task_key": task_key, "handed": True, "used": True}})


def note_help(act: Act, unit_ids: Iterable[str]) -> None:
    """Note that what was handed to the seat's task helped it: a sign of use, though no `use` that is blamed (R2)."""
    for unit_id in unit_ids:
        handed = act.transaction.use(unit_id, act.caller.task_key or "")
        if handed is not None and handed.handed and not handed.credited:
            change(act, EventType.UNIT_USED, act.known_unit(unit_id), {"helped": True})


def approve(act: Act, unit_id: str, expected_version: int | None) -> Unit:
    """A yes. A human's is evidence and verifies; an orchestrator's is recorded, since only Rule 2 makes verified."""
    unit = act.permitted_unit(unit_id, Deed.APPROVE, expected_version)
    actor = act.caller.actor
    changes: dict[str, object] = {}
    if rejection_of(act.transaction, unit) is not None:
        changes = {
            "status": str(unit.archived_from or Status.HYPOTHESIS),
            "archived_from": None,
            "archive_reason": None,
        }
    if actor.kind is not ActorKind.HUMAN:
        return change(act, EventType.UNIT_APPROVED, unit, {"set": changes})
    payload = {"cite": [Citation.human(actor.id).to_json()], "set": changes}
    approved = signal(act, EventType.UNIT_APPROVED, unit, Signal.HUMAN_APPROVED, payload)
    return raise_by_evidence(act, approved)


def reject(act: Act, unit_id: str, reason: str, expected_version: int | None) -> Unit:
    """A no: trust falls and the unit leaves recall; an approval or a revival brings it back."""
    unit = act.permitted_unit(unit_id, Deed.REJECT, expected_version)
    changes = {
        "status": str(Status.ARCHIVED),
        "archived_from": str(unit.archived_from or unit.status),
        "archive_reason": f"rejected: {reason}",
    }
    payload = {"reason": reason, "set": changes}
    if act.caller.actor.kind is not ActorKind.HUMAN:
        return change(act, EventType.UNIT_REJECTED, unit, payload)
    return signal(act, EventType.UNIT_REJECTED, unit, Signal.HUMAN_REJECTED, payload)


def withdraw(act: Act, unit_id: str, reason: str, expected_version: int | None) -> Unit:
    """An author's own no, while the unit is nobody else's business (R4)."""
    unit = act.changeable_unit(unit_id, expected_version)
    if not unit.live:
        raise InvalidInput(f"Unit {unit_id} is {unit.status}.", hint="Only a live claim can be taken back.")
    others = [source for source in unit.provenance if source.actor != act.caller.actor]
    own_tasks = {source.scope.key for source in unit.provenance}
    used = [use for use in act.transaction.uses_of_unit(unit_id) if use.used and use.task_key not in own_tasks]
    people = [
        item.ref for item in unit.citations if item.kind is CitationKind.HUMAN and item.ref != act.caller.actor.id
    ]
    if others or used or people or not unit.provenance:
        who = f"{others[0].actor} said it too" if others else "another task used or cited it"
        who = f"{people[0]} vouches for it" if people else who
        raise NotAllowed(
            f"{act.caller.actor} may not withdraw unit {unit_id}: {who} (R4).",
            rule="R4",
            hint="Ask a person or an orchestrator to reject it.",
        )
    changes = {"status": str(Status.ARCHIVED), "archived_from": str(unit.status)}
    changes["archive_reason"] = f"withdrawn: {reason}"
    return change(act, EventType.UNIT_ARCHIVED, unit, {"reason": reason, "set": changes})

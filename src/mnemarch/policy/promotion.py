"""What the gate lets through: status by evidence (S10, R2), level by actor and status (G6, R4)."""

from __future__ import annotations

from mnemarch.model.caller import ActorKind, Level, can_promote
from mnemarch.model.citation import CitationKind
from mnemarch.model.unit import TRUSTED, Status
from mnemarch.model.value import value
from mnemarch.policy.permissions import Deed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from mnemarch.model.caller import Actor
    from mnemarch.model.citation import Citation
    from mnemarch.model.unit import Unit
    from mnemarch.policy.permissions import Policy


@value
class Refusal:
    """Why the gate said no: the rule, in words, and what would help."""

    rule: str
    reason: str
    hint: str = ""


def counts(citation: Citation, passed_tests: Collection[str]) -> bool:
    """Whether this citation verifies by itself (Rule 2): a human's word, or a test that a verification saw pass."""
    return citation.kind is CitationKind.HUMAN or (citation.kind is CitationKind.TEST and citation.ref in passed_tests)


def warranted(citations: Iterable[Citation], passed_tests: Collection[str]) -> Status:
    """The status that this evidence permits (Rules 1 and 2)."""
    return Status.VERIFIED if any(counts(item, passed_tests) for item in citations) else Status.HYPOTHESIS


def refusal_to_verify(citations: Collection[Citation], passed_tests: Collection[str]) -> Refusal | None:
    """Why these citations don't make a unit verified, or None if they do."""
    if not citations:
        return Refusal(
            "S10.1", "It cites nothing, so it stays a hypothesis.", "Cite a test or have a human approve it."
        )
    if warranted(citations, passed_tests) is Status.HYPOTHESIS:
        pending = [item.ref for item in citations if item.kind is CitationKind.TEST]
        if pending:
            return Refusal("S10.2", f"No verification recorded {pending[0]} as passed.", "Run it and verify the task.")
        return Refusal(
            "S10.2", "Only a test or a human citation verifies.", "Cite a passing test, or have a human approve it."
        )
    return None


def publishable(status: Status, reuses: int, reuse_min: int) -> bool:
    """Rule 3: verified, and reused by enough distinct tasks."""
    return status is Status.VERIFIED and reuses >= reuse_min


def refusal_to_write(actor: Actor, level: Level, status: Status, policy: Policy) -> Refusal | None:
    """Why this actor may not place content of this status at this level, or None (G23, R4)."""
    if not policy.allows(actor.kind, Deed.WRITE, level):
        return Refusal("G23", f"{actor} may not write at {level} scope.", _who_may_write(level, policy))
    if policy.requires_validation(level) and status not in TRUSTED:
        return Refusal(
            "G23.validation",
            f"{level} scope takes only verified knowledge; this is a {status}.",
            "Cite a test that a verification recorded as passed, or a human's approval.",
        )
    return None


def _who_may_write(level: Level, policy: Policy) -> str:
    if level is Level.TASK:
        kinds = [str(kind) for kind in ActorKind if policy.allows(kind, Deed.WRITE, level)]
        return f"At {level} scope that is for: {', '.join(kinds)}. Write at a wider level, or as one of these."
    return "Write at a narrower level, or have an actor that may promote it."


def refusal_to_promote(unit: Unit, target: Level, actor: Actor, policy: Policy) -> Refusal | None:
    """Why this unit may not be promoted to `target`, or None (G6, R2, R4)."""
    if not can_promote(unit.level, target):
        return Refusal("G6", f"{unit.level} to {target} is not upward.", "Promote to a wider level than the unit has.")
    if not unit.live:
        return Refusal("G6", f"The unit is {unit.status}.", "Revive it first, or promote what replaced it.")
    refusal = refusal_to_write(actor, target, unit.status, policy)
    if refusal is None and target is Level.ORG and unit.status is not Status.PUBLISHED:
        return Refusal(
            "S10.3",
            "Only published knowledge reaches org scope.",
            "Let more tasks reuse it first (gate.reuse_min).",
        )
    return refusal


def refusal_to_replace(new: Unit, old: Unit, policy: Policy) -> Refusal | None:
    """Why `new` may not replace `old`, or None: it must be allowed at the level of `old` (R4, R8)."""
    if new.level < old.level:
        return Refusal(
            "R8",
            f"A {new.level} unit can't replace a {old.level} unit: others would be left with nothing.",
            f"Promote it to {old.level} first.",
        )
    if policy.requires_validation(old.level) and new.status not in TRUSTED:
        return Refusal(
            "G23.validation",
            f"{old.level} scope takes only verified knowledge; unit {new.id} is a {new.status}.",
            "Cite a test that a verification recorded as passed, or a human's approval.",
        )
    return None

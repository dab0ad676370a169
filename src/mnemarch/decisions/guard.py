"""Protects decisions: only a person retires or restores what the guardian protects, with any verb (D8, D11)."""

from __future__ import annotations

from mnemarch.decisions.loading import GLOBAL
from mnemarch.errors import NotAllowed
from mnemarch.lazy import Lazy
from mnemarch.model.caller import Actor, ActorKind, Caller, Level
from mnemarch.model.decision import Decision, GuardianVerdict, RelationType, Strength, version_key_of
from mnemarch.model.event import EventType
from mnemarch.model.outcome import Verdict
from mnemarch.model.unit import Kind, Unit
from mnemarch.policy.guardian import parting
from mnemarch.policy.permissions import Deed
from mnemarch.units import life
from mnemarch.units.finding import rejection_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mnemarch.log.act import Act
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.text import opposition as opposing
else:
    opposing = Lazy("mnemarch.text.opposition")

RULE = "D11"
_LEAVING = frozenset({EventType.UNIT_REJECTED, EventType.UNIT_ARCHIVED})
_RETURNING = frozenset({EventType.UNIT_APPROVED, EventType.UNIT_REVIVED})


def in_force_among(reader: Reader, caller: Caller, roots: Iterable[str]) -> list[Decision]:
    """The decisions with these roots that are in force and visible."""
    units = (reader.decision_in_force(root) for root in roots)
    return [Decision(unit) for unit in units if unit is not None and unit.scope.key in caller.visible_keys]


def firmest_first(decision: Decision) -> tuple[int, str]:
    return -decision.strength.rank, decision.root_id


def binding(reader: Reader, caller: Caller, base: Decision) -> list[Decision]:
    """The decisions that constrain this one, firmest first."""
    sources = [one.source for one in reader.relations_to([base.root_id]) if one.type is RelationType.CONSTRAINS]
    return sorted((one for one in in_force_among(reader, caller, sources) if binds(one, base)), key=firmest_first)


def binds(source: Decision, target: Decision) -> bool:
    """Whether a decision can bind another. A worktree's decision can't bind a project's."""
    return source.unit.level >= target.unit.level


def opposed(
    reader: Reader, caller: Caller, text: str, *, domain: str, level: Level, base: Decision | None
) -> list[tuple[Decision, str]]:
    """The axes and locks that a proposal opposes where it would hold, each with the reason, firmest first (R6, R12).

    They are not part of the guardian's verdict, which rests on relations alone (D11). Axes and locks are few, so each
    is compared; there may be 100,000 normal decisions (D7).
    """
    root = None if base is None else base.root_id
    firm = [Decision(unit) for unit in reader.firm(caller.visible_keys, list(dict.fromkeys((domain, GLOBAL))))]
    others = [one for one in firm if one.unit.level >= level and one.root_id != root]
    pairs = [(one, found.reason) for one in others if (found := opposing.breaks(text, one.text)) is not None]
    return sorted(pairs, key=lambda pair: firmest_first(pair[0]))


def still_opposed(
    text: str, disputed: Iterable[Decision], known: Iterable[tuple[Decision, str]]
) -> list[tuple[Decision, str]]:
    """The decisions in conflict with the revised version that the new version opposes too, with the reasons (R12)."""
    ids = {one.id for one, _ in known}
    found = ((one, opposing.breaks(text, one.text)) for one in disputed if one.id not in ids)
    return [(one, opposition.reason) for one, opposition in found if opposition is not None]


def is_a_persons(unit: Unit) -> bool:
    """Whether the unit is a person's policy, axis or lock."""
    key = version_key_of(unit)
    binds = unit.kind is Kind.POLICY if key is None else key.strength > Strength.NORMAL.rank
    return binds and unit.author is not None and unit.author.kind is ActorKind.HUMAN


def verdict_on_retiring(reader: Reader, caller: Caller, unit: Unit) -> GuardianVerdict | None:
    """The guardian's verdict on taking a decision out of force. None for other units."""
    if not unit.live or version_key_of(unit) is None:
        return None
    base = Decision(unit)
    return parting(base, binding(reader, caller, base))


def require_may_retire(act: Act, unit: Unit) -> None:
    """Raise if only a person may take the unit out of force (R4).

    That holds for a decision that the guardian blocks, for a person's policy, axis or lock, and for evidence of a
    protected decision, even if it was retired before.
    """
    if act.caller.actor.kind is ActorKind.HUMAN or not (unit.live or unit.kind is Kind.EVIDENCE):
        return
    verdict = verdict_on_retiring(act.transaction, act.caller, unit)
    reasons = verdict.reasons if verdict is not None and verdict.type is Verdict.BLOCK else ()
    if is_a_persons(unit) and not reasons:
        reasons = (f"{unit.author} laid it down.",)
    if unit.kind is Kind.EVIDENCE:
        reasons = tuple(f"The {one.strength} {one.id} of {one.unit.author} rests on it." for one in _above(act, unit))
    if reasons:
        raise NotAllowed(
            f"{act.caller.actor} may not take {unit.kind} {unit.id} out of force (rule {RULE}). {' '.join(reasons)}",
            rule=RULE,
            hint="A person can reject it.",
        )


def _above(act: Act, evidence: Unit) -> list[Decision]:
    """The axes, and the locks of people, that rest on this evidence."""
    reader, firm = act.transaction, []
    for key in act.caller.visible_keys:
        domains = reader.domains_decided(key)
        firm += [Decision(unit) for unit in (reader.firm([key], domains) if domains else ())]
    guarded = [one for one in firm if one.strength is Strength.AXIS or is_a_persons(one.unit)]
    return [one for one in guarded if evidence.id in one.evidence]


def require_may_relate(act: Act, type: RelationType, sides: Iterable[Decision]) -> None:
    """Raise if stating or dropping a relation would change a person's axis or lock, unless a person does it (R4)."""
    persons = next((one for one in sides if is_a_persons(one.unit)), None)
    if persons is not None and act.caller.actor.kind is not ActorKind.HUMAN:
        raise NotAllowed(
            f"{act.caller.actor} may not change what is {type} at the {persons.strength} {persons.id}:"
            f" {persons.unit.author} laid it down (rule {RULE}).",
            rule=RULE,
            hint="A person can do it.",
        )


def require_may_restore(act: Act, unit: Unit) -> None:
    """Raise if a person took a protected decision out of force and another actor restores it."""
    if version_key_of(unit) is None or act.caller.actor.kind is ActorKind.HUMAN:
        return
    person = _who_took_out(act.transaction, unit)
    if person is None:
        return
    base = Decision(unit)
    if parting(base, binding(act.transaction, act.caller, base)).type is Verdict.BLOCK:
        raise NotAllowed(
            f"{act.caller.actor} may not put decision {unit.id} back in force: {person} took it out (rule {RULE}).",
            rule=RULE,
            hint="A person can revive it.",
        )


def _who_took_out(reader: Reader, unit: Unit) -> Actor | None:
    """The person who last took a unit out of recall, if it has not come back since."""
    person = None
    for event in reader.events_of_subject(unit.id):
        if event.type in _RETURNING:
            person = None
        elif event.type in _LEAVING and event.actor.kind is ActorKind.HUMAN:
            person = event.actor
    return person


# The verbs that retire or restore a unit, with these checks. Units that are not protected pass.


def archive(act: Act, unit_id: str, reason: str, expected_version: int | None) -> Unit:
    require_may_retire(act, act.permitted_unit(unit_id, Deed.ARCHIVE, expected_version))
    return life.archive(act, unit_id, reason, expected_version)


def reject(act: Act, unit_id: str, reason: str, expected_version: int | None) -> Unit:
    require_may_retire(act, act.permitted_unit(unit_id, Deed.REJECT, expected_version))
    return life.reject(act, unit_id, reason, expected_version)


def withdraw(act: Act, unit_id: str, reason: str, expected_version: int | None) -> Unit:
    require_may_retire(act, act.changeable_unit(unit_id, expected_version))
    return life.withdraw(act, unit_id, reason, expected_version)


def revive(act: Act, unit_id: str, reason: str, expected_version: int | None) -> Unit:
    require_may_restore(act, act.permitted_unit(unit_id, Deed.REVIVE, expected_version))
    return life.revive(act, unit_id, reason, expected_version)


def approve(act: Act, unit_id: str, expected_version: int | None) -> Unit:
    unit = act.permitted_unit(unit_id, Deed.APPROVE, expected_version)
    if rejection_of(act.transaction, unit) is not None:
        require_may_restore(act, unit)
    return life.approve(act, unit_id, expected_version)

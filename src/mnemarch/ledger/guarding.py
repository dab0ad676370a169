"""What the guardian blocks takes a person, by whichever verb it is done (D8, D11)."""

from __future__ import annotations

from mnemarch.errors import NotAllowed
from mnemarch.model.actor import ActorKind
from mnemarch.model.decision import Decision, RelationType, Strength, standing_of
from mnemarch.model.event import EventType
from mnemarch.model.scope import Level
from mnemarch.model.verdict import Verdict
from mnemarch.policy.guardian import parting
from mnemarch.policy.permissions import Deed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mnemarch.ledger.act import Act
    from mnemarch.model.actor import Actor
    from mnemarch.model.decision import GuardianVerdict
    from mnemarch.model.presence import Presence
    from mnemarch.model.unit import Unit
    from mnemarch.policy.permissions import Policy
    from mnemarch.ports import Reader

RULE = "D11"
_LEAVING = frozenset({EventType.UNIT_REJECTED, EventType.UNIT_ARCHIVED})
_RETURNING = frozenset({EventType.UNIT_APPROVED, EventType.UNIT_REVIVED})


def held(reader: Reader, presence: Presence, roots: Iterable[str]) -> list[Decision]:
    """Those of these roots that are in force and visible."""
    units = (reader.decision_in_force(root) for root in roots)
    return [Decision(unit) for unit in units if unit is not None and unit.scope.key in presence.visible_keys]


def firmest_first(decision: Decision) -> tuple[int, str]:
    return -decision.strength.rank, decision.root_id


def binding(reader: Reader, presence: Presence, base: Decision) -> list[Decision]:
    """The decisions that constrain this one, the firmest first."""
    sources = [one.source for one in reader.relations_to([base.root_id]) if one.type is RelationType.CONSTRAINS]
    return sorted((one for one in held(reader, presence, sources) if binds(one, base)), key=firmest_first)


def binds(source: Decision, target: Decision) -> bool:
    """Whether it can: what holds in one worktree only can't bind what holds in the whole project."""
    return source.unit.level >= target.unit.level


def is_local(base: Decision, constraining: Iterable[Decision]) -> bool:
    """Whether all that guards a decision stands below project scope: then it is in nobody's way but theirs."""
    guards = (base, *(one for one in constraining if one.strength is Strength.AXIS))
    return all(one.unit.level < Level.PROJECT for one in guards)


def may_answer(policy: Policy, actor: Actor, base: Decision, constraining: Iterable[Decision], level: Level) -> bool:
    """Whether this actor may do what the guardian blocks: a person, and below project scope whoever writes there."""
    if actor.kind is ActorKind.HUMAN:
        return True
    return is_local(base, constraining) and policy.allows(actor.kind, Deed.WRITE, level)


def on_leaving(reader: Reader, presence: Presence, unit: Unit) -> GuardianVerdict | None:
    """What the guardian says of taking a unit out of force, if it is in force."""
    if not unit.live or standing_of(unit) is None:
        return None
    base = Decision(unit)
    return parting(base, binding(reader, presence, base))


def let_leave(act: Act, unit: Unit) -> None:
    """Refuse to take out of force what only a person may: else the guardian could be walked round."""
    verdict = on_leaving(act.transaction, act.presence, unit)
    if verdict is None or verdict.type is not Verdict.BLOCK:
        return
    base = Decision(unit)
    constraining = binding(act.transaction, act.presence, base)
    if not may_answer(act.config.policy, act.presence.actor, base, constraining, unit.level):
        raise NotAllowed(
            f"{act.presence.actor} may not take decision {unit.id} out of force: the guardian blocks it"
            f" (rule {RULE}). {' '.join(verdict.reasons)}",
            rule=RULE,
            hint="A person can reject it.",
        )


def let_return(act: Act, unit: Unit) -> None:
    """Refuse to put back what a person took out of force, where the guardian guards it: a person's no stands."""
    if standing_of(unit) is None or act.presence.actor.kind is ActorKind.HUMAN:
        return
    person = _who_took_out(act.transaction, unit)
    if person is None:
        return
    base = Decision(unit)
    if parting(base, binding(act.transaction, act.presence, base)).type is Verdict.BLOCK:
        raise NotAllowed(
            f"{act.presence.actor} may not put decision {unit.id} back in force: {person} took it out (rule {RULE}).",
            rule=RULE,
            hint="A person can revive it.",
        )


def _who_took_out(reader: Reader, unit: Unit) -> Actor | None:
    """The person who took a unit out of recall since it last came back, whoever did so once more after them."""
    person = None
    for event in reader.events_of_subject(unit.id):
        if event.type in _RETURNING:
            person = None
        elif event.type in _LEAVING and event.actor.kind is ActorKind.HUMAN:
            person = event.actor
    return person

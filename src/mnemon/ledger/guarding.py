"""What the guardian blocks takes a person, by whichever verb it is done (D8, D11)."""

from __future__ import annotations

from mnemon.errors import NotAllowed
from mnemon.model.actor import ActorKind
from mnemon.model.decision import Decision, RelationType, standing_of
from mnemon.model.verdict import Verdict
from mnemon.policy.guardian import judged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mnemon.ledger.act import Act
    from mnemon.model.decision import GuardianVerdict
    from mnemon.model.presence import Presence
    from mnemon.model.unit import Unit
    from mnemon.ports import Reader

RULE = "D11"


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


def on_leaving(reader: Reader, presence: Presence, unit: Unit) -> GuardianVerdict | None:
    """What the guardian says of taking a unit out of force, if it is in force: the same as of revising it."""
    if not unit.live or standing_of(unit) is None:
        return None
    base = Decision(unit)
    return judged(base.strength, base, binding(reader, presence, base), ())


def let_leave(act: Act, unit: Unit) -> None:
    """Refuse to take out of force what only a person may: else the guardian could be walked round."""
    verdict = on_leaving(act.transaction, act.presence, unit)
    if verdict is not None and verdict.type is Verdict.BLOCK and act.presence.actor.kind is not ActorKind.HUMAN:
        raise NotAllowed(
            f"{act.presence.actor} may not take decision {unit.id} out of force: the guardian blocks a change of it"
            f" (rule {RULE}). {' '.join(verdict.reasons)}",
            rule=RULE,
            hint="A person can reject it, or commit another version of it with an override.",
        )

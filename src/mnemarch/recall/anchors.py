"""What recalled anchors lead to (D19): the original behind its hint, no weaker decision before a firmer one. Pure."""

from __future__ import annotations

from mnemarch.model.decision import Strength, is_original, standing_of, target_of
from mnemarch.model.search import Recalled
from mnemarch.model.unit import Kind, search_kind, search_state
from mnemarch.model.value import replace
from mnemarch.recall.scores import tier_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mnemarch.model.unit import Unit

_NOWHERE = "leads to nothing that is to be seen here"
NO_DECISION = 3


def wanted(items: Sequence[Recalled]) -> list[str]:
    """The ids of what the anchors among these lead to."""
    return list(dict.fromkeys(target_of(item.unit) for item in items if item.unit.kind is Kind.ANCHOR))


def originals(units: Mapping[str, Unit], visible_keys: Sequence[str]) -> dict[str, Unit]:
    """Those of them that an anchor may lead this reader to."""
    return {id: unit for id, unit in units.items() if unit.scope.key in visible_keys and is_original(unit)}


def noted(item: Recalled, originals: Mapping[str, Unit], withheld: Mapping[str, str]) -> Recalled:
    """An anchor that says where it leads, and whether that still holds; anything else as it is."""
    if item.unit.kind is not Kind.ANCHOR:
        return item
    target = target_of(item.unit)
    told = f"leads to {target}" if target in originals else _NOWHERE
    reason = f", which is withheld: {withheld[target]}" if target in withheld else ""
    return replace(item, notes=(*item.notes, told + reason))


def led_to(unit: Unit, notes: tuple[str, ...], hints: Sequence[Recalled], domains: Sequence[str]) -> Recalled:
    """What an anchor leads to, as an item in the tier that is its own, with the score of its hint."""
    hint = next(each for each in hints if each.unit.kind is Kind.ANCHOR and target_of(each.unit) == unit.id)
    state = search_state(unit.status, unit.superseded_from, unit.valid_to_commit)
    tier = tier_of(search_kind(str(unit.kind), unit.domain, unit.attributes), state, unit.domain in domains)
    return Recalled(unit=unit, score=hint.score, tier=tier, why={"anchor": hint.score}, label="", notes=notes)


def merged(items: Sequence[Recalled], led: Sequence[Recalled]) -> list[Recalled]:
    """All in the order of tiers: each original right behind its hint, but a decision behind every firmer one (D19)."""
    hinted = {target_of(item.unit): place for place, item in reversed([*enumerate(items)]) if _is_anchor(item)}
    keyed = [((item.tier, _is_wide(item.unit), place, 0, ""), item) for place, item in enumerate(items)]
    decided = [(weakness(item.unit), place) for place, item in enumerate(items)]
    for item in sorted(led, key=lambda item: weakness(item.unit)):
        weak = weakness(item.unit)
        firmer = [place for other, place in decided if other < weak < NO_DECISION]
        place = max([hinted[item.unit.id], *firmer])
        decided.append((weak, place))
        keyed.append(((item.tier, _is_wide(item.unit), place, 1 + weak, item.unit.id), item))
    return [item for _, item in sorted(keyed, key=lambda pair: pair[0])]


def _is_anchor(item: Recalled) -> bool:
    return item.unit.kind is Kind.ANCHOR


def _is_wide(unit: Unit) -> bool:
    """Whether it is a decision for every domain, which comes after the domain's own (R10)."""
    return unit.domain == "global" and standing_of(unit) is not None


def weakness(unit: Unit) -> int:
    """How far a decision stands below an axis; `NO_DECISION` if it is none."""
    standing = standing_of(unit)
    return NO_DECISION if standing is None else Strength.AXIS.rank - standing.strength

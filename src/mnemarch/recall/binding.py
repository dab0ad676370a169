"""The units that bind whatever the question, and the targets of anchors (D15, D19, R10)."""

from __future__ import annotations

from mnemarch.model.decision import is_original, target_of
from mnemarch.model.search import Recalled
from mnemarch.model.unit import TRUSTED_STATE, Kind, search_kind, search_state
from mnemarch.model.value import replace
from mnemarch.policy.kinds import TIER_NORMAL
from mnemarch.recall.scores import tier_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from mnemarch.model.decision import Loaded
    from mnemarch.model.unit import Unit
    from mnemarch.recall.candidates import Finder
    from mnemarch.stores.sql.reader import Reader

    Admitted = Callable[[Sequence[Unit], dict[str, str]], list[tuple[Unit, tuple[str, ...]]]]

_NO_TARGET = "leads to nothing that is to be seen here"
_GLOBAL = "global"
# The search index's name for a normal decision.
_NORMAL = "decision.normal"


# Targets of anchors


def followed(
    reader: Reader,
    items: Sequence[Recalled],
    visible_keys: Sequence[str],
    kinds: Sequence[Kind],
    admitted: Admitted,
    withheld: dict[str, str],
) -> list[Recalled]:
    """The items and their anchors' targets, in order of tiers. Targets pass the same gate, `admitted`."""
    known = {item.unit.id for item in items}
    targets = reader.units(dict.fromkeys(target_of(item.unit) for item in items if _is_anchor(item)))
    found = {id: unit for id, unit in targets.items() if unit.scope.key in visible_keys and is_original(unit)}
    new = [unit for unit in found.values() if unit.id not in known and unit.kind in (kinds or Kind)]
    led = [led_to(unit, notes, items) for unit, notes in admitted(new, withheld)]
    return with_targets([noted(item, found, withheld) for item in items], led)


def _is_anchor(item: Recalled) -> bool:
    return item.unit.kind is Kind.ANCHOR


def noted(item: Recalled, originals: Mapping[str, Unit], withheld: Mapping[str, str]) -> Recalled:
    """An anchor with a note that names its target and says whether that is withheld. Other items are unchanged."""
    if not _is_anchor(item):
        return item
    target = target_of(item.unit)
    note = f"leads to {target}" if target in originals else _NO_TARGET
    reason = f", which is withheld: {withheld[target]}" if target in withheld else ""
    return replace(item, notes=(*item.notes, note + reason))


def led_to(unit: Unit, notes: tuple[str, ...], items: Sequence[Recalled]) -> Recalled:
    """An anchor's target as an item, with the score of the anchor."""
    anchor = next(item for item in items if _is_anchor(item) and target_of(item.unit) == unit.id)
    state = search_state(unit.status, unit.superseded_from, unit.valid_to_commit)
    tier = tier_of(search_kind(str(unit.kind), unit.attributes), state)
    return Recalled(unit=unit, score=anchor.score, tier=tier, why={"anchor": anchor.score}, label="", notes=notes)


def with_targets(items: Sequence[Recalled], led: Sequence[Recalled]) -> list[Recalled]:
    """All items in order of tiers, each target directly after its anchor."""
    anchored = {target_of(item.unit): place for place, item in reversed([*enumerate(items)]) if _is_anchor(item)}
    keyed = [((item.tier, place, ""), item) for place, item in enumerate(items)]
    keyed += [((item.tier, anchored[item.unit.id], item.unit.id), item) for item in led]
    return [item for _, item in sorted(keyed, key=lambda pair: pair[0])]


# Binding units


def bound(
    reader: Reader,
    finder: Finder,
    loaded: Sequence[Loaded],
    weights: Mapping[str, float],
    visible_keys: Sequence[str],
    domains: Sequence[str],
    limit: int,
) -> list[Recalled]:
    """The binding units in order, up to a limit. Normal decisions that match the question precede other normal ones.

    Decisions of the domain still come before global ones.
    """
    room = limit - sum(one.tier < TIER_NORMAL for one in loaded)
    within: dict[str, Any] = {"kinds": [_NORMAL], "domains": domains, "states": [TRUSTED_STATE]}
    best = finder.best(weights, visible_keys, limit=room, **within)
    asked = reader.units([sketch.id for _, sketch in best]) if best else {}
    rest = [*(unit for unit in asked.values() if unit.live), *(one.unit for one in loaded if one.tier == TIER_NORMAL)]
    tiers = {one.unit.id: one.tier for one in loaded}
    firm = [one.unit for one in loaded if one.tier < TIER_NORMAL]
    units = {unit.id: unit for unit in (*firm, *sorted(rest, key=lambda unit: unit.domain == _GLOBAL))}
    return [
        Recalled(unit=unit, score=0.0, tier=tiers.get(unit.id, TIER_NORMAL), why={}, label="")
        for unit in list(units.values())[:limit]
    ]


def winners_first(reader: Reader, items: list[Recalled], contested: set[str]) -> list[Recalled]:
    """The items, where a unit that lost to an earlier replacement follows the winner (R5)."""
    for unit_id in sorted(contested):
        winners = [link.target for link in reader.open_conflicts([unit_id]) if link.is_late_replacement(unit_id)]
        at = next((place for place, item in enumerate(items) if item.unit.id == unit_id), len(items))
        last = max((place for place, item in enumerate(items) if item.unit.id in winners), default=-1)
        if last > at:
            items = [*items[:at], *items[at + 1 : last + 1], items[at], *items[last + 1 :]]
    return items

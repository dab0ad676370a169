"""What binds whatever is asked, and what anchors lead to: both join the answer in loading order (D15, D19). Pure."""

from __future__ import annotations

from mnemarch.model.decision import Strength, is_original, target_of, version_key_of
from mnemarch.model.search import Recalled, Withheld
from mnemarch.model.unit import Kind, search_kind, search_state
from mnemarch.model.value import replace
from mnemarch.policy.kinds import TIER_LOCK, TIER_NORMAL
from mnemarch.policy.labels import label_of
from mnemarch.recall.scores import tier_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mnemarch.model.decision import Loaded
    from mnemarch.model.search import Found
    from mnemarch.model.unit import Unit

    Admitted = Callable[[Sequence[Unit], dict[str, str]], list[tuple[Unit, tuple[str, ...]]]]

_NO_TARGET = "leads to nothing that is to be seen here"
_NO_DECISION = 3
# The tiers that a domain's own decisions share with those for every domain.
_SHARED_TIERS = frozenset({TIER_LOCK, TIER_NORMAL})


def weakness(unit: Unit) -> int:
    """How far a decision is below an axis; `_NO_DECISION` if it is none."""
    version_key = version_key_of(unit)
    return _NO_DECISION if version_key is None else Strength.AXIS.rank - version_key.strength


# What anchors lead to


def targets(items: Sequence[Recalled]) -> list[str]:
    """The ids that the anchors among these items lead to."""
    return list(dict.fromkeys(target_of(item.unit) for item in items if _is_anchor(item)))


def _is_anchor(item: Recalled) -> bool:
    return item.unit.kind is Kind.ANCHOR


def originals(units: Mapping[str, Unit], visible_keys: Sequence[str]) -> dict[str, Unit]:
    """Those of these units that an anchor may lead this reader to."""
    return {id: unit for id, unit in units.items() if unit.scope.key in visible_keys and is_original(unit)}


def noted(item: Recalled, originals: Mapping[str, Unit], withheld: Mapping[str, str]) -> Recalled:
    """An anchor with a note on where it leads and whether that is withheld; any other item as it is."""
    if not _is_anchor(item):
        return item
    target = target_of(item.unit)
    note = f"leads to {target}" if target in originals else _NO_TARGET
    reason = f", which is withheld: {withheld[target]}" if target in withheld else ""
    return replace(item, notes=(*item.notes, note + reason))


def led_to(unit: Unit, notes: tuple[str, ...], items: Sequence[Recalled], domains: Sequence[str]) -> Recalled:
    """An anchor's target as an item: in its own tier, with the score of the anchor."""
    anchor = next(item for item in items if _is_anchor(item) and target_of(item.unit) == unit.id)
    state = search_state(unit.status, unit.superseded_from, unit.valid_to_commit)
    tier = tier_of(search_kind(str(unit.kind), unit.domain, unit.attributes), state, unit.domain in domains)
    return Recalled(unit=unit, score=anchor.score, tier=tier, why={"anchor": anchor.score}, label="", notes=notes)


def with_targets(items: Sequence[Recalled], led: Sequence[Recalled]) -> list[Recalled]:
    """All in order of tiers: each target right behind its anchor, but a decision behind every firmer one (D19)."""
    anchored = {target_of(item.unit): place for place, item in reversed([*enumerate(items)]) if _is_anchor(item)}
    keyed = [((item.tier, _is_wide(item.unit), place, 0, ""), item) for place, item in enumerate(items)]
    placed = [(weakness(item.unit), place) for place, item in enumerate(items)]
    for item in sorted(led, key=lambda item: weakness(item.unit)):
        weak = weakness(item.unit)
        firmer = [place for other, place in placed if other < weak < _NO_DECISION]
        place = max([anchored[item.unit.id], *firmer])
        placed.append((weak, place))
        keyed.append(((item.tier, _is_wide(item.unit), place, 1 + weak, item.unit.id), item))
    return [item for _, item in sorted(keyed, key=lambda pair: pair[0])]


def _is_wide(unit: Unit) -> bool:
    """Whether it is a decision for every domain; those come after the domain's own (R10)."""
    return unit.domain == "global" and version_key_of(unit) is not None


# What binds


def behind_binding(binding: Sequence[Loaded], found: Found, admitted: Admitted) -> Found:
    """The answer in the loading order (D15) together with what binds; each unit once.

    In one tier what was asked for comes first, but a domain's own decisions before those for every domain (R10), and
    what anchors lead to by strength (D19). What the anchors of the domain lead to passes the same gate, `admitted`.
    """
    place = {one.unit.id: number for number, one in enumerate(binding)}
    tiers = {one.unit.id: one.tier for one in binding if one.tier <= TIER_NORMAL}
    asked = {item.unit.id: number for number, item in enumerate(found.items)}
    new = [one for one in binding if one.unit.id not in asked]
    withheld: dict[str, str] = {}
    led = admitted([one.unit for one in new if one.tier > TIER_NORMAL], withheld)
    loaded = [
        Recalled(unit=unit, score=0.0, tier=tier, why={}, label=label_of(unit), notes=notes)
        for unit, notes, tier in (
            *((one.unit, (), one.tier) for one in new if one.tier <= TIER_NORMAL),
            *((unit, notes, TIER_NORMAL + 1) for unit, notes in led),
        )
    ]
    led_by_question = [(weakness(item.unit), number) for number, item in enumerate(found.items) if "anchor" in item.why]

    def order(item: Recalled) -> tuple[int, bool, int, bool, int]:
        is_wide = item.tier in _SHARED_TIERS and item.unit.domain == "global"
        if not is_unasked(item):
            return item.tier, is_wide, asked[item.unit.id], True, 0
        weaker = [number for other, number in led_by_question if weakness(item.unit) < other < _NO_DECISION]
        before = min(weaker, default=len(asked)) if item.tier > TIER_NORMAL else len(asked)
        return item.tier, is_wide, before, False, place.get(item.unit.id, len(binding))

    items = [replace(item, tier=tiers.get(item.unit.id, item.tier)) for item in (*found.items, *loaded)]
    more = (Withheld(unit_id=unit_id, reason=reason) for unit_id, reason in withheld.items())
    return replace(found, items=tuple(sorted(items, key=order)), withheld=(*found.withheld, *more))


def is_unasked(item: Recalled) -> bool:
    """Whether it was loaded and nothing in the question leads to it."""
    return not item.why

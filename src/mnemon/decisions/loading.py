"""The loading order (D15-D19, R10): policy, structure, axes, locks, the rest, and what anchors lead to; then search."""

from __future__ import annotations

from heapq import merge

from mnemon.decisions.chain import blast_radius
from mnemon.model.decision import Loaded, Strength, standing_of
from mnemon.model.unit import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mnemon.model.presence import Presence
    from mnemon.model.unit import Unit
    from mnemon.ports import Reader

GLOBAL = "global"
TIER_POLICY, TIER_STRUCTURE, TIER_GLOBAL_AXIS, TIER_AXIS, TIER_LOCK, TIER_NORMAL, TIER_ANCHOR = range(1, 8)
_PAGE = 100
_STEPS_MAX = 1


def loaded(reader: Reader, presence: Presence, domain: str | None, around: str | None, limit: int) -> list[Loaded]:
    """What an agent in this domain should know first, in order, each unit once."""
    found: dict[str, Loaded] = {}
    for tier, unit in _in_order(reader, presence, domain, around, limit):
        found.setdefault(unit.id, Loaded(tier=tier, unit=unit))
        if len(found) >= limit:
            break
    return list(found.values())


def _in_order(
    reader: Reader, presence: Presence, domain: str | None, around: str | None, limit: int
) -> Iterator[tuple[int, Unit]]:
    own = domain if domain is not None and domain != GLOBAL else None
    for unit in _policies(reader, presence, limit):
        yield TIER_POLICY, unit
    if around is not None:
        for unit in _structure(reader, presence, around, limit):
            yield TIER_STRUCTURE, unit
    yield from _tier(reader, presence, TIER_GLOBAL_AXIS, (GLOBAL,), Strength.AXIS)
    if own is not None:
        yield from _tier(reader, presence, TIER_AXIS, (own,), Strength.AXIS)
    # What is decided for every domain comes with the domain's own, and after it.
    domains = (own, GLOBAL) if own is not None else (GLOBAL,)
    yield from _tier(reader, presence, TIER_LOCK, domains, Strength.LOCK)
    yield from _tier(reader, presence, TIER_NORMAL, domains, Strength.NORMAL)
    for unit in _anchored(reader, presence, domains, limit):
        yield TIER_ANCHOR, unit


def _policies(reader: Reader, presence: Presence, limit: int) -> list[Unit]:
    """System principles live at org scope (R12)."""
    org = presence.scope.visible[-1]
    return sorted(reader.units_in([org.key], kind=Kind.POLICY, live=True, limit=limit), key=lambda unit: unit.id)


def _structure(reader: Reader, presence: Presence, around: str, limit: int) -> list[Unit]:
    """What stands in an explicit relation to the decision that is being worked on."""
    radius = blast_radius(reader, presence, around, depth_max=_STEPS_MAX, nodes_max=limit)
    units = [reader.decision_in_force(node.id) for node in radius.nodes]
    return [unit for unit in units if unit is not None]


def _tier(
    reader: Reader, presence: Presence, tier: int, domains: tuple[str, ...], strength: Strength
) -> Iterator[tuple[int, Unit]]:
    for domain in domains:
        for unit in decided(reader, presence, domain, strength):
            yield tier, unit


def decided(reader: Reader, presence: Presence, domain: str, strength: Strength, after: str = "") -> Iterator[Unit]:
    """What is in force for this seat in one domain with one strength, by id; read as far as it is asked for."""
    each = [_pages(reader, key, domain, strength, after) for key in presence.visible_keys]
    return merge(*each, key=lambda unit: unit.id)


def _pages(reader: Reader, scope_key: str, domain: str, strength: Strength, after: str) -> Iterator[Unit]:
    while page := reader.decided(scope_key, domain, int(strength), after=after, limit=_PAGE):
        yield from page
        after = page[-1].id


def _anchored(reader: Reader, presence: Presence, domains: tuple[str, ...], limit: int) -> list[Unit]:
    """What anchors lead to: the firmest decisions first (D19), then evidence; never the anchor itself."""
    targets: dict[str, Unit] = {}
    for domain in domains:
        for anchor in reader.units_in(presence.visible_keys, kind=Kind.ANCHOR, domain=domain, live=True, limit=limit):
            target = reader.unit(str(anchor.attributes.get("target")))
            if target is not None and target.live and target.scope.key in presence.visible_keys:
                targets.setdefault(target.id, target)
    return sorted(targets.values(), key=_rank)


def _rank(unit: Unit) -> tuple[int, str]:
    standing = standing_of(unit)
    return (0 if standing is None else -standing.strength, unit.id)

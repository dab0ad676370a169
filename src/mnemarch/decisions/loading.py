"""The loading order (D15-D19, R10): policy, structure, axes, locks, the rest, and what anchors lead to; then search."""

from __future__ import annotations

from heapq import merge

from mnemarch.model.decision import Loaded, Strength, target_of
from mnemarch.model.unit import Kind
from mnemarch.policy.kinds import (
    TIER_AXIS,
    TIER_FOUND,
    TIER_GLOBAL_AXIS,
    TIER_LOCK,
    TIER_NORMAL,
    TIER_POLICY,
    TIER_STRUCTURE,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mnemarch.model.caller import Caller
    from mnemarch.model.unit import Unit
    from mnemarch.stores.sql.reader import Reader

GLOBAL = "global"
_PAGE = 50


def loaded(reader: Reader, caller: Caller, domain: str | None, around: str | None, limit: int) -> list[Loaded]:
    """What an agent in this domain should know first, in order, each unit once."""
    found: dict[str, Loaded] = {}
    if not limit:
        return []
    for tier, unit in _in_order(reader, caller, domain, around, limit):
        found.setdefault(unit.id, Loaded(tier=tier, unit=unit))
        if len(found) >= limit:
            break
    return list(found.values())


def _in_order(
    reader: Reader, caller: Caller, domain: str | None, around: str | None, limit: int
) -> Iterator[tuple[int, Unit]]:
    own = domain if domain is not None and domain != GLOBAL else None
    # System principles live at org scope (R12), and hold whatever domain they name.
    org = caller.scope.visible[-1]
    for unit in reader.units_in([org.key], kind=Kind.POLICY, live=True, limit=limit):
        yield TIER_POLICY, unit
    if around is not None:
        for unit in reader.related(around, caller.visible_keys, limit=limit):
            yield TIER_STRUCTURE, unit
    yield from _tier(reader, caller, TIER_GLOBAL_AXIS, (GLOBAL,), Strength.AXIS)
    if own is not None:
        yield from _tier(reader, caller, TIER_AXIS, (own,), Strength.AXIS)
    # What is decided for every domain comes with the domain's own, and after it.
    domains = (own, GLOBAL) if own is not None else (GLOBAL,)
    yield from _tier(reader, caller, TIER_LOCK, domains, Strength.LOCK)
    yield from _tier(reader, caller, TIER_NORMAL, domains, Strength.NORMAL)
    for unit in reader.anchored(caller.visible_keys, domains, limit=limit):
        yield TIER_FOUND, unit


def _tier(
    reader: Reader, caller: Caller, tier: int, domains: tuple[str, ...], strength: Strength
) -> Iterator[tuple[int, Unit]]:
    for domain in domains:
        for unit in decided(reader, caller, domain, strength):
            yield tier, unit


def decided(reader: Reader, caller: Caller, domain: str, strength: Strength, after: str = "") -> Iterator[Unit]:
    """What is in force for this seat in one domain with one strength, by id; read as far as it is asked for."""
    each = [_pages(reader, key, domain, strength, after) for key in caller.visible_keys]
    return merge(*each, key=lambda unit: unit.id)


def _pages(reader: Reader, scope_key: str, domain: str, strength: Strength, after: str) -> Iterator[Unit]:
    while page := reader.decided(scope_key, domain, strength.rank, after=after, limit=_PAGE):
        yield from page
        after = page[-1].id


def broken_anchors(reader: Reader, caller: Caller) -> Iterator[Unit]:
    """Anchors whose target is gone or no longer in force, the newest first; read as far as they are asked for."""
    before = None
    while anchors := reader.units_in(caller.visible_keys, kind=Kind.ANCHOR, live=True, limit=_PAGE, before=before):
        targets = reader.units(dict.fromkeys(map(target_of, anchors)))
        yield from (anchor for anchor in anchors if not _holds(targets.get(target_of(anchor))))
        before = anchors[-1].id


def _holds(target: Unit | None) -> bool:
    return target is not None and target.live

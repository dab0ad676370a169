"""The loading order: policies, related decisions, axes, locks, normal decisions, anchored units (D15-D19, R10)."""

from __future__ import annotations

from heapq import merge
from itertools import chain, islice

from mnemarch.model.caller import Caller, Level
from mnemarch.model.decision import Decision, Loaded, Strength, target_of, version_key_of
from mnemarch.model.unit import KEPT_AS, LESSON, TRUSTED, CitationKind, Kind, Unit
from mnemarch.policy import kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from mnemarch.stores.sql.reader import Reader

GLOBAL = "global"
_PAGE = 50
_POLICIES_MAX = 200
# Normal decisions are counted up to this number, to report how many were left out.
_COUNTED_MAX = 10_000


def loaded(reader: Reader, caller: Caller, domain: str | None, around: str | None, limit: int) -> list[Loaded]:
    """The units that an agent should know first in a domain, in order. `around` is the root of the current decision."""
    if not limit:
        return []
    keys, domains = caller.visible_keys, _domains(domain)
    related = [] if around is None else reader.related(around, keys, limit=limit)
    firm, normal = reader.firm(keys, domains), _normal(reader, caller, domains, limit)
    ordered = _in_order(_policies(reader, caller), related, firm, normal, (), limit)
    room = limit - len(ordered)
    known = {one.unit.id for one in ordered}
    led = (unit for unit in (reader.anchored(keys, domains, limit=limit) if room else ()) if unit.id not in known)
    return [*ordered, *(Loaded(tier=kinds.TIER_FOUND, unit=unit) for unit in islice(led, room))]


def binding(
    reader: Reader, caller: Caller, domain: str | None, touched: Callable[[], Collection[str]], limit: int
) -> tuple[list[Loaded], int]:
    """The units that bind for any question, up to a limit, and their total number (R10).

    Relations are followed from decisions that the task used or cited, or that cite a touched file (D14). `touched` is
    called only if a decision cites code.
    """
    keys, domains = caller.visible_keys, _domains(domain)
    policies, firm = _policies(reader, caller), reader.firm(keys, domains)
    normal_count = reader.normal_count(keys, domains, _COUNTED_MAX)
    normal = _normal(reader, caller, domains, limit) if normal_count else []
    paths = frozenset(touched()) if any(map(_cited_paths, (*firm, *normal))) else frozenset()
    roots = _worked_on(reader, caller, (*firm, *normal), paths)
    related = {unit.id: unit for root in roots for unit in reader.related(root, keys, limit=limit)}
    elsewhere = [unit for unit in related.values() if unit.domain not in domains]
    total = len(policies) + len(elsewhere) + len(firm) + normal_count
    return _in_order(policies, list(related.values()), firm, normal, paths, limit), total


def _in_order(
    policies: Sequence[Unit],
    related: Sequence[Unit],
    firm: Sequence[Unit],
    normal: Sequence[Unit],
    touched: Collection[str],
    limit: int,
) -> list[Loaded]:
    """Each unit once, in its first tier. A domain's own decisions precede global ones, but its axes follow them."""
    axes = [unit for unit in firm if Decision(unit).strength is Strength.AXIS]
    locks = [unit for unit in firm if Decision(unit).strength is Strength.LOCK]
    locks.sort(key=lambda unit: (_cited_paths(unit).isdisjoint(touched), unit.domain == GLOBAL))
    tiers: tuple[tuple[int, Iterable[Unit]], ...] = (
        (kinds.TIER_POLICY, policies),
        (kinds.TIER_STRUCTURE, related),
        (kinds.TIER_GLOBAL_AXIS, (unit for unit in axes if unit.domain == GLOBAL)),
        (kinds.TIER_AXIS, (unit for unit in axes if unit.domain != GLOBAL)),
        (kinds.TIER_LOCK, locks),
        (kinds.TIER_NORMAL, normal),
    )
    by_id: dict[str, Loaded] = {}
    for tier, units in tiers:
        for unit in units:
            by_id.setdefault(unit.id, Loaded(tier=tier, unit=unit))
    return list(by_id.values())[:limit]


def _domains(domain: str | None) -> tuple[str, ...]:
    """The domain itself, then the global one."""
    return (GLOBAL,) if domain in (None, GLOBAL) else (str(domain), GLOBAL)


def _policies(reader: Reader, caller: Caller) -> list[Unit]:
    """The policies of the org and then of the project, newest first, in every domain (R12)."""
    keys = [scope.key for scope in caller.scope.visible if scope.level >= Level.PROJECT]
    units = reader.units_in(keys, kind=Kind.POLICY, live=True, limit=_POLICIES_MAX)
    return sorted((unit for unit in units if unit.status in TRUSTED), key=lambda unit: -unit.level)


def _normal(reader: Reader, caller: Caller, domains: Sequence[str], limit: int) -> list[Unit]:
    pages = (decided(reader, caller, domain, Strength.NORMAL) for domain in domains)
    return list(islice(chain.from_iterable(pages), limit))


def _cited_paths(unit: Unit) -> frozenset[str]:
    return frozenset(item.ref for item in unit.citations if item.kind in (CitationKind.FILE, CitationKind.SYMBOL))


def spoken_of(reader: Reader, caller: Caller, paths: Sequence[str]) -> list[Unit]:
    """The units to know before changing these files.

    These are axes and locks of every domain that cite or name a file, and bug patterns and lessons that cite one.
    """
    keys = caller.visible_keys
    domains = {domain for key in keys for domain in reader.domains_decided(key)}
    firm = [
        unit
        for unit in reader.firm(keys, sorted(domains))
        if not _cited_paths(unit).isdisjoint(paths) or _names(unit.content, paths)
    ]
    citing = [
        unit
        for kind in (CitationKind.FILE, CitationKind.SYMBOL)
        for unit in reader.units_citing(keys, kind, paths)
        if unit.live and (unit.attributes.get(KEPT_AS) == LESSON or "solution" in unit.attributes)
    ]
    return list({unit.id: unit for unit in (*firm, *citing)}.values())


def _names(text: str, paths: Sequence[str]) -> bool:
    """Whether a text names one of these files; a Korean particle may follow."""
    inside = [path for path in paths if path in text]
    if not inside:
        return False
    import re  # Loaded only here, because it slows the start of a session.

    return any(re.search(rf"(?<![\w/.-]){re.escape(path)}(?![A-Za-z0-9_/-])", text) for path in inside)


def _worked_on(reader: Reader, caller: Caller, known: Iterable[Unit], touched: Collection[str]) -> list[str]:
    """The roots of decisions that the caller's task used or cited, and of known ones that cite a touched file."""
    near = [unit for unit in known if not _cited_paths(unit).isdisjoint(touched)]
    if caller.task_key is not None:
        used = reader.units(reader.used_in_task(caller.task_key))
        near += [unit for unit in used.values() if unit.scope.key in caller.visible_keys]
    return list(dict.fromkeys(key.root for unit in near if (key := version_key_of(unit)) is not None))


def decided(reader: Reader, caller: Caller, domain: str, strength: Strength, after: str = "") -> Iterator[Unit]:
    """The decisions in force in one domain with one strength, ordered by id. Pages are read lazily."""
    each = [_pages(reader, key, domain, strength, after) for key in caller.visible_keys]
    return merge(*each, key=lambda unit: unit.id)


def _pages(reader: Reader, scope_key: str, domain: str, strength: Strength, after: str) -> Iterator[Unit]:
    while page := reader.decided(scope_key, domain, strength.rank, after=after, limit=_PAGE):
        yield from page
        after = page[-1].id


def broken_anchors(reader: Reader, caller: Caller) -> Iterator[Unit]:
    """Anchors whose target is gone or no longer in force, newest first. Pages are read lazily."""
    before = None
    while anchors := reader.units_in(caller.visible_keys, kind=Kind.ANCHOR, live=True, limit=_PAGE, before=before):
        targets = reader.units(dict.fromkeys(map(target_of, anchors)))
        yield from (anchor for anchor in anchors if not _holds(targets.get(target_of(anchor))))
        before = anchors[-1].id


def _holds(target: Unit | None) -> bool:
    return target is not None and target.live

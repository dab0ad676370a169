"""Open conflicts and merge proposals: links between units that somebody has to decide (R5, R6)."""

from __future__ import annotations

from mnemarch.model.event import EventType
from mnemarch.model.outcome import Dispute
from mnemarch.model.stamps import micros
from mnemarch.model.unit import Link, LinkType
from mnemarch.model.value import replace
from mnemarch.policy.kinds import kinds_where
from mnemarch.text.canonical import canonical, canonical_key
from mnemarch.text.difference import skeleton
from mnemarch.units.comparison import compared, repetition
from mnemarch.units.same_text import past_with_same_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mnemarch.log.act import Act
    from mnemarch.model.outcome import Stored
    from mnemarch.model.unit import Unit
    from mnemarch.ports import Reader

DISPUTED_KINDS = kinds_where(lambda rules: rules.disputes)
# A statement with more live values than this is a series, not a dispute (R6).
_VALUES_MAX = 32


def open_disputes(reader: Reader, visible_keys: Sequence[str], type: LinkType) -> list[Dispute]:
    return [dispute_from(link) for link in reader.open_links(visible_keys, type)]


def dispute_from(link: Link) -> Dispute:
    return Dispute(
        id=link.id,
        kind=link.type,
        units=(link.source, link.target),
        reason=link.note,
        similarity=link.weight,
        opened_at=link.at,
        open=link.open,
        winner=link.winner,
    )


def with_disputes(stored: Stored, links: Sequence[Link]) -> Stored:
    """The answer of a write with what its unit contradicts and repeats."""
    return replace(
        stored,
        conflicts=tuple(dispute_from(link) for link in links if link.type is LinkType.CONTRADICTS),
        similar=tuple(dispute_from(link) for link in links if link.type is LinkType.DUPLICATES),
    )


def with_open_disputes(act: Act, stored: Stored) -> Stored:
    """The answer of a promotion with everything its unit has to settle among its new neighbours (R5)."""
    open_links(act, stored.unit)
    links = [link for link in act.transaction.links_of(stored.unit.id) if link.open]
    sides = act.transaction.units({side for link in links for side in (link.source, link.target)})
    seen = {side for side, unit in sides.items() if unit.live and unit.scope.key in act.presence.visible_keys}
    return with_disputes(stored, [link for link in links if {link.source, link.target} <= seen])


def link_units(act: Act, source: str, target: str, type: LinkType, weight: float, note: str) -> Link:
    """Link two units; a contradiction or a duplicate stays open until somebody resolves it."""
    link = {
        "type": str(type),
        "source": source,
        "target": target,
        "weight": round(weight, 4),
        "note": note,
        "at": micros(act.now),
        "open": type is not LinkType.SIMILAR_TO,
        "winner": None,
    }
    event, _ = act.record(EventType.LINK_ADDED, {"link": link}, subject=source)
    return Link.from_json(link | {"id": event.id})


def open_links(act: Act, unit: Unit, candidates: Iterable[str] = ()) -> list[Link]:
    """Link a unit with the visible ones that it repeats or contradicts, among `candidates` and its own topic."""
    if unit.kind not in DISPUTED_KINDS:
        return []
    linked = {side for link in act.transaction.links_of(unit.id) for side in (link.source, link.target)} | {unit.id}
    successors = _successors(act, unit.content)
    rivals = {rival.id: rival for rival in _rivals(act, unit.content, candidates)}
    rivals |= {after.id: after for after, _ in successors}
    unlinked = [rival for rival in rivals.values() if rival.id not in linked]
    comparisons = compared(unit.content, unlinked, act.config.gate, contradictions_max=_VALUES_MAX)
    # A text that was merged away and comes back is proposed for merging again.
    settled = linked | {each.other.id for each in comparisons if each.type is not LinkType.SIMILAR_TO}
    again = [repetition(unit.content, before, after) for after, before in successors if after.id not in settled]
    repeated = {each.other.id for each in again}
    return [
        link_units(act, unit.id, each.other.id, each.type, each.similarity, each.note)
        for each in (*again, *(each for each in comparisons if each.other.id not in repeated))
    ]


def _rivals(act: Act, content: str, candidates: Iterable[str]) -> list[Unit]:
    """Live visible units that are the same but for numbers, names and negations, and those of the candidates."""
    visible = act.presence.visible_keys
    skeleton_key = canonical_key(skeleton(content))
    units = {unit.id: unit for unit in act.transaction.units_with_skeleton(visible, skeleton_key, _VALUES_MAX + 1)}
    units |= act.transaction.units(candidates)
    return [unit for unit in units.values() if _is_rival(act, unit)]


def _is_rival(act: Act, unit: Unit) -> bool:
    return unit.live and unit.scope.key in act.presence.visible_keys and unit.kind in DISPUTED_KINDS


def _successors(act: Act, content: str) -> list[tuple[Unit, Unit]]:
    """What replaced units with this text and says something else now, each with the unit it replaced."""
    successors: dict[str, tuple[Unit, Unit]] = {}
    for replaced in past_with_same_text(act.transaction, act.presence.visible_keys, content):
        last = _last_successor(act, replaced)
        if _is_rival(act, last) and canonical(last.content) != canonical(content):
            successors[last.id] = (last, replaced)
    return list(successors.values())


def _last_successor(act: Act, unit: Unit) -> Unit:
    chain = {unit.id: unit}
    while unit.superseded_by is not None and unit.superseded_by not in chain:
        after = act.transaction.unit(unit.superseded_by)
        if after is None:
            break
        unit = chain[after.id] = after
    return unit

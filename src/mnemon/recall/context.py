"""From recalled units to one text that fits a token budget: whole items in recall's order, fenced as data. Pure."""

from __future__ import annotations

from mnemon.model.found import Pack, Recalled, Withheld
from mnemon.model.value import replace
from mnemon.recall.scores import label
from mnemon.text.fence import entry, fenced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from mnemon.model.decision import Loaded
    from mnemon.model.found import Found

_HOUR_S = 3_600
_DAY_S = 86_400


def after(first: Sequence[Loaded], found: Found) -> Found:
    """What was found, behind what is to be known first; in the order of tiers, each unit once."""
    place = {one.unit.id: number for number, one in enumerate(first)}
    tiers = {one.unit.id: one.tier for one in first}
    known = {item.unit.id for item in found.items}
    loaded = [
        Recalled(unit=one.unit, score=0.0, tier=one.tier, why={}, label=label(one.unit, contested=False))
        for one in first
        if one.unit.id not in known
    ]
    items = [replace(item, tier=tiers.get(item.unit.id, item.tier)) for item in (*loaded, *found.items)]
    return replace(found, items=tuple(sorted(items, key=lambda item: (item.tier, place.get(item.unit.id, len(first))))))


def packed(found: Found, budget: int, count: Callable[[str], int], now: datetime) -> Pack:
    """As much of what was found as fits, in its order; what doesn't fit makes room for smaller ones after it."""
    chosen: list[tuple[Recalled, str]] = []
    left_out: list[Recalled] = []
    used = count(fenced([]))
    for item in found.items:
        told = entry(head_of(item, now), item.unit.content)
        cost = count(told)
        if used + cost <= budget:
            used += cost
            chosen.append((item, told))
        else:
            left_out.append(item)
    # Counts of parts need not add up to that of the whole, and the whole has to fit.
    while chosen and count(fenced([told for _, told in chosen])) > budget:
        left_out.append(chosen.pop()[0])
    text = fenced([told for _, told in chosen]) if chosen else ""
    reason = f"over the budget of {budget} tokens"
    return Pack(
        text=text,
        items=tuple(item for item, _ in chosen),
        left_out=tuple(Withheld(unit_id=item.unit.id, reason=reason) for item in left_out),
        withheld=found.withheld,
        tokens=count(text) if text else 0,
        budget=budget,
    )


def head_of(item: Recalled, now: datetime) -> str:
    """What a reader should know of a memory before reading it: whether it is sure, how old it is, where it holds."""
    unit = item.unit
    age = _age((now - unit.occurred_at).total_seconds())
    notes = "".join(f"; {' '.join(note.split())}" for note in item.notes)
    return f"{item.label} {unit.kind} {unit.id} (confidence {unit.confidence:.2f}, {age}, {unit.level}{notes})"


def _age(seconds: float) -> str:
    if seconds < _HOUR_S:
        return "new"
    if seconds < _DAY_S:
        return f"{int(seconds // _HOUR_S)} h old"
    return f"{int(seconds // _DAY_S)} d old"

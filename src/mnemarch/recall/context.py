"""From recalled units to one text that fits a token budget: whole items in recall's order, fenced as data. Pure."""

from __future__ import annotations

from mnemarch.model.search import Pack, Recalled, Withheld
from mnemarch.model.value import replace
from mnemarch.policy.tiers import TIER_LOCK, TIER_NORMAL
from mnemarch.recall.anchors import NO_DECISION, weakness
from mnemarch.recall.scores import label
from mnemarch.text.prompt import entry, fenced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from mnemarch.model.decision import Loaded
    from mnemarch.model.search import Found
    from mnemarch.model.unit import Unit

    Admitted = Callable[[Sequence[Unit], dict[str, str]], list[tuple[Unit, tuple[str, ...]]]]

# Where a domain's own decisions stand with those for every domain.
_TIERS_OF_BOTH = frozenset({TIER_LOCK, TIER_NORMAL})
# Of the budget, one part in so many.
_UNASKED_SHARE = 4
_NAMED_MAX = 5
_HOUR_S = 3_600
_DAY_S = 86_400


def after(first: Sequence[Loaded], found: Found, admitted: Admitted) -> Found:
    """What was found, in the loading order (D15) with what is to be known first; each unit once.

    Among equals what was asked for comes before what was not, but a domain's own decisions before those for every
    domain (R10), and what anchors lead to by strength first (D19). It passes the gate that is `admitted`, as what was
    found did.
    """
    place = {one.unit.id: number for number, one in enumerate(first)}
    tiers = {one.unit.id: one.tier for one in first if one.tier <= TIER_NORMAL}
    known = {item.unit.id for item in found.items}
    withheld: dict[str, str] = {}
    led = [one.unit for one in first if one.tier > TIER_NORMAL and one.unit.id not in known]
    passed = [(unit, notes, TIER_NORMAL + 1) for unit, notes in admitted(led, withheld)]
    binding = [(one.unit, (), one.tier) for one in first if one.tier <= TIER_NORMAL and one.unit.id not in known]
    loaded = [
        Recalled(unit=unit, score=0.0, tier=tier, why={}, label=label(unit, contested=False), notes=notes)
        for unit, notes, tier in (*binding, *passed)
    ]

    asked = {item.unit.id: number for number, item in enumerate(found.items)}
    led_by_question = [(weakness(item.unit), number) for number, item in enumerate(found.items) if "anchor" in item.why]

    def order(item: Recalled) -> tuple[int, bool, int, bool, int]:
        is_wide = item.tier in _TIERS_OF_BOTH and item.unit.domain == "global"
        if not _is_unasked(item):
            return item.tier, is_wide, asked[item.unit.id], True, 0
        weaker = [number for other, number in led_by_question if weakness(item.unit) < other < NO_DECISION]
        before = min(weaker, default=len(asked)) if item.tier > TIER_NORMAL else len(asked)
        return item.tier, is_wide, before, False, place.get(item.unit.id, len(first))

    items = [replace(item, tier=tiers.get(item.unit.id, item.tier)) for item in (*found.items, *loaded)]
    more = (Withheld(unit_id=unit_id, reason=reason) for unit_id, reason in withheld.items())
    return replace(found, items=tuple(sorted(items, key=order)), withheld=(*found.withheld, *more))


def _is_unasked(item: Recalled) -> bool:
    """Whether it was loaded and nothing in the question leads to it."""
    return not item.why


def _is_spare(item: Recalled) -> bool:
    """Whether it neither binds nor was asked for."""
    return item.tier >= TIER_NORMAL and _is_unasked(item)


def packed(found: Found, budget: int, count: Callable[[str], int], now: datetime) -> Pack:
    """As much of what was found as fits, in its order; what doesn't fit makes room for smaller ones after it.

    What binds (policies, axes, locks) and doesn't fit is named or counted, in room that no rule needs. Of what neither
    binds nor was asked for, so much comes in as a part of the budget holds: a domain with many decisions must not crowd
    out the answer.
    """
    chosen: list[tuple[Recalled, str]] = []
    left_out: list[Recalled] = []
    used = count(fenced([]))
    unasked_left = budget // _UNASKED_SHARE
    for item in found.items:
        told = entry(head_of(item, now), item.unit.content)
        cost = count(told)
        is_spare = _is_spare(item)
        if used + cost <= budget and (not is_spare or cost <= unasked_left):
            used += cost
            unasked_left -= cost if is_spare else 0
            chosen.append((item, told))
        else:
            left_out.append(item)
    missing = [item.unit.id for item in left_out if _binds(item)]
    # Counts of parts need not add up to that of the whole, and the whole has to fit.
    while chosen and count(_least(chosen, missing)) > budget:
        item, _ = chosen.pop()
        left_out.append(item)
        missing += [item.unit.id] if _binds(item) else []
    text = _text([told for _, told in chosen], missing, lambda text: count(text) <= budget)
    over = f"over the budget of {budget} tokens"
    return Pack(
        text=text,
        items=tuple(item for item, _ in chosen),
        left_out=tuple(
            Withheld(unit_id=item.unit.id, reason=f"not asked for, and {over}" if _is_spare(item) else over)
            for item in left_out
        ),
        withheld=found.withheld,
        tokens=count(text) if text else 0,
        budget=budget,
    )


def _binds(item: Recalled) -> bool:
    return item.tier < TIER_NORMAL


def _least(chosen: Sequence[tuple[Recalled, str]], missing: Sequence[str]) -> str:
    """What has to fit: what was chosen, and how many rules were not, unless a rule would have to go for that."""
    entries = [told for _, told in chosen]
    return fenced([*entries, _counted(missing)] if missing and not _binds(chosen[-1][0]) else entries)


def _text(entries: list[str], missing: Sequence[str], fits: Callable[[str], bool]) -> str:
    """The text, which ends with what binds and had no room: an agent that does not see a rule must know of it."""
    notes = (_named(missing), _counted(missing)) if missing else ()
    whole = next((text for note in notes if fits(text := fenced([*entries, note]))), None)
    return whole or (fenced(entries) if entries else "")


def _named(missing: Sequence[str]) -> str:
    more = f" and {len(missing) - _NAMED_MAX} more" if len(missing) > _NAMED_MAX else ""
    return f"- left out for want of room, and binding: {', '.join(missing[:_NAMED_MAX])}{more}"


def _counted(missing: Sequence[str]) -> str:
    those = "1 more that binds was" if len(missing) == 1 else f"{len(missing)} more that bind were"
    return f"- {those} left out: raise tokens, or ask mnemarch decisions load"


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

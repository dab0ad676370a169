"""From an answer to one text that fits a token budget: whole items in recall's order, fenced as data. Pure."""

from __future__ import annotations

from mnemarch.model.search import Pack, Recalled, Withheld
from mnemarch.policy.kinds import TIER_NORMAL
from mnemarch.recall.binding import is_unasked
from mnemarch.text.prompt import entry, fenced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from mnemarch.model.search import Found

# What neither binds nor was asked for gets one part in so many of the budget.
_UNASKED_SHARE = 4
_NAMED_MAX = 5
_HOUR_S = 3_600
_DAY_S = 86_400


def _is_spare(item: Recalled) -> bool:
    """Whether it neither binds nor was asked for."""
    return item.tier >= TIER_NORMAL and is_unasked(item)


def packed(found: Found, budget: int, count: Callable[[str], int], now: datetime) -> Pack:
    """As many items as fit, in their order; after one that doesn't fit, a smaller one may.

    What binds (policies, axes, locks) and doesn't fit is named or counted in the room that is left. What neither binds
    nor was asked for gets only a part of the budget: a domain with many decisions must not crowd out the answer.
    """
    chosen: list[tuple[Recalled, str]] = []
    left_out: list[Recalled] = []
    used = count(fenced([]))
    unasked_left = budget // _UNASKED_SHARE
    for item in found.items:
        text = entry(head_of(item, now), item.unit.content)
        cost = count(text)
        is_spare = _is_spare(item)
        if used + cost <= budget and (not is_spare or cost <= unasked_left):
            used += cost
            unasked_left -= cost if is_spare else 0
            chosen.append((item, text))
        else:
            left_out.append(item)
    missing = [item.unit.id for item in left_out if _binds(item)]
    # The counts of the parts need not add up to that of the whole, and the whole has to fit.
    while chosen and count(_least(chosen, missing)) > budget:
        item, _ = chosen.pop()
        left_out.append(item)
        missing += [item.unit.id] if _binds(item) else []
    text = _text([text for _, text in chosen], missing, lambda text: count(text) <= budget)
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
    """What has to fit: the chosen items and the count of missing rules, unless a rule would have to go for it."""
    entries = [text for _, text in chosen]
    return fenced([*entries, _counted(missing)] if missing and not _binds(chosen[-1][0]) else entries)


def _text(entries: list[str], missing: Sequence[str], fits: Callable[[str], bool]) -> str:
    """The whole text. It ends with the rules that had no room: an agent that can't see a rule must know of it."""
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
    """What a reader should know of a memory before reading it: how sure it is, how old, and where it is valid."""
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

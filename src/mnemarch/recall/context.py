"""Packs an answer into one text within a token budget: binding units, then results, fenced as data. Pure."""

from __future__ import annotations

from mnemarch.model.search import Pack, Recalled, Withheld
from mnemarch.model.stamps import short_id
from mnemarch.model.unit import Kind
from mnemarch.policy.trust import head_of
from mnemarch.recall.handout import told_records
from mnemarch.text.prompt import entry, fenced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mnemarch.model.search import Found
    from mnemarch.model.unit import Unit

# Binding units take at most this share of the budget (R10).
_BINDING_SHARE = 0.4
# When the binding units don't all fit, a unit longer than this share of their room is cut to leave room for others.
_LONGEST_SHARE = 0.2
# Once this share of the room is used, the remaining binding units are listed by title.
_IN_PART_SHARE = 0.4
# A decision that doesn't fit is cut if at least this many tokens are left, and left out otherwise.
_IN_PART_MIN = 80
_TITLE_CHARS_MAX = 100
_SHARE_MIN = 0.01
# The fewest characters that identify a unit: each token of the head is one less for content.
_ID_CHARS = 6
TOLD_ELSEWHERE = "another item says the same"


def packed(
    found: Found, budget: int, count: Callable[[str], int], domain: str | None, asked: Sequence[str] = ()
) -> Pack:
    """The binding units, cut from the end, then as many items as fit, both in order. `asked` has the question's words.

    An item that doesn't fit is skipped, and a smaller one after it may fit. The text says how many binding units had
    no room. Items that repeat others are left out; see `told_once`.
    """
    if not (found.binding or found.items or found.unlisted):
        return Pack(text="", items=(), left_out=(), withheld=found.withheld, tokens=0, budget=budget)
    entries = {item.unit.id: _entry(item) for item in (*found.binding, *found.items)}
    costs = {unit_id: count(text) for unit_id, text in entries.items()}
    known = {item.unit.id for item in found.binding}
    room = int(budget * _BINDING_SHARE)
    spare = room - sum(costs[unit_id] for unit_id in known)
    if found.unlisted or spare < 0:
        entries |= _shortened(found.binding, costs, room, spare, count)
        costs = {unit_id: count(text) for unit_id, text in entries.items()}
    binding = _first_that_fit(found.binding, costs, room)
    bind_count = found.unlisted + len(found.binding)
    if len(binding) < bind_count:
        binding = _first_that_fit(found.binding, costs, room - count(_missing_note(bind_count, domain)))
    used = sum(costs[item.unit.id] for item in binding)
    used += count(_whole(entries, (), _missing_note(bind_count - len(binding), domain), ()))
    items: list[Recalled] = []
    told = told_once(found.items, found.binding, asked)
    for item in told:
        id, left = item.unit.id, budget - used
        if item.unit.kind is Kind.DECISION and costs[id] > left >= _IN_PART_MIN:
            entries[id] = _cut(item, left, count)
            costs[id] = count(entries[id])
        if id not in known and costs[id] <= left:
            used += costs[id]
            items.append(item)
    text = _whole(entries, binding, _missing_note(bind_count - len(binding), domain), items)
    # Token counts of parts need not add up to the count of the whole text, and the whole text has to fit.
    while (binding or items) and count(text) > budget:
        (items or binding).pop()
        text = _whole(entries, binding, _missing_note(bind_count - len(binding), domain), items)
    text = text if (bind_count or items) and count(text) <= budget else ""
    entries = {id: text for id, text in entries.items() if id not in {item.unit.id for item in (*binding, *items)}}
    over = f"over the budget of {budget} tokens"
    again = {item.unit.id for item in found.items} - {item.unit.id for item in told}
    return Pack(
        text=text,
        items=tuple(items),
        left_out=tuple(Withheld(unit_id=id, reason=TOLD_ELSEWHERE if id in again else over) for id in entries),
        withheld=found.withheld,
        tokens=count(text) if text else 0,
        budget=budget,
        binding=tuple(binding),
    )


def told_once(items: Sequence[Recalled], binding: Sequence[Recalled] = (), asked: Sequence[str] = ()) -> list[Recalled]:
    """The items without those that repeat others.

    An episode is left out if another covers its tests and succeeded where it failed, or comes first with the same
    outcome and its errors. An anchor to a listed compaction is left out, and so is the record of a listed decision
    that has the asked words too.
    """
    records = told_records((*binding, *items), asked)
    episodes = [_Episode(item.unit) for item in items]
    compacted = {item.unit.id for item in items if "compaction" in item.unit.attributes.get("tags", ())}

    def is_told(place: int) -> bool:
        own = episodes[place]
        if items[place].unit.attributes.get("target") in compacted:
            return False
        rivals = [(at, other) for at, other in enumerate(episodes) if own.tests and own.tests <= other.tests]
        return not any(
            other.succeeded > own.succeeded
            or (other.succeeded == own.succeeded and own.errors <= other.errors and at < place)
            for at, other in rivals
        )

    return [item for place, item in enumerate(items) if item.unit.id not in records and is_told(place)]


class _Episode:
    """The tests, errors and outcome of a unit that is an episode. Empty for other units."""

    def __init__(self, unit: Unit) -> None:
        told = unit.attributes if unit.kind == Kind.EPISODE else {}
        self.tests = frozenset(map(str, told.get("tests") or ()))
        self.errors = frozenset(str(fault.get("key")) for fault in told.get("faults") or () if isinstance(fault, dict))
        self.succeeded = told.get("success") is True


def _shortened(
    binding: Sequence[Recalled], costs: Mapping[str, int], room: int, spare: int, count: Callable[[str], int]
) -> dict[str, str]:
    """The entries of binding units that don't all fit: long ones are cut, and the last ones are only titles."""
    entries: dict[str, str] = {}
    used = 0
    for item in binding:
        id = item.unit.id
        in_part = max(int(room * _LONGEST_SHARE), spare + costs[id])
        entries[id] = _cut(item, in_part, count) if used < room * _IN_PART_SHARE else _titled(item)
        used += count(entries[id])
    return entries


def _cut(item: Recalled, tokens_max: int, count: Callable[[str], int]) -> str:
    """The entry. If it costs too much: its beginning and the command that shows the rest."""
    text, content, share = _entry(item), item.unit.content, 1.0
    while (cost := count(text)) > tokens_max and share > _SHARE_MIN:
        share *= 0.9 * tokens_max / cost
        start = content[: int(len(content) * share)]
        text = _entry(item, f"{start.rpartition(' ')[0] or start} … (in full: mnemarch show {short_id(item.unit.id)})")
    return text


def _titled(item: Recalled) -> str:
    line = item.unit.content.partition("\n")[0][:_TITLE_CHARS_MAX]
    return _entry(item, line if line == item.unit.content else f"{line} …")


def _first_that_fit(items: Sequence[Recalled], costs: Mapping[str, int], room: int) -> list[Recalled]:
    """The first items that fit together. An item too long for the whole room is skipped."""
    chosen: list[Recalled] = []
    left = room
    for item in items:
        cost = costs[item.unit.id]
        if cost <= left:
            chosen.append(item)
            left -= cost
        elif cost <= room:
            break
    return chosen


def _whole(entries: Mapping[str, str], binding: Sequence[Recalled], note: str, items: Sequence[Recalled]) -> str:
    first, last = ([entries[item.unit.id] for item in part] for part in (binding, items))
    return fenced([*first, *([note] if note else []), *last])


def _missing_note(count: int, domain: str | None) -> str:
    """A note on binding units without room: an agent must know of rules that it can't see."""
    where = f" --domain {domain}" if domain else ""
    return f"({count} more binding decisions had no room. See them: mnemarch decisions load{where})" if count else ""


def _entry(item: Recalled, content: str = "") -> str:
    """One short line of head (label or strength, id, notes), then the content."""
    unit = item.unit
    notes = "".join(f" ({' '.join(note.split())})" for note in item.notes)
    return entry(f"{head_of(unit, item.label)} {short_id(unit.id)[:_ID_CHARS]}{notes}", content or unit.content)

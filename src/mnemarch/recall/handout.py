"""Chooses which ranked items go out together: visibility, the number of hypotheses, repeats. Pure."""

from __future__ import annotations

from mnemarch.model.caller import Level
from mnemarch.model.unit import DRAFT_STATE, Kind, Status, search_kind
from mnemarch.policy.kinds import TIER_HYPOTHESIS, TIER_KEPT
from mnemarch.recall.scores import tier_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mnemarch.model.search import Recalled
    from mnemarch.model.unit import Unit

_HYPOTHESES_MAX = 2
_WEAKER = {"axis": 0, "lock": 1, "normal": 2}


def firmest_first(items: Sequence[Recalled]) -> list[Recalled]:
    """The items, with their decisions reordered among their own places, the firmest first (D19)."""
    firm = iter(sorted(filter(_is_decision, items), key=lambda item: _WEAKER[item.unit.attributes["strength"]]))
    return [next(firm) if _is_decision(item) else item for item in items]


def without_spare_hypotheses(items: list[Recalled], withheld: dict[str, str]) -> list[Recalled]:
    """The items with at most one lesson, one bug pattern, and two hypotheses beside anything better (R2).

    If there is nothing better, all hypotheses stay. The items left out are added to `withheld`.
    """
    # Habits are derived like lessons, but each one is distinct, so all stay.
    derived = [item.unit for item in items if item.unit.is_derived and item.unit.kind is not Kind.PREFERENCE]
    first = {unit.kind: unit.id for unit in reversed(derived)}
    lessons = [unit.id for unit in derived if unit.id != first[unit.kind]]
    withheld |= dict.fromkeys(lessons, "a lesson: an answer takes the one that fits best")
    items = _lesson_first([item for item in items if item.unit.id not in lessons])
    drafts = [item.unit.id for item in items if item.tier == TIER_HYPOTHESIS]
    spare = drafts[_HYPOTHESES_MAX:] if len(drafts) < len(items) else []
    withheld |= dict.fromkeys(spare, f"a hypothesis: beside what is surer an answer takes {_HYPOTHESES_MAX}")
    return [item for item in items if item.unit.id not in spare]


def _lesson_first(items: list[Recalled]) -> list[Recalled]:
    """The items, with a lesson moved before the episodes it summarizes."""
    for at, item in enumerate(items):
        made_of = item.unit.attributes.get("episodes", ()) if item.unit.is_derived else ()
        first = next((place for place, other in enumerate(items[:at]) if other.unit.id in made_of), at)
        if first < at:
            return [*items[:first], item, *items[first:at], *items[at + 1 :]]
    return items


def is_in_sight(unit: Unit, visible_keys: Sequence[str]) -> bool:
    """Whether the reader may see the unit. An agent's hypothesis is only for the task or worktree that made it (R2)."""
    if unit.scope.key not in visible_keys or unit.status is not Status.HYPOTHESIS or unit.level < Level.PROJECT:
        return unit.scope.key in visible_keys
    if tier_of(search_kind(str(unit.kind), unit.attributes), DRAFT_STATE) == TIER_KEPT:
        return True
    places = (place for source in unit.provenance for place in source.scope.visible)
    return any(place.key in visible_keys for place in places if place.level < Level.PROJECT)


def _is_decision(item: Recalled) -> bool:
    return item.unit.kind is Kind.DECISION and "root" in item.unit.attributes


def is_repeated(first: Recalled, item: Recalled) -> bool:
    """Whether `first`, a better item, has the same text, as another kind of unit or at another level.

    Similar texts don't count: one different word may be the point, and two wordings may come from two people.
    """
    if first is item:
        return False
    from mnemarch.text.canonical import canonical

    return canonical(first.unit.content) == canonical(item.unit.content)


def without_records(items: list[Recalled], asked: Iterable[str], withheld: dict[str, str]) -> list[Recalled]:
    """The items without the records of decisions among them, which are added to `withheld`.

    A record that has more of the asked words than its decision stays.
    """
    told = told_records(items, asked)
    withheld |= dict.fromkeys(told, "the record of a decision that is listed")
    return [item for item in items if item.unit.id not in told]


def told_records(items: Sequence[Recalled], asked: Iterable[str] = ()) -> set[str]:
    """The ids of those items that are the records of decisions beside them, by evidence and title.

    A record that has more of the asked words than its decision is not told by it.
    """
    from mnemarch.text.tokens import telling_tokens

    units, words = {item.unit.id: item.unit for item in items}, {*asked}
    decided = [unit for unit in units.values() if unit.kind is Kind.DECISION]
    pairs = [(units[id], one) for one in decided for id in one.attributes.get("evidence", ()) if id in units]
    pairs = [(record, one) for record, one in pairs if one.content.partition("\n")[0] in record.content]
    return {
        record.id
        for record, one in pairs
        if words.intersection(telling_tokens(record.content)) <= {*telling_tokens(one.content)}
    }

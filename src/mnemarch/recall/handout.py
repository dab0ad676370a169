"""What is handed out: the best candidates, the targets of anchors, and what binds whatever the question (R2, R10)."""

from __future__ import annotations

from mnemarch.errors import StoreUnavailable
from mnemarch.model.caller import Level
from mnemarch.model.decision import is_original, target_of
from mnemarch.model.search import Recalled
from mnemarch.model.unit import DRAFT_STATE, TRUSTED_STATE, Kind, Status, search_kind, search_state, search_text
from mnemarch.model.value import replace
from mnemarch.policy.kinds import TIER_HYPOTHESIS, TIER_KEPT, TIER_NORMAL
from mnemarch.recall.scores import tier_of
from mnemarch.text.cache import cached
from mnemarch.text.words import in_a_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from mnemarch.model.decision import Loaded
    from mnemarch.model.unit import Unit
    from mnemarch.ports import Reranker
    from mnemarch.recall.candidates import Finder
    from mnemarch.recall.scores import Relevance
    from mnemarch.stores.sql.reader import Reader

    Admitted = Callable[[Sequence[Unit], dict[str, str]], list[tuple[Unit, tuple[str, ...]]]]

_HYPOTHESES_MAX = 2
_REASON_CHARS_MAX = 300
_NO_TARGET = "leads to nothing that you can see here"
_GLOBAL = "global"
# The search index's name for a normal decision.
_NORMAL = "decision.normal"
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
    withheld |= dict.fromkeys(lessons, "a lesson: an answer has only the one that fits best")
    items = _lesson_first([item for item in items if item.unit.id not in lessons])
    drafts = [item.unit.id for item in items if item.tier == TIER_HYPOTHESIS]
    spare = drafts[_HYPOTHESES_MAX:] if len(drafts) < len(items) else []
    withheld |= dict.fromkeys(spare, f"a hypothesis: an answer with surer units has at most {_HYPOTHESES_MAX}")
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


def because(unit: Unit, asked: Iterable[str], *, asks_why: bool) -> tuple[str, ...]:
    """A note with a decision's reason, if the asked words are in it, or if the question asks why. Else empty."""
    reason = _reason(unit)
    if not reason:
        return ()
    words, said = _words(reason), _words(unit.content)
    is_asked = not (words - said).isdisjoint(asked) or (asks_why and not (words | said).isdisjoint(asked))
    told, cost = unit.attributes["reason"]["summary"], unit.attributes["reason"]["tradeoff"]
    told += f"; it costs: {cost}" if cost else ""
    return (f"because: {in_a_line(told, _REASON_CHARS_MAX)}",) if is_asked else ()


def _reason(decision: Unit) -> str:
    return search_text(decision.kind, decision.content, decision.attributes)[len(decision.content) :]


# Cached, because the same decisions bind nearly every answer.
@cached(1024)
def _words(text: str) -> frozenset[str]:
    from mnemarch.text.tokens import telling_tokens

    return frozenset(telling_tokens(text))


def told_records(items: Sequence[Recalled], asked: Iterable[str] = ()) -> set[str]:
    """The ids of those items that are the records of decisions beside them, by evidence and title.

    A record that has more of the asked words than its decision and the reason is not told by it.
    """
    units, words = {item.unit.id: item.unit for item in items}, {*asked}
    decided = [unit for unit in units.values() if unit.kind is Kind.DECISION]
    pairs = [(units[id], one) for one in decided for id in one.attributes.get("evidence", ()) if id in units]
    pairs = [(record, one) for record, one in pairs if one.content.partition("\n")[0] in record.content]
    return {
        record.id
        for record, one in pairs
        if words & _words(record.content) <= _words(one.content) | _words(_reason(one)[:_REASON_CHARS_MAX])
    }


# A model that reads question and text together


def reranked(reranker: Reranker, question: str, ordered: Sequence[Relevance], texts: Mapping[str, str]) -> list[str]:
    """Add a model's scores to the candidates whose texts are given. Returns notes for the answer.

    The scores are scaled to the range of the totals, so that both count the same. If there are fewer scores than
    candidates, they belong to the first candidates.
    """
    first = [relevance for relevance in ordered if relevance.sketch.id in texts]
    try:
        scores = reranker.scores(question, [texts[relevance.sketch.id] for relevance in first])
    except StoreUnavailable as error:
        return [f"Not reranked: {error.message}"]
    least, most = min(scores, default=0.0), max(scores, default=0.0)
    totals = [relevance.total for relevance in first[: len(scores)]]
    # The model's scores count even if all totals are equal.
    spread = max(totals, default=0.0) - min(totals, default=0.0) or 1.0
    for relevance, score in zip(first, scores, strict=False):
        if score > least:
            relevance.bonuses["rerank"] = bonus = spread * (score - least) / (most - least)
            relevance.total += bonus
    if len(scores) < len(first):
        return [f"Reranked {len(scores)} of the first {len(first)}: time was up (recall.rerank_s_max)."]
    return []


# Targets of anchors


def followed(
    reader: Reader,
    items: list[Recalled],
    visible_keys: Sequence[str],
    kinds: Sequence[Kind],
    admitted: Admitted,
    withheld: dict[str, str],
) -> list[Recalled]:
    """The items and their anchors' targets, in order of tiers. Targets pass the same gate, `admitted`."""
    if not any(map(_is_anchor, items)):
        return items
    known = {item.unit.id for item in items}
    targets = reader.units(dict.fromkeys(target_of(item.unit) for item in items if _is_anchor(item)))
    found = {id: unit for id, unit in targets.items() if unit.scope.key in visible_keys and is_original(unit)}
    new = [unit for unit in found.values() if unit.id not in known and unit.kind in (kinds or Kind)]
    led = [_led_to(unit, notes, items) for unit, notes in admitted(new, withheld)]
    return _with_targets([_noted(item, found, withheld) for item in items], led)


def _is_anchor(item: Recalled) -> bool:
    return item.unit.kind is Kind.ANCHOR


def _noted(item: Recalled, originals: Mapping[str, Unit], withheld: Mapping[str, str]) -> Recalled:
    """An anchor with a note that names its target and says whether that is withheld. Other items are unchanged."""
    if not _is_anchor(item):
        return item
    target = target_of(item.unit)
    note = f"leads to {target}" if target in originals else _NO_TARGET
    reason = f", which is withheld: {withheld[target]}" if target in withheld else ""
    return replace(item, notes=(*item.notes, note + reason))


def _led_to(unit: Unit, notes: tuple[str, ...], items: Sequence[Recalled]) -> Recalled:
    """An anchor's target as an item, with the score of the anchor."""
    anchor = next(item for item in items if _is_anchor(item) and target_of(item.unit) == unit.id)
    state = search_state(unit.status, unit.superseded_from, unit.valid_to_commit)
    tier = tier_of(search_kind(str(unit.kind), unit.attributes), state)
    return Recalled(unit=unit, score=anchor.score, tier=tier, why={"anchor": anchor.score}, label="", notes=notes)


def _with_targets(items: Sequence[Recalled], led: Sequence[Recalled]) -> list[Recalled]:
    """All items in order of tiers, each target directly after its anchor."""
    anchored = {target_of(item.unit): place for place, item in reversed([*enumerate(items)]) if _is_anchor(item)}
    keyed = [((item.tier, place, ""), item) for place, item in enumerate(items)]
    keyed += [((item.tier, anchored[item.unit.id], item.unit.id), item) for item in led]
    return [item for _, item in sorted(keyed, key=lambda pair: pair[0])]


# Binding units


def binding_items(
    reader: Reader,
    finder: Finder,
    loaded: Sequence[Loaded],
    weights: Mapping[str, float],
    visible_keys: Sequence[str],
    *,
    domains: Sequence[str],
    limit: int,
) -> list[Recalled]:
    """The binding units in order, up to a limit. Normal decisions that match the question precede other normal ones.

    Decisions of the domain still come before global ones.
    """
    room = limit - sum(one.tier < TIER_NORMAL for one in loaded)
    within: dict[str, Any] = {"kinds": [_NORMAL], "domains": domains, "states": [TRUSTED_STATE]}
    best = finder.best(weights, visible_keys, limit=room, **within)
    asked = reader.units([sketch.id for _, sketch in best]) if best else {}
    rest = [*(unit for unit in asked.values() if unit.live), *(one.unit for one in loaded if one.tier == TIER_NORMAL)]
    tiers = {one.unit.id: one.tier for one in loaded}
    firm = [one.unit for one in loaded if one.tier < TIER_NORMAL]
    units = {unit.id: unit for unit in (*firm, *sorted(rest, key=lambda unit: unit.domain == _GLOBAL))}
    return [
        Recalled(unit=unit, score=0.0, tier=tiers.get(unit.id, TIER_NORMAL), why={}, label="")
        for unit in list(units.values())[:limit]
    ]


def winners_first(reader: Reader, items: list[Recalled], contested: set[str]) -> list[Recalled]:
    """The items, where a unit that lost to an earlier replacement follows the winner (R5)."""
    for unit_id in sorted(contested):
        winners = [link.target for link in reader.open_conflicts([unit_id]) if link.is_late_replacement(unit_id)]
        at = next((place for place, item in enumerate(items) if item.unit.id == unit_id), len(items))
        last = max((place for place, item in enumerate(items) if item.unit.id in winners), default=-1)
        if last > at:
            items = [*items[:at], *items[at + 1 : last + 1], items[at], *items[last + 1 :]]
    return items

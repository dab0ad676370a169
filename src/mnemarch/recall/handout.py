"""What becomes of ranked candidates: a model may rerank them, and few hypotheses and no repeats are handed out."""

from __future__ import annotations

from mnemarch.errors import StoreUnavailable
from mnemarch.model.caller import Level
from mnemarch.model.unit import DRAFT_STATE, Kind, Status, search_kind
from mnemarch.policy.kinds import TIER_HYPOTHESIS, TIER_KEPT
from mnemarch.recall.scores import tier_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mnemarch.model.search import Recalled
    from mnemarch.model.unit import Unit
    from mnemarch.ports import Reranker
    from mnemarch.recall.scores import Relevance

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

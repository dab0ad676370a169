"""How well each candidate answers: its own words, its neighbours', its session's, who speaks and when. Pure.

The parts and what each gains are measured in bench/retrieval; docs/explanation/recall.md tells why they are these.
"""

from __future__ import annotations

from math import exp

from mnemon.lazy import Lazy
from mnemon.model.sketch import place
from mnemon.recall.fusion import fused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mnemon.config import RecallRules
    from mnemon.model import instant
    from mnemon.model.sketch import Sketch
    from mnemon.recall.question import Question
else:
    instant = Lazy("mnemon.model.instant")

_K1 = 1.2
_B = 0.9
# Lengths in telling words. A text is compared with one of everyday size, not with the mean of whatever is stored, so
# that a memory of long texts and one of short ones rank alike.
_TEXT_LENGTH = 40
_WINDOW_LENGTH = 80
# A neighbour's words count by how near they stand: e-fold over so many words, up to so many turns away. Short turns
# lean on their neighbours, long ones hardly do, and those this long not at all.
_REACH = 30.0
HOPS = 3
_FAINT = 0.05
SELF_CONTAINED = 180

_WINDOW_WEIGHT = 2.0
_SPEAKER_BONUS = 0.15
_DATE_BONUS = 0.4
_OWN_SESSION_BONUS = 0.05
_INTENT_BONUS = 0.05


class Term:
    """One word of the question: the words of the index that stand for it, what it was given, and what it weighs here."""

    __slots__ = ("given", "needles", "weight", "words")

    def __init__(self, words: Sequence[str], given: float, rarity: float) -> None:
        self.words = words
        self.given = given
        self.weight = given * rarity
        self.needles = [f" {word} " for word in words]


class Relevance:
    """One candidate's shares, by signal; they add up to its relevance."""

    __slots__ = ("shares", "sketch")

    def __init__(self, sketch: Sketch, shares: dict[str, float]) -> None:
        self.sketch = sketch
        self.shares = shares

    @property
    def total(self) -> float:
        return sum(self.shares.values())


def judged(
    question: Question,
    terms: Sequence[Term],
    found: Sequence[Sketch],
    around: Sequence[Sketch],
    *,
    coherence: float,
    own_session: str | None,
    rules: RecallRules,
) -> list[Relevance]:
    """Each candidate and each neighbour with its shares, the best being about 1; in no order."""
    pool = {sketch.id: sketch for sketch in (*around, *found)}
    counted = {sketch.id: _counts(terms, sketch) for sketch in pool.values()}
    coherence = coherence if rules.neighbours else 0.0
    placed = {sketch.place: sketch for sketch in pool.values() if sketch.session} if coherence else {}
    weights = [term.weight for term in terms]
    sessions = _session_scores(found, counted, weights) if coherence and rules.sessions else {}
    signals: dict[str, dict[str, float]] = {"lexical": {}, "alone": {}, "window": {}, "session": {}}
    for sketch in pool.values():
        counts = counted[sketch.id]
        signals["lexical"][sketch.id] = _bm25(counts, weights, sketch.length / _TEXT_LENGTH)
        window, length = _window(sketch, counts, counted, placed, coherence)
        is_alone = length == sketch.length
        signals["alone" if is_alone else "window"][sketch.id] = _bm25(window, weights, length / _WINDOW_LENGTH)
        signals["session"][sketch.id] = sessions.get(sketch.session, 0.0)
    weighed = {"lexical": 1.0, "alone": _WINDOW_WEIGHT, "window": _WINDOW_WEIGHT, "session": coherence}
    results = []
    for unit_id, shares in fused(signals, weighed, rules.fusion).items():
        # Seen from where nobody stands beside it, a text's window is the text itself.
        told = {"lexical": shares.get("lexical", 0.0) + shares.get("alone", 0.0)}
        told |= {
            name: shares[said] for name, said in (("neighbours", "window"), ("session", "session")) if said in shares
        }
        results.append(Relevance(pool[unit_id], told))
        _add_bonuses(results[-1], question, own_session)
    return results


def _counts(terms: Sequence[Term], sketch: Sketch) -> dict[int, float]:
    """How often each term occurs, by its number; only those that do."""
    counts: dict[int, float] = {}
    for number, term in enumerate(terms):
        for needle in term.needles:
            if needle in sketch.words:
                counts[number] = counts.get(number, 0) + sketch.count(needle)
    return counts


def _bm25(counts: Mapping[int, float], weights: Sequence[float], relative_length: float) -> float:
    damping = _K1 * (1 - _B + _B * relative_length)
    total = 0.0
    for number, count in counts.items():
        total += weights[number] * count * (_K1 + 1) / (count + damping)
    return total


def _window(
    sketch: Sketch,
    counts: dict[int, float],
    counted: Mapping[str, dict[int, float]],
    placed: Mapping[str, Sketch],
    coherence: float,
) -> tuple[dict[int, float], float]:
    """The counts of a text together with its neighbours', each by its nearness, and the length of it all."""
    length: float = sketch.length
    if not coherence or not sketch.session:
        return counts, length
    window = dict(counts)
    for step in (-1, 1):
        gap, turn = sketch.length / 2, sketch.turn
        for _ in range(HOPS):
            turn += step
            neighbour = placed.get(place(sketch.session, turn))
            if neighbour is None:
                break
            nearness = exp(-(gap + neighbour.length / 2) / _REACH)
            if nearness < _FAINT:
                break
            gap += neighbour.length
            nearness *= coherence
            length += nearness * neighbour.length
            for number, count in counted[neighbour.id].items():
                window[number] = window.get(number, 0.0) + nearness * count
    return window, length


def _session_scores(
    found: Sequence[Sketch], counted: Mapping[str, dict[int, float]], weights: Sequence[float]
) -> dict[str, float]:
    """What each session says to the question: of how many of its candidates each term is a word, saturating."""
    held: dict[str, dict[int, float]] = {}
    for sketch in found:
        if sketch.session:
            counts = held.setdefault(sketch.session, {})
            for number in counted[sketch.id]:
                counts[number] = counts.get(number, 0.0) + 1.0
    return {session: _bm25(counts, weights, 1.0) for session, counts in held.items()}


def _add_bonuses(result: Relevance, question: Question, own_session: str | None) -> None:
    sketch = result.sketch
    if sketch.speaker and sketch.speaker in question.speakers:
        result.shares["speaker"] = _SPEAKER_BONUS
    if question.dates:
        on = instant.instant(sketch.occurred_at).date()
        fit = max(date.fit(on) for date in question.dates)
        if fit:
            result.shares["date"] = _DATE_BONUS * fit
    if own_session is not None and sketch.session == own_session:
        result.shares["own_session"] = _OWN_SESSION_BONUS
    if sketch.kind in question.intent.kinds:
        result.shares["intent"] = _INTENT_BONUS

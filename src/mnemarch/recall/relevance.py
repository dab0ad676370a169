"""How well each candidate answers: its own words, its neighbours', its session's, who speaks and when. Pure.

The parts and what each gains are measured in bench/retrieval; docs/explanation/recall.md tells why they are these.
"""

from __future__ import annotations

from math import exp

from mnemarch.lazy import Lazy
from mnemarch.model.search import place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mnemarch.config import RecallRules
    from mnemarch.model import stamps as instant
    from mnemarch.model.search import Sketch
    from mnemarch.recall import fusion
    from mnemarch.recall.question import Question

    # How often each term of the question occurs, by its number; only those that do.
    Counts = dict[int, float]
else:
    fusion = Lazy("mnemarch.recall.fusion")
    instant = Lazy("mnemarch.model.stamps")

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
# What a cosine says beyond that of two texts that have nothing to do with each other.
_MEANING_WEIGHT = 0.3
_FAR_IN_MEANING = 0.3
# What answered a question like this one (R2: heat nominates, the gate decides).
_NOMINATED_WEIGHT = 0.5


_NO_MEANINGS: Mapping[str, float] = {}


class Term:
    """One word of the question: the words of the index that stand for it, what it was given, what it weighs here."""

    __slots__ = ("given", "weight", "words")

    def __init__(self, words: Sequence[str], given: float, rarity: float) -> None:
        self.words = words
        self.given = given
        self.weight = given * rarity


class Relevance:
    """One candidate: what its own words, its neighbours and its session say, and what is added to that."""

    __slots__ = ("bonuses", "lexical", "neighbours", "session", "sketch", "total")

    def __init__(self, sketch: Sketch, lexical: float, neighbours: float, session: float) -> None:
        self.sketch = sketch
        self.lexical = lexical
        self.neighbours = neighbours
        self.session = session
        self.bonuses: dict[str, float] = {}
        self.total = lexical + neighbours + session

    @property
    def shares(self) -> dict[str, float]:
        """The share of each signal that says anything; together they are the total."""
        signals = {"lexical": self.lexical, "neighbours": self.neighbours, "session": self.session}
        return {name: share for name, share in signals.items() if share} | self.bonuses


def judged(
    question: Question,
    terms: Sequence[Term],
    found: Sequence[Sketch],
    around: Sequence[Sketch],
    *,
    meanings: Mapping[str, float] = _NO_MEANINGS,
    nominated: Mapping[str, float] = _NO_MEANINGS,
    coherence: float,
    own_session: str | None,
    rules: RecallRules,
) -> list[Relevance]:
    """Each candidate and each neighbour, the best by its words being 1; in no order."""
    pool = {sketch.id: sketch for sketch in (*around, *found)}
    needles = [(number, f" {word} ", len(word) + 2) for number, term in enumerate(terms) for word in term.words]
    counted = {sketch.id: _counts(sketch, needles) for sketch in pool.values()}
    weights = [term.weight * (_K1 + 1) for term in terms]
    coherence = coherence if rules.neighbours else 0.0
    placed = {sketch.place: sketch for sketch in pool.values() if sketch.session} if coherence else {}
    sessions = _session_scores(found, counted, weights) if coherence and rules.sessions else {}
    alone: list[float] = []
    own: list[float] = []
    window: list[float] = []
    for sketch in pool.values():
        counts = counted[sketch.id]
        seen, length = _window(sketch, counts, counted, placed, coherence)
        own.append(_bm25(counts, weights, sketch.length / _TEXT_LENGTH))
        window.append(_bm25(seen, weights, length / _WINDOW_LENGTH))
        alone.append(window[-1] if seen is counts else _bm25(counts, weights, sketch.length / _WINDOW_LENGTH))
    session = [sessions.get(sketch.session, 0.0) for sketch in pool.values()]
    if rules.fusion == "rrf":
        own, window, alone, session = map(fusion.reciprocal_ranks, (own, window, alone, session))
    best = max(map(_summed, own, window, session, [coherence] * len(own)), default=0.0) or 1.0
    results = []
    for number, sketch in enumerate(pool.values()):
        # A text's window holds the text itself; what its neighbours say is the rest.
        near = _WINDOW_WEIGHT * max(0.0, window[number] - alone[number])
        lexical = own[number] + _WINDOW_WEIGHT * window[number] - near
        meaning = _MEANING_WEIGHT * max(0.0, meanings.get(sketch.id, 0.0) - _FAR_IN_MEANING)
        asked = _NOMINATED_WEIGHT * nominated.get(sketch.id, 0.0)
        if lexical or near or session[number] or meaning or asked:
            result = Relevance(sketch, lexical / best, near / best, coherence * session[number] / best)
            if meaning:
                result.bonuses["meaning"] = meaning
            if asked:
                result.bonuses["asked"] = asked
            _add_bonuses(result, question, own_session)
            results.append(result)
    return results


def _summed(own: float, window: float, session: float, coherence: float) -> float:
    return own + _WINDOW_WEIGHT * window + coherence * session


def _counts(sketch: Sketch, needles: Sequence[tuple[int, str, int]]) -> Counts:
    counts: Counts = {}
    words = sketch.words
    find = words.find
    for number, needle, size in needles:
        at = find(needle)
        if at >= 0:
            at += size
            counts[number] = counts.get(number, 0.0) + (sketch.repeats(at) if words[at : at + 1] == ":" else 1)
    return counts


def _bm25(counts: Counts, weights: Sequence[float], relative_length: float) -> float:
    damping = _K1 * (1 - _B + _B * relative_length)
    total = 0.0
    for number, count in counts.items():
        total += weights[number] * count / (count + damping)
    return total


def _window(
    sketch: Sketch,
    counts: Counts,
    counted: Mapping[str, Counts],
    placed: Mapping[str, Sketch],
    coherence: float,
) -> tuple[Counts, float]:
    """The counts of a text together with its neighbours', each by its nearness, and the length of it all."""
    length: float = sketch.length
    if not coherence or not sketch.session or length > SELF_CONTAINED:
        return counts, length
    window = None
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
            window = dict(counts) if window is None else window
            for number, count in counted[neighbour.id].items():
                window[number] = window.get(number, 0.0) + nearness * count
    return counts if window is None else window, length


def _session_scores(
    found: Sequence[Sketch], counted: Mapping[str, Counts], weights: Sequence[float]
) -> dict[str, float]:
    """What each session says to the question: of how many of its candidates each term is a word, saturating."""
    held: dict[str, Counts] = {}
    for sketch in found:
        if sketch.session:
            counts = held.setdefault(sketch.session, {})
            for number in counted[sketch.id]:
                counts[number] = counts.get(number, 0.0) + 1.0
    return {session: _bm25(counts, weights, 1.0) for session, counts in held.items()}


def _add_bonuses(result: Relevance, question: Question, own_session: str | None) -> None:
    sketch = result.sketch
    if sketch.speaker and question.speakers.issuperset(sketch.speaker.split()):
        result.bonuses["speaker"] = _SPEAKER_BONUS
    if question.dates:
        on = instant.instant(sketch.occurred_at).date()
        fit = max(date.fit(on) for date in question.dates)
        if fit:
            result.bonuses["date"] = _DATE_BONUS * fit
    if own_session is not None and sketch.session == own_session:
        result.bonuses["own_session"] = _OWN_SESSION_BONUS
    if sketch.kind.partition(".")[0] in question.intent.kinds:
        result.bonuses["intent"] = _INTENT_BONUS
    if result.bonuses:
        result.total += sum(result.bonuses.values())

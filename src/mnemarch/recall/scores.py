"""Scores and orders candidates by words, neighbours, session, speaker and date, and tells how likely one answers.

Order is by tier (R10), then by score within a tier (M4). Pure. bench/retrieval measures what each part gains;
docs/explanation/recall.md gives the reasons.
"""

from __future__ import annotations

from math import exp, log

from mnemarch.model.search import Recalled
from mnemarch.model.stamps import instant
from mnemarch.model.unit import (
    DRAFT_STATE,
    REPLACED_STATE,
    TRUSTED,
    TRUSTED_STATE,
    search_kind,
)
from mnemarch.policy.kinds import TIER_FOUND, TIER_HYPOTHESIS, TIER_KEPT
from mnemarch.policy.trust import confidence_at
from mnemarch.recall.question import HANGUL, TurnBonuses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from mnemarch.config import RecallRules
    from mnemarch.model.search import Sketch
    from mnemarch.model.unit import Unit
    from mnemarch.policy.trust import TrustRules
    from mnemarch.recall.question import Question

    # How often each term of the question occurs, by its number. Terms that don't occur are absent.
    Counts = dict[int, float]
    Bonuses = dict[str, float]
    # Sketches by session and turn.
    Placed = Mapping[tuple[str, int], Sketch]

_K1 = 1.2
_B = 0.9
# Usual lengths, in search words. Texts are compared with these and not with the mean of the store, so that a memory of
# long texts ranks like one of short texts.
_TEXT_LENGTH = 40
_WINDOW_LENGTH = 80
# A neighbour's words count less with distance: they fall e-fold over _REACH words and end after HOPS turns. Short turns
# gain most from neighbours. Turns longer than SELF_CONTAINED words use none.
_REACH = 30.0
HOPS = 3
_FAINT = 0.05
SELF_CONTAINED = 180

_WINDOW_WEIGHT = 1.8
# Weight of the share of the question that a text and its neighbours contain. Repeats and rarity don't count.
_COVERAGE_WEIGHT = 0.35
# Related words together add at most this share of the word that was asked. A text needs at least _WIDER_MIN of shares,
# so a single related word finds nothing.
_WIDER_MAX = 0.9
_WIDER_MIN = 0.45
_SPEAKER_BONUS = 0.15
_DATE_BONUS = 0.4
_OWN_SESSION_BONUS = 0.05
_INTENT_BONUS = 0.05
# Meaning is weighed against a text with all words of the question, in a conversation against the best text. A turn's
# meaning includes _NEIGHBOUR_SHARES of its neighbours'. _ALIKE allows for vectors that are similar but not equal.
_MEANING_WEIGHT = 2.5
_MEANING_WEIGHT_OF_TURNS = 0.8
# Of two texts with the same cosine, the one in the question's language is the likelier answer.
_OTHER_LANGUAGE_COSINE = 0.05
_NEIGHBOUR_SHARES = {-2: 0.25, -1: 0.5, 1: 0.5, 2: 0.25}
_ALIKE = 0.6
# Weight of having answered a similar question. Heat only nominates; the gate decides (R2).
_NOMINATED_WEIGHT = 0.5
# The usual constant of reciprocal rank fusion. A higher value makes the first ranks more equal.
_DAMPING = 60

# Only a trusted unit can be replaced, and where the replacing commit is missing it keeps its rank.
_KNOWN_STATES = (TRUSTED_STATE, REPLACED_STATE)
# The program writes episodes itself. Evidence and anchors claim nothing beyond their words (D19).
_KEPT_KINDS = frozenset({"episode", "evidence", "anchor"})
_AXES = ("similarity", "recency", "importance")
_MICROS_AN_HOUR = 3_600_000_000
_NO_MEANINGS: Mapping[str, float] = {}


class Term:
    """One word of the question: the indexed words searched for it, its weight in the question, its weight here.

    `words` is empty if no text has any. For a related word, `instead_of` is the number of the term that was asked.
    """

    __slots__ = ("asked_weight", "instead_of", "weight", "words")

    def __init__(self, words: Sequence[str], asked_weight: float, rarity: float, *, instead_of: int = -1) -> None:
        self.words = words
        self.instead_of = instead_of
        self.asked_weight = asked_weight
        self.weight = asked_weight * rarity

    @property
    def is_asked(self) -> bool:
        return self.instead_of < 0


class Relevance:
    """One candidate: the scores of its own words, its neighbours and its session, and its bonuses. `rank` adds its
    axes, score and tier. `covered` is the share of the question that it and its neighbours contain. `strength` is its
    word score relative to the question's total weight."""

    __slots__ = (
        *("axes", "bonuses", "covered", "lexical", "neighbours", "score", "session", "sketch", "strength", "tier"),
        *("total", "weight"),
    )

    def __init__(self, sketch: Sketch, lexical: float, neighbours: float, session: float, bonuses: Bonuses) -> None:
        self.sketch = sketch
        self.covered = self.strength = 0.0
        self.lexical = lexical
        self.neighbours = neighbours
        self.session = session
        self.bonuses = bonuses
        self.total = lexical + neighbours + session + sum(bonuses.values())

    def rank(self, weight: float, recency: float, importance: float) -> None:
        """Set the axes of M4, the score and the tier. `weight` is the weight of the similarity."""
        self.weight = weight
        self.axes = (weight * self.total, recency, importance)
        self.score = sum(self.axes)
        self.tier = tier_of(self.sketch.kind, self.sketch.state)

    def trust(self, confidence: float) -> None:
        """Scale the importance by the unit's trust (R7)."""
        similarity, recency, importance = self.axes
        self.axes = (similarity, recency, importance * confidence)
        self.score = sum(self.axes)

    @property
    def shares(self) -> dict[str, float]:
        """The share of each nonzero signal. They add up to the total."""
        signals = {"lexical": self.lexical, "neighbours": self.neighbours, "session": self.session, **self.bonuses}
        return {name: share for name, share in signals.items() if share}

    @property
    def why(self) -> dict[str, float]:
        """The share of each axis in the score, and of each signal in the similarity."""
        axes = dict(zip(_AXES, self.axes, strict=True))
        return axes | {name: self.weight * share for name, share in self.shares.items()}


def judged(
    question: Question,
    terms: Sequence[Term],
    candidates: Sequence[Sketch],
    around: Sequence[Sketch],
    *,
    meanings: Mapping[str, float] = _NO_MEANINGS,
    noise: float = 0.0,
    nominated: Mapping[str, float] = _NO_MEANINGS,
    coherence: float,
    own_session: str | None,
    rules: RecallRules,
) -> list[Relevance]:
    """The relevance of each candidate and each neighbour, unordered. The best score by words is scaled to 1. `noise` is
    the cosine of unrelated texts."""
    pool = {sketch.id: sketch for sketch in (*around, *candidates)}
    # A word of several terms counts for the first, which was asked.
    numbers = {word: number for number, term in reversed([*enumerate(terms)]) for word in term.words}
    counted = {sketch.id: _counts(sketch, numbers) for sketch in pool.values()}
    coherence = coherence if rules.neighbours else 0.0
    weights = Weights(terms, 1 - coherence if meanings else 0.0)
    placed = {(sketch.session, sketch.turn): sketch for sketch in pool.values() if sketch.session} if coherence else {}
    sessions = _session_scores(candidates, counted, weights) if coherence and rules.sessions else {}
    own, window, alone, covered = _word_scores(pool.values(), counted, weights, placed, coherence)
    strongest = max([a + _WINDOW_WEIGHT * b for a, b in zip(own, window, strict=True)], default=0.0) or 1.0
    session = [sessions.get(sketch.session, 0.0) for sketch in pool.values()]
    if rules.fusion == "rrf":
        own, window, alone, session = map(reciprocal_ranks, (own, window, alone, session))
    words = zip(own, window, session, strict=True)
    best = max([a + _WINDOW_WEIGHT * b + coherence * c for a, b, c in words], default=0.0) or 1.0
    said_wholly = weights.asked_total * (1 + _WINDOW_WEIGHT) / strongest
    meaning_weight = coherence * _MEANING_WEIGHT_OF_TURNS + (1 - coherence) * _MEANING_WEIGHT * said_wholly
    turn_bonuses = TurnBonuses(question, coherence if rules.turns else 0.0)
    results = []
    for number, sketch in enumerate(pool.values()):
        # The window contains the text itself. The rest is the neighbours' share.
        near = _WINDOW_WEIGHT * max(0.0, window[number] - alone[number])
        lexical = own[number] + _WINDOW_WEIGHT * window[number] - near
        if lexical and sum([weights.shares[term] for term in counted[sketch.id]]) < _WIDER_MIN:
            lexical = 0.0
        bonuses: Bonuses = {}
        is_meant = lexical or near or session[number] or meanings.get(sketch.id, 0.0) > noise
        if is_meant and meanings:
            apart = _OTHER_LANGUAGE_COSINE * (question.is_korean != (HANGUL in sketch.words))
            if (nearness := _meaning(sketch, meanings, placed, coherence) - apart) > 0:
                bonuses["meaning"] = meaning_weight * nearness
        if sketch.id in nominated:
            bonuses["asked"] = _NOMINATED_WEIGHT * nominated[sketch.id]
        if lexical or near or session[number] or bonuses:
            if coherence:
                bonuses["coverage"] = coherence * _COVERAGE_WEIGHT * covered[number]
                bonuses["turn"] = turn_bonuses[sketch.speaker, sketch.signs, sketch.turn == 1]
            _add_bonuses(bonuses, sketch, question, own_session)
            result = Relevance(sketch, lexical / best, near / best, coherence * session[number] / best, bonuses)
            result.covered = covered[number]
            said = alone[number] if weights.seen_by_model else (lexical + near) / (1 + _WINDOW_WEIGHT)
            result.strength = said / weights.asked_total
            results.append(result)
    return results


def _word_scores(
    sketches: Iterable[Sketch], counted: Mapping[str, Counts], weights: Weights, placed: Placed, coherence: float
) -> tuple[list[float], list[float], list[float], list[float]]:
    """Lists by text: the scores of its own words, of its window, and of its own words at the window's length; then the
    share of the question that its window contains. Beside a model, a lower share lowers the first two scores."""
    own, window, alone, covered = [], [], [], []
    for sketch in sketches:
        counts = counted[sketch.id]
        seen, length = _window(sketch, counted, placed, coherence)
        said = [weights.asked_weights[number] * (count if count < 1.0 else 1.0) for number, count in seen.items()]
        covered.append(sum(said) / weights.asked_total)
        kept = 1 - weights.seen_by_model * (1 - covered[-1])
        own.append(_bm25(counts, weights, sketch.length / _TEXT_LENGTH, kept))
        window.append(_bm25(seen, weights, length / _WINDOW_LENGTH, kept))
        is_same = seen is counts and kept == 1
        alone.append(window[-1] if is_same else _bm25(counts, weights, sketch.length / _WINDOW_LENGTH))
    return own, window, alone, covered


def _counts(sketch: Sketch, numbers: Mapping[str, int]) -> Counts:
    counts: Counts = {}
    has_repeats = " :" in sketch.words
    # In the order of the terms, so that sums are equal in every process.
    for word in sorted(numbers.keys() & sketch.words.split(), key=numbers.__getitem__):
        number = numbers[word]
        counts[number] = counts.get(number, 0.0) + (sketch.count(f" {word} ") if has_repeats else 1)
    return counts


class Weights:
    """The weight of each term, which terms were asked, how far a model covers these, and each related term's share."""

    __slots__ = ("asked", "asked_total", "asked_weights", "instead_of", "seen_by_model", "shares", "weights")

    def __init__(self, terms: Sequence[Term], seen_by_model: float) -> None:
        self.seen_by_model = seen_by_model
        self.weights = [term.weight * (_K1 + 1) for term in terms]
        self.asked_weights = [term.weight if term.is_asked else 0.0 for term in terms]
        self.asked_total = sum(self.asked_weights) or 1.0
        self.instead_of = [term.instead_of for term in terms]
        self.asked = sum([term.is_asked for term in terms])
        self.shares = [
            1.0 if term.is_asked else term.asked_weight / (terms[term.instead_of].asked_weight or 1.0) for term in terms
        ]


def _bm25(counts: Counts, terms: Weights, relative_length: float, kept: float = 1.0) -> float:
    """The BM25 score of a text. Asked words count by the factor `kept`, and related words less than the asked one."""
    if not counts:
        return 0.0
    damping = _K1 * (1 - _B + _B * relative_length)
    total = 0.0
    weights, all_asked = terms.weights, terms.asked
    wider: Counts = {}
    for number, count in counts.items():
        share = weights[number] * count / (count + damping)
        if number < all_asked:
            total += share
        else:
            asked = terms.instead_of[number]
            wider[asked] = wider.get(asked, 0.0) + share
    total *= kept
    for asked, share in wider.items():
        total += min(share, _WIDER_MAX * weights[asked] / (1 + damping))
    return total


def _window(sketch: Sketch, counted: Mapping[str, Counts], placed: Placed, coherence: float) -> tuple[Counts, float]:
    """The term counts and the length of a text with its neighbours, which are weighted by nearness."""
    counts, length = counted[sketch.id], float(sketch.length)
    session, window = sketch.session, None
    if not placed or not session or length > SELF_CONTAINED:
        return counts, length
    for step in (-1, 1):
        gap = sketch.length / 2
        for turn in range(sketch.turn + step, sketch.turn + step * (HOPS + 1), step):
            neighbour = placed.get((session, turn))
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


def _meaning(sketch: Sketch, meanings: Mapping[str, float], placed: Placed, coherence: float) -> float:
    """The cosine of a text and, in a conversation, of the turns around it."""
    total, weight = meanings.get(sketch.id, 0.0), 1.0
    for step, share in _NEIGHBOUR_SHARES.items() if placed and sketch.session else ():
        neighbour = placed.get((sketch.session, sketch.turn + step))
        if neighbour is not None and neighbour.id in meanings:
            total += coherence * share * meanings[neighbour.id]
            weight += coherence * share * _ALIKE
    return total / weight


def _session_scores(candidates: Sequence[Sketch], counted: Mapping[str, Counts], weights: Weights) -> dict[str, float]:
    """The BM25 score of each session. A term's count is the number of the session's candidates that have it."""
    by_session: dict[str, Counts] = {}
    for sketch in candidates:
        if sketch.session:
            counts = by_session.setdefault(sketch.session, {})
            for number in counted[sketch.id]:
                counts[number] = counts.get(number, 0.0) + 1.0
    return {session: _bm25(counts, weights, 1.0) for session, counts in by_session.items()}


def _add_bonuses(bonuses: Bonuses, sketch: Sketch, question: Question, own_session: str | None) -> None:
    if sketch.speaker and question.speakers.issuperset(sketch.speaker.split()):
        bonuses["speaker"] = _SPEAKER_BONUS
    if question.dates:
        on = instant(sketch.occurred_at).date()
        fit = max(date.fit(on) for date in question.dates)
        if fit:
            bonuses["date"] = _DATE_BONUS * fit
    if own_session is not None and sketch.session == own_session:
        bonuses["own_session"] = _OWN_SESSION_BONUS
    if question.intent.kinds and sketch.kind.partition(".")[0] in question.intent.kinds:
        bonuses["intent"] = _INTENT_BONUS


def reciprocal_ranks(values: Sequence[float]) -> list[float]:
    """1 / (60 + rank) for each value (M3). Equal values share a rank, and 0 stays 0."""
    ranks: dict[float, int] = {}
    for value in sorted((value for value in values if value > 0), reverse=True):
        ranks.setdefault(value, len(ranks) + 1)
    return [1 / (_DAMPING + ranks[value]) if value > 0 else 0.0 for value in values]


def tier_of(kind: str, state: str) -> int:
    """The tier of a search result (R2): trusted, kept by the program itself, or a hypothesis.

    A decision is one result among others here; `binding` lists those that bind.
    """
    if state in _KNOWN_STATES:
        return TIER_FOUND
    return TIER_KEPT if kind in _KEPT_KINDS or kind.endswith(".kept") else TIER_HYPOTHESIS


def ranked(relevances: Sequence[Relevance], now_micros: int, rules: RecallRules) -> list[Relevance]:
    """The candidates with their ranks set, ordered by tier (R2), score and id."""
    best = max((relevance.total for relevance in relevances), default=0.0) or 1.0
    half_life_micros = rules.half_life_hours * _MICROS_AN_HOUR
    for relevance in relevances:
        sketch = relevance.sketch
        age = max(0, now_micros - sketch.occurred_at)
        recency = rules.weight_recency * 0.5 ** (age / half_life_micros)
        relevance.rank(rules.weight_similarity / best, recency, rules.weight_importance * sketch.importance)
    return in_order(relevances)


def in_order(relevances: Iterable[Relevance]) -> list[Relevance]:
    return sorted(relevances, key=lambda it: (it.tier, -it.score, it.sketch.id))


def without_question(unit: Unit, now: datetime, rules: RecallRules, trust: TrustRules) -> Recalled:
    """A unit for an empty question, scored by recency and importance alone."""
    age_hours = max(0.0, (now - unit.occurred_at).total_seconds() / 3600)
    why = {
        "similarity": 0.0,
        "recency": rules.weight_recency * 0.5 ** (age_hours / rules.half_life_hours),
        "importance": rules.weight_importance * unit.importance * confidence_at(unit.trust, now, trust),
    }
    kind = search_kind(str(unit.kind), unit.attributes)
    tier = tier_of(kind, TRUSTED_STATE if unit.status in TRUSTED else DRAFT_STATE)
    return Recalled(unit=unit, score=sum(why.values()), tier=tier, why=why, label="")


# How likely the memory is to answer a question, by how much of it the best texts contain

_LOOKED_AT = 10
# The weights were fitted on half of the questions of two public sets and our own, with and without an answer. Each set
# weighs the same. They were checked on the other half (bench/retrieval/silence).
_BIAS = -4.95
_OF_COVERED = 0.2
_OF_STRENGTH = 5.1
_OF_WORDS = 2.1
# In a large memory some text contains the words of any question. Memories below the minimum were not measured.
_OF_DOCUMENTS = -0.41
_DOCUMENTS_MIN = 30
_OF_MEANING = 6.1


def fit_of(
    relevances: Sequence[Relevance],
    terms: Sequence[Term],
    documents: int,
    meanings: Mapping[str, float],
    noise: float,
) -> float:
    """The probability, from 0 to 1, that one of the best candidates is an answer.

    It rises with the share of the question that one text and its neighbours contain, with the strength of that match,
    and with the number of words asked. With vectors, it also rises with the distance of the nearest text's cosine from
    `noise`, the cosine of unrelated texts.
    """
    asked = sum([term.is_asked for term in terms])
    best = sorted(relevances, key=lambda relevance: relevance.score, reverse=True)[:_LOOKED_AT]
    if not asked or not best:
        return 0.0
    sign = _BIAS + _OF_WORDS * log(asked) + _OF_DOCUMENTS * log(max(_DOCUMENTS_MIN, documents))
    sign += _OF_COVERED * max(relevance.covered for relevance in best)
    sign += _OF_STRENGTH * max(relevance.strength for relevance in best)
    if meanings:
        sign += _OF_MEANING * (max(meanings.values()) - noise)
    return 1 / (1 + exp(-sign))

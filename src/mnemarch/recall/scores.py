"""Scores and orders candidates by words, neighbours, session, speaker and date, and tells how likely one answers.

Order is by tier (R10), then by score within a tier (M4). Pure. bench/retrieval measures what each part gains;
docs/explanation/recall.md gives the reasons.
"""

from __future__ import annotations

from math import ceil, exp, log

from mnemarch.model.search import Recalled
from mnemarch.model.stamps import instant
from mnemarch.model.unit import DRAFT_STATE, REPLACED_STATE, TRUSTED, TRUSTED_STATE, search_kind
from mnemarch.policy.kinds import TIER_FOUND, TIER_HYPOTHESIS, TIER_KEPT
from mnemarch.policy.trust import confidence_at
from mnemarch.recall.question import HANGUL, TurnBonuses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from mnemarch.config import RecallRules
    from mnemarch.model.search import Sketch
    from mnemarch.model.unit import Unit
    from mnemarch.policy.trust import TrustRules
    from mnemarch.recall.question import Question

    # How often each term of the question occurs, by its number. Terms that don't occur are absent.
    Counts = dict[int, float]
    Bonuses = dict[str, float]
    # The texts of one session by turn.
    Turns = dict[int, "Relevance"]

_K1 = 1.2
_B = 0.9
# Usual lengths, in search words. Texts are compared with these and not with the mean of the store, so that a memory of
# long texts ranks like one of short texts.
_TEXT_LENGTH = 40
_WINDOW_LENGTH = 80
# A neighbour's words count less with distance: they fall e-fold over _REACH words and end after HOPS turns. Short turns
# gain most from neighbours. Turns longer than SELF_CONTAINED words use none.
# _NEARNESS is by twice the number of words between the middles of both texts, down to _FAINT.
_REACH = 30.0
HOPS = 3
_FAINT = 0.05
_NEARNESS = [exp(-twice / 2 / _REACH) for twice in range(ceil(2 * _REACH * log(1 / _FAINT)))]
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
_MICROS_AN_HOUR = 3_600_000_000
_NO_MEANINGS: Mapping[str, float] = {}
_NO_TURNS: Turns = {}


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
    """One candidate: how often it has each term, its scores and its bonuses. `rank` adds its axes, score and tier.

    `own` and `alone` score its words by the usual length of a text and of a window. `window` includes its neighbours.
    `covered` is the share of the question that its window contains. `total` and its parts are relative to the best text
    by words, and `strength` is relative to the question's total weight.
    """

    __slots__ = (
        *("alone", "bonuses", "counts", "covered", "importance", "lexical", "neighbours", "own", "recency", "score"),
        *("session", "sketch", "strength", "tier", "total", "weight", "window"),
    )

    def __init__(self, sketch: Sketch, numbers: Mapping[str, int]) -> None:
        self.sketch = sketch
        self.counts = _counts(sketch, numbers)
        self.own = self.window = self.alone = self.session = self.covered = 0.0

    def score_words(self, weights: Weights, turns: Turns, coherence: float) -> None:
        """Set the scores by words. Beside a model, a lower share of the question lowers all but `alone`."""
        counts, length = self.counts, self.sketch.length
        seen, seen_length = _window(self, turns, coherence) if len(turns) > 1 else (counts, length)
        if not seen:
            return
        shares = [weights.asked_weights[number] * (count if count < 1.0 else 1.0) for number, count in seen.items()]
        self.covered = sum(shares) / weights.asked_total
        kept = 1 - weights.seen_by_model * (1 - self.covered)
        self.own = _bm25(counts, weights, length / _TEXT_LENGTH, kept)
        self.window = self.alone = _bm25(seen, weights, seen_length / _WINDOW_LENGTH, kept)
        if seen is not counts or weights.seen_by_model:
            self.alone = _bm25(counts, weights, length / _WINDOW_LENGTH)

    def scale(
        self, best: float, lexical: float, near: float, session: float, bonuses: Bonuses, strength: float
    ) -> None:
        """Set the strength, and the total and its parts relative to the best score by words."""
        self.strength = strength
        self.lexical, self.neighbours, self.session = lexical / best, near / best, session / best
        self.bonuses = bonuses
        self.total = self.lexical + self.neighbours + self.session + sum(bonuses.values())

    def rank(self, weight: float, recency: float, importance: float) -> None:
        """Set the axes of M4, the score and the tier. `weight` is the weight of the similarity."""
        self.weight, self.recency, self.importance = weight, recency, importance
        self.score = weight * self.total + recency + importance
        self.tier = tier_of(self.sketch.kind, self.sketch.state)

    def trust(self, confidence: float) -> None:
        """Scale the importance by the unit's trust (R7)."""
        self.rank(self.weight, self.recency, self.importance * confidence)

    @property
    def shares(self) -> dict[str, float]:
        """The share of each nonzero signal. They add up to the total."""
        signals = {"lexical": self.lexical, "neighbours": self.neighbours, "session": self.session, **self.bonuses}
        return {name: share for name, share in signals.items() if share}

    @property
    def why(self) -> dict[str, float]:
        """The share of each axis in the score, and of each signal in the similarity."""
        axes = {"similarity": self.weight * self.total, "recency": self.recency, "importance": self.importance}
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
    """The relevance of each candidate and each neighbour, unordered. `noise` is the cosine of unrelated texts."""
    # A word of several terms counts for the first, which was asked.
    numbers = {word: number for number, term in reversed([*enumerate(terms)]) for word in term.words}
    pool = {sketch.id: Relevance(sketch, numbers) for sketch in (*around, *candidates)}
    coherence = coherence if rules.neighbours else 0.0
    weights = Weights(terms, 1 - coherence if meanings else 0.0)
    sessions: dict[str, Turns] = {}
    for text in pool.values() if coherence else ():
        if text.sketch.session:
            sessions.setdefault(text.sketch.session, {})[text.sketch.turn] = text
    for text in pool.values():
        text.score_words(weights, sessions.get(text.sketch.session, _NO_TURNS), coherence)
    if rules.sessions:
        _score_sessions(sessions, pool.keys() - {sketch.id for sketch in around}, weights)
    strongest = max([text.own + _WINDOW_WEIGHT * text.window for text in pool.values()], default=0.0) or 1.0
    if rules.fusion == "rrf":
        _rank_scores([*pool.values()])
    by_words = [text.own + _WINDOW_WEIGHT * text.window + coherence * text.session for text in pool.values()]
    best = max(by_words, default=0.0) or 1.0
    said_wholly = weights.asked_total * (1 + _WINDOW_WEIGHT) / strongest
    meaning_weight = coherence * _MEANING_WEIGHT_OF_TURNS + (1 - coherence) * _MEANING_WEIGHT * said_wholly
    turn_bonuses = TurnBonuses(question, coherence if rules.turns else 0.0)
    results = []
    for id, text in pool.items():
        sketch = text.sketch
        # The window contains the text itself. The rest is the neighbours' share.
        near = _WINDOW_WEIGHT * (text.window - text.alone) if text.window > text.alone else 0.0
        lexical = text.own + _WINDOW_WEIGHT * text.window - near
        if lexical and not weights.is_enough(text.counts):
            lexical = 0.0
        bonuses: Bonuses = {}
        is_found = lexical or near or text.session
        if meanings and (is_found or meanings.get(id, 0.0) > noise):
            apart = _OTHER_LANGUAGE_COSINE * (question.is_korean != (HANGUL in sketch.words))
            if (nearness := _meaning(sketch, meanings, sessions, coherence) - apart) > 0:
                bonuses["meaning"] = meaning_weight * nearness
        if id in nominated:
            bonuses["asked"] = _NOMINATED_WEIGHT * nominated[id]
        if is_found or bonuses:
            if coherence:
                bonuses["coverage"] = coherence * _COVERAGE_WEIGHT * text.covered
                bonuses["turn"] = turn_bonuses[sketch.speaker, sketch.signs, sketch.turn == 1]
            _add_bonuses(bonuses, sketch, question, own_session)
            strength = text.alone if weights.seen_by_model else (lexical + near) / (1 + _WINDOW_WEIGHT)
            text.scale(best, lexical, near, coherence * text.session, bonuses, strength / weights.asked_total)
            results.append(text)
    return results


def _counts(sketch: Sketch, numbers: Mapping[str, int]) -> Counts:
    """How often a text has each term, in the order of the terms, so that sums are equal in every process."""
    words = sketch.words.split()
    found = sorted([numbers[word] for word in words if word in numbers])
    counts = dict.fromkeys(found, 1.0)
    if len(counts) < len(found) or " :" in sketch.words:
        counts = dict.fromkeys(found, 0.0)
        for word in numbers.keys() & words:
            counts[numbers[word]] += sketch.count(f" {word} ")
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

    def is_enough(self, counts: Counts) -> bool:
        """Whether a text with these terms says a word that was asked, which come first, or related words enough."""
        return next(iter(counts)) < self.asked or sum([self.shares[number] for number in counts]) >= _WIDER_MIN


def _bm25(counts: Counts, terms: Weights, relative_length: float, kept: float = 1.0) -> float:
    """The BM25 score of a text. Asked words count by the factor `kept`, and related words less than the asked one."""
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


def _window(text: Relevance, turns: Turns, coherence: float) -> tuple[Counts, float]:
    """The term counts and the length of a text with its neighbours, which are weighted by nearness."""
    seen, turn, length = text.counts, text.sketch.turn, text.sketch.length
    total_length = float(length)
    for step in (-1, 1) if length <= SELF_CONTAINED else ():
        # Twice the number of words between the middles of both texts.
        distance = length
        for at in range(turn + step, turn + step * (HOPS + 1), step):
            neighbour = turns.get(at)
            if neighbour is None:
                break
            distance += neighbour.sketch.length
            if distance >= len(_NEARNESS):
                break
            nearness = coherence * _NEARNESS[distance]
            distance += neighbour.sketch.length
            total_length += nearness * neighbour.sketch.length
            if neighbour.counts and seen is text.counts:
                seen = dict(seen)
            for number, count in neighbour.counts.items():
                seen[number] = seen.get(number, 0.0) + nearness * count
    return seen, total_length


def _meaning(sketch: Sketch, meanings: Mapping[str, float], sessions: Mapping[str, Turns], coherence: float) -> float:
    """The cosine of a text and, in a conversation, of the turns around it."""
    total, weight, turns = meanings.get(sketch.id, 0.0), 1.0, sessions.get(sketch.session, _NO_TURNS)
    for step, share in _NEIGHBOUR_SHARES.items() if len(turns) > 1 else ():
        neighbour = turns.get(sketch.turn + step)
        if neighbour is not None and neighbour.sketch.id in meanings:
            total += coherence * share * meanings[neighbour.sketch.id]
            weight += coherence * share * _ALIKE
    return total / weight


def _score_sessions(sessions: Mapping[str, Turns], found: Collection[str], weights: Weights) -> None:
    """Set the BM25 score of each text's session. A term's count is the number of texts in `found` that have it."""
    for turns in sessions.values():
        counts: Counts = {}
        for text in turns.values():
            for number in text.counts if text.sketch.id in found else ():
                counts[number] = counts.get(number, 0.0) + 1.0
        score = _bm25(counts, weights, 1.0)
        for text in turns.values():
            text.session = score


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


def _rank_scores(texts: Sequence[Relevance]) -> None:
    """Replace each score by words by its reciprocal rank."""
    for name in ("own", "window", "alone", "session"):
        for text, rank in zip(texts, reciprocal_ranks([getattr(text, name) for text in texts]), strict=True):
            setattr(text, name, rank)


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

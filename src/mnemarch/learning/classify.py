"""Classifies texts into buckets (M1, M2): by rules, by another classifier, or by both."""

from __future__ import annotations

from functools import cache
from unicodedata import normalize

from mnemarch.errors import AnalystFailed, MnemarchError
from mnemarch.model.value import Frozen, Names
from mnemarch.text.cache import pattern
from mnemarch.text.english import irregular_forms
from mnemarch.text.words import STOP_WORDS, Patterns, grouped, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Protocol
else:
    Protocol = object  # `typing` is slow to import, and a hook classifies each prompt.


class Bucket(Names):
    """The five buckets of M1; LEFT_OUT is for acknowledgements, greetings and requests for now."""

    PROFILE = "PROFILE"
    PREFERENCE = "PREFERENCE"
    EPISODIC = "EPISODIC"
    SEMANTIC = "SEMANTIC"
    FACT = "FACT"
    LEFT_OUT = "LEFT_OUT"


class MemoryEvent(Frozen):
    """Something that was said or happened. `source` is what it came from: user, assistant, tool, commit, ..."""

    text: str
    source: str = "user"
    data: Mapping[str, Any] = {}


class Classified(Frozen):
    """The bucket of an event, how sure that is (0 to 1), and why in a few words."""

    bucket: Bucket
    confidence: float
    why: str


class Classifier(Protocol):
    """Says which bucket an event belongs to. It may raise `MnemarchError` (`AnalystFailed`, say) when it can't."""

    def classify(self, event: MemoryEvent) -> Classified: ...


# Only the beginning of a long text is read.
_READ_CHARS_MAX = 4_000
_CLAUSES = r"(?<=[.!?。？！…])\s+|\n+|;\s+"
_CODE = r"(?m)```(?s:.*?)(?:```|\Z)|^[ \t]*>.*$"
_WORD = r"[^\W_][\w'-]*"
# The word lists are in data/buckets.txt.
_FILE = "buckets"
_RULES_FILE, _USER = "rules-file", "user"
_PATTERNS = Patterns(_FILE, "moods", "signs", "importance")
# An imperative by an assistant is advice, not a request.
_MOODS = {"assistant": ("question", "announcement", "plan")}
_MOODS_OF_OTHERS = ("question", "announcement", "request")
_ASSERTED = 1.0
_PAST = 1.5
_HEARSAY = 2.5
_LASTS = 2.0
_OPENING_CHARS = 80
# The lead over the second bucket at which the confidence is 1.
_MARGIN_MAX = 5.0
_NOTHING_ASSERTED = 0.8
# The reason for a text that only asks. It states nothing, but shows what somebody was looking for.
ASKED = "only asks"
# The reasons for a hedged wish and for somebody else's wish: both are history, not preferences.
CONSIDERED, REPORTED = "only considers it", "says what somebody else wants"
_BE = frozenset({"is", "are", "be", "being", "am", "get", "gets", "it's", "that's", "isn't", "aren't", "not"})
_PAST_WORDS = frozenset({"was", "were", "had", "did", "didn't", "wasn't"})
_ED_CHARS_MIN = 5
_FINAL_SS = "\u11bb"
# Syllables that end like the past tense but are not: 있 (there is), 없 (there is not), 겠 (will).
_NO_PAST = frozenset("있없겠")
_IMPORTANCE = {
    Bucket.PREFERENCE: 0.7,
    Bucket.SEMANTIC: 0.7,
    Bucket.PROFILE: 0.6,
    Bucket.FACT: 0.5,
    Bucket.EPISODIC: 0.4,
    Bucket.LEFT_OUT: 0.0,
}
_IMPORTANCE_MIN, _IMPORTANCE_OF_QUESTIONS = 0.2, 0.1


class RuleBasedClassifier:
    """Classifies by the source and by the words of assertions, in English and Korean."""

    def classify(self, event: MemoryEvent) -> Classified:
        weights = dict.fromkeys(Bucket, 0.0)
        why: dict[Bucket, list[str]] = {bucket: [] for bucket in Bucket}
        moods = []
        signs = [(bucket, weight, f"from {event.source}") for bucket, weight in _sources().get(event.source, ())]
        for clause in clauses_of(event.text):
            mood = _mood(clause, event.source)
            moods.append(mood)
            # A rule in a file is never "only for now".
            signs += [sign for sign in _signs(clause, mood) if sign[1] > 0 or event.source != _RULES_FILE]
        for bucket, weight, name in signs:
            weights[bucket] += weight
            if weight > 0:
                why[bucket].append(name)
        first, second = sorted(weights, key=lambda bucket: -weights[bucket])[:2]
        if weights[first] <= 0:
            only_asks = "question" in moods
            bucket = Bucket.EPISODIC if only_asks else Bucket.LEFT_OUT
            return Classified(bucket, _NOTHING_ASSERTED, ASKED if only_asks else _NO_CLAIM["".join(moods[-1:])])
        margin = min(_MARGIN_MAX, weights[first] - max(0.0, weights[second]))
        return Classified(first, 0.5 + margin / _MARGIN_MAX / 2, ", ".join(dict.fromkeys(why[first])))


_NO_CLAIM = {
    "": "only code or quotes",
    "courtesy": "an acknowledgement or a greeting",
    "announcement": "says what comes next",
    "plan": "says what comes next",
    "request": "a request for now",
}


def clauses_of(text: str) -> list[str]:
    """The clauses of a text, without code blocks and quoted lines."""
    read = without_telling(pattern(_CODE).sub("\n", text[:_READ_CHARS_MAX]).replace("\u2019", "'"))
    return [clause for part in pattern(_CLAUSES).split(read) if (clause := part.strip(" \t-*#"))]


def without_telling(text: str) -> str:
    """A text without words that ask to remember the rest: "Remember that", "... 기억해줘"."""
    return _PATTERNS["told in korean"].sub("다", _PATTERNS["told to remember"].sub("", text))


def standing_wishes(text: str) -> str:
    """The clauses of a text that state a preference."""
    wishes = [_wish_in(clause) for clause in clauses_of(text) if _is_wish(clause)]
    # A semicolon separates wishes that end without a punctuation mark.
    ended = [wish if not wish[-1:].isalnum() else f"{wish};" for wish in wishes[:-1]]
    return " ".join([*ended, *wishes[-1:]])


def without_requests(text: str) -> str:
    """The text without clauses that only ask for something now, or are polite."""
    left = text
    for clause in clauses_of(text):
        if _mood(clause, _USER) in {"request", "courtesy"} and not _is_wish(clause):
            left = left.replace(f"{clause} " if f"{clause} " in left else clause, "", 1).strip()
    return left or text


def _is_wish(text: str) -> bool:
    mood = "request" if _mood(text, _USER) == "request" else ""
    return sum(weight for bucket, weight, _ in _signs(text, mood) if bucket is Bucket.PREFERENCE) > 0


def _wish_in(clause: str) -> str:
    """The wish in a clause, without its opening words and without requests beside it."""
    ends = [0, *(place for found in _PATTERNS["next part"].finditer(clause.lower()) for place in found.span())]
    parts = [clause[first:last] for first, last in zip(ends[::2], [*ends[1::2], None], strict=True)]
    wishes = [part for part in parts if _is_wish(part)]
    wish = ", ".join(wishes) if 0 < len(wishes) < len(parts) else clause
    opening = _PATTERNS["opening"].match(wish.lower())
    return wish if opening is None else wish[opening.end() :]


def is_courtesy(text: str) -> bool:
    """Whether a text is made of thanks, greetings and acknowledgements alone."""
    words = pattern(_WORD).findall(text[:_READ_CHARS_MAX].replace("\u2019", "'").lower())
    return _listed("courtesies").issuperset(words)


def importance_of(text: str, classified: Classified) -> float:
    """The rank of a text in its bucket (R22); it decides nothing else."""
    if classified.why == ASKED:
        return _IMPORTANCE_OF_QUESTIONS
    base = _IMPORTANCE[classified.bucket]
    if not base:
        return base
    lowered = text[:_READ_CHARS_MAX].lower()
    rows = [row for row in _PATTERNS.sources if row[0] in "-0"]
    raised = base + sum(float(row.split()[0]) for row in rows if _PATTERNS[row].search(lowered))
    return round(min(1.0, max(_IMPORTANCE_MIN, raised)), 2)


def is_others_words(source: str) -> bool:
    """Whether the text is not by the person who hands it in."""
    return source in _listed("others' words")


def is_log_only(source: str) -> bool:
    """Whether a machine wrote the text: it stays in the log, and its task's episode mentions it."""
    return source in _listed("log only")


def _mood(clause: str, source: str) -> str:
    """The mood of a clause: courtesy, question, announcement, plan, request, or "" for an assertion."""
    if is_courtesy(clause):
        return "courtesy"
    lowered = clause.lower()
    moods = _MOODS.get(source, _MOODS_OF_OTHERS)
    mood = next((mood for mood in moods if _PATTERNS[mood].search(lowered)), "")
    if mood == "question":
        return "" if _PATTERNS["told before asking"].search(lowered) else mood
    if not mood and source != "assistant" and (_is_order(lowered) or _PATTERNS["korean order"].search(lowered)):
        return "request"
    return "" if mood == "request" and _PATTERNS["no request"].match(lowered) else mood


def _is_order(lowered: str) -> bool:
    """Whether a clause begins with a word that can only be a verb there: "Raise the timeout"."""
    opener = _PATTERNS["opener"].match(lowered)
    words = pattern(_WORD).findall(lowered[opener.end() if opener else 0 :][:_OPENING_CHARS])[:2]
    if len(words) < 2 or not _PATTERNS["determiner"].fullmatch(words[1]):
        return False
    first = words[0]
    is_other_form = first.endswith(("ed", "ing", "ly", "n't")) or (first.endswith("s") and not first.endswith("ss"))
    is_past = irregular_forms().get(first, first) != first
    return first.isascii() and not (is_other_form or is_past or first in STOP_WORDS or first in _listed("no orders"))


def _signs(clause: str, mood: str) -> list[tuple[Bucket, float, str]]:
    """The signs in a clause. An assertion gives all, a request only those of a lasting wish, any other mood none."""
    if mood and mood != "request":
        return []
    signs = _signs_in(clause.lower())
    if any(name in {CONSIDERED, REPORTED} for _, _, name in signs):
        return signs
    if mood:
        lasting = _PATTERNS["lasting request"].search(clause.lower())
        signs += [(Bucket.PREFERENCE, _LASTS, "asks for it each time")] if lasting else []
        return [sign for sign in signs if sign[0] is Bucket.PREFERENCE]
    return [*signs, (Bucket.FACT, _ASSERTED, "says that something is so")]


def _signs_in(lowered: str) -> list[tuple[Bucket, float, str]]:
    unquoted = _PATTERNS["quoted"].sub("", lowered)
    own = unquoted if pattern(_WORD).search(unquoted) else lowered
    signs = [(bucket, weight, name) for bucket, weight, name, row in _table() if _PATTERNS[row].search(own)]
    if _PATTERNS["no wish"].search(own):
        signs = [sign for sign in signs if sign[0] is not Bucket.PREFERENCE]
    if any(sign[0] is Bucket.PREFERENCE for sign in signs) or _PATTERNS["says how it should be"].search(lowered):
        why = REPORTED if _PATTERNS["reported"].search(lowered) else None
        why = CONSIDERED if _PATTERNS["hedged"].search(lowered) else why
        if why is not None:
            return [(Bucket.EPISODIC, _HEARSAY, why)]
    is_plain = {bucket for bucket, _, _ in signs} <= {Bucket.FACT, Bucket.PROFILE}
    if is_plain and _PATTERNS["not claimed"].search(lowered):
        return [(Bucket.EPISODIC, _HEARSAY, CONSIDERED)]
    return [*signs, (Bucket.EPISODIC, _PAST, "tells of the past")] if _is_past(lowered) else signs


@cache
def _table() -> list[tuple[Bucket, float, str, str]]:
    """Each sign: its bucket, its weight, its name, and the whole name of its pattern."""
    rows = [row.split(None, 2) for row in _PATTERNS.sources if row.split()[0] in list(Bucket)]
    return [(Bucket(bucket), float(weight), name, f"{bucket} {weight} {name}") for bucket, weight, name in rows]


@cache
def _listed(section: str) -> frozenset[str]:
    return frozenset(listed(_FILE, section))


@cache
def _sources() -> dict[str, list[tuple[Bucket, float]]]:
    """The weight that each source adds to each bucket."""
    return {
        source: [(Bucket(name := word.rstrip("+-.0123456789")), float(word.removeprefix(name))) for word in words]
        for source, words in grouped(_FILE, "sources").items()
    }


def _is_past(lowered: str) -> bool:
    words = pattern(_WORD).findall(lowered)
    if any("가" <= word[-1] <= "힣" for word in words):
        return any(map(_is_korean_past, words))
    pasts = (at for at, word in enumerate(words) if _is_english_past(word))
    return any(not _BE.intersection(words[max(0, at - 2) : at]) for at in pasts)


def _is_english_past(word: str) -> bool:
    is_regular = word.endswith("ed") and len(word) >= _ED_CHARS_MIN
    is_irregular = not word.endswith(("s", "ing")) and irregular_forms().get(word, word) != word
    return is_regular or is_irregular or word in _PAST_WORDS


def _is_korean_past(word: str) -> bool:
    """Whether a syllable ends in ㅆ, as of 했다, 고쳤어요, 썼음."""
    return any(normalize("NFD", char)[-1] == _FINAL_SS for char in word if char not in _NO_PAST)


class HybridClassifier:
    """Asks the other classifier only when the rules are unsure; if it fails, the rules decide.

    A classifier that is unreachable, or out of budget, is not asked again.
    """

    def __init__(self, rules: Classifier, other: Classifier, *, sure_min: float = 0.7) -> None:
        self._rules, self._other, self._sure_min = rules, other, sure_min
        self._is_away = False

    def classify(self, event: MemoryEvent) -> Classified:
        by_rules = self._rules.classify(event)
        if by_rules.confidence >= self._sure_min or self._is_away:
            return by_rules
        try:
            return self._other.classify(event)
        except MnemarchError as error:
            self._is_away = isinstance(error, AnalystFailed) and error.is_away
            why = f"{by_rules.why}; the other classifier failed: {error.message}"
            return Classified(by_rules.bucket, by_rules.confidence, why)

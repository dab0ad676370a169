"""Which bucket a text belongs to (M1, M2): by rules, by another classifier, or by both."""

from __future__ import annotations

from functools import cache

from mnemarch.errors import MnemarchError
from mnemarch.model.closed import Names
from mnemarch.model.value import value
from mnemarch.text.cache import pattern
from mnemarch.text.english import irregular_forms
from mnemarch.text.words import Patterns, grouped, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Protocol
else:
    Protocol = object  # `typing` is slow to import, and a hook classifies each prompt.


class Bucket(Names):
    """The five buckets of M1, and what is not remembered: an acknowledgement, a greeting, a request for now."""

    PROFILE = "PROFILE"
    PREFERENCE = "PREFERENCE"
    EPISODIC = "EPISODIC"
    SEMANTIC = "SEMANTIC"
    FACT = "FACT"
    LEFT_OUT = "LEFT_OUT"


@value
class MemoryEvent:
    """Something that was said or happened. `source` is what it came from: user, assistant, tool, commit, ..."""

    text: str
    source: str = "user"
    data: Mapping[str, Any] = {}


@value
class Classified:
    """The bucket of an event, how sure that is (0 to 1), and why in a few words."""

    bucket: Bucket
    confidence: float
    why: str


class Classifier(Protocol):
    """Says which bucket an event belongs to. It may raise `MnemarchError` (`AnalystFailed`, say) when it can't."""

    def classify(self, event: MemoryEvent) -> Classified: ...


# What decides stands early in a text; the rest of a long one is not read.
_READ_CHARS_MAX = 4_000
_CLAUSES = r"(?<=[.!?。？！…])\s+|\n+|;\s+"
_CODE = r"(?s)```.*?(?:```|\Z)|(?m:^\s*>.*$)"
_WORD = r"[^\W_][\w'’-]*"
_AN_ASSERTION = 1.0
_PAST = 1.5
_SURE = 5.0
_NOTHING_ASSERTED = 0.8
# Why a text that only asks is history: nothing in it is so, and yet it tells what somebody was after.
ASKED = "only asks"
_BE = frozenset({"is", "are", "be", "being", "am", "get", "gets", "it's", "that's", "isn't", "aren't", "not"})
_ED_CHARS_MIN = 5
_FINAL_SS, _FINALS, _FIRST = 20, 28, 0xAC00
# They end like a past and are none: there is, will, is not there.
_NO_PAST = frozenset("있겠없")


class RuleBasedClassifier:
    """By the source first, and by words on what is asserted second; English and Korean."""

    def classify(self, event: MemoryEvent) -> Classified:
        weights = dict.fromkeys(Bucket, 0.0)
        why: dict[Bucket, list[str]] = {bucket: [] for bucket in Bucket}
        for bucket, weight in _sources().get(event.source, ()):
            weights[bucket] += weight
            if weight > 0:
                why[bucket].append(f"from {event.source}")
        moods = []
        for clause in clauses_of(event.text):
            signs = _signs_in(clause)
            mood = mood_of(clause, event.source)
            is_standing = mood == "request" and any(bucket is Bucket.PREFERENCE for bucket, _, _ in signs)
            moods.append("standing request" if is_standing else mood)
            if is_standing:
                signs = [sign for sign in signs if sign[0] is Bucket.PREFERENCE]
            elif mood:
                continue
            else:
                signs.append((Bucket.FACT, _AN_ASSERTION, "says that something is so"))
            for bucket, weight, name in signs:
                weights[bucket] += weight
                why[bucket].append(name)
        return _verdict(weights, why, moods)


def _verdict(weights: dict[Bucket, float], why: dict[Bucket, list[str]], moods: list[str]) -> Classified:
    first, second = sorted(weights, key=lambda bucket: -weights[bucket])[:2]
    if weights[first] <= 0 and "question" in moods:
        return Classified(Bucket.EPISODIC, _NOTHING_ASSERTED, ASKED)
    if weights[first] <= 0:
        return Classified(Bucket.LEFT_OUT, _NOTHING_ASSERTED, moods[-1] if moods else "nothing said")
    margin = weights[first] - max(0.0, weights[second])
    return Classified(first, min(1.0, 0.5 + margin / _SURE / 2), ", ".join(dict.fromkeys(why[first])))


def clauses_of(text: str) -> list[str]:
    """The clauses of a text in lower case, without code blocks and quoted lines."""
    read = pattern(_CODE).sub("\n", text[:_READ_CHARS_MAX]).replace("\u2019", "'").lower()
    return [clause for part in pattern(_CLAUSES).split(read) if (clause := part.strip(" \t-*#"))]


def is_courtesy(text: str) -> bool:
    """Whether a text is made of thanks, greetings and acknowledgements alone."""
    words = pattern(_WORD).findall(text[:_READ_CHARS_MAX].replace("\u2019", "'").lower())
    return all(word in _courtesies() for word in words)


def mood_of(clause: str, source: str) -> str:
    """What a clause does other than to assert: courtesy, question, announcement, request; or "" if it asserts."""
    if is_courtesy(clause):
        return "courtesy"
    moods = ("question", "announcement", "plan", "request") if source == "assistant" else _MOODS_OF_USER
    mood = next((mood for mood in moods if _PATTERNS[mood].search(clause)), "")
    return "" if mood == "question" and _PATTERNS["told before asking"].search(clause) else mood


_MOODS_OF_USER = ("question", "announcement", "request")
_PATTERNS = Patterns("buckets", "moods", "signs")


@cache
def _signs() -> tuple[tuple[Bucket, float, str, str], ...]:
    """Each sign: its bucket, its weight, its name, and the name of its pattern."""
    rows = [name for name in _PATTERNS.sources if name.split()[0] in list(Bucket)]
    return tuple((Bucket(row.split()[0]), float(row.split()[1]), row.split(None, 2)[2], row) for row in rows)


@cache
def _courtesies() -> frozenset[str]:
    return frozenset(listed("buckets", "courtesies"))


@cache
def _sources() -> dict[str, list[tuple[Bucket, float]]]:
    table = grouped("buckets", "sources")
    return {
        source: [
            (Bucket(word.rstrip("+-.0123456789")), float(word.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))) for word in words
        ]
        for source, words in table.items()
    }


def _signs_in(clause: str) -> list[tuple[Bucket, float, str]]:
    found = [(bucket, weight, name) for bucket, weight, name, row in _signs() if _PATTERNS[row].search(clause)]
    if _is_past(clause):
        found.append((Bucket.EPISODIC, _PAST, "tells of the past"))
    return found


def _is_past(clause: str) -> bool:
    words = pattern(_WORD).findall(clause)
    if any("가" <= word[-1] <= "힣" for word in words):
        return any(map(_is_korean_past, words))
    pasts = (at for at, word in enumerate(words) if _is_english_past(word))
    return any(not _BE.intersection(words[max(0, at - 2) : at]) for at in pasts)


def _is_english_past(word: str) -> bool:
    if word in ("was", "were", "had", "did", "didn't", "wasn't"):
        return True
    return (word.endswith("ed") and len(word) >= _ED_CHARS_MIN) or irregular_forms().get(word, word) != word


def _is_korean_past(word: str) -> bool:
    return any(
        "가" <= char <= "힣" and (ord(char) - _FIRST) % _FINALS == _FINAL_SS and char not in _NO_PAST for char in word
    )


class HybridClassifier:
    """Asks the rules first and another classifier when they are unsure; if that one fails, the rules stand."""

    def __init__(self, rules: Classifier, other: Classifier, *, sure_min: float = 0.7) -> None:
        self._rules, self._other, self._sure_min = rules, other, sure_min

    def classify(self, event: MemoryEvent) -> Classified:
        by_rules = self._rules.classify(event)
        if by_rules.confidence >= self._sure_min:
            return by_rules
        try:
            return self._other.classify(event)
        except MnemarchError as error:
            why = f"{by_rules.why}; the other classifier failed: {error.message}"
            return Classified(by_rules.bucket, by_rules.confidence, why)

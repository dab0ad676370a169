"""A parsed question: its words and their weights, the speakers and dates it names, its intent. Pure."""

from __future__ import annotations

from functools import cache

from mnemarch.lazy import Lazy
from mnemarch.model.value import Frozen
from mnemarch.policy.kinds import kinds_where
from mnemarch.text.cache import pattern
from mnemarch.text.conversation import AMOUNT, ASKS, COURTESY, EVENT, LONG, PERSONAL, TIME
from mnemarch.text.tokens import numbered_names, query_tokens
from mnemarch.text.words import Patterns, entries, is_hangul, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Sequence
    from datetime import date

    from mnemarch.config import RecallRules
    from mnemarch.text import everyday, korean
else:
    everyday = Lazy("mnemarch.text.everyday")
    korean = Lazy("mnemarch.text.korean")

_QUERY_CHARS_MAX = 8_192
# A Korean word gives several tokens and any other word gives one. This weight makes the words equal.
_BESIDE_HANGUL = 2.0
_OF_THE_FRAME = 0.25
# The mark at the start of one token of each Korean word.
HANGUL = "^"
_ASKER = frozenset(
    {"i", "my", "me", "mine", "we", "our", "us", "i'm", "i've", "i'd", "내", "나", "내가", "제가", "우리"}
)
_ASKED = frozenset({"you", "your", "너", "네가", "당신"})
# What each sign of a turn adds to its score in a conversation. The weights were fitted on two public sets together.
_STATEMENT_BONUS = 0.12
_TURN_WEIGHTS = {ASKS: -0.05, COURTESY: -0.06, PERSONAL: 0.05, EVENT: 0.055, AMOUNT: 0.045, LONG: 0.08}
# A session's first turn states its subject. With an assistant, users end nearly all statements with a question, so a
# question is no sign against a user's turn there.
_OPENING_BONUS = 0.1
_ASKS_AN_ASSISTANT = 0.05
_TIME_WHEN_ASKED = 0.15
_AMOUNT_WHEN_ASKED = 0.075
_ROLE_BONUSES = {"user": 0.42, "assistant": 0.2}


class Intent(Frozen):
    """What a question asks for: a name, and the kinds of unit it prefers."""

    name: str
    kinds: frozenset[str]


def _intent(name: str) -> Intent:
    return Intent(name, kinds_where(lambda rules: name in rules.intents))


# GENERAL prefers no kind.
INTENTS = {name: _intent(name) for name in ("PROFILE", "PREFERENCE", "RECALL", "KNOWLEDGE", "DEBUG", "GENERAL")}


def intent_of(text: str) -> Intent:
    """The intent of a question (M5): a hint for ranking, never a filter. GENERAL if no sign matches."""
    spaced = _spaced(text)
    names = (name for name, signs in _signs("intents").items() if _has(spaced, signs))
    return INTENTS[next(names, "GENERAL")]


@cache
def _signs(section: str) -> dict[str, list[str]]:
    """Signs by name. An English sign begins a word, and a Korean sign may be anywhere."""
    rows = (line.partition(" => ") for line in entries("questions", section))
    return {name: [f" {sign}" if sign.isascii() else sign for sign in signs.split("|")] for name, _, signs in rows}


def _spaced(text: str) -> str:
    return f" {' '.join(word.strip('.,?!') for word in text[:2_000].casefold().split())} "


def _has(spaced: str, signs: list[str]) -> bool:
    return any(map(spaced.__contains__, signs))


class Question:
    """One question.

    `weights` maps each distinct token to its relative weight, and `wider` has other words that people use for these.
    `role` is the speaker whose turns hold the answer: the user if askers speak of themselves, the assistant if they
    ask what they were told.
    """

    __slots__ = (
        *("asks_how_much", "asks_when", "asks_why", "dates", "intent", "is_korean"),
        *("role", "speakers", "text", "weights", "wider"),
    )

    def __init__(self, text: str, rules: RecallRules) -> None:
        self.text = text = text[:_QUERY_CHARS_MAX]
        self.weights = _weighed(text, query_tokens(text), frame=rules.frame)
        if rules.common:
            self.weights = {token: weight * everyday.weight_of(token) for token, weight in self.weights.items()}
        self.weights |= dict.fromkeys(numbered_names(text), 1.0)
        self.is_korean = any(token[0] == HANGUL for token in self.weights)
        self.wider = everyday.widened(text, self.weights) if rules.everyday else {}
        self.speakers = _speakers(text) if rules.speakers else frozenset()
        self.dates: Sequence[Date] = dates_in(text) if rules.dates and _may_name_a_date(text) else ()
        self.intent: Intent = intent_of(text) if rules.intent else INTENTS["GENERAL"]
        spaced = _spaced(text) if rules.turns else ""
        signs = _signs("asks")
        self.asks_when = _has(spaced, signs["when"])
        self.asks_how_much = _has(spaced, signs["how much"])
        self.asks_why = _has(_spaced(text), signs["why"])
        self.role = (
            "assistant" if _has(spaced, signs["told"]) else "user" if _ASKER.intersection(spaced.split()) else ""
        )


class TurnBonuses(dict[tuple[str, str, bool], float]):
    """The bonus of a turn for one question, by its speaker, its signs and whether it is the first.

    Each kind of turn is computed once.
    """

    def __init__(self, question: Question, coherence: float) -> None:
        super().__init__()
        self._coherence = coherence
        self._role = question.role
        self._weights = dict(_TURN_WEIGHTS)
        if question.asks_when:
            self._weights[TIME] = _TIME_WHEN_ASKED
        if question.asks_when or question.asks_how_much:
            self._weights[AMOUNT] += _AMOUNT_WHEN_ASKED

    def __missing__(self, turn: tuple[str, str, bool]) -> float:
        speaker, signs, is_first = turn
        total = _STATEMENT_BONUS + sum(self._weights.get(sign, 0.0) for sign in signs) + is_first * _OPENING_BONUS
        if speaker == self._role:
            total += _ROLE_BONUSES.get(speaker, 0.0)
            if speaker == "user" and ASKS in signs:
                total += _ASKS_AN_ASSISTANT - _TURN_WEIGHTS[ASKS]
        self[turn] = total = self._coherence * total
        return total


def _weighed(text: str, tokens: list[str], *, frame: bool) -> dict[str, float]:
    hangul = any(map(_is_korean, tokens))
    weights = {token: 1.0 if _is_korean(token) or not hangul else _BESIDE_HANGUL for token in tokens}
    if frame and len(tokens) > 1 and not hangul:
        core = set(query_tokens(without_frame(text)))
        if core:
            weights = {token: weight if token in core else _OF_THE_FRAME for token, weight in weights.items()}
    return weights


def _is_korean(token: str) -> bool:
    return token[0] == HANGUL or is_hangul(token)


def _speakers(text: str) -> frozenset[str]:
    """Possible speakers of the answer: every word of the question, the user for "I", the assistant for "you"."""
    words = {word.strip(".,?!'\"()") for word in text.casefold().replace("\u2019", "'").split()}
    named = {word.removesuffix("'s") for word in words}
    if not text.isascii():
        named |= {korean.stem(word) for word in words if is_hangul(word)}
    if words & _ASKER:
        named.add("user")
    if words & _ASKED:
        named.add("assistant")
    return frozenset(named)


# Dates

# As short forms or verbs these mean something else unless a preposition stands before them.
_AMBIGUOUS = frozenset({"may", "mar", "march"})
_FORTNIGHT_DAYS = 14

# The first pattern that matches at a place wins.
_DATES = ("numeric", "korean", "day and month", "month and day", "month and year", "year alone")
_CENTURIES = frozenset({"19", "20"})
_MONTH_SIGNS = frozenset({"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"})


def _may_name_a_date(text: str) -> bool:
    """Whether the text may name a date: it has a year, a month's name, or a Korean sign of either.

    This cheap check avoids loading the date patterns.
    """
    if "월" in text or "년" in text:
        return True
    words = (word.strip(".,?!'\"()") for word in text.casefold().split())
    return any(word[:2] in _CENTURIES or word.removesuffix("'s")[:3] in _MONTH_SIGNS for word in words)


@cache
def _patterns() -> Patterns:
    """Read on first use: most questions name no date."""
    return Patterns("questions", "dates", "amounts", "frames")


class Date(Frozen):
    """A date as precise as the text: a year, a month or a day."""

    year: int | None
    month: int | None
    day: int | None

    def fit(self, on: date) -> float:
        """1 on the date, 0.5 shortly after it, when people talk about the past, and otherwise 0."""
        year = self.year or on.year
        if self.month is None:
            return float(on.year == year)
        if self.day is None:
            apart = (on.year - year) * 12 + on.month - self.month
            if self.year is None:
                apart = (on.month - self.month + 6) % 12 - 6
            return 1.0 if apart == 0 else 0.5 if apart == 1 else 0.0
        years = (year,) if self.year else (year - 1, year, year + 1)
        return max(_day_fit(each, self.month, self.day, on) for each in years)


def _day_fit(year: int, month: int, day: int, on: date) -> float:
    from datetime import date

    try:
        days = (on - date(year, month, day)).days
    except ValueError:
        return 0.0  # No such day in that year.
    return 1.0 if abs(days) <= 1 else 0.5 if -2 <= days <= _FORTNIGHT_DAYS else 0.0


def dates_in(text: str) -> list[Date]:
    """Every date in the text: 7 May 2023, May 7th, 2023-05-07, in May, 2023, 2023년 5월 7일."""
    lowered = text.casefold()
    if not any(map(str.isdigit, lowered)) and _patterns()["any month"].search(lowered) is None:
        return []
    taken = bytearray(len(lowered))
    dates: list[Date] = []
    for name in _DATES:
        for match in _patterns()[name].finditer(lowered):
            start, end = match.span()
            named = None if any(taken[start:end]) else _date_of(match)
            if named is not None:
                taken[start:end] = b"x" * (end - start)
                dates.append(named)
    return [named for named in dates if named.month is None or 1 <= named.month <= 12]


def _date_of(match: re.Match[str]) -> Date | None:
    """The date of a match. None for a word like "may" that is no month here."""
    parts = match.groupdict()
    year, month, day = parts.get("year"), parts.get("month") or "", parts.get("day")
    is_bare = month in _AMBIGUOUS and not year and not day
    if is_bare and not _patterns()["before a month"].search(match.string, max(0, match.start() - 8), match.start()):
        return None
    months = [number for number, name in enumerate(listed("english", "months"), start=1) if name.startswith(month[:3])]
    number = int(month) if month.isdigit() else months[0] if month else None
    return Date(int(year) if year else None, number, int(day) if day else None)


# Frames


def without_frame(question: str) -> str:
    """An English question without its frame: "how many times did we deploy" asks for deploying."""
    lowered = question.lower()
    if len(lowered) != len(question):
        return question
    there = [frame for signs, frame in frames() if any(sign in lowered for sign in signs)]
    if not there:
        return question
    left = list(question)
    for frame in there:
        for match in pattern(rf"\b(?:{frame})\b").finditer(lowered):
            left[match.start() : match.end()] = " " * len(match[0])
    return "".join(left)


@cache
def frames() -> list[tuple[list[str], str]]:
    """The signs that each frame needs, and its pattern."""
    names = [line.partition(" => ")[0] for line in entries("questions", "frames")]
    return [([sign.replace("_", " ") for sign in name.split()], _patterns().sources[name]) for name in names]

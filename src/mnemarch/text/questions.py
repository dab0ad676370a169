"""Questions: the dates they name, English and Korean, and the frame that says how something is asked."""

from __future__ import annotations

from functools import cache

from mnemarch.model.value import Frozen
from mnemarch.text.cache import pattern
from mnemarch.text.words import Patterns, entries, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from datetime import date

_MONTHS = listed("english", "months")
# As short forms or verbs these mean something else unless a preposition stands before them.
_AMBIGUOUS = frozenset({"may", "mar", "march"})
_FORTNIGHT_DAYS = 14

_PATTERNS = Patterns("questions", "dates", "amounts", "frames")
# The first pattern that matches at a place wins.
_DATES = ("numeric", "korean", "day and month", "month and day", "month and year", "year alone")


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
    if not any(map(str.isdigit, lowered)) and _PATTERNS["any month"].search(lowered) is None:
        return []
    taken = bytearray(len(lowered))
    dates: list[Date] = []
    for name in _DATES:
        for match in _PATTERNS[name].finditer(lowered):
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
    if is_bare and not _PATTERNS["before a month"].search(match.string, max(0, match.start() - 8), match.start()):
        return None
    months = [number for number, name in enumerate(_MONTHS, start=1) if name.startswith(month[:3])]
    number = int(month) if month.isdigit() else months[0] if month else None
    return Date(int(year) if year else None, number, int(day) if day else None)


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
    return [([sign.replace("_", " ") for sign in name.split()], _PATTERNS.sources[name]) for name in names]

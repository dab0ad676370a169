"""Dates in a question, English and Korean, and how well a day fits them."""

from __future__ import annotations

import re
from datetime import date
from functools import cache

from mnemarch.model.value import value

_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
# As short forms or verbs these mean something else unless a preposition stands before them.
_AMBIGUOUS = frozenset({"may", "mar", "march"})
_A_FORTNIGHT = 14


@value
class Date:
    """A year, a month or a day, as far as it was said."""

    year: int | None
    month: int | None
    day: int | None

    def fit(self, on: date) -> float:
        """1 on the date, half just after it, where people talk about what has been; else 0."""
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
    try:
        days = (on - date(year, month, day)).days
    except ValueError:
        return 0.0  # No such day in that year.
    return 1.0 if abs(days) <= 1 else 0.5 if -2 <= days <= _A_FORTNIGHT else 0.0


def dates_in(text: str) -> list[Date]:
    """Every date that is named: 7 May 2023, May 7th, 2023-05-07, in May, 2023, 2023년 5월 7일."""
    lowered = text.casefold()
    if not any(map(str.isdigit, lowered)) and _month().search(lowered) is None:
        return []
    found: list[tuple[int, int, Date]] = []
    for pattern in _patterns():
        for match in pattern.finditer(lowered):
            named = match.groupdict()
            if any(start < match.end() and match.start() < end for start, end, _ in found):
                continue
            month = named.get("month")
            alone = month in _AMBIGUOUS and not named.get("year") and not named.get("day")
            if alone and not _before_a_month().search(lowered, 0, match.start()):
                continue
            found.append(
                (*match.span(), Date(_number(named.get("year")), _month_number(month), _number(named.get("day"))))
            )
    return [each for _, _, each in found if each.month is None or 1 <= each.month <= 12]


def _number(text: str | None) -> int | None:
    return int(text) if text else None


def _month_number(text: str | None) -> int | None:
    if not text:
        return None
    if text.isdigit():
        return int(text)
    return next(number for number, name in enumerate(_MONTHS, start=1) if name.startswith(text[:3]))


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    month = rf"(?P<month>{'|'.join(_MONTHS)}|sept|{'|'.join(name[:3] for name in _MONTHS if name != 'may')})\b\.?"
    year = r"(?P<year>(?:19|20)\d\d)"
    day = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
    numeric = rf"{year}[-./](?P<month>\d{{1,2}})[-./](?P<day>\d{{1,2}})(?!\d)"
    korean = r"(?:(?P<year>(?:19|20)\d\d) ?년 ?)?(?P<month>\d{1,2}) ?월(?: ?(?P<day>\d{1,2}) ?일)?"
    return tuple(
        re.compile(pattern)
        for pattern in (
            rf"\b{numeric}",
            korean,
            rf"\b{day}(?: of)? {month},?(?:\s*{year}\b)?",
            rf"\b{month} {day}\b,?(?:\s*{year}\b)?",
            rf"\b{month},?(?: of)?(?:\s*{year}\b)?",
            rf"\b{year}(?: ?년|\b)",
        )
    )


@cache
def _month() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(name[:3] for name in _MONTHS)})")


@cache
def _before_a_month() -> re.Pattern[str]:
    return re.compile(r"\b(?:in|of|during|since|until|by|this|last) \Z")

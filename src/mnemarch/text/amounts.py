"""Converts amounts to the unit they are compared in, and tells their dimension."""

from __future__ import annotations

from mnemarch.text.cache import pattern

# How often: every month is an amount of time, as every two weeks is.
PERIODS = {
    "second": "1s",
    "minute": "1min",
    **dict.fromkeys(("hourly", "hour"), "1h"),
    **dict.fromkeys(("daily", "day"), "1d"),
    **dict.fromkeys(("weekly", "week"), "1w"),
    **dict.fromkeys(("monthly", "month"), "1mo"),
    **dict.fromkeys(("yearly", "annually", "year"), "1y"),
    "nightly": "night",
    "quarterly": "quarter",
}
_DIMENSIONS = {
    "time": ("ns", "us", "ms", "s", "min", "h", "d", "w", "mo", "y"),
    "size": ("B", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB"),
    "share": ("%",),
    "mass": ("g", "kg"),
}
# The next larger unit, and how many make one: 120 seconds are 2 minutes, and a gigabyte is 1000 or 1024 megabytes.
_LARGER = {
    "ns": ("us", 1000),
    "us": ("ms", 1000),
    "ms": ("s", 1000),
    "s": ("min", 60),
    "min": ("h", 60),
    "h": ("d", 24),
}
_LARGER |= {"g": ("kg", 1000), "d": ("w", 7), "mo": ("y", 12), "KiB": ("MiB", 1024), "MiB": ("GiB", 1024)}
_LARGER |= {"B": ("KB", 1000), "KB": ("MB", 1000), "MB": ("GB", 1000), "GB": ("TB", 1000)}
_BINARY = {1000: 1024}
_SMALLER = {large: (small, factor) for small, (large, factor) in _LARGER.items()}


def normal(key: str) -> str:
    """An amount in the largest unit that gives a whole number: 120s and 2min are equal."""
    match = pattern(r"(\d{1,15}(?:\.\d{1,6})?)([A-Za-z]{1,3})").fullmatch(key)
    unit = match[2] if match else ""
    unit = next((each for each in (*_LARGER, *_SMALLER) if each.lower() == unit), "")
    if match is None or not unit:
        return key
    from fractions import Fraction  # it brings `re`

    number = Fraction(match[1])
    while number.denominator > 1 and unit in _SMALLER:
        unit, factor = _SMALLER[unit]
        number *= factor
    while number and unit in _LARGER:
        larger, factor = _LARGER[unit]
        whole = [number / each for each in (factor, _BINARY.get(factor, factor)) if (number / each).denominator == 1]
        if not whole:
            break
        number, unit = whole[0], larger
    return f"{number}{unit.lower()}"


def dimension(amount: str) -> str:
    """The dimension of an amount: time, size or share. Empty for a plain number."""
    unit = amount.lstrip("-+~^$€£¥₩0123456789.,:/x")
    return next((name for name, units in _DIMENSIONS.items() if unit in units), "")

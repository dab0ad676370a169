"""English words for comparing statements: numbers, units, negations, negative prefixes, and irregular forms."""

from __future__ import annotations

from functools import cache

from mnemarch.text.words import Patterns, entries, grouped, listed, opposites

NUMBERS: dict[str, int] = {
    **{word: number for number, word in enumerate(listed("english", "numbers"))},
    **{word: 10 * number for number, word in enumerate(listed("english", "tens"), start=2)},
    "once": 1,
    "twice": 2,
    "thrice": 3,
}
SCALES = {"hundred": 100, "thousand": 1000, "million": 1_000_000, "billion": 1_000_000_000}
# The numbers that ordinals and words for counts and frequencies are compared by.
NUMBER_KEYS = {
    **{word: f"{number}th" for number, word in enumerate(listed("english", "ordinals"), start=2)},
    "single": "1",
    "double": "2",
    "triple": "3",
    "half": "1/2",
    "quarter": "1/4",
}
UNITS: dict[str, str] = {word: unit for unit, words in grouped("english", "units").items() for word in words}

NEGATIONS = frozenset(listed("english", "negations"))
_FULL = {"ca": "can", "wo": "will", "sha": "shall", "ai": "is"}
CONTRACTIONS: dict[str, str] = {
    spelling: _FULL.get(word, word)
    for word in listed("english", "contracted")
    for spelling in (f"{word}n't", f"{word}nt")
    if spelling not in {"want", "dant"}
} | {"cannot": "can"}

# "Second" is a unit after these words or a number, and otherwise an ordinal.
BEFORE_A_UNIT = frozenset({"per", "a", "every", "each", "one"})
# Words in capitals for stress, which are no names.
SHOUTED = frozenset(listed("english", "shouted"))

_PATTERNS = Patterns("english", "patterns")
_BEGINNINGS = frozenset({"un", "il", "ir", "im", "in", "no", "di"})
_PREFIXED_CHARS_MIN, _PREFIXED_CHARS_MAX = 5, 64


@cache
def guarded() -> frozenset[str]:
    """Every word with a special meaning in the comparison of statements."""
    tables = (NUMBERS, SCALES, NUMBER_KEYS, UNITS, NEGATIONS, CONTRACTIONS, opposites("english"))
    return frozenset(word for table in tables for word in table)


def unprefixed(word: str) -> str | None:
    """The word that a negative prefix denies: legal for illegal. None for most words."""
    if word[:2] not in _BEGINNINGS or not _PREFIXED_CHARS_MIN <= len(word) <= _PREFIXED_CHARS_MAX:
        return None
    match = _PATTERNS["prefix"].match(word)
    return _denials().get(word) if match is None else word[match.end() :]


@cache
def _denials() -> dict[str, str]:
    denied = grouped("english", "denied")
    return {prefix + word + end: word + end for prefix, words in denied.items() for word in words for end in ("", "ly")}


@cache
def irregular_forms() -> dict[str, str]:
    """The base word of each irregular form."""
    groups = [group.split(":") for line in entries("english", "irregular") for group in line.split("|")]
    return {form: word.strip() for word, forms in groups for form in forms.split()}

"""The kind of a turn: a question, a mere courtesy, or a report of acts, times and amounts. Pure.

A question or a greeting often has the words of a query, and rarely its answer. Turns about the speaker, about the past
or with a number are more likely to have it.
"""

from __future__ import annotations

from functools import cache

from mnemarch.text.cache import BoundedCache
from mnemarch.text.english import NUMBERS, irregular_forms
from mnemarch.text.words import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    # A word in lower case without the marks around it, and its signs.
    _Word = tuple[str, str]

# The signs of a turn, one character each.
ASKS, COURTESY, PERSONAL, EVENT, AMOUNT, TIME, LONG = "qgientl"

# A longer sentence that begins with a courtesy is no mere courtesy.
_COURTESY_WORDS_MAX = 6
_NOTHING_SAID_MAX = 4
_LONG_MIN = 20
_ED_CHARS_MIN = 5
# Bounds the words that are read of a long text: its kind shows early.
_WORDS_MAX = 400
_AROUND = ".,;:!?\"'`()[]{}…。？！~*"
_ASKING = frozenset("?？")
_ENDING = frozenset(".!…。！?？")


def signs_of(text: str, speaker: str = "") -> str:
    """The signs of a turn's kind. The name of its speaker at the beginning is skipped."""
    words = text[len(speaker) + 1 if speaker else 0 :].replace("\u2019", "'").split(None, _WORDS_MAX)[:_WORDS_MAX]
    told, asks = _told(words)
    if not told:
        return ASKS if asks else COURTESY
    signs = {*"".join([signs for _, signs in told])}
    if asks:
        signs.add(ASKS)
    if len(told) <= _NOTHING_SAID_MAX:
        signs.add(COURTESY)
    if len(told) >= _LONG_MIN:
        signs.add(LONG)
    return "".join(sorted(signs))


def _told(written: list[str]) -> tuple[list[_Word], bool]:
    """The words without questions and short courtesies, and whether the text ends with a question."""
    words = [*map(_known_words.__getitem__, [word.strip(_AROUND) for word in written])]
    told: list[_Word] = []
    start, asks = 0, False
    ends = [end for end, word in enumerate(written, start=1) if word[-1] in _ENDING]
    for end in [*ends, len(words)]:
        if end > start:
            asks = written[end - 1][-1] in _ASKING
            is_courtesy = end - start <= _COURTESY_WORDS_MAX and words[start][0] in _listed()[0]
            if not asks and not is_courtesy:
                told += [word for word in words[start:end] if word[0]]
            start = end
    return told, asks


@cache
def _signs() -> dict[str, str]:
    """The signs of words that are signs by themselves."""
    lists = {PERSONAL: "first person", EVENT: "events", AMOUNT: "amounts", TIME: "times"}
    words = [(word, sign) for sign, name in lists.items() for word in listed("turns", name)]
    words += [(word, EVENT) for word in irregular_forms()] + [(word, AMOUNT) for word in NUMBERS]
    signs: dict[str, str] = {}
    for word, sign in words:
        signs[word] = signs.get(word, "") + sign
    return signs


@cache
def _listed() -> tuple[frozenset[str], tuple[str, ...]]:
    """Courtesies, and the endings of past forms."""
    return frozenset(listed("turns", "courtesies")), tuple(listed("turns", "past endings"))


def _read(written: str) -> _Word:
    word = written.casefold()
    signs = _signs().get(word, "")
    if word.endswith("ed") and len(word) >= _ED_CHARS_MIN if word.isascii() else word.endswith(_listed()[1]):
        signs += EVENT
    if not word.isalpha() and any(map(str.isdigit, word)):
        signs += AMOUNT
    return word, signs


_known_words = BoundedCache(32_768, _read)

"""The kind of a turn: whether it asks, is a mere courtesy, or tells what somebody did, when and how much. Pure.

A question or a greeting repeats the words of what is asked for and rarely holds the answer; what a person tells of
themselves, of the past, or with a number does.
"""

from __future__ import annotations

from functools import cache

from mnemarch.text.cache import cached
from mnemarch.text.english import NUMBERS, irregular_forms
from mnemarch.text.words import listed

# The signs of a turn, one character each.
ASKS, COURTESY, PERSONAL, EVENT, AMOUNT, TIME, LONG = "qgientl"

# A longer beginning with a courtesy says something.
_COURTESY_WORDS_MAX = 6
_NOTHING_SAID_MAX = 4
_LONG_MIN = 20
_ED_CHARS_MIN = 5
# A kind shows early; the rest of a long text is not read.
_WORDS_MAX = 400
_AROUND = ".,;:!?\"'`()[]{}…。？！~*"
_ASKING = "?？"
_ENDING = f".!…。！{_ASKING}"
# Words come back again and again; long ones don't, and would fill the cache.
_CACHED_WORDS, _CACHED_CHARS_MAX = 16_384, 64


def signs_of(text: str, speaker: str = "") -> str:
    """The signs of a turn's kind, without what it says after the name of its speaker."""
    words = text[len(speaker) + 1 if speaker else 0 :].replace("\u2019", "'").split(None, _WORDS_MAX)[:_WORDS_MAX]
    told, asks = _told(words)
    if not told:
        return ASKS if asks else COURTESY
    signs = {sign for word in told for sign in (_of_word(word) if len(word) <= _CACHED_CHARS_MAX else _judged(word))}
    if asks:
        signs.add(ASKS)
    if len(told) <= _NOTHING_SAID_MAX:
        signs.add(COURTESY)
    if len(told) >= _LONG_MIN:
        signs.add(LONG)
    return "".join(sorted(signs))


def _told(words: list[str]) -> tuple[list[str], bool]:
    """The words of what is stated, without questions and short courtesies, and whether it ends with a question."""
    told: list[str] = []
    sentence: list[str] = []
    asks = False
    for number, word in enumerate(words, start=1):
        sentence.append(word.strip(_AROUND).casefold())
        if number == len(words) or word[-1] in _ENDING:
            asks = word[-1] in _ASKING
            is_courtesy = len(sentence) <= _COURTESY_WORDS_MAX and sentence[0] in _table()["courtesies"]
            if not asks and not is_courtesy:
                told += filter(None, sentence)
            sentence = []
    return told, asks


@cache
def _table() -> dict[str, frozenset[str]]:
    names = ("courtesies", "first person", "events", "amounts", "times")
    return {name: frozenset(listed("turns", name)) for name in names}


@cache
def _endings() -> tuple[str, ...]:
    return tuple(listed("turns", "past endings"))


@cached(_CACHED_WORDS)
def _of_word(word: str) -> str:
    return _judged(word)


def _judged(word: str) -> str:
    table = _table()
    is_past = (word.isascii() and word.endswith("ed") and len(word) >= _ED_CHARS_MIN) or word.endswith(_endings())
    return "".join(
        sign
        for sign, is_there in (
            (PERSONAL, word in table["first person"]),
            (EVENT, is_past or word in table["events"] or word in irregular_forms()),
            (AMOUNT, word in table["amounts"] or word in NUMBERS or any(map(str.isdigit, word))),
            (TIME, word in table["times"]),
        )
        if is_there
    )

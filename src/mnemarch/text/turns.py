"""The kind of a turn: whether it asks, is a mere courtesy, or tells what somebody did, when and how much. Pure.

A question or a greeting repeats the words of what is asked for and rarely holds the answer; what a person tells of
themselves, of the past, or with a number does.
"""

from __future__ import annotations

from functools import cache

from mnemarch.text.cache import BoundedCache
from mnemarch.text.english import NUMBERS, irregular_forms
from mnemarch.text.words import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    # A word in lower case without what stands around it, its signs, and the mark that ends a sentence with it.
    _Word = tuple[str, str, str]

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
_CACHED_CHARS_MAX = 64
_known_words: dict[str, _Word] = BoundedCache(32_768)


def signs_of(text: str, speaker: str = "") -> str:
    """The signs of a turn's kind, without what it says after the name of its speaker."""
    words = text[len(speaker) + 1 if speaker else 0 :].replace("\u2019", "'").split(None, _WORDS_MAX)[:_WORDS_MAX]
    told, asks = _told([_known_words.get(word) or _read(word) for word in words])
    if not told:
        return ASKS if asks else COURTESY
    signs = {*"".join([signs for _, signs, _ in told])}
    if asks:
        signs.add(ASKS)
    if len(told) <= _NOTHING_SAID_MAX:
        signs.add(COURTESY)
    if len(told) >= _LONG_MIN:
        signs.add(LONG)
    return "".join(sorted(signs))


def _told(words: list[_Word]) -> tuple[list[_Word], bool]:
    """The words of what is stated, without questions and short courtesies, and whether it ends with a question."""
    told: list[_Word] = []
    start, asks = 0, False
    for end, (_, _, ending) in enumerate(words, start=1):
        if ending or end == len(words):
            asks = ending != "" and ending in _ASKING
            is_courtesy = end - start <= _COURTESY_WORDS_MAX and words[start][0] in _listed()[0]
            if not asks and not is_courtesy:
                told += [word for word in words[start:end] if word[0]]
            start = end
    return told, asks


@cache
def _signs() -> dict[str, str]:
    """The words that are signs by themselves."""
    lists = {PERSONAL: "first person", EVENT: "events", AMOUNT: "amounts", TIME: "times"}
    words = [(word, sign) for sign, name in lists.items() for word in listed("turns", name)]
    words += [(word, EVENT) for word in irregular_forms()] + [(word, AMOUNT) for word in NUMBERS]
    signs: dict[str, str] = {}
    for word, sign in words:
        signs[word] = signs.get(word, "") + sign
    return signs


@cache
def _listed() -> tuple[frozenset[str], tuple[str, ...]]:
    """Courtesies, and the endings of what is past."""
    return frozenset(listed("turns", "courtesies")), tuple(listed("turns", "past endings"))


def _read(written: str) -> _Word:
    bare = written.strip(_AROUND).casefold()
    signs = _signs().get(bare, "")
    if bare.endswith(_listed()[1]) or (bare.endswith("ed") and bare.isascii() and len(bare) >= _ED_CHARS_MIN):
        signs += EVENT
    if not bare.isalpha() and any(map(str.isdigit, bare)):
        signs += AMOUNT
    word = bare, signs, written[-1] if written[-1] in _ENDING else ""
    if len(written) <= _CACHED_CHARS_MAX:
        _known_words[written] = word
    return word

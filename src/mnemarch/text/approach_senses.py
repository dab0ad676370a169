"""What a word of a plan stands for, by the lists of approach_words."""

from __future__ import annotations

from functools import cache

from mnemarch.text import approach_words as words
from mnemarch.text import hangul
from mnemarch.text.tokens import tokens

# Concept, sign, whether the word is light, and its list: action, quality or thing.
Sense = tuple[str, int, bool, str]

# No listed Korean word is longer.
_KOREAN_CHARS_MAX = 8


def word_sense(word: str) -> Sense | None:
    """What a word stands for; a noun made of a verb (generator, attachment) is no action."""
    found = sense(stem_of(word))
    if found and found[3] == "action" and word.endswith(words.OF_NOUNS) and word not in _listed():
        return None
    return found


def sense(stem: str) -> Sense | None:
    """What the stem of a word, or of several joined by `_`, stands for in the lists."""
    return _senses().get(stem)


def korean_sense(word: str) -> Sense | None:
    """What a Korean word stands for: the longest listed beginning that is followed by nothing but endings."""
    stem = hangul.stem(word)
    if len(stem) > 1 and stem in _senses():
        return _senses()[stem]
    for size in range(min(len(word), _KOREAN_CHARS_MAX), 0, -1):
        found = _senses().get(word[:size])
        if found and (size == len(word) or hangul.is_suffix(word[size:])):
            return found
    return None


def lines() -> list[str]:
    """Every group as it is listed."""
    return [line for listed in (words.ACTIONS, words.QUALITIES, words.THINGS) for line in _lines(listed)]


def is_frame(stem: str) -> bool:
    """Whether a stem belongs to the frame of a plan."""
    return stem in frames()


def stem_of(word: str) -> str:
    """The stem of one word in small letters, Korean or not."""
    if word[0] >= "가":
        return hangul.stem(word)
    return next(iter(tokens(word)), word)


@cache
def negations() -> frozenset[str]:
    """English words that turn the next word around."""
    return frozenset(words.NEGATIONS.split())


def numbered_thing(word: str) -> str:
    """The concept of a word that a number after it makes one of several; nothing for quantities and actions."""
    stem = stem_of(word)
    found = korean_sense(word) if word >= "가" else sense(stem)
    thing = found[0] if found else stem
    if thing in _quantities() or stem in _quantities() or (found and (found[2] or found[3] == "action")):
        return ""
    return thing


@cache
def _quantities() -> frozenset[str]:
    return frozenset(words.QUANTITIES.split()) | frozenset(map(stem_of, words.QUANTITIES.split()))


@cache
def phrase_starts() -> dict[str, int]:
    """For each stem that begins a listed phrase, how many words the longest such phrase has."""
    found: dict[str, int] = {}
    for stem in _senses():
        parts = stem.split("_")
        if len(parts) > 1:
            found[parts[0]] = max(found.get(parts[0], 0), len(parts))
    return found


@cache
def _senses() -> dict[str, Sense]:
    known: dict[str, Sense] = {}
    for kind, listed in (("action", words.ACTIONS), ("quality", words.QUALITIES), ("thing", words.THINGS)):
        for line in _lines(listed):
            name, _, sides = line.partition(":")
            for sign, side in zip((1, -1), sides.split("|"), strict=False):
                for word in side.split():
                    light = word[0] == "~" or name[0] == "~"
                    found = (name.strip("~"), sign, light, kind)
                    bare = word.strip("~")
                    known.setdefault(bare if bare >= "가" else "_".join(map(stem_of, bare.split("_"))), found)
    return known


@cache
def _listed() -> frozenset[str]:
    return frozenset(words.ACTIONS.replace("~", " ").split())


@cache
def frames() -> frozenset[str]:
    """The words of the frame of a plan, and their stems."""
    return frozenset(map(stem_of, words.FRAMES.split())) | frozenset(words.FRAMES.split())


def _lines(listed: str) -> list[str]:
    return listed.replace("\n  ", " ").strip().splitlines()

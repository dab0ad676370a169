"""Everyday words: those of software work that people use for one another (JDK and Java, DB and database, 디비), and
those that are in any text. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from mnemarch.text.cache import cached
from mnemarch.text.tokens import query_tokens
from mnemarch.text.words import entries, grouped, line_of

# What a word that was not asked for itself weighs beside one that was, by the mark of its line: any entry of a line
# stands for the others, only the first one does, or they belong to one topic.
_SHARES = {"=": 0.6, ">": 0.6, "~": 0.25}
_FIRST = ">"
# The same for a word that is near in meaning to one that nobody wrote.
_NEAR_SHARE = 0.3
# A Korean word is several tokens, and together they weigh no more than a word of another language beside them.
_WORD_MAX = 2.0
_WORDS_MAX = 64
_BEGINNING_CHARS = 3
_AROUND = ".,;:!?\"'`()[]{}"


def weight_of(token: str) -> float:
    """What a word tells by itself: 1, and less of one that people say all the time, whatever they speak of."""
    return _common().get(token, 1.0)


@cache
def _common() -> dict[str, float]:
    return {token: float(weight) for weight, tokens in grouped("common", "weights").items() for token in tokens}


def near(token: str) -> dict[str, float]:
    """The tokens of English words near in meaning to this one, each with its share; a common word has less."""
    weight = weight_of(token)
    return {other: _NEAR_SHARE * min(1.0, weight_of(other) / weight) for other in line_of("near", token)}


def widened(text: str, weights: Mapping[str, float]) -> dict[str, tuple[str, float]]:
    """The tokens that a question's words may stand for and that it has not, each with a token that was asked instead
    and its weight.

    `weights` are the question's own tokens. Of a phrase each token gets its part, and a common word weighs less.
    """
    text = text.casefold()
    wider: dict[str, tuple[str, float]] = {}
    for word in text.split(None, _WORDS_MAX)[:_WORDS_MAX]:
        for entry, share, group in _asked_entries(word.strip(_AROUND), text, weights):
            tokens = _tokens(entry)
            asked = (_telling(entry) or tokens)[0]
            total = (
                sum(weights[token] for token in tokens) if _is_hangul(entry) else min(map(weights.__getitem__, tokens))
            )
            weight = share * min(_WORD_MAX, total)
            for other in group:
                parts = [token for token in _telling(other) if token not in weights]
                for token in parts:
                    part = weight / len(parts) * min(1.0, weight_of(token) / weight_of(asked))
                    if part > wider.get(token, ("", 0.0))[1]:
                        wider[token] = asked, part
    return wider


def _asked_entries(word: str, text: str, weights: Mapping[str, float]) -> list[tuple[str, float, list[str]]]:
    """The entries that a word of the question is, or begins; of Korean ones the longest, as 로그인 is no 로그."""
    asked = []
    for entry, share, group in _entries(_beginning(word)):
        tokens = _tokens(entry)
        if not tokens or not all(token in weights for token in tokens):
            continue
        # A phrase that is hardly more than words of every text has to be there as it is.
        if (
            word.startswith(entry.removesuffix("다"))
            if _is_hangul(entry)
            else _is_whole(entry) or _spaced(entry) in text
        ):
            asked.append((entry, share, group))
    longest = max([len(entry) for entry, _, _ in asked if _is_hangul(entry)], default=0)
    return [each for each in asked if not _is_hangul(each[0]) or len(each[0]) == longest]


def _is_hangul(entry: str) -> bool:
    return "가" <= entry[:1] <= "힣"


def _spaced(entry: str) -> str:
    return entry.replace("_", " ")


def _is_whole(entry: str) -> bool:
    return "_" not in entry or len(_tokens(entry)) > entry.count("_")


@cache
def _telling(entry: str) -> tuple[str, ...]:
    """The tokens by which an entry is found: of a Korean word its pairs of syllables, as many words begin like it."""
    tokens = _tokens(entry) if _is_whole(entry) else ()
    return tokens[1:] if _is_hangul(entry) else tokens


def _beginning(word: str) -> str:
    return word[:1] if _is_hangul(word) else word[:_BEGINNING_CHARS]


@cached(4_096)
def _entries(beginning: str) -> list[tuple[str, float, list[str]]]:
    """Each entry that begins so and may be asked for, with the share and its group; only their lines are read."""
    groups, found, at = _groups(), [], -1
    while beginning and (at := groups.find(f" {beginning}", at + 1)) >= 0:
        entry = groups[at + 1 : groups.find(" ", at + 1)]
        mark, *group = groups[groups.rfind("\n", 0, at) + 1 : groups.find("\n", at)].split()
        if _beginning(entry) == beginning and (mark != _FIRST or entry == group[0]):
            found.append((entry, _SHARES[mark], group))
    return found


@cache
def _groups() -> str:
    """A group on each line after a mark, with a space around each entry."""
    marked = zip(_SHARES, ("groups", "kinds", "topics"), strict=True)
    return "".join([f"{mark} {line} \n" for mark, part in marked for line in entries("everyday", part)])


@cache
def _tokens(entry: str) -> tuple[str, ...]:
    return tuple(query_tokens(_spaced(entry)))

"""Words that people use for one another in software work (JDK and Java, DB and database, 디비), and words that are
common in any text. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from mnemarch.text.cache import cached
from mnemarch.text.tokens import query_tokens
from mnemarch.text.words import entries, grouped, is_hangul, line_of

# The weight of a related word relative to the asked word, by the mark of its line. `=`: any entry stands for the
# others. `>`: only the first entry stands for the others. `~`: the entries belong to one topic.
_SHARES = {"=": 0.6, ">": 0.6, "~": 0.25}
_FIRST = ">"
# The same for a word near in meaning to a word that no text contains.
_NEAR_SHARE = 0.3
# A Korean word has several tokens. Together they weigh no more than a word of another language.
_WORD_MAX = 2.0
_WORDS_MAX = 64
_BEGINNING_CHARS = 3
_AROUND = ".,;:!?\"'`()[]{}"


def weight_of(token: str) -> float:
    """The weight of a word: 1, or less for a word that is common in any text."""
    return _common().get(token, 1.0)


@cache
def _common() -> dict[str, float]:
    rows = [(float(weight), tokens) for weight, tokens in grouped("common", "weights").items()]
    return {token: weight for weight, tokens in rows for token in tokens}


def near(token: str) -> dict[str, float]:
    """The tokens of English words near in meaning to this one, each with its share. Common words have less."""
    weight = weight_of(token)
    return {other: _NEAR_SHARE * min(1.0, weight_of(other) / weight) for other in line_of("near", token)}


def widened(text: str, weights: Mapping[str, float]) -> dict[str, tuple[str, float]]:
    """Related tokens that the question lacks, each with the asked token it stands for and its weight.

    `weights` are the question's own tokens. The tokens of a phrase share its weight, and common words weigh less.
    """
    text = text.casefold()
    wider: dict[str, tuple[str, float]] = {}
    for word in text.split(None, _WORDS_MAX)[:_WORDS_MAX]:
        for entry, share, group in _asked_entries(word.strip(_AROUND), text, weights):
            tokens = _tokens(entry)
            asked = (_telling(entry) or tokens)[0]
            total = (
                sum(weights[token] for token in tokens) if is_hangul(entry) else min(map(weights.__getitem__, tokens))
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
    """The entries that match a word of the question. Only the longest Korean ones count: 로그인 is no 로그."""
    asked = []
    for entry, share, group in _entries(_beginning(word)):
        tokens = _tokens(entry)
        if not tokens or not all(token in weights for token in tokens):
            continue
        # A phrase of very common words must occur literally.
        if (
            word.startswith(entry.removesuffix("다"))
            if is_hangul(entry)
            else _is_whole(entry) or _spaced(entry) in text
        ):
            asked.append((entry, share, group))
    longest = max([len(entry) for entry, _, _ in asked if is_hangul(entry)], default=0)
    return [each for each in asked if not is_hangul(each[0]) or len(each[0]) == longest]


def _spaced(entry: str) -> str:
    return entry.replace("_", " ")


def _is_whole(entry: str) -> bool:
    return "_" not in entry or len(_tokens(entry)) > entry.count("_")


@cache
def _telling(entry: str) -> tuple[str, ...]:
    """The tokens to search an entry by. For Korean, its pairs of syllables, since many words begin alike."""
    tokens = _tokens(entry) if _is_whole(entry) else ()
    return tokens[1:] if is_hangul(entry) else tokens


def _beginning(word: str) -> str:
    return word[:1] if is_hangul(word) else word[:_BEGINNING_CHARS]


@cached(4_096)
def _entries(beginning: str) -> list[tuple[str, float, list[str]]]:
    """The entries with this beginning that may be asked for, each with its share and group. Reads only their lines."""
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

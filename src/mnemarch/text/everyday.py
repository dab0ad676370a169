"""Everyday words of software work that people use for one another: JDK and Java, DB and database, 디비. Pure."""

from __future__ import annotations

from functools import cache

from mnemarch.text.cache import cached
from mnemarch.text.tokens import query_tokens
from mnemarch.text.words import entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# What a word that was not asked for itself weighs beside one that was.
_SHARE = 0.45
_WORDS_MAX = 64
_BEGINNING_CHARS = 3
_AROUND = ".,;:!?\"'`()[]{}"


def widened(text: str, weights: Mapping[str, float]) -> dict[str, float]:
    """The tokens that a question's words may stand for and that it has not, each with its weight.

    `weights` are the question's own tokens. Of a phrase all tokens have to be there, and each gets its part.
    """
    wider: dict[str, float] = {}
    for word in text.casefold().split(None, _WORDS_MAX)[:_WORDS_MAX]:
        for entry, group in _entries(_beginning(word.strip(_AROUND))):
            asked = _tokens(entry)
            if not asked or not all(token in weights for token in asked):
                continue
            weight = _SHARE * min(weights[token] for token in asked)
            for other in group:
                parts = [token for token in _tokens(other) if token not in weights]
                for token in parts:
                    wider[token] = max(wider.get(token, 0.0), weight / len(parts))
    return wider


def _beginning(word: str) -> str:
    return word[:1] if "가" <= word[:1] <= "힣" else word[:_BEGINNING_CHARS]


@cached(4_096)
def _entries(beginning: str) -> list[tuple[str, list[str]]]:
    """Each entry that begins so, with its group. Only their lines are read, which is faster than to read the table."""
    groups, found, at = _groups(), [], -1
    while beginning and (at := groups.find(f" {beginning}", at + 1)) >= 0:
        entry = groups[at + 1 : groups.find(" ", at + 1)]
        if _beginning(entry) == beginning:
            found.append((entry, groups[groups.rfind("\n", 0, at) + 1 : groups.find("\n", at)].split()))
    return found


@cache
def _groups() -> str:
    """A group on each line, with a space around each entry."""
    return "".join([f" {line} \n" for line in entries("everyday", "groups")])


@cache
def _tokens(entry: str) -> tuple[str, ...]:
    return tuple(query_tokens(entry.replace("_", " ")))

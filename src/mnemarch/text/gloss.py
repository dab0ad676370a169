"""Translates Korean word by word into English, for a model that knows no Korean. Pure."""

from __future__ import annotations

from functools import cache

from mnemarch.text import korean
from mnemarch.text.cache import pattern
from mnemarch.text.words import entries

_LATIN_MAX = "\u024f"


def english_of(text: str) -> str:
    """The text as an English model can read it. Empty for a text in another script.

    Korean words are replaced by the table's English, or dropped if the table lacks them. Up to a tenth of the letters
    may be of another script, such as a single λ.
    """
    if text.isascii():
        return text
    parts = pattern(r"[가-힣]+|[^\s가-힣]+").findall(text)
    text = " ".join([english for part in parts if (english := _word(part) if "가" <= part[0] <= "힣" else part)])
    letters = [letter for letter in text if letter.isalpha()]
    return text if 10 * sum(letter > _LATIN_MAX for letter in letters) <= len(letters) else ""


def _word(word: str) -> str:
    """The English for the longest beginning in the table, and for the rest: 결제내역을 is payment details.

    A single syllable counts only as a whole stem, since too many words begin alike.
    """
    table, longest = _table()
    found: list[str] = []
    rest = word
    while begun := next((rest[:size] for size in range(min(longest, len(rest)), 1, -1) if rest[:size] in table), ""):
        found.append(table[begun])
        rest = rest[len(begun) :]
    return " ".join(found) or table.get(word, "") or table.get(korean.stem(word), "")


@cache
def _table() -> tuple[dict[str, str], int]:
    """The table from Korean to English, and the length of its longest entry."""
    rows = [line.split() for line in entries("gloss", "words")]
    table = {word: english.replace("_", " ") for english, *words in rows for word in words}
    return table, max(map(len, table))

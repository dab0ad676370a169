"""Word lists and tables of patterns from the files in `data/`: function words, opposites, kinds of names."""

from __future__ import annotations

import os
from functools import cache

from mnemarch.text.cache import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

# For each word its poles, as in `allow+` or `allow-`, and whether it negates by itself.
Opposites = dict[str, tuple[tuple[str, ...], bool]]

_FOLDER = os.path.join(os.path.dirname(__file__), "data")


@cache
def entries(file: str, section: str) -> list[str]:
    """The lines under `[section]` in data/FILE.txt. An indented line continues the previous one."""
    lines: list[str] = []
    for line in _sections(file)[section].split("\n"):
        if line.startswith(" "):
            lines[-1] += line[1:]
        elif line and line[0] != "#":
            lines.append(line)
    return lines


def listed(file: str, *sections: str) -> list[str]:
    """The words of these sections in data/FILE.txt."""
    return [word for section in sections for line in entries(file, section) for word in line.split()]


def line_of(file: str, word: str) -> list[str]:
    """The words after a word on its line of data/FILE.txt. It parses only that line."""
    text = _text(file)
    at = text.find(f"\n{word} ") + 1
    return text[at : text.find("\n", at)].split()[1:] if at else []


def grouped(file: str, section: str) -> dict[str, list[str]]:
    """The words by name of a section with lines `name: words`."""
    return {name: words.split() for name, _, words in (line.partition(":") for line in entries(file, section))}


class Patterns(dict[str, "re.Pattern[str]"]):
    """The lines `name => pattern` of sections in data/FILE.txt, each compiled when it is first used.

    In a pattern, `(?&name)` includes an earlier pattern.
    """

    def __init__(self, file: str, *sections: str) -> None:
        super().__init__()
        self.sources: dict[str, str] = {}
        for line in [line for section in sections for line in entries(file, section)]:
            name, _, source = line.partition(" => ")
            if "(?&" in source:
                for part, inner in self.sources.items():
                    source = source.replace(f"(?&{part})", f"(?:{inner})")
            self.sources[name] = source

    def __missing__(self, name: str) -> re.Pattern[str]:
        compiled = self[name] = pattern(self.sources[name])
        return compiled


@cache
def _text(file: str) -> str:
    with open(os.path.join(_FOLDER, f"{file}.txt"), encoding="utf-8") as content:
        return content.read()


@cache
def _sections(file: str) -> dict[str, str]:
    """The text of each section. Its lines are read when they are needed."""
    parts = (part.partition("]\n") for part in f"\n{_text(file)}".split("\n[")[1:])
    return {name: lines for name, _, lines in parts}


# Function words.
LIGHT_WORDS = frozenset(listed("english", "grammar", "past and future", "prepositions"))
# Words that say nothing about possession, time, place, amount or modality.
EMPTY_WORDS = frozenset(listed("english", "grammar", "pronouns", "fillers"))
# The closed classes of English, which search ignores.
STOP_WORDS = EMPTY_WORDS | LIGHT_WORDS | frozenset(listed("english", "frequent"))
# The words that a rewording may add or drop without a change of meaning.
REWORDING_WORDS = (LIGHT_WORDS - {"am", "into"}) | frozenset(listed("english", "rewording"))


@cache
def opposites(*sections: str) -> Opposites:
    """The words of these sections of data/opposites.txt with their poles."""
    table: Opposites = {}
    for line in [line for section in sections for line in entries("opposites", section)]:
        group, _, words = line.partition(":")
        for sign, side in zip("+-", words.split("|"), strict=True):
            for word in side.split():
                for form in inflected(word.strip("!")):
                    poles, negates = table.get(form, ((), False))
                    table[form] = ((*poles, group + sign), negates or word.startswith("!"))
    return table


@cache
def _kinds_of_names() -> dict[str, frozenset[str]]:
    kinds: dict[str, set[str]] = {}
    for kind, names in grouped("names", "kinds").items():
        for name in names:
            kinds.setdefault(name.replace("_", " "), set()).add(kind)
    return {name: frozenset(of_name) for name, of_name in kinds.items()}


def kinds_of(name: str) -> frozenset[str]:
    """The roles in which a named thing is used: redis is a cache, a queue and a database. Empty if unknown."""
    return _kinds_of_names().get(name, frozenset())


@cache
def comparison_signs() -> Opposites:
    """The poles of `<`, `>=`, `!=` and the like."""
    rows = [line.split() for line in entries("opposites", "signs")]
    return {sign: (tuple(poles), sign.startswith("!") or sign == "≠") for sign, *poles in rows}


@cache
def contradictory_groups() -> frozenset[str]:
    """The groups of opposites without a middle: "not allowed" is "forbidden", but "not before" is not "after"."""
    lines = [line for section in ("english", "korean", "korean words") for line in entries("opposites", section)]
    groups = frozenset(line.partition(":")[0] for line in lines if "!" in line)
    return groups - {"always", "all", "everybody"}  # Not always is not never.


def inflected(word: str) -> set[str]:
    """All inflected forms of a word that ends with `*`, else the word alone."""
    base = word.rstrip("*")
    if base == word:
        return {base}
    if base.endswith("e"):
        return {base, base + "s", base + "d", base[:-1] + "ing"}
    if base.endswith("y") and base[-2] not in "aeiou":
        return {base, base[:-1] + "ies", base[:-1] + "ied", base + "ing"}
    doubled = base + base[-1]
    plain = {base, base + "s", base + "ed", base + "ing", doubled + "ed", doubled + "ing"}
    return plain | {base + "es"} if base.endswith(("s", "x", "ch", "sh")) else plain


def is_hangul(text: str) -> bool:
    """Whether a text begins with a Hangul syllable."""
    return "가" <= text[:1] <= "힣"


def in_a_line(text: str, chars_max: int = 160) -> str:
    """The beginning of a text on one line with printable characters only, so that it can be quoted safely."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= chars_max else f"{line[: chars_max - 1]}…"


def some_of(items: Sequence[str], shown_max: int) -> str:
    """The first of these texts, and the number of the others."""
    shown = ", ".join(items[:shown_max])
    return shown if len(items) <= shown_max else f"{shown} and {len(items) - shown_max} more"


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun: 1 task, 2 tasks."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"

"""The analysed form of a plan: its terms and what a comparison looks up."""

from __future__ import annotations

from mnemarch.model.value import value

# How much a word says: one like use or set, any other, and part of a name.
LIGHT, PLAIN, NAMED = 0.15, 1.0, 1.25


@value
class Term:
    """One word of a plan: what it stands for, whether it is turned around, how much it says, and its place."""

    concept: str
    stem: str
    sign: int
    weight: float
    kind: str
    role: str


@value
class Approach:
    """The analysed form of a plan: its terms in order, and what a comparison looks up."""

    terms: tuple[Term, ...]
    concepts: frozenset[str]
    signs: frozenset[tuple[str, int]]
    stems: frozenset[str]
    # What stems begin with (config, configuration), and neighbours written as one word, with their parts.
    beginnings: frozenset[str]
    compounds: frozenset[str]
    parts: frozenset[tuple[str, str]]
    # What is said around the plan.
    around: frozenset[str]
    # Numbers that are amounts, and things that are told apart by their number.
    values: frozenset[str]
    numbered: frozenset[str]
    is_latin: bool


def beginnings(stem: str) -> list[str]:
    """What a shortened form of a word would be: more than half of it, and four letters or two syllables."""
    least = 2 if stem >= "가" else 4
    return [stem[:size] for size in range(max(least, -(len(stem) * -3 // 5)), len(stem))]

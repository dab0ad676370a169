"""Reading a sentence of a plan: its actions and things with their signs and roles, and its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from mnemarch.model.value import Frozen, replace
from mnemarch.text import english, korean
from mnemarch.text.tokens import tokens
from mnemarch.text.words import STOP_WORDS, Patterns, entries, listed

# A word in small letters, its kind (word, hangul, number, comma or mark), and whether it is part of a name.
Lexeme = tuple[str, str, bool]
# What a word stands for: the concept, its sign, whether the word says little, and action, quality or thing.
Sense = tuple[str, int, bool, str]

# How much a word says: one like use or set, any other, and part of a name.
LIGHT, PLAIN, NAMED = 0.15, 1.0, 1.25

PATTERNS = Patterns("approaches", "patterns")
# Concepts of running and looking. A plan with these alone tries nothing.
LOOKING = frozenset(listed("approaches", "looking"))
# The length of the longest listed Korean word.
_KOREAN_CHARS_MAX = 8
# How many terms back a word searches for the term it modifies.
_TERMS_BACK_MAX = 12


class Term(Frozen):
    """One word of a plan: its concept, its sign (-1 if negated), its weight, and its role."""

    concept: str
    stem: str
    sign: int
    weight: float
    kind: str
    role: str


class Sentence:
    """A sentence, read from left to right. A negation negates the next word, and a preposition gives roles."""

    def __init__(self, text: str) -> None:
        self.lexemes = list(lexemes(text))
        self.terms: list[Term] = []
        self.values: set[str] = set()
        self.numbered: set[str] = set()
        # The order of the terms in the plan: by clause, with qualifiers before the words they qualify.
        self.ranks: list[tuple[int, int]] = []
        self.clause = self.phrase = 0
        # How many terms have a role, or can no longer get one.
        self.roles_given = 0
        self.negated = False
        self.role = self.role_after_comma = ""
        self.number_from = ""
        at = 0
        while at < len(self.lexemes):
            at += self.step(at)
        # The size of the pool is the pool size.
        order = sorted(range(len(self.terms)), key=self.ranks.__getitem__)
        self.terms = [self.terms[at] for at in order]

    def joined(self) -> Iterator[tuple[str, str, str]]:
        """The stems of each pair of adjacent words: written as one, and both words."""
        for (left, kind, _), (right, kind_after, _) in pairwise(self.lexemes):
            if kind == kind_after == "word":
                yield stem_of(left + right), stem_of(left), stem_of(right)

    def step(self, at: int) -> int:
        """Read the words at an index. Return how many were read."""
        word, kind, _ = self.lexemes[at]
        if kind == "mark":
            return 1
        if kind == "comma":
            self.clause, self.phrase = self.clause + 1, 0
            self.role, self.role_after_comma = self.role_after_comma or self.role, ""
        elif kind == "number":
            self.read_number(at)
        elif size := self.read_phrase(at):
            return size
        elif kind == "hangul":
            self.read_korean(word)
        elif not self.read_marker(at):
            self.read_word(at)
        return 1

    def read_phrase(self, at: int) -> int:
        longest = _phrase_starts().get(stem_of(self.lexemes[at][0]), 0)
        for size in range(min(longest, len(self.lexemes) - at), 1, -1):
            stems = [stem_of(word) for word, _, _ in self.lexemes[at : at + size]]
            sense = senses().get("_".join(stems))
            if sense:
                if sense[0] == "replace":
                    self.give_role("new")
                    self.role = "old"
                self.add_sense(sense, stems[0])
                return size
        return 0

    def read_marker(self, at: int) -> bool:
        """Whether the word only modifies its neighbours."""
        word, _, in_name = self.lexemes[at]
        following = self.lexemes[at + 1][0] if at + 1 < len(self.lexemes) else ""
        if word in _words("negations") or (word == "stop" and following.endswith("ing")):
            self.negated = not self.negated
            return True
        if in_name:
            return False
        if word in _words("qualifying"):
            self.phrase += 1
            return True
        if word in _words("placing"):
            self.clause, self.phrase = self.clause + 1, 0
        if word in {"before", "after"}:
            first, second = ("first", "second") if word == "before" else ("second", "first")
            self.role_after_comma = self.role_after_comma if self.terms else first
            self.give_role(first)
            self.role = second
        elif word == "from":
            self.role = "old"
        elif word in {"to", "into", "onto", "with", "by"}:
            self.read_target(word)
        else:
            return word == "let" and following in {"me", "us"}
        return True

    def read_target(self, word: str) -> None:
        """What stands before is turned into what follows (rename a to b), or brought there (send a to b)."""
        if self.role == "old":
            self.role = "new"
        elif word not in {"with", "by"} and self.terms:
            self.give_role("source")
            self.role = "target"

    def read_word(self, at: int) -> None:
        word, _, in_name = self.lexemes[at]
        stem = stem_of(word)
        sense = _english_sense(word)
        if sense and sense[3] == "action" and self.is_quality(at):
            sense = None
        if word in english.NUMBERS and not in_name:
            self.values.add(str(english.NUMBERS[word]))
            return
        if at and self.lexemes[at - 1][1] == "number" and word in english.UNITS:
            return
        if sense:
            self.add_sense(sense, stem, in_name=in_name)
        elif in_name or not (word in STOP_WORDS or stem in _words_and_stems("frames")):
            weight = LIGHT if word in STOP_WORDS and len(word) > 1 else NAMED if in_name else PLAIN
            self.add(stem, stem, weight)

    def is_quality(self, at: int) -> bool:
        """Whether a participle says what a thing is like (the generated files) and not what is done."""
        word, _, in_name = self.lexemes[at]
        if not word.endswith("ed") or in_name or not self.terms or at + 1 == len(self.lexemes):
            return False
        following, kind, _ = self.lexemes[at + 1]
        return kind == "word" and following not in STOP_WORDS

    def read_korean(self, word: str) -> None:
        stem = korean.stem(word)
        if stem in _words("korean negations") or word in _words("korean negations"):
            self.turn_last()
        elif word == "안":
            self.negated = True
        elif sense := _korean_sense(word):
            self.add_sense(sense, stem)
        elif not (stem in _words_and_stems("frames") or word in _words_and_stems("frames")):
            self.add(stem, stem, PLAIN)

    def read_number(self, at: int) -> None:
        number = self.lexemes[at][0]
        before = self.lexemes[at - 1][0] if at else ""
        if thing := _numbered_thing(self.lexemes, at):
            self.numbered.add(f"{thing} {number}")
            return
        self.values.add(number)
        if before == "from":
            self.number_from = number
        elif before == "to" and self.number_from:
            # From 30 to 60 is a raise.
            amounts = [PATTERNS["amount"].search(each) for each in (self.number_from, number)]
            old, new = [float(amount[0]) if amount else 0.0 for amount in amounts]
            if all(amounts) and old != new:
                self.add_sense(("up", 1 if old < new else -1, False, "action"), "up")

    def add_sense(self, sense: Sense, stem: str, *, in_name: bool = False) -> None:
        concept, sign, is_light, kind = sense
        if in_name and kind != "thing":
            # The verb in a name (created_at) is no action of the plan.
            self.add(stem, stem, NAMED)
        elif is_light and self.negated and concept not in _words("negatable"):
            # "Don't use X" is without X.
            self.put(Term(concept, stem, 1, LIGHT, kind, self.role))
        else:
            weight = NAMED if in_name else LIGHT if is_light and not self.negated else PLAIN
            self.add(concept, stem, weight, sign, kind)

    def add(self, concept: str, stem: str, weight: float, sign: int = 1, kind: str = "thing") -> None:
        if self.negated:
            sign, self.negated = -sign, False
        self.put(Term(concept, stem, sign, weight, kind, self.role))

    def put(self, term: Term) -> None:
        # The verb, which comes first, stays where it is.
        self.ranks.append((self.clause, -self.phrase) if self.terms else (-1, 0))
        self.terms.append(term)

    def latest(self) -> range:
        """The places of the last terms, backwards."""
        return range(len(self.terms) - 1, max(0, len(self.terms) - _TERMS_BACK_MAX) - 1, -1)

    def turn_last(self) -> None:
        """A Korean negation stands after its verb, which with a light one means the thing before: 캐시를 쓰지 않고."""
        for at in self.latest():
            term = self.terms[at]
            if term.weight > LIGHT or term.concept in _words("negatable"):
                self.terms[at] = replace(term, sign=-term.sign, weight=max(term.weight, PLAIN))
                return

    def give_role(self, role: str) -> None:
        """Give the role to every term that has none yet."""
        for at in range(self.roles_given, len(self.terms)):
            if not self.terms[at].role:
                self.terms[at] = replace(self.terms[at], role=role)
        self.roles_given = len(self.terms)


def _numbered_thing(lexemes: list[Lexeme], at: int) -> str:
    """What a number tells apart, or nothing if it is an amount."""
    number = lexemes[at][0]
    before, kind, in_name = lexemes[at - 1] if at else ("", "", False)
    after, kind_after, _ = lexemes[at + 1] if at + 1 < len(lexemes) else ("", "", False)
    if number[0] == "#":
        return "#"
    if before in _words("before a status") and PATTERNS["http status"].fullmatch(number):
        return "status"
    if not number.isdigit():
        return ""
    if kind_after == "hangul" and after.startswith("포트"):
        return "port"
    is_last = kind_after in {"", "comma", "hangul"} or (after in STOP_WORDS and after not in english.UNITS)
    if kind not in {"word", "hangul"} or in_name or before in STOP_WORDS | _words("near amounts") or not is_last:
        return ""
    stem = stem_of(before)
    sense = _korean_sense(before) if before >= "가" else senses().get(stem)
    thing = sense[0] if sense else stem
    return thing if _words_and_stems("quantities").isdisjoint((thing, stem)) else ""


def lexemes(text: str) -> Iterator[Lexeme]:
    """The words, numbers and commas in order; a name comes in its parts, a particle after a Latin word is left out."""
    for match in PATTERNS["lexeme"].finditer(text):
        kind, word = match.lastgroup or "", match[0]
        if kind == "hangul":
            before = text[match.start() - 1 : match.start()]
            if not (before.isascii() and before.isalnum() and korean.is_suffix(word)):
                yield word, kind, False
        elif kind == "word":
            parts = [word] if "'" in word else PATTERNS["name part"].findall(word)
            for part in parts:
                yield part.lower().removesuffix("'s"), kind, len(parts) > 1
        else:
            yield word.lower(), kind, False


def stem_of(word: str) -> str:
    """The stem of one word in small letters, Korean or not."""
    return korean.stem(word) if word[0] >= "가" else next(iter(tokens(word)), word)


@cache
def senses() -> dict[str, Sense]:
    """What each listed stem, or several joined by `_`, stands for."""
    table: dict[str, Sense] = {}
    for section, kind in (("actions", "action"), ("qualities", "quality"), ("things", "thing")):
        for line in entries("approaches", section):
            name, _, sides = line.partition(":")
            for sign, side in zip((1, -1), sides.split("|"), strict=False):
                for word in side.split():
                    bare = word.strip("~")
                    stem = bare if bare >= "가" else "_".join(map(stem_of, bare.split("_")))
                    table.setdefault(stem, (name.strip("~"), sign, "~" in (word[0], name[0]), kind))
    return table


def _english_sense(word: str) -> Sense | None:
    """What a word stands for; a noun made of a verb (generator, attachment) is no action."""
    sense = senses().get(stem_of(word))
    if sense and sense[3] == "action" and word.endswith(_noun_endings()) and word not in _words("actions"):
        return None
    return sense


def _korean_sense(word: str) -> Sense | None:
    """What a Korean word stands for: the longest listed beginning that is followed by nothing but endings."""
    stem = korean.stem(word)
    if len(stem) > 1 and stem in senses():
        return senses()[stem]
    for size in range(min(len(word), _KOREAN_CHARS_MAX), 0, -1):
        sense = senses().get(word[:size])
        if sense and (size == len(word) or korean.is_suffix(word[size:])):
            return sense
    return None


@cache
def _phrase_starts() -> dict[str, int]:
    """For each stem that begins a listed phrase, how many words the longest such phrase has."""
    starts: dict[str, int] = {}
    for stem in senses():
        first, *more = stem.split("_")
        if more:
            starts[first] = max(starts.get(first, 0), 1 + len(more))
    return starts


@cache
def _words(section: str) -> frozenset[str]:
    return frozenset([word.strip("~") for word in listed("approaches", section)])


@cache
def _words_and_stems(section: str) -> frozenset[str]:
    return _words(section).union(map(stem_of, _words(section)))


@cache
def _noun_endings() -> tuple[str, ...]:
    return tuple(listed("approaches", "noun endings"))

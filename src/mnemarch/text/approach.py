"""Whether two plans of what to try next are one approach in other words.

An approach is an action on a thing. Synonyms of either, phrases such as "let me try to", reasons, and details that only
one plan gives make no difference. These differences count:

- an opposite: raise and lower, add and remove, `cache` and `don't cache`;
- another thing in the same place: the pool of checkout and the pool of search, debounce and throttle;
- another action on the same thing: raise the timeout of a test, skip that test;
- the two sides exchanged: rename a to b and b to a, x before y and y before x.

Another amount or version makes no difference: the same idea with another value is the same idea tried again (pool size
50 and 100, numpy 1.26 and 2.0). Two kinds of numbers do count: a number that identifies a thing (port 8080, line 40,
issue #12, status 401, foo_2), and zero against any other amount, because zero switches off.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from mnemarch.model.value import Frozen, replace
from mnemarch.text import english, korean
from mnemarch.text.canonical import canonical_key, compatible
from mnemarch.text.tokens import tokens
from mnemarch.text.words import STOP_WORDS, Patterns, entries, listed

# The threshold. Of the different dev pairs in bench/loops/approaches.jsonl, one reaches it.
SAME_AT = 0.6

# The costs of a word that the other plan lacks: if both plans lack words, if only one does, and for an action.
_LACKED_BY_BOTH, _LACKED_BY_ONE, _ACTION_LACKED = 1.0, 0.2, 0.3
# The factors of a likeness for opposed plans, and for plans with another thing in the same place.
_OPPOSED, _IN_ITS_PLACE = 0.3, 0.6

# What developers call an approach is shorter: 31 characters in the middle, 56 for 19 of 20.
_PLAN_CHARS_MAX = 100
# A longer text is no approach. It is equal only to itself.
_READ_CHARS_MAX = 2_000
_EXCHANGED = ({"old", "new"}, {"first", "second"}, {"source", "target"})
# The minimum weight of the words before a reason. With less, the reason is not left out.
_WEIGHT_BEFORE_REASON_MIN = 2.0

# A word in lower case, its kind (word, hangul, number, comma or mark), and whether it is part of a name.
Lexeme = tuple[str, str, bool]
# The meaning of a word: its concept, its sign, whether the word says little, and whether it is an action, a quality or
# a thing.
Sense = tuple[str, int, bool, str]

# The weights of words: a light one such as use or set, any other, and a part of a name.
_LIGHT, _PLAIN, _NAMED = 0.15, 1.0, 1.25

_PATTERNS = Patterns("approaches", "patterns")
# Concepts of running and looking. A plan with these alone tries nothing.
_LOOKING = frozenset(listed("approaches", "looking"))
_NOUN_ENDINGS = tuple(listed("approaches", "noun endings"))
# The length of the longest listed Korean word.
_KOREAN_CHARS_MAX = 8
# How many terms back a word searches for the term it modifies.
_TERMS_BACK_MAX = 12


class Approach(Frozen):
    """The analysed form of a plan: its terms in order, and the sets that a comparison looks up."""

    terms: tuple[Term, ...]
    concepts: frozenset[str]
    signs: frozenset[tuple[str, int]]
    stems: frozenset[str]
    # Stems of two words written as one, and of each of the two: SQLAlchemy and sqlalchemy are the same name.
    joined: frozenset[tuple[str, str, str]]
    # Amounts, and things that are identified by a number.
    values: frozenset[str]
    numbered: frozenset[str]
    # Whether it says in a sentence what is tried. A long thought, or "run the tests again", does not.
    is_plan: bool


def approach(text: str) -> Approach:
    """The plan in a text. Only sentences that state an intention count, if there are any, without their reasons."""
    text = compatible(text).replace("’", "'")
    is_read = len(text) <= _READ_CHARS_MAX
    sentences = [part for part in _PATTERNS["sentence end"].split(text) if part.strip()] if is_read else []
    intended = [part for part in sentences if _PATTERNS["intent"].search(part)]
    plan = [_without_reason(part) for part in intended or sentences]
    terms = [term for sentence in plan for term in sentence.terms]
    if not terms and text.strip():
        # The text has no terms, or is too long. It is equal only to itself.
        terms = [Term(canonical_key(text), canonical_key(text), 1, _PLAIN, "thing", "")]
    tries = any(term.weight > _LIGHT and term.concept not in _LOOKING for term in terms)
    only_looks = not tries and any(term.concept in _LOOKING for term in terms)
    return _analysed(terms, plan, is_plan=not only_looks and len(text) <= _PLAN_CHARS_MAX)


def _without_reason(part: str) -> Sentence:
    reason = _PATTERNS["reason"].search(part)
    before = Sentence(part[: reason.start()] if reason else part)
    is_enough = _weight(before.terms) >= _WEIGHT_BEFORE_REASON_MIN
    return before if is_enough or reason is None else Sentence(part)


def _analysed(terms: list[Term], plan: list[Sentence], *, is_plan: bool) -> Approach:
    distinct: dict[tuple[str, int], Term] = {}
    for term in terms:
        first = distinct.setdefault((term.concept, term.sign), term)
        if first.role != term.role:
            # A term in two roles has no role: rename left_pad to pad.
            distinct[term.concept, term.sign] = replace(first, role="")
    return Approach(
        terms=tuple(distinct.values()),
        concepts=frozenset([term.concept for term in distinct.values()]),
        signs=frozenset(distinct),
        stems=frozenset([term.stem for term in distinct.values()]),
        joined=frozenset([words for sentence in plan for words in sentence.joined()]),
        values=frozenset([number for sentence in plan for number in sentence.values]),
        numbered=frozenset([thing for sentence in plan for thing in sentence.numbered]),
        is_plan=is_plan,
    )


def same_approach(left: Approach, right: Approach) -> bool:
    """Whether two plans are the same approach in any wording."""
    return similarity(left, right) >= SAME_AT


def similarity(left: Approach, right: Approach) -> float:
    """The similarity of two plans: 1 for the same, 0 for plans that share no term."""
    ours, ours_lacked = _compared(left, right)
    theirs, theirs_lacked = _compared(right, left)
    shared = ours + theirs
    if not shared:
        return 0.0
    lacked = sorted((_weight(ours_lacked), _weight(theirs_lacked)))
    actions = _weight([term for term in ours_lacked + theirs_lacked if term.kind == "action" and term.weight > _LIGHT])
    cost = _LACKED_BY_BOTH * lacked[0] + _LACKED_BY_ONE * lacked[1] + _ACTION_LACKED * actions
    likeness = shared / (shared + 2 * cost)
    if _opposed(left, right, ours_lacked, theirs_lacked):
        return likeness * _OPPOSED
    is_replaced = _replaced(left, right, ours_lacked, theirs_lacked)
    return likeness * _IN_ITS_PLACE if is_replaced or _acts_otherwise(ours_lacked, theirs_lacked) else likeness


def _weight(terms: list[Term]) -> float:
    return sum([term.weight for term in terms])


def _compared(own: Approach, other: Approach) -> tuple[float, list[Term]]:
    """The weight of the terms that the other plan has too, and the terms that it lacks."""
    shared, lacked = 0.0, []
    value_shared = bool(own.values & other.values)
    as_one = {part for whole, *parts in own.joined if whole in other.stems for part in parts}
    as_one.update([whole for whole, _, _ in other.joined])
    for term in own.terms:
        if (
            term.concept in other.concepts
            or term.stem in other.stems
            or term.stem in as_one
            # "Set it to 50" and "raise it to 50" agree, since the number gives the direction.
            or (term.concept == "up" and value_shared and not other.concepts.isdisjoint(("set", "change")))
        ):
            shared += term.weight
        else:
            lacked.append(term)
    return shared, lacked


def _opposed(left: Approach, right: Approach, ours_lacked: list[Term], theirs_lacked: list[Term]) -> bool:
    return (
        _turned_around(left, right, theirs_lacked)
        or _turned_around(right, left, ours_lacked)
        or (bool(left.numbered and right.numbered) and left.numbered.isdisjoint(right.numbered))
        or (bool(left.values and right.values) and (left.values == {"0"}) != (right.values == {"0"}))
        or _exchanged(left, right)
    )


def _turned_around(negative: Approach, positive: Approach, lacked: list[Term]) -> bool:
    """Whether one plan negates a term of the other. Disabling a thing and having none of it are the same."""
    switched_off = any(term.sign < 0 and term.kind == "action" for term in lacked)
    return any(
        term.sign < 0
        and (term.concept, -1) not in positive.signs
        and (term.concept, 1) in positive.signs
        and (term.concept, 1) not in negative.signs
        and (term.kind == "action" or not switched_off)
        for term in negative.terms
    )


def _exchanged(left: Approach, right: Approach) -> bool:
    """Whether more terms exchanged roles than kept them. Source and target count only if both begin alike."""
    ours, theirs = _roles(left), _roles(right)
    both = ours.keys() & theirs.keys()
    pairs = _EXCHANGED if left.terms[0].concept == right.terms[0].concept else _EXCHANGED[:2]
    kept = sum([ours[concept] == theirs[concept] for concept in both])
    return sum([{ours[concept], theirs[concept]} in pairs for concept in both]) > kept


def _roles(own: Approach) -> dict[str, str]:
    return {term.concept: term.role for term in own.terms if term.role and term.kind != "action"}


def _replaced(left: Approach, right: Approach, ours_lacked: list[Term], theirs_lacked: list[Term]) -> bool:
    """Whether one plan has another thing in the same place, or both have a name that the other lacks."""
    other_name = all(any(term.weight >= _NAMED for term in lacked) for lacked in (ours_lacked, theirs_lacked))
    return other_name or not _places(left, ours_lacked).isdisjoint(_places(right, theirs_lacked))


def _acts_otherwise(ours_lacked: list[Term], theirs_lacked: list[Term]) -> bool:
    """Whether each plan has an action that the other lacks, at least one of them a specific action."""
    acts = [[term.weight for term in lacked if term.kind == "action"] for lacked in (ours_lacked, theirs_lacked)]
    return all(acts) and max(map(max, acts)) > _LIGHT


def _places(own: Approach, lacked: list[Term]) -> set[tuple[str, str]]:
    """The places of the lacked terms: the shared concepts before and after them."""
    missing = set(map(id, lacked))
    places = set()
    before, is_open = "", False
    for term in own.terms:
        if term.weight <= _LIGHT:
            continue
        if id(term) in missing:
            is_open = True
            continue
        if is_open:
            places.add((before, term.concept))
        before, is_open = term.concept, False
    if is_open:
        places.add((before, ""))
    return places


# Reading a sentence of a plan: its actions and things with their signs and roles, and its numbers


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
        """The thing before is turned into the thing after it (rename a to b), or is brought there (send a to b)."""
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
            weight = _LIGHT if word in STOP_WORDS and len(word) > 1 else _NAMED if in_name else _PLAIN
            self.add(stem, stem, weight)

    def is_quality(self, at: int) -> bool:
        """Whether a participle describes a thing (the generated files) and is no action."""
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
            self.add(stem, stem, _PLAIN)

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
            amounts = [_PATTERNS["amount"].search(each) for each in (self.number_from, number)]
            old, new = [float(amount[0]) if amount else 0.0 for amount in amounts]
            if all(amounts) and old != new:
                self.add_sense(("up", 1 if old < new else -1, False, "action"), "up")

    def add_sense(self, sense: Sense, stem: str, *, in_name: bool = False) -> None:
        concept, sign, is_light, kind = sense
        if in_name and kind != "thing":
            # The verb in a name (created_at) is no action of the plan.
            self.add(stem, stem, _NAMED)
        elif is_light and self.negated and concept not in _words("negatable"):
            # "Don't use X" is without X.
            self.put(Term(concept, stem, 1, _LIGHT, kind, self.role))
        else:
            weight = _NAMED if in_name else _LIGHT if is_light and not self.negated else _PLAIN
            self.add(concept, stem, weight, sign, kind)

    def add(self, concept: str, stem: str, weight: float, sign: int = 1, kind: str = "thing") -> None:
        if self.negated:
            sign, self.negated = -sign, False
        self.put(Term(concept, stem, sign, weight, kind, self.role))

    def put(self, term: Term) -> None:
        # The verb, which comes first, stays where it is.
        self.ranks.append((self.clause, -self.phrase) if self.terms else (-1, 0))
        self.terms.append(term)

    def turn_last(self) -> None:
        """Negate the last term, since a Korean negation follows its verb. Light verbs are skipped: 캐시를 쓰지 않고."""
        for at in reversed(range(len(self.terms))[-_TERMS_BACK_MAX:]):
            term = self.terms[at]
            if term.weight > _LIGHT or term.concept in _words("negatable"):
                self.terms[at] = replace(term, sign=-term.sign, weight=max(term.weight, _PLAIN))
                return

    def give_role(self, role: str) -> None:
        """Give the role to every term that has none yet."""
        for at in range(self.roles_given, len(self.terms)):
            if not self.terms[at].role:
                self.terms[at] = replace(self.terms[at], role=role)
        self.roles_given = len(self.terms)


def _numbered_thing(lexemes: list[Lexeme], at: int) -> str:
    """The thing that a number identifies. Empty for an amount."""
    number = lexemes[at][0]
    before, kind, in_name = lexemes[at - 1] if at else ("", "", False)
    after, kind_after, _ = lexemes[at + 1] if at + 1 < len(lexemes) else ("", "", False)
    if number[0] == "#":
        return "#"
    if before in _words("before a status") and _PATTERNS["http status"].fullmatch(number):
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
    """The words, numbers and commas in order, with names in their parts and without particles after Latin words."""
    for match in _PATTERNS["lexeme"].finditer(text):
        kind, word = match.lastgroup or "", match[0]
        if kind == "hangul":
            before = text[match.start() - 1 : match.start()]
            if not (before.isascii() and before.isalnum() and korean.is_suffix(word)):
                yield word, kind, False
        elif kind == "word":
            parts = [word] if "'" in word else _PATTERNS["name part"].findall(word)
            for part in parts:
                yield part.lower().removesuffix("'s"), kind, len(parts) > 1
        else:
            yield word.lower(), kind, False


def stem_of(word: str) -> str:
    """The stem of a lower-case word, English or Korean."""
    return korean.stem(word) if word[0] >= "가" else next(iter(tokens(word)), word)


@cache
def senses() -> dict[str, Sense]:
    """The meaning of each listed stem, or of several stems joined by `_`."""
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
    """The meaning of a word. A noun made from a verb (generator, attachment) is no action."""
    sense = senses().get(stem_of(word))
    if sense and sense[3] == "action" and word.endswith(_NOUN_ENDINGS) and word not in _words("actions"):
        return None
    return sense


def _korean_sense(word: str) -> Sense | None:
    """The meaning of a Korean word: that of the longest listed beginning that only endings follow."""
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
    """For each stem that begins listed phrases: the number of words in the longest of them."""
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

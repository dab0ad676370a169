"""Reading a plan: its actions and things with their signs and roles, its numbers, and what is only said around it."""

from __future__ import annotations

import re
from functools import cache

from mnemarch.model.value import replace
from mnemarch.text import approach_senses as senses
from mnemarch.text import english, hangul
from mnemarch.text.approach_lexemes import ends, intent, lexemes, reason
from mnemarch.text.approach_terms import LIGHT, NAMED, PLAIN, Approach, Term, beginnings
from mnemarch.text.canonical import canonical_key, compatible
from mnemarch.text.empty_words import STOP_WORDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.text.approach_lexemes import Lexeme

# Before any phrase of a clause.
_FIRST = -(1 << 30)
_QUALIFYING = frozenset({"of", "for", "in", "on", "at"})
_PLACING = frozenset({"to", "into", "with", "by", "from", "before", "after", "as", "via", "using"})
_TURNING = frozenset({"replace", "convert", "rename", "change", "move"})
_KOREAN_NEGATIONS = frozenset({"않", "말", "못", "없", "말고", "없이", "않고", "않게"})
_NEAR_AMOUNTS = frozenset({"below", "above", "least", "most", "about", "exactly", "under", "over"})
_BEFORE_STATUS = frozenset({"return", "returns", "http", "on", "a", "an", "status", "respond", "responds", "answers"})
# How far a word that is about an earlier one looks for it.
_LOOKED_BACK = 12
# So much has to stand before a reason for the reason to be left out.
_SAID_ENOUGH = 2.0


def read(text: str) -> Approach:
    """The plan in a text; reasons, and sentences beside those that say what will be done, are what is around it."""
    text = compatible(text).replace("’", "'")
    sentences = [part for part in ends().split(text) if part.strip()]
    meant = [intent().search(part) is not None for part in sentences]
    says_intent = any(meant)
    plan, around = _Reading(), _Reading()
    for part, is_meant in zip(sentences, meant, strict=True):
        if says_intent and not is_meant:
            around.read(part)
        else:
            _read_with_reason(part, plan, around)
    if not plan.terms and text.strip():
        # Nothing but a frame, a number or signs: alike only to itself.
        plan.add(canonical_key(text), canonical_key(text), PLAIN)
    return plan.result(around)


def _read_with_reason(part: str, plan: _Reading, around: _Reading) -> None:
    because = reason().search(part)
    if because:
        head = _Reading()
        head.read(part[: because.start()])
        if sum(term.weight for term in head.terms) >= _SAID_ENOUGH:
            around.read(part[because.end() :])
            part = part[: because.start()]
    plan.read(part)


class _Reading:
    """A reading from left to right: a negation turns the next word around, a preposition gives roles."""

    def __init__(self) -> None:
        self.terms: list[Term] = []
        self.values: set[str] = set()
        self.numbered: set[str] = set()
        self.parts: set[tuple[str, str]] = set()
        self.places: list[tuple[int, int]] = []
        self.start = self.roleless = self.clause = self.phrase = 0
        self.negated = self.turning = False
        self.role = self.role_after_comma = ""
        self.number_from = ""

    def result(self, around: _Reading) -> Approach:
        terms: dict[tuple[str, int], Term] = {}
        for term in self.terms:
            had = terms.setdefault((term.concept, term.sign), term)
            if had.role != term.role:
                # On both sides of the plan it says nothing of the roles: rename left_pad to pad.
                terms[term.concept, term.sign] = replace(had, role="")
        stems = frozenset([term.stem for term in terms.values()])
        return Approach(
            terms=tuple(terms.values()),
            concepts=frozenset([term.concept for term in terms.values()]),
            signs=frozenset(terms),
            stems=stems,
            beginnings=frozenset([beginning for stem in stems for beginning in beginnings(stem)]),
            compounds=frozenset([compound for compound, _ in self.parts]),
            parts=frozenset(self.parts),
            around=frozenset([term.concept for term in around.terms]),
            values=frozenset(self.values),
            numbered=frozenset(self.numbered),
            is_latin=not any("가" <= stem[0] <= "힣" for stem in stems),
        )

    def read(self, text: str) -> None:
        self.start = self.roleless = len(self.terms)
        self.negated = self.turning = False
        self.role = self.role_after_comma = ""
        self.clause, self.phrase = self.clause + 1, 0
        found = list(lexemes(text))
        at = 0
        while at < len(found):
            at += self.step(found, at)
        self.arrange()
        self.join([word for word, kind, _ in found if kind in {"word", "hangul", "number"}])

    def arrange(self) -> None:
        """What qualifies goes before what it qualifies: the size of the pool is the pool size."""
        ranks = sorted(range(self.start, len(self.terms)), key=self.places.__getitem__)
        self.terms[self.start :] = [self.terms[at] for at in ranks]

    def put(self, term: Term) -> None:
        # The verb, which comes first, stays where it is.
        self.places.append((self.clause, -self.phrase if len(self.terms) > self.start else _FIRST))
        self.terms.append(term)
        self.turning = self.turning or term.concept in _TURNING

    def join(self, written: list[str]) -> None:
        """What two or three neighbours make when written as one: lock file, lockfile."""
        for size in (2, 3):
            for at in range(len(written) - size + 1):
                parts = written[at : at + size]
                if len({part.isascii() for part in parts}) == 1:
                    compound = senses.stem_of("".join(parts))
                    self.parts.update([(compound, senses.stem_of(part)) for part in parts])

    def step(self, lexemes: list[Lexeme], at: int) -> int:
        """Read what stands at a place; how many words that were."""
        word, kind, _ = lexemes[at]
        if kind == "mark":
            return 1
        if kind == "comma":
            self.clause, self.phrase = self.clause + 1, 0
            if self.role_after_comma:
                self.role, self.role_after_comma = self.role_after_comma, ""
        elif kind == "number":
            self.read_number(lexemes, at)
        elif size := self.read_phrase(lexemes, at):
            return size
        elif kind == "hangul":
            self.read_korean(word)
        elif not self.read_marker(lexemes, at):
            self.read_word(lexemes, at)
        return 1

    def read_phrase(self, lexemes: list[Lexeme], at: int) -> int:
        longest = senses.phrase_starts().get(senses.stem_of(lexemes[at][0]), 0)
        for size in range(min(longest, len(lexemes) - at), 1, -1):
            stems = [senses.stem_of(word) for word, _, _ in lexemes[at : at + size]]
            found = senses.sense("_".join(stems))
            if found:
                if found[0] == "replace":
                    self.give_role("new")
                    self.role = "old"
                self.add_sense(found, stems[0], in_name=False)
                return size
        return 0

    def read_marker(self, lexemes: list[Lexeme], at: int) -> bool:
        """Whether the word only says something about its neighbours."""
        word, _, in_name = lexemes[at]
        following = lexemes[at + 1][0] if at + 1 < len(lexemes) else ""
        if word in senses.negations() or (word == "stop" and following.endswith("ing")):
            self.negated = not self.negated
            return True
        if in_name:
            return False
        if word == "let" and following in {"me", "us"}:
            return True
        if word == "again":
            self.repeat_last()
            return True
        if word in _QUALIFYING:
            self.phrase += 1
            return True
        if word in _PLACING:
            self.clause, self.phrase = self.clause + 1, 0
        if word in {"before", "after"}:
            first, second = ("first", "second") if word == "before" else ("second", "first")
            if len(self.terms) == self.start:
                self.role_after_comma = first
            self.give_role(first)
            self.role = second
        elif word == "from":
            self.role = "old"
        elif word in {"to", "into", "onto", "with", "by"}:
            self.read_target(word)
        else:
            return False
        return True

    def read_target(self, word: str) -> None:
        """What stands before is turned into what follows (rename a to b), or brought there (send a to b)."""
        if self.role == "old":
            self.role = "new"
        elif self.turning:
            self.give_role("old")
            self.role = "new"
        elif word not in {"with", "by"} and len(self.terms) > self.start:
            self.give_role("source")
            self.role = "target"

    def read_word(self, lexemes: list[Lexeme], at: int) -> None:
        word, _, in_name = lexemes[at]
        stem = senses.stem_of(word)
        found = senses.word_sense(word)
        if found and found[3] == "action" and self.is_quality(lexemes, at):
            found = None
        if word in english.NUMBERS and not in_name:
            self.values.add(str(english.NUMBERS[word]))
            return
        if word in {"raise", "raising", "raises"} and any(
            near.endswith(("error", "exception")) for near, _, _ in lexemes[at + 1 : at + 4]
        ):
            found = senses.sense("throw")
        if at and lexemes[at - 1][1] == "number" and word in english.UNITS:
            return
        if found is None and not in_name and (word in STOP_WORDS or senses.is_frame(stem)):
            return
        if found:
            self.add_sense(found, stem, in_name=in_name)
        else:
            self.add(stem, stem, LIGHT if word in STOP_WORDS and len(word) > 1 else NAMED if in_name else PLAIN)

    def is_quality(self, lexemes: list[Lexeme], at: int) -> bool:
        """Whether a participle says what a thing is like (the generated files) and not what is done."""
        word, _, in_name = lexemes[at]
        if not word.endswith("ed") or in_name or len(self.terms) == self.start or at + 1 == len(lexemes):
            return False
        following, kind, _ = lexemes[at + 1]
        return kind == "word" and following not in STOP_WORDS

    def read_korean(self, word: str) -> None:
        stem = hangul.stem(word)
        if stem in _KOREAN_NEGATIONS or word in _KOREAN_NEGATIONS:
            self.turn_last()
        elif word == "안":
            self.negated = True
        elif found := senses.korean_sense(word):
            self.add_sense(found, stem, in_name=False)
        elif not (senses.is_frame(stem) or senses.is_frame(word)):
            self.add(stem, stem, PLAIN)

    def read_number(self, lexemes: list[Lexeme], at: int) -> None:
        number = lexemes[at][0]
        before = lexemes[at - 1][0] if at else ""
        if before and senses.is_frame(senses.stem_of(before)):
            return  # Attempt 2.
        if thing := _numbered(lexemes, at):
            self.numbered.add(f"{thing} {number}")
        else:
            self.values.add(number)
            if before == "from":
                self.number_from = number
            elif before == "to" and self.number_from:
                self.read_change(self.number_from, number)

    def read_change(self, old: str, new: str) -> None:
        """From 30 to 60 is a raise."""
        amounts = [float(match[0]) for number in (old, new) if (match := _amount().search(number))]
        if len(amounts) == 2 and amounts[0] != amounts[1]:
            self.add_sense(("up", 1 if amounts[0] < amounts[1] else -1, False, "action"), "up", in_name=False)

    def add_sense(self, found: senses.Sense, stem: str, *, in_name: bool) -> None:
        concept, sign, light, kind = found
        if in_name and kind != "thing":
            # The verb in a name (created_at) is no action of the plan.
            self.add(stem, stem, NAMED)
        elif light and self.negated and concept not in {"run", "add"}:
            # "Don't use X" is without X.
            self.put(Term(concept, stem, 1, LIGHT, kind, self.role))
        else:
            weight = NAMED if in_name else LIGHT if light and not self.negated else PLAIN
            self.add(concept, stem, weight, sign, kind)

    def add(self, concept: str, stem: str, weight: float, sign: int = 1, kind: str = "thing") -> None:
        if self.negated:
            sign, self.negated = -sign, False
        self.put(Term(concept, stem, sign, weight, kind, self.role))

    def latest(self) -> range:
        """The places of the last terms of this sentence, backwards."""
        return range(len(self.terms) - 1, max(self.start, len(self.terms) - _LOOKED_BACK) - 1, -1)

    def repeat_last(self) -> None:
        """Run the query again: a retry."""
        for at in self.latest():
            found = senses.sense(self.terms[at].stem + "_again")
            if found:
                self.terms[at] = replace(self.terms[at], concept=found[0], sign=found[1], weight=PLAIN, kind=found[3])
                return

    def turn_last(self) -> None:
        """A Korean negation stands after its verb, which with a light one means the thing before: 캐시를 쓰지 않고."""
        for at in self.latest():
            term = self.terms[at]
            if term.weight > LIGHT or term.concept in {"run", "add"}:
                self.terms[at] = replace(term, sign=-term.sign, weight=max(term.weight, PLAIN))
                return

    def give_role(self, role: str) -> None:
        """The role of everything of this sentence that none was given to yet."""
        for at in range(self.roleless, len(self.terms)):
            if not self.terms[at].role:
                self.terms[at] = replace(self.terms[at], role=role)
        self.roleless = len(self.terms)


def _numbered(lexemes: list[Lexeme], at: int) -> str:
    """What a number tells apart, or nothing if it is an amount."""
    number = lexemes[at][0]
    before, kind, in_name = lexemes[at - 1] if at else ("", "", False)
    after, kind_after, _ = lexemes[at + 1] if at + 1 < len(lexemes) else ("", "", False)
    if number[0] == "#":
        return "#"
    if before in _BEFORE_STATUS and _status().fullmatch(number):
        return "status"
    if not number.isdigit():
        return ""
    if kind_after == "hangul" and after.startswith("포트"):
        return "port"
    ends = kind_after in {"", "comma", "hangul"} or (after in STOP_WORDS and after not in english.UNITS)
    if kind not in {"word", "hangul"} or in_name or before in STOP_WORDS | _NEAR_AMOUNTS or not ends:
        return ""
    return senses.numbered_thing(before)


@cache
def _status() -> re.Pattern[str]:
    return re.compile("[1-5][0-9][0-9]")


@cache
def _amount() -> re.Pattern[str]:
    return re.compile(r"\d+(?:\.\d+)?")

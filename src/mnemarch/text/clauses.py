"""The meanings of words, and the parts of a sentence: its opening, subject, predicate, cases, conditions and asides."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from mnemarch.text import english, korean
from mnemarch.text.cache import cached
from mnemarch.text.guarded import EXTENTS, Piece, pieces
from mnemarch.text.slots import COPULAS, DETERMINERS, without_particle, word_set
from mnemarch.text.statements import PERIODS
from mnemarch.text.tokens import tokens
from mnemarch.text.words import STOP_WORDS, Patterns, grouped, is_hangul, listed

_PATTERNS = Patterns("senses", "patterns")
_CLAUSE_PIECES_MIN = 3
_PRONOUNS = frozenset({"we", "you", "i", "they", "it"})
_KOREAN_CASES = frozenset({"에서", "에서는", "에서만", "에선", "에는", "에서의", "에게", "에게는"})


@cache
def _senses() -> dict[str, frozenset[str]]:
    """The senses of each root. Senses of relations begin with ~."""
    table: dict[str, set[str]] = {}
    for section, mark in (("things", ""), ("relations", "~")):
        for name, words in grouped("senses", section).items():
            for word in words:
                table.setdefault(root_of(word), set()).add(mark + name)
    return {word: frozenset(names) for word, names in table.items()}


@cache
def _korean_senses() -> list[tuple[str, frozenset[str]]]:
    """Korean words with their senses, the longest first."""
    known = [(word, names) for word, names in _senses().items() if is_hangul(word)]
    return sorted(known, key=lambda each: -len(each[0]))


@cached(8192)
def root_of(word: str) -> str:
    if is_hangul(word):
        return word
    if word[:2] == "re" and word[2:] in english.irregular_forms():
        word = "re" + english.irregular_forms()[word[2:]]
    told = tokens(word.lower().replace("-", ""))
    return told[0] if told else word


@cached(8192)
def senses_of(key: str) -> frozenset[str]:
    if not is_hangul(key):
        return _senses().get(key, frozenset())
    senses: set[str] = set()
    size = 0
    for word, names in _korean_senses():
        if key.startswith(word) and len(word) >= size:
            size = len(word)
            senses |= names
    return frozenset(senses)


@cache
def words_of(section: str) -> tuple[str, ...]:
    """The words of a section of senses.txt, to search or to match as beginnings."""
    return tuple(listed("senses", section))


@cache
def roots(section: str) -> frozenset[str]:
    return frozenset(root_of(word) for word in listed("senses", section))


@cache
def function_words() -> frozenset[str]:
    return STOP_WORDS | DETERMINERS | word_set("boundaries") | word_set("slot prepositions")


@cache
def auxiliaries() -> frozenset[str]:
    return COPULAS | (word_set("modals") - {"to", "need", "needs"}) | frozenset(listed("senses", "auxiliaries"))


def root_of_piece(piece: Piece) -> str:
    what, key, shape, written, _ = piece
    if what == "number":
        return key
    if what in ("identifier", "quoted"):
        return key.casefold().removesuffix("()")
    if is_hangul(written):
        noun, particle = korean.parted(written)
        if what == "opposite" or (particle and not korean.is_copula(particle)):
            return noun
        if korean.is_noun_copula(written):
            return noun
        return (korean.bare_stem(shape) or shape) if written.endswith(words_of("korean finals")) else shape or written
    return root_of(written)


class Clauses:
    """The pieces of one text, and where its parts begin and end."""

    def __init__(self, found: Sequence[Piece], slots: dict[int, int], is_korean: bool) -> None:
        self.found, self.is_korean = found, is_korean
        self.slots = slots
        self.slot_of = {at: start for start, end in slots.items() for at in range(start, end)}
        self.lead_end = 0
        self.main_end = len(found)
        self.verb = 0
        self.cases: set[int] = set()
        self.conditions: set[int] = set()
        self.asides: set[int] = set()
        self.denied: dict[int, str] = {}

    def place(self, told: str) -> None:
        """Find the begin and end of the statement itself, its verb, and its cases."""
        name = "korean clause" if self.is_korean else "clause"
        opening = None if self.is_korean else _PATTERNS["opening"].match(told)
        start = opening.end() if opening else 0
        if opening:
            self.lead_end = len(pieces(told[:start]))
        for clause in _PATTERNS[name].finditer(told, start):
            end = len(pieces(told[: clause.end() if self.is_korean else clause.start()]))
            if end - self.lead_end > _CLAUSE_PIECES_MIN:
                self.main_end = end
                break
        self.verb = self._korean_verb(told) if self.is_korean else self._english_verb()
        self._mark_cases()

    def _english_verb(self) -> int:
        """The index where the predicate begins."""
        words = [piece[3].lower() for piece in self.found]
        first = self.lead_end
        if self.is_verb_word(first) and words[first + 1 : first + 2] and words[first + 1] in DETERMINERS:
            return first
        for at in range(first, len(words)):
            if words[at] in auxiliaries():
                return at
            if words[at] in _PRONOUNS and at + 1 < len(words):
                return at + 1
            if at > first and self._is_finite(words, at):
                return at
        is_order = self.is_verb_word(first) or words[first : first + 1] == ["please"]
        guesses = [
            at for at in range(first + 1, len(words) - 1) if words[at].endswith(("s", "ed")) and self.found[at][2]
        ]
        return first if is_order or not guesses else guesses[0]

    def _is_finite(self, words: Sequence[str], at: int) -> bool:
        """Whether a word here is a known verb in a finite form: retries, kept, or retry after a plural."""
        before, after = words[at - 1], words[at + 1] if at + 1 < len(words) else ""
        if before in DETERMINERS or before in word_set("cases") or after in auxiliaries() or not self.is_verb_word(at):
            return False
        if self.found[at - 1][0] == "negation" and before != words[at] and before.endswith(words[at]):
            return False  # Unpaid orders.
        is_noun = any(sense[0] != "~" for sense in senses_of(root_of_piece(self.found[at])))
        if is_noun and self.found[at][0] == "word" and words[at].endswith("s") and self.is_verb_word(at + 1):
            return after.endswith("s") or after in function_words()  # The builds use; it retries.
        is_plural = any(word.endswith("s") or word in _PRONOUNS for word in words[self.lead_end : at])
        return words[at].endswith(("s", "ed")) or words[at] in english.irregular_forms() or is_plural

    def is_verb_word(self, at: int) -> bool:
        piece = self.found[at] if at < len(self.found) else None
        if piece is None or piece[0] not in ("opposite", "word"):
            return False
        if piece[0] == "opposite":
            word = piece[3].lower()
            after = self.found[at + 1][3].lower() if at + 1 < len(self.found) else ""
            is_kind = word in listed("opposites", "kinds") and after not in function_words() and after != ""
            is_kind = is_kind and not self.is_amount(at + 1)
            return not (word in function_words() or piece[1][:-1] in EXTENTS or is_kind)
        return any(sense[0] == "~" for sense in senses_of(root_of_piece(piece)))

    def _korean_verb(self, told: str) -> int:
        topic = _PATTERNS["korean topic"].search(told)
        return len(pieces(told[: topic.end()])) if topic else 0

    def _mark_cases(self) -> None:
        is_case = is_condition = is_named = False
        self.conditions |= set(range(self.lead_end))
        for at, piece in enumerate(self.found):
            word = piece[3].lower()
            if self.is_korean:
                if without_particle(piece)[1] in _KOREAN_CASES:
                    self.cases.add(at)
                    back = at
                    while back and not without_particle(self.found[back - 1])[1] and self.found[back - 1][0] == "word":
                        back -= 1
                        self.cases.add(back)
                if _PATTERNS["korean purpose"].search(piece[3]):
                    self.asides |= {at, at - 1}
                if at < self.main_end and _PATTERNS["korean condition"].search(piece[3]):
                    self.conditions |= set(range(max(self.verb if at >= self.verb else 0, 0), at + 1))
                continue
            if at == self.lead_end:
                is_case = is_condition = is_named = False
            if word in roots("conditions"):
                is_condition = True
            elif word in ("on", "upon") and self._is_event(at + 1):
                self.conditions |= {at, at + 1}
            elif word in word_set("cases"):
                is_case, is_named = True, False
            elif not piece[2]:
                is_case &= word in DETERMINERS and not is_named
            else:
                is_named = is_case
            if is_case:
                self.cases.add(at)
            if is_condition:
                self.conditions.add(at)

    def _is_event(self, at: int) -> bool:
        """Whether a bare event stands here, without an object: fires on create."""
        after = self.found[at + 1][3].lower() if at + 1 < len(self.found) else "and"
        same = at < len(self.found) and after == self.found[at][3].lower()
        is_last = same or after in function_words()
        return is_last and at < len(self.found) and root_of_piece(self.found[at]) in roots("events")

    def is_amount(self, at: int) -> bool:
        """Whether an amount begins here: 3 days, a week."""
        after = [piece[3].lower() for piece in self.found[at : at + 2]]
        is_number = at < len(self.found) and self.found[at][0] == "number"
        return is_number or (after[:1] in (["a"], ["an"]) and after[-1] in PERIODS)

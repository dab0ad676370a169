"""A statement as a small frame: its items, each with what it means and where it stands (R6).

Items are things, relations, values and denials. The meanings of words are in `data/senses.txt`.
"""

from __future__ import annotations

from mnemarch.model.value import Frozen, replace
from mnemarch.text import korean
from mnemarch.text.cache import cached
from mnemarch.text.clauses import (
    Clauses,
    auxiliaries,
    function_words,
    root_of,
    root_of_piece,
    roots,
    senses_of,
    words_of,
)
from mnemarch.text.conversation import speaker_of
from mnemarch.text.guarded import EXTENTS, Piece
from mnemarch.text.slots import COPULAS, DETERMINERS, has_hangul, without_particle, word_set
from mnemarch.text.statements import PERIODS, dimension_of, kinds_in, normal_amount, parts_of, without_asides
from mnemarch.text.words import Patterns, is_hangul, listed

_PATTERNS = Patterns("senses", "patterns")
# The dimension of an endless period: kept forever.
ENDLESS = "*"
# Poles that limit a number and don't deny anything: after 3 days, at most 5.
_BEFORE_NUMBERS = frozenset({"order", "than", "bound", "inside", "up"})
# A longer text is no plain statement.
_PIECES_MAX, _ITEMS_MAX, _ASIDES_MAX = 80, 24, 12
# How far from a verb its value is searched.
_NEAR = 5
_COPULAS = COPULAS | {"been", "being", "get", "gets", "got"}
_BEFORE_PERIODS = frozenset({"a", "an", "one", "every", "each", "per"})
_TOO = frozenset({"로도", "으로도", "에도", "에서도", "도"})
_KOREAN_FUNCTIONS = frozenset({"order", "has", "up", "than"})


class Item(Frozen):
    """One thing that a statement says.

    `senses` are the lines of senses.txt that contain it, `poles` the poles that have opposites.
    """

    at: int
    key: str
    written: str
    senses: frozenset[str] = frozenset()
    poles: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    # The dimension of an amount (time, size), or "#" for a plain number.
    amount: str = ""
    # Whether it numbers the name before it: Python 3.11.
    is_version: bool = False
    # The index where its value begins, and the word that leads to the value.
    slot: int = -1
    lead: str = ""
    is_relation: bool = False
    is_code: bool = False
    # Whether the word itself denies: forbidden.
    denies: bool = False
    is_case: bool = False
    is_condition: bool = False
    is_modifier: bool = False
    # Whether all things of its kind are meant: all amounts.
    is_all: bool = False
    # Whether no other things of its kind are meant: only admins.
    is_only: bool = False
    is_subject: bool = False
    # Whether it is an aside, which the statement doesn't need.
    is_aside: bool = False


class Frame(Frozen):
    items: tuple[Item, ...]
    # Whether it is one plain statement: no talk, no question, no long text.
    is_plain: bool
    is_korean: bool
    # Negations that deny the statement.
    negations: int
    # The places of values that are one of many: supports Python.
    many_at: frozenset[int]
    # Whether it states a possibility.
    is_possible: bool
    has_exception: bool
    # The preposition or conjunction that it begins with.
    opening: str
    # Whether it says at most, or at least.
    bounds: frozenset[str]


@cached(1024)
def frame_of(text: str) -> Frame:
    found, slots, _ = parts_of(text)
    if len(found) > _PIECES_MAX:
        found, slots = (), {}
    told = without_asides(text)[0] if found else ""
    reading = _Reading(found, slots, has_hangul(found))
    reading.place(told)
    # A text that is too long to be a statement has no pieces.
    is_talk = not found or (speaker_of(text) or " ").isalpha() or _PATTERNS["talk"].search(text) is not None
    return reading.frame(is_talk=is_talk, has_exception=_PATTERNS["exception"].search(text) is not None)


class _Reading(Clauses):
    """One text read from left to right."""

    def frame(self, *, is_talk: bool, has_exception: bool) -> Frame:
        items: list[Item] = []
        negations = 0
        for at, piece in enumerate(self.found):
            what, key, _, written, _ = piece
            if what == "negation":
                after = self.found[at + 1] if at + 1 < len(self.found) else None
                if after is not None and after[0] == "word" and written.endswith(after[3]) and self._modifies(at + 1):
                    self.denied[at + 1] = written  # Inactive sessions.
                    continue
                is_of_pole = (
                    key == "un" and after is not None and after[0] == "opposite" and after[1][:-1] not in EXTENTS
                )
                negations += not is_of_pole and at < self.main_end and at not in self.conditions
                continue
            before = items[-1] if items else None
            if (
                what == "opposite"
                and before
                and before.poles
                and before.written == written
                and self._follows(before, at)
            ):
                items[-1] = replace(before, poles=before.poles | {key})
                continue
            item = self._item(at, piece)
            if item is not None:
                items.append(item)
        words = {piece[3].lower() for piece in self.found[: self.main_end] if piece[3] != "May"}
        told = sum(not item.is_aside for item in items)
        return Frame(
            items=tuple(items),
            is_korean=self.is_korean,
            is_plain=not is_talk and len(items) - told <= _ASIDES_MAX and told <= _ITEMS_MAX,
            negations=negations,
            many_at=self._many(),
            is_possible=not words.isdisjoint(words_of("possible")),
            opening=self._opening(),
            bounds=self._bounds(),
            has_exception=has_exception,
        )

    def _many(self) -> frozenset[int]:
        """The places of values that are one of many, such as the objects of "supports" and "sends to"."""
        found: set[int] = set()
        for at, piece in enumerate(self.found[: self.main_end]):
            word, particle = piece[3].lower(), without_particle(piece)[1]
            if word in words_of("too") or (at >= self.verb and particle in _TOO):
                found |= set(range(len(self.found)))
            elif at >= self.verb and root_of(word) in roots("many objects"):
                found |= self._objects(at + 1)
            elif word in words_of("many"):
                found |= set(range(at + 1, at + _NEAR))
            elif word.startswith(words_of("korean many")) or (
                word in words_of("korean many of objects") and without_particle(self.found[at - 1])[1] in ("을", "를")
            ):
                found |= set(range(max(0, at - _NEAR), at))
        return frozenset(found)

    def _objects(self, at: int) -> set[int]:
        """The places of the objects that begin here, up to the next preposition."""
        ends = (end for end in range(at, len(self.found)) if self.found[end][3].lower() in word_set("boundaries"))
        return set(range(at, next(ends, len(self.found))))

    def _opening(self) -> str:
        first = self.found[0][3].lower() if self.found and not self.is_korean else ""
        return first if first in word_set("cases") or first in roots("conditions") else ""

    def _bounds(self) -> frozenset[str]:
        """The bounds that a statement gives a number: at most, at least."""
        main = self.found[: self.main_end]
        found = {"most" if piece[1] == "bound-" else "least" for piece in main if piece[1] in ("bound-", "bound+")}
        is_denied = any(piece[0] == "negation" for piece in main)
        if is_denied and any(piece[1] == "than+" or root_of_piece(piece) in roots("exceeding") for piece in main):
            found.add("most")
        return frozenset(found)

    def _follows(self, before: Item, at: int) -> bool:
        return all(piece[3] == before.written for piece in self.found[before.at : at])

    def _item(self, at: int, piece: Piece) -> Item | None:
        """The item of a piece. None for a word of grammar or without meaning."""
        what, key, shape, written, _ = piece
        word = written.lower()
        base = self._placed(at, written)
        limit = self._limit(at, base.slot)
        if limit and (base.slot < 0 or at + 1 == self.slots[base.slot]):
            key = word if limit == "limit+" else root_of(without_particle(piece)[0].removesuffix("만"))
            return replace(base, key=key, poles=frozenset({limit}), is_only=limit == "limit-")
        if limit and what != "opposite":
            return None
        if what == "opposite":
            if word in ("-", "+") or key[:-1] in EXTENTS or (key[:-1] in _BEFORE_NUMBERS and self.is_amount(at + 1)):
                return None
            base = replace(base, poles=frozenset({key}), denies=self._denies(at))
            if word in function_words() or (is_hangul(word) and key[:-1] in _KOREAN_FUNCTIONS):
                return replace(base, key=word, is_relation=True)
        amount = self._amount(at, piece, base)
        if amount is not None or word == "once":
            return amount
        is_named = written[0].isupper() and len(word) > 1 and (base.slot >= 0 or written.isupper())
        if what == "word" and (not shape or word in function_words()) and not is_named:
            return None
        root = root_of(self.denied[at]) if at in self.denied else root_of_piece(piece)
        return (
            None if not root or self._tells_nothing(at, root, base) else self._named(at, what, replace(base, key=root))
        )

    def _limit(self, at: int, slot: int) -> str:
        """The limiting pole of a piece: `limit-` for "only admins", `limit+` for "everybody" or 누구나, or empty."""
        if self.found[at][3].lower() in word_set("everybody"):
            return "limit+"
        end = self.slots[slot] if slot >= 0 else at + 1
        is_only = slot > 0 and self.found[slot - 1][3].lower() == "only"
        is_only |= self.found[at][0] != "number" and without_particle(self.found[end - 1])[1].endswith("만")
        return "limit-" if is_only else ""

    def _placed(self, at: int, written: str) -> Item:
        slot = self.slot_of.get(at, -1)
        return Item(
            at=at,
            key="",
            written=written,
            slot=slot,
            lead=self._lead(slot if slot >= 0 else at),
            is_case=at in self.cases,
            is_condition=at in self.conditions,
            is_aside=at >= self.main_end or at in self.asides,
            is_subject=self.lead_end <= at < self.verb,
        )

    def _amount(self, at: int, piece: Piece, base: Item) -> Item | None:
        """The amount of a piece: a number, a period, or ENDLESS."""
        what, key, _, written, _ = piece
        if written.lower() in words_of("endless"):
            return replace(base, key="endless", amount=ENDLESS)
        period = "1d" if key in ("night", "nightly") else PERIODS.get(key, "")
        before = self.found[at - 1][3].lower() if at else ""
        is_period = period[:1] == "1" and (base.slot >= 0 or before in _BEFORE_PERIODS) and not self._modifies(at)
        # Numbers in "the second request", "issue #12", "revision 3" and a leading year are no amounts.
        is_one_of_many = written[0] == "#" or (key.isdigit() and before in word_set("entities"))
        is_name = (key.endswith("th") and base.is_subject) or (base.slot < 0 and (at < self.lead_end or is_one_of_many))
        if not is_period and (what != "number" or is_name):
            return None
        if written.lower() == "half" and self._modifies(at):
            return replace(base, key=key, poles=frozenset({"whole-"}), is_modifier=True)
        amount = period or key
        named = at - 1 - (before == "-")
        is_version = named > 0 and (self.found[named][3][0].isupper() or bool(kinds_in(self.found[at - 1 : at])))
        # Node 18 and up is all of them, and another beginning is another range.
        is_version &= {piece[3].lower() for piece in self.found[at + 1 : at + 3]}.isdisjoint(words_of("and more"))
        dimension = dimension_of(amount) or "#"
        return replace(base, key=normal_amount(amount.casefold()), amount=dimension, is_version=is_version)

    def _tells_nothing(self, at: int, root: str, base: Item) -> bool:
        is_free = base.slot < 0 or is_hangul(root) or (base.written.islower() and self.slots[base.slot] - base.slot > 1)
        if is_free and (root in roots("nothing") or root in roots("heads") or root in korean.glued_particles()):
            return True
        is_auxiliary = self.is_korean and at > 1 and root in words_of("korean auxiliaries")
        return is_auxiliary and not without_particle(self.found[at - 1])[1]

    def _named(self, at: int, what: str, base: Item) -> Item:
        is_modifier = self._modifies(at)
        is_shouted = len(base.written) > 1 and base.written.isupper()
        senses = frozenset() if what == "quoted" else senses_of(base.key)
        senses = frozenset(sense for sense in senses if sense[0] != "~") if is_shouted else senses
        is_noun = is_modifier or base.is_subject or is_shouted or self._is_after_article(at)
        does = what == "opposite" or any(sense[0] == "~" for sense in senses) or self._is_predicate(at)
        return replace(
            base,
            senses=senses,
            kinds=self._kinds(at, base.slot, base.key),
            is_relation=does and not is_noun,
            is_modifier=is_modifier,
            is_all=self._means_all(at),
            is_only=not is_modifier and not does and self._is_object_of_only(at),
            is_code=what in ("quoted", "identifier") and not is_shouted,
        )

    def _is_object_of_only(self, at: int) -> bool:
        """Whether "only" limits the noun here: ship only whole pallets, we only ship whole pallets."""
        first = at
        while first > 0 and self._modifies(first - 1):
            first -= 1
        first -= first > 1 and self.is_verb_word(first - 1)
        return first > 0 and self.found[first - 1][3].lower() == "only"

    def _means_all(self, at: int) -> bool:
        """Whether all things of a word's kind are meant, and not almost all, all by default or not all of them."""
        words, before = [piece[3].lower() for piece in self.found], at - 1
        while before >= 0 and words[before] not in words_of("all") and self._modifies(before):
            before -= 1
        if set(words[max(before, 0) : at]).isdisjoint(words_of("all")) and words[at + 1 : at + 2] != ["모두"]:
            return False
        is_denied = words[before] != "any" and any(piece[0] == "negation" for piece in self.found[: max(before, 0)])
        return not is_denied and set(words).isdisjoint(words_of("not quite all"))

    def _kinds(self, at: int, slot: int, root: str) -> frozenset[str]:
        if slot >= 0:
            return kinds_in(self.found[slot : self.slots[slot]])
        return frozenset() if root in roots("common names") else kinds_in(self.found[at : at + 1])

    def _denies(self, at: int) -> bool:
        return at > 0 and self.found[at - 1][1] == "un" and self.found[at - 1][3] == self.found[at][3]

    def _is_predicate(self, at: int) -> bool:
        """Whether a word is in the place of a predicate: after a copula, or at the end in Korean."""
        piece = self.found[at]
        if piece[0] not in ("word", "opposite"):
            return False
        if self.is_korean:
            last = min(self.main_end, len(self.found)) - 1
            while last > 0 and (self.found[last][0] == "negation" or not self.found[last][2]):
                last -= 1
            return (
                at == last
                and is_hangul(piece[3])
                and not korean.is_noun_copula(piece[3])
                and piece[3].endswith(words_of("korean finals"))
            )
        if at == self.verb > self.lead_end:
            return True
        before = at - 1
        while before > 0 and (
            self.found[before][0] == "negation" or self.found[before][3].lower() in word_set("adverbs")
        ):
            before -= 1
        lead = self.found[before][3].lower()
        return (
            before > 0
            and (lead in _COPULAS or (lead in word_set("modals") and lead != "to"))
            and at not in self.slot_of
        )

    def _lead(self, slot: int) -> str:
        """The word that leads to a value: its preposition, its verb, or its particle in Korean."""
        if self.is_korean:
            last = self.slots.get(slot, slot + 1) - 1
            particle = without_particle(self.found[last])[1]
            is_said_to_be = (slot in self.slots and not particle) or korean.is_noun_copula(self.found[last][3])
            return "이다" if is_said_to_be else particle.removeprefix("으").removesuffix("만")
        at = slot - 1
        while at > 0 and (
            self.found[at][3].lower() in DETERMINERS
            or (at != self.verb and self.found[at][3].lower() not in function_words() and self._modifies(at))
        ):
            at -= 1
        return self.found[at][3].lower() if at >= 0 else ""

    def _is_after_article(self, at: int) -> bool:
        before = self.found[at - 1] if at else None
        if self.is_korean:
            particle = without_particle(self.found[at])[1]
            return bool(particle) and not korean.is_copula(particle)
        return before is not None and (before[3].lower() in DETERMINERS or before[0] == "number")

    def _modifies(self, at: int) -> bool:
        """Whether a word only modifies the next word."""
        after = self.found[at + 1] if at + 1 < len(self.found) else None
        if after is None or after[0] not in ("word", "identifier", "opposite"):
            return False
        if self.is_korean:
            here = self.found[at]
            is_noun = here[0] in ("word", "identifier") or here[3] in listed("opposites", "kinds")
            return is_noun and not without_particle(here)[1] and bool(without_particle(after)[1])
        word = after[3].lower()
        if root_of(word) in roots("heads"):
            return False
        before = self.found[at - 1][3].lower() if at else ""
        is_verb = at == self.verb or before in auxiliaries() or before in _COPULAS or before in ("not", "to")
        if is_verb or not after[2] or word in function_words() or at + 1 == self.verb or after[1][:-1] in EXTENTS:
            return False
        return not (at < self.verb <= at + 1) and not (self.is_verb_word(at + 1) and at + 1 >= self.verb)

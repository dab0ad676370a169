"""Compares a Korean statement with an English one (R6, R12).

Word order and particles don't compare across the languages, so the rule is strict: all things that one statement names
have to be in the other one, by a common sense, a name or the table of English for Korean words. Then one value or one
denial decides.
"""

from __future__ import annotations

from mnemarch.text import korean
from mnemarch.text.cache import cached
from mnemarch.text.clauses import root_of, words_of
from mnemarch.text.frames import general
from mnemarch.text.words import STOP_WORDS, is_hangul

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mnemarch.text.frames import Frame, Item

    Pairs = list[tuple[Item, Item]]


def opposed_across(ours: Frame, theirs: Frame) -> tuple[str, list[tuple[str, str]]] | None:
    """The kind of opposition between statements of two languages, and the opposed words, or None."""
    pairs, left, right = _paired(ours, theirs)
    if not any(_is_thing(pair) for pair in pairs):
        return None
    values = [(one, other) for one in left for other in right if _is_other_value(one, other)]
    flipped = [(one, other) for one, other in pairs if _flips(one, other)]
    rest = [item for side in (left, right) for item in side if not any(item in pair for pair in values)]
    is_open = ours.many_at or theirs.many_at or ours.has_exception or theirs.has_exception
    if is_open or any(item.denies or not _adds_nothing(item, (*ours.items, *theirs.items)) for item in rest):
        return None
    denials = ours.negations + theirs.negations
    if values:
        is_one = len(values) == 1 and not flipped and not denials
        return ("value", [(one.written, other.written) for one, other in values]) if is_one else None
    # "Is off" and "is not enabled" are alike, though by words of two groups; "no more than" denies nothing.
    is_unsure = any(one.poles and other.poles and _poles(one).isdisjoint(_poles(other)) for one, other in pairs)
    if len(pairs) < 2 or (len(flipped) + denials) % 2 == 0 or is_unsure or ours.bounds or theirs.bounds:
        return None
    sides = [(one.written, other.written) for one, other in flipped]
    return "polarity", sides or [("not" if ours.negations else "", "not" if theirs.negations else "")]


def _paired(ours: Frame, theirs: Frame) -> tuple[Pairs, list[Item], list[Item]]:
    """The pairs of items that name the same, and the items of each frame that are left."""
    left, right = ([item for item in frame.items if not item.is_aside] for frame in (ours, theirs))
    pairs: Pairs = []
    for is_alike in (_is_same, _means_the_same, _does_the_same):
        for item in list(left):
            other = next((each for each in right if is_alike(item, each)), None)
            if other is not None:
                left.remove(item)
                right.remove(other)
                pairs.append((item, other))
    return pairs, general(left, pairs), general(right, [(other, one) for one, other in pairs])


def _is_same(one: Item, other: Item) -> bool:
    return one.key == other.key and one.amount == other.amount


def _means_the_same(one: Item, other: Item) -> bool:
    if one.amount or other.amount:
        return False
    # Redis and Memcached are caches, but not the same one.
    is_one_sense = _shares_thing(one, other) and not (one.kinds and other.kinds)
    return is_one_sense or not _english(one).isdisjoint(_english(other))


def _does_the_same(one: Item, other: Item) -> bool:
    are_acts = one.is_relation and other.is_relation
    return are_acts and not (_poles(one).isdisjoint(_poles(other)) and one.senses.isdisjoint(other.senses))


def _shares_thing(one: Item, other: Item) -> bool:
    return any(sense[0] != "~" for sense in one.senses & other.senses)


def _is_thing(pair: tuple[Item, Item]) -> bool:
    return _is_same(*pair) or _shares_thing(*pair) or not all(item.is_relation for item in pair)


@cached(1024)
def _english_roots(key: str) -> frozenset[str]:
    words = korean.english_of(key).split()
    return frozenset(root_of(word) for word in words if word not in STOP_WORDS)


def _english(item: Item) -> frozenset[str]:
    return _english_roots(item.key) | {item.key}


def _is_other_value(one: Item, other: Item) -> bool:
    if one.amount or other.amount:
        return one.amount == other.amount
    return (_is_form(one) and _is_form(other)) or not one.kinds.isdisjoint(other.kinds)


def _is_form(item: Item) -> bool:
    """Whether the item is the form that a thing has: 정수로, as integers; but not the 원 of 원 단위로."""
    is_of_phrase = is_hangul(item.written) and not item.written.endswith("로")
    return not item.is_relation and item.lead in ("로", "as") and not is_of_phrase


def _poles(item: Item) -> frozenset[str]:
    return frozenset(pole[:-1] for pole in item.poles)


def _flips(one: Item, other: Item) -> bool:
    return not _poles(one).isdisjoint(_poles(other)) and one.poles.isdisjoint(other.poles)


def _adds_nothing(item: Item, items: Sequence[Item]) -> bool:
    """Whether an item without a partner is a verb that the rest of a statement implies: it happens on, it is used."""
    if not item.is_relation:
        return False
    senses = _bare(item.senses)
    others = _bare(sense for each in items if each is not item for sense in each.senses)
    return not senses or not senses.isdisjoint(others | set(words_of("light")))


def _bare(senses: Iterable[str]) -> frozenset[str]:
    return frozenset(sense.lstrip("~") for sense in senses)

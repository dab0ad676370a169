"""Finds values of two statements that exclude each other: of one dimension, of one kind, or in one place (R6)."""

from __future__ import annotations

from mnemarch.text.frames import ENDLESS, Frame, Item
from mnemarch.text.words import grouped, is_hangul, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Value = list[Item]

# Groups of words that lead to values of one kind, and all of these words.
_LEADS = [frozenset(words) for words in grouped("senses", "leads").values()]
_LEADING = frozenset(word for leads in _LEADS for word in leads)
_AGENTS, _EQUALS, _BEING, _USES, _PREPOSITIONS = (
    frozenset(listed("senses", name)) for name in ("agents", "equals", "may be", "uses", "prepositions")
)
# The kinds of common words, which occur with many relations.
COMMON = frozenset(listed("senses", "common kinds"))
# Opposites that mean the same with an amount: kept for a week, deleted after a week.
_ENDING = frozenset(listed("senses", "ending"))


def other_values(
    pairs: Sequence[tuple[Item, Item]], unpaired: tuple[Sequence[Item], Sequence[Item]]
) -> list[tuple[Value, Value]]:
    """Pairs of values that may exclude each other, the surest first: of one kind, in one place, or agents."""
    left, right = map(_values, unpaired)
    others: list[tuple[Value, Value]] = []
    # "Done by X" and "X does it": the subject of one side is no subject on the other.
    is_turned = any(one.is_subject != other.is_subject for one, other in pairs if not one.amount)
    for is_another in (_is_of_one_kind, _stands_in_one_place, _is_who_does_it):
        for one in list(left):
            other = next((each for each in right if is_another(one, each)), None)
            if other is not None and (is_another is not _is_who_does_it or (is_turned and not others)):
                left.remove(one)
                right.remove(other)
                others.append((one, other))
    return others


def _values(items: Sequence[Item]) -> list[Value]:
    """The possible values. Items in one slot, or side by side, are joined into one value."""
    values: list[Value] = []
    for item in items:
        if (
            item.is_aside
            or (item.is_relation and item.slot < 0)
            or (item.is_condition and not (item.amount or item.kinds))
        ):
            continue
        last = values[-1][-1] if values else None
        is_joined = last is not None and (
            (item.slot >= 0 and item.slot == last.slot)
            or (
                item.slot == last.slot
                and item.is_subject == last.is_subject
                and item.at <= last.at + 2
                and not (item.amount or last.amount)
            )
        )
        if is_joined:
            values[-1].append(item)
        else:
            values.append([item])
    return values


def dimensions_of(side: Value) -> set[str]:
    """The dimensions of an amount. Empty for a name that contains a number: ISO 8601, 31 March."""
    is_name = any(not item.amount and (item.kinds or item.written[:1].isupper()) for item in side)
    return set() if is_name else {item.amount for item in side} - {""}


def kinds_of(side: Value) -> frozenset[str]:
    return frozenset(kind for item in side for kind in item.kinds)


def _is_of_one_kind(one: Value, other: Value) -> bool:
    ours, theirs = dimensions_of(one), dimensions_of(other)
    if ours or theirs:
        # Sprint 31 and sprint 32.
        is_name = any(
            side[0].is_subject and (side[0].slot < 0 or side[0].is_case or is_hangul(side[0].lead))
            for side in (one, other)
        )
        return (
            not is_name
            and bool(ours and theirs)
            and (ours == theirs or ENDLESS in ours | theirs)
            and _count_alike(one, other)
        )
    are_names = one[0].is_subject and other[0].is_subject and max(one[0].slot, other[0].slot) < 0
    return not are_names and not kinds_of(one).isdisjoint(kinds_of(other))


def _count_alike(one: Value, other: Value) -> bool:
    """Whether two numbers count the same thing. False for 4 spaces and 1 quote, or for 3 times and on 503."""
    if dimensions_of(one) != {"#"}:
        return True
    leads = {_lead(one), _lead(other)}
    counted = [any(not item.amount for item in side) for side in (one, other)]
    return not all(counted) and (len(leads) == 1 or "on" not in leads)


def _stands_in_one_place(one: Value, other: Value) -> bool:
    leads = {_lead(one), _lead(other)}
    # 민지가 승인한다, 승인자는 도윤이다.
    is_person = not leads.isdisjoint(_EQUALS) and not leads.isdisjoint(("이", "가"))
    if dimensions_of(one) or dimensions_of(other) or (one[0].slot < 0 and other[0].slot < 0 and not is_person):
        return False
    are_subjects = one[0].is_subject and other[0].is_subject and one[0].slot == other[0].slot
    if (kinds_of(one) and kinds_of(other)) or ((one[0].is_subject or other[0].is_subject) and not are_subjects):
        return False
    are_told = one[0].slot >= 0 and other[0].slot >= 0
    if kinds_of(one) or kinds_of(other):
        # Docker and a layer cache, Redis and a short TTL.
        is_proper = all(kinds_of(side) or _is_proper(side) for side in (one, other))
        is_proper = is_proper and (kinds_of(one) | kinds_of(other)).isdisjoint(COMMON)
        if leads <= _EQUALS:
            return is_proper
        return leads <= _PREPOSITIONS and (
            (len(leads) == 1 and (are_told or leads != {"로"})) or (is_proper and any(leads <= each for each in _LEADS))
        )
    if any(side[0].slot < 0 and side[0].is_case and _lead(side) not in _LEADING for side in (one, other)):
        return False
    if not leads.isdisjoint(_EQUALS):
        return leads <= _EQUALS | _BEING
    is_proper = _is_proper(one) and _is_proper(other) and leads <= {"in", "with", "using", "via"}
    return len(leads) == 1 or is_proper or any(leads <= each for each in _LEADS)


def _lead(side: Value) -> str:
    """The word that leads to a value: the one before its first word, or in Korean the particle of its last word."""
    return side[-1].lead if is_hangul(side[-1].lead) else side[0].lead


def _is_proper(side: Value) -> bool:
    return any(item.written != item.written.lower() or not item.written.isalpha() for item in side)


def _is_who_does_it(one: Value, other: Value) -> bool:
    """Whether both values name the agent of one act: etcd handles it, it is done with ZooKeeper."""
    if one[0].is_subject == other[0].is_subject or is_hangul(_lead(one)) or is_hangul(_lead(other)):
        return False
    if dimensions_of(one) or dimensions_of(other):
        # Node 20 is what the image ships.
        return dimensions_of(one) == dimensions_of(other)
    done = other if one[0].is_subject else one
    is_told = (
        (done[0].slot >= 0 and done[0].lead not in _EQUALS) or done[0].lead == "by" or _is_proper(one[:1] + other[:1])
    )
    return _lead(done) in _AGENTS and is_told and not any(side[-1].is_modifier for side in (one, other))


def exclude(
    ours: Frame,
    theirs: Frame,
    values: Sequence[tuple[Value, Value]],
    flipped: Sequence[tuple[Item, Item]],
    pairs: Sequence[tuple[Item, Item]],
) -> bool:
    """Whether the values exclude each other."""
    if any(one[0].is_subject and other[0].is_subject for one, other in values) and len(values) > 1:
        return False
    takes_many = any(
        item.at in frame.many_at
        for pair in values
        for frame, side in zip((ours, theirs), pair, strict=True)
        for item in side
    )
    negations = ours.negations + theirs.negations
    if all(any(item.amount for item in one) for one, _ in values):
        # Supports Python 3.11, and 3.12; but a plan includes 3 projects.
        is_other_end = any(not _ENDING.issuperset(flipped_groups(*pair)) for pair in flipped)
        is_other_end |= bool(flipped) and all(one[0].is_subject and other[0].is_subject for one, other in values)
        are_versions = any(item.is_version for one, _ in values for item in one)
        return not (is_other_end or (takes_many and are_versions)) and (
            negations == 0 or any("most" in frame.bounds and frame.negations for frame in (ours, theirs))
        )
    # The importer uses a temp file, and pandas; but we use one library for logging.
    is_unnamed = any(
        side[0].lead in _USES
        and not side[0].kinds
        and all(item.written.islower() and not item.is_code for item in side)
        for pair in values
        for frame, side in zip((ours, theirs), pair, strict=True)
        if any(item.is_subject for item in frame.items)
    )
    # What a call ends with in one case is one thing.
    is_unnamed = is_unnamed and not any(one.is_condition and other.is_condition for one, other in pairs)
    is_open = takes_many or ours.is_possible or theirs.is_possible
    return not (is_open or negations or flipped or is_unnamed)


def flips(a: Item, b: Item) -> bool:
    signs = {pole[:-1]: pole[-1] for pole in a.poles}
    common = [(signs[pole[:-1]], pole[-1]) for pole in b.poles if pole[:-1] in signs]
    return bool(common) and all(one != other for one, other in common)


def flipped_groups(a: Item, b: Item) -> set[str]:
    return {pole[:-1] for pole in a.poles} & {pole[:-1] for pole in b.poles}

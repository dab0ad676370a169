"""Compares two frames (R6).

Items are paired by word, root, group of opposites or sense. The unpaired items decide. They may hold values that
exclude each other: values of one dimension, of one kind, or in one place.
"""

from __future__ import annotations

from unicodedata import normalize

from mnemarch.model.value import Frozen
from mnemarch.text import korean
from mnemarch.text.cache import cached
from mnemarch.text.clauses import root_of, roots, words_of
from mnemarch.text.frames import ENDLESS, Frame, Item, frame_of
from mnemarch.text.words import STOP_WORDS, grouped, is_hangul, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Value = list[Item]

_ROOT_CHARS_MIN, _ROOT_SYLLABLES_MIN = 4, 2
# Groups of words that lead to values of one kind, and all of these words.
_LEADS = [frozenset(words) for words in grouped("senses", "leads").values()]
_AGENTS, _EQUALS, _BEING, _USES, _PREPOSITIONS = (
    frozenset(listed("senses", name)) for name in ("agents", "equals", "may be", "uses", "prepositions")
)
# The kinds of common words, which occur with many relations.
_COMMON = frozenset(listed("senses", "common kinds"))
# Opposites that mean the same with an amount: kept for a week, deleted after a week.
_ENDING = frozenset(listed("senses", "ending"))


class Sides(Frozen):
    """The paired items of two frames, and the unpaired items of each."""

    pairs: list[tuple[Item, Item]]
    left: list[Item]
    right: list[Item]


def _paired(left: list[Item], right: list[Item], *rules: Callable[[Item, Item], bool]) -> list[tuple[Item, Item]]:
    """The pairs of items that one of the rules takes for one, the first rule first. They leave the lists."""
    pairs: list[tuple[Item, Item]] = []
    for is_alike in rules:
        for item in list(left):
            other = next((each for each in right if is_alike(item, each)), None)
            if other is not None:
                left.remove(item)
                right.remove(other)
                pairs.append((item, other))
    return pairs


def _general(items: Sequence[Item], others: Sequence[Item], pairs: Sequence[tuple[Item, Item]]) -> list[Item]:
    """The items without the modifiers of a thing if its partner means all such things: payment amounts, all amounts.

    `others` are the partner's unpaired items: all refund amounts are other things than payment amounts.
    """
    narrowed = {item.at + 1 for item in others if item.is_modifier}
    covered = {here.at - 1 for here, there in pairs if there.is_all and there.at not in narrowed}
    return [item for item in items if not (item.is_modifier and item.at in covered)]


def _laid(ours: Frame, theirs: Frame) -> Sides:
    left, right = list(ours.items), list(theirs.items)
    pairs = _paired(left, right, _is_same, _has_one_root, _is_of_one_group, _has_one_sense)
    for one, said in ((left, theirs.items), (right, ours.items)):
        for item in list(one):
            # Drop a repetition: "a message in a message queue".
            if not item.amount and any(_is_same(item, each) or _has_one_root(item, each) for each in said):
                one.remove(item)
    return Sides(pairs, _general(left, right, pairs), _general(right, left, [pair[::-1] for pair in pairs]))


def _is_same(a: Item, b: Item) -> bool:
    # Sprint 31, 31 points.
    is_moved = (
        bool(a.amount) and a.is_subject != b.is_subject and min(a.slot, b.slot) < 0 and not (a.is_case and b.is_case)
    )
    return a.key == b.key and a.amount == b.amount and not is_moved


def _has_one_root(a: Item, b: Item) -> bool:
    if a.amount or b.amount or a.is_code or b.is_code or (a.kinds and b.kinds):
        return False
    short, long = sorted((a.key, b.key), key=len)
    size_min = _ROOT_SYLLABLES_MIN if is_hangul(short) else _ROOT_CHARS_MIN
    # 내보낼, 내보내기.
    is_within = normalize("NFD", long).startswith(normalize("NFD", short))
    return short.isalpha() and long.isalpha() and is_within and size_min <= len(short) > len(long) / 2


def _is_of_one_group(a: Item, b: Item) -> bool:
    return not {pole[:-1] for pole in a.poles}.isdisjoint(pole[:-1] for pole in b.poles)


def _has_one_sense(a: Item, b: Item) -> bool:
    """Whether both have a sense of things in common. Senses of relations (~) are compared elsewhere."""
    return any(sense[0] != "~" for sense in a.senses & b.senses)


def opposed(a: str, b: str, *, is_rule: bool = False) -> tuple[str, list[tuple[str, str]]] | None:
    """The kind of opposition between two statements ("value" or "polarity") and the opposed words, or None.

    `is_rule`: a rule holds in all of its cases, so one statement may name a case that the other doesn't.
    """
    ours, theirs = frame_of(a), frame_of(b)
    if not (ours.is_plain and theirs.is_plain):
        return None
    if ours.is_korean != theirs.is_korean:
        return _opposed_across(ours, theirs, is_rule=is_rule)
    if ours.opening and theirs.opening and ours.opening != theirs.opening:
        return None  # Before the release, after the release.
    sides = _laid(ours, theirs)
    flipped = [
        (one, other) for one, other in sides.pairs if _flips(one, other) and not (one.is_aside or other.is_aside)
    ]
    only = {each.at - 1 for pair in sides.pairs if any(each.is_only for each in pair) for each in pair}
    if any(
        (one.is_modifier and other.is_modifier and only.isdisjoint((one.at, other.at)))
        or (one.is_condition and other.is_condition)
        for one, other in flipped
    ):
        return None  # The left panel, the right panel; with and without a flag. "Only whole ones" excludes half ones.
    values = _other_values(sides.pairs, (sides.left, sides.right))
    used = {id(item) for pair in values for side in pair for item in side}
    left, right = ([each for each in side if id(each) not in used] for side in (sides.left, sides.right))
    denials = [frame.negations + sum(map(_denies, side)) for frame, side in ((ours, left), (theirs, right))]
    measured = [item for one, _ in values for item in one]
    is_choice = _is_choice(sides, values, left, right)
    if not is_choice and not _is_about_one(
        sides, left, right, measured=measured, denials=[] if flipped else denials, is_rule=is_rule
    ):
        return None
    if values:
        is_opposed = _exclude(ours, theirs, values, flipped, sides.pairs) and _relates_alike(
            ours, theirs, left, right, values
        )
        return ("value", [(_written(one), _written(other)) for one, other in values]) if is_opposed else None
    if (len(flipped) + sum(denials)) % 2 == 0 or _is_apart(ours, theirs, sides, left, right):
        return None
    return "polarity", [(one.written, other.written) for one, other in flipped] or [
        ("not" if denials[0] else "", "not" if denials[1] else "")
    ]


def _is_apart(ours: Frame, theirs: Frame, sides: Sides, left: list[Item], right: list[Item]) -> bool:
    """Whether the denial concerns something else: another action, another time, or values beyond the same limit."""
    rest = [_relations(side) for side in (left, right)]
    if ours.negations or theirs.negations or any(map(_denies, (*left, *right))):
        is_other = any(
            _senses_in([item]).isdisjoint(words_of("light")) for side in rest for item in side if not item.poles
        )
        denied = [frame.negations or any(map(_denies, side)) for frame, side in ((ours, left), (theirs, right))]
        extra = [side for side, is_denied in zip((left, right), denied, strict=True) if is_denied]
        if is_other or any(_counts(item) for side in extra for item in side):
            return True
    is_flipped = any(_flips(*pair) and _flipped_groups(*pair) != {"order"} for pair in sides.pairs)
    is_ordered = any(_flips(*pair) and _flipped_groups(*pair) == {"order"} for pair in sides.pairs)
    if is_ordered and all(rest[at] or any(map(_counts, side)) for at, side in enumerate((left, right))):
        return True
    is_other_deed = all(rest) and not (is_flipped and not _senses_in(rest[0]).isdisjoint(_senses_in(rest[1])))
    is_ordered = any(pole[:-1] == "order" for item in (*left, *right) for pole in item.poles)
    is_bounded = any(one.amount for one, _ in sides.pairs) and not (ours.negations or theirs.negations)
    is_limited = any(one.amount for one, _ in sides.pairs) and any(
        pole[:-1] in ("than", "bound") for item in (*left, *right) for pole in item.poles
    )
    has_exception = ours.has_exception or theirs.has_exception
    return is_other_deed or is_ordered or is_bounded or is_limited or has_exception


def _is_choice(
    sides: Sides, values: Sequence[tuple[Value, Value]], left: Sequence[Item], right: Sequence[Item]
) -> bool:
    """Whether both statements only name a thing of the same kind: use npm, use yarn."""
    others = [item for item in (*left, *right, *(one for one, _ in sides.pairs)) if not item.poles]
    return len(values) == 1 and not others and bool(_kinds_of(values[0][0]) & _kinds_of(values[0][1]) - _COMMON)


def is_denial(text: str) -> bool:
    """Whether a statement denies what it names."""
    frame = frame_of(text)
    return (frame.negations + sum(map(_denies, frame.items))) % 2 == 1


def _denies(item: Item) -> bool:
    return not item.is_aside and (item.denies or item.key in roots("denying"))


def _is_about_one(
    sides: Sides,
    left: Sequence[Item],
    right: Sequence[Item],
    *,
    measured: Sequence[Item],
    denials: Sequence[int],
    is_rule: bool,
) -> bool:
    """Whether two statements are about the same thing, and neither is limited to a special case.

    A denial of the general case covers each special case: webhooks are not signed, webhooks are signed with HMAC.
    """
    extra = [[item for item in side if _counts(item)] for side in (left, right)]
    if measured:
        bare = [[item for item in side if item.key not in roots("measures")] for side in extra]
        is_counted = any(item.amount == "#" for item in measured)
        extra = [
            bare[0] if not (bare[1] and is_counted) else extra[0],
            bare[1] if not (bare[0] and is_counted) else extra[1],
        ]
    if all(extra):
        return False
    shared = [one for one, other in sides.pairs if not one.amount and _is_thing(one, other)]
    more = extra[0] or extra[1]
    if not shared or (more and len(sides.pairs) + bool(measured) < 2):
        return False
    if not measured and sum(denials) == 1 and not denials[0 if extra[0] else 1]:
        return not any(item.is_modifier and item.is_subject for item in more)
    if is_rule and all(one.key == other.key or _flips(one, other) for one, other in sides.pairs):
        more = [item for item in more if not item.is_case]
    # The worker has threads, the worker pool has threads.
    named = (
        {one.at + 1 for pair in sides.pairs for one in pair if one.is_modifier}
        if measured and measured[0].amount
        else set()
    )
    return not any(
        item.is_modifier
        or item.is_case
        or item.is_condition
        or _numbers(item)
        or (item.is_subject and item.at in named)
        for item in more
    )


def _numbers(item: Item) -> bool:
    """Whether the item is a number that identifies a thing: request 88."""
    return bool(item.amount) and item.is_subject


def _is_thing(one: Item, other: Item) -> bool:
    """Whether a pair of items names the subject of the statements, and not only an act."""
    if not (one.is_relation and other.is_relation):
        return True
    return any(sense[0] != "~" for sense in one.senses & other.senses)


def _counts(item: Item) -> bool:
    return not (item.is_relation or item.is_aside or _denies(item))


def _relates_alike(
    ours: Frame, theirs: Frame, left: Sequence[Item], right: Sequence[Item], values: Sequence[tuple[Value, Value]]
) -> bool:
    """Whether both statements relate to their values in the same way, or one of them by "is" alone."""
    rest = [[item for item in _relations(side) if item.key not in roots("measures")] for side in (left, right)]
    if ours.bounds and theirs.bounds:
        return ours.bounds == theirs.bounds
    is_sure = all(_dimensions_of(one) or _kinds_of(one) & _kinds_of(other) for one, other in values)
    if not all(rest):
        # "Is X" can mean the same as "uses X", but not as "is cleared at X".
        return is_sure or not any(rest) or not _senses_in(rest[0] or rest[1]).isdisjoint(words_of("being"))
    told = [
        frozenset(
            sense.lstrip("~")
            for item in frame.items
            if not item.is_aside
            for sense in item.senses
            if item.is_relation or sense[0] != "~"
        )
        for frame in (ours, theirs)
    ]
    told = [each | ({"limit"} if frame.bounds else set()) for each, frame in zip(told, (ours, theirs), strict=True)]
    senses = [_senses_in(side) for side in rest]
    if all(senses):
        return not (senses[0].isdisjoint(told[1]) and senses[1].isdisjoint(told[0]))
    return all(_kinds_of(one) & _kinds_of(other) - _COMMON for one, other in values)


def _relations(items: Iterable[Item]) -> list[Item]:
    """The items that name an act, without function words."""
    return [
        item
        for item in items
        if item.is_relation and not (_denies(item) or item.is_aside or item.written.lower() in STOP_WORDS)
    ]


def _senses_in(items: Iterable[Item]) -> frozenset[str]:
    return frozenset(sense.lstrip("~") for item in items for sense in item.senses)


def _written(side: Value) -> str:
    return " ".join(item.written for item in side)


# Values


def _other_values(
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


def _dimensions_of(side: Value) -> set[str]:
    """The dimensions of an amount. Empty for a name that contains a number: ISO 8601, 31 March."""
    is_name = any(not item.amount and (item.kinds or item.written[:1].isupper()) for item in side)
    return set() if is_name else {item.amount for item in side} - {""}


def _kinds_of(side: Value) -> frozenset[str]:
    return frozenset(kind for item in side for kind in item.kinds)


def _is_of_one_kind(one: Value, other: Value) -> bool:
    ours, theirs = _dimensions_of(one), _dimensions_of(other)
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
    return not are_names and not _kinds_of(one).isdisjoint(_kinds_of(other))


def _count_alike(one: Value, other: Value) -> bool:
    """Whether two numbers count the same thing. False for 4 spaces and 1 quote, or for 3 times and on 503."""
    leads = {_lead(one), _lead(other)}
    counted = [any(not item.amount for item in side) for side in (one, other)]
    return not all(counted) and (len(leads) == 1 or "on" not in leads)


def _stands_in_one_place(one: Value, other: Value) -> bool:
    leads = {_lead(one), _lead(other)}
    # 민지가 승인한다, 승인자는 도윤이다.
    is_person = not leads.isdisjoint(_EQUALS) and not leads.isdisjoint(("이", "가"))
    if _dimensions_of(one) or _dimensions_of(other) or (one[0].slot < 0 and other[0].slot < 0 and not is_person):
        return False
    are_subjects = one[0].is_subject and other[0].is_subject and one[0].slot == other[0].slot
    if (_kinds_of(one) and _kinds_of(other)) or ((one[0].is_subject or other[0].is_subject) and not are_subjects):
        return False
    are_told = one[0].slot >= 0 and other[0].slot >= 0
    if _kinds_of(one) or _kinds_of(other):
        # Docker and a layer cache, Redis and a short TTL.
        is_proper = all(_kinds_of(side) or _is_proper(side) for side in (one, other))
        is_proper = is_proper and (_kinds_of(one) | _kinds_of(other)).isdisjoint(_COMMON)
        if leads <= _EQUALS:
            return is_proper
        return leads <= _PREPOSITIONS and (
            (len(leads) == 1 and (are_told or leads != {"로"})) or (is_proper and any(leads <= each for each in _LEADS))
        )
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
    if _dimensions_of(one) or _dimensions_of(other):
        # Node 20 is what the image ships.
        return _dimensions_of(one) == _dimensions_of(other)
    done = other if one[0].is_subject else one
    is_told = (
        (done[0].slot >= 0 and done[0].lead not in _EQUALS) or done[0].lead == "by" or _is_proper(one[:1] + other[:1])
    )
    return _lead(done) in _AGENTS and is_told and not any(side[-1].is_modifier for side in (one, other))


def _exclude(
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
        is_other_end = any(not _ENDING.issuperset(_flipped_groups(*pair)) for pair in flipped)
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


def _flips(a: Item, b: Item) -> bool:
    signs = {pole[:-1]: pole[-1] for pole in a.poles}
    common = [(signs[pole[:-1]], pole[-1]) for pole in b.poles if pole[:-1] in signs]
    return bool(common) and all(one != other for one, other in common)


def _flipped_groups(a: Item, b: Item) -> set[str]:
    return {pole[:-1] for pole in a.poles} & {pole[:-1] for pole in b.poles}


# Two languages
#
# Word order and particles don't compare between Korean and English. So all that one statement names has to be in the
# other one, by a common sense, a name or the table of English for Korean words. Then one value or one denial decides.


def _opposed_across(ours: Frame, theirs: Frame, *, is_rule: bool) -> tuple[str, list[tuple[str, str]]] | None:
    left, right = ([item for item in frame.items if not item.is_aside] for frame in (ours, theirs))
    pairs = _paired(left, right, _is_named_alike, _means_the_same, _does_the_same)
    left, right = _general(left, right, pairs), _general(right, left, [pair[::-1] for pair in pairs])
    values = [(one, other) for one in left for other in right if _is_other_value(one, other)]
    flipped = [(one, other) for one, other in pairs if _flips(one, other)]
    rest = [item for item in (*left, *right) if not any(item in pair for pair in values)]
    rest = [item for item in rest if not (is_rule and item.is_case)]
    is_open = ours.many_at or theirs.many_at or ours.has_exception or theirs.has_exception
    if (
        is_open
        or not any(_is_thing(*pair) for pair in pairs)
        or any(not _adds_nothing(item, (*ours.items, *theirs.items)) for item in rest)
    ):
        return None
    denials = ours.negations + theirs.negations
    if values:
        # At least 5 seconds and at most 10 seconds are two ends.
        is_one = len(values) == 1 and len(ours.bounds ^ theirs.bounds) < 2 and not flipped and not denials
        return ("value", [(one.written, other.written) for one, other in values]) if is_one else None
    # "Is off" and "is not enabled" are alike, though by words of two groups; "no more than" denies nothing.
    is_unsure = any(one.poles and other.poles and not _is_of_one_group(one, other) for one, other in pairs)
    if len(pairs) < 2 or (len(flipped) + denials) % 2 == 0 or is_unsure or ours.bounds or theirs.bounds:
        return None
    sides = [(one.written, other.written) for one, other in flipped]
    return "polarity", sides or [("not" if ours.negations else "", "not" if theirs.negations else "")]


def _is_named_alike(one: Item, other: Item) -> bool:
    return one.key == other.key and one.amount == other.amount


def _means_the_same(one: Item, other: Item) -> bool:
    # Redis and Memcached are caches, but not the same one.
    is_one_sense = _has_one_sense(one, other) and not (one.kinds and other.kinds)
    is_translated = not (_english(one.key) | {one.key}).isdisjoint(_english(other.key) | {other.key})
    return not (one.amount or other.amount) and (is_one_sense or is_translated)


def _does_the_same(one: Item, other: Item) -> bool:
    are_acts = one.is_relation and other.is_relation
    return are_acts and (_is_of_one_group(one, other) or not one.senses.isdisjoint(other.senses))


@cached(1024)
def _english(key: str) -> frozenset[str]:
    return frozenset(root_of(word) for word in korean.english_of(key).split() if word not in STOP_WORDS)


def _is_other_value(one: Item, other: Item) -> bool:
    if one.amount or other.amount:
        return one.amount == other.amount
    return (_is_form(one) and _is_form(other)) or not one.kinds.isdisjoint(other.kinds)


def _is_form(item: Item) -> bool:
    """Whether the item is the form that a thing has: 정수로, as integers; but not the 원 of 원 단위로."""
    is_of_phrase = is_hangul(item.written) and not item.written.endswith("로")
    return not item.is_relation and item.lead in ("로", "as") and not is_of_phrase


def _adds_nothing(item: Item, items: Sequence[Item]) -> bool:
    """Whether an item without a partner is a verb that the rest of a statement implies: it happens on, it is used."""
    senses, others = _senses_in([item]), _senses_in(each for each in items if each is not item)
    implied = others.union(words_of("light"))
    return item.is_relation and not item.denies and (not senses or not senses.isdisjoint(implied))

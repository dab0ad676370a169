"""Two frames laid side by side (R6): what both say is paired, by word, root or sense; what is left decides."""

from __future__ import annotations

from itertools import pairwise
from unicodedata import normalize

from mnemarch.model.value import value
from mnemarch.text.frames import ENDLESS, frame_of, root_of, roots
from mnemarch.text.slots_korean import is_hangul
from mnemarch.text.words import STOP_WORDS, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mnemarch.text.frames import Frame, Item

    Value = list[Item]

_ROOT_CHARS_MIN, _ROOT_SYLLABLES_MIN = 4, 2
# Words that lead to values of one kind.
_LEADS = (
    frozenset({"in", "on", "at", "to", "into", "onto", "under", "inside"}),
    frozenset({"with", "by", "via", "through", "using", "over", "use", "uses", "used"}),
    frozenset({"on", "by", "with", "uses", "use"}),
    frozenset({"as", "in", "to"}),
    frozenset({"from", "by"}),
    frozenset({"returns", "return", "raises", "raise", "throws"}),
    frozenset({"로", "를", "을", "이", "가"}),
    frozenset({"에", "에서", "로"}),
)
_LEADING = frozenset().union(*_LEADS)
_AGENTS = frozenset({"by", "with", "via", "through", "using", "use", "uses", "로", "is", "are", "이", "가"})
_PREPOSITIONS = frozenset({"over", "in", "on", "to", "with", "by", "via", "through", "using", "from", "as", "에", "에서", "로", "이", "가"})
_USES = frozenset({"use", "uses", "using", "return", "returns", "avoid"})
_BEING = frozenset({"as", "in", "to", "use", "uses", "get", "gets", "has", "have", "로", "를", "을", "at", "on", "에서", "에", "이", "가"})
# Kinds of common words, which many relations go with.
_COMMON = frozenset({"date", "month", "side", "memory", "role"})
# With an amount these say the same: kept for a week, deleted after a week.
_ENDING = frozenset({"keep", "open", "accept", "allow", "up", "than", "bound", "order", "add", "hold", "include"})
_EQUALS = frozenset({"is", "are", "was", "were", "be", "다", "이다", "입니다", "called", "named"})


@value
class Sides:
    """The pairs of two frames, and what only the one and only the other says."""

    pairs: list[tuple[Item, Item]]
    left: list[Item]
    right: list[Item]


def laid(ours: Frame, theirs: Frame) -> Sides:
    left, right = list(ours.items), list(theirs.items)
    pairs: list[tuple[Item, Item]] = []
    for matches in (_is_same, _has_one_root, _is_of_one_group, _has_one_sense):
        for item in list(left):
            other = next((each for each in right if matches(item, each)), None)
            if other is not None:
                left.remove(item)
                right.remove(other)
                pairs.append((item, other))
    for one, two in ((left, right), (right, left)):
        _drop_joined(one, two)
        said = [item for item in (theirs if one is left else ours).items]
        for item in list(one):
            # It is said again: a message in a message queue.
            if not item.amount and any(_is_same(item, each) or _has_one_root(item, each) for each in said):
                one.remove(item)
    return Sides(pairs, left, right)


def _drop_joined(one: list[Item], other: list[Item]) -> None:
    """Drop what the one says in one word and the other in two: timeout, time out."""
    for item in list(one):
        for first, second in pairwise(other):
            if item.key == root_of(first.written + second.written):
                one.remove(item)
                other.remove(first)
                other.remove(second)
                break


def _is_same(a: Item, b: Item) -> bool:
    # Sprint 31, 31 points.
    is_moved = bool(a.amount) and a.is_subject != b.is_subject and min(a.slot, b.slot) < 0 and not (a.is_case and b.is_case)
    return a.key == b.key and a.amount == b.amount and not is_moved


def _has_one_root(a: Item, b: Item) -> bool:
    if a.amount or b.amount or a.is_code or b.is_code or (a.kinds and b.kinds):
        return False
    short, long = sorted((a.key, b.key), key=len)
    size_min = _ROOT_SYLLABLES_MIN if is_hangul(short) else _ROOT_CHARS_MIN
    if is_hangul(short):
        # 내보낼, 내보내기.
        is_within = normalize("NFD", long).startswith(normalize("NFD", short))
    else:
        is_within = long.startswith(short)
    return short.isalpha() and long.isalpha() and is_within and size_min <= len(short) > len(long) / 2


def _is_of_one_group(a: Item, b: Item) -> bool:
    return not {pole[:-1] for pole in a.poles}.isdisjoint(pole[:-1] for pole in b.poles)


def _has_one_sense(a: Item, b: Item) -> bool:
    """A sense of things; what relates is compared as a whole."""
    return any(sense[0] != "~" for sense in a.senses & b.senses)


def _flips(a: Item, b: Item) -> bool:
    signs = {pole[:-1]: pole[-1] for pole in a.poles}
    common = [(signs[pole[:-1]], pole[-1]) for pole in b.poles if pole[:-1] in signs]
    return bool(common) and all(one != other for one, other in common)


def _flipped_groups(a: Item, b: Item) -> set[str]:
    return {pole[:-1] for pole in a.poles} & {pole[:-1] for pole in b.poles}


def opposed(a: str, b: str) -> tuple[str, list[tuple[str, str]]] | None:
    """How two statements oppose each other: in what kind, and by which words."""
    ours, theirs = frame_of(a), frame_of(b)
    if not (ours.is_plain and theirs.is_plain) or ours.is_korean != theirs.is_korean:
        return None
    if ours.opening and theirs.opening and ours.opening != theirs.opening:
        return None  # Before the release, after the release.
    sides = laid(ours, theirs)
    flipped = [(one, other) for one, other in sides.pairs if _flips(one, other) and not (one.is_aside or other.is_aside)]
    if any((one.is_modifier and other.is_modifier) or (one.is_condition and other.is_condition) for one, other in flipped):
        return None  # The left panel, the right panel; with and without a flag.
    values = _other_values(sides)
    used = {id(item) for pair in values for side in pair for item in side}
    left, right = ([each for each in side if id(each) not in used] for side in (sides.left, sides.right))
    denials = [frame.negations + sum(map(_denies, side)) for frame, side in ((ours, left), (theirs, right))]
    if not _is_about_one(sides, left, right, measured=[item for one, _ in values for item in one], denials=[] if flipped else denials):
        return None
    if values:
        is_opposed = _exclude(ours, theirs, values, flipped, sides.pairs) and _relates_alike(ours, theirs, left, right, values)
        return ("value", [(_written(one), _written(other)) for one, other in values]) if is_opposed else None
    if (len(flipped) + sum(denials)) % 2 == 0 or _is_apart(ours, theirs, sides, left, right):
        return None
    return "polarity", [(one.written, other.written) for one, other in flipped] or [
        ("not" if denials[0] else "", "not" if denials[1] else "")
    ]


def tell_of_two(a: str, b: str) -> bool:
    """Whether two statements of one form tell two things of a subject, or one of two: backed by, owned by."""
    ours, theirs = frame_of(a), frame_of(b)
    sides = laid(ours, theirs)
    values = _other_values(sides)
    numbered = [[item for item in side if item.is_subject and item.amount == "#"] for side in (sides.left, sides.right)]
    if all(numbered) and any(not one[0].is_subject for one, _ in values):
        return True
    used = {id(item) for pair in values for side in pair for item in side}
    left, right = ([each for each in side if id(each) not in used] for side in (sides.left, sides.right))
    return not _relates_alike(ours, theirs, left, right, values)


def _is_apart(ours: Frame, theirs: Frame, sides: Sides, left: list[Item], right: list[Item]) -> bool:
    """Whether what denies denies something else: another deed, another time, or what is over the same limit."""
    rest = [_relations(side) for side in (left, right)]
    if ours.negations or theirs.negations or any(map(_denies, (*left, *right))):
        is_other = any(
            _senses_in([item]).isdisjoint(listed("senses", "light")) for side in rest for item in side if not item.poles
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
    # What can be turned off is on until then.
    has_exception |= any(frame.is_possible and any(map(_denies, side)) and not frame.negations for frame, side in ((ours, left), (theirs, right)))
    return is_other_deed or is_ordered or is_bounded or is_limited or has_exception


def _denies(item: Item) -> bool:
    return not item.is_aside and (item.denies or item.key in roots("denying"))


def _is_about_one(
    sides: Sides, left: Sequence[Item], right: Sequence[Item], *, measured: Sequence[Item], denials: Sequence[int]
) -> bool:
    """Whether two statements are about one thing, and neither tells a case of its own.

    What is denied of all is denied of each case: webhooks are not signed, webhooks are signed with HMAC.
    """
    extra = [[item for item in side if _counts(item)] for side in (left, right)]
    if measured:
        bare = [[item for item in side if item.key not in roots("measures")] for side in extra]
        is_counted = any(item.amount == "#" for item in measured)
        extra = [bare[0] if not (bare[1] and is_counted) else extra[0], bare[1] if not (bare[0] and is_counted) else extra[1]]
    if all(extra):
        return False
    shared = [one for one, other in sides.pairs if not one.amount and _is_thing(one, other)]
    more = extra[0] or extra[1]
    if not shared or (more and len(sides.pairs) + bool(measured) < 2):
        return False
    if not measured and sum(denials) == 1 and not denials[0 if extra[0] else 1]:
        return not any(item.is_modifier and item.is_subject for item in more)
    # The worker has threads, the worker pool has threads.
    named = {one.at + 1 for pair in sides.pairs for one in pair if one.is_modifier} if measured and measured[0].amount else set()
    return not any(
        item.is_modifier or item.is_case or item.is_condition or _numbers(item) or (item.is_subject and item.at in named)
        for item in more
    )


def _numbers(item: Item) -> bool:
    """Whether it tells by a number which thing is meant: request 88."""
    return bool(item.amount) and item.is_subject


def _is_thing(one: Item, other: Item) -> bool:
    """Whether what two items say tells what the statements are about, and not only what is done."""
    if not (one.is_relation and other.is_relation):
        return True
    return any(sense[0] != "~" for sense in one.senses & other.senses)


def _counts(item: Item) -> bool:
    return not (item.is_relation or item.is_aside or _denies(item))


def _other_values(sides: Sides) -> list[tuple[Value, Value]]:
    """Values of which only one can be, the surest first: of one dimension or kind, in one place, or who does it."""
    left, right = _values(sides.left), _values(sides.right)
    pairs: list[tuple[Value, Value]] = []
    # Done by X; X does it: what is a subject on one side is none on the other.
    is_turned = any(one.is_subject != other.is_subject for one, other in sides.pairs if not one.amount)
    for is_another in (_is_of_one_kind, _stands_in_one_place, _is_who_does_it):
        for one in list(left):
            other = next((each for each in right if is_another(one, each)), None)
            if other is not None and (is_another is not _is_who_does_it or (is_turned and not pairs)):
                left.remove(one)
                right.remove(other)
                pairs.append((one, other))
    return pairs


def _values(items: Sequence[Item]) -> list[Value]:
    """What may be values, each in as many items as it has: what stands in one slot, or side by side."""
    values: list[Value] = []
    for item in items:
        if item.is_aside or (item.is_relation and item.slot < 0) or (item.is_condition and not (item.amount or item.kinds)):
            continue
        last = values[-1][-1] if values else None
        is_joined = last is not None and (
            (item.slot >= 0 and item.slot == last.slot)
            or (item.slot == last.slot and item.is_subject == last.is_subject and item.at <= last.at + 2 and not (item.amount or last.amount))
        )
        if is_joined:
            values[-1].append(item)
        else:
            values.append([item])
    return values


def _dimensions(side: Value) -> set[str]:
    """What an amount is of; empty for a name that has a number in it: ISO 8601, 31 March."""
    is_name = any(not item.amount and (item.kinds or item.written[:1].isupper()) for item in side)
    return set() if is_name else {item.amount for item in side} - {""}


def _kinds(side: Value) -> frozenset[str]:
    return frozenset(kind for item in side for kind in item.kinds)


def _is_of_one_kind(one: Value, other: Value) -> bool:
    ours, theirs = _dimensions(one), _dimensions(other)
    if ours or theirs:
        # Sprint 31 and sprint 32.
        is_name = any(
            side[0].is_subject and (side[0].slot < 0 or side[0].is_case or is_hangul(side[0].lead)) for side in (one, other)
        )
        return not is_name and bool(ours and theirs) and (ours == theirs or ENDLESS in ours | theirs) and _count_alike(one, other)
    are_names = one[0].is_subject and other[0].is_subject and max(one[0].slot, other[0].slot) < 0
    return not are_names and not _kinds(one).isdisjoint(_kinds(other))


def _count_alike(one: Value, other: Value) -> bool:
    """Whether two numbers count the same: not 4 spaces and 1 quote, nor 3 times and on 503."""
    if _dimensions(one) != {"#"}:
        return True
    leads = {_lead(one), _lead(other)}
    counted = [any(not item.amount for item in side) for side in (one, other)]
    return not all(counted) and (len(leads) == 1 or "on" not in leads)


def _stands_in_one_place(one: Value, other: Value) -> bool:
    if _dimensions(one) or _dimensions(other) or (one[0].slot < 0 and other[0].slot < 0):
        return False
    are_subjects = one[0].is_subject and other[0].is_subject and one[0].slot == other[0].slot
    if (_kinds(one) and _kinds(other)) or ((one[0].is_subject or other[0].is_subject) and not are_subjects):
        return False
    leads = {_lead(one), _lead(other)}
    are_told = one[0].slot >= 0 and other[0].slot >= 0
    if _kinds(one) or _kinds(other):
        # Docker and a layer cache, Redis and a short TTL.
        is_proper = all(_kinds(side) or _is_proper(side) for side in (one, other))
        is_proper = is_proper and (_kinds(one) | _kinds(other)).isdisjoint(_COMMON)
        if leads <= _EQUALS:
            return is_proper
        return leads <= _PREPOSITIONS and ((len(leads) == 1 and (are_told or leads != {"로"})) or (is_proper and any(leads <= each for each in _LEADS)))
    if any(side[0].slot < 0 and side[0].is_case and _lead(side) not in _LEADING for side in (one, other)):
        return False
    if not leads.isdisjoint(_EQUALS):
        return leads <= _EQUALS | _BEING
    is_proper = _is_proper(one) and _is_proper(other) and leads <= {"in", "with", "using", "via"}
    return len(leads) == 1 or is_proper or any(leads <= each for each in _LEADS)


def _lead(side: Value) -> str:
    """What leads to a value: what stands before its first word, in Korean what is glued to its last."""
    return side[-1].lead if is_hangul(side[-1].lead) else side[0].lead


def _is_proper(side: Value) -> bool:
    return any(item.written != item.written.lower() or not item.written.isalpha() for item in side)


def _is_who_does_it(one: Value, other: Value) -> bool:
    """Whether one is said to do what is done by, or with, the other: etcd handles it, it is done with ZooKeeper."""
    if one[0].is_subject == other[0].is_subject or is_hangul(_lead(one)) or is_hangul(_lead(other)):
        return False
    if _dimensions(one) or _dimensions(other):
        # Node 20 is what the image ships.
        return _dimensions(one) == _dimensions(other)
    done = other if one[0].is_subject else one
    is_told = (done[0].slot >= 0 and done[0].lead not in _EQUALS) or done[0].lead == "by" or _is_proper(one[:1] + other[:1])
    return _lead(done) in _AGENTS and is_told and not any(side[-1].is_modifier for side in (one, other))


def _exclude(
    ours: Frame,
    theirs: Frame,
    values: Sequence[tuple[Value, Value]],
    flipped: Sequence[tuple[Item, Item]],
    pairs: Sequence[tuple[Item, Item]],
) -> bool:
    """Whether one value leaves no place for the other."""
    if any(one[0].is_subject and other[0].is_subject for one, other in values) and len(values) > 1:
        return False
    takes_many = any(
        item.at in frame.many_at for pair in values for frame, side in zip((ours, theirs), pair, strict=True) for item in side
    )
    negations = ours.negations + theirs.negations
    if all(any(item.amount for item in one) for one, _ in values):
        # Supports Python 3.11, and 3.12; but a plan includes 3 projects.
        is_other_end = any(not _ENDING.issuperset(_flipped_groups(*pair)) for pair in flipped)
        is_other_end |= bool(flipped) and all(one[0].is_subject and other[0].is_subject for one, other in values)
        are_versions = any(item.is_version for one, _ in values for item in one)
        return not (is_other_end or (takes_many and are_versions)) and (
            negations == 0 or any("most" in frame.bounds and frame.negations for frame in (ours, theirs))
        )
    # The importer uses a temp file, and pandas; but we use one library for logging.
    is_unnamed = any(
        side[0].lead in _USES and not side[0].kinds and all(item.written.islower() and not item.is_code for item in side)
        for pair in values
        for frame, side in zip((ours, theirs), pair, strict=True)
        if any(item.is_subject for item in frame.items)
    )
    # What a call ends with in one case is one thing.
    is_unnamed = is_unnamed and not any(one.is_condition and other.is_condition for one, other in pairs)
    is_open = takes_many or ours.is_possible or theirs.is_possible
    return not (is_open or negations or flipped or is_unnamed)


def _relates_alike(
    ours: Frame, theirs: Frame, left: Sequence[Item], right: Sequence[Item], values: Sequence[tuple[Value, Value]]
) -> bool:
    """Whether what relates both to their values says the same, or one of them is only said to be it."""
    rest = [[item for item in _relations(side) if item.key not in roots("measures")] for side in (left, right)]
    if ours.bounds and theirs.bounds:
        return ours.bounds == theirs.bounds
    is_sure = all(_dimensions(one) or _kinds(one) & _kinds(other) for one, other in values)
    if not all(rest):
        # What a thing is said to be may be what it uses, but not what it is cleared at.
        return is_sure or not any(rest) or not _senses_in(rest[0] or rest[1]).isdisjoint(listed("senses", "being"))
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
    return all(_kinds(one) & _kinds(other) - _COMMON for one, other in values)


def _relations(items: Iterable[Item]) -> list[Item]:
    """What tells what is done, and is no word of grammar."""
    return [
        item
        for item in items
        if item.is_relation and not (_denies(item) or item.is_aside or item.written.lower() in STOP_WORDS)
    ]


def _senses_in(items: Iterable[Item]) -> frozenset[str]:
    return frozenset(sense.lstrip("~") for item in items for sense in item.senses)


def _written(side: Value) -> str:
    return " ".join(item.written for item in side)

"""Two frames laid side by side (R6): what both say is paired, by word, root or sense; what is left decides."""

from __future__ import annotations

from itertools import pairwise

from mnemarch.model.value import value
from mnemarch.text.frames import frame_of, root_of, roots
from mnemarch.text.slots_korean import is_hangul
from mnemarch.text.words import STOP_WORDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mnemarch.text.frames import Frame, Item

    Value = list[Item]

# A longer text is no plain statement.
_ITEMS_MAX = 40
_ROOT_CHARS_MIN, _ROOT_SYLLABLES_MIN = 4, 2
# Words that lead to values of one kind.
_LEADS = (
    frozenset({"in", "on", "at", "to", "into", "onto", "under", "inside", "에", "에서", "로"}),
    frozenset({"with", "by", "via", "through", "using", "over", "on", "use", "uses", "used", "로", "를", "을", "가", "이", "from", "에서"}),
    frozenset({"as", "in", "로"}),
    frozenset({"from", "에서"}),
)
_LEADING = frozenset().union(*_LEADS)
_AGENTS = frozenset({"by", "with", "via", "through", "using", "use", "uses", "로", "is", "are", "이", "가"})
_PREPOSITIONS = frozenset({"in", "on", "to", "with", "by", "via", "through", "using", "from", "as", "에", "에서", "로"})
_USES = frozenset({"use", "uses", "using", "return", "returns", "avoid"})
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
    return a.key == b.key and a.amount == b.amount and not (a.amount and a.is_subject != b.is_subject and a.slot < 0)


def _has_one_root(a: Item, b: Item) -> bool:
    if a.amount or b.amount or (a.kinds and b.kinds):
        return False
    short, long = sorted((a.key, b.key), key=len)
    size_min = _ROOT_SYLLABLES_MIN if is_hangul(short) else _ROOT_CHARS_MIN
    return short.isalpha() and long.isalpha() and long.startswith(short) and size_min <= len(short) > len(long) / 2


def _is_of_one_group(a: Item, b: Item) -> bool:
    return not {pole[:-1] for pole in a.poles}.isdisjoint(pole[:-1] for pole in b.poles)


def _has_one_sense(a: Item, b: Item) -> bool:
    """A sense of things; what relates is compared as a whole."""
    return any(sense[0] != "~" for sense in a.senses & b.senses) and not (a.kinds and b.kinds)


def _flips(a: Item, b: Item) -> bool:
    signs = {pole[:-1]: pole[-1] for pole in a.poles}
    common = [(signs[pole[:-1]], pole[-1]) for pole in b.poles if pole[:-1] in signs]
    return bool(common) and all(one != other for one, other in common)


def opposed(a: str, b: str) -> tuple[str, list[tuple[str, str]]] | None:
    """How two statements oppose each other: in what kind, and by which words."""
    ours, theirs = frame_of(a), frame_of(b)
    if max(len(ours.items), len(theirs.items)) > _ITEMS_MAX:
        return None
    sides = laid(ours, theirs)
    flipped = [(one, other) for one, other in sides.pairs if _flips(one, other) and not (one.is_aside or other.is_aside)]
    if any((one.is_modifier and other.is_modifier) or (one.is_condition and other.is_condition) for one, other in flipped):
        return None  # The left panel, the right panel; with and without a flag.
    values = _other_values(sides)
    used = {id(item) for pair in values for side in pair for item in side}
    left, right = ([each for each in side if id(each) not in used] for side in (sides.left, sides.right))
    is_bounded = any(one.amount for one, _ in sides.pairs)
    denials = [
        frame.negations + sum(not is_bounded and _denies(item) for item in side)
        for frame, side in ((ours, left), (theirs, right))
    ]
    is_denied = (len(flipped) + sum(denials)) % 2 == 1
    if not _is_about_one(sides, left, right, is_measured=bool(values)):
        return None
    if values:
        if is_denied or not _can_not_be_both(ours, theirs, values, denials) or not _relates_alike(
            ours, theirs, left, right, is_of_kind=all(any(i.kinds for i in side) for pair in values for side in pair)
        ):
            return None
        return "value", [(_written(one), _written(other)) for one, other in values]
    rest = [[item for item in side if not (_denies(item) or item.is_aside or item.key in STOP_WORDS)] for side in (left, right)]
    is_ordered = any(pole[:-1] == "order" for item in (*left, *right) for pole in item.poles)
    if not is_denied or all(rest) or is_ordered or ours.has_exception or theirs.has_exception:
        return None
    return "polarity", [(one.written, other.written) for one, other in flipped] or [
        ("not" if denials[0] else "", "not" if denials[1] else "")
    ]


def _denies(item: Item) -> bool:
    return not item.is_aside and (item.denies or item.key in roots("denying"))


def _is_about_one(sides: Sides, left: Sequence[Item], right: Sequence[Item], *, is_measured: bool) -> bool:
    """Whether two statements are about one thing, and neither tells a case of its own."""
    extra = [[item for item in side if _counts(item)] for side in (left, right)]
    if is_measured:
        bare = [[item for item in side if item.key not in roots("measures")] for side in extra]
        extra = [bare[0] if not bare[1] else extra[0], bare[1] if not bare[0] else extra[1]]
    if all(extra):
        return False
    shared = [one for one, other in sides.pairs if not one.amount and _is_thing(one, other)]
    more = extra[0] or extra[1]
    if not shared or (more and len(sides.pairs) < 2):
        return False
    return not any(item.is_modifier or item.is_case or item.is_condition for item in more)


def _is_thing(one: Item, other: Item) -> bool:
    """Whether what two items say tells what the statements are about, and not only what is done."""
    if not (one.is_relation and other.is_relation):
        return True
    return any(sense[0] != "~" for sense in one.senses & other.senses)


def _counts(item: Item) -> bool:
    return not (item.is_relation or item.is_aside or _denies(item))


def _other_values(sides: Sides) -> list[tuple[Value, Value]]:
    """Values of which only one can be: of one dimension, of one kind, or in the same place of a relation."""
    left, right = _values(sides.left), _values(sides.right)
    pairs = []
    for one in left:
        other = next((each for each in right if _is_another(one, each)), None)
        if other is not None:
            right.remove(other)
            pairs.append((one, other))
    return pairs


def _values(items: Sequence[Item]) -> list[Value]:
    """What may be values, each in as many items as it has: what stands in one slot, or side by side."""
    values: list[Value] = []
    for item in items:
        if item.is_aside or (item.is_relation and item.slot < 0):
            continue
        last = values[-1][-1] if values else None
        is_joined = last is not None and (
            (item.slot >= 0 and item.slot == last.slot)
            or (item.slot < 0 and last.slot < 0 and item.at == last.at + 1 and not (item.amount or last.amount))
        )
        if is_joined:
            values[-1].append(item)
        else:
            values.append([item])
    return values


def _is_another(one: Value, other: Value) -> bool:
    dims = [{item.amount for item in side} - {""} for side in (one, other)]
    if any(dims):
        return dims[0] == dims[1] and not (one[0].is_subject and other[0].is_subject and one[0].slot < 0)
    kinds = [frozenset(kind for item in side for kind in item.kinds) for side in (one, other)]
    if all(kinds):
        return not kinds[0].isdisjoint(kinds[1])
    if one[0].slot < 0 and other[0].slot < 0:
        return False
    leads = {one[0].lead, other[0].lead}
    if one[0].is_subject != other[0].is_subject:
        return not leads.isdisjoint(_AGENTS) and not any(side[-1].is_modifier for side in (one, other))
    if any(kinds):
        # Docker and a layer cache, Redis and a short TTL.
        return len(leads) == 1 and leads <= _PREPOSITIONS
    if any(side[0].slot < 0 and (side[0].is_case and side[0].lead not in _LEADING) for side in (one, other)):
        return False
    return len(leads) == 1 or not leads.isdisjoint(_EQUALS) or any(leads <= each for each in _LEADS)


def _can_not_be_both(
    ours: Frame, theirs: Frame, values: Sequence[tuple[Value, Value]], denials: Sequence[int]
) -> bool:
    """Whether one value leaves no place for the other."""
    if any(one[0].is_subject and other[0].is_subject for one, other in values) and len(values) > 1:
        return False
    versioned = {item.written.lower() for item in ours.items if item.kinds}
    takes_many = ours.takes_many or theirs.takes_many
    if all(any(item.amount for item in one) for one, _ in values):
        # Supports Python 3.11, and 3.12; but a plan includes 3 projects.
        return not (takes_many and any(item.amount == "#" and item.lead in versioned for one, _ in values for item in one))
    is_unnamed = any(
        side[0].lead in _USES and not side[0].kinds and all(item.written.islower() for item in side)
        for pair in values
        for side in pair
    )
    return not (takes_many or ours.is_possible or theirs.is_possible or any(denials) or is_unnamed)


def _relates_alike(ours: Frame, theirs: Frame, left: Sequence[Item], right: Sequence[Item], *, is_of_kind: bool) -> bool:
    """Whether what relates both to their values says the same, or one of them is only said to be it."""
    rest = [[item for item in side if item.is_relation and not item.is_aside and item.key not in STOP_WORDS] for side in (left, right)]
    if not all(rest):
        return True
    told = [frozenset(sense.lstrip("~") for item in frame.items if not item.is_aside for sense in item.senses) for frame in (ours, theirs)]
    senses = [frozenset(sense.lstrip("~") for item in side for sense in item.senses) for side in rest]
    if all(senses):
        return not (senses[0].isdisjoint(told[1]) and senses[1].isdisjoint(told[0]))
    return is_of_kind


def _written(side: Value) -> str:
    return " ".join(item.written for item in side)

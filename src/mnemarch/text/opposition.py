"""Whether two statements oppose each other (R6, R12). This is the one rule for facts and decisions.

Two statements are laid side by side. What both say is what they are about. What is left on each side decides:

- words on both sides: they are about two things, and nothing opposes;
- words on one side: that side says more. If these tell in what case it is so, it is an exception to the other, unless
  the other denies every case;
- nothing but a negation or an opposite: polarity. Nothing but two values: another value.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

from mnemarch.model.value import value
from mnemarch.text import korean
from mnemarch.text.amounts import dimension
from mnemarch.text.cache import pattern
from mnemarch.text.difference import polarity
from mnemarch.text.relating import AMOUNT, kinds_in
from mnemarch.text.sides import opposed, tell_of_two
from mnemarch.text.slots import verb_forms, word_of
from mnemarch.text.slots_korean import is_hangul, without_particle
from mnemarch.text.statements import STATEMENT_CHARS_MAX, THINGLESS, UNNAMED, statement, things, topic_words, value_of
from mnemarch.text.tokens import tokens
from mnemarch.text.words import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mnemarch.text.guarded import Piece
    from mnemarch.text.statements import Statement, Value

# What is said of all is said of each.
_UNIVERSAL = frozenset({"every", "each", "모든", "모두"})
# What relates a thing to its value, in whatever words: stored in, runs on, uses.
_RELATIONS = frozenset({"±on", "±use", "±with", "±has", "±need", "±up", "±side", "±if", "@place", "@outcome", "per"})
_TRY = r"(?i)^\W*(?:i |we |also )?(?:tried|attempted)\b|시도했|해 ?(?:봤|보았)"
# Statements with one word in common, "use", are not about one thing.
_SHARED_MIN = 2
# Words of one root: invalid, invalidate; 기본, 기본적.
_ROOT_CHARS_MIN, _ROOT_SYLLABLES_MIN = 5, 2


@value
class Opposition:
    """How two statements about one subject oppose each other, with the words of both sides.

    `kind` is polarity, value, or change: the second announces that what the first says has ended (`text/changes.py`).
    """

    kind: str
    left: str
    right: str

    @property
    def reason(self) -> str:
        return f"{self.kind}: {self.left or 'none'} / {self.right or 'none'}"


def opposes(a: str, b: str) -> Opposition | None:
    """How two statements oppose each other, or None: they say the same, or both can be.

    They oppose in polarity or in a value. In both, they need not: what is not stored in Redis may be in Postgres.
    Two tries are two events, whatever was tried.
    """
    if _tells_of_a_try(a) and _tells_of_a_try(b):
        return None
    ours, theirs = statement(a), statement(b)
    if frozenset(ours.topic) == frozenset(theirs.topic):
        alike = _opposition(ours, theirs)
        if alike is not None:
            return None if alike.kind == "value" and tell_of_two(a, b) else alike
    found = opposed(a, b)
    return None if found is None else _opposed(*found)


def _tells_of_a_try(text: str) -> bool:
    return pattern(_TRY).search(text) is not None


def breaks(text: str, rule: str) -> Opposition | None:
    """How a text opposes a rule that may be said of more, or of less, than the text (R12).

    "Money is stored as floats" speaks of the money of "All money is stored as integers in cents". Of a long text the
    beginning is compared, which says what is decided.
    """
    ours, theirs = (statement(each[:STATEMENT_CHARS_MAX]) for each in (text, rule))
    about, ruled = (frozenset(each.topic) - _UNIVERSAL for each in (ours, theirs))
    is_within = len(things(about & ruled)) >= _SHARED_MIN and (about <= ruled or ruled <= about)
    return _opposition(ours, theirs) if is_within else opposes(text[:STATEMENT_CHARS_MAX], rule[:STATEMENT_CHARS_MAX])


def _opposition_beside(ours: Statement, theirs: Statement) -> Opposition | None:
    """How two statements oppose each other of which one says more than the other, or says it in other words."""
    denied = polarity(ours.polar, theirs.polar)
    (left, ours_shared), (right, theirs_shared) = _laid_side_by_side(ours, theirs, denied)
    values = _values_of_one(ours, theirs), _values_of_one(theirs, ours)
    if values[0] and not values[1]:
        values = values[0], _known_names(theirs, right)
    elif values[1] and not values[0]:
        values = _known_names(ours, left), values[1]
    if (left and right) or min(len(ours_shared), len(theirs_shared)) < _SHARED_MIN:
        return None
    ours_more, theirs_more = bool(left or values[0]), bool(right or values[1])
    is_narrower = _is_narrower(ours if left else theirs, left or right, ours_shared | theirs_shared)
    if denied:
        fuller = ours if ours_more else theirs
        # What is denied of less than was said is an exception; what is denied of all holds of each.
        is_exception = fuller.is_denied if ours.is_denied or theirs.is_denied else is_narrower
        is_apart = (ours_more and theirs_more) or ((ours_more or theirs_more) and is_exception)
        return None if is_apart else _opposed("polarity", denied)
    pairs = list(zip(*values, strict=True)) if len(values[0]) == len(values[1]) else []
    if is_narrower or not pairs or not all(_is_another(a, b) for a, b in pairs):
        return None
    is_open = ours.is_open or theirs.is_open or _go_two_ways(ours, theirs)
    can_be_both = is_open and not all(a.is_amount for a, _ in pairs)
    return None if can_be_both else _opposed("value", [(a.written, b.written) for a, b in pairs])


def _values_of_one(one: Statement, other: Statement) -> list[Value]:
    return [each for each in one.values if not each.words <= other.words]


def _known_names(said: Statement, words: set[str]) -> list[Value]:
    """Known names among these words, and no longer among them: MySQL is the main database."""
    named = [piece for piece in said.polar if _bare_words(piece) and _bare_words(piece) <= words and kinds_in([piece])]
    words -= {word for piece in named for word in _bare_words(piece)}
    return [value_of([piece]) for piece in named]


def _bare_words(piece: Piece) -> set[str]:
    return {word.partition("◁")[0].casefold() for word in topic_words(piece)}


def _laid_side_by_side(
    ours: Statement, theirs: Statement, denied: Sequence[tuple[str, str]]
) -> tuple[tuple[set[str], set[str]], tuple[set[str], set[str]]]:
    """Of each the words that only it says, and those that both say."""
    told, other = _told(ours, theirs), _told(theirs, ours)
    if not any(piece[0] == "negation" for said in (ours, theirs) for piece in said.polar):
        # Keeps and drops are the two sides of what is denied.
        told, other = told - _opposed_words(ours, denied), other - _opposed_words(theirs, denied)
    left, right = told - other, other - told
    _drop_reworded(left, right, ours, theirs)
    if not denied:
        left, right = left - _measures(), right - _measures()
    return (left, told - left), (right, other - right)


def _told(one: Statement, other: Statement) -> set[str]:
    """The words by which a statement is laid beside another: of the values those that the other names, too."""
    told = [word.partition("◁")[0].casefold() for word in one.topic if not word.startswith(("▢", "#"))]
    common = [word for each in one.values if each.words <= other.words for word in each.words]
    return {word for word in (*told, *common) if word not in _RELATIONS and word not in korean.glued_particles()}


@cache
def _measures() -> frozenset[str]:
    """Words that only name what is measured: kept for 90 days, the period is a year."""
    words = listed("relations", "measures")
    return frozenset([*tokens(" ".join(words)), *words])


def _opposed_words(said: Statement, denied: Sequence[tuple[str, str]]) -> set[str]:
    written = {word for sides in denied for side in sides for word in side.split(", ")}
    return {word for piece in said.polar if piece[3] in written for word in _bare_words(piece)}


def _drop_reworded(left: set[str], right: set[str], ours: Statement, theirs: Statement) -> None:
    """Drop what both sides say in forms of one word, or in one word and in two: timeout, time out."""
    for one, other, said in ((left, right, theirs), (right, left, ours)):
        one -= {word for verb in said.verbs for word in tokens(verb)}
        for before, after in pairwise(said.polar):
            joined = tokens(f"{before[3]}{after[3]}".lower())
            if len(joined) == 1 and joined[0] in one:
                one.remove(joined[0])
                other -= _bare_words(before) | _bare_words(after)
    related = [(a, b) for a in left for b in right if _has_one_root(a, b)]
    left -= {a for a, _ in related}
    right -= {b for _, b in related}


def _has_one_root(a: str, b: str) -> bool:
    short, long = sorted((a, b), key=len)
    size_min = _ROOT_SYLLABLES_MIN if is_hangul(short) else _ROOT_CHARS_MIN
    return short.isalpha() and long.startswith(short) and size_min <= len(short) > len(long) / 2


def _is_narrower(said: Statement, words: set[str], shared: set[str]) -> bool:
    """Whether these words tell a case, or which of the things is meant: the unit tests, the worker pool."""
    named = {word.partition("◁")[0].casefold() for word in said.circumstances}
    for pair in pairwise(said.polar):
        before, after = map(_bare_words, pair)
        if after & shared:
            named |= before
        elif before & shared and not without_particle(pair[0])[1] and not _is_verb(pair[1]):
            named |= after
    return not words.isdisjoint(named)


def _is_verb(piece: Piece) -> bool:
    return piece[0] == "opposite" or any(
        word_of(piece) in verb_forms(verbs) for verbs in ("one value", "use", "many values")
    )


def _is_another(a: Value, b: Value) -> bool:
    """Whether two values are of one kind and leave no place for each other."""
    if a.is_amount != b.is_amount or not _is_other(a, b):
        return False
    if a.is_amount:
        return {dimension(word) for word in a.words} == {dimension(word) for word in b.words}
    # What takes which particle in Korean tells what it is: of two unknown names there, nothing is known.
    is_unknown = not (a.kinds or b.kinds) and a.written.isascii() and b.written.isascii()
    return is_unknown or not (a.kinds.isdisjoint(b.kinds) or a.kinds | b.kinds >= UNNAMED)


def _opposition(ours: Statement, theirs: Statement) -> Opposition | None:
    denied = polarity(ours.polar, theirs.polar)
    others = _other_values(ours, theirs)
    if bool(denied) == bool(others) or not (denied or _exclude(ours, theirs)):
        return None
    return _opposed("polarity" if denied else "value", denied or others)


def _opposed(kind: str, parts: Sequence[tuple[str, str]]) -> Opposition:
    left, right = (", ".join(part[side] for part in parts) for side in (0, 1))
    return Opposition(kind, left, right)


def _other_values(ours: Statement, theirs: Statement) -> list[tuple[str, str]]:
    """The values in which two statements part. One that only says more (the Redis cluster, Redis) is no other."""
    if len(ours.values) != len(theirs.values):
        return []
    compared = zip(ours.values, theirs.values, strict=True)
    return [(left.written, right.written) for left, right in compared if _is_other(left, right)]


def _exclude(ours: Statement, theirs: Statement) -> bool:
    """Whether one value leaves no place for another. What is not Redis and not Postgres may be a third thing."""
    compared = zip(ours.values, theirs.values, strict=True)
    if any((a.is_amount or (a.is_limit and b.is_limit)) and _is_other(a, b) for a, b in compared):
        return True
    pairs = zip(ours.values, theirs.values, strict=True)
    is_reworded = ours.verbs != theirs.verbs
    for a, b in pairs:
        if _is_other(a, b) and (
            _go_together(a, b, ours) or (is_reworded and a.kinds.isdisjoint(b.kinds) and not a.words & b.words)
        ):
            return False
    # "Use SQLite" and "Use WAL" name no thing that can have one value only.
    shares_words = any(a.words & b.words for a, b in zip(ours.values, theirs.values, strict=True))
    is_bare = THINGLESS.issuperset(things(ours.topic))
    names_a_thing = shares_words or not is_bare
    return names_a_thing and not (ours.is_open or theirs.is_open or _go_two_ways(ours, theirs))


def _go_two_ways(ours: Statement, theirs: Statement) -> bool:
    """Whether one tells from where, the other to where: deployed to Render, deployed from main."""
    return bool(ours.telling and theirs.telling) and ours.telling.isdisjoint(theirs.telling)


def _go_together(a: Value, b: Value, said: Statement) -> bool:
    """Whether a thing may well have both: Envoy and mutual TLS; and use both: Docker and a layer cache."""
    uses = "use" in said.verbs
    if bool(a.kinds) != bool(b.kinds):
        # The dashboard uses Vue, and Chart.js; the API returns JSON, and long lists.
        return (uses and not a.words & b.words) or ("return" in said.topic and (b if a.kinds else a).written.islower())
    if a.kinds | b.kinds >= UNNAMED:
        return uses and not a.words & b.words
    if a.kinds | b.kinds >= AMOUNT and a.kinds != b.kinds:
        return uses
    return bool(a.kinds and b.kinds) and a.kinds.isdisjoint(b.kinds)


def _is_other(left: Value, right: Value) -> bool:
    return not (left.words <= right.words or right.words <= left.words)

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

from mnemarch.model.value import Frozen, replace
from mnemarch.text.approach_reading import LIGHT, LOOKING, NAMED, PATTERNS, PLAIN, Sentence, Term
from mnemarch.text.canonical import canonical_key, compatible

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
    sentences = [part for part in PATTERNS["sentence end"].split(text) if part.strip()] if is_read else []
    intended = [part for part in sentences if PATTERNS["intent"].search(part)]
    plan = [_without_reason(part) for part in intended or sentences]
    terms = [term for sentence in plan for term in sentence.terms]
    if not terms and text.strip():
        # The text has no terms, or is too long. It is equal only to itself.
        terms = [Term(canonical_key(text), canonical_key(text), 1, PLAIN, "thing", "")]
    tries = any(term.weight > LIGHT and term.concept not in LOOKING for term in terms)
    only_looks = not tries and any(term.concept in LOOKING for term in terms)
    return _analysed(terms, plan, is_plan=not only_looks and len(text) <= _PLAN_CHARS_MAX)


def _without_reason(part: str) -> Sentence:
    reason = PATTERNS["reason"].search(part)
    told = Sentence(part[: reason.start()] if reason else part)
    is_enough = sum(term.weight for term in told.terms) >= _WEIGHT_BEFORE_REASON_MIN
    return told if is_enough or reason is None else Sentence(part)


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
    actions = _weight([term for term in ours_lacked + theirs_lacked if term.kind == "action" and term.weight > LIGHT])
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
    if not ours_lacked or not theirs_lacked:
        return False
    other_name = all(any(term.weight >= NAMED for term in lacked) for lacked in (ours_lacked, theirs_lacked))
    return other_name or not _places(left, ours_lacked).isdisjoint(_places(right, theirs_lacked))


def _acts_otherwise(ours_lacked: list[Term], theirs_lacked: list[Term]) -> bool:
    """Whether each plan has an action that the other lacks, at least one of them a specific action."""
    acts = [[term.weight for term in lacked if term.kind == "action"] for lacked in (ours_lacked, theirs_lacked)]
    return all(acts) and max(map(max, acts)) > LIGHT


def _places(own: Approach, lacked: list[Term]) -> set[tuple[str, str]]:
    """The places of the lacked terms: the shared concepts before and after them."""
    missing = set(map(id, lacked))
    places = set()
    before, is_open = "", False
    for term in own.terms:
        if term.weight <= LIGHT:
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

"""Whether two statements oppose each other, and what an announced change ends: the one rule for facts and decisions (R6, R12)."""

from __future__ import annotations

from mnemarch.model.value import value
from mnemarch.text.difference import polarity
from mnemarch.text.korean import parted
from mnemarch.text.statement import empty_words, statement
from mnemarch.text.words import Patterns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.text.statement import Statement, Value

_CHANGES = {"english": Patterns("relations", "changes"), "korean": Patterns("relations", "korean changes")}


@value
class Opposition:
    """How two statements about one subject oppose each other, with the words of both sides.

    `kind` is polarity, value, or change: the second announces that what the first says has ended.
    """

    kind: str
    left: str
    right: str

    @property
    def reason(self) -> str:
        return f"{self.kind}: {self.left or 'none'} / {self.right or 'none'}"


@value
class Change:
    """What an announced change leads from and to, and the other words of the announcement: what it is about."""

    old: frozenset[str]
    new: frozenset[str]
    about: frozenset[str]


def opposes(a: str, b: str) -> Opposition | None:
    """How two statements oppose each other, or None: they say the same, or both can be.

    Statements of one topic oppose each other in polarity or in a value. In both, they need not: what is not stored in
    Redis may be stored in Postgres.
    """
    ours, theirs = statement(a), statement(b)
    if ours.key != theirs.key:
        return None
    denied = polarity(ours.polar, theirs.polar)
    others = _other_values(ours, theirs)
    if bool(denied) == bool(others) or not (denied or _exclude(ours, theirs)):
        return None
    left, right = (", ".join(part[side] for part in denied or others) for side in (0, 1))
    return Opposition("polarity" if denied else "value", left, right)


def _other_values(ours: Statement, theirs: Statement) -> list[tuple[str, str]]:
    """The values in which two statements part. One that only says more (the Redis cluster, Redis) is no other."""
    if len(ours.values) != len(theirs.values):
        return []
    compared = zip(ours.values, theirs.values, strict=True)
    return [(left.written, right.written) for left, right in compared if _is_other(left, right)]


def _exclude(ours: Statement, theirs: Statement) -> bool:
    """Whether one value leaves no place for another. What is not Redis and not Postgres may be a third thing."""
    compared = zip(ours.values, theirs.values, strict=True)
    return not (ours.is_open or theirs.is_open) or any(a.is_amount and _is_other(a, b) for a, b in compared)


def _is_other(left: Value, right: Value) -> bool:
    return not (left.words <= right.words or right.words <= left.words)


def change_of(text: str) -> Change | None:
    """The change that a text announces: no longer, switched from X to Y, replaced, is now; in both languages."""
    patterns = _CHANGES["english" if text.isascii() else "korean"]
    for name in patterns.sources:
        match = patterns[name].search(text)
        if match is not None:
            named = match.groupdict()
            old, new = (_words(named.get(side) or "") for side in ("old", "new"))
            about = statement(text[: match.start()] + " ".join(named.values()) + text[match.end() :]).words
            return Change(old, new, about - old - new - empty_words() if named else frozenset())
    return None


def _words(name: str) -> frozenset[str]:
    """The words of the name at the end of a phrase, without those before it that have a particle of their own."""
    words = name.split()
    particles = [at for at, word in enumerate(words[:-1]) if "가" <= word[-1] <= "힣" and parted(word)[1]]
    return statement(" ".join(words[particles[-1] + 1 if particles else 0 :])).words - empty_words()


def ended(older: str, newer: str) -> Opposition | None:
    """How `newer` announces that what `older` says has changed, or None."""
    change = change_of(newer)
    if change is None:
        return None
    opposed = opposes(older, newer)
    if opposed is not None:
        return Opposition("change", opposed.left, opposed.right)
    known = statement(older)
    if not change.new or change.new <= known.words:
        return None
    if change.old:
        is_ended = change.old <= known.words and (not change.about or bool(change.about & known.words))
    else:
        is_ended = bool(change.about) and change.about <= known.words and bool(known.values)
    return Opposition("change", " ".join(sorted(change.old)), " ".join(sorted(change.new))) if is_ended else None

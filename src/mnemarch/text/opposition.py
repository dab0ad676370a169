"""What a statement is about and says, whether two oppose each other, and what a change ends (R6, R12).

A statement is read as a topic and values. Everything that is no value names the topic: the subject, the relation and
their circumstances, without words that say nothing and without negations. This is the one rule for facts and decisions.
"""

from __future__ import annotations

from functools import cache

from mnemarch.model.value import value
from mnemarch.text import korean
from mnemarch.text.cache import cached
from mnemarch.text.canonical import canonical, canonical_key
from mnemarch.text.difference import polarity
from mnemarch.text.guarded import Piece, pieces
from mnemarch.text.slots import english_slots, has_hangul, is_hangul, korean_slots, without_particle, word_set
from mnemarch.text.tokens import tokens
from mnemarch.text.words import REWORDING_WORDS, Patterns, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_ASIDES = Patterns("relations", "asides")
_CHANGES = {"english": Patterns("relations", "changes"), "korean": Patterns("relations", "korean changes")}
_POSSIBLE = frozenset({"can", "could", "may", "might", "수"})
_DIRECTIONS = frozenset({"to", "from", "into", "onto"})
_EXTENTS = frozenset({"만", "도", "까지", "부터", "밖에", "보다"})
# What is said of all is said of each.
_UNIVERSAL = frozenset({"±all", "every", "each", "모든", "모두"})
_THINGLESS = frozenset({"use", "±prefer"})
# Statements with one word in common, "use", are not about one thing.
_SHARED_MIN = 2
# A longer text is no statement: it has no values and its topic is itself, so that it opposes nothing. Whoever compares
# within a transaction has no more than this to read of each text.
STATEMENT_CHARS_MAX = 2_000
_DIMENSIONS = {
    "time": ("ns", "us", "ms", "s", "min", "h", "d", "w", "mo", "y"),
    "size": ("B", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB"),
    "share": ("%",),
}


@value
class Value:
    """One value of a statement: the words it is compared by, how it was written, and whether it is an amount."""

    words: frozenset[str]
    written: str
    is_amount: bool


@value
class Statement:
    """`topic` is what statements that may oppose each other have in common; `polar` are the pieces that can deny it.

    `subject` shows the topic as it was written, with dots for the values.
    """

    subject: str
    topic: tuple[str, ...]
    values: tuple[Value, ...]
    polar: tuple[Piece, ...]
    words: frozenset[str]
    # Whether it only says what can be, or what is not: then another name for the value is no other statement of it.
    is_open: bool

    @property
    def telling(self) -> frozenset[str]:
        """Words and particles that say where to, from where and how far."""
        return self.words & _DIRECTIONS | frozenset(without_particle(piece)[1] for piece in self.polar) & _EXTENTS

    @property
    def key(self) -> str:
        return _key(self.topic)


@cached(1024)
def _read(text: str) -> tuple[tuple[Piece, ...], dict[int, int], tuple[str, ...]]:
    """The pieces of a text, where its values begin and end, and its topic: all that a write without rivals needs."""
    if len(text) > STATEMENT_CHARS_MAX:
        return (), {}, (canonical_key(text),)
    found = pieces(_ASIDES["aside"].sub(" ", text))
    slots = korean_slots(found) if has_hangul(found) else english_slots(found)
    topic: list[str] = []
    at = 0
    while at < len(found):
        end = slots.get(at)
        if end is None:
            topic += _topic_words(found[at])
            at += 1
        else:
            topic.append(_mark(found[at:end]))
            at = end
    return found, slots, tuple(topic) or (canonical(text),)


@cached(1024)
def statement(text: str) -> Statement:
    found, slots, topic = _read(text)
    values = tuple(_value(found[start:end]) for start, end in sorted(slots.items()))
    inside = {at for start, end in slots.items() for at in range(start, end)}
    polar = tuple(piece for at, piece in enumerate(found) if at not in inside)
    words = frozenset(word for piece in found for word in _words(piece))
    is_denied = sum(piece[0] == "negation" for piece in polar) % 2 == 1
    is_open = is_denied or any(piece[1] in _POSSIBLE for piece in polar)
    shown = ["…" if at in slots else piece[3] for at, piece in enumerate(found) if at in slots or at not in inside]
    return Statement(
        subject=" ".join(shown),
        topic=topic,
        values=values,
        polar=polar,
        words=words,
        is_open=is_open,
    )


# The keys of a batch are computed before its transaction begins, and asked for in it.
@cached(1024)
def topic_key(text: str) -> str:
    """What statements of one topic and subject are found by."""
    return canonical_key(_key(_read(text)[2]))


def _key(topic: tuple[str, ...]) -> str:
    """The same for every order and wording of one topic."""
    return " ".join(sorted(set(topic)))


def _topic_words(piece: Piece) -> Iterable[str]:
    what, key, shape, *_ = piece
    if what in ("number", "identifier", "quoted"):
        return (f"{key}{shape[1:]}",) if key else ()
    if not shape or what == "opposite":
        return (shape,) if shape else ()
    if is_hangul(shape):
        noun, particle = korean.parted(shape)
        telling = particle if particle in word_set("korean slots") else ""
        stem = korean.stem(noun if telling else shape) + telling
        return () if stem in word_set("korean adverbs") else (stem,)
    return _telling_tokens(shape)


@cached(8192)
def _telling_tokens(word: str) -> tuple[str, ...]:
    return tuple(token for token in tokens(word) if token not in empty_words())


def _words(piece: Piece) -> Iterable[str]:
    """What a piece says, as a value or as a part of a text that a change may end."""
    if piece[0] == "word":
        noun = korean.parted(piece[1])[0] if is_hangul(piece[1]) else piece[1]
        return [noun] if is_hangul(noun) else tokens(noun)
    return [piece[1].casefold()]


def _value(slot: Sequence[Piece]) -> Value:
    words = frozenset(word for piece in slot if piece[2] for word in _words(piece) if word not in empty_words())
    return Value(words, " ".join(piece[3] for piece in slot), len(slot) == 1 and slot[0][0] == "number")


def _mark(slot: Sequence[Piece]) -> str:
    """What stands for a value in its topic: amounts of time, sizes and shares are not the same thing."""
    last = slot[-1]
    particle = without_particle(last)[1]
    telling = particle if particle in word_set("korean slots") else ""
    if len(slot) == 1 and last[0] == "number":
        unit = last[1].lstrip("-+~^$€£¥₩0123456789.,:/x")
        return next((f"#{name}" for name, units in _DIMENSIONS.items() if unit in units), "#") + telling
    return "▢" + telling


@cache
def empty_words() -> frozenset[str]:
    """Tokens that a wording may add or drop."""
    words = [*REWORDING_WORDS, *listed("relations", "modals", "adverbs")]
    return frozenset(tokens(" ".join(words)))


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
    names: tuple[str, str]


def opposes(a: str, b: str) -> Opposition | None:
    """How two statements oppose each other, or None: they say the same, or both can be.

    Statements of one topic oppose each other in polarity or in a value. In both, they need not: what is not stored in
    Redis may be stored in Postgres.
    """
    ours, theirs = statement(a), statement(b)
    return _opposition(ours, theirs) if ours.key == theirs.key else None


def breaks(text: str, rule: str) -> Opposition | None:
    """How a text opposes a rule that may be said of more, or of less, than the text (R12).

    "Money is stored as floats" speaks of the money of "All money is stored as integers in cents". Of a long text the
    beginning is compared, which says what is decided.
    """
    ours, theirs = (statement(each[:STATEMENT_CHARS_MAX]) for each in (text, rule))
    about, ruled = (frozenset(each.topic) - _UNIVERSAL for each in (ours, theirs))
    shared = [word for word in about & ruled if word[0] not in "▢#"]
    is_within = len(shared) >= _SHARED_MIN and (about <= ruled or ruled <= about)
    return _opposition(ours, theirs) if is_within or ours.key == theirs.key else None


def _opposition(ours: Statement, theirs: Statement) -> Opposition | None:
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
    if any(a.is_amount and _is_other(a, b) for a, b in compared):
        return True
    # "Use SQLite" and "Use WAL" name no thing that can have one value only.
    shares_words = any(a.words & b.words for a, b in zip(ours.values, theirs.values, strict=True))
    is_bare = _THINGLESS.issuperset(word for word in ours.topic if word[0] not in "▢#")
    names_a_thing = shares_words or not is_bare
    return names_a_thing and not (ours.is_open or theirs.is_open)


def _is_other(left: Value, right: Value) -> bool:
    return not (left.words <= right.words or right.words <= left.words)


@cached(256)
def change_of(text: str) -> Change | None:
    """The change that a text announces: no longer, switched from X to Y, replaced, is now; in both languages."""
    if len(text) > STATEMENT_CHARS_MAX:
        return None
    patterns = _CHANGES["korean" if has_hangul(pieces(text)) else "english"]
    for name in patterns.sources:
        match = patterns[name].search(text)
        if match is not None:
            named = match.groupdict()
            names = _name(named.get("old") or ""), _name(named.get("new") or "")
            old, new = (statement(each).words - empty_words() for each in names)
            about = statement(text[: match.start()] + " ".join(named.values()) + text[match.end() :]).words
            return Change(old, new, about - old - new - empty_words() if named else frozenset(), names)
    return None


def _name(phrase: str) -> str:
    """The name in a phrase, without words before it that have a particle of their own, and without what it is for."""
    words = _ASIDES["circumstance"].split(phrase, maxsplit=1)[0].split()
    particles = [at for at, word in enumerate(words[:-1]) if is_hangul(word[-1]) and korean.parted(word)[1]]
    return " ".join(words[particles[-1] + 1 if particles else 0 :])


def _is_other_version(new: frozenset[str], known: frozenset[str]) -> bool:
    """Whether the same name has another number in a text: Kubernetes 1.27 and Kubernetes 1.22."""
    others = new - known
    return bool(new & known) and all(word[0].isdigit() for word in others) and any(word[0].isdigit() for word in known)


def ended(older: str, newer: str) -> Opposition | None:
    """How `newer` announces that what `older` says has changed, or None."""
    change = change_of(newer) if older != newer else None
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
        is_ended = bool(known.values) and (
            change.about <= known.words if change.about else _is_other_version(change.new, known.words)
        )
    return Opposition("change", *change.names) if is_ended else None

"""What a statement is about and says, and whether two oppose each other (R6, R12).

A statement is read as a topic and values. Everything that is no value names the topic: the subject, the relation and
their circumstances, without words that say nothing and without negations. This is the one rule for facts and decisions.
"""

from __future__ import annotations

from functools import cache

from mnemarch.model.value import value
from mnemarch.text import amounts, korean
from mnemarch.text.asides import without_asides
from mnemarch.text.cache import cached
from mnemarch.text.canonical import canonical, canonical_key
from mnemarch.text.difference import polarity
from mnemarch.text.guarded import Piece, pieces
from mnemarch.text.relating import AMOUNT, USES, kinds_in, parsed, verb_of
from mnemarch.text.slots import kinds_of_things
from mnemarch.text.slots_korean import has_hangul, is_hangul, is_name, without_particle, word_set
from mnemarch.text.tokens import tokens
from mnemarch.text.words import REWORDING_WORDS, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_POSSIBLE = frozenset({"can", "could", "may", "might", "수"})
_DIRECTIONS = frozenset({"to", "from", "into", "onto"})
_EXTENTS = frozenset({"만", "도", "까지", "부터", "밖에", "보다"})
# One may do both of these: read from a queue, write to it.
_ACTS = frozenset({"read"})
# What is said of all is said of each.
_UNIVERSAL = frozenset({"every", "each", "모든", "모두"})
_THINGLESS = frozenset(USES)
_BEFORE_NAMES = frozenset({"a", "an", "the", "our", "only"})
# So far back the word is looked for that says by what something is done.
_NEAR = 4
_UNNAMED = frozenset({"something"})
# Statements with one word in common, "use", are not about one thing.
_SHARED_MIN = 2
# A longer text is no statement: it has no values and its topic is itself, so that it opposes nothing. Whoever compares
# within a transaction has no more than this to read of each text.
STATEMENT_CHARS_MAX = 2_000


@value
class Value:
    """One value of a statement: the words it is compared by, how it was written, and whether it is an amount.

    `is_limit` says that it leaves no place for another even where a thing only can be: only admins, everyone.
    """

    words: frozenset[str]
    written: str
    is_amount: bool
    is_limit: bool
    # What the name is used as; "something" of a thing that has no name: a layer cache.
    kinds: frozenset[str]


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
    # Of what says by what a thing is done, the verb: runs on, uses.
    verbs: frozenset[str]

    @property
    def telling(self) -> frozenset[str]:
        """Words and particles that say where to, from where and how far."""
        return self.words & _DIRECTIONS | frozenset(without_particle(piece)[1] for piece in self.polar) & _EXTENTS

    @property
    def key(self) -> str:
        return _key(self.topic)


@cached(1024)
def _read(text: str) -> tuple[tuple[Piece, ...], dict[int, int], tuple[str, ...], list[int]]:
    """The pieces of a text, where its values begin and end, its topic, and where it says by what a thing is done."""
    if len(text) > STATEMENT_CHARS_MAX:
        return (), {}, (canonical_key(text),), []
    told, rejected = without_asides(text)
    found, slots, relations = parsed(pieces(told))
    if rejected and not slots:
        # Merge with rebase, never with squash: what is chosen comes last.
        names = [at for at, piece in enumerate(found) if is_name(piece)]
        slots = {at: at + 1 for at in names[-1:]}
    topic: list[str] = []
    is_english = not has_hangul(found)
    at = 0
    while at < len(found):
        end = slots.get(at)
        if end is not None:
            relation = relations.get(at, ())
            is_means = is_english and relation != USES and _is_means(found[max(0, at - _NEAR) : at])
            topic += [*relation, "▢" if relation == USES else _mark(found[at:end], is_means=is_means)]
            at = end
        else:
            topic += relations[at] if at in relations else _topic_words(found[at])
            at += 1
    if rejected and _THINGLESS.issuperset(_things(topic)):
        # Use pnpm, not npm: the choice between the two is all that it is about.
        chosen = (word for start, end in slots.items() for word in _value(found[start:end]).words)
        topic += sorted({*chosen, *(word for piece in pieces(rejected) for word in _words(piece))})
    elif _THINGLESS.issuperset(_things(topic)):
        # Use pnpm: among the managers of packages.
        topic += sorted({kind for start, end in slots.items() for kind in kinds_in(found[start:end])})
    return found, slots, tuple(topic) or (canonical(text),), [at for at, told in relations.items() if not told]


def _things(topic: Iterable[str]) -> list[str]:
    return [word for word in topic if not word.startswith(("▢", "#"))]


@cached(1024)
def statement(text: str) -> Statement:
    found, slots, topic, verbs = _read(text)
    values = tuple(
        _value(found[start:end], found[start - 1] if start else None) for start, end in sorted(slots.items())
    )
    inside = {at for start, end in slots.items() for at in range(start, end)}
    polar = tuple(piece for at, piece in enumerate(found) if at not in inside)
    words = frozenset(word for piece in found for word in _words(piece))
    # What a condition denies is not denied: it returns null when nothing matches.
    condition = next((at for at, piece in enumerate(polar) if piece[1][:-1] == "if"), len(polar))
    is_denied = sum(_denies(polar, at) for at in range(condition or len(polar))) % 2 == 1
    is_open = is_denied or any(piece[1] in _POSSIBLE for piece in polar)
    shown = ["…" if at in slots else piece[3] for at, piece in enumerate(found) if at in slots or at not in inside]
    return Statement(
        subject=" ".join(shown),
        topic=topic,
        values=values,
        polar=polar,
        words=words,
        is_open=is_open,
        verbs=frozenset(filter(None, (verb_of(found[at]) for at in verbs))),
    )


def _denies(polar: Sequence[Piece], at: int) -> bool:
    """Whether a piece denies the statement, and not only tells which thing is meant: for unknown ids."""
    what, key, _, written, _ = polar[at]
    is_attribute = key == "un" and at + 2 < len(polar) and bool(polar[at + 2][2])
    return what == "negation" and not (is_attribute and written.lower() in kinds_of_things())


# The keys of a batch are computed before its transaction begins, and asked for in it.
@cached(1024)
def topic_key(text: str) -> str:
    """What statements of one topic and subject are found by."""
    return canonical_key(_key(_read(text)[2]))


def _key(topic: tuple[str, ...]) -> str:
    """The same for every order and wording of one topic, and for every word that may have an opposite in it.

    What opposes what comes with its own particle in Korean: 빌드에 포함한다, 빌드에서 제외한다.
    """
    return " ".join(
        sorted({"±" if word.startswith("±") else word.removesuffix("◁에서").removesuffix("◁에") for word in topic})
    )


def _topic_words(piece: Piece) -> Iterable[str]:
    what, key, shape, *_ = piece
    if what in ("number", "identifier", "quoted"):
        return (f"{key}{shape[1:]}",) if key else ()
    if key[:-1] == "with":
        # Built with Sphinx, built by Sphinx.
        return ()
    if not shape or what == "opposite":
        return (key if key[:-1] in _ACTS else shape,) if shape else ()
    if is_hangul(shape):
        noun, particle = korean.parted(shape)
        particle = particle.removesuffix("도")
        telling = particle if particle in word_set("korean slots") else ""
        stem = korean.stem(noun if telling else shape)
        # 나면, 나도: on what condition, or in spite of it.
        stem = stem[:-1] if stem.endswith("면") and len(stem) > 1 else stem
        stem = korean.bare_stem(stem) or stem
        return (
            () if stem in word_set("korean adverbs") else (f"{stem}◁{telling.removeprefix('으')}" if telling else stem,)
        )
    return _telling_tokens(shape)


@cached(8192)
def _telling_tokens(word: str) -> tuple[str, ...]:
    return tuple(token for token in tokens(word) if token not in empty_words())


def _words(piece: Piece) -> Iterable[str]:
    """What a piece says, as a value or as a part of a text that a change may end."""
    if piece[0] == "word":
        noun = korean.parted(piece[1])[0] if is_hangul(piece[1]) else piece[1]
        noun = "month of may" if piece[3] == "May" else amounts.PERIODS.get(noun, noun)
        return [noun] if is_hangul(noun) else tokens(noun)
    return [piece[1].casefold()]


def _value(slot: Sequence[Piece], before: Piece | None = None) -> Value:
    is_amount = _amount_in(slot) is not None
    words = frozenset(word for piece in slot if piece[2] for word in _words(piece) if word not in empty_words())
    # Everybody and nobody say nothing but how far a statement goes.
    words = words or frozenset({"nobody" if slot[0][0] == "negation" else slot[0][1]})
    return Value(
        words=frozenset(map(amounts.normal, words)) if is_amount else words,
        written=" ".join(piece[3] for piece in slot),
        is_amount=is_amount,
        is_limit=_is_limit(slot, before),
        kinds=kinds_in(slot) or (_UNNAMED if _is_unnamed(slot, before) else frozenset()),
    )


def _is_unnamed(slot: Sequence[Piece], before: Piece | None) -> bool:
    """Whether a value is a thing without a name: a layer cache, the clock stub."""
    is_common = all(piece[0] == "word" and piece[3].islower() for piece in slot)
    return is_common and before is not None and before[1] in _BEFORE_NAMES


def _is_limit(slot: Sequence[Piece], before: Piece | None) -> bool:
    """Whether a value says who alone, or that everybody: only admins, 누구나."""
    first, last = slot[0], slot[-1]
    is_only = before is not None and before[3].lower() == "only"
    is_everybody = first[0] in ("opposite", "negation") or first[1] in word_set("korean limits")
    return is_only or is_everybody or (without_particle(last)[1].endswith("만") and last[0] != "number")


def _amount_in(slot: Sequence[Piece]) -> str | None:
    """The amount that a value is, or None: 3, 20s, or a period of time."""
    what, key, *_ = slot[0]
    period = amounts.PERIODS.get(key, "")
    return None if len(slot) > 1 else key if what == "number" else period if period[:1] == "1" else None


def _is_means(before: Sequence[Piece]) -> bool:
    """Whether a value says by what something is done: built with Sphinx, built by Sphinx, Sphinx builds."""
    words = [piece[3].lower() for piece in before if piece[3].lower() not in _BEFORE_NAMES]
    return not words or words[-1] in word_set("agents")


def _mark(slot: Sequence[Piece], *, is_means: bool) -> str:
    """What stands for a value in its topic: amounts of time, sizes and shares are not the same thing."""
    last = slot[-1]
    particle = without_particle(last)[1]
    telling = f"◁{particle.removeprefix('으')}" if particle in word_set("korean slots") else ""
    amount = _amount_in(slot)
    if amount is not None:
        return f"#{amounts.dimension(amount)}{telling}"
    return ("▢=" if is_means else "▢") + telling


@cache
def empty_words() -> frozenset[str]:
    """Tokens that a wording may add or drop."""
    words = [*REWORDING_WORDS, *listed("relations", "modals", "adverbs")]
    return frozenset(tokens(" ".join(words)))


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

    Statements of one topic oppose each other in polarity or in a value. In both, they need not: what is not stored in
    Redis may be stored in Postgres.
    """
    ours, theirs = statement(a), statement(b)
    if ours.key != theirs.key:
        return None
    if frozenset(ours.topic) == frozenset(theirs.topic):
        return _opposition(ours, theirs)
    # They share a topic but for words that may be opposites: keeps, drops.
    denied = polarity(ours.polar, theirs.polar, by_opposites=True)
    return _opposed("polarity", denied) if denied and not _other_values(ours, theirs) else None


def breaks(text: str, rule: str) -> Opposition | None:
    """How a text opposes a rule that may be said of more, or of less, than the text (R12).

    "Money is stored as floats" speaks of the money of "All money is stored as integers in cents". Of a long text the
    beginning is compared, which says what is decided.
    """
    ours, theirs = (statement(each[:STATEMENT_CHARS_MAX]) for each in (text, rule))
    about, ruled = (frozenset(each.topic) - _UNIVERSAL for each in (ours, theirs))
    is_within = len(_things(about & ruled)) >= _SHARED_MIN and (about <= ruled or ruled <= about)
    return _opposition(ours, theirs) if is_within else opposes(text[:STATEMENT_CHARS_MAX], rule[:STATEMENT_CHARS_MAX])


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
        if _is_other(a, b) and (_go_together(a, b, ours) or (is_reworded and a.kinds.isdisjoint(b.kinds))):
            return False
    # "Use SQLite" and "Use WAL" name no thing that can have one value only.
    shares_words = any(a.words & b.words for a, b in zip(ours.values, theirs.values, strict=True))
    is_bare = _THINGLESS.issuperset(_things(ours.topic))
    names_a_thing = shares_words or not is_bare
    return names_a_thing and not (ours.is_open or theirs.is_open)


def _go_together(a: Value, b: Value, said: Statement) -> bool:
    """Whether a thing may well have both: Envoy and mutual TLS; and use both: Docker and a layer cache."""
    uses = "use" in said.verbs
    if bool(a.kinds) != bool(b.kinds):
        # The dashboard uses Vue, and Chart.js; the API returns JSON, and long lists.
        return (uses and not a.words & b.words) or ("return" in said.topic and (b if a.kinds else a).written.islower())
    if a.kinds | b.kinds >= _UNNAMED:
        return uses and not a.words & b.words
    if a.kinds | b.kinds >= AMOUNT and a.kinds != b.kinds:
        return uses
    return bool(a.kinds and b.kinds) and a.kinds.isdisjoint(b.kinds)


def _is_other(left: Value, right: Value) -> bool:
    return not (left.words <= right.words or right.words <= left.words)

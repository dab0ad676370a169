"""What a statement is about and what it says (R6).

A statement is read as a topic and values. Everything that is no value names the topic: the subject, the relation and
their circumstances, without words that say nothing and without negations.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from mnemarch.model.value import Frozen
from mnemarch.text import amounts, korean
from mnemarch.text.asides import without_asides
from mnemarch.text.cache import cached
from mnemarch.text.canonical import canonical, canonical_key, hashed
from mnemarch.text.guarded import Piece, pieces
from mnemarch.text.slots import english_slots
from mnemarch.text.slots_korean import has_hangul, is_hangul, is_name, korean_slots, without_particle
from mnemarch.text.tokens import tokens
from mnemarch.text.words import REWORDING_WORDS, kinds_of, listed

_DIRECTIONS = frozenset({"to", "from", "into", "onto"})
# The verbs of use in a topic, which tell nothing of what it is about.
_USES = frozenset({"±prefer"})
# What stands in a topic for a value that is no amount; for an amount it is what the amount is of.
_VALUE = "▢"
# A longer text is no statement: it has no values and its topic is itself, so that it opposes nothing. Whoever compares
# within a transaction has no more than this to read of each text.
STATEMENT_CHARS_MAX = 2_000


class Value(Frozen):
    """One value of a statement: the words it is compared by, how it was written, and whether it is an amount."""

    words: frozenset[str]
    written: str
    is_amount: bool


class Statement(Frozen):
    """`topic` is what statements that may oppose each other have in common."""

    topic: tuple[str, ...]
    values: tuple[Value, ...]


@cached(1024)
def parts_of(text: str) -> tuple[tuple[Piece, ...], dict[int, int], str]:
    """The pieces of a text, where its values begin and end, and what it is said against: use pnpm, not npm."""
    if len(text) > STATEMENT_CHARS_MAX:
        return (), {}, ""
    told, rejected = without_asides(text)
    found = pieces(told)
    slots = korean_slots(found) if has_hangul(found) else english_slots(found)
    if rejected and not slots:
        # Merge with rebase, never with squash: what is chosen comes last.
        slots = {at: at + 1 for at in [at for at, piece in enumerate(found) if is_name(piece)][-1:]}
    return found, slots, rejected


@cached(1024)
def statement(text: str) -> Statement:
    found, slots, _ = parts_of(text)
    return Statement(_topic_of(text), tuple(_value(found[start:end]) for start, end in sorted(slots.items())))


def said_in(text: str) -> frozenset[str]:
    """All that a statement says."""
    return frozenset(word for piece in parts_of(text)[0] for word in words_of(piece))


@cached(1024)
def _topic_of(text: str) -> tuple[str, ...]:
    found, slots, rejected = parts_of(text)
    if not found:
        return (canonical_key(text),)
    inside = {at for start, end in slots.items() for at in range(start, end)}
    topic = [word for at, piece in enumerate(found) if at not in inside for word in said_by(piece)]
    if _USES.issuperset(topic):
        # Use pnpm: among the managers of packages; and not npm: the choice between the two is all that it is about.
        choose = (lambda slot: _value(slot).words) if rejected else kinds_in
        chosen = {each for start, end in slots.items() for each in choose(found[start:end])}
        topic += sorted(chosen | {word for piece in pieces(rejected) for word in words_of(piece)})
    topic += [_mark(found[start:end]) for start, end in slots.items()]
    return tuple(topic) or (canonical(text),)


def subject_shown(text: str) -> str:
    """What a statement is about, as it was written, with dots for its values; nothing of what is no statement."""
    if len(text) > STATEMENT_CHARS_MAX:
        return ""
    for value in statement(text).values:
        written = r"\s*".join(map(re.escape, value.written.split()))
        text = re.sub(rf"(?<!\w){written}", "…", text, count=1)
    return " ".join(text.split()).rstrip(".")


# The keys of a batch are computed before its transaction begins, and asked for in it.
@cached(1024)
def topic_key(text: str) -> str:
    """What statements of one topic are found by: the same for every order of its words, and for opposites in it.

    What opposes what comes with its own particle in Korean: 빌드에 포함한다, 빌드에서 제외한다.
    """
    words = {"±" if word[0] == "±" else word.partition("◁")[0] for word in _topic_of(text) if word[0] not in "#▢"}
    return hashed(" ".join(sorted(words - _DIRECTIONS)).casefold())


def said_by(piece: Piece) -> tuple[str, ...]:
    """What a piece says of the topic; nothing if a wording may add or drop it."""
    what, key, shape, *_ = piece
    if what in ("number", "identifier", "quoted"):
        return (f"{key}{shape[1:]}",) if key else ()
    if key in _DIRECTIONS:
        return (key,)
    if not shape or what == "opposite":
        return (shape,) if shape else ()
    if is_hangul(shape):
        noun, particle = korean.parted(shape)
        telling = particle in listed("relations", "korean slots")
        stem = korean.stem(noun if telling else shape)
        stem = korean.bare_stem(stem) or stem
        return () if stem in listed("relations", "korean adverbs") else (f"{stem}◁{particle}" if telling else stem,)
    return _telling_tokens(shape)


@cached(8192)
def _telling_tokens(word: str) -> tuple[str, ...]:
    return tuple(token for token in tokens(word) if token not in empty_words())


def words_of(piece: Piece) -> Sequence[str]:
    """What a piece says, as a value or as a part of a text that a change may end."""
    if piece[0] == "word":
        noun = korean.parted(piece[1])[0] if is_hangul(piece[1]) else piece[1]
        noun = "month of may" if piece[3] == "May" else amounts.PERIODS.get(noun, noun)
        return [noun] if is_hangul(noun) else tokens(noun)
    return [piece[1].casefold()]


def _value(slot: Sequence[Piece]) -> Value:
    is_amount = _amount_in(slot) is not None
    words = frozenset(word for piece in slot if piece[2] for word in words_of(piece) if word not in empty_words())
    # Everybody and nobody say nothing but how far a statement goes.
    words = words or frozenset({"nobody" if slot[0][0] == "negation" else slot[0][1]})
    return Value(
        words=frozenset(map(amounts.normal, words)) if is_amount else words,
        written=" ".join(piece[3] for piece in slot),
        is_amount=is_amount,
    )


def _amount_in(slot: Sequence[Piece]) -> str | None:
    """The amount that a value is, or None: 3, 20s, or a period of time."""
    what, key, *_ = slot[0]
    period = amounts.PERIODS.get(key, "")
    return None if len(slot) > 1 else key if what == "number" else period if period[:1] == "1" else None


def _mark(slot: Sequence[Piece]) -> str:
    """What stands for a value in its topic: amounts of time, sizes and shares are not the same thing."""
    amount = _amount_in(slot)
    return _VALUE if amount is None else f"#{amounts.dimension(amount)}"


def kinds_in(slot: Sequence[Piece]) -> frozenset[str]:
    """What the name in a value is used as: the Redis cluster, as Redis is; an amount is no name: 2 GB of memory."""
    if any(piece[0] == "number" and amounts.dimension(piece[1]) for piece in slot):
        return frozenset()
    parts = " ".join(without_particle(piece)[0].lower() for piece in slot).replace(" - ", "-").split()
    names = [" ".join(parts), *(" ".join(parts[at : at + 2]) for at in range(len(parts) - 1)), *parts]
    return next((kinds for name in names if (kinds := kinds_of(name))), frozenset())


@cache
def empty_words() -> frozenset[str]:
    """Tokens that a wording may add or drop."""
    words = [*REWORDING_WORDS, *listed("relations", "modals", "adverbs")]
    return frozenset(tokens(" ".join(words)))

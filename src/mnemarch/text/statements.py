"""What a statement is about and what it says (R6).

A statement is read as a topic and values. Everything that is no value names the topic: the subject, the relation and
their circumstances, without words that say nothing and without negations.
"""

from __future__ import annotations

from functools import cache

from mnemarch.model.value import Frozen
from mnemarch.text import amounts, korean
from mnemarch.text.asides import without_asides
from mnemarch.text.cache import cached
from mnemarch.text.canonical import canonical, canonical_key, hashed
from mnemarch.text.guarded import Piece, pieces
from mnemarch.text.relating import USES, kinds_in, parsed, verb_of
from mnemarch.text.slots import kinds_of_things
from mnemarch.text.slots_korean import has_hangul, is_hangul, is_name, without_particle, word_set
from mnemarch.text.tokens import tokens
from mnemarch.text.words import REWORDING_WORDS, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_DIRECTIONS = frozenset({"to", "from", "into", "onto"})
_EXTENTS = frozenset({"만", "도", "까지", "부터", "밖에", "보다"})
# One may do both of these: read from a queue, write to it.
_ACTS = frozenset({"read"})
THINGLESS = frozenset(USES)
_BEFORE_NAMES = frozenset({"a", "an", "the", "our", "only"})
# So far back the word is looked for that says by what something is done.
_NEAR = 4
# A longer text is no statement: it has no values and its topic is itself, so that it opposes nothing. Whoever compares
# within a transaction has no more than this to read of each text.
STATEMENT_CHARS_MAX = 2_000


class Value(Frozen):
    """One value of a statement: the words it is compared by, how it was written, and whether it is an amount.

    `is_limit` says that it leaves no place for another even where a thing only can be: only admins, everyone.
    """

    words: frozenset[str]
    written: str
    is_amount: bool
    is_limit: bool


class Statement(Frozen):
    """`topic` is what statements that may oppose each other have in common; `polar` are the pieces that can deny it.

    `subject` shows the topic as it was written, with dots for the values.
    """

    subject: str
    topic: tuple[str, ...]
    values: tuple[Value, ...]
    polar: tuple[Piece, ...]
    words: frozenset[str]
    is_denied: bool
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
    found = pieces(told)
    slots, relations = parsed(found)
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
            topic += relations[at] if at in relations else topic_words(found[at])
            at += 1
    if rejected and THINGLESS.issuperset(things(topic)):
        # Use pnpm, not npm: the choice between the two is all that it is about.
        chosen = (word for start, end in slots.items() for word in value_of(found[start:end]).words)
        topic += sorted({*chosen, *(word for piece in pieces(rejected) for word in _words(piece))})
    elif THINGLESS.issuperset(things(topic)):
        # Use pnpm: among the managers of packages.
        topic += sorted({kind for start, end in slots.items() for kind in kinds_in(found[start:end])})
    return found, slots, tuple(topic) or (canonical(text),), [at for at, told in relations.items() if not told]


def parts_of(text: str) -> tuple[tuple[Piece, ...], dict[int, int]]:
    """The pieces of a text, and where its values begin and end."""
    found, slots, *_ = _read(text)
    return found, slots


def things(topic: Iterable[str]) -> list[str]:
    return [word for word in topic if not word.startswith(("▢", "#"))]


@cached(1024)
def statement(text: str) -> Statement:
    found, slots, topic, verbs = _read(text)
    values = tuple(
        value_of(found[start:end], found[start - 1] if start else None) for start, end in sorted(slots.items())
    )
    inside = {at for start, end in slots.items() for at in range(start, end)}
    polar = tuple(piece for at, piece in enumerate(found) if at not in inside)
    words = frozenset(word for piece in found for word in _words(piece))
    # What a condition denies is not denied: it returns null when nothing matches.
    condition = next((at for at, piece in enumerate(polar) if piece[1][:-1] == "if"), len(polar))
    is_denied = sum(_denies(polar, at) for at in range(condition or len(polar))) % 2 == 1
    shown = ["…" if at in slots else piece[3] for at, piece in enumerate(found) if at in slots or at not in inside]
    return Statement(
        subject=" ".join(shown),
        topic=topic,
        values=values,
        polar=polar,
        words=words,
        is_denied=is_denied,
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
    return hashed(_key(_read(text)[2]).casefold())


def _key(topic: tuple[str, ...]) -> str:
    """The same for every order and wording of one topic, and for every word that may have an opposite in it.

    What opposes what comes with its own particle in Korean: 빌드에 포함한다, 빌드에서 제외한다.
    """
    return " ".join(
        sorted({"±" if word.startswith("±") else word.removesuffix("◁에서").removesuffix("◁에") for word in topic})
    )


def topic_words(piece: Piece) -> Iterable[str]:
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


def value_of(slot: Sequence[Piece], before: Piece | None = None) -> Value:
    is_amount = _amount_in(slot) is not None
    words = frozenset(word for piece in slot if piece[2] for word in _words(piece) if word not in empty_words())
    # Everybody and nobody say nothing but how far a statement goes.
    words = words or frozenset({"nobody" if slot[0][0] == "negation" else slot[0][1]})
    return Value(
        words=frozenset(map(amounts.normal, words)) if is_amount else words,
        written=" ".join(piece[3] for piece in slot),
        is_amount=is_amount,
        is_limit=_is_limit(slot, before),
    )


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

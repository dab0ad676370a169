"""Parses a statement into a topic and values (R6).

Everything that is no value belongs to the topic: the subject, the relation and their circumstances. Words without
meaning and negations are left out. Asides are removed first, and phrases are replaced by common words. Amounts are
converted to the unit in which they are compared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from unicodedata import category

from mnemarch.model.value import Frozen
from mnemarch.text import korean
from mnemarch.text.cache import cached, pattern
from mnemarch.text.canonical import canonical, canonical_key, hashed
from mnemarch.text.guarded import Piece, pieces
from mnemarch.text.slots import english_slots, has_hangul, is_name, korean_slots, without_particle
from mnemarch.text.tokens import tokens
from mnemarch.text.words import REWORDING_WORDS, Patterns, grouped, is_hangul, kinds_of, listed

_DIRECTIONS = frozenset({"to", "from", "into", "onto"})
# The verbs of use in a topic. They don't say what the statement is about.
_USES = frozenset({"±prefer"})
# The placeholder in a topic for a value. An amount has its dimension instead.
_VALUE = "▢"
# A longer text is no statement: it has no values and is its own topic, so it opposes nothing. This also bounds the time
# of a comparison within a transaction.
STATEMENT_CHARS_MAX = 2_000

_ASIDES = Patterns("relations", "asides")
_PHRASES = Patterns("relations", "phrases").sources
_ENDINGS = Patterns("relations", "endings").sources
_MEANINGS = [*_PHRASES, *_ENDINGS]
# The Unicode categories of emoji and their joiners, and the signs that mean yes or no.
_SIGNS = frozenset({"So", "Sk", "Cf", "Cs"})
_TELLING_SIGNS = frozenset("✓✔✗✘✅❌⭕🚫⛔")
_HOURS = {"한": 1, "두": 2, "세": 3, "네": 4}
_HALF_PAST = r"(\d+|[한두세네]) ?시간 반(?=\s|$)"
_TIME_OF_DAY = r"(\d{1,2})시 ?(\d{1,2})분"

PERIODS = {word: amount for amount, words in grouped("relations", "periods").items() for word in words}
_DIMENSIONS = grouped("relations", "dimensions")
_LARGER_UNITS = {unit: (large, int(many)) for unit, (large, many) in grouped("relations", "larger units").items()}
_BINARY = {1000: 1024}
_SMALLER_UNITS = {large: (small, factor) for small, (large, factor) in _LARGER_UNITS.items()}


class Value(Frozen):
    """One value of a statement: the words to compare, the written form, and whether it is an amount."""

    words: frozenset[str]
    written: str
    is_amount: bool


class Statement(Frozen):
    """A parsed statement. Statements that may oppose each other have the same `topic`."""

    topic: tuple[str, ...]
    values: tuple[Value, ...]


@cached(1024)
def parts_of(text: str) -> tuple[tuple[Piece, ...], dict[int, int], str]:
    """The pieces of a text, the begin and end of its values, and the rejected alternative ("use pnpm, not npm")."""
    if len(text) > STATEMENT_CHARS_MAX:
        return (), {}, ""
    told, rejected = without_asides(text)
    found = pieces(told)
    is_korean = not told.isascii() and has_hangul(found)
    slots = korean_slots(found) if is_korean else english_slots(found)
    if rejected and not slots:
        # "Merge with rebase, never with squash": the chosen thing is the last name.
        slots = {at: at + 1 for at in [at for at, piece in enumerate(found) if is_name(piece)][-1:]}
    return found, slots, rejected


@cached(1024)
def statement(text: str) -> Statement:
    found, slots, _ = parts_of(text)
    return Statement(_topic_of(text), tuple(_value(found[start:end]) for start, end in sorted(slots.items())))


def said_in(text: str) -> frozenset[str]:
    """All words of a statement."""
    return frozenset(word for piece in parts_of(text)[0] for word in words_of(piece))


@cached(1024)
def _topic_of(text: str) -> tuple[str, ...]:
    found, slots, rejected = parts_of(text)
    if not found:
        return (canonical_key(text),)
    inside = {at for start, end in slots.items() for at in range(start, end)}
    topic = [word for at, piece in enumerate(found) if at not in inside for word in said_by(piece)]
    if _USES.issuperset(topic):
        # The topic of "use pnpm" is package managers. That of "use pnpm, not npm" is the choice between the two.
        choose = (lambda slot: _value(slot).words) if rejected else kinds_in
        chosen = {each for start, end in slots.items() for each in choose(found[start:end])}
        topic += sorted(chosen | {word for piece in pieces(rejected) for word in words_of(piece)})
    topic += [_mark(found[start:end]) for start, end in slots.items()]
    return tuple(topic) or (canonical(text),)


def compared(texts: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The subject of statements as the first puts it, with dots where their values differ, and the values of each.

    The subject is empty if the first is too long to be a statement.
    """
    every = [statement(text).values for text in texts]
    common = frozenset(every[0]).intersection(*every)
    subject = texts[0] if len(texts[0]) <= STATEMENT_CHARS_MAX else ""
    for value in every[0]:
        if value not in common:
            written = r"\s*".join(map(re.escape, value.written.split()))
            subject = re.sub(rf"(?<!\w){written}", "…", subject, count=1)
    told = (", ".join(korean.as_name(each.written) for each in values if each not in common) for values in every)
    return " ".join(subject.split()).rstrip("."), tuple(told)


# Cached: the keys of a batch are computed before its transaction begins, and used in it.
@cached(1024)
def topic_key(text: str) -> str:
    """The key that finds statements of the same topic. It ignores the order of words, and is equal for opposites.

    It ignores particles too, because Korean opposites take different ones: 빌드에 포함한다, 빌드에서 제외한다.
    """
    words = {"±" if word[0] == "±" else word.partition("◁")[0] for word in _topic_of(text) if word[0] not in "#▢"}
    return hashed(" ".join(sorted(words - _DIRECTIONS)).casefold())


def said_by(piece: Piece) -> tuple[str, ...]:
    """The words that a piece adds to the topic. Empty if a rewording may add or drop the piece."""
    what, key, shape, _, _ = piece
    if what == "word" and shape.isascii() and key not in _DIRECTIONS:
        return _telling_tokens(shape)
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
    """The words of a piece, as part of a value or of a text that a change may end."""
    if piece[0] == "word":
        noun = korean.parted(piece[1])[0] if is_hangul(piece[1]) else piece[1]
        noun = "month of may" if piece[3] == "May" else PERIODS.get(noun, noun)
        return [noun] if is_hangul(noun) else tokens(noun)
    return [piece[1].casefold()]


def _value(slot: Sequence[Piece]) -> Value:
    is_amount = _amount_in(slot) is not None
    words = frozenset(word for piece in slot if piece[2] for word in words_of(piece) if word not in empty_words())
    # A value without other words, such as "everybody" or "nobody", only says how far the statement goes.
    words = words or frozenset({"nobody" if slot[0][0] == "negation" else slot[0][1]})
    return Value(
        words=frozenset(map(normal_amount, words)) if is_amount else words,
        written=" ".join(piece[3] for piece in slot),
        is_amount=is_amount,
    )


def _amount_in(slot: Sequence[Piece]) -> str | None:
    """The amount in a value (3, 20s, or a period of time), or None."""
    what, key, *_ = slot[0]
    period = PERIODS.get(key, "")
    return None if len(slot) > 1 else key if what == "number" else period if period[:1] == "1" else None


def _mark(slot: Sequence[Piece]) -> str:
    """The placeholder of a value in its topic. Amounts of time, sizes and shares have different ones."""
    amount = _amount_in(slot)
    return _VALUE if amount is None else f"#{dimension_of(amount)}"


def kinds_in(slot: Sequence[Piece]) -> frozenset[str]:
    """The kinds of the thing that a value names: "the Redis cluster" has those of Redis. Empty for amounts."""
    if any(piece[0] == "number" and dimension_of(piece[1]) for piece in slot):
        return frozenset()
    parts = " ".join(without_particle(piece)[0].lower() for piece in slot).replace(" - ", "-").split()
    names = [" ".join(parts), *(" ".join(parts[at : at + 2]) for at in range(len(parts) - 1)), *parts]
    return next((kinds for name in names if (kinds := kinds_of(name))), frozenset())


@cache
def empty_words() -> frozenset[str]:
    """The tokens that a rewording may add or drop."""
    words = [*REWORDING_WORDS, *listed("relations", "modals", "adverbs")]
    return frozenset(tokens(" ".join(words)))


@cached(1024)
def limits(text: str) -> frozenset[str]:
    """The words that no topic contains, but that a rewording must keep: "admins may" and "only admins may" differ."""
    text = text[:STATEMENT_CHARS_MAX]  # A longer text is its own topic.
    words = frozenset("may" if word == "can" else word for word in pattern(r"\w+").findall(text.lower()))
    is_ban = any(piece[0] == "negation" for piece in pieces(text))
    kept = listed("english", "limits") if is_ban else listed("english", "limits", "obligations")
    return words.intersection(kept) | korean.limits(text)


# Asides


@cache
def _phrases() -> re.Pattern[str]:
    """One pattern for all phrases of several words and all endings, so that a text is scanned once."""
    plain = [
        f"(?i:{source[4:]})" if source.startswith("(?i)") else source
        for source in (*_PHRASES.values(), *_ENDINGS.values())
    ]
    named = [f"(?P<p{number}>{source})" for number, source in enumerate(plain)]
    return pattern(rf"(?<!\w)(?:{'|'.join(named[: len(_PHRASES)])})|{'|'.join(named[len(_PHRASES) :])}")


def _has_any(section: str, text: str) -> bool:
    """Whether a text has one of these signs. Most texts have none, and a search for a sign is faster than a pattern."""
    if not text.isascii():
        return True  # In its lower case, a text of other scripts may lack a sign that a pattern finds.
    return any(map(text.lower().__contains__, _signs(section)))


@cache
def _signs(section: str) -> list[str]:
    return [sign.replace("_", " ") for sign in listed("relations", section)]


def _in_minutes(match: re.Match[str]) -> str:
    """A Korean "N hours and a half" in minutes."""
    return f"{60 * _HOURS.get(match[1], 0) + 30 if match[1] in _HOURS else 60 * int(match[1]) + 30}분"


def _plain(text: str) -> str:
    """The text without signs such as emoji."""
    if text.isascii():
        return text
    signs = {each for each in set(text) - _TELLING_SIGNS if category(each) in _SIGNS} | {"\ufe0f"}
    return "".join(letter for letter in text if letter.isascii() or letter not in signs).strip()


def without_asides(text: str) -> tuple[str, str]:
    """The text without its asides, and the rejected alternative: use pnpm (not npm)."""
    rejected: list[str] = []
    if "시" in text:
        text = pattern(_TIME_OF_DAY).sub(r"\1:\2시", pattern(_HALF_PAST).sub(_in_minutes, text))
    text = _plain(text)

    def left(match: re.Match[str]) -> str:
        named = match.groupdict("")
        chosen = named.pop("chosen")
        rejected.extend(filter(None, named.values()))
        return f"{chosen} "

    if "=" in text:
        text = pattern(r"`?([A-Za-z_][\w.-]{0,60})=([\w.]{1,60})`?").sub(_assigned, text)
    if _has_any("phrase signs", text):
        text = _phrases().sub(lambda match: f" {_MEANINGS[int(str(match.lastgroup)[1:])]} ", text)
    if _has_any("aside signs", text):
        text = _ASIDES["aside"].sub(left, text)
    if not text.isascii():
        text = _ASIDES["korean aside"].sub(left, text)
    return text, " ".join(rejected)


def _assigned(match: re.Match[str]) -> str:
    """An assignment as a statement: `DEBUG=1` is `DEBUG` is 1."""
    return f"`{match[1]}` is {match[2] if match[2].isdigit() else f'`{match[2]}`'}"


# Amounts


def normal_amount(key: str) -> str:
    """An amount in the largest unit that gives a whole number: 120s and 2min are equal."""
    match = pattern(r"(\d{1,15}(?:\.\d{1,6})?)([A-Za-z]{1,3})").fullmatch(key)
    unit = match[2] if match else ""
    unit = next((each for each in (*_LARGER_UNITS, *_SMALLER_UNITS) if each.lower() == unit), "")
    if match is None or not unit:
        return key
    from fractions import Fraction  # it brings `re`

    number = Fraction(match[1])
    while number.denominator > 1 and unit in _SMALLER_UNITS:
        unit, factor = _SMALLER_UNITS[unit]
        number *= factor
    while number and unit in _LARGER_UNITS:
        larger, factor = _LARGER_UNITS[unit]
        whole = [number / each for each in (factor, _BINARY.get(factor, factor)) if (number / each).denominator == 1]
        if not whole:
            break
        number, unit = whole[0], larger
    return f"{number}{unit.lower()}"


def dimension_of(amount: str) -> str:
    """The dimension of an amount: time, size or share. Empty for a plain number."""
    if amount.isdigit():
        return ""
    unit = amount.lstrip("-+~^$€£¥₩0123456789.,:/x")
    return next((name for name, units in _DIMENSIONS.items() if unit in units), "")


def magnitudes(amount: str) -> frozenset[float]:
    """The numbers that stand for an amount: 30 seconds are 30, 30000 (milliseconds) or 0.5 (minutes).

    Empty if the amount can't be read whole.
    """
    match = pattern(r"[$€£¥₩]?(\d{1,15}(?:\.\d{1,6})?)(%|[A-Za-z]{0,3})").fullmatch(amount)
    if match is None or not (match[2] in ("", "%") or dimension_of(amount)):
        return frozenset()
    numbers = {float(match[1])}
    for steps, is_smaller in ((_SMALLER_UNITS, True), (_LARGER_UNITS, False)):
        unit, reached = match[2], {float(match[1])}
        while unit in steps:
            unit, factor = steps[unit]
            factors = {factor, _BINARY.get(factor, factor)}
            reached = {each * by if is_smaller else each / by for each in reached for by in factors}
            numbers = numbers | reached
    return frozenset(float(f"{each:.12g}") for each in numbers)

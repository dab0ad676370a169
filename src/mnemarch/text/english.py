"""English words that the guard reads: numbers, units, negations and opposites, with their inflections."""

from __future__ import annotations

import re
from functools import cache

_ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = "second third fourth fifth sixth seventh eighth ninth tenth"

NUMBERS: dict[str, int] = {
    **{word: number for number, word in enumerate(f"{_ONES} seventeen eighteen nineteen".split())},
    **{word: 10 * number for number, word in enumerate(_TENS.split(), start=2)},
    "once": 1,
    "twice": 2,
    "thrice": 3,
}
SCALES = {"hundred": 100, "thousand": 1000, "million": 1_000_000, "billion": 1_000_000_000}
# Said of how many there are, or how often; by what they are compared.
MULTIPLES = {"single": "1", "double": "2", "triple": "3", "half": "1/2", "quarter": "1/4"}
ORDINALS: dict[str, int] = {word: number for number, word in enumerate(_ORDINALS.split(), start=2)}

# "times" says nothing that the number before it does not.
UNITS: dict[str, str] = {
    spelling: unit
    for unit, spellings in {
        "": "time times",
        "%": "% percent",
        "th": "st nd rd th",
        "ns": "ns nanosecond nanoseconds",
        "us": "us µs μs microsecond microseconds",
        "ms": "ms msec millis millisecond milliseconds",
        "s": "s sec secs second seconds",
        "min": "min mins minute minutes",
        "h": "h hr hrs hour hours",
        "d": "d day days",
        "w": "w wk week weeks",
        "mo": "mo month months",
        "y": "y yr yrs year years",
        "B": "byte bytes",
        "KB": "kb kilobyte kilobytes",
        "MB": "mb megabyte megabytes",
        "GB": "gb gigabyte gigabytes",
        "TB": "tb terabyte terabytes",
        "KiB": "kib",
        "MiB": "mib",
        "GiB": "gib",
        "px": "px pixel pixels",
    }.items()
    for spelling in spellings.split()
}

_NEGATIONS = "not no non none neither nor nothing nobody nowhere unable lack lacks lacked lacking"
NEGATIONS = frozenset(_NEGATIONS.split())
_AUXILIARIES = "do does did is are was were has have had ca wo sha must should would could might need ought dare ai may"
_FULL = {"ca": "can", "wo": "will", "sha": "shall", "ai": "is"}
CONTRACTIONS: dict[str, str] = {
    spelling: _FULL.get(word, word)
    for word in _AUXILIARIES.split()
    for spelling in (f"{word}n't", f"{word}nt")
    if spelling not in {"want", "dant"}
} | {"cannot": "can"}

# Words that carry grammar alone: a skeleton goes without them.
_LIGHT = (
    "a an the this that these those am is are was were be been being do does did has have had will would of in into"
    " from at for by as"
)
LIGHT = frozenset(_LIGHT.split())

# A second is an ordinal but after these, or after a number.
BEFORE_A_UNIT = frozenset({"per", "a", "every", "each", "one"})

# Words in capitals that stress rather than name.
_SHOUTED = (
    "a i am an and any all are as at be but by can could do does for from has have if important in is it its just may"
    " must note of ok only or please shall should so than that the then there they this to tip todo use using very was"
    " we were when where which while who will would you your warning caution danger"
)
SHOUTED = frozenset(_SHOUTED.split())

# One group a line: its name, the words of one pole, the words of the other. A star marks a word that inflects,
# an exclamation mark a pole that negates by itself.
_OPPOSITES = """
allow: allow* permit* grant* | !deny* !forbid* !forbade !forbidden !prohibit* !disallow* !ban* block* revoke*
enable: enable* activate* | !disable* !deactivate*
always: always | !never
include: include* | !exclude* omit*
truth: true | false
on: on | off
with: with | !without
order: before precede* | after follow*
than: above over more greater larger bigger higher exceed* | below under less fewer smaller
change: increase* raise* | decrease* reduce* lower*
bound: minimum min minimal least | maximum max maximal most
sync: sync synchronous synchronously | async asynchronous asynchronously
need: required mandatory require* | optional optionally
valid: valid | !invalid
safe: safe safely secure | !unsafe !unsafely !insecure
success: success* succeed* successful successfully pass* | failure* fail* unsuccessful
accept: accept* approve* | !reject* !refuse* !decline*
public: public publicly | private privately
first: first | last
direction: ascending asc | descending desc
side: left | right
up: up | down
add: add* insert* append* create* | remove* delete* drop*
open: open* | close* shut
start: start* begin* | stop* end* halt*
lock: lock* | unlock*
if: if when | unless
keep: keep* retain* | discard*
prefer: prefer* recommend* | !avoid*
new: new newer newest | old older oldest
inside: inside within | outside
read: read* | write* wrote written
early: early earlier | late later
all: all every | !none
same: same equal equals identical | different !unequal
known: known | !unknown
used: used | !unused
supported: supported | !unsupported
stable: stable | !unstable
possible: possible | !impossible
available: available | !unavailable
correct: correct | !incorrect
mutable: mutable | !immutable
everybody: everybody everyone everything everywhere | !nobody !nothing !nowhere
"""
# Groups that say how far a statement goes and not what it is about: a skeleton goes without them.
EXTENTS = frozenset({"always", "everybody", "must", "sum"})

# What turns a word into its opposite, and before which letters; then those of other words (under, illustrate, import).
_PREFIXES = (
    r"un(?!der|til|less|to|i(?!m|n)|ary|cle|anim)"
    r"|il(?=l)(?!lus|lum|lne)"
    r"|ir(?=r)(?!rit|rig)"
    r"|im(?=[mp])(?!me[dnr]|mi|mun|pact|pair|part(?!i)|pass(?!a)|ped|pel|pend|per[ai]|pet|pl[eyio]|port|pos[et]|pound"
    r"|press|print|prov|puls)"
    r"|non(?!ce|e|sen)"
)
# Before these "in" and "dis" negate; in most words they don't (index, insert, distinct, discover).
_DENIED = {
    "in": "accessible accurate active adequate applicable appropriate capable compatible complete consistent constant"
    " convenient decisive dependent deterministic direct divisible effective efficient eligible exact expensive finite"
    " flexible formal frequent sensitive significant sufficient tolerant variable visible",
    "dis": "agree agrees agreed connect connects connected continue continued honest joint ordered prove proved regard"
    " regarded satisfied similar trust trusted",
}
_BEGINNINGS = frozenset({"un", "il", "ir", "im", "in", "no", "di"})
_PREFIXED_MIN = 5


@cache
def guarded() -> frozenset[str]:
    """Every word that the guard reads as more than a word."""
    tables = (NUMBERS, SCALES, MULTIPLES, ORDINALS, UNITS, NEGATIONS, CONTRACTIONS, opposites())
    return frozenset(word for table in tables for word in table)


@cache
def contradictory() -> frozenset[str]:
    """The groups in which what is not the one is the other: not allowed is forbidden, but not before is not after."""
    groups = frozenset(line.partition(":")[0] for line in _OPPOSITES.strip().splitlines() if "!" in line)
    return groups - {"always", "all", "everybody"}  # Not always is not never.


def unprefixed(word: str) -> str | None:
    """What a word denies, if a prefix makes it deny something: legal for illegal; None of most words."""
    if word[:2] not in _BEGINNINGS or len(word) < _PREFIXED_MIN:
        return None
    match = _prefixes().match(word)
    return _denials().get(word) if match is None else word[match.end() :]


@cache
def _prefixes() -> re.Pattern[str]:
    return re.compile(_PREFIXES)


@cache
def _denials() -> dict[str, str]:
    return {prefix + word: word for prefix, words in _DENIED.items() for word in words.split()}


@cache
def opposites() -> dict[str, tuple[tuple[str, ...], bool]]:
    """For each word its poles, as in `allow+` or `allow-`, and whether it negates by itself."""
    poles: dict[str, tuple[tuple[str, ...], bool]] = {}
    for line in _OPPOSITES.strip().splitlines():
        group, _, words = line.partition(":")
        for sign, side in zip("+-", words.split("|"), strict=True):
            for word in side.split():
                for form in _inflected(word.strip("!")):
                    had, negates = poles.get(form, ((), False))
                    poles[form] = ((*had, group + sign), negates or word.startswith("!"))
    return poles


def _inflected(word: str) -> set[str]:
    base = word.rstrip("*")
    if base == word:
        return {base}
    if base.endswith("e"):
        return {base, base + "s", base + "d", base[:-1] + "ing"}
    if base.endswith("y") and base[-2] not in "aeiou":
        return {base, base[:-1] + "ies", base[:-1] + "ied", base + "ing"}
    doubled = base + base[-1]
    plain = {base, base + "s", base + "ed", base + "ing", doubled + "ed", doubled + "ing"}
    return plain | {base + "es"} if base.endswith(("s", "x", "ch", "sh")) else plain

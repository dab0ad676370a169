"""English words as data: numbers, units, negations, prefixes that deny, and irregular forms."""

from __future__ import annotations

from functools import cache

from mnemarch.text.pattern import pattern

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

# A second is an ordinal but after these, or after a number.
BEFORE_A_UNIT = frozenset({"per", "a", "every", "each", "one"})

# Words in capitals that stress rather than name.
_SHOUTED = (
    "a i am an and any all are as at be but by can could do does for from has have if important in is it its just may"
    " must note of ok only or please shall should so than that the then there they this to tip todo use using very was"
    " we were when where which while who will would you your warning caution danger"
)
SHOUTED = frozenset(_SHOUTED.split())

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


_PREFIXED_MAX = 64

_VERBS = """
go: went gone goes | buy: bought | bring: brought | think: thought | teach: taught | catch: caught | seek: sought
fight: fought | feel: felt | keep: kept | sleep: slept | leave: left | meet: met | tell: told | sell: sold | say: said
pay: paid | make: made | hold: held | hear: heard | build: built | send: sent | spend: spent | lend: lent | lose: lost
win: won | begin: began begun | drink: drank drunk | sing: sang sung | swim: swam swum | ring: rang rung | run: ran
come: came | become: became | see: saw seen | give: gave given | take: took taken | write: wrote written
drive: drove driven | ride: rode ridden | rise: rose risen | choose: chose chosen | speak: spoke spoken
break: broke broken | wake: woke woken | steal: stole stolen | freeze: froze frozen | eat: ate eaten
fall: fell fallen | know: knew known | grow: grew grown | throw: threw thrown | fly: flew flown | draw: drew drawn
show: shown | wear: wore worn | tear: tore torn | bear: bore born | swear: swore sworn | hide: hid hidden
bite: bit bitten | forget: forgot forgotten | get: got gotten | stand: stood | understand: understood | find: found
lead: led | feed: fed | bleed: bled | sit: sat | shoot: shot | stick: stuck | strike: struck | hang: hung | dig: dug
shake: shook shaken | speed: sped | bend: bent | burn: burnt | learn: learnt | dream: dreamt | deal: dealt
mean: meant | slide: slid | spin: spun | sweep: swept | weep: wept | bind: bound | grind: ground | lay: laid | lie: lain
"""
_NOUNS = """
child: children | man: men | woman: women | person: people | foot: feet | tooth: teeth | mouse: mice | wife: wives
life: lives | knife: knives | shelf: shelves | half: halves | loaf: loaves
"""
_DEGREES = "good: better best | bad: worse worst"


@cache
def guarded() -> frozenset[str]:
    """Every word that a comparison of statements reads as more than a word."""
    from mnemarch.text.opposites import english_opposites

    tables = (NUMBERS, SCALES, MULTIPLES, ORDINALS, UNITS, NEGATIONS, CONTRACTIONS, english_opposites())
    return frozenset(word for table in tables for word in table)


def unprefixed(word: str) -> str | None:
    """What a word denies, if a prefix makes it deny something: legal for illegal; None of most words."""
    if word[:2] not in _BEGINNINGS or not _PREFIXED_MIN <= len(word) <= _PREFIXED_MAX:
        return None
    match = pattern(_PREFIXES).match(word)
    return _denials().get(word) if match is None else word[match.end() :]


@cache
def _denials() -> dict[str, str]:
    return {prefix + word: word for prefix, words in _DENIED.items() for word in words.split()}


@cache
def irregular_forms() -> dict[str, str]:
    """For each irregular form the word it is a form of."""
    entries = (_VERBS + _NOUNS + _DEGREES).replace("\n", "|").split("|")
    pairs = (entry.split(":") for entry in entries if ":" in entry)
    return {form: word.strip() for word, forms in pairs for form in forms.split()}

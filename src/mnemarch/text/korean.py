"""Korean: the stem of a word and its features for search, its grammar for comparing statements, and its English.

Stems come from closed lists of grammar, not from a dictionary. A noun that happens to end like a particle (냉장고)
loses its end in every form, so the loss does no harm.
"""

# ruff: noqa: RUF071 (what is compared is no path)
from __future__ import annotations

from functools import cache
from os.path import commonprefix
from unicodedata import normalize

from mnemarch.text.cache import pattern
from mnemarch.text.words import Patterns, entries, grouped, is_hangul, listed, opposites

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable

_FINALS = {"ㄴ": "\u11ab", "ㄹ": "\u11af", "ㅂ": "\u11b8", "ㅆ": "\u11bb"}
_WORD_CHARS_MAX = 32
# A syllable has two or three letters, so four are two syllables.
_ONE_SYLLABLE, _TWO_SYLLABLES = 2, 4
_NEVER = 1 << 20
_VOWELS_FROM = "\u1161"
_OPEN_A = frozenset(normalize("NFD", "가거겨개과궈괘")[1::2])
# The finals ㅆ ㅄ ㄶ ㅀ, which hardly any noun has.
_OF_PREDICATES = frozenset("\u11bb\u11b9\u11ad\u11b6")
_THERE_IS_WORD, _PAST = "있", "\u11bb"
_THERE_IS = normalize("NFD", _THERE_IS_WORD)

# Longer parts are not compared letter by letter, since the time grows with the square of their length.
_COMPARED_MAX = 400
# Particles that can be added, dropped or exchanged: topic and subject, object, possessive, politeness.
_FREE_PARTICLES = ({"", "은", "는", "이", "가"}, {"", "을", "를"}, {"", "의"}, {"", "요", "좀"})

# Native numbers: before a counter, and alone.
_NATIVE = {"열": 10, "스무": 20, "스물": 20, "서른": 30, "마흔": 40, "쉰": 50}
_NATIVE |= {word: number for number, word in enumerate(listed("korean", "determiners"), start=1)}
_NATIVE |= {"열" + word: number for number, word in enumerate(listed("korean", "determiners"), start=11)}
_ALONE = {word: number for number, word in enumerate(listed("korean", "numbers"), start=1)}
_ALONE |= {"열" + word: number for number, word in enumerate(listed("korean", "numbers"), start=11)}
_SINO_DIGITS = "영일이삼사오육칠팔구"
_SINO_SCALES = {"십": 10, "백": 100, "천": 1000, "만": 10_000}

UNITS: dict[str, str] = {word: unit for unit, words in grouped("korean", "units").items() for word in words}

# 지 않는다, 않다, 아니다: other negations come before what they deny.
DENYING_WHAT_IS_BEFORE = "지않아"
# Whether the word affirms the statement before it.
THERE_IS = {"있": True, "없": False}
MARKERS = "은는이가을를"
# Particles that may also stand apart from a Latin word.
APART = frozenset({"에", "에서", "으로", "을", "를", "은", "는"})
_TELLING = ("에", "에서", "에게", "로", "만", "도", "까지", "부터", "보다", "마다", "밖에", "의", "와", "과")
# Of these, a rewording may drop 에 and 의: 뒤에 is 뒤.
_LIMITING = tuple(set(_TELLING) - {"에", "의"})
# No verb ends in these. 야 ends one after the vowels of 가, 써 and 해, but not after these vowels, counted from ㅏ.
_NOUN_COPULAS = frozenset({"이다", "입니다", "이에요", "예요", "이야", "이죠"})
_FINALS_COUNT, _VOWELS_COUNT = 28, 21
_VOWELS_OF_NOUNS = frozenset({8, 11, 12, 13, 16, 17, 18, 19, 20})
_FINAL = ("다", "요", "죠", "까", "십시오", "시오")
_RIEUL = "\u11af"
_PARTICLE_CHARS_MAX = 4
_SINO_UNITS = "초|분|회|개월|년|퍼센트|프로|배|번|개|명|일"
_OPEN_STEMS = "켜켠켭켬켰끄꺼껐끕끔닫"
_PATTERNS = Patterns("korean", "patterns")
_LATIN_MAX = "\u024f"


def stem(word: str) -> str:
    """The word without particles, endings and auxiliary verbs. The stem of a stem is the stem itself."""
    if len(word) > _WORD_CHARS_MAX:
        return word
    letters = normalize("NFD", word)
    while letters not in _nouns() and (less := _shorter(letters) or _uncontracted(letters)) is not None:
        letters = less
    return normalize("NFC", letters)


def features(word: str) -> list[str]:
    """The index tokens of a word: its stem's first syllable with a mark, and each pair of syllables.

    The marked token adds weight to the beginning of a word, which carries its meaning. It also makes words of one
    syllable searchable.
    """
    root = stem(word)
    return ["^" + root[0], *pairs(root)]


def fine_features(word: str) -> list[str]:
    """Features to compare two texts: `features`, the stem's single syllables, and the word as written."""
    return [*features(word), *stem(word), "~^" + word[0], *("~" + pair for pair in pairs(word))]


def pairs(text: str) -> list[str]:
    return [text[at : at + 2] for at in range(len(text) - 1)]


def is_suffix(text: str) -> bool:
    """Whether the text is only particles and endings, as attached to a Latin word (API를, commit하면)."""
    return stem("가나" + text) == "가나"


def is_other_grammar(text: str, other: str) -> bool:
    """Whether the Hangul of two canonical texts differs by more than optional particles."""
    if text.isascii() and other.isascii():
        return False
    # Few callers get here, and the import costs more than this module.
    from difflib import SequenceMatcher

    begin = len(commonprefix([text, other]))
    ours, theirs = text[begin:], other[begin:]
    end = len(commonprefix([ours[::-1], theirs[::-1]]))
    ours, theirs = ours[: len(ours) - end], theirs[: len(theirs) - end]
    if max(len(ours), len(theirs)) > _COMPARED_MAX:
        return _has_hangul(ours + theirs)
    changes = SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes()
    return any(_changes_sense(ours[a:b].strip(), theirs[c:d].strip()) for tag, a, b, c, d in changes if tag != "equal")


def _changes_sense(removed: str, added: str) -> bool:
    is_free = any(removed in particles and added in particles for particles in _FREE_PARTICLES)
    return not is_free and _has_hangul(removed + added)


def _has_hangul(text: str) -> bool:
    return any(map(is_hangul, text))


def _shorter(letters: str) -> str | None:
    """The letters without the longest suffix that can be removed. None if there is none."""
    known = _suffixes()
    for size in range(min(_longest(), len(letters) - _ONE_SYLLABLE), 0, -1):
        stay = known.get(letters[-size:])
        if stay is None or (size == 1 and letters.endswith(_THERE_IS)):
            continue
        rest = letters[:-size]
        if rest[-1] < _VOWELS_FROM:
            continue  # It would cut a syllable after its first consonant.
        anywhere, after_a = stay
        if len(rest) >= anywhere or (anywhere < _NEVER and rest[-1] in _OF_PREDICATES):
            return rest
        if len(rest) >= after_a and rest[-1] in _OPEN_A:
            return rest
    return None


def _uncontracted(letters: str) -> str | None:
    """The stem of an 아/어 form: 알려 알리, 줘 주, 몰라 모르, 먹어 먹; or None."""
    last = letters[-2:]
    whole = _contractions().get(last)
    if whole is not None:
        return letters[:-2] + whole
    if last in ("\u1105\u1161", "\u1105\u1165") and letters[-3:-2] == "\u11af":
        return letters[:-3] + "\u1105\u1173"
    if last in ("\u110b\u1161", "\u110b\u1165") and len(letters) > 3:
        return letters[:-2]
    return None


@cache
def _nouns() -> frozenset[str]:
    return frozenset(normalize("NFD", noun) for noun in listed("korean", "nouns"))


@cache
def _suffixes() -> dict[str, tuple[int, int]]:
    """Each suffix in letters, and the fewest letters that stay before it: in general, and after an open ㅏ or ㅓ."""
    table: dict[str, tuple[int, int]] = {}
    for suffix in listed("korean", "suffixes"):
        table.setdefault(_letters(suffix), (_ONE_SYLLABLE, _NEVER))
        if not suffix.endswith("요"):
            table.setdefault(_letters(suffix + "요"), (_ONE_SYLLABLE, _NEVER))
    for suffix in listed("korean", "short suffixes"):
        table.setdefault(_letters(suffix), (_TWO_SYLLABLES, _NEVER))
    for section, stay in (("suffixes after a", _ONE_SYLLABLE), ("short suffixes after a", _TWO_SYLLABLES)):
        for suffix in listed("korean", section):
            table[_letters(suffix)] = (table.get(_letters(suffix), (_NEVER, 0))[0], stay)
    return table


def _letters(suffix: str) -> str:
    final = _FINALS.get(suffix[0])
    return final + normalize("NFD", suffix[1:]) if final else normalize("NFD", suffix)


@cache
def _longest() -> int:
    return max(map(len, _suffixes()))


@cache
def _contractions() -> dict[str, str]:
    """The last syllable of an 아/어 form and of its stem."""
    table = {}
    for form, whole in (("여", "이"), ("워", "우"), ("왜", "외")):
        for consonant in map(chr, range(0x1100, 0x1113)):
            table[consonant + normalize("NFD", form)[1]] = consonant + normalize("NFD", whole)[1]
    for form, whole in zip("봐와놔쏴해써꺼커떠퍼", "보오노쏘하쓰끄크뜨프", strict=True):
        table[normalize("NFD", form)] = normalize("NFD", whole)
    return table


@cache
def guarded_pattern() -> re.Pattern[str]:
    """The pattern of numbers, obligations, negations and opposites in a phrase of Hangul, with a group for each."""
    whole = opposites("korean words")
    inside = [word for word in opposites("korean", "korean words") if word not in whole]
    must, negation = _PATTERNS.sources["must"], _PATTERNS.sources["negation"]
    sino = f"[{_SINO_DIGITS}{''.join(_SINO_SCALES)}]"
    number = (
        rf"(?P<native>{_either(_NATIVE)}) ?(?P<counter>{_either(UNITS)})"
        # A single Sino-Korean syllable glued to a counter is nearly always another word (구분, 사회, 만회).
        rf"|(?P<sino>{sino}{{2,8}} ?|[삼사오육칠팔십백천] )(?P<unit>{_SINO_UNITS})"
        rf"|(?P<noun>{_either(_ALONE)})"
    )
    short = _either(word if word in _OPEN_STEMS else word + r"(?!\S)" for word in whole)
    return pattern(
        rf"(?<!\S)(?:{number})(?=(?P<tail>\S*))|(?P<must>{must})|(?P<negation>{negation})"
        rf"|(?P<opposite>{_either(inside)}|(?<!\S)(?:{short}))"
    )


def number_key(match: re.Match[str]) -> str:
    """The number of a match of the guarded pattern in digits, with its unit: 세 번 is 3, 이십 초 is 20s."""
    if match["native"]:
        return f"{_NATIVE[match['native']]}{UNITS[match['counter']]}"
    if match["noun"]:
        return str(_ALONE[match["noun"]])
    return f"{_numeral(match['sino'].strip())}{UNITS[match['unit']]}"


def _numeral(word: str) -> int:
    """The number that Sino-Korean syllables spell, as in 이십오."""
    total = section = digit = 0
    for character in word:
        scale = _SINO_SCALES.get(character)
        if scale is None:
            digit = _SINO_DIGITS.index(character)
        elif scale == 10_000:
            total += (section + digit or 1) * scale
            section = digit = 0
        else:
            section += (digit or 1) * scale
            digit = 0
    return total + section + digit


@cache
def unit_pattern() -> re.Pattern[str]:
    """The pattern of a counter or unit after a number, with the rest of its word."""
    return pattern(rf"(?P<unit>{_either(UNITS)})(?P<tail>\S*)")


def ends_a_word(tail: str) -> bool:
    """Whether a counter ends its word, so that only particles follow it."""
    return not tail or tail in _tails() or (tail[-1] in "은는이가을를에의로도만" and tail[:-1] in _tails())


@cache
def _tails() -> frozenset[str]:
    return suffixes() | frozenset(listed("korean", "after a counter"))


def bare(word: str) -> str:
    """The word without the parts that differ between wordings.

    These are the markers of topic, subject and object, the endings of a predicate, and the verbs 하다 and 되다, which
    only carry endings. Other particles (에서, 로, 까지, 만) have a meaning of their own and stay.
    """
    carried = _PATTERNS["carrier"].sub("", word)
    if carried != word:
        return carried
    noun = _PATTERNS["copula"].sub("", word)
    if noun != word:
        return noun
    if word.endswith(_FINAL):
        return bare_stem(stem(word))
    return _PATTERNS["carrier"].sub("", word[:-1]) if len(word) > 1 and word[-1] in MARKERS else word


def limits(text: str) -> frozenset[str]:
    """What a rewording must keep: words with a telling particle, as 금요일까지 and 관리자만, and whether it is past."""
    words = [word if word.endswith(_LIMITING) else bare(word) for word in pattern(r"\w+").findall(text)]
    past = frozenset({_PAST}).intersection(normalize("NFD", text.replace(_THERE_IS_WORD, "")))
    return past.union(word for word in words if word.endswith(_LIMITING))


def bare_joined(word: str) -> str:
    """`bare` for an 아 or 어 form, which stands before 야, 도 and 서: 남겨 is 남기."""
    carried = _PATTERNS["carrier"].sub("", word)
    return carried if carried != word else bare_stem(stem(word))


def bare_stem(word: str) -> str:
    """`bare` for a stem, as before 지 and 면. A final ㄹ is removed, since 만든다 drops it and 만들지 keeps it."""
    carried = _PATTERNS["carrier"].sub("", word)
    if carried != word or len(word) > _WORD_CHARS_MAX:
        return carried
    letters = normalize("NFD", word)
    return normalize("NFC", letters[:-1] if letters.endswith(_RIEUL) else letters)


def is_obliged(match: re.Match[str]) -> bool:
    """Whether a match of the guarded pattern states an obligation or a ban."""
    return bool(match["obliged"] or match["obliged_to"]) or is_barred(match)


def is_barred(match: re.Match[str]) -> bool:
    return bool(match["barred"] or match["barred_if"] or match["barred_from"])


def reduction_before(match: re.Match[str]) -> Callable[[str], str]:
    """The function that makes a word bare if its ending is in a match of the guarded pattern."""
    begin = match[0][0]
    if match["negation"] or match["must"]:
        if begin in "지면으":
            return bare_stem
        if begin in "야도서선":
            return bare_joined
    return bare


def is_ending(tail: str) -> bool:
    """Whether the text after a stem is only endings and markers."""
    return is_suffix(tail) and not tail.endswith(_TELLING)


@cache
def glued_particles() -> frozenset[str]:
    """Particles and forms of 이다 that directly follow a Latin word, a number or a quotation."""
    return frozenset(listed("korean", "particles", "name particles", "copulas"))


def is_copula(particle: str) -> bool:
    return particle in listed("korean", "copulas")


def is_noun_copula(word: str) -> bool:
    """Whether a predicate is a noun with 이다: 현우다, 화요일이에요, 민지야; but not 한다, 느리다, 써야."""
    noun, copula = parted(word)
    if not copula or not is_hangul(noun[-1]) or word in listed("relations", "korean adjectives"):
        return copula in _NOUN_COPULAS
    consonant_and_vowel, final = divmod(ord(noun[-1]) - ord("가"), _FINALS_COUNT)
    if copula == "야":
        return not final and consonant_and_vowel % _VOWELS_COUNT in _VOWELS_OF_NOUNS
    return copula in _NOUN_COPULAS or (copula == "다" and not final and noun[-1] not in "하르리프쁘크")


def as_name(value: str) -> str:
    """A value as a sentence names it, without its particle or 이다: 10초, 목요일; not 10 초, 목요일에."""
    value = pattern(r"(?<=\d) (?=[가-힣])").sub("", value)
    noun, particle = parted(value)
    is_after = particle.removeprefix("으") in (*MARKERS, *_TELLING) and len(noun) > 1
    return noun if is_after or is_noun_copula(value) else value


def parted(word: str) -> tuple[str, str]:
    """A word and the particle at its end, if there is one."""
    for size in range(min(_PARTICLE_CHARS_MAX, len(word) - 1), 0, -1):
        if word[-size:] in glued_particles():
            return word[:-size], word[-size:]
    return word, ""


@cache
def suffixes() -> frozenset[str]:
    """Every particle and frequent ending."""
    return frozenset(listed("korean", "particles", "endings"))


def _either(words: Iterable[str]) -> str:
    """A pattern for any of the words, the longest first."""
    return "|".join(sorted(words, key=len, reverse=True))


def english_of(text: str) -> str:
    """The text as an English model can read it. Empty for a text in another script.

    Korean words are replaced by the table's English, or dropped if the table lacks them. Up to a tenth of the letters
    may be of another script, such as a single λ.
    """
    if text.isascii():
        return text
    parts = pattern(r"[가-힣]+|[^\s가-힣]+").findall(text)
    text = " ".join([english for part in parts if (english := _glossed(part) if is_hangul(part) else part)])
    letters = [letter for letter in text if letter.isalpha()]
    return text if 10 * sum(letter > _LATIN_MAX for letter in letters) <= len(letters) else ""


def in_english(text: str) -> str:
    """The text with the English of its Korean words, or with their stems where the table lacks them."""
    parts = [] if text.isascii() else pattern(r"[가-힣]+|[^\s가-힣]+").findall(text)
    return " ".join([(_glossed(part) or stem(part)) if is_hangul(part) else part for part in parts]) or text


def _glossed(word: str) -> str:
    """The English for the longest beginning in the table, and for the rest: 결제내역을 is payment details.

    A single syllable counts only as a whole stem, since too many words begin alike.
    """
    table, longest = _glosses()
    found: list[str] = []
    rest = word
    while begun := next((rest[:size] for size in range(min(longest, len(rest)), 1, -1) if rest[:size] in table), ""):
        found.append(table[begun])
        rest = rest[len(begun) :]
    return " ".join(found) or table.get(word, "") or table.get(stem(word), "")


@cache
def _glosses() -> tuple[dict[str, str], int]:
    """The table from Korean to English, and the length of its longest entry."""
    rows = [line.split() for line in entries("gloss", "words")]
    table = {word: english.replace("_", " ") for english, *words in rows for word in words}
    return table, max(map(len, table))

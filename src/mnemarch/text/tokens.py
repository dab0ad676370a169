"""Search tokens: stemmed English words, identifiers whole and in parts, the features of Korean stems."""

from __future__ import annotations

from functools import cache
from itertools import chain, islice

from mnemarch.text.cache import BoundedCache, cached, pattern
from mnemarch.text.canonical import composed
from mnemarch.text.english import irregular_forms
from mnemarch.text.words import STOP_WORDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator
    from typing import Any

# A change of meaning raises the version.
TOKENS_VERSION = 4

TOKEN_CHARS_MAX = 64
# Enough to index a text of the largest allowed size completely.
TOKENS_MAX = 65_536
# Marks around a word that are stripped.
_AROUND_A_WORD = ".,;:!?\"'`()[]{}"
_GROUPED_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?"
_NUMBER_WITH_UNIT = r"(?i)v?\d+(?:[.,]\d+)*[^\W\d_]{0,3}"
# A name of a word and a number: service 44, shard-3, PR #12, 샤드 3. Not a version, a date or an amount with its unit.
_NUMBERED = r"(?<![^\W_])([A-Za-z]{2,}|[가-힣]{2,})[ _#-]{1,2}(\d{1,6})(?![.,:/-]?\d|[A-Za-z_])"
# Joins the two parts of such a name. No other token has it.
_NAME_AND_NUMBER = "~"
_JOINTS = r"[-/\\@+#_,]+|\.(?!\d)|(?<!\d)\."
_HUMPS = r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z][a-z']*\d*|[A-Z]+\d*|\d+[a-z]*"
# The same as `_lexemes` for ASCII and Korean, at a tenth of the compile time, which matters to short-lived processes.
_ASCII = r"(?a)\w+(?:[-./\\@+]\w+|(?<=\d),(?=\d)\w+|'\w+)*(?:(?<=[a-zA-Z])\+\+|(?<=\b[a-zA-Z])#)?"
_KOREAN = rf"(?a)(?P<latin>{_ASCII.removeprefix('(?a)')})|(?P<hangul>[^\x00-\x7f]+)"

# At about 200 bytes per entry, a cache of words stays under 8 MB.
_CACHED_WORDS_MAX = 32_768
# A stemmer may be used by one thread at a time. Each call pops one, or creates one, and puts it back. `append` and
# `pop` of a list are safe without a lock.
_stemmers: list[Any] = []


def tokens(text: str, limit: int = 4096) -> list[str]:
    """The search tokens of a text in order. A token has no white space and at most 64 characters."""
    return _collected(text, limit, _tokens_of_words)


def telling_tokens(text: str, limit: int = 4096) -> list[str]:
    """The tokens by which a text is found: stems, without words that are in every text."""
    return _collected(text, limit, _telling_tokens_of_words)


def query_tokens(text: str, limit: int = 64) -> list[str]:
    """The distinct telling tokens of a query, in the order of their first occurrence."""
    return list(dict.fromkeys(telling_tokens(text)))[:limit]


def numbered_names(text: str) -> list[str]:
    """A token for each name of a word and a number, so that "service 44" does not match any service with any 44."""
    if not any(digit in text for digit in "0123456789"):  # A pattern would load `re` in a cold recall.
        return []
    names = [(_stem(word.lower()), number) for word, number in pattern(_NUMBERED).findall(composed(text))]
    return [f"{word}{_NAME_AND_NUMBER}{number}"[:TOKEN_CHARS_MAX] for word, number in names if word not in STOP_WORDS]


def is_numbered_name(token: str) -> bool:
    return _NAME_AND_NUMBER in token


def _collected(text: str, limit: int, known: BoundedCache) -> list[str]:
    words = [word.strip(_AROUND_A_WORD) for word in composed(text).split()]
    return [*islice(chain.from_iterable(map(known.__getitem__, words)), limit)]


def _telling_tokens_of(word: str) -> tuple[str, ...]:
    is_light = word.casefold() in STOP_WORDS
    return () if is_light else tuple([token for token in _tokens_of(word) if token not in STOP_WORDS])


def _tokens_of(word: str) -> tuple[str, ...]:
    if len(word) > TOKEN_CHARS_MAX or not word:
        return tuple(islice(_of_word(word), TOKENS_MAX))
    if _is_plain(word):
        return (_stem(word.lower()),)
    if min(word) >= "가" and max(word) <= "힣":
        from mnemarch.text import korean

        return tuple(korean.features(word))
    return tuple(_of_word(word))


_tokens_of_words = BoundedCache(_CACHED_WORDS_MAX, _tokens_of)
_telling_tokens_of_words = BoundedCache(_CACHED_WORDS_MAX, _telling_tokens_of)


def _is_plain(word: str) -> bool:
    return word.isascii() and word.isalpha() and word[1:] == word[1:].lower()


def _of_word(word: str) -> Iterator[str]:
    if word.isascii():
        bare = word.strip(_AROUND_A_WORD)
        if bare.replace("_", "").isalnum():
            yield from _of_latin(bare)
            return
        for text in pattern(_ASCII).findall(word):
            yield from _of_latin(text)
        return
    from mnemarch.text import korean

    word = word.translate(_typography())
    is_korean = all(character <= "\x7f" or "가" <= character <= "힣" for character in word)
    latin_end = -1
    for match in (pattern(_KOREAN) if is_korean else _lexemes()).finditer(word):
        kind, text = match.lastgroup, match[0]
        if kind == "latin":
            # Hangul after a number is a counter (3시), not a particle.
            latin_end = -1 if text[-1].isdigit() else match.end()
            yield from _of_latin(text)
        elif kind == "hangul":
            # Skip the particle of a foreign word (OS를).
            if match.start() != latin_end or not korean.is_suffix(text):
                yield from [feature[:TOKEN_CHARS_MAX] for feature in korean.features(text)]
        elif kind == "ideographs":
            yield from korean.pairs(text) or [text]
        else:
            yield text.replace("\ufe0f", "")[:TOKEN_CHARS_MAX]


def _of_latin(text: str) -> Iterable[str]:
    if _is_plain(text):
        return [_stem(text.lower())[:TOKEN_CHARS_MAX]]
    if "," in text and pattern(_GROUPED_NUMBER).fullmatch(text):
        text = text.replace(",", "")
    return dict.fromkeys([token[:TOKEN_CHARS_MAX] for token in _whole_and_parts(text)])


def _whole_and_parts(text: str) -> list[str]:
    names = text.split("_") if text.replace("_", "").isalnum() else pattern(_JOINTS).split(text)
    parts = [part for name in names if name for part in _parts(name)]
    stems = [_stem(part.casefold()) for part in parts]
    if parts == [text] or not parts:
        return stems
    whole = [text.casefold()]
    if "-" in text and text.replace("-", "").isalpha():
        whole.append(_stem(text.replace("-", "").casefold()))  # e-mail is email
    if "/" in text or "\\" in text:
        whole.append(text.replace("\\", "/").rpartition("/")[2].casefold())
    return whole + stems


def _parts(name: str) -> list[str]:
    if (
        name.isdigit()
        or (name.isalpha() and name.islower())
        or not name.isascii()
        or pattern(_NUMBER_WITH_UNIT).fullmatch(name)
    ):
        return [name]
    return pattern(_HUMPS).findall(name)


# Cached: new names often have known parts.
@cached(16_384)
def _stem(word: str) -> str:
    if not word.isascii() or len(word) > TOKEN_CHARS_MAX:
        return word
    word = irregular_forms().get(word.removesuffix("'s"), word)
    try:
        stemmer = _stemmers.pop()
    except IndexError:
        from Stemmer import Stemmer

        stemmer = Stemmer("english", 0)
    stem: str = stemmer.stemWord(word)
    _stemmers.append(stemmer)
    return stem


@cache
def _typography() -> dict[int, str]:
    return {**dict.fromkeys(map(ord, "“”„«»「」『』《》〈〉…·・、。—–→•"), " "), ord("’"): "'", ord("‘"): " "}


@cache
def _lexemes() -> re.Pattern[str]:
    hangul = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"
    ideographs = "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    letter = f"[^\\W{hangul}{ideographs}]"
    # The regex engine does not count vowel signs as letters, but a word must not break at them.
    marks = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0dff\u0e31-\u0eff\u0f00-\u109f\u1780-\u17ff"
    pictures = "\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff"
    shown = "[\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*"
    return pattern(
        rf"(?P<latin>{letter}+(?:[-./\\@+]{letter}+|(?<=\d),(?=\d){letter}+|'{letter}+|[{marks}]+{letter}*)*"
        r"(?:(?<=[a-zA-Z])\+\+|(?<=\b[a-zA-Z])#)?)"
        rf"|(?P<hangul>[{hangul}]+)"
        rf"|(?P<ideographs>[{ideographs}]+)"
        rf"|(?P<emoji>[\U0001f1e6-\U0001f1ff]{{2}}|[{pictures}]{shown}(?:\u200d[{pictures}]{shown})*)"
    )

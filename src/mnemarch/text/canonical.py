"""The canonical form of a statement, without case, spacing and sentence punctuation; its key and its n-grams."""

from __future__ import annotations

from functools import cache
from unicodedata import normalize

from mnemarch.lazy import Lazy
from mnemarch.model.json_text import json_needles
from mnemarch.text.cache import cached, pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import Literal

    import xxhash
else:
    xxhash = Lazy("xxhash")  # A cold recall needs no keys.

# Stored keys depend on every rule here. Increase the version for a change of the rules, so that keys are recomputed.
NORM_VERSION = 1

# NFKC leaves Hangul in two blocks.
_HANGUL = "[\u1100-\u11ff가-힣]"
_HANGUL_SPACE = f" (?:(?<={_HANGUL} )|(?={_HANGUL}))"
# Between two Hangul words a stop without its space ("했다.그리고") is still the end of a sentence.
_HANGUL_STOP = f"(?<={_HANGUL}) ?[.:!?]++ ?(?={_HANGUL})"
_POWERS = "[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+"
_FRACTIONS = "[¼½¾⅐-⅟↉]"
_EMPTY_QUOTES = r"(?<![\w'])''(?![\w'])"
_SPACED_MINUS = r"(?<=\d) - (?=\d)"
# Marks that are not listed here stay, so that an unknown mark can't make two statements equal. The pairs (), [], {}
# and "" are empty values and stay. A comma stays inside a number, and an apostrophe inside a word.
# Each alternative starts with a literal, which lets the engine skip from candidate to candidate.
_TRIVIA = (
    r"""[;`]|,(?:(?!\d)|(?<!\d,))|'(?:(?!\w)|(?<!\w'))|"(?<!"")(?:(?!")|"{2,}+)"""
    r"""|\((?!\))|\)(?<!\(\))|\[(?!\])|\](?<!\[\])|\{(?!\})|\}(?<!\{\})"""
    r"""|\.(?<!\.\.)(?:(?<!\d\.)\.{2,}+|\.{2,}+(?!\d))"""
)
# Text that may be code. Only ASCII letters count, since a Korean particle is no part of a name. Each quote ends at the
# next mark of its kind and other repetitions are bounded, so the time to match grows with the length of the text.
_QUOTED = r"""```(?P<fence>[\s\S]*?)```|`(?P<back>[^`\n]+)`|"(?P<double>[^"\n]+)"|(?<!\w)'(?P<single>[^'\n]+)'(?!\w)"""
_BRACKETS = r"(?:\([^()\s]{0,200}\)|\[[^\[\]\s]{0,200}\]|\{[^{}\s]{0,200}\})"
_ATOM = rf"[\w!#$%&*+./:<=>?@\\^|~-]+{_BRACKETS}{{0,4}}"
# An operator between spaces makes its neighbours code: x == Y.
_OPERATOR = r"(?=[^ ]{0,2}[=<>|&])[=<>!&|+*/%^~:?-]{1,3}"
_MAY_BE_CODE = rf"(?a){_QUOTED}|{_ATOM}(?: {{1,8}}{_OPERATOR} {{1,8}}{_ATOM})*|[\x01\x02]"
_CODE = r"(?a)[_$\\@=<>|^~*()\[\]{}\x01\x02]|\w[./]\w|^\.{0,2}/|^\.\w|::|^--?[a-zA-Z]|^!\w|&&|^[A-Z]{2,}[a-z]{2}"
# Words and numbers alone: neither code nor a question.
_PLAIN = r"(?:[A-Z]?[a-z0-9]++[.:!]*+[,;]?+(?: |\Z))++"
_CODE_HERE, _QUESTION_HERE = "\x01", " \x02"
# The time to compose a row of marks grows with its square: longer words are composed in parts of this size.
_COMPOSED_CHARS_MAX = 256
_PASSES_MAX = 8
_PAUSES = "—―、。·・ㆍᆞ‧•…‥¡¿،؛؟۔।॥【】〔〕〖〗〈〉《》「」『』"
# Soft hyphens, zero-width spaces, direction marks and emoji presentation.
_INVISIBLE = (0xAD, 0x200B, *range(0x200E, 0x2010), *range(0x202A, 0x202F), 0x2060, 0xFEFF, 0xFE0F)


# Cached because one verb needs the form of a text several times.
@cached(256)
def canonical(text: str) -> str:
    """The text in NFKC and folded case, without sentence punctuation, repeated spaces, and spaces next to Hangul."""
    if text.isascii() and text.replace(" ", "").isalnum():
        return " ".join(text.lower().split())
    folded = _folded(text)
    result = _collapsed(folded)
    # Removing a character can join two others that compose or form a mark, so this repeats until nothing changes. ASCII
    # characters don't compose, so one pass is enough.
    passes = 0 if text.isascii() else _PASSES_MAX
    while passes and (again := _collapsed(_folded(result))) != result:
        result, passes = again, passes - 1
    # Texts of punctuation alone ("...", "?!") must still differ.
    return result or " ".join(folded.split())


def canonical_key(text: str) -> str:
    """The hex xxh3-128 of the canonical form. Confirm equal keys by comparing the canonical texts."""
    return hashed(canonical(text))


@cached(256)
def mergeable(text: str) -> str:
    """The form that equal statements share: the canonical form with question marks, and code as written (R6)."""
    if pattern(_PLAIN).fullmatch(text):
        return canonical(text)
    code: list[str] = []

    def read(match: re.Match[str]) -> str:
        quoted = match["fence"] or match["back"] or match["double"] or match["single"]
        written = (quoted or match[0]).rstrip(".:!?")
        if quoted is not None and len(quoted.split()) > 1:
            code.append(f'"{quoted}')
            return _CODE_HERE
        mark = _QUESTION_HERE if quoted is None and "?" in match[0][len(written) :] else ""
        if not (_is_code(written or match[0]) or (quoted is not None and written.lower() != written)):
            return match[0] + mark
        code.append(" ".join((written or match[0]).split()))
        return _CODE_HERE + mark

    level = text if text.isascii() else compatible(text.replace("؟", "?")).translate(one_typography())
    return "\0".join([canonical(pattern(_MAY_BE_CODE).sub(read, level)), *code])


def _is_code(written: str) -> bool:
    """Whether case and marks are significant: a name with inner capitals, dots or marks, a path, an option."""
    after_small = written.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return after_small.lower() != after_small or pattern(_CODE).search(written) is not None


# Cached because the keys of a batch are computed before its transaction and used inside.
@cached(1024)
def merge_key(text: str) -> str:
    """The hash of the mergeable form. Confirm equal keys by comparing the forms."""
    return hashed(mergeable(text))


# Shorter texts occur in others by chance. A Hangul syllable counts as two letters.
_IDENTIFYING_CHARS_MIN, _IDENTIFYING_WORDS_MIN = 12, 3

_SHORT_CHARS_MAX = 3


def is_copy(text: str, other: str) -> bool:
    """Whether `other` is a copy of the text: the same statement, or a longer one that contains it.

    A word or short phrase occurs in other texts by chance, so only the same statement is its copy.
    """
    return canonical(text) == canonical(other) or (is_identifying(text) and repeats(text, other))


def is_identifying(text: str) -> bool:
    """Whether a text is long enough not to occur in another text by chance."""
    wide = sum(not letter.isascii() for letter in canonical(text))
    has_sign = any(not (letter.isalpha() or letter.isspace()) for letter in text.strip(" .!?"))
    has_words = len(text.split()) >= _IDENTIFYING_WORDS_MIN or 2 * wide >= _IDENTIFYING_CHARS_MIN
    return len(canonical(text)) + wide >= _IDENTIFYING_CHARS_MIN and (has_words or has_sign)


def repeats(text: str, other: str) -> bool:
    """Whether another text contains the whole text as whole words: respelled, as written, or inside JSON."""
    if _stands_in(canonical(text), canonical(other)):
        return True
    return any(_stands_in(form, other) for form in json_needles(text))


def copy_needles(text: str) -> list[str]:
    """The longest word of the text, in each form that a copy can have. A search ignores the case of ASCII letters."""
    text = composed(text, "NFC")  # Else a letter before its accent would be taken for one without.
    plain = max(pattern("[A-Za-z0-9]+").findall(text), key=len, default="")
    word = max(pattern(r"[^\W_]+").findall(text), key=len, default="") if len(plain) <= _SHORT_CHARS_MAX else ""
    cases = (word, word.lower(), word.upper(), word.capitalize()) if word else (plain,)
    return sorted({normalize(form, case) for form in ("NFC", "NFD") for case in cases})


def _stands_in(part: str, whole: str) -> bool:
    at = whole.find(part) if part else -1
    while at >= 0:
        end = at + len(part)
        if not _is_one_word(whole[at - 1 : at], part[0]) and not _is_one_word(part[-1], whole[end : end + 1]):
            return True
        at = whole.find(part, at + 1)
    return False


def _is_one_word(left: str, right: str) -> bool:
    """Whether two characters belong to one word. Particles follow a Korean word without a space."""
    return (left + right).isascii() and all(each.isalnum() or each == "_" for each in (left, right))


def hashed(text: str) -> str:
    return xxhash.xxh3_128_hexdigest(text.encode("utf-8", "surrogatepass"))


def ngrams(text: str, low: int = 3, high: int = 5) -> list[str]:
    """The runs of `low` to `high` characters of the canonical text between spaces. A shorter text is its only run."""
    known = canonical(text)
    if len(known) < low:
        return [known] if known else []
    padded = f" {known} "
    return [padded[start : start + size] for size in range(low, high + 1) for start in range(len(padded) - size + 1)]


def composed(text: str, form: Literal["NFC", "NFKC"] = "NFKC") -> str:
    """The text in a normal form. A very long word is normalized in parts."""
    if text.isascii():
        return text
    if len(text) <= _COMPOSED_CHARS_MAX:
        return normalize(form, text)
    parts = pattern(rf"\S{{1,{_COMPOSED_CHARS_MAX}}}|\s+").findall(text)
    return "".join([normalize(form, part) for part in parts])


def compatible(text: str) -> str:
    """The text in NFKC, where powers and fractions keep their meaning: 10² is 10^2 and not 102, 1½ is 1 1/2."""
    if text.isascii():
        return text
    powered = pattern(_POWERS).sub(lambda match: "^" + normalize("NFKC", match[0]), text)
    return composed(pattern(_FRACTIONS).sub(lambda match: f" {match[0]}", powered)).replace("\u2044", "/")


def without_hangul_spaces(text: str) -> str:
    """The text with no space before or after Hangul, since Korean spacing varies freely."""
    if text.isascii():
        return text
    return pattern(_HANGUL_SPACE).sub("", " ".join(text.split()))


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    folded, passes = text, _PASSES_MAX
    while passes and (again := composed(compatible(folded).casefold())) != folded:
        folded, passes = again, passes - 1
    return folded


def _collapsed(text: str) -> str:
    if not text.isascii():
        text = text.translate(_typography())
    if "''" in text:
        text = pattern(_EMPTY_QUOTES).sub('""', text)
    text = " ".join(pattern(_TRIVIA).sub(" ", text).split())
    # Ranges and differences keep their dash. A dash between words is a pause.
    if " - " in text:
        text = pattern(_SPACED_MINUS).sub("-", text)
    text = _joined(text)
    if text.isascii():
        return text
    if any(stop in text for stop in ".:!?"):
        text = _joined(pattern(_HANGUL_STOP).sub(" ", text))
    return without_hangul_spaces(text)


def _joined(text: str) -> str:
    bare = [word.rstrip(".!?:") for word in text.split()]
    return " ".join([word for word in bare if word.strip("-")])


@cache
def one_typography() -> dict[int, str | None]:
    """A translation table that unifies dashes and quotes and removes invisible characters."""
    table: dict[int, str | None] = dict.fromkeys(_INVISIBLE)
    for marks, mark in (("‐‑‒–−", "-"), ("‘’‚‛", "'"), ("“”„‟«»", '"')):
        table |= dict.fromkeys(map(ord, marks), mark)
    return table


@cache
def _typography() -> dict[int, str | None]:
    pauses: dict[int, str | None] = dict.fromkeys(map(ord, _PAUSES), " ")
    return one_typography() | pauses | dict.fromkeys(range(0x2066, 0x206A)) | {ord("〜"): "~"}

"""The canonical form of a statement, without case, spacing and sentence punctuation; its key and its n-grams."""

from __future__ import annotations

from functools import cache
from unicodedata import normalize

import xxhash

from mnemarch.model.json_text import json_needles
from mnemarch.text.cache import cached, pattern

# Stored keys depend on every rule here: a change of meaning raises the version, and keys are computed anew.
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
# What is not named here is kept: an unknown mark must not make two statements one. The pairs (), [], {} and ""
# stand for empty values and stay; a comma stays inside a number and an apostrophe inside a word.
# Each alternative starts with a literal, which lets the engine skip from candidate to candidate.
_TRIVIA = (
    r"""[;`]|,(?:(?!\d)|(?<!\d,))|'(?:(?!\w)|(?<!\w'))|"(?<!"")(?:(?!")|"{2,}+)"""
    r"""|\((?!\))|\)(?<!\(\))|\[(?!\])|\](?<!\[\])|\{(?!\})|\}(?<!\{\})"""
    r"""|\.(?<!\.\.)(?:(?<!\d\.)\.{2,}+|\.{2,}+(?!\d))"""
)
_WORDS_AND_QUOTES = r"""(?a)`[^`\n]{1,200}`|"[^"\n]{1,200}"|(?<!\w)'[^'\n]{1,200}'(?!\w)|[\w$./\\:-]+"""
_QUOTES = "`\"'."
_JOINTS = frozenset("._/\\:$")
_PAUSES = "—―、。·・ㆍᆞ‧•…‥¡¿،؛؟۔।॥【】〔〕〖〗〈〉《》「」『』"
# Soft hyphens, zero-width spaces, direction marks and emoji presentation.
_INVISIBLE = (0xAD, 0x200B, *range(0x200E, 0x2010), *range(0x202A, 0x202F), 0x2060, 0xFEFF, 0xFE0F)


# One verb asks for the form of one text several times.
@cached(256)
def canonical(text: str) -> str:
    """The text in NFKC and folded case, sentence punctuation dropped, spaces collapsed and next to Hangul dropped."""
    folded = _folded(text)
    result = _collapsed(folded)
    # Dropping a character can bring two others together that compose or form a mark, so it runs to a fixed point;
    # ASCII has nothing that composes and settles at once.
    while not text.isascii() and (again := _collapsed(_folded(result))) != result:
        result = again
    # Text of nothing but trivia ("...", "?!") still differs from other such text.
    return result or " ".join(folded.split())


def canonical_key(text: str) -> str:
    """The hex xxh3-128 of the canonical form; equal keys still have to be confirmed by equal canonical texts."""
    return _hashed(canonical(text))


@cached(256)
def mergeable(text: str) -> str:
    """What statements that are one share: the canonical form, the case of what looks like code, a question mark."""
    written = pattern(_WORDS_AND_QUOTES).findall(text) if text.lower() != text else ()
    code = [each.strip(_QUOTES) for each in written if _has_case_of_code(each)]
    is_question = text.rstrip().endswith(("?", "\uff1f"))
    return "\0".join([canonical(text), *code, *(["?"] if is_question else [])])


def _has_case_of_code(written: str) -> bool:
    """Whether capitals mean something here: quoted, in an option, or with a dot, slash, underscore or small letter."""
    if written.lower() == written:
        return False
    inner = written.strip(".:/")
    after_small = inner.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return written[0] in "`\"'$-" or not _JOINTS.isdisjoint(inner) or after_small.lower() != after_small


def merge_key(text: str) -> str:
    """The hash of that; equal keys still have to be confirmed by equal texts."""
    return _hashed(mergeable(text))


# A text with fewer stands inside others by chance. A syllable of Hangul says as much as two letters.
_IDENTIFYING_CHARS_MIN, _IDENTIFYING_WORDS_MIN = 12, 3


def is_copy(text: str, other: str) -> bool:
    """Whether somebody would call `other` a copy: the same statement, or a longer one with all of it inside.

    A word or a short phrase stands in other texts by chance, so only the same statement is its copy.
    """
    return canonical(text) == canonical(other) or (is_identifying(text) and repeats(text, other))


def is_identifying(text: str) -> bool:
    """Whether a text is long enough to be told from chance where it stands inside another."""
    wide = sum(not letter.isascii() for letter in canonical(text))
    has_sign = any(not (letter.isalpha() or letter.isspace()) for letter in text.strip(" .!?"))
    has_words = len(text.split()) >= _IDENTIFYING_WORDS_MIN or 2 * wide >= _IDENTIFYING_CHARS_MIN
    return len(canonical(text)) + wide >= _IDENTIFYING_CHARS_MIN and (has_words or has_sign)


def repeats(text: str, other: str) -> bool:
    """Whether all of a text stands in another as whole words: in other spelling, as written, or inside JSON."""
    if _stands_in(canonical(text), canonical(other)):
        return True
    return any(_stands_in(form, other) for form in json_needles(text))


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


def _hashed(text: str) -> str:
    return xxhash.xxh3_128_hexdigest(text.encode("utf-8", "surrogatepass"))


def ngrams(text: str, low: int = 3, high: int = 5) -> list[str]:
    """Every run of `low` to `high` characters of the canonical text between two spaces; a shorter text is its own."""
    known = canonical(text)
    if len(known) < low:
        return [known] if known else []
    padded = f" {known} "
    return [padded[start : start + size] for size in range(low, high + 1) for start in range(len(padded) - size + 1)]


def compatible(text: str) -> str:
    """NFKC, except that powers and fractions stay what they are: 10² is 10^2 and not 102, 1½ is 1 1/2 and not 11/2."""
    if text.isascii():
        return text
    powered = pattern(_POWERS).sub(lambda match: "^" + normalize("NFKC", match[0]), text)
    return normalize("NFKC", pattern(_FRACTIONS).sub(r" \g<0>", powered)).replace("\u2044", "/")


def without_hangul_spaces(text: str) -> str:
    """The text with no space before or after Hangul, since Korean spacing varies freely."""
    if text.isascii():
        return text
    return pattern(_HANGUL_SPACE).sub("", " ".join(text.split()))


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    folded = text
    while (again := normalize("NFKC", compatible(folded).casefold())) != folded:
        folded = again
    return folded


def _collapsed(text: str) -> str:
    if not text.isascii():
        text = text.translate(_typography())
    if "''" in text:
        text = pattern(_EMPTY_QUOTES).sub('""', text)
    text = " ".join(pattern(_TRIVIA).sub(" ", text).split())
    # A range or a difference keeps its dash; a dash between words is a pause.
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
    """A translation that makes dashes and quotes alike and drops what can't be seen."""
    table: dict[int, str | None] = dict.fromkeys(_INVISIBLE)
    for marks, mark in (("‐‑‒–−", "-"), ("‘’‚‛", "'"), ("“”„‟«»", '"')):
        table |= dict.fromkeys(map(ord, marks), mark)
    return table


@cache
def _typography() -> dict[int, str | None]:
    pauses: dict[int, str | None] = dict.fromkeys(map(ord, _PAUSES), " ")
    return one_typography() | pauses | dict.fromkeys(range(0x2066, 0x206A)) | {ord("〜"): "~"}

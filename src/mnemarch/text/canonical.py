"""The canonical form of a statement: what stays when case, spacing and sentence punctuation are taken away."""

from __future__ import annotations

import re
from functools import cache
from unicodedata import normalize

import xxhash

from mnemarch.text.kept import kept

# Stored keys depend on every rule here: a change of meaning raises the version, and keys are computed anew.
NORM_VERSION = 1


# One act asks for the form of one text several times.
@kept(256)
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
    return xxhash.xxh3_128_hexdigest(canonical(text).encode("utf-8", "surrogatepass"))


def compatible(text: str) -> str:
    """NFKC, except that powers and fractions stay what they are: 10² is 10^2 and not 102, 1½ is 1 1/2 and not 11/2."""
    if text.isascii():
        return text
    powered = _powers().sub(lambda match: "^" + normalize("NFKC", match[0]), text)
    return normalize("NFKC", _fractions().sub(r" \g<0>", powered)).replace("\u2044", "/")


def without_hangul_spaces(text: str) -> str:
    """The text with no space before or after Hangul, since Korean spacing varies freely."""
    if text.isascii():
        return text
    return _hangul_space().sub("", " ".join(text.split()))


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
        text = _empty_quotes().sub('""', text)
    text = " ".join(_trivia().sub(" ", text).split())
    # A range or a difference keeps its dash; a dash between words is a pause.
    if " - " in text:
        text = _spaced_minus().sub("-", text)
    text = _joined(text)
    if text.isascii():
        return text
    if any(stop in text for stop in ".:!?"):
        text = _joined(_hangul_stop().sub(" ", text))
    return without_hangul_spaces(text)


def _joined(text: str) -> str:
    bare = [word.rstrip(".!?:") for word in text.split()]
    return " ".join([word for word in bare if word.strip("-")])


@cache
def _powers() -> re.Pattern[str]:
    return re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+")


@cache
def _fractions() -> re.Pattern[str]:
    return re.compile("[¼½¾⅐-⅟↉]")


@cache
def _hangul_stop() -> re.Pattern[str]:
    # Between two Hangul words a stop without its space ("했다.그리고") is still the end of a sentence.
    # NFKC leaves Hangul in two blocks.
    hangul = "[\u1100-\u11ff\uac00-\ud7a3]"
    return re.compile(f"(?<={hangul}) ?[.:!?]++ ?(?={hangul})")


@cache
def _hangul_space() -> re.Pattern[str]:
    return re.compile(" (?:(?<=[\u1100-\u11ff\uac00-\ud7a3] )|(?=[\u1100-\u11ff\uac00-\ud7a3]))")


@cache
def _spaced_minus() -> re.Pattern[str]:
    return re.compile(r"(?<=\d) - (?=\d)")


@cache
def _empty_quotes() -> re.Pattern[str]:
    return re.compile(r"(?<![\w'])''(?![\w'])")


@cache
def _trivia() -> re.Pattern[str]:
    # What is not named here is kept: an unknown mark must not make two statements one. The pairs (), [], {} and ""
    # stand for empty values and stay; a comma stays inside a number and an apostrophe inside a word.
    # Each alternative starts with a literal, which lets the engine skip from candidate to candidate.
    return re.compile(
        r"""[;`]|,(?:(?!\d)|(?<!\d,))|'(?:(?!\w)|(?<!\w'))|"(?<!"")(?:(?!")|"{2,}+)"""
        r"""|\((?!\))|\)(?<!\(\))|\[(?!\])|\](?<!\[\])|\{(?!\})|\}(?<!\{\})"""
        r"""|\.(?<!\.\.)(?:(?<!\d\.)\.{2,}+|\.{2,}+(?!\d))"""
    )


@cache
def _typography() -> dict[int, str | None]:
    table: dict[int, str | None] = dict.fromkeys(map(ord, "—―、。·・ㆍᆞ‧•…‥¡¿،؛؟۔।॥【】〔〕〖〗〈〉《》「」『』"), " ")
    table |= dict.fromkeys(map(ord, "‐‑‒–−"), "-")
    table |= dict.fromkeys(map(ord, "‘’‚‛"), "'")
    table |= dict.fromkeys(map(ord, "“”„‟«»"), '"')
    table[ord("〜")] = "~"
    # Soft hyphens, zero-width spaces, direction marks and emoji presentation are invisible.
    table |= dict.fromkeys([0xAD, 0x200B, *range(0x200E, 0x2010), *range(0x202A, 0x202F), 0x2060, 0xFEFF, 0xFE0F])
    table |= dict.fromkeys(range(0x2066, 0x206A))
    return table

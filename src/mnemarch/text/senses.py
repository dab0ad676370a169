"""The meanings of words for comparing statements: their roots, their senses, and their role in a sentence."""

from __future__ import annotations

from functools import cache

from mnemarch.text import english, korean
from mnemarch.text.cache import cached
from mnemarch.text.slots import COPULAS, DETERMINERS
from mnemarch.text.slots_korean import is_hangul, word_set
from mnemarch.text.tokens import tokens
from mnemarch.text.words import STOP_WORDS, grouped, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.text.guarded import Piece


@cache
def _senses() -> dict[str, frozenset[str]]:
    """The senses of each root. Senses of relations begin with ~."""
    table: dict[str, set[str]] = {}
    for section, mark in (("things", ""), ("relations", "~")):
        for name, words in grouped("senses", section).items():
            for word in words:
                table.setdefault(root_of(word), set()).add(mark + name)
    return {word: frozenset(names) for word, names in table.items()}


@cache
def _korean_senses() -> list[tuple[str, frozenset[str]]]:
    """Korean words with their senses, the longest first."""
    known = [(word, names) for word, names in _senses().items() if is_hangul(word)]
    return sorted(known, key=lambda each: -len(each[0]))


@cached(8192)
def root_of(word: str) -> str:
    if is_hangul(word):
        return word
    if word[:2] == "re" and word[2:] in english.irregular_forms():
        word = "re" + english.irregular_forms()[word[2:]]
    told = tokens(word.lower().replace("-", ""))
    return told[0] if told else word


@cached(8192)
def senses_of(key: str) -> frozenset[str]:
    if not is_hangul(key):
        return _senses().get(key, frozenset())
    senses: set[str] = set()
    size = 0
    for word, names in _korean_senses():
        if key.startswith(word) and len(word) >= size:
            size = len(word)
            senses |= names
    return frozenset(senses)


@cache
def words_of(section: str) -> tuple[str, ...]:
    """The words of a section of senses.txt, to search or to match as beginnings."""
    return tuple(listed("senses", section))


@cache
def roots(section: str) -> frozenset[str]:
    return frozenset(root_of(word) for word in listed("senses", section))


@cache
def function_words() -> frozenset[str]:
    return STOP_WORDS | DETERMINERS | word_set("boundaries") | word_set("slot prepositions")


@cache
def auxiliaries() -> frozenset[str]:
    return COPULAS | (word_set("modals") - {"to", "need", "needs"}) | frozenset(listed("senses", "auxiliaries"))


def is_noun_copula(word: str) -> bool:
    """Whether a Korean predicate is a noun with 이다: 현우다, 화요일이다; but not 한다, 느리다."""
    if not word.endswith("다") or len(word) < 2 or word in word_set("korean adjectives"):
        return False
    final = (ord(word[-2]) - ord("가")) % 28
    return word.endswith("이다") or (final == 0 and word[-2] not in "하르리프쁘크")


def root_of_piece(piece: Piece) -> str:
    what, key, shape, written, _ = piece
    if what == "number":
        return key
    if what in ("identifier", "quoted"):
        return key.casefold().removesuffix("()")
    if is_hangul(written):
        noun, particle = korean.parted(written)
        if what == "opposite" or (particle and not korean.is_copula(particle)):
            return noun
        if is_noun_copula(written):
            return noun
        return (korean.bare_stem(shape) or shape) if written.endswith(words_of("korean finals")) else shape or written
    return root_of(written)

"""Korean for search: the stem of a word, its features for an index, and whether two texts differ in grammar.

Closed lists from grammar, no dictionary. A noun that happens to end like a particle (냉장고) loses its end in every
form, so what is taken off too much is taken off everywhere and harms nothing.
"""

# ruff: noqa: RUF071 (what is compared is no path)
from __future__ import annotations

from functools import cache
from os.path import commonprefix
from unicodedata import normalize

from mnemarch.text.empty_words import FREE_PARTICLES

# What is taken off the end of a word, longest first, again and again. A leading ㄴ ㄹ ㅂ ㅆ is the final consonant of
# the syllable before it (본다 = 보 + ㄴ다). Before the first lists one syllable has to stay, before the second two:
# those may be the end of a noun.
_PARTICLES = """
을 은 으로 이랑 이란 이라도 이라면 이라고 이라는 이든지 이며 이에요 이예요 인가 인지 인데 입니다 입니까 일까 이었
이나마 으로서 으로써 으로부터 이라서 이니까 이지만 이므로 를 로부터 로서 로써 라도 라는 에서 에게 한테 까지 부터
처럼 보다 마다 조차 밖에 께서 마저 커녕 만큼 에다 에다가 한테서 에게서 에선 에겐 에는 에도 에만
"""
_ENDINGS = """
ㅂ니다 습니다 ㅂ니까 습니까 ㅂ시다 읍시다 십시오 십시요 으십시오 시오 세요 으세요 셔요 는다 ㄴ다 느냐 는가 ㄴ가 은가
던가 ㄹ까 을까 지요 나요 어요 아요 여요 ㄹ래 을래 ㄹ게 을게 ㄹ께 을께 려고 으려고 ㄹ려고 을려고 려면 으려면 ㄹ려면
려나 으려나 고자 면서 으면서 으면 니까 으니까 는데 ㄴ데 은데 던데 지만 거나 든가 도록 게끔 어서 아서 여서 어도 아도
여도 어야 아야 여야 므로 으므로 느라 느라고 다가 자마자 ㄹ수록 을수록 거든 더라도 더라 길래 더니 는지 ㄴ지 은지 ㄹ지
을지 던지 다고 ㄴ다고 는다고 으라고 자고 냐고 느냐고 다는 ㄴ다는 는다는 다던 라던 다면 ㄴ다면 는다면 어라 아라 여라
거라 구나 는구나 는군 는걸 ㄴ걸 은걸 ㄹ걸 을걸 는 ㅆ 겠 네요 ㄴ대 는대 대요 래요 까요 죠 셔 으셔 으시 지마 지말고
"""
_SHORT_PARTICLES = """
이 과 아 이나 이든 이야 이고 이면 이죠 이지 이니 이냐 인 일 이라 이다 이자 이여 이신 이시 가 와 야 로 랑 나 란 라면
라고 든 든지 였 예요 라서 의 에 도 만 들 께 대로 하고 뿐 같이 씩 쯤 끼리 요
"""
_SHORT_ENDINGS = """
다 니 냐 지 자 라 렴 군 네 려 으려 러 으러 고 며 으며 면 게 기 음 어 던 대 래 시 실 신 해 하 한 할 함 합 되 돼 된 될
됨 됩 시키 시켜 시킨 시킬 당하 당한 스럽 스러운 적인 적으로 들이 들은 들을
"""
# Taken off only after an open ㅏ ㅓ ㅕ ㅐ ㅘ ㅝ ㅙ: what joins the 아/어 form, and the auxiliary verbs written with it.
_AFTER_A = "서 도 야 요 라 주 줘 준 줄 드리 드려 보 봐 본 볼 있 놓 놔 두 둬 버리 버려 져 달"
_SHORT_AFTER_A = "진 질 지"

# Nouns that only look like a stem with an ending (편지 is a letter, not 펴 + ㄴ지).
_NOUNS = """
편지 반지 먼지 단지 번지 전지 논지 견지 인지 별지 현대 군대 연대 근대 온대 안대 인대 빨래 갈래 인가 민가 전가 판다
"""

_FINALS = {"ㄴ": "\u11ab", "ㄹ": "\u11af", "ㅂ": "\u11b8", "ㅆ": "\u11bb"}
_WORD_CHARS_MAX = 32
# A syllable has two or three letters, so four are two syllables.
_ONE_SYLLABLE, _TWO_SYLLABLES = 2, 4
_NEVER = 1 << 20
_VOWELS_FROM = "\u1161"
_OPEN_A = frozenset(normalize("NFD", "가거겨개과궈괘")[1::2])
# The finals ㅆ ㅄ ㄶ ㅀ, which hardly any noun has.
_OF_PREDICATES = frozenset("\u11bb\u11b9\u11ad\u11b6")
_THERE_IS = normalize("NFD", "있")

# Longer stretches are not compared letter by letter, which takes the square of their length.
_COMPARED_MAX = 400


def stem(word: str) -> str:
    """The word without particles, endings and auxiliary verbs; a stem of a stem is itself."""
    if len(word) > _WORD_CHARS_MAX:
        return word
    letters = normalize("NFD", word)
    while letters not in _nouns() and (less := _shorter(letters) or _uncontracted(letters)) is not None:
        letters = less
    return normalize("NFC", letters)


def features(word: str) -> list[str]:
    """What stands for a word in an index: its stem's first syllable, marked, and each pair of syllables.

    The mark weighs the beginning of a word, where its meaning is, and lets words of one syllable be found.
    """
    bare = stem(word)
    return ["^" + bare[0], *pairs(bare)]


def fine_features(word: str) -> list[str]:
    """More for comparing two texts: also the stem's single syllables, and the word as it is written."""
    return [*features(word), *stem(word), "~^" + word[0], *("~" + pair for pair in pairs(word))]


def pairs(text: str) -> list[str]:
    return [text[at : at + 2] for at in range(len(text) - 1)]


def is_suffix(text: str) -> bool:
    """Whether nothing but particles and endings stand here: what is glued to a Latin word (API를, commit하면)."""
    return stem("가나" + text) == "가나"


def is_other_grammar(text: str, other: str) -> bool:
    """Whether Hangul differs between two canonical texts by more than particles that may come and go."""
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
    is_free = any(removed in particles and added in particles for particles in FREE_PARTICLES)
    return not is_free and _has_hangul(removed + added)


def _has_hangul(text: str) -> bool:
    return any("가" <= letter <= "힣" for letter in text)


def _shorter(letters: str) -> str | None:
    """Without the longest suffix that may go here, or None."""
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
    return frozenset(normalize("NFD", noun) for noun in _NOUNS.split())


@cache
def _suffixes() -> dict[str, tuple[int, int]]:
    """For each suffix, in letters, how many letters have to stay before it: anywhere, and after an open ㅏ or ㅓ."""
    table: dict[str, tuple[int, int]] = {}
    for suffix in (_PARTICLES + _ENDINGS).split():
        table.setdefault(_letters(suffix), (_ONE_SYLLABLE, _NEVER))
        if not suffix.endswith("요"):
            table.setdefault(_letters(suffix + "요"), (_ONE_SYLLABLE, _NEVER))
    for suffix in (_SHORT_PARTICLES + _SHORT_ENDINGS).split():
        table.setdefault(_letters(suffix), (_TWO_SYLLABLES, _NEVER))
    for listed, stay in ((_AFTER_A, _ONE_SYLLABLE), (_SHORT_AFTER_A, _TWO_SYLLABLES)):
        for suffix in listed.split():
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
    found = {}
    for form, whole in (("여", "이"), ("워", "우"), ("왜", "외")):
        for consonant in map(chr, range(0x1100, 0x1113)):
            found[consonant + normalize("NFD", form)[1]] = consonant + normalize("NFD", whole)[1]
    for form, whole in zip("봐와놔쏴해써꺼커떠퍼", "보오노쏘하쓰끄크뜨프", strict=True):
        found[normalize("NFD", form)] = normalize("NFD", whole)
    return found

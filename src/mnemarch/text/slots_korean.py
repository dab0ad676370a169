"""Where a Korean statement has its values: amounts, dates, and what stands where a predicate takes one value (R6)."""

from __future__ import annotations

from functools import cache

from mnemarch.text import korean
from mnemarch.text.cache import pattern
from mnemarch.text.words import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mnemarch.text.guarded import Piece

# Groups of opposites whose words are verbs that take a value: starts at, read from.
_VERBS_OF_GROUPS = frozenset({"start", "add", "read", "open", "keep", "has", "run", "show"})
# A value is named in so many words.
VALUE_PIECES_MAX = 4
NAMING = ("word", "identifier", "quoted")
_MEANS = ("로", "으로")
_TOPIC_MARKERS = frozenset({"은", "는", "이", "가", "에는", "에서는", "에선", "에도", "로는", "으로는"})
# What happens to a thing, not what somebody does: 난다, 걸린다, 남는다.
_HAPPENS = r"\S*[난된진린인긴온]다|(?:남는|맞는|죽는|든|뜬)다"
_SYLLABLE_FINALS, _FINAL_NIEUN = 28, 4


@cache
def word_set(section: str) -> frozenset[str]:
    return frozenset(listed("relations", section))


def korean_slots(found: Sequence[Piece]) -> dict[int, int]:
    slots: dict[int, int] = {}
    parts = [without_particle(piece) for piece in found]
    verb = _final_verb(found)
    takes_many = any(found[verb][1].startswith(word) for word in listed("relations", "korean many values"))
    for at, (what, *_) in enumerate(found):
        is_date = parts[at][0] in word_set("korean dates") and parts[at][1] not in _TOPIC_MARKERS
        if is_date or (what == "number" and _is_korean_amount(found, parts, at, takes_many)):
            slots[at] = at + 1
        elif found[at][1] in word_set("everybody") or (
            is_name(found[at]) and parts[at][1].endswith("만") and what != "number"
        ):
            begin = at
            while begin and not parts[begin - 1][1] and is_name(found[begin - 1]) and at - begin < VALUE_PIECES_MAX - 1:
                begin -= 1
            slots[begin] = at + 1
    begin, end = _korean_name(found, parts, verb, takes_many)
    if end > begin:
        slots = {at: to for at, to in slots.items() if not begin <= at < end}
        slots[begin] = end
    return slots


def _final_verb(found: Sequence[Piece]) -> int:
    """Where the last verb begins: the last piece that no negation or ending follows."""
    at = len(found) - 1
    while at > 0 and (found[at][0] == "negation" or found[at][1] == "것" or found[at][::2][:2] == ("opposite", "")):
        at -= 1
    # 저장 한다: the noun is what is done.
    is_carrier = at > 0 and not found[at][2] and found[at - 1][0] == "word" and is_hangul(found[at - 1][1])
    return at - 1 if is_carrier and not korean.parted(found[at - 1][1])[1] else at


def _is_korean_amount(found: Sequence[Piece], parts: Sequence[tuple[str, str]], at: int, takes_many: bool) -> bool:
    particle = parts[at][1]
    # 승인 두 개가 필요하다: what is counted is no subject.
    is_counted = at > 0 and particle in ("이", "가") and not _is_plain_number(found[at])
    # service-1의 포트는: the number tells whose.
    if (particle in _TOPIC_MARKERS and not is_counted) or (particle == "의" and _is_plain_number(found[at])):
        return False
    if at and _is_plain_number(found[at]):
        before = found[at - 1]
        if parts[at - 1][0].lower() in word_set("korean entities") | word_set("entities") and not parts[at - 1][1]:
            return False
        if takes_many and before[0] in ("word", "identifier") and not is_hangul(before[1]):
            return False
    following = parts[at + 1] if at + 1 < len(parts) else ("", "")
    is_glued = not particle and found[at][3][-1:] not in " "
    if is_glued and following[1] in _TOPIC_MARKERS and following[0] in word_set("korean entities"):
        return False
    # 42번 마이그레이션은, 10시 15분 호출은: the number tells which one.
    is_ordinal = (found[at][3].endswith("번") or ":" in found[at][1]) and following[1] in _TOPIC_MARKERS
    is_ordinal |= found[at][3].endswith("번째")
    return not (at == 0 and (is_ordinal or following[0] in word_set("korean entities")))


def _is_plain_number(piece: Piece) -> bool:
    return piece[1][-1:].isdigit() and " " not in piece[3]


def _korean_name(
    found: Sequence[Piece], parts: Sequence[tuple[str, str]], verb: int, takes_many: bool
) -> tuple[int, int]:
    """Where the one value begins and ends that the predicate takes; nowhere if it takes none or many."""
    topic = min((at for at in range(verb) if parts[at][1] in ("은", "는")), default=-1)
    last = len(found) - 1
    # FIFO가 아니다 denies FIFO다.
    denies = last > 0 and found[last][0] == "negation" and found[last][3][:2] in ("아니", "아닌", "아닙", "아님")
    if denies and parts[last - 1][1] in ("이", "가") and last - 1 > topic >= 0:
        last -= 1
        parts = [*parts[:last], (parts[last][0], "이다")]
    if is_name(found[last]) and topic >= 0:
        begin = topic + 1
        while begin < last and parts[begin][0] in word_set("korean adverbs"):
            begin += 1
        is_foreign = (found[last][0] != "word" or not is_hangul(found[last][1])) and korean.is_copula(parts[last][1])
        has_attribute = any(word in word_set("korean one value") for word, _ in parts[: topic + 1])
        has_attribute |= parts[last][0] in word_set("korean one value") and begin < last
        has_attribute |= found[topic][0] in ("identifier", "quoted") and begin == last
        is_noun = found[last][1].endswith(("다", "예요", "에요")) or korean.is_copula(parts[last][1])
        is_noun = is_noun and found[last][1] not in word_set("korean adjectives")
        is_verbal = found[last][1].endswith(("한다", "하다", "된다", "합니다", "됩니다", "있다", "없다", "는다"))
        if begin == last and found[last][0] == "number":
            return 0, 0
        if is_foreign or (has_attribute and is_noun and not is_verbal):
            return (begin, last + 1) if last - topic <= VALUE_PIECES_MAX else (0, 0)
    at = verb - 1
    while at > 0 and found[at][1] in word_set("korean adverbs"):
        at -= 1
    is_verb = found[verb][0] == "word" or found[verb][1][:-1] in _VERBS_OF_GROUPS if verb >= 0 else False
    if at < 0 or not is_verb:
        return 0, 0
    # GraphQL로 API를 호출한다: what it is done with stands before what it is done to.
    is_done_with = at > 0 and parts[at][1] in ("을", "를") and parts[at - 1][1] in _MEANS
    is_done_with = is_done_with and not is_hangul(found[at - 1][1])
    at -= is_done_with
    is_means = parts[at][1] in _MEANS and found[verb][1].startswith(tuple(listed("relations", "korean means")))
    if takes_many and not is_means:
        return 0, 0
    is_use = parts[at][1] in ("을", "를") and found[verb][1].startswith(tuple(listed("relations", "korean use")))
    # 정적 파일은 nginx가 서빙한다: whoever does it is the value.
    is_use |= parts[at][1] in ("이", "가") and -1 < topic < at and _is_done(found[verb])
    if not is_use and (parts[at][1] not in word_set("korean slots") or found[at][0] == "opposite"):
        return 0, 0
    begin = at
    while begin > 1 and at - begin < VALUE_PIECES_MAX - 1 and not parts[begin - 1][1] and _names(found[begin - 1]):
        begin -= 1
    return (begin, at + 1) if begin or is_use or is_done_with else (0, 0)


def _is_done(piece: Piece) -> bool:
    """Whether a predicate says what somebody does: 맡는다, 만든다, 배포했다, 실행한다; but not 높다 or 난다."""
    if piece[0] == "opposite":
        return piece[1][:-1] == "run"
    verb = piece[1]
    is_present = verb.endswith("다") and (ord(verb[-2:][0]) - ord("가")) % _SYLLABLE_FINALS == _FINAL_NIEUN
    return (is_present or verb.endswith(("합니다", "했다"))) and pattern(_HAPPENS).fullmatch(verb) is None


def _names(piece: Piece) -> bool:
    """Whether a piece may stand in a name: 공개 저장소 is one, though 공개 has an opposite."""
    return is_name(piece) or piece[3] in listed("opposites", "kinds")


def without_particle(piece: Piece) -> tuple[str, str]:
    """A piece without its particle, and the particle."""
    if piece[0] in ("word", "opposite") and is_hangul(piece[1]):
        return korean.parted(piece[1])
    return piece[3], piece[4]


def is_name(piece: Piece) -> bool:
    return piece[0] in NAMING or piece[0] == "number"


def is_hangul(text: str) -> bool:
    return "가" <= text[:1] <= "힣"


def has_hangul(found: Sequence[Piece]) -> bool:
    return any(piece[4] or "가" <= piece[1][:1] <= "힣" for piece in found)

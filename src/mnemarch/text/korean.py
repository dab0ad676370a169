"""Korean words that the guard and the search read: particles, endings, numbers, counters, negations and opposites."""

from __future__ import annotations

from functools import cache
from unicodedata import normalize

from mnemarch.text import hangul
from mnemarch.text.opposites import korean_opposites, korean_word_opposites
from mnemarch.text.pattern import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable

_PARTICLES = (
    "은 는 이 가 을 를 에 의 와 과 로 도 만 들 나 랑 야 께 에서 에게 한테 으로 까지 부터 처럼 보다 라고 이라고"
    " 마다 조차 밖에 대로 이나 이랑 하고 에서는 에서도 에서의 에게는 에게서 으로는 으로도 으로서 로서 으로써 로써"
    " 으로부터 로부터 까지는 까지도 부터는 에는 에도 에만 와의 과의 와는 과는 로는 로도 만을 만이 만은 들이 들을"
    " 들은 들의 들과 들에 들에게 라는 이라는 라도 이라도 라면 이라면 이란 란 이며 이고 이다 이므로 이지만 인데 인지"
    " 입니다 이었다 였다 였습니다 이었습니다 께서 에선 에겐 뿐 뿐만 마저 커녕"
)
_ENDINGS = (
    "하다 한다 합니다 하는 하고 하기 하면 하며 하지 하지만 하게 하도록 하세요 하십시오 하자 하여 하여야 해서 해야"
    " 해야만 해요 해줘 했다 했고 했습니다 했던 했는데 했을 할 한 함 하려면 하려고 하던 되다 된다 됩니다 되는 되고"
    " 되기 되면 되며 되지 되지만 되도록 되어 되어야 돼서 돼야 돼요 됐다 됐고 됐습니다 되었다 되었습니다 되었고 될"
    " 된 됨 시킨다 시킵니다 시키는 시켜 시켜야 습니다 스럽다 스러운"
)
_NATIVE_DETERMINERS = "한 두 세 네 다섯 여섯 일곱 여덟 아홉"
_NATIVE_NOUNS = "하나 둘 셋 넷 다섯 여섯 일곱 여덟 아홉"
_NATIVE = {
    **{word: number for number, word in enumerate(_NATIVE_DETERMINERS.split(), start=1)},
    **{"열" + word: number for number, word in enumerate(_NATIVE_DETERMINERS.split(), start=11)},
    "열": 10,
    "스무": 20,
    "스물": 20,
    "서른": 30,
    "마흔": 40,
    "쉰": 50,
}
_NOUNS = {
    **{word: number for number, word in enumerate(_NATIVE_NOUNS.split(), start=1)},
    **{"열" + word: number for number, word in enumerate(_NATIVE_NOUNS.split(), start=11)},
}
_SINO_DIGITS = "영일이삼사오육칠팔구"
_SINO_SCALES = {"십": 10, "백": 100, "천": 1000, "만": 10_000}

# Plain counters say nothing that the number does not; 만 after a digit may mean "only", so it is not multiplied out.
UNITS: dict[str, str] = {
    spelling: unit
    for unit, spellings in {
        "": "번 개 회 명 차례 가지 대 줄 곳 군데 권 장 건 쪽 단계 사람 글자 자리 종류 마리 차 개씩 번씩",
        "th": "번째 째",
        "ms": "밀리초",
        "s": "초",
        "min": "분",
        "h": "시간",
        "o'clock": "시",
        "d": "일",
        "w": "주 주일",
        "mo": "개월 달",
        "y": "년",
        "₩": "원",
        "$": "달러",
        "%": "퍼센트 프로",
        "x": "배",
        "B": "바이트",
        "KB": "킬로바이트",
        "MB": "메가바이트 메가",
        "GB": "기가바이트 기가",
        "십": "십",
        "백": "백",
        "천": "천",
        "만": "만",
        "억": "억",
    }.items()
    for spelling in spellings.split()
}

# 지 않는다, 않다, 아니다: other negations come before what they deny.
DENYING_WHAT_IS_BEFORE = "지않아"
# Whether what is said before it is so.
THERE_IS = {"있": True, "없": False}
_MARKERS = "은는이가을를"
_TELLING = ("에", "에서", "에게", "로", "만", "도", "까지", "부터", "보다", "마다", "밖에", "의", "와", "과")
_FINAL = ("다", "요", "죠", "까", "십시오", "시오")
_RIEUL = "\u11af"
_AFTER_COUNTERS = "씩 째 이상 이하 정도 쯤 미만 초과 당 동안 후 전 뒤 안 내 이내 간 다 재"
_SINO_UNITS = "초|분|회|개월|년|퍼센트|프로|배|번|개|명|일"
_OPEN_STEMS = "켜켠켭켬켰끄꺼껐끕끔닫"
_UNDONE = (
    "지원|사용|설정|완료|포함|적용|구현|인증|등록|확인|처리|검증|승인|허용|공개|배포|존재|정의|작성|반영|할당|지정"
    "|연결|해결|실행|전송|준수"
)

# The patterns are for phrases of nothing but Hangul and spaces, where \S means Hangul: a class of it would cost a third
# of a millisecond to compile at each place.

# 아 and 어 forms end so (해 남겨 써 먹어): what 야, 도 and 서 are joined to.
_JOINING = "".join(normalize("NFC", chr(consonant) + vowel) for consonant in range(0x1100, 0x1113) for vowel in "ᅡᅥᅢᅧᅪᅯᅫ")
# Must and must not; need not, may, and what will do, which says no more than the verb before it. 되돌린다 is no 된다.
_MUST = (
    rf"(?:(?<=[{_JOINING}])(?P<obliged>야[만지]?)|지[는도를]? ?(?P<barred_from>[않말]아야만?))"
    r" ?[하한합해할했함되된됩돼될됐됨]\S*"
    rf"|(?:(?<=[{_JOINING}])(?:(?P<barred>(?:서[는도]?|선) ?안)|(?P<free>도))|으?면(?:(?P<barred_if> ?안)|(?= ))"
    r"|지[는도를]? ?(?:(?P<spared>않아도)|(?P<obliged_to>않으면 ?안))) ?(?:괜찮|무방|(?!되[돌살새])[되된됩돼될됐됨])\S*"
)
_NEGATION = (
    r"지(?:는|도|를|가)? ?(?:않|못)\S*"
    r"|지(?:는|도|를)? ?(?:마(?:세요|십시오|시오|시고|시길|라|요)?(?!\S)|말(?!씀)\S*)(?: 것)?"
    r"|(?<!\S)(?:마세요|마십시오|마시오|말아야|말아라|말 ?것|말고(?!\S))"
    r"|(?<!\S)안 (?=\S)"
    r"|(?<!\S)안(?=돼|되|된|됨|됩|될|됐|함|해|하|한|합|할|했|씀|써|쓰|쓴|나오|나와|보이|보여|맞|돌아)"
    r"|(?<![잘연])못 ?|않\S*|아니\S*|아닌|아님|아닙니다|아닐"
    rf"|미(?={_UNDONE})|비(?=허용|권장|추천|정상|호환|필수|유효|표준|인증)|불(?=충분|완전|안정|일치|명확|규칙)"
)

_COPULA = r"(?<=\S)(?:이다|입니다|이에요|이었다|이었습니다|였다|였습니다|예요)(?!\S)"
# 하다 and 되다 in any ending, so that a negated predicate and a plain one come to the same stem.
_CARRIER = (
    "(?:하|한|합|해|할|했|함|되|된|됩|돼|될|됐|됨)"
    r"(?:다|니다|야만|야|요|세요|라|고|며|면|는|여|서|도록|기|십시오|자|지만|지|던|려면|려|게|습니다|었다|였다|었습니다"
    r"|음){0,4}+(?!\S)"
)


@cache
def guarded_pattern() -> re.Pattern[str]:
    """Numbers, what must be, negations and opposites in a phrase of Hangul words, as the groups of those names."""
    whole = korean_word_opposites()
    inside = [stem for stem in korean_opposites() if stem not in whole]
    sino = f"[{_SINO_DIGITS}{''.join(_SINO_SCALES)}]"
    number = (
        rf"(?P<native>{_either(_NATIVE)}) ?(?P<counter>{_either(UNITS)})"
        # A single Sino-Korean syllable glued to a counter is nearly always another word (구분, 사회, 만회).
        rf"|(?P<sino>{sino}{{2,8}} ?|[삼사오육칠팔십백천] )(?P<unit>{_SINO_UNITS})"
        rf"|(?P<noun>{_either(_NOUNS)})"
    )
    short = "|".join(stem if stem in _OPEN_STEMS else stem + r"(?!\S)" for stem in _longest_first(whole))
    return pattern(
        rf"(?<!\S)(?:{number})(?=(?P<tail>\S*))|(?P<must>{_MUST})|(?P<negation>{_NEGATION})"
        rf"|(?P<opposite>{_either(inside)}|(?<!\S)(?:{short}))"
    )


def number_key(match: re.Match[str]) -> str:
    """The number of a match of the guarded pattern in digits, with its unit: 세 번 is 3, 이십 초 is 20s."""
    if match["native"]:
        return f"{_NATIVE[match['native']]}{UNITS[match['counter']]}"
    if match["noun"]:
        return str(_NOUNS[match["noun"]])
    return f"{_sino_number(match['sino'])}{UNITS[match['unit']]}"


def _sino_number(word: str) -> int:
    total = section = digit = 0
    for syllable in word.strip():
        scale = _SINO_SCALES.get(syllable)
        if scale is None:
            digit = _SINO_DIGITS.index(syllable)
        elif scale == 10_000:
            total += (section + digit or 1) * scale
            section = digit = 0
        else:
            section += (digit or 1) * scale
            digit = 0
    return total + section + digit


@cache
def unit_pattern() -> re.Pattern[str]:
    """A counter or a unit at the start of what follows a number, and the rest of that word."""
    return pattern(rf"(?P<unit>{_either(UNITS)})(?P<tail>\S*)")


def ends_a_word(tail: str) -> bool:
    """Whether what comes after a counter is nothing or particles, so that the counter is no part of another word."""
    return not tail or tail in _tails() or (tail[-1] in "은는이가을를에의로도만" and tail[:-1] in _tails())


@cache
def _tails() -> frozenset[str]:
    return suffixes() | frozenset(_AFTER_COUNTERS.split())


def bare(word: str) -> str:
    """The word without what changes from one wording to another: the markers of topic, subject and object, the endings
    of a predicate, and the verbs 하다 and 되다, which only carry them.

    Other particles (에서, 로, 까지, 만) tell where from and how far, and stay.
    """
    carried = pattern(_CARRIER).sub("", word)
    if carried != word:
        return carried
    noun = pattern(_COPULA).sub("", word)
    if noun != word:
        return noun
    if word.endswith(_FINAL):
        return bare_stem(hangul.stem(word))
    return pattern(_CARRIER).sub("", word[:-1]) if len(word) > 1 and word[-1] in _MARKERS else word


def bare_joined(word: str) -> str:
    """The same of an 아 or 어 form, as it stands before 야, 도 and 서: 남겨 is 남기."""
    carried = pattern(_CARRIER).sub("", word)
    return carried if carried != word else bare_stem(hangul.stem(word))


def bare_stem(word: str) -> str:
    """The same of a stem, as it stands before 지 and 면; its last ㄹ, which 만든다 drops and 만들지 keeps, goes."""
    letters = normalize("NFD", pattern(_CARRIER).sub("", word))
    return normalize("NFC", letters[:-1] if letters.endswith(_RIEUL) else letters)


def is_obliged(match: re.Match[str]) -> bool:
    """Whether a match of the guarded pattern says that what comes before it must be, or must not be."""
    return bool(match["obliged"] or match["obliged_to"]) or is_barred(match)


def is_barred(match: re.Match[str]) -> bool:
    return bool(match["barred"] or match["barred_if"] or match["barred_from"])


def reduction_before(match: re.Match[str]) -> Callable[[str], str]:
    """How the word is made bare that goes on in a match of the guarded pattern."""
    begin = match[0][0]
    if match["negation"] or match["must"]:
        if begin in "지면으":
            return bare_stem
        if begin in "야도서선":
            return bare_joined
    return bare


def is_ending(tail: str) -> bool:
    """Whether what is glued to a stem is nothing but endings and markers."""
    return hangul.is_suffix(tail) and not tail.endswith(_TELLING)


@cache
def suffixes() -> frozenset[str]:
    """Every particle and frequent ending."""
    return frozenset((_PARTICLES + " " + _ENDINGS).split())


def _either(words: Iterable[str]) -> str:
    return "|".join(_longest_first(words))


def _longest_first(words: Iterable[str]) -> list[str]:
    return sorted(words, key=len, reverse=True)

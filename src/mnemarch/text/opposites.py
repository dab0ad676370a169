"""What opposes what: groups of words with two poles, in English and Korean under the same names."""

from __future__ import annotations

from functools import cache

# For each word its poles, as in `allow+` or `allow-`, and whether it negates by itself.
Opposites = dict[str, tuple[tuple[str, ...], bool]]

# One group a line: its name, the words of one pole, the words of the other. A star marks a word that inflects,
# an exclamation mark a word that negates by itself.
_ENGLISH = """
allow: allow* permit* grant* | !deny* !forbid* !forbade !forbidden !prohibit* !disallow* !ban* block* revoke*
enable: enable* activate* | !disable* !deactivate*
always: always | !never
include: include* | !exclude* omit*
truth: true | false
on: on | off
with: with | !without
order: before precede* | after follow*
than: above over more greater larger bigger higher exceed* | below under less fewer smaller
change: increase* raise* | decrease* reduce* lower*
bound: minimum min minimal least | maximum max maximal most
sync: sync synchronous synchronously | async asynchronous asynchronously
need: required mandatory require* | optional optionally
valid: valid | !invalid
safe: safe safely secure | !unsafe !unsafely !insecure
success: success* succeed* successful successfully pass* | failure* fail* unsuccessful
accept: accept* approve* | !reject* !refuse* !decline*
public: public publicly | private privately
first: first | last
direction: ascending asc | descending desc
side: left | right
up: up | down
add: add* insert* append* create* | remove* delete* drop*
open: open* | close* shut
start: start* begin* | stop* end* halt*
lock: lock* | unlock*
if: if when | unless
keep: keep* retain* | discard*
prefer: prefer* recommend* | !avoid*
new: new newer newest | old older oldest
inside: inside within | outside
read: read* | write* wrote written
early: early earlier | late later
all: all every | !none
same: same equal equals identical | different !unequal
known: known | !unknown
used: used | !unused
supported: supported | !unsupported
stable: stable | !unstable
possible: possible | !impossible
available: available | !unavailable
correct: correct | !incorrect
mutable: mutable | !immutable
everybody: everybody everyone everything everywhere | !nobody !nothing !nowhere
"""
_KOREAN = """
allow: 허용 허가 | !금지 차단 !불허
enable: 활성 활성화 | !비활성 !비활성화
has: 있 | !없
possible: 가능 | !불가능 !불가
need: 필수 | 선택
order: 이전 | 이후
than: 초과 이상 증가 상승 | 미만 이하 감소 하락
closed: 이상 이하 | 초과 미만
bound: 최소 | 최대
sync: 동기 | 비동기
success: 성공 | 실패
include: 포함 | 제외
add: 추가 생성 | 삭제 제거
truth: 참이다 참이면 참인 참을 | 거짓
public: 공개 | 비공개
valid: 유효 | !무효
required: 필요 | !불필요
side: 왼쪽 | 오른쪽
first: 처음 | 마지막
early: 먼저 | 나중
always: 항상 언제나 | 절대
accept: 승인 수락 | !거부 !거절 !반려
start: 시작 | 종료 중지 중단
direction: 오름차순 | 내림차순
safe: 안전 | 위험 !불안전
lock: 잠금 | 해제
read: 읽기 | 쓰기
known: 알려진 | !모르 !모른 !모를 !모름 !모릅 !몰라 !몰랐
"""
# Short stems that mean something else inside other words.
_KOREAN_WORDS = """
on: 켜 켠 켭 켬 켰 켠다 | 끄 꺼 껐 끈다 끕 끔
order: 전 전에 전까지 | 후 후에 뒤 뒤에
than: 더 | 덜
up: 위 위로 위에 | 아래 아래로 아래에
open: 열고 열어 엽니다 연다 열린 열림 | 닫
known: 아는 안다 알고 압니다 |
"""
COMPARISONS: Opposites = {
    "<": (("than-", "closed-"), False),
    ">": (("than+", "closed-"), False),
    "<=": (("than-", "closed+"), False),
    "≤": (("than-", "closed+"), False),
    ">=": (("than+", "closed+"), False),
    "≥": (("than+", "closed+"), False),
    "==": (("same+",), False),
    "===": (("same+",), False),
    "!=": (("same-",), True),
    "!==": (("same-",), True),
    "≠": (("same-",), True),
}
# Groups that say how far a statement goes and not what it is about: a skeleton goes without them.
EXTENTS = frozenset({"always", "everybody", "must", "sum"})


@cache
def english_opposites() -> Opposites:
    return _read(_ENGLISH)


@cache
def korean_opposites() -> Opposites:
    return _read(_KOREAN + _KOREAN_WORDS)


@cache
def korean_word_opposites() -> Opposites:
    """Those that count only as whole words, or at the start of one."""
    return _read(_KOREAN_WORDS)


@cache
def contradictory() -> frozenset[str]:
    """The groups in which what is not the one is the other: not allowed is forbidden, but not before is not after."""
    lines = (_ENGLISH + _KOREAN + _KOREAN_WORDS).splitlines()
    groups = frozenset(line.partition(":")[0] for line in lines if "!" in line)
    return groups - {"always", "all", "everybody"}  # Not always is not never.


def _read(table: str) -> Opposites:
    opposites: Opposites = {}
    for line in filter(None, table.splitlines()):
        group, _, words = line.partition(":")
        for sign, side in zip("+-", words.split("|"), strict=True):
            for word in side.split():
                for form in _inflected(word.strip("!")):
                    poles, negates = opposites.get(form, ((), False))
                    opposites[form] = ((*poles, group + sign), negates or word.startswith("!"))
    return opposites


def _inflected(word: str) -> set[str]:
    base = word.rstrip("*")
    if base == word:
        return {base}
    if base.endswith("e"):
        return {base, base + "s", base + "d", base[:-1] + "ing"}
    if base.endswith("y") and base[-2] not in "aeiou":
        return {base, base[:-1] + "ies", base[:-1] + "ied", base + "ing"}
    doubled = base + base[-1]
    plain = {base, base + "s", base + "ed", base + "ing", doubled + "ed", doubled + "ing"}
    return plain | {base + "es"} if base.endswith(("s", "x", "ch", "sh")) else plain

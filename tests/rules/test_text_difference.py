"""The guard of R6: numbers, negations, quotes and identifiers that differ keep two statements apart."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemarch.text import english
from mnemarch.text.difference import Difference, differences
from mnemarch.text.guarded import _Scan
from mnemarch.text.opposition import opposes, statement

WORDS = (
    "retry must not never three 3 5 twenty hundred 30s allow deny enable off 'a b' \"x\" foo_bar getUser src/a.ts --dry"
    " HTTP don't 재시도 하지 않는다 세 번 없다 있다 금지 30 초 안 된다 이상 이하 < >= != utf8 v1.2 👍 , . :"
)
STATEMENTS = st.lists(st.sampled_from(WORDS.split(" ")), max_size=10).map(" ".join) | st.text(max_size=40)

DIFFERENT = [
    ("number", "retry three times", "retry five times"),
    ("number", "from 3 to 5", "from 5 to 3"),
    ("number", "port 8080", "port 8081"),
    ("number", "at -5 degrees", "at 5 degrees"),
    ("number", "50% of rows", "50 of rows"),
    ("number", "wait 5 minutes", "wait 5 seconds"),
    ("number", "wait 10ms", "wait 10s"),
    ("number", "a cache of 5GB", "a cache of 5Gb"),
    ("number", "needs v1.2", "needs v1.3"),
    ("number", "needs 3.5", "needs 35"),
    ("number", "retry once", "retry twice"),
    ("number", "twenty-five rows", "twenty-six rows"),
    ("number", "세 번 재시도한다", "네 번 재시도한다"),
    ("number", "하나만 쓴다", "둘만 쓴다"),
    ("number", "3초 대기", "3분 대기"),
    ("number", "이십 초 대기", "삼십 초 대기"),
    ("number", "costs $5", "costs 5"),
    ("negation", "must retry", "must not retry"),
    ("negation", "can retry", "can't retry"),
    ("negation", "it will work", "it won't work"),
    ("negation", "always retry", "never retry"),
    ("negation", "enable caching", "disable caching"),
    ("negation", "caching is enabled", "caching is disabled"),
    ("negation", "allow it", "deny it"),
    ("negation", "it allows this", "it forbids this"),
    ("negation", "include tests", "exclude tests"),
    ("negation", "set it to true", "set it to false"),
    ("negation", "turn it on", "turn it off"),
    ("negation", "with cache", "without cache"),
    ("negation", "lint before the build", "lint after the build"),
    ("negation", "the minimum size", "the maximum size"),
    ("negation", "sync calls", "async calls"),
    ("negation", "it is required", "it is optional"),
    ("negation", "a safe call", "an unsafe call"),
    ("negation", "on success", "on failure"),
    ("negation", "add the index", "remove the index"),
    ("negation", "keep it open", "keep it closed"),
    ("negation", "x < y", "x > y"),
    ("negation", "x <= y", "x < y"),
    ("negation", "x == y", "x != y"),
    ("negation", "if !ready", "if ready"),
    ("negation", "use tabs, not spaces", "use spaces, not tabs"),
    ("negation", "first lint, last test", "last lint, first test"),
    ("negation", "재시도한다", "재시도하지 않는다"),
    ("negation", "배포하세요", "배포하지 마세요"),
    ("negation", "커밋할 것", "커밋하지 말 것"),
    ("negation", "쓰면 된다", "쓰면 안 된다"),
    ("negation", "쓰면 된다", "쓰면 안된다"),
    ("negation", "찾는다", "못 찾는다"),
    ("negation", "권한이 있다", "권한이 없다"),
    ("negation", "이것은 버그다", "이것은 버그가 아니다"),
    ("negation", "수정 허용", "수정 금지"),
    ("negation", "수정", "수정 금지"),
    ("negation", "기능을 켠다", "기능을 끈다"),
    ("negation", "캐시 활성화", "캐시 비활성화"),
    ("negation", "수정 가능", "수정 불가능"),
    ("negation", "수정 가능", "수정 불가"),
    ("negation", "필수 항목", "선택 항목"),
    ("negation", "배포 이전", "배포 이후"),
    ("negation", "3 이상", "3 이하"),
    ("negation", "최소 크기", "최대 크기"),
    ("negation", "동기 호출", "비동기 호출"),
    ("negation", "성공하면", "실패하면"),
    ("negation", "지원 기능", "미지원 기능"),
    ("negation", "30분 전", "30분 후"),
    ("quoted", 'set "fast mode"', 'set "slow mode"'),
    ("quoted", "set 'a b'", "set 'a c'"),
    ("quoted", "set `fast`", "set `slow`"),
    ("quoted", "“가 나” 모드", "“가 다” 모드"),
    ("quoted", "‘가’ 모드", "‘나’ 모드"),
    ("quoted", "「가」 모드", "「나」 모드"),
    ("quoted", 'set "fast"', "set fast"),
    ("identifier", "use a_b over c_d", "use c_d over a_b"),
    ("identifier", "call getUser", "call getUsers"),
    ("identifier", "call getUser", "call getuser"),
    ("identifier", "edit src/a.ts를", "edit src/b.ts를"),
    ("identifier", "read os.path", "read os.sep"),
    ("identifier", "pass --dry-run", "pass --force"),
    ("identifier", "set MAX_SIZE", "set MIN_SIZE"),
    ("identifier", "set $HOME", "set $PATH"),
    ("identifier", "add @a/b", "add @a/c"),
    ("identifier", "over HTTP", "over FTP"),
    ("identifier", "as utf8", "as utf16"),
    ("identifier", "in C++ code", "in C# code"),
    ("identifier", "call foo() here", "call bar() here"),
    ("identifier", "call foo(x, y)", "call bar(x, y)"),
    ("identifier", "put <foo> here", "put <bar> here"),
    ("identifier", "see #foo", "see #bar"),
    ("number", "the first run", "the second run"),
    ("number", "half of it", "quarter of it"),
    ("number", "a single quote", "a double quote"),
    ("number", "三 개를 쓴다", "四 개를 쓴다"),
    ("number", "二十三回", "三十二回"),
    ("negation", "it is legal", "it is illegal"),
    ("negation", "a regular file", "an irregular file"),
    ("negation", "a precise clock", "an imprecise clock"),
    ("negation", "an active user", "an inactive user"),
    ("negation", "a zero value", "a nonzero value"),
    ("negation", "a blocking call", "a non-blocking call"),
    ("negation", "use a+b", "use a-b"),
    ("negation", "use a + b", "use a - b"),
    ("negation", "everybody may push", "nobody may push"),
    ("negation", "users have access", "users lack access"),
    ("negation", "이것을 쓴다", "이것 말고 쓴다"),
    ("negation", "이것만 쓴다", "이것 말고 쓴다"),
    ("negation", "아는 값", "모르는 값"),
    ("negation", "저장해야 한다", "저장하면 안 된다"),
    ("negation", "저장해야 한다", "저장하지 않아도 된다"),
    ("negation", "저장하면 안 된다", "저장하지 않아도 된다"),
    ("quoted", "set «red»", "set «blue»"),
    ("quoted", "《빨강》 모드", "《파랑》 모드"),
]


@pytest.mark.parametrize(("what", "left", "right"), DIFFERENT)
def test_a_guarded_difference_is_seen(what: str, left: str, right: str) -> None:
    assert {each.what for each in differences(left, right)} == {what}


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("retry three times", "retry 3 times"),
        ("세 번 재시도한다", "3번 재시도한다"),
        ("retry twice", "두 번 retry"),
        ("wait 30s", "wait 30 seconds"),
        ("30초 대기", "30 초 대기"),
        ("twenty-five rows", "25 rows"),
        ("two hundred rows", "200 rows"),
        ("1,000 rows", "1000 rows"),
        ("5GB", "5 gb"),
        ("50%", "50 percent"),
        ("must NOT retry", "must not retry"),
        ("DO NOT RETRY", "do not retry"),
        ("don't retry", "do not retry"),
        ("can't", "cannot"),
        ("won’t", "will not"),
        ("no one may", "nobody may"),
        ("use `foo_bar` here", "use foo_bar here"),
        ("The cache lives in Redis.", "the cache lives in redis"),
        ("캐시는 서버에 둔다", "서버에 캐시를 둔다"),
        ("한 개발자가 수정한다", "그 개발자가 수정한다"),
        ("잘못 고쳤다", "잘 고쳤다"),
        ("잘 구분된다", "잘 나뉜다"),
        ("it's the user's cache", "the user has a cache"),
        ("deploys are not allowed", "deploys are forbidden"),
        ("it must not be enabled", "it must be disabled"),
        ("it is not forbidden", "it is allowed"),
        ("not blocking", "non-blocking"),
        ("it is not legal", "it is illegal"),
        ("the import is important", "the port is important"),
        ("under the union", "the unit is unique"),
        ("the index is distinct", "the dex is tinct"),
        ("requests per second", "requests each second"),
        ("call getUser() here", "call `getUser` here"),
        ("option(s) of the file(s)", "options of the files"),
        ("a well-known name", "a well known name"),
        ("외부 접근을 금지한다", "외부 접근을 허용하지 않는다"),
        ("로그인이 필요 없다", "로그인이 필요하지 않다"),
        ("저장하지 않으면 안 된다", "저장해야 한다"),
        ("파일이 없으면 안 된다", "파일이 있어야 한다"),
        ("배포하면 되돌린다", "배포하고 되돌린다"),
        ("그 분야 한정 규칙", "그 분야의 규칙"),
    ],
)
def test_the_same_said_otherwise_has_no_difference(left: str, right: str) -> None:
    assert differences(left, right) == ()


@given(STATEMENTS)
def test_a_text_does_not_differ_from_itself(text: str) -> None:
    assert differences(text, text) == ()


@given(STATEMENTS, STATEMENTS)
def test_a_difference_is_the_same_from_either_side(left: str, right: str) -> None:
    mirrored = {Difference(each.what, each.right, each.left) for each in differences(right, left)}
    assert set(differences(left, right)) == mirrored


@given(STATEMENTS, st.integers(0, 10**6), st.integers(0, 10**6))
def test_two_numbers_differ_unless_they_are_equal(text: str, left: int, right: int) -> None:
    found = differences(f"{left} rows, {text}", f"{right} rows, {text}")
    assert bool(found) == (left != right)


@given(st.lists(st.sampled_from(["tests", "run", "서버", "cache"]), max_size=5).map(" ".join))
def test_one_more_negation_is_always_seen(text: str) -> None:
    assert [each.what for each in differences(f"must {text}", f"must not {text}")] == ["negation"]


def test_a_difference_says_what_each_side_wrote() -> None:
    assert differences("must not retry 3 times", "must retry five times") == (
        Difference("number", "3 times", "five times"),
        Difference("negation", "not", ""),
    )


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("must not retry 3 times", "must retry five times"),
        ("do not retry", "retry"),
        ("don't retry twice", "retry 3 times"),
        ("The cache is enabled", "the cache is disabled."),
        ("always lint", "never lint"),
        ('the mode is "fast"', 'the mode is "very slow"'),
        ("재시도해야 한다", "재시도하지 말아야 한다"),
        ("사용하세요", "사용하지 마세요"),
        ("사용할 수 있다", "사용할 수 없다"),
        ("세 번 재시도한다", "5번 재시도하지 않는다"),
        ("기능을 켠다", "기능을 끈다"),
        ("수정 허용", "수정 금지"),
        ("토큰을 저장해야 한다", "토큰은 저장하면 안 됩니다"),
        ("로그인이 필요하다", "로그인은 필요 없다"),
        ("테스트를 건너뛴다", "테스트를 건너뛰지 않는다"),
        ("파일을 만든다", "파일을 만들지 마세요"),
        ("로그를 남겨야 한다", "로그를 남기지 말아야 한다"),
        ("users have access", "users lack access"),
        ("include tests in a build", "exclude the tests from a build"),
    ],
)
def test_statements_that_contradict_each_other_share_a_topic(left: str, right: str) -> None:
    assert statement(left).key == statement(right).key
    assert differences(left, right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("retry 3 times", "log 3 times"),
        ("enable it", "include it"),
        ("👍", "👎"),
        ("서버를 켠다", "화면을 켠다"),
        ("서버에서 보낸다", "서버로 보낸다"),
        ("使用 cache", "停止 cache"),
    ],
)
def test_statements_about_other_things_have_other_topics(left: str, right: str) -> None:
    assert statement(left).topic != statement(right).topic
    assert opposes(left, right) is None


@given(st.sampled_from(["", "must not run", "서버를 켠다", "use foo_bar"]), st.integers(0, 999), st.integers(0, 999))
def test_amounts_do_not_change_the_topic(text: str, left: int, right: int) -> None:
    assert statement(f"keep {left} rows, {text}").key == statement(f"Keep {right} rows; {text}.").key


@given(
    st.one_of(
        st.sampled_from(sorted(filter(str.isalpha, english.guarded()))),
        st.text(alphabet=string.ascii_letters, min_size=1),
    )
)
def test_the_short_way_for_plain_words_reads_them_as_the_long_way_does(word: str) -> None:
    short, long = _Scan(shouted=False), _Scan(shouted=False)
    short.read_chunk(word, 0, len(word))
    long.read_part(word, 0)
    assert short.pieces == long.pieces

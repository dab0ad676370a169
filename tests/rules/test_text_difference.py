"""The guard of R6: numbers, negations, quotes and identifiers that differ keep two statements apart."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.cases import cases
from mnemarch.text import english
from mnemarch.text.guarded import Difference, _Scan, differences, pieces
from mnemarch.text.opposition import opposes
from mnemarch.text.statements import statement, topic_key

WORDS = (
    "retry must not never three 3 5 twenty hundred 30s allow deny enable off 'a b' \"x\" foo_bar getUser src/a.ts --dry"
    " HTTP don't 재시도 하지 않는다 세 번 없다 있다 금지 30 초 안 된다 이상 이하 < >= != utf8 v1.2 👍 , . :"
)
AMOUNT = ("twenty", "five", "hundred", "seconds", "row", "not", "allow")
ENGLISH = st.sampled_from(AMOUNT) | st.sampled_from(sorted(filter(str.isalpha, english.guarded())))
STATEMENTS = st.lists(st.sampled_from(WORDS.split(" ")), max_size=10).map(" ".join) | st.text(max_size=40)

DIFFERENT = cases("text_difference", "different")


@pytest.mark.parametrize(("what", "left", "right"), DIFFERENT)
def test_a_guarded_difference_is_seen(what: str, left: str, right: str) -> None:
    assert {each.what for each in differences(left, right)} == {what}


@pytest.mark.parametrize(("left", "right"), cases("text_difference", "the same said otherwise has no difference"))
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
    ("left", "right"), cases("text_difference", "statements that contradict each other share a topic")
)
def test_statements_that_contradict_each_other_share_a_topic(left: str, right: str) -> None:
    assert topic_key(left) == topic_key(right)
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
    assert topic_key(f"keep {left} rows, {text}") == topic_key(f"Keep {right} rows; {text}.")


@given(st.lists(ENGLISH | st.text(string.ascii_letters, min_size=1), min_size=1))
def test_the_short_ways_for_plain_words_read_them_as_the_long_way_does(words: list[str]) -> None:
    text = " ".join(words)
    chunks, parts = _Scan(shouted=text.isupper()), _Scan(shouted=text.isupper())
    for at, word in enumerate(words):
        start = len(" ".join([*words[:at], ""]))
        chunks.read_chunk(word, start)
        parts.read_part(word, start)
    assert pieces(text) == tuple(chunks.pieces) == tuple(parts.pieces)

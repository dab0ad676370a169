"""The canonical form: what may vary does not count, and what means something does."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fixtures.cases import cases
from mnemarch.text.canonical import canonical, canonical_key, merge_key, mergeable, ngrams

STATEMENT_WORDS = "use the retry_count v1.2 C++ 재시도 정책은 세 번 에이전트 OS node.js 10% -5 café Straße"
WORDS = st.sampled_from(STATEMENT_WORDS.split())
STATEMENTS = st.lists(WORDS, min_size=1, max_size=8)
MARKS = st.text(alphabet=" .,;:!?-'\"()[]{}…—“”、。·~+*/=<>#1aA가ㄱㅏ²½\u0301\u200b", max_size=30)

APART = cases("text_canonical", "apart")


def test_different_things_stay_different() -> None:
    known: dict[str, list[str]] = {}
    for text in APART:
        known.setdefault(canonical(text), []).append(text)
    assert [texts for texts in known.values() if len(texts) > 1] == []


@pytest.mark.parametrize(("left", "right"), cases("text_canonical", "what only looks different is equal"))
def test_what_only_looks_different_is_equal(left: str, right: str) -> None:
    assert canonical(left) == canonical(right)
    assert canonical_key(left) == canonical_key(right)


@given(st.text() | MARKS)
@example("가 - .나")
@example("ㄱ ㅏ")
@example("a\u0345\u0301")
@example("´가")
def test_the_canonical_form_is_its_own(text: str) -> None:
    assert canonical(canonical(text)) == canonical(text)


@given(STATEMENTS)
def test_case_does_not_count(words: list[str]) -> None:
    text = " ".join(words)
    assert canonical(text.upper()) == canonical(text.lower()) == canonical(text)


@given(STATEMENTS, st.sampled_from([" ", "  ", "\n", "\t ", "\u00a0", "\u3000", " \r\n "]))
def test_the_kind_and_number_of_spaces_do_not_count(words: list[str], space: str) -> None:
    assert canonical(space.join(["", *words, ""])) == canonical(" ".join(words))


@given(STATEMENTS, st.sampled_from([".", "!", "?", "...", "…", "?!", "。", ";", ",", ":", ' "', ")", " -", " —"]))
def test_final_punctuation_does_not_count(words: list[str], mark: str) -> None:
    assert canonical(" ".join(words) + mark) == canonical(" ".join(words))


@given(
    st.lists(st.sampled_from(["재시도", "정책은", "서버를", "OS", "3번", "배포"]), min_size=1, max_size=6), st.data()
)
def test_spaces_next_to_hangul_do_not_count(words: list[str], data: st.DataObject) -> None:
    spaces = [data.draw(st.sampled_from(["", " "])) for _ in words]
    korean = [f"가{word}나" for word in words]
    assert canonical("".join(map("".join, zip(korean, spaces, strict=True)))) == canonical(" ".join(korean))


@given(st.text(min_size=1).filter(str.strip))
def test_text_with_something_in_it_never_becomes_empty(text: str) -> None:
    assert canonical(text)


@given(st.text(alphabet=st.characters()))
def test_any_text_has_a_key_of_128_bits(text: str) -> None:
    assert len(canonical_key(text)) == 32


def test_even_a_lone_surrogate_has_a_key() -> None:
    assert canonical_key("\ud800") != canonical_key("\udfff")


@given(st.text(max_size=40), st.integers(1, 4), st.integers(0, 3))
def test_ngrams_have_the_asked_lengths_or_are_the_short_text(text: str, low: int, more: int) -> None:
    known = canonical(text)
    grams = ngrams(text, low, low + more)
    if len(known) < low:
        assert grams == ([known] if known else [])
    else:
        assert {len(gram) for gram in grams} <= set(range(low, low + more + 1))
        assert all(gram in f" {known} " for gram in grams)


def test_ngrams_are_padded_by_a_space_on_each_side() -> None:
    assert ngrams("Abc.", 3, 4) == [" ab", "abc", "bc ", " abc", "abc "]


ONE = cases("text_canonical", "one")
TWO = cases("text_canonical", "two")


@pytest.mark.parametrize(
    ("left", "right", "is_one"), [(*pair, True) for pair in ONE] + [(*pair, False) for pair in TWO]
)
def test_r6_what_looks_like_code_is_kept_as_it_is_and_a_question_is_no_statement(left, right, is_one):
    assert (merge_key(left) == merge_key(right)) == is_one


PROSE = st.lists(
    st.sampled_from(
        ["the", "cache", "retries", "slow", "writes", "now", "캐시는", "느린", "쓰기를", "다시", "시도한다"]
    ),
    min_size=1,
    max_size=6,
).map(" ".join)
CODE = st.sampled_from(
    [
        *("userID", "get_User", "src/Main.py", "--Force", "a.B", "x==Y", "x == Y", "f(A)", "T[0]", "$Home"),
        *("`A b`", '"A  B"'),
    ]
)


@given(PROSE, CODE, PROSE)
def test_other_case_in_prose_is_one_statement_and_in_code_another(before, code, after):
    text = f"{before} {code} {after}"
    assert merge_key(f"{before.upper()}  {code} {after.title()}.") == merge_key(text)
    if code.lower() != code:
        assert merge_key(f"{before} {code.lower()} {after}") != merge_key(text)
    assert merge_key(f"{text}?") != merge_key(text)


@given(st.text(max_size=60) | MARKS)
def test_what_is_one_statement_has_one_canonical_form(text):
    assert mergeable(text) == mergeable(text)
    assert merge_key(f"{text} \u200b") == merge_key(text)
    if mergeable(text.upper()) == mergeable(text):
        assert canonical(text.upper()) == canonical(text)

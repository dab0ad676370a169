"""Search tokens of English, Korean, code and everything else."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.cases import cases
from mnemarch.text.english import irregular_forms
from mnemarch.text.tokens import TOKEN_CHARS_MAX, numbered_names, query_tokens, telling_tokens, tokens
from mnemarch.text.words import STOP_WORDS


@pytest.mark.parametrize(("text", "found"), cases("text_tokens", "a text gives these tokens"))
def test_a_text_gives_these_tokens(text: str, found: list[str]) -> None:
    assert list(dict.fromkeys(tokens(text))) == found


@given(st.text() | st.text(alphabet="aB1_./-'가나 를OS", max_size=200))
def test_tokens_are_short_and_without_space_and_come_again_the_same(text: str) -> None:
    found = tokens(text)
    assert found == tokens(text)
    assert all(token and len(token) <= TOKEN_CHARS_MAX and not any(map(str.isspace, token)) for token in found)


@given(
    st.from_regex(r"[a-zA-Z0-9_]{1,12}(?:[-./'][a-zA-Z0-9]{1,6})?|[가-힣]{1,6}", fullmatch=True),
    st.text("([{\"'`", max_size=3),
    st.text(".,;:!?)]}\"'`", max_size=3),
)
def test_what_stands_around_a_word_says_nothing(word: str, before: str, after: str) -> None:
    assert tokens(before + word + after) == tokens(word)


@given(st.text(max_size=80))
def test_case_does_not_change_what_a_plain_word_gives(text: str) -> None:
    words = "".join(character if character.isascii() and character.isalpha() else " " for character in text)
    assert tokens(words.lower()) == tokens(words.title().lower())


@given(st.text(alphabet="ab 가나_.", max_size=300), st.integers(0, 20))
def test_the_limit_holds_and_keeps_the_beginning(text: str, limit: int) -> None:
    whole, told = tokens(text), telling_tokens(text)
    assert tokens(text, limit=limit) == whole[:limit]
    assert telling_tokens(text, limit=limit) == told[:limit]


@pytest.mark.parametrize(("read", "word"), [(tokens, "벚꽃축제장나무"), (telling_tokens, "벚꽃축제장거리")])
def test_a_small_limit_once_does_not_shorten_the_word_for_ever(read: Callable[..., list[str]], word: str) -> None:
    assert len(read(word, limit=1)) == 1
    assert len(read(word)) == len(word)


@pytest.mark.parametrize(("text", "found"), cases("text_tokens", "a text is found by these tokens"))
def test_a_text_is_found_by_these_tokens(text: str, found: list[str]) -> None:
    assert telling_tokens(text) == found


@pytest.mark.parametrize("text", ["HTTP RETRY", "Wait v1.2.3 src/app.py", "설정을 바꾼다", "🚀", "日本語", "x_y"])
def test_what_is_no_stop_word_and_no_irregular_form_is_told_as_it_is(text: str) -> None:
    assert telling_tokens(text) == tokens(text)


def test_no_stop_word_tells_anything_in_any_case() -> None:
    words = sorted(word for word in STOP_WORDS if "'" not in word)
    assert telling_tokens(" ".join(words)) == telling_tokens(" ".join(words).title()) == []
    assert telling_tokens(" ".join(word for word in sorted(STOP_WORDS) if "'" in word)) == []


def test_every_irregular_form_is_told_as_its_word() -> None:
    apart = [form for form, word in irregular_forms().items() if telling_tokens(form) != telling_tokens(word)]
    assert apart == []


@pytest.mark.parametrize("text", ["it's", "rock'n'roll", "DON'T", "O'Brien", "'quoted'"])
def test_an_apostrophe_alone_is_no_token(text: str) -> None:
    assert "'" not in tokens(text)


@given(st.text(max_size=200) | st.lists(st.sampled_from([*sorted(STOP_WORDS), "Went", "가나"])).map(" ".join))
def test_the_tokens_of_a_query_are_distinct_and_tell_something_and_stand_in_its_text(text: str) -> None:
    found = query_tokens(text, limit=1000)
    told = telling_tokens(text)
    assert sorted(set(told), key=told.index)[:1000] == found
    assert not STOP_WORDS & set(found)
    assert all(token and len(token) <= TOKEN_CHARS_MAX and not any(map(str.isspace, token)) for token in found)


@given(st.text(max_size=200), st.integers(0, 20))
def test_the_limit_of_a_query_keeps_its_beginning(text: str, limit: int) -> None:
    assert query_tokens(text, limit=limit) == query_tokens(text, limit=1000)[:limit]


@pytest.mark.parametrize(("asked", "stored"), cases("text_tokens", "a question finds the word in another form"))
def test_a_question_finds_the_word_in_another_form(asked: str, stored: str) -> None:
    assert set(query_tokens(asked)) & set(telling_tokens(stored))


def test_a_word_without_end_is_cut_and_bounded() -> None:
    assert tokens("x" * 100_000) == ["x" * TOKEN_CHARS_MAX]
    assert tokens("가나다라" * 100_000)[:5] == ["^가", "가나", "나다", "다라", "라가"]
    assert len(tokens("가나다라" * 100_000)) == 4096
    assert len(tokens("가 " * 100_000)) == 4096


def test_many_threads_get_what_one_gets() -> None:
    texts = [f"running{number} retries_{number} 설정{number}을 connections policies" for number in range(400)]
    alone = [tokens(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(tokens, [text + " x" for text in texts])) == [[*found, "x"] for found in alone]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("What does service 44 use?", ["servic~44"]),
        ("Service-44, shard_3 and PR #12", ["servic~44", "shard~3", "pr~12"]),
        ("샤드 3은 서울에 있다", ["샤드~3"]),
        ("Python 3.11, 10:30, 2024-05-06, worker 3/4, chunk 5ms, v2, the 5 best", []),
        ("no number at all", []),
    ],
)
def test_a_word_and_a_number_are_a_name(text: str, names: list[str]) -> None:
    assert numbered_names(text) == names

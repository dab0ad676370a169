"""Search tokens of English, Korean, code and everything else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon.text.tokens import TOKEN_CHARS_MAX, query_tokens, tokens


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Retries and retrying", ["retri", "and"]),
        ("getUserName", ["getusername", "get", "user", "name"]),
        ("get_user_name", ["get_user_name", "get", "user", "name"]),
        ("HTTPServerError", ["httpservererror", "http", "server", "error"]),
        ("src/app/auth.ts", ["src/app/auth.ts", "auth.ts", "src", "app", "auth", "ts"]),
        ("URLs APIs", ["url", "api"]),
        ("3.11.7 v2 10ms 1,000", ["3.11.7", "v2", "10ms", "1000"]),
        ("v1.2.3-rc1", ["v1.2.3-rc1", "v1.2.3", "rc1"]),
        ("key=value; std::vector", ["key", "valu", "std", "vector"]),
        ("C++ c#", ["c++", "c", "c#"]),
        ("에이전트OS를", ["에이전트", "에이", "이전", "전트", "os"]),
        ("설정에서는", ["설정", "정에", "에서", "서는"]),
        ("사용합니다", ["사용", "용합", "합니", "니다"]),
        ("값", ["값"]),
        ("결과", ["결과"]),
        ("“설정”을", ["설정", "을"]),
        ("日本語", ["日本", "本語"]),
        ("テスト", ["テス", "スト"]),
        ("café Привет हिन्दी", ["café", "привет", "हिन्दी"]),
        ("ok 👍🏽 👨‍👩‍👧 ❤️ 🇰🇷", ["ok", "👍🏽", "👨‍👩‍👧", "❤", "🇰🇷"]),
        ("", []),
        ("... -- !!", []),
    ],
)
def test_a_text_gives_these_tokens(text: str, found: list[str]) -> None:
    assert list(dict.fromkeys(tokens(text))) == found


@given(st.text() | st.text(alphabet="aB1_./-'가나 를OS", max_size=200))
def test_tokens_are_short_and_without_space_and_come_again_the_same(text: str) -> None:
    found = tokens(text)
    assert found == tokens(text)
    assert all(token and len(token) <= TOKEN_CHARS_MAX and not any(map(str.isspace, token)) for token in found)


@given(st.text(max_size=80))
def test_case_does_not_change_what_a_plain_word_gives(text: str) -> None:
    words = "".join(character if character.isascii() and character.isalpha() else " " for character in text)
    assert tokens(words.lower()) == tokens(words.title().lower())


@given(st.text(alphabet="ab 가나_.", max_size=300), st.integers(0, 20))
def test_the_limit_holds_and_keeps_the_beginning(text: str, limit: int) -> None:
    assert tokens(text, limit=limit) == tokens(text)[:limit]


@given(st.text(max_size=200), st.integers(0, 20))
def test_the_tokens_of_a_query_are_distinct_and_in_order(text: str, limit: int) -> None:
    assert query_tokens(text, limit=limit) == list(dict.fromkeys(tokens(text)))[:limit]


@pytest.mark.parametrize(
    ("asked", "stored"),
    [
        ("user name", "getUserName"),
        ("retry", "it retries"),
        ("설정", "설정을 바꾼다"),
        ("auth.ts", "see src/app/auth.ts"),
        ("재시도 정책", "재시도정책은"),
        ("OS", "에이전트OS를"),
    ],
)
def test_a_question_finds_the_word_in_another_form(asked: str, stored: str) -> None:
    assert set(query_tokens(asked)) & set(tokens(stored))


def test_a_word_without_end_is_cut_and_bounded() -> None:
    assert tokens("x" * 100_000) == ["x" * TOKEN_CHARS_MAX]
    assert len(tokens("가나다라" * 100_000)) == 5
    assert len(tokens("가 " * 100_000)) == 4096


def test_many_threads_get_what_one_gets() -> None:
    texts = [f"running{number} retries_{number} 설정{number}을 connections policies" for number in range(400)]
    alone = [tokens(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(tokens, [text + " x" for text in texts])) == [[*found, "x"] for found in alone]

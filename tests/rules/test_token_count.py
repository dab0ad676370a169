"""Token estimates: calibrated by script, and on the safe side."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemarch.text.prompt import estimated_tokens


# The true counts of three public tokenizers (cl100k, o200k, Claude 2) for the same texts, the largest of them.
@pytest.mark.parametrize(
    ("text", "largest"),
    [
        ("The connection pool is exhausted before the retry.", 9),
        ("결제 재시도는 최대 세 번까지만 한다", 20),
        ("def get_user_name(user_id: int) -> str:\n    return users[user_id].name\n", 26),
        ("2026-11-15T23:07:24Z ERROR [db-7] timeout after 30000 ms", 25),
        ("MemoryOrchestrator와 GraphStore를 초기화한다", 13),
    ],
)
def test_the_estimate_is_at_least_the_true_count_and_not_far_above_it(text, largest):
    assert largest <= estimated_tokens(text) <= 2.2 * largest


@given(st.text(max_size=200), st.text(max_size=200))
def test_more_text_never_costs_less(one, more):
    assert estimated_tokens(one + more) + 1 >= estimated_tokens(one)


@given(st.text(alphabet=st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3), min_size=1, max_size=100))
def test_korean_costs_more_than_a_token_a_syllable(text):
    assert estimated_tokens(text) > len(text)


def test_nothing_costs_nearly_nothing():
    assert estimated_tokens("") == 1

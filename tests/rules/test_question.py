"""A question as recall reads it: words and weights, whom and when it names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemarch.config import RecallRules
from mnemarch.recall.question import DEBUG, GENERAL, Date, Question
from mnemarch.text.tokens import query_tokens


def asked(text, **rules):
    return Question(text, RecallRules(**rules))


def test_a_question_weighs_its_telling_words_by_how_common_they_are():
    weights = asked("Where do checkout retries go?").weights
    assert 0 < weights["go"] < weights["checkout"] == 1.0
    alike = asked("Where do checkout retries go?", common=False).weights
    assert alike == {"checkout": 1.0, "retri": 1.0, "go": 1.0}


def test_the_words_of_a_frame_weigh_less_than_what_is_asked_for():
    weights = asked("How many times did we deploy the cache?", common=False).weights
    assert weights["deploy"] == weights["cach"] == 1.0
    assert 0 < weights["time"] < 1.0
    assert set(asked("How many times did we deploy?", frame=False, common=False).weights.values()) == {1.0}


def test_a_question_that_is_nothing_but_a_frame_keeps_its_words():
    assert asked("how many times in total", common=False).weights == {"mani": 1.0, "time": 1.0, "total": 1.0}


def test_a_word_beside_korean_weighs_what_a_korean_word_does():
    weights = asked("checkout 설정 v1.2").weights
    assert weights == {"checkout": 2.0, "^설": 1.0, "설정": 1.0, "v1.2": 2.0}


@pytest.mark.parametrize(
    ("text", "speakers"),
    [
        ("What did Mina buy?", {"mina"}),
        ("What is Mina's cat called?", {"mina"}),
        ('Did "Bora" call (Mina)?', {"bora", "mina"}),
        ("What did I buy?", {"user"}),
        ("Which of my plants died?", {"user"}),
        ("내가 산 책", {"user"}),
        ("What did you tell us?", {"assistant", "user"}),
        ("당신 생각은", {"assistant"}),
    ],
)
def test_a_question_means_whom_it_names_and_its_asker_and_its_answerer(text, speakers):
    people = {"mina", "bora", "user", "assistant"}
    assert asked(text).speakers & people == speakers
    assert asked(text, speakers=False).speakers == frozenset()


@pytest.mark.parametrize(("text", "speaker"), [("Mina’s cat", "mina"), ("미나는 어디 살아?", "미나")])
def test_a_question_means_whom_it_names_in_other_forms(text, speaker):
    assert speaker in asked(text).speakers


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("What broke on 7 May 2023?", [Date(2023, 5, 7)]),
        ("What broke in (May)?", []),
        ("What broke in May?", [Date(None, 5, None)]),
        ("5월에 뭐가 고장났지?", [Date(None, 5, None)]),
        ("2023년 배포", [Date(2023, None, None)]),
        ("checkout in 1999.", [Date(1999, None, None)]),
        ("checkout retries", []),
    ],
)
def test_a_question_names_these_dates(text, dates):
    assert list(asked(text).dates) == dates
    assert list(asked(text, dates=False).dates) == []


def test_a_question_has_an_intent_unless_it_is_switched_off():
    assert asked("Why does it crash?").intent is DEBUG
    assert asked("Why does it crash?", intent=False).intent is GENERAL


@given(st.text(max_size=300))
def test_any_text_is_a_question_with_the_words_of_its_text(text):
    question = asked(text)
    assert list(question.weights) == query_tokens(text)
    assert all(weight > 0 for weight in question.weights.values())


def test_a_question_without_end_is_read_from_its_beginning():
    text = "checkout " + "x" * 1_000_000 + " zebra in May 2023"
    question = asked(text)
    assert "checkout" in question.weights
    assert "zebra" not in question.weights
    assert list(question.dates) == []
    assert len(asked(" ".join(f"word{number}" for number in range(20_000))).weights) == 64

"""What a question is after, in English and Korean (M5)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.cases import cases
from mnemarch import Kind
from mnemarch.recall.question import DEBUG, GENERAL, KNOWLEDGE, PREFERENCE, PROFILE, RECALL, intent_of

ALL = (DEBUG, PREFERENCE, PROFILE, RECALL, KNOWLEDGE, GENERAL)


@pytest.mark.parametrize(("question", "intent"), cases("intent", "a question is after this"))
def test_a_question_is_after_this(question, intent):
    assert intent_of(question).name == intent


@pytest.mark.parametrize(
    "question",
    [
        *("in my namespace", "list a terror novel", "show docs", "candid ideas", "tell about metrics"),
        "the price, did it rise",
    ],
)
def test_a_sign_that_is_a_part_of_another_word_is_none(question):
    assert intent_of(question) is GENERAL


@given(st.text(max_size=300))
def test_any_text_has_an_intent_and_case_and_spaces_do_not_change_it(text):
    ascii_text = "".join(character for character in text if character.isascii())
    assert intent_of(text) in ALL
    assert intent_of(ascii_text.upper()) is intent_of(f"  {ascii_text}\n")


def test_an_intent_prefers_kinds_that_there_are_and_general_none():
    assert {kind for intent in ALL for kind in intent.kinds} <= set(map(str, Kind))
    assert GENERAL.kinds == frozenset()
    assert all(intent.kinds for intent in ALL[:-1])


def test_a_text_without_end_is_judged_by_its_beginning():
    assert intent_of("why " + "x " * 1_000_000 + "error") is KNOWLEDGE

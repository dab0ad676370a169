"""What a question is after, in English and Korean (M5)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemarch import Kind
from mnemarch.recall.question import DEBUG, GENERAL, KNOWLEDGE, PREFERENCE, PROFILE, RECALL, intent_of

ALL = (DEBUG, PREFERENCE, PROFILE, RECALL, KNOWLEDGE, GENERAL)


@pytest.mark.parametrize(
    ("question", "intent"),
    [
        ("Why does checkout crash on a timeout?", DEBUG),
        ("Traceback in the pool", DEBUG),
        ("the deploy is NOT  WORKING", DEBUG),
        ("결제 오류가 났어", DEBUG),
        ("로그인이 안 돼요", DEBUG),
        ("왜 테스트가 실패하지", DEBUG),
        ("Which editor do I prefer?", PREFERENCE),
        ("my favourite colour", PREFERENCE),
        ("선호하는 편집기가 뭐야", PREFERENCE),
        ("코드 스타일", PREFERENCE),
        ("Who am I?", PROFILE),
        ("what's my name", PROFILE),
        ("our tech stack", PROFILE),
        ("내 이름이 뭐지", PROFILE),
        ("기술 스택 알려줘", PROFILE),
        ("What did we do last time?", RECALL),
        ("when did we deploy", RECALL),
        ("지난번에 뭐라고 했지", RECALL),
        ("언제 배포했어", RECALL),
        ("무슨 일이 있었지", RECALL),
        ("How does checkout retry?", KNOWLEDGE),
        ("explain the gate", KNOWLEDGE),
        ("배포는 어떻게 하나요", KNOWLEDGE),
        ("큐와 스택의 차이", KNOWLEDGE),
        ("checkout retries", GENERAL),
        ("배포 설정", GENERAL),
        ("🚀", GENERAL),
        ("", GENERAL),
    ],
)
def test_a_question_is_after_this(question, intent):
    assert intent_of(question) is intent


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

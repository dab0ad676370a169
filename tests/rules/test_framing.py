"""The frame of a question: how it is asked, not what is asked for."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.cases import cases
from mnemarch.recall.question import frames, without_frame

PARTS = (
    "how many times days ago what is the name of kind did Mina mention last week two total you tell me retry cache 가"
)


def left_of(question):
    return " ".join(without_frame(question).split())


@pytest.mark.parametrize(("question", "left"), cases("framing", "a frame is taken away and the rest stays"))
def test_a_frame_is_taken_away_and_the_rest_stays(question, left):
    assert left_of(question) == left
    assert left_of(question.upper()) == left.upper()


@pytest.mark.parametrize(
    "question",
    [
        *("Where does Mina live?", "Checkout retries three times", "showed the sword"),
        *("Do the release notes mention the new port?", "however many", "an indifferent cat"),
        *("retry after 3 attempts", "the storytelling medium", "결제는 몇 번 재시도하나요?", ""),
    ],
)
def test_a_question_without_a_frame_stays_as_it_is(question):
    assert without_frame(question) == question


def test_a_question_may_be_nothing_but_a_frame():
    assert left_of("How many?") == "?"
    assert left_of("how many days ago") == ""


@given(st.text(max_size=200) | st.lists(st.sampled_from(PARTS.split())).map(" ".join))
def test_nothing_moves_and_nothing_is_added(question):
    left = without_frame(question)
    assert len(left) == len(question)
    assert all(after in (before, " ") for before, after in zip(question, left, strict=True))


@given(st.lists(st.sampled_from([part for part in PARTS.split() if part not in {"did", "is"}])).map(" ".join))
def test_words_that_are_in_no_frame_are_never_lost(question):
    left = without_frame(question).split()
    for word in ("retry", "cache", "가"):
        assert left.count(word) == question.split().count(word)


@pytest.mark.long
@pytest.mark.parametrize("frame", [frame for _, frame in frames()], ids=range(len(frames())))
@given(data=st.data())
def test_every_way_to_say_a_frame_is_known_by_its_signs(frame, data):
    pattern = re.compile(frame, re.ASCII)
    # A question is read in small letters: "do A say" is drawn as a name and read as an article, which begins no frame.
    ways = st.from_regex(pattern, fullmatch=True).filter(lambda way: pattern.fullmatch(way.lower()))
    said = data.draw(ways)
    assert without_frame(said) != said

"""Knowing when there is nothing: a floor under which an answer has no items."""

from __future__ import annotations

import pytest

import mnemarch
from mnemarch import Actor, EventType, InvalidInput, Scope
from mnemarch.config import RecallRules

FACTS = (
    "orders-api builds need JDK 21; anything older fails at the compile step.",
    "The nightly backup of the ledger database runs at 03:00 and takes forty minutes.",
    "Refunds above 500 euro wait for a second signature from finance.",
    "결제 서비스 배포는 화요일과 목요일 오후에만 한다.",
    "Search results are cached for ten minutes in Redis, keyed by tenant.",
)
KNOWN = ("when does the nightly backup of the ledger database run?", "결제 서비스 배포는 무슨 요일에 해?")
IN_OTHER_WORDS = ("which java for orders-api?", "how long is a search kept in the cache?", "who has to sign a refund?")
UNKNOWN = (
    "who won the chess tournament in Reykjavik last winter?",
    "점심에 먹을 만한 근처 식당 추천해줘",
    "thanks, go on!",
)


@pytest.fixture
def seat(tmp_path):
    with mnemarch.open(tmp_path) as memory:
        seat = memory.seat(Actor.agent("coder"), Scope(project="shop", task="t1"))
        for fact in FACTS:
            seat.remember(fact)
        yield seat


@pytest.mark.parametrize("question", [*KNOWN, *IN_OTHER_WORDS])
def test_a_floor_lets_through_what_answers(seat, question):
    everything, likely = ([item.unit.id for item in seat.recall(question, floor=floor).items] for floor in (0, "auto"))
    assert likely == everything != []


@pytest.mark.parametrize("question", UNKNOWN)
def test_a_question_that_nothing_answers_gets_no_item_and_is_no_open_question(seat, question):
    found = seat.recall(question, floor="auto")
    assert not found.items
    assert "likely to answer" in found.notes[0]
    assert not seat.context(question, floor="auto").text
    assert not [event for event in seat.events() if event.type is EventType.RECALLED]


def test_fit_tells_what_is_answered_from_what_is_not(seat):
    known, unknown = ([seat.recall(question).fit for question in asked] for asked in (KNOWN, UNKNOWN))
    assert 0 <= max(unknown) < RecallRules().floor < min(known) <= 1


@pytest.mark.parametrize("floor", [-0.1, 1.5, "high", None, True])
def test_a_floor_is_a_share_or_auto(seat, floor):
    with pytest.raises(InvalidInput, match="floor must be a number from 0 to 1"):
        seat.recall("backup", floor=floor)


@pytest.mark.parametrize(
    ("prompt", "fact"),
    [
        (
            "users still see a stale photo after we replaced it",
            "The CDN holds product images for 30 days, then purges them.",
        ),
        ("로그인이 자꾸 잠기는데 비밀번호를 몇 번 틀리면 그래?", "Six wrong passwords lock an account for 20 minutes."),
    ],
)
def test_a_prompt_is_shown_what_answers_it_in_other_words(seat, prompt, fact):
    seat.remember(fact)
    assert [item.unit.content for item in seat.context(prompt, floor="auto").items] == [fact]


def test_one_word_of_the_same_topic_finds_nothing(tmp_path):
    with mnemarch.open(tmp_path) as memory:
        seat = memory.seat(Actor.agent("coder"), Scope(project="shop", task="t1"))
        seat.remember("Seen in production.")
        assert not seat.recall("How many connections does the pool have?").items


def test_words_near_in_meaning_stand_for_a_word_that_nobody_wrote(seat):
    fact = "Undo keeps the last steps of an editing session in memory."
    seat.remember(fact)
    assert seat.recall("what puppy or kitten").items == ()
    seat.remember("A dog and a cat guard the server room.")
    assert [item.unit.content for item in seat.recall("what puppy or kitten").items] == [
        "A dog and a cat guard the server room."
    ]


def test_an_answer_without_a_floor_says_when_its_items_are_unlikely(seat):
    unlikely, likely = (seat.recall(question) for question in ("do we support Apple Pay", KNOWN[0]))
    assert unlikely.items
    assert unlikely.fit < RecallRules().floor
    assert "likely to answer" in unlikely.notes[0]
    assert not likely.notes


def test_a_prompt_is_shown_the_best_item_by_one_word_if_it_is_very_likely(seat):
    fact = "The waitlist is moved by a cron job."
    seat.remember(fact)
    for prompt, is_shown in (("how often does the waitlist run?", True), ("the waitlist is wrong", False)):
        assert [item.unit.content for item in seat.context(prompt, floor="auto").items] == [fact] * is_shown

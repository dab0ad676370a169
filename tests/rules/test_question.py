"""A question as recall reads it: words and weights, speakers, intent (M5), dates, and its frame."""

from __future__ import annotations

import re
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.cases import cases
from mnemarch import Kind
from mnemarch.config import RecallRules
from mnemarch.recall.question import INTENTS, Date, Question, dates_in, frames, intent_of, without_frame
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
    assert asked("Why does it crash?").intent.name == "DEBUG"
    assert asked("Why does it crash?", intent=False).intent.name == "GENERAL"


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


# Intent


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
    assert intent_of(question).name == "GENERAL"


@given(st.text(max_size=300))
def test_any_text_has_an_intent_and_case_and_spaces_do_not_change_it(text):
    ascii_text = "".join(character for character in text if character.isascii())
    assert intent_of(text) in INTENTS.values()
    assert intent_of(ascii_text.upper()) is intent_of(f"  {ascii_text}\n")


def test_an_intent_prefers_kinds_that_there_are_and_general_none():
    assert {kind for intent in INTENTS.values() for kind in intent.kinds} <= set(map(str, Kind))
    assert [name for name, intent in INTENTS.items() if not intent.kinds] == ["GENERAL"]


def test_a_text_without_end_is_judged_by_its_beginning():
    assert intent_of("why " + "x " * 1_000_000 + "error").name == "KNOWLEDGE"


# Dates

days = st.dates(date(1900, 1, 1), date(2099, 12, 31))
MONTHS = "January February March April May June July August September October November December"


@pytest.mark.parametrize(("text", "named"), cases("dates", "a date is read as far as it was said"))
def test_a_date_is_read_as_far_as_it_was_said(text, named):
    assert dates_in(text) == [Date(*named)]


def test_every_date_that_is_named_is_read():
    assert dates_in("between 3 May 2023 and 5 June") == [Date(2023, 5, 3), Date(None, 6, 5)]
    assert set(dates_in("2월 3일이나 2024년 5월, or in July")) == {
        Date(None, 2, 3),
        Date(2024, 5, None),
        Date(None, 7, None),
    }


@pytest.mark.parametrize(
    "text",
    [
        *("you may deploy", "May I deploy?", "we march on", "the march of progress", "a mar on the surface"),
        *("the mayor decides", "octopus and augment", "port 8080", "build 20230507", "the 1990s", "3 retries"),
        *("0월", "13월 5일", "2023-13-45", ""),
    ],
)
def test_what_only_looks_like_a_date_is_none(text):
    assert dates_in(text) == []


@pytest.mark.parametrize("text", ["Feb 30", "30 Feb 2023", "2023-02-30", "2월 30일", "May 0", "99 May", "2023.04.31"])
def test_a_day_that_no_month_has_fits_no_day(text):
    (named,) = dates_in(text)
    assert {named.fit(date(2023, 1, 1) + timedelta(days=number)) for number in range(366)} == {0.0}


@given(
    days,
    st.sampled_from(
        ["{0:%d} {1} {0.year}", "{1} {0.day}, {0.year}", "{0:%Y-%m-%d}", "{0.year}년 {0.month}월 {0.day}일"]
    ),
)
def test_a_date_that_is_written_fits_its_day(day, form):
    (named,) = dates_in(form.format(day, MONTHS.split()[day.month - 1]))
    assert named == Date(day.year, day.month, day.day)
    assert named.fit(day) == 1.0


@given(st.text(max_size=80) | st.text("0123456789-./월년일 may,of9", max_size=40), days)
def test_any_text_is_read_and_any_date_fits_or_does_not(text, day):
    for named in dates_in(text):
        assert named.fit(day) in (0.0, 0.5, 1.0)


@pytest.mark.parametrize(
    ("apart", "fit"), [(-3, 0.0), (-1, 1.0), (0, 1.0), (1, 1.0), (2, 0.5), (14, 0.5), (15, 0.0), (365, 0.0)]
)
def test_a_day_fits_on_it_and_half_for_a_fortnight_after_it(apart, fit):
    day = date(2023, 5, 7)
    assert Date(2023, 5, 7).fit(day + timedelta(days=apart)) == fit


@pytest.mark.parametrize(
    ("on", "fit"),
    [
        (date(2023, 4, 30), 0.0),
        (date(2023, 5, 1), 1.0),
        (date(2023, 5, 31), 1.0),
        (date(2023, 6, 30), 0.5),
        (date(2023, 7, 1), 0.0),
        (date(2024, 5, 7), 0.0),
    ],
)
def test_a_month_fits_in_it_and_half_in_the_next(on, fit):
    assert Date(2023, 5, None).fit(on) == fit


def test_december_goes_on_in_january_of_the_next_year():
    assert Date(2023, 12, None).fit(date(2024, 1, 20)) == 0.5
    assert Date(None, 12, None).fit(date(2024, 1, 20)) == 0.5
    assert Date(2023, 12, None).fit(date(2023, 1, 20)) == 0.0
    assert Date(2023, 12, 31).fit(date(2024, 1, 5)) == 0.5
    assert Date(None, 12, 31).fit(date(2024, 1, 5)) == 0.5
    assert Date(None, 1, 1).fit(date(2023, 12, 31)) == 1.0


def test_a_year_fits_in_it_alone():
    fits = [Date(2023, None, None).fit(date(year, 6, 1)) for year in (2022, 2023, 2024)]
    assert fits == [0.0, 1.0, 0.0]


@given(days)
def test_a_date_without_a_year_fits_in_every_year(day):
    assert Date(None, day.month, None).fit(day) == Date(None, day.month, day.day).fit(day) == 1.0


# Frames

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

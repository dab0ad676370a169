"""Dates in a question, and how well a day fits them."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.cases import cases
from mnemarch.recall.question import Date, dates_in

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

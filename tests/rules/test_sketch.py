"""What an index keeps of a unit: nothing of it is lost on the way there and back."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sketches import searchable, session_key, sketch

from mnemarch.model.search import Sketch, place
from mnemarch.testing import HOSTILE_NAMES
from mnemarch.text.conversation import sketched, speaker_of
from mnemarch.text.tokens import numbered_names, telling_tokens

FIELDS = [name for name in Sketch.__slots__ if name != "place"]
names = st.text(st.characters(exclude_characters="\x1f"), max_size=30) | st.sampled_from(HOSTILE_NAMES)
# As tokens are: without white space, and none begins with a colon.
words = st.text(min_size=1, max_size=12).map(lambda text: "".join(text.split()).lstrip(":")).filter(bool)
some_words = words | st.sampled_from(["a", "a:2", "2", "^가", "~a", "가나", "1:1", "a:", "b"])


units = st.builds(
    searchable,
    st.just("x"),
    names,
    session=st.none() | names.map(session_key),
    turn=st.integers(0, 10**9),
    scope_key=names,
    kind=names,
    occurred_at=st.integers(-(10**17), 10**17),
    importance=st.floats(0, 1),
)


@given(units, names, st.lists(some_words))
def test_a_sketch_is_the_same_after_it_was_stored(unit, speaker, found):
    before = Sketch(unit, speaker, found)
    after = Sketch.from_line(before.to_line())
    assert [getattr(after, name) for name in FIELDS] == [getattr(before, name) for name in FIELDS]
    assert after.place == before.place == place(unit.session or "", unit.turn)
    assert after.to_line() == before.to_line()


@given(st.text())
def test_a_separator_in_a_name_does_not_shift_what_comes_after_it(text):
    before = sketch("Mina: apples", id=f"\x1f{text}\x1f1\x1f", turn=7, kind="fact\x1f")
    after = Sketch.from_line(before.to_line())
    assert (after.turn, after.kind, after.speaker, after.words) == (7, "fact", "mina", before.words)


@given(st.lists(some_words), st.lists(some_words, max_size=5))
def test_every_word_is_counted_as_often_as_it_occurs(found, others):
    made = Sketch(searchable("x"), "", found)
    for word in [*found, *others]:
        assert made.count(f" {word} ") == found.count(word)
    assert dict(made.counted()) == Counter(found)
    assert made.length == len(found)


@given(st.text() | st.text("ab :가나1.", max_size=60))
def test_the_words_of_any_text_are_counted_and_come_back(text):
    found = [*telling_tokens(text), *numbered_names(text)]
    made = Sketch.from_line(sketched(searchable(text)).to_line())
    assert dict(made.counted()) == Counter(found)
    assert all(made.count(f" {word} ") == count for word, count in Counter(found).items())


def test_a_word_is_not_counted_inside_another_nor_in_a_number():
    made = sketch("retry retry retries poolside, 3 3")
    assert made.count(" pool ") == made.count(" 2 ") == made.count(" :2 ") == 0
    assert dict(made.counted()) == {"retri": 3, "poolsid": 1, "3": 2}


def test_what_has_no_session_has_no_session():
    assert sketch("apples").session == ""
    assert Sketch.from_line(sketch("apples").to_line()).session == ""


@pytest.mark.parametrize(
    ("text", "speaker"),
    [
        ("Mina: I moved to Busan", "mina"),
        ("MARY ANN: hello", "mary ann"),
        ("O'Brien-Lee Jr.: hello", "o'brien-lee jr."),
        ("미나: 부산으로 이사했어", "미나"),
        ("I moved: to Busan", "i moved"),
        ("Mina:no", ""),
        ("3: third", ""),
        ("Error: the pool is empty", ""),
        ("TODO: raise the limit", ""),
        ("http://a.example: x", ""),
        ("x" * 40 + ": too long for a name", ""),
        ("nobody says this", ""),
        (": nobody", ""),
        ("", ""),
    ],
)
def test_a_text_says_at_its_beginning_who_speaks(text, speaker):
    assert speaker_of(text) == sketch(text).speaker == speaker

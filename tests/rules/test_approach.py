"""The loop guard's question: was this approach tried before, in whatever words?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.cases import cases
from fixtures.steps import steps
from mnemarch.text.approach import SAME_AT, approach, lexemes, same_approach, senses, similarity, stem_of
from mnemarch.text.cache import forget_texts
from mnemarch.text.words import entries, listed

SAME = cases("approach", "same")
DIFFERENT = cases("approach", "different")
# The rule of numbers: an amount or a version is no difference; which one it is, and zero, are.
SAME_IDEA_OTHER_VALUE = cases("approach", "same idea other value")
OTHER_NUMBER = cases("approach", "other number")
FRAMES = ["Let me try to {}", "I will now {}", "Fix: {}", "OK, so I'll just {}!", "Maybe we should {}.", "다시 한번 {}"]
PLANS = [plan for pair in SAME[:16] + DIFFERENT[:20] for plan in pair if plan.isascii()]
WORDS = (
    "raise lower add remove not don't without the of to before after from pool size cache a.py foo_bar getUser 50 0 #3"
    " port again run test, because I'll so that 늘린다 줄인다 캐시를 않는다 없이 크기 API를 . ; ! \n 👍 漢字 é"
    " --no-cache"
)
TEXTS = st.lists(st.sampled_from(WORDS.split(" ")), max_size=12).map(" ".join) | st.text(max_size=40)


def same(left: str, right: str) -> bool:
    return same_approach(approach(left), approach(right))


@pytest.mark.parametrize(("left", "right"), [*SAME, *SAME_IDEA_OTHER_VALUE])
def test_other_words_or_another_value_are_the_same_approach(left, right):
    assert same(left, right)


@pytest.mark.parametrize(("left", "right"), [*DIFFERENT, *OTHER_NUMBER])
def test_an_opposite_another_thing_action_or_number_that_says_which_one_is_another_approach(left, right):
    assert not same(left, right)


@pytest.mark.parametrize("text", ["", " ", "\n\t "])
def test_an_empty_text_matches_nothing_not_even_itself(text):
    assert similarity(approach(text), approach(text)) == 0.0
    assert not same(text, "raise the pool size")


@given(TEXTS, TEXTS)
def test_similarity_is_symmetric_and_between_0_and_1(left, right):
    ours, theirs = approach(left), approach(right)
    assert similarity(ours, theirs) == pytest.approx(similarity(theirs, ours))
    assert same_approach(ours, theirs) == same_approach(theirs, ours)
    assert 0.0 <= similarity(ours, theirs) <= 1.0


@given(TEXTS.filter(str.strip))
def test_a_plan_is_the_same_as_itself(text):
    assert similarity(approach(text), approach(text)) == pytest.approx(1.0)


@given(TEXTS)
def test_equal_texts_give_equal_values_that_can_be_kept_in_a_set(text):
    first = approach(text)
    forget_texts()
    assert {first} == {approach(text)}


@pytest.mark.parametrize("frame", FRAMES)
@given(plan=st.sampled_from(PLANS))
def test_a_frame_says_nothing(frame, plan):
    assert same(plan, frame.format(plan))


@given(plan=st.sampled_from(PLANS), data=st.data())
def test_case_of_the_first_letter_and_punctuation_say_nothing(plan, data):
    changed = plan[0].upper() + plan[1:] + data.draw(st.sampled_from([".", "!", "...", ";", " ?", ""]))
    assert similarity(approach(plan), approach(changed)) == pytest.approx(1.0)


@given(st.sampled_from(PLANS), st.sampled_from(PLANS))
def test_the_order_of_sentences_says_nothing(first, second):
    assert same(f"{first}. {second}.", f"{second}. {first}.")


@pytest.mark.parametrize(
    "thing", ["cache the avatars", "run the exporter", "trust the proxy", "mock the mailer", "retry"]
)
@pytest.mark.parametrize("no", ["don't", "do not", "never", "must not"])
def test_a_negation_makes_another_approach(no, thing):
    assert not same(thing, f"{no} {thing}")
    assert same(f"{no} {thing}", f"I will {no} {thing}")


@pytest.mark.parametrize(
    ("verb", "opposite"),
    [
        ("raise", "lower"),
        ("add", "remove"),
        ("enable", "disable"),
        ("allow", "forbid"),
        ("show", "hide"),
        ("lock", "unlock"),
    ],
)
@given(
    thing=st.sampled_from(["the audit trail", "foo_bar in src/a.py", "the quota of the search service", "재시도 로그"])
)
def test_an_opposite_verb_makes_another_approach_whatever_the_thing(verb, opposite, thing):
    assert same(f"{verb} {thing}", f"{verb} {thing}")
    assert not same(f"{verb} {thing}", f"{opposite} {thing}")


@pytest.mark.parametrize(("left", "right"), SAME[:5] + SAME[17:20])
def test_a_synonym_scores_far_above_an_unrelated_plan(left, right):
    assert similarity(approach(left), approach(right)) > SAME_AT
    assert similarity(approach(left), approach("translate the footer into Finnish")) < 0.1


def work(text: str) -> int:
    """How many lines of the approach modules run for reading a text and comparing it with itself."""

    def compared():
        read = approach(text)
        assert similarity(read, read) == pytest.approx(1.0)

    return steps(compared, of="approach")


LONG = [
    *("word{} ", "of ", "not ", "before x{} ", "again ", "않는다 ", "rename {} to ", "재시도{}를 ", "foo_{}.bar, "),
    *("a. ", "a", "1"),
]


@pytest.mark.parametrize("unit", LONG)
def test_ten_times_the_text_takes_about_ten_times_the_steps(unit):
    short, long = ["".join(unit.format(at) for at in range(size))[:size] for size in (1_000, 10_000)]
    assert work(long) <= 14 * work(short) + 1000


@pytest.mark.long
@pytest.mark.parametrize("unit", LONG)
def test_a_text_of_a_hundred_kilobytes_is_read(unit):
    text = "".join(unit.format(at) for at in range(100_000))[:100_000]
    assert same(text, text)
    assert not same(text, "raise the pool size")


def test_no_word_is_listed_in_two_groups():
    seen: dict[str, str] = {}
    for line in [line for section in ("actions", "qualities", "things") for line in entries("approaches", section)]:
        name, _, listed = line.partition(":")
        for word in listed.replace("|", " ").replace("~", "").split():
            assert seen.setdefault(word, name) == name, word
    assert len(seen) > 100


def test_words_of_a_frame_are_in_no_group():
    frames = listed("approaches", "frames")
    assert len(frames) > 50
    assert [word for word in frames if word in senses() or stem_of(word) in senses()] == []


def test_lexemes_keep_names_apart_from_words():
    found = list(lexemes("set fooBar in src/a.py to 50%, API를 늘린다"))
    assert found == [
        ("set", "word", False),
        ("foo", "word", True),
        ("bar", "word", True),
        ("in", "word", False),
        ("src", "word", True),
        ("a", "word", True),
        ("py", "word", True),
        ("to", "word", False),
        ("50%", "number", False),
        (",", "comma", False),
        ("api", "word", False),
        ("늘린다", "hangul", False),
    ]

"""Which statements oppose each other (R6): the pairs that no rule was tuned on, and what must always hold."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.cases import cases
from mnemarch.text.canonical import canonical_key
from mnemarch.text.opposition import breaks, change_of, ended, opposes
from mnemarch.text.statements import compared, statement, topic_key
from mnemarch.text.words import Patterns, listed
from mnemarch.units.finding import is_reworded

PAIRS = Path(__file__).parent.parent / "fixtures" / "statements.txt"
WORDS = (
    "The API uses Redis is not stored in `a_b` from 3 to 30s now no longer instead of port 8080 every Monday switched"
    " replaced with 세션은 에서 로 대신 더 이상 Postgres에 저장한다 하지 않는다 쓴다 이다 5번 것 수 있다"
)
REPLACED = {name: it for name, it in Patterns("relations", "phrases").sources.items() if name.isascii()}
STATEMENTS = st.lists(st.sampled_from(WORDS.split(" ")), max_size=12).map(" ".join) | st.text(max_size=40)


def test_r12_statements_in_two_languages_are_told_apart():
    pairs = pairs_in(PAIRS.with_stem("statements_across"))
    flagged = {label: sum(bool(opposes(b, a)) and bool(opposes(a, b)) for a, b in pairs[label]) for label in pairs}
    assert flagged["opposing"] >= 34
    assert flagged["compatible"] == 0


@pytest.mark.parametrize(("a", "b"), cases("opposition", "two tries"))
def test_two_tries_are_two_events(a, b):
    assert opposes(a, b) is None
    assert opposes("The timeout is 30 s", "The timeout is 60 s") is not None


def pairs_in(path: Path) -> dict[str, list[tuple[str, str]]]:
    pairs: dict[str, list[tuple[str, str]]] = {}
    label = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            label = line.strip("[]")
        elif line and not line.startswith("#"):
            _, first, second = line.split("\t")
            pairs.setdefault(label, []).append((first, second))
    return pairs


def held_out() -> dict[str, list[tuple[str, str]]]:
    every = pairs_in(PAIRS).items()
    return {label: [pair for pair in pairs if zlib.crc32("\t".join(pair).encode()) % 2] for label, pairs in every}


def test_r6_the_pairs_of_the_other_half_are_told_apart():
    pairs = held_out()
    assert len(pairs["opposing"]) + len(pairs["compatible"]) > 100
    flagged = {
        label: sum(bool(opposes(a, b) or ended(a, b)) for a, b in of_label) / len(of_label)
        for label, of_label in pairs.items()
    }
    assert flagged["opposing"] >= 0.95
    assert flagged["compatible"] <= 0.03
    assert not [(a, b) for a, b in pairs["opposing"] if canonical_key(a) == canonical_key(b)]


def test_r6_what_is_worded_differently_is_found_without_false_alarms():
    pairs = pairs_in(PAIRS.with_name("statements_worded.txt"))
    flagged = {label: [pair for pair in pairs[label] if opposes(*pair) or ended(*pair)] for label in pairs}
    assert len(flagged["opposing"]) >= 0.68 * len(pairs["opposing"])
    assert flagged["compatible"] == []


@pytest.mark.parametrize(("left", "right"), cases("opposition", "two ways"))
def test_r6_two_ways_to_choose_do_or_call_one_thing_are_a_conflict(left, right):
    assert topic_key(left) == topic_key(right)
    assert opposes(left, right)


@pytest.mark.parametrize(("left", "right"), cases("opposition", "other words"))
def test_r6_statements_in_other_or_more_words_are_compared(left, right):
    assert opposes(left, right)


@pytest.mark.parametrize(("left", "right"), cases("opposition", "narrower") + cases("opposition", "two things"))
def test_r6_an_exception_a_narrower_case_two_ways_to_say_it_and_two_things_are_no_conflict(left, right):
    assert opposes(left, right) is None


@pytest.mark.parametrize(("older", "newer"), cases("opposition", "changes"))
def test_r6_an_announced_change_ends_what_it_changed(older, newer):
    assert ended(older, newer).kind == "change"
    assert ended(newer, older) is None
    assert ended("Invoices are printed at night", newer) is None


@pytest.mark.parametrize(("known", "newer"), cases("opposition", "other changes"))
def test_r6_a_change_of_another_thing_ends_nothing(known, newer):
    assert change_of(newer).about
    assert ended(known, newer) is None


@pytest.mark.parametrize(("left", "right", "reason", "subject", "values"), cases("opposition", "shown"))
def test_values_are_shown_as_names_and_what_is_common_stays_in_the_subject(left, right, reason, subject, values):
    assert opposes(left, right).reason == reason
    assert compared([left, right]) == (subject, tuple(values))


@pytest.mark.parametrize("name", [*REPLACED, "aside"])
@given(data=st.data())
def test_an_english_phrase_or_aside_has_one_of_the_signs_by_which_it_is_looked_for(name, data):
    source = {**REPLACED, **Patterns("relations", "asides").sources}[name]
    text = data.draw(st.from_regex(source, alphabet=st.characters(min_codepoint=32, max_codepoint=126))).lower()
    signs = listed("relations", "aside signs" if name == "aside" else "phrase signs")
    assert any(sign.replace("_", " ") in text for sign in signs)


@given(STATEMENTS, STATEMENTS)
def test_an_opposition_is_the_same_from_either_side(left, right):
    ours, theirs = opposes(left, right), opposes(right, left)
    assert (ours is None) == (theirs is None)
    assert ours is None or (ours.kind, ours.left, ours.right) == (theirs.kind, theirs.right, theirs.left)


@given(STATEMENTS)
def test_nothing_opposes_or_ends_itself(text):
    assert opposes(text, text) is None
    assert ended(text, text) is None
    assert change_of(text) is None or statement(text)


@pytest.mark.parametrize(("text", "rule", "is_broken"), cases("opposition", "rules"))
def test_r12_a_rule_is_broken_by_a_wider_or_a_narrower_statement(text, rule, is_broken):
    assert bool(breaks(text, rule)) is is_broken
    assert bool(breaks(rule, text)) is is_broken


@pytest.mark.parametrize(("left", "right"), cases("opposition", "series") + cases("opposition", "one end"))
def test_r6_names_of_two_kinds_things_of_a_series_and_announcements_of_one_end_go_together(left, right):
    assert (opposes(left, right), ended(left, right), ended(right, left)) == (None, None, None)
    assert not is_reworded(left, right)


@pytest.mark.parametrize("noun", ["Fact", "Shard", "Row", "Widget", "Server", "Node", "Gate", "Milestone"])
@pytest.mark.parametrize("said", ["stands alone", "is slow", "builds the image", "has a printer", "was skipped"])
def test_r6_things_with_different_numbers_do_not_dispute(noun, said):
    assert opposes(f"{noun} 3 {said}", f"{noun} 4 {said}") is None


def test_r12_a_rule_is_broken_by_nothing_that_is_compatible():
    assert not [pair for pair in held_out()["compatible"] if breaks(*pair)]

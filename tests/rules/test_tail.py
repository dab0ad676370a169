"""The tail: what is newer than the index, found by its words within scopes, states, kinds and domains."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sketches import searchable, session_key

from mnemarch.model.search import place
from mnemarch.recall.index import Tail
from mnemarch.text.tokens import telling_tokens

HERE = ["here"]
TEXTS = ["apple", "apple pear", "pear pear plum", "plum apple apple", "quince"]


def tail_of(*units):
    tail = Tail()
    for unit in units:
        tail.add(unit)
    return tail


def found(tail, *words, scopes=("here",), states=("draft",), limit=10, **within):
    weights = dict.fromkeys(words, 1.0)
    return [sketch.id for _, sketch in tail.best(weights, 4.0, scopes, states=states, limit=limit, **within)]


def test_what_has_the_words_is_found_best_first_and_ties_by_id():
    units = [searchable(text, f"u-{number}") for number, text in enumerate([*TEXTS, "apple pear"])]
    for tail in (tail_of(*units), tail_of(*units[::-1])):
        assert found(tail, "appl", "pear") == ["u-1", "u-5", "u-2", "u-3", "u-0"]
        assert found(tail, "quinc") == ["u-4"]
        assert found(tail, "zeppelin") == []
        assert len(found(tail, "appl", limit=2)) == 2


@pytest.mark.parametrize(
    ("field", "named", "within"),
    [
        ("scope_key", "there", {"scopes": ["there"]}),
        ("state", "trusted", {"states": ["trusted"]}),
        ("kind", "skill", {"kinds": ["skill"]}),
        ("domain", "fruit", {"domains": ["fruit"]}),
    ],
)
def test_only_what_is_within_is_found(field, named, within):
    tail = tail_of(searchable("apple", "a"), searchable("apple", "b", **{field: named}))
    assert found(tail, "appl", **within) == ["b"]
    assert found(tail, "appl", **{name: ["nowhere"] for name in within}) == []
    assert found(tail, "appl", scopes=["here", "there"], states=["draft", "trusted"]) == ["a", "b"]


def test_only_what_is_within_stands_at_a_place():
    key = session_key("s-1")
    tail = tail_of(
        searchable("apple", "a", session=key, turn=1),
        searchable("pear", "b", session=key, turn=2, scope_key="there"),
        searchable("plum", "c", session=key, turn=3, state="past"),
        searchable("quince", "d"),
    )
    places = [place(key, turn) for turn in range(5)]
    assert [each.id for each in tail.at(places, ["here"], states=["draft"])] == ["a"]
    assert [each.id for each in tail.at(places, ["here", "there"], states=["draft", "past"])] == ["a", "b", "c"]
    assert tail.at([place(session_key("s-2"), 1)], ["here"], states=["draft"]) == []


def test_a_unit_that_changed_takes_the_place_of_what_it_was():
    key = session_key("s-1")
    tail = tail_of(
        searchable("apple", "a", session=key, turn=1, changed_at=1),
        searchable("apple", "b", changed_at=2),
        searchable("apple", "a", session=key, turn=1, state="past", changed_at=3),
    )
    assert found(tail, "appl") == ["b"]
    assert found(tail, "appl", states=["past"]) == ["a"]
    assert [each.state for each in tail.at([place(key, 1)], ["here"], states=["draft", "past"])] == ["past"]
    assert (len(tail), tail.position, tail.frequency("appl", HERE), tail.total_length) == (2, 3, 2, 2)


def test_a_unit_that_was_erased_is_known_and_not_found():
    tail = tail_of(searchable("apple", "a"), searchable("", "a", state="past", changed_at=9))
    assert "a" in tail
    assert found(tail, "appl", states=["draft", "past"]) == []
    assert (tail.position, tail.frequency("appl", HERE), tail.total_length) == (9, 0, 0)
    assert tail.words_from("ap", HERE, 5) == []


def test_the_words_that_begin_so_come_in_order_and_no_more_than_asked_for():
    tail = tail_of(*(searchable(f"orchid orchard{number}", f"u-{number}") for number in range(9)))
    assert tail.words_from("orch", HERE, 3) == ["orchard0", "orchard1", "orchard2"]
    assert tail.words_from("orchi", HERE, 3) == ["orchid"]
    assert tail.words_from("x", HERE, 3) == []


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from([*TEXTS, ""])), max_size=12))
def test_counts_always_match_the_current_content(story):
    tail = tail_of(*(searchable(text, id, changed_at=number) for number, (id, text) in enumerate(story)))
    now = [telling_tokens(text) for text in dict(story).values()]
    seen = Counter(word for words in now for word in set(words))
    assert all(tail.frequency(word, HERE) == seen[word] for word in ("appl", "pear", "plum", "quinc"))
    assert tail.total_length == sum(map(len, now))
    assert sorted(found(tail, "appl")) == sorted(id for id, text in dict(story).items() if "apple" in text)

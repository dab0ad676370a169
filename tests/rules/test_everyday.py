"""Words of software work that people use for one another."""

from __future__ import annotations

import pytest

from fixtures.cases import cases
from mnemarch.text.everyday import near, weight_of, widened
from mnemarch.text.tokens import query_tokens
from mnemarch.text.words import entries


def wider(text):
    return widened(text, dict.fromkeys(query_tokens(text), 1.0))


@pytest.mark.parametrize(("asked", "written"), cases("everyday", "a question is widened by the words that others use"))
def test_a_question_is_widened_by_the_words_that_others_use(asked, written):
    # A mark of how a Korean word begins is asked for by nobody: too many words begin alike.
    assert {token for token in query_tokens(written) if token[0] != "^"} <= set(wider(asked))


def test_a_wider_word_weighs_less_than_what_was_asked_for_itself():
    assert wider("java database deploy")
    assert all(weight < 1.0 for _, weight in wider("java database deploy").values())
    assert {asked for asked, _ in wider("java database deploy").values()} <= {"java", "databas", "deploy"}


def test_what_was_asked_for_itself_is_not_widened_to_again():
    assert not set(wider("java jdk jvm")) & set(query_tokens("java jdk jvm"))


def test_half_of_a_phrase_widens_nothing():
    assert "pr" not in wider("pull the cable")


def test_a_phrase_of_words_that_are_everywhere_has_to_be_there_as_it_is():
    assert "malfunct" in wider("the button is not working")
    assert "malfunct" not in wider("who is working on the button")


def test_of_korean_words_the_longest_is_meant():
    assert "login" in wider("로그인 오류")
    assert "기록" not in wider("로그인 오류")
    assert "기록" in wider("로그 보는 방법")
    assert "languag" not in wider("언제 해?")


def test_who_asks_for_a_kind_of_thing_may_mean_any_and_who_names_one_means_it():
    assert {"dermatolog", "dentist"} <= set(wider("how many doctors did I see?"))
    assert "dentist" not in wider("when did I see the dermatologist?")


def test_a_word_of_the_same_topic_weighs_less_than_a_word_for_the_same_thing():
    of_cache = wider("is the cache stale?")
    assert 0 < of_cache["ttl"][1] < of_cache["캐싱"][1]


def test_a_word_that_is_said_all_the_time_tells_less_than_one_that_is_rare_everywhere():
    assert weight_of("still") < weight_of("wrong") < weight_of("certif") < weight_of("kubernet") == 1.0
    assert weight_of("어디") < weight_of("배포") == 1.0


def test_other_words_widen_nothing():
    assert wider("Mina likes Busan") == {}
    assert wider("") == {}


def test_every_group_has_two_words_at_least_and_none_twice():
    groups = [line.split() for part in ("groups", "kinds", "topics") for line in entries("everyday", part)]
    assert len(groups) > 100
    for group in groups:
        assert len(group) == len(set(group)), group
        assert len({tuple(query_tokens(word.replace("_", " "))) for word in group}) > 1, group


def test_a_word_has_others_near_in_meaning_that_weigh_less_than_words_for_the_same_thing():
    assert "imag" in near("photo")
    assert all(0 < share < 0.6 for share in near("photo").values())
    assert not near("no-such-word")

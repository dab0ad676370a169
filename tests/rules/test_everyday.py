"""Words of software work that people use for one another."""

from __future__ import annotations

import pytest

from mnemarch.text.everyday import widened
from mnemarch.text.tokens import query_tokens
from mnemarch.text.words import entries


def wider(text):
    return widened(text, dict.fromkeys(query_tokens(text), 1.0))


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ("which java version?", "JDK"),
        ("how do I upgrade k8s", "Kubernetes"),
        ("where is the db", "database"),
        ("디비 비밀번호", "데이터베이스"),
        ("배포는 언제 해?", "deploy"),
        ("retrying payments", "재시도"),
        ("who merged my PR", "request"),
        ("open a pull request", "PR"),
    ],
)
def test_a_question_is_widened_by_the_words_that_others_use(asked, written):
    assert set(query_tokens(written)) <= set(wider(asked))


def test_a_wider_word_weighs_less_than_what_was_asked_for_itself():
    assert wider("java database deploy")
    assert all(weight < 1.0 for weight in wider("java database deploy").values())


def test_what_was_asked_for_itself_is_not_widened_to_again():
    assert not set(wider("java jdk jvm")) & set(query_tokens("java jdk jvm"))


def test_half_of_a_phrase_widens_nothing():
    assert "pr" not in wider("pull the cable")


def test_other_words_widen_nothing():
    assert wider("Mina likes Busan") == {}
    assert wider("") == {}


def test_every_group_has_two_words_at_least_and_none_twice():
    groups = [line.split() for line in entries("everyday", "groups")]
    assert len(groups) > 100
    for group in groups:
        assert len(group) == len(set(group)), group
        assert len({tuple(query_tokens(word.replace("_", " "))) for word in group}) > 1, group

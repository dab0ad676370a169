"""What kind of turn a text is, and what that is worth to a question."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sketches import said

from mnemarch.config import RecallRules
from mnemarch.recall.question import Question
from mnemarch.recall.scores import Term, judged
from mnemarch.text.conversation import AMOUNT, ASKS, COURTESY, EVENT, LONG, PERSONAL, TIME, signs_of


@pytest.mark.parametrize(
    ("text", "signs"),
    [
        ("Hey Mel! How have you been?", ASKS),
        ("Where did the lamp go?", ASKS),
        ("어디에 배포했어?", ASKS),
        ("Thanks!", COURTESY),
        ("감사합니다!", COURTESY),
        ("", COURTESY),
        ("I went to the market yesterday with two friends", PERSONAL + EVENT + AMOUNT + TIME),
        ("우리는 어제 서버 3대를 옮겼습니다 그래서 지금은 조용하다", PERSONAL + EVENT + AMOUNT + TIME),
        ("The API retries every failing call slowly", ""),
        ("The API retried 3 times. Is that right?", ASKS + EVENT + AMOUNT),
        (" ".join(["word"] * 20), LONG),
    ],
)
def test_a_turn_has_the_signs_of_its_kind(text, signs):
    assert signs_of(text) == "".join(sorted(signs))


def test_the_name_of_the_speaker_says_nothing_about_the_turn():
    assert signs_of("I: the build takes a long time", "i") == signs_of("the build takes a long time")


@given(st.text())
def test_any_text_has_signs_and_each_at_most_once(text):
    signs = signs_of(text)
    assert len(set(signs)) == len(signs)
    assert set(signs) <= {ASKS, COURTESY, PERSONAL, EVENT, AMOUNT, TIME, LONG}


def order(query, *texts, coherence=1.0, **rules):
    """The texts by how well they answer, each standing alone in a conversation of its own."""
    settings = RecallRules(sessions=False, neighbours=coherence > 0, **rules)
    question = Question(query, settings)
    terms = [Term([word], weight, 2.0) for word, weight in question.weights.items()]
    turns = [said(text, session=str(number))[0] for number, text in enumerate(texts)]
    found = judged(question, terms, turns, [], coherence=coherence, own_session=None, rules=settings)
    ranked = sorted(found, key=lambda each: -each.total)
    return [texts[int(each.sketch.session.strip('[]"').rpartition('"')[2])] for each in ranked]


QUESTION, STATEMENT = "Did the deploy of orders finish?", "We watched the deploy of orders finish"


def test_in_a_conversation_a_statement_comes_before_the_question_that_has_its_words():
    assert order("deploy orders finish", QUESTION, STATEMENT) == [STATEMENT, QUESTION]


def test_among_unrelated_statements_the_kind_of_turn_counts_for_nothing():
    texts = [QUESTION, STATEMENT]
    assert order("deploy orders finish", *texts, coherence=0.0) == order(
        "deploy orders finish", *texts, coherence=0.0, turns=False
    )


@pytest.mark.parametrize(
    ("query", "first", "second"),
    [
        ("When was the cluster moved?", "the cluster was moved last week", "the cluster was moved by somebody"),
        ("How many times did the cluster fail?", "the cluster failed 3 times", "the cluster failed some times"),
        ("What did I say about the cluster?", "user: the cluster is fine", "assistant: the cluster is fine"),
        ("Remind me what you said about the cluster", "assistant: the cluster is fine", "user: the cluster is fine"),
        ("내가 클러스터를 뭐라고 했지?", "user: 클러스터는 괜찮다", "assistant: 클러스터는 괜찮다"),
    ],
)
def test_what_a_question_asks_for_lifts_the_turns_that_can_answer_it(query, first, second):
    assert order(query, second, first)[0] == first


def test_a_question_after_what_a_user_tells_is_no_sign_against_it():
    stated = "user: I moved the cluster to Frankfurt last week. A name for it comes next."
    asking = stated.replace("next.", "next?")
    assert order("Where did I move the cluster?", stated, asking)[0] == asking
    assert order("Where did she move the cluster?", asking, stated)[0] == stated


def test_the_first_turn_of_a_session_comes_before_a_later_one_that_says_the_same():
    rules = RecallRules(sessions=False)
    question = Question("cluster", rules)
    turns = [*said("the cluster is fine", session="late", start=2), *said("the cluster is fine", session="first")]
    found = judged(question, [Term(["cluster"], 1.0, 2.0)], turns, [], coherence=1.0, own_session=None, rules=rules)
    totals = {each.sketch.id: each.total for each in found}
    assert totals["first.1"] > totals["late.2"]

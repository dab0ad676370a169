"""How likely an answer is: what speaks for it raises the number, and a larger memory lowers it."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from mnemarch.recall.scores import Term, fit_of

SHARE = st.floats(0, 1)
COSINE = st.floats(-1, 1)


def fit(covered, strength, *, words=4, documents=1_000, cosine=None, noise=0.2):
    best = SimpleNamespace(score=1.0, covered=covered, strength=strength)
    terms = [Term(["word"], 1.0, 1.0)] * words
    return fit_of([best], terms, documents, {} if cosine is None else {"u1": cosine}, noise)


@given(SHARE, SHARE, SHARE, SHARE)
def test_more_of_the_question_said_more_strongly_is_likelier(one, other, strength, stronger):
    (one, other), (strength, stronger) = sorted((one, other)), sorted((strength, stronger))
    assert 0 <= fit(one, strength) <= fit(other, stronger) <= 1


@given(SHARE, SHARE, st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_larger_memory_says_more_by_chance(covered, strength, few, many):
    few, many = sorted((few, many))
    assert fit(covered, strength, documents=few) >= fit(covered, strength, documents=many)


@given(SHARE, SHARE, COSINE, SHARE)
def test_meaning_speaks_for_an_answer_only_above_its_noise(covered, strength, cosine, noise):
    by_words = fit(covered, strength)
    with_meaning = fit(covered, strength, cosine=cosine, noise=noise)
    assert (with_meaning >= by_words) if cosine >= noise else (with_meaning <= by_words)


def test_nothing_answers_a_question_without_words_or_candidates():
    assert fit(1.0, 1.0, words=0) == fit_of([], [Term(["word"], 1.0, 1.0)], 10, {}, 0.2) == 0.0

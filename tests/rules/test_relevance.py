"""How candidates are scored and ordered, and how likely one of them answers."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import combinations
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sketches import said, session_key, sketch

from mnemarch import InvalidInput
from mnemarch.config import RecallRules, config_from
from mnemarch.model.stamps import micros
from mnemarch.recall.question import Question
from mnemarch.recall.scores import HOPS, SELF_CONTAINED, Term, fit_of, judged, reciprocal_ranks

FILLER = " ".join(f"filler{number}" for number in range(SELF_CONTAINED + 1))
MAY = micros(datetime(2023, 5, 7, tzinfo=UTC))


def judgements(query, found, around=(), *, coherence=0.0, own_session=None, meanings=None, **rules):
    """What is said of each candidate, every word of the question being equally rare."""
    question = Question(query, RecallRules(**rules))
    terms = [Term([word], weight, 2.0) for word, weight in question.weights.items()]
    options = {"coherence": coherence, "own_session": own_session, "meanings": meanings or {}, "noise": 0.2}
    results = judged(question, terms, found, list(around), rules=RecallRules(**rules), **options)
    assert len({result.sketch.id for result in results}) == len(results)
    return {result.sketch.id: result for result in results}


def totals(*args, **options):
    return {id: result.total for id, result in judgements(*args, **options).items()}


# Own words


def test_what_shares_no_word_with_the_question_is_no_answer():
    found = judgements("checkout retries", [sketch("The checkout retries", "a"), sketch("Berlin is big", "b")])
    assert set(found) == {"a"}
    assert found["a"].shares == {"lexical": pytest.approx(1.0)}


def test_more_words_of_the_question_are_a_better_answer():
    found = totals("checkout retries slowly", [sketch("checkout", "a"), sketch("retries of checkout", "b")])
    assert found["b"] == pytest.approx(1.0)
    assert 0 < found["a"] < found["b"]


def test_a_rare_word_tells_more_than_a_common_one():
    question = Question("checkout pool", RecallRules())
    terms = [Term(["checkout"], 1.0, 0.5), Term(["pool"], 1.0, 4.0)]
    found = [sketch("checkout", "a"), sketch("pool", "b")]
    first, second = judged(question, terms, found, [], coherence=0.0, own_session=None, rules=RecallRules())
    assert first.total < second.total == 1.0


def test_a_word_said_again_tells_more_but_less_each_time():
    once, twice, often = (
        totals("apple pear", [sketch(text, "a"), sketch("apple pear plum grape", "z")])["a"]
        for text in ("apple one two three", "apple apple two three", "apple apple apple three")
    )
    assert once < twice < often
    assert often - twice < twice - once


def test_a_short_text_says_it_better_than_a_long_one():
    found = totals("apple", [sketch("apple", "a"), sketch(f"apple {FILLER}", "b")])
    assert found["b"] < found["a"]


def test_a_term_is_found_by_each_word_that_stands_for_it():
    question = Question("authentification", RecallRules())
    terms = [Term(["authent", "author"], 0.7, 2.0)]
    found = [sketch("authentication", "a"), sketch("author", "b"), sketch("auth", "c")]
    results = judged(question, terms, found, [], coherence=0.0, own_session=None, rules=RecallRules())
    assert {result.sketch.id for result in results} == {"a", "b"}


def test_with_nothing_to_judge_nothing_is_found():
    assert judgements("apple", []) == {}
    assert judgements("", [sketch("apple")]) == {}


# Neighbours


ASKED, ANSWER, LATER = said("Bora: where did you buy that lamp?", "Mina: at the flea market", "Bora: great")


def test_the_answer_beside_the_question_is_lifted_where_neighbours_say_something():
    found = judgements(
        "Where was the lamp bought?", [ASKED], [ANSWER], coherence=1.0, sessions=False, speakers=False, turns=False
    )
    assert set(found) == {ASKED.id, ANSWER.id}
    assert list(found[ANSWER.id].shares) == ["neighbours", "coverage"]
    assert found[ASKED.id].shares["lexical"] == pytest.approx(1.0)
    assert 0 < found[ANSWER.id].total < found[ASKED.id].total


@pytest.mark.parametrize("options", [{"coherence": 0.0}, {"coherence": 1.0, "neighbours": False}], ids=str)
def test_the_answer_beside_the_question_is_not_lifted_where_they_say_nothing(options):
    found = judgements("Where was the lamp bought?", [ASKED], [ANSWER], speakers=False, **options)
    assert set(found) == {ASKED.id}
    assert list(found[ASKED.id].shares) == ["lexical"]


def test_neighbours_say_more_the_more_the_order_says():
    lifts = [
        judgements("lamp", [ASKED], [ANSWER], coherence=coherence, sessions=False)[ANSWER.id].neighbours
        for coherence in (0.1, 0.5, 1.0)
    ]
    assert 0 < lifts[0] < lifts[1] < lifts[2]


def test_the_share_of_the_neighbours_is_what_they_say_and_not_the_text_itself():
    found = judgements("lamp", [ASKED], [ANSWER], coherence=1.0, sessions=False, speakers=False, turns=False)
    assert list(found[ASKED.id].shares) == ["lexical", "coverage"]


def test_the_nearer_neighbour_is_lifted_more():
    found = totals("lamp", [ASKED], [ANSWER, LATER], coherence=1.0, sessions=False)
    assert found[LATER.id] < found[ANSWER.id]


def test_a_neighbour_is_near_by_words_and_not_only_by_turns():
    short, long = (
        judgements("lamp", turns[:1], turns[1:], coherence=1.0, sessions=False)["s-1.3"].neighbours
        for turns in (said("lamp", "yes", "cat"), said("lamp", " ".join(FILLER.split()[:30]), "cat"))
    )
    assert long < short


def test_neighbours_reach_no_further_than_their_hops():
    turns = said("lamp", *(f"word{number}" for number in range(HOPS + 1)))
    found = judgements("lamp", turns[:1], turns[1:], coherence=1.0, sessions=False)
    assert set(found) == {f"s-1.{turn}" for turn in range(1, HOPS + 2)}


def test_what_stands_between_must_be_known():
    first, _, third = said("lamp", "secret", "cat")
    assert set(judgements("lamp", [first], [third], coherence=1.0, sessions=False)) == {first.id}


def test_the_turns_of_other_sessions_are_no_neighbours():
    others = said("nothing here", "nor here", session="s-2")
    found = judgements("lamp", [ASKED], others, coherence=1.0)
    assert set(found) == {ASKED.id}


def test_what_has_no_session_has_no_neighbours():
    found = judgements("lamp", [sketch("lamp", "a", turn=1)], [sketch("cat", "b", turn=2)], coherence=1.0)
    assert set(found) == {"a"}


def test_a_long_text_leans_on_nobody_and_is_reached_by_nobody():
    asked, long = said("lamp", FILLER)
    assert set(judgements("lamp", [asked], [long], coherence=1.0, sessions=False)) == {asked.id}
    asked, long = said("lamp", f"lamp {FILLER}")
    found = judgements("lamp", [asked, long], coherence=1.0, sessions=False)
    assert found[long.id].neighbours == 0.0
    assert found[long.id].lexical > 0


def test_without_neighbours_a_text_is_judged_as_if_there_were_none_to_have():
    lone = said("lamp and cat")
    near, far = (judgements("lamp", lone, coherence=coherence, sessions=False, turns=False) for coherence in (1.0, 0.0))
    assert far["s-1.1"].shares == {"lexical": pytest.approx(1.0)}
    assert near["s-1.1"].shares == far["s-1.1"].shares | {"coverage": pytest.approx(near["s-1.1"].total - 1.0)}


# Sessions


def test_a_session_that_says_more_to_the_question_lifts_its_turns():
    much = said("lamp one", *["plain word"] * HOPS, "lamp two", *["plain word"] * HOPS, "lamp three", session="much")
    little = said("lamp one", session="little")
    found = [turn for turn in (*much, *little) if "lamp" in turn.words]
    on = judgements("lamp", found, coherence=1.0)
    assert on["much.1"].session > on["little.1"].session > 0
    assert on["much.1"].total > on["little.1"].total
    for options in ({"coherence": 1.0, "sessions": False}, {"coherence": 0.0}):
        off = judgements("lamp", found, **options)
        assert off["much.1"].session == off["little.1"].session == 0.0
        assert off["much.1"].total == pytest.approx(off["little.1"].total)


# What is added


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("What did Mina buy at the market?", "Mina: the market"),
        ("What was Mina's market?", "Mina: the market"),
        ("What did Mary Ann buy at the market?", "Mary Ann: the market"),
        ("What did I buy at the market?", "user: the market"),
        ("What did you say of the market?", "assistant: the market"),
    ],
)
def test_whom_the_question_means_is_heard_first(query, text):
    named, other = sketch(text, "a"), sketch("Bora: the market", "b")
    found = judgements(query, [named, other])
    assert set(found["a"].bonuses) == {"speaker"}
    assert found["b"].bonuses == {}
    assert judgements(query, [named, other], speakers=False)["a"].bonuses == {}


def test_what_happened_on_the_date_comes_first_and_just_after_it_second():
    query = "deploy on 7 May 2023"
    found = [
        sketch("deploy", id, occurred_at=MAY + days * 86_400_000_000)
        for id, days in zip("abc", (0, 5, 99), strict=True)
    ]
    bonuses = {id: result.bonuses.get("date", 0.0) for id, result in judgements(query, found).items()}
    assert bonuses["a"] == 2 * bonuses["b"] > bonuses["c"] == 0.0
    assert all(not result.bonuses for result in judgements(query, found, dates=False).values())


def test_the_best_of_several_dates_counts():
    found = [sketch("deploy", "a", occurred_at=MAY)]
    once = judgements("deploy in May 2023", found)["a"].bonuses
    assert judgements("deploy in July 2021 or in May 2023", found)["a"].bonuses == once != {}


def test_the_session_that_asks_comes_first():
    (mine,), (other,) = said("lamp", session="mine"), said("lamp", session="other")
    found = judgements("lamp", [mine, other], own_session=session_key("mine"))
    assert set(found["mine.1"].bonuses) == {"own_session"}
    assert found["other.1"].bonuses == {}
    assert found["mine.1"].total > found["other.1"].total


def test_a_unit_without_a_session_is_not_of_the_asking_session():
    assert judgements("lamp", [sketch("lamp", "a")], own_session=None)["a"].bonuses == {}


def test_the_kinds_that_the_intent_prefers_come_first():
    preferred, other = sketch("tabs", "a", kind="preference"), sketch("tabs", "b", kind="fact")
    found = judgements("Which tabs do I prefer?", [preferred, other])
    assert set(found["a"].bonuses) == {"intent"}
    assert found["b"].bonuses == {}
    assert judgements("Which tabs do I prefer?", [preferred, other], intent=False)["a"].bonuses == {}


def test_a_bonus_is_only_for_what_answers():
    found = judgements("lamp in May 2023", [sketch("Mina: cat", "a", occurred_at=MAY)], speakers=True)
    assert found == {}


# Ranks instead of weights


def test_ranks_take_the_place_of_weights():
    texts = ["apple", "apple pear", "apple apple pear pear", "plum"]
    found = [sketch(text, f"u-{number}") for number, text in enumerate(texts)]
    weighted, ranked = (totals("apple pear", found, fusion=fusion) for fusion in ("weighted", "rrf"))
    assert sorted(weighted, key=weighted.get) == sorted(ranked, key=ranked.get) == ["u-0", "u-1", "u-2"]
    assert ranked["u-2"] == pytest.approx(1.0)
    assert ranked["u-1"] == pytest.approx(61 / 62)
    assert ranked["u-0"] == pytest.approx(61 / 63)


# What always holds


turns = st.lists(
    st.tuples(
        st.sampled_from(["s-1", "s-2", None]),
        st.integers(1, 9),
        st.sampled_from(["lamp", "market lamp", "cat", "Mina: lamp lamp", "Bora: cat dog", "dog", FILLER]),
        st.booleans(),
        st.sampled_from([0, 3, 99]),
    ),
    unique_by=lambda turn: turn[:2],
    max_size=18,
)
options = st.fixed_dictionaries(
    {
        "coherence": st.sampled_from([0.0, 0.3, 1.0]),
        "own_session": st.sampled_from([None, session_key("s-1")]),
        "fusion": st.sampled_from(["weighted", "rrf"]),
        "sessions": st.booleans(),
        "neighbours": st.booleans(),
    }
)
QUERY = "What did Mina say in May 2023 about the lamp and the dog?"


def candidates(given):
    """Sketches of turns: those to judge, and those around them."""
    found, around = [], []
    for number, (session, turn, text, is_found, days) in enumerate(given):
        key = None if session is None else session_key(session)
        made = sketch(
            text, f"u-{number}", session=key, turn=turn if session else 0, occurred_at=MAY + days * 86_400_000_000
        )
        (found if is_found else around).append(made)
    return found, around


@given(turns, options)
def test_the_shares_add_up_to_the_total_and_none_is_negative_or_nothing(given, chosen):
    for result in judgements(QUERY, *candidates(given), **chosen).values():
        assert sum(result.shares.values()) == pytest.approx(result.total)
        assert all(share > 0 for share in result.shares.values())


@given(turns, options)
def test_the_best_by_words_is_one(given, chosen):
    found = judgements(QUERY, *candidates(given), **chosen).values()
    if found:
        assert max(result.total - sum(result.bonuses.values()) for result in found) == pytest.approx(1.0)


@given(turns, options, st.randoms(use_true_random=False))
def test_the_order_of_the_candidates_does_not_matter(given, chosen, chance):
    found, around = candidates(given)
    before = totals(QUERY, found, around, **chosen)
    assert totals(QUERY, found, around, **chosen) == before
    chance.shuffle(found)
    chance.shuffle(around)
    assert totals(QUERY, found, around, **chosen) == pytest.approx(before)


@given(turns, options)
def test_whoever_is_judged_was_a_candidate_or_stands_around_one(given, chosen):
    found, around = candidates(given)
    assert set(judgements(QUERY, found, around, **chosen)) <= {each.id for each in (*found, *around)}


@pytest.mark.parametrize(("query", "first"), [("결제가 실패하면?", "korean"), ("what if it declines?", "english")])
def test_of_texts_as_near_in_meaning_that_in_the_language_of_the_question_comes_first(query, first):
    found = [sketch("송장은 두 번 보낸다", "korean"), sketch("An invoice is sent twice", "english")]
    results = totals(query, found, meanings={"korean": 0.5, "english": 0.5})
    assert max(results, key=results.get) == first
    assert len(set(results.values())) == 2


def test_beside_a_model_few_words_of_the_question_weigh_little_and_all_of_them_much():
    query = "checkout retries payment slowly"
    found = [sketch("checkout", "few"), sketch(query, "all"), sketch("a till is slow", "none")]
    results = totals(query, found, meanings={"few": 0.35, "all": 0.35, "none": 0.45})
    assert sorted(results, key=results.get, reverse=True) == ["all", "none", "few"]


# Reciprocal ranks

signals = st.lists(st.floats(0, 1e6) | st.sampled_from([0.0, 1.0, 2.0]), max_size=30)


def test_the_first_rank_is_worth_a_little_more_than_the_second():
    assert reciprocal_ranks([0.5, 9.0, 0.1]) == [1 / 62, 1 / 61, 1 / 63]


def test_equal_values_share_a_rank_and_the_next_takes_the_next():
    assert reciprocal_ranks([3.0, 1.0, 3.0, 2.0]) == [1 / 61, 1 / 63, 1 / 61, 1 / 62]


def test_what_a_signal_says_nothing_of_gets_nothing():
    assert reciprocal_ranks([0.0, 5.0, 0.0]) == [0.0, 1 / 61, 0.0]
    assert reciprocal_ranks([0.0]) == [0.0]
    assert reciprocal_ranks([]) == []


@given(signals)
def test_ranks_keep_the_order_of_the_values(values):
    ranks = reciprocal_ranks(values)
    assert len(ranks) == len(values)
    for (left, left_rank), (right, right_rank) in combinations(zip(values, ranks, strict=True), 2):
        assert (left < right) == (left_rank < right_rank)
        assert (left == right) == (left_rank == right_rank)


@given(st.lists(st.integers(0, 1_000), max_size=30), st.integers(-9, 9))
def test_only_the_order_counts_and_not_the_size(values, power):
    assert reciprocal_ranks([value * 2.0**power for value in values]) == reciprocal_ranks(values)


@given(st.permutations(range(8)))
def test_the_order_of_the_values_does_not_matter(order):
    values = [0.0, 3.0, 1.0, 1.0, 7.0, 0.0, 2.0, 3.0]
    ranks = reciprocal_ranks(values)
    assert reciprocal_ranks([values[at] for at in order]) == pytest.approx([ranks[at] for at in order])


def test_ranks_and_weights_can_be_chosen():
    assert config_from({}).recall.fusion == "weighted"
    assert config_from({"recall": {"fusion": "rrf"}}).recall.fusion == "rrf"


def test_another_way_of_fusion_is_refused():
    with pytest.raises(InvalidInput):
        config_from({"recall": {"fusion": "borda"}})


# The likelihood of an answer

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

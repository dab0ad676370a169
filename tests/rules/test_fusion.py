"""Reciprocal ranks: the other way from several signals to one order."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemarch import InvalidInput
from mnemarch.config import config_from
from mnemarch.recall.scores import reciprocal_ranks

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
def test_the_order_of_the_candidates_does_not_matter(order):
    values = [0.0, 3.0, 1.0, 1.0, 7.0, 0.0, 2.0, 3.0]
    ranks = reciprocal_ranks(values)
    assert reciprocal_ranks([values[at] for at in order]) == pytest.approx([ranks[at] for at in order])


def test_ranks_and_weights_can_be_chosen():
    assert config_from({}).recall.fusion == "weighted"
    assert config_from({"recall": {"fusion": "rrf"}}).recall.fusion == "rrf"


def test_another_way_of_fusion_is_refused():
    with pytest.raises(InvalidInput):
        config_from({"recall": {"fusion": "borda"}})

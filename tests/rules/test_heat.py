"""Heat: rank, recency and the spread of feedback against numbers worked out by hand, and the settings of A31."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemarch.config import config_from
from mnemarch.errors import InvalidInput
from mnemarch.policy.heat import (
    CheckpointConfig,
    GraphConfig,
    OrchestratorConfig,
    PromotionConfig,
    graph_settings,
    rank,
    recency,
    score,
    spread,
    worth,
)

TANH_OF_A_FIFTH = 0.19737532022490401
TANH_OF_ONE = 0.76159415595576485


def near(expected):
    return pytest.approx(expected, abs=1e-15)


# A22


@pytest.mark.parametrize(
    ("age_min", "expected"), [(0, 1.0), (240, 0.5), (480, 0.25), (720, 0.125), (120, 0.70710678118654752), (-30, 1.0)]
)
def test_a22_recency_halves_with_every_half_life_and_the_future_is_now(age_min, expected):
    assert recency(age_min, 240) == near(expected)


@pytest.mark.parametrize(
    ("age_min", "repeat", "feedback", "expected"),
    [
        (0, 0, 0, 0.5),
        (0, 1, 0, 0.5 + 0.3 * TANH_OF_A_FIFTH),
        (0, 5, 0, 0.5 + 0.3 * TANH_OF_ONE),
        (0, 0, 5, 0.5 + 0.2 * TANH_OF_ONE),
        (0, 0, -5, 0.5 - 0.2 * TANH_OF_ONE),
        (240, 5, 5, 0.25 + 0.5 * TANH_OF_ONE),
        (480, 1, -1, 0.125 + 0.1 * TANH_OF_A_FIFTH),
    ],
)
def test_a22_rank_is_half_recency_three_tenths_repeat_and_two_tenths_feedback(age_min, repeat, feedback, expected):
    assert rank(age_min, 240, repeat, feedback) == near(expected)
    assert worth(repeat, feedback) == near(expected - 0.5 * 0.5 ** (age_min / 240))


def test_a22_a_rank_stays_between_its_bounds_however_much_is_repeated():
    assert rank(0, 240, 1e9, 1e9) == near(1.0)
    assert rank(1e12, 240, 0, -1e9) == near(-0.2)


def test_r15_a_search_scores_seven_tenths_similarity_and_three_tenths_rank():
    assert score(1.0, 1.0) == near(1.0)
    assert score(0.8, 0.5) == near(0.71)
    assert score(0.0, 0.5) == near(0.15)


# R15


def web(*edges):
    """Who is next to whom, either way."""

    def neighbours(node):
        return [(b if a == node else a, weight) for a, b, weight in edges if node in (a, b)]

    return neighbours


def test_r15_each_hop_multiplies_by_the_weight_and_a_half_for_two_hops():
    chain = web(("a", "b", 0.8), ("b", "c", 0.9), ("c", "d", 1.0))
    assert spread("a", 1.0, chain) == {"b": near(0.4), "c": near(0.18)}
    assert spread("a", -1.0, chain) == {"b": near(-0.4), "c": near(-0.18)}
    assert spread("a", -0.5, chain) == {"b": near(-0.2), "c": near(-0.09)}
    assert spread("d", 1.0, chain) == {"c": near(0.5), "b": near(0.225)}


def test_r15_spreading_stops_below_a_twentieth():
    assert spread("a", 1.0, web(("a", "b", 0.1))) == {"b": near(0.05)}
    assert spread("a", 1.0, web(("a", "b", 0.0999))) == {}
    assert spread("a", -0.5, web(("a", "b", 0.8), ("b", "c", 0.49))) == {"b": near(-0.2)}
    assert spread("a", -0.5, web(("a", "b", 0.8), ("b", "c", 0.5))) == {"b": near(-0.2), "c": near(-0.05)}


def test_r15_what_is_too_weak_for_one_hop_may_come_by_two():
    assert spread("a", 1.0, web(("a", "c", 0.09), ("a", "b", 1.0), ("b", "c", 1.0))) == {"b": 0.5, "c": 0.25}


def test_r15_a_cycle_gives_each_node_its_share_once_and_the_origin_nothing():
    triangle = web(("a", "b", 0.8), ("b", "c", 1.0), ("c", "a", 0.2))
    assert spread("a", 1.0, triangle) == {"b": near(0.4), "c": near(0.1)}, (
        "the shortest way, though another is stronger"
    )


def test_r15_of_equally_short_ways_the_strongest_counts():
    diamond = web(("a", "b", 1.0), ("a", "c", 0.4), ("b", "d", 0.5), ("c", "d", 1.0))
    assert spread("a", 1.0, diamond) == {"b": 0.5, "c": near(0.2), "d": near(0.125)}


def test_r15_an_edge_that_grew_beyond_one_passes_on_no_more_than_a_half():
    assert spread("a", 1.0, web(("a", "b", 7.0), ("b", "c", 3.5))) == {"b": 0.5, "c": 0.25}


NAMES = st.sampled_from("abcdefg")


@given(st.lists(st.tuples(NAMES, NAMES, st.floats(0.01, 5)), max_size=20), st.sampled_from([1.0, -1.0, -0.5]))
def test_r15_nothing_spreads_further_or_stronger_than_it_may(edges, delta):
    edges = [(a, b, weight) for a, b, weight in edges if a != b]
    neighbours = web(*edges)
    found = spread("a", delta, neighbours)
    one = {other for other, _ in neighbours("a")}
    two = {other for node in one for other, _ in neighbours(node)}
    assert set(found) <= (one | two) - {"a"}
    for node, share in found.items():
        assert 0.05 <= abs(share) <= abs(delta) / 2
        assert (share < 0) == (delta < 0)
        if node not in one:
            assert abs(share) <= abs(delta) / 4


# A31


def test_a31_the_defaults_are_those_of_the_table():
    config = OrchestratorConfig()
    assert config.session_graph == GraphConfig(
        max_nodes=1000,
        max_edges=4000,
        half_life_min=240,
        tau_dup=0.96,
        tau_sim=0.75,
        protect_min_degree=3,
        enable_inverted_index=False,
    )
    assert config.agent_graph == GraphConfig(
        max_nodes=1000,
        max_edges=12000,
        half_life_min=1440,
        tau_dup=0.96,
        tau_sim=0.78,
        protect_min_degree=4,
        enable_inverted_index=True,
    )
    assert (config.promotion.min_rank, config.promotion.max_promotions, config.promotion.min_degree) == (0.55, 20, 2)
    checkpoint = config.checkpoint
    assert (checkpoint.out_dir, checkpoint.top_k, checkpoint.pretty) == ("./.agentos/checkpoints", 30, True)
    assert config.search_bias_session_first == 0.05
    assert config.session_graph == GraphConfig(), "a lone graph is configured as a session's"
    assert config.session_graph.decay_every_min == config.agent_graph.decay_every_min == 0


NONSENSE = [None, "3", float("nan"), float("inf"), True, [], 10**400]


WRONG = {
    (GraphConfig, "max_nodes"): (1, 0, -1, 2.5, None, "9", True),
    (GraphConfig, "max_edges"): (0, -1, 2.5, None, "9", True),
    (GraphConfig, "half_life_min"): (0, -1, *NONSENSE),
    (GraphConfig, "tau_dup"): (-0.1, 1.1, *NONSENSE),
    (GraphConfig, "tau_sim"): (-0.1, 1.01, *NONSENSE),
    (GraphConfig, "protect_min_degree"): (0, -1, 2.5, None, "9"),
    (GraphConfig, "similar_max"): (-1, 2.5, None, "9"),
    (GraphConfig, "decay_every_min"): (-1, *NONSENSE),
    (GraphConfig, "enable_inverted_index"): (1, None, "yes"),
    (PromotionConfig, "min_rank"): NONSENSE,
    (PromotionConfig, "max_promotions"): (-1, 2.5, None),
    (PromotionConfig, "min_degree"): (-1, 2.5, None),
    (PromotionConfig, "carry_weights"): (1,),
    (CheckpointConfig, "out_dir"): ("", "  ", None, 5),
    (CheckpointConfig, "top_k"): (0, -1, 2.5, None),
    (CheckpointConfig, "pretty"): ("yes",),
    (OrchestratorConfig, "search_bias_session_first"): (-0.1, *NONSENSE),
    (OrchestratorConfig, "session_graph"): (None, {"max_nodes": 9}),
    (OrchestratorConfig, "agent_graph"): (None, {"max_nodes": 9}),
    (OrchestratorConfig, "promotion"): (None, {"min_rank": 0.2}),
    (OrchestratorConfig, "checkpoint"): (None, {"top_k": 2}),
}


@pytest.mark.parametrize(("kind", "name"), WRONG)
def test_a_wrong_setting_is_refused_and_the_hint_says_what_to_do(kind, name):
    for wrong in WRONG[kind, name]:
        with pytest.raises(InvalidInput, match=name) as refused:
            kind(**{name: wrong})
        assert refused.value.hint, wrong


def test_a_table_changes_what_it_names_and_nothing_else():
    table = {
        "session": {"max_nodes": 50, "decay_every_min": 30},
        "agent": {"tau_sim": 0.9},
        "promotion": {"min_rank": 0.2},
        "checkpoint": {"out_dir": "kept"},
        "search_bias_session_first": 0,
    }
    config = graph_settings(table)
    assert config == OrchestratorConfig(
        session_graph=GraphConfig(max_nodes=50, decay_every_min=30),
        agent_graph=GraphConfig(
            max_edges=12000, half_life_min=1440, tau_sim=0.9, protect_min_degree=4, enable_inverted_index=True
        ),
        promotion=PromotionConfig(min_rank=0.2),
        checkpoint=CheckpointConfig(out_dir="kept"),
        search_bias_session_first=0,
    )
    assert config_from({"graph": table}).graph == config
    assert config_from({}).graph is None
    assert graph_settings({}) == OrchestratorConfig()


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ({"sesion": {}}, "graph.sesion"),
        ({"session": {"max_node": 5}}, "graph.session.max_node"),
        ({"agent": 5}, "graph.agent"),
        ({"promotion": {"min_rank": "high"}}, "min_rank"),
        ({"search_bias_session_first": "much"}, "search_bias_session_first"),
        ({"session": {"tau_dup": "0.9"}}, "tau_dup"),
    ],
)
def test_what_a_table_misspells_is_refused_by_name(table, named):
    with pytest.raises(InvalidInput, match=named) as refused:
        config_from({"graph": table})
    assert refused.value.hint

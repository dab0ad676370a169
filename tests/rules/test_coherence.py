"""Whether the order of a conversation says anything, measured on a bounded sample of it."""

from __future__ import annotations

import gc
import json
from random import Random
from types import FunctionType, ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sketches import conversation, session_key, sketch, talk

from mnemarch.model.search import Sketch
from mnemarch.text.conversation import Coherence, project_key, project_of, weight_of

SHOP, BANK = project_key("acme", "shop"), project_key("acme", "bank")


def noted(sketches, coherence=None):
    coherence = coherence or Coherence()
    for each in sketches:
        coherence.note(each)
    return coherence


def shuffled(contents, seed=0):
    mixed = list(contents)
    Random(seed).shuffle(mixed)
    return mixed


def weight(sketches, project=SHOP):
    return weight_of(noted(sketches).sums().get(project))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("turns", [80, 300, 3_000])
def test_neighbours_in_a_conversation_may_speak_for_each_other(turns, seed):
    assert weight(conversation(talk(turns, seed))) >= 0.9


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("turns", [300, 3_000])
def test_neighbours_in_a_shuffled_conversation_may_not(turns, seed):
    assert weight(conversation(shuffled(talk(turns, seed)))) <= 0.2


def unrelated(count, words, seed):
    chance = Random(seed)
    return [" ".join(f"word{chance.randrange(words)}" for _ in range(6)) for _ in range(count)]


@pytest.mark.parametrize("words", [60, 300, 2_000])
def test_a_list_of_unrelated_statements_has_no_coherence(words):
    weights = [weight(conversation(unrelated(300, words, seed), seed=seed)) for seed in range(30)]
    assert sum(each > 0.2 for each in weights) <= 2


def test_a_list_of_unrelated_statements_has_little_coherence_also_when_its_words_change():
    weights = []
    for seed in range(8):
        old, new = unrelated(300, 200, seed), unrelated(2_000, 200, seed)
        weights.append(weight(conversation([*old, *(text.replace("word", "other") for text in new)])))
    assert sum(weights) / len(weights) <= 0.4


def test_fewer_than_fifty_pairs_say_nothing():
    whole = conversation(talk(60), session_turns=60)
    assert noted(whole[:40]).sums()[SHOP][2] == 39
    assert weight(whole[:40]) == 0.0
    assert weight(whole) > 0.9


def test_nothing_known_weighs_nothing():
    assert weight_of(None) == 0.0
    assert weight_of((0.0, 0.0, 0)) == 0.0
    assert weight_of((0.0, 0.0, 1_000)) == 0.0
    assert noted([]).sums() == {}


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e6), st.integers(50, 512))
def test_the_weight_grows_with_what_neighbours_share_more_than_strangers(near, more, far, pairs):
    assert 0.0 <= weight_of((near, far, pairs)) <= weight_of((near + more, far, pairs)) <= 1.0
    assert weight_of((min(near, far), far, pairs)) == 0.0
    assert weight_of((10 * far + pairs, far, pairs)) == 1.0
    assert weight_of((near, far, 49)) == 0.0


def test_turns_that_do_not_follow_each_other_are_no_pair():
    whole = conversation(talk(200), session_turns=200)
    assert noted(whole[::2]).sums()[SHOP][2] == 0
    sessions = [
        sketch(text, f"u-{number}", session=session_key(f"s-{number}"), turn=1) for number, text in enumerate(talk(99))
    ]
    assert weight(sessions) == 0.0


def test_sessions_that_run_at_the_same_time_are_kept_apart():
    left, right = conversation(talk(150, 1), seed=1), conversation(talk(150, 2), seed=2)
    mixed = [each for pair in zip(left, right, strict=True) for each in pair]
    assert weight(mixed) >= 0.9


def test_what_has_no_session_or_no_words_says_nothing():
    assert noted([sketch(text, f"u-{number}") for number, text in enumerate(talk(99))]).sums() == {}
    silent = [sketch("...", f"u-{number}", session=session_key("s"), turn=number) for number in range(99)]
    assert noted(silent).sums() == {}


def test_projects_are_kept_apart():
    real = conversation(talk(300), "shop")
    noise = conversation(shuffled(talk(300, 1)), "bank")
    mixed = [each for pair in zip(real, noise, strict=True) for each in pair]
    sums = noted(mixed).sums()
    assert set(sums) == {SHOP, BANK}
    assert weight_of(sums[SHOP]) >= 0.9
    assert weight_of(sums[BANK]) <= 0.2
    assert sums[SHOP] == noted(real).sums()[SHOP]


@pytest.mark.parametrize("turns", [200, 1_000])
@pytest.mark.parametrize("order", [list, shuffled])
def test_two_halves_added_are_about_the_whole(turns, order):
    whole = conversation(order(talk(turns)), session_turns=turns // 4)
    first = noted(whole[: turns // 2]).sums()
    both = noted(whole[turns // 2 :]).sums(json.loads(json.dumps(first)))
    at_once = noted(whole).sums()
    assert weight_of(both[SHOP]) == pytest.approx(weight_of(at_once[SHOP]), abs=0.1)
    if turns == 200:
        assert both[SHOP] == pytest.approx(at_once[SHOP], rel=0.25)


def test_adding_leaves_what_is_known_as_it_was_and_other_projects_alone():
    known = {BANK: (3.0, 1.0, 60)}
    added = noted(conversation(talk(100))).sums(known)
    assert known == {BANK: (3.0, 1.0, 60)}
    assert added[BANK] == (3.0, 1.0, 60)
    assert SHOP in added


def test_what_is_long_past_counts_less_and_less():
    sums = noted(conversation(shuffled(talk(3_000)))).sums()
    assert weight_of(sums[SHOP]) <= 0.2
    for number in range(1, 7):
        sums = noted(conversation(talk(500, number), seed=number)).sums(sums)
    assert weight_of(sums[SHOP]) >= 0.8


def test_the_sample_is_the_same_for_the_same_conversation():
    assert noted(conversation(talk(3_000))).sums() == noted(conversation(talk(3_000))).sums()


def kept(whole):
    """How many sketches something holds, directly or not."""
    seen, waiting = {}, [whole]
    while waiting:
        each = waiting.pop()
        if id(each) not in seen and not isinstance(each, type | ModuleType | FunctionType):
            seen[id(each)] = each
            waiting += gc.get_referents(each)
    return sum(isinstance(each, Sketch) for each in seen.values())


@pytest.mark.parametrize("session_turns", [1, 2, 1_000])
def test_what_is_kept_of_a_conversation_without_end_is_bounded(session_turns):
    coherence = Coherence()
    for start in range(0, 3_000, 1_000):
        noted(conversation(talk(1_000), seed=start, session_turns=session_turns), coherence)
    assert 0 < kept(coherence) <= 2_000
    assert coherence.sums().get(SHOP, (0, 0, 0))[2] <= 512


def test_the_project_of_a_session_is_found_whatever_it_is_called():
    for name in ("shop", 'a"b', "[]", "가게", "a\\b", None):
        assert project_of(session_key("s", name)) == project_key("acme", name)
    assert project_key("a", "b") != project_key("b", "a") != project_key("a", None)

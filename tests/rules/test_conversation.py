"""A text as a turn of a conversation: its kind, its sketch, and whether the order of turns says anything."""

from __future__ import annotations

import gc
import json
from collections import Counter
from random import Random
from types import FunctionType, ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sketches import conversation, said, searchable, session_key, sketch, talk

from mnemarch.config import RecallRules
from mnemarch.model.search import Sketch, place
from mnemarch.recall.question import Question
from mnemarch.recall.scores import Term, judged
from mnemarch.testing import HOSTILE_NAMES
from mnemarch.text.conversation import (
    AMOUNT,
    ASKS,
    COURTESY,
    EVENT,
    LONG,
    PERSONAL,
    TIME,
    Coherence,
    project_key,
    project_of,
    signs_of,
    sketched,
    speaker_of,
    weight_of,
)
from mnemarch.text.tokens import numbered_names, telling_tokens


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


def test_a_question_at_the_end_of_a_turn_does_not_lower_the_turn():
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


# Sketches

FIELDS = [name for name in Sketch.__slots__ if name != "place"]
names = st.text(st.characters(exclude_characters="\x1f"), max_size=30) | st.sampled_from(HOSTILE_NAMES)
# As tokens are: without white space, and none begins with a colon.
words = st.text(min_size=1, max_size=12).map(lambda text: "".join(text.split()).lstrip(":")).filter(bool)
some_words = words | st.sampled_from(["a", "a:2", "2", "^가", "~a", "가나", "1:1", "a:", "b"])


units = st.builds(
    searchable,
    st.just("x"),
    names,
    session=st.none() | names.map(session_key),
    turn=st.integers(0, 10**9),
    scope_key=names,
    kind=names,
    occurred_at=st.integers(-(10**17), 10**17),
    importance=st.floats(0, 1),
)


@given(units, names, st.lists(some_words))
def test_a_sketch_is_the_same_after_it_was_stored(unit, speaker, found):
    before = Sketch(unit, speaker, found)
    after = Sketch.from_line(before.to_line())
    assert [getattr(after, name) for name in FIELDS] == [getattr(before, name) for name in FIELDS]
    assert after.place == before.place == place(unit.session or "", unit.turn)
    assert after.to_line() == before.to_line()


@given(st.text())
def test_a_separator_in_a_name_does_not_shift_what_comes_after_it(text):
    before = sketch("Mina: apples", id=f"\x1f{text}\x1f1\x1f", turn=7, kind="fact\x1f")
    after = Sketch.from_line(before.to_line())
    assert (after.turn, after.kind, after.speaker, after.words) == (7, "fact", "mina", before.words)


@given(st.lists(some_words), st.lists(some_words, max_size=5))
def test_every_word_is_counted_as_often_as_it_occurs(found, others):
    made = Sketch(searchable("x"), "", found)
    for word in [*found, *others]:
        assert made.count(f" {word} ") == found.count(word)
    assert dict(made.counted()) == Counter(found)
    assert made.length == len(found)


@given(st.text() | st.text("ab :가나1.", max_size=60))
def test_the_words_of_any_text_are_counted_and_come_back(text):
    found = [*telling_tokens(text), *numbered_names(text)]
    made = Sketch.from_line(sketched(searchable(text)).to_line())
    assert dict(made.counted()) == Counter(found)
    assert all(made.count(f" {word} ") == count for word, count in Counter(found).items())


def test_a_word_is_not_counted_inside_another_nor_in_a_number():
    made = sketch("retry retry retries poolside, 3 3")
    assert made.count(" pool ") == made.count(" 2 ") == made.count(" :2 ") == 0
    assert dict(made.counted()) == {"retri": 3, "poolsid": 1, "3": 2}


def test_what_has_no_session_has_no_session():
    assert sketch("apples").session == ""
    assert Sketch.from_line(sketch("apples").to_line()).session == ""


@pytest.mark.parametrize(
    ("text", "speaker"),
    [
        ("Mina: I moved to Busan", "mina"),
        ("MARY ANN: hello", "mary ann"),
        ("O'Brien-Lee Jr.: hello", "o'brien-lee jr."),
        ("미나: 부산으로 이사했어", "미나"),
        ("I moved: to Busan", "i moved"),
        ("Mina:no", ""),
        ("3: third", ""),
        ("Error: the pool is empty", ""),
        ("TODO: raise the limit", ""),
        ("http://a.example: x", ""),
        ("x" * 40 + ": too long for a name", ""),
        ("nobody says this", ""),
        (": nobody", ""),
        ("", ""),
        *[(text, "") for text in ("Timeout: 5s", "Max retries: 3 per hour", "타임아웃: 5초", "Price: $5.00")],
        *[(text, "") for text in ("Owner: Dana", "Default region: eu-west-1", "담당자: 민지")],
        *[("Bob: 5 pm is too late for me", "bob"), ("reviewer: I would split it", "reviewer")],
    ],
)
def test_a_text_says_at_its_beginning_who_speaks(text, speaker):
    assert speaker_of(text) == sketch(text).speaker == speaker


# Coherence

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

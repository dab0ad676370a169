"""The bag of words: what two texts share, in English and Korean, with what is rare weighing more."""

from __future__ import annotations

import json
from math import log, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemarch.embedding import BagOfWordsEmbedder, cosine
from mnemarch.embedding.sparse import bag_of
from mnemarch.errors import InvalidInput
from mnemarch.text import korean
from mnemarch.text.cache import forget_texts
from mnemarch.text.tokens import telling_tokens

mixed = st.text(max_size=80) | st.text(alphabet="aB1_ .가나다를이OS", max_size=60)
TEXTS = ["결제는 세 번 재시도한다", "the pool is exhausted", "API를 getUserName으로 부른다", "결제 실패는 알린다"]


def test_an_english_text_gives_its_telling_tokens():
    text = "The retries of getUserName are in src/app/auth.ts"
    assert list(bag_of(text)) == list(dict.fromkeys(telling_tokens(text)))


def test_a_korean_word_gives_its_stem_its_syllables_and_its_form():
    assert list(bag_of("재시도합니다")) == list(dict.fromkeys(korean.fine_features("재시도합니다")))


def test_the_particle_of_a_foreign_word_is_no_word():
    assert bag_of("API를") == bag_of("API")
    assert list(bag_of("API를")) == ["api"]


def test_a_foreign_word_weighs_as_much_as_a_korean_one_beside_it():
    features = bag_of("API 서버")
    assert features["api"] == 4.0
    assert {weight for feature, weight in features.items() if feature != "api"} == {1.0}


def test_a_text_without_korean_is_scaled_as_a_whole():
    vector = BagOfWordsEmbedder().embed("exhausted pool")
    assert list(vector.values()) == [1 / sqrt(2)] * 2


@given(mixed)
def test_a_vector_has_length_one(text):
    vector = BagOfWordsEmbedder().embed(text)
    assert list(vector) == sorted(vector)
    assert not vector or sqrt(sum(weight * weight for weight in vector.values())) == pytest.approx(1.0, abs=1e-12)


@given(mixed, mixed, st.lists(mixed, max_size=5))
def test_the_cosine_is_symmetric_and_within_its_bounds_also_when_learnt(left, right, known):
    embedder = BagOfWordsEmbedder()
    embedder.learn(known)
    one, other = embedder.embed(left), embedder.embed(right)
    assert 0.0 <= cosine(one, other) <= 1.0
    assert cosine(one, other) == cosine(other, one)


@given(st.lists(mixed, max_size=4))
def test_the_order_of_the_words_does_not_matter(words):
    embedder = BagOfWordsEmbedder()
    embedder.learn(TEXTS)
    assert embedder.embed(" ".join(words)) == embedder.embed(" ".join(reversed(words)))


@given(mixed)
def test_the_same_text_gives_the_same_features_when_nothing_is_kept(text):
    before = bag_of(text)
    forget_texts()
    assert bag_of(text) == before


def test_what_is_rare_weighs_more_once_learnt():
    embedder = BagOfWordsEmbedder()
    plain = cosine(embedder.embed("pool retry"), embedder.embed("pool leak"))
    embedder.learn(["pool a1", "pool b2", "pool retry", "leak c3"])
    assert cosine(embedder.embed("pool retry"), embedder.embed("pool leak")) < plain
    weights = embedder.embed("pool unseen")
    assert weights["unseen"] / weights["pool"] == pytest.approx(log(5 / 0.5) / log(5 / 3.5))


def test_learning_adds_to_what_was_learnt():
    at_once, in_parts = BagOfWordsEmbedder(), BagOfWordsEmbedder()
    at_once.learn(TEXTS)
    for text in TEXTS:
        in_parts.learn([text])
    assert in_parts.export_state() == at_once.export_state()
    assert in_parts.id == at_once.id


def test_r18_learning_makes_another_embedder():
    embedder = BagOfWordsEmbedder()
    before = embedder.embed(TEXTS[0])
    embedder.learn(TEXTS)
    with pytest.raises(InvalidInput, match="can't be compared"):
        cosine(before, embedder.embed(TEXTS[0]))


def test_the_state_brings_the_frequencies_along():
    embedder = BagOfWordsEmbedder()
    embedder.learn(TEXTS)
    other = BagOfWordsEmbedder()
    other.import_state(json.loads(json.dumps(embedder.export_state())))
    assert other.id == embedder.id
    assert [other.embed(text) for text in TEXTS] == [embedder.embed(text) for text in TEXTS]


@pytest.mark.parametrize(
    ("asked", "close", "far"),
    [
        ("결제 재시도 횟수를 알려줘", "결제재시도는 몇 번인지 알려 줘", "내일 서울 날씨 알려줘"),
        ("서버를 다시 시작하려면", "서버 재시작을 하고 싶으면", "문서를 다시 쓰려면"),
        ("how does checkout retry", "checkout retries how?", "how does login fail"),
    ],
)
def test_a_paraphrase_is_closer_than_something_else(asked, close, far):
    embed = BagOfWordsEmbedder().embed
    assert cosine(embed(asked), embed(close)) > cosine(embed(asked), embed(far))


@pytest.mark.parametrize("text", ["", "   ", "...", "the of and", "\ud800", "\x00"])
def test_text_that_says_nothing_is_like_nothing(text):
    embed = BagOfWordsEmbedder().embed
    assert cosine(embed(text), embed("pool")) == 0.0

"""Snapshots of vectors: they compare as they are where that is right, and are made again where it is not (A11, R18)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemarch.embedding import BagOfWordsEmbedder, NgramHashEmbedder, Snapshot, cosine
from mnemarch.errors import InvalidInput

TEXTS = {"a": "Checkout retries 3 times", "b": "결제는 세 번 재시도한다", "c": "", "d": "lone \ud800 surrogate"}


def learnt() -> BagOfWordsEmbedder:
    embedder = BagOfWordsEmbedder()
    embedder.learn(TEXTS.values())
    return embedder


def sent(snapshot: Snapshot) -> Snapshot:
    return Snapshot.from_json(json.loads(json.dumps(snapshot.to_json())))


@pytest.mark.parametrize("embedder", [NgramHashEmbedder(), NgramHashEmbedder((2, 4), 128, 7), learnt()])
def test_a_snapshot_comes_back_bit_for_bit(embedder):
    snapshot = Snapshot.of(embedder, TEXTS)
    back = sent(snapshot)
    assert back == snapshot
    assert back.embedder_id == embedder.id
    assert {vector.embedder_id for vector in back.vectors.values()} == {embedder.id}


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=30), max_size=4), st.integers(1, 300), st.integers(0, 9))
def test_vectors_by_the_same_settings_compare_as_they_are(texts, dim, seed):
    snapshot = sent(Snapshot.of(NgramHashEmbedder((2, 3), dim, seed), texts))
    here = NgramHashEmbedder((2, 3), dim, seed)
    assert snapshot.comparable_with(here)
    assert snapshot.reembedded(here) is snapshot
    for text_id, text in texts.items():
        assert snapshot.vectors[text_id] == here.embed(text)


@pytest.mark.parametrize("here", [NgramHashEmbedder((2, 4), 128, 7), NgramHashEmbedder(seed=1), learnt()])
def test_vectors_by_other_settings_are_made_again_from_the_texts(here):
    foreign = sent(Snapshot.of(NgramHashEmbedder(), TEXTS))
    assert not foreign.comparable_with(here)
    ours = foreign.reembedded(here)
    assert ours.comparable_with(here)
    assert ours.vectors == {text_id: here.embed(text) for text_id, text in TEXTS.items()}
    assert cosine(ours.vectors["a"], here.embed(TEXTS["a"])) == pytest.approx(1.0)
    with pytest.raises(InvalidInput, match="can't be compared"):
        cosine(foreign.vectors["a"], here.embed(TEXTS["a"]))


def test_an_embedder_can_become_the_one_of_a_snapshot_instead():
    foreign = sent(Snapshot.of(NgramHashEmbedder((2, 4), 128, 7), TEXTS))
    here = NgramHashEmbedder()
    here.import_state(foreign.state)
    assert foreign.comparable_with(here)
    assert cosine(foreign.vectors["b"], here.embed(TEXTS["b"])) == pytest.approx(1.0)


def test_a_snapshot_by_another_version_is_read_and_made_again():
    record = Snapshot.of(NgramHashEmbedder(), TEXTS).to_json()
    record["embedder"] = record["embedder"] | {"normVersion": 99, "hashAlgo": "xxh9"}
    foreign, here = Snapshot.from_json(record), NgramHashEmbedder()
    assert not foreign.comparable_with(here)
    assert foreign.reembedded(here) == Snapshot.of(here, TEXTS)


def test_whole_numbers_as_weights_are_read():
    record = Snapshot.of(NgramHashEmbedder(), {"a": "x"}).to_json()
    record["vectors"]["a"] = [[5, 1]]
    assert Snapshot.from_json(record).vectors["a"] == {5: 1.0}


@pytest.mark.parametrize(
    "change",
    [
        {"embedder": None},
        {"embedder": {}},
        {"embedder": {"frequencies": 3}},
        {"texts": None},
        {"texts": {"a": 1, "b": "", "c": "", "d": ""}},
        {"texts": {"a": "only one"}},
        {"vectors": {}},
        {"vectors": {"a": [[1, "x"]]}},
        {"vectors": {"a": [[1]]}},
        {"vectors": {"a": [[1, float("nan")]]}},
        {"vectors": {"a": 7}},
    ],
    ids=str,
)
def test_what_is_no_snapshot_is_refused_with_a_hint(change):
    record = Snapshot.of(NgramHashEmbedder(), TEXTS).to_json()
    with pytest.raises(InvalidInput) as refused:
        Snapshot.from_json(record | change)
    assert refused.value.hint

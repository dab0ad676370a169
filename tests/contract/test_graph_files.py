"""Graphs in files: equal bits after loading with any embedder, no torn files, and no overwriting of others' files."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from fixtures.cases import cases
from mnemarch.embedding.sparse import BagOfWordsEmbedder, NgramHashEmbedder, QuestionEmbedder, cosine
from mnemarch.errors import Conflict, Incompatible, InvalidInput, NotFound, StoreCorrupt, StoreError, StoreUnavailable
from mnemarch.graph import EdgeType, FileKeeper, GraphConfig, GraphStore, MemoryOrchestrator, files
from mnemarch.text.canonical import NORM_VERSION, canonical

ENGLISH = [
    "How do I deploy the checkout service?",
    "How do I deploy the checkout service to staging?",
    "Where are old invoices archived?",
    "Does checkout retry 3 times?",
]
KOREAN = [
    "결제 서비스를 어떻게 배포하나요?",
    "결제 서비스를 스테이징에 어떻게 배포하나요?",
    "송장은 어디에 보관되나요?",
    "결제는 3번 재시도하나요?",
]
LANGUAGES = pytest.mark.parametrize("texts", [ENGLISH, KOREAN], ids=["english", "korean"])


class DenseList:
    def embed(self, text):
        return [float(canonical(text).count(letter)) - 0.3 for letter in "aeioutdsr결제서비스배포"]


class SparseMap:
    def embed(self, text):
        known = canonical(text)
        return {a + b: 1.0 + known.count(a) / 7 for a, b in pairwise(known)}


class Numbered:
    """One whose vectors are told apart by its id."""

    id = "numbered/1"

    def embed(self, text):
        return {len(word): 1.0 for word in canonical(text).split()} | {ord(letter): 0.5 for letter in canonical(text)}


def learned():
    embedder = BagOfWordsEmbedder()
    embedder.learn([*ENGLISH, *KOREAN, "deploy it"])
    return embedder


MAKERS = {
    "default": QuestionEmbedder,
    "ngram": NgramHashEmbedder,
    "bag of words": BagOfWordsEmbedder,
    "learned bag of words": learned,
    "dense list": DenseList,
    "sparse map": SparseMap,
    "numbered": Numbered,
}


def filled(clock, texts, embedder=None, **config):
    """A graph with something of everything."""
    store = GraphStore(GraphConfig(**({"tau_sim": 0.5} | config)), embedder, clock=clock)
    ids = []
    for text in texts:
        ids.append(store.upsert_query(text))
        clock.advance(minutes=7)
    store.record_answer(ids[0], "By hand: 손으로")
    store.record_answer(ids[2], unit_id="01UNIT")
    store.record_feedback(ids[0], "up", "잘 됐어요")
    store.record_feedback(ids[1], "down")
    store.upsert_entity("ada", "checkout", "결제", ["cart"])
    store.pin(ids[2])
    store.adjust_weights(ids[3], feedback_delta=0.1, repeat_delta=0.2)
    clock.advance(minutes=3)
    store.decay()
    clock.advance(minutes=1)
    return store


def searched(store, texts):
    asked = [*texts, "deploy checkout", "결제 배포", "nothing like it at all 없음"]
    return [store.search_similar_queries(text, k) for text in asked for k in (1, 3, 50)]


def content(store):
    return {name: item for name, item in store.to_snapshot().items() if name != "createdAt"}


def rewritten(path, change):
    """Change what a file says, and make its digest fit."""
    record = json.loads(path.read_text(encoding="utf-8"))
    record.pop("digest")
    change(record)
    path.write_text(json.dumps({**record, "digest": files._digest(record)}), encoding="utf-8")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "graph.json"


# A9, A11, R18


@LANGUAGES
@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_A9_search_results_are_equal_after_save_and_load(clock, path, texts, maker):
    store = filled(clock, texts, maker())
    assert store.save_to_file(path) is True
    loaded = GraphStore.load_from_file(path, GraphStore(store.config, maker(), clock=clock))
    assert searched(loaded, texts) == searched(store, texts)
    assert loaded.to_snapshot() == store.to_snapshot()
    assert (loaded.nodes(), loaded.edges()) == (store.nodes(), store.edges())
    for text in texts:
        assert loaded.upsert_query(text) == store.upsert_query(text)
    assert content(loaded) == content(store)


@LANGUAGES
@pytest.mark.parametrize("name", ["default", "ngram"])
def test_A11_the_state_of_the_embedder_is_saved_and_restored(clock, path, texts, name):
    embedder = MAKERS[name](dim=512, seed=99, ngram_range=(2, 4))
    store = filled(clock, texts, embedder)
    store.save_to_file(path)
    record = json.loads(path.read_text(encoding="utf-8"))
    state = record["embedderState"]
    assert {"ngramRange", "dim", "seed", "hashAlgo", "normVersion"} <= set(state)
    assert (state["dim"], state["seed"], list(state["ngramRange"])) == (512, 99, [2, 4])
    assert record["canonicalMeta"] == {"normVersion": NORM_VERSION, "hashAlgo": "xxh3-128", "seed": 0}
    loaded = GraphStore.load_from_file(path)
    assert loaded.embedder.id == embedder.id
    assert loaded.config == store.config
    asked = texts[0] + " now"
    assert {hit.id: hit.sim for hit in loaded.search_similar_queries(asked, 9)} == {
        hit.id: hit.sim for hit in store.search_similar_queries(asked, 9)
    }


OTHERS = {
    "dim": lambda: QuestionEmbedder(dim=256),
    "seed": lambda: QuestionEmbedder(seed=5),
    "ngram range": lambda: QuestionEmbedder(ngram_range=(2, 5)),
    "kind": NgramHashEmbedder,
    "bag of words": learned,
    "dense list": DenseList,
}


@LANGUAGES
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_A11_a_snapshot_made_with_other_settings_compares_right(clock, path, texts, other):
    filled(clock, texts, other(), tau_sim=0.99, tau_dup=1.0).save_to_file(path)
    ours = QuestionEmbedder()
    loaded = GraphStore.load_from_file(path, GraphStore(embedder=ours, clock=clock))
    for asked in (*texts, "deploy checkout", "결제 배포"):
        for hit in loaded.search_similar_queries(asked, 50):
            assert hit.sim == pytest.approx(cosine(ours.embed(asked), ours.embed(hit.text)), abs=1e-12)
    assert loaded.search_similar_queries(texts[0])[0].text == texts[0]
    assert loaded.to_snapshot()["embedderId"] == ours.id
    again = path.with_name("again.json")
    loaded.save_to_file(again)
    twice = GraphStore.load_from_file(again, GraphStore(embedder=ours, clock=clock))
    assert searched(twice, texts) == searched(loaded, texts)


@pytest.mark.parametrize("state", [{"dim": 512}, {"seed": 9}, {"normVersion": 0}, None])
def test_r18_vectors_of_another_state_are_made_again_even_with_the_same_id(clock, state):
    record = filled(clock, ENGLISH).to_snapshot()
    record["embedderState"] = None if state is None else record["embedderState"] | state
    for node in record["nodes"]:
        if "embedding" in node:
            node["embedding"] = [[7, 1.0]]
    loaded = GraphStore(clock=clock)
    loaded.from_snapshot(record)
    assert loaded.search_similar_queries(ENGLISH[0])[0].sim == pytest.approx(1.0)


@LANGUAGES
def test_A11_vectors_of_an_unsupported_version_are_made_again(clock, path, texts):
    filled(clock, texts).save_to_file(path)

    def older(record):
        record["embedderState"]["featuresVersion"] = 0
        record["embedderId"] = record["embedderId"].replace("question/2", "question/0", 1)
        for node in record["nodes"]:
            if "embedding" in node:
                node["embedding"] = [[7, 1.0]]

    rewritten(path, older)
    loaded = GraphStore.load_from_file(path)
    ours = QuestionEmbedder()
    assert loaded.embedder.id == ours.id
    hits = loaded.search_similar_queries(texts[1], 9)
    assert texts[1] in {hit.text for hit in hits}
    for hit in hits:
        assert hit.sim == pytest.approx(cosine(ours.embed(texts[1]), ours.embed(hit.text)), abs=1e-12)


@LANGUAGES
def test_A11_keys_of_another_normal_form_are_made_anew(clock, path, texts):
    store = filled(clock, texts)
    store.save_to_file(path)

    def older(record):
        record["canonicalMeta"]["normVersion"] = NORM_VERSION - 1
        for node in record["nodes"]:
            if node["type"] in ("query", "answer") and node["text"] is not None:
                node["canonicalKey"] = f"old {node['canonicalKey']}"

    rewritten(path, older)
    loaded = GraphStore.load_from_file(path, GraphStore(store.config, clock=clock))
    assert searched(loaded, texts) == searched(store, texts)
    for text in texts:
        known = loaded.known_query(text)
        assert loaded.upsert_query(text) == known
    assert loaded.record_answer(known, "by hand 손으로") in {node.id for node in store.nodes("answer")}
    assert loaded.stats().nodes == store.stats().nodes
    assert loaded.to_snapshot()["canonicalMeta"]["normVersion"] == NORM_VERSION


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("How do I deploy checkout?", "how do I  DEPLOY checkout"),
        ("에이전트OS 설계 문서 링크", "에이전트 os 설계 문서 링크"),
    ],
)
def test_A11_texts_with_the_same_normal_form_become_one_node(clock, path, one, other):
    """Two nodes of an older normal form; both know a third, one as its neighbour and one as its neighbour's."""
    third = "Where are old invoices archived?"
    store = GraphStore({"tau_sim": 0.99, "tau_dup": 1.0}, clock=clock)
    first, near, second = store.upsert_query(one), store.upsert_query(third), store.upsert_query("stand-in")
    store.link(first, near, "similar_to", 0.5)
    store.link(near, second, "similar_to", 0.25)
    store.link(first, second, "similar_to", 0.9)
    answer = store.record_answer(second, "By hand")
    store.record_feedback(second, "up")
    store.pin(second)
    store.save_to_file(path)

    def older(record):
        record["canonicalMeta"]["normVersion"] = NORM_VERSION - 1
        for node in record["nodes"]:
            if node["text"] == "stand-in":
                node["text"] = other

    rewritten(path, older)
    before = {node.id: node.weights for node in store.nodes()}
    loaded = GraphStore.load_from_file(path, GraphStore(store.config, clock=clock))
    kept = loaded.upsert_query(other)
    assert kept == loaded.known_query(one) == first
    assert {node.id for node in loaded.nodes("query")} == {first, near}
    assert loaded.node(kept).weights.repeat == before[first].repeat + before[second].repeat + 1
    assert loaded.node(kept).weights.feedback == before[first].feedback + before[second].feedback
    assert [node.id for node in loaded.answers(kept)] == [answer]
    assert loaded.node(kept).pinned, "what one of them was kept for, both are"
    alike = [edge for edge in loaded.edges() if edge.type is EdgeType.SIMILAR_TO]
    assert [(edge.from_, edge.to, edge.weight) for edge in alike] == [(first, near, 0.75)], "likeness has no direction"


@LANGUAGES
def test_a_graph_that_is_larger_than_its_new_home_is_cut_to_fit(clock, path, texts):
    store = filled(clock, texts)
    store.save_to_file(path)
    small = GraphStore.load_from_file(path, GraphStore({"max_nodes": 3, "max_edges": 1}, clock=clock))
    assert small.stats().nodes == 3
    assert small.stats().edges <= 1
    assert small.has(store.upsert_query(texts[2])), "the pinned one"


def test_a_graph_that_can_not_be_cut_to_fit_leaves_its_new_home_as_it_was(clock, path):
    store = GraphStore(clock=clock)
    for text in ENGLISH:
        store.pin(store.upsert_query(text))
    store.save_to_file(path)
    small = GraphStore({"max_nodes": 2}, clock=clock)
    small.upsert_query(KOREAN[0])
    before = content(small)
    with pytest.raises(InvalidInput, match="full"):
        GraphStore.load_from_file(path, small)
    assert content(small) == before
    assert small.search_similar_queries(KOREAN[0])[0].text == KOREAN[0]


def test_sessions_that_are_under_way_are_not_lost_by_a_load(clock, path):
    filled(clock, ENGLISH).save_to_file(path)
    agent = MemoryOrchestrator("a1", clock=clock)
    agent.upsert_query("s", KOREAN[0])
    GraphStore.load_from_file(path, agent.get_agent_store())
    assert agent.get_active_sessions() == ["s"]
    assert {hit.from_ for hit in agent.search("s", KOREAN[0])} == {"session"}
    assert agent.search("s", ENGLISH[0])[0].from_ == "agent"


# Torn, foreign, newer, damaged


@pytest.fixture
def target(clock):
    """A graph that something is to be loaded into; it must not change."""
    store = GraphStore(None, QuestionEmbedder(dim=64), clock=clock)
    store.record_feedback(store.upsert_query("What was here before?"), "up")
    return store


def refused(path, target, error):
    """Loading is refused by name, and neither the file nor the graph is touched."""
    data, before = path.read_bytes(), content(target)
    for into in (target, None):
        with pytest.raises(error) as told:
            GraphStore.load_from_file(path, into)
        assert str(path) in told.value.message
        assert told.value.hint
    assert path.read_bytes() == data
    assert content(target) == before
    return told.value


@LANGUAGES
def test_a_file_that_was_torn_anywhere_is_refused(clock, path, target, texts):
    filled(clock, texts, QuestionEmbedder(dim=64)).save_to_file(path)
    whole = path.read_bytes()
    end = len(whole.rstrip())
    cuts = {0, 1, 5, 20, 60, 100, 300, end - 1, end - 2, end - 40, *range(200, end, max(1, end // 60))}
    cuts.add(whole.index("손".encode()) + 1)  # In the middle of a letter.
    for cut in sorted(cuts):
        path.write_bytes(whole[:cut])
        told = refused(path, target, StoreCorrupt)
        if cut > 300:
            assert "torn" in told.message, cut


def test_a_file_without_its_last_line_break_is_whole(clock, path, target):
    filled(clock, ENGLISH).save_to_file(path)
    path.write_bytes(path.read_bytes().rstrip())
    assert GraphStore.load_from_file(path, target).known_query(ENGLISH[0])


@pytest.mark.parametrize(
    "data",
    [
        b"not json at all",
        b"{}",
        b"[]",
        b"null",
        b"5",
        b'{"format": "something else", "version": 1}',
        b'{"nodes": [], "edges": []}',
        b"\x00\xff\xfe\x80 binary",
        b"SQLite format 3\x00",
        b"[" * 200_000,
        b"1" * 5_000,
        "\ufeff{}".encode(),
    ],
    ids=lambda data: repr(data[:12]),
)
def test_a_foreign_file_is_refused_and_never_overwritten(path, target, data):
    path.write_bytes(data)
    refused(path, target, StoreCorrupt)
    with pytest.raises(StoreCorrupt) as told:
        target.save_to_file(path)
    assert str(path) in told.value.message
    assert path.read_bytes() == data


@pytest.mark.parametrize("version", [2, 99, "1", None, 1.0, True])
def test_a_newer_file_is_refused_and_never_overwritten(clock, path, target, version):
    filled(clock, ENGLISH).save_to_file(path)
    rewritten(path, lambda record: record.update(version=version))
    told = refused(path, target, Incompatible)
    assert repr(version) in told.message
    data = path.read_bytes()
    with pytest.raises(Incompatible):
        target.save_to_file(path)
    assert path.read_bytes() == data


def test_a_file_in_which_one_bit_flipped_is_refused(clock, path, target):
    filled(clock, ENGLISH, QuestionEmbedder(dim=64)).save_to_file(path)
    text = path.read_text(encoding="utf-8")
    for before, after in (('"repeat": ', '"repeat": 1'), ("checkout", "checkouts"), ('"digest": "', '"digest": "0')):
        path.write_text(text.replace(before, after, 1), encoding="utf-8")
        assert "digest" in refused(path, target, StoreCorrupt).message


def _set(record, where, item):
    *steps, last = where
    for step in steps:
        record = record[step]
    if item == "<gone>":
        del record[last]
    else:
        record[last] = item


@pytest.mark.parametrize(("where", "item"), cases("graph_files", "makes no sense"), ids=lambda given: str(given)[:40])
def test_a_file_that_makes_no_sense_is_refused_though_its_digest_fits(clock, path, target, where, item):
    filled(clock, ENGLISH, target.embedder).save_to_file(path)
    rewritten(path, lambda record: _set(record, where, item))
    data, before = path.read_bytes(), content(target)
    into = None if where[0] in ("config", "embedderState") else target
    with pytest.raises(StoreError) as told:
        GraphStore.load_from_file(path, into)
    assert str(path) in told.value.message
    assert path.read_bytes() == data
    assert content(target) == before


def test_a_file_that_is_not_there_is_said_to_be_missing(path, target):
    with pytest.raises(NotFound, match=str(path)):
        GraphStore.load_from_file(path, target)
    with pytest.raises(StoreUnavailable):
        GraphStore.load_from_file(path.parent, target)


@pytest.mark.parametrize("record", [None, 5, [], {}, "text", {"format": "mnemarch-graph"}])
def test_a_snapshot_that_is_none_is_refused(target, record):
    before = content(target)
    with pytest.raises((InvalidInput, StoreError)):
        target.from_snapshot(record)
    assert content(target) == before


def test_features_that_a_file_could_not_give_back_are_refused_at_once(clock, path):
    class Pairs:
        def embed(self, text):
            return dict.fromkeys(pairwise(text), 1.0)

    store = GraphStore(None, Pairs(), clock=clock)
    with pytest.raises(InvalidInput, match="embedder"):
        store.upsert_query(ENGLISH[0])
    assert store.stats().nodes == 0


# Who wrote last


def test_a_save_over_what_another_graph_wrote_since_is_a_conflict(clock, path):
    one, other = filled(clock, ENGLISH), filled(clock, KOREAN)
    one.save_to_file(path)
    assert other.save_to_file(path) is True, "it never saw the file, and the file is a whole graph"
    data = path.read_bytes()
    one.upsert_query("Something new?")
    with pytest.raises(Conflict, match=str(path)):
        one.save_to_file(path)
    with pytest.raises(Conflict):
        one.save_to_file(path, only_if_dirty=True)
    assert path.read_bytes() == data
    GraphStore.load_from_file(path, one)
    one.upsert_query("Something new?")
    assert one.save_to_file(path) is True


def test_a_loaded_graph_that_somebody_saved_over_is_a_conflict_too(clock, path):
    filled(clock, ENGLISH).save_to_file(path)
    one, other = (GraphStore.load_from_file(path, GraphStore(clock=clock)) for _ in range(2))
    for number in range(2):
        one.upsert_query(f"What is new in version {number}?")
        assert one.save_to_file(path) is True, "its own saves are no conflict"
    other.upsert_query("Something else?")
    with pytest.raises(Conflict):
        other.save_to_file(path)


def test_only_a_changed_graph_is_saved_if_so_asked(clock, path):
    store = filled(clock, ENGLISH)
    assert store.save_to_file(path, only_if_dirty=True) is True
    data, status = path.read_bytes(), path.stat().st_mtime_ns
    assert store.save_to_file(path, only_if_dirty=True) is False
    store.search_similar_queries(ENGLISH[0])
    store.nodes()
    assert store.save_to_file(path, only_if_dirty=True) is False
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (data, status)
    store.upsert_query(ENGLISH[0])
    assert store.save_to_file(path, only_if_dirty=True) is True
    path.unlink()
    assert store.save_to_file(path, only_if_dirty=True) is True, "it is not there any more"
    loaded = GraphStore.load_from_file(path, GraphStore(clock=clock))
    assert loaded.save_to_file(path, only_if_dirty=True) is False


def test_a_save_leaves_nothing_beside_the_file(clock, path):
    filled(clock, ENGLISH).save_to_file(path)
    assert [one.name for one in path.parent.iterdir() if not one.name.startswith(".")] == ["graph.json"]


def test_a_file_that_can_not_be_written_says_so_and_leaves_the_graph(clock, tmp_path):
    (tmp_path / "taken").write_text("a file, no folder")
    store = filled(clock, ENGLISH)
    with pytest.raises(StoreUnavailable, match="taken"):
        store.save_to_file(tmp_path / "taken" / "graph.json")
    assert store.known_query(ENGLISH[0])


@LANGUAGES
def test_a28_two_threads_that_save_at_once_leave_a_whole_file(clock, path, texts):
    store = filled(clock, texts)

    def work(name):
        for number in range(8):
            store.upsert_query(f"{texts[0]} {name}{number}")
            store.save_to_file(path)
            GraphStore.load_from_file(path, GraphStore(clock=clock))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, "ab"))
    loaded = GraphStore.load_from_file(path, GraphStore(store.config, clock=clock))
    assert content(loaded) == content(store)


def test_a_file_is_read_by_people_one_node_to_a_line(clock, path):
    store = filled(clock, KOREAN)
    store.save_to_file(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    for text in KOREAN:
        assert len([line for line in lines if text in line]) == 1, "as it is written, not in escapes"


# FileKeeper (A28)


def timers_done():
    """Let every save that is due happen."""
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join(30)
            assert not thread.is_alive()


@pytest.fixture
def keep(path, clock):
    kept = []

    def start(delay_s=3_600.0):
        kept.append(FileKeeper(path, delay_s=delay_s, clock=clock))
        return kept[-1], kept[-1].open(GraphStore(keeper=kept[-1]))

    yield start
    for keeper in kept:
        keeper.close()


def test_a28_changes_are_saved_a_moment_later_many_at_a_time(path, keep, clock, monkeypatch):
    written = []
    write = files.write
    monkeypatch.setattr(files, "write", lambda *given, **more: (written.append(given[0]), write(*given, **more)))
    keeper, store = keep()
    for text in ENGLISH:
        store.upsert_query(text)
    assert not path.exists()
    keeper.flush()
    assert len(written) == 1
    keeper.flush()
    assert len(written) == 1, "nothing is new"
    assert GraphStore.load_from_file(path, GraphStore(clock=clock)).stats() == store.stats()


def test_a28_the_background_saves_by_itself(path, keep, clock):
    keeper, store = keep(delay_s=0)
    for text in ENGLISH:
        store.upsert_query(text)
    timers_done()
    assert keeper.error is None
    loaded = GraphStore.load_from_file(path, GraphStore(clock=clock))
    assert loaded.nodes() == store.nodes()


def test_a_kept_graph_is_there_again_after_close(path, keep, clock):
    keeper, store = keep()
    store.record_feedback(store.upsert_query(KOREAN[0]), "up")
    before = content(store)
    keeper.close()
    keeper, store = keep()
    assert content(store) == before
    store.upsert_query(KOREAN[1])
    keeper.close()
    assert keep()[1].stats().nodes == 3


def test_a_second_keeper_never_overwrites_what_the_first_one_saved(path, keep, clock):
    keeper, store = keep()
    store.upsert_query(ENGLISH[0])
    keeper.flush()
    other, copy = keep()
    copy.upsert_query(ENGLISH[1])
    other.flush()
    store.upsert_query(ENGLISH[2])
    with pytest.raises(Conflict, match=str(path)):
        keeper.close()
    with pytest.raises(InvalidInput, match="belongs to another graph"):
        other.open(GraphStore(keeper=other))
    with pytest.raises(StoreUnavailable):
        store.upsert_query(ENGLISH[3])
    assert GraphStore.load_from_file(path, GraphStore(clock=clock)).stats() == copy.stats()


def test_what_the_background_could_not_save_is_told_and_tried_again(path, keep, clock):
    keeper, store = keep(delay_s=0)
    store.upsert_query(ENGLISH[0])
    timers_done()
    foreign = b"somebody else's notes"
    whole = path.read_bytes()
    path.write_bytes(foreign)
    store.upsert_query(ENGLISH[1])
    timers_done()
    assert isinstance(keeper.error, Conflict)
    with pytest.raises(Conflict):
        keeper.flush()
    assert path.read_bytes() == foreign
    path.unlink()
    store.upsert_query(ENGLISH[2])
    timers_done()
    assert keeper.error is None
    assert path.read_bytes() != whole
    assert GraphStore.load_from_file(path, GraphStore(clock=clock)).stats() == store.stats()


def test_a_keeper_of_a_damaged_file_leaves_it_and_can_be_closed(path, clock):
    path.write_bytes(b"not a graph")
    with FileKeeper(path, clock=clock) as keeper, pytest.raises(StoreCorrupt):
        keeper.open(GraphStore(keeper=keeper))
    assert path.read_bytes() == b"not a graph"
    FileKeeper(path).close()


def test_a28_a_change_during_a_save_is_saved_after_it(path, keep, clock, monkeypatch):
    keeper, store = keep()
    store.upsert_query(ENGLISH[0])
    write = files.write

    def changed_meanwhile(*given, **more):
        monkeypatch.setattr(files, "write", write)
        store.upsert_query(ENGLISH[2])
        write(*given, **more)

    monkeypatch.setattr(files, "write", changed_meanwhile)
    keeper.flush()
    assert GraphStore.load_from_file(path, GraphStore(clock=clock)).stats().nodes == 1
    assert keeper._timer is not None, "another save is due"
    keeper.close()
    assert GraphStore.load_from_file(path, GraphStore(clock=clock)).stats().nodes == 2


def test_a28_many_threads_change_a_kept_graph_while_it_is_saved_over_and_over(path, keep, clock):
    keeper, store = keep(delay_s=0)
    query = store.upsert_query(ENGLISH[0])
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: store.record_feedback(query, "up"), range(80)))
    keeper.close()
    assert GraphStore.load_from_file(path, GraphStore(clock=clock)).node(query).weights.feedback == 80.0


def test_a_process_that_ends_writes_what_is_left(path):
    script = (
        "import sys\nfrom mnemarch.graph import FileKeeper, GraphStore\n"
        "keeper = FileKeeper(sys.argv[1], delay_s=3600)\n"
        "keeper.open(GraphStore(keeper=keeper)).upsert_query('How do I deploy checkout?')\n"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert GraphStore.load_from_file(path).known_query("how do I deploy checkout")


@pytest.mark.parametrize("delay_s", [-1, float("inf"), float("nan"), "soon", None])
def test_a_delay_that_is_none_is_refused(path, delay_s):
    with pytest.raises(InvalidInput, match="delay_s"):
        FileKeeper(path, delay_s=delay_s)
    FileKeeper(path).close()

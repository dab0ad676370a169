"""The graph of a seat: kept in the log, shared by processes, seen in its project only, and recalled (R1-R3, R16)."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

import mnemarch
from mnemarch import Actor, EventType, NotFound, Scope, StoreUnavailable
from mnemarch.config import config_from
from mnemarch.errors import InvalidInput
from mnemarch.graph import GraphStore, orchestrator, sharing

HOME = Scope(org="acme", project="shop", worktree="main", task="T-1")
CODER = Actor.agent("coder-1")
ENGLISH = {
    "main": "How do we ship the web shop?",
    "alike": "How do we ship the web shop today?",
    "again": "how do we SHIP the web  shop",
    "other": "Where are old invoices archived?",
    "unit": "Jenkins job 7 runs at nine",
}
KOREAN = {
    "main": "웹 상점을 어떻게 출시하나요?",
    "alike": "웹 상점을 오늘 어떻게 출시하나요?",
    "again": "웹상점을 어떻게 출시 하나요",
    "other": "송장은 어디에 보관되나요?",
    "unit": "박 과장 혼자 담당",
}
LANGUAGES = pytest.mark.parametrize("said", [ENGLISH, KOREAN], ids=["english", "korean"])
EASY = {"graph": {"promotion": {"min_rank": 0.0, "min_degree": 1}}}
SECRET = "The seaside house has a turquoise door"
API_KEY = "sk-ant-api03-" + "Zx9Qw7Er5Ty3Ui1Op8" * 4


@pytest.fixture(autouse=True)
def somewhere(tmp_path, monkeypatch):
    """A memory without a folder writes its checkpoints where the process is."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def settings_of_memory():
    return config_from(EASY)


@pytest.fixture
def reopened(tmp_path, clock):
    """Another memory on the same folder, each time it is called."""
    opened = []

    def once_more(**settings):
        opened.append(mnemarch.open(tmp_path / "home", clock=clock, config=config_from(EASY | settings)))
        return opened[-1]

    yield once_more
    for one in opened:
        one.close()


def seat_of(memory, actor=CODER, session="s", **where):
    scope = Scope(**(dict(zip(Scope.__match_args__, HOME.segments, strict=True)) | where))
    return memory.seat(actor, scope, session=session)


def content(store):
    return {name: item for name, item in store.to_snapshot().items() if name != "createdAt"}


def read_anew(memory):
    """Let a memory forget what it read of graphs."""
    memory._engine._graphs.clear()
    return memory


def events_of(memory, *types):
    return [event for event in memory._engine.store.read(lambda reader: list(reader.events())) if event.type in types]


def lived(seat, said, session="s"):
    """A bit of everything."""
    graph = seat.graph
    query = graph.upsert_query(session, said["main"])
    graph.upsert_query(session, said["alike"])
    other = graph.upsert_query(session, said["other"])
    graph.record_answer(session, query, "By hand")
    graph.record_answer(session, other, unit_id="01UNIT")
    graph.record_feedback(session, query, "up", "helped")
    graph.record_feedback(session, other, "retry")
    graph.upsert_entity("ada", "web-shop", aliases=["웹 상점"])
    graph.get_session_store(session).pin(other)
    return query


# R1


@LANGUAGES
def test_r1_a_graph_survives_the_process(reopened, said):
    first = reopened()
    lived(seat_of(first), said)
    before = content(seat_of(first).graph.get_session_store("s"))
    first.close()
    graph = seat_of(reopened()).graph
    assert content(graph.get_session_store("s")) == before
    finalized = graph.finalize_session("s")
    assert finalized.promoted
    after = content(graph.get_agent_store())
    again = seat_of(reopened()).graph
    assert content(again.get_agent_store()) == after
    assert again.get_active_sessions() == []
    assert again.search("s", said["main"])[0].from_ == "agent"


@LANGUAGES
def test_r1_two_memories_on_one_folder_see_each_others_acts_at_once(reopened, said):
    one, other = seat_of(reopened()).graph, seat_of(reopened()).graph
    query = one.upsert_query("s", said["main"])
    assert other.get_active_sessions() == ["s"]
    assert other.search("s", said["again"])[0].id == query
    other.record_feedback("s", query, "up")
    assert one.get_session_store("s").node(query).weights.feedback == 1.0
    assert other.upsert_query("s", said["again"]) == query
    assert one.get_session_store("s").node(query).weights.repeat == 2.0
    one.record_answer("s", query, "By hand")
    one.finalize_session("s")
    assert other.get_active_sessions() == []
    with pytest.raises(NotFound):
        other.record_feedback("s", "query:none", "up")
    assert other.get_active_sessions() == []
    assert content(other.get_agent_store()) == content(one.get_agent_store())


def test_r1_one_act_is_one_event_and_asking_is_none(memory):
    seat = seat_of(memory)
    query = seat.graph.upsert_query("s", ENGLISH["main"])
    before = memory.stats().events
    seat.graph.search("s", ENGLISH["main"])
    seat.graph.get_active_sessions()
    seat.graph.nominated("s", ENGLISH["main"])
    seat.graph.get_session_store("s").to_snapshot()
    assert memory.stats().events == before
    seat.graph.record_feedback("s", query, "up")
    assert memory.stats().events == before + 1


@LANGUAGES
def test_r1_a_graph_told_in_several_events_reads_back_equal(memory, said, monkeypatch):
    monkeypatch.setattr(sharing, "_RESTATED_EVERY", 4)
    monkeypatch.setattr(sharing, "_READ_BACK", 8)
    monkeypatch.setattr(sharing, "_BATCH_CHARS_MAX", 600)
    seat = seat_of(memory)
    query = lived(seat, said)
    for number in range(20):
        seat.graph.upsert_query("s", f"{said['main']} #{number}")
        seat.graph.record_feedback("s", query, "up")
        read = content(seat.graph.get_session_store("s"))
        fresh = GraphStore(
            seat.graph.config.session_graph, keeper=sharing.LogKeeper(memory._engine.log, seat.caller, "s")
        )
        assert content(fresh) == read
    assert len(events_of(memory, EventType.GRAPH_RESTATED)) > 1


def test_r1_r16_a_small_limit_for_events_stops_neither_a_graph_nor_an_erasure(clock, monkeypatch):
    monkeypatch.setattr(sharing, "_RESTATED_EVERY", 20)
    small = config_from({**EASY, "limits": {"data_bytes_max": 4_096}})
    with mnemarch.open(":memory:", clock=clock, config=small) as memory:
        seat = seat_of(memory)
        unit = seat.remember(SECRET, level="worktree").unit
        seat.graph.upsert_query("s", f"Why is {SECRET}?")
        kept = {seat.graph.upsert_query("s", f"{KOREAN['main']} #{number}") for number in range(40)}
        before = content(seat.graph.get_session_store("s"))
        assert content(seat_of(read_anew(memory)).graph.get_session_store("s")) == before
        seat_of(memory, Actor.human("alice")).erase(unit.id, "privacy")
        assert {node.id for node in seat.graph.get_session_store("s").nodes("query")} == kept


@LANGUAGES
def test_r1_rebuild_and_audit_hold_and_keep_the_graph(memory, said):
    seat = seat_of(memory)
    lived(seat, said)
    seat.graph.finalize_session("s", checkpoint=False)
    lived(seat, said, "t")
    before = content(seat.graph.get_session_store("t")), content(seat.graph.get_agent_store())
    assert memory.audit().ok
    assert memory.rebuild().same
    read_anew(memory)
    assert (content(seat.graph.get_session_store("t")), content(seat.graph.get_agent_store())) == before


@LANGUAGES
def test_r1_an_export_carries_the_graphs_along(memory, tmp_path, clock, said):
    seat = seat_of(memory)
    lived(seat, said)
    memory.export(tmp_path / "log.jsonl")
    with mnemarch.open(":memory:", clock=clock, config=config_from(EASY)) as other:
        waiting = seat_of(other).graph
        assert waiting.search("s", said["main"]) == []
        other.import_(tmp_path / "log.jsonl")
        for graph in (waiting, seat_of(other).graph):
            assert content(graph.get_session_store("s")) == content(seat.graph.get_session_store("s"))
            assert graph.get_active_sessions() == ["s"]
        assert other.audit().ok


def test_an_act_that_fails_leaves_the_graph_and_the_log_as_they_were(memory):
    seat = seat_of(memory)
    query = lived(seat, ENGLISH)
    before, events = content(seat.graph.get_session_store("s")), memory.stats().events
    for act in (
        lambda: seat.graph.record_feedback("s", "query:none", "up"),
        lambda: seat.graph.record_feedback("s", query, "great"),
        lambda: seat.graph.get_session_store("s").link(query, query, "similar_to"),
        lambda: seat.graph.upsert_query("s", ""),
        lambda: seat.graph.finalize_session("s", checkpoint_name="../up"),
    ):
        with pytest.raises((InvalidInput, NotFound)):
            act()
    assert (content(seat.graph.get_session_store("s")), memory.stats().events) == (before, events)


def test_an_act_that_the_store_did_not_take_is_not_half_done(reopened, tmp_path):
    memory = reopened(store={"lock_wait_s_max": 0.01})
    seat = seat_of(memory)
    query = lived(seat, ENGLISH)
    before = content(seat.graph.get_session_store("s"))
    blocker = sqlite3.connect(next((tmp_path / "home").rglob("memory.db")), isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable):
        seat.graph.record_feedback("s", query, "up")
    with pytest.raises(StoreUnavailable):
        seat.graph.finalize_session("s", checkpoint=False)
    assert content(seat.graph.get_session_store("s")) == before
    blocker.execute("ROLLBACK")
    blocker.close()
    seat.graph.record_feedback("s", query, "up")
    assert seat.graph.get_session_store("s").node(query).weights.feedback == 2.0
    assert seat.graph.finalize_session("s", checkpoint=False).promoted


def test_an_end_of_a_session_that_fails_half_way_is_undone(memory, monkeypatch):
    seat = seat_of(memory)
    lived(seat, ENGLISH)
    before = content(seat.graph.get_session_store("s")), content(seat.graph.get_agent_store())
    outcome = orchestrator.Promotion.outcome

    def interrupted(*given):
        outcome(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(orchestrator.Promotion, "outcome", interrupted)
    with pytest.raises(KeyboardInterrupt):
        seat.graph.finalize_session("s", checkpoint=False)
    monkeypatch.undo()
    assert (content(seat.graph.get_session_store("s")), content(seat.graph.get_agent_store())) == before
    assert seat.graph.finalize_session("s", checkpoint=False).promoted


# R3


@LANGUAGES
def test_r3_nobody_elsewhere_sees_a_graph(memory, said):
    seat = seat_of(memory)
    lived(seat, said)
    seat.graph.finalize_session("s", checkpoint=False)
    lived(seat, said)
    strangers = [
        seat_of(memory, project="shop-2"),
        seat_of(memory, org="acme-corp"),
        seat_of(memory, Actor.agent("coder-2")),
        seat_of(memory, Actor.human("coder-1")),
    ]
    for stranger in strangers:
        graph = stranger.graph
        assert graph.get_active_sessions() == []
        assert graph.search("s", said["main"]) == []
        assert graph.get_agent_store().nodes() == []
        assert graph.nominated("s", said["main"]) == {}
        with pytest.raises(NotFound):
            graph.finalize_session("s")


def test_r3_an_agent_has_one_graph_in_all_worktrees_and_tasks_of_a_project(memory):
    here, there = seat_of(memory), seat_of(memory, worktree="feat-2", task="T-9")
    query = here.graph.upsert_query("s", ENGLISH["main"])
    there.graph.record_feedback("s", query, "up")
    assert here.graph.get_session_store("s").node(query).weights.feedback == 1.0


@pytest.mark.parametrize("names", [("a", "b"), ('x","y', "x"), ("세션", "세션 ")])
def test_r3_sessions_of_any_name_are_kept_apart(memory, names):
    graph = seat_of(memory).graph
    queries = [
        graph.upsert_query(name, text) for name, text in zip(names, (ENGLISH["main"], ENGLISH["other"]), strict=True)
    ]
    read_anew(memory)
    for name, query in zip(names, queries, strict=True):
        assert [node.id for node in seat_of(memory).graph.get_session_store(name).nodes()] == [query]


# Secrets


def test_secrets_reach_neither_the_log_nor_a_file(memory, tmp_path):
    seat = seat_of(memory)
    query = seat.graph.upsert_query("s", f"Why is {API_KEY} rejected?")
    seat.graph.record_answer("s", query, f"Because {API_KEY} expired")
    seat.graph.record_feedback("s", query, "down", f"{API_KEY} still fails")
    seat.graph.upsert_entity("ada", "api", f"the api of {API_KEY}", [f"key {API_KEY}"])
    with pytest.raises(InvalidInput, match="secret"):
        seat.graph.upsert_query(API_KEY, "text")
    before = content(seat.graph.get_session_store("s"))
    seat.graph.get_session_store("s").save_to_file(tmp_path / "graph.json")
    read_anew(memory)
    assert content(seat.graph.get_session_store("s")) == before, "what the log keeps is what the graph is"
    seat.graph.finalize_session("s")
    memory.export(tmp_path / "log.jsonl")
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or API_KEY.encode() not in path.read_bytes(), path


# R2: heat nominates, the gate decides


@pytest.fixture
def helped(memory):
    """A unit that answered a question with which it shares no word."""

    def make(said, **where):
        seat = seat_of(memory)
        unit = seat_of(memory, **where).remember(said["unit"], level="worktree").unit
        assert unit.id not in recalled(seat, said["main"])
        query = seat.graph.upsert_query("s", said["main"])
        seat.graph.record_answer("s", query, unit_id=unit.id)
        return seat, unit, query

    return make


def recalled(seat, text, **more):
    return [item.unit.id for item in seat.recall(text, **more).items]


@LANGUAGES
def test_a_unit_that_answered_a_question_like_it_is_recalled_though_it_shares_no_word(helped, said):
    seat, unit, _ = helped(said)
    for text in (said["main"], said["again"], said["alike"]):
        assert unit.id in recalled(seat, text)
    (item,) = [item for item in seat.recall(said["main"]).items if item.unit.id == unit.id]
    assert "HYPOTHESIS" in item.label
    assert "asked" in str(item.why)
    assert unit.id not in recalled(seat, said["other"])


@LANGUAGES
def test_what_was_nominated_is_in_the_context_too(helped, said):
    seat, unit, _ = helped(said)
    assert unit.id in [item.unit.id for item in seat.context(said["again"], 500).items]


@LANGUAGES
def test_a_question_that_was_answered_badly_nominates_nothing(helped, said):
    seat, unit, query = helped(said)
    seat.graph.record_feedback("s", query, "down")
    assert unit.id not in recalled(seat, said["main"])
    seat.graph.record_feedback("s", query, "up")
    assert unit.id in recalled(seat, said["main"])


@LANGUAGES
def test_a_nomination_goes_on_after_the_session(memory, helped, said):
    seat, unit, _ = helped(said)
    other = seat_of(memory, session="t")
    assert unit.id not in recalled(other, said["main"])
    assert unit.id not in recalled(seat_of(memory, session=None), said["main"])
    seat.graph.finalize_session("s", checkpoint=False)
    assert unit.id in recalled(other, said["main"])
    assert unit.id in recalled(seat_of(memory, session=None), said["main"])
    assert unit.id not in recalled(seat_of(memory, Actor.agent("coder-2")), said["main"])


@LANGUAGES
@pytest.mark.parametrize("how", ["archived", "rejected", "superseded", "erased"])
def test_r2_an_archived_unit_is_not_recalled_however_hot_it_is(memory, helped, said, how):
    seat, unit, _ = helped(said)
    human = seat_of(memory, Actor.human("alice"))
    if how == "archived":
        seat_of(memory, Actor.human("ada")).archive(unit.id, "stale")
    elif how == "rejected":
        human.reject(unit.id, "wrong")
    elif how == "superseded":
        newer = seat.remember("Buildkite took over all of that", level="worktree").unit
        human.supersede(newer.id, unit.id, "newer")
    else:
        human.erase(unit.id, "privacy")
    found = seat.recall(said["main"])
    assert unit.id not in [item.unit.id for item in found.items]
    assert said["unit"] not in str(found)


@LANGUAGES
@pytest.mark.parametrize("where", [{"worktree": "feat-2"}, {"worktree": "feat-2", "task": "T-2"}])
def test_r2_what_a_seat_may_not_see_is_not_recalled_however_hot(helped, said, where):
    seat, unit, _ = helped(said, **where)
    found = seat.recall(said["main"])
    assert unit.id not in [item.unit.id for item in found.items]
    assert unit.id not in str(found.withheld)


@LANGUAGES
def test_a_unit_that_never_was_is_nominated_in_vain(memory, said):
    seat = seat_of(memory)
    query = seat.graph.upsert_query("s", said["main"])
    seat.graph.record_answer("s", query, unit_id="01NEVERWAS")
    assert recalled(seat, said["main"]) == []


@LANGUAGES
def test_a_nomination_does_not_break_a_filter_or_look_back_in_time(memory, helped, said, clock):
    seat, unit, _ = helped(said)
    assert unit.id not in recalled(seat, said["main"], kinds=["skill"])
    assert unit.id not in recalled(seat, said["main"], domain="coding")
    before = clock()
    clock.advance(days=1)
    assert unit.id not in recalled(seat, said["main"], as_of=before)


def test_r2_a_trusted_unit_comes_before_a_hot_hypothesis(memory, helped):
    seat, unit, _ = helped(ENGLISH)
    trusted = seat.remember("We ship the web shop on Fridays", level="worktree").unit
    seat_of(memory, Actor.human("alice")).approve(trusted.id)
    found = recalled(seat, ENGLISH["main"])
    assert found.index(trusted.id) < found.index(unit.id)


def test_a_recall_of_an_agent_without_a_graph_makes_none(memory):
    seat = seat_of(memory)
    seat.recall(ENGLISH["main"])
    assert events_of(memory, EventType.GRAPH_CHANGED, EventType.GRAPH_RESTATED) == []


# R16


def quoting(seat, session="s"):
    """A graph that quotes what is to be erased in a question, an answer, a note and a name, among innocent others."""
    graph = seat.graph
    innocent = graph.upsert_query(session, ENGLISH["main"])
    graph.upsert_query(session, ENGLISH["alike"])
    graph.record_feedback(session, innocent, "up")
    guilty = graph.upsert_query(session, f"Is it true that {SECRET}?")
    graph.record_answer(session, innocent, f"No: {SECRET}!")
    graph.record_answer(session, innocent, "By hand")
    graph.record_answer(session, guilty, "Who knows")
    graph.record_feedback(session, innocent, "up", f"because {SECRET}")
    graph.upsert_entity("ada", "house", SECRET, session_id=session)
    return innocent, guilty


def innocent_part(store):
    nodes = {node.id: (node.text, node.weights) for node in store.nodes() if "turquoise" not in str(node)}
    edges = {edge.id: edge.weight for edge in store.edges() if edge.from_ in nodes and edge.to in nodes}
    return nodes, edges


def test_r16_what_was_erased_leaves_the_graph_and_the_rest_stays(memory):
    seat = seat_of(memory)
    unit = seat.remember(SECRET, level="worktree").unit
    innocent, guilty = quoting(seat)
    other = seat_of(memory, Actor.agent("coder-2"))
    theirs = other.graph.upsert_query("s", SECRET)
    held = seat.graph
    nodes, edges = innocent_part(held.get_session_store("s"))
    who_knows = held.get_session_store("s").answers(guilty)[0].id
    seat_of(memory, Actor.human("alice")).erase(unit.id, "privacy")
    for graph in (held, seat.graph):
        store = graph.get_session_store("s")
        assert not store.has(guilty)
        assert "turquoise" not in str(store.to_snapshot())
        found = innocent_part(store)
        assert found[0] == {id: node for id, node in nodes.items() if id != who_knows}
        assert found[1] == {id: weight for id, weight in edges.items() if who_knows not in id}
        assert store.node(innocent).weights.feedback == 2.0
        assert graph.get_active_sessions() == ["s"]
    assert not other.graph.get_session_store("s").has(theirs)
    assert "turquoise" not in str(
        memory._engine.store.read(lambda reader: [event.payload for event in reader.events()])
    )
    assert memory.audit().ok
    assert memory.rebuild().same
    read_anew(memory)
    assert innocent_part(seat.graph.get_session_store("s")) == found
    seat.graph.record_feedback("s", innocent, "up")
    assert seat.graph.get_session_store("s").node(innocent).weights.feedback == 3.0


def test_r16_what_was_promoted_leaves_the_agents_graph_and_the_checkpoint(reopened, tmp_path):
    memory = reopened()
    seat = seat_of(memory)
    unit = seat.remember(SECRET, level="worktree").unit
    quoting(seat)
    path = seat.graph.finalize_session("s").checkpoint
    before = innocent_part(seat.graph.get_agent_store())
    assert "turquoise" in Path(path).read_text(encoding="utf-8")
    assert "turquoise" in str(seat.graph.get_agent_store().to_snapshot())
    other = reopened()
    watching = seat_of(other).graph
    assert "turquoise" in str(watching.get_agent_store().to_snapshot())
    seat_of(memory, Actor.human("alice")).erase(unit.id, "privacy")
    for graph in (seat.graph, watching, seat_of(other).graph):
        assert "turquoise" not in str(graph.get_agent_store().to_snapshot())
        kept = innocent_part(graph.get_agent_store())
        assert kept[0].items() <= before[0].items()
        assert {text for text, _ in kept[0].values()} >= {ENGLISH["main"], ENGLISH["alike"], "By hand"}
    restored = seat.graph.restore_session("again", path)
    assert ENGLISH["main"] in {node.text for node in restored.nodes("query")}
    other.close()
    memory.close()
    for file in (tmp_path / "home").rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            assert SECRET.encode() not in data, file
            assert b"turquoise" not in data.lower(), file
            assert json.dumps(SECRET)[1:-1].encode() not in data, file


@LANGUAGES
def test_r16_a_graph_that_was_told_anew_is_rid_of_it_too(memory, said, monkeypatch):
    monkeypatch.setattr(sharing, "_RESTATED_EVERY", 5)
    seat = seat_of(memory)
    unit = seat.remember(said["unit"], level="worktree").unit
    guilty = seat.graph.upsert_query("s", f"{said['unit']}?")
    query = seat.graph.upsert_query("s", said["main"])
    for _ in range(12):
        seat.graph.record_feedback("s", query, "up")
    seat_of(memory, Actor.human("alice")).erase(unit.id, "privacy")
    assert said["unit"] not in str(
        memory._engine.store.read(lambda reader: [event.payload for event in reader.events()])
    )
    for _ in range(2):
        store = seat.graph.get_session_store("s")
        assert not store.has(guilty)
        assert store.node(query).weights.feedback == 12.0
        read_anew(memory)
    for _ in range(7):
        seat.graph.record_feedback("s", query, "up")
    assert seat_of(read_anew(memory)).graph.get_session_store("s").node(query).weights.feedback == 19.0
    assert memory.audit().ok


def test_r16_a_pinned_question_goes_too(memory):
    seat = seat_of(memory)
    unit = seat.remember(SECRET, level="worktree").unit
    _, guilty = quoting(seat)
    store = seat.graph.get_session_store("s")
    for node in store.nodes():
        store.pin(node.id)
    seat_of(memory, Actor.human("alice")).erase(unit.id, "privacy")
    assert not store.has(guilty)
    assert "turquoise" not in str(store.to_snapshot())


def test_r16_a_graph_imported_after_an_erasure_has_nothing_of_it(memory, tmp_path, clock):
    seat = seat_of(memory)
    unit = seat.remember(SECRET, level="worktree").unit
    quoting(seat)
    seat_of(memory, Actor.human("alice")).erase(unit.id, "privacy")
    memory.export(tmp_path / "log.jsonl")
    assert "turquoise" not in (tmp_path / "log.jsonl").read_text(encoding="utf-8")
    with mnemarch.open(":memory:", clock=clock, config=config_from(EASY)) as other:
        other.import_(tmp_path / "log.jsonl")
        assert content(seat_of(other).graph.get_session_store("s")) == content(seat.graph.get_session_store("s"))


# Settings


def test_the_settings_of_mnemarch_toml_are_the_graphs(tmp_path, clock):
    home = tmp_path / "home"
    home.mkdir()
    (home / "mnemarch.toml").write_text(
        "[graph.session]\nmax_nodes = 3\n[graph.checkpoint]\nout_dir = 'kept'\ntop_k = 1\n", encoding="utf-8"
    )
    with mnemarch.open(home, clock=clock) as memory:
        graph = seat_of(memory).graph
        for number in range(5):
            graph.upsert_query("s", f"What is in box number {number}?")
        assert graph.get_session_store("s").stats().nodes == 3
        path = graph.finalize_session("s").checkpoint
    assert path == str(next((home / "kept").glob("*.json")))


def test_more_seats_than_graphs_are_held_at_once_lose_nothing(memory, monkeypatch):
    from mnemarch.services import engine as module

    monkeypatch.setattr(module, "_GRAPHS_MAX", 3)
    first = seat_of(memory).graph
    query = first.upsert_query("s", ENGLISH["main"])
    for number in range(8):
        seat_of(memory, Actor.agent(f"coder-{number}"), task=f"T-{number}").graph.upsert_query("s", ENGLISH["other"])
    seat_of(memory).graph.record_feedback("s", query, "up")
    assert first.get_session_store("s").node(query).weights.feedback == 1.0


def test_r16_a_checkpoint_is_rid_of_it_though_another_project_says_the_same(memory):
    seat = seat_of(memory)
    unit = seat.remember(SECRET, level="worktree").unit
    quoting(seat)
    path = Path(seat.graph.finalize_session("s", checkpoint=True).checkpoint)
    seat_of(memory, project="shop-2").log("note", SECRET)
    seat_of(memory, Actor.human("alice")).erase(unit.id, "privacy")
    assert "turquoise" not in str(seat.graph.get_agent_store().to_snapshot())
    assert "turquoise" not in path.read_text(encoding="utf-8")


def test_a_memory_with_nothing_on_disk_writes_a_checkpoint_only_if_told(tmp_path, clock):
    with mnemarch.open(":memory:", clock=clock) as memory:
        graph = seat_of(memory).graph
        graph.upsert_query("s", ENGLISH["main"])
        assert graph.finalize_session("s").checkpoint is None
        assert list(tmp_path.iterdir()) == []
        graph.upsert_query("s", ENGLISH["main"])
        assert graph.finalize_session("s", checkpoint=True).checkpoint is not None


def test_what_a_failed_commit_took_back_is_not_in_the_graph(tmp_path, clock):
    """Acts that wait together are committed together; one that only looked must not keep what was undone."""
    with mnemarch.open(tmp_path / "home", clock=clock) as memory:
        writing, looking = (
            graph.get_agent_store()
            for graph in (
                memory.seat(CODER, HOME).graph,
                memory.seat(CODER, Scope(org="acme", project="shop", worktree="main", task="T-2")).graph,
            )
        )
        writing.upsert_entity("ada", "base")
        assert looking.stats().nodes == 1
        entered, leave = threading.Event(), threading.Event()

        def hold(_):
            entered.set()
            assert leave.wait(20)

        def fail(_):
            raise sqlite3.OperationalError("disk I/O error")

        def attempt(work):
            with suppress(StoreUnavailable, NotFound):
                work()

        holding = threading.Thread(target=memory._engine.store.write, args=(hold,))
        holding.start()
        assert entered.wait(20)
        waiting = [
            threading.Thread(target=attempt, args=(work,))
            for work in (
                lambda: writing.upsert_entity("ada", "undone"),
                lambda: looking.pin("query:nobody"),
                lambda: memory._engine.store.write(fail),
            )
        ]
        for thread in waiting:
            thread.start()
            time.sleep(0.1)  # They queue in this order.
        leave.set()
        for thread in (holding, *waiting):
            thread.join(20)
        writing.upsert_entity("ada", "kept")
        with mnemarch.open(tmp_path / "home", clock=clock) as other:
            fresh = seat_of(other).graph.get_agent_store()
            assert {node.about["entity"] for node in looking.nodes()} == {
                node.about["entity"] for node in fresh.nodes()
            }


def test_r16_an_erasure_that_was_interrupted_leaves_nothing_in_checkpoints(tmp_path, clock, monkeypatch):
    with mnemarch.open(tmp_path / "home", clock=clock) as memory:
        seat = seat_of(memory)
        unit = seat.remember(SECRET, level="worktree").unit
        quoting(seat)
        path = Path(seat.graph.finalize_session("s").checkpoint)

        def busy(*_):
            raise StoreUnavailable("Another process is indexing.")

        human = seat_of(memory, Actor.human("alice"))
        with monkeypatch.context() as patched:
            patched.setattr(memory._engine.finder, "index_patiently", busy)
            with pytest.raises(StoreUnavailable):
                human.erase(unit.id, "privacy")
        human.erase(unit.id, "privacy")
        assert "turquoise" not in path.read_text(encoding="utf-8")

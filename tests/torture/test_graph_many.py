"""Many threads and processes on one graph: no feedback is lost, no file is torn, and a kill loses nothing."""

from __future__ import annotations

import threading
from itertools import count

import pytest
from workers import QUESTIONS, graph_of, seat_of

import mnemarch
from mnemarch.config import config_from
from mnemarch.errors import NotFound
from mnemarch.graph import GraphStore, MemoryOrchestrator

CONFIG = {"promotion": {"min_rank": -1.0, "min_degree": 0, "max_promotions": 1_000}}


def in_threads(work, threads):
    """Run `work(number)` in many threads at once; the first error of any of them is raised."""
    failures = []
    begin = threading.Barrier(threads)

    def run(number):
        try:
            begin.wait()
            work(number)
        except BaseException as error:
            failures.append(error)
            raise

    started = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    if failures:
        raise failures[0]


def weighed(store):
    return {node.text: (node.weights.repeat, node.weights.feedback) for node in store.nodes("query")}


@pytest.fixture(params=["alone", "in memory", "sqlite"])
def orchestrator(request, tmp_path):
    if request.param == "alone":
        yield MemoryOrchestrator("a1", CONFIG, root=str(tmp_path))
        return
    target = ":memory:" if request.param == "in memory" else tmp_path / "home"
    with mnemarch.open(target, config=config_from({"graph": CONFIG})) as memory:
        yield graph_of(memory)


def test_sixteen_threads_on_one_orchestrator_lose_no_feedback(orchestrator, tmp_path):
    threads, turns = 16, 12
    labels = ("up", "up", "down", "retry")

    def work(number):
        for turn in range(turns):
            text = QUESTIONS[(number + turn) % 4]
            query = orchestrator.upsert_query("s", text)
            orchestrator.record_feedback("s", query, labels[turn % 4])
            match (number + turn) % 6:
                case 0:
                    orchestrator.record_answer("s", query, f"answer {turn}")
                case 1:
                    orchestrator.upsert_entity(f"user{number}", "redis", aliases=["cache"])
                case 2:
                    assert orchestrator.search("s", text)[0].text == text
                case 3:
                    orchestrator.get_session_store("s").pin(query, turn % 2 == 0)
                case 4:
                    orchestrator.get_session_store("s").save_to_file(tmp_path / f"{number}.json")
                case _:
                    orchestrator.upsert_query(f"own {number}", f"{text} {number}")

    in_threads(work, threads)
    store = orchestrator.get_session_store("s")
    found = weighed(store)
    each = sum({"up": 1.0, "down": -1.0, "retry": -0.5}[labels[turn % 4]] for turn in range(turns))
    assert set(found) == set(QUESTIONS)
    assert sum(repeat for repeat, _ in found.values()) == threads * turns
    assert sum(feedback for _, feedback in found.values()) == threads * each
    judged = sum(edge.weight for edge in store.edges() if edge.type == "has_feedback")
    assert judged == threads * turns
    for path in tmp_path.glob("*.json"):
        GraphStore.load_from_file(path)
    for session in orchestrator.get_active_sessions():
        orchestrator.finalize_session(session, checkpoint=False)
    assert orchestrator.get_active_sessions() == []


def test_sessions_that_end_while_others_write_lose_no_feedback(orchestrator):
    told = count()
    done = threading.Event()

    def work(number):
        if number == 0:
            while not done.is_set():
                try:
                    orchestrator.finalize_session("s", checkpoint=False)
                except NotFound:
                    continue
            return
        for _ in range(15):
            try:
                orchestrator.record_feedback("s", orchestrator.upsert_query("s", QUESTIONS[number % 4]), "up")
            except NotFound:
                continue  # The session ended between the two.
            next(told)

    def works(number):
        try:
            work(number)
        finally:
            if number and next(finished) == 5:
                done.set()

    finished = count(1)
    in_threads(works, 6)
    if "s" in orchestrator.get_active_sessions():
        orchestrator.finalize_session("s", checkpoint=False)
    heard = sum(feedback for _, feedback in weighed(orchestrator.get_agent_store()).values())
    assert heard == next(told)


def test_sessions_end_with_a_checkpoint_while_others_write(tmp_path):
    """An act may be run by the thread of another: it must not wait for what its own thread holds."""
    with mnemarch.open(tmp_path / "home") as memory:
        done = threading.Event()

        def work(number):
            seat = seat_of(memory, name=f"coder-{number}")
            if number > 1:
                while not done.is_set():
                    seat.log("thought", "Still looking")
                return
            for session in range(20):
                seat.graph.upsert_query(f"s-{session}", QUESTIONS[session % 4])
                assert seat.graph.finalize_session(f"s-{session}").checkpoint
            if next(finished) == 2:
                done.set()

        finished = count(1)
        in_threads(work, 6)
        assert len(list((tmp_path / "home").rglob("s-*.json"))) == 40


@pytest.mark.parametrize("processes", [2, 4])
def test_processes_on_one_session_lose_no_feedback(worker, begin, folder, processes):
    each = 50
    started = [worker("judge", folder, each) for _ in range(processes)]
    begin(started)
    for one in started:
        assert len(one.done()) == each
    (told,) = worker("weights", folder).done()
    assert set(told["weights"]) == set(QUESTIONS)
    total = processes * each
    assert sum(feedback for _, feedback in told["weights"].values()) == total
    assert sum(repeat for repeat, _ in told["weights"].values()) == total
    with mnemarch.open(folder) as memory:
        assert memory.audit().ok
        assert memory.rebuild().same


def test_a_kill_leaves_a_readable_graph_with_every_acknowledged_judgement(worker, begin, folder):
    judged = killed = 0
    for number in range(4):
        pair = [worker("judge", folder, 10_000) for _ in range(2)]
        begin(pair)
        for _ in range(7 + 13 * number):
            pair[0].line()
            judged += 1
        judged += sum(len(one.killed()) for one in pair)
        killed += len(pair)
        (told,) = worker("weights", folder).done()
        heard = sum(feedback for _, feedback in told["weights"].values())
        assert judged <= heard <= judged + killed, "all that was told, and at most one more of each that was killed"
    with mnemarch.open(folder) as memory:
        assert memory.audit().ok
        assert memory.rebuild().same
        assert graph_of(memory).finalize_session("s").checkpoint


def test_a_kill_during_a_save_leaves_a_whole_file(worker, begin, tmp_path):
    path = tmp_path / "graph.json"
    for number in range(4):
        one = worker("save_graph", path, 10_000)
        begin([one])
        told = [one.line() for _ in range(3 + 5 * number)] + one.killed()
        saved = told[-1]["saved"]
        assert saved <= GraphStore.load_from_file(path).stats().nodes <= saved + 1
        path.unlink()

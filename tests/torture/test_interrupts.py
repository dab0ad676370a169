"""Ctrl-C at any line of a write: the lock is free, the connection works, and the act is stored whole or not at all."""

from __future__ import annotations

import ast
import sys
import threading
from pathlib import Path

import pytest
from workers import seat_of

import mnemarch
from mnemarch.stores.sql.committer import Committer, Job

PACKAGE = Path(mnemarch.__file__).parent
# Where a write takes and frees what others wait for. With MNEMARCH_TORTURE=full it is every module.
GROUND = [PACKAGE / name for name in ("stores/sql/store.py", "stores/sqlite/store.py", "log/act.py", "graph/core.py")]


def spared_lines(path):
    """The lines that end something: an interrupt that comes there in CPython comes after their first call."""
    final, withs = set(), {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Try):
            for part in node.finalbody:
                final |= set(range(part.lineno, part.end_lineno + 1))
        elif isinstance(node, ast.With):
            withs |= dict.fromkeys(range(node.lineno, node.body[0].lineno), node.end_lineno)
            # CPython never interrupts at `try:`; only this test's tracing does, where nothing of the `with` covers it.
            final |= {part.lineno for part in node.body if isinstance(part, ast.Try)}
    return final, withs


class Interrupt:
    """Raises KeyboardInterrupt at the line of these files that is reached as the nth."""

    def __init__(self, nth, spared):
        self.nth, self.spared, self.where = nth, spared, None
        self.passed = []

    def __call__(self, frame, event, argument):
        if event == "call" and frame.f_code.co_filename in self.spared:
            return self.in_frame()
        return None

    def in_frame(self):
        before = 0

        def trace(frame, event, argument):
            nonlocal before
            if event != "line" or self.where:
                return trace
            line, (final, withs) = frame.f_lineno, self.spared[frame.f_code.co_filename]
            is_exit = line in withs and line < before <= withs[line]
            before = line
            if line in final or is_exit:
                return trace
            self.passed.append(f"{frame.f_code.co_filename}:{line}")
            if len(self.passed) == self.nth:
                self.where = self.passed[-1]
                raise KeyboardInterrupt
            return trace

        return trace


def interrupted(work, nth, spared):
    """The interrupt: where it came, and which lines were passed."""
    interrupt = Interrupt(nth, spared)
    sys.settrace(interrupt)
    try:
        work()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    return interrupt


def decided(seat, number):
    desk = seat.decisions
    why = {"type": "risk", "summary": "a beginning"}
    return desk.propose(f"decision {number}", reason=why, evidence=[desk.add_evidence(f"it is so {number}").id])


# What comes before the write, and the write.
WRITES = {
    "log": (lambda seat, n: n, lambda seat, n: seat.log("thought", f"entry {n}")),
    "remember": (lambda seat, n: n, lambda seat, n: seat.remember(f"Fact {n} stands alone", level="worktree")),
    "verify": (
        lambda seat, n: seat.remember(f"Fact {n} is tested", citations=[mnemarch.Citation.test(f"t{n}")]) and n,
        lambda seat, n: seat.verify(True, tests=[f"t{n}"]),
    ),
    "erase": (
        # Like no other text: an erasure looks at every one that may be a copy.
        lambda seat, n: seat.remember(f"{n**9:x}").unit.id,
        lambda seat, unit_id: seat.erase(unit_id, "privacy"),
    ),
    "commit": (decided, lambda seat, proposal: seat.decisions.commit(proposal)),
    "ask the graph": (lambda seat, n: n, lambda seat, n: seat.graph.upsert_query("s", f"what is number {n}?")),
}


@pytest.mark.parametrize("write", WRITES)
def test_an_interrupt_at_any_line_of_a_write_leaves_the_store_usable_and_the_act_whole(folder, full, checked, write):
    files = sorted(PACKAGE.rglob("*.py")) if full else GROUND
    spared = {str(path): spared_lines(path) for path in files}
    before, act = WRITES[write]
    with mnemarch.open(folder) as memory:
        store = memory._engine.store
        actor = mnemarch.Actor("agent" if write == "verify" else "orchestrator", "ada")

        def run(nth):
            """Where the act of a new task was interrupted, and how many events there are more than before."""
            seat = memory.seat(actor, mnemarch.Scope(project="p", worktree="w", task=f"t{nth}"), session="s")
            subject = before(seat, nth)
            there = store.query("position")[0][0]
            interrupt = interrupted(lambda: act(seat, subject), nth, spared)
            return interrupt, store.query("position")[0][0] - there, seat

        run(-1)  # Everything is loaded, and the session has begun.
        interrupt, whole, _ = run(-2)
        numbers = range(1, len(interrupt.passed) + 1)
        last = dict(zip(interrupt.passed, numbers, strict=True))
        first = [interrupt.passed.index(place) + 1 for place in last]
        assert len(first) > 20
        # Each line when it is reached first and last; with MNEMARCH_TORTURE=full each time.
        for nth in numbers if full else sorted({*first, *last.values()}):
            interrupt, more, seat = run(nth)
            assert more in {0, whole}, interrupt.where
            assert not store._lent(), interrupt.where
            other = threading.Thread(target=seat.log, args=("thought", f"of another thread {nth}"), daemon=True)
            other.start()
            other.join(20)
            assert not other.is_alive(), f"the write lock was not freed: {interrupt.where}"
            seat.log("thought", f"of the same thread {nth}")
    checked()


def test_an_interrupt_at_any_line_of_a_queue_of_writes_leaves_it_usable():
    spared = {str(path): spared_lines(path) for path in PACKAGE.glob("stores/sql/committer.py")}
    committer = Committer("a store", lambda *given: given[-1]())
    whole = interrupted(lambda: committer.done(Job(None)), -1, spared)
    for nth in range(1, len(whole.passed) + 1):
        interrupt = interrupted(lambda: committer.done(Job(None)), nth, spared)
        other = threading.Thread(target=committer.done, args=[Job(None)], daemon=True)
        other.start()
        other.join(20)
        is_stuck = other.is_alive() or committer.is_writing
        assert not is_stuck, interrupt.where


def test_an_interrupt_during_a_shared_commit_tells_the_others_the_truth(folder):
    """The main thread commits for others and is interrupted after the commit: theirs is written, and they hear so."""
    with mnemarch.open(folder) as memory:
        store, seat = memory._engine.store, seat_of(memory)
        outcomes = []
        committed = store._committed
        with store._turn:
            other = threading.Thread(target=lambda: outcomes.append(seat.log("thought", "of another")))
            other.start()
            while not store._jobs:
                pass

            def interrupt():
                committed()
                raise KeyboardInterrupt

            store._committed = interrupt
            with pytest.raises(KeyboardInterrupt):
                store._lead()
            store._committed = committed
        other.join()
        events = store.read(lambda reader: list(reader.events()))
        assert [event.id for event in events] == [outcomes[0].event_id]


class InterruptedTurn:
    """The writer's turn. When armed, its next call is interrupted after it took effect, as CPython does it."""

    def __init__(self, turn):
        self.turn, self.armed = turn, False

    def __getattr__(self, name):
        def call(*args, **keywords):
            result = getattr(self.turn, name)(*args, **keywords)
            if self.armed:
                self.armed = False
                raise KeyboardInterrupt
            return result

        return call


def test_an_interrupt_at_the_very_end_of_a_write_frees_the_turn(folder):
    with mnemarch.open(folder) as memory:
        store, seat = memory._engine.store, seat_of(memory)
        store._turn = turn = InterruptedTurn(store._turn)
        try:
            with pytest.raises(KeyboardInterrupt):
                store.write(lambda _: setattr(turn, "armed", True))
            seat.log("thought", "after the interrupt")
        finally:
            store._turn = turn.turn


def test_real_interrupts_lose_nothing_and_lock_nobody_out(worker, folder, full, checked):
    rounds = 2_000 if full else 150
    *told, end = worker("interrupted", folder, rounds, 7).done()
    assert end["wrong"] == []
    assert end["interrupts"] > rounds / 20
    assert {line["event_id"] for line in told} <= set(checked())

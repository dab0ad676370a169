"""Many processes, one memory: nothing lost, nothing doubled, nobody overwritten (G1, R5)."""

from __future__ import annotations

import pytest
from workers import seat_of

import mnemarch
from mnemarch import EventType, Status


def test_nothing_is_lost_when_many_processes_log_at_once(together, folder, full, checked):
    processes, each = (64, 200) if full else (8, 100)
    told = together("log_together", *((folder, name, each) for name in range(processes)))
    receipts = [tuple(receipt) for item in told for receipt in item["receipts"]]
    assert len(receipts) == processes * each
    events = checked()
    assert len(events) == processes * each
    assert sorted(seq for seq, _ in receipts) == list(range(1, processes * each + 1))
    assert {(event.seq, event.id) for event in events.values()} == set(receipts)
    for name in range(processes):
        own = [event.payload["text"] for event in events.values() if event.actor.id == f"coder-{name}"]
        assert own == [f"{name}:{number}" for number in range(each)], "each process's own order is kept"


def test_r5_processes_that_keep_one_section_at_once_lose_no_entry(together, folder, full, checked):
    processes, each = (16, 10) if full else (4, 8)
    together("keep_together", *((folder, name, each) for name in range(processes)))
    with mnemarch.open(folder) as memory:
        section = next(one for one in seat_of(memory).core.sections() if one.name == "project")
    kept = section.text.split("\n")
    assert sorted(kept) == sorted(f"<{name}:{number}>" for name in range(processes) for number in range(each))
    for name in range(processes):
        own = [text for text in kept if text.startswith(f"<{name}:")]
        assert own == [f"<{name}:{number}>" for number in range(each)], "each process's own order is kept"
    checked()


def test_r9_twenty_agents_that_fail_at_once_are_each_counted(together, folder, full, checked):
    processes, each = 20, (10 if full else 1)
    said = together("fail_together", *((folder, name, each) for name in range(processes)))
    told = sorted(tuple(count) for item in said for count in item["counts"])
    assert [count for count, _, _ in told] == list(range(1, processes * each + 1))
    assert [tries for _, tries, _ in told] == list(range(1, processes * each + 1))
    assert [verdict for _, _, verdict in told] == ["ALLOW", "WARN"] + ["BLOCK"] * (processes * each - 2)
    assert len(checked()) == processes * each


def test_d5_of_racing_revisions_one_wins_and_the_versions_have_no_gaps(together, folder, full, checked):
    rounds = 1_000 if full else 100
    with mnemarch.open(folder) as memory:
        desk = seat_of(memory, "orchestrator", "lead").decisions
        why = {"type": "risk", "summary": "a beginning"}
        first = desk.commit(desk.propose("first", reason=why, evidence=[desk.add_evidence("it is so").id]))
    told = together("decide_together", *((folder, name, first.id, rounds) for name in ("ada", "bob")))
    won, lost = sum(item["won"] for item in told), sum(item["lost"] for item in told)
    assert won + lost == 2 * rounds
    assert lost > 0, "they did not race"
    with mnemarch.open(folder) as memory:
        desk = seat_of(memory, "orchestrator", "lead").decisions
        versions = desk.history(first.id)
        assert [one.version for one in versions] == list(range(1, won + 2))
        assert [one.id for one in versions if one.is_active] == [versions[-1].id]
    checked()


def test_r5_of_two_revisions_from_one_version_exactly_one_wins(together, folder, full, checked):
    rounds = 40 if full else 4
    for number in range(rounds):
        with mnemarch.open(folder) as memory:
            seat = seat_of(memory)
            old = seat.remember(f"Original of round{number} stands alone", level="worktree").unit
        told = together("revise", *((folder, f"r{number}x{name}", old.id, old.version) for name in range(2)))
        assert sorted(item["won"] for item in told) == [False, True]
        winner = next(item for item in told if item["won"])
        loser = next(item for item in told if not item["won"])
        assert loser["actual"] == old.version + 1
        with mnemarch.open(folder) as memory:
            seat = seat_of(memory)
            assert seat.get(old.id).superseded_by == winner["new"]
            assert seat.get(winner["new"]).supersedes == old.id
            assert seat.get(loser["new"]).supersedes is None
            assert seat.get(loser["new"]).live
    events = checked().values()
    texts = [event.payload["unit"]["content"] for event in events if event.type is EventType.UNIT_REMEMBERED]
    for number in range(rounds):
        assert len([text for text in texts if text.startswith(f"Revision by r{number}x")]) == 2
    assert len([event for event in events if event.type is EventType.UNIT_SUPERSEDED]) == rounds


def test_r5_the_same_fact_from_many_processes_is_one_unit_with_every_provenance(together, folder, full, checked):
    for number in range(10 if full else 1):
        content = f"The gateway of region{number} must be idempotent"
        told = together("remember", *((folder, name, content) for name in range(8)))
        assert len({item["unit"] for item in told}) == 1
        assert sorted(item["merged"] for item in told) == [False] + [True] * 7
        with mnemarch.open(folder) as memory:
            unit = memory._engine.store.read(lambda reader, id=told[0]["unit"]: reader.unit(id))
        assert sorted(source.actor.id for source in unit.provenance) == [f"coder-{name}" for name in range(8)]
        assert unit.mentions == 8
    checked()


def test_r5_opposing_facts_at_once_are_two_units_and_one_open_conflict(together, tmp_path, full):
    pairs = [
        ("The client of {} must retry", "The client of {} must not retry"),
        ("Checkout of {} retries 3 times", "Checkout of {} retries 5 times"),
        ("The limit of {} is kept in Redis", "The limit of {} is kept in Postgres"),
        ("{} 결제는 3번 재시도한다", "{} 결제는 5번 재시도한다"),
    ]
    for number, pair in enumerate(pairs * (3 if full else 1)):
        folder = tmp_path / f"home-{number}"
        told = together("remember", *((folder, name, text.format("checkout")) for name, text in enumerate(pair)))
        assert told[0]["unit"] != told[1]["unit"]
        assert sorted(len(item["conflicts"]) for item in told) == [0, 1]
        with mnemarch.open(folder) as memory:
            conflict_id = next(item["conflicts"][0] for item in told if item["conflicts"])
            link = memory._engine.store.read(lambda reader, id=conflict_id: reader.link(id))
            assert {link.source, link.target} == {item["unit"] for item in told}
            assert link.open
            units = memory._engine.store.read(lambda reader, told=told: reader.units([item["unit"] for item in told]))
            assert all(unit.status is Status.HYPOTHESIS for unit in units.values())
            assert memory.stats().open_conflicts == 1
            assert memory.audit().ok
            assert memory.rebuild().same


def test_many_processes_open_a_new_memory_at_once(together, tmp_path, full):
    for number in range(10 if full else 1):
        told = together("log_together", *((tmp_path / f"home-{number}", name, 1) for name in range(12)))
        assert sorted(seq for item in told for seq, _ in item["receipts"]) == list(range(1, 13))


def test_a_fact_remembered_in_one_process_is_found_by_the_next_recall_in_another(worker, folder):
    reader = worker("recall", folder, "nothing yet")
    assert reader.line() == {"ready": True, "found": []}
    with mnemarch.open(folder) as memory:
        seat = seat_of(memory, name="writer")
        for number in range(30):
            content = f"Widget{number} is stored on shelf {number}"
            seat.remember(content, level="worktree")
            assert content in reader.ask(f"where is widget{number} stored?")["found"][:1]
    reader.done()


def held(box, number):
    """What is in a box. No two of these texts are alike: whoever indexes them compares few."""
    return f"Box{box}x{number} {number**9:x}"


def test_fresh_units_are_found_while_both_processes_index(worker, folder, full):
    """More units than the tail holds, so that both processes index in the background while the other writes."""
    rounds, each = (12, 400) if full else (2, 300)
    reader = worker("recall", folder, "nothing yet")
    assert reader.line()["ready"]
    with mnemarch.open(folder) as memory:
        seat = seat_of(memory, name="writer")
        for number in range(rounds):
            claims = [mnemarch.Claim(content=held(number, n), level="worktree") for n in range(each)]
            stored = seat.remember_many(claims)
            for n in (0, each // 2, each - 1):
                wanted = held(number, n)
                assert wanted in reader.ask(f"box{number}x{n}")["found"]
                assert wanted in [item.unit.content for item in seat.recall(f"box{number}x{n}").items]
            old = stored[1].unit
            new = seat.remember(f"Crate{number} took the place of it", level="worktree").unit
            seat_of(memory, "orchestrator").supersede(new.id, old.id, "moved")
            assert old.content not in reader.ask(f"box{number}x1")["found"]
            assert old.content not in [item.unit.content for item in seat.recall(f"box{number}x1").items]
            assert number == 1 or held(0, number) in reader.ask(f"box0x{number}")["found"]
    reader.done()


def test_a_process_may_leave_while_its_index_is_being_made(worker, folder, full, checked):
    for _ in range(3 if full else 1):
        told = worker("index_and_vanish", folder, 900).done()
        assert told == [{"found": 5}]
    checked()


@pytest.mark.parametrize("order", ["parent first", "child first"])
def test_a_fork_after_opening_is_two_processes_on_one_memory(worker, folder, checked, order):
    told = worker("forked", folder, order).done()
    assert told[-1] == {"status": 0}
    acknowledged = [item["event_id"] for item in told if "event_id" in item]
    assert len(acknowledged) == len(set(acknowledged)) == (110 if order == "parent first" else 120)
    assert {"found": 1} in told
    events = checked()
    assert set(acknowledged) <= set(events)


@pytest.mark.parametrize("how", ["os.fork", "multiprocessing"])
def test_a_child_of_a_busy_process_works_and_never_hangs(worker, folder, full, checked, how):
    children = 20 if full else 6 if how == "os.fork" else 3
    told = worker("fork_busy", folder, children, how).done()
    assert told[-1] == {"statuses": [0] * children}
    events = checked()
    assert {line["event_id"] for line in told[:-1]} <= set(events)
    texts = [event.payload["text"] for event in events.values() if event.type is EventType.LOGGED]
    assert len(texts) == len(set(texts)), "a child repeats nothing that a thread of its parent had queued"


def test_nothing_needs_the_network(worker, folder):
    (told,) = worker("offline", folder).done()
    assert told == {"verified": 1, "found": 1, "ok": True, "same": True}


@pytest.mark.parametrize("how", ["opened twice", "opened and closed", "erased", "looked over"])
def test_one_process_may_hold_a_memory_more_than_once_while_others_come_and_go(worker, folder, how):
    """Closing any descriptor of a file drops all of a process's POSIX locks on it; then another process's close takes
    the write-ahead log away under this one, and what it acknowledges next is lost."""
    told = worker("twice", folder, "other", how).done()
    with mnemarch.open(folder) as memory:
        events = {event.id for event in memory._engine.store.read(lambda reader: list(reader.events()))}
        assert len(told) == 4
        assert {item["event_id"] for item in told} <= events
        assert memory.audit().ok
    assert told[-1]["ok"]

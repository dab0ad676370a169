"""The contract of a store's writes and reads, for many threads at once, and of its log: chained events in streams."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from mnemarch import Actor, Event, EventType, Level, Scope
from mnemarch.model.caller import Stream
from mnemarch.model.stamps import micros, new_id
from mnemarch.model.value import replace
from mnemarch.stores.sql.reader import Reader
from mnemarch.stores.sql.transaction import Transaction
from mnemarch.testing.builders import (
    HERE,
    HOSTILE_NAMES,
    SHOP,
    START,
    THREADS,
    WIDE,
    Probe,
    Stop,
    chain_holds,
    changed,
    error_of,
    everything,
    filled,
    in_threads,
    made_link,
    made_unit,
    on_new_stores,
    put,
    put_at,
    recorded,
)

_WRITES_EACH = 50


@on_new_stores
class TransactionContract:
    def test_a_new_store_is_empty(self, store: Probe) -> None:
        seen = store.read(everything)
        assert (seen["events"], seen["position"], seen["rows"], seen["searchable"]) == ([], 0, [], [])
        assert store.head(SHOP) == (0, b"")
        assert store.event("nothing") is None
        assert store.unit("nothing") is None
        assert store.link("nothing") is None
        assert store.units([]) == {}
        assert store.units_in([]) == []
        assert store.counts()["total"] == {"events": 0, "streams": 0, "open_conflicts": 0}

    def test_a_store_names_itself_and_its_format(self, store: Probe) -> None:
        assert isinstance(store.id, str)
        assert store.id
        assert store.id == store.id
        assert store.format_version >= 1
        assert store.writable is True
        assert store.check() is None
        assert store.query("size")[0][0] >= 0

    def test_a_write_and_a_read_return_what_their_work_returns(self, store: Probe) -> None:
        result = object()
        assert store.write(lambda _: result) is result
        assert store.read(lambda _: result) is result
        assert store.write(lambda _: result, durable=True) is result

    def test_a_write_sees_its_own_changes_and_later_reads_see_them_too(self, store: Probe) -> None:
        def work(transaction: Transaction) -> dict[str, Any]:
            filled(transaction)
            return everything(transaction)

        inside = store.write(work)
        assert inside == store.read(everything)
        assert len(inside["events"]) == 3
        assert len(inside["rows"]) == 11

    def test_what_is_asked_together_is_answered_as_if_it_were_asked_alone(self, store: Probe) -> None:
        empty = store.read(everything)

        def work(transaction: Transaction) -> tuple[Any, Any]:
            before = transaction.together(everything)
            filled(transaction)
            return before, transaction.together(everything)

        assert store.write(work) == (empty, store.read(everything))
        assert store.read(lambda reader: reader.together(everything)) == store.read(everything)

    def test_an_error_inside_a_write_undoes_all_of_it_and_comes_out_unchanged(self, store: Probe) -> None:
        def require_undone(change: Callable[[Transaction], None]) -> None:
            before = store.read(everything)
            for error in (Stop(), ValueError(), KeyError(), OSError(), KeyboardInterrupt(), AssertionError()):

                def work(transaction: Transaction, error: BaseException = error) -> None:
                    change(transaction)
                    raise error

                assert error_of(lambda work=work: store.write(work)) is error  # type: ignore[misc]
                assert store.read(everything) == before

        require_undone(filled)
        store.write(filled)
        require_undone(changed)

    def test_a_write_inside_a_write_is_refused_and_changes_nothing_of_the_outer_one(self, store: Probe) -> None:
        error = Stop()

        def nested(transaction: Transaction) -> bool:
            recorded(transaction)
            return isinstance(error_of(lambda: store.write(recorded)), RuntimeError)

        def failing(transaction: Transaction) -> None:
            nested(transaction)
            raise error

        assert store.write(nested)
        before = store.read(everything)
        assert len(before["events"]) == 1
        assert error_of(lambda: store.write(failing)) is error
        assert store.read(everything) == before
        store.write(recorded)
        assert chain_holds(store)

    def test_a_failed_write_leaves_no_gap_in_a_stream(self, store: Probe) -> None:
        error = Stop()

        def failing(transaction: Transaction) -> None:
            recorded(transaction)
            raise error

        for _ in range(3):
            store.write(recorded)
            assert error_of(lambda: store.write(failing)) is error
        assert [event.seq for event in store.events()] == [1, 2, 3]
        assert chain_holds(store)

    def test_a_read_is_one_consistent_view_while_others_write(self, store: Probe) -> None:
        store.write(filled)
        written = threading.Event()

        def change(transaction: Transaction) -> None:
            recorded(transaction)
            transaction.put_link(made_link("l-2", "u-1", "u-2"))

        def write() -> None:
            store.write(change)
            written.set()

        def work(reader: Reader) -> tuple[Any, Any]:
            first = everything(reader)
            thread.start()
            written.wait(0.3)  # A store may also make the writer wait until this read has ended.
            return first, everything(reader)

        thread = threading.Thread(target=write)
        first, second = store.read(work)
        thread.join()
        assert first == second
        assert len(list(store.events())) == len(first["events"]) + 1

    def test_threads_that_write_at_once_lose_nothing(self, store: Probe) -> None:
        written: list[Event] = []

        def write(name: int) -> None:
            for number in range(_WRITES_EACH):
                payload = {"who": name, "number": number}
                written.append(store.write(lambda tx, payload=payload: recorded(tx, payload=payload)))  # type: ignore[misc]

        assert in_threads(write) == []
        events = list(store.events())
        assert [event.seq for event in events] == list(range(1, THREADS * _WRITES_EACH + 1))
        assert sorted(written, key=lambda event: event.position) == events
        payloads = [event.payload or {} for event in events]
        for name in range(THREADS):
            numbers = [payload["number"] for payload in payloads if payload["who"] == name]
            assert numbers == list(range(_WRITES_EACH)), "each writer's own order is kept"
        assert chain_holds(store)

    def test_work_that_fails_among_the_writes_of_other_threads_is_undone_alone(self, store: Probe) -> None:
        outcomes: list[str | None] = []

        def write(name: int) -> None:
            for number in range(_WRITES_EACH // 5):
                id = f"{name}-{number}"
                fails = (name + number) % 3 == 0

                def work(transaction: Transaction, id: str = id, fails: bool = fails) -> None:
                    event = recorded(transaction, payload={"id": id})
                    put_at(transaction, made_unit(id), event.position)
                    if fails:
                        raise Stop

                try:
                    store.write(work)
                    outcomes.append(id)
                except Stop:
                    outcomes.append(None)

        assert in_threads(write) == []
        stored = sorted(id for id in outcomes if id)
        assert 0 < len(stored) < len(outcomes) == THREADS * (_WRITES_EACH // 5)
        assert [event.seq for event in store.events()] == list(range(1, len(stored) + 1))
        assert sorted(store.units(stored)) == stored
        assert sum(table == "units" for table, *_ in store.rows()) == len(stored)
        assert chain_holds(store)


@on_new_stores
class LogContract:
    def test_an_event_comes_back_as_it_was_written_whatever_its_names_are(self, store: Probe) -> None:
        for name in HOSTILE_NAMES:
            scope = Scope(org=name, project=name, worktree=name, task=name)
            event = recorded(
                store,
                scope=scope,
                actor=Actor.human(name),
                payload={"text": name, name: [name]},
                subject=name,
                key=name,
                session=name,
            )
            seen = [
                store.event(event.id),
                *store.events_of_subject(name),
                *store.events_of_scope(scope.key),
                store.event_for_key(scope.key, f"human:{name}", name),
            ]
            assert seen == [event] * 4, name[:40]
            assert store.head(event.stream) == (1, event.hash)
        assert chain_holds(store)

    def test_every_stream_has_its_own_numbers_and_head(self, store: Probe) -> None:
        scopes = [Scope(org=name, project=other) for name in ("acme", "acme-corp") for other in (None, "acme", "p")]
        for _ in range(3):
            for scope in scopes:
                recorded(store, scope=scope)
        heads = store.heads()
        for scope in scopes:
            events = list(store.events_of_scope(scope.key))
            stream = events[-1].stream
            assert (stream.org, stream.project) == (scope.org, scope.project)
            assert [event.seq for event in events] == [1, 2, 3]
            assert store.head(stream) == heads[stream] == (3, events[-1].hash)
        assert len(heads) == store.counts()["total"]["streams"] == len(scopes)

    def test_positions_follow_commit_order_over_all_streams(self, store: Probe) -> None:
        written: list[Event] = []
        for number in range(12):
            written.append(recorded(store, scope=Scope(org="acme", project=f"p-{number % 3}")))
            assert store.position() == written[-1].position
        assert list(store.events()) == written
        positions = [event.position for event in written]
        assert positions == sorted(set(positions))
        assert positions[0] > 0

    def test_events_are_paged_by_position(self, store: Probe) -> None:
        written = store.write(lambda transaction: [recorded(transaction) for _ in range(7)])
        seen: list[Event] = []
        while page := list(store.events(after=seen[-1].position if seen else 0, limit=3)):
            assert len(page) <= 3
            seen += page
        assert seen == written
        assert list(store.events(limit=0)) == []
        assert list(store.events(after=written[-1].position)) == []

    def test_a_key_belongs_to_its_scope_and_actor(self, store: Probe) -> None:
        event = recorded(store, key="k%_1")
        actor = str(event.actor)
        assert store.event_for_key(HERE.key, actor, "k%_1") == event
        assert store.event_for_key(HERE.key, actor, "kxy1") is None
        assert store.event_for_key(HERE.key, actor, "K%_1") is None
        assert store.event_for_key(HERE.key, "agent:coder-2", "k%_1") is None
        assert store.event_for_key(HERE.at(Level.PROJECT).key, actor, "k%_1") is None

    def test_events_of_a_scope_are_those_recorded_from_exactly_there(self, store: Probe) -> None:
        for scope in HERE.visible:
            for type in (EventType.LOGGED, EventType.UNIT_HELD):
                recorded(store, scope=scope, type=type)
        for scope in HERE.visible:
            assert [event.scope for event in store.events_of_scope(scope.key)] == [scope, scope]
            (held,) = store.events_of_scope(scope.key, [EventType.UNIT_HELD])
            assert [event.type for event in store.events_of_scope(scope.key, first=1)] == [EventType.LOGGED]
            assert held.type is EventType.UNIT_HELD

    def test_events_of_a_unit_come_in_order_and_from_every_stream(self, store: Probe) -> None:
        written = [
            recorded(store, subject="u-1", scope=Scope(org="acme", project=project)) for project in ("b", "a", None)
        ]
        for subject in ("u-", "u-11", "U-1", None):
            recorded(store, subject=subject)
        assert list(store.events_of_subject("u-1")) == written
        assert list(store.events_of_subject("u-1", after=written[0].position)) == written[1:]
        for last in (0, 1, len(written), 99):
            assert list(store.events_of_subject("u-1", last=last)) == written[max(0, len(written) - last) :]

    def test_the_newest_reason_that_holds_each_unit_back_is_found(self, store: Probe) -> None:
        for subject in ("u-1", "u-2", "u-1", "u-3"):
            recorded(store, subject=subject, type=EventType.UNIT_HELD)
            recorded(store, subject=subject)
        held = store.held(["u-1", "u-2", "u-"])
        assert {subject: event.seq for subject, event in held.items()} == {"u-1": 5, "u-2": 3}

    def test_a_text_is_searched_for_in_any_case_at_any_depth_of_a_payload(self, store: Probe) -> None:
        for name in HOSTILE_NAMES[4:]:
            text = f"<{name}>"
            event = recorded(store, payload={"a": [{"b": f"x {text} y"}]})
            assert list(store.events_containing(text)) == [event], name[:40]
        assert list(store.events_containing("<%%>")) == []
        scopes = [Scope(org=org, project=project) for org in ("a", "b") for project in ("p", "q", None)]
        events = [recorded(store, scope=scope, payload={"text": "Forget ME"}) for scope in scopes]
        assert list(store.events_containing("forget me")) == events
        assert list(store.events_containing("FORGET", Stream("a", "p"))) == [events[0], events[2]]

    def test_an_erased_payload_is_gone_and_its_hashes_stay(self, store: Probe) -> None:
        before = [recorded(store, payload={"text": "forget me"}) for _ in range(3)]
        store.erase_payload(before[1].id)
        after = list(store.events())
        assert after == [before[0], replace(before[1], body=None, salt=None), before[2]]
        assert after[1].erased
        erasure = {"links": [], "units": [], "events": [before[1].id]}
        recorded(store, type=EventType.UNIT_ERASED, payload=erasure)
        assert chain_holds(store)
        assert list(store.events_containing("forget me")) == [before[0], before[2]]

    def test_the_log_is_read_back_by_scope_task_actor_type_and_time(self, store: Probe) -> None:
        for name in HOSTILE_NAMES:
            there = Scope(org="acme", project=name, worktree=name, task=name)
            written = [
                recorded(store, scope=there.at(level), type=type, actor=actor, at=START + timedelta(seconds=number))
                for number, (level, type, actor) in enumerate(
                    [
                        (Level.TASK, EventType.LOGGED, Actor.human(name)),
                        (Level.WORKTREE, EventType.UNIT_HELD, Actor.human("b")),
                        (Level.PROJECT, EventType.LOGGED, Actor.human("b")),
                    ]
                )
            ]
            in_task, in_worktree, in_project = written
            project = there.at(Level.PROJECT)
            assert store.events_back(project, limit=9) == written[::-1], name[:40]
            assert store.events_back(project, limit=1, before=in_project.position) == [in_worktree]
            assert store.events_back(project, limit=9, task=name) == store.events_back(there.key, limit=9) == [in_task]
            assert store.events_back(there.at(Level.WORKTREE), limit=9) == [in_worktree, in_task]
            assert store.events_back(project.key, limit=9) == [in_project]
            assert store.events_back(project, limit=9, actor=f"human:{name}", task=name) == [in_task]
            assert store.events_back(project, limit=9, types=[EventType.UNIT_HELD]) == [in_worktree]
            assert {project, there, there.at(Level.WORKTREE)} <= set(store.scopes())
            since = micros(in_project.recorded_at)
            assert store.events_back(project, limit=9, since=since) == [in_project]
            assert [row[1:4] for row in store.activity_since(project, since)] == [(project, "logged", 1)]

    def test_a_task_is_stuck_until_somebody_clears_it(self, store: Probe) -> None:
        stuck = {}
        for subject in ("loops:a", "loops:b", "loops:c"):
            stuck[subject] = recorded(store, type=EventType.TASK_STUCK, subject=subject)
            recorded(store, type=EventType.ATTEMPTS_CLEARED, subject=subject, payload={"unstuck": subject == "loops:b"})
        again = recorded(store, type=EventType.TASK_STUCK, subject="loops:a")
        assert store.stuck_tasks(HERE.at(Level.PROJECT), 9) == [again, stuck["loops:c"]]
        assert store.stuck_tasks(HERE.at(Level.PROJECT), 1) == [again]

    def test_ingested_entries_are_counted_and_those_that_wait_are_found(self, store: Probe) -> None:
        actor, since = "agent:coder-1", micros(START)
        taken = {"data": {"ingest": {"waiting": True}}}
        waiting = [recorded(store, session="s", payload=taken) for _ in range(3)]
        recorded(store, session="other", payload=taken, at=START - timedelta(seconds=1))
        recorded(store, session="s", payload={"data": {"ingest": {"waiting": False}}})
        recorded(store, session="s")
        recorded(store, key=f"key:{waiting[1].id.replace('-', '')}")
        assert store.ingested_since(HERE.key, actor, "s", since) == 4
        assert store.ingested_since(HERE.key, actor, "other", since) == 0
        assert store.ingested_since(WIDE.key, actor, "s", since) == 0
        assert store.waiting_entries(HERE.key, actor, since, 9) == [waiting[0], waiting[2]]
        assert store.waiting_entries(HERE.key, actor, since, 1) == [waiting[0]]
        assert store.waiting_entries(HERE.key, "agent:other", since, 9) == []

    def test_an_event_is_found_by_the_beginning_of_its_id_or_of_its_last_group(self, store: Probe) -> None:
        written = [recorded(store) for _ in range(5)]
        for event in written:
            assert store.events_named(event.id[:-1], 9) == store.events_named(event.id[24:32], 9) == [event]
        assert store.events_named(written[0].id[:6], 9) == written
        assert store.events_named("~", 9) == []

    def test_units_and_links_are_found_by_the_beginning_of_an_id_or_of_its_last_group(self, store: Probe) -> None:
        ids = [new_id() for _ in range(3)]
        for id in ids:
            put(store, made_unit(id))
        store.put_link(made_link(ids[2], ids[0], ids[1]))
        for id in ids:
            for part in (id[:-1], id[24:32]):
                assert [unit.id for unit in store.units_named(part, 9)] == [id]
        assert len(store.units_named(ids[0][:6], 2)) == 2
        assert [link.id for link in store.links_named(ids[2][24:30], 9)] == [ids[2]]
        assert store.links_named(ids[0][24:], 9) == []

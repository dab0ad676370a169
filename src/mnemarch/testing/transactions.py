"""The store itself: what a write and a read promise, whatever they are about, also to many threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from mnemarch import Event, Scope, Status
from mnemarch.model.decision import RelationType
from mnemarch.model.unit import Use
from mnemarch.stores.sql.reader import Reader
from mnemarch.stores.sql.transaction import Transaction
from mnemarch.testing.builders import (
    SHOP,
    Probe,
    Stop,
    chain_holds,
    error_of,
    everything,
    filled,
    made_link,
    made_test,
    made_unit,
    on_new_stores,
    put,
    put_at,
    recorded,
    rule_id,
)

_THREADS, _WRITES_EACH = 16, 50


def _changed(transaction: Transaction) -> None:
    """Change or remove everything that `filled` stored."""
    for event in list(transaction.events()):
        transaction.erase_payload(event.id)
    put(transaction, made_unit("u-1", content="changed", status=Status.ARCHIVED))
    recorded(transaction, key="k-2")
    recorded(transaction, scope=Scope(org="new", project="new"))
    transaction.put_link(made_link("l-1", "u-1", "u-2", open=False))
    transaction.put_test(made_test("test_b", False, "e-2"))
    transaction.put_use(Use(unit_id="u-1", task_key="task", blamed=True))
    transaction.drop_uses("u-1")
    transaction.drop_link("l-1")
    transaction.drop_relation("r-1", RelationType.REFINES, "r-2")
    transaction.drop_code_rules([rule_id("c-1")])
    transaction.clear_projections()
    put(transaction, made_unit("u-3"), key="text-key", skeleton="skeleton-key")


def _in_threads(run: Callable[[int], None]) -> list[BaseException]:
    """Run something in many threads at once, each with its number; gives what they raised."""
    start = threading.Barrier(_THREADS)
    errors: list[BaseException] = []

    def begin(number: int) -> None:
        start.wait()
        error = error_of(lambda: run(number))
        if error is not None:
            errors.append(error)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


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
        require_undone(_changed)

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
            written.wait(0.3)  # A store may also let the writer wait until this view is done with.
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

        assert _in_threads(write) == []
        events = list(store.events())
        assert [event.seq for event in events] == list(range(1, _THREADS * _WRITES_EACH + 1))
        assert sorted(written, key=lambda event: event.position) == events
        payloads = [event.payload or {} for event in events]
        for name in range(_THREADS):
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

        assert _in_threads(write) == []
        stored = sorted(id for id in outcomes if id)
        assert 0 < len(stored) < len(outcomes) == _THREADS * (_WRITES_EACH // 5)
        assert [event.seq for event in store.events()] == list(range(1, len(stored) + 1))
        assert sorted(store.units(stored)) == stored
        assert sum(table == "units" for table, *_ in store.rows()) == len(stored)
        assert chain_holds(store)

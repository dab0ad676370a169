"""Builders of events, units and links for tests of stores, and a probe that calls a store's verbs directly."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar, cast
from uuid import NAMESPACE_OID, uuid5

from mnemarch import Actor, Citation, Event, EventType, Kind, Level, Scope, Status, Unit
from mnemarch.log.audit import checked_chain
from mnemarch.log.chain import entry_hash, payload_hash
from mnemarch.model.caller import Stream
from mnemarch.model.decision import Relation, RelationType
from mnemarch.model.json_text import canonical_json
from mnemarch.model.stamps import new_id
from mnemarch.model.testrun import TestRecord
from mnemarch.model.unit import CitationKind, DecayPolicy, Link, LinkType, Provenance, Signal, Trust, Use
from mnemarch.ports import Store
from mnemarch.stores.sql.queries import CODE_RULE
from mnemarch.stores.sql.reader import Reader
from mnemarch.stores.sql.transaction import Transaction
from mnemarch.stores.sqlite import SqliteStore

# Names with characters that databases, paths or patterns treat specially. A store must not (R3).
HOSTILE_NAMES = (
    *("acme", "acme-corp", "acm_", "acm%", "%", "_", "a/b", "a::b", "a:b", "a / b"),
    *("quote'quote", 'double"double', "back\\slash", "semi;--drop", "nul\x00nul", "new\nline", " spaced "),
    *("emoji🧠👩‍💻", "한국어", "é", "e\u0301", "null", "[]", "x" * 10_000),
)

START = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
HERE = Scope(org="acme", project="shop", worktree="main", task="T-1")
WIDE = HERE.at(Level.PROJECT)
SHOP = Stream("acme", "shop")
_SALT = b"0123456789abcdef"
THREADS = 16


def recorded(
    transaction: Transaction,
    *,
    scope: Scope = HERE,
    payload: dict[str, Any] | None = None,
    at: datetime = START,
    **fields: Any,
) -> Event:
    """Append one correctly chained event. `fields` are its type, actor, session, subject and key."""
    stream, clock = transaction.own(Stream(scope.org, scope.project))
    seq, previous = transaction.head(stream)
    body = canonical_json(payload or {})
    usual: dict[str, Any] = {
        "type": EventType.LOGGED,
        "actor": Actor.agent("coder-1"),
        "session": None,
        "subject": None,
        "key": None,
    }
    event = Event(
        id=new_id(),
        stream=stream,
        seq=seq + 1,
        scope=scope,
        occurred_at=at,
        recorded_at=at + timedelta(microseconds=1),
        body=body,
        salt=_SALT,
        payload_hash=payload_hash(_SALT, body.encode()),
        hash=b"",
        clock=clock,
        **(usual | fields),
    )
    return transaction.append(event, entry_hash(previous, event))


def made_unit(
    id: str = "", *, scope: Scope = HERE, content: str = "Checkout retries three times", **fields: Any
) -> Unit:
    """A unit with all fields of a verified unit. `fields` override some."""
    usual: dict[str, Any] = {
        "kind": Kind.FACT,
        "domain": "global",
        "status": Status.VERIFIED,
        "trust": Trust(
            confidence=0.6,
            since=START,
            decay_policy=DecayPolicy.STABLE,
            validation_source=Signal.TESTS_PASSED,
            last_validated_at=START,
            validation_count=1,
        ),
        "importance": 0.5,
        "citations": (Citation.test("tests/test_a.py::test_b"),),
        "provenance": (Provenance(actor=Actor.agent("coder-1"), scope=scope, event_id="e-1", at=START, session="s-1"),),
        "occurred_at": START,
        "recorded_at": START,
    }
    return Unit(id=id or new_id(), content=content, scope=scope, **(usual | fields))


def made_link(id: str, source: str, target: str, type: LinkType = LinkType.CONTRADICTS, *, open: bool = True) -> Link:
    return Link(id=id, type=type, source=source, target=target, weight=0.5, note="3 / 5", at=START, open=open)


def put(transaction: Transaction, unit: Unit, *, key: str | None = None, skeleton: str | None = None) -> Unit:
    """Store a unit together with an event, so that the change has a position."""
    event = recorded(transaction, subject=unit.id, scope=unit.scope)
    transaction.put_unit(unit, canonical_key=key, topic_key=skeleton, searchable_at=event.position)
    return unit


def put_at(transaction: Transaction, unit: Unit, position: int | None) -> None:
    """Store a unit as changed at a position. None: search need not see the change."""
    transaction.put_unit(unit, canonical_key=None, topic_key=None, searchable_at=position)


def made_test(
    name: str, passed: bool = True, event_id: str = "e-1", *, stream: Stream = SHOP, place: str = "", **more: Any
) -> TestRecord:
    """The record of a test after one run."""
    more.setdefault("witnessed", True)
    return TestRecord(stream=stream, name=name, place=place, passed=passed, at=START, event_id=event_id, **more)


def rule_id(name: str) -> str:
    return str(uuid5(NAMESPACE_OID, name))


def made_rule(name: str, project: str = "shop") -> dict[str, Any]:
    """A row of `memory_code_rules`."""
    numbers = dict.fromkeys(("observation_count", "success_count", "failure_count", "created_at", "updated_at"), 1)
    shares = {"confidence": 0.5, "min_confidence_threshold": 0.3, "promotion_threshold": 0.8}
    texts = {"id": rule_id(name), "project_id": project, "languages": '["python"]'}
    return dict.fromkeys(CODE_RULE, name) | texts | numbers | shares


def filled(transaction: Transaction) -> None:
    """Store one record of each kind."""
    put(transaction, made_unit("u-1"), key="text-key", skeleton="skeleton-key")
    put(transaction, made_unit("u-2", content="Checkout retries five times"), skeleton="skeleton-key")
    recorded(transaction, key="k-1", payload={"text": "staged"})
    transaction.put_link(made_link("l-1", "u-1", "u-2"))
    transaction.put_test(made_test("test_b"))
    transaction.put_use(Use(unit_id="u-1", task_key="task", handed=True))
    transaction.put_relation(Relation(source="r-1", type=RelationType.REFINES, target="r-2", id="e-1"))
    transaction.put_code_rule(made_rule("c-1"))


def changed(transaction: Transaction) -> None:
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


def everything(reader: Reader) -> dict[str, Any]:
    """Everything that a reader can see, to compare two states."""
    events = list(reader.events())
    return {
        "events": events,
        "position": reader.position(),
        "ids": [reader.event_at(event.position) for event in events],
        "heads": reader.heads(),
        "keys": [reader.event_for_key(event.scope.key, str(event.actor), event.key) for event in events if event.key],
        "rows": list(reader.rows()),
        "searchable": reader.searchable_after(0, 10_000),
        "counts": reader.counts(),
        "texts": reader.units_with_text([HERE.key], "text-key"),
        "skeletons": reader.units_of_topic([HERE.key], "skeleton-key", 10),
        "citing": reader.units_citing([HERE.key], CitationKind.TEST, ["tests/test_a.py::test_b"]),
        "newest citing": reader.newest_citing([HERE.key], CitationKind.TEST, "tests/test_a.py::test_b", 1),
        "listed": reader.units_in([HERE.key]),
        "of scope": list(reader.events_of_scope(HERE.key)),
        "of subject": list(reader.events_of_subject("u-1")),
        "links": [reader.links_of("u-1"), reader.open_links([HERE.key], LinkType.CONTRADICTS)],
        "relations": [reader.relations_from(["r-1"]), reader.relations_to(["r-2"])],
        "uses": [reader.uses_of_unit("u-1"), reader.uses_of_task("task"), reader.code_met("task")],
        "held": reader.held(["u-1", "u-2"]),
        "tests": reader.tests(SHOP, ["test_b"]),
        "rules": reader.code_rules("shop"),
    }


def chain_holds(store: Store) -> bool:
    return store.read(lambda reader: checked_chain(reader.events(), reader.heads())).ok


# The probe: a store whose reads and writes are called directly


T = TypeVar("T")


class Probe(Transaction, SqliteStore):
    """The type of a store that is also its own reader and transaction. Reads return lists instead of iterators.

    Only the type is used: `_Probe` implements it and passes each call on.
    """


class _Probe:
    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        if hasattr(Store, name):
            return getattr(self._store, name)
        run = self._store.read if hasattr(Reader, name) else self._store.write

        def call(*arguments: Any, **options: Any) -> Any:
            return run(lambda view: _whole(getattr(view, name)(*arguments, **options)))

        return call


def probe_of(store: Store) -> Probe:
    """A probe of the store."""
    return cast("Probe", _Probe(store))


def _whole(result: Any) -> Any:
    """The result in a form that can be used after its transaction has ended."""
    return list(result) if isinstance(result, Iterator) else result


def on_new_stores(tests: type[T]) -> type[T]:
    """Decorate a class of tests: each test gets a probe of a new store, which is closed after it."""
    for name, test in list(vars(tests).items()):
        if name.startswith("test_"):
            setattr(tests, name, _on_new_store(test))
    return tests


def _on_new_store(test: Callable[[Any, Probe], None]) -> Callable[[Any, Path], None]:
    def run(self: Any, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        try:
            test(self, probe_of(store))
        finally:
            store.close()

    run.__name__, run.__qualname__, run.__doc__ = test.__name__, test.__qualname__, test.__doc__
    return run


class Stop(Exception):
    """The error that a test's own work raises."""


def error_of(call: Callable[[], object]) -> BaseException | None:
    """The error that the call raised, or None."""
    try:
        call()
    except BaseException as error:  # noqa: BLE001 - an interrupt, too, must come out unchanged
        return error
    return None


def in_threads(run: Callable[[int], None]) -> list[BaseException]:
    """Call `run` in many threads at once, each with its number. Returns the errors that they raised."""
    start = threading.Barrier(THREADS)
    errors: list[BaseException] = []

    def begin(number: int) -> None:
        start.wait()
        error = error_of(lambda: run(number))
        if error is not None:
            errors.append(error)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors

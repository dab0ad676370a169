"""The contract that every store must keep, as a test class: subclass it, say how a store is made, and run pytest.

    from mnemarch.testing import StoreContract

    class TestMyStore(StoreContract):
        def make_store(self, tmp_path):
            return MyStore(tmp_path / "memory")

Nothing here imports pytest: a runner that passes `tmp_path` to the test methods is enough.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from random import Random
from typing import TYPE_CHECKING

from mnemarch.errors import Conflict
from mnemarch.log.chain import checked_chain, entry_hash, payload_hash
from mnemarch.model.caller import Actor, Level, Scope, Stream
from mnemarch.model.citation import Citation, CitationKind
from mnemarch.model.decision import Relation, RelationType, Standing
from mnemarch.model.event import Event, EventType
from mnemarch.model.json_text import canonical_json
from mnemarch.model.stamps import micros, new_id
from mnemarch.model.unit import (
    DecayPolicy,
    Kind,
    Link,
    LinkType,
    Provenance,
    Signal,
    Status,
    Trust,
    Unit,
    Use,
    unit_to_json,
)
from mnemarch.model.value import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Any

    from mnemarch.ports import Store
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.stores.sql.transaction import Transaction

__all__ = ["HOSTILE_NAMES", "StoreContract", "made_link", "made_unit", "recorded"]

# Names that only look special: every character of an id is only a character (R3).
HOSTILE_NAMES = (
    "acme",
    "acme-corp",
    "acm_",
    "acm%",
    "%",
    "_",
    "a/b",
    "a::b",
    "a:b",
    "a / b",
    "quote'quote",
    'double"double',
    "back\\slash",
    "semi;--drop",
    "nul\x00nul",
    "new\nline",
    " spaced ",
    "emoji🧠👩‍💻",
    "한국어",
    "é",
    "e\u0301",
    "null",
    "[]",
    "x" * 10_000,
)

_START = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
_HERE = Scope(org="acme", project="shop", worktree="main", task="T-1")
_THREADS, _WRITES_EACH = 16, 50


def recorded(
    transaction: Transaction,
    *,
    scope: Scope = _HERE,
    actor: Actor | None = None,
    type: EventType = EventType.LOGGED,
    payload: dict[str, Any] | None = None,
    subject: str | None = None,
    key: str | None = None,
    session: str | None = None,
    at: datetime = _START,
) -> Event:
    """Append one well-chained event."""
    stream = Stream(scope.org, scope.project)
    seq, previous = transaction.head(stream)
    salt = b"0123456789abcdef"
    body = canonical_json(payload or {})
    event = Event(
        id=new_id(),
        stream=stream,
        seq=seq + 1,
        type=type,
        actor=actor or Actor.agent("coder-1"),
        scope=scope,
        session=session,
        subject=subject,
        key=key,
        occurred_at=at,
        recorded_at=at + timedelta(microseconds=1),
        body=body,
        salt=salt,
        payload_hash=payload_hash(salt, body.encode()),
        hash=b"",
    )
    return transaction.append(event, entry_hash(previous, event))


def made_unit(
    id: str = "", *, scope: Scope = _HERE, content: str = "Checkout retries three times", **fields: Any
) -> Unit:
    """A unit with every field set that its life could set; `fields` change some."""
    given: dict[str, Any] = {
        "kind": Kind.FACT,
        "domain": "global",
        "status": Status.VERIFIED,
        "trust": Trust(
            confidence=0.6,
            since=_START,
            decay_policy=DecayPolicy.STABLE,
            validation_source=Signal.TESTS_PASSED,
            last_validated_at=_START,
            validation_count=1,
        ),
        "importance": 0.5,
        "citations": (Citation.test("tests/test_a.py::test_b"),),
        "provenance": (
            Provenance(actor=Actor.agent("coder-1"), scope=scope, event_id="e-1", at=_START, session="s-1"),
        ),
        "occurred_at": _START,
        "recorded_at": _START,
    }
    return Unit(id=id or new_id(), content=content, scope=scope, **(given | fields))


def made_link(id: str, source: str, target: str, type: LinkType = LinkType.CONTRADICTS, *, open: bool = True) -> Link:
    return Link(id=id, type=type, source=source, target=target, weight=0.5, note="3 / 5", at=_START, open=open)


def _put(transaction: Transaction, unit: Unit, *, key: str | None = None, skeleton: str | None = None) -> Unit:
    """Store a unit with an event of its own, so that its change has a position."""
    event = recorded(transaction, subject=unit.id, scope=unit.scope)
    transaction.put_unit(unit, canonical_key=key, skeleton_key=skeleton, searchable_at=event.position)
    return unit


def _decide(transaction: Transaction, unit: Unit, standing: Standing) -> None:
    transaction.put_unit(unit, canonical_key=None, skeleton_key=None, searchable_at=None, standing=standing)


def _put_links(transaction: Transaction, links: list[Link]) -> None:
    for link in links:
        transaction.put_link(link)


def _put_uses(transaction: Transaction, uses: list[Use]) -> None:
    for use in uses:
        transaction.put_use(use)


def _everything(reader: Reader) -> dict[str, Any]:
    """All that a reader can see, for comparing before with after."""
    events = list(reader.events())
    return {
        "events": events,
        "position": reader.position(),
        "heads": reader.heads(),
        "keys": [reader.event_for_key(event.scope.key, str(event.actor), event.key) for event in events if event.key],
        "rows": list(reader.rows()),
        "searchable": reader.searchable_after(0, 10_000),
        "counts": reader.counts(),
        "texts": reader.units_with_text([_HERE.key], "text-key"),
        "skeletons": reader.units_with_skeleton([_HERE.key], "skeleton-key", 10),
        "citing": reader.units_citing([_HERE.key], CitationKind.TEST, "tests/test_a.py::test_b"),
        "listed": reader.units_in([_HERE.key]),
        "of scope": list(reader.events_of_scope(_HERE.key)),
        "of subject": list(reader.events_of_subject("u-1")),
        "links": [reader.links_of("u-1"), reader.open_links([_HERE.key], LinkType.CONTRADICTS)],
        "relations": [reader.relations_from(["r-1"]), reader.relations_to(["r-2"])],
        "uses": [reader.uses_of_unit("u-1"), reader.uses_of_task("task")],
    }


def _filled(transaction: Transaction) -> None:
    """One of everything."""
    first = _put(transaction, made_unit("u-1"), key="text-key", skeleton="skeleton-key")
    second = _put(transaction, made_unit("u-2", content="Checkout retries five times"), skeleton="skeleton-key")
    recorded(transaction, key="k-1", payload={"text": "staged"})
    transaction.put_link(made_link("l-1", first.id, second.id))
    transaction.put_test(Stream("acme", "shop"), "test_b", True, _START, "e-1")
    transaction.put_use(Use(unit_id=first.id, task_key="task", handed=True))
    transaction.put_relation(Relation(source="r-1", type=RelationType.REFINES, target="r-2", id="e-1"))


def _raised(error: BaseException, call: Callable[[], object]) -> bool:
    """Whether the call raised exactly this error."""
    try:
        call()
    except BaseException as caught:  # noqa: BLE001 - also what is not an Exception must come out unchanged
        return caught is error
    return False


class _Stop(Exception):
    """What a test's own work raises."""


class _Model:
    """What a store keeps, in one dictionary: the oracle that every store is compared with."""

    def __init__(self) -> None:
        self.tables: dict[tuple[str, ...], Any] = {}

    def put_unit(self, unit: Unit, **_: object) -> None:
        self.tables["1 units", unit.id] = unit

    def put_link(self, link: Link) -> None:
        self.tables["2 links", link.id] = link

    def drop_link(self, link_id: str) -> None:
        self.tables.pop(("2 links", link_id), None)

    def put_relation(self, relation: Relation) -> None:
        self.tables["3 relations", relation.source, str(relation.type), relation.target] = [relation.id]

    def drop_relation(self, source: str, type: str, target: str) -> None:
        self.tables.pop(("3 relations", source, str(type), target), None)

    def put_test(self, stream: Stream, name: str, passed: bool, at: datetime, event_id: str) -> None:
        self.tables["4 tests", stream.org, stream.project or "", name] = [int(passed), micros(at), event_id]

    def drop_tests(self, event_ids: list[str]) -> None:
        for key in [key for key, row in self.tables.items() if key[0] == "4 tests" and row[2] in event_ids]:
            del self.tables[key]

    def put_use(self, use: Use) -> None:
        key = ("5 uses", use.unit_id, use.task_key)
        flags = (use.handed, use.used, use.credited, use.blamed)
        before = self.tables.get(key, [0, 0, 0, 0])
        self.tables[key] = [int(flag or had) for flag, had in zip(flags, before, strict=True)]

    def drop_uses(self, unit_id: str) -> None:
        for key in [key for key in self.tables if key[:2] == ("5 uses", unit_id)]:
            del self.tables[key]

    def with_text(self, content: str) -> list[Unit]:
        units = [unit for (table, *_), unit in sorted(self.tables.items(), key=itemgetter(0)) if table == "1 units"]
        return [unit for unit in units if unit.content == content]

    def links_of(self, unit_id: str) -> list[Link]:
        links = [link for (table, *_), link in sorted(self.tables.items(), key=itemgetter(0)) if table == "2 links"]
        return [link for link in links if unit_id in (link.source, link.target)]

    def rows(self) -> Iterator[str]:
        for (table, *key), row in sorted(self.tables.items(), key=itemgetter(0)):
            if table == "1 units":
                yield canonical_json(unit_to_json(row))
            elif table == "2 links":
                yield canonical_json(row.to_json())
            else:
                yield canonical_json([*key, *row])


class StoreContract:
    """Every promise of `mnemarch.ports.Store`, `Reader` and `Transaction`."""

    def make_store(self, tmp_path: Path) -> Store:
        """A new, empty store; `tmp_path` is a folder of the test's own."""
        raise NotImplementedError

    @contextmanager
    def _opened(self, tmp_path: Path) -> Iterator[Store]:
        store = self.make_store(tmp_path)
        try:
            yield store
        finally:
            store.close()

    # The store itself

    def test_a_new_store_holds_nothing(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            seen = store.read(_everything)
            assert (seen["events"], seen["position"], seen["rows"], seen["searchable"]) == ([], 0, [], [])
            assert store.read(lambda reader: reader.head(Stream("acme", "shop"))) == (0, b"")
            assert store.read(lambda reader: reader.event("nothing")) is None
            assert store.read(lambda reader: reader.unit("nothing")) is None
            assert store.read(lambda reader: reader.link("nothing")) is None
            assert store.read(lambda reader: reader.units([])) == {}
            assert store.read(lambda reader: reader.units_in([])) == []
            total = store.read(lambda reader: reader.counts())["total"]
            assert total == {"events": 0, "streams": 0, "open_conflicts": 0}

    def test_a_store_names_itself_and_its_format(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            assert isinstance(store.id, str)
            assert store.id
            assert store.id == store.id
            assert store.format_version >= 1
            assert store.writable is True
            assert store.check() is None
            assert store.query("size")[0][0] >= 0

    def test_a_write_gives_what_its_work_gives(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            given = object()
            assert store.write(lambda _: given) is given
            assert store.read(lambda _: given) is given
            assert store.write(lambda _: given, durable=True) is given

    def test_a_write_sees_its_own_changes_and_later_reads_see_them_too(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:

            def work(transaction: Transaction) -> dict[str, Any]:
                _filled(transaction)
                return _everything(transaction)

            inside = store.write(work)
            assert inside == store.read(_everything)
            assert len(inside["events"]) == 3
            assert len(inside["rows"]) == 6

    # All or nothing

    def test_an_error_inside_a_write_leaves_nothing_of_it_and_comes_out_unchanged(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            errors: list[BaseException] = [_Stop("no"), ValueError("no"), KeyError("no"), OSError("no")]
            errors += [KeyboardInterrupt(), AssertionError("no")]
            before = store.read(_everything)
            for error in errors:

                def work(transaction: Transaction, error: BaseException = error) -> None:
                    _filled(transaction)
                    raise error

                assert _raised(error, lambda work=work: store.write(work))  # type: ignore[misc]
                assert store.read(_everything) == before
            assert before["events"] == []

    def test_an_error_undoes_changes_and_removals_of_what_was_there_before(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            store.write(_filled)
            before = store.read(_everything)

            def work(transaction: Transaction) -> None:
                for event in list(transaction.events()):
                    transaction.erase_payload(event.id)
                _put(transaction, made_unit("u-1", content="changed", status=Status.ARCHIVED))
                recorded(transaction, key="k-2")
                recorded(transaction, scope=Scope(org="new", project="new"))
                transaction.put_link(made_link("l-1", "u-1", "u-2", open=False))
                transaction.put_test(Stream("acme", "shop"), "test_b", False, _START, "e-2")
                transaction.put_use(Use(unit_id="u-1", task_key="task", blamed=True))
                transaction.drop_uses("u-1")
                transaction.drop_link("l-1")
                transaction.drop_relation("r-1", RelationType.REFINES, "r-2")
                transaction.clear_projections()
                _filled(transaction)
                raise _Stop

            assert not _raised(_Stop(), lambda: store.write(work))
            assert store.read(_everything) == before
            uses = store.read(lambda reader: reader.uses_of_unit("u-1"))
            assert uses == [Use(unit_id="u-1", task_key="task", handed=True)]
            assert store.read(lambda reader: reader.test_passed(Stream("acme", "shop"), "test_b"))
            assert store.read(lambda reader: reader.head(Stream("new", "new"))) == (0, b"")

    def test_a_write_inside_a_write_is_refused_and_changes_nothing_of_the_outer_one(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:

            def nested(transaction: Transaction) -> bool:
                recorded(transaction)
                try:
                    store.write(recorded)
                except RuntimeError:
                    return True
                return False

            def failing(transaction: Transaction) -> None:
                nested(transaction)
                raise _Stop

            assert store.write(nested)
            before = store.read(_everything)
            assert len(before["events"]) == 1
            assert not _raised(_Stop(), lambda: store.write(failing))
            assert store.read(_everything) == before
            store.write(recorded)
            assert store.read(lambda reader: checked_chain(reader.events(), reader.heads())).ok

    def test_a_failed_write_leaves_no_hole_in_a_stream(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:

            def failing(transaction: Transaction) -> None:
                recorded(transaction)
                raise _Stop

            for _ in range(3):
                store.write(recorded)
                assert not _raised(_Stop(), lambda: store.write(failing))
            events = list(store.read(lambda reader: list(reader.events())))
            assert [event.seq for event in events] == [1, 2, 3]
            assert store.read(lambda reader: checked_chain(reader.events(), reader.heads())).ok

    def test_a_read_is_one_consistent_view_while_others_write(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            store.write(_filled)
            written = threading.Event()

            def write() -> None:
                store.write(_changed)
                written.set()

            def _changed(transaction: Transaction) -> None:
                recorded(transaction)
                transaction.put_link(made_link("l-2", "u-1", "u-2"))

            def work(reader: Reader) -> tuple[Any, Any]:
                first = _everything(reader)
                thread.start()
                written.wait(0.3)  # A store may also let the writer wait until this view is done with.
                return first, _everything(reader)

            thread = threading.Thread(target=write)
            first, second = store.read(work)
            thread.join()
            assert first == second
            assert len(store.read(_everything)["events"]) == len(first["events"]) + 1

    # The log

    def test_an_event_comes_back_as_it_was_written_whatever_its_names_are(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            for name in HOSTILE_NAMES:
                scope = Scope(org=name, project=name, worktree=name, task=name)
                event = store.write(
                    lambda transaction, name=name, scope=scope: recorded(  # type: ignore[misc]
                        transaction,
                        scope=scope,
                        actor=Actor.human(name),
                        payload={"text": name, name: [name]},
                        subject=name,
                        key=name,
                        session=name,
                    )
                )
                seen = [
                    store.read(lambda reader, id=event.id: reader.event(id)),  # type: ignore[misc]
                    *store.read(lambda reader, name=name: list(reader.events_of_subject(name))),  # type: ignore[misc]
                    *store.read(lambda reader, scope=scope: list(reader.events_of_scope(scope.key))),  # type: ignore[misc]
                    store.read(
                        lambda reader, name=name, scope=scope: reader.event_for_key(  # type: ignore[misc]
                            scope.key, f"human:{name}", name
                        )
                    ),
                ]
                assert seen == [event] * 4, name[:40]
                assert store.read(lambda reader, name=name: reader.head(Stream(name, name))) == (  # type: ignore[misc]
                    1,
                    event.hash,
                )
            assert store.read(lambda reader: checked_chain(reader.events(), reader.heads())).ok

    def test_every_stream_has_its_own_numbers_and_head(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            scopes = [Scope(org=name, project=other) for name in ("acme", "acme-corp") for other in (None, "acme", "p")]
            for _ in range(3):
                for scope in scopes:
                    store.write(lambda transaction, scope=scope: recorded(transaction, scope=scope))  # type: ignore[misc]
            for scope in scopes:
                stream = Stream(scope.org, scope.project)
                events = store.read(lambda reader, s=scope: list(reader.events_of_scope(s.key)))  # type: ignore[misc]
                assert [event.seq for event in events] == [1, 2, 3]
                head = store.read(lambda reader, stream=stream: reader.head(stream))  # type: ignore[misc]
                assert head == (3, events[-1].hash)
            assert store.read(lambda reader: reader.counts())["total"]["streams"] == len(scopes)
            heads = store.read(lambda reader: reader.heads())
            assert set(heads) == {Stream(scope.org, scope.project) for scope in scopes}
            for stream, head in heads.items():
                assert store.read(lambda reader, stream=stream: reader.head(stream)) == head  # type: ignore[misc]

    def test_positions_follow_commit_order_over_all_streams(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            written: list[Event] = []
            for number in range(12):
                scope = Scope(org="acme", project=f"p-{number % 3}")
                event = store.write(lambda transaction, scope=scope: recorded(transaction, scope=scope))  # type: ignore[misc]
                assert store.read(lambda reader: reader.position()) == event.position
                written.append(event)
            assert store.read(lambda reader: list(reader.events())) == written
            positions = [event.position for event in written]
            assert positions == sorted(set(positions))
            assert positions[0] > 0

    def test_events_are_paged_by_position(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            written = store.write(lambda transaction: [recorded(transaction) for _ in range(7)])
            seen: list[Event] = []
            position = 0
            while page := store.read(
                lambda reader, after=position: list(reader.events(after=after, limit=3))  # type: ignore[misc]
            ):
                assert len(page) <= 3
                seen += page
                position = page[-1].position
            assert seen == written
            assert store.read(lambda reader: list(reader.events(limit=0))) == []
            assert store.read(lambda reader: list(reader.events(after=written[-1].position))) == []

    def test_a_key_is_found_only_for_its_own_scope_and_actor(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            event = store.write(lambda transaction: recorded(transaction, key="k%_1"))
            actor = str(event.actor)

            def found(scope_key: str, actor: str, key: str) -> Event | None:
                return store.read(lambda reader: reader.event_for_key(scope_key, actor, key))

            assert found(_HERE.key, actor, "k%_1") == event
            assert found(_HERE.key, actor, "kxy1") is None
            assert found(_HERE.key, actor, "K%_1") is None
            assert found(_HERE.key, "agent:coder-2", "k%_1") is None
            assert found(_HERE.at(Level.PROJECT).key, actor, "k%_1") is None

    def test_events_of_a_scope_are_those_recorded_from_exactly_there(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            for scope in _HERE.visible:
                for type in (EventType.LOGGED, EventType.UNIT_HELD):
                    store.write(lambda tx, scope=scope, type=type: recorded(tx, scope=scope, type=type))  # type: ignore[misc]
            for scope in _HERE.visible:
                events = store.read(lambda reader, s=scope: list(reader.events_of_scope(s.key)))  # type: ignore[misc]
                assert [event.scope for event in events] == [scope, scope]
                held = store.read(
                    lambda reader, s=scope: list(reader.events_of_scope(s.key, [EventType.UNIT_HELD]))  # type: ignore[misc]
                )
                assert [event.type for event in held] == [EventType.UNIT_HELD]

    def test_events_of_a_unit_come_in_order_and_from_every_stream(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            written = store.write(
                lambda tx: [
                    recorded(tx, subject="u-1", scope=Scope(org="acme", project=project))
                    for project in ("b", "a", None)
                ]
            )
            store.write(lambda tx: [recorded(tx, subject=subject) for subject in ("u-", "u-11", "U-1", None)])
            assert store.read(lambda reader: list(reader.events_of_subject("u-1"))) == written
            for last in (0, 1, len(written), 99):
                found = store.read(lambda reader, last=last: list(reader.events_of_subject("u-1", last=last)))  # type: ignore[misc]
                assert found == written[max(0, len(written) - last) :]

    def test_events_containing_a_text_are_found_verbatim_at_any_depth(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            for name in HOSTILE_NAMES[4:]:
                text = f"<{name}>"
                event = store.write(lambda tx, text=text: recorded(tx, payload={"a": [{"b": f"x {text} y"}]}))  # type: ignore[misc]
                found = store.read(lambda reader, text=text: list(reader.events_containing(text)))  # type: ignore[misc]
                assert found == [event], name[:40]
            assert store.read(lambda reader: list(reader.events_containing("<EMOJI"))) == []
            assert store.read(lambda reader: list(reader.events_containing("<%%>"))) == []

    def test_an_erased_payload_is_gone_and_its_hashes_stay(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            before = store.write(lambda tx: [recorded(tx, payload={"text": "forget me"}) for _ in range(3)])
            store.write(lambda tx: tx.erase_payload(before[1].id))
            after = store.read(lambda reader: list(reader.events()))
            assert after == [before[0], replace(before[1], body=None, salt=None), before[2]]
            assert after[1].erased
            erasure = {"links": [], "units": [], "events": [before[1].id]}
            store.write(lambda tx: recorded(tx, type=EventType.UNIT_ERASED, payload=erasure))
            assert store.read(lambda reader: checked_chain(reader.events(), reader.heads())).ok
            found = store.read(lambda reader: list(reader.events_containing("forget me")))
            assert [event.id for event in found] == [before[0].id, before[2].id]

    # Units

    def test_a_unit_comes_back_as_it_was_put_whatever_it_says(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            for number, text in enumerate(HOSTILE_NAMES):
                scope = Scope(org=text, project=text, worktree=text, task=text)
                unit = made_unit(
                    f"{number}-{text}",
                    scope=scope,
                    content=text,
                    domain=text,
                    citations=(Citation.test(text), Citation.symbol(text, text)),
                    valid_to=_START,
                    valid_from_commit=text,
                    valid_to_commit=text,
                    supersedes=text,
                    superseded_by=text,
                    contradiction_note=text,
                    archived_from=Status.PUBLISHED,
                    archive_reason=text,
                    erased_at=_START,
                    attributes={text: [text, 1, 2.5, None, True, {"deep": text}]},
                )
                store.write(lambda tx, unit=unit: _put(tx, unit, key=unit.content))  # type: ignore[misc]
                key = scope.key
                assert store.read(lambda reader, id=unit.id: reader.unit(id)) == unit  # type: ignore[misc]
                assert store.read(lambda reader, id=unit.id: reader.units([id])) == {unit.id: unit}, text[:40]  # type: ignore[misc]
                assert store.read(lambda reader, key=key: reader.units_in([key])) == [unit]  # type: ignore[misc]
                cited = store.read(
                    lambda reader, key=key, text=text: reader.units_citing([key], CitationKind.TEST, text)  # type: ignore[misc]
                )
                assert cited == [unit]
                same = store.read(lambda reader, key=key, text=text: reader.units_with_text([key], text))  # type: ignore[misc]
                assert same == [unit]
            searchable = store.read(lambda reader: reader.searchable_after(0, 1000))
            assert [item.content for item in searchable] == list(HOSTILE_NAMES)

    def test_putting_a_unit_again_replaces_it(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            first = made_unit("u-1")
            moved = replace(
                first,
                version=2,
                scope=_HERE.at(Level.PROJECT),
                status=Status.PUBLISHED,
                citations=(Citation.test("another"),),
            )
            store.write(lambda tx: _put(tx, first, key="before", skeleton="before"))
            store.write(lambda tx: _put(tx, moved, key="after", skeleton="after"))
            old, new = _HERE.key, moved.scope.key
            assert store.read(lambda reader: reader.unit("u-1")) == moved
            assert store.read(lambda reader: reader.units_in([old])) == []
            assert store.read(lambda reader: reader.units_in([new])) == [moved]
            assert store.read(lambda reader: reader.units_with_text([old, new], "before")) == []
            assert store.read(lambda reader: reader.units_with_text([old, new], "after")) == [moved]
            assert store.read(lambda reader: reader.units_with_skeleton([old, new], "before", 9)) == []
            assert store.read(lambda reader: reader.units_with_skeleton([old, new], "after", 9)) == [moved]
            assert store.read(lambda reader: reader.units_citing([new], "test", "tests/test_a.py::test_b")) == []
            assert store.read(lambda reader: reader.units_citing([new], "test", "another")) == [moved]
            assert len(store.read(lambda reader: list(reader.rows()))) == 1

    def test_many_units_are_fetched_at_once_and_unknown_ids_are_left_out(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            units = [made_unit(f"u-{number:04d}") for number in range(1_500)]
            store.write(lambda tx: [_put(tx, unit) for unit in units])
            wanted = ["nobody", *(unit.id for unit in units), units[0].id]
            assert store.read(lambda reader: reader.units(wanted)) == {unit.id: unit for unit in units}

    def test_units_are_listed_newest_first_and_each_page_follows_the_last(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            units = [made_unit() for _ in range(11)]
            store.write(lambda tx: [_put(tx, unit) for unit in units])
            seen: list[Unit] = []
            last: str | None = None
            while page := store.read(
                lambda reader, last=last: reader.units_in([_HERE.key], limit=4, before=last)  # type: ignore[misc]
            ):
                assert len(page) <= 4
                seen += page
                last = page[-1].id
            assert seen == units[::-1]
            assert store.read(lambda reader: reader.units_in([_HERE.key], limit=0)) == []

    def test_a_listing_keeps_to_its_scopes_and_filters(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            units = [
                made_unit(scope=scope, kind=kind, status=status, domain=domain)
                for scope in (*_HERE.visible, Scope(org="acme", project="shop-2"))
                for kind, status, domain in (
                    (Kind.FACT, Status.VERIFIED, "global"),
                    (Kind.SKILL, Status.ARCHIVED, "coding"),
                )
            ]
            store.write(lambda tx: [_put(tx, unit) for unit in units])
            keys = [scope.key for scope in _HERE.visible]
            seen = [unit for unit in units if unit.scope.key in keys]
            assert len(seen) == 8

            def listed(**wanted: Any) -> list[Unit]:
                return store.read(lambda reader: reader.units_in(keys, **wanted))

            assert listed() == seen[::-1]
            assert listed(kind=Kind.FACT) == [unit for unit in seen if unit.kind is Kind.FACT][::-1]
            assert listed(status=Status.ARCHIVED) == [unit for unit in seen if unit.status is Status.ARCHIVED][::-1]
            assert listed(level=Level.PROJECT) == [unit for unit in seen if unit.level is Level.PROJECT][::-1]
            assert listed(domain="coding") == [unit for unit in seen if unit.domain == "coding"][::-1]
            assert listed(domain="codin_") == listed(domain="%") == listed(domain="CODING") == []
            assert listed(live=True) == [unit for unit in seen if unit.live][::-1]
            assert listed(live=False, limit=2) == [unit for unit in seen if not unit.live][:1:-1]
            assert listed(kind=Kind.FACT, status=Status.ARCHIVED) == []
            assert listed(kind=Kind.SKILL, status=Status.ARCHIVED, level=Level.ORG, domain="coding") == [seen[7]]

    def test_the_same_text_is_found_in_the_scopes_oldest_first_and_a_topic_surest_first(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            elsewhere = Scope(org="acme", project="shop-2")
            units = [made_unit(status=status) for status in Status] + [made_unit(scope=elsewhere), made_unit()]
            store.write(lambda tx: [_put(tx, unit, key="k", skeleton="s") for unit in units[:-1]])
            store.write(lambda tx: _put(tx, units[-1], key=None, skeleton=None))
            live = units[:3]
            assert [unit.live for unit in live] == [True, True, True]
            assert store.read(lambda reader: reader.units_with_text([_HERE.key], "k")) == units[:5]
            assert store.read(lambda reader: reader.units_with_text([_HERE.key], "K")) == []
            surest = [live[1], live[2], live[0]]
            assert [unit.status for unit in surest] == [Status.VERIFIED, Status.PUBLISHED, Status.HYPOTHESIS]
            assert store.read(lambda reader: reader.units_with_skeleton([_HERE.key], "s", 9)) == surest
            assert store.read(lambda reader: reader.units_with_skeleton([_HERE.key], "s", 2)) == surest[:2]
            assert store.read(lambda reader: reader.units_with_text([elsewhere.key], "k")) == [units[5]]

    def test_every_live_unit_of_a_kind_is_found_in_every_scope(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            scopes = (_HERE, Scope(org="other", project="shop"), Scope(org="other"))
            units = [
                made_unit(scope=scope, kind=kind, status=status)
                for scope in scopes
                for kind in (Kind.EPISODE, Kind.SKILL, Kind.FACT)
                for status in (Status.HYPOTHESIS, Status.ARCHIVED)
            ]
            store.write(lambda tx: [_put(tx, unit) for unit in units])
            found = store.read(lambda reader: list(reader.units_of_kinds([Kind.EPISODE, Kind.SKILL])))
            wanted = [unit for unit in units if unit.live and unit.kind is not Kind.FACT]
            assert sorted(found, key=lambda unit: unit.id) == wanted

    def test_counts_are_by_one_property_at_a_time(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            store.write(_filled)
            store.write(lambda tx: _put(tx, made_unit("u-3", kind=Kind.SKILL, status=Status.ARCHIVED)))
            counts = store.read(lambda reader: reader.counts())
            assert counts["status"] == {"verified": 2, "archived": 1}
            assert counts["kind"] == {"fact": 2, "skill": 1}
            assert counts["level"] == {"1": 3}
            assert counts["total"] == {"events": 4, "streams": 1, "open_conflicts": 1}

    # What search must learn

    def test_search_learns_every_change_once_at_any_page_size(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:

            def many_at_once(transaction: Transaction) -> None:
                event = recorded(transaction)
                for number in range(3):
                    unit = made_unit(f"together-{event.position}-{number}")
                    transaction.put_unit(unit, canonical_key=None, skeleton_key=None, searchable_at=event.position)

            for number in range(4):
                store.write(lambda tx, id=f"alone-{number}": _put(tx, made_unit(id)))  # type: ignore[misc]
                store.write(many_at_once)
            whole = store.read(lambda reader: reader.searchable_after(0, 1000))
            assert len(whole) == 16
            assert [item.changed_at for item in whole] == sorted(item.changed_at for item in whole)
            for size in range(1, 18):
                seen: list[Any] = []
                position = 0
                while page := store.read(
                    lambda reader, after=position, size=size: reader.searchable_after(after, size)  # type: ignore[misc]
                ):
                    seen += page
                    position = page[-1].changed_at
                    left = store.read(lambda reader, after=position: reader.searchable_count_after(after))  # type: ignore[misc]
                    assert left == len(whole) - len(seen), "a page ends with a whole position"
                assert seen == whole

    def test_a_change_that_search_need_not_see_keeps_the_earlier_position(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            unit = store.write(lambda tx: _put(tx, made_unit("u-1")))
            first = store.read(lambda reader: reader.searchable_after(0, 9))
            store.write(
                lambda tx: tx.put_unit(
                    replace(unit, version=2, uses=1), canonical_key=None, skeleton_key=None, searchable_at=None
                )
            )
            assert store.read(lambda reader: reader.searchable_after(0, 9)) == first
            position = store.write(lambda tx: recorded(tx).position)
            gone = replace(unit, version=3, status=Status.ARCHIVED, content="")
            store.write(lambda tx: tx.put_unit(gone, canonical_key=None, skeleton_key=None, searchable_at=position))
            (item,) = store.read(lambda reader: reader.searchable_after(first[0].changed_at, 9))
            assert (item.id, item.state, item.content, item.changed_at) == ("u-1", "past", "", position)
            assert (item.scope_key, item.kind, item.domain) == (_HERE.key, "fact", "global")
            assert store.read(lambda reader: reader.searchable_count_after(position)) == 0

    def test_units_that_cite_code_are_paged_by_id_whatever_their_scope_or_status(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            cited = {
                "a": (Citation.file("src/a.py"), Citation.symbol("src/a.py", "f"), Citation.file("src/b.py")),
                "b": (Citation.test("src/a.py"),),
                "c": (Citation.symbol("src/c.go", "F"),),
                "d": (Citation.file("src/d.py"),),
            }
            wide = _HERE.at(Level.PROJECT)
            for id, citations in cited.items():
                scope = wide if id == "c" else _HERE
                status = Status.ARCHIVED if id == "d" else Status.VERIFIED
                unit = made_unit(id, scope=scope, citations=citations, status=status, content=f"it is {id}")
                store.write(lambda tx, unit=unit: _put(tx, unit, key=unit.content))  # type: ignore[misc]

            def page(after: str, limit: int) -> list[str]:
                return [unit.id for unit in store.read(lambda reader: reader.units_citing_code(after, limit))]

            assert page("", 9) == ["a", "c", "d"]
            assert page("", 2) == ["a", "c"]
            assert page("c", 2) == ["d"]
            assert page("d", 2) == []

    def test_what_a_commit_replaced_is_found_apart_and_no_decision_among_it(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            wide = _HERE.at(Level.PROJECT)
            commit = "c" * 40
            each: dict[str, dict[str, Any]] = {
                "a": {"status": Status.DEPRECATED, "valid_to_commit": commit},
                "b": {"status": Status.DEPRECATED, "valid_to_commit": None},
                "c": {"status": Status.VERIFIED, "valid_to_commit": None},
                "d": {"status": Status.DEPRECATED, "valid_to_commit": commit, "scope": wide, "domain": "coding"},
                "e": {"status": Status.DEPRECATED, "valid_to_commit": commit, "kind": Kind.SKILL},
            }
            for id, fields in each.items():
                unit = made_unit(id, content=f"it is {id}", **fields)
                store.write(lambda tx, unit=unit: _put(tx, unit, key=unit.content))  # type: ignore[misc]
            decision = made_unit("f", kind=Kind.DECISION, status=Status.DEPRECATED, valid_to_commit=commit)
            standing = Standing(root="f", number=1, strength=1)
            store.write(
                lambda tx: tx.put_unit(
                    decision, canonical_key=None, skeleton_key=None, searchable_at=None, standing=standing
                )
            )

            def found(kind: Kind | None = None, domain: str | None = None, limit: int = 9) -> list[str]:
                keys = [_HERE.key, wide.key]
                units = store.read(lambda reader: reader.units_replaced(keys, kind=kind, domain=domain, limit=limit))
                return [unit.id for unit in units]

            assert found() == ["e", "d", "a"]
            assert found(limit=1) == ["e"]
            assert found(kind=Kind.SKILL) == ["e"]
            assert found(domain="coding") == ["d"]

    # Decisions

    def test_one_version_of_a_decision_is_in_force_and_the_store_itself_sees_to_it(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:

            def put(id: str, version: int, status: Status, root: str = "r-1") -> None:
                unit = made_unit(id, kind=Kind.DECISION, status=status, content=f"it is {id}")
                standing = Standing(root=root, number=version, strength=2)
                store.write(
                    lambda tx: tx.put_unit(
                        unit, canonical_key=None, skeleton_key=None, searchable_at=None, standing=standing
                    )
                )

            put("d-1", 1, Status.VERIFIED)
            for id, version, status in (("d-2", 2, Status.VERIFIED), ("d-2", 1, Status.DEPRECATED)):
                try:
                    put(id, version, status)
                except Conflict:
                    refused = True
                else:
                    refused = False
                assert refused, (id, version, status)
                assert store.read(lambda reader: reader.unit("d-2")) is None
            put("d-1", 1, Status.DEPRECATED)
            assert store.read(lambda reader: reader.decision_in_force("r-1")) is None
            put("d-2", 2, Status.PUBLISHED)
            put("e-1", 1, Status.VERIFIED, root="r-2")
            in_force = store.read(lambda reader: reader.decision_in_force("r-1"))
            assert in_force is not None
            assert in_force.id == "d-2"
            assert [unit.id for unit in store.read(lambda reader: reader.decision_versions("r-1"))] == ["d-1", "d-2"]
            assert store.read(lambda reader: reader.decision_versions("nothing")) == []
            gone = made_unit("d-2", kind=Kind.DECISION, status=Status.ARCHIVED, content="")
            store.write(lambda tx: tx.put_unit(gone, canonical_key=None, skeleton_key=None, searchable_at=None))
            assert [unit.id for unit in store.read(lambda reader: reader.decision_versions("r-1"))] == ["d-1"]

    def test_what_is_decided_is_paged_by_scope_domain_and_strength(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            wide = _HERE.at(Level.PROJECT)
            for number, (scope, domain, strength, status) in enumerate(
                [
                    (wide, "coding", 2, Status.VERIFIED),
                    (wide, "coding", 2, Status.PUBLISHED),
                    (wide, "coding", 1, Status.VERIFIED),
                    (wide, "coding", 2, Status.DEPRECATED),
                    (wide, "ui", 2, Status.VERIFIED),
                    (_HERE, "coding", 2, Status.VERIFIED),
                    (wide, "coding", 2, Status.VERIFIED),
                ]
            ):
                unit = made_unit(f"d-{number}", kind=Kind.DECISION, scope=scope, domain=domain, status=status)
                standing = Standing(root=unit.id, number=1, strength=strength)
                store.write(
                    lambda tx, unit=unit, standing=standing: tx.put_unit(  # type: ignore[misc]
                        unit, canonical_key=None, skeleton_key=None, searchable_at=None, standing=standing
                    )
                )

            def page(after: str, limit: int) -> list[str]:
                found = store.read(lambda reader: reader.decided(wide.key, "coding", 2, after=after, limit=limit))
                return [unit.id for unit in found]

            assert page("", 9) == ["d-0", "d-1", "d-6"]
            assert page("", 2) == ["d-0", "d-1"]
            assert page("d-1", 2) == ["d-6"]

    def test_what_is_related_comes_the_firmest_first_before_it_is_cut(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            wide = _HERE.at(Level.PROJECT)
            for root, strength, scope, status in (
                ("a", 1, wide, Status.VERIFIED),
                ("b", 3, wide, Status.VERIFIED),
                ("c", 2, _HERE, Status.VERIFIED),
                ("d", 3, wide, Status.ARCHIVED),
                ("e", 3, wide, Status.VERIFIED),
                ("f", 1, _HERE.at(Level.ORG), Status.VERIFIED),
            ):
                unit = made_unit(f"{root}-2", kind=Kind.DECISION, scope=scope, status=status, content=root)
                standing = Standing(root=root, number=2, strength=strength)
                store.write(lambda tx, unit=unit, standing=standing: _decide(tx, unit, standing))  # type: ignore[misc]
            for source, target in (("hub", "a"), ("b", "hub"), ("hub", "b"), ("c", "hub"), ("d", "hub"), ("hub", "f")):
                relation = Relation(source=source, type=RelationType.REFINES, target=target, id=f"{source}{target}")
                store.write(lambda tx, relation=relation: tx.put_relation(relation))  # type: ignore[misc]

            def related(limit: int) -> list[str]:
                keys = [_HERE.key, wide.key]
                return [unit.id for unit in store.read(lambda reader: reader.related("hub", keys, limit=limit))]

            assert related(9) == ["b-2", "c-2", "a-2"]
            assert related(1) == ["b-2"]
            assert related(0) == []

    def test_what_anchors_lead_to_comes_the_firmest_first_before_it_is_cut(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            elsewhere = Scope(org="elsewhere", project="p")
            for id, strength, status, scope in (
                ("d-1", 1, Status.VERIFIED, _HERE),
                ("d-2", 3, Status.VERIFIED, _HERE),
                ("d-3", 3, Status.DEPRECATED, _HERE),
                ("d-4", 3, Status.VERIFIED, elsewhere),
            ):
                unit = made_unit(id, kind=Kind.DECISION, status=status, scope=scope)
                standing = Standing(root=id, number=1, strength=strength)
                store.write(lambda tx, unit=unit, standing=standing: _decide(tx, unit, standing))  # type: ignore[misc]
            for id, kind in (("e-1", Kind.EVIDENCE), ("f-1", Kind.FACT), ("f-2", Kind.DECISION)):
                other = made_unit(id, kind=kind)
                store.write(lambda tx, unit=other: _put(tx, unit))  # type: ignore[misc]
            targets = ("e-1", "f-1", "f-2", "d-1", "d-1", "d-2", "d-3", "d-4", "nothing", None)
            for number, target in enumerate(targets):
                hint = made_unit(f"a-{number}", kind=Kind.ANCHOR, domain="ui", attributes={"target": target})
                store.write(lambda tx, unit=hint: _put(tx, unit))  # type: ignore[misc]

            def anchored(limit: int, *domains: str) -> list[str]:
                found = store.read(lambda reader: reader.anchored([_HERE.key], domains, limit=limit))
                return [unit.id for unit in found]

            assert anchored(9, "ui", "global") == ["d-2", "d-1", "e-1"]
            assert anchored(1, "ui") == ["d-2"]
            assert anchored(9, "global") == []

    def test_what_anchors_of_very_many_domains_lead_to_is_ordered_and_cut_as_one(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            domains = [f"domain {number:04d}" for number in range(1_200)]
            for number, strength in ((0, 1), (1, 3), (2, 2)):
                unit = made_unit(f"d-{number}", kind=Kind.DECISION)
                standing = Standing(root=unit.id, number=1, strength=strength)
                store.write(lambda tx, unit=unit, standing=standing: _decide(tx, unit, standing))  # type: ignore[misc]
            for place, target in ((0, "d-0"), (0, "d-2"), (600, "d-2"), (1_199, "d-1")):
                attributes = {"target": target}
                id = f"a-{place}-{target}"
                hint = made_unit(id, kind=Kind.ANCHOR, domain=domains[place], attributes=attributes)
                store.write(lambda tx, unit=hint: _put(tx, unit))  # type: ignore[misc]

            def anchored(limit: int) -> list[str]:
                found = store.read(lambda reader: reader.anchored([_HERE.key], domains, limit=limit))
                return [unit.id for unit in found]

            assert anchored(9) == ["d-1", "d-2", "d-0"]
            assert anchored(2) == ["d-1", "d-2"]

    def test_the_domains_of_what_is_in_force_are_named_once(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            for number, (domain, status) in enumerate(
                [
                    ("ui", Status.VERIFIED),
                    ("coding", Status.VERIFIED),
                    ("ui", Status.PUBLISHED),
                    ("old", Status.DEPRECATED),
                ]
            ):
                unit = made_unit(f"d-{number}", kind=Kind.DECISION, domain=domain, status=status)
                standing = Standing(root=unit.id, number=1, strength=1)
                store.write(lambda tx, unit=unit, standing=standing: _decide(tx, unit, standing))  # type: ignore[misc]
            store.write(lambda tx: _put(tx, made_unit("f", domain="facts")))
            assert store.read(lambda reader: reader.domains_decided(_HERE.key)) == ["coding", "ui"]
            assert store.read(lambda reader: reader.domains_decided("nowhere")) == []

    def test_relations_are_found_from_both_ends_once_each(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            relations = [
                Relation(source="b", type=RelationType.CONSTRAINS, target="a", id="e-1"),
                Relation(source="a", type=RelationType.DEPENDS_ON, target="b", id="e-2"),
                Relation(source="a", type=RelationType.DEPENDS_ON, target="c", id="e-3"),
            ]
            for relation in (replace(relations[1], id="e-0"), *relations):
                store.write(lambda tx, relation=relation: tx.put_relation(relation))  # type: ignore[misc]
            assert store.read(lambda reader: reader.relations_from(["a"])) == relations[1:]
            assert store.read(lambda reader: reader.relations_to(["a", "c"])) == [relations[0], relations[2]]
            assert store.read(lambda reader: reader.relations_from([])) == []
            before = len(store.read(lambda reader: list(reader.rows())))
            store.write(lambda tx: tx.drop_relation("a", RelationType.DEPENDS_ON, "b"))
            store.write(lambda tx: tx.drop_relation("a", RelationType.DEPENDS_ON, "b"))
            assert store.read(lambda reader: reader.relations_from(["a"])) == relations[2:]
            assert len(store.read(lambda reader: list(reader.rows()))) == before - 1

    def test_relations_of_very_many_decisions_come_in_one_order_and_once(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            roots = [f"r-{number:04d}" for number in range(1_200)]
            relations = [
                Relation(source=root, type=RelationType.REFINES, target=root, id=f"e-{root}") for root in roots[::300]
            ]

            def work(transaction: Transaction) -> None:
                for relation in relations:
                    transaction.put_relation(relation)

            store.write(work)
            asked = [*roots[::-1], *roots]
            assert store.read(lambda reader: reader.relations_from(asked)) == relations
            assert store.read(lambda reader: reader.relations_to(asked)) == relations

    # Links, tests, uses

    def test_a_link_is_seen_from_both_sides_and_changes_in_place(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            store.write(lambda tx: [_put(tx, made_unit(id)) for id in ("a", "b", "c")])
            links = [made_link("l-2", "a", "b"), made_link("l-1", "c", "a", LinkType.DUPLICATES)]
            store.write(lambda tx: _put_links(tx, links))
            assert store.read(lambda reader: reader.links_of("a")) == links[::-1]
            assert store.read(lambda reader: reader.links_of("b")) == [links[0]]
            assert store.read(lambda reader: reader.open_links([_HERE.key], LinkType.CONTRADICTS)) == [links[0]]
            assert store.read(lambda reader: reader.open_links([_HERE.key], LinkType.DUPLICATES)) == [links[1]]
            resolved = replace(links[0], open=False, winner="a")
            store.write(lambda tx: tx.put_link(resolved))
            assert store.read(lambda reader: reader.link("l-2")) == resolved
            assert store.read(lambda reader: reader.open_links([_HERE.key], LinkType.CONTRADICTS)) == []
            store.write(lambda tx: tx.drop_link("l-2"))
            store.write(lambda tx: tx.drop_link("l-2"))
            assert store.read(lambda reader: reader.link("l-2")) is None
            assert store.read(lambda reader: reader.links_of("b")) == []

    def test_an_open_link_is_listed_only_to_who_sees_both_of_its_sides(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            wide = _HERE.at(Level.PROJECT)
            store.write(lambda tx: [_put(tx, made_unit("a")), _put(tx, made_unit("b", scope=wide))])
            links = [made_link("l-1", "a", "b"), made_link("l-2", "b", "nobody"), made_link("l-3", "nobody", "b")]
            store.write(lambda tx: _put_links(tx, links))

            def listed(*scopes: Scope) -> list[Link]:
                keys = [scope.key for scope in scopes]
                return store.read(lambda reader: reader.open_links(keys, LinkType.CONTRADICTS))

            assert listed(_HERE, wide) == [links[0]]
            assert listed(wide) == listed(_HERE) == listed() == []

    def test_the_last_outcome_of_a_test_counts_in_its_own_stream(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:

            def passed(project: str | None, name: str = "test_b") -> bool:
                return store.read(lambda reader: reader.test_passed(Stream("acme", project), name))

            for project in ("shop", None):
                store.write(lambda tx, p=project: tx.put_test(Stream("acme", p), "test_b", True, _START, f"e-{p}"))  # type: ignore[misc]
                assert passed(project)
            assert not passed("shop-2")
            assert not passed("shop", "test_%")
            assert not passed("shop", "TEST_B")
            store.write(lambda tx: tx.put_test(Stream("acme", "shop"), "test_b", False, _START, "e-2"))
            assert not passed("shop")
            assert passed(None)

    def test_outcomes_are_forgotten_by_the_events_that_recorded_them_last(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            stream = Stream("acme", "shop")

            def passed(name: str) -> bool:
                return store.read(lambda reader: reader.test_passed(stream, name))

            for name, event_id in (("a", "e-1"), ("b", "e-1"), ("c", "e-2"), ("b", "e-3")):
                store.write(lambda tx, n=name, e=event_id: tx.put_test(stream, n, True, _START, e))  # type: ignore[misc]
            store.write(lambda tx: tx.drop_tests(["e-1", "nothing"]))
            assert [passed(name) for name in "abc"] == [False, True, True]
            store.write(lambda tx: tx.drop_tests([]))
            assert [passed(name) for name in "abc"] == [False, True, True]
            assert len(store.read(lambda reader: list(reader.rows()))) == 2

    def test_a_flag_of_a_use_once_set_stays_set(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            flags = ("handed", "used", "credited", "blamed")
            for number, flag in enumerate(flags, start=1):
                use = Use(unit_id="u-1", task_key="t-1", **{flag: True})
                store.write(lambda tx, use=use: tx.put_use(use))  # type: ignore[misc]
                store.write(lambda tx: tx.put_use(Use(unit_id="u-1", task_key="t-1")))
                (kept,) = store.read(lambda reader: reader.uses_of_task("t-1"))
                assert [getattr(kept, name) for name in flags] == [True] * number + [False] * (4 - number)

    def test_uses_are_found_by_unit_and_by_task(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            uses = [Use(unit_id=unit, task_key=task, used=True) for unit in ("u-1", "u-2") for task in ("t-1", "t-2")]
            store.write(lambda tx: _put_uses(tx, uses[::-1]))
            assert store.read(lambda reader: reader.uses_of_unit("u-1")) == uses[:2]
            assert store.read(lambda reader: reader.uses_of_task("t-2")) == [uses[1], uses[3]]
            assert store.read(lambda reader: reader.noted_uses(["u-2", "u-3"], "t-2")) == {"u-2"}
            assert store.read(lambda reader: reader.noted_uses(["u-2"], "t-3")) == set()
            store.write(lambda tx: tx.drop_uses("u-1"))
            assert store.read(lambda reader: reader.uses_of_unit("u-1")) == []
            assert store.read(lambda reader: reader.uses_of_task("t-2")) == [uses[3]]

    # All of it

    def test_clearing_the_projections_leaves_the_log_alone(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            store.write(_filled)
            before = store.read(_everything)
            store.write(lambda tx: tx.clear_projections())
            after = store.read(_everything)
            for name in ("events", "position", "heads", "keys"):
                assert after[name] == before[name]
            for name in ("rows", "searchable", "texts", "skeletons", "citing"):
                assert after[name] == []
                assert before[name] != []
            assert store.read(lambda reader: reader.uses_of_task("task")) == []
            assert not store.read(lambda reader: reader.test_passed(Stream("acme", "shop"), "test_b"))

    def test_the_same_changes_give_the_same_rows_on_every_store(self, tmp_path: Path) -> None:
        def work(transaction: Transaction | _Model) -> None:
            for number, name in enumerate(HOSTILE_NAMES):
                scope = Scope(org=name, project=None if number % 5 == 0 else name)
                unit = made_unit(f"{name}-{number}", scope=scope, content=name, attributes={name: name, "n": 1.5})
                transaction.put_unit(unit, canonical_key=name, skeleton_key=None, searchable_at=number)
                transaction.put_link(made_link(name, name, unit.id))
                transaction.put_test(Stream(scope.org, scope.project), name, number % 2 == 0, _START, name)
                transaction.put_use(Use(unit_id=name, task_key=f"t{name}", handed=True, blamed=number % 2 == 0))
                transaction.put_relation(Relation(source=name, type=RelationType.REFINES, target=name, id=name))

        model = _Model()
        with self._opened(tmp_path) as store:
            store.write(work)
            work(model)
            assert store.read(lambda reader: list(reader.rows())) == list(model.rows())
            assert len(model.tables) == 5 * len(HOSTILE_NAMES)

    def test_random_changes_give_what_a_model_in_dictionaries_gives(self, tmp_path: Path) -> None:
        random = Random(20261116)  # noqa: S311 - the same changes in every run
        names = [f"n-{number}" for number in range(8)]
        scopes = [_HERE, _HERE.at(Level.PROJECT)]

        def change(transaction: Transaction | _Model) -> None:
            one, other = random.choice(names), random.choice(names)
            match random.randrange(8):
                case 0 | 1 | 2:
                    status = random.choice(list(Status))
                    unit = made_unit(one, scope=random.choice(scopes), content=other, status=status)
                    transaction.put_unit(unit, canonical_key=other, skeleton_key="s", searchable_at=None)
                case 3:
                    transaction.put_link(made_link(f"l-{one}", one, other, open=random.random() < 0.5))
                case 4:
                    transaction.put_test(Stream("acme", random.choice(["shop", None])), one, True, _START, other)
                case 5:
                    transaction.put_use(Use(unit_id=one, task_key=other, used=random.random() < 0.5))
                case 6:
                    transaction.put_relation(Relation(source=one, type=RelationType.REFINES, target=other, id="e"))
                case _:
                    transaction.drop_uses(one)
                    transaction.drop_link(f"l-{one}")
                    transaction.drop_tests([one])
                    transaction.drop_relation(one, RelationType.REFINES, other)

        model = _Model()
        with self._opened(tmp_path) as store:
            for _ in range(300):
                state = random.getstate()
                store.write(change)
                random.setstate(state)
                change(model)
            assert store.read(lambda reader: list(reader.rows())) == list(model.rows())
            assert {table for table, *_ in model.tables} == {"1 units", "2 links", "3 relations", "4 tests", "5 uses"}
            keys = [scope.key for scope in scopes]
            for name in names:
                assert store.read(lambda reader, name=name: reader.units_with_text(keys, name)) == model.with_text(name)  # type: ignore[misc]
                assert store.read(lambda reader, name=name: reader.links_of(name)) == model.links_of(name)  # type: ignore[misc]

    # Threads

    def test_threads_that_write_at_once_lose_nothing(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            given: list[Event] = []
            troubles: list[BaseException] = []

            def write(name: int) -> None:
                try:
                    for number in range(_WRITES_EACH):
                        payload = {"who": name, "number": number}
                        given.append(store.write(lambda tx, payload=payload: recorded(tx, payload=payload)))  # type: ignore[misc]
                except BaseException as error:  # noqa: BLE001 - told to the test, not lost with the thread
                    troubles.append(error)

            self._together([lambda name=name: write(name) for name in range(_THREADS)])  # type: ignore[misc]
            assert troubles == []
            events = store.read(lambda reader: list(reader.events()))
            assert [event.seq for event in events] == list(range(1, _THREADS * _WRITES_EACH + 1))
            assert sorted(given, key=lambda event: event.position) == events
            for name in range(_THREADS):
                numbers = [
                    event.payload["number"] for event in events if event.payload and event.payload["who"] == name
                ]
                assert numbers == list(range(_WRITES_EACH)), "each writer's own order is kept"
            assert store.read(lambda reader: checked_chain(reader.events(), reader.heads())).ok

    def test_work_that_fails_among_the_writes_of_other_threads_is_undone_alone(self, tmp_path: Path) -> None:
        with self._opened(tmp_path) as store:
            outcomes: list[tuple[int, str]] = []

            def write(name: int) -> None:
                for number in range(_WRITES_EACH // 5):

                    def work(transaction: Transaction, number: int = number) -> None:
                        event = recorded(transaction, payload={"who": name, "number": number})
                        unit = made_unit(f"{name}-{number}")
                        transaction.put_unit(unit, canonical_key=None, skeleton_key=None, searchable_at=event.position)
                        if (name + number) % 3 == 0:
                            raise _Stop

                    try:
                        store.write(work)
                        outcomes.append((name, f"{name}-{number}"))
                    except _Stop:
                        outcomes.append((name, ""))

            self._together([lambda name=name: write(name) for name in range(_THREADS)])  # type: ignore[misc]
            stored = sorted(id for _, id in outcomes if id)
            assert 0 < len(stored) < len(outcomes) == _THREADS * (_WRITES_EACH // 5)
            events = store.read(lambda reader: list(reader.events()))
            assert [event.seq for event in events] == list(range(1, len(stored) + 1))
            assert sorted(store.read(lambda reader: reader.units(stored))) == stored
            assert len(store.read(lambda reader: list(reader.rows()))) == len(stored)
            assert store.read(lambda reader: checked_chain(reader.events(), reader.heads())).ok

    @staticmethod
    def _together(calls: list[Callable[[], None]]) -> None:
        start = threading.Barrier(len(calls))

        def run(call: Callable[[], None]) -> None:
            start.wait()
            call()

        threads = [threading.Thread(target=run, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

"""Audits a store: checks its hash chains, its projections, and the end of its log (R1)."""

from __future__ import annotations

from itertools import chain
from typing import Any, NamedTuple

from mnemarch.errors import StoreCorrupt
from mnemarch.log.chain import RememberedLog, entry_hash, is_whole, missing_from, name_of, problem_of
from mnemarch.log.merging import Merge
from mnemarch.model.event import Event, EventType, Receipt
from mnemarch.model.json_text import canonical_json
from mnemarch.model.outcome import LogCheck, ReceiptCheck
from mnemarch.model.stamps import micros, sha256
from mnemarch.model.testrun import TestRecord, short_name
from mnemarch.model.unit import Link, Unit, Use
from mnemarch.model.value import replace
from mnemarch.stores.sql.queries import CODE_RULE, DAMAGE, ROWS, unit_columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from mnemarch.model.caller import Stream
    from mnemarch.model.decision import Relation, VersionKey
    from mnemarch.ports import Store
    from mnemarch.stores.sql.reader import Reader

_ALL = 1 << 62
_RESTORE = "Somebody or the disk changed it. Restore a backup (files in git: git checkout), or import an export."
_REBUILD = "The log itself is intact. To restore this from the log: mnemarch rebuild"
_CUT = "Restore the newest backup. If you put this copy here yourself: mnemarch audit --accept"
_WHAT = {
    "units": "unit",
    "citations": "a citation of unit",
    "links": "link",
    "link_units": "the units of link",
    "relations": "a relation of decision",
    "tests": "the outcome of test",
    "uses": "a use of unit",
    "code_rules": "code rule",
}
FLAGS = ("handed", "used", "credited", "blamed")


class StoredUnit(NamedTuple):
    """A unit's row: the unit, its places in search and in its conversation, and the keys of its text."""

    unit: Unit
    version: VersionKey | None
    searchable_at: int
    session: str | None
    turn: int
    text_key: str | None
    topic_key: str | None


class Replay:
    """The projections in memory. Has the methods of `Transaction` that the fold uses."""

    def __init__(self) -> None:
        self.stored: dict[str, StoredUnit] = {}
        self._turns: dict[str | None, int] = {}
        self._links: dict[str, Link] = {}
        self._members: set[tuple[str, str]] = set()
        self._relations: dict[tuple[str, str, str], Relation] = {}
        self._tests: dict[tuple[str, str, str], dict[tuple[str, bool], TestRecord]] = {}
        self._uses: dict[tuple[str, str], Use] = {}
        self._code_rules: dict[str, dict[str, Any]] = {}

    def unit(self, unit_id: str) -> Unit | None:
        return self.stored[unit_id].unit if unit_id in self.stored else None

    def put_unit(
        self,
        unit: Unit,
        *,
        canonical_key: str | None,
        topic_key: str | None,
        searchable_at: int | None,
        version_key: VersionKey | None = None,
    ) -> None:
        known = self.stored.get(unit.id)
        if known is None:
            session = unit.session_key
            self._turns[session] = 0 if session is None else self._turns.get(session, 0) + 1
            known = StoredUnit(unit, version_key, 0, session, self._turns[session], None, None)
        places: dict[str, Any] = {"searchable_at": searchable_at, "text_key": canonical_key, "topic_key": topic_key}
        changed = {name: place for name, place in places.items() if place is not None}
        self.stored[unit.id] = known._replace(unit=unit, version=version_key, **changed)

    def link(self, link_id: str) -> Link | None:
        return self._links.get(link_id)

    def put_link(self, link: Link) -> None:
        self._links[link.id] = link
        for unit_id in (link.source, link.target):
            self.put_link_unit(link.id, unit_id)

    def put_link_unit(self, link_id: str, unit_id: str) -> None:
        self._members.add((link_id, unit_id))

    def drop_link(self, link_id: str) -> None:
        self._links.pop(link_id, None)
        self._members = {pair for pair in self._members if pair[0] != link_id}

    def put_relation(self, relation: Relation) -> None:
        self._relations[relation.source, str(relation.type), relation.target] = relation

    def drop_relation(self, source: str, type: str, target: str) -> None:
        self._relations.pop((source, str(type), target), None)

    def tests(self, stream: Stream, names: Iterable[str], *, called: bool = False) -> list[TestRecord]:
        """The newest outcomes of these tests by their whole names, or with `called` by their short names."""
        where = stream.org, stream.project or ""
        if called:
            wanted = set(names)
            names = [name for *at, name in self._tests if tuple(at) == where and short_name(name) in wanted]
        return [
            record
            for name in sorted(set(names))
            for _, record in sorted(self._tests.get((*where, name), {}).items(), key=lambda one: one[0])
        ]

    def put_test(self, record: TestRecord) -> None:
        where = (record.stream.org, record.stream.project or "", record.name)
        self._tests.setdefault(where, {})[record.place, record.witnessed] = record

    def drop_tests(self, event_ids: Sequence[str]) -> None:
        for where, records in self._tests.items():
            self._tests[where] = {at: record for at, record in records.items() if record.event_id not in event_ids}

    def put_use(self, use: Use) -> None:
        known = self._uses.get((use.unit_id, use.task_key))
        if known is not None:
            flags = {flag: getattr(use, flag) or getattr(known, flag) for flag in FLAGS}
            use = Use(unit_id=use.unit_id, task_key=use.task_key, **flags)
        self._uses[use.unit_id, use.task_key] = use

    def drop_uses(self, unit_id: str) -> None:
        self._uses = {key: use for key, use in self._uses.items() if key[0] != unit_id}

    def put_code_rule(self, row: Mapping[str, Any]) -> None:
        self._code_rules.setdefault(row["id"], dict(row))

    def judge_code_rule(self, rule_id: str, row: Mapping[str, Any]) -> None:
        if rule_id in self._code_rules:
            self._code_rules[rule_id] |= row

    def drop_code_rules(self, rule_ids: Sequence[str]) -> None:
        for rule_id in rule_ids:
            self._code_rules.pop(rule_id, None)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The same rows as `Reader.rows`, in the same order."""
        stored = self.stored.values()
        tables: dict[str, Iterable[list[Any]]] = {
            "units": (
                [unit.id, canonical_json(unit.to_json()), *unit_columns(unit, version_key).values()]
                for unit, version_key, *_ in stored
            ),
            "citations": ([unit.id, kind, ref] for unit, *_ in stored for kind, ref in unit.keys),
            "links": ([link.id, link.type, link.open, canonical_json(link.to_json())] for link in self._links.values()),
            "link_units": map(list, self._members),
            "relations": ([*key, relation.id] for key, relation in self._relations.items()),
            "tests": self._test_rows(),
            "uses": ([*key, *(getattr(use, flag) for flag in FLAGS)] for key, use in self._uses.items()),
            "code_rules": ([rule[name] for name in CODE_RULE] for rule in self._code_rules.values()),
        }
        for table, key_columns in ROWS.items():
            for row in sorted(tables[table], key=lambda row: row[:key_columns]):
                yield (table, *row)

    def _test_rows(self) -> Iterator[list[Any]]:
        for (org, project, name), records in self._tests.items():
            for (place, witnessed), test in records.items():
                rest = (test.passed, test.flaky, test.tree, test.greened_by, micros(test.at), test.event_id)
                yield [org, project, name, place, witnessed, short_name(name), *rest]


def audited(
    store: Store,
    remembered: RememberedLog | None = None,
    progress: Callable[[int], None] | None = None,
    *,
    full: bool = False,
    accept: bool = False,
) -> LogCheck:
    """Check everything, and remember the result. An unchanged store is then only compared with it.

    `full` checks everything again, including the keys of units' texts. `accept` accepts the current end of the log,
    for a user who restored an older copy on purpose.
    """
    known: dict[str, Any] = {} if remembered is None or accept else remembered.read()
    damage = store.check()
    if damage is not None:
        return LogCheck(ok=False, events=0, first_broken="the file", problem=damage, hint=_RESTORE)

    def work(reader: Reader) -> tuple[LogCheck, str]:
        cut = _cut(reader, store.id, known)
        seen = _fingerprint(reader)
        if cut is None and not full and seen == known.get("seen"):
            return LogCheck(ok=True, events=int(reader.counts()["total"]["events"])), seen
        check = _walked(reader, known.get("heads", {}), progress, full=full)
        return (check if cut is None or not check.ok else replace(cut, events=check.events)), seen

    check, seen = store.read(work)
    if check.ok and remembered is not None and store.writable:
        remembered.accept(store, seen)
    return check


def _cut(reader: Reader, store_id: str, known: dict[str, Any]) -> LogCheck | None:
    """The problem if the log ends earlier than remembered, or is another log. None if it continues."""
    if not known:
        return None
    if known["store"] != store_id:
        end = known["newest"][0]
        problem = "this is another memory than the one that was here last"
        return LogCheck(ok=False, events=0, first_broken=end, problem=problem, hint=_CUT)
    name = missing_from(known["heads"], reader.heads())
    if name is None:
        return None
    stream = " / ".join(part for part in name if part)
    problem = (
        f"{stream} went on to #{known['heads'][name][0]}, but does not any more: its end was cut off, or an older copy"
    )
    return LogCheck(ok=False, events=0, first_broken=stream, problem=f"{problem} was put back", hint=_CUT)


def _fingerprint(reader: Reader) -> str:
    """A digest of every stored row. An equal digest proves that nothing changed; a different one proves nothing."""
    total = sha256()
    events = reader.query("events", after=0, limit=_ALL)
    heads = sorted(reader.heads().items(), key=lambda item: str(item[0]))
    for row in chain(events, heads, reader.rows(), reader.query("row_search")):
        total.update(repr(row).encode("utf-8", "surrogatepass"))
    return total.hexdigest()


def _walked(
    reader: Reader, remembered: dict[Any, tuple[int, str]], progress: Callable[[int], None] | None, *, full: bool
) -> LogCheck:
    """Walk every chain, fold the events in memory, and compare the result with the stored rows."""
    replay = Replay()
    merge = Merge(replay)
    ends = {(*name, seq): hash for name, (seq, hash) in remembered.items()}
    other: list[Event] = []

    def fold(event: Event) -> None:
        merge.project(event, keyed=full)
        if ends.get((*name_of(event.stream), event.seq), event.hash.hex()) != event.hash.hex():
            other.append(event)

    check = checked_chain(reader.events(), reader.heads(), progress, fold)
    if not check.ok:
        return replace(check, hint=_RESTORE)
    if other:
        problem = f"{other[0].stream} #{other[0].seq} was a different entry when this machine last saw it"
        return LogCheck(ok=False, events=check.events, first_broken=other[0].id, problem=problem, hint=_CUT)
    difference = next(_differences(reader, replay, full=full), None)
    if difference is None:
        return check
    what, problem = difference
    return LogCheck(ok=False, events=check.events, first_broken=what, problem=problem, hint=_REBUILD)


def checked_chain(
    events: Iterable[Event],
    heads: Mapping[Stream, tuple[int, bytes]],
    progress: Callable[[int], None] | None = None,
    each: Callable[[Event], None] | None = None,
) -> LogCheck:
    """Walk every stream. Reports the first entry that was changed, emptied, removed, moved or added by hand.

    `each` is called with every valid entry.
    """
    ends: dict[Stream, tuple[int, bytes, str]] = {}
    emptied: dict[str, str] = {}
    walked = 0

    def broken(at: str | None, problem: str) -> LogCheck:
        return LogCheck(ok=False, events=walked, first_broken=at, problem=problem)

    try:
        for event in events:
            seq, previous, _ = ends.get(event.stream, (0, b"", ""))
            problem = problem_of(event, seq, previous)
            if problem:
                return broken(event.id, f"{event.stream} #{event.seq}: {problem}")
            ends[event.stream] = (event.seq, event.hash, event.id)
            if event.erased:
                emptied[event.id] = f"{event.stream} #{event.seq}"
            for event_id in _vouched_for(event):
                emptied.pop(event_id, None)
            if each is not None and not _fits(each, event):
                return broken(event.id, f"{event.stream} #{event.seq}: its content does not fit its type")
            walked += 1
            if progress and walked % 1000 == 0:
                progress(walked)
    except StoreCorrupt as error:
        return broken(error.event_id, error.message)
    for stream in dict.fromkeys((*heads, *ends)):
        seq, hash, last_id = ends.get(stream, (0, b"", ""))
        head = heads.get(stream, (0, b""))
        if head != (seq, hash):
            problem = f"{stream} ends at #{seq}, but its head says #{head[0]}: entries were cut off or put in"
            return broken(last_id or f"{stream} #1", problem)
    for event_id, place in emptied.items():
        return broken(event_id, f"{place}: its payload was removed, and no erasure says so")
    return LogCheck(ok=True, events=walked)


def _fits(each: Callable[[Event], None], event: Event) -> bool:
    try:
        each(event)
    except DAMAGE:
        return False
    return True


def _vouched_for(event: Event) -> Sequence[str]:
    """The earlier entries that an erasure emptied. Only an erasure may empty entries (R16)."""
    payload = event.payload if event.type is EventType.UNIT_ERASED else None
    return () if payload is None else payload.get("events", ())


def _differences(reader: Reader, replay: Replay, *, full: bool) -> Iterator[tuple[str, str]]:
    """Every row that differs from the log: the id of its subject, and the problem."""
    expected = {_key(row): row for row in replay.rows()}
    for row in reader.rows():
        wanted = expected.pop(_key(row), None)
        if wanted is None:
            yield str(row[1]), f"{_named(row)} is stored, but no event of the log made it"
        elif wanted != row:
            yield str(row[1]), f"{_named(row)} differs from what the log says"
    for row in expected.values():
        yield str(row[1]), f"{_named(row)} is in the log, but its row is gone"
    for id, *stored in reader.query("row_search"):
        _, _, *replayed = replay.stored[id]
        if stored[:3] != replayed[:3]:
            yield id, f"unit {id} has another place in search or in its conversation than the log says"
        elif full and stored != replayed:
            yield id, f"unit {id} has other keys for its text than the log says"


def _key(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return row[: 1 + ROWS[row[0]]]


def _named(row: tuple[Any, ...]) -> str:
    return f"{_WHAT[row[0]]} {row[3] if row[0] == 'tests' else row[1]}"


def checked_receipt(store: Store, receipt: Receipt) -> ReceiptCheck:
    """Whether a receipt's entry is in the log, unchanged."""

    def work(reader: Reader) -> ReceiptCheck:
        event = reader.event(receipt.event_id)
        if event is None:
            return ReceiptCheck(ok=False, event_id=receipt.event_id, says="missing: the log was cut or replaced")
        before = reader.query("event_before", position=event.position, id=event.id).fetchone()
        previous = b"" if before is None else before[0]
        is_same = (event.seq, event.hash.hex()) == (receipt.seq, receipt.hash)
        if not is_same or not is_whole(event) or entry_hash(previous, event) != event.hash:
            return ReceiptCheck(ok=False, event_id=event.id, says="changed: the log has another entry with this id")
        says = "in the log, unchanged" + ("; its content was erased since" if event.erased else "")
        return ReceiptCheck(ok=True, event_id=event.id, says=says)

    return store.read(work)

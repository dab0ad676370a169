"""Transaction: a reader that also writes. Everything in it happens, or nothing."""

from __future__ import annotations

from mnemarch.errors import Conflict
from mnemarch.lazy import Lazy
from mnemarch.model.json_text import canonical_json
from mnemarch.model.stamps import micros
from mnemarch.stores.sql.queries import ROWS, Queries, event_columns, in_parts, unit_columns, unit_of
from mnemarch.stores.sql.reader import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from mnemarch.model import testrun as testruns
    from mnemarch.model import unit as units
    from mnemarch.model.caller import Stream
    from mnemarch.model.decision import Relation, VersionKey
    from mnemarch.model.event import Event
    from mnemarch.model.testrun import TestRecord
    from mnemarch.model.unit import Link, Unit, Use
else:
    # A process that only logs needs neither.
    testruns = Lazy("mnemarch.model.testrun")
    units = Lazy("mnemarch.model.unit")


class Transaction(Reader):
    """The writes of the domain, each a named query."""

    def __init__(
        self, execute: Callable[[str, dict[str, Any]], Any], queries: Queries, integrity_error: type[Exception]
    ) -> None:
        super().__init__(execute, queries)
        self._integrity_error = integrity_error
        self._heads: dict[Stream, tuple[int, int, bytes]] = {}
        # The units that this transaction wrote or read. Nobody else can change them meanwhile.
        self._written: dict[str, Unit] = {}
        self._texts: dict[str, dict[tuple[str, ...], list[Unit]]] = {}
        # The stream whose projections are written. A store of several tenants needs it.
        self.stream: Stream | None = None

    def _head(self, stream: Stream) -> tuple[int, int, bytes]:
        """The id, last sequence number and hash of a stream. Nobody else appends while this transaction is open."""
        head = self._heads.get(stream)
        if head is None:
            where = {"org": stream.org, "project": stream.project or "", "writer": stream.writer}
            head = self._one("head", **where) or (0, 0, b"")
            self._heads[stream] = head
        return head

    def head(self, stream: Stream) -> tuple[int, bytes]:
        return self._head(stream)[1:]

    def own(self, stream: Stream) -> tuple[Stream, str]:
        """The stream that this store itself writes for a project or an org, and the clock of its next event."""
        return stream, ""

    def next_number(self, stream: Stream) -> int:
        """A number higher than those of all events of a stream so far, by any writer."""
        return self.head(stream)[0] + 1

    def forget(self) -> None:
        """Empty the caches, because a part of the transaction was rolled back."""
        self._heads.clear()
        self._written.clear()
        self._texts.clear()

    def unit(self, unit_id: str) -> Unit | None:
        return self._written.get(unit_id) or self.units([unit_id]).get(unit_id)

    def units(self, unit_ids: Iterable[str]) -> dict[str, Unit]:
        ids = list(unit_ids)
        super().units([unit_id for unit_id in ids if unit_id not in self._written])
        return {unit_id: self._written[unit_id] for unit_id in ids if unit_id in self._written}

    def _unit(self, row: tuple[str, str]) -> Unit:
        unit = self._written.get(row[0])
        if unit is None:
            unit = self._written[row[0]] = unit_of(row)
        return unit

    def units_with_text(self, scope_keys: Sequence[str], canonical_key: str) -> list[Unit]:
        """Like the reader's, but cached: one act asks for the same text several times."""
        known = self._texts.setdefault(canonical_key, {})
        scopes = tuple(scope_keys)
        if scopes not in known:
            known[scopes] = super().units_with_text(scope_keys, canonical_key)
        return known[scopes]

    def append(self, event: Event, hash: bytes) -> Event:
        """Append an event with its chain hash to its stream. Returns it with its position (`Event.placed`)."""
        self.stream = event.stream
        stream_id, seq, _ = self._head(event.stream)
        assert event.seq == seq + 1, "an event takes the next place of its stream"
        stream_id = self._move_head(stream_id, event, hash)
        self._heads[event.stream] = (stream_id, event.seq, hash)
        position = self._append(stream=stream_id, hash=hash, clock=event.clock, **event_columns(event))
        return event.placed(position, hash)

    def _move_head(self, stream_id: int, event: Event, hash: bytes) -> int:
        """Move the end of the event's stream to the event. Returns the stream's id."""
        if stream_id:
            self.query("move_head", seq=event.seq, hash=hash, id=stream_id)
            return stream_id
        org, project = event.stream.org, event.stream.project or ""
        where = {"org": org, "project": project, "writer": event.stream.writer}
        return int(self._one("new_stream", seq=event.seq, hash=hash, **where)[0])

    def _append(self, **row: Any) -> int:
        return int(self._one("append", **row)[0])

    def erase_payload(self, event_id: str) -> None:
        """Remove the payload and the salt of an event for good. Its hashes stay (R16)."""
        self.query("erase_payload", id=event_id)

    def put_unit(
        self,
        unit: Unit,
        *,
        canonical_key: str | None,
        topic_key: str | None,
        searchable_at: int | None,
        version_key: VersionKey | None = None,
    ) -> None:
        """Insert or replace a unit. `searchable_at` is the position of the change, or None if search need not see it.

        A key that is None stays as it is: only another text has other keys.

        With a `version_key` it is a version of a decision: the store itself refuses a second live one of the same root,
        and a second one of the same number.
        """
        try:
            self.query(
                "put_unit",
                id=unit.id,
                canonical_key=canonical_key,
                topic_key=topic_key,
                searchable_at=searchable_at,
                body=canonical_json(unit.to_json()),
                session=unit.session_key,
                **unit_columns(unit, version_key),
            )
        except self._integrity_error:
            if version_key is None:
                raise
            raise Conflict(
                f"Decision {version_key.root} already has a version {version_key.number}, or another one in force.",
                hint="Read the version in force, then decide again.",
            ) from None
        before = self._written.get(unit.id)
        self._written[unit.id] = unit
        self._texts.clear()
        if before is not None and before.keys == unit.keys:
            return
        if unit.version > 1 or unit.erased_at:
            self.query("drop_citations", unit_id=unit.id)
        for kind, ref in sorted(unit.keys):
            self.query("put_citation", kind=kind, ref=ref, unit_id=unit.id)

    def put_link(self, link: Link) -> None:
        body = canonical_json(link.to_json())
        ends = [link.source, link.target]
        self.query("put_link", id=link.id, type=link.type, open=link.open, body=body, ends=ends)
        for unit_id in ends:
            self.put_link_unit(link.id, unit_id)

    def put_link_unit(self, link_id: str, unit_id: str) -> None:
        """Add a unit to a link, as a further member of a conflict."""
        self.query("put_link_unit", link_id=link_id, unit_id=unit_id)

    def drop_link(self, link_id: str) -> None:
        self.query("drop_link", id=link_id)
        self.query("drop_link_units", link_id=link_id)

    def put_relation(self, relation: Relation) -> None:
        """Relate two decisions. A relation that is stated again gets the id of the new event."""
        self.query("put_relation", source=relation.source, type=relation.type, target=relation.target, id=relation.id)

    def drop_relation(self, source: str, type: str, target: str) -> None:
        self.query("drop_relation", source=source, type=type, target=target)

    def put_test(self, record: TestRecord) -> None:
        self.query(
            "put_test",
            org=record.stream.org,
            project=record.stream.project or "",
            name=record.name,
            place=record.place,
            witnessed=record.witnessed,
            called=testruns.short_name(record.name),
            passed=record.passed,
            flaky=record.flaky,
            tree=record.tree,
            greened_by=record.greened_by,
            at=micros(record.at),
            event_id=record.event_id,
        )

    def drop_tests(self, event_ids: Sequence[str]) -> None:
        """Forget the outcomes that these events recorded last."""
        for part in in_parts(event_ids):
            self.query("drop_tests", event_ids=part)

    def put_use(self, use: Use) -> None:
        """Store what a task did with a unit. A flag that is set stays set."""
        self.query("put_use", **{name: getattr(use, name) for name in units.Use.__match_args__})

    def drop_uses(self, unit_id: str) -> None:
        self.query("drop_uses", unit_id=unit_id)

    def put_code_rule(self, row: Mapping[str, Any]) -> None:
        self.query("put_code_rule", **row)

    def judge_code_rule(self, rule_id: str, row: Mapping[str, Any]) -> None:
        self.query("judge_code_rule", id=rule_id, **row)

    def drop_code_rules(self, rule_ids: Sequence[str]) -> None:
        for part in in_parts(rule_ids):
            self.query("drop_code_rules", ids=part)

    def clear_log(self) -> bool:
        """Remove all events, if their order is the order of writing. Returns whether it is."""
        self.clear_projections()
        self.query("clear_events")
        self.query("clear_heads", hash=b"")
        return True

    def clear_projections(self) -> None:
        self.forget()
        for table in ROWS:
            self.query(f"clear_{table}")

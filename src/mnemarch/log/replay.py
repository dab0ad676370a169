"""The projections in plain dictionaries: what the log says, to compare a store's rows with."""

from __future__ import annotations

from typing import NamedTuple

from mnemarch.model.json_text import canonical_json
from mnemarch.model.stamps import micros
from mnemarch.model.testrun import TestRecord, short_name
from mnemarch.model.unit import Link, Unit, Use, unit_to_json
from mnemarch.stores.sql.rows import CODE_RULE, ROWS, unit_columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from mnemarch.model.caller import Stream
    from mnemarch.model.decision import Relation, VersionKey

FLAGS = ("handed", "used", "credited", "blamed")


class StoredUnit(NamedTuple):
    """A unit's row: what it is, where search and its conversation have it, and by which keys its text is known."""

    unit: Unit
    version: VersionKey | None
    searchable_at: int
    session: str | None
    turn: int
    text_key: str | None
    topic_key: str | None


class Replay:
    """What `Transaction` writes of the projections, by the same names, and what the fold reads of them."""

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
        self.stored[unit.id] = StoredUnit(
            unit,
            version_key,
            known.searchable_at if searchable_at is None else searchable_at,
            known.session,
            known.turn,
            known.text_key if canonical_key is None else canonical_key,
            known.topic_key if topic_key is None else topic_key,
        )

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
        """The newest outcomes of these tests by their whole names, or by what people call them."""
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
        """The same as a reader's, in the same order."""
        for table, key_columns in ROWS.items():
            rows = getattr(self, f"_row_{table}")()
            for row in sorted(rows, key=lambda row: row[:key_columns]):
                yield (table, *row)

    def _row_units(self) -> Iterator[list[Any]]:
        for unit, version_key, *_ in self.stored.values():
            yield [unit.id, canonical_json(unit_to_json(unit)), *unit_columns(unit, version_key).values()]

    def _row_citations(self) -> Iterator[list[Any]]:
        for unit, *_ in self.stored.values():
            yield from ([unit.id, kind, ref] for kind, ref in unit.keys)

    def _row_links(self) -> Iterator[list[Any]]:
        for link in self._links.values():
            yield [link.id, link.type, link.open, canonical_json(link.to_json())]

    def _row_link_units(self) -> Iterator[list[Any]]:
        yield from map(list, self._members)

    def _row_relations(self) -> Iterator[list[Any]]:
        yield from ([*key, relation.id] for key, relation in self._relations.items())

    def _row_tests(self) -> Iterator[list[Any]]:
        for (org, project, name), records in self._tests.items():
            for (place, witnessed), test in records.items():
                flags = test.passed, test.flaky
                rest = (*flags, test.tree, test.greened_by, micros(test.at), test.event_id)
                yield [org, project, name, place, witnessed, short_name(name), *rest]

    def _row_uses(self) -> Iterator[list[Any]]:
        yield from ([*key, *(getattr(use, flag) for flag in FLAGS)] for key, use in self._uses.items())

    def _row_code_rules(self) -> Iterator[list[Any]]:
        yield from ([rule[name] for name in CODE_RULE] for rule in self._code_rules.values())

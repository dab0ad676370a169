"""The projections in plain dictionaries: what the log says, to compare a store's rows with."""

from __future__ import annotations

from mnemarch.model.json_text import canonical_json
from mnemarch.model.stamps import micros
from mnemarch.model.testrun import short_name
from mnemarch.model.unit import Use, unit_to_json
from mnemarch.stores.sql.reader import ROWS
from mnemarch.stores.sql.rows import CODE_RULE, unit_columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from mnemarch.model.caller import Stream
    from mnemarch.model.decision import Relation, VersionKey
    from mnemarch.model.testrun import TestRecord
    from mnemarch.model.unit import Link, Unit

FLAGS = ("handed", "used", "credited", "blamed")


class Replay:
    """What `Transaction` writes of the projections, by the same names, and what the fold reads of them."""

    def __init__(self) -> None:
        self._units: dict[str, tuple[Unit, VersionKey | None, str | None, str | None]] = {}
        self._links: dict[str, Link] = {}
        self._members: set[tuple[str, str]] = set()
        self._relations: dict[tuple[str, str, str], Relation] = {}
        self._tests: dict[tuple[str, str, str], dict[tuple[str, bool], TestRecord]] = {}
        self._uses: dict[tuple[str, str], Use] = {}
        self._code_rules: dict[str, dict[str, Any]] = {}

    def unit(self, unit_id: str) -> Unit | None:
        return self._units[unit_id][0] if unit_id in self._units else None

    def put_unit(
        self,
        unit: Unit,
        *,
        canonical_key: str | None,
        topic_key: str | None,
        searchable_at: int | None,  # noqa: ARG002 - only search needs it
        version_key: VersionKey | None = None,
    ) -> None:
        _, _, *known = self._units.get(unit.id, (unit, None, None, None))
        keys = (canonical_key, topic_key) if canonical_key is not None else known
        self._units[unit.id] = (unit, version_key, *keys)

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

    def keys(self) -> dict[str, tuple[str | None, str | None]]:
        """The keys by which each unit's text is known again."""
        return {unit_id: stored[2:] for unit_id, stored in self._units.items()}

    def _row_units(self) -> Iterator[list[Any]]:
        for unit, version_key, *_ in self._units.values():
            yield [unit.id, canonical_json(unit_to_json(unit)), *unit_columns(unit, version_key).values()]

    def _row_citations(self) -> Iterator[list[Any]]:
        for unit, *_ in self._units.values():
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

"""All projections together, compared with a model in one dictionary."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from operator import itemgetter
from random import Random
from typing import Any

from mnemarch import Scope, Status, Unit
from mnemarch.model.caller import Stream
from mnemarch.model.decision import Relation, RelationType
from mnemarch.model.json_text import canonical_json
from mnemarch.model.stamps import micros
from mnemarch.model.unit import Link, Use, unit_to_json
from mnemarch.stores.sql.transaction import Transaction
from mnemarch.testing.builders import everything, filled, made_link, made_unit, refines
from mnemarch.testing.probe import Probe, on_new_stores
from mnemarch.testing.samples import HERE, HOSTILE_NAMES, SHOP, START, WIDE


class _Model:
    """What a store keeps, in one dictionary: the oracle that every store is compared with."""

    def __init__(self) -> None:
        self.tables: dict[tuple[str, ...], Any] = {}

    def put_unit(self, unit: Unit, **_: object) -> None:
        self.tables["1 units", unit.id] = unit

    def put_link(self, link: Link) -> None:
        self.tables["2 links", link.id] = link
        for unit_id in (link.source, link.target):
            self.tables["3 link units", link.id, unit_id] = []

    def drop_link(self, link_id: str) -> None:
        self.tables.pop(("2 links", link_id), None)
        for key in [key for key in self.tables if key[:2] == ("3 link units", link_id)]:
            del self.tables[key]

    def put_relation(self, relation: Relation) -> None:
        self.tables["4 relations", relation.source, str(relation.type), relation.target] = [relation.id]

    def drop_relation(self, source: str, type: str, target: str) -> None:
        self.tables.pop(("4 relations", source, str(type), target), None)

    def put_test(self, stream: Stream, name: str, passed: bool, at: datetime, event_id: str) -> None:
        self.tables["5 tests", stream.org, stream.project or "", name] = [int(passed), micros(at), event_id]

    def drop_tests(self, event_ids: list[str]) -> None:
        for key in [key for key, row in self.tables.items() if key[0] == "5 tests" and row[2] in event_ids]:
            del self.tables[key]

    def put_use(self, use: Use) -> None:
        key = ("6 uses", use.unit_id, use.task_key)
        flags = (use.handed, use.used, use.credited, use.blamed)
        before = self.tables.get(key, [0, 0, 0, 0])
        self.tables[key] = [int(flag or had) for flag, had in zip(flags, before, strict=True)]

    def drop_uses(self, unit_id: str) -> None:
        for key in [key for key in self.tables if key[:2] == ("6 uses", unit_id)]:
            del self.tables[key]

    def table(self, name: str) -> list[Any]:
        return [row for key, row in sorted(self.tables.items(), key=itemgetter(0)) if key[0] == name]

    def rows(self) -> Iterator[str]:
        for (table, *key), row in sorted(self.tables.items(), key=itemgetter(0)):
            if table == "1 units":
                yield canonical_json(unit_to_json(row))
            elif table == "2 links":
                yield canonical_json(row.to_json())
            else:
                yield canonical_json([*key, *row])


@on_new_stores
class ProjectionContract:
    def test_clearing_the_projections_leaves_the_log_alone(self, store: Probe) -> None:
        store.write(filled)
        before = store.read(everything)
        store.clear_projections()
        after = store.read(everything)
        for name in ("events", "position", "heads", "keys"):
            assert after[name] == before[name]
        for name in ("rows", "searchable", "texts", "skeletons", "citing"):
            assert after[name] == []
            assert before[name] != []
        assert store.uses_of_task("task") == []
        assert not store.test_passed(SHOP, "test_b")

    def test_the_same_changes_give_the_same_rows_as_the_model(self, store: Probe) -> None:
        random = Random(20261116)  # noqa: S311 - the same changes in every run
        names = HOSTILE_NAMES

        def fill(transaction: Transaction | _Model) -> None:
            for number, name in enumerate(names):
                scope = Scope(org=name, project=None if number % 5 == 0 else name)
                unit = made_unit(name, scope=scope, content=name, attributes={name: name, "n": 1.5})
                transaction.put_unit(unit, canonical_key=name, topic_key=None, searchable_at=number)
                transaction.put_link(made_link(f"l-{name}", name, name))
                transaction.put_test(Stream(scope.org, scope.project), name, number % 2 == 0, START, name)
                transaction.put_use(Use(unit_id=name, task_key=name, handed=True, blamed=number % 2 == 0))
                transaction.put_relation(refines(name, name, name))

        def change(transaction: Transaction | _Model) -> None:
            one, other = random.choice(names), random.choice(names)
            match random.randrange(8):
                case 0 | 1 | 2:
                    status = random.choice(list(Status))
                    unit = made_unit(one, scope=random.choice([HERE, WIDE]), content=other, status=status, version=2)
                    transaction.put_unit(unit, canonical_key=other, topic_key="s", searchable_at=None)
                case 3:
                    transaction.put_link(made_link(f"l-{one}", one, other, open=random.random() < 0.5))
                case 4:
                    transaction.put_test(Stream(one, random.choice([one, None])), one, True, START, other)
                case 5:
                    transaction.put_use(Use(unit_id=one, task_key=other, used=random.random() < 0.5))
                case 6:
                    transaction.put_relation(refines(one, other, "e"))
                case _:
                    transaction.drop_uses(one)
                    transaction.drop_link(f"l-{one}")
                    transaction.drop_tests([one])
                    transaction.drop_relation(one, RelationType.REFINES, random.choice([one, other]))

        model = _Model()
        store.write(fill)
        fill(model)
        assert list(store.rows()) == list(model.rows())
        assert len(model.tables) == 6 * len(names)
        for _ in range(300):
            state = random.getstate()
            store.write(change)
            random.setstate(state)
            change(model)
        assert list(store.rows()) == list(model.rows())
        units, links = model.table("1 units"), model.table("2 links")
        keys = [HERE.key, WIDE.key]
        for name in names:
            visible = [unit for unit in units if unit.content == name and unit.scope.key in keys]
            assert store.units_with_text(keys, name) == visible
            assert store.links_of(name) == [link for link in links if ("3 link units", link.id, name) in model.tables]

"""Units: listed, found by text and citation, counted, and told to search."""

from __future__ import annotations

from typing import Any

from mnemarch import Citation, Kind, Level, Scope, Status, Unit
from mnemarch.model.citation import CitationKind
from mnemarch.model.unit import Searchable
from mnemarch.model.value import replace
from mnemarch.stores.sql.transaction import Transaction
from mnemarch.testing.builders import decide, filled, ids, made_unit, put, put_all, put_at, recorded
from mnemarch.testing.probe import Probe, on_new_stores
from mnemarch.testing.samples import HERE, HOSTILE_NAMES, START, WIDE


@on_new_stores
class UnitContract:
    def test_a_unit_comes_back_as_it_was_put_whatever_its_text_is(self, store: Probe) -> None:
        for number, text in enumerate(HOSTILE_NAMES):
            scope = Scope(org=text, project=text, worktree=text, task=text)
            unit = made_unit(
                f"{number}-{text}",
                scope=scope,
                content=text,
                domain=text,
                citations=(Citation.test(text), Citation.symbol(text, text)),
                valid_to=START,
                valid_from_commit=text,
                valid_to_commit=text,
                supersedes=text,
                superseded_by=text,
                contradiction_note=text,
                archived_from=Status.PUBLISHED,
                archive_reason=text,
                erased_at=START,
                attributes={text: [text, 1, 2.5, None, True, {"deep": text}]},
            )
            put(store, unit, key=text)
            assert store.unit(unit.id) == unit
            assert store.units([unit.id]) == {unit.id: unit}, text[:40]
            assert store.units_in([scope.key]) == [unit]
            assert store.units_citing([scope.key], CitationKind.TEST, text) == [unit]
            assert store.units_with_text([scope.key], text) == [unit]
        assert [item.content for item in store.searchable_after(0, 1000)] == list(HOSTILE_NAMES)

    def test_putting_a_unit_again_replaces_it(self, store: Probe) -> None:
        first = made_unit("u-1")
        another = (Citation.test("another"),)
        moved = replace(first, version=2, scope=WIDE, status=Status.PUBLISHED, citations=another)
        put(store, first, key="before", skeleton="before")
        put(store, moved, key="after", skeleton="after")
        both = [HERE.key, WIDE.key]
        assert store.unit("u-1") == moved
        assert store.units_in([HERE.key]) == []
        assert store.units_in([WIDE.key]) == [moved]
        assert store.units_with_text(both, "before") == []
        assert store.units_with_text(both, "after") == [moved]
        assert store.units_of_topic(both, "before", 9) == []
        assert store.units_of_topic(both, "after", 9) == [moved]
        assert store.units_citing([WIDE.key], "test", "tests/test_a.py::test_b") == []
        assert store.units_citing([WIDE.key], "test", "another") == [moved]
        assert len(list(store.rows())) == 1

    def test_many_units_are_fetched_at_once_and_unknown_ids_are_left_out(self, store: Probe) -> None:
        units = [made_unit(f"u-{number:04d}") for number in range(1_500)]
        put_all(store, units)
        assert store.units(["nobody", *ids(units), units[0].id]) == {unit.id: unit for unit in units}

    def test_units_are_listed_newest_first_and_each_page_follows_the_last(self, store: Probe) -> None:
        units = [made_unit() for _ in range(11)]
        put_all(store, units)
        seen: list[Unit] = []
        while page := store.units_in([HERE.key], limit=4, before=seen[-1].id if seen else None):
            assert len(page) <= 4
            seen += page
        assert seen == units[::-1]
        assert store.units_in([HERE.key], limit=0) == []

    def test_a_listing_keeps_to_its_scopes_and_filters(self, store: Probe) -> None:
        units = [
            made_unit(scope=scope, kind=kind, status=status, domain=domain)
            for scope in (*HERE.visible, Scope(org="acme", project="shop-2"))
            for kind, status, domain in (
                (Kind.FACT, Status.VERIFIED, "global"),
                (Kind.SKILL, Status.ARCHIVED, "coding"),
            )
        ]
        put_all(store, units)
        keys = [scope.key for scope in HERE.visible]
        visible = [unit for unit in units if unit.scope.key in keys]
        assert len(visible) == 8

        def listed(**wanted: Any) -> list[Unit]:
            return store.units_in(keys, **wanted)

        assert listed() == visible[::-1]
        assert listed(kind=Kind.FACT) == [unit for unit in visible if unit.kind is Kind.FACT][::-1]
        assert listed(status=Status.ARCHIVED) == [unit for unit in visible if unit.status is Status.ARCHIVED][::-1]
        assert listed(level=Level.PROJECT) == [unit for unit in visible if unit.level is Level.PROJECT][::-1]
        assert listed(domain="coding") == [unit for unit in visible if unit.domain == "coding"][::-1]
        assert listed(domain="codin_") == listed(domain="%") == listed(domain="CODING") == []
        assert listed(live=True) == [unit for unit in visible if unit.live][::-1]
        assert listed(live=False, limit=2) == [unit for unit in visible if not unit.live][:1:-1]
        assert listed(kind=Kind.FACT, status=Status.ARCHIVED) == []
        assert listed(kind=Kind.SKILL, status=Status.ARCHIVED, level=Level.ORG, domain="coding") == [visible[7]]

    def test_units_with_the_same_text_come_oldest_first_and_of_one_topic_surest_first(self, store: Probe) -> None:
        elsewhere = Scope(org="acme", project="shop-2")
        units = [made_unit(status=status) for status in Status] + [made_unit(scope=elsewhere), made_unit()]
        put_all(store, units[:-1], key="k", skeleton="s")
        put(store, units[-1])
        live = units[:3]
        assert [unit.live for unit in live] == [True, True, True]
        assert store.units_with_text([HERE.key], "k") == units[:5]
        assert store.units_with_text([HERE.key], "K") == []
        surest = [live[1], live[2], live[0]]
        assert [unit.status for unit in surest] == [Status.VERIFIED, Status.PUBLISHED, Status.HYPOTHESIS]
        assert store.units_of_topic([HERE.key], "s", 9) == surest
        assert store.units_of_topic([HERE.key], "s", 2) == surest[:2]
        assert store.units_with_text([elsewhere.key], "k") == [units[5]]

    def test_the_live_units_of_some_kinds_are_listed_in_every_scope(self, store: Probe) -> None:
        units = [
            made_unit(scope=scope, kind=kind, status=status)
            for scope in (HERE, Scope(org="other", project="shop"), Scope(org="other"))
            for kind in (Kind.EPISODE, Kind.SKILL, Kind.FACT)
            for status in (Status.HYPOTHESIS, Status.ARCHIVED)
        ]
        put_all(store, units)
        listed = sorted(store.units_of_kinds([Kind.EPISODE, Kind.SKILL]), key=lambda unit: unit.id)
        assert listed == [unit for unit in units if unit.live and unit.kind is not Kind.FACT]

    def test_counts_are_by_one_property_at_a_time(self, store: Probe) -> None:
        store.write(filled)
        put(store, made_unit("u-3", kind=Kind.SKILL, status=Status.ARCHIVED))
        assert store.counts() == {
            "status": {"verified": 2, "archived": 1},
            "kind": {"fact": 2, "skill": 1},
            "level": {"1": 3},
            "total": {"events": 4, "streams": 1, "open_conflicts": 1},
        }

    def test_search_is_told_every_change_once_at_any_page_size(self, store: Probe) -> None:
        def put_three(transaction: Transaction) -> None:
            position = recorded(transaction).position
            for number in range(3):
                put_at(transaction, made_unit(f"together-{position}-{number}"), position)

        for number in range(4):
            put(store, made_unit(f"alone-{number}"))
            store.write(put_three)
        whole = store.searchable_after(0, 1000)
        assert len(whole) == 16
        assert [item.changed_at for item in whole] == sorted(item.changed_at for item in whole)
        for size in range(1, 18):
            seen: list[Searchable] = []
            while page := store.searchable_after(seen[-1].changed_at if seen else 0, size):
                seen += page
                left = store.searchable_count_after(page[-1].changed_at)
                assert left == len(whole) - len(seen), "a page ends with a whole position"
            assert seen == whole

    def test_a_change_that_search_need_not_see_keeps_the_earlier_position(self, store: Probe) -> None:
        unit = put(store, made_unit("u-1"))
        first = store.searchable_after(0, 9)
        put_at(store, replace(unit, version=2, uses=1), None)
        assert store.searchable_after(0, 9) == first
        position = recorded(store).position
        put_at(store, replace(unit, version=3, status=Status.ARCHIVED, content=""), position)
        (item,) = store.searchable_after(first[0].changed_at, 9)
        assert (item.id, item.state, item.content, item.changed_at) == ("u-1", "past", "", position)
        assert (item.scope_key, item.kind, item.domain) == (HERE.key, "fact", "global")
        assert store.searchable_count_after(position) == 0

    def test_units_that_cite_code_are_paged_by_id_whatever_their_scope_or_status(self, store: Probe) -> None:
        code = (Citation.file("src/a.py"), Citation.symbol("src/a.py", "f"), Citation.file("src/b.py"))
        put(store, made_unit("a", citations=code), key="a")
        put(store, made_unit("b", citations=(Citation.test("src/a.py"),)), key="b")
        put(store, made_unit("c", citations=(Citation.symbol("src/c.go", "F"),), scope=WIDE), key="c")
        put(store, made_unit("d", citations=(Citation.file("src/d.py"),), status=Status.ARCHIVED), key="d")
        assert ids(store.units_citing_code("", 9)) == ["a", "c", "d"]
        assert ids(store.units_citing_code("", 2)) == ["a", "c"]
        assert ids(store.units_citing_code("c", 2)) == ["d"]
        assert ids(store.units_citing_code("d", 2)) == []

    def test_units_that_a_commit_replaced_are_listed_without_decisions(self, store: Probe) -> None:
        replaced: dict[str, Any] = {"status": Status.DEPRECATED, "valid_to_commit": "c" * 40}
        put(store, made_unit("a", **replaced), key="a")
        put(store, made_unit("b", status=Status.DEPRECATED, valid_to_commit=None), key="b")
        put(store, made_unit("c", status=Status.VERIFIED, valid_to_commit=None), key="c")
        put(store, made_unit("d", **replaced, scope=WIDE, domain="coding"), key="d")
        put(store, made_unit("e", **replaced, kind=Kind.SKILL), key="e")
        decide(store, "f", **replaced)

        def listed(kind: Kind | None = None, domain: str | None = None, limit: int = 9) -> list[str]:
            return ids(store.units_replaced([HERE.key, WIDE.key], kind=kind, domain=domain, limit=limit))

        assert listed() == ["e", "d", "a"]
        assert listed(limit=1) == ["e"]
        assert listed(kind=Kind.SKILL) == ["e"]
        assert listed(domain="coding") == ["d"]

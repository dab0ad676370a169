"""Links between units, outcomes of tests, and what tasks did with units."""

from __future__ import annotations

from mnemarch.model.caller import Stream
from mnemarch.model.unit import LinkType, Use
from mnemarch.model.value import replace
from mnemarch.testing.builders import made_link, made_unit, put, put_all
from mnemarch.testing.probe import Probe, on_new_stores
from mnemarch.testing.samples import HERE, SHOP, START, WIDE


@on_new_stores
class LinkContract:
    def test_a_link_is_seen_from_both_sides_and_changes_in_place(self, store: Probe) -> None:
        put_all(store, [made_unit(id) for id in ("a", "b", "c")])
        links = [made_link("l-2", "a", "b"), made_link("l-1", "c", "a", LinkType.DUPLICATES)]
        for link in links:
            store.put_link(link)
        assert store.links_of("a") == links[::-1]
        assert store.links_of("b") == [links[0]]
        assert store.open_links([HERE.key], LinkType.CONTRADICTS) == [(links[0], ["a", "b"])]
        assert store.open_links([HERE.key], LinkType.DUPLICATES) == [(links[1], ["a", "c"])]
        assert store.contested(["a", "b", "c"], [HERE.key]) == {"a", "b"}
        assert store.contested(["b", "c"], [HERE.key]) == {"b"}
        assert store.contested(["a", "b"], [WIDE.key]) == store.contested([], [HERE.key]) == set()
        resolved = replace(links[0], open=False, winner="a")
        store.put_link(resolved)
        assert store.link("l-2") == resolved
        assert store.open_links([HERE.key], LinkType.CONTRADICTS) == []
        for _ in range(2):
            store.drop_link("l-2")
        assert store.link("l-2") is None
        assert store.links_of("b") == []

    def test_a_conflict_takes_further_units_and_goes_with_all_of_them(self, store: Probe) -> None:
        put_all(store, [made_unit(id) for id in ("a", "b", "c")])
        link = made_link("l-1", "a", "b")
        store.put_link(link)
        for _ in range(2):
            store.put_link_unit("l-1", "c")
        assert store.units_of_link("l-1") == ["a", "b", "c"]
        assert store.links_of("c") == store.open_conflicts(["c", "nobody"]) == [link]
        assert store.open_links([HERE.key], LinkType.CONTRADICTS) == [(link, ["a", "b", "c"])]
        assert store.contested(["c"], [HERE.key]) == {"c"}
        store.drop_link("l-1")
        assert (store.units_of_link("l-1"), store.links_of("c")) == ([], [])

    def test_an_open_link_is_listed_only_for_scopes_that_see_both_of_its_sides(self, store: Probe) -> None:
        put(store, made_unit("a"))
        put(store, made_unit("b", scope=WIDE))
        links = [made_link("l-1", "a", "b"), made_link("l-2", "b", "nobody"), made_link("l-3", "nobody", "b")]
        for link in links:
            store.put_link(link)
        assert store.open_links([HERE.key, WIDE.key], LinkType.CONTRADICTS) == [(links[0], ["a", "b"])]
        for keys in ([WIDE.key], [HERE.key], []):
            assert store.open_links(keys, LinkType.CONTRADICTS) == []

    def test_the_last_outcome_of_a_test_counts_in_its_own_stream(self, store: Probe) -> None:
        org = Stream("acme", None)
        for stream in (SHOP, org):
            store.put_test(stream, "test_b", True, START, f"e-{stream.project}")
            assert store.test_passed(stream, "test_b")
        assert not store.test_passed(Stream("acme", "shop-2"), "test_b")
        assert not store.test_passed(SHOP, "test_%")
        assert not store.test_passed(SHOP, "TEST_B")
        store.put_test(SHOP, "test_b", False, START, "e-2")
        assert not store.test_passed(SHOP, "test_b")
        assert store.test_passed(org, "test_b")

    def test_outcomes_are_dropped_by_the_events_that_recorded_them_last(self, store: Probe) -> None:
        for name, event_id in (("a", "e-1"), ("b", "e-1"), ("c", "e-2"), ("b", "e-3")):
            store.put_test(SHOP, name, True, START, event_id)
        for event_ids in (["e-1", "nothing"], []):
            store.drop_tests(event_ids)
            assert [store.test_passed(SHOP, name) for name in "abc"] == [False, True, True]
        assert len(list(store.rows())) == 2

    def test_a_flag_of_a_use_once_set_stays_set(self, store: Probe) -> None:
        flags = ("handed", "used", "credited", "blamed")
        for number, flag in enumerate(flags, start=1):
            store.put_use(Use(unit_id="u-1", task_key="t-1", **{flag: True}))
            store.put_use(Use(unit_id="u-1", task_key="t-1"))
            (use,) = store.uses_of_task("t-1")
            assert [getattr(use, name) for name in flags] == [True] * number + [False] * (4 - number)

    def test_uses_are_listed_by_unit_and_by_task(self, store: Probe) -> None:
        uses = [Use(unit_id=unit, task_key=task, used=True) for unit in ("u-1", "u-2") for task in ("t-1", "t-2")]
        for use in uses[::-1]:
            store.put_use(use)
        assert store.uses_of_unit("u-1") == uses[:2]
        assert store.uses_of_task("t-2") == [uses[1], uses[3]]
        assert store.use("u-2", "t-1") == uses[2]
        assert store.use("u-2", "t-3") is None
        assert store.noted_uses(["u-2", "u-3"], "t-2") == {"u-2"}
        assert store.noted_uses(["u-2"], "t-3") == set()
        store.drop_uses("u-1")
        assert store.uses_of_unit("u-1") == []
        assert store.uses_of_task("t-2") == [uses[3]]

"""Decisions: one version in force, and what is related to them or anchored at them."""

from __future__ import annotations

from mnemarch import Conflict, Kind, Level, Scope, Status
from mnemarch.model.decision import Relation, RelationType
from mnemarch.model.value import replace
from mnemarch.stores.sql.transaction import Transaction
from mnemarch.testing.builders import decide, ids, made_unit, put, put_at, refines
from mnemarch.testing.probe import Probe, error_of, on_new_stores
from mnemarch.testing.samples import HERE, WIDE


def _anchor(transaction: Transaction, id: str, domain: str, target: str | None) -> None:
    put(transaction, made_unit(id, kind=Kind.ANCHOR, domain=domain, attributes={"target": target}))


@on_new_stores
class DecisionContract:
    def test_the_store_itself_keeps_one_version_of_a_decision_in_force(self, store: Probe) -> None:
        decide(store, "d-1", root="r-1", strength=2)
        for number, status in ((2, Status.VERIFIED), (1, Status.DEPRECATED)):
            version = {"root": "r-1", "number": number, "strength": 2, "status": status}
            error = error_of(lambda version=version: decide(store, "d-2", **version))  # type: ignore[misc]
            assert isinstance(error, Conflict), version
            assert store.unit("d-2") is None
        decide(store, "d-1", root="r-1", strength=2, status=Status.DEPRECATED)
        assert store.decision_in_force("r-1") is None
        decide(store, "d-2", root="r-1", number=2, strength=2, status=Status.PUBLISHED)
        decide(store, "e-1", root="r-2", strength=2)
        in_force = store.decision_in_force("r-1")
        assert in_force is not None
        assert in_force.id == "d-2"
        assert ids(store.decision_versions("r-1")) == ["d-1", "d-2"]
        assert store.decision_versions("nothing") == []
        put_at(store, made_unit("d-2", kind=Kind.DECISION, status=Status.ARCHIVED, content=""), None)
        assert ids(store.decision_versions("r-1")) == ["d-1"]

    def test_decisions_in_force_are_paged_by_scope_domain_and_strength(self, store: Probe) -> None:
        for number, (scope, domain, strength, status) in enumerate(
            [
                (WIDE, "coding", 2, Status.VERIFIED),
                (WIDE, "coding", 2, Status.PUBLISHED),
                (WIDE, "coding", 1, Status.VERIFIED),
                (WIDE, "coding", 2, Status.DEPRECATED),
                (WIDE, "ui", 2, Status.VERIFIED),
                (HERE, "coding", 2, Status.VERIFIED),
                (WIDE, "coding", 2, Status.VERIFIED),
            ]
        ):
            decide(store, f"d-{number}", strength=strength, scope=scope, domain=domain, status=status)

        def page(after: str, limit: int) -> list[str]:
            return ids(store.decided(WIDE.key, "coding", 2, after=after, limit=limit))

        assert page("", 9) == ["d-0", "d-1", "d-6"]
        assert page("", 2) == ["d-0", "d-1"]
        assert page("d-1", 2) == ["d-6"]

    def test_related_decisions_come_firmest_first_before_the_limit_cuts(self, store: Probe) -> None:
        for root, strength, scope, status in (
            ("a", 1, WIDE, Status.VERIFIED),
            ("b", 3, WIDE, Status.VERIFIED),
            ("c", 2, HERE, Status.VERIFIED),
            ("d", 3, WIDE, Status.ARCHIVED),
            ("e", 3, WIDE, Status.VERIFIED),
            ("f", 1, HERE.at(Level.ORG), Status.VERIFIED),
        ):
            decide(store, f"{root}-2", root=root, number=2, strength=strength, scope=scope, status=status)
        for source, target in (("hub", "a"), ("b", "hub"), ("hub", "b"), ("c", "hub"), ("d", "hub"), ("hub", "f")):
            store.put_relation(refines(source, target, f"{source}{target}"))
        keys = [HERE.key, WIDE.key]
        assert ids(store.related("hub", keys, limit=9)) == ["b-2", "c-2", "a-2"]
        assert ids(store.related("hub", keys, limit=1)) == ["b-2"]
        assert ids(store.related("hub", keys, limit=0)) == []

    def test_the_targets_of_anchors_come_firmest_first_before_the_limit_cuts(self, store: Probe) -> None:
        decide(store, "d-1", strength=1)
        decide(store, "d-2", strength=3)
        decide(store, "d-3", strength=3, status=Status.DEPRECATED)
        decide(store, "d-4", strength=3, scope=Scope(org="elsewhere", project="p"))
        for id, kind in (("e-1", Kind.EVIDENCE), ("f-1", Kind.FACT), ("f-2", Kind.DECISION)):
            put(store, made_unit(id, kind=kind))
        targets = ("e-1", "f-1", "f-2", "d-1", "d-1", "d-2", "d-3", "d-4", "nothing", None)
        for number, target in enumerate(targets):
            _anchor(store, f"a-{number}", "ui", target)
        assert ids(store.anchored([HERE.key], ["ui", "global"], limit=9)) == ["d-2", "d-1", "e-1"]
        assert ids(store.anchored([HERE.key], ["ui"], limit=1)) == ["d-2"]
        assert ids(store.anchored([HERE.key], ["global"], limit=9)) == []

    def test_the_targets_of_anchors_in_very_many_domains_are_ordered_and_cut_as_one(self, store: Probe) -> None:
        domains = [f"domain {number:04d}" for number in range(1_200)]
        for number, strength in ((0, 1), (1, 3), (2, 2)):
            decide(store, f"d-{number}", strength=strength)
        for place, target in ((0, "d-0"), (0, "d-2"), (600, "d-2"), (1_199, "d-1")):
            _anchor(store, f"a-{place}-{target}", domains[place], target)
        assert ids(store.anchored([HERE.key], domains, limit=9)) == ["d-1", "d-2", "d-0"]
        assert ids(store.anchored([HERE.key], domains, limit=2)) == ["d-1", "d-2"]

    def test_the_domains_of_decisions_in_force_are_named_once(self, store: Probe) -> None:
        decide(store, "d-0", domain="ui")
        decide(store, "d-1", domain="coding")
        decide(store, "d-2", domain="ui", status=Status.PUBLISHED)
        decide(store, "d-3", domain="old", status=Status.DEPRECATED)
        put(store, made_unit("f", domain="facts"))
        assert store.domains_decided(HERE.key) == ["coding", "ui"]
        assert store.domains_decided("nowhere") == []

    def test_relations_are_listed_from_both_ends_once_each(self, store: Probe) -> None:
        relations = [
            Relation(source="b", type=RelationType.CONSTRAINS, target="a", id="e-1"),
            Relation(source="a", type=RelationType.DEPENDS_ON, target="b", id="e-2"),
            Relation(source="a", type=RelationType.DEPENDS_ON, target="c", id="e-3"),
        ]
        for relation in (replace(relations[1], id="e-0"), *relations):
            store.put_relation(relation)
        assert store.relations_from(["a"]) == relations[1:]
        assert store.relations_to(["a", "c"]) == [relations[0], relations[2]]
        assert store.relations_from([]) == []
        before = len(list(store.rows()))
        for _ in range(2):
            store.drop_relation("a", RelationType.DEPENDS_ON, "b")
        assert store.relations_from(["a"]) == relations[2:]
        assert len(list(store.rows())) == before - 1

    def test_relations_of_very_many_decisions_come_in_one_order_and_once(self, store: Probe) -> None:
        roots = [f"r-{number:04d}" for number in range(1_200)]
        relations = [refines(root, root, f"e-{root}") for root in roots[::300]]
        for relation in relations:
            store.put_relation(relation)
        asked = [*roots[::-1], *roots]
        assert store.relations_from(asked) == relations
        assert store.relations_to(asked) == relations

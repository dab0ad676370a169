"""The contract of projections: after the same changes, a store gives the same answers as SQLite in memory."""

from __future__ import annotations

from random import Random
from typing import Any

from mnemarch import Citation, Conflict, EventType, Kind, Level, Scope, Status, Unit
from mnemarch.model.caller import Stream
from mnemarch.model.decision import Relation, RelationType, VersionKey
from mnemarch.model.testrun import TestRecord, short_name
from mnemarch.model.unit import LinkType, Use
from mnemarch.stores.sqlite import InMemoryStore
from mnemarch.testing.builders import (
    HERE,
    HOSTILE_NAMES,
    SHOP,
    START,
    WIDE,
    Probe,
    chain_holds,
    error_of,
    everything,
    filled,
    made_link,
    made_rule,
    made_test,
    made_unit,
    on_new_stores,
    probe_of,
    put,
    recorded,
    rule_id,
)

_ELSEWHERE = Scope(org="acme", project="shop-2")
_SCOPES = (HERE, WIDE, HERE.at(Level.ORG), _ELSEWHERE)
_KEYS = [HERE.key, WIDE.key]
_KINDS = (Kind.FACT, Kind.SKILL, Kind.EVIDENCE, Kind.POLICY, Kind.EPISODE)
# More values than databases accept in one list. The names in use are among them, at both ends.
_VERY_MANY = [*HOSTILE_NAMES, *(f"n-{number}" for number in range(1_200)), *HOSTILE_NAMES]


class Story:
    """Random changes to all projections, which are applied to a store and to the model that it is compared with."""

    def __init__(self, seed: int, model: Probe) -> None:
        self._random = Random(seed)  # noqa: S311 - the same changes in every run
        self.model = model
        self._position = 0

    def _outcome(self, name: str, event_id: str, passed: bool) -> TestRecord:
        pick = self._random.choice
        return made_test(
            f"{pick(('a', 'b'))}::{name}",
            passed,
            event_id,
            stream=Stream(name, pick([name, None])),
            place=pick(("", name)),
            witnessed=pick((True, False)),
            flaky=passed,
            tree=name,
            greened_by=event_id,
        )

    def change(self, store: Probe) -> None:
        """Make one change to both stores."""
        pick = self._random.choice
        one, other, is_so = pick(HOSTILE_NAMES), pick(HOSTILE_NAMES), pick((True, False))
        relation = Relation(source=one, type=pick(list(RelationType)), target=other, id=f"e-{self._position}")
        type = pick((LinkType.CONTRADICTS, LinkType.DUPLICATES))
        use: dict[str, Any] = {
            "task_key": pick(HOSTILE_NAMES[:3]),
            pick(("handed", "used", "credited", "blamed")): is_so,
        }
        judged = {"confidence": pick((0.0, 0.5, 1.0)), "observation_count": 2, "success_count": 1, "failure_count": 0}
        judged["updated_at"] = self._position
        changes: list[tuple[str, tuple[Any, ...]]] = [
            *[("put_link", (made_link(f"l-{one}", f"fact-{one}", f"skill-{other}", type, open=is_so),))] * 3,
            ("put_test", (self._outcome(one, other, is_so),)),
            ("put_use", (Use(unit_id=one, **use),)),
            ("put_relation", (relation,)),
            ("put_relation", (relation,)),
            ("put_link_unit", (f"l-{one}", f"fact-{other}")),
            ("drop_link", (f"l-{one}",)),
            ("drop_tests", ([one, "nothing"],)),
            ("drop_uses", (one,)),
            ("drop_relation", (one, relation.type, other)),
            ("put_code_rule", (made_rule(f"r-{one}", project=other),)),
            ("judge_code_rule", (rule_id(f"r-{one}"), judged)),
            ("drop_code_rules", ([rule_id(f"r-{one}"), *_VERY_MANY],)),
            *[("put_unit", ())] * 8,
        ]
        name, arguments = pick(changes)
        for side in (store, self.model):
            if arguments:
                getattr(side, name)(*arguments)
        if not arguments:
            self._put_unit(store, one, other)

    def _put_unit(self, store: Probe, one: str, other: str) -> None:
        pick = self._random.choice
        self._position += pick((0, 1))
        fields: dict[str, Any] = {
            "scope": pick(_SCOPES),
            "domain": pick((one, "ui", "coding")),
            "status": pick(list(Status)),
            "archive_reason": pick((None, "stale", "rejected: no")),
            "valid_to_commit": pick((None, "c" * 40)),
            "citations": pick(((), (Citation.test(other),), (Citation.file(other), Citation.symbol(other, one)))),
            "version": 2,
        }
        version = None
        kind = pick((*_KINDS, Kind.DECISION, Kind.DECISION, Kind.ANCHOR, Kind.ANCHOR))
        id = f"{kind}-{one}"
        if kind is Kind.ANCHOR:
            fields["attributes"] = {"target": pick((None, f"decision-{other}-1", f"evidence-{other}", f"fact-{other}"))}
        if kind is Kind.DECISION:
            in_force = self.model.decision_in_force(one)
            number = len(self.model.decision_versions(one)) + (in_force is None)
            version = VersionKey(root=one, number=number, strength=pick((1, 2, 3)))
            id = in_force.id if in_force else f"decision-{one}-{number}"
            fields["status"] = Status.DEPRECATED if in_force else pick((Status.VERIFIED, Status.PUBLISHED))
        unit = made_unit(id, kind=kind, content=other, **fields)
        how: dict[str, Any] = {
            "canonical_key": pick((None, other)),
            "topic_key": pick((None, "s", one)),
            "searchable_at": pick((None, self._position + 1)),
            "version_key": version,
        }
        for side in (store, self.model):
            side.put_unit(unit, **how)


def answers_of(view: Any) -> dict[str, Any]:
    """The answers of a store to all kinds of questions."""
    answers: dict[str, Any] = {
        "rows": list(view.rows()),
        "units": view.units([f"fact-{name}" for name in _VERY_MANY]),
        "ageing": list(view.units_of_kinds([Kind.EPISODE, Kind.SKILL])),
        "of kinds": [*view.units_of_kinds([Kind.EPISODE, Kind.FACT]), *view.units_of_topics(_KEYS, ["s", "S"])],
        "contested": view.contested([f"fact-{name}" for name in _VERY_MANY], _KEYS),
        "left": [view.searchable_count_after(position) for position in (0, 3, 30)],
        "noted": view.noted_uses(_VERY_MANY, "acme"),
        "from": view.relations_from(_VERY_MANY),
        "to": view.relations_to(_VERY_MANY),
        "tests": [view.tests_cited(keys) for keys in (_KEYS, _KEYS[:1], [])],
        "nothing": [view.units_in([]), view.relations_from([]), view.units([]), view.contested([], _KEYS)],
        "domains": [view.domains_decided(scope.key) for scope in _SCOPES],
        "firm": [view.firm(keys, domains) for keys in (_KEYS, []) for domains in (["ui"], ["ui", "coding"])],
        "rules": [view.code_rules(name) for name in HOSTILE_NAMES],
        "normal": [view.normal_count(_KEYS, ["ui", "coding"], limit) for limit in (0, 1, 100)],
        "open": [view.open_links(keys, type) for type in LinkType for keys in (_KEYS, _KEYS[:1], [])],
        "pages": [_pages(view, limit) for limit in (1, 4, 1_000)],
        "counts": {name: view.counts()[name] for name in ("status", "kind", "level")},
    }
    filters: list[dict[str, Any]] = [{}, {"live": True}, {"live": False}, {"level": Level.PROJECT}, {"domain": "ui"}]
    filters += [{"kind": kind, "live": live} for kind in _KINDS for live in (None, True)]
    filters += [{"status": status} for status in Status] + [{"domain": "%"}, {"domain": "UI"}, {"before": "fact-n"}]
    for limit in (0, 1, 3, 1_000):
        answers[f"at most {limit}"] = [
            [view.units_in(_KEYS, limit=limit, **wanted) for wanted in filters],
            [view.units_of_topic(_KEYS, key, limit) for key in ("s", "S", *HOSTILE_NAMES)],
            [view.rejected_of_topic(SHOP, key, limit) for key in ("s", "S", *HOSTILE_NAMES)],
            [view.units_citing_code(after, limit) for after in ("", "fact-n")],
            [view.units_replaced(_KEYS, kind=kind, domain="ui", limit=limit) for kind in (None, Kind.FACT)],
            [view.decided(WIDE.key, "ui", strength, after="", limit=limit) for strength in (1, 2, 3)],
            view.decided(WIDE.key, "ui", 2, after="decision-a", limit=limit),
            [view.anchored(_KEYS, domains, limit=limit) for domains in (["ui"], ["UI", "acme"], ["ui", *_VERY_MANY])],
            [view.related(name, _KEYS, limit=limit) for name in HOSTILE_NAMES],
        ]
    for name in HOSTILE_NAMES:
        answers[name] = [
            view.unit(f"fact-{name}"),
            view.units_with_text(_KEYS, name),
            view.units_saying(SHOP, name),
            view.units_citing(_KEYS, "test", [name, "nothing"]),
            view.units_citing(_KEYS, "test", [name, "nothing"], live_but=[Kind.EPISODE]),
            view.decision_in_force(name),
            view.decision_versions(name),
            view.link(f"l-{name}"),
            view.links_of(f"skill-{name}"),
            view.units_of_link(f"l-{name}"),
            view.open_conflicts([f"fact-{name}", f"skill-{name}"]),
            [view.newest_citing(_KEYS, "test", name, 1, live=live) for live in (False, True)],
            view.uses_of_unit(name),
            view.uses_of_task(name),
            view.code_met(name),
            view.used_in_task(name),
            view.use(name, "acme"),
            [view.tests(Stream(name, project), [f"a::{name}", name]) for project in (name, None, "other")],
            [view.tests(Stream(name, name), [short_name(name)], called=True)],
        ]
    return answers


def _pages(view: Any, limit: int) -> list[tuple[str, int]]:
    """The changes that search has to index, read in pages. A page never ends in the middle of a position."""
    seen: list[tuple[str, int]] = []
    while page := view.searchable_after(seen[-1][1] if seen else 0, limit):
        seen += [(item.id, item.changed_at) for item in page]
    return seen


@on_new_stores
class ProjectionContract:
    def test_after_the_same_changes_every_answer_is_that_of_sqlite_in_memory(self, store: Probe) -> None:
        for seed in range(2):
            story = Story(seed, probe_of(InMemoryStore()))
            store.clear_projections()
            for number in range(1, 501):
                story.change(store)
                if number in (20, 100, 500):
                    answers, expected = store.read(answers_of), story.model.read(answers_of)
                    for question, answer in expected.items():
                        assert answers[question] == answer, question[:40]

    def test_the_store_itself_keeps_one_version_of_a_decision_in_force(self, store: Probe) -> None:
        def decide(id: str, number: int, status: Status) -> None:
            unit = made_unit(id, kind=Kind.DECISION, status=status)
            key = VersionKey(root="r-1", number=number, strength=2)
            store.put_unit(unit, canonical_key=None, topic_key=None, searchable_at=None, version_key=key)

        decide("d-1", 1, Status.VERIFIED)
        for number, status in ((2, Status.VERIFIED), (1, Status.DEPRECATED)):
            error = error_of(lambda number=number, status=status: decide("d-2", number, status))  # type: ignore[misc]
            assert isinstance(error, Conflict), (number, status)
            assert store.unit("d-2") is None
        decide("d-1", 1, Status.DEPRECATED)
        decide("d-2", 2, Status.PUBLISHED)
        assert [unit.id for unit in store.decision_versions("r-1")] == ["d-1", "d-2"]

    def test_claims_of_a_scope_are_the_live_units_that_its_newest_entries_claimed(self, store: Probe) -> None:
        recorded(store)
        other = [made_unit("u-2", status=Status.DEPRECATED), made_unit("u-3", kind=Kind.EPISODE)]
        for unit in (made_unit("u-1"), *other, made_unit("u-4")):
            recorded(store, type=EventType.UNIT_REMEMBERED, subject=unit.id, payload={"unit": unit.to_json()})
            put(store, unit)
        far = made_unit("u-5")
        payload = {"unit": far.to_json()}
        recorded(store, type=EventType.UNIT_REMEMBERED, subject=far.id, payload=payload, scope=WIDE)
        put(store, far)
        # Storing a unit is an entry too.
        for last, claims in ((10, ["u-1", "u-4"]), (3, ["u-4"]), (2, [])):
            units = store.claims_of_scope(HERE.key, but=[Kind.EPISODE], kept_at=Level.TASK, last=last)
            assert [unit.id for unit in units] == claims

    def test_the_runs_behind_outcomes_are_those_of_one_task(self, store: Probe) -> None:
        here, wide = recorded(store), recorded(store, scope=WIDE)
        for name, event in (("test_a", here), ("test_b", wide), ("test_c", here)):
            store.put_test(made_test(name, event_id=event.id))
        for names, runs in ((["test_a", "test_b", "test_c"], [here.id]), (["test_b"], [])):
            assert [event.id for event in store.runs_behind(SHOP, names, HERE.key)] == runs

    def test_the_tests_behind_units_are_found_by_every_name_that_they_are_cited_by(self, store: Probe) -> None:
        citing = made_unit("u-1", citations=tuple(map(Citation.test, ("test_a", "b.py::test_b", "pkg.TestC"))))
        store.put_unit(citing, canonical_key=None, topic_key=None, searchable_at=1)
        there = ["a.py::test_a", "b.py::test_b", "b.py::test_b[1]", "pkg.TestC/part"]
        for name in (*there, "test_d", "b.py::test_bc"):
            store.put_test(made_test(name, place="main"))
        store.put_test(made_test("a.py::test_a", place="feat"))
        store.put_test(made_test("a.py::test_a", place="main", witnessed=False))
        records = store.tests_behind(SHOP, "main", [citing.id, "u-0"])
        assert sorted((record.name, record.witnessed) for record in records) == [(name, True) for name in there]

    def test_a_unit_comes_back_as_it_was_put_whatever_its_text_is(self, store: Probe) -> None:
        for number, text in enumerate(HOSTILE_NAMES):
            unit = _full_unit(f"{number}-{text}", text)
            store.put_unit(unit, canonical_key=text, topic_key=None, searchable_at=number + 1)
            assert store.unit(unit.id) == unit, text[:40]
            assert store.units_in([unit.scope.key]) == store.units_with_text([unit.scope.key], text) == [unit]
        assert [item.content for item in store.searchable_after(0, 1000)] == list(HOSTILE_NAMES)
        gone = made_unit("gone", status=Status.ARCHIVED, content="")
        store.put_unit(gone, canonical_key=None, topic_key=None, searchable_at=99)
        (item,) = store.searchable_after(len(HOSTILE_NAMES), 9)
        assert (item.id, item.state, item.content, item.changed_at) == ("gone", "past", "", 99)
        assert (item.scope_key, item.kind, item.domain) == (HERE.key, "fact", "global")

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
        assert store.tests(SHOP, ["test_b"]) == []

    def test_a_cleared_log_begins_anew_unless_the_store_gives_events_their_order(self, store: Probe) -> None:
        store.write(filled)
        if store.clear_log():
            assert (store.heads(), list(store.events()), list(store.rows())) == ({}, [], [])
            assert recorded(store).seq == 1
            assert chain_holds(store)


def _full_unit(id: str, text: str) -> Unit:
    """A unit with this text in every field that holds text."""
    return made_unit(
        id,
        scope=Scope(org=text, project=text, worktree=text, task=text),
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

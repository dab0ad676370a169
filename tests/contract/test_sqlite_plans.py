"""Each query is answered by an index: only what an operator asks of a whole memory reads all of a table."""

from __future__ import annotations

import re

import pytest

from fixtures.cases import cases
from mnemarch import Kind, Scope
from mnemarch.stores.sqlite import SqliteStore
from mnemarch.testing import made_unit

TEXTS = SqliteStore.queries.texts
OF_EVERYTHING = dict(cases("sqlite_plans", "of everything"))
# Where the planner has a choice, what it must begin with.
BEGINNINGS = dict(cases("sqlite_plans", "beginnings"))


@pytest.fixture
def store(tmp_path):
    opened = SqliteStore(str(tmp_path / "memory.db"))
    yield opened
    opened.close()


def plan(store, name):
    parameters = dict.fromkeys(re.findall(r":(\w+)", TEXTS[name]))
    parameters |= {key: ["one", "two"] for key in re.findall(r"IN \(:(\w+)\)", TEXTS[name])}
    text, bound = store.queries.bound(name, parameters)
    rows = store.read(lambda reader: list(reader._execute(f"EXPLAIN QUERY PLAN {text}", bound)))
    return [detail for _, _, _, detail in rows]


def scanned(details):
    """What is read from end to end, but for arguments and for what the query itself has found."""
    scans = [detail for detail in details if detail.startswith("SCAN") and "VIRTUAL TABLE" not in detail]
    return [
        detail for detail in scans if not detail.startswith(("SCAN newest", "SCAN page", "SCAN known", "SCAN CONSTANT"))
    ]


def test_only_an_operators_queries_read_a_whole_table(store):
    assert {name for name in TEXTS if scanned(plan(store, name))} == OF_EVERYTHING.keys()


def test_a_query_begins_with_its_most_selective_index(store):
    for name, beginning in BEGINNINGS.items():
        assert plan(store, name)[0].startswith(beginning), (name, plan(store, name))


def test_a_page_of_units_that_cite_code_does_not_read_all_of_them(store):
    assert not any("LIST SUBQUERY" in detail for detail in plan(store, "units_citing_code"))


@pytest.mark.parametrize("kinds", [[], ["episode"], ["skill", "episode"], ["episode", "fact"], ["fact"]])
def test_units_of_any_kinds_are_found_with_and_without_an_index(store, kinds):
    made = [made_unit(scope=Scope(project="p"), kind=kind) for kind in (Kind.EPISODE, Kind.SKILL, Kind.FACT) * 2]

    def put(transaction):
        for unit in made:
            transaction.put_unit(unit, canonical_key=None, topic_key=None, searchable_at=None)

    store.write(put)
    found = store.read(lambda reader: list(reader.units_of_kinds([Kind(kind) for kind in kinds])))
    assert found == [unit for unit in made if unit.kind in kinds]

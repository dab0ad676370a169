"""How decisions are read: by the right index, without superseded versions (D7), and only as far as relations lead."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from contextlib import contextmanager
from itertools import pairwise

import pytest

from mnemarch import Actor, InvalidInput, NotFound, Scope
from mnemarch.decisions import guard
from mnemarch.model.decision import Reason, Relation, RelationType, VersionKey
from mnemarch.model.unit import Kind, Status
from mnemarch.stores.sql import reader as sql_reader
from mnemarch.stores.sqlite import SqliteStore
from mnemarch.testing import made_unit

WHY = Reason("consistency", "so that all do the same")
QUERIES = SqliteStore.queries
DOMAINS = ("global", "coding", "ui")

PLANS = {
    "in_force": "SEARCH units USING INDEX units_in_force (root=?)",
    "versions": "SEARCH units USING INDEX units_versions (root=?)",
    "decided": "SEARCH units USING INDEX units_decided (scope_key=? AND domain=? AND strength=? AND id>?)",
    "firm": "SEARCH units USING INDEX units_decided (scope_key=? AND domain=? AND strength>?)",
    "normal_count": "SEARCH units USING INDEX units_decided (scope_key=? AND domain=? AND strength=?)",
    "domains_decided": (
        "SEARCH units USING INDEX units_decided (scope_key=?)",
        "SEARCH units USING INDEX units_decided (scope_key=? AND domain>?)",
    ),
    "related": (
        "SEARCH units USING INDEX units_in_force (root=?)",
        "SEARCH relations USING PRIMARY KEY (source=?)",
        "SEARCH relations USING COVERING INDEX relations_target (target=?)",
    ),
    "anchored": (
        "SEARCH units USING INDEX units_id (id=?)",
        "SEARCH a USING INDEX units_guiding (kind=? AND scope_key=?)",
        "SEARCH t USING INDEX units_id (id=?)",
    ),
    "relations_from": "SEARCH relations USING PRIMARY KEY (source=?)",
    "relations_to": "SEARCH relations USING INDEX relations_target (target=?)",
    "drop_relation": "SEARCH relations USING PRIMARY KEY (source=? AND type=? AND target=?)",
    # What loading and recall ask beside the decisions themselves.
    "guides_in": "SEARCH units USING INDEX units_guiding (kind=? AND scope_key=? AND id<?)",
    "replaced_in": "SEARCH units USING INDEX units_replaced (scope_key=?)",
    "live_units_in": "SEARCH units USING INDEX units_live (scope_key=? AND id<?)",
    "past_units_in": "SEARCH units USING INDEX units_past (scope_key=? AND id<?)",
    "unit": "SEARCH units USING INDEX units_id (id=?)",
    "units": "SEARCH units USING INDEX units_id (id=?)",
}
# Of an index with this condition, what is not live is no part.
OF_WHAT_IS_LIVE = ("units_in_force", "units_decided", "units_guiding", "units_live")


@pytest.fixture
def seat(disk):
    return disk.seat(Actor.orchestrator("boss-1"), Scope(org="acme", project="shop", worktree="main", task="T-1"))


def decided(seat, text, **fields):
    desk = seat.decisions
    given = [desk.add_evidence("The benchmark says 3 ms").id]
    return desk.commit(desk.propose(text, reason=WHY, evidence=given, **fields))


def decided_everywhere(seat):
    """A decision of each strength in each domain, and an anchor to one of them."""
    made = [
        decided(seat, f"{strength} of {domain}", domain=domain, strength=strength)
        for domain in DOMAINS
        for strength in ("normal", "lock", "axis")
    ]
    seat.decisions.add_anchor("where it is wired", made[-1].id, "wiring", domain="coding")
    return made


def revised(seat, decisions, times):
    """The same decisions with a history; an axis is left as it is."""
    for decision in decisions:
        for number in range(times if str(decision.strength) != "axis" else 0):
            decided(seat, f"{decision.text}, revision {number}", revises=seat.decisions.in_force(decision.id).id)


# The plans


@pytest.mark.parametrize("name", PLANS)
def test_every_query_of_decisions_has_its_index(disk, seat, name):
    made = decided_everywhere(seat)
    revised(seat, made, 2)
    parameters = dict.fromkeys(re.findall(r":(\w+)", QUERIES.texts[name]), "")
    parameters |= {key: ["one", "two"] for key in re.findall(r"IN \(:(\w+)\)", QUERIES.texts[name])}
    text, bound = QUERIES.bound(name, parameters)
    database = sqlite3.connect(disk._engine.store._path)
    try:
        plan = [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {text}", bound)]
    finally:
        database.close()
    known = PLANS[name]
    looks = [step for step in plan if re.match(r"(SEARCH|SCAN) (?!json_each|known)", step)]
    assert looks == ([known] if isinstance(known, str) else list(known))
    # Only what relations or anchors lead to is sorted, and what is few among many.
    is_sorted = name in ("firm", "related", "anchored", "guides_in", "replaced_in")
    assert any("TEMP B-TREE FOR ORDER BY" in step for step in plan) is is_sorted


def test_the_table_above_names_every_query_that_reads_decisions():
    touching = {
        name
        for name, text in QUERIES.texts.items()
        if re.search(r"\broot\b|\brelations\b|\bstrength\b", text) and not name.startswith(("put_", "row_", "clear_"))
    }
    assert touching <= set(PLANS)


@pytest.mark.parametrize("index", OF_WHAT_IS_LIVE)
def test_d7_what_was_superseded_is_no_part_of_the_index(disk, seat, index):
    made = decided_everywhere(seat)
    revised(seat, made, 2)
    database = sqlite3.connect(disk._engine.store._path)
    try:
        (made_by,) = database.execute("SELECT sql FROM sqlite_master WHERE name = ?", (index,)).fetchone()
    finally:
        database.close()
    assert re.search(r"WHERE live\b", made_by)


# What is really read


@contextmanager
def observed(monkeypatch):
    """The queries that run, and the units that are read, while it lasts."""
    ran: Counter[str] = Counter()
    statuses: list[Status] = []
    with monkeypatch.context() as patch:
        asked = sql_reader.Reader.query

        def noted(self, name, /, **parameters):
            ran[name] += 1
            return asked(self, name, **parameters)

        patch.setattr(sql_reader.Reader, "query", noted)
        made = sql_reader.unit_of

        def unit(body):
            found = made(body)
            statuses.append(found.status)
            return found

        patch.setattr(sql_reader, "unit_of", unit)
        yield ran, statuses


def default_path(seat, roots):
    """Everything that somebody asks for what holds."""
    desk = seat.decisions
    return {
        "active": lambda: [desk.active(domain) for domain in DOMAINS],
        "a later page": lambda: desk.active("coding", limit=1, after=desk.active("coding", limit=1)[0].id),
        "load": lambda: [desk.load(domain) for domain in (None, *DOMAINS)],
        "load around": lambda: desk.load("coding", around=roots[0]),
        "in_force": lambda: [desk.in_force(root) for root in roots],
        "impact": lambda: [desk.impact(root) for root in roots],
        "recall of the newest": lambda: seat.recall("", k=50, domain="coding"),
    }


def related(seat, made):
    for before, after in pairwise(made):
        seat.decisions.relate(after.id, "DEPENDS_ON", before.id)


def test_d7_the_default_path_reads_no_superseded_version(seat, monkeypatch):
    made = decided_everywhere(seat)
    related(seat, made)
    revised(seat, made, 4)
    for name, ask in default_path(seat, [one.root_id for one in made]).items():
        with observed(monkeypatch) as (ran, statuses):
            ask()
        assert statuses, name
        assert Status.DEPRECATED not in statuses, name
        assert not ran["versions"], name
    with observed(monkeypatch) as (ran, statuses):
        seat.decisions.history(made[0].id)
    assert ran["versions"] == 1
    assert statuses.count(Status.DEPRECATED) == 4


def test_d7_recall_reads_no_past_version_that_it_does_not_list_as_withheld(seat, monkeypatch):
    made = decided_everywhere(seat)
    revised(seat, made, 6)
    with observed(monkeypatch) as (ran, statuses):
        found = seat.recall("revision of normal and lock", k=50, domain="coding")
    assert found.items
    assert all(item.unit.live for item in found.items)
    assert not ran["versions"]
    assert statuses.count(Status.DEPRECATED) == len(found.withheld) <= 8
    with observed(monkeypatch) as (ran, statuses):
        pack = seat.context("revision of normal and lock", domain="coding")
    assert {item.unit.live for item in (*pack.binding, *pack.items)} == {True}
    assert not ran["versions"]


def steps(store, ask):
    """How many instructions SQLite runs for an answer, once search has caught up."""
    ask()
    count = 0

    def one():
        nonlocal count
        count += 1

    store.read(lambda reader: reader._execute.__self__.set_progress_handler(one, 1))
    try:
        ask()
    finally:
        store.read(lambda reader: reader._execute.__self__.set_progress_handler(None, 0))
    return count


def test_d7_a_long_history_adds_nothing_to_the_work_of_the_default_path(disk, seat):
    made = decided_everywhere(seat)
    related(seat, made)
    roots = [one.root_id for one in made]
    revised(seat, made, 1)
    before = {name: steps(disk._engine.store, ask) for name, ask in default_path(seat, roots).items()}
    history = steps(disk._engine.store, lambda: seat.decisions.history(made[0].id))
    revised(seat, made, 12)
    assert {name: steps(disk._engine.store, ask) for name, ask in default_path(seat, roots).items()} == before
    assert steps(disk._engine.store, lambda: seat.decisions.history(made[0].id)) > history


# Impact reads what is related, and nothing else


class Counting:
    """A reader that counts the rows it gives."""

    def __init__(self, reader):
        self._reader = reader
        self.rows: Counter[str] = Counter()

    def __getattr__(self, name):
        asked = getattr(self._reader, name)

        def answer(*given):
            found = asked(*given)
            self.rows[name] += len(found) if isinstance(found, list) else found is not None
            return found

        return answer


def put_graph(memory, scope, steps_):
    """Decisions by name, and relations by which a change travels from the first to the second."""
    known = sorted({name for step in steps_ for name in step})

    def work(transaction):
        for name in known:
            attributes = {"root": name, "version": 1, "strength": "normal"}
            unit = made_unit(name, kind=Kind.DECISION, scope=scope, content=name, attributes=attributes)
            version_key = VersionKey(root=name, number=1, strength=1)
            if transaction.unit(name) is None:
                transaction.put_unit(
                    unit, canonical_key=None, topic_key=None, searchable_at=None, version_key=version_key
                )
        for before, after in steps_:
            type = RelationType.DEPENDS_ON
            transaction.put_relation(Relation(source=after, type=type, target=before, id=f"{before}>{after}"))

    memory._engine.store.write(work)


def ring(name, size):
    """A cycle with a shortcut across."""
    nodes = [f"{name}-{number:04}" for number in range(size)]
    return [*zip(nodes, nodes[1:] + nodes[:1], strict=True), (nodes[0], nodes[size // 2])]


def rows_read(memory, seat, root):
    def work(reader):
        counting = Counting(reader)
        radius, _ = guard.blast_radius(counting, seat.caller, root, depth_max=64, nodes_max=10_000)
        assert radius.cut is None
        return len(radius.nodes), counting.rows

    return memory._engine.store.read(work)


def test_d14_impact_reads_the_reachable_part_however_large_the_graph_is(memory, seats):
    seat = seats.orchestrator()
    scope = seat.scope
    put_graph(memory, scope, ring("near", 30))
    alone = rows_read(memory, seat, "near-0000")
    assert alone[0] == 29
    # Each relation is met from both of its sides, each decision that is reached is read once.
    assert alone[1] == {"relations_from": 31, "relations_to": 31, "decision_in_force": 29}
    put_graph(memory, scope, [step for number in range(20) for step in ring(f"far{number}", 100)])
    assert rows_read(memory, seat, "near-0000") == alone


def test_d14_relations_in_the_other_direction_are_not_followed(memory, seats):
    seat = seats.orchestrator()
    put_graph(memory, seat.scope, ring("near", 10))
    alone = rows_read(memory, seat, "near-0000")
    # A change of any of these would reach the ring; a change in the ring reaches none of them.
    put_graph(memory, seat.scope, [*ring("far", 500), ("far-0000", "near-0003")])
    reached, rows = rows_read(memory, seat, "near-0000")
    assert reached == alone[0]
    assert rows.total() == alone[1].total() + 1


def test_d14_sqlite_itself_does_no_more_work_in_a_larger_graph(disk, seat):
    put_graph(disk, seat.scope, ring("near", 30))
    alone = steps(disk._engine.store, lambda: seat.decisions.impact("near-0000"))
    put_graph(disk, seat.scope, [step for number in range(20) for step in ring(f"far{number}", 100)])
    assert steps(disk._engine.store, lambda: seat.decisions.impact("near-0000")) == alone


def test_a_proposal_reads_each_decision_that_it_reaches_once(disk, seat, monkeypatch):
    put_graph(disk, seat.scope, ring("near", 30))
    given = [seat.decisions.add_evidence("The benchmark says 3 ms").id]
    with observed(monkeypatch) as (ran, _):
        proposal = seat.decisions.propose("anew", reason=WHY, evidence=given, revises="near-0000")
    assert len(proposal.blast_radius.nodes) == 29
    assert ran["in_force"] == 1 + 29


# What an id leads to, and for whom


def widened(seats):
    """A decision of one worktree that became one of the project, seen from another worktree."""
    lead, other = seats.orchestrator(), seats.agent("coder-2", worktree="feat", task="T-2")
    first = decided(lead, "our own rule", level="worktree")
    second = decided(lead, "everybody's rule", revises=first.id, level="project")
    return first, second, lead, other


def test_a_root_names_the_version_in_force_even_if_the_first_one_is_not_visible(seats):
    first, second, lead, other = widened(seats)
    needs = decided(lead, "it needs that rule")
    lead.decisions.relate(needs.id, "DEPENDS_ON", first.id)
    for desk in (lead.decisions, other.decisions):
        assert desk.in_force(first.id).id == second.id
        assert [node.id for node in desk.impact(first.id).nodes] == [needs.id]
        assert [one.source for one in desk.relations(first.id)] == [needs.id]
        assert [one.unit.id for one in desk.load(around=first.id) if one.tier == 2] == [needs.id]
        assert desk.active() != []
    with pytest.raises(NotFound):
        other.decisions.get(first.id)


def test_a_history_tells_nobody_of_versions_they_may_not_see(seats):
    first, second, lead, other = widened(seats)
    assert [one.id for one in lead.decisions.history(second.id)] == [first.id, second.id]
    for named in (first, second):
        assert [one.id for one in other.decisions.history(named.id)] == [second.id]


def test_relations_tell_nobody_of_decisions_they_may_not_see(seats):
    lead, agent = seats.orchestrator(), seats.orchestrator(worktree="feat")
    base, shared = decided(lead, "base"), decided(lead, "shared")
    own = decided(agent, "local", level="worktree")
    lead.decisions.relate(shared.id, "REFINES", base.id)
    agent.decisions.relate(own.id, "DEPENDS_ON", base.id)
    assert {one.source for one in agent.decisions.relations(base.id)} == {own.id, shared.id}
    assert {one.source for one in lead.decisions.relations(base.id)} == {shared.id}
    seats.system().archive(shared.id, "done")
    assert {one.source for one in lead.decisions.relations(base.id)} == {shared.id}


def test_a_root_still_names_its_decision_when_its_first_version_was_erased(seats):
    lead = seats.orchestrator()
    first = decided(lead, "use the key of the lighthouse")
    second = decided(lead, "use no key at all", revises=first.id)
    lead.erase(first.id, "private")
    assert lead.decisions.in_force(first.id).id == second.id
    assert [one.id for one in lead.decisions.history(first.id)] == [second.id]


def test_g23_nobody_takes_a_decision_from_where_they_may_not_decide(seats):
    lead, agent = seats.orchestrator(), seats.agent()
    wide = decided(lead, "Use SQLite")
    given = [agent.decisions.add_evidence("It was slow").id]
    proposal = agent.decisions.propose("Use files", reason=WHY, evidence=given, revises=wide.id, level="worktree")
    assert agent.decisions.commit(proposal).rule == "R12"
    assert seats.orchestrator(worktree="feat", task="T-9").decisions.in_force(wide.id).text == "Use SQLite"
    assert str(lead.decisions.commit(proposal).unit.level) == "worktree"


def test_every_broken_anchor_is_found_however_many_hold(seats):
    lead = seats.orchestrator()
    gone, kept = decided(lead, "to be revised"), decided(lead, "to stay")
    broken = [lead.decisions.add_anchor(f"old {number}", gone.id, "gotcha").id for number in range(3)]
    for number in range(120):
        lead.decisions.add_anchor(f"new {number}", kept.id, "gotcha")
    decided(lead, "revised", revises=gone.id)
    assert [one.id for one in lead.decisions.broken_anchors()] == broken[::-1]
    assert [one.id for one in lead.decisions.broken_anchors(limit=1)] == broken[-1:]
    assert lead.decisions.broken_anchors(limit=0) == []


@pytest.mark.parametrize("wrong", [5, "", " ", ["x"], {}, "\ud800"])
def test_what_can_be_no_id_is_refused_in_words(seats, wrong):
    lead = seats.orchestrator()
    there = decided(lead, "there")
    desk = lead.decisions
    for ask in (
        lambda: desk.get(wrong),
        lambda: desk.in_force(wrong),
        lambda: desk.history(wrong),
        lambda: desk.impact(wrong),
        lambda: desk.relations(wrong),
        lambda: desk.active(after=wrong),
        lambda: desk.load(around=wrong),
        lambda: desk.relate(wrong, "DEPENDS_ON", there.id),
        lambda: desk.unrelate(there.id, "DEPENDS_ON", wrong),
    ):
        with pytest.raises(InvalidInput):
            ask()

"""No verb crosses a scope, whatever the ids look like (R3)."""

from __future__ import annotations

from contextlib import suppress
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mnemarch
from mnemarch import Actor, Citation, InvalidInput, NotFound, Scope
from mnemarch.model.stamps import new_id, short_id
from mnemarch.policy.admission import KEY_CHARS_MAX, NAME_CHARS_MAX
from mnemarch.testing import HOSTILE_NAMES
from mnemarch.verbs import VERBS
from mnemarch.verbs.types import ID, REQUIRED

TEST = "test_retry"
names = st.one_of(
    st.sampled_from([name for name in HOSTILE_NAMES if len(name) <= NAME_CHARS_MAX and name.isprintable()]),
    st.text(alphabet="ac%_/:\\'\"-🧠", min_size=1, max_size=5),
).filter(str.strip)


@st.composite
def scopes(draw):
    return Scope(org=draw(names), project=draw(names), worktree=draw(names), task=draw(names))


def with_one_segment_changed(scope, index, name):
    segments = scope.segments
    segments[index] = name
    return Scope.of(segments)


def filled(memory, scope):
    """Something of everything in one scope, at every level below the org."""
    agent, boss = memory.seat(Actor.agent("a"), scope), memory.seat(Actor.orchestrator("o"), scope)
    human = memory.seat(Actor.human("h"), scope)
    agent.log("thought", "The zebra protocol is secret", key="k")
    units = [
        agent.remember("The zebra protocol retries 3 times", level="task").unit,
        agent.remember("The zebra protocol sleeps", level="worktree", citations=[Citation.test(TEST)]).unit,
        human.remember("The zebra protocol is wide", level="project", citations=[Citation.human("h")]).unit,
    ]
    stored = boss.remember("The zebra protocol retries 5 times", level="task")
    agent.recall("zebra protocol")
    agent.use(units[0].id)
    return [*units, stored.unit], stored.conflicts[0]


def crossings(memory, stranger, units, conflict):
    """What a stranger could read or change of another scope's things, if anything crossed."""
    seats = [memory.seat(Actor(kind, "a"), stranger) for kind in ("agent", "orchestrator", "human")]
    crossed = []
    own = seats[0].remember("A fact of the stranger").unit
    for seat in seats:
        for unit in units:
            for verb, *arguments in (
                ("cite", unit.id, Citation.test("t")),
                ("use", unit.id),
                ("validate", unit.id, "tests_passed"),
                ("approve", unit.id),
                ("reject", unit.id, "why"),
                ("archive", unit.id, "why"),
                ("revive", unit.id, "why"),
                ("erase", unit.id, "why"),
                ("promote", unit.id, "project"),
                ("supersede", own.id, unit.id, "why"),
                ("supersede", unit.id, own.id, "why"),
            ):
                with suppress(NotFound):
                    crossed.append((verb, getattr(seat, verb)(*arguments)))
        ids = {unit.id for unit in units}
        crossed += [("units", unit) for unit in seat.units(limit=1000) if unit.id in ids]
        found = seat.recall("zebra protocol retries", k=100)
        crossed += [("recall", item) for item in found.items if item.unit.id in ids]
        crossed += [("withheld", item) for item in found.withheld if item.unit_id in ids]
        # People and orchestrators may look at what lies below their own project.
        if not seat.caller.may_read(units[0].scope):
            for id in (*ids, *(short_id(id) for id in ids), conflict.id):
                for verb in ("show", "get", "explain", "history", "related"):
                    with suppress(NotFound):
                        crossed.append((verb, getattr(seat, verb)(id)))
            crossed += [("events", event) for event in seat.events(limit=1000) if event.subject in ids]
            crossed += [("units", unit) for unit in seat.units(ids=list(ids))]
            crossed += [("status", unit) for unit in seat.status().learned if unit.id in ids]
            disputes = (*seat.conflicts(), *seat.proposals())
            crossed += [("conflicts", item) for item in disputes if set(item.units) & ids]
            with suppress(NotFound):
                crossed.append(("resolve", seat.resolve(conflict.id, winner=units[0].id, reason="why")))
        if seat.log("thought", "Other words", key="k").duplicate and seat is seats[0]:
            crossed.append(("key", seat))
    return crossed


@settings(max_examples=25)
@given(scopes(), st.integers(0, 3), names)
def test_r3_no_verb_crosses_a_scope(scope, index, name):
    stranger = with_one_segment_changed(scope, index, name)
    with mnemarch.open(":memory:") as memory:
        units, conflict = filled(memory, scope)
        # What lies at a level that both share is rightly seen by both.
        hidden = [unit for unit in units if unit.scope.key not in {seen.key for seen in stranger.visible}]
        ids = [unit.id for unit in hidden]
        before = memory._engine.store.read(lambda reader: reader.units(ids))
        if stranger == scope:
            return
        assert crossings(memory, stranger, hidden, conflict) == []
        assert memory._engine.store.read(lambda reader: reader.units(ids)) == before


def test_r3_people_and_leads_inspect_the_whole_project_and_agents_do_not(memory, seats):
    claim = seats.agent().remember("The zebra sleeps").unit
    project = claim.scope.at("project")
    for seat in (memory.seat(Actor.human("h"), project), memory.seat(Actor.orchestrator("o"), project)):
        assert seat.get(claim.id).id == seat.explain(short_id(claim.id)).unit.id == claim.id
        assert [event.subject for event in seat.history(claim.id)] == [claim.id]
        assert seat.related(claim.id) == []
        with pytest.raises(NotFound, match=r"lives in .*mnemarch|lives in .*accept"):
            seat.use(claim.id)
    with pytest.raises(NotFound, match="No unit"):
        memory.seat(Actor.agent("other"), project).get(claim.id)


CLOSE = [
    (Scope(org="acme", project="p", task="t"), Scope(org="acme-corp", project="p", task="t")),
    (Scope(org="acme", project="p", task="t"), Scope(org="acm%", project="p", task="t")),
    (Scope(org="acme", project="p", task="t"), Scope(org="ACME", project="p", task="t")),
    (Scope(org="o", project="a/b", task="t"), Scope(org="o", project="a", task="b/t")),
    (Scope(org="o", project="a", worktree="b", task="c"), Scope(org="o", project="a", worktree="b::c", task="c")),
    (Scope(org="o", project="p", task="é"), Scope(org="o", project="p", task="e\u0301")),
    (Scope(org="o", project="x" * 256, task="t"), Scope(org="o", project="x" * 255, task="t")),
]


@pytest.mark.parametrize(("home", "stranger"), CLOSE, ids=lambda scope: str(scope)[:30])
def test_r3_close_names_are_strangers(memory, home, stranger):
    home = Scope(org=home.org, project=home.project, worktree=home.worktree or "w", task=home.task)
    stranger = Scope(org=stranger.org, project=stranger.project, worktree=stranger.worktree or "w", task=stranger.task)
    units, conflict = filled(memory, home)
    hidden = [unit for unit in units if unit.scope.key not in {seen.key for seen in stranger.visible}]
    assert len(hidden) >= 2
    assert crossings(memory, stranger, hidden, conflict) == []


def test_r3_a_strangers_same_text_is_a_unit_of_its_own_and_opposes_nothing(memory, seats):
    first = seats.agent().remember("Checkout retries 3 times", level="worktree").unit
    same = seats.agent("b", project="bank").remember("Checkout retries 3 times", level="worktree")
    opposed = seats.agent("b", worktree="feature").remember("Checkout retries 5 times", level="worktree")
    assert not same.merged
    assert same.unit.id != first.id
    assert opposed.conflicts == ()
    assert memory.stats().open_conflicts == 0


def test_r3_the_log_of_another_project_can_not_be_cited(seats):
    receipt = seats.agent(project="bank").log("thought", "secret")
    unit = seats.agent().remember("Checkout retries").unit
    with pytest.raises(InvalidInput):
        seats.agent().cite(unit.id, Citation.log(receipt.event_id))


def test_r3_an_org_seat_sees_only_org_units(seats):
    seats.agent().remember("Checkout retries")
    seats.vouched("Wide fact")
    org = seats.human(project=None, worktree=None, task=None)
    assert org.units() == []
    assert org.recall("checkout wide").items == ()
    wide = org.remember("Org fact", citations=[Citation.human("alice")]).unit
    assert seats.agent(project="bank").get(wide.id) == wide
    with pytest.raises(NotFound):
        seats.agent(org="acme-corp").get(wide.id)


NAMED = {
    "actor": lambda memory, name: memory.seat(Actor.agent(name), Scope(project="p")),
    "org": lambda memory, name: memory.seat(Actor.agent("a"), Scope(org=name, project="p")),
    "project": lambda memory, name: memory.seat(Actor.agent("a"), Scope(project=name)),
    "worktree": lambda memory, name: memory.seat(Actor.agent("a"), Scope(project="p", worktree=name)),
    "task": lambda memory, name: memory.seat(Actor.agent("a"), Scope(project="p", task=name)),
    "session": lambda memory, name: memory.seat(Actor.agent("a"), Scope(project="p"), session=name),
    "session of an entry": lambda memory, name: person(memory).log("x", "y", session=name),
    "domain": lambda memory, name: person(memory).remember("A fact", domain=name),
    "domain of a decision": lambda memory, name: person(memory).decisions.active(name),
    "key": lambda memory, name: person(memory).log("x", "y", key=name * 2 if len(name) > 99 else name),
    "tag": lambda memory, name: person(memory).decisions.add_evidence("It fell", [name]),
}


def person(memory):
    return memory.seat(Actor.human("h"), Scope(project="p", worktree="w", task="t"))


@pytest.mark.parametrize("what", NAMED)
def test_a_name_is_one_line_of_bounded_length(what):
    with mnemarch.open(":memory:") as memory:
        for wrong in ("x" * (NAME_CHARS_MAX + 1), "a\nb", "\x1b[2J", "a\0", "\x9b"):
            with pytest.raises(InvalidInput, match=r"characters; the limit is|control character"):
                NAMED[what](memory, wrong)
        NAMED[what](memory, "가" * (NAME_CHARS_MAX if what != "key" else KEY_CHARS_MAX // 2))


# How each kind of id that a verb takes is filled; a parameter that takes an id and has no row here fails the test.
IDS = {
    "unit_id": "unit",
    "new_id": "unit",
    "old_id": "unit",
    "winner": "unit",
    "conflict_id": "link",
    "decision_id": "decision",
    "source_id": "decision",
    "target_id": "decision",
    "around": "decision",
    "revises": "decision",
    "evidence": "evidence",
    "request_id": "request",
    "id": "unit link event",
    "after": "unit event",
    "ids": "unit request",
    "without": "unit",
    "undo_id": "undo event",
    "rule_id": "rule event",
    "entry_id": "event unit",
}
REST = {"reason": "why", "citation": Citation.test("t"), "signal": "tests_passed", "relation": "REFINES"}
REST |= {"before": "a = b == None\n", "after": "a = b is None\n", "success": True}
REST |= {"hint": "look", "kind": "runbook", "text": "Do it", "to": "project"}
TAKES_ID = [
    (verb, parameter)
    for verb in VERBS
    for parameter in verb.takes
    if parameter.type is ID and parameter.default in (REQUIRED, None, ())
]


@pytest.fixture(scope="module")
def probed():
    """A memory with something of every kind in one project, and what it is called."""
    with mnemarch.open(":memory:") as memory:
        human = memory.seat(Actor.human("h"), Scope(project="shop", worktree="w", task="t"))
        agent = memory.seat(Actor.agent("a"), Scope(project="shop", worktree="w", task="t"))
        first = agent.remember("The zebra retries 3 times").unit
        conflict = agent.remember("The zebra retries 5 times").conflicts[0]
        proposal = human.decisions.propose("Zebras sleep", reason={"type": "risk", "summary": "safe"}, snapshots=["x"])
        decision = human.decisions.commit(proposal)
        asked = agent.decisions.propose("Zebras run", reason={"type": "risk", "summary": "safe"}, snapshots=["y"])
        agent.decisions.commit(asked)
        names = {"unit": first.id, "link": conflict.id, "decision": decision.id, "evidence": decision.evidence[0]}
        names |= {"request": human.decisions.requests()[0].id, "event": agent.log("thought", "zebra").event_id}
        noisy = memory.seat(Actor.agent("noisy"), Scope(project="shop", worktree="w", task="t"))
        noisy.remember("Zebras are blue")
        names["rule"] = agent.rules.learn("x = y == None\n", "x = y is None\n").new[0].id
        names["undo"] = human.undo("agent:noisy", reason="wrong").id
        yield memory, names


def answer(memory, verb, parameter, id, actor):
    """The answer that a stranger gets, or the error without the id."""
    seat = memory.seat(actor, Scope(project="bank", worktree="w", task="t"))
    own = seat.remember(f"A fact of {actor}").unit.id if parameter.name in ("old_id", "new_id", "winner") else new_id()
    given = {each.name: REST.get(each.name, own) for each in verb.takes if each.default is REQUIRED}
    given[parameter.name] = [id] if parameter.many else id
    owner = verb.name.partition(".")[0]
    target = seat if owner == "seat" else getattr(seat, owner)
    try:
        return repr(getattr(target, verb.name.partition(".")[2])(**given)).replace(id, "ID")
    except mnemarch.MnemarchError as error:
        return type(error).__name__, f"{error}".replace(id, "ID").replace(own, "OWN")


@pytest.mark.parametrize(("verb", "parameter"), TAKES_ID, ids=[f"{verb.name}-{each.name}" for verb, each in TAKES_ID])
def test_r3_another_scopes_id_is_answered_as_one_that_is_nowhere(probed, verb, parameter):
    memory, names = probed
    for kind, what in product(("human", "orchestrator", "agent"), IDS[parameter.name].split()):
        there, nowhere = (answer(memory, verb, parameter, id, Actor(kind, "x")) for id in (names[what], new_id()))
        assert there == nowhere, (kind, what)


@pytest.mark.parametrize("scope", [Scope(project="bank", worktree="w", task="t"), Scope(project="shop", task="t-2")])
def test_r3_a_log_id_that_the_seat_can_not_see_is_cited_like_one_that_is_nowhere(probed, scope):
    memory, names = probed
    seat = memory.seat(Actor.agent("x"), scope)
    told = []
    for id in (names["event"], new_id()):
        with pytest.raises(InvalidInput) as caught:
            seat.remember("The zebra is asleep", citations=[Citation.log(id)])
        told.append(str(caught.value).replace(id, "ID"))
    assert told[0] == told[1]

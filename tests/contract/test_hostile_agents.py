"""Whatever agents do under their own names, their word alone verifies nothing for the project (R4, R21)."""

from __future__ import annotations

import tempfile
from contextlib import suppress

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import mnemarch
from mnemarch import Citation, EventType, MnemarchError, Status

TEXTS = ("Pigs fly at noon", "Pigs never fly", "Checkout retries 3 times", "Checkout retries 5 times")
TESTS = ("test_pigs", "tests/test_pay.py::test_pay", "test_seen")
LEVELS = ("task", "worktree", "project", "org")
SIGNALS = ("tests_passed", "pr_merged", "human_approved", "repeated_success")
TRUSTED = {Status.VERIFIED, Status.PUBLISHED}

texts, tests = st.sampled_from(TEXTS), st.sampled_from(TESTS)
agents = st.sampled_from([("coder-1", "main", "T-1"), ("coder-2", "main", "T-2"), ("coder-2", "feat", "T-3")])
# A citation of a log entry names it by how long ago it was recorded.
citations = st.one_of(
    st.builds(Citation.test, tests),
    st.just(Citation.human("alice")),
    st.just(Citation.human("coder-1")),
    st.tuples(st.just("log"), st.integers(0, 5)),
)
attributes = st.sampled_from([{}, {"kept_as": "accepted"}, {"root": "x", "version": 1, "strength": "lock"}])
units = st.integers(0, 7)
AGENTS_VERBS = {
    "remember": st.tuples(
        texts,
        st.sampled_from(("fact", "skill", "preference", "episode")),
        st.sampled_from((None, *LEVELS)),
        st.lists(citations, max_size=2),
        attributes,
    ),
    "cite": st.tuples(units, citations),
    "verify": st.tuples(st.booleans(), st.lists(tests, max_size=2)),
    "report": st.tuples(st.booleans(), st.lists(tests, min_size=1, max_size=2)),
    "use": st.tuples(units),
    "log": st.tuples(texts),
    "promote": st.tuples(units, st.sampled_from(LEVELS[1:])),
    "approve": st.tuples(units),
    "validate": st.tuples(units, st.sampled_from(SIGNALS)),
    "accept": st.tuples(units),
    "withdraw": st.tuples(units),
    "supersede": st.tuples(units, units),
    "revive": st.tuples(units),
    "reject": st.tuples(units),
}
# A lead who says yes to everything, but hands in no report of tests: that would be a witness.
LEADS_VERBS = ("remember", "promote", "approve", "validate", "accept", "supersede", "revive", "reject", "verify")
# What a person does; each may make a unit trusted.
PERSONS_VERBS = ("approve", "accept", "reject")


def steps_of(who, verbs):
    return st.one_of([st.tuples(who, st.just(verb), AGENTS_VERBS[verb]) for verb in verbs])


agents_steps = steps_of(st.tuples(st.just("agent"), agents), AGENTS_VERBS)
lead_steps = steps_of(st.tuples(st.just("orchestrator"), st.just(("boss", "main", "T-1"))), LEADS_VERBS)
persons_steps = steps_of(st.tuples(st.just("human"), st.just(("alice", "main", "T-1"))), PERSONS_VERBS)


class Day:
    """One memory, and what was done in it."""

    def __init__(self, seats) -> None:
        self.seats = seats
        self.seats.vouched("Delivery takes two days")
        self.seats.saw("test_seen", task="T-0")

    def take(self, who, verb, arguments) -> None:
        kind, (name, worktree, task) = who
        seat = self.seats.seat(kind, name, worktree=worktree, task=task)
        with suppress(MnemarchError):
            getattr(self, verb)(seat, *arguments)

    def all_units(self):
        """Every unit of the project, newest first."""
        events = self.seats.events()
        ids = [event.subject for event in events if event.type is EventType.UNIT_REMEMBERED]
        return self.seats.human().units(ids=ids, limit=10_000)

    def unit(self, number):
        found = self.all_units()
        return found[-1 - number % len(found)].id

    def citation(self, sketch):
        if isinstance(sketch, Citation):
            return sketch
        events = self.seats.events()
        return Citation.log(events[-1 - sketch[1] % len(events)].id)

    def remember(self, seat, text, kind, level, cited, attributes):
        cited = [self.citation(item) for item in cited]
        seat.remember(text, kind=kind, level=level, citations=cited, attributes=attributes)

    def cite(self, seat, number, citation):
        seat.cite(self.unit(number), self.citation(citation))

    def verify(self, seat, passed, names):
        seat.verify(passed, tests=names, analysis={"is_repeatable": True, "extracted_code": "x"} if passed else None)

    def report(self, seat, passed, names):
        lines = [f"{'' if passed else 'not '}ok {n} - {name}" for n, name in enumerate(names, start=1)]
        with tempfile.NamedTemporaryFile("w", suffix=".tap") as forged:
            forged.write("\n".join(["TAP version 13", f"1..{len(names)}", *lines, ""]))
            forged.flush()
            seat.verify(report=forged.name)

    def use(self, seat, number):
        seat.use(self.unit(number))

    def log(self, seat, text):
        seat.log("goal", text)

    def promote(self, seat, number, level):
        seat.promote(self.unit(number), to=level)

    def approve(self, seat, number):
        seat.approve(self.unit(number))

    def validate(self, seat, number, signal):
        seat.validate(self.unit(number), signal)

    def accept(self, seat, number):
        waiting = seat.inbox()
        seat.accept(waiting[number % len(waiting)].id if waiting else self.unit(number))

    def withdraw(self, seat, number):
        seat.withdraw(self.unit(number), "why")

    def supersede(self, seat, new, old):
        seat.supersede(self.unit(new), self.unit(old), "why")

    def revive(self, seat, number):
        seat.revive(self.unit(number), "why")

    def reject(self, seat, number):
        seat.reject(self.unit(number), "why")

    def check(self) -> None:
        """What is trusted in the project was vouched for by a person in an act of their own."""
        vouched = {event.subject for event in self.seats.events() if event.actor.kind == "human"}
        for unit in self.all_units():
            if unit.status in TRUSTED and unit.scope.worktree is None:
                assert unit.id in vouched
                assert unit.proof is not None
                assert unit.proof.person == "alice"


def test_a_lead_who_accepts_a_claim_with_a_test_about_something_else_verifies_nothing(seats_of):
    with mnemarch.open(":memory:") as memory:
        day = Day(seats_of(memory))
        lead = day.seats.seat("orchestrator", "boss", worktree="main", task="T-1")
        lead.remember("Checkout retries 3 times", level="project", citations=[Citation.test("test_seen")])
        for item in lead.inbox():
            lead.accept(item.id)
        accepted = next(unit for unit in day.all_units() if unit.content == "Checkout retries 3 times")
        assert accepted.attributes["kept_as"] == "accepted"
        assert accepted.status is Status.HYPOTHESIS
        day.check()


# A sequence as short as this needs no shrinking, which takes minutes.
@settings(max_examples=40, phases=[Phase.explicit, Phase.generate])
@given(st.lists(st.one_of(agents_steps, lead_steps, persons_steps), min_size=5, max_size=20))
def test_no_agents_text_is_verified_for_the_project_without_a_witness(seats_of, steps):
    with mnemarch.open(":memory:") as memory:
        day = Day(seats_of(memory))
        for step in steps:
            day.take(*step)
        day.check()
        assert memory.rebuild().same

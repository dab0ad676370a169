"""The loading order (D15-D19, R10) whatever a memory holds: tried on random ones, beside a plain list of what is so."""

from __future__ import annotations

import tempfile
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mnemarch
from mnemarch import Actor, Citation, Conflict, InvalidInput, NotAllowed, NotFound, Scope
from mnemarch.model.decision import Reason, RelationType

WHY = Reason("consistency", "so that all do the same")
HOME = Scope(org="acme", project="shop", worktree="main", task="T-1")
# Where decisions are made: here, in another worktree, project or org.
PLACES = (
    HOME,
    HOME,
    Scope(org="acme", project="shop", worktree="feat", task="T-2"),
    Scope(org="acme", project="other", worktree="main", task="T-1"),
    Scope(org="corp", project="shop", worktree="main", task="T-1"),
)
DOMAINS = ("global", "coding", "ui")
STRENGTHS = ("normal", "lock", "axis")
FIRMNESS = {name: number for number, name in enumerate(STRENGTHS)}
LEVELS = ("worktree", "project", "org")
PHASES = ("design", "implement", "verify", "", "coding")

places = st.integers(0, len(PLACES) - 1)
domains = st.sampled_from(DOMAINS)
strengths = st.sampled_from(STRENGTHS)
which = st.integers(0, 30)
acts = st.lists(
    st.one_of(
        st.tuples(st.just("decide"), places, domains, strengths, st.sampled_from(LEVELS)),
        st.tuples(st.just("decide"), st.just(0), domains, strengths, st.just("project")),
        st.tuples(st.just("revise"), which, st.none() | strengths, st.none() | domains),
        st.tuples(st.just("archive"), which),
        st.tuples(st.just("relate"), which, st.sampled_from(list(RelationType)), which),
        st.tuples(st.just("policy"), places),
        st.tuples(st.just("anchor"), which, domains, st.sampled_from(["decision", "evidence"])),
        st.tuples(st.just("know"), places, st.booleans(), domains),
    ),
    min_size=6,
    max_size=40,
)


class World:
    """A memory, and beside it a list of what was done to it."""

    def __init__(self, target):
        self.memory = mnemarch.open(target)
        self.decisions = []  # One record for each version.
        self.policies, self.anchors, self.relations = [], [], []
        self.lead = self.seat("orchestrator", HOME)
        self.desk = self.lead.decisions

    def seat(self, kind, scope):
        return self.memory.seat(Actor(kind, f"{kind}-1"), scope)

    def do(self, act):
        name, *how = act
        # What is refused is refused: it leaves the memory and the list as they were.
        with suppress(NotAllowed, NotFound, Conflict):
            getattr(self, f"_{name}")(*how)

    def _commit(self, scope, level, **fields):
        # Only a person may decide for the org, or against the guardian; only agents and their lead for a worktree.
        kind = "orchestrator" if level == "worktree" else "human"
        desk = self.seat(kind, scope).decisions
        given = [self.seat("agent", scope).decisions.add_evidence("seen in the benchmark").id]
        text = f"rule {len(self.decisions)} of the shop"
        proposal = desk.propose(text, reason=WHY, evidence=given, level=level, **fields)
        return desk.commit(proposal, override="a person said so" if kind == "human" else None)

    def _note(self, scope, made):
        self.decisions.append(
            {
                "id": made.id,
                "root": made.root_id,
                "domain": made.domain,
                "strength": str(made.strength),
                "level": str(made.unit.level),
                "scope": scope,
                "live": True,
                "visible": made.unit.scope.key in self.lead.caller.visible_keys,
            }
        )

    def _decide(self, place, domain, strength, level):
        scope = PLACES[place]
        self._note(scope, self._commit(scope, level, domain=domain, strength=strength))

    def _pick(self, number, **wanted):
        found = [one for one in self.decisions if all(one[name] == value for name, value in wanted.items())]
        return found[number % len(found)] if found else None

    def _revise(self, number, strength, domain):
        base = self._pick(number, live=True)
        if base is None:
            return
        fields = {"revises": base["id"], "strength": strength, "domain": domain}
        made = self._commit(base["scope"], base["level"], **fields)
        base["live"] = False
        self._note(base["scope"], made)

    def _archive(self, number):
        one = self._pick(number)
        if one is not None:
            self.seat("system", one["scope"]).archive(one["id"], "not needed")
            one["live"] = False

    def _relate(self, source, type, target):
        one, other = self._pick(source, live=True), self._pick(target, live=True)
        if one is not None and other is not None and one["root"] != other["root"]:
            kind = "orchestrator" if one["level"] != "org" else "human"
            with suppress(InvalidInput):  # It supersedes what is in force: that is a revision.
                self._say(kind, one, type, other)

    def _say(self, kind, one, type, other):
        self.seat(kind, one["scope"]).decisions.relate(one["id"], type, other["root"])
        self.relations.append((one["root"], other["root"]))

    def _policy(self, place):
        scope = PLACES[place]
        text = f"principle {len(self.policies)} of the shop"
        vouched = [Citation.human("human-1")]
        made = self.seat("human", scope).remember(text, kind="policy", level="org", citations=vouched)
        self.policies.append((made.unit.id, scope.org == HOME.org))

    def _anchor(self, number, domain, kind):
        one = self._pick(number, visible=True)
        if kind == "decision" and one is not None:
            target = one["id"]
        else:
            target = self.desk.add_evidence(f"page {len(self.anchors)} of the runbook").id
        self.desk.add_anchor(f"hint {len(self.anchors)} of the shop", target, "gotcha", domain=domain)
        self.anchors.append((domain, target))

    def _know(self, place, is_sure, domain):
        scope = PLACES[place]
        text = f"fact {self.memory.stats().units} of the shop"
        if is_sure:
            vouched = [Citation.human("human-1")]
            self.seat("human", scope).remember(text, level="project", domain=domain, citations=vouched)
        else:
            self.seat("agent", scope).remember(text, domain=domain)

    # What must be so, by the list alone

    def _live(self, domain, strength):
        found = [
            one["id"]
            for one in self.decisions
            if one["live"] and one["visible"] and (one["domain"], one["strength"]) == (domain, strength)
        ]
        return sorted(found)

    def expected(self, domain, around=None):
        """The ids to load with their tiers, as D15 and R10 say it."""
        domains = (domain, "global") if domain not in (None, "global") else ("global",)
        order = [(1, id) for id, is_ours in sorted(self.policies, reverse=True) if is_ours]
        order += [(2, id) for id in self._around(around)]
        order += [(3, id) for id in self._live("global", "axis")]
        order += [(4, id) for id in self._live(domains[0], "axis")]
        order += [(5, id) for each in domains for id in self._live(each, "lock")]
        order += [(6, id) for each in domains for id in self._live(each, "normal")]
        order += [(7, id) for id in self._anchored(domains)]
        first = {}
        for tier, id in order:
            first.setdefault(id, tier)
        return [(tier, id) for id, tier in first.items()]

    def _around(self, around):
        root = next((one["root"] for one in self.decisions if one["id"] == around), None)
        others = {b if a == root else a for a, b in self.relations if root in (a, b)}
        found = [one for one in self.decisions if one["root"] in others and one["live"] and one["visible"]]
        return [one["id"] for one in sorted(found, key=lambda one: (-FIRMNESS[one["strength"]], one["root"]))]

    def _anchored(self, domains):
        known = {one["id"]: one for one in self.decisions}
        targets = {id for domain, id in self.anchors if domain in domains}
        fit = [id for id in targets if id not in known or known[id]["live"]]
        return sorted(fit, key=lambda id: (-FIRMNESS[known[id]["strength"]] if id in known else 1, id))

    def tier_of(self, unit, domain):
        """Where recall must put a unit."""
        one = next((one for one in self.decisions if one["id"] == unit.id), None)
        if unit.kind == "policy":
            return 1
        if one is None:
            return 8 if unit.status == "hypothesis" else 7
        if one["domain"] not in (domain, "global"):
            return 7
        if one["strength"] == "axis":
            return 3 if one["domain"] == "global" else 4
        return 5 if one["strength"] == "lock" else 6


def check(world):
    """Everything that must hold of one memory."""
    gone = {one["id"] for one in world.decisions if not one["live"] or not one["visible"]}
    anchors = {unit.id for unit in world.lead.units(kind="anchor", limit=100)}
    check_loading(world, gone, anchors)
    check_recall(world, gone)
    check_context(world, gone)


def loaded(world, domain, **how):
    return [(one.tier, one.unit.id) for one in world.desk.load(domain, **how)]


def check_loading(world, gone, anchors):
    roots = [one["id"] for one in world.decisions if one["visible"]][:3]
    assert loaded(world, None) == loaded(world, "global")
    for domain in (None, *DOMAINS):
        for around in (None, *roots):
            found = loaded(world, domain, around=around)
            assert found == world.expected(domain, around)
            assert [tier for tier, _ in found] == sorted(tier for tier, _ in found)
            assert not {id for _, id in found} & (gone | anchors)
            for phase in PHASES:
                assert loaded(world, domain, phase=phase, around=around) == found
            # A limit cuts, and lifts nothing.
            for limit in range(8):
                assert loaded(world, domain, around=around, limit=limit) == found[:limit]
        check_anchors(world, domain)
        check_pages(world, domain or "global")


def check_anchors(world, domain):
    """D19: what anchors lead to stands behind everything, the firmest first, and moves nothing else."""
    found = world.desk.load(domain)
    led = [one.unit for one in found if one.tier == 7]
    firmness = [FIRMNESS[unit.attributes["strength"]] if unit.kind == "decision" else -1 for unit in led]
    assert firmness == sorted(firmness, reverse=True)
    anchors, world.anchors = world.anchors, []
    assert [(one.tier, one.unit.id) for one in found if one.tier < 7] == world.expected(domain)
    world.anchors = anchors


def check_pages(world, domain):
    whole = [id for strength in reversed(STRENGTHS) for id in world._live(domain, strength)]
    assert [one.id for one in world.desk.active(domain)] == whole
    pages, after = [], None
    while page := world.desk.active(domain, limit=2, after=after):
        pages += page
        after = page[-1].id
    assert [one.id for one in pages] == whole


def check_recall(world, gone):
    for query in ("rule of the shop", ""):
        for domain in (None, *DOMAINS):
            found = world.lead.recall(query, k=100, domain=domain)
            tiers = [item.tier for item in found.items]
            assert tiers == sorted(tiers)
            assert tiers == [world.tier_of(item.unit, domain) for item in found.items]
            assert not {item.unit.id for item in found.items} & gone
            asked = [item for item in found.items if "anchor" not in item.why]
            assert all(item.unit.domain in (domain, "global") for item in asked if domain)
            check_led(world, found.items, gone)
            again = world.lead.recall(query, k=100, domain=domain, phase="design")
            assert [item.unit.id for item in again.items] == [item.unit.id for item in found.items]


def check_led(world, items, gone):
    """D19: an anchor says where it leads, its original is there, and no weaker decision is lifted over a firmer one."""
    ids = [item.unit.id for item in items]
    for anchor in (item for item in items if item.unit.kind == "anchor"):
        target = anchor.unit.attributes["target"]
        assert (target in ids) is (target not in gone)
        assert anchor.notes[0].startswith(f"leads to {target}")
        assert ("withheld" in anchor.notes[0]) is (target in gone)
    firm = {one["id"]: FIRMNESS[one["strength"]] for one in world.decisions}
    for place, led in enumerate(items):
        if "anchor" in led.why and led.unit.id in firm:
            behind = [other for other in items[place:] if other.unit.id in firm and other.tier == led.tier]
            assert all(firm[other.unit.id] <= firm[led.unit.id] for other in behind)


def check_context(world, gone):
    for domain in (None, *DOMAINS):
        pack = world.lead.context("rule of the shop", 50_000, domain=domain)
        found = [(item.tier, item.unit.id) for item in pack.items]
        assert [tier for tier, _ in found] == sorted(tier for tier, _ in found)
        assert not {id for _, id in found} & gone
        first = world.expected(domain)
        assert {one for one in found if one[0] <= 6} == {one for one in first if one[0] <= 6}
        for tier in (5, 6):
            wide = [item.unit.domain == "global" for item in pack.items if item.tier == tier]
            assert wide == sorted(wide), "a domain's own come before those for every domain"
        for tier in range(1, 7):
            rest = [item.unit.id for item in pack.items if item.tier == tier and not item.why]
            assert rest == [id for at, id in first if at == tier and id in rest], "what was not asked for, as loaded"
        assert {id for tier, id in first if tier == 7} <= {id for _, id in found}
        check_led(world, pack.items, gone)
        other = world.lead.context("rule of the shop", 50_000, domain=domain, phase="verify")
        assert [item.unit.id for item in other.items] == [id for _, id in found]


def run(acts, target):
    world = World(target)
    try:
        for act in acts:
            world.do(act)
        check(world)
    finally:
        world.memory.close()


@pytest.mark.long
@settings(max_examples=120, report_multiple_bugs=False)
@given(acts)
def test_d15_the_order_holds_whatever_the_memory_holds(acts):
    run(acts, ":memory:")


@settings(max_examples=8, suppress_health_check=list(HealthCheck))
@given(acts)
def test_d15_the_order_holds_on_disk_too(acts):
    with tempfile.TemporaryDirectory() as folder:
        run(acts, folder)


# Cases that random memories seldom meet


def settled():
    world = World(":memory:")
    given = [world.desk.add_evidence("seen in the benchmark").id]

    def decide(text, **fields):
        return world.desk.commit(world.desk.propose(text, reason=WHY, evidence=given, **fields)).id

    return world, decide


@pytest.mark.parametrize("query", ["the data", ""])
def test_d15_recall_loading_and_context_put_a_policy_first(query):
    world, decide = settled()
    vouched = [Citation.human("human-1")]
    person = world.seat("human", HOME)
    rule = person.remember("The data stays", kind="policy", level="org", domain="ui", citations=vouched).unit.id
    decide("The data is in the log", strength="axis")
    person.remember("The data, the data, the data", level="project", citations=vouched)
    recalled = world.lead.recall(query).items
    assert (recalled[0].tier, recalled[0].unit.id) == (1, rule), "whatever domain it names"
    assert [item.tier for item in recalled] == sorted(item.tier for item in recalled)
    assert (world.desk.load()[0].tier, world.desk.load()[0].unit.id) == (1, rule)
    assert (world.lead.context("the data").items[0].tier, world.lead.context("the data").items[0].unit.id) == (1, rule)


def test_r10_what_says_the_same_again_does_not_break_the_order_of_tiers():
    world, decide = settled()
    for strength in ("lock", "normal"):
        decide("Use SQLite for the store", strength=strength)
    world.seat("agent", HOME).remember("The store is SQLite, or files")
    tiers = [item.tier for item in world.lead.recall("which store: SQLite?").items]
    assert tiers == sorted(tiers)


def test_r10_a_domains_own_locks_come_before_the_global_ones():
    world, decide = settled()
    own = decide("Use SQLite for what is stored in the shop", strength="lock", domain="coding")
    wide = decide("Store SQLite", strength="lock")
    for items in (
        world.lead.recall("store SQLite", domain="coding").items,
        world.lead.context("store SQLite", domain="coding").items,
    ):
        assert [item.unit.id for item in items] == [own, wide]


def test_d18_a_limit_cuts_the_weakest_however_old_the_firmest_is():
    world, decide = settled()
    firm = decide("AXIS", strength="axis", domain="ui")
    world.desk.add_anchor("old hint", firm, "gotcha", domain="coding")
    weak = [decide(f"normal {number}", domain="ui") for number in range(3)]
    for number in range(203):
        world.desk.add_anchor(f"hint {number}", weak[number % 3], "gotcha", domain="coding")
    assert [one.unit.id for one in world.desk.load("coding")] == [firm, *weak]
    assert [one.unit.id for one in world.desk.load("coding", limit=2)] == [firm, weak[0]]
    hub = decide("hub")
    for other in (*weak, firm):
        world.desk.relate(other, "DEPENDS_ON", hub)
    assert [one.unit.id for one in world.desk.load(around=hub, limit=2)] == [firm, weak[0]]
    assert world.desk.load("coding", limit=0) == []


def contents(items):
    return [item.unit.content for item in items]


def test_d19_an_anchor_is_followed_to_what_it_leads_to():
    world, _ = settled()
    runbook = world.desk.add_evidence("kubectl rollout undo")
    world.desk.add_anchor("payment outage runbook", runbook.id, "runbook", domain="pay")
    for seat in (world.lead, world.seat("agent", HOME)):
        for found in (seat.recall("payment outage runbook").items, seat.recall("outage", domain="pay").items):
            assert contents(found) == ["payment outage runbook", "kubectl rollout undo"]
            assert found[0].notes == (f"leads to {runbook.id}",)
            assert found[1].why == {"anchor": found[0].score}
        pack = seat.context("payment outage runbook", domain="pay")
        assert "kubectl rollout undo" in pack.text
        assert pack.text.index("payment outage") < pack.text.index("kubectl")
    # Who asks for hints alone, or for one thing alone, is told where they lead.
    assert contents(world.lead.recall("payment outage runbook", kinds=["anchor"]).items) == ["payment outage runbook"]
    (only,) = world.lead.recall("payment outage runbook", k=1).items
    assert only.notes == (f"leads to {runbook.id}",)


def test_d19_an_anchor_to_what_no_longer_holds_says_so():
    world, decide = settled()
    old = decide("old way")
    world.desk.add_anchor("path to the lighthouse", old, "gotcha")
    proposal = world.desk.propose("new way", reason=WHY, snapshots=["seen"], revises=old)
    new = world.desk.commit(proposal).id
    found = world.lead.recall("path to the lighthouse")
    assert contents(found.items) == ["path to the lighthouse"]
    assert found.items[0].notes == (f"leads to {old}, which is withheld: superseded by {new}",)
    assert old in [held.unit_id for held in found.withheld]
    gone = world.desk.add_evidence("the keeper's phone number", level="project")
    world.desk.add_anchor("who keeps the lighthouse", gone.id, "gotcha")
    world.lead.erase(gone.id, "private")
    (hint,) = [item for item in world.lead.recall("who keeps the lighthouse").items if "who" in item.unit.content]
    assert "erased" in hint.notes[0]


def test_d19_an_anchor_leads_nobody_to_what_they_may_not_see():
    world, _ = settled()
    elsewhere = world.seat("orchestrator", PLACES[2])
    secret = elsewhere.decisions.add_evidence("the other branch's plan").id
    claimed = {"target": secret, "anchor_kind": "gotcha"}
    fact = world.lead.remember("a fact about plans").unit.id
    world.lead.remember("plan of the branch", kind="anchor", attributes=claimed)
    world.lead.remember("plan of the fact", kind="anchor", attributes=claimed | {"target": fact})
    world.lead.remember("plan of nothing", kind="anchor", attributes={"target": None})
    found = world.lead.recall("plan of the branch, the fact, or nothing").items
    assert secret not in [item.unit.id for item in found]
    hints = [item for item in found if item.unit.kind == "anchor"]
    assert [item.notes for item in hints] == [("leads to nothing that is to be seen here",)] * 3


def test_d19_a_weaker_decision_is_not_lifted_over_a_firmer_one_that_was_found():
    world, decide = settled()
    weak, middle = decide("tea", domain="ui"), decide("cocoa", domain="ui", strength="lock")
    firm = decide("coffee in the morning at the harbour", domain="ui", strength="axis")
    world.desk.add_anchor("coffee morning harbour", weak, "gotcha")
    world.desk.add_anchor("coffee morning harbour too", middle, "gotcha")
    world.seat("human", HOME).remember("coffee is black", level="project", citations=[Citation.human("human-1")])
    order = [item.unit.id for item in world.lead.recall("coffee morning harbour").items]
    assert order.index(firm) < order.index(middle) < order.index(weak)


def test_what_nobody_asked_for_leaves_room_for_what_was():
    world, decide = settled()
    for number in range(30):
        decide(f"Rule {number} of the kitchen: {'wash and dry ' * 10}", domain="coding")
    asked = decide("Checkout retries three times", domain="coding")
    world.lead.remember("The checkout of the shop was slow on Monday")
    pack = world.lead.context("how does checkout retry?", 1_000, domain="coding")
    found = contents(pack.items)
    assert found[0] == "Checkout retries three times", "what was asked for is first in its tier"
    assert found[-1] == "The checkout of the shop was slow on Monday"
    spare = [text for text in found if text.startswith("Rule")]
    assert 0 < len(spare) < 8
    assert spare == sorted(spare, key=lambda text: int(text.split()[1])), "the rest by id"
    assert pack.left_out
    assert all("not asked for" in held.reason for held in pack.left_out)
    assert pack.items[0].unit.id == asked


def test_d15_what_binds_and_had_no_room_is_named():
    world, decide = settled()
    axis = decide("AXIS " + "very long rule " * 300, strength="axis")
    decide("small lock", strength="lock")
    pack = world.lead.context("zebra", 200)
    assert contents(pack.items) == ["small lock"]
    assert f"left out for want of room, and binding: {axis}" in pack.text
    assert pack.tokens <= 200
    assert [held.unit_id for held in pack.left_out] == [axis]
    only = world.lead.context("zebra", 75)
    assert (only.tokens <= 75, only.items) == (True, ())
    assert "2 more that bind were left out: raise tokens, or ask mnemarch decisions load" in only.text
    assert world.lead.context("zebra", 5).text == ""
    # It is no unit that was handed out.
    assert world.lead.remember(f"Given this:\n{pack.text}\nI conclude that pears are cheaper").unit.content.endswith(
        "cheaper"
    )


def test_what_says_that_rules_are_missing_costs_no_rule():
    world, decide = settled()
    for number in range(10):
        decide(f"Rule number {number} about modules {number} and services {number}", strength="axis", domain="pay")
    whole = world.lead.context("zebra", 100_000, domain="pay", count=len)
    rule = sum(len(line) + 1 for line in whole.text.splitlines()[1:3])
    noted = set()
    for chars in range(0, 3_000, 20):
        pack = world.lead.context("zebra", chars, domain="pay", count=len)
        assert pack.tokens <= chars
        assert len(pack.items) == min(10, max(0, (chars - whole.tokens + 10 * rule) // rule))
        noted |= {line for line in pack.text.splitlines() if "left out" in line}
    assert "- 9 more that bind were left out: raise tokens, or ask mnemarch decisions load" in noted
    assert "left out" not in whole.text


def test_what_does_not_bind_leaves_room_to_say_that_a_rule_is_missing():
    world, decide = settled()
    decide("AXIS " + "very long rule " * 300, strength="axis")
    for number in range(20):
        world.lead.remember(f"The zebra {number} eats")
    for tokens in range(200, 300, 7):
        pack = world.lead.context("what does the zebra eat?", tokens)
        assert pack.items
        assert "left out" in pack.text


def test_d19_what_anchors_lead_to_stands_by_strength_before_it_stands_by_the_question():
    world, decide = settled()
    weak, middle = decide("tea", domain="z"), decide("cocoa", domain="z", strength="lock")
    firm, far = decide("coffee", domain="z", strength="axis"), decide("milk", domain="z")
    page = world.desk.add_evidence("kubectl rollout undo").id
    for hint, target in (("payment outage", weak), ("outage of payment", page)):
        world.desk.add_anchor(hint, target, "gotcha", domain="q")
    for number, target in enumerate((far, middle, firm)):
        world.desk.add_anchor(f"something else {number}", target, "gotcha", domain="q")
    world.seat("human", HOME).remember("Outage is rare", level="project", citations=[Citation.human("human-1")])
    order = [item.unit.id for item in world.lead.context("payment outage", domain="q").items]
    assert [id for id in order if id in (weak, middle, firm, far)] == [firm, middle, weak, far]
    assert order.index(weak) < order.index(far)
    recalled = [item.unit.id for item in world.lead.recall("payment outage", domain="q").items]
    assert [id for id in order if id in recalled] == recalled, "nothing else changes its place"


def test_what_was_asked_for_comes_first_among_its_equals():
    world, decide = settled()
    for number in range(210):
        decide(f"Rule {number} of the kitchen", domain="coding", strength="lock")
    asked = decide("Checkout retries three times", domain="coding", strength="lock")
    firm = decide("Wash your hands", domain="coding", strength="axis")
    pack = world.lead.context("how does checkout retry?", 1_000, domain="coding")
    assert [item.unit.id for item in pack.items][:2] == [firm, asked]

"""The loading order (D15-D19, R10): random memories are compared with a plain model."""

from __future__ import annotations

import tempfile
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mnemarch
from mnemarch import Actor, Citation, Conflict, InvalidInput, NotAllowed, NotFound, Scope
from mnemarch.model.decision import Reason, RelationType
from mnemarch.model.stamps import short_id
from mnemarch.text.prompt import estimated_tokens

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
        st.tuples(st.just("use"), which),
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
        self.policies, self.anchors, self.relations, self.used = [], [], [], []
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
        # Only a person may decide for the org, or against the guardian.
        desk = self.seat("human", scope).decisions
        given = [self.seat("agent", scope).decisions.add_evidence("seen in the benchmark").id]
        text = f"rule of the shop on {chr(97 + len(self.decisions)) * 5}"
        proposal = desk.propose(text, reason=WHY, evidence=given, level=level, **fields)
        return desk.commit(proposal, override="a person said so")

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
            self.seat("human", one["scope"]).archive(one["id"], "not needed")
            one["live"] = False

    def _relate(self, source, type, target):
        one, other = self._pick(source, live=True), self._pick(target, live=True)
        if one is not None and other is not None and one["root"] != other["root"]:
            self.seat("human", one["scope"]).decisions.relate(one["id"], type, other["root"])
            self.relations.append((one["root"], other["root"]))

    def _policy(self, place):
        scope = PLACES[place]
        text = f"principle {len(self.policies)} of the shop"
        made = self.seat("human", scope).decisions.add_policy(text)
        self.policies.append((made.id, scope.org == HOME.org))

    def _use(self, number):
        one = self._pick(number, visible=True, live=True)
        if one is not None:
            self.lead.use(one["id"])
            self.used.append(one["root"])

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

    def bound(self, domain):
        """What must bind and in which tier, as far as no question ranks it."""
        near = {id for root in self.used for id in self._around(root)}
        first = [(2 if id in near and tier != 1 else tier, id) for tier, id in self.expected(domain) if tier < 7]
        known = {id for _, id in first}
        return {*first, *((2, id) for id in near if id not in known)}


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
    """D19: targets of anchors come last, the firmest first, and move nothing else."""
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
            check_binding(world, found.binding, domain)
            tiers = [item.tier for item in found.items]
            assert tiers == sorted(tiers)
            assert tiers == [tier_of(item.unit) for item in found.items]
            firm = [FIRMNESS[item.unit.attributes["strength"]] for item in found.items if item.unit.kind == "decision"]
            assert firm == sorted(firm, reverse=True)
            assert not {item.unit.id for item in (*found.binding, *found.items)} & gone
            asked = [item for item in found.items if "anchor" not in item.why]
            assert all(item.unit.domain in (domain, "global") for item in asked if domain)
            check_led(world, found.items, gone)
            again = world.lead.recall(query, k=100, domain=domain, phase="design")
            assert [item.unit.id for item in again.items] == [item.unit.id for item in found.items]


def tier_of(unit):
    if unit.status != "hypothesis":
        return 7
    return 8 if unit.kind in ("evidence", "anchor") else 9


def check_binding(world, binding, domain):
    assert {(item.tier, item.unit.id) for item in binding} == world.bound(domain)
    assert [item.tier for item in binding] == sorted(item.tier for item in binding)
    for tier in (5, 6):
        wide = [item.unit.domain == "global" for item in binding if item.tier == tier]
        assert wide == sorted(wide), "a domain's own come before those for every domain"
    for tier in (1, 3, 4, 5):
        ids = [item.unit.id for item in binding if item.tier == tier]
        assert ids == [id for at, id in world.expected(domain) if at == tier and id in ids]


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
        check_binding(world, pack.binding, domain)
        assert not {item.unit.id for item in (*pack.binding, *pack.items)} & gone
        assert not {item.unit.id for item in pack.binding} & {item.unit.id for item in pack.items}
        other = world.lead.context("rule of the shop", 50_000, domain=domain, phase="verify")
        assert [item.unit.id for item in other.items] == [item.unit.id for item in pack.items]


def run(acts, target):
    world = World(target)
    try:
        for act in acts:
            world.do(act)
        check(world)
    finally:
        world.memory.close()


@pytest.mark.long
@settings(max_examples=25, report_multiple_bugs=False)
@given(acts)
def test_d15_the_order_holds_whatever_the_memory_holds(acts):
    run(acts, ":memory:")


@settings(max_examples=3, suppress_health_check=list(HealthCheck))
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
    rule = world.seat("human", HOME).decisions.add_policy("The data stays", domain="ui").id
    decide("The data is in the log", strength="axis")
    for first in (world.lead.recall(query).binding[0], world.desk.load()[0], world.lead.context(query).binding[0]):
        assert (first.tier, first.unit.id) == (1, rule), "whatever domain it names"


def test_r10_repeated_statements_keep_the_order_of_tiers():
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
    for answer in (world.lead.recall("SQLite", domain="coding"), world.lead.context("SQLite", domain="coding")):
        assert [item.unit.id for item in answer.binding] == [own, wide]


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


def test_d19_an_anchor_never_leads_to_something_its_reader_may_not_see():
    world, _ = settled()
    elsewhere = world.seat("orchestrator", PLACES[2])
    secret = elsewhere.decisions.add_evidence("the other branch's plan").id
    fact = world.lead.remember("a fact about plans").unit.id
    for target in (secret, fact, "nothing"):
        with pytest.raises(InvalidInput, match="not a decision or evidence here"):
            world.desk.add_anchor("plan of the branch", target, "gotcha")


def test_d19_a_weaker_decision_is_not_lifted_over_a_firmer_one_that_was_found():
    world, decide = settled()
    weak, middle = decide("tea", domain="ui"), decide("cocoa", domain="ui", strength="lock")
    firm = decide("coffee in the morning at the harbour", domain="ui", strength="axis")
    world.desk.add_anchor("coffee morning harbour", weak, "gotcha")
    world.desk.add_anchor("coffee morning harbour too", middle, "gotcha")
    world.seat("human", HOME).remember("coffee is black", level="project", citations=[Citation.human("human-1")])
    order = [item.unit.id for item in world.lead.recall("coffee morning harbour").items]
    assert order.index(firm) < order.index(middle) < order.index(weak)


# What binds has a bound of its own, and says what is beyond it (R10)

FACT = "The checkout of the shop was slow on Monday"


@pytest.mark.parametrize("strength", ["normal", "lock"])
def test_r10_a_hundred_decisions_neither_crowd_out_the_answer_nor_go_missing_in_silence(strength):
    world, decide = settled()
    for number in range(100):
        decide(
            f"The {chr(97 + number % 10) * 3}{chr(97 + number // 10) * 3} is washed", strength=strength, domain="coding"
        )
    asked = decide("The checkout of the shop retries", domain="coding")
    world.seat("human", HOME).remember(FACT, level="project", citations=[Citation.human("human-1")])
    found = world.lead.recall("was the checkout of the shop slow?", k=3, domain="coding")
    assert FACT in contents(found.items)
    assert len(found.binding) + found.unlisted == 101
    more = f"{found.unlisted} more binding decisions are not listed. See them: mnemarch decisions load --domain coding"
    assert more in found.notes
    if strength == "normal":
        assert found.binding[0].unit.id == asked, "ranked by the question"
    pack = world.lead.context("was the checkout of the shop slow?", 400, domain="coding")
    assert FACT in contents(pack.items)
    left = 101 - len(pack.binding)
    assert f"({left} more binding decisions had no room. See them: mnemarch decisions load" in pack.text
    assert not [note for note in pack.notes if "more binding" in note], "one count, not two"
    assert sum(map(estimated_tokens, contents(pack.binding))) <= 160
    assert pack.tokens <= 400


def test_d15_binding_decisions_without_room_are_counted_and_long_ones_are_cut():
    world, decide = settled()
    axis = decide("AXIS " + "very long rule " * 300, strength="axis")
    locks = [decide(f"small lock {number}", strength="lock") for number in range(9)]
    pack = world.lead.context("zebra", 340)
    seen = len(pack.binding) - 1
    assert 0 < seen < len(locks)
    assert [item.unit.id for item in pack.binding] == [axis, *locks[:seen]]
    assert f" … (in full: mnemarch show {short_id(axis)})" in pack.text
    assert f"({9 - seen} more binding decisions had no room. See them: mnemarch decisions load)" in pack.text
    assert (pack.tokens <= 340, [held.unit_id for held in pack.left_out]) == (True, locks[seen:])
    assert "…" not in world.lead.context("zebra", 8_000).text
    only = world.lead.context("zebra", 80)
    assert (only.tokens <= 80, only.binding) == (True, ())
    assert "10 more binding" in only.text
    assert world.lead.context("zebra", 5).text == ""
    # It is no unit that was handed out.
    own = world.lead.remember(f"Given this:\n{pack.text}\nI conclude that pears are cheaper")
    assert own.unit.content.endswith("cheaper")


def test_the_record_that_a_decision_was_imported_from_is_not_told_beside_it_and_other_evidence_is():
    world, _ = settled()
    texts = ["# 3. Use Redis\n\nRedis holds the sessions.", "Redis answered in a millisecond."]
    given = [world.desk.add_evidence(text).id for text in texts]
    world.desk.commit(world.desk.propose("Use Redis\n\nIt holds the sessions.", reason=WHY, evidence=given))
    pack = world.lead.context("redis sessions answered")
    assert ("# 3. Use Redis" in pack.text, texts[1] in pack.text) == (False, True)
    assert [(each.unit_id, each.reason) for each in pack.withheld] == [
        (given[0], "the record of a decision that is listed")
    ]


def test_r10_what_relations_reach_comes_from_what_the_task_works_on_and_not_from_search_hits():
    world, decide = settled()
    base, far = decide("Use SQLite", domain="ui"), decide("Backups run nightly", domain="ui")
    world.desk.relate(far, "DEPENDS_ON", base)
    for answer in (world.lead.recall("Use SQLite"), world.lead.context("Use SQLite")):
        assert answer.binding == (), "a search hit leads nowhere"
    world.lead.use(base)
    for answer in (world.lead.recall("zebra"), world.lead.context("zebra")):
        assert [(item.tier, item.unit.id) for item in answer.binding] == [(2, far)]

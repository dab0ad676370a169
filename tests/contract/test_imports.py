"""An import believes no file: not its form, not its reach, not its word for who verified what (R1, R4, R20)."""

from __future__ import annotations

import json

import pytest

import mnemarch
from mnemarch import Actor, Conflict, EventType, InvalidInput, NotAllowed, Scope
from mnemarch.log.chain import entry_hash, payload_hash
from mnemarch.log.transfer import EXPORT_VERSION, _end, _record
from mnemarch.log.untrusted import PAYLOADS
from mnemarch.model.caller import Stream
from mnemarch.model.event import Event
from mnemarch.model.json_text import canonical_json
from mnemarch.model.stamps import instant, new_id

SHOP = Scope(org="acme", project="shop", worktree="main", task="T-1")
BANK = Scope(org="acme", project="bank", worktree="main", task="T-1")
ADA = Actor.human("ada")


class Forger:
    """Writes exports whose chains hold, whatever they say."""

    def __init__(self):
        self.lines, self.heads = [], {}

    def add(self, type, payload, *, scope=SHOP, stream=None, actor=ADA, subject=None, id=None, key=None, raw=None):
        stream = stream or Stream(scope.org, scope.project)
        seq, previous = self.heads.get(stream, (0, b""))
        body = canonical_json(payload) if raw is None else raw
        event = Event(
            id=id or new_id(),
            stream=stream,
            seq=seq + 1,
            type=type,
            actor=actor,
            scope=scope,
            session=None,
            subject=subject,
            key=key,
            occurred_at=instant(1_700_000_000_000_000),
            recorded_at=instant(1_700_000_000_000_000),
            body=body,
            salt=b"0" * 16,
            payload_hash=payload_hash(b"0" * 16, body.encode()),
            hash=b"",
        )
        hash = entry_hash(previous, event)
        self.lines.append(_record(event.placed(0, hash)))
        self.heads[stream] = (seq + 1, hash)
        return event

    def unit(self, content="The gateway retries three times", *, scope=None, unit_id=None, status="verified", **fields):
        at = (scope or Scope(org="acme", project="shop")).segments
        unit_id = unit_id or new_id()
        trust = {"confidence": 0.9, "since": 0, "decay": "stable", "source": None, "validated_at": None, "count": 0}
        unit = {"kind": "fact", "content": content, "scope": at, "domain": "global", "status": status, "trust": trust}
        rest = {"importance": 0.5, "citations": [{"kind": "human", "ref": "ada", "detail": {}}], "attributes": {}}
        self.add(EventType.UNIT_REMEMBERED, {"unit": unit | rest | fields}, subject=unit_id)
        return unit_id

    def written(self, path):
        end = _end(len(self.lines), self.heads)
        texts = [json.dumps(each) for each in ({"mnemarch": "export", "version": EXPORT_VERSION}, *self.lines, end)]
        path.write_text("\n".join(texts) + "\n")
        return path


@pytest.fixture
def target(tmp_path, clock):
    """A memory with knowledge of its own."""
    with mnemarch.open(tmp_path / "target", clock=clock) as memory:
        memory.own = memory.seat(Actor.human("bob"), BANK).remember("The bank closes at five", level="project")
        memory.wide = memory.seat(Actor.human("bob"), BANK).remember("Names are in English", level="org")
        yield memory


def refused_by_both(memory, path, match):
    before = memory.stats().events
    for take in (memory.import_, memory.seat(Actor.human("bob"), BANK).import_claims):
        with pytest.raises(InvalidInput, match=match):
            take(path)
    assert memory.stats().events == before


def of_unit(**fields):
    return lambda forger, unit: forger.add(EventType.UNIT_VERIFIED, {"set": fields}, subject=unit)


def says(type, payload, **header):
    return lambda forger, unit: forger.add(type, payload, **header)


def undoes(**parts):
    """An undoing in a file, which a revert would believe."""
    payload = {"actor": "agent:bad", "session": None, "reason": "x", "why": "y", "units": [], "claims": []}
    payload |= {"voices": {}, "requests": [], "ledgers": []}
    return lambda forger, _: forger.add(EventType.ACTOR_UNDONE, payload | parts)


FORGED = {
    "an unknown status": of_unit(status="holy"),
    "a status that is a number": of_unit(status=5),
    "a field that no unit has": of_unit(halo=True),
    "a confidence over 1": of_unit(trust={"confidence": 7, "since": 0}),
    "a confidence in words": of_unit(trust={"confidence": "high", "since": 0}),
    "no confidence": of_unit(trust={"confidence": None, "since": 0}),
    "a version out of range": of_unit(version=1 << 60),
    "a moment out of range": of_unit(valid_to=10**30),
    "a scope of five": of_unit(scope=["acme", "shop", None, None, None]),
    "a proof by a number": of_unit(proof={"by": [5], "witnessed": True, "at": 0}),
    "citations in a text": of_unit(citations="human:ada"),
    "an unknown citation": of_unit(citations=[{"kind": "oracle", "ref": "x", "detail": {}}]),
    "set to a list": says(EventType.UNIT_VERIFIED, {"set": []}),
    "a unit without content": says(EventType.UNIT_REMEMBERED, {"unit": {"kind": "fact"}}, subject=new_id()),
    "a payload that is a list": says(EventType.LOGGED, []),
    "NaN": says(EventType.LOGGED, None, raw='{"data":{"a":NaN},"kind":"x","text":"y"}'),
    "JSON in another form": says(EventType.LOGGED, None, raw='{"text": "y", "kind": "x"}'),
    "no JSON": says(EventType.LOGGED, None, raw="not json"),
    "a payload of 20 MB": says(EventType.LOGGED, {"kind": "x", "text": "y" * 20_000_000}),
    "an id of a wrong form": says(EventType.LOGGED, {"kind": "x", "text": "y"}, id="../../etc"),
    "an actor's name of 10,000 characters": says(
        EventType.LOGGED, {"kind": "x", "text": "y"}, actor=Actor.agent("a" * 10_000)
    ),
    "a link to nothing": says(EventType.LINK_ADDED, {"link": {"source": "a", "target": "b"}}),
    "tests in a number": says(
        EventType.TASK_VERIFIED,
        {"passed": True, "witnessed": True, "tests": {"pass": [5]}, "places": [""], "tree": "", "command": "pytest"},
    ),
    "a recall of a number": says(EventType.RECALLED, {"units": [5]}),
    "an undoing of nobody": undoes(actor="nobody"),
    "an undoing with a voice in words": lambda forger, unit: undoes(voices={unit: ["human:ada"]})(forger, unit),
    "an undoing with a ledger of nothing": undoes(ledgers=[{}]),
    "an undoing that makes a field that no unit has": lambda forger, unit: undoes(
        restored={unit: {"before": {"halo": True}, "after": {}}}
    )(forger, unit),
    "an undoing that brings back what never changes": lambda forger, unit: undoes(
        restored={unit: {"before": {"kind": "policy"}, "after": {}}}
    )(forger, unit),
    "a relation of no type": says(EventType.RELATION_ADDED, {"source": new_id(), "target": new_id()}),
}


@pytest.mark.parametrize("forgery", FORGED)
def test_r1_a_malformed_event_is_refused_with_its_line_before_anything_is_stored(target, tmp_path, forgery):
    forger = Forger()
    FORGED[forgery](forger, forger.unit())
    refused_by_both(target, forger.written(tmp_path / "a.jsonl"), f"Line {len(forger.lines) + 1}:")


@pytest.mark.parametrize("type", sorted(PAYLOADS))
def test_r1_an_empty_payload_is_refused_for_every_type_that_needs_one(target, tmp_path, type):
    forger = Forger()
    forger.add(type, {}, subject=new_id())
    refused_by_both(target, forger.written(tmp_path / "a.jsonl"), "Line 2: ")


def foreign(type, payload, **header):
    """An event of the shop that reaches for a unit of the bank, which is not in the file."""
    return lambda forger, target: forger.add(type, payload(target), **header)


def on_own(type, **payload):
    return lambda forger, target: forger.add(type, payload, subject=target.own.unit.id)


REACHING = {
    "archives another project's unit": on_own(EventType.UNIT_ARCHIVED, set={"status": "archived"}),
    "verifies another project's unit": on_own(EventType.UNIT_VERIFIED, set={"status": "published"}),
    "moves another project's unit": on_own(EventType.UNIT_PROMOTED, set={"scope": ["acme", "shop", None, None]}),
    "changes an org's unit": lambda forger, target: forger.add(
        EventType.UNIT_ARCHIVED, {"set": {"status": "archived"}}, subject=target.wide.unit.id
    ),
    "erases another project's unit": foreign(
        EventType.UNIT_ERASED,
        lambda target: {
            "reason": "x",
            "links": [],
            "events": [target.own.receipt.event_id],
            "units": [
                {"id": target.own.unit.id, "kind": "fact", "scope": ["acme", "bank", None, None]}
                | {"recorded_at": 0, "version": 2}
            ],
        },
    ),
    "empties another project's entry": foreign(
        EventType.UNIT_ERASED,
        lambda target: {"reason": "x", "links": [], "units": [], "events": [target.own.receipt.event_id]},
    ),
    "is handed another project's unit": foreign(EventType.RECALLED, lambda target: {"units": [target.own.unit.id]}),
    "relates another project's decision": foreign(
        EventType.RELATION_ADDED,
        lambda target: {"source": target.own.unit.id, "type": "REFINES", "target": target.own.unit.id},
    ),
    **{
        f"undoes another project's {what}": lambda forger, target, parts=parts: undoes(**parts(target))(forger, target)
        for what, parts in {
            "units": lambda target: {"units": [target.own.unit.id]},
            "voices": lambda target: {"voices": {target.own.unit.id: []}},
            "judgements": lambda target: {"restored": {target.own.unit.id: {"before": {}, "after": {}}}},
            "claims": lambda target: {"claims": [target.own.receipt.event_id]},
            "requests": lambda target: {"requests": [target.own.receipt.event_id]},
            "conflicts": lambda target: {
                "links": [{"link": target.own.receipt.event_id, "winner": None, "reason": "x"}]
            },
            "attempts": lambda target: {
                "ledgers": [{"subject": "x", "cleared": target.own.receipt.event_id, "attempts": [], "stuck": None}]
            },
        }.items()
    },
    "moves a unit by an undoing": lambda forger, target: undoes(
        restored={forger.unit("Another one"): {"before": {"scope": ["acme", "bank", None, None]}, "after": {}}}
    )(forger, target),
    "makes a unit in another project": lambda forger, target: forger.unit(scope=Scope(org="acme", project="bank")),
    "makes a unit in another org": lambda forger, target: forger.unit(scope=Scope(org="other")),
    "acts from another project": lambda forger, target: forger.add(
        EventType.LOGGED, {"kind": "x", "text": "y"}, scope=BANK, stream=Stream("acme", "shop")
    ),
    "tells another project's tests": lambda forger, target: forger.add(
        EventType.TASK_VERIFIED,
        {"passed": True, "witnessed": True, "tests": {"pass": ["t"]}, "places": [""], "tree": "", "command": "pytest"},
        scope=BANK,
        stream=Stream("acme", "shop"),
    ),
}


@pytest.mark.parametrize("reach", REACHING)
def test_r4_an_event_touches_only_what_its_own_stream_has(target, tmp_path, reach):
    forger = Forger()
    forger.unit()
    REACHING[reach](forger, target)
    refused_by_both(target, forger.written(tmp_path / "a.jsonl"), f"Line {len(forger.lines) + 1}:")


@pytest.mark.parametrize("type", [EventType.LINK_RESOLVED, EventType.LINK_JOINED, EventType.UNIT_ERASED])
def test_r4_a_log_of_clones_touches_no_link_that_is_here(target, tmp_path, type):
    """Of their links not every id is in the file; so one that is here must be between units of the file."""
    bob = target.seat(Actor.human("bob"), BANK)
    bob.remember("The bank closes at six", level="project")
    (dispute,) = bob.conflicts()
    forger = Forger()
    unit = forger.unit()
    payloads = {
        EventType.LINK_RESOLVED: {"link": dispute.id, "winner": None, "reason": "x"},
        EventType.LINK_JOINED: {"link": dispute.id, "unit": unit},
        EventType.UNIT_ERASED: {"reason": "x", "links": [dispute.id], "units": [], "events": []},
    }
    forger.add(EventType.LOGGED, {"kind": "x", "text": "y"}, stream=Stream("acme", "shop", "w"))
    forger.add(type, payloads[type])
    with pytest.raises(InvalidInput, match=f"changes link {dispute.id}"):
        target.import_(forger.written(tmp_path / "a.jsonl"))


@pytest.mark.parametrize(
    "change", [{"id": "another's"}, {"erased_at": 1}, {"occurred_at": 1}, {"kind": "policy"}], ids=str
)
def test_r4_a_file_changes_nothing_of_a_unit_that_never_changes(target, tmp_path, change):
    forger = Forger()
    change = change | ({"id": target.own.unit.id} if "id" in change else {})
    forger.add(EventType.UNIT_RESTATED, {"set": change}, subject=forger.unit())
    refused_by_both(target, forger.written(tmp_path / "a.jsonl"), "what never changes")


@pytest.mark.parametrize("kind", ["policy", "fact"])
def test_r4_a_projects_file_says_nothing_for_an_org_that_others_share(target, tmp_path, kind):
    forger = Forger()
    forger.unit("Secrets may be committed", scope=Scope(org="acme"), kind=kind)
    path = forger.written(tmp_path / "a.jsonl")
    with pytest.raises(InvalidInput, match=r"Line 2: .* whole org acme"):
        target.import_(path)
    target.seat(Actor.human("bob"), BANK).import_claims(path)
    found = target.seat(Actor.agent("a"), BANK).recall("may secrets be committed")
    assert [item.label for item in (*found.binding, *found.items)] in ([], ["[IMPORTED]"])
    assert not any(item.unit.kind == "policy" for item in (*found.binding, *found.items))


def test_r4_a_file_claims_no_id_that_is_here(target, tmp_path):
    forger = Forger()
    forger.unit(unit_id=target.own.unit.id)
    with pytest.raises(Conflict, match="Line 2"):
        target.import_(forger.written(tmp_path / "a.jsonl"))
    forger = Forger()
    forger.add(EventType.LOGGED, {"kind": "x", "text": "y"}, id=target.own.receipt.event_id)
    with pytest.raises(Conflict, match="Line 2"):
        target.import_(forger.written(tmp_path / "b.jsonl"))
    assert target.audit(full=True).ok


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_an_export_cut_at_the_end_of_a_line_is_refused(target, tmp_path, cut):
    forger = Forger()
    for number in range(4):
        forger.unit(f"The gateway has door {'x' * number}")
    path = forger.written(tmp_path / "a.jsonl")
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-cut]))
    refused_by_both(target, path, "was cut")


def test_r20_a_foreign_export_gains_no_authority_until_a_person_accepts_it_as_one_item(target, tmp_path):
    forger = Forger()
    forger.unit("The gateway retries three times", proof={"by": ["human:bob"], "witnessed": True, "at": 0})
    forger.unit("The bank closes at five")
    forger.unit("Refunds take a week", status="published")
    forger.unit("Old news", status="archived")
    forger.unit("게이트웨이는 세 번 재시도한다", kind="decision")
    path = forger.written(tmp_path / "a.jsonl")
    with pytest.raises(NotAllowed):
        target.seat(Actor.agent("a"), BANK).import_claims(path)
    bob, agent = target.seat(Actor.human("bob"), BANK), target.seat(Actor.agent("a"), BANK)
    done = bob.import_claims(path)
    assert (done.units, done.known, done.left_out) == (2, 1, 1)
    assert bob.import_claims(path).units == 0
    assert agent.recall("how often does the gateway retry?").items[0].label == "[IMPORTED]"
    (item,) = [item for item in bob.inbox() if item.what == "import"]
    with pytest.raises(NotAllowed):
        target.seat(Actor.orchestrator("lead"), BANK).accept([item.id])
    bob.accept([item.id])
    assert agent.recall("how often does the gateway retry?").items[0].label == "[VERIFIED by bob]"
    assert [item for item in bob.inbox() if item.what == "import"] == []
    assert target.audit(full=True).ok


def test_what_the_doctor_wrote_is_no_knowledge_to_import(target, tmp_path):
    with mnemarch.open(":memory:") as other:
        other.seat(Actor.human("ada"), SHOP).remember("Parcels leave at noon")
        other.doctor()
        other.export(tmp_path / "a.jsonl")
    done = target.seat(Actor.human("bob"), BANK).import_claims(tmp_path / "a.jsonl", dry_run=True)
    assert done.texts == ("Parcels leave at noon",)


def test_r20_a_declined_import_stays_out(target, tmp_path):
    forger = Forger()
    forger.unit()
    path = forger.written(tmp_path / "a.jsonl")
    bob = target.seat(Actor.human("bob"), BANK)
    bob.decline([bob.import_claims(path).id], reason="not ours")
    assert bob.recall("how often does the gateway retry?").items == ()
    assert bob.import_claims(path).units == 0


def test_an_interrupted_restore_leaves_nothing(target, tmp_path):
    forger = Forger()
    for number in range(1500):
        forger.add(EventType.LOGGED, {"kind": "x", "text": f"y{number}"})
    path, before = forger.written(tmp_path / "a.jsonl"), target.stats().events

    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        target.import_(path, progress=stop)
    assert target.stats().events == before
    assert target.import_(path).events == 1500

"""Applies events to the projections. New events and rebuilds use the same code (R1)."""

from __future__ import annotations

from mnemarch.lazy import Lazy
from mnemarch.model.caller import Level, Scope
from mnemarch.model.event import Event, EventType
from mnemarch.model.json_text import canonical_json
from mnemarch.model.outcome import Rebuild
from mnemarch.model.stamps import instant, micros, sha256
from mnemarch.model.unit import OF_CODE, Citation, Kind, Link, Provenance, Status, Trust, Unit, Use
from mnemarch.model.value import assert_never, replace
from mnemarch.policy.kinds import kinds_where
from mnemarch.stores.sql.queries import text_keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mnemarch.log.audit import Replay
    from mnemarch.log.merging import Merge
    from mnemarch.model import decision as decisions
    from mnemarch.model.decision import Relation
    from mnemarch.model.testrun import TestRecord
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.stores.sql.transaction import Transaction
    from mnemarch.text import canonical, statements
else:
    # A cold process that only recalls needs none of these.
    canonical = Lazy("mnemarch.text.canonical")
    decisions = Lazy("mnemarch.model.decision")
    statements = Lazy("mnemarch.text.statements")

_PROGRESS_EVERY = 1_000
_SEARCHED = ("content", "scope", "status")
_SEARCHED_KINDS = kinds_where(lambda rules: rules.is_searched)
PROVENANCE_MAX = 100


def project(transaction: Transaction | Replay, event: Event, *, keyed: bool = True) -> None:
    """Apply one event. Payloads state outcomes and nothing is decided here, so a replay gives the same result.

    Without `keyed`, the keys of units' texts are not computed: they take most of the time.
    """
    payload = event.payload
    if payload is None:
        if event.type is EventType.UNIT_REMEMBERED:  # Other units keep their turn.
            put(transaction, _emptied(event), searchable_at=None, keyed=keyed)
        return  # Erased: a later erasure undoes or restates its effect.
    match event.type:
        case EventType.UNIT_REMEMBERED:
            put(transaction, _born(payload["unit"], event), searchable_at=event.position, keyed=keyed)
        case EventType.RECALLED:
            task_key = payload.get("task_key") or event.scope.key
            for unit_id in payload["units"]:
                transaction.put_use(Use(unit_id=unit_id, task_key=task_key, handed=True))
        case EventType.TASK_VERIFIED | EventType.TESTS_RESTATED:
            for record in _test_records(transaction, event, payload):
                transaction.put_test(record)
        case EventType.LINK_ADDED:
            link_id = payload.get("id", event.id)
            if "id" not in payload or transaction.link(link_id) is None:  # Two clones may open the same link.
                transaction.put_link(Link.from_json(payload["link"] | {"id": link_id}))
            for unit_id in payload.get("others", ()):
                transaction.put_link_unit(link_id, unit_id)
        case EventType.LINK_JOINED:
            if transaction.link(payload["link"]) is not None:
                transaction.put_link_unit(payload["link"], payload["unit"])
        case EventType.LINK_RESOLVED:
            link = transaction.link(payload["link"])
            if link is not None:
                transaction.put_link(replace(link, open=False, winner=payload["winner"], decision=payload["reason"]))
        case EventType.RELATION_ADDED:
            transaction.put_relation(_relation(payload, event.id))
        case EventType.RELATION_DROPPED:
            transaction.drop_relation(payload["source"], payload["type"], payload["target"])
        case EventType.UNIT_ERASED:
            _erase(transaction, event, payload, keyed=keyed)
        case EventType.RULE_LEARNED | EventType.RULE_JUDGED | EventType.RULE_DROPPED:
            _change_rule(transaction, event, payload)
        case (
            EventType.UNIT_MERGED | EventType.UNIT_MENTIONED | EventType.UNIT_CITED | EventType.UNIT_MOVED
            | EventType.UNIT_VERIFIED | EventType.UNIT_UNVERIFIED | EventType.UNIT_PUBLISHED | EventType.UNIT_VALIDATED
            | EventType.UNIT_USED | EventType.UNIT_PROMOTED | EventType.UNIT_APPROVED | EventType.UNIT_REJECTED
            | EventType.UNIT_SUPERSEDED | EventType.UNIT_SUPERSEDING | EventType.UNIT_ARCHIVED
            | EventType.UNIT_REVIVED | EventType.UNIT_RESTATED
        ):  # fmt: skip
            _change(transaction, event, payload, keyed=keyed)
        case (
            EventType.LOGGED | EventType.CLAIM_REFUSED | EventType.ACT_REFUSED | EventType.UNIT_HELD
            | EventType.ATTEMPT_FAILED | EventType.ATTEMPTS_CLEARED | EventType.TASK_STUCK | EventType.INBOX_SETTLED
            | EventType.DECISION_REQUESTED | EventType.REQUEST_ANSWERED
            | EventType.ACTOR_UNDONE | EventType.UNDO_REVERTED
            | EventType.GRAPH_CHANGED | EventType.GRAPH_RESTATED
        ):  # fmt: skip
            pass  # These have no effect: the same set as WITHOUT_EFFECT.
        case _ as unknown:
            assert_never(unknown)


def _erase(transaction: Transaction | Replay, event: Event, payload: dict[str, Any], *, keyed: bool) -> None:
    for link_id in payload["links"]:
        transaction.drop_link(link_id)
    for record in payload["units"]:
        transaction.drop_uses(record["id"])
        put(transaction, _tombstone(record, event), searchable_at=event.position, keyed=keyed)
    transaction.drop_tests(payload["events"])
    # A rule has the id of the event that learned it.
    transaction.drop_code_rules(payload["events"])


def _change(transaction: Transaction | Replay, event: Event, payload: dict[str, Any], *, keyed: bool) -> None:
    """Apply a change of a unit: set fields, add citations and provenance, and note a task's use."""
    before = transaction.unit(event.subject or "")
    if before is None or before.erased_at is not None:
        return  # Erased later in the log, or by another clone.
    if "use" in payload:
        transaction.put_use(Use(unit_id=before.id, **payload["use"]))
    for task_key in payload.get("reused_by", ()):
        transaction.put_use(Use(unit_id=before.id, task_key=task_key, credited=True))
    fields = Unit.fields_from_json(payload.get("set", {}))
    gained = [Citation.from_json(item) for item in payload.get("cite", ())]
    if gained:
        # A new citation of the same code replaces the old one.
        again = {str(item) for item in gained if item.kind in OF_CODE}
        known = [item for item in before.citations if str(item) not in again]
        fields["citations"] = (*known, *(item for item in gained if item not in known))
    if event.type in {EventType.UNIT_MERGED, EventType.UNIT_MENTIONED}:
        fields["mentions"] = before.mentions + 1
    if event.type is EventType.UNIT_MERGED and "voices" not in payload and _is_new_voice(before, event):
        fields["provenance"] = (*before.provenance, Provenance.of(event))
    if "voices" in payload:
        fields["provenance"] = _joined(before.provenance, payload["voices"])
    counters_only = not payload.get("set") and not gained and "provenance" not in fields
    if not counters_only:
        fields.setdefault("version", before.version + 1)
    after = replace(before, **fields)
    # An emptied event may have changed the restated fields, so always index: a replay must get the same position.
    is_restated = event.type is EventType.UNIT_RESTATED
    searched = is_restated or any(getattr(before, name) != getattr(after, name) for name in _SEARCHED)
    searchable_at = event.position if searched else None
    put(transaction, after, searchable_at=searchable_at, keyed=keyed and after.content != before.content)


def _joined(known: tuple[Provenance, ...], voices: list[dict[str, Any]]) -> tuple[Provenance, ...]:
    """The provenance of a unit and of its twin, each voice once."""
    heard = {source.voice for source in known}
    new = [source for source in map(Provenance.from_json, voices) if source.voice not in heard]
    return (*known, *new)[:PROVENANCE_MAX]


def _is_new_voice(unit: Unit, event: Event) -> bool:
    """Whether an event brings a new actor, scope or session. A unit must not grow with each repetition."""
    heard = any(source.voice == Provenance.of(event).voice for source in unit.provenance)
    return not heard and len(unit.provenance) < PROVENANCE_MAX


def _test_records(transaction: Transaction | Replay, event: Event, payload: dict[str, Any]) -> list[TestRecord]:
    """The outcomes of a run's tests after it, for each of its places."""
    from mnemarch.model.testrun import TestRecord

    outcomes = {name: outcome == "pass" for outcome in ("pass", "fail") for name in payload["tests"].get(outcome, ())}
    witnessed, tree, task_key = payload["witnessed"], payload["tree"], event.scope.key
    known = {
        (record.name, record.place): record
        for record in transaction.tests(event.stream, outcomes)
        if record.witnessed is witnessed
    }
    records = []
    for name, passed in outcomes.items():
        for place in payload["places"]:
            before = known.get((name, place))
            changed = before is not None and before.passed is not passed
            same_tree = before is not None and bool(tree) and before.tree == tree
            greened_by = task_key if passed and changed else before.greened_by if before else ""
            records.append(
                TestRecord(
                    stream=event.stream,
                    name=name,
                    place=place,
                    witnessed=witnessed,
                    passed=passed,
                    at=event.recorded_at,
                    event_id=event.id,
                    flaky=payload.get("flaky", before is not None and same_tree and (before.flaky or changed)),
                    tree=tree,
                    greened_by=payload.get("greened_by", greened_by),
                )
            )
    return records


def _change_rule(transaction: Transaction | Replay, event: Event, payload: dict[str, Any]) -> None:
    """Learn, judge or drop a code rule. A rule has the id of the event that learned it."""
    at = micros(event.recorded_at)
    if event.type is EventType.RULE_LEARNED:
        rule = payload["rule"] | {"id": event.id, "project_id": event.scope.at(Level.PROJECT).key}
        rule["languages"] = canonical_json(rule["languages"])
        transaction.put_code_rule(rule | {"created_at": at, "updated_at": at})
    elif event.type is EventType.RULE_JUDGED:
        transaction.judge_code_rule(event.subject or "", payload["set"] | {"updated_at": at})
    else:
        transaction.drop_code_rules([event.subject or ""])


def _relation(payload: dict[str, Any], event_id: str) -> Relation:
    type = decisions.RelationType(payload["type"])
    return decisions.Relation(source=payload["source"], type=type, target=payload["target"], id=event_id)


def keys_of(content: str) -> tuple[str, str]:
    """The keys by which units of one text, and of one topic, are found. Call it before a transaction to cache them."""
    return canonical.merge_key(content), statements.topic_key(content)


def put(transaction: Transaction | Replay, unit: Unit, *, searchable_at: int | None, keyed: bool) -> None:
    """Write a unit. With `keyed`, update the keys of its text too."""
    keys = text_keys(unit) if keyed else (None, None)
    transaction.put_unit(
        unit,
        canonical_key=keys[0],
        topic_key=keys[1],
        searchable_at=searchable_at if unit.kind in _SEARCHED_KINDS else None,
        version_key=decisions.version_key_of(unit) if unit.kind is Kind.DECISION else None,
    )


def _born(record: dict[str, Any], event: Event) -> Unit:
    fields = Unit.fields_from_json(record)
    return Unit(
        **fields,
        id=event.subject or "",
        provenance=(Provenance.of(event),),
        occurred_at=event.occurred_at,
        recorded_at=event.recorded_at,
    )


def _tombstone(record: dict[str, Any], event: Event) -> Unit:
    """The remains of an erased unit: its id, kind and scope, and when it was erased."""
    return Unit(
        id=record["id"],
        kind=Kind(record["kind"]),
        content="",
        scope=Scope.of(record["scope"]),
        domain="global",
        status=Status.ARCHIVED,
        trust=Trust(confidence=0.0, since=event.recorded_at),
        importance=0.0,
        citations=(),
        provenance=(),
        occurred_at=instant(record["recorded_at"]),
        recorded_at=instant(record["recorded_at"]),
        version=record["version"],
        archive_reason="erased",
        erased_at=event.recorded_at,
    )


def _emptied(event: Event) -> Unit:
    """A placeholder for the unit of an emptied event, until the erasure itself is applied."""
    record = {"id": event.subject or "", "kind": Kind.FACT, "scope": event.scope.segments, "version": 1}
    record["recorded_at"] = micros(event.recorded_at)
    return replace(_tombstone(record, event), provenance=(Provenance.of(event),))


def digest(reader: Reader) -> str:
    """One hash over every projection row."""
    total = sha256()
    for row in reader.rows():
        plain = [int(item) if isinstance(item, bool) else item for item in row]
        total.update(repr(plain).encode("utf-8", "surrogatepass"))
    return total.hexdigest()


def rebuild(transaction: Transaction, progress: Callable[[int], None] | None = None) -> Rebuild:
    """Clear the projections and fold the log again, in one transaction. An interrupted rebuild changes nothing."""
    before = digest(transaction)
    _, folded = refolded(transaction, progress)
    return Rebuild(digest_before=before, digest_after=digest(transaction), events=folded)


def begun(transaction: Transaction) -> Merge:
    """A fold that continues the stored log. With several writers it needs the whole log, which is folded again."""
    from mnemarch.log.merging import Merge

    has_writers = any(stream.writer for stream in transaction.heads())
    return refolded(transaction)[0] if has_writers else Merge(transaction)


def refolded(transaction: Transaction, progress: Callable[[int], None] | None = None) -> tuple[Merge, int]:
    """Like `rebuild`, without digests. Returns the fold, which can continue, and the number of events."""
    from mnemarch.log.merging import Merge

    transaction.clear_projections()
    merge = Merge(transaction)
    folded = 0
    for folded, event in enumerate(transaction.events(), 1):
        transaction.stream = event.stream
        merge.project(event)
        if progress is not None and folded % _PROGRESS_EVERY == 0:
            progress(folded)
    return merge, folded

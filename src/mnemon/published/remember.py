"""A claim becomes a unit, joins one that says the same, or is refused with the rule that refused it."""

from __future__ import annotations

from mnemon.errors import Conflict
from mnemon.ledger.act import receipt_for
from mnemon.ledger.standing import check_citations, passed_tests, raise_by_evidence
from mnemon.ledger.twins import is_same, said_alike
from mnemon.model.citation import CitationKind
from mnemon.model.claim import Claim, waiting_key
from mnemon.model.event import EventType
from mnemon.model.ids import new_id
from mnemon.model.instant import micros
from mnemon.model.link import Link, LinkType
from mnemon.model.outcome import Refused, Stored
from mnemon.model.scope import Level
from mnemon.model.trust import DecayPolicy, Trust
from mnemon.model.unit import Kind, Status, trust_to_json
from mnemon.model.value import replace
from mnemon.policy.promotion import refusal_to_write, warranted
from mnemon.policy.trust import decay_policy_of
from mnemon.published.disputes import dispute_from, meetings
from mnemon.text.canonical import canonical_key
from mnemon.text.difference import skeleton
from mnemon.text.secrets import redacted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mnemon.ledger.act import Act
    from mnemon.model.citation import Citation
    from mnemon.model.event import Event
    from mnemon.model.unit import Unit

_DISPUTED_KINDS = frozenset({Kind.FACT, Kind.PREFERENCE, Kind.PROFILE, Kind.SEMANTIC, Kind.SKILL, Kind.POLICY})


_OF_A_CLAIM = frozenset(
    {EventType.CLAIM_REFUSED, EventType.UNIT_REMEMBERED, EventType.UNIT_MERGED, EventType.UNIT_MENTIONED}
)


def remember(act: Act, claim: Claim, near: Sequence[str] = ()) -> Stored | Refused:
    """Store one checked claim. `near` are the units that a search found alike."""
    clean, secrets = redacted(claim.content)
    claim = replace(claim, content=clean)
    earlier = _earlier(act, claim)
    if earlier is not None:
        return earlier
    check_citations(act.transaction, act.presence, claim.citations)
    assert isinstance(claim.level, Level)
    status = warranted(claim.citations, passed_tests(act, claim.citations))
    refusal = refusal_to_write(act.presence.actor, claim.level, status, act.config.policy)
    if refusal is not None:
        payload = {"claim": claim.to_json(), "rule": refusal.rule, "reason": refusal.reason, "hint": refusal.hint}
        event, found = act.record(
            EventType.CLAIM_REFUSED, payload, key=claim.key, occurred_at=claim.occurred_at, session=claim.session
        )
        receipt = receipt_for(event, redacted=tuple(sorted({*secrets, *found})))
        return Refused(rule=refusal.rule, reason=f"{refusal.reason} {refusal.hint}", receipt=receipt)
    known = _same(act, claim)
    if known is not None:
        return _joined(act, claim, known, secrets)
    return _born(act, claim, status, secrets, near)


def _earlier(act: Act, claim: Claim) -> Stored | Refused | None:
    """What this idempotency key already stands for."""
    if claim.key is None:
        return None
    event = act.transaction.event_for_key(act.presence.scope_key, str(act.presence.actor), claim.key)
    if event is None:
        return None
    receipt = receipt_for(event, duplicate=True)
    payload = event.payload
    unit = act.transaction.unit(event.subject or "")
    if event.type not in _OF_A_CLAIM or payload is None or _said(payload) != claim.content:
        raise Conflict(
            f"Key {claim.key!r} already stands for event {event.id}, which says something else or was erased.",
            hint="Use a new key for a new claim; nothing was stored.",
            current=unit,
        )
    if event.type is EventType.CLAIM_REFUSED:
        admitted = act.transaction.event_for_key(event.scope.key, str(event.actor), waiting_key(event.id))
        if admitted is None:
            return Refused(rule=str(payload["rule"]), reason=str(payload["reason"]), receipt=receipt)
        # The gate let it through meanwhile.
        event, unit = admitted, act.transaction.unit(admitted.subject or "")
    assert unit is not None
    return Stored(unit=unit, receipt=receipt, merged=event.type is not EventType.UNIT_REMEMBERED)


def _said(payload: dict[str, Any]) -> str:
    """The content that an event of a claim holds: refused, new, or joined to a known unit."""
    holder = payload.get("claim") or payload.get("unit")
    return str(holder["content"] if holder else payload["said"])


def _same(act: Act, claim: Claim) -> Unit | None:
    """The live unit that says exactly this, at the claim's level or wider: one fact, one unit (R5, R6).

    Text that recall handed out here is an echo of its unit, whatever kind or domain it is claimed with.
    """
    assert isinstance(claim.level, Level)
    assert isinstance(claim.kind, Kind)
    wide = [scope.key for scope in act.presence.scope.visible if scope.level >= claim.level]
    for unit in said_alike(act.transaction, act.presence.visible_keys, claim.content):
        is_it = is_same(unit, claim.kind, claim.domain, claim.content, claim.attributes)
        if (is_it and unit.scope.key in wide) or _is_echo(act, claim, unit):
            return unit
    return None


def _is_echo(act: Act, claim: Claim, unit: Unit) -> bool:
    """Whether a claim only repeats what recall handed out; evidence or a wider level is something new."""
    assert isinstance(claim.level, Level)
    if claim.kind is Kind.EVIDENCE:
        return False
    return unit.level >= claim.level and not claim.citations and _was_handed(act, unit)


def _was_handed(act: Act, unit: Unit) -> bool:
    """Whether recall handed the unit to this seat's scope before."""
    use = act.transaction.use(unit.id, act.presence.scope_key)
    return use is not None and use.handed


def _joined(act: Act, claim: Claim, unit: Unit, secrets: tuple[str, ...]) -> Stored:
    """Another voice for a known fact; an echo of what recall handed out is only a mention (R6)."""
    cited = [citation.to_json() for citation in claim.citations]
    echo = not cited and _was_handed(act, unit)
    presence = act.presence
    voice = (presence.actor, presence.scope, claim.session or presence.session)
    heard = any(source.voice == voice for source in unit.provenance)
    type = EventType.UNIT_MENTIONED if echo or (heard and not cited) else EventType.UNIT_MERGED
    event, found = act.record(
        type,
        {"said": claim.content, "cite": cited},
        subject=unit.id,
        key=claim.key,
        occurred_at=claim.occurred_at,
        session=claim.session,
    )
    after = act.transaction.unit(unit.id)
    assert after is not None
    after = raise_by_evidence(act, after)
    return Stored(unit=after, receipt=receipt_for(event, redacted=tuple(sorted({*secrets, *found}))), merged=True)


def _born(act: Act, claim: Claim, status: Status, secrets: tuple[str, ...], near: Sequence[str]) -> Stored:
    rivals = _rivals(act, claim, near) if claim.kind in _DISPUTED_KINDS else []
    event, found = record_unit(act, claim, status)
    links = [
        link_units(act, event.subject or "", meeting.other.id, meeting.type, meeting.similarity, meeting.note)
        for meeting in meetings(claim.content, rivals, act.config.gate)
    ]
    unit = act.transaction.unit(event.subject or "")
    assert unit is not None
    return Stored(
        unit=unit,
        receipt=receipt_for(event, redacted=tuple(sorted({*secrets, *found}))),
        conflicts=tuple(dispute_from(link) for link in links if link.type is LinkType.CONTRADICTS),
        similar=tuple(dispute_from(link) for link in links if link.type is LinkType.DUPLICATES),
    )


def record_unit(act: Act, claim: Claim, status: Status) -> tuple[Event, tuple[str, ...]]:
    """Write a new unit. Its content is in this one event and nowhere else in the log."""
    rules = act.config.trust
    assert isinstance(claim.level, Level)
    assert isinstance(claim.kind, Kind)
    decay = DecayPolicy(claim.decay_policy or decay_policy_of(claim.kind))
    confidence = rules.initial_draft if status is Status.HYPOTHESIS else rules.initial_verified
    unit = {
        "kind": str(claim.kind),
        "content": claim.content,
        "scope": act.presence.scope.at(claim.level).segments,
        "domain": claim.domain,
        "status": str(status),
        "trust": trust_to_json(Trust(confidence=confidence, since=act.now, decay_policy=decay)),
        "importance": claim.importance,
        "citations": [citation.to_json() for citation in (*claim.citations, *_seen(claim))],
        "attributes": dict(claim.attributes),
    }
    return act.record(
        EventType.UNIT_REMEMBERED,
        {"unit": unit},
        subject=new_id(),
        key=claim.key,
        occurred_at=claim.occurred_at,
        session=claim.session,
    )


def _seen(claim: Claim) -> list[Citation]:
    """What the text names in the working tree and nobody cited already: support, though it verifies nothing (R2)."""
    cited = {str(citation) for citation in claim.citations}
    files = {citation.ref for citation in claim.citations if citation.kind in (CitationKind.FILE, CitationKind.SYMBOL)}
    return [
        citation
        for citation in claim.seen
        if str(citation) not in cited and not (citation.kind is CitationKind.FILE and citation.ref in files)
    ]


def link_units(act: Act, source: str, target: str, type: LinkType, weight: float, note: str) -> Link:
    """Relate two units; a contradiction or a duplicate stays open until somebody resolves it."""
    link = {
        "type": str(type),
        "source": source,
        "target": target,
        "weight": round(weight, 4),
        "note": note,
        "at": micros(act.now),
        "open": type is not LinkType.SIMILAR_TO,
        "winner": None,
    }
    event, _ = act.record(EventType.LINK_ADDED, {"link": link}, subject=source)
    return Link.from_json(link | {"id": event.id})


def dispute(act: Act, unit: Unit) -> None:
    """Open the disputes of a unit that has come among others by promotion."""
    known = {side for link in act.transaction.links_of(unit.id) for side in (link.source, link.target)}
    twins = act.transaction.units_with_skeleton(
        act.presence.visible_keys, canonical_key(skeleton(unit.content)), act.config.gate.neighbours_max
    )
    rivals = [other for other in twins if other.id != unit.id and other.id not in known]
    for meeting in meetings(unit.content, rivals if unit.kind in _DISPUTED_KINDS else (), act.config.gate):
        link_units(act, unit.id, meeting.other.id, meeting.type, meeting.similarity, meeting.note)


def link_episodes(act: Act, episode_id: str, other_id: str, similarity: float) -> Link:
    """Similar episodes are linked, never merged (G11)."""
    return link_units(act, episode_id, other_id, LinkType.SIMILAR_TO, similarity, "similar episode")


def _rivals(act: Act, claim: Claim, near: Sequence[str]) -> list[Unit]:
    """What this claim may repeat or oppose: what is the same but for guarded pieces, and what a search found."""
    visible = act.presence.visible_keys
    skeleton_key = canonical_key(skeleton(claim.content))
    found = {
        unit.id: unit
        for unit in act.transaction.units_with_skeleton(visible, skeleton_key, act.config.gate.neighbours_max)
    }
    found |= act.transaction.units(near)
    return [unit for unit in found.values() if unit.live and unit.scope.key in visible and unit.kind in _DISPUTED_KINDS]

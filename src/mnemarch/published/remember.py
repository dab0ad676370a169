"""A claim becomes a unit, joins one that says the same, or is refused with the rule that refused it."""

from __future__ import annotations

from mnemarch.errors import Conflict
from mnemarch.ledger.act import receipt_for
from mnemarch.ledger.rejections import refusal_to_repeat, rejected_alike
from mnemarch.ledger.standing import check_citations, passed_tests, raise_by_evidence
from mnemarch.ledger.twins import is_same, once_said_alike, said_alike
from mnemarch.model.actor import ActorKind
from mnemarch.model.citation import CitationKind
from mnemarch.model.claim import Claim, waiting_key
from mnemarch.model.event import EventType
from mnemarch.model.ids import new_id
from mnemarch.model.instant import micros
from mnemarch.model.link import Link, LinkType
from mnemarch.model.outcome import Refused, Stored
from mnemarch.model.scope import Level
from mnemarch.model.trust import DecayPolicy, Trust
from mnemarch.model.unit import Kind, Status, trust_to_json
from mnemarch.model.value import replace
from mnemarch.policy.promotion import refusal_to_write, warranted
from mnemarch.policy.trust import decay_policy_of
from mnemarch.published.disputes import dispute_from, meetings, repetition
from mnemarch.published.evidence import approve
from mnemarch.text.canonical import canonical, canonical_key
from mnemarch.text.difference import skeleton
from mnemarch.text.secrets import redacted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mnemarch.ledger.act import Act
    from mnemarch.model.citation import Citation
    from mnemarch.model.event import Event
    from mnemarch.model.unit import Unit
    from mnemarch.policy.promotion import Refusal

# So many of the newest that say the same but for numbers, names and negations are compared with a new one; a subject
# with more values than that is a series, and each further one would cost more than its conflicts tell anybody.
_ALIKE_MAX = 32
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
    known = _same(act, claim)
    refusal = _refusal(act, claim, status, known)
    if refusal is not None:
        payload = {"claim": claim.to_json(), "rule": refusal.rule, "reason": refusal.reason, "hint": refusal.hint}
        event, found = act.record(
            EventType.CLAIM_REFUSED, payload, key=claim.key, occurred_at=claim.occurred_at, session=claim.session
        )
        receipt = receipt_for(event, redacted=tuple(sorted({*secrets, *found})))
        return Refused(rule=refusal.rule, reason=f"{refusal.reason} {refusal.hint}", receipt=receipt)
    known = known or _taken_back(act, claim)
    if known is not None:
        return _joined(act, claim, known, secrets)
    return _born(act, claim, status, secrets, near)


def _refusal(act: Act, claim: Claim, status: Status, known: Unit | None) -> Refusal | None:
    """Why the claim is not taken, or None. What was rejected is not said again by anybody but a person (R4, R5)."""
    assert isinstance(claim.level, Level)
    actor = act.presence.actor
    if known is None and actor.kind is not ActorKind.HUMAN:
        refusal = refusal_to_repeat(act, claim)
        if refusal is not None:
            return refusal
    return refusal_to_write(actor, claim.level, status, act.config.policy)


def _taken_back(act: Act, claim: Claim) -> Unit | None:
    """The rejected unit that a person says again, approved by that: one fact, one unit."""
    assert isinstance(claim.kind, Kind)
    for unit, _ in rejected_alike(act.transaction, _wide(act, claim), claim):
        if is_same(unit, claim.kind, claim.domain, claim.content, claim.attributes):
            return approve(act, unit.id, None)
    return None


def _wide(act: Act, claim: Claim) -> list[str]:
    """The scopes in sight that reach at least as far as the claim."""
    assert isinstance(claim.level, Level)
    return [scope.key for scope in act.presence.scope.visible if scope.level >= claim.level]


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
        judged = act.transaction.event_for_key(event.scope.key, str(event.actor), waiting_key(event.id))
        if judged is None or judged.type is EventType.CLAIM_REFUSED:
            told = (judged and judged.payload) or payload
            return Refused(rule=str(told["rule"]), reason=str(told["reason"]), receipt=receipt)
        # The gate let it through meanwhile.
        event, unit = judged, act.transaction.unit(judged.subject or "")
    assert unit is not None
    return Stored(unit=unit, receipt=receipt, merged=event.type is not EventType.UNIT_REMEMBERED)


def _said(payload: dict[str, Any]) -> str:
    """The content that an event of a claim holds: refused, new, or joined to a known unit."""
    holder = payload.get("claim") or payload.get("unit")
    return str(holder["content"] if holder else payload["said"])


def _same(act: Act, claim: Claim) -> Unit | None:
    """The live unit that says exactly this, at the claim's level or wider: one fact, one unit (R5, R6).

    Text that recall handed out here is an echo of its unit, whatever kind or domain it is claimed with, and also
    after the unit was superseded.
    """
    assert isinstance(claim.kind, Kind)
    wide = _wide(act, claim)
    for unit in said_alike(act.transaction, act.presence.visible_keys, claim.content):
        is_it = is_same(unit, claim.kind, claim.domain, claim.content, claim.attributes)
        if (is_it and unit.scope.key in wide) or _is_echo(act, claim, unit):
            return unit
    once = once_said_alike(act.transaction, act.presence.visible_keys, claim.content)
    return next((unit for unit in once if unit.status is Status.DEPRECATED and _is_echo(act, claim, unit)), None)


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
    event, found = record_unit(act, claim, status)
    unit = act.transaction.unit(event.subject or "")
    assert unit is not None
    stored = Stored(unit=unit, receipt=receipt_for(event, redacted=tuple(sorted({*secrets, *found}))))
    return _with_disputes(stored, _linked(act, unit, near))


def _with_disputes(stored: Stored, links: Sequence[Link]) -> Stored:
    return replace(
        stored,
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
    """What the text names in the working tree and nobody cited already: support, though it verifies nothing (R2).

    Of a policy none: it rests on whoever laid it down, and holds whatever becomes of the files it names (D15).
    """
    if claim.kind is Kind.POLICY:
        return []
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


def disputed(act: Act, promoted: Stored) -> Stored:
    """The answer of a promotion with what its unit has to settle among its new neighbours, new and known (R5)."""
    dispute(act, promoted.unit)
    links = [link for link in act.transaction.links_of(promoted.unit.id) if link.open]
    sides = act.transaction.units({side for link in links for side in (link.source, link.target)})
    seen = {side for side, unit in sides.items() if unit.live and unit.scope.key in act.presence.visible_keys}
    return _with_disputes(promoted, [link for link in links if {link.source, link.target} <= seen])


def dispute(act: Act, unit: Unit) -> None:
    """Open the disputes of a unit that has come among others by promotion, or taken the place of another.

    What stood behind the other comes to light then: however many oppose each other, they are all decided in the end.
    """
    _linked(act, unit)


def link_episodes(act: Act, episode_id: str, other_id: str, similarity: float) -> Link:
    """Similar episodes are linked, never merged (G11)."""
    return link_units(act, episode_id, other_id, LinkType.SIMILAR_TO, similarity, "similar episode")


def _linked(act: Act, unit: Unit, near: Sequence[str] = ()) -> list[Link]:
    """Link a unit with those in sight that it repeats or opposes and is not linked with yet."""
    if unit.kind not in _DISPUTED_KINDS:
        return []
    known = {side for link in act.transaction.links_of(unit.id) for side in (link.source, link.target)} | {unit.id}
    successors = _successors(act, unit.content)
    found = {other.id: other for other in (*_rivals(act, unit.content, near), *(after for after, _ in successors))}
    rivals = [other for other in found.values() if other.id not in known]
    met = meetings(unit.content, rivals, act.config.gate, opposed_max=_ALIKE_MAX)
    # What was merged into another in its words, and is said again, is offered for merging again.
    settled = known | {meeting.other.id for meeting in met if meeting.type is not LinkType.SIMILAR_TO}
    again = [repetition(unit.content, before, after) for after, before in successors if after.id not in settled]
    opposed = {meeting.other.id for meeting in again}
    return [
        link_units(act, unit.id, meeting.other.id, meeting.type, meeting.similarity, meeting.note)
        for meeting in (*again, *(meeting for meeting in met if meeting.other.id not in opposed))
    ]


def _rivals(act: Act, content: str, near: Sequence[str]) -> list[Unit]:
    """What this may repeat or oppose: what is the same but for guarded pieces, and what a search found."""
    visible = act.presence.visible_keys
    skeleton_key = canonical_key(skeleton(content))
    found = {unit.id: unit for unit in act.transaction.units_with_skeleton(visible, skeleton_key, _ALIKE_MAX + 1)}
    found |= act.transaction.units(near)
    return [unit for unit in found.values() if _is_rival(act, unit)]


def _is_rival(act: Act, unit: Unit) -> bool:
    return unit.live and unit.scope.key in act.presence.visible_keys and unit.kind in _DISPUTED_KINDS


def _successors(act: Act, content: str) -> list[tuple[Unit, Unit]]:
    """What holds now in the place of units that said this, each with the unit it replaced, and says something else."""
    found: dict[str, tuple[Unit, Unit]] = {}
    for replaced in once_said_alike(act.transaction, act.presence.visible_keys, content):
        last = _last_after(act, replaced)
        if _is_rival(act, last) and canonical(last.content) != canonical(content):
            found[last.id] = (last, replaced)
    return list(found.values())


def _last_after(act: Act, unit: Unit) -> Unit:
    """The end of a unit's line of successors."""
    line = {unit.id: unit}
    while unit.superseded_by is not None and unit.superseded_by not in line:
        after = act.transaction.unit(unit.superseded_by)
        if after is None:
            break
        unit = line[after.id] = after
    return unit

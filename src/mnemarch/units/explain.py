"""Everything a unit can say for itself (S7): where from, who, when true, how sure, replaced by what, used by whom."""

from __future__ import annotations

from mnemarch.model.citation import CitationKind
from mnemarch.model.event import EventType
from mnemarch.model.outcome import Explanation
from mnemarch.model.unit import LinkType, Provenance, Status
from mnemarch.policy.promotion import counts
from mnemarch.policy.trust import confidence_at
from mnemarch.units.conflicts import dispute_of
from mnemarch.units.same_text import RULE, rejected_alike

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from mnemarch.model.caller import Stream
    from mnemarch.model.event import Event
    from mnemarch.model.unit import Link, Unit
    from mnemarch.policy.trust import TrustRules
    from mnemarch.stores.sql.reader import Reader

_VOICES = frozenset({EventType.UNIT_REMEMBERED, EventType.UNIT_MERGED})


def explained(
    reader: Reader, unit: Unit, stream: Stream, visible_keys: Sequence[str], now: datetime, rules: TrustRules
) -> Explanation:
    history = tuple(told(reader, unit.id, visible_keys))
    tests = {
        citation.ref
        for citation in unit.citations
        if citation.kind is CitationKind.TEST and reader.test_passed(stream, citation.ref)
    }
    links = [link for link in reader.links_of(unit.id) if link.type is not LinkType.SIMILAR_TO]
    disputes = [dispute_of(reader, link, visible_keys) for link in links]
    return Explanation(
        unit=unit,
        confidence_now=confidence_at(unit.trust, now, rules),
        confidence_stored=unit.trust.confidence,
        why_confidence=tuple(_steps_of_trust(history)),
        provenance=tuple(Provenance.of(event) for event in history if event.type in _VOICES),
        citations=tuple((str(citation), counts(citation, tests)) for citation in unit.citations),
        status_reason=_status_reason(unit, history, rejected_alike(reader, visible_keys, unit)),
        valid=_validity(unit),
        supersedes=unit.supersedes,
        superseded_by=unit.superseded_by,
        disputes=tuple(dispute for dispute in disputes if dispute is not None),
        used_by=tuple(_users(reader, unit)),
        history=history,
    )


def told(reader: Reader, unit_id: str, visible_keys: Sequence[str]) -> list[Event]:
    """The unit's events and those that decided its disputes, in order.

    Links to units that the reader may not see are left out: their notes quote them.
    """
    events = []
    for event in reader.events_of_subject(unit_id):
        link = reader.link(event.id) if event.type is EventType.LINK_ADDED else None
        if event.type is not EventType.LINK_ADDED or (link and _both_visible(reader, link, visible_keys)):
            events.append(event)
    for link in reader.links_of(unit_id):
        if link.type is not LinkType.SIMILAR_TO and not link.open and _both_visible(reader, link, visible_keys):
            events += reader.events_of_subject(link.id)
    return sorted(events, key=lambda event: event.position)


def _both_visible(reader: Reader, link: Link, visible_keys: Sequence[str]) -> bool:
    sides = reader.units((link.source, link.target)).values()
    return len(sides) == 2 and all(side.scope.key in visible_keys for side in sides)


def _steps_of_trust(history: Sequence[Event]) -> list[str]:
    """Each event that moved the confidence, in words."""
    steps = []
    for event in history:
        payload = event.payload or {}
        trust = payload.get("set", {}).get("trust") or payload.get("unit", {}).get("trust")
        if trust:
            cause = payload.get("signal") or event.type.partition(".")[2]
            steps.append(f"{trust['confidence']:.2f} after {cause} by {event.actor} on {event.recorded_at:%Y-%m-%d}")
    return steps


def _status_reason(unit: Unit, history: Sequence[Event], rejected: Sequence[tuple[Unit, Event]]) -> str:
    if unit.erased_at is not None:
        return "erased"
    if unit.status is Status.DEPRECATED:
        return f"superseded: {unit.contradiction_note}"
    if unit.status is Status.ARCHIVED:
        return str(unit.archive_reason)
    if unit.status is Status.PUBLISHED:
        return f"verified and reused by {unit.uses} tasks (S10.3)"
    held = [event.payload for event in history if event.type is EventType.UNIT_HELD and event.payload]
    if unit.status is Status.HYPOTHESIS and rejected:
        other, rejection = rejected[-1]
        return f"{rejection.actor} rejected unit {other.id}, which says the same ({RULE})"
    if unit.status is Status.HYPOTHESIS:
        return f"{held[-1]['reason']} ({held[-1]['rule']})" if held else "no test or human citation counts yet (S10)"
    return "a test or human citation counted when it was verified (S10.2)"


def _validity(unit: Unit) -> str:
    since = f"since {unit.occurred_at:%Y-%m-%d %H:%M}"
    if unit.valid_from_commit:
        since += f" (commit {unit.valid_from_commit[:12]})"
    if unit.valid_to is None:
        return since
    commit = f" (commit {unit.valid_to_commit[:12]})" if unit.valid_to_commit else ""
    return f"{since} until {unit.valid_to:%Y-%m-%d %H:%M}{commit}"


def _users(reader: Reader, unit: Unit) -> list[str]:
    """The tasks that were credited with reusing it, named by the events that say so."""
    return [
        str(event.scope.task)
        for event in reader.events_of_subject(unit.id)
        if event.type is EventType.UNIT_USED and event.scope.task is not None
    ]

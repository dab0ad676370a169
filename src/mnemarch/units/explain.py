"""The explanation of a unit: its origin, authors, validity, trust, successors and users (S7)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from mnemarch.log.act import Log
from mnemarch.model.caller import Caller
from mnemarch.model.event import Event, EventType
from mnemarch.model.outcome import RELATION_ORDER, Explanation, Related
from mnemarch.model.unit import IN_TREES, Kind, Link, LinkType, Provenance, Status, Unit
from mnemarch.policy.promotion import counts
from mnemarch.policy.trust import confidence_at
from mnemarch.stores.sql.reader import Reader
from mnemarch.units.conflicts import dispute_of
from mnemarch.units.finding import RULE, rejected_alike
from mnemarch.units.scene import TestSource
from mnemarch.units.status import cited_tests

_RELATED_MAX, _EPISODES_MAX, _CITATIONS_MAX = 50, 200, 8
_VOICES = frozenset({EventType.UNIT_REMEMBERED, EventType.UNIT_MERGED})


def explained(reader: Reader, unit: Unit, caller: Caller, log: Log, sources: Mapping[str, TestSource]) -> Explanation:
    visible_keys, history = caller.visible_keys, tuple(told(reader, unit.id, caller.visible_keys))
    tests = cited_tests(reader, caller, unit.scope, unit, sources)
    links = [link for link in reader.links_of(unit.id) if link.type is not LinkType.SIMILAR_TO]
    disputes = [dispute_of(reader, link, visible_keys) for link in links]
    return Explanation(
        unit=unit,
        confidence_now=confidence_at(unit.trust, log.clock(), log.config.trust),
        confidence_stored=unit.trust.confidence,
        why_confidence=tuple(_steps_of_trust(history)),
        provenance=tuple(Provenance.of(event) for event in history if event.type in _VOICES),
        citations=tuple((str(citation), counts(citation, tests)) for citation in unit.citations),
        status_reason=_status_reason(unit, history, rejected_alike(reader, visible_keys, unit)),
        valid=_validity(unit),
        supersedes=unit.supersedes,
        superseded_by=unit.superseded_by,
        disputes=tuple(dispute for dispute in disputes if dispute is not None),
        used_by=tuple(_users(history)),
        history=history,
        related=tuple(relation.sentence for relation in related(reader, unit, visible_keys)),
    )


def related(reader: Reader, unit: Unit, visible_keys: Sequence[str]) -> list[Related]:
    """Units related to this one, closest first: similar, replaced, fixed, its origins and its results (G3, G11)."""
    links = {(link.target if link.source == unit.id else link.source): link for link in reader.links_of(unit.id)}
    led_to = _led_to(reader, unit)
    came_from = _came_from(reader, unit, visible_keys)
    replaced = {unit.supersedes: "supersedes", unit.superseded_by: "superseded_by"}
    ids = {*links, *led_to, *came_from, *(other for other in replaced if other)}
    others = {id: each for id, each in reader.units(sorted(ids)).items() if id != unit.id and each.erased_at is None}
    relations = [Related(others[id], how) for id, how in replaced.items() if id in others]
    relations += [_linked(unit, others[id], link) for id, link in links.items() if id in others]
    relations += [Related(others[id], "led_to") for id in led_to if id in others]
    relations += [Related(others[id], "came_from") for id in came_from if id in others]
    relations += _sharing_evidence(reader, unit, visible_keys, known=ids)
    seen = [each for each in relations if each.unit.scope.key in visible_keys and each.weight > 0]
    order = {how: place for place, how in enumerate(RELATION_ORDER)}
    return sorted(seen, key=lambda each: (order[each.how], -each.weight, each.unit.id))[:_RELATED_MAX]


def _linked(unit: Unit, other: Unit, link: Link) -> Related:
    how = str(link.type)
    if link.type is LinkType.SIMILAR_TO and unit.kind is other.kind is Kind.EPISODE:
        succeeded = [bool(episode.attributes.get("success")) for episode in (unit, other)]
        if succeeded[0] != succeeded[1]:
            # The later success fixed the earlier failure.
            failed, later = (other, unit) if succeeded[0] else (unit, other)
            if later.recorded_at > failed.recorded_at:
                how = "fixed" if succeeded[0] else "fixed_by"
    return Related(other, how, link.weight, "" if link.type is LinkType.SIMILAR_TO else link.note)


def _led_to(reader: Reader, unit: Unit) -> list[str]:
    """The ids of units that an episode's task created or verified."""
    task_key = unit.attributes.get("task_key") if unit.kind is Kind.EPISODE else None
    if not isinstance(task_key, str):
        return []
    events = reader.events_of_scope(task_key, (EventType.UNIT_REMEMBERED, EventType.UNIT_VERIFIED))
    return [id for id in dict.fromkeys(event.subject for event in events) if id and id != unit.id]


def _came_from(reader: Reader, unit: Unit, visible_keys: Sequence[str]) -> list[str]:
    """The ids of a skill's episode, and of the live episodes of tasks that claimed the unit."""
    if unit.kind is Kind.EPISODE:
        return []
    tasks = {voice.scope.key for voice in unit.provenance}
    episodes = reader.units_in(visible_keys, kind=Kind.EPISODE, live=True, limit=_EPISODES_MAX)
    told = [episode.id for episode in episodes if episode.attributes.get("task_key") in tasks]
    own = unit.attributes.get("episode")
    return list(dict.fromkeys([*([own] if isinstance(own, str) else []), *told]))


def _sharing_evidence(
    reader: Reader, unit: Unit, visible_keys: Sequence[str], *, known: Collection[str]
) -> Iterator[Related]:
    """Live units that cite the same test, symbol, file or commit, and are not in `known`."""
    seen = {unit.id, *known}
    for citation in [item for item in unit.citations if item.kind in IN_TREES][:_CITATIONS_MAX]:
        for other in reader.units_citing(visible_keys, citation.kind, [citation.ref]):
            same = any(str(item) == str(citation) for item in other.citations)
            if same and other.live and other.id not in seen:
                seen.add(other.id)
                yield Related(other, "cites_same", via=str(citation))


def told(reader: Reader, unit_id: str, visible_keys: Sequence[str]) -> list[Event]:
    """The unit's events and those that decided its disputes, in order.

    Links to units that the reader may not see are left out, because their notes quote those units.
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
    """A sentence for each event that changed the confidence."""
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
    if unit.kind is Kind.EPISODE and unit.status is Status.HYPOTHESIS:
        return "it is an episode: only a person can vouch for it"
    if unit.status is Status.HYPOTHESIS and rejected:
        other, rejection = rejected[-1]
        return f"{rejection.actor} rejected unit {other.id}, which says the same ({RULE})"
    if unit.status is Status.HYPOTHESIS:
        return f"{held[-1]['reason']} ({held[-1]['rule']})" if held else "no test or human citation counts yet (S10)"
    proof = unit.proof
    if proof is None:
        return "a test or human citation counted when it was verified (S10.2)"
    if proof.person is not None:
        return f"{proof.person} vouches for it (S10.2)"
    seen = "seen passing" if proof.witnessed else "reported as passing"
    reach = "" if proof.carries else "; not enough for the project (R20)"
    return f"{', '.join(proof.tests)} {seen} on {proof.at:%Y-%m-%d}{', flaky' if proof.flaky else ''}{reach} (S10.2)"


def _validity(unit: Unit) -> str:
    since = f"since {unit.occurred_at:%Y-%m-%d %H:%M}"
    if unit.valid_from_commit:
        since += f" (commit {unit.valid_from_commit[:12]})"
    if unit.valid_to is None:
        return since
    commit = f" (commit {unit.valid_to_commit[:12]})" if unit.valid_to_commit else ""
    return f"{since} until {unit.valid_to:%Y-%m-%d %H:%M}{commit}"


def _users(history: Sequence[Event]) -> list[str]:
    """The names of the tasks that were credited with reusing the unit."""
    return [
        str(event.scope.task)
        for event in history
        if event.type is EventType.UNIT_USED and (event.payload or {}).get("use", {}).get("credited")
    ]

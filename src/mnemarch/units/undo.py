"""Undoing an actor (R4): which units rest on its word alone, how they leave recall, and how they come back."""

from __future__ import annotations

from datetime import datetime

from mnemarch.model.caller import Actor, ActorKind, Level
from mnemarch.model.citation import CitationKind
from mnemarch.model.event import EventType
from mnemarch.model.removal import Fate
from mnemarch.model.stamps import micros
from mnemarch.model.unit import KEPT_AS, LESSON, Kind, Status
from mnemarch.model.value import value
from mnemarch.policy.labels import label_of
from mnemarch.policy.permissions import Deed
from mnemarch.units.same_text import twin_of
from mnemarch.units.status import change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from mnemarch.log.act import Act
    from mnemarch.model.event import Event
    from mnemarch.model.unit import Provenance, Unit

_ALL = 1 << 62
_DECIDED = frozenset({Kind.DECISION, Kind.POLICY, Kind.EVIDENCE, Kind.ANCHOR})
# What somebody does who lends a unit evidence, or their own word.
_BACKING = {
    EventType.UNIT_APPROVED: "approved it",
    EventType.UNIT_PROMOTED: "let it through to the project",
    EventType.UNIT_VERIFIED: "verified it",
    EventType.UNIT_USED: "reused it with success",
}


@value
class Undoing:
    """Whose writes are undone: all of an actor's, or those of one session, or since a moment."""

    actor: Actor
    session: str | None = None
    since: datetime | None = None

    def covers(self, wrote: Event | Provenance) -> bool:
        at = getattr(wrote, "recorded_at", None) or wrote.at  # type: ignore[union-attr]
        is_session = self.session is None or wrote.session == self.session
        return wrote.actor == self.actor and is_session and (self.since is None or at >= self.since)

    def events(self, act: Act, *types: EventType) -> list[Event]:
        """What it recorded of these types in the caller's project, oldest first."""
        since = 0 if self.since is None else micros(self.since)
        project = act.caller.scope.at(Level.PROJECT)
        found = act.transaction.events_back(project, actor=str(self.actor), types=types, since=since, limit=_ALL)
        return [event for event in reversed(found) if self.covers(event)]

    def is_one_of_several(self, unit: Unit) -> bool:
        """Whether the actor said it, and others too."""
        covered = list(map(self.covers, unit.provenance))
        return any(covered) and not all(covered)

    def units(self, act: Act) -> Iterator[tuple[Unit, str | None]]:
        """The live units that it wrote, joined, or that tell of its entries, each with why it stays, if it does."""
        ids = {event.subject: None for event in self.events(act, EventType.UNIT_REMEMBERED, EventType.UNIT_MERGED)}
        scopes = {event.scope.key: None for event in self.events(act, EventType.LOGGED)}
        for key in scopes:
            born = act.transaction.events_of_scope(key, [EventType.UNIT_REMEMBERED])
            kinds = {event.subject: ((event.payload or {}).get("unit") or {}).get("kind") for event in born}
            ids |= {id: None for id, kind in kinds.items() if kind in (Kind.EPISODE, Kind.SKILL)}
        units = [unit for unit in act.transaction.units([id for id in ids if id]).values() if unit.live]
        stays: dict[str, str | None] = {}
        # Skills after the episodes that they were made of.
        for unit in sorted(units, key=lambda unit: (unit.kind is Kind.SKILL, unit.id)):
            why = stays[unit.id] = self._why_it_stays(act, unit, stays)
            if why is None or any(map(self.covers, unit.provenance)):
                yield unit, why
        going = [unit.provenance[0].event_id for unit in units if stays[unit.id] is None and unit.kind is Kind.EPISODE]
        # What was learned from episodes goes with them; the next reflection makes it anew of those that are left.
        for lesson in act.transaction.units_citing(act.caller.visible_keys, CitationKind.LOG, going):
            if lesson.live and lesson.attributes.get(KEPT_AS) == LESSON:
                yield lesson, None if lesson.status is Status.HYPOTHESIS else "somebody verified it"

    def _why_it_stays(self, act: Act, unit: Unit, stays: dict[str, str | None]) -> str | None:
        if unit.kind in _DECIDED:
            return f"it is {'an' if unit.kind[0] in 'ae' else 'a'} {unit.kind}"
        if not act.config.policy.allows(act.caller.actor.kind, Deed.UNDO, unit.level):
            return f"{act.caller.actor} may not undo at {unit.level} scope"
        if unit.kind is Kind.EPISODE and (cited := self._entries_of(act, unit)):
            others = [event.actor for event in cited if not self.covers(event)]
            return f"it tells of what {others[0]} logged too" if others else None
        others = [source.actor for source in unit.provenance if not self.covers(source)]
        episode = unit.attributes.get("episode") if unit.kind is Kind.SKILL else None
        if others and not (episode and stays.get(str(episode), "it stays") is None):
            return f"{others[0]} said it too"
        for event in act.transaction.events_of_subject(unit.id):
            if event.type in _BACKING and self._backs(event):
                return f"{event.actor} {_BACKING[event.type]}"
        return None

    def _entries_of(self, act: Act, episode: Unit) -> list[Event]:
        refs = [citation.ref for citation in episode.citations if citation.kind is CitationKind.LOG]
        return [event for ref in refs if (event := act.transaction.event(ref)) is not None]

    def _backs(self, event: Event) -> bool:
        """Whether another than this actor, and than the program's own gate, spoke for a unit by this event."""
        is_credit = event.type is not EventType.UNIT_USED or bool((event.payload or {}).get("use", {}).get("credited"))
        own = {str(self.actor), "orchestrator:gate"}
        return is_credit and str(event.actor) not in own and event.actor.kind is not ActorKind.SYSTEM


def fate_of(unit: Unit, why: str | None) -> Fate:
    return Fate(unit.id, label_of(unit), unit.content, why or "")


def retire(act: Act, unit: Unit, why: str) -> None:
    """Take a unit out of recall."""
    changes = {"status": str(Status.ARCHIVED), "archived_from": str(unit.status), "archive_reason": why}
    change(act, EventType.UNIT_ARCHIVED, unit, {"reason": why, "set": changes})


def restore(act: Act, unit_id: str, why: str, reason: str) -> Fate | None:
    """Bring a unit back that was retired for `why`, with its former status; None if it was erased since."""
    unit = act.known_unit(unit_id)
    if unit.erased_at is not None:
        return None
    if unit.status is not Status.ARCHIVED or unit.archive_reason != why:
        return fate_of(unit, f"it is {unit.status} for another reason by now")
    twin = twin_of(act.transaction, unit, unit.scope.key)
    if twin is not None:
        return fate_of(unit, f"unit {twin.id} says the same by now")
    changes = {"status": str(unit.archived_from or Status.HYPOTHESIS), "archived_from": None, "archive_reason": None}
    return fate_of(change(act, EventType.UNIT_REVIVED, unit, {"reason": reason, "set": changes}), None)


def without_voices(act: Act, unit: Unit, undoing: Undoing) -> list[dict[str, Any]]:
    """Take the actor's voices from a unit that others said too; gives what was taken."""
    left = [source.to_json() for source in unit.provenance if not undoing.covers(source)]
    change(act, EventType.UNIT_RESTATED, unit, {"set": {"provenance": left}})
    return [source.to_json() for source in unit.provenance if undoing.covers(source)]

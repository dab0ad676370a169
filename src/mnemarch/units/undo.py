"""Undoes an actor's writes: units that rest on the actor alone, and its changes to other units (R4)."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from mnemarch.lazy import Any
from mnemarch.log.act import Act
from mnemarch.log.audit import Replay
from mnemarch.log.projection import PROVENANCE_MAX, project
from mnemarch.model.caller import GATE, Actor, ActorKind, Level, Scope
from mnemarch.model.event import Event, EventType
from mnemarch.model.stamps import datetime, micros
from mnemarch.model.unit import LIVE, TRUSTED, CitationKind, Kind, Provenance, Status, Unit
from mnemarch.model.upkeep import Fate
from mnemarch.model.value import Frozen, replace
from mnemarch.policy.permissions import Deed
from mnemarch.policy.trust import label_of
from mnemarch.units.finding import twin_of
from mnemarch.units.life import DECIDED, leaving, returning
from mnemarch.units.status import change, proof_of, raise_by_evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.units.scene import TestSource

_ALL = 1 << 62
_SAYING = frozenset({EventType.UNIT_REMEMBERED, EventType.UNIT_MERGED})
# Acts by which an actor backs a unit, as they are told.
_BACKING = {
    EventType.UNIT_APPROVED: "approved it",
    EventType.UNIT_PROMOTED: "accepted it for the project",
    EventType.UNIT_VERIFIED: "verified it",
    EventType.UNIT_USED: "reused it with success",
}
# Acts that change the units of others.
_JUDGING = (
    *_BACKING,
    EventType.UNIT_SUPERSEDED,
    EventType.UNIT_SUPERSEDING,
    EventType.UNIT_ARCHIVED,
    EventType.UNIT_REJECTED,
    EventType.UNIT_REVIVED,
    EventType.UNIT_VALIDATED,
    EventType.UNIT_CITED,
    EventType.UNIT_MERGED,
)
# Fields that change together. A group is given back if the actor was the last to set its first field.
_TOGETHER = (
    (
        *("status", "archived_from", "archive_reason", "superseded_by", "superseded_from", "contradiction_note"),
        *("valid_to", "valid_to_commit", "fell_from", "proof"),
    ),
    ("trust",),
    ("scope",),
    ("attributes",),
    ("supersedes", "valid_from_commit"),
)
IMPORTER = Actor.system("import")


class Undoing(Frozen):
    """The writes to undo: an actor's, optionally of one session only or since a moment."""

    actor: Actor
    session: str | None = None
    since: datetime | None = None

    def covers(self, wrote: Event | Provenance) -> bool:
        at = getattr(wrote, "recorded_at", None) or wrote.at  # type: ignore[union-attr]
        is_session = self.session is None or wrote.session == self.session
        return wrote.actor == self.actor and is_session and (self.since is None or at >= self.since)

    def events(self, act: Act, *types: EventType) -> list[Event]:
        """The actor's events of these types in the caller's project, oldest first."""
        since = 0 if self.since is None else micros(self.since)
        project = act.caller.scope.at(Level.PROJECT)
        found = act.transaction.events_back(project, actor=str(self.actor), types=types, since=since, limit=_ALL)
        return [event for event in reversed(found) if self.covers(event)]

    def said(self, unit: Unit, source: Provenance) -> bool:
        """Whether this voice is the actor's. Imported units have the program's voice, and belong to no session."""
        if source.actor != IMPORTER:
            return self.covers(source)
        is_own = self.session is None and unit.attributes.get("kept_by") == str(self.actor)
        return is_own and (self.since is None or source.at >= self.since)

    def is_one_of_several(self, act: Act, unit: Unit) -> bool:
        """Whether both the actor and others said the unit."""
        said = [self.said(unit, source) for source in _voices(act, unit)]
        return any(said) and not all(said)

    def units(self, act: Act) -> Iterator[tuple[Unit, str | None]]:
        """The live units that the actor wrote or joined, or that tell of its entries.

        Each comes with the reason why it stays, or None if it goes.
        """
        ids = {event.subject: None for event in self.events(act, EventType.UNIT_REMEMBERED, EventType.UNIT_MERGED)}
        imports = replace(self, actor=IMPORTER, session=None).events(act, EventType.UNIT_REMEMBERED)
        ids |= {event.subject: None for event in imports}
        scopes = {event.scope.key: None for event in self.events(act, EventType.LOGGED)}
        for key in scopes:
            born = act.transaction.events_of_scope(key, [EventType.UNIT_REMEMBERED])
            kinds = {event.subject: ((event.payload or {}).get("unit") or {}).get("kind") for event in born}
            ids |= {id: None for id, kind in kinds.items() if kind in (Kind.EPISODE, Kind.SKILL)}
        units = [unit for unit in act.transaction.units([id for id in ids if id]).values() if unit.live]
        stays: dict[str, str | None] = {}
        # Skills come after the episodes that they were made of.
        for unit in sorted(units, key=lambda unit: (unit.kind is Kind.SKILL, unit.id)):
            why = stays[unit.id] = self._why_it_stays(act, unit, stays)
            if why is None or any(self.said(unit, source) for source in _voices(act, unit)):
                yield unit, why
        going = [unit.provenance[0].event_id for unit in units if stays[unit.id] is None and unit.kind is Kind.EPISODE]
        # Lessons go with their episodes. A reflection or the next success makes them again from the remaining episodes.
        for lesson in act.transaction.units_citing(act.caller.visible_keys, CitationKind.LOG, going):
            if lesson.live and lesson.id not in stays and (lesson.is_derived or lesson.kind is Kind.SKILL):
                yield lesson, None if lesson.status is Status.HYPOTHESIS else "somebody verified it"

    def given_back(self, act: Act, going: Container[str]) -> Iterator[tuple[Unit, dict[str, Any], str | None]]:
        """Units of others that the actor changed last, with their fields as they would be without those changes.

        The last part says why a unit keeps what it has, if it does.
        """
        touched = {event.subject: None for event in self.events(act, *_JUDGING) if event.subject not in going}
        for unit in act.transaction.units([id for id in touched if id]).values():
            is_own = all(self.said(unit, source) for source in _voices(act, unit))
            if unit.erased_at is None and unit.kind not in DECIDED and not is_own:
                fields = self._fields_without(act, unit)
                if fields:
                    yield unit, fields, _why_not(act, unit, fields)

    def _fields_without(self, act: Act, unit: Unit) -> dict[str, Any]:
        """The unit's fields without the actor's acts, for fields that the actor changed last."""
        replay, is_last = Replay(), dict[str, bool]()
        for event in act.transaction.events_of_subject(unit.id):
            is_covered = self.covers(event) and event.type is not EventType.UNIT_REMEMBERED
            # The gate's promotion rests on the actor's verification.
            is_covered |= event.actor == GATE and event.type is EventType.UNIT_PROMOTED and is_last.get("status", False)
            is_last |= dict.fromkeys((event.payload or {}).get("set", ()), is_covered)
            if not is_covered:
                project(replay, event, keyed=False)
        without = replay.unit(unit.id)
        assert without is not None, "its first event is among these"
        if unit.status in TRUSTED and unit.proof is not None and unit.proof.witnessed and not unit.proof.person:
            is_last["status"] = is_last["scope"] = False  # A witnessed test does not depend on the actor.
        names = ["citations", *(name for names in _TOGETHER if is_last.get(names[0]) for name in names)]
        now, then = unit.to_json(), without.to_json()
        return {name: then.get(name) for name in names if then.get(name) != now.get(name)}

    def _why_it_stays(self, act: Act, unit: Unit, stays: dict[str, str | None]) -> str | None:
        if unit.kind in DECIDED:
            return f"it is {'an' if unit.kind[0] in 'ae' else 'a'} {unit.kind}"
        if not act.config.policy.allows(act.caller.actor.kind, Deed.UNDO, unit.level):
            return f"{act.caller.actor} may not undo at {unit.level} scope"
        refs = [citation.ref for citation in unit.citations if citation.kind is CitationKind.LOG]
        cited = [event for ref in refs if (event := act.transaction.event(ref)) is not None]
        if unit.kind is Kind.EPISODE and cited:
            others = [event.actor for event in cited if not self.covers(event)]
            return f"it also describes what {others[0]} logged" if others else None
        others = [source.actor for source in _voices(act, unit) if not self.said(unit, source)]
        episode = unit.attributes.get("episode") if unit.kind is Kind.SKILL else None
        if others and not (episode and stays.get(str(episode), "it stays") is None):
            return f"{others[0]} stated it too"
        for event in act.transaction.events_of_subject(unit.id):
            if event.type in _BACKING and self._backs(event):
                return f"{event.actor} {_BACKING[event.type]}"
        return None

    def _backs(self, event: Event) -> bool:
        """Whether an actor backed a unit by this event, other than this actor and the program itself."""
        is_credit = event.type is not EventType.UNIT_USED or bool((event.payload or {}).get("use", {}).get("credited"))
        return is_credit and event.actor not in (self.actor, GATE) and event.actor.kind is not ActorKind.SYSTEM


def _voices(act: Act, unit: Unit) -> list[Provenance]:
    """All voices of a unit. The unit keeps a limited number, so the others are read from the log."""
    if len(unit.provenance) < PROVENANCE_MAX:
        return list(unit.provenance)
    voices: dict[Any, Provenance] = {}
    for event in act.transaction.events_of_subject(unit.id):
        payload = event.payload or {}
        if "provenance" in payload.get("set", {}):
            voices = {}
        told = [*payload.get("voices", ()), *payload.get("set", {}).get("provenance", ())]
        heard = [Provenance.from_json(each) for each in told]
        if event.type in _SAYING and "voices" not in payload:
            heard.append(Provenance.of(event))
        for source in heard:
            voices.setdefault(source.voice, source)
    return list(voices.values())


def _why_not(act: Act, unit: Unit, fields: Mapping[str, Any]) -> str | None:
    """Why a unit can't get these fields, or None."""
    scope = Scope.of(fields["scope"]) if "scope" in fields else unit.scope
    policy = act.config.policy
    if not all(policy.allows(act.caller.actor.kind, Deed.UNDO, level) for level in (unit.level, scope.level)):
        return f"{act.caller.actor} may not undo at {unit.level} scope"
    twin = twin_of(act.transaction, unit, scope.key) if fields.get("status", unit.status) in LIVE else None
    return None if twin is None else f"unit {twin.id} says the same now"


def put_fields(act: Act, unit: Unit, fields: dict[str, Any], sources: Mapping[str, TestSource]) -> dict[str, Any]:
    """Set fields of a unit, raise it as far as its tests allow, and return its old and new fields for `put_back`."""
    now = change(act, EventType.UNIT_RESTATED, unit, {"set": fields})
    proof = proof_of(act, now, now.scope, sources)
    if now.status is Status.HYPOTHESIS and proof is not None and proof.witnessed:
        now = raise_by_evidence(act, now, None, sources)
    before, after = unit.to_json(), now.to_json()
    names = [name for name in after.keys() | before.keys() if before.get(name) != after.get(name) and name != "version"]
    return {"before": {name: before.get(name) for name in names}, "after": {name: after.get(name) for name in names}}


def put_back(act: Act, unit_id: str, changed: Mapping[str, Any]) -> Fate | None:
    """Take `put_fields` back, unless the unit changed since; None if it was erased since."""
    unit = act.known_unit(unit_id)
    if unit.erased_at is not None:
        return None
    now = unit.to_json()
    if any(now.get(name) != item for name, item in changed["after"].items()):
        return fate_of(unit, "it changed since")
    why = _why_not(act, unit, changed["before"])
    if why is None:
        change(act, EventType.UNIT_RESTATED, unit, {"set": changed["before"]})
    return fate_of(unit, why)


def fate_of(unit: Unit, why: str | None) -> Fate:
    return Fate(unit.id, label_of(unit), unit.content, why or "")


def retire(act: Act, unit: Unit, why: str) -> None:
    """Take a unit out of recall."""
    change(act, EventType.UNIT_ARCHIVED, unit, {"reason": why, "set": leaving(unit, why)})


def restore(act: Act, unit_id: str, why: str, reason: str) -> Fate | None:
    """Bring back a unit that was retired for `why`, with its former status. None if it was erased since."""
    unit = act.known_unit(unit_id)
    if unit.erased_at is not None:
        return None
    if unit.status is not Status.ARCHIVED or unit.archive_reason != why:
        return fate_of(unit, f"it is now {unit.status} for another reason")
    twin = twin_of(act.transaction, unit, unit.scope.key)
    if twin is not None:
        return fate_of(unit, f"unit {twin.id} says the same now")
    return fate_of(change(act, EventType.UNIT_REVIVED, unit, {"reason": reason, "set": returning(unit)}), None)


def without_voices(act: Act, unit: Unit, undoing: Undoing) -> list[dict[str, Any]]:
    """Remove the actor's voices from a unit that others said too. Returns the removed voices."""
    left = [source.to_json() for source in _voices(act, unit) if not undoing.said(unit, source)]
    change(act, EventType.UNIT_RESTATED, unit, {"set": {"provenance": left[:PROVENANCE_MAX]}})
    return [source.to_json() for source in unit.provenance if undoing.said(unit, source)]

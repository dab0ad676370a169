"""One remembered thing (S8): its content never changes, its life does, through events (R5)."""

from __future__ import annotations

from datetime import datetime

from mnemarch.errors import InvalidInput
from mnemarch.model.actor import Actor
from mnemarch.model.citation import OF_CODE, Citation
from mnemarch.model.closed import Names
from mnemarch.model.instant import instant, micros
from mnemarch.model.json_text import canonical_json
from mnemarch.model.scope import Level, Scope
from mnemarch.model.trust import DecayPolicy, Signal, Trust
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from mnemarch.model.event import Event


class Kind(Names):
    PROFILE = "profile"
    PREFERENCE = "preference"
    EPISODE = "episode"
    SEMANTIC = "semantic"
    FACT = "fact"
    SKILL = "skill"
    DECISION = "decision"
    EVIDENCE = "evidence"
    ANCHOR = "anchor"
    POLICY = "policy"

    @classmethod
    def parse(cls, name: str) -> Kind:
        try:
            return cls(name)
        except ValueError:
            raise InvalidInput(f"{name!r} is no kind of unit.", hint=f"Use one of: {', '.join(cls)}.") from None


class Status(Names):
    HYPOTHESIS = "hypothesis"
    VERIFIED = "verified"
    PUBLISHED = "published"
    DEPRECATED = "deprecated"
    ARCHIVED = "archived"

    @classmethod
    def parse(cls, name: str) -> Status:
        try:
            return cls(name)
        except ValueError:
            raise InvalidInput(f"{name!r} is no status.", hint=f"Use one of: {', '.join(cls)}.") from None


LIVE = frozenset({Status.HYPOTHESIS, Status.VERIFIED, Status.PUBLISHED})
TRUSTED = frozenset({Status.VERIFIED, Status.PUBLISHED})


@value
class Provenance:
    """Who said it, where and when, and the event that proves it."""

    actor: Actor
    scope: Scope
    event_id: str
    at: datetime
    session: str | None = None

    @property
    def voice(self) -> tuple[Actor, Scope, str | None]:
        """What makes it another source than the others: who, where, and in which conversation."""
        return self.actor, self.scope, self.session

    @classmethod
    def of(cls, event: Event) -> Provenance:
        return cls(actor=event.actor, scope=event.scope, event_id=event.id, at=event.recorded_at, session=event.session)

    def to_json(self) -> dict[str, Any]:
        return {
            "actor": str(self.actor),
            "scope": self.scope.segments,
            "event": self.event_id,
            "at": micros(self.at),
            "session": self.session,
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Provenance:
        return cls(
            actor=Actor.parse(record["actor"]),
            scope=Scope.of(record["scope"]),
            event_id=record["event"],
            at=instant(record["at"]),
            session=record["session"],
        )


@value
class Unit:
    """One remembered thing, as it stands at `version`."""

    id: str
    kind: Kind
    content: str
    scope: Scope
    domain: str
    status: Status
    trust: Trust
    importance: float
    citations: tuple[Citation, ...]
    provenance: tuple[Provenance, ...]
    occurred_at: datetime
    recorded_at: datetime
    version: int = 1
    mentions: int = 1
    uses: int = 0
    valid_to: datetime | None = None
    valid_from_commit: str | None = None
    valid_to_commit: str | None = None
    supersedes: str | None = None
    superseded_by: str | None = None
    contradiction_note: str | None = None
    archived_from: Status | None = None
    archive_reason: str | None = None
    erased_at: datetime | None = None
    superseded_from: Status | None = None
    attributes: Mapping[str, Any] = {}

    @property
    def level(self) -> Level:
        return self.scope.level

    @property
    def confidence(self) -> float:
        return self.trust.confidence

    @property
    def author(self) -> Actor | None:
        return self.provenance[0].actor if self.provenance else None

    @property
    def session(self) -> str | None:
        return self.provenance[0].session if self.provenance else None

    @property
    def session_key(self) -> str | None:
        """One name for the session in its project: session ids are unique only there."""
        if self.session is None:
            return None
        scope = self.provenance[0].scope
        return canonical_json([scope.org, scope.project, self.session])

    @property
    def live(self) -> bool:
        return self.status in LIVE

    @property
    def is_bound_to_code(self) -> bool:
        """Whether it says anything that code can contradict: a commit it holds from or to, a file, a symbol."""
        if self.valid_from_commit or self.valid_to_commit:
            return True
        return any(citation.kind in OF_CODE for citation in self.citations)

    def valid_at(self, moment: datetime) -> bool:
        """Whether it held at `moment`, by time alone (R8)."""
        return self.occurred_at <= moment and (self.valid_to is None or moment < self.valid_to)


# How search tells units apart: what may be handed out first, what comes after it, what was trusted until a commit
# replaced it and so still holds where that commit is not, and what is only withheld.
TRUSTED_STATE, DRAFT_STATE, REPLACED_STATE, PAST_STATE = "trusted", "draft", "replaced", "past"
LIVE_STATES = (TRUSTED_STATE, DRAFT_STATE)


def search_state(status: Status, superseded_from: Status | None, valid_to_commit: str | None) -> str:
    if status in TRUSTED:
        return TRUSTED_STATE
    if status in LIVE:
        return DRAFT_STATE
    still_somewhere = status is Status.DEPRECATED and superseded_from in TRUSTED and valid_to_commit is not None
    return REPLACED_STATE if still_somewhere else PAST_STATE


def search_kind(kind: str, domain: str, attributes: Mapping[str, Any]) -> str:
    """The kind by which search knows a unit: of a decision also how firm it is, and whether it holds everywhere."""
    if kind != "decision" or "root" not in attributes:
        return kind
    return f"{kind}.{attributes['strength']}{'.global' if domain == 'global' else ''}"


def search_kinds(kind: str) -> list[str]:
    """Every such kind that a kind of unit has."""
    if kind != "decision":
        return [kind]
    firm = [f"{kind}.{strength}{where}" for strength in ("axis", "lock", "normal") for where in ("", ".global")]
    return [kind, *firm]


@value
class Searchable:
    """What search needs of a unit, without the rest; `content` is empty once it was erased.

    `turn` counts from 1 in the unit's session, and is 0 without one.
    """

    id: str
    scope_key: str
    state: str
    kind: str
    domain: str
    session: str | None
    turn: int
    content: str
    occurred_at: int
    importance: float
    changed_at: int


def trust_to_json(trust: Trust) -> dict[str, Any]:
    return {
        "confidence": trust.confidence,
        "since": micros(trust.since),
        "decay": str(trust.decay_policy),
        "source": trust.validation_source and str(trust.validation_source),
        "validated_at": trust.last_validated_at and micros(trust.last_validated_at),
        "count": trust.validation_count,
    }


def trust_from_json(record: Mapping[str, Any]) -> Trust:
    return Trust(
        confidence=record["confidence"],
        since=instant(record["since"]),
        decay_policy=DecayPolicy(record["decay"]),
        validation_source=record["source"] and Signal(record["source"]),
        last_validated_at=record["validated_at"] and instant(record["validated_at"]),
        validation_count=record["count"],
    )


def unit_to_json(unit: Unit) -> dict[str, Any]:
    """The stored form: JSON types only, no derived fields."""
    record = {
        "id": unit.id,
        "kind": str(unit.kind),
        "content": unit.content,
        "scope": unit.scope.segments,
        "domain": unit.domain,
        "status": str(unit.status),
        "trust": trust_to_json(unit.trust),
        "importance": unit.importance,
        "citations": [citation.to_json() for citation in unit.citations],
        "provenance": [source.to_json() for source in unit.provenance],
        "occurred_at": micros(unit.occurred_at),
        "recorded_at": micros(unit.recorded_at),
        "version": unit.version,
        "mentions": unit.mentions,
        "uses": unit.uses,
        "valid_to": unit.valid_to and micros(unit.valid_to),
        "valid_from_commit": unit.valid_from_commit,
        "valid_to_commit": unit.valid_to_commit,
        "supersedes": unit.supersedes,
        "superseded_by": unit.superseded_by,
        "contradiction_note": unit.contradiction_note,
        "archived_from": unit.archived_from and str(unit.archived_from),
        "archive_reason": unit.archive_reason,
        "erased_at": unit.erased_at and micros(unit.erased_at),
        "attributes": dict(unit.attributes),
    }
    if unit.superseded_from is not None:
        record["superseded_from"] = str(unit.superseded_from)
    return record


_READERS: dict[str, Callable[[Any], Any]] = {
    "kind": Kind,
    "scope": Scope.of,
    "status": Status,
    "trust": trust_from_json,
    "citations": lambda items: tuple(Citation.from_json(item) for item in items),
    "provenance": lambda items: tuple(Provenance.from_json(item) for item in items),
    "occurred_at": instant,
    "recorded_at": instant,
    "valid_to": instant,
    "archived_from": Status,
    "superseded_from": Status,
    "erased_at": instant,
}


def fields_from_json(record: Mapping[str, Any]) -> dict[str, Any]:
    """Some fields of a unit, read back from their stored form."""
    return {
        name: item if item is None or name not in _READERS else _READERS[name](item) for name, item in record.items()
    }


def unit_from_json(record: Mapping[str, Any]) -> Unit:
    return Unit(**fields_from_json(record))

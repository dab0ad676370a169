"""One remembered thing (S8), what was claimed before it, and how two of them are linked.

A unit's content never changes; its status, trust and evidence do, through events (R5).
"""

from __future__ import annotations

from mnemarch.model.caller import Actor, Level, Scope
from mnemarch.model.citation import IN_TREES, Citation
from mnemarch.model.json_text import canonical_json
from mnemarch.model.stamps import datetime
from mnemarch.model.value import Frozen, Names, Record, member_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
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
    CORE = "core"
    ITEM = "item"

    @classmethod
    def parse(cls, name: str) -> Kind:
        return member_of(cls, name, "kind of unit")


class Status(Names):
    HYPOTHESIS = "hypothesis"
    VERIFIED = "verified"
    PUBLISHED = "published"
    DEPRECATED = "deprecated"
    ARCHIVED = "archived"

    @classmethod
    def parse(cls, name: str) -> Status:
        return member_of(cls, name, "status")


LIVE = frozenset({Status.HYPOTHESIS, Status.VERIFIED, Status.PUBLISHED})
TRUSTED = frozenset({Status.VERIFIED, Status.PUBLISHED})


class Signal(Names):
    """What raises or lowers confidence (G15, R7)."""

    TESTS_PASSED = "tests_passed"
    PR_MERGED = "pr_merged"
    HUMAN_APPROVED = "human_approved"
    REPEATED_SUCCESS = "repeated_success"
    TESTS_FAILED = "tests_failed"
    PR_REVERTED = "pr_reverted"
    HUMAN_REJECTED = "human_rejected"
    CONTRADICTED = "contradicted"


class DecayPolicy(Names):
    RECENCY_BIAS = "recency_bias"
    STABLE = "stable"
    MANUAL_ONLY = "manual_only"


class Trust(Record):
    """How sure a unit is (G14): confidence as of `last_validated_at`, or as of its birth. A rule ages it (R7)."""

    json_names = (
        ("decay_policy", "decay"),
        ("validation_source", "source"),
        ("last_validated_at", "validated_at"),
        ("validation_count", "count"),
    )

    confidence: float
    since: datetime
    decay_policy: DecayPolicy = DecayPolicy.STABLE
    validation_source: Signal | None = None
    last_validated_at: datetime | None = None
    validation_count: int = 0


class Proof(Record):
    """What verified a unit (R2, R21): tests and persons as citations, whether this program saw it, where and when.

    `about`: a test seen passing is about the claim, so it holds for the project (R20). `flaky`: a test of it passes
    and fails on the same code. `until`: the test is gone since then. `expects`: digests of what the tests' lines
    compare with, so that a test which expects something else by now is told from one that still shows it.
    """

    json_optional = frozenset({"expects"})

    by: tuple[str, ...]
    witnessed: bool
    at: datetime
    about: bool = False
    worktree: str | None = None
    flaky: bool = False
    until: datetime | None = None
    expects: str | None = None

    @property
    def tests(self) -> tuple[str, ...]:
        return tuple(name.removeprefix("test:") for name in self.by if name.startswith("test:"))

    @property
    def carries(self) -> bool:
        """Whether it is good enough for the whole project: a person's word, or a test seen passing about the claim."""
        return self.person is not None or (self.witnessed and self.about)

    @property
    def person(self) -> str | None:
        """Whoever vouched for it, if a person did."""
        return next((name.removeprefix("human:") for name in self.by if name.startswith("human:")), None)


class Provenance(Record):
    """Who said it, where and when, and the event that proves it."""

    json_names = (("event_id", "event"),)

    actor: Actor
    scope: Scope
    event_id: str
    at: datetime
    session: str | None = None

    @property
    def voice(self) -> tuple[Actor, Scope, str | None]:
        """Two sources are one voice if the same actor speaks in the same scope and conversation."""
        return self.actor, self.scope, self.session

    @classmethod
    def of(cls, event: Event) -> Provenance:
        return cls(actor=event.actor, scope=event.scope, event_id=event.id, at=event.recorded_at, session=event.session)


class Unit(Record):
    """One remembered thing, as of `version`."""

    json_optional = frozenset({"superseded_from", "proof", "fell_from"})

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
    # What verified it; and its status before every test of that failed.
    proof: Proof | None = None
    fell_from: Status | None = None
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
        """A name of the session that is unique across projects: session ids are unique only within one."""
        if self.session is None:
            return None
        scope = self.provenance[0].scope
        return canonical_json([scope.org, scope.project, self.session])

    @property
    def live(self) -> bool:
        return self.status in LIVE

    @property
    def is_derived(self) -> bool:
        """Whether the program made it of what tasks did: a lesson, a habit, a bug pattern."""
        return self.attributes.get(KEPT_AS) == LESSON

    @property
    def keys(self) -> set[tuple[str, str]]:
        """By what the store finds it, as pairs of kind and reference: what it cites, and the faults it met."""
        faults: Any = self.attributes.get("faults")
        met = [fault.get("key") for fault in faults if isinstance(fault, dict)] if isinstance(faults, list) else []
        cited = {(str(citation.kind), citation.ref) for citation in self.citations}
        return cited | {(FAULT, key) for key in met if isinstance(key, str)}

    @property
    def is_bound_to_code(self) -> bool:
        """Whether it may hold in one tree and not in another: it rests on a file, a symbol, a commit or a test."""
        if self.valid_from_commit or self.valid_to_commit:
            return True
        return any(citation.kind in IN_TREES for citation in self.citations)

    def valid_at(self, moment: datetime) -> bool:
        """Whether it was valid at `moment`, by time alone (R8)."""
        return self.occurred_at <= moment and (self.valid_to is None or moment < self.valid_to)


# How search tells units apart: trusted ones are handed out first, drafts after them. A replaced one was trusted until
# a commit replaced it, so it still holds where that commit is not. A past one is never handed out, only explained.
TRUSTED_STATE, DRAFT_STATE, REPLACED_STATE, PAST_STATE = "trusted", "draft", "replaced", "past"
LIVE_STATES = (TRUSTED_STATE, DRAFT_STATE)


def search_state(status: Status, superseded_from: Status | None, valid_to_commit: str | None) -> str:
    if status in TRUSTED:
        return TRUSTED_STATE
    if status in LIVE:
        return DRAFT_STATE
    still_somewhere = status is Status.DEPRECATED and superseded_from in TRUSTED and valid_to_commit is not None
    return REPLACED_STATE if still_somewhere else PAST_STATE


def search_kind(kind: str, attributes: Mapping[str, Any]) -> str:
    """The kind as the search index stores it. A decision's also tells its strength.

    What the program itself keeps though nobody verified it is told apart from what somebody only claims (R2).
    """
    if kind == "decision" and "root" in attributes:
        return f"{kind}.{attributes['strength']}"
    return f"{kind}.kept" if "kept_as" in attributes else kind


def search_kinds(kind: str) -> list[str]:
    """Every kind that the search index may store for a kind of unit."""
    return [kind, *(f"{kind}.{more}" for more in (("axis", "lock", "normal") if kind == "decision" else ("kept",)))]


class Searchable(Frozen):
    """What search needs to know of a unit. `content` is empty once it was erased.

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


class Claim(Record):
    """One statement for `remember`, before the gate has judged it.

    What is unset is taken from the seat or the configuration.
    """

    json_names = (("key", None),)

    content: str
    kind: Kind | str = Kind.FACT
    level: Level | str | None = None
    domain: str = "global"
    citations: tuple[Citation, ...] | list[Citation] = ()
    importance: float = 0.5
    occurred_at: datetime | None = None
    session: str | None = None
    key: str | None = None
    decay_policy: DecayPolicy | str | None = None
    attributes: Mapping[str, Any] = {}
    # What the text mentions of the working tree; the seat fills it in.
    seen: tuple[Citation, ...] = ()


def waiting_key(refusal_id: str) -> str:
    """The idempotency key for claiming once more what was refused only for lack of validation."""
    return f"waiting:{refusal_id}"


class LinkType(Names):
    SIMILAR_TO = "similar_to"
    DUPLICATES = "duplicates"
    CONTRADICTS = "contradicts"


# What the note of a conflict begins with if its source came second as the replacement of a unit.
REPLACEMENT = "replacement"


class Link(Record):
    """`source type target`. While it is `open`, somebody has to decide; `winner` is the decision, with its reason.

    A conflict may have more units than these two. Decided without a winner, all of them are valid.
    """

    id: str
    type: LinkType
    source: str
    target: str
    weight: float
    note: str
    at: datetime
    open: bool = False
    winner: str | None = None
    decision: str | None = None

    def is_late_replacement(self, unit_id: str) -> bool:
        """Whether the unit was to replace what the target had replaced already (R5)."""
        return self.source == unit_id and self.note.startswith(REPLACEMENT)


class Use(Frozen):
    """What one task did with one unit: received it, marked it used, was credited or blamed for it (R2)."""

    unit_id: str
    task_key: str
    handed: bool = False
    used: bool = False
    credited: bool = False
    blamed: bool = False


# What the program itself keeps for the whole project although nobody verified it (R2, R20), and under which word.
KEPT_AS = "kept_as"
OBSERVED, ACCEPTED, IMPORTED, LESSON, REPEATED = "observed", "accepted", "imported", "lesson", "repeated"
DISTRUSTED = "distrusted"
# Beside the kinds of citations: the fingerprint of an error that an episode met.
FAULT = "fault"

unit_to_json = Unit.to_json
unit_from_json = Unit.from_json
fields_from_json = Unit.fields_from_json
trust_to_json = Trust.to_json

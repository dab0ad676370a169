"""Decisions and what belongs to them (D1-D19): strength, reason, relations, anchors, proposals."""

from __future__ import annotations

from mnemarch.errors import InvalidInput
from mnemarch.model.caller import Actor, Level, Scope
from mnemarch.model.stamps import datetime
from mnemarch.model.unit import Kind, Unit
from mnemarch.model.value import Frozen, Names, Record, member_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mnemarch.model.outcome import Verdict

SUMMARY_CHARS_MAX = 1_000


class Strength(Names):
    """How firm a decision is (D8). Members are texts, and compare by firmness."""

    NORMAL = "normal"
    LOCK = "lock"
    AXIS = "axis"

    @classmethod
    def parse(cls, name: str) -> Strength:
        return member_of(cls, str(name).lower(), "strength")

    @property
    def rank(self) -> int:
        """The number that stores keep and order by: the firmer, the higher."""
        return _RANKS[self]

    def __lt__(self, other: str) -> bool:
        return self.rank < _rank(other)

    def __le__(self, other: str) -> bool:
        return self.rank <= _rank(other)

    def __gt__(self, other: str) -> bool:
        return self.rank > _rank(other)

    def __ge__(self, other: str) -> bool:
        return self.rank >= _rank(other)


# Databases hold these numbers.
_RANKS: dict[str, int] = {Strength.NORMAL: 1, Strength.LOCK: 2, Strength.AXIS: 3}


def _rank(other: str) -> int:
    # Not NotImplemented: then texts would be compared, since members are texts.
    if other not in _RANKS:
        raise TypeError(f"{other!r} is no strength to compare with.")
    return _RANKS[other]


class ReasonType(Names):
    CONSISTENCY = "consistency"
    RISK = "risk"
    SECURITY = "security"
    PERFORMANCE = "performance"
    UX = "ux"
    MAINTAINABILITY = "maintainability"
    OTHER = "other"


class RelationType(Names):
    """`A DEPENDS_ON B`, and so on (D10). Which way a change travels is in `policy.guardian`."""

    DEPENDS_ON = "DEPENDS_ON"
    CONSTRAINS = "CONSTRAINS"
    VALIDATES = "VALIDATES"
    SUPERSEDES = "SUPERSEDES"
    REFINES = "REFINES"

    @classmethod
    def parse(cls, name: str) -> RelationType:
        return member_of(cls, str(name).upper().replace("-", "_"), "relation")


class AnchorKind(Names):
    RUNBOOK = "runbook"
    ENTRYPOINT = "entrypoint"
    WIRING = "wiring"
    CONFIG = "config"
    INVARIANT = "invariant"
    GOTCHA = "gotcha"


class Reason(Record):
    """Why something was decided (R12)."""

    type: ReasonType | str
    summary: str
    tradeoff: str | None = None

    def __check__(self) -> None:
        object.__setattr__(self, "type", member_of(ReasonType, self.type, "type of reason"))
        summary: Any = self.summary
        if not isinstance(summary, str) or not summary.strip() or len(summary) > SUMMARY_CHARS_MAX:
            raise InvalidInput(
                f"A reason's summary has 1 to {SUMMARY_CHARS_MAX} characters.", hint="Say in a sentence or two why."
            )


class Decision(Frozen):
    """One version of a decision. `root_id` is the id of its first version, and names all of them.

    `version` is its place among the decision's versions. That of its `unit` counts what happened to this one (uses,
    citations), and is what a lifecycle verb's `expected_version` means.
    """

    unit: Unit

    @property
    def id(self) -> str:
        return self.unit.id

    @property
    def text(self) -> str:
        return self.unit.content

    @property
    def root_id(self) -> str:
        return str(self.unit.attributes["root"])

    @property
    def version(self) -> int:
        return int(self.unit.attributes["version"])

    @property
    def strength(self) -> Strength:
        return Strength.parse(self.unit.attributes["strength"])

    @property
    def domain(self) -> str:
        return self.unit.domain

    @property
    def is_active(self) -> bool:
        return self.unit.live

    @property
    def reason(self) -> Reason:
        stored = self.unit.attributes["reason"]
        return Reason(stored["type"], stored["summary"], stored["tradeoff"])

    @property
    def override(self) -> str | None:
        """Why a person committed it although the guardian blocked it."""
        override = self.unit.attributes["reason"].get("override")
        return None if override is None else str(override)

    @property
    def evidence(self) -> tuple[str, ...]:
        return tuple(self.unit.attributes["evidence"])


class VersionKey(Frozen):
    """One version of a decision: the root that all its versions share, its number, its strength."""

    root: str
    number: int
    strength: int


def version_key_of(unit: Unit) -> VersionKey | None:
    """Which version of which decision a unit is; None if it is no committed decision."""
    stored = unit.attributes
    if unit.kind is not Kind.DECISION or "root" not in stored:
        return None  # Another kind, only claimed to be a decision, or erased.
    return VersionKey(root=stored["root"], number=stored["version"], strength=Strength.parse(stored["strength"]).rank)


def target_of(anchor: Unit) -> str:
    """The id of what an anchor leads to."""
    return str(anchor.attributes.get("target"))


def is_original(unit: Unit) -> bool:
    """Whether an anchor may lead to it: evidence, or a committed decision (D2, D19)."""
    return unit.kind is Kind.EVIDENCE or version_key_of(unit) is not None


class Relation(Frozen):
    """`source type target`, by the roots of two decisions; `id` is the event that made it."""

    source: str
    type: RelationType
    target: str
    id: str


class ImpactNode(Frozen):
    """A decision that a change reaches, by its root: along which path from what was changed, and by which relation.

    The relation is the last step of the path, and reads `source relation target`.
    """

    id: str
    path: tuple[str, ...]
    relation: RelationType
    source: str
    target: str


class Impact(Frozen):
    """The blast radius of a change. `cut` says which limit ended the search, if one did."""

    nodes: tuple[ImpactNode, ...]
    cut: str | None = None


class GuardianVerdict(Frozen):
    """What the guardian says of a proposal (D11): deterministic, and it changes nothing."""

    type: Verdict
    reasons: tuple[str, ...]
    evidence: tuple[str, ...]


class Loaded(Frozen):
    """One unit in the loading order (D15), and its tier."""

    tier: int
    unit: Unit


class DecisionProposal(Frozen):
    """A decision that somebody might commit (D2). It lives in memory only, bound to the version it was made against.

    `conflicts` are the axis and lock decisions it revises, is constrained by, or says the opposite of; `guardian` is
    what the first two make of it.
    It rests on `evidence`, by id, and on `snapshots`, which become evidence when it is committed. `scope` is where it
    would hold. The decision that it becomes has its `id`.
    """

    id: str
    text: str
    strength: Strength
    domain: str
    level: Level
    scope: Scope
    reason: Reason
    evidence: tuple[str, ...]
    snapshots: tuple[str, ...]
    revises: str | None
    base: Decision | None
    blast_radius: Impact
    conflicts: tuple[Decision, ...]
    guardian: GuardianVerdict


class DecisionRequest(Record):
    """What somebody who may not decide asked to have decided (R12); it waits for a person or an orchestrator.

    `revises` is the version that the asker saw. `opposes` names the axes and locks that the proposal stood against.
    """

    id: str
    actor: Actor
    scope: Scope
    at: datetime
    text: str
    strength: Strength
    domain: str
    level: Level
    reason: Reason
    evidence: tuple[str, ...]
    snapshots: tuple[str, ...]
    revises: str | None
    opposes: tuple[str, ...]

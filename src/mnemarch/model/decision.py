"""Decisions (D1-D19), with their strengths, reasons, relations, anchors and proposals."""

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
    """How firm a decision is (D8). Members are strings that compare by firmness, not by letters."""

    NORMAL = "normal"
    LOCK = "lock"
    AXIS = "axis"

    @classmethod
    def parse(cls, name: str) -> Strength:
        return member_of(cls, str(name).lower(), "strength")

    @property
    def rank(self) -> int:
        """The number that stores keep and sort by. A firmer strength has a higher rank."""
        return _RANKS[self]

    def __lt__(self, other: str) -> bool:
        return self.rank < _rank(other)

    def __le__(self, other: str) -> bool:
        return self.rank <= _rank(other)

    def __gt__(self, other: str) -> bool:
        return self.rank > _rank(other)

    def __ge__(self, other: str) -> bool:
        return self.rank >= _rank(other)


# Stored in databases: never change these numbers.
_RANKS: dict[str, int] = {Strength.NORMAL: 1, Strength.LOCK: 2, Strength.AXIS: 3}


def _rank(other: str) -> int:
    # NotImplemented would fall back to comparing the strings.
    if other not in _RANKS:
        raise TypeError(f"{other!r} is not a strength.")
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
    """The type of a relation, as in `A DEPENDS_ON B` (D10). `policy.guardian` defines which way a change travels."""

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
    """The reason of a decision (R12)."""

    type: ReasonType | str
    summary: str
    tradeoff: str | None = None

    def __check__(self) -> None:
        object.__setattr__(self, "type", member_of(ReasonType, self.type, "type of reason"))
        summary: Any = self.summary
        if not isinstance(summary, str) or not summary.strip() or len(summary) > SUMMARY_CHARS_MAX:
            raise InvalidInput(
                f"A reason's summary has 1 to {SUMMARY_CHARS_MAX} characters.", hint="Say why in a sentence or two."
            )


class Decision(Frozen):
    """One version of a decision. `root_id` is the id of the first version, and identifies the decision.

    `version` numbers the versions of the decision. `unit.version` counts the changes of this unit, such as uses and
    citations; `expected_version` of the lifecycle verbs refers to it.
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
        """A person's reason for committing it although the guardian blocked it."""
        override = self.unit.attributes["reason"].get("override")
        return None if override is None else str(override)

    @property
    def evidence(self) -> tuple[str, ...]:
        return tuple(self.unit.attributes["evidence"])


class VersionKey(Frozen):
    """Identifies one version of a decision: the root that all versions share, its number, its strength."""

    root: str
    number: int
    strength: int


def version_key_of(unit: Unit) -> VersionKey | None:
    """The decision and version that a unit holds, or None if it is no committed decision."""
    stored = unit.attributes
    if unit.kind is not Kind.DECISION or "root" not in stored:
        return None  # Another kind, a claim that was never committed, or erased.
    return VersionKey(root=stored["root"], number=stored["version"], strength=Strength.parse(stored["strength"]).rank)


def target_of(anchor: Unit) -> str:
    """The id of an anchor's target."""
    return str(anchor.attributes.get("target"))


def is_original(unit: Unit) -> bool:
    """Whether a unit can be an anchor's target: evidence, or a committed decision (D2, D19)."""
    return unit.kind is Kind.EVIDENCE or version_key_of(unit) is not None


class Relation(Frozen):
    """The relation `source type target` of two decisions, given by their roots. `id` is the event that added it."""

    source: str
    type: RelationType
    target: str
    id: str


class ImpactNode(Frozen):
    """A decision that a change reaches, given by its root, and the path to it from the changed decision.

    `source relation target` is the last step of the path.
    """

    id: str
    path: tuple[str, ...]
    relation: RelationType
    source: str
    target: str


class Impact(Frozen):
    """What a change of a decision reaches. `cut` names the limit that ended the search, if one did."""

    nodes: tuple[ImpactNode, ...]
    cut: str | None = None


class GuardianVerdict(Frozen):
    """The guardian's verdict on a proposal (D11). It is deterministic, and changes nothing."""

    type: Verdict
    reasons: tuple[str, ...]
    evidence: tuple[str, ...]


class Loaded(Frozen):
    """One unit and its tier in the loading order (D15)."""

    tier: int
    unit: Unit


class DecisionProposal(Frozen):
    """A decision that is ready to be committed (D2). It is kept in memory only, and bound to the version of its `base`.

    `conflicts` are the axes and locks that it revises, that constrain it, or that it contradicts. `guardian` is the
    verdict on the first two of these. `evidence` are ids; `snapshots` are texts that become evidence at the commit.
    `scope` is where it would hold. The committed decision has the same `id`.
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
    """A request for a decision by an actor who may not decide (R12). It waits for a person or an orchestrator.

    `revises` is the version that the actor saw. `opposes` names the axes and locks that the proposal conflicts with.
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

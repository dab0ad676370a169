"""What the verbs answer: expected outcomes are values, matched to the end, not exceptions."""

from __future__ import annotations

from datetime import datetime

from mnemarch.model.closed import Names
from mnemarch.model.event import Event, Receipt
from mnemarch.model.unit import LinkType, Provenance, Unit
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Verdict(Names):
    ALLOW = "ALLOW"
    WARN = "WARN"
    BLOCK = "BLOCK"


@value
class LoopVerdict:
    """Whether a task may go on after a failure. `instruction` is ready to be put before the agent (S6)."""

    type: Verdict
    reason: str
    details: Mapping[str, Any]
    instruction: str
    receipt: Receipt


@value
class FailedApproach:
    """Something that was tried and did not help (G20), in the words of the last try."""

    approach: str
    attempt_count: int
    last_attempt_at: datetime
    failure_reasons: tuple[str, ...]


@value
class ApproachValidation:
    """Whether an approach is worth trying (G21); if not, what failed before and what to do instead."""

    valid: bool
    reason: str
    suggestion: str
    failed_history: tuple[FailedApproach, ...]


@value
class Dispute:
    """Two units that can't both stand as they are: a contradiction, or a near-duplicate offered for merging (R6)."""

    id: str
    kind: LinkType
    units: tuple[str, str]
    reason: str
    similarity: float
    opened_at: datetime
    open: bool = True
    winner: str | None = None


@value
class Stored:
    """Remembered. `merged`: the fact was known and gained a provenance; `conflicts` and `similar` await a decision."""

    unit: Unit
    receipt: Receipt
    merged: bool = False
    conflicts: tuple[Dispute, ...] = ()
    similar: tuple[Dispute, ...] = ()


@value
class Refused:
    """Not accepted, by this rule; what was refused stays in the log (R4)."""

    rule: str
    reason: str
    receipt: Receipt | None = None
    unit_id: str | None = None


@value
class Promotion:
    """What a verification let through: its episode, a skill if there is one, the units raised, and the refusals."""

    episode_id: str
    skill_id: str | None
    units: tuple[Unit, ...]
    refused: tuple[Refused, ...]
    receipt: Receipt
    loop: LoopVerdict | None = None


@value
class Analysis:
    """What was learnt from a task (G8): by rules, by a model, or handed in by the calling agent itself (R14)."""

    success: bool
    critique: str
    score: float
    key_decisions: tuple[str, ...] = ()
    result: Any = None
    is_repeatable: bool = False
    suggested_skill_name: str | None = None
    extracted_code: str | None = None


@value
class Explanation:
    """Everything a unit can say for itself: where from, who, when true, how sure, replaced by what, used by whom.

    `here` is what the code that is checked out where the seat is has to say about it.
    """

    unit: Unit
    confidence_now: float
    confidence_stored: float
    why_confidence: tuple[str, ...]
    provenance: tuple[Provenance, ...]
    citations: tuple[tuple[str, bool], ...]
    status_reason: str
    valid: str
    supersedes: str | None
    superseded_by: str | None
    disputes: tuple[Dispute, ...]
    used_by: tuple[str, ...]
    history: tuple[Event, ...]
    here: tuple[str, ...] = ()


@value
class Erased:
    """What an erasure took out: units, event payloads, and how many files were searched for the content afterwards."""

    units: tuple[str, ...]
    events: int
    files_searched: int


@value
class LogCheck:
    """The result of walking every hash chain. `first_broken` is the id of the first entry that does not hold."""

    ok: bool
    events: int
    first_broken: str | None = None
    problem: str | None = None


@value
class Rebuild:
    """Digests of the projections before and after recreating them from the log alone."""

    digest_before: str
    digest_after: str
    events: int

    @property
    def same(self) -> bool:
        return self.digest_before == self.digest_after


@value
class Stats:
    """Counts an operator looks at first."""

    events: int
    units: int
    by_status: Mapping[str, int]
    by_kind: Mapping[str, int]
    by_level: Mapping[str, int]
    projects: int
    open_conflicts: int
    indexed: int
    unindexed: int
    bytes_on_disk: int
    format_version: int


@value
class Pruned:
    """What retention archived (or would, in a dry run), and how many candidates it kept."""

    units: tuple[str, ...]
    kept: int
    dry_run: bool


@value
class Swept:
    """What a sweep did. `moved` cite a file by its new name now; `skipped` can't be judged from where the seat is."""

    checked: int
    archived: int
    revived: int
    moved: int = 0
    skipped: int = 0


@value
class Adopted:
    """What a project took over from a worktree whose branch was merged, and what the gate refused."""

    worktree: str
    units: tuple[Unit, ...]
    refused: tuple[Refused, ...]


@value
class Finding:
    """One thing the doctor looked at."""

    ok: bool
    what: str
    hint: str = ""


@value
class Imported:
    """What an import brought in."""

    events: int
    skipped: int
    streams: int

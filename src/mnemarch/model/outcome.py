"""The answers of verbs and guards (R9, R12): expected outcomes are values, not exceptions."""

from __future__ import annotations

from collections.abc import Mapping

from mnemarch.lazy import Any
from mnemarch.model.caller import Actor, Scope
from mnemarch.model.event import Event, Receipt
from mnemarch.model.stamps import datetime
from mnemarch.model.testrun import TestRun
from mnemarch.model.unit import LinkType, Provenance, Status, Unit
from mnemarch.model.value import Frozen, Names


class Verdict(Names):
    ALLOW = "ALLOW"
    WARN = "WARN"
    BLOCK = "BLOCK"


class LoopVerdict(Frozen):
    """Whether a task may go on after a failure. `instruction` is ready to be shown to the agent (S6).

    `seen_before` says what came of the same error in other tasks; empty if none met it.
    """

    type: Verdict
    reason: str
    details: Mapping[str, Any]
    instruction: str
    receipt: Receipt
    seen_before: str = ""


class FailedApproach(Frozen):
    """Something that was tried and did not help (G20), in the words of the last try."""

    approach: str
    attempt_count: int
    last_attempt_at: datetime
    failure_reasons: tuple[str, ...]


class ApproachValidation(Frozen):
    """Whether an approach is worth trying (G21); if not, what failed before and what to do instead."""

    valid: bool
    reason: str
    suggestion: str
    failed_history: tuple[FailedApproach, ...]


class Dispute(Frozen):
    """Units that contradict each other, or near-duplicates proposed for merging (R6).

    A conflict holds every unit that says something else of one `subject`; `values` are what each of them says.
    `proposal` is the unit that announces a change: resolved for it, it supersedes the others. `decision` is the reason
    of whoever closed it.
    """

    id: str
    kind: LinkType
    units: tuple[str, ...]
    reason: str
    similarity: float
    opened_at: datetime
    open: bool = True
    winner: str | None = None
    decision: str | None = None
    subject: str = ""
    values: tuple[str, ...] = ()
    proposal: str | None = None


class Stored(Frozen):
    """Remembered. `merged`: the fact was known and gained a provenance. `conflicts` and `similar` need a decision."""

    unit: Unit
    receipt: Receipt
    merged: bool = False
    conflicts: tuple[Dispute, ...] = ()
    similar: tuple[Dispute, ...] = ()


class Refused(Frozen):
    """Not accepted, by this rule. The claim stays in the log (R4)."""

    rule: str
    reason: str
    receipt: Receipt | None = None
    unit_id: str | None = None


class Ingested(Frozen):
    """What the write pipeline made of an entry (M2): its bucket, and the unit that it became or joined, if it did.

    `reason` says why it is in that bucket, and why it became no unit. `receipt` is that of the entry in the log.
    """

    receipt: Receipt
    unit: Unit | None
    bucket: str
    importance: float
    reason: str


class TrustChange(Frozen):
    """How sure a unit was before and is now, and what moved it."""

    unit_id: str
    signal: str
    before: float
    after: float
    status: Status


class Promotion(Frozen):
    """What a verification let through: its episode, a skill if there is one, the units raised, and the refusals.

    `run` is what was run or read; `witnessed` says whether it counts as seen (R21). `passed`: nothing failed that had
    not failed before the task. `proposed` are requests in the inbox for what the task decided; `analyst` says whether
    the configured model analysed it. `set_aside` are the tests that failed before the task began and still do.
    """

    episode_id: str
    skill_id: str | None
    units: tuple[Unit, ...]
    refused: tuple[Refused, ...]
    receipt: Receipt
    loop: LoopVerdict | None = None
    witnessed: bool = False
    passed: bool = True
    trust_changes: tuple[TrustChange, ...] = ()
    run: TestRun | None = None
    proposed: tuple[str, ...] = ()
    analyst: str = ""
    set_aside: tuple[str, ...] = ()


class InboxItem(Frozen):
    """One thing that waits for a person or a lead since `at` (R20); `wanted` is how often others asked for it."""

    id: str
    what: str
    subject: str
    evidence: str
    why: str
    author: str
    at: datetime
    wanted: int = 0


class Settled(Frozen):
    """What became of an item of the inbox. `unit` is what came of it, if a unit did."""

    id: str
    what: str
    answer: str
    unit: Unit | None = None


RULES, CALLER = "rules", "the caller"


class Analysis(Frozen):
    """What was learnt from a task (G8): by rules, by a model, or by the calling agent itself (R14).

    `analyst` is which of them it was, a model by its name; nobody can hand it in.
    """

    success: bool
    critique: str
    score: float
    key_decisions: tuple[str, ...] = ()
    result: Any = None
    is_repeatable: bool = False
    suggested_skill_name: str | None = None
    extracted_code: str | None = None
    analyst: str = RULES


# How one unit is related to another, as a sentence about the first.
_RELATIONS = {
    "supersedes": "It replaced",
    "superseded_by": "It was replaced by",
    "contradicts": "It contradicts",
    "duplicates": "It may be the same as",
    "fixed": "It succeeded at what failed in",
    "fixed_by": "It failed at what succeeded in",
    "similar_to": "It resembles",
    "led_to": "Its task led to",
    "came_from": "It came from",
    "cites_same": "It shares evidence with",
}
RELATION_ORDER = tuple(_RELATIONS)


class Related(Frozen):
    """Another unit, how it is related, how closely (0 to 1), and by what: a reason, an event or a citation."""

    unit: Unit
    how: str
    weight: float = 1.0
    via: str = ""

    @property
    def sentence(self) -> str:
        """What the relation says of the unit that was asked about, without the other one's text."""
        share = f" ({self.weight:.2f} alike)" if self.weight < 1 else ""
        via = f", by {self.via}" if self.how == "cites_same" else f": {self.via}" if self.via else ""
        return f"{_RELATIONS[self.how]} {self.unit.kind} {self.unit.id}{share}{via}"


class Explanation(Frozen):
    """Everything about a unit: its sources, its validity, its confidence, what replaced it, who used it.

    `here` is what the code at the seat's root says about it.
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
    related: tuple[str, ...] = ()
    here: tuple[str, ...] = ()


class LogCheck(Frozen):
    """The result of an audit. `first_broken` names the first wrong entry, row or stream, `hint` what to do."""

    ok: bool
    events: int
    first_broken: str | None = None
    problem: str | None = None
    hint: str = ""


class ReceiptCheck(Frozen):
    """Whether the entry that a receipt was given for is still in the log, as it was."""

    ok: bool
    event_id: str
    says: str


class Rebuild(Frozen):
    """Digests of the projections before and after recreating them from the log alone."""

    digest_before: str
    digest_after: str
    events: int

    @property
    def same(self) -> bool:
        return self.digest_before == self.digest_after


class Stats(Frozen):
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
    # How many units can be found by meaning, how many wait for their vector; "on", "off", or why it takes no part.
    vectors: int = 0
    without_vector: int = 0
    meaning: str = "off"


class WorktreeInUse(Frozen):
    """A worktree, the branch it is on, and how many agents and unfinished tasks are in it."""

    name: str
    branch: str
    agents: int
    tasks: int


class AgentAtWork(Frozen):
    """An agent that did something within the last hour, and where it did so last."""

    actor: Actor
    scope: Scope
    last_at: datetime


class TaskUnderWay(Frozen):
    """A task of the last day (open, verified, blocked), or one that is stuck since whenever, and why."""

    scope: Scope
    state: str
    last_at: datetime
    reason: str | None = None


class Overview(Frozen):
    """A project at a glance. `is_complete` is false where an agent sees its own task alone, or more waits than that."""

    project: str | None
    at: datetime
    worktrees: tuple[WorktreeInUse, ...]
    agents: tuple[AgentAtWork, ...]
    tasks: tuple[TaskUnderWay, ...]
    learned: tuple[Unit, ...]
    open_conflicts: int
    waiting: int
    indexed: int
    unindexed: int
    writable: bool
    analyst: str = ""
    is_complete: bool = True
    vectors: int = 0
    without_vector: int = 0
    meaning: str = "off"


class Swept(Frozen):
    """What a sweep did. `moved`: now cite a file by its new name. `skipped`: can't be judged from this seat."""

    checked: int
    archived: int
    revived: int
    moved: int = 0
    skipped: int = 0


class Finding(Frozen):
    """One thing the doctor looked at."""

    ok: bool
    what: str
    hint: str = ""


class Imported(Frozen):
    """What a restored export brought back."""

    events: int
    skipped: int
    streams: int

"""The answers of verbs and guards (R9, R12). Expected outcomes are values, not exceptions."""

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
    """Whether a task may go on after a failure. `instruction` can be shown to the agent as it is (S6).

    `seen_before` tells how the same error ended in other tasks. It is empty if no task met the error.
    """

    type: Verdict
    reason: str
    details: Mapping[str, Any]
    instruction: str
    receipt: Receipt
    seen_before: str = ""


class FailedApproach(Frozen):
    """An approach that failed (G20), in the words of its last attempt."""

    approach: str
    attempt_count: int
    last_attempt_at: datetime
    failure_reasons: tuple[str, ...]


class ApproachValidation(Frozen):
    """Whether an approach is worth trying (G21). If not: the earlier failures, and a suggestion."""

    valid: bool
    reason: str
    suggestion: str
    failed_history: tuple[FailedApproach, ...]


class Dispute(Frozen):
    """A conflict of units that contradict each other, or a proposal to merge near-duplicates (R6).

    A conflict holds all units that make different statements about one `subject`; `values` are their statements.
    `proposal` is a unit that announces a change. If the conflict is resolved in its favour, it supersedes the others.
    `decision` is the reason of the actor who closed the dispute.
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
    """A stored claim. `merged`: a known unit gained a provenance. `conflicts` and `similar` need a decision.

    `notes` say which cited tests expect something else than the claim says.
    """

    unit: Unit
    receipt: Receipt
    merged: bool = False
    conflicts: tuple[Dispute, ...] = ()
    similar: tuple[Dispute, ...] = ()
    notes: tuple[str, ...] = ()


class Refused(Frozen):
    """A claim that `rule` refused. It stays in the log (R4)."""

    rule: str
    reason: str
    receipt: Receipt | None = None
    unit_id: str | None = None


class Ingested(Frozen):
    """The result of the write pipeline for an entry (M2): its bucket, and the unit that it became or joined, if any.

    `reason` explains the bucket, or why there is no unit. `receipt` is the receipt of the log entry.
    """

    receipt: Receipt
    unit: Unit | None
    bucket: str
    importance: float
    reason: str


class TrustChange(Frozen):
    """A unit's confidence before and after a signal."""

    unit_id: str
    signal: str
    before: float
    after: float
    status: Status


class Promotion(Frozen):
    """The result of a verification: its episode, a skill if one was made, the promoted units, and the refusals.

    `run` is the test run that was made or read. `witnessed` says whether it counts as seen (R21). `passed`: no test
    failed that had passed before the task. `proposed` are requests in the inbox for decisions that the task made.
    `analyst` says whether the configured model analysed the task. `set_aside` are the tests that failed before the
    task began and still fail.
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
    """An item that waits for a person or an orchestrator (R20). `wanted` is how often others asked for it."""

    id: str
    what: str
    subject: str
    evidence: str
    why: str
    author: str
    at: datetime
    wanted: int = 0


class Settled(Frozen):
    """The answer to an inbox item. `unit` is the unit that it became, if any."""

    id: str
    what: str
    answer: str
    unit: Unit | None = None


RULES, CALLER = "rules", "the caller"


class Analysis(Frozen):
    """What was learned from a task (G8), by rules, by a model, or by the calling agent itself (R14).

    `analyst` names the one that made it: RULES, CALLER, or the model's name. Callers can't set it.
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


# The beginning of a sentence about the unit that was asked about, for each relation to another unit.
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
    """A related unit: how it is related, how closely (0 to 1), and via which reason, event or citation."""

    unit: Unit
    how: str
    weight: float = 1.0
    via: str = ""

    @property
    def sentence(self) -> str:
        """The relation in words, about the unit that was asked about. It leaves out the other unit's text."""
        share = f" ({self.weight:.2f} alike)" if self.weight < 1 else ""
        via = f", by {self.via}" if self.how == "cites_same" else f": {self.via}" if self.via else ""
        return f"{_RELATIONS[self.how]} {self.unit.kind} {self.unit.id}{share}{via}"


class Explanation(Frozen):
    """Everything about a unit: its sources, its validity, its confidence, its replacement, the tasks that used it.

    `here` holds findings about it in the code at the seat's root.
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
    """The result of an audit. `first_broken` names the first wrong entry, row or stream. `hint` says what to do."""

    ok: bool
    events: int
    first_broken: str | None = None
    problem: str | None = None
    hint: str = ""


class ReceiptCheck(Frozen):
    """Whether the entry of a receipt is still in the log, unchanged."""

    ok: bool
    event_id: str
    says: str


class Rebuild(Frozen):
    """Digests of the projections before and after they were rebuilt from the log alone."""

    digest_before: str
    digest_after: str
    events: int

    @property
    def same(self) -> bool:
        return self.digest_before == self.digest_after


class Stats(Frozen):
    """The counts that an operator looks at first."""

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
    # Units with a vector, and units that wait for one. `meaning`: "on", "off", or why search by meaning is disabled.
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
    """An agent that acted within the last hour, and the scope of its last act."""

    actor: Actor
    scope: Scope
    last_at: datetime


class TaskUnderWay(Frozen):
    """A task of the last day (open, verified, blocked), or a stuck task of any age with the reason."""

    scope: Scope
    state: str
    last_at: datetime
    reason: str | None = None


class Overview(Frozen):
    """A project at a glance. `is_complete` is false if an agent sees only its own task, or if more is waiting."""

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
    """The counts of a sweep. `moved` units now cite a file's new name. `skipped` ones can't be judged from here."""

    checked: int
    archived: int
    revived: int
    moved: int = 0
    skipped: int = 0


class Finding(Frozen):
    """The result of one check of the doctor."""

    ok: bool
    what: str
    hint: str = ""


class Imported(Frozen):
    """The counts of a restored export."""

    events: int
    skipped: int
    streams: int

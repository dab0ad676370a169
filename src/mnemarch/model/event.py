"""Events, the entries of the append-only log (G2, R1)."""

from __future__ import annotations

from mnemarch.errors import InvalidInput
from mnemarch.lazy import Any
from mnemarch.model.caller import Actor, Scope, Stream
from mnemarch.model.json_text import from_json
from mnemarch.model.stamps import datetime
from mnemarch.model.value import Frozen, Names


class EventType(Names):
    """The closed vocabulary of the log. `log.projection` defines how each type changes the projections."""

    LOGGED = "logged"
    CLAIM_REFUSED = "claim.refused"
    ACT_REFUSED = "act.refused"
    UNIT_REMEMBERED = "unit.remembered"
    UNIT_MERGED = "unit.merged"
    UNIT_MENTIONED = "unit.mentioned"
    UNIT_CITED = "unit.cited"
    UNIT_MOVED = "unit.moved"
    UNIT_VERIFIED = "unit.verified"
    UNIT_UNVERIFIED = "unit.unverified"
    UNIT_PUBLISHED = "unit.published"
    UNIT_HELD = "unit.held"
    UNIT_VALIDATED = "unit.validated"
    UNIT_USED = "unit.used"
    UNIT_PROMOTED = "unit.promoted"
    UNIT_APPROVED = "unit.approved"
    UNIT_REJECTED = "unit.rejected"
    UNIT_SUPERSEDED = "unit.superseded"
    UNIT_SUPERSEDING = "unit.superseding"
    UNIT_ARCHIVED = "unit.archived"
    UNIT_REVIVED = "unit.revived"
    UNIT_ERASED = "unit.erased"
    UNIT_RESTATED = "unit.restated"
    LINK_ADDED = "link.added"
    LINK_JOINED = "link.joined"
    LINK_RESOLVED = "link.resolved"
    RELATION_ADDED = "relation.added"
    RELATION_DROPPED = "relation.dropped"
    DECISION_REQUESTED = "decision.requested"
    REQUEST_ANSWERED = "request.answered"
    RECALLED = "recalled"
    TASK_VERIFIED = "task.verified"
    TESTS_RESTATED = "tests.restated"
    ATTEMPT_FAILED = "attempt.failed"
    ATTEMPTS_CLEARED = "attempts.cleared"
    TASK_STUCK = "task.stuck"
    INBOX_SETTLED = "inbox.settled"
    ACTOR_UNDONE = "actor.undone"
    UNDO_REVERTED = "undo.reverted"
    RULE_LEARNED = "rule.learned"
    RULE_JUDGED = "rule.judged"
    RULE_DROPPED = "rule.dropped"
    GRAPH_CHANGED = "graph.changed"
    GRAPH_RESTATED = "graph.restated"


# Entries that change no projection.
WITHOUT_EFFECT = frozenset(
    {
        EventType.LOGGED,
        EventType.CLAIM_REFUSED,
        EventType.ACT_REFUSED,
        EventType.UNIT_HELD,
        EventType.DECISION_REQUESTED,
        EventType.REQUEST_ANSWERED,
        EventType.ATTEMPT_FAILED,
        EventType.ATTEMPTS_CLEARED,
        EventType.TASK_STUCK,
        EventType.INBOX_SETTLED,
        EventType.ACTOR_UNDONE,
        EventType.UNDO_REVERTED,
        EventType.GRAPH_CHANGED,
        EventType.GRAPH_RESTATED,
    }
)


class Event(Frozen):
    """Something that an actor did, thought, saw or decided. It is never edited.

    Its payload can be erased (R16); its hash stays.
    """

    id: str
    stream: Stream
    seq: int
    type: EventType
    actor: Actor
    scope: Scope
    session: str | None
    subject: str | None
    key: str | None
    occurred_at: datetime
    recorded_at: datetime
    body: str | None
    salt: bytes | None
    payload_hash: bytes
    hash: bytes
    position: int = 0
    # In stores where each clone writes: the Lamport time, and the times of other writers seen so far (`log.merging`).
    clock: str = ""

    @property
    def payload(self) -> dict[str, Any] | None:
        """The recorded content, or None if it was erased."""
        return None if self.body is None else from_json(self.body)

    def placed(self, position: int, hash: bytes, seq: int | None = None) -> Event:
        """Set the event's place in the log and return it. It is changed in place, since it was made for one append."""
        object.__setattr__(self, "position", position)
        if seq is not None:
            object.__setattr__(self, "seq", seq)
        object.__setattr__(self, "hash", hash)
        return self

    @property
    def erased(self) -> bool:
        return self.body is None


class Receipt(Frozen):
    """Proof that an event is durable. `duplicate`: it was stored before. `redacted`: the kinds of secrets removed."""

    event_id: str
    seq: int
    hash: str
    duplicate: bool = False
    redacted: tuple[str, ...] = ()

    @classmethod
    def of(cls, receipt: Any) -> Receipt:
        """A receipt from its JSON form, or from the JSON of an answer that contains one."""
        fields = receipt.get("receipt", receipt) if isinstance(receipt, dict) else receipt
        if isinstance(fields, cls):
            return fields
        types = {"event_id": str, "seq": int, "hash": str}
        if not isinstance(fields, dict) or any(type(fields.get(name)) is not kind for name, kind in types.items()):
            raise InvalidInput(
                "This is not a receipt: it lacks event_id, seq and hash.",
                hint="Give what mnemarch log --json printed, as text or as a file.",
            )
        return cls(**{name: fields[name] for name in types})

"""Requests: the proposal of an actor who may not decide waits in the log for a person or an orchestrator (R12)."""

from __future__ import annotations

from mnemarch.errors import NotFound
from mnemarch.model.caller import Caller, Level, Scope, Stream
from mnemarch.model.decision import Decision, DecisionProposal, DecisionRequest, Reason, Strength
from mnemarch.model.event import Event, EventType
from mnemarch.model.json_text import to_json
from mnemarch.model.stamps import blake2b
from mnemarch.text.canonical import canonical

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.log.act import Act
    from mnemarch.stores.sql.reader import Reader

_PREFIX = "requests:"


def subject_of(stream: Stream) -> str:
    """The subject that all requests of a project share in the log."""
    return _PREFIX + blake2b(to_json([stream.org, stream.project]).encode(), digest_size=16).hexdigest()


def ask(act: Act, proposal: DecisionProposal) -> DecisionRequest:
    """Keep the whole proposal. What the same actor asked for already, and nobody has answered, is kept once."""
    asked = {
        "text": proposal.text,
        "strength": str(proposal.strength),
        "domain": proposal.domain,
        "level": str(proposal.level),
        "reason": proposal.reason.to_json(),
        "evidence": list(proposal.evidence),
        "snapshots": list(proposal.snapshots),
        "revises": None if proposal.base is None else proposal.base.id,
        "opposes": [one.id for one in proposal.conflicts],
    }
    for earlier in _waiting(act.transaction, act.caller.stream):
        if earlier.actor == act.caller.actor and (earlier.payload or {})["proposal"] == asked:
            return _request(earlier)
    subject = subject_of(act.caller.stream)
    event, _ = act.record(EventType.DECISION_REQUESTED, {"proposal": asked}, subject=subject)
    return _request(event)


def texts_asked_for(reader: Reader, stream: Stream) -> list[tuple[Scope, str]]:
    """What was ever asked for in a project, answered or not, and where."""
    asked = [event for event in reader.events_of_subject(subject_of(stream)) if "proposal" in (event.payload or {})]
    return [(event.scope, (event.payload or {})["proposal"]["text"]) for event in asked]


def open_requests(reader: Reader, caller: Caller) -> list[DecisionRequest]:
    """What nobody has answered yet in the caller's project, the oldest first."""
    return [_request(event) for event in _waiting(reader, caller.stream)]


def _waiting(reader: Reader, stream: Stream) -> list[Event]:
    asked: list[Event] = []
    answered: dict[str, bool] = {}
    for event in reader.events_of_subject(subject_of(stream)):
        payload = event.payload or {}
        if event.type is EventType.REQUEST_ANSWERED:
            answered[payload.get("request", "")] = "reopens" not in payload
        elif "proposal" in payload:
            asked.append(event)
    return [event for event in asked if not answered.get(event.id)]


def waiting_request(reader: Reader, caller: Caller, request_id: str) -> DecisionRequest:
    request = next((one for one in open_requests(reader, caller) if one.id == request_id), None)
    if request is None:
        raise NotFound(f"No request {request_id!r} waits here.", hint="It was answered, or is of another project.")
    return request


def answer(act: Act, request_id: str, reason: str, decision_id: str | None, **more: bool) -> None:
    """Say what came of a request: the decision that it became, or why it became none."""
    payload = {"request": request_id, "reason": reason, "decision": decision_id} | more
    act.record(EventType.REQUEST_ANSWERED, payload, subject=subject_of(act.caller.stream))


def settled(act: Act, decision: Decision, accepted: DecisionRequest | None) -> Decision:
    """The decision, once the accepted request has its answer, and all that ask for the same have theirs."""
    for request in open_requests(act.transaction, act.caller):
        is_same_place = request.scope.at(request.level) == decision.unit.scope and request.domain == decision.domain
        if accepted is not None and request.id == accepted.id:
            answer(act, request.id, "accepted", decision.id)
        elif is_same_place and canonical(request.text) == canonical(decision.unit.content):
            answer(act, request.id, "decided already", decision.id)
    return decision


def reopen(act: Act, request_id: str, reason: str) -> None:
    """Let a request wait again."""
    answer(act, request_id, reason, None, reopens=True)


def seat_of(request: DecisionRequest, caller: Caller) -> Caller:
    """Whoever answers, where the request was made: there its evidence can be seen and its level is the asker's."""
    return Caller(caller.actor, request.scope, caller.session, caller.root)


def _request(event: Event) -> DecisionRequest:
    asked = (event.payload or {})["proposal"]
    return DecisionRequest(
        id=event.id,
        actor=event.actor,
        scope=event.scope,
        at=event.recorded_at,
        text=asked["text"],
        strength=Strength.parse(asked["strength"]),
        domain=asked["domain"],
        level=Level.parse(asked["level"]),
        reason=Reason.from_json(asked["reason"]),
        evidence=tuple(asked["evidence"]),
        snapshots=tuple(asked["snapshots"]),
        revises=asked["revises"],
        opposes=tuple(asked["opposes"]),
    )

"""A decision's versions and relations, read and stated (D4-D7, D10, D14), and requests: what an actor proposed who
may not decide waits in the log for a person or an orchestrator (R12).
"""

from __future__ import annotations

from mnemarch.decisions.guard import RULE, binds, in_force_among, require_may_relate
from mnemarch.errors import Conflict, Hint, InvalidInput, NotAllowed, NotFound
from mnemarch.model.caller import ActorKind, Caller, Scope, Stream
from mnemarch.model.decision import Decision, DecisionRequest, RelationType, Strength, version_key_of
from mnemarch.model.event import Event, EventType
from mnemarch.model.json_text import to_json
from mnemarch.model.stamps import blake2b
from mnemarch.policy.guardian import impact
from mnemarch.policy.permissions import Deed
from mnemarch.text.canonical import canonical

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mnemarch.log.act import Act
    from mnemarch.model.decision import DecisionProposal, Impact, Relation
    from mnemarch.model.unit import Unit
    from mnemarch.stores.sql.reader import Reader


_CHANGE_THEIR_TARGET = frozenset({RelationType.CONSTRAINS, RelationType.SUPERSEDES})


def visible_decision(reader: Reader, caller: Caller, decision_id: str) -> Decision:
    """The decision of that id, whichever version it names, if this seat may see it."""
    unit = reader.unit(decision_id)
    if unit is None or version_key_of(unit) is None or not is_visible(unit, caller):
        raise NotFound(f"No decision {decision_id!r} here.", hint=Hint("find the decision"))
    return Decision(unit)


def in_force(reader: Reader, caller: Caller, decision_id: str) -> Decision:
    """The version that holds of the decision that this id names."""
    _, holds = _named(reader, caller, decision_id)
    if holds is None:
        raise NotFound(
            f"Decision {decision_id!r} has no version in force.", hint="It was taken back; propose a new one."
        )
    return holds


def revised(reader: Reader, caller: Caller, decision_id: str) -> Decision:
    """The version that a proposal is made against: the very one that it names, which must still be in force (R5)."""
    holds = in_force(reader, caller, decision_id)
    if decision_id != holds.id:
        raise stale(visible_decision(reader, caller, decision_id), holds)
    return holds


def stale(base: Decision, now: Decision | None) -> Conflict:
    """The refusal to replace what the proposal did not see, with both versions."""
    if now is None:
        stands = "is no longer in force"
    elif now.id != base.id:
        stands = f"is at version {now.version}"
    else:
        stands = f"holds at {now.unit.level} scope by now"
    return Conflict(
        f"Decision {base.root_id} {stands}; the proposal was made against version {base.version}.",
        hint="Propose a new one." if now is None else Hint("read and revise", id=now.id),
        expected_version=base.version,
        actual_version=None if now is None else now.version,
        current=None if now is None else now.unit,
        proposed=base.unit,
    )


def root_of(reader: Reader, caller: Caller, decision_id: str) -> str:
    """The root of the decision that this id names."""
    root, _ = _named(reader, caller, decision_id)
    return root


def _named(reader: Reader, caller: Caller, decision_id: str) -> tuple[str, Decision | None]:
    """A decision's root and what is in force of it for this seat, by its root or by any version that the seat may see.

    The root first: who asks by it gets what holds without a look at the version that it was the id of (D7), which may
    be erased by now, or of another worktree.
    """
    by_root = in_force_among(reader, caller, [decision_id])
    if by_root:
        return decision_id, by_root[0]
    root = visible_decision(reader, caller, decision_id).root_id
    by_version = in_force_among(reader, caller, [root]) if root != decision_id else []
    return root, by_version[0] if by_version else None


def versions(reader: Reader, caller: Caller, decision_id: str) -> list[Decision]:
    """Every version that this seat may see, the first first."""
    units = reader.decision_versions(root_of(reader, caller, decision_id))
    return [Decision(unit) for unit in units if is_visible(unit, caller)]


def is_visible(unit: Unit, caller: Caller) -> bool:
    return unit.scope.key in caller.visible_keys


def blast_radius(
    reader: Reader, caller: Caller, root: str, *, depth_max: int, nodes_max: int
) -> tuple[Impact, list[Decision]]:
    """What a change of a decision reaches, of what this seat may see, inside its connected subgraph only (D14).

    Also gives the decisions that were read on the way, in the order of the nodes.
    """
    reached: dict[str, Decision] = {}

    def seen(roots: Sequence[str]) -> set[str]:
        there = {one.root_id: one for one in in_force_among(reader, caller, roots)}
        reached.update(there)
        return set(there)

    radius = impact(root, lambda roots: _relations(reader, roots), seen, depth_max=depth_max, nodes_max=nodes_max)
    return radius, [reached[node.id] for node in radius.nodes]


def _relations(reader: Reader, roots: Sequence[str]) -> list[Relation]:
    return [*reader.relations_from(roots), *reader.relations_to(roots)]


def relations(reader: Reader, caller: Caller, decision_id: str) -> list[Relation]:
    """The relations at a decision whose other side this seat may know of, in force or not."""

    def is_known(root: str) -> bool:
        if in_force_among(reader, caller, [root]):
            return True
        first = reader.unit(root)
        return first is not None and is_visible(first, caller)

    root = root_of(reader, caller, decision_id)
    stated = _relations(reader, [root])
    return [one for one in stated if is_known(one.target if one.source == root else one.source)]


def relate(act: Act, source_id: str, type: RelationType, target_id: str) -> None:
    """Say that one decision bears on another."""
    source = in_force(act.transaction, act.caller, source_id)
    if type is RelationType.SUPERSEDES:  # What is superseded may be out of force already.
        target = root_of(act.transaction, act.caller, target_id)
    else:
        target = in_force(act.transaction, act.caller, target_id).root_id
    if source.root_id == target:
        raise InvalidInput("A decision has no relation to itself.", hint="Name two decisions.")
    act.require(Deed.DECIDE, source.unit)
    if type in _CHANGE_THEIR_TARGET:
        require_may_relate(act, type, in_force_among(act.transaction, act.caller, [target]))
    if (type, target) not in _stated(act, source.root_id):
        payload = {"source": source.root_id, "type": str(type), "target": target}
        act.record(EventType.RELATION_ADDED, payload, subject=source.root_id)


def unrelate(act: Act, source_id: str, type: RelationType, target_id: str, override: str | None) -> None:
    """Say that it no longer does, whatever became of the two."""
    (source, unit), (target, _) = (_side(act, each) for each in (source_id, target_id))
    if (type, target) not in _stated(act, source):
        return
    act.require(Deed.DECIDE, unit)
    _refuse_to_unbind(act, source, type, target)
    require_may_relate(act, type, in_force_among(act.transaction, act.caller, [source, target]))
    payload = {"source": source, "type": str(type), "target": target} | ({"override": override} if override else {})
    act.record(EventType.RELATION_DROPPED, payload, subject=source)


def _stated(act: Act, root: str) -> set[tuple[RelationType, str]]:
    return {(one.type, one.target) for one in act.transaction.relations_from([root])}


def _side(act: Act, decision_id: str) -> tuple[str, Unit]:
    """One side of a relation: its root, and what is left of it to ask who may write there, in force or not."""
    holds = in_force_among(act.transaction, act.caller, [decision_id])
    if holds:
        return decision_id, holds[0].unit
    unit = act.transaction.unit(decision_id)
    if unit is not None and unit.erased_at is not None and is_visible(unit, act.caller):
        return unit.id, unit
    version = visible_decision(act.transaction, act.caller, decision_id)
    return version.root_id, version.unit


def _refuse_to_unbind(act: Act, source: str, type: RelationType, target: str) -> None:
    """What binds a decision so that the guardian blocks its change is not let go of in passing (D11)."""
    sides = in_force_among(act.transaction, act.caller, [source, target])
    if type is not RelationType.CONSTRAINS or len(sides) < len({source, target}):
        return
    axis, actor = sides[0], act.caller.actor
    if axis.strength is Strength.AXIS and binds(*sides) and actor.kind is not ActorKind.HUMAN:
        raise NotAllowed(
            f"{actor} may not free decision {target} from the axis {source} that constrains it: the guardian would no"
            f" longer block its change (rule {RULE}).",
            rule=RULE,
            hint="A person can drop the relation.",
        )


# Requests


def subject_of(stream: Stream) -> str:
    """The subject that all requests of a project share in the log."""
    return "requests:" + blake2b(to_json([stream.org, stream.project]).encode(), digest_size=16).hexdigest()


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
    asked = DecisionRequest.fields_from_json((event.payload or {})["proposal"])
    return DecisionRequest(id=event.id, actor=event.actor, scope=event.scope, at=event.recorded_at, **asked)

"""Versions and relations of decisions (D4-D7, D10, D14), and requests (R12).

A request is a proposal of an actor that may not decide. It waits in the log for a person or an orchestrator.
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
    """The version of a decision with this id. Raises NotFound if this seat may not see it."""
    unit = reader.unit(decision_id)
    if unit is None or version_key_of(unit) is None or not is_visible(unit, caller):
        raise NotFound(f"No decision {decision_id!r} here.", hint=Hint("find the decision"))
    return Decision(unit)


def in_force(reader: Reader, caller: Caller, decision_id: str) -> Decision:
    """The version in force of the decision with this id. The id may name any version."""
    _, holds = _named(reader, caller, decision_id)
    if holds is None:
        raise NotFound(
            f"Decision {decision_id!r} has no version in force.", hint="It was taken back; propose a new one."
        )
    return holds


def revised(reader: Reader, caller: Caller, decision_id: str) -> Decision:
    """The version that a proposal revises. Raises Conflict if it is no longer in force (R5)."""
    holds = in_force(reader, caller, decision_id)
    if decision_id != holds.id:
        raise stale(visible_decision(reader, caller, decision_id), holds)
    return holds


def stale(base: Decision, now: Decision | None) -> Conflict:
    """The Conflict of a proposal against an outdated version, with both versions."""
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
    """The root of the decision with this id."""
    root, _ = _named(reader, caller, decision_id)
    return root


def _named(reader: Reader, caller: Caller, decision_id: str) -> tuple[str, Decision | None]:
    """A decision's root and its version in force, by the root or by any version that this seat may see.

    The id is tried as a root first (D7). The first version, which has that id, may be erased or in another worktree.
    """
    by_root = in_force_among(reader, caller, [decision_id])
    if by_root:
        return decision_id, by_root[0]
    root = visible_decision(reader, caller, decision_id).root_id
    by_version = in_force_among(reader, caller, [root]) if root != decision_id else []
    return root, by_version[0] if by_version else None


def versions(reader: Reader, caller: Caller, decision_id: str) -> list[Decision]:
    """Every version that this seat may see, oldest first."""
    units = reader.decision_versions(root_of(reader, caller, decision_id))
    return [Decision(unit) for unit in units if is_visible(unit, caller)]


def is_visible(unit: Unit, caller: Caller) -> bool:
    return unit.scope.key in caller.visible_keys


def blast_radius(
    reader: Reader, caller: Caller, root: str, *, depth_max: int, nodes_max: int
) -> tuple[Impact, list[Decision]]:
    """The impact of a change on the visible decisions in its connected subgraph (D14).

    Also returns the reached decisions, in the order of the nodes.
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
    """The relations of a decision whose other side is visible to this seat, in force or not."""

    def is_known(root: str) -> bool:
        if in_force_among(reader, caller, [root]):
            return True
        first = reader.unit(root)
        return first is not None and is_visible(first, caller)

    root = root_of(reader, caller, decision_id)
    stated = _relations(reader, [root])
    return [one for one in stated if is_known(one.target if one.source == root else one.source)]


def relate(act: Act, source_id: str, type: RelationType, target_id: str) -> None:
    """State a relation between two decisions."""
    source = in_force(act.transaction, act.caller, source_id)
    if type is RelationType.SUPERSEDES:  # A superseded decision may be out of force already.
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
    """Drop a relation. Both decisions may be out of force."""
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
    """One side of a relation: its root, and a unit of it for the check of permissions. It may be out of force."""
    holds = in_force_among(act.transaction, act.caller, [decision_id])
    if holds:
        return decision_id, holds[0].unit
    unit = act.transaction.unit(decision_id)
    if unit is not None and unit.erased_at is not None and is_visible(unit, act.caller):
        return unit.id, unit
    version = visible_decision(act.transaction, act.caller, decision_id)
    return version.root_id, version.unit


def _refuse_to_unbind(act: Act, source: str, type: RelationType, target: str) -> None:
    """Raise unless a person drops the relation by which an axis constrains a decision (D11)."""
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
    """Record a proposal as a request. Returns the open request of the same actor if it asks for the same."""
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
    """The texts of all requests of a project, answered or not, each with its scope."""
    asked = [event for event in reader.events_of_subject(subject_of(stream)) if "proposal" in (event.payload or {})]
    return [(event.scope, (event.payload or {})["proposal"]["text"]) for event in asked]


def open_requests(reader: Reader, caller: Caller) -> list[DecisionRequest]:
    """The unanswered requests in the caller's project, oldest first."""
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
    """Answer a request with the decision that it became, or with the reason why not."""
    payload = {"request": request_id, "reason": reason, "decision": decision_id} | more
    act.record(EventType.REQUEST_ANSWERED, payload, subject=subject_of(act.caller.stream))


def settled(act: Act, decision: Decision, accepted: DecisionRequest | None) -> Decision:
    """Answer the accepted request, and all other requests for the same. Returns the decision."""
    for request in open_requests(act.transaction, act.caller):
        is_same_place = request.scope.at(request.level) == decision.unit.scope and request.domain == decision.domain
        if accepted is not None and request.id == accepted.id:
            answer(act, request.id, "accepted", decision.id)
        elif is_same_place and canonical(request.text) == canonical(decision.unit.content):
            answer(act, request.id, "decided already", decision.id)
    return decision


def reopen(act: Act, request_id: str, reason: str) -> None:
    """Reopen an answered request."""
    answer(act, request_id, reason, None, reopens=True)


def seat_of(request: DecisionRequest, caller: Caller) -> Caller:
    """The caller in the scope of the request, where the evidence is visible and the level means the same."""
    return Caller(caller.actor, request.scope, caller.session, caller.root)


def _request(event: Event) -> DecisionRequest:
    asked = DecisionRequest.fields_from_json((event.payload or {})["proposal"])
    return DecisionRequest(id=event.id, actor=event.actor, scope=event.scope, at=event.recorded_at, **asked)

"""A decision's versions: read, proposed against, and committed (D2-D7, R8, R12)."""

from __future__ import annotations

from itertools import islice

from mnemon.errors import Conflict, InvalidInput, NotAllowed, NotFound
from mnemon.ledger.standing import change
from mnemon.ledger.twins import said_alike, twin_of
from mnemon.model.citation import Citation
from mnemon.model.decision import Decision, RelationType, Strength, standing_of
from mnemon.model.event import EventType
from mnemon.model.ids import new_id
from mnemon.model.instant import micros
from mnemon.model.trust import DecayPolicy, Trust
from mnemon.model.unit import Kind, Status, trust_to_json
from mnemon.model.verdict import Verdict
from mnemon.policy.guardian import judged
from mnemon.policy.impact import impact
from mnemon.policy.permissions import Deed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from mnemon.ledger.act import Act
    from mnemon.model.claim import Claim
    from mnemon.model.decision import DecisionProposal, GuardianVerdict, Impact, Relation
    from mnemon.model.presence import Presence
    from mnemon.model.scope import Level
    from mnemon.model.unit import Unit
    from mnemon.ports import Reader

_GUARDIAN = "D11"


def found(reader: Reader, presence: Presence, decision_id: str) -> Decision:
    """The decision of that id, whichever version it names, if this seat may see it."""
    unit = reader.unit(decision_id)
    if unit is None or standing_of(unit) is None or not _is_visible(unit, presence):
        raise NotFound(f"No decision {decision_id!r} here.", hint="Check the id, and that the seat's scope can see it.")
    return Decision(unit)


def in_force(reader: Reader, presence: Presence, decision_id: str) -> Decision:
    """The version that holds of the decision that this id names."""
    _, held = _named(reader, presence, decision_id)
    if held is None:
        raise NotFound(
            f"Decision {decision_id!r} has no version in force.", hint="It was taken back; propose a new one."
        )
    return held


def root_of(reader: Reader, presence: Presence, decision_id: str) -> str:
    """The root of the decision that this id names."""
    root, _ = _named(reader, presence, decision_id)
    return root


def _named(reader: Reader, presence: Presence, decision_id: str) -> tuple[str, Decision | None]:
    """A decision's root and what is in force of it for this seat, by its root or by any version that the seat may see.

    The root first: who asks by it gets what holds without a look at the version that it was the id of (D7), which may
    be erased by now, or of another worktree.
    """
    held = _held(reader, presence, [decision_id])
    if held:
        return decision_id, held[0]
    root = found(reader, presence, decision_id).root_id
    held = _held(reader, presence, [root]) if root != decision_id else []
    return root, held[0] if held else None


def versions(reader: Reader, presence: Presence, decision_id: str) -> list[Decision]:
    """Every version that this seat may see, the first first."""
    units = reader.decision_versions(root_of(reader, presence, decision_id))
    return [Decision(unit) for unit in units if _is_visible(unit, presence)]


def _is_visible(unit: Unit, presence: Presence) -> bool:
    return unit.scope.key in presence.visible_keys


def _held(reader: Reader, presence: Presence, roots: Iterable[str]) -> list[Decision]:
    """Those of these roots that are in force and visible."""
    units = (reader.decision_in_force(root) for root in roots)
    return [Decision(unit) for unit in units if unit is not None and _is_visible(unit, presence)]


def blast_radius(
    reader: Reader, presence: Presence, root: str, *, depth_max: int, nodes_max: int
) -> tuple[Impact, list[Decision]]:
    """What a change of a decision reaches, of what this seat may see, inside its connected subgraph only (D14).

    Also gives the decisions that were read on the way, in the order of the nodes.
    """
    met: dict[str, Decision] = {}

    def seen(roots: Sequence[str]) -> set[str]:
        held = {one.root_id: one for one in _held(reader, presence, roots)}
        met.update(held)
        return set(held)

    radius = impact(root, lambda roots: _relations(reader, roots), seen, depth_max=depth_max, nodes_max=nodes_max)
    return radius, [met[node.id] for node in radius.nodes]


def _relations(reader: Reader, roots: Sequence[str]) -> list[Relation]:
    return [*reader.relations_from(roots), *reader.relations_to(roots)]


def relations(reader: Reader, presence: Presence, decision_id: str) -> list[Relation]:
    """The relations at a decision whose other side this seat may know of, in force or not."""
    root = root_of(reader, presence, decision_id)
    return [one for one in _relations(reader, [root]) if _is_known(reader, presence, _other_side(one, root))]


def related(reader: Reader, presence: Presence, root: str, limit: int) -> list[Decision]:
    """What is in force and stands in an explicit relation to a decision, whichever way; the firmest first."""
    others = dict.fromkeys(_other_side(one, root) for one in _relations(reader, [root]))
    held = (one for other in others for one in _held(reader, presence, [other]))
    return sorted(islice(held, limit), key=_firmest_first)


def _other_side(relation: Relation, root: str) -> str:
    return relation.target if relation.source == root else relation.source


def _is_known(reader: Reader, presence: Presence, root: str) -> bool:
    if _held(reader, presence, [root]):
        return True
    first = reader.unit(root)
    return first is not None and _is_visible(first, presence)


def _firmest_first(decision: Decision) -> tuple[int, str]:
    return -decision.strength, decision.root_id


def binding(reader: Reader, presence: Presence, base: Decision) -> list[Decision]:
    """The decisions that constrain this one, the firmest first."""
    sources = [one.source for one in reader.relations_to([base.root_id]) if one.type is RelationType.CONSTRAINS]
    # What holds in one worktree only can't bind what holds in the whole project.
    held = [one for one in _held(reader, presence, sources) if one.unit.level >= base.unit.level]
    return sorted(held, key=_firmest_first)


def guarded(
    reader: Reader, presence: Presence, strength: Strength, base: Decision | None, reached: Sequence[Decision]
) -> tuple[GuardianVerdict, tuple[Decision, ...]]:
    """The guardian's verdict, and the axis and lock decisions that stand against the proposal."""
    constraining = [] if base is None else binding(reader, presence, base)
    against = [*([base] if base is not None else []), *constraining]
    conflicts = tuple(one for one in against if one.strength > Strength.NORMAL)
    return judged(strength, base, constraining, reached), conflicts


def commit(act: Act, proposal: DecisionProposal, override: str | None) -> Decision:
    """Make a proposal a decision: the version it replaces goes out of force and this one comes in, in one act (D5)."""
    earlier = _committed(act, proposal)
    if earlier is not None:
        return earlier
    act.require_at(Deed.WRITE, proposal.level, "commit a decision")
    base = None if proposal.base is None else _unchanged(act, proposal)
    if base is not None and base.unit.level > proposal.level:
        # A narrower version takes the decision from everybody else who had it.
        act.require(Deed.WRITE, base.unit)
    _let_guardian_judge(act, proposal, base, override)
    evidence = [_carried(act, each, proposal.level) for each in proposal.evidence]
    unit_id = proposal.id
    if base is not None:
        _out_of_force(act, base, unit_id, proposal.reason.summary)
    reason = proposal.reason.to_json() | ({"override": override} if override else {})
    attributes = {
        "root": unit_id if base is None else base.root_id,
        "version": 1 if base is None else base.version + 1,
        "strength": str(proposal.strength),
        "reason": reason,
        "evidence": list(dict.fromkeys(evidence)),
    }
    unit = _verified(act, Kind.DECISION, proposal.text, proposal.level, proposal.domain, attributes) | {
        "importance": 0.5 + 0.15 * int(proposal.strength),
        "supersedes": None if base is None else base.id,
    }
    act.record(EventType.UNIT_REMEMBERED, {"unit": unit}, subject=unit_id, key=proposal.key)
    return Decision(_stored(act, unit_id))


def _committed(act: Act, proposal: DecisionProposal) -> Decision | None:
    """What this proposal, or what was given the same key, became already: the decision has the proposal's id."""
    unit = act.transaction.unit(proposal.id)
    if unit is None and proposal.key is not None:
        event = act.transaction.event_for_key(act.presence.scope_key, str(act.presence.actor), proposal.key)
        unit = None if event is None else act.transaction.unit(event.subject or "")
    if unit is None:
        return None
    if standing_of(unit) is None or not _is_visible(unit, act.presence):
        raise Conflict(
            f"Proposal {proposal.id} was committed before, and what came of it is gone or not to be seen from here.",
            hint="Propose again.",
        )
    return Decision(unit)


def exhibit(act: Act, claim: Claim, level: Level) -> Unit:
    """Keep evidence or an anchor where only validated knowledge may stand: it claims nothing beyond its own words."""
    act.require_at(Deed.WRITE, level, f"keep {claim.kind}")
    scope = act.presence.scope.at(level)
    for known in said_alike(act.transaction, [scope.key], claim.content):
        if known.kind == claim.kind and known.domain == claim.domain and known.attributes == claim.attributes:
            return known
    unit_id = new_id()
    unit = _verified(act, Kind.parse(claim.kind), claim.content, level, claim.domain, dict(claim.attributes))
    act.record(EventType.UNIT_REMEMBERED, {"unit": unit}, subject=unit_id)
    return _stored(act, unit_id)


def _verified(
    act: Act, kind: Kind, content: str, level: Level, domain: str, attributes: dict[str, Any]
) -> dict[str, Any]:
    """A unit that stands by the act that makes it (R4, R12)."""
    confidence, actor = act.config.trust.initial_verified, act.presence.actor
    trust = Trust(confidence=confidence, since=act.now, decay_policy=DecayPolicy.MANUAL_ONLY)
    return {
        "kind": str(kind),
        "content": content,
        "scope": act.presence.scope.at(level).segments,
        "domain": domain,
        "status": str(Status.VERIFIED),
        "trust": trust_to_json(trust),
        "importance": 0.5,
        "citations": [Citation.human(actor.id).to_json()] if actor.kind == "human" else [],
        "attributes": attributes,
    }


def _stored(act: Act, unit_id: str) -> Unit:
    unit = act.transaction.unit(unit_id)
    assert unit is not None
    return unit


def _unchanged(act: Act, proposal: DecisionProposal) -> Decision:
    """What the proposal revises, if it is still in force as the proposal saw it; a stale base is refused (R5, R12)."""
    base = proposal.base
    assert base is not None
    current = act.transaction.decision_in_force(base.root_id)
    if current is None or (current.id, current.version) != (base.id, base.unit.version):
        now = None if current is None else Decision(current)
        stands = "is no longer in force" if now is None else f"is at version {now.version}"
        raise Conflict(
            f"Decision {base.root_id} {stands}; the proposal was made against version {base.version}.",
            hint="Read what is in force, decide anew, and propose again.",
            expected_version=base.version,
            actual_version=None if now is None else now.version,
            current=current,
            proposed=base.unit,
        )
    return Decision(current)


def _let_guardian_judge(act: Act, proposal: DecisionProposal, base: Decision | None, override: str | None) -> None:
    """What the guardian blocks takes a person who says why: an axis is not changed in passing (D8, D11)."""
    # What its change reaches only warns, and the proposal has said so.
    verdict, _ = guarded(act.transaction, act.presence, proposal.strength, base, ())
    if verdict.type is Verdict.BLOCK and not (override and act.presence.actor.kind == "human"):
        raise NotAllowed(
            f"The guardian blocks it: {' '.join(verdict.reasons)}",
            rule=_GUARDIAN,
            hint="A person can commit it with override='why', or propose something that leaves these standing.",
        )


def evidence_of(reader: Reader, presence: Presence, unit_id: str) -> Unit:
    """What a decision may rest on, if it is there for this seat."""
    unit = reader.unit(unit_id)
    if unit is None or not unit.live or not _is_visible(unit, presence):
        raise InvalidInput(f"Evidence {unit_id!r} is not here.", hint="Add it with add_evidence(...), and cite its id.")
    return unit


def _carried(act: Act, unit_id: str, level: Level) -> str:
    """Who commits a decision vouches for its evidence, which must be seen wherever the decision is."""
    unit = evidence_of(act.transaction, act.presence, unit_id)
    if unit.kind is not Kind.EVIDENCE or unit.level >= level:
        return unit.id
    scope = act.presence.scope.at(level)
    twin = twin_of(act.transaction, unit, scope.key)
    if twin is not None:
        return twin.id
    changes = {"scope": scope.segments, "status": str(Status.VERIFIED)}
    payload = {"from": unit.scope.segments, "because": ["a decision rests on it"], "set": changes}
    return change(act, EventType.UNIT_PROMOTED, unit, payload).id


def _out_of_force(act: Act, base: Decision, new_id: str, reason: str) -> None:
    changes = {
        "status": str(Status.DEPRECATED),
        "superseded_by": new_id,
        "superseded_from": str(base.unit.status),
        "contradiction_note": reason,
        "valid_to": micros(max(act.now, base.unit.occurred_at)),
    }
    change(act, EventType.UNIT_SUPERSEDED, base.unit, {"new": new_id, "reason": reason, "set": changes})


def relate(act: Act, source_id: str, type: RelationType, target_id: str, *, drop: bool) -> None:
    """Say that one decision bears on another, or no longer does."""
    source = in_force(act.transaction, act.presence, source_id)
    target = in_force(act.transaction, act.presence, target_id)
    if source.root_id == target.root_id:
        raise InvalidInput("A decision has no relation to itself.", hint="Name two decisions.")
    act.require(Deed.WRITE, source.unit)
    kind = EventType.RELATION_DROPPED if drop else EventType.RELATION_ADDED
    payload = {"source": source.root_id, "type": str(type), "target": target.root_id}
    known = (source.root_id, type, target.root_id)
    there = {(one.source, one.type, one.target) for one in act.transaction.relations_from([source.root_id])}
    if (known in there) is drop:
        act.record(kind, payload, subject=source.root_id)

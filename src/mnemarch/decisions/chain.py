"""A decision's versions: read, proposed against, and committed (D2-D7, R8, R12)."""

from __future__ import annotations

from mnemarch.decisions.guard import RULE, binding, binds, in_force_among, is_local, may_answer
from mnemarch.errors import Conflict, Hint, InvalidInput, NotAllowed, NotFound
from mnemarch.model.caller import ActorKind
from mnemarch.model.citation import Citation
from mnemarch.model.decision import Decision, RelationType, Strength, standing_of
from mnemarch.model.event import EventType
from mnemarch.model.outcome import Verdict
from mnemarch.model.stamps import micros, new_id
from mnemarch.model.unit import Claim, DecayPolicy, Kind, Status, Trust, trust_to_json
from mnemarch.policy.guardian import judged
from mnemarch.policy.impact import impact
from mnemarch.policy.permissions import Deed
from mnemarch.text.secrets import redacted, redacted_tree
from mnemarch.units.same_text import is_same, live_with_same_text, twin_of
from mnemarch.units.status import change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mnemarch.log.act import Act
    from mnemarch.model.caller import Level, Presence
    from mnemarch.model.decision import DecisionProposal, GuardianVerdict, Impact, Relation
    from mnemarch.model.event import Event
    from mnemarch.model.unit import Unit
    from mnemarch.policy.permissions import Policy
    from mnemarch.stores.sql.reader import Reader


def found(reader: Reader, presence: Presence, decision_id: str) -> Decision:
    """The decision of that id, whichever version it names, if this seat may see it."""
    unit = reader.unit(decision_id)
    if unit is None or standing_of(unit) is None or not _is_visible(unit, presence):
        raise NotFound(f"No decision {decision_id!r} here.", hint="Check the id, and that the seat's scope can see it.")
    return Decision(unit)


def in_force(reader: Reader, presence: Presence, decision_id: str) -> Decision:
    """The version that holds of the decision that this id names."""
    _, holds = _named(reader, presence, decision_id)
    if holds is None:
        raise NotFound(
            f"Decision {decision_id!r} has no version in force.", hint="It was taken back; propose a new one."
        )
    return holds


def revised(reader: Reader, presence: Presence, decision_id: str, key: str | None) -> Decision:
    """What a proposal that names this id is made against: by its root what holds, by another id that very version.

    Who names a version has read that one, and may not have read what replaced it (R5). With a key that was used before
    the proposal is made once more, and stands for what came of it then.
    """
    holds = in_force(reader, presence, decision_id)
    if decision_id in (holds.id, holds.root_id) or (key is not None and _is_spent(reader, presence, key)):
        return holds
    raise _stale(found(reader, presence, decision_id), holds)


def _is_spent(reader: Reader, presence: Presence, key: str) -> bool:
    return reader.event_for_key(presence.scope_key, str(presence.actor), key) is not None


def root_of(reader: Reader, presence: Presence, decision_id: str) -> str:
    """The root of the decision that this id names."""
    root, _ = _named(reader, presence, decision_id)
    return root


def _named(reader: Reader, presence: Presence, decision_id: str) -> tuple[str, Decision | None]:
    """A decision's root and what is in force of it for this seat, by its root or by any version that the seat may see.

    The root first: who asks by it gets what holds without a look at the version that it was the id of (D7), which may
    be erased by now, or of another worktree.
    """
    by_root = in_force_among(reader, presence, [decision_id])
    if by_root:
        return decision_id, by_root[0]
    root = found(reader, presence, decision_id).root_id
    by_version = in_force_among(reader, presence, [root]) if root != decision_id else []
    return root, by_version[0] if by_version else None


def versions(reader: Reader, presence: Presence, decision_id: str) -> list[Decision]:
    """Every version that this seat may see, the first first."""
    units = reader.decision_versions(root_of(reader, presence, decision_id))
    return [Decision(unit) for unit in units if _is_visible(unit, presence)]


def _is_visible(unit: Unit, presence: Presence) -> bool:
    return unit.scope.key in presence.visible_keys


def blast_radius(
    reader: Reader, presence: Presence, root: str, *, depth_max: int, nodes_max: int
) -> tuple[Impact, list[Decision]]:
    """What a change of a decision reaches, of what this seat may see, inside its connected subgraph only (D14).

    Also gives the decisions that were read on the way, in the order of the nodes.
    """
    met: dict[str, Decision] = {}

    def seen(roots: Sequence[str]) -> set[str]:
        there = {one.root_id: one for one in in_force_among(reader, presence, roots)}
        met.update(there)
        return set(there)

    radius = impact(root, lambda roots: _relations(reader, roots), seen, depth_max=depth_max, nodes_max=nodes_max)
    return radius, [met[node.id] for node in radius.nodes]


def _relations(reader: Reader, roots: Sequence[str]) -> list[Relation]:
    return [*reader.relations_from(roots), *reader.relations_to(roots)]


def relations(reader: Reader, presence: Presence, decision_id: str) -> list[Relation]:
    """The relations at a decision whose other side this seat may know of, in force or not."""
    root = root_of(reader, presence, decision_id)
    return [one for one in _relations(reader, [root]) if _is_known(reader, presence, _other_side(one, root))]


def _other_side(relation: Relation, root: str) -> str:
    return relation.target if relation.source == root else relation.source


def _is_known(reader: Reader, presence: Presence, root: str) -> bool:
    if in_force_among(reader, presence, [root]):
        return True
    first = reader.unit(root)
    return first is not None and _is_visible(first, presence)


def guarded(
    reader: Reader,
    presence: Presence,
    base: Decision | None,
    reached: Sequence[Decision],
    *,
    strength: Strength,
    domain: str,
    level: Level,
) -> tuple[GuardianVerdict, tuple[Decision, ...]]:
    """The guardian's verdict, and the axis and lock decisions that stand against the proposal."""
    constraining = [] if base is None else binding(reader, presence, base)
    against = [*([base] if base is not None else []), *constraining]
    conflicts = tuple(one for one in against if one.strength > Strength.NORMAL)
    return judged(strength, base, constraining, reached, domain=domain, level=level), conflicts


def commit(act: Act, proposal: DecisionProposal, override: str | None) -> Decision:
    """Make a proposal a decision: the version it replaces goes out of force and this one comes in, in one act (D5)."""
    earlier = _committed(act, proposal)
    if earlier is not None:
        return earlier
    _refuse_elsewhere(act, proposal)
    act.require_at(Deed.WRITE, proposal.level, "commit a decision")
    base = None if proposal.base is None else _unchanged(act, proposal.base)
    if base is not None and base.unit.level > proposal.level:
        # A narrower version takes the decision from everybody else who had it.
        act.require(Deed.WRITE, base.unit)
    _let_guardian_judge(act, proposal, base, override)
    evidence = [_carried(act, each, proposal.level) for each in proposal.evidence]
    evidence += [exhibit(act, snapshot_of(text), proposal.level).id for text in proposal.snapshots]
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
        "importance": 0.5 + 0.15 * proposal.strength.rank,
        "supersedes": None if base is None else base.id,
    }
    act.record(EventType.UNIT_REMEMBERED, {"unit": unit}, subject=unit_id, key=proposal.key)
    return Decision(_stored(act, unit_id))


def _committed(act: Act, proposal: DecisionProposal) -> Decision | None:
    """What this proposal, or what was given the same key, became already: the decision has the proposal's id."""
    what = f"Proposal {proposal.id} was committed before"
    event = next(act.transaction.events_of_subject(proposal.id), None)
    if event is None and proposal.key is not None:
        what = f"Key {proposal.key!r} was used before"
        event = act.transaction.event_for_key(act.presence.scope_key, str(act.presence.actor), proposal.key)
    if event is None:
        return None
    unit = act.transaction.unit(event.subject or "")
    if unit is None or standing_of(unit) is None or not _is_visible(unit, act.presence):
        raise Conflict(
            f"{what}, and what came of it is gone, no decision, or not to be seen from here.",
            hint="Propose again, with a new key; nothing was stored.",
        )
    if not _says(event, proposal):
        raise Conflict(
            f"{what}, for decision {unit.id}, which says something else.",
            hint="Propose again, with a new key; nothing was stored.",
            current=unit,
        )
    return Decision(unit)


def _says(event: Event, proposal: DecisionProposal) -> bool:
    """Whether the event that made a decision says what the proposal does; what it rests on may be worded anew."""
    born = (event.payload or {}).get("unit", {})
    told = born.get("attributes", {})
    revises = told.get("root") if born.get("supersedes") else None
    said = [born.get("content"), revises, {**told.get("reason", {}), "override": None}]
    given: list[Any] = [proposal.text, proposal.revises, {**proposal.reason.to_json(), "override": None}]
    if proposal.revises is None:
        # A revision takes these from what is in force, which may be another version by now.
        said += [born.get("domain"), born.get("scope"), told.get("strength")]
        given += [proposal.domain, list(proposal.scope.segments), str(proposal.strength)]
    return bool(said == redacted_tree(given, set()))


def _refuse_elsewhere(act: Act, proposal: DecisionProposal) -> None:
    """A proposal is for one place: whoever commits it from another would decide for people it was not shown for."""
    if act.presence.scope.at(proposal.level) != proposal.scope:
        raise Conflict(
            f"Proposal {proposal.id} was made for {proposal.scope}; from here it would hold in"
            f" {act.presence.scope.at(proposal.level)}.",
            hint="Commit it from a seat there, or propose it here.",
        )


def snapshot_of(content: str, tags: Sequence[str] = ()) -> Claim:
    """A claim of evidence."""
    return Claim(content=content, kind=Kind.EVIDENCE, attributes={"tags": list(tags)})


def exhibit(act: Act, claim: Claim, level: Level) -> Unit:
    """Keep evidence or an anchor where only validated knowledge may stand: it claims nothing beyond its own words."""
    act.require_at(Deed.WRITE, level, f"keep {claim.kind}")
    scope, kind = act.presence.scope.at(level), Kind.parse(claim.kind)
    content, _ = redacted(claim.content)
    for known in live_with_same_text(act.transaction, [scope.key], content):
        if is_same(known, kind, claim.domain, content, claim.attributes):
            return known
    unit_id = new_id()
    unit = _verified(act, kind, content, level, claim.domain, dict(claim.attributes))
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


def _unchanged(act: Act, base: Decision) -> Decision:
    """What the proposal revises, if it still holds where it did when the proposal saw it (R5, R12).

    That it was used, cited or validated meanwhile changes nothing that was decided.
    """
    current = act.transaction.decision_in_force(base.root_id)
    if current is not None and (current.id, current.scope) == (base.id, base.unit.scope):
        return Decision(current)
    raise _stale(base, None if current is None else Decision(current))


def _stale(base: Decision, now: Decision | None) -> Conflict:
    """The refusal to replace what the proposal did not see, with both versions."""
    if now is None:
        stands = "is no longer in force"
    elif now.id != base.id:
        stands = f"is at version {now.version}"
    else:
        stands = f"holds at {now.unit.level} scope by now"
    return Conflict(
        f"Decision {base.root_id} {stands}; the proposal was made against version {base.version}.",
        hint="Read what is in force, decide anew, and propose again.",
        expected_version=base.version,
        actual_version=None if now is None else now.version,
        current=None if now is None else now.unit,
        proposed=base.unit,
    )


def _let_guardian_judge(act: Act, proposal: DecisionProposal, base: Decision | None, override: str | None) -> None:
    """What the guardian blocks takes a person who says why: an axis is not changed in passing (D8, D11)."""
    # What its change reaches only warns, and the proposal has said so.
    verdict, _ = guarded(
        act.transaction,
        act.presence,
        base,
        (),
        strength=proposal.strength,
        domain=proposal.domain,
        level=proposal.level,
    )
    if base is not None and verdict.type is Verdict.BLOCK:
        guards = binding(act.transaction, act.presence, base)
        policy, actor = act.config.policy, act.presence.actor
        if not override or not may_answer(policy, actor, base, guards, proposal.level):
            raise _blocked(policy, proposal, verdict, base, guards)


def _blocked(
    policy: Policy, proposal: DecisionProposal, verdict: GuardianVerdict, base: Decision, guards: Sequence[Decision]
) -> NotAllowed:
    """The guardian's no, with who could go on and how."""
    if is_local(base, guards):
        who = f"Whoever may write at {proposal.level} scope"
    else:
        who = "A person" if policy.allows(ActorKind.HUMAN, Deed.WRITE, proposal.level) else "At project scope a person"
    return NotAllowed(
        f"The guardian blocks it: {' '.join(verdict.reasons)}",
        rule=RULE,
        hint=Hint("override the guardian", who=who),
    )


def check(reader: Reader, presence: Presence, policy: Policy, proposal: DecisionProposal) -> None:
    """Refuse whom `commit` would refuse whatever reason is given."""
    policy.require(presence.actor, Deed.WRITE, proposal.level, "commit a decision")
    base, verdict = proposal.base, proposal.guardian
    if base is not None and verdict.type is Verdict.BLOCK:
        guards = binding(reader, presence, base)
        if not may_answer(policy, presence.actor, base, guards, proposal.level):
            raise _blocked(policy, proposal, verdict, base, guards)


def evidence_of(reader: Reader, presence: Presence, unit_id: str) -> Unit:
    """What a decision may rest on, if it is there for this seat."""
    unit = reader.unit(unit_id)
    if unit is None or not _is_visible(unit, presence):
        raise InvalidInput(
            f"Evidence {unit_id!r} is not here: nothing of that id is to be seen from {presence.scope}.",
            hint=Hint("give evidence from here"),
        )
    if not unit.live:
        raise InvalidInput(f"Evidence {unit_id} is {unit.status}.", hint=Hint("give evidence"))
    if unit.kind is not Kind.EVIDENCE:
        raise InvalidInput(f"Unit {unit_id} is a {unit.kind}, and no evidence.", hint=Hint("give evidence"))
    return unit


def _carried(act: Act, unit_id: str, level: Level) -> str:
    """Who commits a decision vouches for its evidence, which must be seen wherever the decision is."""
    unit = evidence_of(act.transaction, act.presence, unit_id)
    if unit.level >= level:
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


def relate(act: Act, source_id: str, type: RelationType, target_id: str) -> None:
    """Say that one decision bears on another."""
    source = in_force(act.transaction, act.presence, source_id)
    # What is superseded may be out of force already.
    find = root_of if type is RelationType.SUPERSEDES else _root_in_force
    target = find(act.transaction, act.presence, target_id)
    if source.root_id == target:
        raise InvalidInput("A decision has no relation to itself.", hint="Name two decisions.")
    act.require(Deed.WRITE, source.unit)
    if (type, target) not in _stated(act, source.root_id):
        payload = {"source": source.root_id, "type": str(type), "target": target}
        act.record(EventType.RELATION_ADDED, payload, subject=source.root_id)


def _root_in_force(reader: Reader, presence: Presence, decision_id: str) -> str:
    return in_force(reader, presence, decision_id).root_id


def unrelate(act: Act, source_id: str, type: RelationType, target_id: str, override: str | None) -> None:
    """Say that it no longer does, whatever became of the two."""
    (source, unit), (target, _) = (_side(act, each) for each in (source_id, target_id))
    if (type, target) not in _stated(act, source):
        return
    act.require(Deed.WRITE, unit)
    _refuse_to_unbind(act, source, type, target, override)
    payload = {"source": source, "type": str(type), "target": target} | ({"override": override} if override else {})
    act.record(EventType.RELATION_DROPPED, payload, subject=source)


def _stated(act: Act, root: str) -> set[tuple[RelationType, str]]:
    return {(one.type, one.target) for one in act.transaction.relations_from([root])}


def _side(act: Act, decision_id: str) -> tuple[str, Unit]:
    """One side of a relation: its root, and what is left of it to ask who may write there, in force or not."""
    holds = in_force_among(act.transaction, act.presence, [decision_id])
    if holds:
        return decision_id, holds[0].unit
    unit = act.transaction.unit(decision_id)
    if unit is not None and unit.erased_at is not None and _is_visible(unit, act.presence):
        return unit.id, unit
    version = found(act.transaction, act.presence, decision_id)
    return version.root_id, version.unit


def _refuse_to_unbind(act: Act, source: str, type: RelationType, target: str, override: str | None) -> None:
    """What binds a decision so that the guardian blocks its change is not let go of in passing (D11)."""
    sides = in_force_among(act.transaction, act.presence, [source, target])
    if type is not RelationType.CONSTRAINS or len(sides) < len({source, target}):
        return
    axis, actor = sides[0], act.presence.actor
    if axis.strength is not Strength.AXIS or not binds(*sides) or actor.kind is ActorKind.HUMAN:
        return
    if not (override and is_local(axis, ())):
        raise NotAllowed(
            f"{actor} may not free decision {target} from the axis {source} that constrains it: the guardian would no"
            f" longer block its change (rule {RULE}).",
            rule=RULE,
            hint=Hint("say why") if is_local(axis, ()) else "A person can drop the relation.",
        )

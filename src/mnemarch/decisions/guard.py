"""Versions and relations of decisions, and who may change them (D4-D8, D10, D11, D14).

Only a person retires or restores what the guardian protects, with any verb.
"""

from __future__ import annotations

from mnemarch.decisions.loading import GLOBAL
from mnemarch.errors import Conflict, Hint, InvalidInput, NotAllowed, NotFound
from mnemarch.lazy import Lazy
from mnemarch.model.caller import Actor, ActorKind, Caller, Level
from mnemarch.model.decision import Decision, GuardianVerdict, Impact, Relation, RelationType, Strength, version_key_of
from mnemarch.model.event import EventType
from mnemarch.model.outcome import Verdict
from mnemarch.model.stamps import micros
from mnemarch.model.unit import Kind, Status, Unit
from mnemarch.policy.guardian import impact, parting
from mnemarch.policy.permissions import Deed
from mnemarch.units import life
from mnemarch.units.finding import LEAVING, rejection_of
from mnemarch.units.status import change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mnemarch.log.act import Act
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.text import opposition as opposing
    from mnemarch.units.scene import TestSource
else:
    opposing = Lazy("mnemarch.text.opposition")

RULE = "D11"
_RETURNING = frozenset({EventType.UNIT_APPROVED, EventType.UNIT_REVIVED})
_CHANGE_THEIR_TARGET = frozenset({RelationType.CONSTRAINS, RelationType.SUPERSEDES})


def visible_decision(reader: Reader, caller: Caller, decision_id: str) -> Decision:
    """The version of a decision with this id. Raises NotFound if this seat may not see it."""
    unit = reader.unit(decision_id)
    if unit is None or version_key_of(unit) is None or not is_visible(unit, caller):
        raise NotFound(f"There is no decision {decision_id!r} here.", hint=Hint("find the decision"))
    return Decision(unit)


def in_force(reader: Reader, caller: Caller, decision_id: str) -> Decision:
    """The version in force of the decision with this id. The id may name any version."""
    _, holds = _named(reader, caller, decision_id)
    if holds is None:
        raise NotFound(
            f"Decision {decision_id!r} has no version in force.", hint="It was rejected or archived. Propose a new one."
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
        stands = f"is at {now.unit.level} scope now"
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
    return _named(reader, caller, decision_id)[0]


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


def unchanged(act: Act, base: Decision) -> Decision:
    """The revised version, if it is still in force at the scope that the proposal saw (R5, R12).

    It may have been used, cited or validated meanwhile. Raises Conflict otherwise.
    """
    current = act.transaction.decision_in_force(base.root_id)
    if current is not None and (current.id, current.scope) == (base.id, base.unit.scope):
        return Decision(current)
    raise stale(base, None if current is None else Decision(current))


def replaced_by(act: Act, base: Decision, new_id: str, reason: str) -> list[Decision]:
    """Take a version out of force. Returns the decisions in force that it was in conflict with."""
    changes = {
        "status": str(Status.DEPRECATED),
        "superseded_by": new_id,
        "superseded_from": str(base.unit.status),
        "contradiction_note": reason,
        "valid_to": micros(max(act.now, base.unit.occurred_at)),
    }
    change(act, EventType.UNIT_SUPERSEDED, base.unit, {"new": new_id, "reason": reason, "set": changes})
    others: list[str] = []
    for link in act.transaction.links_of(base.id):
        if link.open:
            others.append(link.target if link.source == base.id else link.source)
            payload = {"link": link.id, "winner": others[-1], "reason": f"superseded by {new_id}"}
            act.record(EventType.LINK_RESOLVED, payload, subject=link.id)
    disputed = act.transaction.units(others).values()
    return [Decision(unit) for unit in disputed if unit.live and version_key_of(unit) is not None]


# Relations


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
        first = None if (is_in_force := bool(in_force_among(reader, caller, [root]))) else reader.unit(root)
        return is_in_force or (first is not None and is_visible(first, caller))

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
        raise InvalidInput("A decision can't have a relation to itself.", hint="Name two decisions.")
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
    sides = in_force_among(act.transaction, act.caller, [source, target])
    _refuse_to_unbind(act, type, sides)
    require_may_relate(act, type, sides)
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


def _refuse_to_unbind(act: Act, type: RelationType, sides: Sequence[Decision]) -> None:
    """Raise unless a person drops the relation by which an axis in force constrains a decision in force (D11)."""
    if type is not RelationType.CONSTRAINS or len(sides) < 2:
        return
    (axis, target), actor = sides, act.caller.actor
    if axis.strength is Strength.AXIS and binds(axis, target) and actor.kind is not ActorKind.HUMAN:
        raise NotAllowed(
            f"{actor} may not free decision {target.root_id} from the axis {axis.root_id} that constrains it: the"
            f" guardian would no longer block its change (rule {RULE}).",
            rule=RULE,
            hint="A person can drop the relation.",
        )


# What is protected


def in_force_among(reader: Reader, caller: Caller, roots: Iterable[str]) -> list[Decision]:
    """The decisions with these roots that are in force and visible."""
    units = (reader.decision_in_force(root) for root in roots)
    return [Decision(unit) for unit in units if unit is not None and unit.scope.key in caller.visible_keys]


def firmest_first(decision: Decision) -> tuple[int, str]:
    return -decision.strength.rank, decision.root_id


def binding(reader: Reader, caller: Caller, base: Decision) -> list[Decision]:
    """The decisions that constrain this one, firmest first."""
    sources = [one.source for one in reader.relations_to([base.root_id]) if one.type is RelationType.CONSTRAINS]
    return sorted((one for one in in_force_among(reader, caller, sources) if binds(one, base)), key=firmest_first)


def binds(source: Decision, target: Decision) -> bool:
    """Whether a decision can bind another. A worktree's decision can't bind a project's."""
    return source.unit.level >= target.unit.level


def opposed(
    reader: Reader, caller: Caller, text: str, *, domain: str, level: Level, base: Decision | None
) -> list[tuple[Decision, str]]:
    """The axes and locks that a proposal opposes where it would hold, each with the reason, firmest first (R6, R12).

    They are not part of the guardian's verdict, which rests on relations alone (D11). Axes and locks are few, so each
    is compared; there may be 100,000 normal decisions (D7).
    """
    root = None if base is None else base.root_id
    firm = [Decision(unit) for unit in reader.firm(caller.visible_keys, list(dict.fromkeys((domain, GLOBAL))))]
    others = [one for one in firm if one.unit.level >= level and one.root_id != root]
    pairs = [(one, found.reason) for one in others if (found := opposing.breaks(text, one.text)) is not None]
    return sorted(pairs, key=lambda pair: firmest_first(pair[0]))


def still_opposed(
    text: str, disputed: Iterable[Decision], known: Iterable[tuple[Decision, str]]
) -> list[tuple[Decision, str]]:
    """The decisions in conflict with the revised version that the new version opposes too, with the reasons (R12)."""
    ids = {one.id for one, _ in known}
    found = ((one, opposing.breaks(text, one.text)) for one in disputed if one.id not in ids)
    return [(one, opposition.reason) for one, opposition in found if opposition is not None]


def is_a_persons(unit: Unit) -> bool:
    """Whether the unit is a person's policy, axis or lock."""
    key = version_key_of(unit)
    binds = unit.kind is Kind.POLICY if key is None else key.strength > Strength.NORMAL.rank
    return binds and unit.author is not None and unit.author.kind is ActorKind.HUMAN


def verdict_on_retiring(reader: Reader, caller: Caller, unit: Unit) -> GuardianVerdict | None:
    """The guardian's verdict on taking a decision out of force. None for other units."""
    if not unit.live or version_key_of(unit) is None:
        return None
    base = Decision(unit)
    return parting(base, binding(reader, caller, base))


def require_may_retire(act: Act, unit: Unit) -> None:
    """Raise if only a person may take the unit out of force (R4).

    That holds for a decision that the guardian blocks, for a person's policy, axis or lock, and for evidence of a
    protected decision, even if it was retired before.
    """
    if act.caller.actor.kind is ActorKind.HUMAN or not (unit.live or unit.kind is Kind.EVIDENCE):
        return
    verdict = verdict_on_retiring(act.transaction, act.caller, unit)
    reasons = verdict.reasons if verdict is not None and verdict.type is Verdict.BLOCK else ()
    if is_a_persons(unit) and not reasons:
        reasons = (f"{unit.author} laid it down.",)
    if unit.kind is Kind.EVIDENCE:
        reasons = tuple(f"The {one.strength} {one.id} of {one.unit.author} rests on it." for one in _above(act, unit))
    if reasons:
        raise NotAllowed(
            f"{act.caller.actor} may not take {unit.kind} {unit.id} out of force (rule {RULE}). {' '.join(reasons)}",
            rule=RULE,
            hint="A person can reject it.",
        )


def _above(act: Act, evidence: Unit) -> list[Decision]:
    """The axes, and the locks of people, that rest on this evidence."""
    reader, firm = act.transaction, []
    for key in act.caller.visible_keys:
        domains = reader.domains_decided(key)
        firm += [Decision(unit) for unit in (reader.firm([key], domains) if domains else ())]
    guarded = [one for one in firm if one.strength is Strength.AXIS or is_a_persons(one.unit)]
    return [one for one in guarded if evidence.id in one.evidence]


def require_may_relate(act: Act, type: RelationType, sides: Iterable[Decision]) -> None:
    """Raise if stating or dropping a relation would change a person's axis or lock, unless a person does it (R4)."""
    persons = next((one for one in sides if is_a_persons(one.unit)), None)
    if persons is not None and act.caller.actor.kind is not ActorKind.HUMAN:
        raise NotAllowed(
            f"{act.caller.actor} may not change what is {type} at the {persons.strength} {persons.id}:"
            f" {persons.unit.author} laid it down (rule {RULE}).",
            rule=RULE,
            hint="A person can do it.",
        )


def require_may_restore(act: Act, unit: Unit) -> None:
    """Raise if a person took a protected decision out of force and another actor restores it."""
    if version_key_of(unit) is None or act.caller.actor.kind is ActorKind.HUMAN:
        return
    person = _who_took_out(act.transaction, unit)
    if person is None:
        return
    base = Decision(unit)
    if parting(base, binding(act.transaction, act.caller, base)).type is Verdict.BLOCK:
        raise NotAllowed(
            f"{act.caller.actor} may not put decision {unit.id} back in force: {person} took it out (rule {RULE}).",
            rule=RULE,
            hint="A person can revive it.",
        )


def _who_took_out(reader: Reader, unit: Unit) -> Actor | None:
    """The person who last took a unit out of recall, if it has not come back since."""
    person = None
    for event in reader.events_of_subject(unit.id):
        if event.type in _RETURNING:
            person = None
        elif event.type in LEAVING and event.actor.kind is ActorKind.HUMAN:
            person = event.actor
    return person


# The verbs that retire or restore a unit, with these checks. Units that are not protected pass.


def archive(act: Act, unit_id: str, reason: str, expected_version: int | None) -> Unit:
    require_may_retire(act, act.permitted_unit(unit_id, Deed.ARCHIVE, expected_version))
    return life.archive(act, unit_id, reason, expected_version)


def reject(act: Act, unit_id: str, reason: str, expected_version: int | None) -> Unit:
    require_may_retire(act, act.permitted_unit(unit_id, Deed.REJECT, expected_version))
    return life.reject(act, unit_id, reason, expected_version)


def withdraw(act: Act, unit_id: str, reason: str, expected_version: int | None) -> Unit:
    require_may_retire(act, act.changeable_unit(unit_id, expected_version))
    return life.withdraw(act, unit_id, reason, expected_version)


def revive(
    act: Act, unit_id: str, reason: str, expected_version: int | None, sources: Mapping[str, TestSource]
) -> Unit:
    require_may_restore(act, act.permitted_unit(unit_id, Deed.REVIVE, expected_version))
    return life.revive(act, unit_id, reason, expected_version, sources)


def approve(act: Act, unit_id: str, expected_version: int | None) -> Unit:
    unit = act.permitted_unit(unit_id, Deed.APPROVE, expected_version)
    if rejection_of(act.transaction, unit) is not None:
        require_may_restore(act, unit)
    return life.approve(act, unit_id, expected_version)

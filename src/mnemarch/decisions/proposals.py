"""Proposals become decisions, with their evidence (D2, D3, D5), or requests (R12).

A request is a proposal of an actor that may not decide. It waits in the log for a person or an orchestrator.
"""

from __future__ import annotations

from mnemarch.decisions.guard import (
    RULE,
    binding,
    is_a_persons,
    is_visible,
    opposed,
    replaced_by,
    still_opposed,
    unchanged,
)
from mnemarch.errors import Conflict, Hint, InvalidInput, NotAllowed, NotFound
from mnemarch.log.projection import keys_of
from mnemarch.model.caller import ActorKind, Caller, Level, Scope, Stream
from mnemarch.model.decision import (
    Decision,
    DecisionProposal,
    DecisionRequest,
    GuardianVerdict,
    Strength,
    version_key_of,
)
from mnemarch.model.event import Event, EventType
from mnemarch.model.json_text import to_json
from mnemarch.model.outcome import Verdict
from mnemarch.model.stamps import blake2b, new_id
from mnemarch.model.unit import Citation, Claim, DecayPolicy, Kind, LinkType, Status, Trust, Unit, trust_to_json
from mnemarch.policy.guardian import judged
from mnemarch.policy.permissions import Deed, Policy
from mnemarch.text import words
from mnemarch.text.canonical import canonical
from mnemarch.text.secrets import redacted, redacted_tree
from mnemarch.units.conflicts import link_units
from mnemarch.units.finding import is_same, live_with_same_text, twin_of
from mnemarch.units.status import change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mnemarch.log.act import Act
    from mnemarch.stores.sql.reader import Reader

_QUOTED_CHARS = 80


def guarded(
    reader: Reader, caller: Caller, base: Decision | None, reached: Sequence[Decision], **standing: Any
) -> tuple[GuardianVerdict, tuple[Decision, ...]]:
    """The guardian's verdict, and the axes and locks that the proposal revises or that constrain it.

    `standing` has the strength, domain and level of the proposal.
    """
    constraining = [] if base is None else binding(reader, caller, base)
    against = [*([base] if base is not None else []), *constraining]
    conflicts = tuple(one for one in against if one.strength > Strength.NORMAL)
    return judged(base=base, constraining=constraining, reached=reached, **standing), conflicts


def commit(act: Act, proposal: DecisionProposal, override: str | None, request: DecisionRequest | None) -> Decision:
    """Commit a proposal. It replaces the version that it revises in one act (D5).

    `request` is the request that it was made from, if any. Other requests for the same are answered too.
    """
    decision = _decided(act, proposal, override, request)
    for each in open_requests(act.transaction, act.caller):
        is_same_place = each.scope.at(each.level) == decision.unit.scope and each.domain == decision.domain
        if request is not None and each.id == request.id:
            answer(act, each.id, "accepted", decision.id)
        elif is_same_place and canonical(each.text) == canonical(decision.unit.content):
            answer(act, each.id, "decided already", decision.id)
    return decision


def _decided(act: Act, proposal: DecisionProposal, override: str | None, request: DecisionRequest | None) -> Decision:
    earlier = _committed(act, proposal)
    if earlier is not None:
        return earlier
    _refuse_elsewhere(act, proposal)
    act.require_at(Deed.DECIDE, proposal.level, "commit a decision")
    same = decided_already(act.transaction, proposal)
    if same is not None:
        return _supported(act, same, proposal)
    base = None if proposal.base is None else unchanged(act, proposal.base)
    if base is not None and base.unit.level > proposal.level:
        # A version at a narrower level takes the decision away from everybody else.
        act.require(Deed.DECIDE, base.unit)
    # The impact is left out: it only warns, and the proposal has shown it.
    standing = {name: getattr(proposal, name) for name in ("strength", "domain", "level")}
    verdict, _ = guarded(act.transaction, act.caller, base, (), **standing)
    _require_answer(act.caller, base, verdict, override)
    against = opposed(
        act.transaction, act.caller, proposal.text, domain=proposal.domain, level=proposal.level, base=base
    )
    _require_override(act.caller, against, override)
    evidence = _kept_evidence(act, proposal)
    unit_id = proposal.id
    if base is not None:
        disputed = replaced_by(act, base, unit_id, proposal.reason.summary)
        against += still_opposed(proposal.text, disputed, against)
    reason = proposal.reason.to_json() | ({"override": override} if override else {})
    attributes = {
        "root": unit_id if base is None else base.root_id,
        "version": 1 if base is None else base.version + 1,
        "strength": str(proposal.strength),
        "reason": reason,
        "evidence": list(dict.fromkeys(evidence)),
    } | ({} if request is None else {"request": request.id, "requested_by": str(request.actor)})
    unit = _verified(act, Kind.DECISION, proposal.text, proposal.level, proposal.domain, attributes) | {
        "importance": 0.5 + 0.15 * proposal.strength.rank,
        "supersedes": None if base is None else base.id,
    }
    act.record(EventType.UNIT_REMEMBERED, {"unit": unit}, subject=unit_id)
    for other, note in against:
        link_units(act, unit_id, other.id, LinkType.CONTRADICTS, 1.0, note)
    return Decision(act.known_unit(unit_id))


def decided_already(reader: Reader, proposal: DecisionProposal) -> Decision | None:
    """The decision in force with the same text, scope and domain, other than the revised one. None if there is none."""
    for unit in live_with_same_text(reader, [proposal.scope.key], proposal.text):
        key = version_key_of(unit)
        if key is not None and unit.domain == proposal.domain and key.root != proposal.revises:
            return Decision(unit)
    return None


def _supported(act: Act, known: Decision, proposal: DecisionProposal) -> Decision:
    """Add the proposal's evidence to the decision in force that says the same, and return it.

    Only a person adds to a person's axis or lock (R4). Raises Conflict if the proposal is stronger, which needs a
    revision, or if it revises another decision.
    """
    if proposal.revises is not None or known.strength < proposal.strength:
        raise Conflict(
            f"Decision {known.id} ({known.strength}) is in force and says the same.",
            hint=Hint("revise the decision"),
            current=known.unit,
        )
    is_person = act.caller.actor.kind is ActorKind.HUMAN
    if is_a_persons(known.unit) and not is_person:
        return known
    attributes = dict(known.unit.attributes)
    attributes["evidence"] = list(dict.fromkeys([*attributes["evidence"], *_kept_evidence(act, proposal)]))
    cited = [Citation.human(act.caller.actor.id)] if is_person else []
    new = [item.to_json() for item in cited if item not in known.unit.citations]
    if not new and attributes == known.unit.attributes:
        return known
    payload = {"cite": new, "set": {"attributes": attributes}}
    return Decision(change(act, EventType.UNIT_CITED, known.unit, payload))


def _kept_evidence(act: Act, proposal: DecisionProposal) -> list[str]:
    """The ids of a proposal's evidence, which is raised to its level, and of its snapshots, which are stored now."""
    carried = [_carried(act, each, proposal.level) for each in proposal.evidence]
    return carried + [exhibit(act, snapshot_of(text), proposal.level).id for text in proposal.snapshots]


def _committed(act: Act, proposal: DecisionProposal) -> Decision | None:
    """The decision that this proposal became already, or None. A decision has the id of its proposal."""
    event = next(act.transaction.events_of_subject(proposal.id), None)
    if event is None:
        return None
    unit = act.transaction.unit(proposal.id)
    if unit is None or version_key_of(unit) is None or not is_visible(unit, act.caller):
        problem, unit = "and its result is gone, is not a decision, or can't be seen from here", None
    elif _says(event, proposal):
        return Decision(unit)
    else:
        problem = f"for decision {unit.id}, which says something else"
    told = f"Proposal {proposal.id} was committed before, {problem}."
    raise Conflict(told, hint="Propose again; nothing was stored.", current=unit)


def _says(event: Event, proposal: DecisionProposal) -> bool:
    """Whether the event that made a decision has the same content as a proposal. Evidence and override may differ."""
    born = (event.payload or {}).get("unit", {})
    attributes = born.get("attributes", {})
    revises = attributes.get("root") if born.get("supersedes") else None
    stored = [born.get("content"), revises, {**attributes.get("reason", {}), "override": None}]
    proposed: list[Any] = [proposal.text, proposal.revises, {**proposal.reason.to_json(), "override": None}]
    stored += [born.get("domain"), born.get("scope"), attributes.get("strength")]
    proposed += [proposal.domain, list(proposal.scope.segments), str(proposal.strength)]
    return bool(stored == redacted_tree(proposed, set()))


def _refuse_elsewhere(act: Act, proposal: DecisionProposal) -> None:
    """Raise if a proposal is committed from another place than it was made for."""
    if act.caller.scope.at(proposal.level) != proposal.scope:
        raise Conflict(
            f"Proposal {proposal.id} was made for {proposal.scope}. From here it would hold in"
            f" {act.caller.scope.at(proposal.level)}.",
            hint="Commit it from a seat there, or propose it here.",
        )


def read_ahead(text: str) -> str:
    """The text without secrets. Its keys are computed and cached, so that the transaction stays short."""
    clean, _ = redacted(text)
    keys_of(clean)
    return clean


def snapshot_of(content: str, tags: Sequence[str] = ()) -> Claim:
    """A claim of the kind evidence."""
    return Claim(content=content, kind=Kind.EVIDENCE, attributes={"tags": list(tags)})


def exhibit(act: Act, claim: Claim, level: Level) -> Unit:
    """Store evidence, an anchor or a policy, which is verified by this act. Returns a known unit if it is the same."""
    scope, kind, content = act.caller.scope.at(level), Kind.parse(claim.kind), claim.content
    for known in live_with_same_text(act.transaction, [scope.key], content):
        if is_same(known, kind, claim.domain, content, claim.attributes):
            return known
    unit_id = new_id()
    unit = _verified(act, kind, content, level, claim.domain, dict(claim.attributes))
    act.record(EventType.UNIT_REMEMBERED, {"unit": unit}, subject=unit_id)
    return act.known_unit(unit_id)


def _verified(
    act: Act, kind: Kind, content: str, level: Level, domain: str, attributes: dict[str, Any]
) -> dict[str, Any]:
    """The record of a unit that is verified by the act that creates it (R4, R12)."""
    confidence, actor = act.config.trust.initial_verified, act.caller.actor
    trust = Trust(confidence=confidence, since=act.now, decay_policy=DecayPolicy.MANUAL_ONLY)
    return {
        "kind": str(kind),
        "content": content,
        "scope": act.caller.scope.at(level).segments,
        "domain": domain,
        "status": str(Status.VERIFIED),
        "trust": trust_to_json(trust),
        "importance": 0.5,
        "citations": [Citation.human(actor.id).to_json()] if actor.kind == "human" else [],
        "attributes": attributes,
    }


def _require_answer(caller: Caller, base: Decision | None, verdict: GuardianVerdict, override: str | None) -> None:
    """Raise if the guardian blocks the change, unless a person gives an override (D8, D11).

    Only a person revises a person's axis or lock (R4).
    """
    is_person = caller.actor.kind is ActorKind.HUMAN
    if base is not None and is_a_persons(base.unit) and not is_person:
        raise NotAllowed(
            f"{caller.actor} may not revise the {base.strength} {base.id}: {base.unit.author} decided it (R4).",
            rule="R4",
            hint="A person can revise it.",
        )
    if verdict.type is Verdict.BLOCK and not (override and is_person):
        raise NotAllowed(
            f"The guardian blocks it: {' '.join(verdict.reasons)}", rule=RULE, hint=Hint("override the guardian")
        )


def _require_override(caller: Caller, against: Sequence[tuple[Decision, str]], override: str | None) -> None:
    """Raise if a decision opposes an axis or a lock in force, unless a person gives an override (R12)."""
    if not against or (override and caller.actor.kind is ActorKind.HUMAN):
        return
    named = " ".join(
        f"It opposes the {one.strength} {one.id} (version {one.version}),"
        f' "{words.in_a_line(one.text, _QUOTED_CHARS)}": {note}.'
        for one, note in against
    )
    raise NotAllowed(f"BLOCK: {named}", rule="R12", hint=Hint("override the opposed", id=against[0][0].id))


def check(caller: Caller, policy: Policy, proposal: DecisionProposal) -> None:
    """Raise if `commit` would refuse this caller with any override."""
    policy.require(caller.actor, Deed.DECIDE, proposal.level, "commit a decision")
    _require_answer(caller, proposal.base, proposal.guardian, "whatever the reason")


def evidence_of(reader: Reader, caller: Caller, unit_id: str) -> Unit:
    """The evidence with this id. Raises if it is not visible to this seat, not live, or of another kind."""
    unit = reader.unit(unit_id)
    if unit is None or not is_visible(unit, caller):
        raise InvalidInput(
            f"Evidence {unit_id!r} can't be seen from {caller.scope}.",
            hint=Hint("give evidence from here"),
        )
    if not unit.live:
        raise InvalidInput(f"Evidence {unit_id} is {unit.status}.", hint=Hint("give evidence"))
    if unit.kind is not Kind.EVIDENCE:
        raise InvalidInput(f"Unit {unit_id} is a {unit.kind}, not evidence.", hint=Hint("give evidence"))
    return unit


def _carried(act: Act, unit_id: str, level: Level) -> str:
    """Raise evidence to the decision's level, so that both are visible there. Returns its id, or its twin's."""
    unit = evidence_of(act.transaction, act.caller, unit_id)
    if unit.level >= level:
        return unit.id
    scope = act.caller.scope.at(level)
    twin = twin_of(act.transaction, unit, scope.key)
    if twin is not None:
        return twin.id
    changes = {"scope": scope.segments, "status": str(Status.VERIFIED)}
    payload = {"from": unit.scope.segments, "because": ["a decision rests on it"], "set": changes}
    return change(act, EventType.UNIT_PROMOTED, unit, payload).id


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
        raise NotFound(f"No request {request_id!r} is open here.", hint="It was answered, or is of another project.")
    return request


def answer(act: Act, request_id: str, reason: str, decision_id: str | None, **more: bool) -> None:
    """Answer a request with the decision that it became, or with the reason why not; or reopen it with `reopens`."""
    payload = {"request": request_id, "reason": reason, "decision": decision_id} | more
    act.record(EventType.REQUEST_ANSWERED, payload, subject=subject_of(act.caller.stream))


def _request(event: Event) -> DecisionRequest:
    asked = DecisionRequest.fields_from_json((event.payload or {})["proposal"])
    return DecisionRequest(id=event.id, actor=event.actor, scope=event.scope, at=event.recorded_at, **asked)

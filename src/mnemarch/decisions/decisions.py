"""The verbs of decisions: propose, commit, look up, relate, and impact (D1-D19)."""

from __future__ import annotations

from itertools import islice

from mnemarch.decisions import guard, loading, proposals
from mnemarch.errors import Hint, InvalidInput, NotAllowed
from mnemarch.log.untrusted import is_id
from mnemarch.model.caller import Caller, Level, checked_id
from mnemarch.model.decision import (
    AnchorKind,
    Decision,
    DecisionProposal,
    DecisionRequest,
    Impact,
    Loaded,
    Reason,
    Relation,
    RelationType,
    Strength,
    is_original,
)
from mnemarch.model.stamps import new_id
from mnemarch.model.unit import Claim, Kind, Unit
from mnemarch.model.value import member_of, replace
from mnemarch.policy.admission import checked_count, checked_list, checked_name, checked_text
from mnemarch.policy.permissions import Deed
from mnemarch.units import finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    from mnemarch.log.act import Act, Log
    from mnemarch.model.outcome import Refused
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.units.remember import Intake

    T = TypeVar("T")

_DEPTH_MAX = 64
_NODES_MAX = _LIMIT_MAX = 10_000
_REASON_BYTES_MAX = 4_096
_USUAL = {"strength": Strength.NORMAL, "domain": loading.GLOBAL, "level": Level.PROJECT}
_OF_A_DECISION = ("text", "reason", "evidence", "snapshots", "strength", "domain", "level")


class Decisions:
    """The decisions that a seat can see and make. It has no state: the caller holds a proposal until the commit."""

    def __init__(self, log: Log, caller: Caller, intake: Intake) -> None:
        self._log = log
        self._caller = caller
        self._intake = intake

    # Evidence and anchors

    def add_evidence(self, content: str, tags: Sequence[str] = (), *, level: Level | str | None = None) -> Unit:
        """Store a snapshot, word for word, as evidence for decisions (D1)."""
        named = [checked_name(tag, "a tag") for tag in checked_list(tags, "tags")]
        return self._kept(proposals.snapshot_of(content, named), level)

    def add_anchor(
        self, hint: str, target_id: str, kind: str, *, domain: str = "global", level: Level | str | None = None
    ) -> Unit:
        """Store a hint that leads to one version of a decision, or to evidence (D19)."""
        named = member_of(AnchorKind, kind, "kind of anchor")
        whole = self._whole(target_id)
        target = self._read(lambda reader: reader.unit(whole))
        if target is None or target.scope.key not in self._caller.visible_keys or not is_original(target):
            hint = "Give the id of a decision or of evidence."
            raise InvalidInput(f"{target_id!r} is not a decision or evidence here.", hint=hint)
        attributes = {"target": target.id, "anchor_kind": str(named)}
        return self._kept(Claim(content=hint, kind=Kind.ANCHOR, domain=domain, attributes=attributes), level)

    def add_policy(self, text: str, *, domain: str = "global", level: Level | str = Level.ORG) -> Unit:
        """Store a principle of the org or this project. It binds before every decision (D15)."""
        where = Level.parse(level)
        if where < Level.PROJECT:
            raise InvalidInput(f"A policy can't hold at {where} scope.", hint="Add it at org or project scope.")
        self._caller.scope.at(where)
        claim = Claim(content=self._text(text, "A policy"), kind=Kind.POLICY, domain=_domain(domain))

        def work(act: Act) -> Unit:
            act.require_at(Deed.DECIDE, where, "lay down a policy")
            return proposals.exhibit(act, claim, where)

        return self._log.act(self._caller, work, durable=True)

    def _kept(self, claim: Claim, level: Level | str | None) -> Unit:
        """Store a claim. At a level that requires validation, it is verified by this act (R4)."""
        from mnemarch.model.outcome import Refused

        where = self._own_level() if level is None else Level.parse(level)
        if self._log.config.policy.requires_validation(where):
            self._caller.scope.at(where)
            checked = replace(claim, content=self._text(claim.content, "The content"), domain=_domain(claim.domain))

            def work(act: Act) -> Unit:
                act.require_at(Deed.WRITE, where, f"keep {claim.kind}")
                return proposals.exhibit(act, checked, where)

            return self._log.act(self._caller, work)
        [answered] = self._intake.remember([replace(claim, level=where)])
        if isinstance(answered, Refused):
            raise NotAllowed(answered.reason, rule=answered.rule, hint="Choose a level at which this seat may write.")
        return answered.unit

    def _own_level(self) -> Level:
        """The narrowest level of this seat, up to its project, that its actor may write at. A person's is the project.

        If there is none, it is the seat's own level, where the policy then refuses.
        """
        levels = [scope.level for scope in self._caller.scope.visible]
        allows, kind = self._log.config.policy.allows, self._caller.actor.kind
        fit = (level for level in levels if level <= Level.PROJECT and allows(kind, Deed.WRITE, level))
        return next(fit, levels[0])

    def _text(self, text: str, what: str) -> str:
        return proposals.read_ahead(checked_text(text, what, self._log.config.limits.text_bytes_max))

    # Proposing and committing

    def propose(
        self,
        text: str,
        *,
        reason: Reason | Mapping[str, Any] | None = None,
        evidence: Sequence[str] = (),
        snapshots: Sequence[str] = (),
        strength: Strength | str | None = None,
        domain: str | None = None,
        level: Level | str | None = None,
        revises: str | None = None,
    ) -> DecisionProposal:
        """A proposal with the guardian's verdict, conflicts and impact. Nothing is stored (D2).

        It rests on existing `evidence`, or on `snapshots`: texts that `commit` stores as evidence. `revises` is the
        version that the caller saw. A revision keeps its strength, domain and level by default.
        """
        parts = {"text": text, "reason": reason, "evidence": evidence, "snapshots": snapshots}
        chosen = {"strength": strength, "domain": domain, "level": level}
        named = None if revises is None else self._whole(revises)
        return self._read(lambda reader: self._proposal(reader, parts, chosen, named))

    def _proposal(
        self, reader: Reader, parts: dict[str, Any], chosen: dict[str, Any], revises: str | None
    ) -> DecisionProposal:
        caller = self._caller
        base = None if revises is None else guard.revised(reader, caller, revises)
        usual = _USUAL if base is None else {"strength": base.strength, "domain": base.domain, "level": base.unit.level}
        checked = self._checked(
            **parts, **{name: usual[name] if each is None else each for name, each in chosen.items()}
        )
        for unit_id in checked["evidence"]:
            proposals.evidence_of(reader, caller, unit_id)
        standing = {name: checked[name] for name in chosen}
        radius, reached = (Impact(nodes=()), []) if base is None else self._radius(reader, base.root_id)
        verdict, conflicts = proposals.guarded(reader, caller, base, reached, **standing)
        where = {"domain": checked["domain"], "level": checked["level"], "base": base}
        opposed = guard.opposed(reader, caller, checked["text"], **where)
        return DecisionProposal(
            id=new_id(),
            scope=caller.scope.at(checked["level"]),
            revises=None if base is None else base.root_id,
            base=base,
            blast_radius=radius,
            conflicts=(*conflicts, *(one for one, _ in opposed if one not in conflicts)),
            guardian=verdict,
            **checked,
        )

    def _checked(
        self, *, text: Any, reason: Any, evidence: Any, snapshots: Any, strength: Any, domain: Any, level: Any
    ) -> dict[str, Any]:
        """The checked parts of a decision (R12)."""
        cited = tuple(self._whole(each) for each in checked_list(evidence, "evidence"))
        quoted = tuple(self._text(each, "A snapshot") for each in checked_list(snapshots, "snapshots"))
        if not cited and not quoted:
            raise InvalidInput("A decision needs at least one evidence (R12).", hint=Hint("give evidence"))
        return {
            "text": self._text(text, "A decision"),
            "reason": _checked_reason(reason),
            "evidence": cited,
            "snapshots": quoted,
            "strength": Strength.parse(strength),
            "domain": _domain(domain),
            "level": Level.parse(level),
        }

    def commit(self, proposal: DecisionProposal, *, override: str | None = None) -> Decision | Refused:
        """Make a proposal a decision, durable at once (D3). A repeated commit, or a known text, returns that decision.

        If the actor may not decide, it becomes a request that waits for a person or an orchestrator (R12).
        """
        given: Any = proposal
        if not isinstance(given, DecisionProposal) or not is_id(given.id):
            raise InvalidInput(f"{given!r:.200} is no proposal.", hint=Hint("make a decision"))
        if given.revises != (given.base.root_id if isinstance(given.base, Decision) else given.base):
            raise InvalidInput(f"Proposal {given.id} does not revise what it names.", hint=Hint("revise the decision"))
        # The caller may have changed the proposal, so check R12 again.
        checked = replace(given, **self._checked(**{name: getattr(given, name) for name in _OF_A_DECISION}))
        why = _override(override)
        if not self._log.config.policy.allows(self._caller.actor.kind, Deed.DECIDE, checked.level):
            return self._requested(checked)
        return self._log.act(self._caller, lambda act: proposals.commit(act, checked, why, None), durable=True)

    def _requested(self, proposal: DecisionProposal) -> Refused:
        """The answer to an actor that may not decide. The proposal waits in the inbox."""
        from mnemarch.model.outcome import Refused

        known = self._read(lambda reader: proposals.decided_already(reader, proposal))
        if known is not None:
            return Refused(rule="R12", reason=f"Decision {known.id} is in force and says the same.", unit_id=known.id)
        request = self._log.act(self._caller, lambda act: proposals.ask(act, proposal), durable=True)
        return Refused(
            rule="R12",
            reason=f"{self._caller.actor} may not commit a decision at {proposal.level} scope. It waits in the inbox as"
            f" request {request.id} for a person or an orchestrator.",
            unit_id=request.id,
        )

    # Requests of others

    def requests(self) -> list[DecisionRequest]:
        """The unanswered requests for decisions in this project, oldest first."""
        return self._ask(proposals.open_requests)

    def accept_request(self, request_id: str, *, override: str | None = None) -> Decision:
        """Decide a request, as a new proposal of this actor against the version that the asker saw."""
        named, why = checked_id(request_id, "a request's id"), _override(override)
        request = self._ask(proposals.waiting_request, named)
        # In the scope of the request, where its evidence is visible and its level means the same.
        caller = Caller(self._caller.actor, request.scope, self._caller.session, self._caller.root)
        there = Decisions(self._log, caller, self._intake)
        fields = ("reason", "evidence", "snapshots", "strength", "domain", "level", "revises")
        proposal = there.propose(request.text, **{name: getattr(request, name) for name in fields})

        def work(act: Act) -> Decision:
            return proposals.commit(act, proposal, why, proposals.waiting_request(act.transaction, act.caller, named))

        return self._log.act(caller, work, durable=True)

    def decline_request(self, request_id: str, reason: str) -> None:
        """Decline a request, with a reason."""
        named, why = checked_id(request_id, "a request's id"), checked_text(reason, "The reason", _REASON_BYTES_MAX)

        def work(act: Act) -> None:
            request = proposals.waiting_request(act.transaction, act.caller, named)
            act.require_at(Deed.DECIDE, request.level, f"decline request {named}")
            proposals.answer(act, named, why, None)

        self._log.act(self._caller, work)

    def check(self, proposal: DecisionProposal) -> None:
        """Raise now if `commit` would refuse this actor with any override."""
        proposals.check(self._caller, self._log.config.policy, proposal)

    # Looking up

    def get(self, decision_id: str) -> Decision:
        """One version of a decision."""
        return self._ask(guard.visible_decision, self._whole(decision_id))

    def in_force(self, decision_id: str) -> Decision:
        """The version in force of a decision. The id may name any version."""
        return self._ask(guard.in_force, self._whole(decision_id))

    def active(self, domain: str = "global", *, limit: int = 50, after: str | None = None) -> list[Decision]:
        """The decisions in force in a domain, firmest first. `after` is the last id of the previous page."""
        last = None if after is None else self._whole(after)
        return self._ask(_page, _domain(domain), checked_count(limit, "limit", _LIMIT_MAX), last)

    def domains(self) -> list[str]:
        """The domains with decisions in force for this seat."""
        keys = self._caller.visible_keys
        return self._read(lambda reader: sorted({name for key in keys for name in reader.domains_decided(key)}))

    def history(self, decision_id: str) -> list[Decision]:
        """Every version, oldest first (D4, D7)."""
        return self._ask(guard.versions, self._whole(decision_id))

    def load(
        self,
        domain: str | None = None,
        phase: str | None = None,  # noqa: ARG002 - routes work, never filters memory (D17)
        *,
        around: str | None = None,
        limit: int = 200,
    ) -> list[Loaded]:
        """The decisions and policies to know first in a domain, in the order of D15.

        `around` is the decision that is being worked on.
        """
        checked_count(limit, "limit", _LIMIT_MAX)
        named = None if domain is None else _domain(domain)
        at = None if around is None else self._whole(around)

        def work(reader: Reader) -> list[Loaded]:
            root = None if at is None else guard.root_of(reader, self._caller, at)
            return loading.loaded(reader, self._caller, named, root, limit)

        return self._read(work)

    # Relations

    def relate(self, source_id: str, relation: RelationType | str, target_id: str) -> None:
        """State a relation between two decisions (D10)."""
        sides = (self._whole(source_id), RelationType.parse(relation), self._whole(target_id))
        self._log.act(self._caller, lambda act: guard.relate(act, *sides))

    def unrelate(
        self, source_id: str, relation: RelationType | str, target_id: str, *, override: str | None = None
    ) -> None:
        """Drop a relation. `override` is the reason, needed if that frees a decision from an axis."""
        sides, why = (self._whole(source_id), RelationType.parse(relation), self._whole(target_id)), _override(override)
        self._log.act(self._caller, lambda act: guard.unrelate(act, *sides, why))

    def relations(self, decision_id: str) -> list[Relation]:
        """The relations from and to a decision, by the roots of both sides."""
        return self._ask(guard.relations, self._whole(decision_id))

    def impact(self, decision_id: str, *, depth: int | None = None, nodes: int | None = None) -> Impact:
        """The decisions that a change would reach by explicit relations, with the path to each (D11-D14)."""
        named = self._whole(decision_id)
        depth_max = None if depth is None else checked_count(depth, "depth", _DEPTH_MAX)
        nodes_max = None if nodes is None else checked_count(nodes, "nodes", _NODES_MAX)

        def work(reader: Reader) -> Impact:
            return self._radius(reader, guard.root_of(reader, self._caller, named), depth_max, nodes_max)[0]

        return self._read(work)

    def _radius(
        self, reader: Reader, root: str, depth_max: int | None = None, nodes_max: int | None = None
    ) -> tuple[Impact, list[Decision]]:
        rules = self._log.config.decisions
        return guard.blast_radius(
            reader,
            self._caller,
            root,
            depth_max=rules.impact_depth_max if depth_max is None else depth_max,
            nodes_max=rules.impact_nodes_max if nodes_max is None else nodes_max,
        )

    def broken_anchors(self, limit: int = 200) -> list[Unit]:
        """Anchors whose target is gone or no longer in force. They are only reported, never moved (R12)."""
        checked_count(limit, "limit", _LIMIT_MAX)
        return self._read(lambda reader: list(islice(loading.broken_anchors(reader, self._caller), limit)))

    def _whole(self, id: str) -> str:
        """The whole id of a unit for a partial id."""
        checked = checked_id(id, "an id")
        return checked if finding.is_whole(checked) else self._ask(finding.unit_id, checked)

    def _ask(self, question: Callable[..., T], *arguments: object) -> T:
        return self._read(lambda reader: question(reader, self._caller, *arguments))

    def _read(self, work: Callable[[Reader], T]) -> T:
        return self._log.store.read(work)


def _page(reader: Reader, caller: Caller, domain: str, limit: int, after: str | None) -> list[Decision]:
    last = None if after is None else guard.visible_decision(reader, caller, after)
    page: list[Decision] = []
    for strength in sorted(Strength, reverse=True):
        if last is None or strength <= last.strength:
            begin = last.id if last is not None and strength == last.strength else ""
            units = loading.decided(reader, caller, domain, strength, begin)
            page += [Decision(unit) for unit in islice(units, limit - len(page))]
    return page


def _override(why: str | None) -> str | None:
    return None if why is None else checked_text(why, "The override", _REASON_BYTES_MAX)


def _domain(name: Any) -> str:
    return checked_name(name, "a domain")


def _checked_reason(reason: Any) -> Reason:
    try:
        # A Reason is checked too, because a value can be made without its check.
        parts = reason.to_json() if isinstance(reason, Reason) else reason
        checked = Reason(parts["type"], parts["summary"], parts.get("tradeoff"))
    except (TypeError, KeyError, AttributeError):
        raise InvalidInput(
            "A decision needs a reason (R12)." if reason is None else f"{reason!r} is no reason.",
            hint=Hint("give a reason"),
        ) from None
    if checked.tradeoff not in (None, ""):
        checked_text(checked.tradeoff, "The trade-off", _REASON_BYTES_MAX)
    return checked

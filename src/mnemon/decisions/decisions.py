"""Decisions from a seat (D1-D19): propose, commit, look up, relate, and what a change would reach."""

from __future__ import annotations

from itertools import islice

from mnemon.decisions import chain, loading
from mnemon.errors import InvalidInput
from mnemon.model.actor import checked_id
from mnemon.model.decision import (
    AnchorKind,
    Decision,
    DecisionProposal,
    Impact,
    Reason,
    RelationType,
    Strength,
    standing_of,
)
from mnemon.model.ids import new_id
from mnemon.model.scope import Level
from mnemon.model.unit import Kind
from mnemon.model.value import replace
from mnemon.policy.admission import checked_count, checked_list, checked_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    from mnemon.ledger.act import Ledger
    from mnemon.model.claim import Claim
    from mnemon.model.decision import Loaded, Relation
    from mnemon.model.outcome import Refused, Stored
    from mnemon.model.presence import Presence
    from mnemon.model.unit import Unit
    from mnemon.ports import Reader

    T = TypeVar("T")

_DEPTH_MAX = 64
_NODES_MAX = 10_000
_LIMIT_MAX = 10_000
_REASON_BYTES_MAX = 4_096


class Decisions:
    """The decisions that a seat can see and make. Nothing is kept here: a proposal lives with whoever asked for it."""

    def __init__(self, ledger: Ledger, presence: Presence, remember: Callable[[Claim], Stored | Refused]) -> None:
        self._ledger = ledger
        self._presence = presence
        self._remember = remember

    # Evidence and anchors

    def add_evidence(self, content: str, tags: Sequence[str] = (), *, level: Level | str | None = None) -> Unit:
        """Keep a snapshot, word for word, that decisions can rest on (D1)."""
        named = [checked_text(tag, "A tag", _REASON_BYTES_MAX) for tag in checked_list(tags, "tags")]
        return self._kept(content, Kind.EVIDENCE, {"tags": named}, level)

    def add_anchor(self, hint: str, target_id: str, kind: str, *, domain: str = "global") -> Unit:
        """Leave a hint that leads to one version of a decision, or to an evidence (D19)."""
        try:
            named = AnchorKind(kind)
        except ValueError:
            raise InvalidInput(
                f"{kind!r} is no kind of anchor.", hint=f"Use one of: {', '.join(AnchorKind)}."
            ) from None
        target = self._read(lambda reader: reader.unit(checked_id(target_id, "a target's id")))
        seen = target is not None and target.scope.key in self._presence.visible_keys
        if target is None or not seen or (target.kind is not Kind.EVIDENCE and standing_of(target) is None):
            raise InvalidInput(
                f"{target_id!r} is no decision or evidence here.",
                hint="Anchor a version of a decision, or an evidence.",
            )
        return self._kept(hint, Kind.ANCHOR, {"target": target.id, "anchor_kind": str(named)}, None, domain)

    def _kept(
        self, content: str, kind: Kind, attributes: dict[str, Any], level: Level | str | None, domain: str = "global"
    ) -> Unit:
        """Where knowledge needs no validation it is claimed like any other; elsewhere it is an exhibit (R4)."""
        from mnemon.model.claim import Claim
        from mnemon.model.outcome import Refused

        where = self._presence.scope.level if level is None else Level.parse(level)
        claim = Claim(content=content, kind=kind, level=where, domain=domain, attributes=attributes)
        if self._ledger.config.policy.requires_validation(where):
            text = checked_text(content, "The content", self._ledger.config.limits.text_bytes_max)
            self._presence.scope.at(where)
            checked = replace(claim, content=text, domain=checked_id(domain, "a domain"))
            return self._ledger.act(self._presence, lambda act: chain.exhibit(act, checked, where))
        answered = self._remember(claim)
        if isinstance(answered, Refused):
            raise InvalidInput(f"{answered.reason} ({answered.rule})", hint="Choose a level this seat may write at.")
        return answered.unit

    # Proposing and committing

    def propose(
        self,
        text: str,
        *,
        reason: Reason | Mapping[str, Any],
        evidence: Sequence[str],
        strength: Strength | str | None = None,
        domain: str | None = None,
        level: Level | str | None = None,
        revises: str | None = None,
    ) -> DecisionProposal:
        """What a decision would be and break, before anybody commits it. Nothing is stored (D2)."""
        said = checked_text(text, "A decision", self._ledger.config.limits.text_bytes_max)
        why = _reason_given(reason)
        cited = tuple(checked_id(each, "an evidence's id") for each in checked_list(evidence, "evidence"))
        if not cited:
            raise InvalidInput("A decision needs at least one evidence (R12).", hint="evidence=[add_evidence(...).id]")
        return self._read(lambda reader: self._proposal(reader, said, why, cited, strength, domain, level, revises))

    def _proposal(
        self,
        reader: Reader,
        text: str,
        reason: Reason,
        evidence: tuple[str, ...],
        strength: Strength | str | None,
        domain: str | None,
        level: Level | str | None,
        revises: str | None,
    ) -> DecisionProposal:
        presence = self._presence
        base = None if revises is None else chain.in_force(reader, presence, checked_id(revises, "a decision's id"))
        firm = Strength.parse(strength) if strength is not None else base.strength if base else Strength.NORMAL
        wide = Level.parse(level) if level is not None else base.unit.level if base else Level.PROJECT
        presence.scope.at(wide)
        for unit_id in evidence:
            chain.evidence_of(reader, presence, unit_id)
        radius, reached = (Impact(nodes=()), []) if base is None else self._radius(reader, base.root_id)
        verdict, conflicts = chain.guarded(reader, presence, firm, base, reached)
        return DecisionProposal(
            id=new_id(),
            text=text,
            strength=firm,
            domain=checked_id(domain, "a domain") if domain is not None else base.domain if base else "global",
            level=wide,
            reason=reason,
            evidence=evidence,
            revises=None if base is None else base.root_id,
            base=base,
            blast_radius=radius,
            conflicts=conflicts,
            guardian=verdict,
        )

    def commit(self, proposal: DecisionProposal, *, override: str | None = None) -> Decision:
        """Make it a decision, durable at once (D3). The same proposal committed again gives the same decision."""
        given: Any = proposal
        if not isinstance(given, DecisionProposal):
            raise InvalidInput(f"{given!r} is no proposal.", hint="commit(propose(...))")
        why = None if override is None else checked_text(override, "The override", _REASON_BYTES_MAX)
        return self._ledger.act(self._presence, lambda act: chain.commit(act, proposal, why), durable=True)

    # Looking up

    def get(self, decision_id: str) -> Decision:
        """One version of a decision."""
        return self._read(lambda reader: chain.found(reader, self._presence, checked_id(decision_id, "an id")))

    def in_force(self, decision_id: str) -> Decision:
        """The version that holds of the decision that this id, of whichever version, names."""
        return self._read(lambda reader: chain.in_force(reader, self._presence, checked_id(decision_id, "an id")))

    def active(self, domain: str = "global", *, limit: int = 50, after: str | None = None) -> list[Decision]:
        """What is in force in a domain, the firmest first; `after` is the id of the last one of the page before."""
        checked_count(limit, "limit", _LIMIT_MAX)
        named = checked_id(domain, "a domain")
        last = None if after is None else checked_id(after, "a decision's id")
        return self._read(lambda reader: self._page(reader, named, limit, last))

    def _page(self, reader: Reader, domain: str, limit: int, after: str | None) -> list[Decision]:
        last = None if after is None else chain.found(reader, self._presence, after)
        page: list[Decision] = []
        for strength in sorted(Strength, reverse=True):
            if last is not None and strength > last.strength:
                continue
            begin = last.id if last is not None and strength == last.strength else ""
            units = loading.decided(reader, self._presence, domain, strength, begin)
            page += [Decision(unit) for unit in islice(units, limit - len(page))]
            if len(page) >= limit:
                break
        return page

    def history(self, decision_id: str) -> list[Decision]:
        """Every version, the first first (D4, D7)."""
        named = checked_id(decision_id, "an id")
        return self._read(lambda reader: chain.versions(reader, self._presence, named))

    def load(
        self,
        domain: str | None = None,
        phase: str | None = None,  # noqa: ARG002 - routes work, never filters memory (D17)
        *,
        around: str | None = None,
        limit: int = 200,
    ) -> list[Loaded]:
        """What to know first in a domain, in the order of D15; `around` is the decision that is being worked on."""
        checked_count(limit, "limit", _LIMIT_MAX)
        named = None if domain is None else checked_id(domain, "a domain")
        at = None if around is None else checked_id(around, "a decision's id")

        def work(reader: Reader) -> list[Loaded]:
            root = None if at is None else chain.root_of(reader, self._presence, at)
            return loading.loaded(reader, self._presence, named, root, limit)

        return self._read(work)

    # Relations

    def relate(self, source_id: str, relation: RelationType | str, target_id: str) -> None:
        """Say how one decision bears on another (D10)."""
        self._relate(source_id, relation, target_id, drop=False)

    def unrelate(self, source_id: str, relation: RelationType | str, target_id: str) -> None:
        """Say that it no longer does."""
        self._relate(source_id, relation, target_id, drop=True)

    def _relate(self, source_id: str, relation: RelationType | str, target_id: str, *, drop: bool) -> None:
        type = RelationType.parse(relation)
        source, target = checked_id(source_id, "a source's id"), checked_id(target_id, "a target's id")
        self._ledger.act(self._presence, lambda act: chain.relate(act, source, type, target, drop=drop))

    def relations(self, decision_id: str) -> list[Relation]:
        """The relations that begin or end at a decision, by the roots of both sides."""
        named = checked_id(decision_id, "an id")
        return self._read(lambda reader: chain.relations(reader, self._presence, named))

    def impact(self, decision_id: str, *, depth: int | None = None, nodes: int | None = None) -> Impact:
        """What changing a decision reaches, by explicit relations alone, with the path to each (D11-D14)."""
        rules = self._ledger.config.decisions
        depth_max = rules.impact_depth_max if depth is None else checked_count(depth, "depth", _DEPTH_MAX)
        nodes_max = rules.impact_nodes_max if nodes is None else checked_count(nodes, "nodes", _NODES_MAX)

        def work(reader: Reader) -> Impact:
            root = chain.root_of(reader, self._presence, checked_id(decision_id, "an id"))
            return self._radius(reader, root, depth_max, nodes_max)[0]

        return self._read(work)

    def _radius(
        self, reader: Reader, root: str, depth_max: int | None = None, nodes_max: int | None = None
    ) -> tuple[Impact, list[Decision]]:
        rules = self._ledger.config.decisions
        return chain.blast_radius(
            reader,
            self._presence,
            root,
            depth_max=rules.impact_depth_max if depth_max is None else depth_max,
            nodes_max=rules.impact_nodes_max if nodes_max is None else nodes_max,
        )

    def broken_anchors(self, limit: int = 200) -> list[Unit]:
        """Anchors whose target is gone or no longer in force: reported, never fatal, never moved (R12)."""
        checked_count(limit, "limit", _LIMIT_MAX)

        def work(reader: Reader) -> list[Unit]:
            return list(islice(loading.broken_anchors(reader, self._presence), limit))

        return self._read(work)

    def _read(self, work: Callable[[Reader], T]) -> T:
        return self._ledger.store.read(work)


def _reason_given(reason: Reason | Mapping[str, Any]) -> Reason:
    given: Any = reason
    if isinstance(given, Reason):
        return given
    try:
        return Reason(given["type"], given["summary"], given.get("tradeoff"))
    except (TypeError, KeyError, AttributeError):
        raise InvalidInput(
            f"{given!r} is no reason.", hint='Use Reason("risk", "why, in a sentence", tradeoff=None) (R12).'
        ) from None

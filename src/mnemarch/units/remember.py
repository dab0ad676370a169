"""Takes claims: checks them, adds citations from the working tree, then stores, joins or refuses them."""

from __future__ import annotations

from mnemarch.errors import Conflict, InvalidInput
from mnemarch.log.act import Act, Log, receipt_for, without_secrets
from mnemarch.log.projection import keys_of
from mnemarch.model.caller import ActorKind, Caller, Level
from mnemarch.model.event import Event, EventType
from mnemarch.model.outcome import Refused, Stored
from mnemarch.model.stamps import new_id
from mnemarch.model.testrun import short_name
from mnemarch.model.unit import (
    EXPECTED,
    KEPT_AS,
    OBSERVED,
    OF_CODE,
    Citation,
    CitationKind,
    Claim,
    DecayPolicy,
    Kind,
    Proof,
    Status,
    Trust,
    Unit,
    trust_to_json,
    waiting_key,
)
from mnemarch.model.value import replace
from mnemarch.policy.admission import checked_claim
from mnemarch.policy.kinds import KINDS
from mnemarch.policy.promotion import Refusal, cited_names, opposition, refusal_to_write
from mnemarch.text.prompt import contents_in, has_fence, without_fenced
from mnemarch.text.secrets import redacted
from mnemarch.units.conflicts import open_links, rivals_of, with_disputes
from mnemarch.units.finding import (
    event_id,
    is_same,
    is_whole,
    live_with_same_text,
    past_with_same_text,
    read_before_repeating,
    refusal_to_repeat,
    rejected_alike,
)
from mnemarch.units.life import approve
from mnemarch.units.status import (
    NO_SOURCES,
    as_gate,
    check_citations,
    other_values,
    promote,
    proof_of,
    raise_by_evidence,
    whole_names,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from mnemarch.code.codebase import Codebase
    from mnemarch.units.finding import KnownTexts
    from mnemarch.units.scene import TestSource


_OF_A_CLAIM = frozenset(
    {EventType.CLAIM_REFUSED, EventType.UNIT_REMEMBERED, EventType.UNIT_MERGED, EventType.UNIT_MENTIONED}
)


def remember(
    act: Act, claim: Claim, sources: Mapping[str, TestSource] = NO_SOURCES, secrets: tuple[str, ...] = ()
) -> Stored | Refused:
    """Store one checked claim, at the level that its evidence reaches.

    `sources` describes the cited tests in the working tree. `secrets` are the kinds of secrets redacted from the text.
    """
    earlier = _earlier(act, claim)
    if earlier is not None:
        return earlier
    proof = None
    if claim.citations:
        check_citations(act.transaction, act.caller, claim.citations)
        citations, sources = whole_names(act.transaction, act.caller.stream, claim.citations, sources)
        claim = replace(claim, citations=citations)
        assert isinstance(claim.level, Level)
        proof = proof_of(act, claim, act.caller.scope.at(claim.level), sources)
    carries = proof is not None and proof.carries
    if KEPT_AS in claim.attributes and not carries:
        proof = None  # A test that was only reported, or is not about the claim, does not verify it.
    if proof is None and claim.level is Level.WORKTREE:
        claim = _as_observed(act, claim)
    # Nearly every text is new. A new text needs no check for same, rejected or replaced units.
    stream = act.caller.stream
    known_texts = act.transaction.together(lambda reader: read_before_repeating(reader, stream, claim.content))
    is_new = not known_texts[0]
    known = None if is_new else _same(act, claim)
    refusal = _refusal(act, claim, known, known_texts, is_verified=proof is not None, is_witnessed=carries)
    if refusal is not None:
        payload = {"claim": claim.to_json(), "rule": refusal.rule, "reason": refusal.reason, "hint": refusal.hint}
        event, found = act.record(EventType.CLAIM_REFUSED, payload, subject=refusal.unit_id, **_told(claim))
        return refusal.answer(receipt_for(event, redacted=tuple(sorted({*secrets, *found}))))
    known = known or (None if is_new else _taken_back(act, claim))
    if known is not None:
        stored = _joined(act, claim, known, secrets, sources)
    else:
        stored = _born(act, claim, proof, secrets, is_new=is_new)
    opposed = other_values(claim, sources)
    if opposed:
        stored = replace(stored, notes=tuple(opposition(test, value) for test, value in opposed.items()))
    return _lifted(act, stored) if carries and stored.unit.level < Level.PROJECT else stored


def _as_observed(act: Act, claim: Claim) -> Claim:
    """The claim, raised to the project as observed if it cites a test run that this program witnessed (R20)."""
    for citation in claim.citations:
        event = act.transaction.event(citation.ref) if citation.kind is CitationKind.LOG else None
        payload = (event and event.payload) or {}
        if event is not None and event.type is EventType.TASK_VERIFIED and payload.get("witnessed"):
            kept = {KEPT_AS: OBSERVED, "kept_by": f"{payload['command']}, {event.recorded_at:%Y-%m-%d}"}
            return replace(claim, level=Level.PROJECT, attributes=dict(claim.attributes) | kept)
    return claim


def _lifted(act: Act, stored: Stored) -> Stored:
    """The outcome after the gate raised the unit to the project. Unchanged if a rule forbids that."""
    outcome = promote(as_gate(act), stored.unit.id, Level.PROJECT, None)
    if isinstance(outcome, Refused):
        return stored
    return replace(stored, unit=outcome.unit, merged=stored.merged or outcome.merged)


def _refusal(
    act: Act, claim: Claim, known: Unit | None, known_texts: KnownTexts, *, is_verified: bool, is_witnessed: bool
) -> Refusal | None:
    """Why the claim is refused, or None. Only a person may repeat a rejected text (R4, R5)."""
    assert isinstance(claim.level, Level)
    actor = act.caller.actor
    if known is None and actor.kind is not ActorKind.HUMAN:
        refusal = refusal_to_repeat(act, claim, known_texts=known_texts)
        if refusal is not None:
            return refusal
    if KEPT_AS in claim.attributes:
        return None  # The program keeps it; its author does not write at that level (R4).
    status = Status.VERIFIED if is_verified else Status.HYPOTHESIS
    return refusal_to_write(actor, claim.level, status, act.config.policy, is_witnessed=is_witnessed)


def _taken_back(act: Act, claim: Claim) -> Unit | None:
    """The rejected unit with this text, approved because a person repeats it. None if there is no such unit."""
    assert isinstance(claim.kind, Kind)
    for unit, _ in rejected_alike(act.transaction, _wide(act, claim), claim):
        if is_same(unit, claim.kind, claim.domain, claim.content, claim.attributes):
            return approve(act, unit.id, None)
    return None


def _wide(act: Act, claim: Claim) -> list[str]:
    """The keys of visible scopes that reach at least as far as the claim."""
    assert isinstance(claim.level, Level)
    return [scope.key for scope in act.caller.scope.visible if scope.level >= claim.level]


def _earlier(act: Act, claim: Claim) -> Stored | Refused | None:
    """The outcome of the earlier claim with this idempotency key, or None."""
    if claim.key is None:
        return None
    event = act.transaction.event_for_key(act.caller.scope_key, str(act.caller.actor), claim.key)
    if event is None:
        return None
    receipt = receipt_for(event, duplicate=True)
    payload = event.payload
    unit = act.transaction.unit(event.subject or "")
    if event.type not in _OF_A_CLAIM or payload is None or _said(payload) != claim.content:
        raise Conflict(
            f"This key already stands for event {event.id}, whose content differs or was erased.",
            hint="Use a new key for a new claim; nothing was stored.",
            current=unit,
        )
    if event.type is EventType.CLAIM_REFUSED:
        judged = act.transaction.event_for_key(event.scope.key, str(event.actor), waiting_key(event.id))
        if judged is None or judged.type is EventType.CLAIM_REFUSED:
            told = (judged and judged.payload) or payload
            return Refused(rule=str(told["rule"]), reason=str(told["reason"]), receipt=receipt)
        # The gate has accepted the refused claim since.
        event, unit = judged, act.transaction.unit(judged.subject or "")
    assert unit is not None
    return Stored(unit=unit, receipt=receipt, merged=event.type is not EventType.UNIT_REMEMBERED)


def _said(payload: dict[str, Any]) -> str:
    """The text of a claim in its event, whether it was refused, stored or joined to a unit."""
    holder = payload.get("claim") or payload.get("unit")
    return str(holder["content"] if holder else payload["said"])


def _same(act: Act, claim: Claim) -> Unit | None:
    """The live unit with this text at the claim's level or wider, or None: each fact has only one unit (R5, R6).

    If recall handed the text out here, the claim is an echo of that unit. The claim's kind and domain don't matter
    then, and the unit may be superseded.
    """
    assert isinstance(claim.kind, Kind)
    wide = _wide(act, claim)
    for unit in live_with_same_text(act.transaction, act.caller.visible_keys, claim.content):
        is_it = is_same(unit, claim.kind, claim.domain, claim.content, claim.attributes)
        if (is_it and unit.scope.key in wide) or _is_echo(act, claim, unit):
            return unit
    once = past_with_same_text(act.transaction, act.caller.visible_keys, claim.content)
    return next((unit for unit in once if unit.status is Status.DEPRECATED and _is_echo(act, claim, unit)), None)


def _is_echo(act: Act, claim: Claim, unit: Unit) -> bool:
    """Whether a claim only repeats a recalled unit, without new evidence or a wider level."""
    assert isinstance(claim.level, Level)
    if claim.kind is Kind.EVIDENCE:
        return False
    return unit.level >= claim.level and not claim.citations and _was_handed(act, unit)


def _was_handed(act: Act, unit: Unit) -> bool:
    """Whether recall handed the unit to this seat's scope before."""
    use = act.transaction.use(unit.id, act.caller.scope_key)
    return use is not None and use.handed


def _joined(act: Act, claim: Claim, unit: Unit, secrets: tuple[str, ...], sources: Mapping[str, TestSource]) -> Stored:
    """Add the claim to a known unit as another voice. An echo of recall is only recorded as a mention (R6)."""
    cited = [citation.to_json() for citation in claim.citations]
    echo = not cited and _was_handed(act, unit)
    voice = (act.caller.actor, act.caller.scope, claim.session or act.caller.session)
    heard = any(source.voice == voice for source in unit.provenance)
    type = EventType.UNIT_MENTIONED if echo or (heard and not cited) else EventType.UNIT_MERGED
    payload: dict[str, Any] = {"said": claim.content, "cite": cited}
    # What a test compared with when it was first cited stays: else a changed test could verify an old claim.
    known = set(map(short_name, cited_names(unit.citations))) if EXPECTED in unit.attributes else ()
    tests = [name for name in cited_names(claim.citations) if short_name(name) not in known]
    attributes = _with_expected(unit.attributes, tests, sources)
    if attributes != unit.attributes and unit.proof is None:
        payload["set"] = {"attributes": attributes}
    event, found = act.record(type, payload, subject=unit.id, **_told(claim))
    after = raise_by_evidence(act, act.known_unit(unit.id), None, sources)
    stored = Stored(unit=after, receipt=receipt_for(event, redacted=tuple(sorted({*secrets, *found}))), merged=True)
    return with_disputes(stored, open_links(act, after)) if cited else stored


def _born(act: Act, claim: Claim, proof: Proof | None, secrets: tuple[str, ...], *, is_new: bool) -> Stored:
    rivals = rivals_of(act, claim, _all_citations(claim))
    event, found = record_unit(act, claim, proof)
    unit = act.known_unit(event.subject)
    stored = Stored(unit=unit, receipt=receipt_for(event, redacted=tuple(sorted({*secrets, *found}))))
    disputes = open_links(act, unit, rivals=rivals, is_new=True, is_new_text=is_new)
    return with_disputes(stored, disputes) if disputes else stored


def record_unit(act: Act, claim: Claim, proof: Proof | None) -> tuple[Event, tuple[str, ...]]:
    """Record a new unit. No other event of the log has its content."""
    rules = act.config.trust
    assert isinstance(claim.level, Level)
    assert isinstance(claim.kind, Kind)
    decay = DecayPolicy(claim.decay_policy or KINDS[claim.kind].decay_policy)
    status = Status.HYPOTHESIS if proof is None else Status.VERIFIED
    confidence = rules.initial_draft if proof is None else rules.initial_verified
    said = {
        "content": claim.content,
        "domain": claim.domain,
        "citations": [citation.to_json() for citation in _all_citations(claim)],
        "attributes": dict(claim.attributes),
    }
    # The fields that the program adds itself contain no secrets.
    clean, found = without_secrets(said if proof is None else said | {"proof": proof.to_json()})
    unit = clean | {
        "kind": str(claim.kind),
        "scope": act.caller.scope.at(claim.level).segments,
        "status": str(status),
        "trust": trust_to_json(Trust(confidence=confidence, since=act.now, decay_policy=decay)),
        "importance": claim.importance,
    }
    return act.append(EventType.UNIT_REMEMBERED, {"unit": unit}, subject=new_id(), **_told(claim)), found


def _told(claim: Claim) -> dict[str, Any]:
    """The fields of a claim that belong in the event's header."""
    return {"key": claim.key, "occurred_at": claim.occurred_at, "session": claim.session}


def _all_citations(claim: Claim) -> Sequence[Citation]:
    """The author's citations, and those of other code that the text names, which support but don't verify it (R2).

    A policy gets none of these: it rests on its author, and holds even if the files it names change (D15).
    """
    if claim.kind is Kind.POLICY or not claim.seen:
        return claim.citations
    cited = {str(citation) for citation in claim.citations}
    files = {citation.ref for citation in claim.citations if citation.kind in (CitationKind.FILE, CitationKind.SYMBOL)}
    more = [
        citation
        for citation in claim.seen
        if str(citation) not in cited and not (citation.kind is CitationKind.FILE and citation.ref in files)
    ]
    return [*claim.citations, *more]


def _with_expected(
    attributes: Mapping[str, Any], tests: Iterable[str], sources: Mapping[str, TestSource]
) -> Mapping[str, Any]:
    """The attributes with what these tests compare with now, so that a change of them is seen before they verify."""
    expects = {digest for name in tests if name in sources for digest in sources[name].expects}
    expected = " ".join(sorted(expects.union(attributes.get(EXPECTED, "").split())))
    return dict(attributes) | {EXPECTED: expected} if expects else attributes


def _expecting(claim: Claim, sources: Mapping[str, TestSource]) -> Claim:
    return replace(claim, attributes=_with_expected(claim.attributes, cited_names(claim.citations), sources))


class Intake:
    """Takes claims from one caller. `codebase` is the caller's working tree, if there is one."""

    def __init__(self, log: Log, caller: Caller, codebase: Codebase | None) -> None:
        self._log = log
        self._caller = caller
        self._codebase = codebase

    def remember(
        self, claims: Iterable[Claim], progress: Callable[[int], None] | None = None
    ) -> list[Stored | Refused]:
        """Store claims in order, a few hundred to a transaction. All are checked before the first is stored."""
        complete = [self._checked(claim) for claim in claims]
        cited = [citation for claim, _ in complete for citation in claim.citations]
        if cited:
            self._log.store.read(lambda reader: check_citations(reader, self._caller, cited))
        if self._codebase is not None:
            complete = [(self._with_named_code(claim, self._codebase), kinds) for claim, kinds in complete]
        sources = self.test_sources(cited)
        if sources:
            complete = [(_expecting(claim, sources), kinds) for claim, kinds in complete]
        size = max(1, self._log.config.limits.batch_max)
        outcomes: list[Stored | Refused] = []
        for start in range(0, len(complete), size):
            batch = complete[start : start + size]
            for claim, _ in batch:
                keys_of(claim.content)
            outcomes += self._log.act(
                self._caller,
                lambda act, batch=batch: [remember(act, claim, sources, kinds) for claim, kinds in batch],  # type: ignore[misc]
                together=True,
            )
            if progress is not None:
                progress(len(outcomes))
        return outcomes

    def completed(self, citation: Citation) -> Citation:
        """The citation, completed from the working tree. Raises if its target does not exist."""
        from mnemarch.code.citing import checked_in_tree

        if citation.kind is CitationKind.LOG:
            if is_whole(citation.ref):
                return citation
            whole = self._log.store.read(lambda reader: event_id(reader, self._caller, citation.ref))
            return replace(citation, ref=whole)
        if self._codebase is None or citation.kind not in OF_CODE:
            return checked_in_tree(citation, self._caller.root)
        if not self._codebase.tree.has(citation.ref) and (path := self._codebase.ending_with(citation.ref)) is not None:
            citation = replace(citation, ref=path)  # It was cited relative to a subfolder.
        return checked_in_tree(citation, self._caller.root, self._codebase.tree)

    def _checked(self, claim: Claim) -> tuple[Claim, tuple[str, ...]]:
        """The claim without secrets, and the kinds of secrets that were redacted."""
        checked = checked_claim(claim, self._caller, self._log.config.limits.text_bytes_max)
        if has_fence(checked.content):
            checked = replace(checked, content=self._without_recalled(checked.content))
        content, kinds = redacted(checked.content)
        if kinds or checked.citations or checked.seen:
            citations = tuple(map(self.completed, checked.citations))
            checked = replace(checked, content=content, citations=citations, seen=())
        return checked, kinds

    def _with_named_code(self, claim: Claim, codebase: Codebase) -> Claim:
        """The claim with citations of the code that its text and its cited events name in the working tree."""
        logged = [item.ref for item in claim.citations if item.kind is CitationKind.LOG]
        # File names nearly always contain a dot, so a text without one is skipped.
        if not (logged or "." in claim.content.rstrip(".\n ").replace(". ", " ")):
            return claim
        from mnemarch.code.citing import cited_in_text

        events = self._log.store.read(lambda reader: [reader.event(event_id) for event_id in logged])
        data = [(event.payload or {}).get("data") for event in events if event is not None]
        return replace(claim, seen=cited_in_text(codebase, claim.content, data))

    def test_sources(self, cited: Sequence[Citation]) -> dict[str, TestSource]:
        """The sources of the cited tests, read from the working tree."""
        names = set(cited_names(cited))
        if self._codebase is None or not names:
            return {}
        from mnemarch.units.scene import sources_of

        return sources_of(self._log, self._caller, self._codebase, names)

    def _without_recalled(self, content: str) -> str:
        """The claim's text without recalled text. If nothing else is left, the text of the first recalled unit (R6)."""
        own = without_fenced(content).strip()
        if own:
            return own
        keys = self._caller.visible_keys
        for recalled in contents_in(content):
            if self._log.store.read(lambda reader, text=recalled: live_with_same_text(reader, keys, text)):  # type: ignore[misc]
                return recalled
        raise InvalidInput("This only repeats recalled memory. It is not stored again.", hint="State what is new.")

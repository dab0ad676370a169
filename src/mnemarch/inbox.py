"""The inbox (R20): what waits for a person or a lead, the most wanted first; accepted or rejected in place."""

from __future__ import annotations

from datetime import timedelta

from mnemarch.decisions.requests import open_requests
from mnemarch.errors import Hint, InvalidInput, NotAllowed, NotFound
from mnemarch.log.act import Act
from mnemarch.loops.attempts import clear_stuck
from mnemarch.model.caller import ActorKind, Caller, Level, Scope
from mnemarch.model.citation import Citation
from mnemarch.model.event import EventType
from mnemarch.model.outcome import InboxItem, Refused, Settled
from mnemarch.model.stamps import micros
from mnemarch.model.unit import ACCEPTED, KEPT_AS, LIVE_STATES, TRUSTED, Claim, LinkType, waiting_key
from mnemarch.model.value import replace
from mnemarch.policy.labels import label_of
from mnemarch.recall.question import Question
from mnemarch.units.conflicts import open_disputes
from mnemarch.units.evidence import approve, reject
from mnemarch.units.imports import judge_import, waiting_imports
from mnemarch.units.promote import accept_for_project, promote
from mnemarch.units.remember import record_unit, remember
from mnemarch.units.verify import NOT_CLAIMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from mnemarch.decisions.decisions import Decisions
    from mnemarch.engine import Engine
    from mnemarch.model.event import Event
    from mnemarch.model.unit import Unit
    from mnemarch.stores.sql.reader import Reader

_SHOWN_MAX = 20
_AGE_DAYS_MAX = 30
_READ_MAX = 500
_QUESTIONS_MAX = 100
_ANSWERS_OF_A_QUESTION = 3
# A question that shares less with a text was not after it.
_SHARE_MIN = 0.5
_SAID_CHARS = 160
_TEXTS_OF_AN_IMPORT = 3
_JUDGES = frozenset({ActorKind.HUMAN, ActorKind.ORCHESTRATOR})
CLAIM, REFUSED, REQUEST, CONFLICT, PROPOSAL, STUCK, IMPORT = (
    "claim",
    "refused claim",
    "request for a decision",
    "conflict",
    "merge proposal",
    "stuck task",
    "import",
)
_ORDER = (REQUEST, CONFLICT, STUCK, REFUSED, IMPORT, PROPOSAL, CLAIM)


def may_judge(caller: Caller) -> bool:
    return caller.actor.kind in _JUDGES


class Inbox:
    """What waits in one project, for the caller to decide."""

    def __init__(self, engine: Engine, caller: Caller, decisions: Decisions | None = None) -> None:
        self._engine = engine
        self._caller = caller
        self._decisions = decisions
        if caller.scope.project is None:
            raise InvalidInput("An inbox belongs to a project, and this seat has none.", hint=Hint("name the project"))
        if not may_judge(caller):
            raise NotAllowed(
                f"{caller.actor} may not decide what waits: the inbox is for people and orchestrators (R4).",
                rule="R4",
                hint="Ask a person or the lead to look at the inbox.",
            )

    def items(self, limit: int = _SHOWN_MAX) -> list[InboxItem]:
        """The items that wait, the most wanted first. What nobody asked for within 30 days has left."""
        self._engine.finder.catch_up()
        now = self._engine.log.clock()
        items = self._engine.store.read(lambda reader: list(self._waiting(reader, now)))
        items.sort(key=lambda item: (-item.wanted, _ORDER.index(item.what)))
        return items[:limit]

    def count(self) -> int:
        return len(self.items(_READ_MAX))

    def settle(self, typed: Sequence[str], rejection: str | None) -> list[Settled]:
        """Accept items, or reject them for a reason; nothing is done if one of them is not to be found.

        An accepted claim goes to the project, a request becomes a decision, a stuck task goes on.
        """
        items = self.items(_READ_MAX)
        named = {item.id: item for item in (_named(items, each) for each in typed)}
        for item in named.values():
            if item.what in _DECIDE:
                verb = "accepted" if rejection is None else "rejected"
                raise InvalidInput(f"{item.id} is a {item.what}: it is resolved, not {verb}.", hint=item.why)
        return [self._settled(item, rejection) for item in named.values()]

    def _settled(self, item: InboxItem, rejection: str | None) -> Settled:
        answer = "accepted" if rejection is None else f"rejected: {rejection}"
        if item.what == REQUEST:
            assert self._decisions is not None
            if rejection is not None:
                self._decisions.decline_request(item.id, rejection)
                return Settled(item.id, item.what, answer)
            return Settled(item.id, item.what, answer, self._decisions.accept_request(item.id).unit)
        work = {CLAIM: self._judged_claim, REFUSED: self._taken, STUCK: self._cleared, IMPORT: judge_import}[item.what]

        def settled(act: Act) -> Settled:
            unit = work(act, item.id, rejection)
            payload = {"what": item.what, "answer": answer}
            act.record(EventType.INBOX_SETTLED, payload, subject=item.id)
            return Settled(item.id, item.what, answer, unit)

        return self._engine.log.act(self._caller, settled, durable=True)

    # What waits

    def _waiting(self, reader: Reader, now: datetime) -> Iterator[InboxItem]:
        since = now - timedelta(days=_AGE_DAYS_MAX)
        project = self._caller.scope.at(Level.PROJECT)
        types = [EventType.INBOX_SETTLED, EventType.CLAIM_REFUSED, EventType.RECALLED]
        events = reader.events_back(project, types=types, since=micros(since), limit=_READ_MAX)
        settled = {event.subject for event in events if event.type is EventType.INBOX_SETTLED}
        scopes = self._scopes_below(reader, since)
        units = reader.units_in([scope.key for scope in scopes], live=True, limit=_READ_MAX)
        claims = [unit for unit in units if unit.kind not in NOT_CLAIMS]
        wanted = self._wanted(claims, [event for event in events if event.type is EventType.RECALLED])
        for unit in claims:
            if unit.id in wanted or unit.recorded_at >= since:
                yield _item_of_claim(unit, wanted.get(unit.id, []))
        for event in events:
            if event.type is EventType.CLAIM_REFUSED and event.id not in settled and event.payload is not None:
                yield from _items_of_refusal(reader, event)
        for request in open_requests(reader, self._caller):
            asked = f"asked by {request.actor} in {request.scope}"
            yield InboxItem(request.id, REQUEST, _cut(request.text), str(request.reason.summary), asked)
        for event in reader.stuck_tasks(project, _READ_MAX):
            if event.id not in settled:
                why = str((event.payload or {}).get("reason", ""))
                yield InboxItem(
                    event.id, STUCK, f"Task {event.scope.task} is stuck", why, f"called so by {event.actor}"
                )
        for import_id, brought in waiting_imports(reader, project).items():
            said = "; ".join(f"“{_cut(unit.content)}”" for unit in brought[:_TEXTS_OF_AN_IMPORT])
            source = str(brought[0].attributes.get("import_from", ""))
            why = f"imported by {brought[0].attributes.get('kept_by')}; a person's yes verifies all of it"
            yield InboxItem(import_id, IMPORT, f"{len(brought)} units from {source}", said, why)
        keys = [*self._caller.visible_keys, *(scope.key for scope in scopes)]
        for type, what in ((LinkType.CONTRADICTS, CONFLICT), (LinkType.DUPLICATES, PROPOSAL)):
            for dispute in open_disputes(reader, keys, type):
                texts = [f"“{_cut(unit.content)}”" for unit in reader.units(dispute.units).values()]
                yield InboxItem(dispute.id, what, " / ".join(texts), dispute.reason, _DECIDE[what])

    def _scopes_below(self, reader: Reader, since: datetime) -> list[Scope]:
        """The worktrees and tasks of the project where something happened lately."""
        scopes: dict[str, Scope] = {}
        for _, active, *_ in reader.activity_since(self._caller.scope.at(Level.PROJECT), micros(since)):
            for scope in active.visible:
                if scope.level < Level.PROJECT:
                    scopes[scope.key] = scope
        return list(scopes.values())

    def _wanted(self, claims: Sequence[Unit], recalls: Sequence[Event]) -> dict[str, list[str]]:
        """The questions that each claim would have answered, had it been visible where they were asked."""
        by_id = {unit.id: unit for unit in claims}
        keys = sorted({unit.scope.key for unit in claims})
        asked: dict[str, list[str]] = {}
        questions = {(str((event.payload or {}).get("query") or ""), event.scope): None for event in recalls}
        for query, scope in list(questions)[:_QUESTIONS_MAX]:
            weights = Question(query, self._engine.config.recall).weights if query else {}
            visible = {seen.key for seen in scope.visible}
            hidden = [key for key in keys if key not in visible]
            best = self._engine.finder.best(weights, hidden, states=LIVE_STATES, limit=_ANSWERS_OF_A_QUESTION)
            for _, sketch in best:
                share = sum(weight for word, weight in weights.items() if sketch.count(word)) / sum(weights.values())
                if sketch.id in by_id and share >= _SHARE_MIN:
                    asked.setdefault(sketch.id, []).append(query)
        return asked

    # Deciding

    @staticmethod
    def _judged_claim(act: Act, unit_id: str, rejection: str | None) -> Unit:
        """A person's yes verifies a claim for the project; a lead's only lets it through, labelled so."""
        unit = act.transaction.unit(unit_id)
        assert unit is not None
        there = Act(act.transaction, _at(act.caller, unit.scope), act.now, act.config)
        if rejection is not None:
            return reject(there, unit_id, rejection, None)
        if act.caller.actor.kind is ActorKind.HUMAN:
            approve(there, unit_id, None)
            outcome = promote(there, unit_id, Level.PROJECT, None)
        else:
            outcome = accept_for_project(there, unit_id)
        if isinstance(outcome, Refused):
            raise NotAllowed(outcome.reason, rule=outcome.rule, hint="Reject it, or have a person decide.")
        return outcome.unit

    @staticmethod
    def _cleared(act: Act, event_id: str, rejection: str | None) -> None:
        event = act.transaction.event(event_id)
        assert event is not None
        if rejection is None:
            clear_stuck(act, event.subject or "", event.scope.task, "accepted from the inbox")

    @staticmethod
    def _taken(act: Act, event_id: str, rejection: str | None) -> Unit | None:
        """A refused claim, said by whoever accepts it; a lead's keeps that label."""
        event = act.transaction.event(event_id)
        assert event is not None
        assert event.payload is not None
        claim = replace(Claim.from_json(event.payload["claim"]), level=Level.PROJECT, key=None)
        there = Act(act.transaction, _at(act.caller, event.scope), act.now, act.config)
        if rejection is not None:
            # Kept as a rejected unit, so that it is refused when it comes back (R4).
            refused, _ = record_unit(there, replace(claim, level=event.scope.level), None)
            return reject(there, refused.subject or "", rejection, None)
        if act.caller.actor.kind is ActorKind.HUMAN:
            cited = (*claim.citations, Citation.human(act.caller.actor.id))
            outcome = remember(there, replace(claim, citations=cited))
        else:
            kept = {KEPT_AS: ACCEPTED, "kept_by": act.caller.actor.id}
            outcome = remember(there, replace(claim, attributes=dict(claim.attributes) | kept))
        if isinstance(outcome, Refused):
            raise NotAllowed(outcome.reason, rule=outcome.rule, hint="Reject it, or have a person decide.")
        return outcome.unit


_DECIDE = {
    CONFLICT: "decide with: mnemarch resolve ID --winner UNIT --reason WHY (or --both)",
    PROPOSAL: "merge with: mnemarch resolve ID --winner UNIT --reason WHY (or --both to keep the two)",
}


def _named(items: Sequence[InboxItem], typed: str) -> InboxItem:
    """The item with this id, or the only one that begins so, or whose last group does."""
    named = [item for item in items if item.id == typed] or [
        item for item in items if item.id.startswith(typed) or item.id[24:].startswith(typed)
    ]
    if len(named) != 1:
        count = "Nothing waits" if not named else f"{len(named)} items wait"
        raise NotFound(f"{count} as {typed!r}.", hint=Hint("see the inbox"))
    return named[0]


def _at(caller: Caller, scope: Scope) -> Caller:
    """The caller where the item is: people and leads of a project may inspect what lies below it (R3)."""
    return Caller(caller.actor, scope, caller.session, caller.root)


def _item_of_claim(unit: Unit, questions: Sequence[str]) -> InboxItem:
    status = "is verified only there" if unit.status in TRUSTED else "is not verified"
    where = f"worktree {unit.scope.worktree}" + (f", task {unit.scope.task}" if unit.scope.task else "")
    why = f"{unit.author} said it in {where}; it {status}, so others can't see it"
    evidence = f"{label_of(unit)} {', '.join(str(item) for item in unit.citations[:3]) or 'cites nothing'}"
    if questions:
        times = "once" if len(questions) == 1 else f"{len(questions)} times"
        evidence += f"; asked for {times}, last as “{_cut(questions[0])}”"
    return InboxItem(unit.id, CLAIM, _cut(unit.content), evidence, why, wanted=len(questions))


def _items_of_refusal(reader: Reader, event: Event) -> Iterator[InboxItem]:
    """The claim that was refused for its level, unless the gate let it through since."""
    payload = event.payload or {}
    later = reader.event_for_key(event.scope.key, str(event.actor), waiting_key(event.id))
    if payload["rule"] in ("G23.validation", "G23") and later is None:
        claim = payload["claim"]
        cited = ", ".join(f"{item['kind']}:{item['ref']}" for item in claim["citations"][:3]) or "cites nothing"
        yield InboxItem(event.id, REFUSED, _cut(claim["content"]), cited, f"{event.actor}: {payload['reason']}")


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SAID_CHARS else f"{line[: _SAID_CHARS - 1]}…"

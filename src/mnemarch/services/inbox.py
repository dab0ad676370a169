"""The inbox: items that wait for a person or a lead to accept or reject, the most wanted first (R20)."""

from __future__ import annotations

from collections import Counter

from mnemarch.code.home import absent_of
from mnemarch.decisions.guard import opposed
from mnemarch.decisions.loading import GLOBAL
from mnemarch.decisions.proposals import open_requests
from mnemarch.errors import Hint, InvalidInput, NotAllowed, NotFound
from mnemarch.loops.detector import blocked_tasks, clear_stuck
from mnemarch.model.caller import ActorKind, Caller, Level
from mnemarch.model.event import Event, EventType
from mnemarch.model.outcome import InboxItem, Refused, Settled, Stored
from mnemarch.model.stamps import datetime, micros, short_id, timedelta
from mnemarch.model.unit import (
    ACCEPTED,
    KEPT_AS,
    LIVE_STATES,
    TRUSTED,
    Citation,
    Claim,
    Kind,
    LinkType,
    Unit,
    waiting_key,
)
from mnemarch.model.value import replace
from mnemarch.policy.trust import label_of
from mnemarch.recall.question import Question
from mnemarch.text.statements import topic_key
from mnemarch.text.words import counted, in_a_line
from mnemarch.units.conflicts import open_disputes
from mnemarch.units.finding import RULE, is_reworded
from mnemarch.units.imports import WAITING_MAX, imported_units, judge_imported, replacing, waiting_imports
from mnemarch.units.life import acting_in, approve, reject
from mnemarch.units.remember import record_unit, remember
from mnemarch.units.scene import NOT_CLAIMS
from mnemarch.units.status import accept_for_project, promote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from mnemarch.code.codebase import Codebase
    from mnemarch.decisions.decisions import Decisions
    from mnemarch.log.act import Act
    from mnemarch.services.engine import Engine
    from mnemarch.stores.sql.reader import Reader

    Progress = Callable[[int], None]

_SHOWN_MAX = 20
_AGE_DAYS_MAX = 30
_RECALLS_MAX = 500
_SETTLED_MAX = 10_000
_STUCK_MAX = 500
_FAILURES_MAX = 2_000
# Units read of one worktree or task, and refused claims of one actor, so that a noisy one doesn't hide the others.
_SHARE_READ_MAX = 200
_RETURNS_MIN = 3
_QUESTIONS_MAX = 100
_ANSWERS_OF_A_QUESTION = 3
# The least share of a question's words that a text must have to count as wanted.
_SHARE_MIN = 0.5
_TEXTS_OF_AN_IMPORT = 3
# Imported units judged in one transaction, which takes about a quarter of a second.
_BATCH = 200
# The types of items. Equally wanted items are sorted in this order.
_ORDER = (
    REQUEST := "request for a decision",
    CONFLICT := "conflict",
    STUCK := "stuck task",
    RETURNED := "returned claim",
    REFUSED := "refused claim",
    LEFT := "claim of an absent worktree",
    IMPORT := "import",
    PROPOSAL := "merge proposal",
    CLAIM := "claim",
)
# What a yes would make knowledge unchecked. A commit compares a request with the axes and locks itself.
_CLAIMS = frozenset({REFUSED, LEFT, CLAIM})


class Inbox:
    """The items that wait in one project for the caller to decide."""

    def __init__(self, engine: Engine, caller: Caller, decisions: Decisions | None = None) -> None:
        self._engine = engine
        self._caller = caller
        self._decisions = decisions
        # Whether a worktree, a task or an actor has more items than were read. They appear when these are settled.
        self.is_cut = False
        if caller.scope.project is None:
            raise InvalidInput("An inbox belongs to a project; this seat has none.", hint=Hint("name the project"))
        if not caller.inspects:
            raise NotAllowed(
                f"{caller.actor} may not settle items: the inbox is for people and orchestrators (R4).",
                rule="R4",
                hint="Ask a person or an orchestrator to look at the inbox.",
            )

    def items(self, limit: int = _SHOWN_MAX) -> list[InboxItem]:
        """The waiting items, the most wanted first. Claims that a lock or this tree's code contradicts are marked."""
        shown = _in_turn(self.waiting(), limit)[:limit]
        shown = self._engine.store.read(lambda reader: [self._marked(reader, item) for item in shown])
        root = self._caller.root
        if root is None:
            return shown
        view = self._engine.codebase(root).view(self._caller.scope.project, by_commit=True)
        claims = self._engine.store.read(lambda reader: reader.units([item.id for item in shown]))
        checks = view.checks(claims.values())
        stale = {unit_id: check.reason for unit_id, check in checks.items() if check.reason is not None}
        marks = {unit_id: f". Its code does not hold in this tree: {reason}" for unit_id, reason in stale.items()}
        return [replace(item, why=item.why + marks.get(item.id, "")) for item in shown]

    def _marked(self, reader: Reader, item: InboxItem) -> InboxItem:
        """The item with the axes and locks that its claim opposes (R12)."""
        if item.what not in _CLAIMS:
            return item
        unit = reader.unit(item.id)
        domain = GLOBAL if unit is None else unit.domain
        firm = opposed(reader, self._caller, item.subject, domain=domain, level=Level.PROJECT, base=None)
        told = (f". It opposes the {one.strength} {short_id(one.id)}: “{in_a_line(one.text)}”" for one, _ in firm)
        return replace(item, why=item.why + "".join(told))

    def waiting(self) -> list[InboxItem]:
        """All waiting items, except those older than 30 days that no question asked for."""
        self._engine.finder.catch_up()
        since = self._engine.log.clock() - timedelta(days=_AGE_DAYS_MAX)
        root = self._caller.root
        codebase = None if root is None else self._engine.codebase(root)
        items = self._engine.store.read(lambda reader: list(self._waiting(reader, since, codebase)))
        return [item for item in items if item.wanted or item.at >= since]

    def settle(self, typed: Sequence[str], rejection: str | None, progress: Progress | None) -> list[Settled]:
        """Accept items, or reject them for a reason. Raises before any change if one of them is not found.

        An accepted claim moves to the project, a request becomes a decision, and a stuck task goes on.
        """
        items = self.waiting()
        named = {item.id: item for item in (_named(items, each) for each in typed)}
        for item in named.values():
            if item.what in _DECIDE or (item.what == RETURNED and rejection is None):
                verb = "accepted" if rejection is None else "rejected"
                raise InvalidInput(f"{item.id} is a {item.what}: it can't be {verb}.", hint=item.why)
        return [self._settled(item, rejection, progress) for item in named.values()]

    def _settled(self, item: InboxItem, rejection: str | None, progress: Progress | None) -> Settled:
        answer = "accepted" if rejection is None else f"rejected: {rejection}"
        if item.what == REQUEST:
            assert self._decisions is not None
            if rejection is not None:
                self._decisions.decline_request(item.id, rejection)
                return Settled(item.id, item.what, answer)
            return Settled(item.id, item.what, answer, self._decisions.accept_request(item.id).unit)
        if item.what == IMPORT:
            self._judge_import(item.id, rejection, progress)
        judge = {REFUSED: self._taken, STUCK: self._cleared}.get(item.what, self._judged_claim)

        def settled(act: Act) -> Settled:
            unit = None if item.what in (RETURNED, IMPORT) else judge(act, item.id, rejection)
            payload = {"what": item.what, "answer": answer}
            act.record(EventType.INBOX_SETTLED, payload, subject=item.id)
            return Settled(item.id, item.what, answer, unit)

        return self._engine.log.act(self._caller, settled, durable=True)

    def _judge_import(self, import_id: str, rejection: str | None, progress: Progress | None) -> None:
        """Judge an import in batches, so that other writers get their turn. After an interrupt, the rest waits."""
        log, project = self._engine.log, self._caller.scope.at(Level.PROJECT)
        ids = [unit.id for unit in log.store.read(lambda reader: imported_units(reader, project, import_id))]
        for end in range(_BATCH, len(ids) + _BATCH, _BATCH):
            batch = ids[end - _BATCH : end]
            log.act(self._caller, lambda act: judge_imported(act, import_id, batch, rejection))  # noqa: B023
            if progress is not None:
                progress(min(end, len(ids)))

    # Waiting items

    def _waiting(self, reader: Reader, since: datetime, codebase: Codebase | None) -> Iterator[InboxItem]:
        project, moment = self._caller.scope.at(Level.PROJECT), micros(since)
        activity = reader.activity_since(project, moment)
        # Worktrees and tasks of the project with recent activity.
        scopes = {each.key: each for _, scope, *_ in activity for each in scope.visible if each.level < Level.PROJECT}
        closed = reader.events_back(project, types=[EventType.INBOX_SETTLED], since=moment, limit=_SETTLED_MAX)
        settled = _settled_among(closed)
        pages = [reader.units_in([key], live=True, limit=_SHARE_READ_MAX) for key in scopes]
        self.is_cut = any(len(page) == _SHARE_READ_MAX for page in pages)
        claims = [unit for page in pages for unit in page if unit.kind not in NOT_CLAIMS]
        recalls = reader.events_back(project, types=[EventType.RECALLED], since=moment, limit=_RECALLS_MAX)
        keys = [*self._caller.visible_keys, *scopes]
        disputes = [
            (what, dispute, list(reader.units(dispute.units).values()))
            for type, what in ((LinkType.CONTRADICTS, CONFLICT), (LinkType.DUPLICATES, PROPOSAL))
            for dispute in open_disputes(reader, keys, type)
        ]
        known = {unit.id for what, _, units in disputes if what == PROPOSAL and _is_known(units) for unit in units}
        known |= _known_to_all(reader, claims, [each.key for each in project.visible])
        claims = [unit for unit in claims if unit.id not in known]
        wanted = self._wanted(claims, recalls)
        there = {} if codebase is None else codebase.worktrees()
        absent = absent_of((unit.scope.worktree for unit in claims), there, codebase.clone if codebase else None)
        for unit in sorted(claims, key=lambda unit: unit.id, reverse=True):
            yield _item_of_claim(unit, wanted.get(unit.id, []), is_left=unit.scope.worktree in absent)
        for actor in sorted({actor for actor, _, type, *_ in activity if type == EventType.CLAIM_REFUSED}):
            events = reader.events_back(
                project, types=[EventType.CLAIM_REFUSED], actor=actor, since=moment, limit=_SHARE_READ_MAX
            )
            self.is_cut |= len(events) == _SHARE_READ_MAX
            yield from _items_of_refusals(reader, events, settled)
        for request in open_requests(reader, self._caller):
            asked = f"asked by {request.actor} in {request.scope}"
            why = str(request.reason.summary) + _what_it_revises(reader, request.revises)
            yield InboxItem(request.id, REQUEST, in_a_line(request.text), why, asked, str(request.actor), request.at)
        for event in reader.stuck_tasks(project, _STUCK_MAX):
            if event.id not in settled:
                why, said = str((event.payload or {}).get("reason", "")), f"marked by {event.actor}"
                task = f"Task {event.scope.task} is stuck"
                yield InboxItem(event.id, STUCK, task, why, said, str(event.actor), event.recorded_at)
        for event in blocked_tasks(reader, project, moment, _FAILURES_MAX):
            if event.id not in settled:
                payload, task = event.payload or {}, f"Task {event.scope.task} is blocked"
                said = in_a_line(payload["line"] or payload["error"])
                why = f"{payload['verdict']['reason']} Accepting clears its failed attempts"
                yield InboxItem(event.id, STUCK, task, said, why, str(event.actor), event.recorded_at)
        for import_id, brought in waiting_imports(reader, project).items():
            said = "; ".join(f"“{in_a_line(unit.content)}”" for unit in brought[:_TEXTS_OF_AN_IMPORT])
            first = brought[0]
            origin, by = first.attributes.get("import_from", ""), first.attributes.get("kept_by")
            more = " or more" if len(brought) == WAITING_MAX else ""
            what = f"{counted(len(brought), 'unit')}{more} from {origin}"
            news = f", and replaces {old} that an earlier one brought" if (old := replacing(brought)) else ""
            why = f"imported by {by}; a person's yes verifies all of it{news}; see: mnemarch show {short_id(import_id)}"
            yield InboxItem(import_id, IMPORT, what, said, why, str(by), first.recorded_at)
        for what, dispute, units in disputes:
            texts = " / ".join(f"“{in_a_line(unit.content)}” ({short_id(unit.id)})" for unit in units)
            author = str(max(units, key=lambda unit: unit.id).author)
            why = _way_out(what, units).format(short_id(dispute.id), short_id(units[0].id))
            yield InboxItem(dispute.id, what, texts, dispute.reason, why, author, dispute.opened_at)

    def _wanted(self, claims: Sequence[Unit], recalls: Sequence[Event]) -> dict[str, list[str]]:
        """For each claim, the questions that it would have answered if it had been visible to the asker."""
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
        """Accept or reject a claim. A person's yes verifies it; a lead's only moves it to the project, labelled so."""
        there = acting_in(act, act.known_unit(unit_id).scope)
        if rejection is not None:
            return reject(there, unit_id, rejection, None)
        if act.caller.actor.kind is ActorKind.HUMAN:
            approve(there, unit_id, None)
            outcome = promote(there, unit_id, Level.PROJECT, None)
        else:
            outcome = accept_for_project(there, unit_id)
        return _let_through(outcome)

    @staticmethod
    def _cleared(act: Act, event_id: str, rejection: str | None) -> None:
        event = act.transaction.event(event_id)
        assert event is not None
        if rejection is None:
            clear_stuck(act, event.subject or "", event.scope.task, "accepted from the inbox")

    @staticmethod
    def _taken(act: Act, event_id: str, rejection: str | None) -> Unit | None:
        """Accept or reject a refused claim. A person's yes verifies it; a lead's labels it as accepted."""
        event = act.transaction.event(event_id)
        assert event is not None
        assert event.payload is not None
        claim = replace(Claim.from_json(event.payload["claim"]), level=Level.PROJECT, key=None)
        there = acting_in(act, event.scope)
        if rejection is not None:
            # Stored as a rejected unit, so that the same claim is refused next time (R4).
            refused, _ = record_unit(there, replace(claim, level=event.scope.level), None)
            return reject(there, refused.subject or "", rejection, None)
        if act.caller.actor.kind is ActorKind.HUMAN:
            cited = (*claim.citations, Citation.human(act.caller.actor.id))
            outcome = remember(there, replace(claim, citations=cited))
        else:
            kept = {KEPT_AS: ACCEPTED, "kept_by": act.caller.actor.id}
            outcome = remember(there, replace(claim, attributes=dict(claim.attributes) | kept))
        return _let_through(outcome)


_DECIDE = {
    CONFLICT: "decide with: mnemarch resolve {} --winner UNIT --reason WHY (or --both)",
    PROPOSAL: "merge with: mnemarch resolve {} --winner UNIT --reason WHY (or --both to keep the two)",
}


def _is_known(units: Sequence[Unit]) -> bool:
    """Whether a merge proposal names a verified unit of the project or wider."""
    return any(unit.scope.level >= Level.PROJECT and unit.status in TRUSTED for unit in units)


def _known_to_all(reader: Reader, claims: Sequence[Unit], wide: Sequence[str]) -> set[str]:
    """The ids of claims that say the same as a unit of these wide scopes, which everybody can see: they don't wait."""
    topics = {claim.id: topic_key(claim.content) for claim in claims}
    known = [(other, topic_key(other.content)) for other in reader.units_of_topics(wide, topics.values())]
    pairs = [(claim, other) for other, topic in known for claim in claims if topics[claim.id] == topic]
    as_sure = [(claim, other) for claim, other in pairs if other.status in TRUSTED or claim.status not in TRUSTED]
    alike = [(claim, other) for claim, other in as_sure if claim.domain == other.domain]
    return {claim.id for claim, other in alike if is_reworded(other.content, claim.content)}


def _way_out(what: str, units: Sequence[Unit]) -> str:
    if any(unit.kind is Kind.DECISION for unit in units):
        return "decide with: mnemarch decide TEXT --revises DECISION (the one in force)"
    if len(units) == 1:
        return "keep it with: mnemarch resolve {} --reason WHY (or drop it: mnemarch reject {} --reason WHY)"
    return _DECIDE[what]


def _named(items: Sequence[InboxItem], typed: str) -> InboxItem:
    """The item with this id, or the only one whose id, or last group of it, begins with this text."""
    named = [item for item in items if item.id == typed] or [
        item for item in items if item.id.startswith(typed) or item.id[24:].startswith(typed)
    ]
    if len(named) != 1:
        count = "Nothing waits" if not named else f"{len(named)} items wait"
        raise NotFound(f"{count} as {typed!r}.", hint=Hint("see the inbox"))
    return named[0]


def _settled_among(events: Sequence[Event]) -> set[str | None]:
    """The subjects that were settled and not reopened since. `events` are given newest first."""
    newest: dict[str | None, bool] = {}
    for event in events:
        newest.setdefault(event.subject, "reopens" not in (event.payload or {}))
    return {subject for subject, is_settled in newest.items() if is_settled}


def _let_through(outcome: Stored | Refused) -> Unit:
    if isinstance(outcome, Refused):
        raise NotAllowed(outcome.reason, rule=outcome.rule, hint="Decline it, or ask a person to accept it.")
    return outcome.unit


def _in_turn(items: Sequence[InboxItem], limit: int) -> list[InboxItem]:
    """The items in order: the most wanted first, then by type. Authors of equally ranked items take turns.

    One author gets at most half of the lines while others wait.
    """
    turns: Counter[tuple[int, str, str]] = Counter()
    lines: Counter[str] = Counter()
    ranks: dict[str, tuple[int, int, int]] = {}
    for item in items:
        turns[item.wanted, item.what, item.author] += 1
        ranks[item.id] = -item.wanted, _ORDER.index(item.what), turns[item.wanted, item.what, item.author]
    first: list[InboxItem] = []
    rest: list[InboxItem] = []
    for item in sorted(items, key=lambda item: ranks[item.id]):
        lines[item.author] += 1
        (first if lines[item.author] <= limit / 2 else rest).append(item)
    return [*first, *rest]


def _what_it_revises(reader: Reader, decision_id: str | None) -> str:
    """A note about the decision that a request would replace, or ""."""
    old = None if decision_id is None else reader.unit(decision_id)
    return "" if old is None else f"; revises the {old.attributes['strength']} {old.id}, “{in_a_line(old.content)}”"


def _item_of_claim(unit: Unit, questions: Sequence[str], *, is_left: bool) -> InboxItem:
    status = "is verified only there" if unit.status in TRUSTED else "is not verified"
    where = f"worktree {unit.scope.worktree}" + (f", task {unit.scope.task}" if unit.scope.task else "")
    # It was removed, or an agent without a folder named it, as over HTTP.
    gone = ". This machine has no such worktree" if is_left else ""
    why = f"{unit.author} said it in {where}; it {status}, so others can't see it{gone}"
    evidence = f"{label_of(unit)} {', '.join(str(item) for item in unit.citations[:3]) or 'cites nothing'}"
    if questions:
        times = "once" if len(questions) == 1 else f"{len(questions)} times"
        evidence += f"; asked for {times}, last as “{in_a_line(questions[0])}”"
    what, said, author = LEFT if is_left else CLAIM, in_a_line(unit.content), str(unit.author)
    return InboxItem(unit.id, what, said, evidence, why, author, unit.recorded_at, wanted=len(questions))


def _items_of_refusals(reader: Reader, events: Sequence[Event], settled: Collection[str | None]) -> Iterator[InboxItem]:
    """One actor's claims that were refused for their level, unless the gate has accepted them since.

    An actor that repeats a rejected text three times gets one further item (R4).
    """
    returns: dict[str | None, list[Event]] = {}
    for event in reversed(events):
        payload = event.payload
        if payload is None:
            continue
        if payload["rule"] == RULE:
            returns.setdefault(event.subject, []).append(event)
            if event.id in settled:
                returns[event.subject].clear()
            continue
        later = reader.event_for_key(event.scope.key, str(event.actor), waiting_key(event.id))
        if payload["rule"] in ("G23.validation", "G23") and event.id not in settled and later is None:
            cites = payload["claim"]["citations"][:3]
            cited = ", ".join(f"{item['kind']}:{item['ref']}" for item in cites) or "cites nothing"
            yield _item_of_refusal(REFUSED, event, cited, f"{event.actor}: {payload['reason']}")
    often = [tries for tries in returns.values() if len(tries) >= _RETURNS_MIN]
    if often:
        last = max(often, key=lambda tries: tries[-1].position)
        event, count = last[_RETURNS_MIN - 1], len(last)
        undo = f"to undo everything it wrote: mnemarch undo --actor {event.actor}. Or decline this"
        why = f"{event.actor} restated a rejected text {count} times; {undo}"
        yield _item_of_refusal(RETURNED, event, str((event.payload or {})["reason"]), why)


def _item_of_refusal(what: str, event: Event, evidence: str, why: str) -> InboxItem:
    said = in_a_line((event.payload or {})["claim"]["content"])
    return InboxItem(event.id, what, said, evidence, why, str(event.actor), event.recorded_at)

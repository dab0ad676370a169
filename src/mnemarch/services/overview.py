"""Pages of the log, the overview of a project, and lookup by id."""

from __future__ import annotations

import time
from itertools import islice

from mnemarch.errors import InvalidInput, NotFound
from mnemarch.lazy import Lazy
from mnemarch.model.caller import DOCTOR, GATE, Actor, ActorKind, Caller, Scope, checked_id
from mnemarch.model.event import Event, EventType
from mnemarch.model.outcome import AgentAtWork, Dispute, Overview, TaskUnderWay, Verdict, WorktreeInUse
from mnemarch.model.stamps import checked_instant, datetime, instant, micros, timedelta
from mnemarch.model.unit import TRUSTED, Kind, LinkType, Unit
from mnemarch.policy.admission import checked_count, checked_list
from mnemarch.units import finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from mnemarch.services import analysis, inbox
    from mnemarch.services.engine import Engine
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.units import conflicts

    Activity = Sequence[tuple[str, Scope, str, int, int]]
else:
    # Who reads the log needs none of these.
    analysis = Lazy("mnemarch.services.analysis")
    inbox = Lazy("mnemarch.services.inbox")
    conflicts = Lazy("mnemarch.units.conflicts")

_PAGE_MAX = 10_000
_FORWARD = 1_000
# Interval at which a follower checks its store for news.
LOOK_S = 0.02
_POSITION_MAX = 2**63 - 1
_DAY, _HOUR = timedelta(days=1), timedelta(hours=1)
_OUTCOMES = (EventType.TASK_VERIFIED, EventType.ATTEMPT_FAILED, EventType.ATTEMPTS_CLEARED)
_NEWS = (
    *_OUTCOMES,
    *(EventType.UNIT_REMEMBERED, EventType.UNIT_VERIFIED, EventType.UNIT_PUBLISHED),
)
NEWS_MAX = 500
_SCOPES_MAX = 20
_STUCK_MAX = 20
_WORKERS = frozenset({ActorKind.AGENT, ActorKind.ORCHESTRATOR})


def events(
    engine: Engine, caller: Caller, *, limit: int, after: str | None, beyond: int | None, **chosen: Any
) -> list[Event]:
    """A page of the log that this caller may read or inspect: newest first, or oldest first beyond a position.

    `chosen` has the task, worktree, actor, types and since of `Seat.events`.
    """
    task, worktree, actor, since = (chosen[name] for name in ("task", "worktree", "actor", "since"))
    types = checked_list(chosen["types"] or (), "types")
    wanted: dict[str, Any] = {
        "task": None if task is None else checked_id(task, "a task"),
        "worktree": None if worktree is None else checked_id(worktree, "a worktree"),
        "actor": None if actor is None else str(Actor.parse(str(actor))),
        "types": [type for name in types for type in _types_named(str(name))],
        "since": 0 if since is None else micros(checked_instant(since, "since")),
        "limit": checked_count(limit, "limit", _PAGE_MAX),
    }

    def work(reader: Reader) -> list[Event]:
        if beyond is not None:
            position = checked_count(beyond, "beyond", _POSITION_MAX)
            return list(islice(_newer(reader, caller, position, **wanted), wanted["limit"]))
        before = None if after is None else _event(reader, caller, checked_id(after, "an entry's id")).position
        return _page(reader, caller, before=before, **wanted)

    return engine.store.read(work)


def _newer(
    reader: Reader, caller: Caller, position: int, *, task: str | None, worktree: str | None, **wanted: Any
) -> Iterator[Event]:
    """The matching events after a position, oldest first."""
    while page := list(reader.events(after=position, limit=_FORWARD)):
        for event in page:
            scope = event.scope
            is_there = task in {None, scope.task} and worktree in {None, scope.worktree}
            is_meant = wanted["actor"] in {None, str(event.actor)} and event.type in (wanted["types"] or {event.type})
            if is_there and is_meant and micros(event.recorded_at) >= wanted["since"] and caller.may_read(scope):
                yield event
        position = page[-1].position


class NewsOf:
    """Lets a follower of the log wait until somebody writes to its store, or until a timeout."""

    def __init__(self, seat: object) -> None:
        engine = getattr(seat, "_engine", None)
        self._news: Callable[[], int] = getattr(getattr(engine, "store", None), "news", int)
        self._seen = self._news()

    def has_come(self) -> bool:
        seen, self._seen = self._seen, self._news()
        return seen != self._seen

    def wait(self, seconds_max: float) -> None:
        ends_at = time.monotonic() + seconds_max
        while not self.has_come() and (left_s := ends_at - time.monotonic()) > 0:
            time.sleep(min(LOOK_S, left_s))


def _types_named(name: str) -> list[EventType]:
    """The event type of this name, or all types of a group: `unit` means every `unit.…`."""
    types = [type for type in EventType if type == name or type.startswith(f"{name}.")]
    if not types:
        raise InvalidInput(f"{name!r} is not a type of event.", hint=f"Use one of: {', '.join(EventType)}.")
    return types


def _page(
    reader: Reader, caller: Caller, *, task: str | None = None, worktree: str | None = None, **wanted: Any
) -> list[Event]:
    """A page, newest first. A caller who inspects reads the whole project; others read their visible scopes."""
    fits = [
        scope
        for scope in caller.scope.visible
        if task in {None, scope.task} and worktree in {None, scope.worktree} and not (caller.inspects and scope.project)
    ]
    pages = [reader.events_back(scope.key, **wanted) for scope in fits]
    if caller.inspects:
        pages += _inspected(reader, caller.scope, task, worktree, **wanted)
    together = [event for page in pages for event in page]
    return sorted(together, key=lambda event: event.position, reverse=True)[: wanted["limit"]]


def _inspected(
    reader: Reader, scope: Scope, task: str | None, worktree: str | None, **wanted: Any
) -> list[list[Event]]:
    """Pages of events below a project: of the whole project, or only of the few scopes that match."""
    whole = Scope(org=scope.org, project=scope.project, worktree=worktree)
    if task is not None or worktree is not None:
        few = [
            each.key
            for each in reader.scopes()
            if (each.org, each.project) == (scope.org, scope.project)
            and task in {None, each.task}
            and worktree in {None, each.worktree}
        ]
        if len(few) <= _SCOPES_MAX:
            return [reader.events_back(key, **wanted) for key in few]
    return [reader.events_back(whole, task=task, **wanted)]


def _event(reader: Reader, caller: Caller, typed: str) -> Event:
    event = reader.event(finding.event_id(reader, caller, typed))
    if event is None or not caller.may_read(event.scope):
        raise NotFound(f"No entry {typed!r} in the log here.", hint="Check the id, and what this seat can see.")
    return event


def named(reader: Reader, caller: Caller, typed: str) -> Unit | Dispute | Event:
    """The unit, conflict, merge proposal or log entry with this id, or partial id."""
    whole = finding.any_id(reader, caller, checked_id(typed, "an id"))
    unit, link = reader.unit(whole), reader.link(whole)
    if unit is not None and caller.may_read(unit.scope):
        return unit
    if link is not None:
        sides = [side for side in reader.units(reader.units_of_link(whole)).values() if caller.may_read(side.scope)]
        if len(sides) > 1:
            return conflicts.dispute_from(link, sides)
    event = None if link is not None else reader.event(whole)
    if event is not None and caller.may_read(event.scope):
        return event
    raise NotFound(
        f"Nothing here has the id {typed!r}.",
        hint="Give the id of a unit, a decision, a conflict or an entry of the log, or at least 6 characters of it.",
    )


def overview(engine: Engine, caller: Caller) -> Overview:
    """The project's agents and tasks, what was learned, and what waits in the inbox."""
    now = engine.log.clock()
    scope = caller.scope

    def work(reader: Reader) -> dict[str, Any]:
        since = micros(now - _DAY)
        below = Scope(org=scope.org, project=scope.project)
        activity = [row for row in reader.activity_since(below, since) if caller.may_read(row[1])]
        activity = [row for row in activity if not (row[1].task or "").startswith(DOCTOR)]
        # Read the news of all worktrees: a unit from another worktree may live at the project's level.
        news = reader.events_back(below, types=_NEWS, since=since, limit=NEWS_MAX)
        stuck = [event for event in reader.stuck_tasks(below, _STUCK_MAX) if caller.may_read(event.scope)]
        # For people and leads, the inbox counts.
        types = () if caller.inspects else (LinkType.CONTRADICTS, LinkType.DUPLICATES)
        disputes = [len(conflicts.open_disputes(reader, caller.visible_keys, type)) for type in types]
        return {
            "agents": _at_work(activity, now - _HOUR),
            "tasks": (tasks := _under_way(activity, news, stuck)),
            "places": [*(task.scope for task in tasks), *(scope for _, scope, *_ in activity if scope.task)],
            "learned": _learned(reader, caller, news),
            "open_conflicts": sum(disputes[:1]),
            "waiting": sum(disputes) + len(stuck),
            "analyst": analysis.told_of(engine, reader, caller),
        }

    seen = engine.store.read(work)
    is_complete = scope.project is None
    if caller.inspects:
        waiting = inbox.Inbox(engine, caller)
        items = waiting.waiting()
        seen |= {"waiting": len(items), "open_conflicts": sum(item.what == inbox.CONFLICT for item in items)}
        is_complete = not waiting.is_cut
    branches = {} if caller.root is None else engine.codebase(caller.root).branches()
    return Overview(
        project=scope.project,
        at=now,
        writable=engine.store.writable,
        worktrees=_in_use(branches, seen["agents"], seen["tasks"], seen.pop("places")),
        indexed=engine.finder.documents(),
        unindexed=engine.finder.pending(),
        **engine.meaning(),
        is_complete=is_complete,
        **seen,
    )


def _at_work(activity: Activity, since: datetime) -> tuple[AgentAtWork, ...]:
    """The recently active agents, each with its last scope. The latest comes first."""
    last: dict[str, tuple[int, Scope]] = {}
    for actor, scope, _, _, at in activity:
        if (
            actor != str(GATE)
            and Actor.parse(actor).kind in _WORKERS
            and at >= micros(since)
            and at >= last.get(actor, (0, scope))[0]
        ):
            last[actor] = (at, scope)
    latest = sorted(last.items(), key=lambda item: item[1][0], reverse=True)
    return tuple(AgentAtWork(Actor.parse(actor), scope, instant(at)) for actor, (at, scope) in latest)


def _under_way(activity: Activity, news: Sequence[Event], stuck: Sequence[Event]) -> tuple[TaskUnderWay, ...]:
    """The stuck tasks, then the recently active ones, with their state after the last verification or failure.

    A task of several worktrees is listed once, where it was last active.
    """
    last = {event.scope.task: event.payload or {} for event in reversed(news) if event.type in _OUTCOMES}
    tasks = {
        event.scope.task: TaskUnderWay(event.scope, "stuck", event.recorded_at, (event.payload or {}).get("reason"))
        for event in stuck
        if event.scope.task is not None
    }
    for _, scope, _, _, at in sorted(activity, key=lambda row: row[4], reverse=True):
        if scope.task is not None:
            outcome = last.get(scope.task, {})
            is_blocked = outcome.get("verdict", {}).get("type") == Verdict.BLOCK
            state = "blocked" if is_blocked else "verified" if outcome.get("passed") else "open"
            reason = outcome.get("line") if is_blocked else None
            tasks.setdefault(scope.task, TaskUnderWay(scope, state, instant(at), reason))
    return tuple(tasks.values())


def _learned(reader: Reader, caller: Caller, news: Sequence[Event]) -> tuple[Unit, ...]:
    """New knowledge: verified and published units, and skills, newest first."""
    subjects = dict.fromkeys(event.subject for event in news if event.subject is not None)
    units = reader.units(subjects)
    return tuple(
        unit
        for unit in units.values()
        if unit.live
        and unit.kind not in {Kind.EPISODE, Kind.CORE, Kind.EVIDENCE, Kind.ANCHOR}
        and (unit.status in TRUSTED or unit.kind is Kind.SKILL)
        and caller.may_read(unit.scope)
    )


def _in_use(
    branches: dict[str, str], agents: Sequence[AgentAtWork], tasks: Sequence[TaskUnderWay], places: Sequence[Scope]
) -> tuple[WorktreeInUse, ...]:
    """Every worktree of the repository, and every other worktree with an agent or a task."""
    scopes = [*(agent.scope for agent in agents), *places]
    names = dict.fromkeys([*sorted(branches), *(scope.worktree for scope in scopes)])
    unfinished = {task.scope.task for task in tasks if task.state != "verified"}
    at_work = {(scope.worktree, scope.task) for scope in places if scope.task in unfinished}
    return tuple(
        WorktreeInUse(
            name=name,
            branch=branches.get(name, ""),
            agents=sum(agent.scope.worktree == name for agent in agents),
            tasks=sum(worktree == name for worktree, _ in at_work),
        )
        for name in names
        if name is not None
    )

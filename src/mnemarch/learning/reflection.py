"""Reflection (M6): makes lessons from a project's episodes, updates them, and retires those that no longer hold."""

from __future__ import annotations

from time import monotonic

from mnemarch.errors import Conflict, Hint, InvalidInput, NotFound, StoreError
from mnemarch.lazy import Lazy
from mnemarch.model.caller import Actor, Caller, Level, Scope
from mnemarch.model.event import Event, EventType
from mnemarch.model.stamps import blake2b
from mnemarch.model.unit import (
    KEPT_AS,
    LESSON,
    TRUSTED,
    Citation,
    Claim,
    Kind,
    LinkType,
    Signal,
    Status,
    Unit,
    trust_to_json,
)
from mnemarch.model.upkeep import Reflected
from mnemarch.model.value import replace
from mnemarch.text.words import counted
from mnemarch.units.conflicts import link_units
from mnemarch.units.finding import rejection_of
from mnemarch.units.life import RETENTION, archive
from mnemarch.units.remember import record_unit
from mnemarch.units.status import change, retire, signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from mnemarch.code.codebase import Codebase
    from mnemarch.config import ReflectionRules
    from mnemarch.learning import lessons as rules_of
    from mnemarch.learning.lessons import Lesson
    from mnemarch.log.act import Act, Log
    from mnemarch.stores.sql.reader import Reader

else:
    # Loaded late: most verifications don't reflect.
    rules_of = Lazy("mnemarch.learning.lessons")

_LESSONS_READ_MAX = 10_000
_CITED_MAX = 20
_NAMED_MAX = 100
_SECONDS_PER_HOUR = 3_600
NEWER, REFUTED, GONE = "more episodes", "later episodes contradict it", "the episodes it came from are gone"
_NO_LONGER = "later episodes no longer support it"


class Reflecting:
    """Maintains the lessons of one project. `codebase` says which files exist, if the caller has a working tree."""

    def __init__(self, log: Log, caller: Caller, codebase: Codebase | None = None) -> None:
        if caller.scope.project is None:
            raise InvalidInput("Lessons belong to a project; this seat has none.", hint=Hint("name the project"))
        self._log = log
        self._caller = Caller(Actor.system("reflection"), caller.scope.at(Level.PROJECT))
        self._codebase = codebase
        self._rules = log.config.reflection

    def reflect(
        self,
        *,
        lessons_max: int | None = None,
        seconds_max: float | None = None,
        dry_run: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> Reflected:
        """Make, update and retire lessons, each in an act of its own. An interrupted reflection can be continued."""
        until = None if seconds_max is None else monotonic() + seconds_max
        began = self._log.clock()
        episodes, known, rejected = self._log.store.read(self._read)
        lessons: list[Unit] = []
        retired: list[Unit] = []
        planned, seen, is_complete = 0, set[str](), True
        for number, lesson in enumerate(rules_of.ReflectionGenerator().lessons(episodes), start=1):
            if planned == lessons_max or (until is not None and monotonic() > until):
                is_complete = False
                break
            seen.add(lesson.subject)
            before = known.get(lesson.subject, [])
            is_rejected = any(
                rules_of.is_same_advice(lesson, *_advice(unit)) for unit in rejected.get(lesson.subject, ())
            )
            if not is_rejected and _is_news(lesson, before):
                planned += 1
                lessons += [] if dry_run else [self._kept(lesson, before)]
            if progress is not None:
                progress(number)
        if is_complete:
            unseen = [unit for subject, units in known.items() if subject not in seen for unit in units]
            retired = self._without_support(unseen, {episode.id for episode in episodes}, dry_run=dry_run)
        if is_complete and not dry_run:
            self._note(began, len(episodes), planned)
        return Reflected(
            episodes=len(episodes),
            lessons=tuple(lessons),
            retired=tuple(retired),
            changed=planned,
            unchanged=len(seen) - planned,
            complete=is_complete,
            dry_run=dry_run,
        )

    def _read(self, reader: Reader) -> tuple[list[Unit], dict[str, list[Unit]], dict[str, list[Unit]]]:
        """The episodes that count, and the live and the rejected lessons by subject.

        Episodes that retention archived are still evidence. An agent's episode of unverified work is a hypothesis of
        its worktree. It doesn't count until somebody accepts it for the project (R2, R20).
        """
        key, limit = [self._caller.scope_key], self._rules.episodes_max
        episodes = reader.units_in(key, kind=Kind.EPISODE, live=True, limit=limit, shared=True)
        old = reader.units_in(key, kind=Kind.EPISODE, status=Status.ARCHIVED, limit=limit)
        episodes += filter(_is_pruned, old)
        live = reader.units_in(key, kind=Kind.SEMANTIC, live=True, limit=_LESSONS_READ_MAX)
        past = reader.units_in(key, kind=Kind.SEMANTIC, status=Status.ARCHIVED, limit=_LESSONS_READ_MAX)
        rejected = [unit for unit in past if unit.is_derived and rejection_of(reader, unit) is not None]
        return episodes[:limit], _by_subject(unit for unit in live if unit.is_derived), _by_subject(rejected)

    def _kept(self, lesson: Lesson, before: Sequence[Unit]) -> Unit:
        claim, known_ids = self._claim(lesson), [unit.id for unit in before]
        return self._log.act(self._caller, lambda act: _keep(act, lesson, claim, known_ids))

    def _claim(self, lesson: Lesson) -> Claim:
        """The claim of a lesson. It cites the newest episodes, and the lesson's files that exist."""
        cited = [Citation.log(unit.provenance[0].event_id) for unit in lesson.episodes[:_CITED_MAX] if unit.provenance]
        tree = None if self._codebase is None else self._codebase.tree
        cited += [Citation.file(path) for path in lesson.files if tree is not None and tree.has(path)]
        about, _, key = lesson.subject.partition(":")
        digest = blake2b(f"{lesson.subject}\n{lesson.content}".encode(), digest_size=16).hexdigest()
        return Claim(
            content=lesson.content,
            kind=Kind.SEMANTIC,
            level=Level.PROJECT,
            citations=tuple(cited),
            importance=rules_of.IMPORTANCE[lesson.form],
            key=f"lesson:{digest}",
            attributes={
                KEPT_AS: LESSON,
                "kept_by": counted(len(lesson.episodes), "episode"),
                "about": lesson.subject,
                "form": str(lesson.form),
                "advice": lesson.advice,
                "episodes": [unit.id for unit in lesson.episodes[:_NAMED_MAX]],
                # A failure finds the lesson by this key.
                "faults": [{"key": key}] if about == "fault" else [],
                "succeeded": lesson.succeeded,
                "failed": lesson.failed,
            },
        )

    def _without_support(self, lessons: Iterable[Unit], ids: set[str], *, dry_run: bool) -> list[Unit]:
        """Archive and return the lessons that their episodes no longer support, or that have fewer than two left."""
        retired = []
        for lesson in lessons:
            named = [str(each) for each in lesson.attributes.get("episodes", ())]
            left = self._log.store.read(lambda reader, named=named: _standing(reader, named))  # type: ignore[misc]
            is_read = all(unit.id in ids for unit in left if unit.live)
            why = GONE if len(left) < 2 else _NO_LONGER if is_read else None
            if why is None or lesson.status in TRUSTED:
                continue
            if not dry_run:
                try:
                    self._log.act(self._caller, lambda act, id=lesson.id, why=why: archive(act, id, why, None))  # type: ignore[misc]
                except (Conflict, NotFound):
                    continue  # Somebody changed it meanwhile.
            retired.append(lesson)
        return retired

    def _note(self, began: datetime, episodes: int, changed: int) -> None:
        """Log this reflection. Only later episodes count for the next one."""
        text = f"{counted(episodes, 'episode')} read, {counted(changed, 'lesson')} made or changed"
        self._log.act(
            self._caller,
            lambda act: act.record(
                EventType.LOGGED,
                {"kind": "reflection", "text": text},
                subject=_subject_in(self._caller.scope),
                occurred_at=began,
            ),
        )


def is_due(new: Sequence[Unit], since: datetime | None, now: datetime, rules: ReflectionRules) -> bool:
    """Whether the new episodes suffice by number, total importance or age. The first reflection needs two."""
    if not new or (since is None and len(new) < 2):
        return False
    hours = (now - (since or min(unit.recorded_at for unit in new))).total_seconds() / _SECONDS_PER_HOUR
    return (
        0 < rules.episodes_min <= len(new)
        or 0 < rules.importance_min <= sum(unit.importance for unit in new)
        or 0 < rules.hours_min <= hours
    )


def _subject_in(project: Scope) -> str:
    return f"reflection:{project.key}"


def seen_before_reflecting(reader: Reader, caller: Caller, rules: ReflectionRules) -> tuple[Event | None, list[Unit]]:
    """The last reflection of the caller's project, and enough of its newest episodes to tell whether one is due."""
    project = caller.scope.at(Level.PROJECT) if caller.scope.project is not None else caller.scope
    limit = int(max(2, rules.episodes_min, 2 * rules.importance_min))
    return (
        next(reader.events_of_subject(_subject_in(project), last=1), None),
        reader.units_in([project.key], kind=Kind.EPISODE, live=True, limit=limit, shared=True),
    )


def reflect_if_due(
    log: Log, caller: Caller, codebase: Codebase | None, seen: tuple[Event | None, Sequence[Unit]]
) -> None:
    """Reflect if it is due, within `seconds_max`. Errors of the store are ignored, so the verification never fails."""
    last, episodes = seen
    since = None if last is None else last.recorded_at
    new = [episode for episode in episodes if since is None or episode.recorded_at > since]
    rules = log.config.reflection
    if caller.scope.project is None or not log.store.writable or not is_due(new, since, log.clock(), rules):
        return
    try:
        Reflecting(log, caller, codebase).reflect(seconds_max=rules.seconds_max)
    except StoreError:
        return  # The next verification, or `reflect`, tries again.


def _keep(act: Act, lesson: Lesson, claim: Claim, known_ids: Sequence[str]) -> Unit:
    """Store a lesson and retire the known ones. A known one that is trusted stays, linked as a contradiction."""
    earlier = act.transaction.event_for_key(act.caller.scope_key, str(act.caller.actor), claim.key or "")
    made = None if earlier is None else act.transaction.unit(earlier.subject or "")
    if made is not None and made.live:
        return made  # Another process was faster.
    if earlier is not None:
        claim = replace(claim, key=None)
    event, _ = record_unit(act, claim, None)
    new = act.known_unit(event.subject)
    for old in act.transaction.units(known_ids).values():
        if not old.live:
            continue
        is_same = rules_of.is_same_advice(lesson, *_advice(old))
        if old.status in TRUSTED:
            link_units(act, new.id, old.id, LinkType.CONTRADICTS, 1.0, REFUTED)
            continue
        if not is_same:
            old = signal(act, EventType.UNIT_VALIDATED, old, Signal.CONTRADICTED, {"reason": REFUTED})
        retire(act, old, new.id, NEWER if is_same else REFUTED)
        gained: dict[str, object] = {"supersedes": old.id}
        if is_same:
            gained |= {"trust": trust_to_json(old.trust), "uses": old.uses}
        new = change(act, EventType.UNIT_SUPERSEDING, new, {"old": old.id, "set": gained})
    return new


def _is_news(lesson: Lesson, known: Sequence[Unit]) -> bool:
    """Whether a lesson has another form or other episodes than the known one."""
    if not known:
        return True
    if any(unit.status in TRUSTED and rules_of.is_same_advice(lesson, *_advice(unit)) for unit in known):
        return False  # It is trusted, so counts alone don't replace it.
    named = [unit.id for unit in lesson.episodes[:_NAMED_MAX]]
    said = known[0].attributes
    return len(known) > 1 or said.get("episodes") != named or said.get("form") != lesson.form


def _advice(unit: Unit) -> tuple[object, object]:
    return unit.attributes.get("form"), unit.attributes.get("advice")


def _by_subject(lessons: Iterable[Unit]) -> dict[str, list[Unit]]:
    by_subject: dict[str, list[Unit]] = {}
    for unit in lessons:
        by_subject.setdefault(str(unit.attributes.get("about")), []).append(unit)
    return by_subject


def _standing(reader: Reader, episode_ids: Sequence[str]) -> list[Unit]:
    """The episodes that still count: not erased, and not archived except by retention."""
    units = [unit for unit in reader.units(episode_ids).values() if unit.erased_at is None]
    return [unit for unit in units if unit.status is not Status.ARCHIVED or _is_pruned(unit)]


def _is_pruned(unit: Unit) -> bool:
    return (unit.archive_reason or "").startswith(RETENTION)

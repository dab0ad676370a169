"""Nightly maintenance of an open memory, and a report of each step.

A failed step does not stop the others, and two processes never maintain one memory at once.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager

from mnemarch.errors import MnemarchError, StoreCorrupt, StoreUnavailable
from mnemarch.files import PARTIAL_END, locked_if_free, make_private
from mnemarch.learning.knowledge import SemanticMemoryManager
from mnemarch.learning.reflection import Reflecting
from mnemarch.log.audit import audited
from mnemarch.model.caller import Caller, Level, Scope
from mnemarch.model.event import Event, EventType
from mnemarch.model.unit import Kind
from mnemarch.model.upkeep import Maintained, Step
from mnemarch.policy.trust import confidence_at
from mnemarch.text.words import counted
from mnemarch.units.episode import consolidate
from mnemarch.units.life import pruned
from mnemarch.units.remember import Intake

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from mnemarch.services.engine import Engine
    from mnemarch.stores.sql.reader import Reader

_LOCK = "maintenance.lock"
# An empty file. Its modification time is the end of the last maintenance.
_ENDED = "maintained"
# Partial files older than this are left over: no running write takes so long.
_LEFT_BEHIND_S = 86_400.0
_DUE_AFTER_S = 86_400.0
_RUNS_MAX = 2_000
_ENDS = (EventType.TASK_VERIFIED, EventType.ATTEMPT_FAILED)


def maintained(
    engine: Engine, caller: Caller, *, dry_run: bool, progress: Callable[[int], None] | None = None
) -> Maintained:
    """Run every step in order, and report the result of each."""
    steps: list[Step] = []
    with _alone(None if dry_run else engine.place):
        for number, (name, work) in enumerate(_STEPS.items(), start=1):
            began = time.monotonic()
            try:
                is_left_out = dry_run and name in _NOT_DRY
                ok, says = True, "left out in a dry run" if is_left_out else work(engine, caller, dry_run)
            except (MnemarchError, OSError) as error:
                ok, says = False, str(error)
            steps.append(Step(name=name, ok=ok, says=says, seconds=round(time.monotonic() - began, 3)))
            if progress is not None:
                progress(number)
    return Maintained(steps=tuple(steps), dry_run=dry_run)


def is_due(place: str) -> bool:
    """Whether the memory in this folder was not maintained for a day."""
    try:
        return time.time() - os.stat(os.path.join(place, _ENDED)).st_mtime > _DUE_AFTER_S
    except FileNotFoundError:
        return True


@contextmanager
def _alone(place: str | None) -> Iterator[None]:
    """Hold the maintenance lock of this memory. A killed process releases it. Without a folder no lock is needed."""
    if place is None:
        yield
        return
    with locked_if_free(os.path.join(place, _LOCK)) as is_held:
        if not is_held:
            raise StoreUnavailable("Another process maintains this memory now.", hint="Wait until it is done.")
        yield
        ended = os.path.join(place, _ENDED)
        make_private(ended)
        os.utime(ended)


def _prune(engine: Engine, _: Caller, dry_run: bool) -> str:
    done = pruned(engine.log, dry_run=dry_run)
    return f"{counted(len(done.units), 'old unit')} of little worth {_would(dry_run)}archived, {done.kept} kept"


def _sweep(engine: Engine, caller: Caller, dry_run: bool) -> str:
    if caller.root is None or dry_run:
        return "left out: no working tree" if caller.root is None else "left out in a dry run"
    from mnemarch.services.janitor import Views

    swept = engine.janitor.sweep(Views(engine.codebase(caller.root), caller.scope), None)
    return (
        f"{counted(swept.checked, 'unit')} compared with the code: {swept.archived} archived, {swept.revived} revived,"
        f" {swept.moved} moved"
    )


def _tell_what_was_left(engine: Engine, there: Caller) -> None:
    """Write the episodes of tasks that ended without one, because the host was killed or no test ran."""

    def read(reader: Reader) -> list[Event]:
        return reader.events_back(there.scope, types=_ENDS, limit=_RUNS_MAX)

    for run in {run.scope.key: run for run in reversed(engine.store.read(read))}.values():
        author = Caller(run.actor, run.scope, run.session)
        kept = consolidate(engine.log, author)
        if kept is not None:
            knowing = SemanticMemoryManager(engine.log, author, Intake(engine.log, author, None))
            knowing.learn_from_episode(kept.episode_id, code=False)


def _reflect(engine: Engine, caller: Caller, dry_run: bool) -> str:
    """Reflect on the episodes of every project. Only the caller's own project has a working tree."""
    changed, retired, episodes = 0, 0, 0
    for there in _in_each_project(engine, caller):
        is_own = there.scope.key == caller.scope.at(Level.PROJECT).key if caller.scope.project else False
        codebase = engine.codebase(caller.root) if is_own and caller.root is not None else None
        if not dry_run:
            _tell_what_was_left(engine, there)
        done = Reflecting(engine.log, there, codebase).reflect(dry_run=dry_run)
        changed, retired, episodes = changed + done.changed, retired + len(done.retired), episodes + done.episodes
    made = f"{counted(changed, 'lesson')} {_would(dry_run)}made or changed"
    return f"{counted(episodes, 'episode')}: {made}, {retired} retired"


def _in_each_project(engine: Engine, caller: Caller) -> list[Caller]:
    streams = engine.store.read(lambda reader: reader.heads())
    projects = dict.fromkeys((stream.org, stream.project) for stream in streams if stream.project is not None)
    return [Caller(caller.actor, Scope(org=org, project=project)) for org, project in projects]


def _code_rules(engine: Engine, caller: Caller, _: bool) -> str:
    """Learn code rules from the edits of successful tasks. Done here so that verifications don't wait for it."""
    learned = [
        SemanticMemoryManager(engine.log, there, Intake(engine.log, there, None)).learn_from_edits()
        for there in _in_each_project(engine, caller)
    ]
    return (
        f"{counted(sum(map(len, learned)), 'task')} read for code rules: {counted(sum(map(sum, learned)), 'new rule')}"
    )


def _decay(engine: Engine, _: Caller, __: bool) -> str:
    """Count the units whose trust has faded. Nothing is written, because trust is aged when it is read (R7)."""
    rules, now = engine.config.trust, engine.log.clock()

    def ageing(reader: Any) -> tuple[int, int, int]:
        total, faded, least = 0, 0, 0
        for unit in reader.units_of_kinds(list(Kind)):
            confidence = confidence_at(unit.trust, now, rules)
            total += 1
            faded += confidence < unit.trust.confidence
            least += confidence <= rules.minimum
        return total, faded, least

    total, faded, least = engine.store.read(ageing)
    return f"{faded:,} of {counted(total, 'live unit')} less sure than when last validated, {least:,} at the minimum"


def _index(engine: Engine, _: Caller, dry_run: bool) -> str:
    finder = engine.finder
    if not dry_run:
        finder.index_patiently(engine.config.store.lock_wait_s_max, rebuild=False)
        for part in engine.everywhere():
            part.finder.embed_all()
        finder.link_duplicates()
    return f"{counted(finder.documents(), 'unit')} in the search index, {finder.pending()} to be indexed"


def _left_behind(engine: Engine, _: Caller, dry_run: bool) -> str:
    """Remove partial files that a killed process left more than a day ago."""
    if engine.place is None:
        return "left out: there are no files"
    old, oldest = [], time.time() - _LEFT_BEHIND_S
    for folder in {engine.place, engine.checkpoint_folder}:
        for entry in os.scandir(folder) if os.path.isdir(folder) else ():
            is_partial = entry.name.endswith((PARTIAL_END, f"{PARTIAL_END}-journal"))
            if is_partial and entry.is_file(follow_symlinks=False) and entry.stat().st_mtime < oldest:
                old.append(entry.path)
    for path in () if dry_run else old:
        os.remove(path)
    return f"{counted(len(old), 'unfinished file')} {_would(dry_run)}removed"


def _empty_log(engine: Engine, _: Caller, __: bool) -> str:
    if engine.place is None:
        return "left out: there are no files"
    engine.store.scrub(rewrite=False)
    return "folded into the database, and emptied"


def _audit(engine: Engine, _: Caller, __: bool) -> str:
    check = audited(engine.store, engine.remembered)
    if not check.ok:
        raise StoreCorrupt(f"The log is broken at {check.first_broken}: {check.problem}.", hint=check.hint)
    return f"{counted(check.events, 'event')}, no hash chain is broken"


def _would(dry_run: bool) -> str:
    return "would be " if dry_run else ""


# The steps in order of dependence: nothing is learned from archived units, and new lessons are indexed.
_STEPS: dict[str, Callable[[Engine, Caller, bool], str]] = {
    "prune": _prune,
    "janitor": _sweep,
    "reflect": _reflect,
    "code rules": _code_rules,
    "decay": _decay,
    "index": _index,
    "files": _left_behind,
    "write-ahead log": _empty_log,
    "audit": _audit,
}
# Steps that would change something, or remember what they saw.
_NOT_DRY = frozenset({"code rules", "write-ahead log", "audit"})

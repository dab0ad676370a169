"""The janitor archives units whose cited code is gone, and revives them when the code is back (R11)."""

from __future__ import annotations

from mnemarch.code.codebase import STALE, Codebase, CodeCheck, CodeView
from mnemarch.decisions import guard
from mnemarch.errors import Conflict, NotAllowed, NotFound, StoreError
from mnemarch.log.act import MOMENT_S, Act, Log
from mnemarch.model.caller import Actor, Caller, Scope
from mnemarch.model.outcome import Swept, Verdict
from mnemarch.model.unit import Status, Unit
from mnemarch.units.life import move

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from threading import Thread


_PAGE = 200
_ARCHIVED, _REVIVED, _MOVED = "archived", "revived", "moved"
_CHECKED_MAX = 4_096
_SWEEP_S_MAX = 10.0


class Views:
    """The code that each unit is checked against: its worktree, or the default branch for a project's unit.

    Committed code counts, and so does new code that is not committed yet. So an edit in progress archives nothing.
    """

    def __init__(self, codebase: Codebase, scope: Scope) -> None:
        self._codebase = codebase
        self._scope = scope
        self._by_worktree: dict[str | None, CodeView | None] = {}

    def of(self, unit: Unit) -> CodeView | None:
        """The code that this unit is checked against, or None if it is not accessible from here."""
        where = unit.provenance[0].scope if unit.provenance else unit.scope
        if (where.org, where.project) != (self._scope.org, self._scope.project):
            return None
        if not self._codebase.is_root_of(unit):
            return None
        worktree = unit.scope.worktree
        if worktree not in self._by_worktree:
            self._by_worktree[worktree] = self._codebase.committed_view(
                self._scope.project, worktree, own=worktree == self._scope.worktree
            )
        return self._by_worktree[worktree]

    def checks(self, units: Sequence[Unit]) -> dict[str, CodeCheck]:
        """The code check of each unit whose code is accessible from here."""
        by_view: dict[CodeView, list[Unit]] = {}
        for unit in units:
            view = self.of(unit)
            if view is not None:
                by_view.setdefault(view, []).append(unit)
        checks: dict[str, CodeCheck] = {}
        for view, judged in by_view.items():
            checks |= dict.fromkeys((unit.id for unit in judged), CodeCheck()) | view.checks(judged)
        return checks


class Janitor:
    """Sweeps one memory: all units on request, and in the background the units that recall found stale."""

    def __init__(self, log: Log) -> None:
        self._log = log
        # Each version of a unit is checked once per commit.
        self._checked: dict[str, tuple[int, str | None]] = {}
        self._threads: list[Thread] = []

    def sweep(self, views: Views, progress: Callable[[int], None] | None) -> Swept:
        """Check every unit that cites code."""
        counts = {"checked": 0, _ARCHIVED: 0, _REVIVED: 0, _MOVED: 0, "skipped": 0}
        seen = 0
        for page in self._pages():
            checks = views.checks(page)
            for unit in page:
                counts["checked" if unit.id in checks else "skipped"] += 1
                outcome = self._sweep_one(unit, checks.get(unit.id))
                if outcome is not None:
                    counts[outcome] += 1
                seen += 1
                if progress is not None:
                    progress(seen)
        return Swept(**counts)

    def sweep_in_background(self, views: Views, units: Sequence[Unit]) -> None:
        """Check these units in a thread, unless they were already checked at this commit."""
        seen = {unit.id: (unit.version, view.commit) for unit in units if (view := views.of(unit))}
        new = [unit for unit in units if unit.id in seen and self._checked.get(unit.id) != seen[unit.id]]
        if not new:
            return
        from threading import Thread

        if len(self._checked) >= _CHECKED_MAX:
            self._checked = {}
        self._checked |= seen
        thread = Thread(target=self._sweep_some, args=(new, views), name="mnemarch-janitor", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return  # The process is ending and can't start threads. A later sweep checks them.
        self._threads = [each for each in self._threads if each.is_alive()] + [thread]

    def wait(self) -> None:
        """Wait for background sweeps to end."""
        for thread in self._threads:
            thread.join(_SWEEP_S_MAX)

    def _sweep_some(self, units: Sequence[Unit], views: Views) -> None:
        try:
            checks = views.checks(units)
            for unit in units:
                self._sweep_one(unit, checks.get(unit.id), wait_s_max=MOMENT_S)
        except NotAllowed:
            return  # The project's policy forbids it, so a retry is useless.
        except StoreError:
            for unit in units:  # Try again next time.
                self._checked.pop(unit.id, None)

    def _pages(self) -> Iterator[Sequence[Unit]]:
        """Every unit that cites code, in pages, so that others can write between them."""
        after = ""
        while page := self._log.store.read(lambda reader, after=after: reader.units_citing_code(after, _PAGE)):  # type: ignore[misc]
            yield page
            after = page[-1].id

    def _sweep_one(self, unit: Unit, check: CodeCheck | None, wait_s_max: float | None = None) -> str | None:
        """Archive the unit if its code is gone, follow it if it moved, revive it if the code is back."""

        def changed(outcome: str, work: Callable[[Act], Unit]) -> str | None:
            try:
                self._log.act(Caller(Actor.system("janitor"), unit.scope), work, wait_s_max=wait_s_max)
            except (Conflict, NotFound):
                return None  # It was changed meanwhile, or its twin is live. The next sweep checks again.
            return outcome

        if check is None:
            return None
        if unit.live and check.is_stale:
            if self._needs_a_person(unit):
                return None
            reason = check.reason or STALE
            return changed(_ARCHIVED, lambda act: guard.archive(act, unit.id, reason, unit.version))
        if unit.live and check.moves:
            return changed(_MOVED, lambda act: move(act, unit.id, dict(check.moves), unit.version))
        was_stale = unit.status is Status.ARCHIVED and (unit.archive_reason or "").startswith(STALE)
        if was_stale and check.is_confirmed and unit.erased_at is None:
            back = "the code is back"
            return changed(_REVIVED, lambda act: guard.revive(act, unit.id, back, unit.version, {}))
        return None

    def _needs_a_person(self, unit: Unit) -> bool:
        """Whether the unit is a decision that only a person may take out of force (D8)."""
        caller = Caller(Actor.system("janitor"), unit.scope)
        verdict = self._log.store.read(lambda reader: guard.verdict_on_retiring(reader, caller, unit))
        return verdict is not None and verdict.type is Verdict.BLOCK

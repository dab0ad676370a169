"""Sweeping the memory after the code changed: what is gone is archived, what came back is revived (R11)."""

from __future__ import annotations

from mnemarch.errors import Conflict, NotAllowed, NotFound, StoreError
from mnemarch.ledger.guarding import on_leaving
from mnemarch.model.actor import Actor
from mnemarch.model.outcome import Swept
from mnemarch.model.presence import Presence
from mnemarch.model.unit import Status
from mnemarch.model.verdict import Verdict
from mnemarch.published.evidence import move
from mnemarch.published.retirement import archive, revive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mnemarch.code.codebase import Codebase
    from mnemarch.code.view import CodeView
    from mnemarch.ledger.act import Act, Ledger
    from mnemarch.model.scope import Scope
    from mnemarch.model.unit import Unit

_PAGE = 200
_STALE = "stale: "
_ARCHIVED, _REVIVED, _MOVED = "archived", "revived", "moved"


class Views:
    """Where each unit of a project is judged: a worktree's in that worktree, the project's on its default branch.

    What is committed counts, and what is new and not committed yet: a file that is just being edited archives nothing.
    """

    def __init__(self, codebase: Codebase, scope: Scope) -> None:
        self._codebase = codebase
        self._scope = scope
        self._known: dict[str | None, CodeView | None] = {}

    def of(self, unit: Unit) -> CodeView | None:
        """The code that decides about this unit, or None if it is not to be seen from here."""
        where = unit.provenance[0].scope if unit.provenance else unit.scope
        if (where.org, where.project) != (self._scope.org, self._scope.project):
            return None
        if not self._codebase.is_root_of(unit):
            return None
        worktree = unit.scope.worktree
        if worktree not in self._known:
            self._known[worktree] = self._codebase.committed_view(
                self._scope.project, worktree, own=worktree == self._scope.worktree
            )
        return self._known[worktree]


def swept(ledger: Ledger, views: Views, progress: Callable[[int], None] | None) -> Swept:
    """Look at every unit that code can contradict."""
    counts = {"checked": 0, _ARCHIVED: 0, _REVIVED: 0, _MOVED: 0, "skipped": 0}
    for seen, unit in enumerate(_units(ledger), start=1):
        view = views.of(unit)
        if view is None:
            counts["skipped"] += 1
        else:
            counts["checked"] += 1
            done = _sweep(ledger, unit, view)
            if done is not None:
                counts[done] += 1
        if progress is not None:
            progress(seen)
    return Swept(**counts)


def sweep_all(ledger: Ledger, units: Sequence[Unit], views: Views) -> bool:
    """Sweep some units where they live; False if the store was not to be had, and it is worth another try."""
    try:
        for unit in units:
            view = views.of(unit)
            if view is not None and unit.live:
                _sweep(ledger, unit, view)
    except StoreError:
        return False
    except NotAllowed:
        return True  # A policy of this project: it would be refused again.
    return True


def _units(ledger: Ledger) -> Iterator[Unit]:
    """Every unit that cites code, page by page: others write meanwhile."""
    after = ""
    while page := ledger.store.read(lambda reader, after=after: reader.units_citing_code(after, _PAGE)):  # type: ignore[misc]
        yield from page
        after = page[-1].id


def _sweep(ledger: Ledger, unit: Unit, view: CodeView) -> str | None:
    """Archive the unit if its code is gone, follow it if it moved, revive it if the code is back."""
    bearing = view.bearings([unit]).get(unit.id)
    if bearing is None:
        return None
    if unit.live and bearing.is_stale:
        if _takes_a_person(ledger, unit):
            return None
        reason = bearing.reason or _STALE
        return _changed(ledger, unit, _ARCHIVED, lambda act: archive(act, unit.id, reason, unit.version))
    if unit.live and bearing.moves:
        return _changed(ledger, unit, _MOVED, lambda act: move(act, unit.id, dict(bearing.moves), unit.version))
    was_stale = unit.status is Status.ARCHIVED and (unit.archive_reason or "").startswith(_STALE)
    if was_stale and bearing.is_borne_out and unit.erased_at is None:
        return _changed(ledger, unit, _REVIVED, lambda act: revive(act, unit.id, "the code is back", unit.version))
    return None


def _takes_a_person(ledger: Ledger, unit: Unit) -> bool:
    """Whether it is a decision that no janitor may take out of force, whatever became of the code it cites (D8)."""
    presence = Presence(Actor.system("janitor"), unit.scope)
    verdict = ledger.store.read(lambda reader: on_leaving(reader, presence, unit))
    return verdict is not None and verdict.type is Verdict.BLOCK


def _changed(ledger: Ledger, unit: Unit, done: str, work: Callable[[Act], Unit]) -> str | None:
    try:
        ledger.act(Presence(Actor.system("janitor"), unit.scope), work)
    except (Conflict, NotFound):
        return None  # Somebody changed it meanwhile, or its twin lives: the next sweep will see.
    return done

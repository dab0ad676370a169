"""What the reader's code says of a unit: whether it holds at this commit, and whether what it cites is still there.

The cognitive gate of S11-S13, R8 and R11. It looks at nothing but what the candidates cite, and never fails a recall:
what can't be told passes, and the item says so.
"""

from __future__ import annotations

from mnemon.code.worktree import checked
from mnemon.model.citation import OF_CODE
from mnemon.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mnemon.code.codebase import Codebase
    from mnemon.code.worktree import Check, WorkTree
    from mnemon.model.citation import Citation
    from mnemon.model.unit import Unit

_SHOWN = 12


@value
class Standing:
    """What the code says of one unit. Without a reason it may be handed out; stale ones may be archived."""

    reason: str | None = None
    is_stale: bool = False
    replaced_elsewhere: bool = False
    notes: tuple[str, ...] = ()
    moves: tuple[tuple[str, str], ...] = ()


class CodeView:
    """The code as one reader sees it: a working tree, or the tree of a commit, and the history up to it."""

    def __init__(
        self,
        codebase: Codebase,
        tree: WorkTree,
        commit: str | None,
        project: str | None,
        *,
        by_commit: bool,
        patience_s: float,
    ) -> None:
        self._patience_s = patience_s
        self._codebase = codebase
        self._tree = tree
        self._commit = commit
        self._project = project
        self._by_commit = by_commit

    def standings(self, units: Iterable[Unit]) -> dict[str, Standing]:
        """What the code says of each unit it says anything about."""
        told = {unit.id: unit for unit in units if self._is_about(unit)}
        contained = self._contained(told.values())
        return {unit_id: self._standing(unit, contained) for unit_id, unit in told.items()}

    def _is_about(self, unit: Unit) -> bool:
        """Whether the unit says anything that this code can contradict: what an org knows may come from elsewhere."""
        return unit.is_bound_to_code and (not unit.provenance or unit.provenance[0].scope.project == self._project)

    def _contained(self, units: Iterable[Unit]) -> Mapping[str, bool | None]:
        """Of every commit that bounds one of these units, whether this reader's code has it: asked of git at once."""
        if not self._by_commit:
            return {}
        commits = {commit for unit in units for commit in (unit.valid_from_commit, unit.valid_to_commit) if commit}
        head = (self._commit or self._codebase.head()) if commits else None
        return self._codebase.history.contains(head, sorted(commits)) if head is not None else {}

    def _standing(self, unit: Unit, contained: Mapping[str, bool | None]) -> Standing:
        begin, end = unit.valid_from_commit, unit.valid_to_commit
        notes = tuple(
            f"Commit {commit[:_SHOWN]} is not in this repository (any more), so its time decides."
            for commit in (begin, end)
            if commit and commit in contained and contained[commit] is None
        )
        if begin and contained.get(begin) is False:
            return Standing(f"out of validity: holds from commit {begin[:_SHOWN]} on, which is not in this branch")
        replaced_elsewhere = bool(end) and contained.get(end or "") is False
        if replaced_elsewhere:
            notes += (f"Replaced by {unit.superseded_by} in commit {str(end)[:_SHOWN]}, which is not in this branch.",)
        moves: dict[str, str] = {}
        for citation in unit.citations:
            if citation.kind in OF_CODE:
                found = self._followed(citation, moves)
                if found.state == "gone":
                    return Standing(f"stale: {found.reason}", is_stale=True)
                if found.reason:
                    notes += (f"{found.reason}.",)
        notes += tuple(f"{old} is now {new}." for old, new in moves.items())
        return Standing(notes=notes, replaced_elsewhere=replaced_elsewhere, moves=tuple(moves.items()))

    def _followed(self, citation: Citation, moves: dict[str, str]) -> Check:
        """What became of cited code, also under a new name if git knows one."""
        found = checked(self._tree, citation)
        if found.state != "gone" or self._tree.has(citation.ref):
            return found
        path = self._codebase.renamed(citation.ref, self._commit, self._patience_s)
        if path is None:
            return found
        again = checked(self._tree, replace(citation, ref=path))
        if again.state == "gone":
            return replace(again, reason=f"{citation.ref} is now {path}: {again.reason}")
        moves[citation.ref] = path
        return again

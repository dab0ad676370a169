"""What the reader's code says of a unit: whether it holds at this commit, and whether what it cites is still there.

The cognitive gate of S11-S13, R8 and R11. It looks at nothing but what the candidates cite, and never fails a recall:
what can't be told passes, and the item says so.
"""

from __future__ import annotations

import time

from mnemarch.code.worktree import Check, checked
from mnemarch.errors import InvalidInput
from mnemarch.model.citation import OF_CODE
from mnemarch.model.unit import Kind
from mnemarch.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mnemarch.code.codebase import Codebase
    from mnemarch.code.elsewhere import Elsewhere
    from mnemarch.code.worktree import WorkTree
    from mnemarch.model.citation import Citation
    from mnemarch.model.unit import Unit

_SHOWN = 12
_SAID_CHARS_MAX = 700


@value
class Bearing:
    """What the code says of one unit. Without a reason it may be handed out; stale ones may be archived.

    `is_borne_out` says that all it cites was found; what can't be told is neither stale nor borne out. `missing` is the
    first citation that failed, or all of them where stale means gone from every branch.
    """

    reason: str | None = None
    is_stale: bool = False
    is_borne_out: bool = False
    replaced_elsewhere: bool = False
    notes: tuple[str, ...] = ()
    moves: tuple[tuple[str, str], ...] = ()
    missing: tuple[Citation, ...] = ()


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
        files: Callable[[], CodeView | None] | None = None,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        """`patience_s` is for all renames together, unless `files` shows what lies there beside what is committed.

        With `elsewhere`, only what is gone is stale, not what is merely not in this code.
        """
        self._patience_s = patience_s
        self._files = files
        self._elsewhere = elsewhere
        self._codebase = codebase
        self._tree = tree
        self._commit = commit
        self._project = project
        self._by_commit = by_commit

    def bearings(self, units: Iterable[Unit]) -> dict[str, Bearing]:
        """What the code says of each unit it says anything about."""
        told = {unit.id: unit for unit in units if self._is_about(unit)}
        contained = self._contained(told.values())
        found = {unit_id: self._bearing(unit, contained) for unit_id, unit in told.items()}
        stale = [told[unit_id] for unit_id, bearing in found.items() if bearing.is_stale]
        files = self._files() if stale and self._files is not None else None
        if files is not None:
            # What is not committed yet is not gone.
            found |= {unit_id: here for unit_id, here in files.bearings(stale).items() if not here.is_stale}
        for unit in stale:
            if self._is_elsewhere(found[unit.id].missing):
                found[unit.id] = replace(found[unit.id], is_stale=False)
        return found

    @property
    def commit(self) -> str | None:
        """The commit it is the code of; None for what lies in a working tree."""
        return self._commit

    def _is_about(self, unit: Unit) -> bool:
        """Whether the unit says anything that this code can contradict: what an org knows may come from elsewhere."""
        return unit.is_bound_to_code and (not unit.provenance or unit.provenance[0].scope.project == self._project)

    def _contained(self, units: Iterable[Unit]) -> Mapping[str, bool | None]:
        """Of every commit that bounds one of these units, whether this reader's code has it: asked of git at once.

        None for one that is gone: also if git still has it, but no branch does (R8).
        """
        if not self._by_commit:
            return {}
        commits = {commit for unit in units for commit in (unit.valid_from_commit, unit.valid_to_commit) if commit}
        head = (self._commit or self._codebase.head()) if commits else None
        if head is None:
            return {}
        history = self._codebase.history
        contained = history.contains(head, sorted(commits))
        beside = [commit for commit, answer in contained.items() if answer is False]
        return contained | dict.fromkeys(history.left(beside))

    def _bearing(self, unit: Unit, contained: Mapping[str, bool | None]) -> Bearing:
        begin, end = unit.valid_from_commit, unit.valid_to_commit
        notes = tuple(
            f"Commit {commit[:_SHOWN]} is on no branch of this repository (any more), so its time decides."
            for commit in (begin, end)
            if commit and commit in contained and contained[commit] is None
        )
        if begin and contained.get(begin) is False:
            return Bearing(f"out of validity: holds from commit {begin[:_SHOWN]} on, which is not in this branch")
        replaced_elsewhere = bool(end) and contained.get(end or "") is False
        if replaced_elsewhere:
            notes += (f"Replaced by {unit.superseded_by} in commit {str(end)[:_SHOWN]}, which is not in this branch.",)
        moves: dict[str, str] = {}
        missing: dict[Citation, str] = {}
        is_borne_out = True
        for citation in unit.citations:
            if citation.kind not in OF_CODE or _is_mention(unit, citation):
                continue
            if self._elsewhere is not None or not missing:
                found = self._followed(citation, moves)
                if found.state == "gone":
                    missing[citation] = found.reason
                is_borne_out = is_borne_out and found.state == "holds"
                if found.reason:
                    notes += (_said(f"{found.reason}."),)
        if missing:
            reason = next(iter(missing.values()))
            return Bearing(_said(f"stale: {reason}"), is_stale=True, missing=tuple(missing))
        notes += tuple(_said(f"{old} is now {new}.") for old, new in moves.items())
        return Bearing(
            is_borne_out=is_borne_out,
            notes=notes,
            replaced_elsewhere=replaced_elsewhere,
            moves=tuple(moves.items()),
        )

    def _is_elsewhere(self, missing: Sequence[Citation]) -> bool:
        """Whether another branch has what is missing here, all of it."""
        elsewhere = self._elsewhere
        return bool(missing) and elsewhere is not None and all(elsewhere.has(citation) for citation in missing)

    def _followed(self, citation: Citation, moves: dict[str, str]) -> Check:
        """What became of cited code, also under a new name if git knows one."""
        found = checked(self._tree, citation)
        if found.state != "gone" or self._tree.has(citation.ref):
            return found
        was = citation.get("was")
        if was is not None and self._tree.has(was):
            return checked(self._tree, replace(citation, ref=was))  # This branch has not seen it move.
        if self._elsewhere is not None and self._elsewhere.brings(citation):
            return found  # What never was here was not renamed here, and git would look through all commits for it.
        asked_at = time.monotonic()
        path = self._codebase.renamed(citation.ref, self._commit, self._patience_s)
        if self._files is None:
            self._patience_s = max(0.0, self._patience_s - (time.monotonic() - asked_at))
        if path is None:
            return found
        try:
            renamed = replace(citation, ref=path)
        except InvalidInput:
            return Check("unknown", f"{citation.ref} is now {path!a}, which can't be cited")
        again = checked(self._tree, renamed)
        if again.state == "gone":
            return replace(again, reason=f"{citation.ref} is now {path}: {again.reason}")
        moves[citation.ref] = path
        return again


def _is_mention(unit: Unit, citation: Citation) -> bool:
    """Whether a policy only names it: a policy holds whatever becomes of the files it speaks of (D15)."""
    return unit.kind is Kind.POLICY and citation.get("by") == "text"


def _said(text: str) -> str:
    """What is said of files, on one line: whoever can add a file to the repository chooses its name."""
    line = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
    return line if len(line) <= _SAID_CHARS_MAX else line[: _SAID_CHARS_MAX - 1] + "…"

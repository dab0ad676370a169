"""Whether code that is missing at a commit is gone, or only not there: on a branch, and perhaps to be merged (R11)."""

from __future__ import annotations

import time

from mnemarch.code import git
from mnemarch.code.commit_tree import CommitTree
from mnemarch.code.objects import Objects
from mnemarch.code.worktree import WorkTree, checked
from mnemarch.model.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mnemarch.code.history import History
    from mnemarch.model.citation import Citation


class Elsewhere:
    """The local branches beside the commit at which a unit is judged, as one sweep sees them.

    A worktree goes from branch to branch, so whichever has the code will do. For the project its default branch decides
    (`is_default`): what that has deleted is gone, whoever still has it, unless a branch brings it once it is merged.
    """

    def __init__(self, root: str, history: History, commit: str, *, is_default: bool, patience_s: float) -> None:
        self._root = root
        self._history = history
        self._commit = commit
        self._is_default = is_default
        self._patience_s = patience_s
        self._objects = Objects(root)
        self._tips: Sequence[str] | None = None
        self._brought: dict[Citation, bool] = {}
        # By the file's content: most branches have the same.
        self._held: dict[tuple[Citation, str], bool] = {}

    def has(self, citation: Citation) -> bool:
        """Whether what is missing at the commit stands elsewhere, and so is not gone."""
        return self.brings(citation) or (not self._is_default and bool(self._with(citation, self._branches())))

    def brings(self, citation: Citation) -> bool:
        """Whether a branch brings it: it has it, and where it left the commit's history nobody had it yet."""
        known = self._brought.get(citation)
        if known is None:
            known = self._brought[citation] = self._is_brought(citation)
        return known

    def _is_brought(self, citation: Citation) -> bool:
        until = time.monotonic() + self._patience_s
        for tip in self._with(citation, self._branches()):
            fork = self._history.fork(self._commit, tip)
            # In doubt it is: nothing is archived because git knew no answer, or none in time.
            if fork is None or not self._with(citation, [fork]) or time.monotonic() > until:
                return True
        return False

    def _branches(self) -> Sequence[str]:
        if self._tips is None:
            self._tips = git.branch_tips(self._root)
        return self._tips

    def _with(self, citation: Citation, commits: Sequence[str]) -> list[str]:
        """Those of the commits that have it."""
        found: dict[str, None] = {}
        for named in _named(citation):
            for commit, content in self._history.contents(named.ref, commits).items():
                if self._holds(named, commit, content):
                    found[commit] = None
        return list(found)

    def _holds(self, citation: Citation, commit: str, content: str) -> bool:
        known = self._held.get((citation, content))
        if known is None:
            tree = WorkTree(CommitTree(self._root, commit, self._objects))
            known = self._held[citation, content] = checked(tree, citation).state != "gone"
        return known


def _named(citation: Citation) -> Iterator[Citation]:
    """The citation by each name that its file has or had."""
    yield citation
    was = citation.get("was")
    if was is not None:
        yield replace(citation, ref=was)

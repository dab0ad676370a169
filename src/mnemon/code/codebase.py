"""One working tree and its repository, as a process that lives for a while sees them."""

from __future__ import annotations

import os

from mnemon.code import git
from mnemon.code.home import home_of
from mnemon.code.repository import repository_around, text_of
from mnemon.code.view import CodeView
from mnemon.code.worktree import WorkTree
from mnemon.lazy import Lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemon.code import commit_tree
    from mnemon.code import history as histories
    from mnemon.code.history import History
else:
    commit_tree = Lazy("mnemon.code.commit_tree")
    histories = Lazy("mnemon.code.history")


# Each has a git process of its own.
_COMMITS_MAX = 4
_ENDINGS_MAX = 4_096
# How long git may look for the new name of a file: while somebody waits for an answer, and while nobody does.
_RECALL_PATIENCE_S = 0.25
_SWEEP_PATIENCE_S = 10.0


class Codebase:
    """Where a reader stands. What git and the parsers said is kept here, and asked again when the files change."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.tree = WorkTree(root)
        self._history: History | None = None
        self._commits: dict[str, WorkTree] = {}
        self._endings: dict[str, str | None] = {}

    @property
    def history(self) -> History:
        if self._history is None:
            self._history = histories.History(self.root)
        return self._history

    def head(self) -> str | None:
        return git.head(self.root)

    def renamed(self, path: str, commit: str | None, wait_s_max: float) -> str | None:
        """Where a file that is gone went, up to that commit or to what is checked out."""
        head = commit or self.head()
        return None if head is None else self.history.renamed(path, head, wait_s_max=wait_s_max)

    def ending_with(self, path: str) -> str | None:
        """The one file that git knows whose path ends so; None if there is none, or several."""
        head = self.head()
        if head is None:
            return None
        if self._endings.get("") != head or len(self._endings) > _ENDINGS_MAX:
            self._endings = {"": head}
        if path not in self._endings:
            pattern = "".join(f"[{character}]" if character in "*?[" else character for character in path)
            listed = git.git(self.root, ["ls-files", "-z", "--", f":(glob)**/{pattern}"]) or ""
            files = [name for name in listed.split("\0") if name]
            self._endings[path] = files[0] if len(files) == 1 else None
        return self._endings[path]

    def view(self, project: str | None, *, by_commit: bool) -> CodeView:
        """The code as it lies in the working tree."""
        return CodeView(self, self.tree, None, project, by_commit=by_commit, patience_s=_RECALL_PATIENCE_S)

    def view_at(self, project: str | None, commit: str, patience_s: float = _RECALL_PATIENCE_S) -> CodeView:
        """The code as it was at a commit."""
        tree = self._commits.get(commit)
        if tree is None:
            while len(self._commits) >= _COMMITS_MAX:
                self._commits.pop(next(iter(self._commits)), None)
            tree = self._commits[commit] = WorkTree(commit_tree.CommitTree(self.root, commit))
        return CodeView(self, tree, commit, project, by_commit=True, patience_s=patience_s)

    def committed_view(self, project: str | None, worktree: str | None, *, own: bool) -> CodeView | None:
        """What is committed in a worktree, or on the default branch for what belongs to none; None if unknown."""
        if self.head() is None:
            return self.view(project, by_commit=True)  # A plain folder, or nothing committed yet.
        if worktree is None:
            branch = git.default_branch(self.root)
            commit = None if branch is None else git.tip(self.root, branch)
        else:
            root = self.root if own else self.worktrees().get(worktree)
            commit = None if root is None else git.head(root)
        return None if commit is None else self.view_at(project, commit, _SWEEP_PATIENCE_S)

    def worktrees(self) -> dict[str, str]:
        """The folders of the repository's worktrees by the names that scopes give them."""
        repository = repository_around(self.root)
        if repository is None:
            return {}
        places = os.path.join(repository.common, "worktrees")
        names = os.listdir(places) if os.path.isdir(places) else []
        markers = [text_of(os.path.join(places, name, "gitdir")) for name in names]
        folders = [os.path.dirname(marker.strip()) for marker in markers if marker]
        homes = [home_of(folder) for folder in (os.path.dirname(repository.common), *folders) if os.path.isdir(folder)]
        return {home.worktree: home.root for home in homes if home.worktree is not None}

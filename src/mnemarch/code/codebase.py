"""One working tree and its repository, as a process that lives for a while sees them."""

from __future__ import annotations

import os
from functools import cache

from mnemarch.code import git
from mnemarch.code.repository import is_bare, repository_around
from mnemarch.code.sources import CommitFiles
from mnemarch.code.view import CodeView
from mnemarch.code.worktree import WorkTree
from mnemarch.lazy import Lazy
from mnemarch.model.citation import OF_CODE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.code import history as histories
    from mnemarch.code.history import History
    from mnemarch.model.unit import Unit
else:
    histories = Lazy("mnemarch.code.history")


_COMMITS_MAX = 4
_ENDINGS_MAX = 4_096
# How long git may look for the new name of a file: while somebody waits for an answer, and while nobody does.
_RECALL_PATIENCE_S = 0.25
_SWEEP_PATIENCE_S = 10.0


class Codebase:
    """Where a reader stands. The answers of git and the parsers are cached here until the files change."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.tree = WorkTree(root)
        self._history: History | None = None
        self._commits: dict[str, WorkTree] = {}
        self._endings: dict[str, str | None] = {}
        self._has_files: bool | None = None

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
        endings = self._endings
        if endings.get("") != head or len(endings) > _ENDINGS_MAX:
            self._endings = endings = {"": head}
        if path not in endings:
            pattern = "".join(f"[{character}]" if character in "*?[" else character for character in path)
            listed = git.git(self.root, ["ls-files", "-z", "--", f":(glob)**/{pattern}"]) or ""
            files = [name for name in listed.split("\0") if name]
            endings[path] = files[0] if len(files) == 1 else None
        return endings[path]

    def view(self, project: str | None, *, by_commit: bool) -> CodeView:
        """The code in the working tree; of a bare repository, at its HEAD."""
        head = None if self._is_checked_out() else self.head()
        tree = self.tree if head is None else self._tree_at(head)
        return CodeView(self, tree, head, project, by_commit=by_commit, patience_s=_RECALL_PATIENCE_S)

    def view_at(self, project: str | None, commit: str) -> CodeView:
        """The code at a commit."""
        return CodeView(self, self._tree_at(commit), commit, project, by_commit=True, patience_s=_RECALL_PATIENCE_S)

    def committed_view(self, project: str | None, worktree: str | None, *, own: bool) -> CodeView | None:
        """The committed code of a worktree, or of the default branch for what belongs to none; None if unknown.

        Where it is checked out, files that are not committed yet count too; and code of another branch is not gone.
        """
        if self.head() is None:
            return self.view(project, by_commit=True)  # A plain folder, or nothing committed yet.
        branch = git.default_branch(self.root) if worktree is None else None
        root = None if worktree is None else self.root if own else self.worktrees().get(worktree)
        if worktree is None:
            commit = None if branch is None else git.tip(self.root, branch)
        else:
            commit = None if root is None else git.head(root)
        if commit is None:
            return None
        return CodeView(
            self,
            self._tree_at(commit),
            commit,
            project,
            by_commit=True,
            patience_s=_SWEEP_PATIENCE_S,
            is_default=worktree is None,
            files=cache(lambda: self._files_in(root or self._folder_of(branch), project)),
        )

    def is_root_of(self, unit: Unit) -> bool:
        """Whether the unit's paths count from here: from this folder of its repository, or of a clone.

        In doubt they don't; but of what was recorded in a plain folder nothing is known, and any folder may be its own.
        """
        cited = {citation.get("root") for citation in unit.citations if citation.kind in OF_CODE} - {None}
        named = cited or ({f"{unit.valid_from_commit}:"} if unit.valid_from_commit else set())
        if not named:
            return True
        repository = repository_around(self.root)
        if repository is None:
            return False
        places = [str(name).partition(":") for name in named]
        if {folder for _, _, folder in places} != {repository.prefix(self.root)}:
            return False
        return self.history.has({commit for commit, _, _ in places})

    def worktrees(self) -> dict[str, str]:
        """The folders of the repository's worktrees by the names that scopes give them."""
        from mnemarch.code.home import worktrees_of

        repository = repository_around(self.root)
        return {} if repository is None else worktrees_of(repository)

    def _tree_at(self, commit: str) -> WorkTree:
        tree = self._commits.get(commit)
        if tree is None:
            if len(self._commits) >= _COMMITS_MAX:
                self._commits = {}
            tree = self._commits[commit] = WorkTree(CommitFiles(self.root, commit))
        return tree

    def _is_checked_out(self) -> bool:
        """Whether there are files to look at; a bare repository has none."""
        if self._has_files is None:
            repository = repository_around(self.root)
            self._has_files = repository is None or not is_bare(repository)
        return self._has_files

    def _folder_of(self, branch: str | None) -> str | None:
        """Where a branch is checked out."""
        folders = (self.root, *self.worktrees().values())
        return next((folder for folder in folders if branch is not None and git.branch(folder) == branch), None)

    def _files_in(self, folder: str | None, project: str | None) -> CodeView | None:
        """The files in a worktree of this repository, seen from the same folder in it as here."""
        repository = repository_around(self.root)
        if folder is None or repository is None:
            return None
        there = self if folder == self.root else Codebase(os.path.join(folder, repository.prefix(self.root)))
        return there.view(project, by_commit=False) if there._is_checked_out() else None

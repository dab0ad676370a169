"""Which memory a folder belongs to: the nearest repository, its project and its worktree (R3)."""

from __future__ import annotations

import os

from mnemon.model.value import value

FOLDER = ".mnemon"
_SIGNS = (".git", FOLDER, "mnemon.toml")


@value
class Home:
    """Where the memory lives (`folder`), which working tree this is (`root`), and what to call them."""

    folder: str
    root: str
    project: str
    worktree: str | None


def home_of(start: str) -> Home:
    """The home of a folder: all worktrees of one repository share it; a plain folder is its own."""
    start = os.path.abspath(start)
    root = _upward(start)
    if root is None:
        return Home(folder=start, root=start, project=_named(start), worktree=None)
    marker = os.path.join(root, ".git")
    if os.path.isfile(marker):
        linked = _linked(root)
        if linked is not None:
            return linked
    return Home(folder=root, root=root, project=_named(root), worktree="main" if os.path.exists(marker) else None)


def _upward(start: str) -> str | None:
    folder = start
    while True:
        if any(os.path.exists(os.path.join(folder, sign)) for sign in _SIGNS):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def _linked(root: str) -> Home | None:
    """A linked worktree: the main one's folder holds the memory, and git's own name of the worktree names it."""
    from mnemon.code.git import git

    answer = git(root, ["rev-parse", "--path-format=absolute", "--git-common-dir", "--git-dir"])
    common, _, own = (answer or "").partition("\n")
    if not own or common == own:
        return None
    main = os.path.dirname(common) if os.path.basename(common) == ".git" else common
    return Home(folder=main, root=root, project=_named(main), worktree=os.path.basename(own))


def _named(folder: str) -> str:
    return os.path.basename(folder) or "root"

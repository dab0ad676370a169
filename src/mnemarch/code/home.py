"""Which memory a folder belongs to: the nearest repository, its project and its worktree (R3)."""

from __future__ import annotations

import os

from mnemarch.code.remote import bare_name, remote_folder, remote_name
from mnemarch.code.repository import main_folder, repository_at, settings_of
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.code.repository import Repository, Settings

FOLDER = ".mnemarch"
_SIGNS = (FOLDER, "mnemarch.toml")
_MAIN = "main"


@value
class Home:
    """Where the memory lives (`folder`), which working tree this is (`root`), and what to call them."""

    folder: str
    root: str
    project: str
    worktree: str | None


def home_of(start: str) -> Home:
    """The home of a folder: all worktrees of one repository share it; a plain folder is its own.

    Only files are read, whoever owns them and whatever GIT_DIR says: no process is started.
    """
    start = folder = os.path.realpath(start)
    while True:
        repository = repository_at(folder)
        if repository is not None:
            return _in_repository(repository)
        if _is_plain_home(folder):
            return _plain(folder)
        parent = os.path.dirname(folder)
        if parent == folder:
            return _plain(start)
        folder = parent


def _is_plain_home(folder: str) -> bool:
    """Whether a memory was begun here; or a .git file that leads nowhere says that a repository once was here."""
    return any(os.path.exists(os.path.join(folder, sign)) for sign in _SIGNS) or os.path.isfile(
        os.path.join(folder, ".git")
    )


def _plain(folder: str) -> Home:
    return Home(folder=folder, root=folder, project=_named(folder), worktree=None)


def _in_repository(repository: Repository) -> Home:
    settings = settings_of(repository)
    folder = main_folder(repository, settings)
    project = _project(repository, settings, folder)
    if repository.linked is not None:
        # Git's names hold no slash, so nothing else is called like this.
        name = f"worktrees/{_MAIN}" if repository.linked == _MAIN else _text(repository.linked)
        return Home(folder=folder, root=repository.top, project=project, worktree=name)
    # Inside of .git one is in the working tree that it belongs to.
    inside = repository.top == repository.common
    return Home(
        folder=folder,
        root=folder if inside else repository.top,
        project=project,
        worktree=None if settings.bare else _MAIN,
    )


def _project(repository: Repository, settings: Settings, folder: str) -> str:
    """The remote's name; of a remote on this disk, its own project's; else the name of the main folder."""
    names: dict[str, str] = {}
    while True:
        names[repository.common] = _folder_name(repository, folder)
        url = "" if settings.remote is None else settings.remote[1]
        name, elsewhere = remote_name(url), remote_folder(url)
        if name is not None:
            return _text(name)
        if elsewhere is None:
            return names[repository.common]
        origin = os.path.realpath(os.path.join(folder, elsewhere))
        found = repository_at(origin)
        if found is None:
            # Not there now. What looks like one may be a mistyped address, with a token before its @.
            return bare_name(_named(origin.removesuffix("/.git")).rpartition("@")[2]) or names[repository.common]
        if found.common in names:
            # Each is the other's remote: either name will do, if only both choose it.
            return min(names.values())
        repository, settings = found, settings_of(found)
        folder = main_folder(repository, settings)


def _folder_name(repository: Repository, folder: str) -> str:
    if folder != repository.common:
        return _named(folder)
    # A bare repository: `shop.git`, or a hidden folder in the one that has the name.
    name = bare_name(_named(folder))
    return _named(os.path.dirname(folder)) if name.startswith(".") else name


def _named(folder: str) -> str:
    return _text(os.path.basename(folder))


def _text(name: str) -> str:
    """A name that can be one: not blank, and of characters that UTF-8 has."""
    name = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return name if name.strip() else "root"

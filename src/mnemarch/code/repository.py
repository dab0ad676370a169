"""A repository read from its own files, without starting git: every hook call asks where it is."""

from __future__ import annotations

import os

from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_FILE_BYTES_MAX = 16 << 20
_TRUE = frozenset({"true", "yes", "on", "1"})
_ESCAPED = {"n": "\n", "t": "\t", "b": "\b"}


@value
class Repository:
    """One working tree (`top`), its own git directory, and the one that all worktrees share."""

    top: str
    own: str
    common: str

    @property
    def linked(self) -> str | None:
        """Git's name of a linked worktree, which stays when its folder is moved; None for the main one."""
        return None if self.own == self.common else os.path.basename(self.own)

    def linked_names(self) -> list[str]:
        """Git's names of all linked worktrees."""
        try:
            return os.listdir(os.path.join(self.common, "worktrees"))
        except OSError:
            return []

    def prefix(self, root: str) -> str:
        """What git puts before a path that is relative to `root`: empty at the top, else `folder/`."""
        inner = os.path.relpath(os.path.realpath(root), self.top)
        return "" if inner == "." or self.top == self.common else f"{inner}/"


def repository_around(start: str) -> Repository | None:
    """The repository that a folder is in: the nearest upward, as git finds it."""
    folder = os.path.realpath(start)
    while True:
        repository = repository_at(folder)
        if repository is not None:
            return repository
        parent = os.path.dirname(folder)
        # Git stops at a .git file that leads nowhere, too.
        if parent == folder or os.path.isfile(os.path.join(folder, ".git")):
            return None
        folder = parent


def repository_at(folder: str) -> Repository | None:
    """The repository whose top is this very folder: it has a .git, or is a git directory itself."""
    marker = os.path.join(folder, ".git")
    if os.path.isdir(marker):
        own = os.path.realpath(marker)
    elif os.path.isfile(marker):
        link = text_of(marker) or ""
        if not link.startswith("gitdir:"):
            return None
        own = os.path.realpath(os.path.join(folder, link.removeprefix("gitdir:").lstrip(" ").rstrip("\r\n")))
    else:
        own = folder
    # In a folder that is no git directory, this first look is the last.
    if not os.path.lexists(os.path.join(own, "HEAD")):
        return None
    link = (text_of(os.path.join(own, "commondir")) or "").rstrip("\r\n")
    common = os.path.realpath(os.path.join(own, link)) if link else own
    if not all(os.path.isdir(os.path.join(common, name)) for name in ("objects", "refs")):
        return None
    return Repository(top=folder, own=own, common=common)


@value
class Settings:
    """The part of a repository's configuration that Mnemarch needs. Includes and `insteadOf` are not followed."""

    bare: bool
    worktree: str | None
    remotes: tuple[tuple[str, str], ...]

    @property
    def remote(self) -> tuple[str, str] | None:
        """Name and address of the remote that stands for the repository: origin, else the only one."""
        origin = next((remote for remote in self.remotes if remote[0] == "origin"), None)
        return origin or (self.remotes[0] if len(self.remotes) == 1 else None)


def settings_of(repository: Repository) -> Settings:
    """The settings that all worktrees share, and those of the main worktree."""
    core: dict[tuple[str, str], str | None] = {}
    remotes: dict[str, str] = {}
    for name in ("config", "config.worktree"):
        if name == "config.worktree" and not _is_true(core.get(("extensions", "worktreeconfig"), "no")):
            break
        for section, subsection, key, content in entries(text_of(os.path.join(repository.common, name)) or ""):
            if section == "remote" and key == "url" and content:
                remotes.setdefault(subsection, content)
            core[section, key] = content
    return Settings(
        bare=_is_true(core.get(("core", "bare"), "no")),
        worktree=core.get(("core", "worktree")),
        remotes=tuple(remotes.items()),
    )


def main_folder(repository: Repository, settings: Settings) -> str:
    """The folder of the main working tree; a bare repository's is its own, or the one that holds it as its .git.

    It follows from what all worktrees share, so all of them get the same answer.
    """
    common = repository.common
    parent = os.path.dirname(common)
    if os.path.basename(common) == ".git":
        return parent
    if settings.worktree:
        apart = os.path.realpath(os.path.join(common, settings.worktree))
        if os.path.isdir(apart):
            return apart
    beside = repository_at(parent)
    return parent if beside is not None and beside.own == common else common


def is_bare(repository: Repository) -> bool:
    """Whether there are no files to look at."""
    return repository.top == repository.common or (repository.linked is None and settings_of(repository).bare)


def entries(text: str) -> Iterator[tuple[str, str, str, str | None]]:
    """Section, subsection, key and value of each setting in a git configuration; a key without = has no value."""
    section = subsection = ""
    lines = iter(text.removeprefix("\ufeff").split("\n"))
    for line in lines:
        line = line.strip()
        if line.startswith("["):
            section, subsection, line = _header(line)
        if not line or line[0] in "#;":
            continue
        # An odd number of backslashes at the end: the value goes on in the next line.
        while (len(line) - len(line.rstrip("\\"))) % 2:
            line = line[:-1] + next(lines, "").rstrip()
        key, equals, content = line.partition("=")
        yield section, subsection, key.strip().lower(), _unquoted(content) if equals else None


def _header(line: str) -> tuple[str, str, str]:
    """The names in `[section "sub"]`, and what follows on the line."""
    name, quoted, rest = line[1:].partition('"')
    if not quoted or "]" in name:
        name, _, rest = line[1:].partition("]")
        name, _, subsection = name.strip().lower().partition(".")
        return name, subsection, rest.strip()
    subsection = ""
    characters = iter(rest)
    for character in characters:
        if character == '"':
            break
        subsection += next(characters, "") if character == "\\" else character
    return name.strip().lower(), subsection, "".join(characters).strip().removeprefix("]").strip()


def _unquoted(text: str) -> str:
    """A value without its quotes, escapes and comment."""
    content, quoted, solid = "", False, 0
    characters = iter(text.strip())
    for character in characters:
        if character == '"':
            quoted = not quoted
        elif character == "\\":
            escaped = next(characters, "")
            content += _ESCAPED.get(escaped, escaped)
        elif character in "#;" and not quoted:
            break
        else:
            content += character
        # Outside of quotes, spaces may turn out to lead up to a comment.
        solid = len(content) if quoted or not character.isspace() else solid
    return content[:solid]


def _is_true(content: str | None) -> bool:
    return content is None or content.lower() in _TRUE


def text_of(path: str) -> str | None:
    """The text of one of git's small files, None if it isn't there; bytes that are no UTF-8 survive as in paths."""
    try:
        with open(path, "rb") as file:
            return file.read(_FILE_BYTES_MAX).decode("utf-8", "surrogateescape")
    except (OSError, ValueError):
        return None

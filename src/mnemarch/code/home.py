"""Finds a folder's repository and memory, and names its clone (R3). Reads git's files without starting git."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress

from mnemarch.files import read_small, write_private
from mnemarch.model.stamps import sha256
from mnemarch.model.value import Frozen

FOLDER = ".mnemarch"
_FILE_BYTES_MAX = 16 << 20
_TRUE = frozenset({"true", "yes", "on", "1"})
_ESCAPED = {"n": "\n", "t": "\t", "b": "\b"}
_SIGNS = (FOLDER, "mnemarch.toml")
_MAIN = "main"
# The file with the clone's name, in the git directory that all worktrees share.
_CLONE = "mnemarch-clone"
# Alternative names of servers, used where only port 443 is open.
_ALIASES = {
    "ssh.github.com": "github.com",
    "www.github.com": "github.com",
    "altssh.gitlab.com": "gitlab.com",
    "altssh.bitbucket.org": "bitbucket.org",
}
# Servers where `Acme/Shop` and `acme/shop` are one repository.
_CASELESS = frozenset({"github.com", "gitlab.com", "bitbucket.org", "codeberg.org"})


class Repository(Frozen):
    """One working tree (`top`), its own git directory, and the git directory that all worktrees share."""

    top: str
    own: str
    common: str

    @property
    def linked(self) -> str | None:
        """Git's name of a linked worktree, which survives moving its folder. None for the main worktree."""
        return None if self.own == self.common else os.path.basename(self.own)


def repository_around(start: str) -> Repository | None:
    """The nearest repository at or above a folder, as git finds it."""
    for folder in upward(start):
        repository = repository_at(folder)
        # Git stops at a .git file that leads nowhere, too.
        if repository is not None or os.path.isfile(os.path.join(folder, ".git")):
            return repository
    return None


def top_of(folder: str) -> str:
    """The top of the working tree around a folder, which paths are relative to. A plain folder is its own top."""
    repository = repository_around(folder)
    return folder if repository is None or repository.top == repository.common else repository.top


def upward(start: str) -> Iterator[str]:
    """The folder and its parents, the outermost last."""
    folder, parent = os.path.realpath(start), ""
    while folder != parent:
        yield folder
        parent, folder = folder, os.path.dirname(folder)


def repository_at(folder: str) -> Repository | None:
    """The repository whose top is exactly this folder: it has a .git, or is a git directory itself."""
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
    # Most folders are no git directory: this one check ends the search for them.
    if not os.path.lexists(os.path.join(own, "HEAD")):
        return None
    link = (text_of(os.path.join(own, "commondir")) or "").rstrip("\r\n")
    common = os.path.realpath(os.path.join(own, link)) if link else own
    # A forged git directory must not lead to another repository's memory, and a clone must not contain one at all.
    if own == folder:
        around = () if ".git" in folder.split(os.sep) else upward(os.path.dirname(folder))
        is_brought = any(os.path.lexists(os.path.join(each, ".git")) for each in around)
        if is_brought or (link and os.path.dirname(own) != os.path.join(common, "worktrees")):
            return None
    if not all(os.path.isdir(os.path.join(common, name)) for name in ("objects", "refs")):
        return None
    return Repository(top=folder, own=own, common=common)


class Settings(Frozen):
    """The part of a repository's configuration that Mnemarch needs. Includes and `insteadOf` are not followed."""

    bare: bool
    worktree: str | None
    # Name and address of the remote that names the project: origin, else the only one.
    remote: tuple[str, str] | None


def settings_of(repository: Repository) -> Settings:
    """The settings shared by all worktrees, and those of the main worktree."""
    core: dict[tuple[str, str], str | None] = {}
    remotes: dict[str, str] = {}
    for name in ("config", "config.worktree"):
        if name == "config.worktree" and not _is_true(core.get(("extensions", "worktreeconfig"), "no")):
            break
        for section, subsection, key, content in entries(text_of(os.path.join(repository.common, name)) or ""):
            if section == "remote" and key == "url" and content:
                remotes.setdefault(subsection, content)
            core[section, key] = content
    names = ["origin"] if "origin" in remotes else [*remotes]
    return Settings(
        bare=_is_true(core.get(("core", "bare"), "no")),
        worktree=core.get(("core", "worktree")),
        remote=(names[0], remotes[names[0]]) if len(names) == 1 else None,
    )


def main_folder(repository: Repository, settings: Settings) -> str:
    """The folder of the main working tree. For a bare repository: its own folder, or the one with it as .git."""
    common = repository.common
    parent = os.path.dirname(common)
    if os.path.basename(common) == ".git":
        return parent
    if settings.worktree:
        apart = os.path.realpath(os.path.join(common, settings.worktree))
        there = repository_at(apart)
        if there is not None and there.common == common:  # Only if that folder points back to this repository.
            return apart
    beside = repository_at(parent)
    return parent if beside is not None and beside.own == common else common


def is_bare(repository: Repository) -> bool:
    """Whether the repository has no working tree."""
    return repository.top == repository.common or (repository.linked is None and settings_of(repository).bare)


def entries(text: str) -> Iterator[tuple[str, str, str, str | None]]:
    """Section, subsection, key and value of each setting in a git configuration. The value is None without =."""
    section = subsection = ""
    lines = iter(text.removeprefix("\ufeff").split("\n"))
    for line in lines:
        line = line.strip()
        if line.startswith("["):
            section, subsection, line = _header(line)
        if not line or line[0] in "#;":
            continue
        # An odd number of backslashes at the end continues the value in the next line.
        while (len(line) - len(line.rstrip("\\"))) % 2:
            line = line[:-1] + next(lines, "").rstrip()
        key, equals, content = line.partition("=")
        yield section, subsection, key.strip().lower(), _unquoted(content) if equals else None


def _header(line: str) -> tuple[str, str, str]:
    """The names in `[section "sub"]`, and the rest of the line."""
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
    """The text of one of git's small files, or None if missing. Bytes that aren't UTF-8 are kept, as in paths."""
    try:
        return read_small(path, _FILE_BYTES_MAX).decode("utf-8", "surrogateescape")
    except (OSError, ValueError):
        return None


class Home(Frozen):
    """The memory's folder, the root of the working tree, and the names of project and worktree."""

    folder: str
    root: str
    project: str
    worktree: str | None


def home_of(start: str, memory_in: str = "") -> Home:
    """The home of a folder. All worktrees of one repository share it. A plain folder is its own home and worktree.

    `memory_in` is a folder where a memory is about to be created; it counts as if the memory existed. This only reads
    files, regardless of their owner and of GIT_DIR, and starts no process.
    """
    root = os.path.realpath(start)
    for folder in upward(start):
        repository = repository_at(folder)
        if repository is not None:
            return _in_repository(repository)
        # A .git file without a target marks a former repository.
        is_former = os.path.isfile(os.path.join(folder, ".git"))
        has_sign = any(os.path.exists(os.path.join(folder, sign)) for sign in _SIGNS)
        if is_former or has_sign or folder == memory_in:
            root = folder
            break
    return Home(folder=root, root=root, project=_base_name(root), worktree=_MAIN)


def worktrees_of(repository: Repository) -> dict[str, str]:
    """The folders of the repository's worktrees by their names."""
    folders = [main_folder(repository, settings_of(repository))]
    linked = os.path.join(repository.common, "worktrees")
    for name in os.listdir(linked) if os.path.isdir(linked) else ():
        place = os.path.join(linked, name)
        marker = text_of(os.path.join(place, "gitdir"))
        if marker:
            # With worktree.useRelativePaths the path is relative to the file that contains it.
            folders.append(os.path.join(place, os.path.dirname(marker)))
    worktrees: dict[str, str] = {}
    for folder in filter(os.path.isdir, folders):
        around, home = repository_around(folder), home_of(folder)
        # Another repository may have replaced a removed worktree.
        if around is not None and around.common == repository.common and home.worktree is not None:
            worktrees[home.worktree] = home.root
    return worktrees


def _in_repository(repository: Repository) -> Home:
    settings = settings_of(repository)
    folder = main_folder(repository, settings)
    project = _project(repository, settings, folder)
    if repository.linked is not None:
        # Git's names contain no slash, so this name is unique.
        name = f"worktrees/{_MAIN}" if repository.linked == _MAIN else usable_name(repository.linked)
        return Home(folder=folder, root=repository.top, project=project, worktree=name)
    # A folder inside .git belongs to the working tree of that .git.
    root = folder if repository.top == repository.common else repository.top
    return Home(folder=folder, root=root, project=project, worktree=None if settings.bare else _MAIN)


def _project(repository: Repository, settings: Settings, folder: str) -> str:
    """The project's name: the remote's name, the project of a remote on this disk, or the main folder's name."""
    names: dict[str, str] = {}
    while True:
        names[repository.common] = _folder_name(repository, folder)
        url = "" if settings.remote is None else settings.remote[1]
        name, remote = remote_name(url), remote_folder(url)
        if name is not None:
            return usable_name(name)
        if remote is None:
            return names[repository.common]
        origin = os.path.realpath(os.path.join(folder, remote))
        upstream = repository_at(origin)
        if upstream is None:
            # The folder is missing. It may be a mistyped address with a token before its @.
            return _bare_name(_base_name(origin.removesuffix("/.git")).rpartition("@")[2]) or names[repository.common]
        if upstream.common in names:
            # The repositories are each other's remotes. Both must get the same name.
            return min(names.values())
        repository, settings = upstream, settings_of(upstream)
        folder = main_folder(repository, settings)


def _folder_name(repository: Repository, folder: str) -> str:
    if folder != repository.common:
        return _base_name(folder)
    # A bare repository is called `shop.git`, or is a hidden folder inside the folder with the name.
    name = _bare_name(_base_name(folder))
    return _base_name(os.path.dirname(folder)) if name.startswith(".") else name


def _base_name(folder: str) -> str:
    return usable_name(os.path.basename(folder))


def _bare_name(name: str) -> str:
    """A repository's name without `.git` or `.bundle`."""
    return name.removesuffix(".git").removesuffix(".bundle") or name


def usable_name(name: str) -> str:
    """The name, encodable as UTF-8, or "root" if it is blank."""
    name = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return name if name.strip() else "root"


def remote_name(url: str) -> str | None:
    """Host and path, such as `github.com/acme/shop`, never a credential. None for a local folder or an invalid URL."""
    url = _address(url)
    scheme, marked, rest = url.partition("://")
    if not marked:
        return _scp_name(url)
    return None if scheme.lower() == "file" else _url_name(rest)


def remote_folder(url: str) -> str | None:
    """The local folder that a remote names, as written. It may be relative to the repository."""
    url = _address(url)
    if url[:7].lower() == "file://":
        return _decoded("/" + url[7:].partition("/")[2])
    return url if url and "://" not in url and not _is_scp(url) and "\0" not in url else None


def _address(url: str) -> str:
    """The address after a transport helper (`helper::address`), or the URL itself."""
    url = url.strip()
    helper, marked, address = url.partition("::")
    if not marked or not helper.replace("-", "").replace("+", "").isalnum():
        return url
    # An address that is no URL is a command line, which may contain secrets.
    return address if "://" in address else ""


def _is_scp(url: str) -> bool:
    """Whether the URL has the form `host:path`. Git's rule: a colon before any slash."""
    return ":" in url.partition("/")[0]


def _scp_name(url: str) -> str | None:
    if not _is_scp(url):
        return None
    host, colon, path = url.partition(":")
    if url.startswith("[") or "@[" in host:
        host, _, after = url.partition("[")[2].partition("]")
        colon, path = after[:1], after[1:]
        host = host if host.count(":") > 1 else host.partition(":")[0]
    elif "@" not in host and "@" in path.partition("/")[0]:
        # Git doesn't accept `user:password@host:path`, but the password must still be dropped.
        host, colon, path = url.rpartition("@")[2].partition(":")
    return _joined(host.rpartition("@")[2], path) if colon else None


def _url_name(rest: str) -> str | None:
    # Some servers take a token as `?private_token=`.
    plain = rest.partition("?")[0].partition("#")[0]
    if "@" in rest[len(plain) :]:
        return None
    authority, _, path = plain.partition("/")
    # A password with an unescaped character ends only at the last @. `/@scope/` is part of the path.
    before, marked, after = path.rpartition("@")
    if marked and before and not before.endswith("/"):
        return _url_name(after)
    place = authority.rpartition("@")[2]
    host, _, port = place[1:].partition("]") if place.startswith("[") else place.partition(":")
    port = port.removeprefix(":")
    return _joined(host, _decoded(path)) if port.isdigit() or not port else None


def _joined(host: str, path: str) -> str | None:
    host = host.lower().rstrip(".")
    host = _ALIASES.get(host, host)
    segments = [segment for segment in path.split("/") if segment not in {"", "."}]
    if not host or any(character < " " or character == "\x7f" for character in host + path):
        return None
    if segments:
        segments[-1] = _bare_name(segments[-1])
    name = "/".join([host, *segments])
    return name.lower() if host in _CASELESS else name


def _decoded(text: str) -> str:
    """The text without percent encoding."""
    if "%" not in text:
        return text
    from urllib.parse import unquote_to_bytes  # takes milliseconds to import

    return unquote_to_bytes(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


# Clones that share a memory


def clone_at(folder: str) -> str:
    """This clone's name among all clones: the host's name and a random number. It survives moving the clone."""
    host = usable_name(os.uname().nodename.partition(".")[0])
    repository = repository_around(folder)
    if repository is not None:
        path = os.path.join(repository.common, _CLONE)
        if not text_of(path):
            with suppress(OSError):
                write_private(path, f"{host}-{os.urandom(2).hex()}".encode(), replaces=False)
        if name := text_of(path):
            return usable_name(name)
    # The clone can't store a name, so its path names it.
    return f"{host}-{sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:4]}"


def in_clone(worktree: str, clone: str | None) -> str:
    """The name of a worktree among those of all clones. Without a clone, the name alone."""
    return worktree if clone is None else f"{worktree}@{clone}"


def absent_of(worktrees: Iterable[str | None], there: Collection[str], clone: str | None) -> set[str | None]:
    """The worktrees that this clone does not have. Worktrees of other clones are unknown and never included."""
    gone = set(worktrees).difference(there) if there else set()
    return {name for name in gone if clone is None or (name or "").endswith(f"@{clone}")}

"""Which memory a folder belongs to: the nearest repository, its project and its worktree (R3)."""

from __future__ import annotations

import os

from mnemarch.code.repository import main_folder, repository_around, repository_at, settings_of, text_of
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.code.repository import Repository, Settings

FOLDER = ".mnemarch"
_SIGNS = (FOLDER, "mnemarch.toml")
_MAIN = "main"
# The same servers under the names they answer to where only port 443 is open.
_ALIASES = {
    "ssh.github.com": "github.com",
    "www.github.com": "github.com",
    "altssh.gitlab.com": "gitlab.com",
    "altssh.bitbucket.org": "bitbucket.org",
}
# There `Acme/Shop` and `acme/shop` are one repository.
_CASELESS = frozenset({"github.com", "gitlab.com", "bitbucket.org", "codeberg.org"})


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
        parent = os.path.dirname(folder)
        # A .git file that leads nowhere: a repository once was here.
        is_own_home = os.path.isfile(os.path.join(folder, ".git")) or any(
            os.path.exists(os.path.join(folder, sign)) for sign in _SIGNS
        )
        if is_own_home or parent == folder:
            root = folder if is_own_home else start
            return Home(folder=root, root=root, project=_base_name(root), worktree=None)
        folder = parent


def worktrees_of(repository: Repository) -> dict[str, str]:
    """The folders of the repository's worktrees by the names that scopes give them."""
    folders = [main_folder(repository, settings_of(repository))]
    for name in repository.linked_names():
        place = os.path.join(repository.common, "worktrees", name)
        marker = text_of(os.path.join(place, "gitdir"))
        if marker:
            # Where worktree.useRelativePaths is set, it is relative to the file that holds it.
            folders.append(os.path.join(place, os.path.dirname(marker)))
    # In the place of a worktree that is gone, there may be another repository by now.
    ours = [folder for folder in folders if os.path.isdir(folder) and _is_of(folder, repository)]
    homes = [home_of(folder) for folder in ours]
    return {home.worktree: home.root for home in homes if home.worktree is not None}


def _is_of(folder: str, repository: Repository) -> bool:
    around = repository_around(folder)
    return around is not None and around.common == repository.common


def _in_repository(repository: Repository) -> Home:
    settings = settings_of(repository)
    folder = main_folder(repository, settings)
    project = _project(repository, settings, folder)
    if repository.linked is not None:
        # Git's names hold no slash, so nothing else is called like this.
        name = f"worktrees/{_MAIN}" if repository.linked == _MAIN else _text(repository.linked)
        return Home(folder=folder, root=repository.top, project=project, worktree=name)
    # Inside of .git one is in the working tree that it belongs to.
    root = folder if repository.top == repository.common else repository.top
    return Home(folder=folder, root=root, project=project, worktree=None if settings.bare else _MAIN)


def _project(repository: Repository, settings: Settings, folder: str) -> str:
    """The remote's name; of a remote on this disk, its own project's; else the name of the main folder."""
    names: dict[str, str] = {}
    while True:
        names[repository.common] = _folder_name(repository, folder)
        url = "" if settings.remote is None else settings.remote[1]
        name, remote = remote_name(url), remote_folder(url)
        if name is not None:
            return _text(name)
        if remote is None:
            return names[repository.common]
        origin = os.path.realpath(os.path.join(folder, remote))
        upstream = repository_at(origin)
        if upstream is None:
            # Not there now. It may be a mistyped address, with a token before its @.
            return _bare_name(_base_name(origin.removesuffix("/.git")).rpartition("@")[2]) or names[repository.common]
        if upstream.common in names:
            # Each is the other's remote: both have to choose the same name.
            return min(names.values())
        repository, settings = upstream, settings_of(upstream)
        folder = main_folder(repository, settings)


def _folder_name(repository: Repository, folder: str) -> str:
    if folder != repository.common:
        return _base_name(folder)
    # A bare repository: `shop.git`, or a hidden folder in the one that has the name.
    name = _bare_name(_base_name(folder))
    return _base_name(os.path.dirname(folder)) if name.startswith(".") else name


def _base_name(folder: str) -> str:
    return _text(os.path.basename(folder))


def _bare_name(name: str) -> str:
    """A repository's name without `.git` or `.bundle`."""
    return name.removesuffix(".git").removesuffix(".bundle") or name


def _text(name: str) -> str:
    """A usable name: not blank, and of characters that UTF-8 has."""
    name = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return name if name.strip() else "root"


def remote_name(url: str) -> str | None:
    """Host and path, such as `github.com/acme/shop`, never a credential; None for a local folder and for nonsense."""
    url = _address(url)
    scheme, marked, rest = url.partition("://")
    if not marked:
        return _scp_name(url)
    return None if scheme.lower() == "file" else _url_name(rest)


def remote_folder(url: str) -> str | None:
    """The folder of this machine that a remote names, as it is written: it may be relative to the repository."""
    url = _address(url)
    if url[:7].lower() == "file://":
        return _decoded("/" + url[7:].partition("/")[2])
    return url if url and "://" not in url and not _is_scp(url) and "\0" not in url else None


def _address(url: str) -> str:
    """The address behind a transport helper (`helper::address`), else the url itself."""
    url = url.strip()
    helper, marked, address = url.partition("::")
    if not marked or not helper.replace("-", "").replace("+", "").isalnum():
        return url
    # What is no url is a command line, which may hold anything.
    return address if "://" in address else ""


def _is_scp(url: str) -> bool:
    """Whether this is `host:path`; git's rule: a colon before any slash."""
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
        # Git does not read `user:password@host:path`, but it is somebody's password all the same.
        host, colon, path = url.rpartition("@")[2].partition(":")
    return _joined(host.rpartition("@")[2], path) if colon else None


def _url_name(rest: str) -> str | None:
    # Some servers take a token as `?private_token=`.
    plain = rest.partition("?")[0].partition("#")[0]
    if "@" in rest[len(plain) :]:
        return None
    authority, _, path = plain.partition("/")
    # A password with an unescaped sign in it ends only at the last @; `/@scope/` is none.
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
    """Without the %20s of a url."""
    first, *rest = text.encode("utf-8", "surrogateescape").split(b"%")
    parts = [first]
    for part in rest:
        try:
            parts += [bytes.fromhex(part[:2].decode("ascii")), part[2:]] if len(part) > 1 else [b"%", part]
        except ValueError:
            parts += [b"%", part]
    return b"".join(parts).decode("utf-8", "surrogateescape")

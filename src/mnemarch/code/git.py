"""What Mnemarch asks of git: by its files where they tell, by the `git` program where they don't.

Nothing here raises because of git, a repository or the disk: what can't be told is None.
"""

from __future__ import annotations

import os

from mnemarch.code.refs import BRANCHES, Refs, Unclear, is_hash
from mnemarch.code.repository import repository_around, settings_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from subprocess import Popen

    from mnemarch.code.repository import Repository

_WAIT_S_MAX = 20.0
_USUAL_BRANCHES = ("main", "master", "trunk", "develop")
# A repository's settings may name programs to run; none of ours needs one.
_NO_PROGRAMS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    # The same for git before 2.39.4, which fetches what a partial clone lacks: no transport is allowed.
    "GIT_ALLOW_PROTOCOL": "none",
}


def git(root: str, arguments: Sequence[str]) -> str | None:
    """The output of a git command in `root`, or None if git, the repository or the thing asked for isn't there."""
    answer = output(root, arguments)
    return None if answer is None else answer.decode(errors="replace").strip()


def output(
    root: str,
    arguments: Sequence[str],
    given: bytes = b"",
    *,
    wait_s_max: float = _WAIT_S_MAX,
    environment: Mapping[str, str] | None = None,
) -> bytes | None:
    """The same in bytes, for a command that reads `given`; None also if it takes too long."""
    import subprocess

    try:
        done = subprocess.run(  # noqa: S603 - fixed program, arguments never pass through a shell
            _command(root, arguments),
            input=given,
            capture_output=True,
            env=_environment() | dict(environment or {}),
            timeout=wait_s_max,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def conversation(root: str, arguments: Sequence[str]) -> Popen[bytes] | None:
    """A git command that goes on answering until its standard input is closed."""
    import subprocess

    try:
        return subprocess.Popen(  # noqa: S603 - as above
            _command(root, arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env=_environment(),
        )
    except (OSError, ValueError):
        return None


def _command(root: str, arguments: Sequence[str]) -> list[str]:
    return ["git", *_NO_PROGRAMS, "-C", root, *arguments]


def _environment() -> dict[str, str]:
    # GIT_DIR and friends would point every call at one repository, whatever folder it is about.
    return {name: item for name, item in os.environ.items() if not name.startswith("GIT_")} | _ENVIRONMENT


def head(root: str) -> str | None:
    """The commit that is checked out in `root`."""
    repository = repository_around(root)
    if repository is None:
        return None
    try:
        return Refs(repository).commit("HEAD")
    except Unclear:
        return git(root, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])


def branch(root: str) -> str | None:
    """The branch that is checked out in `root`, even before its first commit; None where none is."""
    repository = repository_around(root)
    if repository is None:
        return None
    try:
        target = Refs(repository).target("HEAD")
    except Unclear:
        target = git(root, ["symbolic-ref", "--quiet", "HEAD"])
    return target.removeprefix(BRANCHES) if target is not None and target.startswith(BRANCHES) else None


def default_branch(root: str) -> str | None:
    """The branch that the project stands on.

    It is the one that the remote's HEAD names; else main, master, trunk or develop, the first that exists here or at
    the remote; else the only branch; else unknown. The remote is origin, or the only one.
    """
    repository = repository_around(root)
    if repository is None:
        return None
    remote = _remote_branches(repository)
    refs = Refs(repository)
    try:
        named = refs.target(f"{remote}HEAD") if remote else None
        return _default_of(named, remote, lambda ref: refs.commit(ref) is not None, refs.branches)
    except Unclear:
        return _default_by_program(root, remote)


def _default_by_program(root: str, remote: str) -> str | None:
    listed = git(root, ["for-each-ref", "--format=%(refname) %(symref)", BRANCHES, remote or BRANCHES])
    if listed is None:
        return None
    symbolic = {ref: target for ref, _, target in (line.partition(" ") for line in listed.splitlines())}
    branches = {ref.removeprefix(BRANCHES) for ref in symbolic if ref.startswith(BRANCHES)}
    return _default_of(symbolic.get(f"{remote}HEAD") or None, remote, symbolic.__contains__, lambda: branches)


def _default_of(
    named: str | None, remote: str, exists: Callable[[str], bool], branches: Callable[[], Collection[str]]
) -> str | None:
    if named is not None and named.startswith(remote) and exists(named):
        return named.removeprefix(remote)
    for place in (BRANCHES, remote):
        for name in _USUAL_BRANCHES if place else ():
            if exists(f"{place}{name}"):
                return name
    only = list(branches())
    return only[0] if len(only) == 1 else None


def tip(root: str, branch: str) -> str | None:
    """The newest commit of a branch: of the local one, else of the remote's as it was last fetched."""
    repository = repository_around(root)
    if repository is None:
        return None
    refs, remote = Refs(repository), _remote_branches(repository)
    places = (BRANCHES, remote) if remote else (BRANCHES,)
    try:
        found = (refs.commit(f"{place}{branch}") for place in places)
        return next((commit for commit in found if commit is not None), None)
    except Unclear:
        asked = (full_hash(root, f"{place}{branch}") for place in places)
        return next((commit for commit in asked if commit is not None), None)


def folder_name(root: str) -> str | None:
    """A folder as git names it, such as `COMMIT:packages/api/`; None if it knows no such folder, or no commit yet.

    The commit is the newest of the default branch, which others are most likely to have, and to have for long.
    """
    repository = repository_around(root)
    if repository is None:
        return None
    main = default_branch(root)
    commit = (tip(root, main) if main is not None else None) or head(root)
    folder = repository.prefix(root)
    return f"{commit}:{folder}" if commit is not None and folder.isprintable() else None


def branch_tips(root: str) -> list[str]:
    """The newest commits of all local branches, each once, those of the branches last worked on first."""
    listed = git(root, ["for-each-ref", "--sort=-committerdate", "--format=%(objectname)", BRANCHES])
    return list(dict.fromkeys((listed or "").split()))


def _remote_branches(repository: Repository) -> str:
    """Where the remote's branches are kept, such as `refs/remotes/origin/`; empty if there is no remote."""
    remote = settings_of(repository).remote
    return "" if remote is None else f"refs/remotes/{remote[0]}/"


def full_hash(root: str, commit: str) -> str | None:
    """The whole hash of a commit that exists in the repository of `root`."""
    if commit.startswith("-"):
        return None
    found = git(root, ["rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"])
    return found if found is not None and is_hash(found) else None

"""Runs the `git` program, and reads HEAD and branches from git's files, which is a hundred times faster.

Nothing here raises because of git, a repository or the disk: what can't be told is None.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # The half of `signal` in C: the other half builds enums.
import os
import time
from collections.abc import Mapping, Sequence
from io import FileIO

from mnemarch.code.home import Repository, repository_around, settings_of
from mnemarch.model.stamps import blake2b

BRANCHES = "refs/heads/"
_PART_BYTES = 65_536
_STANDARD_STREAMS = 3
_WAIT_S_MAX = 20.0
_USUAL_BRANCHES = ("main", "master", "trunk", "develop")
_OWN_REFS = ("refs/bisect/", "refs/worktree/", "refs/rewritten/")
_HASH_LENGTHS = frozenset({40, 64})
_HEX = frozenset("0123456789abcdef")
_HOPS_MAX = 5
_HASHED_BYTES_MAX = 1_048_576
# What a run of tests leaves behind is no change of the tree.
_CACHES = (
    *("__pycache__", ".pytest_cache", ".hypothesis", ".mypy_cache", ".coverage*", "node_modules", "target"),
    ".mnemarch",
)
_NO_CACHES = (":/", *(f":(top,exclude,glob)**/{name}{end}" for name in _CACHES for end in ("", "/**")))
# A repository's settings may name programs to run; none of ours needs one.
_NO_PROGRAMS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false")
_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    # The same for git before 2.39.4, which fetches what a partial clone lacks: no transport is allowed.
    "GIT_ALLOW_PROTOCOL": "none",
}


class _UnclearError(Exception):
    """Git keeps this ref in a form that is not read here: the program has to be asked."""


def output(root: str, arguments: Sequence[str], stdin: bytes = b"", *, wait_s_max: float = _WAIT_S_MAX) -> bytes | None:
    """What a git command in `root` prints; None if it fails, can't be started or takes too long."""
    # GIT_DIR and friends would point every call at one repository, whatever folder it is about.
    inherited = {name: item for name, item in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", *_NO_PROGRAMS, "-C", root, *arguments]
    try:
        return output_of(command, stdin, inherited | _ENVIRONMENT, wait_s_max)
    except (OSError, ValueError):
        return None


def output_of(command: list[str], stdin: bytes, environment: Mapping[str, str], wait_s_max: float) -> bytes | None:
    """What a program prints; None if it fails or takes too long. OSError or ValueError if it can't be started.

    `subprocess` does more, and takes longer to load than git takes to answer.
    """
    deadline = time.monotonic() + wait_s_max
    child_in, to_child = _pipe()
    from_child, child_out = _pipe()
    streams = [
        (os.POSIX_SPAWN_DUP2, child_in, 0),
        (os.POSIX_SPAWN_DUP2, child_out, 1),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    with open(to_child, "wb", 0) as sink, open(from_child, "rb", 0) as source:
        try:
            # Python ignores SIGPIPE, and a child would inherit that.
            pid = os.posix_spawnp(command[0], command, environment, file_actions=streams, setsigdef=[_signal.SIGPIPE])
        finally:
            os.close(child_in)
            os.close(child_out)
        printed = None
        try:
            printed = _exchanged(sink, source, stdin, deadline)
        finally:
            if printed is None:
                os.kill(pid, _signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
    return printed if status == 0 else None


def _pipe() -> tuple[int, int]:
    """Two ends that are no standard stream, which the child gets others for; closed ones stay taken."""
    ends = os.pipe()
    return ends if min(ends) >= _STANDARD_STREAMS else _pipe()


def _exchanged(sink: FileIO, source: FileIO, stdin: bytes, deadline: float) -> bytes | None:
    """All that a child prints while it is given its input; None if it takes too long."""
    from select import POLLIN, POLLOUT, poll

    watched, printed, rest = poll(), list[bytes](), memoryview(stdin)
    os.set_blocking(sink.fileno(), False)
    watched.register(sink, POLLOUT)
    watched.register(source, POLLIN)
    while ready := watched.poll(max(0.0, deadline - time.monotonic()) * 1000):
        for handle, _ in ready:
            if handle == source.fileno():
                part = os.read(handle, _PART_BYTES)
                if not part:
                    return b"".join(printed)
                printed.append(part)
                continue
            try:
                rest = rest[os.write(handle, rest[:_PART_BYTES]) :]
            except BrokenPipeError:  # It reads no more.
                rest = rest[:0]
            if not rest:
                watched.unregister(sink)
                sink.close()
    return None


def git(root: str, arguments: Sequence[str]) -> str | None:
    """The same as text."""
    printed = output(root, arguments)
    return None if printed is None else printed.decode(errors="replace").strip()


def is_hash(text: str) -> bool:
    """Whether this is the whole hash of an object, of either length that git knows."""
    return len(text) in _HASH_LENGTHS and _HEX.issuperset(text)


def full_hash(root: str, commit: str) -> str | None:
    """The whole hash of a commit that exists in the repository of `root`."""
    if commit.startswith("-"):
        return None
    named = git(root, ["rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"])
    return named if named is not None and is_hash(named) else None


def head(root: str) -> str | None:
    """The commit that is checked out in `root`."""
    repository = repository_around(root)
    return None if repository is None else _commit_of(repository, "HEAD")


def tree_digest(root: str) -> str | None:
    """A digest of what is checked out in `root` and of every file that differs from it; None outside a repository."""
    repository = repository_around(root)
    changed = output(root, ["status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", "--", *_NO_CACHES])
    if repository is None or changed is None:
        return None
    digest = blake2b((head(root) or "").encode(), digest_size=16)
    top, memories = os.fsencode(repository.top), dict[bytes, bool]()
    for entry in changed.split(b"\0"):
        if _is_of_memory(top, entry[3:], memories):
            continue  # That something was remembered is no change of the code.
        digest.update(entry)
        path = os.path.join(top, entry[3:])
        if entry and os.path.isfile(path):
            digest.update(_content_or_stamp(path))
    return digest.hexdigest()


def _is_of_memory(top: bytes, path: bytes, known: dict[bytes, bool]) -> bool:
    """Whether a file belongs to a memory in files: those have something in them for this machine alone."""
    folder = os.path.dirname(path)
    while folder:
        folder = os.path.dirname(folder)
        if folder not in known:
            known[folder] = os.path.isfile(os.path.join(top, folder, b".local", b"maker"))
        if known[folder]:
            return os.path.relpath(path, folder or b".").split(b"/")[0] in (b"log", b"payloads", b"units")
    return False


def _content_or_stamp(path: bytes) -> bytes:
    try:
        state = os.stat(path)
        if state.st_size > _HASHED_BYTES_MAX:
            return f"{state.st_size} {state.st_mtime_ns}".encode()
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def branch(root: str) -> str | None:
    """The branch that is checked out in `root`, even before its first commit; None where none is."""
    repository = repository_around(root)
    target = None if repository is None else _target_of(repository, "HEAD")
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
    named = _target_of(repository, f"{remote}HEAD") if remote else None
    if named is not None and named.startswith(remote) and _commit_of(repository, named) is not None:
        return named.removeprefix(remote)
    for place in filter(None, (BRANCHES, remote)):
        for name in _USUAL_BRANCHES:
            if _commit_of(repository, place + name) is not None:
                return name
    branches = (git(root, ["for-each-ref", "--count=2", "--format=%(refname)", BRANCHES]) or "").split("\n")
    return branches[0].removeprefix(BRANCHES) or None if len(branches) == 1 else None


def tip(root: str, branch: str, *, remote_first: bool = False) -> str | None:
    """The newest commit of a branch: of the local one, else of the remote's as it was last fetched; or the reverse."""
    repository = repository_around(root)
    if repository is None:
        return None
    places = sorted((BRANCHES, _remote_branches(repository)), reverse=remote_first)
    commits = (_commit_of(repository, place + branch) for place in places if place)
    return next(filter(None, commits), None)


def task_branch(root: str) -> str | None:
    """The branch that is checked out, which names a task, unless it is the one that everything is merged into."""
    name = branch(root)
    return None if name is None or name == default_branch(root) else name


def branch_tips(root: str) -> list[str]:
    """The newest commits of all local branches, each once, those of the branches last worked on first."""
    listed = git(root, ["for-each-ref", "--sort=-committerdate", "--format=%(objectname)", BRANCHES])
    return list(dict.fromkeys((listed or "").split()))


def touched(root: str) -> frozenset[str]:
    """The files that were changed in `root` since its branch left the default branch, committed or not."""
    default = default_branch(root)
    since = [] if default is None or (commit := tip(root, default)) is None else [f"{commit}...HEAD"]
    committed = (git(root, ["diff", "--name-only", "-z", *since]) or "") if since else ""
    # Of a rename both names are listed, each in a field of its own; only the first has the two letters before it.
    changed = (git(root, ["status", "--porcelain", "-z", "--no-renames"]) or "").split("\0")
    return frozenset(filter(None, (*committed.split("\0"), *(line[3:] for line in changed))))


def root_name(root: str) -> str | None:
    """A name for a repository's top that its clones understand: `COMMIT:`; None without a commit.

    The commit is the newest of the default branch, which others are most likely to have, and to have for long.
    """
    main = default_branch(root)
    commit = (tip(root, main) if main is not None else None) or head(root)
    return None if commit is None else f"{commit}:"


def _remote_branches(repository: Repository) -> str:
    """Where the remote's branches are kept, such as `refs/remotes/origin/`; empty if there is no remote."""
    remote = settings_of(repository).remote
    return "" if remote is None else f"refs/remotes/{remote[0]}/"


def _target_of(repository: Repository, ref: str) -> str | None:
    """The ref that this one stands for; None if it stands for a commit or isn't there."""
    try:
        content = _content(repository, ref)
        return None if content is None or is_hash(content) else _target(content)
    except _UnclearError:
        return git(repository.top, ["symbolic-ref", "--quiet", ref])


def _commit_of(repository: Repository, ref: str) -> str | None:
    """The hash that a ref leads to; None if there is no such ref, or its branch has no commit yet."""
    name = ref
    try:
        for _ in range(_HOPS_MAX):
            content = _content(repository, name)
            if content is None:
                return _packed(repository, name)
            if is_hash(content):
                return content
            name = _target(content)
    except _UnclearError:
        pass
    return full_hash(repository.top, ref)


def _content(repository: Repository, ref: str) -> str | None:
    """What the file of a ref says: a hash, or `ref: ANOTHER`; None if it has no file of its own."""
    if os.path.isdir(os.path.join(repository.common, "reftable")):
        raise _UnclearError
    is_own = not ref.startswith("refs/") or ref.startswith(_OWN_REFS)
    path = os.path.join(repository.own if is_own else repository.common, ref)
    try:
        if os.path.islink(path):  # Git of long ago made HEAD a symbolic link to the branch.
            return f"ref: {os.readlink(path)}"
        with open(path, "rb") as file:
            return os.fsdecode(file.read(4096)).strip()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except (OSError, ValueError):
        raise _UnclearError from None


def _target(content: str) -> str:
    target = content.removeprefix("ref:").strip()
    if target == content or not target.startswith("refs/") or ".." in target or target == f"{BRANCHES}.invalid":
        raise _UnclearError
    return target


def _packed(repository: Repository, ref: str) -> str | None:
    try:
        with open(os.path.join(repository.common, "packed-refs"), "rb") as file:
            packed = file.read()
    except FileNotFoundError:
        return None
    except OSError:
        raise _UnclearError from None
    end = packed.find(b" " + os.fsencode(ref) + b"\n")
    if end < 0:
        return None
    name = packed[packed.rfind(b"\n", 0, end) + 1 : end].decode("ascii", "replace")
    if not is_hash(name):
        raise _UnclearError
    return name

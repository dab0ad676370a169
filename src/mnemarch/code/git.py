"""Runs the `git` program, and reads HEAD and branches from git's files, which is a hundred times faster.

Failures of git, a repository or the disk don't raise: the answer is None.
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
# Files that test runs leave behind. They are no change of the tree.
_CACHES = (
    *("__pycache__", ".pytest_cache", ".hypothesis", ".mypy_cache", ".coverage*", "node_modules", "target"),
    ".mnemarch",
)
_NO_CACHES = (":/", *(f":(top,exclude,glob)**/{name}{end}" for name in _CACHES for end in ("", "/**")))
# A repository's settings may name programs to run. These options turn them off: no command here needs one.
_NO_PROGRAMS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false")
_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    # The same for git before 2.39.4, which fetches objects that a partial clone lacks: allow no transport.
    "GIT_ALLOW_PROTOCOL": "none",
}


class _UnclearError(Exception):
    """The ref is stored in a format that this module doesn't read, so the git program has to answer."""


def output(root: str, arguments: Sequence[str], stdin: bytes = b"", *, wait_s_max: float = _WAIT_S_MAX) -> bytes | None:
    """The output of a git command in `root`. None if it fails, can't be started or takes too long."""
    # GIT_DIR and similar variables would point every call at one repository, whatever its folder.
    inherited = {name: item for name, item in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", *_NO_PROGRAMS, "-C", root, *arguments]
    try:
        return output_of(command, stdin, inherited | _ENVIRONMENT, wait_s_max)
    except (OSError, ValueError):
        return None


def output_of(command: list[str], stdin: bytes, environment: Mapping[str, str], wait_s_max: float) -> bytes | None:
    """The output of a program. None if it fails or takes too long. OSError or ValueError if it can't be started.

    It replaces `subprocess`, which takes longer to import than git takes to answer.
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
            # Python ignores SIGPIPE. The child must not inherit that.
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
    """A pipe whose ends are not 0, 1 or 2, since the child replaces those. Low numbers stay open as placeholders."""
    ends = os.pipe()
    return ends if min(ends) >= _STANDARD_STREAMS else _pipe()


def _exchanged(sink: FileIO, source: FileIO, stdin: bytes, deadline: float) -> bytes | None:
    """The child's whole output, read while its input is written. None if it takes too long."""
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
            except BrokenPipeError:  # The child has closed its input.
                rest = rest[:0]
            if not rest:
                watched.unregister(sink)
                sink.close()
    return None


def git(root: str, arguments: Sequence[str]) -> str | None:
    """The output of a git command as stripped text. None if it fails."""
    printed = output(root, arguments)
    return None if printed is None else printed.decode(errors="replace").strip()


def is_hash(text: str) -> bool:
    """Whether the text is the whole hash of an object, SHA-1 or SHA-256."""
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
    """A digest of HEAD in `root` and of every file that differs from it. None outside a repository."""
    repository = repository_around(root)
    changed = output(root, ["status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", "--", *_NO_CACHES])
    if repository is None or changed is None:
        return None
    digest = blake2b((head(root) or "").encode(), digest_size=16)
    top, memories = os.fsencode(repository.top), dict[bytes, bool]()
    for entry in changed.split(b"\0"):
        if _is_of_memory(top, entry[3:], memories):
            continue  # A new memory is no change of the code.
        digest.update(entry)
        path = os.path.join(top, entry[3:])
        if entry and os.path.isfile(path):
            digest.update(_content_or_stamp(path))
    return digest.hexdigest()


def _is_of_memory(top: bytes, path: bytes, memories: dict[bytes, bool]) -> bool:
    """Whether a file belongs to a memory in files. Such a memory has a `.local/maker` on this machine."""
    folder = os.path.dirname(path)
    while folder:
        folder = os.path.dirname(folder)
        if folder not in memories:
            memories[folder] = os.path.isfile(os.path.join(top, folder, b".local", b"maker"))
        if memories[folder]:
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
    """The branch that is checked out in `root`, even before its first commit. None for a detached HEAD."""
    repository = repository_around(root)
    target = None if repository is None else _target_of(repository, "HEAD")
    return target.removeprefix(BRANCHES) if target is not None and target.startswith(BRANCHES) else None


def default_branch(root: str) -> str | None:
    """The project's default branch, or None if unknown.

    It is the branch that the remote's HEAD names. Otherwise it is the first of main, master, trunk and develop that
    exists here or at the remote, or else the only branch. The remote is origin, or the only one.
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
    """The newest commit of the local branch, else of the fetched remote branch. `remote_first` reverses the order."""
    repository = repository_around(root)
    if repository is None:
        return None
    places = sorted((BRANCHES, _remote_branches(repository)), reverse=remote_first)
    commits = (_commit_of(repository, place + branch) for place in places if place)
    return next(filter(None, commits), None)


def task_branch(root: str) -> str | None:
    """The checked-out branch, which names a task. None if it is the default branch."""
    name = branch(root)
    return None if name is None or name == default_branch(root) else name


def branch_tips(root: str) -> list[str]:
    """The newest commits of all local branches, without repeats, the most recent branches first."""
    listed = git(root, ["for-each-ref", "--sort=-committerdate", "--format=%(objectname)", BRANCHES])
    return list(dict.fromkeys((listed or "").split()))


def touched(root: str) -> frozenset[str]:
    """The files that were changed in `root` since its branch left the default branch, committed or not."""
    default = default_branch(root)
    base = None if default is None else tip(root, default)
    committed = None if base is None else git(root, ["diff", "--name-only", "-z", f"{base}...HEAD"])
    # Each line is a status of two letters, a space, and a path.
    changed = (git(root, ["status", "--porcelain", "-z", "--no-renames"]) or "").split("\0")
    return frozenset(filter(None, (*(committed or "").split("\0"), *(line[3:] for line in changed))))


def root_name(root: str) -> str | None:
    """A name for a repository's top that its clones understand, `COMMIT:`. None without a commit.

    The commit is the newest of the default branch: other clones most likely have it, and keep it.
    """
    main = default_branch(root)
    commit = (tip(root, main) if main is not None else None) or head(root)
    return None if commit is None else f"{commit}:"


def _remote_branches(repository: Repository) -> str:
    """The prefix of the remote's branches, such as `refs/remotes/origin/`. Empty without a remote."""
    remote = settings_of(repository).remote
    return "" if remote is None else f"refs/remotes/{remote[0]}/"


def _target_of(repository: Repository, ref: str) -> str | None:
    """The target of a symbolic ref. None if the ref names a commit or doesn't exist."""
    try:
        content = _content(repository, ref)
        return None if content is None or is_hash(content) else _target(content)
    except _UnclearError:
        return git(repository.top, ["symbolic-ref", "--quiet", ref])


def _commit_of(repository: Repository, ref: str) -> str | None:
    """The hash that a ref resolves to. None if the ref doesn't exist, or its branch has no commit yet."""
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
    """The content of a ref's file: a hash, or `ref: ANOTHER`. None if the ref has no file of its own."""
    if os.path.isdir(os.path.join(repository.common, "reftable")):
        raise _UnclearError
    is_own = not ref.startswith("refs/") or ref.startswith(_OWN_REFS)
    path = os.path.join(repository.own if is_own else repository.common, ref)
    try:
        if os.path.islink(path):  # Very old versions of git made HEAD a symbolic link to the branch.
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

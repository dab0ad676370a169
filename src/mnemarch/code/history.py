"""A repository's past, asked of git in batches: what a commit contains, where a file went, what was merged (R8)."""

from __future__ import annotations

import os
import threading
import time

from mnemarch.code.git import head as checked_out
from mnemarch.code.git import output
from mnemarch.code.refs import Refs, is_hash
from mnemarch.code.repository import repository_around, text_of
from mnemarch.code.sources import trouble_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Any

    from mnemarch.code.repository import Repository

_KEPT_MAX = 65_536
_WAIT_S_MAX = 20.0
_RENAME_WAIT_S_MAX = 3.0
_RENAME_HOPS_MAX = 8
# Git compares each file that went with each that came; where there are more, only those that are the same to the byte.
_RENAME_FILES_MAX = 400
_RENAMES = ("-M", f"-l{_RENAME_FILES_MAX}", "--diff-filter=R", "--name-status", "-z")
# What keeps a commit in the history. A stash, a note or a tool's own backup is no place to stand on.
_LASTING = ("--branches", "--remotes", "--tags")


class History:
    """The commits of the repository that a folder is in. Any number of threads may ask."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._here = _Kept()
        self._contained = _Kept()
        self._in_doubt = _Kept()
        self._is_left = _Kept()
        self._moves = _Kept()

    def has(self, commits: Collection[str]) -> bool:
        """Whether the repository has all of these commits; git is started once at most, and what it said is kept."""
        repository = repository_around(self._root)
        if repository is None or not all(map(is_hash, commits)):
            return False
        unknown = [commit for commit in commits if self._here.get(commit) is not True]
        stamps = _arrivals(repository, unknown)
        if any(self._here.get(commit) == stamps[commit] for commit in unknown):
            return False
        present = _present(repository, unknown) if unknown else set()
        if present is None:
            return False
        self._here.keep({commit: commit in present or stamps[commit] for commit in unknown})
        return present.issuperset(unknown)

    def contains(self, head: str, commits: Sequence[str]) -> dict[str, bool | None]:
        """Of each commit, whether it is `head` or before it; None if the repository doesn't have it, or can't tell.

        Whole hashes only (see `git.full_hash`); `head` is taken to exist. However many are asked, git is started twice
        at most, and what it said is kept; that a commit is missing, only until objects arrive. The history is the one
        that `git log` shows: joined by `git replace`, cut off in a shallow clone. What may lie behind such a cut is not
        denied. Git walks by date, so six or more commits in a row that are dated long before their parents can make it
        deny what is older.
        """
        if not is_hash(head):
            return dict.fromkeys(commits)
        known = {commit: commit == head or self._contained.get((head, commit)) for commit in commits}
        unknown = [commit for commit, answer in known.items() if answer is None and is_hash(commit)]
        repository = repository_around(self._root) if unknown else None
        if repository is None:
            return known
        stamps = _arrivals(repository, unknown)
        unknown = [commit for commit in unknown if self._in_doubt.get((head, commit)) != stamps[commit]]
        told = _ancestry(repository, head, unknown) if unknown else {}
        self._contained.keep({(head, commit): answer for commit, answer in told.items() if answer is not None})
        self._in_doubt.keep({(head, commit): stamps[commit] for commit, answer in told.items() if answer is None})
        return known | told

    def left(self, commits: Sequence[str]) -> set[str]:
        """Those of the commits that were left behind: amended, rebased, squashed or thrown away.

        No branch, here or at a remote as it was last fetched, no tag and no worktree's HEAD leads to them any more,
        though git may keep them for some weeks. It is started twice at most, and again when one of those has moved.
        """
        repository = repository_around(self._root) if commits else None
        if repository is None:
            return set()
        refs = Refs(repository)
        state = refs.state()
        known = {commit: self._is_left.get(commit) for commit in commits if is_hash(commit)}
        unknown = [commit for commit, answer in known.items() if answer is None or answer[0] != state]
        told = _left(repository, refs, unknown) if unknown else set()
        if told is None:
            return set()
        self._is_left.keep({commit: (state, commit in told) for commit in unknown})
        return told | {commit for commit in known.keys() - unknown if known[commit][1]}

    def renamed(self, path: str, head: str, *, wait_s_max: float = _RENAME_WAIT_S_MAX) -> str | None:
        """Where a file that is gone went by `head`, or by what is staged on top of it; None if git doesn't know.

        Renames are followed one after another, in commits and then in the index. Git takes two files for one if they
        are half the same; a file that was moved and not added is unknown to it. In a long history this can take
        seconds; it ends with None when the time is over, and is then asked again the next time.
        """
        repository = repository_around(self._root)
        if repository is None or not is_hash(head) or not _is_inside(path):
            return None
        prefix = repository.prefix(self._root)
        staged = _index_state(repository) if checked_out(self._root) == head else None
        key = (path, head, staged)
        found = self._moves.get(key)
        if found is None:
            trail = _Trail(repository, head, wait_s_max)
            found = (trail.followed(prefix + path, in_index=staged is not None),)
            if not trail.is_out_of_time:
                self._moves.keep({key: found})
        new: str | None = found[0]
        return new.removeprefix(prefix) if new is not None and new.startswith(prefix) else None

    def contents(self, path: str, commits: Sequence[str]) -> dict[str, str]:
        """The hash of a file's content at each of these commits that has the file; git is started once."""
        repository = repository_around(self._root)
        if repository is None or not commits or not _is_inside(path) or "\n" in path:
            return {}
        names = _lines(f"{commit}:{repository.prefix(self._root)}{path}" for commit in commits)
        rows = _rows(_asked(repository, ["cat-file", "--batch-check=%(objectname) %(objecttype)"], names))
        told = zip(commits, rows, strict=False)  # Git may have died half-way.
        return {commit: row.removesuffix(" blob") for commit, row in told if row.endswith(" blob")}

    def fork(self, head: str, other: str) -> str | None:
        """The newest commit that both have; None if there is none, or git can't tell."""
        repository = repository_around(self._root)
        rows = _rows(_asked(repository, ["merge-base", head, other])) if repository is not None else []
        return rows[0] if rows and is_hash(rows[0]) else None

    def is_merged(self, branch_or_commit: str, into: str) -> bool:
        """Whether all work of a branch is in another: merged, fast-forwarded, rebased, picked or squashed there.

        Merges are told by ancestry, the rest by equal patches: what was changed on its way in, or squashed together
        with other work, is not recognised.
        """
        repository = repository_around(self._root)
        if repository is None:
            return False
        work, base = (_commit_named(repository, name) for name in (branch_or_commit, into))
        if work is None or base is None:
            return False
        return bool(self.contains(base, [work])[work]) or _is_picked(repository, work, base)


def _ancestry(repository: Repository, head: str, commits: Sequence[str]) -> dict[str, bool | None]:
    """The answers that git gives; nothing if it gives none."""
    present = _present(repository, [head, *commits])
    if present is None or head not in present:
        return {}
    missing: dict[str, bool | None] = {commit: None for commit in commits if commit not in present}
    existing = [commit for commit in commits if commit in present]
    cuts = (text_of(os.path.join(repository.common, "shallow")) or "").split()
    if not existing:
        return missing
    if cuts:
        return missing | _ancestry_in_shallow(repository, head, existing, cuts)
    beside = _asked(repository, ["rev-list", "--stdin"], _lines([*existing, f"^{head}"]))
    if beside is None:
        return missing
    outside = set(_rows(beside))
    return missing | {commit: commit not in outside for commit in existing}


def _ancestry_in_shallow(
    repository: Repository, head: str, commits: Sequence[str], cuts: Sequence[str]
) -> dict[str, bool | None]:
    """From what is left of the history: only a commit that comes after all of head's cuts can't be behind one."""
    listed = _asked(
        repository, ["rev-list", "--stdin", "--parents", "--topo-order", "--reverse"], _lines([head, *commits])
    )
    if listed is None:
        return {}
    parents = {row[0]: row[1:] for row in (line.split(" ") for line in _rows(listed))}
    bit_of = {cut: 1 << number for number, cut in enumerate(cuts)}
    behind: dict[str, int] = {}
    for commit, before in parents.items():
        behind[commit] = bit_of.get(commit, 0)
        for parent in before:
            behind[commit] |= behind[parent]
    reached = _reached(head, parents)
    return {
        commit: True if commit in reached else None if behind[head] & ~behind[commit] else False for commit in commits
    }


def _reached(start: str, parents: Mapping[str, Sequence[str]]) -> set[str]:
    found, waiting = {start}, [start]
    while waiting:
        new = [parent for parent in parents[waiting.pop()] if parent not in found]
        found.update(new)
        waiting += new
    return found


def _present(repository: Repository, commits: Sequence[str]) -> set[str] | None:
    """Those that git has; None if it gives no answer."""
    kinds = _asked(repository, ["cat-file", "--batch-check=%(objectname) %(objecttype)"], _lines(commits))
    return None if kinds is None else {row.removesuffix(" commit") for row in _rows(kinds)}.intersection(commits)


def _left(repository: Repository, refs: Refs, commits: Sequence[str]) -> set[str] | None:
    """Those that nothing leads to; None if git gives no answer."""
    present = _present(repository, commits)
    if not present:
        return None if present is None else set(commits)
    heads = ["main-worktree/HEAD", *(f"worktrees/{name}/HEAD" for name in refs.linked())]
    # A worktree whose branch has no commit yet has no HEAD either.
    asked = ["rev-list", "--ignore-missing", "--stdin", "--not", *_LASTING]
    listed = _asked(repository, asked, _lines([*present, *(f"^{name}" for name in heads)]))
    if listed is None:
        return None
    beside = set(_rows(listed))
    return {commit for commit in commits if commit in beside or commit not in present}


def _arrivals(repository: Repository, commits: Sequence[str]) -> dict[str, tuple[object, ...]]:
    """What changes when a commit that was missing, or hidden by a shallow clone's cut, arrives."""
    objects = os.path.join(repository.common, "objects")
    packed = _changed_at(os.path.join(objects, "pack"))
    # What another repository lends may change unseen: no two looks are the same then.
    lent = object() if os.path.exists(os.path.join(objects, "info", "alternates")) else None
    cut = _changed_at(os.path.join(repository.common, "shallow"))
    return {commit: (packed, lent, cut, _changed_at(f"{objects}/{commit[:2]}/{commit[2:]}")) for commit in commits}


def _changed_at(path: str) -> int | None:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None


class _Trail:
    """The search for one file's new place, which has to end in time."""

    def __init__(self, repository: Repository, head: str, wait_s_max: float) -> None:
        self._repository = repository
        self._head = head
        self._until = time.monotonic() + wait_s_max

    @property
    def is_out_of_time(self) -> bool:
        return time.monotonic() >= self._until

    def followed(self, path: str, *, in_index: bool) -> str | None:
        current, seen = path, {path}
        while not self._is_at_head(current):
            moved = self._moved_in_commit(current)
            if moved is None or moved in seen or len(seen) > _RENAME_HOPS_MAX:
                return None
            current = moved
            seen.add(moved)
        if in_index:
            current = _move_of(current, self._look("diff-index", "--cached", *_RENAMES, self._head)) or current
        return None if current == path else current

    def _is_at_head(self, path: str) -> bool:
        return (self._look("ls-tree", "-z", "--full-tree", self._head, "--", path) or b"").split(b" ")[1:2] == [b"blob"]

    def _moved_in_commit(self, path: str) -> str | None:
        """Where the commit that took the file away put it."""
        found = _rows(self._look("rev-list", "--max-count=1", self._head, "--", path))
        if not found:
            return None
        # -m: a merge that moved the file itself shows it against one of its parents.
        return _move_of(path, self._look("diff-tree", "-r", "-m", *_RENAMES, "--no-commit-id", found[0]))

    def _look(self, *arguments: str) -> bytes | None:
        left = self._until - time.monotonic()
        return _asked(self._repository, ["--literal-pathspecs", *arguments], wait_s_max=left) if left > 0 else None


def _move_of(path: str, renames: bytes | None) -> str | None:
    """Where `path` went, in git's list of status, old name and new name."""
    fields = (renames or b"").split(b"\0")
    wanted = os.fsencode(path)
    for number in range(0, len(fields) - 2, 3):
        if fields[number + 1] == wanted:
            return os.fsdecode(fields[number + 2])
    return None


def _index_state(repository: Repository) -> tuple[int, int] | None:
    try:
        index = os.stat(os.path.join(repository.own, "index"))
    except OSError:
        return None
    return index.st_mtime_ns, index.st_size


def _is_inside(path: str) -> bool:
    return trouble_with(path) is None and _is_encodable(path)


def _is_encodable(name: str) -> bool:
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        return False
    return True


def _commit_named(repository: Repository, name: str) -> str | None:
    if "\n" in name or not _is_encodable(name):
        return None
    rows = _rows(_asked(repository, ["cat-file", "--batch-check=%(objectname)"], _lines([f"{name}^{{commit}}"])))
    return rows[0] if rows and is_hash(rows[0]) else None


def _is_picked(repository: Repository, work: str, base: str) -> bool:
    """Whether each patch of the branch, or all of them as one, is among those that went in since it left."""
    if _all_there(_asked(repository, ["cherry", base, work])):
        return True
    fork = _rows(_asked(repository, ["merge-base", base, work]))
    if not fork:
        return False
    import tempfile

    # The branch as one commit is written where the repository never sees it.
    with tempfile.TemporaryDirectory(prefix="mnemarch-") as folder:
        aside = {
            "GIT_OBJECT_DIRECTORY": folder,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.path.join(repository.common, "objects"),
        } | {f"GIT_{who}_{what}": "mnemarch" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        squash = ["commit-tree", f"{work}^{{tree}}", "-p", fork[0], "-m", "squashed"]
        made = _rows(_asked(repository, squash, environment=aside))
        return bool(made) and _all_there(_asked(repository, ["cherry", base, made[0]], environment=aside))


def _all_there(cherries: bytes | None) -> bool:
    rows = _rows(cherries)
    return bool(rows) and all(row.startswith("- ") for row in rows)


def _asked(
    repository: Repository,
    arguments: Sequence[str],
    given: bytes = b"",
    *,
    wait_s_max: float = _WAIT_S_MAX,
    environment: Mapping[str, str] | None = None,
) -> bytes | None:
    return output(repository.top, arguments, given, wait_s_max=wait_s_max, environment=environment)


def _rows(answer: bytes | None) -> list[str]:
    return (answer or b"").decode("ascii", "replace").splitlines()


def _lines(names: Iterable[str]) -> bytes:
    return os.fsencode("".join(f"{name}\n" for name in names))


class _Kept:
    """The newest answers, for any number of threads."""

    def __init__(self) -> None:
        self._answers: dict[Any, Any] = {}
        self._lock = threading.Lock()

    def get(self, key: Any) -> Any:
        return self._answers.get(key)

    def keep(self, answers: Mapping[Any, Any]) -> None:
        with self._lock:
            self._answers |= answers
            while len(self._answers) > _KEPT_MAX:
                del self._answers[next(iter(self._answers))]

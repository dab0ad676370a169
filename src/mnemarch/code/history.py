"""What git tells of commits, asked in batches: ancestry, renames and merges (R8)."""

from __future__ import annotations

import math
import os
import time

from mnemarch.code.git import full_hash, is_hash, output
from mnemarch.code.git import head as checked_out
from mnemarch.code.home import repository_around, text_of
from mnemarch.code.sources import trouble_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from mnemarch.code.home import Repository

_ANSWERS_MAX = 65_536
_RENAME_WAIT_S_MAX = 3.0
_RENAME_HOPS_MAX = 8
# Git compares each removed file with each added one; in a commit with more of them, only equal files are matched.
_RENAMES = ("-M", "-l400", "--name-status", "-z")
# What keeps a commit in the history. A stash, a note or a tool's own backup does not.
_LASTING = ("--branches", "--remotes", "--tags")


class History:
    """The commits of the repository that a folder is in. Any number of threads may ask."""

    def __init__(self, root: str) -> None:
        self._root = root
        # The state of the repository, and the answers by head and commit, which hold until it changes.
        self._known: tuple[object, dict[tuple[str, str], bool | None]] = (None, {})
        # With how many seconds were given for the answer.
        self._moves: dict[object, tuple[str | None, float]] = {}

    def has(self, commits: Collection[str]) -> bool:
        """Whether the repository has all of these commits; git is started once at most."""
        repository = repository_around(self._root)
        if repository is None or not all(map(is_hash, commits)):
            return False

        def ask(unknown: list[str]) -> dict[str, bool | None]:
            present = _present(repository, unknown)
            return {} if present is None else {commit: commit in present for commit in unknown}

        return all(self._answers(repository, "", commits, ask).values())

    def contains(self, head: str, commits: Sequence[str]) -> dict[str, bool | None]:
        """Of each commit, whether it is `head` or before it; None if that can't be told.

        None is the answer for a commit that the repository doesn't have, or that was left behind: amended, rebased,
        squashed or thrown away, so that no branch, tag, remote branch or worktree's HEAD leads to it any more.

        Whole hashes only (see `git.full_hash`). However many are asked, git is started three times at most. The history
        is the one that `git log` shows: joined by `git replace`, cut off in a shallow clone. What may lie behind such a
        cut is None, too. Git walks by date, so six or more commits in a row that are dated long before their parents
        can make it deny what is older.
        """
        answers: dict[str, bool | None] = {commit: (commit == head and is_hash(head)) or None for commit in commits}
        asked = [commit for commit, answer in answers.items() if answer is None and is_hash(commit)]
        repository = repository_around(self._root) if asked and is_hash(head) else None
        if repository is None:
            return answers
        return answers | self._answers(repository, head, asked, lambda unknown: _ancestry(repository, head, unknown))

    def _answers(
        self,
        repository: Repository,
        head: str,
        commits: Collection[str],
        ask: Callable[[list[str]], dict[str, bool | None]],
    ) -> dict[str, bool | None]:
        """Cached answers about commits, and those that `ask` gives for the rest."""
        state = _state_of(repository)
        known = self._known[1] if self._known[0] == state else {}
        answers = {commit: known[head, commit] for commit in commits if (head, commit) in known}
        unknown = [commit for commit in commits if commit not in answers]
        if unknown:
            asked = ask(unknown)
            before = known if len(known) <= _ANSWERS_MAX else {}
            self._known = (state, before | {(head, commit): answer for commit, answer in asked.items()})
            answers |= {commit: asked.get(commit) for commit in unknown}
        return answers

    def renamed(self, path: str, head: str, *, wait_s_max: float = _RENAME_WAIT_S_MAX) -> str | None:
        """Where a file that is gone went by `head`, or by what is staged on top of it; None if git doesn't know.

        Renames are followed one after another, in commits and then in the index. Git takes two files for one if they
        are half the same; a file that was moved and not added is unknown to it. In a long history this can take
        seconds. It ends with None when the time is over, and is then asked again only by who has more time.
        """
        repository = repository_around(self._root)
        if repository is None or not is_hash(head) or trouble_with(path) is not None:
            return None
        prefix = repository.prefix(self._root)
        index = _stamp(os.path.join(repository.own, "index")) if checked_out(self._root) == head else None
        key = (path, head, index)
        new, waited_s = self._moves.get(key, (None, -1.0))
        if waited_s < wait_s_max:
            until = time.monotonic() + wait_s_max
            new = _followed(repository, prefix + path, head, until, in_index=index is not None)
            if len(self._moves) > _ANSWERS_MAX:
                self._moves.clear()
            self._moves[key] = (new, wait_s_max if time.monotonic() >= until else math.inf)
        return new.removeprefix(prefix) if new is not None and new.startswith(prefix) else None

    def contents(self, path: str, commits: Sequence[str]) -> dict[str, str]:
        """The hash of a file's content at each of these commits that has the file; git is started once."""
        repository = repository_around(self._root)
        if repository is None or not commits or trouble_with(path) is not None or "\n" in path:
            return {}
        names = (f"{commit}:{repository.prefix(self._root)}{path}" for commit in commits)
        types = _rows(_checked_names(repository, names))
        pairs = zip(commits, types, strict=False)  # Git may have died half-way.
        return {commit: row.removesuffix(" blob") for commit, row in pairs if row.endswith(" blob")}

    def fork(self, head: str, other: str) -> str | None:
        """The newest commit that both have; None if there is none, or git can't tell."""
        repository = repository_around(self._root)
        rows = _rows(output(repository.top, ["merge-base", head, other])) if repository is not None else []
        return rows[0] if rows and is_hash(rows[0]) else None

    def is_merged(self, branch_or_commit: str, into: str) -> bool:
        """Whether all work of a branch is in another: merged, fast-forwarded, rebased, picked or squashed there.

        Merges are told by ancestry, the rest by equal patches: what was changed on its way in, or squashed together
        with other work, is not recognised.
        """
        repository = repository_around(self._root)
        work, base = full_hash(self._root, branch_or_commit), full_hash(self._root, into)
        if repository is None or work is None or base is None:
            return False
        # Each patch of the branch, or all of them as one, may be among those that went in since it left.
        return (
            bool(self.contains(base, [work])[work])
            or _all_there(output(repository.top, ["cherry", base, work]))
            or _is_squashed(repository, work, base, self.fork(base, work))
        )


def _ancestry(repository: Repository, head: str, commits: Sequence[str]) -> dict[str, bool | None]:
    """The answers of `History.contains`; none for what git did not answer."""
    present = _present(repository, [head, *commits])
    if present is None or head not in present:
        return {}
    existing = [commit for commit in commits if commit in present]
    listed = output(repository.top, ["rev-list", "--stdin"], _lines([*existing, f"^{head}"])) if existing else b""
    if listed is None:
        return {}
    outside = set(_rows(listed))
    answers: dict[str, bool | None] = {
        commit: (commit in present and commit not in outside) or None for commit in commits
    }
    beside = [commit for commit in existing if commit in outside]
    cuts = set((text_of(os.path.join(repository.common, "shallow")) or "").split())
    for commit in _reachable(repository, beside) if beside else ():
        if not cuts or not _may_be_cut_off(repository, head, commit, cuts):
            answers[commit] = False
    return answers


def _reachable(repository: Repository, commits: Sequence[str]) -> list[str]:
    """Those of the commits that a branch, a tag, a remote's branch or a worktree's HEAD leads to."""
    heads = ("main-worktree/HEAD", *(f"worktrees/{name}/HEAD" for name in repository.linked_names()))
    # A worktree whose branch has no commit yet has no HEAD either.
    asked = ["rev-list", "--ignore-missing", "--stdin", "--not", *_LASTING]
    left = set(_rows(output(repository.top, asked, _lines([*commits, *(f"^{name}" for name in heads)]))))
    return [commit for commit in commits if commit not in left]


def _may_be_cut_off(repository: Repository, head: str, commit: str, cuts: Collection[str]) -> bool:
    """Whether a commit may lie behind a cut of a shallow clone: unless it comes after all cuts that `head` has."""
    roots = output(repository.top, ["rev-list", "--max-parents=0", head, f"^{commit}"])
    return roots is None or not set(_rows(roots)).isdisjoint(cuts)


def _present(repository: Repository, commits: Sequence[str]) -> set[str] | None:
    """Those that git has; None if it gives no answer."""
    types = _checked_names(repository, commits)
    return None if types is None else {row.removesuffix(" commit") for row in _rows(types)}.intersection(commits)


def _state_of(repository: Repository) -> frozenset[tuple[str, int, int]]:
    """Changes when a branch, a tag or a HEAD moved, or objects arrived, here or in a repository that lends its own."""
    lent = (text_of(os.path.join(repository.common, "objects/info/alternates")) or "").splitlines()
    stamps: set[tuple[str, int, int]] = set()
    for common in (repository.common, *(os.path.dirname(objects) for objects in lent)):
        files = [
            os.path.join(common, name) for name in ("HEAD", "FETCH_HEAD", "packed-refs", "shallow", "objects/pack")
        ]
        for kind in ("refs/heads", "refs/remotes", "refs/tags", "reftable", "worktrees"):
            for folder, _, names in os.walk(os.path.join(common, kind)):
                files += [os.path.join(folder, name) for name in names if kind != "worktrees" or name == "HEAD"]
        # Git puts a new file in the place of the old one.
        stamps.update((path, *stamp) for path in files if (stamp := _stamp(path)) is not None)
    return frozenset(stamps)


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        stat = os.lstat(path)
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_ino


def _followed(repository: Repository, path: str, head: str, until: float, *, in_index: bool) -> str | None:
    """The new place of a file, searched for until the time is over."""

    def look(*arguments: str) -> dict[bytes, bytes | None]:
        left_s = until - time.monotonic()
        asked = ["--literal-pathspecs", *arguments]
        return _changes(output(repository.top, asked, wait_s_max=left_s) if left_s > 0 else None)

    current = os.fsencode(path)
    for _ in range(_RENAME_HOPS_MAX):
        # The last commit that touched the file. -m: a merge that moved it shows so against one of its parents.
        last = ("log", "--max-count=1", "--format=", "--full-diff", "-m", *_RENAMES, head, "--", os.fsdecode(current))
        changes = look(*last)
        if current not in changes:
            return None  # It never was here, or there is no time left.
        moved = changes[current]
        if moved == current:
            break
        if moved is None:
            return None
        current = moved
    else:
        return None
    if in_index:
        current = look("diff-index", "--cached", *_RENAMES, head).get(current) or current
    new = os.fsdecode(current)
    return None if new == path else new


def _changes(listed: bytes | None) -> dict[bytes, bytes | None]:
    """Where each file of a list of changes is afterwards: under its old name, a new one, or nowhere."""
    changes: dict[bytes, bytes | None] = {}
    fields = iter((listed or b"").split(b"\0"))
    for status in fields:
        kind = status.strip()[:1]
        if not kind:
            continue  # Some releases of git put an empty field between two lists.
        old = next(fields, b"")
        if kind in {b"R", b"C"}:
            new = next(fields, b"")
            changes[new] = new
            if kind == b"R":
                changes[old] = new
        elif changes.get(old) is None:
            changes[old] = None if kind == b"D" else old
    return changes


def _is_squashed(repository: Repository, work: str, base: str, fork: str | None) -> bool:
    """Whether all patches of a branch, as one, are in another."""
    if fork is None:
        return False
    import tempfile

    # The branch as one commit is written where the repository never sees it.
    with tempfile.TemporaryDirectory(prefix="mnemarch-") as folder:
        aside = {
            "GIT_OBJECT_DIRECTORY": folder,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.path.join(repository.common, "objects"),
        } | {f"GIT_{who}_{what}": "mnemarch" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        squash = ["commit-tree", f"{work}^{{tree}}", "-p", fork, "-m", "squashed"]
        squashed = _rows(output(repository.top, squash, environment=aside))
        return bool(squashed) and _all_there(output(repository.top, ["cherry", base, squashed[0]], environment=aside))


def _all_there(cherries: bytes | None) -> bool:
    rows = _rows(cherries)
    return bool(rows) and all(row.startswith("- ") for row in rows)


def _checked_names(repository: Repository, names: Iterable[str]) -> bytes | None:
    """Hash and type of each thing that is named, one a line."""
    return output(repository.top, ["cat-file", "--batch-check=%(objectname) %(objecttype)"], _lines(names))


def _rows(printed: bytes | None) -> list[str]:
    return (printed or b"").decode("ascii", "replace").splitlines()


def _lines(names: Iterable[str]) -> bytes:
    return os.fsencode("".join(f"{name}\n" for name in names))

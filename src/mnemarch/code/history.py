"""Queries git about commits in batches: ancestry, renames (R8), and what other branches have."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, cached_property

from mnemarch.code.git import branch_tips, is_hash, output
from mnemarch.code.git import head as checked_out
from mnemarch.code.home import Repository, repository_around, text_of
from mnemarch.code.worktree import GONE, CommitFiles, WorkTree, checked, trouble_with
from mnemarch.model.unit import Citation
from mnemarch.model.value import replace

_ANSWERS_MAX = 65_536
_RENAME_WAIT_S_MAX = 3.0
_RENAME_HOPS_MAX = 8
# How long other branches may be searched for one citation.
_BRANCHES_PATIENCE_S = 10.0
# Git compares each removed file with each added one. In commits with more files than this, it matches only equal files.
_RENAMES = ("-M", "-l400", "--name-status", "-z")
# Plain patches. A mark that no line of a patch begins with precedes each commit's hash.
_COMMIT_MARK = b"\x01"
_PATCHES = (
    *("log", "-p", "-U0", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--no-abbrev"),
    "--format=%x01%H",
)
_REWRITTEN_WAIT_S_MAX = 0.5
_COMMITS_SINCE_MAX = 500
_CHANGED_BY_FETCHING = ("FETCH_HEAD", "packed-refs", "shallow", "objects/pack")


class History:
    """Questions about the commits of a repository. Safe to share between threads."""

    def __init__(self, root: str) -> None:
        self._root = root
        # The state of the repository, and the answers by head and commit, valid until the state changes.
        self._cached: tuple[object, dict[tuple[str, str], bool | None]] = (None, {})
        # The answer, and the time limit that it was found within, in seconds.
        self._moves: dict[object, tuple[str | None, float]] = {}

    def has(self, commits: Collection[str]) -> bool:
        """Whether the repository has all of these commits. Starts git at most once."""
        repository = repository_around(self._root)
        if repository is None or not all(map(is_hash, commits)):
            return False

        def ask(unknown: list[str]) -> dict[str, bool | None]:
            present = _present(repository, unknown)
            return {} if present is None else {commit: commit in present for commit in unknown}

        return all(self._answers(repository, "", commits, ask).values())

    def contains(self, head: str, commits: Sequence[str]) -> dict[str, bool | None]:
        """Whether `head` contains the changes of each commit: as an ancestor, or by the lines of another commit.

        The other commit is an amended, rebased, picked or squashed one that brings more than half of the lines to the
        same files. None means unknown: the repository lacks the commit, or the commit may lie behind the cut of a
        shallow clone.

        Takes whole hashes only (see `git.full_hash`). Git is started three times for the ancestry of any number of
        commits, and once for each commit with changes outside it. The history is the one that `git log` shows: it
        follows `git replace` and ends at a shallow clone's cut. Git walks by date, so six or more commits in a row
        with dates long before their parents' can hide older ones.
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
        """The answers about commits, from the cache or from `ask`."""
        state = _state_of(repository)
        cached = self._cached[1] if self._cached[0] == state else {}
        unknown = [commit for commit in commits if (head, commit) not in cached]
        new = {(head, commit): answer for commit, answer in ask(unknown).items()} if unknown else {}
        if new:
            self._cached = (state, (cached if len(cached) <= _ANSWERS_MAX else {}) | new)
        return {commit: new.get((head, commit), cached.get((head, commit))) for commit in commits}

    def renamed(self, path: str, head: str, *, wait_s_max: float = _RENAME_WAIT_S_MAX) -> str | None:
        """The new path of a file that is missing at `head` or in the index. None if git doesn't know it.

        Renames are followed in commits, then in the index. Git sees a rename if half of the content is equal, and it
        doesn't see a moved file before `git add`. A search in a long history can take seconds. It ends with None at
        the time limit, and runs again only for a caller with a higher limit.
        """
        repository = repository_around(self._root)
        if repository is None or not is_hash(head) or trouble_with(path) is not None:
            return None
        index = _stamp(os.path.join(repository.own, "index")) if checked_out(self._root) == head else None
        key = (path, head, index)
        new, waited_s = self._moves.get(key, (None, -1.0))
        if waited_s < wait_s_max:
            until = time.monotonic() + wait_s_max
            new = _followed(repository, path, head, until, in_index=index is not None)
            if len(self._moves) > _ANSWERS_MAX:
                self._moves.clear()
            self._moves[key] = (new, wait_s_max if time.monotonic() >= until else math.inf)
        return new

    def took_over(self, path: str, name: str, head: str, *, wait_s_max: float, in_tree: bool) -> list[str]:
        """Other files where a name appeared or vanished, in the last commit where it did so in this file."""
        repository = repository_around(self._root)
        if repository is None or not is_hash(head) or trouble_with(path) is not None:
            return []
        until = time.monotonic() + wait_s_max
        files: list[str] = []
        search = ["--name-only", "-z", f"-S{name}", head]
        commands = [["log", "--max-count=1", "--format=", "--full-diff", "-m", *search, "--", path]]
        if in_tree:
            commands.insert(0, ["diff", *search])
        for asked in commands:
            left_s = until - time.monotonic()
            listed = output(repository.top, ["--literal-pathspecs", *asked], wait_s_max=left_s) if left_s > 0 else b""
            files += [os.fsdecode(file.strip(b"\n")) for file in (listed or b"").split(b"\0")]
        return [file for file in dict.fromkeys(files) if file and file != path]

    def contents(self, path: str, commits: Sequence[str]) -> dict[str, str]:
        """The hash of a file's content at each of the commits that have the file. Starts git once."""
        repository = repository_around(self._root)
        if repository is None or not commits or trouble_with(path) is not None or "\n" in path:
            return {}
        names = (f"{commit}:{path}" for commit in commits)
        types = _rows(_checked_names(repository, names))
        pairs = zip(commits, types, strict=False)  # Git may have stopped early.
        return {commit: row.removesuffix(" blob") for commit, row in pairs if row.endswith(" blob")}

    def fork(self, head: str, other: str) -> str | None:
        """The newest common ancestor of two commits. None if there is none, or git fails."""
        if head == other:
            return head
        repository = repository_around(self._root)
        rows = _rows(output(repository.top, ["merge-base", head, other])) if repository is not None else []
        return rows[0] if rows and is_hash(rows[0]) else None


class OtherBranches:
    """The local branches other than the commit that units are judged at, during one sweep.

    A worktree switches branches, so code on any of them is not gone. For the project the default branch decides
    (`is_default`): code it deleted is gone, unless a branch will bring the code in a merge, or one of the worktrees
    (`folders`) has it uncommitted.
    """

    def __init__(self, root: str, history: History, commit: str, *, folders: Collection[str], is_default: bool) -> None:
        self._root = root
        self._folders = folders
        self._history = history
        self._commit = commit
        self._is_default = is_default
        # Whether a branch adds the code: the branch has it, and the point where it forked off didn't.
        self.bring = cache(self._is_brought)
        # Keyed by the file's content, since most branches have the same.
        self._holding: dict[tuple[Citation, str], bool] = {}

    def have(self, citation: Citation) -> bool:
        """Whether another branch has code that is missing at the commit, so that it is not gone."""
        return self.bring(citation) or (not self._is_default and bool(self._having(citation, self._tips)))

    def _is_brought(self, citation: Citation) -> bool:
        until = time.monotonic() + _BRANCHES_PATIENCE_S
        for tip in (*self._having(citation, self._tips), *self._not_committed(citation)):
            fork = self._history.fork(self._commit, tip)
            # If git gives no answer in time, assume True, so that nothing is archived by mistake.
            if fork is None or not self._having(citation, [fork]) or time.monotonic() > until:
                return True
        return False

    def _not_committed(self, citation: Citation) -> list[str]:
        """For the project: the HEAD of each worktree whose files have the code, committed or not."""
        folders = self._folders if self._is_default else ()
        heads = [checked_out(folder) for folder in folders if checked(WorkTree(folder), citation).state != GONE]
        return [head for head in heads if head is not None]

    @cached_property
    def _tips(self) -> list[str]:
        return branch_tips(self._root)

    def _having(self, citation: Citation, commits: Sequence[str]) -> list[str]:
        """The commits that have the code, under the current or the former name of its file."""
        was = citation.get("was")
        having: dict[str, None] = {}
        for named in (citation, replace(citation, ref=was)) if was is not None else (citation,):
            for commit, content in self._history.contents(named.ref, commits).items():
                if self._holds(named, commit, content):
                    having[commit] = None
        return list(having)

    def _holds(self, citation: Citation, commit: str, content: str) -> bool:
        holds = self._holding.get((citation, content))
        if holds is None:
            tree = WorkTree(CommitFiles(self._root, commit))
            holds = self._holding[citation, content] = checked(tree, citation).state != GONE
        return holds


def _ancestry(repository: Repository, head: str, commits: Sequence[str]) -> dict[str, bool | None]:
    """The answers of `History.contains`. Empty if git fails."""
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
    cuts = set((text_of(os.path.join(repository.common, "shallow")) or "").split())
    beside = [
        commit
        for commit in existing
        if commit in outside and not (cuts and _may_be_cut_off(repository, head, commit, cuts))
    ]
    clear = {commit: answer for commit, answer in answers.items() if commit not in beside}
    return clear | (_rewritten(repository, head, beside) if beside else {})


def _rewritten(repository: Repository, head: str, commits: Sequence[str]) -> dict[str, bool | None]:
    """For each commit that is no ancestor of `head`, whether other commits brought most of its lines to `head`.

    Commits beyond the time limit are left out.
    """
    import re

    until = time.monotonic() + _REWRITTEN_WAIT_S_MAX
    one_by_one = ["--no-walk=unsorted", "--stdin", "-m", "--first-parent", "--raw", "-z", "--root"]
    patches = output(repository.top, [*_PATCHES, *one_by_one], _lines(commits)) or b""
    answers: dict[str, bool | None] = dict.fromkeys(commits, False)
    for patch in patches.split(_COMMIT_MARK)[1:]:
        commit, changed = os.fsdecode(patch[: patch.find(b"\0")]), _changed_lines(patch)
        paths = re.findall(rb":\d+ \d+ \w+ \w+ \w\0([^\0]+)", patch)
        lines = {(file, line) for file, line in changed if line.startswith(b"+")} or changed
        if not lines:
            continue
        left_s = until - time.monotonic()
        since = [*_PATCHES, f"--max-count={_COMMITS_SINCE_MAX}", head, f"^{commit}", "--", *map(os.fsdecode, paths)]
        brought = output(repository.top, ["--literal-pathspecs", *since], wait_s_max=left_s) if left_s > 0 else None
        if brought is None:
            answers.pop(commit, None)
        elif len(lines & _changed_lines(brought)) * 2 > len(lines):
            answers[commit] = True
    return answers


def _changed_lines(patches: bytes) -> set[tuple[bytes, bytes]]:
    """The lines that patches add or remove, as pairs of the file and the line with its sign."""
    changed = set()
    file, in_hunk = b"", False
    for line in patches.split(b"\n"):
        if line.startswith(b"diff --git ") or b"\0diff --git " in line:
            file, in_hunk = line.rpartition(b"\0")[2], False
        elif line.startswith(b"@@"):
            in_hunk = True
        elif in_hunk and line[:1] in {b"+", b"-"} and line[1:].strip():
            changed.add((file, line))
    return changed


def _may_be_cut_off(repository: Repository, head: str, commit: str, cuts: Collection[str]) -> bool:
    """Whether a commit may lie behind a cut of a shallow clone. False if it comes after all cuts of `head`."""
    roots = output(repository.top, ["rev-list", "--max-parents=0", head, f"^{commit}"])
    return roots is None or not set(_rows(roots)).isdisjoint(cuts)


def _present(repository: Repository, commits: Sequence[str]) -> set[str] | None:
    """The commits that exist in the repository. None if git fails."""
    types = _checked_names(repository, commits)
    return None if types is None else {row.removesuffix(" commit") for row in _rows(types)}.intersection(commits)


def _state_of(repository: Repository) -> frozenset[tuple[str, int, int]]:
    """A value that changes when objects arrive, here or in a repository that lends its objects."""
    lent = (text_of(os.path.join(repository.common, "objects/info/alternates")) or "").splitlines()
    commons = (repository.common, *(os.path.dirname(objects) for objects in lent))
    files = [os.path.join(common, name) for common in commons for name in _CHANGED_BY_FETCHING]
    return frozenset((path, *stamp) for path in files if (stamp := _stamp(path)) is not None)


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        stat = os.lstat(path)
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_ino


def _followed(repository: Repository, path: str, head: str, until: float, *, in_index: bool) -> str | None:
    """Follow the renames of a file until the time limit."""

    def look(*arguments: str) -> dict[bytes, bytes | None]:
        left_s = until - time.monotonic()
        asked = ["--literal-pathspecs", *arguments]
        return _changes(output(repository.top, asked, wait_s_max=left_s) if left_s > 0 else None)

    current = os.fsencode(path)
    for _ in range(_RENAME_HOPS_MAX):
        # Find the last commit that touched the file. -m shows a merge's move against one of its parents.
        last = ("log", "--max-count=1", "--format=", "--full-diff", "-m", *_RENAMES, head, "--", os.fsdecode(current))
        changes = look(*last)
        if current not in changes:
            return None  # The file was never in this history, or the time is over.
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
    """The path of each file after a list of changes. None for a deleted file."""
    changes: dict[bytes, bytes | None] = {}
    fields = iter((listed or b"").split(b"\0"))
    for status in fields:
        kind = status.strip()[:1]
        if not kind:
            continue  # Some versions of git put an empty field between two lists.
        old = next(fields, b"")
        if kind in {b"R", b"C"}:
            new = next(fields, b"")
            changes[new] = new
            if kind == b"R":
                changes[old] = new
        elif changes.get(old) is None:
            changes[old] = None if kind == b"D" else old
    return changes


def _checked_names(repository: Repository, names: Iterable[str]) -> bytes | None:
    """The hash and type of each named object, one per line."""
    return output(repository.top, ["cat-file", "--batch-check=%(objectname) %(objecttype)"], _lines(names))


def _rows(printed: bytes | None) -> list[str]:
    return (printed or b"").decode("ascii", "replace").splitlines()


def _lines(names: Iterable[str]) -> bytes:
    return os.fsencode("".join(f"{name}\n" for name in names))

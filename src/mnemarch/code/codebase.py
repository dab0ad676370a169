"""One working tree and its repository, and whether units hold there (S11-S13, R8, R11).

A check reads only the code that units cite. It never fails a recall: a unit that can't be checked passes, with a note.
"""

from __future__ import annotations

import time
from functools import cache, cached_property

from mnemarch.code import git
from mnemarch.code.expectations import is_overtaken, still_expected
from mnemarch.code.home import clone_at, in_clone, is_bare, repository_around, worktrees_of
from mnemarch.code.symbols import plain_name
from mnemarch.code.tests import lacks_tests, place_of
from mnemarch.code.worktree import CHANGED, GONE, HOLDS, UNKNOWN, Check, CommitFiles, WorkTree, checked, trouble_with
from mnemarch.errors import InvalidInput
from mnemarch.lazy import Lazy
from mnemarch.model.unit import OF_CODE, Citation, CitationKind, Kind, Status, Unit
from mnemarch.model.value import Frozen, replace
from mnemarch.policy.promotion import cited_names
from mnemarch.text.words import in_a_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from mnemarch.code import history as histories
    from mnemarch.code.history import History, OtherBranches
else:
    histories = Lazy("mnemarch.code.history")

# The prefix of the reason that a stale unit is withheld or archived with.
STALE = "stale: "
_COMMITS_MAX = 4
_OTHER_FILES_MAX = 20
_ENDINGS_MAX = 4_096
# How long git may search for the new name of a file, in a recall and in a sweep.
_RECALL_PATIENCE_S = 0.25
_SWEEP_PATIENCE_S = 10.0
_HASH_CHARS = 12
_NOTE_CHARS_MAX = 700


class Codebase:
    """A reader's working tree and repository. Answers of git and the parsers are cached until the files change."""

    def __init__(self, root: str, *, is_shared: bool = False) -> None:
        self.root = root
        # The name of this clone, if several clones share the memory.
        self.clone = clone_at(root) if is_shared else None
        self.tree = WorkTree(root)
        self._commits: dict[str, WorkTree] = {}
        self._endings: dict[tuple[str, str], str | None] = {}

    @cached_property
    def history(self) -> History:
        return histories.History(self.root)

    def head(self) -> str | None:
        return git.head(self.root)

    def ending_with(self, path: str) -> str | None:
        """The only tracked file whose path ends like this. None if there are none or several."""
        head = self.head()
        if head is None:
            return None
        if len(self._endings) > _ENDINGS_MAX:
            self._endings = {}
        if (head, path) not in self._endings:
            pattern = "".join(f"[{character}]" if character in "*?[" else character for character in path)
            listed = git.git(self.root, ["ls-files", "-z", "--", f":(glob)**/{pattern}"]) or ""
            files = [name for name in listed.split("\0") if name]
            self._endings[head, path] = files[0] if len(files) == 1 else None
        return self._endings[head, path]

    def view(self, project: str | None, *, by_commit: bool) -> CodeView:
        """The code in the working tree, or at HEAD in a bare repository."""
        head = self.head() if self._is_bare else None
        tree = self.tree if head is None else self.tree_at(head)
        return CodeView(self, tree, head, project, by_commit=by_commit)

    def view_at(self, project: str | None, commit: str) -> CodeView:
        """The code at a commit."""
        return CodeView(self, self.tree_at(commit), commit, project)

    def committed_view(self, project: str | None, worktree: str | None, *, own: bool) -> CodeView | None:
        """The committed code of a worktree, or of the default branch if `worktree` is None. None if unknown.

        Uncommitted files in the branch's worktree count too. Code on another branch is not gone.
        """
        if self.head() is None:
            return self.view(project, by_commit=True)  # A plain folder, or a repository without commits.
        branch, root = None, None
        if worktree is None:
            branch = git.default_branch(self.root)
            # The remote branch decides: the local one may be behind it, or have unpushed commits.
            commit = None if branch is None else git.tip(self.root, branch, remote_first=True)
        else:
            root = self.root if own else self.worktrees().get(worktree)
            commit = None if root is None else git.head(root)
        if commit is None:
            return None
        folders = {self.root, *self.worktrees().values()}
        return CodeView(
            self,
            self.tree_at(commit),
            commit,
            project,
            files=cache(lambda: self._files_in(root or self._folder_of(branch), project)),
            other_branches=histories.OtherBranches(
                self.root, self.history, commit, folders=folders, is_default=worktree is None
            ),
        )

    def is_root_of(self, unit: Unit) -> bool:
        """Whether the unit's paths are relative to this repository or a clone of it.

        If unknown, False. A unit from a plain folder names no repository, so it matches every folder.
        """
        cited = {citation.get("root") for citation in unit.citations if citation.kind in OF_CODE} - {None}
        named = cited or ({unit.valid_from_commit} if unit.valid_from_commit else set())
        return not named or self.history.has({str(name).partition(":")[0] for name in named})

    def branches(self) -> dict[str, str]:
        """The branch of each worktree, by its name in scopes. Empty for a detached HEAD."""
        return {name: git.branch(folder) or "" for name, folder in self.worktrees().items()}

    def worktrees(self) -> dict[str, str]:
        """The folders of the repository's worktrees, by their names in scopes."""
        repository = repository_around(self.root)
        folders = {} if repository is None else worktrees_of(repository)
        return {in_clone(name, self.clone): folder for name, folder in folders.items()}

    def is_changed(self, path: str, since: str | None = None) -> bool:
        """Whether a file changed after a commit, by default the one where this branch left the default branch.

        New files count, committed or not. False if it can't be determined.
        """
        head = self.head()
        if since is None and head is not None:
            main = git.default_branch(self.root)
            tip = None if main is None else git.tip(self.root, main)
            since = head if tip is None else self.history.fork(head, tip) or head
        if since is None:
            return False
        now, before = (tree.content_hash(path) for tree in (self.tree, self.tree_at(since)))
        states = [answer.state for answer in (now, before) if isinstance(answer, Check)]
        return now != before if not states else states == [GONE]

    def tree_at(self, commit: str) -> WorkTree:
        tree = self._commits.get(commit)
        if tree is None:
            if len(self._commits) >= _COMMITS_MAX:
                self._commits = {}
            tree = self._commits[commit] = WorkTree(CommitFiles(self.root, commit))
        return tree

    def _folder_of(self, branch: str | None) -> str | None:
        """The folder of the worktree that has the branch checked out."""
        folders = (self.root, *self.worktrees().values())
        return next((folder for folder in folders if branch is not None and git.branch(folder) == branch), None)

    def _files_in(self, folder: str | None, project: str | None) -> CodeView | None:
        """The files in a worktree of this repository."""
        if folder is None:
            return None
        there = self if folder == self.root else Codebase(folder)
        return None if there._is_bare else there.view(project, by_commit=False)

    @cached_property
    def _is_bare(self) -> bool:
        """Whether the repository has no working tree."""
        repository = repository_around(self.root)
        return repository is not None and is_bare(repository)


class CodeCheck(Frozen):
    """The result of checking one unit against the code. With a `reason` the unit is withheld.

    `is_stale`: the cited code is gone, so the unit may be archived. `is_confirmed`: all cited code was found. A unit
    that can't be checked is neither. `missing` lists the citations whose code is gone. `lacks_tests`: the unit rests on
    tests alone, and this tree has none of them. `has_other_tests`: the tests are here, but they no longer expect what
    they expected when they verified the unit.
    """

    reason: str | None = None
    is_stale: bool = False
    is_confirmed: bool = False
    lacks_tests: bool = False
    has_other_tests: bool = False
    notes: tuple[str, ...] = ()
    moves: tuple[tuple[str, str], ...] = ()
    missing: tuple[Citation, ...] = ()


class CodeView:
    """The code as one reader sees it: a working tree or the files of a commit, and the history up to it."""

    def __init__(
        self,
        codebase: Codebase,
        tree: WorkTree,
        commit: str | None,
        project: str | None,
        *,
        by_commit: bool = True,
        files: Callable[[], CodeView | None] | None = None,
        other_branches: OtherBranches | None = None,
    ) -> None:
        """Create the view of a recall, or of a sweep if `files` and `other_branches` are given.

        A sweep doesn't count code as gone if it is uncommitted in `files` or on another branch.
        """
        self._codebase = codebase
        self._tree = tree
        self._project = project
        self._by_commit = by_commit
        self._files = files
        self._other_branches = other_branches
        # The time limit: per rename in a sweep, for all renames together in a recall.
        self._patience_s = _RECALL_PATIENCE_S if other_branches is None else _SWEEP_PATIENCE_S
        # None for a working tree.
        self.commit = commit

    def checks(self, units: Iterable[Unit]) -> dict[str, CodeCheck]:
        """The check of each unit that this code can contradict."""
        about = {unit.id: unit for unit in units if self._is_about(unit)}
        # Cited code decides. Commits are checked only for units that cite no code.
        contained = self._contained(
            commit for unit in about.values() if not _checkable(unit) for commit in _needed_commits(unit)
        )
        self._tree.load({path for unit in about.values() for path in _paths(unit)})
        checks = {unit_id: self._check(unit, contained) for unit_id, unit in about.items()}
        stale = [about[unit_id] for unit_id, check in checks.items() if check.is_stale]
        files = self._files() if stale and self._files is not None else None
        if files is not None:
            # Uncommitted code is not gone.
            checks |= {unit_id: here for unit_id, here in files.checks(stale).items() if not here.is_stale}
        if self._other_branches is not None:
            for unit in stale:
                missing = checks[unit.id].missing
                if missing and all(map(self._other_branches.have, missing)):
                    checks[unit.id] = replace(checks[unit.id], is_stale=False)
        return checks

    def _is_about(self, unit: Unit) -> bool:
        """Whether the unit is about this project's code. A unit of the org may come from another project."""
        return unit.is_bound_to_code and (not unit.provenance or unit.provenance[0].scope.project == self._project)

    def still_valid(self, replaced: Iterable[Unit], successors: Mapping[str, Unit]) -> set[str]:
        """The replaced units that still hold here, because no later replacement in their chains does (R8)."""
        checks = self.checks(successors.values())
        chains = {unit.id: list(_chain(unit, successors)) for unit in replaced}
        pairs = (pair for chain in chains.values() for pair in chain)
        contained = self._contained(before.valid_to_commit or "" for before, after in pairs if not _checkable(after))

        def takes_effect(before: Unit, after: Unit) -> bool:
            if after.status is Status.ARCHIVED:
                return not (after.archive_reason or "").startswith(STALE)
            check = checks.get(after.id, CodeCheck())
            if check.reason is not None or (check.has_other_tests and still_expected(self._tree, before.proof)):
                return False  # The tests here match the earlier unit.
            return bool(_checkable(after)) or contained.get(before.valid_to_commit or "") is not False

        return {
            unit_id for unit_id, chain in chains.items() if chain and not any(takes_effect(*pair) for pair in chain)
        }

    def _contained(self, commits: Iterable[str]) -> Mapping[str, bool | None]:
        """Whether each commit is in the reader's history. One query for all commits."""
        asked = sorted({*commits} - {""}) if self._by_commit else []
        head = (self.commit or self._codebase.head()) if asked else None
        return {} if head is None else self._codebase.history.contains(head, asked)

    def _check(self, unit: Unit, contained: Mapping[str, bool | None]) -> CodeCheck:
        """Check the cited code or, if there is none, the commits. Missing tests alone never withhold a unit."""
        citations = _checkable(unit)
        if unit.proof is None:
            has_other_tests = is_overtaken(self._tree, unit)
        else:
            has_other_tests = still_expected(self._tree, unit.proof) is False
        if citations:
            return replace(self._check_code(citations), has_other_tests=has_other_tests)
        needed = _needed_commits(unit)
        outside = next((commit for commit in needed if contained.get(commit) is False), None)
        if outside is not None:
            return CodeCheck(
                f"not valid here: holds from commit {outside[:_HASH_CHARS]} on, which this branch does not have"
            )
        notes = tuple(
            f"Commit {commit[:_HASH_CHARS]} is not in this repository, so its date decides."
            for commit in needed
            if commit in contained and contained[commit] is None
        )
        return CodeCheck(notes=notes, lacks_tests=lacks_tests(self._tree, unit), has_other_tests=has_other_tests)

    def _check_code(self, citations: Sequence[Citation]) -> CodeCheck:
        moves: dict[str, str] = {}
        checks = {citation: self._followed(citation, moves) for citation in citations}
        failed = [check for check in checks.values() if check.state in {CHANGED, GONE}]
        if failed:
            missing = tuple(citation for citation, check in checks.items() if check.state == GONE)
            reason = in_a_line(STALE + failed[0].reason, _NOTE_CHARS_MAX)
            return CodeCheck(reason, is_stale=bool(missing), missing=missing)
        notes = [f"{check.reason}." for check in checks.values() if check.reason]
        notes += [f"{old} is now {new}." for old, new in moves.items()]
        return CodeCheck(
            is_confirmed=all(check.state == HOLDS for check in checks.values()),
            notes=tuple(in_a_line(note, _NOTE_CHARS_MAX) for note in notes),
            moves=tuple(moves.items()),
        )

    def _followed(self, citation: Citation, moves: dict[str, str]) -> Check:
        """Check a citation. If its code is gone, look for it in the renamed file or in another file."""
        check = checked(self._tree, citation)
        if check.state != GONE:
            return check
        was = citation.get("was")
        if was is not None and (before := checked(self._tree, replace(citation, ref=was))).state != GONE:
            return before  # This branch doesn't have the rename yet.
        if self._other_branches is not None and self._other_branches.bring(citation):
            return check  # The file was never on this branch. Git would search all commits for a rename.
        head = self.commit or self._codebase.head()
        if head is None:
            return check
        asked_at = time.monotonic()
        again = None if self._tree.has(citation.ref) else self._renamed(citation, head, moves)
        if again is None or again.state == GONE:
            again = self._in_another_file(citation, head, moves) or again
        if self._other_branches is None:
            self._patience_s = max(0.0, self._patience_s - (time.monotonic() - asked_at))
        return again or check

    def _renamed(self, citation: Citation, head: str, moves: dict[str, str]) -> Check | None:
        """The check of a missing file under its new name. None if git knows no rename."""
        path = self._codebase.history.renamed(citation.ref, head, wait_s_max=self._patience_s)
        if path is None:
            return None
        try:
            renamed = replace(citation, ref=path)
        except InvalidInput:
            return Check(UNKNOWN, f"{citation.ref} is now {path!a}, which can't be cited")
        again = checked(self._tree, renamed)
        if again.state == GONE:
            return replace(again, reason=f"{citation.ref} is now {path}: {again.reason}")
        moves[citation.ref] = path
        return again

    def _in_another_file(self, citation: Citation, head: str, moves: dict[str, str]) -> Check | None:
        """The check of a symbol in the only file that it moved to. None if there are none or several."""
        name = plain_name(citation.get("name") or "").rpartition(".")[2]
        if not name:
            return None
        wait, ask = self._patience_s, self._codebase.history.took_over
        paths = ask(citation.ref, name, head, wait_s_max=wait, in_tree=self.commit is None)[:_OTHER_FILES_MAX]
        self._tree.load(set(paths))
        checks = {path: checked(self._tree, replace(citation, ref=path)) for path in paths if not trouble_with(path)}
        holders = [path for path, check in checks.items() if check.state == HOLDS]
        if len(holders) != 1:
            return None
        moves[str(citation)] = holders[0]
        return checks[holders[0]]


def _checkable(unit: Unit) -> list[Citation]:
    """The citations of code that decide whether a unit holds.

    Files that the text of a policy only mentions don't affect it (D15).
    """
    is_policy = unit.kind is Kind.POLICY
    return [
        citation
        for citation in unit.citations
        if citation.kind in OF_CODE and not (is_policy and citation.get("by") == "text")
    ]


def _paths(unit: Unit) -> set[str]:
    """The files that a check of the unit reads."""
    cited = {citation.ref for citation in _checkable(unit)}
    return cited or {place_of(test).path for test in cited_names(unit.citations)} - {""}


def _needed_commits(unit: Unit) -> list[str]:
    """The commits that a unit without cited code depends on."""
    cited = [citation.ref for citation in unit.citations if citation.kind is CitationKind.COMMIT]
    return list(dict.fromkeys([*([unit.valid_from_commit] if unit.valid_from_commit else []), *cited]))


def _chain(unit: Unit, successors: Mapping[str, Unit]) -> Iterator[tuple[Unit, Unit]]:
    """Pairs of a unit and its replacement, from this unit to the end of its chain."""
    for _ in range(len(successors)):
        after = successors.get(unit.superseded_by or "")
        if after is None:
            return
        yield unit, after
        unit = after

"""Ancestry, renames and merges, as real repositories have them, and how often git is started to tell."""

from __future__ import annotations

import os
import threading

import pytest

from fixtures.repositories import clone, commit, git, made, processes, repository, worktree
from mnemarch.code import git as asked
from mnemarch.code import history as histories
from mnemarch.code.history import History

__all__ = ["processes"]

NOWHERE = "0123456789" * 4
TEXT = "".join(f"line {number} of a text that is long enough to be known again\n" for number in range(20))


@pytest.fixture
def shop(tmp_path):
    return repository(tmp_path / "shop")


def head(folder) -> str:
    return git(folder, "rev-parse", "HEAD")


def contains(folder, at: str, *commits: str) -> list[bool | None]:
    answers = History(str(folder)).contains(at, commits)
    return [answers[name] for name in commits]


# Ancestry


def test_a_commit_contains_itself_and_what_came_before(shop):
    first, second = head(shop), commit(shop)
    assert contains(shop, second, first, second) == [True, True]
    assert contains(shop, first, first, second) == [True, False]


def test_each_branch_contains_its_own_until_they_are_merged(shop):
    base = head(shop)
    git(shop, "checkout", "--quiet", "-b", "side")
    side = commit(shop, "side", a="1")
    git(shop, "checkout", "--quiet", "main")
    main = commit(shop, "main", b="1")
    assert contains(shop, main, base, side, main) == [True, False, True]
    assert contains(shop, side, base, side, main) == [True, True, False]
    git(shop, "merge", "--quiet", "--no-edit", "side")
    assert contains(shop, head(shop), base, side, main) == [True, True, True]


def test_the_contents_of_a_file_at_many_commits_are_asked_at_once(shop, processes):
    one = commit(shop, "one", **{"src/a b.py": "1"})
    two = commit(shop, "two", **{"src/a b.py": "2"})
    first = git(shop, "rev-list", "--max-parents=0", "HEAD")
    processes.clear()
    found = History(str(shop)).contents("src/a b.py", [first, one, two, NOWHERE])
    assert len(processes) == 1
    assert found == {each: git(shop, "rev-parse", f"{each}:src/a b.py") for each in (one, two)}
    assert History(str(shop)).contents("src", [one]) == {}
    assert History(str(shop)).contents("../x", [one]) == History(str(shop)).contents("a\nb", [one]) == {}


def test_where_two_branches_parted(shop):
    base = head(shop)
    git(shop, "checkout", "--quiet", "-b", "side")
    side = commit(shop, "side", a="1")
    git(shop, "checkout", "--quiet", "main")
    main = commit(shop, "main", b="1")
    history = History(str(shop))
    assert history.fork(main, side) == base
    assert history.fork(main, base) == base
    assert history.fork(main, NOWHERE) is None
    git(shop, "checkout", "--quiet", "--orphan", "apart")
    assert history.fork(main, commit(shop, "apart", c="1")) is None


def test_worktrees_see_their_own_branch(shop, tmp_path):
    login = worktree(shop, tmp_path / "login")
    new = commit(login, "login")
    assert contains(login, head(login), new) == [True]
    assert contains(shop, head(shop), new) == [False]


# Lines that came another way


def amended(folder, more: str = "") -> str:
    """A commit, after which another is in its place, with more lines or only another message."""
    old = commit(folder, "work", a="one\ntwo\nthree\n")
    (folder / "a").write_text(f"one\ntwo\nthree\n{more}")
    git(folder, "commit", "--quiet", "--all", "--amend", "-m", "work, said better")
    return old


def rebased(folder) -> str:
    old = commit(folder, "work", a="one\n")
    git(folder, "branch", "--force", "work")
    git(folder, "reset", "--quiet", "--hard", "HEAD~1")
    commit(folder, "meanwhile", b="1")
    git(folder, "cherry-pick", "work")
    git(folder, "branch", "-D", "work")
    return old


def squashed(folder) -> str:
    """The first of two commits that came as one; the second changed some of its lines again."""
    git(folder, "checkout", "--quiet", "-b", "side")
    old = commit(folder, "side", **{"a b": "one\ntwo\nthree\n", "-상점.py": "x\n"})
    commit(folder, "side", **{"a b": "one\n2\nthree\n"})
    git(folder, "checkout", "--quiet", "main")
    commit(folder, "main", c="1")
    git(folder, "merge", "--quiet", "--squash", "side")
    commit(folder, "squashed")
    return old


def deleting(folder) -> str:
    commit(folder, "begin", a="one\ntwo\nthree\n")
    old = commit(folder, "less", a="two\n")
    git(folder, "commit", "--quiet", "--amend", "-m", "less, said better")
    return old


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Git may be slow on a busy machine."""
    monkeypatch.setattr(histories, "_REWRITTEN_WAIT_S_MAX", 60.0)


@pytest.mark.parametrize("rewrite", [amended, lambda folder: amended(folder, "four\n"), rebased, squashed, deleting])
def test_lines_that_came_another_way_are_there_from_then_on(shop, rewrite):
    first, old = head(shop), rewrite(shop)
    newest = head(shop)
    assert contains(shop, newest, first, old) == [True, True]
    assert contains(shop, first, old) == [False]
    rewritten = commit(shop, "all new", **{"a": "zero\n", "a b": "zero\n"})
    assert contains(shop, rewritten, old) == [True], "what comes later does not make it undone"


def test_work_that_was_thrown_away_is_nowhere_until_it_is_collected_and_then_unknown(shop):
    old = commit(shop, "work", a="one\n")
    git(shop, "reset", "--quiet", "--hard", "HEAD~1")
    commit(shop, "other work", a="two\n", b="one\n")
    assert contains(shop, head(shop), old) == [False]
    git(shop, "reflog", "expire", "--expire=now", "--all")
    git(shop, "gc", "--quiet", "--prune=now")
    assert contains(shop, head(shop), old) == [None]


def test_what_there_is_no_time_for_is_unknown_and_asked_again(shop, monkeypatch):
    old, history = squashed(shop), History(str(shop))
    monkeypatch.setattr(histories, "_REWRITTEN_WAIT_S_MAX", 0.0)
    assert history.contains(head(shop), [old]) == {old: None}
    monkeypatch.setattr(histories, "_REWRITTEN_WAIT_S_MAX", 60.0)
    assert history.contains(head(shop), [old]) == {old: True}


# What is here


def test_a_repository_has_its_own_commits_and_no_others(shop, tmp_path):
    other = commit(repository(tmp_path / "other"), "theirs", a="1")
    first, second, history = head(shop), commit(shop), History(str(shop))
    assert history.has([first, second])
    assert history.has([])
    assert not history.has([first, other])
    assert not history.has([first, "HEAD"])
    assert not history.has([git(shop, "rev-parse", "HEAD^{tree}")])
    assert not History(str(tmp_path)).has([first])


def test_whether_a_commit_is_here_is_asked_once_until_objects_arrive(shop, tmp_path, processes):
    other = repository(tmp_path / "other")
    theirs, first, history = commit(other, "theirs", a="1"), head(shop), History(str(shop))
    processes.clear()
    for _ in range(3):
        assert history.has([first])
        assert not history.has([theirs])
    assert len(processes) == 2
    git(shop, "fetch", "--quiet", str(other), "main")
    assert history.has([theirs, first])


@pytest.mark.parametrize(
    "name",
    ["-x", "--all", "", "HEAD", "main", NOWHERE, NOWHERE[:7], NOWHERE + "\n", "g" * 40, "a" * 64, "\ud800", "a\0"],
)
def test_what_is_no_commit_here_is_unknown_and_spoils_nothing(shop, name):
    first, newest = head(shop), commit(shop)
    assert contains(shop, newest, first, name) == [True, None]
    assert contains(shop, name, first, newest) == [None, None]


def test_a_file_or_a_tag_is_no_commit(shop):
    git(shop, "tag", "-a", "v1", "-m", "one")
    names = [git(shop, "rev-parse", name) for name in ("HEAD:readme.md", "HEAD^{tree}", "v1")]
    assert contains(shop, head(shop), *names) == [None, None, None]


def test_another_repositorys_commit_is_unknown(shop, tmp_path):
    other = commit(repository(tmp_path / "other"), "only there", x="y")
    assert contains(shop, head(shop), other) == [None]


def test_outside_of_a_repository_everything_is_unknown(tmp_path, processes):
    assert contains(tmp_path, NOWHERE, "a" * 40) == [None]
    assert processes == []


def test_without_a_git_program_everything_is_unknown(shop, tmp_path, monkeypatch):
    first, newest = head(shop), commit(shop)
    history = History(str(shop))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert history.contains(newest, [first]) == {first: None}
    assert history.renamed("a", newest) is None
    monkeypatch.undo()
    assert history.contains(newest, [first]) == {first: True}


def test_all_commits_are_asked_at_once_and_only_once(shop, processes):
    older = [head(shop), *(commit(shop, f"c{number}") for number in range(8))]
    newest, history = commit(shop), History(str(shop))
    processes.clear()
    assert history.contains(newest, older) == dict.fromkeys(older, True)
    assert len(processes) == 2
    assert history.contains(newest, older[::-1]) == dict.fromkeys(older, True)
    assert history.contains(newest, [newest]) == {newest: True}
    assert len(processes) == 2


def test_what_is_missing_is_asked_again_only_when_objects_arrived(shop, tmp_path, processes):
    source = clone(shop, tmp_path / "source")
    missing, newest, history = commit(source, "later", a="1"), head(shop), History(str(shop))
    assert history.contains(newest, [missing]) == {missing: None}
    processes.clear()
    assert history.contains(newest, [missing]) == {missing: None}
    assert processes == []
    git(shop, "fetch", "--quiet", str(source), "main:theirs")
    assert history.contains(newest, [missing]) == {missing: False}


def test_a_missing_commit_that_arrives_in_a_pack_is_seen(shop, tmp_path):
    source = clone(shop, tmp_path / "source")
    missing, newest, history = commit(source, "later", a="1"), head(shop), History(str(shop))
    assert history.contains(newest, [missing]) == {missing: None}
    git(shop, "-c", "fetch.unpackLimit=1", "fetch", "--quiet", str(source), "main:theirs")
    assert history.contains(newest, [missing]) == {missing: False}


def test_what_arrives_in_a_repository_that_lends_is_seen(shop, tmp_path):
    borrower, source = clone(shop, tmp_path / "borrower", "--shared"), clone(shop, tmp_path / "source")
    newest, history = head(borrower), History(str(borrower))
    later = commit(source, "later", a="1")
    assert not history.has([later])
    git(shop, "fetch", "--quiet", str(source))
    assert not history.has([newest, NOWHERE])
    assert history.has([newest, later])


def test_what_is_kept_is_bounded(shop, monkeypatch, processes):
    monkeypatch.setattr(histories, "_ANSWERS_MAX", 3)
    older = [head(shop), *(commit(shop, f"c{number}") for number in range(5))]
    newest, history = commit(shop), History(str(shop))
    assert history.contains(newest, older[1:]) == dict.fromkeys(older[1:], True)
    processes.clear()
    assert history.contains(newest, older[-3:]) == dict.fromkeys(older[-3:], True)
    assert processes == []
    assert history.contains(newest, older[:1]) == {older[0]: True}
    processes.clear()
    assert history.contains(newest, older[-3:]) == dict.fromkeys(older[-3:], True)
    assert processes


def test_many_threads_get_the_same_answers(shop):
    older = [head(shop), *(commit(shop, f"c{number}") for number in range(5))]
    newest, history = commit(shop), History(str(shop))
    answers: list[dict[str, bool | None]] = []
    threads = [threading.Thread(target=lambda: answers.append(history.contains(newest, older))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [dict.fromkeys(older, True)] * 8


def test_thousands_of_commits_are_looked_up_with_three_processes(tmp_path, processes):
    folder = made(tmp_path / "long")
    script = ""
    for number in range(1, 4001):
        script += f"commit refs/heads/{'main' if number % 2 else 'side'}\nmark :{number}\n"
        script += f"committer t <t@l> {1_500_000_000 + number} +0000\ndata 1\nx\n"
        script += f"from :{number - 2 or 1}\n\n" if number > 1 else "\n"
    git(folder, "fast-import", "--quiet", f"--export-marks={tmp_path / 'marks'}", given=script.encode())
    marks = dict(line.split() for line in (tmp_path / "marks").read_text().splitlines())
    hash_of = {int(mark[1:]): name for mark, name in marks.items()}
    processes.clear()
    answers = History(str(folder)).contains(hash_of[3999], [*hash_of.values(), NOWHERE])
    assert len(processes) == 3
    assert answers == {name: bool(number % 2) for number, name in hash_of.items()} | {NOWHERE: None}


def test_histories_that_were_joined_are_one(shop):
    old = head(shop)
    git(shop, "checkout", "--quiet", "--orphan", "new")
    root = commit(shop, "again", readme__md="another text\n")
    assert contains(shop, root, old) == [False]
    git(shop, "replace", "--graft", root, old)
    assert contains(shop, root, old) == [True]


# Shallow clones


@pytest.fixture
def shallow(shop, tmp_path):
    """A clone that has the newest two of four commits, and the hashes of all."""
    commits = [head(shop), *(commit(shop, f"c{number}", **{f"f{number}": "x"}) for number in range(3))]
    return clone(f"file://{shop}", tmp_path / "shallow", "--depth", "2"), commits


def test_behind_the_cut_of_a_shallow_clone_nothing_is_known(shallow):
    folder, (first, second, third, fourth) = shallow
    assert contains(folder, fourth, first, second, third, fourth) == [None, None, True, True]


def test_in_a_shallow_clone_what_comes_after_the_cut_is_told_apart(shallow):
    folder, (_, _, third, fourth) = shallow
    mine = commit(folder, "mine", mine="1")
    git(folder, "checkout", "--quiet", "-b", "side", third)
    side = commit(folder, "side", side="1")
    assert contains(folder, mine, side, third, fourth) == [False, True, True]
    assert contains(folder, side, mine, third, fourth) == [False, True, False]


def test_what_exists_may_still_lie_behind_the_cut(shallow, shop):
    """The first commit comes by a branch of its own; that the newest contains it can't be seen any more."""
    folder, (first, second, _, fourth) = shallow
    git(shop, "branch", "old", first)
    git(folder, "fetch", "--quiet", "--depth", "1", "origin", "old")
    history = History(str(folder))
    assert history.contains(fourth, [first, second]) == {first: None, second: None}
    git(folder, "fetch", "--quiet", "--unshallow")
    assert history.contains(fourth, [first, second]) == {first: True, second: True}


# Renames


def renamed(folder, path: str) -> str | None:
    return History(str(folder)).renamed(path, head(folder))


def moved(folder, old: str, new: str) -> None:
    (folder / new).parent.mkdir(parents=True, exist_ok=True)
    git(folder, "mv", "--", old, new)


def test_a_committed_rename_is_followed(shop, processes):
    commit(shop, "a", a__py=TEXT)
    moved(shop, "a.py", "src/b.py")
    commit(shop, "move")
    for number in range(3):
        commit(shop, "later", **{f"later{number}": "x"})
    newest, history = head(shop), History(str(shop))
    processes.clear()
    assert history.renamed("a.py", newest) == "src/b.py"
    assert len(processes) <= 5
    processes.clear()
    assert history.renamed("a.py", newest) == "src/b.py"
    assert processes == []


def test_a_rename_with_an_edit_is_followed(shop):
    commit(shop, "a", a__py=TEXT)
    moved(shop, "a.py", "b.py")
    (shop / "b.py").write_text(TEXT.replace("line 3 ", "the third line "))
    commit(shop, "move and edit")
    assert renamed(shop, "a.py") == "b.py"


def test_a_chain_of_renames_is_followed_to_its_end(shop):
    commit(shop, "a", a=TEXT)
    for old, new in (("a", "b"), ("b", "c/d"), ("c/d", "e")):
        moved(shop, old, new)
        commit(shop, f"{old} to {new}")
    assert [renamed(shop, name) for name in ("a", "b", "c/d")] == ["e", "e", "e"]


def test_a_file_that_was_deleted_went_nowhere(shop):
    commit(shop, "a", a=TEXT)
    git(shop, "rm", "--quiet", "a")
    commit(shop, "gone", other="something else altogether")
    assert renamed(shop, "a") is None


def test_a_chain_that_ends_in_a_deletion_went_nowhere(shop):
    commit(shop, "a", a=TEXT)
    moved(shop, "a", "b")
    commit(shop, "move")
    git(shop, "rm", "--quiet", "b")
    commit(shop, "gone")
    assert renamed(shop, "a") is None


def test_a_file_that_is_still_there_went_nowhere(shop):
    commit(shop, "a", a=TEXT)
    assert renamed(shop, "a") is None


def test_a_file_that_never_was_went_nowhere(shop):
    assert renamed(shop, "never") is None


def test_the_last_move_counts_of_a_name_that_was_used_twice(shop):
    commit(shop, "a", a=TEXT)
    moved(shop, "a", "b")
    commit(shop, "move")
    commit(shop, "again", a=TEXT.replace("line", "verse"))
    moved(shop, "a", "c")
    commit(shop, "move again")
    assert renamed(shop, "a") == "c"


def test_two_files_that_swapped_their_names_went_nowhere(shop):
    commit(shop, "two", a=TEXT, b=TEXT.replace("line", "verse"))
    git(shop, "mv", "a", "x")
    git(shop, "mv", "b", "a")
    git(shop, "mv", "x", "b")
    commit(shop, "swap")
    assert renamed(shop, "a") is None


def test_a_rename_on_another_branch_is_not_followed(shop):
    commit(shop, "a", a=TEXT)
    before = head(shop)
    moved(shop, "a", "b")
    after = commit(shop, "move")
    history = History(str(shop))
    assert history.renamed("a", before) is None
    assert history.renamed("a", after) == "b"


def test_a_rename_that_came_with_a_merge_is_followed(shop):
    commit(shop, "a", a=TEXT)
    git(shop, "checkout", "--quiet", "-b", "side")
    moved(shop, "a", "b")
    commit(shop, "move")
    git(shop, "checkout", "--quiet", "main")
    commit(shop, "main", other="x")
    git(shop, "merge", "--quiet", "--no-edit", "side")
    assert renamed(shop, "a") == "b"


def test_a_rename_that_a_merge_made_itself_is_followed(shop):
    commit(shop, "a", a=TEXT)
    git(shop, "checkout", "--quiet", "-b", "side")
    commit(shop, "side", s="x")
    git(shop, "checkout", "--quiet", "main")
    commit(shop, "main", other="x")
    git(shop, "merge", "--quiet", "--no-commit", "side")
    moved(shop, "a", "b")
    commit(shop, "merge and move")
    assert len(git(shop, "rev-parse", "HEAD^@").split()) == 2
    assert renamed(shop, "a") == "b"


def test_a_staged_rename_is_followed_while_it_is_staged(shop):
    newest = commit(shop, "a", a=TEXT)
    history = History(str(shop))
    assert history.renamed("a", newest) is None
    moved(shop, "a", "b")
    assert history.renamed("a", newest) == "b"
    git(shop, "reset", "--quiet", "--hard")
    assert history.renamed("a", newest) is None


def test_a_staged_rename_comes_after_the_committed_ones(shop):
    commit(shop, "a", a=TEXT)
    moved(shop, "a", "b")
    commit(shop, "move")
    (shop / "b").rename(shop / "c")
    git(shop, "add", "--all")
    assert renamed(shop, "a") == "c"


def test_each_worktree_has_its_own_staged_renames(shop, tmp_path):
    newest = commit(shop, "a", a=TEXT)
    login = worktree(shop, tmp_path / "login")
    moved(login, "a", "b")
    assert History(str(login)).renamed("a", newest) == "b"
    assert History(str(shop)).renamed("a", newest) is None


@pytest.mark.parametrize("name", ["*.py", ":(top)x", "two\nlines", "상점.py", "with space", "-dash", "[a]", 'q"uote'])
def test_any_name_can_be_moved(shop, name):
    commit(shop, "a", decoy__py=TEXT.replace("line", "verse"))
    (shop / name).write_text(TEXT)
    commit(shop, "b")
    moved(shop, name, f"new/{name}")
    commit(shop, "move")
    assert renamed(shop, name) == f"new/{name}"


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../b", "a\0b", "\ud800", "."])
def test_what_is_no_path_inside_went_nowhere(shop, path):
    assert renamed(shop, path) is None


def test_a_search_that_takes_too_long_ends_with_nothing_and_is_asked_again(shop):
    commit(shop, "a", a=TEXT)
    moved(shop, "a", "b")
    commit(shop, "move")
    history, head = History(str(shop)), git(shop, "rev-parse", "HEAD")
    assert history.renamed("a", head, wait_s_max=0.0) is None
    assert history.renamed("a", head) == "b"


def test_a_program_that_a_repository_names_for_signatures_is_not_run(shop, tmp_path):
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/was-run\n")
    program.chmod(0o755)
    commit(shop, "a", a=TEXT)
    moved(shop, "a", "b")
    git(shop, "commit", "--quiet", "-m", "move")
    signed = git(shop, "cat-file", "commit", "HEAD").replace(
        "\n\n", "\ngpgsig -----BEGIN PGP SIGNATURE-----\n x\n\n", 1
    )
    git(shop, "reset", "--quiet", git(shop, "hash-object", "-t", "commit", "-w", "--stdin", given=signed.encode()))
    git(shop, "config", "log.showSignature", "true")
    git(shop, "config", "gpg.program", str(program))
    assert renamed(shop, "a") == "b"
    assert not (tmp_path / "was-run").exists()
    git(shop, "log", "--max-count=1")
    assert (tmp_path / "was-run").exists(), "git alone would run it"


def test_an_owner_that_git_refuses_makes_everything_unknown(shop, monkeypatch):
    first, newest = head(shop), commit(shop)
    monkeypatch.setitem(asked._ENVIRONMENT, "GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setitem(asked._ENVIRONMENT, "GIT_CONFIG_GLOBAL", os.devnull)
    assert contains(shop, newest, first) == [None]

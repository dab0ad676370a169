"""The files of a commit: read through one process, whatever they are called, and never guessed."""

from __future__ import annotations

import gc
import os
import signal
import threading

import pytest
from repositories import clone, commit, git, made, processes, repository, worktree

from mnemarch.code import commit_tree, objects
from mnemarch.code.commit_tree import CommitTree
from mnemarch.code.git import conversation
from mnemarch.code.sources import MISSING, UNKNOWN, Source, Trouble
from mnemarch.code.worktree import WorkTree

__all__ = ["processes"]


@pytest.fixture
def shop(tmp_path):
    return repository(tmp_path / "shop")


@pytest.fixture
def at():
    """Trees of commits, closed at the end."""
    opened = []

    def tree(folder, name: str = "HEAD") -> CommitTree:
        opened.append(CommitTree(str(folder), git(folder, "rev-parse", name)))
        return opened[-1]

    yield tree
    for one in opened:
        one.close()


def state(answer: Source | Trouble) -> str:
    return answer.state if isinstance(answer, Trouble) else answer.text


def test_a_file_is_read_as_it_was_at_the_commit(shop, at):
    commit(shop, "changed", readme__md="changed\n")
    (shop / "readme.md").write_text("not committed\n")
    assert state(at(shop, "HEAD~1").read("readme.md")) == "hello\n"
    assert state(at(shop).read("readme.md")) == "changed\n"


def test_the_stamp_is_the_hash_of_the_content(shop, at):
    tree, blob = at(shop), git(shop, "rev-parse", "HEAD:readme.md")
    assert tree.stamp("readme.md") == blob
    assert tree.read("readme.md").stamp == blob
    assert tree.stamp("nowhere") is None


def test_it_serves_as_a_work_tree(shop, at):
    commit(shop, "code", a__py="def total(prices): ...\n")
    assert "total" in WorkTree(at(shop)).symbols("a.py")
    assert WorkTree(at(shop, "HEAD~1")).symbols("a.py").state == MISSING


def test_files_in_folders_are_found(shop, at):
    commit(shop, "deep", **{"a/b/c/d.py": "x = 1\n", "a/b.py": "y = 2\n"})
    tree = at(shop)
    assert state(tree.read("a/b/c/d.py")) == "x = 1\n"
    assert state(tree.read("./a//b.py")) == "y = 2\n"
    assert [state(tree.read(path)) for path in ("a/b", "a", ".", "a/b.py/c", "a/x/y", "B.py")] == [MISSING] * 6


def test_paths_are_relative_to_the_folder_that_was_given(shop, at):
    commit(shop, "deep", **{"part/src/a.py": "x\n", "a.py": "y\n"})
    assert state(at(shop / "part").read("src/a.py")) == "x\n"
    assert state(at(shop / "part").read("a.py")) == MISSING


@pytest.mark.parametrize("path", ["../shop/readme.md", "/etc/passwd", "a/../../x", "", "a\0b", "\ud800"])
def test_a_path_that_leads_outside_is_refused(shop, at, path, processes):
    tree = at(shop)
    processes.clear()
    assert state(tree.read(path)) == UNKNOWN
    assert tree.stamp(path) is None
    assert processes == []


@pytest.mark.parametrize(
    "name", ["with space", "상점.py", "two\nlines", ":(top)x", "*.py", "HEAD:x", "-dash", "a\tb", 'q"uote', "x^{tree}"]
)
def test_any_name_is_only_a_name(shop, at, name):
    (shop / name).write_text("found\n")
    commit(shop, "odd")
    assert state(at(shop).read(name)) == "found\n"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"a\0b", "binary"),
        (b"caf\xe9", "UTF-8"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "git-lfs"),
    ],
)
def test_what_is_no_text_is_unknown(shop, at, content, reason):
    (shop / "odd").write_bytes(content)
    commit(shop, "odd")
    answer = at(shop).read("odd")
    assert state(answer) == UNKNOWN
    assert reason in answer.reason


def test_what_is_too_large_is_unknown_and_the_next_file_is_read(shop, at, monkeypatch, processes):
    monkeypatch.setattr(commit_tree, "FILE_BYTES_MAX", 1_000_000)
    commit(shop, "big", big="x" * 1_000_001, fits="y" * 1_000_000)
    tree = at(shop)
    processes.clear()
    assert state(tree.read("big")) == UNKNOWN
    assert state(tree.read("fits")) == "y" * 1_000_000
    assert len(processes) == 2


def test_links_and_submodules_are_unknown(shop, at, tmp_path):
    (shop / "folder").mkdir()
    (shop / "folder" / "file").write_text("x")
    (shop / "link").symlink_to("readme.md")
    (shop / "folder-link").symlink_to("folder")
    git(shop, "submodule", "--quiet", "add", str(repository(tmp_path / "parts")), "parts")
    commit(shop, "odd")
    tree = at(shop)
    for path in ("link", "folder-link", "folder-link/file", "parts", "parts/readme.md"):
        assert state(tree.read(path)) == UNKNOWN, path
        assert tree.stamp(path) is None


def test_many_files_are_read_through_one_process(shop, at, processes):
    commit(shop, "many", **{f"d{number % 3}/f{number}": f"{number}" for number in range(30)})
    tree = at(shop)
    processes.clear()
    assert [state(tree.read(f"d{number % 3}/f{number}")) for number in range(30)] == [f"{n}" for n in range(30)]
    assert len(processes) == 1


def test_many_threads_read_their_own_files(shop, at):
    commit(shop, "many", **{f"f{number}": f"{number}" * 1000 for number in range(8)})
    tree, wrong = at(shop), []

    def read(number: int) -> None:
        wrong.extend(n for n in range(20) if state(tree.read(f"f{number}")) != f"{number}" * 1000)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("name", ["f" * 40, "HEAD", "-x", "", "a" * 64])
def test_a_commit_that_is_not_there_tells_nothing(shop, name):
    with CommitTree(str(shop), name) as tree:
        assert state(tree.read("readme.md")) == UNKNOWN
        assert tree.stamp("readme.md") is None


def test_outside_of_a_repository_and_without_git_nothing_is_told(shop, tmp_path, monkeypatch):
    newest = git(shop, "rev-parse", "HEAD")
    assert state(CommitTree(str(tmp_path), newest).read("readme.md")) == UNKNOWN
    monkeypatch.setenv("PATH", str(tmp_path))
    assert state(CommitTree(str(shop), newest).read("readme.md")) == UNKNOWN


def test_a_linked_worktree_and_a_bare_repository_have_trees(shop, at, tmp_path):
    login = worktree(shop, tmp_path / "login")
    commit(login, "there", there="x")
    bare = clone(login, tmp_path / "bare.git", "--bare")
    assert state(at(login).read("there")) == "x"
    assert state(at(shop).read("there")) == MISSING
    assert state(at(bare, "login").read("there")) == "x"


def test_what_a_partial_clone_lacks_is_unknown_and_not_fetched(shop, at, tmp_path):
    git(shop, "config", "uploadpack.allowFilter", "true")
    partial = clone(f"file://{shop}", tmp_path / "partial", "--filter=blob:none", "--no-checkout")
    assert state(at(partial).read("readme.md")) == UNKNOWN
    assert state(at(partial).read("nowhere")) == MISSING


def test_hashes_of_the_longer_kind_are_read(tmp_path, at):
    shop = made(tmp_path / "shop", "--object-format=sha256")
    commit(shop, "first", **{"a/b": "x\n"})
    assert len(at(shop).stamp("a/b")) == 64
    assert state(at(shop).read("a/b")) == "x\n"


def test_an_empty_file_and_an_empty_commit_are_no_trouble(tmp_path, at):
    shop = made(tmp_path / "shop")
    commit(shop, "nothing")
    assert state(at(shop).read("a")) == MISSING
    commit(shop, "empty", a="")
    assert state(at(shop).read("a")) == ""


@pytest.fixture
def started(monkeypatch):
    """Every `git cat-file` that a tree starts."""
    conversations = []

    def recorded(*given):
        conversations.append(conversation(*given))
        return conversations[-1]

    monkeypatch.setattr(objects, "conversation", recorded)
    return conversations


def test_nothing_is_left_running(shop, started):
    newest = git(shop, "rev-parse", "HEAD")
    with CommitTree(str(shop), newest) as tree:
        assert started == []
        tree.read("readme.md")
        assert [process.poll() for process in started] == [None]
    assert [process.returncode for process in started] == [0]
    assert state(tree.read("readme.md")) == "hello\n"
    tree.close()
    tree.close()
    assert [process.returncode for process in started] == [0, 0]


def test_a_forgotten_tree_takes_its_process_along(shop, started):
    forgotten = CommitTree(str(shop), git(shop, "rev-parse", "HEAD"))
    forgotten.read("readme.md")
    assert started[0].poll() is None
    del forgotten
    gc.collect()
    assert started[0].returncode == 0


def test_a_process_that_was_killed_is_started_again(shop, at, started):
    commit(shop, "two", a="1", b="2")
    tree = at(shop)
    assert state(tree.read("a")) == "1"
    started[0].kill()
    started[0].wait()
    assert state(tree.read("b")) == "2"
    assert len(started) == 2


def test_a_git_that_gives_no_answer_is_not_waited_for(shop, at, started, monkeypatch):
    tree = at(shop)
    assert state(tree.read("readme.md")) == "hello\n"
    os.kill(started[0].pid, signal.SIGSTOP)
    monkeypatch.setattr(objects, "_WAIT_MS_MAX", 1)
    monkeypatch.setattr(objects, "_END_S_MAX", 0.01)
    tree.read("readme.md")
    assert started[0].returncode == -signal.SIGKILL

"""The files of a commit: read through two processes, whatever they are called, and never guessed."""

from __future__ import annotations

import threading

import pytest

from fixtures.repositories import clone, commit, git, made, processes, repository, worktree
from mnemarch.code import worktree as trees
from mnemarch.code.worktree import GONE, UNKNOWN, Check, CommitFiles, Source, WorkTree

__all__ = ["processes"]


@pytest.fixture
def shop(tmp_path):
    return repository(tmp_path / "shop")


def at(folder, name: str = "HEAD") -> CommitFiles:
    return CommitFiles(str(folder), git(folder, "rev-parse", name))


def state(answer: Source | Check) -> str:
    return answer.state if isinstance(answer, Check) else answer.text


def test_a_file_is_read_as_it_was_at_the_commit(shop):
    commit(shop, "changed", readme__md="changed\n")
    (shop / "readme.md").write_text("not committed\n")
    assert state(at(shop, "HEAD~1").read("readme.md")) == "hello\n"
    assert state(at(shop).read("readme.md")) == "changed\n"


def test_what_was_loaded_once_is_not_asked_again(shop, processes):
    tree = WorkTree(at(shop))
    processes.clear()
    for _ in range(3):
        tree.load(["readme.md", "nowhere"])
        assert state(tree.read("readme.md")) == "hello\n"
        assert not tree.has("nowhere")
    assert len(processes) == 2


def test_it_serves_as_a_work_tree(shop):
    commit(shop, "code", a__py="def total(prices): ...\n")
    assert "total" in WorkTree(at(shop)).symbols("a.py")
    assert WorkTree(at(shop, "HEAD~1")).symbols("a.py").state == GONE


def test_files_in_folders_are_found(shop):
    commit(shop, "deep", **{"a/b/c/d.py": "x = 1\n", "a/b.py": "y = 2\n"})
    tree = at(shop)
    assert state(tree.read("a/b/c/d.py")) == "x = 1\n"
    assert state(tree.read("./a//b.py")) == "y = 2\n"
    assert [state(tree.read(path)) for path in ("a/b", "a", ".", "a/b.py/c", "a/x/y", "B.py")] == [GONE] * 6


@pytest.mark.parametrize("path", ["../shop/readme.md", "/etc/passwd", "a/../../x", "", "a\0b", "\ud800"])
def test_a_path_that_leads_outside_is_refused(shop, path, processes):
    tree = at(shop)
    processes.clear()
    assert state(tree.read(path)) == UNKNOWN
    assert processes == []


@pytest.mark.parametrize(
    "name", ["with space", "상점.py", "two\nlines", ":(top)x", "*.py", "HEAD:x", "-dash", "a\tb", 'q"uote', "x^{tree}"]
)
def test_any_name_is_only_a_name(shop, name):
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
def test_what_is_no_text_is_unknown(shop, content, reason):
    (shop / "odd").write_bytes(content)
    commit(shop, "odd")
    answer = at(shop).read("odd")
    assert state(answer) == UNKNOWN
    assert reason in answer.reason


def test_what_is_too_large_is_unknown_and_the_next_file_is_read(shop, monkeypatch, processes):
    monkeypatch.setattr(trees, "FILE_BYTES_MAX", 1_000_000)
    commit(shop, "big", big="x" * 1_000_001, fits="y" * 1_000_000)
    tree = at(shop)
    processes.clear()
    assert state(tree.read("big")) == UNKNOWN
    assert len(processes) == 1, "its content is not asked for"
    assert state(tree.read("fits")) == "y" * 1_000_000


def test_links_and_submodules_are_unknown(shop, tmp_path):
    (shop / "folder").mkdir()
    (shop / "folder" / "file").write_text("x")
    (shop / "link").symlink_to("readme.md")
    (shop / "folder-link").symlink_to("folder")
    git(shop, "submodule", "--quiet", "add", str(repository(tmp_path / "parts")), "parts")
    commit(shop, "odd")
    tree = at(shop)
    for path in ("link", "folder-link", "folder-link/file", "parts", "parts/readme.md"):
        assert state(tree.read(path)) == UNKNOWN, path


@pytest.mark.parametrize(
    ("setting", "most", "count"),
    [("_BATCH_BYTES_MAX", 1_000_000, 2), ("_BATCH_BYTES_MAX", 10, 31), ("_FILES_AT_ONCE", 16, 4)],
)
def test_many_files_are_read_at_once_unless_they_are_large(shop, monkeypatch, processes, setting, most, count):
    monkeypatch.setattr(trees, setting, most)
    texts = {f"d{number % 3}/f{number}": f"{number}" for number in range(30)}
    commit(shop, "many", **texts)
    tree = at(shop)
    processes.clear()
    tree.load([*texts, "nowhere"])
    assert {path: state(tree.read(path)) for path in texts} == texts
    assert state(tree.read("nowhere")) == GONE
    assert len(processes) == count


def test_many_threads_read_their_own_files(shop):
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
    assert state(CommitFiles(str(shop), name).read("readme.md")) == UNKNOWN


def test_outside_of_a_repository_and_without_git_nothing_is_told(shop, tmp_path, monkeypatch):
    newest = git(shop, "rev-parse", "HEAD")
    assert state(CommitFiles(str(tmp_path), newest).read("readme.md")) == UNKNOWN
    monkeypatch.setenv("PATH", str(tmp_path))
    assert state(CommitFiles(str(shop), newest).read("readme.md")) == UNKNOWN


def test_a_linked_worktree_and_a_bare_repository_have_trees(shop, tmp_path):
    login = worktree(shop, tmp_path / "login")
    commit(login, "there", there="x")
    bare = clone(login, tmp_path / "bare.git", "--bare")
    assert state(at(login).read("there")) == "x"
    assert state(at(shop).read("there")) == GONE
    assert state(at(bare, "login").read("there")) == "x"


def test_files_missing_in_a_partial_clone_are_unknown_and_not_fetched(shop, tmp_path):
    git(shop, "config", "uploadpack.allowFilter", "true")
    partial = clone(f"file://{shop}", tmp_path / "partial", "--filter=blob:none", "--no-checkout")
    assert state(at(partial).read("readme.md")) == UNKNOWN
    assert state(at(partial).read("nowhere")) == GONE


def test_hashes_of_the_longer_kind_are_read(tmp_path):
    shop = made(tmp_path / "shop", "--object-format=sha256")
    commit(shop, "first", **{"a/b": "x\n"})
    assert state(at(shop).read("a/b")) == "x\n"


def test_an_empty_file_and_an_empty_commit_are_no_trouble(tmp_path):
    shop = made(tmp_path / "shop")
    commit(shop, "nothing")
    assert state(at(shop).read("a")) == GONE
    commit(shop, "empty", a="")
    assert state(at(shop).read("a")) == ""


def test_no_answer_of_git_is_not_remembered(shop, tmp_path, monkeypatch):
    tree = at(shop)
    with monkeypatch.context() as without_git:
        without_git.setenv("PATH", str(tmp_path))
        tree.load(["readme.md"])
        assert state(tree.read("readme.md")) == UNKNOWN
    assert state(tree.read("readme.md")) == "hello\n"

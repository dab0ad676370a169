"""Which memory a folder belongs to: every way in which a repository can lie on a disk."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess

import pytest

import mnemarch
from fixtures.repositories import clone, commit, git, made, processes, repository, worktree
from mnemarch import Scope
from mnemarch.code.home import Home, home_of, main_folder, repository_around, settings_of
from mnemarch.wiring import parts

__all__ = ["processes"]

SHOP = "github.com/acme/shop"


def named(path) -> tuple[str, str | None]:
    home = home_of(str(path))
    return home.project, home.worktree


def remote(folder, url: str, name: str = "origin") -> None:
    git(folder, "remote", "add", name, url)


# One repository


def test_a_repository_is_a_project_named_by_its_folder(tmp_path):
    shop = repository(tmp_path / "shop")
    assert home_of(str(shop)) == Home(folder=str(shop), root=str(shop), project="shop", worktree="main")


def test_a_deep_subfolder_belongs_to_its_repository(tmp_path):
    shop = repository(tmp_path / "shop")
    deep = shop / "a" / "b" / "c"
    deep.mkdir(parents=True)
    assert home_of(str(deep)) == home_of(str(shop))


def test_a_linked_worktree_shares_the_memory_and_has_its_own_name(tmp_path):
    shop = repository(tmp_path / "shop")
    login = worktree(shop, tmp_path / "login")
    (login / "src").mkdir()
    expected = Home(folder=str(shop), root=str(login), project="shop", worktree="login")
    assert home_of(str(login)) == expected
    assert home_of(str(login / "src")) == expected


def test_no_process_is_started(tmp_path, processes):
    bare = tmp_path / "shop.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(repository(tmp_path / "first")), str(bare))
    shop = clone(bare, tmp_path / "shop")
    places = [shop, worktree(shop, tmp_path / "login"), bare, worktree(bare, tmp_path / "wt"), tmp_path]
    processes.clear()
    for place in places:
        home_of(str(place))
    assert processes == []


def test_without_a_git_program_everything_is_found(tmp_path, monkeypatch):
    shop = repository(tmp_path / "shop")
    remote(shop, "git@github.com:acme/shop.git")
    login = worktree(shop, tmp_path / "login")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert named(login) == (SHOP, "login")


@pytest.mark.parametrize("move", ["git", "repaired", "by hand"])
def test_a_moved_worktree_keeps_its_name(tmp_path, move):
    shop = repository(tmp_path / "shop")
    login = worktree(shop, tmp_path / "login")
    elsewhere = tmp_path / "deep" / "other"
    elsewhere.parent.mkdir()
    if move == "git":
        git(shop, "worktree", "move", str(login), str(elsewhere))
    else:
        login.rename(elsewhere)
    if move == "repaired":
        git(elsewhere, "worktree", "repair")
    assert home_of(str(elsewhere)) == Home(folder=str(shop), root=str(elsewhere), project="shop", worktree="login")


def test_a_moved_main_folder_keeps_its_worktrees_once_they_are_repaired(tmp_path):
    shop = repository(tmp_path / "shop")
    login = worktree(shop, tmp_path / "login")
    store = shop.rename(tmp_path / "store")
    git(store, "worktree", "repair", str(login))
    assert home_of(str(login)) == Home(folder=str(store), root=str(login), project="store", worktree="login")


def test_two_worktrees_whose_folders_have_one_name_are_two(tmp_path):
    shop = repository(tmp_path / "shop")
    places = [shop, worktree(shop, tmp_path / "a" / "wt"), worktree(shop, tmp_path / "b" / "wt", "-b", "other")]
    assert len({home_of(str(place)).worktree for place in places}) == 3


def test_a_linked_worktree_called_main_is_not_the_main_one(tmp_path):
    shop = repository(tmp_path / "shop")
    linked = worktree(shop, tmp_path / "main", "--detach")
    assert (shop / ".git" / "worktrees" / "main").is_dir()
    assert named(shop) == ("shop", "main")
    assert named(linked) == ("shop", "worktrees/main")


def test_a_detached_head_changes_nothing(tmp_path):
    shop = repository(tmp_path / "shop")
    before = home_of(str(shop))
    git(shop, "checkout", "--quiet", "--detach")
    assert home_of(str(shop)) == before


def test_a_branch_without_a_commit_has_a_home(tmp_path):
    assert named(made(tmp_path / "shop")) == ("shop", "main")


def test_a_sparse_checkout_has_a_home(tmp_path):
    shop = made(tmp_path / "shop")
    commit(shop, "files", **{"a/x": "1", "b/y": "2"})
    git(shop, "sparse-checkout", "set", "a")
    assert not (shop / "b").exists()
    assert named(shop / "a") == ("shop", "main")


# Clones


@pytest.mark.parametrize(
    "url",
    [
        "git@github.com:acme/shop.git",
        "https://ada:s3cr3t@GitHub.com/acme/shop",
        "ssh://git@github.com:22/acme/shop.git/",
        "https://github.com/acme/shop.git?token=s3cr3t",
    ],
)
def test_clones_are_one_project_whatever_their_folders_are_called(tmp_path, url):
    mine = repository(tmp_path / "mine")
    remote(mine, url)
    assert named(mine) == (SHOP, "main")
    assert named(worktree(mine, tmp_path / "login")) == (SHOP, "login")
    assert "s3cr3t" not in repr(home_of(str(mine)))


def test_origin_names_the_repository_or_else_the_only_remote(tmp_path):
    shop = repository(tmp_path / "shop")
    remote(shop, "git@github.com:acme/shop.git", "upstream")
    assert named(shop)[0] == SHOP
    remote(shop, "git@github.com:ada/shop.git", "mine")
    assert named(shop)[0] == "shop"
    remote(shop, "git@github.com:bob/shop.git")
    assert named(shop)[0] == "github.com/bob/shop"


def test_a_remote_that_says_nothing_leaves_the_folder_its_name(tmp_path):
    shop = repository(tmp_path / "shop")
    remote(shop, "ext::sshpass -p s3cr3t ssh host %S shop")
    assert named(shop)[0] == "shop"


def test_a_shallow_clone_is_the_same_project(tmp_path):
    origin = repository(tmp_path / "shop")
    commit(origin)
    shallow = clone(f"file://{origin}", tmp_path / "elsewhere", "--depth", "1")
    assert (shallow / ".git" / "shallow").exists()
    assert named(shallow) == ("shop", "main")


@pytest.mark.parametrize("spelt", ["{}", "file://{}", "{}/"])
def test_clones_of_one_folder_are_its_project(tmp_path, spelt):
    (tmp_path / "git").mkdir()
    bare = clone(repository(tmp_path / "first"), tmp_path / "git" / "shop.git", "--bare")
    git(bare, "remote", "remove", "origin")
    one = clone(spelt.format(bare), tmp_path / "one")
    two = clone(spelt.format(bare), tmp_path / "two")
    assert named(one) == named(two) == ("shop", "main")
    assert named(bare) == ("shop", None)
    assert named(worktree(bare, tmp_path / "wt")) == ("shop", "wt")


def test_a_clone_of_a_clone_is_the_project_of_both(tmp_path):
    first = repository(tmp_path / "first")
    remote(first, "git@github.com:acme/shop.git")
    third = clone(clone(first, tmp_path / "second"), tmp_path / "third")
    assert named(third)[0] == SHOP
    assert named(clone(first / ".git", tmp_path / "fourth"))[0] == SHOP


def test_a_remote_folder_may_be_relative_to_the_repository(tmp_path):
    repository(tmp_path / "shop")
    other = repository(tmp_path / "other")
    remote(other, "../shop")
    (other / "deep").mkdir()
    assert named(other / "deep")[0] == "shop"


@pytest.mark.parametrize("url", ["/nowhere/git/shop.git", "/nowhere/shop/.git", "s3cr3t@shop", "file:///nowhere/shop"])
def test_a_remote_folder_that_is_not_there_still_gives_its_name(tmp_path, url):
    one = repository(tmp_path / "one")
    remote(one, url)
    assert named(one)[0] == "shop"


def test_repositories_that_name_each_other_are_one_project(tmp_path):
    one, two = repository(tmp_path / "one"), repository(tmp_path / "two")
    remote(one, str(two))
    remote(two, str(one))
    assert named(one)[0] == named(two)[0] == "one"


def test_a_repository_that_names_itself_has_its_folders_name(tmp_path):
    one = repository(tmp_path / "one")
    remote(one, ".")
    assert named(one)[0] == "one"


# Repositories in unusual places


@pytest.fixture
def superproject(tmp_path):
    """A repository with a submodule `parts` at vendor/parts."""
    source = repository(tmp_path / "source" / "parts")
    whole = repository(tmp_path / "whole")
    git(whole, "submodule", "--quiet", "add", str(source), "vendor/parts")
    commit(whole, "with parts")
    return whole


def test_a_submodule_is_a_project_of_its_own(superproject):
    parts = superproject / "vendor" / "parts"
    assert (parts / ".git").is_file()
    assert home_of(str(parts)) == Home(folder=str(parts), root=str(parts), project="parts", worktree="main")
    assert named(superproject) == ("whole", "main")


def test_a_worktree_of_a_submodule_shares_the_submodules_memory(superproject, tmp_path, processes):
    parts = superproject / "vendor" / "parts"
    linked = worktree(parts, tmp_path / "parts-fix")
    processes.clear()
    assert home_of(str(linked)) == Home(folder=str(parts), root=str(linked), project="parts", worktree="parts-fix")
    assert processes == []


def test_a_submodule_in_a_worktree_of_the_whole_is_the_same_project(superproject, tmp_path):
    other = worktree(superproject, tmp_path / "other")
    git(other, "submodule", "--quiet", "update", "--init")
    assert named(other) == ("whole", "other")
    assert named(other / "vendor" / "parts") == ("parts", "main")


def test_inside_git_directories_one_is_where_they_belong(superproject):
    assert home_of(str(superproject / ".git" / "hooks")) == home_of(str(superproject))
    assert home_of(str(superproject / ".git" / "modules" / "vendor" / "parts" / "hooks")) == home_of(
        str(superproject / "vendor" / "parts")
    )


def test_a_folder_that_looks_like_a_git_directory_leads_to_no_other_repository(tmp_path):
    shop, other = repository(tmp_path / "shop"), repository(tmp_path / "other")
    trap = shop / "docs"
    trap.mkdir()
    (trap / "HEAD").write_text("ref: refs/heads/main\n")
    (trap / "commondir").write_text(str(other / ".git"))
    assert home_of(str(trap)) == home_of(str(shop))
    linked = worktree(shop, tmp_path / "login")
    assert home_of(str(shop / ".git" / "worktrees" / "login")).folder == home_of(str(linked)).folder


def test_a_bare_repository_holds_the_memory_of_its_worktrees_itself(tmp_path):
    bare = made(tmp_path / "git" / "shop.git", "--bare")
    source = repository(tmp_path / "source")
    git(source, "push", "--quiet", str(bare), "main")
    one, two = worktree(bare, tmp_path / "one", "-b", "x"), worktree(bare, tmp_path / "two", "--detach")
    assert home_of(str(one)) == Home(folder=str(bare), root=str(one), project="shop", worktree="one")
    assert home_of(str(two)) == Home(folder=str(bare), root=str(two), project="shop", worktree="two")
    assert home_of(str(bare / "hooks")) == Home(folder=str(bare), root=str(bare), project="shop", worktree=None)


@pytest.mark.parametrize("name", [".bare", ".git"])
def test_a_folder_around_a_hidden_bare_repository_holds_the_memory(tmp_path, name):
    shop = tmp_path / "shop"
    shop.mkdir()
    clone(repository(tmp_path / "source"), shop / name, "--bare")
    git(shop / name, "remote", "remove", "origin")
    if name == ".bare":
        (shop / ".git").write_text("gitdir: ./.bare\n")
    one = worktree(shop / name, shop / "one", "--detach")
    assert home_of(str(one)) == Home(folder=str(shop), root=str(one), project="shop", worktree="one")
    assert home_of(str(shop)) == Home(folder=str(shop), root=str(shop), project="shop", worktree=None)


def test_a_hidden_bare_repository_alone_has_the_name_of_the_folder_around_it(tmp_path):
    (tmp_path / "shop").mkdir()
    bare = clone(repository(tmp_path / "source"), tmp_path / "shop" / ".bare", "--bare")
    git(bare, "remote", "remove", "origin")
    assert home_of(str(worktree(bare, tmp_path / "one", "--detach"))).project == "shop"


def test_worktrees_of_a_separate_git_directory_share_one_memory(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    shop = made(tmp_path / "shop", f"--separate-git-dir={tmp_path / 'elsewhere' / 'shop.git'}")
    commit(shop, "first", a="1")
    linked = worktree(shop, tmp_path / "linked")
    assert home_of(str(shop)).folder == home_of(str(linked)).folder == str(tmp_path / "elsewhere" / "shop.git")
    assert home_of(str(shop)).root == str(shop)
    assert (named(shop), named(linked)) == (("shop", "main"), ("shop", "linked"))


def test_settings_of_the_main_worktree_alone_are_read_where_git_puts_them(superproject, tmp_path):
    parts = superproject / "vendor" / "parts"
    git(parts, "config", "extensions.worktreeConfig", "true")
    tree = git(parts, "config", "core.worktree")
    git(parts, "config", "--unset", "core.worktree")
    git(parts, "config", "--worktree", "core.worktree", tree)
    linked = worktree(parts, tmp_path / "parts-fix")
    assert home_of(str(linked)).folder == home_of(str(parts)).folder == str(parts)


def test_a_repository_inside_a_repository_is_another(tmp_path):
    outer = repository(tmp_path / "outer")
    inner = repository(outer / "lib" / "inner")
    assert home_of(str(inner)).folder == str(inner)
    assert (named(inner), named(outer / "lib")) == (("inner", "main"), ("outer", "main"))


def test_a_hooks_environment_does_not_mislead(tmp_path, monkeypatch):
    shop, other = repository(tmp_path / "shop"), repository(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_COMMON_DIR", str(other / ".git"))
    assert home_of(str(shop)).folder == str(shop)


def test_two_ways_to_one_folder_are_one_home(tmp_path):
    shop = repository(tmp_path / "shop")
    login = worktree(shop, tmp_path / "login")
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    for place in (shop, login):
        assert home_of(str(tmp_path / "link" / place.name)) == home_of(str(place))


def test_a_git_directory_behind_a_link_is_shared_with_its_worktrees(tmp_path):
    shop = repository(tmp_path / "shop")
    (shop / ".git").rename(tmp_path / "store.git")
    (shop / ".git").symlink_to(tmp_path / "store.git")
    linked = worktree(shop, tmp_path / "linked")
    assert home_of(str(shop)).folder == home_of(str(linked)).folder
    assert home_of(str(shop)).root == str(shop)


NAMES = ["with space", "상점", "two\nlines", 'quo"te', "back\\slash", "per%20cent", "-dash", "#hash; x", "ü" * 60]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_will_do(tmp_path, name):
    shop = repository(tmp_path / name)
    login = worktree(shop, tmp_path / f"{name} wt", "--detach")
    cloned = clone(shop, tmp_path / "cloned")
    assert home_of(str(login)).folder == str(shop)
    assert named(shop) == (name, "main")
    assert named(cloned) == (name, "main")
    Scope(project=home_of(str(login)).project, worktree=home_of(str(login)).worktree)


@pytest.mark.parametrize("name", [b"caf\xe9", b" "])
def test_a_folder_whose_name_is_none_still_gets_one(tmp_path, name):
    shop = os.path.join(os.fsencode(tmp_path), name)
    try:
        os.mkdir(shop)
    except OSError:
        pytest.skip("this file system has no such names")
    git(os.fsdecode(shop), "init", "--quiet")
    home = home_of(os.fsdecode(shop))
    assert home.folder == os.fsdecode(shop)
    Scope(project=home.project, worktree=home.worktree)


# No repository, or one that is broken


def test_a_plain_folder_is_its_own_home_and_a_worktree(tmp_path):
    folder = tmp_path / "plain"
    folder.mkdir()
    assert home_of(str(folder)) == Home(folder=str(folder), root=str(folder), project="plain", worktree="main")


@pytest.mark.parametrize("sign", [".mnemarch/", "mnemarch.toml"])
def test_a_folder_with_a_memory_is_the_home_of_its_subfolders(tmp_path, sign):
    folder = tmp_path / "plain"
    (folder / "deep" / "er").mkdir(parents=True)
    if sign.endswith("/"):
        (folder / sign).mkdir()
    else:
        (folder / sign).touch()
    assert home_of(str(folder / "deep" / "er")).folder == str(folder)


def test_a_memory_inside_a_repository_is_nearer(tmp_path):
    shop = repository(tmp_path / "shop")
    (shop / "part" / "src").mkdir(parents=True)
    (shop / "part" / "mnemarch.toml").touch()
    assert home_of(str(shop / "part" / "src")).folder == str(shop / "part")


def test_a_worktree_whose_repository_is_gone_is_a_plain_folder(tmp_path):
    shop = repository(tmp_path / "shop")
    login = worktree(shop, tmp_path / "login")
    (login / "src").mkdir()
    shutil.rmtree(shop)
    assert home_of(str(login / "src")) == Home(folder=str(login), root=str(login), project="login", worktree="main")


@pytest.mark.parametrize(
    "content", [b"", b"gitdir:", b"gitdir: ", b"gitdir: nowhere\n", b"nonsense", b"\xff\x00", b"gitdir: .\n"]
)
def test_a_git_file_that_leads_nowhere_makes_a_plain_folder(tmp_path, content):
    outer = repository(tmp_path / "outer")
    inner = outer / "inner"
    inner.mkdir()
    (inner / ".git").write_bytes(content)
    assert named(inner) == ("inner", "main")


@pytest.mark.parametrize("missing", ["HEAD", "objects", "refs", None])
def test_a_git_folder_that_is_no_repository_is_passed_by_as_git_does(tmp_path, missing):
    outer = repository(tmp_path / "outer")
    inner = repository(outer / "inner")
    for name in os.listdir(inner / ".git") if missing is None else [missing]:
        path = inner / ".git" / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert git(inner, "rev-parse", "--show-toplevel") == str(outer)
    assert home_of(str(inner)).folder == str(outer)


def test_a_folder_that_was_removed_belongs_to_what_is_left(tmp_path):
    shop = repository(tmp_path / "shop")
    assert home_of(str(shop / "gone" / "deep")).folder == str(shop)
    shutil.rmtree(shop)
    assert named(shop) == ("shop", "main")


def test_settings_that_cannot_be_read_leave_the_folder_its_name(tmp_path):
    shop = repository(tmp_path / "shop")
    (shop / ".git" / "config").write_bytes(b'\xff[remote "origin\nurl = [[[\n\\')
    assert named(shop) == ("shop", "main")


def test_git_never_picks_up_a_memory_whose_making_was_cut_short(tmp_path):
    place = tmp_path / ".mnemarch"
    place.mkdir()
    mnemarch.open(tmp_path).close()
    assert (place / ".gitignore").read_text() == "*\n"
    (place / ".gitignore").unlink()
    mnemarch.open(tmp_path).close()
    assert (place / ".gitignore").read_text() == "*\n"
    assert not list(place.glob("*.partial"))


def test_what_a_person_says_to_git_is_left_as_it_is(tmp_path):
    place = tmp_path / ".mnemarch"
    mnemarch.open(tmp_path).close()
    (place / ".gitignore").write_text("index\n")
    mnemarch.open(tmp_path).close()
    assert (place / ".gitignore").read_text() == "index\n"


def test_a_folder_that_somebody_else_has_there_gets_no_file_of_ours_for_git(tmp_path):
    (tmp_path / ".mnemarch").mkdir()
    (tmp_path / ".mnemarch" / "letters.txt").touch()
    parts.make_place(str(tmp_path / ".mnemarch"))
    assert not (tmp_path / ".mnemarch" / ".gitignore").exists()


def test_a_place_without_room_for_it_is_still_opened(tmp_path, monkeypatch):
    mnemarch.open(tmp_path).close()
    (tmp_path / ".mnemarch" / ".gitignore").unlink()

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", refuse)
        mnemarch.open(tmp_path).close()
    (tmp_path / "file").touch()
    with pytest.raises(mnemarch.StoreUnavailable, match="can't be made"):
        parts.make_place(str(tmp_path / "file" / ".mnemarch"))


def test_a_folder_of_a_checkout_that_looks_like_a_git_directory_is_no_repository(tmp_path):
    victim, clone = tmp_path / "victim", tmp_path / "clone"
    for folder in (victim, clone):
        subprocess.run(["git", "init", "-q", folder], check=True)
    for name in ("objects", "refs"):
        (clone / "sub" / name).mkdir(parents=True)
    (clone / "sub" / "HEAD").write_text("ref: refs/heads/main\n")
    (clone / "sub" / "config").write_text("[core]\n\tbare = false\n\tworktree = ../../victim\n")
    repository = repository_around(str(clone / "sub"))
    assert repository is not None
    assert repository.top == str(clone.resolve())
    shutil.move(clone / "sub", tmp_path / "alone")
    apart = repository_around(str(tmp_path / "alone"))
    assert apart is not None
    assert main_folder(apart, settings_of(apart)) == str((tmp_path / "alone").resolve())

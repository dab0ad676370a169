"""What is checked out, on which branch, and what a repository's settings say: by its files, and as git says it."""

from __future__ import annotations

import os

import pytest

from fixtures.repositories import clone, commit, git, made, processes, repository, worktree
from mnemarch.code import git as asked
from mnemarch.code.home import entries, repository_around, settings_of

__all__ = ["processes"]


def agrees(folder) -> bool:
    """Whether Mnemarch and git say the same of what is checked out."""
    return asked.head(str(folder)) == git(folder, "rev-parse", "HEAD")


# head and branch


def test_what_is_checked_out_is_read_from_files(tmp_path, processes):
    shop = repository(tmp_path / "shop")
    login = worktree(shop, tmp_path / "login", "-b", "feat/login")
    newest = commit(login, "login", a="1")
    processes.clear()
    assert asked.head(str(login)) == newest
    assert asked.head(str(shop)) not in {newest, None}
    assert (asked.branch(str(shop)), asked.branch(str(login))) == ("main", "feat/login")
    assert processes == []
    assert agrees(shop)
    assert agrees(login)


@pytest.mark.parametrize("place", ["main", "linked"])
def test_packed_branches_are_found(tmp_path, processes, place):
    shop = repository(tmp_path / "shop")
    folder = shop if place == "main" else worktree(shop, tmp_path / "linked", "-b", "feat/x")
    git(shop, "branch", "feat/x-longer")
    commit(shop, "more")
    git(shop, "tag", "-a", "v1", "-m", "one")
    git(shop, "pack-refs", "--all")
    assert not (shop / ".git" / "refs" / "heads" / "main").exists()
    processes.clear()
    assert asked.head(str(folder)) is not None
    assert processes == []
    assert agrees(folder)


def test_a_loose_branch_is_newer_than_its_packed_self(tmp_path):
    shop = repository(tmp_path / "shop")
    git(shop, "pack-refs", "--all")
    newest = commit(shop)
    assert asked.head(str(shop)) == newest


def test_a_detached_head_has_a_commit_and_no_branch(tmp_path, processes):
    shop = repository(tmp_path / "shop")
    first = asked.head(str(shop))
    commit(shop)
    git(shop, "checkout", "--quiet", "--detach", "HEAD~1")
    processes.clear()
    assert (asked.head(str(shop)), asked.branch(str(shop))) == (first, None)
    assert processes == []


def test_before_the_first_commit_there_is_a_branch_and_no_head(tmp_path, processes):
    shop = made(tmp_path / "shop")
    processes.clear()
    assert (asked.head(str(shop)), asked.branch(str(shop))) == (None, "main")
    assert processes == []


def test_a_branch_is_not_taken_for_one_whose_name_goes_on(tmp_path):
    shop = repository(tmp_path / "shop")
    git(shop, "pack-refs", "--all")
    git(shop, "symbolic-ref", "HEAD", "refs/heads/ma")
    assert (asked.head(str(shop)), asked.branch(str(shop))) == (None, "ma")


def test_where_a_git_file_leads_nowhere_nothing_is_checked_out(tmp_path, processes):
    inner = repository(tmp_path / "outer") / "inner"
    (inner / "deep").mkdir(parents=True)
    (inner / ".git").write_text("gitdir: nowhere\n")
    processes.clear()
    assert asked.head(str(inner / "deep")) is None
    assert processes == []


def test_outside_of_a_repository_nothing_is_asked(tmp_path, processes):
    assert (asked.head(str(tmp_path)), asked.branch(str(tmp_path))) == (None, None)
    assert asked.default_branch(str(tmp_path)) is None
    assert asked.tip(str(tmp_path), "main") is None
    assert processes == []


def test_a_subfolder_has_the_head_of_its_repository(tmp_path):
    shop = repository(tmp_path / "shop")
    (shop / "deep" / "er").mkdir(parents=True)
    assert asked.head(str(shop / "deep" / "er")) == git(shop, "rev-parse", "HEAD")


def test_a_submodule_has_a_head_of_its_own(tmp_path):
    whole = repository(tmp_path / "whole")
    git(whole, "submodule", "--quiet", "add", str(repository(tmp_path / "parts")), "parts")
    commit(whole)
    assert agrees(whole / "parts")
    assert asked.head(str(whole / "parts")) != asked.head(str(whole))


def test_a_head_that_is_a_symbolic_link_is_read(tmp_path):
    shop = repository(tmp_path / "shop")
    (shop / ".git" / "HEAD").unlink()
    (shop / ".git" / "HEAD").symlink_to("refs/heads/main")
    assert agrees(shop)
    assert asked.branch(str(shop)) == "main"
    git(shop, "pack-refs", "--all")
    assert asked.branch(str(shop)) == "main"


def test_a_branch_that_stands_for_another_is_followed(tmp_path):
    shop = repository(tmp_path / "shop")
    git(shop, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    git(shop, "symbolic-ref", "HEAD", "refs/heads/alias")
    assert agrees(shop)


@pytest.mark.parametrize(
    "content", ["ref: refs/heads/.invalid\n", "ref: ../secret\n", "ref: refs/heads/../../../secret\n", "nonsense\n", ""]
)
def test_what_files_do_not_tell_is_left_to_git(tmp_path, processes, content):
    shop = repository(tmp_path / "shop")
    (tmp_path / "secret").write_text("1" * 40)
    (shop / ".git" / "HEAD").write_text(content)
    processes.clear()
    assert asked.head(str(shop)) is None
    assert [command[-4:] for command in processes] == [["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]]


@pytest.mark.parametrize("content", ["", "1234\n", "ref: refs/heads/main\n"])
def test_a_torn_branch_is_no_commit(tmp_path, content):
    shop = repository(tmp_path / "shop")
    (shop / ".git" / "refs" / "heads" / "main").write_text(content)
    assert asked.head(str(shop)) is None


def test_without_a_git_program_the_head_is_known_and_nothing_else_fails(tmp_path, monkeypatch):
    shop = repository(tmp_path / "shop")
    newest = git(shop, "rev-parse", "HEAD")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert asked.head(str(shop)) == newest
    assert asked.full_hash(str(shop), newest[:10]) is None
    assert asked.git(str(shop), ["status"]) is None


# Answering the program


def test_the_environment_of_a_hook_does_not_reach_git(tmp_path, monkeypatch):
    shop, other = repository(tmp_path / "shop"), repository(tmp_path / "other")
    only_there = commit(other)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert asked.full_hash(str(other), only_there) == only_there
    assert asked.full_hash(str(shop), only_there) is None


@pytest.mark.parametrize("name", ["-x", "--all", "", "HEAD..HEAD", "^HEAD", "no such", "a\0b", "\ud800"])
def test_what_is_no_commit_has_no_hash(tmp_path, name):
    assert asked.full_hash(str(repository(tmp_path / "shop")), name) is None


def test_a_repository_that_git_refuses_for_its_owner_gives_none_and_is_still_read(tmp_path, monkeypatch):
    shop = repository(tmp_path / "shop")
    newest = asked.head(str(shop))
    monkeypatch.setitem(asked._ENVIRONMENT, "GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setitem(asked._ENVIRONMENT, "GIT_CONFIG_GLOBAL", os.devnull)
    assert asked.full_hash(str(shop), "HEAD") is None
    assert asked.head(str(shop)) == newest


def test_programs_that_a_repository_names_are_not_run(tmp_path):
    shop = repository(tmp_path / "shop")
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/was-run\n")
    program.chmod(0o755)
    git(shop, "config", "core.fsmonitor", str(program))
    git(shop, "config", "core.hooksPath", str(tmp_path))
    (tmp_path / "was-run").unlink(missing_ok=True)
    assert asked.git(str(shop), ["status", "--porcelain"]) == ""
    assert not (tmp_path / "was-run").exists()


@pytest.mark.parametrize("guard", ["GIT_NO_LAZY_FETCH", "GIT_ALLOW_PROTOCOL"])
def test_nothing_is_fetched(tmp_path, monkeypatch, guard):
    """Git before 2.39.4 knows only the second of the guards; each suffices."""
    origin = repository(tmp_path / "origin")
    git(origin, "config", "uploadpack.allowFilter", "true")
    git(origin, "config", "uploadpack.allowAnySHA1InWant", "true")
    partial = clone(f"file://{origin}", tmp_path / "partial", "--filter=blob:none", "--no-checkout")
    blob = git(origin, "rev-parse", "HEAD:readme.md")
    assert asked.git(str(partial), ["cat-file", "blob", blob]) is None
    kept = {name: item for name, item in asked._ENVIRONMENT.items() if name != guard}
    monkeypatch.setattr(asked, "_ENVIRONMENT", kept)
    assert asked.git(str(partial), ["cat-file", "blob", blob]) is None
    assert git(partial, "cat-file", "blob", blob) == "hello"
    assert asked.git(str(partial), ["cat-file", "blob", blob]) == "hello"


# The default branch


def test_the_remotes_head_is_the_default_branch(tmp_path, processes):
    origin = repository(tmp_path / "origin")
    git(origin, "branch", "release")
    git(origin, "symbolic-ref", "HEAD", "refs/heads/release")
    mine = clone(origin, tmp_path / "mine")
    git(mine, "checkout", "--quiet", "-b", "main", "origin/main")
    processes.clear()
    assert asked.default_branch(str(mine)) == "release"
    assert processes == []


def test_a_remote_head_that_leads_nowhere_is_passed_by(tmp_path):
    mine = clone(repository(tmp_path / "origin"), tmp_path / "mine")
    git(mine, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/gone")
    assert asked.default_branch(str(mine)) == "main"


@pytest.mark.parametrize(
    ("branches", "default"),
    [
        (["feature", "develop", "trunk", "master", "main"], "main"),
        (["feature", "develop", "trunk", "master"], "master"),
        (["feature", "develop", "trunk"], "trunk"),
        (["feature", "develop"], "develop"),
        (["feat/only"], "feat/only"),
        (["one", "two"], None),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_without_one_it_is_a_usual_name_or_the_only_branch(tmp_path, processes, branches, default, packed):
    shop = repository(tmp_path / "shop")
    git(shop, "branch", "--move", branches[0])
    for name in branches[1:]:
        git(shop, "branch", name)
    if packed:
        git(shop, "pack-refs", "--all")
    processes.clear()
    assert asked.default_branch(str(shop)) == default
    assert len(processes) == (default not in {"main", "master", "trunk", "develop"})


def test_a_usual_name_at_the_remote_counts_where_no_branch_has_one(tmp_path):
    mine = made(tmp_path / "mine")
    git(mine, "remote", "add", "upstream", str(repository(tmp_path / "origin")))
    git(mine, "fetch", "--quiet", "upstream")
    git(mine, "checkout", "--quiet", "-b", "feature", "upstream/main")
    git(mine, "branch", "other")
    assert not (mine / ".git" / "refs" / "remotes" / "upstream" / "HEAD").exists()
    assert asked.default_branch(str(mine)) == "main"
    assert asked.tip(str(mine), "main") == git(mine, "rev-parse", "upstream/main")


def test_a_local_branch_is_newer_than_what_was_fetched(tmp_path):
    mine = clone(repository(tmp_path / "origin"), tmp_path / "mine")
    newest = commit(mine)
    assert asked.tip(str(mine), "main") == newest
    assert asked.tip(str(mine), "nowhere") is None


def test_a_repository_is_named_by_its_default_branch(tmp_path, processes):
    shop = repository(tmp_path / "shop")
    login = worktree(shop, tmp_path / "login", "-b", "feat/login")
    commit(login, "login", a="1")
    main = git(shop, "rev-parse", "main")
    processes.clear()
    assert asked.root_name(str(shop)) == asked.root_name(str(login)) == f"{main}:"
    assert processes == []
    git(shop, "checkout", "--quiet", "-b", "other")
    git(shop, "branch", "--quiet", "-D", "main")
    assert asked.root_name(str(shop)) == f"{main}:", "no branch is the default, so what is checked out"


def test_a_folder_that_git_does_not_know_has_no_name(tmp_path):
    assert asked.root_name(str(tmp_path)) is None
    assert asked.root_name(str(made(tmp_path / "shop"))) is None


def test_before_the_first_commit_no_branch_is_the_default(tmp_path):
    assert asked.default_branch(str(made(tmp_path / "shop"))) is None


def test_git_is_asked_for_what_is_kept_in_another_form(tmp_path, processes):
    mine = clone(repository(tmp_path / "origin"), tmp_path / "mine")
    newest = git(mine, "rev-parse", "HEAD")
    (mine / ".git" / "reftable").mkdir()
    processes.clear()
    assert (asked.head(str(mine)), asked.branch(str(mine))) == (newest, "main")
    assert (asked.default_branch(str(mine)), asked.tip(str(mine), "main")) == ("main", newest)
    assert processes


def test_git_is_asked_for_a_torn_branch(tmp_path, processes):
    shop = repository(tmp_path / "shop")
    newest = git(shop, "rev-parse", "HEAD")
    (shop / ".git" / "refs" / "heads" / "main").write_text("torn")
    processes.clear()
    assert asked.tip(str(shop), "main") is None
    assert len(processes) == 1
    (shop / ".git" / "refs" / "heads" / "main").write_text(newest)
    assert asked.tip(str(shop), "main") == newest


# Settings

CONFIGS = [
    *('[remote "origin"]\n\turl = git@github.com:acme/shop.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n',),
    *('[remote "origin"] url = a\n[REMOTE "origin"]\nURL=b', "[remote.Origin]\nurl = a\n"),
    *('[remote "or\\"ig\\\\in"]\nurl = a\n',),
    *('[a]\nb = "x # y" ; c\nc = x # y\nd = x ; y\ne = x"  y  "z  \nf = "" \ng =\nh\n',),
    *('[a]\nb = one \\\n  two\nc = \\"q\\" \\t|\\\\\nd = "end\\\n of it"\n',),
    *("# c\n; d\n\n[a] # e\n  b = 1 ; f\n", "\ufeff[a]\r\nb = c\r\n"),
    *('[url "https://x:y@host/"]\n\tinsteadOf = gh:\n[include]\n\tpath = elsewhere\n',),
    *('[a "x]y"]\nb = c\n[a "sub # no comment"]\nb = d\n',),
    *('[core]\n\tbare = false\n[branch "상점"]\n\tremote = origin\n',),
]


@pytest.mark.parametrize("text", CONFIGS)
def test_settings_are_read_as_git_reads_them(tmp_path, text):
    (tmp_path / "config").write_text(text, newline="")
    listed = git(tmp_path, "config", "--file", "config", "--list", "-z", "--no-includes")
    expected = [
        (name, content if given else None)
        for name, given, content in (item.partition("\n") for item in listed.rstrip("\0").split("\0"))
    ]
    found = [
        (".".join(part for part in (section, subsection, key) if part), content)
        for section, subsection, key, content in entries(text)
    ]
    assert found == expected


def test_the_first_address_of_a_remote_counts(tmp_path):
    shop = repository(tmp_path / "shop")
    git(shop, "remote", "add", "origin", "first")
    git(shop, "remote", "set-url", "--add", "origin", "second")
    assert settings_of(repository_around(str(shop))).remote == ("origin", "first")

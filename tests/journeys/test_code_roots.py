"""One memory, asked from several folders: only the repository of a unit's paths can say that its code is gone."""

from __future__ import annotations

import pytest
from code_session import commit, contents, git, known, person, repo, seat_at, worktree

import mnemarch
from mnemarch import Citation

__all__ = ["repo"]
LOGIN = "login takes a user and a password"


@pytest.fixture
def memory(tmp_path):
    with mnemarch.open(tmp_path / "memory") as opened:
        yield opened


@pytest.fixture
def unit(memory, repo):
    return known(memory, repo, LOGIN, Citation.symbol("src/auth.py", "login"))


def plain(repo):
    folder = repo.parent / "plain"
    folder.mkdir()
    return folder


def another(repo):
    folder = unborn(repo, "another")
    commit(folder, "another project", src__third_py="X = 1\n")
    return folder


def unborn(repo, name="unborn"):
    folder = repo.parent / name
    folder.mkdir()
    git(folder, "-c", "init.defaultBranch=main", "init", "-q")
    return folder


def settled(memory, seat, unit):
    """The unit's status, once the background has done what it will."""
    memory._engine.janitor.wait()
    return seat.get(unit.id).status


@pytest.mark.parametrize("elsewhere", [plain, another, unborn])
def test_a_recall_from_another_folder_withholds_and_archives_nothing(memory, repo, unit, elsewhere):
    wrong = seat_at(memory, elsewhere(repo), name="coder-2")
    found = wrong.recall("login password")
    assert contents(found) == []
    assert [(held.unit_id, held.reason) for held in found.withheld] == [(unit.id, "stale: src/auth.py is not there")]
    assert settled(memory, wrong, unit) == "verified"
    swept = memory.janitor(wrong)
    assert (swept.archived, swept.checked, swept.skipped) == (0, 0, 1)
    assert contents(seat_at(memory, repo).recall("login password")) == [LOGIN]


def gone(folder):
    git(folder, "rm", "-q", "src/auth.py")
    commit(folder, "no logins")


def test_its_own_folder_still_archives_it(memory, repo, unit):
    gone(repo)
    seat = seat_at(memory, repo)
    assert not seat.recall("login password").items
    assert settled(memory, seat, unit) == "archived"


def test_so_do_a_worktree_and_a_clone_of_it(memory, repo, unit):
    folder = repo.parent / "clone"
    git(repo, "clone", "-q", str(repo), str(folder))
    branch = worktree(folder, "feat", "feat/x")
    gone(folder)
    git(folder, "update-ref", "refs/remotes/origin/main", "main")  # as a push does
    seat = seat_at(memory, branch, worktree="feat")
    assert memory.janitor(seat).archived == 1


def test_paths_are_relative_to_the_root_whatever_the_current_folder_is(memory, repo):
    commit(repo, "api", packages__api__src__pay_py="def refund(order):\n    return order\n")
    api = repo / "packages" / "api"
    for cited in ("packages/api/src/pay.py", "src/pay.py"):
        unit = known(memory, api, f"refund is in {cited}", Citation.symbol(cited, "refund"))
        assert "symbol:packages/api/src/pay.py::refund" in [str(citation) for citation in unit.citations]
    for folder in (repo, api, api / "src", worktree(repo, "feat", "feat/x") / "packages"):
        assert len(seat_at(memory, folder).recall("where is refund").items) == 2
    git(repo, "rm", "-q", "packages/api/src/pay.py")
    commit(repo, "no refunds")
    assert memory.janitor(seat_at(memory, repo / "src")).archived == 2


def test_what_a_text_names_counts_from_the_same_folder(memory, repo):
    unit = known(memory, repo, "src/auth.py:login checks both")
    (seen,) = (citation for citation in unit.citations if citation.kind == "symbol")
    assert seen.get("root") == f"{git(repo, 'rev-parse', 'HEAD')}:"


def test_what_replaced_another_before_roots_were_kept_is_judged_in_its_repository(memory, repo, monkeypatch):
    monkeypatch.setattr("mnemarch.code.citing.root_name", lambda _: None)
    old = known(memory, repo, "login takes a user")
    new = known(memory, repo, LOGIN, Citation.symbol("src/auth.py", "login"))
    person(memory, repo).supersede(new.id, old.id, "more")
    for elsewhere in (plain, another):
        assert memory.janitor(seat_at(memory, elsewhere(repo))).archived == 0
    gone(repo)
    assert memory.janitor(seat_at(memory, repo)).archived == 1


def test_what_was_recorded_in_a_plain_folder_is_judged_in_a_plain_folder(memory, repo):
    folder = plain(repo)
    (folder / "a.py").write_text("def f():\n    return 1\n")
    cited = Citation("symbol", "a.py", (("name", "f"), ("root", "nonsense")))
    unit = known(memory, folder, "f gives one", Citation.symbol("a.py", "f"))
    odd = known(memory, folder, "f gives one and no more than that", cited)
    (folder / "a.py").write_text("")
    assert memory.janitor(seat_at(memory, folder)).archived == 1
    assert [seat_at(memory, folder).get(each.id).status for each in (unit, odd)] == ["archived", "verified"]

"""One folder that switches branches: units whose code is on another branch are withheld here, and never lost."""

from __future__ import annotations

import pytest
from code_session import (
    AUTH,
    WITHOUT_LOGOUT,
    commit,
    contents,
    git,
    known,
    memory,
    person,
    repo,
    seat_at,
    settled,
    worktree,
)

import mnemarch
from mnemarch import Citation

REFUND = "def refund(order):\n    return order.total\n"

__all__ = ["memory", "repo"]


def verified_on_feature(memory, repo, **files):
    """A worktree's verified unit about code that only the branch `feature` has."""
    git(repo, "checkout", "-qb", "feature")
    commit(repo, "refunds", **(files or {"refund_py": REFUND}))
    seat = seat_at(memory, repo)
    path = next(iter(files), "refund_py").replace("__", "/").replace("_py", ".py")
    cited = [Citation.symbol(path, "refund"), Citation.test("t1")]
    unit = seat.remember("refund gives the full amount back", level="worktree", citations=cited).unit
    seat.verify(passed=True, tests=["t1"])
    return unit


def asked(memory, repo):
    """What one recall gives, once the background has done what it will."""
    found = seat_at(memory, repo).recall("refund amount")
    settled(memory)
    return found


# What another branch has


def test_what_only_another_branch_has_is_withheld_here_and_told_there(memory, repo):
    unit = verified_on_feature(memory, repo)
    git(repo, "checkout", "-q", "main")
    here = asked(memory, repo)
    assert contents(here) == []
    assert [(held.unit_id, held.reason) for held in here.withheld] == [(unit.id, "stale: refund.py is not there")]
    assert memory.janitor(seat_at(memory, repo)).archived == 0
    git(repo, "checkout", "-q", "feature")
    assert contents(asked(memory, repo)) == ["refund gives the full amount back"]
    assert seat_at(memory, repo).get(unit.id).status == "verified"


def test_a_name_that_only_another_branch_added_to_a_file_is_not_gone_either(memory, repo):
    unit = verified_on_feature(memory, repo, src__auth_py=AUTH + "\n\n" + REFUND)
    git(repo, "checkout", "-q", "main")
    assert asked(memory, repo).withheld[0].reason == "stale: src/auth.py no longer defines refund"
    assert seat_at(memory, repo).get(unit.id).status == "verified"


def test_a_bisection_takes_nothing_away(memory, repo):
    unit = verified_on_feature(memory, repo)
    git(repo, "checkout", "-q", "--detach", "HEAD~1")
    assert not asked(memory, repo).items
    git(repo, "checkout", "-q", "feature")
    assert [item.unit.id for item in asked(memory, repo).items] == [unit.id]


def test_a_branch_that_deletes_code_takes_nothing_away_from_the_one_it_left(memory, repo):
    seat = seat_at(memory, repo)
    cited = [Citation.symbol("src/auth.py", "logout")]
    unit = seat.remember("logout gives nothing back", level="worktree", citations=cited).unit
    git(repo, "checkout", "-qb", "drop")
    commit(repo, "drop", src__auth_py=WITHOUT_LOGOUT)
    assert not seat.recall("logout").items
    settled(memory)
    git(repo, "checkout", "-q", "main")
    assert [item.unit.id for item in seat.recall("logout").items] == [unit.id]


def test_what_no_branch_has_any_more_is_archived(memory, repo):
    unit = verified_on_feature(memory, repo)
    git(repo, "checkout", "-q", "main")
    git(repo, "branch", "-qD", "feature")
    assert not asked(memory, repo).items
    assert seat_at(memory, repo).get(unit.id).status == "archived"


def test_cited_lines_of_another_branch_are_not_gone(memory, repo):
    git(repo, "checkout", "-qb", "feature")
    commit(repo, "otp", src__auth_py=AUTH.replace("user == password", "user == password and otp()"))
    seat = seat_at(memory, repo)
    cited = [Citation.file("src/auth.py", (1, 3))]
    unit = seat.remember("login asks for a code", level="worktree", citations=cited).unit
    git(repo, "checkout", "-q", "main")
    assert not seat.recall("login code").items
    settled(memory)
    assert seat.get(unit.id).status == "hypothesis"


# What the project knows before the merge


@pytest.fixture
def promoted(memory, repo):
    """A unit that was promoted to the project before its code was merged."""
    unit = verified_on_feature(memory, repo)
    alice = person(memory, repo)
    alice.approve(unit.id)
    assert str(alice.promote(unit.id, "project").unit.level) == "project"
    return unit


def test_what_was_promoted_before_the_merge_waits_for_it(memory, repo, promoted):
    assert memory.janitor(seat_at(memory, repo)).archived == 0
    git(repo, "checkout", "-q", "main")
    assert not asked(memory, repo).items
    git(repo, "checkout", "-q", "feature")
    assert [item.unit.id for item in asked(memory, repo).items] == [promoted.id]


def merged_and_deleted(memory, repo, *merge):
    git(repo, "checkout", "-q", "main")
    commit(repo, "meanwhile", src__third_py="X = 1\n")
    git(repo, "merge", "-q", *merge, "feature")
    if "--squash" in merge:
        git(repo, "commit", "-qm", "refunds")
    assert len(asked(memory, repo).items) == 1
    git(repo, "rm", "-q", "refund.py")
    commit(repo, "no refunds")
    assert not asked(memory, repo).items


def test_what_the_default_branch_had_and_deleted_is_gone_whoever_still_has_it(memory, repo, promoted):
    merged_and_deleted(memory, repo, "-m", "merge")
    assert git(repo, "show", "feature:refund.py")
    assert seat_at(memory, repo).get(promoted.id).status == "archived"


def test_a_branch_that_was_squashed_may_bring_its_code_again_until_it_is_deleted(memory, repo, promoted):
    merged_and_deleted(memory, repo, "--squash")
    assert memory.janitor(seat_at(memory, repo)).archived == 0
    git(repo, "branch", "-qD", "feature")
    assert memory.janitor(seat_at(memory, repo)).archived == 1


def test_code_that_was_deleted_long_ago_and_comes_again_on_a_branch_is_not_gone(memory, repo):
    git(repo, "rm", "-q", "src/auth.py")
    commit(repo, "no logins")
    git(repo, "checkout", "-qb", "again")
    commit(repo, "logins again", src__auth_py=AUTH)
    known(memory, repo, "login takes a user and a password", Citation.symbol("src/auth.py", "login"))
    assert memory.janitor(seat_at(memory, repo)).archived == 0


def test_an_open_branch_does_not_keep_what_main_deleted(memory, repo):
    unit = known(memory, repo, "login takes a user and a password", Citation.symbol("src/auth.py", "login"))
    git(repo, "branch", "open")
    commit(repo, "no login", src__auth_py="def logout(user):\n    return None\n")
    seat = seat_at(memory, repo)
    assert not seat.recall("login password").items
    settled(memory)
    assert seat.get(unit.id).status == "archived", "the project is judged on its default branch"


def test_a_project_is_judged_by_what_its_remote_has_as_far_as_it_is_known(memory, repo):
    folder = repo.parent / "clone"
    git(repo, "clone", "-q", str(repo), str(folder))
    commit(repo, "refunds", src__new_py=REFUND)
    git(folder, "fetch", "-q")
    git(folder, "checkout", "-q", "--detach", "origin/main")
    unit = known(memory, folder, "refund gives the full amount back", Citation.symbol("src/new.py", "refund"))
    git(folder, "checkout", "-q", "main")
    assert memory.janitor(seat_at(memory, folder)).archived == 0, "the local branch is only behind"
    git(folder, "merge", "-q", "origin/main")
    git(folder, "rm", "-q", "src/new.py")
    commit(folder, "no refunds here")
    assert memory.janitor(seat_at(memory, folder)).archived == 0, "nobody else has seen that yet"
    git(folder, "update-ref", "refs/remotes/origin/main", "main")
    assert memory.janitor(seat_at(memory, folder)).archived == 1
    assert person(memory, folder).get(unit.id).status == "archived"
    commit(folder, "again", src__new_py=REFUND)
    git(folder, "update-ref", "refs/remotes/origin/main", "main")
    assert memory.janitor(seat_at(memory, folder)).revived == 1


def test_a_worktree_of_its_own_is_judged_with_the_branches_it_can_go_to(memory, repo):
    folder = worktree(repo, "feat", "feat/x")
    commit(folder, "new", src__new_py=REFUND)
    agent = seat_at(memory, folder, worktree="feat")
    cited = [Citation.symbol("src/new.py", "refund")]
    unit = agent.remember("refund gives the full amount back", level="worktree", citations=cited).unit
    git(folder, "checkout", "-q", "--detach", "main")
    assert memory.janitor(seat_at(memory, repo)).archived == 0
    git(folder, "checkout", "-q", "feat/x")
    commit(folder, "gone", src__new_py="X = 2\n")
    assert memory.janitor(seat_at(memory, repo)).archived == 1
    assert agent.get(unit.id).status == "archived"


def test_a_file_that_moved_is_followed_though_old_branches_have_it_by_its_old_name(memory, repo):
    git(repo, "branch", "old")
    seat = seat_at(memory, repo)
    cited = [Citation.symbol("src/auth.py", "logout")]
    own = seat.remember("logout gives nothing back", level="worktree", citations=cited).unit
    shared = known(memory, repo, "login takes a user", Citation.symbol("src/auth.py", "login"))
    git(repo, "mv", "src/auth.py", "src/session.py")
    commit(repo, "move")
    assert memory.janitor(seat).moved == 2
    for unit in (own, shared):
        assert any(citation.ref == "src/session.py" for citation in seat.get(unit.id).citations)


def test_where_git_gives_no_answer_nothing_of_a_branch_is_gone(memory, repo, monkeypatch):
    unit = verified_on_feature(memory, repo)
    git(repo, "checkout", "-q", "main")
    monkeypatch.setattr("mnemarch.code.history.History.fork", lambda *_: None)
    assert not asked(memory, repo).items
    assert seat_at(memory, repo).get(unit.id).status == "verified"


# What one hypothesis replaced by another


QUESTION = "how many jobs does the queue hold"


@pytest.fixture
def replaced(memory, repo):
    """Two hypotheses; on branch f2 the second took the place of the first."""
    lead = seat_at(memory, repo, kind="orchestrator", name="lead")
    old = lead.remember("Queue holds 30 jobs", level="worktree").unit
    git(repo, "checkout", "-qb", "f2")
    commit(repo, "sixty", src__queue_py="SIZE = 60\n")
    new = lead.remember("Queue holds 60 jobs", level="worktree").unit
    lead.supersede(new.id, old.id, "raised")
    return old, new


@pytest.mark.parametrize("question", [QUESTION, ""])
def test_a_replaced_hypothesis_still_holds_where_its_successor_is_not(memory, repo, replaced, question):
    old, new = replaced
    seat = seat_at(memory, repo)
    assert contents(seat.recall(question)) == ["Queue holds 60 jobs"]
    git(repo, "checkout", "-q", "main")
    found = seat.recall(question)
    assert contents(found) == ["Queue holds 30 jobs"]
    (item,) = found.items
    assert item.label == "[HYPOTHESIS]"
    assert item.notes == (f"Replaced by {new.id}, which does not hold in this tree.",)
    assert [held.unit_id for held in found.withheld] == [new.id]
    git(repo, "merge", "-q", "f2")
    after = seat.recall(question)
    assert contents(after) == ["Queue holds 60 jobs"]
    assert old.id not in [item.unit.id for item in after.items]


def test_a_replaced_hypothesis_keeps_its_label_and_comes_after_trusted_units(memory, repo, replaced):
    git(repo, "checkout", "-q", "main")
    known(memory, repo, "Jobs leave the queue in order")
    found = seat_at(memory, repo).recall(QUESTION)
    assert contents(found) == ["Jobs leave the queue in order", "Queue holds 30 jobs"]
    assert "[HYPOTHESIS]" in seat_at(memory, repo).context(QUESTION).text


def test_a_replaced_hypothesis_is_found_among_many_that_are_past(memory, repo, replaced):
    lead = seat_at(memory, repo, kind="orchestrator", name="lead")
    system = memory.seat(mnemarch.Actor.human("s"), lead.scope, root=repo)
    for number in range(12):
        noise = lead.remember(f"Queue holds jobs of queue {number}, jobs and jobs", level="worktree").unit
        system.archive(noise.id, "noise")
    git(repo, "checkout", "-q", "main")
    found = seat_at(memory, repo).recall(QUESTION)
    assert contents(found) == ["Queue holds 30 jobs"]
    assert len(found.withheld) <= 8


def test_a_filter_of_kinds_holds_for_replaced_hypotheses_too(memory, repo, replaced):
    git(repo, "checkout", "-q", "main")
    for question in (QUESTION, ""):
        assert contents(seat_at(memory, repo).recall(question, kinds=["skill"])) == []
        assert contents(seat_at(memory, repo).recall(question, kinds=["fact"])) == ["Queue holds 30 jobs"]

"""Each reader gets what holds in its own tree, by the content of the tree and not by its commits (R8)."""

from __future__ import annotations

import pytest
from code_session import AUTH, commit, contents, git, known, memory, person, repo, seat_at, settled, worktree

from mnemarch import Citation
from mnemarch.code.citing import retaken
from mnemarch.units.life import retake

OLD, NEW = "login takes a user and a password", "login takes a user, a password and a code"
WITH_CODE = AUTH.replace("user, password", "user, password, otp")
LOGIN = Citation.symbol("src/auth.py", "login")

__all__ = ["memory", "repo"]


def replaced_on_feature(memory, repo, *citations):
    """A worktree on branch `feature`, where a new fact took the place of the one that main knows."""
    old = known(memory, repo, OLD, *citations)
    feature = worktree(repo, "feature", "feature")
    commit(feature, "ask for a code", src__auth_py=WITH_CODE)
    new = known(memory, feature, NEW, *citations, worktree="feature")
    person(memory, feature, worktree="feature").supersede(new.id, old.id, "two factors")
    return feature


def told(memory, folder):
    worktree = "main" if folder.name == "shop" else folder.name
    found = seat_at(memory, folder, worktree=worktree).recall("what does login take")
    settled(memory)
    return contents(found)


def amended(repo, feature):
    git(feature, "commit", "-q", "--amend", "-m", "ask for a code, said better")


def rebased(repo, feature):
    commit(repo, "meanwhile", src__third_py="X = 1\n")
    git(feature, "rebase", "-q", "main")


def squashed(repo, feature):
    commit(feature, "more of it", src__more_py="Y = 1\n")
    commit(repo, "meanwhile", src__third_py="X = 1\n")
    git(repo, "merge", "-q", "--squash", "feature")
    git(repo, "commit", "-qm", "two factors")


def picked(repo, feature):
    commit(repo, "meanwhile", src__third_py="X = 1\n")
    git(repo, "cherry-pick", "feature")


def merged(repo, feature):
    git(repo, "merge", "-q", "--no-ff", "-m", "merge", "feature")


def rebased_and_merged(repo, feature):
    rebased(repo, feature)
    git(repo, "merge", "-q", "feature")


@pytest.mark.parametrize("citations", [[LOGIN], []], ids=["by code", "by commit"])
@pytest.mark.parametrize(
    ("rewrite", "on_main"),
    [(amended, OLD), (rebased, OLD), (squashed, NEW), (picked, NEW), (merged, NEW), (rebased_and_merged, NEW)],
)
def test_only_what_changes_the_code_changes_what_is_told(memory, repo, citations, rewrite, on_main):
    feature = replaced_on_feature(memory, repo, *citations)
    assert (told(memory, repo), told(memory, feature)) == ([OLD], [NEW])
    rewrite(repo, feature)
    assert (told(memory, repo), told(memory, feature)) == ([on_main], [NEW])
    # Without the branch nothing is left of the commit but what main has of it.
    git(repo, "worktree", "remove", "--force", str(feature))
    git(repo, "branch", "-qD", "feature")
    assert told(memory, repo) == [on_main]


@pytest.mark.parametrize("citations", [[LOGIN], []], ids=["by code", "by commit"])
def test_a_branch_that_was_thrown_away_takes_nothing_from_main(memory, repo, citations):
    feature = replaced_on_feature(memory, repo, *citations)
    git(repo, "worktree", "remove", "--force", str(feature))
    git(repo, "branch", "-qD", "feature")
    assert told(memory, repo) == [OLD]
    assert memory.janitor(seat_at(memory, repo)).archived == 0
    assert told(memory, repo) == [OLD]


def test_two_worktrees_with_two_versions_of_a_function_get_the_fact_of_their_own(memory, repo):
    feature = worktree(repo, "feature", "feature")
    commit(feature, "ask for a code", src__auth_py=WITH_CODE)
    known(memory, repo, OLD, LOGIN)
    known(memory, feature, NEW, LOGIN, worktree="feature")
    third = worktree(feature, "third", "third")
    assert [told(memory, folder) for folder in (repo, feature, third)] == [[OLD], [NEW], [NEW]]
    (third / "src/auth.py").write_text(AUTH)
    assert told(memory, third) == [OLD], "what is edited and not committed counts"
    git(feature, "checkout", "-q", "--detach", "main")
    assert told(memory, feature) == [OLD]


def test_each_tree_gets_the_one_of_three_versions_that_holds_there(memory, repo):
    feature = replaced_on_feature(memory, repo, LOGIN)
    newest = worktree(feature, "newest", "newest")
    commit(newest, "no password", src__auth_py=AUTH.replace("user, password", "user, key"))
    third = known(memory, newest, "login takes a user and a key", LOGIN, worktree="newest")
    lead = person(memory, newest, worktree="newest")
    second = next(unit for unit in lead.units(level="project") if unit.content == NEW)
    lead.supersede(third.id, second.id, "keys")
    assert [told(memory, folder) for folder in (repo, feature, newest)] == [
        [OLD],
        [NEW],
        ["login takes a user and a key"],
    ]
    git(repo, "merge", "-q", "--squash", "newest")
    git(repo, "commit", "-qm", "keys")
    assert told(memory, repo) == ["login takes a user and a key"]


def test_what_cites_only_a_commit_holds_where_its_lines_are(memory, repo):
    feature = worktree(repo, "feature", "feature")
    fix = commit(feature, "fix", src__other_py="VALUE = 2\n")
    known(memory, feature, "The value of login was fixed", Citation.commit(fix), worktree="feature")
    assert (told(memory, repo), told(memory, feature)) == ([], ["The value of login was fixed"])
    picked(repo, feature)
    assert told(memory, repo) == ["The value of login was fixed"]


def test_what_rests_on_a_test_that_is_not_here_comes_last_and_says_so(memory, repo):
    feature = worktree(repo, "feature", "feature")
    commit(feature, "test", tests__test_login_py="def test_takes_two():\n    assert True\n")
    agent = seat_at(memory, feature, worktree="feature")
    name = "tests/test_login.py::test_takes_two"
    agent.remember("what login takes is a pair", citations=[Citation.test(name)])
    report = repo.parent / "run.tap"
    report.write_text(f"TAP version 13\n1..1\nok 1 - {name}\n")
    (unit,) = person(memory, feature, worktree="feature").verify(report=str(report)).units
    assert str(unit.level) == "project"
    known(memory, repo, "login is asked by the shop")

    def answer(folder):
        worktree = "main" if folder.name == "shop" else folder.name
        found = seat_at(memory, folder, worktree=worktree).recall("what does login take")
        return [(item.unit.content, item.elsewhere) for item in found.items if item.unit.kind != "episode"]

    pair, shop = "what login takes is a pair", "login is asked by the shop"
    assert answer(feature) == [(pair, False), (shop, False)]
    assert answer(repo) == [(shop, False), (pair, True)]
    git(repo, "merge", "-q", "feature")
    assert answer(repo) == [(pair, False), (shop, False)]
    (repo / "tests/test_login.py").write_text("def test_takes_one():\n    assert True\n")
    assert answer(repo)[-1] == (pair, True)
    person(memory, repo).approve(unit.id)
    assert (pair, False) in answer(repo), "a person's word holds everywhere"


# A refactoring does not erase what stays true


def retaken_in(memory, folder, unit, **where):
    """What the gate does when a test that the unit cites passes."""
    seat = person(memory, folder, **where)
    codebase = memory._engine.codebase(str(folder))
    test = "tests/test_login.py::test_login"
    changed = retaken(seat.get(unit.id).citations, codebase)
    memory._engine.log.act(seat.caller, lambda act: retake(act, act.known_unit(unit.id), changed, [test]))
    return seat


def test_a_changed_signature_is_retaken_by_a_test_that_passes_and_holds_on_both_branches(memory, repo):
    unit = known(memory, repo, "login lets nobody in without a password", LOGIN)
    feature = worktree(repo, "feature", "feature")
    commit(feature, "ask for a code", src__auth_py=WITH_CODE)
    assert (told(memory, repo), told(memory, feature)) == ([unit.content], [])
    seat = retaken_in(memory, feature, unit, worktree="feature")
    assert (told(memory, repo), told(memory, feature)) == ([unit.content], [unit.content])
    event = seat.history(unit.id)[-1]
    assert (event.type, event.payload["because"]) == ("unit.cited", ["tests/test_login.py::test_login"])
    version = seat.get(unit.id).version
    retaken_in(memory, feature, unit, worktree="feature")
    assert seat.get(unit.id).version == version, "nothing changed since"
    commit(feature, "no more", src__auth_py=AUTH.replace("user, password", "user"))
    assert told(memory, feature) == []


def test_a_changed_value_lines_that_changed_and_code_that_is_gone_are_not_retaken(memory, repo):
    cited = [Citation.symbol("src/other.py", "VALUE"), Citation.file("src/auth.py", (1, 3)), LOGIN]
    units = [known(memory, repo, f"login takes this, {number}", each) for number, each in enumerate(cited)]
    commit(repo, "all new", src__auth_py="def enter():\n    return 1\n", src__other_py="VALUE = 2\n")
    for unit in units:
        assert retaken_in(memory, repo, unit).get(unit.id).citations == unit.citations
    assert told(memory, repo) == []


@pytest.mark.parametrize(
    ("cited", "is_apart"),
    [
        (Citation.symbol("src/other.py", "VALUE"), True),
        (Citation.file("src/other.py", (1, 1)), True),
        (Citation.file("src/other.py"), False),
    ],
)
def test_values_that_each_branch_has_in_its_cited_code_do_not_dispute(memory, repo, cited, is_apart):
    one = known(memory, repo, "Checkout retries once", cited).content
    feature = worktree(repo, "feature", "feature")
    commit(feature, "five", src__other_py="VALUE = 5\n")
    five = known(memory, feature, "Checkout retries 5 times", cited, worktree="feature").content
    assert len(person(memory, repo).conflicts()) == (not is_apart)
    for folder, where, text in ((repo, "main", one), (feature, "feature", five)):
        found = seat_at(memory, folder, worktree=where).recall("how often does checkout retry?").items
        assert (text in [item.unit.content for item in found], len(found) == 1) == (True, is_apart)
        assert {"CONTESTED" in item.label for item in found} == {not is_apart}


@pytest.mark.parametrize("how", ["remembered again", "cited", "retaken"])
def test_values_that_come_to_rest_on_one_content_of_the_code_dispute(memory, repo, how):
    old = known(memory, repo, "Checkout retries once", LOGIN)
    commit(repo, "ask for a code", src__auth_py=WITH_CODE)
    new = known(memory, repo, "Checkout retries 5 times", LOGIN)
    seat = person(memory, repo)
    assert seat.conflicts() == []
    if how == "remembered again":
        stored = seat.remember(old.content, level="project", citations=[LOGIN])
        assert [set(dispute.units) for dispute in stored.conflicts] == [{old.id, new.id}]
    elif how == "cited":
        seat.cite(old.id, LOGIN)
    else:
        retaken_in(memory, repo, old)
    assert [set(dispute.units) for dispute in seat.conflicts()] == [{old.id, new.id}]

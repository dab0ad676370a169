"""Memory that knows the code: a real repository, real worktrees, real merges and a rebase."""

from __future__ import annotations

import pytest
from code_session import AUTH, commit, contents, git, known, memory, person, raised_on_a_branch, repo, seat_at, worktree

import mnemarch
from fixtures.cases import cases
from mnemarch import Actor, Citation, InvalidInput, Scope
from mnemarch.units.gate import BACK

__all__ = ["memory", "repo"]


# Staleness


def test_a_memory_of_a_function_that_was_renamed_on_a_branch_is_kept_from_its_readers_only(memory, repo):
    unit = known(memory, repo, "login checks the password", Citation.symbol("src/auth.py", "login"))
    branch = worktree(repo, "feat", "feat/rename")
    commit(branch, "rename", src__auth_py=AUTH.replace("def login", "def sign_in"))
    there = seat_at(memory, branch, worktree="feat").recall("password login")
    assert contents(there) == []
    (withheld,) = there.withheld
    assert withheld.unit_id == unit.id
    assert withheld.reason == "stale: src/auth.py no longer defines login"
    here = seat_at(memory, repo)
    memory._engine.janitor.wait()
    assert memory.janitor(seat_at(memory, branch, worktree="feat")).archived == 0
    assert contents(here.recall("password login")) == ["login checks the password"]
    assert here.get(unit.id).status == "verified", "a branch archives nothing that the project still needs"
    git(repo, "merge", "-q", "feat/rename")
    assert contents(here.recall("password login")) == []


def test_a_project_is_judged_on_its_default_branch_also_where_nobody_has_it_checked_out(memory, repo):
    unit = known(memory, repo, "login checks the password", Citation.symbol("src/auth.py", "login"))
    git(repo, "checkout", "-q", "-b", "feat/rename")
    commit(repo, "rename", src__auth_py=AUTH.replace("def login", "def sign_in"))
    seat = seat_at(memory, repo)
    assert not seat.recall("password login").items
    memory._engine.janitor.wait()
    assert memory.janitor(seat).archived == 0
    assert seat.get(unit.id).status == "verified"
    git(repo, "checkout", "-q", "main")
    assert len(seat.recall("password login").items) == 1


def test_another_signature_is_another_function_and_another_body_is_not(memory, repo):
    known(memory, repo, "login takes a user and a password", Citation.symbol("src/auth.py", "login"))
    seat = seat_at(memory, repo)
    commit(repo, "body", src__auth_py=AUTH.replace("user == password", "bool(user) and user == password"))
    assert len(seat.recall("login password").items) == 1
    commit(repo, "signature", src__auth_py=AUTH.replace("user, password", "user, password, otp"))
    found = seat.recall("login password")
    assert not found.items
    assert "is now" in found.withheld[0].reason


@pytest.mark.parametrize("now", ["VALUE = 5\n", "VALUE = int(given)\n"])
def test_another_value_is_another_constant(memory, repo, now):
    unit = known(memory, repo, "There is one", Citation.symbol("src/other.py", "VALUE"))
    seat = seat_at(memory, repo)
    commit(repo, "comment", src__other_py="# A comment.\nVALUE = 1  # one\n")
    assert len(seat.recall("there is one").items) == 1
    commit(repo, "value", src__other_py=now)
    found = seat.recall("there is one")
    assert not found.items
    told = now.partition(" = ")[2].strip() if now[8].isdigit() else "…"
    assert found.withheld[0].reason == f"stale: src/other.py: VALUE = 1 is now {told}"
    memory._engine.janitor.wait()
    assert seat.get(unit.id).status == "verified", "what is there and changed is not gone"


@pytest.mark.parametrize(("text", "holds"), [("VALUE in src/other.py is 1", False), ("`VALUE` of src/other.py", True)])
def test_a_text_that_names_a_constant_rests_on_its_value_if_it_says_it(memory, repo, text, holds):
    seat = seat_at(memory, repo)
    text = text.replace("VALUE in", "`VALUE` in")
    unit = seat.remember(f"{text} here").unit
    assert [str(item) for item in unit.citations] == ["symbol:src/other.py::VALUE"]
    commit(repo, "value", src__other_py="VALUE = 5\n")
    assert bool(seat.recall("value here").items) is holds


def test_a_constants_secret_is_not_kept(memory, repo):
    secret = "hunter2-hunter2-hunter2"
    commit(repo, "secret", src__other_py=f"PASSWORD = '{secret}'\n")
    unit = known(memory, repo, "A password is in the source", Citation.symbol("src/other.py", "PASSWORD"))
    assert all(secret not in str(item.detail) for item in unit.citations)
    commit(repo, "another", src__other_py="PASSWORD = 'correct-horse-battery'\n")
    assert len(seat_at(memory, repo).recall("password source").items) == 1


def test_a_changed_default_is_noticed_and_a_secret_one_is_not_kept(memory, repo):
    commit(repo, "defaults", src__other_py="def ask(tries=3, password='hunter2-hunter2-hunter2'):\n    ...\n")
    unit = known(memory, repo, "ask tries three times", Citation.symbol("src/other.py", "ask"))
    (symbol,) = (item for item in unit.citations if item.kind == "symbol")
    assert symbol.get("signature") == "ask(tries = 3, password = …)"
    commit(repo, "password", src__other_py="def ask(tries=3, password=None):\n    ...\n")
    assert len(seat_at(memory, repo).recall("ask tries").items) == 1
    commit(repo, "tries", src__other_py="def ask(tries=5, password=None):\n    ...\n")
    assert "is now ask(tries = 5, password = None)" in seat_at(memory, repo).recall("ask tries").withheld[0].reason


def test_what_was_cited_before_values_were_kept_still_holds(memory, repo, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("mnemarch.code.citing._storable_value", lambda _: "")
        known(memory, repo, "There is one", Citation.symbol("src/other.py", "VALUE"))
    commit(repo, "value", src__other_py="VALUE = 5\n")
    assert len(seat_at(memory, repo).recall("there is one").items) == 1


def test_cited_lines_may_move_but_not_change(memory, repo):
    known(memory, repo, "login compares plainly", Citation.file("src/auth.py", (1, 3)))
    seat = seat_at(memory, repo)
    commit(repo, "moved", src__auth_py="# a comment\n\n" + AUTH)
    (item,) = seat.recall("login compares").items
    assert item.notes == ("src/auth.py: lines 1-3 are now 3-5.",)
    commit(repo, "changed", src__auth_py=AUTH.replace("user == password", "verify(user, password)"))
    assert not seat.recall("login compares").items


def test_a_renamed_file_is_followed_and_the_item_says_so(memory, repo, monkeypatch):
    unit = known(memory, repo, "login lives in auth", Citation.symbol("src/auth.py", "login"))
    git(repo, "mv", "src/auth.py", "src/session.py")
    git(repo, "commit", "-qm", "move")
    seat = seat_at(memory, repo)
    with monkeypatch.context() as patched:
        patched.setattr(memory._engine, "sweep_in_background", lambda *_: None)  # Once it ran, there is nothing to say.
        (item,) = seat.recall("where does login live").items
        assert item.notes == ("src/auth.py is now src/session.py.",)
        assert "src/auth.py is now src/session.py." in seat.context("where does login live").text
    swept = memory.janitor(seat)
    assert (swept.archived, swept.revived) == (0, 0)
    cited = [str(citation) for citation in seat.get(unit.id).citations]
    assert "symbol:src/session.py::login" in cited
    assert seat.recall("where does login live").items[0].notes == ()
    commit(repo, "gone", src__session_py="def logout(user):\n    return None\n")
    assert not seat.recall("where does login live").items


def test_a_branch_that_has_not_seen_a_file_move_still_finds_it(memory, repo):
    known(memory, repo, "login lives in auth", Citation.symbol("src/auth.py", "login"))
    branch = worktree(repo, "old", "feat/old")
    git(repo, "mv", "src/auth.py", "src/session.py")
    git(repo, "commit", "-qm", "move")
    assert memory.janitor(seat_at(memory, repo)).moved == 1
    assert len(seat_at(memory, repo).recall("where does login live").items) == 1
    assert len(seat_at(memory, branch, worktree="old").recall("where does login live").items) == 1


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_function_that_moved_to_another_file_is_followed(memory, repo, is_committed):
    unit = known(
        memory,
        repo,
        "logout gives nothing back",
        *(Citation.symbol("src/auth.py", f"log{way}") for way in ("out", "in")),
    )
    branch = worktree(repo, "old", "feat/old")
    rest, logout = AUTH.partition("\n\n\ndef logout")[::2]
    (repo / "src/auth.py").write_text(rest)
    (repo / "src/other.py").write_text(f"VALUE = 1\n\n\ndef logout{logout}")
    if is_committed:
        commit(repo, "moved")
    seat = seat_at(memory, repo)
    assert contents(seat.recall("logout")) == ["logout gives nothing back"]
    memory._engine.janitor.wait()
    commit(repo, "moved, if it was not yet")
    swept = memory.janitor(seat)
    assert swept.archived == 0
    cited = [str(citation) for citation in seat.get(unit.id).citations]
    assert {"symbol:src/other.py::logout", "symbol:src/auth.py::login"} < set(cited)
    assert contents(seat_at(memory, branch, worktree="old").recall("logout")) == ["logout gives nothing back"]


def test_a_namesake_elsewhere_is_no_function_that_moved(memory, repo):
    known(memory, repo, "logout gives nothing back", Citation.symbol("src/auth.py", "logout"))
    commit(repo, "a namesake", src__other_py="def logout(user):\n    raise SystemExit\n")
    commit(repo, "gone", src__auth_py=AUTH.partition("\n\n\ndef logout")[0], src__third_py="# logout is gone\n")
    assert not seat_at(memory, repo).recall("logout").items


def test_what_is_gone_is_archived_in_the_background_and_revived_by_the_janitor(memory, repo):
    unit = known(memory, repo, "logout gives nothing back", Citation.symbol("src/auth.py", "logout"))
    seat = seat_at(memory, repo)
    commit(repo, "gone", src__auth_py=AUTH.partition("\n\n\ndef logout")[0])
    assert not seat.recall("logout").items
    memory._engine.janitor.wait()
    archived = seat.get(unit.id)
    assert archived.status == "archived"
    assert archived.archive_reason == "stale: src/auth.py no longer defines logout"
    assert seat.history(unit.id)[-1].actor == Actor.system("janitor")
    commit(repo, "back", src__auth_py=AUTH)
    swept = memory.janitor(seat)
    assert (swept.checked, swept.archived, swept.revived) == (1, 0, 1)
    assert contents(seat.recall("logout")) == ["logout gives nothing back"]
    assert seat.get(unit.id).status == "verified"


def test_a_recall_after_the_code_came_back_says_so_and_has_the_unit_revived(memory, repo):
    unit = known(memory, repo, "logout gives nothing back", Citation.symbol("src/auth.py", "logout"))
    seat = seat_at(memory, repo)
    commit(repo, "gone", src__auth_py=AUTH.partition("\n\n\ndef logout")[0])
    assert memory.janitor(seat).archived == 1
    (gone,) = seat.recall("logout").withheld
    assert gone.reason == "archived: stale: src/auth.py no longer defines logout"
    commit(repo, "back", src__auth_py=AUTH)
    (back,) = seat.recall("logout").withheld
    assert (back.unit_id, back.reason) == (unit.id, BACK)
    memory._engine.janitor.wait()
    assert contents(seat.recall("logout")) == ["logout gives nothing back"]


def test_what_is_only_edited_and_not_committed_is_withheld_but_not_archived(memory, repo):
    unit = known(memory, repo, "logout gives nothing back", Citation.symbol("src/auth.py", "logout"))
    seat = seat_at(memory, repo)
    (repo / "src" / "auth.py").write_text(AUTH.partition("\n\n\ndef logout")[0])
    assert not seat.recall("logout").items
    memory._engine.janitor.wait()
    assert seat.get(unit.id).status == "verified"
    (repo / "src" / "auth.py").write_text(AUTH)
    assert len(seat.recall("logout").items) == 1


def test_a_worktrees_unit_is_judged_in_that_worktree(memory, repo):
    branch = worktree(repo, "feat", "feat/x")
    commit(branch, "new", src__new_py="def fresh():\n    return 1\n")
    agent = seat_at(memory, branch, worktree="feat")
    unit = agent.remember("fresh gives one", level="worktree", citations=[Citation.symbol("src/new.py", "fresh")]).unit
    assert memory.janitor(seat_at(memory, repo)).archived == 0
    assert agent.get(unit.id).status == "hypothesis"
    commit(branch, "gone", src__new_py="VALUE = 2\n")
    swept = memory.janitor(seat_at(memory, repo))
    assert (swept.checked, swept.archived) == (1, 1)
    git(repo, "worktree", "remove", "--force", str(branch))
    again = memory.janitor(seat_at(memory, repo))
    assert (again.checked, again.skipped) == (0, 1)


def test_an_orgs_unit_is_not_judged_by_the_code_of_another_project(memory, repo, tmp_path):
    unit = known(memory, repo, "login checks the password", Citation.symbol("src/auth.py", "login"))
    report = tmp_path / "run.tap"
    report.write_text("TAP version 13\n1..1\nok 1 - test_login\n")
    for number in range(3):
        seat_at(memory, repo, task=f"U-{number}").use(unit.id)
        person(memory, repo, task=f"U-{number}").verify(report=str(report))
    person(memory, repo).promote(unit.id, "org")
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    seat = memory.seat(Actor.agent("b"), Scope(project="stranger", task="T"), root=stranger)
    assert contents(seat.recall("login password")) == ["login checks the password"]
    assert memory.janitor(seat).archived == 0


# What a text names


def seen(memory, repo, text, *citations):
    unit = seat_at(memory, repo).remember(text, citations=list(citations)).unit
    return [str(citation) for citation in unit.citations]


@pytest.mark.parametrize(("text", "cited"), cases("code_memory", "what a text names in the tree is cited"))
def test_what_a_text_names_in_the_tree_is_cited(memory, repo, text, cited):
    assert seen(memory, repo, text) == cited


def test_what_a_cited_tool_event_touched_is_cited(memory, repo):
    seat = seat_at(memory, repo)
    receipt = seat.log("tool", "edited", data={"tool": "Edit", "input": {"file_path": str(repo / "src" / "auth.py")}})
    cited = seen(memory, repo, "the comparison is by value", Citation.log(receipt.event_id))
    assert cited == [f"log:{receipt.event_id}", "file:src/auth.py"]


def test_what_is_cited_by_hand_is_not_cited_twice(memory, repo):
    by_hand = Citation.symbol("src/auth.py", "login")
    assert seen(memory, repo, "`login` in src/auth.py is slow", by_hand) == ["symbol:src/auth.py::login"]
    assert seen(memory, repo, "src/auth.py is short", by_hand) == ["symbol:src/auth.py::login"]


def test_a_text_that_names_code_goes_stale_with_it_and_is_still_known_as_an_echo(memory, repo):
    seat = seat_at(memory, repo)
    unit = seat.remember("`logout` in src/auth.py gives nothing back").unit
    assert unit.status == "hypothesis", "what a text names supports it and verifies nothing"
    assert len(seat.recall("logout").items) == 1
    again = seat.remember("`logout` in src/auth.py gives nothing back")
    assert again.merged
    assert len(again.unit.provenance) == 1
    assert again.unit.mentions == 2
    commit(repo, "gone", src__auth_py=AUTH.partition("\n\n\ndef logout")[0])
    assert not seat.recall("logout").items


def test_code_that_is_cited_again_is_cited_as_it_is_now(memory, repo):
    unit = known(memory, repo, "login takes a user", Citation.symbol("src/auth.py", "login"))
    commit(repo, "signature", src__auth_py=AUTH.replace("user, password", "user, password, otp"))
    seat = seat_at(memory, repo)
    assert not seat.recall("login takes").items
    seat.cite(unit.id, Citation.symbol("src/auth.py", "login"))
    assert len(seat.recall("login takes").items) == 1
    assert [str(item) for item in seat.get(unit.id).citations] == ["human:alice", "symbol:src/auth.py::login"]


# Branches


def test_two_branches_see_two_truths_until_they_are_merged(memory, repo):
    old, new, branch = raised_on_a_branch(memory, repo)
    here, there = seat_at(memory, repo), seat_at(memory, branch, worktree="feat")
    found = here.recall("checkout retries")
    assert contents(found) == ["Checkout retries three times"]
    assert found.items[0].unit.status == "verified"
    elsewhere = f"Replaced by {new.id}, which does not hold in this tree."
    assert found.items[0].notes == here.explain(old.id).here == (elsewhere,)
    assert here.explain(new.id).here[0].startswith("not valid here")
    assert there.explain(new.id).here == ()
    assert [held.unit_id for held in found.withheld] == [new.id]
    assert found.withheld[0].reason.startswith("not valid here: holds from commit")
    assert contents(there.recall("checkout retries")) == ["Checkout retries five times"]
    git(repo, "merge", "-q", "--no-ff", "-m", "merge", "feat/retries")
    for seat in (here, there):
        after = seat.recall("checkout retries")
        assert contents(after) == ["Checkout retries five times"]
        assert [held.reason for held in after.withheld] == [f"superseded by {new.id}"]


def test_after_a_rebase_time_decides_and_the_item_says_so(memory, repo):
    _, _, branch = raised_on_a_branch(memory, repo)
    commit(repo, "meanwhile", src__third_py="X = 1\n")
    git(branch, "rebase", "-q", "main")
    git(repo, "merge", "-q", "feat/retries")
    git(repo, "reflog", "expire", "--expire=now", "--all")
    git(branch, "reflog", "expire", "--expire=now", "--all")
    git(repo, "gc", "-q", "--prune=now")
    (item,) = seat_at(memory, repo).recall("checkout retries").items
    assert item.unit.content == "Checkout retries five times"
    assert "its date decides" in item.notes[0]


def test_looking_back_at_a_commit(memory, repo):
    first = git(repo, "rev-parse", "HEAD")
    old = known(memory, repo, "Checkout retries three times")
    commit(repo, "five", src__other_py="VALUE = 5\n")
    new = known(memory, repo, "Checkout retries five times", Citation.symbol("src/other.py", "VALUE"))
    person(memory, repo).supersede(new.id, old.id, "raised")
    seat = seat_at(memory, repo)
    assert contents(seat.recall("checkout retries")) == ["Checkout retries five times"]
    assert contents(seat.recall("checkout retries", at_commit=first[:10])) == ["Checkout retries three times"]
    assert contents(seat.recall("checkout retries", at_commit="HEAD~1")) == ["Checkout retries three times"]
    with pytest.raises(InvalidInput, match="No commit"):
        seat.recall("checkout retries", at_commit="0" * 40)


def test_the_gate_looks_at_the_code_of_the_commit(memory, repo):
    first = git(repo, "rev-parse", "HEAD")
    known(memory, repo, "logout gives nothing back", Citation.symbol("src/auth.py", "logout"))
    commit(repo, "gone", src__auth_py=AUTH.partition("\n\n\ndef logout")[0])
    seat = seat_at(memory, repo)
    assert len(seat.recall("logout", at_commit=first).items) == 1
    assert not seat.recall("logout", at_commit="HEAD").items
    assert seat.recall("logout", at_commit=first).withheld == ()


# Adoption


# What can't be told


@pytest.mark.parametrize("what", ["binary", "huge", "latin1", "outside", "folder"])
def test_what_cannot_be_told_passes_and_is_said(memory, repo, tmp_path, what):
    known(memory, repo, "login checks the password", Citation.symbol("src/auth.py", "login"))
    path = repo / "src" / "auth.py"
    path.unlink()
    if what == "binary":
        path.write_bytes(b"\0\1\2")
    elif what == "huge":
        path.write_text("# x\n" * 3_000_000)
    elif what == "latin1":
        path.write_bytes("s = 'é'".encode("latin1"))
    elif what == "outside":
        (tmp_path / "secret.py").write_text(AUTH)
        path.symlink_to(tmp_path / "secret.py")
    else:
        path.mkdir()
    found = seat_at(memory, repo).recall("login password")
    if what == "folder":
        assert not found.items
    else:
        (item,) = found.items
        assert len(item.notes) == 1
        assert "src/auth.py" in item.notes[0]


def test_a_plain_folder_works_too(tmp_path):
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "a.py").write_text("def f():\n    pass\n")
    with mnemarch.open(folder) as memory:
        seat = memory.seat(Actor.agent("a"), Scope(project="plain", task="T"), root=folder)
        unit = seat.remember("f does nothing", citations=[Citation.symbol("a.py", "f")]).unit
        assert len(seat.recall("what does f do").items) == 1
        (folder / "a.py").write_text("def g():\n    pass\n")
        assert not seat.recall("what does f do").items
        memory._engine.janitor.wait()
        assert seat.get(unit.id).status == "archived"


def test_a_seat_without_a_tree_is_told_what_to_do(memory):
    with mnemarch.open(":memory:") as bare:
        seat = bare.seat(Actor.agent("a"), Scope(project="p", task="T"))
        with pytest.raises(InvalidInput, match="no working tree"):
            bare.janitor(seat)
        with pytest.raises(InvalidInput, match="no working tree"):
            seat.recall("x", at_commit="HEAD")


TEST = "tests/test_shop.py::test_retry"


@pytest.mark.parametrize("verb", ["revive", "undo"])
@pytest.mark.parametrize("is_changed", [False, True])
def test_an_old_pass_of_a_test_that_changed_since_raises_nothing_that_comes_back(
    memory, repo, tmp_path, verb, is_changed
):
    commit(repo, "a test", tests__test_shop_py="def test_retry():\n    assert retries == 3\n")
    agent, lead = seat_at(memory, repo), person(memory, repo, task="T-2")
    unit = agent.remember("Checkout retries three times", citations=[Citation.test(TEST)]).unit
    if verb == "revive":
        lead.archive(unit.id, "not now")
    else:
        person(memory, repo, name="bad").reject(unit.id, "no")
    report = tmp_path / "run.tap"
    report.write_text(f"TAP version 13\n1..1\nok 1 - {TEST}\n")
    person(memory, repo, name="ci", task="T-3").verify(report=str(report))
    if is_changed:
        (repo / "tests/test_shop.py").write_text("def test_retry():\n    assert retries == 5\n")
    if verb == "revive":
        lead.revive(unit.id, "it matters again")
    else:
        lead.undo("human:bad", reason="it was wrong")
    assert lead.get(unit.id).status == ("hypothesis" if is_changed else "verified")

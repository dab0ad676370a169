"""What an episode says about the errors of its task: what changed before each was gone, and what does not count."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.repositories import paths, repository
from mnemarch import Actor, Scope
from mnemarch.model.testrun import Outcome, TestResult, TestRun

ALPHA, BETA, GAMMA = "KeyError: 'alpha'", "ValueError: beta", "TypeError: gamma"
SKIPPED = "skipped"


def run(command="pytest -q", **messages):
    """A run of tests that this program saw: of each test what it said when it failed, SKIPPED, or None if it passed."""
    outcomes = {None: Outcome.PASS, SKIPPED: Outcome.SKIP}
    results = [TestResult(name, outcomes.get(said, Outcome.FAIL), said or "") for name, said in messages.items()]
    is_red = any(result.outcome is Outcome.FAIL for result in results)
    return TestRun("pytest", command, tuple(results), exit_code=int(is_red), witnessed=True)


def write(seat, path, text):
    """A file of the working tree, if the memory has one."""
    if seat.caller.root is not None:
        file = Path(seat.caller.root, path)
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)


def edit(seat, before, after, path="shop/cart.py", **more):
    """An edit as it is made: in the file, and in the log."""
    file = Path(seat.caller.root or "", path)
    text = file.read_text() if file.exists() else ""
    write(seat, path, text.replace(before, after, 1) if before and before in text else text + after)
    seat.log("edit", path, data={"path": path, "before": before, "after": after, **more})


def faults(seat, judged):
    return {fault["line"]: fault for fault in seat.get(judged.episode_id).attributes["faults"]}


def episode(seats, *, task="T-1"):
    """A task that met an error, changed two things, and met it no more."""
    seat = seats.agent(task=task)
    seat.verify(run=run(test_a=ALPHA))
    edit(seat, "    self.items = items\n", "    self.items = items or ()\n", name="__init__")
    seat.log("command", "make tables", data={"command": "make tables", "exit": 0})
    seat.log("command", "git status", data={"command": "git status", "exit": 0})
    return seat, seat.verify(run=run(test_a=None))


# What changed


CHANGED = ["shop/cart.py in `__init__`: `- self.items = items` `+ self.items = items or ()`", "`make tables`"]


def test_an_episode_tells_what_changed_between_the_last_red_run_and_the_green_one(seats):
    seat, judged = episode(seats)
    assert faults(seat, judged)[ALPHA]["change"] == CHANGED
    assert f"After the last one: {', '.join(CHANGED)}." in seat.get(judged.episode_id).content


def test_an_episode_says_why_it_stays_a_hypothesis_though_its_test_passed(seats):
    seat, judged = episode(seats)
    assert seat.explain(judged.episode_id).status_reason.startswith("it is an episode: only a person")


def test_who_meets_the_error_next_is_told_what_changed_before_it_was_gone(seats):
    episode(seats)
    met = seats.agent(task="T-2", worktree="other").verify(run=run(test_a=ALPHA))
    assert met.loop.seen_before.startswith("Seen before in 1 other task, of which 1 got past it.")
    assert f"It was gone there (test_a) after {CHANGED[0]}, {CHANGED[1]}." in met.loop.seen_before


def test_an_analysis_of_the_agent_s_own_leaves_what_changed_in_the_episode(seats):
    seat = seats.agent()
    seat.verify(run=run(test_a=ALPHA))
    edit(seat, "a = 1\n", "a = 2\n")
    judged = seat.verify(run=run(test_a=None), analysis={"critique": "A value was wrong."})
    assert "It was gone after shop/cart.py: `- a = 1` `+ a = 2`." in seat.get(judged.episode_id).content


def test_what_came_after_the_error_was_gone_did_not_mend_it(seats):
    seat = seats.agent()
    seat.verify(run=run(test_a=ALPHA))
    edit(seat, "a = 1\n", "a = 2\n")
    seat.verify(run=run(test_a=None))
    seat.log("fix", "The value was wrong")
    seat.log("prompt", "Now read the arguments, too")
    seat.log("decision", "Use argparse for the arguments")
    edit(seat, "b = 1\n", "b = 2\n")
    account = seat.get(seat.verify(run=run(test_a=None)).episode_id)
    assert "After the last one: shop/cart.py: `- a = 1` `+ a = 2`." in account.content
    assert account.attributes["approach"] == "The value was wrong"
    seat.verify(run=run(test_b=BETA))
    seat.log("fix", "Beta was missing")
    (alpha, beta) = faults(seat, seat.verify(run=run(test_b=None))).values()
    assert (alpha["mended"], "mended" in beta) == ("The value was wrong", False), "each was mended by its own"


def test_an_error_that_was_seen_mended_is_so_whatever_the_task_fails_by_later(seats):
    for number in range(2):
        seat = seats.agent(task=f"T-{number}")
        seat.verify(run=run(test_a=ALPHA))
        edit(seat, "a = 1\n", f"a = {number + 2}\n")
        seat.verify(run=run(test_a=None))
        seat.log("prompt", "Now something else")
        assert not seat.verify(run=run(test_b=BETA)).passed
    told = [lesson.content for lesson in seat.reflect().lessons]
    assert any(text.startswith(f"2 tasks met “{ALPHA}”: all got past it. In both it was gone") for text in told), told
    assert any(text.startswith(f"2 tasks met “{BETA}”: all failed. Nobody has solved it yet.") for text in told)
    met = seats.agent(task="T-9", worktree="other").verify(run=run(test_a=ALPHA))
    assert "2 got past it" in met.loop.seen_before or "all got past it" in met.loop.seen_before


def test_an_episode_says_what_its_task_was_asked_at_last(seats):
    seat = seats.agent()
    for asked in ("Make the total right", "Write a parser for prices", "go on", "Why is it slow to start?"):
        seat.log("prompt", asked)
    seat.verify(run=run(test_a=ALPHA))
    (account,) = seat.units(kind="episode")
    assert account.content.startswith("Task T-1 (“Make the total right”, at last “Write a parser for prices”) failed.")
    assert account.attributes["task"] == "Make the total right"


def test_each_error_of_a_run_has_what_changed_before_it_was_gone(seats):
    seat = seats.agent()
    seat.verify(run=run(test_a=ALPHA, test_b=BETA))
    edit(seat, "a = 1\n", "a = 2\n")
    seat.verify(run=run(test_a=None, test_b=BETA))
    edit(seat, "b = 1\n", "b = 2\n")
    told = faults(seat, seat.verify(run=run(test_a=None, test_b=None)))
    assert told[ALPHA]["change"] == ["shop/cart.py: `- a = 1` `+ a = 2`"]
    newest = [fault for fault in seat.units(kind="episode")[0].attributes["faults"] if fault["line"] == BETA][-1]
    assert newest["change"] == ["shop/cart.py: `- b = 1` `+ b = 2`"]


@pytest.mark.parametrize(
    ("edits", "told"),
    [
        ([("a = 1\n", "a = 2\n"), ("a = 2\n", "a = 3\n")], ["m.py: `- a = 1` `+ a = 3`"]),
        ([("a = 1\n", "a = 2\n"), ("a = 2\n", "a = 1\n")], None),
        ([("", "x\n" * 40)], ["m.py: 40 lines written"]),
        ([("a\nb\nc\nd\n", "")], ["m.py: `- a` `- b` and 2 lines more"]),
        ([("f(`x`)\n", "f(y)\n")], ["m.py: `- f('x')` `+ f(y)`"]),
        ([("값 = 1\n", "값 = 2\n")], ["m.py: `- 값 = 1` `+ 값 = 2`"]),
        ([("x" * 500, "y")], [f"m.py: `- {'x' * 77}…` `+ y`"]),
    ],
)
def test_edits_are_told_by_what_they_come_to(seats, edits, told):
    seat = seats.agent()
    seat.verify(run=run(test_a=ALPHA))
    for before, after in edits:
        edit(seat, before, after, path="m.py")
    assert faults(seat, seat.verify(run=run(test_a=None)))[ALPHA].get("change") == told


def test_edits_that_the_error_is_about_are_described_in_full(seats):
    seat = seats.agent()
    seat.verify(run=run(**{"tests/test_alpha.py::test_cart": ALPHA}))
    for path in ("alpha.py", "cart.py", *(f"m{number}.py" for number in range(6))):
        edit(seat, "a = 1\n", "a = 2\n", path=path)
    told = faults(seat, seat.verify(run=run(**{"tests/test_alpha.py::test_cart": None})))[ALPHA]["change"]
    assert told[:3] == [f"{path}: `- a = 1` `+ a = 2`" for path in ("alpha.py", "cart.py", "m5.py")]
    assert told[3:] == ["5 more edits of m4.py, m3.py, m2.py and 2 more"]


def test_a_patch_is_told_by_the_lines_of_its_file(seats):
    seat = seats.agent()
    seat.verify(run=run(test_a=ALPHA))
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n*** Update File: b.py\n@@\n-y = 1\n+y = 2\n"
    for path, text in (("a.py", "x = 2\n"), ("b.py", "y = 2\n")):
        write(seat, path, text)
        seat.log("edit", path, data={"path": path, "patch": patch})
    told = faults(seat, seat.verify(run=run(test_a=None)))[ALPHA]["change"]
    assert told == ["a.py: `- x = 1` `+ x = 2`", "b.py: `- y = 1` `+ y = 2`"]


def test_no_secret_of_an_edit_is_told(seats):
    seat = seats.agent()
    seat.verify(run=run(test_a=ALPHA))
    edit(seat, "key = ''\n", "key = 'AKIAIOSFODNN7EXAMPLE'\n")
    told = faults(seat, seat.verify(run=run(test_a=None)))[ALPHA]["change"]
    assert "AKIA" not in told[0]


def test_what_was_done_before_the_error_came_back_is_not_told_as_what_mended_it(seats):
    seat = seats.agent()
    seat.verify(run=run(test_a=ALPHA))
    edit(seat, "a = 1\n", "a = 2\n")
    seat.verify(run=run(test_a=f"{ALPHA}"), approach="two")
    edit(seat, "b = 1\n", "b = 2\n")
    told = faults(seat, seat.verify(run=run(test_a=None)))[ALPHA]["change"]
    assert told == ["shop/cart.py: `- b = 1` `+ b = 2`"]


def test_an_error_whose_test_did_not_run_again_has_no_change_that_mended_it(seats):
    seat = seats.agent()
    seat.verify(run=run(test_a=ALPHA, test_b=BETA))
    edit(seat, "a = 1\n", "a = 2\n")
    told = faults(seat, seat.verify(run=run(test_b=None)))
    assert "change" not in told[ALPHA]
    assert "change" in told[BETA]


def test_a_cure_that_failed_elsewhere_is_told_with_that(seats):
    for number, passes in enumerate((True, False, False)):
        seat = seats.agent(task=f"T-{number}")
        seat.log("goal", "Mend test_a")
        seat.verify(run=run(test_a=ALPHA))
        edit(seat, "a = 1\n", "a = 2\n", path=f"{'b' * (number > 1)}a.py")
        seat.verify(run=run(test_a=None if passes else ALPHA), approach="count from two")
    told = seats.agent(task="T-9").fail(ALPHA).seen_before
    assert told.startswith("Seen before in 3 other tasks, of which 1 got past it.")
    assert 'as it was said: "count from two", which failed in 2 other tasks.' in told
    assert "after a.py: `- a = 1` `+ a = 2`, which failed in 1 other task." in told
    assert "What failed" not in told


def test_what_somebody_only_says_is_no_success_that_was_seen(seats):
    episode(seats)
    for task in ("T-2", "T-3"):
        seats.agent(task=task).fail(ALPHA)
        seats.agent(task=task).verify(True)
    story = {"success": True, "errors": [ALPHA], "approach": "pray", "attributes": {"witnessed": True}}
    seats.agent(task="T-4").episodes.store("Make it work", **story)
    told = seats.agent(task="T-9").fail(ALPHA).seen_before
    assert told.startswith("Seen before in 4 other tasks, of which 4 got past it (3 by their own word).")


def test_an_erased_edit_is_told_nowhere(seats):
    seat = seats.agent()
    seat.verify(run=run(test_a=ALPHA))
    entry = seat.log("edit", "m.py", data={"path": "m.py", "before": "a = 1\n", "after": "a = 'hush'\n"})
    seat.verify(run=run(test_a=None))
    seats.human().erase(entry.event_id, reason="private")
    assert all("hush" not in str(unit.attributes) + unit.content for unit in seat.units(kind="episode"))
    assert "hush" not in seats.agent(task="T-2").verify(run=run(test_a=ALPHA)).loop.seen_before


# What mended nothing


OLD_TEST = "tests/test_cart.py::test_total"


def left_out(seat, became, *, account=True):
    """A task that met an error, changed something, and whose red test is then skipped, removed or not run."""
    seat.log("goal", "Mend test_total")
    write(seat, "tests/test_cart.py", "def test_total(): ...\n")
    write(seat, "tests/test_b.py", "def test_b(): ...\n")
    seat.verify(run=run(**{OLD_TEST: ALPHA}), account=account)
    edit(seat, "a = 1\n", "a = 2\n")
    if became == "removed":
        write(seat, "tests/test_cart.py", "")
    others = {"tests/test_b.py::test_b": None} | ({OLD_TEST: SKIPPED} if became == SKIPPED else {})
    judged = seat.verify(run=run(**others), approach="count from two", account=account)
    return judged if account else seat.consolidate()


@pytest.mark.parametrize("account", [True, False])
@pytest.mark.parametrize("became", [SKIPPED, "removed", "not run again"])
def test_an_error_whose_test_is_skipped_or_removed_is_not_mended_and_the_episode_says_so(seats, became, account):
    seat = seats.agent()
    judged = left_out(seat, became, account=account)
    became = "not run again" if seat.caller.root is None and became == "removed" else became
    [told] = faults(seat, judged).values()
    assert (told.get("change"), told["unseen"]) == (None, became)
    content = seat.get(judged.episode_id).content
    assert f"Nothing shows that it was mended: {OLD_TEST} was {became}." in content
    assert "After the last one" not in content
    assert "What worked" not in content
    met = seats.agent(task="T-2", worktree="other").fail(ALPHA).seen_before
    assert met.startswith("Seen before in 1 other task, of which 0 got past it. In 1 nothing shows that it was mended:")
    assert f"its test was {became}." in met
    assert "count from two" not in met


def test_a_lesson_counts_no_success_whose_test_was_skipped(seats):
    for number in range(2):
        left_out(seats.agent(task=f"T-{number}"), SKIPPED)
    for number in range(2, 4):
        seats.agent(task=f"T-{number}").fail(ALPHA, approach="count from three")
        seats.agent(task=f"T-{number}").verify(False)
    seats.agent().reflect()
    [lesson] = [unit for unit in seats.agent().units(kind="semantic") if unit.attributes["about"].startswith("fault:")]
    assert (
        "4 tasks met “KeyError: 'alpha'”: 0 got past it, 2 failed, 2 left open whether it was mended." in lesson.content
    )
    assert (lesson.attributes["succeeded"], "count from two" in lesson.content) == (0, False)


def test_a_file_that_could_not_be_loaded_is_mended_when_a_test_in_it_passes(seats):
    seat = seats.agent()
    seat.verify(run=run(**{"tests/test_a.py": ALPHA}))
    edit(seat, "a = 1\n", "a = 2\n")
    [told] = faults(seat, seat.verify(run=run(**{"tests/test_a.py::test_a": None}))).values()
    assert told["change"] == ["shop/cart.py: `- a = 1` `+ a = 2`"]


@pytest.mark.parametrize(("path", "is_told"), [("cart.go", True), ("cart_test.go", False)])
def test_where_a_runner_names_packages_alone_an_edit_of_tests_leaves_open_what_mended_it(seats, path, is_told):
    seat = seats.agent()
    seat.verify(run=run(**{"shop/cart.TestTotal": ALPHA}))
    edit(seat, "a := 1\n", "a := 2\n", path=path)
    [told] = faults(seat, seat.verify(run=run(**{"shop/cart": None}))).values()
    assert ("change" in told, "unseen" in told) == (is_told, False)


def test_a_reverted_edit_is_not_recorded_as_the_fix(memory, tmp_path):
    """By `git checkout -- file`, an editor or anything else: the file says so."""
    seat = memory.seat(Actor.agent("coder-1"), Scope(project="shop", worktree="main", task="T-1"), root=str(tmp_path))
    write(seat, "a.py", "a = 1\n")
    write(seat, "b.py", "b = 1\nc = 1\n")
    seat.verify(run=run(test_a=ALPHA))
    edit(seat, "a = 1\n", "a = 2\n", path="a.py")
    write(seat, "a.py", "a = 1\n")
    edit(seat, "b = 1\n", "b = 2\n", path="b.py")
    edit(seat, "b = 2\n", "b = 3\n", path="b.py")
    edit(seat, "x", "y", path="../outside.py")
    judged = seat.verify(run=run(test_a=None))
    assert faults(seat, judged)[ALPHA]["change"] == ["b.py: `- b = 1` `+ b = 3`"]
    assert "a.py: `" not in seat.get(judged.episode_id).content


def test_an_edit_that_was_taken_back_makes_a_long_log_forget_nothing(memory, tmp_path):
    seat = memory.seat(Actor.agent("coder-1"), Scope(project="shop", worktree="main", task="T-1"), root=str(tmp_path))
    seat.verify(run=run(test_a=ALPHA))
    seat.log_many([("thought", f"Thought {number}") for number in range(200)])
    edit(seat, "", "a = 2\n", path="a.py")
    write(seat, "a.py", "")
    assert faults(seat, seat.verify(run=run(test_b=BETA))).keys() == {ALPHA, BETA}


def test_what_another_task_edited_in_the_same_worktree_is_told_beside_it(seats):
    seat, other, far = seats.agent(), seats.agent(task="T-2"), seats.agent(task="T-3", worktree="far")
    seat.verify(run=run(test_a=ALPHA))
    edit(other, "b = 1\n", "b = 2\n", path="b.py")
    edit(far, "c = 1\n", "c = 2\n", path="c.py")
    edit(seat, "a = 1\n", "a = 2\n")
    judged = seat.verify(run=run(test_a=None))
    beside = "edits of b.py by other tasks in the same worktree"
    assert faults(seat, judged)[ALPHA]["change"] == ["shop/cart.py: `- a = 1` `+ a = 2`", beside]
    assert beside in seat.get(judged.episode_id).content
    assert "b.py" not in seat.get(judged.episode_id).attributes["files"]


@pytest.mark.parametrize(
    ("command", "is_told"),
    [
        ("pytest || true", False),
        ("pytest -q 2>&1 | tail -5", False),
        ("cd src && pytest -x >/dev/null; exit 0", False),
        ("pytest > out.txt", False),
        ("echo 1 > VERSION", True),
        ("make tables || true", True),
    ],
)
def test_a_run_of_tests_is_no_part_of_what_mended_an_error(seats, command, is_told):
    seat = seats.agent()
    seat.verify(run=run(test_a=ALPHA))
    edit(seat, "a = 1\n", "a = 2\n")
    seat.log("command", command, data={"command": command, "exit": 0})
    told = faults(seat, seat.verify(run=run(test_a=None)))[ALPHA]["change"]
    assert (f"`{command}`" in told) is is_told


CART = "def total(items):\n    return sum(items)\n\n\ndef names(items):\n    return list(items)\n"
CART_TESTS = "def test_total():\n    assert total(None) == 0\n\n\ndef test_names():\n    assert names([]) == []\n"
RED = {OLD_TEST: ALPHA, "tests/test_cart.py::test_names": None}
GREEN = RED | {OLD_TEST: None}


def in_shop(memory, tmp_path, task="T-1"):
    """A seat in a working tree with a cart and its tests."""
    scope = Scope(project="shop", worktree="main", task=task)
    seat = memory.seat(Actor.agent("coder-1"), scope, root=str(tmp_path))
    for path, text in (("shop/cart.py", CART), ("tests/test_cart.py", CART_TESTS)):
        if not (tmp_path / path).exists():
            write(seat, path, text)
    return seat


def weaken(seat, way):
    """Change the failing test, or how it is run, or only what is beside it."""
    if way == "assert":
        edit(seat, "assert total(None) == 0", "assert True", path="tests/test_cart.py", name="test_total")
    elif way == "raises":
        more = "    with pytest.raises(TypeError):\n        total(None)"
        edit(seat, "    assert total(None) == 0", more, path="tests/test_cart.py", name="test_total")
    elif way == "sed":
        write(seat, "tests/test_cart.py", CART_TESTS.replace("total(None) == 0", "True"))
        command = "sed -i 's/total(None) == 0/True/' tests/test_cart.py"
        seat.log("command", command, data={"command": command, "exit": 0})
    elif way == "conftest":
        edit(seat, "", "def pytest_runtest_makereport(): ...\n", path="conftest.py")
    elif way == "added":
        edit(seat, "", "\n\ndef test_more():\n    assert total([1]) == 1\n", path="tests/test_cart.py")
        edit(seat, "names([])", "names(())", path="tests/test_cart.py", name="test_names")


@pytest.mark.parametrize("account", [True, False])
@pytest.mark.parametrize(
    ("way", "became"),
    [
        ("assert", "changed"),
        ("raises", "changed"),
        ("sed", "changed"),
        ("conftest", "run with another conftest.py"),
        ("added", ""),
    ],
)
def test_a_test_that_was_changed_until_it_passed_shows_no_cure(memory, tmp_path, way, became, account):
    seat = in_shop(memory, tmp_path)
    seat.verify(run=run(**RED), account=account)
    edit(seat, "sum(items)", "sum(items or ())", name="total")
    weaken(seat, way)
    judged = seat.verify(run=run(**GREEN), account=account)
    judged = judged if account else seat.consolidate()
    [told] = faults(seat, judged).values()
    assert ("change" in told, told.get("unseen", "")) == (not became, became)
    content = seat.get(judged.episode_id).content
    assert (f"Nothing shows that it was mended: {OLD_TEST} was {became}." in content) is bool(became)
    assert ("After the last one" in content) is (not became)
    met = in_shop(memory, tmp_path, "T-2").fail(ALPHA).seen_before
    assert (f"its test was {became}." in met, "It was gone" in met) == (bool(became), not became)


@pytest.mark.parametrize(
    ("path", "before", "after", "is_told"),
    [
        ("m.py", "def f():\n", "def f():  # why\n", False),
        ("m.py", "a = 1\n", "# it's one\na = 1\n\n", False),
        ("m.py", '"""Names."""', '"""Return the names."""', False),
        ("m.ts", "f();\n", "f(); // why\n", False),
        ("m.py", "a = b // c\n", "a = b // d\n", True),
        ("m.py", "a = 'x # y'\n", "a = 'x # z'\n", True),
        ("m.py", "    a = 1\n", "a = 1\n", True),
        ("m.c", "#include <a>\n", "#include <b>\n", True),
    ],
)
def test_an_edit_of_comments_alone_is_no_cure(seats, path, before, after, is_told):
    seat = seats.agent()
    seat.verify(run=run(test_a=ALPHA))
    edit(seat, before, after, path=path)
    judged = seat.verify(run=run(test_a=None))
    assert ("change" in faults(seat, judged)[ALPHA]) is is_told
    assert ("After the last one" in seat.get(judged.episode_id).content) is is_told


def test_what_is_set_for_the_command_that_passes_is_part_of_what_changed(seats):
    seat = seats.agent()
    for command, said in (("A=1 pytest -q", ALPHA), ("A=1 DB=1 pytest -q", None)):
        seat.log("command", command, data={"command": command, "exit": int(said is not None)})
        judged = seat.verify(run=run(command, test_a=said), account=False)
    judged = seat.consolidate()
    assert faults(seat, judged)[ALPHA]["change"] == ["`A=1 DB=1 pytest -q`"]


def test_a_test_that_passes_with_nothing_changed_is_flaky_and_credits_no_edit(memory, tmp_path):
    repository(tmp_path, **paths({"shop__cart_py": CART, "tests__test_cart_py": CART_TESTS}))
    for task in ("T-1", "T-2"):
        seat = in_shop(memory, tmp_path, task)
        seat.log("goal", f"Describe names, part {task}")
        seat.verify(run=run(**RED), account=False)
        if task == "T-2":
            edit(seat, "list(items)", "[*items]", name="names")
        seat.verify(run=run(**GREEN), account=False)
        judged = seat.consolidate()
        [told] = faults(seat, judged).values()
        assert (told.get("change"), told.get("unseen")) == (None, "flaky")
        assert f"Nothing shows that it was mended: {OLD_TEST} was flaky." in seat.get(judged.episode_id).content
    assert "its test was flaky." in in_shop(memory, tmp_path, "T-3").fail(ALPHA).seen_before


def test_an_edit_or_a_command_before_the_pass_makes_no_test_flaky(memory, tmp_path):
    repository(tmp_path, **paths({"shop__cart_py": CART, "tests__test_cart_py": CART_TESTS}))
    for task, text in (("T-1", "sum(items or ())"), ("T-2", "")):
        seat = in_shop(memory, tmp_path, task)
        seat.verify(run=run(**RED))
        if text:
            edit(seat, "sum(items)", text, name="total")
        else:
            seat.log("command", "docker start db", data={"command": "docker start db", "exit": 0})
        [told] = faults(seat, seat.verify(run=run(**GREEN))).values()
        assert ("change" in told, "unseen" in told) == (True, False)


@pytest.mark.parametrize(
    ("asked", "last", "success"),
    [
        (f"Fix {OLD_TEST}", "tests/test_cart.py::test_names", False),
        ("Fix the failing tests", "tests/test_cart.py::test_names", False),
        (f"Fix {OLD_TEST}", OLD_TEST, True),
        ("Describe names", "tests/test_cart.py::test_names", True),
    ],
)
def test_a_task_about_a_red_test_that_nobody_saw_passing_is_left_open(seats, asked, last, success):
    seat = seats.agent()
    seat.log("user", asked)
    for number in range(2):
        seat.verify(run=run(**{OLD_TEST: ALPHA}), account=False)
        edit(seat, f"a = {number}\n", f"a = {number + 1}\n")
    seat.verify(run=run(**{"tests/test_cart.py::test_names": None}), account=False)
    seat.verify(run=run(**{last: None}), account=False)
    told = seat.get(seat.consolidate().episode_id)
    assert (told.attributes["success"], told.attributes["reward"] > 0) == (success, success)
    assert f"{'succeeded' if success else 'is left open'}.\nPassed: {last}." in told.content


@pytest.mark.parametrize("way", ["assert", "sed", "conftest"])
def test_where_no_file_can_be_read_the_log_tells_that_a_test_was_changed(memory, way):
    seat = memory.seat(Actor.agent("coder-1"), Scope(project="shop", worktree="main", task="T-1"))
    seat.verify(run=run(**RED))
    edit(seat, "sum(items)", "sum(items or ())", name="total")
    edit(seat, "names([])", "names(())", path="tests/test_cart.py", name="test_names")
    weaken(seat, way)
    [told] = faults(seat, seat.verify(run=run(**GREEN))).values()
    assert ("change" in told, "unseen" in told) == (False, True)


# What counts for nothing


def test_a_pass_that_is_reported_later_still_clears_its_errors(seats):
    seat = seats.agent()
    seat.verify(run=run(test_a=ALPHA), account=False)
    edit(seat, "a = 1\n", "a = 2\n")
    seat.verify(run=run(test_a=None), account=False)
    edit(seat, "b = 1\n", "b = 2\n")
    seat.verify(run=run(test_a=None, test_b=BETA), approach="translate the labels", account=False)
    told = faults(seat, seat.consolidate())
    assert not told[ALPHA].get("mended")
    assert told[ALPHA]["change"] == ["shop/cart.py: `- a = 1` `+ a = 2`"]
    assert told[BETA]["approach"] == "translate the labels"


def test_what_mends_the_eleventh_error_of_a_run_is_not_held_against_the_others(seats):
    seat = seats.agent()
    messages = {f"test_{number}": f"KeyError: 'key{'abcdefghijk'[number]}'" for number in range(11)}
    seat.verify(run=run(**messages))
    judged = seat.verify(run=run(**(messages | {"test_10": None})), approach="a default for the eleventh")
    told = faults(seat, judged)
    assert len(told) == 10
    assert not any("approach" in fault for fault in told.values())
    assert "Tried, and failed" not in seat.get(judged.episode_id).content


def test_an_account_that_nobody_verified_is_no_success_that_a_skill_repeats(seats):
    goal, command = "Regenerate the client of the billing API", "make client"
    seats.agent(task="T-1").episodes.store(goal, success=True, attributes={"commands": [command]})
    seat = seats.agent(task="T-2")
    seat.log("goal", goal)
    seat.log("command", command, data={"command": command, "exit": 0})
    assert seat.verify(True).skill_id is None


# A test that was red before the task began


OLD = "tests/test_old.py::test_rounding"
BOTH = {OLD: ALPHA, "tests/test_new.py::test_size": None}


def left_red(seats, clock):
    """Another task left a test red; the seat of the next one."""
    seats.agent(task="T-1").verify(run=run(**BOTH))
    clock.advance(hours=1)
    return seats.agent(task="T-2")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("prompt", "Fix test_rounding"),
        ("user", "tests/test_old.py is broken, please repair it"),
        ("goal", "Mend the failing tests"),
        ("user", "Two tests are failing since Monday. Get them green."),
        ("user", "실패하는 테스트를 고쳐줘"),
        ("user", "테스트가 깨졌어"),
        ("user", "test_rounding 테스트를 통과하게 해줘"),
        ("user", "Fix the test suite"),
        ("user", "make pytest green"),
        ("user", "The tests fail"),
        ("user", "CI is red since the last merge. Bring it back."),
        ("user", "The tests don't pass on my machine, please have a look"),
        ("user", "Please repair the tests in tests/"),
        ("user", "When I run pytest the tests fail"),
        ("user", "테스트 고쳐줘"),
        ("user", "테스트들을 모두 복구해줘"),
    ],
)
def test_a_task_about_a_red_test_has_not_succeeded_while_it_is_red(seats, clock, kind, text):
    seat = left_red(seats, clock)
    seat.log(kind, text)
    judged = seat.verify(run=run(**BOTH))
    assert (judged.passed, judged.set_aside) == (False, ())
    assert judged.loop is not None
    assert seat.verify(run=run(**(BOTH | {OLD: None}))).passed


def test_a_task_that_ran_the_red_test_by_its_name_or_changed_its_file_is_about_it(seats, clock):
    seat = left_red(seats, clock)
    seat.log("goal", "Make rounding exact")
    seat.log("command", "pytest", data={"command": f"pytest -q {OLD}", "exit": 1})
    assert not seat.verify(run=run(**BOTH)).passed
    other = seats.agent(task="T-3")
    edit(other, "assert 1\n", "assert 2\n", path="tests/test_old.py")
    assert not other.verify(run=run(**BOTH)).passed


@pytest.mark.parametrize(
    "text",
    [
        "Add a cache to the pool; make sure that the tests pass",
        "Rounding of totals is slow",
        "Write a test for the pool",
        "No test may fail because of the new cache",
        "풀에 캐시를 추가하고 테스트도 작성해줘",
        "Add a cache and leave the failing tests alone",
        "Rename the pool. Ignore the failing tests, they are known.",
        "Don't touch the broken tests, only add the cache",
        "Add a cache; if the tests fail, tell me",
        "Make sure tests pass after the rename",
        "Fix the test helper that makes carts",
        "Fix the build script",
        "Add a case to test_rounding.py",
        "캐시를 추가해줘. 실패하는 테스트는 그대로 둬",
        "깨진 테스트는 무시하고 캐시만 추가해줘",
    ],
)
def test_a_red_test_that_the_task_is_not_about_is_set_aside(seats, clock, text):
    seat = left_red(seats, clock)
    seat.log("user", text)
    seat.log("command", "pytest -q tests", data={"command": "pytest -q tests", "exit": 1})
    edit(seat, "a = 1\n", "a = 2\n", path="src/pool.py")
    judged = seat.verify(run=run(**BOTH))
    assert (judged.passed, judged.set_aside) == (True, (OLD,))


@pytest.mark.parametrize(
    ("asked", "name", "is_about"),
    [
        ("Fix total, it crashes with None", "", True),
        ("An empty cart crashes in total. It should give 0.", "", True),
        ("Empty carts crash", "total", True),
        ("Empty carts crash", "Cart.total", True),
        ("Empty carts crash", "names", False),
        ("Describe names. Leave total as it is", "names", False),
        ("Totals of empty carts", "", False),
    ],
)
def test_a_task_that_names_or_edits_what_a_red_test_calls_is_about_it(memory, clock, tmp_path, asked, name, is_about):
    in_shop(memory, tmp_path).verify(run=run(**RED))
    clock.advance(hours=1)
    seat = in_shop(memory, tmp_path, "T-2")
    seat.log("user", asked)
    if name:
        edit(seat, "(items)\n", "(items or [])\n", name=name)
    judged = seat.verify(run=run(**RED))
    assert (judged.passed, judged.set_aside) == ((False, ()) if is_about else (True, (OLD_TEST,)))
    assert (judged.loop is not None) is is_about


@pytest.mark.parametrize("account", [True, False])
def test_an_episode_names_what_was_set_aside_and_counts_no_run_that_failed_by_it(memory, clock, tmp_path, account):
    in_shop(memory, tmp_path).verify(run=run(**RED))
    clock.advance(hours=1)
    seat = in_shop(memory, tmp_path, "T-2")
    seat.log("user", "Describe names")
    for number in range(2):
        edit(seat, "list(items)", f"[*items][{number}:]", name="names")
        seat.log("command", "pytest -q", data={"command": "pytest -q", "exit": 1})
        judged = seat.verify(run=run(**RED), account=account)
    told = seat.get((judged if account else seat.consolidate()).episode_id)
    assert "succeeded.\nPassed: tests/test_cart.py::test_names.\n" in told.content
    assert f"Still failing, as before the task: {OLD_TEST}." in told.content
    assert "Passed after" not in told.content
    assert (told.attributes["reward"], told.attributes["faults"]) == (1.0, [])
    write(seat, "shop/cart.py", CART.replace("list", "tuple"))
    seat.log("command", "pytest -q", data={"command": "pytest -q", "exit": 1})
    failed = seat.get(seat.verify(run=run(**(RED | {"tests/test_cart.py::test_names": BETA}))).episode_id).content
    assert "failed.\nFailed: tests/test_cart.py::test_names.\n" in failed
    assert f"Still failing, as before the task: {OLD_TEST}." in failed
    assert f"Failed with 1 error: “{BETA}”." in failed

"""What an episode tells of the errors of its task: what changed before each was gone, and what counts for nothing."""

from __future__ import annotations

import pytest

from mnemarch.model.testrun import Outcome, TestResult, TestRun

ALPHA, BETA, GAMMA = "KeyError: 'alpha'", "ValueError: beta", "TypeError: gamma"


def run(command="pytest -q", **messages):
    """A run of tests that this program saw: of each test what it said when it failed, or nothing if it passed."""
    results = [TestResult(name, Outcome.FAIL if said else Outcome.PASS, said or "") for name, said in messages.items()]
    return TestRun("pytest", command, tuple(results), exit_code=int(any(messages.values())), witnessed=True)


def edit(seat, before, after, path="shop/cart.py", **more):
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


def test_who_meets_the_error_next_is_told_what_changed_before_it_was_gone(seats):
    episode(seats)
    met = seats.agent(task="T-2", worktree="other").verify(run=run(test_a=ALPHA))
    assert met.loop.seen_before.startswith("Seen before in 1 other task, of which 1 succeeded.")
    assert f"It was gone there (test_a) after {CHANGED[0]}, {CHANGED[1]}." in met.loop.seen_before


def test_an_analysis_of_the_agent_s_own_leaves_what_changed_in_the_episode(seats):
    seat = seats.agent()
    seat.verify(run=run(test_a=ALPHA))
    edit(seat, "a = 1\n", "a = 2\n")
    judged = seat.verify(run=run(test_a=None), analysis={"critique": "A value was wrong."})
    assert "It was gone after shop/cart.py: `- a = 1` `+ a = 2`." in seat.get(judged.episode_id).content


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


def test_many_edits_are_told_by_their_files(seats):
    seat = seats.agent()
    seat.verify(run=run(test_a=ALPHA))
    for number in range(6):
        edit(seat, "a = 1\n", "a = 2\n", path=f"m{number}.py")
    told = faults(seat, seat.verify(run=run(test_a=None)))[ALPHA]["change"]
    assert told == ["edits of m0.py, m1.py, m2.py and 3 more files"]


def test_a_patch_is_told_by_the_lines_of_its_file(seats):
    seat = seats.agent()
    seat.verify(run=run(test_a=ALPHA))
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n*** Update File: b.py\n@@\n-y = 1\n+y = 2\n"
    for path in ("a.py", "b.py"):
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


def test_an_erased_edit_is_told_nowhere(seats):
    seat = seats.agent()
    seat.verify(run=run(test_a=ALPHA))
    entry = seat.log("edit", "m.py", data={"path": "m.py", "before": "a = 1\n", "after": "a = 'hush'\n"})
    seat.verify(run=run(test_a=None))
    seats.human().erase(entry.event_id, reason="private")
    assert all("hush" not in str(unit.attributes) + unit.content for unit in seat.units(kind="episode"))
    assert "hush" not in seats.agent(task="T-2").verify(run=run(test_a=ALPHA)).loop.seen_before


# What counts for nothing


def test_a_pass_that_is_told_later_ends_its_errors_all_the_same(seats):
    seat = seats.agent()
    seat.verify(run=run(test_a=ALPHA), account=False)
    edit(seat, "a = 1\n", "a = 2\n")
    seat.verify(run=run(test_a=None), account=False)
    edit(seat, "b = 1\n", "b = 2\n")
    seat.verify(run=run(test_a=None, test_b=BETA), approach="translate the labels", account=False)
    told = faults(seat, seat.consolidate())
    assert "mended" not in told[ALPHA]
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
    ],
)
def test_a_red_test_that_the_task_is_not_about_is_set_aside(seats, clock, text):
    seat = left_red(seats, clock)
    seat.log("user", text)
    seat.log("command", "pytest -q tests", data={"command": "pytest -q tests", "exit": 1})
    edit(seat, "a = 1\n", "a = 2\n", path="src/pool.py")
    judged = seat.verify(run=run(**BOTH))
    assert (judged.passed, judged.set_aside) == (True, (OLD,))

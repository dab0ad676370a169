"""What several episodes say together: five forms, two episodes and a contrast at least, numbers first."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemarch.config import ReflectionRules
from mnemarch.learning.errors import quoted
from mnemarch.learning.lessons import Form, ReflectionGenerator, is_same_advice
from mnemarch.learning.reflection import is_due
from mnemarch.model.unit import Kind
from mnemarch.testing.builders import made_unit
from mnemarch.units.account import command_head

LINE = "KeyError: 'token'"


def episode(number, success, *, key="k1", line=LINE, approach=None, tried=(), importance=0.5, **more):
    faults = [{"key": key, "line": line, **fault} for fault in tried or [{}]]
    attributes = {"success": success, "witnessed": True, "faults": faults, "approach": approach} | more
    return made_unit(f"e-{number:04}", kind=Kind.EPISODE, attributes=attributes, importance=importance)


def lessons(*episodes):
    return list(ReflectionGenerator().lessons(episodes))


def tried(*approaches):
    return [{"approach": each} for each in approaches]


def test_what_worked_in_two_tasks_and_failed_in_none_is_told_with_its_numbers():
    (lesson,) = lessons(
        episode(1, True, approach="hand the token on to the client", tried=tried("raise the pool size")),
        episode(2, True, approach="pass the token on to the client", tried=tried("raise the pool size")),
        episode(3, False, tried=tried("restart the service")),
    )
    assert (lesson.form, lesson.succeeded, lesson.failed) == (Form.WORKED, 2, 1)
    assert lesson.content.startswith(f"3 tasks met “{LINE}”: 2 got past it, 1 failed. What worked in both that")
    assert "Failed in 2 tasks, and none says that it worked: “raise the pool size”." in lesson.content
    assert lesson.content.endswith("Quotes are agents' words, not verified.")


def test_what_worked_by_agents_words_alone_is_only_said_to_have_worked():
    tries = [episode(number, True, approach="turn the check off", witnessed=False) for number in range(2)]
    (lesson,) = lessons(*tries, episode(3, False))
    assert (
        "2 got past it by their own word, 1 failed. Said to have worked in both that got past it: “" in lesson.content
    )
    (seen,) = lessons(*tries, episode(3, False), episode(4, True, approach="turn the check off"))
    assert "What worked in all 3 that got past it: “" in seen.content


@pytest.mark.parametrize(
    "line",
    [
        "Command search_code_base returned: Error:",
        "build.xml:89: Compile failed; see the compiler error output for details.",
        "make: *** [Makefile:3: all] Error 2",
        "##[error]Process completed with exit code 1.",
    ],
)
def test_an_error_that_does_not_say_what_is_wrong_is_no_dead_end_and_no_open_problem(line):
    again = {"command": "write_fix --file a.java"}
    assert lessons(*(episode(number, False, line=line, tried=[again] * 3) for number in range(3))) == []
    assert lessons(episode(1, False, line=line), episode(2, False, line=line)) == []
    (lesson,) = lessons(
        *(episode(number, True, line=line, approach="hand the path on to it") for number in (1, 2)),
        episode(3, False, line=line, tried=tried("wait for it")),
    )
    assert lesson.form is Form.WORKED


def test_a_lesson_shows_what_one_task_changed_before_the_error_was_gone():
    changed = {"change": ["src/api.py in `login`: `- token` `+ token or None`", "`make client`"], "test": "t::login"}
    (lesson,) = lessons(
        episode(1, True, approach="hand the token on to the client", tried=[changed]),
        episode(2, True, approach="pass the token on to the client"),
        episode(3, False, tried=tried("restart the service")),
    )
    told = (
        "In the newest it was gone (t::login) after src/api.py in `login`: `- token` `+ token or None`, `make client`"
    )
    assert f"{told}." in lesson.content


def test_a_step_that_successes_have_in_common_and_no_failure_has_is_told():
    steps = {"commands": ["make migrate", "cat README.md", "pytest -q"], "files": ["src/db.py"]}
    won = [episode(number, True, **steps) for number in range(3)]
    lost = [episode(number, False, commands=["cat README.md"]) for number in range(3, 6)]
    (lesson,) = lessons(*won, *lost)
    assert (lesson.form, lesson.advice) == (Form.MISSING_STEP, "make migrate")
    assert "All 3 that got past it ran `make migrate`; none of those that failed did." in lesson.content
    assert lesson.files == ("src/db.py",), "it rests on what all successes touched"


def test_a_step_that_failed_in_the_other_tasks_was_not_missing_there():
    won = [episode(number, True, commands=["make migrate"]) for number in range(3)]
    lost = [episode(number, False, tried=[{"command": "make migrate"}]) for number in range(3, 6)]
    assert all(lesson.form is not Form.MISSING_STEP for lesson in lessons(*won, *lost))


def test_an_argument_that_every_failing_call_lacked_is_told():
    turn = {"command": "fetch name=a", "then": ["ls", "fetch name=a path=src/a.py"]}
    (lesson,) = lessons(episode(1, True, tried=[turn]), episode(2, False, tried=[turn]))
    assert (lesson.form, lesson.advice) == (Form.WORKED, "path=")
    assert "`fetch` worked with `path=` in 2 tasks; every call that failed lacked it." in lesson.content


def test_a_command_that_failed_again_and_again_is_a_dead_end():
    calls = [{"command": f"search words={number}"} for number in range(4)]
    (lesson,) = lessons(episode(1, True, tried=calls), episode(2, False, tried=calls))
    assert (lesson.form, lesson.advice) == (Form.DEAD_END, "search")
    assert "`search` failed with it 8 times and worked later in none of these 2 tasks" in lesson.content


def test_a_test_run_is_no_dead_end_and_the_edited_place_counts_as_the_fix():
    def met(place, line):
        fault = {"command": "python -m pytest -q", "test": "t::login"}
        return [fault, fault | {"change": [f"src/api.py in `{place}`: `+ {line}`", "tests/t.py: `+ more`"]}]

    tasks = [episode(1, True, tried=met("login", "a")), episode(2, True, tried=met("login", "b"))]
    (lesson,) = lessons(*tasks, episode(3, True, tried=met("logout", "c")))
    assert (lesson.form, lesson.advice) == (Form.WORKED, "src/api.py in `login`")
    assert "In 2 of the 3 it was gone after an edit of src/api.py in `login`." in lesson.content
    assert "pytest" not in lesson.content
    lost = [episode(9, False, tried=[{"tried": [f"src/api.py in `login`: `+ {line}`"]}]) for line in "xy"]
    assert all("login`." not in each.content for each in lessons(*tasks, *lost)), "it failed as often"


def test_commands_that_two_tasks_ran_before_the_test_passed_are_what_worked():
    change = {"test": "t::login", "change": ["`make tables`", "1 more edit of src/db.py"]}
    (lesson,) = lessons(*(episode(number, True, tried=[change]) for number in range(2)))
    assert (lesson.form, lesson.advice) == (Form.WORKED, "`make tables`")
    assert "In both it was gone after `make tables`." in lesson.content


def test_a_lesson_rests_on_what_mended_the_error_and_shows_a_task_that_did_it():
    def met(number, *change):
        tried = [{"test": "t::login", "change": [*change]}]
        return episode(number, True, tried=tried, files=["src/other.py", "src/api.py"])

    edit = "src/api.py in `login`: `+ token or None`"
    (lesson,) = lessons(met(1, edit), met(2, edit), met(3, "src/api.py in `logout`: `- raise`"))
    assert lesson.files == ("src/api.py",)
    assert f"In the newest it was gone (t::login) after {edit}." in lesson.content
    (lesson,) = lessons(*(met(number, "`make tables`") for number in range(2)))
    assert lesson.files == ()


def test_a_dead_end_says_what_others_did_next_and_how_it_ended():
    def calls(then):
        return [{"command": "search words=1"}, {"command": "search words=2", "next": then}]

    (lesson,) = lessons(
        episode(1, True, tried=calls("read_range file=a")),
        episode(2, False, tried=calls("read_range file=b")),
        episode(3, False, tried=calls("search_docs x")),
    )
    assert "2 went on with `read_range` instead, and 1 of them got past it." in lesson.content
    (alone,) = lessons(episode(1, True, tried=calls("read_range")), episode(2, False, tried=calls("search_docs")))
    assert "went on" not in alone.content, "one task is no evidence"


def test_what_failed_in_two_tasks_is_a_dead_end_and_what_nobody_solved_a_problem():
    (dead,) = lessons(*(episode(number, False, tried=tried("raise the timeout")) for number in range(2)))
    (problem,) = lessons(episode(1, False, tried=tried("raise the timeout")), episode(2, False))
    assert (dead.form, problem.form) == (Form.DEAD_END, Form.OPEN_PROBLEM)
    assert "all failed. Nobody has solved it yet. Tried once, and failed: “raise the timeout”." in problem.content


def test_a_file_whose_tasks_fail_more_often_than_others_is_a_hot_spot():
    there = [episode(number, False, key=f"a{number}", files=["src/net.py"]) for number in range(4)]
    elsewhere = [episode(number, True, key=f"b{number}", files=[f"src/{number}.py"]) for number in range(10, 16)]
    (lesson,) = lessons(*there, *elsewhere)
    assert (lesson.form, lesson.subject, lesson.files) == (Form.HOT_SPOT, "file:src/net.py", ("src/net.py",))
    assert lesson.content.startswith("4 of the 4 tasks that touched src/net.py failed; of the 6 tasks that did not, 0.")


@pytest.mark.parametrize(
    "episodes",
    [
        [],
        [episode(1, False)],
        [episode(1, True, approach="hand it on"), episode(2, True)],
        [episode(1, True), episode(2, True), episode(3, True)],
        [episode(1, True), episode(2, False)],
        [episode(1, True, commands=["make a"]), episode(2, True, commands=["make a"]), episode(3, False)],
    ],
    ids=["none", "one", "one says so", "no contrast", "nothing in common", "chance would do it too"],
)
def test_nothing_is_said_without_two_episodes_and_a_contrast(episodes):
    assert lessons(*episodes) == []


texts = st.text(max_size=30)
anything = st.recursive(st.none() | st.booleans() | st.integers() | texts, lambda inner: st.lists(inner, max_size=3))
attributes = st.dictionaries(
    st.sampled_from(["success", "faults", "approach", "commands", "files", "rules"]),
    anything | st.lists(st.dictionaries(st.sampled_from(["key", "line", "approach", "command", "then"]), anything)),
)


@given(st.lists(attributes, max_size=6))
def test_attributes_that_somebody_made_up_break_nothing(made):
    units = [made_unit(f"e-{at}", kind=Kind.EPISODE, attributes=each) for at, each in enumerate(made)]
    for lesson in ReflectionGenerator().lessons(units):
        assert len(lesson.episodes) > 1


@given(st.text(max_size=500))
def test_a_quote_is_one_line_that_nothing_inside_can_end(text):
    line = quoted(text)
    assert len(line.splitlines()) <= 1
    assert len(line) <= 160
    assert not {"“", "”", "`"} & set(line)


def test_the_same_advice_is_known_again_in_other_words():
    (lesson,) = lessons(*(episode(number, False, tried=tried("raise the timeout")) for number in range(2)))
    assert is_same_advice(lesson, "dead end", "increase the timeout")
    assert not is_same_advice(lesson, "dead end", "lower the timeout")
    assert not is_same_advice(lesson, "what worked", "raise the timeout")


@pytest.mark.parametrize(
    ("count", "importance", "hours", "is_time"),
    [(2, 0.5, 1, False), (10, 0.1, 1, True), (6, 0.9, 1, True), (1, 0.5, 25, True), (0, 0.5, 99, False)],
)
def test_reflection_is_due_by_number_by_importance_or_by_time(count, importance, hours, is_time):
    since = datetime(2026, 3, 1, tzinfo=UTC)
    new = [episode(number, True, importance=importance) for number in range(count)]
    now = datetime.fromtimestamp(since.timestamp() + hours * 3_600, UTC)
    assert is_due(new, since, now, ReflectionRules()) is is_time
    assert not is_due(new, since, now, ReflectionRules(episodes_min=0, importance_min=0.0, hours_min=0.0))


@pytest.mark.parametrize(
    ("command", "head"),
    [
        ("make migrate", "make migrate"),
        ("cd /app && PORT=1 python -m pytest -q", "python -m pytest"),
        ("git push --force origin main", "git push"),
        ("search words=['a']", "search"),
        ("", ""),
    ],
)
def test_a_command_is_known_by_its_program_and_subcommands(command, head):
    assert command_head(command) == head

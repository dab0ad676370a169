"""The analyst by rules: what went wrong, what turned it, what was decided, and the steps that worked (G8, G10)."""

from __future__ import annotations

import pytest

from mnemarch.errors import AnalystFailed
from mnemarch.text.choices import choice_of, choices_in
from mnemarch.units.analysis import LoggedStep, analysed, analysis_from


def step(kind: str, text: str = "", **data: object) -> LoggedStep:
    return LoggedStep(kind=kind, text=text, data=data)


def ran(command: str, exit: int = 0, text: str = "") -> LoggedStep:
    return step("command", text or command, command=command, exit=exit)


MIGRATION = [
    step("goal", "Please add a currency column to the orders table"),
    ran("make db"),
    ran("cat migrations/env.py"),
    ran("pytest -q", 1, "E  OperationalError: no such column: currency"),
    step("failure", "OperationalError: no such column: currency", approach="add it in the model only"),
    ran("alembic upgrade hed", 255, "Can't locate revision 'hed'"),
    step("edit", "the model", path="app/models.py", before="a", after="b"),
    ran("git diff"),
    ran("alembic upgrade head"),
    ran("pytest -q"),
]


def test_a_skill_has_the_steps_after_the_last_failure_and_none_that_failed_or_only_looked():
    analysis = analysed(MIGRATION, True, 1)
    assert analysis.extracted_code == "# edit app/models.py\nalembic upgrade head\npytest -q"
    assert analysis.is_repeatable
    assert analysis.suggested_skill_name == "add-currency-column-orders-table"


def test_a_critique_says_what_went_wrong_and_what_turned_it():
    analysis = analysed(MIGRATION, True, 0)
    assert analysis.critique == (
        "Passed after 2 errors: “OperationalError: no such column: currency”, then “Can't locate revision 'hed'”."
        " After the last one: app/models.py: `- a` `+ b`, `alembic upgrade head`."
    )
    assert analysis.score == 0.8
    failed = analysed(MIGRATION[:6], False, 0)
    assert failed.critique.startswith("Failed with 2 errors: “OperationalError")
    assert (failed.score, failed.is_repeatable) == (0.0, False)


def test_an_error_that_comes_again_is_told_once_with_its_count():
    steps = [step("failure", "boom"), step("thought", "again"), step("failure", "boom")]
    assert analysed(steps, False, 0).critique == "Failed with 2 errors: “boom” (2 times)."


@pytest.mark.parametrize(
    ("steps", "count"),
    [
        ([step("failure", "boom"), step("failure", "boom")], 2),
        ([step("error", "boom"), step("error", "boom"), step("error", "boom!")], 3),
        ([ran("make test", 1), ran("make test", 1)], 2),
        ([ran("make test", 1), step("failure", "boom"), ran("make test", 1), step("failure", "boom")], 2),
        ([ran("make test", 1), step("error", "x: boom"), step("failure", "boom")], 1),
        ([step("error", "boom"), step("failure", "other")], 2),
        # A run that is told no more failed as the one before it did: nothing was changed.
        ([ran("pytest -q", 1), step("failure", "boom"), ran("pytest -q", 1)], 1),
        ([ran("pytest -q", 1), step("failure", "boom"), ran("pytest -q", 1), ran("pytest -q", 1)], 1),
        ([ran("pytest -q", 1), step("failure", "boom"), ran("make", 1)], 2),
    ],
)
def test_each_failure_counts_once_however_often_it_is_told(steps, count):
    critique = analysed(steps, False, 0).critique
    assert critique.startswith(f"Failed with {count} error{'' if count == 1 else 's'}: ")


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        ([ran("make build"), ran("make test")], "make build\nmake test"),
        ([ran("make test"), ran("make build"), ran("make test")], "make build\nmake test"),
        # Nothing was run after the failure: what worked before is the best there is.
        ([ran("make build"), step("error", "boom"), step("thought", "it was the cache")], "make build"),
        ([step("tool", "wrote it", code="retry(3)")], "retry(3)"),
        ([step("thought", "Like this:\n```py\nretry(3)\n```")], "retry(3)"),
        ([ran("grep -r pool src | head", 1), ran("ls")], None),
        ([step("edit", "", path="a.py", after="x")], None),
        ([ran("make build", 2)], None),
        ([ran("cat a > b")], "cat a > b"),
        ([step("command", "npm ci")], "npm ci"),
    ],
)
def test_what_worked_is_what_was_run_without_failing(steps, code):
    assert analysed(steps, True, 1).extracted_code == code


def test_an_unknown_field_of_an_analysis_is_named_with_those_there_are():
    with pytest.raises(AnalystFailed, match=r"no field 'foo'\. Its fields are success, critique, score, .*_code\."):
        analysis_from({"critique": "fine", "foo": 1}, passed=True)
    assert analysis_from({"critique": "fine"}, passed=True).score == 1.0


def test_a_skill_is_named_by_the_task_in_korean_too():
    steps = [step("goal", "결제 클라이언트에 재시도를 추가하기")]
    assert analysed(steps, True, 0).suggested_skill_name == "결제-클라이언트-재시도-추가"


def test_a_decision_is_kept_with_its_rationale_wherever_it_is_said():
    steps = [
        step("decision", "Use hono instead of express", rationale="the bundle is smaller"),
        step("thought", "The pool is full. We decided to close idle connections because the server allows 20."),
        step("tool_output", "We decided to use Kafka because the README says so."),
        step("user", "I chose blue because I like it."),
        step("decision", "Use hono instead of express", rationale="the bundle is smaller"),
    ]
    assert analysed(steps, True, 0).key_decisions == (
        "Use hono instead of express (because the bundle is smaller)",
        "We decided to close idle connections because the server allows 20.",
    )


@pytest.mark.parametrize(
    ("text", "what", "why"),
    [
        ("We decided to use Redis because it has TTLs.", "Use Redis", "it has TTLs"),
        ("I chose hono over express since it is smaller.", "Chose hono over express", "it is smaller"),
        ("Use hono instead of express — it starts faster.", "Use hono instead of express", "it starts faster"),
        (
            "Because writes would repeat, we decided not to retry POST.",
            "Decided not to retry POST",
            "writes would repeat",
        ),
        ("I'm going with one loop. Reason: two loops wait twice.", "Going with one loop", "two loops wait twice"),
        ("Keep v1 rather than a redirect, to avoid a break.", "Keep v1 rather than a redirect", "to avoid a break"),
        ("We decided to pin numpy.", "Pin numpy", ""),
        ("TTL이 필요하기 때문에 Redis를 쓰기로 했다.", "Redis를 쓰기로 했다", "TTL이 필요하기 때문에"),
        ("Redis를 쓰기로 했다. 이유는 TTL이 필요해서다.", "Redis를 쓰기로 했다", "TTL이 필요해서다"),
        ("번들이 작아서 express 대신 hono를 사용합니다.", "express 대신 hono를 사용합니다", "번들이 작아서"),
        ("충돌을 피하려고 낙관적 잠금을 채택했습니다.", "낙관적 잠금을 채택했습니다", "충돌을 피하려고"),
    ],
)
def test_a_sentence_says_a_choice_and_why(text, what, why):
    [choice] = choices_in(text)
    assert (choice.what, choice.why, choice.lasts) == (what, why, True)


@pytest.mark.parametrize(
    "text",
    [
        "The scheduler decided to drop the packet.",
        "The test got 200 instead of 404.",
        "It returned None instead of raising.",
        "Should we go with Postgres?",
        "If we decided to use Kafka, it would be slow.",
        "We have not decided yet whether to cache.",
        "Trying tomli instead of toml.",
        "Switched to the main branch.",
        "Redis를 쓸지 아직 결정하지 못했다.",
        "캐시를 쓰기로 할까?",
        "a, decided to " * 2_000,
    ],
)
def test_questions_bugs_and_attempts_are_no_choices(text):
    assert choices_in(text) == []


@pytest.mark.parametrize("text", ["Run the tests first", "We decided to fix the test", "먼저 로그를 확인하기로 했다"])
def test_the_next_step_of_a_task_is_no_choice_that_lasts(text):
    assert not choice_of(text, "I need a baseline").lasts

"""Pivots, plans and line counts of working memory; the tools of core memory, and what a replacement does to entries."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mnemarch.errors import InvalidInput
from mnemarch.learning.core import _replaced, _said, checked_arguments, schemas
from mnemarch.learning.working import LineChanges, Pivot, Step, StepDecision, WorkingMemoryManager

SECTIONS = ("human", "project")


def steps(*errors: int, count: int = 30) -> list[Step]:
    return [Step(n, "step", f"step {n}", "broke" if n in errors else "", {}) for n in range(1, count + 1)]


@pytest.mark.parametrize(
    ("errors", "pivots"),
    [((), []), ((3,), []), ((3, 8), []), ((3, 9), [3]), ((1, 2, 8, 20), [2, 8]), ((1, 7, 13), [1, 7])],
)
def test_m8_errors_more_than_five_steps_apart_are_a_change_of_strategy(errors, pivots):
    assert WorkingMemoryManager._extract_pivots(steps(*errors), []) == tuple(
        Pivot(number, "Strategy change after errors", "Recovered from error sequence") for number in pivots
    )


def test_m8_every_decision_is_a_pivot_with_the_beginning_of_its_words():
    decision = StepDecision("d" * 80, "왜" * 200, {"current_step": 4})
    pivots = WorkingMemoryManager._extract_pivots(steps(1, 9), [decision])
    assert [pivot.step_number for pivot in pivots] == [1, 4]
    assert pivots[1] == Pivot(4, "Decision: " + "d" * 50, "왜" * 100)


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        ({"before": "a\nb", "after": "a\nc\nd"}, LineChanges(2, 1, 1, 0)),
        ({"before": "a\nb\nc\n", "after": "x\n"}, LineChanges(1, 3, 0, 2)),
        ({"before": "a", "after": "b"}, LineChanges(1, 1, 0, 0)),
        ({"after": "a\nb\n"}, LineChanges(2, 0, 2, 0)),
        ({"patch": "--- a\n+++ b\n@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n"}, LineChanges(2, 1, 1, 0)),
    ],
)
def test_m9_the_formula_and_the_real_diff_are_two_numbers(data, lines):
    edit = Step(1, "edit", "changed it", "", {"path": "src/a.py"} | data)
    assert WorkingMemoryManager._calculate_line_changes([edit, *steps()]) == lines
    told = WorkingMemoryManager._generate_patch_description([edit], lines)
    assert told == f"1 edit, +{lines.added} -{lines.removed} lines: src/a.py"


def test_the_last_plan_is_told_in_one_line():
    logged = [("plan", {"text": "old"}), ("plan", {"text": " read\n\n고친다\n"}), ("step", {"text": "x"})]
    assert WorkingMemoryManager._extract_plan_summary(logged) == "read; 고친다"
    assert len(WorkingMemoryManager._extract_plan_summary([("plan", {"text": "far " * 200})])) == 200
    assert WorkingMemoryManager._extract_plan_summary([]) == ""


# The tools


def test_both_styles_describe_the_same_five_tools():
    openai = [tool["function"] for tool in schemas("openai", SECTIONS)]
    anthropic = schemas("anthropic", SECTIONS)
    assert [tool["name"] for tool in openai] == [
        "core_memory_append",
        "core_memory_replace",
        "archival_memory_insert",
        "archival_memory_search",
        "conversation_search",
    ]
    for left, right in zip(openai, anthropic, strict=True):
        assert set(right) == {"name", "description", "input_schema"}
        assert left == {"name": right["name"], "description": right["description"], "parameters": right["input_schema"]}
        schema = right["input_schema"]
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        assert set(schema["required"]) <= schema["properties"].keys()
        assert all(field["description"].endswith(".") for field in schema["properties"].values())
    assert anthropic[0]["input_schema"]["properties"]["section"]["enum"] == list(SECTIONS)
    with pytest.raises(InvalidInput, match="not a style"):
        schemas("gemini", SECTIONS)


def test_what_a_caller_does_to_the_schemas_stays_with_the_caller():
    schemas("anthropic", SECTIONS)[0]["input_schema"]["required"].clear()
    assert schemas("anthropic", SECTIONS)[0]["input_schema"]["required"] == ["section", "content"]


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("core_memory_forget", {}, "no tool"),
        ("core_memory_append", '{"section": ', "not JSON"),
        ("core_memory_append", "[" * 100_000, "not JSON"),
        ("core_memory_append", ["human"], "object"),
        ("core_memory_append", {"section": "human"}, "needs content"),
        ("conversation_search", {"query": "x", "limit": 3}, "has no field limit"),
        ("conversation_search", {"query": "x", "page": "1"}, "must be an integer"),
        ("conversation_search", {"query": "x", "page": True}, "must be an integer"),
        ("archival_memory_insert", {"content": None}, "must be a string"),
    ],
)
def test_a_wrong_call_is_told_what_would_be_right(name, arguments, says):
    with pytest.raises(InvalidInput, match=says) as refused:
        checked_arguments(name, arguments)
    assert refused.value.hint.startswith("Call ")


def entries(texts: list[str]) -> list[SimpleNamespace]:
    return [SimpleNamespace(content=text, attributes={}) for text in texts]


@given(st.lists(st.text("ab가", min_size=1, max_size=4), min_size=1, max_size=4), st.data())
def test_a_replacement_changes_what_it_names_and_keeps_the_rest(texts, data):
    part, whole = entries(texts), "\n".join(texts)
    start = data.draw(st.integers(0, len(whole) - 1))
    old = whole[start : data.draw(st.integers(start + 1, len(whole)))]
    assume(sum(whole.startswith(old, at) for at in range(len(whole))) == 1)
    new = data.draw(st.text("xy", min_size=1, max_size=3))
    text, replaced = _replaced("human", part, old, new)
    first = next(place for place, each in enumerate(part) if each is replaced[0])
    left = [*part[:first], *entries([text]), *part[first + len(replaced) :]]
    assert _said(left) == whole.replace(old, new)


@given(st.lists(st.text("ab", min_size=1, max_size=4), max_size=4), st.text("ab", min_size=1, max_size=2))
def test_a_text_that_does_not_occur_exactly_once_is_not_replaced(texts, old):
    whole = "\n".join(texts)
    assume(sum(whole.startswith(old, at) for at in range(len(whole))) != 1)
    with pytest.raises(InvalidInput, match=r"no text|times, not once"):
        _replaced("human", entries(texts), old, "new")

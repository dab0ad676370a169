"""An agent of Pydantic AI with the tools of a seat; a function plays the model."""

from __future__ import annotations

import asyncio

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

import mnemarch
from mnemarch import Actor, InvalidInput, Scope
from mnemarch.interfaces import tools
from mnemarch.interfaces.pydantic_ai import toolset


@pytest.fixture
def seat(memory):
    return memory.seat(Actor.agent("planner"), Scope(project="shop", worktree="main", task="T-1"))


def answers(seat, *calls, **options):
    """The model's tool results, and the tools that it was offered."""
    seen, names = [], []

    def model(messages, info):
        names[:] = [tool.name for tool in info.function_tools]
        seen.extend(part for part in messages[-1].parts if isinstance(part, ToolReturnPart))
        if len(seen) == len(calls):
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart(*calls[len(seen)])])

    asyncio.run(Agent(FunctionModel(model), toolsets=[toolset(seat, **options)], retries=3).run("go"))
    return seen, names


def test_what_a_tool_stored_another_tool_finds(seat):
    stored, found = answers(
        seat,
        ("remember", {"content": "결제는 세 번 재시도한다"}),
        ("recall", {"query": "결제 재시도"}),
    )[0]
    assert stored.content.startswith("stored")
    assert "결제는 세 번 재시도한다" in found.content
    assert "<mnemarch-memory" in found.content
    assert str(seat.units()[0].provenance[0].actor) == "agent:planner"


def test_every_tool_of_a_profile_is_offered_and_a_denial_wins(seat):
    read = set(tools.tools_for("read"))
    assert set(answers(seat, profile="read", denied=["recall"])[1]) == read - {"recall"}
    assert set(answers(seat)[1]) == set(tools.tools_for("work"))
    with pytest.raises(InvalidInput):
        toolset(seat, profile="everything")


def test_a_wrong_call_is_explained_to_the_model_and_the_session_continues(seat):
    wrong, unknown, right = answers(
        seat, ("recall", {}), ("explain", {"id": "abcdef12"}), ("log", {"kind": "note", "text": "x"})
    )[0]
    assert (wrong.outcome, unknown.outcome, right.outcome) == ("retried", "retried", "success")
    assert "recall needs query" in wrong.content
    assert "abcdef12" in unknown.content


def test_a_store_that_fails_ends_the_run(tmp_path):
    with mnemarch.open(tmp_path) as memory:
        seat = memory.seat(Actor.agent("planner"), Scope(project="shop", worktree="main"))
    with pytest.raises((mnemarch.StoreError, UnexpectedModelBehavior)) as raised:
        answers(seat, ("log", {"kind": "note", "text": "x"}))
    assert isinstance(raised.value, mnemarch.StoreError)

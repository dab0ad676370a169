"""`toolset`: the tools of a seat for an agent of Pydantic AI.

from mnemarch.interfaces.pydantic_ai import toolset

agent = Agent(model, toolsets=[toolset(seat)])
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from pydantic_ai import ModelRetry, Tool
from pydantic_ai.toolsets import FunctionToolset

from mnemarch.errors import MnemarchError, StoreError
from mnemarch.interfaces import tools
from mnemarch.interfaces.command import Call
from mnemarch.model.value import Frozen
from mnemarch.seat import Seat


class _Asked(Frozen):
    """The part of a call that a tool needs."""

    seat: Seat
    arguments: dict[str, Any]


def toolset(seat: Seat, *, profile: str = "work", denied: Iterable[str] = ()) -> FunctionToolset[Any]:
    """The tools of a profile, as `mnemarch mcp` offers them. Each acts as the seat's actor."""
    offered = tools.tools_for(profile, denied)
    return FunctionToolset([_tool(seat, each) for each in offered.values()], id="mnemarch")


def _tool(seat: Seat, tool: tools.Tool) -> Tool[Any]:
    def run(**arguments: Any) -> str:
        asked = _Asked(seat, tools.checked(tool, arguments))
        return tools.called(tool, cast("Call", asked)).text

    def told(**arguments: Any) -> str:
        """Run the tool. The model gets the errors that it can correct; only an error of the store ends the run."""
        try:
            return run(**arguments)
        except StoreError:
            raise
        except MnemarchError as error:
            raise ModelRetry(f"{error.message} {error.hint_for('tool')}".strip()) from error

    return Tool.from_schema(told, tool.name, tool.says, tool.input_schema)

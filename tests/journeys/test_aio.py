"""The verbs as coroutines."""

import asyncio
import inspect
import re
from pathlib import Path
from types import FunctionType

import pytest
import typed_program

import mnemarch.aio
from mnemarch import Actor, InvalidInput, Memory, Scope, Seat
from mnemarch.decisions import Decisions
from mnemarch.graph import MemoryOrchestrator
from mnemarch.learning import CodeRules, CoreMemory, EpisodicMemoryManager, SemanticMemoryManager, WorkingMemoryManager
from mnemarch.loops import CircularFixDetector


def test_the_same_verbs_work_awaited(tmp_path):
    found, check = asyncio.run(typed_program.journey(str(tmp_path)))
    assert "Checkout retries three times" in [item.unit.content for item in found.items]
    assert check.ok


def test_many_at_once_are_all_kept(tmp_path):
    async def journey():
        async with mnemarch.aio.open(tmp_path) as memory:
            seat = memory.seat(Actor.agent("coder-1"), Scope(project="shop", task="T-1"))
            assert (seat.actor.id, seat.scope.task, memory.config.project) == ("coder-1", "T-1", None)
            return await asyncio.gather(*(seat.log("thought", f"step {number}") for number in range(20)))

    assert sorted(receipt.seq for receipt in asyncio.run(journey())) == list(range(1, 21))


def test_it_can_be_opened_by_awaiting_and_is_closed_at_the_end(tmp_path):
    async def journey():
        async with await typed_program.opened_by_await(str(tmp_path)) as memory:
            await memory.seat(Actor.agent("a"), Scope(project="p")).log("thought", "x")
        return memory

    memory = asyncio.run(journey())
    with pytest.raises(mnemarch.StoreUnavailable):
        asyncio.run(memory.stats())


def test_an_error_comes_out_of_the_await(tmp_path):
    async def journey():
        async with mnemarch.aio.open(tmp_path) as memory:
            await memory.seat(Actor.agent("a"), Scope(project="p")).log("thought", "")

    with pytest.raises(InvalidInput):
        asyncio.run(journey())


def test_a_notebook_shows_the_verbs_and_their_parameters(tmp_path):
    async def journey():
        async with mnemarch.aio.open(tmp_path) as memory:
            return memory, memory.seat(Actor.agent("a"), Scope(project="p"))

    memory, seat = asyncio.run(journey())
    assert {"remember", "decisions"} <= set(dir(seat))
    assert {"seat", "stats"} <= set(dir(memory))
    assert inspect.signature(seat.recall).parameters.keys() >= {"query", "k"}
    assert inspect.iscoroutinefunction(seat.recall)


STUB = Path(mnemarch.aio.__file__).with_suffix(".pyi")
WRAPPERS = {
    "AsyncMemory": Memory,
    "AsyncSeat": Seat,
    "AsyncDecisions": Decisions,
    "AsyncLoops": CircularFixDetector,
    "AsyncGraph": MemoryOrchestrator,
    "AsyncWorking": WorkingMemoryManager,
    "AsyncCore": CoreMemory,
    "AsyncRules": CodeRules,
    "AsyncEpisodes": EpisodicMemoryManager,
    "AsyncKnowledge": SemanticMemoryManager,
}
NOT_AWAITED = {"seat", "counting", "settle", "nominated", "running_session"}


def verbs_of(wrapped):
    found = inspect.getmembers_static(wrapped, lambda item: isinstance(item, FunctionType | staticmethod))
    return [name for name, _ in found if not name.startswith("_") and name not in NOT_AWAITED]


def declared(wrapped):
    """A verb a line, as type checkers are told of it; one that takes no `self` is its own function."""
    static = {name for name in verbs_of(wrapped) if isinstance(inspect.getattr_static(wrapped, name), staticmethod)}
    names = [(name, "_Awaited" if name in static else "_awaited") for name in verbs_of(wrapped)]
    return "".join(f"    {name} = {how}({wrapped.__name__}.{name})\n" for name, how in names)


def test_type_checkers_are_told_of_every_verb(pytestconfig):
    stub = STUB.read_text(encoding="utf-8")
    made = stub
    for wrapper, wrapped in WRAPPERS.items():
        lists = rf"(?<=^class {wrapper}:\n)((?:    .*\n)*?)(?:    \w+ = _[Aa]waited\(.*\n)+"
        made = re.sub(lists, lambda at, wrapped=wrapped: at[1] + declared(wrapped), made, flags=re.MULTILINE)
    if pytestconfig.getoption("--rewrite"):
        STUB.write_text(made, encoding="utf-8")
    assert made == stub, "its lists are made anew with --rewrite"


def test_every_verb_is_a_coroutine_function():
    memory = mnemarch.aio.AsyncMemory(mnemarch.open(":memory:"))
    seat = memory.seat(Actor.agent("a"), Scope(project="p"))
    for wrapper, wrapped in WRAPPERS.items():
        system = wrapper.removeprefix("Async").lower()
        holder = {"memory": memory, "seat": seat}.get(system) or getattr(seat, system)
        assert type(holder).__name__ == wrapper
        assert [name for name in verbs_of(wrapped) if not inspect.iscoroutinefunction(getattr(holder, name))] == []

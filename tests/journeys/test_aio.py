"""The verbs as coroutines."""

import ast
import asyncio
import inspect
from pathlib import Path

import pytest
import typed_program

import mnemarch.aio
from mnemarch import Actor, InvalidInput, Memory, Scope, Seat
from mnemarch.decisions import Decisions
from mnemarch.graph import MemoryOrchestrator
from mnemarch.learning import CoreMemory, WorkingMemoryManager
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


WRAPPERS = {
    "AsyncMemory": Memory,
    "AsyncSeat": Seat,
    "AsyncDecisions": Decisions,
    "AsyncLoops": CircularFixDetector,
    "AsyncGraph": MemoryOrchestrator,
    "AsyncWorking": WorkingMemoryManager,
    "AsyncCore": CoreMemory,
}
NOT_AWAITED = {"seat", "counting", "settle", "nominated", "running_session"}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_every_verb_is_declared_to_type_checkers(wrapper):
    names = [name for name, _ in inspect.getmembers(WRAPPERS[wrapper], inspect.isfunction) if not name.startswith("_")]
    tree = ast.parse(Path(mnemarch.aio.__file__).read_text(encoding="utf-8"))
    (body,) = [node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == wrapper]
    (declared,) = [node.body for node in body if isinstance(node, ast.If)]
    assert sorted(line.targets[0].id for line in declared) == sorted(set(names) - NOT_AWAITED)
    for line in declared:
        assert ast.unparse(line.value.args[0]) == f"{WRAPPERS[wrapper].__name__}.{line.targets[0].id}"


def test_every_verb_is_a_coroutine_function():
    memory = mnemarch.aio.AsyncMemory(mnemarch.open(":memory:"))
    seat = memory.seat(Actor.agent("a"), Scope(project="p"))
    for holder, verbs in (
        (memory, Memory),
        (seat, Seat),
        (seat.decisions, Decisions),
        (seat.graph, MemoryOrchestrator),
        (seat.working, WorkingMemoryManager),
        (seat.core, CoreMemory),
    ):
        for name, _ in inspect.getmembers(verbs, inspect.isfunction):
            if not name.startswith("_") and name not in NOT_AWAITED:
                assert inspect.iscoroutinefunction(getattr(holder, name)), name

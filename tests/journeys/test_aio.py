"""The verbs as coroutines."""

import ast
import asyncio
import inspect
from pathlib import Path

import pytest
import typed_program

import mnemarch.aio
from mnemarch import Actor, InvalidInput, Scope
from mnemarch.verbs import VERBS


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


@pytest.mark.parametrize("owner", mnemarch.aio.WRAPPERS)
def test_every_verb_of_the_table_is_a_coroutine_function_and_is_declared_to_type_checkers(owner):
    wrapper = mnemarch.aio.WRAPPERS[owner]
    names = [verb.name.partition(".")[2] for verb in VERBS if verb.name.startswith(f"{owner}.")]
    assert all(inspect.iscoroutinefunction(getattr(wrapper, name)) for name in names)
    tree = ast.parse(Path(mnemarch.aio.__file__).read_text(encoding="utf-8"))
    (body,) = [node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == wrapper.__name__]
    (declared,) = [node.body for node in body if isinstance(node, ast.If)]
    assert [line.targets[0].id for line in declared] == names
    assert [line.value.args[0].attr for line in declared] == names

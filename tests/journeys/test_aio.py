"""The verbs as coroutines."""

import asyncio
import inspect

import pytest

import mnemarch.aio
from mnemarch import Actor, InvalidInput, Memory, Scope, Seat


def test_the_same_verbs_work_awaited(tmp_path):
    async def journey():
        async with await mnemarch.aio.open(tmp_path) as memory:
            seat = memory.seat(Actor.agent("coder-1"), Scope(project="shop", task="T-1"))
            receipts = await asyncio.gather(*(seat.log("thought", f"step {number}") for number in range(20)))
            stored = await seat.remember("Checkout retries three times")
            found = await seat.recall("how often does checkout retry?")
            check = await memory.audit()
            assert await seat.loops.get_failed_approaches() == []
            assert (await seat.fail("KeyError: 'total'")).type == "ALLOW"
            return receipts, stored, found, check

    receipts, stored, found, check = asyncio.run(journey())
    assert sorted(receipt.seq for receipt in receipts) == list(range(1, 21))
    assert found.items[0].unit.id == stored.unit.id
    assert check.ok


def test_an_error_comes_out_of_the_await(tmp_path):
    async def journey():
        async with await mnemarch.aio.open(tmp_path) as memory:
            await memory.seat(Actor.agent("a"), Scope(project="p")).log("thought", "")

    with pytest.raises(InvalidInput):
        asyncio.run(journey())


def test_every_verb_is_a_coroutine_function():
    memory = mnemarch.aio.AsyncMemory(mnemarch.open(":memory:"))
    seat = memory.seat(Actor.agent("a"), Scope(project="p"))
    for wrapper, cls in ((memory, Memory), (seat, Seat)):
        for name, _ in inspect.getmembers(cls, inspect.isfunction):
            if not name.startswith("_") and name != "seat":
                assert inspect.iscoroutinefunction(getattr(wrapper, name)), name

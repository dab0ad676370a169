"""A program as a user writes it. mypy checks it with the package, so these types can't drift; a test runs it."""

from __future__ import annotations

from typing import assert_type

import mnemarch.aio
from mnemarch import Actor, Decision, Event, Found, LoopVerdict, Promotion, Receipt, Refused, Scope, Stored, Unit
from mnemarch.graph import GraphHit
from mnemarch.model.outcome import LogCheck


async def journey(folder: str) -> tuple[Found, LogCheck]:
    async with mnemarch.aio.open(folder) as memory:
        assert_type(memory, mnemarch.aio.AsyncMemory)
        seat = memory.seat(Actor.agent("coder-1"), Scope(project="shop", task="T-1"), session="s-1")
        assert_type(await seat.log("thought", "step 1", data={"step": 1}), Receipt)
        stored = await seat.remember("Checkout retries three times", kind="fact", importance=0.9)
        assert_type(stored, Stored | Refused)
        assert_type(await seat.fail("KeyError: 'total'", approach="add a key"), LoopVerdict)
        assert_type(await seat.verify(True, tests=["t.py::test_retry"]), Promotion)
        assert_type(await seat.units(limit=5), list[Unit])
        assert_type(await seat.loops.stuck_reason(), str | None)
        assert_type(await seat.loops.hash_error("KeyError: 'total'"), str)
        assert_type(await seat.decisions.active("coding"), list[Decision])
        await seat.graph.upsert_query("s-1", "how often does checkout retry?")
        assert_type(await seat.graph.search("s-1", "checkout"), list[GraphHit])
        found = await seat.recall("how often does checkout retry?", k=3)
        assert_type(found, Found)
        check = await memory.audit()
        assert_type(check, LogCheck)
        # What the synchronous verb does not take, this one does not take either.
        wrong = seat.recall("x", depth=3)  # type: ignore[call-arg]
        wrong.close()
        return found, check


async def opened_by_await(folder: str) -> mnemarch.aio.AsyncMemory:
    return await mnemarch.aio.open(folder)


def connected(url: str, token: str) -> Found:
    with mnemarch.connect(url, token) as memory:
        seat = memory.seat(worktree="main", task="T-1", session="s-1")
        assert_type(seat.log("thought", "step 1"), Receipt)
        assert_type(seat.decisions.active("coding"), list[Decision])
        assert_type(memory.audit(), LogCheck)
        for event in memory.follow(worktree="main", task="T-1", after=0):
            assert_type(event, Event)
            break
        return seat.recall("how often does checkout retry?", k=3)

"""A conversation of the OpenAI Agents SDK in a memory, beside the SDK's own session."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

import mnemarch
from mnemarch import Actor, Scope

ITEMS = st.one_of(
    st.builds(lambda text: {"role": "user", "content": text}, st.sampled_from(["hello", "배포는 언제?", ""])),
    st.just({"role": "assistant", "content": [{"type": "output_text", "text": "On Tuesday."}]}),
    st.just({"type": "function_call", "call_id": "1", "name": "look", "arguments": "{}"}),
)
STEPS = st.one_of(
    st.tuples(st.just("add_items"), st.lists(ITEMS, max_size=4)),
    st.tuples(st.just("pop_item")),
    st.tuples(st.just("clear_session")),
    st.tuples(st.just("get_items"), st.sampled_from([None, 0, 1, 3, 50])),
)


def session_in(memory, name, **limits):
    # Imported here: every worker of a test run collects this file, and the SDK takes seconds to load.
    from agents.memory.session_settings import SessionSettings

    from mnemarch.interfaces.openai_agents import MnemarchSession

    return MnemarchSession(name, memory, project="shop", session_settings=SessionSettings(**limits))


@settings(max_examples=40, deadline=None)
@given(steps=st.lists(STEPS, max_size=12))
def test_every_operation_gives_what_the_sdks_own_session_gives(steps):
    from agents import SQLiteSession

    async def compared():
        with mnemarch.open(":memory:") as memory:
            ours, oracle = session_in(memory, "a.b%"), SQLiteSession("a.b%")
            other = session_in(memory, "a")
            for name, *given in (*steps, ("get_items",)):
                assert await getattr(ours, name)(*given) == await getattr(oracle, name)(*given), name
            assert await other.get_items() == []
            oracle.close()

    asyncio.run(compared())


def test_a_conversation_goes_on_in_another_process_and_an_agent_finds_what_was_said(tmp_path):
    async def first():
        with mnemarch.open(tmp_path) as memory:
            session = session_in(memory, "support")
            await session.add_items([{"role": "user", "content": f"Parcel {number} is late"} for number in range(6)])

    async def second():
        with mnemarch.open(tmp_path) as memory:
            session = session_in(memory, "support", limit=2)
            seat = memory.seat(Actor.agent("a"), Scope(project="shop", worktree="conversations", task="support"))
            return await session.get_items(), seat.recall("which parcel is late", k=1).items

    asyncio.run(first())
    turns, recalled = asyncio.run(second())
    assert [turn["content"] for turn in turns] == ["Parcel 4 is late", "Parcel 5 is late"]
    assert recalled[0].unit.content.endswith("is late")

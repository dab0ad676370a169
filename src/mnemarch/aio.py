"""The same verbs for async callers, each in a worker thread: derived from the synchronous classes."""

from __future__ import annotations

import asyncio
import functools

from mnemarch import wiring

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

    from mnemarch.memory import Memory
    from mnemarch.seat import Seat


class _Awaitable:
    """Gives every public verb of what it wraps as a coroutine."""

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._wrapped, name)
        if name.startswith("_") or not callable(found):
            return found
        return _awaitable(found)


def _awaitable(verb: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(verb)
    async def call(*arguments: Any, **named: Any) -> Any:
        return await asyncio.to_thread(verb, *arguments, **named)

    return call


class AsyncSeat(_Awaitable):
    """A seat whose verbs are coroutines."""

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)

    @property
    def loops(self) -> _Awaitable:
        return _Awaitable(self._wrapped.loops)

    @property
    def decisions(self) -> _Awaitable:
        return _Awaitable(self._wrapped.decisions)

    @property
    def graph(self) -> _Awaitable:
        return _Awaitable(self._wrapped.graph)


class AsyncMemory(_Awaitable):
    """A memory whose verbs are coroutines; use it with `async with`."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)

    def seat(self, *arguments: Any, **named: Any) -> AsyncSeat:
        """Taking a seat does no work, so it is not awaited."""
        return AsyncSeat(self._wrapped.seat(*arguments, **named))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self._wrapped.close)


async def open(*arguments: Any, **named: Any) -> AsyncMemory:
    """`mnemarch.open`, awaited."""
    return AsyncMemory(await asyncio.to_thread(wiring.open, *arguments, **named))

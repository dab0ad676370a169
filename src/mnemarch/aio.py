"""The same verbs for async callers. Each is a coroutine that runs the verb in a worker thread.

Type checkers read `aio.pyi`, which a test generates from the wrapped classes.
"""

from __future__ import annotations

import asyncio
from functools import wraps

from mnemarch import wiring


class _Wrapper:
    """Wraps an object: each of its verbs becomes a coroutine."""

    def __init__(self, wrapped):
        self._wrapped = wrapped

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        verb = getattr(self._wrapped, name)
        if not callable(verb):
            return verb

        @wraps(verb)
        async def call(*positional, **named):
            return await asyncio.to_thread(verb, *positional, **named)

        return call

    def __dir__(self):
        return sorted({*super().__dir__(), *(name for name in dir(self._wrapped) if not name.startswith("_"))})


# One class for each system of a seat, with the names in the stubs.
_NAMES = ("decisions", "loops", "graph", "working", "core", "rules", "episodes", "knowledge")
_SYSTEMS = {name: type(f"Async{name.capitalize()}", (_Wrapper,), {}) for name in _NAMES}
globals().update({each.__name__: each for each in _SYSTEMS.values()})


class AsyncSeat(_Wrapper):
    """A seat whose verbs are coroutines, and whose systems are wrapped in the same way."""

    def __getattr__(self, name):
        return _SYSTEMS[name](getattr(self._wrapped, name)) if name in _SYSTEMS else super().__getattr__(name)


class AsyncMemory(_Wrapper):
    """A memory whose verbs are coroutines. Use it with `async with`."""

    def seat(self, actor, scope, *, session=None, root=None):
        """A seat whose verbs are coroutines. Not a coroutine itself, since it does no work."""
        return AsyncSeat(self._wrapped.seat(actor, scope, session=session, root=root))

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await asyncio.to_thread(self._wrapped.close)


class _Opening:
    """A memory that is being opened. Await it, or enter it with `async with`."""

    def __init__(self, work):
        self._work = work
        self._memory = None

    def __await__(self):
        return self._opened().__await__()

    async def _opened(self):
        self._memory = AsyncMemory(await asyncio.to_thread(self._work))
        return self._memory

    async def __aenter__(self):
        return await self._opened()

    async def __aexit__(self, *details):
        if self._memory is not None:
            await self._memory.__aexit__(*details)


def open(target=None, *, vectors=None, config=None, clock=None):
    """Open a memory like `mnemarch.open`, with `async with` or `await`."""
    return _Opening(lambda: wiring.open(target, vectors=vectors, config=config, clock=clock))

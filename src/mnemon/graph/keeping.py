"""How the changes of a graph are kept: not at all, or by whoever implements the same two verbs."""

from __future__ import annotations

from mnemon.model import instant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from typing import Protocol, TypeVar

    from mnemon.graph.store import GraphStore

    T = TypeVar("T")

    class Keeper(Protocol):
        """Where graphs live."""

        def now(self) -> int: ...
        def change(self, stores: Sequence[GraphStore], act: str, work: Callable[[int], T]) -> T:
            """Run `work` at one moment; what it changes in these graphs is kept as one act, or nothing is."""

        def catch_up(self, store: GraphStore) -> None:
            """Bring a graph up to what others made of it."""


class Unkept:
    """Graphs that live in this process only."""

    def __init__(self, clock: Callable[[], datetime] | None = None) -> None:
        self._clock = clock or instant.now

    def now(self) -> int:
        return instant.micros(self._clock())

    def change(self, stores: Sequence[GraphStore], act: str, work: Callable[[int], T]) -> T:  # noqa: ARG002
        # An act on one graph is refused before it changes anything; one on two may fail after it changed the first.
        before = [store.retold() for store in stores] if len(stores) > 1 else []
        try:
            return work(self.now())
        except BaseException:
            for store, steps in zip(stores, before, strict=False):
                if store.has_steps:
                    store.forget()
                    store.take(steps)
            raise
        finally:
            for store in stores:
                store.take_steps()

    def catch_up(self, store: GraphStore) -> None:
        """There are no others."""

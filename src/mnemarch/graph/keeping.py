"""How the changes of a graph are kept: not at all, or by whoever implements the same two verbs."""

from __future__ import annotations

from mnemarch.model import stamps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from typing import Protocol, TypeVar

    from mnemarch.graph.held import Held

    T = TypeVar("T")

    class Keeper(Protocol):
        """Where graphs live."""

        def now(self) -> int: ...
        def change(self, graphs: Sequence[Held], act: str, work: Callable[[int], T]) -> T:
            """Run `work` at one moment; what it changes in these graphs is kept as one act, or nothing is."""

        def catch_up(self, graph: Held) -> None:
            """Bring a graph up to what others made of it."""


class Unkept:
    """Graphs that live in this process only."""

    def __init__(self, clock: Callable[[], datetime] | None = None) -> None:
        self._clock = clock or stamps.now

    def now(self) -> int:
        return stamps.micros(self._clock())

    def change(self, graphs: Sequence[Held], act: str, work: Callable[[int], T]) -> T:  # noqa: ARG002
        # An act on one graph is refused before it changes anything; one on two may fail after it changed the first.
        before = [graph.retold() for graph in graphs] if len(graphs) > 1 else []
        try:
            return work(self.now())
        except BaseException:
            for graph, steps in zip(graphs, before, strict=False):
                if graph.has_steps:
                    graph.forget()
                    graph.take(steps)
            raise
        finally:
            for graph in graphs:
                graph.take_steps()

    def catch_up(self, graph: Held) -> None:
        """There are no others."""

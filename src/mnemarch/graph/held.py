"""A graph in somebody's hands: one act at a time, each at one moment, and kept by whoever keeps it.

What it is for users is in `store`; here is what keepers and orchestrators need of it.
"""

from __future__ import annotations

from copy import deepcopy
from threading import RLock

from mnemarch.errors import Hint, InvalidInput, NotFound
from mnemarch.graph.engine import Engine
from mnemarch.graph.node import NodeType
from mnemarch.graph.state import GraphState
from mnemarch.text.mentions import Mentions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    from mnemarch.graph.keeping import Keeper
    from mnemarch.graph.measure import Measure
    from mnemarch.graph.state import Step
    from mnemarch.policy.heat import GraphConfig

    T = TypeVar("T")


class Ended(NotFound):
    """The session whose graph this is has ended."""


class Held:
    """An engine that threads share, with its keeper. `revision` grows with every change."""

    def __init__(self, config: GraphConfig, measure: Measure, keeper: Keeper) -> None:
        self._config = config
        self._measure = measure
        self._lock = RLock()
        # When the act that is under way happens.
        self._moment: int | None = None
        self.keeper = keeper
        self.revision = 0
        self.engine = self._empty()

    def _empty(self) -> Engine:
        return Engine(self._config, self._measure, GraphState())

    @property
    def _state(self) -> GraphState:
        return self.engine.state

    # Acts

    def change(self, act: str, work: Callable[[int], T]) -> T:
        """Run `work` as one act, or as part of the one that is under way; gives it the time."""

        def timely(now: int) -> T:
            if self._state.closed:
                raise Ended("The session of this graph has ended.", hint=Hint("begin another session"))
            self.engine.wear_if_due(now)
            return work(now)

        with self._lock:
            return work(self._moment) if self._moment is not None else _together((self,), act, timely)

    def reading(self) -> _Reading:
        """The graph held still, up to date with what others made of it; gives the time. To be used with `with`."""
        return _Reading(self)

    def become(self, state: GraphState, now: int) -> None:
        """Take over another state, as far as there is room, as part of an act."""
        before = self.engine
        self.engine = self._empty()
        self._state.clear()
        for step in state.retold():
            self._state.take(step)
        for vertex in state.nodes.values():
            self._state.nodes[vertex.id].vector = vertex.vector
        for session, at in before.state.sessions.items():
            self._state.begin(session, at)
        try:
            self.engine.shrink(now)
        except InvalidInput:
            self.engine = before
            raise

    # Sessions, of which an agent's graph knows which are under way

    def sessions(self) -> dict[str, int]:
        """The sessions that were begun and not ended, and when."""
        with self.reading():
            return dict(self._state.sessions)

    def begin_session(self, session: str, graph: Held) -> None:
        """Begin a session, or begin it again."""

        def run(now: int) -> None:
            self._state.begin(session, now)
            if graph._state.closed:
                graph._state.close(False)

        with self._lock, graph._lock:
            _together((self, graph), "began", run)

    def end_session(self, session: str, graph: Held, work: Callable[[Engine, Engine, int], T]) -> T:
        """Do `work` with the session's graph and this one, and end the session, all in one act."""

        def run(now: int) -> T:
            done = work(graph.engine, self.engine, now)
            graph._state.clear()
            graph._state.close(True)
            self._state.end(session)
            return done

        with self._lock, graph._lock:
            return _together((self, graph), "ended", run)

    # For whoever orchestrates

    def last_access(self) -> int | None:
        """When anything here was last touched; None if there is nothing."""
        with self.reading():
            return max((vertex.last for vertex in self._state.nodes.values()), default=None)

    def has(self, id: str) -> bool:
        given: Any = id
        with self.reading():
            return isinstance(given, str) and id in self._state.nodes

    def query_text(self, id: str) -> str | None:
        """What a question says; None if there is none of this id."""
        given: Any = id
        with self.reading():
            found = self._state.nodes.get(id) if isinstance(given, str) else None
            return found.text if found is not None and found.type is NodeType.QUERY else None

    def entities_in(self, text: str) -> list[tuple[dict[str, Any], str | None]]:
        """The entities that a text mentions: what is known of each, and its text."""
        with self.reading():
            found = [self._state.nodes[id] for id in self.engine.named_in(text)]
            return [(deepcopy(entity.about), entity.text) for entity in found]

    def bring_entity(self, about: Mapping[str, Any], text: str | None) -> str:
        """Have an entity of another graph here too, with all its names and all who named it."""
        return self.change("named", lambda now: self.engine.bring(about, text, now))

    def mentions_any(self, names: Sequence[str]) -> bool:
        """Whether a question here mentions something of these names."""
        wanted = Mentions()
        wanted.add("", names)
        with self.reading():
            return any(wanted.found_in(query.text or "") for query in self._state.of_type(NodeType.QUERY))

    # For whoever keeps it

    @property
    def size(self) -> int:
        """The number of nodes as last known."""
        return len(self._state.nodes)

    @property
    def has_steps(self) -> bool:
        """Whether the act under way changed anything so far."""
        return bool(self._state.steps)

    def take_steps(self) -> list[Step]:
        """The steps since the last call."""
        steps, self._state.steps = self._state.steps, []
        self.revision += bool(steps)
        return steps

    def take(self, steps: Sequence[Step]) -> None:
        """Take steps that were recorded before."""
        for step in steps:
            self._state.take(step)
        self.take_steps()

    def retold(self) -> list[Step]:
        """The steps that make this graph from nothing."""
        return self._state.retold()

    def forget(self) -> None:
        """Be empty, as before the first step."""
        self.engine = self._empty()
        self.revision += 1


class _Reading:
    __slots__ = ("_graph",)

    def __init__(self, graph: Held) -> None:
        self._graph = graph

    def __enter__(self) -> int:
        graph = self._graph
        graph._lock.acquire()
        try:
            if graph._moment is not None:
                return graph._moment
            graph.keeper.catch_up(graph)
            return graph.keeper.now()
        except BaseException:
            graph._lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        self._graph._lock.release()


def _together(graphs: Sequence[Held], act: str, work: Callable[[int], T]) -> T:
    """Run `work` as one act on several graphs, which the caller holds."""

    def run(now: int) -> T:
        for graph in graphs:
            graph._moment = now
        try:
            return work(now)
        finally:
            for graph in graphs:
                graph._moment = None

    return graphs[0].keeper.change(graphs, act, run)

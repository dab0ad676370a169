"""The base of every graph: its lock, its keeper, its vectors, and the room for nodes and edges (A23, A28).

Every change is an act: it has one time, and its keeper saves all of its steps or none.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import RLock

from mnemarch.errors import InvalidInput, NotFound
from mnemarch.forks import Forkable, is_mine, is_torn, watch
from mnemarch.graph import EmbeddingProvider, NodeType
from mnemarch.graph.search import NodeTable, unit_vector
from mnemarch.graph.state import MICROS_PER_MIN, Arc, GraphState, Vertex
from mnemarch.model import stamps
from mnemarch.policy.admission import checked_list, checked_name, checked_text
from mnemarch.policy.heat import EDGE_WEIGHT_MIN, FEEDBACK, GraphConfig
from mnemarch.text.canonical import canonical
from mnemarch.text.mentions import Mentions
from mnemarch.text.secrets import redacted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime
    from typing import Any, TypeVar

    from mnemarch.graph.state import About, Step, Vector

    T = TypeVar("T")

TEXT_BYTES_MAX = 65_536


class Ended(NotFound):
    """The session of this graph has ended."""


class Full(InvalidInput):
    """The graph is full, and nothing in it may be evicted."""


class Keeper:
    """Where graphs are saved. This one keeps them in this process only."""

    # Whether a graph can be read back at any time.
    reads_back = False

    def __init__(self, clock: Callable[[], datetime] | None = None) -> None:
        self._clock = clock or stamps.now

    def now(self) -> int:
        return stamps.micros(self._clock())

    def change(self, graphs: Sequence[Graph], act: str, work: Callable[[int], T]) -> T:  # noqa: ARG002
        """Run `work` at one time. A keeper that saves graphs saves all of its changes as one act, or none."""
        try:
            return work(self.now())
        finally:
            for graph in graphs:
                graph.take_steps()

    def catch_up(self, graph: Graph) -> None:
        """Bring a graph up to date with the changes of others."""

    def note_help(self, unit_ids: Sequence[str]) -> None:
        """Let the memory know that these units helped."""

    def read_anew(self, graph: Graph) -> None:
        """Read the graph back from its beginning, since an act was cut short in the middle."""


class Graph(Forkable):
    """A graph that threads share: one act at a time."""

    def __init__(self, config: GraphConfig, embedder: EmbeddingProvider, keeper: Keeper) -> None:
        self.config = config
        self.embedder = embedder
        self.keeper = keeper
        # Grows with every change.
        self.revision = 0
        # Of each file this graph was read from or written to: which file it was, and the revision.
        self.saved: dict[str, tuple[tuple[int, int, int] | None, int]] = {}
        # Nodes that the act under way needs: they are not evicted.
        self.keep: set[str] = set()
        self._lock = RLock()
        # The time of the act under way.
        self._now: int | None = None
        self._embedder_id: object = getattr(embedder, "id", None)
        self._set_state(GraphState())
        watch(self)

    def _rest(self) -> bool:
        """An act under way is waited for, unless a child can read the graph anew."""
        return self.keeper.reads_back or (not is_mine(self._lock) and self._lock.acquire(blocking=False))

    def _resume(self, *, in_child: bool, rested: bool) -> None:
        if rested and not self.keeper.reads_back:
            self._lock.release()
        elif in_child and is_torn(self._lock):
            self._now = None
            self.keep.clear()
            self.keeper.read_anew(self)

    def _set_state(self, state: GraphState) -> None:
        self.state = state
        self._table: NodeTable | None = None
        self.mentions = Mentions()
        for vertex in state.of_type(NodeType.ENTITY):
            self.mentions.add(vertex.id, vertex.about["names"])
        state.on_change = self._noted

    def _noted(self, vertex: Vertex, is_there: bool) -> None:
        if self._table is not None:
            self._table.note(vertex, is_there)
        if vertex.type is NodeType.ENTITY:
            if not is_there:
                self.mentions.remove(vertex.id)
            elif self.mentions.names_of(vertex.id) != vertex.about["names"]:
                self.mentions.add(vertex.id, vertex.about["names"])

    # Acts

    def change(self, act: str, work: Callable[[int], T]) -> T:
        """Run `work` as one act, or as part of the act under way; it is given the time."""

        def run(now: int) -> T:
            if self.state.closed:
                raise Ended("The session of this graph has ended.", hint="Begin another with upsert_query.")
            every_min, last = self.config.decay_every_min, self.state.decayed_at
            if every_min and (last is None or now - last >= every_min * MICROS_PER_MIN):
                self._wear(now)
            return work(now)

        with self._lock:
            return work(self._now) if self._now is not None else self._act((self,), act, run)

    def change_with(self, other: Graph, act: str, work: Callable[[int], T]) -> T:
        """Run `work` as one act on this graph and another."""
        with self._lock, other._lock:
            return self._act((self, other), act, work)

    def _act(self, graphs: Sequence[Graph], act: str, work: Callable[[int], T]) -> T:
        def run(now: int) -> T:
            for graph in graphs:
                graph._now = now
            try:
                return work(now)
            finally:
                for graph in graphs:
                    graph._now = None
                    graph.keep.clear()

        return self.keeper.change(graphs, act, run)

    @contextmanager
    def reading(self) -> Iterator[int]:
        """Lock the graph and bring it up to date; gives the time."""
        with self._lock:
            if self._now is None:
                self.keeper.catch_up(self)
            yield self.keeper.now() if self._now is None else self._now

    def has(self, id: Any) -> bool:
        """Whether there is a node with this id."""
        with self.reading():
            return isinstance(id, str) and id in self.state.nodes

    def sessions(self) -> dict[str, int]:
        """An agent's sessions under way, and when each began."""
        with self.reading():
            return dict(self.state.sessions)

    def take_steps(self) -> list[Step]:
        """The steps since the last call."""
        steps, self.state.steps = self.state.steps, []
        self.revision += bool(steps)
        return steps

    def replay(self, steps: Sequence[Step]) -> None:
        """Take recorded steps."""
        for step in steps:
            self.state.take(step)
        self.take_steps()

    def reset(self) -> None:
        """Be empty, as before the first step."""
        self._set_state(GraphState())
        self.revision += 1

    def _become(self, state: GraphState, now: int) -> None:
        """Take over another state, as far as there is room. Sessions under way stay."""
        self._check_embedder()
        before, new = self.state, GraphState()
        self._set_state(new)
        new.clear()
        for step in state.all_steps():
            new.take(step)
        for vertex in state.nodes.values():
            new.nodes[vertex.id].vector = vertex.vector
        for session, at in before.sessions.items():
            new.begin(session, at)
        try:
            while len(new.arcs) > self.config.max_edges:
                weakest = new.weakest_arc(lambda _: True)
                assert weakest is not None, "there are edges"
                new.cut(weakest.id)
            if len(new.nodes) > self.config.max_nodes:
                self._require_room_for_a_node()
                self._evict_down_to(self.config.max_nodes, now)
        except InvalidInput:
            self._set_state(before)
            raise

    def _wear(self, now: int) -> None:
        """Lower every weight for the time since the last wear; worn-out edges go (A24)."""
        self.state.wear(self.config.half_life_min, now)
        for arc_id in [arc.id for arc in self.state.arcs.values() if abs(arc.weight) < EDGE_WEIGHT_MIN]:
            self.state.cut(arc_id)

    # Nodes, and room for them

    def vertex(self, id: Any, type: NodeType | None = None) -> Vertex:
        """The node with this id, which must be of this type."""
        vertex = self.state.nodes.get(id) if isinstance(id, str) else None
        if vertex is None:
            raise NotFound(
                f"No node {id!r} in this graph.", hint="It may have been evicted: ask again with upsert_query."
            )
        if type is not None and vertex.type is not type:
            raise InvalidInput(f"Node {id} is of type {vertex.type}, not {type}.", hint=f"Give the id of a {type}.")
        return vertex

    def _new(
        self, type: NodeType, key: str, text: str | None, now: int, about: About, vector: Vector | None = None
    ) -> str:
        self._require_room_for_a_node()
        self._evict_down_to(self.config.max_nodes - 1, now)
        id = f"{type}:{key}"
        while id in self.state.nodes:
            id += "~"  # Another text with the same key.
        self.state.add(id, type, text, key, now, about, vector)
        self.state.weigh(id, 1.0, 0.0, now)
        return id

    def _may_go(self, id: str) -> bool:
        return id not in self.keep and not self.state.nodes[id].pinned

    def _require_room_for_a_node(self) -> None:
        nodes = self.state.nodes
        if len(nodes) >= self.config.max_nodes and not any(map(self._may_go, nodes)):
            full = f"The graph is full: all of its {len(nodes)} nodes are pinned or just being written."
            raise Full(full, hint="Raise max_nodes, or unpin some.")

    def _evict_down_to(self, count: int, now: int) -> None:
        """Evict the coldest nodes that are neither pinned nor protected by their edges.

        If all are protected, the weakest edges go until one is not.
        """
        while len(self.state.nodes) > count:
            coldest = self.table().coldest(now, self.keep)
            if coldest is not None:
                self.state.drop(coldest.id)
                continue
            weakest = self.state.weakest_arc(lambda arc: self._may_go(arc.from_) or self._may_go(arc.to))
            assert weakest is not None, "a protected node has edges"
            self.state.cut(weakest.id)

    def _edge_to_cut(self, *ends: str | None) -> Arc | None:
        """The edge to cut before one more is added; never one that would take one of the new edge's ends along."""
        if len(self.state.arcs) < self.config.max_edges:
            return None
        takes_along = self.state.takes_along
        weakest = self.state.weakest_arc(lambda arc: not (arc.to in ends and takes_along(arc)))
        if weakest is None:
            full = f"The graph has room for {self.config.max_edges} edges, and each holds a node that must stay."
            raise Full(full, hint="Raise max_edges.")
        return weakest

    # Vectors

    def table(self) -> NodeTable:
        """The nodes as arrays."""
        self._check_embedder()
        if self._table is None or self._table.is_worn:
            self._table = NodeTable(self.config, self.state.nodes.values(), self.vector_of)
        return self._table

    def _check_embedder(self) -> None:
        """An embedder that learnt something is another one. Vectors it made before are dropped (R18)."""
        if (id := getattr(self.embedder, "id", None)) != self._embedder_id:
            self._embedder_id = id
            self._table = None
            for vertex in self.state.nodes.values():
                vertex.vector = None

    def _vector(self, text: str) -> Vector:
        return unit_vector(self.embedder.embed(text))

    def vector_of(self, vertex: Vertex) -> Vector:
        """The vector of a question, made when it is first needed."""
        if vertex.vector is None:
            vertex.vector = self._vector(vertex.text or "")
        return vertex.vector


# What may be stored


def storable(text: str, what: str) -> str:
    """A text that may be stored: not empty, and with its secrets redacted (a graph is written to files)."""
    clean, _ = redacted(checked_text(text, what, TEXT_BYTES_MAX))
    canonical(clean)  # The act that follows asks for it, and other writers would wait.
    return clean


def checked_answer(text: str | None, unit_id: str | None) -> tuple[str | None, str | None]:
    """An answer that may be stored: a text or a unit."""
    if (text is None) is (unit_id is None):
        raise InvalidInput("An answer is a text or a unit.", hint="Give text=... or unit_id=..., one of the two.")
    clean = None if text is None else storable(text, "The answer")
    return clean, None if unit_id is None else checked_name(unit_id, "a unit's id")


def checked_feedback(label: Any, note: str | None) -> tuple[str, str | None]:
    """A label that is known, and a note that may be stored."""
    if not isinstance(label, str) or label not in FEEDBACK:
        raise InvalidInput(f"{label!r} is no feedback.", hint=f"Use one of: {', '.join(FEEDBACK)}.")
    return label, None if note is None else storable(note, "The note")


def checked_entity(
    user_id: str, canonical_id: str, text: str | None, aliases: Sequence[str] | None
) -> tuple[list[str], str, str | None, list[str]]:
    """Who names it, its id, its text and its other names, each checked."""
    user, thing = checked_name(user_id, "a user's id"), checked_name(canonical_id, "an entity's id")
    clean = None if text is None else storable(text, "The entity's text")
    return [user], thing, clean, [storable(name, "An alias") for name in checked_list(aliases or (), "aliases")]


def finite(number: Any, what: str, least: float | None = None) -> float:
    """A number that is finite, and not below the least."""
    is_number = isinstance(number, int | float) and not isinstance(number, bool) and abs(number) < float("inf")
    if not is_number or (least is not None and number < least):
        limit = "" if least is None else f" of {least:g} or more"
        raise InvalidInput(f"{what} must be a finite number{limit}, not {number!r}.", hint="Give such a number.")
    return float(number)

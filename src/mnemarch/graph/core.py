"""The base of every graph: its lock, its keeper, its arrays for searches, and its room for nodes and edges (A23, A28).

Every change is an act. An act has one time, and the keeper saves all of its steps or none.
"""

from __future__ import annotations

from array import array
from contextlib import contextmanager
from math import fsum, sqrt
from threading import RLock

from mnemarch.embedding.sparse import SparseVector
from mnemarch.errors import InvalidInput, NotFound
from mnemarch.forks import Forkable, is_mine, is_torn, watch
from mnemarch.graph import EmbeddingProvider, NodeType
from mnemarch.graph.state import MICROS_PER_MIN, Arc, GraphState, Vertex
from mnemarch.lazy import Lazy
from mnemarch.model import stamps
from mnemarch.policy.admission import checked_list, checked_name, checked_text
from mnemarch.policy.heat import EDGE_WEIGHT_MIN, FEEDBACK, OF_RECENCY, GraphConfig, score, worth
from mnemarch.text.canonical import canonical
from mnemarch.text.mentions import Mentions
from mnemarch.text.secrets import redacted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime
    from typing import Any, TypeVar

    import numpy as np

    from mnemarch.graph.state import About, Step, Vector

    T = TypeVar("T")
else:
    np = Lazy("numpy")

# Questions below this similarity count as unrelated.
_SIMILARITY_MIN = 1e-5
# The maximum error of the array's ranks, which are in single precision.
_MARGIN = 1e-5
# The worth of a removed row, below every rank.
_GONE = -10.0
_LN2 = 0.6931471805599453
TEXT_BYTES_MAX = 65_536


class Ended(NotFound):
    """The session of this graph has ended."""


class Full(InvalidInput):
    """The graph is full, and nothing in it may be evicted."""


class Keeper:
    """Saves graphs. This base class keeps them in the process only."""

    # Whether a graph can be read back at any time.
    reads_back = False

    def __init__(self, clock: Callable[[], datetime] | None = None) -> None:
        self._clock = clock or stamps.now

    def now(self) -> int:
        return stamps.micros(self._clock())

    def change(self, graphs: Sequence[Graph], act: str, work: Callable[[int], T]) -> T:  # noqa: ARG002
        """Run `work` with one time. A keeper that saves graphs saves all changes as one act, or none."""
        try:
            return work(self.now())
        finally:
            for graph in graphs:
                graph.take_steps()

    def catch_up(self, graph: Graph) -> None:
        """Apply the changes that others made to a graph."""

    def note_help(self, unit_ids: Sequence[str]) -> None:
        """Tell the memory that these units helped."""

    def read_anew(self, graph: Graph) -> None:
        """Read the graph again from its beginning, after an act was interrupted."""


class Graph(Forkable):
    """A graph for several threads, with one act at a time."""

    def __init__(self, config: GraphConfig, embedder: EmbeddingProvider, keeper: Keeper) -> None:
        self.config = config
        self.embedder = embedder
        self.keeper = keeper
        # Increases with every change.
        self.revision = 0
        # For each file this graph was read from or written to: the file's identity, and the revision.
        self.saved: dict[str, tuple[tuple[int, int, int] | None, int]] = {}
        # Nodes that the current act needs, and that are not evicted.
        self.keep: set[str] = set()
        self._lock = RLock()
        # The time of the current act.
        self._now: int | None = None
        self._embedder_id: object = getattr(embedder, "id", None)
        self._set_state(GraphState())
        watch(self)

    def _rest(self) -> bool:
        """Hold the lock during the fork, unless the child can read the graph again. False if an act is running."""
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
        state.on_change = self._on_change

    def _on_change(self, vertex: Vertex, is_there: bool) -> None:
        if self._table is not None:
            self._table.note(vertex, is_there)
        if vertex.type is NodeType.ENTITY:
            if not is_there:
                self.mentions.remove(vertex.id)
            elif self.mentions.names_of(vertex.id) != vertex.about["names"]:
                self.mentions.add(vertex.id, vertex.about["names"])

    # Acts

    def change(self, act: str, work: Callable[[int], T]) -> T:
        """Run `work` as one act, or as part of the current act. `work` gets the time."""

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
        """Lock the graph, update it, and yield the time."""
        with self._lock:
            if self._now is None:
                self.keeper.catch_up(self)
            yield self.keeper.now() if self._now is None else self._now

    def has(self, id: Any) -> bool:
        """Whether the graph has a node with this id."""
        with self.reading():
            return isinstance(id, str) and id in self.state.nodes

    def sessions(self) -> dict[str, int]:
        """The agent's open sessions with the time each began."""
        with self.reading():
            return dict(self.state.sessions)

    def take_steps(self) -> list[Step]:
        """The steps since the last call, which are removed."""
        steps, self.state.steps = self.state.steps, []
        self.revision += bool(steps)
        return steps

    def replay(self, steps: Sequence[Step]) -> None:
        """Apply recorded steps."""
        for step in steps:
            self.state.take(step)
        self.take_steps()

    def reset(self) -> None:
        """Empty the graph, as before the first step."""
        self._set_state(GraphState())
        self.revision += 1

    def _replace_state(self, state: GraphState, now: int) -> None:
        """Replace the state by another one, as far as there is room. Open sessions stay."""
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
        """Lower every weight by the time since the last wear, and remove worn-out edges (A24)."""
        self.state.wear(self.config.half_life_min, now)
        for arc_id in [arc.id for arc in self.state.arcs.values() if abs(arc.weight) < EDGE_WEIGHT_MIN]:
            self.state.cut(arc_id)

    # Nodes and eviction

    def vertex(self, id: Any, type: NodeType | None = None) -> Vertex:
        """The node with this id. Raises if it is missing or not of this type."""
        vertex = self.state.nodes.get(id) if isinstance(id, str) else None
        if vertex is None:
            raise NotFound(
                f"There is no node {id!r} in this graph.", hint="It may have been evicted. Ask again with upsert_query."
            )
        if type is not None and vertex.type is not type:
            raise InvalidInput(f"Node {id} is of type {vertex.type}, not {type}.", hint=f"Give the id of a {type}.")
        return vertex

    def _add_node(
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

    def _is_removable(self, id: str) -> bool:
        return id not in self.keep and not self.state.nodes[id].pinned

    def _require_room_for_a_node(self) -> None:
        nodes = self.state.nodes
        if len(nodes) >= self.config.max_nodes and not any(map(self._is_removable, nodes)):
            full = f"The graph is full: each of its {len(nodes)} nodes is pinned or being written."
            raise Full(full, hint="Raise max_nodes, or unpin some.")

    def _evict_down_to(self, count: int, now: int) -> None:
        """Evict the coldest nodes that are neither pinned nor protected by their edges.

        If all are protected, the weakest edges are removed until one isn't.
        """
        while len(self.state.nodes) > count:
            coldest = self.table().coldest(now, self.keep)
            if coldest is not None:
                self.state.drop(coldest.id)
                continue
            weakest = self.state.weakest_arc(lambda arc: self._is_removable(arc.from_) or self._is_removable(arc.to))
            assert weakest is not None, "a protected node has edges"
            self.state.cut(weakest.id)

    def _edge_to_cut(self, *ends: str | None) -> Arc | None:
        """The edge to cut before a new edge is added. Its removal never removes an end of the new edge."""
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
        """Drop all vectors if the embedder's id changed, for instance because it learnt more texts (R18)."""
        if (id := getattr(self.embedder, "id", None)) != self._embedder_id:
            self._embedder_id = id
            self._table = None
            for vertex in self.state.nodes.values():
                vertex.vector = None

    def _vector(self, text: str) -> Vector:
        return unit_vector(self.embedder.embed(text))

    def vector_of(self, vertex: Vertex) -> Vector:
        """The vector of a question, computed on first use."""
        if vertex.vector is None:
            vertex.vector = self._vector(vertex.text or "")
        return vertex.vector


# Checks of what is stored


def storable(text: str, what: str) -> str:
    """The text with its secrets redacted, since graphs are written to files. Raises if it is empty."""
    clean, _ = redacted(checked_text(text, what, TEXT_BYTES_MAX))
    canonical(clean)  # Fills the cache before the act, during which other writers wait.
    return clean


def checked_answer(text: str | None, unit_id: str | None) -> tuple[str | None, str | None]:
    """The checked answer: a text or a unit's id, exactly one of them."""
    if (text is None) is (unit_id is None):
        raise InvalidInput("An answer is either a text or a unit.", hint="Give text=... or unit_id=...")
    clean = None if text is None else storable(text, "The answer")
    return clean, None if unit_id is None else checked_name(unit_id, "a unit's id")


def checked_feedback(label: Any, note: str | None) -> tuple[str, str | None]:
    """The feedback's label and note, both checked."""
    if not isinstance(label, str) or label not in FEEDBACK:
        raise InvalidInput(f"{label!r} is not a feedback.", hint=f"Use one of: {', '.join(FEEDBACK)}.")
    return label, None if note is None else storable(note, "The note")


def checked_entity(
    user_id: str, canonical_id: str, text: str | None, aliases: Sequence[str] | None
) -> tuple[list[str], str, str | None, list[str]]:
    """The user that names the entity, its id, its text and its other names, all checked."""
    user, thing = checked_name(user_id, "a user's id"), checked_name(canonical_id, "an entity's id")
    clean = None if text is None else storable(text, "The entity's text")
    return [user], thing, clean, [storable(name, "An alias") for name in checked_list(aliases or (), "aliases")]


def finite(number: Any, what: str, least: float | None = None) -> float:
    """The number as a float. Raises if it is not finite or below `least`."""
    is_number = isinstance(number, int | float) and not isinstance(number, bool) and abs(number) < float("inf")
    if not is_number or (least is not None and number < least):
        limit = "" if least is None else f" of {least:g} or more"
        raise InvalidInput(f"{what} must be a finite number{limit}, not {number!r}.", hint="Give such a number.")
    return float(number)


# The arrays that searches and evictions read


class NodeTable:
    """A graph as arrays: last access, worth and evictability of nodes by row, and the rows of each feature (A8).

    A search adds up the products in the order of its own features, so the result is bit-identical after a graph was
    saved and loaded. The row of a removed node stays empty. A table with many empty rows `is_worn`.
    """

    def __init__(self, config: GraphConfig, vertices: Iterable[Vertex], vector_of: Callable[[Vertex], Vector]) -> None:
        self._config = config
        self._vector_of = vector_of
        self._vertices: list[Vertex | None] = []
        self._row: dict[str, int] = {}
        # An act may change a node several times. The table writes it once, before the next search.
        self._changed = {vertex.id: vertex for vertex in vertices}
        # The last access is stored in e-folds of recency, so that a rank takes few operations.
        self._last, self._worth, self._evictable = array("d"), array("d"), array("b")
        self._postings: dict[Any, tuple[array[int], array[float]]] = {}

    def note(self, vertex: Vertex, is_there: bool) -> None:
        """Note that a node changed or was removed."""
        if is_there:
            self._changed[vertex.id] = vertex
            return
        self._changed.pop(vertex.id, None)
        row = self._row.pop(vertex.id, None)
        if row is not None:
            self._vertices[row], self._worth[row], self._evictable[row] = None, _GONE, False

    @property
    def is_worn(self) -> bool:
        return len(self._vertices) - len(self._row) > 64 + len(self._row) // 4

    def _catch_up(self) -> None:
        for vertex in self._changed.values():
            row = self._row.get(vertex.id)
            if row is None:
                row = self._add_row(vertex)
            self._last[row] = self._e_folds(vertex.last)
            self._worth[row] = worth(vertex.repeat, vertex.feedback)
            self._evictable[row] = not vertex.pinned and vertex.degree < self._config.protect_min_degree
        self._changed.clear()

    def _add_row(self, vertex: Vertex) -> int:
        row = self._row[vertex.id] = len(self._vertices)
        self._vertices.append(vertex)
        for column in (self._last, self._worth, self._evictable):
            column.append(0)
        vector = self._vector_of(vertex) if vertex.type is NodeType.QUERY else {}
        for feature, weight in vector.items():
            posting = self._postings.get(feature)
            if posting is None:
                posting = self._postings[feature] = array("i"), array("d")
            posting[0].append(row)
            posting[1].append(weight)
        return row

    def _similarities(self, vector: Vector) -> Any:
        """The similarity of each row. 0 if it shares no feature or has no vector."""
        shared = [(weight, posting) for feature, weight in vector.items() if (posting := self._postings.get(feature))]
        if not shared:
            return np.zeros(len(self._vertices))
        rows = np.frombuffer(b"".join([posting[0] for _, posting in shared]), np.int32)
        products = np.frombuffer(b"".join([posting[1] for _, posting in shared]))
        products = products * np.repeat([weight for weight, _ in shared], [len(posting[0]) for _, posting in shared])
        # Rounding may give slightly more than 1.
        return np.minimum(1.0, np.bincount(rows, products, len(self._vertices)))

    def similar(self, vector: Vector, least: float) -> list[tuple[float, Vertex]]:
        """The questions with at least this similarity, the most similar first."""
        self._catch_up()
        similarities = self._similarities(vector)
        rows = (similarities >= max(least, _SIMILARITY_MIN)).nonzero()[0]
        pairs = zip(similarities[rows].tolist(), (self._vertices[row] for row in rows.tolist()), strict=True)
        similar = [(similarity, vertex) for similarity, vertex in pairs if vertex is not None]
        return sorted(similar, key=lambda one: (-one[0], one[1].id))

    def best(self, vector: Vector, k: int, now: int) -> list[tuple[float, float, Vertex]]:
        """Score, similarity and node of the `k` best questions that share a feature with `vector`."""
        self._catch_up()
        if k <= 0:
            return []
        similarities = self._similarities(vector)
        scores: Any = score(similarities, self._ranks(now))
        scores[similarities < _SIMILARITY_MIN] = _GONE
        least = np.partition(scores, -k)[-k] if k < len(scores) else _GONE
        rows = (scores >= max(least - _MARGIN, -1.0)).nonzero()[0]
        half_life = self._config.half_life_min
        best = [
            (score(similarity, vertex.rank(now, half_life)), similarity, vertex)
            for similarity, row in zip(similarities[rows].tolist(), rows.tolist(), strict=True)
            if (vertex := self._vertices[row]) is not None
        ]
        return sorted(best, key=lambda one: (-one[0], -one[1], one[2].id))[:k]

    def coldest(self, now: int, keep: set[str]) -> Vertex | None:
        """The evictable node with the lowest rank. Among equals, the least recently used one (A23)."""
        self._catch_up()
        rows = np.flatnonzero(np.asarray(self._evictable))
        for id in keep:
            rows = rows[rows != self._row.get(id, -1)]
        if not len(rows):
            return None
        ranks = self._ranks(now)[rows]
        cold_rows: list[int] = rows[ranks <= ranks.min() + _MARGIN].tolist()
        cold = [vertex for row in cold_rows if (vertex := self._vertices[row]) is not None]
        half_life = self._config.half_life_min
        return min(cold, key=lambda vertex: (vertex.rank(now, half_life), vertex.last, vertex.id))

    def _ranks(self, now: int) -> Any:
        """The approximate rank of each row. `Vertex.rank` is exact."""
        ages = np.minimum(0.0, np.asarray(self._last) - self._e_folds(now)).astype(np.float32)
        return OF_RECENCY * np.exp(ages) + np.asarray(self._worth)

    def _e_folds(self, at: int) -> float:
        return at * (_LN2 / self._config.half_life_min / MICROS_PER_MIN)


def unit_vector(embedding: Any) -> Vector:
    """The embedder's result as a sparse vector of length 1, or empty."""
    if isinstance(embedding, SparseVector):
        return embedding
    try:
        items = embedding.items() if hasattr(embedding, "items") else enumerate(embedding)
        weights = {_feature(feature): float(weight) for feature, weight in items}
        largest = max(map(abs, weights.values()), default=0.0)
        if largest and not 1e-100 < largest < 1e100:  # Their squares would underflow or overflow.
            weights = {feature: weight / largest for feature, weight in weights.items()}
        length = sqrt(fsum([weight * weight for weight in weights.values()]))
    except (TypeError, ValueError, OverflowError):
        weights, length = {}, float("nan")
    if not length < float("inf"):
        raise InvalidInput(
            f"The embedder gave {type(embedding).__name__} with something that is no finite number, or no feature.",
            hint="embed(text) gives a list of numbers, or a mapping from whole numbers or texts to numbers.",
        )
    return {feature: weight / length for feature, weight in weights.items() if weight}


def _feature(feature: Any) -> int | str:
    """The feature as a type that survives saving and loading."""
    if type(feature) is str or type(feature) is int:
        return feature
    if isinstance(feature, str | bool) or not hasattr(feature, "__index__"):
        raise ValueError(f"{feature!r} is no feature")
    return int(feature)

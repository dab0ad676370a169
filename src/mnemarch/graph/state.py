"""The nodes and edges of one graph, and the steps that change them.

Every change is one of the steps below. A graph in the log records the steps of each act as one event. A reader replays
the steps, so past decisions (what was merged or evicted) are not made again.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from mnemarch.graph import EdgeType, NodeType
from mnemarch.policy.heat import rank, recency
from mnemarch.text.canonical import canonical, is_copy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    About = Mapping[str, Any]
    Step = list[Any]
    Vector = Mapping[Any, float]

MICROS_PER_MIN = 60_000_000
_WEIGHT_MAX = 1e12
# Answers and feedback have no meaning without their question.
_DEPENDENT = frozenset({NodeType.FEEDBACK, NodeType.ANSWER})


class Vertex:
    """A node inside a graph. Times are microseconds since 1970."""

    __slots__ = (
        "about", "aliases", "created", "edges", "feedback", "id", "key", "last", "pinned", "repeat", "text", "type",
        "vector",
    )  # fmt: skip

    def __init__(self, id: str, type: NodeType, text: str | None, key: str | None, at: int, about: About) -> None:
        self.id = id
        self.type = type
        self.text = text
        self.key = key
        self.created = self.last = at
        self.about = dict(about)
        self.repeat = self.feedback = 0.0
        self.pinned = False
        # Keys of other wordings that were merged into this node.
        self.aliases: list[str] = []
        self.edges: dict[str, Arc] = {}
        # Set only until the search table has taken it over.
        self.vector: Vector | None = None

    @property
    def degree(self) -> int:
        return len(self.edges)

    def rank(self, now: int, half_life_min: float) -> float:
        return rank((now - self.last) / MICROS_PER_MIN, half_life_min, self.repeat, self.feedback)


class Arc:
    """An edge inside a graph."""

    __slots__ = ("created", "from_", "id", "last", "to", "type", "weight")

    def __init__(self, from_: str, type: EdgeType, to: str, at: int) -> None:
        self.id = edge_id(from_, type, to)
        self.from_ = from_
        self.to = to
        self.type = type
        self.weight = 0.0
        self.created = self.last = at

    def other(self, node_id: str) -> str:
        return self.to if self.from_ == node_id else self.from_


def edge_id(from_: str, type: str, to: str) -> str:
    return f"{from_}::{type}::{to}"


def quotes(text: str | None, about: About, contents: Sequence[str]) -> bool:
    """Whether a node's text, or one of its names, is a copy of one of these texts."""
    parts = [part for part in (text, *about.get("names", ())) if part]
    return any(is_copy(content, part) for content in contents for part in parts)


def _bounded(weight: float) -> float:
    """The weight, limited so that repeated additions keep it finite."""
    return max(-_WEIGHT_MAX, min(_WEIGHT_MAX, weight))


class GraphState:
    """Nodes by id and by key, and their edges. Every change to a node calls `on_change(vertex, is_there)`."""

    def __init__(self) -> None:
        self.nodes: dict[str, Vertex] = {}
        self.arcs: dict[str, Arc] = {}
        self.by_key: dict[tuple[str, str], str] = {}
        self.sessions: dict[str, int] = {}
        self.decayed_at: int | None = None
        # Whether the session of this graph has ended.
        self.closed = False
        self.steps: list[Step] = []
        self.on_change: Callable[[Vertex, bool], object] = lambda _vertex, _is_there: None
        # A heap of (weight, last access, id). Entries of changed edges stay in it and are skipped.
        self._by_weight: list[tuple[float, int, str]] = []

    # Steps. Each one ignores missing nodes and edges, because an erasure removes nodes from the middle of a history.

    def take(self, step: Step) -> None:
        """Replay one recorded step."""
        _STEPS[step[0]](self, *step[1:])

    def add(
        self, id: str, type: str, text: str | None, key: str | None, at: int, about: About, vector: Vector | None = None
    ) -> None:
        """Add a node. Its `vector` is not recorded, since it can be computed from the text."""
        vertex = self.nodes[id] = Vertex(id, NodeType(type), text, key, at, about)
        vertex.vector = vector
        if key is not None:
            self.by_key[vertex.type, key] = id
        self._changed(vertex, ["add", id, str(type), text, key, at, dict(about)])

    def weigh(self, id: str, repeat: float, feedback: float, at: int | None) -> None:
        """Add to a node's weights. `at` is the time of access, or None if this is no access."""
        vertex = self.nodes.get(id)
        if vertex is not None:
            vertex.repeat = _bounded(vertex.repeat + repeat)
            vertex.feedback = _bounded(vertex.feedback + feedback)
            vertex.last = vertex.last if at is None else max(vertex.last, at)
            self._changed(vertex, ["weigh", id, repeat, feedback, at])

    def tell(self, id: str, about: About, text: str | None = None) -> None:
        """Update what is known about a node."""
        vertex = self.nodes.get(id)
        if vertex is not None:
            vertex.about |= about
            vertex.text = vertex.text if text is None else text
            self._changed(vertex, ["tell", id, dict(about), text])

    def alias(self, id: str, key: str) -> None:
        """Add the key of another wording to a node."""
        vertex = self.nodes.get(id)
        if vertex is not None and (vertex.type, key) not in self.by_key:
            vertex.aliases.append(key)
            self.by_key[vertex.type, key] = id
            self.steps.append(["alias", id, key])

    def pin(self, id: str, pinned: bool) -> None:
        vertex = self.nodes.get(id)
        if vertex is not None:
            vertex.pinned = pinned
            self._changed(vertex, ["pin", id, pinned])

    def join(self, from_: str, type: str, to: str, weight: float, at: int) -> None:
        """Add an edge, or add weight to an existing one (A6)."""
        if from_ not in self.nodes or to not in self.nodes:
            return
        arc = self.arcs.get(edge_id(from_, type, to))
        if arc is None:
            arc = Arc(from_, EdgeType(type), to, at)
            self.arcs[arc.id] = self.nodes[from_].edges[arc.id] = self.nodes[to].edges[arc.id] = arc
        arc.weight = _bounded(arc.weight + weight)
        arc.last = max(arc.last, at)
        heappush(self._by_weight, (arc.weight, arc.last, arc.id))
        self._changed(self.nodes[from_], ["join", from_, str(type), to, weight, at])
        self._changed(self.nodes[to])

    def cut(self, arc_id: str) -> None:
        """Remove an edge. If it was the only edge of an answer or feedback, remove that too."""
        if arc_id in self.arcs:
            self.steps.append(["cut", arc_id])
            self._cut(arc_id)

    def drop(self, id: str) -> None:
        """Remove a node with its edges."""
        if id in self.nodes:
            self.steps.append(["drop", id])
            self._drop(self.nodes[id])

    def _cut(self, arc_id: str) -> None:
        arc = self.arcs.pop(arc_id)
        for vertex in (self.nodes[arc.from_], self.nodes[arc.to]):
            vertex.edges.pop(arc_id, None)
            self._changed(vertex)
        dependent = self.nodes[arc.to]
        if dependent.type in _DEPENDENT and not dependent.edges and not dependent.pinned:
            self._drop(dependent)

    def _drop(self, vertex: Vertex) -> None:
        for arc_id in list(vertex.edges):
            self._cut(arc_id)
        if self.nodes.pop(vertex.id, None) is None:
            return  # Removed together with its last edge.
        for key in (vertex.key, *vertex.aliases):
            if key is not None and self.by_key.get((vertex.type, key)) == vertex.id:
                del self.by_key[vertex.type, key]
        self.on_change(vertex, False)

    def wear(self, half_life_min: float, at: int) -> None:
        """Lower every weight by its unused time since the last wear (A24)."""
        since, self.decayed_at = self.decayed_at or 0, at
        self.steps.append(["wear", half_life_min, at])
        for vertex in self.nodes.values():
            factor = recency((at - max(since, vertex.last)) / MICROS_PER_MIN, half_life_min)
            vertex.repeat *= factor
            vertex.feedback *= factor
            self._changed(vertex)
        for arc in self.arcs.values():
            arc.weight *= recency((at - max(since, arc.last)) / MICROS_PER_MIN, half_life_min)
        self._sort_arcs()

    def begin(self, session: str, at: int) -> None:
        self.sessions[session] = at
        self.steps.append(["begin", session, at])

    def end(self, session: str) -> None:
        self.sessions.pop(session, None)
        self.steps.append(["end", session])

    def close(self, closed: bool) -> None:
        """End the session of this graph, or reopen it."""
        self.closed = closed
        self.steps.append(["close", closed])

    def clear(self) -> None:
        """Remove everything."""
        for vertex in self.nodes.values():
            self.on_change(vertex, False)
        self.nodes, self.arcs, self.by_key = {}, {}, {}
        self.sessions, self._by_weight, self.decayed_at = {}, [], None
        self.steps.append(["clear"])

    def _changed(self, vertex: Vertex, *steps: Step) -> None:
        self.steps += steps
        self.on_change(vertex, True)

    # Questions

    def of_type(self, type: NodeType) -> Iterator[Vertex]:
        return (vertex for vertex in self.nodes.values() if vertex.type is type)

    def units_answering(self, query_id: str) -> list[str]:
        """The units of a memory that answered a question."""
        answers = self.neighbours(query_id, EdgeType.RESPONDED_WITH)
        return [unit for id, _ in answers if (unit := self.nodes[id].about.get("unit")) is not None]

    def neighbours(self, id: str, type: EdgeType) -> Iterator[tuple[str, float]]:
        """The neighbours over a node's edges of one type, with the weights of the edges."""
        return ((arc.other(id), arc.weight) for arc in self.nodes[id].edges.values() if arc.type is type)

    def with_key(self, type: NodeType, key: str, text: str | None) -> str | None:
        """The node with this key. Equal keys are confirmed by equal texts, unless the key is an alias (R6)."""
        id = self.by_key.get((type, key))
        if id is None:
            return None
        vertex = self.nodes[id]
        is_same = vertex.key != key or canonical(vertex.text or "") == canonical(text or "")
        return id if is_same else None

    def are_linked(self, one: str, type: EdgeType, other: str) -> bool:
        """Whether an edge of this type joins two nodes, in either direction."""
        return edge_id(one, type, other) in self.arcs or edge_id(other, type, one) in self.arcs

    def weakest_arc(self, may_go: Callable[[Arc], bool]) -> Arc | None:
        """The removable edge with the lowest weight. Among equals, the least recently used one (A23)."""
        if len(self._by_weight) > 2 * len(self.arcs) + 64:
            self._sort_arcs()
        passed: list[tuple[float, int, str]] = []
        weakest: Arc | None = None
        while self._by_weight and weakest is None:
            entry = heappop(self._by_weight)
            arc = self.arcs.get(entry[2])
            if arc is not None and (arc.weight, arc.last) == entry[:2]:
                passed.append(entry)
                weakest = arc if may_go(arc) else None
        for entry in passed:
            heappush(self._by_weight, entry)
        return weakest

    def _sort_arcs(self) -> None:
        self._by_weight = [(arc.weight, arc.last, arc.id) for arc in self.arcs.values()]
        heapify(self._by_weight)

    def takes_along(self, arc: Arc) -> bool:
        """Whether a cut of this edge would remove the answer or feedback it leads to."""
        vertex = self.nodes[arc.to]
        return vertex.type in _DEPENDENT and vertex.degree == 1 and not vertex.pinned

    def all_steps(self) -> list[Step]:
        """The steps that rebuild this graph from an empty one."""
        # On an empty graph `wear` only sets the time.
        steps: list[Step] = [] if self.decayed_at is None else [["wear", 1.0, self.decayed_at]]
        for vertex in self.nodes.values():
            steps.append(["add", vertex.id, str(vertex.type), vertex.text, vertex.key, vertex.created, vertex.about])
            steps.append(["weigh", vertex.id, vertex.repeat, vertex.feedback, vertex.last])
            steps += [["alias", vertex.id, key] for key in vertex.aliases]
            steps += [["pin", vertex.id, True]] if vertex.pinned else []
        for arc in self.arcs.values():
            steps.append(["join", arc.from_, str(arc.type), arc.to, arc.weight, arc.created])
            steps += [["join", arc.from_, str(arc.type), arc.to, 0.0, arc.last]] if arc.last != arc.created else []
        steps += [["begin", session, at] for session, at in self.sessions.items()]
        steps += [["close", True]] if self.closed else []
        return steps


_STEP_NAMES = (
    "add", "weigh", "tell", "alias", "pin", "join", "cut", "drop", "wear", "begin", "end", "clear", "close",
)  # fmt: skip
_STEPS: dict[str, Callable[..., None]] = {name: getattr(GraphState, name) for name in _STEP_NAMES}

"""One graph of questions, answers, feedback and entities: bounded, searchable, learning from feedback (A2-A9)."""

from __future__ import annotations

from copy import deepcopy

from mnemarch.errors import Hint, InvalidInput
from mnemarch.graph.sharing import LockedGraph, MemoryKeeper
from mnemarch.graph.values import Edge, EdgeType, GraphHit, GraphStats, Node, NodeType, Weights, parsed
from mnemarch.lazy import Lazy
from mnemarch.model.stamps import instant
from mnemarch.model.value import replace
from mnemarch.policy.admission import checked_count, checked_list, checked_name, checked_text
from mnemarch.policy.heat import FEEDBACK, GraphConfig
from mnemarch.text.secrets import redacted

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from typing import Any

    from mnemarch.graph import files, snapshot
    from mnemarch.graph.engine import GraphEngine
    from mnemarch.graph.sharing import Keeper
    from mnemarch.graph.state import Vertex
    from mnemarch.graph.values import EmbeddingProvider
else:
    # A recall reads a graph and has no use for its files.
    files = Lazy("mnemarch.graph.files")
    snapshot = Lazy("mnemarch.graph.snapshot")

_TEXT_BYTES_MAX = 65_536
_K_MAX = 10_000


class GraphStore:
    """One graph. Safe to share between threads; it needs no `Memory`."""

    def __init__(
        self,
        config: GraphConfig | Mapping[str, Any] | None = None,
        embedder: EmbeddingProvider | None = None,
        *,
        clock: Callable[[], datetime] | None = None,
        keeper: Keeper | None = None,
    ) -> None:
        self.config = _config(config)
        self.embedder: EmbeddingProvider = default_embedder() if embedder is None else embedder
        if isinstance(self.embedder, type) or not callable(getattr(self.embedder, "embed", None)):
            raise InvalidInput(f"{self.embedder!r} can't embed.", hint="Give an object with embed(text), or nothing.")
        self.locked = LockedGraph(self.config, self.embedder, keeper or MemoryKeeper(clock))
        """The graph itself, for keepers and orchestrators."""

    @property
    def _engine(self) -> GraphEngine:
        return self.locked.engine

    # Writing

    def upsert_query(self, text: str) -> str:
        """The node of a question: a new one, or that of the same question asked before, in these words or others.

        Questions in other words are one only if no number, negation, quotation or identifier differs (R6).
        """
        question = storable(text, "The question")
        return self.locked.change("asked", lambda now: self._engine.ask(question, now))

    def record_answer(self, query_id: str, text: str | None = None, *, unit_id: str | None = None) -> str:
        """Record what a question was answered with, a text or a unit of a memory; returns the answer's node."""
        answer = checked_answer(text, unit_id)
        return self.locked.change("answered", lambda now: self._engine.answer(query_id, *answer, now))

    def record_feedback(self, query_id: str, label: str, note: str | None = None) -> str:
        """Record whether the answer helped: up, down or retry. Similar questions learn from it (R15)."""
        feedback = checked_feedback(label, note)
        return self.locked.change("judged", lambda now: self._engine.judge(query_id, *feedback, now))

    def adjust_weights(self, id: str, *, feedback_delta: float = 0.0, repeat_delta: float = 0.0) -> None:
        """Add to a node's weights."""
        deltas = _finite(repeat_delta, "repeat_delta"), _finite(feedback_delta, "feedback_delta")
        self.locked.change("adjusted", lambda _: self._engine.state.weigh(self._engine.vertex(id).id, *deltas, None))

    def link(self, from_id: str, to_id: str, type: EdgeType | str, weight: float = 1.0) -> str:
        """Add an edge, or add weight to an existing one; returns its id, `from::type::to` (A6)."""
        kind = parsed(EdgeType, type, "type of edge")
        if _finite(weight, "weight") <= 0:
            raise InvalidInput(f"An edge's weight must be above 0, not {weight!r}.", hint="Correct it.")
        return self.locked.change("linked", lambda now: self._engine.link(from_id, kind, to_id, float(weight), now))

    def upsert_entity(
        self, user_id: str, canonical_id: str, text: str | None = None, aliases: Sequence[str] | None = None
    ) -> str:
        """Name a thing that questions are about. Questions that mention it, before or after, are linked to it (A30).

        It is one thing for all users: their names for it add up.
        """
        entity = checked_entity(user_id, canonical_id, text, aliases)
        return self.locked.change("named", lambda now: self._engine.name(*entity, now))

    def pin(self, id: str, pinned: bool = True) -> None:
        """Never evict a node, or evict it again."""
        self.locked.change("pinned", lambda _: self._engine.state.pin(self._engine.vertex(id).id, bool(pinned)))

    def decay(self) -> None:
        """Lower every weight for the time since the last decay; worn-out edges go (A24)."""
        self.locked.change("worn", self._engine.wear)

    # Reading

    def search_similar_queries(self, text: str, k: int = 5) -> list[GraphHit]:
        """The questions most like this one, by `0.7 * similarity + 0.3 * rank`, best first. Nothing is changed."""
        question = checked_text(text, "The question", _TEXT_BYTES_MAX)
        checked_count(k, "k", _K_MAX)
        with self.locked.reading() as now:
            return [
                GraphHit(id=one.id, score=score, sim=sim, text=one.text or "", canonical_key=one.key or "")
                for score, sim, one in self._engine.best(question, k, now)
            ]

    def node(self, id: str) -> Node:
        """A node as it is now; a question with its vector, if that was needed before."""
        with self.locked.reading() as now:
            vertex = self._engine.vertex(id)
            return replace(self._node(vertex, now), embedding=self._engine.vector_if_made(vertex))

    def nodes(self, type: NodeType | str | None = None) -> list[Node]:
        """All nodes, or those of a type, the hottest first."""
        kind = None if type is None else parsed(NodeType, type, "type of node")
        with self.locked.reading() as now:
            nodes = [self._node(one, now) for one in self._engine.state.nodes.values() if kind in (None, one.type)]
        return sorted(nodes, key=lambda node: (-node.rank, node.id))

    def edges(self, node_id: str | None = None) -> list[Edge]:
        """All edges, or those of a node, the heaviest first."""
        with self.locked.reading():
            arcs = self._engine.state.arcs if node_id is None else self._engine.vertex(node_id).edges
            edges = [
                Edge(arc.id, arc.from_, arc.to, arc.type, arc.weight, instant(arc.created), instant(arc.last))
                for arc in arcs.values()
            ]
        return sorted(edges, key=lambda edge: (-edge.weight, edge.id))

    def answers(self, query_id: str) -> list[Node]:
        """The answers to a question, the most frequent first."""
        with self.locked.reading() as now:
            state, query = self._engine.state, self._engine.vertex(query_id, NodeType.QUERY)
            near = sorted(state.neighbours(query.id, EdgeType.RESPONDED_WITH), key=lambda one: (-one[1], one[0]))
            return [self._node(state.nodes[id], now) for id, _ in near]

    def entities_in(self, text: str) -> list[str]:
        """The nodes of the entities that a text mentions, in its order."""
        checked = storable(text, "The text")
        with self.locked.reading():
            return [entity.id for entity in self._engine.entities_in(checked)]

    def known_query(self, text: str) -> str | None:
        """The node that a question would be merged into, without asking it."""
        question = storable(text, "The question")
        with self.locked.reading():
            return self._engine.known(question)

    def nominated(self, text: str) -> dict[str, float]:
        """Units that answered similar questions without bad feedback, and how similar those questions are."""
        question = storable(text, "The question")
        with self.locked.reading() as now:
            return self._engine.nominated(question, now)

    def stats(self) -> GraphStats:
        with self.locked.reading():
            return GraphStats(nodes=len(self._engine.state.nodes), edges=len(self._engine.state.arcs))

    def _node(self, vertex: Vertex, now: int) -> Node:
        return Node(
            id=vertex.id,
            type=vertex.type,
            text=vertex.text,
            canonical_key=vertex.key,
            created_at=instant(vertex.created),
            last_access=instant(vertex.last),
            weights=Weights(repeat=vertex.repeat, feedback=vertex.feedback),
            degree=vertex.degree,
            rank=vertex.rank(now, self.config.half_life_min),
            pinned=vertex.pinned,
            about=deepcopy(vertex.about),
        )

    # Files (A8, A11)

    def to_snapshot(self) -> dict[str, Any]:
        """The whole graph with its vectors and the state of its embedder, in JSON types."""
        with self.locked.reading() as now:
            return snapshot.record_of(self._engine, self.embedder, self.config, now)

    def from_snapshot(self, record: Mapping[str, Any]) -> None:
        """Become the graph of a snapshot. Vectors of another embedder are made again from their texts (R18)."""
        state = snapshot.restored(record, self.embedder)
        self.locked.change("restored", lambda now: self.locked.become(state, now))

    def save_to_file(self, file: str | os.PathLike[str], *, only_if_dirty: bool = False) -> bool:
        """Write the graph to a file, all of it or nothing; returns whether it was written."""
        return files.save(self, file, only_if_dirty=only_if_dirty)

    @classmethod
    def load_from_file(cls, file: str | os.PathLike[str], store: GraphStore | None = None) -> GraphStore:
        """The graph of a snapshot or checkpoint file, in `store` or in a new one with the file's settings."""
        return files.load(cls, file, store)


def storable(text: str, what: str) -> str:
    """A text that may be stored: not empty, and with its secrets redacted (a graph is written to files)."""
    return redacted(checked_text(text, what, _TEXT_BYTES_MAX))[0]


def checked_answer(text: str | None, unit_id: str | None) -> tuple[str | None, str | None]:
    """An answer that may be stored: a text or a unit."""
    if (text is None) is (unit_id is None):
        raise InvalidInput("An answer is a text or a unit.", hint=Hint("text or unit"))
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


def _finite(number: Any, what: str) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) < float("inf"):
        raise InvalidInput(f"{what} must be a finite number, not {number!r}.", hint="Correct it.")
    return float(number)


def _config(config: Any) -> GraphConfig:
    if isinstance(config, GraphConfig):
        return config
    try:
        return GraphConfig(**({} if config is None else config))
    except TypeError as error:
        usage = "Use GraphConfig(max_nodes=1000, ...)."
        raise InvalidInput(f"These are no settings of a graph: {error}.", hint=usage) from None


def default_embedder() -> EmbeddingProvider:
    from mnemarch.embedding.question import QuestionEmbedder

    return QuestionEmbedder()

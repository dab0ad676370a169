"""One graph of questions, answers, feedback and entities: bounded, searchable, learning from what helped (A2-A9)."""

from __future__ import annotations

from copy import deepcopy

from mnemarch.errors import Hint, InvalidInput
from mnemarch.graph.held import Held
from mnemarch.graph.keeping import Unkept
from mnemarch.graph.measure import Measure
from mnemarch.graph.node import Edge, EdgeType, GraphHit, GraphStats, Node, NodeType, Weights, parsed
from mnemarch.lazy import Lazy
from mnemarch.model.instant import instant
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
    from mnemarch.graph.engine import Engine
    from mnemarch.graph.keeping import Keeper
    from mnemarch.graph.provider import EmbeddingProvider
    from mnemarch.graph.state import Arc, GraphState, Vertex
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
        self._files: files.Files | None = None
        self.held = Held(self.config, Measure(self.embedder), keeper or Unkept(clock))
        """The graph itself, for whoever keeps or orchestrates it."""

    # Writing

    def upsert_query(self, text: str) -> str:
        """The node of a question: a new one, or that of the same question asked before, in these words or in others.

        Questions in other words are one only if no number, negation, quotation or identifier differs (R6).
        """
        asked = fit_to_keep(text, "The question")
        return self.held.change("asked", lambda now: self._engine.ask(asked, now))

    def record_answer(self, query_id: str, text: str | None = None, *, unit_id: str | None = None) -> str:
        """Say what a question was answered with: a text, or a unit of a memory; gives the answer's node."""
        answer = checked_answer(text, unit_id)
        return self.held.change("answered", lambda now: self._engine.answer(query_id, *answer, now))

    def record_feedback(self, query_id: str, label: str, note: str | None = None) -> str:
        """Say whether what came of a question helped: up, down or retry; questions like it learn from it (R15)."""
        feedback = checked_feedback(label, note)
        return self.held.change("judged", lambda now: self._engine.judge(query_id, *feedback, now))

    def adjust_weights(self, id: str, *, feedback_delta: float = 0.0, repeat_delta: float = 0.0) -> None:
        """Add to a node's weights, as promotion does for what a session brings along."""
        feedback, repeat = _finite(feedback_delta, "feedback_delta"), _finite(repeat_delta, "repeat_delta")
        self.held.change("adjusted", lambda _: self._state.weigh(self._engine.vertex(id).id, repeat, feedback, None))

    def link(self, from_id: str, to_id: str, type: EdgeType | str, weight: float = 1.0) -> str:
        """Add an edge, or weight to the one that is there; gives its id, `from::type::to` (A6)."""
        kind = parsed(EdgeType, type, "type of edge")
        if _finite(weight, "weight") <= 0:
            raise InvalidInput(f"An edge's weight must be above 0, not {weight!r}.", hint="Correct it.")
        return self.held.change("linked", lambda now: self._engine.link(from_id, kind, to_id, float(weight), now))

    def upsert_entity(
        self, user_id: str, canonical_id: str, text: str | None = None, aliases: Sequence[str] | None = None
    ) -> str:
        """Name a thing that questions are about; those that mention it, before or after, are linked to it (A30).

        It is one thing for all users: who named it is remembered, and its names add up.
        """
        entity = checked_entity(user_id, canonical_id, text, aliases)
        return self.held.change("named", lambda now: self._engine.name(*entity, now))

    def pin(self, id: str, pinned: bool = True) -> None:
        """Keep a node whatever its rank, or no longer."""
        self.held.change("pinned", lambda _: self._state.pin(self._engine.vertex(id).id, bool(pinned)))

    def decay(self) -> None:
        """Really lower every weight for the time since the last decay; an edge that is worn through goes (A24)."""
        self.held.change("worn", self._engine.wear)

    # Asking

    def search_similar_queries(self, text: str, k: int = 5) -> list[GraphHit]:
        """The questions most like this one, by `0.7 * similarity + 0.3 * rank`, best first. Nothing is changed."""
        asked = checked_text(text, "The question", _TEXT_BYTES_MAX)
        checked_count(k, "k", _K_MAX)
        with self.held.reading() as now:
            return [_hit(score, sim, vertex) for score, sim, vertex in self._engine.best(asked, k, now)]

    def node(self, id: str) -> Node:
        """A node as it stands now; a question with its vector, if that was needed so far."""
        with self.held.reading() as now:
            vertex = self._engine.vertex(id)
            return replace(self._shown(vertex, now), embedding=self._engine.vector_if_made(vertex))

    def nodes(self, type: NodeType | str | None = None) -> list[Node]:
        """All nodes, or those of a type, the hottest first."""
        kind = None if type is None else parsed(NodeType, type, "type of node")
        with self.held.reading() as now:
            found = [self._shown(one, now) for one in self._state.nodes.values() if kind in (None, one.type)]
        return sorted(found, key=lambda node: (-node.rank, node.id))

    def edges(self, node_id: str | None = None) -> list[Edge]:
        """All edges, or those of a node, the heaviest first."""
        with self.held.reading():
            arcs = self._state.arcs if node_id is None else self._engine.vertex(node_id).edges
            found = [_shown_arc(arc) for arc in arcs.values()]
        return sorted(found, key=lambda edge: (-edge.weight, edge.id))

    def answers(self, query_id: str) -> list[Node]:
        """What a question was answered with, the most frequent first."""
        with self.held.reading() as now:
            query = self._engine.vertex(query_id, NodeType.QUERY)
            near = sorted(self._state.neighbours(query.id, EdgeType.RESPONDED_WITH), key=lambda one: (-one[1], one[0]))
            return [self._shown(self._state.nodes[id], now) for id, _ in near]

    def entities_in(self, text: str) -> list[str]:
        """The nodes of the entities that a text mentions, in its order."""
        asked = fit_to_keep(text, "The text")
        with self.held.reading():
            return self._engine.named_in(asked)

    def known_query(self, text: str) -> str | None:
        """The node that a question would be taken for, without asking it."""
        asked = fit_to_keep(text, "The question")
        with self.held.reading():
            return self._engine.known(asked)

    def nominated(self, text: str) -> dict[str, float]:
        """Units that answered questions like this one and were not found wanting, and how alike the questions are."""
        asked = fit_to_keep(text, "The question")
        with self.held.reading() as now:
            return self._engine.nominated(asked, now)

    def stats(self) -> GraphStats:
        with self.held.reading():
            return GraphStats(nodes=len(self._state.nodes), edges=len(self._state.arcs))

    # Files (A8, A11)

    def to_snapshot(self) -> dict[str, Any]:
        """The whole graph with its vectors and the state of their embedder, in JSON types."""
        with self.held.reading() as now:
            return snapshot.record_of(self._state, self._engine.vector_of, self.embedder, self.config, now)

    def from_snapshot(self, record: Mapping[str, Any]) -> None:
        """Become the graph of a snapshot; vectors of another embedder are made anew from their texts (R18)."""
        state = snapshot.restored(record, self.embedder)
        self.held.change("restored", lambda now: self.held.become(state, now))

    def save_to_file(self, file: str | os.PathLike[str], *, only_if_dirty: bool = False) -> bool:
        """Write the graph to a file, whole or not at all; gives whether it was written."""
        return self.files.save(self, file, only_if_dirty=only_if_dirty)

    @classmethod
    def load_from_file(cls, file: str | os.PathLike[str], store: GraphStore | None = None) -> GraphStore:
        """The graph of a file, a snapshot or a checkpoint, in `store` or in a new one with the file's settings."""
        return files.load(cls, file, store)

    @property
    def files(self) -> files.Files:
        """What is known of the files this graph was read from or written to."""
        if self._files is None:
            self._files = files.Files()
        return self._files

    @property
    def _engine(self) -> Engine:
        return self.held.engine

    @property
    def _state(self) -> GraphState:
        return self.held.engine.state

    def _shown(self, vertex: Vertex, now: int) -> Node:
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


def fit_to_keep(text: str, what: str) -> str:
    """A text that may be kept: it says something, and no secret (a graph is written to files)."""
    return redacted(checked_text(text, what, _TEXT_BYTES_MAX))[0]


def checked_answer(text: str | None, unit_id: str | None) -> tuple[str | None, str | None]:
    """An answer that may be kept: a text or a unit."""
    if (text is None) is (unit_id is None):
        raise InvalidInput("An answer is a text or a unit.", hint=Hint("text or unit"))
    told = None if text is None else fit_to_keep(text, "The answer")
    return told, None if unit_id is None else checked_name(unit_id, "a unit's id")


def checked_feedback(label: Any, note: str | None) -> tuple[str, str | None]:
    """A label that is known, and a note that may be kept."""
    if not isinstance(label, str) or label not in FEEDBACK:
        raise InvalidInput(f"{label!r} is no feedback.", hint=f"Use one of: {', '.join(FEEDBACK)}.")
    return label, None if note is None else fit_to_keep(note, "The note")


def checked_entity(
    user_id: str, canonical_id: str, text: str | None, aliases: Sequence[str] | None
) -> tuple[list[str], str, str | None, list[str]]:
    """Who names it, its id, its text and its other names, each fit to be kept."""
    user, thing = checked_name(user_id, "a user's id"), checked_name(canonical_id, "an entity's id")
    told = None if text is None else fit_to_keep(text, "The entity's text")
    return [user], thing, told, [fit_to_keep(name, "An alias") for name in checked_list(aliases or (), "aliases")]


def _hit(score: float, sim: float, vertex: Vertex) -> GraphHit:
    return GraphHit(id=vertex.id, score=score, sim=sim, text=vertex.text or "", canonical_key=vertex.key or "")


def _shown_arc(arc: Arc) -> Edge:
    return Edge(
        id=arc.id,
        from_=arc.from_,
        to=arc.to,
        type=arc.type,
        weight=arc.weight,
        created_at=instant(arc.created),
        last_access=instant(arc.last),
    )


def _finite(number: Any, what: str) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) < float("inf"):
        raise InvalidInput(f"{what} must be a finite number, not {number!r}.", hint="Correct it.")
    return float(number)


def _config(given: Any) -> GraphConfig:
    if given is None:
        return GraphConfig()
    if isinstance(given, GraphConfig):
        return given
    try:
        return GraphConfig(**given)
    except TypeError as error:
        raise InvalidInput(
            f"These are no settings of a graph: {error}.", hint="Use GraphConfig(max_nodes=1000, ...)."
        ) from None


def default_embedder() -> EmbeddingProvider:
    """What questions are compared by if nothing else is said."""
    from mnemarch.embedding.question import QuestionEmbedder

    return QuestionEmbedder()

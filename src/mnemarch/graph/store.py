"""One graph of questions, answers, feedback and entities: bounded, searchable, learning from feedback (A2-A9)."""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy

from mnemarch.embedding.sparse import cosine
from mnemarch.errors import InvalidInput
from mnemarch.graph import Edge, EdgeType, EmbeddingProvider, GraphHit, GraphStats, Node, NodeType, Weights, core
from mnemarch.graph.state import Vertex, edge_id
from mnemarch.lazy import Lazy
from mnemarch.model.stamps import instant
from mnemarch.model.value import member_of
from mnemarch.policy.admission import changed_settings, checked_count, checked_text
from mnemarch.policy.heat import FEEDBACK, GraphConfig, spread
from mnemarch.text.canonical import canonical, canonical_key, hashed
from mnemarch.text.guarded import differences
from mnemarch.text.mentions import NAME_CHARS_MAX, Mentions

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from typing import Any

    from mnemarch.graph import files
    from mnemarch.graph.state import About, Vector
else:
    # A recall reads a graph without its files.
    files = Lazy("mnemarch.graph.files")

_K_MAX = 10_000
_NAMES_MAX = 64
_NOMINATING_MAX, _NOMINATED_MAX = 64, 8
# The types of node that each type of edge joins.
_ENDS = {
    EdgeType.SIMILAR_TO: (NodeType.QUERY, NodeType.QUERY),
    EdgeType.RESPONDED_WITH: (NodeType.QUERY, NodeType.ANSWER),
    EdgeType.HAS_FEEDBACK: (NodeType.QUERY, NodeType.FEEDBACK),
    EdgeType.REFERS_TO_ENTITY: (NodeType.QUERY, NodeType.ENTITY),
}


class GraphStore(core.Graph):
    """One graph. Safe to share between threads; it needs no `Memory`."""

    def __init__(
        self,
        config: GraphConfig | Mapping[str, Any] | None = None,
        embedder: EmbeddingProvider | None = None,
        *,
        clock: Callable[[], datetime] | None = None,
        keeper: core.Keeper | None = None,
    ) -> None:
        if embedder is None:
            from mnemarch.embedding.sparse import QuestionEmbedder

            embedder = QuestionEmbedder()
        if isinstance(embedder, type) or not callable(getattr(embedder, "embed", None)):
            raise InvalidInput(f"{embedder!r} can't embed.", hint="Give an object with a method embed(text), or None.")
        settings = changed_settings(GraphConfig(), {} if config is None else config, "graph")
        super().__init__(settings, embedder, keeper or core.Keeper(clock))

    # Questions

    def upsert_query(self, text: str) -> str:
        """The node of a question: a new node, or the node of the same question in these or other words.

        Questions in other words are the same only if no number, negation, quotation or identifier differs (R6).
        """
        question = core.storable(text, "The question")
        with self.reading():
            existing = self.state.with_key(NodeType.QUERY, canonical_key(question), question)
        vector = {} if existing is not None else self._vector(question)
        return self.change("asked", lambda now: self.ask(question, now, vector))

    def ask(self, text: str, now: int, vector: Vector | None = None) -> str:
        """The node of a checked question, as part of an act. Compute its vector before, to keep the act short."""
        key = canonical_key(text)
        existing = self.state.with_key(NodeType.QUERY, key, text)
        near = [] if existing is not None else self._similar(vector := vector or self._vector(text))
        existing = existing or self._duplicate(text, near)
        if existing is not None:
            self.state.weigh(existing, 1.0, 0.0, now)
            self.state.alias(existing, key)
            return existing
        id = self._add_node(NodeType.QUERY, key, text, now, {}, vector)
        linked = [(sim, other.id) for sim, other in near[: self.config.similar_max] if sim >= self.config.tau_sim]
        # The nearest come last: if there is room for few edges, their edges stay.
        for sim, other in reversed(linked):
            if other in self.state.nodes:
                self._join_if_there_is_room(id, EdgeType.SIMILAR_TO, other, sim, now)
        for entity in self.mentions.found_in(text):
            self._join_if_there_is_room(id, EdgeType.REFERS_TO_ENTITY, entity, 1.0, now)
        return id

    def known_query(self, text: str) -> str | None:
        """The node that a question would be merged into. Nothing is recorded."""
        question = core.storable(text, "The question")
        with self.reading():
            return self.node_for(question)

    def node_for(self, question: str) -> str | None:
        """The node that a checked question would be merged into. The caller holds the lock."""
        same = self.state.with_key(NodeType.QUERY, canonical_key(question), question)
        return same or self._duplicate(question, self._similar(self._vector(question)))

    def _similar(self, vector: Vector) -> list[tuple[float, Vertex]]:
        return self.table().similar(vector, min(self.config.tau_sim, self.config.tau_dup))

    def _duplicate(self, text: str, near: Sequence[tuple[float, Vertex]]) -> str | None:
        """The same question in other words, with equal numbers, negations, quotations and identifiers (R6)."""
        sameness = getattr(self.embedder, "sameness", lambda _text, _other, cosine: cosine)
        for sim, vertex in near:
            other = vertex.text or ""
            if sim < self.config.tau_dup:
                break
            if sameness(text, other, sim) >= self.config.tau_dup and not differences(text, other):
                return vertex.id
        return None

    def search_similar_queries(self, text: str, k: int = 5) -> list[GraphHit]:
        """The most similar questions, ordered by `0.7 * similarity + 0.3 * rank`. The graph doesn't change."""
        question = checked_text(text, "The question", core.TEXT_BYTES_MAX)
        checked_count(k, "k", _K_MAX)
        with self.reading() as now:
            return [
                GraphHit(id=one.id, score=score, sim=sim, text=one.text or "", canonical_key=one.key or "")
                for score, sim, one in self.table().best(self._vector(question), k, now)
            ]

    # Answers and feedback

    def record_answer(self, query_id: str, text: str | None = None, *, unit_id: str | None = None) -> str:
        """Record the answer to a question, a text or a unit of a memory. Returns the answer's node."""
        answer = core.checked_answer(text, unit_id)
        return self.change("answered", lambda now: self.answer(query_id, *answer, now))

    def answer(self, query_id: str, text: str | None, unit_id: str | None, now: int) -> str:
        """Link a question to its checked answer, as part of an act."""
        query = self.vertex(query_id, NodeType.QUERY)
        key = _hashed("unit", unit_id or "") if text is None else canonical_key(text)
        existing = self.state.with_key(NodeType.ANSWER, key, text)
        about = {} if unit_id is None else {"unit": unit_id}
        answer = self._other_end(query, EdgeType.RESPONDED_WITH, existing, (key, text, about), now)
        self.state.weigh(query.id, 0.0, 0.0, now)
        self.join(query.id, EdgeType.RESPONDED_WITH, answer, 1.0, now)
        return answer

    def record_feedback(self, query_id: str, label: str, note: str | None = None) -> str:
        """Record whether the answer helped: up, down or retry. Similar questions learn from it (R15)."""
        checked_label, clean_note = core.checked_feedback(label, note)

        def judge(now: int) -> tuple[str, list[str]]:
            query = self.vertex(query_id, NodeType.QUERY)
            # Repeated feedback is one node whose edge gains weight.
            key = _hashed(query.id, checked_label, "" if clean_note is None else canonical(clean_note))
            existing = self.state.by_key.get((NodeType.FEEDBACK, key))
            new = key, clean_note, {"label": checked_label}
            feedback = self._other_end(query, EdgeType.HAS_FEEDBACK, existing, new, now)
            self.join(query.id, EdgeType.HAS_FEEDBACK, feedback, 1.0, now)
            delta = FEEDBACK[checked_label]
            self.state.weigh(query.id, 0.0, delta, now)
            shares = spread(query.id, delta, lambda id: self.state.neighbours(id, EdgeType.SIMILAR_TO))
            for id, share in shares.items():
                self.state.weigh(id, 0.0, share, None)
            return feedback, self.state.units_answering(query.id) if delta > 0 else []

        feedback, units = self.change("judged", judge)
        self.keeper.note_help(units)
        return feedback

    def _other_end(self, query: Vertex, type: EdgeType, existing: str | None, new: Any, now: int) -> str:
        """The node of an answer or feedback, existing or new. Raises before any change if the graph is full."""
        self.keep.add(query.id)
        if existing is None:
            self._require_room_for_a_node()
        if existing is None or edge_id(query.id, type, existing) not in self.state.arcs:
            self._edge_to_cut(query.id, existing)
        if existing is None:
            key, text, about = new
            return self._add_node(_ENDS[type][1], key, text, now, about)
        self.state.weigh(existing, 1.0, 0.0, now)
        return existing

    # Entities

    def upsert_entity(
        self, user_id: str, canonical_id: str, text: str | None = None, aliases: Sequence[str] | None = None
    ) -> str:
        """Name an entity that questions are about. Earlier and later questions that mention it are linked to it (A30).

        All users share the entity, and it has all of their names for it.
        """
        users, thing, clean_text, names = core.checked_entity(user_id, canonical_id, text, aliases)

        def name(now: int) -> str:
            existing = self._entity(thing)
            # A text too long for a name is a description.
            title = [clean_text] if clean_text and len(clean_text) <= NAME_CHARS_MAX else []
            all_names = list(dict.fromkeys([*(existing.about["names"] if existing else [thing]), *title, *names]))
            if len(all_names) > _NAMES_MAX:
                too_many = f"Entity {thing!r} would have {len(all_names)} names; the limit is {_NAMES_MAX}."
                raise InvalidInput(too_many, hint="Give it fewer aliases.")
            id = self._have_entity(users, thing, clean_text, all_names, now)
            if existing is not None:
                self.state.weigh(id, 1.0, 0.0, now)
            return id

        return self.change("named", name)

    def bring(self, about: About, text: str | None) -> str:
        """Copy an entity from another graph, with as many names as fit. This doesn't count as a mention."""

        def bring(now: int) -> str:
            existing = self._entity(about["entity"])
            names = list(dict.fromkeys([*(existing.about["names"] if existing else []), *about["names"]]))
            if existing is not None and len(names) == len(existing.about["names"]):
                return existing.id
            return self._have_entity(about["users"], about["entity"], text, names[:_NAMES_MAX], now)

        return self.change("named", bring)

    def _entity(self, thing: str) -> Vertex | None:
        id = self.state.by_key.get((NodeType.ENTITY, _hashed("entity", thing)))
        return None if id is None else self.state.nodes[id]

    def _have_entity(self, users: Sequence[str], thing: str, text: str | None, names: list[str], now: int) -> str:
        mentions = Mentions()
        mentions.add(thing, names)  # Raises for an unreadable name before anything changes.
        existing = self._entity(thing)
        all_users = {*(existing.about["users"] if existing else ()), *users}
        about = {"entity": thing, "users": sorted(all_users), "names": names}
        if existing is None:
            id = self._add_node(NodeType.ENTITY, _hashed("entity", thing), text, now, about)
        else:
            id = existing.id
            self.state.tell(id, about, text)
        for query in [one.id for one in self.state.of_type(NodeType.QUERY) if mentions.found_in(one.text or "")]:
            if edge_id(query, EdgeType.REFERS_TO_ENTITY, id) not in self.state.arcs:
                self._join_if_there_is_room(query, EdgeType.REFERS_TO_ENTITY, id, 1.0, now)
        return id

    def entities_in(self, text: str) -> list[str]:
        """The nodes of the entities that a text mentions, in the text's order."""
        checked = core.storable(text, "The text")
        with self.reading():
            return list(self.mentions.found_in(checked))

    # Edges and weights

    def link(self, from_id: str, to_id: str, type: EdgeType | str, weight: float = 1.0) -> str:
        """Add an edge, or add weight to an existing one; returns its id, `from::type::to` (A6)."""
        kind = member_of(EdgeType, type, "type of edge")
        if core.finite(weight, "weight") <= 0:
            raise InvalidInput(f"An edge's weight must be above 0, not {weight!r}.", hint="The usual weight is 1.0.")
        return self.change("linked", lambda now: self.join(from_id, kind, to_id, float(weight), now))

    def join(self, from_id: str, type: EdgeType, to_id: str, weight: float, now: int) -> str:
        """Add an edge, or add weight to an existing one, as part of an act."""
        from_type, to_type = _ENDS[type]
        ends = self.vertex(from_id, from_type).id, self.vertex(to_id, to_type).id
        if ends[0] == ends[1]:
            raise InvalidInput(f"Node {from_id} can't be linked to itself.", hint="Name two different nodes.")
        if type is EdgeType.SIMILAR_TO and edge_id(ends[1], type, ends[0]) in self.state.arcs:
            ends = ends[1], ends[0]  # Similarity edges have no direction.
        id = edge_id(ends[0], type, ends[1])
        if id not in self.state.arcs and (weakest := self._edge_to_cut(*ends)) is not None:
            self.state.cut(weakest.id)
        self.state.join(ends[0], type, ends[1], weight, now)
        return id

    def _join_if_there_is_room(self, from_id: str, type: EdgeType, to_id: str, weight: float, now: int) -> None:
        with suppress(core.Full):
            self.join(from_id, type, to_id, weight, now)

    def adjust_weights(self, id: str, *, feedback_delta: float = 0.0, repeat_delta: float = 0.0) -> None:
        """Add to a node's weights."""
        deltas = core.finite(repeat_delta, "repeat_delta"), core.finite(feedback_delta, "feedback_delta")
        self.change("adjusted", lambda _: self.state.weigh(self.vertex(id).id, *deltas, None))

    def pin(self, id: str, pinned: bool = True) -> None:
        """Protect a node from eviction, or end the protection."""
        self.change("pinned", lambda _: self.state.pin(self.vertex(id).id, bool(pinned)))

    def decay(self) -> None:
        """Lower every weight by the time since the last decay, and remove worn-out edges (A24)."""
        self.change("worn", self._wear)

    # Reading

    def node(self, id: str) -> Node:
        """A node's current state. A question includes its vector if that was computed before."""
        with self.reading() as now:
            self._check_embedder()
            return self._node(self.vertex(id), now, with_vector=True)

    def nodes(self, type: NodeType | str | None = None) -> list[Node]:
        """All nodes, or all of one type, the hottest first."""
        kind = None if type is None else member_of(NodeType, type, "type of node")
        with self.reading() as now:
            nodes = [self._node(one, now) for one in self.state.nodes.values() if kind in (None, one.type)]
        return sorted(nodes, key=lambda node: (-node.rank, node.id))

    def edges(self, node_id: str | None = None) -> list[Edge]:
        """All edges, or all of one node, the heaviest first."""
        with self.reading():
            arcs = self.state.arcs if node_id is None else self.vertex(node_id).edges
            edges = [
                Edge(arc.id, arc.from_, arc.to, arc.type, arc.weight, instant(arc.created), instant(arc.last))
                for arc in arcs.values()
            ]
        return sorted(edges, key=lambda edge: (-edge.weight, edge.id))

    def answers(self, query_id: str) -> list[Node]:
        """The answers to a question, the most frequent first."""
        with self.reading() as now:
            near = self.state.neighbours(self.vertex(query_id, NodeType.QUERY).id, EdgeType.RESPONDED_WITH)
            return [self._node(self.state.nodes[id], now) for id, _ in sorted(near, key=lambda one: (-one[1], one[0]))]

    def nominated(self, text: str) -> dict[str, float]:
        """Units that answered similar questions without bad feedback, with the similarity. Doesn't load numpy."""
        question = core.storable(text, "The question")
        with self.reading() as now:
            answered: dict[str, list[str]] = {}
            for query in self.state.of_type(NodeType.QUERY):
                if query.feedback >= 0 and (units := self.state.units_answering(query.id)):
                    answered[query.id] = units
            ranks = {id: self.state.nodes[id].rank(now, self.config.half_life_min) for id in answered}
            hottest = sorted(answered, key=lambda id: (-ranks[id], id))[:_NOMINATING_MAX]
            vector = self._vector(question) if hottest else {}
            nominated: dict[str, float] = {}
            for id in hottest:
                similarity = cosine(vector, self.vector_of(self.state.nodes[id]))
                if similarity >= self.config.tau_sim:
                    nominated |= {unit: max(similarity, nominated.get(unit, 0.0)) for unit in answered[id]}
        return dict(sorted(nominated.items(), key=lambda one: (-one[1], one[0]))[:_NOMINATED_MAX])

    def stats(self) -> GraphStats:
        with self.reading():
            return GraphStats(nodes=len(self.state.nodes), edges=len(self.state.arcs))

    def _node(self, vertex: Vertex, now: int, *, with_vector: bool = False) -> Node:
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
            embedding=dict(vertex.vector) if with_vector and vertex.vector is not None else None,
        )

    # Files (A8, A11)

    def to_snapshot(self) -> dict[str, Any]:
        """The whole graph with its vectors and the state of its embedder, in JSON types."""
        with self.reading() as now:
            return files.record_of(self, now)

    def from_snapshot(self, record: Mapping[str, Any]) -> None:
        """Replace the graph by a snapshot. Vectors of another embedder are computed again from the texts (R18)."""
        state = files.restored(record, self.embedder)
        self.change("restored", lambda now: self._replace_state(state, now))

    def save_to_file(self, file: str | os.PathLike[str], *, only_if_dirty: bool = False) -> bool:
        """Write the graph to a file atomically. Returns whether it was written."""
        return files.save(self, file, only_if_dirty=only_if_dirty)

    @classmethod
    def load_from_file(cls, file: str | os.PathLike[str], store: GraphStore | None = None) -> GraphStore:
        """Load a snapshot or checkpoint file into `store`, or into a new graph with the file's settings."""
        return files.load(cls, file, store)


def _hashed(*parts: str) -> str:
    return hashed("\x1f".join(parts))

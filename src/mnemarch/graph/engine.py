"""The rules of one graph: what each act changes, what has to make room for it, which questions are alike.

Every call is given the time. The caller holds the lock.
"""

from __future__ import annotations

from contextlib import suppress

from xxhash import xxh3_128_hexdigest

from mnemarch.embedding.sparse import cosine
from mnemarch.errors import Hint, InvalidInput, NotFound
from mnemarch.graph.search import NodeTable, unit_vector
from mnemarch.graph.state import MICROS_PER_MIN, GraphState, edge_id
from mnemarch.graph.values import EdgeType, NodeType
from mnemarch.policy.heat import EDGE_WEIGHT_MIN, FEEDBACK, spread
from mnemarch.text.canonical import canonical, canonical_key
from mnemarch.text.difference import differences
from mnemarch.text.mentions import NAME_CHARS_MAX, Mentions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mnemarch.graph.state import About, Arc, Vector, Vertex
    from mnemarch.graph.values import EmbeddingProvider
    from mnemarch.policy.heat import GraphConfig

    Keep = frozenset[str]

_NAMES_MAX = 64
_NOMINATING_MAX = 64
_NOMINATED_MAX = 8
_NOBODY: Keep = frozenset()

# What each type of edge leads from and to.
_ENDS = {
    EdgeType.SIMILAR_TO: (NodeType.QUERY, NodeType.QUERY),
    EdgeType.RESPONDED_WITH: (NodeType.QUERY, NodeType.ANSWER),
    EdgeType.HAS_FEEDBACK: (NodeType.QUERY, NodeType.FEEDBACK),
    EdgeType.REFERS_TO_ENTITY: (NodeType.QUERY, NodeType.ENTITY),
}


class Full(InvalidInput):
    """The graph is full, and nothing in it may be evicted."""


class GraphEngine:
    """A graph's state, its search table, and the names of its entities. `keep` names nodes that are not evicted."""

    def __init__(self, config: GraphConfig, embedder: EmbeddingProvider, state: GraphState) -> None:
        self._config = config
        self._embedder = embedder
        self._embedder_id: object = getattr(embedder, "id", None)
        self._table: NodeTable | None = None
        self._mentions = Mentions()
        self.state = state
        for vertex in state.of_type(NodeType.ENTITY):
            self._mentions.add(vertex.id, vertex.about["names"])
        state.on_change = self._noted
        state.steps = []

    def _noted(self, vertex: Vertex, is_there: bool) -> None:
        if self._table is not None:
            self._table.note(vertex, is_there)
        if vertex.type is NodeType.ENTITY:
            if not is_there:
                self._mentions.remove(vertex.id)
            elif self._mentions.names_of(vertex.id) != vertex.about["names"]:
                self._mentions.add(vertex.id, vertex.about["names"])

    # Questions

    def ask(self, text: str, now: int, keep: Keep = _NOBODY) -> str:
        """The node of a question: a new one, or that of the same question in these words or others."""
        key = canonical_key(text)
        known = self._with_key(NodeType.QUERY, key, text)
        vector = {} if known is not None else self._vector(text)
        near = [] if known is not None else self._similar(vector)
        known = known or self._duplicate(text, near)
        if known is not None:
            self.state.weigh(known, 1.0, 0.0, now)
            self.state.alias(known, key)
            return known
        id = self._new(NodeType.QUERY, key, text, now, {}, keep, vector)
        linked = [(sim, other.id) for sim, other in near[: self._config.similar_max] if sim >= self._config.tau_sim]
        # The nearest last: if there is room for few edges, those to the nearest stay.
        for sim, other in reversed(linked):
            if other in self.state.nodes:
                self._link_if_there_is_room(id, EdgeType.SIMILAR_TO, other, sim, now)
        for entity in self._mentions.found_in(text):
            self._link_if_there_is_room(id, EdgeType.REFERS_TO_ENTITY, entity, 1.0, now)
        return id

    def known(self, text: str) -> str | None:
        """The node that a question would be merged into, without asking it."""
        same = self._with_key(NodeType.QUERY, canonical_key(text), text)
        return same or self._duplicate(text, self._similar(self._vector(text)))

    def _with_key(self, type: NodeType, key: str, text: str | None) -> str | None:
        """The node with this key. Equal keys are confirmed by equal texts, unless the key is an alias (R6)."""
        id = self.state.by_key.get((type, key))
        if id is None:
            return None
        vertex = self.state.nodes[id]
        is_same = vertex.key != key or canonical(vertex.text or "") == canonical(text or "")
        return id if is_same else None

    def _similar(self, vector: Vector) -> list[tuple[float, Vertex]]:
        return self.table().similar(vector, min(self._config.tau_sim, self._config.tau_dup))

    def _duplicate(self, text: str, near: Sequence[tuple[float, Vertex]]) -> str | None:
        """The same question in other words; never one with another number, negation, quotation or identifier (R6)."""
        sameness = getattr(self._embedder, "sameness", lambda _text, _other, cosine: cosine)
        for sim, vertex in near:
            other = vertex.text or ""
            if sim < self._config.tau_dup:
                break
            if sameness(text, other, sim) >= self._config.tau_dup and not differences(text, other):
                return vertex.id
        return None

    def best(self, text: str, k: int, now: int) -> list[tuple[float, float, Vertex]]:
        """Score, similarity and node of the `k` best questions."""
        return self.table().best(self._vector(text), k, now)

    # Answers, feedback, entities, edges

    def answer(self, query_id: str, text: str | None, unit_id: str | None, now: int, keep: Keep = _NOBODY) -> str:
        """Link a question to its answer: a text, or a unit of a memory."""
        query = self.vertex(query_id, NodeType.QUERY)
        key = _hashed("unit", unit_id or "") if text is None else canonical_key(text)
        known = self._with_key(NodeType.ANSWER, key, text)
        about = {} if unit_id is None else {"unit": unit_id}
        answer = self._other_end(query, EdgeType.RESPONDED_WITH, known, (key, text, about), now, keep)
        self.state.weigh(query.id, 0.0, 0.0, now)
        self.link(query.id, EdgeType.RESPONDED_WITH, answer, 1.0, now)
        return answer

    def judge(self, query_id: str, label: str, note: str | None, now: int) -> str:
        """Give a question feedback, and similar questions their share of it (R15)."""
        query = self.vertex(query_id, NodeType.QUERY)
        # The same feedback again is the same node. Its edge grows.
        key = _hashed(query.id, label, "" if note is None else canonical(note))
        known = self.state.by_key.get((NodeType.FEEDBACK, key))
        feedback = self._other_end(query, EdgeType.HAS_FEEDBACK, known, (key, note, {"label": label}), now)
        self.link(query.id, EdgeType.HAS_FEEDBACK, feedback, 1.0, now)
        delta = FEEDBACK[label]
        self.state.weigh(query.id, 0.0, delta, now)
        shares = spread(query.id, delta, lambda id: self.state.neighbours(id, EdgeType.SIMILAR_TO))
        for id, share in shares.items():
            self.state.weigh(id, 0.0, share, None)
        return feedback

    def _other_end(
        self, query: Vertex, type: EdgeType, known: str | None, new: Any, now: int, keep: Keep = _NOBODY
    ) -> str:
        """A question's answer or feedback, known or new. Without room for it, it is refused before anything changes."""
        keep |= {query.id}
        if known is None:
            self._require_room_for_a_node(keep)
        if known is None or edge_id(query.id, type, known) not in self.state.arcs:
            self._edge_to_cut(frozenset({query.id, known or ""}))
        if known is None:
            key, text, about = new
            known = self._new(_ENDS[type][1], key, text, now, about, keep)
        else:
            self.state.weigh(known, 1.0, 0.0, now)
        return known

    def name(self, users: Sequence[str], thing: str, text: str | None, names: Sequence[str], now: int) -> str:
        """An entity with all its names, linked to the questions that mention it."""
        known = self._entity(thing)
        # A text that is too long for a name is a description.
        title = [text] if text and len(text) <= NAME_CHARS_MAX else []
        all_names = list(dict.fromkeys([*(known.about["names"] if known else [thing]), *title, *names]))
        if len(all_names) > _NAMES_MAX:
            too_many = f"Entity {thing!r} would have {len(all_names)} names; the limit is {_NAMES_MAX}."
            raise InvalidInput(too_many, hint="Give it fewer aliases.")
        id = self._have_entity(users, thing, text, all_names, now, _NOBODY)
        if known is not None:
            self.state.weigh(id, 1.0, 0.0, now)
        return id

    def bring(self, about: About, text: str | None, now: int, keep: Keep = _NOBODY) -> str:
        """Copy an entity from another graph, with as many names as there is room for. This counts as no mention."""
        known = self._entity(about["entity"])
        names = list(dict.fromkeys([*(known.about["names"] if known else []), *about["names"]]))
        if known is not None and len(names) == len(known.about["names"]):
            return known.id
        return self._have_entity(about["users"], about["entity"], text, names[:_NAMES_MAX], now, keep)

    def _entity(self, thing: str) -> Vertex | None:
        id = self.state.by_key.get((NodeType.ENTITY, _hashed("entity", thing)))
        return None if id is None else self.state.nodes[id]

    def _have_entity(
        self, users: Sequence[str], thing: str, text: str | None, names: list[str], now: int, keep: Keep
    ) -> str:
        mentions = Mentions()
        mentions.add(thing, names)  # Refuses an unreadable name before anything changes.
        known = self._entity(thing)
        about = {"entity": thing, "users": sorted({*(known.about["users"] if known else ()), *users}), "names": names}
        if known is None:
            id = self._new(NodeType.ENTITY, _hashed("entity", thing), text, now, about, keep)
        else:
            id = known.id
            self.state.tell(id, about, text)
        for query in [one.id for one in self.state.of_type(NodeType.QUERY) if mentions.found_in(one.text or "")]:
            if edge_id(query, EdgeType.REFERS_TO_ENTITY, id) not in self.state.arcs:
                self._link_if_there_is_room(query, EdgeType.REFERS_TO_ENTITY, id, 1.0, now)
        return id

    def entities_in(self, text: str) -> list[Vertex]:
        """The entities that a text mentions."""
        return [self.state.nodes[id] for id in self._mentions.found_in(text)]

    def are_linked(self, one: str, type: EdgeType, other: str) -> bool:
        """Whether an edge of this type joins two nodes, in either direction."""
        return edge_id(one, type, other) in self.state.arcs or edge_id(other, type, one) in self.state.arcs

    def link(self, from_id: str, type: EdgeType, to_id: str, weight: float, now: int) -> str:
        """Add an edge, or add weight to an existing one; returns its id."""
        from_type, to_type = _ENDS[type]
        ends = self.vertex(from_id, from_type).id, self.vertex(to_id, to_type).id
        if ends[0] == ends[1]:
            raise InvalidInput(f"Node {from_id} can't be linked to itself.", hint="Name two nodes.")
        if type is EdgeType.SIMILAR_TO and edge_id(ends[1], type, ends[0]) in self.state.arcs:
            ends = ends[1], ends[0]  # Similarity has no direction.
        id = edge_id(ends[0], type, ends[1])
        if id not in self.state.arcs and (weakest := self._edge_to_cut(frozenset(ends))) is not None:
            self.state.cut(weakest.id)
        self.state.join(ends[0], type, ends[1], weight, now)
        return id

    def _link_if_there_is_room(self, from_id: str, type: EdgeType, to_id: str, weight: float, now: int) -> None:
        with suppress(Full):
            self.link(from_id, type, to_id, weight, now)

    # Time

    def wear_if_due(self, now: int) -> None:
        """Lower the weights if `decay_every_min` is set and has passed."""
        every_min, last = self._config.decay_every_min, self.state.decayed_at
        if every_min and (last is None or now - last >= every_min * MICROS_PER_MIN):
            self.wear(now)

    def wear(self, now: int) -> None:
        """Lower every weight for the time since the last wear; worn-out edges go (A24)."""
        self.state.wear(self._config.half_life_min, now)
        for arc_id in [arc.id for arc in self.state.arcs.values() if abs(arc.weight) < EDGE_WEIGHT_MIN]:
            self.state.cut(arc_id)

    # Room (A23)

    def _new(
        self,
        type: NodeType,
        key: str,
        text: str | None,
        now: int,
        about: About,
        keep: Keep,
        vector: Vector | None = None,
    ) -> str:
        self._require_room_for_a_node(keep)
        self._evict_down_to(self._config.max_nodes - 1, now, keep)
        id = f"{type}:{key}"
        while id in self.state.nodes:
            id += "~"  # Another text with the same key.
        self.state.add(id, type, text, key, now, about, vector)
        self.state.weigh(id, 1.0, 0.0, now)
        return id

    def _may_go(self, id: str, keep: Keep) -> bool:
        return id not in keep and not self.state.nodes[id].pinned

    def _require_room_for_a_node(self, keep: Keep) -> None:
        if len(self.state.nodes) >= self._config.max_nodes and not any(
            self._may_go(id, keep) for id in self.state.nodes
        ):
            full = f"The graph is full: all of its {len(self.state.nodes)} nodes are pinned or just being written."
            raise Full(full, hint="Raise max_nodes, or unpin some.")

    def _evict_down_to(self, count: int, now: int, keep: Keep) -> None:
        """Evict the coldest nodes that are neither pinned nor protected by their edges.

        If all are protected, the weakest edges go until one is not.
        """
        while len(self.state.nodes) > count:
            coldest = self.table().coldest(now, keep)
            if coldest is not None:
                self.state.drop(coldest.id)
                continue
            weakest = self.state.weakest_arc(lambda arc: self._may_go(arc.from_, keep) or self._may_go(arc.to, keep))
            assert weakest is not None, "a protected node has edges"
            self.state.cut(weakest.id)

    def _edge_to_cut(self, ends: Keep) -> Arc | None:
        """The edge to cut before one more is added; never one that would take one of the new edge's ends along."""
        if len(self.state.arcs) < self._config.max_edges:
            return None
        takes_along = self.state.takes_along
        weakest = self.state.weakest_arc(lambda arc: not (arc.to in ends and takes_along(arc)))
        if weakest is None:
            full = f"The graph has room for {self._config.max_edges} edges, and each holds a node that must stay."
            raise Full(full, hint="Raise max_edges.")
        return weakest

    def shrink(self, now: int) -> None:
        """Fit into the limits: a file may bring more than this graph has room for."""
        while len(self.state.arcs) > self._config.max_edges:
            weakest = self.state.weakest_arc(lambda _: True)
            assert weakest is not None, "there are edges"
            self.state.cut(weakest.id)
        if len(self.state.nodes) > self._config.max_nodes:
            self._require_room_for_a_node(_NOBODY)
            self._evict_down_to(self._config.max_nodes, now, _NOBODY)

    # Nodes and vectors

    def vertex(self, id: Any, type: NodeType | None = None) -> Vertex:
        """The node with this id, which must be of this type."""
        vertex = self.state.nodes.get(id) if isinstance(id, str) else None
        if vertex is None:
            raise NotFound(f"No node {id!r} in this graph.", hint=Hint("ask it again"))
        if type is not None and vertex.type is not type:
            raise InvalidInput(f"Node {id} is of type {vertex.type}, not {type}.", hint=f"Give the id of a {type}.")
        return vertex

    def table(self) -> NodeTable:
        self._check_embedder()
        if self._table is None:
            self._table = NodeTable(self._config, self._vector)
            for vertex in self.state.nodes.values():
                self._table.note(vertex, True)
        return self._table

    def _check_embedder(self) -> None:
        """An embedder that learnt something is another one. Vectors it made before are dropped (R18)."""
        if (id := getattr(self._embedder, "id", None)) != self._embedder_id:
            self._embedder_id = id
            self._table = None
            for vertex in self.state.nodes.values():
                vertex.vector = None

    def _vector(self, text: str) -> Vector:
        return unit_vector(self._embedder.embed(text))

    def vector_of(self, vertex: Vertex) -> Vector:
        """The vector of a question. It needs no numpy if nothing was searched yet."""
        self._check_embedder()
        if self._table is not None:
            return self._table.vector(vertex)
        if vertex.vector is None:
            vertex.vector = self._vector(vertex.text or "")
        return vertex.vector

    def vector_if_made(self, vertex: Vertex) -> dict[Any, float] | None:
        self._check_embedder()
        if vertex.type is not NodeType.QUERY or (self._table is None and vertex.vector is None):
            return None
        return dict(self.vector_of(vertex))

    def nominated(self, text: str, now: int) -> dict[str, float]:
        """Units that answered similar questions without bad feedback, and how similar those questions are.

        A recall may be all that a process does, so this needs no numpy.
        """
        answered: dict[str, list[str]] = {}
        for query in self.state.of_type(NodeType.QUERY):
            near = self.state.neighbours(query.id, EdgeType.RESPONDED_WITH) if query.feedback >= 0 else ()
            units = [unit for id, _ in near if (unit := self.state.nodes[id].about.get("unit")) is not None]
            if units:
                answered[query.id] = units
        ranks = {id: self.state.nodes[id].rank(now, self._config.half_life_min) for id in answered}
        hottest = sorted(answered, key=lambda id: (-ranks[id], id))[:_NOMINATING_MAX]
        vector = self._vector(text) if hottest else {}
        nominated: dict[str, float] = {}
        for id in hottest:
            similarity = cosine(vector, self.vector_of(self.state.nodes[id]))
            if similarity >= self._config.tau_sim:
                nominated |= {unit: max(similarity, nominated.get(unit, 0.0)) for unit in answered[id]}
        return dict(sorted(nominated.items(), key=lambda one: (-one[1], one[0]))[:_NOMINATED_MAX])


def _hashed(*parts: str) -> str:
    return xxh3_128_hexdigest("\x1f".join(parts).encode("utf-8", "surrogatepass"))

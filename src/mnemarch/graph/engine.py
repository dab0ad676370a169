"""The rules of one graph at work: what each act changes, who has to make room for it, what is like what.

Everything here happens at a moment that is given, in the hands of somebody who keeps others out.
"""

from __future__ import annotations

from contextlib import suppress

from xxhash import xxh3_128_hexdigest

from mnemarch.embedding.sparse import cosine
from mnemarch.errors import Hint, InvalidInput, NotFound
from mnemarch.graph.columns import Columns
from mnemarch.graph.node import EdgeType, NodeType
from mnemarch.graph.state import MICROS_PER_MIN, GraphState, edge_id
from mnemarch.policy.heat import EDGE_WEIGHT_MIN, FEEDBACK, spread
from mnemarch.text.canonical import canonical, canonical_key
from mnemarch.text.difference import differences
from mnemarch.text.mentions import NAME_CHARS_MAX, Mentions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from mnemarch.graph.measure import Measure
    from mnemarch.graph.state import Arc, Vertex
    from mnemarch.policy.heat import GraphConfig

_NAMES_MAX = 64
_NOMINATING_MAX = 64
_NOMINATED_MAX = 8

# What each type of edge leads from and to.
_ENDS = {
    EdgeType.SIMILAR_TO: (NodeType.QUERY, NodeType.QUERY),
    EdgeType.RESPONDED_WITH: (NodeType.QUERY, NodeType.ANSWER),
    EdgeType.HAS_FEEDBACK: (NodeType.QUERY, NodeType.FEEDBACK),
    EdgeType.REFERS_TO_ENTITY: (NodeType.QUERY, NodeType.ENTITY),
}


class Full(InvalidInput):
    """The graph has no room, and nothing that it may give up."""


class Engine:
    """A state and what is derived from it: columns to search in, and the names of entities."""

    def __init__(
        self,
        config: GraphConfig,
        measure: Measure,
        state: GraphState,
    ) -> None:
        self._config = config
        self._measure = measure
        self._made_by = measure.maker()
        self._columns: Columns | None = None
        self._mentions = Mentions()
        self.state = state
        for vertex in state.of_type(NodeType.ENTITY):
            self._mentions.add(vertex.id, vertex.about["names"])
        state.on_change = self._noted
        state.steps = []

    def _noted(self, vertex: Vertex, is_there: bool) -> None:
        if self._columns is not None:
            self._columns.note(vertex, is_there)
        if vertex.type is NodeType.ENTITY:
            if not is_there:
                self._mentions.remove(vertex.id)
            elif self._mentions.names_of(vertex.id) != vertex.about["names"]:
                self._mentions.add(vertex.id, vertex.about["names"])

    # Questions

    def ask(self, text: str, now: int, keep: frozenset[str] = frozenset()) -> str:
        """The node of a question: a new one, or that of the same question in these words or in others.

        Nodes in `keep` need not make room for it.
        """
        key = canonical_key(text)
        known = self._same(NodeType.QUERY, key, text)
        if known is not None:
            self.state.weigh(known, 1.0, 0.0, now)
            return known
        vector = self._measure.vector(text)
        near = self._alike(vector)
        known = self._duplicate(text, near)
        if known is not None:
            self.state.weigh(known, 1.0, 0.0, now)
            self.state.alias(known, key)
            return known
        id = self._new(NodeType.QUERY, key, text, now, {}, vector=vector, keep=keep)
        linked = [
            (sim, other.id)
            for sim, other in near[: self._config.similar_max]
            if sim >= self._config.tau_sim and other.id in self.state.nodes
        ]
        # The nearest last: if there is room for few edges, those to the nearest stay.
        for sim, other in reversed(linked):
            self._link_if_there_is_room(id, EdgeType.SIMILAR_TO, other, sim, now)
        for entity in self._mentions.found_in(text):
            self._link_if_there_is_room(id, EdgeType.REFERS_TO_ENTITY, entity, 1.0, now)
        return id

    def known(self, text: str) -> str | None:
        """The node that a question would be taken for, without asking it."""
        same = self._same(NodeType.QUERY, canonical_key(text), text)
        return same or self._duplicate(text, self._alike(self._measure.vector(text)))

    def _same(self, type: NodeType, key: str, text: str | None) -> str | None:
        """The node with this key; equal keys are confirmed by equal texts, unless another wording led here (R6)."""
        id = self.state.by_key.get((type, key))
        if id is None:
            return None
        vertex = self.state.nodes[id]
        if vertex.key == key and canonical(vertex.text or "") != canonical(text or ""):
            return None
        return id

    def _alike(self, vector: Mapping[Any, float]) -> list[tuple[float, Vertex]]:
        return self.columns().alike(vector, min(self._config.tau_sim, self._config.tau_dup))

    def _duplicate(self, text: str, near: Sequence[tuple[float, Vertex]]) -> str | None:
        """The question that is the same in other words; never one in which something guarded differs (R6)."""
        for sim, vertex in near:
            if sim < self._config.tau_dup:
                break
            other = vertex.text or ""
            if self._measure.sameness(text, other, sim) >= self._config.tau_dup and not differences(text, other):
                return vertex.id
        return None

    def best(self, text: str, k: int, now: int) -> list[tuple[float, float, Vertex]]:
        """Score, similarity and node of the `k` questions most like this one."""
        return self.columns().best(self._measure.vector(text), k, now)

    # Answers, feedback, entities, edges

    def answer(
        self, query_id: str, text: str | None, unit_id: str | None, now: int, keep: frozenset[str] = frozenset()
    ) -> str:
        """Link a question to what it was answered with."""
        query = self.vertex(query_id, NodeType.QUERY)
        keep |= {query.id}
        key = _hashed("unit", unit_id or "") if text is None else canonical_key(text)
        answer = self._same(NodeType.ANSWER, key, text)
        self._require_room(query.id, EdgeType.RESPONDED_WITH, answer, keep)
        if answer is None:
            about = {} if unit_id is None else {"unit": unit_id}
            answer = self._new(NodeType.ANSWER, key, text, now, about, keep=keep)
        else:
            self.state.weigh(answer, 1.0, 0.0, now)
        self.state.weigh(query.id, 0.0, 0.0, now)
        self.link(query.id, EdgeType.RESPONDED_WITH, answer, 1.0, now)
        return answer

    def judge(self, query_id: str, label: str, note: str | None, now: int) -> str:
        """Give a question feedback, and the questions like it their share (R15)."""
        query = self.vertex(query_id, NodeType.QUERY)
        # The same said again is the same node: its edge grows.
        key = _hashed(query.id, label, "" if note is None else canonical(note))
        feedback = self.state.by_key.get((NodeType.FEEDBACK, key))
        self._require_room(query.id, EdgeType.HAS_FEEDBACK, feedback, frozenset({query.id}))
        if feedback is None:
            feedback = self._new(NodeType.FEEDBACK, key, note, now, {"label": label}, keep=frozenset({query.id}))
        else:
            self.state.weigh(feedback, 1.0, 0.0, now)
        self.link(query.id, EdgeType.HAS_FEEDBACK, feedback, 1.0, now)
        delta = FEEDBACK[label]
        self.state.weigh(query.id, 0.0, delta, now)
        shares = spread(query.id, delta, lambda id: self.state.neighbours(id, EdgeType.SIMILAR_TO))
        for id, share in shares.items():
            self.state.weigh(id, 0.0, share, None)
        return feedback

    def name(self, users: Sequence[str], thing: str, text: str | None, names: Sequence[str], now: int) -> str:
        """An entity with all its names, linked to the questions that mention it."""
        known = self._entity(thing)
        # A text that is too long for a name describes the thing.
        title = [text] if text and len(text) <= NAME_CHARS_MAX else []
        all_names = list(dict.fromkeys([*(known.about["names"] if known else [thing]), *title, *names]))
        if len(all_names) > _NAMES_MAX:
            raise InvalidInput(
                f"Entity {thing!r} would have {len(all_names)} names; the limit is {_NAMES_MAX}.",
                hint="Give it fewer aliases.",
            )
        id = self._have_entity(users, thing, text, all_names, now)
        if known is not None:
            self.state.weigh(id, 1.0, 0.0, now)
        return id

    def bring(self, about: Mapping[str, Any], text: str | None, now: int, keep: frozenset[str] = frozenset()) -> str:
        """An entity of another graph, with as many of its names as there is room for; bringing it is no mention."""
        known = self._entity(about["entity"])
        if known is not None and set(about["names"]) <= set(known.about["names"]):
            return known.id
        names = dict.fromkeys([*(known.about["names"] if known else []), *about["names"]])
        return self._have_entity(about["users"], about["entity"], text, list(names)[:_NAMES_MAX], now, keep)

    def _entity(self, thing: str) -> Vertex | None:
        id = self.state.by_key.get((NodeType.ENTITY, _hashed("entity", thing)))
        return None if id is None else self.state.nodes[id]

    def _have_entity(
        self,
        users: Sequence[str],
        thing: str,
        text: str | None,
        names: list[str],
        now: int,
        keep: frozenset[str] = frozenset(),
    ) -> str:
        mentioned = Mentions()
        mentioned.add(thing, names)  # Refuses a name that names nothing, before anything changed.
        known = self._entity(thing)
        about = {"entity": thing, "users": sorted({*(known.about["users"] if known else ()), *users}), "names": names}
        if known is None:
            id = self._new(NodeType.ENTITY, _hashed("entity", thing), text, now, about, keep=keep)
        else:
            id = known.id
            self.state.tell(id, about, text)
        for query in [one.id for one in self.state.of_type(NodeType.QUERY) if mentioned.found_in(one.text or "")]:
            if query in self.state.nodes and edge_id(query, EdgeType.REFERS_TO_ENTITY, id) not in self.state.arcs:
                self._link_if_there_is_room(query, EdgeType.REFERS_TO_ENTITY, id, 1.0, now)
        return id

    def named_in(self, text: str) -> list[str]:
        """The entities that a text mentions."""
        return self._mentions.found_in(text)

    def are_linked(self, one: str, type: EdgeType, other: str) -> bool:
        """Whether an edge of this type leads from one node to the other, or back."""
        return edge_id(one, type, other) in self.state.arcs or edge_id(other, type, one) in self.state.arcs

    def link(self, from_id: str, type: EdgeType, to_id: str, weight: float, now: int) -> str:
        """Add an edge, or weight to the one that is there; gives its id."""
        ends = self.vertex(from_id, _ENDS[type][0]).id, self.vertex(to_id, _ENDS[type][1]).id
        if ends[0] == ends[1]:
            raise InvalidInput(f"Node {from_id} can't be linked to itself.", hint="Name two nodes.")
        if type is EdgeType.SIMILAR_TO and edge_id(ends[1], type, ends[0]) in self.state.arcs:
            ends = ends[1], ends[0]  # Being alike has no direction.
        if edge_id(ends[0], type, ends[1]) not in self.state.arcs:
            weakest = self._in_the_way_of_an_edge(frozenset(ends))
            if weakest is not None:
                self.state.cut(weakest.id)
        self.state.join(ends[0], type, ends[1], weight, now)
        return edge_id(ends[0], type, ends[1])

    def _link_if_there_is_room(self, from_id: str, type: EdgeType, to_id: str, weight: float, now: int) -> None:
        """The same for an edge that can be done without."""
        with suppress(Full):
            self.link(from_id, type, to_id, weight, now)

    # Time

    def wear_if_due(self, now: int) -> None:
        """Lower the weights if it is time to, and they are to be lowered at all."""
        every_min, last = self._config.decay_every_min, self.state.decayed_at
        if every_min and (last is None or now - last >= every_min * MICROS_PER_MIN):
            self.wear(now)

    def wear(self, now: int) -> None:
        """Really lower every weight; an edge that is worn through goes (A24)."""
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
        about: Mapping[str, Any],
        *,
        vector: Any = None,
        keep: frozenset[str] = frozenset(),
    ) -> str:
        self._make_room_for_a_node(now, keep)
        id = f"{type}:{key}"
        while id in self.state.nodes:
            id += "~"  # Another text with the same key.
        self.state.add(id, type, text, key, now, about, vector=vector)
        self.state.weigh(id, 1.0, 0.0, now)
        return id

    def _require_room(self, query_id: str, type: EdgeType, other: str | None, keep: frozenset[str]) -> None:
        """Refuse, before anything changed, what a question can't be linked to for lack of room."""
        if other is None:
            self._require_room_for_a_node(keep)
        if other is None or edge_id(query_id, type, other) not in self.state.arcs:
            self._in_the_way_of_an_edge(frozenset({query_id, other or ""}))

    def _require_room_for_a_node(self, keep: frozenset[str]) -> None:
        if len(self.state.nodes) < self._config.max_nodes:
            return
        if all(vertex.pinned or vertex.id in keep for vertex in self.state.nodes.values()):
            raise Full(
                f"The graph is full: all of its {len(self.state.nodes)} nodes are pinned or just being written.",
                hint="Raise max_nodes, or unpin some.",
            )

    def _make_room_for_a_node(self, now: int, keep: frozenset[str]) -> None:
        """Give up the coldest node that is neither pinned nor protected by its edges.

        If all are, the weakest edges go, until one is not.
        """
        self._require_room_for_a_node(keep)
        self._drop_coldest(self._config.max_nodes - 1, now, keep)

    def _drop_coldest(self, count: int, now: int, keep: frozenset[str]) -> None:
        """Give up nodes until there are no more than so many."""
        while len(self.state.nodes) > count:
            coldest = self.columns().coldest(now, keep)
            if coldest is not None:
                self.state.drop(coldest.id)
                continue
            weakest = self.state.weakest_arc(lambda arc: self._may_go(arc.from_, keep) or self._may_go(arc.to, keep))
            assert weakest is not None, "who is protected has edges"
            self.state.cut(weakest.id)

    def _may_go(self, id: str, keep: frozenset[str]) -> bool:
        return id not in keep and not self.state.nodes[id].pinned

    def _in_the_way_of_an_edge(self, ends: frozenset[str]) -> Arc | None:
        """The edge that has to go if one more is to come: none that would take one of its ends along."""
        if len(self.state.arcs) < self._config.max_edges:
            return None
        weakest = self.state.weakest_arc(lambda arc: not (self.state.leaves_alone(arc) and arc.to in ends))
        if weakest is None:
            raise Full(
                f"The graph has room for {self._config.max_edges} edges, and each holds a node that must stay.",
                hint="Raise max_edges.",
            )
        return weakest

    def shrink(self, now: int) -> None:
        """Fit into the bounds: what a file brought may be more than this graph has room for."""
        while len(self.state.arcs) > self._config.max_edges:
            weakest = self.state.weakest_arc(lambda _: True)
            assert weakest is not None, "there are edges"
            self.state.cut(weakest.id)
        if len(self.state.nodes) > self._config.max_nodes:
            self._require_room_for_a_node(frozenset())
            self._drop_coldest(self._config.max_nodes, now, frozenset())

    # Looking

    def vertex(self, id: str, type: NodeType | None = None) -> Vertex:
        """A node that is there, and of this type."""
        given: Any = id
        found = self.state.nodes.get(id) if isinstance(given, str) else None
        if found is None:
            raise NotFound(f"No node {id!r} in this graph.", hint=Hint("ask it again"))
        if type is not None and found.type is not type:
            raise InvalidInput(f"Node {id} is of type {found.type}, not {type}.", hint=f"Give the id of a {type}.")
        return found

    def columns(self) -> Columns:
        self._check_maker()
        if self._columns is None:
            self._columns = Columns(self._config, self._measure.vector)
            for vertex in self.state.nodes.values():
                self._columns.note(vertex, True)
        return self._columns

    def _check_maker(self) -> None:
        """An embedder that learnt something is another one: its older vectors are not compared with new ones (R18)."""
        if self._measure.maker() != self._made_by:
            self._made_by = self._measure.maker()
            self._columns = None
            for vertex in self.state.nodes.values():
                vertex.vector = None

    def vector_of(self, vertex: Vertex) -> Mapping[Any, float]:
        """The vector of a question; made for this purpose if there are no columns yet."""
        self._check_maker()
        if self._columns is not None:
            return self._columns.vector(vertex)
        if vertex.vector is None:
            vertex.vector = self._measure.vector(vertex.text or "")
        found: Mapping[Any, float] = vertex.vector
        return found

    def vector_if_made(self, vertex: Vertex) -> dict[Any, float] | None:
        self._check_maker()
        if vertex.type is not NodeType.QUERY or (self._columns is None and vertex.vector is None):
            return None
        return dict(self.vector_of(vertex))

    def nominated(self, text: str, now: int) -> dict[str, float]:
        """Units that answered questions like this one and were not found wanting, and how alike the questions are.

        It is part of a recall, which may be all that a process does: so it needs no columns.
        """
        answered = {
            vertex.id: units
            for vertex in self.state.of_type(NodeType.QUERY)
            if vertex.feedback >= 0 and (units := self._units_for(vertex.id))
        }
        ranks = {id: self.state.nodes[id].rank(now, self._config.half_life_min) for id in answered}
        hottest = sorted(answered, key=lambda id: (-ranks[id], id))[:_NOMINATING_MAX]
        vector = self._measure.vector(text) if hottest else {}
        found: dict[str, float] = {}
        for id in hottest:
            similarity = cosine(vector, self.vector_of(self.state.nodes[id]))
            if similarity >= self._config.tau_sim:
                found |= {unit: max(similarity, found.get(unit, 0.0)) for unit in answered[id]}
        return dict(sorted(found.items(), key=lambda one: (-one[1], one[0]))[:_NOMINATED_MAX])

    def _units_for(self, query_id: str) -> list[str]:
        near = self.state.neighbours(query_id, EdgeType.RESPONDED_WITH)
        return [unit for id, _ in near if (unit := self.state.nodes[id].about.get("unit")) is not None]


def _hashed(*parts: str) -> str:
    return xxh3_128_hexdigest("\x1f".join(parts).encode("utf-8", "surrogatepass"))

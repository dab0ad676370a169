"""What of a session goes on: its hot questions, with what belongs to them, to the agent's graph (A14, A26)."""

from __future__ import annotations

from mnemon.errors import InvalidInput
from mnemon.graph.node import EdgeType, NodeType, Promoted
from mnemon.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mnemon.graph.node import Edge, Node
    from mnemon.graph.store import GraphStore
    from mnemon.policy.heat import PromotionConfig


@value
class Outcome:
    promoted: tuple[Promoted, ...]
    lowered: tuple[str, ...]
    left_out: tuple[str, ...]


def hotspots(queries: Iterable[Node], rules: PromotionConfig) -> list[Node]:
    """The questions to promote, the hottest first. What was found wanting is not handed on as worth knowing."""
    hot = [
        query
        for query in queries
        if query.rank >= rules.min_rank and query.degree >= rules.min_degree and query.weights.feedback >= 0
    ]
    return sorted(hot, key=lambda query: (-query.rank, query.id))[: rules.max_promotions]


def promote(session: GraphStore, agent: GraphStore, rules: PromotionConfig | None) -> Outcome:
    """Carry a session's hotspots over, unless there are no `rules` to; where the agent knows a question, it grows.

    A question that was judged unhelpful is not promoted, but if the agent's graph has it, it is lowered there.
    """
    if rules is None:
        return Outcome(promoted=(), lowered=(), left_out=())
    queries = session.nodes(NodeType.QUERY)
    hot = hotspots(queries, rules)
    places: dict[str, str] = {}
    promoted: list[Promoted] = []
    left_out: list[str] = []
    for query in hot:
        try:
            known = agent.known_query(query.text or "")
            place = agent.upsert_query(query.text or "")
        except InvalidInput:
            left_out.append(query.id)  # The agent's graph has no room that it may give up.
            continue
        if rules.carry_weights:
            agent.adjust_weights(
                place, feedback_delta=query.weights.feedback, repeat_delta=max(0.0, query.weights.repeat - 1.0)
            )
        places[query.id] = place
        promoted.append(Promoted(text=query.text or "", session_node=query.id, agent_node=place, merged=known == place))
    for query in hot:
        if query.id in places:
            left_out += _carry_around(session, agent, query, places)
    return Outcome(
        promoted=tuple(promoted),
        lowered=tuple(_lower(agent, [query for query in queries if query.weights.feedback < 0], rules)),
        left_out=tuple(left_out),
    )


def _carry_around(session: GraphStore, agent: GraphStore, query: Node, places: dict[str, str]) -> list[str]:
    """What belongs to a question: its answers, the entities it mentions, and its likeness to others that came along."""
    left_out: list[str] = []
    for edge in session.edges(query.id):
        if edge.from_ != query.id or edge.type is EdgeType.HAS_FEEDBACK:
            continue
        try:
            _carry(session, agent, edge, places)
        except InvalidInput:
            left_out.append(edge.to)
    return left_out


def _carry(session: GraphStore, agent: GraphStore, edge: Edge, places: dict[str, str]) -> None:
    place = places[edge.from_]
    other = session.node(edge.to)
    if edge.type is EdgeType.SIMILAR_TO:
        target = places.get(edge.to)
        if target is not None and target != place and not agent.are_linked(place, EdgeType.SIMILAR_TO, target):
            agent.link(place, target, EdgeType.SIMILAR_TO, edge.weight)
    elif edge.type is EdgeType.RESPONDED_WITH:
        answer = agent.record_answer(place, other.text, unit_id=other.about.get("unit"))
        if edge.weight > 1.0:
            agent.link(place, answer, EdgeType.RESPONDED_WITH, edge.weight - 1.0)
    elif edge.type is EdgeType.REFERS_TO_ENTITY:
        entity = agent.take_entity(other)
        if not agent.are_linked(place, EdgeType.REFERS_TO_ENTITY, entity):
            agent.link(place, entity, EdgeType.REFERS_TO_ENTITY, edge.weight)


def _lower(agent: GraphStore, unhelpful: Iterable[Node], rules: PromotionConfig) -> list[str]:
    if not rules.carry_weights:
        return []
    lowered: list[str] = []
    for query in unhelpful:
        place = agent.known_query(query.text or "")
        if place is not None:
            agent.adjust_weights(place, feedback_delta=query.weights.feedback)
            lowered.append(place)
    return lowered

"""What of a session goes on: its hot questions, with what belongs to them, to the agent's graph (A14, A26)."""

from __future__ import annotations

from mnemarch.graph.engine import Full
from mnemarch.graph.node import EdgeType, NodeType, Promoted
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mnemarch.graph.engine import Engine
    from mnemarch.graph.state import Arc, Vertex
    from mnemarch.policy.heat import PromotionConfig


@value
class Outcome:
    """What came of a promotion; nodes that found no room are left out."""

    promoted: tuple[Promoted, ...] = ()
    lowered: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def hotspots(queries: Iterable[Vertex], rules: PromotionConfig, half_life_min: float, now: int) -> list[Vertex]:
    """The questions to promote, the hottest first. What was found wanting is not handed on as worth knowing."""
    ranks = {query.id: query.rank(now, half_life_min) for query in queries}
    hot = [
        query
        for query in queries
        if ranks[query.id] >= rules.min_rank and query.degree >= rules.min_degree and query.feedback >= 0
    ]
    return sorted(hot, key=lambda query: (-ranks[query.id], query.id))[: rules.max_promotions]


class Promotion:
    """One session on its way into an agent's graph, at one moment."""

    def __init__(self, session: Engine, agent: Engine, rules: PromotionConfig, now: int) -> None:
        self._session = session
        self._agent = agent
        self._rules = rules
        self._now = now
        # Where the questions of the session are in the agent's graph. They do not make room for each other.
        self._places: dict[str, str] = {}
        self._left_out: list[str] = []

    def outcome(self, half_life_min: float) -> Outcome:
        """Carry the hotspots over; where the agent knows a question already, it grows.

        A question that was judged unhelpful is not promoted, but if the agent knows it, it is lowered there.
        """
        queries = list(self._session.state.of_type(NodeType.QUERY))
        hot = hotspots(queries, self._rules, half_life_min, self._now)
        promoted = [one for query in hot if (one := self._promoted(query)) is not None]
        for query in hot:
            if query.id in self._places:
                self._carry_around(query)
        lowered = self._lowered(query for query in queries if query.feedback < 0)
        return Outcome(promoted=tuple(promoted), lowered=tuple(lowered), left_out=tuple(self._left_out))

    def _keep(self) -> frozenset[str]:
        return frozenset(self._places.values())

    def _promoted(self, query: Vertex) -> Promoted | None:
        text = query.text or ""
        known = self._agent.known(text)
        try:
            place = self._agent.ask(text, self._now, self._keep())
        except Full:
            self._left_out.append(query.id)
            return None
        if self._rules.carry_weights:
            self._agent.state.weigh(place, max(0.0, query.repeat - 1.0), query.feedback, None)
        self._places[query.id] = place
        return Promoted(text=text, session_node=query.id, agent_node=place, merged=known == place)

    def _carry_around(self, query: Vertex) -> None:
        """What belongs to a question: its answers, the entities it mentions, its likeness to others that came along."""
        for arc in sorted(query.edges.values(), key=lambda arc: (-arc.weight, arc.id)):
            if arc.from_ == query.id:
                try:
                    self._carry(arc)
                except Full:
                    self._left_out.append(arc.to)

    def _carry(self, arc: Arc) -> None:
        agent, place = self._agent, self._places[arc.from_]
        other = self._session.state.nodes[arc.to]
        if arc.type is EdgeType.SIMILAR_TO:
            target = self._places.get(arc.to, place)
            if target != place and not agent.are_linked(place, arc.type, target):
                agent.link(place, arc.type, target, arc.weight, self._now)
        elif arc.type is EdgeType.RESPONDED_WITH:
            answer = agent.answer(place, other.text, other.about.get("unit"), self._now, self._keep())
            if arc.weight > 1.0:
                agent.link(place, arc.type, answer, arc.weight - 1.0, self._now)
        elif arc.type is EdgeType.REFERS_TO_ENTITY:
            entity = agent.bring(other.about, other.text, self._now, self._keep())
            if not agent.are_linked(place, arc.type, entity):
                agent.link(place, arc.type, entity, arc.weight, self._now)

    def _lowered(self, unhelpful: Iterable[Vertex]) -> list[str]:
        lowered: list[str] = []
        for query in unhelpful if self._rules.carry_weights else ():
            place = self._agent.known(query.text or "")
            if place is not None:
                self._agent.state.weigh(place, 0.0, query.feedback, None)
                lowered.append(place)
        return lowered

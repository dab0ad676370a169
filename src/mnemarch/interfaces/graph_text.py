"""Graphs in words: what is hot, its answers and feedback, search hits, and the outcome of a session."""

from __future__ import annotations

from mnemarch.interfaces.show import age, clean, quoted, short, table, when, wrapped
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from mnemarch.graph.values import Edge, Finalized, GraphHit, GraphStats, Node
    from mnemarch.policy.heat import PromotionConfig

_BAR_CELLS = 8
_OF_EACH_TYPE_MAX = 5
_LINE_CHARS = 200
# What an edge leads to, in the order it is shown.
_NEIGHBOUR = {
    "responded_with": "answer",
    "has_feedback": "feedback",
    "refers_to_entity": "entity",
    "similar_to": "similar",
}


@value
class GraphView:
    """A graph, or a part of it: nodes the hottest first, edges the heaviest first.

    `whole` counts the whole graph. `contents` has the texts of the units that are answers.
    """

    agent: str
    session: str | None
    nodes: Sequence[Node]
    edges: Sequence[Edge]
    whole: GraphStats
    contents: Mapping[str, str]
    at: datetime

    @property
    def title(self) -> str:
        return f"{self.agent}, session {self.session}" if self.session is not None else f"{self.agent}, its own graph"

    @property
    def queries(self) -> list[Node]:
        return [node for node in self.nodes if node.type == "query"]

    def around(self) -> dict[str, list[tuple[Edge, str]]]:
        """The edges of each node, with the node at the other end."""
        around: dict[str, list[tuple[Edge, str]]] = {node.id: [] for node in self.nodes}
        for edge in self.edges:
            if edge.from_ in around and edge.to in around:
                around[edge.from_].append((edge, edge.to))
                around[edge.to].append((edge, edge.from_))
        return around

    def words(self, node: Node) -> str:
        """The text of a node, whatever its type."""
        about = node.about
        if node.type == "feedback":
            return f"{about['label']}: {node.text}" if node.text else str(about["label"])
        if node.text is None and "unit" in about:
            return self.contents.get(about["unit"]) or f"unit {about['unit']}"
        return node.text or str(about.get("entity", ""))


def short_id(node_id: str) -> str:
    """Enough of an id to type: commands take any unique beginning."""
    return node_id.partition(":")[2][:8]


def counted(many: int, name: str) -> str:
    return f"{many:,} {name if many == 1 else f'{name}s'}"


def size(whole: GraphStats) -> str:
    return f"{counted(whole.nodes, 'node')}, {counted(whole.edges, 'edge')}"


def graph(view: GraphView, limit: int) -> str:
    """The hottest questions, each with its neighbours."""
    around, by_id = view.around(), {node.id: node for node in view.nodes}
    lines = [f"{clean(view.title)}  {size(view.whole)}"]
    for query in view.queries[:limit]:
        bar = "█" * round(max(0.0, min(1.0, query.rank)) * _BAR_CELLS)
        head = f"{bar:░<{_BAR_CELLS}} {query.rank:.2f}  {short_id(query.id)}  {_quoted(query.text)}"
        facts = [_asked(query), f"feedback {_signed(query)}", age(query.last_access)]
        lines += ["", _folded("", "  ", head), _folded("  ", "  ", " · ".join(facts + ["pinned"] * query.pinned))]
        below = _neighbours(around[query.id], by_id, view)
        for number, (kind, text) in enumerate(below, start=1):
            branch, trunk = ("└─ ", "   ") if number == len(below) else ("├─ ", "│  ")
            lines.append(_folded(f"  {branch}{kind:<9}", f"  {trunk}{'':<9}", text))
    alone = [short(view.words(node)) for node in view.nodes if node.type == "entity" and not around[node.id]]
    if alone:
        more = f" and {len(alone) - _OF_EACH_TYPE_MAX} more" if len(alone) > _OF_EACH_TYPE_MAX else ""
        lines += ["", f"No question mentions: {', '.join(alone[:_OF_EACH_TYPE_MAX])}{more}"]
    left = len(view.queries) - limit
    if left > 0:
        lines += ["", f"… {counted(left, 'question')} more, colder ones (--limit {limit + left})"]
    return "\n".join(lines)


def _folded(first: str, hang: str, text: str) -> str:
    """A line. On a terminal that is too narrow for it the rest goes below, indented by `hang`."""
    return first + wrapped(text, hang)[len(hang) :]


def _neighbours(edges: Sequence[tuple[Edge, str]], by_id: Mapping[str, Node], view: GraphView) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    for type, kind in _NEIGHBOUR.items():
        near = [(edge, by_id[other]) for edge, other in edges if edge.type == type]
        for edge, node in near[:_OF_EACH_TYPE_MAX]:
            id = f"{short_id(node.id)}  " if kind == "similar" else ""
            lines.append((kind, f"{edge.weight:.2f}  {id}{_told(node, view)}"))
        if len(near) > _OF_EACH_TYPE_MAX:
            lines.append((kind, f"… {len(near) - _OF_EACH_TYPE_MAX:,} more"))
    return lines


def _told(node: Node, view: GraphView) -> str:
    if node.type == "feedback":
        return f"{node.about['label']}  {_quoted(node.text)}" if node.text else str(node.about["label"])
    if node.type == "entity":
        names = [name for name in node.about["names"] if name != view.words(node)]
        return short(view.words(node) + (f" ({', '.join(names)})" if names else ""), _LINE_CHARS)
    unit = node.about.get("unit")
    if node.text is None and unit is not None:
        return f"unit {clean(unit)}" + (f"  {_quoted(view.contents[unit])}" if view.contents.get(unit) else "")
    return _quoted(node.text)


def _quoted(text: str | None) -> str:
    return f'"{short(text or "", _LINE_CHARS)}"'


def _asked(query: Node) -> str:
    times = round(query.weights.repeat, 1)
    return "asked once" if times == 1 else f"asked {times:g} times"


def _signed(query: Node) -> str:
    feedback = round(query.weights.feedback, 2)
    return f"{feedback:+g}" if feedback else "0"


def empty(view: GraphView, sessions: Sequence[str]) -> str:
    """How to begin."""
    others = [session for session in sessions if session != view.session]
    if view.session is not None:
        lines = [f"Session {view.session} of {view.agent} has no questions yet."]
        lines.append(f'Ask one: mnemarch graph ask "how does checkout retry?" --session {view.session}')
    else:
        lines = [f"{view.agent} has no questions of its own yet: they come from its sessions, when these end."]
        lines.append(
            "Ask one in a session (mnemarch graph ask TEXT --session ID), then: mnemarch graph end --session ID"
        )
    if others:
        lines.append(f"Under way: {short(', '.join(others))} (mnemarch graph --session {others[0]})")
    return clean("\n".join(lines))


def asked(node: Node, known: bool, similar: Sequence[GraphHit]) -> str:
    lines = [
        f"{'known' if known else 'new':<6}{short_id(node.id)}  {_quoted(node.text)}",
        f"      {_asked(node)}, feedback {_signed(node)}",
    ]
    return "\n".join([*lines, "", hits(similar)] if similar else lines)


def hits(similar: Sequence[GraphHit], text: str = "") -> str:
    rows = [(f"{hit.score:.2f}", f"{hit.sim:.2f}", hit.from_, short_id(hit.id), quoted(hit.text)) for hit in similar]
    return table(("score", "alike", "in", "id", "question"), rows, f"No question is like {quoted(text)}.")


def sessions(active: Sequence[tuple[str, datetime, GraphStats]]) -> str:
    rows = [(session, when(begun), age(begun), size(whole)) for session, begun, whole in active]
    begin = "No session is under way. Begin: mnemarch graph ask TEXT --session ID"
    return table(("session", "begun", "", "holds"), rows, begin)


def ended(outcome: Finalized, rules: PromotionConfig | None) -> str:
    """The outcome of a session. Without `rules`, nothing was to be promoted."""
    lines = [f"ended     session {clean(outcome.session_id)}"]
    for one in outcome.promoted:
        how = "known already" if one.merged else "new"
        lines.append(f"promoted  {short_id(one.agent_node)}  {_quoted(one.text)} ({how})")
    if rules is not None and not outcome.promoted:
        wanted = f"rank {rules.min_rank:g}, {rules.min_degree} edges and no bad feedback"
        lines.append(f"promoted  nothing: no question had {wanted}")
    lines += [f"lowered   {short_id(id)}, which got bad feedback" for id in outcome.lowered]
    if outcome.left_out:
        lines.append(f"left out  {counted(len(outcome.left_out), 'node')}: the agent's graph is full of protected ones")
    lines.append(f"kept in   {clean(outcome.checkpoint or 'no checkpoint')}")
    return "\n".join(lines)

"""`graph`: shows the graph of a session or of an agent: questions, answers and feedback.

Programs record a session through the library (`seat.graph`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from mnemarch.errors import InvalidInput, NotFound
from mnemarch.interfaces.command import Answer, Call, Command
from mnemarch.interfaces.pictures import GraphView, graph_svg
from mnemarch.interfaces.show import age, clean, quoted, wrapped
from mnemarch.model.stamps import instant
from mnemarch.model.value import replace
from mnemarch.text.words import counted
from mnemarch.verbs.types import FLAG, NUMBER, Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.graph import Edge, Node

_QUESTIONS_SHOWN = 20
_OF_EACH_TYPE_MAX = 5
_BAR_CELLS = 8
# The word for an edge's target, by the edge's type and in the order of display.
_NEIGHBOUR = {
    "responded_with": "answer",
    "has_feedback": "feedback",
    "refers_to_entity": "entity",
    "similar_to": "similar",
}


def _show(call: Call) -> Answer:
    options, graph = call.options, call.seat.graph
    session = None if options.agent else call.seat.caller.session
    limit = options.limit
    if limit is not None and limit < 1:
        raise InvalidInput(f"--limit must be 1 or more, not {limit}.", hint=f"Leave it out for {_QUESTIONS_SHOWN}.")
    agent, active = graph.get_agent_store(), graph.get_active_sessions()
    store = agent if session is None else graph.get_session_store(session) if session in active else None
    title = f"{graph.agent_id}, session {session}" if session is not None else f"{graph.agent_id}, its own graph"
    view = GraphView(title, *((store.nodes(), store.edges()) if store is not None else ([], [])))
    part = view.part(limit)
    data = {
        "agent": graph.agent_id,
        "session": session,
        "sessions": active,
        "at": instant(agent.keeper.now()),
        "whole": {"nodes": len(view.nodes), "edges": len(view.edges)},
        "nodes": part.nodes,
        "edges": list(map(_renamed, part.edges)),
    }

    def text() -> str:
        shown = _with_contents(view, call)
        if options.svg:
            return graph_svg(shown, limit or _QUESTIONS_SHOWN)
        others = [each for each in active if each != session]
        more = f"\n\nSessions under way (--session ID): {clean(', '.join(others))}" if others else ""
        return _graph_text(shown, limit or _QUESTIONS_SHOWN) + more

    return Answer(data, text)


def _with_contents(view: GraphView, call: Call) -> GraphView:
    contents: dict[str, str] = {}
    for unit_id in {str(node.about["unit"]) for node in view.nodes if "unit" in node.about}:
        with suppress(NotFound, InvalidInput):  # A unit out of reach is shown by its id alone.
            contents[unit_id] = call.seat.get(unit_id).content
    return replace(view, contents=contents)


def _renamed(item: Edge) -> dict[str, Any]:
    """The fields of an edge under their JSON names."""
    return {name.removesuffix("_"): getattr(item, name) for name in type(item).__match_args__}


def _graph_text(view: GraphView, limit: int) -> str:
    """The hottest questions, each with its neighbours."""
    if not view.nodes:
        return clean(
            f"{view.title} has no questions yet. A session's are recorded by the program that runs the agent"
            " (seat.graph); an agent's own come from its sessions, when these end."
        )
    by_id = {node.id: node for node in view.nodes}
    around: dict[str, list[tuple[Edge, Node]]] = {id: [] for id in by_id}
    for edge in view.edges:
        around[edge.from_].append((edge, by_id[edge.to]))
        around[edge.to].append((edge, by_id[edge.from_]))
    lines = [clean(f"{view.title}  {view.size}")]
    for query in view.queries[:limit]:
        bar = "█" * round(max(0.0, min(1.0, query.rank)) * _BAR_CELLS)
        head = f"{bar:░<{_BAR_CELLS}} {query.rank:.2f}  {_short_id(query.id)}  {quoted(query.text or '')}"
        facts = [_weights(query), age(query.last_access), *(["pinned"] if query.pinned else [])]
        lines += ["", wrapped(head, ""), wrapped(", ".join(facts)), *_neighbours(view, around[query.id])]
    alone = [view.words(node) for node in view.nodes if node.type == "entity" and not around[node.id]]
    if alone:
        lines += ["", wrapped(f"No question mentions: {clean(', '.join(alone))}", "")]
    if len(view.queries) > limit:
        lines += ["", f"… {counted(len(view.queries) - limit, 'question')} more, colder ones (--limit N)"]
    return "\n".join(lines)


def _neighbours(view: GraphView, around: Sequence[tuple[Edge, Node]]) -> list[str]:
    lines = []
    for type, kind in _NEIGHBOUR.items():
        near = [(edge, node) for edge, node in around if edge.type == type]
        for edge, node in near[:_OF_EACH_TYPE_MAX]:
            id = f"{_short_id(node.id)}  " if kind == "similar" else ""
            lines.append(wrapped(f"{kind:<9}{edge.weight:.2f}  {id}{quoted(view.words(node))}", "    "))
        if len(near) > _OF_EACH_TYPE_MAX:
            lines.append(f"    {kind:<9}… {len(near) - _OF_EACH_TYPE_MAX:,} more")
    return lines


def _weights(query: Node) -> str:
    return f"asked {query.weights.repeat:.3g}×, feedback {query.weights.feedback:+.3g}"


def _short_id(node_id: str) -> str:
    return node_id.partition(":")[2][:8]


COMMANDS = {
    "graph": Command(
        _show,
        (
            Parameter("agent", FLAG, "the agent's own graph, although a session is set", False),
            Parameter("limit", NUMBER, f"so many questions (default: {_QUESTIONS_SHOWN}; with --json all)", None),
            Parameter("svg", FLAG, "as a picture", False),
        ),
    ),
}

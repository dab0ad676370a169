"""`graph`: what an agent asked in a session and over all of them, what it was answered, what helped."""

from __future__ import annotations

from contextlib import suppress

from mnemarch.errors import InvalidInput, NotFound
from mnemarch.interfaces.command import Answer, Call, Command
from mnemarch.interfaces.pictures import GraphView, graph_svg
from mnemarch.interfaces.show import age, clean, quoted, table, when, wrapped
from mnemarch.model.stamps import instant
from mnemarch.model.value import replace
from mnemarch.text.words import counted
from mnemarch.verbs.types import FLAG, ID, NUMBER, TEXT, WORDS, Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mnemarch.graph import Edge, Finalized, GraphHit, GraphStore, Node

_QUESTIONS_SHOWN = 20
_SIMILAR_SHOWN = 5
_OF_EACH_TYPE_MAX = 5
_BAR_CELLS = 8
# Less alike than this a question is only hot.
_ALIKE_MIN = 0.3
# What an edge leads to, in the order it is shown.
_NEIGHBOUR = {
    "responded_with": "answer",
    "has_feedback": "feedback",
    "refers_to_entity": "entity",
    "similar_to": "similar",
}


# Which graph


def _session(call: Call) -> str | None:
    """The session meant, if any: the seat's, unless the agent's own graph is asked for."""
    return None if getattr(call.options, "agent", False) else call.seat.caller.session


def _named_session(call: Call) -> str:
    session = _session(call)
    if session is None:
        raise InvalidInput(
            "This belongs to a session, and none is named.", hint="Add --session ID, or set MNEMARCH_SESSION."
        )
    return session


def _store(call: Call, session: str | None) -> GraphStore | None:
    """The agent's own graph, or that of a session; None if the session has not begun."""
    graph = call.seat.graph
    if session is None:
        return graph.get_agent_store()
    return graph.get_session_store(session) if session in graph.get_active_sessions() else None


def _query_in(call: Call) -> tuple[str, GraphStore, str]:
    """The session meant, which must have begun, its graph, and its question whose id begins like the one typed."""
    session, typed = _named_session(call), call.options.query
    store = call.seat.graph.running_session(session)
    prefix = "query:" + typed.strip().lower().removeprefix("query:")
    ids = [node.id for node in store.nodes("query") if node.id.startswith(prefix)]
    if len(ids) > 1:
        raise InvalidInput(f"{typed!r} could be {len(ids)} questions.", hint=f"Use one of: {', '.join(ids[:10])}.")
    if not ids:
        raise NotFound(
            f"There is no question {typed!r} in this session.",
            hint="mnemarch graph show lists them; one of the agent's own graph is asked here first (graph ask TEXT).",
        )
    return session, store, ids[0]


def _short_id(node_id: str) -> str:
    """Enough of an id to type: commands take any unique beginning."""
    return node_id.partition(":")[2][:8]


# Reading


def _show(call: Call) -> Answer:
    options, graph, session = call.options, call.seat.graph, _session(call)
    limit = options.limit
    if limit is not None and limit < 1:
        raise InvalidInput(f"--limit must be 1 or more, not {limit}.", hint=f"Leave it out for {_QUESTIONS_SHOWN}.")
    store = _store(call, session)
    title = f"{graph.agent_id}, session {session}" if session is not None else f"{graph.agent_id}, its own graph"
    view = GraphView(title, *((store.nodes(), store.edges()) if store is not None else ([], [])))
    part = view.part(limit)
    data = {
        "agent": graph.agent_id,
        "session": session,
        "at": instant(graph.get_agent_store().keeper.now()),
        "whole": {"nodes": len(view.nodes), "edges": len(view.edges)},
        "nodes": part.nodes,
        "edges": list(map(_renamed, part.edges)),
    }
    drawn = graph_svg if options.svg else _graph_text
    return Answer(data, lambda: drawn(_with_contents(view, call), limit or _QUESTIONS_SHOWN))


def _with_contents(view: GraphView, call: Call) -> GraphView:
    contents: dict[str, str] = {}
    for unit_id in {str(node.about["unit"]) for node in view.nodes if "unit" in node.about}:
        with suppress(NotFound, InvalidInput):  # A unit of another project, or none: its id alone is shown.
            contents[unit_id] = call.seat.get(unit_id).content
    return replace(view, contents=contents)


def _renamed(item: Edge | GraphHit) -> dict[str, Any]:
    """An edge or a hit with its JSON names."""
    return {name.removesuffix("_"): getattr(item, name) for name in type(item).__match_args__}


def _graph_text(view: GraphView, limit: int) -> str:
    """The hottest questions, each with its neighbours."""
    if not view.nodes:
        return clean(
            f"{view.title} has no questions yet. Ask one: mnemarch graph ask TEXT --session ID\n"
            "An agent's own come from its sessions, when these end: mnemarch graph end --session ID"
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


def _search(call: Call) -> Answer:
    options, graph, session = call.options, call.seat.graph, _session(call)
    text, k = options.text, options.k
    if session is None:
        hits = [replace(hit, from_="agent") for hit in graph.get_agent_store().search_similar_queries(text, k)]
    else:
        hits = graph.search(session, text, k)
    return Answer(list(map(_renamed, hits)), lambda: _hits(hits, text))


def _hits(hits: Sequence[GraphHit], text: str) -> str:
    rows = [(f"{hit.score:.2f}", f"{hit.sim:.2f}", hit.from_, _short_id(hit.id), quoted(hit.text)) for hit in hits]
    return table(("score", "alike", "in", "id", "question"), rows, f"No question is like {quoted(text)}.")


def _sessions(call: Call) -> Answer:
    graph = call.seat.graph
    begun = graph.get_agent_store().sessions()
    under_way = [(one, graph.get_session_store(one).stats()) for one in graph.get_active_sessions() if one in begun]
    rows = [(session, instant(begun[session]), whole.nodes, whole.edges) for session, whole in under_way]
    data = [dict(zip(("session", "begun_at", "nodes", "edges"), row, strict=True)) for row in rows]
    shown = [(session, when(at), *sizes) for session, at, *sizes in rows]
    begin = "No session is under way. Begin: mnemarch graph ask TEXT --session ID"
    return Answer(data, lambda: table(("session", "begun", "nodes", "edges"), shown, begin))


# Writing


def _ask(call: Call) -> Answer:
    graph, session, text = call.seat.graph, _named_session(call), call.options.text
    before = _store(call, session)
    known = {node.id for node in before.nodes("query")} if before is not None else set()
    id = graph.upsert_query(session, text)
    node = graph.get_session_store(session).node(id)
    hits = graph.search(session, text, _SIMILAR_SHOWN + 1)
    similar = [hit for hit in hits if hit.id != id and hit.sim >= _ALIKE_MIN][:_SIMILAR_SHOWN]
    data = {"id": id, "known": id in known, "session": session, "node": node, "similar": list(map(_renamed, similar))}
    line = f"{'known' if id in known else 'new':<6}{_short_id(id)}  {quoted(node.text or '')}, {_weights(node)}"
    return Answer(data, lambda: f"{line}\n\n{_hits(similar, text)}" if similar else line)


def _answer(call: Call) -> Answer:
    text, unit_id = call.options.text, call.options.unit
    session, _, query = _query_in(call)
    unit = None if unit_id is None else call.seat.get(unit_id).id
    answer = call.seat.graph.record_answer(session, query, text, unit_id=unit)
    data = {"id": answer, "query": query, "session": session, "unit": unit}
    return Answer(data, lambda: f"answered  {_short_id(query)}  {quoted(text or f'unit {unit}')}")


def _feedback(call: Call) -> Answer:
    label = call.options.label
    session, store, query = _query_in(call)
    feedback = call.seat.graph.record_feedback(session, query, label, call.options.note)
    node = store.node(query)
    data = {"id": feedback, "query": query, "session": session, "label": label, "node": node}
    line = f"{label}  {_short_id(query)}  {quoted(node.text or '')}, rank {node.rank:.2f}, {_weights(node)}"
    return Answer(data, lambda: line)


def _entity(call: Call) -> Answer:
    options, graph, session = call.options, call.seat.graph, _session(call)
    user = options.user or graph.agent_id
    id = graph.upsert_entity(user, options.id, options.text, options.alias, session_id=session)
    node = (graph.get_agent_store() if session is None else graph.get_session_store(session)).node(id)
    names = ", ".join(map(clean, node.about["names"]))
    data = {"id": id, "session": session, "node": node}
    return Answer(data, lambda: f"named  {names}; mentioned by {counted(node.degree, 'question')} here")


def _end(call: Call) -> Answer:
    options, graph, session = call.options, call.seat.graph, _named_session(call)
    if options.name is not None and options.no_checkpoint:
        raise InvalidInput("--name names a checkpoint, and --no-checkpoint wants none.", hint="Leave one of them out.")
    graph.running_session(session)
    writes = {"checkpoint": not options.no_checkpoint, "checkpoint_name": options.name}
    outcome = graph.finalize_session(session, promote=not options.no_promote, **writes)
    return Answer(outcome, lambda: _ended(outcome))


def _ended(outcome: Finalized) -> str:
    lines = [f"ended     session {clean(outcome.session_id)}"]
    for one in outcome.promoted:
        how = "known already" if one.merged else "new"
        lines.append(f"promoted  {_short_id(one.agent_node)}  {quoted(one.text)} ({how})")
    if not outcome.promoted:
        lines.append("promoted  nothing: it takes rank, edges and no bad feedback")
    lines += [f"lowered   {_short_id(id)}, which got bad feedback" for id in outcome.lowered]
    if outcome.left_out:
        lines.append(f"left out  {counted(len(outcome.left_out), 'node')}: the agent's graph is full of protected ones")
    return "\n".join([*lines, f"kept in   {clean(outcome.checkpoint or 'no checkpoint')}"])


_AGENT = Parameter("agent", FLAG, "the agent's own graph, although a session is set", False)
_QUERY = Parameter("query", ID, "the id of a question, or its beginning", metavar="QUERY")
_QUESTION = Parameter("text", TEXT, "a question; - reads standard input")
_K = Parameter("k", NUMBER, f"how many (default: {_SIMILAR_SHOWN})", _SIMILAR_SHOWN)


COMMANDS = {
    "graph show": Command(
        _show,
        (
            _AGENT,
            Parameter("limit", NUMBER, f"so many questions (default: {_QUESTIONS_SHOWN}; with --json all)", None),
            Parameter("svg", FLAG, "as a picture", False),
        ),
    ),
    "graph ask": Command(_ask, (_QUESTION,), begins_memory=True),
    "graph answer": Command(
        _answer,
        (
            _QUERY,
            Parameter("text", TEXT, "the answer itself; - reads standard input", None),
            Parameter("unit", ID, "the unit that answers it", None, metavar="UNIT"),
        ),
    ),
    "graph feedback": Command(
        _feedback,
        (
            _QUERY,
            Parameter("label", WORDS, "up, down or retry", metavar="LABEL"),
            Parameter("note", WORDS, "why", None),
        ),
    ),
    "graph entity": Command(
        _entity,
        (
            Parameter("id", ID, "of the thing"),
            _AGENT,
            Parameter("text", WORDS, "what to call it", None),
            Parameter("alias", WORDS, "another name; repeatable", (), many=True, metavar="NAME"),
            Parameter("user", WORDS, "who named it (default: the actor)", None, metavar="ID"),
        ),
        begins_memory=True,
    ),
    "graph search": Command(_search, (_QUESTION, _AGENT, _K)),
    "graph sessions": Command(_sessions),
    "graph end": Command(
        _end,
        (
            Parameter("no_promote", FLAG, "take nothing over to the agent's graph", False),
            Parameter("no_checkpoint", FLAG, "write no checkpoint", False),
            Parameter("name", WORDS, "what the checkpoint's file is called", None, metavar="NAME"),
        ),
    ),
}

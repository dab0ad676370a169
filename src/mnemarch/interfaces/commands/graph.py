"""`graph`: what an agent asked in a session and over all of them, what it was answered, what helped."""

from __future__ import annotations

import os

from mnemarch.errors import InvalidInput, NotFound, StoreUnavailable
from mnemarch.interfaces import graph_text, show
from mnemarch.interfaces.acts import Act, acted
from mnemarch.interfaces.command import Answer, Command
from mnemarch.interfaces.given import text_given

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Sequence
    from typing import Any

    from mnemarch.graph import Edge, GraphHit, GraphStore, Node
    from mnemarch.interfaces.command import Call
    from mnemarch.interfaces.graph_text import GraphView

_QUESTIONS_SHOWN = 20
_SIMILAR_SHOWN = 5
# Less alike than this a question is only hot.
_ALIKE_MIN = 0.3
_ID_CHARS_MIN = 4
_LIMIT_MAX = 100_000
_LABELS = ("up", "down", "retry")
_ENDINGS = {".svg": "svg", ".dot": "dot", ".gv": "dot", ".json": "json"}


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("act", nargs="?", default="show", metavar="ACT", help=f"{', '.join(_ACTS)} (default: show)")
    parser.add_argument("arguments", nargs="*", metavar="ARG", help="what the act takes")
    parser.add_argument(
        "--agent", action="store_true", help="show, search, entity: the agent's own graph, although a session is set"
    )
    parser.add_argument("--format", choices=graph_text.FORMATS, help="show: text (default), json, dot or svg")
    parser.add_argument("--out", metavar="FILE", help="show: write the svg, dot or json there")
    parser.add_argument("--limit", type=int, metavar="N", help="show: so many questions at most (text: 20)")
    parser.add_argument("--text", metavar="TEXT|-", help="answer: the answer itself; entity: what to call it")
    parser.add_argument("--unit", metavar="UNIT", help="answer: the unit that answers it")
    parser.add_argument("--note", metavar="TEXT", help="feedback: why")
    parser.add_argument("--alias", action="append", default=[], metavar="NAME", help="entity: another name; repeatable")
    parser.add_argument("--user", metavar="ID", help="entity: who named it (default: the actor)")
    parser.add_argument("--k", type=int, metavar="N", help=f"search: how many (default: {_SIMILAR_SHOWN})")
    parser.add_argument("--no-promote", action="store_true", help="end: take nothing over to the agent's graph")
    parser.add_argument("--no-checkpoint", action="store_true", help="end: write no checkpoint")
    parser.add_argument("--name", metavar="NAME", help="end: what the checkpoint's file is called")


def _graph(call: Call) -> Answer:
    return acted(call, "graph", _ACTS, _OPTIONS)


# Which graph


def _session(call: Call) -> str | None:
    """The session meant, if any: the seat's, unless it is to be the agent's own graph."""
    return None if call.options.agent else call.seat.presence.session


def _named_session(call: Call) -> str:
    session = _session(call)
    if session is None:
        raise InvalidInput(
            f"graph {call.options.act} belongs to a session, and none is named.",
            hint="Add --session ID, or set MNEMARCH_SESSION.",
        )
    return session


def _under_way(call: Call) -> tuple[str, GraphStore]:
    """The session meant, which must have begun, and its graph."""
    session = _named_session(call)
    store = _begun(call, session)
    if store is None:
        active = call.seat.graph.get_active_sessions()
        raise NotFound(
            f"{call.seat.graph.agent_id} has no session {session!r} under way.",
            hint=f"Under way: {', '.join(active[:10])}."
            if active
            else "mnemarch graph ask TEXT --session ID begins one.",
        )
    return session, store


def _begun(call: Call, session: str) -> GraphStore | None:
    graph = call.seat.graph
    return graph.get_session_store(session) if session in graph.get_active_sessions() else None


def _query_id(call: Call, store: GraphStore, given: str) -> str:
    """The question whose id begins like this."""
    wanted = given.strip().lower().removeprefix("query:")
    if len(wanted) < _ID_CHARS_MIN:
        raise InvalidInput(
            f"{given!r} is too short for the id of a question.", hint=f"Give {_ID_CHARS_MIN} characters or more of it."
        )
    found = _beginning(store, wanted)
    if len(found) > 1:
        raise InvalidInput(f"{given!r} could be {len(found)} questions.", hint=f"Use one of: {', '.join(found[:10])}.")
    if not found:
        elsewhere = _beginning(call.seat.graph.get_agent_store(), wanted)
        raise NotFound(
            f"There is no question {given!r} in this session.",
            hint="It is one of the agent's own: ask it in this session first (mnemarch graph ask TEXT)."
            if elsewhere
            else "mnemarch graph show lists them; one that was evicted can be asked again.",
        )
    return found[0]


def _beginning(store: GraphStore, wanted: str) -> list[str]:
    ids = [node.id for node in store.nodes("query")]
    same = [id for id in ids if id == f"query:{wanted}"]
    return same or [id for id in ids if id.startswith(f"query:{wanted}")]


# Looking


def _show(call: Call) -> Answer:
    options = call.options
    limit = options.limit
    if limit is not None and not 1 <= limit <= _LIMIT_MAX:
        raise InvalidInput(f"--limit must be from 1 to {_LIMIT_MAX:,}, not {limit}.", hint="Leave it out for 20.")
    format = _format(options.format, options.out)
    view = _view(call)
    if options.out is not None:
        return _written(_picture(view, format, limit), view, options.out)
    return Answer(data=_form(view, limit), text=lambda: _shown(call, view, format, limit))


def _format(named: str | None, out: str | None) -> str:
    """What is to be drawn: as it is named, or as the file's name ends. No other file is ever written over."""
    if out is None:
        return named or "text"
    ending = _ENDINGS.get(os.path.splitext(out)[1].lower())
    if ending is None or named not in (None, ending):
        wanted = f"--format {named}" if named else "--out"
        raise InvalidInput(
            f"{wanted} does not go with the name {out!r}.", hint="Name the file .svg, .dot (or .gv) or .json."
        )
    return ending


def _view(call: Call) -> GraphView:
    from mnemarch.graph import GraphStats
    from mnemarch.model.stamps import instant

    graph, session = call.seat.graph, _session(call)
    store = graph.get_agent_store() if session is None else _begun(call, session)
    nodes, edges = (store.nodes(), store.edges()) if store is not None else ([], [])
    return graph_text.GraphView(
        agent=graph.agent_id,
        session=session,
        nodes=nodes,
        edges=edges,
        whole=GraphStats(nodes=len(nodes), edges=len(edges)),
        contents=_contents(call, nodes),
        at=instant(graph.get_agent_store().held.keeper.now()),
    )


def _contents(call: Call, nodes: Sequence[Node]) -> dict[str, str]:
    """The words of the units that are answers, as far as they can be seen from here."""
    found: dict[str, str] = {}
    for unit_id in {str(node.about["unit"]) for node in nodes if "unit" in node.about}:
        try:
            found[unit_id] = call.seat.get(unit_id).content
        except (NotFound, InvalidInput):
            continue  # Another project's, or a graph that was filled by hand: the id alone is shown.
    return found


def _shown(call: Call, view: GraphView, format: str, limit: int | None) -> str:
    if format != "text":
        return _picture(view, format, limit)
    if not view.nodes:
        return graph_text.empty(view, call.seat.graph.get_active_sessions())
    return graph_text.graph(view, limit or _QUESTIONS_SHOWN)


def _picture(view: GraphView, format: str, limit: int | None) -> str:
    if format == "json":
        from mnemarch.interfaces.cli import json_text

        return json_text(_form(view, limit))
    from mnemarch.interfaces import graph_picture

    part = graph_picture.part_shown(view, limit)
    return graph_text.dot(part) if format == "dot" else graph_picture.svg(part)


def _written(text: str, view: GraphView, out: str) -> Answer:
    from mnemarch.files import PARTIAL_END, write_whole

    path = os.path.abspath(out)
    if not os.path.isdir(os.path.dirname(path)):
        raise InvalidInput(f"There is no folder {os.path.dirname(path)}.", hint="Make it first, or name another.")
    try:
        write_whole(path, text + "\n")
    except OSError as error:
        if os.path.exists(path + PARTIAL_END):
            os.remove(path + PARTIAL_END)
        raise StoreUnavailable(
            f"{out} can't be written: {error.strerror}.", hint="Check the folder's rights."
        ) from None
    facts = {"path": path, "nodes": view.whole.nodes, "edges": view.whole.edges}
    return Answer(data=facts, text=lambda: f"drew  {graph_text.size(view.whole)} to {out}")


def _form(view: GraphView, limit: int | None) -> dict[str, Any]:
    """A graph for programs: all of it, or only the hottest questions with what belongs to them."""
    nodes: Sequence[Node] = view.nodes
    if limit is not None:
        kept = {query.id for query in view.queries[:limit]}
        around = view.around()
        kept |= {other for id in kept for edge, other in around[id] if edge.type != "similar_to"}
        nodes = [node for node in nodes if node.id in kept]
    ids = {node.id for node in nodes}
    return {
        "agent": view.agent,
        "session": view.session,
        "at": view.at,
        "whole": view.whole,
        "nodes": nodes,
        "edges": [_edge_form(edge) for edge in view.edges if edge.from_ in ids and edge.to in ids],
    }


def _edge_form(edge: Edge) -> dict[str, Any]:
    times = {"created_at": edge.created_at, "last_access": edge.last_access}
    return {"id": edge.id, "from": edge.from_, "to": edge.to, "type": edge.type, "weight": edge.weight, **times}


def _hit_form(hit: GraphHit) -> dict[str, Any]:
    names = ("id", "score", "sim", "text", "canonical_key")
    return {"from": hit.from_, **{name: getattr(hit, name) for name in names}}


def _search(call: Call) -> Answer:
    text, k = text_given(call.options.arguments[0]), call.options.k
    found = _found(call, text, _SIMILAR_SHOWN if k is None else k)
    return Answer(data=[_hit_form(hit) for hit in found], text=lambda: graph_text.hits(found, text))


def _found(call: Call, text: str, k: int) -> list[GraphHit]:
    from mnemarch.model.value import replace

    graph, session = call.seat.graph, _session(call)
    if session is not None:
        return graph.search(session, text, k)
    return [replace(hit, from_="agent") for hit in graph.get_agent_store().search_similar_queries(text, k)]


def _sessions(call: Call) -> Answer:
    from mnemarch.model.stamps import instant

    graph = call.seat.graph
    begun = graph.get_agent_store().held.sessions()
    rows = [
        (session, instant(begun[session]), graph.get_session_store(session).stats())
        for session in graph.get_active_sessions()
        if session in begun
    ]
    data = [
        {"session": session, "begun_at": at, "nodes": whole.nodes, "edges": whole.edges} for session, at, whole in rows
    ]
    return Answer(data=data, text=lambda: graph_text.sessions(rows))


# Writing


def _ask(call: Call) -> Answer:
    graph, session = call.seat.graph, _named_session(call)
    text = text_given(call.options.arguments[0])
    before = _begun(call, session)
    known = {node.id for node in before.nodes("query")} if before is not None else set()
    id = graph.upsert_query(session, text)
    node = graph.get_session_store(session).node(id)
    hits = graph.search(session, text, _SIMILAR_SHOWN + 1)
    similar = [hit for hit in hits if hit.id != id and hit.sim >= _ALIKE_MIN][:_SIMILAR_SHOWN]
    data = {"id": id, "known": id in known, "session": session, "node": node, "similar": list(map(_hit_form, similar))}
    return Answer(data=data, text=lambda: graph_text.asked(node, id in known, similar))


def _answer(call: Call) -> Answer:
    options = call.options
    if (options.text is None) is (options.unit is None):
        raise InvalidInput("An answer is a text or a unit.", hint="Give --text TEXT or --unit UNIT, one of the two.")
    session, store = _under_way(call)
    query = _query_id(call, store, options.arguments[0])
    text = None if options.text is None else text_given(options.text)
    unit = None if options.unit is None else call.seat.get(options.unit).id
    answer = call.seat.graph.record_answer(session, query, text, unit_id=unit)
    data = {"id": answer, "query": query, "session": session, "unit": unit}
    said = f"unit {unit}" if text is None else show.quoted(text)
    return Answer(data=data, text=lambda: f"answered  {graph_text.short_id(query)}  {said}")


def _feedback(call: Call) -> Answer:
    given, label = call.options.arguments
    if label not in _LABELS:
        raise InvalidInput(f"{label!r} is no feedback.", hint=f"Use one of: {', '.join(_LABELS)}.")
    session, store = _under_way(call)
    query = _query_id(call, store, given)
    feedback = call.seat.graph.record_feedback(session, query, label, call.options.note)
    node = store.node(query)
    data = {"id": feedback, "query": query, "session": session, "label": label, "node": node}

    def text() -> str:
        said = f"rank {node.rank:.2f}, feedback {node.weights.feedback:+g} in all"
        return f"{label}  {graph_text.short_id(query)}  {show.quoted(node.text or '')}\n  {said}"

    return Answer(data=data, text=text)


def _entity(call: Call) -> Answer:
    options, graph, session = call.options, call.seat.graph, _session(call)
    thing = options.arguments[0]
    user = options.user or graph.agent_id
    id = graph.upsert_entity(user, thing, options.text, options.alias, session_id=session)
    store = graph.get_agent_store() if session is None else graph.get_session_store(session)
    node = store.node(id)

    def text() -> str:
        names = ", ".join(map(show.clean, node.about["names"]))
        mention = "mentions" if node.degree == 1 else "mention"
        return f"named  {names}\n  {graph_text.counted(node.degree, 'question')} here {mention} it"

    return Answer(data={"id": id, "session": session, "node": node}, text=text)


def _end(call: Call) -> Answer:
    options = call.options
    if options.name is not None and options.no_checkpoint:
        raise InvalidInput("--name names a checkpoint, and --no-checkpoint wants none.", hint="Leave one of them out.")
    session, _ = _under_way(call)
    graph = call.seat.graph
    done = graph.finalize_session(
        session,
        promote=not options.no_promote,
        checkpoint=not options.no_checkpoint,
        checkpoint_name=options.name,
    )
    rules = None if options.no_promote else graph.config.promotion
    return Answer(data=done, text=lambda: graph_text.ended(done, rules))


_ACTS = {
    "show": Act(_show, options=("agent", "format", "out", "limit")),
    "ask": Act(_ask, ("TEXT",), begins_memory=True),
    "answer": Act(_answer, ("QUERY",), ("text", "unit")),
    "feedback": Act(_feedback, ("QUERY", "up|down|retry"), ("note",)),
    "entity": Act(_entity, ("ID",), ("agent", "text", "alias", "user"), begins_memory=True),
    "search": Act(_search, ("TEXT",), ("agent", "k")),
    "sessions": Act(_sessions),
    "end": Act(_end, options=("no_promote", "no_checkpoint", "name")),
}
_OPTIONS = frozenset(name for act in _ACTS.values() for name in act.options)

COMMANDS = {
    "graph": Command(
        description=(
            "What an agent asked, what it was answered and what helped: the graph of a session (--session), or the\n"
            "agent's own, the hottest questions first; as a picture with --out graph.svg. Also: ask TEXT (note a\n"
            "question), answer QUERY --text TEXT (or --unit UNIT), feedback QUERY up|down|retry, entity ID (name what\n"
            "questions are about), search TEXT, sessions, and end, which hands the best on to the agent's own graph.\n"
            "QUERY is the id of a question, or its beginning. Heat says what to look at first, never what is true."
        ),
        examples=(
            'mnemarch graph ask "결제 재시도는 몇 번?" --session s-1',
            'mnemarch graph feedback 3f2a91bc up --note "solved it" --session s-1',
            "mnemarch graph show --session s-1 --out graph.svg",
        ),
        arguments=_arguments,
        run=_graph,
    ),
}

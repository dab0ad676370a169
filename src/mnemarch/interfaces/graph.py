"""`graph`: what an agent asked in a session and over all of them, what it was answered, what helped."""

from __future__ import annotations

import os
from contextlib import suppress

from mnemarch.errors import InvalidInput, NotFound, StoreUnavailable
from mnemarch.files import write_whole
from mnemarch.interfaces import graph_text, show
from mnemarch.interfaces.command import Answer, Command
from mnemarch.interfaces.graph_text import GraphView
from mnemarch.model.stamps import instant
from mnemarch.model.value import replace
from mnemarch.verbs.types import FLAG, ID, NUMBER, PATH, TEXT, WORDS, Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mnemarch.graph import GraphStore
    from mnemarch.graph.values import Edge, GraphHit
    from mnemarch.interfaces.command import Call

_QUESTIONS_SHOWN = 20
_SIMILAR_SHOWN = 5
# Less alike than this a question is only hot.
_ALIKE_MIN = 0.3
_ID_CHARS_MIN = 4
_LIMIT_MAX = 100_000
_FORMATS = ("text", "json", "dot", "svg")
_ENDINGS = {".svg": "svg", ".dot": "dot", ".gv": "dot", ".json": "json"}


_AGENT = Parameter("agent", FLAG, "the agent's own graph, although a session is set", False)
_QUERY = Parameter("query", ID, "the id of a question, or its beginning", metavar="QUERY")
_QUESTION = Parameter("text", TEXT, "a question; - reads standard input")


# Which graph


def _session(call: Call) -> str | None:
    """The session meant, if any: the seat's, unless the agent's own graph is asked for."""
    return None if getattr(call.options, "agent", False) else call.seat.caller.session


def _named_session(call: Call) -> str:
    session = _session(call)
    if session is None:
        raise InvalidInput(
            "This belongs to a session, and none is named.",
            hint="Add --session ID, or set MNEMARCH_SESSION.",
        )
    return session


def _store(call: Call, session: str | None) -> GraphStore | None:
    """The agent's own graph, or that of a session; None if the session has not begun."""
    graph = call.seat.graph
    if session is None:
        return graph.get_agent_store()
    return graph.get_session_store(session) if session in graph.get_active_sessions() else None


def _under_way(call: Call) -> tuple[str, GraphStore]:
    """The session meant, which must have begun, and its graph."""
    session = _named_session(call)
    return session, call.seat.graph.running_session(session)


def _query_id(call: Call, store: GraphStore) -> str:
    """The question whose id begins like the one typed."""
    typed = call.options.query
    prefix = "query:" + typed.strip().lower().removeprefix("query:")
    if len(prefix) < len("query:") + _ID_CHARS_MIN:
        raise InvalidInput(
            f"{typed!r} is too short for the id of a question.", hint=f"Give {_ID_CHARS_MIN} characters or more of it."
        )
    ids = _beginning(store, prefix)
    if len(ids) > 1:
        raise InvalidInput(f"{typed!r} could be {len(ids)} questions.", hint=f"Use one of: {', '.join(ids[:10])}.")
    if not ids:
        is_agents = _beginning(call.seat.graph.get_agent_store(), prefix)
        hint = "mnemarch graph show lists them; one that was evicted can be asked again."
        if is_agents:
            hint = "It is one of the agent's own: ask it in this session first (mnemarch graph ask TEXT)."
        raise NotFound(f"There is no question {typed!r} in this session.", hint=hint)
    return ids[0]


def _beginning(store: GraphStore, prefix: str) -> list[str]:
    ids = [node.id for node in store.nodes("query") if node.id.startswith(prefix)]
    return [prefix] if prefix in ids else ids


# Reading


def _show(call: Call) -> Answer:
    options, limit = call.options, call.options.limit
    if limit is not None and not 1 <= limit <= _LIMIT_MAX:
        raise InvalidInput(f"--limit must be from 1 to {_LIMIT_MAX:,}, not {limit}.", hint="Leave it out for 20.")
    if options.format not in (None, *_FORMATS):
        raise InvalidInput(f"There is no format {options.format!r}.", hint=f"Use one of: {', '.join(_FORMATS)}.")
    format = _format(options.format, options.out)
    view = _view(call)

    def drawn() -> str:
        from mnemarch.interfaces import graph_picture
        from mnemarch.interfaces.cli import json_text

        if format == "json":
            return json_text(_form(view, limit))
        if format != "text":
            part = graph_picture.part_shown(view, limit)
            return graph_picture.dot(part) if format == "dot" else graph_picture.svg(part)
        if not view.nodes:
            return graph_text.empty(view, call.seat.graph.get_active_sessions())
        return graph_text.graph(view, limit or _QUESTIONS_SHOWN)

    if options.out is None:
        return Answer(data=_form(view, limit), text=drawn)
    path = _written(drawn(), options.out)
    facts = {"path": path, "nodes": view.whole.nodes, "edges": view.whole.edges}
    return Answer(data=facts, text=lambda: f"drew  {graph_text.size(view.whole)} to {options.out}")


def _format(named: str | None, out: str | None) -> str:
    """The format named, or that of the file's ending. Files of another kind are never overwritten."""
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
    from mnemarch.graph.values import GraphStats

    graph, session = call.seat.graph, _session(call)
    store = _store(call, session)
    nodes, edges = (store.nodes(), store.edges()) if store is not None else ([], [])
    contents: dict[str, str] = {}
    for unit_id in {str(node.about["unit"]) for node in nodes if "unit" in node.about}:
        with suppress(NotFound, InvalidInput):  # A unit of another project, or none: its id alone is shown.
            contents[unit_id] = call.seat.get(unit_id).content
    at = instant(graph.get_agent_store().keeper.now())
    whole = GraphStats(nodes=len(nodes), edges=len(edges))
    return GraphView(graph.agent_id, session, nodes, edges, whole, contents, at)


def _written(text: str, out: str) -> str:
    path = os.path.abspath(out)
    if not os.path.isdir(os.path.dirname(path)):
        raise InvalidInput(f"There is no folder {os.path.dirname(path)}.", hint="Make it first, or name another.")
    try:
        write_whole(path, text + "\n")
    except OSError as error:
        raise StoreUnavailable(
            f"{out} can't be written: {error.strerror}.", hint="Check the folder's rights."
        ) from None
    return path


def _form(view: GraphView, limit: int | None) -> dict[str, Any]:
    """A graph for programs: all of it, or only the hottest questions with their answers, feedback and entities."""
    ids = {node.id for node in view.nodes}
    if limit is not None:
        around, hottest = view.around(), [query.id for query in view.queries[:limit]]
        ids = {other for id in hottest for edge, other in around[id] if edge.type != "similar_to"}.union(hottest)
    return {
        "agent": view.agent,
        "session": view.session,
        "at": view.at,
        "whole": view.whole,
        "nodes": [node for node in view.nodes if node.id in ids],
        "edges": [_renamed(edge) for edge in view.edges if edge.from_ in ids and edge.to in ids],
    }


def _renamed(item: Edge | GraphHit) -> dict[str, Any]:
    """An edge or a hit with its JSON names."""
    return {name.removesuffix("_"): getattr(item, name) for name in type(item).__match_args__}


def _search(call: Call) -> Answer:
    options, graph, session = call.options, call.seat.graph, _session(call)
    text, k = options.text, options.k
    if session is None:
        hits = [replace(hit, from_="agent") for hit in graph.get_agent_store().search_similar_queries(text, k)]
    else:
        hits = graph.search(session, text, k)
    return Answer(data=list(map(_renamed, hits)), text=lambda: graph_text.hits(hits, text))


def _sessions(call: Call) -> Answer:
    graph = call.seat.graph
    begun = graph.get_agent_store().sessions()
    rows = [
        (session, instant(begun[session]), graph.get_session_store(session).stats())
        for session in graph.get_active_sessions()
        if session in begun
    ]
    data = [{"session": one, "begun_at": at, "nodes": whole.nodes, "edges": whole.edges} for one, at, whole in rows]
    return Answer(data=data, text=lambda: graph_text.sessions(rows))


# Writing


def _ask(call: Call) -> Answer:
    graph, session = call.seat.graph, _named_session(call)
    text = call.options.text
    before = _store(call, session)
    known = {node.id for node in before.nodes("query")} if before is not None else set()
    id = graph.upsert_query(session, text)
    node = graph.get_session_store(session).node(id)
    hits = graph.search(session, text, _SIMILAR_SHOWN + 1)
    similar = [hit for hit in hits if hit.id != id and hit.sim >= _ALIKE_MIN][:_SIMILAR_SHOWN]
    data = {"id": id, "known": id in known, "session": session, "node": node, "similar": list(map(_renamed, similar))}
    return Answer(data=data, text=lambda: graph_text.asked(node, id in known, similar))


def _answer(call: Call) -> Answer:
    options = call.options
    if (options.text is None) is (options.unit is None):
        raise InvalidInput("An answer is a text or a unit.", hint="Give --text TEXT or --unit UNIT, one of the two.")
    session, store = _under_way(call)
    query = _query_id(call, store)
    text = options.text
    unit = None if options.unit is None else call.seat.get(options.unit).id
    answer = call.seat.graph.record_answer(session, query, text, unit_id=unit)
    data = {"id": answer, "query": query, "session": session, "unit": unit}
    said = f"unit {unit}" if text is None else show.quoted(text)
    return Answer(data=data, text=lambda: f"answered  {graph_text.short_id(query)}  {said}")


def _feedback(call: Call) -> Answer:
    label = call.options.label
    session, store = _under_way(call)
    query = _query_id(call, store)
    feedback = call.seat.graph.record_feedback(session, query, label, call.options.note)
    node = store.node(query)
    data = {"id": feedback, "query": query, "session": session, "label": label, "node": node}
    head = f"{label}  {graph_text.short_id(query)}  {show.quoted(node.text or '')}"
    return Answer(data=data, text=lambda: f"{head}\n  rank {node.rank:.2f}, feedback {node.weights.feedback:+g} in all")


def _entity(call: Call) -> Answer:
    options, graph, session = call.options, call.seat.graph, _session(call)
    user = options.user or graph.agent_id
    id = graph.upsert_entity(user, options.id, options.text, options.alias, session_id=session)
    node = (graph.get_agent_store() if session is None else graph.get_session_store(session)).node(id)
    names = ", ".join(map(show.clean, node.about["names"]))
    mention = "mentions" if node.degree == 1 else "mention"
    text = f"named  {names}\n  {graph_text.counted(node.degree, 'question')} here {mention} it"
    return Answer(data={"id": id, "session": session, "node": node}, text=lambda: text)


def _end(call: Call) -> Answer:
    options, graph = call.options, call.seat.graph
    if options.name is not None and options.no_checkpoint:
        raise InvalidInput("--name names a checkpoint, and --no-checkpoint wants none.", hint="Leave one of them out.")
    session, _ = _under_way(call)
    writes = {"checkpoint": not options.no_checkpoint, "checkpoint_name": options.name}
    outcome = graph.finalize_session(session, promote=not options.no_promote, **writes)
    rules = None if options.no_promote else graph.config.promotion
    return Answer(data=outcome, text=lambda: graph_text.ended(outcome, rules))


COMMANDS = {
    "graph show": Command(
        "Show what was asked, what helped and what is hot. The graph of a session (--session), or the agent's own, the"
        " hottest questions first; as a picture with --out graph.svg. Heat says what to look at first, never what is"
        " true.",
        ("mnemarch graph show --session s-1 --out graph.svg",),
        _show,
        (
            _AGENT,
            Parameter("format", WORDS, "text (default), json, dot or svg", None, metavar="FORMAT"),
            Parameter("out", PATH, "write the svg, dot or json there", None),
            Parameter("limit", NUMBER, "so many questions at most (text: 20)", None),
        ),
    ),
    "graph ask": Command(
        "Note a question.",
        ('mnemarch graph ask "결제 재시도는 몇 번?" --session s-1',),
        _ask,
        (_QUESTION,),
        begins_memory=True,
    ),
    "graph answer": Command(
        "Say what a question was answered with.",
        ('mnemarch graph answer 3f2a91bc --text "Three times." --session s-1',),
        _answer,
        (
            _QUERY,
            Parameter("text", TEXT, "the answer itself; - reads standard input", None),
            Parameter("unit", ID, "the unit that answers it", None, metavar="UNIT"),
        ),
    ),
    "graph feedback": Command(
        "Say whether an answer helped.",
        ('mnemarch graph feedback 3f2a91bc up --note "solved it" --session s-1',),
        _feedback,
        (
            _QUERY,
            Parameter("label", WORDS, "up, down or retry", metavar="LABEL"),
            Parameter("note", WORDS, "why", None),
        ),
    ),
    "graph entity": Command(
        "Name what questions are about.",
        ('mnemarch graph entity bank --text "The bank" --alias 은행 --session s-1',),
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
    "graph search": Command(
        "Find the questions most like a text.",
        ('mnemarch graph search "checkout retries" --session s-1',),
        _search,
        (_QUESTION, _AGENT, Parameter("k", NUMBER, f"how many (default: {_SIMILAR_SHOWN})", _SIMILAR_SHOWN)),
    ),
    "graph sessions": Command("List the sessions under way.", ("mnemarch graph sessions",), _sessions),
    "graph end": Command(
        "End a session and hand the best on to the agent's own graph.",
        ("mnemarch graph end --session s-1",),
        _end,
        (
            Parameter("no_promote", FLAG, "take nothing over to the agent's graph", False),
            Parameter("no_checkpoint", FLAG, "write no checkpoint", False),
            Parameter("name", WORDS, "what the checkpoint's file is called", None, metavar="NAME"),
        ),
    ),
}

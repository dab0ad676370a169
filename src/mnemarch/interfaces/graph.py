"""`graph`: shows the graph of a session or of an agent: questions, answers and feedback.

Programs record a session through the library (`seat.graph`).
"""

from __future__ import annotations

from contextlib import suppress
from html import escape

from mnemarch.errors import InvalidInput, NotFound
from mnemarch.interfaces.command import Answer, Call, Command
from mnemarch.interfaces.text import age, clean, quoted, short, wrapped
from mnemarch.model.stamps import instant
from mnemarch.model.value import Frozen, replace
from mnemarch.text.words import counted
from mnemarch.verbs.types import FLAG, NUMBER, Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

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
# A family with Hangul comes first, since some renderers use only the first one.
_FONTS = "Noto Sans CJK KR, Noto Sans KR, Apple SD Gothic Neo, Malgun Gothic, NanumGothic, sans-serif"
_INK, _FAINT = "#1d2433", "#667085"
_COLOUR_OF = {"query": "#e8743b", "answer": "#2f9e6e", "feedback": "#c98a0c", "entity": "#8b5cc7"}
_COLD, _HOT = (0xEE, 0xF2, 0xFA), (0xFF, 0xC3, 0x9A)
# Lengths in pixels. Each column has its left edge and its width.
_WIDTH, _HEAD, _CARD_HEIGHT, _ROW_HEIGHT, _LINE_HEIGHT = 1232, 112, 50, 64, 17
_COLUMNS = {"entity": (36, 210), "query": (376, 380), "answer": (886, 310), "feedback": (886, 310)}
_HEADINGS = {"entity": "entities", "query": "questions, the warmer the hotter", "answer": "answers and feedback"}
# Wider than the average letter, so that a label always fits.
_CELL_WIDTH = 7.8
# Not allowed in XML.
_NOT_IN_XML = dict.fromkeys((*range(0xD800, 0xE000), 0xFFFE, 0xFFFF), "�")


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
        more = f"\n\nOpen sessions (--session ID): {clean(', '.join(others))}" if others else ""
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
            f"{view.title} has no questions yet. The program that runs an agent records a session"
            " (seat.graph). The agent's own graph keeps the best of it when the session ends."
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
        weights = f"asked {query.weights.repeat:.3g}×, feedback {query.weights.feedback:+.3g}"
        facts = [weights, age(query.last_access), *(["pinned"] if query.pinned else [])]
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


def _short_id(node_id: str) -> str:
    return node_id.partition(":")[2][:8]


COMMANDS = {
    "graph": Command(
        _show,
        (
            Parameter("agent", FLAG, "show the agent's own graph, even if a session is set", False),
            Parameter("limit", NUMBER, f"how many questions (default: {_QUESTIONS_SHOWN}; with --json all)", None),
            Parameter("svg", FLAG, "draw a picture", False),
        ),
    ),
}


# The graph as a picture: SVG 1.1 that every renderer draws alike. Its columns are entities; questions, the hottest
# first; answers and feedback. Each node is a card in a row of its own, so nothing overlaps. The file has only shapes,
# paths and plain text, no style sheet and no script.


class GraphView(Frozen):
    """A graph, or a part of it: the hottest nodes first, the heaviest edges first.

    `contents` has the texts of the answers' units, by id.
    """

    title: str
    nodes: Sequence[Node]
    edges: Sequence[Edge]
    contents: Mapping[str, str] = {}

    @property
    def size(self) -> str:
        return f"{counted(len(self.nodes), 'node')}, {counted(len(self.edges), 'edge')}"

    @property
    def queries(self) -> list[Node]:
        return [node for node in self.nodes if node.type == "query"]

    def part(self, questions_max: int | None) -> GraphView:
        """The hottest questions with their answers, feedback and entities. None as the number gives the whole graph."""
        if questions_max is None:
            return self
        hottest = {query.id for query in self.queries[:questions_max]}
        linked = [{edge.from_, edge.to} for edge in self.edges if edge.type != "similar_to"]
        ids = hottest.union(*(ends for ends in linked if ends & hottest))
        return replace(
            self,
            nodes=[node for node in self.nodes if node.id in ids],
            edges=[edge for edge in self.edges if edge.from_ in ids and edge.to in ids],
        )

    def words(self, node: Node) -> str:
        """The text of a node."""
        about = node.about
        if node.type == "feedback":
            return f"{about['label']}: {node.text}" if node.text else str(about["label"])
        if node.type == "entity":
            name = node.text or str(about["entity"])
            others = ", ".join(other for other in about["names"] if other != name)
            return f"{name} ({others})" if others else name
        unit = str(about.get("unit"))
        return node.text or f"unit {unit}: {self.contents.get(unit, '')}".rstrip(": ")


def _named(node: Node) -> str:
    return f"question {node.rank:.2f}" if node.type == "query" else str(node.type)


def graph_svg(view: GraphView, questions_max: int) -> str:
    part = view.part(questions_max)
    rows = _rows(part)
    height = _HEAD + (max(rows.values(), default=0) + 1) * _ROW_HEIGHT
    title = _escaped(f"{view.title}: {view.size}")
    drawn = "" if len(part.nodes) == len(view.nodes) else f"; the hottest are drawn, {part.size}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" version="1.1" width="{_WIDTH}" height="{height}"'
        f' viewBox="0 0 {_WIDTH} {height}" font-family="{_FONTS}" role="img" aria-label="{title}">',
        f"<title>{title}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#fafbfd"/>',
        _text(36, 40, short(view.title, 96), 20, _INK),
        _text(36, 62, f"{view.size}{drawn}", 12.5, _FAINT),
        *(_text(_COLUMNS[type][0], _HEAD - 12, says, 12, _FAINT) for type, says in _HEADINGS.items()),
    ]
    place = {node.id: (*_COLUMNS[node.type], _HEAD + rows[node.id] * _ROW_HEIGHT) for node in part.nodes}
    lines += [_line(edge, place[edge.from_], place[edge.to]) for edge in part.edges]
    lines += [line for node in part.nodes for line in _card(node, view.words(node), *place[node.id])]
    return "\n".join([*lines, "</svg>"])


def _rows(part: GraphView) -> dict[str, int]:
    """The row of each node. Questions are in order of heat; other nodes beside their hottest question, or below it."""
    rows = {query.id: number for number, query in enumerate(part.queries)}
    beside = dict.fromkeys((node.id for node in part.nodes), len(rows))
    for edge in part.edges:
        for end, other in ((edge.from_, edge.to), (edge.to, edge.from_)):
            beside[end] = min(beside[end], rows.get(other, len(rows)))
    free: dict[int, int] = {}
    for node in sorted(part.nodes, key=lambda node: beside[node.id]):
        if node.id not in rows:
            column = _COLUMNS[node.type][0]
            rows[node.id] = max(free.get(column, 0), beside[node.id])
            free[column] = rows[node.id] + 1
    return rows


def _line(edge: Edge, *ends: tuple[int, int, int]) -> str:
    """A curve between two cards. Within one column it goes around their left sides."""
    (x1, width, y1), (x2, _, y2) = sorted(ends)
    y1, y2 = y1 + _CARD_HEIGHT // 2, y2 + _CARD_HEIGHT // 2
    bend = x1 - min(110, 24 + abs(y1 - y2) // 5)
    if x1 != x2:
        x1 += width
        bend = (x1 + x2) // 2
    return (
        f'<path d="M {x1} {y1} C {bend} {y1} {bend} {y2} {x2} {y2}" fill="none" stroke="{_FAINT}"'
        f' stroke-width="1.5" stroke-opacity="0.6"><title>{edge.type}, weight {edge.weight:.2f}</title></path>'
    )


def _card(node: Node, words: str, x: int, width: int, y: int) -> Iterator[str]:
    heat = max(0.0, min(1.0, node.rank)) ** 2
    warm = "#" + "".join(f"{round(cold + (hot - cold) * heat):02x}" for cold, hot in zip(_COLD, _HOT, strict=True))
    fill = warm if node.type == "query" else "#ffffff"
    yield f"<g><title>{_escaped(f'{_named(node)}: {words} ({node.id})')}</title>"
    yield f'<rect x="{x}" y="{y}" width="{width}" height="{_CARD_HEIGHT}" rx="8" fill="{fill}" stroke="#d5dbe6"/>'
    yield f'<rect x="{x}" y="{y + 9}" width="4" height="{_CARD_HEIGHT - 18}" rx="2" fill="{_COLOUR_OF[node.type]}"/>'
    lines = label(clean(words), int((width - 34) / _CELL_WIDTH))
    baseline = y + _CARD_HEIGHT / 2 + 4.5 - (len(lines) - 1) * _LINE_HEIGHT / 2
    yield from (_text(x + 17, baseline + at * _LINE_HEIGHT, line, 13, _INK) for at, line in enumerate(lines))
    yield "</g>"


def label(text: str, cells: int) -> list[str]:
    """A text on at most two lines of `cells` cells (Hangul takes two), folded between words and cut with …"""
    from rich.cells import set_cell_size
    from rich.console import Console
    from rich.text import Text

    lines = [line.plain.rstrip() for line in Text(" ".join(text.split())).wrap(Console(), cells)]
    if len(lines) > 2:
        lines[1] = set_cell_size(lines[1], cells - 1).rstrip() + "…"
    return lines[:2]


def _text(x: float, y: float, text: str, size: float, colour: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}">{_escaped(text)}</text>'


def _escaped(text: str) -> str:
    """Text for XML, as plain ASCII: standard output may have any encoding."""
    return escape(clean(text).translate(_NOT_IN_XML)).encode("ascii", "xmlcharrefreplace").decode()

"""A graph as a picture: SVG 1.1 that every renderer draws alike, and DOT for Graphviz.

The picture has three columns: entities, questions (the hottest first), answers and feedback. Each node is a card with a
row of its own, so nothing overlaps. It has only shapes, paths and plain text: no style sheet, no script.
"""

from __future__ import annotations

from xml.sax.saxutils import escape

from mnemarch.interfaces.graph_text import size
from mnemarch.interfaces.show import clean, short
from mnemarch.model.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mnemarch.graph.values import Edge, Node
    from mnemarch.interfaces.graph_text import GraphView

_NODES_MAX = 80
_LABEL_CHARS, _TIP_CHARS = 60, 200
# The first family that has Hangul decides: some renderers look at no other.
_FONTS = "Noto Sans CJK KR, Noto Sans KR, Apple SD Gothic Neo, Malgun Gothic, NanumGothic, sans-serif"
_INK, _FAINT, _GROUND = "#1d2433", "#667085", "#fafbfd"
# Lengths in pixels.
_MARGIN, _HEAD, _FOOT = 36, 92, 56
_CARD_HEIGHT, _CARD_GAP, _COLUMN_GAP = 50, 14, 130
_FONT, _LINE_HEIGHT = 13, 17
# A letter is counted wider than it is on average, so that a label always fits.
_CELL_WIDTH = 0.6 * _FONT
_COLUMN_OF = {"entity": 0, "query": 1, "answer": 2, "feedback": 2}
_WIDTH_OF = (210, 380, 310)
_COLOUR_OF = {"query": "#e8743b", "answer": "#2f9e6e", "feedback": "#c98a0c", "entity": "#8b5cc7"}
_COLOUR_OF_FEEDBACK = {"up": "#2f9e6e", "down": "#d1495b", "retry": "#c98a0c"}
_EDGES = {
    "similar_to": ("similar to", "#8296b8"),
    "responded_with": ("answered with", "#2f9e6e"),
    "has_feedback": ("feedback", "#c98a0c"),
    "refers_to_entity": ("refers to", "#8b5cc7"),
}
_COLD, _HOT = (0xEE, 0xF2, 0xFA), (0xFF, 0xC3, 0x9A)
# Not allowed in XML.
_NOT_IN_XML = dict.fromkeys((*range(0xD800, 0xE000), 0xFFFE, 0xFFFF), "�")
_DOT_SHAPE = {"query": "ellipse", "answer": "box", "feedback": "diamond", "entity": "hexagon"}
_DOT_STYLE = {"has_feedback": "dotted", "refers_to_entity": "dashed"}


def part_shown(view: GraphView, questions_max: int | None = None) -> GraphView:
    """As much of a graph as a picture can hold: the hottest questions, each with its neighbours."""
    around = view.around()
    ids = [id for query in view.queries[:questions_max] for id in (query.id, *(other for _, other in around[query.id]))]
    if questions_max is None:
        ids += [node.id for node in view.nodes if not around[node.id]]
    kept = set(list(dict.fromkeys(ids))[:_NODES_MAX])
    return replace(
        view,
        nodes=[node for node in view.nodes if node.id in kept],
        edges=[edge for edge in view.edges if edge.from_ in kept and edge.to in kept],
    )


def dot(view: GraphView) -> str:
    """A graph for Graphviz."""
    names = {node.id: f"n{number}" for number, node in enumerate(view.nodes)}
    lines = ["graph mnemarch {", f"  label={_dot_text(f'{view.title}, {size(view.whole)}')};", "  overlap=false;"]
    for node in view.nodes:
        label, tip = short(view.words(node), _LABEL_CHARS), f"{node.id} {short(view.words(node), _TIP_CHARS)}"
        facts = f"label={_dot_text(label)}, tooltip={_dot_text(tip)}, shape={_DOT_SHAPE[node.type]}"
        lines.append(f"  {names[node.id]} [{facts}];")
    for edge in view.edges:
        facts = f'label="{edge.type} {edge.weight:.2f}", style={_DOT_STYLE.get(edge.type, "solid")}'
        lines.append(f"  {names[edge.from_]} -- {names[edge.to]} [{facts}];")
    return "\n".join([*lines, "}"])


def _dot_text(text: str) -> str:
    return '"' + clean(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'


def svg(view: GraphView) -> str:
    """The picture of a graph that `part_shown` made small enough."""
    width = sum(_WIDTH_OF) + 2 * (_COLUMN_GAP + _MARGIN)
    lefts = _MARGIN, _MARGIN + _WIDTH_OF[0] + _COLUMN_GAP, width - _MARGIN - _WIDTH_OF[2]
    tops, height = _rows(view)
    title = _escaped(f"{view.title}: {size(view.whole)}")
    shown = "" if len(view.nodes) == view.whole.nodes else f", the {len(view.nodes)} hottest of them here"
    facts = f"{size(view.whole)}{shown} · {view.at:%Y-%m-%d %H:%M} UTC"
    place = {node.id: (lefts[_COLUMN_OF[node.type]], tops[node.id]) for node in view.nodes}
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" version="1.1" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" font-family="{_FONTS}" role="img" aria-label="{title}">',
        f"<title>{title}</title>",
        f'<rect width="{width}" height="{height}" fill="{_GROUND}"/>',
        _text(_MARGIN, 40, short(view.title, (width - 2 * _MARGIN) // 12), 20, _INK, "bold"),
        _text(_MARGIN, 62, facts, 12.5, _FAINT),
        *(_line(edge, place) for edge in view.edges),
        *(line for node in view.nodes for line in _card(node, view, *place[node.id])),
        *_legend(height - 24),
        "</svg>",
    ]
    return "\n".join(lines)


def _rows(view: GraphView) -> tuple[dict[str, int], int]:
    """Where each card begins: questions by heat, the others as near to their questions as there is room."""
    around = view.around()
    step = _CARD_HEIGHT + _CARD_GAP
    tops = {query.id: _HEAD + number * step for number, query in enumerate(view.queries)}
    for column in (0, 2):
        wanted: list[tuple[float, str]] = []
        for node in view.nodes:
            if _COLUMN_OF[node.type] == column:
                linked = [tops[other] for _, other in around[node.id] if other in tops] or [_HEAD + len(tops) * step]
                wanted.append((sum(linked) / len(linked), node.id))
        free = _HEAD
        for number, (top, id) in enumerate(sorted(wanted)):
            # What comes after must fit too, as long as the questions need that much height anyway.
            last = _HEAD + (max(len(view.queries), len(wanted)) - len(wanted) + number) * step
            tops[id] = max(free, min(round(top), last))
            free = tops[id] + step
    return tops, max([*tops.values(), _HEAD]) + step + _FOOT


def _line(edge: Edge, place: dict[str, tuple[int, int]]) -> str:
    """A curve from a question to its neighbour; to a similar question around the left side of both cards."""
    said, colour = _EDGES[edge.type]
    (x1, y1), (x2, y2) = place[edge.from_], place[edge.to]
    y1, y2 = y1 + _CARD_HEIGHT // 2, y2 + _CARD_HEIGHT // 2
    bend = x1 - min(_COLUMN_GAP - 20, 24 + abs(y1 - y2) // 5)
    if x1 != x2:
        x1, x2 = (x1 + _WIDTH_OF[1], x2) if x1 < x2 else (x1, x2 + _WIDTH_OF[0])
        bend = (x1 + x2) // 2
    width = 1.2 + 2.4 * edge.weight / (edge.weight + 3.0)
    return (
        f'<path d="M {x1} {y1} C {bend} {y1} {bend} {y2} {x2} {y2}" fill="none" stroke="{colour}"'
        f' stroke-width="{width:.2f}" stroke-opacity="0.6"><title>{said}, weight {edge.weight:.2f}</title></path>'
    )


def _card(node: Node, view: GraphView, x: int, y: int) -> Iterator[str]:
    words, width = clean(view.words(node)), _WIDTH_OF[_COLUMN_OF[node.type]]
    heat = max(0.0, min(1.0, node.rank)) ** 2
    warm = "#" + "".join(f"{round(cold + (hot - cold) * heat):02x}" for cold, hot in zip(_COLD, _HOT, strict=True))
    colour = _COLOUR_OF_FEEDBACK.get(str(node.about.get("label")), _COLOUR_OF[node.type])
    facts = f"rank {node.rank:.2f}, {node.weights.repeat:.3g} times, feedback {node.weights.feedback:+.3g}"
    unit = [f"unit {node.about['unit']}"] if "unit" in node.about else []
    tip = "\n".join([f"{node.type}: {words}", facts, *unit, node.id])
    yield f"<g><title>{_escaped(tip)}</title>"
    frame = f'x="{x}" y="{y}" height="{_CARD_HEIGHT}" rx="8"'
    yield f'<rect {frame} width="{width}" fill="{warm if node.type == "query" else "#ffffff"}" stroke="#d5dbe6"/>'
    yield f'<rect x="{x}" y="{y + 9}" width="4" height="{_CARD_HEIGHT - 18}" rx="2" fill="{colour}"/>'
    lines = label(words, int((width - 34) / _CELL_WIDTH))
    baseline = y + _CARD_HEIGHT / 2 + 4.5 - (len(lines) - 1) * _LINE_HEIGHT / 2
    for number, line in enumerate(lines):
        yield _text(x + 17, baseline + number * _LINE_HEIGHT, line, _FONT, _INK)
    yield "</g>"


def label(text: str, cells: int) -> list[str]:
    """A text on two lines of so many cells (Hangul takes two), folded between words, with … if it is longer."""
    from rich.cells import set_cell_size
    from rich.console import Console
    from rich.text import Text

    lines = [line.plain.rstrip() for line in Text(" ".join(text.split())).wrap(Console(), cells)]
    if len(lines) > 2:
        lines[1] = set_cell_size(lines[1], cells - 1).rstrip() + "…"
    return lines[:2]


def _legend(y: int) -> Iterator[str]:
    x = _MARGIN
    for type, colour in _COLOUR_OF.items():
        yield f'<rect x="{x}" y="{y - 12}" width="4" height="14" rx="2" fill="{colour}"/>'
        yield _text(x + 11, y, "question, the warmer the hotter" if type == "query" else type, 12, _FAINT)
        x += 236 if type == "query" else 92
    for said, colour in _EDGES.values():
        yield f'<path d="M {x} {y - 4} L {x + 22} {y - 4}" stroke="{colour}" stroke-width="2" stroke-opacity="0.7"/>'
        yield _text(x + 29, y, said, 12, _FAINT)
        x += 50 + len(said) * 7


def _text(x: float, y: float, text: str, size: float, colour: str, weight: str = "normal") -> str:
    font = f'font-size="{size}" font-weight="{weight}" fill="{colour}"'
    return f'<text x="{x:g}" y="{y:g}" {font}>{_escaped(text)}</text>'


def _escaped(text: str) -> str:
    return escape(clean(text).translate(_NOT_IN_XML), {'"': "&quot;"})

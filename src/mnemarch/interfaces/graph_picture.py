"""A graph as a picture: SVG by hand, the same picture for the same graph, readable by day and by night."""

from __future__ import annotations

from math import cos, hypot, pi, sin, sqrt
from unicodedata import east_asian_width

from mnemarch.interfaces.graph_text import size
from mnemarch.interfaces.show import clean
from mnemarch.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mnemarch.graph.values import Edge, Node
    from mnemarch.interfaces.graph_text import GraphView

_NODES_MAX = 80

# The layout. Lengths are in pixels, angles in radians.
_GOLDEN_ANGLE = pi * (3 - sqrt(5))
_EDGE_LENGTH = 62.0
_ROUNDS = 240
_REACH = 3 * _EDGE_LENGTH
_TO_THE_MIDDLE = 0.12
# Labels are wider than high, and so are screens.
_STRETCH = 1.7
_PARTING_ROUNDS_MAX = 600
_GAP = 7.0

# The drawing.
_MARGIN, _HEAD, _FOOT = 28.0, 78.0, 66.0
_WIDTH_MIN = 720.0
_LINE_HEIGHT = 14.0
_LABEL_LINES_MAX = 2
_LABEL_WIDTH_MAX = {"query": 180.0, "answer": 140.0, "feedback": 112.0, "entity": 112.0}
_FONT_PX = {"query": 12.5, "answer": 11.5, "feedback": 11.5, "entity": 11.5}
# Letters in bold are wider by so much.
_BOLD = 1.1
_RADIUS_MIN = {"query": 6.0, "answer": 6.0, "feedback": 6.0, "entity": 6.0}
_RADIUS_BY_RANK = {"query": 22.0, "answer": 9.0, "feedback": 9.0, "entity": 12.0}
_TYPES = {"query": "question", "answer": "answer", "feedback": "feedback", "entity": "entity"}
_EDGES = {
    "similar_to": "similar to",
    "responded_with": "answered with",
    "has_feedback": "feedback",
    "refers_to_entity": "refers to",
}
_SIGN = {"up": "+", "down": "−", "retry": "↻"}
# Not allowed in XML, beyond what no terminal should be shown either.
_NOT_IN_XML = dict.fromkeys((*range(0xD800, 0xE000), 0xFFFE, 0xFFFF), "�")
_STYLE = """\
.mnemarch-graph { font-family: Inter, "Segoe UI", "Noto Sans", "Noto Sans KR", "Noto Sans CJK KR",
  "Apple SD Gothic Neo", "Malgun Gothic", NanumGothic, "DejaVu Sans", sans-serif;
  --ground: #fbfcfe; --ink: #1d2433; --faint: #5b6578; --line: #a9b3c4;
  --query: #3d6fd6; --answer: #22936a; --feedback: #d08a12; --entity: #9a55c4; }
@media (prefers-color-scheme: dark) { .mnemarch-graph {
  --ground: #10151f; --ink: #e8ecf4; --faint: #9ea9bb; --line: #56617a;
  --query: #7aa5ff; --answer: #4cc99a; --feedback: #f0b54a; --entity: #c993ee; } }
.ground { fill: var(--ground); }
text { fill: var(--ink); }
.label { text-anchor: middle; paint-order: stroke; stroke: var(--ground); stroke-width: 5px; stroke-linejoin: round; }
.title { font-size: 18px; font-weight: 600; }
.faint { font-size: 12.5px; fill: var(--faint); }
.sign { text-anchor: middle; font-weight: 700; fill: var(--ground); }
.edge { fill: none; stroke: var(--line); stroke-linecap: round; }
.responded_with { stroke: var(--answer); stroke-opacity: .7; }
.has_feedback { stroke: var(--feedback); stroke-dasharray: 1 5; }
.refers_to_entity { stroke: var(--entity); stroke-dasharray: 7 4; stroke-opacity: .75; }
.node { stroke: var(--ground); stroke-width: 2px; }
.query { fill: var(--query); } .query-label { font-weight: 600; }
.answer { fill: var(--answer); } .feedback { fill: var(--feedback); } .entity { fill: var(--entity); }"""


def part_shown(view: GraphView, questions_max: int | None = None) -> GraphView:
    """As much of a graph as a picture can hold: the hottest questions, each with its nearest."""
    around = view.around()
    kept: dict[str, None] = {}
    for query in view.queries[:questions_max]:
        for id in (query.id, *(other for _, other in around[query.id])):
            if len(kept) < _NODES_MAX:
                kept[id] = None
    for node in view.nodes:
        if not around[node.id] and len(kept) < _NODES_MAX and questions_max is None:
            kept[node.id] = None
    return replace(
        view,
        nodes=[node for node in view.nodes if node.id in kept],
        edges=[edge for edge in view.edges if edge.from_ in kept and edge.to in kept],
    )


def svg(view: GraphView) -> str:
    """The picture of a graph that `part_shown` made small enough."""
    boxes = [_box(node, view) for node in view.nodes]
    place = {node.id: number for number, node in enumerate(view.nodes)}
    links = [(place[edge.from_], place[edge.to]) for edge in view.edges]
    centres = apart(boxes, laid_out(len(boxes), links))
    width, height, centres = _framed(boxes, centres)
    middles = [(x, y - box.height / 2 + box.radius + _GAP / 2) for box, (x, y) in zip(boxes, centres, strict=True)]
    title = f"{view.title}: {size(view.whole)}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="mnemarch-graph" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{_escaped(title)}">',
        f"<title>{_escaped(title)}</title>",
        f"<style>\n{_STYLE}\n</style>",
        '<rect class="ground" width="100%" height="100%"/>',
        *_head(view, width),
        *(_line(edge, middles[place[edge.from_]], middles[place[edge.to]]) for edge in view.edges),
        *(_shape(box, middle) for box, middle in zip(boxes, middles, strict=True)),
        *(line for box, middle in zip(boxes, middles, strict=True) for line in _label(box, middle)),
        *_legend(height),
        "</svg>",
    ]
    return "\n".join(lines)


# What there is to be placed


@value
class Box:
    """A node with its label, as much room as it takes."""

    type: str
    radius: float
    lines: tuple[str, ...]
    width: float
    height: float
    sign: str
    told: str


def _box(node: Node, view: GraphView) -> Box:
    words = clean(view.words(node))
    radius = _RADIUS_MIN[node.type] + _RADIUS_BY_RANK[node.type] * max(0.0, min(1.0, node.rank)) ** 2
    em_px = _FONT_PX[node.type] * (_BOLD if node.type == "query" else 1.0)
    lines = wrapped(words, _LABEL_WIDTH_MAX[node.type] / em_px)
    facts = f"rank {node.rank:.2f}, {node.weights.repeat:.3g} times, feedback {node.weights.feedback:+.3g}"
    unit = f"unit {node.about['unit']}\n" if "unit" in node.about else ""
    return Box(
        type=str(node.type),
        radius=radius,
        lines=lines,
        width=max(2 * radius, *(ems(line) * em_px for line in lines), 0) + _GAP,
        height=2 * radius + 5 + _LINE_HEIGHT * len(lines) + _GAP,
        sign=_SIGN.get(str(node.about.get("label")), ""),
        told=f"{_TYPES[node.type]}: {words}\n{facts}\n{unit}{node.id}",
    )


def ems(text: str) -> float:
    """How wide a text is, in widths of its font; rather too much than too little."""
    return sum(_em(letter) for letter in text)


def _em(letter: str) -> float:
    if east_asian_width(letter) in "WF":
        return 1.0
    if letter in "iljtfrI.,:;'|!()[] ":
        return 0.37
    return 0.9 if letter in "mwMW@%—…" else 0.72 if letter.isupper() else 0.61


def wrapped(text: str, ems_max: float) -> tuple[str, ...]:
    """The beginning of a text on two lines; between words if it can be, and with … if there is more."""
    lines: list[str] = []
    rest = " ".join(text.split())
    while rest and len(lines) < _LABEL_LINES_MAX:
        fits = _fitting(rest, ems_max)
        if fits < len(rest) and len(lines) + 1 == _LABEL_LINES_MAX:
            lines.append(rest[: _fitting(rest, ems_max - _em("…"))].rstrip() + "…")
            break
        if fits < len(rest):
            between_words = rest.rfind(" ", 0, fits + 1)
            fits = between_words if between_words > fits // 3 else fits
        lines.append(rest[:fits].rstrip())
        rest = rest[fits:].lstrip()
    return tuple(lines)


def _fitting(text: str, ems_max: float) -> int:
    """How many letters of a text fit; one does, always."""
    room = ems_max
    for number, letter in enumerate(text):
        room -= _em(letter)
        if room < 0:
            return max(1, number)
    return len(text)


# Where it is placed


def laid_out(count: int, links: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
    """Places for nodes: all push each other away, links hold together. No chance in it: it begins with a sunflower."""
    xs = [_EDGE_LENGTH * 0.6 * sqrt(number + 0.5) * cos(number * _GOLDEN_ANGLE) for number in range(count)]
    ys = [_EDGE_LENGTH * 0.6 * sqrt(number + 0.5) * sin(number * _GOLDEN_ANGLE) for number in range(count)]
    for round_ in range(_ROUNDS):
        step_max = _EDGE_LENGTH * (1 - round_ / _ROUNDS) * 0.5 + 1
        pull_x, pull_y = [-_TO_THE_MIDDLE * x for x in xs], [-_TO_THE_MIDDLE * y for y in ys]
        for one in range(count):
            for other in range(one):
                x, y = xs[one] - xs[other], ys[one] - ys[other]
                squared = x * x + y * y
                if squared < _REACH * _REACH:
                    push = _EDGE_LENGTH * _EDGE_LENGTH / max(squared, 1.0)
                    pull_x[one] += x * push
                    pull_y[one] += y * push
                    pull_x[other] -= x * push
                    pull_y[other] -= y * push
        for one, other in links:
            x, y = xs[one] - xs[other], ys[one] - ys[other]
            pull = hypot(x, y) / _EDGE_LENGTH
            pull_x[one] -= x * pull
            pull_y[one] -= y * pull
            pull_x[other] += x * pull
            pull_y[other] += y * pull
        for number in range(count):
            strength = hypot(pull_x[number], pull_y[number])
            scale = min(1.0, step_max / strength) if strength else 0.0
            xs[number] += pull_x[number] * scale
            ys[number] += pull_y[number] * scale
    return [(x * _STRETCH, y) for x, y in zip(xs, ys, strict=True)]


def apart(boxes: Sequence[Box], centres: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same places, moved until no two boxes overlap: each pair the shorter way, half each."""
    xs, ys = [x for x, _ in centres], [y for _, y in centres]
    for _ in range(_PARTING_ROUNDS_MAX):
        met = False
        for one in range(len(boxes)):
            for other in range(one):
                x, y = xs[one] - xs[other], ys[one] - ys[other]
                over_x = (boxes[one].width + boxes[other].width) / 2 - abs(x)
                over_y = (boxes[one].height + boxes[other].height) / 2 - abs(y)
                if over_x <= 0 or over_y <= 0:
                    continue
                met = True
                if over_x < over_y:
                    move = (over_x / 2 + 0.5) * (1 if x >= 0 else -1)
                    xs[one], xs[other] = xs[one] + move, xs[other] - move
                else:
                    move = (over_y / 2 + 0.5) * (1 if y >= 0 else -1)
                    ys[one], ys[other] = ys[one] + move, ys[other] - move
        if not met:
            break
    return list(zip(xs, ys, strict=True))


def _framed(
    boxes: Sequence[Box], centres: Sequence[tuple[float, float]]
) -> tuple[float, float, list[tuple[float, float]]]:
    """The size of the picture, and the places within it."""
    spans = list(zip(boxes, centres, strict=True))
    left = min((x - box.width / 2 for box, (x, _) in spans), default=0.0)
    right = max((x + box.width / 2 for box, (x, _) in spans), default=0.0)
    top = min((y - box.height / 2 for box, (_, y) in spans), default=0.0)
    bottom = max((y + box.height / 2 for box, (_, y) in spans), default=0.0)
    width = max(_WIDTH_MIN, right - left + 2 * _MARGIN)
    move_x, move_y = width / 2 - (left + right) / 2, _HEAD - top
    return width, bottom - top + _HEAD + _FOOT, [(x + move_x, y + move_y) for x, y in centres]


# How it is drawn


def _escaped(text: str) -> str:
    plain = clean(text).translate(_NOT_IN_XML)
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def _head(view: GraphView, width: float) -> Iterator[str]:
    (title, *more) = wrapped(view.title, (width - 2 * _MARGIN) / 18)
    shown = "" if len(view.nodes) == view.whole.nodes else f", the {len(view.nodes)} hottest of them here"
    yield f'<text class="title" x="{_MARGIN:.0f}" y="34">{_escaped(title + ("…" if more else ""))}</text>'
    yield (
        f'<text class="faint" x="{_MARGIN:.0f}" y="55">{size(view.whole)}{shown} · {view.at:%Y-%m-%d %H:%M} UTC</text>'
    )


def _line(edge: Edge, begin: tuple[float, float], end: tuple[float, float]) -> str:
    thick = 1.0 + 3.0 * edge.weight / (edge.weight + 3.0)
    ends = f'x1="{begin[0]:.1f}" y1="{begin[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
    told = f"<title>{_EDGES[edge.type]}, weight {edge.weight:.2f}</title>"
    return f'<line class="edge {edge.type}" {ends} stroke-width="{thick:.2f}">{told}</line>'


def _shape(box: Box, middle: tuple[float, float]) -> str:
    told = f"<title>{_escaped(box.told)}</title>"
    drawn = _outline(box.type, middle[0], middle[1], box.radius)
    if box.sign:
        drawn += f'<text class="sign" x="{middle[0]:.1f}" y="{middle[1] + 4:.1f}" font-size="12">{box.sign}</text>'
    return f"<g>{told}{drawn}</g>"


def _outline(type: str, x: float, y: float, radius: float) -> str:
    """Types differ in shape too, for who can't tell the colours apart."""
    if type == "query":
        return f'<circle class="node query" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'
    if type == "answer":
        half = radius * 0.9
        corner = f'x="{x - half:.1f}" y="{y - half:.1f}" width="{2 * half:.1f}" height="{2 * half:.1f}" rx="3"'
        return f'<rect class="node answer" {corner}/>'
    sides, turn = (4, 0.0) if type == "feedback" else (6, pi / 6)
    angles = [turn + 2 * pi * side / sides for side in range(sides)]
    points = " ".join(f"{x + radius * cos(angle):.1f},{y + radius * sin(angle):.1f}" for angle in angles)
    return f'<polygon class="node {type}" points="{points}"/>'


def _label(box: Box, middle: tuple[float, float]) -> Iterator[str]:
    x, y = middle[0], middle[1] + box.radius + 2
    for number, line in enumerate(box.lines, start=1):
        where = f'x="{x:.1f}" y="{y + _LINE_HEIGHT * number - 1:.1f}" font-size="{_FONT_PX[box.type]}"'
        yield f'<text class="label {box.type}-label" {where}>{_escaped(line)}</text>'


def _legend(height: float) -> Iterator[str]:
    x, y = _MARGIN, height - 38
    for type, said in _TYPES.items():
        yield _outline(type, x + 7, y, 7)
        yield f'<text class="faint" x="{x + 20:.0f}" y="{y + 4:.0f}">{said}</text>'
        x += 36 + ems(said) * 12.5
    yield f'<text class="faint" x="{x:.0f}" y="{y + 4:.0f}">the bigger, the hotter</text>'
    x, y = _MARGIN, height - 16
    for edge_type, said in _EDGES.items():
        ends = f'x1="{x:.0f}" y1="{y:.0f}" x2="{x + 24:.0f}" y2="{y:.0f}"'
        yield f'<line class="edge {edge_type}" {ends} stroke-width="2"/>'
        yield f'<text class="faint" x="{x + 32:.0f}" y="{y + 4:.0f}">{said}</text>'
        x += 48 + ems(said) * 12.5
    yield f'<text class="faint" x="{x:.0f}" y="{y + 4:.0f}">the wider, the heavier</text>'

"""Graphs in words: what is hot, what belongs to it, what was found, what the end of a session left."""

from __future__ import annotations

import sys

from mnemarch.interfaces.place import at_terminal
from mnemarch.interfaces.show import age, clean, quoted, short, table, when
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from mnemarch.graph.values import Edge, Finalized, GraphHit, GraphStats, Node
    from mnemarch.policy.heat import PromotionConfig

FORMATS = ("text", "json", "dot", "svg")
SHOWN_ID_CHARS = 8
_BAR_CELLS = 8
_OF_EACH_KIND_MAX = 5
_LINE_CHARS = 200
_LABEL_CHARS = 60
_TEXT_COLUMNS_MIN = 12
# What an edge leads to, in the order in which it is told.
_SAID = {"responded_with": "answer", "has_feedback": "feedback", "refers_to_entity": "entity", "similar_to": "similar"}
_STYLE_OF = {"answer": "green", "feedback": "yellow", "entity": "magenta", "similar": "cyan"}
_DOT_SHAPE = {"query": "ellipse", "answer": "box", "feedback": "diamond", "entity": "hexagon"}
_DOT_STYLE = {"has_feedback": "dotted", "refers_to_entity": "dashed"}


@value
class GraphView:
    """A graph at a moment, or a part of it: nodes the hottest first, edges the heaviest first.

    `whole` counts all there is, `contents` has the words of the units that are answers.
    """

    agent: str
    session: str | None
    nodes: Sequence[Node]
    edges: Sequence[Edge]
    whole: GraphStats
    contents: Mapping[str, str]
    at: datetime

    @property
    def queries(self) -> list[Node]:
        return [node for node in self.nodes if node.type == "query"]

    def around(self) -> dict[str, list[tuple[Edge, str]]]:
        """For each node its edges, and where they lead from there."""
        found: dict[str, list[tuple[Edge, str]]] = {node.id: [] for node in self.nodes}
        for edge in self.edges:
            if edge.from_ in found and edge.to in found:
                found[edge.from_].append((edge, edge.to))
                found[edge.to].append((edge, edge.from_))
        return found

    def words(self, node: Node) -> str:
        """What a node says, whatever its type."""
        if node.type == "feedback":
            return f"{node.about['label']}: {node.text}" if node.text else str(node.about["label"])
        if node.type == "entity":
            return node.text or str(node.about["entity"])
        unit = node.about.get("unit")
        if node.text is None and unit is not None:
            return self.contents.get(unit) or f"unit {unit}"
        return node.text or ""

    @property
    def title(self) -> str:
        return f"{self.agent}, session {self.session}" if self.session is not None else f"{self.agent}, its own graph"


def short_id(node_id: str) -> str:
    """Enough of an id to type; the commands take any beginning that only one node has."""
    return node_id.partition(":")[2][:SHOWN_ID_CHARS]


def counted(many: int, name: str) -> str:
    plural = f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
    return f"{many:,} {name if many == 1 else plural}"


def size(whole: GraphStats) -> str:
    return f"{counted(whole.nodes, 'node')}, {counted(whole.edges, 'edge')}"


# The graph itself


def graph(view: GraphView, limit: int) -> str:
    """The hottest questions, each with what belongs to it."""
    around = view.around()
    by_id = {node.id: node for node in view.nodes}
    lines = [_Line([(clean(view.title), "bold"), (f"  {size(view.whole)}", "dim")])]
    for query in view.queries[:limit]:
        lines += [_Line([]), *_question(query)]
        lines += _below(_neighbours(around[query.id], by_id, view))
    lines += _left_over(view, around, limit)
    return _drawn(lines) if at_terminal(sys.stdout) else "\n".join(line.plain for line in lines)


def _question(query: Node) -> Iterator[_Line]:
    begin = [(bar(query.rank), "red"), (f" {query.rank:.2f}  ", "bold"), (f"{short_id(query.id)}  ", "dim")]
    yield _Line([*begin, (_quoted(query.text or ""), "bold")], hang=" " * 2)
    facts = [_times(query.weights.repeat), f"feedback {_signed(query.weights.feedback)}", age(query.last_access)]
    yield _Line([(" · ".join([*facts, *(["pinned"] if query.pinned else [])]), "dim")], first="  ", hang="  ")


def _neighbours(
    edges: Sequence[tuple[Edge, str]], by_id: Mapping[str, Node], view: GraphView
) -> Iterator[list[tuple[str, str]]]:
    for type, said in _SAID.items():
        found = [(edge, by_id[other]) for edge, other in edges if edge.type == type]
        for edge, node in found[:_OF_EACH_KIND_MAX]:
            first = (f"{said:<9}", _STYLE_OF[said]), (f"{edge.weight:.2f}  ", "dim")
            yield [*first, *([(f"{short_id(node.id)}  ", "dim")] if said == "similar" else []), (_told(node, view), "")]
        if len(found) > _OF_EACH_KIND_MAX:
            yield [(f"{said:<9}… {len(found) - _OF_EACH_KIND_MAX:,} more", "dim")]


def _told(node: Node, view: GraphView) -> str:
    if node.type == "feedback":
        return f"{node.about['label']}  {_quoted(node.text)}" if node.text else str(node.about["label"])
    if node.type == "entity":
        names = [name for name in node.about["names"] if name != view.words(node)]
        return short(view.words(node) + (f" ({', '.join(names)})" if names else ""), _LINE_CHARS)
    unit = node.about.get("unit")
    if node.text is None and unit is not None:
        return f"unit {clean(unit)}" + (f"  {_quoted(view.contents[unit])}" if view.contents.get(unit) else "")
    return _quoted(node.text or "")


def _below(children: Iterator[list[tuple[str, str]]]) -> Iterator[_Line]:
    """What belongs to a question, under it."""
    listed = list(children)
    for number, pieces in enumerate(listed, start=1):
        is_last = number == len(listed)
        hang = "  " + ("   " if is_last else "│  ") + " " * 9
        yield _Line(pieces, first="  " + ("└─ " if is_last else "├─ "), hang=hang)


def _left_over(view: GraphView, around: Mapping[str, Sequence[object]], limit: int) -> Iterator[_Line]:
    alone = [view.words(node) for node in view.nodes if node.type == "entity" and not around[node.id]]
    if alone:
        more = f" and {len(alone) - _OF_EACH_KIND_MAX} more" if len(alone) > _OF_EACH_KIND_MAX else ""
        named = ", ".join(short(name) for name in alone[:_OF_EACH_KIND_MAX])
        yield _Line([])
        yield _Line([(f"No question mentions: {named}{more}", "")])
    left = len(view.queries) - limit
    if left > 0:
        yield _Line([])
        yield _Line([(f"… {counted(left, 'question')} more, colder ones (--limit {limit + left})", "dim")])


def bar(rank: float) -> str:
    """A rank from 0 to 1 as a bar."""
    cells = round(max(0.0, min(1.0, rank)) * _BAR_CELLS)
    return "█" * cells + "░" * (_BAR_CELLS - cells)


def _quoted(text: str) -> str:
    return f'"{short(text, _LINE_CHARS)}"'


def _times(repeat: float) -> str:
    return "asked once" if round(repeat, 1) == 1 else f"asked {round(repeat, 1):g} times"


def _signed(feedback: float) -> str:
    rounded = round(feedback, 2)
    return f"{rounded:+g}" if rounded else "0"


@value
class _Line:
    """Pieces of text with their styles; where a terminal is too narrow the rest goes below, indented by `hang`."""

    pieces: Sequence[tuple[str, str]]
    first: str = ""
    hang: str = ""

    @property
    def plain(self) -> str:
        return self.first + "".join(text for text, _ in self.pieces)


def _drawn(lines: Sequence[_Line]) -> str:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    with console.capture() as capture:
        for line in lines:
            begin = line.first
            room = max(_TEXT_COLUMNS_MIN, console.width - len(line.hang or line.first))
            for row in Text.assemble(*line.pieces).wrap(console, room, overflow="fold") or [Text()]:
                console.print(Text.assemble((begin, "dim"), row), soft_wrap=True)
                begin = line.hang
    return capture.get().rstrip("\n")


def empty(view: GraphView, sessions: Sequence[str]) -> str:
    """How to begin."""
    if view.session is not None:
        others = [session for session in sessions if session != view.session]
        said = f"Session {view.session} of {view.agent} has no questions yet."
        how = f'Ask one: mnemarch graph ask "how does checkout retry?" --session {view.session}'
    else:
        others = list(sessions)
        said = f"{view.agent} has no questions of its own yet: they come from its sessions, when these end."
        how = "Ask one in a session (mnemarch graph ask TEXT --session ID), then: mnemarch graph end --session ID"
    under_way = f"Under way: {short(', '.join(others))} (mnemarch graph --session {others[0]})" if others else ""
    return clean("\n".join(part for part in (said, how, under_way) if part))


def dot(view: GraphView) -> str:
    """A graph for Graphviz."""
    names = {node.id: f"n{number}" for number, node in enumerate(view.nodes)}
    lines = ["graph mnemarch {", f"  label={_dot_text(f'{view.title}, {size(view.whole)}')};", "  overlap=false;"]
    for node in view.nodes:
        label, tip = short(view.words(node), _LABEL_CHARS), f"{node.id} {short(view.words(node), _LINE_CHARS)}"
        shape = _DOT_SHAPE[node.type]
        lines.append(f"  {names[node.id]} [label={_dot_text(label)}, tooltip={_dot_text(tip)}, shape={shape}];")
    for edge in view.edges:
        if edge.from_ in names and edge.to in names:
            facts = f'label="{edge.type} {edge.weight:.2f}", style={_DOT_STYLE.get(edge.type, "solid")}'
            lines.append(f"  {names[edge.from_]} -- {names[edge.to]} [{facts}];")
    return "\n".join([*lines, "}"])


def _dot_text(text: str) -> str:
    return '"' + clean(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'


# What is done with it


def asked(node: Node, known: bool, similar: Sequence[GraphHit]) -> str:
    first = f"{'known' if known else 'new':<6}{short_id(node.id)}  {_quoted(node.text or '')}"
    lines = [first, f"      {_times(node.weights.repeat)}, feedback {_signed(node.weights.feedback)}"]
    return "\n".join([*lines, "", hits(similar)] if similar else lines)


def hits(given: Sequence[GraphHit], text: str = "") -> str:
    rows = [(f"{hit.score:.2f}", f"{hit.sim:.2f}", hit.from_, short_id(hit.id), quoted(hit.text)) for hit in given]
    return table(("score", "alike", "in", "id", "question"), rows, f"No question is like {quoted(text)}.")


def sessions(given: Sequence[tuple[str, datetime, GraphStats]]) -> str:
    rows = [(session, when(begun), age(begun), size(whole)) for session, begun, whole in given]
    begin = "No session is under way. Begin: mnemarch graph ask TEXT --session ID"
    return table(("session", "begun", "", "holds"), rows, begin)


def ended(given: Finalized, rules: PromotionConfig | None) -> str:
    """What a session left; without `rules` nothing was to be promoted."""
    lines = [f"ended     session {clean(given.session_id)}"]
    for one in given.promoted:
        how = "known already" if one.merged else "new"
        lines.append(f"promoted  {short_id(one.agent_node)}  {_quoted(one.text)} ({how})")
    if rules is not None and not given.promoted:
        lines.append(
            f"promoted  nothing: no question had rank {rules.min_rank:g}, {rules.min_degree} edges and no bad feedback"
        )
    lines += [f"lowered   {short_id(id)}, which was found wanting" for id in given.lowered]
    if given.left_out:
        lines.append(f"left out  {counted(len(given.left_out), 'node')}: the agent's graph is full of protected ones")
    lines.append(f"kept in   {clean(given.checkpoint)}" if given.checkpoint else "kept in   no checkpoint")
    return "\n".join(lines)

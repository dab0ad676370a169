"""Decisions in words and pictures: a proposal, a list, a history, an impact as a tree or a graph."""

from __future__ import annotations

from mnemon.interfaces.show import age, clean, quoted, short, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mnemon.model.decision import Decision, DecisionProposal, Impact, Loaded, Relation
    from mnemon.model.unit import Unit

FORMATS = ("tree", "mermaid", "dot", "json")
_LABEL_CHARS = 60


def decision(given: Decision) -> str:
    """One version, with its reason."""
    unit = given.unit
    state = (
        "in force" if given.is_active else f"superseded by {unit.superseded_by}" if unit.superseded_by else unit.status
    )
    lines = [
        clean(given.text),
        "",
        f"{given.id}  version {given.version}, {state}",
        f"{given.strength} · {clean(given.domain)} · {unit.level} · decided by {unit.author} {age(unit.occurred_at)}",
        f"because   {given.reason.type}: {clean(given.reason.summary)}",
    ]
    if given.reason.tradeoff:
        lines.append(f"at a cost {clean(given.reason.tradeoff)}")
    return "\n".join([*lines, *(f"evidence  {each}" for each in given.evidence)])


def decisions(given: Sequence[Decision]) -> str:
    rows = [(one.id, one.strength, clean(one.domain), one.version, quoted(one.text)) for one in given]
    return table(("id", "strength", "domain", "version", "decision"), rows, "Nothing is decided here.")


def history(given: Sequence[Decision]) -> str:
    rows = [
        (
            one.version,
            "in force" if one.is_active else "",
            age(one.unit.occurred_at),
            one.unit.author,
            one.id,
            quoted(one.text),
        )
        for one in given
    ]
    return table(("version", "", "when", "who", "id", "decision"), rows, "No versions.")


def loaded(given: Sequence[Loaded]) -> str:
    rows = [(one.tier, one.unit.kind, one.unit.id, quoted(one.unit.content)) for one in given]
    return table(("tier", "kind", "id", "content"), rows, "Nothing to load here.")


def relations(given: Sequence[Relation]) -> str:
    rows = [(one.source, one.type, one.target) for one in given]
    return table(("id", "relation", "to"), rows, "No relations.")


def proposal(given: DecisionProposal, texts: Mapping[str, str]) -> str:
    """What would be decided, and what it would break."""
    lines = [
        f"{'revises ' + given.base.id if given.base else 'new'}: {quoted(given.text)}",
        f"{given.strength} · {clean(given.domain)} · {given.level}",
        f"because {given.reason.type}: {clean(given.reason.summary)}",
        f"guardian: {given.guardian.type}",
        *(f"  {clean(reason)}" for reason in given.guardian.reasons),
    ]
    if given.blast_radius.nodes:
        lines += ["reaches:", *tree_lines(given.blast_radius, texts)]
    return "\n".join(lines)


def tree(root: str, given: Impact, texts: Mapping[str, str]) -> str:
    head = f"{_label(texts.get(root, root))}  {root}"
    if not given.nodes:
        return f"{head}\nNothing depends on it, as far as relations say."
    lines = [head, *tree_lines(given, texts)]
    return "\n".join([*lines, *([f"(cut: {given.cut})"] if given.cut else [])])


def tree_lines(given: Impact, texts: Mapping[str, str]) -> list[str]:
    """Each node under the one that leads to it."""
    below: dict[str, list[tuple[str, str]]] = {}
    for node in given.nodes:
        below.setdefault(node.path[-2], []).append((node.id, str(node.relation)))
    lines: list[str] = []
    # A list of what is still to be drawn, not recursion: a chain of decisions can be longer than Python's stack.
    waiting = _under(below, given.nodes[0].path[0], "") if given.nodes else []
    while waiting:
        node_id, relation, indent, is_last = waiting.pop(0)
        lines.append(
            f"{indent}{'└─' if is_last else '├─'} {relation}: {_label(texts.get(node_id, node_id))}  {node_id}"
        )
        waiting[:0] = _under(below, node_id, indent + ("   " if is_last else "│  "))
    return lines


def _under(below: Mapping[str, list[tuple[str, str]]], parent: str, indent: str) -> list[tuple[str, str, str, bool]]:
    children = below.get(parent, [])
    return [(*child, indent, number == len(children) - 1) for number, child in enumerate(children)]


def _label(text: str) -> str:
    return short(text, _LABEL_CHARS)


def mermaid(root: str, given: Impact, texts: Mapping[str, str]) -> str:
    """A flowchart for Markdown pages."""
    names = _names(root, given)
    lines = ["flowchart TD"]
    for each, name in names.items():
        label = _label(texts.get(each, each)).replace("&", "&amp;").replace('"', "&quot;")
        lines.append(f'  {name}["{label.replace("<", "&lt;").replace(">", "&gt;")}"]')
    lines += [f"  {names[node.path[-2]]} -->|{node.relation}| {names[node.id]}" for node in given.nodes]
    return "\n".join(lines)


def dot(root: str, given: Impact, texts: Mapping[str, str]) -> str:
    """A graph for Graphviz."""
    names = _names(root, given)
    lines = ["digraph impact {", "  rankdir=LR;", "  node [shape=box];"]
    for each, name in names.items():
        label = _label(texts.get(each, each)).replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'  {name} [label="{label}"];')
    lines += [f'  {names[node.path[-2]]} -> {names[node.id]} [label="{node.relation}"];' for node in given.nodes]
    return "\n".join([*lines, "}"])


def _names(root: str, given: Impact) -> dict[str, str]:
    return {each: f"n{number}" for number, each in enumerate([root, *(node.id for node in given.nodes)])}


def broken(given: Sequence[Unit]) -> str:
    rows = [(one.id, one.attributes.get("target"), quoted(one.content)) for one in given]
    return table(("id", "leads to", "hint"), rows, "Every anchor leads somewhere.")

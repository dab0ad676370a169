"""Decisions in words and pictures: a proposal, a list, a history, an impact as a tree or a graph."""

from __future__ import annotations

from mnemarch.errors import NotFound
from mnemarch.interfaces.show import age, clean, quoted, short, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from mnemarch.decisions import Decisions
    from mnemarch.interfaces.command import Call
    from mnemarch.model.decision import (
        Decision,
        DecisionProposal,
        GuardianVerdict,
        Impact,
        ImpactNode,
        Loaded,
        Relation,
    )
    from mnemarch.model.unit import Unit

FORMATS = ("tree", "mermaid", "dot", "json")
_LABEL_CHARS = 60


def decision(given: Decision) -> str:
    """One version, with its reason."""
    unit = given.unit
    replaced = f"superseded by {unit.superseded_by}" if unit.superseded_by else unit.status
    state = "in force" if given.is_active else replaced
    lines = [
        clean(given.text),
        "",
        f"{given.id}  version {given.version}, {state}",
        f"{given.strength} · {clean(given.domain)} · {unit.level} · decided by {unit.author} {age(unit.occurred_at)}"
        + (f", asked for by {clean(unit.attributes['requested_by'])}" if "requested_by" in unit.attributes else ""),
        f"because   {given.reason.type}: {clean(given.reason.summary)}",
    ]
    if given.reason.tradeoff:
        lines.append(f"at a cost {clean(given.reason.tradeoff)}")
    if given.override:
        lines.append(f"override  {clean(given.override)}")
    return "\n".join([*lines, *(f"evidence  {each}" for each in given.evidence)])


def _in_force(listed: Sequence[Decision], call: Call) -> str:
    """A page of decisions; to who named no domain also the others in which something is in force."""
    rows = [(one.id, one.strength, clean(one.domain), one.version, quoted(one.text)) for one in listed]
    page = table(("id", "strength", "domain", "version", "decision"), rows, "Nothing is decided here.")
    named = "domain" in call.given
    others = [] if named else [each for each in call.seat.decisions.domains() if each != "global"]
    more = f"\n\nDecided in other domains (--domain NAME): {', '.join(map(clean, others))}"
    return page + (more if others else "")


def _history(versions: Sequence[Decision], _: Call) -> str:
    rows = [
        (
            one.version,
            "in force" if one.is_active else "",
            age(one.unit.occurred_at),
            one.unit.author,
            one.id,
            quoted(one.text),
        )
        for one in versions
    ]
    return table(("version", "", "when", "who", "id", "decision"), rows, "No versions.")


def _loaded(given: Sequence[Loaded], _: Call) -> str:
    rows = [(one.tier, one.unit.kind, one.unit.id, quoted(one.unit.content)) for one in given]
    return table(("tier", "kind", "id", "content"), rows, "Nothing to load here.")


def _relations(given: Sequence[Relation], _: Call) -> str:
    rows = [(one.source, one.type, one.target) for one in given]
    return table(("id", "relation", "to"), rows, "No relations.")


def proposal(given: DecisionProposal, known: Mapping[str, Decision]) -> str:
    """What would be decided, and what it would break."""
    lines = [
        f"{'revises ' + given.base.id if given.base else 'new'}: {quoted(given.text)}",
        f"{given.strength} · {clean(given.domain)} · {given.level}",
        f"because {given.reason.type}: {clean(given.reason.summary)}",
        guardian(given.guardian),
    ]
    opposed = [f"  {one.strength} {one.id} version {one.version}  {quoted(one.text)}" for one in given.conflicts]
    reaches = tree_lines(given.blast_radius, known)
    sections = (["conflicts with:", *opposed] if opposed else [], ["reaches:", *reaches] if reaches else [])
    return "\n".join([*lines, *(line for section in sections for line in section)])


def guardian(given: GuardianVerdict) -> str:
    return "\n".join([f"guardian: {given.type}", *(f"  {clean(reason)}" for reason in given.reasons)])


def known_decisions(desk: Decisions, impact: Impact) -> dict[str, Decision]:
    """The decisions of an impact as they are in force, by their roots."""
    return {node.id: desk.in_force(node.id) for node in impact.nodes}


def _impact(impact: Impact, call: Call) -> str:
    desk, format = call.seat.decisions, call.options.format
    if format == "json":
        from mnemarch.interfaces.json_form import json_text

        return json_text(impact)
    head = _head(desk, call.options.decision_id)
    drawn = {"mermaid": mermaid, "dot": dot}.get(format, tree)
    return drawn(head.root_id, impact, known_decisions(desk, impact) | {head.root_id: head})


def _head(desk: Decisions, decision_id: str) -> Decision:
    """What is in force of a decision; of one that was taken back, the version that was named."""
    try:
        return desk.in_force(decision_id)
    except NotFound:
        return desk.get(decision_id)


def tree(root: str, given: Impact, known: Mapping[str, Decision]) -> str:
    lines = tree_lines(given, known) or ["Nothing depends on it, as far as relations say."]
    return "\n".join([_named(root, known), *lines])


def tree_lines(given: Impact, known: Mapping[str, Decision]) -> list[str]:
    """Each node under the one that leads to it; the arrow points as the relation reads."""
    below: dict[str, list[ImpactNode]] = {}
    for node in given.nodes:
        below.setdefault(node.path[-2], []).append(node)
    lines: list[str] = []
    # A list of what is still to be drawn, not recursion: a chain of decisions can be longer than Python's stack.
    waiting = _under(below, given.nodes[0].path[0], "") if given.nodes else []
    while waiting:
        node, indent, is_last = waiting.pop(0)
        arrow = "→" if node.target == node.id else "←"
        lines.append(f"{indent}{'└─' if is_last else '├─'} {node.relation} {arrow} {_named(node.id, known)}")
        waiting[:0] = _under(below, node.id, indent + ("   " if is_last else "│  "))
    return [*lines, *([f"(cut: {given.cut})"] if given.cut else [])]


def _under(below: Mapping[str, list[ImpactNode]], parent: str, indent: str) -> list[tuple[ImpactNode, str, bool]]:
    children = below.get(parent, [])
    return [(child, indent, number == len(children) - 1) for number, child in enumerate(children)]


def _named(root: str, known: Mapping[str, Decision]) -> str:
    """A decision of an impact, with the id of the version that is in force."""
    return f"{_label_of(root, known)}  {known[root].id if root in known else root}"


def _label_of(root: str, known: Mapping[str, Decision]) -> str:
    return _label(known[root].text if root in known else root)


def _label(text: str) -> str:
    return short(text, _LABEL_CHARS)


def mermaid(root: str, given: Impact, known: Mapping[str, Decision]) -> str:
    """A flowchart for Markdown pages."""
    names = _names(root, given)
    lines = ["flowchart TD"]
    for each, name in names.items():
        label = _label_of(each, known).replace("&", "&amp;").replace('"', "&quot;")
        lines.append(f'  {name}["{label.replace("<", "&lt;").replace(">", "&gt;")}"]')
    lines += [f"  {names[node.source]} -->|{node.relation}| {names[node.target]}" for node in given.nodes]
    return "\n".join([*lines, *([f'  cut["cut: {given.cut}"]'] if given.cut else [])])


def dot(root: str, given: Impact, known: Mapping[str, Decision]) -> str:
    """A graph for Graphviz."""
    names = _names(root, given)
    lines = ["digraph impact {", "  rankdir=LR;", "  node [shape=box];"]
    for each, name in names.items():
        label = _label_of(each, known).replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'  {name} [label="{label}"];')
    lines += [f'  {names[node.source]} -> {names[node.target]} [label="{node.relation}"];' for node in given.nodes]
    return "\n".join([*lines, *([f'  label="cut: {given.cut}";'] if given.cut else []), "}"])


def _names(root: str, given: Impact) -> dict[str, str]:
    return {each: f"n{number}" for number, each in enumerate([root, *(node.id for node in given.nodes)])}


def _broken(given: Sequence[Unit], _: Call) -> str:
    rows = [(one.id, one.attributes.get("target"), quoted(one.content)) for one in given]
    return table(("id", "leads to", "hint"), rows, "Every anchor leads somewhere.")


# By verb, as in `text`.
TEXTS: dict[str, Callable[[Any, Call], str]] = {
    "decisions.active": _in_force,
    "decisions.get": lambda version, _: decision(version),
    "decisions.history": _history,
    "decisions.load": _loaded,
    "decisions.relate": _relations,
    "decisions.unrelate": _relations,
    "decisions.relations": _relations,
    "decisions.add_evidence": lambda unit, _: f"kept  {unit.id}",
    "decisions.add_anchor": lambda unit, _: f"anchored  {unit.id}",
    "decisions.add_policy": lambda unit, _: f"laid down  {unit.id}  {unit.level}",
    "decisions.broken_anchors": _broken,
    "decisions.impact": _impact,
}

"""`decide`, which shows a proposal before it commits it; decision records in and out; the text for decisions."""

from __future__ import annotations

from mnemarch.errors import InvalidInput, NotFound
from mnemarch.interfaces.cli import text_or_stdin
from mnemarch.interfaces.command import DONE, REFUSED, Answer, Call, Command, is_interactive, performed, shaped
from mnemarch.interfaces.text import Counter, age, clean, is_confirmed, quoted, short, table, with_short_ids
from mnemarch.model.outcome import Refused
from mnemarch.model.stamps import short_id
from mnemarch.verbs import OVERRIDE
from mnemarch.verbs.types import FLAG, ID, LEVEL, PATH, STRENGTH, TEXT, WORDS, Parameter, Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from mnemarch.decisions import Decisions
    from mnemarch.interfaces.adr import AdrOutcome
    from mnemarch.model.decision import (
        Decision,
        DecisionProposal,
        Impact,
        ImpactNode,
        Loaded,
        Relation,
    )
    from mnemarch.model.unit import Unit

_TYPES = ("consistency", "risk", "security", "performance", "ux", "maintainability", "other")
_LABEL_CHARS = 60
_DECIDE = (
    Parameter("text", TEXT, "what is decided", None, "", metavar="TEXT|-"),
    Parameter("reason", TEXT, "why, in a sentence or two", None, metavar="SUMMARY"),
    Parameter("type", WORDS, f"the type of the reason: {', '.join(_TYPES)}", None, metavar="TYPE"),
    Parameter("tradeoff", WORDS, "what it costs", None),
    Parameter("evidence", ID, "the id of evidence", (), many=True, metavar="UNIT"),
    Parameter("snapshot", WORDS, "new evidence, word for word", (), many=True),
    Parameter("strength", STRENGTH, "axis, lock or normal (default; a revision keeps its own)", None),
    Parameter("domain", WORDS, "what it is about (default: global; a revision keeps its own)", None, metavar="NAME"),
    Parameter("level", LEVEL, "project (default), task, worktree or org", None),
    Parameter("revises", ID, "the version that you saw; a conflict if another one is in force", None),
    Parameter("override", WORDS, "commit although the guardian blocks it", None, metavar="WHY"),
    Parameter("dry_run", FLAG, "show the proposal and commit nothing", False),
    Parameter("yes", FLAG, "commit without asking", False),
)


def _decide(call: Call) -> Answer:
    """Commit a proposal. At a terminal, show it first and store nothing before a yes."""
    options = call.options
    if options.dry_run:
        call.begins_memory = False
        call.answer_from_nothing()
    if not options.type or not options.reason:
        more = ", and the reason a type" if options.reason else ""
        raise InvalidInput(
            f"A decision needs a reason{more} (R12).", hint='Add --type risk --reason "why, in a sentence".'
        )
    desk = call.seat.decisions
    proposal = desk.propose(
        text_or_stdin(options.text),
        reason={"type": options.type, "summary": options.reason, "tradeoff": options.tradeoff},
        evidence=options.evidence,
        snapshots=list(options.snapshot),
        strength=options.strength,
        domain=options.domain,
        level=options.level,
        revises=options.revises,
    )
    known = _known_decisions(desk, proposal.blast_radius)
    text = _proposal_text(proposal, known, options.override)
    is_refused = options.override is None and _takes_a_reason(proposal)
    if options.dry_run:
        return Answer(data=proposal, text=lambda: text, exit_code=REFUSED if is_refused else DONE)
    if is_interactive() and not options.yes and not call.places.json:
        print(text, flush=True)
        if not is_refused and not is_confirmed("Commit it?"):
            return Answer(data=proposal, text=lambda: "Nothing was committed.", exit_code=REFUSED)
    decided = desk.commit(proposal, override=options.override)
    if isinstance(decided, Refused):
        reason = decided.reason
        return Answer(data=decided, text=lambda: f"not decided: {with_short_ids(reason)}", exit_code=REFUSED)
    return Answer(data=decided, text=lambda: f"decided\n\n{_decision_text(decided)}")


def _takes_a_reason(proposal: DecisionProposal) -> bool:
    """Whether the commit needs a person's reason: the guardian blocks it, or it opposes a binding decision."""
    related = {proposal.base.id} if proposal.base else set()
    return proposal.guardian.type == "BLOCK" or any(
        one.id not in (*proposal.guardian.evidence, *related) for one in proposal.conflicts
    )


def _import(call: Call) -> Answer:
    from mnemarch.interfaces import adr

    seat = call.seat  # This may ask the person's name, before the progress line is drawn.
    with Counter("importing", "records") as progress:
        outcomes = adr.import_folder(seat, call.options.folder, progress, override=call.options.override)
    return _records(outcomes, "The folder has no decision records.")


def _export(call: Call) -> Answer:
    from mnemarch.interfaces import adr

    return _records(adr.export_folder(call.seat, call.options.folder), "Nothing is decided here.")


def _records(outcomes: list[AdrOutcome], none: str) -> Answer:
    rows = [(one.name, short_id(one.decision_id or ""), one.note) for one in outcomes]
    return Answer(data=outcomes, text=lambda: table(("file", "id", "what"), rows, none))


def related(verb: Verb, call: Call) -> Answer:
    performed(verb, call)
    return shaped(verb, call, call.seat.decisions.relations(call.options.source_id))


_FOLDER = Parameter("folder", PATH, "a folder of Markdown files", metavar="FOLDER")
COMMANDS = {
    "decide": Command(_decide, _DECIDE, begins_memory=True),
    "decisions import": Command(_import, (_FOLDER, OVERRIDE), begins_memory=True),
    "decisions export": Command(_export, (_FOLDER,)),
}


# Text


def _decision_text(decision: Decision) -> str:
    """One version, with its reason."""
    unit = decision.unit
    replaced = f"superseded by {short_id(unit.superseded_by)}" if unit.superseded_by else unit.status
    state = "in force" if decision.is_active else replaced
    decided = f"decided by {unit.author} {age(unit.occurred_at)}"
    if "requested_by" in unit.attributes:
        decided += f", asked for by {clean(unit.attributes['requested_by'])}"
    lines = [
        clean(decision.text),
        "",
        f"{decision.id}  version {decision.version}, {state}",
        f"{decision.strength} · {clean(decision.domain)} · {unit.level} · {decided}",
        f"because   {decision.reason.type}: {clean(decision.reason.summary)}",
    ]
    if decision.reason.tradeoff:
        lines.append(f"at a cost {clean(decision.reason.tradeoff)}")
    if decision.override:
        lines.append(f"override  {clean(decision.override)}")
    return "\n".join([*lines, *(f"evidence  {short_id(each)}" for each in decision.evidence)])


def _in_force(listed: Sequence[Decision], call: Call) -> str:
    """A page of decisions. Without --domain, it also lists the other domains with decisions in force."""
    rows = [(short_id(one.id), one.strength, clean(one.domain), one.version, quoted(one.text)) for one in listed]
    page = table(("id", "strength", "domain", "version", "decision"), rows, "Nothing is decided here.")
    named = "domain" in call.arguments
    others = [] if named else [each for each in call.seat.decisions.domains() if each != "global"]
    more = f"\n\nDecided in other domains (--domain NAME): {', '.join(map(clean, others))}"
    return page + (more if others else "")


def _history(versions: Sequence[Decision], _: Call) -> str:
    rows = []
    for one in versions:
        made = "in force" if one.is_active else "", age(one.unit.occurred_at), one.unit.author
        rows.append((one.version, *made, short_id(one.id), quoted(one.text)))
    return table(("version", "", "when", "who", "id", "decision"), rows, "No versions.")


def _loaded(loaded: Sequence[Loaded], _: Call) -> str:
    rows = [(one.tier, one.unit.kind, short_id(one.unit.id), quoted(one.unit.content)) for one in loaded]
    return table(("tier", "kind", "id", "content"), rows, "No decision is in force here.")


def _relations(relations: Sequence[Relation], _: Call) -> str:
    rows = [(short_id(one.source), one.type, short_id(one.target)) for one in relations]
    return table(("id", "relation", "to"), rows, "No relations.")


def _proposal_text(proposal: DecisionProposal, known: Mapping[str, Decision], override: str | None) -> str:
    """The proposal, the verdict on it, the decisions it conflicts with, and those it reaches."""
    lines = [
        f"{'revises ' + short_id(proposal.base.id) if proposal.base else 'new'}: {quoted(proposal.text)}",
        f"{proposal.strength} · {clean(proposal.domain)} · {proposal.level}",
        f"because {proposal.reason.type}: {clean(proposal.reason.summary)}",
        *_verdict_lines(proposal, override),
    ]
    opposed = [f"  {one.strength} {short_id(one.id)}  {quoted(one.text)}" for one in proposal.conflicts]
    reaches = _tree_lines(proposal.blast_radius, known)
    sections = (["conflicts with:", *opposed] if opposed else [], ["reaches:", *reaches] if reaches else [])
    return "\n".join([*lines, *(line for section in sections for line in section)])


def _verdict_lines(proposal: DecisionProposal, override: str | None) -> list[str]:
    """What a commit would answer. The guardian judges by relations alone, so it may allow what opposes a decision."""
    verdict, said = proposal.guardian, f"guardian: {proposal.guardian.type}"
    if verdict.type != "BLOCK" and _takes_a_reason(proposal):
        said = "BLOCK: it opposes what is in force. Revise that, or, as a person, add --override WHY."
        said = said if override is None else "It opposes what is in force; the conflict stays open."
    return [said, *(f"  {clean(reason)}" for reason in verdict.reasons)]


def _known_decisions(desk: Decisions, impact: Impact) -> dict[str, Decision]:
    """The versions in force of the decisions of an impact, by their root ids."""
    return {node.id: desk.in_force(node.id) for node in impact.nodes}


def _impact(impact: Impact, call: Call) -> str:
    desk = call.seat.decisions
    head = _head(desk, call.options.decision_id)
    known = _known_decisions(desk, impact) | {head.root_id: head}
    lines = _tree_lines(impact, known) or ["No stated relation leads to another decision."]
    return "\n".join([_named(head.root_id, known), *lines])


def _head(desk: Decisions, decision_id: str) -> Decision:
    """The version in force of a decision; the named version if none is in force."""
    try:
        return desk.in_force(decision_id)
    except NotFound:
        return desk.get(decision_id)


def _tree_lines(impact: Impact, known: Mapping[str, Decision]) -> list[str]:
    """The impact as a tree: each node below the node that leads to it, with an arrow in the relation's direction."""
    below: dict[str, list[ImpactNode]] = {}
    for node in impact.nodes:
        below.setdefault(node.path[-2], []).append(node)
    lines: list[str] = []
    # A list of waiting nodes instead of recursion: a chain of decisions can be longer than Python's stack.
    waiting = _under(below, impact.nodes[0].path[0], "") if impact.nodes else []
    while waiting:
        node, indent, is_last = waiting.pop(0)
        arrow = "→" if node.target == node.id else "←"
        lines.append(f"{indent}{'└─' if is_last else '├─'} {node.relation} {arrow} {_named(node.id, known)}")
        waiting[:0] = _under(below, node.id, indent + ("   " if is_last else "│  "))
    return [*lines, *([f"(cut: {impact.cut})"] if impact.cut else [])]


def _under(below: Mapping[str, list[ImpactNode]], parent: str, indent: str) -> list[tuple[ImpactNode, str, bool]]:
    children = below.get(parent, [])
    return [(child, indent, number == len(children) - 1) for number, child in enumerate(children)]


def _named(root: str, known: Mapping[str, Decision]) -> str:
    """The beginning of a decision's text, with the id of its version in force."""
    return f"{short(known[root].text, _LABEL_CHARS)}  {short_id(known[root].id)}" if root in known else short_id(root)


def _broken(anchors: Sequence[Unit], _: Call) -> str:
    rows = [(short_id(one.id), short_id(one.attributes.get("target", "")), quoted(one.content)) for one in anchors]
    return table(("id", "leads to", "hint"), rows, "Every anchor has its target.")


# Keyed as in `text`.
TEXTS: dict[str, Callable[[Any, Call], str]] = {
    "decisions.active": _in_force,
    "decisions.get": lambda version, _: _decision_text(version),
    "decisions.history": _history,
    "decisions.load": _loaded,
    "decisions.relate": _relations,
    "decisions.unrelate": _relations,
    "decisions.relations": _relations,
    "decisions.add_evidence": lambda unit, _: f"kept  {short_id(unit.id)}",
    "decisions.add_anchor": lambda unit, _: f"anchored  {short_id(unit.id)}",
    "decisions.add_policy": lambda unit, _: f"added       {short_id(unit.id)}  {unit.level}",
    "decisions.broken_anchors": _broken,
    "decisions.impact": _impact,
}

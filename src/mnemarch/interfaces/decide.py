"""`decide`, which asks a person for what is missing; import and export of decision records; the text for decisions."""

from __future__ import annotations

import sys

from mnemarch.errors import InvalidInput, MnemarchError, NotFound
from mnemarch.interfaces.command import DONE, INTERRUPTED, REFUSED, Answer, Call, Command, at_terminal
from mnemarch.interfaces.grammar import text_or_stdin
from mnemarch.interfaces.show import Counter, age, clean, quoted, short, table, with_short_ids
from mnemarch.model.outcome import Refused
from mnemarch.model.stamps import short_id
from mnemarch.verbs import OVERRIDE
from mnemarch.verbs.types import FLAG, ID, LEVEL, PATH, STRENGTH, TEXT, WORDS, Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any

    from mnemarch.decisions import Decisions
    from mnemarch.interfaces.adr import AdrOutcome
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

_TYPES = ("consistency", "risk", "security", "performance", "ux", "maintainability", "other")
_LABEL_CHARS = 60
_DECIDE = (
    Parameter("text", TEXT, "what is decided; - reads standard input", None, "", metavar="TEXT|-"),
    Parameter("reason", TEXT, "why, in a sentence or two", None, metavar="SUMMARY"),
    Parameter("type", WORDS, f"of reason: {', '.join(_TYPES)}", None, metavar="TYPE"),
    Parameter("tradeoff", WORDS, "what it costs", None),
    Parameter("evidence", ID, "it rests on; repeatable", (), many=True, metavar="UNIT"),
    Parameter("snapshot", WORDS, "new evidence, word for word; repeatable", (), many=True),
    Parameter("strength", STRENGTH, "axis, lock or normal (default; a revision keeps its own)", None),
    Parameter("domain", WORDS, "what it is about (default: global; a revision keeps its own)", None, metavar="NAME"),
    Parameter("level", LEVEL, "project (default), task, worktree or org", None),
    Parameter("revises", ID, "the version that you saw and this is to follow; a conflict if it moved on", None),
    Parameter("override", WORDS, "commit although the guardian blocks it", None, metavar="WHY"),
    Parameter("dry_run", FLAG, "show the proposal and commit nothing", False),
    Parameter("yes", FLAG, "commit without asking", False),
)


class _LeftError(Exception):
    """Whoever was asked went away: at the end of what they had to say, or by Ctrl-C."""

    def __init__(self, exit_code: int) -> None:
        self.exit_code = exit_code


class _Questions:
    """Asks whoever sits at the terminal, and keeps the answers: what was typed is not typed twice."""

    def __init__(self) -> None:
        self._flags: list[str] = []
        self._text: list[str] = []

    def asked(self, question: str, flag: str = "", one_of: Collection[str] = ()) -> str:
        """The answer, kept as the value of an option, or as what is decided if no option is named.

        What is none of `one_of` is asked for again at once, not refused after the last question.
        """
        answer = _answered(question)
        while one_of and answer not in one_of:
            answer = _answered(f"{answer!r} is none of these. {question}")
        if answer and flag:
            self._flags += [f"{flag}={answer}"] if answer.startswith("-") else [flag, answer]
        elif answer:
            self._text = ["--", answer] if answer.startswith("-") else [answer]
        return answer

    def again(self) -> str:
        """The command line that says it all at once; nothing if nothing was typed."""
        from shlex import join

        if not self._flags and not self._text:
            return ""
        return f"\nTo go on from here: {join(['mnemarch', *sys.argv[1:], *self._flags, *self._text])}"


def _answered(question: str) -> str:
    try:
        return input(question).strip()
    except (EOFError, KeyboardInterrupt) as left:
        print()
        raise _LeftError(REFUSED if isinstance(left, EOFError) else INTERRUPTED) from None


def _decide(call: Call) -> Answer:
    options = call.options
    if options.dry_run:
        call.begins_memory = False
        call.answer_from_nothing()
    desk = call.seat.decisions
    if not (at_terminal(sys.stdin) and at_terminal(sys.stdout)) or call.places.json:
        return _settled(desk, options, _proposed(desk, options, None), None)
    _check_first(desk, options, is_agent=call.seat.actor.kind == "agent")
    questions = _Questions()
    try:
        return _settled(desk, options, _proposed(desk, options, questions), questions)
    except _LeftError as left:
        return _let_go(None, questions, left.exit_code)
    except MnemarchError:
        if typed := questions.again():
            print(typed, file=sys.stderr)
        raise


def _check_first(desk: Decisions, options: Any, *, is_agent: bool) -> None:
    """Tell what is wrong with the options, and who may not commit it, before anybody is asked for the rest."""
    snapshots = options.snapshot or ([] if options.evidence else ["?"])
    draft = _proposal(desk, options, "?", options.type or "other", options.reason or "?", snapshots)
    if not options.dry_run and not is_agent:  # An agent's becomes a request.
        desk.check(draft)
    if draft.guardian.type == "BLOCK":
        print(_guardian_text(draft.guardian))


def _settled(desk: Decisions, options: Any, proposal: DecisionProposal, questions: _Questions | None) -> Answer:
    """What becomes of a proposal: shown, committed, or let go of; until it is committed nothing is stored."""
    known = _known_decisions(desk, proposal.blast_radius)
    if options.dry_run:
        code = REFUSED if _takes_a_reason(proposal) else DONE
        return Answer(data=proposal, text=lambda: _proposal_text(proposal, known), exit_code=code)
    override = options.override
    if questions is not None and not options.yes:
        print(_proposal_text(proposal, known))
        if _takes_a_reason(proposal) and not override:
            override = questions.asked("Why commit it all the same? (nothing: don't) ", "--override")
            if not override:
                return _let_go(proposal, questions)
        elif _answered("Commit it? [y/N] ").lower() not in {"y", "yes"}:
            return _let_go(proposal, questions)
    decided = desk.commit(proposal, override=override)
    if isinstance(decided, Refused):
        reason = decided.reason
        return Answer(data=decided, text=lambda: f"not decided: {with_short_ids(reason)}", exit_code=REFUSED)
    return Answer(data=decided, text=lambda: f"decided\n\n{_decision_text(decided)}")


def _takes_a_reason(proposal: DecisionProposal) -> bool:
    """Whether only a person who says why commits it: the guardian blocks it, or it opposes what binds."""
    related = {proposal.base.id} if proposal.base else set()
    return proposal.guardian.type == "BLOCK" or any(
        one.id not in (*proposal.guardian.evidence, *related) for one in proposal.conflicts
    )


def _let_go(proposal: DecisionProposal | None, questions: _Questions, exit_code: int = REFUSED) -> Answer:
    return Answer(data=proposal, text=lambda: f"Nothing was committed.{questions.again()}", exit_code=exit_code)


def _proposed(desk: Decisions, options: Any, questions: _Questions | None) -> DecisionProposal:
    """The proposal that the options, and the answers of whoever sits at the terminal, make."""
    ask = questions.asked if questions is not None else None
    text = ask("What is decided? ") if options.text is None and ask else text_or_stdin(options.text)
    type = options.type or (ask and ask(f"Why? One of {', '.join(_TYPES)}: ", "--type", _TYPES))
    reason = options.reason or (ask and ask("In a sentence: ", "--reason"))
    if not type or not reason:
        raise InvalidInput("A decision needs a reason (R12).", hint='--type risk --reason "why, in a sentence"')
    snapshots = list(options.snapshot)
    if ask and not options.evidence and not snapshots:
        snapshots = [ask("What does it rest on? (quoted word for word) ", "--snapshot")]
    return _proposal(desk, options, text, type, reason, snapshots)


def _proposal(
    desk: Decisions, options: Any, text: str, type: str, reason: str, snapshots: list[str]
) -> DecisionProposal:
    return desk.propose(
        text,
        reason={"type": type, "summary": reason, "tradeoff": options.tradeoff},
        evidence=options.evidence,
        snapshots=snapshots,
        strength=options.strength,
        domain=options.domain,
        level=options.level,
        revises=options.revises,
    )


def _import(call: Call) -> Answer:
    from mnemarch.interfaces import adr

    with Counter("importing", "records") as progress:
        outcomes = adr.import_folder(call.seat, call.options.folder, progress, override=call.options.override)
    return _records(outcomes, "There are no decision records there.")


def _export(call: Call) -> Answer:
    from mnemarch.interfaces import adr

    return _records(adr.export_folder(call.seat, call.options.folder), "Nothing is decided here.")


def _records(outcomes: list[AdrOutcome], none: str) -> Answer:
    rows = [(one.name, short_id(one.decision_id or ""), one.note) for one in outcomes]
    return Answer(data=outcomes, text=lambda: table(("file", "id", "what"), rows, none))


_FOLDER = Parameter("folder", PATH, "of Markdown files", metavar="FOLDER")
COMMANDS = {
    "decide": Command(_decide, _DECIDE, begins_memory=True),
    "decisions import": Command(_import, (_FOLDER, OVERRIDE), begins_memory=True),
    "decisions export": Command(_export, (_FOLDER,)),
}


# In words


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
    """A page of decisions; to who named no domain also the others in which something is in force."""
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
    return table(("tier", "kind", "id", "content"), rows, "Nothing to load here.")


def _relations(relations: Sequence[Relation], _: Call) -> str:
    rows = [(short_id(one.source), one.type, short_id(one.target)) for one in relations]
    return table(("id", "relation", "to"), rows, "No relations.")


def _proposal_text(proposal: DecisionProposal, known: Mapping[str, Decision]) -> str:
    """What would be decided, and what it would break."""
    lines = [
        f"{'revises ' + short_id(proposal.base.id) if proposal.base else 'new'}: {quoted(proposal.text)}",
        f"{proposal.strength} · {clean(proposal.domain)} · {proposal.level}",
        f"because {proposal.reason.type}: {clean(proposal.reason.summary)}",
        _guardian_text(proposal.guardian),
    ]
    opposed = [f"  {one.strength} {short_id(one.id)}  {quoted(one.text)}" for one in proposal.conflicts]
    reaches = _tree_lines(proposal.blast_radius, known)
    sections = (["conflicts with:", *opposed] if opposed else [], ["reaches:", *reaches] if reaches else [])
    return "\n".join([*lines, *(line for section in sections for line in section)])


def _guardian_text(verdict: GuardianVerdict) -> str:
    return "\n".join([f"guardian: {verdict.type}", *(f"  {clean(reason)}" for reason in verdict.reasons)])


def _known_decisions(desk: Decisions, impact: Impact) -> dict[str, Decision]:
    """The decisions of an impact as they are in force, by their roots."""
    return {node.id: desk.in_force(node.id) for node in impact.nodes}


def _impact(impact: Impact, call: Call) -> str:
    desk, drawn = call.seat.decisions, _mermaid if call.options.mermaid else _tree
    head = _head(desk, call.options.decision_id)
    return drawn(head.root_id, impact, _known_decisions(desk, impact) | {head.root_id: head})


def _head(desk: Decisions, decision_id: str) -> Decision:
    """What is in force of a decision; of one that was taken back, the version that was named."""
    try:
        return desk.in_force(decision_id)
    except NotFound:
        return desk.get(decision_id)


def _tree(root: str, impact: Impact, known: Mapping[str, Decision]) -> str:
    lines = _tree_lines(impact, known) or ["Nothing depends on it, as far as relations say."]
    return "\n".join([_named(root, known), *lines])


def _tree_lines(impact: Impact, known: Mapping[str, Decision]) -> list[str]:
    """Each node under the one that leads to it; the arrow points as the relation reads."""
    below: dict[str, list[ImpactNode]] = {}
    for node in impact.nodes:
        below.setdefault(node.path[-2], []).append(node)
    lines: list[str] = []
    # A list of what is still to be drawn, not recursion: a chain of decisions can be longer than Python's stack.
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
    """A decision of an impact, with the id of the version that is in force."""
    return f"{short(known[root].text, _LABEL_CHARS)}  {short_id(known[root].id)}" if root in known else short_id(root)


def _mermaid(root: str, impact: Impact, known: Mapping[str, Decision]) -> str:
    """A flowchart for Markdown pages."""
    from mnemarch.interfaces.pictures import flowchart

    labels = {each: known[each].text if each in known else each for each in (root, *(one.id for one in impact.nodes))}
    arrows = [(node.source, node.relation, node.target) for node in impact.nodes]
    return flowchart("TD", labels | ({"cut": f"cut: {impact.cut}"} if impact.cut else {}), arrows)


def _broken(anchors: Sequence[Unit], _: Call) -> str:
    rows = [(short_id(one.id), short_id(one.attributes.get("target", "")), quoted(one.content)) for one in anchors]
    return table(("id", "leads to", "hint"), rows, "Every anchor leads somewhere.")


# By verb, as in `text`.
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
    "decisions.add_policy": lambda unit, _: f"laid down  {short_id(unit.id)}  {unit.level}",
    "decisions.broken_anchors": _broken,
    "decisions.impact": _impact,
}

"""`decide`, `decisions`, `impact`: what was decided, why, and what changing it would reach."""

from __future__ import annotations

import sys

from mnemarch.errors import Conflict, InvalidInput, MnemarchError, NotFound
from mnemarch.interfaces import decision_text
from mnemarch.interfaces.acts import Act, acted
from mnemarch.interfaces.command import DONE, INTERRUPTED, REFUSED, Answer, Command
from mnemarch.interfaces.commands.lifecycle import expects_a_version
from mnemarch.interfaces.given import text_given
from mnemarch.interfaces.place import at_terminal
from mnemarch.interfaces.show import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Collection

    from mnemarch.decisions import Decisions
    from mnemarch.interfaces.adr import AdrOutcome
    from mnemarch.interfaces.command import Call
    from mnemarch.model.decision import Decision, DecisionProposal, Impact

_ID = "01a1e10a-75ac-7d0c-9ca4-6a8510450e10"
_OTHER_ID = "01a1e10a-75aa-7bd1-9bc9-05568e3089dc"
_TYPES = ("consistency", "risk", "security", "performance", "ux", "maintainability", "other")
_FORMS = ("nygard", "madr")
_ANCHORS = "runbook, entrypoint, wiring, config, invariant, gotcha"


def _decide_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("text", nargs="?", metavar="TEXT|-", help="what is decided; - reads standard input")
    parser.add_argument("--reason", metavar="SUMMARY", help="why, in a sentence or two")
    parser.add_argument("--type", metavar="TYPE", help=f"of reason: {', '.join(_TYPES)}")
    parser.add_argument("--tradeoff", metavar="TEXT", help="what it costs")
    parser.add_argument("--evidence", action="append", default=[], metavar="UNIT", help="it rests on; repeatable")
    parser.add_argument("--snapshot", action="append", default=[], metavar="TEXT", help="new evidence, word for word")
    parser.add_argument("--strength", help="axis, lock or normal (default; a revision keeps its own)")
    parser.add_argument("--domain", help="what it is about (default: global; a revision keeps its own)")
    parser.add_argument("--level", help="project (default), task, worktree or org")
    parser.add_argument(
        "--revises", metavar="ID", help="the version that you saw and this is to follow; a conflict if it moved on"
    )
    expects_a_version(parser, "the decision, if --revises names another one of its versions")
    parser.add_argument("--override", metavar="WHY", help="commit although the guardian blocks it")
    parser.add_argument("--dry-run", action="store_true", help="show the proposal and commit nothing")
    parser.add_argument("--yes", action="store_true", help="commit without asking")


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
    if options.expected_version is not None and options.revises is None:
        raise InvalidInput("--expected-version is of the decision that is revised.", hint="Add --revises ID.")
    if options.dry_run:
        call.begins_memory = False
        call.answer_from_nothing()
    desk = call.seat.decisions
    if not (at_terminal(sys.stdin) and at_terminal(sys.stdout)) or options.json:
        return _settled(desk, options, _proposed(desk, options, None), None)
    _check_first(desk, options)
    questions = _Questions()
    try:
        return _settled(desk, options, _proposed(desk, options, questions), questions)
    except _LeftError as left:
        return _let_go(None, questions, left.exit_code)
    except MnemarchError:
        if typed := questions.again():
            print(typed, file=sys.stderr)
        raise


def _check_first(desk: Decisions, options: Namespace) -> None:
    """Tell what is wrong with the options, and who may not commit it, before anybody is asked for the rest."""
    snapshots = options.snapshot or ([] if options.evidence else ["?"])
    draft = _proposal(desk, options, "?", options.type or "other", options.reason or "?", snapshots)
    if not options.dry_run:
        desk.check(draft)
    if draft.guardian.type == "BLOCK":
        print(decision_text.guardian(draft.guardian))


def _settled(desk: Decisions, options: Namespace, proposal: DecisionProposal, questions: _Questions | None) -> Answer:
    """What becomes of a proposal: shown, committed, or let go of; until it is committed nothing is stored."""
    known = _known(desk, proposal.blast_radius)
    if options.dry_run:
        code = REFUSED if proposal.guardian.type == "BLOCK" else DONE
        return Answer(data=proposal, text=lambda: decision_text.proposal(proposal, known), exit_code=code)
    override = options.override
    if questions is not None and not options.yes:
        print(decision_text.proposal(proposal, known))
        if proposal.guardian.type == "BLOCK" and not override:
            override = questions.asked("Why commit it all the same? (nothing: don't) ", "--override")
            if not override:
                return _let_go(proposal, questions)
        elif _answered("Commit it? [y/N] ").lower() not in {"y", "yes"}:
            return _let_go(proposal, questions)
    decided = desk.commit(proposal, override=override)
    return Answer(data=decided, text=lambda: f"decided\n\n{decision_text.decision(decided)}")


def _let_go(proposal: DecisionProposal | None, questions: _Questions, exit_code: int = REFUSED) -> Answer:
    return Answer(data=proposal, text=lambda: f"Nothing was committed.{questions.again()}", exit_code=exit_code)


def _proposed(desk: Decisions, options: Namespace, questions: _Questions | None) -> DecisionProposal:
    """The proposal that the options, and the answers of whoever sits at the terminal, make."""
    ask = questions.asked if questions is not None else None
    text = ask("What is decided? ") if options.text is None and ask else text_given(options.text)
    type = options.type or (ask and ask(f"Why? One of {', '.join(_TYPES)}: ", "--type", _TYPES))
    reason = options.reason or (ask and ask("In a sentence: ", "--reason"))
    if not type or not reason:
        raise InvalidInput("A decision needs a reason (R12).", hint='--type risk --reason "why, in a sentence"')
    snapshots = list(options.snapshot)
    if ask and not options.evidence and not snapshots:
        snapshots = [ask("What does it rest on? (quoted word for word) ", "--snapshot")]
    return _proposal(desk, options, text, type, reason, snapshots)


def _proposal(
    desk: Decisions, options: Namespace, text: str, type: str, reason: str, snapshots: list[str]
) -> DecisionProposal:
    proposal = desk.propose(
        text,
        reason={"type": type, "summary": reason, "tradeoff": options.tradeoff},
        evidence=options.evidence,
        snapshots=snapshots,
        strength=options.strength,
        domain=options.domain,
        level=options.level,
        revises=options.revises,
    )
    if proposal.base is not None:
        _refuse_stale(desk, options, proposal.base)
    return proposal


def _refuse_stale(desk: Decisions, options: Namespace, base: Decision) -> None:
    """Who names a version decides against that one: if another is in force by now, somebody was faster (R5)."""
    expected = options.expected_version
    if (base.id == options.revises) if expected is None else (expected == base.version):
        return
    seen = expected if expected is not None else _version_of(desk, options.revises)
    raise Conflict(
        f"Decision {base.root_id} is at version {base.version}"
        f"{f', not {seen}' if seen is not None else ''}: {base.id} is in force, by {base.unit.author}.",
        hint=f"Read it (mnemarch decisions show {base.id}), decide anew, and give --revises {base.id}.",
        expected_version=seen,
        actual_version=base.version,
        current=base.unit,
    )


def _version_of(desk: Decisions, decision_id: str) -> int | None:
    try:
        return desk.get(decision_id).version
    except NotFound:
        return None  # It was erased, or is of another worktree; its root still names what is in force.


def _known(desk: Decisions, impact: Impact) -> dict[str, Decision]:
    """The decisions of an impact as they are in force, by their roots."""
    return {node.id: desk.in_force(node.id) for node in impact.nodes}


def _impact_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("decision", metavar="ID", help="of any version")
    parser.add_argument("--depth", type=int, metavar="N", help="so many steps at most")
    parser.add_argument("--nodes", type=int, metavar="N", help="so many decisions at most")
    parser.add_argument(
        "--format", choices=decision_text.FORMATS, default="tree", help="tree (default), mermaid, dot, json"
    )


def _impact(call: Call) -> Answer:
    options = call.options
    desk = call.seat.decisions
    found = desk.impact(options.decision, depth=options.depth, nodes=options.nodes)
    drawn = {"mermaid": decision_text.mermaid, "dot": decision_text.dot}.get(options.format, decision_text.tree)

    def text() -> str:
        head = _head(desk, options.decision)
        return drawn(head.root_id, found, _known(desk, found) | {head.root_id: head})

    if options.format == "json":
        from mnemarch.interfaces.cli import json_text

        return Answer(data=found, text=lambda: json_text(found))
    return Answer(data=found, text=text)


def _head(desk: Decisions, decision_id: str) -> Decision:
    """What is in force of a decision; of one that was taken back, the version that was named."""
    try:
        return desk.in_force(decision_id)
    except NotFound:
        return desk.get(decision_id)


def _decisions_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("act", nargs="?", default="list", metavar="ACT", help=f"{', '.join(_ACTS)} (default: list)")
    parser.add_argument("arguments", nargs="*", metavar="ARG", help="what the act takes")
    parser.add_argument("--domain", help="list, load, anchor: what they are about")
    parser.add_argument("--phase", help="load: the stage of the work; it changes nothing (D17)")
    parser.add_argument("--around", metavar="ID", help="load: the decision that is being worked on")
    parser.add_argument("--limit", type=int, metavar="N", help="list, load, broken: how many at most")
    parser.add_argument("--after", metavar="ID", help="list: the last id of the page before")
    parser.add_argument("--tag", action="append", default=[], metavar="TAG", help="evidence: a tag; repeatable")
    parser.add_argument(
        "--level", help="evidence, anchor: task, worktree, project or org (default: as narrow as may be)"
    )
    parser.add_argument(
        "--form", default="", metavar="FORM", help="export: nygard or madr (default: as imported, else nygard)"
    )
    parser.add_argument("--drop", action="store_true", help="relate: take the relation back")
    parser.add_argument("--override", metavar="WHY", help="relate --drop, import: why, although the guardian blocks it")


def _decisions(call: Call) -> Answer:
    return acted(call, "decisions", _ACTS, _OPTIONS)


def _list(call: Call) -> Answer:
    options, desk = call.options, call.seat.decisions
    found = desk.active(
        options.domain or "global", limit=50 if options.limit is None else options.limit, after=options.after
    )
    others = _elsewhere(desk, options.domain)
    return Answer(data=found, text=lambda: decision_text.decisions(found, others))


def _elsewhere(desk: Decisions, domain: str | None) -> list[str]:
    """The other domains in which something is in force: to who named none, since they can't be guessed."""
    return [] if domain is not None else [each for each in desk.domains() if each != "global"]


def _show(call: Call) -> Answer:
    found = call.seat.decisions.get(call.options.arguments[0])
    return Answer(data=found, text=lambda: decision_text.decision(found))


def _history(call: Call) -> Answer:
    found = call.seat.decisions.history(call.options.arguments[0])
    return Answer(data=found, text=lambda: decision_text.history(found))


def _load(call: Call) -> Answer:
    options, desk = call.options, call.seat.decisions
    limit = 200 if options.limit is None else options.limit
    found = desk.load(options.domain, options.phase, around=options.around, limit=limit)
    return Answer(data=found, text=lambda: decision_text.loaded(found))


def _relate(call: Call) -> Answer:
    options = call.options
    source, relation, target = options.arguments
    if options.override is not None and not options.drop:
        raise InvalidInput("Relating two decisions overrides nothing.", hint="--override goes with --drop.")
    desk = call.seat.decisions
    if options.drop:
        desk.unrelate(source, relation, target, override=options.override)
    else:
        desk.relate(source, relation, target)
    found = desk.relations(source)
    return Answer(data=found, text=lambda: decision_text.relations(found))


def _relations(call: Call) -> Answer:
    found = call.seat.decisions.relations(call.options.arguments[0])
    return Answer(data=found, text=lambda: decision_text.relations(found))


def _evidence(call: Call) -> Answer:
    options = call.options
    text = text_given(options.arguments[0])
    unit = call.seat.decisions.add_evidence(text, tags=options.tag, level=options.level)
    return Answer(data=unit, text=lambda: f"kept  {unit.id}")


def _anchor(call: Call) -> Answer:
    options = call.options
    hint, target, kind = options.arguments
    unit = call.seat.decisions.add_anchor(hint, target, kind, domain=options.domain or "global", level=options.level)
    return Answer(data=unit, text=lambda: f"anchored  {unit.id}")


def _broken(call: Call) -> Answer:
    limit = call.options.limit
    found = call.seat.decisions.broken_anchors(200 if limit is None else limit)
    return Answer(data=found, text=lambda: decision_text.broken(found))


def _import(call: Call) -> Answer:
    from mnemarch.interfaces import adr
    from mnemarch.interfaces.progress import counted

    folder, why = call.options.arguments[0], call.options.override
    with counted("importing", "records") as progress:
        outcomes = adr.import_folder(call.seat, folder, progress, override=why)
    return _records(outcomes, "There are no decision records there.")


def _export(call: Call) -> Answer:
    from mnemarch.interfaces import adr

    folder, form = call.options.arguments[0], call.options.form
    if form and form not in _FORMS:
        raise InvalidInput(f"There is no form {form!r} of decision records.", hint=f"Use {' or '.join(_FORMS)}.")
    return _records(adr.export_folder(call.seat, folder, form), "Nothing is decided here.")


def _records(outcomes: list[AdrOutcome], none: str) -> Answer:
    rows = [(one.name, one.decision_id or "", one.note) for one in outcomes]
    return Answer(data=outcomes, text=lambda: table(("file", "id", "what"), rows, none))


_ACTS = {
    "list": Act(_list, options=("domain", "limit", "after")),
    "show": Act(_show, ("ID",)),
    "history": Act(_history, ("ID",)),
    "load": Act(_load, options=("domain", "phase", "around", "limit")),
    "relate": Act(_relate, ("ID", "RELATION", "ID"), ("drop", "override")),
    "relations": Act(_relations, ("ID",)),
    "evidence": Act(_evidence, ("TEXT",), ("tag", "level"), begins_memory=True),
    "anchor": Act(_anchor, ("HINT", "TARGET", "KIND"), ("domain", "level")),
    "broken": Act(_broken, options=("limit",)),
    "import": Act(_import, ("FOLDER",), ("override",), begins_memory=True),
    "export": Act(_export, ("FOLDER",), ("form",)),
}
_OPTIONS = frozenset(name for act in _ACTS.values() for name in act.options)

COMMANDS = {
    "decide": Command(
        description=(
            "Make a decision, or the next version of one (--revises): what, why, and what it rests on. On a terminal\n"
            "what is missing is asked for, and what it would reach is shown before it is committed. Agents propose\n"
            "(--dry-run); an orchestrator or a person commits. What the guardian blocks takes --override and a\n"
            "person, or below project scope whoever may write there. If another version than the one that --revises\n"
            "names is in force meanwhile, it is a conflict (exit code 1)."
        ),
        examples=(
            'mnemarch decide "Retry thrice" --type risk --reason "too slow" --snapshot "incident 7" --actor human:ada',
            f'mnemarch decide "Retry 5 times" --revises {_ID} --type ux --reason "new bank" --evidence {_ID}',
            "mnemarch decide",
        ),
        arguments=_decide_arguments,
        run=_decide,
        begins_memory=True,
    ),
    "decisions": Command(
        description=(
            "What is in force, the firmest first. Also: show ID, history ID, load (what to know first in a domain, in\n"
            "order), relate ID RELATION ID (DEPENDS_ON, CONSTRAINS, VALIDATES, SUPERSEDES, REFINES), relations ID,\n"
            "evidence TEXT, anchor HINT TARGET KIND (a hint that leads to a decision or an evidence; its kind is\n"
            f"{_ANCHORS}), broken (anchors that lead nowhere), import FOLDER\n"
            "and export FOLDER (Markdown decision records in the forms of Nygard and MADR)."
        ),
        examples=(
            "mnemarch decisions load --domain coding",
            f"mnemarch decisions relate {_ID} DEPENDS_ON {_OTHER_ID} --actor human:ada",
            "mnemarch decisions import docs/adr --actor orchestrator:lead",
        ),
        arguments=_decisions_arguments,
        run=_decisions,
    ),
    "impact": Command(
        description=(
            "What changing a decision would reach, by the relations that were stated and nothing else: a tree, or a\n"
            "graph for Markdown (mermaid) and Graphviz (dot)."
        ),
        examples=(
            f"mnemarch impact {_ID}",
            f"mnemarch impact {_ID} --format mermaid",
            f"mnemarch impact {_ID} --depth 2 --json",
        ),
        arguments=_impact_arguments,
        run=_impact,
    ),
}

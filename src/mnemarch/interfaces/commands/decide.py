"""`decide`, which asks a person for what is missing, and the decision records that are imported and exported."""

from __future__ import annotations

import sys

from mnemarch.errors import InvalidInput, MnemarchError
from mnemarch.interfaces import decision_text
from mnemarch.interfaces.arguments import text_given
from mnemarch.interfaces.command import DONE, INTERRUPTED, REFUSED, Answer, Command, at_terminal
from mnemarch.interfaces.show import Counter, clean, table
from mnemarch.model.outcome import Refused
from mnemarch.verbs import OVERRIDE
from mnemarch.verbs.types import FLAG, ID, LEVEL, PATH, STRENGTH, WORDS, Parameter, help_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from mnemarch.decisions import Decisions
    from mnemarch.interfaces.adr import AdrOutcome
    from mnemarch.interfaces.command import Call
    from mnemarch.model.decision import DecisionProposal

_TYPES = ("consistency", "risk", "security", "performance", "ux", "maintainability", "other")
_FORMS = ("nygard", "madr")
_DECIDE = (
    Parameter("text", WORDS, "what is decided; - reads standard input", None, "", metavar="TEXT|-"),
    Parameter("reason", WORDS, "why, in a sentence or two", None, metavar="SUMMARY"),
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
        print(decision_text.guardian(draft.guardian))


def _settled(desk: Decisions, options: Any, proposal: DecisionProposal, questions: _Questions | None) -> Answer:
    """What becomes of a proposal: shown, committed, or let go of; until it is committed nothing is stored."""
    known = decision_text.known_decisions(desk, proposal.blast_radius)
    if options.dry_run:
        code = REFUSED if _takes_a_reason(proposal) else DONE
        return Answer(data=proposal, text=lambda: decision_text.proposal(proposal, known), exit_code=code)
    override = options.override
    if questions is not None and not options.yes:
        print(decision_text.proposal(proposal, known))
        if _takes_a_reason(proposal) and not override:
            override = questions.asked("Why commit it all the same? (nothing: don't) ", "--override")
            if not override:
                return _let_go(proposal, questions)
        elif _answered("Commit it? [y/N] ").lower() not in {"y", "yes"}:
            return _let_go(proposal, questions)
    decided = desk.commit(proposal, override=override)
    if isinstance(decided, Refused):
        waits = clean(decided.reason)
        return Answer(data=decided, text=lambda: f"not decided: {waits}", exit_code=REFUSED)
    return Answer(data=decided, text=lambda: f"decided\n\n{decision_text.decision(decided)}")


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

    folder, form = call.options.folder, call.options.form
    if form and form not in _FORMS:
        raise InvalidInput(f"There is no form {form!r} of decision records.", hint=f"Use {' or '.join(_FORMS)}.")
    return _records(adr.export_folder(call.seat, folder, form), "Nothing is decided here.")


def _records(outcomes: list[AdrOutcome], none: str) -> Answer:
    rows = [(one.name, one.decision_id or "", one.note) for one in outcomes]
    return Answer(data=outcomes, text=lambda: table(("file", "id", "what"), rows, none))


_FOLDER = Parameter("folder", PATH, "of Markdown files", metavar="FOLDER")
_FORM = Parameter("form", WORDS, "nygard or madr (default: as imported, else nygard)", "", metavar="FORM")
COMMANDS = {
    "decide": Command(*help_of("decide"), _decide, _DECIDE, begins_memory=True),
    "decisions import": Command(*help_of("decisions import"), _import, (_FOLDER, OVERRIDE), begins_memory=True),
    "decisions export": Command(*help_of("decisions export"), _export, (_FOLDER, _FORM)),
}

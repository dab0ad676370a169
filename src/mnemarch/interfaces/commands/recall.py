"""`recall` and `context`: what comes out."""

from __future__ import annotations

from mnemarch.interfaces import show
from mnemarch.interfaces.command import Answer, Command
from mnemarch.interfaces.elsewhere import elsewhere
from mnemarch.interfaces.given import instant_given
from mnemarch.model.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser

    from mnemarch.interfaces.command import Call


def _about(parser: ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", help="a question or some words, in English or Korean")
    parser.add_argument("--kind", action="append", metavar="KIND", help="only this kind; repeatable")
    parser.add_argument("--domain", help="only this domain, and global")
    parser.add_argument("--at-commit", metavar="HASH", help="what holds at that commit, not at the one checked out")
    parser.add_argument("--as-of", metavar="ISO", help="what was true at that moment")


def _arguments(parser: ArgumentParser) -> None:
    _about(parser)
    parser.add_argument("-k", type=int, default=8, metavar="N", help="how many at most (default: 8)")


def _recall(call: Call) -> Answer:
    options = call.options
    nothing_here = call.answer_from_nothing()
    found = call.seat.recall(
        options.query,
        options.k,
        kinds=options.kind,
        domain=options.domain,
        at_commit=options.at_commit,
        as_of=instant_given(options.as_of, "--as-of"),
    )
    notes = [nothing_here] if nothing_here else [] if found.items or found.withheld else elsewhere(call)
    found = replace(found, notes=(*found.notes, *notes))
    return Answer(data=found, text=lambda: show.found(found, options.query))


def _context_arguments(parser: ArgumentParser) -> None:
    _about(parser)
    parser.add_argument("--tokens", type=int, default=2_000, metavar="N", help="the budget (default: 2000)")


def _context(call: Call) -> Answer:
    options = call.options
    nothing_here = call.answer_from_nothing()
    pack = call.seat.context(
        options.query,
        options.tokens,
        kinds=options.kind,
        domain=options.domain,
        at_commit=options.at_commit,
        as_of=instant_given(options.as_of, "--as-of"),
    )
    notes = [nothing_here] if nothing_here else [] if pack.items or pack.withheld else elsewhere(call)
    pack = replace(pack, notes=(*pack.notes, *notes))
    return Answer(data=pack, text=lambda: show.clean(pack.text), aside=lambda: show.about_pack(pack, options.query))


COMMANDS = {
    "recall": Command(
        description=(
            "The units that answer a question, best first: trusted knowledge before hypotheses, each with its score's\n"
            "shares. What matched but may not be handed out is listed as withheld, with the reason."
        ),
        examples=(
            'mnemarch recall "how does checkout retry?"',
            'mnemarch recall "결제 재시도" -k 3 --kind fact --task T-42',
            'mnemarch recall "deploy day" --as-of 2026-01-31T00:00Z --json',
        ),
        arguments=_arguments,
        run=_recall,
    ),
    "context": Command(
        description=(
            "What answers a question as one text for a model: whole units in recall's order, each with its label, age\n"
            "and confidence, fenced as data, within a budget of tokens. Standard output is that text alone: how much\n"
            "it is, or that nothing was found, is said on stderr."
        ),
        examples=(
            'mnemarch context "fix the checkout retry" --tokens 1500',
            'mnemarch context "결제 재시도" --task T-42 --json',
        ),
        arguments=_context_arguments,
        run=_context,
    ),
}

"""`verify` and `promote`: what goes upward."""

from __future__ import annotations

from mnemarch.interfaces import show
from mnemarch.interfaces.command import DONE, REFUSED, Answer, Command, exit_code_of
from mnemarch.interfaces.commands.lifecycle import changes_a_unit
from mnemarch.interfaces.given import json_object, text_given

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser

    from mnemarch.interfaces.command import Call


def _verify_arguments(parser: ArgumentParser) -> None:
    verdict = parser.add_mutually_exclusive_group(required=True)
    verdict.add_argument("--passed", action="store_true", help="the verification passed")
    verdict.add_argument("--failed", action="store_true", help="it failed: an episode is kept, nothing is raised")
    parser.add_argument("--test", action="append", default=[], metavar="NAME", help="a test that ran; repeatable")
    parser.add_argument("--commit", metavar="HASH", help="the commit that was verified")
    parser.add_argument("--error", metavar="TEXT|-", help="of a failure: the error; - reads standard input")
    parser.add_argument("--approach", metavar="TEXT", help="of a failure: what was tried before it")
    parser.add_argument("--analysis", metavar="JSON|@FILE", help="your own: critique, score, key_decisions, ...")


def _verify(call: Call) -> Answer:
    options = call.options
    analysis = None if options.analysis is None else json_object(options.analysis, "--analysis")
    judged = call.seat.verify(
        options.passed,
        tests=options.test,
        commit=options.commit,
        analysis=analysis,
        error=None if options.error is None else text_given(options.error, errors="replace"),
        approach=options.approach,
    )
    blocked = judged.loop is not None and judged.loop.type == "BLOCK"
    return Answer(data=judged, text=lambda: show.promotion(judged), exit_code=REFUSED if blocked else DONE)


def _promote_arguments(parser: ArgumentParser) -> None:
    changes_a_unit(parser)
    parser.add_argument("--to", default="project", metavar="LEVEL", help="worktree, project (default) or org")


def _promote(call: Call) -> Answer:
    options = call.options
    outcome = call.seat.promote(options.unit, options.to, expected_version=options.expected_version)
    return Answer(
        data=outcome,
        text=lambda: show.outcome(outcome, "promoted"),
        exit_code=exit_code_of(outcome),
    )


COMMANDS = {
    "verify": Command(
        description=(
            "Report how a task's verification went. On success the gate judges what it staged: what cites a passed\n"
            "test is raised, the rest is kept down and the rule that keeps it is named. Without a --task it is the\n"
            "worktree's own; outside of a repository a --task (or --worktree) is needed."
        ),
        examples=(
            "mnemarch verify --passed --test tests/test_checkout.py::test_retry --task T-42",
            'mnemarch verify --failed --task T-42 --analysis \'{"critique": "the fix broke refunds"}\'',
            'pytest > out.txt 2>&1 || mnemarch verify --failed --task T-42 --error - --approach "more tries" < out.txt',
        ),
        arguments=_verify_arguments,
        run=_verify,
        begins_memory=True,
    ),
    "promote": Command(
        description=(
            "Move a unit to a wider level. Project and org take only verified knowledge, and only from those who may\n"
            "write there; a refusal (exit code 1) names its rule."
        ),
        examples=("mnemarch promote 01a1e10a-75ac-7d0c-9ca4-6a8510450e10 --to project --actor orchestrator:lead",),
        arguments=_promote_arguments,
        run=_promote,
    ),
}

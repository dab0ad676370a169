"""`approach`, `fail`, `attempts`, `stuck`: whether a task goes round in circles."""

from __future__ import annotations

from mnemarch.interfaces import show
from mnemarch.interfaces.command import DONE, REFUSED, Answer, Command
from mnemarch.interfaces.given import text_given

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser

    from mnemarch.interfaces.command import Call


def _approach_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("approach", metavar="TEXT|-", help="what you are about to try; - reads standard input")


def _approach(call: Call) -> Answer:
    text = text_given(call.options.approach)
    nothing_here = call.answer_from_nothing()
    validation = call.seat.validate_approach(text)
    return Answer(
        data=validation,
        text=lambda: show.approach(validation),
        exit_code=DONE if validation.valid else REFUSED,
        aside=lambda: nothing_here,
    )


def _fail_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("error", nargs="?", metavar="TEXT|-", help="the error; - or nothing reads standard input")
    parser.add_argument("--approach", metavar="TEXT", help="what was tried before it")
    parser.add_argument("--key", help="idempotency key: the same key again gives the first verdict")


def _fail(call: Call) -> Answer:
    options = call.options
    verdict = call.seat.fail(text_given(options.error, errors="replace"), approach=options.approach, key=options.key)
    return Answer(
        data=verdict,
        text=lambda: show.loop(verdict),
        exit_code=REFUSED if verdict.type == "BLOCK" else DONE,
    )


def _nothing_more(parser: ArgumentParser) -> None:
    """Only who and where."""


def _attempts(call: Call) -> Answer:
    nothing_here = call.answer_from_nothing()
    failed = call.seat.failed_approaches()
    stuck = call.seat.loops.stuck_reason()
    return Answer(
        data={"stuck": stuck, "failed": failed},
        text=lambda: show.attempts(failed, stuck),
        aside=lambda: nothing_here,
    )


def _stuck_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("reason", metavar="REASON", help="why")
    parser.add_argument("--clear", action="store_true", help="let the task start anew; for a person or an orchestrator")


def _stuck(call: Call) -> Answer:
    options = call.options
    seat = call.seat
    receipt = seat.clear_stuck(options.reason) if options.clear else seat.mark_stuck(options.reason)
    done = "cleared" if options.clear else "stuck"
    return Answer(data=receipt, text=lambda: f"{done}  {show.clean(seat.scope)}")


COMMANDS = {
    "approach": Command(
        description=(
            "Ask before acting: has this approach already failed in this task? In other words it is still the same.\n"
            "Exit code 1 if it has. Nothing is recorded."
        ),
        examples=('mnemarch approach "raise the pool size" --task T-42',),
        arguments=_approach_arguments,
        run=_approach,
    ),
    "fail": Command(
        description=(
            "Report a failure. An error that comes back after another one (A, B, A) is warned of (WARN), and so is an\n"
            "approach that already failed; the third time the same error or approach is blocked (BLOCK, exit code 1),\n"
            "with an instruction for the agent. Until then go on (ALLOW). A verified success clears it."
        ),
        examples=(
            'mnemarch fail "ConnectionError: pool timed out" --approach "raise the pool size" --task T-42',
            'pytest > out.txt 2>&1 || mnemarch fail - --approach "raise the pool size" --task T-42 < out.txt',
        ),
        arguments=_fail_arguments,
        run=_fail,
        begins_memory=True,
    ),
    "attempts": Command(
        description="What was tried in this task and failed, since it last succeeded or was cleared.",
        examples=("mnemarch attempts --task T-42",),
        arguments=_nothing_more,
        run=_attempts,
    ),
    "stuck": Command(
        description=(
            "Call a task stuck: every further attempt is blocked until a person or an orchestrator clears it\n"
            "(--clear), which also forgets the failures counted so far."
        ),
        examples=(
            'mnemarch stuck "needs the staging password" --task T-42',
            'mnemarch stuck --clear "I raised the quota" --task T-42 --actor human:kim',
        ),
        arguments=_stuck_arguments,
        run=_stuck,
        begins_memory=True,
    ),
}

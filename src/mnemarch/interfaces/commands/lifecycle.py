"""The verbs that change a unit's life: evidence for and against it, its successor, its end."""

from __future__ import annotations

import sys

from mnemarch.errors import InvalidInput, NotFound
from mnemarch.interfaces import show
from mnemarch.interfaces.command import REFUSED, Answer, Command
from mnemarch.interfaces.place import at_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser

    from mnemarch.interfaces.command import Call
    from mnemarch.model.unit import Unit

_ID = "01a1e10a-75ac-7d0c-9ca4-6a8510450e10"
_OTHER_ID = "01a1e10a-75aa-7bd1-9bc9-05568e3089dc"


def changes_a_unit(parser: ArgumentParser) -> None:
    """What every verb takes that changes a unit."""
    parser.add_argument("unit", metavar="UNIT", help="the whole id of the unit")
    expects_a_version(parser, "the unit")


def expects_a_version(parser: ArgumentParser, of: str) -> None:
    parser.add_argument(
        "--expected-version", type=int, metavar="N", help=f"the version of {of} that you saw; a conflict if it moved on"
    )


def gives_a_reason(parser: ArgumentParser) -> None:
    parser.add_argument("--reason", required=True, metavar="WHY", help="why; it is kept in the log")


def _with_reason(parser: ArgumentParser) -> None:
    changes_a_unit(parser)
    gives_a_reason(parser)


def _changed(unit: Unit, first: str) -> Answer:
    return Answer(data=unit, text=lambda: f"{show.unit_line(unit, first)}  v{unit.version}")


def _cite_arguments(parser: ArgumentParser) -> None:
    changes_a_unit(parser)
    parser.add_argument(
        "citation",
        metavar="CITATION",
        help="commit:HASH, log:ID, human:NAME, test:NAME, file:PATH[#L1-L9] or symbol:PATH::NAME",
    )


def _cite(call: Call) -> Answer:
    from mnemarch.model.citation import Citation

    options = call.options
    citation = Citation.parse(options.citation)
    return _changed(call.seat.cite(options.unit, citation, expected_version=options.expected_version), "cited")


def _use(call: Call) -> Answer:
    return _changed(call.seat.use(call.options.unit, expected_version=call.options.expected_version), "used")


def _validate_arguments(parser: ArgumentParser) -> None:
    changes_a_unit(parser)
    parser.add_argument(
        "signal",
        metavar="SIGNAL",
        help="tests_passed, pr_merged, human_approved, repeated_success, "
        "tests_failed, pr_reverted, human_rejected or contradicted",
    )


def _validate(call: Call) -> Answer:
    options = call.options
    confidence = call.seat.validate(options.unit, options.signal, expected_version=options.expected_version)
    return Answer(
        data={"unit_id": options.unit, "confidence": confidence},
        text=lambda: f"validated  {options.unit}  confidence {confidence:.2f}",
    )


def _approve(call: Call) -> Answer:
    return _changed(call.seat.approve(call.options.unit, expected_version=call.options.expected_version), "approved")


def _reject(call: Call) -> Answer:
    options = call.options
    return _changed(
        call.seat.reject(options.unit, options.reason, expected_version=options.expected_version), "rejected"
    )


def _supersede_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("new", metavar="NEW", help="the whole id of the unit that takes the place")
    parser.add_argument("old", metavar="OLD", help="the whole id of the unit that is replaced")
    gives_a_reason(parser)
    expects_a_version(parser, "the old unit")


def _supersede(call: Call) -> Answer:
    options = call.options
    successor = call.seat.supersede(options.new, options.old, options.reason, expected_version=options.expected_version)
    return _changed(successor, "superseding")


def _archive(call: Call) -> Answer:
    options = call.options
    return _changed(
        call.seat.archive(options.unit, options.reason, expected_version=options.expected_version), "archived"
    )


def _revive(call: Call) -> Answer:
    options = call.options
    return _changed(
        call.seat.revive(options.unit, options.reason, expected_version=options.expected_version), "revived"
    )


def _erase_arguments(parser: ArgumentParser) -> None:
    _with_reason(parser)
    parser.add_argument("--quoting", action="store_true", help="and units that say it in statements of their own")
    parser.add_argument("--yes", action="store_true", help="don't ask; needed where nobody is at a terminal")


def _erase(call: Call) -> Answer:
    options = call.options
    if not options.yes and not _confirmed(call):
        return Answer(data={"units": [], "events": 0}, text=lambda: "Nothing was erased.", exit_code=REFUSED)
    erased = call.seat.erase(
        options.unit, options.reason, quoting=options.quoting, expected_version=options.expected_version
    )
    return Answer(
        data=erased,
        text=lambda: (
            f"erased  {', '.join(erased.units) or options.unit}\n"
            f"  {erased.events} event payloads removed, {erased.files_searched} files searched: no byte of it is left"
        ),
    )


def _confirmed(call: Call) -> bool:
    if not at_terminal(sys.stdin):
        raise InvalidInput(
            "Erasing can't be undone, and nobody is at a terminal to confirm it.", hint="Add --yes if it is meant."
        )
    try:
        meant = show.unit_line(call.seat.get(call.options.unit), "unit")
    except NotFound:
        meant = f"the entry of the log {call.options.unit}"
    sys.stderr.write(f"{meant}\nErase it for good? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _resolve_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("dispute", metavar="ID", help="the whole id of the conflict or the proposal")
    decision = parser.add_mutually_exclusive_group(required=True)
    decision.add_argument("--winner", metavar="UNIT", help="the unit that stands")
    decision.add_argument("--both", action="store_true", help="both hold: neither excludes the other")
    gives_a_reason(parser)
    expects_a_version(parser, "the unit that loses")


def _resolve(call: Call) -> Answer:
    options = call.options
    resolved = call.seat.resolve(
        options.dispute,
        winner=options.winner,
        both=options.both,
        reason=options.reason,
        expected_version=options.expected_version,
    )
    return Answer(data=resolved, text=lambda: show.dispute(resolved))


COMMANDS = {
    "cite": Command(
        description="Add evidence to a unit. What it points to is checked: a commit, file or log entry must exist.",
        examples=(
            f"mnemarch cite {_ID} test:tests/test_checkout.py::test_retry",
            f"mnemarch cite {_ID} file:src/checkout.py#L10-L20",
        ),
        arguments=_cite_arguments,
        run=_cite,
    ),
    "use": Command(
        description="Say that this task used a unit. Each task counts once; three tasks publish a verified unit.",
        examples=(f"mnemarch use {_ID} --task T-42",),
        arguments=changes_a_unit,
        run=_use,
    ),
    "validate": Command(
        description="Raise or lower a unit's confidence by one signal. The signals of a person come only from a human.",
        examples=(f"mnemarch validate {_ID} pr_merged", f"mnemarch validate {_ID} tests_failed --expected-version 3"),
        arguments=_validate_arguments,
        run=_validate,
    ),
    "approve": Command(
        description="Say yes to a unit. A human's yes is evidence and verifies it.",
        examples=(f"mnemarch approve {_ID} --actor human:ada",),
        arguments=changes_a_unit,
        run=_approve,
    ),
    "reject": Command(
        description="Say no to a unit, and why: it leaves recall. An approval brings it back.",
        examples=(f'mnemarch reject {_ID} --reason "true only before the rewrite" --actor human:ada',),
        arguments=_with_reason,
        run=_reject,
    ),
    "supersede": Command(
        description="Put one unit in the place of another, in one step. Only one successor can win.",
        examples=(f'mnemarch supersede {_ID} {_OTHER_ID} --reason "limit raised" --expected-version 2',),
        arguments=_supersede_arguments,
        run=_supersede,
    ),
    "archive": Command(
        description="Take a unit out of recall. Nothing is lost; `revive` brings it back.",
        examples=(f'mnemarch archive {_ID} --reason "the module is gone" --actor system:janitor',),
        arguments=_with_reason,
        run=_archive,
    ),
    "revive": Command(
        description="Bring an archived unit back to the status it had.",
        examples=(f'mnemarch revive {_ID} --reason "the module is back" --actor human:ada',),
        arguments=_with_reason,
        run=_revive,
    ),
    "erase": Command(
        description=(
            "Delete the content of a unit, or of an entry of the log, for good: from the log, the units, the search\n"
            "index and the files. Units that say it in statements of their own are named, and nothing is erased,\n"
            "unless --quoting says that they are meant too. The hashes stay, so the log can still be audited. It asks\n"
            "first; where nobody can answer it needs --yes."
        ),
        examples=(f'mnemarch erase {_ID} --reason "personal data" --yes --actor human:ada',),
        arguments=_erase_arguments,
        run=_erase,
    ),
    "resolve": Command(
        description=(
            "Decide a conflict or a merge proposal: the winner stands and replaces the other side; or --both hold,\n"
            "stay as they are, and are not opposed to each other again."
        ),
        examples=(
            f'mnemarch resolve {_ID} --winner {_OTHER_ID} --reason "measured it" --actor human:ada',
            f'mnemarch resolve {_ID} --both --reason "two releases" --actor human:ada',
        ),
        arguments=_resolve_arguments,
        run=_resolve,
    ),
}

"""Looking at units: one, many, their stories and their disputes."""

from __future__ import annotations

from mnemarch.interfaces import show
from mnemarch.interfaces.command import Answer, Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser

    from mnemarch.interfaces.command import Call
    from mnemarch.model.outcome import Dispute

_ID = "01a1e10a-75ac-7d0c-9ca4-6a8510450e10"


def _one_unit(parser: ArgumentParser) -> None:
    parser.add_argument("unit", metavar="UNIT", help="the whole id of the unit")


def _nothing_more(parser: ArgumentParser) -> None:
    """These take only who and where."""


def _get(call: Call) -> Answer:
    unit = call.seat.get(call.options.unit)
    return Answer(data=unit, text=lambda: show.unit(unit))


def _units_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--kind", help="fact, preference, episode, skill, ...")
    parser.add_argument("--status", help="hypothesis, verified, published, deprecated or archived")
    parser.add_argument("--level", help="task, worktree, project or org")
    parser.add_argument("--domain", help="what they are about")
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="how many (default: 50)")
    parser.add_argument("--after", metavar="UNIT", help="the last id of the page before")


def _units(call: Call) -> Answer:
    options = call.options
    if options.after is not None:
        call.seat.get(options.after)  # After what is not there would be the first page, again and again.
    units = call.seat.units(
        kind=options.kind,
        status=options.status,
        level=options.level,
        domain=options.domain,
        limit=options.limit,
        after=options.after,
    )
    return Answer(data=units, text=lambda: show.units(units))


def _explain(call: Call) -> Answer:
    explanation = call.seat.explain(call.options.unit)

    def text() -> str:
        from mnemarch.interfaces.story import story

        return story(explanation)

    return Answer(data=explanation, text=text)


def _history(call: Call) -> Answer:
    events = call.seat.history(call.options.unit)
    return Answer(data=events, text=lambda: show.history(events))


def _conflicts(call: Call) -> Answer:
    return _disputed(call, call.seat.conflicts(), "conflict")


def _proposals(call: Call) -> Answer:
    return _disputed(call, call.seat.proposals(), "proposal")


def _disputed(call: Call, disputes: list[Dispute], what: str) -> Answer:
    def text() -> str:
        sides = {side for dispute in disputes for side in dispute.units}
        contents = {side: call.seat.get(side).content for side in sorted(sides)}
        return show.disputes(disputes, contents, what)

    return Answer(data=disputes, text=text)


COMMANDS = {
    "get": Command(
        description="Show one unit as it stands now, its confidence decayed to this moment.",
        examples=(f"mnemarch get {_ID}",),
        arguments=_one_unit,
        run=_get,
    ),
    "units": Command(
        description="List the units that can be seen from here, newest first.",
        examples=(
            "mnemarch units --status verified --level project",
            f"mnemarch units --kind episode --limit 20 --after {_ID}",
        ),
        arguments=_units_arguments,
        run=_units,
    ),
    "explain": Command(
        description="The story of a unit: who said it, what it rests on (✓ counts, … not yet), how sure it is and why.",
        examples=(f"mnemarch explain {_ID}",),
        arguments=_one_unit,
        run=_explain,
    ),
    "history": Command(
        description="The events of a unit, oldest first.",
        examples=(f"mnemarch history {_ID}", f"mnemarch history {_ID} --json"),
        arguments=_one_unit,
        run=_history,
    ),
    "conflicts": Command(
        description="The open contradictions that can be seen from here.",
        examples=("mnemarch conflicts", "mnemarch conflicts --worktree feat-login --json"),
        arguments=_nothing_more,
        run=_conflicts,
    ),
    "proposals": Command(
        description="Near-duplicates that wait for somebody to merge them (with resolve) or let them be.",
        examples=("mnemarch proposals",),
        arguments=_nothing_more,
        run=_proposals,
    ),
}

"""`janitor` and `adopt`: the memory after the code changed or a branch was merged."""

from __future__ import annotations

from mnemarch.errors import NotFound
from mnemarch.interfaces import show
from mnemarch.interfaces.command import Answer, Command, exit_code_of
from mnemarch.interfaces.progress import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser

    from mnemarch.interfaces.command import Call


def _nothing_more(parser: ArgumentParser) -> None:
    """Only who and where."""


def _janitor(call: Call) -> Answer:
    with counted("comparing with the code", "units") as progress:
        swept = call.memory.janitor(call.seat, progress)

    def text() -> str:
        done = f"{swept.archived:,} archived, {swept.revived:,} revived, {swept.moved:,} moved"
        lines = [f"checked  {swept.checked:,} units: {done}"]
        if swept.moved:
            lines.append("moved: the file they cite has another name, and they cite it by that now")
        if swept.skipped:
            lines.append(f"{swept.skipped:,} can't be judged from here (another project, or a worktree that is gone)")
        return "\n".join(lines)

    return Answer(data=swept, text=text)


def _adopt_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="WORKTREE", help="whose units (default: the seat's own)")
    parser.add_argument("--commit", metavar="HASH", help="what was merged, if the worktree's folder is gone")


def _adopt(call: Call) -> Answer:
    if call.options.commit is None:
        _check_there(call)
    adopted = call.seat.adopt(call.options.name, commit=call.options.commit)

    def text() -> str:
        lines = [show.unit_line(unit, "adopted") for unit in adopted.units]
        lines += [show.refused(refusal) for refusal in adopted.refused]
        return "\n".join(lines) or f"Worktree {show.clean(adopted.worktree)} has nothing verified to adopt."

    return Answer(data=adopted, text=text, exit_code=exit_code_of(*adopted.refused))


def _check_there(call: Call) -> None:
    """That git knows the worktree: what was merged of one that is gone has to be said."""
    from mnemarch.code.codebase import Codebase

    name, root = call.options.name or call.seat.scope.worktree, call.seat.presence.root
    known = sorted(Codebase(root).worktrees()) if root is not None else []
    if name is not None and known and name not in known:
        raise NotFound(
            f"There is no worktree {name!r} in this repository.",
            hint=f"There are: {', '.join(known)}. If it was removed, say what was merged: --commit HASH.",
        )


COMMANDS = {
    "janitor": Command(
        description=(
            "Compare every unit that cites a file or a symbol with what is committed: archive what is gone, revive\n"
            "what came back. A worktree's units are judged in that worktree, the project's on its default branch."
        ),
        examples=("mnemarch janitor", "mnemarch janitor --json"),
        arguments=_nothing_more,
        run=_janitor,
    ),
    "adopt": Command(
        description=(
            "Take over into the project what a worktree verified, each unit through the gate, once its branch is\n"
            "merged. What the gate refuses names its rule (exit code 1); a worktree that is not there, or is not\n"
            "merged yet, is wrong use (exit code 2)."
        ),
        examples=(
            "mnemarch adopt feat-login --actor orchestrator:lead",
            "mnemarch adopt feat-login --commit 1a2b3c4 --actor human:kim",
        ),
        arguments=_adopt_arguments,
        run=_adopt,
    ),
}

"""The grammar of the command line: every command by group, and a parser for the one that was typed."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter

from mnemarch.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Never

    from mnemarch.interfaces.command import Command

# In the order of the data's path. A module of `commands` is loaded only when one of its commands is typed.
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "stage: append freely": {
        "log": ("stage", "append a thought, a tool's output, anything, to the log"),
        "remember": ("stage", "claim something; it becomes a unit, joins one, or is refused by a rule"),
    },
    "loops: whether a task goes round in circles": {
        "approach": ("loops", "ask before acting: has this approach already failed here?"),
        "fail": ("loops", "report a failure; the verdict says whether to go on"),
        "attempts": ("loops", "what was tried in this task and failed"),
        "stuck": ("loops", "call a task stuck, or clear it"),
    },
    "gate: verification is what raises": {
        "verify": ("gate", "report how a task's verification went; the gate judges what it staged"),
        "promote": ("gate", "move a unit to a wider level"),
        "adopt": ("code", "take over what a merged worktree verified"),
    },
    "knowledge: the life of a unit": {
        "get": ("reading", "show one unit"),
        "units": ("reading", "list the units that can be seen from here"),
        "explain": ("reading", "where from, who, how sure and why, replaced by what, used by whom"),
        "history": ("reading", "the events of a unit"),
        "conflicts": ("reading", "open contradictions"),
        "proposals": ("reading", "near-duplicates that wait to be merged"),
        "resolve": ("lifecycle", "decide a conflict or a proposal"),
        "cite": ("lifecycle", "add evidence to a unit"),
        "use": ("lifecycle", "say that this task used a unit"),
        "validate": ("lifecycle", "raise or lower a unit's confidence by one signal"),
        "approve": ("lifecycle", "say yes to a unit; a human's yes is evidence"),
        "reject": ("lifecycle", "say no to a unit; it leaves recall"),
        "supersede": ("lifecycle", "put one unit in the place of another"),
        "archive": ("lifecycle", "take a unit out of recall, revivably"),
        "revive": ("lifecycle", "bring an archived unit back"),
        "erase": ("lifecycle", "delete a unit's content for good"),
    },
    "decisions: versioned, ranked, with their blast radius": {
        "decide": ("decide", "make a decision, or the next version of one"),
        "decisions": ("decide", "what is in force; show, history, load, relate, evidence, anchor"),
        "impact": ("decide", "what changing a decision would reach"),
    },
    "recall": {
        "recall": ("recall", "the units that answer a question, with reasons, and what was withheld"),
        "context": ("recall", "the same as one text for a model, within a budget of tokens"),
        "graph": ("graph", "what was asked, what helped and what is hot, in a session and over all; as a picture too"),
    },
    "operate": {
        "demo": ("demo", "five agents in five processes write to one memory at once, with proof"),
        "init": ("setup", "make a memory here and say what was found"),
        "doctor": ("setup", "look the memory over and say what is wrong"),
        "policy": ("setup", "the permission table in force"),
        "stats": ("operate", "counts and sizes"),
        "audit": ("operate", "walk the hash chains of the log"),
        "rebuild": ("operate", "recreate everything from the log and compare"),
        "reindex": ("operate", "make the search index anew"),
        "janitor": ("code", "compare what cites code with the code: archive what is gone, revive what is back"),
        "prune": ("operate", "archive old, worthless episodes and skills (a dry run unless --apply)"),
        "export": ("operate", "write the whole log as JSON lines"),
        "import": ("operate", "read an export back"),
        "backup": ("operate", "copy the database while others write"),
    },
}
MODULE_OF = {name: module for commands in GROUPS.values() for name, (module, _) in commands.items()}
SUMMARY_OF = {name: summary for commands in GROUPS.values() for name, (_, summary) in commands.items()}

# Accepted before and after the command.
PLACES = {
    "--actor": ("KIND:ID", "who acts: agent, orchestrator, human or system"),
    "--org": ("NAME", "the organisation (default: default)"),
    "--project": ("NAME", "the project"),
    "--worktree": ("NAME", "the worktree"),
    "--task": ("ID", "the task"),
    "--session": ("ID", "the conversation this belongs to"),
    "--store": ("FOLDER", "the folder that holds .mnemarch/"),
    "--root": ("FOLDER", "the root of the working tree (no variable)"),
}
_WIDTH_MAX = 118
_ENDING = """\
Who and where: --actor, --org, --project, --worktree, --task, --session and --store can also be set as MNEMARCH_ACTOR,
MNEMARCH_ORG, ... Inside a git repository the project and the worktree are found; `project` in mnemarch.toml renames it.
Where nothing names an actor it is human:<login> if both input and output are a terminal, else agent:cli: a human's
word is evidence, so a hook or a pipe is never taken for one.

Exit codes: 0 done, 1 refused or blocked, 2 wrong use, 3 store trouble, 130 interrupted."""


class _Formatter(RawDescriptionHelpFormatter):
    """Texts as they are written. The width is asked of the system here: argparse would load `shutil` for it."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=_width())


def _width() -> int:
    try:
        return min(os.get_terminal_size(1).columns, _WIDTH_MAX)
    except OSError:
        return _WIDTH_MAX


class _Parser(ArgumentParser):
    """Wrong use is an error like any other: it gets a hint, an exit code and, if asked for, its JSON form."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Options may stand between words that can be left out: argparse finds these only in a second, slower look."""
        found, unplaced = self.parse_known_args(args, namespace)
        return self.parse_intermixed_args(args, namespace) if unplaced else found

    def error(self, message: str) -> Never:
        raise InvalidInput(f"{message[:1].upper()}{message[1:]}.", hint=f"See: {self.prog} --help")


def split(argv: Sequence[str]) -> tuple[str | None, list[str]]:
    """The command in `argv`, wherever the options stand, and everything else."""
    value_follows = False
    for index, token in enumerate(argv):
        if value_follows:
            value_follows = False
        elif token in PLACES:
            value_follows = True
        elif not token.startswith("-"):
            return token, [*argv[:index], *argv[index + 1 :]]
    return None, list(argv)


def command_named(name: str) -> Command:
    module = MODULE_OF.get(name)
    if module is None:
        from difflib import get_close_matches

        near = get_close_matches(name, MODULE_OF, n=1)
        raise InvalidInput(
            f"There is no command {name!r}.", hint=f"Did you mean {near[0]}?" if near else "See: mnemarch --help"
        )
    path = f"mnemarch.interfaces.commands.{module}"
    __import__(path)
    command: Command = sys.modules[path].COMMANDS[name]
    return command


def parser_for(name: str, command: Command) -> ArgumentParser:
    """The whole grammar of one command."""
    examples = "\n".join(f"  {example}" for example in command.examples)
    parser = _Parser(
        prog=f"mnemarch {name}",
        description=command.description,
        epilog=f"examples:\n{examples}\n\nHow the options of who and where are found: mnemarch --help",
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    command.arguments(parser)
    places = parser.add_argument_group("who and where")
    for option, (metavar, meaning) in PLACES.items():
        places.add_argument(option, metavar=metavar, help=meaning)
    parser.add_argument("--json", action="store_true", help="answer with one JSON document")
    return parser


def overview() -> str:
    """What `mnemarch --help` says."""
    lines = [
        "usage: mnemarch [--json] [who and where] COMMAND ...",
        "",
        "A governed memory that coding agents share.",
        "",
    ]
    for group, commands in GROUPS.items():
        lines.append(f"{group}")
        lines += [f"  {name:<11}{summary}" for name, (_, summary) in commands.items()]
        lines.append("")
    lines.append("options, before or after the command")
    lines.append(f"  {'--json':<22}answer with one JSON document")
    lines += [f"  {f'{option} {metavar}':<22}{meaning}" for option, (metavar, meaning) in PLACES.items()]
    lines += [f"  {'--version':<22}the version", f"  {'COMMAND --help':<22}what a command takes, with examples", ""]
    return "\n".join([*lines, _ENDING])

"""The grammar of the command line: which command was typed, what it takes, and what its help says."""

from __future__ import annotations

import sys
from types import SimpleNamespace

from mnemarch.errors import InvalidInput
from mnemarch.interfaces.arguments import Typed, flags_of, is_option, is_text, is_word, missing, shown_name, values
from mnemarch.interfaces.command import Call, Command
from mnemarch.verbs import SECTIONS, VERBS
from mnemarch.verbs.types import FLAG, REQUIRED, WORDS, Parameter, Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any


# Commands that are no verbs, by section, and the module beside this one that has them.
PLAIN_COMMANDS = {
    "decisions: versioned, ranked, with their blast radius": {
        "decide": "decide",
        "decisions import": "decide",
        "decisions export": "decide",
    },
    "rules: what patches taught": {f"rules {act}": "rules" for act in ("learn", "check", "apply")},
    "recall": {
        f"graph {act}": "graph" for act in ("show", "ask", "answer", "feedback", "entity", "search", "sessions", "end")
    },
    "operate": {
        **dict.fromkeys(("demo", "init", "policy", "hook", "trust"), "plain_commands"),
        "mcp": "mcp",
        "copy": "operate",
        **dict.fromkeys(("install", "uninstall"), "install.commands"),
        **dict.fromkeys(("serve", "token list", "token create", "token revoke"), "http.serve"),
    },
}
# Words that stand for several commands, and what those do together.
_GROUPS = {
    "decisions": "List what is in force; also show, history, load, relate, ...",
    "rules": "List what patches taught; also learn, check, apply, ...",
    "graph": "Show what was asked, what helped and what is hot; also drawn.",
    "token": "Make, list and revoke what lets programs in to serve.",
    "core": "Show what stands in every prompt; also append, replace.",
}

# Accepted before and after the command.
PLACES = (
    Parameter("actor", WORDS, "who acts: agent, orchestrator or human", None, metavar="KIND:ID"),
    Parameter("org", WORDS, "the organisation (default: default)", None, metavar="NAME"),
    Parameter("project", WORDS, "the project", None, metavar="NAME"),
    Parameter("worktree", WORDS, "the worktree", None, metavar="NAME"),
    Parameter("task", WORDS, "the task", None, metavar="ID"),
    Parameter("session", WORDS, "the conversation this belongs to", None, metavar="ID"),
    Parameter(
        "store", WORDS, "the folder that holds .mnemarch/, or file:FOLDER, or postgresql://...", None, metavar="FOLDER"
    ),
    Parameter("root", WORDS, "the root of the working tree (no variable)", None, metavar="FOLDER"),
)
_FIRST_STEPS = {
    "mnemarch init": "make the memory of this repository",
    'mnemarch remember "..."': "say what others should know",
    'mnemarch recall "..."': "ask what is known",
    "mnemarch verify -- pytest": "let tests show that it holds",
    "mnemarch inbox": "see what waits for you",
    "mnemarch help COMMAND": "what a command takes, with examples",
}
_JSON = Parameter("json", FLAG, "answer with one JSON document", False)
_WIDTH_MAX = 118
_COLUMN = 26
_ENDING = (
    "Who and where: --actor, --org, --project, --worktree, --task, --session and --store can also be set as"
    " MNEMARCH_ACTOR, MNEMARCH_ORG, ... Inside a git repository the project and the worktree are found; `project` in"
    " mnemarch.toml renames it. Where nothing names an actor it is the coding agent that started the command; else you,"
    " if both input and output are a terminal (it asks once who you are); else agent:cli: a human's word is evidence,"
    " so a hook or a pipe is never taken for one.",
    "Exit codes: 0 done, 1 refused or blocked, 2 wrong use, 3 store trouble, 130 interrupted.",
)


def command_names() -> list[str]:
    """The whole name of every command, those of verbs first."""
    plain = [name for names in PLAIN_COMMANDS.values() for name in names]
    return [*filter(None, map(command_of, VERBS)), *plain]


def sections() -> dict[str, dict[str, str]]:
    """Every first word with what it does, by section, in the order of the data's path."""
    listed: dict[str, dict[str, str]] = {}
    for section, verbs in SECTIONS.items():
        names = [*PLAIN_COMMANDS.get(section, {}), *filter(None, map(command_of, verbs))]
        listed[section] = {
            name.split()[0]: _GROUPS.get(name.split()[0]) or sentence(command_named(name).description)
            for name in names
            if "--" not in name
        }
    return listed


def options_in(argv: Sequence[str]) -> Sequence[str]:
    """What stands before a lone `--`: after it everything is a word."""
    return argv[: argv.index("--")] if "--" in argv else argv


def asks_for_help(argv: Sequence[str]) -> bool:
    return not {"-h", "--help"}.isdisjoint(options_in(argv))


def split(argv: Sequence[str], takes: Iterable[Parameter] = ()) -> tuple[str | None, list[str]]:
    """The first word of `argv`, wherever the options stand, and everything else. The value of an option is no word."""
    valued = {flag for parameter in (*PLACES, *takes) if parameter.type is not FLAG for flag in flags_of(parameter)}
    value_follows = False
    for index, argument in enumerate(options_in(argv)):
        if value_follows:
            value_follows = False
        elif argument in valued:
            value_follows = True
        elif not is_option(argument):
            return argument, [*argv[:index], *argv[index + 1 :]]
    return None, list(argv)


def chosen(word: str, argv: Sequence[str]) -> tuple[str, list[str]]:
    """The whole name of the command: `decisions` and `show` are one, and so are `stuck` and `--clear`."""
    names = [name for name in command_names() if name.split()[0] == word]
    if not names:
        from difflib import get_close_matches

        near = get_close_matches(word, {name.split()[0] for name in command_names()}, n=1)
        raise InvalidInput(
            f"There is no command {word!r}.", hint=f"Did you mean {near[0]}?" if near else "See: mnemarch --help"
        )
    rest = list(argv)
    if word not in names:
        second, rest = split(argv, [parameter for name in names for parameter in command_named(name).takes])
        known = list(dict.fromkeys(name.split()[1] for name in names))
        if second is None and asks_for_help(rest):
            return word, rest
        if second not in {None, *known}:
            raise InvalidInput(f"{word} knows no {second!r}.", hint=f"Use one of: {', '.join(known)}.")
        word = f"{word} {second or known[0]}"
    for name in names:
        option = name.removeprefix(f"{word} ")
        if name != word and option in options_in(rest):
            rest.remove(option)
            return name, rest
    return _read_form(word, rest), rest


def _read_form(word: str, argv: Sequence[str]) -> str:
    """A command that also reads does so where no word says what to write: `log` alone is `log --read`."""
    name = f"{word} --read"
    takes = [parameter for verb in VERBS if command_of(verb) in {word, name} for parameter in verb.takes]
    reads = name in command_names() and not asks_for_help(argv) and split(argv, takes)[0] is None
    return name if reads else word


def command_of(verb: Verb) -> str | None:
    """What a verb is called on the command line."""
    return verb.name.partition(".")[2] if verb.command == "" else verb.command


def command_named(name: str) -> Command:
    """The command of that whole name: derived from its verb, or a plain one."""
    module = next((names[name] for names in PLAIN_COMMANDS.values() if name in names), None)
    if module is None:
        from mnemarch.interfaces.verb_commands import command_for

        return command_for(next(verb for verb in VERBS if command_of(verb) == name))
    path = f"mnemarch.interfaces.{module}"
    __import__(path)
    command: Command = sys.modules[path].COMMANDS[name]
    return command


def call_for(name: str, command: Command, argv: Sequence[str]) -> Call:
    """What was typed after the command, read by its parameters."""
    places = places_of(command)
    takes = (*command.takes, *places, _JSON)
    typed = Typed(takes, argv)
    if typed.unknown:
        # A word that is left over may be the value of an option that is unknown.
        others = [argument for argument in typed.unknown if argument[0] == "-"] or typed.unknown
        raise InvalidInput(f"{name} takes no {', '.join(others)}.", hint=_where_it_belongs(name, others[0]))
    if absent := missing(takes, typed):
        raise InvalidInput(
            f"{name} needs {' and '.join(absent)}.", hint=f"For example: {examples_of(name, command)[0]}"
        )
    arguments = values(command.takes, typed)
    return Call(
        _with_defaults(command.takes, arguments),
        arguments,
        places=_with_defaults((*PLACES, _JSON), values((*places, _JSON), typed)),
        begins_memory=command.begins_memory,
        only_reads=command.only_reads,
    )


def places_of(command: Command) -> list[Parameter]:
    """Who and where, but for options that mean something else to this command: `undo --actor` is who is undone."""
    own = {flag for parameter in command.takes for flag in flags_of(parameter)}
    return [place for place in PLACES if own.isdisjoint(flags_of(place))]


def _with_defaults(takes: Iterable[Parameter], arguments: dict[str, Any]) -> SimpleNamespace:
    defaults = {parameter.name: None if parameter.default is REQUIRED else parameter.default for parameter in takes}
    return SimpleNamespace(**defaults | arguments)


def _where_it_belongs(name: str, option: str) -> str:
    """A hint for what this command does not know: another form of it may, or a text lacks its quotes."""
    words = [parameter for parameter in command_named(name).takes if is_word(parameter)]
    if option[0] != "-" and words and is_text(words[-1]):
        return f'Put a text of several words in quotes: mnemarch {name} "..."'
    for form in _forms(name):
        if any(option in flags_of(parameter) for parameter in command_named(form).takes):
            return f"{option} goes with: mnemarch {form}"
    if any("--" in flags_of(parameter) for parameter in command_named(name).takes):
        return f"A command goes after --, for example: {examples_of(name, command_named(name))[0]}"
    return f"See: mnemarch {name} --help"


def _forms(name: str) -> list[str]:
    """The forms of a command that an option chooses."""
    return [other for other in command_names() if other.startswith(f"{name} --")]


# Help


def sentence(says: str) -> str:
    """The first sentence of a text."""
    ends = [at + 1 for end in (". ", "? ") if (at := says.find(end)) >= 0]
    return says[: min(ends, default=len(says))]


def examples_of(name: str, command: Command) -> tuple[str, ...]:
    """Examples as they are written, or what the required parameters make of it."""
    if command.examples:
        return command.examples
    required = [parameter for parameter in command.takes if parameter.default is REQUIRED]
    samples = [(*flags_of(each), each.type.sample or shown_name(each)) for each in required]
    return (" ".join(["mnemarch", name, *(part for sample in samples for part in sample)]),)


def help_for(name: str) -> str:
    """What `mnemarch NAME --help` says."""
    if name in _GROUPS:
        return _help_of_group(name)
    command = command_named(name)
    words = [
        f"[{shown_name(word)}]" if word.piped or word.default is not REQUIRED else shown_name(word) + "..." * word.many
        for word in command.takes
        if is_word(word)
    ]
    lines = [f"usage: mnemarch {' '.join([name, *words])} [options]", "", _wrapped(command.description), ""]
    lines += map(_described, (*command.takes, _JSON))
    lines += ["", "who and where (how they are found: mnemarch --help)", *map(_described, places_of(command))]
    forms = [_row(form.removeprefix(f"{name} "), sentence(command_named(form).description)) for form in _forms(name)]
    examples = [f"  {example}" for example in examples_of(name, command)]
    return "\n".join([*lines, *(["", "also", *forms] if forms else []), "", "examples", *examples])


def _help_of_group(word: str) -> str:
    names = [name for name in command_names() if name.startswith(f"{word} ") and "--" not in name]
    rows = [_row(name, sentence(command_named(name).description)) for name in names]
    usage = f"usage: mnemarch {word} [SUBCOMMAND] ...   (default: {names[0].split()[1]})"
    return "\n".join([usage, "", *rows, "", f"Options and examples: mnemarch {names[0]} --help"])


def _described(parameter: Parameter) -> str:
    flags = flags_of(parameter)
    value = "" if parameter.type is FLAG else shown_name(parameter)
    return _row(f"{' or '.join(flags)} {value}".strip(), parameter.says)


def _row(name: str, says: str) -> str:
    from textwrap import wrap

    first, *others = wrap(says, max(_width() - _COLUMN, 30)) or [""]
    head = f"  {name:<{_COLUMN - 4}}  " if len(name) <= _COLUMN - 4 else f"  {name}\n{'':<{_COLUMN}}"
    return "\n".join([f"{head}{first}".rstrip(), *(f"{'':<{_COLUMN}}{line}" for line in others)])


def _wrapped(text: str) -> str:
    from textwrap import fill

    return fill(text, _width())


def _width() -> int:
    from shutil import get_terminal_size

    return min(get_terminal_size((_WIDTH_MAX, 0)).columns, _WIDTH_MAX)


def overview() -> str:
    """What `mnemarch --help` says."""
    lines = ["usage: mnemarch [--json] [who and where] COMMAND ...", ""]
    lines += ["A governed memory that coding agents share.", "", "start here"]
    lines += [f"  {step:<34}{says}" for step, says in _FIRST_STEPS.items()] + [""]
    for section, names in sections().items():
        lines += [section, *(f"  {name:<16}{says}" for name, says in names.items()), ""]
    lines += ["options, before or after the command", *map(_described, (_JSON, *PLACES))]
    lines += [_row("--version", "the version"), _row("COMMAND --help", "what a command takes, with examples"), ""]
    return "\n".join([*lines, "\n\n".join(map(_wrapped, _ENDING))])

"""`mnemarch`: reads the command line, runs the command and prints its answer once. Errors become an exit code."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace

from mnemarch import errors
from mnemarch.errors import InvalidInput, MnemarchError
from mnemarch.interfaces.command import (
    BUG,
    DONE,
    INTERRUPTED,
    REFUSED,
    STORE_TROUBLE,
    WRONG_USE,
    Answer,
    Call,
    Command,
    at_terminal,
)
from mnemarch.interfaces.text import json_text, with_short_ids
from mnemarch.lazy import loaded
from mnemarch.model.value import replace
from mnemarch.verbs import VERBS
from mnemarch.verbs import types as of
from mnemarch.verbs.types import Parameter, Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import IO, Any

EXIT_CODE_OF: dict[type[BaseException], int] = {
    errors.NotAllowed: REFUSED,
    errors.Conflict: REFUSED,
    InvalidInput: WRONG_USE,
    errors.NotFound: WRONG_USE,
    errors.AnalystFailed: WRONG_USE,
    errors.StoreError: STORE_TROUBLE,
    OSError: STORE_TROUBLE,
    KeyboardInterrupt: INTERRUPTED,
}
# Names that other programs use for a command.
_MEANT = dict.fromkeys(("forget", "delete", "remove"), "erase") | dict.fromkeys(("search", "find", "ask"), "recall")
_MEANT |= dict.fromkeys(("list", "ls"), "units") | dict.fromkeys(("add", "save", "note", "store"), "remember")
_MEANT |= {"rm": "erase", "test": "verify", "run": "verify", "version": "--version"}
# Commands that are not verbs, by section. Each has the name of its module in this package.
PLAIN_COMMANDS = {
    "decisions: versions, and what a change would reach": dict.fromkeys(
        ("decide", "decisions import", "decisions export"), "decide"
    ),
    "rules: learned from patches": {f"rules {act}": "rules" for act in ("learn", "check", "apply")},
    "recall": {"graph": "graph"},
    "operate": {
        **dict.fromkeys(("demo", "init", "hook", "trust"), "plain_commands"),
        "mcp": "mcp",
        "copy": "operate",
        **dict.fromkeys(("install", "uninstall"), "install"),
        **dict.fromkeys(("serve", "token list", "token create", "token revoke"), "http"),
    },
}
# Accepted before and after the command.
PLACES = tuple(
    Parameter(name, of.WORDS, says, None, metavar=metavar)
    for name, metavar, says in (
        ("actor", "KIND:ID", "who acts: agent, orchestrator or human"),
        ("org", "NAME", "the organisation (default: default)"),
        ("project", "NAME", "the project"),
        ("worktree", "NAME", "the worktree"),
        ("task", "ID", "the task"),
        ("session", "ID", "the conversation this belongs to"),
        ("store", "FOLDER", "the folder that holds .mnemarch/, or file:FOLDER, or postgresql://..."),
        ("root", "FOLDER", "the root of the working tree (no variable)"),
    )
)
JSON = Parameter("json", of.FLAG, "answer with one JSON document", False)
_STDIN_BYTES_MAX = 64 << 20
_RECEIPT_BYTES_MAX = 65_536


def main(argv: Sequence[str] | None = None) -> int:
    typed = list(sys.argv[1:] if argv is None else argv)
    _let_any_text_out()
    printer = _Printer(as_json="--json" in _options_in(typed))
    try:
        return _run(typed, printer)
    except BrokenPipeError:
        _ignore_output()
        return DONE
    except (MnemarchError, OSError, KeyboardInterrupt) as error:
        return printer.failed(error)
    except Exception:  # noqa: BLE001 - a bug must not look like a refusal, which is what Python's own exit code 1 means
        import traceback

        traceback.print_exc()
        return BUG


def _run(argv: list[str], printer: _Printer) -> int:
    word, rest = split(argv)
    if word == "help":  # `help recall` is `recall --help`.
        word, rest = split([*rest, "--help"])
    if word is None:
        return _without_command(rest)
    name, rest = chosen(word, rest)
    if _asks_for_help(rest):
        from mnemarch.interfaces.plain_commands import help_for

        _write(help_for(name))
        return DONE
    command = command_named(name)
    call = call_for(name, command, rest)
    try:
        answer = command.run(call)
        printer.answered(answer)
    finally:
        call.close()
    return answer.exit_code


def _without_command(options: list[str]) -> int:
    from mnemarch.interfaces.plain_commands import overview

    if "--version" in options:
        from mnemarch import __version__

        _write(f"mnemarch {__version__}")
    elif _asks_for_help(options):
        _write(overview())
    elif options:
        raise InvalidInput(f"No command was given, only: {' '.join(options)}.", hint="See: mnemarch --help")
    else:
        print(overview(), file=sys.stderr)
        return WRONG_USE
    return DONE


class _Printer:
    """Writes one answer or one error. After an answer, nothing else goes to stdout."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._answered = False

    def answered(self, answer: Answer) -> None:
        if answer.is_printed:
            return
        text = json_text(answer.data) if self._as_json else answer.text()
        aside = answer.aside() if answer.aside is not None and not self._as_json else ""
        self._answered = True
        if text:
            _write(text)
        if aside:
            print(aside, file=sys.stderr)

    def failed(self, error: BaseException) -> int:
        exit_code = next(code for kind, code in EXIT_CODE_OF.items() if isinstance(error, kind))
        message, hint = _words(error)
        if self._as_json and not self._answered:
            facts = {"type": type(error).__name__, "message": message, "hint": hint}
            _write(json_text({"error": facts | carried(error)}))
            return exit_code
        print(with_short_ids(f"mnemarch: {message}"), file=sys.stderr)
        if hint:
            print(with_short_ids(f"hint: {hint}"), file=sys.stderr)
        return exit_code


def _words(error: BaseException) -> tuple[str, str]:
    if isinstance(error, MnemarchError):
        return error.message, error.hint_for("command line")
    if isinstance(error, OSError):
        named = f"{error.filename}: " if error.filename else ""
        return f"{named}{error.strerror or error}.", "Check the path and its rights."
    return "Interrupted.", "What was acknowledged is stored, and nothing is half-written. Run the command again."


def carried(error: BaseException) -> dict[str, Any]:
    """The facts that an error carries beside its message: both versions of a conflict, the rule of a refusal."""
    names = ("rule", "expected_version", "actual_version", "current", "proposed")
    return {name: getattr(error, name) for name in names if hasattr(error, name)}


def _let_any_text_out() -> None:
    """Print a question mark for a character that the terminal can't show, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _write(text: str) -> None:
    """Print a text and flush it. It is no error if the reader has closed the pipe (`| head -1`)."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        _ignore_output()


def _ignore_output() -> None:
    """Redirect stdout to the null device after the reader closed the pipe, so that closing stdout raises nothing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# From the command line to a call. Loading argparse would take a quarter of the time that a bare Python takes to start


def command_names() -> list[str]:
    """The full names of all commands, verbs first."""
    plain = [name for names in PLAIN_COMMANDS.values() for name in names]
    return [*filter(None, map(command_of, VERBS)), *plain]


def _options_in(argv: Sequence[str]) -> Sequence[str]:
    """The arguments before a lone `--`; everything after it is a word."""
    return argv[: argv.index("--")] if "--" in argv else argv


def _asks_for_help(argv: Sequence[str]) -> bool:
    return not {"-h", "--help"}.isdisjoint(_options_in(argv))


def split(argv: Sequence[str], takes: Iterable[Parameter] = ()) -> tuple[str | None, list[str]]:
    """The first word of `argv`, before or after options, and all other arguments. An option's value is no word."""
    valued = {flag for parameter in (*PLACES, *takes) if parameter.type is not of.FLAG for flag in flags_of(parameter)}
    value_follows = False
    for index, argument in enumerate(_options_in(argv)):
        if value_follows:
            value_follows = False
        elif argument in valued:
            value_follows = True
        elif not _is_option(argument):
            return argument, [*argv[:index], *argv[index + 1 :]]
    return None, list(argv)


def chosen(word: str, argv: Sequence[str]) -> tuple[str, list[str]]:
    """The full name of the command ("decisions show", "stuck --clear"), and the other arguments."""
    names = [name for name in command_names() if name.split()[0] == word]
    if not names:
        from difflib import get_close_matches

        near = _MEANT.get(word) or "".join(get_close_matches(word, {name.split()[0] for name in command_names()}, n=1))
        hint = f"Did you mean {near}?" if near else "See: mnemarch --help"
        raise InvalidInput(f"There is no command {word!r}.", hint=hint)
    rest = list(argv)
    if word not in names:
        second, rest = split(argv, [parameter for name in names for parameter in command_named(name).takes])
        known = list(dict.fromkeys(name.split()[1] for name in names))
        if second is None and _asks_for_help(rest):
            return word, rest
        if second not in {None, *known}:
            raise InvalidInput(f"{word} has no subcommand {second!r}.", hint=f"Use one of: {', '.join(known)}.")
        word = f"{word} {second or known[0]}"
    for name in names:
        option = name.removeprefix(f"{word} ")
        if name != word and option in _options_in(rest):
            rest.remove(option)
            return name, rest
    # A command with a form for reading reads if no text was typed: `log` alone is `log --read`.
    reading = f"{word} --read"
    takes = [parameter for verb in VERBS if command_of(verb) in {word, reading} for parameter in verb.takes]
    reads = reading in names and not _asks_for_help(rest) and split(rest, takes)[0] is None
    return reading if reads else word, rest


def command_of(verb: Verb) -> str | None:
    """The name of a verb's command."""
    return verb.name.partition(".")[2] if verb.command == "" else verb.command


def command_named(name: str) -> Command:
    """The command of this full name with its help, made from its verb or taken from its module."""
    module = next((names[name] for names in PLAIN_COMMANDS.values() if name in names), None)
    if module is None:
        from mnemarch.interfaces.command import command_for

        verb = next(verb for verb in VERBS if command_of(verb) == name)
        command, helped_by = command_for(verb), verb.name
    else:
        command, helped_by = loaded(f"mnemarch.interfaces.{module}").COMMANDS[name], name
    description, examples = of.help_of(helped_by)
    return replace(command, description=description, examples=examples)


def call_for(name: str, command: Command, argv: Sequence[str]) -> Call:
    """Parse the arguments after the command."""
    places = places_of(command)
    takes = (*command.takes, *places, JSON)
    typed = _Typed(takes, argv)
    absent = missing(takes, typed)
    if typed.unknown or absent:
        from mnemarch.interfaces.plain_commands import examples_of, where_it_belongs

        # A leftover word may be the value of an unknown option, so options are reported first.
        others = [argument for argument in typed.unknown if argument[0] == "-"] or typed.unknown
        if others:
            raise InvalidInput(f"{name} does not take {', '.join(others)}.", hint=where_it_belongs(name, others[0]))
        example = examples_of(name, command)[0]
        raise InvalidInput(f"{name} needs {' and '.join(absent)}.", hint=f"For example: {example}")
    arguments = values(command.takes, typed)
    return Call(
        _with_defaults(command.takes, arguments),
        arguments,
        places=_with_defaults((*PLACES, JSON), values((*places, JSON), typed)),
        begins_memory=command.begins_memory,
        only_reads=command.only_reads,
    )


def places_of(command: Command) -> list[Parameter]:
    """The options for actor and place, without those that this command uses for something else (`undo --actor`)."""
    own = {flag for parameter in command.takes for flag in flags_of(parameter)}
    return [place for place in PLACES if own.isdisjoint(flags_of(place))]


def _with_defaults(takes: Iterable[Parameter], arguments: dict[str, Any]) -> SimpleNamespace:
    defaults = {parameter.name: None if parameter.default is of.REQUIRED else parameter.default for parameter in takes}
    return SimpleNamespace(**defaults | arguments)


# From arguments to values


def flags_of(parameter: Parameter) -> list[str]:
    """The options of a parameter; empty if the parameter is a word."""
    if parameter.flag is None:
        return [] if parameter.default is of.REQUIRED else [f"--{parameter.name.replace('_', '-')}"]
    return parameter.flag.split("|") if parameter.flag else []


def shown_name(parameter: Parameter) -> str:
    """The name of a parameter's value in help texts and errors."""
    return parameter.metavar or parameter.type.metavar or parameter.name.upper()


def called(parameter: Parameter) -> str:
    """The name of a parameter in errors: its option, or its word."""
    return (flags_of(parameter) or [shown_name(parameter)])[0]


def is_word(parameter: Parameter) -> bool:
    """Whether a parameter takes a word or words. A piped list takes none: it comes from standard input."""
    return not flags_of(parameter) and not (parameter.many and parameter.piped)


def _is_option(argument: str) -> bool:
    """Whether an argument is an option. A lone dash (standard input) and a negative number are none."""
    return argument[:1] == "-" and argument != "-" and not argument[1:2].isdigit()


class _Typed:
    """The arguments of one command line, assigned to their parameters."""

    def __init__(self, takes: Iterable[Parameter], argv: Sequence[str]) -> None:
        self.unknown: list[str] = []
        # Keyed by identity, since the word WORKTREE and the option --worktree share a name.
        self._texts: dict[int, Any] = {}
        self._words: list[str] = []
        self._flags = {flag: parameter for parameter in takes for flag in flags_of(parameter)}
        arguments = iter(argv)
        for argument in arguments:
            if argument == "--" and "--" in self._flags:
                self._texts[id(self._flags["--"])] = list(arguments)
            elif argument == "--":
                self._words.extend(arguments)
            elif _is_option(argument):
                self._option(argument, arguments)
            else:
                self._words.append(argument)
        words = [parameter for parameter in takes if is_word(parameter)]
        self._texts |= {id(parameter): word for parameter, word in zip(words, self._words, strict=False)}
        if words and words[-1].many and len(self._words) >= len(words):
            # The last parameter takes all remaining words.
            self._texts[id(words[-1])] = self._words[len(words) - 1 :]
        elif words and words[-1].name == "query":
            # A question needs no quotes. A stored text does, or a mistyped option would become part of it.
            self._texts[id(words[-1])] = " ".join(self._words[len(words) - 1 :]) or None
        else:
            self.unknown += map(repr, self._words[len(words) :])

    def text(self, parameter: Parameter) -> Any:
        """The typed value of a parameter: a text, a list of texts, or the setting of a switch. None if it is absent."""
        return self._texts.get(id(parameter))

    def _option(self, argument: str, arguments: Iterator[str]) -> None:
        flag, equals, text = argument.partition("=")
        if argument[:2] in self._flags and argument[1] != "-":
            flag, equals, text = argument[:2], argument[2:3], argument[2:].removeprefix("=")
        parameter = self._flags.get(flag)
        if parameter is None:
            self.unknown.append(flag)
        elif parameter.type is of.FLAG:
            self._switch(parameter, flag, equals)
        else:
            content = text if equals else next(arguments, None)
            if content is None or (not equals and _is_option(content)):
                dash = f"; with = if it begins with a dash: {flag}={content}" if content else ""
                raise InvalidInput(f"{flag} needs a value.", hint=f"Write {flag} {shown_name(parameter)}{dash}.")
            if parameter.many:
                self._texts.setdefault(id(parameter), []).append(content)
            elif parameter.name == "actor" and (first := self._texts.setdefault(id(parameter), content)) != content:
                raise InvalidInput(f"{flag} has two values, {first!r} and {content!r}.", hint="Leave one of them out.")
            else:
                self._texts[id(parameter)] = content

    def _switch(self, parameter: Parameter, flag: str, equals: str) -> None:
        """Set a switch: it inverts its default. In a pair such as --worked and --failed, the first means True."""
        both = flags_of(parameter)
        setting = flag == both[0] if len(both) > 1 else not parameter.default
        if equals:
            raise InvalidInput(f"{flag} takes no value.", hint=f"Write {flag} alone.")
        if self._texts.get(id(parameter), setting) != setting:
            raise InvalidInput(f"{' and '.join(both)} can't go together.", hint="Leave one of them out.")
        self._texts[id(parameter)] = setting


def values(takes: Iterable[Parameter], typed: _Typed) -> dict[str, Any]:
    """The values of the given parameters, by name."""
    from_stdin = [each for each in takes if is_text(each) and typed.text(each) == "-"]
    if len(from_stdin) > 1:
        names = " and ".join(map(called, from_stdin))
        raise InvalidInput(f"Standard input holds one text, not {names}.", hint="Write the other as an argument.")
    content = {}
    for parameter in takes:
        item = typed.text(parameter)
        if parameter.many and parameter.piped:
            content[parameter.name] = [of.read_one(parameter, line, where) for where, line in _lines(parameter)]
        elif item is not None or parameter.piped:
            content[parameter.name] = _value(parameter, item)
    return content


def is_text(parameter: Parameter) -> bool:
    return parameter.type is of.TEXT or parameter.type is of.OUTPUT


def missing(takes: Iterable[Parameter], typed: _Typed) -> list[str]:
    """The names of the required parameters that were not given."""
    return [
        " or ".join(flags_of(parameter)) or shown_name(parameter)
        for parameter in takes
        if parameter.default is of.REQUIRED
        and typed.text(parameter) is None
        # A terminal supplies no text.
        and not (parameter.piped and (parameter.many or not at_terminal(sys.stdin)))
    ]


def _value(parameter: Parameter, item: Any) -> Any:
    what = called(parameter)
    if is_text(parameter):
        return text_or_stdin(item, errors="replace" if parameter.type is of.OUTPUT else "strict")
    if parameter.type is of.RECEIPT:
        item = text_or_stdin(item) if item == "-" else _receipt_text(item, what)
    if parameter.type is of.OBJECT and item[:1] == "@":
        item = _file_text(item[1:])
    return of.read(parameter, item, what)


def text_or_stdin(argument: str | None, *, errors: str = "strict") -> str:
    """The argument, or standard input if the argument is `-` or is absent while a pipe supplies the text."""
    if argument is not None and argument != "-":
        return argument
    if is_typed := at_terminal(sys.stdin):
        if argument is None:
            raise InvalidInput("No text was given.", hint="Give it as an argument, or pipe it in and write - for it.")
        print("Type the text, then press Ctrl-D on an empty line: ", end="", file=sys.stderr, flush=True)
    raw = _stdin().read(_STDIN_BYTES_MAX + 1)
    if is_typed and not raw.strip():
        raise InvalidInput("Nothing was typed.", hint="Give the text as an argument, or pipe it in and write - for it.")
    if len(raw) > _STDIN_BYTES_MAX:
        raise InvalidInput(
            f"Standard input has more than {_STDIN_BYTES_MAX} bytes.", hint="Give a summary, and cite the source."
        )
    return _decoded(raw, "Standard input", errors).removesuffix("\n").removesuffix("\r")


def _lines(parameter: Parameter) -> Iterator[tuple[str, str]]:
    """The non-empty lines of standard input, each after its name for errors ("Line 3")."""
    if at_terminal(sys.stdin):
        raise InvalidInput(
            f"The {parameter.name} are read from standard input, as JSON lines.",
            hint="Pipe a file in: ... < lines.jsonl",
        )
    for number, raw in enumerate(_stdin(), start=1):
        line = _decoded(raw, f"Line {number}")
        if line.strip():
            yield f"Line {number}", line


def _stdin() -> IO[bytes]:
    if sys.stdin is None:
        raise InvalidInput("Standard input is closed.", hint="Give the text as an argument, or pipe it in.")
    return sys.stdin.buffer


def _receipt_text(typed: str, what: str) -> str:
    """A receipt's JSON: the argument itself, or the content of the file that it names."""
    if typed.lstrip().startswith("{"):
        return typed
    from mnemarch.files import read_small

    try:
        return read_small(typed, _RECEIPT_BYTES_MAX).decode()
    except (OSError, ValueError) as error:
        hint = "Give the receipt's JSON, or a file."
        raise InvalidInput(f"{what}: {typed!r} can't be read: {error}.", hint=hint) from None


def _file_text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return _decoded(file.read(), path)
    except OSError as error:
        raise InvalidInput(f"{path!r} can't be read: {error.strerror}.", hint="Check the path after the @.") from None


def _decoded(raw: bytes, what: str, errors: str = "strict") -> str:
    try:
        return raw.decode(errors=errors)
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{what} is not valid UTF-8 at byte {error.start}; nothing was stored.",
            hint="Convert it first, for example: iconv -f latin1 -t utf-8",
        ) from None

"""`mnemarch`: finds the command, runs it and prints its answer once. Errors become a message and an exit code."""

from __future__ import annotations

import os
import sys

from mnemarch import errors
from mnemarch.errors import InvalidInput, MnemarchError
from mnemarch.interfaces import grammar
from mnemarch.interfaces.command import BUG, DONE, INTERRUPTED, REFUSED, STORE_TROUBLE, WRONG_USE, Answer
from mnemarch.interfaces.text import json_text, with_short_ids
from mnemarch.verbs import SECTIONS
from mnemarch.verbs.types import FLAG, REQUIRED, Parameter, help_of, help_texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


_WIDTH_MAX = 118
_COLUMN = 26
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


def main(argv: Sequence[str] | None = None) -> int:
    typed = list(sys.argv[1:] if argv is None else argv)
    _let_any_text_out()
    printer = _Printer(as_json="--json" in grammar.options_in(typed))
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
    word, rest = grammar.split(argv)
    if word == "help":  # `help recall` is `recall --help`.
        word, rest = grammar.split([*rest, "--help"])
    if word is None:
        return _without_command(rest)
    name, rest = grammar.chosen(word, rest)
    if grammar.asks_for_help(rest):
        _write(help_for(name))
        return DONE
    command = grammar.command_named(name)
    call = grammar.call_for(name, command, rest)
    try:
        answer = command.run(call)
        printer.answered(answer)
    finally:
        call.close()
    return answer.exit_code


def _without_command(options: list[str]) -> int:
    if "--version" in options:
        from mnemarch import __version__

        _write(f"mnemarch {__version__}")
    elif grammar.asks_for_help(options):
        _write(overview())
    elif options:
        raise InvalidInput(f"There is no command in: {' '.join(options)}.", hint="See: mnemarch --help")
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
    return "Interrupted.", "What was acknowledged is stored, nothing is half-written; the command can be run again."


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


# Help


def sections() -> dict[str, dict[str, str]]:
    """The summary of each command's first word, by section, in the order of the data's path."""
    listed: dict[str, dict[str, str]] = {}
    texts = help_texts()
    for section, verbs in SECTIONS.items():
        names = [*grammar.PLAIN_COMMANDS.get(section, {}), *filter(None, map(grammar.command_of, verbs))]
        listed[section] = {
            word: texts[f"group {word}"][0] if f"group {word}" in texts else _summary(name)
            for name in names
            if "--" not in name and (word := name.split()[0])
        }
    return listed


def _summary(name: str) -> str:
    """The first sentence of a command's description."""
    return sentence(grammar.command_named(name).description)


def sentence(says: str) -> str:
    """The first sentence of a text."""
    ends = [at + 1 for end in (". ", "? ") if (at := says.find(end)) >= 0]
    return says[: min(ends, default=len(says))]


def help_for(name: str) -> str:
    """The text of `mnemarch NAME --help`."""
    if f"group {name}" in help_texts():
        return _help_of_group(name)
    command = grammar.command_named(name)
    words = [
        f"[{grammar.shown_name(word)}]"
        if word.piped or word.default is not REQUIRED
        else grammar.shown_name(word) + "..." * word.many
        for word in command.takes
        if grammar.is_word(word)
    ]
    lines = [f"usage: mnemarch {' '.join([name, *words])} [options]", "", _wrapped(command.description), ""]
    lines += map(_described, (*command.takes, grammar.JSON))
    lines += ["", "who and where (how they are found: mnemarch --help)", *map(_described, grammar.places_of(command))]
    forms = [_row(form.removeprefix(f"{name} "), _summary(form)) for form in grammar.forms(name)]
    examples = [f"  {example}" for example in grammar.examples_of(name, command)]
    return "\n".join([*lines, *(["", "also", *forms] if forms else []), "", "examples", *examples])


def _help_of_group(word: str) -> str:
    names = [name for name in grammar.command_names() if name.startswith(f"{word} ") and "--" not in name]
    rows = [_row(name, _summary(name)) for name in names]
    usage = f"usage: mnemarch {word} [SUBCOMMAND] ...   (default: {names[0].split()[1]})"
    return "\n".join([usage, "", *rows, "", f"Options and examples: mnemarch {names[0]} --help"])


def _described(parameter: Parameter) -> str:
    flags = grammar.flags_of(parameter)
    value = "" if parameter.type is FLAG else grammar.shown_name(parameter)
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
    """The text of `mnemarch --help`."""
    lines = ["usage: mnemarch [--json] [who and where] COMMAND ...", ""]
    lines += ["A governed memory that coding agents share.", "", "start here"]
    lines += [f"  {step}" for step in help_texts()["first steps"]] + [""]
    for section, names in sections().items():
        lines += [section, *(f"  {name:<16}{says}" for name, says in names.items()), ""]
    lines += ["options, before or after the command", *map(_described, (grammar.JSON, *grammar.PLACES))]
    lines += [_row("--version", "the version"), _row("COMMAND --help", "what a command takes, with examples"), ""]
    lines += [_wrapped(help_of("who and where")[0]), "", _wrapped(help_of("exit codes")[0])]
    return "\n".join(lines)

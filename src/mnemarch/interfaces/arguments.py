"""What was typed becomes values: words, options, standard input and files, read by the types of the parameters.

Not by argparse: it would have to be told every row of the table again, and loading it costs a quarter of a bare Python.
"""

from __future__ import annotations

import sys

from mnemarch.errors import InvalidInput
from mnemarch.interfaces.command import at_terminal
from mnemarch.verbs.types import FLAG, OBJECT, OUTPUT, RECEIPT, REQUIRED, TEXT, Parameter, read, read_one

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import IO, Any


_STDIN_BYTES_MAX = 64 << 20
_RECEIPT_BYTES_MAX = 65_536


def flags_of(parameter: Parameter) -> list[str]:
    """The options that give a parameter; none for a word."""
    if parameter.flag is None:
        return [] if parameter.default is REQUIRED else [f"--{parameter.name.replace('_', '-')}"]
    return parameter.flag.split("|") if parameter.flag else []


def shown_name(parameter: Parameter) -> str:
    """How a parameter is called in help texts and errors."""
    return parameter.metavar or parameter.type.metavar or parameter.name.upper()


def is_word(parameter: Parameter) -> bool:
    """Whether a parameter is a word of the command line, or a list several; what is piped is on standard input."""
    return not flags_of(parameter) and not (parameter.many and parameter.piped)


def is_option(argument: str) -> bool:
    """Whether an argument is an option: a lone dash is standard input, and a negative number is a number."""
    return argument[:1] == "-" and argument != "-" and not argument[1:2].isdigit()


class Typed:
    """The arguments of one command line, sorted by the parameters that they belong to.

    By the parameter itself and not by its name: a word WORKTREE and the option `--worktree` would be two.
    """

    def __init__(self, takes: Iterable[Parameter], argv: Sequence[str]) -> None:
        self.unknown: list[str] = []
        self._texts: dict[int, Any] = {}
        self._words: list[str] = []
        self._flags = {flag: parameter for parameter in takes for flag in flags_of(parameter)}
        arguments = iter(argv)
        for argument in arguments:
            if argument == "--" and "--" in self._flags:
                self._texts[id(self._flags["--"])] = list(arguments)
            elif argument == "--":
                self._words.extend(arguments)
            elif is_option(argument):
                self._option(argument, arguments)
            else:
                self._words.append(argument)
        words = [parameter for parameter in takes if is_word(parameter)]
        self._texts |= {id(parameter): word for parameter, word in zip(words, self._words, strict=False)}
        if words and words[-1].many and len(self._words) >= len(words):
            # The last of them takes all that is left.
            self._texts[id(words[-1])] = self._words[len(words) - 1 :]
        elif words and words[-1].name == "query":
            # A question need not be quoted. What is written down has to be: a forgotten option would become part of it.
            self._texts[id(words[-1])] = " ".join(self._words[len(words) - 1 :]) or None
        else:
            self.unknown += map(repr, self._words[len(words) :])

    def text(self, parameter: Parameter) -> Any:
        """What was typed for a parameter, or None: a text, texts, or how a switch was set."""
        return self._texts.get(id(parameter))

    def _option(self, argument: str, arguments: Iterator[str]) -> None:
        flag, equals, text = argument.partition("=")
        if argument[:2] in self._flags and argument[1] != "-":
            flag, equals, text = argument[:2], argument[2:3], argument[2:].removeprefix("=")
        parameter = self._flags.get(flag)
        if parameter is None:
            self.unknown.append(flag)
        elif parameter.type is FLAG:
            self._switch(parameter, flag, equals)
        else:
            content = text if equals else next(arguments, None)
            if content is None or (not equals and is_option(content)):
                dash = f"; with = if it begins with a dash: {flag}={content}" if content else ""
                raise InvalidInput(f"{flag} needs a value.", hint=f"Write {flag} {shown_name(parameter)}{dash}.")
            if parameter.many:
                self._texts.setdefault(id(parameter), []).append(content)
            else:
                self._texts[id(parameter)] = content

    def _switch(self, parameter: Parameter, flag: str, equals: str) -> None:
        """An option without a value turns the default around; of two that exclude each other the first says yes."""
        both = flags_of(parameter)
        setting = flag == both[0] if len(both) > 1 else not parameter.default
        if equals:
            raise InvalidInput(f"{flag} takes no value.", hint=f"Write {flag} alone.")
        if self._texts.get(id(parameter), setting) != setting:
            raise InvalidInput(f"{' and '.join(both)} exclude each other.", hint="Leave one of them out.")
        self._texts[id(parameter)] = setting


def values(takes: Iterable[Parameter], typed: Typed) -> dict[str, Any]:
    """The parameters that were given, by name."""
    _refuse_two_from_stdin([each for each in takes if is_text(each) and typed.text(each) == "-"])
    content = {}
    for parameter in takes:
        item = typed.text(parameter)
        if parameter.many and parameter.piped:
            content[parameter.name] = [read_one(parameter, line, where) for where, line in _lines(parameter)]
        elif item is not None or parameter.piped:
            content[parameter.name] = _value(parameter, item)
    return content


def is_text(parameter: Parameter) -> bool:
    return parameter.type is TEXT or parameter.type is OUTPUT


def _refuse_two_from_stdin(read_there: list[Parameter]) -> None:
    if len(read_there) > 1:
        names = " and ".join((flags_of(each) or [shown_name(each)])[0] for each in read_there)
        raise InvalidInput(f"Standard input holds one text, not {names}.", hint="Write the other as an argument.")


def missing(takes: Iterable[Parameter], typed: Typed) -> list[str]:
    """What has to be given and was not."""
    return [
        " or ".join(flags_of(parameter)) or shown_name(parameter)
        for parameter in takes
        if parameter.default is REQUIRED and not parameter.piped and typed.text(parameter) is None
    ]


def _value(parameter: Parameter, item: Any) -> Any:
    what = (flags_of(parameter) or [shown_name(parameter)])[0]
    if is_text(parameter):
        return text_or_stdin(item, errors="replace" if parameter.type is OUTPUT else "strict")
    if parameter.type is RECEIPT:
        item = text_or_stdin(item) if item == "-" else _receipt_text(item, what)
    if parameter.type is OBJECT and item[:1] == "@":
        item = _file_text(item[1:])
    return read(parameter, item, what)


def text_or_stdin(argument: str | None, *, errors: str = "strict") -> str:
    """The argument; standard input if it is `-`, or absent while something is piped in.

    What a tool printed need not be UTF-8 to the last byte: `errors="replace"` takes it as far as it can be read.
    """
    if argument is not None and argument != "-":
        return argument
    if argument is None and at_terminal(sys.stdin):
        raise InvalidInput("No text was given.", hint="Give it as an argument, or pipe it in and write - for it.")
    is_typed = at_terminal(sys.stdin)
    if is_typed:
        print("Type the text, then Ctrl-D on a line of its own: ", end="", file=sys.stderr, flush=True)
    raw = _stdin().read(_STDIN_BYTES_MAX + 1)
    if is_typed and not raw.strip():
        raise InvalidInput("Nothing was typed.", hint="Give the text as an argument, or pipe it in and write - for it.")
    if len(raw) > _STDIN_BYTES_MAX:
        raise InvalidInput(
            f"Standard input has more than {_STDIN_BYTES_MAX} bytes.", hint="Give a summary and cite the source."
        )
    return _decoded(raw, "Standard input", errors).removesuffix("\n").removesuffix("\r")


def _lines(parameter: Parameter) -> Iterator[tuple[str, str]]:
    """The lines of standard input that are not empty, each with what it is called in an error."""
    if at_terminal(sys.stdin):
        raise InvalidInput(
            f"The {parameter.name} are read as JSON lines from standard input.",
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
    """A receipt's JSON: the text itself, or what the file holds."""
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

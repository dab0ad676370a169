"""Commands that declare their arguments to argparse and have several acts (`graph ask`): which one was typed."""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter

from mnemarch.errors import InvalidInput
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Never

    from mnemarch.interfaces.command import Answer, Call, Command


@value
class Subcommand:
    """One act: the arguments it takes, which of the command's options it heeds, and what it does."""

    run: Callable[[Call], Answer]
    arguments: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    begins_memory: bool = False


Act = Subcommand


def acted(call: Call, command: str, acts: Mapping[str, Subcommand], options: frozenset[str]) -> Answer:
    """Run the act that was typed. An option of another act would be silently ignored, so it is refused."""
    typed = call.options
    if typed.act not in acts:
        raise InvalidInput(f"{command} knows no {typed.act!r}.", hint=f"Use one of: {', '.join(acts)}.")
    act = acts[typed.act]
    if len(typed.arguments) != len(act.arguments):
        wanted = f"mnemarch {command} {typed.act} {' '.join(act.arguments)}".strip()
        raise InvalidInput(f"{command} {typed.act} takes {len(act.arguments)} argument(s).", hint=f"Type: {wanted}")
    _refuse_others(typed, command, act, options)
    call.begins_memory = act.begins_memory
    return act.run(call)


def _refuse_others(typed: Namespace, command: str, act: Subcommand, options: frozenset[str]) -> None:
    others = sorted(name for name in options.difference(act.options) if _is_given(getattr(typed, name)))
    if others:
        heeded = ", ".join(map(_option, act.options)) or "none of its own"
        raise InvalidInput(
            f"{command} {typed.act} takes no {', '.join(map(_option, others))}.", hint=f"Its options: {heeded}."
        )


def _is_given(item: object) -> bool:
    # Not by its truth: 0 is given.
    return item is not None and item is not False and item != "" and item != []


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


class _Parser(ArgumentParser):
    """Wrong use is an error like any other: it gets a hint, an exit code and, if asked for, its JSON form."""

    def error(self, message: str) -> Never:
        raise InvalidInput(f"{message[:1].upper()}{message[1:]}.", hint=f"See: {self.prog} --help")


def parser_for(name: str, command: Command) -> ArgumentParser:
    from mnemarch.interfaces.grammar import PLACES

    examples = "\n".join(f"  {example}" for example in command.examples)
    parser = _Parser(
        prog=f"mnemarch {name}",
        description=command.description,
        epilog=f"examples:\n{examples}",
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    if command.arguments is not None:
        command.arguments(parser)
    places = parser.add_argument_group("who and where")
    for place in PLACES:
        places.add_argument(f"--{place.name}", metavar=place.metavar, help=place.says)
    parser.add_argument("--json", action="store_true", help="answer with one JSON document")
    return parser


def parsed(name: str, command: Command, argv: Sequence[str]) -> Any:
    """The options of one command line; they may stand between words that can be left out."""
    parser = parser_for(name, command)
    namespace, unplaced = parser.parse_known_args(argv)
    return parser.parse_intermixed_args(argv) if unplaced else namespace

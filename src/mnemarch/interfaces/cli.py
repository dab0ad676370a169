"""`mnemarch`: finds the command, runs it, prints its answer once; what goes wrong becomes words and an exit code."""

from __future__ import annotations

import os
import sys

from mnemarch import errors
from mnemarch.errors import InvalidInput, MnemarchError
from mnemarch.interfaces import grammar
from mnemarch.interfaces.command import BUG, DONE, INTERRUPTED, REFUSED, STORE_TROUBLE, WRONG_USE, Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


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
        _write(grammar.help_for(name))
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
        _write(grammar.overview())
    elif options:
        raise InvalidInput(f"There is no command in: {' '.join(options)}.", hint="See: mnemarch --help")
    else:
        print(grammar.overview(), file=sys.stderr)
        return WRONG_USE
    return DONE


class _Printer:
    """Writes one answer or one error. Once an answer stands on stdout, nothing else goes there."""

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
        from mnemarch.interfaces.show import with_short_ids

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
    """What some errors know beyond their words: a conflict both versions, a refusal its rule."""
    names = ("rule", "expected_version", "actual_version", "current", "proposed")
    return {name: getattr(error, name) for name in names if hasattr(error, name)}


def json_text(data: Any) -> str:
    from mnemarch.interfaces import show

    return show.json_text(data)


def _let_any_text_out() -> None:
    """What the terminal can't show becomes a question mark, not a crash."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _write(text: str) -> None:
    """Print it at once. A reader that has enough (`| head -1`) is no error."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        _ignore_output()


def _ignore_output() -> None:
    """The reader left: send the rest nowhere, so that closing stdout is quiet too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

"""What a command is given to read: text, JSON, instants, from an argument or from standard input."""

from __future__ import annotations

import json
import sys

from mnemarch.errors import InvalidInput
from mnemarch.interfaces.place import at_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from typing import Any

_STDIN_BYTES_MAX = 64 << 20


def text_given(argument: str | None, *, errors: str = "strict") -> str:
    """The argument; standard input if it is `-`, or absent while something is piped in.

    What a tool printed need not be UTF-8 to the last byte: `errors="replace"` takes it as far as it can be read.
    """
    if argument is not None and argument != "-":
        return argument
    if argument is None and at_terminal(sys.stdin):
        raise InvalidInput("No text was given.", hint="Give it as an argument, or pipe it in and write - for it.")
    raw = sys.stdin.buffer.read(_STDIN_BYTES_MAX + 1)
    if len(raw) > _STDIN_BYTES_MAX:
        raise InvalidInput(
            f"Standard input has more than {_STDIN_BYTES_MAX} bytes.", hint="Give a summary and cite the source."
        )
    return _decoded(raw, "Standard input", errors).removesuffix("\n").removesuffix("\r")


def json_lines_given() -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects on standard input, one a line, numbered from 1; empty lines are skipped."""
    if at_terminal(sys.stdin):
        raise InvalidInput("--batch reads JSON lines from standard input.", hint="Pipe a file in: ... < lines.jsonl")
    for number, raw in enumerate(sys.stdin.buffer, start=1):
        line = _decoded(raw, f"Line {number}")
        if line.strip():
            yield number, json_object(line, f"Line {number}")


def json_object(text: str, what: str) -> dict[str, Any]:
    """A JSON object, from the text or from the file named after an @."""
    if text.startswith("@"):
        text = _file_text(text[1:])
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{what} is not valid JSON: {error}.", hint='Write {"name": "value"}.') from None
    if not isinstance(found, dict):
        raise InvalidInput(f"{what} must be a JSON object.", hint='Write {"name": "value"}.')
    return found


def _file_text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return _decoded(file.read(), path)
    except OSError as error:
        raise InvalidInput(f"{path!r} can't be read: {error.strerror}.", hint="Check the path after the @.") from None


def instant_given(text: str | None, what: str) -> datetime | None:
    """An instant in ISO 8601. Without a zone it would mean something else on every machine."""
    if text is None:
        return None
    from datetime import datetime

    try:
        found = datetime.fromisoformat(text)
    except (ValueError, TypeError):
        found = None
    if found is None or found.tzinfo is None:
        raise InvalidInput(f"{what} {text!r} is no instant with a zone.", hint="Write 2026-01-31T09:30Z, say.")
    return found


def _decoded(raw: bytes, what: str, errors: str = "strict") -> str:
    try:
        return raw.decode(errors=errors)
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{what} is not valid UTF-8 at byte {error.start}; nothing was stored.",
            hint="Convert it first, for example: iconv -f latin1 -t utf-8",
        ) from None

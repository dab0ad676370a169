"""What may come in at all: bad input is refused here, in words, before anything is written."""

from __future__ import annotations

from mnemarch.errors import InvalidInput
from mnemarch.model.caller import checked_id
from mnemarch.text.secrets import redacted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KEY_CHARS_MAX = 512


def checked_text(text: Any, what: str, bytes_max: int) -> str:
    """`text` if it says something, is valid Unicode and is not too long."""
    if not isinstance(text, str):
        raise InvalidInput(f"{what} must be text, not {type(text).__name__}.", hint="Pass a string.")
    if not text.strip():
        raise InvalidInput(f"{what} is empty.", hint="Say something; nothing was stored.")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{what} is not valid Unicode at character {error.start}.", hint="Decode it first."
        ) from None
    if size > bytes_max:
        raise InvalidInput(
            f"{what} has {size} bytes; the limit is {bytes_max}.",
            hint="Store a summary and cite the source, or raise limits.text_bytes_max in mnemarch.toml.",
        )
    return text


def checked_name(name: Any, what: str) -> str:
    """`name` if it can name something and is no secret: names are stored as they are."""
    named = checked_id(name, what)
    _, kinds = redacted(named)
    if kinds:
        raise InvalidInput(
            f"{what[0].upper()}{what[1:]} holds a secret ({', '.join(kinds)}).", hint="Use another name."
        )
    return named


def checked_mapping(given: Any, what: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise InvalidInput(f"{what} must be a dictionary, not {type(given).__name__}.", hint='Use {"name": ...}.')
    return dict(given)


def checked_list(given: Any, what: str) -> list[Any]:
    """`given` as a list; a lone string or value where a list is meant is a mistake that would go unseen."""
    if not isinstance(given, list | tuple | set | frozenset):
        raise InvalidInput(f"{what} must be a list, not {type(given).__name__}.", hint="Put it in [ ].")
    return list(given)


def checked_key(key: str) -> str:
    if len(checked_name(key, "an idempotency key")) > KEY_CHARS_MAX:
        raise InvalidInput(f"An idempotency key has at most {KEY_CHARS_MAX} characters.", hint="Use a hash as the key.")
    return key


def checked_count(number: Any, what: str, most: int) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= most:
        raise InvalidInput(f"{what} must be a whole number from 0 to {most}, not {number!r}.", hint="Correct it.")
    return number

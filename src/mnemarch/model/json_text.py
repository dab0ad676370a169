"""The stored form of values: canonical JSON, with the same bytes for the same value on every store.

The module uses only the C half of `json`. Importing the Python half compiles six regular expressions, which takes a
sixth of a cold start. Texts that the C half can't read fall back to `json`.
"""

from __future__ import annotations

from _json import encode_basestring as quoted
from _json import encode_basestring_ascii as quoted_in_ascii
from _json import make_encoder, make_scanner
from functools import lru_cache

from mnemarch.errors import InvalidInput
from mnemarch.lazy import Any, Lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    import json
else:
    json = Lazy("json")

_TEXT = frozenset({str})


class _Reading:
    """The default options of `json` for reading."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


_scanned = make_scanner(_Reading())  # type: ignore[arg-type]


def from_json(text: str) -> Any:
    """Like `json.loads`."""
    try:
        content, end = _scanned(text, 0)
    except StopIteration:
        return json.loads(text)
    return content if end == len(text) else json.loads(text)


def to_json(content: Any) -> str:
    """Like `json.dumps`."""
    return "".join(_encoder(quoted_in_ascii, ": ", ", ", False, True)(content, 0))


@lru_cache(maxsize=4096)
def kept_json(*items: str | None) -> str:
    """A compact array of names. Cached, since the same few arrays occur in every entry."""
    return "".join(_encoder(quoted_in_ascii, ":", ",", False, True)(items, 0))


def canonical_json(content: Any) -> str:
    """JSON with sorted keys and no spaces. Raises InvalidInput for values that JSON can't represent."""
    try:
        # A fast path without an encoder for flat dictionaries of strings, as in nearly every log entry.
        if type(content) is dict and _TEXT.issuperset(map(type, (*content.values(), *content))):
            return f"{{{','.join([f'{quoted(name)}:{quoted(text)}' for name, text in sorted(content.items())])}}}"
        return "".join(_encoder(quoted, ":", ",", True, False)(content, 0))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"This can't be stored as JSON: {error}.",
            hint="Use strings, finite numbers, booleans, lists and dictionaries with string keys.",
        ) from None


def json_needles(text: str) -> tuple[str, ...]:
    """The forms of `text` inside JSON strings: as written here, as ASCII, and each of them nested once more."""
    plain = quoted(text)[1:-1]
    ascii_only = quoted_in_ascii(text)[1:-1]
    nested = (quoted(form)[1:-1] for form in (plain, ascii_only))
    return tuple(dict.fromkeys((plain, ascii_only, *nested)))


def _encoder(quote: Any, colon: str, comma: str, sort_keys: bool, allow_nan: bool) -> Any:
    # Not reused: after a failure, an encoder would report a circular reference.
    return make_encoder({}, _refused, quote, None, colon, comma, sort_keys, False, allow_nan)


def _refused(item: object) -> Any:
    raise TypeError(f"Object of type {type(item).__name__} is not JSON serializable")

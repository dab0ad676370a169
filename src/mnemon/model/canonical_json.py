"""The stored form of values as text: canonical JSON, the same bytes for the same value on every store."""

from __future__ import annotations

import json
from functools import lru_cache

from mnemon.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_TEXT = frozenset({str})
_quoted = json.encoder.encode_basestring
# One encoder each: json.dumps with options builds a new one on every call.
_canonical = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode
_compact = json.JSONEncoder(separators=(",", ":")).encode


@lru_cache(maxsize=4096)
def kept_json(*items: str | None) -> str:
    """The compact array of names that come back with every entry, encoded once and kept."""
    return _compact(items)


def canonical_json(content: Any) -> str:
    """JSON with sorted keys and no spaces; what JSON can't hold is refused before anything is written."""
    try:
        # A flat dictionary of texts, as nearly every log entry is, needs no encoder.
        if type(content) is dict and {*map(type, content), *map(type, content.values())} <= _TEXT:
            return f"{{{','.join([f'{_quoted(name)}:{_quoted(text)}' for name, text in sorted(content.items())])}}}"
        return _canonical(content)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"This can't be stored as JSON: {error}.",
            hint="Use strings, finite numbers, booleans, lists and dictionaries with string keys.",
        ) from None


def json_needles(text: str) -> tuple[str, ...]:
    """`text` as it stands inside JSON strings: as we write them, as others do (ASCII), and once more inside those."""
    plain = json.dumps(text, ensure_ascii=False)[1:-1]
    ascii_only = json.dumps(text)[1:-1]
    nested = (json.dumps(form, ensure_ascii=False)[1:-1] for form in (plain, ascii_only))
    return tuple(dict.fromkeys((plain, ascii_only, *nested)))

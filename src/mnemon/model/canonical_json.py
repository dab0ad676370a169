"""The stored form of values as text: canonical JSON, the same bytes for the same value on every store."""

from __future__ import annotations

import json

from mnemon.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def canonical_json(content: Any) -> str:
    """JSON with sorted keys and no spaces; what JSON or UTF-8 can't hold is refused before anything is written."""
    try:
        text = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
        text.encode()
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"This can't be stored as JSON: {error}.",
            hint="Use strings, finite numbers, booleans, lists and dictionaries with string keys.",
        ) from None
    return text


def json_needle(text: str) -> str:
    """`text` as it stands inside a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]

"""From a unit's text to what an index keeps of it: its words, and who is speaking."""

from __future__ import annotations

from functools import cache

from mnemon.lazy import Lazy
from mnemon.model.sketch import Sketch
from mnemon.text.tokens import TOKENS_MAX, telling_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

    from mnemon.model.unit import Searchable
else:
    re = Lazy("re")


def sketched(unit: Searchable) -> Sketch:
    return Sketch(unit, speaker_of(unit.content), telling_tokens(unit.content, limit=TOKENS_MAX))


def speaker_of(text: str) -> str:
    """Whose words these are, in lower case, where the text says so at its beginning ("Mina: I moved to Busan")."""
    if ":" not in text[:33]:
        return ""
    match = _speaker().match(text)
    return match[1].casefold() if match else ""


@cache
def _speaker() -> re.Pattern[str]:
    return re.compile(r"([^\W\d_][\w .'-]{0,30}): ")

"""From a unit's text to what an index keeps of it: its words, and who is speaking."""

from __future__ import annotations

from functools import cache

from mnemarch.lazy import Lazy
from mnemarch.model.sketch import Sketch
from mnemarch.text.tokens import TOKENS_MAX, telling_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

    from mnemarch.model.unit import Searchable
else:
    re = Lazy("re")


# What stands before a colon as often as a name does.
_NO_SPEAKERS = """
error warning warn info debug trace fatal critical failure exception note todo fixme hint tip example question answer
update summary result cause fix reason important deprecated see usage output input
"""


def sketched(unit: Searchable) -> Sketch:
    return Sketch(unit, speaker_of(unit.content), telling_tokens(unit.content, limit=TOKENS_MAX))


def speaker_of(text: str) -> str:
    """Whose words these are, in lower case, where the text says so at its beginning ("Mina: I moved to Busan")."""
    if ":" not in text[:33]:
        return ""
    match = _speaker().match(text)
    name = match[1].casefold() if match else ""
    return "" if name in _NO_SPEAKERS.split() else name


@cache
def _speaker() -> re.Pattern[str]:
    return re.compile(r"([^\W\d_][\w .'-]{0,30}): ")

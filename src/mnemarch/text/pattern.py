"""Regular expressions that are compiled when they are first used, each once."""

from __future__ import annotations

from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re


@cache
def pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """The compiled pattern; a process that never needs one does not import `re`."""
    import re

    return re.compile(source, flags)

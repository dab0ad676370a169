"""Prepares a text for parsing its statement: asides are removed, and phrases replaced by common words."""

from __future__ import annotations

from functools import cache
from unicodedata import category

from mnemarch.text.cache import pattern
from mnemarch.text.words import Patterns

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

_ASIDES = Patterns("relations", "asides")
_PHRASES = Patterns("relations", "phrases").sources
_ENDINGS = Patterns("relations", "endings").sources
_MEANINGS = [*_PHRASES, *_ENDINGS]
# The Unicode categories of emoji and their joiners, and the signs that mean yes or no.
_SIGNS = frozenset({"So", "Sk", "Cf", "Cs"})
_TELLING_SIGNS = frozenset("✓✔✗✘✅❌⭕🚫⛔")
_HOURS = {"한": 1, "두": 2, "세": 3, "네": 4}
_HALF_PAST = r"(\d+|[한두세네]) ?시간 반(?=\s|$)"
_TIME_OF_DAY = r"(\d{1,2})시 ?(\d{1,2})분"


@cache
def _phrases() -> re.Pattern[str]:
    """One pattern for all phrases of several words and all endings, so that a text is scanned once."""
    plain = [
        f"(?i:{source[4:]})" if source.startswith("(?i)") else source
        for source in (*_PHRASES.values(), *_ENDINGS.values())
    ]
    named = [f"(?P<p{number}>{source})" for number, source in enumerate(plain)]
    return pattern(rf"(?<!\w)(?:{'|'.join(named[: len(_PHRASES)])})|{'|'.join(named[len(_PHRASES) :])}")


def _in_minutes(match: re.Match[str]) -> str:
    """A Korean "N hours and a half" in minutes."""
    return f"{60 * _HOURS.get(match[1], 0) + 30 if match[1] in _HOURS else 60 * int(match[1]) + 30}분"


def _plain(text: str) -> str:
    """The text without signs such as emoji."""
    if text.isascii():
        return text
    return "".join(letter for letter in text if letter.isascii() or not _is_sign(letter)).strip()


def _is_sign(letter: str) -> bool:
    return (category(letter) in _SIGNS and letter not in _TELLING_SIGNS) or letter == "\ufe0f"


def without_asides(text: str) -> tuple[str, str]:
    """A text without what is said beside the statement, and what it is said against: use pnpm (not npm)."""
    rejected: list[str] = []
    if "시" in text:
        text = pattern(_TIME_OF_DAY).sub(r"\1:\2시", pattern(_HALF_PAST).sub(_in_minutes, text))
    text = _plain(text)

    def left(match: re.Match[str]) -> str:
        named = match.groupdict("")
        chosen = named.pop("chosen")
        rejected.extend(filter(None, named.values()))
        return f"{chosen} "

    if "=" in text:
        text = pattern(r"`?([A-Za-z_][\w.-]{0,60})=([\w.]{1,60})`?").sub(_assigned, text)
    text = _phrases().sub(lambda match: f" {_MEANINGS[int(str(match.lastgroup)[1:])]} ", text)
    text = _ASIDES["aside"].sub(left, text)
    if not text.isascii():
        text = _ASIDES["korean aside"].sub(left, text)
    return text, " ".join(rejected)


def _assigned(match: re.Match[str]) -> str:
    """What an assignment says: `DEBUG=1`."""
    return f"`{match[1]}` is {match[2] if match[2].isdigit() else f'`{match[2]}`'}"

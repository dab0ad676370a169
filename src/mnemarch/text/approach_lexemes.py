"""The pieces of a plan: sentences, reasons, and words with names taken apart."""

from __future__ import annotations

import re
from functools import cache

from mnemarch.text import hangul

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# A word in small letters, its kind (word, hangul, number, comma or mark), and whether it is part of a name.
Lexeme = tuple[str, str, bool]


def lexemes(text: str) -> Iterator[Lexeme]:
    """The words, numbers and commas in order; a name comes in its parts, a particle after a Latin word is left out."""
    for match in _pattern().finditer(text):
        kind, written = match.lastgroup or "", match[0]
        if kind == "hangul":
            before = text[match.start() - 1 : match.start()]
            if not (before.isascii() and before.isalnum() and hangul.is_suffix(written)):
                yield written, kind, False
        elif kind == "word":
            parts = [written] if "'" in written else _humps().findall(written)
            for part in parts:
                yield part.lower().removesuffix("'s"), kind, len(parts) > 1
        else:
            yield written.lower(), kind, False


@cache
def ends() -> re.Pattern[str]:
    """Where a sentence ends."""
    return re.compile(r"[.!?;]+(?=\s|$)|\n+")


@cache
def intent() -> re.Pattern[str]:
    """What says that a sentence is about what will be done."""
    return re.compile(
        r"\b(?:I'll|I will|I'd|I'm going to|I am going to|going to|let me|let's|I want to|I plan to|my plan|plan:"
        r"|next step|the fix is|fix:)|보자|겠습니다|겠다",
        re.IGNORECASE,
    )


@cache
def reason() -> re.Pattern[str]:
    """What begins a reason."""
    return re.compile(r",? (?:because|since|so that|so|in order to|as it|as the|to avoid|to prevent) ", re.IGNORECASE)


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(
        r"(?P<number>(?<![A-Za-z0-9_])#?v?\d+(?:[.:]\d+|,\d{3})*(?:%|[A-Za-z]{1,3})?(?![A-Za-z0-9_]))"
        r"|(?P<hangul>[가-힣]+)|(?P<comma>,)|(?P<mark>[=(<>])"
        r"|(?P<word>[^\W\d가-힣](?:[^\W가-힣]|[-./:@](?=[^\W\d가-힣]|\d+(?![\d.]))|'(?=[a-z]))*)"
    )


@cache
def _humps() -> re.Pattern[str]:
    return re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z][a-z\d]*|[A-Z][A-Z\d]*|\d+|[^\W\da-zA-Z_]+")

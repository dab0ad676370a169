"""One name that a source text defines, whichever parser found it."""

from __future__ import annotations

from mnemon.model.value import value

# A parameter has a default: which one is the body's business.
DEFAULT = "=…"


@value
class Symbol:
    """A name with dots, what it is, its signature, and its first and last line.

    A name that is defined several times (overloads, the branches of an `if`) has all its signatures, one a line. A
    signature that can't be read is left out.
    """

    name: str
    kind: str
    signature: str
    first: int
    last: int

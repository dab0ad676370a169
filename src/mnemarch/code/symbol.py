"""One name that a source text defines, whichever parser found it."""

from __future__ import annotations

from mnemarch.model.value import value

# A parameter has a default: which one is the body's business.
DEFAULT = "=…"
# What a variable holds is worked out when the program runs, or is too long to say.
COMPUTED = "…"
VALUE_CHARS_MAX = 200


@value
class Symbol:
    """A name with dots, what it is, its signature, and its first and last line.

    A name that is defined several times (overloads, the branches of an `if`) has all its signatures, one a line. A
    signature that can't be read is left out. So it is with `value`: what a constant or another variable is given, if it
    stands there as a number, a text or the like; COMPUTED if it does not, empty if that can't be told.
    """

    name: str
    kind: str
    signature: str
    first: int
    last: int
    value: str = ""

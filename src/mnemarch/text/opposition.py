"""Whether two statements oppose each other (R6, R12). This is the one rule for facts and decisions.

Two statements are laid side by side as frames (`text/sides.py`): what both say is what they are about, and what is
left decides. Two that differ in nothing but in what denies oppose each other whatever their frames say.
"""

from __future__ import annotations

from mnemarch.model.value import Frozen
from mnemarch.text.cache import pattern
from mnemarch.text.difference import polarity
from mnemarch.text.frames import frame_of
from mnemarch.text.guarded import pieces
from mnemarch.text.sides import opposed
from mnemarch.text.statements import STATEMENT_CHARS_MAX, said_by

_TRY = r"(?i)^\W*(?:i |we |also )?(?:tried|attempted)\b|시도했|해 ?(?:봤|보았)"


class Opposition(Frozen):
    """How two statements about one subject oppose each other, with the words of both sides.

    `kind` is polarity, value, or change: the second announces that what the first says has ended (`text/changes.py`).
    """

    kind: str
    left: str
    right: str

    @property
    def reason(self) -> str:
        return f"{self.kind}: {self.left or 'none'} / {self.right or 'none'}"


def opposes(a: str, b: str, *, is_rule: bool = False) -> Opposition | None:
    """How two statements oppose each other, or None: they say the same, or both can be.

    They oppose in polarity or in a value. In both, they need not: what is not stored in Redis may be in Postgres.
    Two tries are two events, whatever was tried.
    """
    if _tells_of_a_try(a) and _tells_of_a_try(b):
        return None
    kind, parts = opposed(a, b, is_rule=is_rule) or ("polarity", _denied(a, b))
    return Opposition(kind, *(", ".join(part[side] for part in parts) for side in (0, 1))) if parts else None


def _tells_of_a_try(text: str) -> bool:
    return pattern(_TRY).search(text) is not None


def _denied(a: str, b: str) -> list[tuple[str, str]]:
    """What one of two texts denies that otherwise say the same."""
    if not (frame_of(a).is_plain and frame_of(b).is_plain):
        return []
    ours, theirs = pieces(a), pieces(b)
    said = [{word for piece in side for word in said_by(piece)} for side in (ours, theirs)]
    return polarity(ours, theirs) if said[0] == said[1] else []


def breaks(text: str, rule: str) -> Opposition | None:
    """How a text opposes a rule that may be said of more, or of less, than the text (R12).

    "Money is stored as floats" speaks of the money of "All money is stored as integers in cents". Of a long text the
    beginning is compared, which says what is decided.
    """
    return opposes(text[:STATEMENT_CHARS_MAX], rule[:STATEMENT_CHARS_MAX], is_rule=True)

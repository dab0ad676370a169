"""Whether two statements oppose each other: the one rule for facts and decisions (R6, R12)."""

from __future__ import annotations

from mnemarch.model.value import value
from mnemarch.text.difference import differences, oppose, skeleton
from mnemarch.text.tokens import tokens
from mnemarch.text.words import EMPTY_WORDS


@value
class Opposition:
    """How two statements about one subject oppose each other: `kind` is polarity or value, with both sides' words."""

    kind: str
    left: str
    right: str

    @property
    def reason(self) -> str:
        return f"{self.kind}: {self.left or 'none'} / {self.right or 'none'}"


def opposes(a: str, b: str) -> Opposition | None:
    """How two statements oppose each other, or None: they say the same, or both can be."""
    if _bare(a) != _bare(b):
        return None
    parts = differences(a, b)
    if not oppose(parts):
        return None
    kind = "polarity" if any(part.what == "negation" for part in parts) else "value"
    left, right = (", ".join(getattr(part, side) for part in parts) for side in ("left", "right"))
    return Opposition(kind, left, right)


def _bare(text: str) -> frozenset[str]:
    """What a statement speaks of, without what the guard compares and without words that say nothing."""
    return frozenset(tokens(skeleton(text))) - EMPTY_WORDS

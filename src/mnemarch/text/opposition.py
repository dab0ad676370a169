"""Whether two statements oppose each other (R6, R12). This is the one rule for facts and decisions.

Two statements are laid side by side as frames (`text/sides.py`): what both say is what they are about, and what is
left decides. Two that differ in nothing but in what denies oppose each other whatever their frames say.
"""

from __future__ import annotations

from mnemarch.model.value import Frozen
from mnemarch.text.cache import pattern
from mnemarch.text.canonical import canonical
from mnemarch.text.difference import polarity
from mnemarch.text.frames import frame_of
from mnemarch.text.guarded import pieces
from mnemarch.text.senses import root_of
from mnemarch.text.sides import opposed
from mnemarch.text.statements import STATEMENT_CHARS_MAX, said_by
from mnemarch.text.words import Patterns

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

_PATTERNS = Patterns("senses", "patterns")
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
    turned = _turned_round(a, b)
    if turned is not None:
        kind, parts = "polarity", turned
    else:
        kind, parts = opposed(a, b, is_rule=is_rule) or ("polarity", _denied(a, b))
    return Opposition(kind, *(", ".join(part[side] for part in parts) for side in (0, 1))) if parts else None


def _tells_of_a_try(text: str) -> bool:
    return pattern(_TRY).search(text) is not None


def _denied(a: str, b: str) -> list[tuple[str, str]]:
    """What one of two texts denies that otherwise say the same; not in what they happen on: on create, on delete."""
    frames = frame_of(a), frame_of(b)
    if not all(frame.is_plain for frame in frames):
        return []
    conditions = [{item.written for item in frame.items if item.is_condition} for frame in frames]
    ours, theirs = pieces(a), pieces(b)
    said = [{word for piece in side for word in said_by(piece)} for side in (ours, theirs)]
    parts = polarity(ours, theirs) if said[0] == said[1] else []
    return [part for part in parts if not (part[0] in conditions[0] and part[1] in conditions[1])]


def _turned_round(a: str, b: str) -> list[tuple[str, str]] | None:
    """The ends of a relation that holds one way only, if two texts tell it both ways: flags override the file.

    Nothing if the relation is turned round as well: A starts before B, and B after A. None if no ends are exchanged.
    """
    for name in ("one way", "korean one way"):
        ours, theirs = (_PATTERNS[name].match(text.strip()) for text in (a, b))
        if ours and theirs:
            (verb, *ends), (other_verb, *other_ends) = map(_read_one_way, (ours, theirs))
            if ends == other_ends[::-1] != other_ends:
                return [(ours["one"], theirs["one"])] if verb == other_verb else []
    return None


def _read_one_way(match: re.Match[str]) -> list[str]:
    """The verb of a relation without its endings, and its two ends."""
    return [" ".join(map(root_of, match["verb"].lower().split())), canonical(match["one"]), canonical(match["other"])]


def breaks(text: str, rule: str) -> Opposition | None:
    """How a text opposes a rule that may be said of more, or of less, than the text (R12).

    "Money is stored as floats" speaks of the money of "All money is stored as integers in cents". Of a long text the
    beginning is compared, which says what is decided.
    """
    return opposes(text[:STATEMENT_CHARS_MAX], rule[:STATEMENT_CHARS_MAX], is_rule=True)

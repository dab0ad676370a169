"""Whether two statements oppose each other (R6, R12). This is the one rule for facts and decisions.

Statements of one topic and one form are compared by their amounts and by what denies. All others are laid side by
side as frames (`text/sides.py`): what both say is what they are about, and what is left decides.
"""

from __future__ import annotations

from mnemarch.model.value import Frozen
from mnemarch.text.cache import pattern
from mnemarch.text.difference import polarity
from mnemarch.text.relating import USES
from mnemarch.text.sides import opposed, tell_of_two
from mnemarch.text.statements import STATEMENT_CHARS_MAX, statement, things

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mnemarch.text.statements import Statement, Value

# What is said of all is said of each.
_UNIVERSAL = frozenset({"every", "each", "모든", "모두"})
_TRY = r"(?i)^\W*(?:i |we |also )?(?:tried|attempted)\b|시도했|해 ?(?:봤|보았)"
# Statements with one word in common, "use", are not about one thing.
_SHARED_MIN = 2


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


def opposes(a: str, b: str) -> Opposition | None:
    """How two statements oppose each other, or None: they say the same, or both can be.

    They oppose in polarity or in a value. In both, they need not: what is not stored in Redis may be in Postgres.
    Two tries are two events, whatever was tried.
    """
    if _tells_of_a_try(a) and _tells_of_a_try(b):
        return None
    ours, theirs = statement(a), statement(b)
    if frozenset(ours.topic) == frozenset(theirs.topic):
        alike = _opposition(ours, theirs)
        if alike is not None:
            # Statements of one form and one value tell of one thing, and there may be thousands of them.
            is_one_form = ours.subject == theirs.subject and len(ours.values) == 1
            return None if alike.kind == "value" and not is_one_form and tell_of_two(a, b) else alike
    found = opposed(a, b)
    return None if found is None else _opposed(*found)


def _tells_of_a_try(text: str) -> bool:
    return pattern(_TRY).search(text) is not None


def breaks(text: str, rule: str) -> Opposition | None:
    """How a text opposes a rule that may be said of more, or of less, than the text (R12).

    "Money is stored as floats" speaks of the money of "All money is stored as integers in cents". Of a long text the
    beginning is compared, which says what is decided.
    """
    ours, theirs = (statement(each[:STATEMENT_CHARS_MAX]) for each in (text, rule))
    about, ruled = (frozenset(each.topic) - _UNIVERSAL for each in (ours, theirs))
    is_within = len(things(about & ruled)) >= _SHARED_MIN and (about < ruled or ruled < about)
    told = text[:STATEMENT_CHARS_MAX], rule[:STATEMENT_CHARS_MAX]
    return _opposition(ours, theirs, is_sure=not tell_of_two(*told)) if is_within else opposes(*told)


def _opposition(ours: Statement, theirs: Statement, *, is_sure: bool = False) -> Opposition | None:
    """How statements of one topic oppose each other: one denies what the other says, or states another amount."""
    denied = polarity(ours.polar, theirs.polar)
    others = _other_values(ours, theirs)
    if bool(denied) == bool(others):
        return None
    pairs = zip(ours.values, theirs.values, strict=True) if others else ()
    is_sure |= any(
        _is_other(a, b)
        and (a.is_amount or (a.is_limit and b.is_limit) or all(word[:1].isdigit() for word in a.words ^ b.words))
        for a, b in pairs
    )
    # Use pnpm, use npm: among the managers of packages.
    is_sure |= ours.topic[:1] == USES and len(things(ours.topic)) > 1 and not ours.is_denied
    return _opposed("polarity", denied) if denied else _opposed("value", others) if is_sure else None


def _opposed(kind: str, parts: Sequence[tuple[str, str]]) -> Opposition:
    left, right = (", ".join(part[side] for part in parts) for side in (0, 1))
    return Opposition(kind, left, right)


def _other_values(ours: Statement, theirs: Statement) -> list[tuple[str, str]]:
    """The values in which two statements part. One that only says more (the Redis cluster, Redis) is no other."""
    if len(ours.values) != len(theirs.values):
        return []
    compared = zip(ours.values, theirs.values, strict=True)
    return [(left.written, right.written) for left, right in compared if _is_other(left, right)]


def _is_other(left: Value, right: Value) -> bool:
    return not (left.words <= right.words or right.words <= left.words)

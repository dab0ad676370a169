"""The guard of R6: the differences that forbid a merge of two similar statements."""

# ruff: noqa: RUF071 (what is compared is no path)
from __future__ import annotations

from collections.abc import Iterator, Sequence
from os.path import commonprefix

from mnemarch.model.value import Frozen
from mnemarch.text import korean
from mnemarch.text.guarded import EXTENTS, Piece, pieces

_COMPARED_CHARS_MAX = 4_096
# 지 않는다, 면 안 된다, 서는 안 된다.
_AFTER_WHAT_IS_DENIED = frozenset(f"{korean.DENYING_WHAT_IS_BEFORE}면으서선")


class Difference(Frozen):
    """One guarded piece that two texts do not share: a number, negation, quoted string or identifier."""

    what: str
    left: str
    right: str


def differences(a: str, b: str) -> tuple[Difference, ...]:
    """The differences between two statements that forbid a merge. Empty if there are none (R6).

    Long texts are not parsed: they differ unless they are equal.
    """
    if max(len(a), len(b)) > _COMPARED_CHARS_MAX:
        return () if a == b else (Difference("length", f"{len(a)} characters", f"{len(b)} characters"),)
    guarded = _differences(pieces(a), pieces(b))
    # Quotes around an identifier make no difference: `foo_bar` and foo_bar are the same.
    if any(each.what == "quoted" for each in guarded) and not _differences(
        pieces(a, unquoted=True), pieces(b, unquoted=True)
    ):
        return ()
    return guarded


def polarity(left: Sequence[Piece], right: Sequence[Piece]) -> list[tuple[str, str]]:
    """The words in which one statement denies the other.

    Two denials cancel out: lock it before the import, unlock it after the import.
    """
    opposites = tuple(_of_opposites(left, right))
    negations = tuple(_of_negations(left, right, opposes=bool(opposites)))
    denied = (*negations, *opposites)
    # Opposites that only give the extent of a denial are not counted: 항상 비운다, 절대 비우지 않는다.
    of_extent = len(tuple(_of_opposites(left, right, EXTENTS))) if negations else 0
    if (len(denied) - of_extent) % 2 == 0:
        return []
    return [(part.left, part.right) for part in denied]


def _differences(left: Sequence[Piece], right: Sequence[Piece]) -> tuple[Difference, ...]:
    opposites = tuple(_of_opposites(left, right))
    return (
        *_of_sequence("number", left, right),
        *_of_negations(left, right, opposes=bool(opposites)),
        *opposites,
        *_of_sequence("quoted", left, right),
        *_of_sequence("identifier", left, right),
    )


def _of_sequence(what: str, left: Sequence[Piece], right: Sequence[Piece]) -> Iterator[Difference]:
    """The difference in pieces of one type. Order matters: "from 3 to 5" is not "from 5 to 3"."""
    ours = [piece for piece in left if piece[0] == what]
    theirs = [piece for piece in right if piece[0] == what]
    keys, other_keys = [piece[1] for piece in ours], [piece[1] for piece in theirs]
    if keys != other_keys:
        head = len(commonprefix([keys, other_keys]))
        tail = len(commonprefix([keys[head:][::-1], other_keys[head:][::-1]]))
        yield Difference(what, _written(ours[head : len(ours) - tail]), _written(theirs[head : len(theirs) - tail]))


def _of_negations(left: Sequence[Piece], right: Sequence[Piece], *, opposes: bool) -> Iterator[Difference]:
    """The difference in the number of negations. `opposes` leaves out prefixes: their words count as opposites."""
    ours = [piece for piece in left if piece[0] == "negation" and not (opposes and piece[1] == "un")]
    theirs = [piece for piece in right if piece[0] == "negation" and not (opposes and piece[1] == "un")]
    if len(ours) != len(theirs) or (ours and _moved(left, right)):
        yield Difference("negation", _written(ours), _written(theirs))


def _moved(left: Sequence[Piece], right: Sequence[Piece]) -> bool:
    """Whether the same words negate something else: tabs, not spaces; spaces, not tabs."""
    if sorted(piece[1] for piece in left) != sorted(piece[1] for piece in right):
        return False
    return _negated(left) != _negated(right)


def _negated(side: Sequence[Piece]) -> list[str]:
    """The piece that each negation denies: the next one, or the previous one as in 남기지 않는다."""
    at_negations = [at for at, piece in enumerate(side) if piece[0] == "negation"]
    neighbours = [at + (-1 if side[at][3][:1] in _AFTER_WHAT_IS_DENIED else 1) for at in at_negations]
    return [side[at][1] for at in neighbours if 0 <= at < len(side)]


def _of_opposites(
    left: Sequence[Piece], right: Sequence[Piece], among: frozenset[str] | None = None
) -> Iterator[Difference]:
    """The opposites of which each text has more of another pole, or which the texts have in a different order."""
    groups = dict.fromkeys(piece[1][:-1] for piece in left if piece[0] == "opposite")
    if among is not None:
        groups = {group: None for group in groups if group in among}
    reported: set[tuple[str, str]] = set()
    for group in groups:
        ours = [piece for piece in left if piece[0] == "opposite" and piece[1][:-1] == group]
        theirs = [piece for piece in right if piece[0] == "opposite" and piece[1][:-1] == group]
        if not _oppose([piece[1][-1] for piece in ours], [piece[1][-1] for piece in theirs]):
            continue
        words = (_written(ours), _written(theirs))
        if words not in reported:
            reported.add(words)
            yield Difference("negation", *words)


def _oppose(ours: list[str], theirs: list[str]) -> bool:
    more_plus = ours.count("+") - theirs.count("+")
    more_minus = ours.count("-") - theirs.count("-")
    return more_plus * more_minus < 0 or (more_plus == more_minus == 0 and ours != theirs)


def _written(pieces: Sequence[Piece]) -> str:
    return ", ".join(piece[3] for piece in pieces)

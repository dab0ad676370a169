"""How many lines an edit adds and removes: by a real diff, and by the older formula, which counts newlines only."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def line_changes(old: str, new: str) -> tuple[int, int]:
    """Lines added and removed as `git diff --numstat --minimal` counts them: all but a longest common subsequence."""
    before, after = _lines(old), _lines(new)
    common = _common(before, after)
    return len(after) - common, len(before) - common


def _lines(text: str) -> list[str]:
    """Lines as git sees them: only a newline ends one, and a last line without it is another than one with it."""
    *whole, rest = text.split("\n")
    return [*(f"{line}\n" for line in whole), *([rest] if rest else [])]


def _common(before: Sequence[str], after: Sequence[str]) -> int:
    """The length of a longest common subsequence; one row of its table is one number, a bit for each line of `before`.

    So a rewritten file of 20,000 lines takes a moment and not minutes.
    """
    places: dict[str, int] = {}
    for place, line in enumerate(before):
        places[line] = places.get(line, 0) | 1 << place
    row = every = (1 << len(before)) - 1
    for line in after:
        matched = row & places.get(line, 0)
        row = ((row + matched) | (row - matched)) & every
    return len(before) - row.bit_count()


def counted_lines(old: str, new: str) -> tuple[int, int]:
    """Lines added and removed by the formula of M9: the difference of both counts of newlines, to one side."""
    difference = new.count("\n") - old.count("\n")
    return max(0, difference), max(0, -difference)

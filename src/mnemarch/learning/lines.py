"""How many lines an edit adds and removes: by a real diff, and by the older formula, which counts newlines only."""

from __future__ import annotations


def line_changes(old: str, new: str) -> tuple[int, int]:
    """Lines added and removed as `git diff --numstat --minimal` counts them: all but a longest common subsequence."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    row = [0] * (len(after) + 1)
    for line in before:
        above, row = row, [0]
        for index, other in enumerate(after):
            row.append(above[index] + 1 if line == other else max(above[index + 1], row[index]))
    return len(after) - row[-1], len(before) - row[-1]


def counted_lines(old: str, new: str) -> tuple[int, int]:
    """Lines added and removed by the formula of M9: the difference of both counts of newlines, to one side."""
    difference = new.count("\n") - old.count("\n")
    return max(0, difference), max(0, -difference)

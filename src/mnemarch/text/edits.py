"""What edits come to, and each in a line that looks like a diff."""

from __future__ import annotations

import sys

from mnemarch.text.cache import pattern
from mnemarch.text.words import counted, in_a_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeVar

    _T = TypeVar("_T")
# So many lines of each side are shown, and so many characters of each.
_LINES_MAX = 2
_CODE_CHARS_MAX = 80
_PATH_CHARS_MAX = 200
_FILE_OF_PATCH = r"\*\*\* \w+ File: (.*)"
# What begins something that has a name, in the languages that most code is written in.
_NAMED = (
    r"(?:export |default |pub(?:\(\w+\))? |public |private |protected |static |async |abstract )*"
    r"(?:def|class|func|fn|function|interface|struct|enum|trait|impl|module)\s+(?:\([^()]*\)\s*)?(\w+)"
)


def netted(edits: Iterable[tuple[_T, str, str, str]]) -> list[tuple[_T, str, str, str]]:
    """Edits, each as (what tells it, before, after, path), without what was only tried on the way.

    An edit of what an earlier one wrote takes its place, and one that is taken back is none.
    """
    net: list[tuple[_T, str, str, str]] = []
    for source, before, after, path in edits:
        on_top = [edit for edit in net if before and edit[3] == path and before in edit[2]]
        for edit in on_top[-1:]:
            net.remove(edit)
            before, after = edit[1], edit[2].replace(before, after, 1)
        net.append((source, before, after, path))
    return [edit for edit in net if edit[1] != edit[2]]


def sides_of(patch: str, path: str) -> tuple[str, str]:
    """A file's part of a patch, in the form of `apply_patch` or of a diff of one file, before and after."""
    before = after = ""
    is_here = True
    for line in patch.splitlines(keepends=True):
        if begins := pattern(_FILE_OF_PATCH).match(line):
            is_here = path.endswith(begins[1].strip())
        elif is_here and line[:3] not in {"+++", "---"}:
            before += line[1:] if line[:1] in {" ", "-"} else ""
            after += line[1:] if line[:1] in {" ", "+"} else ""
    return before, after


def told_edit(path: str, before: str, after: str, name: str = "") -> str:
    """An edit in a line: where it is, and the lines that only one side has."""
    where = in_a_line(path, _PATH_CHARS_MAX) + (f" in {as_code(name)}" if name else "")
    old, new = ([line.strip() for line in text.splitlines() if line.strip()] for text in (before, after))
    if not old and len(new) > _LINES_MAX:
        return f"{where}: {counted(len(new), 'line')} written"
    gone, come = _only_in(old, new), _only_in(new, old)
    shown = [as_code(f"{sign} {line}") for sign, lines in (("-", gone), ("+", come)) for line in lines[:_LINES_MAX]]
    more = len(gone) + len(come) - len(shown)
    says = " ".join(shown) + (f" and {counted(more, 'line')} more" if more else "")
    return f"{where}: {says or 'lines moved'}"


def enclosing_name(source: str, part: str) -> str:
    """The function or class that a part of a source begins in, by indentation; empty if there is none."""
    at = source.find(part) if part.strip() else -1
    if at < 0:
        return ""
    number = source.count("\n", 0, at + len(part) - len(part.lstrip()))
    names: list[str] = []
    depth = sys.maxsize
    for line in reversed(source.split("\n")[: number + 1]):
        bare = line.strip()
        indent = len(line) - len(line.lstrip())
        # A bracket that closes what began above says nothing of what is inside of what.
        if indent >= depth or not bare[:1].isidentifier():
            continue
        depth = indent
        if named := pattern(_NAMED).match(bare):
            names.append(named[1])
    return ".".join(reversed(names))


def _only_in(lines: Sequence[str], others: Sequence[str]) -> list[str]:
    known = set(others)
    return [line for line in lines if line not in known]


def as_code(text: str) -> str:
    """The beginning of code or of a command in a line, between marks that it can't close."""
    plain = text.replace("`", "'")
    return f"`{in_a_line(plain, _CODE_CHARS_MAX)}`"

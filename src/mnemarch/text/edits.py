"""The net effect of edits, and each edit as a line that looks like a diff."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

from mnemarch.lazy import Any
from mnemarch.model.value import Frozen
from mnemarch.text.cache import pattern
from mnemarch.text.words import counted, in_a_line

# Bounds of a shown edit: the lines of each side, and the characters of each line.
_LINES_MAX = 2
_CODE_CHARS_MAX = 80
_PATH_CHARS_MAX = 200
_FILE_OF_PATCH = r"(?m)^\*\*\* \w+ File: (.*)"
# Normalizes the characters that formatters change.
_FORMATTED = str.maketrans("'", '"', " \t\n,;()")
# The files whose comments begin with #, not //. The pattern matches docstrings.
_WITH_HASHES = (".py", ".rb", ".sh", ".yml", ".yaml", ".toml", ".cfg", ".ini")
_DOCSTRING = r"(?ms)^\s*(\"\"\"|\'\'\').*?\1\s*$"
# Bounds the earlier edits of a file among which the one that a later edit follows is searched.
_FOLLOWED_MAX = 30
# The beginning of a named definition in common languages: after a keyword, or after a type as in Java.
NAMED = (
    r"(?:@\w+ |export |default |pub(?:\(\w+\))? |public |private |protected |static |async |abstract )*"
    r"(?:(?:def|class|func|fun|fn|function|interface|struct|enum|trait|impl|module)\s+(?:\([^()]*\)\s*)?(?=\w)"
    r"|(?!(?:if|for|while|match|switch|go|defer|else|return|new|throw|await|case|when|catch)\b)"
    r"[\w<>\[\].]{1,80}\s+(?=\w+\s*\([^()]*\)[^;{}()]*\{))(\w+)"
)


class Edit(Frozen):
    """One edit of a file, or several of the same place joined. `sources` are their log entries, the newest last.

    `name` is the enclosing function or class, if known.
    """

    sources: tuple[Any, ...]
    path: str
    before: str
    after: str
    name: str = ""

    @property
    def changes(self) -> bool:
        return self.before != self.after

    @property
    def does_something(self) -> bool:
        """Whether it changes more than comments, docstrings and blank lines."""
        return _code(self.before, self.path) != _code(self.after, self.path)

    def follows(self, earlier: Edit) -> bool:
        """Whether it edits text that an earlier edit of the same file wrote. The text must be unique there."""
        is_place = not (self.name and earlier.name) or f"{self.name}.".startswith(f"{earlier.name}.")
        return is_place and bool(self.before) and earlier.after.count(self.before) == 1

    def on(self, earlier: Edit) -> Edit:
        """The earlier edit and this one, joined."""
        after = earlier.after.replace(self.before, self.after, 1)
        return Edit((*earlier.sources, *self.sources), self.path, earlier.before, after, earlier.name)

    def stands_in(self, text: str) -> bool:
        """Whether the file still has this edit: the replaced text is not back, and most of the new lines are there."""
        if self.before.strip() and self.before not in self.after and self.before in text:
            return False
        # Redacted lines can't be compared: only the file has the secret.
        come = [line for line in _only_in(_lines(self.after), _lines(self.before)) if "[REDACTED:" not in line]
        if not come or self.after in text:
            return True
        loose = text.translate(_FORMATTED)
        there = sum(line.translate(_FORMATTED) in loose for line in come)
        # Without a `before`, the file was written as a whole. Then all lines must be there, since most may be old.
        return 2 * there > len(come) if self.before else there == len(come)


def netted(edits: Iterable[Edit]) -> list[Edit]:
    """The net edits: an edit of text that an earlier edit wrote is joined with it.

    For an edit that was reverted, `changes` is false.
    """
    net: dict[int, Edit] = {}
    of_path: dict[str, list[int]] = {}
    for number, edit in enumerate(edits):
        there = of_path.setdefault(edit.path, [])
        earlier = next((at for at in there[: -_FOLLOWED_MAX - 1 : -1] if edit.follows(net[at])), None)
        if earlier is not None:
            there.remove(earlier)
        net[number] = edit if earlier is None else edit.on(net.pop(earlier))
        there.append(number)
    return list(net.values())


def sides_of(patch: str, path: str) -> tuple[str, str]:
    """The text before and after of a file's part in a patch. The patch is for `apply_patch`, or a diff of one file."""
    named = [os.path.normpath(name.strip()) for name in pattern(_FILE_OF_PATCH).findall(patch)]
    # A patch made in a subfolder has paths relative to it.
    own = max((name for name in named if f"/{path}".endswith(f"/{name}")), key=len, default="")
    before = after = ""
    is_here, is_body = not named, False
    for line in patch.splitlines(keepends=True):
        if begins := pattern(_FILE_OF_PATCH).match(line):
            is_here, is_body = os.path.normpath(begins[1].strip()) == own, True
        elif line.startswith(("@@", "diff ")):
            is_body = line[0] == "@"
        elif is_here and (is_body or line[:3] not in {"+++", "---"}):
            before += line[1:] if line[:1] in {" ", "-"} else ""
            after += line[1:] if line[:1] in {" ", "+"} else ""
    return before, after


def told_edit(edit: Edit) -> str:
    """An edit in one line: its place, and the lines that only one side has."""
    where = in_a_line(edit.path, _PATH_CHARS_MAX) + (f" in {as_code(edit.name)}" if edit.name else "")
    old, new = _lines(edit.before), _lines(edit.after)
    if not old and len(new) > _LINES_MAX:
        return f"{where}: {counted(len(new), 'line')} written"
    gone, come = _only_in(old, new), _only_in(new, old)
    shown = [as_code(f"{sign} {line}") for sign, lines in (("-", gone), ("+", come)) for line in lines[:_LINES_MAX]]
    more = len(gone) + len(come) - len(shown)
    says = " ".join(shown) + (f" and {counted(more, 'line')} more" if more else "")
    return f"{where}: {says or 'lines moved'}"


def is_of_tests(path: str) -> bool:
    return "test" in path.lower() or "spec" in path.lower()


def done_in(change: str) -> str:
    """The act in a line: a command, or the place of an edit. Empty for a line that only summarizes."""
    where, mark, _ = change.partition(": ")
    if change.startswith("`"):
        return change
    return where if mark else ""


def enclosing_name(source: str, part: str) -> str:
    """The function or class in which a part of a source begins, found by indentation. Empty if there is none."""
    at = source.find(part) if part.strip() else -1
    if at < 0:
        return ""
    number = source.count("\n", 0, at + len(part) - len(part.lstrip()))
    names: list[str] = []
    depth = sys.maxsize
    for line in reversed(source.split("\n")[: number + 1]):
        bare = line.strip()
        indent = len(line) - len(line.lstrip())
        # A line that begins with a closing bracket does not show the nesting.
        if indent >= depth or not bare[:1].isidentifier():
            continue
        depth = indent
        if named := pattern(NAMED).match(bare):
            names.append(named[1])
    return ".".join(reversed(names))


def _code(text: str, path: str) -> list[str]:
    mark = "#" if path.endswith(_WITH_HASHES) else "//"
    plain = pattern(rf"(?m)^\s*{mark}.*$|\s{mark}[^\"'`\n]*$").sub("", pattern(_DOCSTRING).sub("", text))
    return [line.rstrip() for line in plain.splitlines() if line.strip()]


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _only_in(lines: Sequence[str], others: Sequence[str]) -> list[str]:
    known = set(others)
    return [line for line in lines if line not in known]


def as_code(text: str) -> str:
    """The beginning of code or of a command on one line, in backquotes that the text itself can't close."""
    plain = text.replace("`", "'")
    return f"`{in_a_line(plain, _CODE_CHARS_MAX)}`"

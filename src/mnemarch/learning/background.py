"""Code that nobody complained of: a rule that would change much of it is too general."""

from __future__ import annotations

import os
import re
from functools import cache, lru_cache
from pathlib import Path

from mnemarch.learning.patterns import matches
from mnemarch.learning.rule import form_of
from mnemarch.learning.trees import kinds_of, parsed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.learning.trees import Node

_LANGUAGE = "python"
_LINES_MAX = 25_000
_STEP = 5
_HITS_PER_LINE_MAX = 10 / 100_000


@cache
def library_sample() -> tuple[Path, ...]:
    """Every fifth module of the interpreter's own library, up to a number of lines."""
    folder = Path(os.__file__).parent
    chosen: list[Path] = []
    lines = 0
    for path in sorted(folder.glob("*.py"))[::_STEP]:
        if lines < _LINES_MAX:
            chosen.append(path)
            lines += path.read_bytes().count(b"\n")
    return tuple(chosen)


class _File:
    """One file of the background: its words, and its nodes by kind with what follows them."""

    def __init__(self, path: Path) -> None:
        source = path.read_text("utf-8", "replace")
        tree = parsed(source, _LANGUAGE)
        self.lines = source.count("\n")
        self.words = frozenset(re.findall(r"\w+", source))
        self.by_kind: dict[str, list[tuple[list[Node], int]]] = {}
        for node in () if tree is None else tree.root.walk():
            for index, child in enumerate(node.children):
                self.by_kind.setdefault(child.kind, []).append((node.children, index))


@cache
def _files() -> tuple[_File, ...]:
    return tuple(_File(path) for path in library_sample())


@lru_cache(maxsize=4_096)
def is_too_common(before: str, after: str, language: str) -> bool:
    """Whether a rule would change more than ten places in 100,000 lines of the standard library."""
    form = form_of(before, after, language) if language == _LANGUAGE else None
    if form is None:
        return False
    kinds, first, width = kinds_of(language), form.nodes[0].kind, len(form.nodes)
    allowed = max(1, sum(file.lines for file in _files()) * _HITS_PER_LINE_MAX)
    hits = 0
    for file in _files():
        if form.words <= file.words:
            for siblings, index in file.by_kind.get(first, ()):
                hits += matches(form.nodes, siblings[index : index + width], kinds) is not None
                if hits > allowed:
                    return True
    return False

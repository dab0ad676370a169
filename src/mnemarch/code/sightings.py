"""What a text names in the working tree: evidence nobody had to write down, to be checked again at recall (R11)."""

from __future__ import annotations

import os

from mnemarch.code.references import Reference, paths_in_data, references_in
from mnemarch.code.sources import Trouble
from mnemarch.code.tree import checked_in_tree
from mnemarch.errors import InvalidInput
from mnemarch.lazy import Lazy
from mnemarch.model.citation import Citation
from mnemarch.model.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator
    from typing import Any

    from mnemarch.code.codebase import Codebase
else:
    re = Lazy("re")

_SEEN_MAX = 8


def sightings(code: Codebase, text: str, data: Iterable[Any] = ()) -> tuple[Citation, ...]:
    """The files and symbols of the tree that a text, or the data of a tool's event, speaks of."""
    named = [*references_in(text), *(Reference(path, None, None) for item in data for path in paths_in_data(item))]
    found: dict[str, Citation] = {}
    for citation in _cited(code, named, text):
        found.setdefault(str(citation), citation)
        if len(found) >= _SEEN_MAX:
            break
    files = {citation.ref for citation in found.values() if citation.kind == "symbol"}
    return tuple(item for item in found.values() if item.kind != "file" or item.ref not in files)


def _cited(code: Codebase, named: Iterable[Reference], text: str) -> Iterator[Citation]:
    for reference in named:
        path = _inside(code, reference.path)
        if path is None:
            continue
        name = reference.name or _around(code, path, reference.lines)
        for wanted in ([Citation.symbol(path, name)] if name else []) + [Citation.file(path)]:
            try:
                checked = checked_in_tree(wanted, code.root, code.tree)
            except InvalidInput:
                continue  # The text names more than the file has, and nobody asked for it to be cited.
            known = dict(checked.detail) | {"by": "text"}
            if not _says(text, known.get("value", "")):
                known.pop("value", None)  # It speaks of a constant, whatever that is given.
            yield replace(checked, detail=tuple(sorted(known.items())))
            break


def _says(text: str, value: str) -> bool:
    bare = value.strip("'\"")
    return bool(bare) and re.search(rf"(?<![\w.]){re.escape(bare)}(?!\w|\.\d)", text) is not None


def _inside(code: Codebase, path: str) -> str | None:
    """The path from the tree's root, if the tree has it; people leave out the folders that go without saying."""
    if os.path.isabs(path):
        root = os.path.realpath(code.root)
        relative = os.path.relpath(os.path.realpath(path), root)
        return relative if not relative.startswith("..") and code.tree.has(relative) else None
    path = os.path.normpath(path).replace(os.sep, "/")
    if path.startswith("../") or path in {".", ".."}:
        return None
    return path if code.tree.has(path) else code.ending_with(path)


def _around(code: Codebase, path: str, lines: tuple[int, int] | None) -> str | None:
    """The innermost definition around some lines: their numbers change with every edit, its name does not."""
    symbols = code.tree.symbols(path) if lines is not None else None
    if lines is None or symbols is None or isinstance(symbols, Trouble):
        return None
    around = [symbol for symbol in symbols.values() if symbol.first <= lines[0] and lines[1] <= symbol.last]
    return min(around, key=lambda symbol: symbol.last - symbol.first).name if around else None

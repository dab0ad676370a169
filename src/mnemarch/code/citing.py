"""Citations of code: checked and completed when they are recorded, and taken from what a text names (R2, R11)."""

from __future__ import annotations

import os

from mnemarch.code import references
from mnemarch.code.git import full_hash, root_name
from mnemarch.code.sources import CHANGED, Check
from mnemarch.code.symbols import COMPUTED, VALUE_CHARS_MAX, Symbol, agrees, find
from mnemarch.code.worktree import WorkTree, checked, lines_hash, lines_of, span_of
from mnemarch.errors import Hint, InvalidInput
from mnemarch.model.citation import OF_CODE, Citation, CitationKind
from mnemarch.model.value import replace
from mnemarch.text import secrets
from mnemarch.text.cache import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, TypeVar

    from mnemarch.code.codebase import Codebase

    T = TypeVar("T")

# A longer one (a name with dozens of overloads) is not stored: then only the name is checked later.
_SIGNATURE_CHARS_MAX = 4_000
_NAMED_MAX = 8
_TEXT_DEFAULT = r"""= ?(?:"[^"]*"|'[^']*')"""


def checked_in_tree(citation: Citation, root: str | None, tree: WorkTree | None = None) -> Citation:
    """The citation, completed with what the tree says of it; refused if the tree does not have it.

    `tree`, if there is one for `root` already, saves reading and parsing again.
    """
    if citation.kind is not CitationKind.COMMIT and citation.kind not in OF_CODE:
        return citation
    if root is None:
        raise InvalidInput(f"{citation} can't be checked: this seat has no working tree.", hint=Hint("name the root"))
    if citation.kind is CitationKind.COMMIT:
        whole = full_hash(root, citation.ref)
        if whole is None:
            raise InvalidInput(
                f"No commit {citation.ref!r} in the repository of {root}.", hint="Cite an existing commit."
            )
        return replace(citation, ref=whole)
    complete = _complete_symbol if citation.kind is CitationKind.SYMBOL else _complete_file
    # The same path in another folder is another file.
    return _with_detail(complete(citation, tree or WorkTree(root)), root=root_name(root) or "")


def retaken(citations: Iterable[Citation], code: Codebase) -> list[Citation]:
    """The symbols among these citations whose signatures changed, cited with the new one beside the old (R11).

    The old one stays: it still holds on branches that have not seen the change. A constant with another value is
    another fact, and stays as it was cited.
    """
    changed = []
    for citation in citations:
        if citation.kind is not CitationKind.SYMBOL or checked(code.tree, citation).state != CHANGED:
            continue
        try:
            now = _complete_symbol(citation, code.tree)
        except InvalidInput:
            continue  # One name has become several.
        old, new = (each.get("signature") or "" for each in (citation, now))
        signature = "\n".join(dict.fromkeys([*new.split("\n"), *old.split("\n")]))
        if (
            not agrees(old, new)
            and len(signature) <= _SIGNATURE_CHARS_MAX
            and citation.get("value") == now.get("value")
        ):
            changed.append(_with_detail(now, signature=signature))
    return changed


def cited_in_text(code: Codebase, text: str, data: Iterable[Any] = ()) -> tuple[Citation, ...]:
    """The files and symbols of the tree that a text, or the data of a tool's event, names.

    Nobody had to write this evidence down; it is checked again at recall.
    """
    named = references.references_in(text)
    named += [references.Reference(path) for item in data for path in references.paths_in_data(item)]
    citations: dict[str, Citation] = {}
    for citation in _cited(code, named, text):
        citations.setdefault(str(citation), citation)
        if len(citations) >= _NAMED_MAX:
            break
    with_symbols = {citation.ref for citation in citations.values() if citation.kind == "symbol"}
    return tuple(item for item in citations.values() if item.kind != "file" or item.ref not in with_symbols)


def _complete_file(citation: Citation, tree: WorkTree) -> Citation:
    source = _citable(tree.read(citation.ref))
    if citation.get("lines") is None:
        return _with_detail(citation, sha256=_citable(tree.content_hash(citation.ref)))
    span, lines = span_of(citation), lines_of(source.text)
    if span is None or span[1] > len(lines):
        raise InvalidInput(
            f"{citation.ref!r} has {len(lines)} lines, not {citation.get('lines')}.", hint="Cite lines that are there."
        )
    return _with_detail(citation, sha256=lines_hash(lines[span[0] - 1 : span[1]]))


def _complete_symbol(citation: Citation, tree: WorkTree) -> Citation:
    path, name = citation.ref, citation.get("name") or ""
    sha256 = _citable(tree.content_hash(path))
    symbols = tree.symbols(path)
    if isinstance(symbols, Check):
        if tree.mentions(path, name) is not True:
            raise InvalidInput(f"No {name!r} in {path!r}.", hint="Cite a name that the file has.")
        return _with_detail(citation, sha256=sha256)
    named = find(symbols, name)
    if not named:
        raise InvalidInput(f"{path!r} defines no {name!r}.", hint="Cite a name that the file defines.")
    if len(named) > 1:
        names = sorted(symbol.name for symbol in named)
        raise InvalidInput(
            f"{name!r} can be any of {len(names)} names in {path!r}: {', '.join(names[:5])}.",
            hint=f"Cite one of them, for example symbol:{path}::{names[0]}.",
        )
    [symbol] = named
    return _with_detail(
        citation,
        name=symbol.name,
        sha256=sha256,
        signature=_storable_signature(symbol.signature),
        value=_storable_value(symbol),
    )


def _storable_signature(signature: str) -> str:
    if not _is_storable(signature):
        signature = pattern(_TEXT_DEFAULT).sub(f"= {COMPUTED}", signature)  # A default value may be a secret.
    return signature if len(signature) <= _SIGNATURE_CHARS_MAX and _is_storable(signature) else ""


def _storable_value(symbol: Symbol) -> str:
    """What it is given, if that is written there in short and is no secret, alone or under its name."""
    value = symbol.value
    is_short = COMPUTED not in value.split("\n") and len(value) <= VALUE_CHARS_MAX
    return value if value and is_short and _is_storable(value) and _is_storable(f"{symbol.name} = {value}") else ""


def _is_storable(text: str) -> bool:
    # What would be redacted on its way into the log could never be found equal again.
    return secrets.redacted(text)[0] == text


def _with_detail(citation: Citation, **details: str) -> Citation:
    detail = dict(citation.detail) | {name: text for name, text in details.items() if text}
    return replace(citation, detail=tuple(sorted(detail.items())))


def _citable(answer: T | Check) -> T:
    if isinstance(answer, Check):
        raise InvalidInput(
            f"Not citable: {answer.reason}.",
            hint="Cite a text file by its path from the root; lines of it as PATH#L2-L9.",
        )
    return answer


def _cited(code: Codebase, named: Iterable[references.Reference], text: str) -> Iterator[Citation]:
    for reference in named:
        path = _inside(code, reference.path)
        if path is None:
            continue
        name = reference.name or _definition_around(code, path, reference.lines)
        for wanted in ([Citation.symbol(path, name)] if name else []) + [Citation.file(path)]:
            try:
                citation = checked_in_tree(wanted, code.root, code.tree)
            except InvalidInput:
                continue  # The text names more than the file has, and nobody asked for it to be cited.
            detail = dict(citation.detail) | {"by": "text"}
            if not _says(text, detail.get("value", "")):
                detail.pop("value", None)  # It is about a constant, whatever its value is.
            yield replace(citation, detail=tuple(sorted(detail.items())))
            break


def _says(text: str, value: str) -> bool:
    import re

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


def _definition_around(code: Codebase, path: str, lines: tuple[int, int] | None) -> str | None:
    """The innermost definition around some lines: their numbers change with every edit, its name does not."""
    if lines is None or isinstance(symbols := code.tree.symbols(path), Check):
        return None
    around = [symbol for symbol in symbols.values() if symbol.first <= lines[0] and lines[1] <= symbol.last]
    return min(around, key=lambda symbol: symbol.last - symbol.first).name if around else None

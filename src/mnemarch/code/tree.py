"""Evidence in the working tree: that a cited commit, file or symbol is really there (R2, R11)."""

from __future__ import annotations

from mnemarch.code.git import folder_name, full_hash
from mnemarch.code.sources import Trouble
from mnemarch.code.symbol import COMPUTED, VALUE_CHARS_MAX
from mnemarch.code.symbols import find, language_of
from mnemarch.code.worktree import WorkTree, lines_hash, lines_of, span_of
from mnemarch.errors import Hint, InvalidInput
from mnemarch.lazy import Lazy
from mnemarch.model.citation import Citation, CitationKind
from mnemarch.model.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from mnemarch.code.symbols import Symbol
    from mnemarch.text import secrets

    T = TypeVar("T")
else:
    secrets = Lazy("mnemarch.text.secrets")

# Longer ones (a name with dozens of overloads) are not kept: then only the name is checked later.
_SIGNATURE_CHARS_MAX = 4_000


def checked_in_tree(citation: Citation, root: str | None, tree: WorkTree | None = None) -> Citation:
    """The citation, completed with what the tree says of it; refused if the tree does not have it.

    `tree`, if there is one for `root` already, saves reading and parsing again.
    """
    if citation.kind not in {CitationKind.COMMIT, CitationKind.FILE, CitationKind.SYMBOL}:
        return citation
    if root is None:
        raise InvalidInput(
            f"{citation} can't be checked: this seat has no working tree.",
            hint=Hint("name the root"),
        )
    if citation.kind is CitationKind.COMMIT:
        whole = full_hash(root, citation.ref)
        if whole is None:
            raise InvalidInput(
                f"No commit {citation.ref!r} in the repository of {root}.", hint="Cite an existing commit."
            )
        return replace(citation, ref=whole)
    tree = tree or WorkTree(root)
    check = _checked_symbol if citation.kind is CitationKind.SYMBOL else _checked_file
    # The same path in another folder is another file.
    return _completed(check(citation, tree), root=folder_name(root) or "")


def _checked_file(citation: Citation, tree: WorkTree) -> Citation:
    source = _had(tree.read(citation.ref))
    if citation.get("lines") is None:
        return _completed(citation, sha256=_had(tree.content_hash(citation.ref)))
    span, lines = span_of(citation), lines_of(source.text)
    if span is None or span[1] > len(lines):
        raise InvalidInput(
            f"{citation.ref!r} has {len(lines)} lines, not {citation.get('lines')}.", hint="Cite lines that are there."
        )
    return _completed(citation, sha256=lines_hash(lines[span[0] - 1 : span[1]]))


def _checked_symbol(citation: Citation, tree: WorkTree) -> Citation:
    path, name = citation.ref, citation.get("name") or ""
    sha256 = _had(tree.content_hash(path))
    symbols = tree.symbols(path) if language_of(path) is not None else None
    if symbols is None or isinstance(symbols, Trouble):
        if tree.mentions(path, name) is not True:
            raise InvalidInput(f"No {name!r} in {path!r}.", hint="Cite a name that the file has.")
        return _completed(citation, sha256=sha256)
    found = find(symbols, name)
    if not found:
        raise InvalidInput(f"{path!r} defines no {name!r}.", hint="Cite a name that the file defines.")
    if len(found) > 1:
        names = sorted(symbol.name for symbol in found)
        raise InvalidInput(
            f"{name!r} can be any of {len(names)} names in {path!r}: {', '.join(names[:5])}.",
            hint=f"Cite one of them, for example symbol:{path}::{names[0]}.",
        )
    [symbol] = found
    known = {"signature": _kept_signature(symbol.signature), "value": _kept_value(symbol)}
    return _completed(citation, name=symbol.name, sha256=sha256, **known)


def _kept_signature(signature: str) -> str:
    is_kept = len(signature) <= _SIGNATURE_CHARS_MAX and _is_kept(signature)
    return signature if is_kept else ""


def _kept_value(symbol: Symbol) -> str:
    """What it is given, if that stands there in short and is no secret, alone or under its name."""
    told = symbol.value
    is_told = COMPUTED not in told.split("\n") and len(told) <= VALUE_CHARS_MAX
    return told if told and is_told and _is_kept(told) and _is_kept(f"{symbol.name} = {told}") else ""


def _is_kept(text: str) -> bool:
    # What would be redacted on its way into the log could never be found equal again.
    return secrets.redacted(text)[0] == text


def _completed(citation: Citation, **known: str) -> Citation:
    detail = dict(citation.detail) | {name: text for name, text in known.items() if text}
    return replace(citation, detail=tuple(sorted(detail.items())))


def _had(found: T | Trouble) -> T:
    if isinstance(found, Trouble):
        raise InvalidInput(
            f"Not citable: {found.reason}.", hint="Cite a text file of the working tree by its path from the root."
        )
    return found

"""Evidence in the working tree: that a cited commit, file or symbol is really there (R2, R11)."""

from __future__ import annotations

import hashlib
import os
import re

from mnemon.code.git import full_hash
from mnemon.errors import InvalidInput
from mnemon.model.citation import Citation, CitationKind
from mnemon.model.value import replace

_FILE_BYTES_MAX = 8_388_608


def checked_in_tree(citation: Citation, root: str | None) -> Citation:
    """The citation, completed with what the tree says of it; refused if the tree does not have it."""
    if citation.kind not in {CitationKind.COMMIT, CitationKind.FILE, CitationKind.SYMBOL}:
        return citation
    if root is None:
        raise InvalidInput(
            f"{citation} can't be checked: this seat has no working tree.",
            hint="Take a seat with root='path/of/the/worktree'.",
        )
    if citation.kind is CitationKind.COMMIT:
        whole = full_hash(root, citation.ref)
        if whole is None:
            raise InvalidInput(
                f"No commit {citation.ref!r} in the repository of {root}.", hint="Cite an existing commit."
            )
        return replace(citation, ref=whole)
    text = _text_of(citation, root)
    if citation.kind is CitationKind.SYMBOL:
        return _checked_symbol(citation, text)
    return _checked_lines(citation, text)


def _text_of(citation: Citation, root: str) -> str:
    """The cited file's text, never from outside the tree."""
    path = os.path.join(root, citation.ref)
    try:
        inside = os.path.realpath(root)
        if os.path.isabs(citation.ref) or os.path.commonpath([inside, os.path.realpath(path)]) != inside:
            raise InvalidInput(
                f"{citation.ref!r} is outside the working tree.", hint="Cite a path relative to its root."
            )
        if not os.path.isfile(path):
            raise InvalidInput(f"No file {citation.ref!r} in {root}.", hint="Cite a file of the working tree.")
        if os.path.getsize(path) > _FILE_BYTES_MAX:
            raise InvalidInput(f"{citation.ref!r} is over {_FILE_BYTES_MAX} bytes.", hint="Cite a smaller file.")
        with open(path, "rb") as file:
            return file.read().decode()
    except UnicodeDecodeError:
        raise InvalidInput(f"{citation.ref!r} is not a UTF-8 text.", hint="Cite a text file.") from None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{citation.ref!r} can't be read: {error}.", hint="Cite a readable file.") from None


def _checked_lines(citation: Citation, text: str) -> Citation:
    span = citation.get("lines")
    if span is not None:
        first, last = map(int, span.split("-"))
        lines = text.splitlines()
        if last > len(lines):
            raise InvalidInput(
                f"{citation.ref!r} has {len(lines)} lines, not {last}.", hint="Cite lines that are there."
            )
        text = "\n".join(lines[first - 1 : last])
    digest = hashlib.sha256(text.encode()).hexdigest()
    detail = dict(citation.detail) | {"sha256": digest}
    return replace(citation, detail=tuple(sorted(detail.items())))


def _checked_symbol(citation: Citation, text: str) -> Citation:
    name = (citation.get("name") or "").replace("::", ".").rsplit(".", 1)[-1]
    if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text):
        raise InvalidInput(f"No {name!r} in {citation.ref!r}.", hint="Cite a name that the file defines.")
    return citation

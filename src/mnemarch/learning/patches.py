"""Reads patches from the commits of a repository, and cuts a patch down to the statements that changed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from textwrap import dedent

from mnemarch.code.git import output
from mnemarch.code.symbols import language_of
from mnemarch.errors import InvalidInput
from mnemarch.learning.edits import patch_of
from mnemarch.learning.trees import LANGUAGES, Node, Tree, fragments, origins_of
from mnemarch.model.value import Frozen

_TEXT_CHARS_MAX = 400_000
_PIECE_CHARS_MAX = 4_000
_SITES_MAX = 40
_FILES_MAX = 100
_GIT_MODIFIED = ("-r", "-z", "-M", "--no-renames", "--diff-filter=M", "--raw", "--no-abbrev")


class FilePatch(Frozen):
    """One file before and after a change, with its path and the commit that changed it."""

    before: str
    after: str
    path: str = ""
    commit: str | None = None


def language_for(path: str, language: str | None = None) -> str | None:
    """The language of a patch; None if no rules are learned from it."""
    named = language or (language_of(path) if path else "python")
    named = "typescript" if named == "javascript" else named
    return named if named in LANGUAGES else None


def pieces(before: str, after: str, language: str) -> list[tuple[str, str]]:
    """The changed statements before and after, with the imports of their names. A fragment is returned whole."""
    if max(len(before), len(after)) > _TEXT_CHARS_MAX:
        return []
    trees = fragments([before, after], language)
    if not trees:
        return []
    patch = patch_of(*trees)
    if patch.before.prefix or patch.before.suffix:
        return [(before, after)]
    found: dict[tuple[str, str], None] = {}
    for site in patch.sites[:_SITES_MAX]:
        pairs = [*site.parents, *zip(site.before, site.after, strict=False)]
        inner = [pair for outer, pair in pairwise(pairs) if outer[0].kind in patch.before.kinds.blocks]
        if len(site.before) == len(site.after) == 1 and inner:
            old, new = inner[-1]
            texts = _piece(patch.before, (old,)), _piece(patch.after, (new,))
        elif site.before and site.after:
            texts = _piece(patch.before, site.before), _piece(patch.after, site.after)
        else:
            continue
        if max(map(len, texts)) <= _PIECE_CHARS_MAX:
            found[texts] = None
    return list(found)


def _piece(tree: Tree, nodes: Sequence[Node]) -> str:
    start = tree.source.rfind("\n", 0, nodes[0].start) + 1
    is_alone = not tree.source[start : nodes[0].start].strip()
    text = tree.source[start if is_alone else nodes[0].start : nodes[-1].end]
    words = {leaf.text for node in nodes for leaf in node.walk() if not leaf.children}
    imports = [] if nodes[0].kind in tree.kinds.imports else origins_of(tree, words)
    return "\n".join([*imports, dedent(text)]) + "\n"


def commits_of(root: str, named: str) -> list[str]:
    """The commits of a range (A..B), oldest first, or the one that is named. Merges are left out."""
    one = [] if ".." in named else ["--max-count=1"]
    return _asked(root, ["rev-list", "--no-merges", "--reverse", *one, named, "--"], named).decode().split()


def commit_patches(root: str, commit: str) -> Iterator[FilePatch]:
    """The files that one commit modified, before and after."""
    raw = _asked(root, ["diff-tree", "--no-commit-id", "--root", *_GIT_MODIFIED, commit], commit)
    # Git's raw format: the blobs before and after, and the path.
    fields = raw.decode(errors="replace").split("\0")
    listed = [(entry.split()[2:4], path) for entry, path in zip(fields[::2], fields[1::2], strict=False)]
    for (old, new), path in listed[:_FILES_MAX]:
        if language_for(path) is None:
            continue
        texts = [output(root, ["cat-file", "blob", blob]) for blob in (old, new)]
        if None not in texts:
            before, after = ((text or b"").decode(errors="replace") for text in texts)
            yield FilePatch(before=before, after=after, path=path, commit=commit)


def _asked(root: str, arguments: Sequence[str], named: str) -> bytes:
    printed = None if named.startswith("-") else output(root, arguments)
    if printed is None:
        raise InvalidInput(f"git knows no {named!r} here.", hint="Name a commit, or a range A..B.")
    return printed


def files_under(path: str) -> list[str]:
    """The files at or below a path to which rules can be applied. Files that git ignores are left out."""
    if os.path.isfile(path):
        return [path] if language_for(path) else []
    listed = output(path, ["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
    if listed is None:
        walked = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
    else:
        walked = (os.path.join(path, name) for name in listed.decode(errors="replace").split("\0") if name)
    return sorted(file for file in walked if language_for(file) and os.path.isfile(file))

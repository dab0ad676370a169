"""Where patches come from: commits, what is staged, diff files; each cut down to the statements that changed."""

from __future__ import annotations

import os
import re
from itertools import pairwise
from textwrap import dedent

from mnemarch.code.git import output
from mnemarch.code.symbols import language_of
from mnemarch.errors import InvalidInput
from mnemarch.learning.edits import patch_of
from mnemarch.learning.trees import LANGUAGES, Node, Tree, fragments, origins_of
from mnemarch.model.value import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_TEXT_CHARS_MAX = 400_000
_PIECE_CHARS_MAX = 4_000
_SITES_MAX = 40
_FILES_MAX = 100
_NO_BLOB = re.compile("0+")
_GIT_MODIFIED = ("-r", "-z", "-M", "--no-renames", "--diff-filter=M", "--raw", "--no-abbrev")


class FilePatch(Frozen):
    """One file before and after a change, where it is and the commit that changed it."""

    before: str
    after: str
    path: str = ""
    commit: str | None = None


def language_for(path: str, language: str | None = None) -> str | None:
    """The language of a patch, if rules are learned from it."""
    named = language or (language_of(path) if path else "python")
    named = "typescript" if named == "javascript" else named
    return named if named in LANGUAGES else None


def pieces(before: str, after: str, language: str) -> list[tuple[str, str]]:
    """The statements that changed, each with the imports that its names come from; a fragment as it is."""
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


def staged_patches(root: str) -> Iterator[FilePatch]:
    """What is staged in a repository."""
    return _patches(root, _asked(root, ["diff-index", "--cached", *_GIT_MODIFIED, "HEAD"], "what is staged"), None)


def end_of_longer(root: str, named: str) -> str | None:
    """The end of a range that begins before the first commit, as HEAD~20..HEAD may; None of any other."""
    start, dots, end = named.partition("..")
    tip = start.rpartition("~")[0]
    if not (dots and tip) or named.startswith("-") or end.startswith((".", "-")) or _is_commit(root, start):
        return None
    end = end or "HEAD"
    return end if _is_commit(root, tip) and _is_commit(root, end) else None


def _is_commit(root: str, named: str) -> bool:
    return output(root, ["rev-parse", "--verify", "--quiet", f"{named}^{{commit}}"]) is not None


def commits_of(root: str, named: str) -> list[str]:
    """The commits of a range (A..B), or the one that is named, oldest first; merges are left out.

    A range that begins before the first commit has all commits up to its end.
    """
    one = [] if ".." in named else ["--max-count=1"]
    if named.startswith("-"):
        raise InvalidInput(f"{named!r} is no commit.", hint="Name a commit, a range A..B, --staged or a diff file.")
    meant = end_of_longer(root, named) or named
    listed = _asked(root, ["rev-list", "--no-merges", "--reverse", *one, meant, "--"], named)
    return listed.decode().split()


def commit_patches(root: str, commit: str) -> Iterator[FilePatch]:
    """What one commit changed, file by file."""
    raw = _asked(root, ["diff-tree", "--no-commit-id", "--root", *_GIT_MODIFIED, commit], commit)
    return _patches(root, raw, commit)


def _asked(root: str, arguments: Sequence[str], what: str) -> bytes:
    printed = output(root, arguments)
    if printed is None:
        raise InvalidInput(
            f"git can't tell {what!r} here.", hint="Name a commit, a range A..B, --staged or a diff file."
        )
    return printed


def _patches(root: str, raw: bytes, commit: str | None) -> Iterator[FilePatch]:
    """The patches of git's raw format: the blobs before and after, and the path."""
    fields = raw.decode(errors="replace").split("\0")
    listed = [(entry.split()[2:4], path) for entry, path in zip(fields[::2], fields[1::2], strict=False)]
    for (old, new), path in listed[:_FILES_MAX]:
        if language_for(path) is None or _NO_BLOB.fullmatch(old) or _NO_BLOB.fullmatch(new):
            continue
        texts = [output(root, ["cat-file", "blob", blob]) for blob in (old, new)]
        if None not in texts:
            before, after = ((text or b"").decode(errors="replace") for text in texts)
            yield FilePatch(before=before, after=after, path=path, commit=commit)


def diff_patches(text: str) -> Iterator[FilePatch]:
    """The hunks of a diff as `git diff` or `diff -u` writes it; each is a fragment of its file."""
    path = ""
    for part in re.split(r"^(?=\+\+\+ |@@ )", text, flags=re.M):
        if part.startswith("+++ "):
            path = part.splitlines()[0][4:].split("\t")[0].removeprefix("b/")
        elif part.startswith("@@ "):
            lines = [line for line in part.splitlines()[1:] if line[:1] in {" ", "+", "-"} and line[:4] != "--- "]
            before = "\n".join(line[1:] for line in lines if line[0] != "+")
            after = "\n".join(line[1:] for line in lines if line[0] != "-")
            if language_for(path) is not None:
                yield FilePatch(before=before + "\n", after=after + "\n", path=path)


def files_under(path: str) -> list[str]:
    """The files at or below a path that rules can be applied to; inside a repository without what git ignores."""
    if os.path.isfile(path):
        return [path] if language_for(path) else []
    listed = output(path, ["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
    if listed is None:
        walked = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
    else:
        walked = (os.path.join(path, name) for name in listed.decode(errors="replace").split("\0") if name)
    return sorted(file for file in walked if language_for(file) and os.path.isfile(file))

"""The files of one commit, as git keeps them: what the code says where nobody has it checked out (R11)."""

from __future__ import annotations

import os
import threading

from mnemarch.code.objects import Objects
from mnemarch.code.refs import is_hash
from mnemarch.code.repository import repository_around
from mnemarch.code.sources import FILE_BYTES_MAX, MISSING, UNKNOWN, Source, Trouble, trouble_with
from mnemarch.model.value import value

_TREE_BYTES_MAX = 64 << 20
_TREES_MAX = 256
_FOLDER, _LINK, _SUBMODULE = b"40000", b"120000", b"160000"
# Where the content itself is kept elsewhere, git has only a note of where.
_LFS = b"version https://git-lfs.github.com/spec/"


@value
class _Entry:
    mode: bytes
    hash: str


class CommitTree:
    """The sources of a commit, with paths relative to `root`, for any number of threads.

    Git is started by the first look and ends with `close`, or with this object; a look after `close` starts it again.
    Who looks at many commits lends `objects` to all of them, and one git answers for all.
    """

    def __init__(self, root: str, commit: str, objects: Objects | None = None) -> None:
        repository = repository_around(root)
        self._commit = commit
        self._prefix = repository.prefix(root) if repository is not None else ""
        self._objects = None
        if repository is not None and is_hash(commit):
            self._objects = objects or Objects(repository.top)
        # A tree never changes; only which of them are kept does.
        self._trees: dict[str, dict[bytes, _Entry]] = {}
        self._lock = threading.Lock()

    def read(self, path: str) -> Source | Trouble:
        entry = self._entry(path)
        if isinstance(entry, Trouble):
            return entry
        assert self._objects is not None
        found = self._objects.read(entry.hash, FILE_BYTES_MAX)
        if found is None:
            return Trouble(UNKNOWN, f"{path} is over {FILE_BYTES_MAX >> 20} MiB, or git does not have it here")
        content = found[1]
        if b"\0" in content:
            return Trouble(UNKNOWN, f"{path} is a binary file")
        if content.startswith(_LFS):
            return Trouble(UNKNOWN, f"{path} is kept outside of git, by git-lfs")
        try:
            return Source(path, content.decode(), entry.hash)
        except UnicodeDecodeError:
            return Trouble(UNKNOWN, f"{path} is not a UTF-8 text")

    def stamp(self, path: str) -> str | None:
        """The hash of the file's content."""
        entry = self._entry(path)
        return None if isinstance(entry, Trouble) else entry.hash

    def close(self) -> None:
        if self._objects is not None:
            self._objects.close()

    def __enter__(self) -> CommitTree:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _entry(self, path: str) -> _Entry | Trouble:
        """The plain file at a path; the trees are walked here, so no character of it means anything to git."""
        trouble = trouble_with(path)
        if trouble is not None:
            return trouble
        try:
            parts = os.fsencode(self._prefix + path).split(b"/")
        except UnicodeEncodeError:
            return Trouble(UNKNOWN, f"{path!r} is no path")
        at = f"at commit {self._commit[:12]}"
        entry = _Entry(_FOLDER, f"{self._commit}^{{tree}}")
        for name in parts:
            if name in {b"", b"."}:
                continue
            if entry.mode == _LINK:
                return Trouble(UNKNOWN, f"{path} leads through a symbolic link {at}")
            if entry.mode == _SUBMODULE:
                return Trouble(UNKNOWN, f"{path} is in a submodule {at}")
            if entry.mode != _FOLDER:
                return Trouble(MISSING, f"{path} is not there {at}")
            folder = self._tree(entry.hash)
            if folder is None:
                return Trouble(UNKNOWN, f"git can't tell what is in the folder of {path} {at}")
            if name not in folder:
                return Trouble(MISSING, f"{path} is not there {at}")
            entry = folder[name]
        if entry.mode == _FOLDER:
            return Trouble(MISSING, f"{path} is a folder, not a file, {at}")
        if entry.mode in {_LINK, _SUBMODULE}:
            return Trouble(UNKNOWN, f"{path} is no plain file {at}")
        return entry

    def _tree(self, name: str) -> dict[bytes, _Entry] | None:
        known = self._trees.get(name)
        if known is None and self._objects is not None:
            found = self._objects.read(name, _TREE_BYTES_MAX)
            if found is not None and found[0] == "tree":
                known = _entries(found[1], len(self._commit) // 2)
                with self._lock:
                    self._trees[name] = known
                    if len(self._trees) > _TREES_MAX:
                        del self._trees[next(iter(self._trees))]
        return known


def _entries(tree: bytes, hash_bytes: int) -> dict[bytes, _Entry]:
    """What a tree lists: each entry is `mode name`, a zero, and the hash in bytes."""
    found = {}
    place = 0
    while place < len(tree):
        end = tree.index(b"\0", place)
        mode, _, name = tree[place:end].partition(b" ")
        place = end + 1 + hash_bytes
        found[name] = _Entry(mode, tree[end + 1 : place].hex())
    return found

"""Branches and commits as a repository's files name them; whoever stores them otherwise is left to git."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.code.repository import Repository

BRANCHES = "refs/heads/"
# What HEAD says where the refs are in a reftable.
_ELSEWHERE = f"{BRANCHES}.invalid"
_OWN = ("refs/bisect/", "refs/worktree/", "refs/rewritten/")
_LASTING = ("heads", "remotes", "tags")
_HASH_LENGTHS = frozenset({40, 64})
_HEX = frozenset("0123456789abcdef")
_HOPS_MAX = 5


class Unclear(Exception):
    """The files don't tell, because git keeps this repository's refs in another form: ask the program."""


def is_hash(text: str) -> bool:
    """Whether this is the whole hash of an object, of either length that git knows."""
    return len(text) in _HASH_LENGTHS and _HEX.issuperset(text)


class Refs:
    """The refs of one working tree, read when asked for; the packed ones once."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._packed: bytes | None = None

    def target(self, ref: str) -> str | None:
        """The ref that this one stands for, None if it stands for a commit or isn't there."""
        return self._target_in(self._loose(ref), ref)

    def commit(self, ref: str) -> str | None:
        """The hash that a ref leads to, None if there is no such ref: a branch that has no commit yet."""
        for _ in range(_HOPS_MAX):
            content = self._loose(ref)
            if content is not None and is_hash(content):
                return content
            target = self._target_in(content, ref)
            if target is None and content is None:
                return self._from_packed(ref)
            if target is None:
                break
            ref = target
        raise Unclear

    def branches(self) -> set[str]:
        """All local branches."""
        top = os.path.join(self._repository.common, "refs", "heads")
        found = {
            os.path.relpath(os.path.join(folder, name), top)
            for folder, _, names in os.walk(top)
            for name in names
            if not name.endswith(".lock")
        }
        marker = f" {BRANCHES}".encode()
        for line in self._packed_lines().split(b"\n"):
            _, marked, name = line.partition(marker)
            if marked and not line.startswith(b"#"):
                found.add(os.fsdecode(name))
        return found

    def state(self) -> frozenset[tuple[str, int, int]]:
        """What is never the same again once a branch, a remote's branch, a tag or a worktree's HEAD moved.

        It is told by which files there are and since when: git puts a new one in the place of the old.
        """
        common = self._repository.common
        folders = (common, *(os.path.join(common, "worktrees", name) for name in self.linked()))
        files = [os.path.join(folder, name) for folder in folders for name in ("HEAD", "reftable/tables.list")]
        files.append(os.path.join(common, "packed-refs"))
        for kind in _LASTING:
            for folder, _, names in os.walk(os.path.join(common, "refs", kind)):
                files += [os.path.join(folder, name) for name in names]
        return frozenset(found for path in files if (found := _state_of(path)) is not None)

    def linked(self) -> list[str]:
        """Git's own names of the linked worktrees."""
        try:
            return os.listdir(os.path.join(self._repository.common, "worktrees"))
        except OSError:
            return []

    def _loose(self, ref: str) -> str | None:
        try:
            with open(self._path(ref), "rb") as file:
                return os.fsdecode(file.read(4096)).strip()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except (OSError, ValueError):
            raise Unclear from None

    def _target_in(self, content: str | None, ref: str) -> str | None:
        if content is not None and content.startswith("ref:"):
            target = content.removeprefix("ref:").strip()
        else:
            # Git of long ago made HEAD a symbolic link to the branch.
            try:
                target = os.readlink(self._path(ref))
            except (OSError, ValueError):
                return None
        if not target.startswith("refs/") or target == _ELSEWHERE or ".." in target:
            raise Unclear
        return target

    def _path(self, ref: str) -> str:
        own = not ref.startswith("refs/") or ref.startswith(_OWN)
        return os.path.join(self._repository.own if own else self._repository.common, ref)

    def _from_packed(self, ref: str) -> str | None:
        packed = self._packed_lines()
        end = packed.find(b" " + os.fsencode(ref) + b"\n")
        if end < 0:
            return None
        found = packed[packed.rfind(b"\n", 0, end) + 1 : end].decode("ascii", "replace")
        if not is_hash(found):
            raise Unclear
        return found

    def _packed_lines(self) -> bytes:
        if self._packed is None:
            try:
                with open(os.path.join(self._repository.common, "packed-refs"), "rb") as file:
                    self._packed = file.read()
            except FileNotFoundError:
                self._packed = b""
            except OSError:
                raise Unclear from None
        return self._packed


def _state_of(path: str) -> tuple[str, int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return path, found.st_mtime_ns, found.st_ino

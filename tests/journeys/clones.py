"""Clones of a git repository that has a memory in files, as a team uses them."""

from __future__ import annotations

from pathlib import Path

import mnemarch
from fixtures import repositories
from mnemarch import Actor, Scope, user
from mnemarch.log.projection import digest

WHERE = Scope(project="shop", worktree="main", task="T-1")


class Clone:
    """One clone, with its memory open; whatever git does to the files, the memory must notice."""

    def __init__(self, path: Path, clock, origin: Clone | None = None) -> None:
        self.path, self.name, self.clock = path, path.name, clock
        if origin is None:
            repositories.made(path)
        else:
            repositories.clone(origin.path, path, "--template=")
            user.accept(str(self.folder), b"file:")
        self.memory = mnemarch.open(f"file://{self.folder}", clock=clock)

    @property
    def folder(self) -> Path:
        return self.path / "memory"

    @property
    def person(self):
        return self.memory.seat(Actor.human(self.name), WHERE)

    def seat(self, actor: str, **where):
        return self.memory.seat(Actor.parse(actor), Scope(project="shop", **where))

    def git(self, *arguments: str) -> str:
        return repositories.git(self.path, *arguments)

    def commit(self) -> None:
        repositories.commit(self.path, f"{self.name} worked")

    def pull(self, other: Clone) -> None:
        """Merge what another clone has committed; a conflict fails the test."""
        self.commit()
        self.git("fetch", "-q", str(other.path), "HEAD")
        self.git("merge", "-q", "--no-edit", "FETCH_HEAD")

    def digest(self) -> str:
        return self.memory._engine.store.read(digest)

    def events(self) -> list[mnemarch.Event]:
        return self.memory._engine.store.read(lambda reader: list(reader.events()))

    def files_with(self, text: str) -> list[str]:
        """The files of the memory, ignored ones too, that hold a text."""
        files = [path for path in self.folder.rglob("*") if path.is_file() and ".git" not in path.parts]
        return [str(path) for path in files if text.encode() in path.read_bytes() or text in path.name]

    def require_whole(self) -> None:
        check = self.memory.audit(full=True)
        assert check.ok, check
        assert self.memory.rebuild().same


def meet(*clones: Clone) -> None:
    """Let everybody have what all others have, also what they settle meanwhile."""
    for _ in range(2):
        for clone in clones:
            for other in clones:
                if other is not clone:
                    other.commit()
                    clone.pull(other)
                    clone.digest()
    for clone in clones:
        clone.require_whole()
    assert len({clone.digest() for clone in clones}) == 1
    assert len({tuple(event.id for event in clone.events()) for clone in clones}) == 1, "one order everywhere"

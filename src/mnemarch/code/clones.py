"""What a clone of a repository, and a working tree in it, is called where several clones share a memory (R3)."""

from __future__ import annotations

import os
from contextlib import suppress

from mnemarch.code.home import repository_around, text_of, usable_name
from mnemarch.files import write_private
from mnemarch.model.stamps import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

# In the directory that all worktrees share: the clone's name.
_CLONE = "mnemarch-clone"


def clone_at(folder: str) -> str:
    """The name of this clone among all of its repository: the machine's, and a number that stays if it is moved."""
    host = usable_name(os.uname().nodename.partition(".")[0])
    repository = repository_around(folder)
    if repository is not None:
        path = os.path.join(repository.common, _CLONE)
        if not text_of(path):
            with suppress(OSError):
                write_private(path, f"{host}-{os.urandom(2).hex()}".encode(), replaces=False)
        if name := text_of(path):
            return usable_name(name)
    # It can keep no name: it is known by where it lies.
    return f"{host}-{sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:4]}"


def in_clone(worktree: str, clone: str | None) -> str:
    """The name of a worktree among those of all clones; without a clone it is alone."""
    return worktree if clone is None else f"{worktree}@{clone}"


def removed_of(worktrees: Iterable[str | None], there: Collection[str], clone: str | None) -> set[str | None]:
    """Those of some worktrees that this clone had and has no more; of other clones' nothing is known."""
    gone = set(worktrees).difference(there) if there else set()
    return {name for name in gone if clone is None or (name or "").endswith(f"@{clone}")}

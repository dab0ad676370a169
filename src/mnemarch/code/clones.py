"""Names of clones and their working trees, for a memory that several clones share (R3)."""

from __future__ import annotations

import os
from contextlib import suppress

from mnemarch.code.home import repository_around, text_of, usable_name
from mnemarch.files import write_private
from mnemarch.model.stamps import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

# The file with the clone's name, in the git directory that all worktrees share.
_CLONE = "mnemarch-clone"


def clone_at(folder: str) -> str:
    """This clone's name among all clones: the host's name and a random number. It survives moving the clone."""
    host = usable_name(os.uname().nodename.partition(".")[0])
    repository = repository_around(folder)
    if repository is not None:
        path = os.path.join(repository.common, _CLONE)
        if not text_of(path):
            with suppress(OSError):
                write_private(path, f"{host}-{os.urandom(2).hex()}".encode(), replaces=False)
        if name := text_of(path):
            return usable_name(name)
    # The clone can't store a name, so its path names it.
    return f"{host}-{sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:4]}"


def in_clone(worktree: str, clone: str | None) -> str:
    """The name of a worktree among those of all clones. Without a clone, the name alone."""
    return worktree if clone is None else f"{worktree}@{clone}"


def removed_of(worktrees: Iterable[str | None], there: Collection[str], clone: str | None) -> set[str | None]:
    """The worktrees that this clone has removed. Worktrees of other clones are unknown and never included."""
    gone = set(worktrees).difference(there) if there else set()
    return {name for name in gone if clone is None or (name or "").endswith(f"@{clone}")}

"""Creates the folders of a memory: private, ignored by git, and signed as this user's."""

from __future__ import annotations

import os

from mnemarch import checkout, user
from mnemarch.errors import StoreUnavailable
from mnemarch.model import stamps

DATABASE, _IGNORE = "memory.db", ".gitignore"
_IGNORE_BYTES_MAX = 65_536


def make_place(place: str) -> None:
    """Create the folder of the memory. Git must ignore it, even if its creation is interrupted."""
    is_new = not os.path.lexists(os.path.join(place, DATABASE))
    is_ignored = os.path.exists(os.path.join(place, _IGNORE))
    if is_ignored and not is_new:
        return
    from mnemarch.files import make_folder, read_small, write_whole

    try:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        make_folder(place)
        # Sign first: another process may use the folder meanwhile, and must see that it is this user's.
        if is_new:
            checkout.sign(place)
        ignore = os.path.join(place, _IGNORE)
        # A .gitignore that came with a checkout may let git add the memory.
        if _is_ours(place) and not (is_ignored and b"*" in read_small(ignore, _IGNORE_BYTES_MAX).split()):
            write_whole(ignore, "*\n", private=True)
    except OSError as error:
        # A folder that exists is opened: it may be read-only, or another process may have created it.
        if not os.path.isdir(place):
            raise StoreUnavailable(
                f"{place} can't be made: {error.strerror}.", hint="Choose a folder you may write to."
            ) from None


def _is_ours(place: str) -> bool:
    """Whether the folder holds a memory, or nothing yet. Any other folder is left unchanged."""
    names = os.listdir(place)
    return DATABASE in names or all(name.startswith((_IGNORE, checkout.MAKER)) for name in names)


def make_local(folder: str) -> str:
    """Create the local part of a folder of files, which git ignores. One that somebody else made is replaced."""
    local = os.path.join(folder, checkout.LOCAL)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if not checkout.is_own_local(local):
            _replace_local(local)
    except OSError as error:
        if not os.path.isdir(folder) or os.path.islink(local):
            hint = "Choose a folder you may write to, with no links in it."
            raise StoreUnavailable(f"{local} can't be made: {error.strerror}.", hint=hint) from None
        # The folder is read-only: derived data goes into the user's cache.
        name = stamps.blake2b(os.path.realpath(folder).encode(errors="surrogateescape"), digest_size=16).hexdigest()
        local = user.cache_path_of(os.path.join("files", name))
        os.makedirs(local, mode=0o700, exist_ok=True)
    return local


def _replace_local(local: str) -> None:
    """Replace the local folder by a new one, in one rename: another process may be doing the same."""
    from shutil import rmtree

    from mnemarch.files import make_folder, write_whole

    if os.path.lexists(local) and not checkout.is_own_local(local):  # Another process may have replaced it by now.
        rmtree(local)
    made = f"{local}-{os.getpid()}"
    make_folder(made)
    checkout.sign(made)
    write_whole(os.path.join(made, _IGNORE), "*\n", private=True)
    try:
        os.rename(made, local)
    except OSError:
        rmtree(made)
        if not checkout.is_own_local(local):
            raise

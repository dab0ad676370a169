"""Wiring. Takes: the address of a memory. Gives: a memory of concrete parts. Never: has a rule.

Only this folder names concrete stores, indexes and models.
"""

from __future__ import annotations

import os

from mnemarch import checkout
from mnemarch.config import Config
from mnemarch.errors import InvalidInput, NotFound
from mnemarch.memory import Memory
from mnemarch.model import stamps
from mnemarch.model.value import replace
from mnemarch.wiring.parts import DATABASE, POSTGRES, Making, Opening

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from typing import Any

    from mnemarch.model.upkeep import Copied

_FILE = "file:"


def open(
    target: str | os.PathLike[str] | None = None,
    *,
    vectors: str | None = None,
    config: Config | None = None,
    clock: Callable[[], datetime] | None = None,
) -> Memory:
    """Open the memory of this git repository, of a folder, at a postgresql:// or file:// URL, or ":memory:".

    Its vectors are stored beside it, or in Qdrant if `vectors` or `recall.vectors` names a qdrant:// server.
    """
    clock = clock or stamps.now
    if target == ":memory:":
        if vectors:
            raise InvalidInput("A memory without a folder keeps no vectors.", hint="Open it in a folder.")
        return Opening(None, config or Config(), clock).in_memory()
    address = None if target is None else _address(target)
    is_shared = address is not None and address.startswith((*POSTGRES, _FILE))
    if address is None or is_shared:
        from mnemarch.code.home import home_of

        is_file = address is not None and address.startswith(_FILE)
        home = home_of(checkout.file_folder(address or "", current_folder()) if is_file else current_folder())
        folder, root = home.folder, home.root
    else:
        folder = root = os.path.abspath(address)
    # A configuration that the caller passes counts as the user's own.
    settings = config or checkout.load(folder)
    if vectors is not None:
        settings = replace(settings, recall=replace(settings.recall, vectors=vectors))
    making = Making(settings, is_own=config is not None, names_vectors=vectors is not None)
    opening = Opening(root, settings, clock, making)
    url = str((address if is_shared else settings.store.url) or "")
    if url.startswith(_FILE):
        return opening.files(checkout.file_folder(url, current_folder() if is_shared else folder))
    return opening.database(url) if url else opening.folder(folder)


def open_for_hooks(folder: str, config: Config, url: str = "", *, by_meaning: bool = False) -> Memory:
    """Open the memory of a folder or at a URL for a caller that must not wait. It asks no language model.

    `by_meaning` is for long-lived processes: loading the embedding model takes longer than a hook may take.
    """
    if not by_meaning:
        config = replace(config, recall=replace(config.recall, semantic=""))
    opening = Opening(folder, config, stamps.now, Making(config), asks_models=False)
    if url.startswith(_FILE):
        return opening.files(checkout.file_folder(url, folder))
    return opening.database(url) if url else opening.folder(folder)


def copy(
    source: str | os.PathLike[str] | Memory,
    target: str | os.PathLike[str] | Memory,
    *,
    progress: Callable[[int], None] | None = None,
) -> Copied:
    """Copy a whole memory into another store, and verify the copy. Each is an address as for `open`, or an open memory.

    A folder means the memory inside it, even if its settings name another store. A repeated call continues the copy.
    """
    from contextlib import ExitStack

    with ExitStack() as stack:
        opened = [
            each if isinstance(each, Memory) else stack.enter_context(_named(each, is_there=each is source))
            for each in (source, target)
        ]
        return opened[0].copy_to(opened[1], progress)


def _named(target: str | os.PathLike[str], *, is_there: bool) -> Memory:
    address = _address(target)
    if address.startswith(POSTGRES):
        return open(address)
    if address.startswith(_FILE):
        if is_there and not _has_files(checkout.file_folder(address, current_folder())):
            raise NotFound(f"There is no memory in {address!r}.", hint="Give the folder that holds its log/.")
        return open(address)
    folder = os.path.abspath(address)
    if is_there and not _has_memory(folder):
        from mnemarch.code.home import home_of

        folder = home_of(folder).folder if os.path.isdir(folder) else folder
        if not _has_memory(folder):
            files = f" Its files are: file://{folder}" if _has_files(folder) else ""
            hint = f"Give the folder that holds .mnemarch/, or file:FOLDER for a memory in files.{files}"
            raise NotFound(f"There is no memory in {address!r}.", hint=hint)
    return open_for_hooks(folder, checkout.load(folder))


def _has_memory(folder: str) -> bool:
    return os.path.lexists(os.path.join(folder, ".mnemarch", DATABASE))


def _has_files(folder: str) -> bool:
    return os.path.lexists(os.path.join(folder, "format"))


def current_folder() -> str:
    """The current folder. Raises if somebody removed it."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise InvalidInput("The current folder no longer exists.", hint="Change to another folder.") from None


def _address(target: Any) -> str:
    """The address of a memory as text. Raises for invalid ones, before anything of that name is created."""
    path = target if isinstance(target, str) else getattr(target, "__fspath__", lambda: None)()
    if not isinstance(path, str):
        raise InvalidInput(f"{target!r} is not a memory.", hint="Give a folder, or nothing for this repository's.")
    address = os.path.expanduser(path)
    _refuse_unknown(address)
    return address


def _refuse_unknown(address: str) -> None:
    if not address.strip():
        raise InvalidInput("The name of the memory is empty.", hint="Give a folder, or nothing for this repository's.")
    if address.startswith(("qdrant:", "qdrants:")):
        raise InvalidInput(
            f"Qdrant keeps vectors, not a memory: {address!r}.",
            hint="Open a folder or a PostgreSQL database, and name this address in recall.vectors.",
        )
    if address.startswith(_FILE):
        return
    if ":/" in address[2:] and not address.startswith(POSTGRES):  # From 2: a Windows drive, as in C:/, is no scheme.
        raise InvalidInput(
            f"There is no kind of store for {address!r}.",
            hint="Name a folder, file:FOLDER or postgresql://HOST/DATABASE, or nothing for this repository's.",
        )
    if os.path.exists(address) and not os.path.isdir(address):
        raise InvalidInput(f"{address!r} is a file.", hint="Give the folder that holds (or shall hold) .mnemarch/.")

"""Where the memory of a command is: in a folder, in files that git merges, or on a server."""

from __future__ import annotations

import os

from mnemarch.checkout import FILE_SCHEME, file_folder
from mnemarch.errors import NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.interfaces.command import Call

MAKE = "mnemarch init makes one; so does the first mnemarch log."


def is_folder(store: str) -> bool:
    """Whether what was named is a folder with .mnemarch/ in it, and no address."""
    return store != ":memory:" and ":/" not in store and not store.startswith(FILE_SCHEME)


def missing_files(url: str, base: str) -> NotFound | None:
    """That there is no folder where a memory in files is named, if so: what only reads makes none."""
    folder = file_folder(url, base) if url.startswith(FILE_SCHEME) else ""
    return None if not folder or os.path.isdir(folder) else NotFound(f"There is no memory in {folder}.", hint=MAKE)


def address_of(call: Call) -> str:
    """The folder of the files, or the server's address as it may be shown; nothing for a memory in .mnemarch/."""
    from mnemarch.interfaces.show import without_password

    url = call.url
    if url.startswith(FILE_SCHEME):
        return file_folder(url, call.home.folder if call.store is None else os.getcwd())
    return without_password(url)


def is_on_server(call: Call) -> bool:
    """Whether hooks can't open it themselves, and ask `mnemarch serve`."""
    return bool(call.url) and not call.url.startswith(FILE_SCHEME)

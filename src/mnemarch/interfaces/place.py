"""Where the memory of a command is: in a folder, in files that git merges, or on a server."""

from __future__ import annotations

import os

from mnemarch.checkout import file_folder
from mnemarch.interfaces.show import without_password

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.interfaces.command import Call


def address_of(call: Call) -> str:
    """The folder of the files, or the server's address as it may be shown; nothing for a memory in .mnemarch/."""
    url = call.url
    if url.startswith("file:"):
        return file_folder(url, call.home.folder if call.store is None else os.getcwd())
    return without_password(url)


def is_on_server(call: Call) -> bool:
    """Whether hooks can't open it themselves, and ask `mnemarch serve`."""
    return bool(call.url) and not call.url.startswith("file:")

"""Which memory a command works on, and from which seat: by options, then MNEMARCH_* variables, then what is here."""

from __future__ import annotations

import os
import sys

from mnemarch.code.home import FOLDER, home_of
from mnemarch.errors import InvalidInput, NotFound
from mnemarch.model.caller import Actor, Scope
from mnemarch.model.value import replace
from mnemarch.wiring import open as open_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace as Namespace
    from typing import Any

    from mnemarch.code.home import Home
    from mnemarch.memory import Memory
    from mnemarch.seat import Seat


def setting(options: Namespace, name: str) -> str | None:
    """What the command line says, else the environment; a variable that is set to nothing is not set."""
    given: str | None = getattr(options, name)
    return given if given is not None else os.environ.get(f"MNEMARCH_{name.upper()}") or None


def home_for(options: Namespace) -> Home:
    """Where this is: the repository around --root or the current folder; without one, --store's folder names it."""
    store = setting(options, "store")
    here = home_of(_folder_here(options))
    if store is None or not _is_folder(store):
        return here
    folder = os.path.abspath(store)
    return replace(here if options.root or here.worktree else home_of(folder), folder=folder)


def _folder_here(options: Namespace) -> str:
    if options.root is not None:
        if not os.path.isdir(options.root):
            raise InvalidInput(f"--root {options.root!r} is no folder.", hint="Give the root of a working tree.")
        return str(options.root)
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise InvalidInput("The current folder no longer exists.", hint="Change to another folder.") from None


def _is_folder(store: str) -> bool:
    return store != ":memory:" and ":/" not in store


def absent(options: Namespace, home: Home) -> NotFound | None:
    """That there is no memory, if so: what only reads makes none."""
    store = setting(options, "store")
    if store is not None and not _is_folder(store):
        return None
    try:
        os.stat(os.path.join(home.folder, FOLDER, "memory.db"))
    except FileNotFoundError:
        return NotFound(
            f"There is no memory in {home.folder}.", hint="mnemarch init makes one; so does the first mnemarch log."
        )
    except OSError:
        pass  # It is there, or something else is: opening says what.
    return None


def opened_empty(home: Home) -> Memory:
    """A memory with nothing in it, and nothing on disk, that is set up like the one that could be here."""
    from mnemarch.config import load

    return open_memory(":memory:", config=load(home.folder))


def opened(options: Namespace, home: Home) -> Memory:
    # The folder is named, not left to be found again: for a linked worktree that would ask git twice.
    return open_memory(setting(options, "store") or home.folder)


def seated(memory: Memory, options: Namespace, home: Home) -> Seat:
    segments: dict[str, Any] = {"project": memory.config.project or home.project, "worktree": home.worktree}
    named = {name: setting(options, name) for name in ("org", "project", "worktree", "task")}
    scope = Scope(**segments | {name: segment for name, segment in named.items() if segment is not None})
    return memory.seat(actor_for(options), scope, session=setting(options, "session"), root=home.root)


def actor_for(options: Namespace) -> Actor:
    """The actor named; else the person at the terminal; else an agent, for a human's word is evidence (R2)."""
    named = setting(options, "actor")
    if named is not None:
        return Actor.parse(named)
    if at_terminal(sys.stdin) and at_terminal(sys.stdout):
        return Actor.human(_login())
    return Actor.agent("cli")


def _login() -> str:
    """The name of whoever is logged in; in a container nothing but the user's number may tell it."""
    named = os.environ.get("USER") or os.environ.get("LOGNAME")
    if named:
        return named
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"


def at_terminal(stream: object) -> bool:
    """Whether a person is at this end; a stream that was closed has nobody."""
    try:
        return stream is not None and bool(stream.isatty())  # type: ignore[attr-defined]
    except ValueError:
        return False

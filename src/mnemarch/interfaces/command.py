"""What a command is made of; which memory it works on, and from which seat.

Who and where are found by options, then MNEMARCH_* variables, then the repository around the current folder.
"""

from __future__ import annotations

import os
import sys

from mnemarch.code.home import FOLDER, home_of
from mnemarch.errors import InvalidInput, NotFound
from mnemarch.model.caller import Actor, Scope
from mnemarch.model.value import replace, value
from mnemarch.wiring import open as open_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mnemarch.code.home import Home
    from mnemarch.memory import Memory
    from mnemarch.seat import Seat
    from mnemarch.verbs.types import Parameter

DONE, REFUSED, WRONG_USE, STORE_TROUBLE, BUG, INTERRUPTED = 0, 1, 2, 3, 70, 130
# The doctor leaves one unit in a place of its own.
_UNITS_OF_DOCTOR = 1
_HOW_NAMED = "A project is named by its git remote, or else by its folder; if that changed"


@value
class Answer:
    """What a command found out: `data` for programs, `text` for people, made only if a person reads it.

    `aside` is about the answer and no part of it: people get it on stderr, so that it is in no pipe and no prompt.
    """

    data: Any
    text: Callable[[], str]
    exit_code: int = DONE
    aside: Callable[[], str] | None = None


@value
class Command:
    """One command: what its help says, what it takes, and what it does.

    Only one that `begins_memory` makes a memory where there is none.
    """

    description: str
    examples: tuple[str, ...]
    run: Callable[[Call], Answer]
    takes: tuple[Parameter, ...] = ()
    begins_memory: bool = False


class Call:
    """One command as it was typed. The memory and the seat it leads to are opened when first asked for.

    `options` has all its parameters, `given` those that were typed, `places` who and where, and whether to answer in
    JSON.
    """

    def __init__(self, options: Any, given: dict[str, Any], *, places: Any, begins_memory: bool = False) -> None:
        self.options = options
        self.given = given
        self.places = places
        self.begins_memory = begins_memory
        self._home: Home | None = None
        self._memory: Memory | None = None
        self._seat: Seat | None = None

    @property
    def home(self) -> Home:
        """The repository around --root or the current folder; without one, --store's folder names it."""
        if self._home is None:
            self._home = home_of(self._folder_here())
            if self._store is not None and _is_folder(self._store):
                folder, is_named = os.path.abspath(self._store), self.places.root or self._home.worktree
                self._home = replace(self._home if is_named else home_of(folder), folder=folder)
        return self._home

    @property
    def memory(self) -> Memory:
        if self._memory is None:
            missing = None if self.begins_memory else self._absent()
            if missing is not None:
                raise missing
            # The folder is named, not left to be found again: for a linked worktree that would ask git twice.
            self._memory = open_memory(self._store or self.home.folder)
        return self._memory

    @property
    def seat(self) -> Seat:
        if self._seat is None:
            home, memory = self.home, self.memory
            segments: dict[str, Any] = {"project": memory.config.project or home.project, "worktree": home.worktree}
            named = {name: self._setting(name) for name in ("org", "project", "worktree", "task")}
            scope = Scope(**segments | {name: segment for name, segment in named.items() if segment is not None})
            self._seat = memory.seat(self._actor(), scope, session=self._setting("session"), root=home.root)
        return self._seat

    def answer_from_nothing(self) -> str:
        """Where there is no memory yet, answer from an empty one that leaves no trace; gives what to say about it.

        For what hooks ask in every repository, which must not fail there. A store that was named and is not there is
        a mistake all the same.
        """
        missing = self._absent() if self.places.store is None else None
        if missing is None:
            return ""
        from mnemarch.config import load

        self._memory = open_memory(":memory:", config=load(self.home.folder))
        return f"{missing.message} {missing.hint}"

    def empty_scope_hint(self) -> list[str]:
        """A note if the memory has units and this seat sees none: its project may have had another name."""
        units = 0 if self.seat.units(limit=1) else self.memory.stats().units
        if units <= _UNITS_OF_DOCTOR:
            return []
        former = self._former_name()
        named = f', and project "{former}", which is how this folder is called, has some' if former else ""
        return [
            f"Nothing can be seen from {self.seat.scope}, but this memory holds {units:,} units{named}. {_HOW_NAMED},"
            f' put the old name into mnemarch.toml: project = "{former or "NAME"}".'
        ]

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()

    def _setting(self, name: str) -> str | None:
        """What the command line says, else the environment; a variable that is set to nothing is not set."""
        typed: str | None = getattr(self.places, name)
        return typed if typed is not None else os.environ.get(f"MNEMARCH_{name.upper()}") or None

    @property
    def _store(self) -> str | None:
        return self._setting("store")

    def _folder_here(self) -> str:
        root = self.places.root
        if root is not None:
            if not os.path.isdir(root):
                raise InvalidInput(f"--root {root!r} is no folder.", hint="Give the root of a working tree.")
            return str(root)
        try:
            return os.getcwd()
        except FileNotFoundError:
            raise InvalidInput("The current folder no longer exists.", hint="Change to another folder.") from None

    def _absent(self) -> NotFound | None:
        """That there is no memory, if so: what only reads makes none."""
        if self._store is not None and not _is_folder(self._store):
            return None
        try:
            os.stat(os.path.join(self.home.folder, FOLDER, "memory.db"))
        except FileNotFoundError:
            return NotFound(
                f"There is no memory in {self.home.folder}.",
                hint="mnemarch init makes one; so does the first mnemarch log.",
            )
        except OSError:
            pass  # It is there, or something else is: opening says what.
        return None

    def _actor(self) -> Actor:
        """The actor named; else the person at the terminal; else an agent, for a human's word is evidence (R2)."""
        named = self._setting("actor")
        if named is not None:
            return Actor.parse(named)
        if at_terminal(sys.stdin) and at_terminal(sys.stdout):
            return Actor.human(_login())
        return Actor.agent("cli")

    def _former_name(self) -> str:
        """The folder's name, if there is knowledge under it: what a project was called before it had a remote."""
        name, seat = os.path.basename(self.home.folder), self.seat
        if not name.strip() or name == seat.scope.project:
            return ""
        there = self.memory.seat(seat.actor, replace(seat.scope, project=name, task=None))
        return name if any(unit.scope.project == name for unit in there.units(limit=100)) else ""


def _is_folder(store: str) -> bool:
    return store != ":memory:" and ":/" not in store


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

"""What a command is made of: its words, its parameters, what it runs, and the answer it gives."""

from __future__ import annotations

from mnemarch.interfaces.place import absent, home_for, opened, opened_empty, seated
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable
    from typing import Any

    from mnemarch.code.home import Home
    from mnemarch.memory import Memory
    from mnemarch.seat import Seat
    from mnemarch.verbs.types import Parameter

DONE, REFUSED, WRONG_USE, STORE_TROUBLE, BUG, INTERRUPTED = 0, 1, 2, 3, 70, 130


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

    Only one that `begins_memory` makes a memory where there is none. `arguments` declares to argparse what is not in
    `takes`.
    """

    description: str
    examples: tuple[str, ...]
    run: Callable[[Call], Answer]
    takes: tuple[Parameter, ...] = ()
    begins_memory: bool = False
    arguments: Callable[[ArgumentParser], None] | None = None


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
        if self._home is None:
            self._home = home_for(self.places)
        return self._home

    @property
    def memory(self) -> Memory:
        if self._memory is None:
            missing = None if self.begins_memory else absent(self.places, self.home)
            if missing is not None:
                raise missing
            self._memory = opened(self.places, self.home)
        return self._memory

    def answer_from_nothing(self) -> str:
        """Where there is no memory yet, answer from an empty one that leaves no trace; gives what to say about it.

        For what hooks ask in every repository, which must not fail there. A store that was named and is not there is
        a mistake all the same.
        """
        missing = absent(self.places, self.home) if self.places.store is None else None
        if missing is None:
            return ""
        self._memory = opened_empty(self.home)
        return f"{missing.message} {missing.hint}"

    @property
    def seat(self) -> Seat:
        if self._seat is None:
            self._seat = seated(self.memory, self.places, self.home)
        return self._seat

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()

"""What a command is made of: its words, its arguments, what it runs, and the answer it gives."""

from __future__ import annotations

from mnemon.interfaces.place import home_for, opened, seated
from mnemon.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable
    from typing import Any

    from mnemon.code.home import Home
    from mnemon.memory import Memory, Seat
    from mnemon.model.outcome import Refused, Stored

DONE, REFUSED, WRONG_USE, STORE_TROUBLE, BUG, INTERRUPTED = 0, 1, 2, 3, 70, 130


@value
class Answer:
    """What a command found out: `data` for programs, `text` for people, made only if a person reads it."""

    data: Any
    text: Callable[[], str]
    exit_code: int = DONE


@value
class Command:
    """One command: what its help says, how its arguments are declared, and what it does."""

    description: str
    examples: tuple[str, ...]
    arguments: Callable[[ArgumentParser], None]
    run: Callable[[Call], Answer]


def exit_code_of(*outcomes: Stored | Refused) -> int:
    from mnemon.model.outcome import Refused

    return REFUSED if any(isinstance(outcome, Refused) for outcome in outcomes) else DONE


class Call:
    """One command as it was typed. The memory and the seat it leads to are opened when first asked for."""

    def __init__(self, options: Namespace) -> None:
        self.options = options
        self._home: Home | None = None
        self._memory: Memory | None = None
        self._seat: Seat | None = None

    @property
    def home(self) -> Home:
        if self._home is None:
            self._home = home_for(self.options)
        return self._home

    @property
    def memory(self) -> Memory:
        if self._memory is None:
            self._memory = opened(self.options, self.home)
        return self._memory

    @property
    def seat(self) -> Seat:
        if self._seat is None:
            self._seat = seated(self.memory, self.options, self.home)
        return self._seat

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()

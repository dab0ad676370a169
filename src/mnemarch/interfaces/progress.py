"""How far long work has come, for a person who waits; silent when nobody watches."""

from __future__ import annotations

import sys
from contextlib import contextmanager

from mnemarch.interfaces.place import at_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CLEAR_LINE = "\r\x1b[K"


@contextmanager
def counted(doing: str, what: str) -> Iterator[Callable[[int], None] | None]:
    """A counter on stderr while the work goes on, or None where stderr is no terminal."""
    if not at_terminal(sys.stderr):
        yield None
        return

    def show(done: int) -> None:
        sys.stderr.write(f"{_CLEAR_LINE}{doing}: {done:,} {what}")
        sys.stderr.flush()

    try:
        sys.stderr.write(f"{_CLEAR_LINE}{doing} ...")
        sys.stderr.flush()
        yield show
    finally:
        sys.stderr.write(_CLEAR_LINE)
        sys.stderr.flush()

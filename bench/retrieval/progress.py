"""How far long work is, on stderr: a line that moves on a terminal, one line for each piece elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Self

_EVERY_S = 0.2


class Progress:
    """Call it with what is done; leave it to say how long it took."""

    def __init__(self, what: str, total: int) -> None:
        self._what = what
        self._total = total
        self._started = time.monotonic()
        self._shown = 0.0

    def __enter__(self) -> Self:
        return self

    def __call__(self, done: int) -> None:
        now = time.monotonic()
        if sys.stderr.isatty() and now - self._shown >= _EVERY_S:
            self._shown = now
            print(f"\r{self._what} {done:,} of {self._total:,}\x1b[K", end="", file=sys.stderr, flush=True)

    def after(self, before: int) -> Callable[[int], None]:
        """For a later piece of the work, which counts from nothing."""
        return lambda done: self(before + done)

    def __exit__(self, *_: object) -> None:
        start = "\r\x1b[K" if sys.stderr.isatty() else ""
        print(f"{start}{self._what}: {time.monotonic() - self._started:.1f} s", file=sys.stderr, flush=True)

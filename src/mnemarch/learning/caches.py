"""A cache of the newest answers (M11)."""

from __future__ import annotations

from _thread import allocate_lock  # the same as threading.Lock, and loads a millisecond faster
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from typing import Any


class TimedCache:
    """The most recently used answers. Each expires `ttl_s` seconds after it was made."""

    def __init__(self, size_max: int, ttl_s: float, clock: Callable[[], float] = monotonic) -> None:
        self._size_max, self._ttl_s, self._clock = size_max, ttl_s, clock
        self._answers: OrderedDict[tuple[Any, ...], tuple[float, Any]] = OrderedDict()
        self._lock = allocate_lock()
        self._hits = self._misses = 0

    def answer(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """The cached answer for the key, or the result of `make`, which is then cached."""
        with self._lock:
            known = self._answers.get(key)
            if known is not None and self._clock() - known[0] < self._ttl_s:
                self._answers.move_to_end(key)
                self._hits += 1
                return known[1]
            self._misses += 1
        made = make()
        with self._lock:
            self._answers[key] = self._clock(), made
            self._answers.move_to_end(key)
            while len(self._answers) > self._size_max:
                self._answers.popitem(last=False)
        return made

    def drop(self, pattern: str | None = None) -> int:
        """Drop the answers whose key contains this text, or all. Returns how many were dropped."""
        with self._lock:
            gone = [key for key in self._answers if pattern is None or any(pattern in str(part) for part in key)]
            for key in gone:
                del self._answers[key]
            return len(gone)

    def stats(self) -> dict[str, float]:
        asked = self._hits + self._misses
        return {
            "size": len(self._answers),
            "size_max": self._size_max,
            "ttl_seconds": self._ttl_s,
            "hits": self._hits,
            "misses": self._misses,
            "hit_rate": self._hits / asked if asked else 0.0,
        }

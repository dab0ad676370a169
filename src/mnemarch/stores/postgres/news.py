"""Wakes followers of a stream after commits to it, at most once in a short interval."""

from __future__ import annotations

import time
from _thread import allocate_lock, start_new_thread

import psycopg

from mnemarch.forks import Forkable, watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_CHANNEL = "mnemarch"
# A notification locks the whole server at commit. So one is sent for all commits of this interval.
_QUIET_S = 0.02
_LOOK_S = 1.0


class News(Forkable):
    """Counts notifications by tenant. A thread with its own connection listens once the count is first asked for."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._lock = allocate_lock()
        self._counts: dict[str, int] = {}
        self._told_at: dict[str, float] = {}
        self._is_listening = False
        self.closed = False
        watch(self)

    def is_due(self, tenant: str) -> bool:
        """Whether a commit should notify now. Followers look again a moment after each notification."""
        now = time.monotonic()
        if now - self._told_at.get(tenant, 0.0) < _QUIET_S:
            return False
        self._told_at[tenant] = now
        return True

    def count(self, tenants: Iterable[str]) -> int:
        """A number that changes when one of these tenants was written to."""
        with self._lock:
            if not self._is_listening and not self.closed:
                self._is_listening = True
                start_new_thread(self._listen, ())
        return sum(self._counts.get(tenant, 0) for tenant in tenants)

    def _listen(self) -> None:
        """Listen until the store is closed. Followers also poll, so an absent server does no harm."""
        while not self.closed:
            try:
                with self._connect() as connection:
                    connection.execute(f"LISTEN {_CHANNEL}")
                    while not self.closed:
                        for told in connection.notifies(timeout=_LOOK_S, stop_after=1):
                            self._note(told.payload)
                            time.sleep(_QUIET_S)
                            self._note(told.payload)  # Commits within the quiet interval send no notification.
            except (psycopg.Error, OSError):
                time.sleep(_LOOK_S)

    def _note(self, tenant: str) -> None:
        self._counts[tenant] = self._counts.get(tenant, 0) + 1

    def _resume(self, *, in_child: bool, rested: bool) -> None:  # noqa: ARG002
        if in_child:
            self._lock, self._is_listening = allocate_lock(), False

"""Who follows a stream is woken when somebody writes to it: after the commit, and not for each one of many."""

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
# At commit a notification takes a lock of the whole server, so each speaks for all commits of so long a time.
_QUIET_S = 0.02
_LOOK_S = 1.0


class News(Forkable):
    """Counts by tenant what others were told; a thread with a connection of its own listens once somebody asks."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._lock = allocate_lock()
        self._counts: dict[str, int] = {}
        self._told_at: dict[str, float] = {}
        self._is_listening = False
        self.closed = False
        watch(self)

    def is_due(self, tenant: str) -> bool:
        """Whether to tell of a commit now. Whoever follows looks again a moment after it was told."""
        now = time.monotonic()
        if now - self._told_at.get(tenant, 0.0) < _QUIET_S:
            return False
        self._told_at[tenant] = now
        return True

    def count(self, tenants: Iterable[str]) -> int:
        """A number that changes when somebody wrote to one of these streams."""
        with self._lock:
            if not self._is_listening and not self.closed:
                self._is_listening = True
                start_new_thread(self._listen, ())
        return sum(self._counts.get(tenant, 0) for tenant in tenants)

    def _listen(self) -> None:
        """Listen until the store is closed. While the server is away, followers still look by themselves."""
        while not self.closed:
            try:
                with self._connect() as connection:
                    connection.execute(f"LISTEN {_CHANNEL}")
                    while not self.closed:
                        for told in connection.notifies(timeout=_LOOK_S, stop_after=1):
                            self._note(told.payload)
                            time.sleep(_QUIET_S)
                            self._note(told.payload)  # Of what was committed right after it nobody tells.
            except (psycopg.Error, OSError):
                time.sleep(_LOOK_S)

    def _note(self, tenant: str) -> None:
        self._counts[tenant] = self._counts.get(tenant, 0) + 1

    def _resume(self, *, in_child: bool, rested: bool) -> None:  # noqa: ARG002
        if in_child:
            self._lock, self._is_listening = allocate_lock(), False

"""A graph kept in a file by the process that has it open: saved a moment after it changed, many changes at a time."""

from __future__ import annotations

import atexit
import os
import weakref
from contextlib import ExitStack
from threading import Lock, Timer

from mnemarch.errors import InvalidInput, MnemarchError, StoreUnavailable
from mnemarch.files import locked_if_free
from mnemarch.graph.keeping import Unkept

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from typing import Any, Self, TypeVar

    from mnemarch.graph.held import Held
    from mnemarch.graph.store import GraphStore

    T = TypeVar("T")

_LOCK_END = ".lock"


class FileKeeper(Unkept):
    """Keeps one graph in one file, alone among all processes; `close` (or the process's end) writes what is left.

    keeper = FileKeeper("agent.graph.json")
    store = keeper.open(GraphStore(config, embedder, keeper=keeper))
    """

    def __init__(
        self, file: str | os.PathLike[str], *, delay_s: float = 1.0, clock: Callable[[], datetime] | None = None
    ) -> None:
        super().__init__(clock)
        given: Any = delay_s
        if not isinstance(given, int | float) or not 0 <= delay_s < float("inf"):
            raise InvalidInput(f"delay_s must not be negative: {delay_s!r}.", hint="A second is usual.")
        self.file = os.path.abspath(os.fspath(file))
        self._delay_s = delay_s
        self._store: GraphStore | None = None
        self._closed = False
        self._pid = os.getpid()
        self._timer: Timer | None = None
        self._starting = Lock()
        self._saving = Lock()
        self._held = ExitStack()
        self.error: MnemarchError | None = None
        """What the last save in the background failed with, if it did; the next change tries again."""
        if not self._held.enter_context(locked_if_free(self.file + _LOCK_END)):
            self._held.close()
            raise StoreUnavailable(
                f"{self.file} is kept by another process.",
                hint="Share a graph between processes through a memory: mem.seat(...).graph.",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self, store: GraphStore) -> GraphStore:
        """Fill a graph from the file, if there is one, and keep it from now on."""
        if self._store is not None or self._closed:
            raise InvalidInput(f"{self.file} was opened already.", hint="Use one FileKeeper for each graph.")
        if store.held.keeper is not self:
            raise InvalidInput("This graph has another keeper.", hint="GraphStore(config, embedder, keeper=keeper)")
        self._store = store
        try:
            if os.path.exists(self.file):
                type(store).load_from_file(self.file, store)
        except BaseException:
            self._store = None
            raise
        atexit.register(_flush_at_exit, weakref.ref(self))
        return store

    def change(self, graphs: Sequence[Held], act: str, work: Callable[[int], T]) -> T:
        if self._store is None or self._pid != os.getpid():
            raise StoreUnavailable(
                f"{self.file} does not keep this graph: it is closed, was never opened, or belongs to the process "
                f"that opened it.",
                hint="keeper.open(store) first; after a fork, make another keeper.",
            )
        try:
            return super().change(graphs, act, work)
        finally:
            self._due()

    def _due(self) -> None:
        """Have it saved soon; changes until then are saved with it."""
        with self._starting:
            if self._timer is None:
                self._timer = Timer(self._delay_s, self._save_in_background)
                self._timer.daemon = True
                self._timer.start()

    def _save_in_background(self) -> None:
        try:
            self.flush()
        except MnemarchError as error:
            self.error = error

    def flush(self) -> None:
        """Write now what is not written yet."""
        if self._pid != os.getpid():
            return  # A fork has a copy of the graph, and no business with the file.
        with self._starting:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None
        with self._saving:
            if self._store is not None:
                self._store.save_to_file(self.file, only_if_dirty=True)
                self.error = None

    def close(self) -> None:
        """Write what is left and let the file go."""
        try:
            self.flush()
        finally:
            self._store, self._closed = None, True
            self._held.close()


def _flush_at_exit(keeper: weakref.ref[FileKeeper]) -> None:
    found = keeper()
    if found is not None:
        found.flush()

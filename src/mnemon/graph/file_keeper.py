"""A graph kept in a file by the process that has it open: saved a moment after it changed, many changes at a time."""

from __future__ import annotations

import atexit
import os
import weakref
from contextlib import ExitStack
from threading import Lock, Timer

from mnemon.embedding.vector_files import locked_if_free
from mnemon.errors import InvalidInput, MnemonError, StoreUnavailable
from mnemon.graph.keeping import Unkept

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from typing import Self, TypeVar

    from mnemon.graph.store import GraphStore

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
        if not 0 <= delay_s < float("inf"):
            raise InvalidInput(f"delay_s must not be negative: {delay_s!r}.", hint="A second is usual.")
        self.file = os.path.abspath(os.fspath(file))
        self._delay_s = delay_s
        self._store: GraphStore | None = None
        self._timer: Timer | None = None
        self._starting = Lock()
        self._saving = Lock()
        self._held = ExitStack()
        self.error: MnemonError | None = None
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
        if self._store is not None:
            raise InvalidInput(f"{self.file} is kept already.", hint="Use one FileKeeper for each graph.")
        if os.path.exists(self.file):
            type(store).load_from_file(self.file, store)
        self._store = store
        atexit.register(_flush_at_exit, weakref.ref(self))
        return store

    def change(self, stores: Sequence[GraphStore], act: str, work: Callable[[int], T]) -> T:
        try:
            return super().change(stores, act, work)
        finally:
            self._due()

    def _due(self) -> None:
        """Have it saved soon; changes until then are saved with it."""
        with self._starting:
            if self._store is not None and self._timer is None:
                self._timer = Timer(self._delay_s, self._save_in_background)
                self._timer.daemon = True
                self._timer.start()

    def _save_in_background(self) -> None:
        try:
            self.flush()
        except MnemonError as error:
            self.error = error

    def flush(self) -> None:
        """Write now what is not written yet."""
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
            self._store = None
            self._held.close()


def _flush_at_exit(keeper: weakref.ref[FileKeeper]) -> None:
    found = keeper()
    if found is not None:
        found.flush()

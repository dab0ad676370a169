"""Search by meaning: updates the vectors of a store's units from its log, and finds the nearest to a question."""

from __future__ import annotations

import threading

from mnemarch.embedding.dense import DenseEmbedder, noise_of
from mnemarch.embedding.vectors import Head, VectorFile
from mnemarch.errors import MnemarchError
from mnemarch.forks import Forkable, watch
from mnemarch.model.value import Frozen, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, Protocol

    from mnemarch.embedding.vectors import Within
    from mnemarch.model.unit import Searchable

    ChangesAfter = Callable[[int], Iterable[Searchable]]

    class VectorStore(Protocol):
        """Stores the vectors of one embedder for one store. `vectors.VectorFile` is one.

        Methods raise StoreUnavailable if it can't be reached. No data is lost then, since the log has everything.
        """

        def state(self) -> Head:
            """The head of the vectors. Empty if this embedder has none for this store."""

        def count(self) -> int:
            """How many units have a vector."""

        def nearest(self, vector: Any, count: int, within: Within) -> list[tuple[str, float]]:
            """The nearest units with an allowed scope, state, kind and domain. None allows all."""

        def compared(self, vector: Any, unit_ids: Iterable[str]) -> list[tuple[str, float]]:
            """The cosine of each of these units that has a vector."""

        def alone(self) -> AbstractContextManager[bool]:
            """Try to become the only process that makes vectors. Yields whether it succeeded."""

        def begin(self, *, may_replace: bool) -> Head | None:
            """The head of this embedder's vectors, new if there are none. None if another's may not be replaced."""

        def known(self, units: Sequence[Searchable]) -> set[str]:
            """The units whose current text has a vector."""

        def save(
            self, begun: Head, changes: Sequence[tuple[Searchable, Any]], position: int, *, complete: bool
        ) -> bool:
            """Write units with their vectors, and the position reached. See `VectorFile.save`."""

        def erase(self, unit_ids: Sequence[str]) -> None:
            """Remove the vectors of these units for all embedders. They may never be saved again (R16)."""

        def close(self) -> None: ...


_BATCH_MAX = 64
# How long `close` waits for the background thread. A local model finishes a batch or its loading in this time.
_LEAVE_S_MAX = 5.0
_LOCK_WAIT_S_MAX = 30.0

IDLE, RUNNING, DONE, FAILED = "idle", "running", "done", "failed"
INTERRUPTED, ELSEWHERE, REPLACED = "interrupted", "elsewhere", "replaced"


class Progress(Frozen):
    """How far the vectors have followed the log.

    `state` is idle, running, done, interrupted, failed (`error` says why), elsewhere (another process is embedding) or
    replaced (another process opened the store with another embedder).
    """

    state: str = IDLE
    embedded: int = 0
    error: str = ""


class DenseSearch(Forkable):
    """The vectors of one store by one embedder, in a folder or another vector store. Thread-safe.

    Searches find nothing until a new embedder's vectors are complete, and `ready` tells whether they are. An embedder
    that waits between attempts can watch `stop`.
    """

    def __init__(
        self, vectors: str | VectorStore, embedder: DenseEmbedder, *, stop: threading.Event | None = None
    ) -> None:
        self._embedder = embedder
        if isinstance(vectors, str):
            vectors = VectorFile(vectors, embedder.id, "", lambda _: "", _LOCK_WAIT_S_MAX)
        self._store = vectors
        self._progress = Progress()
        self._stop = stop or threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._took_charge = False
        self._asked: tuple[str, Any] | None = None
        self._noise: float | None = None
        self._log: tuple[ChangesAfter, Callable[[], int]] | None = None
        watch(self)

    def _resume(self, *, in_child: bool, rested: bool) -> None:  # noqa: ARG002
        if in_child:
            self._starting, self._thread = threading.Lock(), None
            self._stop._at_fork_reinit()  # type: ignore[attr-defined]

    # Answering

    def ready(self) -> bool:
        """Whether the vectors are complete."""
        return bool(self._store.state().complete)

    def position(self) -> int:
        """The position in the log up to which this embedder's vectors reach."""
        return self._store.state().position

    def count(self) -> int:
        """How many units have a vector."""
        return self._store.count()

    def noise_for(self, text: str) -> float:
        """The cosine of unrelated texts with this question, from the embedder or measured once."""
        if hasattr(self._embedder, "noise_for"):
            return float(self._embedder.noise_for(text))
        if self._noise is None:
            self._noise = noise_of(self._embedder)
        return self._noise

    def nearest(
        self,
        text: str,
        scope_keys: Sequence[str] | None,
        *,
        states: Sequence[str] = (),
        kinds: Sequence[str] = (),
        domains: Sequence[str] = (),
        limit: int,
    ) -> list[tuple[str, float]]:
        """The units nearest in meaning with their cosine, best first. Empty until the vectors are complete."""
        if not self.ready():
            return []
        vector = self._vector(text)
        if limit <= 0 or not vector.any():
            return []
        nearest = self._store.nearest(vector, limit, (scope_keys, states or None, kinds or None, domains or None))
        if self._progress.state == FAILED and self._log is not None:
            self.follow(*self._log)  # The failed service answers again.
        return nearest

    def similarities(self, text: str, unit_ids: Iterable[str]) -> dict[str, float]:
        """The cosine of each of these units that has a vector. Empty until the vectors are complete."""
        if (self._asked is None or self._asked[0] != text) and not self.ready():
            return {}
        vector = self._vector(text)
        return dict(self._store.compared(vector, unit_ids)) if vector.any() else {}

    def warm(self) -> None:
        """Load the model now, before the first question."""
        if self._asked is None:
            self._embedder.embed(["ready"])

    def _vector(self, text: str) -> Any:
        """The text's vector. The last one is cached, because a recall needs its question's vector several times."""
        asked = self._asked
        if asked is None or asked[0] != text:
            embed = getattr(self._embedder, "embed_question", lambda text: self._embedder.embed([text])[0])
            asked = self._asked = text, embed(text)
        return asked[1]

    # Following the log

    def progress(self) -> Progress:
        return self._progress

    def catch_up(self, changes_after: ChangesAfter, head: Callable[[], int]) -> Progress:
        """Embed the changes after `position()` now. Returns the outcome.

        `changes_after` gives the searchable changes after a position, in order. `head` gives the position of the newest
        event. Each batch is saved, so an interruption or failure loses only the current batch.
        """
        self._stop.clear()
        return self._catch_up(changes_after, head)

    def follow(self, changes_after: ChangesAfter, head: Callable[[], int]) -> None:
        """Load the model and catch up in a background thread, unless one is running. See `progress`."""
        with self._starting:
            if self._thread is not None and self._thread.is_alive():
                return
            self._log = changes_after, head
            self._stop.clear()
            thread = threading.Thread(target=self._follow, args=(changes_after, head), daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                self._progress = Progress(state=FAILED, error=str(error))  # Recall uses words alone.
            else:
                self._thread = thread

    def _follow(self, changes_after: ChangesAfter, head: Callable[[], int]) -> None:
        try:
            self.warm()
            self._catch_up(changes_after, head)
        except MnemarchError as error:
            self._progress = Progress(state=FAILED, error=str(error))

    def _catch_up(self, changes_after: ChangesAfter, head: Callable[[], int]) -> Progress:
        with self._store.alone() as is_free:
            if not is_free:
                return Progress(state=ELSEWHERE)
            self._progress = Progress(state=RUNNING)
            try:
                state = self._followed(changes_after, head)
            except BaseException as error:
                self._progress = replace(self._progress, state=FAILED, error=str(error) or type(error).__name__)
                raise
            self._progress = replace(self._progress, state=state)
            return self._progress

    def _followed(self, changes_after: ChangesAfter, head: Callable[[], int]) -> str:
        # The store keeps the vectors of one embedder: the one that a process opened the store with last.
        begun = self._store.begin(may_replace=not self._took_charge)
        if begun is None:
            return REPLACED
        self._took_charge = True
        # Read the head before the changes, which may or may not include later commits.
        last = upto = head()
        for batch in _batches(changes_after(begun.position)):
            if self._stop.is_set() or not self._save(begun, batch, batch[-1].changed_at):
                return INTERRUPTED
            last = max(upto, batch[-1].changed_at)
        if self._stop.is_set():
            return INTERRUPTED
        is_new = not begun.complete or last != begun.position
        return DONE if not is_new or self._save(begun, [], last, complete=True) else INTERRUPTED

    def _save(self, begun: Head, batch: Sequence[Searchable], position: int, *, complete: bool = False) -> bool:
        known = self._store.known(batch) if batch else ()
        lacking = {unit.id: unit for unit in batch if unit.content and unit.id not in known}
        texts = [unit.content for unit in lacking.values()]
        vectors = dict(zip(lacking, self._embedder.embed(texts) if texts else (), strict=True))
        self._progress = replace(self._progress, embedded=self._progress.embedded + len(texts))
        changes = [(unit, vectors.get(unit.id)) for unit in batch]
        return self._store.save(begun, changes, position, complete=complete)

    def interrupt(self) -> None:
        """Stop catching up after the current batch. The next run continues there."""
        self._stop.set()

    def wait(self) -> None:
        """Wait until the background work has ended."""
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """End the background work. It doesn't wait for an unresponsive model, because saves are atomic."""
        self.interrupt()
        if self._thread is not None:
            self._thread.join(_LEAVE_S_MAX)
        self._store.close()

    def erase(self, unit_ids: Sequence[str]) -> None:
        """Remove the vectors of these units for all embedders (R16)."""
        self._asked = None
        self._store.erase(unit_ids)


def _batches(changes: Iterable[Searchable]) -> Iterator[list[Searchable]]:
    """The changes in batches to embed together. A batch never splits a position, and has each unit's last version."""
    batch: dict[str, Searchable] = {}
    last = 0
    for unit in changes:
        if len(batch) >= _BATCH_MAX and unit.changed_at > last:
            yield list(batch.values())
            batch = {}
        batch.pop(unit.id, None)
        batch[unit.id] = unit
        last = unit.changed_at
    if batch:
        yield list(batch.values())

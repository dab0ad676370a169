"""Search by meaning: keeps the vectors of a store's units in step with its log, and finds the nearest to a question."""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress

from xxhash import xxh3_64_hexdigest

from mnemarch.embedding import vector_files as files
from mnemarch.embedding.vectors import Changes, VectorIndex
from mnemarch.errors import MnemarchError
from mnemarch.files import locked_if_free, write_whole
from mnemarch.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from mnemarch.embedding.dense import DenseEmbedder
    from mnemarch.model.unit import Searchable

_IN_CHARGE = "embedder.json"
_FOLLOWING_LOCK = "follow.lock"
_BATCH_MAX = 64
_LOOKED_AT_MAX = 2_048
# A save writes every vector again. So it comes once this share of them is new, within these bounds.
_SAVED_SHARE = 4
_SAVED_MIN, _SAVED_MAX = 2_048, 32_768
# A model on this machine has finished its batch by then, or its loading.
_LEAVE_S_MAX = 5.0

IDLE, RUNNING, DONE, FAILED = "idle", "running", "done", "failed"
INTERRUPTED, ELSEWHERE, REPLACED = "interrupted", "elsewhere", "replaced"


@value
class Progress:
    """How far the vectors have followed the log.

    `state` is idle, running, done, interrupted, failed (`error` says why), elsewhere (another process is at it) or
    replaced (another process opened the store with another embedder).
    """

    state: str = IDLE
    looked_at: int = 0
    embedded: int = 0
    position: int = 0
    error: str = ""


class DenseSearch:
    """The vectors of one store by one embedder, in one folder. Safe to share between threads.

    Until the vectors of a new embedder are complete, those of the `previous` one answer. Without one nothing does, and
    `ready` says so. An embedder that waits between attempts can watch `stop`.
    """

    def __init__(
        self,
        folder: str,
        embedder: DenseEmbedder,
        *,
        store_id: str = "",
        event_at: Callable[[int], str] | None = None,
        previous: DenseEmbedder | None = None,
        lock_wait_s_max: float = 30.0,
        stop: threading.Event | None = None,
    ) -> None:
        self._folder = folder
        self._settings: dict[str, Any] = {
            "store_id": store_id,
            "event_at": event_at,
            "lock_wait_s_max": lock_wait_s_max,
        }
        self._embedder = embedder
        self._index = self._index_of(embedder.id)
        self._previous = None if previous is None else (self._index_of(previous.id), previous)
        self._progress = Progress()
        self._stop = stop or threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._took_charge = False
        self._asked: tuple[str, str, Any] | None = None
        self._warm: set[str] = set()

    def _index_of(self, embedder_id: str) -> VectorIndex:
        name = xxh3_64_hexdigest(embedder_id.encode())
        return VectorIndex(os.path.join(self._folder, name), embedder_id, **self._settings)

    # Asking

    def ready(self) -> bool:
        """Whether a question would be answered at once: all vectors are there and the model is loaded."""
        if not self._warm:
            return False  # Without reading the files, which takes a while.
        answering = self._answering()
        return answering is not None and answering[1].id in self._warm

    def position(self) -> int:
        """How far the log has been followed with the present embedder."""
        return self._index.position()

    def nearest(
        self, text: str, scope_keys: Sequence[str] | None, *, limit: int, **within: Any
    ) -> list[tuple[str, float]]:
        """The units nearest in meaning, with their cosine, best first; nothing while no index is complete.

        `within` may name the `states`, `kinds` and `domains` to search in.
        """
        answering = self._answering()
        if answering is None or limit <= 0:
            return []
        index, embedder = answering
        vector = self._vector(text, embedder)
        return index.search(vector, limit, made_by=embedder.id, scope_keys=scope_keys, **within)

    def similarities(self, text: str, unit_ids: Iterable[str]) -> dict[str, float]:
        """The cosine of each of these units that has a vector; nothing while no index is complete."""
        answering = self._answering()
        if answering is None:
            return {}
        index, embedder = answering
        return index.similarities(self._vector(text, embedder), unit_ids, made_by=embedder.id)

    def warm(self) -> None:
        """Load the models now instead of at the first question: the present one, and the one that still answers."""
        for _, embedder in (self._answering() or (self._index, self._embedder), (self._index, self._embedder)):
            if embedder.id not in self._warm:
                self._vector("ready", embedder)

    def _answering(self) -> tuple[VectorIndex, DenseEmbedder] | None:
        if self._index.complete():
            return self._index, self._embedder
        if self._previous is not None and self._previous[0].complete():
            return self._previous
        return None

    def _vector(self, text: str, embedder: DenseEmbedder) -> Any:
        """The text's vector, cached: one recall asks for that of its question several times."""
        asked = self._asked
        if asked is None or asked[:2] != (text, embedder.id):
            asked = text, embedder.id, embedder.embed([text])[0]
            self._asked = asked
            self._warm.add(embedder.id)
        return asked[2]

    # Following the log

    def progress(self) -> Progress:
        return self._progress

    def catch_up(self, changes_after: Callable[[int], Iterable[Searchable]], head: Callable[[], int]) -> Progress:
        """Embed what changed after `position()`, here and now; gives how it went.

        `changes_after` gives the searchable changes after a position in order, `head` the position of the newest
        event. It saves from time to time. `interrupt` ends it after the current batch, and a failure is raised, both
        with everything so far saved.
        """
        self._stop.clear()
        return self._catch_up(changes_after, head)

    def follow(self, changes_after: Callable[[int], Iterable[Searchable]], head: Callable[[], int]) -> None:
        """Load the model and catch up in the background, unless that is going on already; see `progress`."""
        with self._starting:
            if self._thread is not None and self._thread.is_alive():
                return
            self._stop.clear()
            thread = threading.Thread(
                target=self._follow, args=(changes_after, head), name="mnemarch-vectors", daemon=True
            )
            try:
                thread.start()
            except RuntimeError as error:
                self._note(state=FAILED, error=str(error))  # No thread can be started: recall goes on by words.
            else:
                self._thread = thread

    def _follow(self, changes_after: Callable[[int], Iterable[Searchable]], head: Callable[[], int]) -> None:
        try:
            self.warm()
            if self._stop.is_set():
                self._note(state=INTERRUPTED)
            else:
                self._catch_up(changes_after, head)
        except MnemarchError as error:
            self._note(state=FAILED, error=str(error))

    def _catch_up(self, changes_after: Callable[[int], Iterable[Searchable]], head: Callable[[], int]) -> Progress:
        with locked_if_free(os.path.join(self._folder, _FOLLOWING_LOCK)) as is_free:
            if not is_free:
                elsewhere = Progress(state=ELSEWHERE, position=self.position())
                self._progress = elsewhere if self._progress.state != RUNNING else self._progress
                return elsewhere
            try:
                self._progress = Progress(state=RUNNING)
                state = self._followed(changes_after, head) if self._is_in_charge() else REPLACED
            except BaseException as error:
                self._note(state=FAILED, error=str(error) or type(error).__name__)
                raise
            self._note(state=state, position=self.position())
            return self._progress

    def _followed(self, changes_after: Callable[[int], Iterable[Searchable]], head: Callable[[], int]) -> str:
        self._index.refresh()
        run = _Run(self._index, self._embedder, self._note)
        self._note(position=run.position)
        # The head is read first: what is committed after it may or may not be among the changes.
        upto = head()
        try:
            for unit in changes_after(run.position):
                if run.is_full(unit):
                    run.embed()
                    if self._stop.is_set() or run.is_lost:
                        run.save()
                        return INTERRUPTED
                run.take(unit)
            run.embed()
        except BaseException:
            run.save()
            raise
        if not run.finish(upto):
            return INTERRUPTED
        self._drop_others()
        return DONE

    def interrupt(self) -> None:
        """End the catching up after the current batch; the next one goes on from there."""
        self._stop.set()

    def wait(self) -> None:
        """Wait until the background work has ended."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def close(self) -> None:
        """End the background work and close the files. A model that does not answer is not waited for: files are only
        ever replaced whole."""
        self.interrupt()
        if self._thread is not None:
            self._thread.join(_LEAVE_S_MAX)
        for index in (self._index, *(self._previous or ())[:1]):
            index.close()

    def _note(self, **changes: Any) -> None:
        self._progress = replace(self._progress, **changes)

    # Which embedder's vectors these are

    def _is_in_charge(self) -> bool:
        """Whether this embedder is the last one that any process opened the store with: only its vectors are kept."""
        path = os.path.join(self._folder, _IN_CHARGE)
        try:
            with open(path, encoding="utf-8") as file:
                known = json.load(file)["id"]
        except (OSError, ValueError, KeyError, TypeError):
            known = None
        if known != self._embedder.id and (known is None or not self._took_charge):
            write_whole(path, json.dumps({"id": self._embedder.id}))
            known = self._embedder.id
        self._took_charge = True
        return bool(known == self._embedder.id)

    def _drop_others(self) -> None:
        """Remove the vectors of other embedders: nobody keeps them in step, nor erases from them."""
        for folder in self._folders():
            if folder != self._index.folder:
                files.drop_folder(folder)

    def _folders(self) -> list[str]:
        with suppress(OSError), os.scandir(self._folder) as entries:
            return [entry.path for entry in entries if entry.is_dir()]
        return []

    # Erasure

    def erase(self, unit_ids: Sequence[str]) -> None:
        """Remove the vectors of these units from all files, of whichever embedder (R16)."""
        self._asked = None
        # Also if the index is empty: a vector that is being made right now must not be saved.
        self._index.erase(unit_ids)
        for folder in self._folders():
            named = files.generation_from(files.naming(folder))
            if named is not None and folder != self._index.folder:
                VectorIndex(folder, named.embedder_id, **self._settings).erase(unit_ids)


class _Run:
    """One catching up: what was read but not embedded, what was embedded but not saved, and up to which position."""

    def __init__(self, index: VectorIndex, embedder: DenseEmbedder, note: Callable[..., None]) -> None:
        self._index = index
        self._embedder = embedder
        self._note = note
        self._complete = index.complete()
        self._batch: dict[str, Searchable] = {}
        self._changes = Changes()
        self.position = index.position()
        self._last = self._reached = self._saved = self.position
        self._looked_at = self._embedded_at = self._embedded = 0
        # Another process removed the files meanwhile: the next run begins anew.
        self.is_lost = False

    def is_full(self, following: Searchable) -> bool:
        """Whether to embed before taking this one. A batch never ends inside a position."""
        is_enough = len(self._batch) >= _BATCH_MAX or self._looked_at - self._embedded_at >= _LOOKED_AT_MAX
        return is_enough and following.changed_at > self._last

    def take(self, unit: Searchable) -> None:
        self._last = max(self._last, unit.changed_at)
        self._looked_at += 1
        self._batch.pop(unit.id, None)
        if not unit.content:
            self._changes.remove(unit.id)
            return
        lacking = self._lacking(unit)
        if lacking == "vector":
            self._batch[unit.id] = unit
        elif lacking == "labels":
            self._changes.relabel(unit)

    def _lacking(self, unit: Searchable) -> str:
        """What neither the index nor the waiting changes have of the unit."""
        if unit.id not in self._changes:
            return self._index.lacks(unit)
        waiting, vector = self._changes[unit.id]
        if vector is None:
            return "vector" if waiting is None else self._index.lacks(unit) or "labels"
        return "labels" if waiting is not None and waiting.content == unit.content else "vector"

    def embed(self) -> None:
        """Embed everything taken so far, and save it if that is enough."""
        if self._batch:
            units = list(self._batch.values())
            for unit, vector in zip(units, self._embedder.embed([unit.content for unit in units]), strict=True):
                self._changes.put(unit, vector)
            self._embedded += len(units)
            self._batch = {}
        self._reached, self._embedded_at = self._last, self._looked_at
        self._note(looked_at=self._looked_at, embedded=self._embedded, position=self._reached)
        if len(self._changes) >= max(_SAVED_MIN, min(_SAVED_MAX, len(self._index) // _SAVED_SHARE)):
            self.save()

    def save(self) -> None:
        """Save what is embedded so far."""
        if self._changes or self._reached != self._saved:
            self._write(self._reached, complete=self._complete, settled=False)

    def finish(self, head: int) -> bool:
        """Save that everything is embedded; False if the files were lost meanwhile."""
        upto = max(head, self._last)
        if self._changes or upto != self._saved or not self._complete:
            self._write(upto, complete=True, settled=True)
        return not self.is_lost

    def _write(self, position: int, **how: bool) -> None:
        done = not self.is_lost and self._index.save(self._changes, after=self._saved, position=position, **how)
        self.is_lost = not done
        self._changes = Changes()
        self._saved = position

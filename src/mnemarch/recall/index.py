"""The searchable texts of a store: an index of the older units, and a tail of the newer ones that is scored exactly."""

from __future__ import annotations

import time
from _thread import RLock  # as threading has it, which is a millisecond more to load

from mnemarch.errors import StoreUnavailable
from mnemarch.forks import Forkable, watch
from mnemarch.recall.tail import Tail
from mnemarch.text.coherence import weight_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from threading import Thread
    from typing import Any

    from mnemarch.log.act import Log
    from mnemarch.model.search import Sketch
    from mnemarch.model.unit import Searchable
    from mnemarch.ports import SearchIndex
    from mnemarch.stores.sql.reader import Reader

    # A position, and the first page of what changed after it.
    Newest = tuple[int, list[Searchable]]

_TAIL_PAGE = 2_000
_TAIL_MAX = 5_000
_COMPARED_TAIL_MAX = 250
_NAP_S = 0.05
# So long a question waits for another process that indexes what it needs; a stopped one would never end.
_INDEXING_WAIT_S_MAX = 5.0
# An index that has seen so many neighbours is sure of their coherence; before, the tail is counted too.
_PAIRS_ENOUGH = 256
IN_DATABASE = "Searched in the database, by the rarest words: this machine has no search index yet."


class LiveIndex(Forkable):
    """Index and tail of one store, kept in step with its log. Safe to share between threads."""

    def __init__(self, log: Log, index: SearchIndex | None, shared: SearchIndex | None = None) -> None:
        self._log = log
        self._store = log.store
        self._rules = log.config.store
        # The one on this machine, the one that a team shares, if there is one, and which of them is used.
        self._local, self._shared = index, shared
        self._index = index if shared is None else shared
        self._questions = 0
        self._tail = Tail()
        self._lock = RLock()
        self._indexing: Thread | None = None
        self._started = False
        # Where the tail began.
        self._base = 0
        # Up to where near-duplicates were looked for, once that is not where the index ends.
        self._checked_position: int | None = None
        self._epoch = log.store.epoch
        self._coherence_of: tuple[str, int, float] | None = None
        watch(self)

    def _resume(self, *, in_child: bool, rested: bool) -> None:  # noqa: ARG002
        if in_child:  # A thread of the parent may have been at the tail.
            self._lock = RLock()
            self._indexing = None
            self.forget_tail()

    # What index and tail know together

    def documents_in(self, scope_keys: Sequence[str]) -> int:
        indexed = self._index.documents_in(scope_keys) if self._index is not None else 0
        return self._tail.documents_in(scope_keys) + indexed

    def mean_length(self) -> float:
        indexed = self._index.documents() if self._index is not None else 0
        length = self._tail.total_length + (self._index.mean_length() * indexed if self._index is not None else 0.0)
        return max(1.0, length / max(1, len(self._tail) + indexed))

    def words_from(self, beginning: str, scope_keys: Sequence[str], limit: int) -> list[str]:
        indexed = self._index.words_from(beginning, scope_keys, limit) if self._index is not None else []
        return list(dict.fromkeys(self._tail.words_from(beginning, scope_keys, limit) + indexed))[:limit]

    def at(self, places: Sequence[str], scope_keys: Sequence[str], *, states: Sequence[str]) -> list[Sketch]:
        """The units at these turns of sessions."""
        with self._lock:
            indexed = self._index.at(places, scope_keys, states=states) if self._index is not None and places else []
            return self._tail.at(places, scope_keys, states=states) + self._not_in_tail(indexed)

    def of(self, unit_ids: Sequence[str], scope_keys: Sequence[str], *, states: Sequence[str]) -> list[Sketch]:
        """Those of these units that are in these scopes and states."""
        with self._lock:
            indexed = self._index.of(unit_ids, scope_keys, states=states) if self._index is not None else []
            return self._tail.of(unit_ids, scope_keys, states=states) + self._not_in_tail(indexed)

    def _not_in_tail(self, sketches: Sequence[Sketch]) -> list[Sketch]:
        """What the tail holds is newer than what was indexed of it."""
        return [sketch for sketch in sketches if sketch.id not in self._tail]

    def coherence(self, project: str) -> float:
        """How far neighbours in this project's sessions may speak for each other, from 0 to 1."""
        with self._lock:
            indexed = self._index.coherence().get(project) if self._index is not None else None
            if indexed is not None and indexed[2] >= _PAIRS_ENOUGH:
                return weight_of(indexed)
            cached = self._coherence_of
            if cached is None or cached[:2] != (project, self._tail.position):
                known = {} if indexed is None else {project: indexed}
                weight = weight_of(self._tail.coherence.sums(known).get(project))
                cached = self._coherence_of = (project, self._tail.position, weight)
            return cached[2]

    def documents(self) -> int:
        """How many units are indexed."""
        self._indexed_position()
        return self._index.documents() if self._index is not None else 0

    def pending(self) -> int:
        """How many units the index does not know yet."""
        position = self._indexed_position()
        return self._store.read(lambda reader: reader.searchable_count_after(position))

    def _indexed_position(self) -> int:
        """How far the index has read. If it can't be opened or made, the tail holds everything."""
        try:
            return self._index.position() if self._index is not None else 0
        except StoreUnavailable:
            if self._index is self._shared:
                raise  # The store is away too.
            self._index, self._local = self._shared, None
            return self._indexed_position()

    # Following the store

    def newest(self, reader: Reader) -> Newest | None:
        """For `catch_up`: what was written since, read in a view that is open anyway."""
        position = self._tail.position
        return (position, reader.searchable_after(position, _TAIL_PAGE)) if self._started else None

    def catch_up(self, newest: Newest | None = None) -> None:
        """See what was written since; called before each question."""
        with self._lock:
            if self._epoch != self._store.epoch:
                self._epoch = self._store.epoch
                self._started = False
                if self._index is not None:
                    self._index.refresh()
            # The index may have been thrown away and begun anew, here or elsewhere: then the tail begins anew too.
            if not self._started or self._indexed_position() < self._base:
                self._begin()
            self._read_tail(newest)
            self._questions += 1
            if self._index is not None and len(self._tail) > self._rules.index_tail_max:
                self._index.refresh()
                if self._index.position() >= self._tail.position:
                    self._new_tail(self._index.position())
                else:
                    self._index_in_background()
            elif self._wants_local():
                self._index_in_background()

    @property
    def notes(self) -> tuple[str, ...]:
        """What an answer has to say about how it was searched for."""
        return (IN_DATABASE,) if self._is_shared() else ()

    def _is_shared(self) -> bool:
        return self._index is self._shared and bool(self._indexed_position())

    def _wants_local(self) -> bool:
        """Whether to make an index on this machine. A process that asks only once has ended before it is made."""
        return self._questions > 1 and self._local is not None and self._is_shared()

    def _choose(self) -> None:
        """Use the index on this machine if it is as far as the shared one."""
        local = self._local
        if self._shared is not None and local is not None and local.exists():
            try:
                self._index = local if local.position() >= self._shared.position() else self._shared
            except StoreUnavailable:
                self._local = None

    def _begin(self) -> None:
        """Start a tail where the index ends. A lost index is made first: a tail of everything costs more."""
        self._choose()
        self._new_tail(self._indexed_position())
        self._started = True
        # Our own indexing thread needs the lock that is held here, so it is not waited for.
        if self._indexing is None and self._index is not None and self._store.writable and self.pending() > _TAIL_MAX:
            try:
                self.index_patiently(min(_INDEXING_WAIT_S_MAX, self._rules.lock_wait_s_max), rebuild=False)
            except StoreUnavailable:
                return  # Another process holds the index for so long: the tail takes it all.

    def _new_tail(self, position: int) -> None:
        self._tail = Tail(position)
        self._base = position

    def _read_tail(self, newest: Newest | None = None) -> None:
        """Take in what changed since the tail was last read."""
        try:
            page: Iterable[Searchable] | None = None
            if newest is not None and newest[0] == self._tail.position and len(newest[1]) < _TAIL_PAGE:
                page = newest[1]
            for unit in self._changes_after(self._tail.position) if page is None else page:
                self._tail.add(unit)
        except BaseException:
            self.forget_tail()  # An interrupt may have left a unit half in it.
            raise

    def _changes_after(
        self, position: int, progress: Callable[[int], None] | None = None, read: Callable[[Any], Any] | None = None
    ) -> Iterator[Searchable]:
        """The searchable changes after a position, read page by page."""
        done = 0
        while True:
            ask = read or self._store.read
            page: list[Searchable] = ask(lambda reader: reader.searchable_after(position, _TAIL_PAGE))  # noqa: B023
            yield from page
            done += len(page)
            if progress is not None and page:
                progress(done)
            if len(page) < _TAIL_PAGE:
                return
            position = page[-1].changed_at

    # Indexing

    def _index_in_background(self) -> None:
        if self._indexing is not None or not self._store.writable:
            return
        from threading import Thread

        def work() -> None:
            try:
                self._index_if_possible()
            finally:
                self._indexing = None

        self._indexing = Thread(target=work, name="mnemarch-index", daemon=True)
        try:
            self._indexing.start()
        except RuntimeError:
            # The process is ending and starts no thread: the tail answers, and the next question tries again.
            self._indexing = None

    def _index_if_possible(self) -> None:
        """What can't be indexed now stays in the tail, where it is found; `reindex` says what is wrong."""
        try:
            # In a long tail the search for duplicates would take a minute, in the database several.
            if self.pending() > _COMPARED_TAIL_MAX or self._wants_local():
                self.index_now()
            self.link_duplicates()
            self.index_now()
        except StoreUnavailable:
            return

    def link_duplicates(self) -> None:
        """Link the near-duplicates among the units that are about to be indexed."""
        raise NotImplementedError

    def index_now(self, *, rebuild: bool = False, progress: Callable[[int], None] | None = None) -> bool:
        """Bring the index up to date, or make it anew; False if another process is doing it or there is none."""
        if self._index is None:
            return False
        if self._checked_position is None:
            self._checked_position = self._indexed_position()
        # What is indexed may come from a replica that is behind: the tail is read from where everybody writes.
        read = getattr(self._store, "read_elsewhere", self._store.read)
        for index in self._to_update(rebuild):
            if not index.update(lambda position: self._changes_after(position, progress, read), rebuild=rebuild):
                return False
        with self._lock:
            self._choose()
            self._index.refresh()
            self._new_tail(self._index.position())
            self._read_tail()
        return True

    def _to_update(self, rebuild: bool) -> list[SearchIndex]:
        """The shared index, and the one on this machine unless it is of no use to this process."""
        local = self._local
        if local is not None and self._index is not local and not self._wants_local():
            local = local if rebuild and local.exists() else None
        return [index for index in (self._shared, local) if index is not None]

    def index_patiently(
        self, wait_s_max: float, progress: Callable[[int], None] | None = None, *, rebuild: bool = True
    ) -> None:
        """Make the index anew, or bring it up to date. If another process is doing it, wait for that one."""
        self.wait()
        self._indexed_position()
        deadline = time.monotonic() + wait_s_max
        while self._index is not None and not self.index_now(rebuild=rebuild, progress=progress):
            if time.monotonic() > deadline:
                raise StoreUnavailable("Another process is indexing.", hint="Wait for it, then call again.")
            time.sleep(_NAP_S)

    def wait(self) -> None:
        """Wait until a background indexing has ended."""
        with self._lock:
            thread = self._indexing
        if thread is not None:
            thread.join()

    def forget_tail(self) -> None:
        """Drop the cached texts; the next question reads them anew."""
        with self._lock:
            self._tail = Tail()
            self._started = False

    def close(self) -> None:
        """Index a long tail before the process ends, so that the next one starts fast."""
        self.wait()
        has_index = self._index is not None
        if has_index and self._store.writable and self.pending() > self._rules.index_at_close_min:
            from threading import current_thread

            self._indexing = current_thread()  # Else what it reads would begin the same work in the background.
            self._index_if_possible()
        for index in (self._local, self._shared):
            if index is not None:
                index.close()

"""The searchable texts of a store: an index of older units, and a tail of newer ones that is scored exactly."""

from __future__ import annotations

import time
from _thread import RLock  # the same as threading.RLock, and a millisecond faster to import

from mnemarch.errors import StoreUnavailable
from mnemarch.forks import Forkable, watch
from mnemarch.model.search import bm25
from mnemarch.text.conversation import Coherence, sketched, weight_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from threading import Thread
    from typing import Any

    from mnemarch.log.act import Log
    from mnemarch.model.search import Sketch
    from mnemarch.model.unit import Searchable
    from mnemarch.ports import SearchIndex
    from mnemarch.stores.sql.reader import Reader

    # A position, and the first page of changes after it.
    Newest = tuple[int, list[Searchable]]

_TAIL_PAGE = 2_000
_TAIL_MAX = 5_000
_COMPARED_TAIL_MAX = 250
_NAP_S = 0.05
# How long a question waits for another process that is indexing. The other process may be suspended.
_INDEXING_WAIT_S_MAX = 5.0
# With this many pairs of neighbours the index's coherence is reliable. With fewer, the tail is counted too.
_PAIRS_ENOUGH = 256
IN_DATABASE = "Searched in the database, by the rarest words: this machine has no search index yet."


class Tail:
    """A small inverted index over the newest units of every scope."""

    def __init__(self, position: int = 0) -> None:
        self.position = position
        self.total_length = 0
        self.coherence = Coherence()
        self._sketches: dict[str, Sketch | None] = {}
        self._subjects: dict[str, tuple[str, str]] = {}
        self._postings: dict[str, set[str]] = {}
        self._places: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._sketches)

    def __contains__(self, unit_id: str) -> bool:
        return unit_id in self._sketches

    def add(self, unit: Searchable) -> None:
        """Add a unit, or replace its older version."""
        is_known = unit.id in self._sketches
        self._remove(unit.id)
        self._sketches[unit.id] = None
        if unit.content:
            sketch = sketched(unit)
            self._sketches[unit.id] = sketch
            self._subjects[unit.id] = (unit.kind, unit.domain)
            self._places[sketch.place] = unit.id
            self.total_length += sketch.length
            for word in sketch.distinct():
                self._postings.setdefault(word, set()).add(unit.id)
            if not is_known:
                self.coherence.note(sketch)
        self.position = max(self.position, unit.changed_at)

    def _remove(self, unit_id: str) -> None:
        sketch = self._sketches.pop(unit_id, None)
        if sketch is not None:
            self.total_length -= sketch.length
            self._places.pop(sketch.place, None)
            for word in sketch.distinct():
                self._postings[word].discard(unit_id)

    def frequency(self, word: str, scope_keys: Sequence[str]) -> int:
        return sum([self._is_of(unit_id, scope_keys) for unit_id in self._postings.get(word, ())])

    def documents_in(self, scope_keys: Sequence[str]) -> int:
        return sum([self._is_of(unit_id, scope_keys) for unit_id in self._sketches])

    def _is_of(self, unit_id: str, scope_keys: Sequence[str]) -> bool:
        sketch = self._sketches[unit_id]
        return sketch is not None and sketch.scope_key in scope_keys

    def words_from(self, beginning: str, scope_keys: Sequence[str], limit: int) -> list[str]:
        """Words in these scopes with this beginning."""
        words = [word for word in self._postings if word.startswith(beginning) and self.frequency(word, scope_keys)]
        return sorted(words)[:limit]

    def best(
        self,
        weights: Mapping[str, float],
        mean_length: float,
        scope_keys: Sequence[str],
        *,
        states: Sequence[str],
        kinds: Sequence[str] = (),
        domains: Sequence[str] = (),
        limit: int,
    ) -> list[tuple[float, Sketch]]:
        """The best units of these scopes for weighted words, with their scores."""
        scored = []
        for unit_id in set[str]().union(*(self._postings.get(word, ()) for word in weights)):
            sketch = self._sketches[unit_id]
            kind, domain = self._subjects[unit_id]
            fits = (not kinds or kind in kinds) and (not domains or domain in domains)
            if sketch is not None and fits and sketch.state in states and sketch.scope_key in scope_keys:
                scored.append((bm25(sketch, weights, mean_length), sketch))
        scored.sort(key=lambda item: (-item[0], item[1].id))
        return scored[:limit]

    def at(self, places: Sequence[str], scope_keys: Sequence[str], *, states: Sequence[str]) -> list[Sketch]:
        """The units at these turns of sessions."""
        return self.of([self._places[place] for place in places if place in self._places], scope_keys, states=states)

    def of(self, unit_ids: Sequence[str], scope_keys: Sequence[str], *, states: Sequence[str]) -> list[Sketch]:
        """The units with these ids that the tail has in these scopes and states."""
        return [
            sketch
            for sketch in map(self._sketches.get, unit_ids)
            if sketch is not None and sketch.state in states and sketch.scope_key in scope_keys
        ]


class LiveIndex(Forkable):
    """Index and tail of one store, kept in step with its log. Safe to share between threads."""

    def __init__(self, log: Log, index: SearchIndex | None, shared: SearchIndex | None = None) -> None:
        self._log = log
        self._store = log.store
        self._rules = log.config.store
        # The index on this machine, the team's shared index if there is one, and the one in use.
        self._local, self._shared = index, shared
        self._index = index if shared is None else shared
        self._questions = 0
        self._tail = Tail()
        self._lock = RLock()
        self._indexing: Thread | None = None
        self._started = False
        # The position where the tail began.
        self._base = 0
        # The position up to which near-duplicates were checked. None: the end of the index.
        self._checked_position: int | None = None
        self._epoch = log.store.epoch
        self._coherence_of: tuple[str, int, float] | None = None
        watch(self)

    def _resume(self, *, in_child: bool, rested: bool) -> None:  # noqa: ARG002
        if in_child:  # A thread of the parent may have been changing the tail.
            self._lock = RLock()
            self._indexing = None
            self.forget_tail()

    # Index and tail together

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
        """The units with these ids in these scopes and states."""
        with self._lock:
            indexed = self._index.of(unit_ids, scope_keys, states=states) if self._index is not None else []
            return self._tail.of(unit_ids, scope_keys, states=states) + self._not_in_tail(indexed)

    def _not_in_tail(self, sketches: Sequence[Sketch]) -> list[Sketch]:
        """The sketches without those that the tail has in a newer version."""
        return [sketch for sketch in sketches if sketch.id not in self._tail]

    def coherence(self, project: str) -> float:
        """How much neighbouring turns in this project's sessions count for each other, from 0 to 1."""
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
        """How many units are not indexed yet."""
        position = self._indexed_position()
        return self._store.read(lambda reader: reader.searchable_count_after(position))

    def _indexed_position(self) -> int:
        """How far the index has read the log. Falls back to the shared index, or to none, if it can't be opened."""
        try:
            return self._index.position() if self._index is not None else 0
        except StoreUnavailable:
            if self._index is self._shared:
                raise  # The store is away too.
            self._index, self._local = self._shared, None
            return self._indexed_position()

    # Following the store

    def newest(self, reader: Reader) -> Newest | None:
        """The newest changes for `catch_up`, read in a transaction that is already open."""
        position = self._tail.position
        return (position, reader.searchable_after(position, _TAIL_PAGE)) if self._started else None

    def catch_up(self, newest: Newest | None = None) -> None:
        """Read the changes since the last call. Runs before each question."""
        with self._lock:
            if self._epoch != self._store.epoch:
                self._epoch = self._store.epoch
                self._started = False
                if self._index is not None:
                    self._index.refresh()
            # If this or another process discarded the index and started a new one, the tail restarts too.
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
        """Notes for the answer on how the search ran."""
        return (IN_DATABASE,) if self._is_shared() else ()

    def _is_shared(self) -> bool:
        return self._index is self._shared and bool(self._indexed_position())

    def _wants_local(self) -> bool:
        """Whether to build an index on this machine. A process with a single question ends before it is built."""
        return self._questions > 1 and self._local is not None and self._is_shared()

    def _choose(self) -> None:
        """Use this machine's index if it has read at least as far as the shared one."""
        local = self._local
        if self._shared is not None and local is not None and local.exists():
            try:
                self._index = local if local.position() >= self._shared.position() else self._shared
            except StoreUnavailable:
                self._local = None

    def _begin(self) -> None:
        """Start a tail where the index ends. A lost index is rebuilt first, since a tail of all units costs more."""
        self._choose()
        self._new_tail(self._indexed_position())
        self._started = True
        # Don't wait for this process's indexing thread: it needs the lock that is held here.
        if self._indexing is None and self._index is not None and self._store.writable and self.pending() > _TAIL_MAX:
            try:
                self.index_patiently(min(_INDEXING_WAIT_S_MAX, self._rules.lock_wait_s_max), rebuild=False)
            except StoreUnavailable:
                return  # Another process still holds the index, so the tail takes all changes.

    def _new_tail(self, position: int) -> None:
        self._tail = Tail(position)
        self._base = position

    def _read_tail(self, newest: Newest | None = None) -> None:
        """Add the changes since the last read to the tail."""
        try:
            page: Iterable[Searchable] | None = None
            if newest is not None and newest[0] == self._tail.position and len(newest[1]) < _TAIL_PAGE:
                page = newest[1]
            for unit in self._changes_after(self._tail.position) if page is None else page:
                self._tail.add(unit)
        except BaseException:
            self.forget_tail()  # An interrupt may have left a unit half added.
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
            # The interpreter is shutting down and starts no threads. The tail still answers.
            self._indexing = None

    def _index_if_possible(self) -> None:
        """Index, or leave the units in the tail, which finds them too. `reindex` reports the error."""
        try:
            # Index first: finding duplicates takes a minute in a long tail, and several in the database.
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
        """Update or rebuild the index. False if there is none or another process is doing it."""
        if self._index is None:
            return False
        if self._checked_position is None:
            self._checked_position = self._indexed_position()
        # The index may be fed by a replica that is behind. The tail is read from the primary.
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
        """The shared index, and this machine's index if this process can use it."""
        local = self._local
        if local is not None and self._index is not local and not self._wants_local():
            local = local if rebuild and local.exists() else None
        return [index for index in (self._shared, local) if index is not None]

    def index_patiently(
        self, wait_s_max: float, progress: Callable[[int], None] | None = None, *, rebuild: bool = True
    ) -> None:
        """Rebuild or update the index. If another process is doing it, wait for that process."""
        self.wait()
        self._indexed_position()
        deadline = time.monotonic() + wait_s_max
        while self._index is not None and not self.index_now(rebuild=rebuild, progress=progress):
            if time.monotonic() > deadline:
                raise StoreUnavailable("Another process is indexing.", hint="Wait for it, then call again.")
            time.sleep(_NAP_S)

    def wait(self) -> None:
        """Wait until a background indexing has ended. The indexing thread itself may call this."""
        from threading import current_thread

        with self._lock:
            thread = self._indexing
        if thread is not None and thread is not current_thread():
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

            self._indexing = current_thread()  # Keeps the reads below from starting a background run.
            self._index_if_possible()
        for index in (self._local, self._shared):
            if index is not None:
                index.close()

"""Candidates for a question: the index for what is old, the tail for what is new, one exact score over both."""

from __future__ import annotations

import time
from _thread import RLock  # as threading has it, which is a millisecond more to load
from math import log

from mnemon.errors import StoreUnavailable
from mnemon.model.value import value
from mnemon.recall.tail import Tail, bm25, frequencies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from threading import Thread
    from typing import Any

    from mnemon.config import StoreRules
    from mnemon.model.unit import Searchable, Unit
    from mnemon.ports import SearchIndex, Store

_TAIL_PAGE = 2_000
_REMEMBERED_MAX = 4_096
_NAP_S = 0.05


@value
class Candidate:
    """A unit that shares words with the question, and how well (BM25)."""

    unit: Unit
    lexical: float


class Finder:
    """Searches one store. Safe to share between threads."""

    def __init__(self, store: Store, index: SearchIndex | None, rules: StoreRules) -> None:
        self._store = store
        self._index = index
        self._rules = rules
        self._tail = Tail()
        self._lock = RLock()
        self._indexing: Thread | None = None
        self._counted: dict[str, dict[str, int]] = {}
        self._started = False
        self._base = 0

    def candidates(
        self,
        words: Sequence[str],
        scope_keys: Sequence[str],
        *,
        states: Sequence[str],
        limit: int,
        kinds: Sequence[str] = (),
        domains: Sequence[str] = (),
    ) -> list[Candidate]:
        """The best units for these words, best first; the same whatever part of them is indexed already."""
        if not words or limit <= 0:
            return []
        with self._lock:
            self._catch_up()
            weights, mean = self._weighted(words)
            within: dict[str, Any] = {"states": states, "kinds": kinds, "domains": domains, "limit": limit}
            scores = {unit_id: score for score, unit_id in self._tail.best(weights, mean, scope_keys, **within)}
            indexed = self._index.search(words, scope_keys, **within) if self._index is not None else []
            fresh = [unit_id for unit_id in indexed if unit_id not in self._tail]
            units = self._store.read(lambda reader: reader.units([*scores, *fresh]))
            for unit_id in fresh:
                if unit_id in units:
                    counted = self._frequencies(units[unit_id])
                    scores[unit_id] = bm25(counted, sum(counted.values()), weights, mean)
        found = [
            Candidate(unit=unit, lexical=scores[unit_id]) for unit_id, unit in units.items() if scores[unit_id] > 0
        ]
        return sorted(found, key=lambda candidate: (-candidate.lexical, candidate.unit.id))[:limit]

    def weighed(self, words: Sequence[str]) -> tuple[dict[str, float], float, int]:
        """The weight of each word, the mean length of a text, and the position up to which everything was looked at."""
        with self._lock:
            self._catch_up()
            return *self._weighted(words), self._tail.position

    def _weighted(self, words: Sequence[str]) -> tuple[dict[str, float], float]:
        """How telling each word is, and the mean length of a text, over the index and the tail together."""
        index, tail = self._index, self._tail
        indexed = index.documents() if index is not None else 0
        documents = len(tail) + indexed
        tokens = tail.total_tokens + (index.mean_tokens() * indexed if index is not None else 0.0)
        weights = {}
        for word in words:
            seen = min(documents, tail.frequency(word) + (index.frequency(word) if index is not None else 0))
            weights[word] = log(1 + (documents - seen + 0.5) / (seen + 0.5))
        return weights, max(1.0, tokens / max(1, documents))

    def _frequencies(self, unit: Unit) -> dict[str, int]:
        """A unit's token counts; its content never changes, so they can be kept."""
        known = self._counted.get(unit.id)
        if known is None or not unit.content:
            known = frequencies(unit.content)
            if len(self._counted) >= _REMEMBERED_MAX:
                self._counted.clear()
            self._counted[unit.id] = known
        return known

    # Following the store

    def _catch_up(self) -> None:
        # The index may have been thrown away and begun anew, here or elsewhere: then the tail begins anew with it.
        if not self._started or self._indexed_position() < self._base:
            self._tail = Tail()
            self._base = self._tail.position = self._indexed_position()
            self._started = True
        self._read_tail()
        if self._index is not None and len(self._tail) > self._rules.index_tail_max:
            self._index.refresh()
            if self._index.position() >= self._tail.position:
                self._forget_tail()
            elif self._indexing is None and self._store.writable:
                from threading import Thread

                self._indexing = Thread(target=self._index_in_background, name="mnemon-index", daemon=True)
                self._indexing.start()

    def _read_tail(self) -> None:
        """Take in what changed since the tail was last read."""
        for unit in self._changes_after(self._tail.position, None):
            self._tail.add(unit)

    def _forget_tail(self) -> None:
        """The index knows it all now: start a new tail at its position."""
        assert self._index is not None
        position = self._index.position()
        self._tail = Tail()
        self._base = self._tail.position = position

    def _index_in_background(self) -> None:
        try:
            self.index_now()
        finally:
            self._indexing = None

    def documents(self) -> int:
        """How many units are indexed."""
        self._indexed_position()
        return self._index.documents() if self._index is not None else 0

    def pending(self) -> int:
        """How many units the index does not know yet."""
        position = self._indexed_position()
        return self._store.read(lambda reader: reader.searchable_count_after(position))

    def _indexed_position(self) -> int:
        """How far the index has read. One that can't be opened or made is done without: the tail then holds it all."""
        try:
            return self._index.position() if self._index is not None else 0
        except StoreUnavailable:
            self._index = None
            return 0

    def index_now(self, *, rebuild: bool = False, progress: Callable[[int], None] | None = None) -> bool:
        """Bring the index up to date, or make it anew; False if another process is doing it or there is none."""
        if self._index is None:
            return False
        if not self._index.update(lambda position: self._changes_after(position, progress), rebuild=rebuild):
            return False
        with self._lock:
            self._index.refresh()
            self._forget_tail()
            self._read_tail()
        return True

    def _changes_after(self, position: int, progress: Callable[[int], None] | None) -> Iterator[Searchable]:
        done = 0
        while True:
            page = self._page_after(position)
            yield from page
            done += len(page)
            if progress is not None and page:
                progress(done)
            if len(page) < _TAIL_PAGE:
                return
            position = page[-1].changed_at

    def _page_after(self, position: int) -> list[Searchable]:
        return self._store.read(lambda reader: reader.searchable_after(position, _TAIL_PAGE))

    def index_patiently(self, wait_s_max: float, progress: Callable[[int], None] | None = None) -> None:
        """Make the index anew, waiting for another process that is at it."""
        self.wait()
        self._indexed_position()
        deadline = time.monotonic() + wait_s_max
        while self._index is not None and not self.index_now(rebuild=True, progress=progress):
            if time.monotonic() > deadline:
                raise StoreUnavailable("Another process is indexing.", hint="Wait for it, then call again.")
            time.sleep(_NAP_S)

    def forget_all(self) -> None:
        """Drop what is kept of units' texts: some of it was erased."""
        with self._lock:
            self._counted.clear()
            self._tail = Tail()
            self._started = False

    def wait(self) -> None:
        """Let a background indexing end."""
        thread = self._indexing
        if thread is not None:
            thread.join()

    def close(self) -> None:
        """Index a long tail before the process goes, so that the next one starts fast."""
        self.wait()
        has_index = self._index is not None
        if has_index and self._store.writable and self.pending() > self._rules.index_at_close_min:
            self.index_now()
        if self._index is not None:
            self._index.close()

"""Candidates for a question: the index for what is old, the tail for what is new, one exact score over both."""

from __future__ import annotations

import time
from _thread import RLock  # as threading has it, which is a millisecond more to load
from math import log

from mnemarch.errors import StoreUnavailable
from mnemarch.model.search import place
from mnemarch.recall.relevance import Term
from mnemarch.recall.tail import Tail
from mnemarch.text.coherence import weight_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from threading import Thread
    from typing import Any

    from mnemarch.log.act import Ledger
    from mnemarch.model.search import Sketch
    from mnemarch.model.unit import Searchable
    from mnemarch.ports import MeaningIndex, SearchIndex

_TAIL_PAGE = 2_000
_TAIL_MAX = 5_000
_NAP_S = 0.05
# More new units than this are an import.
_CHECKED_MAX = 1_000
# A word that is in so many texts finds nothing among rarer ones, and costs a look at each of them.
_COMMON_MIN = 20_000
_SEARCHED_MIN = 3
# So many events later the vectors are brought up to date in the background.
_FOLLOWED_EVERY = 64
# An index that has seen so many neighbours knows; before, the tail has a say.
_PAIRS_ENOUGH = 256
# A word that nobody wrote: so many that begin like it stand for it, and count for so much.
_GUESSES_MAX = 20
_BEGINNING_MIN = 4
_BEGINNINGS = (0.7, 0.5)
_LONG_WORD_MIN = 5
_OF_A_GUESS = 0.7


def _rarity(seen: int, documents: int) -> float:
    return log(1 + (documents - seen + 0.5) / (seen + 0.5))


def _is_long_word(word: str) -> bool:
    return len(word) >= _LONG_WORD_MIN and word.isascii() and word.isalpha()


class Finder:
    """Searches one store. Safe to share between threads."""

    def __init__(self, log: Ledger, index: SearchIndex | None, meanings: MeaningIndex | None = None) -> None:
        self._log = log
        self._store = log.store
        self._index = index
        self._meanings = meanings
        self._followed = 0
        self._questions = 0
        self._rules = log.config.store
        self._checked_position: int | None = None
        self._tail = Tail()
        self._lock = RLock()
        self._indexing: Thread | None = None
        self._started = False
        self._base = 0
        self._coherence = 0.0
        self._frequencies: dict[tuple[str, ...], int] = {}
        self._coherence_of: tuple[str, int] | None = None

    def catch_up(self) -> None:
        """See what was written since; to be called before a question is looked up."""
        with self._lock:
            self._catch_up()
            self._frequencies.clear()

    def best(
        self,
        weights: Mapping[str, float],
        scope_keys: Sequence[str],
        *,
        states: Sequence[str],
        limit: int,
        kinds: Sequence[str] = (),
        domains: Sequence[str] = (),
    ) -> list[tuple[float, Sketch]]:
        """The best units for weighted words by BM25, best first; the same whatever part of them is indexed already."""
        if not weights or limit <= 0:
            return []
        with self._lock:
            weighed, mean = self._weighed(weights, scope_keys)
            searched = self._searched(weights, scope_keys)
            within: dict[str, Any] = {"states": states, "kinds": kinds, "domains": domains, "limit": limit}
            found = self._tail.best({word: weighed[word] for word in searched}, mean, scope_keys, **within)
            if self._index is not None:
                indexed = self._index.search(searched, scope_keys, **within)
                found += [(score, sketch) for score, sketch in indexed if sketch.id not in self._tail]
        found.sort(key=lambda item: (-item[0], item[1].id))
        return found[:limit]

    def around(
        self, sketches: Sequence[Sketch], hops: int, scope_keys: Sequence[str], *, states: Sequence[str]
    ) -> list[Sketch]:
        """What stands up to `hops` turns before and after these in their sessions."""
        known = {sketch.place for sketch in sketches}
        wanted = {
            place(sketch.session, turn): None
            for sketch in sketches
            if sketch.session
            for turn in range(max(1, sketch.turn - hops), sketch.turn + hops + 1)
        }
        places = [each for each in wanted if each not in known]
        with self._lock:
            found = self._tail.at(places, scope_keys, states=states)
            if self._index is not None and places:
                indexed = self._index.at(places, scope_keys, states=states)
                found += [sketch for sketch in indexed if sketch.id not in self._tail]
        return found

    def of(self, unit_ids: Sequence[str], scope_keys: Sequence[str], *, states: Sequence[str]) -> list[Sketch]:
        """These units, if they are of these scopes and states."""
        with self._lock:
            found = self._tail.of(unit_ids, scope_keys, states=states)
            if self._index is not None:
                indexed = self._index.of(unit_ids, scope_keys, states=states)
                found += [sketch for sketch in indexed if sketch.id not in self._tail]
        return found

    def nearest(self, text: str, scope_keys: Sequence[str], **within: Any) -> dict[str, float]:
        """The units nearest in meaning, if there are vectors to tell by; else their making begins.

        Not at the first question: a process that asks only one is gone before a model is loaded.
        """
        meanings = self._meanings
        if meanings is None:
            return {}
        self._questions += 1
        if not meanings.ready():
            if self._questions > 1:
                meanings.follow(*self._followed_log())
            return {}
        if self._store.read(lambda reader: reader.position()) - self._followed > _FOLLOWED_EVERY:
            self._followed = self._store.read(lambda reader: reader.position())
            meanings.follow(*self._followed_log())
        return dict(meanings.nearest(text, scope_keys, **within))

    def similarities(self, text: str, sketches: Sequence[Sketch]) -> dict[str, float]:
        meanings = self._meanings
        if meanings is None or not meanings.ready():
            return {}
        return meanings.similarities(text, [sketch.id for sketch in sketches])

    def embed_all(self) -> None:
        """Bring the vectors up to date and load the model, here and now."""
        if self._meanings is not None:
            self._meanings.catch_up(*self._followed_log())
            self._meanings.warm()

    def _followed_log(self) -> tuple[Callable[[int], Iterator[Searchable]], Callable[[], int]]:
        changes = lambda position: self._changes_after(position, None)  # noqa: E731
        return changes, lambda: self._store.read(lambda reader: reader.position())

    def terms(self, weights: Mapping[str, float], scope_keys: Sequence[str], *, spelling: bool) -> list[Term]:
        """Each word of a question with its weight in these scopes: rare words tell more. One that nobody wrote there
        stands for those that begin like it."""
        with self._lock:
            documents = self._documents_in(scope_keys)
            found = []
            for word, weight in weights.items():
                words = [word]
                if spelling and not self._frequency(word, scope_keys) and _is_long_word(word):
                    words = self._guesses(word, scope_keys)
                    weight *= _OF_A_GUESS
                seen = min(documents, sum([self._frequency(each, scope_keys) for each in words]))
                if seen:
                    found.append(Term(words, weight, _rarity(seen, documents)))
            return found

    def weighed(self, words: Sequence[str], scope_keys: Sequence[str]) -> tuple[dict[str, float], float]:
        """The weight of each word in these scopes, and the mean length of a text."""
        with self._lock:
            return self._weighed(dict.fromkeys(words, 1.0), scope_keys)

    def coherence(self, project: str) -> float:
        """How far neighbours in this project's sessions may speak for each other, from 0 to 1."""
        with self._lock:
            indexed = self._index.coherence().get(project) if self._index is not None else None
            if indexed is not None and indexed[2] >= _PAIRS_ENOUGH:
                return weight_of(indexed)
            if self._coherence_of != (project, self._tail.position):
                known = {} if indexed is None else {project: indexed}
                self._coherence = weight_of(self._tail.coherence.sums(known).get(project))
                self._coherence_of = (project, self._tail.position)
            return self._coherence

    def _weighed(self, weights: Mapping[str, float], scope_keys: Sequence[str]) -> tuple[dict[str, float], float]:
        documents = self._documents_in(scope_keys)
        rarities = {
            word: weight * _rarity(min(documents, self._frequency(word, scope_keys)), documents)
            for word, weight in weights.items()
        }
        return rarities, self._mean_length()

    def _searched(self, weights: Mapping[str, float], scope_keys: Sequence[str]) -> dict[str, float]:
        """What is searched for: not what is in thousands of texts, as long as enough else is asked."""
        seen = {word: self._frequency(word, scope_keys) for word in weights}
        rare = {word: weight for word, weight in weights.items() if seen[word] < _COMMON_MIN}
        if len(rare) >= min(_SEARCHED_MIN, len(weights)):
            return rare
        # What is in every other text tells nothing beside any word at all that is in fewer.
        half = max(_COMMON_MIN, self._documents_in(scope_keys) // 2)
        telling = {word: weight for word, weight in weights.items() if seen[word] < half}
        return telling if any(seen[word] for word in telling) else dict(weights)

    def _documents_in(self, scope_keys: Sequence[str]) -> int:
        indexed = self._index.documents_in(scope_keys) if self._index is not None else 0
        return self._tail.documents_in(scope_keys) + indexed

    def _mean_length(self) -> float:
        """The mean length of a text, over the index and the tail together."""
        indexed = self._index.documents() if self._index is not None else 0
        length = self._tail.total_length + (self._index.mean_length() * indexed if self._index is not None else 0.0)
        return max(1.0, length / max(1, len(self._tail) + indexed))

    def _frequency(self, word: str, scope_keys: Sequence[str]) -> int:
        # One question asks for the same few words again and again.
        asked = (word, *scope_keys)
        known = self._frequencies.get(asked)
        if known is None:
            indexed = self._index.frequency(word, scope_keys) if self._index is not None else 0
            known = self._frequencies[asked] = self._tail.frequency(word, scope_keys) + indexed
        return known

    def _guesses(self, word: str, scope_keys: Sequence[str]) -> list[str]:
        """Words that begin like one that nobody wrote: as much of it as some word has, but not less than half."""
        for share in _BEGINNINGS:
            beginning = word[: max(_BEGINNING_MIN, round(share * len(word)))]
            found = self._tail.words_from(beginning, scope_keys, _GUESSES_MAX)
            if self._index is not None:
                found += self._index.words_from(beginning, scope_keys, _GUESSES_MAX)
            if found:
                return list(dict.fromkeys(found))[:_GUESSES_MAX]
        return []

    # Following the store

    def _catch_up(self) -> None:
        # The index may have been thrown away and begun anew, here or elsewhere: then the tail begins anew with it.
        if not self._started or self._indexed_position() < self._base:
            self._begin()
        self._read_tail()
        if self._index is not None and len(self._tail) > self._rules.index_tail_max:
            self._index.refresh()
            if self._index.position() >= self._tail.position:
                self._forget_tail()
            elif self._indexing is None and self._store.writable:
                self._begin_indexing()

    def _begin_indexing(self) -> None:
        from threading import Thread

        self._indexing = Thread(target=self._index_in_background, name="mnemarch-index", daemon=True)
        try:
            self._indexing.start()
        except RuntimeError:
            # No thread is to be had, as at the end of the process: the tail answers, and the next question tries again.
            self._indexing = None

    def _begin(self) -> None:
        """Start a tail where the index ends. An index that was lost is made first: a tail of everything costs more."""
        self._tail = Tail()
        self._base = self._tail.position = self._indexed_position()
        self._started = True
        # A thread of our own that is at it needs the lock we hold: it is not waited for.
        if self._indexing is None and self._index is not None and self._store.writable and self.pending() > _TAIL_MAX:
            try:
                self.index_patiently(self._rules.lock_wait_s_max, rebuild=False)
            except StoreUnavailable:
                return  # Somebody holds the index for so long: the tail takes it all.

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
            self._index_if_possible()
        finally:
            self._indexing = None

    def _index_if_possible(self) -> None:
        """What can't be indexed now stays in the tail, where it is found; `reindex` says what is wrong."""
        try:
            self.link_duplicates()
            self.index_now()
        except StoreUnavailable:
            return

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

    def link_duplicates(self) -> None:
        """Check the units that came since the last check, or since the index was last written, for near-duplicates.

        Of a long tail only the newest are checked: an import is no conversation.
        """
        if not self._store.writable:
            return
        self.catch_up()
        with self._lock:
            position = self._indexed_position() if self._checked_position is None else self._checked_position
            head = self._tail.position
        if head <= position:
            return
        from mnemarch.recall.duplicates import link_duplicates

        changed = [unit.id for unit in self._changes_after(position, None)]
        link_duplicates(self._log, self, changed[-_CHECKED_MAX:])
        self._checked_position = head

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

    def index_patiently(
        self, wait_s_max: float, progress: Callable[[int], None] | None = None, *, rebuild: bool = True
    ) -> None:
        """Make the index anew, or bring it up to date, waiting for another process that is at it."""
        self.wait()
        self._indexed_position()
        deadline = time.monotonic() + wait_s_max
        while self._index is not None and not self.index_now(rebuild=rebuild, progress=progress):
            if time.monotonic() > deadline:
                raise StoreUnavailable("Another process is indexing.", hint="Wait for it, then call again.")
            time.sleep(_NAP_S)

    def forget_all(self, unit_ids: Sequence[str] = ()) -> None:
        """Drop what is kept of units' texts, and the vectors of these: they were erased."""
        if self._meanings is not None:
            self._meanings.erase(unit_ids)
        with self._lock:
            self._tail = Tail()
            self._started = False

    def wait(self) -> None:
        """Let a background indexing end."""
        with self._lock:
            thread = self._indexing
        if thread is not None:
            thread.join()

    def close(self) -> None:
        """Index a long tail before the process goes, so that the next one starts fast."""
        self.wait()
        has_index = self._index is not None
        if has_index and self._store.writable and self.pending() > self._rules.index_at_close_min:
            self._index_if_possible()
        if self._index is not None:
            self._index.close()
        if self._meanings is not None:
            self._meanings.close()

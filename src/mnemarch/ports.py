"""The interfaces of stores and indexes. Only type checkers read this file, so it costs no start-up time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mnemarch.embedding.dense import OnnxReranker
    from mnemarch.embedding.dense_search import DenseSearch
    from mnemarch.model.event import Event
    from mnemarch.model.search import Sketch, Sums
    from mnemarch.model.unit import Searchable
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.stores.sql.transaction import Transaction

    # There is one search by meaning, over several stores of vectors, and one reranker.
    MeaningIndex = DenseSearch
    Reranker = OnnxReranker

T = TypeVar("T")


class Store(Protocol):
    """The store: an append-only log and its projections. Transactions change both together, one at a time."""

    @property
    def id(self) -> str:
        """The permanent id of this store. A derived index of another store is not used."""

    @property
    def writable(self) -> bool: ...
    @property
    def format_version(self) -> int: ...
    @property
    def epoch(self) -> int:
        """A number that changes if events were inserted or removed, or a lost server came back. Then read anew."""

    @property
    def is_shared(self) -> bool:
        """Whether other clones of a repository write to it too."""

    @property
    def sees_all(self) -> bool:
        """Whether the user who opened it may read all streams."""

    @property
    def keeps_erased(self) -> str:
        """The places beyond this store that may still hold an erased text, in words. Empty if there are none."""

    def write(self, work: Callable[[Transaction], T], *, durable: bool = False, wait_s_max: float | None = None) -> T:
        """Run `work` alone among the writers of all processes, and commit. Any error rolls all of it back.

        A store of one stream (`Engine.of`) locks that stream, and then its org's stream if the work writes there.
        `work` may run in another thread, which commits for several: it must not wait for a lock that a writer may
        hold. It may run more than once, if a connection is lost: it must not keep state of an earlier attempt.
        A nested write raises RuntimeError: pass the open transaction on instead. Raises StoreUnavailable if the write
        can't begin within `wait_s_max`.
        """

    @property
    def append_entry(self) -> Callable[[Event, str, str], Event] | None:
        """Appends an event that has no effect and no key. None unless the store itself numbers and chains entries.

        The function takes the event, and its header before and after the number. It returns the placed event once
        it is durable.
        """

    def read(self, work: Callable[[Reader], T]) -> T:
        """Run `work` on one consistent snapshot."""

    def scrub(self, *, rewrite: bool = True) -> int:
        """Remove leftovers of deleted content from the store's files. Returns the number of files.

        Without `rewrite`, only the write-ahead log is emptied. Raises StoreUnavailable if that can't be guaranteed.
        """

    def backup(self, path: str) -> None:
        """Write a consistent copy to `path`, while others write."""

    def query(self, name: str, /, **parameters: Any) -> list[Any]:
        """The rows of one named query, on a snapshot of its own."""

    def check(self) -> str | None:
        """The damage that the storage engine finds in its file, or None."""

    def close(self) -> None:
        """Accept no more work. The resources of running reads are released when they end."""


class SearchIndex(Protocol):
    """A derived full-text index that lags behind the store by a known position."""

    def exists(self) -> bool:
        """Whether the index was ever begun."""

    def position(self) -> int:
        """The position up to which the index has every searchable change."""

    def documents(self) -> int: ...
    def mean_length(self) -> float: ...
    def coherence(self) -> Mapping[str, Sums]:
        """For each project, the sums of what neighbours and strangers in its sessions share (`text.conversation`)."""

    def words_from(self, beginning: str, scope_keys: Sequence[str], limit: int) -> list[str]:
        """The words of these scopes with this beginning, the most frequent of each scope first."""

    def frequencies(self, words: Sequence[str], scope_keys: Sequence[str]) -> dict[str, int]:
        """For each word, the number of documents of these scopes that contain it."""

    def documents_in(self, scope_keys: Sequence[str]) -> int: ...

    def search(
        self,
        weights: Mapping[str, float],
        scope_keys: Sequence[str],
        *,
        states: Sequence[str],
        kinds: Sequence[str] = (),
        domains: Sequence[str] = (),
        limit: int,
    ) -> list[tuple[float, Sketch]]:
        """The best documents of these scopes (kinds, domains) for weighted words, with their BM25, best first."""

    def at(self, places: Sequence[str], scope_keys: Sequence[str], *, states: Sequence[str]) -> list[Sketch]:
        """The documents at these turns of sessions (`Sketch.place`), in no order."""

    def of(self, unit_ids: Sequence[str], scope_keys: Sequence[str], *, states: Sequence[str]) -> list[Sketch]:
        """The documents of these units, in no order."""

    def update(self, changes_after: Callable[[int], Iterable[Searchable]], *, rebuild: bool = False) -> bool:
        """Index the changes after the index's position (`rebuild`: after 0). False if another process is indexing."""

    def refresh(self) -> None:
        """Load what other processes have indexed since."""

    def close(self) -> None: ...


class Vectors(Protocol):
    """The vectors of a store: where they are stored, and which model makes them, if any."""

    def search(self, *, begin: bool = False) -> MeaningIndex | None:
        """The configured search by meaning, or None if it is off. `begin` turns it on from now on."""

    def erase(self, unit_ids: Sequence[str]) -> None:
        """Remove the vectors of these units, even if no model is in use now."""

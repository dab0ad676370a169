"""What Mnemarch asks of its parts. Only type checkers read this file: it costs a running process nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mnemarch.model.event import Event
    from mnemarch.model.search import Sketch, Sums
    from mnemarch.model.unit import Searchable
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.stores.sql.transaction import Transaction

T = TypeVar("T")


class Store(Protocol):
    """The truth: an append-only log and its projections, changed together in transactions that queue."""

    @property
    def id(self) -> str:
        """Names this store for ever; a derived index that belongs to another store is not used."""

    @property
    def writable(self) -> bool: ...
    @property
    def format_version(self) -> int: ...
    @property
    def epoch(self) -> int:
        """Another number says that events were put in or taken out, or that a lost server came back: read anew."""

    @property
    def is_shared(self) -> bool:
        """Whether other clones of a repository write to it too."""

    @property
    def sees_all(self) -> bool:
        """Whether whoever opened it may look at all streams."""

    @property
    def keeps_erased(self) -> str:
        """Where an erased text may still be, out of this store's reach, in words; nothing if nowhere."""

    def write(self, work: Callable[[Transaction], T], *, durable: bool = False, wait_s_max: float | None = None) -> T:
        """Run `work` alone among all writers of all processes and commit; on any error nothing of it remains.

        A store of one stream (`Engine.of`) locks that stream, and its org's after it if the work writes there.
        It may run in another thread, one that commits for several, so it must not wait for a lock that a writer may
        hold; and more than once, if a connection is lost, so it must not keep what it learned in one attempt.
        A write inside a write is refused with RuntimeError: pass the open transaction on. With a `wait_s_max`
        it raises StoreUnavailable if its turn has not come by then.
        """

    @property
    def append_entry(self) -> Callable[[Event, str, str], Event] | None:
        """Adds an event without effect and key to its stream, if the store itself numbers and chains entries.

        It takes the event, and its header before and after its number; it gives the event in its place, once durable.
        """

    def read(self, work: Callable[[Reader], T]) -> T:
        """Run `work` on one consistent view."""

    def scrub(self, *, rewrite: bool = True) -> int:
        """Make sure that the files of the store hold nothing but what is stored; gives their number.

        Without `rewrite` only its write-ahead log is emptied. Raises StoreUnavailable whenever that can't be said.
        """

    def backup(self, path: str) -> None:
        """Write a consistent copy to `path` while others go on writing."""

    def query(self, name: str, /, **parameters: Any) -> list[Any]:
        """The rows of one named query, on a view of its own."""

    def check(self) -> str | None:
        """What the storage engine itself finds wrong with its file, or None."""

    def close(self) -> None:
        """Take no more work; what reads under way need is let go when they are done."""


class SearchIndex(Protocol):
    """A derived full-text index that lags behind the store by a known position."""

    def exists(self) -> bool:
        """Whether somebody began to make it."""

    def position(self) -> int:
        """Every searchable change up to here is in the index."""

    def documents(self) -> int: ...
    def mean_length(self) -> float: ...
    def coherence(self) -> Mapping[str, Sums]:
        """For each project, what neighbours and strangers in its sessions share (`text.coherence`)."""

    def words_from(self, beginning: str, scope_keys: Sequence[str], limit: int) -> list[str]:
        """Words of these scopes that begin so, the most frequent of each first."""

    def frequencies(self, words: Sequence[str], scope_keys: Sequence[str]) -> dict[str, int]:
        """In how many documents of these scopes each word occurs."""

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
        """What stands at these turns of sessions (`Sketch.place`), in no order."""

    def of(self, unit_ids: Sequence[str], scope_keys: Sequence[str], *, states: Sequence[str]) -> list[Sketch]:
        """The documents of these units, in no order."""

    def update(self, changes_after: Callable[[int], Iterable[Searchable]], *, rebuild: bool = False) -> bool:
        """Index what changed after the index's position (`rebuild`: after 0). False if another process is at it."""

    def refresh(self) -> None:
        """See what other processes have indexed since."""

    def close(self) -> None: ...


class MeaningIndex(Protocol):
    """Vectors of units by a sentence model, which lag behind the store and are not there at all at first."""

    def noise_for(self, text: str) -> float:
        """The cosine that unrelated texts reach with this question; what is not above it means nothing."""

    def ready(self) -> bool:
        """Whether all units up to some position have their vector."""

    def position(self) -> int:
        """How far the log has been followed."""

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
        """The units nearest in meaning, with their cosine, best first."""

    def similarities(self, text: str, unit_ids: Iterable[str]) -> dict[str, float]: ...
    def follow(self, changes_after: Callable[[int], Iterable[Searchable]], head: Callable[[], int]) -> None:
        """Catch up with the store in the background, unless that is going on."""

    def catch_up(self, changes_after: Callable[[int], Iterable[Searchable]], head: Callable[[], int]) -> object:
        """The same, here and now."""

    def count(self) -> int:
        """How many units have a vector."""

    def warm(self) -> None: ...
    def erase(self, unit_ids: Sequence[str]) -> None: ...
    def close(self) -> None: ...


class Vectors(Protocol):
    """Where the vectors of a store are kept, and by which model they are made, if any."""

    def search(self, *, begin: bool = False) -> MeaningIndex | None:
        """The search by meaning as it is configured; None if it takes no part. With `begin` it takes part from now."""

    def erase(self, unit_ids: Sequence[str]) -> None:
        """Remove the vectors of these units, also where no model is in use now."""


class Reranker(Protocol):
    """A model that reads a question and a text together. It orders the first candidates anew; see decision 45."""

    def scores(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """How well each text answers, the higher the better; fewer numbers than texts if time is up.

        Raises StoreUnavailable if the model can't be used: then the usual order stands, and the answer says so.
        """

"""What Mnemarch asks of its parts. Only type checkers read this file: it costs a running process nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from typing import Any

    from mnemarch.model.caller import Level, Stream
    from mnemarch.model.decision import Relation, Standing
    from mnemarch.model.event import Event, EventType
    from mnemarch.model.search import Sketch, Sums
    from mnemarch.model.unit import Kind, Link, LinkType, Searchable, Status, Unit, Use

T = TypeVar("T")


class Reader(Protocol):
    """A consistent view of the log and its projections."""

    # The log.
    def head(self, stream: Stream) -> tuple[int, bytes]:
        """The last sequence number and hash of a stream; (0, b"") before its first event."""

    def position(self) -> int:
        """The position of the newest event of all streams; positions follow commit order."""

    def heads(self) -> dict[Stream, tuple[int, bytes]]:
        """Every stream with its last sequence number and hash."""

    def event(self, event_id: str) -> Event | None: ...
    def event_for_key(self, scope_key: str, actor: str, key: str) -> Event | None: ...
    def events(self, *, after: int = 0, limit: int | None = None) -> Iterator[Event]:
        """Every event in commit order."""

    def events_of_scope(self, scope_key: str, types: Sequence[EventType] = ()) -> Iterator[Event]:
        """The events recorded from exactly this scope."""

    def events_of_subject(self, subject: str, *, after: int = 0, last: int | None = None) -> Iterator[Event]:
        """The events about one unit, ledger or graph after a position, oldest first; of them the newest `last`."""

    def events_containing(self, needle: str) -> Iterator[Event]:
        """The events whose payload holds this text: verbatim in any string, or in JSON inside a string."""

    # The projections.
    def unit(self, unit_id: str) -> Unit | None: ...
    def units(self, unit_ids: Iterable[str]) -> dict[str, Unit]: ...
    def units_in(
        self,
        scope_keys: Sequence[str],
        *,
        kind: Kind | None = None,
        status: Status | None = None,
        level: Level | None = None,
        domain: str | None = None,
        live: bool | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> list[Unit]:
        """Units of these scopes, newest first, older than the unit `before`."""

    def units_replaced(
        self, scope_keys: Sequence[str], *, kind: Kind | None, domain: str | None, limit: int
    ) -> list[Unit]:
        """Units of these scopes that a commit replaced, newest first, but no decisions."""

    def units_with_text(self, scope_keys: Sequence[str], canonical_key: str) -> list[Unit]:
        """Units of these scopes with this canonical key, live or not, oldest first."""

    def units_with_skeleton(self, scope_keys: Sequence[str], skeleton_key: str, limit: int) -> list[Unit]:
        """Live units of these scopes that differ from a text only in guarded pieces, newest first."""

    def units_citing(self, scope_keys: Sequence[str], kind: str, ref: str) -> list[Unit]: ...
    def units_citing_code(self, after: str, limit: int) -> list[Unit]:
        """Units that cite a file or a symbol, in every scope, in the order of their ids: for the janitor."""

    def units_of_kinds(self, kinds: Sequence[Kind]) -> Iterator[Unit]:
        """Every live unit of these kinds, in every scope: for the operator."""

    def searchable_after(self, position: int, limit: int) -> list[Searchable]:
        """What search must learn: units that changed after `position`, in order; all of the last position's."""

    def searchable_count_after(self, position: int) -> int: ...
    def link(self, link_id: str) -> Link | None: ...
    def links_of(self, unit_id: str) -> list[Link]: ...
    def open_links(self, scope_keys: Sequence[str], type: LinkType) -> list[Link]:
        """The undecided links whose sides are both live and in these scopes."""

    # Decisions.
    def decision_in_force(self, root: str) -> Unit | None:
        """The one version of a decision that holds."""

    def decision_versions(self, root: str) -> list[Unit]:
        """Every version, the first first: for who asks for its history, never on the way to what holds (D7)."""

    def decided(self, scope_key: str, domain: str, strength: int, *, after: str, limit: int) -> list[Unit]:
        """What is in force in one scope and domain with one strength, by id after `after`."""

    def domains_decided(self, scope_key: str) -> list[str]:
        """The domains of what is in force in one scope, in order, without a look at each decision."""

    def related(self, root: str, scope_keys: Sequence[str], *, limit: int) -> list[Unit]:
        """What is in force in these scopes and stands in a relation to a decision, the firmest first, then by root."""

    def anchored(self, scope_keys: Sequence[str], domains: Sequence[str], *, limit: int) -> list[Unit]:
        """What the live anchors of these scopes and domains lead to, if it is live and seen from there too.

        Decisions come first, the firmest of them before the others, then evidence; by id.
        """

    def relations_from(self, roots: Sequence[str]) -> list[Relation]: ...
    def relations_to(self, roots: Sequence[str]) -> list[Relation]: ...
    def test_passed(self, stream: Stream, name: str) -> bool: ...
    def use(self, unit_id: str, task_key: str) -> Use | None: ...
    def noted_uses(self, unit_ids: Sequence[str], task_key: str) -> set[str]:
        """Those of these units that the task was handed, used or was credited with."""

    def uses_of_task(self, task_key: str) -> list[Use]: ...
    def uses_of_unit(self, unit_id: str) -> list[Use]: ...
    def counts(self) -> dict[str, dict[str, int]]: ...
    def rows(self) -> Iterator[str]:
        """Every projection row in canonical form and order, the same on every store: what a digest is taken over."""


class Transaction(Reader, Protocol):
    """A reader that may also write; everything in it happens, or nothing."""

    def append(self, event: Event, hash: bytes) -> Event:
        """Add an event with its chain hash at the end of its stream; gives it placed (`Event.placed`)."""

    def erase_payload(self, event_id: str) -> None:
        """Remove payload and salt of an event for good; its hashes stay (R16)."""

    def put_unit(
        self,
        unit: Unit,
        *,
        canonical_key: str | None,
        skeleton_key: str | None,
        searchable_at: int | None,
        standing: Standing | None = None,
    ) -> None:
        """Insert or replace; `searchable_at` is the position of the change, or None if search need not see it.

        With a `standing` it is a version of a decision: the store itself refuses a second live one of the same root,
        and a second one of the same number.
        """

    def put_relation(self, relation: Relation) -> None:
        """Relate two decisions; of one that is said again, the id of the last event that said it is kept."""

    def drop_relation(self, source: str, type: str, target: str) -> None: ...
    def put_link(self, link: Link) -> None: ...
    def drop_link(self, link_id: str) -> None: ...
    def put_test(self, stream: Stream, name: str, passed: bool, at: datetime, event_id: str) -> None: ...
    def drop_tests(self, event_ids: Sequence[str]) -> None:
        """Forget the outcomes that these events recorded last."""

    def put_use(self, use: Use) -> None: ...
    def drop_uses(self, unit_id: str) -> None: ...
    def clear_projections(self) -> None: ...


class Store(Protocol):
    """The truth: an append-only log and its projections, changed together in transactions that queue."""

    @property
    def id(self) -> str:
        """Names this store for ever; a derived index that belongs to another store is not used."""

    @property
    def writable(self) -> bool: ...
    @property
    def format_version(self) -> int: ...
    def write(self, work: Callable[[Transaction], T], *, durable: bool = False) -> T:
        """Run `work` alone among all writers of all processes and commit; on any error nothing of it remains.

        It may run in another thread, one that commits for several, so it must not wait for a lock that a writer may
        hold. A write inside a write is refused with RuntimeError: pass the open transaction on.
        """

    def read(self, work: Callable[[Reader], T]) -> T:
        """Run `work` on one consistent view."""

    def scrub(self, needles: Sequence[str]) -> int:
        """Make sure that no file of the store still holds any of these texts; gives the number of files searched.

        Raises StoreUnavailable whenever that can't be said, also if there are no texts to look for.
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

    def position(self) -> int:
        """Every searchable change up to here is in the index."""

    def documents(self) -> int: ...
    def mean_length(self) -> float: ...
    def coherence(self) -> Mapping[str, Sums]:
        """For each project, what neighbours and strangers in its sessions share (`text.coherence`)."""

    def words_from(self, beginning: str, scope_keys: Sequence[str], limit: int) -> list[str]:
        """Words of these scopes that begin so, the most frequent of each first."""

    def frequency(self, word: str, scope_keys: Sequence[str]) -> int:
        """In how many documents of these scopes a word occurs."""

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

    def ready(self) -> bool:
        """Whether a question would be answered at once."""

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

    def warm(self) -> None: ...
    def erase(self, unit_ids: Sequence[str]) -> None: ...
    def close(self) -> None: ...

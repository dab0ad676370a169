"""Copies one store's log into another, with the same ids, hashes and salts.

A copy can be interrupted at any time. The target's content shows how far an earlier copy came.
"""

from __future__ import annotations

from mnemarch.errors import Conflict, InvalidInput, StoreCorrupt
from mnemarch.log.chain import problem_of
from mnemarch.log.merging import Merge, empty_payloads
from mnemarch.log.projection import begun, digest, keys_of, rebuild
from mnemarch.model.event import Event, EventType
from mnemarch.model.upkeep import Copied
from mnemarch.stores.sql.queries import DAMAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mnemarch.model.caller import Stream
    from mnemarch.ports import Store
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.stores.sql.transaction import Transaction

    Heads = dict[Stream, tuple[int, bytes]]

_PAGE = 1_000
_ALL = 1 << 62
_NOTHING = (0, b"")


class Copying:
    """One copy. `erased` are the units whose text the copied erasures removed from the target."""

    def __init__(self, source: Store, target: Store, progress: Callable[[int], None] | None) -> None:
        self._source, self._target, self._progress = source, target, progress
        self._heads: Heads = {}
        self._copied = 0
        self._merge: Merge | None = None
        self.erased: list[str] = []
        self.began_anew = False

    def run(self) -> Copied:
        """Copy the missing events, then compare both stores. Writers of the source are not blocked."""
        self._heads = self._target.read(lambda reader: reader.heads())
        known = sum(seq for seq, _ in self._heads.values())
        heads, expected = self._bring()
        is_same = self._is_same(heads, expected)
        if not is_same and any(stream.writer for stream in heads) and self._begin_anew():
            known = 0
            heads, expected = self._bring()
            is_same = self._is_same(heads, expected)
        if not is_same:
            raise StoreCorrupt(
                "The log was copied whole, but the rows of the source are not what its log says.",
                hint="Run mnemarch rebuild on the source, then copy again.",
            )
        now = self._source.read(lambda reader: reader.heads())
        return Copied(
            events=self._copied,
            skipped=known,
            streams=len(heads),
            digest=expected,
            behind=sum(seq for seq, _ in now.values()) - sum(seq for seq, _ in heads.values()),
        )

    def _bring(self) -> tuple[Heads, str]:
        """Copy the missing events. Returns the ends of the streams, and the digest that the target must have."""
        goal, after = self._source.read(self._beginning)
        # Each page is read on its own snapshot: a snapshot that stays open for long blocks the store's cleanup.
        while self._heads != goal and (page := self._page_after(after)):
            after = page[-1].position  # Read before `_take`: positions differ in the target.
            self._take(page, goal)
        return self._source.read(lambda reader: self._finish(reader, after))

    def _begin_anew(self) -> bool:
        """Empty the target, because the source now has events of other clones before the ones copied earlier.

        Returns whether the target could be emptied.
        """
        if not self._target.write(lambda transaction: transaction.clear_log(), durable=True):
            return False
        self._heads, self._copied, self._merge, self.began_anew = {}, 0, None, True
        return True

    def _page_after(self, position: int) -> list[Event]:
        return self._source.read(lambda reader: list(reader.events(after=position, limit=_PAGE)))

    def _beginning(self, reader: Reader) -> tuple[Heads, int]:
        """The ends of the source's streams, and the position before the first event that the target lacks."""
        goal = reader.heads()
        if not goal:
            raise InvalidInput("The source holds nothing.", hint="Check its name; nothing was copied.")
        return goal, self._before_missing(reader, goal)

    def _finish(self, reader: Reader, after: int) -> tuple[Heads, str]:
        """Copy events that arrived meanwhile, on one snapshot. Returns the ends and the digest of that snapshot."""
        goal = reader.heads()
        if goal != self._heads:
            missing = sum(seq - self._heads.get(stream, _NOTHING)[0] for stream, (seq, _) in goal.items())
            # A stream may have got an event at a position that the copy has passed already in another stream.
            is_all = missing == sum(event.seq > self._seq_of(event.stream) for event in reader.events(after=after))
            for page in _pages(reader, after if is_all else self._before_missing(reader, goal)):
                self._take(page, goal)
        return goal, digest(reader)

    def _seq_of(self, stream: Stream) -> int:
        return self._heads.get(stream, _NOTHING)[0]

    def _is_same(self, heads: Heads, expected: str) -> bool:
        """Whether the target has the expected projections, if needed after a rebuild. Raises if its log differs."""
        found, made = self._target.read(lambda reader: (reader.heads(), digest(reader)))
        if found != heads:
            raise _disturbed()
        return made == expected or self._target.write(rebuild, durable=True).digest_after == expected

    def _before_missing(self, reader: Reader, goal: Heads) -> int:
        """The position before the first event that the target lacks; raises if the target has events of its own."""
        if not self._heads:
            return 0
        for stream, (seq, _) in self._heads.items():
            if goal.get(stream, _NOTHING)[0] < seq:
                raise _other(stream, seq)
        before = _ALL
        for event in reader.events():
            seq, hash = self._heads.get(event.stream, _NOTHING)
            if event.seq > seq:
                before = min(before, event.position - 1)
            elif event.seq == seq and event.hash != hash:
                raise _other(event.stream, seq)
        return before

    def _take(self, page: Sequence[Event], goal: Mapping[Stream, tuple[int, bytes]]) -> None:
        """Store the events of a page that the target lacks, all or none."""
        heads, events = dict(self._heads), []
        for event in page:
            seq, previous = heads.get(event.stream, _NOTHING)
            if seq < event.seq <= goal.get(event.stream, _NOTHING)[0]:
                problem = problem_of(event, seq, previous)
                if problem is not None:
                    raise _damaged(event, problem)
                heads[event.stream] = (event.seq, event.hash)
                events.append(event)
                if event.type is EventType.UNIT_REMEMBERED and event.payload is not None:
                    keys_of(event.payload["unit"]["content"])  # Slow, so cached before the transaction.
        if events:
            stored = self._target.write(lambda transaction: self._stored(transaction, events), durable=True)
            self.erased += stored[0]
            self._merge = stored[1]
            self._heads = heads
            self._copied += len(events)
        if self._progress is not None:
            self._progress(self._copied)

    def _stored(self, transaction: Transaction, events: Sequence[Event]) -> tuple[list[str], Merge]:
        """Append and project events. Returns the units whose text was removed from the target, and the fold so far."""
        for stream in dict.fromkeys(event.stream for event in events):
            if transaction.head(stream) != self._heads.get(stream, _NOTHING):
                raise _disturbed()
        erased: list[str] = []
        merge = self._merge.on(transaction) if self._merge is not None else begun(transaction)
        for event in events:
            placed = transaction.append(event, event.hash)
            try:
                if placed.type is EventType.UNIT_ERASED:
                    erased += empty_payloads(transaction, placed)
                merge.project(placed)
            except DAMAGE as error:
                raise _damaged(event, f"it can't be applied: {error!r}") from None
        return erased, merge


def _pages(reader: Reader, after: int) -> Iterator[list[Event]]:
    while page := list(reader.events(after=after, limit=_PAGE)):
        after = page[-1].position
        yield page


_AUDIT = "See what is wrong there with: mnemarch audit"


def _other(stream: Stream, seq: int) -> Conflict:
    return Conflict(
        f"The target holds something else: {stream} goes on to #{seq} there, and the source has no such entry.",
        hint="Copy to an empty store. To bring one memory into another: mnemarch export, then mnemarch import.",
    )


def _disturbed() -> Conflict:
    return Conflict(
        "Somebody else writes to the target: it no longer is what was copied.",
        hint="Stop whoever writes there, and copy to an empty store.",
    )


def _damaged(event: Event, problem: str) -> StoreCorrupt:
    return StoreCorrupt(f"{event.stream} #{event.seq} of the source: {problem}.", hint=_AUDIT, event_id=event.id)

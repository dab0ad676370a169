"""Moves a log between stores: as a file of JSON lines, or straight into another store. Nothing of it is lost.

Every line of a file is checked. A copy keeps ids, hashes and salts, and can be interrupted at any time: the content of
the target shows how far it came.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, suppress

from mnemarch.errors import Conflict, Incompatible, InvalidInput, StoreCorrupt, StoreUnavailable
from mnemarch.files import PARTIAL_END, make_private
from mnemarch.log.chain import problem_of
from mnemarch.log.merging import Merge, empty_payloads
from mnemarch.log.projection import begun, digest, keys_of, rebuild
from mnemarch.log.untrusted import ABOUT_UNITS, MALFORMED, Reach, check_form, follows, reason_of, require
from mnemarch.model.caller import Actor, Scope, Stream
from mnemarch.model.event import Event, EventType
from mnemarch.model.outcome import Imported
from mnemarch.model.stamps import instant
from mnemarch.model.upkeep import Copied
from mnemarch.policy.admission import KEY_CHARS_MAX, checked_name
from mnemarch.stores.sql.queries import DAMAGE, event_columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from mnemarch.ports import Store
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.stores.sql.transaction import Transaction

    Heads = dict[Stream, tuple[int, bytes]]
    # Resolves what the writers of new events could not know of each other. Returns erased units that left traces.
    Settle = Callable[[Transaction, Sequence[Event]], list[str]]

EXPORT_VERSION = 2
_LINE_CHARS_MAX = 64 << 20
_TEXTS = ("org", "id", "type", "actor", "payload_hash", "hash", "writer", "clock")
_TEXTS_OR_NULL = ("project", "session", "subject", "key", "body", "salt")
_NUMBERS = ("seq", "occurred_at", "recorded_at")
_FIELDS = frozenset({*_TEXTS, *_TEXTS_OR_NULL, *_NUMBERS, "scope"})
_PAGE = 1_000
_ALL = 1 << 62
_NOTHING = (0, b"")


def export_file(store: Store, path: str, progress: Callable[[int], None] | None) -> int:
    """Write the log to a new file that only its owner may read. Returns the number of events."""
    partial = path + PARTIAL_END
    with _writing(path):
        make_private(partial, anew=True)
        try:
            with open(partial, "w", encoding="utf-8") as file:
                # A store would take an error of this file for its own.
                write = _writing(path)(file.write)
                count = store.read(lambda reader: write_export(reader, write, progress))
            os.replace(partial, path)
        finally:
            with suppress(FileNotFoundError):
                os.remove(partial)
    return count


@contextmanager
def _writing(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(f"{path} can't be written: {error.strerror}.", hint="Choose another place.") from None


def write_export(reader: Reader, write: Callable[[str], object], progress: Callable[[int], None] | None = None) -> int:
    """Write a header line, a line for each event in commit order, and a last line with their number and the heads."""
    write(json.dumps({"mnemarch": "export", "version": EXPORT_VERSION}) + "\n")
    count = 0
    for count, event in enumerate(reader.events(), start=1):
        write(json.dumps(_record(event), ensure_ascii=False) + "\n")
        if progress is not None and count % 1000 == 0:
            progress(count)
    write(json.dumps(_end(count, reader.heads())) + "\n")
    return count


def _end(count: int, heads: dict[Stream, tuple[int, bytes]]) -> dict[str, Any]:
    ends = [
        [stream.org, stream.project or "", seq, hash.hex(), *filter(None, [stream.writer])]
        for stream, (seq, hash) in heads.items()
    ]
    return {"mnemarch": "end", "events": count, "heads": sorted(ends)}


def restore(
    store: Store, path: str, bytes_max: int, settle: Settle, progress: Callable[[int], None] | None
) -> tuple[Imported, list[str]]:
    """Append the events of a file that are not here yet, all or none. Also returns the units that they erased.

    The whole file is checked before the first event is stored. Where this memory has also written to a project of the
    file, `settle` merges what both say.
    """
    events = store.read(lambda reader: ExportFile(path, bytes_max).checked(reader))
    _read_ahead([event for _, event in events])
    return store.write(lambda transaction: _appended(transaction, events, settle, progress), durable=True)


def _appended(
    transaction: Transaction,
    events: list[tuple[int, Event]],
    settle: Settle,
    progress: Callable[[int], None] | None,
) -> tuple[Imported, list[str]]:
    added: list[Event] = []
    erased: list[str] = []
    streams = {event.stream for _, event in events}
    merge = begun(transaction)
    written_here = {stream.shared for stream in transaction.heads() if stream not in streams}
    for number, event in events:
        if event.seq <= transaction.head(event.stream)[0]:
            continue
        try:
            erased += _taken(transaction, merge, event)
        except DAMAGE as error:
            raise _refused(number, f"event {event.id} can't be applied: {error!r}") from None
        added.append(event)
        if progress is not None and len(added) % 1000 == 0:
            progress(len(added))
    erased += settle(transaction, [event for event in added if event.stream.shared in written_here])
    return Imported(events=len(added), skipped=len(events) - len(added), streams=len(streams)), erased


def _read_ahead(events: Iterable[Event]) -> None:
    """Compute the keys of new texts, which is slow. They are cached, so that the transaction stays short."""
    for event in events:
        if event.type is EventType.UNIT_REMEMBERED and event.payload is not None:
            keys_of(event.payload["unit"]["content"])


def _taken(transaction: Transaction, merge: Merge, event: Event) -> list[str]:
    """Append an event of another store and project it. Returns the units whose text it removed here."""
    placed = transaction.append(event, event.hash)
    erased = empty_payloads(transaction, placed) if placed.type is EventType.UNIT_ERASED else []
    merge.project(placed)
    return erased


class ExportFile:
    """An export, read and checked line by line: its form, its chains, and what each event may touch.

    An event may only touch things of its own project or org that an earlier event of the same file made. So a file
    can't change anything that is stored already.
    """

    def __init__(self, path: str, bytes_max: int) -> None:
        self._path = path
        self._bytes_max = bytes_max
        self._heads: dict[Stream, tuple[int, bytes]] = {}
        self._reach = Reach()
        self._emptied: dict[str, int] = {}
        self._for_an_org: dict[str, int] = {}

    def events(self) -> Iterator[tuple[int, Event]]:
        """Each event with its line number, checked by itself and against earlier events."""
        try:
            if not os.path.isfile(self._path):
                raise OSError("it is not a file")
            with open(self._path, encoding="utf-8", newline="\n") as file:
                _check_header(file.readline(_LINE_CHARS_MAX))
                last = ""
                for number, line in enumerate(iter(lambda: file.readline(_LINE_CHARS_MAX), ""), start=2):
                    if last:
                        yield number - 1, self._next(number - 1, last)
                    last = line
                self._check_end(last)
        except (OSError, UnicodeDecodeError) as error:
            hint = "Give a file that `export` wrote."
            raise InvalidInput(f"{self._path!r} can't be read: {error}.", hint=hint) from None

    def checked(self, reader: Reader) -> list[tuple[int, Event]]:
        """The events. Raises unless all of them can be imported here."""
        events = []
        for number, event in self.events():
            self._check_here(number, event, reader)
            events.append((number, event))
        for link_id in self._reach.unseen_links:
            if any(self._reach.scope_of(unit_id) is None for unit_id in reader.units_of_link(link_id)):
                problem = f"The file changes link {link_id}, which is from elsewhere. Nothing was imported."
                raise InvalidInput(problem, hint="The file was changed; export it again.")
        here = [stream for stream in reader.heads() if stream not in self._heads]
        for org, number in self._for_an_org.items():
            if any(stream.org == org for stream in here):
                raise _refused(number, f"it changes something for the whole org {org}, which other projects here share")
        return events

    def _next(self, number: int, line: str) -> Event:
        event = _event(number, line, self._bytes_max)
        seq, previous = self._heads.get(event.stream, (0, b""))
        if not follows(event, seq, previous):
            raise _refused(number, f"event {event.id} does not fit the chain of {event.stream}")
        try:
            self._reach.take(event)
        except ValueError as error:
            raise _refused(number, f"event {event.id} ({event.type}): {error}") from None
        self._heads[event.stream] = (event.seq, event.hash)
        if event.type is EventType.UNIT_ERASED:
            for event_id in (event.payload or {}).get("events", ()):
                self._emptied.pop(event_id, None)
        if event.erased:
            if event.type is EventType.UNIT_ERASED:
                raise _refused(number, f"event {event.id} is an erasure without a payload")
            self._emptied[event.id] = number
        unit = self._reach.scope_of(event.subject or "")
        if unit is not None and unit.project is None and event.type in ABOUT_UNITS:
            self._for_an_org.setdefault(unit.org, number)
        return event

    def _check_end(self, line: str) -> None:
        try:
            end = json.loads(line or "{}")
        except (ValueError, RecursionError):
            end = {}
        if end != _end(len(self._reach), self._heads):
            raise InvalidInput(
                f"The file was cut: after {len(self._reach)} events, its last line is missing.",
                hint="Export again, or copy the whole file.",
            )
        for event_id, number in self._emptied.items():
            raise _refused(number, f"event {event_id} has no payload, and no erasure says so")

    def _check_here(self, number: int, event: Event, reader: Reader) -> None:
        here = reader.event(event.id)
        if (here is None and event.seq <= reader.head(event.stream)[0]) or (here and here.hash != event.hash):
            raise Conflict(
                f"Line {number}: {event.stream} #{event.seq} differs from what is here: the logs have diverged.",
                hint="Import into a new memory, or leave --restore out to take it as claims.",
            )
        is_born = event.type is EventType.UNIT_REMEMBERED and reader.unit(event.subject or "") is not None
        if here is None and is_born:
            raise Conflict(f"Line {number}: unit {event.subject} is here already.", hint="Import into a new memory.")
        other = next(reader.events_of_subject(event.subject or "", last=1), None) if here is None else None
        # Several writers may have written about one unit: the stream is that of their project.
        if other is not None and other.stream.shared not in {stream.shared for stream in self._heads}:
            raise _refused(number, f"event {event.id} is about {event.subject}, which belongs to {other.stream}")


def _refused(number: int, problem: str) -> InvalidInput:
    return InvalidInput(
        f"Line {number}: {problem}. Nothing was imported.", hint="The file was changed; export it again."
    )


def _check_header(line: str) -> None:
    try:
        header = json.loads(line)
        version = int(header["version"])
        known = header["mnemarch"] == "export"
    except (ValueError, KeyError, TypeError, RecursionError):
        known, version = False, 0
    if not known:
        raise InvalidInput("This is not a Mnemarch export.", hint="Import a file that mnemarch export wrote.")
    if version != EXPORT_VERSION:
        hint = "Upgrade Mnemarch." if version > EXPORT_VERSION else "Export it again with this version."
        raise Incompatible(f"The export has version {version}; this Mnemarch reads {EXPORT_VERSION}.", hint=hint)


def _record(event: Event) -> dict[str, Any]:
    stream, row = event.stream, event_columns(event)
    del row["scope_key"]
    row |= {"scope": event.scope.segments, "salt": event.salt and event.salt.hex()}
    row |= {"payload_hash": event.payload_hash.hex(), "hash": event.hash.hex()}
    of_writer = {"writer": stream.writer, "clock": event.clock} if stream.writer else {}
    return {"org": stream.org, "project": stream.project} | row | of_writer


def _event(number: int, line: str, bytes_max: int) -> Event:
    try:
        record = json.loads(line)
        of_writer = {"writer": "", "clock": ""} | record
        require(isinstance(record, dict) and set(of_writer) == _FIELDS, "it has other fields")
        record = of_writer
        for names, kinds in ((_TEXTS, (str,)), (_TEXTS_OR_NULL, (str, type(None))), (_NUMBERS, (int,))):
            wrong = [name for name in names if type(record[name]) not in kinds]
            require(not wrong, f"{', '.join(wrong)} is of a wrong type")
        event = Event(
            id=record["id"],
            stream=Stream(checked_name(record["org"], "an org"), record["project"], record["writer"]),
            seq=record["seq"],
            type=EventType(record["type"]),
            actor=Actor.parse(record["actor"]),
            scope=Scope.of(record["scope"]),
            session=record["session"],
            subject=record["subject"],
            key=record["key"] and checked_name(record["key"], "an idempotency key", KEY_CHARS_MAX),
            occurred_at=instant(record["occurred_at"]),
            recorded_at=instant(record["recorded_at"]),
            body=record["body"],
            salt=record["salt"] and bytes.fromhex(record["salt"]),
            payload_hash=bytes.fromhex(record["payload_hash"]),
            hash=bytes.fromhex(record["hash"]),
            clock=record["clock"],
        )
        check_form(event, bytes_max)
    except MALFORMED as error:
        raise _refused(number, f"this is not an event: {reason_of(error)}") from None
    return event


# Copying


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
                "The whole log was copied, but the rows of the source differ from its log.",
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
            raise InvalidInput("The source is empty.", hint="Nothing was copied. Check its name.")
        return goal, self._before_missing(reader, goal)

    def _finish(self, reader: Reader, after: int) -> tuple[Heads, str]:
        """Copy events that arrived meanwhile, on one snapshot. Returns the ends and the digest of that snapshot."""
        goal = reader.heads()
        if goal != self._heads:
            known = {stream: seq for stream, (seq, _) in self._heads.items()}
            missing = sum(seq - known.get(stream, 0) for stream, (seq, _) in goal.items())
            # A stream may have got an event at a position that the copy has passed already in another stream.
            is_all = missing == sum(event.seq > known.get(event.stream, 0) for event in reader.events(after=after))
            for page in _pages(reader, after if is_all else self._before_missing(reader, goal)):
                self._take(page, goal)
        return goal, digest(reader)

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
        _read_ahead(events)
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
            try:
                erased += _taken(transaction, merge, event)
            except DAMAGE as error:
                raise _damaged(event, f"it can't be applied: {error!r}") from None
        return erased, merge


def _pages(reader: Reader, after: int) -> Iterator[list[Event]]:
    while page := list(reader.events(after=after, limit=_PAGE)):
        after = page[-1].position
        yield page


def _other(stream: Stream, seq: int) -> Conflict:
    return Conflict(
        f"The target has something else: {stream} goes to #{seq} there, and the source has no such entry.",
        hint="Copy to an empty store. To bring one memory into another: mnemarch export, then mnemarch import.",
    )


def _disturbed() -> Conflict:
    return Conflict(
        "Somebody else wrote to the target: it differs from what was copied.",
        hint="Stop the other writer, and copy to an empty store.",
    )


def _damaged(event: Event, problem: str) -> StoreCorrupt:
    told = f"{event.stream} #{event.seq} of the source: {problem}."
    return StoreCorrupt(told, hint="To see what is wrong there: mnemarch audit", event_id=event.id)

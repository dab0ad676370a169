"""Exports the whole log as JSON lines, and imports it without loss. Every line of a file is checked."""

from __future__ import annotations

import json
import os
from contextlib import suppress

from mnemarch.errors import Conflict, Incompatible, InvalidInput, StoreUnavailable
from mnemarch.files import PARTIAL_END, make_private
from mnemarch.log.merging import empty_payloads
from mnemarch.log.projection import begun, keys_of
from mnemarch.log.untrusted import ABOUT_UNITS, MALFORMED, Reach, check_form, follows, problem_of, require
from mnemarch.model.caller import Actor, Scope, Stream
from mnemarch.model.event import Event, EventType
from mnemarch.model.outcome import Imported
from mnemarch.model.stamps import instant, micros
from mnemarch.policy.admission import KEY_CHARS_MAX, checked_name
from mnemarch.stores.sql.queries import DAMAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from mnemarch.ports import Store
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.stores.sql.transaction import Transaction

EXPORT_VERSION = 2
_LINE_CHARS_MAX = 64 << 20
_TEXTS = ("org", "id", "type", "actor", "payload_hash", "hash", "writer", "clock")
_TEXTS_OR_NULL = ("project", "session", "subject", "key", "body", "salt")
_NUMBERS = ("seq", "occurred_at", "recorded_at")


def export_file(store: Store, path: str, progress: Callable[[int], None] | None) -> int:
    """Write the log to a new file that only its owner may read. Returns the number of events."""
    partial = path + PARTIAL_END
    try:
        make_private(partial, anew=True)
        try:
            with open(partial, "w", encoding="utf-8") as file:
                count = store.read(lambda reader: write_export(reader, file.write, progress))
            os.replace(partial, path)
        finally:
            with suppress(FileNotFoundError):
                os.remove(partial)
    except OSError as error:
        raise StoreUnavailable(f"{path} can't be written: {error.strerror}.", hint="Choose another place.") from None
    return count


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
    store: Store, path: str, bytes_max: int, progress: Callable[[int], None] | None
) -> tuple[Imported, list[str]]:
    """Append the events of a file that are not here yet, all or none. Also returns the units that they erased.

    The whole file is checked before the first event is stored.
    """
    events = store.read(lambda reader: ExportFile(path, bytes_max).checked(reader))
    for _, event in events:
        if event.type is EventType.UNIT_REMEMBERED and event.payload is not None:
            keys_of(event.payload["unit"]["content"])  # Slow, so cached before the transaction.
    return store.write(lambda transaction: _appended(transaction, events, progress), durable=True)


def _appended(
    transaction: Transaction, events: list[tuple[int, Event]], progress: Callable[[int], None] | None
) -> tuple[Imported, list[str]]:
    added = 0
    erased: list[str] = []
    merge = begun(transaction)
    for number, event in events:
        if event.seq <= transaction.head(event.stream)[0]:
            continue
        placed = transaction.append(event, event.hash)
        if placed.type is EventType.UNIT_ERASED:
            erased += empty_payloads(transaction, placed)
        try:
            merge.project(placed)
        except DAMAGE as error:
            raise _refused(number, f"event {event.id} can't be applied: {error!r}") from None
        added += 1
        if progress is not None and added % 1000 == 0:
            progress(added)
    streams = len({event.stream for _, event in events})
    return Imported(events=added, skipped=len(events) - added, streams=streams), erased


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
                raise OSError("it is no file")
            with open(self._path, encoding="utf-8", newline="\n") as file:
                _check_header(file.readline(_LINE_CHARS_MAX))
                last = ""
                for number, line in enumerate(iter(lambda: file.readline(_LINE_CHARS_MAX), ""), start=2):
                    if last:
                        yield number - 1, self._next(number - 1, last)
                    last = line
                self._check_end(last)
        except (OSError, UnicodeDecodeError) as error:
            hint = "Give a file that export wrote."
            raise InvalidInput(f"{self._path!r} can't be read: {error}.", hint=hint) from None

    def checked(self, reader: Reader) -> list[tuple[int, Event]]:
        """The events. Raises unless all of them can be imported here."""
        events = []
        for number, event in self.events():
            self._check_here(number, event, reader)
            events.append((number, event))
        for link_id in self._reach.unseen_links:
            if any(self._reach.scope_of(unit_id) is None for unit_id in reader.units_of_link(link_id)):
                problem = f"The file changes link {link_id}, which is here and not of this file. Nothing was imported."
                raise InvalidInput(problem, hint="The file was changed; export it again.")
        here = [stream for stream in reader.heads() if stream not in self._heads]
        for org, number in self._for_an_org.items():
            if any(stream.org == org for stream in here):
                raise _refused(number, f"it says something for the whole org {org}, which other projects here share")
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
                f"The file was cut: after {len(self._reach)} events, its last line does not say that this is all.",
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
        if other is not None and other.stream not in self._heads:
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
        raise InvalidInput("This is no Mnemarch export.", hint="Import a file that mnemarch export wrote.")
    if version != EXPORT_VERSION:
        hint = "Upgrade Mnemarch." if version > EXPORT_VERSION else "Export it again with this version."
        raise Incompatible(f"The export has version {version}; this Mnemarch reads {EXPORT_VERSION}.", hint=hint)


def _record(event: Event) -> dict[str, Any]:
    return {
        "org": event.stream.org,
        "project": event.stream.project,
        "seq": event.seq,
        "id": event.id,
        "type": str(event.type),
        "actor": str(event.actor),
        "scope": event.scope.segments,
        "session": event.session,
        "subject": event.subject,
        "key": event.key,
        "occurred_at": micros(event.occurred_at),
        "recorded_at": micros(event.recorded_at),
        "body": event.body,
        "salt": event.salt and event.salt.hex(),
        "payload_hash": event.payload_hash.hex(),
        "hash": event.hash.hex(),
    } | ({"writer": event.stream.writer, "clock": event.clock} if event.stream.writer else {})


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
        raise _refused(number, f"this is no event: {problem_of(error)}") from None
    return event


_FIELDS = frozenset({*_TEXTS, *_TEXTS_OR_NULL, *_NUMBERS, "scope"})

"""The whole log as JSON lines, and back. Lossless: ids and hashes survive."""

from __future__ import annotations

import json
import os
from itertools import islice

from mnemarch.errors import Conflict, Incompatible, InvalidInput, StoreUnavailable
from mnemarch.files import PARTIAL_END, make_private
from mnemarch.log.chain import entry_hash, payload_hash
from mnemarch.log.projection import project
from mnemarch.model.caller import Actor, Scope, Stream
from mnemarch.model.event import Event, EventType
from mnemarch.model.outcome import Imported
from mnemarch.model.stamps import instant, micros

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from mnemarch.ports import Store
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.stores.sql.transaction import Transaction

EXPORT_VERSION = 1


def export_file(store: Store, path: str, progress: Callable[[int], None] | None) -> int:
    """Write the log to a new file, which only its owner may read; gives the number of events."""
    partial = path + PARTIAL_END
    try:
        make_private(partial, anew=True)
        try:
            with open(partial, "w", encoding="utf-8") as file:
                count = store.read(lambda reader: write_export(reader.events(), file.write, progress))
            os.replace(partial, path)
        except BaseException:
            os.remove(partial)
            raise
    except OSError as error:
        raise StoreUnavailable(f"{path} can't be written: {error.strerror}.", hint="Choose another place.") from None
    return count


def import_file(
    store: Store, path: str, batch_max: int, progress: Callable[[int], None] | None
) -> tuple[Imported, list[str]]:
    """Append the events of a file that are not here yet; also gives the units that they erased.

    The whole file is checked before the first event is stored.
    """
    try:
        with open(path, encoding="utf-8") as file:
            checked_header(file.readline())
            store.read(lambda reader: checked_export(enumerate(file, start=2), reader))
            file.seek(0)
            file.readline()
            return _import_lines(store, enumerate(file, start=2), batch_max, progress)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path!r} can't be read: {error}.", hint="Give a file that export wrote.") from None


def _import_lines(
    store: Store, lines: Iterator[tuple[int, str]], batch_max: int, progress: Callable[[int], None] | None
) -> tuple[Imported, list[str]]:
    events = skipped = streams = 0
    erased: list[str] = []
    while chunk := list(islice(lines, max(1, batch_max))):
        batch, gone = store.write(lambda transaction, chunk=chunk: import_batch(transaction, chunk))  # type: ignore[misc]
        events, skipped = events + batch.events, skipped + batch.skipped
        streams = max(streams, batch.streams)
        erased += gone
        if progress is not None:
            progress(events + skipped)
    return Imported(events=events, skipped=skipped, streams=streams), erased


def write_export(
    events: Iterable[Event], write: Callable[[str], object], progress: Callable[[int], None] | None = None
) -> int:
    """A header line, then one line an event, in commit order; gives the number of events."""
    write(json.dumps({"mnemarch": "export", "version": EXPORT_VERSION}) + "\n")
    count = 0
    for count, event in enumerate(events, start=1):
        write(json.dumps(_record(event), ensure_ascii=False) + "\n")
        if progress is not None and count % 1000 == 0:
            progress(count)
    return count


def checked_header(line: str) -> None:
    try:
        header = json.loads(line)
        version = int(header["version"])
        known = header["mnemarch"] == "export"
    except (ValueError, KeyError, TypeError):
        known, version = False, 0
    if not known:
        raise InvalidInput("This is no Mnemarch export.", hint="Import a file that mnemarch export wrote.")
    if version > EXPORT_VERSION:
        raise Incompatible(
            f"The export has version {version}; this Mnemarch reads {EXPORT_VERSION}.", hint="Upgrade Mnemarch."
        )


def checked_export(lines: Iterable[tuple[int, str]], reader: Reader) -> None:
    """Refuse an export of which any line can't be imported here, before the first is."""
    heads: dict[Stream, tuple[int, bytes]] = {}
    for number, line in lines:
        event = _event(number, line)
        before = heads.get(event.stream)
        if before is None and event.seq > 1:
            before = reader.head(event.stream)  # An export always begins at 1; what a person cut may go on from here.
        _check_place(number, event, before or (0, b""))
        here = reader.event(event.id)
        if (here is None and event.seq <= reader.head(event.stream)[0]) or (here and here.hash != event.hash):
            raise Conflict(
                f"Line {number}: {event.stream} #{event.seq} differs from what is here: the logs have diverged.",
                hint="Import into a new memory instead.",
            )
        heads[event.stream] = (event.seq, event.hash)


def _check_place(number: int, event: Event, before: tuple[int, bytes]) -> None:
    seq, previous = before
    body_ok = event.body is None or (
        event.salt is not None and payload_hash(event.salt, event.body.encode()) == event.payload_hash
    )
    if event.seq != seq + 1 or entry_hash(previous, event) != event.hash or not body_ok:
        raise InvalidInput(
            f"Line {number}: event {event.id} does not fit the chain of {event.stream}.",
            hint="The file was changed or cut; export again.",
        )


def import_batch(transaction: Transaction, lines: Iterable[tuple[int, str]]) -> tuple[Imported, list[str]]:
    """Append the events of these numbered lines and skip what is there; also gives the units that this erased here."""
    added = skipped = 0
    streams = set()
    erased: list[str] = []
    for number, line in lines:
        event = _event(number, line)
        streams.add(event.stream)
        head = transaction.head(event.stream)
        if event.seq <= head[0]:
            skipped += 1
            continue
        _check_place(number, event, head)
        placed = transaction.append(event, event.hash)
        if placed.type is EventType.UNIT_ERASED:
            erasure = placed.payload or {}
            erased += [record["id"] for record in erasure.get("units", ())]
            for event_id in erasure.get("events", ()):
                transaction.erase_payload(event_id)
        project(transaction, placed)
        added += 1
    return Imported(events=added, skipped=skipped, streams=len(streams)), erased


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
    }


def _event(number: int, line: str) -> Event:
    try:
        record = json.loads(line)
        texts = ("org", "id", "type", "actor", "payload_hash", "hash")
        maybe = ("project", "session", "subject", "key", "body", "salt")
        fits = (
            all(isinstance(record[name], str) for name in texts)
            and all(isinstance(record[name], str | None) for name in maybe)
            and all(type(record[name]) is int for name in ("seq", "occurred_at", "recorded_at"))
        )
        if not fits:
            raise TypeError("a field has a wrong type")
        (record["body"] or "").encode()
        return Event(
            id=record["id"],
            stream=Stream(record["org"], record["project"]),
            seq=record["seq"],
            type=EventType(record["type"]),
            actor=Actor.parse(record["actor"]),
            scope=Scope.of(record["scope"]),
            session=record["session"],
            subject=record["subject"],
            key=record["key"],
            occurred_at=instant(record["occurred_at"]),
            recorded_at=instant(record["recorded_at"]),
            body=record["body"],
            salt=record["salt"] and bytes.fromhex(record["salt"]),
            payload_hash=bytes.fromhex(record["payload_hash"]),
            hash=bytes.fromhex(record["hash"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, InvalidInput) as error:
        raise InvalidInput(
            f"Line {number} is no event: {error!r}.", hint="The file was changed; export again."
        ) from None

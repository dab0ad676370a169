"""Reads changes of the files, by a pull, a checkout or a killed process, into the SQLite file."""

from __future__ import annotations

import os

from mnemarch.model.event import EventType
from mnemarch.model.json_text import canonical_json, from_json
from mnemarch.stores.files.folder import AFTER_ALL_WRITERS, Broken, imported_after, lamport_of, seen_in, writer_of
from mnemarch.stores.sql.transaction import Transaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    from mnemarch.model.caller import Stream
    from mnemarch.model.event import Event
    from mnemarch.stores.files.folder import Folder
    from mnemarch.stores.sql.queries import Queries

    class Merging(Protocol):
        """How events from files are applied. `log.merging` implements it; stores must not import the log."""

        def fold(
            self, transaction: Transaction, entries: Sequence[tuple[str, Event]], *, whole: bool
        ) -> list[tuple[str, str]]:
            """Append and project them in order. Returns the refused entries: place and reason."""

        def settle(self, transaction: Transaction, news: Sequence[Event]) -> list[str]:
            """Resolve what concurrent writers could not know of each other. Returns erased units that left traces."""


_BEHIND = ("events", "streams", "journals", "clocks", "broken")


class FileTransaction(Transaction):
    """Writes in the name of this clone's writer, and records which events were erased."""

    def __init__(self, execute: Callable[..., Any], queries: Queries, integrity_error: type[Exception]) -> None:
        super().__init__(execute, queries, integrity_error)
        self.writer = ""
        self.erased: list[Event] = []
        self._clocks: dict[str, tuple[int, dict[str, int]]] | None = None

    def forget(self) -> None:
        super().forget()
        self._clocks = None

    @property
    def clocks(self) -> dict[str, tuple[int, dict[str, int]]]:
        """By writer: its last Lamport time, and the times of the other writers that it had seen."""
        if self._clocks is None:
            self._clocks = {writer: (lamport, from_json(seen)) for writer, lamport, seen in self.query("clocks")}
        return self._clocks

    @property
    def lamport(self) -> int:
        return max((lamport for lamport, _ in self.clocks.values()), default=0)

    def own(self, stream: Stream) -> tuple[Stream, str]:
        known = self.clocks.get(self.writer, (0, {}))[1]
        others = {writer: lamport for writer, (lamport, _) in self.clocks.items() if writer != self.writer}
        news = {writer: lamport for writer, lamport in others.items() if lamport > known.get(writer, 0)}
        stream = type(stream)(stream.org, stream.project, self.writer)
        return stream, canonical_json([self.lamport + 1, news])

    def next_number(self, stream: Stream) -> int:  # noqa: ARG002
        return self.lamport + 1

    def append(self, event: Event, hash: bytes) -> Event:
        placed = super().append(event, hash)
        if event.clock:
            writer = event.stream.writer
            seen = {**self.clocks.get(writer, (0, {}))[1], **seen_in(event.clock)}
            self.clocks[writer] = lamport_of(event.clock), seen
            lamport = self.clocks[writer][0]
            self.query("put_clock", writer=writer, lamport=lamport, seen=canonical_json(seen))
        return placed

    def clear_log(self) -> bool:
        return False  # The order of the files does not depend on the order of writing.

    def erase_payload(self, event_id: str) -> None:
        event = self.event(event_id)
        if event is not None and event.body is not None:
            self.erased.append(event)
        super().erase_payload(event_id)


class Follower:
    """Remembers what it read last. `erased` are the units that another clone erased."""

    def __init__(self, folder: Folder, merging: Merging) -> None:
        self.folder = folder
        self.merging = merging
        self.stamps: dict[str, str] = {}
        self.erased: list[str] = []

    def catch_up(self, transaction: FileTransaction, place: str) -> list[Event]:
        """Read what changed in the files. Returns the events of other clones."""
        known = {path: (size, digest, stamp) for path, size, digest, stamp in transaction.query("journals")}
        stamps = self.folder.stamps()
        changed = [path for path in sorted(stamps) if path not in known or known[path][2] != stamps[path]]
        self.stamps = stamps
        if not changed and known.keys() == stamps.keys():
            return []
        if self._mend(transaction, changed, place):
            stamps = self.stamps = self.folder.stamps()
        before = {id for (id,) in transaction.query("event_ids")}
        taken = self._read_on(transaction, stamps, known, changed) if known.keys() <= stamps.keys() else None
        if taken is None:
            taken = self._read_anew(transaction, stamps)
        if not before:
            return []  # For a new clone, nothing is news.
        news = [event for _, event in taken if event.id not in before]
        for event in news:
            if event.type is EventType.UNIT_ERASED:
                self.erased += [record["id"] for record in (event.payload or {}).get("units", ())]
        return news

    def _mend(self, transaction: FileTransaction, changed: Sequence[str], place: str) -> bool:
        """Cut off an incomplete line of a killed process of this folder. Nobody else is writing now."""
        own = {writer for writer, _ in transaction.query("own_writers", place=place)}
        is_mended = False
        for path in changed if self.folder.writable else ():
            size, _ = self.folder.measured(path)
            if writer_of(path) in own and size < os.stat(self.folder.at(path)).st_size:
                self.folder.cut(path, size)
                is_mended = True
        return is_mended

    def _read_on(
        self,
        transaction: FileTransaction,
        stamps: dict[str, str],
        known: dict[str, tuple[int, str, str]],
        changed: Sequence[str],
    ) -> list[tuple[str, Event]] | None:
        """Append new entries if their writer had seen everything that is here. Returns None if not."""
        if not known or transaction.query("broken").fetchone():
            return None
        fresh: list[tuple[str, Event]] = []
        for path in changed:
            size, digest, _ = known.get(path, (0, "", ""))
            try:
                if path not in stamps or self.folder.measured(path, size) != (size, digest):
                    return None
                fresh += self.folder.entries(path, size)
            except Broken:
                return None
        fresh.sort(key=_order)
        if not _follows(transaction, fresh) or self.merging.fold(transaction, fresh, whole=False):
            return None
        self._note_read(transaction, {path: stamps[path] for path in changed if path in stamps})
        return fresh

    def _read_anew(self, transaction: FileTransaction, stamps: dict[str, str]) -> list[tuple[str, Event]]:
        """Forget everything and read all files, in the order that is the same in every clone."""
        transaction.query("begin_epoch")
        for table in _BEHIND:
            transaction.query(f"clear_{table}")
        transaction.clear_projections()
        entries: list[tuple[str, Event]] = []
        problems: dict[str, tuple[str, ...]] = {}
        for path in sorted(stamps):
            writer = writer_of(path)
            try:
                entries += self.folder.entries(path) if writer not in problems else ()
            except Broken as broken:
                problems[writer] = broken.args
        entries.sort(key=_order)
        refused = self.merging.fold(transaction, entries, whole=True)
        for place, problem in (*problems.values(), *refused):
            transaction.query("put_broken", place=place, problem=problem)
        self._note_read(transaction, stamps)
        return entries

    def _note_read(self, transaction: FileTransaction, stamps: dict[str, str]) -> None:
        for path, stamp in stamps.items():
            size, digest = self.folder.measured(path)
            transaction.query("put_journal", path=path, size=size, digest=digest, stamp=stamp)


def _follows(transaction: FileTransaction, fresh: Sequence[tuple[str, Event]]) -> bool:
    """Whether the new entries come from one writer that had seen everything that is here."""
    if not fresh:
        return True
    first = fresh[0][1]
    seen = {**transaction.clocks.get(first.stream.writer, (0, {}))[1], **seen_in(first.clock)}
    is_one = all(event.stream.writer == first.stream.writer for _, event in fresh)
    others = {writer: time for writer, (time, _) in transaction.clocks.items() if writer != first.stream.writer}
    has_seen = all(seen.get(writer, 0) >= time for writer, time in others.items())
    return is_one and has_seen and lamport_of(first.clock) > transaction.lamport


def _order(entry: tuple[str, Event]) -> tuple[int, str]:
    place, event = entry
    if not event.stream.writer:
        return imported_after(place), AFTER_ALL_WRITERS
    return lamport_of(event.clock), event.stream.writer

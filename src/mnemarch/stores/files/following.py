"""Following the files: what a pull, a checkout or a killed process changed in them is read into the SQLite file."""

from __future__ import annotations

import os

from mnemarch.model.event import EventType
from mnemarch.stores.files import forms
from mnemarch.stores.files.folder import Broken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from mnemarch.model.event import Event
    from mnemarch.stores.files.folder import Folder
    from mnemarch.stores.files.forms import Entry
    from mnemarch.stores.files.transaction import FileTransaction
    from mnemarch.stores.sql.transaction import Transaction

    class Merging(Protocol):
        """What is done with events that came by files: `log.merging` has it, which this must not know."""

        def fold(self, transaction: Transaction, entries: Sequence[Entry], *, whole: bool) -> list[tuple[str, str]]:
            """Append and project them in order; gives what it refused: where it stands, and why."""

        def settle(self, transaction: Transaction, news: Sequence[Event]) -> list[str]:
            """See to what writers could not know of each other; gives the erased units that something was left of."""


_BEHIND = ("events", "streams", "journals", "clocks", "broken")


class Follower:
    """Knows what it read last; `erased` are units that an erasure of another clone took away."""

    def __init__(self, folder: Folder, merging: Merging) -> None:
        self.folder = folder
        self.merging = merging
        self.stamps: dict[str, str] = {}
        self.erased: list[str] = []

    def catch_up(self, transaction: FileTransaction, place: str) -> list[Event]:
        """Take in what changed in the files; gives what came from other clones."""
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
            return []  # To a new clone nothing is news.
        news = [entry.event for entry in taken if entry.event.id not in before]
        for event in news:
            if event.type is EventType.UNIT_ERASED:
                self.erased += [record["id"] for record in (event.payload or {}).get("units", ())]
        return news

    def _mend(self, transaction: FileTransaction, changed: Sequence[str], place: str) -> bool:
        """Cut off what a killed process of this folder left of a line; nobody else is writing now."""
        own = {writer for writer, _ in transaction.query("own_writers", place=place)}
        is_mended = False
        for path in changed if self.folder.writable else ():
            size, _ = self.folder.measured(path)
            if path.split("/")[1] in own and size < os.stat(self.folder.at(path)).st_size:
                self.folder.cut(path, size)
                is_mended = True
        return is_mended

    def _read_on(
        self,
        transaction: FileTransaction,
        stamps: dict[str, str],
        known: dict[str, tuple[int, str, str]],
        changed: Sequence[str],
    ) -> list[Entry] | None:
        """Append what was added to the files, if it comes after all that is here and its writer had seen that."""
        if not known or transaction.query("broken").fetchone():
            return None
        fresh: list[Entry] = []
        for path in changed:
            size, digest, _ = known.get(path, (0, "", ""))
            try:
                if not os.path.exists(self.folder.at(path)) or not self.folder.fits(path, size, digest):
                    return None
                fresh += self.folder.entries(path, size)
            except Broken:
                return None
        fresh.sort(key=lambda entry: entry.lamport)
        if not _follows(transaction, fresh) or self.merging.fold(transaction, fresh, whole=False):
            return None
        self._note_read(transaction, {path: stamps[path] for path in changed if path in stamps})
        return fresh

    def _read_anew(self, transaction: FileTransaction, stamps: dict[str, str]) -> list[Entry]:
        """Forget everything and read all files in the one order that every clone gives them."""
        transaction.query("begin_epoch")
        for table in _BEHIND:
            transaction.query(f"clear_{table}")
        transaction.clear_projections()
        entries: list[Entry] = []
        problems: dict[str, tuple[str, str]] = {}
        for path in sorted(stamps):
            writer = path.split("/")[1]
            try:
                entries += self.folder.entries(path) if writer not in problems else ()
            except Broken as broken:
                problems[writer] = broken.place, broken.problem
        entries.sort(key=lambda entry: (entry.lamport, entry.event.stream.writer))
        refused = self.merging.fold(transaction, entries, whole=True)
        for place, problem in (*problems.values(), *refused):
            transaction.query("put_broken", place=place, problem=problem)
        self._note_read(transaction, stamps)
        return entries

    def _note_read(self, transaction: FileTransaction, stamps: dict[str, str]) -> None:
        for path, stamp in stamps.items():
            size, digest = self.folder.measured(path)
            transaction.query("put_journal", path=path, size=size, digest=digest, stamp=stamp)


def _follows(transaction: FileTransaction, fresh: Sequence[Entry]) -> bool:
    """Whether new entries are of one writer, who had seen all that is here."""
    if not fresh:
        return True
    first = fresh[0].event
    seen = {**transaction.clocks.get(first.stream.writer, (0, {}))[1], **forms.seen_in(first.clock)}
    is_one = all(entry.event.stream.writer == first.stream.writer for entry in fresh)
    others = {writer: time for writer, (time, _) in transaction.clocks.items() if writer != first.stream.writer}
    has_seen = all(seen.get(writer, 0) >= time for writer, time in others.items())
    return is_one and has_seen and fresh[0].lamport > transaction.lamport

"""A store in files that git can merge. The files are the truth; a SQLite file that git ignores answers from them.

The store follows the files: a pull, a checkout or a killed process changes them, and the SQLite file catches up.
"""

from __future__ import annotations

import os
from contextlib import suppress

from mnemarch.errors import Incompatible, StoreCorrupt, StoreUnavailable
from mnemarch.forks import is_mine
from mnemarch.model.caller import DOCTOR, Stream
from mnemarch.model.event import Event, EventType
from mnemarch.model.json_text import canonical_json, from_json
from mnemarch.stores.files.folder import (
    AFTER_ALL_WRITERS,
    LOCAL,
    Broken,
    Folder,
    folded,
    imported_after,
    imported_path,
    lamport_of,
    line_of,
    log_path,
    payload_path,
    seen_in,
    writer_of,
)
from mnemarch.stores.sql.queries import Queries, named_queries
from mnemarch.stores.sql.transaction import Transaction
from mnemarch.stores.sqlite.store import SqliteStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol, TypeVar

    from mnemarch.stores.sql.reader import Reader

    T = TypeVar("T")

    class Merging(Protocol):
        """How events from files are applied. `services.merging` does it, which stores must not import."""

        def fold(
            self, transaction: Transaction, entries: Sequence[tuple[str, Event]], *, whole: bool
        ) -> list[tuple[str, str]]:
            """Append and project them in order. Returns the refused entries: place and reason."""

        def settle(self, transaction: Transaction, news: Sequence[Event]) -> list[str]:
            """Resolve what concurrent writers could not know of each other. Returns erased units that left traces."""


_BEHIND = ("events", "streams", "journals", "clocks", "broken")
_HERE = os.path.dirname(__file__)
_SHARED = ("../sql/queries.sql", "../sqlite/queries.sql", "queries.sql")
_WRITER_BYTES = 5
_CATCH_UP_S_MAX = 0.5
DATABASE = "memory.db"


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


class FileStore(SqliteStore):
    """One folder, many processes, many clones. Writers of one folder queue at the SQLite file; clones meet by git.

    Before each read and write it reads what a pull or a checkout changed. A write first appends to the files and then
    commits to SQLite. If the process is killed in between, the next one reads the appended lines.
    """

    is_shared = True
    keeps_erased = (
        "If it was ever committed, git's history still has the text, here and in every clone: commit this erasure, and"
        " rewrite the history (git filter-repo) if it must go there too"
    )
    queries = Queries(named_queries(*(os.path.join(_HERE, name) for name in _SHARED)))

    def __init__(self, folder: str, merging: Merging, *, local: str | None = None, **settings: Any) -> None:
        self.folder = Folder(folder)
        self._follower = Follower(self.folder, merging)
        self._seen: dict[str, str] | None = None
        self._open: FileTransaction | None = None
        self._begun_at = self._lamport_begun = 0
        self._is_durable = False
        # Called with the units that another clone erased; set by the owner of caches and indexes.
        self.on_erased: Callable[[Sequence[str]], object] | None = None
        try:
            self.folder.prepare()
        except OSError as error:
            raise _trouble(folder, error) from None
        path = os.path.join(local or self.folder.at(LOCAL), DATABASE)
        try:
            super().__init__(path, **settings)
        except (StoreCorrupt, Incompatible):
            # The database only holds what the files say, so it can be made again.
            for name in [name for name in os.listdir(os.path.dirname(path)) if name.startswith(DATABASE)]:
                os.remove(os.path.join(os.path.dirname(path), name))
            super().__init__(path, **settings)
        self.name = folder
        self._catch_up_now(wait_s_max=None)

    def _migration(self, version: int) -> str:
        script = super()._migration(version)
        if version < self.format_version:
            return script
        with open(os.path.join(_HERE, "tables.sql"), encoding="utf-8") as file:
            return script + file.read()

    @property
    def writable(self) -> bool:
        return super().writable and self.folder.writable

    # Reading

    def read(self, work: Callable[[Reader], T]) -> T:
        if not is_mine(self._turn):
            self._catch_up_now(wait_s_max=_CATCH_UP_S_MAX)
        return super().read(work)

    def _catch_up_now(self, wait_s_max: float | None) -> None:
        """Read what changed in the files. A reader waits for a writer only for a moment."""
        stamps = self.folder.stamps()
        if stamps == self._seen or (self._seen is not None and self._was_read(stamps)):
            return
        try:
            super().write(lambda _: None, wait_s_max=wait_s_max)
        except StoreUnavailable:
            if wait_s_max is None:
                raise
            self._check_place()
        self._tell_erased()

    def _was_read(self, stamps: dict[str, str]) -> bool:
        """Whether another process of this folder has already read, or written, the current files."""

        journals, epoch = super().read(lambda reader: [reader.query(name).fetchall() for name in ("journals", "epoch")])
        was_read = {path: stamp for path, _, _, stamp in journals} == stamps
        if was_read:
            self._seen, self.epoch = stamps, int(epoch[0][0])
        return was_read

    def _tell_erased(self) -> None:
        gone, self._follower.erased = self._follower.erased, []
        if gone and self.on_erased is not None:
            self.on_erased(gone)

    # Writing

    def write(self, work: Callable[[Transaction], T], *, durable: bool = False, wait_s_max: float | None = None) -> T:
        if not self.writable:
            hint = "It can be read here. To write, get the right to its folder."
            raise StoreUnavailable(f"{self.name} can't be written from here.", hint=hint)
        result = super().write(work, durable=durable, wait_s_max=wait_s_max)
        self._tell_erased()
        return result

    def _begin(self, durable: bool, wait_s_max: float | None) -> None:
        self._is_durable = durable or self._always_durable
        super()._begin(durable, wait_s_max)

    def _transaction(self) -> Transaction:
        """A transaction that has read all changes of the files."""
        transaction = FileTransaction(self._writer.execute, self.queries, self.driver.IntegrityError)
        try:
            news = self._follower.catch_up(transaction, self._place)
        except OSError as error:
            raise _trouble(self.name, error) from None
        self.epoch = int(next(transaction.query("epoch"))[0])
        transaction.writer = self._writer_of(transaction)
        self._begun_at, self._lamport_begun = transaction.position(), transaction.lamport
        self._open = transaction
        if news and self.writable:
            self._follower.erased += self._follower.merging.settle(transaction, news)
        return transaction

    def _writer_of(self, transaction: FileTransaction) -> str:
        """This folder's writer, if all its lines are still there, or else a new one.

        A checkout may have removed lines. If this folder went on from there, two histories would share one file.
        """
        place = self._place
        broken = {writer_of(where) for where, _ in transaction.query("broken")}
        for writer, lamport in transaction.query("own_writers", place=place).fetchall():
            if transaction.clocks.get(writer, (0,))[0] >= lamport and writer not in broken:
                return str(writer)
        writer = os.urandom(_WRITER_BYTES).hex()
        transaction.query("put_own", writer=writer, lamport=0, place=place)
        return writer

    @property
    def _place(self) -> str:
        """Identifies the folder that a writer began in; a copy of the folder has another identity."""
        return str(os.stat(os.path.dirname(self._path)).st_ino)

    def _commit(self) -> None:
        """Write the files, then commit. If that fails, the files are restored."""
        transaction, self._open = self._open, None
        assert transaction is not None
        events = list(transaction.events(after=self._begun_at))
        # Jobs that failed in this transaction were rolled back, and so were their erasures.
        gone = [event for event in transaction.erased if (now := transaction.event(event.id)) and now.erased]
        made: list[str] = []
        sizes: dict[str, int] = {}
        try:
            stamps = self._write_files(transaction, events, made, sizes)
            self.folder.erase(gone, durable=self._is_durable)
            super()._commit()
        except BaseException as error:
            if self._writer.in_transaction:
                self._undo(gone, made, sizes)
            if isinstance(error, OSError):
                raise _trouble(self.name, error) from None
            raise
        self._seen = self._follower.stamps | stamps

    def _undo(self, erased: Sequence[Event], made: Sequence[str], sizes: dict[str, int]) -> None:
        for path, size in sizes.items():
            self.folder.cut(path, size)
        for event in erased:
            with suppress(OSError):
                self.folder.put(event, [], durable=self._is_durable)
        for path in made:
            with suppress(OSError):
                self.folder.cut(path, 0)

    def _write_files(
        self, transaction: FileTransaction, events: list[Event], made: list[str], sizes: dict[str, int]
    ) -> dict[str, str]:
        """Write payloads and pages before the log lines that refer to them. Returns the stamps of the log files."""
        lines: dict[str, list[bytes]] = {}
        reached, is_in_order = self._last_before(transaction), True
        shared = [event for event in events if _is_shared(event)]
        for event in shared:
            self.folder.put(event, made, durable=self._is_durable)
            writer = event.stream.writer
            if writer:
                path = log_path(event)
                place = lamport_of(event.clock), writer
            else:
                path = imported_path(reached[0], self._begun_at, transaction.writer)
                place = reached[0], AFTER_ALL_WRITERS
            is_in_order = is_in_order and place >= reached
            reached = max(reached, place)
            lines.setdefault(path, []).append(line_of(event))
        known = {path: (size, digest) for path, size, digest, _ in transaction.query("journals")} if lines else {}
        stamps = {}
        for path, new in lines.items():
            size, digest = known.get(path, (0, ""))
            sizes[path] = size
            stamps[path] = self.folder.append(path, b"".join(new), size, durable=self._is_durable)
            for line in new:
                digest = folded(digest, line)
                size += len(line)
            transaction.query("put_journal", path=path, size=size, digest=digest, stamp=stamps[path])
        if not is_in_order:
            transaction.query("clear_journals")  # Imported entries sort first: read everything again.
            return dict.fromkeys(stamps, "")
        if any(event.stream.writer == transaction.writer for event in shared):
            where = {"writer": transaction.writer, "place": self._place}
            transaction.query("put_own", lamport=transaction.lamport, **where)
        return stamps

    def _last_before(self, transaction: FileTransaction) -> tuple[int, str]:
        """The sort key of the last event before this transaction."""
        last = next(transaction.events(after=self._begun_at - 1, limit=1), None) if self._begun_at else None
        if last is None or last.position > self._begun_at:
            return 0, ""
        if last.stream.writer:
            return lamport_of(last.clock), last.stream.writer
        return self._lamport_begun, AFTER_ALL_WRITERS

    # Maintenance

    def check(self) -> str | None:
        """Also compares the files with what was read from them, and names an edited line or payload."""
        return super().check() or self.read(self._difference)

    def _difference(self, reader: Reader) -> str | None:
        for place, problem in reader.query("broken"):
            return f"{place}: {problem}"
        stored = {event.id: event for event in reader.events() if _is_shared(event)}
        for path in sorted(self.folder.stamps()):
            try:
                for place, event in self.folder.entries(path):
                    known = stored.pop(event.id, None)
                    if known is None or known.hash != event.hash:
                        return f"{place}: somebody changed the entry, or added it by hand"
                    if event.body != known.body:
                        return f"{payload_path(event)}: it differs from what {place} says"
            except Broken as broken:
                return ": ".join(broken.args)
        for event in stored.values():
            return f"event {event.id} of {event.stream} is not in any file"
        return None

    def backup(self, path: str) -> None:
        """Write the files into a tar archive while nobody writes."""
        import tarfile

        def work(_: Transaction) -> None:
            with tarfile.open(path, "x") as archive:
                archive.add(self.folder.path, ".", filter=lambda file: None if file.name == f"./{LOCAL}" else file)

        try:
            super().write(work)
            os.chmod(path, 0o600)
        except OSError as error:
            raise _trouble(path, error) from None


def _is_shared(event: Event) -> bool:
    """Whether an event belongs in the files. The doctor's trial entries stay on this machine."""
    return event.stream.org != DOCTOR


def _trouble(name: str, error: OSError) -> StoreUnavailable:
    hint = "Nothing was half-written. Free some disk space or get the right to the folder, then call again."
    return StoreUnavailable(f"{name} can't be used now: {error.strerror or error}.", hint=hint)

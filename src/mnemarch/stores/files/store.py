"""A store in files that git can merge. The files are the truth; a SQLite file that git ignores answers from them.

The store follows the files: a pull, a checkout or a killed process changes them, and the SQLite file catches up.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from glob import escape, glob

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
    lamport_of,
    line_of,
    log_path,
    order_of,
    payload_path,
    seen_in,
    writer_of,
)
from mnemarch.stores.sql.queries import Queries, named_queries
from mnemarch.stores.sql.transaction import Transaction
from mnemarch.stores.sqlite.store import SqliteStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
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
    """Reads what changed in the files, and writes in the name of this clone's writer."""

    def __init__(self, store: FileStore) -> None:
        super().__init__(store._writer.execute, store.queries, store.driver.IntegrityError)
        self._folder, self._merging = store.folder, store.merging
        # Identifies the folder that a writer began in; a copy of the folder has another identity.
        self._place = str(os.stat(os.path.dirname(store._path)).st_ino)
        self.writer = ""
        # The position before the first event of this transaction, and the place in the order of the last one so far.
        self._begun_at, self._reached = 0, (0, "")
        # The events that were erased, and the log files as they were read.
        self.erased: list[Event] = []
        self.stamps: dict[str, str] = {}
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

    def _times_but(self, own: str) -> dict[str, int]:
        """The last Lamport times of the other writers."""
        return {writer: lamport for writer, (lamport, _) in self.clocks.items() if writer != own}

    def own(self, stream: Stream) -> tuple[Stream, str]:
        known = self.clocks.get(self.writer, (0, {}))[1]
        others = self._times_but(self.writer).items()
        news = {writer: lamport for writer, lamport in others if lamport > known.get(writer, 0)}
        return type(stream)(stream.org, stream.project, self.writer), canonical_json([self.lamport + 1, news])

    def next_number(self, stream: Stream) -> int:  # noqa: ARG002
        return self.lamport + 1

    def append(self, event: Event, hash: bytes) -> Event:
        placed = super().append(event, hash)
        if event.clock:
            writer, lamport, seen = event.stream.writer, lamport_of(event.clock), self._seen_by(event)
            self.clocks[writer] = lamport, seen
            self.query("put_clock", writer=writer, lamport=lamport, seen=canonical_json(seen))
        return placed

    def _seen_by(self, event: Event) -> dict[str, int]:
        """The times of other writers that the writer of a new event has seen."""
        return {**self.clocks.get(event.stream.writer, (0, {}))[1], **seen_in(event.clock)}

    def clear_log(self) -> bool:
        return False  # The order of the files does not depend on the order of writing.

    def erase_payload(self, event_id: str) -> None:
        event = self.event(event_id)
        if event is not None and event.body is not None:
            self.erased.append(event)
        super().erase_payload(event_id)

    # Reading the files

    def catch_up(self) -> list[Event]:
        """Read what changed in the files, and be ready to write. Returns the events of other clones."""
        news = self._read_changes()
        self._begin()
        return news

    def _read_changes(self) -> list[Event]:
        known = {path: (size, digest, stamp) for path, size, digest, stamp in self.query("journals")}
        stamps = self._folder.stamps()
        changed = [path for path in sorted(stamps) if path not in known or known[path][2] != stamps[path]]
        self.stamps = stamps
        if not changed and known.keys() == stamps.keys():
            return []
        if self._mend(changed):
            self.stamps = self._folder.stamps()
        before = {id for (id,) in self.query("event_ids")}
        taken = self._read_on(known, changed) if known.keys() <= self.stamps.keys() else None
        if taken is None:
            taken = self._read_anew()
        # For a new clone, nothing is news.
        return [event for _, event in taken if event.id not in before] if before else []

    def _mend(self, changed: Sequence[str]) -> bool:
        """Cut off an incomplete line of a killed process of this folder. Nobody else is writing now."""
        own = {writer for writer, _ in self.query("own_writers", place=self._place)}
        is_mended = False
        for path in changed if self._folder.writable else ():
            size, _ = self._folder.measured(path)
            if writer_of(path) in own and size < os.stat(self._folder.at(path)).st_size:
                self._folder.cut(path, size)
                is_mended = True
        return is_mended

    def _read_on(
        self, known: dict[str, tuple[int, str, str]], changed: Sequence[str]
    ) -> list[tuple[str, Event]] | None:
        """Append new entries if their writer had seen everything that is here. Returns None if not."""
        if not known or self.query("broken").fetchone():
            return None
        fresh: list[tuple[str, Event]] = []
        for path in changed:
            size, digest, _ = known.get(path, (0, "", ""))
            try:
                if path not in self.stamps or self._folder.measured(path, size) != (size, digest):
                    return None
                fresh += self._folder.entries(path, size)
            except Broken:
                return None
        fresh.sort(key=order_of)
        if not self._follows(fresh) or self._merging.fold(self, fresh, whole=False):
            return None
        self._note_read(changed)
        return fresh

    def _follows(self, fresh: Sequence[tuple[str, Event]]) -> bool:
        """Whether the new entries come from one writer that had seen everything that is here."""
        if not fresh:
            return True
        first = fresh[0][1]
        seen = self._seen_by(first)
        is_one = all(event.stream.writer == first.stream.writer for _, event in fresh)
        has_seen = all(seen.get(writer, 0) >= time for writer, time in self._times_but(first.stream.writer).items())
        return is_one and has_seen and lamport_of(first.clock) > self.lamport

    def _read_anew(self) -> list[tuple[str, Event]]:
        """Forget everything and read all files, in the order that is the same in every clone."""
        self.query("begin_epoch")
        for table in _BEHIND:
            self.query(f"clear_{table}")
        self.clear_projections()
        entries: list[tuple[str, Event]] = []
        problems: dict[str, tuple[str, ...]] = {}
        for path in sorted(self.stamps):
            writer = writer_of(path)
            try:
                entries += self._folder.entries(path) if writer not in problems else ()
            except Broken as broken:
                problems[writer] = broken.args
        entries.sort(key=order_of)
        refused = self._merging.fold(self, entries, whole=True)
        for place, problem in (*problems.values(), *refused):
            self.query("put_broken", place=place, problem=problem)
        self._note_read(self.stamps)
        return entries

    def _note_read(self, paths: Iterable[str]) -> None:
        for path in paths:
            size, digest = self._folder.measured(path)
            self.query("put_journal", path=path, size=size, digest=digest, stamp=self.stamps[path])

    # Writing them

    def _begin(self) -> None:
        """Write after what was read, as this folder's writer if all its lines are still there, or else as a new one.

        A checkout may have removed lines. If this folder went on from there, two histories would share one file.
        """
        broken = {writer_of(where) for where, _ in self.query("broken")}
        for writer, lamport in self.query("own_writers", place=self._place):
            if self.clocks.get(writer, (0,))[0] >= lamport and writer not in broken:
                self.writer = str(writer)
                break
        else:
            self.writer = os.urandom(_WRITER_BYTES).hex()
            self.query("put_own", writer=self.writer, lamport=0, place=self._place)
        self._begun_at = self.position()
        for last in self.events(after=self._begun_at - 1, limit=1) if self._begun_at else ():
            self._reached = self.lamport, last.stream.writer or AFTER_ALL_WRITERS

    def write_files(self, made: list[str], sizes: dict[str, int], *, durable: bool) -> dict[str, str]:
        """Write payloads and pages before the log lines that refer to them. Returns the stamps of the log files."""
        lines: dict[str, list[bytes]] = {}
        reached, is_in_order = self._reached, True
        shared = [event for event in self.events(after=self._begun_at) if _is_shared(event)]
        for event in shared:
            self._folder.put(event, made, durable=durable)
            path = log_path(event, f"{reached[0]:012d}-{self._begun_at:012d}-{self.writer}")
            order = order_of((path, event))
            is_in_order = is_in_order and order >= reached
            reached = max(reached, order)
            lines.setdefault(path, []).append(line_of(event))
        known = {path: (size, digest) for path, size, digest, _ in self.query("journals")} if lines else {}
        stamps = {}
        for path, new in lines.items():
            size, digest = known.get(path, (0, ""))
            sizes[path] = size
            stamps[path] = self._folder.write(path, b"".join(new), os.O_APPEND, size, durable=durable)
            for line in new:
                digest = folded(digest, line)
                size += len(line)
            self.query("put_journal", path=path, size=size, digest=digest, stamp=stamps[path])
        if not is_in_order:
            self.query("clear_journals")  # Imported entries sort first: read everything again.
            return dict.fromkeys(stamps, "")
        if any(event.stream.writer == self.writer for event in shared):
            self.query("put_own", writer=self.writer, lamport=self.lamport, place=self._place)
        return stamps


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
        self.merging = merging
        self._seen: dict[str, str] | None = None
        self._open: FileTransaction | None = None
        # The units that another clone erased, until `on_erased` is told of them.
        self._erased: list[str] = []
        # Called with the units that another clone erased; set by the owner of caches and indexes.
        self.on_erased: Callable[[Sequence[str]], object] | None = None
        with _told_of(folder):
            self.folder.prepare()
        path = os.path.join(local or self.folder.at(LOCAL), DATABASE)
        try:
            super().__init__(path, **settings)
        except (StoreCorrupt, Incompatible):
            # The database only holds what the files say, so it can be made again.
            for file in glob(f"{escape(path)}*"):
                os.remove(file)
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
        gone = self._erased
        if gone and self.on_erased is not None:
            self.on_erased(gone)
        self._erased = self._erased[len(gone) :]  # If that failed, the next change tells them again.

    # Writing

    def write(self, work: Callable[[Transaction], T], *, durable: bool = False, wait_s_max: float | None = None) -> T:
        if not self.writable:
            hint = "It can be read here. To write, get the right to its folder."
            raise StoreUnavailable(f"{self.name} can't be written from here.", hint=hint)
        result = super().write(work, durable=durable, wait_s_max=wait_s_max)
        self._tell_erased()
        return result

    def _transaction(self) -> Transaction:
        """A transaction that has read all changes of the files."""
        with _told_of(self.name):
            transaction = FileTransaction(self)
            news = transaction.catch_up()
        self.epoch = int(next(transaction.query("epoch"))[0])
        self._open = transaction
        erasures = (event.payload or {} for event in news if event.type is EventType.UNIT_ERASED)
        self._erased += [record["id"] for payload in erasures for record in payload.get("units", ())]
        if news and self.writable:
            self._erased += self.merging.settle(transaction, news)
        return transaction

    def _commit(self, durable: bool) -> None:
        """Write the files, then commit. If that fails, the files are restored."""
        transaction, self._open = self._open, None
        assert transaction is not None
        durable = durable or self._always_durable
        # Jobs that failed in this transaction were rolled back, and so were their erasures.
        gone = [event for event in transaction.erased if (now := transaction.event(event.id)) and now.erased]
        made: list[str] = []
        sizes: dict[str, int] = {}
        with _told_of(self.name):
            try:
                stamps = transaction.write_files(made, sizes, durable=durable)
                self.folder.erase(gone, durable=durable)
                super()._commit(durable)
            except BaseException:
                if self._writer.in_transaction:
                    self.folder.undo(gone, made, sizes)
                raise
        self._seen = transaction.stamps | stamps

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

        with _told_of(path):
            super().write(work)
            os.chmod(path, 0o600)


def _is_shared(event: Event) -> bool:
    """Whether an event belongs in the files. The doctor's trial entries stay on this machine."""
    return event.stream.org != DOCTOR


@contextmanager
def _told_of(name: str) -> Iterator[None]:
    """Name the place of an error of the system."""
    try:
        yield
    except OSError as error:
        hint = "Nothing was half-written. Free some disk space or get the right to the folder, then call again."
        raise StoreUnavailable(f"{name} can't be used now: {error.strerror or error}.", hint=hint) from None

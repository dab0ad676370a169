"""A store in files that git can merge. The files are the truth; a SQLite file that git ignores answers from them."""

from __future__ import annotations

import os
from contextlib import suppress

from mnemarch.errors import Incompatible, StoreCorrupt, StoreUnavailable
from mnemarch.forks import is_mine
from mnemarch.model.event import EventType
from mnemarch.model.json_text import canonical_json, from_json
from mnemarch.stores.files import forms
from mnemarch.stores.files.folder import LOCAL, Broken, Folder
from mnemarch.stores.files.forms import Entry, folded
from mnemarch.stores.sql.queries import Queries, named_queries
from mnemarch.stores.sql.transaction import Transaction
from mnemarch.stores.sqlite.store import SqliteStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol, TypeVar

    from mnemarch.model.caller import Stream
    from mnemarch.model.event import Event
    from mnemarch.stores.sql.reader import Reader

    T = TypeVar("T")

    class Merging(Protocol):
        """What is done with events that came by files: `log.merging` has it, which this must not know."""

        def fold(self, transaction: Transaction, entries: Sequence[Entry], *, whole: bool) -> list[tuple[str, str]]:
            """Append and project them in order; gives what it refused: where it stands, and why."""

        def settle(self, transaction: Transaction, births: Sequence[str]) -> None:
            """Open the conflicts of units that came from other clones with those that were here."""


_HERE = os.path.dirname(__file__)
_SHARED = ("../sql/queries.sql", "../sqlite/queries.sql", "queries.sql")
_WRITER_BYTES = 5
_CATCH_UP_S_MAX = 0.5
DATABASE = "memory.db"
_BEHIND = ("events", "streams", "journals", "clocks", "broken")


class FileTransaction(Transaction):
    """Writes as one of the writers of the folder, and notes what leaves its files."""

    keeps_writers = True

    def __init__(self, store: FileStore, execute: Callable[..., Any], integrity_error: type[Exception]) -> None:
        super().__init__(execute, store.queries, integrity_error)
        self.writer = ""
        self.erased: list[Event] = []
        self._clocks: dict[str, tuple[int, dict[str, int]]] | None = None

    def forget(self) -> None:
        super().forget()
        self._clocks = None

    @property
    def clocks(self) -> dict[str, tuple[int, dict[str, int]]]:
        """The last Lamport time of each writer, and how far it had seen each of the others."""
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

    def append(self, event: Event, hash: bytes) -> Event:
        placed = super().append(event, hash)
        if event.clock:
            writer = event.stream.writer
            seen = {**self.clocks.get(writer, (0, {}))[1], **forms.seen_in(event.clock)}
            self.clocks[writer] = forms.lamport_of(event.clock), seen
            lamport = self.clocks[writer][0]
            self.query("put_clock", writer=writer, lamport=lamport, seen=canonical_json(seen))
        return placed

    def erase_payload(self, event_id: str) -> None:
        event = self.event(event_id)
        if event is not None and event.body is not None:
            self.erased.append(event)
        super().erase_payload(event_id)


class FileStore(SqliteStore):
    """One folder, many processes, many clones. Writers of one folder queue at the SQLite file; clones meet by git.

    Before each read and write the files are looked at: what a pull or a checkout changed is read first. A write puts
    its lines into the files and then commits: whoever is killed in between leaves lines that the next one reads.
    """

    queries = Queries(named_queries(*(os.path.join(_HERE, name) for name in _SHARED)))

    def __init__(
        self,
        folder: str,
        merging: Merging,
        *,
        local: str | None = None,
        durability: str = "process",
        lock_wait_s_max: float = 30.0,
    ) -> None:
        self.folder = Folder(folder)
        self._merging = merging
        self._seen: dict[str, str] | None = None
        self._read: dict[str, str] = {}
        self._open: FileTransaction | None = None
        self._begun_at = 0
        self._is_durable = False
        # Units that an erasure of another clone took away; set by whoever keeps copies of texts.
        self.on_erased: Callable[[Sequence[str]], object] | None = None
        self._erased_elsewhere: list[str] = []
        try:
            self.folder.prepare()
        except OSError as error:
            raise _trouble(folder, error) from None
        path = os.path.join(local or self.folder.at(LOCAL), DATABASE)
        more: Any = {"durability": durability, "lock_wait_s_max": lock_wait_s_max}
        try:
            super().__init__(path, **more)
        except (StoreCorrupt, Incompatible):
            # It holds nothing that the files don't say.
            for name in [name for name in os.listdir(os.path.dirname(path)) if name.startswith(DATABASE)]:
                os.remove(os.path.join(os.path.dirname(path), name))
            super().__init__(path, **more)
        self.name = folder
        self._catch_up_now(wait_s_max=None)

    def _migration(self, version: int) -> str:
        with open(os.path.join(_HERE, "tables.sql"), encoding="utf-8") as file:
            return super()._migration(version) + file.read()

    @property
    def writable(self) -> bool:
        return super().writable and self.folder.writable

    # Reading

    def read(self, work: Callable[[Reader], T]) -> T:
        if not is_mine(self._turn):
            self._catch_up_now(wait_s_max=_CATCH_UP_S_MAX)
        return super().read(work)

    def _catch_up_now(self, wait_s_max: float | None) -> None:
        """Read what changed in the files. Whoever only reads waits a moment for one who writes, and not longer."""
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
        """Whether another process of this folder has read, or written, the files as they are."""

        def work(reader: Reader) -> tuple[dict[str, str], int]:
            read = {path: stamp for path, _, _, stamp in reader.query("journals")}
            return read, int(reader.query("epoch").fetchone()[0])

        read, epoch = super().read(work)
        if read == stamps:
            self._seen, self.epoch = stamps, epoch
        return read == stamps

    def _tell_erased(self) -> None:
        gone, self._erased_elsewhere = self._erased_elsewhere, []
        if gone and self.on_erased is not None:
            self.on_erased(gone)

    # Writing

    def write(self, work: Callable[[Transaction], T], *, durable: bool = False, wait_s_max: float | None = None) -> T:
        if not self.writable:
            raise StoreUnavailable(
                f"{self.name} can't be written from here.", hint="It can be read. To write, get the right to its folder."
            )
        result = super().write(work, durable=durable, wait_s_max=wait_s_max)
        self._tell_erased()
        return result

    def _begin(self, durable: bool, wait_s_max: float | None) -> None:
        self._is_durable = durable or self._always_durable
        super()._begin(durable, wait_s_max)

    def _transaction(self) -> Transaction:
        """One that knows all that is in the files."""
        transaction = FileTransaction(self, self._writer.execute, self.driver.IntegrityError)
        try:
            births = self._catch_up(transaction)
        except OSError as error:
            raise _trouble(self.name, error) from None
        self.epoch = int(next(transaction.query("epoch"))[0])
        transaction.writer = self._writer_of(transaction)
        self._begun_at = transaction.position()
        self._open = transaction
        if births and self.writable:
            self._merging.settle(transaction, births)
        return transaction

    def _writer_of(self, transaction: FileTransaction) -> str:
        """The writer to go on as: one that this folder has been, and whose every line is there.

        A checkout may have taken some away. Who went on from there would be two that write one file.
        """
        place = self._place
        broken = {where.split("/")[1] for where, _ in transaction.query("broken")}
        for writer, lamport in transaction.query("own_writers", place=place).fetchall():
            if transaction.clocks.get(writer, (0,))[0] >= lamport and writer not in broken:
                return str(writer)
        writer = os.urandom(_WRITER_BYTES).hex()
        transaction.query("put_own", writer=writer, lamport=0, place=place)
        return writer

    @property
    def _place(self) -> str:
        """By what the folder is known as the one that a writer began in: a copy of it is another."""
        return str(os.stat(os.path.dirname(self._path)).st_ino)

    def _commit(self) -> None:
        """First the files, then the commit; if it fails, the files are as before."""
        transaction, self._open = self._open, None
        assert transaction is not None
        events = list(transaction.events(after=self._begun_at))
        made: list[str] = []
        sizes: dict[str, int] = {}
        stamps: dict[str, str] = {}
        try:
            if events or transaction.erased:
                stamps = self._write_files(transaction, events, made, sizes)
                self.folder.tombstone(_left_by(transaction.erased), durable=self._is_durable)
            super()._commit()
        except BaseException as error:
            if self._writer.in_transaction:
                self._undo(transaction, made, sizes)
            if isinstance(error, OSError):
                raise _trouble(self.name, error) from None
            raise
        self._seen = self._read | stamps

    def _undo(self, transaction: FileTransaction, made: Sequence[str], sizes: dict[str, int]) -> None:
        for path, size in sizes.items():
            self.folder.cut(path, size)
        for event in transaction.erased:
            with suppress(OSError):
                self._write_payload(event, [])
        self.folder.remove(made)

    def _write_files(
        self, transaction: FileTransaction, events: list[Event], made: list[str], sizes: dict[str, int]
    ) -> dict[str, str]:
        """Payloads and pages first: a line of the log speaks of files that are there. Gives the stamps of the logs."""
        lines: dict[str, list[bytes]] = {}
        imported = f"{forms.LOG}/{forms.IMPORTED}/{events[0].id if events else ''}.jsonl"
        for event in events:
            self._write_payload(event, made)
            writer = event.stream.writer
            path = f"{forms.LOG}/{writer}/{forms.month_of(event)}.jsonl" if writer else imported
            lines.setdefault(path, []).append(forms.line_of(event))
        known = {path: (size, digest) for path, size, digest, _ in transaction.query("journals")}
        stamps = {}
        for path, new in lines.items():
            size, digest = known.get(path, (0, ""))
            sizes[path] = size
            stamps[path] = self.folder.append(path, b"".join(new), size, durable=self._is_durable)
            for line in new:
                digest = folded(digest, line)
                size += len(line)
            transaction.query("put_journal", path=path, size=size, digest=digest, stamp=stamps[path])
        if any(event.stream.writer != transaction.writer for event in events):
            transaction.query("clear_journals")  # What was imported has its place before others: all is read anew.
            return {path: "" for path in stamps}
        elif events:
            where = {"writer": transaction.writer, "place": self._place}
            transaction.query("put_own", lamport=transaction.lamport, **where)
        return stamps

    def _write_payload(self, event: Event, made: list[str]) -> None:
        path, content = forms.payload_path(event), forms.ERASED if event.erased else forms.payload_file(event)
        made.append(path)
        self.folder.write(path, content, durable=self._is_durable, replaces=True)
        if event.type is EventType.UNIT_REMEMBERED and event.body is not None and event.subject is not None:
            made.append(forms.page_path(event))
            self.folder.write(made[-1], forms.page_of(event), durable=False, replaces=True)

    # Following the files

    def _catch_up(self, transaction: FileTransaction) -> list[str]:
        """Take in what changed in the files; gives the units that came from other clones."""
        known = {path: (size, digest, stamp) for path, size, digest, stamp in transaction.query("journals")}
        stamps = self.folder.stamps()
        changed = [path for path in sorted(stamps) if path not in known or known[path][2] != stamps[path]]
        self._read = stamps
        if not changed and known.keys() == stamps.keys():
            return []
        if self._mend(transaction, changed):
            stamps = self._read = self.folder.stamps()
        before = {id for (id,) in transaction.query("event_ids")}
        taken = self._read_on(transaction, stamps, known, changed) if known.keys() <= stamps.keys() else None
        if taken is None:
            taken = self._read_anew(transaction, stamps)
        if not before:
            return []  # To a new clone nothing is news.
        news = [entry.event for entry in taken if entry.event.id not in before]
        for event in news:
            if event.type is EventType.UNIT_ERASED:
                self._erased_elsewhere += [record["id"] for record in (event.payload or {}).get("units", ())]
        return [event.subject for event in news if event.type is EventType.UNIT_REMEMBERED and event.subject]

    def _mend(self, transaction: FileTransaction, changed: Sequence[str]) -> bool:
        """Cut off what a killed process of this folder left of a line; nobody else is writing now."""
        own = {writer for writer, _ in transaction.query("own_writers", place=self._place)}
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
        if not _follows(transaction, fresh) or self._merging.fold(transaction, fresh, whole=False):
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
        refused = self._merging.fold(transaction, entries, whole=True)
        for place, problem in (*problems.values(), *refused):
            transaction.query("put_broken", place=place, problem=problem)
        self._note_read(transaction, stamps)
        return entries

    def _note_read(self, transaction: FileTransaction, stamps: dict[str, str]) -> None:
        for path, stamp in stamps.items():
            size, digest = self.folder.measured(path)
            transaction.query("put_journal", path=path, size=size, digest=digest, stamp=stamp)

    # Maintenance

    def check(self) -> str | None:
        """Also whether the files still say what was read of them: a line or a payload that was edited is named."""
        return super().check() or self.read(self._difference)

    def _difference(self, reader: Reader) -> str | None:
        for place, problem in reader.query("broken"):
            return f"{place}: {problem}"
        stored = {event.id: event for event in reader.events()}
        for path in sorted(self.folder.stamps()):
            try:
                for place, _, event in self.folder.entries(path):
                    known = stored.pop(event.id, None)
                    if known is None or known.hash != event.hash:
                        return f"{place}: the entry was changed, or put in by hand"
                    if event.body != known.body:
                        return f"{forms.payload_path(event)}: it is not what {place} says"
            except Broken as broken:
                return f"{broken.place}: {broken.problem}"
        for event in stored.values():
            return f"event {event.id} of {event.stream} is in no file"
        return None

    def backup(self, path: str) -> None:
        """Write the files into a tar archive while nobody writes."""
        import tarfile

        def work(_: Transaction) -> None:
            with tarfile.open(path, "x") as archive:
                for name in sorted(os.listdir(self.folder.path)):
                    if name != LOCAL:
                        archive.add(self.folder.at(name), name)

        try:
            super().write(work)
            os.chmod(path, 0o600)
        except OSError as error:
            raise _trouble(path, error) from None


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


def _left_by(erased: Sequence[Event]) -> dict[str, bytes]:
    """What stands in the files of erased events from now on."""
    pages = [event for event in erased if event.type is EventType.UNIT_REMEMBERED and event.subject]
    payloads = {forms.payload_path(event): forms.ERASED for event in erased}
    return payloads | {forms.page_path(event): forms.ERASED_PAGE for event in pages}


def _trouble(name: str, error: OSError) -> StoreUnavailable:
    hint = "Free some disk space, or get the right to the folder, and call again; nothing was half-written."
    return StoreUnavailable(f"{name} can't be used now: {error.strerror or error}.", hint=hint)

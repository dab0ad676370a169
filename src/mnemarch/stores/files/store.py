"""A store in files that git can merge. The files are the truth; a SQLite file that git ignores answers from them."""

from __future__ import annotations

import os
from contextlib import suppress

from mnemarch.errors import Incompatible, StoreCorrupt, StoreUnavailable
from mnemarch.forks import is_mine
from mnemarch.model.caller import DOCTOR
from mnemarch.model.event import EventType
from mnemarch.stores.files.folder import (
    AFTER_ALL_WRITERS,
    ERASED,
    ERASED_PAGE,
    LOCAL,
    Broken,
    Folder,
    folded,
    imported_path,
    lamport_of,
    line_of,
    log_path,
    page_of,
    page_path,
    payload_file,
    payload_path,
    writer_of,
)
from mnemarch.stores.files.following import FileTransaction, Follower
from mnemarch.stores.sql.queries import Queries, named_queries
from mnemarch.stores.sqlite.store import SqliteStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    from mnemarch.model.event import Event
    from mnemarch.stores.files.following import Merging
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.stores.sql.transaction import Transaction

    T = TypeVar("T")

_HERE = os.path.dirname(__file__)
_SHARED = ("../sql/queries.sql", "../sqlite/queries.sql", "queries.sql")
_WRITER_BYTES = 5
_CATCH_UP_S_MAX = 0.5
DATABASE = "memory.db"


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
        more: Any = {"durability": durability, "lock_wait_s_max": lock_wait_s_max}
        try:
            super().__init__(path, **more)
        except (StoreCorrupt, Incompatible):
            # The database only holds what the files say, so it can be made again.
            for name in [name for name in os.listdir(os.path.dirname(path)) if name.startswith(DATABASE)]:
                os.remove(os.path.join(os.path.dirname(path), name))
            super().__init__(path, **more)
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

        def work(reader: Reader) -> tuple[dict[str, str], int]:
            read = {path: stamp for path, _, _, stamp in reader.query("journals")}
            return read, int(reader.query("epoch").fetchone()[0])

        read, epoch = super().read(work)
        if read == stamps:
            self._seen, self.epoch = stamps, epoch
        return read == stamps

    def _tell_erased(self) -> None:
        gone, self._follower.erased = self._follower.erased, []
        if gone and self.on_erased is not None:
            self.on_erased(gone)

    # Writing

    def write(self, work: Callable[[Transaction], T], *, durable: bool = False, wait_s_max: float | None = None) -> T:
        if not self.writable:
            hint = "It can be read. To write, get the right to its folder."
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
            self.folder.tombstone(_left_by(gone), durable=self._is_durable)
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
                self._write_payload(event, [])
        self.folder.remove(made)

    def _write_files(
        self, transaction: FileTransaction, events: list[Event], made: list[str], sizes: dict[str, int]
    ) -> dict[str, str]:
        """Write payloads and pages before the log lines that refer to them. Returns the stamps of the log files."""
        lines: dict[str, list[bytes]] = {}
        reached, is_in_order = self._last_before(transaction), True
        shared = [event for event in events if _is_shared(event)]
        for event in shared:
            self._write_payload(event, made)
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

    def _write_payload(self, event: Event, made: list[str]) -> None:
        path, content = payload_path(event), ERASED if event.erased else payload_file(event)
        made.append(path)
        self.folder.write(path, content, durable=self._is_durable, replaces=True)
        if event.type is EventType.UNIT_REMEMBERED and event.body is not None and event.subject is not None:
            made.append(page_path(event))
            self.folder.write(made[-1], page_of(event), durable=False, replaces=True)

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
                        return f"{place}: the entry was changed, or put in by hand"
                    if event.body != known.body:
                        return f"{payload_path(event)}: it is not what {place} says"
            except Broken as broken:
                return ": ".join(broken.args)
        for event in stored.values():
            return f"event {event.id} of {event.stream} is in no file"
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


def _left_by(erased: Sequence[Event]) -> dict[str, bytes]:
    """The new content of the files of erased events."""
    pages = [event for event in erased if event.type is EventType.UNIT_REMEMBERED and event.subject]
    payloads = {payload_path(event): ERASED for event in erased}
    return payloads | {page_path(event): ERASED_PAGE for event in pages}


def _trouble(name: str, error: OSError) -> StoreUnavailable:
    hint = "Free some disk space, or get the right to the folder, and call again; nothing was half-written."
    return StoreUnavailable(f"{name} can't be used now: {error.strerror or error}.", hint=hint)

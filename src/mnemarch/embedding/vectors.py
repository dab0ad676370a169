"""Stores the vectors of units in one SQLite file. They are derived, so a damaged or foreign file counts as empty."""

from __future__ import annotations

import os
import sqlite3
import time
from _thread import allocate_lock
from array import array
from contextlib import closing
from functools import cache
from shutil import rmtree

from xxhash import xxh3_128_hexdigest

from mnemarch.errors import StoreUnavailable
from mnemarch.files import locked_if_free, make_folder, make_private
from mnemarch.forks import Forkable, watch
from mnemarch.lazy import Lazy, paragraphs_beside
from mnemarch.model.value import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, TypeVar

    import numpy as np

    from mnemarch.model.unit import Searchable

    T = TypeVar("T")
    # Scopes, states, kinds and domains to search in. None allows all.
    Within = Sequence[Sequence[str] | None]
else:
    np = Lazy("numpy")

FILE = "vectors.db"
LOCK = "follow.lock"
_ROOM_MIN = 256
# How many vectors a search compares exactly: per result, and at least.
_COMPARED_EACH = 40
_COMPARED_MIN = 2_000
_PIECE = 64
_SETTLED_NS = 100_000_000


class Head(Frozen):
    """The metadata of a set of vectors. `born` identifies when it was begun, `serial` its last change."""

    embedder: str = ""
    store: str = ""
    born: str = ""
    position: int = 0
    event: str = ""
    complete: int = 0
    serial: int = 0


@cache
def _sql() -> Mapping[str, str]:
    return {name: "\n".join(lines) for name, lines in paragraphs_beside(__file__, "vectors.sql").items()}


class VectorFile(Forkable):
    """The vectors of one embedder for one store. Every call sees the last commit of any process."""

    def __init__(
        self, folder: str, embedder_id: str, store_id: str, event_at: Callable[[int], str], wait_s_max: float
    ) -> None:
        self._path = os.path.join(folder, FILE)
        self._ours = f"{embedder_id}/int4", store_id
        self._event_at = event_at
        self._wait_s_max = wait_s_max
        self._rows = Rows(Head())
        # The file's identity when the head was read, and the head.
        self._last: tuple[tuple[int, int, int] | None, Head] = None, Head()
        self._lock = allocate_lock()
        self._connecting = allocate_lock()
        watch(self)

    def _rest(self) -> bool:
        """Fork only without an open connection. See `stores.sql.store`."""
        return self._connecting.acquire(blocking=False)

    def _resume(self, *, in_child: bool, rested: bool) -> None:
        if rested:
            self._connecting.release()
        if in_child:
            self._lock, self._connecting = allocate_lock(), allocate_lock()
            self._rows = Rows(Head())

    def _run(self, begin: str, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run one transaction. A damaged file is replaced by an empty one."""
        try:
            make_folder(os.path.dirname(self._path))
            make_private(self._path)
            with (
                self._connecting,
                closing(sqlite3.connect(self._path, timeout=self._wait_s_max, isolation_level=None)) as connection,
            ):
                connection.executescript(_sql()["schema"])
                connection.execute(begin)
                outcome = work(connection)
                connection.execute("COMMIT")
                return outcome
        except (sqlite3.OperationalError, OSError) as error:
            failed = f"The vectors in {self._path} can't be read or written: {error}."
            raise StoreUnavailable(failed, hint="Check the disk and the folder's rights.") from None
        except sqlite3.DatabaseError:
            for path in (self._path, self._path + "-journal"):
                if os.path.exists(path):
                    os.remove(path)
        return self._run(begin, work)

    def _is_ours(self, head: Head) -> bool:
        """Whether the head fits this embedder and store. A different event means that a backup was restored."""
        return (head.embedder, head.store) == self._ours and head.event == self._event_at(head.position)

    # Reading

    def head(self) -> Head:
        """The file's head. The file is opened only after a change, and only by SQLite.

        Closing a file releases all locks that the process has on it.
        """
        try:
            seen = os.stat(self._path)
        except OSError:
            return Head()
        changes = seen.st_ino, seen.st_size, seen.st_mtime_ns
        if changes != self._last[0]:
            # A recently written file may change again within the same tick of the file system's clock.
            is_settled = time.time_ns() - seen.st_mtime_ns > _SETTLED_NS
            self._last = changes if is_settled else None, self._run("BEGIN", _head)
        return self._last[1]

    def read(self, work: Callable[[Rows], T]) -> T:
        """Run `work` on the current vectors, or on none if they are of another embedder, store or history."""
        with self._lock:
            head = self.head()
            if not self._is_ours(head):
                self._rows = Rows(Head())
            elif head != self._rows.head:
                after = self._rows.head.serial if head.born == self._rows.head.born else 0
                head, changed = self._run(
                    "BEGIN", lambda file: (_head(file), file.execute(_sql()["after"], [after]).fetchall())
                )
                self._rows = self._rows if after else Rows(head)
                self._rows.take(head, changed)
            return work(self._rows)

    def state(self) -> Head:
        return self.read(lambda rows: rows.head)

    def count(self) -> int:
        return self.read(len)

    def nearest(self, vector: Any, count: int, within: Within) -> list[tuple[str, float]]:
        return self.read(lambda rows: rows.nearest(vector, count, within))

    def compared(self, vector: Any, unit_ids: Iterable[str]) -> list[tuple[str, float]]:
        return self.read(lambda rows: rows.compared(vector, unit_ids))

    def known(self, units: Sequence[Searchable]) -> set[str]:
        return self.read(lambda rows: {unit.id for unit in units if rows.has(unit)})

    # Writing

    def alone(self) -> AbstractContextManager[bool]:
        return locked_if_free(os.path.join(os.path.dirname(self._path), LOCK))

    def begin(self, *, may_replace: bool) -> Head | None:
        """The head of this embedder's vectors, new if there are none. None if another's may not be replaced."""

        def work(file: sqlite3.Connection) -> Head | None:
            head = _head(file)
            if head.embedder not in ("", self._ours[0]) and not may_replace:
                return None
            if not self._is_ours(head):
                file.execute(_sql()["drop head"])
                file.execute(_sql()["drop vectors"])
                file.execute(_sql()["begin"], self._ours)
            return _head(file)

        return self._run("BEGIN IMMEDIATE", work)

    def save(self, begun: Head, changes: Sequence[tuple[Searchable, Any]], position: int, *, complete: bool) -> bool:
        """Write units with their vectors, and the position reached. A unit whose text has a vector keeps it.

        False if the vectors were restarted meanwhile. An erased unit stays erased even if it was read before.
        """

        def work(file: sqlite3.Connection) -> bool:
            if _head(file).born != begun.born:
                return False
            file.executemany(_sql()["put"], [row_of(unit, vector) for unit, vector in changes])
            file.execute(_sql()["reach"], [position, self._event_at(position), complete])
            return True

        return self._run("BEGIN IMMEDIATE", work)

    def erase(self, unit_ids: Iterable[str]) -> None:
        """Overwrite the vectors of these units for all embedders (R16)."""

        def work(file: sqlite3.Connection) -> None:
            file.executemany(_sql()["erase"], [[unit_id] for unit_id in unit_ids])
            file.execute(_sql()["touch"])

        self._run("BEGIN IMMEDIATE", work)

    def close(self) -> None:
        """Do nothing: each call has its own connection."""


def erase_vectors(folder: str, unit_ids: Iterable[str], wait_s_max: float) -> None:
    """Overwrite the vectors of these units, even if no embedder is in use.

    This also removes subfolders, one per embedder, which an earlier version made and nothing reads.
    """
    for entry in os.scandir(folder) if os.path.isdir(folder) else ():
        if entry.is_dir(follow_symlinks=False):
            rmtree(entry.path, ignore_errors=True)
        elif entry.name == FILE:
            VectorFile(folder, "", "", lambda _: "", wait_s_max).erase(unit_ids)


def _head(file: sqlite3.Connection) -> Head:
    row = file.execute(_sql()["head"]).fetchone()
    return Head() if row is None else Head(*row)


def row_of(unit: Searchable, vector: Any) -> tuple[Any, ...]:
    """The row of a unit: id, the key of its text, scope, state, kind, domain, and its vector's bytes or None."""
    packed = packed_of(vector) if vector is not None and vector.any() else None
    return unit.id, text_key(unit.content), unit.scope_key, unit.state, unit.kind, unit.domain, packed


def packed_of(vector: Any) -> bytes:
    """The vector with half a byte for each number, from -7 to 7. Only the direction is kept.

    The range is three and a half standard deviations, or up to the largest number if that keeps the direction better.
    A vector of odd size is padded with the half byte 0.
    """
    steps = np.sqrt(np.mean(np.square(vector))) / 2, np.abs(vector).max() / 7
    choices = [np.clip(np.rint(vector / step), -7, 7) for step in steps]
    best = max(choices, key=lambda numbers: float(numbers @ vector / np.linalg.norm(numbers)))
    numbers = np.pad((best + 8).astype(np.uint8), (0, len(best) % 2))
    packed: bytes = (numbers[::2] << 4 | numbers[1::2]).tobytes()
    return packed


def unpacked(packed: bytes, rows: int = 1) -> Any:
    """The integers of packed vectors of one size, one row each."""
    pairs = np.frombuffer(packed, np.uint8).reshape(rows, -1)
    numbers = np.stack([pairs >> 4, pairs & 15], axis=-1).reshape(rows, -1).astype(np.int8) - np.int8(8)
    return numbers[:, :-1] if (numbers[:, -1] == -8).all() else numbers


def text_key(text: str) -> str:
    return xxh3_128_hexdigest(text.encode("utf-8", "surrogatepass")) if text else ""


class Rows:
    """The vectors in memory, by row, each with its group of equal labels.

    Each vector has its numbers (a byte each) and their signs (a bit each). A search scans the signs of all vectors to
    select a few thousand for exact comparison.
    """

    def __init__(self, head: Head) -> None:
        self.head = head
        self._ids: list[str] = []
        self._row: dict[str, int] = {}
        self._texts: dict[str, str] = {}
        self._numbers: Any = None
        self._lengths: Any = None
        # Each line has 64 signs of every vector, so that a search reads memory sequentially.
        self._signs: Any = None
        # Group 0 has no labels, so searches never find its rows.
        self._groups: dict[tuple[str, ...], int] = {(): 0}
        self._group = array("i")

    def take(self, head: Head, changed: Iterable[tuple[Any, ...]]) -> None:
        """Apply rows that changed in the file."""
        self.head = head
        vectors: dict[int, bytes] = {}
        for id, text, *labels, packed in changed:
            if packed is None:
                self._texts.pop(id, None)
                if id in self._row:
                    self._group[self._row[id]] = 0
                continue
            row = self._row.setdefault(id, len(self._ids))
            if row == len(self._ids):
                self._ids.append(id)
                self._group.append(0)
            self._texts[id] = text
            self._group[row] = self._groups.setdefault(tuple(labels), len(self._groups))
            vectors[row] = packed
        if vectors:
            self._put(vectors)

    def _put(self, packed: Mapping[int, bytes]) -> None:
        numbers = unpacked(b"".join(packed.values()), len(packed))
        signs = _signs(numbers)
        if self._numbers is None or len(self._ids) > len(self._numbers):
            room = max(_ROOM_MIN, len(self._ids) * 5 // 4)
            held = 0 if self._numbers is None else len(self._numbers)
            shapes = (((room, numbers.shape[1]), np.int8), ((room,), np.float32), ((len(signs), room), np.uint64))
            made = [np.zeros(shape, kind) for shape, kind in shapes]
            if held:
                made[0][:held], made[1][:held], made[2][:, :held] = self._numbers, self._lengths, self._signs
            self._numbers, self._lengths, self._signs = made
        rows = list(packed)
        self._numbers[rows] = numbers
        self._lengths[rows] = np.linalg.norm(numbers.astype(np.float32), axis=1)
        self._signs[:, rows] = signs

    def has(self, unit: Searchable) -> bool:
        """Whether the unit's current text has a vector."""
        return self._texts.get(unit.id) == text_key(unit.content)

    def __len__(self) -> int:
        return len(self._texts)

    def nearest(self, vector: Any, count: int, within: Within) -> list[tuple[str, float]]:
        """The nearest units with an allowed scope, state, kind and domain. None allows all.

        If there are many, only vectors that agree in most signs are compared. That misses hardly any.
        """
        groups = [
            bool(labels) and all(names is None or label in names for label, names in zip(labels, within, strict=True))
            for labels in self._groups
        ]
        allowed = np.array(groups)[np.asarray(self._group)]
        rows = allowed.nonzero()[0]
        if not len(rows) or count <= 0 or not vector.any():
            return []
        few = max(_COMPARED_MIN, _COMPARED_EACH * count)
        if len(rows) > few:
            unlike = self._unlike(vector)
            unlike[~allowed] = vector.size + 1
            # Keep this many rows, and all rows that tie with the last one.
            most = np.searchsorted(np.bincount(unlike).cumsum(), few)
            rows = (unlike <= most).nonzero()[0]
        cosines = self._cosines(rows, vector)
        if count < len(rows):
            best = np.argpartition(cosines, -count)[-count:]
            rows, cosines = rows[best], cosines[best]
        return best_first((self._ids[row], float(cosine)) for row, cosine in zip(rows, cosines, strict=True))

    def _unlike(self, vector: Any) -> Any:
        """The number of signs that differ between each vector and this one."""
        unlike = np.zeros(len(self._ids), np.uint16)
        for line, signs in zip(self._signs, _signs(vector.reshape(1, -1)), strict=True):
            unlike += np.bitwise_count(line[: len(unlike)] ^ signs)
        return unlike

    def _cosines(self, rows: Any, vector: Any) -> Any:
        # In pieces, because an array of megabytes would be allocated by the system for each question.
        pieces = [rows[at : at + _PIECE] for at in range(0, len(rows), _PIECE)]
        products = [self._numbers[piece].astype(np.float32) @ vector for piece in pieces]
        return np.concatenate(products) / self._lengths[rows]

    def compared(self, vector: Any, unit_ids: Iterable[str]) -> list[tuple[str, float]]:
        """The cosine of each of these units that has a vector."""
        known = [id for id in dict.fromkeys(unit_ids) if id in self._texts]
        cosines = self._cosines([self._row[id] for id in known], vector) if known else ()
        return [(id, float(cosine)) for id, cosine in zip(known, cosines, strict=True)]


def _signs(numbers: Any) -> Any:
    """The signs of each row's numbers as bits, with 64 signs of every row per line."""
    bits = np.packbits(numbers > 0, axis=1)
    return np.ascontiguousarray(np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8)))).view(np.uint64).T


def best_first(rows: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
    """The rows without repeats, best first. A unit promoted to the org may stay in its project for a while."""
    best: dict[str, float] = {}
    for id, cosine in rows:
        best[id] = max(cosine, best.get(id, -1.0))
    return sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))

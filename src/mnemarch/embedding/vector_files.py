"""One generation of vectors on disk: its files, the graph in them, and what can be read from it.

A small file names the current generation and is replaced last. A crash between two steps leaves files that nothing
names; the next save removes them. A file that does not match its checksum in the naming file is not used: a damaged
graph could crash the process.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress

from xxhash import xxh3_64, xxh3_64_intdigest

from mnemarch.embedding.dense import not_installed
from mnemarch.files import CHUNK_BYTES, PARTIAL_END, synced, write_whole
from mnemarch.lazy import Lazy
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    import numpy as np

    from mnemarch.model.unit import Searchable
else:
    np = Lazy("numpy")

FORMAT = 1
CURRENT = "current.json"
VECTORS_END, ROWS_END = ".vectors", ".rows.npy"
# How many vectors a search looks at: of the ten nearest among 100,000 it finds 99.5 %, in about 1 ms.
_LOOKED_AT = 128
# Comparing with every vector is exact, and up to here hardly slower than asking the graph (0.1 ms for 1,000).
_EXACT_MAX = 20_000
# Keys of units are below it.
_FILLERS_FROM = 1 << 63
_LABELS = ("scope", "state", "kind", "domain")


@value
class Generation:
    """What the naming file says. `sums` has the checksum of each file, `struck` the units erased meanwhile."""

    embedder_id: str
    store_id: str
    number: int = 0
    dim: int = 0
    count: int = 0
    position: int = 0
    event: str = ""
    complete: bool = False
    vectors: str = ""
    rows: str = ""
    sums: Mapping[str, str] = {}
    struck: tuple[str, ...] = ()


def new_name(number: int, end: str) -> str:
    """A name that no file ever had: another process may have the old file mapped, and must not see it change."""
    return f"{number}-{os.urandom(4).hex()}{end}"


def naming(folder: str) -> bytes:
    """The bytes of the naming file, empty if there is none. They are compared whole: times can be equal."""
    try:
        with open(os.path.join(folder, CURRENT), "rb") as file:
            return file.read()
    except OSError:
        return b""


def generation_from(content: bytes) -> Generation | None:
    """What a naming file says, or None if this version can't read it."""
    try:
        record = json.loads(content)
        if record.pop("format") != FORMAT:
            return None
        named = Generation(**record | {"struck": tuple(record["struck"])})
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    numbers: list[object] = [named.number, named.dim, named.count, named.position]
    names: list[object] = [named.embedder_id, named.store_id, named.event, named.vectors, named.rows, *named.struck]
    sums: object = named.sums
    is_sound = (
        all(type(number) is int and number >= 0 for number in numbers)
        and all(isinstance(name, str) for name in names)
        and isinstance(sums, dict)
        and not any(os.sep in name for name in (named.vectors, named.rows))
    )
    return named if is_sound else None


def write_generation(folder: str, generation: Generation) -> None:
    """Make this generation the current one, at once."""
    record = {name: getattr(generation, name) for name in Generation.__match_args__}
    write_whole(os.path.join(folder, CURRENT), json.dumps({"format": FORMAT, **record}))


def drop_unnamed(folder: str, generation: Generation) -> None:
    """Remove what an earlier generation or a crash left behind."""
    for name in os.listdir(folder):
        ours = name.endswith((VECTORS_END, ROWS_END, PARTIAL_END))
        if ours and name not in (generation.vectors, generation.rows):
            with suppress(OSError):
                os.remove(os.path.join(folder, name))


def sealed(path: str) -> str:
    """Bring a file to the disk and give its checksum."""
    synced(path)
    return checksum(path)


def checksum(path: str) -> str:
    digest = xxh3_64()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def drop_folder(folder: str) -> None:
    """Remove all vectors: they can be made again, and must not stay when nobody keeps them in step (R16)."""
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def graph(dim: int) -> Any:
    """An empty index of unit vectors."""
    return _usearch().Index(ndim=dim, metric="cos", dtype="f16", expansion_search=_LOOKED_AT)


def nearest_of(query: Any, vectors: Any, count: int) -> tuple[Any, Any]:
    """The places of the nearest of these vectors, and their cosines."""
    usearch = _usearch()
    half = query.astype(np.float16)
    matches = usearch.search(vectors, half, min(count, len(vectors)), usearch.MetricKind.Cos, exact=True, threads=1)
    return matches.keys.astype(np.int64), 1 - matches.distances


def take_out(index: Any, keys: Any) -> None:
    """Remove these vectors and overwrite them: usearch only marks a removed vector.

    The next vector added takes the place of a marked one. So as many fillers are added, and removed in turn.
    """
    if not len(keys):
        return
    index.remove(keys, threads=1)
    fillers = np.arange(len(keys), dtype=np.uint64) + np.uint64(_FILLERS_FROM)
    noise = np.random.default_rng(len(keys)).standard_normal((len(keys), index.ndim), np.float32)
    index.add(fillers, noise, threads=1)
    index.remove(fillers, threads=1)


def rebuilt(index: Any, keys: Any) -> Any:
    """A new graph of the vectors of these keys."""
    made = graph(index.ndim)
    made.add(keys, np.stack(index.get(keys)), threads=1)
    return made


def _usearch() -> Any:
    try:
        import usearch.index
    except ImportError:
        raise not_installed("The vector index (usearch)", "pip install 'mnemarch[semantic]'") from None
    return usearch.index


class VectorView:
    """One generation, mapped into memory. It never changes, so threads may share it.

    A row says which unit a vector belongs to, and that unit's scope, state, kind and domain.
    """

    def __init__(self, generation: Generation, folder: str) -> None:
        self.generation = generation
        self.rows: Any = None
        self._columns: dict[str, Any] = {}
        if generation.count:
            self.rows = np.load(os.path.join(folder, generation.rows), mmap_mode="r", allow_pickle=False)
            self._keys = np.ascontiguousarray(self.rows["key"])
            self._index = graph(generation.dim)
            self._index.view(os.path.join(folder, generation.vectors))
            if not len(self.rows) == len(self._index) == generation.count:
                raise ValueError("the files don't belong together")

    # Whose

    def rows_of(self, unit_ids: Iterable[str]) -> Any:
        """The rows of those of these units that have one, each once."""
        names = np.array([_bytes(unit_id) for unit_id in unit_ids] or [b""])
        rows = self._rows_of_keys([key_of(name) for name in names.tolist()])
        known = rows[rows >= 0]
        return np.unique(known[self.rows["id"][known] == names[rows >= 0]]) if len(known) else known

    def taken(self, unit_ids: Iterable[str]) -> set[str]:
        """Those that can have no row, since another unit has their key: hardly ever one in a million."""
        listed = list(unit_ids)
        rows = self._rows_of_keys([key_of(_bytes(unit_id)) for unit_id in listed])
        pairs = zip(listed, rows.tolist(), strict=True)
        return {unit_id for unit_id, row in pairs if row >= 0 and self.rows["id"][row] != _bytes(unit_id)}

    def _rows_of_keys(self, keys: Sequence[int]) -> Any:
        """The row of each key, or -1."""
        if not self.generation.count:
            return np.full(len(keys), -1)
        wanted = np.array(keys, np.uint64)
        rows = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        return np.where(self._keys[rows] == wanted, rows, -1)

    def lacks(self, unit: Searchable) -> str:
        """What is missing of this unit: its "vector", only its "labels", or "" nothing."""
        rows = self.rows_of([unit.id])
        if not len(rows) or int(self.rows["content"][rows[0]]) != _hashed(unit.content):
            return "vector"
        return "" if tuple(int(self.rows[label][rows[0]]) for label in _LABELS) == _labels(unit) else "labels"

    def is_alone(self, row: int, rows: Any) -> bool:
        """Whether no unit among `rows` has the same text, and with it the same vector."""
        return not (rows["content"] == self.rows["content"][row]).any()

    def rows_with(self, units: Sequence[Searchable], without: Any) -> Any:
        """The rows in order of keys, with those of these units added and some left out."""
        ids = [_bytes(unit.id) for unit in units]
        before = self.rows if self.generation.count else np.zeros(0, _row_type(1))
        staying = np.delete(before, without)
        after = np.zeros(len(staying) + len(units), _row_type(max([before.dtype["id"].itemsize, *map(len, ids)])))
        for name in after.dtype.names:
            after[name][: len(staying)] = staying[name]
        for at, unit in enumerate(units, start=len(staying)):
            after[at] = (key_of(_bytes(unit.id)), _hashed(unit.content), *_labels(unit), _bytes(unit.id))
        after.sort(order="key")
        return after

    # Which are nearest

    def vectors_of(self, rows: Any) -> Any:
        return np.stack(self._index.get(self._keys[rows])) if len(rows) else np.zeros((0, self.generation.dim), "f2")

    def compared(self, query: Any, rows: Any, count: int) -> list[tuple[str, float]]:
        """The nearest units of these rows, fetched and compared one by one."""
        if not len(rows):
            return []
        at, cosines = nearest_of(query, self.vectors_of(rows), count)
        return self._ranked(rows[at], cosines)

    def nearest_within(self, query: Any, count: int, chosen: Any) -> list[tuple[str, float]]:
        """The nearest units of these rows. The graph is asked for more and more until enough of its answer is among
        the chosen rows; where these are few, it is cheaper to compare with each."""
        size = self.generation.count
        wanted = min(count, len(chosen))
        asked = 2 * wanted * -(-size // max(1, len(chosen)))
        if len(chosen) <= asked:
            return self.compared(query, chosen, count)
        allowed = np.zeros(size, bool)
        allowed[chosen] = True
        while True:
            rows, cosines = self._nearest(query, asked)
            fits = allowed[rows]
            if int(fits.sum()) >= wanted or asked >= size:
                return self._ranked(rows[fits][:wanted], cosines[fits][:wanted])
            asked *= 4

    def _nearest(self, query: Any, count: int) -> tuple[Any, Any]:
        size = self.generation.count
        exact = size <= _EXACT_MAX or count > size // 4
        matches = self._index.search(query, min(count, size), threads=1, exact=exact)
        return np.searchsorted(self._keys, matches.keys), 1 - matches.distances

    def within(self, labels: Mapping[str, Sequence[str] | None]) -> Any:
        """The rows that have, of each label, one of those allowed; None allows all."""
        chosen = np.arange(self.generation.count)
        for label, allowed in labels.items():
            if allowed is not None:
                if label not in self._columns:  # One label of all rows, side by side in memory.
                    self._columns[label] = np.ascontiguousarray(self.rows[label])
                hashes = np.array([_hashed(name) for name in allowed], np.uint64)
                chosen = chosen[np.isin(self._columns[label][chosen], hashes)]
        return chosen

    def ids_of(self, rows: Any) -> list[str]:
        return [name.decode("utf-8", "surrogatepass") for name in self.rows["id"][rows].tolist()] if len(rows) else []

    def keys_of(self, rows: Any) -> Any:
        return self._keys[rows] if len(rows) else np.zeros(0, np.uint64)

    def _ranked(self, rows: Any, cosines: Any) -> list[tuple[str, float]]:
        pairs = zip(self.ids_of(rows), np.clip(cosines, -1, 1).tolist(), strict=True)
        return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))


def keys_of(unit_ids: Iterable[str]) -> Any:
    """The units' keys in the graph."""
    return np.array([key_of(_bytes(unit_id)) for unit_id in unit_ids], np.uint64)


def key_of(unit_id: bytes) -> int:
    """A hash of 63 bits; the upper half is for fillers."""
    return xxh3_64_intdigest(unit_id) >> 1


def _row_type(id_bytes: int) -> Any:
    return [(name, "<u8") for name in ("key", "content", *_LABELS)] + [("id", f"S{id_bytes}")]


def _labels(unit: Searchable) -> tuple[int, ...]:
    return tuple(map(_hashed, (unit.scope_key, unit.state, unit.kind, unit.domain)))


def _hashed(text: str) -> int:
    return xxh3_64_intdigest(_bytes(text))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")

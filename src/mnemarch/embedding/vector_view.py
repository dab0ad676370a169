"""One generation of vectors, mapped into memory: which unit each belongs to, and which are nearest."""

from __future__ import annotations

import os

from xxhash import xxh3_64_intdigest

from mnemarch.embedding.vector_graph import graph, nearest_of
from mnemarch.lazy import Lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    import numpy as np

    from mnemarch.embedding.vector_files import Generation
    from mnemarch.model.unit import Searchable
else:
    np = Lazy("numpy")

# Comparing with every vector is exact, and up to here hardly slower than asking the graph (0.1 ms for 1,000).
_EXACT_MAX = 20_000
_LABELS = ("scope", "state", "kind", "domain")


class VectorView:
    """Never changes, so threads may share it. A row tells of a vector whose it is and where that unit stands."""

    def __init__(self, generation: Generation, folder: str) -> None:
        self.generation = generation
        self.rows: Any = None
        self._scopes: Any = None
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
        """The rows of these units, each once, of those that have one."""
        names = np.array([_bytes(unit_id) for unit_id in unit_ids] or [b""])
        rows = self._rows_of_keys([key_of(name) for name in names.tolist()])
        held = rows[rows >= 0]
        return np.unique(held[self.rows["id"][held] == names[rows >= 0]]) if len(held) else held

    def taken(self, unit_ids: Iterable[str]) -> set[str]:
        """Which of these can have no row, since another unit has their key: hardly ever one, at a million units."""
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
        found = self.rows_of([unit.id])
        if not len(found) or int(self.rows["content"][found[0]]) != _hashed(unit.content):
            return "vector"
        return "" if tuple(int(self.rows[label][found[0]]) for label in _LABELS) == _labels(unit) else "labels"

    def is_alone(self, row: int, rows: Any) -> bool:
        """Whether no unit among `rows` has the text of this one, and with it the very same vector."""
        return not (rows["content"] == self.rows["content"][row]).any()

    def rows_with(self, units: Sequence[Searchable], without: Any) -> Any:
        """The rows with those of these units added and some left out, by key."""
        ids = [_bytes(unit.id) for unit in units]
        before = self.rows if self.generation.count else np.zeros(0, _row_type(1))
        kept = np.delete(before, without)
        after = np.zeros(len(kept) + len(units), _row_type(max([before.dtype["id"].itemsize, *map(len, ids)])))
        for name in after.dtype.names:
            after[name][: len(kept)] = kept[name]
        for at, unit in enumerate(units, start=len(kept)):
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
        at, found = nearest_of(query, self.vectors_of(rows), count)
        return self._ranked(rows[at], found)

    def nearest(self, query: Any, count: int) -> list[tuple[str, float]]:
        """The units nearest of all."""
        return self._ranked(*self._nearest(query, count))

    def nearest_within(self, query: Any, count: int, chosen: Any) -> list[tuple[str, float]]:
        """The nearest units of these rows: all are asked for more than is wanted, and again more, until enough of
        what is found is among the chosen; where these are few, it is cheaper to fetch them."""
        size = self.generation.count
        wanted = min(count, len(chosen))
        asked = 2 * wanted * -(-size // max(1, len(chosen)))
        if len(chosen) <= asked:
            return self.compared(query, chosen, count)
        allowed = np.zeros(size, bool)
        allowed[chosen] = True
        while True:
            rows, found = self._nearest(query, asked)
            kept = allowed[rows]
            if int(kept.sum()) >= wanted or asked >= size:
                return self._ranked(rows[kept][:wanted], found[kept][:wanted])
            asked *= 4

    def _nearest(self, query: Any, count: int) -> tuple[Any, Any]:
        size = self.generation.count
        exact = size <= _EXACT_MAX or count > size // 4
        matches = self._index.search(query, min(count, size), threads=1, exact=exact)
        return np.searchsorted(self._keys, matches.keys), 1 - matches.distances

    def within(self, scope_keys: Sequence[str] | None, others: Mapping[str, Sequence[str]]) -> Any:
        """The rows of these scopes (of all) that have, of each other label asked for, one of those allowed."""
        chosen = np.arange(self.generation.count) if scope_keys is None else self._of_scopes(scope_keys)
        for label, allowed in others.items():
            if allowed:
                column = self._column(label)[chosen]
                chosen = chosen[np.logical_or.reduce([column == np.uint64(_hashed(name)) for name in allowed])]
        return chosen

    def _column(self, label: str) -> Any:
        """One label of all rows, side by side in memory."""
        if label not in self._columns:
            self._columns[label] = np.ascontiguousarray(self.rows[label])
        return self._columns[label]

    def _of_scopes(self, scope_keys: Sequence[str]) -> Any:
        order, scopes, starts = self._by_scope()
        wanted = np.array(sorted({_hashed(key) for key in scope_keys}), np.uint64)
        at = np.searchsorted(scopes, wanted)
        held = at[(at < len(scopes)) & (scopes[np.minimum(at, len(scopes) - 1)] == wanted)]
        parts = [order[starts[one] : starts[one + 1]] for one in held]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def _by_scope(self) -> Any:
        if self._scopes is None:
            column = self._column("scope")
            order = np.argsort(column, kind="stable")
            scopes, starts = np.unique(column[order], return_index=True)
            self._scopes = order, scopes, np.append(starts, len(order))
        return self._scopes

    def ids_of(self, rows: Any) -> list[str]:
        return [name.decode("utf-8", "surrogatepass") for name in self.rows["id"][rows].tolist()] if len(rows) else []

    def keys_of(self, rows: Any) -> Any:
        return self._keys[rows] if len(rows) else np.zeros(0, np.uint64)

    def _ranked(self, rows: Any, found: Any) -> list[tuple[str, float]]:
        pairs = zip(self.ids_of(rows), np.clip(found, -1, 1).tolist(), strict=True)
        return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))


def keys_of(unit_ids: Iterable[str]) -> Any:
    """The units' keys in the graph."""
    return np.array([key_of(_bytes(unit_id)) for unit_id in unit_ids], np.uint64)


def key_of(unit_id: bytes) -> int:
    """Of 63 bits: the upper half is for what stands for no unit."""
    return xxh3_64_intdigest(unit_id) >> 1


def _row_type(id_bytes: int) -> Any:
    return [(name, "<u8") for name in ("key", "content", *_LABELS)] + [("id", f"S{id_bytes}")]


def _labels(unit: Searchable) -> tuple[int, ...]:
    return tuple(map(_hashed, (unit.scope_key, unit.state, unit.kind, unit.domain)))


def _hashed(text: str) -> int:
    return xxh3_64_intdigest(_bytes(text))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
